#!/usr/bin/env python3
"""Fetch a layer once in the whole cluster: one node pulls, the others wait and skip, or take over when it fails.

The habits are those of docs/guide.md: a request_id, the token in every later call and beside the result, retries by status.

    examples/pull_once.py NODE DIGEST [http://127.0.0.1:8086]
"""
import json
import sys
import time
import urllib.error
import urllib.request
import uuid

TRIES = 5


def call(server, path, **fields):
    """The answer, whatever it says. Tried again where that can help; the request_id makes it harmless."""
    url = server + path
    for attempt in range(1, TRIES + 1):
        pause = 0.2 * 2**attempt
        request = urllib.request.Request(url, json.dumps(fields).encode(), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=70) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            if attempt == TRIES or refusal.code not in (307, 408, 429, 503):
                return json.load(refusal)  # 400, 403: the body says why
            if refusal.code == 307:  # another server leads: the same request there, at once
                url, pause = refusal.headers["Location"], 0
            pause = max(pause, float(refusal.headers.get("Retry-After") or 0))
        except OSError:  # no connection, or it broke; perhaps the leader has changed
            if attempt == TRIES:
                raise
            url = server + path
        time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def pull_once(server, node, digest, pull):
    lane = {"type": "pull", "resource_id": digest, "node_id": node, "request_id": str(uuid.uuid4())}
    while True:
        answer = call(server, "/lock", **lane, wait_ms=60_000, lease_ms=10_000)
        if answer.get("acquired"):
            break
        if answer.get("state") != "queued":  # skipped: the work is done; otherwise `code` says why not
            return answer
    hold = {**lane, "token": answer["token"]}
    try:
        # It reports at least every few seconds, or the lease runs out.
        for done in pull(token=answer["token"], attempt=answer["attempt"]):
            if not call(server, "/renew", **hold, done=done, total=100).get("renewed"):
                raise RuntimeError("the lock is lost: stop")
    except Exception as failure:
        return call(server, "/unlock", **hold, success=False, error=str(failure))
    return call(server, "/unlock", **hold, success=True)


def slow_download(token, attempt):
    """A real one stores the token with the layer, and leaves a layer alone that has a larger one."""
    for percent in range(0, 101, 20):
        time.sleep(0.3)
        yield percent


if __name__ == "__main__":
    address = sys.argv[3] if len(sys.argv) > 3 else "http://127.0.0.1:8086"
    print(sys.argv[1], pull_once(address, sys.argv[1], sys.argv[2], slow_download))
