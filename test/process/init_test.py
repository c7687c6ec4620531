"""From nothing to a secured server with three nodes: one command, and a folder copied to each machine. With the real
programs; the machines are folders here."""
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import unittest
import urllib.request

import harness
from harness import wait_until

NODES = ("node-a", "node-b", "node-c")
NOT_ALLOWED = 15


def program(variable, name):
    return os.path.abspath(os.environ.get(variable) or os.path.join(harness.HERE, "../../build/bin", name))


class InitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = harness.temporary_directory()
        cls.secured = os.path.join(cls.directory, "secured")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            cls.port = free.getsockname()[1]
        cls.turnstile("init", cls.secured, "--hosts", "localhost", "--nodes", ",".join(NODES), "--port", str(cls.port),
                      "--prefix", os.path.join(cls.directory, "{machine}"),
                      "--store", "file:" + os.path.join(cls.directory, "journal"))
        cls.copy()
        with open(os.path.join(cls.directory, "log"), "ab") as log:
            cls.server = subprocess.Popen(
                [harness.binary(), "--config", cls.on("localhost", "turnstiled.toml"),
                 "--listen", f"https://127.0.0.1:{cls.port}"],
                stdout=subprocess.PIPE, stderr=log, env=harness.plain_environment())
        harness._running.append(cls.server)  # ended with this process at the latest
        if not cls.server.stdout.readline().startswith(b"listening on https://"):
            raise AssertionError("it did not start:\n" + cls.log())

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        cls.server.stdout.close()

    @classmethod
    def log(cls):
        with open(os.path.join(cls.directory, "log"), encoding="utf-8") as file:
            return file.read()

    @classmethod
    def on(cls, machine, name):
        return os.path.join(cls.directory, machine, name)

    @classmethod
    def copy(cls):
        """What scp -rp would do, machine by machine."""
        for machine in os.listdir(os.path.join(cls.secured, "machines")):
            shutil.copytree(os.path.join(cls.secured, "machines", machine), cls.on(machine, ""), dirs_exist_ok=True)

    @classmethod
    def turnstile(cls, *words, expected=0):
        done = subprocess.run([program("TURNSTILE_CLI", "turnstile"), *words], capture_output=True, text=True,
                              env=harness.plain_environment(HOME=cls.directory), timeout=harness.PATIENCE, check=False)
        if done.returncode != expected:
            raise AssertionError(f"exit code {done.returncode} and not {expected}: {words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def as_node(self, node, *words, expected=0):
        return self.turnstile("--config", self.on(node, "turnstile.toml"), *words, expected=expected)

    def as_admin(self, *words, expected=0):
        return self.turnstile("--config", os.path.join(self.secured, "admin/turnstile.toml"), *words, expected=expected)

    def status(self, resource, node="node-a"):
        return json.loads(self.as_node(node, "--output", "json", "status", "own", resource))

    def test_every_node_works_with_what_was_copied_to_it(self):
        for node in NODES:
            self.as_node(node, "exec", "own", "shared", "--", "true")
        self.as_node("node-a", "lock", "own", "held", "--request-id", "r")
        self.assertEqual(self.status("held", "node-b")["holder"]["node_id"], "node-a")
        self.as_node("node-a", "unlock", "own", "held", "--request-id", "r")

    def test_a_node_speaks_for_itself_only(self):
        self.as_node("node-a", "lock", "own", "mine", "--request-id", "r")
        self.as_node("node-b", "--node", "node-a", "unlock", "own", "mine", "--request-id", "r", expected=NOT_ALLOWED)
        self.as_node("node-b", "break", "own", "mine", "--reason", "test", expected=NOT_ALLOWED)
        self.assertEqual(self.status("mine")["holder"]["node_id"], "node-a")
        self.as_admin("break", "own", "mine", "--reason", "test")
        self.assertNotIn("holder", self.status("mine"))

    def test_nobody_comes_in_without_a_credential(self):
        self.turnstile("--server", f"https://localhost:{self.port}", "--ca", os.path.join(self.secured, "admin/ca.crt"),
                       "list", expected=NOT_ALLOWED)

    def test_monitoring_may_look_and_do_nothing(self):
        with open(os.path.join(self.secured, "admin/monitoring.secret"), encoding="ascii") as file:
            secret = file.read().strip()
        trusted = ssl.create_default_context(cafile=os.path.join(self.secured, "admin/ca.crt"))

        def ask(path, data=None):
            request = urllib.request.Request(f"https://localhost:{self.port}{path}", data,
                                             {"Authorization": f"Bearer {secret}"})
            try:
                return urllib.request.urlopen(request, context=trusted, timeout=harness.PATIENCE).status
            except urllib.error.HTTPError as error:
                return error.code
        self.assertEqual(ask("/metrics"), 200)
        self.assertEqual(ask("/lock", b'{"type":"own","resource_id":"r","node_id":"monitoring"}'), 403)
        self.assertNotIn(secret, self.log())

    def test_renewed_certificates_are_taken_and_no_hold_is_lost(self):
        self.as_node("node-c", "lock", "own", "kept", "--request-id", "r")
        shown = ssl.get_server_certificate(("localhost", self.port))
        self.turnstile("init", self.secured, "--renew")
        self.copy()
        self.server.send_signal(signal.SIGHUP)
        wait_until(lambda: ssl.get_server_certificate(("localhost", self.port)) != shown, "a new certificate")
        self.assertEqual(self.status("kept", "node-b")["holder"]["node_id"], "node-c")
        self.as_node("node-c", "unlock", "own", "kept", "--request-id", "r")

    @unittest.skipUnless(os.access(program("TURNSTILE_CONTENT", "turnstile-content"), os.X_OK), "there is no plugin")
    def test_the_plugin_starts_with_what_was_copied_to_its_node(self):
        place = os.path.join(self.directory, "plugin")
        os.mkdir(place)
        plugin = subprocess.Popen(
            [program("TURNSTILE_CONTENT", "turnstile-content"), "--config", self.on("node-b", "turnstile-content.toml"),
             "--socket", f"{place}/s", "--root", f"{place}/blobs", "--state", f"{place}/state",
             "--metrics-listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=harness.plain_environment())
        harness._running.append(plugin)
        said = b""
        try:
            while b"127.0.0.1:" not in said:
                line = plugin.stdout.readline()
                self.assertTrue(line, said.decode())
                said += line
            port = said.rsplit(b"127.0.0.1:", 1)[1].split()[0].strip(b"/").decode()

            def ready():
                try:
                    return urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status == 200
                except OSError:
                    return False
            wait_until(ready, "the plugin has reached the server")
        finally:
            plugin.terminate()
            plugin.wait()
            plugin.stdout.close()


if __name__ == "__main__":
    harness.main()
