"""Random faults while three nodes pull and remove: whatever happens, no node ever loses what it uses.

A round is one fault (the network to the server is cut, or cut at a report; the server is killed, or loses its store; a plugin
is killed; a node is alone for the whole round) and one pull or removal on each node, begun at the same time. After it others
come and go; then all plugins are started anew, because descriptors that are open hide a file that is gone, and every node must
have all that it uses. A seed that failed is played again with TURNSTILE_SEED; TURNSTILE_FAULTS="cut cut_off" are the only ones then.
"""
import contextlib
import hashlib
import json
import os
import random
import shutil
import tarfile
import threading
import time

from cluster_case import ROUNDS, ClusterCase, main
from processes import wait_until

IMAGES = 3
FAULTS = (os.environ.get("TURNSTILE_FAULTS") or
          "cut cut_at_a_report kill_server lose_store kill_plugin cut_off").split()
LONGEST = 13  # seconds of a cut: longer than a lease


class RandomFaults(ClusterCase):
    links = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        alone = cls.cluster.nodes[-1]  # one of them goes on without the server
        alone.plugin.stop()
        alone.flags = ["--without-server", "pull"]
        alone.start_plugin()

    def test_no_file_that_a_node_uses_is_ever_missing(self):
        seed = int(os.environ.get("TURNSTILE_SEED") or time.time_ns() % 1_000_000)
        print(f"TURNSTILE_SEED={seed}", flush=True)
        self.random = random.Random(seed)
        self.images = [self.image(layers=2, mebibytes=1) for _ in range(IMAGES)]
        self.uses = {node: set() for node in self.cluster.nodes}  # numbers of images
        faults = [getattr(self, name) for name in FAULTS]
        order = []
        for number in range(5 * ROUNDS):
            order = order or self.random.sample(faults, len(faults))
            fault = order.pop()
            began = time.monotonic()
            print(f"round {number}: {fault.__name__}", flush=True)
            self.play(fault)
            print(f"round {number}: good after {time.monotonic() - began:.1f} s", flush=True)
        self.end()

    # -- one round

    def play(self, fault):
        tasks = {node: self.random_task(node) for node in self.cluster.nodes}
        with fault(tasks):
            threads = [threading.Thread(target=self.attempt, args=(node, *task)) for node, task in tasks.items()]
            for thread in threads:
                thread.start()
            time.sleep(self.random.uniform(0, 1.5))  # not a wait for something: what the fault meets is to vary
        for thread in threads:
            thread.join()
        for node in self.cluster.nodes:
            wait_until(lambda: node.monitor("/readyz")[0] == 200, "the server is found again")
        # Whatever the fault made of it: now it is done.
        for node, (pull, image) in tasks.items():
            wait_until(lambda: self.attempt(node, pull, image), f"{node.name} can do it now", every=0.5)
            (self.uses[node].add if pull else self.uses[node].discard)(image)
        self.let_others_go()
        self.look()

    def let_others_go(self):
        """Whoever comes and goes takes a file with it that the server knows no other user of. While the plugins are those
        that have seen the fault: one that starts tells the server what its node uses."""
        for image in range(IMAGES):
            users = [node for node in self.cluster.nodes if image in self.uses[node]]
            visitor = self.any_node()
            if users and users != [visitor]:
                for pull in (True, False):
                    wait_until(lambda: self.attempt(visitor, pull, image), "a visitor comes and goes", every=0.5)
                self.uses[visitor].discard(image)

    def random_task(self, node):
        image = self.random.randrange(IMAGES)
        return (image not in self.uses[node] or self.random.random() < 0.3), image

    def attempt(self, node, pull, image):
        """Whether it is so now."""
        ref, _ = self.images[image]
        if pull:
            return node.pull(ref, check=False).returncode == 0
        done = node.ctr("images", "rm", "--sync", ref, check=False)
        return done.returncode == 0 or b"not found" in done.stderr

    def look(self):
        """What every node uses is there, and right, when nothing that is open can hide the contrary."""
        for node in self.cluster.nodes:
            node.plugin.kill()
        for node in self.cluster.nodes:
            node.start_plugin()
        for node in self.cluster.nodes:
            for image in self.uses[node]:
                for digest in self.images[image][1]:
                    self.assertEqual(self.read(node, digest), digest, f"image {image} on {node.name}")
        self.assert_files_are_what_they_are_called()

    def read(self, node, digest):
        """Its digest as it is read; or what went wrong. containerd takes a moment to find a plugin again."""
        def answer():
            done = node.ctr("content", "get", digest, check=False)
            if done.returncode == 0:
                return "sha256:" + hashlib.sha256(done.stdout).hexdigest()
            return None if b"unavailable" in done.stderr else done.stderr.decode()[-300:]
        return wait_until(answer, "containerd finds its plugin again", every=0.1)

    # -- the faults: each is given what the nodes are about to do, and may choose what it would like to meet

    def any_node(self):
        return self.random.choice(self.cluster.nodes)

    @contextlib.contextmanager
    def cut(self, _):
        node, seconds = self.any_node(), self.random.uniform(0, LONGEST)
        node.link.cut()
        yield
        time.sleep(seconds)  # the fault itself
        node.link.mend()

    @contextlib.contextmanager
    def cut_at_a_report(self, tasks):
        node, digest = self.any_node(), "sha256:"
        unused = set(range(IMAGES)).difference(*self.uses.values())
        if unused:  # only who downloads has something to report
            image = self.random.choice(sorted(unused))
            tasks[node] = (True, image)
            digest = self.random.choice(list(self.images[image][1]))
        node.link.cut_at("POST /unlock", digest, arrives=self.random.random() < 0.3)
        yield
        if node.link.cut_begun.wait(5):
            time.sleep(LONGEST)  # the fault itself
        node.link.mend()

    @contextlib.contextmanager
    def kill_server(self, _):
        yield
        self.cluster.turnstiled.kill()
        time.sleep(self.random.uniform(0, 3))  # the fault itself
        self.cluster.start_server()

    @contextlib.contextmanager
    def lose_store(self, _):
        before = self.random.random() < 0.5
        if not before:
            yield
        self.cluster.turnstiled.kill()
        shutil.rmtree(self.cluster.store)
        self.cluster.start_server()
        if before:
            yield

    @contextlib.contextmanager
    def kill_plugin(self, _):
        node = self.any_node()
        yield
        node.plugin.kill()
        node.start_plugin()

    @contextlib.contextmanager
    def cut_off(self, tasks):
        """While a node is alone it pulls what others have, and they give that up."""
        *others, node = self.cluster.nodes
        common = sorted(set().union(*(self.uses[other] for other in others)))
        image = self.random.choice(common or [0])
        tasks[node] = (True, image)
        users = [other for other in others if image in self.uses[other]]
        for user in users:
            tasks[user] = (True, image)  # nothing new, until the other has it, too
        node.link.cut()
        wait_until(lambda: node.monitor("/readyz")[0] == 503, "it has seen that it is cut off")
        yield
        self.attempt(node, True, image)
        for user in users:
            tasks[user] = (False, image)
            self.attempt(user, False, image)
        time.sleep(self.random.uniform(0, LONGEST))  # the fault itself
        node.link.mend()

    # -- the end

    def end(self):
        for node in self.cluster.nodes:
            for image in self.uses[node]:
                self.assert_exports(node, image)
        last, _ = self.image(layers=1, mebibytes=1)
        for node in self.cluster.nodes:
            node.end_leases()
            # containerd forgets what it could not remove because its plugin was being started, until it has something else
            # to remove.
            wait_until(lambda: node.pull(last, check=False).returncode == 0, "containerd finds its plugin again", every=0.5)
            for image in range(IMAGES):
                self.assertTrue(self.attempt(node, False, image))
            node.remove(last)
        for _, blobs in self.images:
            self.assert_nothing_left(blobs)
        wait_until(lambda: not self.cluster.all_files(), "no file is left")

    def assert_exports(self, node, image):
        ref, blobs = self.images[image]
        path = os.path.join(self.cluster.directory, "export.tar")
        node.ctr("images", "export", path, ref)
        with tarfile.open(path) as tar:
            names = [name for name in tar.getnames() if name.startswith("blobs/sha256/") and tar.getmember(name).isfile()]
            for name in names:
                self.assertEqual(hashlib.sha256(tar.extractfile(name).read()).hexdigest(), os.path.basename(name))
            json.load(tar.extractfile("index.json"))
        self.assertLessEqual({digest.split(":")[1] for digest in blobs}, {os.path.basename(name) for name in names})


if __name__ == "__main__":
    main()
