#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a state that lasts costs: processor time of all of takt's processes under every fault of the simulated driver.

8 simulated H100, each fault alone on a machine of its own, on GPUs that have jobs and on GPUs that have none;
beside them the same machine at rest. What happens once (a job fails, another start) is over before it is counted.
takt itself goes by the world's clock, so an hour of machine time is an hour: --seconds 3600.

Usage: fault_cost.py BUILD_FOLDER [--seconds N] [--settle N] [--only REGEX] [--record [FILE]]
Needs what the programs of tests/e2e need. Fails where a fault costs more than three times rest, or 3 % of a core.
"""
import argparse
import os
import re
import sys
import time

import idle_cost
from idle_cost import kit

GPUS = 8
# A fault, and whom it is of; None = rest. `driver-reload` is gone for longer than anybody looks.
FAULTS = [None, "lost", "hang", "slow=20", "permission", "driver-restore-refused", "xid=48", "xid=79", "ecc",
          "ecc-corrected=5", "remap-failed", "power-brake", "air=30", "overheated", "pcie-width=4", "pcie-gen=3",
          "link-down=4"]
ALL = ["lost", "hang", "overheated", "driver-reload", "driver-reload=86400"]
MOST_TIMES, MOST_PERCENT = 3, 3


def ended_children_ns(pid):
    """Of processes that it started and that have ended: looks for a driver, helpers that died."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, words[13:15])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def cpu_ns(m):
    """{process: processor time so far} of takt's own."""
    found = {}
    for pid, kind in m.processes().items():
        try:
            if kind != "job":
                found[pid] = idle_cost.cpu_ns(pid) + (ended_children_ns(pid) if kind == "takt" else 0)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def measure(gpus, fault, jobs, settle, seconds):
    """Per cent of a core, of processes that lived to the end."""
    with kit.machine(gpus=GPUS) as m:
        m.start()
        client = m.client()
        for _ in range(GPUS if jobs else 0):
            client.submit(m.load_argv("--seconds", "86400", "--quiet"), gpus=1)
        if jobs:
            kit.until(lambda: all(g.get("processes") for g in m.boards()), "they compute")
        if fault:
            m.twin("fault", gpus, fault)
        time.sleep(settle)
        before, begin = cpu_ns(m), time.monotonic()
        time.sleep(seconds)
        after, whole = cpu_ns(m), time.monotonic() - begin
        used = sum(ns - before.get(pid, 0) for pid, ns in after.items())
        return used / whole / 1e7


def cases():
    for jobs in (False, True):
        for fault in FAULTS:
            yield "3", fault, jobs
        for fault in ALL:
            yield "all", fault, jobs


def name_of(gpus, fault, jobs):
    whom = "" if not fault else " of all GPUs" if gpus == "all" else " of one GPU"
    return f"cpu, {fault or 'rest'}{whom}, GPUs {'with' if jobs else 'without'} jobs"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--settle", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--record", nargs="?", const=os.path.join(idle_cost.HERE, "results/fault_cost.csv"))
    args = parser.parse_args()
    found, rest, dear = {}, {}, []
    for gpus, fault, jobs in cases():
        if fault and not re.search(args.only, fault):
            continue
        cost = measure(gpus, fault, jobs, args.settle, args.seconds)
        name = name_of(gpus, fault, jobs)
        found[name] = (cost, "% of a core")
        if not fault:
            rest[jobs] = cost
        times = cost / rest[jobs]
        dear += [name] if times > MOST_TIMES or cost > MOST_PERCENT else []
        print(f"{name:70} {cost:6.2f} % of a core, {times:4.1f} times rest", flush=True)
    if args.record:
        idle_cost.record(args.record, found, f"fault_cost.py --seconds {args.seconds} --settle {args.settle}")
    for name in dear:
        print(f"too dear: {name}")
    return 1 if dear else 0


if __name__ == "__main__":
    sys.exit(main())
