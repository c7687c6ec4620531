"""The way Kubernetes pulls: through the image service of containerd's CRI plugin, on three nodes."""
import os
import unittest

from cluster_case import ClusterCase, main
from node import Node
from processes import binary, wait_until


class ThroughCri(ClusterCase):
    cri = True

    @classmethod
    def setUpClass(cls):
        if not os.access(binary("cri_client"), os.X_OK):
            raise unittest.SkipTest("there is no cri_client: it is built with the tests")
        super().setUpClass()
        for node in cls.cluster.nodes:
            wait_until(lambda: node.cri("list", check=False) is not None, "CRI answers")

    def pull_through_cri(self, ref, nodes=None):
        for node, pull in [(node, node.begin_cri_pull(ref)) for node in nodes or self.cluster.nodes]:
            self.finish(node, pull)

    def remove_through_cri(self, ref):
        for node in self.cluster.nodes:
            node.cri("remove", ref)

    def assert_listed(self, ref, *nodes):
        for node in self.cluster.nodes:
            self.assertEqual(ref in node.cri("list"), node in nodes, node.name)

    def test_three_nodes_pull_at_once_remove_and_pull_again(self):
        ref, blobs = self.image(mebibytes=2)
        self.pull_through_cri(ref)
        self.assert_fetched_once(blobs)
        self.assert_all_have(blobs)
        self.assert_listed(ref, *self.cluster.nodes)
        a, b, c = self.cluster.nodes
        a.cri("remove", ref)
        self.assert_listed(ref, b, c)
        wait_until(lambda: not a.blobs() & set(blobs), "its garbage is collected")
        for node in (b, c):
            self.assert_has(node, blobs)
        self.pull_through_cri(ref, [a])
        self.assert_fetched_once(blobs)
        self.remove_through_cri(ref)
        self.assert_listed(ref)
        self.assert_nothing_left(blobs)
        self.pull_through_cri(ref)
        self.assert_all_have(blobs)
        self.remove_through_cri(ref)
        self.assert_nothing_left(blobs)


class ThroughCriWithoutUnpackedLayers(ThroughCri):
    """As many clusters have it: a layer that is unpacked is given back at once, by every node."""
    flags = ("--keep-unused", "1h")
    containerd_config = """[plugins."io.containerd.grpc.v1.cri".containerd]
  discard_unpacked_layers = true
"""

    def test_three_nodes_pull_at_once_remove_and_pull_again(self):
        ref, blobs = self.image(mebibytes=2)
        self.pull_through_cri(ref)
        self.assert_fetched_once(blobs)
        self.assert_listed(ref, *self.cluster.nodes)
        self.remove_through_cri(ref)
        self.assert_listed(ref)

    def test_a_node_that_comes_later_downloads_nothing(self):
        ref, blobs = self.image(mebibytes=2)
        self.pull_through_cri(ref)
        layers = set(sorted(blobs, key=blobs.get)[2:])  # all but manifest and configuration
        for node in self.cluster.nodes:
            wait_until(lambda: not node.blobs() & layers, "its layers are unpacked and given back")
        self.assert_fetched_once(blobs)
        later = Node(self.cluster, "node-d", self.cluster.nodes[0].roots)
        self.cluster.nodes.append(later)
        later.start()
        wait_until(lambda: later.cri("list", check=False) is not None, "CRI answers")
        later.cri("pull", ref)
        self.assert_fetched_once(blobs)
        self.remove_through_cri(ref)


if __name__ == "__main__":
    main()
