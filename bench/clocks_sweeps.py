#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much governors depend on how well is measured, how fast clocks change, and on jobs that change.

`takt replay-clocks` with other noise, delay, meters and phases than usual, one at a time; 5 % promised, jobs of 400
epochs, on the clock curves of three tables.

Usage: clocks_sweeps.py TAKT --points FILE [--seeds A..B] [--record]
       clocks_sweeps.py --docs

--record writes bench/results/clocks_sweeps.csv, --docs makes the table of docs/research/clocks-replay.md from it.
"""
import csv
import datetime
import json
import os
import platform
import subprocess
import tempfile

import clocks_main

RESULTS = os.path.join(clocks_main.SOURCE, "bench/results/clocks_sweeps.csv")
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
    """Share of the optimum, largest slowdown, jobs that broke their promise."""
    broke = int(float(row["violating_jobs"]))
    return f"{float(row['share_of_optimum_pct']):.0f}, {float(row['slowdown_max_pct']):.1f}, {broke}"


def docs():
    with open(RESULTS, encoding="utf-8", newline="") as file:
        rows = {(row["variant"], row["dataset"], row["governor"]): row for row in csv.DictReader(file)}
    lines = []
    for governor in GOVERNORS:
        lines += [f"| `{governor}` | " + " | ".join(TABLES.values()) + " |", "|---" * 4 + "|"]
        lines += [f"| {variant} | " + " | ".join(cell(rows[variant, dataset, governor])
                                                for dataset in TABLES) + " |" for variant in VARIANTS]
        lines.append("")
    clocks_main.put_into_page(BEGIN, lines, END)


if __name__ == "__main__":
    clocks_main.main(rows_of, docs, "1..5", HEAD, RESULTS)
