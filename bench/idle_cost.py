#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What takt costs a machine where nothing runs: processor time and memory of all its processes.

Processor time of `takt serve` at 10 Hz on 8 simulated GPUs, beside the bare loop of the same driver
calls (bare_loop.c) in the same seconds; nanoseconds as the scheduler counts them (/proc/PID/schedstat;
utime and stime are counted in ticks of 10 ms and know no less). Memory of each process and of all:
resident (Rss, where a page that several share counts in each), its fair share (Pss), and what is its
own alone; less what the driver's library and the simulated machine's file take.

Usage: idle_cost.py BUILD_FOLDER [--seconds N] [--runs N] [--record [FILE]]
Needs `ninja -C BUILD_FOLDER` and `ninja -C BUILD_FOLDER bench/bare_loop`.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(SOURCE, "tests/e2e"))
import kit  # noqa: E402

COLUMNS = ["date", "commit", "command", "machine", "simulated", "metric", "value", "unit"]
BARE = os.path.join(kit.BUILD, "bench/bare_loop")
SETTLE_S = 3
FIELDS = {"Rss": ["Rss"], "Pss": ["Pss"], "own": ["Private_Clean", "Private_Dirty"]}


def cpu_ns(pid):
    """Processor time of all threads that a process has."""
    folder, total = f"/proc/{pid}/task", 0
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def is_drivers(path, machine):
    return os.path.basename(path).startswith("libnvidia-ml.so") or path == machine


def memory_kib(pid, machine):
    """{"Rss": KiB, ...} of a process without the driver's mappings."""
    total, counted = dict.fromkeys(FIELDS, 0), True
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        for line in file:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                path = line.split(maxsplit=5)[5:]
                counted = not (path and is_drivers(path[0].strip(), machine))
                continue
            name, value = line.split(":", 1)
            for what, names in FIELDS.items():
                if counted and name in names:
                    total[what] += int(value.split()[0])
    return total


def bare_loop(m, seconds):
    done = m.run(kit.TWIN, "exec", "--", BARE, str(seconds))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["gpus"] == 8 and answer["simulated"], answer
    return answer


def measure(m, seconds):
    """{metric: (value, unit)} of one run."""
    kinds = m.processes()
    before = {pid: cpu_ns(pid) for pid in kinds}
    begin = time.monotonic()
    bare = bare_loop(m, seconds)
    used = {pid: cpu_ns(pid) - before[pid] for pid in kinds}
    whole = time.monotonic() - begin
    memory = {pid: memory_kib(pid, m.path("machine")) for pid in kinds}
    assert m.processes() == kinds, "a process came or went"

    per_s = sum(used.values()) / whole / 1e3
    bare_per_s = bare["cpu_seconds"] / seconds * 1e6
    found = {"cpu takt": (per_s, "us/s"), "cpu bare loop": (bare_per_s, "us/s"),
             "cpu takt / bare loop": (per_s / bare_per_s, "ratio"),
             "cpu takt beyond bare loop": (per_s - bare_per_s, "us/s"),
             "driver calls of bare loop": (bare["calls"] / seconds, "1/s")}
    for pid, kind in kinds.items():
        found[f"cpu {kind}"] = (used[pid] / whole / 1e3, "us/s")
        for what in FIELDS:
            found[f"{what} {kind}"] = (memory[pid][what], "KiB")
    for what in FIELDS:
        found[f"{what} all"] = (sum(each[what] for each in memory.values()), "KiB")
    return found


def medians(runs):
    return {name: (statistics.median(run[name][0] for run in runs), unit)
            for name, (_, unit) in runs[0].items()}


def machine_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = re.findall(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
    return f"{os.cpu_count()} x {models[0] if models else platform.machine()}, " \
           f"{platform.system()} {platform.release()}"


def commit():
    return subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty"],
                          capture_output=True, text=True, check=True).stdout.strip()


def record(path, found, command, simulated="yes"):
    new, made_by = not os.path.exists(path), commit()
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for name, (value, unit) in found.items():
            writer.writerow([datetime.date.today().isoformat(), made_by, command, machine_name(),
                             simulated, name, f"{value:.5g}", unit])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--record", nargs="?", const=os.path.join(HERE, "results/idle.csv"))
    args = parser.parse_args()
    with kit.machine() as m:
        m.start()
        time.sleep(SETTLE_S)
        found = medians([measure(m, args.seconds) for _ in range(args.runs)])
    for name, (value, unit) in found.items():
        print(f"{name:28} {value:10.2f} {unit}")
    if args.record:
        record(args.record, found, f"idle_cost.py --seconds {args.seconds} --runs {args.runs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
