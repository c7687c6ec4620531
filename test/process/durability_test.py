"""What a crash, damaged files and a failing disk do to the real server: nothing acknowledged is lost (S31, S32, X9)."""
import os
import resource
import shutil
import signal
import subprocess
import time

import harness
import journal_files
from client import BrokenAnswer
from harness import Server, ServerCase, preload, wait_until


class DurabilityCase(ServerCase):
    """Every test has a server of its own, which it crashes."""

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.resource = "r"
        self.server = Server(*self.flags)
        self.addCleanup(self.server.remove)
        self.server.start()
        self.client = self.server.client()

    def tearDown(self):
        pass

    def crash(self):
        self.server.kill_and_restart()
        self.client = self.server.client()

    def take_a_snapshot(self):
        lane = {"type": "own", "resource_id": "busy", "node_id": "b"}
        batch = [{"call": "lock", **lane, "info": "x" * 4000}, {"call": "unlock", **lane, "error": "y" * 4000}] * 100

        def snapshot_taken():
            self.assertEqual(self.client.batch(*batch).status, 200)
            return "snapshot taken" in self.server.log()
        wait_until(snapshot_taken, "the log is long enough for a snapshot", every=0)


class CrashTest(DurabilityCase):
    def test_X9_S31_a_hold_survives_kill_9_with_its_token_info_lease_and_request(self):
        token = self.hold("a", request_id="1", info="text", lease_ms=3_600_000)
        before = self.status().body
        self.crash()
        self.assertEqual(self.status().body, before)
        self.assertEqual(self.hold("a", request_id="1"), token)
        self.assertTrue(self.unlock("a", request_id="1", token=token)["released"])

    def test_X9_S31_queues_survive_kill_9_in_their_order(self):
        self.hold("a")
        nodes = [f"w{(i * 37) % 100}" for i in range(100)]
        for node in nodes:
            self.queue(node)
        self.crash()
        self.assertEqual(self.queued(), nodes)
        self.assertEqual(self.queue("w37"), 2)
        self.assertEqual(self.unlock("a", error="no")["next"], "w0")
        self.crash()
        self.assertEqual((self.holder(), self.queued()), ("w0", nodes[1:]))
        answer = self.lock("w0")
        self.assertEqual((answer["attempt"], answer["previous_error"]), (2, "no"))

    def test_S38_S39_a_kept_success_and_its_result_survive_kill_9_and_a_snapshot(self):
        result = "line 1\nline 2 \u00e4" + "x" * 4000
        lane = {"type": "once", "resource_id": "nightly"}
        token = self.client.post("/lock", **lane, node_id="a").body["token"]
        self.client.post("/lock", **lane, node_id="waits")
        answer = self.client.post("/unlock", **lane, node_id="a", token=token, keep_ms=3_600_000, result=result)
        self.assertEqual(answer.body["keep_ms"], 3_600_000)
        for restart in self.crash, lambda: (self.take_a_snapshot(), self.crash()):
            restart()
            for node in "waits", "comes-late":
                skipped = self.client.post("/lock", **lane, node_id=node).body
                self.assertEqual((skipped["skip"], skipped["completed_by"], skipped["result"]), (True, "a", result))
        self.assertTrue(self.client.post("/admin/forget", **lane).body["forgotten"])
        self.crash()
        self.assertTrue(self.client.post("/lock", **lane, node_id="again").body["acquired"])

    def test_X9_S31_completions_references_and_permanent_failures_survive_kill_9(self):
        self.hold("a")
        self.unlock("a")
        self.hold("a", resource_id="bad")
        self.unlock("a", resource_id="bad", error="404", permanent=True)
        self.client.post("/refs/add", resource_id="used", node_id="n1")
        self.client.post("/refs/add", resource_id="used", node_id="n2")
        self.client.post("/refs/release", resource_id="used", node_id="n1")
        before = self.client.get("/locks").body
        self.crash()
        self.assertEqual(self.client.get("/locks").body, before)
        self.assertTrue(self.lock("b")["skip"])
        self.assert_refused(self.lock("b", resource_id="bad"), 403, "failed")
        self.assertEqual(self.client.get("/refs", resource_id="used")["nodes"], ["n2"])

    def test_X9_S2_a_remembered_skip_survives_kill_9(self):
        # The success itself is not kept, so that only the waiter's own outcome can tell it.
        self.server.remove()
        self.server = self.own_server("--references", "client", "--retain-completed", "0")
        self.client = self.server.client()
        self.hold("a")
        self.queue("b")
        self.unlock("a")
        self.crash()
        self.assertTrue(self.status(node_id="b")["success"])
        self.assertTrue(self.lock("b")["skip"])
        self.hold("c")

    def test_X9_S15_a_released_token_is_remembered_over_kill_9(self):
        token = self.hold("a", "own")
        self.unlock("a", "own", token=token)
        self.crash()
        again = self.unlock("a", "own", token=token)
        self.assertEqual((again["released"], again["already"]), (True, True))

    def test_X8_tokens_grow_over_every_kill_9(self):
        last = 0
        for i in range(5):
            for node in "ab":
                token = self.hold(node, "own", resource_id=f"r{i}{node}")
                self.assertGreater(token, last)
                last = token
            self.crash()

    def test_X8_tokens_grow_even_if_an_old_copy_of_the_data_is_restored(self):
        self.hold("a", "own", resource_id="r1")
        self.server.kill()
        backup = self.server.data + "-backup"
        shutil.copytree(self.server.data, backup)
        self.server.restart()
        self.client = self.server.client()
        last = max(self.hold("a", "own", resource_id=f"later{i}") for i in range(100))
        self.server.kill()
        shutil.rmtree(self.server.data)
        shutil.copytree(backup, self.server.data)
        self.server.restart()
        self.client = self.server.client()
        self.assertGreater(self.hold("a", "own", resource_id="r2"), last)

    def test_S31_a_clean_restart_keeps_everything(self):
        self.hold("a")
        self.queue("b")
        self.hold("x", "own", scope="resource", resource_id="other")
        before = self.client.get("/locks").body
        self.assertEqual(self.server.stop(), 0)
        self.server.restart()
        self.assertEqual(self.server.client().get("/locks").body, before)

    def test_S31_a_snapshot_replaces_the_log_and_everything_survives_kill_9(self):
        for i in range(300):
            self.hold("a", "own", resource_id=f"kept{i}", info=str(i))
        self.take_a_snapshot()
        before = self.client.get("/locks", limit=1000).body
        self.crash()
        self.assertEqual(self.client.get("/locks", limit=1000).body, before)
        self.assertEqual(len(before["locks"]), 300)
        names = os.listdir(self.server.data)
        self.assertEqual(sum(name.startswith("snapshot-") for name in names), 1, names)
        self.assertNotIn("log-00000000000000000001", names)

    def test_S31_the_first_request_after_a_crash_may_be_a_read(self):
        for _ in range(5):
            self.hold("a", lease_ms=3_600_000)
            self.queue("b")
            self.crash()
            self.assertEqual((self.holder(), self.queued()), ("a", ["b"]))

    def test_S31_a_lease_gets_its_full_time_again_after_a_crash(self):
        lease = 4.0

        def scenario(i):
            # Half of it is over when the server dies. Afterwards it lasts for all of it, and not for what was left.
            resource = f"{self.resource}{i}"
            self.hold("a", resource_id=resource, lease_ms=int(lease * 1000))
            begun = time.monotonic()
            wait_until(lambda: time.monotonic() > begun + lease / 2, "half of the lease is over")
            self.server.kill()
            if time.monotonic() > begun + lease * 0.9:
                self.server.restart()
                self.client = self.server.client()
                return False  # the machine stalled: it may have run out before
            restarting = time.monotonic()
            self.server.restart()
            self.client = self.server.client()
            stream = self.server.stream(type="pull", resource_id=resource)
            self.assertEqual(stream.next_of("expired")["reason"], "lease")
            self.assertGreater(time.monotonic() - restarting, lease * 0.9, "it had its full time")
            self.assertIsNone(self.holder(resource_id=resource))
            return True
        self.race(scenario)

    def test_X5_ids_with_separators_do_not_alias_on_disk(self):
        pairs = [("a:b", "c"), ("a", "b:c"), ("a/b", "c"), ("a", "b/c"), ('a"', "c"), ("a", '"c'), ("日本", "語")]
        for kind, name in pairs:
            self.hold("n", kind, resource_id=name)
        self.crash()
        for kind, name in pairs:
            self.assertEqual(self.holder(kind, resource_id=name), "n")

    def test_S31_the_data_directory_is_for_its_owner_only(self):
        self.hold("a")
        self.assertEqual(os.stat(self.server.data).st_mode & 0o777, 0o700)
        for path in self.server.log_files():
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_S31_nothing_is_kept_with_the_memory_store(self):
        server = self.own_server(store="memory")
        self.hold("a", client=server.client())
        server.kill_and_restart()
        self.assertIsNone(self.holder(client=server.client()))


class DamageTest(DurabilityCase):
    """The files as a crash or a bad disk may leave them."""

    def fill(self):
        """Ten holds that are on disk, and a log of at least ten frames; the last spans several sectors."""
        for i in range(10):
            self.hold("a", resource_id=f"r{i}")
        self.hold("last", resource_id="last", info="x" * 3000)
        self.server.kill()
        path = self.server.log_files()[-1]
        frames = journal_files.frames(path)
        self.assertGreaterEqual(len(frames), 11)
        return path, frames

    def assert_only_the_last_is_gone(self, path, offset):
        self.server.restart()
        self.client = self.server.client()
        self.assertEqual([self.holder(resource_id=f"r{i}") for i in range(10)], ["a"] * 10)
        self.assertIsNone(self.holder(resource_id="last"))
        cut = [line for line in self.server.log().splitlines() if "incomplete" in line]
        self.assertEqual(len(cut), 1, self.server.log())
        self.assertIn(os.path.basename(path), cut[0])
        self.assertIn(str(offset), cut[0])
        self.hold("b", resource_id="last")
        self.crash()
        self.assertEqual(self.holder(resource_id="last"), "b")

    # As after a power cut in the middle of a write: the batch had not been acknowledged, for it is not whole.

    def test_S31_a_torn_tail_that_the_file_ends_in_is_cut_and_told(self):
        path, frames = self.fill()
        offset, size = frames[-1]
        journal_files.cut(path, offset + size // 2)
        self.assert_only_the_last_is_gone(path, offset)

    def test_S31_a_torn_tail_with_a_sector_that_was_never_written_is_cut_and_told(self):
        path, frames = self.fill()
        offset, size = frames[-1]
        sector = (offset + size // 2) // 512 * 512
        journal_files.overwrite(path, sector, bytes(512))
        self.assert_only_the_last_is_gone(path, offset)

    def refused_to_start(self):
        """What the server says that does not start, in one line."""
        run = subprocess.run([harness.binary(), "--listen", "127.0.0.1:0", "--store", self.server.store],
                             capture_output=True, text=True, timeout=harness.PATIENCE, check=False,
                             env=harness.plain_environment())
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        return run.stderr

    def test_S31_a_flipped_byte_in_the_middle_refuses_to_start_and_names_file_and_byte(self):
        path, frames = self.fill()
        offset, size = frames[4]
        with open(path, "rb") as file:
            good = file.read()
        for place in 1, 20, 40, size // 2 + 28, size - 1:
            journal_files.flip(path, offset + place)
            message = self.refused_to_start()
            self.assertIn(os.path.basename(path), message)
            self.assertIn(f"byte {offset}", message)
            journal_files.flip(path, offset + place)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), good, "refusing to start has changed the file")
        self.server.restart()
        self.assertEqual(self.holder(resource_id="last", client=self.server.client()), "last")

    def test_S31_a_flipped_byte_in_the_last_batch_refuses_to_start_too(self):
        path, frames = self.fill()
        journal_files.flip(path, frames[-1][0] + 100)
        self.assertIn(f"byte {frames[-1][0]}", self.refused_to_start())

    def test_S31_a_wrong_file_header_refuses_to_start(self):
        path, _ = self.fill()
        journal_files.flip(path, 3)
        self.assertIn(os.path.basename(path), self.refused_to_start())

    def test_S31_a_missing_log_file_or_snapshot_refuses_to_start(self):
        self.hold("a")
        self.take_a_snapshot()
        self.server.kill()
        snapshot = next(path for path in os.listdir(self.server.data) if path.startswith("snapshot-"))
        behind_it = max(self.server.log_files())
        for missing in behind_it, os.path.join(self.server.data, snapshot):
            os.rename(missing, missing + ".away")
            message = self.refused_to_start()
            self.assertIn("missing", message)
            if missing == behind_it:
                self.assertIn(os.path.basename(missing), message)
            os.rename(missing + ".away", missing)
        self.server.restart()
        self.assertEqual(self.holder(client=self.server.client()), "a")

    def test_S31_a_second_server_on_the_same_directory_refuses_to_start(self):
        self.hold("a")
        message = self.refused_to_start()
        self.assertIn(self.server.data, message)
        self.assertIn("another server", message)
        self.assertEqual(self.holder(), "a")


class FailingDiskTest(DurabilityCase):
    """A disk that refuses: the server says why, stops at once, and has promised nothing that it does not keep."""

    def setUp(self):
        self.resource = "r"

    def load_until_it_breaks(self, server):
        """Locks resource after resource until the server goes. Returns those that were acknowledged."""
        client, acknowledged = server.client(), {}
        try:
            for i in range(100_000):
                answer = client.lock(f"r{i}", "a", info="x" * 4000)
                if answer.status == 503:
                    break
                self.assertEqual(answer.status, 200)
                acknowledged[f"r{i}"] = answer["token"]
        except (OSError, BrokenAnswer):
            pass
        return acknowledged

    def assert_stopped_and_lost_nothing(self, server, acknowledged, why):
        self.assertNotEqual(server.wait_for_end(), 0)
        self.assertIn(why, server.log())
        self.assertGreater(len(acknowledged), 3)
        server.environment, server.limits = {}, {}
        server.restart()
        client = server.client()
        for name, token in acknowledged.items():
            self.assertEqual(self.status(resource_id=name, client=client)["holder"]["token"], token)
        self.hold("b", client=client, resource_id="new")
        # Of the one that was not answered either outcome is right, but asking again must settle it.
        self.hold("a", client=client, resource_id=f"r{len(acknowledged)}")

    def own(self, **options):
        server = Server(**options)
        self.addCleanup(server.remove)
        return server.start()

    def test_S31_S32_a_file_that_may_not_grow_stops_the_server_and_loses_nothing(self):
        server = self.own(limits={resource.RLIMIT_FSIZE: 1536 * 1024}, ignore_signals=[signal.SIGXFSZ])
        self.assert_stopped_and_lost_nothing(server, self.load_until_it_breaks(server), "File too large")

    def test_S31_S32_a_full_disk_stops_the_server_and_loses_nothing(self):
        server = self.own(environment=preload("disk.c", DISK_FAILS="pwrite:ENOSPC:30"))
        self.assert_stopped_and_lost_nothing(server, self.load_until_it_breaks(server), "No space left on device")

    def test_S32_a_disk_whose_fsync_fails_from_now_on_stops_the_server_and_loses_nothing(self):
        server = self.own(environment=preload("disk.c", DISK_FAILS="sync:EIO:20"))
        self.assert_stopped_and_lost_nothing(server, self.load_until_it_breaks(server), "Input/output error")

    def test_S31_a_disk_that_fails_while_starting_refuses_to_start(self):
        server = Server()
        self.addCleanup(server.remove)
        server.start()
        self.hold("a", client=server.client())
        server.kill()
        server.limits = {resource.RLIMIT_FSIZE: 16}
        server.ignore_signals = [signal.SIGXFSZ]
        with self.assertRaisesRegex(AssertionError, "exit code [1-9]"):
            server.restart()
        server.limits = {}
        server.restart()
        self.assertEqual(self.holder(client=server.client()), "a")


if __name__ == "__main__":
    harness.main()
