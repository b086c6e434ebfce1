#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What takes hours: everything in both builds with long campaigns, the faults of the past, steadiness, every fuzzer. The verdict
is the sum.

Usage: test_long.py --plain BUILD --sanitized BUILD [--only-part REGEX] [--fuzz-minutes 10] [--record] [OPTION of test_run.py ...]

--record writes how long each part took to bench/results/test_long.csv when it is over; past_faults.csv, steadiness.csv and fuzz.csv
beside it. Where a night is too short for all, --only-part records some of them, and the rows of the others stay.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time

import test_costs
import test_steady

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(os.path.dirname(test_costs.PATH), "test_long.csv")
VERDICT = re.compile(r"(\d+) passed, (\d+) failed\s*$")


def run(words, **env):
    """(passed, failed) of a part that is run; one failure more if it says nothing or is not content with itself."""
    part = subprocess.Popen([sys.executable, "-B", *words], stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    last = ""
    for line in part.stdout:
        print(line, end="", flush=True)
        last = line
    said = VERDICT.match(last)
    passed, failed = map(int, said.groups()) if said else (0, 1)
    return passed, failed + (part.wait() != 0 and failed == 0)


def main():
    parser = argparse.ArgumentParser(description="run what takes hours")
    parser.add_argument("--plain", required=True, help="build folder without sanitizers")
    parser.add_argument("--sanitized", required=True, help="build folder with sanitizers")
    parser.add_argument("--record", action="store_true", help="write what is found to bench/results")
    parser.add_argument("--only-part", default="", help="regular expression; parts whose name it is found in")
    parser.add_argument("--fuzz-minutes", type=float, default=10, help="how long each fuzzer runs (10)")
    options, more = parser.parse_known_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the part that runs, which says what it has
    record = ["--record"] * options.record
    parts = {
        "everything in both builds": ([f"{HERE}/test_run.py", "--whole", "--within", "240", "--plain", options.plain,
                                       "--sanitized", options.sanitized, *more], {"TAKT_TEST_LONG": "1"}),
        "faults of the past": ([f"{HERE}/past_faults.py", *record], {}),
        **{f"each program many times, {load}": ([f"{HERE}/test_steady.py", "--build", options.plain, "--load", load, *record], {})
           for load in test_steady.SHARES},
        "every fuzzer": ([f"{HERE}/test_fuzz.py", "--minutes", str(options.fuzz_minutes), *record], {}),
    }
    parts = {name: part for name, part in parts.items() if re.search(options.only_part, name)}
    rows, passed, failed = [], 0, 0
    for name, (words, env) in parts.items():
        print(f"takt: {name} ...", flush=True)
        at, one = time.monotonic(), run(words, **env)
        passed, failed = passed + one[0], failed + one[1]
        part = [(f"{name}: length", round(time.monotonic() - at), "s"), (f"{name}: passed", one[0], "cases"),
                (f"{name}: failed", one[1], "cases")]
        if options.record:
            test_steady.record(part, "./test long --record", PATH, keep=lambda metric, name=name: not metric.startswith(f"{name}: "))
        rows += part
    for what, value, unit in rows:
        print(f"{value:>8} {unit}  {what}")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
