"""TLS of the real server: its settings, SIGHUP, and clients that are not ours. What else it does through TLS is shown by
the other files, which run with TEST_TLS=1, too."""
import os
import shutil
import signal
import ssl
import subprocess
import unittest

import client as wire
import harness
from harness import wait_until


class TlsTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(setattr, wire, "TLS", wire.TLS)
        self.flags = harness.tls_files()
        self.certificate, self.key = self.flags[1], self.flags[3]
        self.server = harness.Server(*self.flags)
        self.addCleanup(self.server.remove)

    def shown(self):
        """The certificate that a new connection is shown."""
        return ssl.get_server_certificate((self.server.host, self.server.port))

    def read(self, path):
        with open(path, encoding="ascii") as file:
            return file.read()

    def test_it_says_where_TLS_is_spoken_and_curl_can_speak_it(self):
        self.server.start()
        self.assertEqual(self.server.addresses, [f"https://{self.server.host}:{self.server.port}"])
        for versions in (["--tls-max", "1.2"], ["--tlsv1.3"]):
            said = subprocess.run(
                ["curl", "-sk", *versions, f"{self.server.addresses[0]}/healthz"], stdout=subprocess.PIPE, check=True)
            self.assertEqual(said.stdout, b'{"status":"ok"}')

    def test_who_forgets_the_s_is_told_so(self):
        self.server.start()
        wire.TLS = None
        answer = self.server.client().get("/healthz")
        self.assertEqual(answer.status, 400)
        self.assertIn("https://", answer["error"])

    def test_SIGHUP_brings_a_new_certificate_and_breaks_no_bond(self):
        self.server.start()
        holder = self.server.client()
        self.assertEqual(holder.lock("r", "a", monitor=True)["state"], "acquired")
        before = self.shown()
        fresh = harness.tls_files()
        wire.TLS.load_verify_locations(self.certificate)
        shutil.copy(fresh[1], self.certificate)
        shutil.copy(fresh[3], self.key)
        os.kill(self.server.pid, signal.SIGHUP)
        wait_until(lambda: self.shown() != before, "the new certificate is shown")
        self.assertEqual(self.shown(), self.read(self.certificate))
        self.assertEqual(self.server.client().status("r")["holder"]["node_id"], "a")
        self.assertEqual(holder.unlock("r", "a").status, 200, "the connection from before goes on")

    def test_SIGHUP_with_a_bad_file_keeps_the_old_one_and_says_so(self):
        self.server.start()
        before = self.shown()
        with open(self.key, "w", encoding="ascii") as file:
            file.write("no key\n")
        os.kill(self.server.pid, signal.SIGHUP)
        wait_until(lambda: self.key in self.server.log(), "it is told")
        self.assertEqual(self.shown(), before)

    def test_a_server_whose_files_are_no_good_does_not_start(self):
        os.unlink(self.key)
        with self.assertRaisesRegex(AssertionError, "server.key"):
            self.server.start()


if __name__ == "__main__":
    harness.main()
