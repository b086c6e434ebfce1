#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does takt grow over a day? A day of takt and of its simulated GPUs, in minutes.

Time runs faster for takt, for the driver's library, for the simulated GPUs and for the jobs alike (clock_fast.c): takt
takes as many readings, keeps as much history, answers as many scrapes and runs as many jobs as in so many hours. Each ten
minutes one GPU after the other computes for five; the page is scraped each 15 s; by that same clock. Memory is
Rss of takt with its helpers, less the driver's library and the simulated machine's file, looked at each hour: what it has
grown by since the second, and the most. The witness of the time that went by are history's steps: how many of those
that so many hours have were written.

Usage: day.py BUILD_FOLDER [--hours N] [--speed N] [--machine NAME] [--gpus N] [--record [FILE]]
Needs `ninja -C BUILD_FOLDER` and `ninja -C BUILD_FOLDER bench/libclock_fast.so`. Where the machine is busy a lower
speed leaves takt the time that it needs.
"""
import argparse
import contextlib
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests/e2e"))
sys.path.insert(0, HERE)
import kit  # noqa: E402
import scrape  # noqa: E402
from idle_cost import record  # noqa: E402
from scrape_cost import RESULTS, takt_at  # noqa: E402

CLOCK_FAST = os.path.join(kit.BUILD, "bench/libclock_fast.so")
HOUR_S = 3600
SCRAPE_EVERY_S, JOB_EVERY_S, JOB_S = 15, 600, 300
STEPS_AN_HOUR = 360 + 60 + 1  # of history: of ten seconds, a minute, an hour
SETTLED_HOURS = 2


class Clock:
    """Time as takt has it on that machine, in seconds since the begin."""

    def __init__(self, m, speed):
        self.speed, self.begin_ns = speed, time.monotonic_ns()
        m.more_env = {"LD_PRELOAD": CLOCK_FAST, "CLOCK_FAST": f"{speed}:{self.begin_ns}"}

    def now_s(self):
        return (time.monotonic_ns() - self.begin_ns) * self.speed / 1e9

    def wait_until(self, at_s):
        time.sleep(max(0, at_s - self.now_s()) / self.speed)


class Day:
    """What goes on, and what was seen."""

    def __init__(self, m, takt, clock):
        self.m, self.takt, self.clock = m, takt, clock
        self.rss_kib, self.scrapes, self.jobs = [], 0, []

    def look(self):
        self.rss_kib.append(self.takt.memory_kib(self.m.path("machine"))["Rss"])
        print(f"{self.clock.now_s() / HOUR_S:6.2f} h: Rss {self.rss_kib[-1]} KiB, {self.scrapes} scrapes, {len(self.jobs)} jobs",
              flush=True)

    # On new connections each time: takt closes one that was still for too long, and its clock is fast.

    def scrape(self):
        self.takt.line.close()
        self.takt.scrape()
        self.takt.took_s.clear()
        self.scrapes += 1

    def submit(self):
        env = [f"{name}={value}" for name, value in self.m.env().items() if name in ("TAKT_TWIN", *self.m.more_env)]
        words = self.m.load_argv("--profile", "gemm", "--seconds", JOB_S, "--quiet")
        self.jobs.append(self.ask(lambda client: client.submit(words, gpus=1, env=["PATH=/usr/bin:/bin", *env]))["id"])

    def ask(self, act):
        with contextlib.closing(kit.Client(self.m.socket)) as client:
            return act(client)

    def how_it_ended(self, job):
        return self.ask(lambda client: client.wait(job))["state"]

    def pass_by(self, hours):
        due = {self.scrape: SCRAPE_EVERY_S, self.submit: JOB_EVERY_S, self.look: HOUR_S}
        at = dict(due)
        while self.clock.now_s() < hours * HOUR_S:
            act = min(at, key=at.get)
            self.clock.wait_until(at[act])
            act()
            at[act] += due[act]


def measure(args):
    with contextlib.ExitStack() as stack:
        m = stack.enter_context(kit.machine(args.machine, args.gpus))
        clock = Clock(m, args.speed)
        takt = takt_at(m, int(scrape.listening(m).rsplit(":", 1)[1]))
        day = Day(m, takt, clock)
        day.pass_by(args.hours)
        done = [day.how_it_ended(job) for job in day.jobs]
        assert done and set(done) == {"done"}, done
        day.look()
        steps = day.ask(lambda client: client.metrics())["takt_history_records_total"]
        settled = day.rss_kib[SETTLED_HOURS - 1:] or day.rss_kib
        return {f"a day's hours, {args.gpus} GPUs": (clock.now_s() / HOUR_S, "h"),
                "a day's scrapes": (day.scrapes, ""), "a day's jobs": (len(day.jobs), ""),
                "a day's steps of history, of all": (steps / (STEPS_AN_HOUR * args.gpus * clock.now_s() / HOUR_S), "ratio"),
                "a day's Rss, grown since the second hour": (day.rss_kib[-1] - settled[0], "KiB"),
                "a day's Rss, most": (max(settled), "KiB")}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--speed", type=int, default=60)
    parser.add_argument("--machine", default="hgx-h100")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--record", nargs="?", const=RESULTS)
    args = parser.parse_args()
    found = measure(args)
    for name, (value, unit) in found.items():
        print(f"{name:48} {value:10.3f} {unit}")
    if args.record:
        record(args.record, found, f"day.py --machine {args.machine} --gpus {args.gpus} --hours {args.hours:g} --speed {args.speed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
