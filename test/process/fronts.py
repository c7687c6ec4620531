"""Several servers as their clients see them: fronts of one real turnstiled, of which one leads.

The others send their callers to it (307 `not_leader`) or say that there is none (503 `no_leader`), as standbys do; each can
be killed, hang, speak TLS and want a credential or a certificate. What is behind them keeps its state over a hand-over,
as a store in etcd does.
"""
import contextlib
import http.client
import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import threading

from harness import PATIENCE


class Certificates:
    """A CA and what it signs, in files."""

    def __init__(self, directory):
        self.directory = directory
        self.ca = self._path("ca.pem")
        self._key("ca")
        self._openssl("req", "-x509", "-new", "-key", self._path("ca.key"), "-subj", "/CN=a CA for tests", "-days", "2",
                      "-out", self.ca)

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=PATIENCE)

    def _key(self, name):
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self._path(name + ".key"))

    def issue(self, name, alternatives):
        """A certificate for `alternatives` ("IP:127.0.0.1,DNS:localhost"): its path, and its key's."""
        self._key(name)
        self._openssl("req", "-new", "-key", self._path(name + ".key"), "-subj", f"/CN={name}", "-out",
                      self._path(name + ".csr"))
        with open(self._path(name + ".ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={alternatives}\n")
        self._openssl("x509", "-req", "-in", self._path(name + ".csr"), "-CA", self.ca, "-CAkey", self._path("ca.key"),
                      "-CAcreateserial", "-days", "2", "-extfile", self._path(name + ".ext"), "-out",
                      self._path(name + ".pem"))
        return self._path(name + ".pem"), self._path(name + ".key")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=()):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.do_POST()

    def do_POST(self):
        front, body = self.server.front, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        front.hung.wait()
        front.asked += 1
        cluster = front.cluster
        if front.secret and self.headers.get("Authorization") != f"Bearer {front.secret}":
            return self.answer(401, {"error": "the credential is not known", "code": "unauthorized"},
                               [("WWW-Authenticate", 'Bearer realm="turnstile"')])
        leader = cluster.leader
        if self.path == "/servers":
            return self.answer(200, cluster.servers(front))
        if leader is front or self.path in ("/version", "/metrics"):
            return self.pass_on(front, body)
        if leader is None:
            return self.answer(503, {"error": "no server leads at the moment", "code": "no_leader"}, [("Retry-After", "1")])
        return self.answer(307, {"error": "another server leads", "code": "not_leader", "leader": leader.url},
                           [("Location", leader.url + self.path)])

    def pass_on(self, front, body):
        backend = http.client.HTTPConnection(*front.cluster.backend)
        backend.connect()
        front.watch(backend.sock)
        kept = {n: v for n, v in self.headers.items() if n in ("Content-Type", "Last-Event-ID", "Accept")}
        backend.request(self.command, self.path, body or None, kept)
        response = backend.getresponse()
        if response.headers.get("Content-Type", "").startswith("text/event-stream"):
            self.close_connection = True
            self.send_response(response.status)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            while some := response.read1(65536):
                self.wfile.write(some)
                self.wfile.flush()
        else:
            text = response.read()
            self.send_response(response.status)
            self.send_header("Content-Type", response.headers["Content-Type"])
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        backend.close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def finish_request(self, request, client_address):
        if self.front.tls:
            request = self.front.tls.wrap_socket(request, server_side=True)
        self.front.watch(request)
        with request:
            super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # a client that has gone, a handshake that was refused, a front that was killed


class Front:
    def __init__(self, cluster, name, host, tls=None, secret=None):
        self.cluster, self.name, self.host, self.tls, self.secret = cluster, name, host, tls, secret
        self.port, self.asked = 0, 0
        self.hung = threading.Event()
        self.hung.set()
        self._sockets, self._lock = set(), threading.Lock()
        self._server = None
        self.revive()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def watch(self, sock):
        with self._lock:
            self._sockets = {s for s in self._sockets if s.fileno() >= 0} | {sock}

    def revive(self):
        self._server = _Server((self.host, self.port), _Handler)
        self._server.front = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def kill(self):
        """As kill -9 does: whoever is connected is reset, whoever comes is refused."""
        self._server.shutdown()
        self._server.server_close()
        self.drop()

    def drop(self):
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.shutdown(socket.SHUT_RDWR)

    def hang(self):
        """As SIGSTOP does: connections stay, and nothing is answered."""
        self.hung.clear()


class Cluster:
    """Three fronts of a Server (harness.py). `leader`: one of them, or none."""

    def __init__(self, server, tls=None, secret=None, count=3):
        self.backend = (server.host, server.port)
        self.term = 1
        self.full = False  # etcd
        self.fronts = [Front(self, f"server-{i}", server.host, tls, secret) for i in range(count)]
        self.leader = self.fronts[0]

    @property
    def urls(self):
        return ",".join(front.url for front in self.fronts)

    def flags_of(self, _node):
        """What a plugin (test/cluster) has to be told more."""
        return []

    def lead(self, front):
        """The streams and long polls of the one that led end, as a server's do that steps down."""
        before, self.leader = self.leader, front
        self.term += 1
        if before is not None:
            before.drop()

    def servers(self, front):
        leader = self.leader.url if self.leader else None
        role = "leader" if self.leader is front else "standby"
        return {"mode": "replicated", "role": role, "name": front.name, "url": front.url, "leader": leader,
                "term": self.term,
                "servers": [{"name": f.name, "url": f.url, "role": "leader" if f is self.leader else "standby",
                             "lag_batches": 0, "since": "2026-11-18T00:00:00Z"} for f in self.fronts],
                "etcd": {"members": [{"url": "http://127.0.0.1:2379", "healthy": True, "version": "3.4.23",
                                      "db_bytes": 20480, "leader": True, "no_space": self.full}], "errors": 0, "commit_ms_p50": 2.5}}

    def close(self):
        for front in self.fronts:
            front.hung.set()
            front.kill()


def server_tls(certificate, key, client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
