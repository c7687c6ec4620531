"""The checker itself: it accepts what a correct server can answer and finds each violation that is planted."""
import random
import unittest

from checker import NEVER, Acquire, Look, RefChange, RefLook, Release, check
from monitors import gaps


def acquire(invoke, ret, token, operation="own", resource="r", **more):
    return Acquire(resource, operation, invoke, ret, token, **more)


def release(token, invoke, ret, operation="own", resource="r", **more):
    return Release(resource, operation, token, invoke, ret, **more)


def look(invoke, ret, token, operation="own", resource="r"):
    return Look(resource, operation, invoke, ret, token)


def skip(invoke, ret, operation="pull", **more):
    return acquire(invoke, ret, None, operation, outcome="skipped", **more)


def correct_history(seed, resources=3, holds=200):
    """What clients of a correct server see: grants one after the other, each call's interval around its moment. Holds of
    one resource overlap where they may."""
    chance = random.Random(seed)
    history, token, now = [], 1000, 0.0
    ends = {}  # (resource, operation) -> (when its last hold ends, whether it excludes all)
    for _ in range(holds):
        resource, operation = f"r{chance.randrange(resources)}", chance.choice(("own", "other", "third"))
        exclusive = chance.random() < 0.3
        token += chance.randint(1, 3)
        in_the_way = [end for (name, kind), (end, whole) in ends.items()
                      if name == resource and (kind == operation or whole or exclusive)]
        # Tokens follow the moments of the grants over all lanes, so the next grant is after all before it.
        grant = now = max([now] + in_the_way) + chance.random() / 10
        end = grant + chance.random()
        ends[resource, operation] = (end, exclusive)
        asked = grant - chance.random() / 20
        entry = acquire(asked, grant + chance.random() * (end - grant) / 2, token, operation, resource,
                        exclusive=exclusive, who=(f"n{token}", "1"))
        given_back = release(token, entry.ret + (end - entry.ret) / 2, end + chance.random(), operation, resource)
        history += [entry, given_back, look(entry.ret, given_back.invoke, token, operation, resource)]
    return history


class CheckerTest(unittest.TestCase):
    def assert_finds(self, word, history):
        found = check(history)
        self.assertTrue(any(word in problem for problem in found), found)

    def assert_fine(self, history):
        self.assertEqual(check(history), [])


class ExclusionTest(CheckerTest):
    def test_a_correct_history_has_no_problem(self):
        for seed in range(50):
            self.assert_fine(correct_history(seed))

    def test_an_empty_history_has_no_problem(self):
        self.assert_fine([])

    def test_a_double_grant_is_found(self):
        self.assert_finds("two holders", [acquire(1, 2, 10), acquire(3, 4, 11), release(10, 5, 6), release(11, 5, 6)])

    def test_a_grant_before_a_release_was_even_sent_is_found_anywhere_in_a_long_history(self):
        for seed in range(50):
            history = correct_history(seed)
            grants = {}
            for entry in (e for e in history if isinstance(e, Acquire)):
                grants.setdefault(entry.lane, []).append(entry)
            releases = {e.token: e for e in history if isinstance(e, Release)}
            lane = random.Random(seed).choice([grants[lane] for lane in sorted(grants) if len(grants[lane]) > 1])
            at = random.Random(seed).randrange(len(lane) - 1)
            victim, after = releases[lane[at].token], lane[at + 1]
            victim.invoke, victim.ret = after.ret + 0.001, after.ret + 0.002
            self.assert_finds("two holders", history)

    def test_a_hold_of_the_whole_resource_beside_another_operation_is_found_in_either_order(self):
        for first, second in (True, False), (False, True), (True, True):
            beside = [acquire(1, 2, 10, "pull", exclusive=first), acquire(3, 4, 11, "delete", exclusive=second),
                      release(10, 5, 6, "pull"), release(11, 5, 6, "delete")]
            self.assert_finds("two holders", beside)
            beside[1].exclusive = beside[0].exclusive = False
            self.assert_fine(beside)
            beside[1].exclusive, beside[1].resource = True, "elsewhere"
            beside[3].resource = "elsewhere"
            self.assert_fine(beside)

    def test_a_hold_of_the_whole_resource_that_does_not_wait_for_the_last_of_several_is_found(self):
        several = [acquire(1, 2, 10, "pull"), acquire(1, 2, 11, "update"), release(10, 9, 10, "pull"),
                   release(11, 3, 4, "update"), acquire(5, 6, 12, "delete", exclusive=True)]
        self.assert_finds("two holders", several)
        several[2].invoke, several[2].ret = 4, 5
        self.assert_fine(several)

    def test_a_hold_that_is_never_released_blocks_the_lane_for_ever(self):
        self.assert_finds("two holders", [acquire(1, 2, 10), acquire(3, 4, 11)])
        self.assert_fine([acquire(1, 2, 10), acquire(3, 4, 11, "other")])

    def test_a_hold_that_is_not_released_ends_with_its_lease_and_not_before(self):
        left, after = acquire(1, 2, 10, lease=5, alive=1.5), acquire(3, 7, 11)
        self.assert_fine([left, after])
        left.alive = 2.5  # it was renewed
        self.assert_finds("two holders", [left, after])

    def test_calls_that_overlap_are_given_the_benefit_of_the_doubt(self):
        self.assert_fine([acquire(1, 9, 10), acquire(1, 9, 11), release(10, 2, 8), release(11, 9, 10)])


    def test_a_late_release_that_is_refused_does_not_lengthen_a_hold_whose_lease_was_over(self):
        # Its first answer was lost, so it may have been taken; but the lease may as well have ended the hold before.
        late, after = acquire(1, 2, 10, lease=3, alive=1), acquire(3, 5, 11)
        refused = release(10, 7, 9, refused="not_held", tries=2)
        self.assert_fine([late, after, refused, release(11, 6, 6.5)])
        late.lease = 5
        self.assert_finds("two holders", [late, after, refused, release(11, 6, 6.5)])


class TokenTest(CheckerTest):
    def test_a_token_that_is_given_twice_is_found(self):
        self.assert_finds("2 times", [acquire(1, 2, 10), release(10, 3, 4), acquire(5, 6, 10, resource="m")])

    def test_tokens_that_begin_again_after_a_restart_are_found_on_the_same_and_another_lane(self):
        for name in "r", "m":
            self.assert_finds("not smaller", [acquire(1, 2, 10), release(10, 3, 4), acquire(5, 6, 7, resource=name)])

    def test_a_holder_that_asks_again_is_told_the_same_token(self):
        again = [acquire(1, 2, 10, who=("a", "1")), acquire(3, 4, 10, who=("a", "1")), release(10, 5, 6)]
        self.assert_fine(again)
        self.assert_finds("2 times", [acquire(1, 2, 10, who=("a", "1")), acquire(3, 4, 10, who=("b", "1"))])

    def test_a_token_out_of_nowhere_is_found(self):
        self.assert_finds("never given", [look(1, 2, 99)])
        self.assert_finds("never given", [release(99, 1, 2)])
        left = acquire(1, 3, None, outcome="cancelled")  # whose grant nobody may have seen
        self.assert_fine([left, look(1, 2, 99)])


class OutcomeTest(CheckerTest):
    def test_a_waiter_that_never_ended_is_found(self):
        self.assert_finds("never told", [acquire(1, NEVER, None, who=("a", "1"))])

    def test_a_waiter_with_two_outcomes_is_found(self):
        for other in acquire(5, 6, 12, "pull", who=("a", "1")), skip(5, 6, who=("a", "1")):
            self.assert_finds("two outcomes", [acquire(1, 2, 10, "pull", who=("a", "1")), other,
                                               release(10, 3, 4, "pull")])
        self.assert_fine([acquire(1, 2, 10, who=("a", "1")), release(10, 3, 4), acquire(5, 6, 11, who=("a", "2"))])

    def test_a_waiter_that_was_overtaken_is_found(self):
        waited, late = acquire(1, 20, 12, queued=2), acquire(3, 10, 11)
        ends = [release(11, 11, 12), release(12, 21, 22)]
        self.assert_finds("order", [waited, late] + ends)
        late.invoke = 1.5  # it came before the other was told its place: either order is right
        self.assert_fine([waited, late] + ends)

    def test_a_waiter_that_was_overtaken_in_another_lane_is_found_where_the_two_conflict(self):
        waited, late = acquire(1, 20, 12, "pull", queued=2), acquire(3, 10, 11, "delete")
        ends = [release(11, 11, 12, "delete", success=False), release(12, 21, 22, "pull")]
        self.assert_fine([waited, late] + ends)
        for each in waited, late:
            each.exclusive = True
            self.assert_finds("order", [waited, late] + ends)
            each.exclusive = False


class LossTest(CheckerTest):
    def test_a_hold_that_a_restart_has_lost_is_found_by_a_look_and_by_its_release(self):
        hold = acquire(1, 2, 10)
        self.assert_finds("lost", [hold, look(3, 4, None), release(10, 5, 6)])
        self.assert_finds("lost", [hold, release(10, 5, 6, refused="not_held")])
        self.assert_fine([hold, look(3, 6, None), release(10, 5, 7)])

    def test_a_lease_that_ended_too_soon_is_found_by_a_look_and_by_its_release(self):
        hold = acquire(1, 2, 10, lease=5, alive=1.5)
        for late in 6.0, 7.0:
            there = [hold, look(3, late, None), release(10, 3, late, refused="not_held")]
            (self.assert_finds("lost", there) if late < 6.5 else self.assert_fine(there))

    def test_a_repeated_release_may_be_refused_if_a_later_one_has_come_between(self):
        hold, after = acquire(1, 2, 10), acquire(1, 5, 11)
        lost = release(10, 3, 9, refused="not_held", tries=2)
        self.assert_fine([hold, after, lost, release(11, 6, 7)])
        self.assert_finds("lost", [hold, lost])
        self.assert_finds("lost", [hold, after, lost, release(11, 10, 11)])
        lost.tries = 1
        self.assert_finds("lost", [hold, after, lost, release(11, 6, 7)])

    def test_another_holder_seen_while_a_hold_is_surely_there_is_found(self):
        self.assert_finds("lost", [acquire(1, 2, 10), look(3, 4, 11), release(10, 5, 6), acquire(3, 9, 11)])

    def test_an_acknowledged_release_that_a_restart_has_undone_is_found(self):
        self.assert_finds("undone", [acquire(1, 2, 10), release(10, 3, 4), look(5, 6, 10)])


class DoneOnceTest(CheckerTest):
    def pull(self, token, invoke, success=True, **more):
        return [acquire(invoke, invoke + 1, token, "pull", **more),
                release(token, invoke + 2, invoke + 3, "pull", success=success, node="a")]

    def test_work_that_is_done_twice_is_found(self):
        for success in True, False:
            self.assert_finds("done already", self.pull(10, 1) + self.pull(11, 5, success))
        self.assert_fine(self.pull(10, 1, success=False) + self.pull(11, 5))

    def test_after_a_success_that_voids_it_the_work_is_done_again(self):
        delete = [acquire(5, 6, 11, "delete", dereference=True, who=("a", "1")), release(11, 7, 8, "delete")]
        self.assert_fine(self.pull(10, 1) + delete + self.pull(12, 9))
        delete[1].success = False
        self.assert_finds("done already", self.pull(10, 1) + delete + self.pull(12, 9))

    def test_a_skip_before_any_success_is_found(self):
        self.assert_finds("before any success", [skip(1, 2)] + self.pull(10, 1))
        self.assert_fine([skip(1, 4)] + self.pull(10, 1))
        self.assert_fine([RefChange("r", "n", True, 0, 1), skip(1, 2)])


class ReferenceTest(CheckerTest):
    def added(self, node="a"):
        return RefChange("r", node, True, 1, 2)

    def seen(self, invoke, *nodes):
        return RefLook("r", invoke, invoke + 1, frozenset(nodes))

    def test_a_reference_that_was_lost_is_found(self):
        self.assert_finds("reference lost", [self.added(), self.seen(3)])
        self.assert_fine([self.added(), self.seen(3, "a")])
        self.assert_fine([self.added(), self.seen(1.5)])
        self.assert_fine([self.added(), RefChange("r", "a", False, 2, 9), self.seen(3)])

    def test_the_reference_of_a_pull_and_of_a_skip_that_was_lost_is_found(self):
        pulled = [acquire(1, 2, 10, "pull", who=("a", "1")), release(10, 3, 4, "pull", node="a")]
        self.assert_finds("reference lost: a", pulled + [self.seen(5)])
        self.assert_finds("reference lost: b", pulled + [skip(5, 6, who=("b", "1")), self.seen(7, "a")])
        self.assert_fine(pulled + [skip(5, 6, who=("b", "1")), self.seen(7, "a", "b")])

    def test_a_reference_that_came_back_or_out_of_nowhere_is_found(self):
        self.assert_finds("undone", [self.seen(3, "a")])
        self.assert_finds("undone", [self.added(), RefChange("r", "a", False, 3, 4), self.seen(5, "a")])
        self.assert_fine([self.added(), RefChange("r", "a", False, 3, 5), self.seen(4, "a")])

    def test_a_delete_takes_all_references_out_and_one_that_dereferences_its_own(self):
        delete = [acquire(3, 4, 10, "delete", dereference=True, who=("a", "1")), release(10, 5, 6, "delete")]
        self.assert_fine([self.added()] + delete + [self.seen(7)])
        self.assert_finds("undone", [self.added()] + delete + [self.seen(7, "a")])
        left = acquire(3, 4, None, "delete", outcome="skipped", dereference=True, who=("a", "1"))
        self.assert_fine([self.added(), self.added("b"), left, self.seen(7, "b")])
        self.assert_finds("undone: a", [self.added(), self.added("b"), left, self.seen(7, "a", "b")])
        self.assert_finds("lost: b", [self.added(), self.added("b"), left, self.seen(7)])

    def test_a_delete_of_what_somebody_uses_is_found(self):
        self.assert_finds("although a used it", [self.added(), acquire(3, 4, 10, "delete"), release(10, 5, 6, "delete")])
        self.assert_fine([self.added(), RefChange("r", "a", False, 2, 3.5), acquire(3, 4, 10, "delete")])

    def test_a_reference_that_was_added_during_a_delete_is_found(self):
        delete = [acquire(1, 2, 10, "delete"), release(10, 7, 8, "delete")]
        self.assert_finds("held for a delete", delete + [RefChange("r", "a", True, 3, 4)])
        self.assert_fine(delete + [RefChange("r", "a", True, 3, 7.5)])


class StreamTest(unittest.TestCase):
    HISTORY = [acquire(time, time + 1, 10 + time) for time in range(5)]

    def test_a_stream_that_has_missed_a_grant_and_was_not_told_is_found(self):
        self.assertEqual(gaps([{"own r": [11, 12, 13]}], self.HISTORY), [])
        self.assertEqual(gaps([{"own r": [10]}, {"own r": [13, 14]}], self.HISTORY), [], "there was a reset in between")
        self.assertIn("missed [12]", gaps([{"own r": [10, 11, 13]}], self.HISTORY)[0])
        self.assertIn("not in order", gaps([{"own r": [11, 10]}], self.HISTORY)[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
