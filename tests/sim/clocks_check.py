#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of takt replay-clocks, worked out a second time.

Usage: clocks_check.py TAKT POINTS.csv

What is expected is computed here from the table alone: the optimum, the settings for all, the score
of a fixed clock with its delay. Of every other governor it holds that a job is a mixture of settings,
so that its time and energy lie within the convex hull of the table's: nothing is saved that is not
there, with and without noise, in phases and after training.
"""
import csv
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

TAKT, POINTS = sys.argv[1:3]
TINY = 1e-4  # percent; the figures are printed with eight digits
QUIET = ("--noise", "0,0", "--meter", "0s")


def replay(path, *args):
    done = subprocess.run([TAKT, "replay-clocks", "--points", path, *args, "--json"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["scores"]


def every_governor():
    listed = subprocess.run([TAKT, "replay-clocks", "--list"], capture_output=True, text=True,
                            check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line[:1].strip()]


def curves_of(path):
    """{workload: [(clock, time, energy)]}, relative to the highest clock."""
    raw = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            raw.setdefault(row["workload"], []).append(
                (float(row["core_mhz"]), float(row["time"]), float(row["power_w"])))
    curves = {}
    for workload, rows in raw.items():
        _, time, power = max(rows)
        curves[workload] = sorted((mhz, t / time, t * p / (time * power)) for mhz, t, p in rows)
    return curves


def optimum(curve, promise):
    """Percent saved by the best single clock within the promise."""
    return 100 * (1 - min(e for _, t, e in curve if t <= 1 + promise / 100 + 1e-9))


def at(curve, mhz):
    return max((one for one in curve if one[0] <= mhz), default=curve[0])


def for_all(curves, promise, slow_of):
    """The clock of most mean saving among those whose slowdown, as slow_of sums it up, is promised."""
    best = (0.0, max(mhz for curve in curves.values() for mhz, _, _ in curve))
    for clock in {mhz for curve in curves.values() for mhz, _, _ in curve}:
        held = [at(curve, clock) for curve in curves.values()]
        saved = 100 * sum(1 - e for _, _, e in held) / len(held)
        if slow_of([t for _, t, _ in held]) <= 1 + promise / 100 + 1e-9 and saved > best[0] + 1e-9:
            best = (saved, clock)
    return best


def hull_energy(curve, time):
    """The least energy that a mixture of settings has at no more than this time."""
    points = [(t, e) for _, t, e in curve]
    least = min((e for t, e in points if t <= time), default=float("inf"))
    for t0, e0 in points:
        for t1, e1 in points:
            if t0 < time < t1:
                least = min(least, e0 + (e1 - e0) * (time - t0) / (t1 - t0))
    return least


def near(a, b, tolerance=TINY):
    assert abs(a - b) <= tolerance, (a, b)


def random_table(seed):
    """Some workloads with odd curves: also ones that get faster at a lower clock, and no two alike."""
    draw = random.Random(seed)
    text = "dataset,gpu,workload,core_mhz,time,power_w\n"
    for w in range(4):
        bound, floor, unit = draw.random(), draw.uniform(20, 120), draw.uniform(0.1, 50)
        for mhz in range(700, 1501, 100):
            time = unit * (1 + bound * (1500 / mhz - 1)) * draw.uniform(0.99, 1.01)
            power = floor + 200 * (mhz / 1500) ** draw.uniform(2, 3)
            text += f"random,board,work {w},{mhz},{time:.6f},{power:.4f}\n"
    file = tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8")
    file.write(text)
    file.flush()
    return file


def the_optimum_and_settings_for_all_are_as_computed_here():
    tables = [random_table(seed) for seed in range(6)]
    for path in [POINTS] + [table.name for table in tables]:
        curves = curves_of(path)
        for promise in (0, 2.5, 5, 10, 40):
            scores = replay(path, "--governor", "observe", "--max-slowdown", str(promise),
                            "--epochs", "20", "--seeds", "1")
            best = {w: optimum(curve, promise) for w, curve in curves.items()}
            mean = sum(best.values()) / len(best)
            for score in scores:
                near(score["optimum_saved_pct"], mean)
                for one in score["workloads"]:
                    near(one["optimum_saved_pct"], best[one["workload"]])
            safe = for_all(curves, promise, max)
            level = for_all(curves, promise, lambda slow: sum(slow) / len(slow))
            near(scores[1]["energy_saved_pct"], safe[0])
            near(scores[2]["energy_saved_pct"], level[0])
            if mean > 0:
                near(scores[1]["share_of_optimum_pct"], 100 * safe[0] / mean)


def a_fixed_clock_scores_what_can_be_worked_out():
    delay, epoch = 0.2, 2.0
    for epochs in (10, 30):
        fixed = replay(POINTS, "--governor", "fixed", "--param", "sm_mhz=1200", "--epochs",
                       str(epochs), "--seeds", "1..2", *QUIET)[-1]
        fast = delay / epoch / epochs  # work done before the clock is there
        saved = slow = violating = 0
        for workload, curve in curves_of(POINTS).items():
            _, time, energy = at(curve, 1200)
            one = next(w for w in fixed["workloads"] if w["workload"] == workload)
            near(one["slowdown_mean_pct"], 100 * (1 - fast) * (time - 1))
            near(one["energy_saved_pct"], 100 * (1 - fast) * (1 - energy))
            saved += one["energy_saved_pct"]
            slow += one["slowdown_mean_pct"]
            violating += 2 * ((1 - fast) * (time - 1) > 0.05)
        near(fixed["energy_saved_pct"], saved / 4)
        near(fixed["slowdown_pct"]["mean"], slow / 4)
        assert fixed["violating_jobs"] == violating and fixed["runs"] == 8
        assert fixed["violating_epochs_pct"] == 100 and fixed["overhead_pct"] == 0


def who_stays_at_the_highest_clock_saves_and_loses_nothing():
    table = random_table(99)
    for score in replay(table.name, "--governor", "performance,observe", "--epochs", "1,7,100",
                        "--seeds", "1..3", "--noise", "10,10"):
        if score["governor"] in ("max", "performance", "observe"):
            assert score["energy_saved_pct"] == 0, score
            assert score["slowdown_pct"] == {"mean": 0, "p95": 0, "max": 0}, score
            assert score["violating_jobs"] == score["violating_epochs_pct"] == 0, score
            assert score["changes_per_job"] == score["overhead_pct"] == 0, score


def within_hull(curves, score):
    for one in score["workloads"]:
        time = 1 + one["slowdown_mean_pct"] / 100
        least = hull_energy(curves[one["workload"]], time + 1e-6)
        assert 1 - one["energy_saved_pct"] / 100 >= least - 1e-6, (score["governor"], one)


def no_governor_saves_what_is_not_there():
    names = ",".join(every_governor())
    for seed in range(3):
        table = random_table(seed)
        curves = curves_of(table.name)
        for noise in ("0,0", "2,3"):
            for score in replay(table.name, "--governor", names, "--epochs", "30,120", "--seeds",
                                "1..2", "--noise", noise, "--param", "fixed.sm_mhz=1100",
                                "--train", "qlearning"):
                within_hull(curves, score)
                near(score["energy_saved_pct"],
                     sum(w["energy_saved_pct"] for w in score["workloads"]) / 4)
                assert score["violating_jobs"] == sum(w["violating_jobs"]
                                                      for w in score["workloads"])
                assert (score["violating_jobs"] > 0) == (score["slowdown_pct"]["max"] > 5), score


def a_share_is_a_ratio_of_sums():
    for score in replay(POINTS, "--governor", "assured,ladder,geepafs", "--epochs", "60", "--seeds",
                        "7"):
        sums = [sum(w[name] for w in score["workloads"])
                for name in ("energy_saved_pct", "optimum_saved_pct")]
        near(score["share_of_optimum_pct"], 100 * sums[0] / sums[1])
        shares = {w["workload"]: 100 * w["energy_saved_pct"] / w["optimum_saved_pct"]
                  for w in score["workloads"]}
        near(score["worst_workload_share_pct"], min(shares.values()))
        near(shares[score["worst_workload"]], min(shares.values()))


def jobs_in_phases_are_held_to_the_phases_own_optimum():
    """Of equal phases a fixed clock's figures are means of single workloads, whichever were drawn."""
    curves = curves_of(POINTS)
    for score in replay(POINTS, "--governor", "assured,performance", "--phases", "3", "--epochs",
                        "120", "--seeds", "1..4"):
        optima = [optimum(curve, 5) for curve in curves.values()]
        assert min(optima) - TINY <= score["optimum_saved_pct"] <= max(optima) + TINY
        if score["governor"] == "best-safe-fixed":
            saved = [100 * (1 - at(curve, score["setting"])[2]) for curve in curves.values()]
            assert min(saved) - TINY <= score["energy_saved_pct"] <= max(saved) + TINY
            assert score["violating_jobs"] == 0 and score["runs"] == 16
        if score["governor"] in ("max", "performance"):
            assert score["energy_saved_pct"] == 0


TESTS = (the_optimum_and_settings_for_all_are_as_computed_here,
         a_fixed_clock_scores_what_can_be_worked_out,
         who_stays_at_the_highest_clock_saves_and_loses_nothing, no_governor_saves_what_is_not_there,
         a_share_is_a_ratio_of_sums, jobs_in_phases_are_held_to_the_phases_own_optimum)


if __name__ == "__main__":
    sys.exit(tap.main(TESTS))
