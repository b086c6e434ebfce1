#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver is taken away and loaded anew under a running takt: an update, a rmmod and a modprobe."""
import sys

import kit


def gpus(m):
    return m.client().status()["gpus"]


def ups(m):
    return [value for name, value in m.client().metrics().items() if name.startswith("takt_gpu_up{")]


def starts(m):
    return m.said().count("takt: API on")


def await_start(m, nth):
    kit.until(lambda: starts(m) == nth and m.answers(), m.said)
    m.close_clients()


def await_all(m, count):
    """Every one of so many GPUs is read, and free."""
    kit.until(lambda: [g["state"] for g in gpus(m) if not g["stale"] and "power_mw" in g] == ["free"] * count,
              lambda: (gpus(m), m.said()))


def is_driverless(m):
    return all(g["stale"] for g in gpus(m)) and set(ups(m)) == {0.0}


def a_driver_that_is_loaded_anew_is_met_anew():
    """Until it answers nothing is known, which is said, and nothing is started; then all goes on."""
    with kit.machine("t4-4") as m:
        m.start()
        client = m.client()
        await_all(m, 4)
        job = client.submit(m.load_argv("--seconds", "60", "--quiet"), gpus=1)["id"]
        kit.until(lambda: any(g.get("processes") for g in m.boards()), "it computes")
        m.twin("fault", "all", "driver-reload=20")
        kit.until(lambda: is_driverless(m), lambda: gpus(m))
        shown = m.takt("status").stdout
        assert "answers no more" in shown and "STALE" in shown, shown
        assert client.wait(job)["state"] == "failed"
        after = client.submit(m.witness_argv(1), gpus=1)["id"]
        kit.until(lambda: client.job(after).get("why") in ("unhealthy", "gpus"), lambda: client.job(after))
        assert not m.witness().begins, "a job was started on a GPU of which nothing is known"
        assert "the NVIDIA driver answers no more" in m.said(), m.said()
        await_start(m, 2)
        assert m.client().wait(after)["state"] == "done"
        await_all(m, 4)
        assert set(ups(m)) == {1.0}, ups(m)
        assert "answers no more" not in m.takt("status").stdout


def clocks_and_jobs_go_through_it():
    """A job that does not touch the driver runs on, on the same GPU, and its clock is asked for again; what takt set
    is put back at its end."""
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=1, clock_ask="ceiling", clock_mhz=1410)["id"]
        kit.until(m.locked, "the clock is locked")
        (index,) = client.job(job)["gpu_list"]
        m.twin("fault", "all", "driver-reload=1")
        await_start(m, 2)
        kit.until(lambda: m.locked() == {index: (345, 1410)}, lambda: (m.locked(), m.said()))
        view = m.client().job(job)
        assert (view["state"], view["gpu_list"], view["attempt"]) == ("running", [index], 1), view
        assert len(m.witness().begins) == 1, m.witness().begins
        m.client().cancel(job)
        assert m.client().wait(job)["state"] == "cancelled"
        kit.until(lambda: not m.locked(), lambda: m.boards())
        await_all(m, 2)


def it_comes_back_with_other_gpus():
    """Fewer, then more: takt takes what there is, and a job that runs keeps the GPU that it has, or the one that is not
    to be seen."""
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        jobs = [client.submit(m.witness_argv(600_000), gpus=1)["id"] for _ in range(2)]
        kit.until(lambda: len(m.witness().begins) == 2, lambda: m.witness().begins)
        uuids = {job: client.job(job)["gpu_uuid"] for job in jobs}
        for nth, count in ((2, 1), (3, 4)):
            m.twin("fault", "all", "driver-reload")
            m.twin("create", "hgx-h100", "--gpus", str(count), "--path", m.path("machine"), "--seed", "7", "--replace")
            await_start(m, nth)
            kit.until(lambda n=count: len(gpus(m)) == n, lambda: gpus(m))
            client = m.client()
            kit.until(lambda c=client: [c.job(job)["state"] for job in jobs] == ["running"] * 2,
                      lambda c=client: [c.job(job) for job in jobs])
            assert {job: client.job(job)["gpu_uuid"] for job in jobs} == uuids
        more = client.submit(m.witness_argv(1), gpus=2)["id"]
        assert not set(client.wait(more)["gpu_uuid"]) & set(sum(uuids.values(), []))
        for job in jobs:
            client.cancel(job)
            assert client.wait(job)["state"] == "cancelled"
        assert len(m.witness().begins) == 3, m.witness().begins
        await_all(m, 4)


if __name__ == "__main__":
    sys.exit(kit.main([a_driver_that_is_loaded_anew_is_met_anew, clocks_and_jobs_go_through_it,
                       it_comes_back_with_other_gpus]))
