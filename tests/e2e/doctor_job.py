#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt doctor JOB on simulated machines: the bottleneck of each kind of workload is named, and none where what is seen
does not tell.

A simulated workload sleeps while its GPUs work, so what a real job's threads would do is done by processes beside it.

Usage: doctor_job.py BUILD_FOLDER
"""
import contextlib
import json
import os
import sys

import kit

SPINS = "while :; do :; done"
SPIN = f"nice -n 19 sh -c '{SPINS}'"  # who wants a CPU counts, whether it gets one or not

EXCHANGE = """
step_ms = 100
[forward]
kind = "compute"
share = 1000
util = 1000
memory_util = 200
activity = 700
clock_weight = 500
[gradients]
kind = "communication"
share = 3000
util = 1000
memory_util = 60
activity = 260
"""


def spinning(m):
    """Processes that never rest and have begun so."""
    found = []
    for pid in m.pids("job"):
        with contextlib.suppress(OSError):
            found += [pid] * (kit.environ_of(pid, "cmdline") == f"sh\0-c\0{SPINS}\0".encode())
    return found


def begin(m, *words, gpus=1, beside=0, **more):
    """The number of a job that computes, with so many processes beside it that never rest."""
    load = " ".join(m.load_argv(*words, "--seconds", "3600", "--quiet"))
    spins = "".join(f"({SPIN}) & " for _ in range(beside))
    job = m.client().submit(["sh", "-c", f"{spins}{load}"], gpus=gpus, **more)["id"]
    kit.until(lambda: sum(bool(gpu["processes"]) for gpu in m.boards()) >= gpus, "the load has begun")
    kit.until(lambda: len(spinning(m)) == beside, "what never rests has begun")
    return job


def ask(m, job, *words):
    """(exit status, report)"""
    done = m.twin_exec("doctor", str(job), "--socket", m.socket, "--json", *words)
    assert done.stderr == "", done
    said = json.loads(done.stdout)
    assert said["exit"] == done.returncode and said["job"] == job and said["simulated"], said
    return done.returncode, said


def answer(said, cause):
    return next(row["answer"] for row in said["causes"] if row["cause"] == cause)


@contextlib.contextmanager
def job_of(*words, board="hgx-h100", gpus=1, **more):
    with kit.machine(board, gpus=max(gpus, 2)) as m:
        m.start()
        yield m, begin(m, *words, gpus=gpus, **more)


def named(bottleneck, *words, **more):
    with job_of(*words, **more) as (m, job):
        kit.note(" ".join(words))
        status, said = ask(m, job)
        assert said.get("bottleneck") == bottleneck, said
        assert status == (3 if bottleneck is None else int(bottleneck not in ("memory", "compute"))), said
        return said


def workloads_that_the_gpu_limits():
    named("compute", "--profile", "gemm")
    named("memory", "--profile", "stream")
    named("compute", "--profile", "vit", gpus=2)


def boards_without_counters_are_told_by_power_and_memory():
    named("compute", "--profile", "gemm", board="dgx-a100")
    named("memory", "--profile", "stream", board="dgx-a100")


def input_that_comes_too_slowly():
    said = named("data-loading", "--profile", "data-starved", beside=3)
    assert said["cpu_milli"] >= 1500 and said["processes"] >= 4, said


def gaps_that_nothing_here_explains():
    said = named(None, "--profile", "data-starved")
    assert answer(said, "data-loading") == "UNKNOWN" and answer(said, "launch-bound") == "NO", said
    assert any("py-spy" in row.get("next", "") for row in said["causes"]), said


def one_thread_that_never_rests_may_be_either():
    """The simulated boards' counters do not say how full a kernel makes them."""
    said = named(None, "--profile", "launch-bound", beside=1)
    assert answer(said, "data-loading") == answer(said, "launch-bound") == "UNKNOWN", said


def gpus_that_wait_for_their_links():
    with kit.machine("hgx-h100", gpus=4) as m:
        with open(m.path("exchange.toml"), "w", encoding="ascii") as file:
            file.write(EXCHANGE)
        m.start()
        status, said = ask(m, begin(m, "--profile", m.path("exchange.toml"), gpus=4))
        assert said.get("bottleneck") == "communication" and status == 1, said


def what_slows_one_gpu_is_named():
    with job_of("--profile", "gemm", gpus=2) as (m, job):
        m.twin("fault", "1", "power-brake")
        status, said = ask(m, job)
        assert said.get("bottleneck") == "throttling" and status == 1, said
        assert [row["gpus"] for row in said["causes"] if row["cause"] == "throttling"] == [[1]], said


def one_gpu_that_all_wait_for():
    with kit.machine("hgx-h100", gpus=4) as m:
        m.start()
        job = begin(m, "--profile", "gemm", "--straggler", "2=40", gpus=4)
        _, said = ask(m, job)
        assert said.get("bottleneck") == "imbalance", said
        assert [row["gpus"] for row in said["causes"] if row["cause"] == "imbalance"] == [[2]], said


def without_the_driver_the_daemons_readings_are_used():
    with job_of("--profile", "gemm") as (m, job):
        done = m.takt("doctor", str(job), "--nvml-path", m.path("none"))
        assert "by what takt serve reads" in done.stdout, done
        assert "Bottleneck: compute" in done.stdout and done.returncode == 0, done


def shares_and_jobs_that_do_not_run():
    with kit.machine("hgx-h100", gpus=1) as m:
        m.start()
        job = begin(m, "--profile", "gemm", gpus=1, gpu_milli=500)
        status, said = ask(m, job)
        assert status == 3 and answer(said, "compute") == "UNKNOWN", said
        assert "shares its GPU" in m.twin_exec("doctor", str(job), "--socket", m.socket).stdout
        waits = m.client().submit(["true"], gpus=1)["id"]
        done = m.takt("doctor", str(waits))
        assert done.returncode == 75 and "only a job that runs" in done.stderr, done
        assert m.takt("doctor", "9999").returncode == 66
        assert m.takt("doctor", "x").returncode == 64
        assert m.takt("doctor", str(job), "--seconds", "2").returncode == 64


def what_nccl_says_stands_beside_what_was_seen():
    """As its inspector plugin writes it."""
    with kit.machine("hgx-h100", gpus=1) as m:
        folder = m.path("nccl")
        os.mkdir(folder)
        m.start("--nccl-inspector", folder)
        client = m.client()
        job = client.submit(["sleep", "1000"], gpus=1)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", "it runs")
        assert "nccl" not in client.ask("GET", f"/v1/jobs/{job}/course")
        assert "nccl" not in ask(m, job, "--seconds", "3")[1]
        labels = '{comm_name="DP Group 0",n_nodes="2",nranks="16",collective="%s",message_size="4-5GB"}'
        with open(f"{folder}/nccl_inspector_metrics_{client.status()['gpus'][0]['uuid']}.prom", "w", encoding="utf-8") as file:
            for operation, us in (("AllGather", 700), ("AllReduce", 9042)):
                file.write(f"nccl_bus_bandwidth_gbs{labels % operation} 48.5\n"
                           f"nccl_collective_exec_time_microseconds{labels % operation} {us}\n")
        rows = kit.until(lambda: client.ask("GET", f"/v1/jobs/{job}/course").get("nccl"), "it is read")
        assert [(row["operation"], row["operation_us"]) for row in rows] == [("AllGather", 700), ("AllReduce", 9042)], rows
        assert rows[1]["comm"] == "DP Group 0" and rows[1]["bus_bytes_s"] == 48500000000 and rows[1]["gpu"] == 0, rows
        _, said = ask(m, job, "--seconds", "3")
        assert said["nccl"] == {"operation": "AllReduce", "gpu": 0, "ranks": 16, "nodes": 2, "bus_bytes_s": 48500000000,
                                "operation_us": 9042}, said
        told = next(row["evidence"] for row in said["causes"] if row["cause"] == "communication")
        assert "AllReduce of 16 ranks on 2 nodes at 48.5 GB/s bus bandwidth, 9.042 ms each (GPU 0)" in told, told


def what_the_daemon_has_found_is_in_its_report():
    with kit.machine(gpus=2) as m:
        m.start()
        kit.until(lambda: not json.loads(m.takt("health", "--json").stdout).get("events_why"), "XIDs are heard")
        done = m.twin_exec("doctor", "--socket", m.socket, "--json")
        rows = [row for row in json.loads(done.stdout)["checks"] if row["check"] == "heard-over-time"]
        assert [(row["verdict"], row["gpus"]) for row in rows] == [("PASS", [0, 1])], rows
        m.twin("fault", "1", "xid=64")
        kit.until(lambda: m.client().status()["gpus"][1]["health"] == "quarantined", "the XID is heard")
        done = m.twin_exec("doctor", "--socket", m.socket, "--json")
        rows = [row for row in json.loads(done.stdout)["checks"] if row["check"] == "heard-over-time"]
        assert ("CRITICAL", [1]) in [(row["verdict"], row["gpus"]) for row in rows], rows
        assert any("64" in row["evidence"] for row in rows) and done.returncode == 2, rows


def a_gpu_on_which_every_run_takes_longer():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        script = 'case "$CUDA_VISIBLE_DEVICES" in 1) sleep 4;; *) sleep 2;; esac'
        jobs = [client.submit(["sh", "-c", script], gpus=1, name="train")["id"] for _ in range(18)]
        views = [client.wait(job) for job in jobs]
        kit.note(str([(view["gpu_list"], view["state"]) for view in views]))
        done = m.twin_exec("doctor", "--socket", m.socket, "--json")
        rows = [row for row in json.loads(done.stdout)["checks"] if row["check"] == "run-variance"]
        assert [(row["verdict"], row["gpus"]) for row in rows] == [("WARNING", [1])], (rows, views)
        assert "'train'" in rows[0]["evidence"] and done.returncode == 1, (rows, done)
        done = m.twin_exec("doctor", "--socket", m.path("nobody"), "--json")
        assert "run-variance" not in done.stdout, done


if __name__ == "__main__":
    sys.exit(kit.main([
        workloads_that_the_gpu_limits,
        boards_without_counters_are_told_by_power_and_memory,
        input_that_comes_too_slowly,
        gaps_that_nothing_here_explains,
        one_thread_that_never_rests_may_be_either,
        gpus_that_wait_for_their_links,
        what_slows_one_gpu_is_named,
        one_gpu_that_all_wait_for,
        without_the_driver_the_daemons_readings_are_used,
        shares_and_jobs_that_do_not_run,
        what_nccl_says_stands_beside_what_was_seen,
        what_the_daemon_has_found_is_in_its_report,
        a_gpu_on_which_every_run_takes_longer,
    ], at_once=4))
