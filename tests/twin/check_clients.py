#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients on a simulated machine: nvidia-ml-py, gpustat and nvitop, in a
virtual environment.

check_clients.py BUILD_FOLDER SPY_LIBRARY
"""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True

import venv  # noqa: E402
from twin_machine import Machine, main, tap, TWIN, waiting  # noqa: E402

BUILD, SPY = sys.argv[1:3]

LIST = """
import json
from pynvml import *
nvmlInit()
def gpu(i):
    h = nvmlDeviceGetHandleByIndex(i)
    return {"name": nvmlDeviceGetName(h), "uuid": nvmlDeviceGetUUID(h),
            "power": nvmlDeviceGetPowerUsage(h), "sm": nvmlDeviceGetClockInfo(h, NVML_CLOCK_SM),
            "memory": nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2).used,
            "pids": [p.pid for p in nvmlDeviceGetComputeRunningProcesses(h)],
            "clocks": len(nvmlDeviceGetSupportedGraphicsClocks(
                h, nvmlDeviceGetSupportedMemoryClocks(h)[0])),
            "limits": nvmlDeviceGetPowerManagementLimitConstraints(h),
            "energy": nvmlDeviceGetTotalEnergyConsumption(h), "pci": nvmlDeviceGetPciInfo(h).busId}
print(json.dumps([gpu(i) for i in range(nvmlDeviceGetCount())]))
nvmlShutdown()
"""

LOCK = """
from pynvml import *
nvmlInit()
nvmlDeviceSetGpuLockedClocks(nvmlDeviceGetHandleByIndex(0), 345, 1200)
nvmlShutdown()
"""

# Every wrapper there is, each in a process of its own: a device where one is asked for, else nothing
# (0, which is NULL to a pointer). The answers, and what ended without one.
WALK = """
import inspect, json, os, sys, pynvml
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
if sys.argv[1] == "mig":
    pynvml.nvmlDeviceSetMigMode(device, 1)
    instance = pynvml.nvmlDeviceCreateGpuInstance(device, 9)
    pynvml.nvmlGpuInstanceCreateComputeInstance(instance, 2)
    device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 0)
answers, died = {}, []
def call(wrapper):
    required = [p for p in inspect.signature(wrapper).parameters.values() if p.default is p.empty]
    try:
        wrapper(*[device if p.name in ("handle", "device", "migHandle", "device1", "device2",
                                       "handle1", "handle2") else 0 for p in required])
        return "ok"
    except pynvml.NVMLError as error:
        return str(error)
    except Exception:
        return "not callable so"
skip = ("nvmlInit", "nvmlInitWithFlags", "nvmlShutdown", "nvmlStructToFriendlyObject",
        "nvmlFriendlyObjectToStruct", "nvmlEventSetWait", "nvmlEventSetWait_v2")
for name, wrapper in sorted(vars(pynvml).items()):
    if not name.startswith("nvml") or not inspect.isfunction(wrapper) or name in skip:
        continue
    sys.stdout.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        sys.stderr = open(os.devnull, "w")
        os.write(write, call(wrapper).encode())
        os._exit(0)
    os.close(write)
    answer = os.read(read, 200).decode()
    os.close(read)
    if os.waitpid(pid, 0)[1] != 0 or not answer:
        died.append(name)
    answers.setdefault(answer, []).append(name)
print(json.dumps([{answer: len(names) for answer, names in answers.items()}, died]))
"""


def python():
    try:
        return venv.python_in(BUILD)
    except venv.Unavailable as unavailable:
        raise tap.Skip(f"the clients are not to be had: {unavailable}") from unavailable


def on(machine, *command, **env):
    return subprocess.run([TWIN, "exec", "--", *command], env=dict(machine.env, **env),
                          capture_output=True, text=True, timeout=waiting.WAIT_S, check=True).stdout


def pynvml_lists_gpus_and_their_processes():
    interpreter = python()
    with Machine("hgx-h100") as machine:
        load = machine.start_load("--gpus", "2", "--mem", "1024", gpu=2)
        gpus = json.loads(on(machine, interpreter, "-c", LIST))
        assert len(gpus) == 8
        assert {gpu["name"] for gpu in gpus} == {"NVIDIA H100 80GB HBM3"}
        assert [gpu["pids"] for gpu in gpus] == [[], [], [load.pid], [], [], [], [], []]
        assert gpus[2]["memory"] == 1 << 30 and gpus[2]["sm"] == 1980
        assert gpus[0]["sm"] == 345 and gpus[0]["clocks"] == 110
        assert gpus[0]["limits"] == [200000, 700000]
        assert gpus[0]["pci"] == "00000000:53:00.0"


def pynvml_on_a_dgx1():
    interpreter = python()
    with Machine("dgx1-v100") as machine:
        gpus = json.loads(on(machine, interpreter, "-c", LIST))
        assert {gpu["name"] for gpu in gpus} == {"Tesla V100-SXM2-32GB"}
        assert gpus[7]["pci"] == "00000000:8A:00.0" and gpus[7]["clocks"] == 187


def a_lock_set_by_pynvml_holds_for_all():
    interpreter = python()
    with Machine("hgx-h100", "--gpus", "1") as machine:
        machine.start_load()
        on(machine, interpreter, "-c", LOCK)
        assert machine.state()[0]["lock_max_mhz"] == 1200
        assert json.loads(on(machine, interpreter, "-c", LIST))[0]["sm"] == 1200


def gpustat_shows_names_processes_and_power():
    interpreter = python()
    with Machine("hgx-h100", "--gpus", "2") as machine:
        load = machine.start_load("--gpus", "1", gpu=1)
        shown = json.loads(on(machine, interpreter, "-m", "gpustat", "--json"))
        assert [gpu["name"] for gpu in shown["gpus"]] == ["NVIDIA H100 80GB HBM3"] * 2
        assert [p["pid"] for p in shown["gpus"][1]["processes"]] == [load.pid]
        assert shown["gpus"][1]["processes"][0]["command"] == os.path.basename(TWIN)
        assert shown["gpus"][0]["power.draw"] is not None
        assert shown["gpus"][0]["enforced.power.limit"] == 700


def nvitop_shows_how_busy_a_process_is():
    interpreter = python()
    with Machine("hgx-h100", "--gpus", "2") as machine:
        load = machine.start_load("--gpus", "1", gpu=1)
        shown = on(machine, interpreter, "-m", "nvitop", "--once", "--no-unicode")
        rows = [line.split() for line in shown.splitlines() if f" {load.pid} " in line]
        assert len(rows) == 1 and rows[0][1] == "1" and "100" in rows[0], shown


DOCUMENTED = {"ok", "Not Supported", "Function Not Found", "Invalid Argument", "Not Found",
              "Argument version mismatch", "In use by another client", "Insufficient Resources",
              "Insufficient Size", "Requested functionality has been deprecated",
              "not callable so"}


def walk(machine_name, mode, *options):
    interpreter = python()
    with Machine(machine_name, "--gpus", "2", *options) as machine:
        answers, died = json.loads(on(machine, interpreter, "-c", WALK, mode).splitlines()[-1])
    assert died == [], died
    assert set(answers) <= DOCUMENTED, answers
    return answers


def every_wrapper_answers_in_a_process_of_its_own():
    # of a few hundred wrappers, so many answer with data: fewer means that something was lost
    counts = [walk("hgx-h100", "plain")["ok"], walk("dgx1-v100", "plain")["ok"],
              walk("hgx-h100", "plain", "--driver", "13x")["ok"],
              walk("hgx-h100", "plain", "--driver", "535")["ok"]]
    assert all(n >= least for n, least in zip(counts, (155, 145, 170, 150))), counts


def every_wrapper_answers_of_a_mig_device():
    assert walk("hgx-h100", "mig")["ok"] >= 20


def no_real_library_or_device_is_opened():
    interpreter = python()
    with Machine("hgx-h100", "--gpus", "1") as machine:
        log = os.path.join(machine.folder.name, "opened")
        maps = "print(open('/proc/self/maps').read())"
        shown = on(machine, interpreter, "-c", LIST + maps, LD_PRELOAD=SPY, TWIN_SPY_LOG=log)
        opened = open(log, encoding="utf-8").read().split("\n")
        # the spy sees: the machine file is among what was opened
        assert machine.path in opened, opened
        strange = [path for path in opened if path != "/proc/driver/nvidia/version"
                   and path.startswith(("/dev/nvidia", "/proc/driver/nvidia"))]
        assert strange == [], strange
        libraries = {line.split()[-1] for line in shown.splitlines() if "libnvidia" in line}
        ours = os.path.realpath(os.environ["TAKT_TWIN_LIB"])
        assert {os.path.realpath(library) for library in libraries} == {ours}, libraries


sys.exit(main([tap.plain(case) for case in (
    pynvml_lists_gpus_and_their_processes,
    pynvml_on_a_dgx1,
    a_lock_set_by_pynvml_holds_for_all,
    gpustat_shows_names_processes_and_power,
    nvitop_shows_how_busy_a_process_is,
    every_wrapper_answers_in_a_process_of_its_own,
    every_wrapper_answers_of_a_mig_device,
    no_real_library_or_device_is_opened,
)]))
