"""One server and an etcd that is not as it should be: settings that are wrong end it with one line and exit code 2, whatever may
pass by itself is waited for, and nothing is said meanwhile that is not so (S44)."""
import os
import subprocess
import unittest

import harness
from etcd import Etcd
from fronts import Certificates
from harness import Server, wait_until

LANE = {"type": "own", "resource_id": "r", "node_id": "n"}


class EtcdCase(unittest.TestCase):
    number = 0

    def etcd(self, *flags, **more):
        EtcdCase.number += 1
        pid = os.getpid()
        made = Etcd(1, *flags, host=f"127.{240 + EtcdCase.number}.{pid // 256 % 256}.{1 + pid % 254}", **more)
        self.addCleanup(made.remove)
        return made

    def server(self, store, *flags):
        made = Server("--leader-lease", "3s", *flags, store=store)
        self.addCleanup(made.remove)
        return made.start()

    def refused(self, *flags, code=2):
        """The one line of a server that does not start. It ends while gRPC may be in the middle of a handshake, whose memory
        then belongs to nobody: that is not what a sanitizer is to tell."""
        done = subprocess.run([harness.binary(), *flags], capture_output=True, text=True, timeout=harness.PATIENCE,
                              env=harness.plain_environment(ASAN_OPTIONS="detect_leaks=0"), check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("turnstiled: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        return lines[0]

    @staticmethod
    def leads(server):
        return server.client().get("/readyz").status == 200


class SettingsTest(EtcdCase):
    def test_who_listens_everywhere_must_say_how_it_is_reached(self):
        for address in "0.0.0.0:0", "[::]:0", "http://0.0.0.0:0":
            said = self.refused("--listen", address, "--insecure", "--store", "etcd://127.0.0.1:1/p")
            self.assertIn("--advertise", said)

    def test_an_address_that_is_in_use_may_be_free_later(self):
        server = self.server("memory")
        said = self.refused("--listen", f"{server.host}:{server.port}", "--store", "memory", code=1)
        self.assertIn("another program already does", said)

    def test_a_certificate_that_one_side_does_not_accept_ends_it_and_the_right_one_lets_it_lead(self):
        directory = harness.temporary_directory()
        for name in "ours", "others":
            os.mkdir(os.path.join(directory, name))
        ours, others = (Certificates(os.path.join(directory, name)) for name in ("ours", "others"))
        etcd = self.etcd(scheme="https")
        certificate, key = ours.issue("etcd", f"IP:{etcd.host}")
        etcd.flags = ("--cert-file", certificate, "--key-file", key, "--trusted-ca-file", ours.ca, "--client-cert-auth")
        etcd.start_member(0)
        store = etcd.store("p").replace("etcd:", "etcds:")

        def flags(ca, signer):
            certificate, key = signer.issue("server", "DNS:server")
            return "--etcd-ca", ca, "--etcd-cert", certificate, "--etcd-key", key
        right = self.server(store, *flags(ours.ca, ours))
        wait_until(lambda: self.leads(right), "it leads")
        self.assertTrue(right.client().post("/lock", **LANE)["acquired"])
        for wrong in flags(others.ca, ours), flags(ours.ca, others), ("--etcd-ca", ours.ca):
            self.assertIn("etcd", self.refused("--listen", f"{etcd.host}:0", "--store", store, *wrong))


class GarbageTest(EtcdCase):
    def test_a_store_that_is_none_is_named_and_nobody_leads(self):
        etcd = self.etcd().start()
        etcd.control("put", "/p/log/0000000000000001", "nonsense")
        server = self.server(etcd.store("p"))
        wait_until(lambda: "/p/log/0000000000000001 is damaged" in server.log(), "it says what is wrong")
        answer = server.client().post("/lock", **LANE)
        self.assertEqual((answer.status, answer["code"]), (503, "no_leader"))
        self.assertEqual(etcd.control("get", "/p/log/0000000000000001", "--print-value-only").strip(), "nonsense")


class AwayTest(EtcdCase):
    def test_an_etcd_that_comes_later_is_found_by_itself(self):
        etcd = self.etcd()
        server = self.server(etcd.store("p"))
        wait_until(lambda: "etcd cannot be used" in server.log(), "it says why")
        self.assertEqual(server.client().post("/lock", **LANE)["code"], "no_leader")
        etcd.start()
        wait_until(lambda: self.leads(server), "it leads")
        self.assertTrue(server.client().post("/lock", **LANE)["acquired"])
        self.assertEqual(server.log().count("etcd answers again"), 1)


class NoSpaceTest(EtcdCase):
    QUOTA = 4 << 20

    def test_a_full_etcd_is_told_to_clients_and_with_room_again_all_goes_on(self):
        etcd = self.etcd("--quota-backend-bytes", str(self.QUOTA)).start()
        server = self.server(etcd.store("p"))
        wait_until(lambda: self.leads(server), "it leads")
        client = server.client()
        token = client.lock("before", "n", type="own")["token"]
        self.fill(etcd)
        # The first to find out waits, because whether its lock was taken is not known. All others are told.
        waiting = server.client()
        waiting.send("POST", "/lock", {**LANE, "resource_id": "waits"})
        wait_until(lambda: "etcd has no space left" in server.log(), "it is known")
        self.assertEqual(server.client().metric("turnstile_etcd_no_space"), 1)
        self.assertEqual(self.refusal(server), (503, "store_unavailable"))
        self.assertEqual(server.client().get("/readyz").status, 503)
        self.assertEqual(server.log().count("etcd has no space left"), 1)
        etcd.control("del", "--prefix", "/others/")
        revision = etcd.statuses()[0]["Status"]["header"]["revision"]
        etcd.control("compact", str(revision))
        etcd.control("defrag")
        etcd.control("alarm", "disarm")
        self.assertTrue(waiting.receive()["acquired"])
        wait_until(lambda: self.refusal(server) is None, "locks are granted again")
        wait_until(lambda: server.client().metric("turnstile_etcd_no_space") == 0, "etcd's members say so, too")
        self.assertEqual(server.client().status("before", type="own")["holder"]["token"], token)

    def test_S46_a_stop_while_etcd_is_full_ends_the_server_and_its_lead(self):
        etcd = self.etcd("--quota-backend-bytes", str(self.QUOTA)).start()
        server = self.server(etcd.store("p"))
        wait_until(lambda: self.leads(server), "it leads")
        self.fill(etcd)
        server.client().send("POST", "/lock", LANE)  # cannot be written, and is not given up either
        wait_until(lambda: "etcd has no space left" in server.log(), "it is known")
        self.assertEqual(server.stop(), 0)
        self.assertIn("stopping without them", server.log())
        self.assertEqual(etcd.control("get", "/p/leader"), "", "the next may lead at once")

    def test_while_etcd_is_full_nobody_is_elected_and_every_server_says_why(self):
        etcd = self.etcd("--quota-backend-bytes", str(self.QUOTA)).start()
        server = self.server(etcd.store("p"))
        wait_until(lambda: self.leads(server), "it leads")
        standby = self.server(etcd.store("p"))
        wait_until(lambda: standby.client().get("/readyz?standby=1").status == 200, "it is in step")
        self.fill(etcd)
        wait_until(lambda: standby.client().metric("turnstile_etcd_no_space") == 1, "the alarm is known")
        self.assertEqual(server.stop(), 0)
        wait_until(lambda: standby.client().get("/readyz?standby=1").status == 503, "it could not take over")
        answer = standby.client().status("r", type="own")
        self.assertEqual((answer.status, answer["code"]), (503, "no_leader"))
        servers = standby.client().get("/servers")
        self.assertEqual([member["no_space"] for member in servers["etcd"]["members"]], [True])
        self.assertIsNone(servers["leader"])

    @staticmethod
    def fill(etcd):
        while "NOSPACE" not in etcd.control("alarm", "list"):
            etcd.control("put", f"/others/{os.urandom(4).hex()}", "x" * 120_000, check=False)

    @staticmethod
    def refusal(server):
        answer = server.client().post("/lock", **{**LANE, "request_id": "again"})
        return None if answer.status == 200 else (answer.status, answer["code"])


if __name__ == "__main__":
    harness.main()
