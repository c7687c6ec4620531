"""What talks to the server in these tests: keep-alive calls, long polls that are answered later, event streams.

Written on sockets and http.client, as a user without our library would; nothing here knows what the answers mean.
"""
import http.client
import json
import queue
import socket
import threading
import urllib.parse

PATIENCE = 90
TLS = None  # an ssl.SSLContext: everything here speaks TLS (harness.py)
BrokenAnswer = http.client.HTTPException  # the connection ended before or within an answer


def connect(host, port, receive_buffer=None):
    """A connection as bytes go through it, with TLS where the tests run with it."""
    made = socket.socket()
    if receive_buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    made.settimeout(PATIENCE)
    try:
        made.connect((host, port))
        return TLS.wrap_socket(made) if TLS else made
    except OSError:
        made.close()
        raise


class Answer:
    """Status, headers and body of a response; answer["field"] is a field of its JSON."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode("utf-8", "replace")
        self.body = {}
        if response.headers.get("Content-Type", "").startswith("application/json") and self.text:
            self.body = json.loads(self.text)

    def __getitem__(self, name):
        return self.body[name]

    def __contains__(self, name):
        return name in self.body

    def __repr__(self):
        return f"{self.status} {self.text[:2000]}"


class Client:
    """One connection, kept open between calls. For one thread."""

    def __init__(self, host, port, timeout=PATIENCE):
        self.connection = (http.client.HTTPSConnection(host, port, timeout=timeout, context=TLS) if TLS else
                           http.client.HTTPConnection(host, port, timeout=timeout))

    def send(self, method, path, body=None, headers=None):
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        self.connection.request(method, path, body, headers or {})

    def receive(self):
        return Answer(self.connection.getresponse())

    def call(self, method, path, body=None, headers=None):
        self.send(method, path, body, headers)
        return self.receive()

    def post(self, path, **fields):
        return self.call("POST", path, fields)

    def get(self, path, **query):
        return self.call("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))

    def lock(self, resource_id, node_id, type="pull", **more):
        return self.post("/lock", type=type, resource_id=resource_id, node_id=node_id, **more)

    def unlock(self, resource_id, node_id, type="pull", **more):
        return self.post("/unlock", type=type, resource_id=resource_id, node_id=node_id, **more)

    def renew(self, resource_id, node_id, token, type="pull", **more):
        return self.post("/renew", type=type, resource_id=resource_id, node_id=node_id, token=token, **more)

    def cancel(self, resource_id, node_id, type="pull", **more):
        return self.post("/cancel", type=type, resource_id=resource_id, node_id=node_id, **more)

    def status(self, resource_id, type="pull", **more):
        return self.get("/lock/status", type=type, resource_id=resource_id, **more)

    def batch(self, *requests):
        return self.post("/batch", requests=requests)

    def metric(self, name, **labels):
        """The value of one series of /metrics."""
        wanted = "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else ""
        for line in self.get("/metrics").text.splitlines():
            series, _, value = line.rpartition(" ")
            if series == name + wanted:
                return float(value)
        raise AssertionError(f"there is no {name}{wanted}")

    def close(self):
        self.connection.close()

    def half_close(self):
        """Says that nothing more will be sent; still reads."""
        socket.socket.shutdown(self.connection.sock, socket.SHUT_WR)  # of TLS: a bare end, as most clients end

    def reset(self):
        """Ends the connection with a reset instead of an orderly close."""
        self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()


class Poll(Client):
    """A long poll: the request is sent at once, answer() waits for what comes."""

    def __init__(self, host, port, resource_id, node_id, type="pull", wait_ms=600_000, **more):
        super().__init__(host, port)
        self.resource_id = resource_id
        self.send("POST", "/lock",
                  {"type": type, "resource_id": resource_id, "node_id": node_id, "wait_ms": wait_ms, **more})

    def answer(self):
        return self.receive()


class Stream:
    """An event stream, read by a thread: next() gives one event after the other, each with its id and data."""

    def __init__(self, host, port, path, last_event_id=None, query=None, receive_buffer=None):
        self.socket = connect(host, port, receive_buffer)
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        head = f"GET {target} HTTP/1.1\r\nHost: {host}\r\n"
        if last_event_id is not None:
            head += f"Last-Event-ID: {last_event_id}\r\n"
        self.socket.sendall((head + "\r\n").encode())
        self.file = self.socket.makefile("rb")
        self.head, self.status = self._read_head()
        self.lines = []  # of the body, as they came
        self.ended_well = False  # by the last chunk, and not by a connection that broke
        self.comments = queue.Queue()
        self.events = queue.Queue()  # ends with None
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read_head(self):
        lines = []
        while (line := self.file.readline()) not in (b"\r\n", b""):
            lines.append(line.decode().rstrip())
        return lines, int(lines[0].split()[1]) if lines else 0

    def _pieces(self):
        """The body as it comes, without its chunks' frames."""
        if "Transfer-Encoding: chunked" not in self.head:
            while piece := self.file.read1():
                yield piece
            return
        while size := int(self.file.readline().split(b";")[0] or b"0", 16):
            yield self.file.read(size)
            self.file.readline()
        self.ended_well = self.file.readline() == b"\r\n"

    def _body_lines(self):
        rest = b""
        for piece in self._pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line.decode()

    def _read(self):
        event = {}
        try:
            for line in self._body_lines():
                self.lines.append(line)
                name, _, value = line.partition(":")
                if line.startswith(":"):
                    self.comments.put(line)
                elif not line and event:
                    self.events.put(event)
                    event = {}
                elif line:
                    value = value.removeprefix(" ")
                    event[name] = json.loads(value) if name == "data" else value
        except (OSError, ValueError):
            pass
        self.events.put(None)

    def next(self, timeout=PATIENCE):
        """The next event: {"id": ..., "data": {...}}. None: the stream has ended."""
        return self.events.get(timeout=timeout)

    def next_of(self, *kinds):
        """The data of the next event of one of these kinds."""
        while True:
            event = self.next()
            if event is None:
                raise AssertionError(f"the stream ended before {kinds} came")
            if event["data"]["event"] in kinds:
                return event["data"]

    def comment(self, timeout=PATIENCE):
        return self.comments.get(timeout=timeout)

    def close(self):
        try:
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
        except OSError:
            pass
        if hasattr(self, "thread"):
            self.thread.join()
        self.file.close()
        self.socket.close()


def exchange(address, data, timeout=PATIENCE, half_close=False):
    """Sends bytes as they are and reads all that comes until the server closes. Returns the bytes."""
    with socket.create_connection(address, timeout=timeout) as raw:
        try:
            raw.sendall(data)
            if half_close:
                raw.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it may have been refused before all was sent; the answer is what counts
        return read_all(raw)


def read_all(raw):
    received = b""
    try:
        while piece := raw.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def parse_answers(received):
    """Every response in a run of bytes: [(status, headers, body)]."""
    answers = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", 0))
        answers.append((int(first.split()[1]), headers, rest[:size]))
        received = rest[size:]
    return answers
