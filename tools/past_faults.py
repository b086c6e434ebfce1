#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings back faults that takt once had, one at a time, and asks the tests to catch each.

Usage: past_faults.py [NAME ...] [--list | --check | --record]

tests/faults/NAME.patch undoes the mend of a fault in today's source. Its first lines say what breaks, which commit mended
it ("Mended-by: COMMIT") and which programs catch it ("Caught-by: SUITE / TEST", a line each). In a copy of the tree,
with a build folder of its own (gcc, nothing optimised), those programs have to pass; then with each patch to fail.

--check only asks whether each patch still fits the source: a change beside an old mend has to take the patch along.
"""
import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import test_costs
import test_programs
import test_report
import test_run
import test_steady

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATH = os.path.join(os.path.dirname(test_costs.PATH), "past_faults.csv")
HEADER = re.compile(r"^(Mended-by|Caught-by): (.+)$", re.M)
LEFT_OUT = shutil.ignore_patterns(".git", "build", "build-*", "node_modules", "__pycache__")


class Fault:
    """A patch: what it breaks, who mended that, who catches it."""

    def __init__(self, path):
        self.name, self.path = os.path.basename(path).removesuffix(".patch"), path
        with open(path, encoding="utf-8") as file:
            head = file.read().split("\n--- ", 1)[0]
        self.says = " ".join(HEADER.sub("", head).split())
        self.mended_by = [value for key, value in HEADER.findall(head) if key == "Mended-by"]
        self.caught_by = [value for key, value in HEADER.findall(head) if key == "Caught-by"]


def faults_of(root, names=()):
    faults = [Fault(path) for path in sorted(glob.glob(os.path.join(root, "tests/faults/*.patch")))]
    unknown = set(names) - {fault.name for fault in faults}
    if unknown:
        raise SystemExit(f"no such fault: {', '.join(sorted(unknown))}; --list names all")
    return [fault for fault in faults if not names or fault.name in names]


def patch(root, fault, *options):
    """None, or why the patch does not fit. The folder above is no repository of the tree's, so git looks for none."""
    command = ["git", "apply", *options, fault.path]
    if not shutil.which("git"):
        command = ["patch", "-p1", "-s", "-F0", "-i", fault.path, *(["--dry-run"] if "--check" in options else []),
                   *(["-R"] if "-R" in options else [])]
    env = {**os.environ, "GIT_DIR": os.path.join(root, ".no-repository")}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
    return (done.stderr or done.stdout).strip() or "it does not apply" if done.returncode else None


def check_patches(root):
    """What is wrong with the patches, a text each."""
    problems = []
    for fault in faults_of(root):
        for value, line in ((fault.says, "a sentence that says what breaks"), (fault.mended_by, "Mended-by: COMMIT"),
                            (fault.caught_by, "Caught-by: SUITE / TEST")):
            if not value:
                problems.append(f"{fault.name}: its first lines lack {line}")
        why = patch(root, fault, "--check")
        if why:
            problems.append(f"{fault.name}: does not fit the source any more: {why}")
    return problems


class Bench:
    """A copy of the tree and its build, in which programs run."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "takt")
        shutil.copytree(ROOT, self.root, ignore=LEFT_OUT, symlinks=True)
        env = {**os.environ, "CC": "gcc"}
        subprocess.run(["meson", "setup", "build", "-Doptimization=0", "-Dwerror=false"], cwd=self.root, env=env,
                       stdout=subprocess.DEVNULL, check=True)
        self.build = test_run.Build("plain", os.path.join(self.root, "build"), "")
        self.known = {program.name: program for program in test_programs.programs_of(self.build.folder)}
        with open(os.path.join(self.build.folder, "meson-info/intro-targets.json"), encoding="utf-8") as file:
            self.files = {target["id"]: target["filename"] for target in json.load(file)}

    def make(self, programs):
        """Whether they and what they need could be compiled. One of C says all that it needs; a script may start anything."""
        folder, targets = self.build.folder, set()
        for program in programs:
            is_script = not program.command[0].startswith(folder)
            targets |= (set(test_programs.targets_of(folder, [program])) if is_script else
                        {os.path.relpath(name, folder) for need in program.needs for name in self.files[need]})
        done = subprocess.run(["ninja", "-C", folder, *sorted(targets)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            print(done.stdout[-2000:], flush=True)
        return done.returncode == 0

    def run(self, programs):
        """{name: its cases} of programs that run side by side as in ./test."""
        self.build.programs, self.build.ready, cases = programs, True, {}
        pool = test_run.Pool([self.build], test_costs.read(test_costs.PATH))
        try:
            while pool.waiting or pool.running:
                pool.start_some()
                for _, program, entry in pool.turn():
                    cases[program.name] = test_report.cases_of(entry)
        finally:
            pool.end()
        return cases

    @contextlib.contextmanager
    def broken(self, fault):
        """The source with the fault in it."""
        why = patch(self.root, fault)
        if why:
            raise SystemExit(f"{fault.name}: {why}")
        try:
            yield
        finally:
            patch(self.root, fault, "-R")


def first_failed(cases):
    """Its name; None where all passed."""
    return next((case.name.split(": ", 1)[-1] for case in cases if case.result == "fail"), None)


def catch(bench, fault):
    """{program: the case that fails with the fault, or None} of those that are named; says so."""
    programs = [bench.known[name] for name in fault.caught_by]
    with bench.broken(fault):
        if not bench.make(programs):
            print(f"NOT CAUGHT  {fault.name}: does not compile", flush=True)
            return dict.fromkeys(fault.caught_by)
        failed = {name: first_failed(cases) for name, cases in bench.run(programs).items()}
    for name in fault.caught_by:
        print(f"caught  {fault.name}  by {name}: {failed[name]}" if failed[name] else f"NOT CAUGHT  {fault.name}  by {name}",
              flush=True)
    return failed


def sound(bench, faults):
    """The faults whose programs pass without them; says which do not."""
    names = sorted({name for fault in faults for name in fault.caught_by})
    unknown = [name for name in names if name not in bench.known]
    if unknown:
        raise SystemExit(f"meson knows no test {', '.join(unknown)}")
    programs = [bench.known[name] for name in names]
    if not bench.make(programs):
        raise SystemExit("takt does not compile")
    cases = bench.run(programs)
    failed = {name: first_failed(cases[name]) for name in names}
    for name in filter(failed.get, names):
        log = next(case.text for case in cases[name] if case.result == "fail")
        print(f"FAILED  {name}: {failed[name]}, without any fault\n{log}", flush=True)
    return [fault for fault in faults if not any(failed[name] for name in fault.caught_by)]


def main():
    parser = argparse.ArgumentParser(description="bring back faults that takt once had: the tests have to catch each")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of faults; all without")
    parser.add_argument("--list", action="store_true", help="name the faults and what they break")
    parser.add_argument("--record", action="store_true", help="write bench/results/past_faults.csv")
    parser.add_argument("--check", action="store_true", help="ask only whether the patches fit the source")
    options = parser.parse_args()
    faults = faults_of(ROOT, options.names)
    if options.list:
        for fault in faults:
            print(f"{fault.name:28} {fault.says} ({', '.join(fault.caught_by)})")
        return 0
    if options.check:
        problems = check_patches(ROOT)
        print("\n".join(problems + [f"{len(faults)} patches, {len(problems)} problems"]))
        return 1 if problems else 0
    with tempfile.TemporaryDirectory(prefix="takt-faults-") as folder:
        os.chmod(folder, 0o755)  # tests run programs as other users
        bench = Bench(folder)
        caught = {fault.name: catch(bench, fault) for fault in sound(bench, faults)}
    passed = sum(all(by.values()) for by in caught.values())
    if options.record:
        rows = [("faults brought back", len(faults), "faults"), ("of them caught", passed, "faults")]
        rows += [(f"{name}, caught by {program}: {case}", 1, "faults") for name, by in caught.items() for program, case in by.items()
                 if case]
        test_steady.record(rows, "tools/past_faults.py --record", PATH)
    print(f"{passed} passed, {len(faults) - passed} failed", flush=True)
    return 1 if passed < len(faults) or not faults else 0


if __name__ == "__main__":
    sys.exit(main())
