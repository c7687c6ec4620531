"""kill -9 of the plugin, again and again, while blobs are written and committed through containerd.

Whatever a client was told to be committed is there and right; whatever lies under a digest has that digest; and what
was under way can be finished by whoever tries again, and leaves nothing behind then.
"""
import hashlib
import os
import random
import tempfile
import threading
import time

from cluster_case import ROUNDS, ClusterCase, main
from processes import wait_until

WRITERS = 3
SIZES = (2 << 10, 300 << 10, 5 << 20)


class Writer(threading.Thread):
    """Ingests one blob after the other until told to stop; one that fails is tried again under the same ref."""

    def __init__(self, node, name, acknowledged):
        super().__init__(daemon=True)
        self._node, self._random, self._acknowledged = node, random.Random(name), acknowledged
        self.stopping, self.failures = threading.Event(), []

    def run(self):
        while not self.stopping.is_set():
            data = self._random.randbytes(self._random.choice(SIZES))
            digest = "sha256:" + hashlib.sha256(data).hexdigest()
            while not self._ingest(digest, data):
                pass

    def _ingest(self, digest, data):
        with tempfile.TemporaryFile() as file:  # not a pipe: an ingest that is resumed seeks
            file.write(data)
            file.seek(0)
            done = self._node.ctr("content", "ingest", "--expected-digest", digest, "--expected-size", str(len(data)),
                                  "layer-" + digest, stdin=file, check=False)
        # A commit whose answer was lost has been made: that it exists is what the second try is told.
        if done.returncode == 0 or b"already exists" in done.stderr:
            self._acknowledged.add(digest)
            return True
        self.failures.append(done.stderr.decode()[-300:])
        return False


class KilledWhileWriting(ClusterCase):
    nodes = 1
    # What a client has ingested and nothing refers to would be collected.
    containerd_config = """[plugins."io.containerd.gc.v1.scheduler"]
  deletion_threshold = 0
  mutation_threshold = 0
  startup_delay = "24h"
"""

    def test_nothing_wrong_is_published_and_nothing_acknowledged_is_lost(self):
        node, acknowledged, moments = self.cluster.nodes[0], set(), random.Random(7)
        writers = [Writer(node, f"writer {i}", acknowledged) for i in range(WRITERS)]
        for writer in writers:
            writer.start()
        under_way = unacknowledged = 0
        for _ in range(5 * ROUNDS):
            so_far = len(acknowledged)
            wait_until(lambda: len(acknowledged) >= so_far + 3, "blobs are committed")
            time.sleep(moments.random() * 0.3)  # not a wait for something: the moment of the kill is to vary
            before = set(acknowledged)
            node.plugin.kill()
            under_way += len(node.ingests())
            published = {"sha256:" + os.path.basename(path) for path in self.cluster.all_files()}
            self.assertLessEqual(before, published)
            unacknowledged += len(published - acknowledged)
            self.assert_files_are_what_they_are_called()
            node.start_plugin()
        for writer in writers:
            writer.stopping.set()
        for writer in writers:
            writer.join()
        print(f"counted: {5 * ROUNDS} kills, {len(acknowledged)} blobs, {under_way} ingests under way at a kill, "
              f"{unacknowledged} blobs published and not yet acknowledged at a kill, "
              f"{sum(len(writer.failures) for writer in writers)} ingests that failed and were tried again", flush=True)
        self.assert_has(node, acknowledged)
        self.assertEqual(node.ingests(), [], "what was under way has been finished")
        self.assertEqual(set(acknowledged),
                         {"sha256:" + os.path.basename(path) for path in self.cluster.all_files()})
        node.ctr("leases", "create", "--id", "last")
        node.end_leases()  # which makes containerd collect all that nobody uses
        self.assert_nothing_left(acknowledged)


if __name__ == "__main__":
    main()
