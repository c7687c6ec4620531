"""Clients that lock, wait and unlock all the time, never give up, and write down what they saw, for checker.py.

Each call is tried again with the same request id until it is answered, whatever happens to the server meanwhile; that
is what a client of ours does, and what makes every call of the history settled.
"""
import random
import threading
import time

from checker import Acquire, Look, Release
from client import BrokenAnswer, Client

MUTEXES = [f"mutex-{i}" for i in range(3)]


class Workload:
    """Some threads, one history. layers() says which shared lanes there were."""

    def __init__(self, server, clients, seed):
        self.server = server
        self.history = []  # appended to by all: an append is atomic in CPython
        self.stopping = threading.Event()
        self.failures = []
        self.layer = 0  # the shared lane in use now; each is done once
        self.threads = [threading.Thread(target=self._run, args=(f"node-{i}", seed * 1000 + i), daemon=True)
                        for i in range(clients)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def finish(self, patience):
        """Lets everybody end what it does. Returns the history."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(patience)
            if thread.is_alive():
                raise AssertionError("a client never got its answer")
        if self.failures:
            raise self.failures[0]
        return self.history

    def shared(self):
        return {f"pull layer-{i}" for i in range(self.layer + 1)}

    def look(self, lanes=None):
        """Reads who holds each lane now, as somebody who does not take part."""
        caller = Caller(self.server)
        for kind, resource in lanes or [("own", name) for name in MUTEXES] + [("pull", f"layer-{self.layer}")]:
            invoke = time.monotonic()
            status = caller.get("/lock/status", type=kind, resource_id=resource)
            token = status.body.get("holder", {}).get("token")
            self.history.append(Look(f"{kind} {resource}", invoke, time.monotonic(), token))
        caller.close()

    def _run(self, node, seed):
        try:
            one = OneClient(self, node, random.Random(seed))
            while not self.stopping.is_set():
                one.step()
            one.caller.close()
        except Exception as failure:  # told by finish(): a thread's exception is not seen otherwise
            self.failures.append(failure)


class Caller:
    """Calls that are tried again until they are answered."""

    def __init__(self, server):
        self.server = server
        self.client = None
        self.tries = 0  # that the last call took

    def post(self, path, **fields):
        return self._settle(lambda client: client.post(path, **fields))

    def get(self, path, **query):
        return self._settle(lambda client: client.get(path, **query))

    def _settle(self, call):
        end = time.monotonic() + 120
        self.tries = 0
        while True:
            self.tries += 1
            try:
                if self.client is None:
                    self.client = Client(self.server.host, self.server.port, timeout=30)
                answer = call(self.client)
                if answer.status != 503:
                    return answer
            except (OSError, BrokenAnswer):
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
        self.node = node
        self.chance = chance
        self.caller = Caller(workload.server)
        self.requests = 0

    def step(self):
        """One lock, from asking to giving it back."""
        if self.chance.random() < 0.6:
            kind, resource = "own", self.chance.choice(MUTEXES)
        else:
            kind, resource = "pull", f"layer-{self.workload.layer}"
        self.requests += 1
        lane = {"type": kind, "resource_id": resource, "node_id": self.node, "request_id": str(self.requests)}
        token = self.acquire(lane)
        if token is not None:
            if self.chance.random() < 0.3:
                self.look(lane)
            self.release(lane, token)

    def acquire(self, lane):
        invoke, queued = time.monotonic(), None
        answer = self.caller.post("/lock", **lane)
        while answer.status == 200 and answer["state"] == "queued":
            queued = queued or time.monotonic()
            answer = self.caller.post("/lock", **lane, wait_ms=self.chance.choice([10, 200, 60_000]))
        if answer.status != 200 or answer["state"] not in ("acquired", "skipped"):
            raise AssertionError(f"lock {lane}: {answer}")
        token = answer.body.get("token")
        self.workload.history.append(Acquire(name(lane), invoke, time.monotonic(), token, queued))
        return token

    def look(self, lane):
        """As its holder, who must see itself."""
        invoke = time.monotonic()
        status = self.caller.get("/lock/status", **lane)
        token = status["token"] if status["acquired"] else status.body.get("holder", {}).get("token")
        self.workload.history.append(Look(name(lane), invoke, time.monotonic(), token))

    def release(self, lane, token):
        release = Release(name(lane), token, time.monotonic(), success=self.chance.random() < 0.2)
        answer = self.caller.post("/unlock", **lane, token=token, success=release.success,
                                  error="" if release.success else "tried in vain")
        release.ret, release.tries = time.monotonic(), self.caller.tries
        if answer.status != 200:
            release.refused = answer.body.get("code", str(answer))
        if release.success and lane["type"] == "pull":
            self.workload.layer = max(self.workload.layer, int(lane["resource_id"].split("-")[1]) + 1)
        self.workload.history.append(release)


def name(lane):
    return f"{lane['type']} {lane['resource_id']}"
