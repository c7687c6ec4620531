"""kill -9 at random moments under load: no double grant, nothing acknowledged lost, tokens only grow (X8, X9, S31).

TURNSTILE_KILLS: how many rounds (8). TURNSTILE_SEED: which (by chance; printed, so that a run can be repeated).
"""
import os
import random
import time
import unittest

import checker
import harness
from harness import Server, wait_until
from workload import Workload

CLIENTS = 8


class KillTest(unittest.TestCase):
    def setUp(self):
        self.rounds = int(os.environ.get("TURNSTILE_KILLS", "8"))
        seed = int(os.environ.get("TURNSTILE_SEED", random.randrange(1_000_000)))
        print(f"TURNSTILE_KILLS={self.rounds} TURNSTILE_SEED={seed}", flush=True)
        self.chance = random.Random(seed)
        self.server = Server("--max-hold", "0")
        self.addCleanup(self.server.remove)
        self.workload = Workload(self.server, CLIENTS, seed)

    def test_X9_S31_kill_9_at_random_moments_loses_and_doubles_nothing(self):
        self.server.start()
        self.workload.start()
        for i in range(self.rounds):
            self.wait_for_progress()
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
                print(f"  {i + 1} of {self.rounds} kills, {len(self.workload.history)} calls", flush=True)
        self.wait_for_progress()
        history = self.workload.finish(harness.PATIENCE)
        self.workload.look()
        self.assertEqual(checker.check(history, self.workload.shared()), [])
        self.assert_all_is_free()
        grants = sum(isinstance(entry, checker.Acquire) for entry in history)
        print(f"{self.rounds} kills, {len(history)} calls, {grants} of them locks", flush=True)
        self.assertGreater(grants, self.rounds * CLIENTS)

    def wait_for_progress(self):
        """Until the clients get answers again, and some more."""
        wanted = len(self.workload.history) + 4 * CLIENTS
        wait_until(lambda: self.workload.failures or len(self.workload.history) > wanted, "the clients make progress")

    def assert_all_is_free(self):
        """Nobody was left behind, neither as a holder nor in a queue."""
        client = self.server.client()
        for state in "held", "waiting":
            self.assertEqual(client.get("/locks", state=state)["locks"], [])


if __name__ == "__main__":
    harness.main()
