#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPU that is cut into MIG instances: each goes to one job at a time, by its UUID.

Whoever cuts it is an administrator with the driver's own calls (here over ctypes on the simulated driver); takt
sees what there is when it starts. The witness locks each instance that a job was shown (witness.c).

Usage: mig.py BUILD_FOLDER
"""
import sys

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


def cut(m):
    done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", sys.executable, "-c", CUT)
    assert set(done.stdout.split()) == {"0"}, (done.stdout, done.stderr)


def say(what):
    return ["/bin/sh", "-c", f"echo {what}"]


def instances_go_to_one_job_each():
    kit.needs_a_plain_twin()
    with kit.machine(gpus=2) as m:
        cut(m)
        m.start()
        client = m.client()
        first, second = (client.submit(m.witness_argv(60_000), gpus=1, **SMALL)["id"] for _ in range(2))
        large = client.submit(m.witness_argv(1), gpus=1, mig="3g.40gb")["id"]
        assert client.wait(large)["memory"] == "enforced by MIG", client.job(large)
        third = client.submit(m.witness_argv(1), gpus=1, **SMALL)["id"]
        kit.until(lambda: len(m.witness().begins) == 3, 30, client.live)
        views = [client.job(i) for i in (first, second)]
        uuids = [view["gpu_uuid"][0] for view in views]
        assert len(set(uuids)) == 2 and all(uuid.startswith("MIG-") for uuid in uuids), views
        assert [view["gpu_list"] for view in views] == [[1], [1]], views
        kit.until(lambda: client.job(third).get("why") == "mig", 20, lambda: client.job(third))
        listed = {share["job_id"]: share["mig_uuid"] for share in client.status()["gpus"][1]["shares"]}
        assert listed == dict(zip((first, second), uuids)), listed
        client.cancel(first)
        got = client.wait(third)
        assert (got["state"], got["gpu_uuid"]) == ("done", uuids[:1]), got
        client.cancel(second)
        client.wait(second)
        assert not m.witness().busy, m.witness().busy


def a_job_computes_in_its_instance():
    kit.needs_a_plain_twin()
    with kit.machine(gpus=2) as m:
        cut(m)
        m.start()
        client = m.client()
        job = client.wait(client.submit(m.load_argv("--steps", 3, "--mem", 100), gpus=1, **SMALL)["id"])
        assert job["state"] == "done", job
        seen = client.wait(client.submit(say("$CUDA_VISIBLE_DEVICES $TAKT_GPUS"), gpus=2, **SMALL)["id"])
        shown, gpus = m.takt("logs", str(seen["id"])).stdout.split()
        assert shown == ",".join(seen["gpu_uuid"]) and gpus == "1,1", (shown, gpus, seen)


def whole_gpus_are_others():
    kit.needs_a_plain_twin()
    with kit.machine(gpus=2) as m:
        cut(m)
        m.start()
        client = m.client()
        whole = client.submit(m.witness_argv(60_000), gpus=1)["id"]
        kit.until(lambda: client.job(whole)["state"] == "running", 30, client.live)
        assert client.job(whole)["gpu_list"] == [0], client.job(whole)
        for ask in ({"gpus": 1}, {"gpus": 1, "gpu_milli": 100}):
            waits = client.submit(m.witness_argv(1), **ask)["id"]
            kit.until(lambda w=waits: client.job(w).get("why"), 20, client.live)
            client.cancel(waits)
        for words, says in ((["--gpus", "2"], "cut into MIG"), (["--mig", "7g.80gb"], "2 of 1g.10gb"),
                            (["--mig", "1g.10gbx3"], "2 of 1g.10gb")):
            refused = m.takt("submit", *words, "true")
            assert refused.returncode == 65 and says in refused.stderr, (words, refused)


def instances_are_kept_over_a_death():
    kit.needs_a_plain_twin()
    with kit.machine(gpus=2) as m:
        cut(m)
        m.start()
        client = m.client()
        ids = [client.submit(m.witness_argv(300), gpus=1, **SMALL)["id"] for _ in range(8)]
        for _ in range(3):
            seen = len(m.witness().ends)
            kit.until(lambda s=seen: len(m.witness().ends) > s or len(m.witness().ends) == 8, 60,
                      lambda: m.witness().ends)
            m.kill()
            m.start()
        client = m.client()
        assert {client.wait(i)["state"] for i in ids} == {"done"}
        assert not m.witness().busy, m.witness().busy
        assert sorted(b.job for b in m.witness().begins) == ids


if __name__ == "__main__":
    sys.exit(kit.main([
        instances_go_to_one_job_each,
        a_job_computes_in_its_instance,
        whole_gpus_are_others,
        instances_are_kept_over_a_death,
    ]))
