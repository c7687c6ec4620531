"""Web pages of others (S51), with a real server: what a browser sends for them is refused."""
import json
import os
import subprocess

import harness
from access import As, make_certificates, unverified_connection
from harness import ServerCase


class ForeignPageTest(ServerCase):
    """A page that is open on the machine of somebody whose server needs no credential."""

    store = "memory"

    def call(self, method, path, body=None, **headers):
        client = As(self.server, headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.addCleanup(client.close)
        return client.call(method, path, body)

    def test_S51_what_foreign_pages_can_send_is_refused(self):
        held = self.hold("n", "own")
        lane = {"type": "own", "resource_id": self.resource}
        targets = [("POST", "/lock", {**lane, "node_id": "evil"}), ("POST", "/unlock", {**lane, "node_id": "n"}),
                   ("POST", "/admin/break", {**lane, "reason": "evil"}), ("GET", "/locks", None), ("GET", "/events", None),
                   ("GET", f"/lock/status?type=own&resource_id={self.resource}", None), ("OPTIONS", "/lock", None),
                   ("GET", "/metrics", None), ("POST", "/batch", {"requests": []})]
        ours = f"{self.server.host}:{self.server.port}"
        pages = [
            {"Origin": "http://evil.example", "Content_Type": "text/plain"},
            {"Origin": "https://evil.example", "Content_Type": "application/x-www-form-urlencoded"},
            {"Origin": "null", "Content_Type": "multipart/form-data; boundary=x"},
            {"Origin": "null", "Sec_Fetch_Site": "cross-site"},
            {"Origin": f"http://{self.server.host}:1"},  # another program's page on this machine
            {"Origin": "http://" + ours + ".evil.example"},
            {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},  # an <img>, a <script>
            {"Sec_Fetch_Site": "same-site"},  # another port of localhost
            {"Host": "evil.example"},  # a name that was made to point here
            {"Host": f"evil.example:{self.server.port}", "Origin": f"http://evil.example:{self.server.port}",
             "Sec_Fetch_Site": "same-origin"},
            {"Host": "127.0.0.1.evil.example"},
        ]
        for page in pages:
            for method, path, body in targets:
                with self.subTest(page=page, path=path):
                    self.assert_refused(self.call(method, path, body, **page), 403, "foreign_origin")
        self.assertEqual(self.status("own")["holder"]["token"], held)

    def test_S51_our_own_page_programs_and_curl_go_on_working(self):
        ours = f"{self.server.host}:{self.server.port}"
        for page in ({}, {"Origin": "http://" + ours, "Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"},
                     {"Host": "localhost:8086"}, {"Host": "127.0.0.1"}, {"Host": "[::1]:1"}):
            self.assertEqual(self.call("GET", "/locks", **page).status, 200, page)
        self.assertEqual(self.call("GET", "/", Sec_Fetch_Site="cross-site").status, 200)  # a link to it, anywhere
        self.assertEqual(self.call("GET", "/healthz", Host="load-balancer").status, 200)
        body = json.dumps({"type": "pull", "resource_id": self.resource, "node_id": "node-a"})
        run = subprocess.run(["curl", "-s", f"http://{ours}/lock", "-d", body], capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(run.stdout)["state"], "acquired")

    def test_S51_a_name_that_the_server_was_told_of_is_its_own(self):
        server = self.own_server("--host", "locks.example", store="memory")
        good = As(server, headers={"Host": "locks.example:1234"})
        self.assertEqual(good.get("/locks").status, 200)
        proxied = As(server, headers={"Origin": "https://locks.example"})
        self.assertEqual(proxied.get("/locks").status, 200)

    def test_S51_the_names_in_its_certificate_are_its_own_but_pages_of_other_ports_there_are_not(self):
        pki = harness.temporary_directory()
        make_certificates(pki, "server", alternatives={"server": "DNS:certified.example,DNS:*.wild.example"})
        server = self.own_server("--tls-cert", os.path.join(pki, "server.crt"), "--tls-key", os.path.join(pki, "server.key"),
                                 store="memory")

        def status(**headers):
            client = As(server, headers=headers)
            client.connection = unverified_connection(server)
            return client.get("/locks").status
        self.assertEqual(status(Host="Certified.example:1234"), 200)
        self.assertEqual(status(Host="certified.example:1234", Origin="https://certified.example:1234"), 200)
        self.assertEqual(status(Host="certified.example:1234", Origin="https://certified.example"), 403)
        self.assertEqual(status(Host="any.wild.example"), 403)

    def test_S51_on_a_unix_socket_any_host_will_do(self):
        path = os.path.join(harness.temporary_directory(), "socket")
        self.own_server("--listen", "unix:" + path, store="memory")
        run = subprocess.run(["curl", "-s", "--unix-socket", path, "http://whatever.example/locks"], capture_output=True,
                             text=True, check=True)
        self.assertIn("locks", json.loads(run.stdout))


if __name__ == "__main__":
    harness.main()
