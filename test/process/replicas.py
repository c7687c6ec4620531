"""Three turnstiled on one etcd, and what asks whichever of them leads."""
import urllib.parse

from client import BrokenAnswer, Client
from harness import Server, wait_until

LEASE = 3  # seconds, of the leader


class Replicas:
    """The servers of one prefix. For a Workload it looks like one server: `host` and `port` are the leader's, as far as
    anybody knows."""

    timeout = 8  # a leader that was stopped does not answer

    def __init__(self, etcd, prefix, *flags, count=3, lease=LEASE):
        self.servers = [Server("--leader-lease", f"{lease}s", *flags, store=etcd.store(prefix)) for _ in range(count)]
        self.believed = 0

    def start(self):
        for server in self.servers:
            server.start()
        return self

    @property
    def host(self):
        return self.servers[self.believed].host

    @property
    def port(self):
        return self.servers[self.believed].port

    def look_elsewhere(self, answer=None):
        """The last one did not answer, or said who does."""
        named = (answer.body.get("leader") or "") if answer is not None else ""
        for i, server in enumerate(self.servers):
            if named and urllib.parse.urlsplit(named).netloc == f"{server.host}:{server.port}":
                self.believed = i
                return
        self.believed = (self.believed + 1) % len(self.servers)

    def ask(self, server, path="/servers", timeout=5):
        """None: it does not answer."""
        if not server.alive():
            return None
        client = Client(server.host, server.port, timeout=timeout)
        try:
            return client.get(path)
        except (OSError, BrokenAnswer):
            return None
        finally:
            client.close()

    def role(self, server):
        answer = self.ask(server)
        return answer.body.get("role") if answer is not None and answer.status == 200 else None

    def leading(self, among=None):
        """A server that says that it is ready, or None."""
        for server in among or self.servers:
            answer = self.ask(server, "/readyz", timeout=2)
            if answer is not None and answer.status == 200:
                return server
        return None

    def leader(self, among=None):
        return wait_until(lambda: self.leading(among), "a server leads", every=0.02)

    def standbys(self):
        leader = self.leader()
        return [server for server in self.servers if server is not leader]

    def wait_until_in_step(self):
        def is_in_step(server):
            answer = self.ask(server, "/readyz?standby=1")
            return answer is not None and answer.status == 200
        wait_until(lambda: all(is_in_step(server) for server in self.servers), "all are in step", every=0.05)

    def close_clients(self):
        for server in self.servers:
            server.close_clients()

    def remove(self):
        for server in self.servers:
            server.remove()
