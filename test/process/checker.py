"""Judges a history of locks that was recorded at the clients: could a correct lock server have answered like this?

Tokens grow with each grant, so they give the order of the grants away, and only feasibility remains to be checked; that
takes one sweep per resource in the order of tokens (O(n log n)). The server's own log is never asked: a server that
releases without looking at tokens agrees with itself.

A history is a list of Acquire, Release, Look, RefChange and RefLook. Times are of one clock, `invoke` before the first
byte of the first try was sent, `ret` after the last byte of the answer that settled it. Whoever records tries again until
each call is settled, with the same request id, so that nothing is left open; what is open all the same has never ended.
What a requester asked for and left before it heard of a grant (a cancel) may have been a hold that nobody saw: it is not
judged, which can only make the judgement milder.
"""
import bisect
import collections
import dataclasses
from typing import FrozenSet, Optional

NEVER = float("inf")
# What ends the work for all when it succeeds, and whose success makes the others' outcomes void (semantics.md, 4).
SHARED = {"pull", "delete"}
VOIDS = {"pull", "update", "delete"}


@dataclasses.dataclass
class Acquire:
    """A requester asked for a lane until it had it, was told to skip or refused, or left again."""
    resource: str
    operation: str
    invoke: float
    ret: float = NEVER  # never: it has not ended
    token: Optional[int] = None
    outcome: str = "acquired"  # or skipped, refused, cancelled
    queued: Optional[float] = None  # since when it has surely been in the queue
    exclusive: bool = False  # scope "resource"
    who: tuple = ()  # node and request id; (): not told
    lease: float = NEVER  # seconds that the hold surely lives after a proof of life
    alive: float = 0  # when the last one was sent: a renewal, a call on the bond's connection
    dereference: bool = False

    @property
    def lane(self):
        return f"{self.operation} {self.resource}"


@dataclasses.dataclass
class Release:
    """The holder of a token gave it back. `refused` is the error's code if the server did not take it; `tries` says
    how often it was sent, because the answer to an earlier one may have been lost."""
    resource: str
    operation: str
    token: int
    invoke: float
    ret: float = NEVER
    success: bool = True
    refused: str = ""
    tries: int = 1
    node: str = ""


@dataclasses.dataclass
class Look:
    """Somebody read who holds the lane. None: nobody."""
    resource: str
    operation: str
    invoke: float
    ret: float
    token: Optional[int]


@dataclasses.dataclass
class RefChange:
    """A node was added to, or taken out of, those that use a resource, and the server said that it is so now."""
    resource: str
    node: str
    added: bool
    invoke: float
    ret: float = NEVER


@dataclasses.dataclass
class RefLook:
    """Somebody read which nodes use the resource."""
    resource: str
    invoke: float
    ret: float
    nodes: FrozenSet[str]


def check(history):
    """What is wrong, as sentences; an empty list: nothing."""
    acquires = [entry for entry in history if isinstance(entry, Acquire)]
    problems = check_outcomes(acquires) + check_tokens([a for a in acquires if a.token is not None])
    resources = collections.defaultdict(list)
    for entry in history:
        resources[entry.resource].append(entry)
    for name, entries in sorted(resources.items()):
        problems += [f"{name}: {problem}" for problem in Resource(entries).check()]
    return problems


def check_outcomes(acquires):
    """Everybody who asked was told how it ended, and whatever it was told, however often, was the same."""
    problems = [f"{a.lane}: {a.who} asked at {a.invoke} and was never told how it ended"
                for a in acquires if a.ret == NEVER]
    told = collections.defaultdict(set)
    for a in acquires:
        if a.who:
            told[a.lane, a.who].add((a.outcome, a.token))
    return problems + [f"{lane}: {who} was told two outcomes: {sorted(map(str, outcomes))}"
                       for (lane, who), outcomes in told.items() if len(outcomes) > 1]


def check_tokens(grants):
    """Over all lanes: no token twice, and a later grant has a greater one, whatever has crashed between the two."""
    problems, holders = [], collections.defaultdict(set)
    for grant in grants:
        holders[grant.token].add((grant.lane, grant.who or id(grant)))
    for token, owners in holders.items():
        if len(owners) > 1:
            problems.append(f"token {token} was given {len(owners)} times")
    first = {}  # one that asked again was told the same token later, which says nothing
    for grant in grants:
        if grant.token not in first or grant.ret < first[grant.token].ret:
            first[grant.token] = grant
    by_return = sorted(first.values(), key=lambda a: a.ret)
    returned, greatest = 0, 0
    for grant in sorted(first.values(), key=lambda a: a.invoke):
        while returned < len(by_return) and by_return[returned].ret < grant.invoke:
            greatest = max(greatest, by_return[returned].token)
            returned += 1
        if grant.token <= greatest:
            problems.append(f"{grant.lane}: token {grant.token} was given after {greatest}, which is not smaller")
    return problems


class Intervals:
    """Calls as (invoke, ret), each of which took effect somewhere in between. Questions take O(log n)."""

    def __init__(self, calls):
        self.by_ret, self.latest_invokes = self._running(sorted((ret, invoke) for invoke, ret in calls))
        self.by_invoke, self.latest_rets = self._running(sorted(calls))

    @staticmethod
    def _running(pairs):
        """The first numbers, and the greatest of the second ones up to there."""
        firsts, greatest = [], []
        for first, second in pairs:
            firsts.append(first)
            greatest.append(max(second, greatest[-1]) if greatest else second)
        return firsts, greatest

    def latest_over_before(self, time):
        """The latest invoke of those that had returned before."""
        at = bisect.bisect_left(self.by_ret, time)
        return self.latest_invokes[at - 1] if at else None

    def may_come_between(self, begin, end):
        """Whether one of them may have taken effect from begin to end."""
        at = bisect.bisect_right(self.by_invoke, end)
        return at > 0 and self.latest_rets[at - 1] >= begin


class Resource:
    """The part of a history that is about one resource: all its lanes, because some holds exclude all others (S7)."""

    def __init__(self, entries):
        of = lambda kind: [entry for entry in entries if isinstance(entry, kind)]
        acquires = of(Acquire)
        first = {}  # of what was told several times
        for a in sorted(acquires, key=lambda a: a.ret):
            if a.token is not None:
                first.setdefault(a.token, a)
        self.grants = [first[token] for token in sorted(first)]
        self.untold = [a for a in acquires if a.token is None]
        self.releases = {release.token: release for release in of(Release)}
        self.looks, self.changes, self.ref_looks = of(Look), of(RefChange), of(RefLook)
        self.by_operation = collections.defaultdict(list)
        for release in self.releases.values():
            self.by_operation[release.operation].append(release)
        self.surely_until = {}  # token -> when the hold may have ended, by sweep()

    def check(self):
        return (self.sweep() + self.check_order() + self.check_releases() + self.check_looks() + self.check_done_once()
                + References(self).check())

    def took_effect(self, release):
        """Also a refused one may have, if its first answer was lost: the server remembers the lane's last release only
        (S15), so that a later one which came between makes it answer the repetition with a refusal."""
        if not release.refused:
            return True
        return release.tries > 1 and any(later.token > release.token and later.invoke < release.ret
                                         for later in self.by_operation[release.operation])

    def earliest_end(self, grant, start):
        """By its release, if that was taken; else by its lease or its bond, if it has one."""
        release = self.releases.get(grant.token)
        by_lease = max(start, grant.alive) + grant.lease
        if release is None or not self.took_effect(release):
            return by_lease
        # One that was refused may have been taken by an earlier try, or come after the lease's end.
        return max(start, min(release.invoke, by_lease) if release.refused else release.invoke)

    def sweep(self):
        """Each grant at its earliest, each end at its earliest: if that does not fit, nothing does. Grants that do not
        conflict do not wait for each other's ends, but are made in the order of their tokens."""
        problems, now = [], 0
        ends = collections.defaultdict(float)  # operation, or None for all -> when the holds that exclude it have ended
        whole = 0.0  # the same for those of the whole resource
        for grant in self.grants:
            free = max(whole, max(ends.values(), default=0.0) if grant.exclusive else ends[grant.operation])
            start = max(now, free, grant.invoke)
            if start > grant.ret:
                why = "two holders" if free > grant.ret else "order of tokens"
                problems.append(f"{why}: token {grant.token} ({grant.operation}) was given at {grant.ret} at the latest, "
                                f"and could not before {start}")
                start = grant.ret  # so that one fault is told once
            now = start
            end = self.surely_until[grant.token] = self.earliest_end(grant, start)
            ends[grant.operation] = max(ends[grant.operation], end)
            if grant.exclusive:
                whole = max(whole, end)
        return problems

    def check_order(self):
        """First in, first out: nobody who came after another was told its place, and was in its way, is granted before
        it, in whatever lane."""
        problems, latest = [], collections.defaultdict(lambda: (0.0, None))
        for grant in self.grants:
            keys = ["any"] if grant.exclusive else [grant.operation, "whole"]
            came, who = max((latest[key] for key in keys), key=lambda pair: pair[0])
            if grant.queued is not None and came > grant.queued:
                problems.append(f"order: token {who} overtook {grant.token}, which had waited before it came")
            for key in ["any", grant.operation] + (["whole"] if grant.exclusive else []):
                latest[key] = max(latest[key], (grant.invoke, grant.token), key=lambda pair: pair[0])
        return problems

    def check_releases(self):
        problems, given = [], {grant.token for grant in self.grants}
        for release in self.releases.values():
            if release.token not in given:
                problems.append(f"token {release.token} was released and never given")
            elif not self.took_effect(release) and self.surely_until[release.token] > release.ret:
                problems.append(f"lost: the release of token {release.token} was refused ({release.refused}), but "
                                "nothing else had ended it")
        return problems

    def check_looks(self):
        """What was read in between must be possible: an acknowledged hold is there until its release is sent or its
        time is over, and an acknowledged release is for ever."""
        problems, lanes = [], collections.defaultdict(list)
        given = {grant.token for grant in self.grants}
        for grant in self.grants:
            lanes[grant.operation].append(grant)
        returns = {lane: [grant.ret for grant in grants] for lane, grants in lanes.items()}
        # Returns are in the order of tokens but for calls that overlap; of those the last may be missed, and no harm.
        for look in self.looks:
            grants = lanes[look.operation]
            release = self.releases.get(look.token)
            if look.token is not None and look.token not in given:
                if not self.may_be_hidden(look):
                    problems.append(f"token {look.token} was seen and never given")
            elif release is not None and not release.refused and release.ret < look.invoke:
                problems.append(f"undone: token {look.token} was seen after its release was acknowledged")
            at = bisect.bisect_left(returns.get(look.operation, []), look.invoke) - 1
            if at >= 0 and grants[at].ret < look.invoke:
                held = grants[at].token
                if self.surely_until[held] > look.ret and look.token != held:
                    problems.append(f"lost: token {held} was held, and {look.token or 'nobody'} was seen")
        return problems

    def may_be_hidden(self, look):
        """Whether somebody had asked for the lane who left it without having heard of a grant."""
        return any(a.operation == look.operation and a.outcome == "cancelled" and a.invoke < look.ret
                   for a in self.untold)

    def successes(self, operation):
        return [r for r in self.by_operation[operation] if r.success and self.took_effect(r)]

    def check_done_once(self):
        """A shared success ends the work until something voids it: nobody is granted after it, nobody skips before it."""
        problems = []
        voiding = {operation: self.successes(operation) for operation in VOIDS}
        for operation in SHARED:
            done = sorted(self.successes(operation), key=lambda r: r.ret)
            returns = [r.ret for r in done]
            others = Intervals([(r.invoke, r.ret) for other in VOIDS - {operation} for r in voiding[other]])
            for grant in (g for g in self.grants if g.operation == operation):
                at = bisect.bisect_left(returns, grant.invoke) - 1
                if at >= 0 and not others.may_come_between(done[at].invoke, grant.ret):
                    problems.append(f"done already: token {grant.token} was given after the success of {done[at].token}")
            begun = min([r.invoke for r in done] + [c.invoke for c in self.changes if c.added]
                        + [r.invoke for r in voiding["pull"]], default=NEVER)
            problems += [f"a skip of {operation} was told at {a.ret}, before any success or reference"
                         for a in self.untold if a.operation == operation and a.outcome == "skipped" and a.ret < begun]
        return problems


class References:
    """Which nodes used a resource when: by calls, by pulls, and no longer by deletes (S17, S19)."""

    def __init__(self, resource):
        self.resource = resource
        adds, removals = collections.defaultdict(list), collections.defaultdict(list)
        for change in resource.changes:
            (adds if change.added else removals)[change.node].append((change.invoke, change.ret))
        for release in resource.successes("pull"):
            adds[release.node].append((release.invoke, release.ret))
        for a in resource.untold + resource.grants:
            if a.operation == "pull" and a.outcome == "skipped" and a.who:
                adds[a.who[0]].append((a.invoke, a.ret))
            if a.operation == "delete" and a.dereference and a.who:
                removals[a.who[0]].append((a.invoke, a.ret))
        cleared = [(r.invoke, r.ret) for r in resource.successes("delete")]  # of all nodes
        self.adds = collections.defaultdict(lambda: Intervals([]), {n: Intervals(calls) for n, calls in adds.items()})
        self.removals = {node: Intervals(removals[node] + cleared) for node in adds}

    def surely_there(self, node, begin, end):
        """Whether the node was in the set at every moment from begin to end: an add that was acknowledged before, and
        nothing that could have taken it out since. The one that was sent last is the best witness."""
        added = self.adds[node].latest_over_before(begin)
        return added is not None and not self.removals[node].may_come_between(added, end)

    def surely_gone(self, node, begin, end):
        """The other way round; also if it has never been there."""
        if not self.adds[node].may_come_between(-NEVER, end):
            return True
        removed = self.removals[node].latest_over_before(begin)
        return removed is not None and not self.adds[node].may_come_between(removed, end)

    def check(self):
        problems, nodes = [], set(self.adds)
        changes = sorted((c for c in self.resource.changes if c.added), key=lambda c: c.invoke)
        sent = [change.invoke for change in changes]
        for look in self.resource.ref_looks:
            problems += [f"reference lost: {node} used it, and was not seen at {look.ret}"
                         for node in sorted(nodes - look.nodes) if self.surely_there(node, look.invoke, look.ret)]
            problems += [f"reference undone: {node} did not use it, and was seen at {look.ret}"
                         for node in sorted(look.nodes) if self.surely_gone(node, look.invoke, look.ret)]
        for grant in (g for g in self.resource.grants if g.operation == "delete"):
            problems += [f"token {grant.token} was given for a delete although {node} used it"
                         for node in sorted(nodes)
                         if not (grant.dereference and grant.who and node == grant.who[0])
                         and self.surely_there(node, grant.invoke, grant.ret)]
            end = self.resource.surely_until[grant.token]
            problems += [f"{change.node} was added while token {grant.token} was held for a delete"
                         for change in changes[bisect.bisect_right(sent, grant.ret):bisect.bisect_left(sent, end)]
                         if change.ret < end]
        return problems
