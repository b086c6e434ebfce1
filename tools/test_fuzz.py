#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every fuzzer of fuzz/ for some minutes, as many at once as there are processors, and keeps what it finds.

Usage: test_fuzz.py [--build BUILD] [--minutes 10] [--only REGEX] [--at-once N] [--found FOLDER] [--record]

BUILD (build-fuzz) is set up if it is not, with clang and sanitizers, and its fuzzers are built. Each begins with its seeds.
One fails that finds a crash, a leak, an input that takes a minute or 2 GiB, or that does not end; the input is kept in FOLDER (BUILD/found),
from which it goes to fuzz/corpus as a seed with its mend. --record writes bench/results/fuzz.csv.
The last line is "N passed, N failed": fuzzers.
"""
import argparse
import collections
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import test_costs
import test_steady

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATH = os.path.join(os.path.dirname(test_costs.PATH), "fuzz.csv")
SETUP = ("-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false")
INPUT_S, MEMORY_MB = 60, 2048  # of one input
TELLS = re.compile(r"^(Done|stat::number_of_executed_units:)\s+(\d+)", re.M)
TAIL = 60  # lines of the log of one that failed

Run = collections.namedtuple("Run", "name process log begin")
End = collections.namedtuple("End", "name why executed seconds text")


def build(folder, names):
    """The fuzzers are there; an exit otherwise."""
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, ROOT, *SETUP], env={**os.environ, "CC": "clang"}, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, *(f"fuzz/fuzz_{name}" for name in names)], check=True, stdout=subprocess.DEVNULL)


def begin(options, name, scratch):
    found = os.path.join(scratch, name)
    os.mkdir(found)
    seeds = os.path.join(ROOT, "fuzz/corpus", name)
    log = open(os.path.join(scratch, name + ".log"), "w+b")
    words = [os.path.join(options.build, "fuzz/fuzz_" + name), found, *([seeds] if os.path.isdir(seeds) else []),
             f"-max_total_time={round(options.minutes * 60)}", f"-timeout={INPUT_S}", f"-rss_limit_mb={MEMORY_MB}", "-print_final_stats=1",
             f"-artifact_prefix={os.path.join(options.found, name)}-"]
    return Run(name, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True), log, time.monotonic())


def kill(run):
    try:
        os.killpg(run.process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    run.process.wait()


def end_of(run, patience_s):
    """What became of it, None while it goes on."""
    seconds = time.monotonic() - run.begin
    late = run.process.poll() is None and seconds > patience_s
    if run.process.poll() is None and not late:
        return None
    kill(run)
    run.log.seek(0)
    text = run.log.read().decode(errors="replace")
    run.log.close()
    executed = max((int(number) for _, number in TELLS.findall(text)), default=0)
    why = "it did not end" if late else f"exit status {run.process.returncode}" if run.process.returncode else "" if executed else "it tried nothing"
    return End(run.name, why, executed, seconds, text)


def run_all(options, names):
    """The ends of those that ended; all of them unless it is interrupted."""
    waiting, running, ends, begun = list(names), [], [], time.monotonic()
    patience_s = 60 * options.minutes + 5 * INPUT_S + options.patience
    with tempfile.TemporaryDirectory(prefix="takt-fuzz-") as scratch:
        try:
            while waiting or running:
                while waiting and len(running) < options.at_once:
                    running.append(begin(options, waiting.pop(0), scratch))
                time.sleep(0.2)
                for run in list(running):
                    if end := end_of(run, patience_s):
                        running.remove(run)
                        ends.append(end)
                        print(f"{time.monotonic() - begun:6.0f} s  {end.name}: {end.why or 'ok'}, {end.executed} inputs "
                              f"({len(running)} running, {len(waiting)} waiting)", flush=True)
        except KeyboardInterrupt:
            print(f"takt: interrupted; {len(running) + len(waiting)} fuzzers have not ended", flush=True)
        finally:
            for run in running:
                kill(run)
    return ends


def parse():
    parser = argparse.ArgumentParser(description="run every fuzzer for some minutes")
    parser.add_argument("--build", default=os.path.join(ROOT, "build-fuzz"), help="build folder for fuzzing (build-fuzz)")
    parser.add_argument("--minutes", type=float, default=10, help="how long each runs (10)")
    parser.add_argument("--only", default="", help="regular expression; fuzzers whose name it is found in")
    parser.add_argument("--at-once", type=int, default=len(os.sched_getaffinity(0)), help="how many side by side (as there are processors)")
    parser.add_argument("--found", help="where inputs are kept that broke something (BUILD/found)")
    parser.add_argument("--built", action="store_true", help="the build folder is as it should be")
    parser.add_argument("--patience", type=float, default=600, help="seconds beyond its time after which one is ended (600)")
    parser.add_argument("--record", action="store_true", help="write bench/results/fuzz.csv")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.found = os.path.abspath(options.found or os.path.join(options.build, "found"))
    return options


def main():
    options = parse()
    for told in (signal.SIGINT, signal.SIGTERM):  # who starts us may have ignored the first
        signal.signal(told, signal.default_int_handler)
    where = os.path.join(options.build, "fuzz/fuzz_*") if options.built else os.path.join(ROOT, "fuzz/fuzz_*.c")
    known = {os.path.splitext(os.path.basename(path))[0].removeprefix("fuzz_") for path in glob.glob(where) if os.path.isfile(path)}
    names = sorted(name for name in known if re.search(options.only, name))
    if not options.built and names:
        build(options.build, names)
    os.makedirs(options.found, exist_ok=True)
    print(f"takt: {len(names)} fuzzers, {options.minutes:g} min each, {options.at_once} at once ...", flush=True)
    ends = run_all(options, names)
    for end in ends:
        if end.why:
            print(f"FAILED {end.name}: {end.why}\n" + "\n".join(end.text.splitlines()[-TAIL:]))
    failed = sum(bool(end.why) for end in ends) + len(names) - len(ends)
    kept = sorted(os.listdir(options.found))
    if kept:
        print(f"takt: inputs that broke something, in {options.found}: {', '.join(kept)}")
    if options.record:
        rows = [(f"{end.name}: inputs", end.executed, "inputs") for end in sorted(ends)] + [("fuzzers that failed", failed, f"of {len(names)}")]
        test_steady.record(rows, f"tools/test_fuzz.py --minutes {options.minutes:g}", PATH)
    print(f"{len(ends) - sum(bool(end.why) for end in ends)} passed, {failed} failed", flush=True)
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
