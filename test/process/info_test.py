"""What of the real server is not about locks: paths and methods, health, metrics, version, the API's description."""
import harness
from harness import ServerCase, wait_until

POSTS = ["/lock", "/unlock", "/renew", "/cancel", "/batch", "/refs/add", "/refs/release", "/refs/release_node",
         "/admin/break"]
STREAMS = ["/lock/subscribe", "/subscribe", "/events"]
LISTS = ["/locks", "/refs"]
PAGES = ["/healthz", "/readyz", "/metrics", "/version", "/openapi.yaml", "/"]
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
            if path == "/metrics":
                continue  # no two answers are equal
            target = f"{path}?{queries[path]}" if path in queries else path
            head, get = self.client.call("HEAD", target), self.client.call("GET", target)
            self.assertEqual((head.status, head.text), (200, ""), path)
            for name in "Content-Type", "Content-Length":
                self.assertEqual(head.headers[name], get.headers[name], path)
        self.assertEqual(self.client.call("HEAD", "/metrics").status, 200)
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
        streams = self.client.metric("turnstile_streams")
        stream = self.server.stream(type="pull", resource_id=self.resource)
        self.assertEqual(self.client.metric("turnstile_streams"), streams + 1)
        stream.close()
        wait_until(lambda: self.client.metric("turnstile_streams") == streams, "the stream is gone")
        self.assertGreaterEqual(self.client.metric("turnstile_connections"), 1)
        resources = self.client.metric("turnstile_resources")
        self.hold("a")
        self.assertEqual(self.client.metric("turnstile_resources"), resources + 1)
        bad = self.client.metric("turnstile_http_requests_total", status="4xx")
        self.client.call("GET", "/nothing")
        self.assertEqual(self.client.metric("turnstile_http_requests_total", status="4xx"), bad + 1)

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
