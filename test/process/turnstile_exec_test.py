"""`turnstile exec` against the real server: once in the cluster, hand-over, signals, lost leases."""
import os
import signal
import subprocess
import sys
import time

import harness
from harness import PATIENCE, wait_until
from slow_link import SlowLink
from turnstile_program import CliCase, LOST, OK, REFUSED, Terminal, alive, program, read_lines


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

    def test_a_mistyped_operation_is_told(self):
        for type, said in ("Pull", '"Pull" is not "pull"'), ("pul", '"pul" is not "pull"'):
            done = self.turnstile("exec", type, self.resource, "--", "true")
            self.assertEqual(done.returncode, OK)
            self.assertIn(said, done.stderr)
        for options in ("pull",), ("build",), ("Pull", "--quiet"):
            done = self.turnstile("exec", options[0], self.resource + "2", *options[1:], "--", "true")
            self.assertNotIn("is not", done.stderr)

    def test_who_waited_for_a_plain_mutex_and_then_ran_hears_how_to_skip(self):
        first = self.exec('echo x >> "$1"; read line', type="image-layer", stdin=subprocess.PIPE)
        wait_until(lambda: read_lines(self.log), "it runs")
        second = self.exec("true", type="image-layer", node="b")
        wait_until(lambda: len(self.queued("image-layer")) == 1, "the other waits")
        first.communicate("go on\n", timeout=PATIENCE)
        _, said = second.communicate(timeout=PATIENCE)
        self.assertIn("image-layer:on_success=share", said)

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
        server = self.own_server("--bond-grace", "10m", store="memory")
        self.addCleanup(lambda: server.alive() and os.kill(server.pid, signal.SIGCONT))
        url = f"http://{server.host}:{server.port}"
        environment = harness.plain_environment(TURNSTILE_SERVER=url, TURNSTILE_NODE="a",
                                                **harness.preload("boot_clock.c", BOOT_CLOCK_AHEAD=ahead))
        for whom in "both", "supervisor":
            log = os.path.join(self.directory, whom)
            holder = self.begin("exec", "build", self.resource + whom, "--lease", "10m", "--", "sh", "-c",
                                f"echo $$ > {log}; while :; do sleep 0.1; done", env=environment)
            wait_until(lambda: read_lines(log), "it runs")
            if whom == "supervisor":
                os.kill(holder.pid, signal.SIGSTOP)  # then it is the supervisor alone who can see it
            os.kill(server.pid, signal.SIGSTOP)  # for it has not slept: it would confirm a renewal, and rightly so
            with open(ahead, "w", encoding="ascii") as file:
                file.write("3600")
            wait_until(lambda: not alive(int(read_lines(log)[0])), "the command is gone")
            os.kill(holder.pid, signal.SIGCONT)
            _, error = holder.communicate(timeout=PATIENCE)
            self.assertEqual(holder.returncode, LOST, error)
            os.kill(server.pid, signal.SIGCONT)
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
        terminal = Terminal(self)
        holder = self.begin("exec", "build", self.resource, "--", "sh", "-c",
                            'trap "echo got-it; exit 4" INT; echo ready; while :; do sleep 0.1; done', **terminal.options())
        terminal.wait_for(b"ready")
        terminal.type(b"\x03")
        terminal.wait_for(b"got-it")
        self.assertEqual(holder.wait(PATIENCE), 4)


class WithoutProcTest(CliCase):
    """The same promises where /proc has no lists of children (kernels without CONFIG_PROC_CHILDREN), or is not there."""

    def without(self, what):
        """The options of an exec that does not see these files."""
        return {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": harness.plain_environment(
            TURNSTILE_SERVER=self.url, TURNSTILE_NODE="a", **harness.preload("no_proc.c", NO_PROC=what))}

    def pids(self, many):
        wait_until(lambda: len(read_lines(self.log)) == many, "they run")
        found = [int(line) for line in read_lines(self.log)]
        for pid in found:
            self.addCleanup(lambda pid=pid: alive(pid) and os.kill(pid, signal.SIGKILL))
        os.remove(self.log)
        return found

    def test_kill_9_ends_the_group_and_where_they_are_seen_those_that_left_it(self):
        script = f"sleep 600 & echo $! >> {self.log}; (sleep 600 & echo $! >> {self.log}); echo $$ >> {self.log}; "
        daemon = f"setsid sleep 600 & echo $! >> {self.log}; "
        for what, command, many in ("/children", script + daemon + "wait", 4), ("", script + "wait", 3):
            with self.subTest(what):
                holder = self.begin("exec", "build", self.resource + what, "--", "sh", "-c", command, **self.without(what))
                pids = self.pids(many)
                holder.kill()
                for pid in pids:
                    wait_until(lambda: not alive(pid), f"{pid} is gone")

    def test_what_a_command_leaves_behind_in_its_group_is_ended_before_the_release(self):
        for what in "/children", "":
            with self.subTest(what):
                done = self.begin("exec", "build", self.resource + what, "--", "sh", "-c",
                                  f"sleep 600 & echo $! > {self.log}", **self.without(what))
                done.wait(PATIENCE)
                pid = self.pids(1)[0]
                self.assertEqual((done.returncode, alive(pid)), (OK, False))


if __name__ == "__main__":
    program()
    harness.main()
