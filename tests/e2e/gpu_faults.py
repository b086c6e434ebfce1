#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs that break under takt: lost, hanging, without permission, used by others, left dirty.

What must hold: one GPU's trouble is that GPU's alone, every view says it, and no clock stays changed
in silence.

Usage: gpu_faults.py BUILD_FOLDER
"""
import json
import os
import signal
import subprocess
import sys
import time

import kit
import looks
import smoke


def gpu(client, index):
    return client.status()["gpus"][index]


def state_is(client, index, state):
    return lambda: gpu(client, index)["state"] == state


def views(m, job=None):
    """{view: its text} of everything that a person may look at."""
    found = {"status": m.takt("status").stdout, "clock": m.takt("clock").stdout,
             "status --json": m.takt("status", "--json").stdout,
             "clock --json": m.takt("clock", "show", "--json").stdout,
             "metrics": m.client().raw("GET", "/metrics")[1].decode()}
    if job:
        found["show"] = m.takt("show", str(job)).stdout
        found["show --json"] = m.takt("show", str(job), "--json").stdout
    return found


def a_lost_gpu_is_one_gpu():
    with kit.machine(gpus=3) as m:
        m.start()
        client = m.client()
        on = client.submit(m.witness_argv(m.path("over")), gpus=1)
        kit.until(lambda: m.witness().begins, "the job runs")
        busy = client.job(on["id"])["gpu_list"][0]
        idle = next(i for i in range(3) if i != busy)
        m.twin("fault", str(busy), "lost")
        m.twin("fault", str(idle), "lost")
        kit.until(lambda: gpu(client, idle)["state"] == gpu(client, busy)["state"] == "lost",
                  lambda: client.status()["gpus"])
        shown = m.takt("status").stdout
        assert shown.count("LOST") == 2, shown
        kit.until(lambda: sum(value for name, value in client.metrics().items()
                              if name.startswith("takt_gpu_lost{")) == 2, client.metrics)
        third = 3 - busy - idle
        # Whoever runs there goes on; others get what is left, or wait and are told why.
        job = client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])
        assert (job["state"], job["gpu_list"]) == ("done", [third]), job
        wide = client.submit(m.witness_argv(1), gpus=3)["id"]
        kit.until(lambda: client.job(wide).get("why") == "unhealthy", lambda: client.job(wide))
        os.mknod(m.path("over"))
        assert client.wait(on["id"])["state"] == "done"
        assert not [b for b in m.witness().begins if b.job == wide]
        m.twin("fault", "all", "none")
        # The idle one is back by itself; the other broke under a job, and somebody has to look at it.
        kit.until(lambda: gpu(client, idle)["state"] == "free", lambda: client.status()["gpus"])
        assert m.takt("gpu", "resume", str(busy)).returncode == 0
        assert client.wait(wide)["state"] == "done"
        kit.until(lambda: not client.status().get("notes"), lambda: client.status()["notes"])


def policy_decides_what_becomes_of_a_job_on_a_lost_gpu():
    """requeue: it runs again elsewhere; stop: it has failed. Its GPU is nobody's until somebody has looked, over a
    restart too. What the driver says for a moment only ends nobody."""
    with kit.machine(gpus=2) as again, kit.machine(gpus=2) as stop:
        jobs = {}
        for m, policy in ((again, "requeue"), (stop, "stop")):
            m.start("--on-gpu-fault", policy)
            client = m.client()
            jobs[m] = client.submit(["sh", "-c", "test $TAKT_RESTART = 1 || exec sleep 600"], gpus=1)["id"]
            kit.until(lambda: client.job(jobs[m])["state"] == "running", lambda: client.job(jobs[m]))
            (lost,) = client.job(jobs[m])["gpu_list"]
            m.twin("fault", str(lost), "lost")
            kit.until(state_is(client, lost, "lost"), client.status)
            m.twin("fault", str(lost), "none")
            kit.until(lambda: not gpu(client, lost)["lost"], client.status)
            assert client.job(jobs[m])["state"] == "running", client.job(jobs[m])
            m.twin("fault", str(lost), "lost")
        view = again.client().wait(jobs[again])
        assert (view["state"], view["attempt"], view["restarts"]) == ("done", 2, 1), view
        assert view["gpu_list"] == [1 - lost], view
        view = stop.client().wait(jobs[stop])
        assert (view["state"], view["attempt"]) == ("failed", 1) and "GPU of it has failed" in view["message"], view
        for m in (again, stop):
            m.twin("fault", str(lost), "none")
            m.kill()
            m.start("--on-gpu-fault", "stop")
            client = m.client()
            kit.until(lambda: not gpu(client, lost)["lost"], client.status)
            assert gpu(client, lost)["state"] == "quarantined", client.status()
            assert f"while job {jobs[m]} used it" in m.takt("status").stdout, m.takt("status")
            wide = client.submit(["true"], gpus=2)["id"]
            kit.until(lambda: client.job(wide).get("why") == "unhealthy", lambda: client.job(wide))
            assert m.takt("gpu", "resume", str(lost)).returncode == 0
            assert client.wait(wide)["state"] == "done"


def a_hanging_gpu_stops_nobody_else():
    with kit.machine(gpus=3) as m:
        m.start()
        client = m.client()
        capped = client.submit(m.witness_argv(m.path("over")), gpus=1, clock_ask="ceiling", clock_mhz=1410)["id"]
        kit.until(lambda: m.witness().begins, "the job runs")
        first = client.job(capped)["gpu_list"][0]
        second = (first + 1) % 3
        m.twin("fault", str(first), "hang")
        m.twin("fault", str(second), "hang")
        third = 3 - first - second

        def stale():
            return [client.status()["gpus"][i]["stale"] for i in (first, second, third)]
        # They hang until they are mended: a request that waited for them would have no answer, one that waited for a
        # while would not come at once.
        kit.until(lambda: stale() == [True, True, False], client.status)
        smoke.at_once(client, third, 50, client.status)
        looks.read_again(client, third)
        job = client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])
        assert job["gpu_list"] == [third], job
        capped2 = client.wait(client.submit(m.witness_argv(1), gpus=1, clock_ask="ceiling",
                                            clock_mhz=1200)["id"])
        assert capped2["gpu_list"] == [third] and "not applied" not in json.dumps(capped2), capped2
        shown = m.takt("status")
        assert shown.returncode == 0 and "does not answer" in shown.stdout, shown
        os.mknod(m.path("over"))
        view = client.wait(capped)
        assert view["state"] == "done", view
        m.twin("fault", "all", "none")
        kit.until(lambda: not m.locked(), lambda: f"clocks are put back: {m.locked()}")
        kit.until(lambda: all(g["state"] == "free" for g in client.status()["gpus"]),
                  lambda: client.status())
        assert client.wait(client.submit(m.witness_argv(1), gpus=3)["id"])["state"] == "done"


def gpus_that_hang_from_the_start_are_set_aside():
    """What they are is not known: they keep their place in the order that jobs count by, and takt manages
    the others."""
    with kit.machine(gpus=4) as m:
        m.twin("fault", "0,2", "hang")
        m.start()
        client = m.client()
        status = client.status()
        assert status["manages"], status
        job = client.wait(client.submit(m.witness_argv(1), gpus=2, clock_ask="ceiling",
                                        clock_mhz=1410)["id"])
        assert (job["state"], job["gpu_list"]) == ("done", [1, 3]), job
        assert m.witness().ends[0].gpus == (1, 3), m.witness().ends
        known = {g["index"]: g["uuid"] for g in m.boards()}
        assert job["gpu_uuid"] == [known[1], known[3]], (job, known)
        wide = client.submit(m.witness_argv(1), gpus=3)["id"]
        kit.until(lambda: client.job(wide).get("why") == "unhealthy", lambda: client.job(wide))
        m.twin("fault", "all", "none")
        looks.read_again(client, 1)
        looks.planned_again(client)
        assert client.job(wide)["state"] == "waiting" and "start" in m.takt("status").stdout
        assert m.stop() == 0
        m.start()
        assert m.client().wait(wide)["state"] == "done"


def a_job_without_permission_for_clocks_runs_and_is_told():
    with kit.machine(gpus=2) as m:
        m.twin("fault", "all", "permission")
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(m.path("over")), gpus=1, clock_ask="ceiling", clock_mhz=1410)["id"]
        kit.until(lambda: m.witness().begins, "the job runs")
        assert not m.locked()
        running = views(m, job)
        for name in ("show", "show --json"):
            assert "not applied" in running[name] and "ermission" in running[name], (name, running[name])
        for name in ("status", "clock"):
            assert "no permission to set clocks; an administrator would" in running[name], running[name]
        for name in ("status --json", "clock --json"):
            assert '"clock_state":"advise"' in running[name], running[name]
        kit.until(lambda: any(n.startswith("takt_gpu_clock_state{") and 'state="advise"' in n
                              for n in client.metrics()), "the metrics page says so")
        os.mknod(m.path("over"))
        view = client.wait(job)
        assert view["state"] == "done", view
        ended = m.takt("show", str(job)).stdout
        assert "not applied" in ended and "ermission" in ended, ended
        done = m.takt("run", "-n", "1", "--clock", "1410", "--", "true")
        assert done.returncode == 0 and "not applied" in done.stderr, done
        done = m.takt("clock", "set", "--gpus", "0", "1410")
        assert done.returncode not in (0, 64) and "ermi" in done.stderr, done


def clocks_that_cannot_be_set_on_all_are_set_on_none():
    with kit.machine(gpus=3) as m:
        m.start()
        client = m.client()
        kit.until(lambda: all(g["clock_state"] == "clean" for g in client.status()["gpus"]),
                  "the actuator is there")
        assert m.takt("clock", "set", "--gpus", "1", "900").returncode == 0
        for fault, status in (("permission", 77), ("hang", 1)):
            m.twin("fault", "2", fault)
            done = m.takt("clock", "set", "--gpus", "0-2", "1410")
            assert done.returncode == status and "GPU 2: " in done.stderr and not done.stdout, done
            kit.until(lambda: m.locked() == {1: (345, 900)}, m.locked)
            m.twin("fault", "2", "none")
            looks.read_again(client, 2, 15)
            assert m.locked() == {1: (345, 900)}, (fault, m.locked())
        assert m.takt("clock", "reset").returncode == 0 and not m.locked()


def what_cannot_be_put_back_is_shouted_until_it_is():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(m.path("over")), gpus=1, clock_ask="ceiling", clock_mhz=1410)["id"]
        kit.until(lambda: m.locked(), "the clock is locked")
        m.twin("fault", "all", "driver-restore-refused")
        os.mknod(m.path("over"))
        client.wait(job)
        index = client.job(job)["gpu_list"][0]
        kit.until(lambda: gpu(client, index)["clock_state"] == "changed",
                  lambda: gpu(client, index))
        for name, text in views(m, job).items():
            if name != "metrics":
                assert "CHANGED" in text or '"changed"' in text, (name, text)
        kit.until(lambda: any(n.startswith("takt_gpu_clock_state{") and 'state="changed"' in n
                              for n in client.metrics()), "the metrics page says so")
        # A restart of takt changes nothing about that.
        assert m.stop() == 0
        assert m.locked(), "nothing is left to say"
        m.start()
        client = m.client()
        kit.until(lambda: gpu(client, index)["clock_state"] == "changed",
                  lambda: gpu(client, index))
        m.twin("fault", "all", "none")
        kit.until(lambda: not m.locked(), "the clock is put back")
        kit.until(lambda: gpu(client, index)["clock_state"] == "clean", lambda: gpu(client, index))
        assert "CHANGED" not in m.takt("status").stdout + m.takt("show", str(job)).stdout


def the_guard_restores_when_nobody_else_can():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=2, clock_ask="ceiling", clock_mhz=1410)["id"]
        kit.until(lambda: len(m.locked()) == 2, "the clocks are locked")
        (daemon,), (actuator,) = m.pids("takt"), m.pids("takt-actuate")
        os.kill(daemon, signal.SIGSTOP)
        try:
            os.kill(actuator, signal.SIGKILL)
            kit.until(lambda: not m.locked(), lambda: f"clocks are left changed: {m.locked()}")
        finally:
            os.kill(daemon, signal.SIGCONT)
        kit.until(lambda: len(m.locked()) == 2, "the clocks are asked for again")
        kit.until(lambda: "gap" in client.job(job).get("clock_note", ""), lambda: client.job(job))
        client.cancel(job)
        view = client.wait(job)
        kit.until(lambda: not m.locked(), "the clocks are put back")
        assert "gap" in view["message"], view


def a_gpu_that_hangs_when_the_actuator_starts_is_put_back():
    """The guard cannot reach it and the new actuator does not know it; when it answers again its clock is
    put back all the same, and can be set."""
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=1, clock_ask="ceiling", clock_mhz=1410)["id"]
        kit.until(m.locked, "the clock is locked")
        (index,) = client.job(job)["gpu_list"]
        (actuator,) = m.pids("takt-actuate")
        m.twin("fault", str(index), "hang")
        os.kill(actuator, signal.SIGKILL)
        for state in ("unknown", "clean"):  # the old one is gone, the next one answers
            kit.until(lambda s=state: gpu(client, 1 - index)["clock_state"] == s, state)
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"
        m.twin("fault", str(index), "none")
        kit.until(lambda: not m.locked(), lambda: f"the clock is put back: {m.locked()}")
        kit.until(lambda: gpu(client, index)["clock_state"] == "clean", lambda: gpu(client, index))
        assert m.takt("clock", "set", "--gpus", str(index), "1200").returncode == 0
        assert m.takt("clock", "reset").returncode == 0 and not m.locked()


def a_gpu_of_somebody_else_is_left_alone():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        other = subprocess.Popen(m.load_argv("--gpus", "1", "--seconds", "600", "--quiet"), env=m.env(),
                                 stdout=subprocess.DEVNULL)
        try:
            kit.until(state_is(client, 1, "outside"), lambda: gpu(client, 1))
            shown = m.takt("status").stdout
            line = next(line for line in shown.splitlines() if line.strip().startswith("1 "))
            assert "outside" in line and str(other.pid) in line and "root" in line, shown
            for _ in range(3):
                job = client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])
                assert job["gpu_list"] == [0], job
            wide = client.submit(m.witness_argv(1), gpus=2)["id"]
            kit.until(lambda: client.job(wide).get("why") == "outside", lambda: client.job(wide))
            told = m.takt("explain", str(wide)).stdout
            assert "outside" in told and "used from outside   1" in told, told
            client.cancel(wide)
            job = client.wait(client.submit(m.load_argv("--seconds", "3", "--quiet"), gpus=2, use_outside=True,
                                            env=["PATH=/bin"])["id"])
            assert job["state"] == "done" and job["gpu_list"] == [0, 1], job
            assert "energy_mj" not in job["report"] and "shared" in job["report"]["energy_why_not"], job
            last = client.submit(m.witness_argv(1), gpus=2)["id"]
        finally:
            other.terminate()
            other.wait(kit.WAIT_S)
        assert client.wait(last)["state"] == "done"


def what_a_job_leaves_behind_keeps_its_gpu():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        left = " ".join(m.load_argv("--ignore-term", "--seconds", "600", "--quiet"))
        job = client.submit(["sh", "-c", f"setsid {left} >/dev/null 2>&1 & exec sleep 600"], gpus=1, grace_ms=600_000)["id"]
        after = client.submit(m.witness_argv(1), gpus=1)["id"]
        (holder,) = kit.until(lambda: m.boards()[0]["processes"], "it computes")
        pid = client.job(job)["pid"]
        os.kill(pid, signal.SIGKILL)
        kit.until(lambda: not kit.is_running(pid, b"sleep"), "the job's own process is gone")
        looks.read_again(client, 0, 30)
        looks.planned_again(client)
        assert gpu(client, 0)["state"] != "free" and client.job(after)["state"] == "waiting", (client.status(), client.job(after))
        assert not [b for b in m.witness().begins if b.job == after], "the GPU was handed on with a process on it"
        os.kill(holder["pid"], signal.SIGKILL)
        assert client.wait(job)["state"] == "failed" and client.wait(after)["state"] == "done"


def a_drain_goes_on_when_takt_is_killed():
    """Whether a GPU is clean cannot be seen while the driver does not list processes: then it is nobody's, also for
    a daemon that has not seen the job."""
    blind = "nvmlDeviceGetComputeRunningProcesses,nvmlDeviceGetComputeRunningProcesses_v2,nvmlDeviceGetComputeRunningProcesses_v3"
    with kit.machine(gpus=1) as m:
        m.start(hide=blind)
        client = m.client()
        job = client.submit(m.witness_argv(1), gpus=1)["id"]
        after = client.submit(m.witness_argv(1), gpus=1)["id"]
        assert client.wait(job)["state"] == "done"
        for _ in range(2):
            assert gpu(client, 0)["state"] in ("draining", "quarantined"), client.status()
            m.kill()
            m.start(hide=blind)
            client = m.client()
            kit.until(lambda: gpu(client, 0)["state"] != "lost", client.status)
        assert gpu(client, 0)["state"] in ("draining", "quarantined"), client.status()
        assert not [b for b in m.witness().begins if b.job == after], "the GPU was handed on unseen"
        m.kill()
        m.start()
        client = m.client()
        assert client.wait(after)["state"] == "done"
        kit.until(state_is(client, 0, "free"), client.status)


def a_job_that_ignores_sigterm_is_killed_after_its_grace():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(m.load_argv("--ignore-term", "--seconds", "600", "--quiet"), gpus=1,
                            grace_ms=700)["id"]
        kit.until(lambda: m.boards()[0]["processes"], "it computes")
        begin = time.monotonic()
        client.cancel(job)
        view = client.wait(job)
        took_s = time.monotonic() - begin
        assert (view["state"], view["exit_signal"]) == ("cancelled", signal.SIGKILL), view
        assert took_s >= 0.7, took_s
        assert client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])["state"] == "done"


if __name__ == "__main__":
    sys.exit(kit.main([
        a_lost_gpu_is_one_gpu, policy_decides_what_becomes_of_a_job_on_a_lost_gpu, a_hanging_gpu_stops_nobody_else,
        gpus_that_hang_from_the_start_are_set_aside,
        a_job_without_permission_for_clocks_runs_and_is_told,
        clocks_that_cannot_be_set_on_all_are_set_on_none,
        what_cannot_be_put_back_is_shouted_until_it_is, the_guard_restores_when_nobody_else_can,
        a_gpu_that_hangs_when_the_actuator_starts_is_put_back,
        a_gpu_of_somebody_else_is_left_alone, what_a_job_leaves_behind_keeps_its_gpu,
        a_drain_goes_on_when_takt_is_killed,
        a_job_that_ignores_sigterm_is_killed_after_its_grace]))
