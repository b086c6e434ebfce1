#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Corners where a promise could break quietly: every GPU hangs at once, the launcher is away while a job
is cancelled, a job or a user puts something else where a file of takt's was, a description says the least that it may.

Usage: edges.py BUILD_FOLDER
"""
import os
import sys
import time

import kit
import looks


def state(client, index=0):
    return client.status()["gpus"][index]["state"]


def a_driver_that_hangs_for_all_gpus_gets_no_job():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        m.twin("fault", "all", "hang")
        kit.until(lambda: state(client) == state(client, 1) == "lost", client.status)
        job = client.submit(m.witness_argv(1), gpus=1)["id"]
        kit.until(lambda: client.job(job).get("why") == "unhealthy", lambda: client.job(job))
        looks.planned_again(client)
        assert client.job(job)["state"] == "waiting", client.job(job)
        m.twin("fault", "all", "none")
        assert client.wait(job)["state"] == "done"


def a_job_cancelled_while_the_launcher_is_away_never_runs():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        launcher = kit.until(lambda: m.pids("takt-launch"), "the launcher runs")[0]
        os.rename(m.path("bin/takt-launch"), m.path("bin/away"))
        os.kill(launcher, 9)
        kit.until(lambda: not m.pids("takt-launch"), "the launcher is gone")
        job = client.submit(m.witness_argv(1), gpus=1)["id"]
        kit.until(lambda: client.job(job)["state"] == "starting", lambda: client.job(job))
        assert client.cancel(job)["state"] == "cancelled", client.job(job)
        os.rename(m.path("bin/away"), m.path("bin/takt-launch"))
        assert client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])["state"] == "done"
        assert job not in [begin.job for begin in m.witness().begins]


def takt_answers_before_the_actuator_is_there():
    """Jobs run, clocks are said not to be set; once it is there they are, and put back in the end."""
    with kit.machine(gpus=2) as m:
        let_go = m.hold_back("takt-actuate")
        m.start()
        client = m.client()
        assert client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])["state"] == "done"
        done = m.takt("clock", "set", "--gpus", "0", "1200")
        assert done.returncode != 0 and "actuator" in done.stderr, done
        job = client.submit(m.witness_argv(600_000), gpus=1, clock_ask="ceiling", clock_mhz=1200)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        assert "not applied" in client.job(job)["clock_note"] and not m.locked(), client.job(job)
        let_go()
        (gpu,) = client.job(job)["gpu_list"]
        kit.until(lambda: m.locked().get(gpu, (0, 0))[1] == 1200, lambda: (m.locked(), client.job(job)))
        kit.until(lambda: "not applied" not in client.job(job)["clock_note"], lambda: client.job(job))
        client.cancel(job)
        client.wait(job)
        kit.until(lambda: not m.locked(), m.locked)


def what_a_job_puts_in_its_logs_place_stops_nobody():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        log = m.path("state/jobs/$TAKT_JOB_ID.1/log")
        for trick in ("mkfifo {0}", "mkdir {0}", "ln -s /etc/hostname {0}"):
            job = client.submit(["sh", "-c", f"rm {log}; " + trick.format(log)])["id"]
            assert client.wait(job)["state"] == "done", client.job(job)
            status, answer = client.raw("GET", f"/v1/jobs/{job}/log")
            assert status >= 400 and b"log" in answer, (trick, status, answer)
            assert client.status()


def a_job_needs_no_environment():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        for spec in ({"argv": ["/bin/sh", "-c", "echo $TAKT_JOB_ID"], "cwd": "/"},
                     {"argv": ["/bin/true"], "cwd": "/", "env": []}):
            job = client.ask("POST", "/v1/jobs", spec)["id"]
            assert client.wait(job)["state"] == "done", client.job(job)
        assert client.raw("GET", "/v1/jobs/1/log")[1] == b"1\n"


def answers_say_what_is_and_no_more():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=2)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        told = client.ask("GET", f"/v1/jobs/{job}/explain")
        assert not {"need", "total", "free", "ahead"} & told.keys(), told
        behind = client.submit(m.witness_argv(1), gpus=1)["id"]
        kit.until(lambda: "need" in client.ask("GET", f"/v1/jobs/{behind}/explain"), "the plan")
        told = client.ask("GET", f"/v1/jobs/{behind}/explain")
        assert (told["need"], told["total"], told["free"]) == (1, 2, 0), told
        for _ in range(5):
            gpu = client.ask("POST", "/v1/clocks/set", {"gpus": [1], "max_mhz": 1200})["gpus"][1]
            assert (gpu["clock_state"], gpu["lease_max_mhz"]) == ("leased", 1200), gpu
            gpu = client.ask("POST", "/v1/clocks/reset", {"gpus": [1]})["gpus"][1]
            assert gpu["clock_state"] == "clean" and "lease_max_mhz" not in gpu, gpu
        client.cancel(job)


def a_benchmark_is_for_ones_own_gpus_and_ends_with_its_job():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=1)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        (own,) = client.job(job)["gpu_list"]
        before = m.boards()[own]["limit_mw"]
        wish = {"max_mhz": 1200, "lock": True, "power_limit_mw": 400000, "benchmark": True}
        try:
            client.ask("POST", "/v1/clocks/set", dict(wish, gpus=[1 - own]))
            raise AssertionError("a benchmark on a GPU of nobody's was accepted")
        except kit.Refused as refused:
            assert refused.status == 403 and "holds alone" in str(refused), refused
        gpu = client.ask("POST", "/v1/clocks/set", dict(wish, gpus=[own]))["gpus"][own]
        assert (gpu["lease_min_mhz"], gpu["lease_max_mhz"], gpu["lease_job"]) == (1200, 1200, job), gpu
        assert m.locked() == {own: (1200, 1200)}, m.locked()
        assert m.boards()[own]["limit_mw"] == 400000 < before, m.boards()[own]
        client.cancel(job)
        client.wait(job)
        kit.until(lambda: not m.locked() and m.boards()[own]["limit_mw"] == before, m.boards)


def a_takt_that_only_observes_sees_its_jobs_end():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(m.path("over")), gpus=1)["id"]
        waits = client.submit(m.witness_argv(1), gpus=1)["id"]
        kit.until(lambda: m.witness().begins, "the job runs")
        assert m.stop() == 0
        m.start("--manage", "never")
        client = m.client()
        os.mknod(m.path("over"))
        assert client.wait(job)["state"] == "done"
        assert client.job(waits)["state"] == "waiting"
        assert m.stop() == 0
        m.start()
        assert m.client().wait(waits)["state"] == "done"


def drawn_mj(m):
    return m.boards()[0]["energy_mj"]


def energy_is_told(client, job):
    return lambda: "energy_mj" in client.job(job).get("report", {})


def an_account_goes_on_when_takt_is_restarted():
    """Its energy is what the board says that it has drawn from begin to end, once takt has looked long enough;
    rounded, by no more than a millijoule. It may begin with a reading that was a quarter of a second old."""
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        least = drawn_mj(m)
        kit.until(lambda: drawn_mj(m) > least + 40_000, "the idle board drew what it draws in half a second")
        job = client.submit(m.witness_argv(3_600_000), gpus=1)["id"]
        kit.until(lambda: m.witness().begins, "the job runs")
        before = drawn_mj(m)
        kit.until(energy_is_told(client, job), lambda: client.job(job))
        assert m.stop() == 0
        m.start()
        client = m.client()
        kit.until(energy_is_told(client, job), lambda: client.job(job), seconds=4 * kit.WAIT_S)
        behind = drawn_mj(m)
        client.cancel(job)
        report = client.wait(job)["report"]
        after = drawn_mj(m)
        assert (behind - before) * 0.95 <= report["energy_mj"] <= after - least + 1, (least, before, behind, after, report)
        assert "peak_memory_bytes" in report and "mean_util_permille" in report, report


def what_takt_has_not_seen_of_a_job_is_not_told():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(3_600_000), gpus=1)["id"]
        kit.until(energy_is_told(client, job), lambda: client.job(job))
        assert m.stop() == 0
        time.sleep(3)  # it has to be away for a while; longer does no harm
        m.start()
        client = m.client()
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        client.cancel(job)
        report = client.wait(job)["report"]
        assert "energy_mj" not in report and "peak_memory_bytes" not in report, report
        assert "takt was away" in report["energy_why_not"], report
        again = client.submit(m.witness_argv(3_600_000), gpus=1)["id"]
        kit.until(energy_is_told(client, again), lambda: client.job(again))
        m.kill()
        m.start()
        client = m.client()
        client.cancel(again)
        report = client.wait(again)["report"]
        assert "energy_mj" not in report and report["energy_why_not"].startswith("takt was "), report


def a_pipe_in_place_of_a_lock_is_named():
    with kit.machine(gpus=1) as m:
        m.start()
        m.stop()
        lock = next(name for name in os.listdir(m.path("locks")) if name.endswith(".lock"))
        os.unlink(m.path(f"locks/{lock}"))
        os.mkfifo(m.path(f"locks/{lock}"))
        m.spawn()
        assert m.died() != 0
        assert lock in m.said() and "plain file" in m.said(), m.said()


def what_history_forgets_takes_its_logs_along():
    with kit.machine(gpus=1) as m:
        m.start("--keep-ended", "3")
        client = m.client()
        says_how_far = ["sh", "-c", ': > "$TAKT_PROGRESS"']
        jobs = [client.submit(says_how_far)["id"] for _ in range(10)]
        for job in jobs:
            client.wait(job)
        own = m.path(f"state/jobs/{jobs[0]}.1/mine")
        with open(own, "w", encoding="ascii"):
            pass
        stranger = m.path("state/jobs/1000000.1")
        os.mkdir(stranger)
        assert m.stop() == 0
        m.start("--keep-ended", "3")
        client = m.client()
        client.wait(client.submit(["true"])["id"])
        kept = jobs[-2:]
        kit.until(lambda: not any(os.path.exists(m.path(f"state/jobs/{job}.1"))
                                  for job in jobs[1:-3]),
                  lambda: os.listdir(m.path("state/jobs")))
        assert all(client.raw("GET", f"/v1/jobs/{job}/log")[0] == 200 for job in kept)
        assert os.listdir(os.path.dirname(own)) == ["mine"], "a user's own file is gone"
        assert os.path.isdir(stranger), "what the store does not know was removed"


if __name__ == "__main__":
    sys.exit(kit.main([
        a_driver_that_hangs_for_all_gpus_gets_no_job,
        a_job_cancelled_while_the_launcher_is_away_never_runs,
        takt_answers_before_the_actuator_is_there,
        what_a_job_puts_in_its_logs_place_stops_nobody,
        a_job_needs_no_environment,
        answers_say_what_is_and_no_more,
        a_benchmark_is_for_ones_own_gpus_and_ends_with_its_job,
        a_takt_that_only_observes_sees_its_jobs_end,
        an_account_goes_on_when_takt_is_restarted, what_takt_has_not_seen_of_a_job_is_not_told,
        a_pipe_in_place_of_a_lock_is_named,
        what_history_forgets_takes_its_logs_along,
    ]))
