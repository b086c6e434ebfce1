#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What may be turned beside SM clocks: power limits, a job's, memory clocks and the ceiling of CPUs, an administrator's; and
advice about what is lost.

Usage: gpu_knobs.py BUILD_FOLDER
"""
import json
import os
import re
import sys

import kit

# What nvidia-smi -pm 0 -i 1 does.
PERSISTENCE_OFF = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
gpu = ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(gpu)) == 0
assert nvml.nvmlDeviceSetPersistenceMode(gpu, 0) == 0
"""


def a_memory_clock_is_an_administrators_and_goes_back():
    with kit.machine(gpus=2) as m:
        m.start()
        clocks = ("clock", "set", "--gpus", "1", "--mem-clock")
        refused = m.takt(*clocks, "100")
        assert refused.returncode != 0 and "memory clock 100 MHz; GPU 1 accepts" in refused.stderr, refused
        top = int(re.search(r"accepts \d+ to (\d+)", refused.stderr)[1])
        done = m.takt(*clocks, str(top), "--json")
        assert done.returncode == 0, done
        gpu = json.loads(done.stdout)["gpus"][1]
        assert gpu["lease_mem_max_mhz"] == top and "lease_max_mhz" not in gpu, gpu
        assert gpu["note"] == "memory clock set; no memory errors since", gpu
        assert [board["memory_locked"] for board in m.boards()] == [False, True]
        shown = m.takt("clock")
        assert "mem " in shown.stdout and "no memory errors" in shown.stdout, shown.stdout
        assert m.takt("clock", "reset", "--mem-clock", "5").returncode != 0
        assert m.takt("clock", "reset").returncode == 0
        assert not any(board["memory_locked"] for board in m.boards())


@kit.plain
def persistence_is_advised_where_it_is_off():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()

        def without():
            return [gpu["index"] for gpu in client.ask("GET", "/v1/clocks")["gpus"] if gpu.get("persistence_off")]
        assert without() == [] and "ersistence" not in m.takt("clock").stdout
        done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", sys.executable, "-c", PERSISTENCE_OFF)
        assert done.returncode == 0, done
        kit.until(lambda: without() == [1], without)
        shown = m.takt("clock").stdout
        assert "Persistence mode is off on GPU 1:" in shown and "nvidia-smi -pm 1" in shown, shown


def fake_cpus(m):
    """A folder with what the kernel's sysfs would have of four CPUs; nothing but takt looks at it."""
    root = m.path("fake-sysfs")
    for policy in range(4):
        folder = f"{root}/devices/system/cpu/cpufreq/policy{policy}"
        os.makedirs(folder)
        for name, khz in (("cpuinfo_min_freq", 800000), ("scaling_min_freq", 800000), ("scaling_max_freq", 3500000)):
            with open(f"{folder}/{name}", "w", encoding="ascii") as file:
                file.write(f"{khz}\n")
    with open(f"{root}/devices/system/cpu/possible", "w", encoding="ascii") as file:
        file.write("0-3\n")
    return root


def ceilings(m):
    found = []
    for policy in range(4):
        with open(m.path(f"fake-sysfs/devices/system/cpu/cpufreq/policy{policy}/scaling_max_freq"),
                  encoding="ascii") as file:
            found.append(int(file.readline()) // 1000)
    return found


def cpus_are_limited_renewed_and_put_back():
    with kit.machine(gpus=1) as m:
        flags = ("--sysfs-root", fake_cpus(m))
        m.start(*flags)
        assert m.takt("clock", "set", "--cpu-max-mhz", "2400", "--gpus", "0").returncode == 64
        done = m.takt("clock", "set", "--cpu-max-mhz", "2400", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["cpu"]["max_mhz"] == 2400, done
        assert ceilings(m) == [2400] * 4
        assert "CPUs are limited to 2400 MHz" in m.takt("clock").stdout
        m.kill()  # and the actuator lives until nobody renews, or somebody starts
        m.start(*flags)
        kit.until(lambda: ceilings(m) == [3500] * 4, m.said)
        assert m.takt("clock", "set", "--cpu-max-mhz", "2000").returncode == 0 and ceilings(m) == [2000] * 4
        assert m.takt("clock", "reset", "--cpu").returncode == 0 and ceilings(m) == [3500] * 4
        assert "CPUs" not in m.takt("clock").stdout
        assert m.takt("clock", "set", "--cpu-max-mhz", "1000").returncode == 0
        m.stop()
        assert ceilings(m) == [3500] * 4, "a stop puts them back"


def a_machine_without_cpufreq_says_so():
    with kit.machine(gpus=1) as m:
        os.makedirs(m.path("empty"))
        m.start("--sysfs-root", m.path("empty"))

        def ask():
            done = m.takt("clock", "set", "--cpu-max-mhz", "2400")
            return "try again" not in done.stderr and done
        done = kit.until(ask, "the actuator answers")
        assert done.returncode != 0 and "the list of CPUs" in done.stderr, done


def watts(m):
    return m.boards()[0]["limit_mw"] // 1000


def stands_at(m, limit_w):
    kit.until(lambda: watts(m) == limit_w, lambda: (watts(m), m.said()))


def a_jobs_power_limit_lowers_its_gpus_and_goes_back():
    with kit.machine(gpus=1) as m:
        m.start()
        client, default_w = m.client(), watts(m)
        done = m.takt("submit", "-q", "--power-limit", "400W", "--", *m.witness_argv(600_000))
        assert done.returncode == 0, done
        job = int(done.stdout)
        stands_at(m, 400)
        assert not m.locked() and client.job(job)["power_limit_mw"] == 400_000, client.job(job)
        text = m.takt("show", str(job)).stdout
        assert "at most 400 W asked for" in text and "power limit 400 W" in text and "SM clock within" not in text, text
        assert "<= 400 W" in m.takt("queue").stdout, m.takt("queue")
        assert "400W" in m.takt("clock").stdout and f"job {job}" in m.takt("clock").stdout, m.takt("clock")
        assert m.takt("clock", "cap", "--watts", "350").returncode == 0 and watts(m) == 350
        assert m.takt("clock", "cap", "--clear").returncode == 0
        stands_at(m, 400)
        m.kill()
        m.start()
        client = m.client()
        stands_at(m, 400)
        client.cancel(job)
        client.wait(job)
        stands_at(m, default_w)
        both = client.submit(m.witness_argv(600_000), gpus=1, power_limit_mw=350_000, clock_ask="ceiling", clock_mhz=900)["id"]
        stands_at(m, 350)
        kit.until(lambda: "MHz, power limit 350 W" in m.takt("show", str(both)).stdout, m.said)
        assert list(m.locked().values())[0][1] == 900, m.locked()
        kit.until(lambda: "pid" in client.job(both), lambda: client.job(both))
        os.kill(client.job(both)["pid"], 9)
        client.wait(both)
        stands_at(m, default_w)
        assert not m.locked()
        # What is no lower than its own sets nothing.
        assert client.wait(client.submit(["true"], gpus=1, power_limit_mw=default_w * 1000)["id"])["state"] == "done"
        for word, says in ((str(default_w + 1), "a job's limit only lowers theirs"), ("3", "a job may have"),
                           ("much", "must be a power such as 300")):
            done = m.takt("submit", "--power-limit", word, "--", "true")
            assert done.returncode == 64 and says in done.stderr, done
        done = m.takt("submit", "--power-limit", "400", "--max-slowdown", "5%", "--", "true")
        assert done.returncode == 64 and "exclude each other" in done.stderr, done


def the_highest_power_limit_of_a_shared_gpu_holds():
    with kit.machine(gpus=1) as m:
        m.start()
        client, default_w = m.client(), watts(m)

        def start(**more):
            return client.submit(m.witness_argv(600_000), gpus=1, gpu_milli=300, **more)["id"]

        low = start(power_limit_mw=300_000)
        stands_at(m, 300)
        high = start(power_limit_mw=450_000)
        stands_at(m, 450)
        free = start()
        stands_at(m, default_w)
        kit.until(lambda: "another one there wants" in m.takt("show", str(low)).stdout, m.said)
        client.cancel(free)
        stands_at(m, 450)
        client.cancel(high)
        stands_at(m, 300)
        client.cancel(low)
        stands_at(m, default_w)


@kit.plain
def without_permission_a_power_limit_is_advice():
    with kit.machine(gpus=1) as m:
        m.twin("fault", "0", "permission")
        m.start()
        client, default_w = m.client(), watts(m)
        job = client.submit(m.witness_argv(600_000), gpus=1, power_limit_mw=400_000)["id"]
        kit.until(lambda: "-pl 400" in m.takt("show", str(job)).stdout, lambda: m.takt("show", str(job)))
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        assert watts(m) == default_w, m.boards()


if __name__ == "__main__":
    sys.exit(kit.main([
        a_memory_clock_is_an_administrators_and_goes_back,
        persistence_is_advised_where_it_is_off,
        cpus_are_limited_renewed_and_put_back,
        a_machine_without_cpufreq_says_so,
        a_jobs_power_limit_lowers_its_gpus_and_goes_back,
        the_highest_power_limit_of_a_shared_gpu_holds,
        without_permission_a_power_limit_is_advice,
    ]))
