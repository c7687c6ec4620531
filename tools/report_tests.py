#!/usr/bin/env python3
"""report_tests.py DIR: how the tests of a run have ended, ring by ring. The last line is "N passed, N failed", and
", N skipped" if some were. Exit code 0: none failed.

DIR has a JUnit file of CTest's for each run, KIND.xml (release, asan, tsan), and the file `steps`: lines of
"NAME STATUS SECONDS" about what is no test of CTest's. A step counts as a test if it is one: check/NAME.

A test that is skipped has shown nothing. With CI=true it fails the run, unless test/expected_skips says why it may be.
"""
import collections
import fnmatch
import os
import pathlib
import re
import sys
import xml.etree.ElementTree

EXPECTED_SKIPS = pathlib.Path(__file__).resolve().parent.parent / "test/expected_skips"
REASON = re.compile(r"^.*skipped[ :'\"].*$|^.*: Skipped$\n.*", re.MULTILINE)
Test = collections.namedtuple("Test", "ring name status seconds output")  # status: passed, failed or skipped


def ring_of(name, kind):
    """process/api_test -> process; a program of GoogleTest's of its own is a ring, those beside the code are `unit`."""
    folder = name.split("/")[0]
    if folder.endswith("_test"):
        folder = folder[:-len("_test")]
        if folder not in ("model", "regression", "simulation", "fuzz"):
            folder = "unit"
    return folder if kind == "release" else f"{folder} ({kind})"


def tests_of_ctest(path):
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if case.get("status") == "run":
            status = "passed"
        elif case.get("status") == "disabled" or (skipped is not None and "SKIP_" in skipped.get("message", "")):
            status = "skipped"
        else:
            status = "failed"  # or could not be run
        yield Test(ring_of(case.get("name"), path.stem), case.get("name"), status, float(case.get("time")),
                   case.findtext("system-out") or "")


def read_steps(path):
    """(name, status, seconds) of each."""
    if not path.exists():
        return []
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return [(name, status, float(seconds)) for name, status, seconds in lines]


def read_expected_skips(path):
    """Pattern of a test's name -> why it may be skipped."""
    expected = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, why = line.partition(" ")
            if not why.strip():
                sys.exit(f"{path}: '{pattern}' has no reason")
            expected[pattern] = why.strip()
    return expected


def why_expected(name, expected):
    return next((why for pattern, why in expected.items() if fnmatch.fnmatchcase(name, pattern)), None)


def judge_skips(tests, expected, strict):
    """Says which there are. Where it is strict, one that is not expected has failed."""
    judged = []
    for test in tests:
        if test.status == "skipped":
            why = why_expected(test.name, expected)
            reason = REASON.search(test.output)
            print(f"skipped: {test.name}: " + (f"expected: {why}" if why else "not in test/expected_skips"))
            if reason:
                print("    " + " ".join(reason.group().split()))
            if strict and not why:
                test = test._replace(status="failed")
        judged.append(test)
    return judged


def print_table(tests, steps):
    print(f"{'ring':24} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for ring in dict.fromkeys(test.ring for test in tests):
        of_ring = [test for test in tests if test.ring == ring]
        counts = collections.Counter(test.status for test in of_ring)
        seconds = sum(test.seconds for test in of_ring)
        print(f"{ring:24} {counts['passed']:7} {counts['failed']:7} {counts['skipped']:8} {seconds:8.0f}")
    for name, _, seconds in steps:
        if not name.startswith("check/"):
            print(f"{name:24} {'':7} {'':7} {'':8} {seconds:8.0f}")


def main():
    directory = pathlib.Path(sys.argv[1])
    tests = [test for path in sorted(directory.glob("*.xml"), key=lambda path: path.stem != "release")
             for test in tests_of_ctest(path)]
    steps = read_steps(directory / "steps")
    for name, status, seconds in steps:
        if name.startswith("check/") or status != "passed":  # a build that failed fails the run
            tests.append(Test(name.split("/")[0], name, status, seconds, ""))
    print()
    tests = judge_skips(tests, read_expected_skips(EXPECTED_SKIPS), os.environ.get("CI") == "true")
    for test in tests:
        if test.status == "failed":
            print(f"failed: {test.ring}: {test.name}")
    print_table(tests, steps)
    counts = collections.Counter(test.status for test in tests)
    print()
    print(f"{counts['passed']} passed, {counts['failed']} failed" +
          (f", {counts['skipped']} skipped" if counts["skipped"] else ""))
    sys.exit(0 if counts["passed"] and not counts["failed"] else 1)


if __name__ == "__main__":
    main()
