"""What the server costs when little is asked of it: processor time, not time on the clock, so that it does not matter how
busy the machine is."""
import json
import os
import time
import unittest

import harness
from harness import ServerCase

PERIOD = 0.01  # of one request
GAP = 60e-6  # between the two packets of a request
REQUESTS = 100  # a round
ROUNDS = 10  # of which one has to be undisturbed
MOST = 130e-6  # seconds of processor time a request; undisturbed it is a third of that


@unittest.skipUnless(harness.memory_counts(), "a sanitizer takes several times as long for everything")
class ProcessorTest(ServerCase):
    store = "memory"
    flags = ("--threads", "1")

    def cpu_seconds(self):
        """Of all threads, in nanoseconds' resolution; a tick of /proc/PID/stat would be a hundred requests."""
        tasks = f"/proc/{self.server.pid}/task"
        total = 0
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def spend(self, until):
        while time.perf_counter() < until:
            pass

    def round(self, raw, head, body):
        """Processor time a request, of requests that come in two packets, as http.client and others send them."""
        start, before = time.perf_counter(), self.cpu_seconds()
        for number in range(REQUESTS):
            raw.sendall(head)
            self.spend(time.perf_counter() + GAP)
            raw.sendall(body)
            received = b""
            while b"}" not in received:
                received += raw.recv(65536)
            time.sleep(max(0.0, start + (number + 1) * PERIOD - time.perf_counter()))
        elapsed = time.perf_counter() - start
        return (self.cpu_seconds() - before - elapsed * self.idle) / REQUESTS

    def test_section_9_a_request_now_and_then_does_not_keep_the_processor_busy(self):
        before = self.cpu_seconds()
        time.sleep(0.5)  # nothing happens: that is what is measured
        self.idle = (self.cpu_seconds() - before) / 0.5  # what its clockwork takes a second

        body = json.dumps({"type": "pull", "resource_id": self.resource}).encode()
        head = f"POST /lock/status HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        self.client.connection.connect()
        raw = self.client.connection.sock
        costs = []
        for _ in range(ROUNDS):
            costs.append(self.round(raw, head, body))
            if costs[-1] < MOST:
                return
        self.fail(f"microseconds a request: {[round(cost * 1e6) for cost in costs]}")


if __name__ == "__main__":
    harness.main()
