"""The alert rules and the dashboard are right, and speak only of what real servers tell; docs/metrics.md names all of it."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
sys.path.insert(0, os.path.join(HERE, "../process"))
import harness  # noqa: E402
from harness import Server, wait_until  # noqa: E402

RULES = os.path.join(ROOT, "packaging/prometheus")
METRIC = re.compile(r"\b(?:turnstile|process)_[a-z0-9_]+\b")
SERIES = re.compile(r"_(?:bucket|sum|count)$")  # of a histogram


def names_of(text):
    """What is named in it, a histogram by its own name."""
    return {SERIES.sub("", name) for name in METRIC.findall(text)}


def typed_names(metrics_text):
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", metrics_text, re.M))


class RunningPrograms:
    """A turnstiled that has taken a snapshot, and a turnstile-content that uses it."""

    def __init__(self):
        self.server = Server().start()
        self.plugin = self.plugin_address = None
        self.take_a_snapshot()
        binary = os.environ.get("TURNSTILE_CONTENT") or os.path.join(ROOT, "build/bin/turnstile-content")
        directory = harness.temporary_directory()
        self.plugin = subprocess.Popen(
            [binary, "--node", "a", "--server", f"http://{self.server.host}:{self.server.port}", "--root", directory + "/blobs",
             "--state", directory + "/state", "--socket", directory + "/content.sock",
             "--metrics-listen", f"{self.server.host}:0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=harness.plain_environment(), text=True,
            preexec_fn=self.server._before_exec)
        while line := self.plugin.stdout.readline():
            if match := re.search(r"metrics on (\S+)", line):
                self.plugin_address = match.group(1)
                break

    def take_a_snapshot(self):
        client, big = self.server.client(), "x" * 4000
        number = 0

        def taken():
            nonlocal number
            calls = [{"call": "lock", "type": "own", "resource_id": f"r{number}-{i}", "node_id": "n", "info": big}
                     for i in range(200)]
            number += 1
            client.post("/batch", requests=calls)
            return "snapshot taken" in self.server.log()
        wait_until(taken, "the log is long enough for a snapshot", timeout=400, every=0)

    def metrics(self):
        """(the server's text, the plugin's)"""
        with urllib.request.urlopen(f"http://{self.plugin_address}/metrics", timeout=60) as answer:
            plugin = answer.read().decode()
        return self.server.client().get("/metrics").text, plugin

    def close(self):
        if self.plugin:
            self.plugin.kill()
            self.plugin.wait()
            self.plugin.stdout.close()
        self.server.remove()


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = RunningPrograms()
        cls.addClassCleanup(cls.programs.close)
        # The plugin asks its lock server every few seconds.
        wait_until(lambda: "lock_server_up" in cls.programs.metrics()[1], "the plugin has asked the server")
        cls.server, cls.plugin = (typed_names(text) for text in cls.programs.metrics())
        cls.known = {**cls.server, **cls.plugin, **cls.replicated()}

    @staticmethod
    def replicated():
        """What only a server of several tells (names and types): read from its source, for no etcd runs here."""
        with open(os.path.join(ROOT, "src/server/replication.cc"), encoding="utf-8") as file:
            return {name: kind for kind, name in re.findall(r'(gauge|counter)\(\s*"(turnstile_\w+)"', file.read())}

    def assert_all_exist(self, text, where):
        self.assertEqual(names_of(text) - self.known.keys(), set(), f"{where} names what no server tells")

    def test_every_metric_of_the_alert_rules_exists(self):
        for name in "turnstile.rules.yml", "turnstile.rules.test.yml":
            with open(os.path.join(RULES, name), encoding="utf-8") as file:
                self.assert_all_exist(re.sub(r"alert: .*|description: .*|summary: .*", "", file.read()), name)

    def test_every_metric_of_the_dashboard_exists(self):
        with open(os.path.join(ROOT, "packaging/grafana/turnstile.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                self.assertTrue(names_of(target["expr"]) or "up{" in target["expr"], target)
                self.assert_all_exist(target["expr"], f"the panel {panel['title']}")
        self.assert_all_exist(json.dumps(dashboard["templating"]), "a variable of the dashboard")

    def test_rates_are_of_counters_and_of_histograms_only(self):
        texts = []
        for path in "prometheus/turnstile.rules.yml", "grafana/turnstile.json":
            with open(os.path.join(ROOT, "packaging", path), encoding="utf-8") as file:
                texts.append(file.read())
        for name in re.findall(r"(?:rate|increase)\(([a-z0-9_]+)", "".join(texts)):
            self.assertIn(self.known[SERIES.sub("", name)], ("counter", "histogram"), name)

    def test_every_expression_of_the_dashboard_is_one_of_prometheus(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed (package prometheus)")
        with open(os.path.join(ROOT, "packaging/grafana/turnstile.json"), encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        expressions = [target["expr"].replace("$__rate_interval", "5m") for panel in panels
                       for target in panel.get("targets", [])]
        rules = {"groups": [{"name": "dashboard", "rules": [
            {"record": f"expression_{i}", "expr": expression} for i, expression in enumerate(expressions)]}]}
        path = os.path.join(harness.temporary_directory(), "dashboard.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rules, file)  # which is YAML, too
        self.promtool("check", "rules", path)

    def test_docs_name_every_metric_and_no_other(self):
        with open(os.path.join(ROOT, "docs/metrics.md"), encoding="utf-8") as file:
            text = file.read()
        lines = re.sub(r"```.*?```", "", text, flags=re.S).splitlines()
        names_in = lambda some: names_of(" ".join(re.findall(r"`([^`]*)`", "\n".join(some))))
        documented = names_in(lines)
        self.assertEqual(documented - self.known.keys(), set(), "docs/metrics.md names what no server tells")
        self.assertEqual(self.known.keys() - documented - {"exposer_request_latencies"}, set(), "not in docs/metrics.md")

    def test_the_alert_rules_do_what_their_tests_say(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed (package prometheus)")
        self.promtool("check", "rules", os.path.join(RULES, "turnstile.rules.yml"))
        self.promtool("test", "rules", os.path.join(RULES, "turnstile.rules.test.yml"))
        with open(os.path.join(RULES, "turnstile.rules.yml"), encoding="utf-8") as file:
            alerts = re.findall(r"alert: (\w+)", file.read())
        with open(os.path.join(RULES, "turnstile.rules.test.yml"), encoding="utf-8") as file:
            tests = file.read()
        self.assertEqual([alert for alert in alerts if alert not in tests], [], "no test of it")

    def test_what_real_servers_tell_is_prometheus_text_format(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed (package prometheus)")
        for text in self.programs.metrics():
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            # Exit code 3: it would name something differently; 1: it cannot read it.
            self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)

    def promtool(self, *words):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    harness.main()
