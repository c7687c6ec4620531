"""`turnstile exec` at a terminal: a job of a shell's, and modes as they were."""
import contextlib
import os
import signal

import harness
from harness import PATIENCE, wait_until
from turnstile_program import CliCase, LOST, OK, Terminal, program, run


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


if __name__ == "__main__":
    program()
    harness.main()
