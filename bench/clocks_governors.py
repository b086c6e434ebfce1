#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every governor on the same measured tables, side by side.

`takt replay-clocks` with all governors that takt has, two promises and three lengths of jobs; qlearning a second
time, trained on the other workloads of the board. Needs a table with the columns of docs/research/clocks-replay.md and, for
governors that listen to activity counters, one of those. Boards have no load, latency or share of power in such
tables, so that slo, forecast and power-budget show what they do without: they stay at the highest setting.

Usage: clocks_governors.py BUILD_FOLDER --points FILE [--counters FILE] [--seeds A..B] [--only LIST] [--record]
       clocks_governors.py --docs

--record writes bench/results/clocks_governors.csv; with --only the rows of these governors are replaced there and the
others stay, each with the commit that it was made by. --docs makes the tables of docs/research/governors.md from that file.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(SOURCE, "bench/results/clocks_governors.csv")
PAGE = os.path.join(SOURCE, "docs/research/governors.md")
BEGIN, END = "<!-- made by bench/clocks_governors.py --docs -->", "<!-- end of what is made -->"
PROMISES, EPOCHS = (5, 10), "30,100,400"
SETTINGS = ("max", "best-safe-fixed", "best-mean-fixed")
TRAINED = "qlearning, trained"
WHO = ["dataset", "gpu", "actuator", "max_slowdown_pct", "epochs", "governor", "setting", "shown"]
FIGURES = ["share_of_optimum_pct", "share_of_optimum_half95", "worst_workload_share_pct",
           "worst_workload", "energy_saved_pct", "energy_saved_half95", "optimum_saved_pct",
           "slowdown_mean_pct", "slowdown_p95_pct", "slowdown_max_pct", "runs", "violating_jobs",
           "violating_epochs_pct", "overhead_pct", "overhead_energy_pct", "settling_loss_pct",
           "changes_per_job"]
HEAD = ["date", "commit", "command", "machine", "simulated", *WHO, *FIGURES]
STILL = ("observe", "performance", "utilisation", "idle-drop", "slo", "forecast", "power-budget")
BOARDS = {"V100-SXM2-32GB-300W": "V100", "A100-SXM4-80GB": "A100", "Quadro RTX 8000": "RTX 8000",
          "RTX PRO 6000 Blackwell": "RTX PRO 6000", "4x L4 (sum)": "4 x L4"}
DATASETS = {"nvdvfs-real": "real", "nvdvfs-microbenchmark": "micro"}  # two tables of one board
BOARDS_A_TABLE = 4  # as many as 100 columns show
SETTING_NAMES = {"max": "highest setting", "best-safe-fixed": "best, all keep it",
                 "best-mean-fixed": "best, mean keeps it"}


def governors(takt):
    """The first word of each line that does not begin with a blank."""
    listed = subprocess.run([takt, "replay-clocks", "--list"], capture_output=True, text=True,
                            check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line[:1].strip()]


def boards_with_counters(args):
    if not args.counters:
        return set()
    with open(args.counters, encoding="utf-8") as file:
        return {(row["dataset"], row["gpu"]) for row in csv.DictReader(file)}


def replay(takt, args, names, promise, *more):
    command = ["replay-clocks", "--points", args.points, "--governor", ",".join(names),
               "--max-slowdown", str(promise), "--epochs", EPOCHS, "--seeds", args.seeds, *more]
    if "fixed" in names:
        command += ["--param", "fixed.sm_permille=900", "--param", "fixed.power_mw=200000"]
    if args.counters:
        command += ["--counters", args.counters]
    ran = subprocess.run([takt, *command, "--json"], capture_output=True, text=True, check=True)
    result = json.loads(ran.stdout)
    for score in result["scores"]:
        score["commit"] = result["commit"]
        if score["trained"]:
            score["governor"] = TRAINED
    return result["scores"]


def every_score(takt, args):
    names = [name for name in governors(takt) if not args.only or name in args.only.split(",")]
    for promise in PROMISES:
        if names:
            yield from replay(takt, args, names, promise)
        if not args.only or TRAINED in args.only:
            yield from (score for score in replay(takt, args, ["qlearning"], promise, "--train",
                                                  "qlearning") if score["trained"])


def row_of(score, counted, seeds):
    shown = "progress, power, utilisation 100 %"
    if score["governor"] in SETTINGS:
        shown = ""
    elif score["actuator"] == "clock" and (score["dataset"], score["gpu"]) in counted:
        shown += ", counters of memory, SMs and tensor cores"
    command = f"bench/clocks_governors.py BUILD --points POINTS --counters COUNTERS --seeds {seeds}"
    return [datetime.date.today().isoformat(), score["commit"], command,
            f"{platform.machine()}, {platform.system()}", "replayed on a measured table",
            *(rounded({**score, "shown": shown}.get(name)) for name in WHO + FIGURES)]


def rounded(value):
    return "" if value is None else round(value, 3) if isinstance(value, float) else value


def key(row):
    return tuple(str(row[HEAD.index(name)]) for name in WHO[:6])


def recorded():
    with open(RESULTS, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def record(rows, only):
    if only:
        new = {key(row): row for row in rows if row[HEAD.index("governor")] not in SETTINGS}
        old = recorded()
        rows = [new.pop(key(row), row) for row in old] + list(new.values())
    with open(RESULTS, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(rows)


def cell(row):
    """Of the optimum with its interval, mean slowdown, jobs that broke the promise; percent."""
    share = row["share_of_optimum_pct"]
    half = float(row["share_of_optimum_half95"] or 0)
    share = "-" if not share else f"{float(share):.0f}" + (f"±{half:.0f}" if half >= 0.5 else "")
    broke = 100 * float(row["violating_jobs"]) / float(row["runs"])
    return f"{share}, {float(row['slowdown_mean_pct']) + 0:.1f}, {broke:.0f}".replace("-0.0,", "0.0,")


def name_of(dataset, gpu):
    return " ".join(filter(None, (BOARDS.get(gpu, gpu.removeprefix("GeForce ")), DATASETS.get(dataset))))


def tables(rows, promise, actuator):
    """Markdown tables of jobs of 400 epochs, some boards each; governors that stay at the top are left out."""
    here = [row for row in rows if row["actuator"] == actuator and row["epochs"] == "400" and
            float(row["max_slowdown_pct"]) == promise]
    boards = list(dict.fromkeys((row["dataset"], row["gpu"]) for row in here))
    names = [name for name in dict.fromkeys(row["governor"] for row in here) if name not in STILL]
    cells = {(row["governor"], row["dataset"], row["gpu"]): cell(row) for row in here}
    saves = {(row["dataset"], row["gpu"]): row["optimum_saved_pct"] for row in here}
    for some in (boards[at:at + BOARDS_A_TABLE] for at in range(0, len(boards), BOARDS_A_TABLE)):
        yield "| governor | " + " | ".join(name_of(*board) for board in some) + " |"
        yield "|---" * (len(some) + 1) + "|"
        yield "| the optimum saves | " + " | ".join(f"{float(saves[board]):.1f}" for board in some) + " |"
        for name in names:
            if actuator != "clock" and name == "geepafs":
                continue
            yield (f"| {SETTING_NAMES.get(name, f'`{name}`')} | " +
                   " | ".join(cells.get((name, *board), "") for board in some) + " |")
        yield ""


def docs():
    with open(RESULTS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [BEGIN, ""]
    for actuator, title in (("clock", "clocks"), ("power_limit", "power limits")):
        for promise in PROMISES:
            lines += [f"{promise} % promised, {title}:", "", *tables(rows, promise, actuator)]
    sources = sorted({(name_of(row["dataset"], row["gpu"]), row["dataset"]) for row in rows})
    lines += ["Tables: " + ",\n".join(f"{name}: {dataset}" for name, dataset in sources) + ".", ""]
    seen = sorted({name_of(row["dataset"], row["gpu"]) for row in rows if "counters" in row["shown"]})
    lines += [f"GEEPAFS was shown the activity counter of memory on {', '.join(seen)}, and the jobs'",
              "own progress on the other tables, which have no counters.", "", END]
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, rest = page.split(BEGIN)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + "\n".join(lines) + rest.split(END)[1])


def measure(args):
    takt = os.path.join(args.build, "src/daemon/takt")
    counted = boards_with_counters(args)
    rows = []
    for score in every_score(takt, args):
        rows.append(row_of(score, counted, args.seeds))
        if score["epochs"] == 400:
            print(f"{score['dataset']:22} {score['gpu']:24} {score['actuator']:12} "
                  f"{score['max_slowdown_pct']:>3g} % {score['governor']:18} "
                  f"of optimum {score['share_of_optimum_pct'] or 0:7.1f} % "
                  f"violating jobs {score['violating_jobs']:.0f} of {score['runs']:.0f}", flush=True)
    if args.record:
        record(rows, args.only)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--points")
    parser.add_argument("--counters")
    parser.add_argument("--seeds", default="1..10")
    parser.add_argument("--only", help="governors, with commas")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    if args.docs:
        docs()
    elif args.build and args.points:
        measure(args)
    else:
        parser.error("a build folder and --points, or --docs")


if __name__ == "__main__":
    main()
