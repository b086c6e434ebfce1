#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One machine, end to end: a job is submitted, runs on its GPUs, and its report says so.

Usage: smoke.py BUILD_FOLDER
"""
import contextlib
import fcntl
import glob
import os
import sys

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


def looks(client, gpu):
    """How often takt has looked at that GPU so far."""
    return next(count for name, count in client.metrics().items()
                if name.startswith(f'takt_gpu_readings_total{{gpu="{gpu}"'))


def at_once(client, gpu, times, do):
    """Waits until `do` was done so often while takt looked at that GPU, which a job has, less than a third as often. What
    waits for takt's next look each time takes nearly one look each; on a machine that is busy for a while others do, too."""
    def looks_meanwhile():
        before = looks(client, gpu)
        for _ in range(times):
            do()
        took.append(looks(client, gpu) - before)
        return took[-1]
    took = []
    kit.until(lambda: looks_meanwhile() < times // 3, lambda: f"{times} times in less than {times // 3} looks; they took {took}")


@contextlib.contextmanager
def rarely_looking(gpus):
    """takt looks at its GPUs once a second, of which a job has so many: a client, and the number of one of them."""
    with kit.machine() as m:
        m.start("--sample-hz", "1")
        client = m.client()
        holder = client.submit(["sleep", "1000"], gpus=gpus)["id"]
        kit.until(lambda: client.job(holder)["state"] == "running", lambda: client.job(holder))
        yield client, client.job(holder)["gpu_list"][0]


def an_answer_comes_when_it_is_there():
    """A job on disk is answered for at once, not when takt wakes up for something else."""
    with rarely_looking(8) as (client, gpu):  # what follows waits
        at_once(client, gpu, 20, lambda: client.submit(["true"], gpus=1))


def the_end_of_a_job_is_told_at_once():
    with rarely_looking(1) as (client, gpu):
        at_once(client, gpu, 20, lambda: client.wait(client.submit(["true"], gpus=0)["id"]))


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
