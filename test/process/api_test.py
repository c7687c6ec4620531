"""The calls about locks against the real server: lock, unlock, renew, cancel, batch, status, lists, long polls.

Rules are named by their number in docs/semantics.md, holes by their id in test/regression.
"""
import json

import harness
from client import connect, parse_answers, read_all
from harness import ServerCase, wait_until


class SeedClientTest(ServerCase):
    """A client written for the seeds knows three fields of a request and a few of the answers."""

    def test_section_9_the_seeds_client_locks_is_queued_unlocks_and_skips(self):
        body = {"type": "pull", "resource_id": self.resource, "node_id": "a"}
        first = self.client.call("POST", "/lock", body)
        self.assertEqual((first.status, first["acquired"], first["skip"]), (200, True, False))
        self.assertIsInstance(first["message"], str)
        second = self.client.call("POST", "/lock", {**body, "node_id": "b"})
        self.assertEqual((second["acquired"], second["skip"]), (False, False))
        released = self.client.call("POST", "/unlock", {**body, "error": ""})
        self.assertEqual((released.status, released["released"]), (200, True))
        late = self.client.call("POST", "/lock", {**body, "node_id": "c"})
        self.assertEqual((late["acquired"], late["skip"]), (False, True))

    def test_S29_the_seeds_six_fields_are_in_every_event(self):
        stream = self.server.stream("/subscribe", type="pull", resource_id=self.resource)
        self.hold("a")
        self.unlock("a", error="it broke")
        granted, failed = stream.next()["data"], stream.next()["data"]
        for event in granted, failed:
            six = {"type", "resource_id", "node_id", "success", "error", "completed_at"}
            self.assertEqual(six - event.keys(), set())
        self.assertEqual((granted["success"], granted["error"], granted["node_id"]), (False, "", "a"))
        self.assertEqual((failed["success"], failed["error"], failed["node_id"]), (False, "it broke", "a"))

    def test_L9_the_seeds_client_polls_the_status_until_its_wait_has_ended(self):
        self.hold("a")
        self.queue("b")
        polled = self.status(node_id="b")
        self.assertEqual((polled["acquired"], polled["completed"], polled["position"]), (False, False, 1))
        self.unlock("a")
        polled = self.status(node_id="b")
        self.assertEqual((polled["acquired"], polled["completed"], polled["success"], polled["error"]),
                         (False, True, True, ""))

    def test_section_9_the_content_type_unknown_fields_and_nulls_do_not_matter(self):
        text = json.dumps({"type": "pull", "resource_id": self.resource, "node_id": "a", "request_id": None,
                           "scope": "", "colour": {"deep": [1, 2, 3]}})
        self.assertTrue(self.client.call("POST", "/lock", text, {"Content-Type": "text/plain"})["acquired"])


class LockTest(ServerCase):
    def test_S2_X1_two_requests_of_one_node_are_two_requesters(self):
        self.assertTrue(self.lock("a", request_id="1")["acquired"])
        self.assertEqual(self.lock("a", request_id="2")["position"], 1)
        self.assertEqual(self.status()["holder"]["request_id"], "1")

    def test_S2_asking_again_gives_the_same_token_and_keeps_the_place(self):
        token = self.hold("a")
        self.assertEqual(self.hold("a"), token)
        for _ in range(3):
            self.assertEqual(self.queue("b"), 1)
        self.assertEqual(self.queue("c"), 2)
        self.assertEqual(self.queued(), ["b", "c"])

    def test_S3_a_queued_answer_says_the_position_and_who_holds(self):
        token = self.hold("a", info="layer 3 of 7", lease_ms=60_000)
        answer = self.lock("b")
        self.assertEqual((answer["state"], answer["position"]), ("queued", 1))
        holder = answer["holder"]
        self.assertEqual((holder["node_id"], holder["token"], holder["lease_ms"], holder["info"]),
                         ("a", token, 60_000, "layer 3 of 7"))

    def test_S6_X8_every_grant_has_a_greater_token(self):
        last = 0
        for i in range(50):
            token = self.hold(f"n{i}", type="own")
            self.assertGreater(token, last)
            last = token
            self.unlock(f"n{i}", type="own")

    def test_X5_ids_with_separators_never_alias(self):
        pairs = [("a:b", "c"), ("a", "b:c"), ("a/b", "c"), ("a", "b/c"), ("a%3Ab", "c"), ('a"b', "c"), ("a b", "ç"),
                 ("a", "日本:c"), ("a\\", "c"), ("a+b", "c")]
        for kind, resource in pairs:
            self.hold("n", type=kind, resource_id=resource + self.resource)
        for kind, resource in pairs:
            status = self.status(kind, resource + self.resource)
            self.assertEqual((status["type"], status["resource_id"], status["state"]),
                             (kind, resource + self.resource, "held"))

    def test_S4_S10_D1_success_ends_every_waiter_with_skip_and_late_comers_skip(self):
        self.hold("a")
        polls = [self.poll(f"w{i}") for i in range(20)]
        released = self.unlock("a")
        self.assertEqual(released["waiters"], [f"w{i}" for i in range(20)])
        self.assertNotIn("next", released)
        for poll in polls:
            answer = poll.answer()
            self.assertEqual((answer.status, answer["skip"], answer["state"]), (200, True, "skipped"))
        self.assertEqual(self.queued(), [])
        self.assertTrue(self.lock("late")["skip"])

    def test_S11_an_update_hands_off_on_success(self):
        self.hold("a", "update")
        poll = self.poll("b", "update")
        self.assertEqual(self.unlock("a", "update")["next"], "b")
        self.assertTrue(poll.answer()["acquired"])

    def test_S12_L14_a_failure_grants_the_next_and_tells_it_attempt_and_error(self):
        self.hold("a")
        poll = self.poll("b")
        self.assertEqual(self.unlock("a", error="connection reset")["next"], "b")
        answer = poll.answer()
        self.assertEqual((answer["acquired"], answer["attempt"], answer["previous_error"]),
                         (True, 2, "connection reset"))

    def test_S12_a_permanent_failure_ends_all_waiters_and_is_kept(self):
        self.hold("a")
        polls = [self.poll("b"), self.poll("c")]
        self.unlock("a", error="404 not found", permanent=True)
        for answer in [poll.answer() for poll in polls] + [self.lock("d")]:
            self.assertEqual((answer.status, answer["state"], answer["code"], answer["error"]),
                             (403, "failed", "failed", "404 not found"))
            self.assertEqual((answer["acquired"], answer["skip"]), (False, False))

    def test_S9_D6_success_false_without_an_error_is_a_failure(self):
        self.hold("a")
        self.queue("b")
        self.assertEqual(self.unlock("a", success=False)["next"], "b")

    def test_L8_a_chain_of_immediate_failures_over_100_waiters_never_stalls(self):
        self.hold("w0")
        polls = [self.server.poll(self.resource, f"w{i}") for i in range(1, 101)]
        wait_until(lambda: len(self.queued()) == 100, "100 waiters")
        order = self.queued()
        by_node = {f"w{i}": poll for i, poll in enumerate(polls, 1)}
        self.unlock("w0", error="no")
        for i, node in enumerate(order, 2):
            answer = by_node[node].answer()
            self.assertEqual((answer["acquired"], answer["attempt"]), (True, i))
            self.unlock(node, token=answer["token"], error="no")
        self.assertEqual(self.status()["state"], "idle")

    def test_section_9_a_full_queue_refuses_with_429_queue_full(self):
        server = self.own_server("--max-queue", "2")
        client = server.client()
        for node in "abc":
            self.lock(node, client=client)
        self.assert_refused(self.lock("d", client=client), 429, "queue_full")
        self.assertEqual(self.queue("b", client=client), 1)


class UnlockTest(ServerCase):
    def test_S8_each_refusal_has_its_code_and_changes_nothing(self):
        self.assert_refused(self.unlock("a"), 403, "not_held")
        token = self.hold("a", request_id="1")
        self.queue("b")
        before = self.status().body
        self.assert_refused(self.unlock("b"), 403, "not_holder")
        self.assert_refused(self.unlock("a", request_id="2"), 403, "not_holder")
        self.assert_refused(self.unlock("a", request_id="1", token=token + 1), 403, "stale_token")
        for answer in self.unlock("b"), self.unlock("a", token=token - 1):
            self.assertEqual(answer["released"], False)
            self.assertIn("message", answer)
        self.assertEqual(self.status().body, before)

    def test_X7_a_late_unlock_of_an_earlier_hold_does_not_free_a_later_one(self):
        server = self.own_server("--retain-released", "0")
        client = server.client()
        old = self.hold("a", "own", client=client)
        self.unlock("a", "own", token=old, client=client)
        self.hold("a", "own", client=client)
        self.assert_refused(self.unlock("a", "own", token=old, client=client), 403, "stale_token")
        self.assertEqual(self.holder("own", client=client), "a")

    def test_S15_D5_D7_a_repeated_unlock_answers_already_and_changes_nothing(self):
        token = self.hold("a", "own")
        self.queue("b", "own")
        self.unlock("a", "own", token=token)
        again = self.unlock("a", "own", token=token)
        self.assertEqual((again.status, again["released"], again["already"]), (200, True, True))
        self.assertEqual(self.holder("own"), "b")

    def test_S16_unlock_and_status_list_the_waiters_of_the_whole_resource(self):
        self.hold("a", "delete")
        self.hold("b", "pull")
        self.queue("c", "pull")
        self.queue("d", "delete")
        self.assertEqual(sorted(self.status("delete")["waiters"]), ["c", "d"])
        self.assertEqual(sorted(self.unlock("a", "delete", error="no")["waiters"]), ["c", "d"])


class LongPollTest(ServerCase):
    def test_S24_a_long_poll_that_times_out_says_queued_and_keeps_its_place(self):
        self.hold("a")
        answer = self.server.poll(self.resource, "b", wait_ms=50).answer()
        self.assertEqual((answer.status, answer["state"], answer["position"]), (200, "queued", 1))
        self.queue("c")
        self.assertEqual(self.queued(), ["b", "c"])

    def test_S24_a_long_poll_that_is_granted_at_once_answers_at_once(self):
        self.assertTrue(self.server.poll(self.resource, "a").answer()["acquired"])

    def test_S25_L12_cancel_ends_the_long_poll_and_leaves_the_queue(self):
        self.hold("a")
        poll = self.poll("b")
        self.assertTrue(self.client.cancel(self.resource, "b")["cancelled"])
        answer = poll.answer()
        self.assertEqual((answer.status, answer["state"], answer["acquired"]), (200, "cancelled", False))
        self.assertEqual(self.queued(), [])
        self.assertFalse(self.client.cancel(self.resource, "b")["cancelled"])

    def test_S25_cancel_does_not_touch_a_claimed_hold(self):
        self.hold("a")
        self.assertFalse(self.client.cancel(self.resource, "a")["cancelled"])
        self.assertEqual(self.holder(), "a")

    def test_S25_cancel_passes_an_unclaimed_grant_on(self):
        stream = self.server.stream(type="pull", resource_id=self.resource)
        self.hold("a")
        self.queue("b")
        self.queue("c")
        self.unlock("a", error="no")
        self.assertTrue(self.client.cancel(self.resource, "b")["cancelled"])
        self.assertEqual(self.holder(), "c")
        self.assertEqual(stream.next_of("expired")["reason"], "cancelled")

    def test_S14_a_waiter_that_became_forbidden_ends_with_its_error(self):
        self.hold("a", "delete")
        self.hold("p", "pull")
        poll = self.poll("b", "delete")
        self.unlock("p", "pull")
        self.unlock("a", "delete", error="no")
        self.assert_refused(poll.answer(), 403, "referenced")

    def test_S2_two_long_polls_of_one_requester_both_get_its_one_grant(self):
        self.hold("a")
        polls = [self.poll("b"), self.server.poll(self.resource, "b")]
        self.unlock("a", error="no")
        answers = [poll.answer() for poll in polls]
        self.assertTrue(all(answer["acquired"] for answer in answers))
        self.assertEqual(answers[0]["token"], answers[1]["token"])


class BatchTest(ServerCase):
    def test_section_9_a_batch_answers_in_order_each_with_its_status(self):
        lane = {"type": "pull", "resource_id": self.resource}
        answers = self.client.batch(
            {"call": "lock", **lane, "node_id": "a"},
            {"call": "lock", **lane, "node_id": "b", "wait_ms": 60_000},
            {"call": "unlock", **lane, "node_id": "b"},
            {"call": "cancel", **lane, "node_id": "b"},
            {"call": "renew", **lane, "node_id": "a", "token": 1},
            {"call": "unlock", **lane, "node_id": "a"})["answers"]
        self.assertEqual([answer["status"] for answer in answers], [200, 200, 403, 200, 403, 200])
        self.assertEqual((answers[0]["acquired"], answers[1]["state"], answers[2]["code"]),
                         (True, "queued", "not_holder"))
        self.assertEqual((answers[3]["cancelled"], answers[4]["code"], answers[5]["released"]),
                         (True, "stale_token", True))

    def test_S17_references_in_a_batch_are_those_of_the_single_calls_without_the_list_of_nodes(self):
        used = [{"call": call, "resource_id": self.resource + name, "node_id": node}
                for call, name, node in (("refs/add", "x", "a"), ("refs/add", "x", "b"), ("refs/add", "x", "a"),
                                         ("refs/add", "y", "a"), ("refs/release", "x", "b"), ("refs/release", "z", "b"))]
        answers = self.client.batch(*used)["answers"]
        self.assertEqual([(a["status"], a["resource_id"], a["count"], a["changed"]) for a in answers],
                         [(200, self.resource + name, count, changed) for name, count, changed in (
                             ("x", 1, True), ("x", 2, True), ("x", 2, False), ("y", 1, True), ("x", 1, True), ("z", 0, False))])
        self.assertTrue(all(set(a) == {"status", "resource_id", "count", "changed"} for a in answers))
        self.assertEqual(self.client.get("/refs", resource_id=self.resource + "x")["nodes"], ["a"])
        # As alone, one is refused while the resource is being deleted; the others are done.
        self.client.post("/refs/release", resource_id=self.resource + "x", node_id="a")
        self.client.lock(self.resource + "x", "c", type="delete")
        answers = self.client.batch(used[0], {**used[3], "node_id": "b"})["answers"]
        self.assertEqual([(a["status"], a.get("code"), a["changed"]) for a in answers], [(403, "busy", False), (200, None, True)])

    def test_section_9_a_bad_item_neither_stops_nor_undoes_the_others(self):
        good = {"call": "lock", "type": "pull", "node_id": "a"}
        bad = [{"call": "lock", "type": "pull", "node_id": "a"}, {"call": "sing"}, {"type": "pull"}, 7, None, []]
        items = []
        for i, wrong in enumerate(bad):
            items += [{**good, "resource_id": f"{self.resource}{i}"}, wrong]
        answers = self.client.post("/batch", requests=items)["answers"]
        self.assertEqual([a["status"] for a in answers], [200, 400] * len(bad))
        self.assertTrue(all(a["code"] == "invalid" for a in answers[1::2]))
        self.assertEqual(self.status(resource_id=f"{self.resource}{len(bad) - 1}")["state"], "held")

    def test_section_9_a_thousand_requests_are_a_batch_and_one_more_is_400(self):
        items = [{"call": "lock", "type": "pull", "resource_id": f"{self.resource}{i}", "node_id": "a"}
                 for i in range(1001)]
        self.assert_refused(self.client.post("/batch", requests=items), 400, "invalid")
        self.assertEqual(self.status(resource_id=f"{self.resource}0")["state"], "idle")
        answers = self.client.post("/batch", requests=items[:1000])["answers"]
        self.assertEqual(sum(a["acquired"] for a in answers), 1000)
        self.assertEqual(self.client.batch()["answers"], [])

    def test_section_9_pipelined_requests_are_answered_in_order(self):
        def request(i):
            body = json.dumps({"type": "pull", "resource_id": f"{self.resource}{i}", "node_id": f"n{i}"})
            return f"POST /lock HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        status = (f"GET /lock/status?type=pull&resource_id={self.resource}99 HTTP/1.1\r\nHost: x\r\n"
                  "Connection: close\r\n\r\n")
        with connect(self.server.host, self.server.port) as raw:
            raw.sendall("".join([request(i) for i in range(100)] + [status]).encode())
            received = read_all(raw)
        answers = parse_answers(received)
        self.assertEqual([status for status, _, _ in answers], [200] * 101)
        tokens = [json.loads(body)["token"] for _, _, body in answers[:100]]
        self.assertEqual(tokens, sorted(tokens))
        self.assertEqual(json.loads(answers[100][2])["holder"]["node_id"], "n99")


class StatusTest(ServerCase):
    def test_section_9_status_tells_holder_queue_completion_and_references(self):
        token = self.hold("a", request_id="r1", info="hello")
        self.queue("b", request_id="r2", info="world")
        status = self.status()
        self.assertEqual((status["type"], status["resource_id"], status["state"]), ("pull", self.resource, "held"))
        holder, waiter = status["holder"], status["queue"][0]
        self.assertEqual((holder["node_id"], holder["request_id"], holder["token"], holder["info"]),
                         ("a", "r1", token, "hello"))
        self.assertEqual((waiter["node_id"], waiter["request_id"], waiter["position"], waiter["info"]),
                         ("b", "r2", 1, "world"))
        self.assertRegex(holder["since"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        self.unlock("a", request_id="r1")
        done = self.status()
        self.assertEqual((done["state"], done["completion"]["node_id"], done["completion"]["success"]),
                         ("completed", "a", True))
        self.assertEqual(done["references"], {"count": 1, "nodes": ["a"]})

    def test_section_9_status_takes_a_body_as_well(self):
        self.hold("a")
        answer = self.client.post("/lock/status", type="pull", resource_id=self.resource, node_id="a")
        self.assertEqual((answer["acquired"], answer["state"]), (True, "held"))

    def test_S14_a_status_poll_claims_a_grant_and_shows_the_token(self):
        server = self.own_server("--claim-timeout", "1h")
        client = server.client()
        self.hold("a", client=client)
        self.queue("b", client=client)
        self.unlock("a", error="no", client=client)
        status = self.status(node_id="b", client=client)
        self.assertEqual((status["acquired"], status["attempt"]), (True, 2))
        self.assertEqual(status["token"], status["holder"]["token"])
        # What is claimed is no longer cancelled.
        self.assertFalse(client.cancel(self.resource, "b")["cancelled"])

    def test_section_9_a_lane_that_nobody_uses_is_idle(self):
        status = self.status()
        self.assertEqual((status["state"], status["queue"], status["waiters"], status["references"]),
                         ("idle", [], [], {"count": 0, "nodes": []}))
        self.assertNotIn("holder", status)


class ListTest(ServerCase):
    def names(self, **query):
        return [(lock["resource_id"], lock["type"]) for lock in self.client.get("/locks", **query)["locks"]]

    def test_section_9_pages_of_locks_follow_their_cursor_without_gap_or_repetition(self):
        wanted = sorted((f"{self.resource}{i:02}", kind) for i in range(25) for kind in ("delete", "pull"))
        for resource, kind in wanted:
            self.hold("a", kind, resource_id=resource)
        got, query = [], {"prefix": self.resource, "limit": 7}
        while True:
            page = self.client.get("/locks", **query)
            got += [(lock["resource_id"], lock["type"]) for lock in page["locks"]]
            self.assertLessEqual(len(page["locks"]), 7)
            if "next_cursor" not in page:
                break
            query["cursor"] = page["next_cursor"]
        self.assertEqual(got, wanted)

    def test_section_9_locks_are_chosen_by_prefix_state_and_type(self):
        self.hold("a", resource_id=self.resource + "-held")
        self.hold("a", "own", resource_id=self.resource + "-held")
        self.hold("a", resource_id=self.resource + "-done")
        self.unlock("a", resource_id=self.resource + "-done")
        self.hold("a", "delete", resource_id=self.resource + "-wait", scope="resource")
        self.queue("b", "pull", resource_id=self.resource + "-wait")
        with_prefix = lambda **q: self.names(prefix=self.resource, **q)
        self.assertEqual(with_prefix(state="held", type="own"), [(self.resource + "-held", "own")])
        self.assertEqual(with_prefix(state="completed"), [(self.resource + "-done", "pull")])
        self.assertEqual(with_prefix(state="waiting"), [(self.resource + "-wait", "pull")])
        self.assertEqual(with_prefix(type="delete"), [(self.resource + "-wait", "delete")])
        self.assertEqual(len(with_prefix()), 5)
        self.assertEqual(self.names(prefix=self.resource + "-nothing"), [])

    def test_section_9_a_cursor_that_is_not_ours_is_400(self):
        self.assert_refused(self.client.get("/locks", cursor="$$$"), 400, "invalid")
        self.assert_refused(self.client.get("/locks", limit=0), 400, "invalid")
        self.assert_refused(self.client.get("/locks", limit=1001), 400, "invalid")
        self.assert_refused(self.client.get("/locks", state="happy"), 400, "invalid")


if __name__ == "__main__":
    harness.main()
