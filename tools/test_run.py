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

A program that exceeds its limit is killed with all that it started. After --within minutes, when a build fails and on
Ctrl-C the run ends with what it has: what did not end until then has failed. Exit status 1 if anything failed or nothing
ran.
"""
import argparse
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

AGAIN = ("attack", "e2e", "browser", "guest", "cli", "deploy", "device", "launch", "server", "top", "twin")
AGAIN_MOST = 10
PATIENCE = 10       # times a test's own limit, which is there for what hangs: a busy machine is not at fault
WAITING_PER_CPU = 6  # programs at once, however little each computes
FULL_PER_CPU = 1.3   # what running programs compute together, by what they cost before
KILLED_WITHIN_S = 60  # until what was killed is gone


class Build:
    """A folder, what of it is tested, and what came of it."""

    def __init__(self, kind, folder, label):
        self.kind, self.folder, self.label = kind, os.path.abspath(folder), label
        self.env = test_report.environment(folder)
        self.programs, self.entries, self.unsteady = [], {}, []
        self.process, self.ready, self.failed, self.log = None, False, False, os.path.join(self.folder, "build.log")

    def start(self):
        """Compiles, at a low priority: what waits for a moment runs beside it."""
        print(f"takt: building ({self.kind}) ...", flush=True)
        targets = test_programs.targets_of(self.folder, self.programs)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["nice", "-n", "10", "ninja", "-C", self.folder, *targets], start_new_session=True,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def is_building(self):
        """Whether it is being compiled. When that has failed, an entry says what the compiler said."""
        code = self.process.poll() if self.process and not self.ready else 0
        if code and not self.failed:
            self.failed = True
            with open(self.log, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
            told = [line for line in lines if re.search(r"error|warning|FAILED", line)] or lines
            self.entries["build"] = test_programs.entry("build", "FAIL", code, "\n".join(told))
        self.ready |= bool(self.process) and code == 0
        return code is None

    def stop(self):
        if self.is_building():
            self.process.terminate()
            self.process.wait()

    def cases(self):
        return test_report.cases_of_all(self.entries.values(), self.label, self.env)


class Pool:
    """Programs that wait and run. `cut` says why the run ends before its time, if it does. `patience` multiplies the
    programs' limits; `full` is what running programs may compute together on a processor; with `one_core` each program
    stays on one."""

    def __init__(self, builds, costs, *, more_env=(), until_s=float("inf"), patience=PATIENCE, full=FULL_PER_CPU,
                 one_core=False):
        self.builds, self.costs, self.more_env, self.until_s, self.cut = builds, costs, dict(more_env), until_s, ""
        self.patience, self.full, self.one_core = patience, full, one_core
        self.births, self.running, self.selector = test_programs.Births(), {}, selectors.PollSelector()
        self.waiting = [(build, program) for build in builds for program in build.programs]
        self.waiting.sort(key=lambda pair: -self.cost(*pair)[0])
        self.begin, self.cpus = time.monotonic(), 1

    def is_cut(self):
        failed = next((build.kind for build in self.builds if build.failed), None)
        if failed:
            self.cut = f"the {failed} build failed"
        elif not self.cut and time.monotonic() - self.begin > self.until_s:
            self.cut = f"its {self.until_s / 60:g} minutes are over"
        return bool(self.cut)

    def interrupt(self, number, _):
        """A second signal ends the runner, and with it what it started."""
        self.cut = "it was interrupted"
        signal.signal(number, signal.SIG_DFL)

    def cost(self, build, program):
        return test_costs.expected(self.costs, build.kind, program.name)

    def share(self, build, program):
        cost = self.cost(build, program)
        return min(cost.cpu_s / max(cost.wall_s, 0.1), self.cpus)

    def fits(self, pair):
        full = sum(self.share(*each) for each, _ in self.running.values())
        building = any(build.process and not build.ready for build in self.builds)
        room = self.cpus * (self.full - (0.4 if building else 0))
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
        run = test_programs.Run(program, self.more_env, self.births, self.patience, self.cores())
        self.running[run.pid] = ((build, program), run)
        for fd in run.fds:
            self.selector.register(fd, selectors.EVENT_READ, run)

    def cores(self):
        """What the next program may run on: all, or the one that fewest run on."""
        cores = os.sched_getaffinity(0)
        if not self.one_core:
            return cores
        used = [core for _, run in self.running.values() for core in run.cores]
        return {min(sorted(cores), key=used.count)}

    def turn(self):
        """Takes what running programs say, and ends what is late; the entries of those that are over."""
        for key, _ in self.selector.select(0.2):
            if key.data.read(key.fd) == b"":
                self.selector.unregister(key.fd)
        self.births.hear()
        over = []
        for pid, (pair, run) in list(self.running.items()):
            if run.over:
                for fd in self.selector.get_map().keys() & run.fds.keys():
                    self.selector.unregister(fd)
                run.close()
                del self.running[pid]
                over.append((*pair, run.entry()))
            elif not run.killed and time.monotonic() - run.begin > run.limit_s:
                run.end(f"it exceeded its limit, {run.limit_s:g} s")
        return over

    def end(self):
        """The run ends here: what runs is killed, and what did not run has failed. What ran before counts."""
        for build in self.builds:
            build.stop()
        for _, run in self.running.values():
            run.end(self.cut)
        end = time.monotonic() + KILLED_WITHIN_S
        while self.running and time.monotonic() < end:
            for build, _, entry in self.turn():
                build.entries.setdefault(entry["name"], entry)
        left = [pair for pair, _ in self.running.values()] + self.waiting
        if any(build.failed for build in self.builds):
            print(f"takt: {len(left)} programs did not run", flush=True)
            return
        for build, program in left:
            build.entries.setdefault(program.name, test_programs.entry(program.name, "NOT RUN", err=self.cut))


def tell(pool, build, entry, rules):
    """A line for a program that is over, and at once what is wrong with it."""
    cases = test_report.cases_of_all([entry], build.label, build.env)
    bad = [case.name for case in cases if case.result == "fail"]
    bad += [f"{case.name}: skipped, {wrong}" for case in cases
            if case.result == "skip" and (wrong := test_report.wrong_skip(case, rules))]
    cpu = "" if entry["cpu_s"] is None else f", {entry['cpu_s']:.1f} of CPU"
    print(f"{time.monotonic() - pool.begin:6.0f} s  {build.label}{entry['name']}: {'FAILED' if bad else 'ok'} "
          f"({len(cases)} case{'s'[:len(cases) != 1]}, {entry['duration']:.1f} s{cpu}; {len(pool.running)} running, "
          f"{len(pool.waiting)} waiting)", *bad, sep="\n          ", flush=True)


def run_all(pool, rules):
    """Compiles the builds one after the other, and runs what waits."""
    todo = [build for build in pool.builds if build.programs and not build.ready]
    while (pool.waiting or pool.running) and not pool.is_cut():
        if not any([build.is_building() for build in pool.builds]) and todo and not pool.is_cut():
            todo.pop(0).start()
        pool.start_some()
        for build, _, entry in pool.turn():
            build.entries[entry["name"]] = entry
            tell(pool, build, entry, rules)


def again(pool, rules):
    """Alone. A program whose cases all pass now has passed; the others stay as they were."""
    failed = []
    for build in pool.builds:
        names = {case.program for case in build.cases() if case.result == "fail"}
        failed += [(build, program) for program in build.programs
                   if program.name in names and program.suite in AGAIN and "campaign" not in program.name]
    if len(failed) > AGAIN_MOST:
        return
    for build, program in failed:
        print(f"again, alone: {build.label}{program.name}", flush=True)
        pool.start(build, program)
        while pool.running and not pool.is_cut():
            for _, _, entry in pool.turn():
                tell(pool, build, entry, rules)
                if all(case.result != "fail" for case in test_report.cases_of(entry)):
                    build.unsteady += [case for case in build.cases() if case.program == entry["name"]
                                       and case.result == "fail"]
                    build.entries[entry["name"]] = entry
        if pool.cut:
            return


def choose(builds, costs, options):
    """What is tested in each build."""
    names = {}
    for build in builds:
        build.programs = [program for program in test_programs.programs_of(build.folder)
                          if re.search(options.only, program.name)]
        names[build.kind] = {program.name for program in build.programs}
    for build in builds:
        if build.kind == "plain" and "sanitized" in names and not options.whole:
            build.programs = [program for program in build.programs
                              if program.plain_too or program.name not in names["sanitized"]]
        if options.quick:
            small = [program for program in build.programs if not test_costs.is_dear(costs, build.kind, program.name)]
            wall_s, cpu_s = test_costs.QUICK_S
            print(f"takt: {len(build.programs) - len(small)} programs of {len(build.programs)} take longer than {wall_s} s "
                  f"or compute for longer than {cpu_s} s: ./test runs them", flush=True)
            build.programs = small


def parse():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description="build takt and run its tests, verdict last")
    parser.add_argument("--plain", help="build folder without sanitizers")
    parser.add_argument("--sanitized", help="build folder with sanitizers")
    parser.add_argument("--whole", action="store_true", help="run everything in each build")
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    parser.add_argument("--only", default="", help="regular expression; programs (SUITE / TEST) whose name it is found in")
    parser.add_argument("--within", type=float, default=60, help="minutes after which the run ends with what it has (60)")
    parser.add_argument("--built", action="store_true", help="compile nothing")
    parser.add_argument("--record", action="store_true", help="write what each program cost to the table")
    parser.add_argument("--costs", default=test_costs.PATH, help="the table (bench/results/test_costs.csv)")
    parser.add_argument("--skips", default=os.path.join(root, "tests/skips"), help="which skips are allowed (tests/skips)")
    options = parser.parse_args()
    if options.record and (options.only or options.quick):
        parser.error("--record needs a run of everything: the table would lose the rest")
    return options


def verdict(pool, rules, options):
    """Prints what became of the run; its exit status."""
    builds = pool.builds
    cases = [case for build in builds for case in build.cases()]
    unsteady = [case for build in builds for case in build.unsteady]
    test_report.print_unsteady(unsteady, sys.stdout)
    passed, failed = test_report.judge(cases, rules, sys.stdout)
    test_report.print_trials([entry for build in builds for entry in build.entries.values()], sys.stdout)
    rows = [row for build in builds for entry in build.entries.values()
            for row in test_costs.rows_of(build.kind, entry, test_report.cases_of(entry))]
    test_costs.print_table(rows, sys.stdout)
    if options.record and not pool.cut:
        test_costs.write(rows, "tools/test_run.py " + shlex.join(sys.argv[1:]), options.costs)
    if unsteady:
        print(f"{len(unsteady)} unsteady: see UNSTEADY above")
    if pool.cut:
        print(f"the run was cut short: {pool.cut}")
    if not cases:
        print("nothing ran")
        failed = 1
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or pool.cut or passed == 0 else 0


def main():
    options = parse()
    rules = test_report.read_skips(options.skips)
    folders = [(kind, getattr(options, kind)) for kind in ("plain", "sanitized") if getattr(options, kind)]
    builds = [Build(kind, folder, f"{kind} | " if len(folders) > 1 else "") for kind, folder in folders]
    costs = test_costs.read(options.costs)
    choose(builds, costs, options)
    more_env = {}
    if len(builds) > 1 and not options.whole:
        more_env["TAKT_TEST_ENV"] = f"{os.environ.get('TAKT_TEST_ENV', '')} beside-sanitized".strip()
    for build in builds:
        build.ready = options.built
    pool = Pool(builds, costs, more_env=more_env, until_s=options.within * 60)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pool.interrupt)
    try:
        run_all(pool, rules)
        if not pool.cut:
            again(pool, rules)
    finally:
        pool.end()
    print(f"time: {time.monotonic() - pool.begin:.0f} s", flush=True)
    return verdict(pool, rules, options)


if __name__ == "__main__":
    sys.exit(main())
