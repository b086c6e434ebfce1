#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is asked of a job beyond its GPUs, and what is done to it while it waits, over the API and the command line.

Usage: job_control.py BUILD_FOLDER
"""
import json
import sys

import kit


def state(client, job):
    return client.job(job)["state"]


def ends_with(client, job, want):
    view = client.wait(job)
    assert view["state"] == want, view
    return view


def held_jobs_start_when_released():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        done = m.takt("submit", "-q", "--hold", "--", "true")
        assert done.returncode == 0, done
        held = int(done.stdout)
        other = client.submit(m.witness_argv(1), gpus=1)["id"]
        ends_with(client, other, "done")
        view = client.job(held)
        assert (view["state"], view["held"]) == ("waiting", "owner"), view
        kit.until(lambda: client.job(held).get("why") == "held", 10, lambda: client.job(held))
        m.kill()
        m.start()
        client = m.client()
        assert client.job(held)["held"] == "owner", "a hold outlives a crash"
        assert "by its owner" in m.takt("show", str(held)).stdout
        done = m.takt("release", str(held))
        assert done.returncode == 0, done
        assert "held" not in ends_with(client, held, "done")


def priorities_change_the_order():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        gate = client.submit(["sh", "-c", "until test -e go; do sleep 0.02; done"], gpus=1,
                             cwd=m.path("jobs"))["id"]
        first, second = (client.submit(m.witness_argv(1), gpus=1)["id"] for _ in range(2))
        done = m.takt("update", str(second), "--priority", "5", "--json")
        assert json.loads(done.stdout)["priority"] == 5, done
        done = m.takt("update", str(gate), "-p", "1")
        assert done.returncode == 75 and "only waiting jobs" in done.stderr, done
        with open(m.path("jobs/go"), "w", encoding="ascii"):
            pass
        for job in (first, second):
            ends_with(client, job, "done")
        assert [begin.job for begin in m.witness().begins] == [second, first]


if __name__ == "__main__":
    sys.exit(kit.main([
        held_jobs_start_when_released,
        priorities_change_the_order,
    ]))
