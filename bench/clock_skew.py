#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far apart the clocks of one governed job's eight GPUs are once it has settled, on simulated GPUs.

A training job of eight GPUs that promises a slowdown; once its governor holds a setting, the boards are read over and
over, all eight in one reading: what each is locked to, and at which SM clock it runs. A look counts where the governor
held the same setting before and after it. Counts and clocks, no times: a busy machine is fine.

Usage: clock_skew.py BUILD_FOLDER [--looks N] [--jobs N] [--record]
"""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests/e2e"))
sys.path.insert(0, HERE)
import idle_cost  # noqa: E402
import kit  # noqa: E402

GPUS = 8
SETTLED_S = 600
RESULTS = os.path.join(os.path.dirname(HERE), "bench/results/clock_skew.csv")
# Computes as the boards see it, and says how far it is as a training loop would.
TRAIN = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from takt_progress import Progress
progress = Progress()
load = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True, bufsize=1)
for line in load.stdout:
    if line.startswith("step "):
        progress.add(steps=1)
"""


def holds(client, job):
    """What the governor holds, read back on every GPU; None while it does not."""
    view = client.job(job).get("governed", {})
    return view if view.get("state") == "holds" and view.get("reason") == "hold" else None


def apart(values):
    return max(values) - min(values)


def look(m, client, job):
    """(MHz that the locks are apart, MHz that the clocks are apart, highest MHz of the setting), or None."""
    before, boards, after = holds(client, job), m.boards(), holds(client, job)
    if not before or not after or (before["epochs"], before["max_mhz"]) != (after["epochs"], after["max_mhz"]):
        return None
    tops = [board["lock_max_mhz"] if board["locked"] else 0 for board in boards]
    return apart(tops), apart([board["sm_mhz"] for board in boards]), before["max_mhz"]


def watch(looks):
    """The looks at one job, and the spread that its report tells over its whole run."""
    with kit.machine(gpus=GPUS) as m:
        m.more_flags = ("--clock-epoch", "500ms")
        m.start()
        client, found = m.client(), []
        argv = [sys.executable, "-c", TRAIN, os.path.join(kit.SOURCE, "examples"),
                *m.load_argv("--profile", "stream", "--step-time-ms", 50)]
        job = client.submit(argv, gpus=GPUS, max_slowdown_permille=50)["id"]
        kit.until(lambda: holds(client, job), SETTLED_S, lambda: client.job(job))
        while len(found) < looks:
            seen = look(m, client, job)
            found += [seen] if seen else []
        client.cancel(job)
        return found, client.wait(job)["report"].get("sm_spread_mhz")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--looks", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    runs = [watch(args.looks) for _ in range(args.jobs)]
    looks = [seen for run, _ in runs for seen in run]
    found = {"jobs of 8 GPUs": (len(runs), ""),
             "looks after settling": (len(looks), ""),
             "of them below the highest clock": (sum(top < 1980 for *_, top in looks), ""),
             "locks of a job's GPUs apart, at most": (max(seen[0] for seen in looks), "MHz"),
             "SM clocks of a job's GPUs apart, at most": (max(seen[1] for seen in looks), "MHz"),
             "looks with locks apart": (sum(seen[0] > 0 for seen in looks), ""),
             "looks with SM clocks apart": (sum(seen[1] > 0 for seen in looks), ""),
             "mean SM clocks apart over the whole run, at most": (max(spread for _, spread in runs), "MHz")}
    for metric, (value, unit) in found.items():
        print(f"{metric:50} {value:>8.4g} {unit}")
    if args.record:
        idle_cost.record(RESULTS, found, f"clock_skew.py --looks {args.looks} --jobs {args.jobs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
