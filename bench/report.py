"""docs/benchmarks.md from the results in build/bench-kit: only what stands between the markers is replaced.

    <!-- measured: NAME -->   …written here…   <!-- end -->

Everything outside is written by hand and kept.
"""

import json
import os
import re

import comparison
import plots
import systems
import tables

PAGE = os.path.join(systems.ROOT, "docs", "benchmarks.md")
BLOCK = re.compile(r"(<!-- measured: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)


def load(name):
    path = systems.result_path(name)
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def provenance(result):
    peers = ", ".join(f"{package} {version}" for package, version in result.get("versions", {}).items())
    return f"*{result['when']}, {result['cores']} cores, Linux {result['kernel']}{'; ' + peers if peers else ''}*"


def micro_text(result):
    rows = [["benchmark", "time", "CPU", "more"]]
    for each in result["benchmarks"]:
        more = ", ".join(f"{tables.number(value)} {name}" for name, value in each["counters"].items())
        rows.append([f"`{each['name']}`", each["time"], each["cpu"], more])
    return tables.as_markdown(rows)


def contest_text(result):
    parts = []
    if result["ratios"]:
        parts.append(tables.as_markdown(comparison.ratio_rows(result)))
    parts.append(tables.as_markdown(comparison.summary_rows(result)))
    return "\n\n".join(parts)


def text_of(name):
    """The Markdown for one block, or None when there is no result for it."""
    result = load(name)
    if result is None:
        return None
    if name == "micro":
        body = micro_text(result)
    elif name in ("memory", "client", "content", "tls"):
        body = tables.as_markdown(result["rows"])
    elif name == "growth":
        body = (f"Pairs a second ({result['options']['store']} store):\n\n{tables.as_markdown(result['pairs'])}\n\n"
                f"Server CPU µs a pair:\n\n{tables.as_markdown(result['cpu'])}")
        plots.write(result["pairs"], result["cpu"])
    else:
        body = contest_text(result)
    return f"{provenance(result)}\n\n{body}\n"


def render(page):
    """The page with every block replaced for which there is a result."""
    def replace(match):
        text = text_of(match.group(2))
        return match.group(0) if text is None else match.group(1) + text + match.group(3)
    return BLOCK.sub(replace, page)


def write():
    with open(PAGE) as file:
        page = file.read()
    with open(PAGE, "w") as file:
        file.write(render(page))
    print(f"written: {os.path.relpath(PAGE)}")
