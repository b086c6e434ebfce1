#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forecasters against each other on recorded demand, into bench/results/forecast.csv.

Usage: bench/forecast_rows.py TAKT [--record]
       bench/forecast_rows.py --docs

Philly's jobs of September and October 2017 (data/traces), as GPUs asked for a minute, in all and of
three virtual clusters; chosen by error and by what was missed. And each of them as a load on one simulated A100
under the governor `forecast`, driven by each forecaster one and five minutes ahead: energy against missed load.
Without --record the rows are printed. With --docs the table of docs/research/forecasts.md is made from the recorded ones.
"""
import csv
import datetime
import json
import os
import platform
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "bench/results/forecast.csv")
PAGE = os.path.join(ROOT, "docs/research/forecasts.md")
BEGIN, END = "<!-- made by bench/forecast_rows.py --docs -->", "<!-- end of what is made -->"
AHEAD = ("1m", "5m")
TRACE = "philly:data/traces/philly_jobs_2017_09_10.csv.gz"
COLUMNS = ("date", "commit", "command", "machine", "simulated", "metric", "value", "unit")
SERIES = (("all", ()), ("6c71a0", ("--tenant", "6c71a0")), ("11cb48", ("--tenant", "11cb48")),
          ("6214e9", ("--tenant", "6214e9")))
MEASURES = (("mae", "mean absolute error", "GPUs"), ("p90", "nine errors of ten within", "GPUs"),
            ("missed", "high minutes missed", "min"), ("missed_load_pct", "high load missed", "%"),
            ("needless", "minutes made ready needlessly", "min"),
            ("wasted_wh", "energy of these at 22 W", "Wh"))


def machine():
    return f"{platform.machine()}, {os.cpu_count()} CPUs, Linux"


def run(takt, args):
    done = subprocess.run([takt, "forecast", "--trace", TRACE, *args, "--json"], check=True,
                          capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout)


def metrics(name, result):
    first = result["forecasters"][0]
    yield f"{name}: minutes tested", first["tested"], "min"
    yield f"{name}: of these high, {result['threshold']:.4g} GPUs and more", first["high"], "min"
    for score in result["forecasters"]:
        for key, text, unit in MEASURES:
            if key in score:
                yield f"{name}, {score['name']}: {text}", score[key], unit
    for score in result["forecasters"]:
        yield (f"{name}, {score['name']}: chosen by {result['chosen_by']}",
               int(score["name"] == result["chosen"]), "1")


def governed(name, ahead, result):
    for row in result["governed"]:
        who = f"philly {name}, governed {ahead} ahead by {row['by']}"
        yield f"{who}: energy", row["energy_wh"], "Wh"
        yield f"{who}: load missed", row["missed_load_pct"], "%"
        yield f"{who}: mean clock", row["mean_mhz"], "MHz"


def rows_of(takt):
    for name, tenant in SERIES:
        for by in ("error", "load"):
            result = run(takt, [*tenant, "--choose", by])
            for metric, value, unit in metrics(f"philly {name}", result):
                if by == "error" or "chosen" in metric:
                    yield result, metric, value, unit
        for ahead in AHEAD:
            result = run(takt, [*tenant, "--ahead", ahead, "--govern"])
            for metric, value, unit in governed(name, ahead, result):
                yield result, metric, value, unit


def docs():
    """Of each series and distance: energy and missed load, a row for each that drives the governor."""
    cells, who = {}, {}
    with open(RESULTS, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if ", governed " in row["metric"]:
                series, rest = row["metric"].split(", governed ")
                ahead, rest = rest.split(" ahead by ")
                by, what = rest.split(": ")
                if what in ("energy", "load missed"):
                    cells[series.removeprefix("philly "), ahead, by, what] = float(row["value"])
                    who[by] = True
    series = list(dict.fromkeys(key[0] for key in cells))
    lines = [BEGIN, ""]
    for ahead in AHEAD:
        lines += [f"Forecasts {ahead} ahead:", "", "| driven by | " + " | ".join(
            "all jobs" if one == "all" else one for one in series) + " |",
            "|---" * (len(series) + 1) + "|"]
        for by in who:
            lines.append(f"| {by} | " + " | ".join(
                f"{cells[one, ahead, by, 'energy'] / 1000:.2f}, {cells[one, ahead, by, 'load missed']:.3f}"
                for one in series) + " |")
        lines.append("")
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page.split(BEGIN)[0] + "\n".join(lines + [END]) + page.split(END)[1])


def main():
    if "--docs" in sys.argv:
        docs()
        return
    takt = os.path.abspath(sys.argv[1])
    rows = [(datetime.date.today().isoformat(), result["commit"], result["command"], machine(), "yes",
             metric, f"{value:.6g}", unit) for result, metric, value, unit in rows_of(takt)]
    out = sys.stdout
    if "--record" in sys.argv:
        out = open(RESULTS, "w", encoding="utf-8", newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)


if __name__ == "__main__":
    main()
