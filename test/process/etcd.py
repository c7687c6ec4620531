"""A real etcd for tests: one member or three on loopback, each ended by its process id.

Like the servers of harness.py, members listen on a loopback address that no other test run uses, so that a member that
was killed gets its port back. Fsync is left to etcd: what is killed here is processes, never the machine.
"""
import json
import os
import shutil
import signal
import subprocess

import harness
from harness import wait_until

FIRST_PORT = 2379


class Etcd:
    """Some members, and how to end, stop and start each of them."""

    def __init__(self, members=3, *flags, host=None, enter=lambda: None, hosts=None, enter_member=None,
                 scheme="http"):
        """`enter`: puts a new process where it belongs, such as a network namespace. `hosts`, `enter_member(i)`: each member
        has an address, and such a place, of its own."""
        pid = os.getpid()
        self.enter, self.scheme = enter, scheme
        self.enter_member = enter_member or (lambda _: enter())
        self.host = host or f"127.{1 + pid // 65536 % 250}.{pid // 256 % 256}.{1 + pid % 254}"
        self.hosts = hosts or [self.host] * members
        self.directory = harness.temporary_directory()
        self.flags = flags
        self.ports = [FIRST_PORT + 2 * i for i in range(members)]
        self.processes = [None] * members

    def start(self):
        for i in range(len(self.ports)):
            self.start_member(i)
        wait_until(self.healthy, "etcd answers")
        return self

    def store(self, prefix):
        return f"etcd://{self._endpoints()}/{prefix}"

    def _endpoints(self):
        return ",".join(f"{host}:{port}" for host, port in zip(self.hosts, self.ports))

    def start_member(self, i):
        url = lambda port, i=i: f"http://{self.hosts[i]}:{port}"
        client = f"{self.scheme}://{self.hosts[i]}:{self.ports[i]}"
        command = ["etcd", "--name", f"m{i}", "--data-dir", os.path.join(self.directory, f"m{i}"),
                   "--listen-client-urls", client, "--advertise-client-urls", client,
                   "--listen-peer-urls", url(self.ports[i] + 1), "--initial-advertise-peer-urls", url(self.ports[i] + 1),
                   "--initial-cluster", ",".join(f"m{n}={url(port + 1, n)}" for n, port in enumerate(self.ports)),
                   "--initial-cluster-token", str(os.getpid()), "--log-level", "error", *self.flags]
        with open(os.path.join(self.directory, f"m{i}.log"), "ab") as log:
            self.processes[i] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                 preexec_fn=lambda: self._before_exec(i))
        harness.note_running(self.processes[i])

    def _before_exec(self, i):
        harness.end_with_parent()
        self.enter_member(i)

    def kill_member(self, i):
        process = self.processes[i]
        if process and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def stop_member(self, i):
        self.processes[i].send_signal(signal.SIGSTOP)

    def continue_member(self, i):
        self.processes[i].send_signal(signal.SIGCONT)

    def control(self, *words, check=True):
        """etcdctl's output."""
        return subprocess.run(["etcdctl", "--endpoints", self._endpoints(), *words], env={**os.environ, "ETCDCTL_API": "3"},
                              check=check, capture_output=True, text=True, timeout=harness.PATIENCE, preexec_fn=self.enter).stdout

    def healthy(self):
        try:
            return len(self.statuses()) == len(self.ports)
        except (subprocess.CalledProcessError, json.JSONDecodeError):
            return False

    def statuses(self):
        return json.loads(self.control("endpoint", "status", "-w", "json", "--command-timeout=2s"))

    def leader(self):
        """Which member leads."""
        for status in self.statuses():
            if status["Status"].get("leader") == status["Status"]["header"]["member_id"]:
                return self.ports.index(int(status["Endpoint"].rsplit(":", 1)[1]))
        raise AssertionError("etcd has no leader")

    def remove(self):
        for i in range(len(self.ports)):
            self.kill_member(i)
        shutil.rmtree(self.directory, ignore_errors=True)
