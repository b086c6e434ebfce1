#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spread of equal runs on a hot, capped, SIMULATED board: default clocks against a fixed clock below the knee.

A consistency check of the simulated driver and of what a fixed clock is for; it says nothing about a real board
(docs/research/hardware.md says how to measure one). All parameters are in bench/spread_parameters.json, which was committed
before the first run. One board does the runs one after the other; before each of them cooling and pause are drawn,
the same for both settings. The machine's time is moved by hand, so that the load of this machine does not matter.

Usage: spread_runs.py BUILD_FOLDER [--record]
"""
import csv
import ctypes
import datetime
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = ["date", "commit", "command", "machine", "simulated", "metric", "value", "unit"]


def parameters():
    with open(os.path.join(SOURCE, "bench/spread_parameters.json"), encoding="utf-8") as file:
        return json.load(file)


def settle_board(own, fixed):
    """In a process of its own under `takt-twin exec`: the cap, and the lock where there is one."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    board = ctypes.c_void_p()
    codes = [nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(board)),
             nvml.nvmlDeviceSetPowerManagementLimit(board, own["power_limit_w"] * 1000)]
    if fixed:
        codes.append(nvml.nvmlDeviceSetGpuLockedClocks(board, own["fixed_min_mhz"],
                                                       own["fixed_max_mhz"]))
    sys.exit(any(codes))


class Board:
    def __init__(self, build, folder, own):
        self.twin = os.path.join(build, "twin/takt-twin")
        self.own = own
        self.env = {**os.environ, "TAKT_TWIN": os.path.join(folder, "m.twin")}
        self.call("create", own["machine"], "--gpus", "1", "--seed", str(own["machine_seed"]),
                  "--speed", "0", "--path", self.env["TAKT_TWIN"], "--replace")

    def call(self, *words):
        return subprocess.run([self.twin, *words], env=self.env, check=True, capture_output=True,
                              text=True).stdout

    def settle(self, fixed):
        self.call("exec", "--", sys.executable, os.path.abspath(__file__), "--settle",
                  "fixed" if fixed else "default")

    def gpu(self):
        return json.loads(self.call("state", "--json"))["gpus"][0]

    def advance(self, seconds):
        for _ in range(0, seconds, self.own["advance_s"]):
            self.call("time", "--advance", f"{self.own['advance_s']}s")

    def run(self, air, pause_s):
        """Mean time of a step, in milliseconds, and why it was slowed down at the end."""
        self.advance(pause_s)
        self.call("fault", "0", f"air={air}")
        with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as out:
            load = subprocess.Popen([self.twin, "load", "--profile", self.own["profile"], "--gpus", "0",
                                     "--steps", "1000000", "--step-time-ms", str(self.own["step_ms"]),
                                     "--jitter", "0"], env=self.env, stdout=out)
            while not self.gpu()["processes"]:
                time.sleep(0.02)
            self.advance(self.own["run_s"])
            steps, reasons = settled_steps(out.name), self.gpu()["reasons"]
            load.kill()
            load.wait()
        while self.gpu()["processes"]:
            time.sleep(0.02)
        return 1000 * self.own["run_s"] / steps, reasons


def settled_steps(path):
    """How many steps were printed, once no more come: the machine's time stands still."""
    steps, same = -1, 0
    while same < 20:
        with open(path, "rb") as file:
            now = file.read().count(b"\n")
        same = same + 1 if now == steps and now else 0
        steps = now
        time.sleep(0.02)
    return steps


def measure(build, own, fixed):
    draw = random.Random(own["draws_seed"])
    with tempfile.TemporaryDirectory(prefix="takt-spread-") as folder:
        board = Board(build, folder, own)
        board.settle(fixed)
        return [board.run(draw.randint(*own["air_percent"]), draw.randint(*own["pause_s"]))
                for _ in range(own["runs"])]


def rows_of(name, results):
    times = [one for one, _ in results]
    mean, spread = statistics.mean(times), statistics.stdev(times)
    yield f"{name}: runs", len(times), ""
    yield f"{name}: runs that heat slowed down at their end", sum(
        "sw-thermal" in reasons for _, reasons in results), ""
    yield f"{name}: runs that the power cap slowed down at their end", sum(
        "power-cap" in reasons for _, reasons in results), ""
    yield f"{name}: mean time of a step", mean, "ms"
    yield f"{name}: standard deviation over runs", spread, "ms"
    yield f"{name}: standard deviation over runs, of the mean", 100 * spread / mean, "%"
    yield f"{name}: slowest less fastest run, of the mean", 100 * (max(times) - min(times)) / mean, "%"


def record(rows):
    """The commit is the last that changed anything which the figures rest on."""
    commit = subprocess.run(["git", "-C", SOURCE, "log", "-1", "--abbrev=12", "--format=%h", "--",
                             "twin", "bench/spread_parameters.json"],
                            capture_output=True, text=True, check=True).stdout.strip()
    shared = [datetime.date.today().isoformat(), commit, "bench/spread_runs.py BUILD",
              f"{platform.machine()}, {platform.system()}", "yes"]
    with open(os.path.join(SOURCE, "bench/results/spread.csv"), "w", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(shared + [metric, f"{value:.6g}", unit] for metric, value, unit in rows)


def main():
    own = parameters()
    if sys.argv[1:2] == ["--settle"]:
        settle_board(own, sys.argv[2] == "fixed")
    build = os.path.abspath(sys.argv[1])
    names = {"default clocks": False, f"fixed at {own['fixed_max_mhz']} MHz": True}
    rows = [row for name, fixed in names.items() for row in rows_of(name, measure(build, own, fixed))]
    for metric, value, unit in rows:
        print(f"SIMULATED {metric:60} {value:10.5g} {unit}")
    if "--record" in sys.argv:
        record(rows)


if __name__ == "__main__":
    main()
