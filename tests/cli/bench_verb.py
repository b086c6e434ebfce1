# SPDX-License-Identifier: Apache-2.0
"""takt bench sched: what it prints, and what it says to wrong input.

Usage: bench_verb.py TAKT TRACES
"""
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

TAKT, TRACES = sys.argv[1:3]
MIX = TRACES + "/openb_pod_list_gpuspec10.csv.gz"
SMALL = ["--mix", MIX, "--nodes", "60", "--naive", "40"]


def takt(*arguments):
    return subprocess.run([TAKT, "bench", *arguments], capture_output=True, text=True)


def result(*arguments):
    done = takt("sched", *SMALL, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fill_reports_rates_percentiles_and_memory():
    got = result("--mode", "fill", "--gpus", "4")
    assert got["nodes"] == 60 and got["gpus"] == 240
    assert got["placement"]["count"] > 100
    assert 0 < got["placement"]["p50_ns"] <= got["placement"]["p99_ns"] <= got["placement"]["p999_ns"]
    assert got["placements_per_s"] > 0 and got["ratio_to_naive"] > 0
    assert got["naive_decisions"] >= 20
    assert got["bytes"] > got["bytes_index"] > 0
    assert 30 < got["allocation_pct"] <= 100


def churn_counts_placements_and_releases():
    got = result("--mode", "churn", "--ops", "3000")
    assert got["placement"]["count"] + got["release"]["count"] >= 3000
    assert abs(got["placement"]["count"] - got["release"]["count"]) < 200
    assert got["ops_per_s"] > got["placements_per_s"]
    assert 80 < got["allocation_pct"] < 95


def every_feature_works_with_every_policy():
    for policy in ("takt", "fgd", "bestfit", "hetero", "spread"):
        got = result("--features", "gang,topology,quota,why", "--placement", policy)
        assert got["features"] == ["gang", "topology", "quota", "why"]
        assert got["placement"]["count"] > 100, policy


def the_planner_places_the_mix_too():
    mix = ["--mix", TRACES + "/openb_pod_list_default.csv.gz"]
    for mode in ("fill", "churn"):
        got = result(*mix, "--planner", "20", "--mode", mode, "--ops", "1000",
                     "--features", "gang,topology,quota,why")
        assert got["planner_batch"] == 20 and got["placement"]["count"] > 200
        assert 60 < got["allocation_pct"] <= 100 and "ratio_to_naive" not in got
    done = takt("sched", *SMALL, "--planner", "20")
    assert done.returncode != 0 and "names models" in done.stderr


def the_same_seed_places_the_same():
    first, second = result("--seed", "7"), result("--seed", "7")
    for key in ("allocation_pct", "kinds"):
        assert first[key] == second[key]
    assert first["placement"]["count"] == second["placement"]["count"]


def nodes_from_a_file_are_repeated():
    got = result("--cluster", TRACES + "/openb_node_list_gpu_node.csv", "--nodes", "1500")
    assert got["nodes"] == 1500 and got["gpus"] > 6212


def text_is_for_people():
    done = takt("sched", *SMALL)
    assert done.returncode == 0 and "placements/s" in done.stdout, done.stdout


def wrong_input_is_refused_by_name():
    for arguments, words in (
            (["sched"], "--mix FILE is missing"),
            (["sched", "--mix", MIX, "--mode", "drain"], "neither fill nor churn"),
            (["sched", "--mix", MIX, "--features", "gang,luck"], "'luck'"),
            (["sched", "--mix", MIX, "--placement", "nowhere"], "nowhere"),
            (["sched", "--mix", "/nonexistent.csv"], "/nonexistent.csv"),
            (["sleep"], "'sleep'")):
        done = takt(*arguments)
        assert done.returncode != 0 and words in done.stderr, (arguments, done.stderr)


if __name__ == "__main__":
    sys.exit(tap.main([fill_reports_rates_percentiles_and_memory, churn_counts_placements_and_releases,
                       every_feature_works_with_every_policy, the_planner_places_the_mix_too, the_same_seed_places_the_same,
                       nodes_from_a_file_are_repeated, text_is_for_people, wrong_input_is_refused_by_name]))
