"""kill -9 at random moments under load: no double grant in any lane or scope, nothing acknowledged lost, tokens only grow,
everybody who waits ends once (X8, X9, S7, S31). What the clients do is in workload.py; checker.py judges what they saw.

TURNSTILE_KILLS: how many rounds (8). TURNSTILE_OPERATIONS: how many calls must have been answered in all (0: what comes).
TURNSTILE_CLIENTS: how many clients (8). TURNSTILE_SEED: which (by chance; printed, so that a run can be repeated). The
large one, with four loops, which soak.py runs, too:
TURNSTILE_KILLS=200 TURNSTILE_OPERATIONS=200000 TURNSTILE_CLIENTS=16 TEST_THREADS=4 python3 test/process/kill_test.py
"""
import os
import random
import time
import unittest

import checker
import harness
from harness import Server, wait_until
from workload import FLAGS, GRACE, Workload

CLIENTS = int(os.environ.get("TURNSTILE_CLIENTS", "8"))


class KillTest(unittest.TestCase):
    def setUp(self):
        self.rounds = int(os.environ.get("TURNSTILE_KILLS", "8"))
        seed = int(os.environ.get("TURNSTILE_SEED", random.randrange(1_000_000)))
        print(f"TURNSTILE_KILLS={self.rounds} TURNSTILE_SEED={seed}", flush=True)
        self.chance = random.Random(seed)
        self.operations = int(os.environ.get("TURNSTILE_OPERATIONS", "0"))
        self.server = Server(*FLAGS)
        self.addCleanup(self.server.remove)
        self.workload = Workload(self.server, CLIENTS, seed)

    def test_X9_S31_kill_9_at_random_moments_loses_and_doubles_nothing(self):
        self.server.start()
        self.workload.start()
        for i in range(self.rounds):
            self.wait_for_progress((i + 1) * self.operations // self.rounds)
            # A random moment, not a time that something takes.
            time.sleep(self.chance.uniform(0, 0.3))
            if self.chance.random() < 0.15:  # now and then a clean stop besides, which is not counted
                self.assertEqual(self.server.stop(), 0)
                self.server.restart()
                time.sleep(self.chance.uniform(0, 0.3))
            self.server.kill()
            self.server.restart()
            self.workload.look()
            if self.rounds > 20 and i % 10 == 9:
                print(f"  {i + 1} of {self.rounds} kills, {self.workload.answered()} answers", flush=True)
        self.wait_for_progress()
        history = self.workload.finish(harness.PATIENCE)
        self.workload.look()
        self.assertEqual(checker.check(history), [])
        self.assert_all_becomes_free()
        done = self.workload.done
        rest = ", ".join(f"{number} {what}" for what, number in sorted(done.items()))
        print(f"counted: {self.rounds} kills, {self.workload.answered()} answers, {rest}", flush=True)
        self.assertGreater(done["acquired"], self.rounds * CLIENTS)

    def wait_for_progress(self, at_least=0):
        """Until the clients get answers again, and some more."""
        wanted = max(at_least, self.workload.answered() + 4 * CLIENTS)
        wait_until(lambda: self.workload.failures or self.workload.answered() > wanted, "the clients make progress",
                   timeout=10 * harness.PATIENCE)

    def assert_all_becomes_free(self):
        """Nobody was left behind, neither as a holder nor in a queue: who was abandoned ends by its lease or bond."""
        client = self.server.client()
        for state in "held", "waiting":
            wait_until(lambda: client.get("/locks", state=state)["locks"] == [],
                       f"nothing is {state} any more, {GRACE} s after the last has left it")


if __name__ == "__main__":
    harness.main()
