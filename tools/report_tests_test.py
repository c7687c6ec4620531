#!/usr/bin/env python3
"""What report_tests.py counts, and what it lets pass."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPORT = pathlib.Path(__file__).with_name("report_tests.py")
PASSED = '<testcase name="base_test/Text.IsShort" time="1.5" status="run"><system-out/></testcase>'
FAILED = '<testcase name="process/api_test" time="2" status="fail"><failure message=""/><system-out/></testcase>'
NOT_FOUND = ('<testcase name="model_test/A.B" time="0" status="notrun"><skipped message="Unable to find executable"/>'
             '<system-out/></testcase>')


def skipped(name, output):
    return (f'<testcase name="{name}" time="0.1" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
            f'<system-out>{output}</system-out></testcase>')


class Report(unittest.TestCase):
    def report(self, *cases, steps="", ci="true"):
        """Returns the exit code, the last line, and all lines."""
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory)
            (path / "release.xml").write_text(f"<testsuite>{''.join(cases)}</testsuite>", encoding="utf-8")
            (path / "steps").write_text(steps, encoding="utf-8")
            done = subprocess.run([sys.executable, REPORT, directory], env={**os.environ, "CI": ci}, check=False,
                                  stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout.splitlines()[-1], done.stdout

    def test_what_passed_and_what_failed_is_counted(self):
        self.assertEqual(self.report(PASSED, PASSED)[:2], (0, "2 passed, 0 failed"))
        code, last, text = self.report(PASSED, FAILED, NOT_FOUND)
        self.assertEqual((code, last), (1, "1 passed, 2 failed"))
        self.assertIn("failed: process: process/api_test\n", text)

    def test_a_run_without_tests_is_none(self):
        self.assertEqual(self.report()[:2], (1, "0 passed, 0 failed"))

    def test_a_skip_is_counted_apart_and_its_reason_told(self):
        code, last, text = self.report(PASSED, skipped("cluster/New", "test_x ... skipped 'no such thing here'\nOK"), ci="")
        self.assertEqual((code, last), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("skipped: cluster/New: not in test/expected_skips\n    test_x ... skipped 'no such thing here'\n", text)

    def test_in_ci_a_skip_that_nobody_expects_is_a_failure(self):
        self.assertEqual(self.report(PASSED, skipped("cluster/New", ""))[:2], (1, "1 passed, 1 failed"))

    def test_in_ci_a_skip_that_is_listed_is_none(self):
        code, last, text = self.report(PASSED, skipped("cluster/OverAMergedMount", "skipped: mergerfs cannot run here"))
        self.assertEqual((code, last), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("expected: mergerfs needs /dev/fuse", text)

    def test_a_check_is_a_test_and_a_build_is_none_unless_it_fails(self):
        steps = "build/release passed 60\ncheck/format passed 2\n"
        self.assertEqual(self.report(PASSED, steps=steps)[:2], (0, "2 passed, 0 failed"))
        steps = "build/release failed 60\ncheck/format failed 2\n"
        self.assertEqual(self.report(PASSED, steps=steps)[:2], (1, "1 passed, 2 failed"))

    def test_the_table_has_a_row_for_each_ring(self):
        text = self.report(PASSED, FAILED, steps="build/release passed 60\n")[2]
        self.assertRegex(text, r"(?m)^unit +1 +0 +0 +2$")
        self.assertRegex(text, r"(?m)^process +0 +1 +0 +2$")
        self.assertRegex(text, r"(?m)^build/release +60$")


if __name__ == "__main__":
    unittest.main()
