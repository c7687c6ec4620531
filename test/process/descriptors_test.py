"""Few file descriptors and many connections: the server keeps some for its own files, and the connections wait or are told.

The hard limit is 256 here. A new log file is forced by 64 MiB of facts, while more connections want in than fit.
"""
import os
import resource
import socket
import unittest

import harness
from harness import Server, wait_until

LIMIT = 256
CONNECTIONS = 300


class FewDescriptorsTest(unittest.TestCase):
    def setUp(self):
        self.open = []
        self.addCleanup(lambda: [raw.close() for raw in self.open])

    def server(self, limit, **options):
        server = Server("--threads", "1", "--log-level", "info", limits={resource.RLIMIT_NOFILE: limit}, **options)
        self.addCleanup(server.remove)
        return server

    def connect(self, server):
        """Connected as far as the kernel is concerned; the server may not have accepted it."""
        raw = socket.create_connection((server.host, server.port), timeout=harness.PATIENCE)
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        self.open.append(raw)
        return raw

    def status(self, raw):
        """Of the first answer."""
        received = b""
        while b"\r\n" not in received:
            piece = raw.recv(65536)
            self.assertTrue(piece, "the connection was closed without a word")
            received += piece
        return int(received.split()[1])

    def fill_a_log_file(self, client, server):
        lane = {"type": "own", "node_id": "a", "resource_id": "r"}
        calls = [{"call": "lock", "info": "x" * 4000, **lane}, {"call": "unlock", **lane}] * 230
        before = server.log_files()
        wait_until(lambda: self.batch(client, calls) and server.log_files() != before, "a new log file", every=0)

    def batch(self, client, calls):
        answer = client.batch(*calls)
        self.assertEqual(answer.status, 200, answer)
        return True

    def cpu_seconds(self, server):
        with open(f"/proc/{server.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_section_9_connections_never_take_the_descriptors_of_the_journal(self):
        server = self.server(LIMIT).start()
        client = server.client()
        self.assertEqual(client.get("/healthz").status, 200)
        # The alert looks at this: it is what fits and not what was set.
        self.assertLess(client.metric("turnstile_limit", limit="max-connections"), LIMIT)
        everyone = [self.connect(server) for _ in range(CONNECTIONS)]
        self.assertEqual(self.status(everyone[0]), 200)
        self.fill_a_log_file(client, server)
        self.assertTrue(server.alive(), server.log())

        # Those that came first are served, the next ones are told, the others wait and burn nothing.
        before = self.cpu_seconds(server)
        answered = [200] + [self.status(raw) for raw in everyone[1:100]]
        self.assertEqual(set(answered), {200})
        wait_until(lambda: client.metric("turnstile_connections") < LIMIT, "connections that fit")
        rest = everyone[100:]
        for raw in everyone[:100]:
            raw.close()
        statuses = []
        for raw in rest:
            statuses.append(self.status(raw))
            raw.close()
        self.assertEqual(set(statuses), {200, 429})
        self.assertLess(self.cpu_seconds(server) - before, 5, "it looked for room all the time")
        self.assertEqual(client.get("/healthz").status, 200)
        self.assertIn("fewer connections than max-connections fit", server.log())

    def test_section_9_a_limit_without_room_for_a_connection_is_told_at_the_start(self):
        server = self.server(64, store="memory")
        with self.assertRaisesRegex(AssertionError, r"exit code 2(.|\n)*limit of open files is 64"):
            server.start()

    def test_section_9_no_warning_where_all_connections_fit(self):
        server = self.server(LIMIT, store="memory")
        server.flags += ["--max-connections", "50"]
        server.start()
        self.assertNotIn("fewer connections", server.log())


if __name__ == "__main__":
    harness.main()
