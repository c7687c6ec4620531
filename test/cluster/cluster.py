"""Several containerds on one machine, each with its turnstile-content, one turnstiled and one registry: all are real.

Every process is started here, is ended by its id, and dies with this one; every file is below one directory, which is
removed. Needs root (containerd does) and Debian's containerd, docker-registry, skopeo, umoci, runc, busybox-static, and
for the shared mount mergerfs and fuse3.
"""
import atexit
import contextlib
import hashlib
import io
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../process"))
from client import Client, Stream  # noqa: E402
from node import Node  # noqa: E402
from processes import Process, binary, free_port, own_address, read, wait_until  # noqa: E402
from registry_proxy import RegistryProxy  # noqa: E402
from server_link import ServerLink  # noqa: E402

_clusters = []


class Cluster:
    """`shared` says how the nodes see each other's blobs: one of the methods _roots_…."""

    def __init__(self, nodes=3, shared="plain", plugin_flags=(), directory=None, containerd_config="",
                 server_flags=(), links=False, cri=False, several=None):
        # A short path: those of sockets must not be longer than 107 bytes.
        self.directory = directory or tempfile.mkdtemp(prefix="ts-", dir="/tmp")
        _clusters.append(self)
        self.plugin_flags, self._server_flags = list(plugin_flags), server_flags
        self._counted_by_nodes = "client" in self.plugin_flags  # --references
        self.containerd_config = containerd_config  # lines of TOML, for every node
        self.cri, self.namespace = cri, "k8s.io" if cri else "default"  # where containerd keeps what kubelet asks for
        self.admin = None
        self._processes, self.nodes, self.mount, self.proxy = [], [], None, None
        self._start_server()
        self.several = several and several(self)  # servers of which one leads, or ones that want to know who asks
        self.plugin_url = self.several.urls if several else self.server_url
        self._start_registry()
        self.proxy = RegistryProxy(own_address(), self.registry_port)
        names = [f"node-{chr(ord('a') + i)}" for i in range(nodes)]
        roots = getattr(self, "_roots_" + shared)(names)
        self.nodes = [Node(self, name, roots) for name, roots in zip(names, roots)]
        for node in self.nodes:
            node.link = ServerLink(own_address(), self.server_port) if links else None
            if several:
                node.flags += self.several.flags_of(node)
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
        self.server_port = port = free_port()
        self.server_url = f"http://{own_address()}:{port}"
        self.store = self._path("journal")
        self._server_command = [binary("turnstiled"), "--store", "file:" + self.store,
                                "--listen", f"http://{own_address()}:{port}"]
        self.start_server()

    def start_server(self, flags=None):
        """Also again, after it was killed, and with other flags than it had."""
        flags = self._server_flags if flags is None else flags
        self.turnstiled = self._run(self._server_command + list(flags), "turnstiled")
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
                       "http": {"addr": f"{own_address()}:{self.registry_port}"}}, file)
        self.registry = self._run(["docker-registry", "serve", config], "registry")
        wait_until(lambda: self._answers(f"http://{own_address()}:{self.registry_port}"), "the registry")

    def _roots_plain(self, names):
        """One directory is everybody's root."""
        self.blob_directories = [self._path("shared/blobs")]
        self._reference_directory = self._path("shared/references")
        return [["--root", self._path("shared")] for _ in names]

    def _roots_small(self, names):
        """The same, on a file system that is soon full."""
        os.makedirs(self._path("shared"))
        self.resize_disk("24m", "rw")
        return self._roots_plain(names)

    def resize_disk(self, size, how="remount"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"{how},size={size}", "tmpfs", self._path("shared")], check=True,
                       capture_output=True)

    def _own_disks(self, names):
        own = [self._path(f"disk-{name}") for name in names]
        for path in own + [self._path("all")]:
            os.makedirs(path)
        self.blob_directories = [os.path.join(path, "blobs") for path in own]
        return own, self._path("all")

    def _roots_late(self, names):
        """A root each, and a directory that shows of the others' what a test puts there with show()."""
        own, self.view = self._own_disks(names)
        os.makedirs(os.path.join(self.view, "blobs"))  # without it, it would pass for a mount that is missing
        self.blob_directories.append(os.path.join(self.view, "blobs"))
        return [["--root", path, "--read-root", self.view] for path in own]

    def show(self, digest):
        """Makes a blob appear in the view that the nodes have of each other's disks."""
        name = digest.replace(":", "/")
        seen = os.path.join(self.view, "blobs", name)
        os.makedirs(os.path.dirname(seen), exist_ok=True)
        os.link(next(path for path in self.files_of(digest)), seen)

    def _roots_mergerfs(self, names):
        """A root each, and one mount of all."""
        own, self.mount = self._own_disks(names)
        subprocess.run(["mergerfs", "-o", "cache.files=off,dropcacheonclose=true,category.create=mfs", ":".join(own),
                        self.mount], check=True, capture_output=True)
        self._reference_directory = os.path.join(self.mount, "references")
        if self._counted_by_nodes:
            os.mkdir(self._reference_directory)
            self.plugin_flags += ["--references-dir", self._reference_directory]
        return [["--root", path, "--read-root", self.mount] for path in own]

    def server(self):
        """A connection to turnstiled, for looking."""
        client = Client(own_address(), self.server_port)
        if self.admin:  # a secret, where the server asks who is there
            send = client.send
            client.send = lambda method, path, body=None, headers=None: send(
                method, path, body, {**(headers or {}), "Authorization": f"Bearer {self.admin}"})
        return client

    def watch(self, digest):
        """The events of a blob's pulls, from now on."""
        return Stream(own_address(), self.server_port, "/lock/subscribe", query={"type": "pull", "resource_id": digest})

    def references(self, digest):
        """Which nodes use it, as the server says, or the nodes' files."""
        if self._counted_by_nodes:
            return {path.rsplit("/", 1)[1].split(".", 1)[1] for path in self._reference_files()
                    if path.rsplit("/", 1)[1].startswith(digest.split(":")[1] + ".")}
        with contextlib.closing(self.server()) as server:
            return set(server.get("/refs", resource_id=digest)["nodes"])

    def _reference_files(self):
        return [os.path.join(path, name) for path, _, names in os.walk(self._reference_directory) for name in names]

    def release(self, node):
        """Ends all uses of a node that is gone for good, as docs/containerd.md tells."""
        if self._counted_by_nodes:
            for path in self._reference_files():
                if path.endswith("." + node.name):
                    os.remove(path)
            shutil.rmtree(os.path.join(node.roots[1], "uses", node.name), ignore_errors=True)
            return
        with contextlib.closing(self.server()) as server:
            server.post("/refs/release_node", node_id=node.name)

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
            f"docker://{own_address()}:{self.registry_port}/{name}:v{seed}")
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
                              f"docker://{own_address()}:{self.registry_port}/{name}:{tag}"],
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
            if node.link:
                node.link.close()
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
