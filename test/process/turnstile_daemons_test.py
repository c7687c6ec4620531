"""What turnstiled and turnstile-content do where their stdout or stderr cannot be written."""
import os
import signal
import subprocess
import sys
import unittest

import harness
from harness import PATIENCE, wait_until


def content_program():
    path = os.environ.get("TURNSTILE_CONTENT") or os.path.join(harness.HERE, "../../build/bin/turnstile-content")
    if not os.access(path, os.X_OK):
        sys.exit(f"there is no program at {path}: set TURNSTILE_CONTENT, or run ./dev build")
    return os.path.abspath(path)


def programs():
    return harness.binary(), content_program()


def files_below(directory):
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    yield path, file.read()


class ClosedTest(unittest.TestCase):
    """Started without stdout and stderr: the next file that is opened must not take their place."""

    def log_goes_into_no_file(self, directory, socket, *command):
        process = subprocess.Popen(["sh", "-c", 'exec "$0" "$@" >&- 2>&-', *command], cwd=directory,
                                   env=harness.plain_environment(), preexec_fn=harness.end_with_parent)
        harness.note_running(process)
        wait_until(lambda: os.path.exists(socket) or process.poll() is not None, "it listens")
        links = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (1, 2)]
        process.send_signal(signal.SIGTERM)
        self.assertEqual(links, ["/dev/null"] * 2)
        self.assertEqual(process.wait(PATIENCE), 0)
        for path, text in files_below(directory):
            self.assertNotIn(b" I stopping signal=", text, path)

    def test_turnstiled_writes_its_log_into_no_file_of_its_store(self):
        directory = harness.temporary_directory()
        socket = os.path.join(directory, "s")
        self.log_goes_into_no_file(directory, socket, harness.binary(), "--store", f"file:{directory}/data", "--listen",
                                   f"unix:{socket}")

    def test_turnstile_content_writes_its_log_into_no_file_of_its_state(self):
        directory = harness.temporary_directory()
        socket = os.path.join(directory, "s")
        self.log_goes_into_no_file(directory, socket, content_program(), "--node", "a", "--root", f"{directory}/blobs",
                                   "--state", f"{directory}/state", "--socket", socket)


class LostOutputTest(unittest.TestCase):
    """What could not be written is no success."""

    def full(self):
        file = open("/dev/full", "w", encoding="ascii")
        self.addCleanup(file.close)
        return file

    def run_program(self, *command, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run(command, text=True, check=False, timeout=PATIENCE, env=harness.plain_environment(), **options)

    def assert_lost(self, *command):
        with self.subTest(command=command):
            done = self.run_program(*command, stdout=self.full())
            self.assertEqual(done.returncode, 1, done)
            self.assertRegex(done.stderr, r"(?m)^turnstile(d|-content): the output could not be written .*: [A-Z]")

    def test_help_and_version(self):
        for program in programs():
            for flag in "--help", "--version":
                self.assert_lost(program, flag)

    def test_what_a_check_of_blobs_has_found(self):
        directory = harness.temporary_directory()
        options = ("--node", "a", "--root", f"{directory}/blobs", "--state", f"{directory}/state", "--socket",
                   f"{directory}/s")
        plugin = subprocess.Popen([content_program(), *options], env=harness.plain_environment(), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, preexec_fn=harness.end_with_parent)
        harness.note_running(plugin)
        wait_until(lambda: os.path.exists(f"{directory}/s"), "it has made its state")
        plugin.send_signal(signal.SIGTERM)
        self.assertEqual(plugin.wait(PATIENCE), 0)
        words = (content_program(), "verify", *options)
        found = self.run_program(*words)
        self.assertEqual((found.returncode, found.stdout != ""), (0, True), found)
        self.assert_lost(*words)

    def test_wrong_words_are_wrong_usage_whatever_becomes_of_stderr(self):
        for program in programs():
            with self.subTest(program):
                self.assertEqual(self.run_program(program, "--bogus", stderr=self.full()).returncode, 2)


if __name__ == "__main__":
    harness.main()
