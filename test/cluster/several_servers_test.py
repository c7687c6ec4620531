"""Three nodes and three servers, of which one leads, or which want to know who asks.

Those that lead in turn are real ones on a real etcd: the leader is killed in the middle of a pull, and comes back later as
one that stands by. One that wants certificates is real, too; one whose secret changes is a front (test/process/fronts.py).
"""
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import types
import urllib.error
import urllib.request

from cluster_case import ROUNDS, ClusterCase, main
from fronts import Certificates, Cluster
from processes import free_port, own_address, read, wait_until
from replicated import Replicated

HALF = 4 << 20
SECRET = "ts_" + "B" * 43


def backend(cluster):
    return types.SimpleNamespace(host=own_address(), port=cluster.server_port)


class TheLeaderDies(ClusterCase):
    several = Replicated

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.cluster.several.close()

    def test_in_the_middle_of_a_pull(self):
        for number in range(2 * ROUNDS):
            self.one_round(ends_without_leader=number % 2 == 0)

    def one_round(self, ends_without_leader):
        """The download goes on while nobody leads, or ends at that time and is told to nobody at first."""
        servers = self.cluster.several
        ref, blobs = self.image(layers=2)
        layer = self.largest(blobs)
        with self.paused(layer, HALF) as pause:
            pulls = [(node, node.begin_pull(ref)) for node in self.cluster.nodes]
            pause.wait()
            leader = servers.leader()
            leader.kill()
            began = time.monotonic()
            if ends_without_leader:
                pause.set()
            servers.look_at_leader([server for server in servers.servers if server is not leader])
            took = time.monotonic() - began
            leader.start()
            pause.set()
            for node, pull in pulls:
                self.finish(node, pull)
        print(f"another leads {took:.1f} s after the death of the leader, all have it after {time.monotonic() - began:.1f} s",
              flush=True)
        self.assert_all_have(blobs)
        self.assert_fetched_once(blobs)
        self.remove_everywhere(ref)
        self.assert_nothing_left(blobs)
        servers.wait_until_in_step()


class Forwarding(Replicated):
    """Those that stand by pass on what they are asked, and each node asks one of these first."""
    flags = ("--standby", "forward")

    @property
    def urls(self):
        leader = self.leader()
        ordered = sorted(self.servers, key=lambda server: server is leader)
        return ",".join(f"http://{server.host}:{server.port}" for server in ordered)


class ThoseThatStandByPassOn(ClusterCase):
    several = Forwarding

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.cluster.several.close()

    def test_nodes_pull_and_remove_also_behind_another_leader(self):
        servers = self.cluster.several
        for is_last in (False, True):
            ref, blobs = self.image(layers=2, mebibytes=1)
            self.pull_at_once(ref)
            self.assert_all_have(blobs)
            self.assert_fetched_once(blobs)
            for node in self.cluster.nodes:
                wait_until(lambda: ready(node) == (200, "ok\n"), "it knows the leader")
            self.remove_everywhere(ref)
            self.assert_nothing_left(blobs)
            if not is_last:
                leader = servers.leader()
                leader.kill()
                servers.look_at_leader([server for server in servers.servers if server is not leader])
                leader.start()
                servers.wait_until_in_step()


def ready(node):
    address = next(line.split()[-1] for line in read(node.plugin.log).splitlines() if line.startswith("metrics on "))
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Secured:
    """A server that asks its clients for certificates and shows one of its own."""

    def __init__(self, port, certificates):
        self.urls, self.certificates = f"https://{own_address()}:{port}", certificates

    def __call__(self, cluster):
        cluster.admin = SECRET
        return self

    def flags_of(self, node):
        certificate, key = self.certificates.issue(node.name, f"DNS:{node.name}")
        return ["--ca", self.certificates.ca, "--cert", certificate, "--key", key]


class WithCertificates(ClusterCase):
    @classmethod
    def setUpClass(cls):
        directory, port = tempfile.mkdtemp(prefix="ts-"), free_port()
        cls.addClassCleanup(shutil.rmtree, directory)
        certificates = Certificates(directory)
        certificate, key = certificates.issue("server", f"IP:{own_address()}")
        credentials = os.path.join(directory, "credentials.toml")
        with open(credentials, "w", encoding="ascii") as file:
            file.write('[[certificate]]\nname = "node-*"\nrole = "client"\n\n[[credential]]\nname = "test"\nrole = "admin"\n'
                       f'secret_sha256 = "{hashlib.sha256(SECRET.encode()).hexdigest()}"\n')
        os.chmod(credentials, 0o600)
        cls.server_flags = ("--listen", f"https://{own_address()}:{port}", "--tls-cert", certificate, "--tls-key", key,
                            "--tls-client-ca", certificates.ca, "--credentials", credentials)
        cls.several = Secured(port, certificates)
        super().setUpClass()

    def test_every_blob_is_fetched_once_and_certificates_can_be_renewed(self):
        for _ in range(2):
            ref, blobs = self.image(layers=2, mebibytes=2)
            self.pull_at_once(ref)
            self.assert_all_have(blobs)
            self.assert_fetched_once(blobs)
            self.remove_everywhere(ref)
            self.assert_nothing_left(blobs)
            for node in self.cluster.nodes:
                self.cluster.several.certificates.issue(node.name, f"DNS:{node.name}")
                os.kill(node.plugin.pid, signal.SIGHUP)
            for node in self.cluster.nodes:
                wait_until(lambda: "have changed, and are used from now on" in read(node.plugin.log), "it was noticed")
        for node in self.cluster.nodes:
            self.assertEqual(ready(node), (200, "ok\n"))


class Guarded(Cluster):
    """A server that wants a credential, over loopback."""

    def __init__(self, cluster):
        super().__init__(backend(cluster), secret=SECRET, count=1)

    def flags_of(self, node):
        path = os.path.join(node.directory, "credential")
        with open(path, "w", encoding="ascii") as file:
            file.write(SECRET + "\n")
        return ["--credential-file", path]


class WithACredential(ClusterCase):
    nodes = 1
    several = Guarded

    def test_a_wrong_one_is_told_and_another_one_is_taken(self):
        node, server = self.cluster.nodes[0], self.cluster.several.fronts[0]
        ref, blobs = self.image(layers=1, mebibytes=1)
        wait_until(lambda: ready(node) == (200, "ok\n"), "it is let in")
        server.secret = "ts_" + "C" * 43
        refused = node.pull(ref, check=False)
        self.assertNotEqual(refused.returncode, 0)
        status, why = wait_until(lambda: (said := ready(node))[0] == 503 and said, "it is not ready")
        self.assertIn("does not let this node in", why)
        self.assertEqual(read(node.plugin.log).count("the lock server does not let this node in;"), 1)
        with open(os.path.join(node.directory, "credential.new"), "w", encoding="ascii") as file:
            file.write(server.secret + "\n")
        os.rename(os.path.join(node.directory, "credential.new"), os.path.join(node.directory, "credential"))
        wait_until(lambda: ready(node) == (200, "ok\n"), "it is let in again")
        node.pull(ref)
        self.assert_has(node, blobs)
        said = read(node.plugin.log) + why + refused.stderr.decode()
        self.assertNotIn(SECRET, said)
        self.assertNotIn(server.secret, said)
        self.assertNotIn(SECRET, subprocess.run(["ps", "axeww"], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
