#!/usr/bin/env python3
"""Fails when a folder of src/ includes what it may not: the table below is the one of ARCHITECTURE.md.

    tools/check_layers.py [SOURCE_DIR]
"""
import pathlib
import re
import sys

# Folder -> (folders whose headers it may include, libraries it may include).
# 'engine types' are the headers in which the engine says what goes in and out; its rules stay inside.
ENGINE_TYPES = {"types.h", "settings.h", "command.h", "answer.h", "effects.h", "commit_sink.h"}
MAY_USE = {
    "base": (set(), {"fmt", "spdlog", "xxhash"}),
    "engine": ({"base"}, {"boost/unordered"}),
    "journal": ({"base", "engine types"}, {"fmt"}),
    "events": ({"base", "engine types"}, {"fmt"}),
    "api": ({"base", "engine types"}, {"fmt", "simdjson"}),
    "http": ({"base"}, {"fmt", "boost/beast", "boost/intrusive"}),
    "server": ({"base", "engine", "engine types", "journal", "events", "api", "http"},
               {"fmt", "prometheus", "CLI", "toml++"}),
    "rpc": ({"base", "http"}, {"fmt", "nghttp2"}),
    "content": ({"base", "http", "turnstile", "rpc"}, {"fmt", "prometheus", "google/protobuf", "containerd_content", "openssl", "sqlite3", "re2", "CLI",
                                               "toml++"}),
    "client": ({"base", "turnstile"}, {"fmt", "curl", "simdjson", "boost/beast"}),
    "fake": ({"base", "engine", "engine types", "events", "api", "server", "client", "turnstile"}, set()),
    "refcount": ({"base", "turnstile", "client"}, {"fmt", "sqlite3"}),
    "cli": ({"base", "turnstile", "client"}, {"fmt", "CLI", "boost/json", "termios"}),
}
FOR_TESTS = {"gtest", "gmock", "benchmark"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
# Headers without a dot or slash are the standard library's; these are the system's.
SYSTEM = re.compile(r"^(sys|arpa|netinet|linux)/|^(unistd|fcntl|signal|poll|netdb|pthread|strings|dirent)\.h$")


def is_test(path):
    return re.search(r"(_test|_bench|bench_\w+|simulated_\w+|test_\w+)\.(cc|h)$", path.name) is not None


def library_of(header, allowed):
    return any(header == name + ".h" or header.startswith((name + "/", name + ".", name + "_")) for name in allowed)


def violations(source):
    for folder, (folders, libraries) in MAY_USE.items():
        for path in sorted((source / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            test = is_test(path)
            for kind, header in INCLUDE.findall(path.read_text()):
                where = f"{path.relative_to(source.parent)} includes {header}"
                if kind == '"':
                    target, _, name = header.partition("/")
                    allowed = target == folder or target in folders or (
                        target == "engine" and "engine types" in folders and (name in ENGINE_TYPES or test))
                    if not allowed and not test:
                        yield f"{where}: {folder}/ may use only {', '.join(sorted(folders)) or 'nothing of ours'}"
                elif "." in header or "/" in header:
                    if not (library_of(header, libraries) or SYSTEM.search(header)
                            or (test and library_of(header, FOR_TESTS)) or test):
                        yield f"{where}: {folder}/ may use only these libraries: {', '.join(sorted(libraries))}"
    unknown = {p.name for p in source.iterdir() if p.is_dir()} - set(MAY_USE)
    for folder in sorted(unknown):
        yield f"src/{folder} is not in the table of tools/check_layers.py"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    source = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else root / "src"
    found = list(violations(source))
    for line in found:
        print(line)
    print(f"layers: {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
