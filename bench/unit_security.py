#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How exposed takt's units are by `systemd-analyze security`: 0 is best, 10 is a service that may do everything.

Each unit as it was built, looked at as a file: systemd need not run. What is counted differs a little between versions
of systemd, so a unit is compared with the row of the same version, where there is one.

Usage: unit_security.py BUILD_FOLDER [--record]
Fails where a unit is more exposed than bench/results/unit_security.csv says.
"""
import csv
import os
import re
import shutil
import subprocess
import sys

import idle_cost

RESULTS = os.path.join(idle_cost.HERE, "results/unit_security.csv")
UNITS = ("takt", "takt-actuate", "takt-launch", "takt-jobs", "takt-clocks", "takt-alerts")


def version():
    return subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True,
                          check=True).stdout.split()[1]


def exposure(path):
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", path], capture_output=True,
                          text=True, check=False)
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done
    return float(found.group(1))


def recorded():
    """{(unit, version of systemd): exposure}"""
    with open(RESULTS, encoding="utf-8", newline="") as file:
        return {tuple(row["metric"].split(", systemd ")): float(row["value"]) for row in csv.DictReader(file)}


def main():
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not installed")
        return 77
    system = version()
    found = {unit: exposure(os.path.join(sys.argv[1], "units", unit + ".service")) for unit in UNITS}
    for unit, value in found.items():
        print(f"{unit}.service {value}")
    if "--record" in sys.argv:
        idle_cost.record(RESULTS, {f"{unit}.service, systemd {system}": (value, "of 10") for unit, value in found.items()},
                         "unit_security.py", simulated="no")
        return 0
    known = recorded()
    worse = [unit for unit, value in found.items() if value > known.get((f"{unit}.service", system), value)]
    print(*(f"{unit}.service is more exposed than it was" for unit in worse), sep="\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
