#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much governors depend on how well is measured, how fast clocks change, and on jobs that change.

`takt replay-clocks` with other noise, delay, meters and phases than usual, one at a time; 5 % promised, jobs of 400
epochs, on the clock curves of three tables.

Usage: clocks_sweeps.py TAKT --points FILE [--seeds A..B] [--record]
       clocks_sweeps.py --docs

--record writes bench/results/clocks_sweeps.csv, --docs makes the table of docs/clocks-replay.md from it.
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
RESULTS = os.path.join(SOURCE, "bench/results/clocks_sweeps.csv")
PAGE = os.path.join(SOURCE, "docs/clocks-replay.md")
BEGIN, END = "<!-- made by bench/clocks_sweeps.py --docs -->", "<!-- end of what is made -->"
GOVERNORS = ("assured", "ladder", "geepafs")
TABLES = {"geepafs": "V100", "perseus-sosp24": "A100", "nvdvfs-real": "RTX 8000"}
VARIANTS = {"as usual": (), "noise 0 %, 0 %": ("--noise", "0,0"), "noise 1 %, 1 %": ("--noise", "1,1"),
            "noise 3 %, 5 %": ("--noise", "3,5"), "noise 5 %, 5 %": ("--noise", "5,5"),
            "meter at once": ("--meter", "0s"), "meter once a second": ("--meter", "1s"),
            "delay 0 s": ("--delay", "0s"), "delay 1 s": ("--delay", "1s"),
            "job of 2 phases": ("--phases", "2"), "job of 4 phases": ("--phases", "4"),
            "length told": ("--tell-remaining",)}
FIGURES = ["share_of_optimum_pct", "share_of_optimum_half95", "worst_workload_share_pct",
           "energy_saved_pct", "optimum_saved_pct", "slowdown_mean_pct", "slowdown_p95_pct",
           "slowdown_max_pct", "runs", "violating_jobs", "violating_epochs_pct", "overhead_pct",
           "settling_loss_pct", "changes_per_job"]
HEAD = ["date", "commit", "command", "machine", "simulated", "variant", "dataset", "gpu", "governor",
        *FIGURES]


def part_of(points, file):
    """The rows of the three tables."""
    with open(points, encoding="utf-8") as whole:
        head, *rows = whole.readlines()
    file.write(head + "".join(row for row in rows if row.split(",", 1)[0] in TABLES))
    file.flush()


def replay(args, path, options):
    ran = subprocess.run([args.takt, "replay-clocks", "--points", path, "--governor",
                          ",".join(GOVERNORS), "--max-slowdown", "5", "--epochs", "400", "--seeds",
                          args.seeds, *options, "--json"], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def rows_of(args):
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        part_of(args.points, file)
        for variant, options in VARIANTS.items():
            result = replay(args, file.name, options)
            for score in result["scores"]:
                if score["governor"] in GOVERNORS and score["actuator"] == "clock":
                    yield [datetime.date.today().isoformat(), result["commit"],
                           f"bench/clocks_sweeps.py TAKT --points POINTS --seeds {args.seeds}",
                           f"{platform.machine()}, {platform.system()}", "replayed on a measured table",
                           variant, score["dataset"], score["gpu"], score["governor"],
                           *(round(score[name], 3) if score[name] is not None else ""
                             for name in FIGURES)]


def cell(row):
    broke = int(float(row["violating_jobs"]))
    return (f"{float(row['share_of_optimum_pct']):.0f} %, {float(row['slowdown_max_pct']):.1f} %, "
            f"{broke} of {int(float(row['runs']))}")


def docs():
    with open(RESULTS, encoding="utf-8", newline="") as file:
        rows = {(row["variant"], row["dataset"], row["governor"]): row for row in csv.DictReader(file)}
    lines = [BEGIN, ""]
    for governor in GOVERNORS:
        lines += [f"| `{governor}` | " + " | ".join(TABLES.values()) + " |", "|---" * 4 + "|"]
        lines += [f"| {variant} | " + " | ".join(cell(rows[variant, dataset, governor])
                                                for dataset in TABLES) + " |" for variant in VARIANTS]
        lines.append("")
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page.split(BEGIN)[0] + "\n".join(lines + [END]) + page.split(END)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("takt", nargs="?")
    parser.add_argument("--points")
    parser.add_argument("--seeds", default="1..5")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    if args.docs:
        docs()
        return
    if not args.takt or not args.points:
        parser.error("takt and --points, or --docs")
    rows = []
    for row in rows_of(args):
        rows.append(row)
        print(*row[5:], sep=",", flush=True)
    if args.record:
        with open(RESULTS, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEAD)
            writer.writerows(rows)


if __name__ == "__main__":
    main()
