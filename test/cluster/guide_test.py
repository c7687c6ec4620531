"""The commands of docs/containerd.md, typed as they stand there, on a machine of their own: a mount and a network namespace
in which /srv, /run, /var/lib and /etc/containerd are empty, and 10.0.0.1 has the lock server.

Only systemd is missing there: a `systemctl` of a few lines starts and stops the same containerd and the same plugin.
"""
import os
import re
import shutil
import subprocess
import sys
import types

from cluster import Cluster
from cluster_case import SKIPPED, unittest
from node import CRI, PACKAGING
from processes import missing, read, wait_until

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../docs"))
import documents  # noqa: E402
from replay_test import Shell  # noqa: E402

DOCUMENT = "docs/containerd.md"
OWN = {"srv": "/srv", "run": "/run", "lib": "/var/lib", "containerd": "/etc/containerd"}
CONFIG = "/etc/containerd/config.toml"
SYSTEMCTL = r"""#!/bin/bash
end() { kill "$(cat /run/$1.pid)"; while kill -0 "$(cat /run/$1.pid)" 2>/dev/null; do sleep 0.05; done; }
case "$*" in
  "start containerd")
    containerd >>/run/containerd.log 2>&1 & echo $! >/run/containerd.pid
    for _ in {1..1200}; do ctr version >/dev/null 2>&1 && exit; sleep 0.1; done; exit 1;;
  "stop containerd") end containerd;;
  "stop turnstile-content") end turnstile-content;;
  "disable --now turnstile-content.socket turnstile-content.service") end turnstile-content;;
  *) echo "systemctl $*: not known here" >&2; exit 1;;
esac
"""


UNTIL_IT_LISTENS_AGAIN = 'until [ "$(grep -c "listening on" /run/plugin.log)" = 2 ]; do sleep 0.1; done'


class ContainerdGuide(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(nodes=0, server_flags=("--listen", "http://10.0.0.1:8086", "--insecure"))
        self.addCleanup(self.cluster.close)
        self.cluster.blob_directories = ["/srv/disk/blobs"]
        self.shell = Shell(types.SimpleNamespace(host="10.0.0.1", port=8086))
        self.addCleanup(self.shell.close)
        path = os.path.join(self.shell.directory.name, "build/bin/systemctl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SYSTEMCTL)
        os.chmod(path, 0o755)
        self.addCleanup(lambda: [self.do(f"kill $(cat /run/{name}.pid) || true")
                                 for name in ("containerd", "turnstile-content") if os.path.exists(f"/run/{name}.pid")])
        self.left = [block for block in documents.blocks(DOCUMENT) if block.language == "sh"]

    def do(self, command):
        said, code = self.shell.run(command, None)
        logs = "".join(read(f"/run/{name}.log")[-3000:] for name in ("containerd", "plugin") if os.path.exists(f"/run/{name}.log"))
        self.assertEqual(code, 0, f"{command}\nsaid: {said}\n{logs}")
        return said

    def type(self, begin, change=lambda text: text):
        """The block of the document that begins so; every line must succeed."""
        block = next(block for block in self.left if block.text.startswith(begin))
        self.left.remove(block)
        return self.do("set -e\n" + change(block.text) + "\nset +e")

    def configure(self, text):
        with open(CONFIG, "w", encoding="utf-8") as file:
            file.write(text)

    @staticmethod
    def in_background(command):
        return command.rstrip() + " >>/run/plugin.log 2>&1 & echo $! >/run/turnstile-content.pid"

    @staticmethod
    def wait_until_it_listens(times):
        log = "/run/plugin.log"
        wait_until(lambda: os.path.exists(log) and read(log).count("listening on") == times, "the plugin listens")

    def is_whole(self, ref):
        return re.search(rf"^{re.escape(ref)}\s.*\scomplete\s", self.do("ctr images check"), re.M)

    def test_every_command_of_it_runs(self):
        os.makedirs("/srv/disk")
        os.makedirs("/srv/all")
        subprocess.run(["mount", "--bind", "/srv/disk", "/srv/all"], check=True)
        os.makedirs("/run/turnstile-content", mode=0o700)
        ref, blobs = self.cluster.make_image(mebibytes=1)
        own_store = f"version = 2\ndisabled_plugins = [{CRI}]\n"
        self.configure(own_store)
        self.do("systemctl start containerd")
        self.do(f"ctr images pull --plain-http {ref}")

        said = self.type("old=")
        self.assertIn(f"{len(blobs)} copied", said)  # a bind mount is a file system of its own
        self.assertIn(f"{len(blobs)} this node's already", said)
        shipped = read(os.path.join(PACKAGING, "containerd-config-1.6.toml"))
        self.configure(shipped.replace("disabled_plugins = [", f"disabled_plugins = [{CRI}, "))
        # It keeps what is not used, and is started anew without that when the node moves back.
        started = []
        self.type("turnstile-content --socket", lambda text: started.append(text) or self.in_background(text + " --keep-unused 1h"))
        self.wait_until_it_listens(times=1)
        self.do("systemctl start containerd; rm -r $old/blobs")
        self.assertTrue(self.is_whole(ref))
        for digest in blobs:
            wait_until(lambda: self.cluster.references(digest) == {"node-a"}, "the server has been told")

        self.type("ctr images rm", lambda text: text.replace("pull IMAGE", f"pull --plain-http {ref}").replace("IMAGE", ref))
        self.assertTrue(self.is_whole(ref))

        undone = os.path.join(self.shell.directory.name, "own-store.toml")
        with open(undone, "w", encoding="utf-8") as file:
            file.write(own_store)
        again = f"systemctl stop turnstile-content\n{self.in_background(started[0])}\n{UNTIL_IT_LISTENS_AGAIN}"
        self.type("systemctl stop containerd",
                  lambda text: re.sub(r"^# If the plugin has keep-unused: .*$", again,
                                      re.sub(r"^# Undo step 2 .*$", f"cp {undone} {CONFIG}", text, flags=re.M), flags=re.M))
        self.assertTrue(self.is_whole(ref))
        self.assertEqual([self.cluster.references(digest) for digest in blobs], [set()] * len(blobs))
        self.assertEqual(self.cluster.all_files(), [])
        self.assertEqual(self.left, [], "no command of the document is left")


def main():
    """Again, in namespaces of its own, which are empty where containerd and the plugin write."""
    if why := missing():
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(SKIPPED)
    base = os.environ.get("TURNSTILE_OWN_MACHINE")
    if not base:
        base = subprocess.run(["mktemp", "-d", "/tmp/ts-XXXXXX"], check=True, capture_output=True, text=True).stdout.strip()
        # The first process there is a shell: it waits for whatever has lost its parent, or a containerd that has ended would seem
        # to run on.
        done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                               "bash", "-c", '"$@"; exit $?', "bash", sys.executable, *sys.argv],
                              env={**os.environ, "TURNSTILE_OWN_MACHINE": base}, check=False)
        shutil.rmtree(base, ignore_errors=True)
        sys.exit(done.returncode)
    for name, path in OWN.items():
        os.makedirs(os.path.join(base, name))
        subprocess.run(["mount", "--bind", os.path.join(base, name), path], check=True)
    for command in ("link set lo up", "address add 10.0.0.1/32 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
