"""A node never loses what it uses: the network is cut at the worst moment, the server forgets, a node is alone or is twice.

What a node has is looked at after its plugin was started anew: descriptors that are still open hide what is gone.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import time

from cluster_case import ClusterCase, main
from processes import Process, binary, own_address, read, wait_until


class BadDay(ClusterCase):
    nodes = 2
    links = True

    def holder_of(self, digest):
        with contextlib.closing(self.cluster.server()) as server:
            return server.status(digest).body.get("holder")

    def assert_still_has(self, node, blobs):
        node.plugin.kill()
        node.start_plugin()
        for digest in blobs:
            self.assertTrue(self.cluster.files_of(digest), f"{node.name} uses {digest}, and its file is gone")
        self.wait_until_found_again(node, blobs)
        self.assert_has(node, blobs)

    def wait_until_found_again(self, node, blobs):
        """containerd takes a moment to find its plugin, which has lost its connection."""
        def answers():
            done = node.ctr("content", "get", next(iter(blobs)), check=False)
            return done.returncode == 0 or b"unavailable" not in done.stderr
        wait_until(answers, "containerd finds its plugin again")

    def assert_users(self, blobs, *nodes):
        names = {node.name for node in nodes}
        for digest in blobs:
            wait_until(lambda: self.cluster.references(digest) == names, f"{names} use {digest}")

    def end(self, ref, blobs, *users):
        self.assert_users(blobs, *users)
        for node in users:
            node.remove(ref)
        self.assert_nothing_left(blobs)


class CutOffFromTheServer(BadDay):
    def test_a_cut_that_begins_when_a_download_is_to_be_reported_costs_no_use(self):
        self.cut_while_reporting(arrives=False)

    def test_a_report_whose_answer_is_lost_costs_no_use(self):
        self.cut_while_reporting(arrives=True)

    def cut_while_reporting(self, arrives):
        ref, blobs = self.image(layers=1, mebibytes=1)
        layer = self.largest(blobs)
        a, b = self.cluster.nodes
        # Of the others, too, nothing could be reported, and the pull would rightly fail.
        others = [digest for digest in blobs if digest != layer]
        a.link.cut_at("POST /unlock", layer, arrives=arrives, behind=lambda: all(map(self.cluster.references, others)))
        began = time.monotonic()
        pull = a.begin_pull(ref)
        self.assertTrue(a.link.cut_begun.wait(120), "it reports that it has the layer")
        self.assertTrue(self.cluster.files_of(layer), "which it has")
        wait_until(lambda: not self.holder_of(layer), "its lease has run out, or the report has come")
        # Longer than anything that the plugin believes in: a lease of 10 s.
        wait_until(lambda: time.monotonic() - began > 13, "13 s are over")
        a.link.mend()
        self.finish(a, pull)
        b.pull(ref)
        b.remove(ref)
        self.assert_still_has(a, blobs)
        self.end(ref, blobs, a)


class TheServerForgets(BadDay):
    """With plugins running, and neither of them told."""

    def test_a_server_that_comes_back_empty_is_told_again_before_anything_is_removed(self):
        ref, blobs = self.image(mebibytes=1)
        self.pull_at_once(ref)
        self.come_back_with(None)
        self.remove_on_one(ref, blobs)

    def test_so_is_one_that_comes_back_with_an_older_store(self):
        first, first_blobs = self.image(mebibytes=1)
        self.pull_at_once(first)
        self.cluster.turnstiled.stop()
        older = os.path.join(self.cluster.directory, "older")
        shutil.copytree(self.cluster.store, older)
        self.cluster.start_server()
        self.wait_until_all_are_ready()
        ref, blobs = self.image(mebibytes=1)
        self.pull_at_once(ref)
        self.remove_everywhere(first)
        self.assert_nothing_left(first_blobs)
        self.come_back_with(older)
        self.remove_on_one(ref, blobs)
        for digest in first_blobs:
            self.assertEqual(self.cluster.files_of(digest), [], "what the older store knew does not come back")

    def test_a_server_that_will_forget_is_not_trusted_in_silence(self):
        directory = os.path.join(self.cluster.directory, "forgetful")
        os.makedirs(os.path.join(directory, "run"), mode=0o700)
        server = Process([binary("turnstiled"), "--store", "memory", "--listen", own_address() + ":0"],
                         os.path.join(directory, "server.log"))
        self.addCleanup(server.stop)
        server.wait_until(lambda: "listening on" in read(server.log), "listens")
        address = read(server.log).split("listening on ")[1].split()[0]
        plugin = Process([binary("turnstile-content"), "--socket", os.path.join(directory, "run/content.sock"),
                          "--node", "x", "--server", f"http://{address}", "--root", os.path.join(directory, "root"),
                          "--state", os.path.join(directory, "state")], os.path.join(directory, "plugin.log"))
        self.addCleanup(plugin.stop, signal.SIGKILL)
        wait_until(lambda: "memory" in read(plugin.log), "it refuses, or warns of it", timeout=30)

    def come_back_with(self, store):
        self.cluster.turnstiled.kill()
        shutil.rmtree(self.cluster.store)
        if store:
            os.rename(store, self.cluster.store)
        self.cluster.start_server()
        self.wait_until_all_are_ready()

    def wait_until_all_are_ready(self):
        for node in self.cluster.nodes:
            wait_until(lambda: node.monitor("/readyz")[0] == 200, "the plugin has found the server")

    def remove_on_one(self, ref, blobs):
        a, b = self.cluster.nodes
        b.remove(ref)
        self.assert_still_has(a, blobs)
        self.end(ref, blobs, a)


class Alone(BadDay):
    """A node that the server cannot be reached from, and that is to pull all the same."""
    flags = ("--without-server", "pull")

    def test_what_a_node_uses_while_it_is_cut_off_is_not_taken_from_it(self):
        ref, blobs = self.image(mebibytes=1)
        a, b = self.cluster.nodes
        a.pull(ref)
        b.link.cut()
        wait_until(lambda: b.monitor("/readyz")[0] == 503, "it has seen that it is cut off")
        b.pull(ref)
        a.remove(ref)
        wait_until(lambda: not a.blobs() & set(blobs), "the first node has given it up")
        b.plugin.kill()
        b.start_plugin()
        self.wait_until_found_again(b, blobs)
        self.assert_has(b, blobs)
        b.link.mend()
        self.end(ref, blobs, b)


class AloneOverAMergedMount(Alone):
    """What it sees on another node's disk it cannot keep: it downloads a copy of its own."""
    shared = "mergerfs"


class TheSameNameTwice(BadDay):
    nodes = 1

    def test_a_second_machine_with_a_nodes_name_does_not_start_and_says_who_has_it(self):
        ref, blobs = self.image(mebibytes=1)
        a = self.cluster.nodes[0]
        a.pull(ref)
        for state in ("fresh", "cloned"):
            with self.subTest(state=state):
                second = self.start_second(a, state)
                wait_until(lambda: not second.alive() or "listening on" in read(second.log), "it starts or does not")
                started = second.alive()
                second.stop(signal.SIGKILL)
                self.assertFalse(started, "two machines are one node:\n" + read(second.log))
                self.assertIn(a.name, read(second.log))
                self.assertIn(os.uname().nodename, read(second.log), "which machine has the name")
        self.assert_still_has(a, blobs)
        self.end(ref, blobs, a)

    def test_a_second_machine_gives_up_nothing_while_the_first_is_away_and_the_name_is_free(self):
        """Not even the server knows then that there is another."""
        ref, blobs = self.image(mebibytes=1)
        a = self.cluster.nodes[0]
        a.pull(ref)
        a.plugin.stop()
        self.cluster.turnstiled.kill()  # which has forgotten everything when it is back
        shutil.rmtree(self.cluster.store)
        self.cluster.start_server()
        second = self.start_second(a, "away")
        wait_until(lambda: not second.alive() or "listening on" in read(second.log), "it starts or does not")
        started = second.alive()
        second.stop(signal.SIGKILL)
        self.assertFalse(started, "two machines are one node:\n" + read(second.log))
        self.assertIn(os.uname().nodename, read(second.log), "which machine has the name")
        owner = os.path.join(self.cluster.directory, "shared/uses", a.name, "owner")
        self.assertIn(f"remove {owner}, run `turnstile refs --release-node {a.name}` and start again", read(second.log))
        a.start_plugin()
        self.assert_still_has(a, blobs)
        self.end(ref, blobs, a)

    def start_second(self, node, state):
        """The same node's plugin, on a machine with another name and another machine-id."""
        directory = os.path.join(self.cluster.directory, "second-" + state)
        os.makedirs(os.path.join(directory, "run"), mode=0o700)
        if state == "cloned":
            shutil.copytree(os.path.join(node.directory, "content"), os.path.join(directory, "content"))
        with open(os.path.join(directory, "machine-id"), "w", encoding="utf-8") as file:
            file.write("0123456789abcdef0123456789abcdef\n")
        elsewhere = 'hostname elsewhere && mount --bind "$0" /etc/machine-id && exec "$@"'
        return Process(["unshare", "--mount", "--uts", "sh", "-c", elsewhere, os.path.join(directory, "machine-id"),
                        binary("turnstile-content"), "--socket", os.path.join(directory, "run/content.sock"),
                        "--node", node.name, "--server", self.cluster.server_url,
                        "--state", os.path.join(directory, "content"), *node.roots],
                       os.path.join(directory, "plugin.log"))


class FilesGoneOrDamaged(BadDay):
    links = False

    @staticmethod
    def damage(path, at=b""):
        """One bit, where `at` begins."""
        with open(path, "r+b") as file:
            file.seek(file.read().index(at))
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

    def verify(self, node, *flags):
        return subprocess.run([binary("turnstile-content"), "verify", *flags, "--node", node.name, *node.roots,
                               "--state", os.path.join(node.directory, "content")],
                              capture_output=True, text=True, timeout=120, check=False)

    def test_a_damaged_manifest_is_not_adopted(self):
        ref, blobs = self.image(mebibytes=1)
        a, b = self.cluster.nodes
        a.pull(ref)
        manifest = next(iter(blobs))
        self.damage(self.cluster.files_of(manifest)[0], b"schemaVersion")  # it can still be read as a manifest
        pull = b.pull(ref, check=False)
        if pull.returncode == 0:
            self.assertEqual(b.sha256_of(manifest), manifest, "a wrong manifest is used")
        else:
            self.assertIn("digest", pull.stderr.decode(), "it says what is wrong")
        self.heal(ref, blobs)

    def test_verify_tells_what_is_gone_and_what_is_damaged_and_it_can_be_healed_as_the_guide_says(self):
        ref, blobs = self.image(mebibytes=1)
        a, _ = self.cluster.nodes
        self.pull_at_once(ref)
        good = self.verify(a)
        self.assertEqual(good.returncode, 0, good.stdout + good.stderr)
        gone, damaged = sorted(blobs, key=blobs.get)[-2:]
        os.unlink(self.cluster.files_of(gone)[0])
        self.damage(self.cluster.files_of(damaged)[0])
        bad = self.verify(a)
        self.assertEqual(bad.returncode, 1, bad.stdout + bad.stderr)
        said = bad.stdout + bad.stderr
        for digest in blobs:
            (self.assertIn if digest in (gone, damaged) else self.assertNotIn)(digest, said)
        self.heal(ref, blobs)

    def test_what_one_node_has_healed_for_all_is_lost_to_none_when_the_server_forgets(self):
        """Who puts a damaged file away takes everybody's second name."""
        ref, blobs = self.image(mebibytes=1)
        a, b = self.cluster.nodes
        self.pull_at_once(ref)
        layer = self.largest(blobs)
        self.assert_all_have(blobs)  # so that it is open
        self.damage(self.cluster.files_of(layer)[0])
        said = [self.verify(node, "--put-away").stdout for node in (a, b)]  # one of them has it on its disk
        self.assertTrue(any(layer + " damaged: the file holds other bytes; put away" in text for text in said), said)
        for node in (a, b):
            wait_until(lambda: node.ctr("content", "get", layer, check=False).returncode != 0, "nobody reads wrong bytes")
        a.remove(ref)
        a.pull(ref)
        self.assert_users(blobs, a, b)
        self.cluster.turnstiled.kill()
        shutil.rmtree(self.cluster.store)
        self.cluster.start_server()
        a.remove(ref)
        self.assert_users(blobs, b)
        self.assert_still_has(b, blobs)
        if self.shared == "plain":
            name = os.path.join(b.roots[1], "uses", b.name, layer.replace(":", "/"))
            wait_until(lambda: os.path.exists(name), "the other one has a second name, too")
        self.end(ref, blobs, b)

    def heal(self, ref, blobs):
        """docs/containerd.md: remove the image where it is used, pull it again."""
        for node in self.cluster.nodes:
            node.ctr("images", "rm", "--sync", ref, check=False)
        self.assert_nothing_left(blobs)
        self.pull_at_once(ref)
        self.assert_all_have(blobs)
        self.remove_everywhere(ref)
        self.assert_nothing_left(blobs)


class FilesGoneOrDamagedOverAMergedMount(FilesGoneOrDamaged):
    """Only the node on whose disk a file lies can put it away; the others must not use it."""
    shared = "mergerfs"


if __name__ == "__main__":
    main()
