#!/usr/bin/env python3
"""check_layers.py finds what it is for: plants a fault of each kind in a tree of its own and expects it to be named."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check_layers.py")
TABLE = """# Architecture

## What may use what
*Engine's types* are `types.h` and `command.h`.

| folder | may include | libraries |
| --- | --- | --- |
| `base` | – | fmt |
| `engine` | base | Boost.Unordered |
| `api` | base, engine's types | fmt, simdjson |
| `client` | base, public headers | libcurl |
| `content` | base, public headers | protobuf |

## Threads
| folder | other | table |
"""


class Layers(unittest.TestCase):
    def check(self, files, table=TABLE):
        """(exit code, output) for a tree with these files, by their path in src/."""
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            (root / "src").mkdir()
            (root / "ARCHITECTURE.md").write_text(table)
            for place, text in files.items():
                path = root / "src" / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            result = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
            self.assertEqual(result.stderr, "")
            return result.returncode, result.stdout

    def assert_refused(self, place, text, expected):
        code, output = self.check({place: text})
        self.assertEqual(code, 1, output)
        self.assertIn(f"src/{place} ", output)
        self.assertIn(expected, output)

    def assert_unreadable(self, table, expected):
        code, output = self.check({}, table)
        self.assertEqual(code, 1)
        self.assertIn("cannot read the table", output)
        self.assertIn(expected, output)

    def test_what_the_table_allows_is_no_violation(self):
        code, output = self.check({
            "engine/a.cc": '#include <vector>\n#include "base/time.h"\n#include "engine/rules.h"\n',
            "api/a.cc": '#include <fmt/format.h>\n#include <simdjson.h>\n#include <sys/uio.h>\n#include "engine/types.h"\n',
            "content/a.cc": '#include <containerd_content.pb.h>\n#include <google/protobuf/message.h>\n#include "turnstile/x.h"\n',
            "content/CMakeLists.txt": "turnstile_folder(content SOURCES a.cc\n  USES ts_base ts_client ts_content_proto RE2)\n",
        })
        self.assertEqual((code, output), (0, "layers: 0 violations\n"))

    def test_a_folder_that_is_not_in_the_row(self):
        self.assert_refused("engine/bad.cc", '#include "api/error.h"\n', "engine/ may include only base")

    def test_a_folder_that_may_include_nothing(self):
        self.assert_refused("base/bad.h", '#include "engine/types.h"\n', "base/ may include only nothing of ours")

    def test_more_of_the_engine_than_its_types(self):
        self.assert_refused("api/bad.cc", '#include "engine/rules.h"\n', "api/ may include only base, engine's types")

    def test_public_headers_where_they_are_not_in_the_row(self):
        self.assert_refused("api/bad.cc", '#include "turnstile/lock_client.h"\n', "api/ may include only")

    def test_the_client_itself_where_only_public_headers_are_in_the_row(self):
        self.assert_refused("content/bad.cc", '#include "client/core.h"\n', "content/ may include only")

    def test_a_library(self):
        self.assert_refused("base/bad.h", "#include <simdjson.h>\n", "base/ may use only these libraries: fmt")

    def test_a_library_whose_name_only_begins_alike(self):
        self.assert_refused("client/bad.h", "#include <curlpp.h>\n", "client/ may use only these libraries: libcurl")

    def test_what_a_test_includes_is_its_own_business(self):
        self.assertEqual(self.check({"base/time_test.cc": '#include "api/error.h"\n#include <simdjson.h>\n'})[0], 0)

    def test_uses_of_cmake(self):
        self.assert_refused("engine/CMakeLists.txt", "turnstile_folder(engine WHOLE SOURCES a.cc USES ts_base ts_api)\n",
                            "engine/ may not include api/")

    def test_a_folder_without_a_row(self):
        code, output = self.check({"new/a.cc": ""})
        self.assertEqual(code, 1)
        self.assertIn("src/new has no row", output)

    def test_a_table_that_cannot_be_read(self):
        self.assert_unreadable(TABLE.replace("## What may", "## Who may"), "there is no section")
        self.assert_unreadable(TABLE.replace("may include |", "may use |"), "no table with the columns")
        self.assert_unreadable(TABLE.replace("*Engine's types* are", "The engine has"), "which headers these are")
        self.assert_unreadable(TABLE.replace("| fmt |", "| fmd |"), '"fmd" is none of')
        self.assert_unreadable(TABLE.replace("`api` | base,", "`api` | bass,"), '"bass" is no folder')
        self.assert_unreadable(TABLE.replace("| `engine` | base |", "| `engine` | base | extra |"), "this row is not")
        self.assert_unreadable(TABLE.replace("`client`", "`api`"), "api has two rows")


if __name__ == "__main__":
    unittest.main()
