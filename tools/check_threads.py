#!/usr/bin/env python3
"""check_threads.py DIR [FILE...]: clang's warnings, those about locks above all (base/sync.h), over every
file of the tree, or over these.

DIR is a build folder of the preset `clang`: its compile_commands.json says how a file is compiled. Nothing is compiled:
clang only reads. Reading other people's headers would be three quarters of the work, so they are read once, into a
precompiled header, and with them the templates that they use themselves; then all files take three CPU minutes, where
building them took fourteen. That a file includes what it uses this does not show: clang-tidy does, of what changed.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SYSTEM_INCLUDE = re.compile(r"^#include <([^>]+)>", re.MULTILINE)


class Unit:
    """A file, and what of its command matters to somebody who only reads it."""

    def __init__(self, entry):
        self.file = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        arguments = shlex.split(entry["command"])
        self.compiler = next(word for word in arguments if os.path.basename(word).startswith("clang"))
        self.warnings = [word for word in arguments if word.startswith("-W")]
        self.reading = [word for word in arguments if re.match(r"-[DI]|-std=|-pthread", word)]
        self.reading += [f"-isystem{arguments[i + 1]}" for i, word in enumerate(arguments) if word == "-isystem"]


def units_of(directory):
    """Each C++ file of ours once, even if several targets compile it."""
    with open(os.path.join(directory, "compile_commands.json"), encoding="utf-8") as file:
        units = [Unit(entry) for entry in json.load(file) if entry["file"].endswith(".cc")]
    return list({unit.file: unit for unit in units if not unit.file.startswith("build")}.values())


def options_of_all(units):
    """One set of options, because a precompiled header is only good for those that it was made with."""
    return list(dict.fromkeys(option for unit in units for option in unit.reading))


def foreign_headers(units, options):
    """What our files include that is not ours."""
    names = set()
    listed = subprocess.run(["git", "ls-files", "*.h"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for path in [unit.file for unit in units] + listed.split():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            names.update(SYSTEM_INCLUDE.findall(file.read()))
    ours = [option[2:] for option in options if option.startswith("-I")]
    ours += [option[len("-isystem"):] for option in options if option.startswith("-isystem")]
    return sorted(name for name in names if not any(os.path.exists(os.path.join(path, name)) for path in ours))


def read(unit, *more):
    """Returns what clang has to say; nothing if all is well."""
    command = [unit.compiler, *more, *unit.warnings]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout or ("" if done.returncode == 0 else f"{shlex.join(command)}: exit code {done.returncode}\n")


def main():
    units = units_of(sys.argv[1])
    options = options_of_all(units)
    with tempfile.TemporaryDirectory() as temporary:
        header, precompiled = os.path.join(temporary, "foreign.h"), os.path.join(temporary, "foreign.pch")
        with open(header, "w", encoding="utf-8") as file:
            file.writelines(f"#include <{name}>\n" for name in foreign_headers(units, options))
        said = read(units[0], *options, "-fpch-instantiate-templates", "-xc++-header", header, "-o", precompiled)
        if said:
            sys.exit(said)

        def check(unit):
            return read(unit, *options, "-fsyntax-only", "-include-pch", precompiled, unit.file)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            chosen = [unit for unit in units if unit.file in sys.argv[2:] or len(sys.argv) == 2]
            findings = [said for said in pool.map(check, chosen) if said]
    print("".join(findings), end="")
    print(f"threads: {len(chosen)} files read, {len(findings)} with findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
