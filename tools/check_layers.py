#!/usr/bin/env python3
"""Fails when a folder of src/ uses what it may not: the table "What may use what" of ARCHITECTURE.md says what it may.

    tools/check_layers.py [ROOT]

Checked are the #include lines of every file that is no test, and the folders after USES in every CMakeLists.txt.
"""
import pathlib
import re
import sys

SECTION = "## What may use what"
COLUMNS = ["folder", "may include", "libraries"]
ENGINES_TYPES = "engine's types"
PUBLIC_HEADERS = "public headers"  # include/turnstile/, which these folders implement:
BEHIND_PUBLIC_HEADERS = {"client", "refcount"}
NOTHING = "–"

# A library's name in the table -> how the names of its headers begin.
LIBRARIES = {
    "fmt": ["fmt"], "spdlog": ["spdlog"], "xxhash": ["xxhash"], "simdjson": ["simdjson"], "nghttp2": ["nghttp2"],
    "Boost.Beast": ["boost/beast"], "Boost.Intrusive": ["boost/intrusive"], "Boost.JSON": ["boost/json"],
    "Boost.Unordered": ["boost/unordered"], "CLI11": ["CLI"], "toml++": ["toml++"], "prometheus-cpp": ["prometheus"],
    "libcurl": ["curl"], "SQLite": ["sqlite3"], "OpenSSL": ["openssl"], "RE2": ["re2"],
    "protobuf": ["google/protobuf", "containerd_content"], "gRPC": ["grpc", "grpcpp", "etcd_rpc"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
# Headers without a dot or slash are the standard library's; these are the system's.
SYSTEM = re.compile(r"^(sys|arpa|netinet|linux)/|^(unistd|fcntl|signal|poll|netdb|pthread|pwd|stdio_ext|strings|dirent|spawn|"
                    r"stdlib|string|time|termios)\.h$")
TEST = re.compile(r"(_test|_bench|bench_\w+|simulated_\w+|test_\w+)\.(cc|h)$")


class TableError(Exception):
    """The table cannot be read; what is wrong with it, for people."""


class Row:
    """What one folder may use."""

    def __init__(self, folder, folders, libraries):
        self.folder, self.folders, self.libraries = folder, folders, libraries

    def may_include(self, header, engines_types):
        """A header of ours."""
        target, _, name = header.partition("/")
        if target == "turnstile":
            return PUBLIC_HEADERS in self.folders
        if target == "engine" and ENGINES_TYPES in self.folders and name in engines_types:
            return True
        return target == self.folder or target in self.folders

    def may_include_library(self, header):
        beginnings = [beginning for library in self.libraries for beginning in LIBRARIES[library]]
        return any(re.match(re.escape(beginning) + r"[/._]", header) for beginning in beginnings)

    def may_link(self, folder):
        return folder in self.folders or (folder in BEHIND_PUBLIC_HEADERS and PUBLIC_HEADERS in self.folders)


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def words(cell):
    return [] if cell == NOTHING else [word.strip() for word in cell.split(",")]


def read_table(text):
    """(rows by folder, names of the headers that are the engine's types), from the text of ARCHITECTURE.md."""
    _, found, rest = text.partition(f"\n{SECTION}\n")
    if not found:
        raise TableError(f'there is no section "{SECTION}"')
    section = rest.partition("\n## ")[0]
    sentence = re.search(r"\*Engine's types\* are ([^.]*?\.h`(?:[^.]*?\.h`)*)", section)
    types = set(re.findall(r"`(\w+\.h)`", sentence.group(1))) if sentence else set()
    if not types:
        raise TableError("no sentence \"*Engine's types* are `...h`, ...\" says which headers these are")
    lines = [line for line in section.splitlines() if line.startswith("|")]
    if len(lines) < 3 or cells(lines[0]) != COLUMNS:
        raise TableError(f"no table with the columns {', '.join(COLUMNS)}")
    rows = {}
    for line in lines[2:]:
        row = read_row(line)
        if row.folder in rows:
            raise TableError(f"{row.folder} has two rows")
        rows[row.folder] = row
    for row in rows.values():
        for name in sorted(row.folders - rows.keys() - {ENGINES_TYPES, PUBLIC_HEADERS}):
            raise TableError(f'in the row of {row.folder}, "{name}" is no folder that has a row')
    return rows, types


def read_row(line):
    row = cells(line)
    if len(row) != len(COLUMNS) or not re.fullmatch(r"`\w+`", row[0]):
        raise TableError(f"this row is not `folder`, folders, libraries: {line}")
    for library in words(row[2]):
        if library not in LIBRARIES:
            raise TableError(f'in the row of {row[0]}, "{library}" is none of {", ".join(sorted(LIBRARIES))}')
    return Row(row[0].strip("`"), set(words(row[1])), words(row[2]))


def wrong_includes(root, row, engines_types):
    for path in sorted((root / "src" / row.folder).rglob("*")):
        if path.suffix not in (".h", ".cc") or TEST.search(path.name):
            continue
        for kind, header in INCLUDE.findall(path.read_text()):
            where = f"{path.relative_to(root)} includes {header}"
            if kind == '"' and not row.may_include(header, engines_types):
                yield f"{where}: {row.folder}/ may include only {', '.join(sorted(row.folders)) or 'nothing of ours'}"
            elif kind == "<" and ("." in header or "/" in header) and not SYSTEM.search(header):
                if not row.may_include_library(header):
                    yield f"{where}: {row.folder}/ may use only these libraries: {', '.join(row.libraries) or 'none'}"


def wrong_uses(root, row, rows):
    cmake = root / "src" / row.folder / "CMakeLists.txt"
    declared = re.search(r"turnstile_folder\(\w+\b([^)]*)\)", cmake.read_text()) if cmake.exists() else None
    uses = declared.group(1).partition("USES")[2] if declared else ""
    for folder in re.findall(r"\bts_(\w+)", uses):
        if folder in rows and not row.may_link(folder):
            yield f"{cmake.relative_to(root)} says USES ts_{folder}: {row.folder}/ may not include {folder}/"


def violations(root):
    rows, engines_types = read_table((root / "ARCHITECTURE.md").read_text())
    for row in rows.values():
        yield from wrong_includes(root, row, engines_types)
        yield from wrong_uses(root, row, rows)
    for folder in sorted({path.name for path in (root / "src").iterdir() if path.is_dir()} - set(rows)):
        yield f"src/{folder} has no row in the table of ARCHITECTURE.md"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    try:
        found = list(violations(root))
    except TableError as error:
        print(f'layers: cannot read the table "What may use what" of ARCHITECTURE.md: {error}')
        return 1
    for line in found:
        print(line)
    print(f"layers: {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
