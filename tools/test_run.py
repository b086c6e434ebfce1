#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds takt and runs its tests as fast as the machine allows; the verdict comes last.

Usage: test_run.py [--plain BUILD] [--sanitized BUILD] [--whole] [--quick] [--only REGEX] ...

Builds are folders that meson has set up. With both, each case runs once: the sanitized build runs all that it has, the
plain one what only it can run (what meson does not list in the sanitized build, and programs with the suite "plain",
of which tests/tap.py picks the cases). --whole runs all in both.

Programs run side by side: as many as keep the processors busy by what each cost before (bench/results/test_costs.csv),
the longest first. One that only waits takes next to no place. While one build is compiled, the other's tests run.

Programs of suites that start processes and wait for them (AGAIN) depend on what else the machine does. Those that
failed are run once more, alone; if all cases pass then, they count, and what failed at first is printed as UNSTEADY
with its log. Campaigns get no second try: one failure in a thousand is what they are there to find.

A program that exceeds its limit is killed with all that it started. After --within minutes the run ends with what it
has: what did not end until then has failed. Exit status 1 if anything failed or nothing ran.
"""
import argparse
import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time

import test_costs
import test_programs
import test_report

AGAIN = ("e2e", "browser", "guest", "cli", "deploy", "device", "launch", "server", "top", "twin")
AGAIN_MOST = 10
PATIENCE = 10       # times a test's own limit, which is there for what hangs: a busy machine is not at fault
WAITING_PER_CPU = 6  # programs at once, however little each computes
FULL_PER_CPU = 1.3   # what running programs compute together, by what they cost before
QUICK_S = (20, 4)    # wall clock and processor time of what ./test quick leaves out


class Build:
    """A folder, what of it is tested, and what came of it."""

    def __init__(self, kind, folder, label):
        self.kind, self.folder, self.label = kind, os.path.abspath(folder), label
        self.env = test_report.environment(folder)
        self.programs, self.entries, self.unsteady = [], {}, []
        self.process, self.ready, self.log = None, False, os.path.join(self.folder, "build.log")

    def start(self):
        """Compiles, at a low priority: what waits for a moment runs beside it."""
        targets = test_programs.targets_of(self.folder, self.programs)
        listed = os.path.join(self.folder, "targets.txt")
        with open(listed, "w", encoding="utf-8") as file:
            file.write("\n".join(targets))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["nice", "-n", "10", "ninja", "-C", self.folder, *targets],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def failed(self):
        """True when the compiler gave up; says what it said."""
        code = self.process.poll() if self.process else None
        self.ready |= code == 0
        if not code:
            return False
        with open(self.log, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        told = [line for line in lines if re.search(r"error|warning|FAILED", line)] or lines
        print("\n".join(told[-40:]), flush=True)
        return True

    def cases(self):
        return test_report.cases_of_all(self.entries.values(), self.label, self.env)


class Pool:
    """Programs that wait and run."""

    def __init__(self, builds, costs, more_env, patience):
        self.builds, self.costs, self.more_env, self.patience = builds, costs, more_env, patience
        self.births, self.running, self.selector = test_programs.Births(), {}, selectors.PollSelector()
        self.waiting = [(build, program) for build in builds for program in build.programs]
        self.waiting.sort(key=lambda pair: -self.cost(*pair)[0])
        self.begin, self.cpus = time.monotonic(), 1

    def cost(self, build, program):
        return test_costs.expected(self.costs, build.kind, program.name)

    def share(self, build, program):
        wall_s, cpu_s = self.cost(build, program)
        return min(cpu_s / max(wall_s, 0.1), self.cpus)

    def fits(self, pair):
        full = sum(self.share(*each) for each, _ in self.running.values())
        building = any(build.process and not build.ready for build in self.builds)
        room = self.cpus * (FULL_PER_CPU - (0.4 if building else 0))
        return full + self.share(*pair) <= room or not self.running

    def start_some(self):
        self.cpus = len(os.sched_getaffinity(0))
        while len(self.running) < WAITING_PER_CPU * self.cpus:
            pair = next((pair for pair in self.waiting if pair[0].ready and self.fits(pair)), None)
            if not pair:
                return
            self.waiting.remove(pair)
            self.start(*pair)

    def start(self, build, program):
        run = test_programs.Run(program, self.more_env, self.births, self.patience)
        self.running[run.pid] = ((build, program), run)
        for fd in run.fds:
            self.selector.register(fd, selectors.EVENT_READ, run)

    def turn(self):
        """Takes what running programs say, and ends what is late; the entries of those that are over."""
        for key, _ in self.selector.select(0.2):
            if not key.data.read(key.fd):
                self.selector.unregister(key.fd)
        self.births.hear()
        over = []
        for pid, (pair, run) in list(self.running.items()):
            if not run.fds:
                del self.running[pid]
                over.append((*pair, run.entry()))
            elif not run.late and time.monotonic() - run.begin > run.limit_s:
                run.end()
        return over

    def end(self):
        """Everything that runs is killed."""
        for _, run in self.running.values():
            run.end()


def tell(pool, build, entry, rules):
    """A line for a program that is over, and at once what is wrong with it."""
    cases = test_report.cases_of_all([entry], build.label, build.env)
    bad = [case for case in cases if case.result == "fail" or
           case.result == "skip" and not (case.text and test_report.allowed(case, rules))]
    cpu = "" if entry["cpu_s"] is None else f", {entry['cpu_s']:.1f} of CPU"
    print(f"{time.monotonic() - pool.begin:6.0f} s  {build.label}{entry['name']}: {'FAILED' if bad else 'ok'} "
          f"({len(cases)} case{'s'[:len(cases) != 1]}, {entry['duration']:.1f} s{cpu}; {len(pool.running)} running, "
          f"{len(pool.waiting)} waiting)", flush=True)
    for case in bad:
        print(f"          {case.name}{': unlisted skip' if case.result == 'skip' else ''}", flush=True)


def run_all(pool, builds, rules, until_s):
    """Runs what waits; True when time was enough."""
    todo = [build for build in builds if not build.ready]
    while pool.waiting or pool.running:
        if time.monotonic() - pool.begin > until_s:
            return False
        if todo and not any(build.process and not build.ready for build in builds):
            print(f"takt: building ({todo[0].kind}) ...", flush=True)
            todo.pop(0).start()
        if any(build.failed() for build in builds if not build.ready):
            for build in builds:
                if build.process and not build.ready:
                    build.process.terminate()
            return False
        pool.start_some()
        for build, _, entry in pool.turn():
            build.entries[entry["name"]] = entry
            tell(pool, build, entry, rules)
    return True


def cut_short(pool):
    """The run ends here: what runs is killed, and what did not run is named as failed."""
    pool.end()
    end = time.monotonic() + 60
    while pool.running and time.monotonic() < end:
        for build, _, entry in pool.turn():
            build.entries[entry["name"]] = entry
    for build, program in pool.waiting:
        build.entries[program.name] = {"name": program.name, "suite": program.suite, "result": "NOT RUN", "returncode": None,
                                       "stdout": "", "stderr": "the run ended before its turn", "duration": 0.0,
                                       "cpu_s": None, "processes": None, "points": []}


def again(pool, builds, rules):
    """Alone. A program whose cases all pass now has passed; the others stay as they were."""
    failed = []
    for build in builds:
        names = {case.program for case in build.cases() if case.result == "fail"}
        failed += [(build, program) for program in build.programs
                   if program.name in names and program.suite in AGAIN and "campaign" not in program.name]
    if len(failed) > AGAIN_MOST:
        return
    for build, program in failed:
        print(f"again, alone: {build.label}{program.name}", flush=True)
        pool.start(build, program)
        while pool.running:
            for _, _, entry in pool.turn():
                tell(pool, build, entry, rules)
                if all(case.result != "fail" for case in test_report.cases_of(entry)):
                    build.unsteady += [case for case in build.cases() if case.program == entry["name"]
                                       and case.result == "fail"]
                    build.entries[entry["name"]] = entry


def choose(builds, costs, whole, quick, only):
    """What is tested in each build."""
    names = {}
    for build in builds:
        build.programs = [program for program in test_programs.programs_of(build.folder)
                          if re.search(only, program.name)]
        names[build.kind] = {program.name for program in build.programs}
    for build in builds:
        if build.kind == "plain" and "sanitized" in names and not whole:
            build.programs = [program for program in build.programs
                              if program.plain_too or program.name not in names["sanitized"]]
        if quick:
            small = [program for program in build.programs
                     if all(cost < most for cost, most in zip(test_costs.expected(costs, build.kind, program.name), QUICK_S))]
            print(f"takt: {len(build.programs) - len(small)} programs of {len(build.programs)} take longer than {QUICK_S[0]} s "
                  f"or compute for longer than {QUICK_S[1]} s: ./test runs them", flush=True)
            build.programs = small


def parse():
    parser = argparse.ArgumentParser(description="build takt and run its tests, verdict last")
    parser.add_argument("--plain", help="build folder without sanitizers")
    parser.add_argument("--sanitized", help="build folder with sanitizers")
    parser.add_argument("--whole", action="store_true", help="run everything in each build")
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    parser.add_argument("--only", default="", help="regular expression; programs (SUITE / TEST) whose name it is found in")
    parser.add_argument("--within", type=float, default=60, help="minutes after which the run ends with what it has (60)")
    parser.add_argument("--built", action="store_true", help="compile nothing")
    parser.add_argument("--record", action="store_true", help="write what each program cost to bench/results/test_costs.csv")
    parser.add_argument("--skips", default=os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                                       "tests/skips"))
    return parser.parse_args()


def verdict(builds, rules, cut, options):
    entries = [entry for build in builds for entry in build.entries.values()]
    cases = [case for build in builds for case in build.cases()]
    unsteady = [case for build in builds for case in build.unsteady]
    test_report.print_unsteady(unsteady, sys.stdout)
    passed, failed = test_report.judge(cases, rules, sys.stdout)
    test_report.print_trials(entries, sys.stdout)
    rows = []
    for build in builds:
        for entry in build.entries.values():
            rows += test_costs.rows_of(build.kind, entry, test_report.cases_of(entry))
    test_costs.print_table(rows, sys.stdout)
    if options.record and not cut:
        test_costs.write(rows, "tools/test_run.py " + shlex.join(sys.argv[1:]))
    if unsteady:
        print(f"{len(unsteady)} unsteady: see UNSTEADY above")
    if cut:
        print("the run was cut short: see above")
    print(f"{passed} passed, {failed + bool(cut and not failed)} failed", flush=True)
    return 1 if failed or cut or passed == 0 else 0


def main():
    options = parse()
    rules = test_report.read_skips(options.skips)
    folders = [(kind, getattr(options, kind)) for kind in ("plain", "sanitized") if getattr(options, kind)]
    builds = [Build(kind, folder, f"{kind} | " if len(folders) > 1 else "") for kind, folder in folders]
    costs = test_costs.read()
    choose(builds, costs, options.whole, options.quick, options.only)
    more_env = {}
    if len(builds) > 1 and not options.whole:
        more_env["TAKT_TEST_ENV"] = f"{os.environ.get('TAKT_TEST_ENV', '')} beside-sanitized".strip()
    for build in builds:
        build.ready = options.built
    pool = Pool(builds, costs, more_env, PATIENCE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cut = False
    try:
        cut = not run_all(pool, builds, rules, options.within * 60)
        if cut:
            cut_short(pool)
        else:
            again(pool, builds, rules)
    finally:
        pool.end()
        for build in builds:
            if build.process and not build.ready:
                with contextlib.suppress(ProcessLookupError):
                    build.process.terminate()
    print(f"time: {time.monotonic() - pool.begin:.0f} s", flush=True)
    return verdict(builds, rules, cut, options)


if __name__ == "__main__":
    sys.exit(main())
