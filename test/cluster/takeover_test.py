"""A part of the downloading node is killed (or stopped) half way through a layer: ctr, its plugin or its containerd;
or the registry falls silent.

Another node takes over, begins at the first byte, and all end with the right blob; what was killed is started again and
its node can pull, too; and when all have removed the image nothing of it is left.
"""
import datetime
import os
import re
import signal
import time

from cluster_case import ROUNDS, ClusterCase, main
from processes import read, wait_until

HALF = 4 << 20
# Seconds: the lease that the plugin asks for, the server's grace for broken connections, and a very busy machine.
# What it must not be is the server's longest hold, an hour.
WITHIN = 10 + 3 + 77


class HalfWay(ClusterCase):
    def in_rounds(self, kill, start_again):
        seconds = [self.one_round(kill, start_again) for _ in range(ROUNDS)]
        print(f"granted to another node after {', '.join(f'{s:.2f}' for s in seconds)} s", flush=True)
        self.assertLess(max(seconds), WITHIN)

    def one_round(self, kill, start_again):
        """Returns how long after the kill another node was given the download."""
        ref, blobs = self.image(layers=2)
        layer = self.largest(blobs)
        with self.paused(layer, HALF) as pause:
            pulls = {node: node.begin_pull(ref) for node in self.cluster.nodes}
            pause.wait()
            wait_until(lambda: self.waiting(layer) == 2, "both other nodes wait for it")
            first, before = self.holder(layer), pause.delivered()
            pause.only_this_one()
            seconds = self.time_to_take_over(layer, lambda: kill(first, pulls[first]), first)
            others = [node for node in self.cluster.nodes if node is not first]
            for node in others:
                self.finish(node, pulls[node])
            # Half a blob of another node's is worth nothing: all of it was fetched, and not twice.
            self.assertEqual(pause.delivered(), before + blobs[layer])
            self.assertTrue(any(re.search(f"takes over a download.*{layer}", read(node.plugin.log)) for node in others))
            self.assertGreaterEqual(sum(node.metrics()["takeovers_total"] for node in others), 1)
        start_again(first)
        pulls[first].communicate(timeout=120)  # it has died, too, or goes on
        # containerd takes a moment to find its plugin again.
        wait_until(lambda: first.pull(ref, check=False).returncode == 0, "it can pull again", every=0.2)
        self.assert_all_have(blobs)
        self.assertEqual(self.cluster.proxy.blob_gets()[layer], 2, "once half, once whole")
        first.end_leases()
        self.remove_everywhere(ref)
        self.assert_nothing_left(blobs)
        return seconds

    def time_to_take_over(self, digest, kill, first):
        events = self.cluster.watch(digest)
        began = time.time()
        kill()
        try:
            while (granted := events.next_of("granted"))["node_id"] == first.name:
                pass
        finally:
            events.close()
        return datetime.datetime.fromisoformat(granted["completed_at"].replace("Z", "+00:00")).timestamp() - began


class KilledHalfWay(HalfWay):
    def test_when_ctr_is_killed_another_node_takes_over(self):
        self.in_rounds(lambda node, pull: pull.kill(), lambda node: None)

    def test_when_the_plugin_is_killed_another_node_takes_over(self):
        self.in_rounds(lambda node, pull: node.plugin.kill(), lambda node: node.start_plugin())

    def test_when_containerd_is_killed_another_node_takes_over(self):
        self.in_rounds(lambda node, pull: node.containerd.kill(), lambda node: node.start_containerd())

    def test_when_the_plugin_stands_still_another_node_takes_over_and_it_does_no_harm_later(self):
        self.in_rounds(lambda node, pull: os.kill(node.plugin.pid, signal.SIGSTOP),
                       lambda node: os.kill(node.plugin.pid, signal.SIGCONT))


class StandsStillHalfWay(HalfWay):
    flags = ("--stalled-after", "15s")  # longer than it takes until the other nodes wait

    def test_another_node_takes_over_and_what_comes_late_does_no_harm(self):
        self.in_rounds(lambda node, pull: None, lambda node: None)


class ResumedAfterAKill(ClusterCase):
    nodes = 1

    def test_half_a_layer_is_resumed(self):
        ref, blobs = self.image(layers=1)
        layer = self.largest(blobs)
        node = self.cluster.nodes[0]
        with self.paused(layer, HALF) as pause:
            there = os.path.getsize(self.kill_half_way(pause, ref, layer))
            before = pause.delivered()
            node.start_plugin()
            wait_until(lambda: node.pull(ref, check=False).returncode == 0, "it can pull again", every=0.2)
            self.assertEqual(pause.delivered() - before, blobs[layer] - there)
        self.end(ref, blobs)

    def test_half_a_layer_that_has_changed_meanwhile_is_never_published(self):
        ref, blobs = self.image(layers=1)
        layer = self.largest(blobs)
        node = self.cluster.nodes[0]
        with self.paused(layer, HALF) as pause:
            self.change_a_byte(self.kill_half_way(pause, ref, layer))
        node.start_plugin()
        # containerd takes a moment to find its plugin again; then all bytes are there, and they are wrong.
        wait_until(lambda: b"the digest is" in node.pull(ref, check=False).stderr, "the pull is refused", every=0.2)
        self.assertEqual(self.cluster.files_of(layer), [])
        self.assert_files_are_what_they_are_called()
        node.end_leases()  # and with it the ingest
        node.pull(ref)
        self.end(ref, blobs)

    def kill_half_way(self, pause, ref, layer):
        """Returns the file with that half."""
        node = self.cluster.nodes[0]
        half = lambda: next((path for path in map(self.data_of(layer), node.ingests()) if path), None)
        pull = node.begin_pull(ref)
        pause.wait()
        wait_until(lambda: (path := half()) and os.path.getsize(path) >= HALF // 2, "much of it is on the disk")
        pause.only_this_one()
        # ctr must not live to see it: it would give its lease back, and the ingest would be collected.
        pull.send_signal(signal.SIGSTOP)
        node.plugin.kill()
        pull.kill()
        pull.communicate(timeout=120)
        return half()

    @staticmethod
    def data_of(layer):
        return lambda path: os.path.join(path, "data") if layer in read(os.path.join(path, "about")) else None

    @staticmethod
    def change_a_byte(path):
        with open(path, "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes([byte ^ 1]))

    def end(self, ref, blobs):
        self.assert_all_have(blobs)
        self.cluster.nodes[0].end_leases()
        self.remove_everywhere(ref)
        self.assert_nothing_left(blobs)


if __name__ == "__main__":
    main()
