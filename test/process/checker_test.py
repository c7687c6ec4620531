"""The checker itself: it accepts what a correct server can answer and finds each violation that is planted."""
import random
import unittest

from checker import Acquire, Look, Release, check


def correct_history(seed, lanes=3, holds=200):
    """What clients of a correct server see: grants one after the other, each call's interval around its moment."""
    chance = random.Random(seed)
    history, token, moments = [], 1000, [0.0] * lanes
    for _ in range(holds):
        lane = chance.randrange(lanes)
        token += chance.randint(1, 3)
        # Tokens follow the moments of the grants over all lanes, so a lane's next grant is after everything so far.
        grant = max(moments) + chance.random()
        end = grant + chance.random()
        moments[lane] = end
        asked = grant - chance.random() * 3
        queued = asked + (grant - asked) * chance.random() if chance.random() < 0.5 else None
        acquire = Acquire(f"lane{lane}", asked, grant + chance.random() * (end - grant) / 2, token, queued)
        history.append(acquire)
        release = Release(f"lane{lane}", token, acquire.ret + (end - acquire.ret) / 2, end + chance.random())
        history.append(release)
        history.append(Look(f"lane{lane}", acquire.ret, release.invoke, token))
    return in_order(history)


def in_order(history):
    """Waiters ask in the order in which they are granted, so that nobody has overtaken anybody."""
    for lane in {a.lane for a in history}:
        latest = 0.0
        for acquire in [a for a in history if isinstance(a, Acquire) and a.lane == lane]:
            acquire.invoke = latest = max(latest, acquire.invoke)
            acquire.ret = max(acquire.ret, acquire.invoke)
            if acquire.queued is not None:
                acquire.queued = max(acquire.queued, acquire.invoke)
    return history


class CheckerTest(unittest.TestCase):
    def assert_finds(self, word, history, **options):
        found = check(history, **options)
        self.assertTrue(any(word in problem for problem in found), found)

    def test_a_correct_history_has_no_problem(self):
        for seed in range(50):
            self.assertEqual(check(correct_history(seed)), [])

    def test_an_empty_history_has_no_problem(self):
        self.assertEqual(check([]), [])

    def test_a_double_grant_is_found(self):
        self.assert_finds("two holders", [Acquire("l", 1, 2, 10), Acquire("l", 3, 4, 11), Release("l", 10, 5, 6),
                                          Release("l", 11, 5, 6)])

    def test_a_grant_before_a_release_was_even_sent_is_found_anywhere_in_a_long_history(self):
        for seed in range(50):
            history = correct_history(seed)
            releases = [r for r in history if isinstance(r, Release)]
            grants = {}
            for acquire in (a for a in history if isinstance(a, Acquire)):
                grants.setdefault(acquire.lane, []).append(acquire)
            victim = random.Random(seed).choice([r for r in releases if r.token != grants[r.lane][-1].token])
            after = next(a for a in grants[victim.lane] if a.token > victim.token)
            victim.invoke, victim.ret = after.ret + 0.001, after.ret + 0.002
            self.assert_finds("two holders", history)

    def test_a_hold_that_is_never_released_blocks_the_lane_for_ever(self):
        self.assert_finds("two holders", [Acquire("l", 1, 2, 10), Acquire("l", 3, 4, 11)])
        self.assertEqual(check([Acquire("l", 1, 2, 10), Acquire("other", 3, 4, 11)]), [])

    def test_calls_that_overlap_are_given_the_benefit_of_the_doubt(self):
        self.assertEqual(check([Acquire("l", 1, 9, 10), Acquire("l", 1, 9, 11), Release("l", 10, 2, 8),
                                Release("l", 11, 9, 10)]), [])

    def test_a_token_that_is_given_twice_is_found(self):
        self.assert_finds("2 times", [Acquire("l", 1, 2, 10), Release("l", 10, 3, 4), Acquire("m", 5, 6, 10)])

    def test_tokens_that_begin_again_after_a_restart_are_found_on_the_same_and_another_lane(self):
        for lane in "l", "m":
            self.assert_finds("not smaller", [Acquire("l", 1, 2, 10), Release("l", 10, 3, 4), Acquire(lane, 5, 6, 7)])

    def test_a_hold_that_a_restart_has_lost_is_found_by_a_look_and_by_its_release(self):
        hold = Acquire("l", 1, 2, 10)
        self.assert_finds("lost", [hold, Look("l", 3, 4, None), Release("l", 10, 5, 6)])
        self.assert_finds("lost", [hold, Release("l", 10, 5, 6, refused="not_held")])
        self.assertEqual(check([hold, Look("l", 3, 6, None), Release("l", 10, 5, 7)]), [])

    def test_a_repeated_release_may_be_refused_if_a_later_one_has_come_between(self):
        hold, after = Acquire("l", 1, 2, 10), Acquire("l", 1, 5, 11)
        lost = Release("l", 10, 3, 9, refused="not_held", tries=2)
        self.assertEqual(check([hold, after, lost, Release("l", 11, 6, 7)]), [])
        self.assert_finds("lost", [hold, lost])
        self.assert_finds("lost", [hold, after, lost, Release("l", 11, 10, 11)])
        lost.tries = 1
        self.assert_finds("lost", [hold, after, lost, Release("l", 11, 6, 7)])

    def test_another_holder_seen_while_a_hold_is_surely_there_is_found(self):
        self.assert_finds("lost", [Acquire("l", 1, 2, 10), Look("l", 3, 4, 11), Release("l", 10, 5, 6),
                                   Acquire("l", 3, 9, 11)])

    def test_a_release_that_a_restart_has_undone_is_found(self):
        self.assert_finds("undone", [Acquire("l", 1, 2, 10), Release("l", 10, 3, 4), Look("l", 5, 6, 10)])

    def test_a_token_out_of_nowhere_is_found(self):
        self.assert_finds("never given", [Look("l", 1, 2, 99)])
        self.assert_finds("never given", [Release("l", 99, 1, 2)])

    def test_a_waiter_that_was_overtaken_is_found(self):
        waited = Acquire("l", 1, 20, 12, queued=2)
        late = Acquire("l", 3, 10, 11)
        self.assert_finds("order", [waited, late, Release("l", 11, 11, 12), Release("l", 12, 21, 22)])
        late.invoke = 1.5  # it came before the other was told its place: either order is right
        self.assertEqual(check([waited, late, Release("l", 11, 11, 12), Release("l", 12, 21, 22)]), [])

    def test_work_that_is_done_twice_is_found(self):
        first, again = Acquire("p", 1, 2, 10), Acquire("p", 5, 6, 11)
        ends = [Release("p", 10, 3, 4), Release("p", 11, 7, 8)]
        self.assert_finds("done twice", [first, again] + ends, shared={"p"})
        self.assert_finds("done already", [first, again, ends[0], Release("p", 11, 7, 8, success=False)], shared={"p"})
        self.assertEqual(check([first, again] + ends), [])

    def test_a_skip_before_any_success_is_found(self):
        work = [Acquire("p", 1, 2, 10), Release("p", 10, 3, 4)]
        self.assert_finds("before any success", [Acquire("p", 1, 2, None)] + work, shared={"p"})
        self.assertEqual(check([Acquire("p", 1, 4, None)] + work, shared={"p"}), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
