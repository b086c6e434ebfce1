#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job that waits for memory: how much of the energy that costs no time governors save.

`takt replay-clocks` on the rows of one workload (BabelStream). Possible at no slowdown is what the clock of least
energy saves among those that are no more than 0.1 % slower than the highest: a difference that the table's own
measurements do not tell apart.

Usage: clocks_stream.py TAKT --points FILE [--workload babelstream] [--seeds A..B] [--record]
"""
import argparse
import csv
import datetime
import json
import os
import platform
import subprocess
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(SOURCE, "bench/results/clocks_stream.csv")
GOVERNORS, PROMISES, NO_SLOWDOWN_PCT = "memory-bound,assured,ladder,geepafs", ("1", "2", "5"), "0.1"
HEAD = ["date", "commit", "command", "machine", "simulated", "dataset", "gpu", "workload", "governor",
        "max_slowdown_pct", "epochs", "possible_at_no_slowdown_pct", "energy_saved_pct",
        "energy_saved_half95", "of_possible_pct", "slowdown_mean_pct", "slowdown_max_pct", "runs",
        "violating_jobs", "overhead_pct"]


def replay(args, path, promise, *more):
    ran = subprocess.run([args.takt, "replay-clocks", "--points", path, "--max-slowdown", promise, *more,
                          "--json"], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def possible(args, path):
    """{(dataset, gpu): percent}"""
    scores = replay(args, path, NO_SLOWDOWN_PCT, "--governor", "observe", "--seeds", "1", "--epochs", "9")
    return {(score["dataset"], score["gpu"]): score["optimum_saved_pct"] for score in scores["scores"]
            if score["actuator"] == "clock"}


def rows_of(args, path):
    most = possible(args, path)
    for promise in PROMISES:
        result = replay(args, path, promise, "--governor", GOVERNORS, "--seeds", args.seeds, "--epochs",
                        "30,100,400")
        for score in result["scores"]:
            board = score["dataset"], score["gpu"]
            if score["actuator"] == "clock" and score["governor"] in GOVERNORS:
                values = {**score, "workload": args.workload, "possible_at_no_slowdown_pct": most[board],
                          "of_possible_pct": 100 * score["energy_saved_pct"] / most[board]}
                yield [datetime.date.today().isoformat(), result["commit"],
                       f"bench/clocks_stream.py TAKT --points POINTS --seeds {args.seeds}",
                       f"{platform.machine()}, {platform.system()}", "replayed on a measured table",
                       *(round(values[name], 3) if isinstance(values[name], float) else values[name]
                         for name in HEAD[5:])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("takt")
    parser.add_argument("--points", required=True)
    parser.add_argument("--workload", default="babelstream")
    parser.add_argument("--seeds", default="1..40")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        with open(args.points, encoding="utf-8") as whole:
            head, *rows = whole.readlines()
        file.write(head + "".join(row for row in rows if row.split(",")[2] == args.workload))
        file.flush()
        rows = list(rows_of(args, file.name))
    for row in rows:
        print(*row[8:], sep=",")
    if args.record:
        with open(RESULTS, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEAD)
            writer.writerows(rows)


if __name__ == "__main__":
    main()
