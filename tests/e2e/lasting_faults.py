#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A state that lasts costs no more than rest: what takt does is counted, not timed, against a GPU that is well and is
looked at at takt's own rate all the while."""
import contextlib
import sys
import time

import kit
import lasting

GPUS = 4
READINGS = 40  # of the GPU that is well, over which the others' are counted
TURNS = "takt_loop_turns_total"


def counts(client):
    """{GPU: readings} and the turns of the loop."""
    page = client.metrics()
    readings = {int(name.split('gpu="')[1].split('"')[0]): value for name, value in page.items()
                if name.startswith("takt_gpu_readings_total{")}
    return readings, page[TURNS]


def while_well_is_read(client, well):
    """What was counted while the GPU that is well was read so many times. takt renders its page once a second."""
    before, turns = counts(client)

    def over():
        time.sleep(0.5)
        return counts(client)[0][well] >= before[well] + READINGS
    kit.until(over, lambda: counts(client))
    after, later = counts(client)
    return {gpu: after[gpu] - before[gpu] for gpu in after}, later - turns


def assert_at_rest(client, well, what):
    """No GPU is looked at more than three times as often as the one that is well, nor does the loop go round more.
    What has just happened may be looked at quickly for a moment."""
    while_well_is_read(client, well)
    readings, turns = while_well_is_read(client, well)
    kit.note(f"{what}: readings {readings}, turns {turns}")
    assert all(count <= 3 * readings[well] for count in readings.values()), (what, readings)
    assert turns <= 3 * readings[well], (what, turns, readings)


def on_gpus_with_jobs(fault, gpus="1,2"):
    def case():
        with kit.machine(gpus=GPUS) as m:
            m.start()
            client = m.client()
            jobs = [client.submit(m.load_argv("--seconds", "600", "--quiet"), gpus=1)["id"] for _ in range(GPUS - 1)]
            kit.until(lambda: all(g["processes"] for g in m.boards()[:GPUS - 1]), "they compute")
            assert_at_rest(client, 0, "rest")
            m.twin("fault", gpus, fault)
            kit.until(lambda: any(client.job(job)["state"] in kit.ENDED for job in jobs) or fault not in FATAL,
                      lambda: [client.job(job) for job in jobs])
            assert_at_rest(client, 0, fault)
    case.__name__ = "under_jobs_" + fault.replace("-", "_").replace("=", "_")
    return case


FATAL = ("lost", "overheated")


def a_job_that_leaves_a_process_behind():
    """A GPU that does not get clean is looked at again and again, ever more seldom."""
    with kit.machine(gpus=2) as m:
        m.start("--drain-limit", "1h")
        client = m.client()
        left = " ".join(m.load_argv("--seconds", "600", "--quiet"))
        job = client.submit(["sh", "-c", f"setsid {left} >/dev/null 2>&1 & sleep 1"], gpus=1)["id"]
        client.wait(job)
        assert_at_rest(client, 1, "a process is left")


class Counted:
    """What takt did while the GPU that is well was read so many times."""

    def __init__(self, m, client, tries=lambda: 0):
        before, tried, begin = lasting.wakeups(m), tries(), time.monotonic()
        self.readings, self.turns = while_well_is_read(client, 0)
        self.tries, self.seconds = tries() - tried, time.monotonic() - begin
        self.woken = lasting.woken(before, lasting.wakeups(m))

    def __str__(self):
        return f"readings {self.readings}, turns {self.turns}, woken {self.woken} times, {self.tries} tries in {self.seconds:.1f} s"


@contextlib.contextmanager
def in_trouble(kind, *words, tries=lambda trouble: 0):
    """A machine on which that is the matter while GPU 0 is well and busy: no GPU is read more than three times as often
    as that one, the loop goes round and takt's processes are woken no more than three times as often as at rest."""
    with kit.machine(gpus=GPUS) as m:
        trouble = kind(m, *words)
        with trouble.world():
            m.start(*trouble.flags())
            client = m.client()
            client.submit(m.load_argv("--seconds", "600", "--quiet"), gpus=1)
            kit.until(lambda: m.boards()[0]["processes"], "it computes")
            rest = Counted(m, client)
            trouble.strike(client)
            while_well_is_read(client, 0)  # what has just happened may be looked at quickly for a moment
            now = Counted(m, client, lambda: tries(trouble))
            kit.note(f"rest: {rest}\n{kind.__name__} {' '.join(map(str, words))}: {now}")
            assert all(count <= 3 * now.readings[0] for count in now.readings.values()), f"{rest}; {now}"
            assert now.turns <= 3 * max(rest.turns, READINGS), f"{rest}; {now}"
            assert now.woken <= 3 * rest.woken, f"{rest}; {now}"
            yield m, client, trouble, now


def a_full_disk_under_the_queue():
    """Neither starts nor ends can be written down; both are, soon after there is room."""
    with in_trouble(lasting.FullDisk) as (_, client, trouble, _):
        assert client.job(trouble.ends)["state"] == "running", client.job(trouble.ends)
        assert client.job(trouble.waits)["state"] in ("waiting", "starting"), client.job(trouble.waits)
        trouble.heal()
        for job in (trouble.ends, trouble.waits):
            assert client.wait(job)["state"] == "done", client.job(job)


def a_hook_that_always_fails():
    """takt alerts runs it ever more seldom, takt once for each event of the job."""
    with in_trouble(lasting.FailingHook, tries=lasting.FailingHook.told) as (_, client, trouble, now):
        assert now.tries <= lasting.most_tries(now.seconds, 2, 60), now
        assert trouble.ran() == 2, "started and ended, each told once"
        trouble.heal()
        kit.until(lambda: "GpuLost" in trouble.said(), trouble.said)


def a_peer_that_is_silent():
    """It is asked as often as one that answers: once a second."""
    with in_trouble(lasting.SilentPeer, tries=lasting.SilentPeer.heard) as (_, client, _, now):
        assert 0 < now.tries <= lasting.most_tries(now.seconds, 1, 1) + 1, now
        assert client.ask("GET", "/v1/net")["peers"][0]["state"] == "silent"


def helper_that_cannot_start(helper, first_s, longest_s):
    def case():
        with in_trouble(lasting.DeadHelper, helper, tries=lasting.DeadHelper.tries) as (m, client, trouble, now):
            assert now.tries <= lasting.most_tries(now.seconds, first_s, longest_s), now
            trouble.heal()
            kit.until(lambda: m.pids(helper), m.said)
            job = client.submit(["true"], gpus=1)["id"]
            assert client.wait(job)["state"] == "done", client.job(job)
    case.__name__ = helper.replace("-", "_") + "_cannot_start"
    return case


def helper_whose_program_is_gone(helper):
    def case():
        with in_trouble(lasting.DeadHelper, helper, True) as (m, _, trouble, _):
            trouble.heal()
            kit.until(lambda: m.pids(helper), m.said)
    case.__name__ = "the_program_of_" + helper.replace("-", "_") + "_is_gone"
    return case


HELPERS = {"takt-launch": (1, 10), "takt-actuate": (1, 10), "takt-guard": (0.02, 5)}  # seconds: first and longest pause


if __name__ == "__main__":
    sys.exit(kit.main([on_gpus_with_jobs("lost"), on_gpus_with_jobs("overheated"), on_gpus_with_jobs("hang"),
                       on_gpus_with_jobs("xid=79"), a_job_that_leaves_a_process_behind, a_full_disk_under_the_queue,
                       a_hook_that_always_fails, a_peer_that_is_silent,
                       *(helper_that_cannot_start(helper, *pace) for helper, pace in HELPERS.items()),
                       *map(helper_whose_program_is_gone, HELPERS)], at_once=4))
