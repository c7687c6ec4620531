"""Staying alive, against the real server: bonds, leases, progress, claims, the longest hold, an admin's break.

No test waits for a time to pass and then looks: each waits for the event that must come. That something must not
happen is shown by a control on another lane, broken later, which it does happen to.
"""
import harness
from harness import ServerCase, wait_until


class BondTest(ServerCase):
    flags = ("--bond-grace", "150ms")

    def next_is_granted_when(self, break_bond):
        """A monitored holder, a waiter, and what breaks the holder's connection."""
        stream = self.server.stream(type="pull", resource_id=self.resource)
        holder = self.server.client()
        self.lock("a", client=holder, monitor=True)
        poll = self.poll("b")
        break_bond(holder)
        answer = poll.answer()
        self.assertEqual((answer["acquired"], answer["attempt"], answer["previous_error"]), (True, 2, "bond"))
        expired = stream.next_of("expired")
        self.assertEqual((expired["node_id"], expired["reason"], expired["error"]), ("a", "bond", "bond"))

    def test_S21_L1_a_closed_connection_ends_the_hold(self):
        self.next_is_granted_when(lambda holder: holder.close())

    def test_S21_L1_a_half_closed_connection_ends_the_hold(self):
        self.next_is_granted_when(lambda holder: holder.half_close())

    def test_S21_L1_a_reset_connection_ends_the_hold(self):
        self.next_is_granted_when(lambda holder: holder.reset())

    def test_S21_an_abandoned_long_poll_gives_its_connection_back(self):
        server = self.own_server("--bond-grace", "10m")  # its place in the queue has nothing to do with it
        client = server.client()
        self.hold("a", client=client)
        waiters = [server.client() for _ in range(20)]
        for i, waiter in enumerate(waiters):
            waiter.send("POST", "/lock", {"type": "pull", "resource_id": self.resource, "node_id": f"w{i}",
                                          "wait_ms": 600_000})
        wait_until(lambda: len(client.status(self.resource)["queue"]) == 20, "all wait")
        for i, waiter in enumerate(waiters):
            (waiter.close, waiter.half_close, waiter.reset)[i % 3]()
        wait_until(lambda: client.metric("turnstile_connections") == 1, "only the asking connection is left")

    def test_S21_a_new_connection_within_grace_keeps_the_hold(self):
        server = self.own_server("--bond-grace", "500ms")
        client = server.client()

        def scenario(i):
            first, second, control = server.client(), server.client(), server.client()
            token = self.hold("a", client=first, resource_id=f"r{i}", monitor=True)
            self.hold("a", client=control, resource_id=f"control{i}", monitor=True)
            first.close()
            again = self.lock("a", client=second, resource_id=f"r{i}", monitor=True)
            control.close()
            wait_until(lambda: self.holder(resource_id=f"control{i}", client=client) is None, "the control has ended")
            return again["token"] == token == self.status(resource_id=f"r{i}", client=client)["holder"]["token"]
        self.race(scenario)

    def test_S21_a_hold_without_monitor_does_not_depend_on_connections(self):
        plain, control = self.server.client(), self.server.client()
        self.hold("a", client=plain)
        plain.close()
        self.hold("a", client=control, resource_id=self.resource + "-control", monitor=True)
        control.close()
        wait_until(lambda: self.holder(resource_id=self.resource + "-control") is None, "the control's hold has ended")
        self.assertEqual(self.holder(), "a")

    def test_S21_a_subscription_opened_before_the_lock_is_a_bond(self):
        stream = self.server.stream(type="pull", resource_id=self.resource, node_id="a")
        holder = self.server.client()
        self.hold("a", client=holder, monitor=True)
        holder.close()
        control = self.server.client()
        self.hold("a", client=control, resource_id=self.resource + "-control", monitor=True)
        control.close()
        wait_until(lambda: self.holder(resource_id=self.resource + "-control") is None, "the control's hold has ended")
        self.assertEqual(self.holder(), "a")
        stream.close()
        wait_until(lambda: self.holder() is None, "the hold has ended with its last bond")

    def test_S21_a_subscription_opened_after_the_lock_is_a_bond(self):
        holder = self.server.client()
        self.hold("a", client=holder, monitor=True, request_id="7")
        stream = self.server.stream(type="pull", resource_id=self.resource, node_id="a", request_id="7")
        holder.close()
        control = self.server.client()
        self.hold("a", client=control, resource_id=self.resource + "-control", monitor=True)
        control.close()
        wait_until(lambda: self.holder(resource_id=self.resource + "-control") is None, "the control's hold has ended")
        self.assertEqual(self.holder(), "a")
        stream.close()
        wait_until(lambda: self.holder() is None, "the hold has ended with its last bond")

    def test_S21_asking_again_with_monitor_false_frees_the_hold_from_its_bonds(self):
        holder, control = self.server.client(), self.server.client()
        self.hold("a", client=holder, monitor=True)
        self.hold("a", client=holder, monitor=False)
        holder.close()
        self.hold("a", client=control, resource_id=self.resource + "-control", monitor=True)
        control.close()
        wait_until(lambda: self.holder(resource_id=self.resource + "-control") is None, "the control's hold has ended")
        self.assertEqual(self.holder(), "a")

    def test_S21_L2_a_waiter_whose_long_poll_breaks_leaves_the_queue(self):
        stream = self.server.stream(type="pull", resource_id=self.resource)
        self.hold("a")
        poll = self.poll("gone")
        self.poll("stays")
        poll.close()
        self.assertEqual(stream.next_of("cancelled")["node_id"], "gone")
        self.assertEqual(self.queued(), ["stays"])

    def test_S21_L2_a_waiter_whose_subscription_breaks_leaves_the_queue(self):
        self.hold("a")
        self.queue("gone")
        self.queue("never-had-a-bond")
        self.server.stream(type="pull", resource_id=self.resource, node_id="gone").close()
        wait_until(lambda: self.queued() == ["never-had-a-bond"], "only the other waits")

    def test_S21_a_monitored_connection_keeps_many_lanes_alive_and_ends_them_all(self):
        holder = self.server.client()
        lanes = [f"{self.resource}{i}" for i in range(100)]
        for lane in lanes:
            self.hold("a", client=holder, resource_id=lane, monitor=True)
        held = lambda: len(self.client.get("/locks", prefix=self.resource, state="held", limit=1000)["locks"])
        self.assertEqual(held(), 100)
        holder.close()
        wait_until(lambda: held() == 0, "all have ended")


class LeaseTest(ServerCase):
    def test_S22_L1_a_lease_that_is_not_renewed_ends_and_the_next_is_granted(self):
        stream = self.server.stream(type="pull", resource_id=self.resource)
        self.hold("a", lease_ms=200)
        answer = self.poll("b").answer()
        self.assertEqual((answer["acquired"], answer["attempt"], answer["previous_error"]), (True, 2, "lease"))
        self.assertEqual(stream.next_of("expired")["reason"], "lease")

    def test_S22_renewing_lengthens_the_lease_and_shows_progress_to_waiters(self):
        token = self.hold("a", lease_ms=60_000)
        renewed = self.client.renew(self.resource, "a", token, lease_ms=120_000, done=3, total=7)
        self.assertEqual((renewed.status, renewed["renewed"], renewed["lease_ms"]), (200, True, 120_000))
        for holder in self.status()["holder"], self.lock("b")["holder"]:
            self.assertEqual((holder["lease_ms"], holder["done"], holder["total"]), (120_000, 3, 7))

    def test_S22_a_hold_that_is_renewed_outlives_one_that_is_not(self):
        def scenario(i):
            lane, control = f"{self.resource}{i}", f"{self.resource}-control{i}"
            token = self.hold("a", resource_id=lane, lease_ms=700)
            self.hold("a", resource_id=control, lease_ms=1000)

            def control_has_ended():
                self.client.renew(lane, "a", token)
                return self.holder(resource_id=control) is None
            wait_until(control_has_ended, "the control's lease has ended")
            return self.client.renew(lane, "a", token).status == 200
        self.race(scenario)

    def test_S8_renew_is_refused_like_unlock(self):
        self.assert_refused(self.client.renew(self.resource, "a", 1), 403, "not_held")
        token = self.hold("a")
        self.assert_refused(self.client.renew(self.resource, "b", token), 403, "not_holder")
        stale = self.client.renew(self.resource, "a", token - 1)
        self.assert_refused(stale, 403, "stale_token")
        self.assertFalse(stale["renewed"])

    def test_S22_a_hold_whose_progress_stands_still_is_ended_as_stalled(self):
        server = self.own_server("--stall-timeout", "300ms")
        client = server.client()
        stream = server.stream(type="pull", resource_id=self.resource)
        token = self.hold("a", client=client, lease_ms=3_600_000)
        client.renew(self.resource, "a", token, done=1, total=9)
        self.assertEqual(stream.next_of("expired")["reason"], "stall")

    def test_S23_a_hold_with_neither_lease_nor_monitor_ends_at_max_hold(self):
        server = self.own_server("--max-hold", "300ms")
        client = server.client()
        stream = server.stream(type="pull", resource_id=self.resource)
        self.hold("a", client=client)
        self.assertEqual(stream.next_of("expired")["reason"], "max_hold")
        self.assertIsNone(self.holder(client=client))

    def test_S14_L2_a_grant_that_nobody_claims_passes_on(self):
        server = self.own_server("--claim-timeout", "300ms")
        client = server.client()
        stream = server.stream(type="pull", resource_id=self.resource)
        self.hold("a", client=client)
        self.queue("gone", client=client)
        self.queue("next", client=client)
        self.unlock("a", error="no", client=client)
        expired = stream.next_of("expired")
        self.assertEqual((expired["node_id"], expired["reason"]), ("gone", "unclaimed"))
        self.assertEqual(stream.next_of("granted")["node_id"], "next")

    def test_S14_a_long_poll_claims_its_grant_by_being_there(self):
        server = self.own_server("--claim-timeout", "200ms")
        client = server.client()
        self.hold("a", client=client)
        poll = self.poll("b", server=server)
        # The control's grant is not claimed and passes; it is granted later, so b's would have passed before it.
        self.hold("a", client=client, resource_id="control")
        self.queue("b", client=client, resource_id="control")
        self.unlock("a", error="no", client=client)
        self.unlock("a", error="no", client=client, resource_id="control")
        wait_until(lambda: self.holder(resource_id="control", client=client) is None, "the control has passed")
        self.assertTrue(poll.answer()["acquired"])
        self.assertEqual(self.holder(client=client), "b")


class BreakTest(ServerCase):
    def test_S26_breaking_a_hold_grants_the_next_and_everybody_sees_the_reason(self):
        stream = self.server.stream(type="pull", resource_id=self.resource)
        self.hold("a")
        poll = self.poll("b")
        broken = self.client.post("/admin/break", type="pull", resource_id=self.resource, reason="a was switched off")
        self.assertEqual((broken.status, broken["broken"], broken["node_id"]), (200, True, "a"))
        self.assertEqual(poll.answer()["previous_error"], "a was switched off")
        event = stream.next_of("broken")
        self.assertEqual((event["node_id"], event["reason"], event["error"]), ("a",) + ("a was switched off",) * 2)

    def test_S26_breaking_a_free_lane_is_refused_as_not_held(self):
        answer = self.client.post("/admin/break", type="pull", resource_id=self.resource, reason="why not")
        self.assert_refused(answer, 403, "not_held")


if __name__ == "__main__":
    harness.main()
