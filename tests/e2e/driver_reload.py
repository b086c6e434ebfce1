#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver is taken away and loaded anew under a running takt: an update, a rmmod and a modprobe."""
import json
import os
import signal
import sys

import kit
import mig


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
        kit.until(lambda: m.takt("health").stdout.count("the driver was unloaded") >= 4, lambda: m.takt("health").stdout)
        told = json.loads(m.takt("health", "--json").stdout)["gpus"]
        assert {(g["state"], g["severity"], g["findings"][0]["finding"]) for g in told} == {("lost", "critical", "driver-gone")}, told
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


def lay_driver(m, branch):
    """The library of that branch, by the one name that takt was told."""
    link = m.path("libnvidia-ml.so.1")
    os.symlink(os.path.join(os.path.dirname(os.path.dirname(kit.TWIN_LIB)), branch, "libnvidia-ml.so.1"), link + ".new")
    os.replace(link + ".new", link)
    return link


def load_anew(m, *words):
    """The driver is gone, and another is loaded: what boards held is forgotten, their UUIDs stay."""
    m.twin("fault", "all", "driver-reload")
    m.twin(*m.create_words, "--replace", *words)


def it_comes_after_takt_has_started():
    """Where a library is named, too, as it is for services: nothing dies of the driver's absence, or says it again and
    again."""
    with kit.machine(gpus=2) as m:
        m.twin("fault", "all", "driver-reload=3600")
        m.start("--nvml-path", kit.TWIN_LIB)
        kit.until(lambda: m.pids("takt-actuate"), m.processes)
        actuator, said = m.pids("takt-actuate"), m.said()
        m.twin("fault", "all", "none")
        m.twin(*m.create_words, "--replace")
        await_start(m, 2)
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=1, clock_ask="ceiling", clock_mhz=1410)["id"]
        kit.until(m.locked, lambda: (client.job(job), m.said()))
        assert "takt-actuate" not in said and "takt-actuate: starting" not in m.said(), m.said()
        assert actuator


def it_comes_back_in_another_version():
    """As an update does it: the module first, and the library when the packages are all there. Then takt is killed
    whole: its guard puts the clocks back with the driver that there is now."""
    with kit.machine(gpus=2) as m:
        m.start("--nvml-path", lay_driver(m, "550"))
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=1, clock_ask="ceiling", clock_mhz=1410)["id"]
        kit.until(m.locked, "the clock is locked")
        (index,), before = client.job(job)["gpu_list"], client.status()["driver_version"]
        load_anew(m, "--driver", "535")
        kit.until(lambda: is_driverless(m), lambda: gpus(m))
        lay_driver(m, "535")
        await_start(m, 2)
        after = m.client().status()["driver_version"]
        assert after.startswith("535.") and before.startswith("550."), (before, after)
        kit.until(lambda: m.locked() == {index: (345, 1410)}, lambda: (m.locked(), m.said()))
        view = m.client().job(job)
        assert (view["state"], view["gpu_list"], view["attempt"]) == ("running", [index], 1), view
        more = m.client().submit(m.witness_argv(1), gpus=1)["id"]
        assert m.client().wait(more)["gpu_list"] == [1 - index]
        m.close_clients()
        for kind in ("takt", "takt-actuate"):
            for pid in m.pids(kind):
                os.kill(pid, signal.SIGKILL)
        m.died()
        kit.until(lambda: not m.locked(), lambda: (m.locked(), m.said()))


@kit.plain
def it_comes_back_without_its_instances():
    """The driver forgets MIG instances when it is loaded anew. A job that runs on one keeps it, and so the GPU from
    others, until it ends."""
    with kit.machine(gpus=2) as m:
        mig.cut(m)
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=1, mig="1g.10gb")["id"]
        kit.until(lambda: m.witness().begins, "it runs on an instance of GPU 1")
        had = client.job(job)
        load_anew(m)
        await_start(m, 2)
        client = m.client()
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        assert [client.job(job)[key] for key in ("gpu_list", "gpu_uuid")] == [[1], had["gpu_uuid"]], (client.job(job), had)
        other = client.submit(m.witness_argv(1), gpus=1)["id"]
        assert client.wait(other)["gpu_list"] == [0]
        both = client.submit(m.witness_argv(1), gpus=2)["id"]
        kit.until(lambda: client.job(both).get("why") == "gpus", lambda: client.job(both))
        assert f"job {job} has ended" in client.job(both)["why_text"], client.job(both)
        assert client.job(both)["state"] == "waiting", client.job(both)
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"
        assert client.wait(both)["state"] == "done"
        assert len(m.witness().begins) == 3, m.witness().begins


if __name__ == "__main__":
    sys.exit(kit.main([a_driver_that_is_loaded_anew_is_met_anew, clocks_and_jobs_go_through_it,
                       it_comes_back_with_other_gpus, it_comes_after_takt_has_started, it_comes_back_in_another_version,
                       it_comes_back_without_its_instances]))
