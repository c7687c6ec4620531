"""What of the real server is not about locks: paths and methods, health, metrics, version, the API's description."""
import harness
from harness import ServerCase, wait_until

POSTS = ["/lock", "/unlock", "/renew", "/cancel", "/batch", "/refs/add", "/refs/release", "/refs/release_node",
         "/admin/break"]
STREAMS = ["/lock/subscribe", "/subscribe", "/events"]
LISTS = ["/locks", "/refs"]
PAGES = ["/healthz", "/readyz", "/metrics", "/version", "/summary", "/servers", "/openapi.yaml", "/"]
ALLOWED = [(POSTS, "POST, OPTIONS"), (STREAMS, "GET, OPTIONS"), (LISTS + PAGES, "GET, HEAD, OPTIONS"),
           (["/lock/status"], "GET, HEAD, POST, OPTIONS")]


class PathTest(ServerCase):
    def test_section_9_an_unknown_path_is_404(self):
        for path in "/nothing", "/lock/", "/LOCK", "//lock", "/lock/status/", "/refs/nothing", "/lock%00":
            self.assert_refused(self.client.call("GET", path), 404, "unknown_path")

    def test_section_9_a_method_that_a_path_does_not_take_is_405_and_names_those_it_takes(self):
        for paths, allowed in ALLOWED:
            for path in paths:
                for method in "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW":
                    if method in allowed:
                        continue
                    answer = self.client.call(method, path, b"{}")
                    self.assertEqual((answer.status, answer.headers["Allow"]), (405, allowed), (method, path))
                    if method != "HEAD":
                        self.assert_refused(answer, 405, "method_not_allowed")

    def test_section_9_HEAD_gives_the_head_of_GET_without_its_body(self):
        self.hold("a")
        queries = {"/locks": f"prefix={self.resource}", "/refs": f"resource_id={self.resource}",
                   "/lock/status": f"type=pull&resource_id={self.resource}"}
        for path in ["/lock/status"] + LISTS + PAGES:
            if path in ("/metrics", "/summary", "/version"):
                continue  # no two answers are equal
            target = f"{path}?{queries[path]}" if path in queries else path
            head, get = self.client.call("HEAD", target), self.client.call("GET", target)
            self.assertEqual((head.status, head.text), (200, ""), path)
            for name in "Content-Type", "Content-Length":
                self.assertEqual(head.headers[name], get.headers[name], path)
        for path in "/metrics", "/summary", "/version":
            self.assertEqual(self.client.call("HEAD", path).status, 200)
        self.assertEqual(self.client.call("HEAD", "/refs").status, 400, "an error, too")

    def test_section_9_OPTIONS_names_the_methods_of_a_path_or_of_the_whole_server(self):
        for paths, allowed in [*ALLOWED, (["*"], "GET, HEAD, POST, OPTIONS")]:
            for path in paths:
                answer = self.client.call("OPTIONS", path)
                self.assertEqual((answer.status, answer.text), (204, ""), path)
                self.assertEqual(answer.headers["Allow"], allowed, path)
        self.assert_refused(self.client.call("OPTIONS", "/nothing"), 404, "unknown_path")

    def test_section_9_every_path_of_the_table_exists(self):
        for path in POSTS:
            self.assert_refused(self.client.call("POST", path, b"{}"), 400, "invalid")
        for path in "/lock/subscribe", "/subscribe", "/refs", "/lock/status":
            self.assert_refused(self.client.get(path), 400, "invalid")
        for path in PAGES + ["/locks"]:
            self.assertEqual(self.client.get(path).status, 200)


class PageTest(ServerCase):
    def test_section_9_health_and_readiness(self):
        self.assertEqual(self.client.get("/healthz").body, {"status": "ok"})
        self.assertTrue(self.client.get("/readyz")["ready"])

    def test_section_9_version_tells_build_and_settings(self):
        answer = self.own_server("--max-queue", "7", "--bond-grace", "2s").client().get("/version")
        self.assertRegex(answer["version"], r"^\d+\.\d+\.\d+")
        self.assertGreaterEqual(answer["uptime_ms"], 0)
        self.assertRegex(answer["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual((answer["settings"]["max-queue"], answer["settings"]["bond-grace"]), ("7", "2s"))

    def test_section_9_version_tells_one_life_from_the_next(self):
        server = self.own_server()
        lives = [server.client().get("/version")["life"] for _ in range(2)]
        self.assertEqual(lives[0], lives[1])
        server.kill_and_restart()
        self.assertNotEqual(server.client().get("/version")["life"], lives[0])

    def test_section_9_the_api_is_described_for_every_path(self):
        text = self.client.get("/openapi.yaml").text
        self.assertTrue(text.lstrip("# \n").startswith("openapi:") or "\nopenapi:" in text)
        for path in POSTS + STREAMS + LISTS + PAGES + ["/lock/status"]:
            self.assertIn(f"\n  {path}:", text)

    def test_section_9_the_root_tells_a_stranger_where_to_go(self):
        answer = self.client.get("/")
        self.assertEqual(answer.status, 200)
        self.assertIn("/lock", answer.text)


class StatusPageTest(ServerCase):
    def get(self, path, **headers):
        return self.client.call("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def test_section_9_a_browser_gets_the_page_and_everybody_else_the_text(self):
        for accept in "*/*", "application/json", "":
            answer = self.get("/", Accept=accept)
            self.assertEqual((answer.headers["Content-Type"], answer.headers["Vary"]), ("text/plain; charset=utf-8", "Accept"))
        page = self.get("/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
        self.assertEqual((page.headers["Content-Type"], page.headers["Vary"]), ("text/html; charset=utf-8", "Accept"))
        self.assertIn("<title>Turnstile</title>", page.text)

    def test_section_9_the_page_trusts_nobody_else(self):
        for path in "/", "/page/index.html", "/page/main.js", "/page/page.css":
            headers = self.get(path, Accept="text/html").headers
            for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
                         "frame-ancestors 'none'"):
                self.assertIn(part, headers["Content-Security-Policy"], path)
            self.assertNotIn("unsafe", headers["Content-Security-Policy"])
            self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))

    def test_section_9_a_file_that_has_not_changed_is_not_sent_again(self):
        first = self.get("/page/main.js")
        self.assertEqual((first.status, first.headers["Cache-Control"]), (200, "no-cache"))
        again = self.get("/page/main.js", If_None_Match=first.headers["ETag"])
        self.assertEqual((again.status, again.text), (304, ""))
        self.assertEqual(self.get("/page/main.js", If_None_Match='"another"').status, 200)

    def test_section_9_there_is_nothing_else_below_it(self):
        for path in "/page/", "/page/nothing.js", "/page/../version", "/page/main.js/", "/page/%2e%2e/main.js":
            self.assert_refused(self.client.call("GET", path), 404, "unknown_path")
        self.assertEqual(self.client.call("GET", "/page").status, 404)
        self.assertEqual(self.client.call("POST", "/page/main.js", b"{}").status, 405)


class SummaryTest(ServerCase):
    def setUp(self):
        self.server = self.own_server()
        super().setUp()

    def sums(self, kind):
        summary = self.client.get("/summary").body
        one = next(each for each in summary["operations"] if each["type"] == kind)
        return tuple(one[name] for name in ("held", "waiting", "kept", "grants", "skips"))

    def test_S58_sums_follow_what_is_held_waits_and_is_kept(self):
        self.assertEqual(self.sums("pull"), (0, 0, 0, 0, 0))
        self.hold("a")
        self.queue("b")
        self.queue("c")
        self.assertEqual(self.sums("pull"), (1, 2, 0, 1, 0))
        self.unlock("a")
        self.assertEqual(self.sums("pull"), (0, 0, 1, 1, 2))
        summary = self.client.get("/summary").body
        self.assertEqual((summary["held"], summary["kept"], summary["references"], summary["resources"]), (0, 1, 1, 1))
        self.hold("d", "my-own")
        self.assertEqual(self.sums("other"), (1, 0, 0, 1, 0))

    def test_S58_the_newest_endings_come_first_and_say_how_it_ended(self):
        self.hold("a", "job")
        self.unlock("a", "job", error="disk full")
        self.hold("b", "job")
        self.client.post("/admin/break", type="job", resource_id=self.resource, reason="by hand")

        def endings():
            return [(each["event"]["event"], each["event"]["error"])
                    for each in self.client.get("/summary")["endings"]]
        wait_until(lambda: endings() == [("broken", "by hand"), ("failed", "disk full")], "both endings, without grants")
        for i in range(100):
            self.client.batch({"call": "lock", "type": "job", "resource_id": f"r{i}", "node_id": "n"},
                              {"call": "unlock", "type": "job", "resource_id": f"r{i}", "node_id": "n"})
        wait_until(lambda: len(endings()) == 40, "never more than forty")

    def test_S58_what_happens_after_the_last_event_id_comes_by_the_stream(self):
        def last():
            return self.client.get("/summary")["last_event_id"]
        before = last()
        self.hold("a", "job")
        wait_until(lambda: last() != before, "the grant is counted")
        seen = last()
        self.unlock("a", "job")
        stream = self.server.stream("/events", last_event_id=seen)
        event = stream.next()["data"]
        self.assertEqual(event["event"], "completed")
        stream.close()

    def test_S58_the_history_shows_what_was_granted(self):
        def grants():
            return sum(self.client.get("/summary")["history"]["grants"])
        wait_until(lambda: self.client.get("/summary")["history"]["grants"] == [0], "a first step without grants")
        self.hold("a")
        self.hold("a", "job")
        wait_until(lambda: grants() == 2, "two grants in the history")
        self.assertEqual(self.client.get("/summary")["history"]["held"][-1], 2)

    def test_S58_what_is_kept_is_counted_after_a_restart(self):
        self.hold("a")
        self.unlock("a")
        self.server.kill_and_restart()
        self.client = self.server.client()
        self.assertEqual(self.sums("pull")[:3], (0, 0, 1))


class MetricsTest(ServerCase):
    def setUp(self):
        # Counters are of the whole server, so each test has one of its own.
        self.server = self.own_server()
        super().setUp()

    def values(self, kind):
        return tuple(self.client.metric(f"turnstile_{name}", operation=kind)
                     for name in ("locks_held", "waiters", "grants_total", "skips_total", "refusals_total"))

    def test_section_9_holds_waiters_grants_skips_and_refusals_are_counted_by_operation(self):
        self.assertEqual(self.values("pull"), (0, 0, 0, 0, 0))
        self.hold("a")
        self.queue("b")
        self.queue("c")
        self.assertEqual(self.values("pull"), (1, 2, 1, 0, 0))
        self.unlock("a", error="no")
        self.assertEqual(self.values("pull"), (1, 1, 2, 0, 0))
        self.unlock("b")
        self.assertEqual(self.values("pull"), (0, 0, 2, 1, 0))
        self.assertTrue(self.lock("late")["skip"])
        self.assertEqual(self.values("pull"), (0, 0, 2, 2, 0))
        self.lock("d", "delete")
        self.assertEqual(self.values("delete"), (0, 0, 0, 0, 1))

    def test_section_9_a_type_of_the_users_own_counts_as_other_and_no_resource_is_a_label(self):
        before = self.values("other")
        self.hold("a", "my-own-operation")
        self.assertEqual(self.values("other"), (before[0] + 1, before[1], before[2] + 1, before[3], before[4]))
        text = self.client.get("/metrics").text
        for private in "my-own-operation", self.resource, "resource_id", "node":
            self.assertNotIn(private, text)

    def test_section_9_connections_streams_resources_and_requests_are_counted(self):
        server = self.own_server()  # where no stream of an earlier test is about to end
        client = server.client()
        stream = server.stream(type="pull", resource_id=self.resource)
        self.assertEqual(client.metric("turnstile_streams"), 1)
        stream.close()
        wait_until(lambda: client.metric("turnstile_streams") == 0, "the stream is gone")
        self.assertGreaterEqual(self.client.metric("turnstile_connections"), 1)
        resources = self.client.metric("turnstile_resources")
        self.hold("a")
        self.assertEqual(self.client.metric("turnstile_resources"), resources + 1)
        bad = self.client.metric("turnstile_http_requests_total", status="4xx")
        self.client.call("GET", "/nothing")
        self.assertEqual(self.client.metric("turnstile_http_requests_total", status="4xx"), bad + 1)

    def test_section_9_limits_are_told_with_what_is_used_of_them(self):
        server = self.own_server("--max-resources", "1000", "--max-waiters", "70")
        client = server.client()
        used = lambda name: client.metric("turnstile_limit_used", limit=name)
        self.assertEqual(client.metric("turnstile_limit", limit="max-resources"), 1000)
        self.assertEqual(client.metric("turnstile_limit", limit="max-waiters"), 70)
        before = [used(name) for name in ("max-resources", "max-waiters", "max-references", "max-result-memory")]
        self.hold("a", client=client)
        self.queue("b", client=client)
        self.queue("c", client=client)
        client.call("POST", "/refs/add", b'{"resource_id":"other","node_id":"x"}')
        self.unlock("a", client=client, result="x" * 500)
        self.hold("d", "update", resource_id="third", client=client)
        self.queue("e", "update", resource_id="third", client=client)
        after = [used(name) for name in ("max-resources", "max-waiters", "max-references", "max-result-memory")]
        # a uses what it has pulled, x another; b and c have not come back to hear that they skip; e waits.
        self.assertEqual(after[:3], [before[0] + 3, before[1] + 1, before[2] + 2])
        self.assertGreaterEqual(after[3], 500)
        self.assertGreaterEqual(used("max-connections"), 1)

    def test_section_9_the_process_and_its_journal_are_measured(self):
        metric = self.client.metric
        self.assertAlmostEqual(metric("process_resident_memory_bytes") / 1024, self.server.resident_kib(),
                               delta=0.5 * self.server.resident_kib())
        with open(f"/proc/{self.server.pid}/limits", encoding="ascii") as limits:
            most = next(line.split()[3] for line in limits if line.startswith("Max open files"))
        self.assertEqual(metric("process_max_fds"), int(most))
        descriptors = metric("process_open_fds")
        streams = [self.server.stream(type="pull", resource_id=self.resource) for _ in range(10)]
        self.assertGreaterEqual(metric("process_open_fds"), descriptors + len(streams))
        size = metric("turnstile_journal_bytes", part="log")
        self.hold("a")
        self.assertGreater(metric("turnstile_journal_bytes", part="log"), size)
        types = self.client.get("/metrics").text
        for counter in "turnstile_streams_cut_total", "process_cpu_seconds_total":
            self.assertIn(f"# TYPE {counter} counter", types)
        self.assertNotIn("turnstile_journal_snapshot_timestamp_seconds", types)  # there is none yet

    def test_S31_what_is_held_and_waits_is_counted_after_a_restart(self):
        server = self.own_server()
        client = server.client()
        self.hold("a", client=client)
        self.queue("b", client=client)
        server.kill_and_restart()
        client = server.client()
        self.assertEqual((client.metric("turnstile_locks_held", operation="pull"),
                          client.metric("turnstile_waiters", operation="pull")), (1, 1))
        self.unlock("a", client=client)
        self.assertEqual((client.metric("turnstile_locks_held", operation="pull"),
                          client.metric("turnstile_waiters", operation="pull")), (0, 0))


if __name__ == "__main__":
    harness.main()
