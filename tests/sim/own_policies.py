#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A researcher's own policies: the examples are built and run; what is no policy is refused.

Usage: own_policies.py TAKT TRACES FOLDER_OF_EXAMPLES
"""
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

TAKT, TRACES, EXAMPLES = sys.argv[1:4]
PODS = ["--cluster", f"{TRACES}/openb_node_list_gpu_node.csv", "--nodes", "120",
        "--trace", f"{TRACES}/openb_pod_list_multigpu20.csv.gz", "--bound", "off",
        "--seeds", "1..2", "--load", "50,100", "--json"]


def takt(*args):
    return subprocess.run([TAKT, "simulate", *args], capture_output=True, text=True, check=False)


def results(*args):
    done = takt(*args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["results"]


def by_name(records, label, load=None):
    return {record[label]: record for record in records
            if load is None or record["load_pct"] == load}


def a_placement_policy_of_ones_own_is_compared():
    found = by_name(results(*PODS, "--placement", f"fgd,random,{EXAMPLES}/worst_fit.so"),
                    "placement", 100)
    assert set(found) == {"fgd", "random", "worst-fit"}
    allocation = {name: record["allocation_pct"] for name, record in found.items()}
    # Spreading is the worst that one can do for those who need whole nodes.
    assert allocation["worst-fit"] < allocation["fgd"] - 2, allocation


def its_parameters_reach_it():
    keep = ["--placement", f"{EXAMPLES}/worst_fit.so", "--param"]
    free = by_name(results(*PODS, *keep, "keep=0"), "placement", 100)["worst-fit"]
    kept = by_name(results(*PODS, *keep, "keep=4000"), "placement", 100)["worst-fit"]
    assert kept["allocation_pct"] < free["allocation_pct"] - 10
    done = takt(*PODS, *keep, "luck=1")
    assert done.returncode != 0 and "worst-fit has no parameter 'luck'" in done.stderr, done.stderr


def a_queue_policy_of_ones_own_is_listed():
    done = takt("--cluster", "uniform:2x8", "--trace", f"{TRACES}/philly_jobs_2017_09_10.csv.gz",
                "--queue", f"{EXAMPLES}/worst_fit.so")
    assert done.returncode == 69 and "has no queue policy" in done.stderr, done.stderr
    done = takt("--cluster", "uniform:2x8", "--trace", "/nowhere",
                "--queue", f"{EXAMPLES}/smallest_first.so+none,{EXAMPLES}/smallest_first.so")
    assert "'/nowhere'" in done.stderr, done.stderr


def what_is_no_policy_is_refused():
    for name, words in (("./nowhere.so", "nowhere.so"),
                        (f"{EXAMPLES}/smallest_first.so", "has no placement policy"),
                        (TAKT, ""),
                        (f"{EXAMPLES}/worst_fit.so,{EXAMPLES}/worst_fit.so", "is there twice"),
                        ("fgd,,random", "begins with none"),
                        ("best-fit", "there is no placement policy 'best-fit'; there are ")):
        done = takt(*PODS, "--placement", name)
        assert done.returncode in (64, 69) and words in done.stderr, (name, done.stderr)


if __name__ == "__main__":
    sys.exit(tap.main([a_placement_policy_of_ones_own_is_compared, its_parameters_reach_it,
                       a_queue_policy_of_ones_own_is_listed, what_is_no_policy_is_refused]))
