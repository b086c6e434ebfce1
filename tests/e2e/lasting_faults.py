#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A state that lasts costs no more than rest: what takt does is counted, not timed, against a GPU that is well and is
looked at at takt's own rate all the while."""
import sys
import time

import kit

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


if __name__ == "__main__":
    sys.exit(kit.main([on_gpus_with_jobs("lost"), on_gpus_with_jobs("overheated"), on_gpus_with_jobs("hang"),
                       on_gpus_with_jobs("xid=79"), a_job_that_leaves_a_process_behind]))
