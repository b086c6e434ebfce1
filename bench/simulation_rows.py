#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Appends the results of a placement experiment to a file of bench/results.

Usage: takt simulate --protocol fgd|timed ... --json | simulation_rows.py RESULTS.csv LOAD,LOAD,...

For each policy and load: the mean with its interval, the bound, and the difference to the baseline
on the same seeds with its interval. The command in each row repeats it.
"""
import csv
import datetime
import json
import os
import sys

COLUMNS = ("date", "commit", "command", "machine", "simulated", "metric", "value", "unit")


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        cpu = next((line.split(":")[1].strip() for line in stream
                    if line.startswith("model name")), "?")
    return f"{os.cpu_count()} x {cpu}, Linux {os.uname().release}"


def timed_metrics(record, trace):
    load = record["load_pct"]
    name = f"{trace} {record['placement']} with real times, " + (
        f"load {load} %" if load else "as it is")
    for measure, what, unit in (("allocation_pct", "allocated", "% of GPUs"),
                                ("wait_mean_s", "mean wait", "s"),
                                ("waited_pct", "waited at all", "% of pods")):
        yield f"{name}: {what}", record[measure], unit
        if "against" in record:
            against = record["against"]
            other = f"{name}: {what}, more than {against['placement']}"
            yield other, against[measure], unit
            yield f"{other}, half of the 95 % interval", against[f"{measure}_ci95"], unit


def metrics(record, trace):
    name = f"{trace} {record['placement']} at {record['load_pct']} % of arrivals"
    yield f"{name}: allocated", record["allocation_pct"], "% of GPUs"
    yield f"{name}: allocated, half of the 95 % interval", record["ci95"], "points"
    if record["bound_pct"] is not None:
        yield f"{name}: bound", record["bound_pct"], "% of GPUs"
    if "against" in record:
        against = record["against"]
        yield f"{name}: more than {against['placement']}", against["difference_pct"], "points"
        yield (f"{name}: more than {against['placement']}, half of the 95 % interval",
               against["ci95"], "points")
    if record.get("moves_per_100"):
        yield f"{name}: moves for each 100 placements", record["moves_per_100"], "1"


def main():
    path, loads = sys.argv[1], {int(load) for load in sys.argv[2].split(",")}
    result = json.load(sys.stdin)
    trace = os.path.basename(result["trace"]["source"]).split(".")[0]
    trace = trace.removeprefix("openb_pod_list_")
    with open(path, "a", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if stream.tell() == 0:
            writer.writerow(COLUMNS)
        for record in result["results"]:
            if record["load_pct"] not in loads:
                continue
            rows = timed_metrics if result["protocol"] == "timed" else metrics
            for metric, value, unit in rows(record, trace):
                writer.writerow((datetime.date.today().isoformat(), result["commit"],
                                 result["command"], machine(), "yes", metric, f"{value:.4f}",
                                 unit))


if __name__ == "__main__":
    main()
