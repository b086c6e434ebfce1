#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs that the kernel has suspended, all of them or some, by a copy of its sysfs: they are left asleep until a job
wants one. The copy is the test's to change, so a GPU that takt has woken sleeps on until the test says that it does not.

Usage: asleep.py BUILD_FOLDER
"""
import os
import sys

import kit


def put(m, bus_id, status):
    device = m.path(f"sys/bus/pci/devices/{bus_id}")
    if not os.path.exists(device):
        os.makedirs(device + "/power")
        os.symlink("../../../../bus/pci/drivers/nvidia", device + "/driver")
    for name, text in (("vendor", "0x10de"), ("class", "0x030000"), ("power/runtime_status", status)):
        with open(f"{device}/{name}.new", "w", encoding="ascii") as file:
            file.write(text + "\n")
        os.replace(f"{device}/{name}.new", f"{device}/{name}")


def anew(m):
    """A client of whichever takt answers: it starts itself anew with GPUs that have woken."""
    kit.until(m.answers, kit.WAIT_S, m.said)
    m.close_clients()
    return m.client()


def where(m):
    """The places of its GPUs on the bus, as the kernel writes them."""
    m.start()
    ids = [gpu["pci_bus_id"][4:].lower() for gpu in m.client().status()["gpus"]]
    assert m.stop() == 0
    return ids


def all_that_sleep_are_left_asleep_until_a_job_wants_one():
    with kit.machine(gpus=1) as m:
        (bus_id,) = where(m)
        put(m, bus_id, "suspended")
        m.start("--sysfs-root", m.path("sys"))
        status = m.client().status()
        assert status["gpus"] == [] and "every GPU is suspended" in m.takt("status").stdout, status
        assert not os.path.exists(m.path("run/actuate.sock")), "the actuator starts the driver as well"
        client = m.client()
        job = client.submit(["true"], gpus=1)["id"]
        kit.until(lambda: "every GPU is suspended" in client.job(job).get("why_text", ""), kit.WAIT_S,
                  lambda: client.job(job))
        assert client.job(job)["state"] == "waiting", client.job(job)
        put(m, bus_id, "active")
        kit.until(lambda: "starts anew" in m.said(), kit.WAIT_S, m.said)
        client = anew(m)
        assert client.wait(job)["state"] == "done", client.job(job)
        kit.until(lambda: os.path.exists(m.path("run/actuate.sock")), kit.WAIT_S, m.said)


def who_wants_them_awake_says_so():
    with kit.machine(gpus=1) as m:
        (bus_id,) = where(m)
        put(m, bus_id, "suspended")
        m.start("--sysfs-root", m.path("sys"), "--wake-gpus", "yes")
        (gpu,) = m.client().status()["gpus"]
        assert not gpu["asleep"] and gpu["state"] == "free", gpu


def one_that_sleeps_beside_another_is_woken_for_a_job():
    with kit.machine(gpus=2) as m:
        awake, asleep = where(m)
        put(m, awake, "active")
        put(m, asleep, "suspended")
        m.start("--sysfs-root", m.path("sys"))
        client = m.client()
        first, second = client.status()["gpus"]
        assert first["state"] == "free" and not first["asleep"] and first["power_mw"], first
        assert second["asleep"] and second["state"] == "asleep" and not second["lost"] and "power_mw" not in second, \
            second
        assert "uuid" not in second or not second["uuid"], second
        page = kit.until(lambda: {name: value for name, value in client.metrics().items() if 'gpu="1"' in name}, kit.WAIT_S,
                         client.metrics)
        kit.until(lambda: any('state="asleep"' in name for name in client.metrics() if 'gpu="1"' in name), kit.WAIT_S,
                  client.metrics)
        of_second = {name.split("{")[0]: value for name, value in page.items()}
        assert of_second["takt_gpu_asleep"] == 1 and of_second["takt_gpu_lost"] == 0, of_second
        assert "takt_gpu_up" not in of_second and "takt_gpu_power_watts" not in of_second, of_second
        row = [line for line in m.takt("status").stdout.splitlines() if "asleep" in line]
        assert row and "LOST" not in "".join(row) and "STALE" not in "".join(row), m.takt("status").stdout
        top = m.takt("top", "--once").stdout
        assert "asleep" in top and "no news" not in top, top
        health = m.takt("health").stdout
        assert "lost" not in health.lower(), health

        jobs = [client.submit(["sleep", "1000"], gpus=1)["id"] for _ in range(2)]
        kit.until(lambda: [client.job(job)["state"] for job in jobs] == ["running", "waiting"], kit.WAIT_S,
                  lambda: [client.job(job) for job in jobs])
        kit.until(lambda: "GPU 1 is suspended, and woken for a job" in m.said(), kit.WAIT_S, m.said)
        put(m, asleep, "active")
        kit.until(lambda: "starts anew" in m.said(), kit.WAIT_S, m.said)
        client = anew(m)
        kit.until(lambda: client.job(jobs[1])["state"] == "running", kit.WAIT_S, m.said)
        assert client.job(jobs[0])["state"] == "running", client.job(jobs[0])
        assert [gpu["state"] for gpu in client.status()["gpus"]] == ["running", "running"], client.status()

        # Both fall asleep when their jobs have gone; who they are is known, so jobs are placed there at once.
        for job in jobs:
            client.cancel(job)
            client.wait(job)
        kit.until(lambda: {gpu["state"] for gpu in client.status()["gpus"]} == {"free"}, kit.WAIT_S, client.status)
        put(m, awake, "suspended")
        put(m, asleep, "suspended")
        kit.until(lambda: all(gpu["asleep"] and "power_mw" not in gpu for gpu in client.status()["gpus"]),
                  kit.WAIT_S, client.status)
        assert {gpu["state"] for gpu in client.status()["gpus"]} == {"free"}, client.status()
        assert all(gpu["health"] == "healthy" for gpu in client.status()["gpus"]), client.status()
        both = client.submit(["true"], gpus=2)["id"]
        assert client.wait(both)["state"] == "done", client.job(both)
        # Whether they are clean of it is looked at, asleep or not.
        kit.until(lambda: {gpu["state"] for gpu in client.status()["gpus"]} == {"free"}, kit.WAIT_S, client.status)


def the_doctor_lets_one_sleep():
    with kit.machine(gpus=2) as m:
        awake, asleep = where(m)
        put(m, awake, "active")
        put(m, asleep, "suspended")
        os.makedirs(m.path("proc/driver/nvidia"))
        with open(m.path("proc/driver/nvidia/version"), "w", encoding="ascii") as file:
            file.write("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\n")
        done = m.twin_exec("doctor", "--root", m.folder)
        rows = [line for line in done.stdout.splitlines() if "GPU 1 " in line]
        assert len(rows) == 1 and rows[0].startswith("INFO") and "asleep" in rows[0], done.stdout
        assert done.returncode == 0 and "GPU 0 " in done.stdout, done


if __name__ == "__main__":
    sys.exit(kit.main([all_that_sleep_are_left_asleep_until_a_job_wants_one, who_wants_them_awake_says_so,
                       one_that_sleeps_beside_another_is_woken_for_a_job, the_doctor_lets_one_sleep]))
