"""A clean Debian 12 that boots: made once by debootstrap into the build directory, and given to each test as an overlay that
is gone with it. systemd runs inside, in namespaces of its own (systemd-nspawn), without a network but its loopback.
"""
import hashlib
import os
import re
import shutil
import subprocess
import time

PATIENCE = 180


class CannotRun(Exception):
    """Why no such system can run here, in a sentence."""


def run(*command, timeout=PATIENCE, **options):
    """What it prints; fails where it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def dependencies(packages):
    """Names of the Debian packages that these need, our own not among them."""
    names = set()
    for path in packages:
        for field in "Depends", "Pre-Depends":
            for each in run("dpkg-deb", "-f", path, field).split(","):
                if name := re.sub(r"[\s(|:].*", "", each.strip()):
                    names.add(name)
    # Some are names that another package provides; what we were built with is installed here.
    provided = {}
    for line in run("dpkg-query", "-W", "-f", "${Package}\t${Provides}\n").splitlines():
        package, _, provides = line.partition("\t")
        for name in re.findall(r"[a-z0-9][a-z0-9.+-]+(?= |,|$)", provides):
            provided.setdefault(name, package)
        provided[package] = package
    return sorted({provided.get(name, name) for name in names if "turnstile" not in name})


def mirror():
    """Where this machine has its packages from."""
    lines = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").splitlines()
    plain = [line for line in lines if "security" not in line]
    if not plain:
        raise CannotRun("apt does not say where this machine has its packages from")
    return plain[0]


def make_base(directory, packages):
    """A root with systemd and all that the packages need, so that they are installed without a network. Kept for the next time."""
    if missing := [name for name in ("debootstrap", "systemd-nspawn", "unshare", "nsenter") if not shutil.which(name)]:
        raise CannotRun("not installed: " + ", ".join(missing))
    if os.geteuid() != 0:
        raise CannotRun("debootstrap and systemd-nspawn need root")
    include = ",".join(["systemd-sysv", "apt", *dependencies(packages)])
    base = os.path.join(directory, "debian-root-" + hashlib.sha256(include.encode()).hexdigest()[:12])
    if os.path.exists(base):
        return base
    unfinished = base + ".unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    cache = ["--cache-dir=/var/cache/apt/archives"] if os.path.isdir("/var/cache/apt/archives") else []
    done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={include}", *cache, "bookworm", unfinished, mirror()],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise CannotRun(f"debootstrap failed: {done.stdout.strip().splitlines()[-1:]}")
    os.rename(unfinished, base)
    return base


class System:
    """One booted system. shell() runs a command inside, as root."""

    def __init__(self, base, shared):
        """`shared`: a directory of the host's that it sees as /shared."""
        self.shared = shared
        # A mount namespace that outlives a boot. /run must be a tmpfs for nspawn, and may be none in a container.
        script = ("mount -t tmpfs tmpfs /run && mkdir /run/o && mount -t tmpfs tmpfs /run/o && cd /run/o && mkdir upper work root && "
                  f"mount -t overlay overlay -o lowerdir={base},upperdir=upper,workdir=work root && echo ready && exec sleep infinity")
        self.holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.nspawn = self.leader = None
        line = self.holder.stdout.readline()
        if line != "ready\n":
            raise CannotRun(f"no overlay can be mounted here: {line.strip()}")

    def boot(self):
        log = os.path.join(self.shared, "boot.log")
        with open(log, "w", encoding="utf-8") as out:
            self.nspawn = subprocess.Popen(
                ["nsenter", "--mount", "--target", str(self.holder.pid), "systemd-nspawn", "--directory=/run/o/root",
                 "--register=no", "--keep-unit", "--boot", "--quiet", "--private-network", "--console=pipe",
                 f"--bind={self.shared}:/shared"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.nspawn.poll() is not None:
                break
            self.leader = self.leader or self._child_of(self.nspawn.pid)
            if self.leader:
                state = subprocess.run(self._inside("systemctl", "is-system-running"), capture_output=True, text=True, check=False)
                if state.stdout.strip() in ("running", "degraded"):
                    return
            time.sleep(0.2)
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        self.shut_down()
        raise CannotRun("systemd does not boot here: " + " / ".join(text.strip().splitlines()[-3:]))

    @staticmethod
    def _child_of(pid):
        """nspawn's own child is init of the system; nsenter has become nspawn."""
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = file.read().split()
            for child in children:
                with open(f"/proc/{child}/comm", encoding="ascii") as file:
                    if file.read().strip() in ("systemd", "init"):
                        return int(child)
        except OSError:
            pass
        return None

    def _inside(self, *command):
        return ["nsenter", "--all", "--target", str(self.leader), "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                "DEBIAN_FRONTEND=noninteractive", *command]

    def shell(self, command):
        """What it prints."""
        return run(*self._inside("sh", "-ec", command))

    def status_of(self, command):
        """Its exit code."""
        return subprocess.run(self._inside("sh", "-c", command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=PATIENCE, check=False).returncode

    def wait_until(self, command):
        """Until it succeeds."""
        end = time.monotonic() + PATIENCE
        while self.status_of(command) != 0:
            if time.monotonic() > end:
                raise AssertionError(f"not within {PATIENCE} s: {command}\n" + self.shell("systemctl --failed --no-pager || true"))
            time.sleep(0.2)

    def shut_down(self):
        if self.nspawn is None:
            return
        if self.nspawn.poll() is None and self.leader:
            subprocess.run(self._inside("systemctl", "poweroff", "--force"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=False)
        try:
            self.nspawn.wait(60)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait()
        self.nspawn = self.leader = None

    def reboot(self):
        self.shut_down()
        self.boot()

    def close(self):
        self.shut_down()
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
