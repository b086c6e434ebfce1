#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt beside gflow and task-spooler on one machine with one GPU: the same jobs through each one's command line.

Each is asked to run jobs of 10 ms one after the other; the jobs write down when they ran, so that the gap
from the end of one to the start of the next is the jobs' own account. Then jobs wait behind one that does
not end: time of a submission and of a list, each a process of its own as a user types it, and memory of
whatever the tool keeps running. takt and gflow see the same simulated GPU; task-spooler of Debian knows
none and has one slot. What is not installed is left out, and said.

Usage: compare_queues.py BUILD_FOLDER [--gflow BIN_FOLDER] [--jobs N] [--waiting N] [--record [FILE]]
gflow: `pip install runqd` in a virtual environment, whose bin folder is named here. Debian: task-spooler.
"""
import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests/e2e"))
import kit  # noqa: E402
from queue_scale import percentile, record, timed  # noqa: E402

JOB_MS = 10
LISTS = 20


def run(words, env, **more):
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=kit.WAIT_S, **more)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def rss_kib(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, StopIteration):
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    return total


class Tool:
    """A queue that was started in a folder of its own. A job is `argv`; all go to the one GPU or slot."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder}
        self.number = 0

    def witness(self, ms):
        """Named by our own number: not every tool tells a job which one it is."""
        self.number += 1
        return ["env", f"TAKT_JOB_ID={self.number}", f"TAKT_ATTEMPT={self.number}", "CUDA_VISIBLE_DEVICES=0",
                kit.WITNESS, self.folder, str(ms)]

    def ends(self):
        try:
            with open(os.path.join(self.folder, "witness.log"), encoding="ascii") as file:
                return kit.Witness(file.read().splitlines()).ends
        except FileNotFoundError:
            return []


class TaskSpooler(Tool):
    name = "task-spooler"

    def __init__(self, folder):
        super().__init__(folder)
        self.env.update(TS_SOCKET=os.path.join(folder, "ts.sock"), TS_SLOTS="1")

    def version(self):
        return run(["tsp", "-V"], self.env).split(" - ")[0]

    def submit(self, argv):
        run(["tsp", *argv], self.env)

    def list(self):
        run(["tsp", "-l"], self.env)


class Gflow(Tool):
    name = "gflow"
    executor = "tmux"

    def __init__(self, folder):
        super().__init__(folder)
        self.env.update(PATH=f"{BIN}:{os.environ['PATH']}", TMUX_TMPDIR=folder, TERM="xterm", SHELL="/bin/bash", USER="root",
                        TAKT_TWIN=os.path.join(folder, "machine"))
        with open(os.path.join(folder, ".bash_profile"), "w", encoding="ascii") as file:
            file.write(f"export PATH={BIN}:$PATH\n")  # tmux starts login shells; a job's end calls gflow
        os.makedirs(os.path.join(folder, ".config/gflow"))
        with open(os.path.join(folder, ".config/gflow/gflow.toml"), "w", encoding="ascii") as file:
            file.write(f'[daemon]\nhost = "localhost"\nport = 59345\ngpu_poll_interval_secs = 1\n[executor]\ntype = "{self.executor}"\n')
        run([kit.TWIN, "create", "hgx-h100", "--gpus", "1", "--path", self.env["TAKT_TWIN"]], self.env)
        run([kit.TWIN, "exec", "--machine", self.env["TAKT_TWIN"], "--", "gflowd", "up"], self.env)
        kit.until(lambda: subprocess.run(["ginfo"], env=self.env, capture_output=True,
                                         check=False).returncode == 0, kit.WAIT_S, "gflowd answers")

    def version(self):
        return run(["gflowd", "--version"], self.env).split(" (")[0] + f", executor {self.executor}"

    def submit(self, argv):
        run(["gbatch", "--gpus", "1", *argv], self.env, cwd=self.folder)

    def list(self):
        run(["gqueue"], self.env)


class GflowProcess(Gflow):
    name = "gflow (process)"
    executor = "process"


class Takt(Tool):
    name = "takt"

    def __init__(self, folder):
        super().__init__(folder)
        machine = os.path.join(folder, "machine")
        self.env.update(TAKT_TWIN=machine, TAKT_SOCKET=os.path.join(folder, "run/takt.sock"))
        self.takt = os.path.join(kit.BUILD, "src/daemon/takt")
        run([kit.TWIN, "create", "hgx-h100", "--gpus", "1", "--path", machine], self.env)
        self.serve = subprocess.Popen(
            [kit.TWIN, "exec", "--machine", machine, "--", self.takt, "serve", "--nvml-path", kit.TWIN_LIB,
             "--runtime-dir", os.path.join(folder, "run"), "--state-dir", os.path.join(folder, "state"), "--lock-dir",
             os.path.join(folder, "locks"), "--metrics-listen", "off"], env=self.env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        kit.until(lambda: subprocess.run([self.takt, "status"], env=self.env, capture_output=True,
                                         check=False).returncode == 0, kit.WAIT_S, "takt answers")

    def version(self):
        return run([self.takt, "--version"], self.env).split("\n")[0]

    def submit(self, argv):
        run([self.takt, "submit", "-n", "1", "--", *argv], self.env)

    def list(self):
        run([self.takt, "queue"], self.env)


def measure_tool(tool, jobs, waiting):
    print(f"{tool.name}: {tool.version()}")
    found = {}
    begin = time.monotonic()
    for _ in range(jobs):
        tool.submit(tool.witness(JOB_MS))
    kit.until(lambda: len(tool.ends()) == jobs, 300, lambda: f"{tool.name}: {len(tool.ends())} of {jobs} ran")
    found[f"{tool.name}: {jobs} jobs of {JOB_MS} ms, all handed in and done"] = (time.monotonic() - begin, "s")
    ends = sorted(tool.ends(), key=lambda end: end.begin_ns)
    gaps = [(after.begin_ns - before.end_ns) / 1e6 for before, after in zip(ends, ends[1:])]
    found[f"{tool.name}: gap between two jobs, median"] = (statistics.median(gaps), "ms")
    found[f"{tool.name}: gap between two jobs, p99"] = (percentile(gaps, 0.99), "ms")
    time.sleep(1)
    few = rss_kib(kit.processes_with(tool.folder))
    tool.submit(tool.witness(10_000_000))
    took = timed(waiting, lambda: tool.submit(tool.witness(JOB_MS)))
    found[f"{tool.name}: submit while jobs wait, median"] = (statistics.median(took) * 1e3, "ms")
    found[f"{tool.name}: submit while jobs wait, p99"] = (percentile(took, 0.99) * 1e3, "ms")
    took = timed(LISTS, tool.list)
    found[f"{tool.name}: list of {waiting} waiting jobs, median"] = (statistics.median(took) * 1e3, "ms")
    found[f"{tool.name}: memory (Rss) of its processes, idle"] = (few, "KiB")
    found[f"{tool.name}: memory (Rss) of its processes, {waiting} jobs wait"] = \
        (rss_kib(kit.processes_with(tool.folder)), "KiB")
    return found


def measure(kind, jobs, waiting):
    folder = tempfile.mkdtemp(prefix="cq-")
    try:
        return measure_tool(kind(folder), jobs, waiting)
    finally:
        kit.kill_all_with(folder)
        shutil.rmtree(folder, ignore_errors=True)


def main():
    global BIN
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--gflow", default="")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=500)
    parser.add_argument("--record", nargs="?", const=os.path.join(HERE, "results/compare_queues.csv"))
    args = parser.parse_args()
    BIN = os.path.abspath(args.gflow) if args.gflow else os.path.dirname(shutil.which("gflowd") or "")
    found = {"load average before": (os.getloadavg()[0], "")}
    for kind, needs in ((Takt, True), (TaskSpooler, shutil.which("tsp")), (Gflow, BIN), (GflowProcess, BIN)):
        if needs:
            found.update(measure(kind, args.jobs, args.waiting))
        else:
            print(f"{kind.name} is not installed: left out")
    for name, (value, unit) in found.items():
        print(f"{name:70} {value:10.2f} {unit}")
    if args.record:
        record(args.record, found, f"compare_queues.py --jobs {args.jobs} --waiting {args.waiting}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
