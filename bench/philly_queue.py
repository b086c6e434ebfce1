#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queue policies on a month of Philly's jobs: runs takt simulate and appends to bench/results.

Usage: philly_queue.py MONTH [--takt PROGRAM] [--record FILE.csv] [options of takt simulate]

MONTH is 2017-09 or 2017-10 (of data/traces) and is cut out into a file of its own, since offered load
is told over the span of a trace. Without other options the policies of docs/research/queue-order.md run at
70, 85 and 95 % load on nodes of 8 GPUs, with the defaults of takt simulate: each preemption costs 60 s
and the work since the last checkpoint, made every 30 minutes; run times are learned on the way.
"""
import argparse
import csv
import datetime
import gzip
import json
import os
import subprocess
import tempfile

COLUMNS = ("date", "commit", "command", "machine", "simulated", "metric", "value", "unit")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRACE = os.path.join(ROOT, "data/traces/philly_jobs_2017_09_10.csv.gz")
QUEUES = "fifo,easy,qssf,las,takt,srpt,las+keep,takt+keep,srpt+keep"


def cut_month(month, path):
    with gzip.open(TRACE, "rt", encoding="utf-8") as stream, \
            open(path, "w", encoding="utf-8") as out:
        for number, line in enumerate(stream):
            if number == 0 or line.startswith(month):
                out.write(line)


def machine():
    return f"{os.uname().machine}, {os.cpu_count()} CPUs, {os.uname().sysname}"


def metrics(record, seeds):
    name = f"{record['queue']} at {record['load_pct']} % load"
    yield f"mean JCT, {name}", record["jct_mean_s"] / 3600, "h"
    if seeds > 1:
        yield f"mean JCT, {name}, half of the 95 % interval", record["jct_mean_s_ci95"] / 3600, "h"
    against = record.get("against")
    if seeds > 1 and against:
        yield (f"mean JCT, {name}, less {against['queue']}",
               against["jct_mean_s"] / 3600, "h")
        yield (f"mean JCT, {name}, less {against['queue']}, half of the 95 % interval",
               against["jct_mean_s_ci95"] / 3600, "h")
    yield f"mean wait, {name}", record["wait_mean_s"] / 3600, "h"
    yield f"p99 wait, {name}", record["wait_p99_s"] / 3600, "h"
    yield f"preemptions a job, {name}", record["preemptions_per_job"], "1"


def rows_of(result, command):
    seeds = result["seeds"]["last"] - result["seeds"]["first"] + 1
    clairvoyant = {record["load_pct"]: record["jct_mean_s"] for record in result["results"]
                   if record["queue"] == "srpt"}
    for record in result["results"]:
        values = list(metrics(record, seeds))
        if record["load_pct"] in clairvoyant:
            values.append((f"mean JCT, {record['queue']} at {record['load_pct']} % load, times srpt",
                           record["jct_mean_s"] / clairvoyant[record["load_pct"]], "1"))
        for metric, value, unit in values:
            yield (datetime.date.today().isoformat(), result["commit"], command, machine(), "yes",
                   metric, f"{value:.4f}", unit)


def append(path, result, command):
    with open(path, "a", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if stream.tell() == 0:
            writer.writerow(COLUMNS)
        writer.writerows(rows_of(result, command))


def simulate(takt, month, options):
    with tempfile.TemporaryDirectory() as folder:
        cut_month(month, os.path.join(folder, month + ".csv"))
        command = [takt, "simulate", "--cluster", "uniform:autox8", "--trace",
                   f"philly:{month}.csv", "--json", *options]
        return json.loads(subprocess.run(command, check=True, cwd=folder,
                                         stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("month")
    parser.add_argument("--takt", default="takt")
    parser.add_argument("--record", metavar="FILE.csv")
    arguments, options = parser.parse_known_args()
    options = options or ["--queue", QUEUES, "--load", "70,85,95"]
    takt = os.path.abspath(arguments.takt) if os.sep in arguments.takt else arguments.takt
    result = simulate(takt, arguments.month, options)
    if arguments.record:
        append(arguments.record, result,
               " ".join(["philly_queue.py", arguments.month, *options]))
    for row in rows_of(result, ""):
        print(f"{row[5]}: {row[6]} {row[7]}")


if __name__ == "__main__":
    main()
