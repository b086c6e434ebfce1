#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How starts that takt foretells come true: a month of Philly through the daemon's own queue and scheduler.

Usage: predictions.py BUILD_FOLDER [--cluster ID --gpus N] [--month 2017-10] [--first JOBS] [--record FILE.csv]

Builds nothing: BUILD_FOLDER has tests/queue/start_replay. Without --cluster three virtual clusters run, each on
one machine: as many GPUs as its load keeps busy, rounded up to a multiple of 4. Of each job that waited a minute, what
was foretold at its submission and each time that half of the wait that was left had gone by is put beside what came.
Backfill is the daemon's, easy; how long jobs wait with it is put beside how long they wait where nobody overtakes.
Nobody says how long a job runs, and the trace tells neither commands nor users: a job is like those of its cluster and
size. The constants of src/model/start_range.c were chosen on the first 2,600 jobs of clusters 11cb48, 6c71a0 and b436b2,
and how the rest of 11cb48 and a part of b436b2 came out was seen while they were: rows of these that say "later" leave out
the first 2,600 jobs. Nobody had looked at 6214e9, the largest, before its rows were made: it judges.
"""
import argparse
import calendar
import csv
import datetime
import gzip
import os
import statistics
import subprocess
import sys
import time

import philly_queue

MACHINES = (("6214e9", 60), ("11cb48", 12), ("b436b2", 48))
SEEN = 2600
WIDE = 8


def jobs_of(month, cluster, gpus):
    """(submit_s, run_s, gpus, owner) of the jobs that fit the machine, by submit time from 60 on."""
    with gzip.open(philly_queue.TRACE, "rt", encoding="utf-8") as stream:
        jobs = sorted((calendar.timegm(time.strptime(row["timestamp"], "%Y-%m-%d %H:%M:%S")), int(float(row["duration"])),
                       int(row["num_gpus"]), 1000 + int(row["cluster"], 16))
                      for row in csv.DictReader(stream)
                      if row["timestamp"].startswith(month) and row["cluster"] == cluster)
    jobs = [job for job in jobs if job[1] > 0 and 0 < job[2] <= gpus]
    return [(job[0] - jobs[0][0] + 60, *job[1:]) for job in jobs]


def replay(build, jobs, gpus, backfill="easy"):
    """What start_replay says, as rows of (job, half, started, left, foretold, low, high), None where nothing was said."""
    text = "".join("%d,%d,%d,%d\n" % job for job in jobs)
    done = subprocess.run([os.path.join(build, "tests/queue/start_replay"), str(gpus), backfill], input=text,
                          stdout=subprocess.PIPE, check=True, text=True)
    return [[float(field) if field else None for field in line.split(",")] for line in done.stdout.splitlines()]


def judge(rows):
    """(metric, value, unit) of such rows."""
    told = [row for row in rows if row[5] is not None]
    yield "moments of a wait", len(rows), "1"
    yield "with a start and its range", len(told), "1"
    if not told:
        return
    held = sum(low - 1 <= left <= high + 1 for _, _, _, left, _, low, high in told)
    yield "in the range of 8 in 10", 100 * held / len(told), "%"
    yield "later than that range", 100 * sum(row[3] > row[6] + 1 for row in told) / len(told), "%"
    yield "median error", statistics.median(abs(row[3] - row[4]) for row in told), "s"
    yield "median wait that was left", statistics.median(row[3] for row in told), "s"
    yield "foretold in the past", sum(row[4] < 0 for row in told), "1"


def waits(jobs, rows):
    """(metric, value, unit): how long jobs waited. One that waited less than a minute has no row."""
    waited = {int(row[0]): row[3] for row in rows if row[1] == 0}
    for what, least in (("all", 1), (f"of {WIDE} GPUs and more", WIDE)):
        asked = [index for index, job in enumerate(jobs) if job[2] >= least]
        if asked:
            yield f"mean wait, jobs {what}", sum(waited.get(index, 0) for index in asked) / len(asked) / 3600, "h"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--month", default="2017-10")
    parser.add_argument("--cluster")
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--first", type=int, default=sys.maxsize)
    parser.add_argument("--record")
    args = parser.parse_args()
    commit = subprocess.run(["git", "-C", philly_queue.ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                            check=True, text=True).stdout.strip()
    for cluster, gpus in [(args.cluster, args.gpus)] if args.cluster else MACHINES:
        jobs = jobs_of(args.month, cluster, gpus)[:args.first]
        rows, strict = replay(args.build, jobs, gpus), replay(args.build, jobs, gpus, "none")
        for part, found in (("all", judge(rows)), ("later", judge([row for row in rows if row[0] >= SEEN])),
                            ("backfill easy", waits(jobs, rows)), ("backfill none", waits(jobs, strict))):
            for metric, value, unit in found:
                line = (datetime.date.today().isoformat(), commit, "bench/predictions.py", philly_queue.machine(), "yes",
                        f"{metric}, Philly {args.month}, cluster {cluster} on {gpus} GPUs, {part}", f"{value:.4g}", unit)
                print(*line[5:], sep="\t")
                if args.record:
                    with open(args.record, "a", encoding="utf-8") as stream:
                        writer = csv.writer(stream, lineterminator="\n")
                        if stream.tell() == 0:
                            writer.writerow(philly_queue.COLUMNS)
                        writer.writerow(line)


if __name__ == "__main__":
    main()
