# SPDX-License-Identifier: Apache-2.0
"""What became of the tests: cases out of what programs print, which skips are allowed, and the verdict.

A case is a TAP test point, or the whole program where it speaks no TAP. A program that should and does not has failed:
it quietly tested nothing. A skip counts as failed if it has no reason or no line of tests/skips allows it in this
environment. A campaign says how often it tried what in lines "# trials: NUMBER WHAT"; they become one table.

The log of a failed case is what the program printed after its point, up to the next one, then the end of all that it
printed.

Reasons: "ok 3 - name # SKIP reason" in TAP; cmocka's skip() gives no reason, so the last line that starts with "# "
before it is taken; a program that exits with 77 says it in its last line.
"""
import collections
import json
import os
import platform
import re
import shutil

LOG_TAIL = 30
BEFORE = 20
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
    """Cases of a TAP stream; None if it is none. `log` makes one of the lines that belong to a case: our Python programs
    say what failed before the case's line, cmocka behind it."""
    cases, planned, remark, told, before = [], None, "", [], []
    for line in text.splitlines():
        plan, point = PLAN.match(line), POINT.match(line)
        if plan:
            planned = int(plan.group(1))
            if planned == 0:
                return [Case(test, "skip", plan.group(2) or remark)]
        elif point:
            name, skipped, reason = split_point(point.group(2), remark)
            result = "fail" if point.group(1) else "skip" if skipped else "pass"
            cases.append(Case(f"{test}: {name}", result, reason if skipped else ""))
            told.append(before[-BEFORE:])
            before, remark = [], ""
        else:
            before.append(line)
            if told:
                told[-1].append(line)
            if line.startswith("# "):
                remark = line[2:].strip()
    if planned is None and not cases:
        return None
    failed = [case for case in cases if case.result == "fail"]
    for case, lines in zip(cases, told):
        case.text = log(lines) if case in failed else case.text
    if planned is not None and len(cases) != planned:
        cases.append(Case(f"{test}: {len(cases)} of {planned} cases reported", "fail", log([])))
    elif not ended_well and not failed:
        cases.append(Case(f"{test}: the program after its last case", "fail", log([])))
    return cases


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def cases_of(entry):
    """Cases of one program's run (test_programs.py)."""
    name, result, out = entry["name"], entry["result"], entry["stdout"]
    end = (out + "\n" + entry["stderr"]).strip().splitlines()[-LOG_TAIL:]

    def log(lines):
        own = [] if set(lines) <= set(end) else [*lines[:LOG_TAIL], "..."]
        return "\n".join([f"[{result}]", *own, *end])

    if result == "SKIP":
        return [Case(name, "skip", last_line(out) or last_line(entry["stderr"]))]
    cases = tap_cases(name, out, result == "OK", log)
    if cases is not None:
        return cases
    if entry["tap"] and result == "OK":
        return [Case(f"{name}: no case reported", "fail", log([]))]
    return [Case(name, "pass" if result == "OK" else "fail", log([]))]


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


def wrong_skip(case, rules):
    """What is wrong with it, "" when nothing is."""
    if not case.text:
        return "gives no reason"
    return "" if allowed(case, rules) else "not in tests/skips for this environment"


def print_log(what, case, remark, out):
    print(f"{what} {case.where}{case.name}{remark}", *case.text.splitlines(), sep="\n    ", file=out)


def judge(cases, rules, out):
    """Prints what has to be said; returns how many passed and failed."""
    failed = [case for case in cases if case.result == "fail"]
    skipped = [case for case in cases if case.result == "skip"]
    for case in failed:
        print_log("FAILED", case, "", out)
    bad_skips, env = 0, None
    for case in skipped:
        if case.env != env:
            env = case.env
            print(f"environment: {env}", file=out)
        wrong = wrong_skip(case, rules)
        bad_skips += bool(wrong)
        print(f"{'FAILED ' if wrong else ''}skipped {case.where}{case.name}: {case.text}{f' ({wrong})' if wrong else ''}", file=out)
    passed = sum(case.result == "pass" for case in cases)
    return passed, len(failed) + bad_skips


def cases_of_all(entries, label, env):
    """The cases of all entries of a build; `label` names it where there are several."""
    found = []
    for entry in entries:
        for case in cases_of(entry):
            case.program, case.where, case.env = entry["name"], label, env
            found.append(case)
    return found


def print_trials(entries, out):
    """What was tried in campaigns, and how often, in order of appearance."""
    trials = collections.Counter()
    for entry in entries:
        for number, what in TRIALS.findall(entry["stdout"]):
            trials[f"{entry['name']}: {what}"] += int(number)
    if trials:
        print(f"fault trials: {sum(trials.values())}", file=out)
    for what, number in trials.items():
        print(f"{number:7} {what}", file=out)


def print_unsteady(cases, out):
    for case in cases:
        print_log("UNSTEADY", case, " (failed at first, passed when run again alone)", out)
