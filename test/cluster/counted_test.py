"""The same cluster where the lock server keeps no references (`--references client`): the nodes count their own, in files."""
import subprocess
import tempfile

from breakage_test import WhenSomethingBreaks
from cluster_case import main
from cluster_test import OverAMergedMount
from processes import binary, wait_until


class CountedByTheNodes(OverAMergedMount):
    flags = server_flags = ("--references", "client")

    def test_every_node_that_uses_a_blob_has_a_file_that_says_so(self):
        ref, blobs = self.image(mebibytes=1)
        names = {node.name for node in self.cluster.nodes}
        self.pull_at_once(ref)
        self.assertEqual({digest: self.cluster.references(digest) for digest in blobs}, dict.fromkeys(blobs, names))
        self.cluster.nodes[0].remove(ref)
        names.remove(self.cluster.nodes[0].name)
        wait_until(lambda: all(self.cluster.references(digest) == names for digest in blobs), "one use has ended")
        self.remove_everywhere(ref)
        self.assert_nothing_left(blobs)

    def test_a_plugin_that_was_told_otherwise_than_the_server_does_not_start(self):
        with tempfile.TemporaryDirectory() as directory:
            ended = subprocess.run([binary("turnstile-content"), "--node", "x", "--server", self.cluster.server_url,
                                    "--socket", directory + "/run/s", "--root", directory + "/root",
                                    "--state", directory + "/state"], capture_output=True, timeout=60, check=False)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("Start the plugins of all nodes with --references client", ended.stderr.decode())


class CountedWhenSomethingBreaks(WhenSomethingBreaks):
    flags = server_flags = ("--references", "client")

    def test_a_server_that_comes_back_with_references_of_its_own_is_refused_until_that_is_mended(self):
        ref, blobs = self.image(mebibytes=1)
        a = self.cluster.nodes[0]
        what_to_do = "Start the plugins of all nodes with --references server"
        self.cluster.turnstiled.kill()
        self.cluster.start_server(flags=())
        wait_until(lambda: what_to_do in a.monitor("/readyz")[1], "it sees what has changed")
        refused = a.pull(ref, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(what_to_do, refused.stderr.decode())
        self.cluster.turnstiled.kill()
        self.cluster.start_server()
        wait_until(lambda: a.monitor("/readyz")[0] == 200, "all is well again")
        a.pull(ref)
        a.remove(ref)
        self.assert_nothing_left(blobs)


if __name__ == "__main__":
    main()
