#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an administrator may turn beside SM clocks: memory clocks, the ceiling of CPUs, and advice about what is lost.

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


def persistence_is_advised_where_it_is_off():
    kit.needs_a_plain_twin()
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()

        def without():
            return [gpu["index"] for gpu in client.ask("GET", "/v1/clocks")["gpus"] if gpu.get("persistence_off")]
        assert without() == [] and "ersistence" not in m.takt("clock").stdout
        done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", sys.executable, "-c", PERSISTENCE_OFF)
        assert done.returncode == 0, done
        kit.until(lambda: without() == [1], kit.WAIT_S, without)
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
        kit.until(lambda: ceilings(m) == [3500] * 4, kit.WAIT_S, m.said)
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
        done = kit.until(ask, kit.WAIT_S, "the actuator answers")
        assert done.returncode != 0 and "the list of CPUs" in done.stderr, done


if __name__ == "__main__":
    sys.exit(kit.main([
        a_memory_clock_is_an_administrators_and_goes_back,
        persistence_is_advised_where_it_is_off,
        cpus_are_limited_renewed_and_put_back,
        a_machine_without_cpufreq_says_so,
    ]))
