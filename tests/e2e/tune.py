#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt tune on a simulated machine: it finds what the board's own curve says, stops when something is
wrong, and leaves no clock changed, however it ends.

Usage: tune.py BUILD
"""
import contextlib
import json
import os
import signal
import subprocess
import sys

import kit

sys.path.insert(0, os.path.join(kit.SOURCE, "tests/sim"))
from report_document import document_of

TRAIN = """
import sys, time
sys.path.insert(0, sys.argv[1])
from takt_progress import Progress
progress = Progress()
while True:
    time.sleep(0.02)
    progress.add(steps=1)
"""

# Two ranks, as a launcher starts them: rank 1 takes five times as long for a step, writes first or last, and its
# result differs from the run on that is told.
RANKS = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from takt_progress import Progress
counts, differs_from = sys.argv[2], int(sys.argv[3])
rank = os.environ.get("RANK")
if rank is None:
    run = os.path.getsize(counts) if os.path.exists(counts) else 0
    with open(counts, "a") as file:
        file.write(".")
    ranks = {i: subprocess.Popen([sys.executable, *sys.orig_argv[1:]], stdout=subprocess.PIPE,
                                 env={**os.environ, "RANK": str(i), "RUN": str(run)}) for i in (0, 1)}
    said = {i: process.communicate()[0].decode() for i, process in ranks.items()}
    for i in ((0, 1), (1, 0))[run % 2]:
        print(said[i], end="")
    sys.exit(any(process.returncode for process in ranks.values()))
progress = Progress()
for step in range(200 >> 2 * int(rank)):
    time.sleep(0.1 if rank == "1" else 0.02)
    progress.add(steps=1)
print("rank", rank, "loss", 7 + (rank == "1" and int(os.environ["RUN"]) >= differs_from))
"""


@contextlib.contextmanager
def tuned(gpus=1, **more):
    with kit.machine(gpus=gpus, **more) as m:
        with open(m.path("mixed.toml"), "w", encoding="ascii") as file:
            file.write(kit.MIXED)
        m.more_env["XDG_STATE_HOME"] = m.path("home")
        m.start()
        yield m


def load(m, *words):
    return [kit.TWIN, "load", "--profile", m.path("mixed.toml"), "--quiet", *words]


def tune(m, *words):
    return m.run(m.path("bin/takt"), "tune", *words, cwd=m.folder)


def result(done):
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def begin(m, *words, wait=True, **env):
    """takt tune in the background, once its sweep has set a clock."""
    process = subprocess.Popen([m.path("bin/takt"), "tune", *words], env=m.env(**env), cwd=m.folder,
                               stdout=m.log, stderr=m.log, start_new_session=True)
    if wait:
        kit.until(m.locked, lambda: "a clock is set; " + m.said())
    return process


def is_clean(m):
    return not m.locked() and all(gpu["limit_mw"] == gpu["default_limit_mw"] for gpu in m.boards())


def comes_to_rest(m):
    kit.until(lambda: is_clean(m) and not m.client().live(), lambda: f"{m.boards()} {m.said()}")


def it_recommends_what_the_boards_curve_says():
    with tuned() as m:
        found = result(tune(m, "--clocks", "1500,600", "--repeat", "2", "--max-slowdown", "60%", "--save", "mixed",
                            "--any-output", "--json", "--csv", "t.csv", "--svg", "t.svg", "--html", "t.html", "--",
                            *load(m, "--steps", "30")))
        assert found["simulated"] and found["unit"] == "run" and found["seed"] == 1, found
        points = {point["sm_mhz"]: point for point in found["points"]}
        assert sorted(points) == [600, 1500, 1980] and all(p["runs"] == 2 for p in points.values()), points
        assert points[1980]["slowdown_pct"] == 0 and 2 < points[1500]["slowdown_pct"] < 35, points
        assert points[600]["slowdown_pct"] > 50 and points[1500]["saved_pct"] > 3, points
        assert points[1500]["pareto"] and found["recommended"]["sm_mhz"] == 1500, found
        assert points[1500]["measured_sm_mhz"] <= 1515, points
        comes_to_rest(m)
        with open(m.path("t.csv"), encoding="ascii") as file:
            assert len(file.readlines()) == 4
        with open(m.path("t.svg"), encoding="ascii") as file:
            svg = file.read()
        assert svg.startswith("<svg xmlns=") and "SIMULATED" in svg, svg[:200]
        assert document_of(m.path("t.html")) == found
        listed = tune(m, "--profiles").stdout
        assert "mixed" in listed and "1500" in listed and "SIMULATED" in listed, listed
        # The profile is what a job of that name gets.
        ran = m.takt("run", "--name", "mixed", "--clock", "profile", "--json", "--", *load(m, "--steps", "3"))
        view = json.loads(ran.stderr[ran.stderr.index("{"):])
        assert view["clock_max_mhz"] == 1500 and view["report"]["mean_sm_mhz"] <= 1515, view
        other = m.takt("run", "--name", "other", "--clock", "profile", "--", "true")
        assert other.returncode == 66 and "no profile of a job named 'other'" in other.stderr, other


def what_runs_print_is_compared():
    """With a counter for results: what differs at another clock alone is not recommended, what differs anyway says nothing."""
    with tuned() as m:
        def sweep(script, *words):
            return tune(m, "--clocks", "990", "--repeat", "1", "--max-slowdown", "1000%", *words, "--", "sh", "-c",
                        "sleep 0.3; " + script)

        def clock_of(limit):
            return f"{kit.TWIN} state --machine {m.path('machine')} --json | grep -q '\"lock_max_mhz\": *{limit}'"

        same = sweep("echo equal")
        assert same.returncode == 0 and "The output was the same in all runs." in same.stdout, same
        differs = f"if {clock_of(990)}; then echo other; else echo equal; fi"
        done = sweep(differs)
        assert "DIFFERS at 990 MHz" in done.stdout, done
        assert done.returncode == 0 and "not recommended" in done.stdout and ": 1980 MHz" in done.stdout, done
        found = result(sweep(differs, "--json"))
        assert found["compared"] == "output" and [p.get("differs", False) for p in found["points"]] == [False, True], found
        assert found["recommended"]["sm_mhz"] == 1980, found
        found = result(sweep("date +%s%N", "--json"))
        assert "compared" not in found and "differs from the warm-up" in found["not_compared"], found
        found = result(sweep(differs, "--any-output", "--json"))
        assert found["not_compared"] == "--any-output" and not any(p.get("differs") for p in found["points"]), found
        done = sweep(differs, "--same-output")
        assert done.returncode != 0 and "output differs" in done.stdout, done


def a_limit_that_was_kept_is_what_a_job_gets():
    with tuned() as m:
        result(tune(m, "--clocks", "1980", "--power-limits", "400", "--repeat", "1", "--max-slowdown", "1000%", "--save",
                    "hot", "--any-output", "--json", "--", kit.TWIN, "load", "--quiet", "--steps", "8"))
        assert "400 W" in tune(m, "--profiles").stdout, tune(m, "--profiles")
        done = m.takt("submit", "-q", "--name", "hot", "--clock", "profile", "--", "sleep", "600")
        assert done.returncode == 0, done
        kit.until(lambda: m.boards()[0]["limit_mw"] == 400_000, m.said)
        job = m.client().job(int(done.stdout))
        assert (job["clock_max_mhz"], job["power_limit_mw"]) == (1980, 400_000), job
        m.client().cancel(job["id"])
        comes_to_rest(m)


def it_runs_on_the_gpu_that_is_named():
    with tuned(gpus=2) as m:
        found = result(tune(m, "--gpu-index", "1", "--clocks", "1500", "--repeat", "1", "--json", "--", *load(m, "--steps", "2")))
        assert found["simulated"], found
        swept = [job for job in m.client().ask("GET", "/v1/jobs?history=1&limit=100")["jobs"] if job["name"] == "tune"]
        assert [job["gpu_list"] for job in swept] == [[1]], swept
        comes_to_rest(m)
        refused = tune(m, "--gpu-index", "2", "--", "true")
        assert refused.returncode != 0 and "asks for GPU 2" in refused.stderr, refused


def a_profile_of_another_board_is_not_used():
    with tuned() as m, kit.machine(board="dgx-a100", gpus=1) as other:
        result(tune(m, "--clocks", "1500", "--repeat", "1", "--max-slowdown", "50%", "--save", "mixed", "--any-output", "--json", "--",
                    *load(m, "--steps", "4")))
        other.more_env["XDG_STATE_HOME"] = m.path("home")
        other.start()
        for verb in ("run", "submit"):
            done = other.takt(verb, "--name", "mixed", "--clock", "profile", "--", "true")
            assert done.returncode == 69 and "H100 80GB HBM3, which is not here" in done.stderr, done
        assert not other.client().live()


def a_png_is_drawn_by_another_program():
    with tuned() as m:
        os.mkdir(m.path("tools"))
        m.more_env["PATH"] = m.path("tools")
        words = ("--clocks", "1500", "--repeat", "1", "--png", "t.png", "--", *load(m, "--steps", "2"))
        done = tune(m, *words)
        assert done.returncode == 69 and "needs rsvg-convert" in done.stderr and not os.path.exists(m.path("t.png")), done
        for form in ("csv", "svg", "html"):
            done = tune(m, "--" + form, m.path("nowhere/file"), "--", "true")
            assert done.returncode != 0 and "nowhere/file" in done.stderr, done
        swept = m.client().ask("GET", "/v1/jobs?history=1&limit=100")["jobs"]
        assert not swept, swept  # nothing was measured for nothing
        kit.write_program(m.path("tools/rsvg-convert"), "#!/bin/sh\nexec /bin/cat\n")
        assert tune(m, *words).returncode == 0
        with open(m.path("t.png"), encoding="ascii") as file:
            assert file.read().startswith("<svg xmlns=")
        # What fails at the end all the same does not take the profile with it.
        kit.write_program(m.path("tools/rsvg-convert"), "#!/bin/sh\nexit 3\n")
        done = tune(m, "--save", "kept", *words)
        assert done.returncode != 0 and "could not write the chart" in done.stdout, done
        assert "kept" in tune(m, "--profiles").stdout


def a_tight_promise_keeps_the_highest_clock_and_power_limits_are_tried():
    with tuned() as m:
        done = tune(m, "--clocks", "600", "--power-limits", "300", "--repeat", "1", "--max-slowdown", "0.5%", "--json",
                    "--", kit.TWIN, "load", "--quiet", "--steps", "20")
        found = result(done)
        limited = [point for point in found["points"] if point.get("power_limit_w") == 300]
        assert len(limited) == 1 and limited[0]["power_w"] < 400 < found["points"][0]["power_w"], found
        assert limited[0]["slowdown_pct"] > 5 and found["recommended"]["sm_mhz"] == 1980, found
        assert "power_limit_w" not in found["recommended"], found
        comes_to_rest(m)


def progress_is_what_it_goes_by():
    with tuned() as m:
        examples = os.path.join(kit.SOURCE, "examples")
        found = result(tune(m, "--clocks", "1000", "--repeat", "1", "--for", "6s", "--json", "--", sys.executable,
                            "-c", TRAIN, examples))
        assert found["unit"] == "step", found
        assert all(1 < point["performance"] <= 51 for point in found["points"]), found
        # Nothing to go by.
        done = tune(m, "--for", "300ms", "--repeat", "1", "--", "sleep", "60")
        assert done.returncode == 64 and "tells no progress" in done.stdout, done
        comes_to_rest(m)


def of_ranks_the_slowest_counts_and_the_result_of_each():
    with tuned(gpus=2) as m:
        examples, counts = os.path.join(kit.SOURCE, "examples"), m.path("counts")
        words = ("--gpus", "2", "--clocks", "1000", "--repeat", "1", "--metric", "progress", "--same-output")
        found = result(tune(m, *words, "--json", "--", sys.executable, "-c", RANKS, examples, counts, "9"))
        assert found["unit"] == "step" and found["ranks"] == 2 and found["gpus"] == 2, found
        for point in found["points"]:
            assert 0 < point["performance"] <= 10.1, found  # what rank 1 can do
            assert abs(point["energy_j"] * point["performance"] / point["power_w"] - 1) < 0.01, found
        assert found["points"][0]["power_w"] > 100, found  # two boards that wait
        os.unlink(counts)
        done = tune(m, *words, "--", sys.executable, "-c", RANKS, examples, counts, "2")
        assert done.returncode != 0 and "output differs" in done.stdout and "slowest of 2 ranks" in done.stdout, done
        comes_to_rest(m)


def it_stops_when_something_is_wrong():
    with tuned() as m:
        count = f"n=$(cat {m.path('n')} 2>/dev/null || echo 0); echo $((n + 1)) >{m.path('n')}; "
        for more, script, words in (
                ((), "exit 3", "failed with exit status 3"),
                (("--same-output",), "cat " + m.path("n"), "output differs"),
                (("--check", f"test $(cat {m.path('n')}) -lt 3"), "true", "says no"),
                ((), "kill -9 $$", "killed by signal 9")):
            if os.path.exists(m.path("n")):
                os.unlink(m.path("n"))
            done = tune(m, *more, "--clocks", "1000", "--", "sh", "-c", count + script)
            assert done.returncode not in (0, 64) and words in done.stdout, done
            comes_to_rest(m)
        done = tune(m, "--save", "never", "--", "false")
        assert done.returncode != 0 and "No profiles yet" in tune(m, "--profiles").stdout, done


def an_xid_or_an_ecc_error_stops_the_sweep():
    with tuned() as m:
        for fault, said in (("xid=92", "XID 92 while it ran"), ("ecc-corrected", "ECC error while it ran")):
            process = begin(m, "--clocks", "1500,1000", "--save", "x", "--", *load(m, "--steps", "30"))
            kit.until(lambda: m.boards()[0]["processes"], m.boards)
            m.twin("fault", "0", fault)
            assert process.wait(kit.WAIT_S) != 0
            assert said in m.said(), m.said()
            comes_to_rest(m)
            m.twin("fault", "0", "none")
        assert "No profiles yet" in tune(m, "--profiles").stdout


def clocks_are_back_however_it_ends():
    with tuned() as m:
        words = ("--clocks", "1500,1000", "--", *load(m, "--steps", "600"))
        process = begin(m, *words)
        os.kill(process.pid, signal.SIGINT)
        process.wait(kit.WAIT_S)
        comes_to_rest(m)
        process = begin(m, *words)
        process.kill()
        process.wait(kit.WAIT_S)
        comes_to_rest(m)
        process = begin(m, *words)
        os.kill(m.client().live()[0]["pid"], signal.SIGKILL)
        assert process.wait(kit.WAIT_S) != 0
        comes_to_rest(m)


def clocks_are_back_after_death_at_each_point():
    with tuned() as m:
        for point in ("tune.before_set:2", "tune.after_set:2", "tune.in_run:2", "tune.before_report",
                      "tune.before_save"):
            process = begin(m, "--clocks", "1000", "--repeat", "1", "--save", "x", "--", *load(m, "--steps", "2"),
                            wait=False, TAKT_CRASH_AT=point)
            assert process.wait(kit.WAIT_S) != 0, point
            comes_to_rest(m)
            assert "No profiles yet" in tune(m, "--profiles").stdout, point


def without_permission_it_measures_what_is():
    with tuned() as m:
        m.twin("fault", "0", "permission")
        done = tune(m, "--clocks", "1000", "--repeat", "1", "--", *load(m, "--steps", "3"))
        assert done.returncode == 0 and "takt may not set" in done.stdout, done
        assert "nvidia-smi" in done.stdout or "permission" in done.stdout, done
        assert not m.locked()


def the_built_in_benchmark_says_simulated_and_counts_steps():
    with tuned() as m:
        done = m.twin_exec("bench", "gpu", "--seconds", "4", "--json")
        found = json.loads(done.stdout)
        assert found["simulated"] and found["unit"] == "step" and 8 < found["performance"] < 11, found
        assert not {"peak", "share_of_peak_pct", "dtype", "size"} & found.keys() and found["power_w"] > 300, found
        said = m.twin_exec("bench", "gpu", "--seconds", "1", "--kind", "stream").stdout
        assert said.startswith("SIMULATED") and "FLOP" not in said and "GB/s" not in said, said
        found = result(tune(m, "--bench", "stream", "--clocks", "1000", "--repeat", "1", "--for", "1s", "--max-slowdown",
                            "10%", "--json"))
        assert found["simulated"] and found["unit"] == "step", found
        assert found["recommended"]["sm_mhz"] == 1000, found  # bound to memory
        assert found["not_compared"] == "the simulated driver computes nothing" and "compared" not in found, found
        comes_to_rest(m)


# Stands in for takt-bench on a board that is real: the simulated load works nothing out, so the answers are made up here.
STAND_IN = """#!/bin/sh
if [ "$1" = gpu ]; then
    echo run >>{runs}
    [ $(wc -l <{runs}) -lt {wrong_from} ] && sum=1234abcd || sum=1234abce
    {real} "$@" | sed 's/}}$/,"result_crc32c":"'$sum'"}}/'
else
    {real} "$@" | sed -u 's/^ready 1 /ready 0 /'
fi
"""


def the_benchmarks_product_is_compared():
    with tuned() as m:
        bench, runs = m.path("bin/takt-bench"), m.path("runs")
        real = os.path.join(kit.BUILD, "src/daemon/takt-bench")

        def sweep(wrong_from):
            os.unlink(bench)
            kit.write_program(bench, STAND_IN.format(real=real, runs=runs, wrong_from=wrong_from))
            return tune(m, "--bench", "matmul", "--clocks", "1000", "--repeat", "1", "--for", "1s")

        done = sweep(wrong_from=100)
        assert done.returncode == 0 and "The product was the same in all runs." in done.stdout, done
        os.unlink(runs)
        done = sweep(wrong_from=3)
        assert done.returncode != 0 and "the benchmark's result differs from that of its first run" in done.stdout, done
        comes_to_rest(m)


def what_dies_in_the_driver_is_an_error_with_a_name():
    with tuned() as m:
        kit.write_program(m.path("dies"), "#!/bin/sh\nkill -SEGV $$\n")
        done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", "env", "TAKT_TWIN_PROGRAM=" + m.path("dies"),
                     m.path("bin/takt"), "bench", "gpu", "--seconds", "1")
        assert done.returncode == 1 and "killed by signal 11" in done.stderr, done
        done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", "env", "TAKT_TWIN_PROGRAM=/nowhere/twin",
                     m.path("bin/takt"), "bench", "gpu", "--seconds", "1")
        assert done.returncode == 69 and "stands in for CUDA here, cannot be started" in done.stderr, done
        done = m.takt("bench", "gpu")  # no driver at all
        assert done.returncode == 69 and "driver" in done.stderr, done
        for words, said in ((("--dtype", "f8"), "f16, bf16"), (("--kind", "x"), "matmul or stream"),
                            (("--seconds", "0"), "1 to 3600"), (("--size", "70000"), "65536 at most")):
            done = m.takt("bench", "gpu", *words)
            assert done.returncode == 64 and said in done.stderr, done


def wrong_words_are_named():
    with tuned() as m:
        for words, said in ((("--clocks", "1000", "--steps", "3"), "exclude each other"),
                            (("--bench", "fft"), "matmul or stream"), (("--save", "a b", "--", "true"), "name of a job"),
                            (("--bench", "matmul", "--", "true"), "not both"), ((), "say what to run"), (("--for", "1s"), "--bench matmul"),
                            (("--same-output", "--any-output", "--", "true"), "exclude each other")):
            done = tune(m, *words)
            assert done.returncode == 64 and said in done.stderr, done
        for words, said in ((("--clocks", "99999", "--", "true"), "are accepted"),
                            (("--metric", "speed", "--", "true"), "progress or time"),
                            (("--max-slowdown", "much", "--", "true"), "such as 5%")):
            done = tune(m, *words)
            assert done.returncode == 64 and said in done.stdout, done
        assert not m.locked()


if __name__ == "__main__":
    sys.exit(kit.main([
        it_recommends_what_the_boards_curve_says,
        what_runs_print_is_compared,
        a_limit_that_was_kept_is_what_a_job_gets,
        it_runs_on_the_gpu_that_is_named,
        a_profile_of_another_board_is_not_used,
        a_png_is_drawn_by_another_program,
        a_tight_promise_keeps_the_highest_clock_and_power_limits_are_tried,
        progress_is_what_it_goes_by,
        of_ranks_the_slowest_counts_and_the_result_of_each,
        it_stops_when_something_is_wrong,
        an_xid_or_an_ecc_error_stops_the_sweep,
        clocks_are_back_however_it_ends,
        clocks_are_back_after_death_at_each_point,
        without_permission_it_measures_what_is,
        the_built_in_benchmark_says_simulated_and_counts_steps,
        the_benchmarks_product_is_compared,
        what_dies_in_the_driver_is_an_error_with_a_name,
        wrong_words_are_named,
    ], at_once=4))
