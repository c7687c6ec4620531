"""A plugin whose socket is the service manager's (turnstile-content.socket): it is started anew, and containerd's calls wait."""
import os
import select
import socket
import threading

from cluster_case import ROUNDS, ClusterCase, main
from processes import PATIENCE, wait_until


class Reader(threading.Thread):
    """Reads a blob through containerd again and again, until told to stop; keeps what failed."""

    def __init__(self, node, digest):
        super().__init__(daemon=True)
        self._node, self._digest = node, digest
        self.stopping, self.read, self.failures = threading.Event(), 0, []

    def run(self):
        while not self.stopping.is_set():
            done = self._node.ctr("content", "get", self._digest, check=False)
            self.read += 1
            if done.returncode != 0:
                self.failures.append(done.stderr.decode()[-300:])


class RestartedBehindItsSocket(ClusterCase):
    nodes = 1

    def test_no_call_of_containerds_fails_while_the_plugin_is_started_anew(self):
        ref, blobs = self.image(layers=1, mebibytes=1)
        node = self.cluster.nodes[0]
        self.give_socket(node)
        # Its connection was refused once, by the plugin without such a socket; that is what must not happen again.
        wait_until(lambda: node.pull(ref, check=False).returncode == 0, "containerd finds it")
        smallest = min(blobs, key=blobs.get)
        reader = Reader(node, smallest)
        reader.start()
        for _ in range(3 * ROUNDS):
            so_far = reader.read
            wait_until(lambda: reader.read > so_far + 2, "it is read")
            node.plugin.stop()
            someone, _, _ = select.select(node.listeners, [], [], PATIENCE)
            self.assertTrue(someone, "containerd connects while there is no plugin at all")
            node.start_plugin()
        reader.stopping.set()
        reader.join()
        self.assertEqual(reader.failures, [])
        node.remove(ref)
        self.assert_nothing_left(blobs)

    def give_socket(self, node):
        """What turnstile-content.socket does."""
        node.plugin.stop()
        os.unlink(node.plugin_socket)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(node.plugin_socket)
        listener.listen()
        os.chmod(os.path.dirname(node.plugin_socket), 0o711)
        node.listeners = [listener]
        node.start_plugin()


if __name__ == "__main__":
    main()
