"""Several servers under the same load, in interleaved rounds: A B C, A B C, …

A ratio is formed from two runs of the same round, which lie seconds apart, and shown as the median over the
rounds with its range. README.md says how to read it.
"""

import datetime
import json
import os
import statistics
import subprocess
from dataclasses import dataclass
from typing import Any, Callable

import measuring
import systems
import tables

# For each mode the figures of the table, as (field of the generator's report, heading).
FIGURES = {
    "pair": [("pairs_per_second", "pairs/s"), ("p50_us", "p50 µs"), ("p99_us", "p99 µs"),
             ("server_cpu_us_per_pair", "CPU µs/pair")],
    "fanout": [("skips_per_second", "skips/s"), ("p50_us", "p50 µs"), ("p99_us", "p99 µs")],
    "hold": [("acquires_per_second", "acquires/s"), ("bytes_per_lock", "bytes/lock")],
    "idle": [("bytes_per_connection", "bytes/conn"), ("server_cpu_s", "CPU s"), ("closed_by_server", "closed")],
}
FIGURES["batch"] = FIGURES["pair"]
FIGURES["handover"] = [("handovers_per_second", "handovers/s"), *FIGURES["pair"]]

# Of the figures, the ones that are compared.
COMPARED = {
    "pair": ["pairs_per_second", "p50_us", "p99_us", "server_cpu_us_per_pair"],
    "fanout": ["skips_per_second", "p99_us"],
    "hold": ["acquires_per_second", "bytes_per_lock"],
    "idle": ["bytes_per_connection"],
}
COMPARED["batch"] = COMPARED["pair"]
COMPARED["handover"] = ["handovers_per_second", *COMPARED["pair"][1:]]

MEMORY_MODES = ("hold", "idle")
CORES = ["server_cores", "client_cores", "other_cores"]


def add_rules(parser, rounds, seconds):
    """The options that peers and run have in common."""
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--wait-quiet", type=float, default=0, metavar="SECONDS",
                        help="before each run, wait at most so long for the machine to be quiet")
    parser.add_argument("--tries", type=int, default=1,
                        help="repeat a noisy run up to so many times in all; the last one counts")
    parser.add_argument("--drop-noisy", action="store_true", help="leave noisy runs out of the medians")


@dataclass
class Contestant:
    name: str
    make: Callable[[str], systems.System]  # given the directory to work in
    options: Any                           # of the generator: mode, connections, …
    against: tuple = ()                    # the names of those that ratios are formed with: like with like


def run_rounds(contestants, tools, rules, directory):
    """All runs, round by round, each round through all systems; and how many runs failed.

    `rules`: rounds, wait_quiet, tries. The servers stay up over all rounds, and round 0 warms them up. Only where
    memory is measured does each run get a fresh server, because freed memory that is used again would hide the cost.
    """
    fresh = contestants[0].options.mode in MEMORY_MODES
    runs, failures, running = [], 0, {}
    try:
        if not fresh:
            for each in contestants:
                running[each.name] = each.make(os.path.join(directory, "all"))
                running[each.name].start()
        for round_number in range(1 if fresh else 0, rules.rounds + 1):
            for each in contestants:
                try:
                    if fresh:
                        running[each.name] = each.make(os.path.join(directory, f"round{round_number}"))
                        running[each.name].start()
                    run = measure_quietly(each, running[each.name], tools, rules, round_number)
                    runs += [run] if round_number > 0 else []
                except (RuntimeError, ValueError, OSError) as failure:
                    print(f"round {round_number}  {each.name:<16} FAILED: {failure}", flush=True)
                    failures += 1
                finally:
                    if fresh and each.name in running:
                        running.pop(each.name).stop()
    finally:
        for system in running.values():
            system.stop()
    return runs, failures


def measure_quietly(contestant, system, tools, rules, round_number):
    """Measures when the machine is quiet, and again if it was not, as far as the rules allow."""
    tries = 1 if round_number == 0 or contestant.options.mode in MEMORY_MODES else rules.tries
    for attempt in range(1, tries + 1):
        measuring.wait_until_quiet(rules.wait_quiet)
        report = measuring.measure(system, tools, contestant.options)
        run = {"system": contestant.name, "round": round_number, "tries": attempt, **report}
        print_run(run, contestant.options.mode)
        if not run["noisy"]:
            break
    return run


def print_run(run, mode):
    field, heading = FIGURES[mode][0]
    notes = "  NOISY" if run["noisy"] else ""
    notes += f"  {run['errors']} ERRORS" if run["errors"] else ""
    notes += "  (warm-up, not counted)" if run["round"] == 0 else ""
    print(f"round {run['round']}  {run['system']:<16} {run[field]:>10,.0f} {heading:<12}"
          f" other CPU {run['other_cores']:.2f} cores{notes}", flush=True)


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def summarize(runs, mode, drop_noisy):
    """For each system the median and range of every figure, over the runs that count."""
    summary = {}
    for name in dict.fromkeys(run["system"] for run in runs):
        own = [run for run in runs if run["system"] == name]
        counted = [run for run in own if not (drop_noisy and run["noisy"])]
        entry = {"runs": len(own), "noisy": sum(run["noisy"] for run in own), "counted": len(counted),
                 "errors": sum(run["errors"] for run in own)}
        if counted:
            fields = [field for field, _ in FIGURES[mode]]
            for field in [*fields, *CORES, "server_rss_kb"]:
                entry[field] = spread([run.get(field, 0) for run in counted])
        summary[name] = entry
    return summary


def compare(runs, contestants, mode, rounds, drop_noisy):
    """Ratios ours/peer, each from two runs of the same round, which lie closest in time."""
    by_place = {(run["system"], run["round"]): run for run in runs if not (drop_noisy and run["noisy"])}
    ratios = []
    for our in contestants:
        for peer in our.against:
            pairs = [(by_place.get((our.name, i)), by_place.get((peer, i))) for i in range(1, rounds + 1)]
            pairs = [(a, b) for a, b in pairs if a and b]
            entry = {"ours": our.name, "peer": peer, "rounds": len(pairs),
                     "noisy": sum(a["noisy"] or b["noisy"] for a, b in pairs)}
            for field in COMPARED[mode]:
                values = [a.get(field, 0) / b[field] for a, b in pairs if b.get(field)]
                if values:
                    entry[field] = spread(values)
            ratios.append(entry)
    return ratios


def summary_rows(result):
    """The table of medians; the first row has the headings."""
    figures = FIGURES[result["mode"]]
    (rate, _), others = figures[0], figures[1:]
    rows = [["system", figures[0][1], "range", *(heading for _, heading in others),
             "RSS MB", "server", "client", "other cores", "noisy", "errors"]]
    for name, entry in result["summary"].items():
        noisy, errors = f"{entry['noisy']}/{entry['runs']}", str(entry["errors"])
        if not entry["counted"]:
            rows.append([name, *["-"] * (len(rows[0]) - 3), noisy, errors])
            continue
        rows.append([name, tables.number(entry[rate]["median"]),
                     f"{tables.number(entry[rate]['min'])}–{tables.number(entry[rate]['max'])}",
                     *(tables.number(entry[field]["median"]) for field, _ in others),
                     f"{entry['server_rss_kb']['median'] / 1024:.0f}",
                     *(f"{entry[field]['median']:.2f}" for field in CORES), noisy, errors])
    return rows


def ratio_rows(result):
    """The table of ratios, or nothing when there is no peer."""
    if not result["ratios"]:
        return []
    headings, compared = dict(FIGURES[result["mode"]]), COMPARED[result["mode"]]
    rows = [["ours / peer", *(headings[field] for field in compared), "noisy rounds"]]
    for entry in result["ratios"]:
        cells = [entry.get(field) for field in compared]
        rows.append([f"{entry['ours']} / {entry['peer']}", *(tables.spread(c) if c else "-" for c in cells),
                     f"{entry['noisy']}/{entry['rounds']}"])
    return rows


def versions(names):
    packages = sorted({package for name in names for package in systems.PACKAGES.get(name, {})})
    if not packages:
        return {}
    listing = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *packages],
                             capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in listing.splitlines())


def machine():
    return {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "cores": os.cpu_count(), "kernel": os.uname().release}


def contest(contestants, tools, rules, directory):
    """Runs, prints and returns one comparison. `failed`: a run failed or an answer was wrong."""
    mode = contestants[0].options.mode
    runs, failures = run_rounds(contestants, tools, rules, directory)
    result = {"mode": mode, "connections": contestants[0].options.connections, **machine(),
              "versions": versions([each.name for each in contestants]),
              "runs": runs, "summary": summarize(runs, mode, rules.drop_noisy),
              "ratios": compare(runs, contestants, mode, rules.rounds, rules.drop_noisy),
              "failed": failures > 0 or not runs or any(run["errors"] for run in runs)}
    print(f"\nmode {mode}, {result['connections']} connections, median of the rounds")
    print(tables.as_text(summary_rows(result)))
    if result["ratios"]:
        print("\nratio ours / peer: median of the rounds (lowest–highest)")
        print(tables.as_text(ratio_rows(result)))
    noisy = sum(run["noisy"] for run in runs)
    if noisy:
        print(f"\n{noisy} of {len(runs)} runs were noisy (others used more than {measuring.NOISY_CORES} core)")
    return result


def write_json(path, content):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as out:
        json.dump(content, out, indent=1)
