"""What operations mean and what settings change, against the real server: scope, references, operation rules."""
import itertools

import harness
from harness import ServerCase


class ScopeTest(ServerCase):
    def test_S7_operations_of_one_resource_run_side_by_side_by_default(self):
        for kind in ("pull", "update", "delete", "own"):
            self.hold("a", kind)

    def test_S7_X4_with_scope_resource_every_pair_of_operations_excludes_the_other(self):
        kinds = ("pull", "update", "delete", "own")
        for i, (first, second) in enumerate(itertools.product(kinds, kinds)):
            for scopes in ({"scope": "resource"}, {}), ({}, {"scope": "resource"}):
                lane = f"{self.resource}-{i}-{len(scopes[0])}"
                self.hold("a", first, resource_id=lane, **scopes[0])
                queued = self.lock("b", second, resource_id=lane, **scopes[1])
                self.assertEqual((queued["state"], queued["position"]), ("queued", 1), (first, second, scopes))
                self.assertEqual(queued["holder"].get("type", second), first)
                self.unlock("a", first, resource_id=lane, error="no")
                self.assertEqual(self.holder(second, resource_id=lane), "b", (first, second, scopes))

    def test_S10_ending_a_hold_grants_waiters_of_other_lanes_that_only_it_kept_waiting(self):
        self.hold("a", "delete", scope="resource")
        polls = [self.poll("b", "pull"), self.poll("c", "update")]
        self.unlock("a", "delete")
        self.assertEqual([poll.answer()["acquired"] for poll in polls], [True, True])

    def test_S7_the_default_scope_is_a_setting(self):
        client = self.own_server("--scope", "resource").client()
        self.hold("a", "pull", client=client)
        self.queue("b", "delete", client=client)
        self.unlock("a", "pull", client=client, error="no")
        self.assertEqual(self.holder("delete", client=client), "b")


class ReferenceTest(ServerCase):
    def nodes(self, client=None):
        return (client or self.client).get("/refs", resource_id=self.resource)["nodes"]

    def test_S17_a_successful_pull_adds_its_node_once(self):
        self.hold("a")
        self.unlock("a")
        self.assertEqual(self.client.get("/refs", resource_id=self.resource).body,
                         {"resource_id": self.resource, "count": 1, "nodes": ["a"]})
        self.assertTrue(self.lock("a")["skip"])
        self.assertEqual(self.nodes(), ["a"])

    def test_S17_a_pull_that_ends_with_skip_adds_its_node_too(self):
        self.hold("a")
        poll = self.poll("polls")
        self.queue("asks-again")
        self.queue("polls-status")
        self.queue("has-gone")
        self.unlock("a")
        self.assertTrue(poll.answer()["skip"])
        self.assertTrue(self.lock("asks-again")["skip"])
        self.assertTrue(self.status(node_id="polls-status")["success"])
        self.assertTrue(self.lock("late")["skip"])
        self.assertEqual(sorted(self.nodes()), ["a", "asks-again", "late", "polls", "polls-status"])

    def test_S5_a_pull_of_a_referenced_resource_is_skipped(self):
        self.client.post("/refs/add", resource_id=self.resource, node_id="a")
        self.assertTrue(self.lock("b")["skip"])

    def test_S5_a_delete_of_a_referenced_resource_is_refused_and_names_the_nodes(self):
        for node in "ab":
            self.client.post("/refs/add", resource_id=self.resource, node_id=node)
        answer = self.lock("a", "delete")
        self.assert_refused(answer, 403, "referenced")
        self.assertEqual((answer["state"], answer["references"]), ("refused", {"count": 2, "nodes": ["a", "b"]}))

    def test_S5_an_update_is_refused_while_referenced_only_if_the_server_is_set_so(self):
        self.client.post("/refs/add", resource_id=self.resource, node_id="a")
        self.hold("b", "update")
        strict = self.own_server("--update-requires-no-ref", "true").client()
        strict.post("/refs/add", resource_id=self.resource, node_id="a")
        self.assert_refused(self.lock("b", "update", client=strict), 403, "referenced")
        strict.post("/refs/release", resource_id=self.resource, node_id="a")
        self.hold("b", "update", client=strict)

    def test_S19_P6_references_are_added_and_released_by_node_and_repetition_is_harmless(self):
        def change(call, node):
            answer = self.client.post(f"/refs/{call}", resource_id=self.resource, node_id=node)
            self.assertEqual(answer.status, 200)
            return answer["changed"], answer["count"]
        self.assertEqual([change("add", "a"), change("add", "a")], [(True, 1), (False, 1)])
        self.assertEqual(change("add", "b"), (True, 2))
        self.assertEqual([change("release", "a"), change("release", "a")], [(True, 1), (False, 1)])

    def test_S19_P5_all_references_of_a_node_are_released_at_once(self):
        for i in range(10):
            for node in ("dead", "alive"):
                self.client.post("/refs/add", resource_id=f"{self.resource}{i}", node_id=node)
        answer = self.client.post("/refs/release_node", node_id="dead")
        self.assertEqual(answer.body, {"node_id": "dead", "changed": True, "count": 10})
        self.assertEqual(self.client.get("/refs", resource_id=f"{self.resource}7")["nodes"], ["alive"])
        self.assertEqual(self.client.post("/refs/release_node", node_id="dead")["count"], 0)

    def test_S19_delete_with_dereference_skips_while_others_use_it_and_is_granted_to_the_last(self):
        for node in "ab":
            self.client.post("/refs/add", resource_id=self.resource, node_id=node)
        first = self.lock("a", "delete", dereference=True)
        self.assertEqual((first["skip"], first["references"]), (True, {"count": 1, "nodes": ["b"]}))
        self.assertEqual(self.nodes(), ["b"])
        self.assertTrue(self.lock("b", "delete", dereference=True)["acquired"])
        self.assertEqual(self.nodes(), [])

    def test_S19_P7_no_reference_can_be_added_while_a_delete_holds_the_resource(self):
        self.hold("a", "delete")
        answer = self.client.post("/refs/add", resource_id=self.resource, node_id="b")
        self.assert_refused(answer, 403, "busy")
        self.assertFalse(answer["changed"])
        self.unlock("a", "delete")
        self.assertTrue(self.client.post("/refs/add", resource_id=self.resource, node_id="b")["changed"])

    def test_S13_D8_after_a_delete_a_pull_really_pulls(self):
        self.hold("a")
        self.unlock("a")
        self.lock("a", "delete", dereference=True)
        self.unlock("a", "delete")
        self.hold("b")

    def test_S18_with_references_kept_by_the_client_the_server_keeps_none(self):
        client = self.own_server("--references", "client").client()
        self.hold("a", client=client)
        self.unlock("a", client=client)
        self.assertTrue(self.lock("b", client=client)["skip"])
        self.hold("c", "delete", client=client)
        for answer in (client.get("/refs", resource_id=self.resource),
                       client.post("/refs/add", resource_id=self.resource, node_id="a"),
                       client.post("/refs/release", resource_id=self.resource, node_id="a"),
                       client.post("/refs/release_node", node_id="a")):
            self.assert_refused(answer, 403, "references_off")
        self.assertEqual(self.status(client=client)["references"], {"count": 0, "nodes": []})


class SettingTest(ServerCase):
    def test_S3_without_multi_node_download_a_busy_lane_refuses_and_nobody_queues(self):
        client = self.own_server("--allow-multi-node-download", "false").client()
        self.hold("a", client=client)
        answer = self.lock("b", client=client, wait_ms=60_000)
        self.assert_refused(answer, 403, "busy")
        self.assertEqual((answer["state"], answer["holder"]["node_id"]), ("refused", "a"))
        self.assertEqual(self.status(client=client)["queue"], [])
        self.hold("a", client=client)

    def test_section_4_a_type_of_the_users_own_is_a_plain_mutex_unless_told_otherwise(self):
        client = self.own_server("--operation", "build:on_success=share,references=add,guard=skip,voids=true",
                                 "--operation", "update:on_success=share").client()
        self.hold("a", "mutex", client=client)
        self.queue("b", "mutex", client=client)
        self.assertEqual(self.unlock("a", "mutex", client=client)["next"], "b")
        for kind in ("build", "update"):
            self.hold("a", kind, client=client, resource_id=kind)
            self.queue("b", kind, client=client, resource_id=kind)
            self.assertNotIn("next", self.unlock("a", kind, client=client, resource_id=kind))
            self.assertTrue(self.lock("b", kind, client=client, resource_id=kind)["skip"])
        self.assertEqual(client.get("/refs", resource_id="build")["nodes"], ["a", "b"])

    def test_S10_a_success_is_not_kept_with_retain_completed_0(self):
        client = self.own_server("--retain-completed", "0", "--references", "client").client()
        self.hold("a", client=client)
        self.unlock("a", client=client)
        self.hold("b", client=client)

    def test_section_9_limits_are_settings(self):
        client = self.own_server("--max-resource-id", "8", "--max-node-id", "4", "--max-type", "5").client()
        self.assertEqual(client.lock("12345678", "1234", type="12345").status, 200)
        self.assert_refused(client.lock("123456789", "1234", type="12345"), 400, "invalid")
        self.assert_refused(client.lock("12345678", "12345", type="12345"), 400, "invalid")
        self.assert_refused(client.lock("12345678", "1234", type="123456"), 400, "invalid")


if __name__ == "__main__":
    harness.main()
