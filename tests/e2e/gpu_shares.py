#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several jobs on one GPU: shares, the memory that they reserve, and what of it is told.

The witness of a share takes as many of twenty files of its GPU as it was given parts (witness.c): a
GPU that is given out beyond the whole leaves one of them without.

Usage: gpu_shares.py BUILD_FOLDER
"""
import os
import random
import sys

import kit

GIB = 1024


def running(client, *ids):
    return lambda: all(client.job(i)["state"] == "running" for i in ids)


def shares_of(client, gpu=0):
    return client.status()["gpus"][gpu].get("shares", [])


def jobs_share_one_gpu_at_once():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        half = client.submit(m.witness_argv(600_000), gpus=1, gpu_milli=500, name="half")["id"]
        third = client.submit(m.witness_argv(600_000), gpus=1, gpu_milli=300, name="third")["id"]
        kit.until(running(client, half, third), client.live)
        late = client.submit(m.witness_argv(1), gpus=1, gpu_milli=300)["id"]
        whole = client.submit(m.witness_argv(1), gpus=1)["id"]
        kit.until(lambda: client.job(late).get("why") == "fraction", lambda: client.job(late))
        listed = {share["job_id"]: share["milli"] for share in shares_of(client)}
        assert listed == {half: 500, third: 300}, listed
        series = [name for name in client.metrics() if name.startswith("takt_gpu_job{")]
        assert len(series) == 2 and all(any(f',takt_job="{job}"' in name for name in series)
                                        for job in (half, third)), series
        shown = m.takt("status").stdout
        assert f"{half} half" in shown and f"{third} third" in shown and "0.5" in shown, shown
        client.cancel(half)
        assert client.wait(late)["state"] == "done"
        client.cancel(third)
        assert client.wait(whole)["state"] == "done"
        assert not m.witness().busy, m.witness().busy
        assert len(m.witness().begins) == 4, m.witness().begins


def the_command_line_asks_for_shares():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        done = m.takt("submit", "-q", "--gpus", "2x0.25", "--gpu-mem", "10G", "--",
                      "/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES $TAKT_GPU_MILLI $TAKT_GPU_MEM_MIB")
        assert done.returncode == 0, done
        job = client.wait(int(done.stdout))
        assert (job["state"], job["gpu_list"]) == ("done", [0, 1]), job
        log = m.takt("logs", str(job["id"])).stdout
        assert log == "0,1 250 10240\n", log
        refused = m.takt("submit", "--gpus", "0.5", "--clock-lock", "1400", "true")
        assert refused.returncode != 0 and "held alone" in refused.stderr, refused


def the_most_demanding_clock_of_a_shared_gpu_holds():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()

        def start(milli, **more):
            job = client.submit(m.witness_argv(600_000), gpus=1, gpu_milli=milli, **more)["id"]
            kit.until(running(client, job), client.live)
            return job

        def ceiling():
            return m.locked()[0][1] if m.locked() else None

        slow = start(300, clock_ask="ceiling", clock_mhz=600)
        assert ceiling() == 600
        fast = start(300, clock_ask="ceiling", clock_mhz=900)
        kit.until(lambda: ceiling() == 900, ceiling)
        free = start(300)
        kit.until(lambda: ceiling() is None, ceiling)
        client.cancel(free)
        kit.until(lambda: ceiling() == 900, ceiling)
        m.kill()
        m.start()
        kit.until(lambda: ceiling() == 900, ceiling)
        client = m.client()
        client.cancel(fast)
        kit.until(lambda: ceiling() == 600, ceiling)
        client.cancel(slow)
        kit.until(lambda: ceiling() is None, ceiling)


def memory_is_a_ledger():
    """What is promised counts, whether it is used or not, and is given back by the end alone."""
    with kit.machine(gpus=1) as m:  # 80 GB
        m.start()
        client = m.client()
        large = client.submit(m.witness_argv(600_000), gpus=1, gpu_milli=100, gpu_mem_mib=60 * GIB)["id"]
        kit.until(running(client, large), client.live)
        second = client.submit(m.witness_argv(1), gpus=1, gpu_milli=100, gpu_mem_mib=30 * GIB)["id"]
        kit.until(lambda: client.job(second).get("why") == "gpu_memory",
                  lambda: client.job(second))
        view = client.job(large)
        assert (view["memory"], view["gpu_mem_held_mib"]) == ("watched", 60 * GIB), view
        assert "GPU memory    watched, 60" in m.takt("show", str(large)).stdout
        client.cancel(large)
        assert client.wait(second)["state"] == "done"
        whole = client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])
        assert whole["memory"] == "whole GPU", whole


def who_takes_more_than_he_reserved_is_told():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        greedy = client.submit(m.load_argv("--mem", 9 * GIB), gpus=1, gpu_milli=250,
                               gpu_mem_mib=4 * GIB, name="greedy")["id"]
        modest = client.submit(m.load_argv("--mem", 2 * GIB), gpus=1, gpu_milli=250,
                               gpu_mem_mib=4 * GIB, name="modest")["id"]
        kit.until(lambda: "more than the 4096 MiB" in client.job(greedy).get("message", ""),
                  lambda: client.job(greedy))
        notes = client.status().get("notes", [])
        assert any(f"job {greedy} uses" in note for note in notes), notes
        assert "more than the" in m.takt("show", str(greedy)).stdout
        assert not client.job(modest).get("message"), client.job(modest)
        client.cancel(greedy)
        client.cancel(modest)
        ended = client.wait(greedy)
        assert "more than the 4096 MiB" in ended["message"], ended
        # Its memory is its own processes'; what the board spent is both jobs'.
        peak = client.wait(modest)["report"]["peak_memory_bytes"]
        assert 2 * GIB << 20 <= peak < 4 * GIB << 20, peak
        assert "energy_mj" not in ended["report"] and "shared" in ended["report"]["energy_why_not"]


def a_share_is_not_handed_on_before_its_job_is_gone():
    """The GPU goes on with others; a process that outlives its job keeps that share from everybody."""
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        stays = client.submit(m.witness_argv(600_000), gpus=1, gpu_milli=500)["id"]
        leaves = client.submit(m.witness_argv(100), gpus=1, gpu_milli=500)["id"]
        after = client.submit(m.witness_argv(1), gpus=1, gpu_milli=500)["id"]
        assert client.wait(leaves)["state"] == "done"
        assert client.wait(after)["state"] == "done"
        assert client.job(stays)["state"] == "running"
        begin = {b.job: b.begin_ns for b in m.witness().begins}
        end = {e.job: e.end_ns for e in m.witness().ends}
        assert begin[after] > end[leaves], (begin, end)
        assert not m.witness().busy, m.witness().busy


def takt_is_killed_over_and_over_and_no_share_is_given_twice():
    dice = random.Random(20261122)
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        ids = []
        for _ in range(30):
            milli = dice.choice([0, 100, 250, 300, 500, 700])
            share = {"gpu_milli": milli} if milli else {}
            ids.append(client.submit(m.witness_argv(dice.randrange(50, 600)), gpus=dice.choice([1, 1, 2]), **share)["id"])
        for _ in range(5):
            until = len(m.witness().ends) + 3
            kit.until(lambda: len(m.witness().ends) >= until or len(m.witness().ends) == 30,
                      lambda: m.witness().ends)
            m.kill()
            m.start()
        client = m.client()
        states = [client.wait(job)["state"] for job in ids]
        assert states == ["done"] * 30, states
        seen = m.witness()
        assert not seen.busy, seen.busy
        assert sorted(b.job for b in seen.begins) == ids, seen.begins


def the_limit_is_handed_to_mps_where_it_runs():
    """A pipe that somebody reads from stands in for its control daemon."""
    with kit.machine(gpus=1) as m:
        for place in ("mps", "another"):
            os.mkdir(m.path(place))
            os.mkfifo(m.path(place + "/control"))
        m.start("--mps-dir", m.path("mps"))
        client = m.client()
        env = ["PATH=/usr/bin:/bin", f"CUDA_MPS_PIPE_DIRECTORY={m.path('mps')}"]
        say = ["/bin/sh", "-c", "echo limit $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"]
        share = {"gpus": 1, "gpu_milli": 500, "gpu_mem_mib": 4096, "env": env}
        nobody = client.wait(client.submit(say, **share)["id"])
        assert nobody["memory"] == "watched", nobody
        readers = [os.open(m.path(place + "/control"), os.O_RDONLY | os.O_NONBLOCK) for place in ("mps", "another")]
        try:
            limited = client.wait(client.submit(say, **share)["id"])
            named = client.wait(client.submit(say, **share | {"env": [env[0], f"CUDA_MPS_PIPE_DIRECTORY={m.path('another')}"]})["id"])
        finally:
            for reader in readers:
                os.close(reader)
        assert named["memory"] == "watched", named
        assert limited["memory"] == "enforced by MPS", limited
        logs = [m.takt("logs", str(job["id"])).stdout for job in (nobody, limited)]
        assert logs == ["limit\n", "limit 0=4096M\n"], logs


def the_next_job_of_that_name_is_told_the_peak():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        before = client.submit(m.load_argv("--mem", 6 * GIB), gpus=1, gpu_milli=500, name="train")["id"]
        kit.until(lambda: client.job(before).get("report", {}).get("peak_memory_bytes", 0) > 5 << 30,
                  lambda: client.job(before))
        client.cancel(before)
        assert client.wait(before)["report"]["peak_memory_bytes"] > 5 << 30
        words = ["submit", "--name", "train", "--gpus", "0.5", "--gpu-mem", "4G", "true"]
        said = m.takt(*words).stdout
        assert "note: last run of train peaked at 6." in said and "asks for 4.0 GiB" in said, said
        assert "peaked at" in m.takt(*words[:-1], "--json", "true").stdout
        enough = m.takt("submit", "--name", "train", "--gpus", "0.5", "--gpu-mem", "20G", "true").stdout
        other = m.takt("submit", "--name", "eval", "--gpus", "0.5", "--gpu-mem", "1G", "true").stdout
        assert "peaked" not in enough + other, (enough, other)
        m.stop()
        m.start()  # history knows it
        assert "peaked at 6." in m.takt(*words).stdout


def jobs_without_gpus_leave_cpus_to_each_other():
    """One that asks for nothing counts as one CPU; it holds up nobody who has a GPU to compute on."""
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        cpus = len(os.sched_getaffinity(0))
        ids = [client.submit(m.witness_argv(600_000))["id"] for _ in range(cpus + 1)]
        kit.until(lambda: client.job(ids[-1]).get("why") == "cpu", lambda: client.job(ids[-1]))
        assert client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])["state"] == "done"
        client.cancel(ids[0])
        kit.until(lambda: client.job(ids[-1])["state"] == "running", client.live)
        small = client.submit(m.witness_argv(1), cpu_milli=100)["id"]
        kit.until(lambda: client.job(small).get("why") == "cpu", lambda: client.job(small))


if __name__ == "__main__":
    sys.exit(kit.main([
        jobs_share_one_gpu_at_once,
        the_command_line_asks_for_shares,
        the_most_demanding_clock_of_a_shared_gpu_holds,
        memory_is_a_ledger,
        who_takes_more_than_he_reserved_is_told,
        a_share_is_not_handed_on_before_its_job_is_gone,
        takt_is_killed_over_and_over_and_no_share_is_given_twice,
        the_limit_is_handed_to_mps_where_it_runs,
        the_next_job_of_that_name_is_told_the_peak,
        jobs_without_gpus_leave_cpus_to_each_other,
    ]))
