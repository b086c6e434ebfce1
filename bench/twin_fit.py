#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the simulated driver's curves on measured sweeps and says how far off they are on others.

twin_fit.py [RESULTS.csv]

  power  P(r) = Pa + Pb r v(r)^2,  v = max(floor, 1 - slope (1 - r)),  r = f / fmax
  time   t(r) = t(1) (1 + a (1/r - 1))

slope and floor belong to a board and are found on some workloads, then kept; Pa, Pb and a belong to
a workload and are found on every other point of it, and judged on the points in between. Under a
power cap the clock is where P(r) reaches the cap: what the model says about time then is judged on
caps that were not used either.
"""

import csv
import gzip
import os
import statistics
import sys

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "clocks.csv.gz")


def read():
    groups = {}
    with gzip.open(DATA, "rt") as file:
        for row in csv.DictReader(file):
            groups.setdefault((row["dataset"], row["gpu"]), {}).setdefault(
                row["workload"], []).append(row)
    return groups


def cost(r, slope, floor):
    return r * max(floor, 1 - slope * (1 - r)) ** 2


def line(xs, ys):
    """Least squares y = p + q x."""
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    var = sum((a - x) ** 2 for a in xs)
    q = sum((a - x) * (b - y) for a, b in zip(xs, ys)) / var if var else 0
    return y - q * x, q


def sweep(rows):
    """(r, power, time / time at the top) of a clock sweep."""
    top = max(float(row["core_mhz"]) for row in rows)
    rows = sorted(rows, key=lambda row: float(row["core_mhz"]))
    full = float(rows[-1]["time"])
    return [(float(row["core_mhz"]) / top, float(row["power_w"]), float(row["time"]) / full)
            for row in rows]


def power_errors(points, slope, floor, judged):
    """Pa and Pb from the even points; errors on those that are asked for."""
    pa, pb = line([cost(r, slope, floor) for r, _, _ in points[::2]], [p for _, p, _ in points[::2]])
    return [abs(pa + pb * cost(r, slope, floor) - p) / p for r, p, _ in points[judged::2]], pa, pb


def time_errors(points):
    rs = [(1 / r - 1, t - 1) for r, _, t in points[::2]]
    a = sum(x * y for x, y in rs) / sum(x * x for x, _ in rs)
    return [abs(1 + a * (1 / r - 1) - t) / t for r, _, t in points[1::2]], a


def best_shape(sweeps):
    def error(shape):
        return statistics.fmean(e for points in sweeps
                                for e in power_errors(points, *shape, 0)[0])
    return min(((s / 100, f / 100) for s in range(40, 130, 5) for f in range(40, 100, 1)), key=error)


def capped_clock(pa, pb, cap, shape, lowest):
    """Where P(r) reaches the cap; no board goes below its lowest clock, whatever the cap."""
    low, high = lowest, 1.0
    if pa + pb * cost(high, *shape) <= cap:
        return high
    for _ in range(16):
        middle = (low + high) / 2
        if pa + pb * cost(middle, *shape) <= cap:
            low = middle
        else:
            high = middle
    return low


def cap_errors(rows, shape, lowest):
    """Time under caps. Pa and a are found on every other cap, with Pb from the highest power."""
    rows = sorted(rows, key=lambda row: -float(row["power_limit_w"]))
    full, highest = float(rows[0]["time"]), max(float(row["power_w"]) for row in rows)
    points = [(float(row["power_limit_w"]), float(row["time"]) / full) for row in rows]

    def errors(pa, a, some):
        return [abs(1 + a * (1 / capped_clock(pa, highest - pa, cap, shape, lowest) - 1) - t) / t
                for cap, t in some]
    choices = [(pa, a / 20) for pa in range(25, int(highest * 0.8), 10) for a in range(0, 24)]
    pa, a = min(choices, key=lambda choice: sum(errors(*choice, points[::2])))
    return errors(pa, a, points[1::2])


def summary(out, dataset, gpu, quantity, fitted, judged, errors, note):
    errors = sorted(errors)
    out.writerow([dataset, gpu, quantity, fitted, judged, len(errors),
                  f"{100 * statistics.fmean(errors):.2f}",
                  f"{100 * errors[int(0.95 * (len(errors) - 1))]:.2f}", note])


def floor_found(out, workloads, slope, lowest):
    """A floor of the voltage from half of the workloads under caps, judged on the others."""
    names = sorted(name for name in workloads if len(workloads[name]) >= 4)

    def errors(floor, some):
        return [e for name in some for e in cap_errors(workloads[name], (slope, floor), lowest)]
    floor = min((x / 100 for x in range(55, 100, 10)),
                key=lambda x: statistics.fmean(errors(x, names[::2])))
    for note in (floor, 0.85):
        summary(out, "zeus-nsdi23", "A40", "time under a power cap", "every other cap",
                "other workloads; the caps between", errors(note, names[1::2]),
                f"slope {slope:.2f} floor {note:.2f} "
                + ("(of half of the workloads)" if note == floor else "(kept)"))


def main():
    groups = read()
    target = open(sys.argv[1], "w", newline="", encoding="utf-8") if len(sys.argv) > 1 else sys.stdout
    out = csv.writer(target, lineterminator="\n")
    out.writerow(["dataset", "gpu", "quantity", "fitted_on", "judged_on", "points", "mape_percent",
                  "p95_percent", "parameters"])
    dataset, gpu = "perseus-sosp24", "A100-SXM4-80GB"
    names = sorted(groups[dataset, gpu])
    sweeps = [sweep(groups[dataset, gpu][name]) for name in names]
    seen, unseen = sweeps[:len(sweeps) // 2], sweeps[len(sweeps) // 2:]
    slope, floor = best_shape(seen)
    shape = f"slope {slope:.2f} floor {floor:.2f}"
    for label, some in (("stages seen", seen), ("stages not seen", unseen)):
        found = [power_errors(points, slope, floor, 1) for points in some]
        note = (f"{shape}; Pa {statistics.median(f[1] for f in found):.0f} W "
                f"Pb {statistics.median(f[2] for f in found):.0f} W")
        summary(out, dataset, gpu, "power", "first half of the stages", label + "; odd clocks",
                [e for f in found for e in f[0]], note)
        times = [time_errors(points) for points in some]
        summary(out, dataset, gpu, "time", "even clocks", label + "; odd clocks",
                [e for t in times for e in t[0]],
                f"a {min(t[1] for t in times):.2f} to {max(t[1] for t in times):.2f}")
    # boards whose curve comes from elsewhere: V100 of its own sweeps, A40 of published fits; the
    # lowest and highest clocks are the boards' own
    for gpu, shape, clocks in (("V100-PCIe", (1.0, 0.40), (135, 1380)),
                               ("A40", (0.68, 0.85), (210, 1740))):
        errors = [e for rows in groups["zeus-nsdi23", gpu].values() if len(rows) >= 4
                  for e in cap_errors(rows, shape, clocks[0] / clocks[1])]
        summary(out, "zeus-nsdi23", gpu, "time under a power cap", "every other cap",
                "the caps between", errors,
                f"slope {shape[0]:.2f} floor {shape[1]:.2f} (kept) clocks {clocks[0]} to {clocks[1]}")
    floor_found(out, groups["zeus-nsdi23", "A40"], 0.68, 210 / 1740)
    if target is not sys.stdout:
        target.close()


main()
