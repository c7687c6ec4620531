"""Who asks (S50, S54 to S56), with a real server: log-ins, failures slowed down, the audit log, users of a unix socket, what SIGHUP
changes and what it leaves alone; and that no secret is ever said."""
import hashlib
import http.client
import json
import os
import select
import subprocess
import threading
import time
import unittest

import harness
from access import AccessCase, As, entry, new_secret
from harness import Server, wait_until


class LoginTest(AccessCase):
    def test_S50_a_wrong_missing_or_odd_credential_is_one_clear_answer(self):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic dXNlcjpwYXNz"},
                        {"Authorization": "Bearer"}, {"Authorization": self.secrets["boss"]},
                        {"Authorization": "Bearer " + hashlib.sha256(self.secrets["boss"].encode()).hexdigest()}):
            answer = As(self.server, headers=headers).get("/locks")
            self.assert_refused(answer, 401, "unauthorized")
        self.assertEqual(self.as_("boss").get("/locks").status, 200)

    def test_S50_another_secret_on_the_same_connection_is_another_caller(self):
        client = As(self.server)
        for who, status in (("boss", 200), ("node-a", 403), ("boss", 200), ("wrong", 401)):
            secret = self.secrets.get(who, who)
            answer = client.call("GET", "/metrics", headers={"Authorization": "bearer " + secret})
            self.assertEqual(answer.status, status, who)

    def test_S54_failures_of_one_address_are_slowed_down_and_nobody_else(self):
        noisy, source = 9, "127.9.9.9"
        begin = time.monotonic()
        answers = [As(self.server, "wrong", source=source).get("/locks").status for _ in range(noisy)]
        self.assertEqual(answers, [401] * noisy)
        self.assertGreater(time.monotonic() - begin, 0.1 + 0.2 + 0.4 + 0.8)

        def others_overtake():
            """Whether those who never wait are answered while the next failure of that address does."""
            slow = As(self.server, "wrong", source=source)
            slow.send("GET", "/locks")
            self.assertEqual(self.as_("boss", source=source).get("/locks").status, 200)  # who knows a secret
            self.assertEqual(As(self.server, "wrong", source="127.9.9.8").get("/locks").status, 401)  # who is elsewhere
            overtaken = not select.select([slow.connection.sock], [], [], 0)[0]
            self.assertEqual(slow.receive().status, 401)
            return overtaken
        # It waits for 1.6 s, then 3.2 s, then 5 s: on a machine that stalls for longer than one of them, the next one counts.
        self.assertTrue(any(others_overtake() for _ in range(4)))

    def test_S54_a_failure_that_waits_keeps_nobody_from_leaving(self):
        clients = [As(self.server, "wrong", source="127.9.9.7") for _ in range(40)]
        for client in clients:
            client.send("GET", "/locks")
        for client in clients[::2]:
            client.close()
        for client in clients[1::2]:
            self.assertEqual(client.receive().status, 401)

    def test_S55_the_audit_log_has_log_ins_refusals_and_what_admins_did(self):
        node = self.as_("node-a")
        node.get("/locks")
        node.get("/locks")
        node.lock("b/audit", "node-a")
        As(self.server, "wrong-audit").get("/locks")
        boss = self.as_("boss")
        boss.post("/admin/break", type="own", resource_id="a/audit", reason="why")
        boss.post("/admin/forget", type="own", resource_id="a/audit")
        As(self.server, headers={"Origin": "http://evil.example"}).get("/locks")

        def found():
            return [(line["message"], line["name"], line["call"], line["resource"], line["node"], line["outcome"])
                    for line in self.audit_lines()]
        for wanted in (("login", "node-a", "/locks", "", "", "ok"),
                       ("refused", "node-a", "/lock", "b/audit", "node-a", "forbidden"),
                       ("refused", "", "/locks", "", "", "unauthorized"),
                       ("refused", "", "/locks", "", "", "foreign_origin"),
                       ("admin", "boss", "/admin/break", "a/audit", "", "refused"),  # nobody held it
                       ("admin", "boss", "/admin/forget", "a/audit", "", "ok")):
            wait_until(lambda: wanted in found(), f"{wanted} is in the audit log")
        self.assertTrue(all(line["time"].endswith("Z") and line["address"].startswith("127.")
                            for line in self.audit_lines() if line["message"] != "reload"))

    def test_S55_a_batch_is_one_line_however_many_items_are_refused(self):
        items = [{"call": "cancel", "type": "own", "resource_id": f"many/{i}", "node_id": "node-b"} for i in range(300)]
        items.insert(1, {"call": "cancel", "type": "own", "resource_id": "a/1", "node_id": "node-a"})
        self.assertEqual(self.as_("node-a").batch(*items).status, 200)
        self.as_("node-a").lock("b/behind-the-batch", "node-a")  # refused, too: behind it all lines of the batch are there

        def refused():
            return [line for line in self.audit_lines() if line["message"] == "refused" and line["name"] == "node-a"]
        wait_until(lambda: any(line["resource"] == "b/behind-the-batch" for line in refused()), "the line behind those of the batch")
        lines = [line for line in refused() if line["call"] == "/batch"]
        self.assertEqual([(line["resource"], line["node"], line["count"]) for line in lines], [("many/0", "node-b", 300)])

    def test_S55_refusals_are_counted(self):
        boss = self.as_("boss")
        before = {code: boss.metric("turnstile_access_refused_total", code=code)
                  for code in ("unauthorized", "forbidden", "foreign_origin")}
        As(self.server).get("/locks")
        self.as_("node-a").get("/metrics")
        self.as_("node-a").batch({"call": "cancel", "type": "own", "resource_id": "z", "node_id": "z"})
        As(self.server, headers={"Host": "evil.example"}).get("/locks")
        after = {code: boss.metric("turnstile_access_refused_total", code=code) for code in before}
        self.assertEqual({code: after[code] - before[code] for code in before},
                         {"unauthorized": 1, "forbidden": 2, "foreign_origin": 1})
        self.assertGreater(boss.metric("turnstile_logins_total"), 0)

    def test_S50_no_secret_is_ever_said(self):
        boss = self.as_("boss")
        said = [boss.get(path).text for path in ("/version", "/metrics", "/locks", "/summary")]
        said.append(As(self.server, self.secrets["boss"] + "x").get("/locks").text)
        said.append(self.as_("node-a").get("/metrics").text)
        with open(f"/proc/{self.server.pid}/cmdline", "rb") as cmdline:
            said.append(cmdline.read().decode())
        said += [self.server.log(), open(self.audit, encoding="utf-8").read()]
        for name, secret in self.secrets.items():
            digest = hashlib.sha256(secret.encode()).hexdigest()
            for text in said:
                self.assertNotIn(secret, text, name)
                self.assertNotIn(digest, text, name)


class UnixTest(AccessCase):
    def over(self, path, call):
        return json.loads(subprocess.run(["curl", "-s", "--unix-socket", path, "http://x" + call], capture_output=True,
                                         text=True, check=True).stdout)

    def test_S50_who_may_open_the_socket_is_an_admin_unless_users_are_named(self):
        path = os.path.join(harness.temporary_directory(), "socket")
        server = Server("--credentials", self.file, "--listen", "unix:" + path, store="memory").start()
        self.addCleanup(server.remove)
        self.assertIn("settings", self.over(path, "/version"))
        self.assertIn("forgotten", json.loads(subprocess.run(
            ["curl", "-s", "--unix-socket", path, "http://x/admin/forget", "-d", '{"type":"own","resource_id":"r"}'],
            capture_output=True, text=True, check=True).stdout))
        named = os.path.join(harness.temporary_directory(), "named.toml")
        with open(named, "w", encoding="utf-8") as file:
            file.write(self.credentials() + f'[[unix_user]]\nuser = "{os.getuid()}"\nrole = "read"\n')
        second = os.path.join(harness.temporary_directory(), "socket")
        other = Server("--credentials", named, "--listen", "unix:" + second, store="memory").start()
        self.addCleanup(other.remove)
        self.assertIn("locks", self.over(second, "/locks"))
        self.assertEqual(self.over(second, "/lock/status?type=a&resource_id=a&node_id=n")["code"], "forbidden")


class ReloadTest(AccessCase):
    def tearDown(self):
        self.reload(self.credentials())
        super().tearDown()

    def without(self, name):
        return "\n".join(part for part in self.credentials().split("\n[[") if f'name = "{name}"' not in part).replace(
            "credential]]", "[[credential]]").replace("[[[[", "[[")

    def test_S56_a_removed_credential_stops_at_once_on_open_connections_too(self):
        client, kept = self.as_("node-b"), self.as_("node-a")
        self.assertEqual((client.get("/locks").status, kept.get("/locks").status), (200, 200))
        self.reload(self.without("node-b"))
        self.assertEqual((client.get("/locks").status, kept.get("/locks").status), (401, 200))
        self.reload(self.credentials())
        self.assertEqual(client.get("/locks").status, 200)

    def test_S56_streams_polls_and_bonds_of_a_removed_credential_end_and_others_stay(self):
        boss = self.as_("boss")
        boss.lock("shared/held", "x", type="own")
        gone, stays = self.stream_as("node-b", "/events"), self.stream_as("node-a", "/events")
        gone.readline(), stays.readline()
        poll = self.as_("node-b")
        poll.send("POST", "/lock", {"type": "own", "resource_id": "shared/held", "node_id": "node-b", "wait_ms": 600_000})
        bond = self.as_("node-b")
        self.assertEqual(bond.lock("b/bonded", "node-b", type="own", monitor=True)["state"], "acquired")
        wait_until(lambda: boss.status("shared/held", type="own")["queue"], "the waiter")
        self.reload(self.without("node-b"))
        while gone.readline():  # until its end
            pass
        self.assertRaises((http.client.HTTPException, OSError), poll.receive)
        boss.lock("shared/after", "x", type="own")
        self.assertIn("shared/after", self.events_until(stays, "shared/after")[0])
        self.assertRaises((http.client.HTTPException, OSError), bond.get, "/locks")

    def test_S56_a_bad_file_keeps_the_old_one_and_says_so(self):
        client = self.as_("node-a")
        self.reload("[[credential]]\nname = 1\n", word="the credentials stay as they were")
        self.assertEqual(client.get("/locks").status, 200)
        self.assertIn(f"{self.file}:", self.server.log())
        self.assertEqual(self.as_("node-b").get("/locks").status, 200)

    def test_S56_a_narrower_credential_sees_less_at_once(self):
        client, stream = self.as_("guest"), self.stream_as("guest", "/events")
        stream.readline()
        self.as_("boss").lock("a/narrow", "n", type="own")
        self.assertIn("a/narrow", client.get("/locks", prefix="a/narrow").text)
        self.reload(self.credentials().replace(json.dumps(["a/"]), json.dumps(["elsewhere/"])))
        self.assertEqual(client.get("/locks", prefix="a/narrow")["locks"], [])
        while stream.readline():
            pass

    def test_S56_reloading_under_load_loses_no_hold_and_no_connection(self):
        stop, failures = threading.Event(), []

        def work(number):
            client, node = As(self.server, self.secrets["node-a"]), f"ci-{number}"
            try:
                self.assertEqual(client.lock(f"a/bond{number}", node, type="own", monitor=True)["state"], "acquired")
                while not stop.is_set():
                    resource = f"a/load{number}"
                    taken, freed = client.lock(resource, node, type="own"), client.unlock(resource, node, type="own")
                    if not (taken.body.get("acquired") and freed.body.get("released")):
                        failures.append((taken, freed))
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
            finally:
                held = As(self.server, self.secrets["boss"]).status(f"a/bond{number}", type="own")
                if held.body.get("holder", {}).get("node_id") != node:
                    failures.append(held)
                client.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for round_ in range(20):
            self.reload(self.credentials() + entry(f"extra{round_}", new_secret(), "read"))
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class StartTest(unittest.TestCase):
    def start(self, *flags):
        directory = harness.temporary_directory()
        return subprocess.run([harness.binary(), "--store", "memory", *flags], capture_output=True, text=True, cwd=directory,
                              env=harness.plain_environment(), timeout=harness.PATIENCE, check=False)

    def test_S50_off_the_loopback_it_wants_credentials_and_a_wire_that_nobody_reads(self):
        file = os.path.join(harness.temporary_directory(), "c.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(entry("a", new_secret(), "admin"))
        nobody = self.start("--listen", "0.0.0.0:0")
        self.assertEqual(nobody.returncode, 2)
        self.assertIn("--credentials", nobody.stderr)
        plain = self.start("--listen", "0.0.0.0:0", "--credentials", file)
        self.assertEqual(plain.returncode, 2)
        self.assertIn("can read secrets", plain.stderr)

    def test_S50_a_file_that_is_wrong_or_missing_is_told_and_nothing_starts(self):
        file = os.path.join(harness.temporary_directory(), "c.toml")
        for text, word in (("[[credential]]\nname = \"a\"\nrole = \"king\"\nsecret_sha256 = \"x\"\n", f"{file}:3:"),
                           ("", "it names nobody")):
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
            run = self.start("--listen", "127.0.0.1:0", "--credentials", file)
            self.assertEqual(run.returncode, 2)
            self.assertIn(word, run.stderr)
        self.assertIn("cannot be read", self.start("--listen", "127.0.0.1:0", "--credentials", file + ".no").stderr)


if __name__ == "__main__":
    harness.main()
