"""A real turnstiled for tests: started on a port of its own, stopped by its process id, restarted on its data.

Every test of this folder goes through here, so that the promises about processes are kept in one place: a server
listens on port 0 of a loopback address that no other test run uses (so that a restart gets the same port back whatever
runs beside it), is ended by its id, and its files are removed. Nothing here sleeps for a fixed time; wait_until() waits
for a condition, with a limit that a busy machine does not reach.
"""
import atexit
import ctypes
import os
import resource
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import client as wire
from client import Client, Poll, Stream

PATIENCE = 90  # seconds that anything may take; only a broken server takes that long
SKIPPED = 77  # exit code where a test was skipped: nobody is to take it for one that passed
HERE = os.path.dirname(os.path.abspath(__file__))
# A test is not to fail because its machine stands still for ten seconds, so what runs out does so much later, unless
# running out is what the test is about.
PATIENT = {"--claim-timeout": "10m", "--bond-grace": "10m", "--retain-permanent-failure": "10m",
           "--retain-released": "10m", "--retain-completed": "30m"}
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_running = []
_directories = []
_tls_flags = []


def binary():
    """The server under test: TURNSTILED, or what ./dev build has made."""
    path = os.environ.get("TURNSTILED") or os.path.join(HERE, "../../build/bin/turnstiled")
    if not os.access(path, os.X_OK):
        sys.exit(f"there is no server at {path}: set TURNSTILED, or run ./dev build")
    return os.path.abspath(path)


def tls_files():
    """The flags of a server that speaks TLS, with certificates of this run's own; clients then speak it, too."""
    directory = temporary_directory()
    names = {name: os.path.join(directory, name) for name in ("server.crt", "server.key")}
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=turnstile test", "-keyout", names["server.key"], "-out", names["server.crt"]],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wire.TLS = ssl.create_default_context(cafile=names["server.crt"])
    wire.TLS.check_hostname = False  # every run has an address of its own
    return ["--tls-cert", names["server.crt"], "--tls-key", names["server.key"]]


def wait_until(condition, what="a condition", timeout=PATIENCE, every=0.01):
    """The first true value of condition(), however long the machine takes for it."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(every)


def temporary_directory():
    path = tempfile.mkdtemp(prefix="turnstile-")
    _directories.append(path)
    return path


def allow_many_files():
    """As many sockets as the system lets this process, and the servers that it starts, have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def memory_counts():
    """Whether the server's memory says something about it: a sanitizer keeps what was freed for a while."""
    with open(binary(), "rb") as file:
        program = file.read()
    return b"__asan_init" not in program and b"__tsan_init" not in program


def plain_environment(**changes):
    """The environment without what a developer may have set for a server of his own."""
    foreign = ("PORT", "ALLOW_MULTI_NODE_DOWNLOAD", "UPDATE_REQUIRES_NO_REF")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TURNSTILE_") and k not in foreign}
    return {**kept, **changes}


def preload(source, **environment):
    """A library of this folder's between the server and the system, as environment variables."""
    library = os.path.join(temporary_directory(), "preload.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(HERE, source), "-ldl"], check=True)
    return {"LD_PRELOAD": library, "ASAN_OPTIONS": "verify_asan_link_order=0", **environment}


def end_with_parent():
    """Before an exec: should this test be killed, what it has started goes with it."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def note_running(process):
    """To be ended when the test does, whatever happens."""
    _running.append(process)


class Server:
    """One turnstiled and its data directory, over several lives of the process."""

    def __init__(self, *flags, store="file", environment=None, limits=None, ignore_signals=()):
        self.flags = list(flags)
        for flag, value in PATIENT.items():
            if flag not in flags:
                self.flags += [flag, value]
        # What raw requests of these tests call the server.
        self.flags += ["--host", "x"]
        # All of these tests with several loops: TEST_THREADS=4 ./dev test process
        if os.environ.get("TEST_THREADS") and "--threads" not in flags:
            self.flags += ["--threads", os.environ["TEST_THREADS"]]
        # ... and with TLS: TEST_TLS=1 ./dev test process
        if os.environ.get("TEST_TLS") and "--tls-cert" not in flags:
            self.flags += _tls_flags or _tls_flags.extend(tls_files()) or _tls_flags
        self.environment = environment or {}
        self.limits = limits or {}
        self.ignore_signals = ignore_signals
        self.directory = temporary_directory()
        self.data = os.path.join(self.directory, "data")
        self.store = f"file:{self.data}" if store == "file" else store
        pid = os.getpid()
        self.host = f"127.{1 + pid // 65536 % 250}.{pid // 256 % 256}.{1 + pid % 254}"
        self.port = 0
        self.addresses = []
        self.process = None
        self.pid = None
        self._log_path = os.path.join(self.directory, "log")
        self._clients = []

    def start(self):
        """Returns when it listens."""
        command = [binary(), "--listen", f"{self.host}:{self.port}", "--store", self.store, *self.flags]
        with open(self._log_path, "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=self.directory,
                env=plain_environment(**self.environment), preexec_fn=self._before_exec, bufsize=0)
        _running.append(self.process)
        self.addresses = []
        wanted = 1 + self.flags.count("--listen")
        while len(self.addresses) < wanted:
            line = self.process.stdout.readline().decode()
            if not line:
                code = self.process.wait()
                raise AssertionError(f"the server did not start (exit code {code}):\n{self.log()}")
            if line.startswith("listening on "):
                self.addresses.append(line[len("listening on "):].strip())
        self.port = int(self.addresses[0].rsplit(":", 1)[1])
        self.pid = self.process.pid
        return self

    def _before_exec(self):
        end_with_parent()
        for what, value in self.limits.items():
            resource.setrlimit(what, (value, value))
        for number in self.ignore_signals:
            signal.signal(number, signal.SIG_IGN)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """kill -9, and the end of the process."""
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
        return self._ended()

    def stop(self, number=signal.SIGTERM):
        """Asks it to end. Returns its exit code."""
        os.kill(self.pid, number)
        return self._ended()

    def wait_for_end(self):
        """Returns the exit code of a server that ends by itself."""
        return self._ended()

    def _ended(self):
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not end:\n{self.log()}") from None
        self.process.stdout.close()
        if self.process in _running:
            _running.remove(self.process)
        self._expect_no_report()
        return code

    def _expect_no_report(self):
        """Of a sanitizer, in a build with one: it may have reported and gone on."""
        log = self.log()
        if "Sanitizer" in log or "runtime error: " in log:
            raise AssertionError(f"the sanitizer has found something:\n{log}")

    def restart(self):
        """After kill() or stop(): the same data, the same port."""
        return self.start()

    def kill_and_restart(self):
        self.kill()
        return self.restart()

    def log(self):
        with open(self._log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def resident_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        raise AssertionError("no VmRSS")

    def log_files(self):
        """The journal's log segments, oldest first."""
        return sorted(os.path.join(self.data, name) for name in os.listdir(self.data) if name.startswith("log-"))

    def client(self):
        """A connection of its own, closed with the server at the latest."""
        made = Client(self.host, self.port)
        self._clients.append(made)
        return made

    def poll(self, resource_id, node_id, **fields):
        """A /lock with wait_ms on a connection of its own, answered later."""
        made = Poll(self.host, self.port, resource_id, node_id, **fields)
        self._clients.append(made)
        return made

    def stream(self, path="/lock/subscribe", last_event_id=None, **query):
        """An event stream, read by a thread of its own."""
        made = Stream(self.host, self.port, path, last_event_id, query)
        self._clients.append(made)
        return made

    def close_clients(self):
        for client in self._clients:
            client.close()
        self._clients.clear()

    def remove(self):
        self.close_clients()
        try:
            if self.alive():
                # Only a process that ends by itself says which of its lines have run (./dev coverage).
                end = self.stop if os.environ.get("TEST_COVERAGE") else self.kill
                end()
            elif os.path.exists(self._log_path):  # it ended by itself, and was not removed before
                self._expect_no_report()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)


class ServerCase(unittest.TestCase):
    """Tests that share one server, each on resources of its own. A class says its flags."""

    flags = ()
    store = "file"
    server = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.flags, store=cls.store).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.remove()

    def setUp(self):
        self.resource = self.id().rsplit(".", 1)[1]
        self.client = self.server.client()

    def tearDown(self):
        self.server.close_clients()
        self.assertTrue(self.server.alive(), "the server has ended:\n" + self.server.log())

    def own_server(self, *flags, **options):
        """A server for this test alone."""
        server = Server(*flags, **options)
        self.addCleanup(server.remove)
        return server.start()

    def race(self, scenario, tries=5):
        """Runs what is right only if the machine does not stall meanwhile: scenario(i) returns whether all went well.
        A stall spoils one try; a broken rule spoils all."""
        if not any(scenario(i) for i in range(tries)):
            self.fail(f"never in {tries} tries")

    # What nearly every test says, short.

    def lock(self, node, type="pull", resource_id=None, client=None, **more):
        return (client or self.client).lock(resource_id or self.resource, node, type=type, **more)

    def unlock(self, node, type="pull", resource_id=None, client=None, **more):
        return (client or self.client).unlock(resource_id or self.resource, node, type=type, **more)

    def status(self, type="pull", resource_id=None, client=None, **more):
        return (client or self.client).status(resource_id or self.resource, type=type, **more)

    def hold(self, node, type="pull", **more):
        """A lock that must be granted at once. Returns the token."""
        answer = self.lock(node, type, **more)
        self.assertEqual((answer.status, answer["state"]), (200, "acquired"), answer.body)
        return answer["token"]

    def queue(self, node, type="pull", **more):
        """A lock that must be queued. Returns the position."""
        answer = self.lock(node, type, **more)
        self.assertEqual((answer.status, answer["state"]), (200, "queued"), answer.body)
        return answer["position"]

    def poll(self, node, type="pull", wait_ms=600_000, server=None, **more):
        """A long poll that is known to be in the queue."""
        server = server or self.server
        poll = server.poll(more.pop("resource_id", self.resource), node, type=type, wait_ms=wait_ms, **more)
        wait_until(lambda: node in self.queued(type, poll.resource_id, server), f"{node} in the queue")
        return poll

    def queued(self, type="pull", resource_id=None, server=None):
        client = server.client() if server and server is not self.server else self.client
        return [waiter["node_id"] for waiter in self.status(type, resource_id, client=client)["queue"]]

    def holder(self, type="pull", resource_id=None, client=None):
        return self.status(type, resource_id, client=client).body.get("holder", {}).get("node_id")

    def assert_refused(self, answer, status, code):
        self.assertEqual((answer.status, answer.body.get("code")), (status, code), answer.body)
        self.assertTrue(answer["error"])


@atexit.register
def _clean_up():
    for process in list(_running):
        if process.poll() is None:
            process.kill()
            process.wait()
    for path in _directories:
        shutil.rmtree(path, ignore_errors=True)


def main():
    """python3 FILE [path of turnstiled] [TestCase.test]... Exit code 0: all passed; 77: all but what was skipped."""
    if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]) and os.access(sys.argv[1], os.X_OK):
        os.environ["TURNSTILED"] = sys.argv.pop(1)
    binary()
    allow_many_files()
    result = unittest.main(module="__main__", verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
