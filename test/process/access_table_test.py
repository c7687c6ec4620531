"""Who may do what (S52, S53), with a real server: every cell of the table over the wire, with secrets and with certificates;
lists and streams narrowed."""
import json
import os

import harness
from access import AccessCase, As, make_certificates, unverified_connection
from harness import Server, wait_until

# Who asks, and what each call is answered: for its own node and resource. 200 is "allowed", whatever the rules say of it.
LANE = {"type": "own", "resource_id": "a/1", "node_id": "node-a"}
CALLS = {
    "lock": ("POST", "/lock", LANE),
    "unlock": ("POST", "/unlock", LANE),
    "renew": ("POST", "/renew", {**LANE, "token": 1}),
    "cancel": ("POST", "/cancel", LANE),
    "batch": ("POST", "/batch", {"requests": [{"call": "cancel", **LANE}]}),
    "refs/add": ("POST", "/refs/add", {"resource_id": "a/1", "node_id": "node-a"}),
    "refs/release": ("POST", "/refs/release", {"resource_id": "a/1", "node_id": "node-a"}),
    "status of a node": ("GET", "/lock/status?type=own&resource_id=a/1&node_id=node-a", None),
    "status of a node by POST": ("POST", "/lock/status", LANE),
    "subscribe of a node": ("GET", "/lock/subscribe?type=own&resource_id=a/1&node_id=node-a", None),
    "status": ("GET", "/lock/status?type=own&resource_id=a/1", None),
    "locks": ("GET", "/locks", None),
    "refs": ("GET", "/refs?resource_id=a/1", None),
    "subscribe": ("GET", "/lock/subscribe?type=own&resource_id=a/1", None),
    "events": ("GET", "/events", None),
    "refs/release_node": ("POST", "/refs/release_node", {"node_id": "node-a"}),
    "admin/break": ("POST", "/admin/break", {"type": "own", "resource_id": "a/1", "reason": "why"}),
    "admin/forget": ("POST", "/admin/forget", {"type": "own", "resource_id": "a/1"}),
    "metrics": ("GET", "/metrics", None),
    "version": ("GET", "/version", None),
    "summary": ("GET", "/summary", None),
    "servers": ("GET", "/servers", None),
    "healthz": ("GET", "/healthz", None),
    "readyz": ("GET", "/readyz", None),
    "openapi": ("GET", "/openapi.yaml", None),
    "the welcome": ("GET", "/", None),
}
YES, NO, WHO = "allowed", "forbidden", "unauthorized"
#                              its client, another, reader, admin, nobody
TABLE = {
    **{call: (YES, NO, NO, YES, WHO) for call in (
        "lock", "unlock", "renew", "cancel", "refs/add", "refs/release", "status of a node", "status of a node by POST",
        "subscribe of a node", "refs/release_node")},
    "batch": (YES, YES, NO, YES, WHO),  # of another client each item is refused: see below
    **{call: (YES, NO, YES, YES, WHO) for call in ("status", "refs", "subscribe")},
    **{call: (YES, YES, YES, YES, WHO) for call in ("locks", "events", "version")},
    **{call: (NO, NO, NO, YES, WHO) for call in ("admin/break", "admin/forget")},
    **{call: (NO, NO, YES, YES, WHO) for call in ("metrics", "summary", "servers")},
    **{call: (YES, YES, YES, YES, YES) for call in ("healthz", "readyz", "openapi", "the welcome")},
}


class TableTest(AccessCase):
    places = 0

    def outcome(self, who, call):
        method, path, body = CALLS[call]
        # Whoever has no credential is slowed down after a few; from another address it is as new.
        self.places += 1
        client = self.as_(who) if who else self.nobody()
        client.send(method, path, body)
        response = client.connection.getresponse()
        stream = response.headers.get("Content-Type", "").startswith("text/event-stream")
        text = "" if stream else response.read().decode()
        client.close()
        if response.status == 401:
            self.assertEqual(response.headers["WWW-Authenticate"], 'Bearer realm="turnstile"')
            return json.loads(text)["code"]
        if response.status == 403 and json.loads(text)["code"] == "forbidden":
            self.assertIn(who, json.loads(text)["error"])
            return NO
        return YES

    def nobody(self):
        return As(self.server, source=f"127.7.7.{self.places}")

    def test_S52_every_cell_of_the_table(self):
        self.assertEqual(set(TABLE), set(CALLS))
        for call, row in TABLE.items():
            for who, wanted in zip(("node-a", "node-b", "reader", "boss", None), row):
                with self.subTest(call=call, who=who):
                    self.assertEqual(self.outcome(who, call), wanted)

    def test_S52_a_batch_is_judged_item_by_item(self):
        items = [{"call": "lock", "type": "own", "resource_id": r, "node_id": n}
                 for r, n in (("a/x", "node-a"), ("b/x", "node-a"), ("a/y", "node-b"), ("shared/x", "ci-7"))]
        answers = self.as_("node-a").batch(*items)["answers"]
        self.assertEqual([a.get("code", a.get("state")) for a in answers],
                         ["acquired", "forbidden", "forbidden", "acquired"])
        self.assertEqual(answers[1]["status"], 403)
        uses = [{"call": call, "resource_id": r, "node_id": n} for call in ("refs/add", "refs/release")
                for r, n in (("a/x", "node-a"), ("b/x", "node-a"), ("a/x", "node-b"))]
        self.assertEqual([a.get("code", a["status"]) for a in self.as_("node-a").batch(*uses)["answers"]],
                         [200, "forbidden", "forbidden"] * 2)

    def test_S52_a_node_can_do_nothing_in_the_name_of_another(self):
        token = self.as_("node-a").lock("shared/lock", "node-a", type="own")["token"]
        other = self.as_("node-b")
        lane = {"type": "own", "resource_id": "shared/lock", "node_id": "node-a"}
        for path, more in (("/unlock", {"token": token}), ("/renew", {"token": token}), ("/cancel", {}), ("/lock", {}),
                           ("/lock/status", {}), ("/refs/add", {}), ("/refs/release", {}), ("/refs/release_node", {})):
            self.assert_refused(other.post(path, **{**lane, **more}), 403, "forbidden")
        self.assertEqual(self.holder("own", "shared/lock"), "node-a")
        # ... but sees who holds what it may see.
        self.assertEqual(other.status("shared/lock", type="own")["holder"]["node_id"], "node-a")

    def test_S53_lists_have_only_what_the_caller_may_see(self):
        boss = self.as_("boss")
        for resource in ("a/list", "b/list", "shared/list", "c/list"):
            boss.lock(resource, "n", type="own")
        listed = {who: {lock["resource_id"] for lock in self.as_(who).get("/locks", limit=1000)["locks"]
                        if lock["resource_id"].endswith("/list")} for who in self.secrets}
        self.assertEqual(listed, {"node-a": {"a/list", "shared/list"}, "node-b": {"b/list", "shared/list"},
                                  "guest": {"a/list"}, "reader": {"a/list", "b/list", "c/list", "shared/list"},
                                  "boss": {"a/list", "b/list", "c/list", "shared/list"}})
        page, found = self.as_("node-b").get("/locks", limit=1, contains="list"), []
        while True:
            found += [lock["resource_id"] for lock in page["locks"]]
            if "next_cursor" not in page:
                break
            page = self.as_("node-b").get("/locks", limit=1, contains="list", cursor=page["next_cursor"])
        self.assertEqual(found, ["b/list", "shared/list"])

    def test_S53_release_node_leaves_what_the_caller_may_not_touch(self):
        boss = self.as_("boss")
        for resource in ("a/ref", "c/ref"):
            boss.post("/refs/add", resource_id=resource, node_id="ci-9")
        self.assertEqual(self.as_("node-a").post("/refs/release_node", node_id="ci-9")["count"], 1)
        self.assertEqual(boss.get("/refs", resource_id="c/ref")["count"], 1)

    def test_S53_streams_have_only_what_the_caller_may_see_also_when_resumed(self):
        boss = self.as_("boss")
        stream = self.stream_as("node-a", "/events")
        stream.readline()
        everything = ["b/s", "a/s1", "c/s", "shared/s2", "b/s", "a/s3"]
        for resource in everything:
            boss.lock(resource, "n", type="own")
            boss.unlock(resource, "n", type="own")
        seen, last = self.events_until(stream, "a/s1")
        self.assertEqual(set(seen), {"a/s1"})
        resumed, _ = self.events_until(self.stream_as("node-a", "/events", last_event_id=last), "a/s3")
        self.assertEqual(set(resumed), {"a/s1", "shared/s2", "a/s3"})
        # Of another server's life: a reset, and then everything that is known.
        after_reset, _ = self.events_until(self.stream_as("node-a", "/events", last_event_id="1"), "a/s3")
        self.assertFalse({"b/s", "c/s"} & set(after_reset))

    def test_S53_what_a_summary_names_is_what_the_caller_may_see(self):
        boss = self.as_("boss")
        for resource in ("a/ended", "b/ended"):
            boss.lock(resource, "n", type="own")
            boss.unlock(resource, "n", type="own")
        wait_until(lambda: "b/ended" in boss.get("/summary").text, "the endings")
        self.assertIn("a/ended", self.as_("guest").get("/summary").text)
        self.assertNotIn("b/ended", self.as_("guest").get("/summary").text)

    def test_S52_a_client_is_told_of_the_server_what_it_needs(self):
        told = self.as_("node-a").get("/version").body
        self.assertEqual(set(told), {"role", "life", "uptime_ms", "time", "version", "settings"})
        self.assertEqual(told["settings"], {"references": "server", "store": "memory"})
        self.assertIn("credentials", self.as_("reader").get("/version")["settings"])

    def test_S52_version_says_the_role_of_who_asks(self):
        for name, role in ("node-a", "client"), ("reader", "read"), ("boss", "admin"):
            self.assertEqual(self.as_(name).get("/version")["role"], role)


class CertificateTest(TableTest):
    """The same table, where everybody shows a certificate instead of a secret."""

    @classmethod
    def setUpClass(cls):
        cls.pki = harness.temporary_directory()
        make_certificates(cls.pki, "server", "stranger", *cls.secrets)
        cls.flags = ("--tls-cert", cls.path("server.crt"), "--tls-key", cls.path("server.key"), "--tls-client-ca",
                     cls.path("ca.crt"))
        super().setUpClass()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.pki, name)

    @classmethod
    def credentials(cls):
        """The same entries, by certificate."""
        lines = [line for line in super().credentials().splitlines() if not line.startswith("secret_sha256")]
        return "\n".join(lines).replace("[[credential]]", "[[certificate]]") + "\n"

    def as_(self, name, **more):
        made = As(self.server, **more)
        made.connection = self.connection(name)
        self.addCleanup(made.close)
        return made

    def connection(self, name=None, source=None, server=None):
        chain = (self.path(f"{name}.crt"), self.path(f"{name}.key")) if name else ()
        return unverified_connection(server or self.server, *chain, source=source)

    def nobody(self):
        made = As(self.server)
        made.connection = self.connection(source=f"127.7.7.{self.places}")
        return made

    def stream_as(self, name, path, last_event_id=None, **query):
        connection = self.connection(name)
        self.addCleanup(connection.close)
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        connection.request("GET", path, headers=headers)
        return connection.getresponse()

    def test_S50_a_certificate_that_the_file_does_not_name_is_nobody(self):
        self.assert_refused(self.as_("stranger").get("/locks"), 401, "unauthorized")
        self.assertIn("'stranger'", self.as_("stranger").get("/locks")["error"])

    def test_S50_without_a_file_a_certificate_is_a_client_of_its_own_name(self):
        server = Server(*self.flags, store="memory").start()
        self.addCleanup(server.remove)
        stranger = As(server)
        stranger.connection = self.connection("stranger", server=server)
        self.assertEqual(stranger.lock("r", "stranger", type="own")["state"], "acquired")
        self.assert_refused(stranger.lock("r", "node-a", type="own"), 403, "forbidden")
        self.assert_refused(stranger.get("/metrics"), 403, "forbidden")
        nobody = As(server)
        nobody.connection = self.connection(server=server)
        self.assert_refused(nobody.get("/locks"), 401, "unauthorized")


if __name__ == "__main__":
    harness.main()
