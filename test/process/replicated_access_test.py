"""Several servers with TLS and credentials, on a real etcd: what a standby passes on in whose name, and what it cannot (S49, S50)."""
import os
import ssl
import unittest

import client as wire
import harness
from access import As, entry, make_certificates, new_secret, unverified_connection
from etcd import Etcd
from harness import Server
from replicas import Replicas

LANE = {"type": "own", "resource_id": "a/r"}
SECRETS = {name: new_secret() for name in ("node-s", "boss")}


class ForwardTest(unittest.TestCase):
    """Three servers that forward; one CA for servers and nodes."""

    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd(1).start()
        cls.addClassCleanup(cls.etcd.remove)
        cls.pki, other = harness.temporary_directory(), harness.temporary_directory()
        make_certificates(cls.pki, "server", "node-c", alternatives={"server": f"IP:{Server().host}"})
        make_certificates(other)
        with open(cls.path("credentials.toml"), "w", encoding="utf-8") as file:
            file.write(entry("node-s", SECRETS["node-s"], "client", resources=["a/"]) + entry("boss", SECRETS["boss"], "admin") +
                       '[[certificate]]\nname = "node-c"\nrole = "client"\n')
        wire.TLS = ssl.create_default_context(cafile=cls.path("ca.crt"))
        wire.TLS.check_hostname = False
        cls.addClassCleanup(setattr, wire, "TLS", None)
        flags = ("--standby", "forward", "--tls-cert", cls.path("server.crt"), "--tls-key", cls.path("server.key"),
                 "--credentials", cls.path("credentials.toml"))
        cls.replicas = Replicas(cls.etcd, "forward", *flags, "--tls-client-ca", cls.path("ca.crt"))
        cls.addClassCleanup(cls.replicas.remove)
        cls.replicas.start()
        cls.leader = cls.replicas.leader()
        # One whose CA is not the leader's, as after half a change of CAs.
        cls.stranger = Server("--leader-lease", "3s", *flags, "--tls-client-ca", os.path.join(other, "ca.crt"),
                              store=cls.etcd.store("forward"))
        cls.addClassCleanup(cls.stranger.remove)
        cls.stranger.start()
        cls.replicas.servers.append(cls.stranger)
        cls.replicas.wait_until_in_step()
        cls.standby = next(server for server in cls.replicas.servers if server not in (cls.leader, cls.stranger))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.pki, name)

    def by_certificate(self, server):
        made = As(server)
        made.connection = unverified_connection(server, self.path("node-c.crt"), self.path("node-c.key"))
        self.addCleanup(made.close)
        return made

    def test_S49_a_secret_is_passed_on_and_the_leader_judges_by_it(self):
        node, boss = As(self.standby, SECRETS["node-s"]), As(self.standby, SECRETS["boss"])
        self.assertEqual(node.post("/lock", **LANE, node_id="node-s")["state"], "acquired")
        shown = As(self.leader, SECRETS["boss"]).get("/lock/status", **LANE)
        self.assertEqual(shown["holder"]["node_id"], "node-s")
        self.assertEqual(boss.get("/lock/status", **LANE)["holder"]["node_id"], "node-s")
        answer = node.post("/unlock", **LANE, node_id="somebody")
        self.assertEqual((answer.status, answer["code"]), (403, "forbidden"))
        answer = As(self.standby, "wrong").post("/lock", **LANE, node_id="node-s")
        self.assertEqual((answer.status, answer["code"]), (401, "unauthorized"))
        self.assertEqual(boss.post("/admin/break", **LANE, reason="why").status, 200)

    def test_S49_who_shows_a_certificate_is_sent_to_the_leader_because_only_he_can_show_it(self):
        answer = self.by_certificate(self.standby).post("/lock", **LANE, node_id="node-c")
        url = f"https://{self.leader.host}:{self.leader.port}"
        self.assertEqual((answer.status, answer["code"], answer["leader"]), (307, "not_leader", url))
        self.assertEqual(answer.headers["Location"], url + "/lock")
        there = self.by_certificate(self.leader).post("/lock", type="own", resource_id="c/r", node_id="node-c")
        self.assertEqual(there["state"], "acquired")

    def test_S50_a_secret_is_not_passed_on_to_a_leader_whose_certificate_is_not_known(self):
        answer = As(self.stranger, SECRETS["boss"]).get("/lock/status", **LANE)
        self.assertEqual((answer.status, answer["code"]), (503, "no_leader"))


if __name__ == "__main__":
    harness.main()
