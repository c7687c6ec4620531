"""The program `turnstile` and several servers: what it shows of a hand-over (nothing), and of TLS and credentials."""
import json
import os
import threading
import time

import harness
from fronts import Certificates, Cluster, server_tls
from harness import PATIENCE, ServerCase, wait_until
from turnstile_program import OK, UNAUTHENTICATED, UNAVAILABLE, USAGE, run, start

SECRET = "ts_" + "A" * 43
TAKE_OVER = 6.0  # seconds; what a leader's death takes at the most


class SeveralCase(ServerCase):
    def cluster(self, **options):
        cluster = Cluster(self.server, **options)
        self.addCleanup(cluster.close)
        return cluster

    def assert_fault(self, done, code, *words):
        """One line, with the words."""
        self.assertEqual(done.returncode, code, done)
        self.assertRegex(done.stderr, r"\Aturnstile: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn(SECRET, done.stderr + done.stdout)


class HandOverTest(SeveralCase):
    def test_a_loop_sees_no_error_while_the_lead_changes_hands(self):
        cluster = self.cluster()
        stop = threading.Event()
        self.addCleanup(stop.set)

        def change_hands():
            for turn in range(1000):
                if stop.wait(0.7):
                    return
                old, new = cluster.fronts[turn % 3], cluster.fronts[(turn + 1) % 3]
                if turn % 2:
                    old.kill()
                cluster.lead(None)
                stop.wait(0.8)
                cluster.lead(new)
                if turn % 2:
                    old.revive()
        thread = threading.Thread(target=change_hands)
        thread.start()
        end = time.monotonic() + 8
        rounds = 0
        while time.monotonic() < end or rounds < 5:
            done = run("exec", "build", self.resource, "--quiet", "--", "true", url=cluster.urls)
            self.assertEqual((done.returncode, done.stderr), (OK, ""), done)
            rounds += 1
        stop.set()
        thread.join()

    def test_a_command_and_its_lease_survive_the_death_of_a_leader(self):
        for how in ("kill", "hang"):
            with self.subTest(how=how):
                cluster = self.cluster()
                log = os.path.join(harness.temporary_directory(), "log")
                process = start("exec", "build", self.resource + how, "--quiet", "--", "sh", "-c",
                                f'trap "echo ended >> {log}" TERM; touch {log}.on; while [ ! -e {log}.go ]; do sleep 0.1; done; '
                                f'echo done >> {log}', url=cluster.urls)
                wait_until(lambda: os.path.exists(log + ".on"), "it runs")
                before = self.status("build", self.resource + how)["holder"]["token"]
                time.sleep(1.9)  # just before a renewal, or just after: either is to do
                getattr(cluster.fronts[0], how)()
                time.sleep(TAKE_OVER - 1)  # its lease in etcd: the others still name it
                cluster.lead(None)
                time.sleep(1)
                cluster.lead(cluster.fronts[2])
                wait_until(lambda: cluster.fronts[2].asked > 0, "the new leader is found")
                time.sleep(2)
                self.assertEqual(self.status("build", self.resource + how)["holder"]["token"], before)
                with open(log + ".go", "w", encoding="ascii"):
                    pass
                _, error = process.communicate(timeout=PATIENCE)
                self.assertEqual((process.returncode, error), (OK, ""))
                with open(log, encoding="ascii") as file:
                    self.assertEqual(file.read(), "done\n")

    def test_a_watch_misses_nothing(self):
        cluster = self.cluster()
        process = start("watch", "--prefix", self.resource, "--count", "40", "--output", "json", url=cluster.urls)
        first = []

        def heard():
            first.append(self.lock("n", "build", self.resource + "-first"))
            self.unlock("n", "build", self.resource + "-first", token=first[-1]["token"], success=True)
            return cluster.fronts[0].asked > 0 and len(first) > 3
        wait_until(heard, "the stream is open", every=0.3)
        for i in range(30):
            token = self.lock("n", "build", f"{self.resource}-{i}")["token"]
            self.unlock("n", "build", f"{self.resource}-{i}", token=token, success=True)
            if i % 10 == 5:
                cluster.lead(cluster.fronts[(cluster.fronts.index(cluster.leader) + 1) % 3])
        out, _ = process.communicate(timeout=PATIENCE)
        events = [json.loads(line) for line in out.splitlines()]
        self.assertNotIn("reset", [event["event"] for event in events])
        seen = [event["resource_id"].rsplit("-", 1)[1] for event in events if event["event"] == "granted"]
        numbers = [int(number) for number in seen if number != "first"]
        self.assertEqual(numbers, list(range(len(numbers))), "each once, in order")

    def test_what_is_said_when_nobody_answers_or_leads(self):
        cluster = self.cluster()
        for front in cluster.fronts:
            front.kill()
        done = run("lock", "build", self.resource, url=cluster.urls)
        self.assert_fault(done, UNAVAILABLE, "no server answered: tried", *(front.url for front in cluster.fronts))
        done = run("status", url=cluster.urls)
        self.assert_fault(done, UNAVAILABLE)
        for front in cluster.fronts:
            front.revive()
        cluster.lead(None)
        begin = time.monotonic()
        done = run("lock", "build", self.resource, "--output", "json", url=cluster.urls)
        self.assertEqual((done.returncode, json.loads(done.stderr)["exit"]), (UNAVAILABLE, UNAVAILABLE))
        self.assertIn("no server leads", done.stderr)
        self.assertGreater(time.monotonic() - begin, 10)

    def test_status_shows_who_leads_who_stands_by_and_who_is_away(self):
        cluster = self.cluster()
        cluster.lead(cluster.fronts[1])
        cluster.fronts[2].kill()
        done = run("status", url=cluster.urls)
        self.assertEqual(done.returncode, OK, done)
        self.assertIn(f"{cluster.fronts[1].url} leads, term 2\n", done.stdout)
        self.assertRegex(done.stdout, rf"{cluster.fronts[0].url} +standby +0 ")
        self.assertRegex(done.stdout, rf"{cluster.fronts[2].url} +away ")
        self.assertIn("etcd: 1 of 1 members healthy", done.stdout)
        self.assertNotIn("no space", done.stdout)
        cluster.full = True
        self.assertIn("etcd has no space left", run("status", url=cluster.urls).stdout)
        shown = json.loads(run("status", "--output", "json", url=cluster.urls).stdout)
        self.assertEqual((shown["mode"], shown["leader"], shown["term"]), ("replicated", cluster.fronts[1].url, 2))
        self.assertEqual([row["role"] for row in shown["servers"]], ["standby", "leader", "away"])
        self.assertEqual(shown["locks_held"], 0)
        # One of them is enough to find all.
        one = json.loads(run("status", "--output", "json", url=cluster.fronts[0].url).stdout)
        self.assertEqual([row["url"] for row in one["servers"]], [front.url for front in cluster.fronts])

    def test_forget(self):
        self.unlock("n", "once", token=self.hold("n", "once"), success=True)
        url = f"http://{self.server.host}:{self.server.port}"
        self.assertEqual(run("forget", "once", self.resource, url=url).stdout,
                         "forgotten: the next request does the work again\n")
        self.assertEqual(run("forget", "once", self.resource, url=url).stdout, "nothing was kept\n")
        self.assertEqual(json.loads(run("forget", "once", self.resource, "--output", "json", url=url).stdout),
                         {"forgotten": False})


class SecuredTest(SeveralCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.certificates = Certificates(harness.temporary_directory())
        cls.certificate = cls.certificates.issue("server", f"IP:{cls.server.host},DNS:localhost")
        cls.node = cls.certificates.issue("node-a", "DNS:node-a")
        cls.secret_file = os.path.join(harness.temporary_directory(), "secret")
        with open(cls.secret_file, "w", encoding="ascii") as file:
            file.write(SECRET + "\n")

    def secured(self, client_ca=None, **options):
        return self.cluster(tls=server_tls(*self.certificate, client_ca), **options)

    def run_in(self, *words, **environment):
        return run(*words, env=harness.plain_environment(**environment))

    def test_certificates_are_verified_always(self):
        cluster = self.secured(count=1)
        self.assertEqual(run("list", "--ca", self.certificates.ca, url=cluster.urls).returncode, OK)
        self.assert_fault(run("list", url=cluster.urls), UNAVAILABLE, "not trusted", "certificate")
        other = cluster.urls.replace(self.server.host, "127.0.0.1" if self.server.host != "127.0.0.1" else "127.0.0.2")
        cluster.fronts[0].host = "0.0.0.0"
        cluster.fronts[0].kill()
        cluster.fronts[0].revive()
        self.assert_fault(run("list", "--ca", self.certificates.ca, url=other), UNAVAILABLE, "not trusted")
        self.assert_fault(run("list", "--ca", "/nonexistent", url=cluster.urls), USAGE, "/nonexistent")
        plain = f"https://{self.server.host}:{self.server.port}"
        self.assert_fault(run("list", "--ca", self.certificates.ca, url=plain), UNAVAILABLE, "TLS")

    def test_a_client_certificate_is_shown_where_one_is_wanted(self):
        cluster = self.secured(client_ca=self.certificates.ca)
        with_ca = {"TURNSTILE_SERVER": cluster.urls, "TURNSTILE_CA": self.certificates.ca}
        own = {"TURNSTILE_CERT": self.node[0], "TURNSTILE_KEY": self.node[1]}
        self.assertEqual(self.run_in("list", **with_ca, **own).returncode, OK)
        self.assert_fault(self.run_in("list", **with_ca), UNAVAILABLE, "TLS")
        self.assert_fault(self.run_in("list", "--cert", self.node[0], **with_ca), USAGE, "together")

    def test_a_credential_by_file_environment_and_settings_file(self):
        cluster = self.secured(secret=SECRET)
        where = ("--server", cluster.urls, "--ca", self.certificates.ca)
        self.assertEqual(self.run_in("list", *where, "--credential-file", self.secret_file).returncode, OK)
        self.assertEqual(self.run_in("list", *where, TURNSTILE_CREDENTIAL_FILE=self.secret_file).returncode, OK)
        self.assertEqual(self.run_in("list", *where, TURNSTILE_CREDENTIAL=SECRET).returncode, OK)
        directory = harness.temporary_directory()
        settings = os.path.join(directory, "turnstile.toml")
        with open(settings, "w", encoding="ascii") as file:
            file.write(f'server = {json.dumps(cluster.urls.split(","))}\nca = "{self.certificates.ca}"\n'
                       'credential_file = "secret"\nnode = "node-of-the-file"\n')
        os.symlink(self.secret_file, os.path.join(directory, "secret"))
        token = self.run_in("lock", "build", self.resource, "--config", settings)
        self.assertEqual(token.returncode, OK, token)
        self.assertEqual(self.status("build")["holder"]["node_id"], "node-of-the-file")
        home = os.path.join(harness.temporary_directory(), ".config", "turnstile")
        os.makedirs(home)
        os.symlink(settings, os.path.join(home, "turnstile.toml"))
        os.symlink(self.secret_file, os.path.join(home, "secret"))
        self.assertEqual(self.run_in("list", HOME=home[:-len("/.config/turnstile")]).returncode, OK)
        with open(settings, "a", encoding="ascii") as file:
            file.write('tocken = "x"\n')
        self.assert_fault(self.run_in("list", "--config", settings), USAGE, "tocken")
        self.assert_fault(self.run_in("list", "--config", settings + "s"), USAGE, "No such file")

    def test_a_wrong_one_is_one_line_and_its_own_exit_code(self):
        cluster = self.secured(secret=SECRET + "x")
        where = ("--server", cluster.urls, "--ca", self.certificates.ca)
        for words in (("list",), ("lock", "build", "r"), ("exec", "build", "r", "--", "true"), ("status",), ("watch",),
                      ("lock", "build", "r", "--wait", "1m")):
            with self.subTest(words=words):
                done = self.run_in(*words, *where, "--credential-file", self.secret_file) if "--" not in words else \
                    self.run_in(words[0], *where, "--credential-file", self.secret_file, *words[1:])
                self.assert_fault(done, UNAUTHENTICATED, "credential")
        self.assert_fault(self.run_in("list", *where), UNAUTHENTICATED, "--credential-file")

    def test_it_goes_to_no_place_where_others_read_it(self):
        elsewhere = ("--server", "http://192.0.2.1:1", "--credential-file", self.secret_file)
        self.assert_fault(self.run_in("list", *elsewhere), USAGE, "http://192.0.2.1:1", "https")
        empty = os.path.join(harness.temporary_directory(), "empty")
        with open(empty, "w", encoding="ascii"):
            pass
        self.assert_fault(self.run_in("list", "--credential-file", empty), USAGE, empty)

    def test_a_command_does_not_have_it(self):
        cluster = self.secured(secret=SECRET)
        done = self.run_in("exec", "build", self.resource, "--server", cluster.urls, "--ca", self.certificates.ca, "--quiet",
                           "--", "sh", "-c", "env; tr '\\0' '\\n' < /proc/self/environ", TURNSTILE_CREDENTIAL=SECRET)
        self.assertEqual(done.returncode, OK, done)
        self.assertIn("TURNSTILE_TOKEN=", done.stdout)
        self.assertNotIn("TURNSTILE_CREDENTIAL", done.stdout)
        self.assertNotIn(SECRET, done.stdout)


class RealTlsTest(SeveralCase):
    """The server's own TLS."""

    def test_everything_goes_over_it_with_a_certificate_of_ones_own(self):
        certificates = Certificates(harness.temporary_directory())
        node = certificates.issue("node-a", "DNS:node-a")
        certificate, key = certificates.issue("server", f"IP:{self.server.host}")
        server = self.own_server("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", certificates.ca)
        url = f"https://{server.host}:{server.port}"
        way = {"TURNSTILE_SERVER": url, "TURNSTILE_CA": certificates.ca, "TURNSTILE_CERT": node[0],
               "TURNSTILE_KEY": node[1], "TURNSTILE_NODE": "node-a"}
        environment = harness.plain_environment(**way)
        watch = start("watch", "--count", "2", "--output", "json", env=environment)
        seen = []

        def seen_all():
            done = run("exec", "build", f"{self.resource}-{len(seen)}", "--quiet", "--bond", "--", "true", env=environment)
            seen.append(done)
            self.assertEqual((done.returncode, done.stderr), (OK, ""), done)
            return watch.poll() is not None
        wait_until(seen_all, "the stream has told of it")
        out, _ = watch.communicate(timeout=PATIENCE)
        self.assertEqual(len(out.splitlines()), 2)
        shown = json.loads(run("status", "--output", "json", env=environment).stdout)
        self.assertEqual(shown["server"], url)
        self.assert_fault(run("list", url=url), UNAVAILABLE, "not trusted")
        self.assert_fault(run("list", url=url.replace("https", "http")), USAGE, "https://")


if __name__ == "__main__":
    harness.main()
