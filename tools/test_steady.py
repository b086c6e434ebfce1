#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each test program many times on a machine that has other things to do, and counts how often it failed.

Usage: test_steady.py --build BUILD [--times 20] [--load NAME] [--only REGEX] [--all] [--record]

The runs are shared out among three loads: "busy" (three times as many programs side by side as the processors can do),
"one core" (each program is kept to one core, which others use, too) and "slow disk" (beside two processes that write and
sync without end). Left out and named, but for --all, are programs that start no process and compute for long (models,
seeds), those whose processes only compute (ALONE), and campaigns: a run of one is hundreds of trials, and it has no second
try in ./test either. --record writes bench/results/steadiness.csv; with --load only the rows of that load.
The last line is "N passed, N failed": cases, each run counted.
"""
import argparse
import collections
import contextlib
import csv
import datetime
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import test_costs
import test_programs
import test_report
import test_run

SHARES = {"busy": 0.4, "one core": 0.3, "slow disk": 0.3}
HOW = {"busy": {"full": 3}, "one core": {"full": 1.5, "one_core": True}, "slow disk": {}}  # the pool's options
ALONE = ("queue / queue_foretold", "sched / same plans", "house / format", "house / style", "sim / sim replay clocks")
CAMPAIGNS = ("campaign", "actuate / actuate deaths")
ALONE_S = 2.0  # of the processor: what a program that starts no process may compute and still be run each time
WRITE = """
import os, sys
with open(os.path.join(sys.argv[1], str(os.getpid())), "wb", buffering=0) as file:
    while True:
        file.seek(0)
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
"""
PATH = os.path.join(os.path.dirname(test_costs.PATH), "steadiness.csv")


@contextlib.contextmanager
def load(name):
    """The disk has this to do until the block ends."""
    with tempfile.TemporaryDirectory(prefix="takt-steady-") as folder:
        count = 2 if name == "slow disk" else 0
        beside = [subprocess.Popen([sys.executable, "-c", WRITE, folder]) for _ in range(count)]
        try:
            yield
        finally:
            for process in beside:
                process.kill()
                process.wait()


def depends_on_machine(costs, kind, program):
    """Whether it starts processes that wait, or is soon done. What was never measured may."""
    if program.name in ALONE or any(word in program.name for word in CAMPAIGNS):
        return False
    cost = test_costs.measured(costs, kind, program.name)
    own = 2  # its supervisor's fork and what that executes
    return not cost or cost.processes is None or cost.processes > own or cost.cpu_s < ALONE_S


def runs_of(times):
    """{load: how many of the runs}; each has at least one where there are three."""
    counts = {name: max(int(times * share), 1) for name, share in SHARES.items()}
    counts["busy"] += times - sum(counts.values())
    return {name: count for name, count in counts.items() if count > 0}


def rounds(build, costs, name, times, until_s):
    """({program: [cases of each run]} under one load, why it ended early or "")."""
    found = collections.defaultdict(list)
    pool = test_run.Pool([build], costs, until_s=until_s, patience=3 * test_run.PATIENCE, **HOW[name])
    pool.waiting *= times
    with load(name):
        try:
            while (pool.waiting or pool.running) and not pool.is_cut():
                pool.start_some()
                for _, program, entry in pool.turn():
                    cases = test_report.cases_of_all([entry], f"{name} | ", build.env)
                    found[program.name].append(cases)
                    tell(pool, program.name, found[program.name], times)
        finally:
            pool.end()
    return found, pool.cut


def tell(pool, name, runs, times):
    """What went wrong at once, with its log; a line for a program whose runs are over."""
    for case in runs[-1]:
        if case.result == "fail":
            print(f"FAILED {case.where}{case.name}\n{case.text}", flush=True)
    if len(runs) == times:
        bad = sum(any(case.result == "fail" for case in run) for run in runs)
        print(f"{time.monotonic() - pool.begin:6.0f} s  {name}: {bad} of {times} failed ({len(pool.running)} running, "
              f"{len(pool.waiting)} waiting)", flush=True)


def record(rows, command, path=PATH, keep=lambda metric: False):
    """Writes rows of (metric, value, unit); of those that were there stay whose metric is to be kept."""
    head = (datetime.date.today().isoformat(), test_costs.commit(), command, test_costs.machine(), "yes")
    kept = []
    if os.path.exists(path):
        with open(path, newline="", encoding="utf-8") as file:
            kept = [tuple(row.values()) for row in csv.DictReader(file) if keep(row["metric"])]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("date", "commit", "command", "machine", "simulated", "metric", "value", "unit"))
        writer.writerows(kept + [head + row for row in rows])


def parse():
    parser = argparse.ArgumentParser(description="run each test program many times under load")
    parser.add_argument("--build", required=True, help="build folder, built")
    parser.add_argument("--times", type=int, default=20, help="runs of each program (20)")
    parser.add_argument("--load", choices=SHARES, help="this one, with its share of the runs; all without")
    parser.add_argument("--only", default="", help="regular expression; programs (SUITE / TEST) whose name it is found in")
    parser.add_argument("--all", action="store_true", help="also programs that compute for long and start no process")
    parser.add_argument("--within", type=float, default=300, help="minutes after which each load ends with what it has (300)")
    parser.add_argument("--record", action="store_true", help="write bench/results/steadiness.csv")
    return parser.parse_args()


def main():
    options = parse()
    build = test_run.Build("sanitized" if test_report.sanitizers(options.build) != "plain" else "plain", options.build, "")
    build.ready = True
    costs, rows, passed, failed = test_costs.read(test_costs.PATH), [], 0, 0
    known = [program for program in test_programs.programs_of(build.folder) if re.search(options.only, program.name)]
    build.programs = [program for program in known if options.all or depends_on_machine(costs, build.kind, program)]
    left_out = sorted({program.name for program in known} - {program.name for program in build.programs})
    if left_out:
        print(f"takt: left out, for they compute alone or are campaigns (--all runs them): {', '.join(left_out)}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name, times in runs_of(options.times).items():
        if options.load not in (None, name):
            continue
        print(f"takt: {len(build.programs)} programs, {times} times each, {name} ...", flush=True)
        found, cut = rounds(build, costs, name, times, options.within * 60)
        if cut:
            print(f"{name}: cut short, {cut}", flush=True)
            failed += 1
        for program, runs in sorted(found.items()):
            cases = [case for run in runs for case in run]
            bad = collections.Counter(case.name for case in cases if case.result == "fail")
            failed += sum(bad.values())
            passed += sum(case.result == "pass" for case in cases)
            rows.append((f"{program} ({name}): runs that failed", sum(any(case.result == "fail" for case in run) for run in runs),
                         f"of {len(runs)}"))
            rows += [(f"{case} ({name}): failed", count, f"of {len(runs)}") for case, count in sorted(bad.items())]
    if options.record:
        record(rows, f"tools/test_steady.py --build BUILD --times {options.times}" + (" --all" if options.all else ""),
               keep=lambda metric: options.load is not None and f"({options.load}): " not in metric)
    for what, count, of in rows:
        if count:
            print(f"{count} {of}  {what}")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
