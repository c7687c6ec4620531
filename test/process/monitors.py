"""Readers of event streams that come back by Last-Event-ID wherever the events go on, and what must be true of what they saw.

A stream that goes on behind its last event has missed nothing, unless it was told `reset`. What a reader sees between two resets is
a segment; every grant of a lane that some client was told of, with a token between two that the segment has, must be in it. Behind a
reset comes first how things are now (S28): that is older than nothing, and the events that are still known follow it.
"""
import collections
import http.client
import json
import threading
import time
import urllib.parse

SILENCE = 13  # seconds: a server sends a comment every ten


class Monitor(threading.Thread):
    """Reads one path, for ever, from whichever of the servers has it."""

    def __init__(self, servers, path, **query):
        super().__init__(daemon=True)
        self.servers, self.path = servers, path + ("?" + urllib.parse.urlencode(query) if query else "")
        self.segments = [collections.defaultdict(list)]  # for each the tokens that were granted, by lane
        self.last, self.stopping = None, threading.Event()
        self.state_id = None  # of the state behind the last reset
        self.counts = collections.Counter()

    def run(self):
        while not self.stopping.is_set():
            try:
                self._read()
            except (OSError, http.client.HTTPException, ValueError):
                self.servers.look_elsewhere()
            time.sleep(0.02)

    def _read(self):
        connection = http.client.HTTPConnection(self.servers.host, self.servers.port, timeout=SILENCE)
        try:
            connection.request("GET", self.path, headers={"Last-Event-ID": self.last} if self.last else {})
            response = connection.getresponse()
            if response.status != 200:
                text = response.read().decode()
                self.servers.look_elsewhere(_Named(json.loads(text)))
                return
            self.counts["streams that went on" if self.last else "streams that began"] += 1
            event = {}
            while not self.stopping.is_set():
                line = response.readline()
                if not line:
                    return
                name, _, value = line.decode().rstrip("\n").partition(":")
                if name:
                    event[name] = value.removeprefix(" ")
                elif event:
                    self._take(event)
                    event = {}
        finally:
            connection.close()

    def _take(self, event):
        if "data" not in event:
            return
        self.last = event.get("id", self.last)
        if event.get("event") == "reset":
            self.counts["resets"] += 1
            self.segments.append(collections.defaultdict(list))
            self.state_id = int(event["id"]) + 1
            return
        self.counts["events seen"] += 1
        if "id" not in event or int(event["id"]) == self.state_id:
            return  # the state: what follows tells how it came to be
        data = json.loads(event["data"])
        if data["event"] == "granted":
            self.segments[-1][f"{data['type']} {data['resource_id']}"].append(data["token"])


class _Named:
    def __init__(self, body):
        self.body = body


def gaps(segments, history):
    """What was granted and told to a client, and is missing between two grants that a segment has."""
    told = collections.defaultdict(set)
    for entry in history:
        if getattr(entry, "outcome", "") == "acquired" and entry.token is not None:
            told[entry.lane].add(entry.token)
    found = []
    for segment in segments:
        for lane, tokens in segment.items():
            if tokens != sorted(tokens):
                found.append(f"{lane}: {tokens} are not in order")
            missing = {token for token in told[lane] if min(tokens) < token < max(tokens)} - set(tokens)
            if missing:
                found.append(f"{lane}: the stream missed {sorted(missing)[:5]} and was not told")
    return found
