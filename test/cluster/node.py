"""One node of a cluster: a containerd of its own and its turnstile-content."""
import collections
import hashlib
import os
import re
import subprocess
import urllib.error
import urllib.request

from processes import PATIENCE, Process, binary, die_with_parent, read

PACKAGING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging")
CRI = '"io.containerd.grpc.v1.cri"'  # what kubelet talks to; takes its time to start, and few tests are about it
NOT_NEEDED = {1: CRI, 2: CRI + ', "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"'}


def containerd_major(program):
    said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"\bv?(\d+)\.\d+\.\d+", said)[1])


class Node:
    """One containerd and its plugin."""

    def __init__(self, cluster, name, roots):
        self.cluster, self.name, self.roots = cluster, name, roots
        self.directory = os.path.join(cluster.directory, name)
        self.socket = os.path.join(self.directory, "c.sock")
        os.makedirs(os.path.join(self.directory, "run"), mode=0o700)
        self._config = os.path.join(self.directory, "config.toml")
        self.plugin = self.containerd = None
        # TURNSTILE_CONTAINERD_NODE_B=/path/containerd makes that node one of another version; its ctr lies beside it.
        self.program = os.environ.get("TURNSTILE_CONTAINERD_" + name.upper().replace("-", "_"), "containerd")
        self.ctr_program = os.path.join(os.path.dirname(self.program), "ctr")
        self._lives = 0
        self.link = None     # what lies between the plugin and the server, in some tests
        self.flags = []      # of this plugin only
        self.listeners = []  # of the plugin, if it does not make its socket itself
        self.plugin_socket = os.path.join(self.directory, "run/content.sock")

    def start(self):
        self.start_plugin()
        self._write_config()
        return self.start_containerd()

    def _write_config(self):
        """What packaging/ tells users to write, and what makes this containerd one of several on a machine."""
        major = containerd_major(self.program)
        shipped = read(os.path.join(PACKAGING, f"containerd-config-{'1.6' if major == 1 else '2.x'}.toml"))
        shipped = shipped.replace("/run/turnstile-content/content.sock", self.plugin_socket)
        if not self.cluster.cri:
            shipped = shipped.replace("disabled_plugins = [", f"disabled_plugins = [{NOT_NEEDED[major]}, ")
        with open(self._config, "w", encoding="utf-8") as file:
            file.write(f'''root = "{self.directory}/root"
state = "{self.directory}/state"
{shipped}
[grpc]
  address = "{self.socket}"
[ttrpc]
  address = "{self.socket}.ttrpc"
{self.cluster.containerd_config}
''')

    def start_containerd(self):
        """Also again, after it was killed."""
        self.containerd = Process([self.program, "-c", self._config], os.path.join(self.directory, "containerd.log"))
        self.containerd.wait_until(lambda: self.ctr("version", check=False).returncode == 0, "answers")
        return self

    def start_plugin(self):
        self._lives += 1
        self.plugin = Process([binary("turnstile-content"), "--socket", self.plugin_socket, "--node", self.name,
                               "--server", self.link.url if self.link else self.cluster.plugin_url, "--state", os.path.join(self.directory, "content"),
                               "--metrics-listen", "127.0.0.1:0", *self.roots, *self.cluster.plugin_flags, *self.flags],
                              os.path.join(self.directory, "plugin.log"), self.listeners)
        self.plugin.wait_until(lambda: read(self.plugin.log).count("listening on ") == self._lives, "listens")

    def ctr(self, *arguments, check=True, **more):
        done = subprocess.run([self.ctr_program, "-a", self.socket, "-n", self.cluster.namespace, *arguments],
                              capture_output=True, check=False, timeout=PATIENCE, **more)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: ctr {' '.join(arguments)}:\n{done.stderr.decode()[-3000:]}\n"
                                 f"plugin:\n{read(self.plugin.log)[-3000:] if self.plugin else 'none'}")
        return done

    def begin_pull(self, ref):
        return subprocess.Popen([self.ctr_program, "-a", self.socket, "images", "pull", "--plain-http", ref],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)

    def pull(self, ref, check=True):
        return self.ctr("images", "pull", "--plain-http", ref, check=check)

    def cri(self, *arguments, check=True):
        """What kubelet asks: pull IMAGE, list, remove IMAGE. The lines of the answer; None: it was refused."""
        done = subprocess.run([binary("cri_client"), self.socket, *arguments], capture_output=True, text=True, check=False,
                              timeout=PATIENCE)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {' '.join(arguments)}:\n{done.stderr[-3000:]}\n"
                                 f"plugin:\n{read(self.plugin.log)[-3000:]}")
        return done.stdout.split() if done.returncode == 0 else None

    def begin_cri_pull(self, ref):
        return subprocess.Popen([binary("cri_client"), self.socket, "pull", ref], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, preexec_fn=die_with_parent)

    def blobs(self):
        """What this node has, as it says."""
        return set(self.ctr("content", "ls", "-q").stdout.decode().split())

    def sha256_of(self, digest):
        return "sha256:" + hashlib.sha256(self.ctr("content", "get", digest).stdout).hexdigest()

    def ingests(self):
        """What this node has begun and not ended, as files in its root."""
        directory = os.path.join(self.roots[1], "ingest", self.name)
        return [os.path.join(directory, name) for name in os.listdir(directory)]

    def end_leases(self):
        """What a killed ctr leaves: containerd would keep all that it had begun for a day."""
        for lease in self.ctr("leases", "ls", "-q").stdout.decode().split():
            self.ctr("leases", "rm", "--sync", lease)

    def remove(self, ref):
        """Ends this node's use of an image, and waits until garbage collection has run."""
        self.ctr("images", "rm", "--sync", ref)

    def log(self):
        return read(self.containerd.log)

    def monitor(self, path):
        """(status, body) of the plugin's own HTTP."""
        address = re.findall(r"^metrics on (\S+)$", read(self.plugin.log), re.M)[-1]
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self):
        """name without "turnstile_content_" -> value"""
        found = re.findall(r"^turnstile_content_(\w+) (\S+)$", self.monitor("/metrics")[1], re.M)
        return collections.Counter({name: int(float(value)) for name, value in found})

    def stop(self):
        for process in (self.containerd, self.plugin):
            if process and process.alive():
                process.stop()
