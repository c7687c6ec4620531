"""How long `ctr images rm --sync` takes for an image of 30 layers: through the plugin, with the server near and 10 ms away,
and with containerd's own store, one after the other in one run.

python3 test/cluster/removal_bench.py [ROUNDS]; each round pulls the image and removes it on every node in turn, so that it is
always the last one that uses it. While all layers go containerd writes nothing else: that is why it matters.
"""
import os
import statistics
import sys
import time

from cluster import Cluster
from node import CRI, Node
from processes import missing, own_address, wait_until
from server_link import ServerLink

LAYERS = 30
AWAY = 0.010  # seconds, there and back


class PlainNode(Node):
    """A containerd with its own store."""

    def start(self):
        with open(self._config, "w", encoding="utf-8") as file:
            file.write(f'''version = 2
root = "{self.directory}/root"
state = "{self.directory}/state"
disabled_plugins = [{CRI}]
[grpc]
  address = "{self.socket}"
[ttrpc]
  address = "{self.socket}.ttrpc"
''')
        return self.start_containerd()


def time_of_removal(node, ref):
    node.ctr("images", "pull", "--plain-http", ref)
    began = time.monotonic()
    node.remove(ref)
    seconds = time.monotonic() - began
    if node.blobs():
        raise AssertionError(f"{node.name} still has {node.blobs()}")
    return seconds


def main():
    why = missing()
    if why:
        sys.exit(why)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with Cluster(nodes=1) as cluster:
        away = Node(cluster, "node-b", cluster.nodes[0].roots)
        away.link = ServerLink(own_address(), cluster.server_port)
        away.link.delay = AWAY / 2
        plain = PlainNode(cluster, "node-c", [])
        cluster.nodes += [away, plain]
        for node in (away, plain):
            node.start()
        ref, _ = cluster.make_image(layers=LAYERS, mebibytes=0)
        kinds = {"containerd's own store": plain, "the plugin": cluster.nodes[0],
                 f"the plugin, server {1000 * AWAY:.0f} ms away": away}
        seconds = {kind: [] for kind in kinds}
        for number in range(rounds + 1):
            for kind, node in kinds.items():
                taken = time_of_removal(node, ref)
                if number > 0:
                    seconds[kind].append(taken)
                else:  # the first one warms up, and waits until the plugins remove files: the server is young
                    wait_until(lambda: not cluster.all_files(), "the files are removed")
        base = statistics.median(seconds["containerd's own store"])
        print(f"images rm of {LAYERS} layers, {rounds} rounds, {os.cpu_count()} cores:")
        for kind, all_of_them in seconds.items():
            print(f"  {kind:32} median {1000 * statistics.median(all_of_them):5.0f} ms  "
                  f"({1000 * min(all_of_them):.0f}–{1000 * max(all_of_them):.0f})  "
                  f"{statistics.median(all_of_them) / base:4.1f} ×")


if __name__ == "__main__":
    main()
