"""turnstile doctor beside real servers: what is right, and each thing that can be wrong, with what to do."""
import http.server
import json
import os
import subprocess
import threading

import harness
from harness import ServerCase, temporary_directory

CLI = os.path.abspath(os.environ.get("TURNSTILE_CLI") or os.path.join(harness.HERE, "../../build/bin/turnstile"))


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers as the server's `answers` says: a path's beginning -> (status, body)."""

    def do_GET(self):
        status, body = next((answer for path, answer in self.server.answers.items() if self.path.startswith(path)), (404, "{}"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class DoctorTest(ServerCase):
    def doctor(self, *words, servers=None):
        """(exit code, findings)"""
        servers = servers or [f"http://{self.server.host}:{self.server.port}"]
        command = [CLI, "doctor", "--server", ",".join(servers), "--output", "json"]
        if "--containerd-config" not in words:
            command += ["--containerd-config", "/nonexistent"]
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=harness.PATIENCE, check=False,
                              env=harness.plain_environment())
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, json.loads(done.stdout)["findings"]

    def found(self, findings, check):
        """Its level, message and advice."""
        matching = [f for f in findings if f["check"].startswith(check)]
        self.assertTrue(matching, (check, findings))
        return matching[0]["level"], matching[0]["message"], matching[0].get("advice", "")

    def answering(self, answers):
        """The address of a server that answers so."""
        made = http.server.ThreadingHTTPServer((self.server.host, 0), Answering)
        made.answers = answers
        threading.Thread(target=made.serve_forever, daemon=True).start()
        self.addCleanup(made.server_close)
        self.addCleanup(made.shutdown)
        return f"http://{self.server.host}:{made.server_port}"

    def test_a_server_that_is_well_is_found_so(self):
        code, findings = self.doctor()
        self.assertEqual(code, 0, findings)
        for check in "server ", "version of ", "clock of ", "credential for ", "readiness of ":
            self.assertEqual(self.found(findings, check)[0], "good", findings)

    def test_each_of_several_servers_is_looked_at_and_one_that_is_away_is_a_failure(self):
        good = f"http://{self.server.host}:{self.server.port}"
        away = f"http://{self.server.host}:1"
        code, findings = self.doctor(servers=[good, away])
        self.assertEqual(code, 1)
        self.assertEqual(self.found(findings, f"server {good}")[0], "good")
        level, _, advice = self.found(findings, f"server {away}")
        self.assertEqual(level, "failure")
        self.assertIn("is turnstiled running", advice)

    def test_something_else_at_the_address_is_told(self):
        code, findings = self.doctor(servers=[self.answering({"/": (200, "<html>")})])
        self.assertEqual(code, 1)
        self.assertIn("no turnstiled", self.found(findings, "server ")[1])

    def test_a_missing_credential_is_told_apart_from_one_that_does_not_allow_it(self):
        for status, word in (401, "credential missing or unknown"), (403, "does not allow"):
            version = (200, '{"version":"0.1.0","time":"2020-01-01T00:00:00Z","settings":{}}')
            code, findings = self.doctor(servers=[self.answering({"/version": version, "/": (status, "{}")})])
            self.assertEqual(code, 1)
            level, message, advice = self.found(findings, "credential for ")
            self.assertEqual(level, "failure")
            self.assertIn(word, message)
            self.assertTrue(advice)

    def test_a_name_that_is_not_the_servers_is_no_matter_of_credentials(self):
        address = self.answering({"/": (403, '{"error":"no","code":"foreign_origin"}')})
        code, findings = self.doctor(servers=[address])
        self.assertEqual(code, 1)
        self.assertFalse([each for each in findings if each["check"].startswith("credential")], findings)
        level, message, advice = self.found(findings, f"name of {address}")
        self.assertEqual(level, "failure")
        self.assertIn("foreign_origin", message)
        self.assertIn("start the server with --host NAME", advice)

    def test_a_wrong_clock_and_another_version_are_told(self):
        version = (200, '{"version":"7.0.0","time":"2020-01-01T00:00:00.000000Z","settings":{}}')
        code, findings = self.doctor(servers=[self.answering({"/version": version, "/": (200, "{}")})])
        self.assertEqual(code, 1)
        level, message, advice = self.found(findings, "clock of ")
        self.assertEqual(level, "failure")
        self.assertIn("behind", message)
        self.assertIn("NTP", advice)
        self.assertEqual(self.found(findings, "version of ")[0], "warning")

    def test_a_server_that_is_not_ready_is_a_warning(self):
        version = (200, '{"version":"0.1.0","settings":{}}')
        _, findings = self.doctor(servers=[self.answering(
            {"/version": version, "/readyz": (503, '{"error":"standby"}'), "/": (200, "{}")})])
        level, message, _ = self.found(findings, "readiness of ")
        self.assertEqual(level, "warning")
        self.assertIn("standby", message)

    def test_the_plugin_containerd_and_the_shared_directory_are_looked_at(self):
        directory = temporary_directory()
        config = os.path.join(directory, "config.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write('[proxy_plugins.turnstile]\ntype = "content"\naddress = "/nonexistent.sock"\n')
        plugin = self.answering({"/readyz": (503, "the lock server does not answer")})
        code, findings = self.doctor("--containerd-config", config, "--plugin", plugin[len("http://"):], "--shared", directory)
        self.assertEqual(code, 1)
        self.assertIn("does not answer", self.found(findings, "plugin ")[1])
        self.assertEqual([f["level"] for f in findings if f["check"].startswith("containerd")], ["failure", "failure"])
        self.assertEqual([f["level"] for f in findings if f["check"].startswith("directory")][1], "good")
        ready = self.answering({"/readyz": (200, "{}")})
        self.assertEqual(self.found(self.doctor("--plugin", ready)[1], "plugin ")[0], "good")


if __name__ == "__main__":
    harness.main()
