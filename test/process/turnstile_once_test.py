"""`turnstile once` against the real server: one runs, all others have its result."""
import json
import os
import time

import harness
from harness import PATIENCE, wait_until
from turnstile_program import CliCase, OK, SKIPPED, UNAVAILABLE, program, read_lines


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


if __name__ == "__main__":
    program()
    harness.main()
