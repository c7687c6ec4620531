"""Running a load generator once, and knowing how quiet the machine was meanwhile."""

import json
import os
import subprocess
import threading
import time

import systems

NOISY_CORES = 0.2  # CPU used by others, above which a run is marked
TICKS = os.sysconf("SC_CLK_TCK")


def machine_cpu():
    """Seconds of CPU that the machine has spent on anything, time stolen by its host included."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def process_cpu(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def process_rss_kb(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as status:
            total += next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
    return total


def wait_until_quiet(limit_seconds):
    deadline = time.monotonic() + limit_seconds
    while time.monotonic() < deadline:
        began, machine = time.monotonic(), machine_cpu()
        time.sleep(0.5)
        if (machine_cpu() - machine) / (time.monotonic() - began) <= NOISY_CORES:
            return


def run_generator(command, limit_seconds):
    """Runs a generator to its end; returns its report and the CPU seconds it used in all."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=systems.end_with_parent)
    guard = threading.Timer(limit_seconds, process.kill)
    guard.start()
    try:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        guard.cancel()
        process.stdout.close()
    if process.returncode != 0:
        raise RuntimeError(f"{os.path.basename(command[0])} ended with code {process.returncode}")
    return json.loads(output), usage.ru_utime + usage.ru_stime


def measure(system, tools, options):
    """One run: the generator's report, and how busy the rest of the machine was meanwhile."""
    pids = system.pids()
    command = system.generator(tools, options)
    began, machine, server = time.monotonic(), machine_cpu(), process_cpu(pids)
    report, client = run_generator(command, options.seconds + 600)
    elapsed = time.monotonic() - began
    other = machine_cpu() - machine - (process_cpu(pids) - server) - client
    report["other_cores"] = round(max(0.0, other / elapsed), 3)
    report["server_cores"] = round(report["server_cpu_s"] / report["seconds"], 3)
    report["client_cores"] = round(report["client_cpu_s"] / report["seconds"], 3)
    report["noisy"] = report["other_cores"] > NOISY_CORES
    return report
