"""The last node removes an image while another begins to pull it: whoever comes first, the pull ends well."""
import random
import threading
import time

from cluster_case import ROUNDS, ClusterCase, main


class RemovalRaces(ClusterCase):
    def test_a_pull_that_meets_the_last_removal_always_ends_with_good_blobs(self):
        ref, blobs = self.image(mebibytes=1)
        user, *others = self.cluster.nodes
        user.pull(ref)
        moments, adopted, anew = random.Random(11), 0, 0
        for _ in range(3 * ROUNDS):
            self.cluster.proxy.forget()
            puller = moments.choice(others)
            self.at_once(moments.uniform(-0.2, 0.2), lambda: user.remove(ref), lambda: puller.pull(ref))
            self.assert_has(puller, blobs)
            self.assertFalse(user.blobs() & set(blobs))
            downloads = sum(self.cluster.proxy.blob_gets()[digest] for digest in blobs)
            adopted, anew = adopted + len(blobs) - downloads, anew + downloads
            others = [node for node in self.cluster.nodes if node is not puller]
            user = puller
        print(f"{3 * ROUNDS} rounds: {adopted} blobs adopted before they were removed, {anew} pulled anew", flush=True)
        user.remove(ref)
        self.assert_nothing_left(blobs)

    def at_once(self, later, first, second):
        """`second` begins so much later than `first`, or earlier."""
        errors = []

        def run(delay, work):
            try:
                time.sleep(max(0, delay))  # not a wait for something: the order is to vary
                work()
            except AssertionError as error:
                errors.append(error)
        threads = [threading.Thread(target=run, args=(delay, work))
                   for delay, work in ((-later, first), (later, second))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])


class RemovalRacesOverAMergedMount(RemovalRaces):
    shared = "mergerfs"


if __name__ == "__main__":
    main()
