#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the health rules find: each fault of tests/rules/faults.tsv alone and beside every other that can be on one
board, and healthy boards, captured and at work for a day. Nothing is timed.

Usage: health_rules.py BUILD_FOLDER [--record [FILE]]
"""
import argparse
import csv
import datetime
import os
import subprocess
import sys
import tempfile

from idle_cost import COLUMNS, SOURCE, commit, machine_name


def table_of(build, program):
    """Rows that a test program writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table")
        subprocess.run([os.path.join(build, "tests/rules", program), os.path.join(SOURCE, "tests/rules"),
                        os.path.join(SOURCE, "data/health"), path], check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t") for line in file]


def results(build):
    for fault, alone, alone_right, pairs, pairs_right in table_of(build, "test_rules_faults"):
        yield f"fault {fault}: verdicts as expected, alone", alone_right, f"of {alone}"
        yield f"fault {fault}: verdicts as expected, in pairs", pairs_right, f"of {pairs}"
    seconds = {}
    for board, work, length, changes in table_of(build, "test_rules_healthy"):
        total, alarms = seconds.get((board, work), (0, 0))
        seconds[board, work] = total + int(length), alarms + int(changes)
    for (board, work), (total, alarms) in seconds.items():
        yield f"healthy {board}, {work}, {total} s: alarms", alarms, "alarms"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--record", nargs="?", const=os.path.join(SOURCE, "bench/results/health_rules.csv"))
    options = parser.parse_args()
    common = [datetime.date.today().isoformat(), commit(), "health_rules.py", machine_name(), "yes"]
    rows = [[*common, *result] for result in results(options.build)]
    with open(options.record, "w", encoding="utf-8", newline="") if options.record else sys.stdout as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        out.writerows(rows)


if __name__ == "__main__":
    main()
