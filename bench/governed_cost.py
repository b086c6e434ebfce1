#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What governing jobs costs, on simulated GPUs: processor time a GPU, and how long a first setting takes.

The same eight jobs of one GPU each, once governed and once not; processor time of `takt serve` and its actuator in the
seconds after, as the scheduler counts it, and the difference a GPU. Of each governed job also the time from its
start until its first setting was read back.

Usage: governed_cost.py BUILD_FOLDER [--seconds N] [--record]
"""
import argparse
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests/e2e"))
sys.path.insert(0, HERE)
import idle_cost  # noqa: E402
import kit  # noqa: E402

GPUS = 8
RESULTS = os.path.join(os.path.dirname(HERE), "bench/results/governed.csv")


def busy(m, seconds):
    """Processor time of takt and its actuator, of a second."""
    pids = [*m.pids("takt"), *m.pids("takt-actuate")]
    before = sum(map(idle_cost.cpu_ns, pids))
    begin = time.monotonic()
    time.sleep(seconds)
    return (sum(map(idle_cost.cpu_ns, pids)) - before) / (time.monotonic() - begin) / 1e9


def measure(seconds, **more):
    """(processor seconds a second, [microseconds to a first setting])"""
    with kit.machine(gpus=GPUS) as m:
        m.start()
        client = m.client()
        jobs = [client.submit(m.load_argv("--profile", "resnet50", "--quiet"), gpus=1, **more)["id"]
                for _ in range(GPUS)]
        for job in jobs:
            kit.until(lambda job=job: client.job(job).get("pid"), kit.WAIT_S, "it runs")
        if more:
            for job in jobs:
                kit.until(lambda job=job: client.job(job)["governed"].get("first_applied_us"), kit.WAIT_S,
                          lambda job=job: client.job(job)["governed"])
        used = busy(m, seconds)
        client = m.client()  # the other was idle for too long
        first = [client.job(job)["governed"].get("first_applied_us") for job in jobs]
        for job in jobs:
            client.cancel(job)
            client.wait(job)
        return used, first


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    plain, _ = measure(args.seconds)
    governed, first = measure(args.seconds, max_slowdown_permille=50)
    found = {"jobs, one GPU each": (GPUS, ""),
             "cpu takt, jobs not governed": (100 * plain, "% of a core"),
             "cpu takt, jobs governed": (100 * governed, "% of a core"),
             "cpu of governing, a GPU": (100 * (governed - plain) / GPUS, "% of a core"),
             "job start to first setting read back, median": (statistics.median(first) / 1000, "ms"),
             "job start to first setting read back, worst": (max(first) / 1000, "ms")}
    for metric, (value, unit) in found.items():
        print(f"{metric:48} {value:>10.4g} {unit}")
    if args.record:
        idle_cost.record(RESULTS, found, f"governed_cost.py --seconds {args.seconds:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
