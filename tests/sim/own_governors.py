#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reader's own governor: the example is replayed beside takt's; what is no governor is refused.

Usage: own_governors.py TAKT POINTS.csv FOLDER_OF_EXAMPLES
"""
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

TAKT, POINTS, EXAMPLES = sys.argv[1:4]
OWN = f"{EXAMPLES}/half_way.so"


def takt(*args):
    return subprocess.run([TAKT, "replay-clocks", "--points", POINTS, "--epochs", "20",
                           "--seeds", "1..2", *args], capture_output=True, text=True, check=False)


def scores(*args):
    done = takt(*args, "--json")
    assert done.returncode == 0, done.stderr
    return {score["governor"]: score for score in json.loads(done.stdout)["scores"]}


def a_governor_of_ones_own_is_compared():
    found = scores("--governor", f"performance,{OWN}")
    assert {"performance", "half-way"} <= set(found)
    assert found["half-way"]["energy_saved_pct"] == 0  # programs of such tables are always busy


def its_parameters_reach_it():
    found = scores("--governor", f"performance,{OWN}", "--param", "half-way.busy_permille=1000")
    assert found["half-way"]["energy_saved_pct"] > 1, found["half-way"]
    done = takt("--governor", OWN, "--param", "half-way.busy_permille=1001")
    assert done.returncode != 0 and "busy_permille is 0 to 1000" in done.stderr, done.stderr


def what_is_no_governor_is_refused():
    for name, words in (("./nowhere.so", "nowhere.so"),
                        (f"{EXAMPLES}/worst_fit.so", "takt_governor_entry"),
                        (f"{OWN},{OWN}", "is there twice"),
                        ("half-way", "there is no governor 'half-way'; there are ")):
        done = takt("--governor", name)
        assert done.returncode in (64, 69) and words in done.stderr, (name, done.stderr)


if __name__ == "__main__":
    sys.exit(tap.main([a_governor_of_ones_own_is_compared, its_parameters_reach_it,
                       what_is_no_governor_is_refused]))
