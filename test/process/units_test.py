"""The systemd units: how much of the machine a service could touch that somebody has taken over, as systemd counts it."""
import os
import re
import shutil
import subprocess
import unittest

import harness

PACKAGING = os.path.join(harness.HERE, "../../packaging")
MOST = 2.0  # of 10


@unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze")
class UnitsTest(unittest.TestCase):
    def exposure(self, unit):
        said = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", os.path.join(PACKAGING, unit)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
        level = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
        if not level and "nrecognized option" in said:
            self.skipTest("this systemd-analyze does not look at files")
        self.assertTrue(level, said)
        return float(level[1])

    def test_the_servers_unit_is_hardened(self):
        self.assertLessEqual(self.exposure("turnstiled.service"), MOST)

    def test_the_plugins_unit_is_hardened(self):
        self.assertLessEqual(self.exposure("turnstile-content.service"), MOST)

    def test_a_unit_that_is_not_is_seen_to_be(self):
        plain = os.path.join(harness.temporary_directory(), "plain.service")
        with open(plain, "w", encoding="ascii") as file:
            file.write("[Service]\nExecStart=/bin/true\n")
        self.assertGreater(self.exposure(plain), MOST)


if __name__ == "__main__":
    harness.main()
