#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody sets the clock of the machine while jobs wait and run, of takt and of its shims alike (clock_jump.c).

Usage: wall_clock.py BUILD_FOLDER
"""
import contextlib
import os
import struct
import sys
import tempfile
import time

import kit

HOUR_S = 3600
DAY_S = 24 * HOUR_S
SHIM = """#!/bin/sh
LD_PRELOAD={library} JUMP_FILE={file} exec {shim} "$@"
"""


class Clock:
    """How far the wall clock of takt and of its shims is ahead of the machine's."""

    def __init__(self, m):
        self.path = m.path("jump")
        with open(self.path, "wb") as file:
            file.write(struct.pack("=q", 0))

    def set_to(self, seconds):
        with open(self.path, "r+b", buffering=0) as file:
            file.write(struct.pack("=q", int(seconds * 1e9)))
        self.ahead_s = seconds

    def ms(self, seconds):
        """So far from now, as takt's clock has it."""
        return int((time.time() + self.ahead_s + seconds) * 1000)


@contextlib.contextmanager
def machine(gpus, shim_file=None):
    with kit.machine(gpus=gpus) as m:
        clock = Clock(m)
        real = os.path.realpath(m.path("bin/takt-shim"))
        os.unlink(m.path("bin/takt-shim"))
        with open(m.path("bin/takt-shim"), "w", encoding="utf-8") as file:
            file.write(SHIM.format(library=kit.CLOCK_JUMP, file=shim_file or clock.path, shim=real))
        os.chmod(m.path("bin/takt-shim"), 0o755)
        m.more_env = {"LD_PRELOAD": kit.CLOCK_JUMP, "JUMP_FILE": clock.path}
        clock.set_to(HOUR_S)
        m.start()
        yield m, clock


def begun(m, job):
    return [begin for begin in m.witness().begins if begin.job == job]


def running(m, client, **more):
    job = client.submit(m.witness_argv(600_000), gpus=1, **more)["id"]
    kit.until(lambda: begun(m, job), lambda: client.job(job))
    kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
    return job


def looked_again(client):
    """takt has looked at its jobs since: jobs without GPUs went through it, and one of them took its time."""
    for command in (["true"], ["sleep", "1"], ["true"]):
        assert client.wait(client.submit(command)["id"])["state"] == "done"


def the_processes_have_that_clock():
    with machine(1) as (m, clock):
        client = m.client()
        clock.set_to(DAY_S)
        view = client.wait(client.submit(m.witness_argv(1))["id"])
        for what in ("submitted_ms", "started_ms", "ended_ms"):
            assert abs(view[what] / 1000 - time.time() - DAY_S) < HOUR_S, (what, view)


def a_time_limit_does_not_come_nearer():
    with machine(2) as (m, clock):
        client = m.client()
        limited = running(m, client, time_limit_ms=HOUR_S * 1000)
        other = running(m, client, deadline_ms=clock.ms(HOUR_S))
        for seconds in (2 * DAY_S, -DAY_S, 30 * DAY_S):
            clock.set_to(seconds)
            looked_again(client)
        m.kill()
        clock.set_to(90 * DAY_S)
        m.start()
        client = m.client()
        looked_again(client)
        for job in (limited, other):
            view = client.job(job)
            assert view["state"] == "running" and len(begun(m, job)) == 1, view
            client.cancel(job)
            report = client.wait(job)["report"]
            assert report["wall_ms"] < HOUR_S * 1000, report


def a_pause_before_a_retry_stays_as_long():
    fails = ["/bin/sh", "-c", '"$@"; exit 1', "sh"]
    with machine(2) as (m, clock):
        client = m.client()
        for seconds in (DAY_S, -DAY_S):
            job = client.submit([*fails, *m.witness_argv(1)], gpus=1, retries=1, retry_backoff_ms=3000)["id"]
            kit.until(lambda j=job: client.job(j).get("message", "").startswith("failed"),
                      lambda j=job: client.job(j))
            clock.set_to(seconds)
            assert client.wait(job)["state"] == "failed", client.job(job)
            first, second = begun(m, job)
            assert second.begin_ns - first.begin_ns >= 2.9e9, (first, second)


def a_job_begins_by_the_clock_as_it_is():
    with machine(1) as (m, clock):
        client = m.client()
        job = client.submit(m.witness_argv(1), gpus=1, begin_ms=clock.ms(2 * HOUR_S))["id"]
        clock.set_to(-DAY_S)
        looked_again(client)
        clock.set_to(2 * HOUR_S)
        looked_again(client)
        assert client.job(job)["state"] == "waiting" and not begun(m, job), client.job(job)
        clock.set_to(4 * HOUR_S)
        assert client.wait(job)["state"] == "done"


def a_reservation_holds_by_the_clock_as_it_is():
    with machine(1) as (m, clock):
        client = m.client()
        client.ask("POST", "/v1/gpus/reserve", {"gpus": [0], "from_ms": clock.ms(2 * HOUR_S),
                                                "until_ms": clock.ms(4 * HOUR_S), "reason": "a new fan"})
        clock.set_to(4 * HOUR_S)
        job = client.submit(m.witness_argv(1), gpus=1, time_limit_ms=60_000)["id"]
        looked_again(client)
        assert client.job(job)["state"] == "waiting", client.job(job)
        clock.set_to(0)
        assert client.wait(client.submit(["true"])["id"])["state"] == "done"
        assert client.wait(job)["state"] == "done", client.job(job)
        clock.set_to(4 * HOUR_S)
        later = client.submit(m.witness_argv(1), gpus=1, time_limit_ms=60_000)["id"]
        looked_again(client)
        assert client.job(later)["state"] == "waiting", client.job(later)
        clock.set_to(6 * HOUR_S)
        assert client.wait(later)["state"] == "done", client.job(later)


def a_gap_between_jobs_is_no_jump_of_the_clock():
    """The clock is set between takt's last look at it and the shim's first: here it stands so all the time."""
    with tempfile.NamedTemporaryFile() as ahead:
        ahead.write(struct.pack("=q", DAY_S * 10**9))
        ahead.flush()
        with machine(1, ahead.name) as (m, _):
            client = m.client()
            first = client.submit(m.witness_argv(600_000), gpus=1)["id"]
            kit.until(lambda: begun(m, first), lambda: client.job(first))
            second = client.submit(m.witness_argv(1), gpus=1)["id"]
            client.cancel(first)
            report = client.wait(second)["report"]
            assert report["gap_start_us"] < HOUR_S * 1e6, report
            assert client.metrics()["takt_handover_start_seconds_total"] < HOUR_S, client.metrics()


if __name__ == "__main__":
    sys.exit(kit.main([
        the_processes_have_that_clock,
        a_time_limit_does_not_come_nearer,
        a_pause_before_a_retry_stays_as_long,
        a_job_begins_by_the_clock_as_it_is,
        a_reservation_holds_by_the_clock_as_it_is,
        a_gap_between_jobs_is_no_jump_of_the_clock,
    ]))
