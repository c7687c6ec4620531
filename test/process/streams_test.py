"""Event streams of the real server: what comes first, ids, resuming, order against answers, slow readers."""
import json
import os
import re
import select
import socket
import urllib.parse

import harness
from client import Stream, connect
from harness import ServerCase, wait_until


class StreamTest(ServerCase):
    def subscribe(self, server=None, **more):
        return (server or self.server).stream(type="pull", resource_id=self.resource, **more)

    def test_S27_L6_head_and_first_comment_come_at_once(self):
        for path in "/lock/subscribe", "/subscribe":
            stream = self.server.stream(path, type="pull", resource_id=self.resource)
            self.assertEqual(stream.status, 200)
            self.assertIn("Content-Type: text/event-stream", stream.head)
            self.assertTrue(stream.comment().startswith(":"))
        self.assertTrue(self.server.stream("/events").comment())

    def test_S27_a_comment_comes_every_ten_seconds_SLOW(self):
        stream = self.server.stream("/events", prefix=self.resource)
        stream.comment()
        self.assertTrue(stream.comment().startswith(":"))

    def test_S27_L5_a_kept_completion_comes_first(self):
        self.hold("a")
        self.unlock("a")
        event = self.subscribe().next()
        self.assertEqual((event["data"]["event"], event["data"]["node_id"], event["data"]["success"]),
                         ("completed", "a", True))

    def test_S27_L5_a_grant_that_is_not_yet_claimed_comes_first(self):
        self.hold("a")
        self.queue("b")
        self.unlock("a", error="no")
        event = self.subscribe(node_id="b").next()["data"]
        self.assertEqual((event["event"], event["node_id"], event["attempt"]), ("granted", "b", 2))

    def test_S29_every_kind_of_event_has_its_fields(self):
        stream = self.subscribe()
        token = self.hold("a")
        self.queue("b", request_id="7")
        self.unlock("a", error="no")
        self.client.cancel(self.resource, "b", request_id="7")
        granted, failed, again, expired = [stream.next()["data"] for _ in range(4)]
        self.assertEqual((granted["event"], granted["token"], granted["attempt"]), ("granted", token, 1))
        self.assertEqual((failed["event"], failed["token"], failed["error"]), ("failed", token, "no"))
        self.assertEqual((again["event"], again["node_id"], again["request_id"], again["attempt"]),
                         ("granted", "b", "7", 2))
        self.assertEqual((expired["event"], expired["reason"], expired["success"]), ("expired", "cancelled", False))
        self.assertRegex(failed["completed_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")

    def test_L13_a_failure_with_nobody_waiting_reaches_a_pure_watcher(self):
        stream = self.subscribe()
        self.hold("a")
        self.unlock("a", error="bad digest", permanent=True)
        failed = stream.next_of("failed")
        self.assertEqual((failed["error"], failed["permanent"]), ("bad digest", True))

    def test_S29_refused_and_cancelled_waiters_are_told_of(self):
        stream = self.server.stream(type="delete", resource_id=self.resource)
        self.hold("a", "delete")
        self.hold("p", "pull")
        for node in "bc":
            self.queue(node, "delete")
        self.client.cancel(self.resource, "c", type="delete")
        self.unlock("p", "pull")
        self.unlock("a", "delete", error="no")
        self.assertEqual(stream.next_of("cancelled")["node_id"], "c")
        self.assertEqual(stream.next_of("refused")["node_id"], "b")

    def test_S29_no_event_line_is_sent_except_for_reset(self):
        stream = self.subscribe(last_event_id=1)
        reset = stream.next()
        self.assertEqual((reset["event"], reset["data"]["event"]), ("reset", "reset"))
        self.hold("a")
        self.unlock("a", error="no")
        stream.next()
        stream.next()
        self.assertEqual([line for line in stream.lines if line.startswith("event:")], ["event: reset"])

    def test_S28_L16_a_reconnect_gets_exactly_what_it_missed(self):
        first = self.subscribe()
        self.hold("n0")
        seen = first.next()
        first.close()
        for i in range(50):
            self.unlock(f"n{i}", error=f"e{i}")
            self.hold(f"n{i + 1}")
            self.hold("noise", resource_id=f"{self.resource}-noise{i}")
        second = self.subscribe(last_event_id=seen["id"])
        got = [second.next() for _ in range(100)]
        self.assertEqual([e["data"]["error"] for e in got[::2]], [f"e{i}" for i in range(50)])
        self.assertEqual([e["data"]["node_id"] for e in got[1::2]], [f"n{i}" for i in range(1, 51)])
        ids = [int(e["id"]) for e in [seen] + got]
        self.assertEqual(ids, sorted(set(ids)))

    def test_S28_an_id_that_is_not_known_gives_one_reset_and_then_what_is(self):
        self.hold("a")
        self.unlock("a")
        for unknown in "1", "no-number", str(2**63):
            stream = self.subscribe(last_event_id=unknown)
            events = [stream.next() for _ in range(4)]
            # The state, then what is known of how it came to be.
            self.assertEqual([e["data"]["event"] for e in events], ["reset", "completed", "granted", "completed"], unknown)
            ids = [int(e["id"]) for e in events]
            self.assertEqual(ids, sorted(set(ids)), unknown)
            self.assertGreater(events[1]["data"]["token"], 0)
            self.assertEqual(events[1]["data"]["attempt"], 1)

    def test_S28_ids_grow_over_crash_and_restart_and_a_resume_over_it_loses_nothing(self):
        server = self.own_server()
        last = 0
        for life in range(3):
            client = server.client()
            stream = self.subscribe(server, last_event_id=last or None)
            self.hold(f"n{life}", client=client)
            self.unlock(f"n{life}", client=client, error="no")
            for expected in "granted", "failed":
                event = stream.next()
                self.assertEqual(event["data"]["event"], expected, "nothing was missed, so there is no reset")
                self.assertGreater(int(event["id"]), last)
                last = int(event["id"])
            server.kill_and_restart()

    def test_S28_who_came_in_a_life_without_events_has_missed_nothing_in_the_next(self):
        server = self.own_server()
        self.hold("n", client=server.client())
        self.unlock("n", client=server.client(), success=True)
        server.kill_and_restart()
        state = self.subscribe(server).next()  # which is all that this life has to say
        server.kill_and_restart()
        stream = self.subscribe(server, last_event_id=state["id"])
        other = self.subscribe(server, last_event_id=1)
        self.assertEqual(other.next()["data"]["event"], "reset", "an id of nobody's")
        server.kill()
        self.assertIsNone(stream.next(), "nothing has happened in its lane")

    def test_S28_who_missed_the_end_of_a_life_is_told_and_gets_all_of_the_new_one(self):
        server = self.own_server()
        stream = self.subscribe(server)
        self.hold("n0", client=server.client())
        seen = stream.next()
        stream.close()
        self.unlock("n0", client=server.client(), error="nobody sees this")
        server.kill_and_restart()
        for life in range(1, 20):
            self.hold(f"n{life}", client=server.client())
            self.unlock(f"n{life}", client=server.client(), error="no")
        stream = self.subscribe(server, last_event_id=seen["id"])
        events = [stream.next() for _ in range(39)]
        self.assertEqual([e["data"]["event"] for e in events], ["reset"] + ["granted", "failed"] * 19)
        ids = [int(e["id"]) for e in events]
        self.assertEqual(ids, sorted(set(ids)))
        again = self.subscribe(server, last_event_id=ids[0])
        self.assertEqual(again.next()["data"]["event"], "granted", "a reset is not told twice")

    def test_S28_a_lanes_reader_that_falls_out_of_the_log_is_ended_and_told_when_it_comes_back(self):
        server = self.own_server(store="memory")
        client = server.client()

        def scenario(i):
            lane = {"type": "own", "resource_id": f"{self.resource}{i}"}
            raw = connect(server.host, server.port, receive_buffer=4096)
            self.addCleanup(raw.close)
            raw.sendall(f"GET /lock/subscribe?{urllib.parse.urlencode(lane)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            self.assertIn(b"200 OK", raw.recv(4096))
            pairs = [{"call": call, **lane, "node_id": "n", **({"error": "e" * 4000} if call == "unlock" else {})}
                     for call in ("lock", "unlock") * 100]
            for _ in range(25):  # 10 MB of events, more than the log keeps
                client.batch(*pairs)
            text = b""
            try:
                while piece := raw.recv(1 << 20):
                    text += piece
            except ConnectionResetError:
                return False  # the machine stalled, and it was taken for a reader that takes nothing
            self.assertTrue(text.endswith(b"0\r\n\r\n"), "an orderly end")
            self.assertNotIn(b"event: reset", text)
            last = re.findall(rb"id: (\d+)\n", text)[-1].decode()
            self.assertEqual(server.stream(last_event_id=last, **lane).next()["data"]["event"], "reset")
            return True

        self.race(scenario)

    def test_section_9_the_stream_of_everything_is_chosen_by_prefix_and_type(self):
        everything = self.server.stream("/events")
        chosen = self.server.stream("/events", prefix=self.resource + "-x", type="own")
        self.hold("a", "own", resource_id=self.resource + "-y")
        self.hold("a", "pull", resource_id=self.resource + "-x1")
        self.hold("a", "own", resource_id=self.resource + "-x2")
        self.assertEqual(chosen.next()["data"]["resource_id"], self.resource + "-x2")
        mine = [everything.next()["data"]["resource_id"] for _ in range(3)]
        self.assertEqual(mine, [self.resource + "-y", self.resource + "-x1", self.resource + "-x2"])

    def test_section_9_more_streams_than_allowed_are_429_until_one_ends(self):
        server = self.own_server("--max-streams", "2")
        streams = [self.subscribe(server) for _ in range(2)]
        query = urllib.parse.urlencode({"type": "pull", "resource_id": self.resource})
        answer = server.client().call("GET", "/lock/subscribe?" + query)
        self.assert_refused(answer, 429, "too_many_requests")
        self.assertIn("max-streams", answer["error"])
        streams[0].close()
        wait_until(lambda: self.subscribe(server).status == 200, "a stream is free again")


class OrderTest(ServerCase):
    def test_S30_an_answer_is_never_overtaken_by_the_event_that_it_caused(self):
        # Unix sockets, because what is sent on one is there when the call returns: so whenever events have been read,
        # their answers can be read, too, and no delay of the kernel's can fake or hide a wrong order. Requests come in
        # packs, because the answers to a pack are written together, which is the longest time that an event could win.
        lane = json.dumps({"type": "own", "resource_id": self.resource, "node_id": "a"})
        pack = "".join(f"POST /{call} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(lane)}\r\n\r\n{lane}"
                       for call in ["lock", "unlock"] * 50).encode()
        for store in "memory", "file":
            path = os.path.join(harness.temporary_directory(), "s")
            self.own_server("--listen", f"unix:{path}", store=store)
            caller, watcher = [self.connect(path) for _ in range(2)]
            watcher.sendall(f"GET /lock/subscribe?type=own&resource_id={self.resource} HTTP/1.1\r\nHost: x\r\n\r\n"
                            .encode())
            self.assertIn(b"\n\n", self.read_some(watcher))
            events, answers = Occurrences(watcher, b"data:"), Occurrences(caller, b"HTTP/1.1 200 OK")
            for sent in range(100, 5001, 100):
                caller.sendall(pack)
                while events.count < sent:
                    events.read()
                    while select.select([caller], [], [], 0)[0]:
                        answers.read()
                    self.assertGreaterEqual(answers.count, events.count, f"{store}: an event came before its answer")

    def test_section_9_a_unix_socket_serves_the_same_api(self):
        path = os.path.join(harness.temporary_directory(), "s")
        server = self.own_server("--listen", f"unix:{path}")
        self.assertEqual(server.addresses[1], f"unix:{path}")
        raw = self.connect(path)
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn(b'{"status":"ok"}', self.read_some(raw))
        self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def connect(self, path):
        raw = socket.socket(socket.AF_UNIX)
        raw.settimeout(harness.PATIENCE)
        raw.connect(path)
        self.addCleanup(raw.close)
        return raw

    def read_some(self, raw):
        """One answer or the events that are there; both come in one piece, because each is one write."""
        received = raw.recv(65536)
        while b"\n\n" not in received and b"}" not in received:
            received += raw.recv(65536)
        return received


class Occurrences:
    """How often a word has come on a socket, wherever the pieces are cut."""

    def __init__(self, raw, word):
        self.raw, self.word, self.count, self.rest = raw, word, 0, b""

    def read(self):
        text = self.rest + self.raw.recv(1 << 20)
        self.count += text.count(self.word)
        self.rest = text[-(len(self.word) - 1):]


class SlowReaderTest(ServerCase):
    STALLED = 200

    def test_L15_S30_readers_that_do_not_read_are_cut_off_and_everybody_else_goes_on(self):
        stalled = []
        self.addCleanup(lambda: [raw.close() for raw in stalled])
        query = urllib.parse.urlencode({"type": "own", "resource_id": self.resource})
        for _ in range(self.STALLED):
            raw = connect(self.server.host, self.server.port, receive_buffer=4096)
            raw.sendall(f"GET /lock/subscribe?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            stalled.append(raw)
        wait_until(lambda: self.client.metric("turnstile_streams") == self.STALLED, "all have subscribed")
        reader = Stream(self.server.host, self.server.port, "/lock/subscribe", None,
                        {"type": "own", "resource_id": self.resource})
        self.addCleanup(reader.close)
        other = self.server.client()
        lane = {"type": "own", "resource_id": self.resource, "node_id": "a"}
        rounds = [{"call": "lock", **lane}, {"call": "unlock", **lane, "error": "x" * 4000}] * 50
        failures = 0

        def all_are_cut():
            nonlocal failures
            answers = self.client.batch(*rounds)["answers"]
            self.assertEqual({a["status"] for a in answers}, {200})
            failures += 50
            # Somebody else's lock works, and the reader who reads has seen everything.
            self.hold("b", "own", client=other, resource_id=f"{self.resource}-{failures}")
            for _ in range(50):
                self.assertEqual(reader.next_of("failed")["error"], "x" * 4000)
            return self.client.metric("turnstile_streams_cut_total") >= self.STALLED
        wait_until(all_are_cut, "all that do not read are cut off")
        wait_until(lambda: self.client.metric("turnstile_streams") == 1, "only the reader is left")


if __name__ == "__main__":
    harness.main()
