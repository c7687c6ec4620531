"""What used to give way when somebody tried to hurt the server: order, streams, memory and patience under pressure.

Latencies are those that another client sees. They are measured several times, and the best try counts: a machine that
stalls spoils one of them, a server that keeps others waiting spoils all.
"""
import json
import os
import select
import socket
import threading
import time

import harness
from harness import Server, ServerCase, preload, wait_until
from streams_test import Occurrences


class Longest:
    """The longest that one of many small calls took while the block ran, in seconds."""

    def __init__(self, server):
        self.client, self.ended, self.seconds = server.client(), False, 0
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.ended:
            start = time.monotonic()
            self.client.get("/healthz")
            self.seconds = max(self.seconds, time.monotonic() - start)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()


class OrderTest(ServerCase):
    def test_S30_the_answer_of_a_batch_that_wakes_a_long_poll_is_not_overtaken(self):
        # Unix sockets, because what is sent on one is there when the call returns (see streams_test.py).
        path = os.path.join(harness.temporary_directory(), "s")
        self.own_server("--listen", f"unix:{path}", "--threads", "1")
        caller, waiter, watcher = [self.connect(path) for _ in range(3)]
        watcher.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        events, answers = Occurrences(watcher, b'"event":"failed"'), Occurrences(caller, b'"answers"')
        for i in range(200):
            lane = {"type": "own", "resource_id": f"r{i}"}
            self.send(caller, "/lock", {**lane, "node_id": "a"})
            self.read_until(caller, b"acquired")
            self.send(waiter, "/lock", {**lane, "node_id": "b", "wait_ms": 60_000})
            self.send(caller, "/lock/status", lane)
            while b'"node_id":"b"' not in self.read_until(caller, b'"waiters"'):
                self.send(caller, "/lock/status", lane)
            # What comes behind the unlock is durable later, and the whole answer waits for it.
            more = [{"call": "lock", "type": "own", "resource_id": f"r{i}-{k}", "node_id": "a"} for k in range(200)]
            unlock = {"call": "unlock", **lane, "node_id": "a", "error": "e"}
            self.send(caller, "/batch", {"requests": [unlock, *more]})
            while events.count <= i:
                events.read()
            while select.select([caller], [], [], 0)[0]:
                answers.read()
            self.assertEqual(answers.count, i + 1, "an event came before the answer that caused it")
            self.read_until(waiter, b"acquired")

    def connect(self, path):
        raw = socket.socket(socket.AF_UNIX)
        raw.settimeout(harness.PATIENCE)
        raw.connect(path)
        self.addCleanup(raw.close)
        return raw

    @staticmethod
    def send(raw, path, fields):
        body = json.dumps(fields)
        raw.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    @staticmethod
    def read_until(raw, word):
        text = b""
        while word not in text or not text.endswith(b"}"):
            text += raw.recv(65536)
        return text


class BusyTest(ServerCase):
    CONNECTIONS, ROUNDS = 300, 30

    def test_S30_a_reader_that_keeps_up_is_never_cut_off_and_misses_nothing(self):
        stream = self.server.stream("/events")
        busy = [socket.create_connection((self.server.host, self.server.port)) for _ in range(self.CONNECTIONS)]
        self.addCleanup(lambda: [raw.close() for raw in busy])
        for raw in busy:
            raw.settimeout(harness.PATIENCE)
        packs = [self.pack(i) for i in range(self.CONNECTIONS)]
        for _ in range(self.ROUNDS):
            for raw, pack in zip(busy, packs):
                raw.sendall(pack)
            for raw in busy:
                answers = Occurrences(raw, b"HTTP/1.1 200")
                while answers.count < 8:
                    answers.read()
        wanted = self.CONNECTIONS * self.ROUNDS * 8
        ids = [int(stream.next()["id"]) for _ in range(wanted)]
        self.assertEqual(ids, list(range(ids[0], ids[0] + wanted)), "every event, once, in order, and no reset")
        self.assertEqual(self.client.metric("turnstile_streams_cut_total"), 0)

    @staticmethod
    def pack(i):
        body = json.dumps({"type": "own", "resource_id": f"busy-{i}", "node_id": "n", "info": "i" * 100})
        return "".join(f"POST /{call} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                       for call in ("lock", "unlock") * 4).encode()


class SizeTest(ServerCase):
    def test_a_batch_whose_answer_grows_too_large_says_what_it_has_not_done(self):
        for i in range(100):
            self.client.post("/refs/add", resource_id=self.resource, node_id=f"{i:04}" + "n" * 120)
        delete = {"call": "lock", "type": "delete", "resource_id": self.resource, "node_id": "a"}
        answer = self.client.batch(*[delete] * 1000)
        self.assertLess(len(answer.text), 6 << 20)
        done = [each for each in answer["answers"] if each["status"] == 403]
        left = [each for each in answer["answers"] if each["status"] == 429]
        self.assertEqual(len(done) + len(left), 1000)
        self.assertGreater(len(done), 100)
        self.assertIn("another one", left[0]["error"])

    def test_very_many_waiters_that_fail_for_good_keep_nobody_waiting_and_give_their_memory_back(self):
        server = self.own_server(store="memory")
        client = server.client()
        first = server.resident_kib()

        def scenario(i):
            resource = f"{self.resource}{i}"
            self.hold("holder", resource_id=resource, client=client)
            for part in range(30):
                client.batch(*[{"call": "lock", "type": "pull", "resource_id": resource, "node_id": f"n{part}-{k}"}
                               for k in range(1000)])
            with Longest(server) as longest:
                self.unlock("holder", resource_id=resource, client=client, error="e" * 4000, permanent=True)
                wait_until(lambda: client.metric("turnstile_waiters", operation="pull") == 0)
                peak = server.resident_kib()
            if harness.memory_counts():
                self.assertLess(peak - first, 150 * 1024, "the text is kept once")
            return longest.seconds < 0.05 or not harness.memory_counts()  # a sanitizer is slow

        self.race(scenario)

    def test_memory_of_a_peak_is_given_back(self):
        server = self.own_server("--retain-released", "1s", store="memory")
        client = server.client()
        first = server.resident_kib()
        for part in range(100):
            client.batch(*[{"call": "lock", "type": "own", "resource_id": f"{part}-{k}", "node_id": "n",
                            "lease_ms": 3_600_000, "info": "i" * 200} for k in range(1000)])
        peak = server.resident_kib()
        for part in range(100):
            client.batch(*[{"call": "unlock", "type": "own", "resource_id": f"{part}-{k}", "node_id": "n"}
                           for k in range(1000)])
        if harness.memory_counts():
            self.assertGreater(peak - first, 30 * 1024)
            wait_until(lambda: server.resident_kib() < first + (peak - first) // 3, "the memory is given back", every=0.5)

    def test_a_list_over_very_many_locks_keeps_nobody_waiting(self):
        server = self.own_server(store="memory")
        client = server.client()
        for part in range(200):
            client.batch(*[{"call": "lock", "type": "own", "resource_id": f"{part}-{k}", "node_id": "n"}
                           for k in range(1000)])

        def scenario(_):
            with Longest(server) as longest:
                page = client.get("/locks", state="waiting")
                self.assertEqual(page["locks"], [])
                page = client.get("/locks", limit=3)
                self.assertEqual([lock["resource_id"] for lock in page["locks"]], ["0-0", "0-1", "0-10"])
                client.post("/refs/release_node", node_id="nobody")
            return longest.seconds < 0.05 or not harness.memory_counts()  # a sanitizer is slow

        self.race(scenario)


class ClockTest(ServerCase):
    def test_a_clock_before_2020_is_refused_at_the_first_start_and_harmless_later(self):
        server = Server(environment=preload("wrong_clock.c", CLOCK_BEHIND=str(12 * 365 * 86400)))
        self.addCleanup(server.remove)
        with self.assertRaisesRegex(AssertionError, "Set the clock"):
            server.start()
        server.environment["CLOCK_BEHIND"] = "0"
        token = self.hold("a", client=server.start().client())
        server.kill()
        server.environment["CLOCK_BEHIND"] = str(12 * 365 * 86400)  # the journal knows better
        again = self.hold("b", "update", client=server.start().client())
        self.assertGreater(again, token)
        self.assertLess(again, 1 << 53)


class LostGrantTest(ServerCase):
    def test_S36_a_grant_whose_poll_broke_before_it_was_told_passes_on(self):
        mark = os.path.join(harness.temporary_directory(), "stuck")
        server = self.own_server("--claim-timeout", "1s", "--max-hold", "1h",
                                 environment=preload("disk.c", DISK_STUCK_WHILE=mark))
        client = server.client()
        self.hold("a", "own", client=client)
        lost = self.poll("lost", "own", server=server)
        last = self.poll("last", "own", server=server)
        with open(mark, "w", encoding="ascii"):
            client.send("POST", "/unlock", {"type": "own", "resource_id": self.resource, "node_id": "a"})
        # The grant is made and its answer waits for the disk. A connection of its own sees that it was: it is
        # accepted and handled after the unlock, and reads wait for the disk, too.
        ping = server.client()
        ping.get("/healthz")
        lost.reset()
        os.unlink(mark)
        self.assertEqual(client.receive().status, 200)
        self.assertEqual(last.answer()["state"], "acquired")


if __name__ == "__main__":
    harness.main()
