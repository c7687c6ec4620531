"""The programs that a cluster consists of: where they are, and how one is started, watched and ended by its id."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../process"))
from passing import die_with_parent, popen_with  # noqa: E402

PROGRAMS = ("containerd", "ctr", "docker-registry", "skopeo", "umoci", "runc", "busybox")
PATIENCE = 120


def missing():
    """Why no cluster can run here, in a sentence; None: it can."""
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    if absent:
        return "not installed: " + ", ".join(absent)
    if os.geteuid() != 0:
        return "containerd needs root"
    for name in ("turnstiled", "turnstile-content"):
        if not os.access(binary(name), os.X_OK):
            return f"there is no {binary(name)}: run ./dev build"
    return None


def binary(name):
    variable = name.upper().replace("-", "_")
    return os.path.abspath(os.environ.get(variable) or os.path.join(HERE, "../../build/bin", name))


def wait_until(condition, what, timeout=PATIENCE, every=0.02):
    end = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(every)
    return value


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def own_address():
    """A loopback address that only this process uses, so that a port which was free there stays free until it is taken,
    and also between two lives of a server."""
    pid = os.getpid()
    return f"127.{1 + pid // 65536 % 250}.{pid // 256 % 256}.{1 + pid % 254}"


def free_port():
    """At own_address()."""
    with socket.socket() as probe:
        probe.bind((own_address(), 0))
        return probe.getsockname()[1]


class Process:
    """A program that runs until stop() or kill(); what it says goes to a file. `listeners`: sockets that it is given."""

    def __init__(self, command, log, listeners=()):
        self.log = log
        with open(log, "ab") as out:
            files = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            if listeners:
                self._process = popen_with(listeners, command, dict(os.environ), **files)
            else:
                self._process = subprocess.Popen(command, preexec_fn=die_with_parent, **files)
        self.pid = self._process.pid

    def alive(self):
        return self._process.poll() is None

    def stop(self, number=signal.SIGTERM):
        if self.alive():
            os.kill(self.pid, number)
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self._process.wait()
            raise AssertionError(f"did not end, see its last words:\n{read(self.log)[-2000:]}") from None

    def kill(self):
        return self.stop(signal.SIGKILL)

    def wait_until(self, condition, what):
        """Fails at once when the process has ended."""
        def reached():
            if not self.alive():
                raise AssertionError("ended at once:\n" + read(self.log)[-2000:])
            return condition()
        return wait_until(reached, f"{what}, see {self.log}")
