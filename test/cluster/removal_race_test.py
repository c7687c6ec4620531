"""All who use an image remove it while others begin to pull it: whoever comes first, the pulls end well."""
import random
import threading
import time

from cluster_case import ROUNDS, ClusterCase, main


class RemovalRaces(ClusterCase):
    def test_a_pull_that_meets_the_last_removal_always_ends_with_good_blobs(self):
        ref, blobs = self.image(mebibytes=1)
        users = self.cluster.nodes[:1]
        users[0].pull(ref)
        moments, adopted, anew = random.Random(11), 0, 0
        for _ in range(3 * ROUNDS):
            self.cluster.proxy.forget()
            others = [node for node in self.cluster.nodes if node not in users]
            pullers = moments.sample(others, moments.randint(1, len(others)))
            self.at_once(moments, [lambda node=node: node.remove(ref) for node in users] +
                         [lambda node=node: node.pull(ref) for node in pullers])
            for node in pullers:
                self.assert_has(node, blobs)
            for node in users:
                self.assertFalse(node.blobs() & set(blobs))
            downloads = sum(self.cluster.proxy.blob_gets()[digest] for digest in blobs)
            adopted, anew = adopted + len(pullers) * len(blobs) - downloads, anew + downloads
            users = pullers
        print(f"{3 * ROUNDS} rounds: {adopted} times a blob was adopted, {anew} times it was pulled anew", flush=True)
        for node in users:
            node.remove(ref)
        self.assert_nothing_left(blobs)

    def at_once(self, moments, works):
        """All of them, each begun up to 0.2 s later than the others; none may fail."""
        errors = []

        def run(delay, work):
            try:
                time.sleep(delay)  # not a wait for something: the order is to vary
                work()
            except AssertionError as error:
                errors.append(error)
        threads = [threading.Thread(target=run, args=(moments.uniform(0, 0.2), work)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])


class RemovalRacesOverAMergedMount(RemovalRaces):
    shared = "mergerfs"


if __name__ == "__main__":
    main()
