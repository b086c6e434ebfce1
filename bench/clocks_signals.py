#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far off what stands in for a job's progress is, when its clock changes.

Of each program of a table of activity counters, at each clock but the highest: the speed that a signal claims,
relative to the highest clock, against the one that the program's own time says. `counters` is the sum that takt makes
of them (src/daemon/govern_counters.h), `utilisation` the clock alone, since these programs are busy all the time;
`unweighted`, `memory` and `sm` are what was not taken: the sum without weights, activity of memory alone, and that of
SMs times the clock. Programs of which the counters of a signal see less than 1 % are left out of it and counted.

Usage: clocks_signals.py --counters FILE [--record]

FILE needs the columns dataset, gpu, workload, core_mhz, time_ms and dram_active, sm_active, tensor_active, fp64_active,
fp32_active, fp16_active (fractions). --record writes bench/results/clocks_signals.csv.
"""
import argparse
import csv
import datetime
import math
import os
import platform
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(SOURCE, "bench/results/clocks_signals.csv")
PIPES = ("tensor_active", "fp64_active", "fp32_active", "fp16_active")
PIPE_WEIGHT = 8
LEAST_ACTIVE = 0.01
HEAD = ["date", "commit", "command", "machine", "simulated", "dataset", "gpu", "signal", "programs", "left_out",
        "settings", "rms_pct", "mean_pct", "p90_pct", "max_pct"]


def pipes(row):
    return sum(row[name] for name in PIPES)


# Each: what is seen of a program, 1 = all the time; what that claims as its speed, in any unit.
SIGNALS = {
    "counters": (lambda row: row["dram_active"] + pipes(row),
                 lambda row: row["dram_active"] + PIPE_WEIGHT * pipes(row) * row["core_mhz"] / row["top_mhz"]),
    "utilisation": (lambda row: 1, lambda row: row["core_mhz"]),
    "unweighted": (lambda row: row["dram_active"] + pipes(row),
                   lambda row: row["dram_active"] + pipes(row) * row["core_mhz"] / row["top_mhz"]),
    "memory": (lambda row: row["dram_active"], lambda row: row["dram_active"]),
    "sm": (lambda row: row["sm_active"], lambda row: row["sm_active"] * row["core_mhz"]),
}


def programs_of(path):
    """{(dataset, gpu): {program: its rows, the highest clock last}}."""
    tables = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            program = tables.setdefault((row["dataset"], row["gpu"]), {}).setdefault(row["workload"], [])
            program.append({name: float(row[name]) for name in
                            ("core_mhz", "time_ms", "dram_active", "sm_active", *PIPES)})
    for rows in (rows for programs in tables.values() for rows in programs.values()):
        rows.sort(key=lambda row: row["core_mhz"])
        for row in rows:
            row["top_mhz"] = rows[-1]["core_mhz"]
    return tables


def errors_of(programs, seen, claims):
    """Relative errors at all settings; how many programs they are of."""
    errors, count = [], 0
    for *lower, top in programs.values():
        if seen(top) < LEAST_ACTIVE:
            continue
        count += 1
        errors += [claims(row) / claims(top) * row["time_ms"] / top["time_ms"] - 1 for row in lower]
    return errors, count


def figures(errors):
    ranked = sorted(abs(error) for error in errors)
    return [round(100 * value, 1) for value in (
        math.sqrt(sum(error ** 2 for error in errors) / len(errors)), sum(errors) / len(errors),
        ranked[int(0.9 * len(ranked))], ranked[-1])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--counters", required=True)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    commit = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True,
                            check=True).stdout.strip()
    same = [datetime.date.today().isoformat(), commit, "bench/clocks_signals.py --counters COUNTERS",
            f"{platform.machine()}, {platform.system()}", "a measured table of others"]
    rows = []
    for (dataset, gpu), programs in programs_of(args.counters).items():
        for signal, (seen, claims) in SIGNALS.items():
            errors, count = errors_of(programs, seen, claims)
            rows.append([*same, dataset, gpu, signal, count, len(programs) - count, len(errors), *figures(errors)])
    with open(RESULTS if args.record else os.dup(sys.stdout.fileno()), "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])


if __name__ == "__main__":
    main()
