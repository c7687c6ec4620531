"""The plugin reads what its node uses, and what it finds damaged is healed by one node for all."""
import os

from cluster_case import ClusterCase, main
from processes import read, wait_until


class VerifiedInTheBackground(ClusterCase):
    nodes = 2
    flags = ("--verify-every", "1s", "--visible-within", "1s")

    def test_a_damaged_layer_is_found_and_put_away_and_one_node_heals_it_for_all(self):
        ref, blobs = self.image(mebibytes=1)
        self.pull_at_once(ref)
        layer = self.largest(blobs)
        path, = self.cluster.files_of(layer)
        with open(path, "r+b") as file:
            file.write(b"?")
        wait_until(lambda: not self.cluster.files_of(layer), "it is put away")
        a, b = self.cluster.nodes
        wait_until(lambda: sum(node.metrics()["damaged_blobs_total"] for node in (a, b)) > 0, "it is counted")
        wait_until(lambda: layer in read(a.plugin.log) + read(b.plugin.log), "it is logged")
        for node in (a, b):
            # The other one may still have it open until it has looked itself.
            wait_until(lambda: node.ctr("content", "get", layer, check=False).returncode != 0, "nobody reads wrong bytes")
        a.ctr("images", "rm", "--sync", ref)
        a.pull(ref)
        self.assert_all_have(blobs)
        self.remove_everywhere(ref)
        self.assert_nothing_left(blobs)
        away = os.listdir(os.path.join(a.roots[1], "damaged"))
        self.assertEqual([name.split(".")[0] for name in away], [layer.split(":")[1]])


if __name__ == "__main__":
    main()
