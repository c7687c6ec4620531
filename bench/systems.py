"""The systems under comparison: how each is started, found ready, loaded and stopped.

Every server runs on loopback, on free ports, in a temporary directory of its own. Whatever is started
here is remembered by PID and stopped by PID.
"""

import ctypes
import http.client
import os
import shlex
import signal
import socket
import subprocess
import time

KIT = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(KIT)
BUILD = os.path.join(ROOT, "build", "bench-kit")  # generators and results; never inside the source
TURNSTILED = os.path.join(ROOT, "build", "bin", "turnstiled")

READY_SECONDS = 120  # a server that has a million locks to load needs a while on a busy machine
STOP_SECONDS = 5
JAVA_HEAP = "-Xmx512m"


# Results of quick runs are kept apart, so that they never get into a document.
def result_path(name, quick=False):
    return os.path.join(BUILD, *(["quick"] if quick else []), name + ".json")


def free_ports(count):
    """Ports that nobody listens on; held together while choosing, so that all are different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def end_with_parent():
    """Run in the child: if this program is killed, its servers get SIGTERM (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def descendants(root):
    """The PIDs of a process and all its children, for servers that fork workers."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                pass  # it has just ended
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def http_status(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


class System:
    """One server, or one cluster, and the generator that speaks to it."""

    modes = ()

    def __init__(self, name, directory):
        self.name = name
        self.directory = os.path.join(directory, name)
        self.processes = []
        os.makedirs(self.directory)

    def launch(self, command, directory=None):
        directory = directory or self.directory
        with open(os.path.join(directory, "output.log"), "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, preexec_fn=end_with_parent)
        self.processes.append(process)

    def wait_ready(self, is_ready):
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            for process in self.processes:
                if process.poll() is not None:
                    raise RuntimeError(f"{self.name} ended at once:\n{self.log_tail()}")
            try:
                if is_ready():
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} was not ready in {READY_SECONDS} s:\n{self.log_tail()}")

    def log_tail(self):
        with open(os.path.join(self.directory, "output.log"), errors="replace") as log:
            return log.read()[-1000:]

    def listens(self, port):
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True

    def pids(self):
        return [pid for process in self.processes for pid in descendants(process.pid)]

    def stop(self):
        """SIGTERM to every process of this system, SIGKILL to those that are left after a while."""
        pids = [pid for process in self.processes for pid in descendants(process.pid)]
        for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 1)):
            pids = [pid for pid in pids if send_signal(pid, number)]
            deadline = time.monotonic() + seconds
            while pids and time.monotonic() < deadline:
                for process in self.processes:
                    process.poll()  # reaps it, so that its PID is seen to be gone
                pids = [pid for pid in pids if send_signal(pid, 0)]
                time.sleep(0.02)
        self.processes = []

    def generator(self, tools, options):
        """The command that puts load on this system."""
        raise NotImplementedError

    def lockbench(self, tools, options, protocol):
        command = [tools["lockbench"], "--protocol", protocol, "--port", str(self.port),
                   *common_options(options, self), "--pipeline", str(options.pipeline),
                   "--batch", str(options.batch), "--locks", str(options.locks)]
        if getattr(options, "prefix", None):
            command += ["--prefix", options.prefix]
        return command + (["--long-keys"] if options.long_keys else [])


def send_signal(pid, number):
    """Returns whether the process was there to get it; 0 only asks."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def common_options(options, system):
    return ["--mode", options.mode, "--connections", str(options.connections),
            "--seconds", str(options.seconds), "--warmup", str(options.warmup),
            "--keys", str(options.keys), "--server-pid", ",".join(map(str, system.pids()))]


class Ours(System):
    """A server of ours, given by its command with {port} and {dir} in it."""

    modes = ("pair", "batch", "handover", "fanout", "hold", "churn", "idle")

    def __init__(self, name, directory, command):
        super().__init__(name, directory)
        self.command = command
        self.port = None

    def start(self):
        if self.port is None:  # started again, it keeps its port
            [self.port] = free_ports(1)
        command = self.command.replace("{port}", str(self.port)).replace("{dir}", self.directory)
        self.launch(shlex.split(command))
        self.wait_ready(lambda: http_status(self.port, "/readyz") != 503)

    def kill(self):
        """As a crash would: SIGKILL, and nothing is said before."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes = []

    def generator(self, tools, options):
        return self.lockbench(tools, options, "http")


class FixedAnswer(Ours):
    """Our HTTP layer alone: bench_http, which gives the same answer to everybody. One thread, as nginx has."""

    modes = ("pair", "batch", "idle")

    def generator(self, tools, options):
        return self.lockbench(tools, options, "nginx")


class Nginx(System):
    """The floor: HTTP with a fixed answer, one worker, no locking at all."""

    modes = ("pair", "batch", "idle")

    CONFIG = """
worker_processes 1; daemon off; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 16384; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ default_type application/json; return 200 '{{"acquired":true,"released":true}}'; }}
  }}
}}
"""

    def start(self):
        [self.port] = free_ports(1)
        config = os.path.join(self.directory, "nginx.conf")
        with open(config, "w") as out:
            out.write(self.CONFIG.format(dir=self.directory, port=self.port))
        self.launch(["nginx", "-c", config, "-e", os.path.join(self.directory, "error.log")])
        self.wait_ready(lambda: http_status(self.port, "/healthz") == 200)

    def generator(self, tools, options):
        return self.lockbench(tools, options, "nginx")


class Redis(System):
    modes = ("pair", "batch", "handover", "hold", "idle")

    def __init__(self, name, directory, append_only):
        super().__init__(name, directory)
        self.append_only = append_only

    def start(self):
        [self.port] = free_ports(1)
        self.launch(["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "",
                     "--dir", self.directory, "--maxclients", "60000",
                     "--appendonly", "yes" if self.append_only else "no", "--appendfsync", "always"])
        self.wait_ready(lambda: self.listens(self.port))

    def generator(self, tools, options):
        return self.lockbench(tools, options, "redis")


class Etcd(System):
    modes = ("pair", "handover")

    def __init__(self, name, directory, members):
        super().__init__(name, directory)
        self.members = members

    def start(self):
        ports = free_ports(2 * self.members)
        client_ports, peer_ports = ports[:self.members], ports[self.members:]
        self.endpoints = [f"127.0.0.1:{port}" for port in client_ports]
        cluster = ",".join(f"m{i}=http://127.0.0.1:{port}" for i, port in enumerate(peer_ports))
        for i in range(self.members):
            client, peer = (f"http://127.0.0.1:{ports[i]}" for ports in (client_ports, peer_ports))
            self.launch(["etcd", "--name", f"m{i}", "--data-dir", f"{self.directory}/m{i}",
                         "--listen-client-urls", client, "--advertise-client-urls", client,
                         "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                         "--initial-cluster", cluster, "--initial-cluster-token", self.name,
                         "--logger", "zap", "--log-level", "error"])
        self.wait_ready(lambda: all(http_status(port, "/health") == 200 for port in client_ports))

    def generator(self, tools, options):
        return [tools["etcdbench"], "--endpoints", ",".join(self.endpoints),
                *common_options(options, self)]


class ZooKeeper(System):
    modes = ("pair", "handover")

    def start(self):
        [self.port] = free_ports(1)
        config = os.path.join(self.directory, "zoo.cfg")
        with open(config, "w") as out:
            out.write(f"tickTime=2000\ndataDir={self.directory}/data\nclientPort={self.port}\n"
                      "clientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n")
        self.launch(["java", "-cp", "/usr/share/java/zookeeper.jar", JAVA_HEAP,
                     "org.apache.zookeeper.server.quorum.QuorumPeerMain", config])
        self.wait_ready(lambda: self.listens(self.port))

    def generator(self, tools, options):
        return [tools["zkbench"], "--endpoints", f"127.0.0.1:{self.port}",
                *common_options(options, self)]


PEERS = {
    "nginx": (Nginx, {}),
    "redis": (Redis, {"append_only": False}),
    "redis-aof": (Redis, {"append_only": True}),
    "etcd1": (Etcd, {"members": 1}),
    "etcd3": (Etcd, {"members": 3}),
    "zookeeper": (ZooKeeper, {}),
}


def has_mode(peer, mode):
    return mode in PEERS[peer][0].modes


def turnstiled(store, server=TURNSTILED, more=""):
    """The command of our server with `memory` or `file` as its store."""
    where = "memory" if store == "memory" else "file:{dir}/data"
    return f"{server} --listen 127.0.0.1:{{port}} --store {where} --log-level warning {more}".rstrip()


def make_peer(peer, directory):
    kind, settings = PEERS[peer]
    return kind(peer, directory, **settings)


# What each peer needs from Debian, by the file that shows it is there.
PACKAGES = {
    "nginx": {"nginx-light": "/usr/sbin/nginx"},
    "tls": {"libssl-dev": "/usr/include/openssl/ssl.h", "slowhttptest": "/usr/bin/slowhttptest",
            "testssl.sh": "/usr/bin/testssl"},
    "redis": {"redis-server": "/usr/bin/redis-server"},
    "redis-aof": {"redis-server": "/usr/bin/redis-server"},
    "etcd1": {"etcd-server": "/usr/bin/etcd", "golang-go": "/usr/bin/go",
              "golang-etcd-server-dev": "/usr/share/gocode/src/go.etcd.io/etcd/clientv3"},
    "zookeeper": {"zookeeper": "/usr/share/java/zookeeper.jar", "golang-go": "/usr/bin/go",
                  "golang-github-samuel-go-zookeeper-dev":
                      "/usr/share/gocode/src/github.com/samuel/go-zookeeper"},
}
PACKAGES["etcd3"] = PACKAGES["etcd1"]


def install(names):
    """Installs what the named systems need from Debian; does nothing when it is all there."""
    wanted = {"g++": "/usr/bin/g++"}
    for name in names:
        wanted.update(PACKAGES[name])
    missing = [package for package, path in wanted.items() if not os.path.exists(path)]
    if not missing:
        return
    print("installing:", " ".join(missing), flush=True)
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    prefix += ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    command = prefix + ["install", "-y", "--no-install-recommends", *missing]
    if subprocess.run(command).returncode != 0:
        subprocess.run(prefix + ["update"], check=True)
        subprocess.run(command, check=True)


def build(names, build_directory):
    """Compiles the generators that the named systems need, unless they are there and new; returns their paths."""
    os.makedirs(build_directory, exist_ok=True)
    tools = {"lockbench": os.path.join(build_directory, "lockbench")}
    sources = [os.path.join(KIT, "generator", name) for name in os.listdir(os.path.join(KIT, "generator"))]
    if is_older(tools["lockbench"], sources):
        subprocess.run(["g++", "-std=c++20", "-O2", "-o", tools["lockbench"],
                        os.path.join(KIT, "generator", "lockbench.cc")], check=True)
    environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "",
                   "GOPATH": os.path.join(KIT, "go") + ":/usr/share/gocode",
                   "GOCACHE": os.path.join(build_directory, "go-cache")}
    for tool, users in {"etcdbench": ("etcd1", "etcd3"), "zkbench": ("zookeeper",)}.items():
        if any(name in users for name in names):
            tools[tool] = os.path.join(build_directory, tool)
            subprocess.run(["go", "build", "-o", tools[tool], tool], env=environment, check=True)
    return tools


def is_older(path, sources):
    return not os.path.exists(path) or any(os.path.getmtime(path) < os.path.getmtime(each) for each in sources)
