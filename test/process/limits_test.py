"""What one request can make the server say, or do for long: answers stay short, however much there is to tell."""
import time

import harness
from harness import ServerCase

MANY = 3000


class AnswerTest(ServerCase):
    store = "memory"

    def setUp(self):
        super().setUp()
        for i in range(MANY):
            self.client.post("/refs/add", resource_id=self.resource, node_id=f"node-{i:05}")

    def test_S5_a_refused_delete_names_the_first_100_nodes_and_the_count(self):
        refused = self.client.post("/lock", type="delete", resource_id=self.resource, node_id="a")
        self.assertEqual(refused.status, 403)
        self.assertEqual(refused["references"]["count"], MANY)
        self.assertEqual(refused["references"]["nodes"], [f"node-{i:05}" for i in range(100)])
        self.assertEqual(len(self.status(type="delete")["references"]["nodes"]), 100)

    def test_the_nodes_that_use_a_resource_are_read_page_by_page(self):
        seen, after = [], {}
        while True:
            page = self.client.get("/refs", resource_id=self.resource, limit=1000, **after)
            self.assertEqual(page["count"], MANY)
            seen += page["nodes"]
            if "next" not in page.body:
                break
            after = {"after": page["next"]}
        self.assertEqual(seen, [f"node-{i:05}" for i in range(MANY)])


class TokenTest(ServerCase):
    def test_S27_a_completion_that_is_told_again_has_its_token_and_attempt_also_after_a_restart(self):
        server = self.own_server()
        client = server.client()
        token = self.hold("a", client=client)
        self.unlock("a", client=client)
        for _ in range(2):
            told = server.stream(type="pull", resource_id=self.resource).next()["data"]
            self.assertEqual((told["event"], told["token"], told["attempt"]), ("completed", token, 1))
            server.kill()
            server.start()


class GoneTest(ServerCase):
    flags = ("--claim-timeout", "2s")

    def test_S35_waiters_that_have_gone_hold_up_the_next_only_for_a_fraction_of_the_claim_timeout(self):
        def scenario(i):
            resource = f"{self.resource}{i}"
            self.hold("a", "update", resource_id=resource)
            for gone in range(4):
                self.queue(f"gone{gone}", "update", resource_id=resource)
            time.sleep(2.1)  # nobody hears of them meanwhile
            last = self.poll("last", "update", resource_id=resource)
            start = time.monotonic()
            self.unlock("a", "update", resource_id=resource)
            self.assertTrue(last.answer()["acquired"])
            return time.monotonic() - start < 6  # four times 0.5 s, not four times 2 s

        self.race(scenario)


class MostTest(ServerCase):
    flags = ("--max-waiters", "2", "--max-references", "3", "--max-resources", "5")

    def test_what_is_beyond_a_limit_is_refused_and_the_setting_is_named(self):
        self.hold("a")
        self.queue("b")
        self.queue("c")
        refused = self.lock("d")
        self.assert_refused(refused, 429, "too_many_requests")
        self.assertIn("max-waiters", refused["message"])
        for node in "abc":
            self.client.post("/refs/add", resource_id="used", node_id=node)
        refused = self.client.post("/refs/add", resource_id="used", node_id="d")
        self.assert_refused(refused, 429, "too_many_requests")
        self.assertIn("max-references", refused["message"])
        for i in range(3):
            self.hold("a", "own", resource_id=f"r{i}")
        refused = self.lock("a", "own", resource_id="more")
        self.assert_refused(refused, 429, "too_many_requests")
        self.assertIn("max-resources", refused["message"])


if __name__ == "__main__":
    harness.main()
