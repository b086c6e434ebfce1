#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests and says what a person needs to know, the verdict last.

Usage: test_report.py [--skips FILE] BUILD... [-- ARGUMENTS OF meson test...]

Runs meson test in each build folder, all of them beside each other, then prints each case that failed
with the end of its log, then each skipped one with its reason, then how long each suite took, then
"N passed, N failed". A case is a TAP test point, or the whole program where it speaks no TAP. A skip
counts as failed if it has no reason or no line of FILE (tests/skips) allows it in this environment.

Programs of the suites that start processes and wait for them (AGAIN) depend on what else a shared
machine does. Up to AGAIN_MOST of them that failed are run once more, with nothing beside them; if all of
a program's cases pass then, they count, and what failed at first is printed as UNSTEADY, with its log. Campaigns never
get a second chance: one failure in a thousand is what they are there to find.
A campaign says how often it tried what in lines "# trials: NUMBER WHAT"; they become one table.
Exit status 1 if anything failed or nothing ran.

Reasons: "ok 3 - name # SKIP reason" in TAP; cmocka's skip() gives no reason, so the last line that
starts with "# " before it is taken; a program that exits with 77 says it in its last line.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

LOG_TAIL = 30
AGAIN = ("e2e", "browser", "guest", "cli", "deploy", "device", "launch", "server", "top", "twin")
AGAIN_MOST = 5
PATIENCE = "4"  # times a test's own limit, which is there for what hangs: a busy machine is not at fault
POINT = re.compile(r"^(not )?ok\b\s*\d*\s*(?:-\s*)?(.*)$")
DIRECTIVE = re.compile(r"^(.*?)\s*(?<!\\)#\s*(SKIP|TODO)\S*\s*(.*)$", re.I)
TRIALS = re.compile(r"^# trials: (\d+) (.+)$", re.M)
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*SKIP\S*\s*(.*))?$", re.I)


class Case:
    """One thing that passed, failed or was skipped."""

    def __init__(self, name, result, text=""):
        self.name = name      # "SUITE / TEST: CASE"
        self.where = ""       # "FOLDER | " when there are several
        self.program = ""     # "SUITE / TEST"
        self.env = ""         # what tests/skips may ask for
        self.result = result  # "pass", "fail" or "skip"
        self.text = text      # why it was skipped, or the log


def os_name():
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            facts = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
        return "-".join(facts.get(key, "").strip('"') for key in ("ID", "VERSION_ID")).strip("-")
    except OSError:
        return "unknown-os"


def sanitizers(build):
    """"plain", or what b_sanitize says."""
    try:
        with open(os.path.join(build, "meson-info", "intro-buildoptions.json"),
                  encoding="utf-8") as file:
            options = {option["name"]: option["value"] for option in json.load(file)}
    except OSError:
        return "plain"
    value = options.get("b_sanitize", "none")
    return "plain" if value == "none" else f"sanitize={value}"


def environment(build):
    """The words that tests/skips may ask for."""
    def word(present, name):
        return name if present else "no-" + name

    return " ".join([
        os_name(), platform.machine(),
        "root" if os.geteuid() == 0 else "user",
        word(os.path.exists("/dev/nvidiactl"), "gpu"),
        word(os.path.exists("/sys/fs/cgroup/cgroup.controllers"), "cgroup2"),
        "cgroup2-rw" if os.access("/sys/fs/cgroup", os.W_OK) else "cgroup2-ro",
        word(os.path.exists("/dev/kmsg"), "kmsg"),
        word(shutil.which("clang"), "clang"),
        word(shutil.which("clang-format"), "format-tool"),
        word(shutil.which("glpsol"), "glpsol"),
        word(shutil.which("systemctl") and os.path.exists("/run/systemd/system"), "systemd"),
        sanitizers(build),
        os.environ.get("TAKT_TEST_ENV", ""),
    ]).strip()


def split_point(rest, remark):
    """Name, whether skipped, and reason of the text behind "ok N"."""
    found = DIRECTIVE.match(rest)
    if not found or found.group(2).upper() != "SKIP":
        return (found.group(1) if found else rest) or "?", False, ""
    name, reason = found.group(1), found.group(3)
    if not name:  # cmocka: "ok 3 # SKIP name"
        return reason or "?", True, remark
    return name, True, reason or remark


def tap_cases(test, text, ended_well, log):
    """Cases of a TAP stream; None if it is none."""
    cases, planned, remark = [], None, ""
    for line in text.splitlines():
        plan, point = PLAN.match(line), POINT.match(line)
        if plan:
            planned = int(plan.group(1))
            if planned == 0:
                return [Case(test, "skip", plan.group(2) or remark)]
        elif point:
            name, skipped, reason = split_point(point.group(2), remark)
            result = "fail" if point.group(1) else "skip" if skipped else "pass"
            cases.append(Case(f"{test}: {name}", result, reason if skipped else log))
            remark = ""
        elif line.startswith("# "):
            remark = line[2:].strip()
    if planned is None and not cases:
        return None
    failed = any(case.result == "fail" for case in cases)
    if planned is not None and len(cases) != planned:
        cases.append(Case(f"{test}: {len(cases)} of {planned} cases reported", "fail", log))
    elif not ended_well and not failed:
        cases.append(Case(f"{test}: the program after its last case", "fail", log))
    return cases


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def display_name(entry):
    """meson writes "project:suite / test"; the project says nothing new."""
    name = entry["name"]
    return name.split(":", 1)[1] if re.match(r"^[\w-]+:[\w+ -]+ / ", name) else name


def cases_of(entry):
    """Cases of one line of meson's testlog.json."""
    name, result, out = display_name(entry), entry["result"], entry.get("stdout") or ""
    log = "\n".join((out + "\n" + (entry.get("stderr") or "")).strip().splitlines()[-LOG_TAIL:])
    ended_well = result in ("OK", "SKIP", "EXPECTEDFAIL")
    if result == "SKIP" and entry.get("returncode") == 77:
        return [Case(name, "skip", last_line(out) or last_line(entry.get("stderr") or ""))]
    cases = tap_cases(name, out, ended_well, f"[{result}]\n{log}")
    if cases is not None:
        return cases
    if result == "SKIP":
        return [Case(name, "skip", last_line(out))]
    return [Case(name, "pass" if ended_well else "fail", f"[{result}]\n{log}")]


def read_skips(path):
    """[(environment, test)] as compiled patterns."""
    rules = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 3 or not all(field.strip() for field in fields):
                raise SystemExit(f"{path}:{number}: want ENVIRONMENT <tab> TEST <tab> REASON")
            rules.append((re.compile(fields[0]), re.compile(fields[1])))
    return rules


def allowed(case, rules):
    return any(where.search(case.env) and which.fullmatch(case.name) for where, which in rules)


def judge(cases, rules, out):
    """Prints what has to be said; returns how many passed and failed."""
    failed = [case for case in cases if case.result == "fail"]
    skipped = [case for case in cases if case.result == "skip"]
    for case in failed:
        log = "\n".join("    " + line for line in case.text.splitlines())
        print(f"FAILED {case.where}{case.name}\n{log}", file=out)
    bad_skips, env = 0, None
    for case in skipped:
        if case.env != env:
            env = case.env
            print(f"environment: {env}", file=out)
        verdict = "" if allowed(case, rules) else " (not in tests/skips for this environment)"
        verdict = verdict if case.text else " (gives no reason)"
        bad_skips += bool(verdict)
        print(f"{'FAILED ' if verdict else ''}skipped {case.where}{case.name}: "
              f"{case.text}{verdict}", file=out)
    passed = sum(case.result == "pass" for case in cases)
    return passed, len(failed) + bad_skips


def log_path(build, base="testlog"):
    return os.path.join(build, "meson-logs", base + ".json")


def run_meson(build, arguments, prefix="", base="testlog"):
    """Exit status of meson test, whose log is fresh afterwards or absent; its lines with `prefix`."""
    log = log_path(build, base)
    if os.path.exists(log):
        os.remove(log)
    meson = os.environ.get("MESON", "meson").split()
    command = meson + ["test", "-C", build, "--timeout-multiplier", PATIENCE, "--logbase", base]
    with subprocess.Popen(command + arguments, stdout=subprocess.PIPE, text=True,
                          errors="replace") as process:
        for line in process.stdout:
            sys.stdout.write(prefix + line)
            sys.stdout.flush()
    return process.returncode


def read_entries(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return [json.loads(line) for line in file if line.strip()]


def read_log(path):
    cases = []
    for entry in read_entries(path):
        for case in cases_of(entry):
            case.program = display_name(entry)
            cases.append(case)
    return cases


def read_times(path):
    """Suite -> seconds that its programs ran, longest first."""
    times = collections.Counter()
    for entry in read_entries(path):
        times[display_name(entry).split(" / ")[0]] += entry.get("duration") or 0
    return times.most_common()


def read_trials(path):
    """What was tried in campaigns -> how often, in order of appearance."""
    trials = collections.Counter()
    for entry in read_entries(path):
        for number, what in TRIALS.findall(entry.get("stdout") or ""):
            trials[f"{display_name(entry)}: {what}"] += int(number)
    return trials


def print_trials(trials, out):
    if trials:
        print(f"fault trials: {sum(trials.values())}", file=out)
    for what, number in trials.items():
        print(f"{number:7} {what}", file=out)


def print_times(build, wall_s, times, out):
    """Several programs run at once, so the suites' times add up to more than the wall clock's."""
    suites = ", ".join(f"{suite} {seconds:.0f}" for suite, seconds in times if seconds >= 0.5)
    print(f"time {os.path.basename(os.path.abspath(build))}: {wall_s:.0f} s; by suite: {suites}",
          file=out)


class Folder:
    """One build folder, its tests and how they went."""

    def __init__(self, path, several):
        self.path = path
        self.prefix = f"{os.path.basename(os.path.normpath(path))} | " if several else ""
        self.cases, self.unsteady, self.wall_s = [], [], 0.0

    def run(self, arguments):
        """Its cases; what went wrong outside of them is a case of its own."""
        began = time.monotonic()
        status = run_meson(self.path, arguments, self.prefix)
        self.wall_s = time.monotonic() - began
        self.cases = read_log(log_path(self.path))
        if not self.cases:
            self.cases = [Case("no test ran", "fail", f"meson test -C {self.path} ended with {status}")]
        elif status and all(case.result != "fail" for case in self.cases):
            self.cases.append(Case("meson test", "fail", f"ended with {status} although no case failed"))
        self.label(self.cases)

    def label(self, cases):
        env = environment(self.path)
        for case in cases:
            case.where, case.env = self.prefix, env

    def to_try_again(self):
        """Names of programs, as meson test takes them."""
        failed = {case.program: None for case in self.cases if case.result == "fail"}
        suites = [program.split(" / ")[0].split("+")[0] for program in failed]
        if len(failed) > AGAIN_MOST:
            return []
        return [program.split(" / ")[1] for program, suite in zip(failed, suites)
                if suite in AGAIN and "campaign" not in program]

    def try_again(self):
        """Alone. A program whose cases all pass now has passed; the others stay as they were."""
        names = self.to_try_again()
        if not names:
            return
        run_meson(self.path, ["--no-rebuild", "--num-processes", "1", *names],
                  "again | " + self.prefix, "again")
        again = read_log(log_path(self.path, "again"))
        self.label(again)
        bad = {case.program for case in again if case.result == "fail"}
        good = {case.program for case in again} - bad
        self.unsteady = [case for case in self.cases
                         if case.program in good and case.result == "fail"]
        self.cases = [case for case in self.cases if case.program not in good]
        self.cases += [case for case in again if case.program in good]


def print_unsteady(folders, out):
    for case in (case for folder in folders for case in folder.unsteady):
        log = "\n".join("    " + line for line in case.text.splitlines())
        print(f"UNSTEADY {case.where}{case.name} (failed at first, passed when run again alone)\n{log}",
              file=out)


def run_all(folders, arguments):
    """Beside each other: each has long stretches in which it waits for its own processes."""
    with concurrent.futures.ThreadPoolExecutor(len(folders)) as pool:
        list(pool.map(lambda folder: folder.run(arguments), folders))
    for folder in folders:
        folder.try_again()


def main():
    parser = argparse.ArgumentParser(description="run the tests, verdict last")
    parser.add_argument("--skips", default=os.path.join(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))), "tests", "skips"))
    parser.add_argument("builds", nargs="+", metavar="BUILD", help="build folder")
    ours, arguments = sys.argv[1:], []
    if "--" in ours:
        split = ours.index("--")
        ours, arguments = ours[:split], ours[split + 1:]
    options = parser.parse_args(ours)
    rules = read_skips(options.skips)
    folders = [Folder(build, len(options.builds) > 1) for build in options.builds]
    run_all(folders, arguments)
    sys.stdout.flush()
    print_unsteady(folders, sys.stdout)
    cases = [case for folder in folders for case in folder.cases]
    passed, failed = judge(cases, rules, sys.stdout)
    print_trials(sum((read_trials(log_path(f.path)) for f in folders), collections.Counter()),
                 sys.stdout)
    for folder in folders:
        print_times(folder.path, folder.wall_s, read_times(log_path(folder.path)), sys.stdout)
    unsteady = sum(len(folder.unsteady) for folder in folders)
    if unsteady:
        print(f"{unsteady} unsteady: see UNSTEADY above")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
