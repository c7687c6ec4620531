"""What the tests of the program `turnstile` share: how it is run, its exit codes, a terminal for it."""
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

import harness
from harness import PATIENCE, ServerCase

OK, UNEXPECTED, USAGE, SKIPPED, BUSY, REFUSED, LOST, UNAVAILABLE, UNAUTHENTICATED = 0, 1, 2, 10, 11, 12, 13, 14, 15


def program():
    path = os.environ.get("TURNSTILE_CLI") or os.path.join(harness.HERE, "../../build/bin/turnstile")
    if not os.access(path, os.X_OK):
        sys.exit(f"there is no program at {path}: set TURNSTILE_CLI, or run ./dev build")
    return os.path.abspath(path)


def start(*arguments, url=None, node=None, shell=None, **options):
    environment = {} if url is None else {"TURNSTILE_SERVER": url}
    if node:
        environment["TURNSTILE_NODE"] = node
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
               "env": harness.plain_environment(**environment), **options}
    return subprocess.Popen([*(shell or [program()]), *arguments], **options)


def run(*arguments, **options):
    process = start(*arguments, **options)
    out, error = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def read_lines(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


class Terminal:
    """A pseudo-terminal that is the controlling one of the program that gets its options()."""

    def __init__(self, case, columns=80, rows=24):
        self.main, self.side = pty.openpty()
        case.addCleanup(os.close, self.main)
        case.addCleanup(os.close, self.side)
        self.seen = b""
        self.resize(columns, rows)

    def resize(self, columns, rows):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def options(self):
        def become_its_session():
            os.setsid()
            fcntl.ioctl(self.side, termios.TIOCSCTTY, 0)
        return {"stdin": self.side, "stdout": self.side, "stderr": self.side, "preexec_fn": become_its_session}

    def type(self, text):
        os.write(self.main, text)

    def wait_for(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            if not select.select([self.main], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text} was not written: {self.seen}")
            self.seen += os.read(self.main, 65536)

    def is_as_usual(self):
        modes = termios.tcgetattr(self.main)[3]
        return bool(modes & termios.ICANON) and bool(modes & termios.ECHO)


class CliCase(ServerCase):
    store = "memory"

    def setUp(self):
        super().setUp()
        self.url = f"http://{self.server.host}:{self.server.port}"
        self.directory = harness.temporary_directory()
        self.log = os.path.join(self.directory, "log")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        super().tearDown()

    def turnstile(self, *arguments, node="a", url=None):
        return run(*arguments, url=url or self.url, node=node)

    def begin(self, *arguments, node="a", url=None, **options):
        process = start(*arguments, url=url or self.url, node=node, **options)
        self.started.append(process)
        return process

    def json(self, *arguments, **options):
        done = self.turnstile(*arguments, "--output", "json", **options)
        self.assertEqual((done.returncode, done.stderr), (OK, ""), done)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def text(self, *arguments, **options):
        done = self.turnstile(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (OK, ""), done)
        return done.stdout

    def assert_fault(self, done, code, *words):
        self.assertEqual((done.returncode, done.stdout), (code, ""), done)
        self.assertRegex(done.stderr, r"\Aturnstile: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, done.stderr)
