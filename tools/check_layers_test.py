#!/usr/bin/env python3
"""check_layers.py finds what it is for: plants a violation of each kind and expects it to be named."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).with_name("check_layers.py")
PLANTED = {
    "engine/bad.cc": ('#include "http/http.h"\n', "engine/ may use only base"),
    "api/bad.cc": ('#include "engine/rules.h"\n', "api/ may use only base"),
    "base/bad.h": ("#include <simdjson.h>\n", "base/ may use only these libraries"),
    "http/bad.cc": ('#include "engine/types.h"\n', "http/ may use only base"),
}


def run(source):
    return subprocess.run([sys.executable, CHECK, source], capture_output=True, text=True)


def main():
    failed = 0
    for place, (text, expected) in PLANTED.items():
        with tempfile.TemporaryDirectory() as directory:
            source = pathlib.Path(directory) / "src"
            path = source / place
            path.parent.mkdir(parents=True)
            path.write_text(text)
            result = run(source)
            found = result.returncode == 1 and expected in result.stdout
            print(("ok  " if found else "FAIL"), place, result.stdout.strip().splitlines()[:1])
            failed += not found
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "src"
        (source / "engine").mkdir(parents=True)
        (source / "engine" / "good.cc").write_text('#include <vector>\n#include "base/time.h"\n#include "engine/types.h"\n')
        failed += run(source).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
