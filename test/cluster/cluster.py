"""Several containerds on one machine, each with its turnstile-content, one turnstiled and one registry: all of them real.

Every process is started here, is ended by its id, and dies with this one; every file is below one directory, which is
removed. Needs root (containerd does) and Debian's containerd, docker-registry, skopeo, umoci, runc, busybox-static, and
for the shared mount mergerfs and fuse3.
"""
import atexit
import collections
import ctypes
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

from registry_proxy import RegistryProxy

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = ("containerd", "ctr", "docker-registry", "skopeo", "umoci", "runc", "busybox")
PATIENCE = 120
_libc = ctypes.CDLL(None)
_clusters = []


def missing():
    """Why no cluster can run here, in a sentence; None: it can."""
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    if absent:
        return "not installed: " + ", ".join(absent)
    if os.geteuid() != 0:
        return "containerd needs root"
    for name in ("turnstiled", "turnstile-content"):
        if not os.access(binary(name), os.X_OK):
            return f"there is no {binary(name)}: run ./dev build"
    return None


def binary(name):
    variable = name.upper().replace("-", "_")
    return os.path.abspath(os.environ.get(variable) or os.path.join(HERE, "../../build/bin", name))


def wait_until(condition, what, timeout=PATIENCE, every=0.02):
    end = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(every)
    return value


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Process:
    """A program that runs until stop() or kill(); what it says goes to a file."""

    def __init__(self, command, log):
        self.log = log
        with open(log, "ab") as out:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                             preexec_fn=_die_with_parent)
        self.pid = self._process.pid

    def alive(self):
        return self._process.poll() is None

    def stop(self, number=signal.SIGTERM):
        if self.alive():
            os.kill(self.pid, number)
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self._process.wait()
            raise AssertionError(f"did not end, see its last words:\n{read(self.log)[-2000:]}") from None

    def kill(self):
        return self.stop(signal.SIGKILL)

    def wait_for_line(self, pattern):
        def found():
            if match := re.search(pattern, read(self.log)):
                return match
            if not self.alive():
                raise AssertionError("ended at once:\n" + read(self.log))
            return None
        return wait_until(found, f"'{pattern}' in {self.log}")


class Node:
    """One containerd and its plugin."""

    def __init__(self, cluster, name, roots):
        self.cluster, self.name, self.roots = cluster, name, roots
        self.directory = os.path.join(cluster.directory, name)
        self.socket = os.path.join(self.directory, "c.sock")
        os.makedirs(os.path.join(self.directory, "run"), mode=0o700)
        self.plugin = self.containerd = None
        self._lives = 0
        self.plugin_socket = os.path.join(self.directory, "run/content.sock")

    def start(self):
        self.start_plugin()
        config = os.path.join(self.directory, "config.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'''version = 2
root = "{self.directory}/root"
state = "{self.directory}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.content.v1.content"]
[grpc]
  address = "{self.socket}"
[ttrpc]
  address = "{self.socket}.ttrpc"
[proxy_plugins.turnstile]
  type = "content"
  address = "{self.plugin_socket}"
''')
        self.containerd = Process(["containerd", "-c", config], os.path.join(self.directory, "containerd.log"))
        wait_until(lambda: self.ctr("version", check=False).returncode == 0, f"{self.name}'s containerd")
        return self

    def start_plugin(self):
        self._lives += 1
        self.plugin = Process([binary("turnstile-content"), "--socket", self.plugin_socket, "--node", self.name,
                               "--server", self.cluster.server_url, "--state", os.path.join(self.directory, "content"),
                               "--metrics-listen", "127.0.0.1:0", *self.roots, *self.cluster.plugin_flags], os.path.join(self.directory, "plugin.log"))
        wait_until(lambda: read(self.plugin.log).count("listening on ") == self._lives, "the plugin")

    def ctr(self, *arguments, check=True, **more):
        done = subprocess.run(["ctr", "-a", self.socket, *arguments], capture_output=True, check=False,
                              timeout=PATIENCE, **more)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: ctr {' '.join(arguments)}:\n{done.stderr.decode()[-3000:]}\n"
                                 f"plugin:\n{read(self.plugin.log)[-3000:]}")
        return done

    def begin_pull(self, ref):
        return subprocess.Popen(["ctr", "-a", self.socket, "images", "pull", "--plain-http", ref],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=_die_with_parent)

    def pull(self, ref, check=True):
        return self.ctr("images", "pull", "--plain-http", ref, check=check)

    def blobs(self):
        """What this node has, as it says."""
        return set(self.ctr("content", "ls", "-q").stdout.decode().split())

    def sha256_of(self, digest):
        return "sha256:" + hashlib.sha256(self.ctr("content", "get", digest).stdout).hexdigest()

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


class Cluster:
    """nodes; shared "plain": one directory is everybody's root; "mergerfs": a root each, and one mount of all."""

    def __init__(self, nodes=3, shared="plain", plugin_flags=(), directory=None, server_flags=()):
        # A short path: those of sockets must not be longer than 107 bytes.
        self.directory = directory or tempfile.mkdtemp(prefix="ts-", dir="/tmp")
        _clusters.append(self)
        self.plugin_flags, self._server_flags = list(plugin_flags), server_flags
        self._processes, self.nodes, self.mount, self.proxy = [], [], None, None
        self._start_server()
        self._start_registry()
        self.proxy = RegistryProxy(self.registry_port)
        self.nodes = [Node(self, name, roots) for name, roots in self._roots(nodes, shared)]
        for node in self.nodes:
            node.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _run(self, command, name):
        process = Process(command, self._path(name + ".log"))
        self._processes.append(process)
        return process

    def _start_server(self):
        port = free_port()
        self.server_url = f"http://127.0.0.1:{port}"
        self._server_command = [binary("turnstiled"), "--store", "file:" + self._path("journal"),
                                "--listen", f"127.0.0.1:{port}"]
        self.start_server(*self._server_flags)

    def start_server(self, *more):
        """Also again, after it was killed."""
        self.turnstiled = self._run(self._server_command + list(more), "turnstiled")
        wait_until(lambda: self._answers(self.server_url), "turnstiled")

    @staticmethod
    def _answers(url):
        host, port = url.rsplit("/", 1)[1].split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def _start_registry(self):
        self.registry_port = free_port()
        config = self._path("registry.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"version": 0.1, "log": {"level": "info", "accesslog": {"disabled": False}},
                       "storage": {"filesystem": {"rootdirectory": self._path("registry")}},
                       "http": {"addr": f"127.0.0.1:{self.registry_port}"}}, file)
        self.registry = self._run(["docker-registry", "serve", config], "registry")
        wait_until(lambda: self._answers(f"http://127.0.0.1:{self.registry_port}"), "the registry")

    def _roots(self, nodes, shared):
        names = [f"node-{chr(ord('a') + i)}" for i in range(nodes)]
        if shared == "plain":
            self.blob_directories = [self._path("shared/blobs")]
            self.references = self._path("shared/references")
            return [(name, ["--root", self._path("shared")]) for name in names]
        own = [self._path(f"disk-{name}") for name in names]
        for path in own + [self._path("all")]:
            os.makedirs(path)
        self.mount = self._path("all")
        subprocess.run(["mergerfs", "-o", "cache.files=off,dropcacheonclose=true,category.create=mfs", ":".join(own),
                        self.mount], check=True, capture_output=True)
        self.blob_directories = [os.path.join(path, "blobs") for path in own]
        self.references = os.path.join(self.mount, "references")
        if "client" in self.plugin_flags:  # --references
            os.mkdir(self.references)
            self.plugin_flags += ["--references-dir", self.references]
        return [(name, ["--root", path, "--read-root", self.mount]) for name, path in zip(names, own)]

    def make_image(self, name="test/img", layers=3, mebibytes=8, seed=1):
        """Pushes an image of random bytes, with a shell in it. Returns (ref, its blobs' digests and sizes)."""
        layout = self._path(f"oci-{seed}")
        image = f"{layout}:v1"
        run = lambda *command: subprocess.run(command, check=True, capture_output=True)
        run("umoci", "init", "--layout", layout)
        run("umoci", "new", "--image", image)
        for number in range(layers):
            tar = self._path("layer.tar")
            self._write_layer(tar, number, mebibytes, random.Random(seed * 1000 + number))
            run("umoci", "raw", "add-layer", "--image", image, tar)
        run("umoci", "config", "--image", image, "--config.cmd", "/bin/sh")
        run("skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", f"oci:{image}",
            f"docker://127.0.0.1:{self.registry_port}/{name}:v{seed}")
        shutil.rmtree(layout)
        return f"127.0.0.1:{self.proxy.port}/{name}:v{seed}", self._blobs_of(name, f"v{seed}")

    def _write_layer(self, path, number, mebibytes, source):
        with tarfile.open(path, "w") as tar:
            def add(name, data, mode=0o644):
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(data), mode
                tar.addfile(info, io.BytesIO(data))
            add(f"data-{number}", source.randbytes(mebibytes << 20))
            if number == 0:
                with open(shutil.which("busybox"), "rb") as file:
                    add("bin/busybox", file.read(), 0o755)
                link = tarfile.TarInfo("bin/sh")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)

    def _blobs_of(self, name, tag):
        raw = subprocess.run(["skopeo", "inspect", "--raw", "--tls-verify=false",
                              f"docker://127.0.0.1:{self.registry_port}/{name}:{tag}"],
                             check=True, capture_output=True).stdout
        manifest = json.loads(raw)
        blobs = {"sha256:" + hashlib.sha256(raw).hexdigest(): len(raw)}
        for part in [manifest["config"], *manifest["layers"]]:
            blobs[part["digest"]] = part["size"]
        return blobs

    def registry_gets(self, digest):
        """How often the registry's own log tells of it."""
        return len(re.findall(rf'"GET /v2/\S+/(?:blobs|manifests)/{digest} HTTP/1\.\d" 2', read(self.registry.log)))

    def files_of(self, digest):
        """Where it lies on the disks."""
        paths = [os.path.join(directory, digest.replace(":", "/")) for directory in self.blob_directories]
        return [path for path in paths if os.path.exists(path)]

    def users_of(self, digest):
        """With --references client: the nodes that use it, as the files tell."""
        algorithm, digits = digest.split(":")
        shard = os.path.join(self.references, algorithm, digits[:2])
        names = os.listdir(shard) if os.path.isdir(shard) else []
        return sorted(name.split(".", 1)[1] for name in names if name.startswith(digits))

    def all_files(self):
        return [os.path.join(path, name) for directory in self.blob_directories
                for path, _, names in os.walk(directory) for name in names]

    def close(self):
        if self not in _clusters:
            return
        _clusters.remove(self)
        if self.proxy:
            self.proxy.close()
        for node in self.nodes:
            node.stop()
        for process in self._processes:
            process.stop()
        if self.mount:
            subprocess.run(["fusermount3", "-u", "-z", self.mount], check=False, capture_output=True)
        self._unmount_rest()
        if os.environ.get("TURNSTILE_KEEP"):
            print("kept:", self.directory, file=sys.stderr)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _unmount_rest(self):
        """Snapshots and containers that a test left mounted below our own directory."""
        for line in reversed(read("/proc/self/mounts").splitlines()):
            if line.split()[1].startswith(self.directory + "/"):
                subprocess.run(["umount", "-l", line.split()[1]], check=False, capture_output=True)


@atexit.register
def _clean_up():
    for cluster in list(_clusters):
        cluster.close()
