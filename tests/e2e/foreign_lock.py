#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A clock that somebody else locked before takt came stays locked. One that is locked over takt's own, lower, is found: takt cannot tell
it from its own in force, so it puts that back once, sets nothing more, does not fight, and says what it found.

The boards are the witness, with how often anything was set on them. The lock is set as nvidia-smi -lgc does.

Usage: foreign_lock.py BUILD_FOLDER
"""
import contextlib
import json
import os
import signal
import sys

import kit
import looks

THEIRS, OURS, LOW = 900, 1200, 705
LOCK = os.path.join(kit.BUILD, "tests/e2e/takt-lock-clocks")


def lock(m, gpu, mhz=THEIRS):
    """What somebody does who is not takt; 0 MHz: nvidia-smi -rgc."""
    done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", LOCK, str(gpu), str(mhz))
    assert done.returncode == 0, done


@contextlib.contextmanager
def machine(*flags, gpus=1, locked=False):
    with kit.machine(gpus=gpus) as m:
        m.assume_unlocked = False
        m.more_flags = flags
        if locked:
            lock(m, 0)
        m.start()
        m.talk = m.client()
        yield m


def state(m, gpu=0):
    return m.talk.status()["gpus"][gpu]


def calls(m):
    return [board["setter_calls"] for board in m.boards()]


def comes_to(m, what):
    kit.until(lambda: state(m)["clock_state"] == what, lambda: f"{what}: {state(m)} {m.said()}")


def busy(m, **more):
    return m.talk.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=1,
                             **{"clock_ask": "ceiling", "clock_mhz": OURS, **more})["id"]


def over(m, job):
    m.talk.cancel(job)
    return m.talk.wait(job)


def an_idle_gpu_is_left_alone_and_the_job_told():
    with machine() as m:
        before = calls(m)
        job = m.talk.submit(["/bin/sleep", "600"], gpus=1, clock_ask="ceiling", clock_mhz=OURS)["id"]
        comes_to(m, "waiting")
        kit.until(lambda: m.talk.job(job)["state"] == "running", "it runs meanwhile")
        for words in (("status",), ("clock",), ("show", str(job))):
            text = m.takt(*words).stdout
            assert "first to be seen under load" in text and "--assume-unlocked" in text, (words, text)
        ended = over(m, job)
        assert any("first to be seen under load" in str(value) for value in ended.values()), ended
        comes_to(m, "clean")
        assert calls(m) == before, m.boards()


def under_load_the_clock_is_set_and_goes_back():
    with machine() as m:
        job = busy(m)
        comes_to(m, "leased")
        assert m.locked() == {0: (345, OURS)}, m.locked()
        kit.until(lambda: f"SM clock within [345, {OURS}] MHz" in m.takt("show", str(job)).stdout,
                  lambda: m.takt("show", str(job)))
        over(m, job)
        kit.until(lambda: not m.locked(), m.locked)
        # What takt has lifted is nobody's any more.
        job = m.talk.submit(["/bin/sleep", "600"], gpus=1, clock_ask="ceiling", clock_mhz=OURS)["id"]
        comes_to(m, "leased")
        over(m, job)


def a_lock_of_others_outlives_jobs_and_takt():
    with machine(locked=True) as m:
        before, theirs = calls(m), {0: (345, THEIRS)}
        job = busy(m)
        comes_to(m, "advise")
        for words in (("status",), ("clock",), ("show", str(job))):
            text = m.takt(*words).stdout
            assert f"ran at {THEIRS} MHz under load" in text and "nvidia-smi -rgc" in text, (words, text)
        over(m, job)
        comes_to(m, "clean")
        assert m.stop() == 0
        assert m.locked() == theirs and calls(m) == before, m.boards()


def it_is_found_anew_after_any_death():
    with machine(locked=True) as m:
        before, theirs = calls(m), {0: (345, THEIRS)}
        job = busy(m)
        comes_to(m, "advise")
        m.kill()
        m.start()
        m.talk = m.client()
        comes_to(m, "advise")
        (actuator,) = m.pids("takt-actuate")
        os.kill(actuator, signal.SIGKILL)
        kit.until(lambda: m.pids("takt-actuate") not in ([], [actuator]), m.said)
        comes_to(m, "advise")
        assert m.locked() == theirs and calls(m) == before, m.boards()
        lock(m, 0, 0)  # and once it is lifted, the job has its clock
        comes_to(m, "leased")
        assert m.locked() == {0: (345, OURS)}, m.locked()
        over(m, job)
        kit.until(lambda: not m.locked(), m.locked)


def what_is_held_back_tells_nothing():
    with machine() as m:
        m.twin("fault", "0", "power-brake")
        job = busy(m)
        kit.until(lambda: "hw_slowdown" in state(m).get("clock_note", ""), lambda: state(m))
        assert state(m)["clock_state"] == "waiting" and not m.locked(), state(m)
        m.twin("fault", "0", "none")
        comes_to(m, "leased")
        over(m, job)


def an_administrator_is_asked_or_says_it():
    with machine(gpus=2) as m:
        before = calls(m)
        refused = m.takt("clock", "set", "--gpus", "0", str(OURS))
        assert refused.returncode != 0 and "--assume-unlocked" in refused.stderr, refused
        assert "takt clock apply" in refused.stderr and calls(m) == before, refused
        comes_to(m, "clean")  # no wish is left behind
        done = m.takt("clock", "set", "--gpus", "0", "--assume-unlocked", str(OURS), "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["gpus"][0]["clock_state"] == "leased", done
        assert m.locked() == {0: (345, OURS)}, m.locked()
        with open(m.path("clocks.toml"), "w", encoding="ascii") as file:
            file.write("[[gpu]]\npower_w = 500\n")
        assert m.takt("clock", "apply", "--file", m.path("clocks.toml")).returncode == 0
        done = m.takt("clock", "set", "--gpus", "1", str(OURS))
        assert done.returncode == 0 and set(m.locked()) == {0, 1}, done
        assert m.takt("clock", "set", "--assume-unlocked", "--cpu-max-mhz", "2000").returncode == 64


def the_configuration_says_it_for_all():
    with machine("--assume-unlocked") as m:
        assert m.takt("clock", "set", "--gpus", "0", str(OURS)).returncode == 0
        assert m.locked() == {0: (345, OURS)}, m.locked()


def a_governed_job_stays_at_the_default():
    with machine("--clock-epoch", "500ms", locked=True) as m:
        before = calls(m)
        job = m.talk.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=1, max_slowdown_permille=50)["id"]
        kit.until(lambda: m.talk.job(job).get("governed", {}).get("state") == "advises",
                  lambda: m.talk.job(job))
        assert "nvidia-smi -rgc" in m.takt("show", str(job)).stdout, m.takt("show", str(job))
        assert calls(m) == before, m.boards()
        lock(m, 0, 0)
        kit.until(lambda: m.talk.job(job)["governed"].get("state") == "holds",
                  lambda: m.talk.job(job))
        over(m, job)
        kit.until(lambda: not m.locked(), m.locked)


def gpus_of_a_governed_job_stand_alike():
    with machine("--clock-epoch", "500ms", gpus=2, locked=True) as m:
        job = m.talk.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=2, max_slowdown_permille=50)["id"]
        kit.until(lambda: m.talk.job(job).get("governed", {}).get("state") == "over",
                  lambda: m.talk.job(job))
        assert "refused on GPU 0" in m.talk.job(job)["governed"]["note"], m.talk.job(job)
        kit.until(lambda: m.locked() == {0: (345, THEIRS)}, m.locked)
        over(m, job)


def a_benchmark_looks_in_its_first_run():
    words = ("tune", "--clocks", "1500,1200", "--repeat", "1", "--json", "--")
    with machine() as m:
        m.more_env["XDG_STATE_HOME"] = m.path("home")
        load = m.load_argv("--profile", "gemm", "--quiet", "--seconds", "2")
        done = m.run(m.path("bin/takt"), *words, *load, cwd=m.folder)
        assert done.returncode == 0, done
        assert len(json.loads(done.stdout)["points"]) == 3, done.stdout
        kit.until(lambda: not m.locked(), m.locked)
    with machine(locked=True) as m:
        m.more_env["XDG_STATE_HOME"] = m.path("home")
        before = calls(m)
        done = m.run(m.path("bin/takt"), *words, *load, cwd=m.folder)
        assert done.returncode == 0 and "nvidia-smi -rgc" in done.stdout, done
        assert len(json.loads(done.stdout)["points"]) == 1, done.stdout
        assert m.locked() == {0: (345, THEIRS)} and calls(m) == before, m.boards()


def a_lower_lock_over_takts_own_has_that_put_back_once():
    with machine(gpus=2) as m:
        jobs = [busy(m), busy(m, clock_ask="lock")]
        gpus = [m.talk.job(job)["gpu_list"][0] for job in jobs]
        for gpu in gpus:
            kit.until(lambda gpu=gpu: state(m, gpu)["clock_state"] == "leased", lambda: state(m))
        assert m.locked() == dict(zip(gpus, [(345, OURS), (OURS, OURS)])), m.locked()
        for gpu in gpus:
            lock(m, gpu, LOW)
        for gpu, job, low in zip(gpus, jobs, (345, OURS)):
            kit.until(lambda gpu=gpu: state(m, gpu)["clock_state"] == "foreign",
                      lambda gpu=gpu: (state(m, gpu), m.said()))
            note = f"SM clock {LOW} MHz under load for no reason although takt set [{low},{OURS}] MHz"
            for words in (("status",), ("clock",), ("show", str(job))):
                kit.until(lambda words=words, note=note: note in m.takt(*words).stdout, (words, note))
        assert not m.locked(), m.locked()  # takt's own may have been in force
        for gpu in gpus:
            lock(m, gpu, LOW)  # who wants it still
        before, theirs = calls(m), {0: (345, LOW), 1: (345, LOW)}
        for gpu in gpus:
            looks.read_again(m.talk, gpu, 60)
        for job in jobs:
            over(m, job)
        assert m.stop() == 0
        assert m.locked() == theirs and calls(m) == before, m.boards()


def a_governor_does_not_overwrite_a_lower_lock():
    with machine("--clock-epoch", "1s") as m:
        job = m.talk.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=1, max_slowdown_permille=50)["id"]

        def governed():
            return m.talk.job(job).get("governed", {})

        # One epoch has just begun: the next wish is a while away.
        kit.until(lambda: governed().get("epochs", 0) >= 6, governed)
        seen = governed()["epochs"]
        kit.until(lambda: governed()["epochs"] > seen, governed)
        lock(m, 0, LOW)
        kit.until(lambda: governed().get("state") == "over", lambda: (governed(), m.locked()))
        assert "somebody else sets GPU 0" in governed()["note"], governed()
        kit.until(lambda: not m.locked(), m.locked)  # with takt's own
        lock(m, 0, LOW)
        before = calls(m)
        for each in m.talk.ask("GET", f"/v1/jobs/{job}/course")["decisions"]:
            assert not each["epochs"] or each["sm_mhz"] > 1.2 * LOW, each  # none of it counted
        over(m, job)
        assert m.locked() == {0: (345, LOW)} and calls(m) == before, m.boards()


def what_holds_a_board_back_is_nobodys_lock():
    """A hot board, one with a cap and one with its power brake on run below their range for as long as one looks."""
    with machine("--assume-unlocked", gpus=3) as m:
        m.twin("fault", "0", "power-brake")
        m.twin("fault", "1", "air=40")
        assert m.takt("clock", "cap", "--gpus", "2", "--watts", "250", "--reason", "rack").returncode == 0
        jobs = [busy(m, clock_mhz=1980) for _ in range(3)]
        m.twin("time", "--advance", "300s")
        kit.until(lambda: all(state(m, gpu)["sm_mhz"] < 1700 for gpu in range(3)), lambda: [state(m, g) for g in range(3)])
        for gpu in range(3):
            looks.read_again(m.talk, gpu, 90 if gpu == 0 else 1)
        for gpu in range(3):
            assert state(m, gpu)["clock_state"] == "leased", state(m, gpu)
        for job in jobs:
            over(m, job)


if __name__ == "__main__":
    sys.exit(kit.main([
        an_idle_gpu_is_left_alone_and_the_job_told,
        under_load_the_clock_is_set_and_goes_back,
        a_lock_of_others_outlives_jobs_and_takt,
        it_is_found_anew_after_any_death,
        what_is_held_back_tells_nothing,
        an_administrator_is_asked_or_says_it,
        the_configuration_says_it_for_all,
        a_governed_job_stays_at_the_default,
        gpus_of_a_governed_job_stand_alike,
        a_benchmark_looks_in_its_first_run,
        a_lower_lock_over_takts_own_has_that_put_back_once,
        a_governor_does_not_overwrite_a_lower_lock,
        what_holds_a_board_back_is_nobodys_lock,
    ]))
