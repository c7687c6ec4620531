#!/usr/bin/env python3
"""coverage.py DIR FOLDER...: which lines of these folders of src/ have run in DIR, a build folder of the preset `coverage`.

Prints a table, and writes what has not run to DIR/uncovered.txt, with its text. Exit code 0: each folder has GOAL percent.
Tests and benchmarks do not count. A line that several programs have, or a template in several of its shapes, has run if
one of them has.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOAL = 90
NO_PRODUCT = re.compile(r"(_test|_bench|_test_support|/bench_\w+|/test_\w+|/simulated_\w+|/testing)\.(cc|h)$")


def lines_of(notes):
    """(path from the root, line, how often it has run) of each line that an object file has code for."""
    # Of an object that never ran there are only the notes, and gcov says that nothing has run.
    data = notes.with_suffix(".gcda")
    command = ["gcov", "--json-format", "--stdout", str(data if data.exists() else notes)]
    done = subprocess.run(command, cwd=notes.parent, capture_output=True, check=False)
    found = []
    for text in done.stdout.splitlines():
        report = json.loads(text)
        for file in report["files"]:
            path = os.path.relpath(os.path.join(report["current_working_directory"], file["file"]), ROOT)
            if path.startswith("src/") and not NO_PRODUCT.search(path):
                found += [(path, line["line_number"], line["count"]) for line in file["lines"]]
    return found


def count_lines(directory):
    """path -> line -> how often it has run."""
    counts = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(lines_of, sorted(directory.rglob("*.gcno"))):
            for path, line, count in lines:
                counts[path][line] += count
    return counts


def write_uncovered(file, path, missing):
    with open(ROOT / path, encoding="utf-8") as source:
        text = source.read().splitlines()
    file.writelines(f"{path}:{line}: {text[line - 1].strip()}\n" for line in missing)


def main():
    directory, folders = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    counts, good = count_lines(directory), True
    with open(directory / "uncovered.txt", "w", encoding="utf-8") as file:
        print(f"{'folder':12} {'lines':>7} {'not run':>8} {'percent':>8}")
        for folder in folders:
            total = uncovered = 0
            for path in sorted(path for path in counts if path.startswith(f"src/{folder}/")):
                missing = sorted(line for line, count in counts[path].items() if not count)
                total, uncovered = total + len(counts[path]), uncovered + len(missing)
                write_uncovered(file, path, missing)
            percent = 100 * (total - uncovered) / total if total else 0
            good = good and percent >= GOAL
            print(f"{folder:12} {total:7} {uncovered:8} {percent:8.1f}")
    print(f"what has not run: {os.path.relpath(directory / 'uncovered.txt', ROOT)}")
    sys.exit(0 if good else f"coverage: a folder has less than {GOAL} %")


if __name__ == "__main__":
    main()
