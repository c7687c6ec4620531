"""Judges a history of locks that was recorded at the clients: could a correct lock server have answered like this?

Tokens grow with each grant, so they give the order of the grants away, and only feasibility remains to be checked; that
takes one sweep per lane in the order of tokens (O(n log n)). The server's own log is never asked: a server that
releases without looking at tokens agrees with itself.

A history is a list of Acquire, Release and Look. Times are of one clock, `invoke` before the first byte of the first
try was sent, `ret` after the last byte of the answer that settled it. Whoever records tries again until each call is
settled, with the same request id, and makes sure that nothing runs out meanwhile; so a hold ends by its release alone.
"""
import bisect
import collections
import dataclasses
from typing import Optional

NEVER = float("inf")


@dataclasses.dataclass
class Acquire:
    """A requester asked for a lane until it had it, or was told to skip."""
    lane: str
    invoke: float
    ret: float
    token: Optional[int]  # None: it was told to skip
    queued: Optional[float] = None  # when it was told that it is in the queue


@dataclasses.dataclass
class Release:
    """The holder of a token gave it back. `refused` is the error's code if the server did not take it; `tries` says
    how often it was sent, because the answer to an earlier one may have been lost."""
    lane: str
    token: int
    invoke: float
    ret: float = NEVER
    success: bool = True
    refused: str = ""
    tries: int = 1


@dataclasses.dataclass
class Look:
    """Somebody read who holds the lane. None: nobody."""
    lane: str
    invoke: float
    ret: float
    token: Optional[int]


def check(history, shared=()):
    """What is wrong, as sentences; an empty list: nothing. `shared`: lanes whose success ends the work for all."""
    problems = check_tokens([a for a in history if isinstance(a, Acquire) and a.token is not None])
    lanes = collections.defaultdict(Lane)
    for entry in history:
        lanes[entry.lane].add(entry)
    for name, lane in sorted(lanes.items()):
        problems += [f"{name}: {problem}" for problem in lane.check(name in shared)]
    return problems


def check_tokens(grants):
    """Over all lanes: no token twice, and a later grant has a greater one, whatever has crashed between the two."""
    problems = []
    for token, count in collections.Counter(a.token for a in grants).items():
        if count > 1:
            problems.append(f"token {token} was given {count} times")
    by_return = sorted(grants, key=lambda a: a.ret)
    returned, greatest = 0, 0
    for grant in sorted(grants, key=lambda a: a.invoke):
        while returned < len(by_return) and by_return[returned].ret < grant.invoke:
            greatest = max(greatest, by_return[returned].token)
            returned += 1
        if grant.token <= greatest:
            problems.append(f"{grant.lane}: token {grant.token} was given after {greatest}, which is not smaller")
    return problems


class Lane:
    """The part of a history that is about one lane."""

    def __init__(self):
        self.grants, self.skips, self.looks, self.releases = [], [], [], {}

    def add(self, entry):
        if isinstance(entry, Release):
            self.releases[entry.token] = entry
        elif isinstance(entry, Look):
            self.looks.append(entry)
        else:
            (self.skips if entry.token is None else self.grants).append(entry)

    def check(self, shared):
        self.grants.sort(key=lambda a: a.token)
        problems = self.check_one_holder() + self.check_order() + self.check_releases() + self.check_looks()
        return problems + (self.check_done_once() if shared else [])

    def released(self, token):
        """Invoke and return of the release that ended a hold; a refused one ended nothing."""
        release = self.releases.get(token)
        if release is None or not self.took_effect(release):
            return NEVER, NEVER
        return release.invoke, release.ret

    def took_effect(self, release):
        """Also a refused one may have, if its first answer was lost: the server remembers the lane's last release only
        (S15), so that a later one which came between makes it answer the repetition with a refusal."""
        if not release.refused:
            return True
        return release.tries > 1 and any(later.token > release.token and later.invoke < release.ret
                                         for later in self.releases.values())

    def check_one_holder(self):
        """Each grant at its earliest, each end at its earliest: if that does not fit, nothing does."""
        problems, free, before = [], 0, None
        for grant in self.grants:
            start = max(free, grant.invoke)
            if start > grant.ret:
                problems.append(f"two holders: token {grant.token} was given while {before} was held")
            free, before = max(start, self.released(grant.token)[0]), grant.token
        return problems

    def check_order(self):
        """First in, first out: nobody who came after another was told its place gets a smaller token."""
        problems, latest, who = [], 0, None
        for grant in self.grants:
            if grant.queued is not None and latest > grant.queued:
                problems.append(f"order: token {who} overtook {grant.token}, which had waited before it came")
            if grant.invoke > latest:
                latest, who = grant.invoke, grant.token
        return problems

    def check_releases(self):
        problems = [f"lost: the release of token {r.token} was refused ({r.refused}), but nothing else had ended it"
                    for r in self.releases.values() if not self.took_effect(r)]
        given = {grant.token for grant in self.grants}
        return problems + [f"token {token} was released and never given"
                           for token in self.releases if token not in given]

    def check_looks(self):
        """What was read in between must be possible: an acknowledged hold is there until its release is sent, and an
        acknowledged release is for ever."""
        problems = []
        given = {grant.token for grant in self.grants}
        starts = [grant.ret for grant in self.grants]  # in the order of tokens, which is that of time
        for look in self.looks:
            if look.token is not None and look.token not in given:
                problems.append(f"token {look.token} was seen and never given")
            elif look.token is not None and self.released(look.token)[1] < look.invoke:
                problems.append(f"undone: token {look.token} was seen after its release was acknowledged")
            at = bisect.bisect_left(starts, look.invoke) - 1  # the last grant that was acknowledged before the look
            if at >= 0:
                held = self.grants[at].token
                if self.released(held)[0] > look.ret and look.token != held:
                    problems.append(f"lost: token {held} was held, and {look.token or 'nobody'} was seen")
        return problems

    def check_done_once(self):
        """A shared success ends the work: nobody is granted after it, nobody skips before it."""
        done = [r for r in self.releases.values() if r.success and self.took_effect(r)]
        problems = [f"done twice: tokens {[r.token for r in done]}"] if len(done) > 1 else []
        last = min((r.token for r in done), default=NEVER)
        problems += [f"done already: token {g.token} was given after the success of {last}"
                     for g in self.grants if g.token > last]
        first = min((r.invoke for r in done), default=NEVER)
        problems += [f"a skip was told at {s.ret}, before any success" for s in self.skips if s.ret < first]
        return problems
