"""Three real containerds share what they pull: every blob leaves the registry once, and nobody loses what it uses."""
import os
import re

from cluster_case import ROUNDS, ClusterCase, main
from processes import wait_until


def warnings_of_collection(node):
    """What containerd has to complain of about its garbage collection."""
    return [line for line in node.log().splitlines()
            if re.search(r"level=(warning|error|fatal).*(garbage|\bgc\b|collect)", line, re.I)]


class EveryBlobOnce(ClusterCase):
    def test_three_nodes_that_pull_at_the_same_moment_fetch_each_blob_once(self):
        for _ in range(3 * ROUNDS):
            ref, blobs = self.image()
            self.assertEqual(len(blobs), 5)
            self.pull_at_once(ref)
            self.assert_fetched_once(blobs)
            self.assert_all_have(blobs)
            for digest in blobs:
                self.assertEqual(len(self.cluster.files_of(digest)), 1)
            self.remove_everywhere(ref)

    def test_an_image_can_be_run_on_every_node(self):
        for _ in range(ROUNDS):
            self.pull_and_run()

    def pull_and_run(self):
        ref, _ = self.image(mebibytes=1)
        self.pull_at_once(ref)
        for node in self.cluster.nodes:
            container = f"{node.name}-{os.getpid()}"  # its cgroup has this name, whichever containerd made it
            ran = node.ctr("run", "--rm", "--null-io", ref, container, "/bin/sh", "-c", "test -s /data-2", check=False)
            if ran.returncode != 0 and b"runc" in ran.stderr:
                self.skipTest("runc cannot run containers here: " + ran.stderr.decode()[-300:])
            self.assertEqual(ran.returncode, 0, ran.stderr)
        self.remove_everywhere(ref)

    def test_P8_removing_an_image_never_harms_the_others_and_the_last_one_takes_the_files(self):
        ref, blobs = self.image(mebibytes=1)
        self.pull_at_once(ref)
        a, b, c = self.cluster.nodes
        a.remove(ref)
        self.assertFalse(a.blobs() & set(blobs))
        for node in (b, c):
            for digest in blobs:
                self.assertEqual(node.sha256_of(digest), digest)
        # What is gone here is there again without a download.
        a.pull(ref)
        self.assert_fetched_once(blobs)
        self.remove_everywhere(ref)
        for digest in blobs:
            wait_until(lambda: not self.cluster.files_of(digest), "the last one has taken the files")
        for node in self.cluster.nodes:
            self.assertEqual(warnings_of_collection(node), [], node.name)
        self.assertEqual(self.image_pulls_anew(ref, blobs), {digest: 2 for digest in blobs})

    def test_what_the_nodes_count_is_what_happened(self):
        ref, blobs = self.image(mebibytes=1)
        before = [node.metrics() for node in self.cluster.nodes]
        self.pull_at_once(ref)
        sizes = sum(blobs.values())
        counted = self.counted_since(before)
        for node, count in zip(self.cluster.nodes, counted):
            self.assertEqual(count["pulled_blobs_total"] + count["adopted_blobs_total"], len(blobs), node.name)
            self.assertEqual(count["pulled_bytes_total"] + count["saved_bytes_total"], sizes, node.name)
            self.assertEqual((count["blobs"], count["blob_bytes"], count["ingests"]), (len(blobs), sizes, 0), node.name)
            self.assertEqual(count["failed_writes_total"], 0, node.name)
            self.assertEqual(node.metrics()["lock_server_up"], 1, node.name)
        self.assertEqual(sum(count["pulled_blobs_total"] for count in counted), len(blobs), "each of them once")
        self.assertEqual(sum(count["received_bytes_total"] for count in counted), sizes)
        self.assertEqual(sum(count["saved_bytes_total"] for count in counted), 2 * sizes)
        self.remove_everywhere(ref)
        self.assertEqual([count["uses_ended_total"] for count in self.counted_since(before)], [len(blobs)] * 3)
        wait_until(lambda: sum(count["removed_blobs_total"] for count in self.counted_since(before)) == len(blobs),
                   "each was removed by whoever used it last")

    def counted_since(self, before):
        counts = []
        for node, start in zip(self.cluster.nodes, before):
            now = node.metrics()
            now.subtract(start)
            counts.append(now)
        return counts

    def image_pulls_anew(self, ref, blobs):
        self.pull_at_once(ref)
        self.assert_all_have(blobs)
        gets = self.cluster.proxy.blob_gets()
        self.remove_everywhere(ref)
        return {digest: gets[digest] for digest in blobs}


class OverAMergedMount(EveryBlobOnce):
    """Each node writes to a disk of its own, and sees all of them through mergerfs."""
    shared = "mergerfs"


if __name__ == "__main__":
    main()
