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
import functools
import json
import math
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

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


class Traces:
    """The traces, each of which is simulated once for the cases of all policies."""

    def __init__(self, takt, folder, published_csv, seeds):
        self.takt, self.folder, self.table, self.seeds = takt, folder, published(published_csv), seeds
        self.rows, self.commit = [], ""

    @functools.cache
    def result(self, trace):
        result = json.loads(simulate(self.takt, self.folder, trace, self.seeds))
        self.commit = result["commit"]
        return result

    def is_as_published(self, trace, policy):
        problems = [compare(self.table, trace, record, self.seeds, self.rows) for record in self.result(trace)["results"]
                    if record["placement"] == policy and record["load_pct"] in (100, 130)]
        assert len(problems) == 2 and not any(problems), "; ".join(problems)

    def threads_do_not_matter(self):
        outputs = [simulate(self.takt, self.folder, "multigpu20", 2, "--bound", "off", "--threads", threads)
                   .replace(f"--threads {threads}", "") for threads in ("1", "2", "5")]
        assert len(set(outputs)) == 1, "outputs differ"

    def cases(self, names):
        return [(f"{trace} {policy} is as published", functools.partial(self.is_as_published, trace, policy))
                for trace in names for policy in POLICIES]


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
    takt, folder, published_csv, mode = sys.argv[1:5]
    quick = mode == "quick"
    traces = Traces(takt, folder, published_csv, 1 if quick else PUBLISHED_SEEDS)
    cases = traces.cases(["multigpu20"] if quick else dict.fromkeys(trace for trace, _ in traces.table))
    if not quick:
        cases.append(("results do not depend on the number of threads", traces.threads_do_not_matter))
    status = tap.main(cases)
    if len(sys.argv) > 6:
        write_rows(sys.argv[6], traces.commit, traces.rows)
    return status


if __name__ == "__main__":
    sys.exit(main())
