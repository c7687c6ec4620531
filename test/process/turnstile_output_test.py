"""What `turnstile` does where its stdout or stderr cannot be written: a full disk, a closed descriptor, a file that may
not grow, a reader that has gone."""
import json
import os
import resource
import signal
import subprocess

import harness
from harness import PATIENCE, wait_until
from turnstile_program import CliCase, OK, UNEXPECTED, USAGE, program

FULL = "/dev/full"  # takes nothing: ENOSPC


def with_closed(descriptor):
    """The program, started by a shell without this descriptor."""
    return ["sh", "-c", f'exec "$0" "$@" {descriptor}>&-', program()]


def no_file_may_grow():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


class OutputCase(CliCase):
    def run_with(self, *arguments, node="a", **options):
        """The result; what goes to a stream that was not asked for is caught."""
        process = self.begin(*arguments, node=node, **options)
        out, error = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def full(self):
        file = open(FULL, "w", encoding="ascii")
        self.addCleanup(file.close)
        return file


class StderrTest(OutputCase):
    """The exit code is the same as with a stderr that can be written."""

    def unwritable(self):
        yield "full", {"stderr": self.full()}
        yield "closed", {"shell": with_closed(2)}
        with open(self.log, "w", encoding="ascii") as file:
            yield "may not grow", {"stderr": file, "preexec_fn": no_file_may_grow}

    def test_wrong_words_are_wrong_usage(self):
        for name, options in self.unwritable():
            if name == "may not grow":
                continue  # SIGXFSZ ends who holds nothing, as it would any program
            with self.subTest(name):
                for form in "text", "json":
                    self.assertEqual(self.run_with("bogus", "--output", form, **options).returncode, USAGE)

    def test_exec_and_once_end_with_their_commands_code(self):
        for name, options in self.unwritable():
            with self.subTest(name):
                for form in "text", "json":
                    for code in 0, 3:
                        done = self.run_with("exec", "update", self.resource, "--output", form, "--", "sh", "-c",
                                             f"exit {code}", **options)
                        self.assertEqual(done.returncode, code)
                done = self.run_with("once", f"{self.resource}-{name}", "--", "true", **options)
                self.assertEqual(done.returncode, OK)

    def test_exec_waits_and_gets_its_turn(self):
        for name, options in self.unwritable():
            with self.subTest(name):
                token = self.hold("first", "update")
                waiter = self.begin("exec", "update", self.resource, "--", "true", node="b", **options)
                wait_until(lambda: self.queued("update") == ["b"] or waiter.poll() is not None, "b waits")
                self.assertEqual((waiter.poll(), self.queued("update")), (None, ["b"]))
                self.unlock("first", "update", token=token)
                waiter.communicate(timeout=PATIENCE)
                self.assertEqual(waiter.returncode, OK)


class StdoutTest(OutputCase):
    """What could not be written is no success."""

    def assert_lost(self, *arguments):
        for name, options in (("full", {"stdout": self.full()}), ("closed", {"shell": with_closed(1)})):
            with self.subTest(name, arguments=arguments):
                done = self.run_with(*arguments, **options)
                self.assertEqual(done.returncode, UNEXPECTED, done)
                self.assertRegex(done.stderr.splitlines()[-1], r"^turnstile: the output could not be written .*: [A-Z]")

    def test_help_version_and_completion(self):
        for words in ("--help",), ("exec", "--help"), ("--version",), ("completion", "bash"), ("completion", "zsh"):
            self.assert_lost(*words)

    def test_what_a_server_tells(self):
        self.hold("first", "update")
        for words in ("status",), ("status", "update", self.resource), ("list",), ("top", "--once"), ("refs", "x"):
            self.assert_lost(*words)

    def test_the_object_of_json_and_of_the_fault(self):
        done = self.run_with("list", "--prefix", self.resource, "--output", "json", stdout=self.full())
        self.assertEqual((done.returncode, done.stderr), (OK, ""))  # nothing to write
        self.hold("first", "update")
        done = self.run_with("list", "--prefix", self.resource, "--output", "json", stdout=self.full())
        fault = json.loads(done.stderr)
        self.assertEqual((done.returncode, fault["code"], fault["exit"]), (UNEXPECTED, "output", UNEXPECTED))

    def test_every_record_of_a_journal(self):
        server = self.own_server(store="file")
        self.hold("first", client=server.client())
        self.assert_lost("inspect", server.data)
        self.assert_lost("inspect", server.data, "--dump")

    def test_a_result_whatever_code_a_skip_has(self):
        write = "echo v7 >&$TURNSTILE_RESULT_FD"
        self.assertEqual(self.turnstile("once", self.resource, "--", "sh", "-c", write).returncode, OK)
        self.assert_lost("once", self.resource, "--print-result", "--", "true")
        self.assert_lost("once", self.resource, "--print-result", "--skip-code", "10", "--", "true")
        done = self.run_with("once", self.resource, "--", "true", stdout=self.full())
        self.assertEqual(done.returncode, OK, done)  # nothing to write

    def test_watch_ends_at_its_first_event(self):
        for form in "text", "json":
            watch = self.begin("watch", "--output", form, stdout=self.full())
            wait_until(lambda: self.client.metric("turnstile_streams") == 1, "it watches")
            self.unlock("first", "update", token=self.hold("first", "update"))
            _, error = watch.communicate(timeout=PATIENCE)
            self.assertEqual(watch.returncode, UNEXPECTED)
            self.assertIn("could not be written", error)
            wait_until(lambda: self.client.metric("turnstile_streams") == 0, "it is gone")

    def test_a_reader_that_has_gone_is_no_news(self):
        # Ended by SIGPIPE, or with the code that a shell shows for that where it is ignored, as systemd has it.
        for ignored, code in (False, -signal.SIGPIPE), (True, 128 + signal.SIGPIPE):
            for words in ("--help",), ("list", "--output", "json"):
                with self.subTest(ignored=ignored, words=words):
                    self.hold(f"n{ignored}{len(words)}", f"own-{ignored}-{len(words)}")
                    reading, writing = os.pipe()
                    os.close(reading)
                    done = self.run_with(*words, stdout=writing, restore_signals=not ignored)
                    os.close(writing)
                    self.assertEqual((done.returncode, done.stderr), (code, ""))


class LockTest(OutputCase):
    """A token that nobody gets is given back, so that the next in line need not wait for the server's max-hold."""

    def unwritable(self):
        yield "full", {"stdout": self.full()}
        yield "closed", {"shell": with_closed(1)}
        with open(self.log, "w", encoding="ascii") as file:
            yield "may not grow", {"stdout": file, "preexec_fn": no_file_may_grow}
        reading, writing = os.pipe()
        os.close(reading)
        yield "nobody reads", {"stdout": writing}
        os.close(writing)

    def test_the_lock_is_released_as_a_failure(self):
        for name, options in self.unwritable():
            for form in "text", "json":
                with self.subTest(name, form=form):
                    done = self.run_with("lock", "pull", self.resource, "--output", form, **options)
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (UNEXPECTED, 1), done)
                    self.assertIn("the token could not be written", done.stderr)
                    self.assertIn("released", done.stderr)
                    self.assertEqual(self.status()["state"], "idle")  # a success of pull's would be kept

    def test_one_that_can_be_come_back_to_stays(self):
        words = ("lock", "update", self.resource, "--request-id", "mine")
        token = self.text(*words).strip()
        done = self.run_with(*words, stdout=self.full())
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (UNEXPECTED, 1), done)
        self.assertIn("--request-id mine", done.stderr)
        self.assertEqual(self.text(*words).strip(), token)


if __name__ == "__main__":
    program()
    harness.main()
