#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packing bound: never below what a packer that tries everything reaches, equal to bounds
worked out by hand, monotonous, and true whatever the solver says.

Usage: bound_tests.py BOUND
"""
import collections
import functools
import importlib.machinery
import importlib.util
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

PROGRAM = sys.argv[1]


def load(path):
    loader = importlib.machinery.SourceFileLoader("takt_bound", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("takt_bound", loader))
    loader.exec_module(module)
    return module


bound = load(PROGRAM)
NODES_HEADER = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS_HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
ARRIVED_HEADER = ",".join(bound.ARRIVED_COLUMNS) + "\n"


def needs_solver(case):
    @functools.wraps(case)
    def wrapped():
        if not shutil.which("glpsol"):
            raise tap.Skip("no glpsol: install glpk-utils")
        case()
    return wrapped


def arrived(pods, samples=1, load="all"):
    """pods: (milli, gpus, cpu, models as text), each one arrival."""
    group = bound.Arrived("", load, samples)
    for milli, gpus, cpu, models in pods:
        kind = (milli, gpus, cpu, frozenset(m for m in models.split("|") if m))
        group.count[kind] = group.count.get(kind, 0) + 1
    return group


def pool(nodes):
    """What the file reader makes of nodes (model, gpus, cpu)."""
    return collections.Counter(nodes)


def bound_milli(nodes, pods, samples=1):
    """The bound in milli-GPU, rounded up as the program prints it."""
    answer = bound.bounds(pool(nodes), [arrived(pods, samples)])
    return answer["bounds"][0]["bound_pct"] * answer["capacity_gpus"] * 10


def run(*args, stdin="", path=None):
    env = dict(os.environ, PATH=path) if path is not None else None
    return subprocess.run([sys.executable, "-B", PROGRAM, *args], input=stdin, text=True,
                          capture_output=True, env=env, check=False)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


# The packer that tries everything.

def best_by_trying(nodes, pods):
    """The most milli-GPU that can run at once, by trying each pod on each set of GPUs, or not."""
    free = [[1000] * gpus for _, gpus, _ in nodes]
    cpu = [c for _, _, c in nodes]

    def place(i):
        if i == len(pods):
            return 0
        milli, gpus, need, models = pods[i]
        best = place(i + 1)
        for n, (model, have, _) in enumerate(nodes):
            if need > cpu[n] or (models and model not in models.split("|")):
                continue
            for chosen in itertools.combinations(range(have), gpus):
                if any(free[n][g] < milli for g in chosen):
                    continue
                cpu[n] -= need
                for g in chosen:
                    free[n][g] -= milli
                best = max(best, milli * gpus + place(i + 1))
                cpu[n] += need
                for g in chosen:
                    free[n][g] += milli
        return best

    return place(0)


def random_case(rng):
    models = ["A", "B"]
    nodes = [(rng.choice(models), rng.choice([1, 2]), rng.choice([4, 8]) * 1000)
             for _ in range(rng.choice([1, 2]))]
    pods = []
    for _ in range(rng.randrange(1, 7)):
        gpus = rng.choice([1, 1, 1, 2])
        milli = 1000 if gpus > 1 else rng.choice([150, 300, 350, 470, 650, 810, 1000])
        pods.append((milli, gpus, rng.choice([0, 1, 2, 5]) * 1000,
                     rng.choice(["", "", "A", "B", "A|B"])))
    return nodes, pods


@needs_solver
def no_packer_beats_the_bound():
    rng = random.Random(7)
    reached = 0
    for _ in range(120):
        nodes, pods = random_case(rng)
        most, limit = best_by_trying(nodes, pods), bound_milli(nodes, pods)
        assert most <= limit + 1e-6, (nodes, pods, most, limit)
        reached += most >= limit - 0.2
    assert reached >= 60, f"only {reached} of 120 bounds are reached: a loose bound says little"


@needs_solver
def bounds_worked_out_by_hand():
    one = [("A", 1, 96000)]
    four = [("A", 4, 96000)]
    rows = [
        # a GPU holds one request of 600: the rest of it is lost, however many wait
        (four, [(600, 1, 0, "")] * 9, 2400),
        # 810 leaves 190 unusable, unless a 160 comes
        (one, [(810, 1, 0, "")] * 2, 810),
        (one, [(810, 1, 0, ""), (160, 1, 0, "")], 970),
        # all that arrived fits
        (four, [(1000, 1, 0, "")] * 3, 3000),
        # whole GPUs only: 2 and 2
        (four, [(1000, 2, 0, "")] * 3, 4000),
        # CPU is a pool a node class: 8 cores for requests of 5 each, and fractions count
        ([("A", 2, 8000)], [(1000, 1, 5000, "")] * 2, 1600),
        # the model asked for is the one GPU of its kind
        ([("A", 1, 8000), ("B", 3, 8000)], [(1000, 1, 0, "A")] * 3, 1000),
        ([("A", 1, 8000), ("B", 3, 8000)], [(1000, 1, 0, "A|B")] * 3, 3000),
        # a model that nobody has
        (one, [(1000, 1, 0, "C")], 0),
    ]
    for nodes, pods, expected in rows:
        capacity = sum(gpus for _, gpus, _ in nodes) * 1000
        found = bound_milli(nodes, pods)
        assert expected <= found + 1e-6, (nodes, pods, expected, found)
        assert found <= expected + capacity * 2e-5, (nodes, pods, expected, found)


@needs_solver
def more_arrivals_never_bound_less():
    rng = random.Random(11)
    for _ in range(15):
        nodes, pods = random_case(rng)
        pods = pods * 3
        limits = [bound_milli(nodes, pods[:n]) for n in range(1, len(pods) + 1, 3)]
        slack = sum(gpus for _, gpus, _ in nodes) * 1000 * 2e-5
        for less, more in zip(limits, limits[1:]):
            assert less <= more + slack, (nodes, pods, limits)


@needs_solver
def fewer_models_and_more_cpu_needed_never_bound_more():
    rng = random.Random(13)
    for _ in range(25):
        nodes, pods = random_case(rng)
        slack = sum(gpus for _, gpus, _ in nodes) * 1000 * 2e-5
        free = bound_milli(nodes, [(m, g, c, "") for m, g, c, _ in pods])
        given = bound_milli(nodes, pods)
        hungry = bound_milli(nodes, [(m, g, c + 2000, s) for m, g, c, s in pods])
        assert given <= free + slack and hungry <= given + slack, (nodes, pods)


@needs_solver
def order_and_merging_of_requests_do_not_matter():
    rng = random.Random(17)
    nodes, pods = [("A", 4, 96000), ("B", 2, 32000)], []
    for _ in range(6):
        pods += random_case(rng)[1]
    shuffled = pods[:]
    rng.shuffle(shuffled)
    assert abs(bound_milli(nodes, pods) - bound_milli(nodes, shuffled)) <= 6000 * 2e-5


@needs_solver
def mean_of_samples_is_bounded_by_the_bound_of_the_mean():
    nodes = [("A", 3, 96000)]
    few, many = [(600, 1, 0, "")] * 2, [(600, 1, 0, "")] * 6
    mean = bound_milli(nodes, few + many, samples=2)
    assert (best_by_trying(nodes, few) + best_by_trying(nodes, many)) / 2 <= mean
    assert mean <= 1800 + 0.1	# 4 on the mean, 3 fit


@needs_solver
def warm_started_loads_equal_those_computed_alone():
    rng = random.Random(19)
    nodes = [("A", 8, 96000), ("B", 2, 32000)]
    pods = [p for _ in range(12) for p in random_case(rng)[1]]
    sets = [arrived(pods[:n], load=str(n)) for n in (8, 16, 24, len(pods))]
    together = bound.bounds(pool(nodes), sets)["bounds"]
    for group, warm in zip(sets, together):
        alone = bound.bounds(pool(nodes), [group])["bounds"][0]
        assert abs(alone["bound_pct"] - warm["bound_pct"]) <= 0.002, (alone, warm)
        assert warm["gap_pct"] <= 0.002, warm


@needs_solver
def coarser_pools_of_nodes_bound_no_less():
    rng = random.Random(31)
    rows = bound.MAX_ROWS
    for _ in range(20):
        nodes, pods = random_case(rng)
        limits = []
        for most in (rows, 3 * len(pods), 1):
            bound.MAX_ROWS = most
            limits.append(bound_milli(nodes, pods))
        bound.MAX_ROWS = rows
        slack = sum(gpus for _, gpus, _ in nodes) * 1000 * 2e-5
        assert limits[0] <= limits[1] + slack and limits[1] <= limits[2] + slack, (nodes, limits)
    assert len(bound.pool({("A", 2, 4): 3, ("A", 4, 4): 1, ("B", 2, 4): 1}, 2000)) == 1
    assert len(bound.pool({("A", 2, 4): 3, ("A", 4, 4): 1, ("B", 2, 4): 1}, 1000)) == 2
    assert len(bound.pool({("A", 2, 4): 3, ("A", 4, 4): 1, ("B", 2, 4): 1}, 600)) == 3


def any_prices_bound():
    """Weak duality: prices from a dice, no solver at all."""
    rng = random.Random(23)
    for _ in range(60):
        nodes, pods = random_case(rng)
        group, most = arrived(pods), best_by_trying(nodes, pods)
        classes = bound.pool(pool(nodes), 1)
        problem = bound.Problem(classes, sorted(group.count, key=lambda k: (k[:3], sorted(k[3]))))
        for _ in range(10):
            duals = [rng.choice([0, rng.random() * 1000, -5, float("nan")])
                     for _ in range(problem.rows())]
            limit, _ = bound.Prices(problem, duals).bound(group)
            assert most <= limit, (nodes, pods, duals, most, limit)


def best_pattern_is_the_best_multiset():
    rng = random.Random(29)
    for _ in range(50):
        sizes = sorted(rng.sample(range(150, 1001, 10), 4))
        worth = [rng.randrange(0, 1000) for _ in sizes]
        tried = max(sum(w * n for w, n in zip(worth, times))
                    for times in itertools.product(range(7), repeat=4)
                    if sum(s * n for s, n in zip(sizes, times)) <= 1000)
        found, pattern = bound.best_pattern(sizes, worth)
        assert found == tried == sum(worth[s] * n for s, n in pattern), (sizes, worth)
        assert sum(sizes[s] * n for s, n in pattern) <= 1000


def lying_solver_cannot_lower_the_bound():
    nodes, pods = [("A", 4, 96000)], [(600, 1, 0, "")] * 9
    lies = [
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\necho GLPSOL 9\n",
        # every price 0, value 0
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -w ] && out=$2; [ \"$1\" = --glp ] && lp=$2;"
        " shift; done\n[ -n \"$lp\" ] || exit 0\n"
        "awk '$1==\"p\"{print \"s bas\",$4,$5,\"f f 0\"; for(i=1;i<=$4;i++) print \"i\",i,\"b 0 0\";"
        " for(j=1;j<=$5;j++) print \"j\",j,\"l 0 0\"}' \"$lp\" > \"$out\"\n",
    ]
    for text in lies:
        with tempfile.TemporaryDirectory() as folder:
            liar = write(folder, "liar", text)
            os.chmod(liar, 0o755)
            answer = bound.bounds(pool(nodes), [arrived(pods)], liar)
            assert answer["bounds"][0]["bound_pct"] >= 60.0, (text, answer)


@needs_solver
def out_of_time_is_loose_but_a_bound():
    nodes, pods = [("A", 4, 96000)], [(600, 1, 0, "")] * 5
    late = bound.bounds(pool(nodes), [arrived(pods), arrived(pods * 9)], seconds=0)["bounds"]
    assert [b["bound_pct"] for b in late] == [75.0, 100.0], late
    assert [b["lp_pct"] for b in late] == [None, None], late


# The command line.

def files(folder, nodes="n0,96000,1,4,A\n", pods="p0,0,0,1,600,\n" * 9):
    return (write(folder, "nodes.csv", NODES_HEADER + nodes),
            write(folder, "pods.csv", PODS_HEADER + pods))


@needs_solver
def json_has_one_bound_a_seed_and_load():
    with tempfile.TemporaryDirectory() as folder:
        nodes, _ = files(folder)
        rows = ["2000,50,1,0,1,600,,3", "2000,100,2,0,1,600,A|B,14", "2001,50,1,0,1,1000,,2"]
        ran = run("--cluster", nodes, "--arrived", "-", "--json",
                  stdin=ARRIVED_HEADER + "\n".join(rows) + "\n")
        assert ran.returncode == 0, ran.stderr
        answer = json.loads(ran.stdout)
        assert [(b["seed"], b["load_pct"]) for b in answer["bounds"]] == [
            ("2000", 50), ("2000", 100), ("2001", 50)]
        assert [round(b["bound_pct"], 2) for b in answer["bounds"]] == [45.0, 60.0, 50.0]
        assert [b["arrived_pct"] for b in answer["bounds"]] == [45.0, 105.0, 50.0]
        assert answer["capacity_gpus"] == 4 and answer["solver"].startswith("glpsol")


@needs_solver
def table_is_for_people():
    with tempfile.TemporaryDirectory() as folder:
        nodes, pods = files(folder)
        ran = run("--cluster", nodes, "--pods", pods)
        assert ran.returncode == 0 and "60.00" in ran.stdout and "4 GPUs" in ran.stdout, ran


def missing_solver_is_said():
    with tempfile.TemporaryDirectory() as folder:
        nodes, pods = files(folder)
        ran = run("--cluster", nodes, "--pods", pods, path=folder)
        assert ran.returncode == 3, ran
        assert "bound not computed: install glpk-utils" in ran.stderr and not ran.stdout, ran


def bad_input_names_file_line_and_column():
    cases = [
        ({"pods": "p0,0,0,1,six,\n"}, ("pods.csv", "line 2", "gpu_milli 'six'")),
        ({"pods": "p0,0,0,1,600,\np1,0,0,-1,600,\n"}, ("line 3", "num_gpu '-1'")),
        ({"nodes": "n0,96000,1,,A\n"}, ("nodes.csv", "line 2", "gpu ''")),
        ({"nodes": "n0,96000,1,0,\n"}, ("no node has a GPU",)),
    ]
    for change, words in cases:
        with tempfile.TemporaryDirectory() as folder:
            nodes, pods = files(folder, **change)
            ran = run("--cluster", nodes, "--pods", pods)
            assert ran.returncode == 1 and not ran.stdout, ran
            for word in words:
                assert word in ran.stderr, (word, ran.stderr)


def missing_column_and_file_are_named():
    with tempfile.TemporaryDirectory() as folder:
        nodes, pods = files(folder)
        bare = write(folder, "bare.csv", "name,cpu_milli,num_gpu\n")
        ran = run("--cluster", nodes, "--pods", bare)
        assert ran.returncode == 1 and "no column 'gpu_milli'" in ran.stderr, ran
        ran = run("--cluster", os.path.join(folder, "none.csv"), "--pods", pods)
        assert ran.returncode == 1 and "none.csv" in ran.stderr, ran
        ran = run("--cluster", nodes, "--arrived", "-",
                  stdin=ARRIVED_HEADER + "1,50,1,0,1,600,,3\n1,50,2,0,1,600,,3\n")
        assert ran.returncode == 1 and "line 3" in ran.stderr and "samples" in ran.stderr, ran


TESTS = [
    no_packer_beats_the_bound, bounds_worked_out_by_hand, more_arrivals_never_bound_less,
    fewer_models_and_more_cpu_needed_never_bound_more,
    order_and_merging_of_requests_do_not_matter,
    mean_of_samples_is_bounded_by_the_bound_of_the_mean,
    warm_started_loads_equal_those_computed_alone, coarser_pools_of_nodes_bound_no_less,
    any_prices_bound,
    best_pattern_is_the_best_multiset, lying_solver_cannot_lower_the_bound,
    out_of_time_is_loose_but_a_bound,
    json_has_one_bound_a_seed_and_load, table_is_for_people, missing_solver_is_said,
    bad_input_names_file_line_and_column, missing_column_and_file_are_named,
]

if __name__ == "__main__":
    sys.exit(tap.main(TESTS))
