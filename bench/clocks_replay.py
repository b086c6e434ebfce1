#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `assured` reaches on measured tables, as rows of bench/results/clocks_replay.csv.

Usage: clocks_replay.py TAKT POINTS.csv DATASETS PROMISES SEEDS

DATASETS and PROMISES are lists (geepafs,nvdvfs-real 5,10). Rows go to standard output; TAKT's commit is
in each. Every figure is a replay on a table (docs/research/clocks-replay.md).
"""
import json
import subprocess
import sys
import tempfile

FIGURES = ("runs", "share_of_optimum_pct", "share_of_optimum_half95", "worst_workload_share_pct",
           "energy_saved_pct", "optimum_saved_pct", "slowdown_mean_pct", "slowdown_p95_pct",
           "slowdown_max_pct", "violating_jobs", "violating_epochs_pct", "overhead_pct",
           "overhead_energy_pct", "settling_loss_pct")
HEAD = ("commit", "dataset", "gpu", "actuator", "governor", "setting", "max_slowdown_pct", "epochs",
        "time_noise_pct", "power_noise_pct")


def rows_of(table, datasets):
    """The table with the rows of some datasets."""
    with open(table, encoding="utf-8") as file:
        head, *rows = file.readlines()
    return head + "".join(row for row in rows if row.split(",", 1)[0] in datasets)


def cell(value):
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main():
    takt, table, datasets, promises, seeds = sys.argv[1:6]
    print(",".join(HEAD + FIGURES))
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        file.write(rows_of(table, datasets.split(",")))
        file.flush()
        for promise in promises.split(","):
            done = subprocess.run([takt, "replay-clocks", "--points", file.name, "--governor", "assured",
                                   "--max-slowdown", promise, "--seeds", seeds, "--json"],
                                  capture_output=True, text=True, check=True)
            result = json.loads(done.stdout)
            for score in result["scores"]:
                score["commit"] = result["commit"]
                print(",".join(cell(score[name]) for name in HEAD + FIGURES), flush=True)


if __name__ == "__main__":
    main()
