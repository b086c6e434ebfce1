#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPU that is cut into MIG instances: each goes to one job at a time, by its UUID.

Whoever cuts it is an administrator, with the driver's own calls (here over ctypes on the simulated driver) or with
'takt gpu mig'; takt sees what there is while it runs. The witness locks each instance that a job was shown (witness.c).

Usage: mig.py BUILD_FOLDER
"""
import concurrent.futures
import contextlib
import sys

import governed
import kit

# Cuts GPU 1: one 3g.40gb, two 1g.10gb, with a compute instance over all of each.
CUT = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
gpu, did = ctypes.c_void_p(), ctypes.c_int()
said = [nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(gpu)),
        nvml.nvmlDeviceSetMigMode(gpu, 1, ctypes.byref(did))]
for instance, compute in ((9, 2), (19, 0), (19, 0)):
    part, made = ctypes.c_void_p(), ctypes.c_void_p()
    said += [nvml.nvmlDeviceCreateGpuInstance(gpu, instance, ctypes.byref(part)),
             nvml.nvmlGpuInstanceCreateComputeInstance(part, compute, ctypes.byref(made))]
print(*said)
"""
SMALL = {"mig": "1g.10gb"}
# Takes all instances of GPU 1 away again.
EMPTY = """
for kind, whole in ((19, 0), (9, 2)):
    found, count = (ctypes.c_void_p * 8)(), ctypes.c_uint(8)
    assert nvml.nvmlDeviceGetGpuInstances(gpu, kind, found, ctypes.byref(count)) == 0
    for part in found[:count.value]:
        inner, n = (ctypes.c_void_p * 8)(), ctypes.c_uint(8)
        part = ctypes.c_void_p(part)
        assert nvml.nvmlGpuInstanceGetComputeInstances(part, whole, inner, ctypes.byref(n)) == 0
        for one in inner[:n.value]:
            assert nvml.nvmlComputeInstanceDestroy(ctypes.c_void_p(one)) == 0
        assert nvml.nvmlGpuInstanceDestroy(part) == 0
"""


def in_driver(m, program):
    """What it prints; it calls the driver's functions."""
    done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", sys.executable, "-c", program)
    assert done.returncode == 0, done
    return done.stdout


def cut(m):
    said = in_driver(m, CUT)
    assert set(said.split()) == {"0"}, said


def empty(m):
    in_driver(m, CUT.replace("((9, 2), (19, 0), (19, 0))", "()") + EMPTY)


@contextlib.contextmanager
def cut_machine():
    """A machine whose GPU 1 is cut, takt started on it, and a client."""
    with kit.machine(gpus=2) as m:
        cut(m)
        m.start()
        yield m, m.client()


def restarted(m):
    m.stop()
    m.start()
    return m.client()


def end(client, *jobs):
    for job in jobs:
        client.cancel(job)
    for job in jobs:
        client.wait(job)


def say(what):
    return ["/bin/sh", "-c", f"echo {what}"]


@kit.plain
def instances_go_to_one_job_each():
    with cut_machine() as (m, client):
        first, second = (client.submit(m.witness_argv(600_000), gpus=1, **SMALL)["id"] for _ in range(2))
        large = client.submit(m.witness_argv(1), gpus=1, mig="3g.40gb")["id"]
        assert client.wait(large)["memory"] == "enforced by MIG", client.job(large)
        third = client.submit(m.witness_argv(1), gpus=1, **SMALL)["id"]
        kit.until(lambda: len(m.witness().begins) == 3, client.live)
        views = [client.job(i) for i in (first, second)]
        uuids = [view["gpu_uuid"][0] for view in views]
        assert len(set(uuids)) == 2 and all(uuid.startswith("MIG-") for uuid in uuids), views
        assert [view["gpu_list"] for view in views] == [[1], [1]], views
        kit.until(lambda: client.job(third).get("why") == "mig", lambda: client.job(third))
        listed = {share["job_id"]: share["mig_uuid"] for share in client.status()["gpus"][1]["shares"]}
        assert listed == dict(zip((first, second), uuids)), listed
        client.cancel(first)
        got = client.wait(third)
        assert (got["state"], got["gpu_uuid"]) == ("done", uuids[:1]), got
        end(client, second)
        assert not m.witness().busy, m.witness().busy


@kit.plain
def a_job_computes_in_its_instance():
    with cut_machine() as (m, client):
        job = client.wait(client.submit(m.load_argv("--steps", 3, "--mem", 100), gpus=1, **SMALL)["id"])
        assert job["state"] == "done", job
        seen = client.wait(client.submit(say("$CUDA_VISIBLE_DEVICES $TAKT_GPUS"), gpus=2, **SMALL)["id"])
        shown, gpus = m.takt("logs", str(seen["id"])).stdout.split()
        assert shown == ",".join(seen["gpu_uuid"]) and gpus == "1,1", (shown, gpus, seen)


@kit.plain
def whole_gpus_are_others():
    with cut_machine() as (m, client):
        whole = client.submit(m.witness_argv(600_000), gpus=1)["id"]
        kit.until(lambda: client.job(whole)["state"] == "running", client.live)
        assert client.job(whole)["gpu_list"] == [0], client.job(whole)
        for ask in ({"gpus": 1}, {"gpus": 1, "gpu_milli": 100}):
            waits = client.submit(m.witness_argv(1), **ask)["id"]
            kit.until(lambda w=waits: client.job(w).get("why"), client.live)
            client.cancel(waits)
        for words, says in ((["--gpus", "2"], "cut into MIG"), (["--mig", "7g.80gb"], "2 of 1g.10gb"),
                            (["--mig", "1g.10gbx3"], "2 of 1g.10gb")):
            refused = m.takt("submit", *words, "true")
            assert refused.returncode == 65 and says in refused.stderr, (words, refused)


@kit.plain
def instances_are_kept_over_a_death():
    with cut_machine() as (m, client):
        ids = [client.submit(m.witness_argv(300), gpus=1, **SMALL)["id"] for _ in range(8)]
        for _ in range(3):
            seen = len(m.witness().ends)
            kit.until(lambda s=seen: len(m.witness().ends) > s or len(m.witness().ends) == 8,
                      lambda: m.witness().ends)
            m.kill()
            m.start()
        client = m.client()
        assert {client.wait(i)["state"] for i in ids} == {"done"}
        assert not m.witness().busy, m.witness().busy
        assert sorted(b.job for b in m.witness().begins) == ids


def layout(client, gpu=1):
    view = next(v for v in client.ask("GET", "/v1/gpus")["mig"] if v["index"] == gpu)
    return view.get("state", ""), sorted(i["profile"] for i in view["instances"])


FOUND = ["1g.10gb", "1g.10gb", "3g.40gb"]


def drained(m, client, gpu=1):
    done = m.takt("gpu", "drain", str(gpu), "--reason", "to be cut")
    assert done.returncode == 0, done
    kit.until(lambda: client.status()["gpus"][gpu]["state"] == "drained", client.status)


@kit.plain
def an_administrator_cuts_a_drained_gpu():
    with cut_machine() as (m, client):
        refused = m.takt("gpu", "mig", "set", "1", "--layout", "3g.40gb,3g.40gb")
        assert refused.returncode != 0 and "not drained" in refused.stderr, refused
        drained(m, client)
        for words, says in ((["1", "--layout", "5g.40gb"], "no MIG instances of kind '5g.40gb'"),
                            (["1", "--layout", "3g.40gb,"], "3g.40gb,3g.40gb"),
                            (["0", "--layout", "7g.80gb"], "MIG mode"), (["0,1", "--layout", "none"], "one GPU")):
            refused = m.takt("gpu", "mig", "set", *words)
            assert refused.returncode != 0 and says in refused.stderr, (words, refused)
        assert layout(client) == ("", FOUND), layout(client)
        done = m.takt("gpu", "mig", "set", "1", "--layout", "3g.40gb,3g.40gb", "--json")
        assert done.returncode == 0, done
        assert layout(client) == ("set", ["3g.40gb", "3g.40gb"]), layout(client)
        shown = m.takt("gpu").stdout
        assert "3g.40gb 3g.40gb" in shown and "set" in shown, shown
        assert m.takt("gpu", "resume", "1").returncode == 0
        ids = [client.submit(m.witness_argv(600_000), gpus=1, mig="3g.40gb")["id"] for _ in range(2)]
        kit.until(lambda: len(m.witness().begins) == 2, client.live)
        assert len({client.job(i)["gpu_uuid"][0] for i in ids}) == 2
        refused = m.takt("submit", "--mig", "1g.10gb", "true")
        assert refused.returncode == 65 and "2 of 3g.40gb" in refused.stderr, refused
        assert m.takt("gpu", "drain", "1", "--reason", "back").returncode == 0
        refused = m.takt("gpu", "mig", "restore", "1")
        assert refused.returncode != 0 and "is on GPU 1" in refused.stderr, refused
        end(client, *ids)

        def restored():
            return m.takt("gpu", "mig", "restore", "1").returncode == 0
        kit.until(restored, client.status)
        assert layout(client) == ("", FOUND), layout(client)
        assert not m.witness().busy, m.witness().busy


@kit.plain
def a_cut_waits_for_an_actuator_that_is_late():
    with kit.machine(gpus=2) as m:
        cut(m)
        let_go = m.hold_back("takt-actuate")
        m.start()
        client = m.client()
        drained(m, client)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            order = pool.submit(m.takt, "gpu", "mig", "set", "1", "--layout", "3g.40gb,3g.40gb")
            kit.until(lambda: "has GPU 1 cut" in m.said(), m.said)
            let_go()
            assert order.result().returncode == 0, order.result()
        assert layout(client) == ("set", ["3g.40gb", "3g.40gb"]), layout(client)


@kit.plain
def it_is_put_back_by_whoever_comes_after():
    with kit.machine(gpus=2) as m:
        cut(m)
        for stop in (m.stop, m.kill_all):
            m.start()
            client = m.client()
            kit.until(lambda c=client: layout(c) == ("", FOUND), lambda c=client: layout(c))
            drained(m, client)
            kit.until(lambda: m.takt("gpu", "mig", "set", "1", "--layout", "none").returncode == 0, client.status)
            assert layout(client) == ("set", []), layout(client)
            m.kill()  # the actuator lives on and goes on to answer for it
            m.start()
            client = m.client()
            kit.until(lambda c=client: layout(c) == ("set", []), lambda c=client: layout(c))
            stop()
        m.start()
        client = m.client()
        kit.until(lambda: layout(client) == ("", FOUND), lambda: layout(client))


@kit.plain
def what_is_in_use_is_put_back_later():
    with cut_machine() as (m, client):
        drained(m, client)
        done = m.takt("gpu", "mig", "set", "1", "--layout", "3g.40gb,3g.40gb")
        assert done.returncode == 0, done
        assert m.takt("gpu", "resume", "1").returncode == 0
        job = client.submit(m.load_argv("--seconds", 3600, "--mem", 100), gpus=1, mig="3g.40gb")["id"]
        kit.until(lambda: client.status()["gpus"][1].get("procs"), client.status)
        client = restarted(m)
        kit.until(lambda: layout(client)[0] == "changed", lambda: layout(client))
        assert layout(client)[1] == ["3g.40gb", "3g.40gb"], layout(client)
        assert client.job(job)["state"] == "running", client.job(job)
        kit.until(lambda: client.status()["gpus"][1]["clock_state"] == "changed", client.status)
        waits = client.submit(m.witness_argv(1), gpus=1, mig="3g.40gb")["id"]
        end(client, job)
        kit.until(lambda: layout(client) == ("", FOUND), lambda: layout(client))
        assert client.wait(waits)["state"] == "done", client.job(waits)


@kit.plain
def what_is_cut_by_hand_is_seen():
    with cut_machine() as (m, client):
        empty(m)
        kit.until(lambda: layout(client) == ("", []), lambda: layout(client))
        refused = m.takt("submit", "--mig", "1g.10gb", "true")
        assert refused.returncode == 65, refused
        cut(m)
        kit.until(lambda: layout(client) == ("", FOUND), lambda: layout(client))
        job = client.wait(client.submit(m.witness_argv(1), gpus=1, **SMALL)["id"])
        assert job["state"] == "done", job


def switch(m, on):
    words = CUT.split("for instance")[0].replace("gpu, 1, ", f"gpu, {on}, ") + "print(*said)\n"
    said = in_driver(m, words)
    assert set(said.split()) == {"0"}, said


@kit.plain
def mig_mode_switched_meanwhile_is_noticed():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        switch(m, 1)
        kit.until(lambda: "MIG mode was switched on" in str(client.status().get("notes")), "it is said")
        assert "GPU 1: MIG mode was switched on" in m.takt("status").stdout
        for _ in range(3):
            assert client.wait(client.submit(["true"], gpus=1)["id"])["gpu_list"] == [0]
        job = client.submit(["true"], gpus=2)["id"]
        kit.until(lambda: "GPU 1: MIG mode was switched on" in client.job(job).get("why_text", ""),
                  lambda: str(client.job(job)))
        switch(m, 0)
        assert client.wait(job)["gpu_list"] == [0, 1]
        assert "MIG mode" not in str(client.status().get("notes"))
        switch(m, 1)
        kit.until(lambda: "MIG mode was switched on" in str(client.status().get("notes")), "it is said again")
        client = restarted(m)
        assert "MIG mode" not in str(client.status().get("notes")), "from the start it is known"
        switch(m, 0)
        kit.until(lambda: "GPU 1: MIG mode was switched off" in str(client.status().get("notes")), "and the other way")


@kit.plain
def a_policy_cuts_for_good():
    with kit.machine(gpus=2) as m:
        cut(m)
        empty(m)
        m.start()
        client = m.client()
        path = m.path("clocks.toml")

        def declare(layout, *words):
            uuid = client.status()["gpus"][1]["uuid"]
            with open(path, "w", encoding="ascii") as file:
                file.write(f'[[gpu]]\nuuid = "{uuid}"\nmig = "{layout}"\n')
            return m.takt("clock", "apply", "--file", path, *words)
        shown = declare("3g.40gb,3g.40gb", "--dry-run").stdout
        assert "MIG 3g.40gb,3g.40gb (was left as it is)" in shown and "-cgi 3g.40gb,3g.40gb -C" in shown, shown
        refused = declare("5g.40gb")
        assert refused.returncode != 0 and "no MIG instances of kind '5g.40gb'" in refused.stderr, refused
        assert client.ask("GET", "/v1/clocks")["gpus"][1].get("base_mig", "") == ""
        done = declare("3g.40gb,3g.40gb")  # nobody can be on it: no need to drain
        assert done.returncode == 0, done
        two = ("", ["3g.40gb", "3g.40gb"])
        kit.until(lambda: layout(client) == two, lambda: layout(client))
        assert client.ask("GET", "/v1/clocks")["gpus"][1]["base_mig"] == "3g.40gb,3g.40gb"
        jobs = [client.submit(m.witness_argv(600_000), gpus=1, mig="3g.40gb")["id"] for _ in range(2)]
        kit.until(lambda: len(m.witness().begins) == 2, client.live)
        client = restarted(m)
        kit.until(lambda: {client.job(i)["state"] for i in jobs} == {"running"}, client.live)
        kit.until(lambda: declare("3g.40gb,3g.40gb").returncode == 0, lambda: declare("3g.40gb,3g.40gb"))
        refused = declare("none")
        assert refused.returncode != 0 and "not drained" in refused.stderr, refused
        end(client, *jobs)
        drained(m, client)
        kit.until(lambda: declare("none").returncode == 0, client.status)
        kit.until(lambda: layout(client) == ("", []), lambda: layout(client))
        assert not m.witness().busy, m.witness().busy


@kit.plain
def governed_jobs_share_the_clock_of_their_gpu():
    """Clocks are a whole GPU's: of those on its instances the most demanding wins, for as long as it is there."""
    with kit.machine(gpus=2) as m:
        cut(m)
        m.more_flags = ("--clock-epoch", "500ms")
        m.start()
        client = m.client()

        def top():
            return m.locked().get(1, (0, 0))[1]

        def its_own():
            view = governed.settled(client, job)
            return view and view["max_mhz"] < governed.TOP_MHZ and top() == view["max_mhz"]

        job = client.submit(governed.train_argv(m), gpus=1, mig="3g.40gb", max_slowdown_permille=50)["id"]
        kit.until(its_own, lambda: (client.job(job), m.locked()), seconds=governed.SETTLED_S)
        for more, then in (({"clock_ask": "ceiling", "clock_mhz": 1950}, 1950), ({}, 0)):
            other = client.submit(m.witness_argv(600_000), gpus=1, **SMALL, **more)["id"]
            kit.until(lambda t=then: top() == t, lambda: (m.locked(), client.job(job)))
            kit.until(lambda: governed.view(client, job)["state"] != "holds", lambda: client.job(job))
            end(client, other)
            kit.until(its_own, lambda: (client.job(job), m.locked()), seconds=governed.SETTLED_S)
        low = client.submit(m.witness_argv(600_000), gpus=1, **SMALL, clock_ask="ceiling", clock_mhz=345)["id"]
        kit.until(lambda: client.job(low)["state"] == "running", lambda: client.job(low))
        kit.until(its_own, lambda: (client.job(job), m.locked()), seconds=governed.SETTLED_S)
        both = client.submit(governed.train_argv(m), gpus=1, **SMALL, max_slowdown_permille=50)["id"]
        kit.until(lambda: governed.view(client, both).get("epochs", 0) > 0, lambda: client.job(both), seconds=governed.SETTLED_S)
        end(client, job, low, both)
        report = client.wait(job)["report"]
        assert report["governor"] == "assured" and "highest_mj" not in report, report  # energy is the board's, not its own
        kit.until(lambda: not m.locked(), m.locked)


if __name__ == "__main__":
    sys.exit(kit.main([
        instances_go_to_one_job_each,
        a_job_computes_in_its_instance,
        whole_gpus_are_others,
        instances_are_kept_over_a_death,
        an_administrator_cuts_a_drained_gpu,
        a_cut_waits_for_an_actuator_that_is_late,
        it_is_put_back_by_whoever_comes_after,
        what_is_in_use_is_put_back_later,
        what_is_cut_by_hand_is_seen,
        mig_mode_switched_meanwhile_is_noticed,
        a_policy_cuts_for_good,
        governed_jobs_share_the_clock_of_their_gpu,
    ]))
