"""turnstile inspect, backup and restore on the journal of a real server, also while it is busy."""
import json
import os
import re
import struct
import subprocess
import threading
import unittest

import harness
import journal_files
from harness import Server, ServerCase, temporary_directory, wait_until

CLI = os.path.abspath(os.environ.get("TURNSTILE_CLI") or os.path.join(harness.HERE, "../../build/bin/turnstile"))


def turnstile(*words):
    """(exit code, stdout, stderr)"""
    done = subprocess.run([CLI, *words], capture_output=True, text=True, timeout=harness.PATIENCE, check=False,
                          env=harness.plain_environment())
    return done.returncode, done.stdout, done.stderr


def listing(directory):
    """What would show that somebody has touched it."""
    return {name: os.stat(os.path.join(directory, name)).st_mtime_ns for name in os.listdir(directory)}


class JournalToolsCase(ServerCase):
    def setUp(self):
        self.server = self.own_server()
        super().setUp()
        self.backup = os.path.join(temporary_directory(), "backup.tar")

    def tearDown(self):
        pass  # some servers have been stopped

    def succeed(self, *words):
        code, out, err = turnstile(*words)
        self.assertEqual(code, 0, out + err)
        return out

    def refused(self, *words):
        code, out, err = turnstile(*words)
        self.assertEqual((code, out), (1, ""), err)
        self.assertEqual(err.count("\n"), 1, "one line")
        return err

    def restored(self, backup=None):
        """A server on what the backup has."""
        server = Server()
        self.addCleanup(server.remove)
        self.succeed("restore", backup or self.backup, server.data)
        return server.start()


class InspectTest(JournalToolsCase):
    def sight(self, path=None):
        return json.loads(self.succeed("inspect", path or self.server.data, "--output", "json"))

    def test_a_running_servers_journal_is_summed_up_and_not_touched(self):
        token = self.hold("a")
        self.queue("b")
        self.queue("c")
        self.hold("d", resource_id="other")
        self.unlock("d", resource_id="other", result="42")
        before = listing(self.server.data)
        sight = self.sight()
        self.assertEqual(listing(self.server.data), before)
        facts = sight["facts"]
        self.assertEqual((facts["holds"], facts["waiters"], facts["completions"], facts["references"]), (1, 2, 1, 1))
        self.assertGreaterEqual(facts["highest_token"], token)
        self.assertEqual([f["name"] for f in sight["files"]], ["log-00000000000000000001"])
        self.unlock("a")  # all waiters end in one step
        facts = self.sight()["facts"]
        self.assertEqual((facts["holds"], facts["waiters"]), (0, 0))
        self.assertIn("journal", self.succeed("inspect", self.server.data))

    def test_the_dump_has_every_record_with_its_place(self):
        token = self.hold("a", info="who I am", lease_ms=60_000)
        self.queue("b")
        records = [json.loads(line) for line in self.succeed("inspect", self.server.data, "--dump").splitlines()]
        self.assertEqual(len(records), self.sight()["records"])
        hold = next(r for r in records if r["kind"] == "hold_set" and r["resource_id"] == self.resource)
        self.assertEqual((hold["type"], hold["node_id"], hold["number"], hold["info"], hold["lease_ms"]),
                         ("pull", "a", token, "who I am", 60_000))
        starts = {offset for offset, _ in journal_files.frames(self.server.log_files()[0])}
        self.assertTrue(all(r["at"] in starts and r["file"].startswith("log-") and r["batch"] for r in records))
        self.assertTrue(any(r["kind"] == "waiter_set" and r["node_id"] == "b" for r in records))

    def test_damage_is_told_with_file_and_byte(self):
        for node in "abcdef":
            self.hold(node, "own", resource_id=node)
        self.server.stop()
        path = self.server.log_files()[0]
        offset, _ = journal_files.frames(path)[3]
        self.assertIn("sound", self.succeed("inspect", self.server.data, "--verify"))
        journal_files.flip(path, offset + journal_files.FRAME_HEADER + 2)
        for words in (["inspect", self.server.data], ["inspect", self.server.data, "--dump"],
                      ["backup", self.server.data, self.backup]):
            self.assertIn(f"{path} at byte {offset}", self.refused(*words))
        self.assertFalse(os.path.exists(self.backup))
        code, out, err = turnstile("inspect", self.server.data, "--verify")
        self.assertEqual(code, 1)
        self.assertIn(f"{path} at byte {offset}", out)
        self.assertIn("1 of 1 files", err)

    def test_a_write_that_a_crash_interrupted_is_no_damage(self):
        self.hold("a")
        self.hold("b", resource_id="other")
        self.server.kill()
        path = self.server.log_files()[0]
        offset, size = journal_files.frames(path)[-1]
        journal_files.cut(path, offset + size - 5)
        sight = self.sight()
        self.assertTrue(sight["torn"])
        self.assertIn(f"{path} at byte {offset}", sight["torn_at"])

    def test_what_is_no_journal_or_of_another_version_is_refused(self):
        self.assertIn("no journal", self.refused("inspect", temporary_directory()))
        self.assertIn("not a backup", self.refused("inspect", __file__))
        self.assertIn("cannot open", self.refused("inspect", "x" * 300))
        self.hold("a")
        self.server.stop()
        path = self.server.log_files()[0]
        with open(path, "r+b") as file:  # format version 99, with a checksum of its own
            head = bytearray(file.read(24))
            struct.pack_into("<I", head, 8, 99)
            file.seek(0)
            file.write(bytes(head))
        self.assertRegex(self.refused("inspect", self.server.data), r"at byte 0: (the checksum of the file's header|it has format)")


class CopyStoreTest(JournalToolsCase):
    def copied(self, source, target):
        done = subprocess.run([harness.binary(), "--copy-from", source, "--store", target], capture_output=True, text=True,
                              timeout=harness.PATIENCE, env=harness.plain_environment(), check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_source_that_is_no_store_is_refused_and_nothing_is_made(self):
        folder = temporary_directory()
        wrong, target = os.path.join(folder, "jurnal"), os.path.join(folder, "new")
        code, said = self.copied("file:" + wrong, "file:" + target)
        self.assertEqual(code, 2, said)
        self.assertIn(wrong, said)
        self.assertEqual(os.listdir(folder), [])
        os.mkdir(wrong)
        code, said = self.copied("file:" + wrong, "file:" + target)
        self.assertEqual(code, 2, said)
        self.assertIn("no journal", said)
        self.assertEqual((os.listdir(folder), os.listdir(wrong)), (["jurnal"], []))

    def test_of_a_part_of_a_store_it_says_that_it_is_one(self):
        for i in range(20):
            self.hold("a", resource_id=f"r{i}")
        self.server.stop()
        path = self.server.log_files()[0]
        journal_files.flip(path, journal_files.frames(path)[-1][0] + journal_files.FRAME_HEADER + 2)
        target = os.path.join(temporary_directory(), "new")
        code, said = self.copied(self.server.store, "file:" + target)
        self.assertEqual(code, 2, said)
        self.assertIn(f"file:{target} has only a part of it, and no server starts on that: remove it", said)

    def test_a_journal_is_copied_into_a_new_directory(self):
        token = self.hold("a")
        self.server.stop()
        server = Server()
        self.addCleanup(server.remove)
        code, said = self.copied(self.server.store, server.store)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.status(client=server.start().client())["holder"]["token"], token)


class BackupTest(JournalToolsCase):
    def test_a_backup_of_a_running_server_is_restored_with_all_that_was_acknowledged(self):
        self.hold("a")
        self.queue("b")
        self.client.post("/refs/add", resource_id="layer", node_id="n1")
        out = json.loads(self.succeed("backup", self.server.data, self.backup, "--output", "json"))
        self.assertEqual(out["bytes"], os.path.getsize(self.backup))
        late = self.hold("late", resource_id="later")
        server = self.restored()
        client = server.client()
        self.assertEqual((self.holder(client=client), self.queued(server=server)), ("a", ["b"]))
        self.assertEqual(client.get("/refs", resource_id="layer")["count"], 1)
        self.assertIsNone(self.holder(resource_id="later", client=client))
        # Decision 0005: no token is given twice, not even one that the backup has never heard of.
        self.assertGreater(self.hold("next", resource_id="later", client=client), late)

    def test_a_server_of_this_machine_is_named_by_its_address(self):
        self.hold("a")
        url = f"http://{self.server.host}:{self.server.port}"
        self.succeed("backup", url, self.backup)
        self.assertEqual(self.holder(client=self.restored().client()), "a")
        memory = self.own_server(store="memory")
        code, _, err = turnstile("backup", f"http://{memory.host}:{memory.port}", self.backup + "2")
        self.assertEqual(code, 2)
        self.assertIn("memory", err)

    def test_a_directory_of_the_same_name_that_is_not_the_servers_is_refused(self):
        self.hold("a")
        url = f"http://{self.server.host}:{self.server.port}"
        moved = self.server.data + ".moved"
        os.rename(self.server.data, moved)  # the server goes on with its open files
        other = self.own_server()
        os.rename(other.data, self.server.data)
        self.assertIn("not the journal of that server", self.refused("backup", url, self.backup))

    def test_restore_refuses_a_directory_in_use_and_a_file_that_is_there(self):
        self.hold("a")
        self.succeed("backup", self.server.data, self.backup)
        self.assertIn("not empty", self.refused("restore", self.backup, self.server.data))
        self.assertIn("exists already", self.refused("backup", self.server.data, self.backup))
        self.assertEqual(self.holder(), "a")

    def test_a_directory_that_only_the_server_can_see_by_its_name_is_told(self):
        server = self.own_server(store="file:only-there")
        code, out, err = turnstile("backup", f"http://{server.host}:{server.port}", self.backup)
        self.assertEqual((code, out), (2, ""))
        for words in "'only-there'", "in which the server was started", "run this in that directory", "--store":
            self.assertIn(words, err)

    def test_tar_can_unpack_a_backup_and_the_server_starts_on_that(self):
        self.hold("a")
        self.succeed("backup", self.server.data, self.backup)
        server = Server()
        self.addCleanup(server.remove)
        os.mkdir(server.data, 0o700)
        subprocess.run(["tar", "-xf", self.backup, "-C", server.data], check=True)
        self.assertEqual(self.holder(client=server.start().client()), "a")

    def test_backups_under_load_are_states_that_existed(self):
        """Each node takes its resources one after the other, and remembers what was acknowledged. Snapshots come, too."""
        writers, stop, acknowledged = 4, threading.Event(), [0] * 4

        def work(number):
            client, padding = self.server.client(), "x" * 4000
            while not stop.is_set():
                calls = [{"call": "lock", "type": "own", "resource_id": f"w{number}-{acknowledged[number] + i}",
                          "node_id": "n", "info": padding} for i in range(50)]
                calls += [{"call": "unlock", "type": "own", "resource_id": "scratch", "node_id": "n"}]
                client.batch(*calls)
                acknowledged[number] += 50
        threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
        for thread in threads:
            thread.start()
        try:
            for turn in range(4):
                before = list(acknowledged)
                backup = f"{self.backup}.{turn}"
                self.succeed("backup", self.server.data, backup)
                after = [count + 50 for count in acknowledged]
                held = [set() for _ in range(writers)]
                for line in self.succeed("inspect", backup, "--dump").splitlines():
                    record = json.loads(line)
                    if match := re.fullmatch(r"w(\d)-(\d+)", record.get("resource_id", "")):
                        held[int(match.group(1))].add(int(match.group(2)))
                for number in range(writers):
                    self.assertGreaterEqual(len(held[number]), before[number], "acknowledged, and not in the backup")
                    self.assertLessEqual(len(held[number]), after[number])
                    self.assertEqual(held[number], set(range(len(held[number]))), "in the order in which they were made")
                if turn < 3:
                    wait_until(lambda: acknowledged[0] > before[0] + 500, "the writers go on")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        client = self.restored(f"{self.backup}.3").client()
        self.assertEqual(client.metric("turnstile_locks_held", operation="other"), sum(map(len, held)))


if __name__ == "__main__":
    if not os.access(CLI, os.X_OK):
        raise SystemExit(f"there is no program at {CLI}: set TURNSTILE_CLI, or run ./dev build")
    harness.main()
