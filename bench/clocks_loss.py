#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What keeps `assured` from the optimum: each noise left out in turn, and how near the promise the optimum lies.

Replays jobs of 400 epochs with 5 % promised on the clock curves of three tables. Where the optimum lies is worked
out here, from the table alone.

Usage: clocks_loss.py TAKT --points FILE [--seeds A..B] [--record]
       clocks_loss.py --docs

--record writes bench/results/clocks_loss.csv, --docs makes the tables of docs/research/clocks-replay.md from it.
"""
import csv
import datetime
import json
import os
import platform
import subprocess
import tempfile

import clocks_main

RESULTS = os.path.join(clocks_main.SOURCE, "bench/results/clocks_loss.csv")
BEGIN, END = "<!-- made by bench/clocks_loss.py --docs -->", "<!-- end of what clocks_loss.py makes -->"
TABLES = {"geepafs": "V100", "perseus-sosp24": "A100", "nvdvfs-real": "RTX 8000"}
NOISES = ("2,3", "2,0", "0,3", "0,0")
PROMISE = 5
WHOLE = ["runs", "share_of_optimum_pct", "share_of_optimum_half95", "settling_loss_pct", "overhead_pct",
         "violating_jobs", "violating_epochs_pct"]
OF_A_WORKLOAD = ["room_pct", "next_share_pct", "optimum_saved_pct", "saved_pct"]
HEAD = ["date", "commit", "command", "machine", "simulated", "noise_pct", "dataset", "gpu", "workload",
        *WHOLE, *OF_A_WORKLOAD]
ROOMS = ((0, 0.5), (0.5, 1), (1, 2), (2, 100))


def three_tables(points):
    """The three tables as text, and {(dataset, workload): {clock: [(time, power), ...]}}."""
    curves = {}
    with open(points, encoding="utf-8") as file:
        head, *rows = file.readlines()
    rows = [row for row in rows if row.split(",", 1)[0] in TABLES]
    for row in csv.DictReader([head, *rows]):
        settings = curves.setdefault((row["dataset"], row["workload"]), {})
        settings.setdefault(float(row["core_mhz"]), []).append((float(row["time"]), float(row["power_w"])))
    return head + "".join(rows), curves


def mean_of(measured):
    return tuple(sum(column) / len(measured) for column in zip(*measured))


def where_the_optimum_lies(settings):
    """Percent of time between it and the promise; what the next clock up saves, of what it saves."""
    curve = [mean_of(settings[mhz]) for mhz in sorted(settings, reverse=True)]
    time0, power0 = curve[0]
    curve = [(time / time0, time * power / (time0 * power0)) for time, power in curve]
    best = min((i for i in range(len(curve)) if curve[i][0] <= 1 + PROMISE / 100 + 1e-9),
               key=lambda i: curve[i][1])
    above = 1 - curve[max(best - 1, 0)][1]
    saved = 1 - curve[best][1]
    return 100 * (1 + PROMISE / 100 - curve[best][0]), 100 * above / saved if saved > 0 else None


def rounded(value):
    return "" if value is None else round(value, 3)


def rows_of(args):
    text, curves = three_tables(args.points)
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        for noise in NOISES:
            ran = subprocess.run([args.takt, "replay-clocks", "--points", file.name, "--governor", "assured",
                                  "--max-slowdown", str(PROMISE), "--epochs", "400", "--seeds", args.seeds,
                                  "--noise", noise, "--json"], capture_output=True, text=True, check=True)
            result = json.loads(ran.stdout)
            same = [datetime.date.today().isoformat(), result["commit"],
                    f"bench/clocks_loss.py TAKT --points POINTS --seeds {args.seeds}",
                    f"{platform.machine()}, {platform.system()}", "replayed on a measured table", noise]
            for score in result["scores"]:
                if score["governor"] != "assured" or score["actuator"] != "clock":
                    continue
                board = [score["dataset"], score["gpu"]]
                yield [*same, *board, "", *(rounded(score[name]) for name in WHOLE), *[""] * 4]
                for one in score["workloads"]:
                    lies = where_the_optimum_lies(curves[score["dataset"], one["workload"]])
                    yield [*same, *board, one["workload"], *[""] * len(WHOLE), *map(rounded, lies),
                           rounded(one["optimum_saved_pct"]), rounded(one["energy_saved_pct"])]


def by_noise(rows):
    yield "| noise of time, of power | " + " | ".join(TABLES.values()) + " |"
    yield "|---" * (len(TABLES) + 1) + "|"
    for noise in NOISES:
        cells = []
        for dataset in TABLES:
            row = next(row for row in rows if row["noise_pct"] == noise and row["dataset"] == dataset and
                       not row["workload"])
            cells.append(f"{float(row['share_of_optimum_pct']):.1f} %, {float(row['settling_loss_pct']):.1f}, "
                         f"{float(row['overhead_pct']):.1f}")
        yield f"| {noise.replace(',', ' %, ')} % | " + " | ".join(cells) + " |"


def by_room(rows):
    yield "| the optimum is below the promise by | workloads | next clock up | reached |"
    yield "|---|---|---|---|"
    ones = [row for row in rows if row["workload"] and row["noise_pct"] == NOISES[0] and
            float(row["optimum_saved_pct"]) >= 1]
    for low, high in ROOMS:
        within = [row for row in ones if low <= float(row["room_pct"]) < high]
        best = sum(float(row["optimum_saved_pct"]) for row in within)
        if not within:
            continue
        next_up = sum(float(row["next_share_pct"]) * float(row["optimum_saved_pct"]) for row in within) / best
        reached = 100 * sum(float(row["saved_pct"]) for row in within) / best
        name = f"{low} to {high} %" if high < 100 else f"{low} % and more"
        yield f"| {name} | {len(within)} | {next_up:.0f} % | {reached:.0f} % |"


def docs():
    with open(RESULTS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [*by_noise(rows), "", *by_room(rows), ""]
    clocks_main.put_into_page(BEGIN, lines, END)


if __name__ == "__main__":
    clocks_main.main(rows_of, docs, "401..405", HEAD, RESULTS)
