"""Three real servers on a real etcd of three members: take-over, hand-over, a leader that was asleep, an etcd that is away,
and histories under faults (S41 to S49).

TURNSTILE_ROUNDS: how many faults (6; ./dev soak replicated: 30). TURNSTILE_CLIENTS: how many clients (8). TURNSTILE_SEED:
which faults when (by chance; printed, so that a run can be repeated).
"""
import http.client
import itertools
import json
import os
import queue
import random
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import checker
import harness
from client import Client
from etcd import Etcd
from harness import Server, wait_until
from replicas import LEASE, Replicas
from workload import FLAGS, GRACE, Workload

CLIENTS = int(os.environ.get("TURNSTILE_CLIENTS", "8"))
LANE = {"type": "own", "resource_id": "r", "node_id": "n"}


def fall_asleep(pid):
    """Returns when none of its threads runs any more."""
    os.kill(pid, signal.SIGSTOP)

    def stopped(thread):
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"
    wait_until(lambda: all(stopped(thread) for thread in os.listdir(f"/proc/{pid}/task")), "it sleeps", every=0.001)


class ReplicatedCase(unittest.TestCase):
    etcd = None

    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd(3).start()

    @classmethod
    def tearDownClass(cls):
        cls.etcd.remove()

    def replicas(self, *flags, count=3, lease=LEASE):
        made = Replicas(self.etcd, self.id().rsplit(".", 1)[1], *flags, count=count, lease=lease)
        self.addCleanup(made.remove)
        return made.start()


class LeadTest(ReplicatedCase):
    def test_S44_after_kill_9_of_the_leader_another_has_all_that_was_acknowledged(self):
        replicas = self.replicas()
        leader = replicas.leader()
        replicas.wait_until_in_step()
        client = leader.client()
        tokens = [client.lock(f"r{i}", "n", type="own", lease_ms=600_000)["token"] for i in range(50)]
        client.lock("queue", "a", type="own")
        self.assertEqual(client.lock("queue", "b", type="own")["state"], "queued")
        killed = time.monotonic()
        leader.kill()
        others = [server for server in replicas.servers if server is not leader]
        next_leader = replicas.leader(others)
        took = time.monotonic() - killed
        client = next_leader.client()
        for i, token in enumerate(tokens):
            self.assertEqual(client.status(f"r{i}", type="own")["holder"]["token"], token)
        self.assertGreater(client.lock("new", "n", type="own")["token"], max(tokens))
        self.assertEqual(client.unlock("queue", "a", type="own")["next"], "b")
        print(f"counted: take-over after kill -9 {took:.2f} s with a lease of {LEASE} s", flush=True)
        self.assertLess(took, LEASE + 20, "a busy machine may be slow, but not so slow")
        # Who comes back stands by.
        leader.restart()
        wait_until(lambda: replicas.role(leader) == "standby", "the old leader stands by")
        self.assertEqual(replicas.leading(), next_leader)

    def test_S46_a_stop_hands_over_at_once_and_a_client_in_a_loop_loses_nothing(self):
        replicas = self.replicas()
        leader = replicas.leader()
        replicas.wait_until_in_step()
        others = [server for server in replicas.servers if server is not leader]
        leader.client().lock("kept", "n", type="own")
        asked = time.monotonic()
        os.kill(leader.pid, signal.SIGTERM)
        next_leader = wait_until(lambda: replicas.leading(others), "another server leads", every=0.005)
        took = time.monotonic() - asked
        self.assertEqual(leader.wait_for_end(), 0)
        self.assertEqual(next_leader.client().status("kept", type="own")["holder"]["node_id"], "n")
        print(f"counted: planned hand-over {took:.3f} s", flush=True)
        self.assertLess(took, LEASE, "nobody waited for the lease")

    def test_S47_a_leader_that_was_asleep_grants_renews_and_shows_nothing(self):
        replicas = self.replicas()
        leader = replicas.leader()
        replicas.wait_until_in_step()
        others = [server for server in replicas.servers if server is not leader]
        client = leader.client()
        token = client.lock("r", "n", type="own", lease_ms=600_000)["token"]
        client.lock("other", "n", type="own")
        asking = [Client(leader.host, leader.port) for _ in range(4)]
        for each in asking:  # the connections are there before it falls asleep
            self.assertEqual(each.get("/healthz").status, 200)
        os.kill(leader.pid, signal.SIGSTOP)
        try:
            next_leader = replicas.leader(others)
            now = next_leader.client()
            # Nothing runs out in the one that sleeps, so that it has nothing to write when it wakes up, and still believes
            # what it knows: only the guard of its reads and renewals can keep it from saying so.
            self.assertTrue(now.unlock("r", "n", type="own", token=token)["released"])
            later = now.lock("r", "m", type="own")["token"]
            self.assertGreater(later, token)
            asking[0].send("GET", "/lock/status?type=own&resource_id=r")
            asking[1].send("POST", "/renew", {**LANE, "token": token})
            asking[2].send("GET", "/locks?state=held")
            asking[3].send("POST", "/lock", {**LANE, "resource_id": "fresh"})  # the last: it has something to write
        finally:
            os.kill(leader.pid, signal.SIGCONT)
        for each in asking:
            try:
                answer = each.receive()
            except (OSError, http.client.HTTPException):
                continue  # cut off: said nothing
            self.assertIn(answer.status, (307, 503), answer)
            self.assertIn(answer["code"], ("outcome_unknown", "not_leader", "no_leader", "store_unavailable"))
            each.close()
        self.assertEqual(now.status("r", type="own")["holder"]["token"], later)
        wait_until(lambda: replicas.role(leader) == "standby", "the woken one stands by")

    def test_S47_what_etcd_has_answered_while_the_leader_slept_is_not_told(self):
        replicas = self.replicas(lease=2)
        for nth in range(3):  # whether an answer of etcd's waits for it when it wakes up is chance
            with self.subTest(nth=nth):
                self.sleep_under_load(replicas, f"r{nth}")

    def sleep_under_load(self, replicas, resource):
        leader = replicas.leader()
        replicas.wait_until_in_step()
        lane = {**LANE, "resource_id": resource}
        token = leader.client().lock(resource, "n", type="own", lease_ms=600_000)["token"]
        asleep, answers, fresh = threading.Event(), queue.Queue(), itertools.count()

        def ask(path, fields):
            client = Client(leader.host, leader.port)
            try:
                while True:
                    client.send("POST", path, fields())
                    late = asleep.is_set()
                    answer = client.receive()
                    answers.put((late or asleep.is_set(), answer))
                    if answer.status != 200:
                        return
            except (OSError, http.client.HTTPException):
                pass  # cut off: said nothing
            finally:
                client.close()

        asking = [threading.Thread(target=ask, args=("/renew", lambda: {**lane, "token": token})) for _ in range(4)]
        asking += [threading.Thread(target=ask, args=("/lock", lambda: {**LANE, "resource_id": f"{resource}-{next(fresh)}"}))
                   for _ in range(2)]
        for thread in asking:
            thread.start()
        wait_until(lambda: answers.qsize() > 50, "all of them ask")
        fall_asleep(leader.pid)
        try:
            now = replicas.leader([server for server in replicas.servers if server is not leader]).client()
            self.assertTrue(now.unlock(resource, "n", type="own", token=token)["released"])
            later = now.lock(resource, "m", type="own")["token"]
            asleep.set()
        finally:
            os.kill(leader.pid, signal.SIGCONT)
        for thread in asking:
            thread.join()
        for late, answer in list(answers.queue):
            if late:
                self.assertEqual(answer.status, 503, answer)
                self.assertIn(answer["code"], ("outcome_unknown", "no_leader"))
        self.assertEqual(now.status(resource, type="own")["holder"]["token"], later)
        wait_until(lambda: replicas.role(leader) == "standby", "the woken one stands by")

    def test_S48_when_all_have_been_stopped_nothing_is_lost(self):
        replicas = self.replicas()
        client = replicas.leader().client()
        tokens = [client.lock(f"r{i}", "n", type="own")["token"] for i in range(20)]
        for server in replicas.servers:
            server.kill()
        for server in replicas.servers:
            server.restart()
        client = replicas.leader().client()
        for i, token in enumerate(tokens):
            self.assertEqual(client.status(f"r{i}", type="own")["holder"]["token"], token)
        self.assertGreater(client.lock("new", "n", type="own")["token"], max(tokens))


class StandbyTest(ReplicatedCase):
    def test_S49_a_standby_names_the_leader_and_a_client_that_follows_is_served(self):
        replicas = self.replicas(count=2)
        leader = replicas.leader()
        replicas.wait_until_in_step()
        standby = replicas.standbys()[0]
        url = f"http://{leader.host}:{leader.port}"
        answer = standby.client().post("/lock", **LANE)
        self.assertEqual((answer.status, answer["code"], answer["leader"]), (307, "not_leader", url))
        self.assertEqual(answer.headers["Location"], f"{url}/lock")
        for path in "/lock/status?type=own&resource_id=r", "/locks", "/events", "/lock/subscribe?type=own&resource_id=r":
            answer = standby.client().call("GET", path)
            self.assertEqual((answer.status, answer.headers["Location"]), (307, url + path))
        done = subprocess.run(["curl", "-sL", f"http://{standby.host}:{standby.port}/lock", "-d", json.dumps(LANE)],
                              capture_output=True, text=True, check=True)
        self.assertTrue(json.loads(done.stdout)["acquired"], done.stdout)
        self.assertEqual(standby.client().get("/readyz").status, 503)
        servers = wait_until(lambda: self.named(standby, 2), "both are named")
        self.assertEqual(servers["leader"], url)
        self.assertEqual(sorted(each["role"] for each in servers["servers"]), ["leader", "standby"])
        self.assertEqual(len(servers["etcd"]["members"]), 3)
        self.assertIn("turnstile_leader 1", leader.client().get("/metrics").text)
        self.assertIn("turnstile_leader 0", standby.client().get("/metrics").text)

    @staticmethod
    def named(server, count):
        answer = server.client().get("/servers")
        return answer.body if len(answer["servers"]) == count else None

    def test_S49_a_leader_that_was_killed_and_restarted_sends_nobody_to_itself(self):
        for flags in (), ("--standby", "forward"):
            with self.subTest(flags=flags):
                replicas = Replicas(self.etcd, "restarted" + "".join(flags), *flags, count=1)
                self.addCleanup(replicas.remove)
                server = replicas.start().leader()
                server.kill_and_restart()
                said = set()

                def leads():
                    answer = server.client().post("/lock", **LANE)
                    said.add((answer.status, answer.body.get("code")))
                    return answer.status == 200
                wait_until(leads, "it leads again")
                self.assertEqual(said, {(503, "no_leader"), (200, None)})

    def test_S49_a_standby_that_forwards_gives_the_leaders_answer(self):
        replicas = self.replicas("--standby", "forward", count=2)
        leader = replicas.leader()
        replicas.wait_until_in_step()
        standby = replicas.standbys()[0].client()
        answer = standby.post("/lock", **LANE)
        self.assertEqual((answer.status, answer["acquired"]), (200, True))
        self.assertEqual(leader.client().status("r", type="own")["holder"]["node_id"], "n")
        self.assertEqual(standby.post("/lock", type="own").status, 400)
        self.assertEqual(standby.get("/locks", state="held")["locks"][0]["resource_id"], "r")
        # What lives by its connection goes to the leader itself.
        self.assertEqual(standby.post("/lock", **{**LANE, "resource_id": "m"}, monitor=True).status, 307)
        waiting = Client(standby.connection.host, standby.connection.port)
        waiting.send("POST", "/lock", {**LANE, "node_id": "m", "wait_ms": 60_000})
        wait_until(lambda: leader.client().status("r", type="own")["queue"], "it waits")
        leader.client().unlock("r", "n", type="own")
        self.assertTrue(waiting.receive()["acquired"])
        waiting.close()

    def test_S49_long_polls_through_a_standby_leave_room_for_calls_that_do_not_wait(self):
        replicas = self.replicas("--standby", "forward", count=2)
        leader = replicas.leader()
        replicas.wait_until_in_step()
        leader.client().lock("r", "n", type="own", lease_ms=600_000)
        standby = replicas.standbys()[0]
        polls = [standby.poll("r", f"m{i}", type="own", wait_ms=600_000) for i in range(200)]
        refused = wait_until(lambda: [poll for poll in polls
                                      if select.select([poll.connection.sock], [], [], 0)[0]], "some are too many")
        wait_until(lambda: leader.client().metric("turnstile_limit_used", limit="max-waiters") == 192, "the others wait")
        answer = refused[0].answer()
        self.assertEqual((answer.status, answer["code"], answer.headers["Retry-After"]), (429, "too_many_requests", "1"))
        self.assertEqual(standby.client().status("r", type="own")["state"], "held")
        self.assertTrue(standby.client().lock("other", "n", type="own")["acquired"])
        for poll in polls:
            poll.close()

    def test_S46_a_standby_that_stops_answers_what_it_has_passed_on(self):
        replicas = self.replicas("--standby", "forward", count=2)
        leader = replicas.leader()
        replicas.wait_until_in_step()
        leader.client().lock("r", "n", type="own", lease_ms=600_000)
        standby = replicas.standbys()[0]
        poll = standby.poll("r", "m", type="own", wait_ms=600_000)
        wait_until(lambda: leader.client().status("r", type="own")["queue"], "it waits")
        self.assertEqual(standby.stop(), 0)
        answer = poll.answer()
        self.assertEqual((answer.status, answer["code"]), (503, "outcome_unknown"))

    def test_S43_what_was_passed_on_to_a_leader_that_fell_silent_is_answered_when_another_leads(self):
        replicas = self.replicas("--standby", "forward")
        leader = replicas.leader()
        replicas.wait_until_in_step()
        leader.client().lock("r", "n", type="own", lease_ms=600_000)
        polls = [server.poll("r", f"m{i}", type="own", wait_ms=600_000)  # one of them will lead, the other follow
                 for i, server in enumerate(replicas.standbys())]
        wait_until(lambda: len(leader.client().status("r", type="own")["queue"]) == 2, "both wait")
        os.kill(leader.pid, signal.SIGSTOP)
        try:
            replicas.leader([server for server in replicas.servers if server is not leader])
            for poll in polls:
                answer = poll.answer()
                self.assertEqual((answer.status, answer["code"]), (503, "outcome_unknown"))
        finally:
            os.kill(leader.pid, signal.SIGCONT)

    def test_S44_who_waits_keeps_its_place_until_it_can_have_missed_a_leader_that_went_silent(self):
        replicas = self.replicas("--bond-grace", "1s", count=2)
        leader = replicas.leader()
        replicas.wait_until_in_step()
        leader.client().lock("r", "n", type="own", lease_ms=600_000)
        for i in range(2):
            leader.poll("r", f"m{i}", type="own", wait_ms=600_000)
        wait_until(lambda: len(leader.client().status("r", type="own")["queue"]) == 2, "both wait")
        os.kill(leader.pid, signal.SIGSTOP)
        try:
            client = replicas.leader([server for server in replicas.servers if server is not leader]).client()
            until = time.monotonic() + 3
            while time.monotonic() < until:
                self.assertEqual([w["node_id"] for w in client.status("r", type="own")["queue"]], ["m0", "m1"])
        finally:
            os.kill(leader.pid, signal.SIGCONT)

    def test_S44_without_etcd_nobody_leads_and_with_it_again_somebody_does(self):
        replicas = self.replicas(count=2)
        leader = replicas.leader()
        token = leader.client().lock("r", "n", type="own")["token"]
        for member in 0, 1:
            self.etcd.kill_member(member)
        try:
            def says_so(server):
                answer = server.client().get("/locks") if server is not leader else server.client().post("/lock", **LANE)
                return answer.status == 503 and answer["code"] in ("no_leader", "outcome_unknown")
            for server in replicas.servers:
                wait_until(lambda: says_so(server), "no server leads")
                servers = wait_until(lambda: replicas.ask(server).body, "it says who is there")
                self.assertIsNone(servers["leader"])
                self.assertNotIn("leader", [each["role"] for each in servers["servers"]])
        finally:
            for member in 0, 1:
                self.etcd.start_member(member)
        again = replicas.leader()
        self.assertEqual(again.client().status("r", type="own")["holder"]["token"], token)
        self.assertIn("etcd cannot be used", leader.log())


class SettingsTest(ReplicatedCase):
    def refused(self, *flags):
        """What a server says that does not start."""
        done = subprocess.run([harness.binary(), "--listen", f"{self.etcd.host}:0", *flags], capture_output=True, text=True,
                              timeout=harness.PATIENCE, env=harness.plain_environment(), check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("turnstiled: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        return lines[0]

    def test_settings_that_cannot_be_right_are_told_in_one_line(self):
        self.assertIn("prefix", self.refused("--store", f"etcd://{self.etcd.host}:2379"))
        self.assertIn("HOST:PORT", self.refused("--store", "etcd://nowhere/p"))
        self.assertIn("leader-lease", self.refused("--store", self.etcd.store("p"), "--leader-lease", "100ms"))
        self.assertIn("no-such-file", self.refused("--store", self.etcd.store("p").replace("etcd:", "etcds:"),
                                                   "--etcd-ca", "/no-such-file"))
        self.assertIn("no-such-file", self.refused("--store", self.etcd.store("p"), "--etcd-user", "u",
                                                   "--etcd-password-file", "/no-such-file"))
        self.etcd.control("put", "/newer/format", "turnstile 2")
        self.assertIn("another version", self.refused("--store", self.etcd.store("newer")))

    def test_an_etcd_that_is_away_is_waited_for(self):
        server = Server(store="etcd://127.0.0.1:1/p")
        self.addCleanup(server.remove)
        server.start()
        self.assertEqual(server.client().get("/healthz").status, 200)
        wait_until(lambda: "etcd cannot be used" in server.log(), "it says why")
        answer = server.client().post("/lock", **LANE)
        self.assertEqual((answer.status, answer["code"], answer.headers["Retry-After"]), (503, "no_leader", "1"))
        self.assertEqual(server.log().count("etcd cannot be used"), 1)


class AccessTest(unittest.TestCase):
    """An etcd that asks who is there."""

    def setUp(self):
        pid = os.getpid()
        self.etcd = Etcd(1, host=f"127.251.{pid // 256 % 256}.{1 + pid % 254}")
        self.addCleanup(self.etcd.remove)
        self.etcd.start()
        for words in (("user", "add", "root:secret"), ("user", "grant-role", "root", "root"), ("role", "add", "turnstile"),
                      ("role", "grant-permission", "turnstile", "--prefix=true", "readwrite", "/ours/"),
                      ("user", "add", "turnstile:password"), ("user", "grant-role", "turnstile", "turnstile"),
                      ("auth", "enable")):
            self.etcd.control(*words)

    def run_to_its_end(self, prefix, *flags, **environment):
        done = subprocess.run([harness.binary(), "--listen", f"{self.etcd.host}:0", "--store", self.etcd.store(prefix), *flags],
                              capture_output=True, text=True, timeout=harness.PATIENCE, check=False,
                              env=harness.plain_environment(**environment))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("turnstiled: "), 1, done.stderr)
        self.assertNotIn("wrong-secret", done.stderr)

    def test_a_wrong_user_password_or_prefix_ends_it_and_the_right_ones_let_it_lead(self):
        user = ("--etcd-user", "turnstile")
        self.run_to_its_end("ours")
        self.run_to_its_end("ours", *user, TURNSTILED_ETCD_PASSWORD="wrong-secret")
        self.run_to_its_end("theirs", *user, TURNSTILED_ETCD_PASSWORD="password")
        server = Server("--leader-lease", "3s", *user, store=self.etcd.store("ours"),
                        environment={"TURNSTILED_ETCD_PASSWORD": "password"})
        self.addCleanup(server.remove)
        server.start()
        wait_until(lambda: server.client().get("/readyz").status == 200, "it leads")
        self.assertTrue(server.client().post("/lock", **LANE)["acquired"])
        self.assertNotIn("password", server.client().get("/version").text.replace("etcd-password-file", ""))


class AccessWithoutAMemberTest(ReplicatedCase):
    """One member of three is away, and the others say who may come in."""

    @classmethod
    def setUpClass(cls):
        pid = os.getpid()
        cls.etcd = Etcd(3, host=f"127.249.{pid // 256 % 256}.{1 + pid % 254}").start()
        for words in (("user", "add", "root:secret"), ("user", "grant-role", "root", "root"), ("role", "add", "turnstile"),
                      ("role", "grant-permission", "turnstile", "--prefix=true", "readwrite", "/ours/"),
                      ("role", "grant-permission", "turnstile", "--prefix=true", "read", "/read/"),
                      ("user", "add", "turnstile:password"), ("user", "grant-role", "turnstile", "turnstile"),
                      ("auth", "enable")):
            cls.etcd.control(*words)
        cls.etcd.kill_member(0)

    def refused(self, prefix, password):
        done = subprocess.run([harness.binary(), "--listen", f"{self.etcd.host}:0", "--store", self.etcd.store(prefix),
                               "--etcd-user", "turnstile"], capture_output=True, text=True, timeout=harness.PATIENCE,
                              check=False, env=harness.plain_environment(TURNSTILED_ETCD_PASSWORD=password))
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_a_wrong_password_prefix_or_role_ends_it_all_the_same(self):
        self.assertIn("invalid user ID or password", self.refused("ours", "wrong-secret"))
        self.assertIn("read /theirs/: ", self.refused("theirs", "password"))
        self.assertIn("write /read/: ", self.refused("read", "password"))


class CopyTest(ReplicatedCase):
    def copy(self, source, target, code=0):
        done = subprocess.run([harness.binary(), "--copy-from", source, "--store", target], capture_output=True, text=True,
                              timeout=harness.PATIENCE, env=harness.plain_environment(), check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def test_a_store_is_copied_to_etcd_and_back_with_all_that_is_in_it(self):
        first = Server().start()
        self.addCleanup(first.remove)
        tokens = [first.client().lock(f"r{i}", "n", type="own")["token"] for i in range(30)]
        first.client().lock("r0", "m", type="own")
        first.client().post("/refs/add", resource_id="r1", node_id="n")
        first.close_clients()
        first.stop()
        target = self.etcd.store("copied")
        self.assertIn("records copied", self.copy(first.store, target))
        self.assertIn("is not empty", self.copy(first.store, target, code=2))
        replicas = Replicas(self.etcd, "copied", count=1)
        self.addCleanup(replicas.remove)
        client = replicas.start().leader().client()
        for i, token in enumerate(tokens):
            self.assertEqual(client.status(f"r{i}", type="own")["holder"]["token"], token)
        self.assertEqual(client.get("/refs", resource_id="r1")["nodes"], ["n"])
        self.assertEqual(client.unlock("r0", "n", type="own")["next"], "m")
        self.assertIn("stop all of them", self.copy(target, f"file:{first.directory}/none", code=2))
        replicas.servers[0].stop()
        back = Server()
        self.addCleanup(back.remove)
        self.copy(target, back.store)
        again = back.start().client()
        self.assertEqual(again.status("r0", type="own")["holder"]["node_id"], "m")
        self.assertGreater(again.lock("new", "n", type="own")["token"], max(tokens))


    def test_of_a_copy_that_was_interrupted_nobody_makes_a_store(self):
        first = Server().start()
        self.addCleanup(first.remove)
        for k in range(0, 60_000, 1000):
            first.client().batch(*({"call": "lock", "type": "own", "resource_id": f"{k + i}-" + "x" * 100, "node_id": "n"}
                                   for i in range(1000)))
        first.close_clients()
        first.stop()
        self.assertIn("into itself", self.copy(first.store, first.store, code=2))
        directory = harness.temporary_directory()
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        begun = {self.etcd.store("partial"): lambda: self.etcd.control("get", "--prefix", "--keys-only", "/partial/log/"),
                 f"file:{directory}/partial": lambda: os.path.exists(f"{directory}/partial/copying")}
        for target, has_begun in begun.items():
            with self.subTest(target=target):
                copying = subprocess.Popen([harness.binary(), "--copy-from", first.store, "--store", target],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                wait_until(has_begun, "it copies", every=0.002)
                copying.kill()
                copying.wait()
                done = subprocess.run([harness.binary(), "--listen", f"{self.etcd.host}:0", "--store", target],
                                      capture_output=True, text=True, timeout=harness.PATIENCE, check=False,
                                      env=harness.plain_environment())
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("has only a part of a store", done.stderr)
                self.assertIn("has only a part of a store", self.copy(first.store, target, code=2))
        # While the interrupted one still leads there, for its lease.
        self.etcd.control("put", "/again/leader", "copy-store")
        self.assertIn("try again", self.copy(first.store, self.etcd.store("again"), code=2))


class FaultsTest(ReplicatedCase):
    """Everybody works while servers and members die and fall asleep; the checker judges what the clients saw."""

    def test_S41_S44_faults_of_servers_and_members_lose_and_double_nothing(self):
        rounds = int(os.environ.get("TURNSTILE_ROUNDS", "6"))
        seed = int(os.environ.get("TURNSTILE_SEED", random.randrange(1_000_000)))
        print(f"TURNSTILE_ROUNDS={rounds} TURNSTILE_SEED={seed}", flush=True)
        chance = random.Random(seed)
        replicas = self.replicas(*FLAGS)
        replicas.leader()
        workload = Workload(replicas, CLIENTS, seed)
        workload.start()
        faults = [self.kill_leader, self.sleep_leader, self.stop_leader, self.kill_standby, self.kill_etcd_leader,
                  self.sleep_etcd_leader, self.kill_etcd_follower]
        order = [fault for _ in range(rounds // len(faults) + 1) for fault in chance.sample(faults, len(faults))]
        for fault in order[:rounds]:
            time.sleep(chance.uniform(0.2, 1.0))  # a random moment, not a time that something takes
            began = time.monotonic()
            fault(replicas, chance)
            self.wait_for_progress(workload)
            workload.look()
            print(f"  {fault.__name__}: {time.monotonic() - began:.1f} s, {workload.answered()} answers", flush=True)
        history = workload.finish(2 * harness.PATIENCE)
        workload.look()
        self.assertEqual(checker.check(history), [])
        client = replicas.leader().client()
        for state in "held", "waiting":
            wait_until(lambda: client.get("/locks", state=state)["locks"] == [],
                       f"nothing is {state} any more, {GRACE} s after the last has left it")
        rest = ", ".join(f"{number} {what}" for what, number in sorted(workload.done.items()))
        print(f"counted: {rounds} faults, {workload.answered()} answers, {rest}", flush=True)
        self.assertGreater(workload.done["acquired"], rounds * CLIENTS // 2)

    def wait_for_progress(self, workload):
        wanted = workload.answered() + 4 * CLIENTS
        wait_until(lambda: workload.failures or workload.answered() > wanted, "the clients make progress",
                   timeout=4 * harness.PATIENCE)

    def kill_leader(self, replicas, _):
        leader = replicas.leader()
        leader.kill()
        leader.restart()

    def stop_leader(self, replicas, _):
        leader = replicas.leader()
        self.assertEqual(leader.stop(), 0)
        leader.restart()

    def sleep_leader(self, replicas, chance):
        leader = replicas.leader()
        os.kill(leader.pid, signal.SIGSTOP)
        replicas.leader([server for server in replicas.servers if server is not leader])
        time.sleep(chance.uniform(0, 1))
        os.kill(leader.pid, signal.SIGCONT)

    def kill_standby(self, replicas, chance):
        standby = chance.choice(replicas.standbys())
        standby.kill()
        standby.restart()

    def member(self, which):
        return wait_until(lambda: self.find(which), "etcd has a leader")

    def find(self, which):
        try:
            leader = self.etcd.leader()
        except (AssertionError, subprocess.SubprocessError, json.JSONDecodeError):
            return None
        return str(leader if which == "leader" else (leader + 1) % 3)

    def kill_etcd_leader(self, _, chance):
        self.down(int(self.member("leader")), chance)

    def kill_etcd_follower(self, _, chance):
        self.down(int(self.member("follower")), chance)

    def down(self, member, chance):
        self.etcd.kill_member(member)
        time.sleep(chance.uniform(0, 1))
        self.etcd.start_member(member)

    def sleep_etcd_leader(self, _, chance):
        member = int(self.member("leader"))
        self.etcd.stop_member(member)
        time.sleep(chance.uniform(1, 4))
        self.etcd.continue_member(member)


if __name__ == "__main__":
    harness.main()
