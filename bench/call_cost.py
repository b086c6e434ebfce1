#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call of the simulated driver costs, and how that compares with other NVML libraries.

Nanoseconds of processor time a call (call_cost.c), on an idle hgx-h100 and on one whose 8 GPUs are
busy. Each --library is measured too, and its ratio to the simulated driver printed: a mock's
libnvidia-ml.so.1, say, or another branch of ours. Nothing but a simulated machine is ever set: of
other libraries only readings are measured.

Usage: call_cost.py BUILD_FOLDER [--branch 535|550|13x] [--library PATH]... [--record [FILE]]
Needs `ninja -C BUILD_FOLDER` and `ninja -C BUILD_FOLDER bench/call_cost`.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ["date", "commit", "command", "machine", "simulated", "metric", "value", "unit"]
MOCK = "NVIDIA/k8s-test-infra mocknvml"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--branch", default="550")
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("--record", nargs="?", metavar="FILE",
                        const=os.path.join(HERE, "results/twin_calls.csv"))
    return parser.parse_args()


def machine_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return f"{len(models)} x {models[0] if models else platform.machine()}, Linux {platform.release()}"


class Bench:
    def __init__(self, build, folder):
        self.build, self.folder, self.children = os.path.abspath(build), folder, []
        self.twin = os.path.join(self.build, "twin/takt-twin")
        self.program = os.path.join(self.build, "bench/call_cost")

    def library(self, branch):
        return os.path.join(self.build, "twin/lib", branch, "libnvidia-ml.so.1")

    def branch_of(self, library):
        """Of ours, None for others."""
        folder, parent = os.path.split(os.path.dirname(os.path.realpath(library)))
        return parent if folder == os.path.realpath(os.path.join(self.build, "twin/lib")) else None

    def create(self, branch):
        path = os.path.join(self.folder, branch + ".twin")
        subprocess.run([self.twin, "create", "hgx-h100", "--driver", branch, "--path", path,
                        "--replace"], check=True, stdout=subprocess.DEVNULL)
        return path

    def load(self, path):
        child = subprocess.Popen([self.twin, "load", "--profile", "gpt-train", "--gpus",
                                  "0,1,2,3,4,5,6,7", "--quiet"], env=dict(os.environ, TAKT_TWIN=path),
                                 stdout=subprocess.PIPE)
        self.children.append(child)
        subprocess.run(["sleep", "1"], check=True)

    def measure(self, library, busy=False):
        """{call: {...}} of one library, on a machine of its own if it is one of ours."""
        branch, options, env = self.branch_of(library), [], dict(os.environ)
        if branch:
            env["TAKT_TWIN"] = self.create(branch)
            options = ["--set"]
            if busy:
                self.load(env["TAKT_TWIN"])
        done = subprocess.run([self.program, *options, library], env=env, capture_output=True,
                              text=True, check=False)
        self.end_loads()
        if done.returncode != 0:
            raise SystemExit(done.stderr.strip())
        return {row["call"]: row for row in map(json.loads, done.stdout.splitlines())}

    def end_loads(self):
        for child in self.children:
            child.kill()
            child.wait()
        self.children = []


def show(title, rows, base):
    print(f"\n{title}")
    for call, row in rows.items():
        ratio = f"{row['ns'] / base[call]['ns']:8.2f} x" if base and call in base else ""
        code = f"  answers {row['code']}" if row["code"] else ""
        print(f"  {call:42} {row['ns']:10.1f} ns{ratio}{code}")


def record(path, command, found):
    commit = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], check=False,
                            capture_output=True, text=True).stdout.strip()
    start = [datetime.date.today().isoformat(), commit, command, machine_name(), "true"]
    new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        if new:
            out.writerow(COLUMNS)
        for where, rows in found.items():
            for call, row in rows.items():
                out.writerow(start + [f"{call}, {where}", row["ns"], "ns"])
        out.writerow(start + [f"ratio to {MOCK}", "not built here", ""])


def main():
    args = parse()
    with tempfile.TemporaryDirectory(prefix="takt-call-cost.") as folder:
        bench = Bench(args.build, folder)
        ours = bench.library(args.branch)
        found = {"8 idle GPUs": bench.measure(ours), "8 busy GPUs": bench.measure(ours, busy=True)}
        base = found["8 idle GPUs"]
        for where, rows in found.items():
            show(f"simulated driver {args.branch}, {where}", rows, None)
        for library in args.library:
            show(f"{library}, and its ratio to the simulated driver on 8 idle GPUs",
                 bench.measure(library), base)
    if args.record:
        record(args.record, "call_cost.py --branch " + args.branch, found)


sys.exit(main())
