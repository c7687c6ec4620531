"""Requests to real servers that provoke every answer which openapi.yaml describes, each exchange recorded.

openapi_test.py judges what is recorded here. A new status, code or field in the API needs a scenario here; the judge
says which one is missing.
"""
import hashlib
import json
import os
import signal
import socket
import urllib.parse

import harness
from client import Client, exchange, parse_answers, read_all
from harness import Server, wait_until

LANE = {"type": "pull", "resource_id": "sha256:9f86", "node_id": "node-1"}
# A body, or a query, with which each call is understood.
BODIES = {
    "/lock": LANE, "/unlock": LANE, "/renew": {**LANE, "token": 1}, "/cancel": LANE,
    "/batch": {"requests": [{"call": "cancel", **LANE}]}, "/lock/status": LANE,
    "/refs/add": {"resource_id": "r", "node_id": "n"}, "/refs/release": {"resource_id": "r", "node_id": "n"},
    "/refs/release_node": {"node_id": "n"}, "/admin/break": {"type": "pull", "resource_id": "r", "reason": "why"},
    "/admin/forget": {"type": "pull", "resource_id": "r"},
}
QUERIES = {"/lock/status": LANE, "/lock/subscribe": LANE, "/subscribe": LANE, "/refs": {"resource_id": "r"}}
PAGES = ("/healthz", "/readyz", "/metrics", "/version", "/summary", "/servers", "/openapi.yaml", "/page/{file}", "/")
# A path of the description that stands for several, and one of them.
TARGETS = {"/page/{file}": "/page/page.css"}
STREAMS = ("/lock/subscribe", "/subscribe", "/events")


class Exchange:
    """One request and its answer, or what an event stream has sent."""

    def __init__(self, method, path, status, headers, text, request=None, events=None):
        self.method, self.path, self.status = method, path, status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.text = text
        self.request = request  # the JSON that was sent, if any
        self.events = events

    def __repr__(self):
        return f"{self.method} {self.path} {self.request or ''} -> {self.status} {self.text[:500]}"


class Recorder:
    """Calls a server and keeps what was said."""

    def __init__(self):
        self.exchanges = []

    def keep(self, *what, **more):
        self.exchanges.append(Exchange(*what, **more))
        return self.exchanges[-1]

    def call(self, client, method, path, body=None, **query):
        target = TARGETS.get(path, path) + ("?" + urllib.parse.urlencode(query) if query else "")
        answer = client.call(method, target, body)
        self.keep(method, path, answer.status, answer.headers, answer.text, request=body)
        return answer

    def post(self, client, path, **fields):
        return self.call(client, "POST", path, fields)

    def poll(self, server, client, **fields):
        """A long poll that is known to wait; answered(poll) keeps its answer."""
        poll = server.poll(fields.pop("resource_id"), fields.pop("node_id"), **fields)
        wait_until(lambda: client.status(poll.resource_id, type=fields.get("type", "pull"))["queue"], "a waiter")
        return poll

    def answered(self, poll):
        answer = poll.answer()
        self.keep("POST", "/lock", answer.status, answer.headers, answer.text)
        return answer

    def raw(self, server, method, path, data):
        """Bytes as they are; the first answer is kept."""
        answers = parse_answers(exchange((server.host, server.port), data))
        if answers:
            status, headers, body = answers[0]
            self.keep(method, path, status, headers, body.decode())

    def stream(self, server, path, until, last_event_id=None, **query):
        """Opens a stream. The result reads it until an event of one of these kinds, and keeps what came."""
        stream = server.stream(path, last_event_id, **query)
        head = dict(line.split(": ", 1) for line in stream.head[1:])

        def finish():
            events = []
            while not events or events[-1]["event"] not in until:
                event = stream.next()
                assert event is not None, f"{path} ended before {until}"
                events.append(event["data"])
            self.keep("GET", path, stream.status, head, "", events=events)
            stream.close()
        return finish


def record(operations):
    """All of it. `operations` are the description's, so that what is true of all of them needs no list here."""
    recorder = Recorder()
    for scenario in (holds_and_queues, failures_and_refusals, kept_successes, references, batches, streams,
                     long_lists, pages, malformed, too_large, of_other_settings, http_errors, unknown_paths):
        server = Server(store="memory").start()
        try:
            scenario(recorder, server, server.client(), operations)
        finally:
            server.remove()
    who_asks(recorder, operations)
    too_many_operations(recorder)
    too_many_references(recorder)
    too_many_results(recorder)
    stopping(recorder, operations)
    stuck_disk(recorder, operations)
    return recorder.exchanges


def holds_and_queues(recorder, server, client, _):
    post, call = recorder.post, recorder.call
    token = post(client, "/lock", **LANE, request_id="job", lease_ms=3_600_000, info="i", monitor=False,
                 scope="operation", wait_ms=0, dereference=False)["token"]
    post(client, "/renew", **LANE, request_id="job", token=token, done=1, total=2, lease_ms=3_000_000)
    other = {**LANE, "node_id": "node-2", "request_id": "other", "info": "waits"}
    post(client, "/lock", **other)
    post(client, "/lock", **{**LANE, "type": "delete", "scope": "resource"})  # its holder has another type
    for method in "GET", "POST":
        for asking in ({}, {"node_id": "node-2", "request_id": "other"}, {"node_id": "node-1", "request_id": "job"}):
            lane = {"type": "pull", "resource_id": LANE["resource_id"], **asking}
            if method == "POST":
                post(client, "/lock/status", **lane)
            else:
                call(client, "GET", "/lock/status", **lane)
    for query in {}, {"state": "held", "prefix": "sha", "type": "pull"}, {"limit": 1}:
        page = call(client, "GET", "/locks", **query)
    call(client, "GET", "/locks", cursor=page["next_cursor"], limit=1)
    post(client, "/unlock", **LANE, request_id="job", token=token, error="connection reset")
    post(client, "/unlock", **LANE, request_id="job", token=token)  # again
    granted = post(client, "/lock", **other)
    post(client, "/renew", **{**LANE, "node_id": "node-2", "request_id": "other"}, token=granted["token"])
    for path in "/unlock", "/renew":
        post(client, path, **LANE, token=granted["token"])  # not_holder
        post(client, path, **{**LANE, "node_id": "node-2", "request_id": "other"}, token=1)  # stale_token
        post(client, path, **{**LANE, "resource_id": "free"}, token=1)  # not_held
    post(client, "/unlock", **{**LANE, "node_id": "node-2", "request_id": "other"}, success=True)
    call(client, "GET", "/lock/status", type="pull", resource_id=LANE["resource_id"])
    post(client, "/lock", **{**LANE, "node_id": "late"})  # skipped
    poll_cancelled(recorder, server, client)
    call(client, "GET", "/locks", state="waiting")
    post(client, "/lock", type="own", resource_id="stuck", node_id="n")
    post(client, "/admin/break", type="own", resource_id="stuck", reason="switched off", token=1)  # stale_token
    for _ in range(2):  # broken, then not_held
        post(client, "/admin/break", type="own", resource_id="stuck", reason="switched off")


def poll_cancelled(recorder, server, client):
    for node in "holder", "waiter":
        if node == "waiter":
            poll = recorder.poll(server, client, resource_id="cancelled", node_id=node, type="update")
        else:
            client.lock("cancelled", node, type="update")
    for _ in range(2):
        recorder.post(client, "/cancel", type="update", resource_id="cancelled", node_id="waiter")
    recorder.answered(poll)


def failures_and_refusals(recorder, server, client, _):
    lane = {"type": "update", "resource_id": "bad"}
    recorder.post(client, "/lock", **lane, node_id="a")
    poll = recorder.poll(server, client, **lane, node_id="b")
    recorder.post(client, "/unlock", **lane, node_id="a", success=False, error="not found", permanent=True)
    recorder.answered(poll)
    recorder.post(client, "/lock", **lane, node_id="c")
    recorder.call(client, "GET", "/lock/status", **lane, node_id="b")


def kept_successes(recorder, server, client, _):
    lane = {"type": "once", "resource_id": "seen-kept"}
    events = recorder.stream(server, "/events", {"completed"}, prefix="seen-kept")
    client.lock("seen-kept", "a", "once")
    client.lock("seen-kept", "w", "once")
    recorder.post(client, "/unlock", **lane, node_id="a", keep_ms=60_000, result="made")
    events()
    recorder.call(client, "GET", "/lock/status", **lane, node_id="w")
    recorder.post(client, "/lock", **lane, node_id="b")
    recorder.call(client, "GET", "/lock/status", **lane)
    for _ in range(2):
        recorder.post(client, "/admin/forget", **lane)


def references(recorder, server, client, _):
    post = recorder.post
    for node in "a", "b", "a":
        post(client, "/refs/add", resource_id="used", node_id=node)
    recorder.call(client, "GET", "/refs", resource_id="used")
    post(client, "/lock", type="delete", resource_id="used", node_id="c")  # referenced
    post(client, "/lock", type="delete", resource_id="used", node_id="a", dereference=True)  # skipped, names b
    recorder.call(client, "GET", "/lock/status", type="pull", resource_id="used")
    post(client, "/refs/release", resource_id="used", node_id="b")
    for _ in range(2):
        post(client, "/refs/release_node", node_id="b")
    post(client, "/refs/add", resource_id="other", node_id="b")
    post(client, "/refs/release_node", node_id="b")
    post(client, "/lock", type="delete", resource_id="used", node_id="c")
    post(client, "/refs/add", resource_id="used", node_id="d")  # busy


def batches(recorder, server, client, _):
    def batch(*requests):
        return recorder.call(client, "POST", "/batch", {"requests": list(requests)})

    client.post("/refs/add", resource_id="x", node_id="y")
    token = batch({"call": "lock", **LANE}, {"call": "lock", **LANE, "node_id": "node-2"},
                  {"call": "lock", "type": "delete", "resource_id": "x", "node_id": "z"})["answers"][0]["token"]
    batch({"call": "renew", **LANE, "token": token, "done": 1}, {"call": "renew", **LANE, "token": 1},
          {"call": "unlock", **LANE, "token": 1}, {"call": "unlock", **LANE, "token": token},
          {"call": "cancel", **LANE})
    deleted = batch({"call": "refs/add", "resource_id": "r", "node_id": "y"}, {"call": "refs/release", "resource_id": "r", "node_id": "y"},
                    {"call": "lock", "type": "delete", "resource_id": "r", "node_id": "z"},
                    {"call": "refs/add", "resource_id": "r", "node_id": "y"})["answers"]
    assert [answer["status"] for answer in deleted] == [200, 200, 200, 403], deleted
    batch({"call": "lock", "node_id": "x"}, 7, {"call": "dance"})
    batch()


def streams(recorder, server, client, _):
    everything = recorder.stream(server, "/events", {"refused"}, prefix="seen")
    lane = {"type": "update", "resource_id": "seen"}
    of_lane = [recorder.stream(server, path, {"completed"}, **lane) for path in ("/lock/subscribe", "/subscribe")]
    token = client.lock("seen", "a", "update", request_id="q")["token"]
    client.lock("seen", "b", "update")
    client.lock("seen", "c", "update")
    client.cancel("seen", "c", "update")
    client.unlock("seen", "a", "update", request_id="q", token=token, error="no")
    client.unlock("seen", "b", "update")
    client.lock("seen-2", "a", lease_ms=100)
    wait_until(lambda: client.status("seen-2")["state"] != "held", "the lease's end")
    client.lock("seen-3", "a")
    client.post("/admin/break", type="pull", resource_id="seen-3", reason="why")
    client.lock("seen-4", "a")
    client.unlock("seen-4", "a", error="never", permanent=True)
    client.lock("seen-5", "a", scope="resource")
    client.lock("seen-5", "b", "delete")
    client.unlock("seen-5", "a")  # a pull adds a reference, so that b's turn comes and it is not allowed
    for finish in [everything, *of_lane]:
        finish()
    recorder.stream(server, "/events", {"reset"}, last_event_id="nonsense")()


def long_lists(recorder, server, client, _):
    """More waiters and references than an answer names."""
    for start in range(0, 1100, 550):
        client.batch(*({"call": "lock", "type": "own", "resource_id": "q", "node_id": f"n{i}"}
                       for i in range(start, start + 550)))
    recorder.call(client, "GET", "/lock/status", type="own", resource_id="q")
    recorder.post(client, "/unlock", type="own", resource_id="q", node_id="n0")
    for i in range(150):
        client.post("/refs/add", resource_id="used", node_id=f"n{i}")
    recorder.post(client, "/refs/add", resource_id="used", node_id="n150")
    recorder.call(client, "GET", "/refs", resource_id="used")
    recorder.post(client, "/lock", type="delete", resource_id="used", node_id="n0")
    recorder.call(client, "GET", "/locks", contains="q", node="n1", sort="queue", state="queued", count=1, names=0)
    recorder.call(client, "GET", "/summary")


def pages(recorder, server, client, operations):
    for path, method in operations:
        if method == "HEAD" or (method, path) in [("GET", page) for page in PAGES]:
            recorder.call(client, method, path, **(QUERIES.get(path, {}) if method == "HEAD" else {}))


def malformed(recorder, server, client, operations):
    for (path, method), operation in operations.items():
        if "400" in operation["responses"]:
            if method == "POST":
                recorder.post(client, path)
            else:
                recorder.call(client, method, path, prefix="\0", type="\0", resource_id="\0")


def too_large(recorder, server, client, operations):
    for (path, method), operation in operations.items():
        if "413" in operation["responses"]:
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n"
            recorder.raw(server, method, path, head.encode())


def who_asks(recorder, operations):
    """401 and 403 from everything that is described with them, and a page that is not ours."""
    path = os.path.join(harness.temporary_directory(), "credentials.toml")
    with open(path, "w", encoding="utf-8") as file:
        for name, role in ("elsewhere", 'client"\nresources = ["elsewhere/"]\n#'), ("reader", "read"):
            digest = hashlib.sha256(name.encode()).hexdigest()
            file.write(f'[[credential]]\nname = "{name}"\nsecret_sha256 = "{digest}"\nrole = "{role}"\n')
    server = Server("--credentials", path, store="memory").start()
    try:
        places = iter(range(1, 250))
        for (where, method), operation in operations.items():
            if "401" not in operation["responses"] or method == "HEAD":
                continue
            body, query = (BODIES[where], {}) if method == "POST" else (None, QUERIES.get(where, {}))
            target = where + ("?" + urllib.parse.urlencode(query) if query else "")
            for headers in {}, {"Authorization": "Bearer elsewhere"}, {"Authorization": "Bearer reader"}:
                if headers and "`forbidden`" not in str(operation["responses"].get("403")):
                    continue
                client = Client(server.host, server.port)
                client.connection.source_address = (f"127.8.8.{next(places)}", 0)  # nobody is slowed down
                answer = client.call(method, target, body, headers)
                if answer.status in (401, 403):
                    recorder.keep(method, where, answer.status, answer.headers, answer.text, request=body)
                client.close()
        page = server.client().call("GET", "/locks", headers={"Origin": "http://evil.example"})
        recorder.keep("GET", "/locks", page.status, page.headers, page.text)
        version = server.client().call("GET", "/version", headers={"Authorization": "Bearer reader"})
        recorder.keep("GET", "/version", version.status, version.headers, version.text)
    finally:
        server.remove()


def of_other_settings(recorder, *_):
    """What only a server with other settings says."""
    server = Server("--references", "client", "--max-streams", "0", "--max-queue", "1", store="memory").start()
    try:
        client = server.client()
        for path in "/refs/add", "/refs/release", "/refs/release_node":
            recorder.post(client, path, **BODIES[path])
        recorder.call(client, "GET", "/refs", resource_id="r")
        for path in STREAMS:
            recorder.call(client, "GET", path, **QUERIES.get(path, {}))
        for node in "holds", "waits", "refused":
            recorder.post(client, "/lock", **{**LANE, "node_id": node})
    finally:
        server.remove()
    server = Server("--allow-multi-node-download", "false", store="memory").start()
    try:
        for node in "a", "b":
            recorder.post(server.client(), "/lock", **{**LANE, "node_id": node})
    finally:
        server.remove()


def too_many_operations(recorder):
    """One name more than the server keeps, all of them in use."""
    server = Server(store="memory").start()
    try:
        client = server.client()
        for start in range(0, 10_000, 1000):
            client.batch(*(_lock_of_its_own(i) for i in range(start, start + 1000)))
        recorder.call(client, "POST", "/batch", {"requests": [_lock_of_its_own(i) for i in range(9990, 10_010)]})
        recorder.post(client, "/lock", type="one-more", resource_id="r", node_id="n")
    finally:
        server.remove()


def too_many_references(recorder):
    server = Server("--max-references", "1", store="memory").start()
    try:
        for node in "a", "b":
            recorder.post(server.client(), "/refs/add", resource_id="r", node_id=node)
    finally:
        server.remove()


def too_many_results(recorder):
    server = Server("--max-result-memory", "1", store="memory").start()
    try:
        client = server.client()
        client.lock("r", "a", "once")
        recorder.post(client, "/unlock", type="once", resource_id="r", node_id="a", result="long")
    finally:
        server.remove()


def _lock_of_its_own(i):
    return {"call": "lock", "type": f"t{i}", "resource_id": "r", "node_id": "n"}


def http_errors(recorder, *_):
    """What any request can meet before it is looked at."""
    get = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    server = Server("--body-timeout", "100ms", store="memory").start()
    try:
        recorder.raw(server, "GET", "/healthz", b"GET /healthz HTTP/1.1\r\n\r\n")  # no Host
        recorder.raw(server, "GET", "/healthz", get + b"Many: " + b"x" * 20_000 + b"\r\n\r\n")
        recorder.raw(server, "GET", "/healthz", get + b"Content-Length: 2000000\r\n\r\n")
        recorder.raw(server, "POST", "/lock", b"POST /lock HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    finally:
        server.remove()
    server = Server("--max-connections", "1", store="memory").start()
    try:
        first = server.client()
        first.get("/healthz")  # so it is the one connection that there may be
        recorder.raw(server, "GET", "/healthz", get + b"\r\n")
    finally:
        server.remove()


def unknown_paths(recorder, server, client, operations):
    """404, and 405 for every method that a path is not described with; OPTIONS is described for all of them at once."""
    recorder.call(client, "GET", "/nothing")
    for path in {path for path, _ in operations}:
        for method in "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE":
            if (path, method) not in operations:
                recorder.call(client, method, path)


def stuck_disk(recorder, operations):
    """503 from everything that is described with it, when 64 MiB wait for a disk that stands still."""
    directory = harness.temporary_directory()
    mark = os.path.join(directory, "stuck")
    server = Server(environment=harness.preload("disk.c", DISK_STUCK_WHILE=mark)).start()
    try:
        with open(mark, "w", encoding="ascii"):
            pass
        client = server.client()
        fillers = []
        while client.get("/readyz").status == 200:  # nobody is answered, so each batch has a connection of its own
            fillers.append(server.client())
            lane = {"type": "own", "node_id": "n", "info": "x" * 4000}
            fillers[-1].send("POST", "/batch", {"requests": [
                {"call": "lock", "resource_id": f"{len(fillers)}/{i}", **lane} for i in range(240)]})
        for path, method in operations:
            if "503" in operations[path, method]["responses"]:
                query = QUERIES.get(path, {}) if method == "GET" else {}
                recorder.call(client, method, path, BODIES[path] if method == "POST" else None, **query)
    finally:
        server.remove()


def stopping(recorder, operations):
    """503 from everything that is described with it, and from nothing else: requests whose last byte comes after the
    server was told to stop. It waits for them for some seconds only, and what it had not read until then it need not
    answer; so there are several tries."""
    missing = set(operations)
    for _ in range(10):
        missing -= _stop_once(recorder, sorted(missing))
        if not any("503" in operations[key]["responses"] for key in missing):
            return


def _stop_once(recorder, wanted):
    server = Server(store="memory").start()
    try:
        open_requests = {}
        for path, method in wanted:
            raw = socket.create_connection((server.host, server.port), timeout=harness.PATIENCE)
            data = _request(path, method)
            raw.sendall(data[:-1])
            open_requests[path, method] = raw, data[-1:]
        client = server.client()
        client.lock("r", "a")
        poll = recorder.poll(server, client, resource_id="r", node_id="b")
        os.kill(server.pid, signal.SIGTERM)
        recorder.answered(poll)
        return {key for key, (raw, rest) in open_requests.items() if _refused(recorder, *key, raw, rest)}
    finally:
        server.remove()


def _request(path, method):
    if method == "POST":
        body = json.dumps(BODIES[path])
        return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    query = urllib.parse.urlencode(QUERIES.get(path, {}))
    return f"{method} {TARGETS.get(path, path)}?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()


def _refused(recorder, path, method, raw, rest):
    with raw:
        try:
            raw.sendall(rest)
            answers = parse_answers(read_all(raw))
        except OSError:
            return False
    for status, headers, body in answers[:1]:
        recorder.keep(method, path, status, headers, body.decode())
    return bool(answers) and answers[0][0] == 503
