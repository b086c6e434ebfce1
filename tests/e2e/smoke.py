#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One machine, end to end: a job is submitted, runs on its GPUs, and its report says so.

Usage: smoke.py BUILD_FOLDER
"""
import contextlib
import fcntl
import glob
import os
import statistics
import sys
import time

import kit


def a_job_runs_where_takt_says():
    with kit.machine() as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(10), gpus=4)
        view = client.wait(job["id"])
        assert (view["state"], view["exit_code"]) == ("done", 0), view
        (end,) = m.witness().ends
        assert end.job == job["id"] and list(end.gpus) == view["gpu_list"], (end, view)
        assert view["simulated"] is True, view
        assert m.stop() == 0


def what_is_killed_leaves_nothing():
    with kit.machine() as m:
        m.start()
        m.client().submit(m.witness_argv(600_000), gpus=1)
        kit.until(lambda: m.witness().begins, "the job runs")
        kit.until(lambda: set(m.processes().values()) == {"takt", *kit.HELPERS, "job"},
                  lambda: f"all of takt is there: {m.processes()}")
    assert not m.processes()


def at_once(times, do, within_s):
    """Waits until `do` was done so often within that time. What has to wait for something else each time is never done
    so soon; on a machine that is busy for a while it is, sooner or later."""
    def took_s():
        begin = time.monotonic()
        for _ in range(times):
            do()
        took.append(time.monotonic() - begin)
        return took[-1]
    took = []
    kit.until(lambda: took_s() < within_s, lambda: f"{times} times within {within_s} s; they took {took} s")


def an_answer_comes_when_it_is_there():
    """A job on disk is answered for at once, not when takt wakes up for something else (1 Hz)."""
    with kit.machine() as m:
        m.start("--sample-hz", "1")
        client = m.client()
        client.submit(["sleep", "1000"], gpus=8)  # what follows waits
        at_once(20, lambda: client.submit(["true"], gpus=1), 8)  # takt's next look: 20 s


def the_end_of_a_job_is_told_at_once():
    with kit.machine() as m:
        m.start("--sample-hz", "1")
        client = m.client()

        def late_s():
            job = client.submit(m.witness_argv(150), gpus=1)["id"]
            client.wait(job)
            told = time.monotonic()
            return told - next(end.end_ns for end in m.witness().ends if end.job == job) / 1e9
        kit.until(lambda: statistics.median(late_s() for _ in range(10)) < 0.4, "ends are told before takt's next look (1 Hz)")


def lock_now(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def files_of(pid):
    """Paths of what it has open."""
    found = []
    with contextlib.suppress(OSError):  # it may end, or close one, meanwhile
        for number in os.listdir(f"/proc/{pid}/fd"):
            found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def locks_that_a_killed_takt_leaves_for_a_moment_are_waited_for():
    """A process that it was about to start holds them until it has become what it is to be."""
    with kit.machine(gpus=2) as m:
        m.start()
        m.kill()
        names = glob.glob(m.path("locks/*.lock")) + glob.glob(m.path("state/takt.db*lock*"))
        assert len(names) == 3, names
        files = [open(name, "rb") for name in names]
        for file in files:  # the killed one's helpers may hold them for a moment, too
            kit.until(lambda: lock_now(file), f"{file.name} is let go")
        m.spawn()
        kit.until(lambda: [pid for pid in m.pids("takt") if any(name in files_of(pid) for name in names)],
                  lambda: f"takt tries a lock: {m.processes()} {m.said()}")
        for file in files:
            file.close()
        kit.until(m.answers, m.said)
        assert m.client().status()["manages"], m.said()


if __name__ == "__main__":
    sys.exit(kit.main([a_job_runs_where_takt_says, what_is_killed_leaves_nothing,
                       an_answer_comes_when_it_is_there, the_end_of_a_job_is_told_at_once,
                       locks_that_a_killed_takt_leaves_for_a_moment_are_waited_for]))
