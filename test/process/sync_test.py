"""What the server does between a change and its answer: the log is written and synced, always, and nothing leaves before
(S31, S32). Seen from below, by disk.c: the order of its writes, syncs and sends.

A kill -9 does not show it: what was written and not synced is in the kernel's memory, which outlives the process.
"""
import os
import select
import socket
import threading
import time
import urllib.parse

import harness
from client import BrokenAnswer
from harness import Server, ServerCase, preload, wait_until


class DiskCase(ServerCase):
    """Every test has a server of its own, over a disk that is watched."""

    flags = ()

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.resource = "r"
        directory = harness.temporary_directory()
        self.trace, self.stuck, self.failing = [os.path.join(directory, name) for name in ("trace", "stuck", "failing")]
        self.server = Server(*self.flags, environment=preload(
            "disk.c", DISK_TRACE=self.trace, DISK_STUCK_WHILE=self.stuck, DISK_FAILS_ONCE=self.failing))
        self.addCleanup(self.server.remove)
        self.server.start()
        self.client = self.server.client()

    def tearDown(self):
        pass

    def lines(self):
        """What was traced so far."""
        with open(self.trace, encoding="ascii") as file:
            return file.read().splitlines()

    @staticmethod
    def switch_on(mark):
        with open(mark, "w", encoding="ascii"):
            pass

    def raw(self, data):
        """A connection on which this was sent, and whose answer is not waited for."""
        made = socket.create_connection((self.server.host, self.server.port), timeout=harness.PATIENCE)
        self.addCleanup(made.close)
        made.sendall(data)
        return made

    def raw_get(self, path, **query):
        return self.raw(f"GET {path}?{urllib.parse.urlencode(query)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


class OrderTest(DiskCase):
    def changes(self):
        """Calls that change something, of every kind, one after the other."""
        for i in range(60):
            name = f"r{i}"
            yield lambda: self.client.lock(name, "a", type="own", lease_ms=3_600_000)
            yield lambda: self.client.lock(name, "b", type="own")
            yield lambda: self.client.lock(name, "c", type="own")
            yield lambda: self.client.cancel(name, "c", type="own")
            yield lambda: self.client.unlock(name, "a", type="own", error="no")
            yield lambda: self.client.unlock(name, "b", type="own")
            yield lambda: self.client.post("/refs/add", resource_id=name, node_id="a")
            yield lambda: self.client.lock(name, "a", type="delete", dereference=True)
            yield lambda: self.client.post("/admin/break", type="delete", resource_id=name, reason="why not")
            yield lambda: self.client.batch({"call": "lock", "type": "pull", "resource_id": name, "node_id": "a"},
                                            {"call": "unlock", "type": "pull", "resource_id": name, "node_id": "a"})
            # Of a batch that changes something the last item may be refused.
            yield lambda: self.client.batch({"call": "refs/add", "resource_id": name, "node_id": "b"},
                                            {"call": "refs/add", "resource_id": name})
            held = self.client.lock(name, "a", type="once")
            self.at = len(self.lines())
            yield lambda: self.client.post("/renew", type="once", resource_id=name, node_id="a", token=held["token"],
                                           lease_ms=3_600_000)
            yield lambda: self.client.unlock(name, "a", type="once")
            yield lambda: self.client.post("/admin/forget", type="once", resource_id=name)
            yield lambda: self.client.post("/refs/release", resource_id=name, node_id="a")
            yield lambda: self.client.post("/refs/add", resource_id=name, node_id="n")
            yield lambda: self.client.post("/refs/release_node", node_id="n")

    def test_S31_no_answer_leaves_between_a_write_to_the_log_and_its_sync(self):
        wait_until(lambda: self.client.get("/healthz").status == 200)
        self.at, changed = len(self.lines()), 0
        for change in self.changes():
            answer = change()
            self.assertEqual(answer.status, 200, answer)
            lines = self.lines()
            between, self.at = lines[self.at:], len(lines)
            changed += 1
            self.assertIn("w", between, f"change {changed} was answered and not written")
            answer = next(line for line in between if line.startswith("a"))
            before = between[:between.index(answer)]
            self.assertEqual(before[-1:], ["s"], f"change {changed} was answered before its sync: {between}")
            _, written, synced = answer.split()
            self.assertEqual(written, synced, f"change {changed}: so many writes, so many of them synced")
        self.assertEqual(changed, 60 * 17)

    def test_S31_what_very_many_send_at_once_is_synced_before_it_is_answered_too(self):
        # Here a batch of others' may be written while an answer leaves; so what counts is whether the request's own
        # write was synced: each has at least one write, and its answer says how many syncs there were.
        def work(node):
            client = self.server.client()
            for i in range(50):
                answers.append(client.lock(f"{node}-{i}", node, type="own").status)
        answers = []
        threads = [threading.Thread(target=work, args=(f"n{k}",)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [200] * 400)
        # An answer that leaves belongs to a batch before the one that is under way, which is one write, or two where the
        # log's file is made longer.
        lags = [int(line.split()[1]) - int(line.split()[2]) for line in self.lines() if line.startswith("a")]
        self.assertLessEqual(max(lags), 2, "more than the batch under way was not synced")


class SlowDiskTest(DiskCase):
    def test_S31_while_a_sync_lasts_no_answer_read_or_event_of_it_arrives(self):
        events = self.raw_get("/lock/subscribe", type="own", resource_id=self.resource)
        self.assertIn(b"200 OK", events.recv(65536))
        everything = self.raw_get("/events")
        self.assertIn(b"200 OK", everything.recv(65536))
        # The waiter is told of its grant by the holder's unlock, whose sync does not end.
        self.hold("a", "own", client=self.client)
        waiting = self.poll("b", "own")
        self.drain(events, b'"granted"')
        self.drain(everything, b'"granted"')

        self.switch_on(self.stuck)
        before = self.lines().count("w")
        holder = self.server.client()
        holder.send("POST", "/unlock", {"type": "own", "resource_id": self.resource, "node_id": "a", "error": "no"})
        wait_until(lambda: self.lines().count("w") > before, "the unlock is written")
        readers = [self.raw_get("/lock/status", type="own", resource_id=self.resource),
                   self.raw_get("/locks", state="held")]
        late = self.raw_get("/lock/subscribe", type="own", resource_id=self.resource, node_id="b")
        from_now = self.raw_get("/events")
        impatient = self.server.client()  # its time is over long before that of the test
        impatient.send("POST", "/lock",
                       {"type": "own", "resource_id": self.resource, "node_id": "c", "wait_ms": 20})
        silent = {"the unlock": holder.connection.sock, "the waiter": waiting.connection.sock, "its events": events,
                  "all events": everything, "the status": readers[0], "the list": readers[1],
                  "the head of a stream": from_now, "the end of a long poll": impatient.connection.sock}
        # All loops go around many times meanwhile: these are spread over them, and are answered without the disk.
        for _ in range(5):
            for client in [self.server.client() for _ in range(8)]:
                self.assertEqual(client.get("/healthz").status, 200)
            heard = select.select(list(silent.values()), [], [], 0.2)[0]
            self.assertEqual([name for name, raw in silent.items() if raw in heard], [], "told before it was durable")
        self.assertNotIn(b'"granted"', self.there(late))

        os.unlink(self.stuck)
        self.assertEqual(holder.receive()["next"], "b")
        self.assertTrue(waiting.answer()["acquired"])
        for raw in events, everything:
            self.drain(raw, b'"granted"')
        self.assertIn(b'"node_id":"b"', readers[0].recv(65536))
        self.assertIn(b'"node_id":"b"', readers[1].recv(65536))
        self.assertIn(b"200 OK", from_now.recv(65536))
        self.assertEqual(impatient.receive()["state"], "queued")

    def drain(self, raw, word):
        received, end = b"", time.monotonic() + harness.PATIENCE
        while word not in received:
            self.assertLess(time.monotonic(), end, "only comments came")
            piece = raw.recv(65536)
            self.assertTrue(piece, "the stream has ended")
            received += piece

    @staticmethod
    def there(raw):
        """What has come and was not read."""
        return raw.recv(1 << 20) if select.select([raw], [], [], 0)[0] else b""


class FailsOnceTest(DiskCase):
    """One sync fails; all later ones would succeed. The kernel may have thrown the pages away, so nobody may try."""

    def test_S32_one_failed_sync_stops_the_server_is_not_tried_again_and_what_it_was_for_is_told_to_nobody(self):
        acknowledged = {f"kept{i}": self.hold("a", "own", resource_id=f"kept{i}") for i in range(20)}
        self.hold("a", "own")
        waiting = self.poll("b", "own")
        stream = self.server.stream(type="own", resource_id=self.resource)
        everything = self.server.stream("/events")
        callers = [self.server.client() for _ in range(12)]
        for client in callers:
            client.get("/healthz")
        # The disk stands still until everybody has sent: the first of these is in the batch whose sync fails, the others
        # wait behind it.
        self.switch_on(self.stuck)
        self.switch_on(self.failing)
        before = self.lines().count("w")
        callers[0].send("POST", "/unlock", {"type": "own", "resource_id": self.resource, "node_id": "a", "error": "no"})
        for i, client in enumerate(callers[1:]):
            client.send("POST", "/lock", {"type": "own", "resource_id": f"new{i}", "node_id": "a"})
        wait_until(lambda: self.lines().count("w") > before, "the unlock is written")
        reading = [self.server.client() for _ in range(2)]
        for client in reading:
            client.send("GET", f"/lock/status?type=own&resource_id={self.resource}")
        for client in [self.server.client() for _ in range(8)]:  # all loops have gone around
            self.assertEqual(client.get("/healthz").status, 200)
        os.unlink(self.stuck)
        self.assertNotEqual(self.server.wait_for_end(), 0)
        self.assertIn("Input/output error", self.server.log())

        for client in [*callers, waiting, *reading]:
            self.assert_told_nothing(client)
        for each in stream, everything:
            told = []
            while (event := each.next()) is not None:
                told.append((event["data"]["event"], event["data"]["resource_id"]))
            self.assertNotIn(("failed", self.resource), told)
            self.assertEqual([name for _, name in told if name.startswith("new")], [])
        lines = self.lines()
        self.assertEqual(lines.count("f"), 1)
        self.assertEqual([line for line in lines[lines.index("f"):] if line in ("w", "s")], [], "it was tried again")

        self.server.environment = {}
        self.server.restart()
        self.client = self.server.client()
        for name, token in acknowledged.items():
            self.assertEqual(self.status("own", resource_id=name)["holder"]["token"], token)
        # Either outcome is right for what nobody was told, but there is one, and asking again settles it.
        self.assertIn(self.holder("own"), ("a", "b"))
        for i in range(len(callers) - 1):
            token = self.hold("a", "own", resource_id=f"new{i}")
            self.assertEqual(self.hold("a", "own", resource_id=f"new{i}"), token)

    def assert_told_nothing(self, client):
        try:
            answer = client.receive()
        except (OSError, BrokenAnswer):
            return
        self.assertEqual(answer.status, 503, answer)


if __name__ == "__main__":
    harness.main()
