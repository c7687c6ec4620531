"""The command line of the real server: help, faults in one line, where settings come from, signals, logs."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

import harness
from harness import ServerCase, wait_until


def run(*arguments, user=None, **environment):
    """A server that is expected to refuse, and to have ended when this returns. One that serves instead is ended, and
    shows it by what it printed."""
    binary = harness.binary()
    if user:  # the tree may lie in a home that others cannot enter
        binary = shutil.copy(binary, harness.temporary_directory())
        os.chmod(os.path.dirname(binary), 0o755)
    process = subprocess.Popen([binary, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, cwd="/" if user else harness.temporary_directory(), user=user,
                               env=harness.plain_environment(**environment))
    with process:
        printed = ""
        for line in process.stdout:
            printed += line
            if line.startswith("listening"):
                process.kill()
        return subprocess.CompletedProcess(process.args, process.wait(), printed, process.stderr.read())


def config_file(text):
    path = os.path.join(harness.temporary_directory(), "turnstile.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


class HelpTest(unittest.TestCase):
    def test_help_names_every_setting_and_exits_0(self):
        for flag in "--help", "-h":
            shown = run(flag)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            for word in ("--listen", "--store", "--bond-grace", "--operation", "--config", "--log-format", "PORT"):
                self.assertIn(word, shown.stdout)

    def test_version_is_one_line(self):
        shown = run("--version")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, r"\Aturnstiled \d+\.\d+\.\d+\S*\n\Z")


class FaultTest(unittest.TestCase):
    """Every fault of the caller's is one line on stderr and exit code 2."""

    def assert_fault(self, failed, *words, code=2):
        self.assertEqual((failed.returncode, failed.stdout), (code, ""), failed.stderr)
        self.assertRegex(failed.stderr, r"\Aturnstiled: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, failed.stderr)

    def test_a_flag_that_does_not_exist(self):
        self.assert_fault(run("--colour", "red"), "--colour")
        self.assert_fault(run("surplus"), "surplus")

    def test_a_flag_without_its_value(self):
        self.assert_fault(run("--listen"), "--listen")

    def test_a_value_that_makes_no_sense(self):
        for flag, value in (("--threads", "many"), ("--threads", "-1"), ("--max-queue", "0"), ("--max-queue", "1.5"),
                            ("--bond-grace", "3"), ("--bond-grace", "-3s"), ("--bond-grace", "3 years"),
                            ("--scope", "everything"), ("--references", "nobody"), ("--log-level", "loud"),
                            ("--log-format", "xml"), ("--allow-multi-node-download", "perhaps"),
                            ("--operation", "build"), ("--operation", "build:on_success=party"),
                            ("--operation", ":on_success=share"), ("--store", "cupboard"), ("--store", "file:"),
                            ("--store", "etcd://127.0.0.1")):
            self.assert_fault(run(flag, value), flag[2:])

    def test_a_flag_twice_that_may_be_given_once(self):
        self.assert_fault(run("--threads", "1", "--threads", "2"), "threads")

    def test_an_environment_variable_that_nobody_reads_is_one_line_of_the_log(self):
        shown = run("--listen", "127.0.0.1:0", "--store", "memory", TURNSTILE_MAX_QEUE="5", TURNSTILE_SERVER="http://a",
                    TURNSTILE_CONTENT_NODE="a")
        self.assertTrue(shown.stdout.startswith("listening"), shown.stderr)
        told = [line for line in shown.stderr.splitlines() if "TURNSTILE_" in line]
        self.assertEqual(len(told), 1, shown.stderr)
        self.assertIn("TURNSTILE_MAX_QEUE (did you mean TURNSTILE_MAX_QUEUE?)", told[0])

    def test_an_environment_variable_that_makes_no_sense(self):
        self.assert_fault(run(TURNSTILE_THREADS="many"), "TURNSTILE_", "many")
        self.assert_fault(run(ALLOW_MULTI_NODE_DOWNLOAD="perhaps"), "perhaps")
        self.assert_fault(run("--store", "memory", PORT="nowhere"), "nowhere")

    def test_a_file_that_is_not_there_not_readable_or_not_right(self):
        self.assert_fault(run("--config", "/nothing/here.toml"), "/nothing/here.toml")
        directory = harness.temporary_directory()
        self.assert_fault(run("--listen", "127.0.0.1:0", "--store", "memory", "--config", directory), directory)
        for text in "threads = ", "= 3", "[", "threads = 1\nthreads = 2", "colour = 'red'", "threads = 'many'", \
                    "threads = 1.5", "listen = [['a']]", "\x00", "threads = 2024-01-01":
            path = config_file(text)
            self.assert_fault(run("--config", path), path)

    def test_an_unreadable_file(self):
        if os.getuid() == 0:
            # Root reads everything, so the server is started as nobody.
            path = config_file("threads = 1")
            os.chmod(path, 0)
            os.chmod(os.path.dirname(path), 0o755)
            failed = run("--config", path, user=65534)
        else:
            path = config_file("threads = 1")
            os.chmod(path, 0)
            failed = run("--config", path)
        self.assert_fault(failed, path)

    def test_an_address_that_is_none(self):
        for address in ("127.0.0.1", "127.0.0.1:", "127.0.0.1:port", "127.0.0.1:65536", "127.0.0.1:-1", "unix:",
                        "127.0.0.1:80:80", "localhost"):
            self.assert_fault(run("--store", "memory", "--listen", address), address)
        self.assert_fault(run("--store", "memory", "--insecure", "--listen", "no-such-host.invalid:0"), "no-such-host")
        self.assert_fault(run("--store", "memory", "--insecure", "--listen", "::1:80"), "::1:80")

    def test_an_address_beyond_this_machine_needs_insecure(self):
        for address in "0.0.0.0:0", "[::]:0", "*:0", ":0", "192.0.2.1:0":
            self.assert_fault(run("--store", "memory", "--listen", address), "--insecure")

    def test_a_port_that_is_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.assert_fault(run("--store", "memory", "--listen", address), address, code=1)  # it may be free later

    def test_a_unix_path_that_is_taken_or_too_long(self):
        directory = harness.temporary_directory()
        plain = os.path.join(directory, "plain")
        with open(plain, "w", encoding="utf-8"):
            pass
        self.assert_fault(run("--store", "memory", "--listen", f"unix:{plain}"), plain)
        self.assertTrue(os.path.exists(plain), "a file of somebody else's was removed")
        self.assert_fault(run("--store", "memory", "--listen", "unix:/tmp/" + "x" * 200))
        self.assert_fault(run("--store", "memory", "--listen", "unix:/nothing/here"), "/nothing/here")

    def test_a_directory_that_cannot_be_made(self):
        self.assert_fault(run("--listen", "127.0.0.1:0", "--store", "file:/proc/nothing/data"), "/proc/nothing/data")
        self.assert_fault(run("--listen", "127.0.0.1:0", "--store", "file:/dev/null"), "/dev/null")


class SettingsTest(ServerCase):
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.resource = "r"

    def tearDown(self):
        pass

    def settings(self, *flags, **environment):
        server = self.own_server(*flags, store="memory", environment=environment)
        return server.client().get("/version")["settings"]

    def test_flags_come_before_the_environment_and_that_before_the_file(self):
        path = config_file('max-queue = 3\nmax_streams = 33\nmax-body = 3333\nscope = "resource"\n')
        got = self.settings("--config", path, "--max-queue", "1", TURNSTILE_MAX_QUEUE="2", TURNSTILE_MAX_STREAMS="22")
        self.assertEqual((got["max-queue"], got["max-streams"], got["max-body"], got["scope"]),
                         ("1", "22", "3333", "resource"))

    def test_a_file_can_be_named_by_the_environment_and_hold_lists(self):
        path = config_file('operation = ["build:on_success=share", "test:on_success=share"]\nreferences = "client"\n')
        client = self.own_server(store="memory", environment={"TURNSTILE_CONFIG": path}).client()
        for kind in "build", "test":
            self.hold("a", kind, client=client)
            self.unlock("a", kind, client=client)
            self.assertTrue(self.lock("b", kind, client=client)["skip"])

    def test_the_seeds_names_of_the_environment_work_and_ours_override_them(self):
        got = self.settings(ALLOW_MULTI_NODE_DOWNLOAD="false", UPDATE_REQUIRES_NO_REF="true")
        self.assertEqual((got["allow-multi-node-download"], got["update-requires-no-ref"]), ("false", "true"))
        got = self.settings(ALLOW_MULTI_NODE_DOWNLOAD="false", TURNSTILE_ALLOW_MULTI_NODE_DOWNLOAD="true")
        self.assertEqual(got["allow-multi-node-download"], "true")

    def test_PORT_chooses_the_port_when_no_address_is_given(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = subprocess.Popen([harness.binary(), "--store", "memory"], stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.DEVNULL, env=harness.plain_environment(PORT=str(port)))
        try:
            self.assertEqual(process.stdout.readline(), f"listening on 127.0.0.1:{port}\n")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def test_several_addresses_are_all_listened_on(self):
        path = os.path.join(harness.temporary_directory(), "s")
        server = self.own_server("--listen", f"unix:{path}", "--listen", "[::1]:0", store="memory")
        self.assertEqual(server.addresses[1], f"unix:{path}")
        self.assertRegex(server.addresses[2], r"^\[::1\]:\d+$")

    def test_a_unix_socket_left_by_a_server_that_was_killed_is_taken_over_but_not_that_of_a_living_one(self):
        path = os.path.join(harness.temporary_directory(), "s")
        server = self.own_server("--listen", f"unix:{path}", store="memory")
        second = run("--store", "memory", "--listen", f"unix:{path}")
        self.assertEqual((second.returncode, len(second.stderr.splitlines())), (1, 1))
        server.kill_and_restart()
        self.assertEqual(server.addresses[1], f"unix:{path}")


class SignalTest(ServerCase):
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.resource = "r"
        self.server = self.own_server()
        self.client = self.server.client()

    def tearDown(self):
        pass

    def test_SIGTERM_answers_open_polls_with_503_ends_streams_and_exits_0(self):
        for number in signal.SIGTERM, signal.SIGINT:
            token = self.hold("a")
            poll = self.poll("b")
            stream = self.server.stream(type="pull", resource_id=self.resource)
            idle = self.server.client()
            idle.get("/healthz")
            self.assertEqual(self.server.stop(number), 0)
            answer = poll.answer()
            self.assert_refused(answer, 503, "shutting_down")
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
            while stream.next() is not None:
                pass
            self.server.restart()
            self.client = self.server.client()
            self.assertEqual(self.status()["holder"]["token"], token)
            self.assertEqual(self.queued(), ["b"])
            self.unlock("a", error="no")
            self.client.cancel(self.resource, "b")

    def test_SIGTERM_loses_nothing_that_was_acknowledged(self):
        tokens = {}
        for i in range(200):
            tokens[f"r{i}"] = self.hold("a", resource_id=f"r{i}")
        self.assertEqual(self.server.stop(), 0)
        self.server.restart()
        client = self.server.client()
        for name, token in tokens.items():
            self.assertEqual(self.status(resource_id=name, client=client)["holder"]["token"], token)

    def test_SIGTERM_ends_the_server_within_five_seconds_whatever_its_clients_do(self):
        def scenario(i):
            if i > 0:
                self.server.restart()
                self.client = self.server.client()
            return self.stops_in_time()
        self.race(scenario)

    def stops_in_time(self):
        silent = socket.create_connection((self.server.host, self.server.port))
        half = socket.create_connection((self.server.host, self.server.port))
        self.addCleanup(silent.close)
        self.addCleanup(half.close)
        half.sendall(b"POST /lock HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        wait_until(lambda: self.client.metric("turnstile_connections") >= 3, "all have arrived")
        start = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        return time.monotonic() - start < 5

    def test_SIGHUP_does_not_end_the_server(self):
        os.kill(self.server.pid, signal.SIGHUP)
        wait_until(lambda: "SIGHUP" in self.server.log(), "it is told")
        self.hold("a")

    def test_SIGPIPE_does_not_end_the_server(self):
        os.kill(self.server.pid, signal.SIGPIPE)
        self.hold("a")


class LogTest(ServerCase):
    def test_log_format_json_gives_lines_that_parse_whatever_an_id_contains(self):
        server = self.own_server("--log-format", "json", "--log-level", "debug")
        client = server.client()
        for name in ('quote"', "back\\slash", "日本", "{}", "%s%n", "\u2028"):
            self.hold("a", resource_id=name, client=client)
            client.post("/admin/break", type="pull", resource_id=name, reason='new\nline "quoted"')
        self.assertEqual(server.stop(), 0)
        lines = [json.loads(line) for line in server.log().rstrip("\n").split("\n")]
        for line in lines:
            self.assertEqual({"time", "level", "message"} - line.keys(), set())
        self.assertEqual({line["resource_id"] for line in lines if line["message"] == "lock"},
                         {'quote"', "back\\slash", "日本", "{}", "%s%n", "\u2028"})

    def test_log_level_error_is_silent_when_all_is_well(self):
        server = self.own_server("--log-level", "error")
        self.hold("a", client=server.client())
        self.assertEqual((server.stop(), server.log()), (0, ""))

    def test_no_id_can_forge_a_line_of_the_text_log(self):
        server = self.own_server("--log-level", "debug")
        client = server.client()
        self.hold("a", client=client, info="x\n2026-01-01 00:00:00.000 E forged")
        client.post("/admin/break", type="pull", resource_id=self.resource, reason="x\nforged line")
        self.assertEqual(server.stop(), 0)
        for line in server.log().split("\n"):
            self.assertFalse(line.startswith(("forged", "2026-01-01")), line)


if __name__ == "__main__":
    harness.main()
