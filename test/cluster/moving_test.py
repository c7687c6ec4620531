"""A node that has images in containerd's own store moves to the plugin, and back again: step by step as docs/containerd.md tells.

What containerd knows of content (which, in which namespace, with which labels, for which lease) is in its own database,
whoever keeps the bytes. So what moves is the bytes, and that this node uses them; before containerd is told.
"""
import hashlib
import os
import shutil
import tempfile

from cluster_case import ClusterCase, main
from processes import wait_until
from removal_bench import PlainNode

BUILT_IN = "root/io.containerd.content.v1.content"


class Moving(ClusterCase):
    """One node that has the plugin already, and one that moves."""
    nodes = 1
    links_first = False

    def test_a_node_moves_in_and_back_with_all_its_images(self):
        shared, shared_blobs = self.image(mebibytes=1)
        own, own_blobs = self.image(mebibytes=1)
        before, = self.cluster.nodes
        before.pull(shared)
        node = PlainNode(self.cluster, "node-b", before.roots)
        self.cluster.nodes.append(node)
        node.start()
        for ref in (shared, own):
            node.pull(ref)
        kept = self.ingest_a_root(node)
        blobs = {**shared_blobs, **own_blobs}
        labels = self.labels(node)

        inode = os.stat(self.files(node)[self.largest(own_blobs).split(":")[1]]).st_ino
        self.move_in(node)
        self.assertEqual(self.labels(node), labels)
        self.assert_has(node, [*blobs, kept])
        self.cluster.proxy.forget()
        for ref in (shared, own):
            node.pull(ref)
            node.ctr("images", "export", os.path.join(self.cluster.directory, "export.tar"), ref)
        self.assertEqual(self.cluster.proxy.bytes_sent(), 0)
        for digest in shared_blobs:
            self.assertEqual(self.cluster.references(digest), {before.name, node.name})
        self.assertEqual(inode == os.stat(self.cluster.files_of(self.largest(own_blobs))[0]).st_ino, self.links_first)

        self.move_back(node)
        self.assertEqual(self.labels(node), labels)
        self.assert_has(node, [*blobs, kept])
        self.assert_has(before, shared_blobs)
        for digest in own_blobs:
            wait_until(lambda: not self.cluster.files_of(digest), "what only it used is gone")
        for digest in shared_blobs:
            self.assertEqual(self.cluster.references(digest), {before.name})
        for ref in (shared, own):
            node.remove(ref)
        self.assertEqual(node.blobs(), {kept})
        before.remove(shared)
        self.cluster.nodes.remove(node)
        node.stop()
        self.assert_nothing_left(blobs)

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

    @staticmethod
    def files(node):
        directory = os.path.join(node.directory, BUILT_IN, "blobs/sha256")
        return {name: os.path.join(directory, name) for name in os.listdir(directory)}

    def hand_over(self, node):
        """Each file of containerd's own store is offered to the plugin, by the plugin's own socket. Where a link to it lies in
        the plugin's root already, or another node has it, no byte is copied."""
        for name, path in self.files(node).items():
            place = os.path.join(self.cluster.blob_directories[0], "sha256", name)
            if self.links_first and not os.path.exists(place):
                os.link(path, place)
            with open(path, "rb") as file:
                node.ctr("-a", node.plugin_socket, "content", "ingest", "--expected-digest", "sha256:" + name,
                         "--expected-size", str(os.path.getsize(path)), "import-" + name, stdin=file)

    def move_in(self, node):
        node.start_plugin()
        self.hand_over(node)    # while containerd still works as before
        node.containerd.stop()
        self.hand_over(node)    # what came meanwhile
        node._write_config()
        node.start_containerd()
        shutil.rmtree(os.path.join(node.directory, BUILT_IN))

    def move_back(self, node):
        node.containerd.stop()
        directory = os.path.join(node.directory, BUILT_IN, "blobs/sha256")
        os.makedirs(directory)
        used = node.ctr("-a", node.plugin_socket, "content", "ls", "-q").stdout.decode().split()
        for digest in used:
            # Not a link: a file with two names passes for one that somebody uses.
            with open(os.path.join(directory, digest.split(":")[1]), "wb") as file:
                file.write(node.ctr("-a", node.plugin_socket, "content", "get", digest).stdout)
        node.start()            # with its own store
        for digest in used:     # and now the node's uses end
            node.ctr("-a", node.plugin_socket, "content", "rm", digest)
        wait_until(lambda: all(node.name not in self.cluster.references(digest) for digest in used), "its uses have ended")
        node.plugin.stop()


class MovingByLinks(Moving):
    """Both stores on one file system: nothing is copied."""
    links_first = True


if __name__ == "__main__":
    main()
