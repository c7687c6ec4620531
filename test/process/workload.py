"""Clients that lock, wait and unlock all the time, never give up, and write down what they saw, for checker.py.

Each call is tried again with the same request id until it is answered, whatever happens to the server meanwhile; that
is what a client of ours does, and what makes every call of the history settled. What they do is of every kind: both
scopes, leases that are renewed or run out, bonds that break, long polls, cancels, batches, references, deletes that
dereference; the server must be started with FLAGS.
"""
import collections
import random
import threading
import time

from checker import NEVER, Acquire, Look, RefChange, RefLook, Release
from client import BrokenAnswer, Client

GRACE = 3.0  # of the server, for broken bonds
FLAGS = ("--max-hold", "0", "--bond-grace", f"{GRACE:.0f}s")
# How much earlier than by the clients' clocks something may end: the server may have looked at its clock before a request
# came, if it had much to do at once.
TOLERANCE = 0.5
RESOURCES = [f"mixed-{i}" for i in range(4)]
FRAGILE = [f"fragile-{i}" for i in range(2)]  # where holders vanish, so that the others need not always wait for that
BATCHED = [f"batched-{i}" for i in range(6)]
OPERATIONS = ("own", "own", "pull", "update", "delete")


class Workload:
    """Some threads, one history, and how often each kind of thing was done."""

    def __init__(self, server, clients, seed):
        self.server = server
        self.history = []  # appended to by all: an append is atomic in CPython
        self.done = collections.Counter()
        self.stopping = threading.Event()
        self.failures = []
        self.clients = [OneClient(self, f"node-{i}", random.Random(seed * 1000 + i)) for i in range(clients)]
        self.threads = [threading.Thread(target=self._run, args=(client,), daemon=True) for client in self.clients]

    def start(self):
        for thread in self.threads:
            thread.start()

    def answered(self):
        return sum(client.caller.answered for client in self.clients)

    def finish(self, patience):
        """Lets everybody end what it does. Returns the history."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(patience)
            if thread.is_alive():
                raise AssertionError("a client never got its answer")
        if self.failures:
            raise self.failures[0]
        for client in self.clients:
            self.done.update(client.done)
        return self.history

    def look(self):
        """Reads who holds each lane and who uses what, as somebody who does not take part."""
        caller = Caller(self.server)
        for resource in RESOURCES + FRAGILE:
            for operation in sorted(set(OPERATIONS)):
                invoke = time.monotonic()
                status = caller.get("/lock/status", type=operation, resource_id=resource)
                token = status.body.get("holder", {}).get("token")
                self.history.append(Look(resource, operation, invoke, time.monotonic(), token))
            look_at_references(caller, resource, self.history)
        caller.close()

    def _run(self, client):
        try:
            while not self.stopping.is_set():
                client.step()
            client.caller.close()
        except Exception as failure:  # told by finish(): a thread's exception is not seen otherwise
            self.failures.append(failure)


def look_at_references(caller, resource, history):
    invoke = time.monotonic()
    answer = caller.get("/refs", resource_id=resource)
    history.append(RefLook(resource, invoke, time.monotonic(), frozenset(answer["nodes"])))


class Caller:
    """Calls that are tried again until they are answered."""

    def __init__(self, server):
        self.server = server
        self.client = None
        self.tries = 0  # that the last call took
        self.invoke = 0.0  # when the last try of it began
        self.answered = 0

    def post(self, path, **fields):
        return self._settle(lambda client: client.post(path, **fields))

    def get(self, path, **query):
        return self._settle(lambda client: client.get(path, **query))

    def post_once(self, path, **fields):
        """None: it broke, and nobody knows what came of it."""
        try:
            return self._try(lambda client: client.post(path, **fields))
        except (OSError, BrokenAnswer):
            self.close()
            return None

    def _look_elsewhere(self, answer=None):
        """Of several servers another one may lead now (replicas.py)."""
        if hasattr(self.server, "look_elsewhere"):
            self.server.look_elsewhere(answer)

    def _try(self, call):
        self.invoke = time.monotonic()
        if self.client is None:
            self.client = Client(self.server.host, self.server.port, timeout=getattr(self.server, "timeout", 90))
        answer = call(self.client)
        if answer.status in (307, 503):
            self._look_elsewhere(answer)
            raise BrokenAnswer("not now, or not here")
        self.answered += 1
        return answer

    def _settle(self, call):
        end = time.monotonic() + 120
        self.tries = 0
        while True:
            self.tries += 1
            try:
                return self._try(call)
            except OSError:
                self._look_elsewhere()
            except BrokenAnswer:
                pass
            self.close()
            if time.monotonic() > end:
                raise AssertionError("no answer for two minutes")
            time.sleep(0.005)

    def close(self):
        if self.client is not None:
            self.client.close()
        self.client = None


class OneClient:
    def __init__(self, workload, node, chance):
        self.workload = workload
        self.history = workload.history
        self.node = node
        self.chance = chance
        self.caller = Caller(workload.server)
        self.requests = 0
        self.done = collections.Counter()

    def step(self):
        kind = self.chance.choices(("hold", "cancel", "batch", "references", "abandon"), (700, 80, 80, 130, 10))[0]
        self.done[kind] += 1
        getattr(self, kind)()

    def new_lane(self, resources=None):
        """What it asks for, as fields of the request, and the entry of the history."""
        self.requests += 1
        operation, resource = self.chance.choice(OPERATIONS), self.chance.choice(resources or RESOURCES)
        lane = {"type": operation, "resource_id": resource, "node_id": self.node, "request_id": str(self.requests)}
        entry = Acquire(resource, operation, time.monotonic(), who=(self.node, lane["request_id"]))
        more = {}
        if self.chance.random() < 0.25:
            more["scope"], entry.exclusive = "resource", True
        if operation == "delete" and self.chance.random() < 0.6:
            more["dereference"] = entry.dereference = True
        return lane, more, entry

    def hold(self, keep_by=None):
        """One lock, from asking to giving it back."""
        lane, more, entry = self.new_lane()
        keep_by = keep_by or self.chance.choices(("", "lease", "bond"), (60, 25, 15))[0]
        if keep_by == "lease":
            seconds = self.chance.choice((1.5, 3600))
            more["lease_ms"], entry.lease = int(seconds * 1000), seconds - TOLERANCE
        elif keep_by == "bond":
            more["monitor"], entry.lease = True, GRACE - TOLERANCE
        self.acquire(lane, more, entry)
        if entry.token is None:
            return None
        bond = self.caller.client
        entry.alive = self.caller.invoke
        if self.chance.random() < 0.3:
            self.look(lane)
        if self.chance.random() < 0.2:
            self.ask_again(lane, more, entry)
        if keep_by == "lease" and self.chance.random() < 0.5:
            self.renew(lane, entry)
        if keep_by == "bond" and bond is self.caller.client:
            entry.alive = self.caller.invoke
        return lane, entry, self.release(lane, entry)

    def acquire(self, lane, more, entry):
        self.history.append(entry)
        answer = self.caller.post("/lock", **lane, **more)
        while answer.status == 200 and answer["state"] == "queued":
            entry.queued = entry.queued or time.monotonic()
            asked = time.monotonic()
            answer = self.caller.post_once("/lock", **lane, **more, wait_ms=self.chance.choice([10, 200, 60_000]))
            if answer is None:  # the server has gone, and comes back; those who are away for too long lose their place
                # Behind a cut network nobody tells that it has gone; meanwhile another may lead, and miss the waiter.
                broken = asked if getattr(self.workload.server, "may_be_cut", False) else time.monotonic()
                answer = self.caller.post("/lock", **lane, **more, wait_ms=1)  # a bond again, for that long
                if time.monotonic() - broken > GRACE - TOLERANCE:
                    entry.queued = None
        self.settle(entry, answer)

    def settle(self, entry, answer):
        """How it ended."""
        state = answer.body.get("state")
        if (answer.status, state) == (200, "acquired"):
            entry.token = answer["token"]
        elif (answer.status, state) == (200, "skipped"):
            entry.outcome = "skipped"
        elif answer.status == 403 and answer.body.get("code") in ("referenced", "failed"):
            entry.outcome = "refused"
        else:
            raise AssertionError(f"lock {entry}: {answer}")
        self.done[entry.outcome] += 1
        entry.ret = time.monotonic()

    def ask_again(self, lane, more, entry):
        """A holder is told the same token, and its lease begins anew (S2); unless it has run out."""
        before = time.monotonic()
        if entry.lease < 3600 - 1:
            return  # it may have, and then this would be another hold
        again = Acquire(entry.resource, entry.operation, before, who=entry.who, exclusive=entry.exclusive,
                        lease=entry.lease, dereference=entry.dereference)
        self.history.append(again)
        self.settle(again, self.caller.post("/lock", **lane, **more))
        entry.alive = max(entry.alive, self.caller.invoke)

    def renew(self, lane, entry):
        answer = self.caller.post("/renew", **lane, token=entry.token)
        if answer.status == 200:
            entry.alive = max(entry.alive, self.caller.invoke)

    def look(self, lane):
        """As its holder, who must see itself."""
        invoke = time.monotonic()
        status = self.caller.get("/lock/status", **lane)
        token = status["token"] if status["acquired"] else status.body.get("holder", {}).get("token")
        self.history.append(Look(lane["resource_id"], lane["type"], invoke, time.monotonic(), token))

    def release(self, lane, entry):
        release = Release(entry.resource, entry.operation, entry.token, time.monotonic(), node=self.node,
                          success=self.chance.random() < 0.4)
        self.history.append(release)
        answer = self.caller.post("/unlock", **lane, token=entry.token, success=release.success,
                                  error="" if release.success else "tried in vain")
        release.tries = self.caller.tries
        if answer.status != 200:
            release.refused = answer.body.get("code", str(answer))
            self.done["ended before its release"] += 1
        release.ret = time.monotonic()
        return release

    def abandon(self):
        """A holder that is not heard of again, or too late: its lease or its bond must end it, or nobody goes on."""
        lane, more, entry = self.new_lane(FRAGILE)
        how = self.chance.choice(("vanishes", "hangs up", "is late"))
        more.update({"monitor": True} if how == "hangs up" else {"lease_ms": 1000})
        entry.lease = (GRACE if how == "hangs up" else 1.0) - TOLERANCE
        self.acquire(lane, more, entry)
        if entry.token is None:
            return
        self.done[how] += 1
        entry.alive = self.caller.invoke
        if how == "hangs up":  # if its connection has not broken before, with a server that was killed since it answered
            self.caller.close()
        if how == "is late":
            time.sleep(self.chance.uniform(0, 2))  # not a wait for something: before or after its end
            self.release(lane, entry)

    def cancel(self):
        """Asks, and leaves again if it has to wait."""
        lane, more, entry = self.new_lane()
        self.history.append(entry)
        answer = self.caller.post("/lock", **lane, **more)
        if answer.body.get("state") == "queued":
            entry.outcome = "cancelled"
            cancelled = self.caller.post("/cancel", **lane)
            entry.ret = time.monotonic()
            # Where success is shared its wait may have ended before. A mutex has it waiting, or granted and not claimed.
            if lane["type"] == "own" and not cancelled["cancelled"] and self.caller.tries == 1:
                raise AssertionError(f"{entry} was queued, asked no more, and could not be cancelled: {cancelled}")
            return
        self.settle(entry, answer)
        if entry.token is not None:
            self.release(lane, entry)

    def batch(self):
        """Several lanes in one request; those that are busy are left at once."""
        self.requests += 1
        names = self.chance.sample(BATCHED, 3)
        lanes = [{"type": "own", "resource_id": name, "node_id": self.node, "request_id": str(self.requests)}
                 for name in names]
        entries = [Acquire(name, "own", time.monotonic(), who=(self.node, str(self.requests))) for name in names]
        self.history.extend(entries)
        answers = self.caller.post("/batch", requests=[{"call": "lock", **lane} for lane in lanes])["answers"]
        ends = []
        for lane, entry, answer in zip(lanes, entries, answers):
            if answer["state"] == "acquired":
                entry.token, entry.ret = answer["token"], time.monotonic()
                self.done["acquired"] += 1
                release = Release(entry.resource, "own", entry.token, time.monotonic(), node=self.node)
                self.history.append(release)
                ends.append(({"call": "unlock", **lane, "token": entry.token}, release))
            else:
                entry.outcome = "cancelled"
                ends.append(({"call": "cancel", **lane}, entry))
        answers = self.caller.post("/batch", requests=[call for call, _ in ends])["answers"]
        for (call, entry), answer in zip(ends, answers):
            if call["call"] == "unlock":
                entry.tries = self.caller.tries
                entry.refused = "" if answer["status"] == 200 else answer.get("code", "?")
            entry.ret = time.monotonic()

    def references(self):
        resource = self.chance.choice(RESOURCES)
        if self.chance.random() < 0.4:
            look_at_references(self.caller, resource, self.history)
            return
        add = self.chance.random() < 0.5
        change = RefChange(resource, self.node, add, time.monotonic())
        answer = self.caller.post("/refs/add" if add else "/refs/release", resource_id=resource, node_id=self.node)
        if answer.status == 403 and self.caller.tries == 1:
            return  # busy with a delete: nothing has changed
        # After a lost answer a refusal leaves it open what came of it.
        change.ret = time.monotonic() if answer.status == 200 else NEVER
        self.history.append(change)
