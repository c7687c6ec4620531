"""What the tests of access share: callers with secrets and certificates, and a server that knows one of each role."""
import base64
import hashlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess

import harness
from client import Client
from harness import Server, ServerCase, wait_until


def new_secret():
    return "ts_" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def entry(name, secret, role, **lists):
    lines = ["[[credential]]", f'name = "{name}"', f'secret_sha256 = "{hashlib.sha256(secret.encode()).hexdigest()}"',
             f'role = "{role}"']
    return "\n".join(lines + [f"{key} = {json.dumps(value)}" for key, value in lists.items()]) + "\n"


class As(Client):
    """A client that sends a secret, or whatever headers it is told to."""

    def __init__(self, server, secret=None, headers=None, source=None):
        super().__init__(server.host, server.port)
        server._clients.append(self)  # who closes them  # pylint: disable=protected-access
        if source:
            self.connection.source_address = (source, 0)
        self.headers = dict(headers or {})
        if secret:
            self.headers["Authorization"] = "Bearer " + secret

    def send(self, method, path, body=None, headers=None):
        super().send(method, path, body, {**self.headers, **(headers or {})})


class AccessCase(ServerCase):
    """A server that knows one of each role."""

    secrets = {name: new_secret() for name in ("node-a", "node-b", "reader", "guest", "boss")}
    more = ""

    @classmethod
    def credentials(cls):
        s = cls.secrets
        return (entry("node-a", s["node-a"], "client", nodes=["node-a", "ci-*"], resources=["a/", "shared/"]) +
                entry("node-b", s["node-b"], "client", resources=["b/", "shared/"]) +
                entry("reader", s["reader"], "read") + entry("guest", s["guest"], "read", resources=["a/"]) +
                entry("boss", s["boss"], "admin") + cls.more)

    @classmethod
    def setUpClass(cls):
        cls.file = os.path.join(harness.temporary_directory(), "credentials.toml")
        cls.write(cls.credentials())
        cls.audit = cls.file + ".audit"
        cls.server = Server("--credentials", cls.file, "--audit-log", cls.audit, *cls.flags, store="memory").start()

    @classmethod
    def write(cls, text):
        with open(cls.file + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(cls.file + ".new", cls.file)

    def setUp(self):
        self.resource = "a/" + self.id().rsplit(".", 1)[1]
        self.client = self.as_("boss")

    def as_(self, name, **more):
        made = As(self.server, self.secrets.get(name, name), **more)
        self.addCleanup(made.close)
        return made

    def audit_lines(self):
        with open(self.audit, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def reload(self, text, word="have been read again"):
        """The file with this text, SIGHUP, and the log saying so."""
        self.write(text)
        before = self.server.log().count(word)
        os.kill(self.server.pid, signal.SIGHUP)
        wait_until(lambda: self.server.log().count(word) > before, "the reload")

    def stream_as(self, name, path, last_event_id=None, **query):
        """An event stream of somebody's: the lines of it as they come, by curl's way of sending headers."""
        raw = socket.create_connection((self.server.host, self.server.port), timeout=harness.PATIENCE)
        self.addCleanup(raw.close)
        target = path + "?" + "&".join(f"{key}={value}" for key, value in query.items())
        head = f"GET {target} HTTP/1.1\r\nHost: {self.server.host}\r\nAuthorization: Bearer {self.secrets[name]}\r\n"
        if last_event_id is not None:
            head += f"Last-Event-ID: {last_event_id}\r\n"
        raw.sendall((head + "\r\n").encode())
        return raw.makefile("rb")

    @staticmethod
    def events_until(file, resource):
        """The resources of the stream's events up to the first of this one, and the last id."""
        seen, last = [], None
        for line in file:
            if line.startswith(b"id:"):
                last = line.split(b":", 1)[1].strip().decode()
            if line.startswith(b"data:"):
                seen.append(json.loads(line[5:]).get("resource_id", "reset"))
                if seen[-1] == resource:
                    return seen, last
        raise AssertionError(f"the stream ended after {seen}")


def make_certificates(directory, *names, alternatives=()):
    """A CA, and for each name a certificate with its key, as files of that name. `alternatives`: further names in it."""
    def run(*arguments):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test", "-days", "2")

    def extensions(name):
        if name not in alternatives:
            return ()
        path = os.path.join(directory, name + ".ext")
        with open(path, "w", encoding="utf-8") as file:
            file.write("subjectAltName=" + alternatives[name] + "\n")
        return ("-extfile", path)
    for name in names:
        run("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            f"{name}.crt", "-days", "2", *extensions(name))


def unverified_connection(server, *chain, source=None):
    """To a server whose certificate is not looked at. `chain`: a certificate to show, and its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if chain:
        context.load_cert_chain(*chain)
    return http.client.HTTPSConnection(server.host, server.port, timeout=harness.PATIENCE, context=context,
                                       source_address=(source, 0) if source else None)
