#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it is worth to know which work runs how fast on which model of GPU.

`takt simulate` on Gavel's experiment (docs/research/placement.md): 36 V100, 36 P100, 36 K80, generated jobs, the same
queue policy once with a placement policy that is blind to models and once with `hetero`. Prints and
records mean time from submission to end, the ratio of the means, and the mean difference over the
seeds with its 95 % interval (paired: every policy gets the same jobs and nodes).

Usage: hetero_jct.py BUILD_FOLDER [--seeds A..B] [--blind POLICY] [--record]
"""
import argparse
import csv
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = ["date", "commit", "command", "machine", "simulated", "metric", "value", "unit"]
QUEUES, LOADS = ("fifo", "easy", "las", "qssf"), (60, 80, 95)
CLUSTER = "uniform:9x4:v100,9x4:p100,9x4:k80"
TRACE = "gavel:data/traces/gavel_throughputs.json.gz"
# Student's t, two-sided 95 %, by degrees of freedom; beyond 30 the normal's is near enough.
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
       2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
       2.052, 2.048, 2.045, 2.042)


def simulate(build, seed, blind):
    """{(queue, placement, load): mean hours from submission to end} of one seed."""
    ran = subprocess.run(
        [os.path.join(build, "src/daemon/takt"), "simulate", "--protocol", "queue",
         "--trace", TRACE, "--cluster", CLUSTER, "--queue", ",".join(QUEUES),
         "--placement", f"{blind},hetero", "--load", ",".join(map(str, LOADS)),
         "--seeds", f"{seed}..{seed}", "--json"],
        cwd=SOURCE, capture_output=True, text=True, check=True)
    found = {}
    for result in json.loads(ran.stdout)["results"]:
        queue, placement = result["queue"].split("/")
        found[queue, placement, result["load_pct"]] = result["jct_mean_s"] / 3600
    return found


def interval(values):
    """Half of the 95 % interval of the mean."""
    if len(values) < 2:
        return math.nan
    t = T95[len(values) - 2] if len(values) - 2 < len(T95) else 1.960
    return t * statistics.stdev(values) / math.sqrt(len(values))


def measure(build, seeds, blind):
    runs = [simulate(build, seed, blind) for seed in seeds]
    rows = []
    for queue in QUEUES:
        for load in LOADS:
            what = f"mean JCT, {queue}, load {load} %"
            before = [run[queue, blind, load] for run in runs]
            after = [run[queue, "hetero", load] for run in runs]
            less = [a - b for a, b in zip(after, before)]
            rows += [(f"{what}, {blind}", statistics.mean(before), "h"),
                     (f"{what}, hetero", statistics.mean(after), "h"),
                     (f"{what}, times", statistics.mean(before) / statistics.mean(after), ""),
                     (f"{what}, difference", statistics.mean(less), "h"),
                     (f"{what}, difference, 95 % +-", interval(less), "h"),
                     (f"{what}, seeds where hetero is worse", sum(d > 0 for d in less), "")]
    return rows


def record(rows, command):
    def git(*args):
        return subprocess.run(["git", "-C", SOURCE, *args], capture_output=True, text=True,
                              check=True).stdout.strip()

    path = os.path.join(SOURCE, "bench/results/hetero.csv")
    commit = git("rev-parse", "--short", "HEAD") + ("-dirty" if git("status", "-s") else "")
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}"
    new = not os.path.exists(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for metric, value, unit in rows:
            writer.writerow([datetime.date.today(), commit, command, machine, "yes", metric,
                             f"{value:.6g}", unit])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--seeds", default="2000..2019")
    parser.add_argument("--blind", default="takt", help="placement policy to compare with")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(".."))
    rows = measure(args.build, range(first, last + 1), args.blind)
    for metric, value, unit in rows:
        print(f"{metric:60} {value:10.3f} {unit}")
    if args.record:
        record(rows, f"hetero_jct.py --seeds {args.seeds} --blind {args.blind} --record")
    return 0


if __name__ == "__main__":
    sys.exit(main())
