"""./dev soak replicated: faults of the leader, a standby, etcd's leader and a follower, under load, judged (S41 to S47).

Every server and every etcd member has a network namespace of its own on one bridge, so that nftables can cut each of them off,
in both directions or in one. Each round: kill -9, SIGSTOP for longer than the leader's lease and then SIGCONT, or a cut. Clients do
what workload.py says, monitors read event streams; checker.py judges what the clients were told, monitors.py what the streams had.
Needs root (or CAP_NET_ADMIN and CAP_SYS_ADMIN), `ip` and `nft`.

TURNSTILE_ROUNDS: how many faults (20: each kind of each victim). TURNSTILE_CLIENTS: how many clients (16). TURNSTILE_SEED: which
faults when (by chance; printed, so that a run can be repeated).
"""
import collections
import http.client
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import checker
import harness
from client import Client
from cut_network_test import enter, ip
from cut_replicated_test import PlacedServer
from etcd import Etcd
from harness import wait_until
from monitors import Monitor, gaps
from replicas import LEASE, Replicas
from workload import FLAGS, GRACE, RESOURCES, Workload

CLIENTS = int(os.environ.get("TURNSTILE_CLIENTS", "16"))
CUTS = {"cut off": ("input", "output"), "hears nothing": ("input",), "is not heard": ("output",)}
VICTIMS = ("leader", "standby", "etcd's leader", "follower")


class Bridge:
    """A namespace for the clients, and one for each server and member, all on one bridge."""

    def __init__(self):
        self.hub = f"turnstile-{os.getpid()}-hub"
        self.names = []

    def connect(self):
        self._add(self.hub)
        ip("-n", self.hub, "link", "add", "hub", "type", "bridge")
        ip("-n", self.hub, "addr", "add", "10.214.86.1/24", "dev", "hub")
        ip("-n", self.hub, "link", "set", "hub", "up")

    def add(self, number):
        """Returns the namespace's name and address."""
        name, address, cable = f"turnstile-{os.getpid()}-{number}", f"10.214.86.{number}", f"cable{number}"
        self._add(name)
        ip("-n", name, "link", "add", "eth", "type", "veth", "peer", "name", cable, "netns", self.hub)
        ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth")
        ip("-n", name, "link", "set", "eth", "up")
        ip("-n", self.hub, "link", "set", cable, "master", "hub", "up")
        return name, address

    def _add(self, name):
        ip("netns", "add", name)
        self.names.append(name)
        ip("-n", name, "link", "set", "lo", "up")

    @staticmethod
    def _nft(name, rules):
        subprocess.run(["ip", "netns", "exec", name, "nft", "-f", "-"], input=rules, text=True, check=True)

    def cut(self, name, hooks):
        chains = {"input": "iifname", "output": "oifname"}
        self._nft(name, "table inet cut {" + "".join(
            f"chain {hook} {{ type filter hook {hook} priority 0; {chains[hook]} \"eth\" drop; }}\n" for hook in hooks) + "}")

    def heal(self, name):
        self._nft(name, "delete table inet cut")

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, stdin=subprocess.DEVNULL)


class PlacedReplicas(Replicas):
    may_be_cut = True

    def __init__(self, places, store, *flags):
        super().__init__(None, None, count=0)
        self.servers = [PlacedServer(name, address, store, *flags) for name, address in places]


class Sleeper:
    """Asks a leader that cannot know yet that it leads no longer: it must grant, renew and show nothing."""

    def __init__(self, test, number):
        self.test, self.resource = test, f"probe-{number}"
        lane = {"type": "own", "resource_id": self.resource, "node_id": "sleeper"}
        self.leader, self.token = wait_until(lambda: self._granted(lane), "a leader grants a lock")
        self.asks = (("GET", f"/lock/status?type=own&resource_id={self.resource}", None),
                     ("POST", "/renew", {**lane, "token": self.token}),
                     ("POST", "/lock", {**lane, "resource_id": self.resource + "-new"}))

    def _granted(self, lane):
        leader = self.test.replicas.leader()  # who leads may change by itself: the last fault may have been etcd's
        answer = leader.ask("POST", "/lock", {**lane, "lease_ms": 600_000})
        return answer and answer.status == 200 and (leader, answer["token"])

    def take_away(self, following):
        """Another leads: what the sleeper knows is not so any more."""
        answer = wait_until(lambda: following.ask("POST", "/unlock", {
            "type": "own", "resource_id": self.resource, "node_id": "sleeper", "token": self.token}), "it is given back")
        self.test.assertTrue(answer.status == 200 or answer.status in (307, 503), answer)

    def judge(self, answers):
        for answer in answers:
            if answer is not None:
                self.test.assertIn(answer.status, (307, 503), f"a leader that leads no longer said {answer}")
        self.test.counts["questions to a leader that leads no longer"] += len(answers)


class RoundsTest(unittest.TestCase):
    def setUp(self):
        self.bridge, self.counts = Bridge(), collections.Counter()
        self.addCleanup(self.bridge.remove)
        self.bridge.connect()
        members = [self.bridge.add(20 + i) for i in range(3)]
        servers = [self.bridge.add(10 + i) for i in range(3)]
        enter(self.bridge.hub)  # who is started from here on, and does not say otherwise, is a client
        self.member_places = [name for name, _ in members]
        self.etcd = Etcd(3, hosts=[address for _, address in members], enter_member=lambda i: enter(members[i][0]))
        self.addCleanup(self.etcd.remove)
        self.etcd.start()
        self.replicas = PlacedReplicas(servers, self.etcd.store("rounds"), *FLAGS)
        self.addCleanup(self.replicas.remove)
        self.replicas.start()
        self.replicas.leader()

    def test_S41_S47_faults_lose_and_double_nothing_and_streams_have_no_gap(self):
        rounds = int(os.environ.get("TURNSTILE_ROUNDS", "20"))
        seed = int(os.environ.get("TURNSTILE_SEED", random.randrange(1_000_000)))
        print(f"TURNSTILE_ROUNDS={rounds} TURNSTILE_SEED={seed}", flush=True)
        chance = random.Random(seed)
        workload = Workload(self.replicas, CLIENTS, seed)
        monitors = [Monitor(self.replicas, "/events")]
        monitors += [Monitor(self.replicas, "/lock/subscribe", type=operation, resource_id=resource)
                     for resource in RESOURCES for operation in ("own", "pull")]
        workload.start()
        for monitor in monitors:
            monitor.start()
        kinds = [(kind, victim) for kind in ("killed", "asleep", *CUTS) for victim in VICTIMS]
        order = [each for _ in range(rounds // len(kinds) + 1) for each in chance.sample(kinds, len(kinds))]
        for number, (kind, victim) in enumerate(order[:rounds]):
            time.sleep(chance.uniform(0.2, 1.0))  # a random moment, not a time that something takes
            began = time.monotonic()
            self.fault(number, kind, victim, chance)
            self.wait_for_progress(workload)
            workload.look()
            self.counts[f"times {victim} {kind}"] += 1
            print(f"  {number + 1}: {victim} {kind}: {time.monotonic() - began:.1f} s, {workload.answered()} answers", flush=True)
        history = workload.finish(2 * harness.PATIENCE)
        workload.look()
        self.judge(history, monitors, workload, rounds)

    def judge(self, history, monitors, workload, rounds):
        self.assertEqual(checker.check(history), [])
        client = self.replicas.leader().client()
        for state in "held", "waiting":
            wait_until(lambda: [each for each in client.get("/locks", state=state)["locks"]
                                if not each["resource_id"].startswith("probe-")] == [],
                       f"nothing is {state} any more, {GRACE} s after the last has left it")
        for monitor in monitors:
            monitor.stopping.set()
            self.assertEqual(gaps(monitor.segments, history), [], monitor.path)
            self.counts.update(monitor.counts)
        self.counts.update(workload.done)
        rest = ", ".join(f"{number} {what}" for what, number in sorted(self.counts.items()))
        print(f"counted: {rounds} faults, {workload.answered()} answers, {rest}", flush=True)
        self.assertGreater(workload.done["acquired"], rounds * CLIENTS // 2)
        self.assertGreater(self.counts["events seen"], rounds)

    def wait_for_progress(self, workload):
        wanted = workload.answered() + 4 * CLIENTS
        wait_until(lambda: workload.failures or workload.answered() > wanted, "the clients make progress",
                   timeout=4 * harness.PATIENCE)

    def fault(self, number, kind, victim, chance):
        if victim in ("leader", "standby"):
            return self.fault_of_server(number, kind, victim, chance)
        leader = wait_until(self.etcds_leader, "etcd has a leader") - 1
        member = leader if victim == "etcd's leader" else (leader + chance.choice((1, 2))) % 3
        if kind == "killed":
            self.etcd.kill_member(member)
            time.sleep(chance.uniform(0, 2))
            return self.etcd.start_member(member)
        if kind == "asleep":
            self.etcd.stop_member(member)
            time.sleep(LEASE + chance.uniform(1, 3))
            return self.etcd.continue_member(member)
        self.bridge.cut(self.member_places[member], CUTS[kind])
        time.sleep(LEASE + chance.uniform(1, 3))
        return self.bridge.heal(self.member_places[member])

    def etcds_leader(self):
        try:
            return self.etcd.leader() + 1
        except (AssertionError, subprocess.SubprocessError, ValueError):
            return None

    def fault_of_server(self, number, kind, victim, chance):
        sleeper = Sleeper(self, number) if victim == "leader" and kind != "killed" else None
        leader = sleeper.leader if sleeper else self.replicas.leader()
        server = leader if victim == "leader" else chance.choice([each for each in self.replicas.servers if each is not leader])
        others = [each for each in self.replicas.servers if each is not server]
        if kind == "killed":
            server.kill()
            time.sleep(chance.uniform(0, 1))
            server.restart()
            return
        if kind == "asleep":
            asking = [self.connected(server) for _ in range(3)]
            os.kill(server.pid, signal.SIGSTOP)
            try:
                self.while_away(sleeper, others, chance)
                for client, question in zip(asking, sleeper.asks if sleeper else ()):
                    client.send(*question)
            finally:
                os.kill(server.pid, signal.SIGCONT)
            if sleeper:
                sleeper.judge([self.received(client) for client in asking])
            for client in asking:
                client.close()
            return
        self.bridge.cut(server.namespace, CUTS[kind])
        try:
            self.while_away(sleeper, others, chance)
            if sleeper:
                sleeper.judge([server.ask(*question) for question in sleeper.asks])
        finally:
            self.bridge.heal(server.namespace)

    def while_away(self, sleeper, others, chance):
        """Longer than a lease; if it led, until another does."""
        time.sleep(LEASE + chance.uniform(0.5, 2))
        if sleeper:
            sleeper.take_away(self.replicas.leader(others))

    @staticmethod
    def connected(server):
        client = Client(server.host, server.port, timeout=20)
        client.connection.connect()
        return client

    @staticmethod
    def received(client):
        """None: it was cut off, and told nothing."""
        try:
            return client.receive()
        except (OSError, http.client.HTTPException):
            return None


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("this needs root: network namespaces")
    harness.main()
