"""./dev soak [MINUTES]: kill -9 for as long as you like (10 minutes), then 200 kills within 200,000 calls (10 minutes on a
quiet machine), then abuse at full size, the command line with a minute of progress reports, then kills, races and faults among
real containerds (some 40 minutes more). Exit code 0: all well. What was done and found is written to a file, too.

The same tests as in CI, with other numbers: 10,000 slow connections, 5,000 streams and 1,000 that nobody reads, a
million keys; ten times the rounds of the cluster. Each round of kills has a seed of its own, which is printed, so that
a failure can be repeated: TURNSTILE_KILLS=50 TURNSTILE_SEED=... python3 test/process/kill_test.py
"""
import os
import random
import subprocess
import sys
import time

import harness
from soak_report import Report

KILLS_A_ROUND = 50
MANY_KILLS = {"TURNSTILE_KILLS": "200", "TURNSTILE_OPERATIONS": "200000", "TURNSTILE_CLIENTS": "16", "TEST_THREADS": "4"}
FULL_SIZE = 20  # times what CI does
CLUSTER_TESTS = ("cluster_test.py", "takeover_test.py", "kills_test.py", "removal_race_test.py", "chaos_test.py")
SOCKETS_A_SIZE = 520  # that the largest test of abuse opens, for each of these
REPORTS = os.path.join(harness.HERE, "../../build/soak")

report = Report()


def run(file, **environment):
    """Shows what the test says. Returns whether it ended well."""
    started = time.monotonic()
    shown = " ".join([*(f"{name}={value}" for name, value in environment.items()), file])
    print(f"== {shown}", flush=True)
    said = []
    with subprocess.Popen([sys.executable, os.path.join(harness.HERE, file)], env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as test:
        for line in test.stdout:
            print(line, end="", flush=True)
            said.append(line)
    word = {0: "good", harness.SKIPPED: "skipped"}.get(test.returncode, "FAILED")
    seconds = time.monotonic() - started
    print(f"== {file}: {word} after {seconds:.0f} s", flush=True)
    report.add(shown, word, seconds, said)
    return word != "FAILED"


def replicated():
    """./dev soak replicated: 30 faults of servers and members under load, network cuts among them, judged; a report as for
    the rest."""
    good = run("replicated_rounds.py", TURNSTILE_ROUNDS="30", TURNSTILE_CLIENTS="16")
    print("report: " + report.write(REPORTS))
    print("all well" if good else "something FAILED: see above")
    sys.exit(0 if good else 1)


def main():
    if sys.argv[1:2] == ["replicated"]:
        replicated()
    try:
        minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    except ValueError:
        sys.exit(f"usage: ./dev soak [MINUTES]; '{sys.argv[1]}' is no number")
    harness.binary()
    end = time.monotonic() + minutes * 60
    good, rounds = True, 0
    while good and (rounds == 0 or time.monotonic() < end):
        rounds += 1
        good = run("kill_test.py", TURNSTILE_KILLS=str(KILLS_A_ROUND), TURNSTILE_SEED=str(random.randrange(1_000_000)),
                   TEST_THREADS=random.choice("14"))
        left = max(0, (end - time.monotonic()) / 60)
        print(f"== {rounds * KILLS_A_ROUND} kills, {left:.1f} minutes left", flush=True)
    good = run("kill_test.py", **MANY_KILLS) and good
    size = min(FULL_SIZE, harness.allow_many_files() // SOCKETS_A_SIZE)
    if size < FULL_SIZE:
        print(f"== only {size * 500} connections, because of ulimit -n", flush=True)
    good = run("abuse_test.py", TURNSTILE_ABUSE=str(max(1, size))) and good
    good = run("turnstile_exec_test.py", TURNSTILE_PROGRESS_SECONDS="60") and good
    for file in CLUSTER_TESTS:
        good = run(os.path.join("../cluster", file), TURNSTILE_ROUNDS="10") and good
    print("report: " + report.write(REPORTS))
    print("all well" if good else "something FAILED: see above")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
