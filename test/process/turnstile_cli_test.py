"""The program `turnstile` against the real server: exec once in the cluster, hand-over, lost leases, every command in
text and json, and every fault as one line with the documented exit code."""
import contextlib
import fcntl
import http.server
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest

import harness
from harness import PATIENCE, ServerCase, wait_until
from slow_link import SlowLink

OK, USAGE, SKIPPED, BUSY, REFUSED, LOST, UNAVAILABLE, UNAUTHENTICATED = 0, 2, 10, 11, 12, 13, 14, 15


def program():
    path = os.environ.get("TURNSTILE_CLI") or os.path.join(harness.HERE, "../../build/bin/turnstile")
    if not os.access(path, os.X_OK):
        sys.exit(f"there is no program at {path}: set TURNSTILE_CLI, or run ./dev build")
    return os.path.abspath(path)


def start(*arguments, url=None, node=None, shell=None, **options):
    environment = {} if url is None else {"TURNSTILE_SERVER": url}
    if node:
        environment["TURNSTILE_NODE"] = node
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
               "env": harness.plain_environment(**environment), **options}
    return subprocess.Popen([*(shell or [program()]), *arguments], **options)


def run(*arguments, **options):
    process = start(*arguments, **options)
    out, error = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def read_lines(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


class Terminal:
    """A pseudo-terminal that is the controlling one of the program that gets its options()."""

    def __init__(self, case, columns=80, rows=24):
        self.main, self.side = pty.openpty()
        case.addCleanup(os.close, self.main)
        case.addCleanup(os.close, self.side)
        self.seen = b""
        self.resize(columns, rows)

    def resize(self, columns, rows):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def options(self):
        def become_its_session():
            os.setsid()
            fcntl.ioctl(self.side, termios.TIOCSCTTY, 0)
        return {"stdin": self.side, "stdout": self.side, "stderr": self.side, "preexec_fn": become_its_session}

    def type(self, text):
        os.write(self.main, text)

    def wait_for(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            if not select.select([self.main], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text} was not written: {self.seen}")
            self.seen += os.read(self.main, 65536)

    def is_as_usual(self):
        modes = termios.tcgetattr(self.main)[3]
        return bool(modes & termios.ICANON) and bool(modes & termios.ECHO)


class CliCase(ServerCase):
    store = "memory"

    def setUp(self):
        super().setUp()
        self.url = f"http://{self.server.host}:{self.server.port}"
        self.directory = harness.temporary_directory()
        self.log = os.path.join(self.directory, "log")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        super().tearDown()

    def turnstile(self, *arguments, node="a", url=None):
        return run(*arguments, url=url or self.url, node=node)

    def begin(self, *arguments, node="a", url=None, **options):
        process = start(*arguments, url=url or self.url, node=node, **options)
        self.started.append(process)
        return process

    def json(self, *arguments, **options):
        done = self.turnstile(*arguments, "--output", "json", **options)
        self.assertEqual((done.returncode, done.stderr), (OK, ""), done)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def text(self, *arguments, **options):
        done = self.turnstile(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (OK, ""), done)
        return done.stdout

    def assert_fault(self, done, code, *words):
        self.assertEqual((done.returncode, done.stdout), (code, ""), done)
        self.assertRegex(done.stderr, r"\Aturnstile: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, done.stderr)


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
        released = self.json("unlock", "update", self.resource, "--request-id", locked["request_id"])[0]
        self.assertEqual((released["released"], released["already"]), (True, False))

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

    def test_top_prints_one_picture_without_a_terminal(self):
        self.resource = "for-top"  # short enough for its column
        self.hold("holder")
        self.queue("waiter")
        text = self.text("top")
        self.assertIn("turnstiled 0.", text)
        self.assertRegex(text, rf"(?m)^1 +pull +{self.resource} +holder")
        self.assertIn(self.resource, [lane["resource_id"] for lane in self.json("top", "--once")[0]["locks"]])

    def test_top_restores_the_terminal(self):
        main, side = pty.openpty()
        top = self.begin("top", stdin=side, stdout=side, stderr=side)
        os.close(side)
        seen = b""
        while b"waiting" not in seen:
            seen += os.read(main, 65536)
        os.write(main, b"q")
        with contextlib.suppress(OSError):
            while piece := os.read(main, 65536):
                seen += piece
        os.close(main)
        self.assertEqual(top.wait(PATIENCE), OK)
        self.assertTrue(seen.startswith(b"\033[?1049h") and b"\033[?1049l" in seen, seen)

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
        self.assertRegex(self.text("bench", "--seconds", "0.1", "--mode", "pair"), r"\AMODE .*\npair .*/s")
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


class ExecTest(CliCase):
    flags = ("--bond-grace", "1s")

    def exec(self, script, *options, node="a", type="pull", **more):
        return self.begin("exec", type, self.resource, *options, "--", "sh", "-c", script, "sh", self.log, node=node,
                          **more)

    def test_twenty_at_once_run_it_exactly_once(self):
        processes = [self.exec('echo $$ >> "$1"; sleep 0.3', node=f"n{i}") for i in range(20)]
        for process in processes:
            process.communicate(timeout=PATIENCE)
        self.assertEqual([process.returncode for process in processes], [OK] * 20)
        self.assertEqual(len(read_lines(self.log)), 1)

    def test_each_failure_hands_over_to_exactly_one_and_tells_it_why(self):
        script = ('echo begin $TURNSTILE_ATTEMPT "$TURNSTILE_PREVIOUS_ERROR" >> "$1"; sleep 0.05; '
                  'echo end >> "$1"; [ $TURNSTILE_ATTEMPT -ge 4 ] || exit 7')
        self.hold("first")
        processes = [self.exec(script, node=f"n{i}") for i in range(8)]
        wait_until(lambda: len(self.queued()) == 8, "all wait")
        self.client.unlock(self.resource, "first", success=False, error="no luck")
        for process in processes:
            process.communicate(timeout=PATIENCE)
        self.assertEqual(read_lines(self.log), ["begin 2 no luck", "end", "begin 3 exit code 7", "end",
                                                "begin 4 exit code 7", "end"])
        self.assertEqual(sorted(process.returncode for process in processes), [0] * 6 + [7] * 2)

    def test_with_a_command_that_fails_three_times_exactly_four_run(self):
        script = 'echo $TURNSTILE_ATTEMPT >> "$1"; sleep 0.2; [ $(wc -l < "$1") -ge 4 ] || exit 7'
        processes = [self.exec(script, node=f"n{i}") for i in range(20)]
        for process in processes:
            process.communicate(timeout=PATIENCE)
        self.assertEqual(len(read_lines(self.log)), 4)
        self.assertEqual(sorted(process.returncode for process in processes), [0] * 17 + [7] * 3)

    def test_the_command_knows_its_hold_and_keeps_its_streams(self):
        process = self.begin("exec", "build", self.resource, "--", "sh", "-c",
                             'cat; echo "$TURNSTILE_TOKEN $TURNSTILE_ATTEMPT $TURNSTILE_RESOURCE"; echo oops >&2; exit 5',
                             stdin=subprocess.PIPE)
        out, error = process.communicate("in\n", timeout=PATIENCE)
        self.assertRegex(out, rf"\Ain\n\d+ 1 {self.resource}\n\Z")
        self.assertRegex(error, r"\Aoops\nturnstile: ran here, [^\n]*exit code 5[^\n]*\n\Z")
        self.assertEqual(process.returncode, 5)

    def test_a_command_that_a_signal_ended_is_a_failure_and_exits_as_a_shell_would(self):
        self.assertEqual(self.turnstile("exec", "pull", self.resource, "--", "sh", "-c", "kill -KILL $$").returncode,
                         128 + signal.SIGKILL)
        self.assertEqual(self.lock("b")["state"], "acquired")

    def test_a_command_that_cannot_be_run_is_a_failure(self):
        self.assert_fault(self.turnstile("exec", "pull", self.resource, "--", "/no/such/program"), 127, "/no/such")
        self.assert_fault(self.turnstile("exec", "pull", self.resource, "--", "/etc/passwd"), 126, "/etc/passwd")
        self.assertEqual(self.lock("b")["state"], "acquired")

    def test_a_permanent_exit_code_ends_all_waiters(self):
        done = self.turnstile("exec", "pull", self.resource, "--permanent-exit-codes", "66,67", "--", "sh", "-c",
                              "exit 67")
        self.assertEqual(done.returncode, 67)
        self.assert_fault(self.turnstile("exec", "pull", self.resource, "--", "true", node="b"), REFUSED,
                          "exit code 67")

    def test_signals_are_passed_on_to_the_whole_group(self):
        process = self.exec('trap "echo term >> $1; exit 9" TERM; sleep 600 & echo $! >> "$1"; wait')
        wait_until(lambda: read_lines(self.log), "it runs")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 9)
        lines = read_lines(self.log)
        self.assertEqual(lines[1], "term")
        self.assertFalse(alive(int(lines[0])))

    def test_what_a_command_leaves_behind_in_its_group_is_ended_before_the_release(self):
        done = self.turnstile("exec", "build", self.resource, "--", "sh", "-c", f"sleep 600 & echo $! > {self.log}")
        self.assertEqual(done.returncode, OK)
        self.assertFalse(alive(int(read_lines(self.log)[0])))

    def test_progress_reaches_those_who_wait(self):
        process = self.exec('echo 42 100 >&$TURNSTILE_PROGRESS_FD; echo x >> "$1"; read line', stdin=subprocess.PIPE)
        wait_until(lambda: self.status().body.get("holder", {}).get("done") == 42, "progress")
        waiter = self.begin("exec", "pull", self.resource, "--", "true", node="b")
        self.assertRegex(waiter.stderr.readline(), r"waiting for .*: position 1, held by a for .*, 42% \(42 of 100\)")
        process.communicate("\n", timeout=PATIENCE)
        _, error = waiter.communicate(timeout=PATIENCE)
        self.assertRegex(error, r"\Aturnstile: skipped after .*\nturnstile: skipped: .*\n\Z")

    def test_kill_9_of_the_holder_ends_its_command_before_the_next_begins_after_the_lease(self):
        self.kill_the_holder(["--lease", "2s"], "lease")

    def test_kill_9_of_the_holder_with_a_bond_hands_over_within_the_grace(self):
        # That it was the bond's end, after a grace of a second, is what the next one is told; a lease has an hour left.
        self.kill_the_holder(["--lease", "1h", "--bond"], "bond")

    def kill_the_holder(self, flags, reason):
        def scenario(i):
            self.resource += str(i)
            self.log += str(i)
            return self.one_killed_holder(flags, reason)
        self.race(scenario)

    def one_killed_holder(self, flags, reason):
        """False: the machine stalled, so that the holder had lost its lease before it could be killed."""
        # A child, a grandchild, and one that has left the group and the session.
        script = ('sleep 600 & echo $! >> "$1"; (sleep 600 & echo $! >> "$1"); setsid sleep 600 & '
                  'echo $! >> "$1"; echo $$ >> "$1"; wait')
        holder = self.exec(script, *flags)
        wait_until(lambda: len(read_lines(self.log)) == 4, "it runs")
        pids = [int(line) for line in read_lines(self.log)]
        alive_then = self.log + "-alive"
        # A zombie is gone; whether somebody has buried it is init's business.
        check = "".join(f"grep -qs '^State:.[^ZX]' /proc/{pid}/status && echo {pid} >> {alive_then}; " for pid in pids)
        other = self.begin("exec", "pull", self.resource, "--", "sh", "-c",
                           f'{check} echo "$TURNSTILE_PREVIOUS_ERROR"; echo $TURNSTILE_ATTEMPT', node="b")
        wait_until(lambda: self.queued() == ["b"] or holder.poll() is not None, "b waits")
        if holder.poll() is not None:
            other.communicate(timeout=PATIENCE)
            return False
        os.kill(holder.pid, signal.SIGKILL)
        for pid in pids:
            wait_until(lambda: not alive(pid), f"{pid} is gone")
        out, _ = other.communicate(timeout=PATIENCE)
        self.assertEqual((other.returncode, out), (OK, f"{reason}\n2\n"))
        self.assertEqual(read_lines(alive_then), [])
        return True

    def test_a_lost_lease_ends_the_group_before_the_next_begins(self):
        server = self.own_server("--bond-grace", "10m", store="memory")
        self.addCleanup(lambda: server.alive() and os.kill(server.pid, signal.SIGCONT))
        url = f"http://{server.host}:{server.port}"
        script = 'trap "" TERM; setsid sleep 600 & echo $! >> "$1"; echo $$ >> "$1"; while :; do sleep 1; done'
        holder = self.exec(script, "--lease", "2s", url=url)
        wait_until(lambda: len(read_lines(self.log)) == 2, "it runs")
        os.kill(server.pid, signal.SIGSTOP)
        # Nobody but the program itself can end it now: the server says nothing.
        _, error = holder.communicate(timeout=PATIENCE)
        self.assertEqual(holder.returncode, LOST)
        self.assertRegex(error, r"\Aturnstile: lost pull [^\n]*lease[^\n]*\n\Z")
        for pid in read_lines(self.log):
            self.assertFalse(alive(int(pid)))
        os.kill(server.pid, signal.SIGCONT)

    def test_a_stopped_cli_does_not_keep_its_command_alive(self):
        holder = self.exec('echo $$ >> "$1"; while :; do sleep 1; done', "--lease", "1s")
        wait_until(lambda: read_lines(self.log), "it runs")
        os.kill(holder.pid, signal.SIGSTOP)
        pid = int(read_lines(self.log)[0])
        wait_until(lambda: not alive(pid), "the command is gone")
        os.kill(holder.pid, signal.SIGCONT)
        holder.communicate(timeout=PATIENCE)
        self.assertEqual(holder.returncode, LOST)

    def test_a_machine_that_slept_for_longer_than_the_lease_has_lost_it(self):
        ahead = os.path.join(self.directory, "ahead")
        environment = harness.plain_environment(TURNSTILE_SERVER=self.url, TURNSTILE_NODE="a",
                                                **harness.preload("boot_clock.c", BOOT_CLOCK_AHEAD=ahead))
        for whom in "both", "supervisor":
            log = os.path.join(self.directory, whom)
            holder = self.begin("exec", "build", self.resource + whom, "--lease", "10m", "--", "sh", "-c",
                                f"echo $$ > {log}; while :; do sleep 0.1; done", env=environment)
            wait_until(lambda: read_lines(log), "it runs")
            if whom == "supervisor":
                os.kill(holder.pid, signal.SIGSTOP)  # then it is the supervisor alone who can see it
            with open(ahead, "w", encoding="ascii") as file:
                file.write("3600")
            wait_until(lambda: not alive(int(read_lines(log)[0])), "the command is gone")
            os.kill(holder.pid, signal.SIGCONT)
            _, error = holder.communicate(timeout=PATIENCE)
            self.assertEqual(holder.returncode, LOST, error)
            os.remove(ahead)

    def test_a_broken_hold_ends_the_command(self):
        holder = self.exec('echo $$ >> "$1"; while :; do sleep 1; done', "--lease", "1s")
        wait_until(lambda: read_lines(self.log), "it runs")
        self.client.post("/admin/break", type="pull", resource_id=self.resource, reason="enough")
        _, error = holder.communicate(timeout=PATIENCE)
        self.assertEqual(holder.returncode, LOST, error)
        self.assertFalse(alive(int(read_lines(self.log)[0])))

    def test_the_hold_is_renewed_for_as_long_as_the_command_runs(self):
        def scenario(i):
            done = self.turnstile("exec", "build", f"{self.resource}{i}", "--lease", "2s", "--", "sleep", "5")
            return done.returncode == OK and "ran here" in done.stderr
        self.race(scenario)

    def test_no_rate_of_progress_costs_the_lease(self):
        """A thousand lines a second over a link of 50 ms; for a minute in `./dev soak`, some seconds otherwise."""
        link = SlowLink(self.server.host, self.server.port, 0.025)
        self.addCleanup(link.close)
        seconds = float(os.environ.get("TURNSTILE_PROGRESS_SECONDS", "5"))
        script = ("import os, time\n"
                  f"fd, end, i = int(os.environ['TURNSTILE_PROGRESS_FD']), time.monotonic() + {seconds}, 0\n"
                  "while time.monotonic() < end:\n"
                  "    for i in range(i + 1, i + 11): os.write(fd, b'%d 1000000\\n' % i)\n"
                  "    time.sleep(0.01)\n")

        def scenario(i):
            self.resource += str(i)
            process = self.begin("exec", "build", self.resource, "--lease", "2s", "--", sys.executable, "-c", script,
                                 url=link.url)
            seen = set()
            while process.poll() is None:
                seen.add(self.status("build").body.get("holder", {}).get("done"))
                time.sleep(0.05)
            _, error = process.communicate()
            # It travels with each renewal, after a third of the lease, and by itself at most once a second.
            return process.returncode == OK and "lost" not in error and len(seen) <= 1.5 * seconds + 4
        self.race(scenario, tries=3)

    def test_ctrl_c_reaches_the_command_in_a_terminal(self):
        pid, main = pty.fork()
        if pid == 0:
            os.environ["TURNSTILE_SERVER"] = self.url
            os.execv(program(), [program(), "exec", "build", self.resource, "--", "sh", "-c",
                                 'trap "echo got-it; exit 4" INT; echo ready; while :; do sleep 0.1; done'])
        seen = b""
        while b"ready" not in seen:
            seen += os.read(main, 1024)
        os.write(main, b"\x03")
        with contextlib.suppress(OSError):
            while piece := os.read(main, 1024):
                seen += piece
        os.close(main)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 4)
        self.assertIn(b"got-it", seen)


class TerminalTest(CliCase):
    """exec as a job of a shell's, on a terminal."""

    def test_a_job_brought_to_the_foreground_gets_the_terminal(self):
        terminal = Terminal(self)
        environment = harness.plain_environment(TURNSTILE_SERVER=self.url, PS1="$ ", PATH=os.environ["PATH"])
        shell = self.begin(url=self.url, **terminal.options(), env=environment, shell=["bash", "--norc", "-i"])
        terminal.wait_for(b"$ ")
        terminal.type(f"{program()} exec build {self.resource} -- sh -c 'read line; echo got:$line' &\n".encode())
        terminal.wait_for(b"type fg")
        self.assertEqual(self.holder("build"), os.uname().nodename)
        shells_group = os.tcgetpgrp(terminal.main)
        terminal.type(b"fg\n")
        # The shell gives it to turnstile, and that to its command.
        job = wait_until(lambda: self.group_of_the_command(terminal, shells_group), "the command has the terminal")
        terminal.type(b"hello\n")
        terminal.wait_for(b"got:hello")
        wait_until(lambda: os.tcgetpgrp(terminal.main) == shells_group, "the shell has it again")
        self.assertNotEqual(job, shells_group)
        terminal.type(b"exit\n")
        shell.wait(PATIENCE)

    def group_of_the_command(self, terminal, shells_group):
        group = os.tcgetpgrp(terminal.main)
        with contextlib.suppress(OSError), open(f"/proc/{group}/comm", encoding="ascii") as name:
            return group if group != shells_group and name.read().strip() == "sh" else None

    def test_a_command_killed_in_raw_mode_leaves_the_terminal_as_it_was(self):
        terminal = Terminal(self)
        self.assertTrue(terminal.is_as_usual())
        process = self.begin("exec", "build", self.resource, "--", "sh", "-c", "stty raw -echo; echo r''aw; kill -9 $$",
                             **terminal.options())
        terminal.wait_for(b"raw")
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGKILL)
        self.assertTrue(terminal.is_as_usual())

    def test_a_lost_lease_leaves_the_terminal_as_it_was(self):
        terminal = Terminal(self)
        process = self.begin("exec", "build", self.resource, "--lease", "1s", "--", "sh", "-c",
                             "trap '' TERM; stty raw -echo; echo r''aw; while :; do sleep 1; done", **terminal.options())
        terminal.wait_for(b"raw")
        self.assertFalse(terminal.is_as_usual())
        self.client.post("/admin/break", type="build", resource_id=self.resource, reason="enough")
        self.assertEqual(process.wait(PATIENCE), LOST)
        self.assertTrue(terminal.is_as_usual())

    def test_a_command_that_ends_well_may_leave_its_own_modes(self):
        terminal = Terminal(self)
        process = self.begin("exec", "build", self.resource, "--", "stty", "-echo", **terminal.options())
        self.assertEqual(process.wait(PATIENCE), OK)
        self.assertFalse(terminal.is_as_usual())

    def test_a_job_in_the_background_takes_no_terminal_from_the_shell(self):
        terminal = Terminal(self)
        self.hold("first", "build")
        environment = harness.plain_environment(TURNSTILE_SERVER=self.url, PS1="$ ", PATH=os.environ["PATH"])
        shell = self.begin(url=self.url, **terminal.options(), env=environment, shell=["bash", "--norc", "-i"])
        terminal.wait_for(b"$ ")
        shells_group = os.tcgetpgrp(terminal.main)
        terminal.type(f"{program()} exec build {self.resource} -- touch {self.log}\n".encode())
        wait_until(lambda: self.queued("build"), "it waits")
        terminal.type(b"\x1a")
        terminal.wait_for(b"Stopped")
        terminal.type(b"bg\n")
        self.client.unlock(self.resource, "first", type="build", success=True)
        wait_until(lambda: os.path.exists(self.log), "the command has run")
        wait_until(lambda: self.status("build")["state"] == "idle", "it has ended")
        self.assertEqual(os.tcgetpgrp(terminal.main), shells_group)
        terminal.type(b"exit\n")
        shell.wait(PATIENCE)


class Answers(http.server.BaseHTTPRequestHandler):
    """Something that answers, and is no Turnstile server; or one that wants a token."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body, status, kind = self.server.answer
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def answering(body, status, kind="text/html"):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.answer = (body, status, kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def swallowing():
    """An address that answers nothing at all, as behind a firewall that drops: a listener whose queue is full."""
    with contextlib.ExitStack() as all_of_it:
        listener = all_of_it.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = all_of_it.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


class OnceTest(CliCase):
    """Once in the whole fleet, with a result for those who skip."""

    store = "file"

    def once(self, script, *options, node="a", **more):
        return self.begin("once", self.resource, *options, "--", "sh", "-c", script, "sh", self.log, node=node, **more)

    def test_fifty_at_once_and_a_server_that_is_killed_five_times(self):
        server = self.own_server()
        url = f"http://{server.host}:{server.port}"
        go = os.path.join(self.directory, "go")
        script = (f'echo $TURNSTILE_ATTEMPT >> "$1"; while [ ! -e {go} ]; do sleep 0.05; done; '
                  'echo version 7 >&$TURNSTILE_RESULT_FD')
        processes = [self.once(script, "--lease", "10m", "--wait", "30m", "--print-result", "--keep", "1h", "--quiet",
                               "--skip-code", "42", node=f"n{i}", url=url) for i in range(50)]

        def waiting():
            status = server.client().status(self.resource, type="once")
            return status.body.get("queue_length", len(status["queue"]))
        wait_until(lambda: waiting() == 49, "49 wait")
        for _ in range(5):
            server.kill_and_restart()
            wait_until(lambda: waiting() == 49, "they still do")
        with open(go, "w", encoding="ascii"):
            pass
        ends = [(process.communicate(timeout=PATIENCE), process.returncode) for process in processes]
        self.assertEqual(read_lines(self.log), ["1"])
        self.assertEqual(sorted(code for _, code in ends), [0] + [42] * 49)
        for (out, error), code in ends:
            self.assertEqual((out, error), ("version 7\n" if code == 42 else "", ""))
        server.kill_and_restart()
        late = self.turnstile("once", self.resource, "--print-result", "--", "false", url=url)
        self.assertEqual((late.returncode, late.stdout), (OK, "version 7\n"), late)
        self.assertRegex(late.stderr, rf"\Aturnstile: skipped: n\d+ did once {self.resource} \S+( \S+)? ago\n\Z")

    def test_it_runs_again_when_the_time_that_it_is_kept_is_over(self):
        def scenario(i):
            self.log += str(i)
            self.resource += str(i)
            began = time.monotonic()
            first = self.turnstile("once", self.resource, "--keep", "2s", "--", "sh", "-c", f"echo x >> {self.log}")
            self.assertEqual(first.returncode, OK, first)
            self.assertIn("ran here", first.stderr)
            runs = []
            while len(runs) < 2:
                self.turnstile("once", self.resource, "--keep", "2s", "--", "sh", "-c", f"echo x >> {self.log}")
                runs = read_lines(self.log)
            return 2 <= time.monotonic() - began < 10
        self.race(scenario, tries=3)

    def test_a_failure_hands_over_with_its_error(self):
        self.hold("first", "once")
        script = 'echo "$TURNSTILE_PREVIOUS_ERROR" >> "$1"; echo half >&$TURNSTILE_RESULT_FD; [ $TURNSTILE_ATTEMPT -gt 2 ] || exit 7'
        processes = [self.once(script, "--print-result", "--quiet", node=f"n{i}") for i in range(3)]
        wait_until(lambda: len(self.queued("once")) == 3, "all wait")
        self.client.unlock(self.resource, "first", type="once", success=False, error="no luck")
        outs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
        self.assertEqual(read_lines(self.log), ["no luck", "exit code 7"])
        self.assertEqual(sorted(process.returncode for process in processes), [0, 0, 7])
        self.assertEqual(sorted(outs), ["", "", "half\n"], "the one who skipped has the result of the one who succeeded")

    def test_it_leaves_no_reference(self):
        self.assertEqual(self.turnstile("once", self.resource, "--", "true").returncode, OK)
        self.assertEqual(self.text("refs", self.resource), "0 references\n")

    def test_exec_has_results_too_and_they_are_shown(self):
        done = self.turnstile("exec", "pull", self.resource, "--", "sh", "-c",
                              r"printf 'two\nlines\n' >&$TURNSTILE_RESULT_FD", node="a")
        self.assertEqual(done.returncode, OK, done)
        late = self.turnstile("exec", "pull", self.resource, "--print-result", "--", "false", node="b")
        self.assertEqual((late.returncode, late.stdout), (OK, "two\nlines\n"))
        self.assertRegex(late.stderr, r"skipped: a did pull ")
        self.assertIn("two lines", self.text("status", "pull", self.resource))
        lane = self.json("status", "pull", self.resource)[0]
        self.assertEqual(lane["completion"]["result"], "two\nlines")
        told = self.turnstile("exec", "pull", self.resource, "--output", "json", "--", "false", node="c")
        self.assertEqual({key: json.loads(told.stderr)[key] for key in ("state", "completed_by", "result")},
                         {"state": "skipped", "completed_by": "a", "result": "two\nlines"})

    def test_a_result_that_cannot_be_kept_is_left_out_and_said(self):
        for i, (script, why) in enumerate((("head -c 5000 /dev/zero | tr '\\0' x", "longer than 4096"),
                                           ("printf '\\377'", "no UTF-8"))):
            key = f"{self.resource}{i}"
            done = self.turnstile("once", key, "--", "sh", "-c", script + " >&$TURNSTILE_RESULT_FD")
            self.assertEqual(done.returncode, OK, done)
            self.assertIn(why, done.stderr)
            late = self.turnstile("once", key, "--print-result", "--", "false")
            self.assertEqual((late.returncode, late.stdout), (OK, ""))

    def test_unlock_takes_a_result_and_how_long_it_counts(self):
        token = self.text("lock", "once", self.resource).strip()
        released = self.json("unlock", "once", self.resource, "--token", token, "--result", "r", "--keep", "1h")[0]
        self.assertEqual((released["released"], released["keep_ms"]), (True, 3_600_000))
        late = self.turnstile("lock", "once", self.resource, "--output", "json", node="b")
        self.assertEqual((late.returncode, json.loads(late.stdout)["result"]), (SKIPPED, "r"))

    def test_a_command_that_takes_too_long_has_failed(self):
        for script in "sleep 600", 'trap "" TERM; while :; do sleep 1; done':
            done = self.turnstile("once", self.resource, "--timeout", "300ms", "--", "sh", "-c", script)
            self.assertEqual(done.returncode, 124, done)
            self.assertIn("timed out after 300ms", done.stderr)
        self.assertEqual(self.lock("b", "once")["state"], "acquired")

    def test_quiet_says_nothing_but_errors(self):
        for words in (("--", "true"), ("--", "false")):  # it runs, then it skips
            done = self.turnstile("once", self.resource, "--quiet", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (OK, "", ""))
        self.assert_fault(self.turnstile("once", self.resource, "--quiet", "--", "true", url="http://127.0.0.1:1"),
                          UNAVAILABLE)


class SilenceTest(CliCase):
    """A server's address that swallows packets: whoever waits for it is free to go."""

    CALLS = (("lock", "pull", "x"), ("lock", "pull", "x", "--wait", "10m"), ("unlock", "pull", "x", "--token", "1"),
             ("renew", "pull", "x", "--token", "1", "--lease", "1s"), ("cancel", "pull", "x", "--request-id", "r"),
             ("status",), ("status", "pull", "x"), ("list",), ("watch",), ("refs", "x"),
             ("break", "pull", "x", "--reason", "r"), ("top", "--once"), ("bench", "--seconds", "0.1"),
             ("exec", "pull", "x", "--", "true"), ("exec", "pull", "x", "--wait", "10m", "--", "true"),
             ("exec", "pull", "x", "--wait", "0", "--", "true"))
    SOON = 3  # seconds: it takes more than 5 to give a try up, and there are three or six of them

    def connecting(self, pid):
        """Whether a socket of the process is on its way (SYN_SENT): then its signals are set up, too."""
        with contextlib.suppress(OSError), open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
            waiting = {line.split()[9] for line in table if line.split()[3] == "02"}
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{name}")[8:-1] in waiting:
                        return True
        return False

    def interrupt(self, call, number, url):
        process = self.begin(*call, url=url)
        wait_until(lambda: self.connecting(process.pid), f"{call} connects")
        began = time.monotonic()
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        # A program that dies of a signal is 128+N to a shell, and -N to us.
        self.assertIn(process.returncode, (128 + number, -number), call)
        return time.monotonic() - began

    def test_signals_are_heard_at_once_by_every_command(self):
        with swallowing() as url:
            for call in self.CALLS:
                for number in signal.SIGINT, signal.SIGTERM:
                    self.race(lambda _: self.interrupt(call, number, url) < self.SOON, tries=3)

    def test_a_wait_ends_in_time(self):
        with swallowing() as url:
            for call in (("lock", "pull", "x", "--wait", "1s"), ("exec", "pull", "x", "--wait", "1s", "--", "true"),
                         ("exec", "pull", "x", "--wait", "0", "--", "true")):
                def scenario(_):
                    began = time.monotonic()
                    done = self.turnstile(*call, url=url)
                    self.assert_fault(done, UNAVAILABLE, url)
                    return time.monotonic() - began < 1 + self.SOON
                self.race(scenario, tries=3)

    def test_a_server_that_falls_silent_is_left_soon(self):
        server = self.own_server(store="memory")
        self.addCleanup(lambda: server.alive() and os.kill(server.pid, signal.SIGCONT))
        url = f"http://{server.host}:{server.port}"
        server.client().lock("r", "first")
        for words in ("lock", "pull", "r", "--wait", "10m"), ("exec", "pull", "r", "--", "true"):
            def scenario(_):
                waiter = self.begin(*words, node="b", url=url)
                wait_until(lambda: self.queued(resource_id="r", server=server) == ["b"], "b waits")
                os.kill(server.pid, signal.SIGSTOP)
                began = time.monotonic()
                waiter.send_signal(signal.SIGTERM)
                waiter.communicate(timeout=PATIENCE)
                took = time.monotonic() - began
                os.kill(server.pid, signal.SIGCONT)
                wait_until(lambda: self.queued(resource_id="r", server=server) == [], "nobody waits")
                self.assertEqual(waiter.returncode, 128 + signal.SIGTERM)
                return took < self.SOON
            self.race(scenario, tries=3)

    def test_a_release_that_nobody_hears_can_be_interrupted(self):
        server = self.own_server(store="memory")
        self.addCleanup(lambda: server.alive() and os.kill(server.pid, signal.SIGCONT))
        url = f"http://{server.host}:{server.port}"

        def scenario(i):
            holder = self.begin("exec", "build", f"r{i}", "--lease", "10m", "--", "sh", "-c",
                                f"kill -STOP {server.pid}; exit 3", url=url)
            wait_until(lambda: self.stopped(server.pid), "the server is stopped")
            began = time.monotonic()
            while holder.poll() is None and time.monotonic() < began + PATIENCE:
                holder.send_signal(signal.SIGTERM)  # the first ones may still reach the command
                time.sleep(0.05)
            holder.communicate()
            took = time.monotonic() - began
            os.kill(server.pid, signal.SIGCONT)
            self.assertEqual(holder.returncode, 3)
            return took < self.SOON
        self.race(scenario, tries=3)

    def stopped(self, pid):
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"


class FaultTest(CliCase):
    """Every fault is one line on stderr and its exit code."""

    CALLS = (("lock", "pull", "x"), ("lock", "pull", "x", "--wait", "10m"), ("unlock", "pull", "x"), ("status",),
             ("status", "pull", "x"), ("list",), ("watch",), ("refs", "x"), ("break", "pull", "x", "--reason", "r"),
             ("top", "--once"), ("bench", "--seconds", "0.1"), ("exec", "pull", "x", "--", "true"),
             ("exec", "pull", "x", "--wait", "10m", "--", "true"))

    def test_no_server(self):
        for call in self.CALLS:
            self.assert_fault(self.turnstile(*call, url="http://127.0.0.1:1"), UNAVAILABLE, "127.0.0.1:1", "--server")

    def test_an_address_that_is_none(self):
        for url in "ftp://127.0.0.1:21", "127.0.0.1:8086", "http://", "unix:":
            self.assert_fault(self.turnstile("list", url=url), USAGE, "http://HOST:PORT")

    def test_something_that_is_no_turnstile_server(self):
        for body, status in ((b"<html>hello</html>", 200), (b"not found", 404), (b"{}", 200)):
            with answering(body, status) as url:
                for call in self.CALLS:
                    if call == ("status",) or call[0] in ("watch", "bench") and body == b"{}":
                        continue  # an empty object passes for a version
                    self.assert_fault(self.turnstile(*call, url=url), UNAVAILABLE, url)

    def test_a_refused_token(self):
        body = b'{"error":"this token is not known","code":"unauthenticated"}'
        with answering(body, 401, "application/json") as url:
            for call in self.CALLS:
                self.assert_fault(self.turnstile(*call, url=url), UNAUTHENTICATED, "--token-file")

    def test_a_token_file_that_is_not_there_or_empty(self):
        self.assert_fault(self.turnstile("list", "--token-file", "/no/such/file"), USAGE, "/no/such/file")
        empty = os.path.join(self.directory, "empty")
        with open(empty, "w", encoding="ascii"):
            self.assert_fault(self.turnstile("list", "--token-file", empty), USAGE, empty)

    def test_a_token_is_sent(self):
        path = os.path.join(self.directory, "token")
        with open(path, "w", encoding="ascii") as file:
            file.write("  secret \n")
        seen = []
        original = Answers.answer

        def answer(handler):
            seen.append(handler.headers.get("Authorization"))
            original(handler)

        Answers.do_GET = answer
        self.addCleanup(setattr, Answers, "do_GET", original)
        with answering(b'{"locks":[]}', 200, "application/json") as url:
            self.assertEqual(self.turnstile("list", "--token-file", path, url=url).returncode, OK)
        self.assertEqual(seen, ["Bearer secret"])

    def test_wrong_words(self):
        for call in (("lock", "pull", "x", "--wait", "soon"), ("lock", "pull", "x", "--lease", "10"), ("frobnicate",),
                     (), ("exec", "pull", "x"), ("exec", "pull", "x", "--"),
                     ("exec", "pull", "x", "--lease", "0", "--", "true"), ("status", "pull"), ("refs",),
                     ("lock", "pull", "x" * 2000), ("lock", "t" * 100, "x")):
            self.assert_fault(self.turnstile(*call), USAGE)

    def test_a_newcomers_mistake_is_told_with_what_to_type(self):
        for call, words in (
                (("exec", "pull", "img", "echo", "hi"), ["turnstile exec pull img -- echo hi"]),
                (("exec", "pull", "img", "--wait", "1s", "ls", "-l"), ["turnstile exec pull img -- ls -l"]),
                (("once", "nightly", "./report.sh"), ["turnstile once nightly -- ./report.sh"]),
                (("once", "nightly"), ["turnstile once nightly -- COMMAND"]),
                (("exec", "--", "true"), ["TYPE", "turnstile exec TYPE RESOURCE -- COMMAND"]),
                (("list", "--output", "yaml"), ["--output", "text or json", "'yaml'"]),
                (("lock", "pull", "x", "--scope", "all"), ["--scope", "operation or resource", "'all'"]),
                (("lock", "pull", "x", "--lease", "1ms"), ["--lease must be from 100ms to "]),
                (("exec", "pull", "x", "--lease", "1ms", "--", "true"), ["--lease must be 100ms or more"]),
                (("unlock", "pull", "x", "12"), ["turnstile unlock pull x --token 12"]),
                (("--wait", "3s", "lock", "pull", "x"), ["turnstile lock pull x --wait 3s"]),
                (("lock", "pull", "x", "--wiat", "3s"), ["no option --wiat", "did you mean --wait?"]),
                (("exce", "pull", "x", "--", "true"), ["'exce' is no command", "did you mean exec?"]),
                (("pull", "x"), ["turnstile lock pull x", "turnstile exec pull x -- COMMAND"]),
                (("exec", "pull", "x", "--permanent-exit-codes", "300", "--", "true"), ["from 1 to 255", "'300'"]),
                (("lock", "pull", "x", "--wait", "soon"), ["--wait", "500ms, 10s, 5m, 1h"]),
                (("lock", "p" * 100, "x"), ["TYPE"])):
            with self.subTest(call=call):
                done = self.turnstile(*call)
                self.assert_fault(done, USAGE, *words)
                for word in "_ms", "FAILED", "->":
                    self.assertNotIn(word, done.stderr)
        self.assert_fault(self.turnstile("unlock", "pull", self.resource), LOST, "--token")

    def test_help_is_there_under_every_name_that_people_try(self):
        for words in ("help",), ("--help",), ("help", "exec"), ("exec", "--help"), ("once", "--help"):
            self.assertIn("Usage", self.text(*words))
        self.assertRegex(self.text("exec", "--help"), r"Usage: .*TYPE RESOURCE -- COMMAND")
        self.assertRegex(self.text("help", "once"), r"Usage: .*KEY -- COMMAND")

    def test_break_of_a_free_lane_is_refused(self):
        self.assert_fault(self.turnstile("break", "pull", self.resource, "--reason", "r"), REFUSED)

    def test_unlock_of_what_is_not_held_is_lost(self):
        self.assert_fault(self.turnstile("unlock", "pull", self.resource), LOST)

    def test_bench_of_a_server_elsewhere_wants_a_yes(self):
        self.assert_fault(self.turnstile("bench", url="http://10.0.0.1:8086"), USAGE, "--yes")

    def test_an_error_as_json_is_an_object_on_stderr(self):
        done = self.turnstile("break", "pull", self.resource, "--reason", "r", "--output", "json")
        self.assertEqual((done.returncode, done.stdout), (REFUSED, ""))
        error = json.loads(done.stderr)
        self.assertEqual((error["code"], error["exit"]), ("not_held", REFUSED))


if __name__ == "__main__":
    program()
    harness.main()
