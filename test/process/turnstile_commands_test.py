"""The commands of `turnstile` against the real server, in text and json."""
import json
import os
import signal
import subprocess
import threading
import time

import harness
from harness import PATIENCE, wait_until
from turnstile_program import BUSY, CliCase, LOST, OK, REFUSED, SKIPPED, Terminal, program, run


class CommandTest(CliCase):
    """Every command once, with text and with json."""

    def test_a_lock_outlives_the_program_and_is_released_with_its_token(self):
        token = self.text("lock", "update", self.resource).strip()
        self.assertEqual(self.status("update")["holder"]["token"], int(token))
        self.assertEqual(self.turnstile("lock", "update", self.resource, node="b").returncode, BUSY)
        self.assertEqual(self.text("unlock", "update", self.resource, "--token", token), "released\n")
        self.assertEqual(self.status("update")["state"], "idle")
        locked = self.json("lock", "update", self.resource)[0]
        self.assertEqual((locked["state"], locked["attempt"]), ("acquired", 1))
        self.assert_fault(self.turnstile("unlock", "update", self.resource), LOST, "if the hold is yours", "--request-id")
        released = self.json("unlock", "update", self.resource, "--request-id", locked["request_id"])[0]
        self.assertEqual((released["released"], released["already"]), (True, False))
        done = self.turnstile("unlock", "update", self.resource)
        self.assert_fault(done, LOST, "nobody holds this lock")
        self.assertNotIn("--token", done.stderr)

    def test_a_leased_lock_is_renewed_or_ends(self):
        token = self.text("lock", "update", self.resource, "--lease", "10m").strip()
        self.assertEqual(self.status("update")["holder"]["lease_ms"], 600_000)
        self.assertEqual(self.text("renew", "update", self.resource, "--token", token, "--lease", "20m"),
                         "renewed for 20m\n")
        self.assertEqual(self.json("renew", "update", self.resource, "--token", token, "--lease", "500ms")[0],
                         {"renewed": True, "lease_ms": 500})
        wait_until(lambda: self.status("update")["state"] == "idle", "the lease has run out")
        self.assert_fault(self.turnstile("renew", "update", self.resource, "--token", token, "--lease", "1s"), LOST)

    def test_a_waiting_lock_gets_its_turn_and_a_late_one_skips(self):
        token = self.hold("first")
        waiter = self.begin("lock", "pull", self.resource, "--wait", "10m", node="b")
        wait_until(lambda: self.queued() == ["b"], "b waits")
        self.assertEqual(self.text("unlock", "pull", self.resource, "--token", str(token), "--fail", "disk full",
                                   node="first"), "released; next is b\n")
        out, error = waiter.communicate(timeout=PATIENCE)
        self.assertEqual((waiter.returncode, error), (OK, ""))
        self.text("unlock", "pull", self.resource, "--token", out.strip(), node="b")
        late = self.turnstile("lock", "pull", self.resource, node="c")
        self.assertEqual((late.returncode, late.stdout), (SKIPPED, ""))
        self.assertIn("done already", late.stderr)
        late = self.turnstile("lock", "pull", self.resource, "--output", "json", node="c")
        self.assertEqual((late.returncode, json.loads(late.stdout)["state"]), (SKIPPED, "skipped"))

    def test_a_mistyped_operation_is_told_and_the_token_printed_all_the_same(self):
        for type, meant in ("Pull", "pull"), ("udpate", "update"):
            done = self.turnstile("lock", type, self.resource)
            self.assertRegex(done.stderr, rf'\Aturnstile: "{type}" is not "{meant}"[^\n]*everybody gets the lock[^\n]*\n\Z')
            self.assertEqual((done.returncode, int(done.stdout)), (OK, self.status(type)["holder"]["token"]))
        self.text("lock", "pull", self.resource)  # which say nothing
        self.text("lock", "image-layer", self.resource)
        self.json("lock", "Pull", self.resource + "2")

    def test_a_wait_ends_with_its_time_or_a_signal_and_leaves_the_queue(self):
        self.hold("first")
        self.assert_fault(self.turnstile("lock", "pull", self.resource, "--wait", "50ms", node="b"), BUSY)
        self.assertEqual(self.queued(), [])
        for number in signal.SIGINT, signal.SIGTERM:
            for words in ("lock", "pull", self.resource, "--wait", "10m"), ("exec", "pull", self.resource, "--", "true"):
                waiter = self.begin(*words, node="b")
                wait_until(lambda: self.queued() == ["b"], "b waits")
                waiter.send_signal(number)
                waiter.communicate(timeout=PATIENCE)
                self.assertEqual(waiter.returncode, 128 + number)
                self.assertEqual(self.queued(), [])

    def test_a_permanent_failure_is_told_to_everybody(self):
        token = self.hold("a")
        self.text("unlock", "pull", self.resource, "--token", str(token), "--fail", "404", "--permanent")
        self.assert_fault(self.turnstile("lock", "pull", self.resource, node="b"), REFUSED, "404")

    def test_cancel_leaves_the_queue(self):
        self.hold("first")
        self.queue("a", request_id="r1")
        self.assertEqual(self.text("cancel", "pull", self.resource, "--request-id", "r1"), "cancelled\n")
        self.assertEqual(self.json("cancel", "pull", self.resource, "--request-id", "r1"), [{"cancelled": False}])

    def test_status_shows_a_lane_or_the_server(self):
        self.hold("holder", info="two\nlines")
        self.queue("waiter")
        text = self.text("status", "pull", self.resource)
        self.assertRegex(text, rf"\Apull {self.resource}: held\n  holder +holder for .*\(two lines\)\n  waiter 1 +waiter")
        lane = self.json("status", "pull", self.resource)[0]
        self.assertEqual((lane["holder"]["node_id"], lane["queue"][0]["node_id"]), ("holder", "waiter"))
        self.assertIn("turnstiled 0.", self.text("status"))
        self.assertGreaterEqual(self.json("status")[0]["locks_held"], 1)

    def test_list_pages_through_everything_and_filters(self):
        for i in range(1_100):
            self.client.lock(f"{self.resource}/{i:04}", "a", type="list")
        lanes = self.json("list", "--prefix", self.resource + "/", "--type", "list", "--state", "held")
        self.assertEqual(sorted(lane["resource_id"] for lane in lanes),
                         [f"{self.resource}/{i:04}" for i in range(1_100)])
        self.assertEqual(len(self.json("list", "--prefix", self.resource + "/", "--limit", "7")), 7)
        lines = self.text("list", "--prefix", self.resource + "/000").splitlines()
        self.assertEqual(len(lines), 11)
        self.assertRegex(lines[0], r"^TYPE  RESOURCE +STATE  HOLDER  FOR")
        self.assertEqual({line.index("held") for line in lines[1:]}, {lines[0].index("STATE")})

    def test_watch_follows_a_lane_and_ends_with_ctrl_c(self):
        watcher = self.begin("watch", "pull", self.resource)
        all_of_it = self.begin("watch", "--prefix", self.resource, "--count", "2", "--output", "json")
        # Whether they have subscribed yet cannot be seen; so there are events until they have seen some.
        done = threading.Event()

        def events():
            client = self.server.client()
            while not done.is_set():
                token = client.lock(self.resource, "a")["token"]
                client.unlock(self.resource, "a", token=token, success=False, error="disk full")
                time.sleep(0.05)

        thread = threading.Thread(target=events)
        thread.start()
        try:
            lines = [watcher.stdout.readline(), watcher.stdout.readline()]
            out, _ = all_of_it.communicate(timeout=PATIENCE)
        finally:
            done.set()
            thread.join()
        self.assertRegex("".join(lines), rf"granted +pull {self.resource}  a  token \d+\n")
        self.assertRegex("".join(lines), rf"failed +pull {self.resource}  a  disk full\n")
        self.assertEqual(all_of_it.returncode, OK)
        self.assertEqual({json.loads(line)["event"] for line in out.splitlines()}, {"granted", "failed"})
        watcher.send_signal(signal.SIGINT)
        watcher.communicate(timeout=PATIENCE)
        self.assertEqual(watcher.returncode, OK)

    def test_references_are_added_shown_and_released(self):
        self.assertEqual(self.text("refs", self.resource), "0 references\n")
        self.assertEqual(self.text("refs", self.resource, "--add", node="n1"), "1 reference: n1\n")
        self.assertEqual(self.json("refs", self.resource, "--add", node="n2")[0]["count"], 2)
        self.assertEqual(self.text("refs", self.resource, "--release", node="n1"), "1 reference: n2\n")
        self.assert_fault(self.turnstile("lock", "delete", self.resource), REFUSED, "n2")
        self.assertEqual(self.text("refs", "--release-node", "n2"), "released 1 reference of n2\n")
        self.assertEqual(self.json("refs", "--release-node", "n2"), [{"node_id": "n2", "count": 0}])

    def test_break_ends_a_hold_and_tells_why(self):
        self.hold("a")
        self.assertEqual(self.text("break", "pull", self.resource, "--reason", "on fire"), "broken: it was held by a\n")
        self.hold("b")
        self.assertEqual(self.json("break", "pull", self.resource, "--reason", "again"),
                         [{"broken": True, "node_id": "b"}])

    def test_break_of_a_hold_that_has_ended_says_that_another_one_has_the_lock(self):
        self.hold("a")
        done = self.turnstile("break", "pull", self.resource, "--reason", "late", "--token", "1")
        self.assert_fault(done, REFUSED, "another hold", "token 1", f"turnstile status pull {self.resource}")

    def test_top_prints_one_picture_without_a_terminal(self):
        self.resource = "for-top"  # short enough for its column
        self.hold("holder")
        self.queue("waiter")
        text = self.text("top")
        self.assertIn("turnstiled 0.", text)
        self.assertRegex(text, rf"(?m)^1 +pull +{self.resource} +holder")
        self.assertIn(self.resource, [lane["resource_id"] for lane in self.json("top", "--once")[0]["locks"]])

    def test_top_restores_the_terminal(self):
        terminal = Terminal(self)
        top = self.begin("top", **terminal.options())
        terminal.wait_for(b"waiting")
        terminal.type(b"q")
        terminal.wait_for(b"\033[?1049l")
        self.assertEqual(top.wait(PATIENCE), OK)
        self.assertTrue(terminal.seen.startswith(b"\033[?1049h"), terminal.seen)

    def test_top_fits_the_window_and_follows_its_size(self):
        server = self.own_server(store="memory")
        client = server.client()
        for i in range(40):
            client.lock(f"r{i:02}", "a", type="top")
        terminal = Terminal(self, 80, 24)
        top = self.begin("top", url=f"http://{server.host}:{server.port}", **terminal.options())
        terminal.wait_for(b"22 more")
        for frame in terminal.seen.split(b"\033[H")[1:]:
            self.assertLess(frame.count(b"\n"), 24)
        terminal.resize(80, 30)
        terminal.wait_for(b"16 more")
        terminal.seen = b""
        terminal.type(b"r")
        terminal.wait_for(b"16 more")
        self.assertLess(terminal.seen.index(b"r00"), terminal.seen.index(b"r01"))
        os.kill(server.pid, signal.SIGSTOP)  # keys are heard whether the server answers or not
        self.addCleanup(lambda: server.alive() and os.kill(server.pid, signal.SIGCONT))
        terminal.type(b"q")
        self.assertEqual(top.wait(PATIENCE), OK)
        os.kill(server.pid, signal.SIGCONT)

    def test_bench_measures_every_mode(self):
        rows = self.json("bench", "--seconds", "0.3", "--connections", "2")
        self.assertEqual([row["mode"] for row in rows], ["pair", "handover", "fanout", "batch"])
        for row in rows:
            self.assertGreater(row["count"], 0, row)
        self.assertRegex(self.text("bench", "--seconds", "1", "--mode", "pair"), r"\AMODE .*\npair .*/s")
        self.assertEqual(self.client.get("/locks", prefix="bench-", state="held")["locks"], [])

    def test_completion_is_a_script_that_the_shell_accepts(self):
        for shell in "bash", "zsh":
            script = self.text("completion", shell)
            self.assertIn("--permanent-exit-codes", script)
        words = subprocess.run(
            ["bash", "-c", self.text("completion", "bash") +
             'COMP_WORDS=(turnstile exec pull x --per); COMP_CWORD=4; _turnstile; echo "${COMPREPLY[@]}"'],
            capture_output=True, text=True, check=True).stdout
        self.assertEqual(words.strip(), "--permanent-exit-codes")

    def test_version_is_one_line(self):
        self.assertRegex(self.text("--version"), r"\Aturnstile \d+\.\d+\.\d+\S*\n\Z")


if __name__ == "__main__":
    program()
    harness.main()
