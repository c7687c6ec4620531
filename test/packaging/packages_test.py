"""The Debian packages, on a clean Debian 12 that boots: installed by the commands of docs/operations.md, started, upgraded, rebooted,
removed and purged. lintian finds no error in them. The tar file with the command line alone runs there, too."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import debian_root
from debian_root import CannotRun, System, run

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
BUILD = os.environ.get("TURNSTILE_BUILD") or os.path.join(ROOT, "build")
JOURNAL = "/var/lib/turnstile/journal"


def made_packages():
    """Names of packages -> files, made anew."""
    directory = os.path.join(BUILD, "packages")
    if not os.environ.get("TURNSTILE_KEEP_PACKAGES"):  # for who works on this test
        shutil.rmtree(directory, ignore_errors=True)
        run(os.path.join(ROOT, "packaging/make"), BUILD, timeout=1200)
    return {os.path.basename(path).split("_")[0]: path for path in glob.glob(directory + "/*.deb")}


def newer(path, to):
    """The same package as version 9.9.9, in the directory `to`."""
    with tempfile.TemporaryDirectory() as work:
        run("dpkg-deb", "-R", path, work + "/p")
        with open(work + "/p/DEBIAN/control", "r+", encoding="utf-8") as file:
            text = re.sub(r"(?m)^Version: .*$", "Version: 9.9.9-1", file.read())
            file.seek(0)
            file.write(text)
            file.truncate()
        name = os.path.basename(path).split("_")[0] + "_9.9.9-1_amd64.deb"
        run("dpkg-deb", "--root-owner-group", "-b", work + "/p", os.path.join(to, name))


def commands(section, document="docs/operations.md"):
    """The lines of the first block behind this heading."""
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        block = file.read().partition(f"\n## {section}\n")[2].partition("```sh\n")[2].partition("```")[0]
    return [line.split(" #")[0].strip() for line in block.splitlines() if line and not line.startswith("#")]


class CommandsTest(unittest.TestCase):
    def test_readme_installs_by_the_commands_that_are_tried_here(self):
        tried = ["./dev package", "cd build/packages", *commands("Install")]
        self.assertEqual(commands("Install", "README.md"), tried)
        self.assertEqual(commands("安装", "README.zh-CN.md"), tried)


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.packages = made_packages()
        cls.shared = tempfile.mkdtemp(prefix="turnstile-packages-")
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)

    def test_there_is_a_package_for_each_purpose_and_lintian_finds_no_error(self):
        self.assertEqual(sorted(self.packages), ["libturnstile-dev", "turnstile", "turnstile-content", "turnstile-server"])
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        done = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", *self.packages.values()], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_tar_file_needs_nothing_of_the_machine_but_glibc_2_36(self):
        with tempfile.TemporaryDirectory() as work:
            run("tar", "-xzf", *glob.glob(BUILD + "/packages/turnstile-*.tar.gz"), "-C", work)
            program = glob.glob(work + "/*/turnstile")[0]
            own = os.path.realpath(os.path.dirname(program)) + "/lib/"
            found = dict(re.findall(r"(\S+) => (\S+)", run("ldd", program)))
            foreign = {name for name, path in found.items() if not os.path.realpath(path).startswith(own)}
            self.assertLessEqual(foreign, {"libc.so.6", "libm.so.6", "libresolv.so.2"}, "only glibc is the machine's")
            wanted = [tuple(map(int, each.split("."))) for path in [program, *glob.glob(own + "*")]
                      for each in re.findall(r"GLIBC_(\d+\.\d+)", run("objdump", "-T", path))]
            self.assertLessEqual(max(wanted), (2, 36))
            self.assertIn("turnstile", run(program, "--version"))

    def test_a_clean_debian_installs_runs_upgrades_reboots_and_purges_them(self):
        try:
            base = debian_root.make_base(BUILD, self.packages.values())
            system = System(base, self.shared)
            self.addCleanup(system.close)
            system.boot()
        except CannotRun as why:
            self.skipTest(str(why))
        for path in self.packages.values():
            shutil.copy(path, self.shared)
        for step in self.install, self.settings, self.upgrade, self.reboot, self.restore_a_backup, self.plugin, self.purge:
            print(f"  {step.__name__}", file=sys.stderr, flush=True)
            step(system)

    def install(self, system):
        lines = commands("Install")
        self.assertTrue(lines and "turnstile-server" in lines[0], lines)
        for line in lines:
            system.shell("cd /shared && " + line.replace("sudo ", ""))
        self.assertEqual(system.shell("systemctl is-active turnstiled").strip(), "active")
        self.assertEqual(system.shell("systemctl is-enabled turnstiled").strip(), "enabled")
        self.assertEqual(system.shell("ps -o user= -C turnstiled 2>/dev/null || stat -c %U /proc/$(systemctl show -P MainPID turnstiled)").strip(),
                         "turnstile")
        self.assertEqual(system.shell("stat -c '%U %a' /var/lib/turnstile").strip(), "turnstile 700")
        system.shell("turnstile lock pull before --node a --lease 24h")
        system.shell(f"turnstile inspect {JOURNAL} --verify")

    def settings(self, system):
        system.shell("echo 'max-queue = 77' >> /etc/turnstile/turnstiled.toml; systemctl restart turnstiled")
        # What the operator says to the unit is read after what the package says.
        system.shell("mkdir -p /etc/systemd/system/turnstiled.service.d; printf '[Service]\\nEnvironment=TURNSTILE_LOG_FORMAT=json\\n' "
                     "> /etc/systemd/system/turnstiled.service.d/override.conf; systemctl daemon-reload; systemctl restart turnstiled")
        self.assertIn("TURNSTILE_LOG_FORMAT=json", system.shell("systemctl show -P Environment turnstiled"))
        self.assertIn("held", system.shell("turnstile status pull before"))
        self.assertIn("max-queue = 77", system.shell("cat /etc/turnstile/turnstiled.toml"))
        # A setting that is wrong stops the server once, with a reason, and not for ever.
        system.shell("echo 'max-queue = 0' > /tmp/x; cp -p /etc/turnstile/turnstiled.toml /tmp/good; cat /tmp/x > /etc/turnstile/turnstiled.toml")
        self.assertNotEqual(system.status_of("systemctl restart turnstiled"), 0)
        self.assertEqual(system.shell("systemctl show -P NRestarts turnstiled").strip(), "0")
        system.shell("cp -p /tmp/good /etc/turnstile/turnstiled.toml; systemctl reset-failed turnstiled; systemctl start turnstiled")

    def upgrade(self, system):
        newer(self.packages["turnstile-server"], self.shared)
        before = system.shell("systemctl show -P MainPID turnstiled").strip()
        system.shell("apt-get install -y /shared/turnstile-server_9.9.9-1_amd64.deb")
        self.assertEqual(system.shell("systemctl is-active turnstiled").strip(), "active")
        self.assertNotEqual(system.shell("systemctl show -P MainPID turnstiled").strip(), before)
        self.assertIn("max-queue = 77", system.shell("cat /etc/turnstile/turnstiled.toml"), "the operator's settings")
        self.assertIn("held", system.shell("turnstile status pull before"))

    def reboot(self, system):
        system.reboot()
        system.wait_until("systemctl is-active turnstiled")
        self.assertIn("held", system.shell("turnstile status pull before"))

    def restore_a_backup(self, system):
        system.shell(f"turnstile backup {JOURNAL} /var/tmp/backup.tar; turnstile unlock pull before --node a --error x || true; "
                     f"turnstile break pull before --reason test || true")
        system.shell(f"systemctl stop turnstiled; mv {JOURNAL} /var/tmp/old; turnstile restore /var/tmp/backup.tar {JOURNAL}; "
                     "systemctl start turnstiled")
        self.assertEqual(system.shell(f"stat -c '%U %a' {JOURNAL}").strip(), "turnstile 700")
        self.assertIn("held", system.shell("turnstile status pull before"))

    def plugin(self, system):
        system.shell("apt-get install -y /shared/turnstile-content_*.deb /shared/libturnstile-dev_*.deb")
        self.assertEqual(system.shell("systemctl is-active turnstile-content || true").strip(), "inactive", "it has to be told where first")
        self.assertNotEqual(system.status_of("systemctl enable --now turnstile-content.socket turnstile-content.service"), 0, "it has no name yet")
        system.shell("sed -i 's/^# node = .*/node = \"node-a\"/' /etc/turnstile/turnstile-content.toml")
        system.shell("systemctl restart turnstile-content.socket turnstile-content.service")
        self.assertEqual(system.status_of("test -e /var/lib/turnstile-content/blobs/uses/node-a"), 0, "the file decides")
        self.assertEqual(system.shell("stat -c '%F %a' /run/turnstile-content/content.sock").strip(), "socket 600")
        system.shell("ldconfig -p | grep -q libturnstile.so.0 && test -e /usr/lib/*-linux-gnu/cmake/turnstile/turnstileConfig.cmake"
                     " && test ! -e /usr/lib/cmake")
        system.shell("mkdir -p /var/lib/turnstile-content/blobs && touch /var/lib/turnstile-content/blobs/shared")
        system.shell("apt-get purge -y turnstile-content libturnstile-dev")
        self.assertNotEqual(system.status_of("systemctl is-active turnstile-content.service"), 0)
        self.assertEqual(system.status_of("test -e /var/lib/turnstile-content/blobs/shared"), 0, "blobs are the cluster's")
        self.assertNotEqual(system.status_of("test -e /var/lib/turnstile-content/state"), 0)

    def purge(self, system):
        system.shell("apt-get remove -y turnstile-server turnstile")
        self.assertNotEqual(system.status_of("systemctl is-active turnstiled"), 0)
        self.assertEqual(system.status_of(f"test -e {JOURNAL} && test -e /etc/turnstile/turnstiled.toml"), 0, "both stay")
        system.shell("apt-get install -y /shared/turnstile-server_9.9.9-1_amd64.deb /shared/turnstile_*.deb")
        self.assertIn("held", system.shell("turnstile status pull before"))
        system.shell("apt-get purge -y turnstile-server turnstile")
        for path in JOURNAL, "/var/lib/turnstile", "/etc/turnstile", "/usr/bin/turnstiled", "/lib/systemd/system/turnstiled.service.d":
            self.assertNotEqual(system.status_of(f"test -e {path}"), 0, path)
        system.shell("systemctl daemon-reload")
        self.assertNotIn("turnstile", system.shell("systemctl --failed --no-pager --plain"))


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
