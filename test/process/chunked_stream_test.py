"""How an event stream looks to a plain HTTP client: chunked for HTTP/1.1, as it comes for HTTP/1.0."""

import harness
from client import connect, read_all
from harness import ServerCase


class ChunkedStreamTest(ServerCase):
    def open(self, version):
        raw = connect(self.server.host, self.server.port)
        self.addCleanup(raw.close)
        raw.sendall(f"GET /lock/subscribe?type=pull&resource_id={self.resource} {version}\r\nHost: x\r\n\r\n".encode())
        # Another loop may carry out what comes after it, so what is to be told of must not come before it is open.
        received = b""
        while b"\n\n" not in received:
            received += raw.recv(65536)
        return raw, received

    def test_S27_a_client_of_HTTP_1_1_gets_each_event_as_a_chunk_at_once(self):
        # http.client is what Python's libraries are built on. One that asks for a block of bytes (iter_lines() of
        # requests does) gets what is there only if the answer is chunked.
        connection = self.server.client().connection
        self.addCleanup(connection.close)
        connection.request("GET", f"/lock/subscribe?type=pull&resource_id={self.resource}")
        response = connection.getresponse()
        self.assertEqual((response.getheader("Transfer-Encoding"), response.chunked), ("chunked", True))
        self.assertTrue(response.readline().startswith(b":"))
        for number in range(3):
            self.hold("a")
            self.unlock("a", error=f"no {number}")
            lines = []
            while not any(b'"failed"' in line for line in lines):
                lines.append(response.readline())
            self.assertIn(f'"no {number}"'.encode(), lines[-1])

    def test_S27_a_chunk_is_whole_events(self):
        raw, received = self.open("HTTP/1.1")
        self.hold("a")
        self.unlock("a", error="x" * 3000)
        while b'"failed"' not in received or not received.endswith((b"\n\n", b"\n\n\r\n")):
            received += raw.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        self.assertIn(b"\r\nTransfer-Encoding: chunked", head)
        while not body.endswith(b"\r\n"):  # a write may have ended between the event and the end of its chunk
            body += raw.recv(65536)
        while body:
            size, _, body = body.partition(b"\r\n")
            size = int(size, 16)
            self.assertTrue(body[:size].endswith(b"\n\n"), body[:size])
            self.assertEqual(body[size:size + 2], b"\r\n")
            body = body[size + 2:]

    def test_S27_a_client_of_HTTP_1_0_gets_no_chunks(self):
        raw, received = self.open("HTTP/1.0")
        self.hold("a")
        while b'"granted"' not in received or not received.endswith(b"\n\n"):
            received += raw.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        self.assertNotIn(b"Transfer-Encoding", head)
        self.assertTrue(body.startswith(b":"), body)
        self.assertNotIn(b"\r", body)

    def test_S27_a_server_that_stops_ends_its_streams_in_order(self):
        server = self.own_server()
        stream = server.stream("/events")
        stream.comment()
        raw = connect(server.host, server.port)
        self.addCleanup(raw.close)
        raw.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        received = raw.recv(65536)
        self.assertEqual(server.stop(), 0)
        self.assertTrue((received + read_all(raw)).endswith(b"\n\n\r\n0\r\n\r\n"))
        self.assertIsNone(stream.next())
        self.assertTrue(stream.ended_well)


if __name__ == "__main__":
    harness.main()
