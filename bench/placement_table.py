#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the default placement policy allocates, against FGD and the bound.

`takt simulate` on the given openb traces: the published experiment (pods arrive and stay), the same with
fractions moved, and pods that come and go at their real times, on the cluster as it is and on a
drawn part of it with copies of the trace laid over each other up to a load. Every row has the
command that repeats it; differences to FGD are paired by seed, with 95 % intervals.

Usage: placement_table.py BUILD_FOLDER [--seeds A..B] [--timed-seeds A..B] [--record]
"""
import argparse
import csv
import datetime
import json
import os
import platform
import subprocess
import sys

from hetero_jct import COLUMNS, SOURCE, interval

TRACES = ("default", "cpu100", "gpushare40", "gpuspec10", "multigpu20")
LOADS = "50,60,70,80,90,100,110,120,130"
TIMED_LOADS = (70, 80, 90)
CLASSES = ("0.81", "8")


def command(protocol, trace, options):
    return ["takt", "simulate", "--protocol", protocol, "--cluster",
            "data/traces/openb_node_list_gpu_node.csv", "--trace",
            f"data/traces/openb_pod_list_{trace}.csv.gz", *options]


def run(build, words):
    """The results of a command, by (placement, load)."""
    ran = subprocess.run([os.path.join(build, "src/daemon/takt"), *words[1:], "--json"],
                         cwd=SOURCE, capture_output=True, text=True, check=True)
    return {(r["placement"], r.get("load_pct")): r for r in json.loads(ran.stdout)["results"]}


def mean(values):
    return sum(values) / len(values)


def published(build, trace, seeds):
    words = command("fgd", trace, ["--placement", "fgd,takt", "--seeds", seeds, "--load", LOADS])
    results = run(build, words)
    for (placement, load), result in results.items():
        what = f"openb {trace}, {load} % arrived"
        yield words, f"{what}, allocation, {placement}", result["allocation_pct"], "%"
        if placement == "fgd":
            yield words, f"{what}, bound", result["bound_pct"], "%"
            continue
        against = result["against"]
        yield words, f"{what}, takt - fgd", against["difference_pct"], "points"
        yield words, f"{what}, takt - fgd, 95 % +-", against["ci95"], "points"
    for (placement, load), result in results.items():
        for entry in result["classes"] if load == 100 else ():
            if entry["class"] in CLASSES:
                yield (words, f"openb {trace}, 100 % arrived, placed of class {entry['class']}, "
                       f"{placement}", entry["accepted_pct"], "%")


def moved(build, seeds):
    words = command("fgd", "default", ["--placement", "takt", "--seeds", seeds, "--load", "100",
                                       "--migrate", "5"])
    result = run(build, words)["takt", 100]
    what = "openb default, 100 % arrived, at most 1 move for 20 placed"
    yield words, f"{what}, allocation, takt", result["allocation_pct"], "%"
    yield words, f"{what}, 95 % +-", result["ci95"], "points"
    yield words, f"{what}, moves for 100 placed", result["moves_per_100"], ""


def timed_as_it_is(build, seeds):
    words = command("timed", "default", ["--placement", "fgd,takt", "--seeds", seeds])
    for (placement, _), result in run(build, words).items():
        what = f"openb default, real times, {placement}"
        yield words, f"{what}, allocation", result["allocation_pct"], "%"
        yield words, f"{what}, mean wait", result["wait_mean_s"], "s"


def timed(build, first, last):
    options = ["--placement", "fgd,takt", "--nodes", "120", "--load",
               ",".join(map(str, TIMED_LOADS))]
    words = command("timed", "default", [*options, "--seeds", f"{first}..{last}"])
    runs = [run(build, command("timed", "default", [*options, "--seeds", f"{s}..{s}"]))
            for s in range(first, last + 1)]
    for load in TIMED_LOADS:
        for field, what, unit in (("allocation_pct", "allocation", "%"),
                                  ("wait_mean_s", "mean wait", "s")):
            by = {p: [r[p, load][field] for r in runs] for p in ("fgd", "takt")}
            less = [t - f for t, f in zip(by["takt"], by["fgd"])]
            name = f"openb default, real times, 120 nodes, load {load} %, {what}"
            for placement, values in by.items():
                yield words, f"{name}, {placement}", mean(values), unit
            yield words, f"{name}, takt - fgd", mean(less), unit
            yield words, f"{name}, takt - fgd, 95 % +-", interval(less), unit


def rows_of(build, seeds, timed_seeds):
    first, last = map(int, timed_seeds.split(".."))
    for trace in TRACES:
        yield from published(build, trace, seeds)
    yield from moved(build, seeds)
    yield from timed_as_it_is(build, f"{first}..{first}")
    yield from timed(build, first, last)


def record(rows):
    def git(*args):
        return subprocess.run(["git", "-C", SOURCE, *args], capture_output=True, text=True,
                              check=True).stdout.strip()

    commit = git("rev-parse", "--short", "HEAD") + ("-dirty" if git("status", "-s") else "")
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}"
    with open(os.path.join(SOURCE, "bench/results/placement.csv"), "w", newline="",
              encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for words, metric, value, unit in rows:
            writer.writerow([datetime.date.today(), commit, " ".join(words), machine, "yes",
                             metric, f"{value:.6g}", unit])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--seeds", default="2000..2019")
    parser.add_argument("--timed-seeds", default="2000..2009")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    rows = list(rows_of(os.path.abspath(args.build), args.seeds, args.timed_seeds))
    for _, metric, value, unit in rows:
        print(f"{metric:75} {value:12.4f} {unit}")
    if args.record:
        record(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
