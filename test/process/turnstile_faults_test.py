"""Faults of `turnstile`: a silent server, a wrong one, wrong words; each is one line with the documented exit code."""
import contextlib
import http.server
import json
import os
import signal
import socket
import threading
import time

import harness
from harness import PATIENCE, wait_until
from turnstile_program import CliCase, LOST, OK, REFUSED, UNAUTHENTICATED, UNAVAILABLE, USAGE, program


class Answers(http.server.BaseHTTPRequestHandler):
    """Something that answers, and is no Turnstile server; or one that wants a credential."""

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

    def test_a_refused_credential(self):
        body = b'{"error":"this credential is not known","code":"unauthorized"}'
        with answering(body, 401, "application/json") as url:
            for call in self.CALLS:
                self.assert_fault(self.turnstile(*call, url=url), UNAUTHENTICATED, "--credential-file")

    def test_a_credential_file_that_is_not_there_or_empty(self):
        self.assert_fault(self.turnstile("list", "--credential-file", "/no/such/file"), USAGE, "/no/such/file")
        empty = os.path.join(self.directory, "empty")
        with open(empty, "w", encoding="ascii"):
            self.assert_fault(self.turnstile("list", "--credential-file", empty), USAGE, empty)

    def test_a_credential_is_sent(self):
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
            self.assertEqual(self.turnstile("list", "--credential-file", path, url=url).returncode, OK)
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
        self.text("lock", "pull", self.resource, node="b")
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
