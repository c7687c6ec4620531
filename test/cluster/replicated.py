"""Three turnstiled on a real etcd, for a Cluster whose nodes know all three of them."""
from etcd import Etcd
from replicas import LEASE, Replicas


class Replicated(Replicas):
    flags = ()

    def __init__(self, cluster, members=1, lease=LEASE):
        self._cluster, self.etcd = cluster, Etcd(members).start()
        super().__init__(self.etcd, "cluster", "--bond-grace", "3s", "--claim-timeout", "10s", *self.flags, lease=lease)
        self.start()
        self.look_at_leader()
        self.wait_until_in_step()

    @property
    def urls(self):
        return ",".join(f"http://{server.host}:{server.port}" for server in self.servers)

    @staticmethod
    def flags_of(_node):
        return []

    def look_at_leader(self, among=None):
        """What the cluster looks at itself."""
        leader = self.leader(among)
        self._cluster.server_port = leader.port
        return leader

    def close(self):
        self.remove()
        self.etcd.remove()
