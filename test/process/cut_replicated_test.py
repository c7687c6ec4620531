"""A leader whose network is cut, in both directions and in each: another leads, it says nothing that is not so, and when the
network is back it stands by (S44, S47).

As in cut_network_test.py: etcd and two servers on one side of a cable between two network namespaces, the leader on the
other. That needs root (or CAP_NET_ADMIN and CAP_SYS_ADMIN) and `ip`.
"""
import http.client
import os
import signal
import time
import unittest

import harness
from client import Client
from cut_network_test import CLIENT_ADDRESS, SERVER_ADDRESS, Cable, enter, inside
from etcd import Etcd
from harness import Server, wait_until

LEASE = 3


class PlacedServer(Server):
    """A server in a network namespace, and who asks it from there."""

    def __init__(self, namespace, address, store, *flags):
        super().__init__("--leader-lease", f"{LEASE}s", "--insecure", *flags, store=store)
        self.namespace, self.host = namespace, address

    def _before_exec(self):
        super()._before_exec()
        enter(self.namespace)

    def ask(self, method, path, body=None, timeout=20):
        """None: it cuts off whoever asks, or does not answer in time."""
        def call():
            client = Client(self.host, self.port, timeout=timeout)
            try:
                return client.call(method, path, body)
            finally:
                client.close()
        try:
            return inside(self.namespace, call)
        except (OSError, http.client.HTTPException):
            return None

    def leads(self):
        answer = self.ask("GET", "/readyz")
        return answer is not None and answer.status == 200

    def stands_by(self):
        answer = self.ask("GET", "/readyz?standby=1")
        return answer is not None and answer.status == 200 and "standby" in answer


class CutTest(unittest.TestCase):
    def place(self, near, *flags):
        """etcd and some servers on one side of a cable, one server on the other."""
        self.cable = Cable()
        self.addCleanup(self.cable.remove)
        self.cable.connect()
        self.etcd = Etcd(3, host=SERVER_ADDRESS, enter=lambda: enter(self.cable.server))
        self.addCleanup(self.etcd.remove)
        self.etcd.start()
        place = lambda namespace, address: PlacedServer(namespace, address, self.etcd.store("cut"), *flags)
        self.far = place(self.cable.client, CLIENT_ADDRESS)
        self.near = [place(self.cable.server, SERVER_ADDRESS) for _ in range(near)]
        for server in [self.far, *self.near]:
            self.addCleanup(server.remove)

    def lock(self, server, resource, node):
        return server.ask("POST", "/lock", {"type": "own", "resource_id": resource, "node_id": node, "lease_ms": 600_000})


class CutStandbyTest(CutTest):
    def test_S49_what_a_standby_gave_up_is_not_done_when_the_network_is_back(self):
        self.place(1, "--standby", "forward")
        self.near[0].start()
        wait_until(self.near[0].leads, "the one near etcd leads")
        self.far.start()
        wait_until(self.far.stands_by, "the other stands by")
        unlock = {"type": "own", "resource_id": "r", "node_id": "n", "success": True}
        for _ in range(64):  # on each of its connections, which are kept
            self.assertEqual(self.lock(self.far, "r", "n")["state"], "acquired")
        self.cable.cut()
        self.assertIsNone(self.far.ask("POST", "/unlock", unlock, timeout=0.5))
        time.sleep(3)  # what is cut; a kernel that goes on trying does so up to 6.5 s after the first time
        self.cable.heal()
        wait_until(lambda: self.far.ask("GET", "/locks").status == 200, "the network is back")
        until = time.monotonic() + 5
        while time.monotonic() < until:
            self.assertEqual(self.near[0].ask("GET", "/lock/status?type=own&resource_id=r")["state"], "held")


class CutLeaderTest(CutTest):
    def setUp(self):
        self.place(2)
        self.far.start()
        wait_until(self.far.leads, "the one behind the cable leads")
        for server in self.near:
            server.start()

    def test_S47_a_leader_behind_a_cut_network_says_nothing_and_another_leads(self):
        for directions in ("in", "out"), ("in",), ("out",):
            with self.subTest(directions):
                name = "-".join(directions)
                self.assertEqual(self.lock(self.far, name, "before")["state"], "acquired")
                wait_until(lambda: all(server.stands_by() for server in self.near), "the others are in step")
                self.cable.cut(*directions)
                said = self.lock(self.far, f"{name}-meanwhile", "far")  # asked on its own side, when it cannot know yet
                self.assertTrue(said is None or said.status == 503, said)
                leader = wait_until(lambda: next((s for s in self.near if s.leads()), None), "another server leads")
                # Its outcome was unknown: where only answers are lost it was carried out.
                self.assertIn(self.lock(leader, f"{name}-meanwhile", "near")["state"], ("acquired", "queued"))
                self.assertEqual(self.lock(leader, f"{name}-after", "near")["state"], "acquired")
                shown = self.far.ask("GET", f"/lock/status?type=own&resource_id={name}")
                self.assertTrue(shown is None or shown.status == 503, shown)
                status = leader.ask("GET", f"/lock/status?type=own&resource_id={name}")
                self.assertEqual(status["holder"]["node_id"], "before")
                self.cable.heal()
                wait_until(self.far.stands_by, "the one that was cut off stands by")
                for server in self.near:  # so that it leads again
                    os.kill(server.pid, signal.SIGTERM)
                for server in self.near:
                    self.assertEqual(server.wait_for_end(), 0)
                wait_until(self.far.leads, "it leads again")
                for server in self.near:
                    server.restart()


if __name__ == "__main__":
    harness.main()
