#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a state that lasts costs: processor time of all of takt's processes under every fault of the simulated driver,
and under what else may go wrong for long: a full disk, a hook that fails, a peer that is silent, a helper that cannot
start.

8 simulated H100, each fault alone on a machine of its own, on GPUs that have jobs and on GPUs that have none;
beside them the same machine at rest. What happens once (a job fails, another start) is over before it is counted.
takt's own timers go by the world's clock, so an hour of machine time is an hour: --seconds 3600. `takt-twin time
--speed` is no way around that: it hastens the boards, and takt asks no more often for it.

Usage: fault_cost.py BUILD_FOLDER [--seconds N] [--settle N] [--at-once N] [--only REGEX] [--record [FILE]]
Needs what the programs of tests/e2e need, and the right to mount for the full disk. Fails where a fault costs more
than three times rest, or 3 % of a core.
"""
import argparse
import concurrent.futures
import os
import re
import sys
import time

import idle_cost
from idle_cost import kit

import lasting  # of tests/e2e, as kit

GPUS = 8
# A fault of GPU 3. `driver-reload` is gone for longer than anybody looks.
FAULTS = ["lost", "hang", "slow=20", "permission", "driver-restore-refused", "xid=48", "xid=79", "ecc",
          "ecc-corrected=5", "remap-failed", "power-brake", "air=30", "overheated", "pcie-width=4", "pcie-gen=3",
          "link-down=4"]
ALL = ["lost", "hang", "overheated", "driver-reload", "driver-reload=86400"]
MOST_TIMES, MOST_PERCENT = 3, 3


class Fault(lasting.Trouble):
    def __init__(self, m, gpus, fault):
        super().__init__(m)
        self.words = "fault", gpus, fault

    def strike(self, client):
        self.m.twin(*self.words)


# [(what is the matter, its class, what that takes)]; the first is rest, which the others are held against.
CASES = [("rest", lasting.Trouble),
         *((f"{fault} of one GPU", Fault, "3", fault) for fault in FAULTS),
         *((f"{fault} of all GPUs", Fault, "all", fault) for fault in ALL),
         ("full disk", lasting.FullDisk),
         ("hooks that fail, and a lost GPU to tell of", lasting.FailingHook),
         ("silent peer", lasting.SilentPeer),
         *((f"{helper} cannot start", lasting.DeadHelper, helper) for helper in ("takt-launch", "takt-actuate", "takt-guard")),
         *((f"{helper} is not there", lasting.DeadHelper, helper, True) for helper in ("takt-launch", "takt-actuate"))]


def ended_children_ns(pid):
    """Of processes that it started and that have ended: looks for a driver, hooks, helpers that died."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, words[13:15])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def cpu_ns(m):
    """{process: processor time so far} of takt's own."""
    found = {}
    for pid, kind in m.processes().items():
        try:
            if kind != "job":
                found[pid] = idle_cost.cpu_ns(pid) + (ended_children_ns(pid) if kind in ("takt", "takt-actuate") else 0)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def count(m, settle, seconds):
    """Per cent of a core, of processes that lived to the end."""
    time.sleep(settle)
    before, begin = cpu_ns(m), time.monotonic()
    time.sleep(seconds)
    after, whole = cpu_ns(m), time.monotonic() - begin
    used = sum(ns - before.get(pid, 0) for pid, ns in after.items())
    return used / whole / 1e7


def measure(kind, words, jobs, settle, seconds):
    with kit.machine(gpus=GPUS) as m:
        trouble = kind(m, *words)
        with trouble.world():
            m.start(*trouble.flags())
            client = m.client()
            for _ in range(GPUS if jobs else 0):
                client.submit(m.load_argv("--seconds", "86400", "--quiet"), gpus=1)
            if jobs:
                kit.until(lambda: all(g.get("processes") for g in m.boards()), "they compute")
            trouble.strike(client)
            return count(m, settle, seconds)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--settle", type=int, default=15)
    parser.add_argument("--at-once", type=int, default=1, help="machines side by side: what each takes is counted by itself")
    parser.add_argument("--only", default="")
    parser.add_argument("--record", nargs="?", const=os.path.join(idle_cost.HERE, "results/fault_cost.csv"))
    args = parser.parse_args()
    cases = [(jobs, *case) for jobs in (False, True) for case in CASES if case is CASES[0] or re.search(args.only, case[0])]
    found, rest, dear = {}, {}, []
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        costs = pool.map(lambda case: measure(case[2], case[3:], case[0], args.settle, args.seconds), cases)
        for (jobs, what, *_), cost in zip(cases, costs):
            rest.setdefault(jobs, cost)
            name = f"cpu, {what}, GPUs {'with' if jobs else 'without'} jobs"
            found[name] = (cost, "% of a core")
            dear += [name] if cost > MOST_TIMES * rest[jobs] or cost > MOST_PERCENT else []
            print(f"{name:75} {cost:6.2f} % of a core, {cost / rest[jobs]:4.1f} times rest", flush=True)
    if args.record:
        idle_cost.record(args.record, found, f"fault_cost.py --seconds {args.seconds} --settle {args.settle} --at-once {args.at_once}")
    for name in dear:
        print(f"too dear: {name}")
    return 1 if dear else 0


if __name__ == "__main__":
    sys.exit(main())
