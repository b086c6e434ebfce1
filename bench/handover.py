#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a GPU loses between two jobs, with the next job staged and without, in one run.

One job holds the only GPU of a simulated machine for a while, another waits for it. From the instant
at which the first has ended until the second begins, as the two write it down themselves; staged and
not in turn, for three kinds of jobs:
  small        a small environment
  environment  six variables of 100 KB each
  cold file    the job reads a file that is not in the page cache before it computes; until it has read
               it. Staged its prefetch reads the file.
Beside it takt's own parts of the gap: driver, scheduler, start.

Usage: handover.py BUILD_FOLDER [--rounds N] [--mib N] [--record [FILE]]
"""
import argparse
import csv
import datetime
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(SOURCE, "tests/e2e"))
import kit  # noqa: E402
from idle_cost import COLUMNS, commit, machine_name  # noqa: E402

KINDS = ("small", "environment", "cold file")
HOLD_MS = {"small": 400, "environment": 400, "cold file": 2000}
PARTS = ("driver", "scheduler", "start")


def write_file(path, mib):
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())


def make_cold(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def next_job(m, kind, staged, path):
    """(arguments, description) of the job that is measured."""
    more = {"stage": staged}
    if kind == "environment":
        more["env"] = ["PATH=/usr/bin:/bin", *(f"LARGE_{i}=" + "x" * 100_000 for i in range(6))]
    if kind != "cold file":
        return m.witness_argv(0), more
    read = ["/bin/cat", path]
    if staged:
        more["prefetch"] = ["/bin/sh", "-c", f"exec cat {path} > /dev/null"]
    return m.witness_argv(0, "/bin/sh", "-c", " ".join(read) + " > /dev/null"), more


def measure(m, client, kind, staged, path):
    """Milliseconds: {"whole": ..., "driver": ..., ...}"""
    make_cold(path)
    holder = client.submit(m.witness_argv(HOLD_MS[kind]), gpus=1)["id"]
    argv, more = next_job(m, kind, staged, path)
    job = client.submit(argv, gpus=1, **more)["id"]
    assert client.wait(holder)["state"] == "done"
    view = client.wait(job)
    assert view["state"] == "done" and view["attempt"] == 1, view
    ends = {end.job: end for end in m.witness().ends}
    ready_ns = ends[job].end_ns if kind == "cold file" else ends[job].begin_ns
    found = {part: view["report"][f"gap_{part}_us"] / 1e3 for part in PARTS}
    return {"whole": (ready_ns - ends[holder].end_ns) / 1e6, **found}


def rows_of(results):
    for (kind, staged), runs in results.items():
        name = f"{kind}, {'staged' if staged else 'not staged'}"
        for part in ("whole", *PARTS):
            values = [run[part] for run in runs]
            yield f"{name}: {part}, median", statistics.median(values), "ms"
        values = sorted(run["whole"] for run in runs)
        yield f"{name}: whole, 90th percentile", values[len(values) * 9 // 10], "ms"


def record(path, rows, command):
    new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for name, value, unit in rows:
            writer.writerow([datetime.date.today().isoformat(), commit(), command, machine_name(), "yes", name,
                             f"{value:.4g}", unit])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--mib", type=int, default=128)
    parser.add_argument("--record", nargs="?", const=os.path.join(HERE, "results/handover.csv"))
    args = parser.parse_args()
    results = {(kind, staged): [] for kind in KINDS for staged in (False, True)}
    with kit.machine(gpus=1) as m:
        path = m.path("data")
        write_file(path, args.mib)
        m.start()
        client = m.client()
        for _ in range(args.rounds):
            for (kind, staged), runs in results.items():
                runs.append(measure(m, client, kind, staged, path))
    rows = list(rows_of(results))
    rows.append(("load average at the end (what else the machine did)", os.getloadavg()[0], ""))
    for name, value, unit in rows:
        print(f"{name:55} {value:10.2f} {unit}")
    if args.record:
        record(args.record, rows, f"handover.py --rounds {args.rounds} --mib {args.mib}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
