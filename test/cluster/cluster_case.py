"""What the tests of this folder share: a cluster for each class, images to pull, and what must be so afterwards.

TURNSTILE_ROUNDS=10 makes ten times the rounds that CI does. Exit code 77: a test was skipped, or a cluster cannot run here.
"""
import contextlib
import hashlib
import os
import shutil
import sys
import threading
import unittest

from cluster import Cluster
from processes import missing, read, wait_until

SKIPPED = 77
ROUNDS = int(os.environ.get("TURNSTILE_ROUNDS", "1"))


class ClusterCase(unittest.TestCase):
    nodes = 3
    shared = "plain"
    flags = server_flags = ()
    containerd_config = ""
    cri = False    # what kubelet talks to: node.cri()
    links = False  # to the server, which can be cut: node.link
    several = None  # makes of the cluster what its nodes ask instead: self.cluster.several
    cluster = None

    @classmethod
    def setUpClass(cls):
        if cls.shared == "mergerfs" and not (shutil.which("mergerfs") and os.path.exists("/dev/fuse")):
            raise unittest.SkipTest("mergerfs cannot run here")
        cls.cluster = Cluster(cls.nodes, cls.shared, cls.flags, containerd_config=cls.containerd_config,
                              server_flags=cls.server_flags, links=cls.links, cri=cls.cri,
                              several=cls.several)
        cls.seed = 0

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def image(self, **more):
        """A new one for each test and round."""
        type(self).seed += 1
        self.cluster.proxy.forget()
        return self.cluster.make_image(seed=self.seed, **more)

    @staticmethod
    def largest(blobs):
        return max(blobs, key=blobs.get)

    def pull_at_once(self, ref):
        for node, pull in [(node, node.begin_pull(ref)) for node in self.cluster.nodes]:
            self.finish(node, pull)

    def finish(self, node, pull):
        said = pull.communicate(timeout=120)[0].decode()
        self.assertEqual(pull.returncode, 0, f"{node.name}: {said[-2000:]}\n{read(node.plugin.log)[-3000:]}")

    @contextlib.contextmanager
    def paused(self, digest, at):
        """A download of this blob stops after `at` bytes; ends when the block does, or earlier by .set()."""
        proxy, path, go_on = self.cluster.proxy, f"/v2/test/img/blobs/{digest}", threading.Event()
        proxy.pause_at[path] = (at, go_on)
        try:
            yield Pause(proxy, path, go_on)
        finally:
            proxy.pause_at.pop(path, None)
            go_on.set()

    def assert_has(self, node, blobs):
        self.assertLessEqual(set(blobs), node.blobs(), node.name)
        for digest in blobs:
            self.assertEqual(node.sha256_of(digest), digest, node.name)

    def assert_all_have(self, blobs):
        for node in self.cluster.nodes:
            self.assert_has(node, blobs)

    def assert_fetched_once(self, blobs):
        gets = self.cluster.proxy.blob_gets()
        self.assertEqual({digest: gets[digest] for digest in blobs}, {digest: 1 for digest in blobs})
        self.assertEqual({digest: self.cluster.registry_gets(digest) for digest in blobs},
                         {digest: 1 for digest in blobs}, "as the registry's own log tells")

    def assert_files_are_what_they_are_called(self):
        for path in self.cluster.all_files():
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:  # it may be removed at this moment
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), os.path.basename(path))

    def assert_nothing_left(self, blobs):
        """No file, nothing begun, and nobody who is said to use one of them."""
        for digest in blobs:
            wait_until(lambda: not self.cluster.references(digest), f"nobody uses {digest}")
            wait_until(lambda: not self.cluster.files_of(digest), f"the files of {digest} are gone")
        for node in self.cluster.nodes:
            self.assertFalse(node.blobs() & set(blobs), node.name)
            self.assertEqual(node.ingests(), [], node.name)

    def remove_everywhere(self, ref):
        for node in self.cluster.nodes:
            node.remove(ref)

    def holder(self, digest):
        """The node that downloads it, as the server says."""
        with contextlib.closing(self.cluster.server()) as server:
            status = server.status(digest)
        name = status["holder"]["node_id"] if "holder" in status else None
        return next((node for node in self.cluster.nodes if node.name == name), None)

    def waiting(self, digest):
        """How many nodes wait for it."""
        with contextlib.closing(self.cluster.server()) as server:
            return len(server.status(digest)["queue"])


class Pause:
    def __init__(self, proxy, path, go_on):
        self._proxy, self._path, self._go_on = proxy, path, go_on

    def wait(self):
        """Until a download has come so far."""
        if not self._proxy.paused[self._path].wait(120):
            raise AssertionError(f"nobody downloads {self._path}")

    def only_this_one(self):
        """Later downloads are not stopped."""
        self._proxy.pause_at.pop(self._path)

    def set(self):
        self._proxy.pause_at.pop(self._path, None)
        self._go_on.set()

    def delivered(self):
        return self._proxy.delivered[self._path]


def main():
    why = missing()
    if why:
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(SKIPPED)
    result = unittest.main(module="__main__", verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
