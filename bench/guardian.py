#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs left changed in deaths of the actuator and the guard at their crash points.

Runs tests/actuate/test_guardian.c with as many deaths as asked for: both within one process, on boards in
memory, in virtual time, so that a hundred thousand deaths take a minute. Records how many there were, of whom
and where, and how many GPUs were left changed.

Usage: guardian.py BUILD_FOLDER [--deaths N] [--record]
"""
import argparse
import csv
import datetime
import os
import platform
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = ["date", "commit", "command", "machine", "simulated", "metric", "value", "unit"]


def rows_of(output):
    found = []
    for line in output.splitlines():
        words = line.split()
        if line.startswith("# deaths "):
            counts = dict(zip(words[1::2], map(int, words[2::2])))
            found = [("GPUs left changed", counts["left"], "GPUs"),
                     ("deaths", counts["deaths"], ""),
                     ("deaths, actuator", counts["actuator"], ""),
                     ("deaths, guard", counts["guard"], ""),
                     ("actuator and guard dead at once", counts["both"], ""),
                     ("driver loaded anew between deaths", counts["reloads"], ""),
                     ("GPUs lost while at work", counts["losses"], ""),
                     ("GPUs that refused setters for a while", counts["refusals"], ""),
                     ("driver calls that did not return", counts["hangs"], ""),
                     ("of them: their process died meanwhile", counts["in_driver"], ""),
                     ("facility caps set, that had to stay", counts["caps"], ""),
                     ("MIG layouts set, that had to go", counts["cuts"], ""),
                     ("baselines declared, that had to stay", counts["declarations"], "")]
        elif line.startswith("# point "):
            found.append((f"deaths at {words[2]}", int(words[3]), ""))
    return found


def record(rows, command):
    def git(*args):
        return subprocess.run(["git", "-C", SOURCE, *args], capture_output=True, text=True,
                              check=True).stdout.strip()

    with open(os.path.join(SOURCE, "bench/results/guardian.csv"), "w", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        machine = f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}"
        for metric, value, unit in rows:
            writer.writerow([datetime.date.today().isoformat(), git("rev-parse", "--short=12", "HEAD"),
                             command, machine, "yes", metric, value, unit])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--deaths", type=int, default=100000)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    ran = subprocess.run([os.path.join(args.build, "tests/actuate/test_guardian")],
                         env={**os.environ, "TAKT_GUARDIAN_DEATHS": str(args.deaths)},
                         capture_output=True, text=True, check=False)
    rows = rows_of(ran.stdout)
    for metric, value, unit in rows:
        print(f"{metric:44} {value:>10} {unit}")
    if ran.returncode != 0:
        print(ran.stdout + ran.stderr, file=sys.stderr)
    elif args.record:
        record(rows, f"bench/guardian.py BUILD --deaths {args.deaths}")
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
