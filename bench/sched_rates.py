#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the scheduler decides: the runs of `takt bench sched` that docs/research/placement.md speaks of.

Each run is repeated and the median taken of every figure: the machine may be busy with other things.
Memory and the taking up of a snapshot are also measured with 100,000 GPUs.

Usage: sched_rates.py TAKT [--repeat N] [--record [FILE]]
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

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
COLUMNS = ["date", "commit", "command", "machine", "simulated", "metric", "value", "unit"]
MIX = "data/traces/openb_pod_list_default.csv.gz"
ALL = ["--features", "gang,topology,quota,why"]
RUNS = [[*mode, "--placement", policy, *features]
        for policy, features in (("fgd", []), ("takt", []), ("fgd", ALL), ("takt", ALL))
        for mode in (["--mode", "fill"], ["--mode", "churn"])]
PLANNER = ["--planner", "100", "--placement", "takt"]
RUNS += [[*mode, *PLANNER, *features]
         for features in ([], ["--features", "gang,topology,quota"], ALL)
         for mode in (["--mode", "fill"], ["--mode", "churn"])]
LARGE = [["--nodes", "12500", "--placement", "takt"],
         ["--nodes", "100000", "--gpus", "1", "--placement", "takt"]]


def figures(got):
    """(metric, value, unit) of one run's JSON."""
    if got["mode"] == "fill":
        yield "placements", got["placements_per_s"], "1/s"
    else:
        yield "operations (placements and releases)", got["ops_per_s"], "1/s"
    for name in ("p50", "p99", "p999"):
        yield f"placement, {name}", got["placement"][name + "_ns"] / 1000, "us"
    if "planner_batch" in got:
        return
    yield "rejections", got["rejections_per_s"], "1/s"
    yield "ratio to the naive scan", got["ratio_to_naive"], "ratio"
    yield "naive scan, decisions", got["naive_per_s"], "1/s"
    yield "memory", got["bytes"] / 2**20, "MiB"
    yield "snapshot taken up", got["snapshot_ns"] / 1e6, "ms"


def run(takt, arguments, repeat):
    command = [takt, "bench", "sched", "--mix", MIX, "--json", *arguments]
    rows = {}
    for _ in range(repeat):
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=SOURCE)
        for metric, value, unit in figures(json.loads(done.stdout)):
            rows.setdefault((metric, unit), []).append(value)
    shown = " ".join(["takt", "bench", "sched", "--mix", os.path.basename(MIX), *arguments])
    for (metric, unit), values in rows.items():
        yield shown, metric, statistics.median(values), unit


def machine_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = re.findall(r"^model name\s*: (.*)$", file.read(), re.M)
    return f"{len(models)} x {models[0]}, Linux {platform.release()}; load {os.getloadavg()[0]:.1f}"


def commit():
    done = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty"],
                          capture_output=True, text=True)
    return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("takt")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--record", nargs="?", const=os.path.join(HERE, "results/sched.csv"))
    options = parser.parse_args()
    takt = os.path.abspath(options.takt)
    head = [datetime.date.today().isoformat(), commit()]
    rows = [[*head, shown, machine_name(), "yes", metric, f"{value:.6g}", unit]
            for arguments, repeat in [(a, options.repeat) for a in RUNS] + [(a, 1) for a in LARGE]
            for shown, metric, value, unit in run(takt, arguments, repeat)]
    target = open(options.record, "w", encoding="utf-8") if options.record else sys.stdout
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)


if __name__ == "__main__":
    main()
