#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified Python clients beside takt: gpustat and nvidia-ml-py see what takt sees, and a clock that
one of them locks slows the job that takt runs; takt shows it and leaves it alone.

Usage: clients_python.py BUILD_FOLDER
"""
import contextlib
import json
import os
import sys

import kit

sys.path.insert(0, os.path.join(kit.SOURCE, "tests/twin"))
import venv  # noqa: E402

LOW_MHZ, HIGH_MHZ = 990, 1500
MEMORY_MIB = 2048

LIST = """
import json
from pynvml import *
nvmlInit()
def gpu(i):
    h = nvmlDeviceGetHandleByIndex(i)
    return {"uuid": nvmlDeviceGetUUID(h), "name": nvmlDeviceGetName(h),
            "sm_mhz": nvmlDeviceGetClockInfo(h, NVML_CLOCK_SM),
            "power_mw": nvmlDeviceGetPowerUsage(h),
            "memory": nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2).used,
            "pids": [p.pid for p in nvmlDeviceGetComputeRunningProcesses(h)]}
print(json.dumps([gpu(i) for i in range(nvmlDeviceGetCount())]))
"""
LOCK = """
import sys
from pynvml import *
nvmlInit()
for uuid in sys.argv[2:]:
    h = nvmlDeviceGetHandleByUUID(uuid)
    if sys.argv[1] == "reset":
        nvmlDeviceResetGpuLockedClocks(h)
    else:
        nvmlDeviceSetGpuLockedClocks(h, 345, int(sys.argv[1]))
"""


def python(m, *words):
    try:
        interpreter = venv.python_in(kit.BUILD)
    except venv.Unavailable as why:
        raise kit.Skip(f"the clients are not to be had: {why}") from why
    done = m.run(kit.TWIN, "exec", "--", interpreter, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def status(m):
    return json.loads(m.takt("status", "--json").stdout)["gpus"]


@contextlib.contextmanager
def job_on(count, **more):
    """A machine with a job on so many GPUs that takt and the boards show at work."""
    with kit.machine() as m:
        m.start()
        job = m.client().submit(m.load_argv("--profile", "gemm", "--mem", MEMORY_MIB), gpus=count, **more)
        # Utilisation and power are means of the last second: by then both are steady.
        kit.until(lambda: sum(bool(gpu["procs"]) and gpu["gpu_util_pct"] == 100
                              for gpu in status(m)) == count, "takt shows the job at work")
        yield m, m.client().job(job["id"])


def near(a, b):
    """Power of one moment and of the next: it creeps up with the temperature."""
    return abs(a - b) <= 0.03 * b + 1000


def pynvml_sees_what_takt_sees():
    with job_on(2) as (m, job):
        theirs, ours = json.loads(python(m, "-c", LIST)), status(m)
        assert len(theirs) == len(ours) == 8
        for their, our in zip(theirs, ours):
            assert all(their[name] == our[name] for name in ("uuid", "name", "sm_mhz")), (their, our)
            assert their["memory"] == our["mem_used_bytes"], (their, our)
            assert near(their["power_mw"], our["power_mw"]), (their, our)
            assert their["pids"] == [proc["pid"] for proc in our["procs"]], (their, our)
        busy = [gpu["index"] for gpu in ours if gpu["procs"]]
        assert busy == job["gpu_list"], (busy, job)
        assert {proc["job_id"] for gpu in ours for proc in gpu["procs"]} == {job["id"]}


def gpustat_sees_what_takt_sees():
    with job_on(2) as (m, job):
        theirs, ours = json.loads(python(m, "-m", "gpustat", "--json"))["gpus"], status(m)
        assert len(theirs) == len(ours) == 8
        for their, our in zip(theirs, ours):
            assert (their["uuid"], their["name"]) == (our["uuid"], our["name"])
            assert their["enforced.power.limit"] == our["power_limit_mw"] // 1000
            assert near(their["power.draw"] * 1000, our["power_mw"]), (their, our)
            assert their["utilization.gpu"] == our["gpu_util_pct"], (their, our)
            assert their["memory.used"] == our["mem_used_bytes"] >> 20, (their, our)
            assert [(proc["pid"], proc["command"], proc["gpu_memory_usage"])
                    for proc in their["processes"]] == \
                [(proc["pid"], proc["command"], proc["memory_bytes"] >> 20)
                 for proc in our["procs"]], (their, our)
        assert [gpu["index"] for gpu in theirs if gpu["processes"]] == job["gpu_list"]


def gpustat_prints_the_jobs_process():
    with job_on(1) as (m, job):
        lines = python(m, "-m", "gpustat", "--no-color", "-cp").splitlines()[1:]
        assert len(lines) == 8 and all("NVIDIA H100 80GB HBM3" in line for line in lines), lines
        (pid,) = {proc["pid"] for gpu in status(m) for proc in gpu["procs"]}
        shown = [number for number, line in enumerate(lines)
                 if f"takt-twin/{pid}({MEMORY_MIB}M)" in line]
        assert shown == job["gpu_list"], lines


def step_times(m, job):
    """[(milliseconds, clock)] of the steps so far, by the job's log as takt shows it."""
    done = m.takt("logs", str(job["id"]))
    assert done.returncode == 0, done.stderr
    words = (line.split() for line in done.stdout.splitlines() if line.startswith("step "))
    return [(float(step[3]), int(step[5])) for step in words]


def step_ms(m, job, mhz):
    """The shortest of the next five whole steps at this clock: a busy machine makes some longer, and none shorter."""
    since = len(step_times(m, job))

    def settled():
        steps = step_times(m, job)[since + 1:]  # the clock changed within the first of them
        return len(steps) >= 5 and steps
    steps = kit.until(settled, "five more steps")
    assert {clock for _, clock in steps} == {mhz}, steps
    return min(ms for ms, _ in steps)


def a_lock_by_pynvml_slows_the_job():
    with job_on(2) as (m, job):
        full_mhz = status(m)[0]["sm_max_mhz"]
        uuids = [status(m)[gpu]["uuid"] for gpu in job["gpu_list"]]
        ratio, tried = full_mhz / LOW_MHZ, []

        def slower_by_the_ratio():
            before = step_ms(m, job, full_mhz)
            python(m, "-c", LOCK, str(LOW_MHZ), *uuids)
            slow = step_ms(m, job, LOW_MHZ)
            ours = [status(m)[gpu] for gpu in job["gpu_list"]]
            assert {gpu["sm_mhz"] for gpu in ours} == {LOW_MHZ}, ours
            assert not any("lease_max_mhz" in gpu for gpu in ours), ours  # takt does not claim it
            python(m, "-c", LOCK, "reset", *uuids)
            after = step_ms(m, job, full_mhz)
            tried.append(f"simulated: a step takes {before} ms, locked {slow} ms, reset {after} ms; clock ratio {ratio:.2f}")
            return 0.8 * ratio < slow / before < 1.15 * ratio and abs(after - before) < 0.15 * before
        kit.until(slower_by_the_ratio, lambda: tried)
        kit.note(tried[-1])


def a_lock_by_others_is_left_alone():
    """takt neither lifts nor renews it: not while its job runs, not at its end, not when takt ends."""
    with job_on(1) as (m, job):
        (gpu,) = job["gpu_list"]
        python(m, "-c", LOCK, str(LOW_MHZ), status(m)[gpu]["uuid"])
        mine = {gpu: (345, LOW_MHZ)}
        calls = m.boards()[gpu]["setter_calls"]
        kit.until(lambda: status(m)[gpu]["sm_mhz"] == LOW_MHZ, "takt shows the clock")
        m.client().cancel(job["id"])
        m.client().wait(job["id"])
        kit.until(lambda: status(m)[gpu]["state"] == "free", "the GPU is free again")
        assert m.stop() == 0
        assert m.locked() == mine, m.locked()
        assert m.boards()[gpu]["setter_calls"] == calls, m.boards()[gpu]


def a_lock_over_takts_own_is_noticed_and_left_alone():
    """takt says so and sets nothing there any more, until an administrator resets the GPU."""
    with job_on(1, clock_ask="ceiling", clock_mhz=LOW_MHZ) as (m, job):
        (gpu,) = job["gpu_list"]
        assert m.locked() == {gpu: (345, LOW_MHZ)}, m.locked()
        python(m, "-c", LOCK, str(HIGH_MHZ), status(m)[gpu]["uuid"])
        kit.until(lambda: status(m)[gpu]["clock_state"] == "foreign", lambda: status(m)[gpu])
        note = f"SM clock {HIGH_MHZ} MHz although takt set [345,{LOW_MHZ}] MHz"
        assert note in m.takt("clock", "show").stdout, m.takt("clock", "show")
        assert note in m.takt("show", str(job["id"])).stdout, m.takt("show", str(job["id"]))
        refused = m.takt("clock", "set", str(LOW_MHZ), "--gpus", str(gpu))
        assert refused.returncode != 0 and "although takt set" in refused.stderr, refused
        m.client().cancel(job["id"])
        m.client().wait(job["id"])
        assert m.locked() == {gpu: (345, HIGH_MHZ)}, m.locked()
        assert m.takt("clock", "reset", "--gpus", str(gpu)).returncode == 0
        assert not m.locked() and status(m)[gpu]["clock_state"] == "clean", status(m)[gpu]


if __name__ == "__main__":
    sys.exit(kit.main([pynvml_sees_what_takt_sees, gpustat_sees_what_takt_sees,
                       gpustat_prints_the_jobs_process, a_lock_by_pynvml_slows_the_job,
                       a_lock_by_others_is_left_alone,
                       a_lock_over_takts_own_is_noticed_and_left_alone]))
