"""The program `turnstile` and three real servers on a real etcd: a planned hand-over and the death of a leader are no errors.

TURNSTILE_ROUNDS: how many hand-overs of each kind (1).
"""
import json
import os
import signal
import threading
import unittest

import harness
from etcd import Etcd
from harness import PATIENCE, wait_until
from replicas import Replicas
from turnstile_program import OK, run, start

ROUNDS = int(os.environ.get("TURNSTILE_ROUNDS", "1"))


class ReplicatedClientsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd(1).start()

    @classmethod
    def tearDownClass(cls):
        cls.etcd.remove()

    def setUp(self):
        self.replicas = Replicas(self.etcd, self.id().rsplit(".", 1)[1])
        self.addCleanup(self.replicas.remove)
        self.replicas.start()
        self.replicas.leader()
        self.replicas.wait_until_in_step()
        self.urls = ",".join(f"http://{server.host}:{server.port}" for server in self.replicas.servers)

    def change_hands(self, number):
        """The leader ends; another leads; it comes back and stands by."""
        leader = self.replicas.leader()
        os.kill(leader.pid, number)
        leader.process.wait(PATIENCE)
        new = self.replicas.leader([server for server in self.replicas.servers if server is not leader])
        leader.start()
        self.replicas.wait_until_in_step()
        return new

    def test_a_loop_sees_no_error_over_hand_overs_and_deaths(self):
        failures, rounds, stop = [], [0], threading.Event()

        def loop(node):
            while not stop.is_set():
                done = run("exec", "build", f"r-{node}", "--quiet", "--node", node, "--", "true", url=self.urls)
                rounds[0] += 1
                if done.returncode != OK or done.stderr:
                    failures.append((done.returncode, done.stderr))
        threads = [threading.Thread(target=loop, args=(f"n{i}",)) for i in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(ROUNDS):
                for number in (signal.SIGTERM, signal.SIGKILL):
                    so_far = rounds[0]
                    self.change_hands(number)
                    wait_until(lambda: rounds[0] > so_far + 4, "the loops go on")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_a_command_its_lease_and_a_watch_survive_the_death_of_the_leader(self):
        directory = harness.temporary_directory()
        go, on = os.path.join(directory, "go"), os.path.join(directory, "on")
        watch = start("watch", "--count", "3", "--output", "json", url=self.urls)
        process = start("exec", "build", "r", "--quiet", "--bond", "--node", "n", "--", "sh", "-c",
                        f"touch {on}; while [ ! -e {go} ]; do sleep 0.1; done", url=self.urls)
        wait_until(lambda: os.path.exists(on), "it runs")
        token = self.replicas.leader().client().status("r", type="build")["holder"]["token"]
        new = self.change_hands(signal.SIGKILL)
        holder = new.client().status("r", type="build")["holder"]
        self.assertEqual((holder["token"], holder["node_id"]), (token, "n"))
        with open(go, "w", encoding="ascii"):
            pass
        _, error = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, error), (OK, ""))
        number = [0]

        def told():
            number[0] += 1
            done = run("exec", "build", f"later-{number[0]}", "--quiet", "--", "true", url=self.urls)
            self.assertEqual(done.returncode, OK, done)
            return watch.poll() is not None
        wait_until(told, "the stream goes on at the new leader")
        events = [json.loads(line) for line in watch.communicate(timeout=PATIENCE)[0].splitlines()]
        # All of them in order, or a word that some are missing.
        names = [event["event"] for event in events]
        self.assertIn(names[-1], ("granted", "released", "completed", "reset", "handed_over", "unlocked"), names)

    def test_status_tells_who_leads(self):
        leader = self.replicas.leader()
        shown = json.loads(run("status", "--output", "json", url=self.urls).stdout)
        self.assertEqual((shown["mode"], shown["leader"]), ("replicated", f"http://{leader.host}:{leader.port}"))
        self.assertEqual(sorted(row["role"] for row in shown["servers"]), ["leader", "standby", "standby"])
        self.assertGreater(shown["term"], 0)
        self.assertEqual(len(shown["etcd"]["members"]), 1)
        text = run("status", url=self.urls).stdout
        self.assertIn(f"http://{leader.host}:{leader.port} leads, term {shown['term']}\n", text)


if __name__ == "__main__":
    harness.main()
