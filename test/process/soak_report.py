"""What a soak has done and found, for whoever was not there: faults injected, operations, violations, rare states.

A test tells its numbers in a line of its output, "counted: 50 kills, 3120 calls, 804 locks"; they are added up by word.
"""
import collections
import os
import re
import subprocess
import time

COUNTED = re.compile(r"^counted: (.+)$")
NUMBER = re.compile(r"(\d+) ([^,]+)")
TOLD_OF_A_FAILURE = 60  # last lines of its output


class Report:
    def __init__(self):
        self._started = time.time()
        self._runs = []  # (how it was called, how it ended, seconds)
        self._counts = collections.Counter()
        self._failures = []  # (how it was called, its last lines)

    def add(self, shown, word, seconds, said):
        """A test: how it was called, how it ended, and all lines that it has said."""
        self._runs.append((shown, word, seconds))
        for line in said:
            counted = COUNTED.match(line.strip())
            if counted:
                for number, what in NUMBER.findall(counted.group(1)):
                    self._counts[what.strip()] += int(number)
        if word == "FAILED":
            self._failures.append((shown, said[-TOLD_OF_A_FAILURE:]))

    def write(self, directory):
        """Returns the path of the file."""
        os.makedirs(directory, exist_ok=True)
        name = time.strftime("soak-%Y%m%d-%H%M%S.md", time.gmtime(self._started))
        path = os.path.abspath(os.path.join(directory, name))
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._text())
        return path

    def _text(self):
        lines = [f"# Soak of {_version()}, {(time.time() - self._started) / 60:.0f} minutes", "",
                 f"{len(self._runs)} runs of tests, violations: {len(self._failures)}", "",
                 "## Counted", "", "| what | how often |", "| --- | --- |"]
        lines += [f"| {what} | {number} |" for what, number in sorted(self._counts.items())]
        lines += ["", "## Runs", "", "| test | ended | seconds |", "| --- | --- | --- |"]
        lines += [f"| {shown} | {word} | {seconds:.0f} |" for shown, word, seconds in self._runs]
        for shown, said in self._failures:
            lines += ["", f"## FAILED: {shown}", "", "```", *(line.rstrip("\n") for line in said), "```"]
        return "\n".join(lines) + "\n"


def _version():
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False,
                          cwd=os.path.dirname(os.path.abspath(__file__)))
    return done.stdout.strip() or "a tree without history"
