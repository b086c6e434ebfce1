#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each test program many times on a machine that has other things to do, and counts how often it failed.

Usage: test_steady.py --build BUILD [--times 20] [--only REGEX] [--all] [--record]

The runs are shared out among three loads: "busy" (a process that computes on each core), "one core" (the programs share
one) and "slow disk" (two processes that write and sync without end). Programs that start processes or wait for them are
run (the suites that ./test tries again); --all takes the others, too. --record writes bench/results/steadiness.csv.
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

import test_costs
import test_programs
import test_report
import test_run

SHARES = {"busy": 0.4, "one core": 0.3, "slow disk": 0.3}
COMPUTE = "while True: pass"
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
    """The machine has this to do until the block ends."""
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="takt-steady-") as folder:
        words = {"busy": [[COMPUTE]] * len(cores), "one core": [], "slow disk": [[WRITE, folder]] * 2}[name]
        beside = [subprocess.Popen([sys.executable, "-c", *each]) for each in words]
        if name == "one core":
            os.sched_setaffinity(0, {min(cores)})
        try:
            yield
        finally:
            os.sched_setaffinity(0, cores)
            for process in beside:
                process.kill()
                process.wait()


def runs_of(times):
    """{load: how many of the runs}; each has at least one where there are three."""
    counts = {name: max(int(times * share), 1) for name, share in SHARES.items()}
    counts["busy"] += times - sum(counts.values())
    return {name: count for name, count in counts.items() if count > 0}


def rounds(build, costs, name, times):
    """{program: [cases of each run]} under one load."""
    found = collections.defaultdict(list)
    pool = test_run.Pool([build], costs, {}, float("inf"), 3 * test_run.PATIENCE)
    pool.waiting = [pair for pair in pool.waiting for _ in range(times)]
    with load(name):
        try:
            while pool.waiting or pool.running:
                pool.start_some()
                for _, program, entry in pool.turn():
                    cases = test_report.cases_of_all([entry], f"{name} | ", build.env)
                    found[program.name].append(cases)
                    for case in cases:
                        if case.result == "fail":
                            print(f"FAILED {case.where}{case.name}\n" + case.text, flush=True)
        finally:
            pool.end()
    return found


def record(rows, command):
    head = (datetime.date.today().isoformat(), test_costs.commit(), command, test_costs.machine(), "yes")
    with open(PATH, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("date", "commit", "command", "machine", "simulated", "metric", "value", "unit"))
        writer.writerows(head + row for row in rows)


def main():
    parser = argparse.ArgumentParser(description="run each test program many times under load")
    parser.add_argument("--build", required=True, help="build folder, built")
    parser.add_argument("--times", type=int, default=20, help="runs of each program (20)")
    parser.add_argument("--only", default="", help="regular expression; programs (SUITE / TEST) whose name it is found in")
    parser.add_argument("--all", action="store_true", help="also programs that neither start processes nor wait")
    parser.add_argument("--record", action="store_true", help="write bench/results/steadiness.csv")
    options = parser.parse_args()
    build = test_run.Build("sanitized" if test_report.sanitizers(options.build) != "plain" else "plain", options.build, "")
    build.ready = True
    build.programs = [program for program in test_programs.programs_of(build.folder) if re.search(options.only, program.name)
                      and (options.all or program.suite in test_run.AGAIN)]
    costs, rows, passed, failed = test_costs.read(test_costs.PATH), [], 0, 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name, times in runs_of(options.times).items():
        print(f"takt: {len(build.programs)} programs, {times} times each, {name} ...", flush=True)
        for program, runs in sorted(rounds(build, costs, name, times).items()):
            cases = [case for run in runs for case in run]
            bad = collections.Counter(case.name for case in cases if case.result == "fail")
            failed += sum(bad.values())
            passed += sum(case.result == "pass" for case in cases)
            rows.append((f"{program} ({name}): runs that failed", sum(any(case.result == "fail" for case in run) for run in runs),
                         f"of {len(runs)}"))
            rows += [(f"{case} ({name}): failed", count, f"of {len(runs)}") for case, count in sorted(bad.items())]
    if options.record:
        record(rows, f"tools/test_steady.py --build BUILD --times {options.times}" + (" --all" if options.all else ""))
    for what, count, of in rows:
        if count:
            print(f"{count} {of}  {what}")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
