# SPDX-License-Identifier: Apache-2.0
"""What each test costs: the table bench/results/test_costs.csv, by which the runner plans, and the words about it.

A row a program (`case` empty) and a row for each of its cases that took a second or more. `cpu_s` and `processes` are
empty where they could not be known.
"""
import collections
import csv
import datetime
import os
import platform
import subprocess

FIELDS = ("date", "commit", "command", "machine", "simulated", "build", "program", "case", "wall_s", "cpu_s", "processes")
PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench/results/test_costs.csv")
DEAR_CASE_S = 1.0
DEAREST = 10
QUICK_S = (20, 4)  # wall clock and processor time of what ./test quick leaves out

Cost = collections.namedtuple("Cost", "wall_s cpu_s processes")  # `processes` is None where it is not known
UNKNOWN = Cost(20.0, 6.0, None)  # of a program that is not in the table


def read(path):
    """{(build, program): Cost}; builds are "plain" and "sanitized"."""
    costs = {}
    if os.path.exists(path):
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if not row["case"]:
                    wall_s = float(row["wall_s"])
                    costs[row["build"], row["program"]] = Cost(wall_s, float(row["cpu_s"] or wall_s / 2),
                                                               int(row["processes"]) if row["processes"] else None)
    return costs


def measured(costs, build, program):
    """Cost of the program in that build, in the other one if only that is known; None if neither is."""
    other = "plain" if build == "sanitized" else "sanitized"
    return costs.get((build, program)) or costs.get((other, program))


def expected(costs, build, program):
    return measured(costs, build, program) or UNKNOWN


def is_dear(costs, build, program):
    """Too dear for ./test quick. What was never measured is not."""
    return any(cost >= most for cost, most in zip(measured(costs, build, program) or (0, 0), QUICK_S))


def machine():
    cpu = "?"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), cpu)
    return f"{os.cpu_count()} x {cpu}, Linux {platform.release()}"


def rows_of(build, entry, cases):
    """The program's row, then those of its dear cases; `cases` in the order of its points."""
    yield (build, entry["name"], "", round(entry["duration"], 1), known(entry["cpu_s"]), known(entry["processes"]))
    for case, point in zip(cases, entry["points"]):
        if point["wall_s"] >= DEAR_CASE_S:
            yield (build, entry["name"], case.name.split(": ", 1)[-1], round(point["wall_s"], 1), known(point["cpu_s"]),
                   known(point["processes"]))


def known(value):
    return "" if value is None else round(value, 1)


def commit():
    """What is checked out; with a "+" where it was changed."""
    return subprocess.run(["git", "describe", "--always", "--dirty=+", "--exclude=*"], capture_output=True, text=True,
                          check=False, cwd=os.path.dirname(PATH)).stdout.strip() or "unknown"


def write(rows, command, path):
    head = (datetime.date.today().isoformat(), commit(), command, machine(), "yes")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(head + row for row in sorted(rows))


def print_table(rows, out):
    """The dearest cases, then what the others cost in the mean."""
    def words(build, program, case, wall_s, cpu_s, processes):
        return (f"{wall_s:7.1f} s  {cpu_s if cpu_s != '' else '?':>6} s of CPU  {processes if processes != '' else '?':>6} processes  "
                f"{build}: {program}: {case}")

    rows = list(rows)
    cases = sorted((row for row in rows if row[2]), key=lambda row: -row[3])
    if cases:
        print("the dearest cases:", file=out)
    for row in cases[:DEAREST]:
        print(words(*row), file=out)
    programs = [row for row in rows if not row[2]]
    if programs:
        walls, cpus = [row[3] for row in programs], [row[4] for row in programs if row[4] != ""]
        print(f"{len(programs)} programs: {sum(walls):.0f} s one after the other ({sum(walls) / len(walls):.1f} in the mean), "
              f"{sum(cpus):.0f} s of CPU", file=out)
