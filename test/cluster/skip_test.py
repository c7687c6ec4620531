"""Holes of an earlier prototype in what a node gets that is told to skip: P2, D9."""
from cluster_case import ClusterCase, main
from node import containerd_major
from processes import read, wait_until


class Skips(ClusterCase):
    def test_P2_a_skip_costs_no_byte_from_the_registry_and_the_blob_is_readable(self):
        ref, blobs = self.image(mebibytes=2)
        first, *others = self.cluster.nodes
        first.pull(ref)
        self.assertEqual(self.cluster.proxy.bytes_sent(), sum(blobs.values()))
        for node in others:
            self.cluster.proxy.forget()
            node.pull(ref)
            self.assertEqual(self.cluster.proxy.bytes_sent(), 0, node.name)
            self.assert_has(node, blobs)
        self.remove_everywhere(ref)

    def test_D9_a_node_that_waited_and_is_told_to_skip_can_read_the_blob_at_once(self):
        ref, blobs = self.image(mebibytes=2)
        layer = self.largest(blobs)
        with self.paused(layer, 1 << 20) as pause:
            pulls = {node: node.begin_pull(ref) for node in self.cluster.nodes}
            pause.wait()
            wait_until(lambda: self.waiting(layer) == 2, "both other nodes wait for it")
        for node, pull in pulls.items():
            self.finish(node, pull)  # which has unpacked all layers
            self.assert_has(node, blobs)
        self.assertEqual(self.cluster.proxy.bytes_sent(), sum(blobs.values()))
        self.remove_everywhere(ref)


class SkipsOverALateMount(ClusterCase):
    """The nodes see each other's blobs when the test shows them, and not before."""
    nodes = 2
    shared = "late"
    flags = ("--visible-within", "1h")

    def test_D9_a_node_is_told_to_come_again_until_its_mount_shows_the_blob(self):
        ref, blobs = self.image(mebibytes=1)
        writer, reader = self.cluster.nodes
        writer.pull(ref)
        self.cluster.proxy.forget()
        pull = reader.begin_pull(ref)
        for digest in blobs:  # the manifest first; it names all others
            # The skip has made the node a user in the server's books.
            wait_until(lambda: reader.name in self.cluster.references(digest), f"it is told to skip {digest}")
            if containerd_major(reader.program) == 1:  # later ones do not log it
                wait_until(lambda: f"{digest}: another node has it, but it cannot be seen here yet" in reader.log(),
                           "containerd is told to come again")
            self.assertIsNone(pull.poll(), "it must not end before it can see the blob")
            self.assertNotIn(digest, reader.blobs())
            self.cluster.show(digest)
            wait_until(lambda: digest in reader.blobs(), f"it uses {digest}")
        self.finish(reader, pull)
        self.assertEqual(self.cluster.proxy.bytes_sent(), 0)
        self.assert_has(reader, blobs)
        reader.remove(ref)
        for digest in blobs:  # the last one must be the writer: nobody else sees its disk as it is
            wait_until(lambda: reader.name not in self.cluster.references(digest), f"{digest} is given up")
        self.assert_has(writer, blobs)
        writer.remove(ref)
        self.assert_nothing_left(blobs)


class SkipsOverAMountThatShowsNothing(ClusterCase):
    nodes = 2
    shared = "late"
    flags = ("--visible-within", "2s")

    def test_D9_what_stays_out_of_sight_is_pulled_again(self):
        ref, blobs = self.image(mebibytes=1)
        writer, reader = self.cluster.nodes
        writer.pull(ref)
        self.cluster.proxy.forget()
        reader.pull(ref)
        self.assertEqual(self.cluster.proxy.bytes_sent(), sum(blobs.values()))
        self.assert_has(reader, blobs)
        for digest in blobs:
            self.assertIn(f"not in sight here; pulled again digest={digest}", read(reader.plugin.log))
        self.remove_everywhere(ref)


if __name__ == "__main__":
    main()
