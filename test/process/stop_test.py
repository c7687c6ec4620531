"""What connections are besides requests, when they or the server end at an awkward moment."""
import json
import signal
import socket

import harness
from client import connect
from harness import ServerCase, wait_until


def request(path, **fields):
    body = json.dumps(fields)
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class Case(ServerCase):
    def raw(self, server):
        made = connect(server.host, server.port)
        self.addCleanup(made.close)
        return made

    def half_a_request(self, server):
        """Keeps a server that stops waiting for the rest of it, for some seconds."""
        self.raw(server).sendall(b"POST /lock HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")


class StopTest(Case):
    def test_a_grant_during_the_stop_finds_its_poll_answered_already(self):
        server = self.own_server()
        self.hold("a", "own", client=server.client(), lease_ms=1000)
        self.poll("b", "own", server=server)
        self.half_a_request(server)
        self.assertEqual(server.stop(signal.SIGTERM), 0, server.log())
        # Its place in the queue is kept, so it is granted in the next life, and nobody claims it there.
        client = server.restart().client()
        wait_until(lambda: self.holder("own", client=client) == "b" or "b" in self.queued("own", server=server))

    def test_S21_a_monitored_hold_survives_a_stop_whatever_its_connection_does(self):
        server = self.own_server("--bond-grace", "1s")
        bonded = self.raw(server)
        bonded.sendall(request("/lock", type="own", resource_id="x", node_id="n", monitor=True))
        self.assertIn(b'"acquired":true', bonded.recv(65536))
        self.hold("other", "own", client=server.client())
        bonded.sendall(request("/lock", type="own", resource_id=self.resource, node_id="n", wait_ms=60_000))
        wait_until(lambda: "n" in self.queued("own", server=server), "the poll is open")
        self.half_a_request(server)
        self.assertEqual(server.stop(), 0)
        server.flags[server.flags.index("--bond-grace") + 1] = "10m"
        self.assertEqual(self.holder("own", resource_id="x", client=server.restart().client()), "n")


class GoneTest(Case):
    def test_who_closes_during_a_walk_leaves_no_connection_behind(self):
        server = self.own_server(store="memory")
        client = server.client()
        for part in range(20):
            client.batch(*[{"call": "lock", "type": "own", "resource_id": f"{part}-{k}", "node_id": "n"}
                           for k in range(1000)])
        for how in ("close", "half-close"):
            for _ in range(20):
                raw = self.raw(server)
                raw.sendall(b"GET /locks?state=waiting HTTP/1.1\r\nHost: x\r\n\r\n")
                if how == "close":
                    raw.close()
                    continue
                socket.socket.shutdown(raw, socket.SHUT_WR)
                self.assertIn(b'"locks":[]', raw.recv(65536))
        wait_until(lambda: client.metric("turnstile_connections") == 1, "only this connection is left")

    def test_two_polls_in_one_pipeline_each_get_their_answer(self):
        server = self.own_server(store="memory")
        client = server.client()
        for resource in ("one", "two"):
            self.hold("a", "own", resource_id=resource, client=client)
        raw = self.raw(server)
        raw.sendall(request("/lock", type="own", resource_id="one", node_id="b", wait_ms=60_000)
                    + request("/lock", type="own", resource_id="two", node_id="b", wait_ms=500))
        wait_until(lambda: self.queued("own", "one", server=server) == ["b"])
        self.unlock("a", "own", resource_id="one", client=client)
        text = b""
        while text.count(b'"state"') < 2:
            text += raw.recv(65536)
        self.assertIn(b'"state":"queued"', text)
        raw.close()
        # A time-out is an orderly end: the place is kept, and the next grant finds nobody, so it must be claimed.
        self.assertEqual(self.queued("own", "two", server=server), ["b"])


if __name__ == "__main__":
    harness.main()
