#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The next job is made ready before its GPUs are free, starts once, and leaves nothing when it is not to start.

Usage: staging.py BUILD_FOLDER
"""
import contextlib
import os
import signal
import sys

import kit

ALL = ("--stage", "all")


def is_staged(m, job, attempt=1):
    """Its process waits, as its own directory says, and nothing of it has run."""
    folder = m.path(f"state/jobs/{job}.{attempt}")
    return os.path.exists(f"{folder}/staged") and not os.path.exists(f"{folder}/started")


def until_staged(m, job, attempt=1):
    kit.until(lambda: is_staged(m, job, attempt), lambda: f"job {job} is staged: {m.client().job(job)}")


def holder(m, client, gpus):
    """A job on all GPUs that ends when it is told to."""
    job = client.submit(["/bin/sh", "-c", f"while [ ! -e {m.path('free')} ]; do sleep 0.02; done"], gpus=gpus)["id"]
    kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
    return job


def free(m):
    with open(m.path("free"), "w", encoding="ascii"):
        pass


def runs_of(m, job):
    return [begin for begin in m.witness().begins if begin.job == job]


def expect_ran_once(m, client, job, gpus):
    view = client.wait(job)
    assert (view["state"], view["exit_code"]) == ("done", 0), view
    (begin,) = runs_of(m, job)
    assert len(begin.gpus) == gpus and list(begin.gpus) == view["gpu_list"], (begin, view)
    return view


def waiting_ranks(m, job):
    """Processes of its first attempt that are forked and wait: they still look like their shim."""
    parents = {}
    for pid in m.pids("takt-shim"):
        with contextlib.suppress(OSError, IndexError):  # it may end, or become the job, meanwhile
            if kit.environ_of(pid, "cmdline").split(b"\0")[1] == f"{job}.1".encode():
                parents[pid] = kit.parent_of(pid)
    return sorted(pid for pid, parent in parents.items() if parent in parents)


def lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def expect_nothing_left(m, job):
    kit.until(lambda: not [key for key in m.shims() if key[0] == job], lambda: m.shims())


def the_next_job_waits_with_everything_but_its_gpus():
    with kit.machine(gpus=2) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 2)
        job = client.submit(m.witness_argv(10), gpus=1)["id"]
        until_staged(m, job)
        view = client.job(job)
        assert view["state"] == "waiting" and not view["gpu_list"] and not runs_of(m, job), view
        shim = m.shims()[job, 1]
        free(m)
        view = expect_ran_once(m, client, job, 1)
        assert view["attempt"] == 1, view
        expect_nothing_left(m, job)
        assert not os.path.exists(f"/proc/{shim}"), shim
        assert m.stop() == 0


def only_who_asks_is_staged_out_of_the_box():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        holder(m, client, 1)
        plain = client.submit(m.witness_argv(10), gpus=1)["id"]
        asked = int(m.takt("submit", "-q", "--gpus", "1", "--priority", "5", "--stage", "--",
                           *m.witness_argv(10)).stdout)
        until_staged(m, asked)
        assert not os.path.exists(m.path(f"state/jobs/{plain}.1")), plain
        free(m)
        expect_ran_once(m, client, asked, 1)
        expect_ran_once(m, client, plain, 1)


def a_prefetch_comes_before_the_job_and_cannot_hurt_it():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        holder(m, client, 1)
        job = int(m.takt("submit", "-q", "--gpus", "1", "--prefetch",
                         f"echo fetched GPUs=[$CUDA_VISIBLE_DEVICES]; touch {m.path('fetched')}; exit 9", "--",
                         *m.witness_argv(10)).stdout)
        kit.until(lambda: os.path.exists(m.path("fetched")), "the prefetch has run")
        kit.until(lambda: "exit status 9" in m.takt("logs", str(job)).stdout,
                  lambda: m.takt("logs", str(job)).stdout)
        assert not runs_of(m, job)
        free(m)
        expect_ran_once(m, client, job, 1)
        assert "fetched GPUs=[]\n" in m.takt("logs", str(job)).stdout


def cancelled_it_leaves_nothing():
    with kit.machine(gpus=1) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 1)
        job = client.submit(m.witness_argv(10), gpus=1, prefetch=["/bin/sh", "-c", "setsid sleep 1000 & sleep 1000"])["id"]
        until_staged(m, job)
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"
        expect_nothing_left(m, job)
        kit.until(lambda: not any(kit.is_running(pid, b"sleep\x001000") for pid in m.pids("job")), lambda: m.processes())
        free(m)
        assert not runs_of(m, job)


def ranks_are_staged_and_meet_at_a_port_found_when_their_turn_comes():
    with kit.machine(gpus=2) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 2)
        say = f'echo "$RANK $WORLD_SIZE $MASTER_PORT $CUDA_VISIBLE_DEVICES" >>{m.path("said")}; ' \
              f'while [ ! -e {m.path("over")} ]; do sleep 0.02; done'
        job = client.submit(["/bin/sh", "-c", say], gpus=2, ranks=2, rank_prefix=True,
                            prefetch=["/bin/sh", "-c", "echo fetched"])["id"]
        until_staged(m, job)
        kit.until(lambda: len(waiting_ranks(m, job)) == 2, m.processes)
        kit.until(lambda: "fetched\n" in m.takt("logs", str(job)).stdout, "the prefetch has run")
        assert not os.path.exists(m.path("said"))
        free(m)
        kit.until(lambda: os.path.exists(m.path("said")) and len(lines(m.path("said"))) == 2, "both run")
        m.kill()  # the next one knows the port, and gives it to nobody else
        m.start(*ALL)
        client = m.client()
        ranks = sorted(line.split() for line in lines(m.path("said")))
        assert [(rank, world, gpus) for rank, world, _, gpus in ranks] == [("0", "2", "0,1"), ("1", "2", "0,1")], ranks
        assert ranks[0][2] == ranks[1][2] and int(ranks[0][2]) > 0, ranks
        with open(m.path("over"), "w", encoding="ascii"):
            pass
        view = client.wait(job)
        assert (view["state"], view["attempt"]) == ("done", 1), view
        expect_nothing_left(m, job)


def a_rank_that_is_killed_while_it_waits_ends_the_wait_of_all():
    with kit.machine(gpus=2) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 2)
        job = client.submit(["/bin/sh", "-c", f'echo "$RANK" >>{m.path("said")}'], gpus=2, ranks=2)["id"]
        until_staged(m, job)
        os.kill(waiting_ranks(m, job)[1], signal.SIGKILL)
        kit.until(lambda: os.path.exists(m.path(f"state/jobs/{job}.1/exit")), "the attempt is over")
        free(m)
        view = client.wait(job)
        assert view["state"] == "done" and view["attempt"] > 1, view
        assert sorted(lines(m.path("said"))) == ["0", "1"], lines(m.path("said"))


def a_terminal_is_staged():
    with kit.machine(gpus=1) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 1)
        job = client.submit(["/bin/sh", "-c", "test -t 0 && test -t 1 && echo it is a terminal"], gpus=1, pty=True,
                            prefetch=["/bin/sh", "-c", "test -t 1 || echo fetched without"])["id"]
        until_staged(m, job)
        kit.until(lambda: "fetched without" in m.takt("logs", str(job)).stdout, "the prefetch has run")
        free(m)
        view = client.wait(job)
        assert (view["state"], view["attempt"]) == ("done", 1), view
        assert "it is a terminal" in m.takt("logs", str(job)).stdout, m.takt("logs", str(job)).stdout


def a_job_of_higher_rank_goes_first():
    with kit.machine(gpus=1) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 1)
        first = client.submit(m.witness_argv(10), gpus=1)["id"]
        until_staged(m, first)
        higher = client.submit(m.witness_argv(10), gpus=1, priority=9)["id"]
        until_staged(m, higher)
        expect_nothing_left(m, first)
        free(m)
        expect_ran_once(m, client, higher, 1)
        expect_ran_once(m, client, first, 1)
        (a,), (b,) = runs_of(m, higher), runs_of(m, first)
        assert a.begin_ns < b.begin_ns


def a_killed_daemon_takes_it_over():
    with kit.machine(gpus=1) as m:
        m.start(*ALL)
        client = m.client()
        running = holder(m, client, 1)
        job = client.submit(m.witness_argv(10), gpus=1)["id"]
        until_staged(m, job)
        shim = m.shims()[job, 1]
        m.kill()
        m.start(*ALL)
        client = m.client()
        assert client.job(running)["state"] == "running"
        assert m.shims()[job, 1] == shim
        free(m)
        assert expect_ran_once(m, client, job, 1)["attempt"] == 1


def a_daemon_that_stages_nothing_calls_it_off():
    with kit.machine(gpus=1) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 1)
        job = client.submit(m.witness_argv(10), gpus=1)["id"]
        until_staged(m, job)
        m.kill()
        m.start("--stage", "off")
        client = m.client()
        expect_nothing_left(m, job)
        free(m)
        assert expect_ran_once(m, client, job, 1)["attempt"] == 2


def whoever_is_killed_the_job_runs_once():
    with kit.machine(gpus=1) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 1)
        job = client.submit(m.witness_argv(10), gpus=1)["id"]
        until_staged(m, job)
        os.kill(m.shims()[job, 1], signal.SIGKILL)
        for pid in m.pids("takt-launch"):
            os.kill(pid, signal.SIGKILL)
        free(m)
        expect_ran_once(m, client, job, 1)


def the_gaps_are_told_apart():
    with kit.machine(gpus=1) as m:
        m.start(*ALL)
        client = m.client()
        holder(m, client, 1)
        job = client.submit(m.witness_argv(10), gpus=1)["id"]
        until_staged(m, job)
        free(m)
        report = expect_ran_once(m, client, job, 1)["report"]
        gaps = {name: value for name, value in report.items() if name.startswith("gap_")}
        assert set(gaps) == {"gap_driver_us", "gap_scheduler_us", "gap_start_us"}, report
        assert all(gap > 0 for gap in gaps.values()), gaps
        (gpu,) = client.status()["gpus"]
        assert gpu["gap_job_id"] == job and gaps.items() <= gpu.items(), gpu
        metrics = client.metrics()
        assert metrics["takt_handover_starts_total"] == 1 and metrics["takt_handover_processes_total"] == 1, metrics
        for name, us in gaps.items():
            name = f"takt_handover_{name[4:-3]}_seconds_total"
            assert metrics[name] >= (us - 1) / 1e6, (name, metrics[name], gaps)
        shown = m.takt("show", str(job)).stdout
        assert "hand-over     " in shown and "to schedule" in shown, shown


if __name__ == "__main__":
    sys.exit(kit.main([
        the_next_job_waits_with_everything_but_its_gpus,
        only_who_asks_is_staged_out_of_the_box,
        a_prefetch_comes_before_the_job_and_cannot_hurt_it,
        cancelled_it_leaves_nothing,
        ranks_are_staged_and_meet_at_a_port_found_when_their_turn_comes,
        a_rank_that_is_killed_while_it_waits_ends_the_wait_of_all,
        a_terminal_is_staged,
        a_job_of_higher_rank_goes_first,
        a_killed_daemon_takes_it_over,
        a_daemon_that_stages_nothing_calls_it_off,
        whoever_is_killed_the_job_runs_once,
        the_gaps_are_told_apart,
    ]))
