"""Three real containerds share what they pull: every blob leaves the registry once, and nobody loses what it uses.

TURNSTILE_ROUNDS=10 makes more rounds of the first test than CI does. Exit code 77: a cluster cannot run here.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

from cluster import Cluster, binary, missing, read, wait_until

ROUNDS = int(os.environ.get("TURNSTILE_ROUNDS", "3"))


def warnings_of_collection(node):
    """What containerd has to complain of about its garbage collection."""
    return [line for line in node.log().splitlines()
            if re.search(r"level=(warning|error|fatal).*(garbage|\bgc\b|collect)", line, re.I)]


class ClusterCase(unittest.TestCase):
    shared = "plain"
    flags = server_flags = ()
    cluster = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(3, cls.shared, cls.flags, server_flags=cls.server_flags)
        cls.seed = 0

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def image(self, **more):
        """A new one for each test and round."""
        type(self).seed += 1
        self.cluster.proxy.forget()
        return self.cluster.make_image(seed=self.seed, **more)

    def pull_at_once(self, ref):
        self.finish([node.begin_pull(ref) for node in self.cluster.nodes])

    def finish(self, pulls):
        for node, pull in zip(self.cluster.nodes, pulls):
            said = pull.communicate(timeout=120)[0].decode()
            self.assertEqual(pull.returncode, 0, f"{node.name}: {said[-2000:]}\n{read(node.plugin.log)[-3000:]}")

    def assert_all_have(self, blobs):
        for node in self.cluster.nodes:
            self.assertLessEqual(set(blobs), node.blobs(), node.name)
            for digest in blobs:
                self.assertEqual(node.sha256_of(digest), digest, node.name)

    def assert_fetched_once(self, blobs):
        gets = self.cluster.proxy.blob_gets()
        self.assertEqual({digest: gets[digest] for digest in blobs}, {digest: 1 for digest in blobs})
        self.assertEqual({digest: self.cluster.registry_gets(digest) for digest in blobs},
                         {digest: 1 for digest in blobs}, "as the registry's own log tells")

    def remove_everywhere(self, ref):
        for node in self.cluster.nodes:
            node.remove(ref)


class EveryBlobOnce(ClusterCase):
    def test_three_nodes_that_pull_at_the_same_moment_fetch_each_blob_once(self):
        for _ in range(ROUNDS):
            ref, blobs = self.image()
            self.assertEqual(len(blobs), 5)
            self.pull_at_once(ref)
            self.assert_fetched_once(blobs)
            self.assert_all_have(blobs)
            for digest in blobs:
                self.assertEqual(len(self.cluster.files_of(digest)), 1)
            self.remove_everywhere(ref)

    def test_an_image_can_be_run_on_every_node(self):
        ref, _ = self.image(mebibytes=1)
        self.pull_at_once(ref)
        for node in self.cluster.nodes:
            ran = node.ctr("run", "--rm", "--null-io", ref, "test", "/bin/sh", "-c", "test -s /data-2", check=False)
            if ran.returncode != 0 and b"runc" in ran.stderr:
                self.skipTest("runc cannot run containers here: " + ran.stderr.decode()[-300:])
            self.assertEqual(ran.returncode, 0, ran.stderr)
        self.remove_everywhere(ref)

    def test_removing_an_image_never_harms_the_others_and_the_last_one_takes_the_files(self):
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
            self.assertEqual(self.cluster.files_of(digest), [])
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

    @classmethod
    def setUpClass(cls):
        if not shutil.which("mergerfs") or not os.path.exists("/dev/fuse"):
            raise unittest.SkipTest("mergerfs cannot run here")
        super().setUpClass()


class WhenSomethingBreaks(ClusterCase):
    def largest(self, blobs):
        return max(blobs, key=blobs.get)

    def test_when_the_downloading_plugin_is_killed_another_node_takes_over(self):
        ref, blobs = self.image()
        layer = self.largest(blobs)
        path = f"/v2/test/img/blobs/{layer}"
        go_on = threading.Event()
        proxy = self.cluster.proxy
        proxy.pause_at[path] = (4 << 20, go_on)
        pulls = {node.name: node.begin_pull(ref) for node in self.cluster.nodes}
        proxy.paused[path].wait(60)
        first = wait_until(lambda: self.downloader(layer), "somebody writes it")
        first.plugin.kill()
        del proxy.pause_at[path]
        others = [node for node in self.cluster.nodes if node is not first]
        for node in others:
            said = pulls[node.name].communicate(timeout=120)[0].decode()
            self.assertEqual(pulls[node.name].returncode, 0, said[-2000:] + read(node.plugin.log)[-3000:])
        go_on.set()
        self.assertEqual(proxy.blob_gets()[layer], 2, "once half, once whole")
        self.assertTrue(any(re.search(f"takes over.*{layer}", read(node.plugin.log)) for node in others))
        self.assertGreaterEqual(sum(node.metrics()["takeovers_total"] for node in others), 1)
        pulls[first.name].communicate(timeout=120)  # it dies with its plugin
        first.start_plugin()
        wait_until(lambda: first.pull(ref, check=False).returncode == 0, "it can pull again")
        self.assert_all_have(blobs)
        self.assertEqual(proxy.blob_gets()[layer], 2)
        self.remove_everywhere(ref)
        for digest in blobs:
            self.assertEqual(self.cluster.files_of(digest), [])

    def test_a_plugin_that_starts_again_shows_what_its_node_has(self):
        ref, blobs = self.image(mebibytes=1)
        self.pull_at_once(ref)
        a = self.cluster.nodes[0]
        a.plugin.kill()
        a.start_plugin()
        # Only a read goes through to the plugin. containerd's garbage collection is not repeated when it is away.
        digest = self.largest(blobs)
        wait_until(lambda: a.ctr("content", "get", digest, check=False).returncode == 0, "the plugin is found again")
        self.assertLessEqual(set(blobs), a.blobs())
        self.remove_everywhere(ref)
        self.assertEqual([self.cluster.files_of(digest) for digest in blobs], [[]] * len(blobs))

    def test_when_the_lock_server_is_killed_the_pulls_go_on_when_it_is_back(self):
        ref, blobs = self.image()
        layer = self.largest(blobs)
        path = f"/v2/test/img/blobs/{layer}"
        go_on = threading.Event()
        proxy = self.cluster.proxy
        proxy.pause_at[path] = (1 << 20, go_on)
        pulls = [node.begin_pull(ref) for node in self.cluster.nodes]
        proxy.paused[path].wait(60)
        wait_until(lambda: self.waits(layer), "another node waits for it")
        self.cluster.turnstiled.kill()
        go_on.set()
        del proxy.pause_at[path]
        a = self.cluster.nodes[0]
        wait_until(lambda: a.monitor("/readyz")[0] == 503, "it says that the lock server is away")
        self.assertIn("lock server does not answer", a.monitor("/readyz")[1])
        self.assertEqual((a.monitor("/healthz")[0], a.metrics()["lock_server_up"]), (200, 0))
        # The download ends without the server; the others come again and again until it is back.
        wait_until(lambda: self.cluster.files_of(layer), "the blob is published")
        self.cluster.start_server(*self.server_flags)
        self.finish(pulls)
        self.assert_all_have(blobs)
        self.assertEqual(proxy.blob_gets()[layer], 1)
        wait_until(lambda: a.monitor("/readyz") == (200, "ok\n"), "it is ready again")
        self.remove_everywhere(ref)
        wait_until(lambda: not any(self.cluster.files_of(digest) for digest in blobs), "the files are gone")

    def downloader(self, digest):
        """The node that has an ingest of it."""
        for node in self.cluster.nodes:
            said = node.ctr("content", "active", check=False).stdout.decode()
            if digest in said:
                return node
        return None

    def test_a_lie_of_the_registry_is_never_published_and_the_next_is_told_why(self):
        ref, blobs = self.image()
        layer = self.largest(blobs)
        path = f"/v2/test/img/blobs/{layer}"
        go_on = threading.Event()
        proxy = self.cluster.proxy
        proxy.corrupt.add(path)
        proxy.pause_at[path] = (1 << 20, go_on)
        first = self.cluster.nodes[0]
        lied_to = first.begin_pull(ref)
        proxy.paused[path].wait(60)
        del proxy.pause_at[path]
        waiting = self.cluster.nodes[1].begin_pull(ref)
        wait_until(lambda: self.waits(layer), "the second node waits for it")
        proxy.corrupt.clear()
        go_on.set()
        said = lied_to.communicate(timeout=120)[0].decode()
        self.assertNotEqual(lied_to.returncode, 0, said)
        self.assertEqual(waiting.wait(120), 0, read(self.cluster.nodes[1].plugin.log))
        waiting.stdout.close()
        told = re.search(f"takes over.*{layer}.*error=(.*)", read(self.cluster.nodes[1].plugin.log))
        self.assertIn("digest", told[1])
        files = self.cluster.files_of(layer)
        self.assertEqual(len(files), 1)
        self.assertEqual(self.cluster.nodes[1].sha256_of(layer), layer)

    def waits(self, digest):
        url = f"{self.cluster.server_url}/lock/status?type=pull&resource_id={digest}"
        with urllib.request.urlopen(url) as answer:
            return len(json.load(answer)["queue"]) > 0


class CountedByTheNodes(OverAMergedMount):
    """The lock server keeps no references; the nodes count their own, in files below the mount."""
    flags = server_flags = ("--references", "client")

    def test_every_node_that_uses_a_blob_has_a_file_that_says_so(self):
        ref, blobs = self.image(mebibytes=1)
        self.pull_at_once(ref)
        self.assertEqual({digest: self.cluster.users_of(digest) for digest in blobs},
                         {digest: [node.name for node in self.cluster.nodes] for digest in blobs})
        self.cluster.nodes[0].remove(ref)
        self.assertEqual({digest: self.cluster.users_of(digest) for digest in blobs},
                         {digest: [node.name for node in self.cluster.nodes[1:]] for digest in blobs})
        self.remove_everywhere(ref)
        self.assertEqual([self.cluster.users_of(digest) for digest in blobs], [[]] * len(blobs))
        self.assertEqual([self.cluster.files_of(digest) for digest in blobs], [[]] * len(blobs))

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
        self.cluster.start_server()
        wait_until(lambda: what_to_do in a.monitor("/readyz")[1], "it sees what has changed")
        refused = a.pull(ref, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(what_to_do, refused.stderr.decode())
        self.cluster.turnstiled.kill()
        self.cluster.start_server(*self.server_flags)
        wait_until(lambda: a.monitor("/readyz")[0] == 200, "all is well again")
        a.pull(ref)
        a.remove(ref)
        wait_until(lambda: not any(self.cluster.files_of(digest) for digest in blobs), "the files are gone")


def main():
    why = missing()
    if why:
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(77)
    unittest.main(module="__main__", verbosity=2)


if __name__ == "__main__":
    main()
