#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt simulate --protocol fgd against the tables published with FGD, trace by trace.

Usage: fgd_parity.py TAKT TRACES PUBLISHED.csv quick|full [--record RESULTS.csv]

A mean over n seeds of ours and one over the published 10 differ by chance: allowed is three times
the deviation of that difference, at least 0.15 points. Checked at 100 % and 130 % of arrivals; and
that no two threads and no repetition make another result, and that nothing is above the bound.
--record appends rows for each trace and policy in the scheme of bench/results.
"""
import csv
import datetime
import json
import math
import os
import subprocess
import sys

POLICIES = ("fgd", "bestfit", "dotprod", "gpupacking", "gpuclustering", "random")
FIRST_SEED = 42
PUBLISHED_SEEDS = 10
FLOOR_PCT = 0.15


def published(path):
    with open(path, encoding="utf-8") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        return {(row["trace"], row["placement"]): row for row in rows}


def simulate(takt, traces, trace, seeds, *more):
    command = [takt, "simulate", "--protocol", "fgd",
               "--cluster", f"{traces}/openb_node_list_gpu_node.csv",
               "--trace", f"{traces}/openb_pod_list_{trace}.csv.gz",
               "--placement", ",".join(POLICIES),
               "--seeds", f"{FIRST_SEED}..{FIRST_SEED + seeds - 1}", "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def case(self, name, problem):
        self.count += 1
        self.failed += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {self.count} - {name}")
        if problem:
            print(f"# {problem}")


def compare(table, trace, record, seeds, rows):
    row = table[trace, record["placement"]]
    load = record["load_pct"]
    want, sd = float(row[f"at_{load}"]), float(row["sd_130"])
    allowed = max(FLOOR_PCT, 3 * sd * math.sqrt(1 / seeds + 1 / PUBLISHED_SEEDS))
    off = record["allocation_pct"] - want
    name = f"parity {trace} {record['placement']} at {load} % of arrivals"
    rows.append((name, f"{record['allocation_pct']:.4f}", "% of GPUs"))
    rows.append((f"{name}, off the published mean (allowed {allowed:.3f})", f"{off:+.4f}",
                 "points"))
    if abs(off) > allowed:
        return (f"{record['placement']} at {load} %: {record['allocation_pct']:.3f}, published "
                f"{want:.2f}, off by {off:+.3f}, allowed {allowed:.3f}")
    return ""


def check_trace(tap, args, table, trace, seeds, rows):
    result = json.loads(simulate(args["takt"], args["traces"], trace, seeds))
    args["commit"] = result["commit"]
    for policy in POLICIES:
        problems = [compare(table, trace, record, seeds, rows) for record in result["results"]
                    if record["placement"] == policy and record["load_pct"] in (100, 130)]
        tap.case(f"{trace} {policy} is as published", "; ".join(filter(None, problems)))


def check_repetition(tap, args):
    outputs = [simulate(args["takt"], args["traces"], "multigpu20", 2, "--bound", "off",
                        "--threads", threads).replace(f"--threads {threads}", "")
               for threads in ("1", "2", "5")]
    tap.case("results do not depend on the number of threads",
             "" if len(set(outputs)) == 1 else "outputs differ")


def write_rows(path, commit, rows):
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                if line.startswith("model name")), "?")
    machine = f"{os.cpu_count()} x {cpu}, Linux {os.uname().release}"
    with open(path, "a", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if stream.tell() == 0:
            writer.writerow(("date", "commit", "command", "machine", "simulated", "metric",
                             "value", "unit"))
        for row in rows:
            writer.writerow((datetime.date.today().isoformat(), commit,
                             f"fgd_parity.py full, seeds {FIRST_SEED}..51", machine, "yes", *row))


def main():
    args = dict(zip(("takt", "traces", "published", "mode"), sys.argv[1:5]))
    tap, rows, table = Tap(), [], published(args["published"])
    if args["mode"] == "quick":
        check_trace(tap, args, table, "multigpu20", 1, rows)
    else:
        for trace in dict.fromkeys(trace for trace, _ in table):
            check_trace(tap, args, table, trace, PUBLISHED_SEEDS, rows)
        check_repetition(tap, args)
    if len(sys.argv) > 6:
        write_rows(sys.argv[6], args["commit"], rows)
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
