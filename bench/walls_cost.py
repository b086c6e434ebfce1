#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the walls between users cost: takt as root for everybody, before them and with them, in turn in one run.

Before is a checkout of commit 11abce8d, the last one in which the shim was the user's and no helper had its calls of the
system listed. Both are measured by the same code, each with its own tests/e2e/kit.py and its own programs:
  hand-over    from the end of a job to the begin of the next on the only GPU, as the jobs write it down themselves (ms)
  submit       jobs handed in one after the other over one connection, as a user who is not root (1/s)
  idle cpu     of all of takt's processes while nothing runs, at the default rate of sampling (us/s)
  idle memory  of all of them, each page counted in proportion (Pss, KiB)

Usage: walls_cost.py BEFORE_CHECKOUT [--build build-test] [--rounds 7] [--record [FILE]]
Needs root, and programs built in the folder of that name (--build) of both checkouts.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
JOBS, SUBMITS, IDLE_S, HOLD_MS = 40, 3000, 6, 30
UNITS = {"hand-over": "ms", "submit": "1/s", "idle cpu": "us/s", "idle memory": "KiB"}
MORE_IS_BETTER = {"submit"}


def idle(m):
    """(us of processor time a second, KiB) of takt's processes."""
    def used_ns(pid):
        folder = f"/proc/{pid}/task"
        return sum(int(open(f"{folder}/{thread}/schedstat", encoding="ascii").read().split()[0])
                   for thread in os.listdir(folder))

    def pss_kib(pid):
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))

    pids = list(m.processes())
    before, begin = {pid: used_ns(pid) for pid in pids}, time.monotonic()
    time.sleep(IDLE_S)
    used = sum(used_ns(pid) - before[pid] for pid in pids)
    return used / 1e3 / (time.monotonic() - begin), sum(pss_kib(pid) for pid in pids)


def work(users, kit):
    """One round on one of the two, whose modules these are: {what: value}."""
    found = {}
    with users.shared_machine(gpus=1) as m:
        time.sleep(2)
        found["idle cpu"], found["idle memory"] = idle(m)

        def hand_in(count, argv, held=False):
            client = kit.Client(m.socket)
            begin = time.monotonic()
            jobs = [client.submit(argv, gpus=1, held=held)["id"] for _ in range(count)]
            return jobs, count / (time.monotonic() - begin)

        jobs, _ = users.as_user(users.ALICE, hand_in, JOBS, m.witness_argv(HOLD_MS))
        client = m.client()
        for job in jobs:
            assert client.wait(job)["state"] == "done"
        ends = {end.job: end for end in m.witness().ends}
        gaps = [(ends[b].begin_ns - ends[a].end_ns) / 1e6 for a, b in zip(jobs, jobs[1:])]
        found["hand-over"] = statistics.median(gaps)
        _, found["submit"] = users.as_user(users.ALICE, hand_in, SUBMITS, ["/bin/true"], True)
    return found


def one_round(checkout, build):
    done = subprocess.run([sys.executable, "-B", os.path.abspath(__file__), os.path.join(checkout, build), "--of", checkout],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"walls_cost: a round on {checkout} failed")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    if "--of" in sys.argv:
        sys.path.insert(0, os.path.join(sys.argv[sys.argv.index("--of") + 1], "tests/e2e"))
        import users
        import kit
        print(json.dumps(work(users, kit)))
        return
    sys.path.insert(0, os.path.join(SOURCE, "tools"))
    import test_steady
    parser = argparse.ArgumentParser(description="what the walls between users cost")
    parser.add_argument("before", help="a checkout of 11abce8d, built")
    parser.add_argument("--build", default="build-test", help="the folder of that name in both is used (build-test)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", nargs="?", const=os.path.join(HERE, "results/walls_cost.csv"), metavar="FILE")
    options = parser.parse_args()
    rounds = {options.before: [], SOURCE: []}
    for number in range(options.rounds):  # who is first changes
        for checkout in list(rounds)[::-1 if number % 2 else 1]:
            rounds[checkout].append(one_round(checkout, options.build))
            print(f"round {number + 1} of {options.rounds}, {'with' if checkout == SOURCE else 'before'}: "
                  + ", ".join(f"{name} {value:.4g} {UNITS[name]}" for name, value in rounds[checkout][-1].items()), flush=True)
    rows = []
    for name, unit in UNITS.items():
        before, after = (statistics.median(found[name] for found in rounds[checkout]) for checkout in rounds)
        ratio = before / after if name in MORE_IS_BETTER else after / before
        rows += [(f"{name}, before", f"{before:.5g}", unit), (f"{name}, with walls", f"{after:.5g}", unit),
                 (f"{name}, times the cost", f"{ratio:.3f}", "ratio")]
    for row in rows:
        print("%-28s %10s %s" % row)
    if options.record:
        test_steady.record(rows, f"bench/walls_cost.py 11abce8d --rounds {options.rounds} --record", options.record)


if __name__ == "__main__":
    main()
