#!/usr/bin/env python3
"""check_tidy.py DIR [all]: clang-tidy (.clang-tidy) on the product's files that changed, or on all of them.

DIR is a build folder of the preset `clang`. clang-tidy takes ten CPU seconds and more for a file, an hour for the tree:
so CI looks at what changed. That is what differs from the place where this branch left origin/main (TURNSTILE_BASE:
another commit), committed or not. On main itself, or where nobody knows of an origin, it is what the last commits
changed, the newest first. And never more files than fit into CI.

Of a header's change its source file is looked at, or else one that includes it.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NO_PRODUCT = re.compile(r"(_test|_bench|_test_support|/bench_\w+|/test_\w+|/simulated_\w+|/testing)\.(cc|h)$")
COMMITS = 20  # to look back, where there is no base
MOST = 10  # files


def git(*arguments):
    """What git says; None if it cannot."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def product_files():
    listed = git("ls-files", "src/*.cc", "src/*.h", "include/*.h") or ""
    return [path for path in listed.split() if not NO_PRODUCT.search(path)]


def base():
    """The commit before the changes; None if there is no telling."""
    if os.environ.get("TURNSTILE_BASE"):
        return os.environ["TURNSTILE_BASE"]
    found = (git("merge-base", "HEAD", "origin/main") or "").strip()
    return found if found and found != (git("rev-parse", "HEAD") or "").strip() else None


def changed_since(commit):
    listed = git("diff", "--name-only", "--diff-filter=d", commit)
    if listed is None:
        sys.exit(f"check_tidy: there is no commit '{commit}'")
    return listed.split()


def changed_lately():
    """What is not committed, then what the last commits changed, the newest first."""
    uncommitted = git("diff", "--name-only", "--diff-filter=d", "HEAD") or ""
    committed = git("log", f"-{COMMITS}", "--first-parent", "-m", "--format=", "--name-only") or ""
    return (uncommitted + committed).split()


def sources_of(paths, known):
    """The source files with which clang-tidy sees these, each once, in this order."""
    found = []
    for path in paths:
        source = source_of(path, known, set()) if path in known else None
        if source and source not in found:
            found.append(source)
    return found


def source_of(path, known, seen):
    """Itself, the file beside the header, or one that includes it, perhaps through others; None if nobody does."""
    if path.endswith(".cc"):
        return path
    if path[:-1] + "cc" in known:
        return path[:-1] + "cc"
    seen.add(path)
    include = re.compile(rf'^#include ["<]{re.escape(path.split("/", 1)[1])}[">]', re.MULTILINE)
    for other in sorted(known, key=lambda name: name.endswith(".h")):
        with open(os.path.join(ROOT, other), encoding="utf-8") as file:
            if other in seen or not include.search(file.read()):
                continue
        source = source_of(other, known, seen)
        if source:
            return source
    return None


def chosen(everything):
    known = product_files()
    if everything:
        return [path for path in known if path.endswith(".cc")]
    start = base()
    files = sources_of(changed_since(start) if start else changed_lately(), known)
    if len(files) > MOST:
        print(f"clang-tidy: {len(files) - MOST} files more have changed: ./dev check all looks at them, too")
    return files[:MOST]


def tidy(directory, path):
    """Returns what clang-tidy has found; nothing if all is well."""
    command = ["clang-tidy-19", "-p", directory, "--quiet", path]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return f"{path}:\n{done.stdout}" if done.returncode != 0 else ""


def main():
    directory, files = sys.argv[1], chosen("all" in sys.argv[2:])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [said for said in pool.map(lambda path: tidy(directory, path), files) if said]
    print("".join(findings), end="")
    print(f"clang-tidy: {len(files)} files read, {len(findings)} with findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
