"""A node that has images in containerd's own store moves to the plugin, and back again, as docs/containerd.md tells.

What containerd knows of content (which, in which namespace, with which labels, for which lease) is in its own database,
whoever keeps the bytes. So what moves is the bytes, and that this node uses them; before containerd is told.
"""
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile

from cluster_case import ClusterCase, main
from processes import Process, binary, wait_until
from removal_bench import PlainNode

BUILT_IN = "root/io.containerd.content.v1.content"


class Moving(ClusterCase):
    """One node that has the plugin already, and one that moves."""
    nodes = 1
    how = "linked"

    def test_a_node_moves_in_and_back_with_all_its_images(self):
        before, = self.cluster.nodes
        shared, shared_blobs = self.image(mebibytes=1)
        own, own_blobs = self.image(mebibytes=1)
        before.pull(shared)
        node = self.plain_node(before.roots)
        for ref in (shared, own):
            node.pull(ref)
        kept = self.ingest_a_root(node)
        blobs, labels = [*shared_blobs, *own_blobs, kept], self.labels(node)

        damaged = self.largest(own_blobs)
        with self.damaged(node, damaged):
            bad = self.run_command(node, "import", "--from", self.store(node), code=1).stdout
            self.assertIn(damaged + " damaged", bad)
            self.assertIn("containerd is running", bad)
        node.containerd.stop()
        said = self.run_command(node, "import", "--from", self.store(node)).stdout
        self.assertRegex(said, r"\b1 " + self.how)
        self.assertIn(f"{len(blobs) - 1} this node's already", said)

        # Nobody has told the server yet; what was imported cannot be taken away all the same.
        before.remove(shared)
        wait_until(lambda: not before.blobs() & set(shared_blobs), "the other node has given it up")
        node.start_plugin()
        node._write_config()
        node.start_containerd()
        linked = os.stat(self.file(node, kept)).st_ino == os.stat(self.cluster.files_of(kept)[0]).st_ino
        self.assertEqual(linked, self.how == "linked")
        shutil.rmtree(self.store(node))
        self.assertEqual(self.labels(node), labels)
        self.assert_has(node, blobs)
        for digest in blobs:
            wait_until(lambda: self.cluster.references(digest) == {node.name}, "the server has been told")
        self.cluster.proxy.forget()
        for ref in (shared, own):
            node.pull(ref)
            node.ctr("images", "export", os.path.join(self.cluster.directory, "export.tar"), ref)
        self.assertEqual(self.cluster.proxy.bytes_sent(), 0)
        before.pull(shared)

        self.move_back(node)
        self.assertEqual(self.labels(node), labels)
        self.assert_has(node, blobs)
        self.assert_has(before, shared_blobs)
        for digest in [*own_blobs, kept]:
            wait_until(lambda: not self.cluster.files_of(digest), "what only it used is gone")
        for digest in shared_blobs:
            self.assertEqual(self.cluster.references(digest), {before.name})
        before.remove(shared)
        self.cluster.nodes.remove(node)
        node.stop()
        self.assert_nothing_left([*shared_blobs, *own_blobs])

    def test_an_import_that_was_killed_is_gone_on_with(self):
        before, = self.cluster.nodes
        ref, blobs = self.image(mebibytes=1)
        node = self.plain_node(before.roots)
        node.pull(ref)
        node.containerd.stop()
        names = os.path.join(node.roots[1], "uses", node.name, "sha256")
        for count in range(1, len(blobs) + 1):  # the last one may have been written down, or not
            process = Process(self.command(node, "import", "--from", self.store(node)),
                              os.path.join(node.directory, "import.log"))
            wait_until(lambda: not process.alive() or os.path.isdir(names) and len(os.listdir(names)) >= count, "it works")
            process.stop(signal.SIGKILL)
        self.run_command(node, "import", "--from", self.store(node))
        shutil.rmtree(self.store(node))
        node.start_plugin()
        node._write_config()
        node.start_containerd()
        self.assert_has(node, blobs)
        node.remove(ref)
        self.assert_nothing_left(blobs)

    def plain_node(self, roots):
        node = PlainNode(self.cluster, f"node-{self.seed}", roots)
        self.cluster.nodes.append(node)
        self.addCleanup(lambda: node in self.cluster.nodes and (self.cluster.nodes.remove(node), node.stop()))
        return node.start()

    @staticmethod
    def store(node):
        return os.path.join(node.directory, BUILT_IN)

    def file(self, node, digest):
        return os.path.join(self.store(node), "blobs", digest.replace(":", "/"))

    @contextlib.contextmanager
    def damaged(self, node, digest):
        """While it lasts, a file of containerd's holds other bytes."""
        path, good = self.file(node, digest), os.path.join(node.directory, "good")
        os.rename(path, good)
        with open(path, "wb") as file:
            file.write(b"other bytes")
        yield
        os.rename(good, path)

    @staticmethod
    def command(node, *words):
        return [binary("turnstile-content"), *words, "--node", node.name, *node.roots,
                "--state", os.path.join(node.directory, "content")]

    def run_command(self, node, *words, code=0):
        done = subprocess.run(self.command(node, *words), capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    @staticmethod
    def ingest_a_root(node):
        """Content that no image names, and that is kept because of a label of its own."""
        data = os.urandom(100_000)
        digest = "sha256:" + hashlib.sha256(data).hexdigest()

        def ingested():
            with tempfile.TemporaryFile() as file:
                file.write(data)
                file.seek(0)
                node.ctr("content", "ingest", "--expected-digest", digest, "a-root", stdin=file)
            # It may have been collected as garbage before it has the label.
            return node.ctr("content", "label", digest, "containerd.io/gc.root=today", check=False).returncode == 0
        wait_until(ingested, "it is there and is kept")
        return digest

    @staticmethod
    def labels(node):
        """digest -> its labels"""
        lines = [line.split() for line in node.ctr("content", "ls").stdout.decode().splitlines()[1:]]
        return {line[0]: sorted(line[-1].split(",")) for line in lines}

    def move_back(self, node):
        node.containerd.stop()
        self.run_command(node, "export-store", "--to", self.store(node))
        self.assertIn(" 0 copied", self.run_command(node, "export-store", "--to", self.store(node)).stdout)
        node.start()  # with its own store
        used = node.ctr("-a", node.plugin_socket, "content", "ls", "-q").stdout.decode().split()
        node.ctr("-a", node.plugin_socket, "content", "rm", *used)
        wait_until(lambda: all(node.name not in self.cluster.references(digest) for digest in used), "its uses have ended")
        node.plugin.stop()


class MovingToAnotherDisk(Moving):
    """No links: every byte is copied."""
    shared = "small"
    how = "copied"
    test_an_import_that_was_killed_is_gone_on_with = None  # once is enough


if __name__ == "__main__":
    main()
