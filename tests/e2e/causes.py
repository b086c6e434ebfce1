#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Why a job ended, beside its exit status: one word, the same in every view, in its hook and to the policy of retries.

Usage: causes.py BUILD_FOLDER
"""
import csv
import io
import json
import os
import sys

import kit

# One line an event, in the job's directory; whole lines, written at once.
NOTE = 'echo "$TAKT_EVENT ${TAKT_CAUSE-} ${TAKT_CAUSE_GPU-} ${TAKT_CAUSE_XID-} ${TAKT_CAUSE_AT_MS:+at}" >> events'


def events(m):
    try:
        with open(m.path("jobs/events"), encoding="ascii") as file:
            return file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def running(client, job):
    kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
    return client.job(job)["gpu_list"]


def row(m, job):
    (line,) = [line for line in csv.DictReader(io.StringIO(m.takt("jobs", "--csv").stdout)) if line["job"] == str(job)]
    return line


def a_gpu_that_falls_off_the_bus_is_told_everywhere():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(m.load_argv("--seconds", 600, "--quiet"), gpus=1, hook=NOTE, cwd=m.path("jobs"))["id"]
        (gpu,) = running(client, job)
        m.twin("fault", str(gpu), "lost")
        view = client.wait(job)
        assert (view["state"], view["cause"], view["cause_gpu"], view["cause_xid"]) == ("failed", "gpu_lost", gpu, 79), view
        assert view["started_ms"] <= view["cause_at_ms"], view
        said = f"GPU {gpu} was lost, XID 79"
        assert view["cause_text"] == said and view["message"] == said, view
        for words in (("show", str(job)), ("wait", str(job))):
            assert said in m.takt(*words).stdout, m.takt(*words)
        assert "gpu_lost: " + said in m.takt("show", str(job)).stdout, m.takt("show", str(job))
        assert "gpu_lost" in m.takt("jobs").stdout, m.takt("jobs")
        line = row(m, job)
        assert (line["cause"], line["cause_gpu"], line["cause_xid"]) == ("gpu_lost", str(gpu), "79"), line
        kit.until(lambda: events(m) == ["started    ", f"ended gpu_lost {gpu} 79 at"], lambda: events(m))
        # The end is on disk with its cause.
        m.kill()
        m.start()
        (again,) = json.loads(m.takt("jobs", "--json").stdout)["jobs"]
        for key in ("cause", "cause_gpu", "cause_xid", "cause_at_ms", "cause_text"):
            assert again[key] == view[key], (again, view)


def who_lost_its_gpu_is_tried_elsewhere_where_that_is_wanted():
    """It is no failure of its own: its retries are not touched. Where jobs are to be stopped they are of no use."""
    with kit.machine(gpus=2) as again, kit.machine(gpus=2) as stop:
        for m, policy in ((again, "requeue"), (stop, "stop")):
            m.start("--on-gpu-fault", policy)
            client = m.client()
            load = " ".join(m.load_argv("--seconds", 600, "--quiet"))
            job = client.submit(["sh", "-c", f"test $TAKT_RESTART = 1 || exec {load}"], gpus=1, retries=1, hook=NOTE,
                                cwd=m.path("jobs"))["id"]
            (gpu,) = running(client, job)
            m.twin("fault", str(gpu), "lost")
            view = client.wait(job, 120)
            if policy == "stop":
                assert (view["state"], view["attempt"], view["cause"]) == ("failed", 1, "gpu_lost"), view
                continue
            assert (view["state"], view["restarts"], view.get("failures", 0)) == ("done", 1, 0), view
            assert view["gpu_list"] == [1 - gpu] and "cause" not in view, view
            kit.until(lambda: len(events(m)) == 4, lambda: events(m))
            assert events(m)[1] == f"requeued gpu_lost {gpu} 79 at", events(m)


def an_xid_of_a_program_is_its_own():
    with kit.machine(gpus=1) as m:
        m.start("--on-gpu-fault", "requeue")
        client = m.client()
        job = client.submit(["sh", "-c", "until test -e go; do sleep 0.02; done; exit 3"], gpus=1, cwd=m.path("jobs"))["id"]
        running(client, job)
        m.twin("fault", "0", "xid=31")
        with open(m.path("jobs/go"), "w", encoding="ascii"):
            pass
        view = client.wait(job)
        assert (view["state"], view["attempt"], view["exit_code"]) == ("failed", 1, 3), view
        assert (view["cause"], view["cause_gpu"], view["cause_xid"]) == ("gpu_error", 0, 31), view
        # Of the next one on that GPU it is not the cause.
        view = client.wait(client.submit(["sh", "-c", "exit 3"], gpus=1)["id"])
        assert view["state"] == "failed" and "cause" not in view, view


def each_end_has_its_cause():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()

        def cause(argv, **more):
            view = client.wait(client.submit(argv, **more)["id"])
            return view["state"], view.get("cause")
        assert cause(["true"]) == ("done", None)
        assert cause(["sh", "-c", "exit 5"], gpus=1) == ("failed", None)
        assert cause(["sleep", "1000"], time_limit_ms=300) == ("failed", "time_limit")
        assert cause(["/nowhere"]) == ("failed", "not_started")
        words = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB"
        assert cause(["sh", "-c", f"echo '{words}' >&2; exit 1"], gpus=1) == ("failed", "gpu_memory")
        assert cause(["sh", "-c", f"echo '{words}'"], gpus=1) == ("done", None), "it has lived with it"
        assert cause(["sleep", "1000"], gpus=1, idle_release_ms=1500) == ("cancelled", "idle_release")
        job = client.submit(["sleep", "1000"], gpus=1)["id"]
        after = client.submit(["true"], after=[{"job": job}])["id"]
        running(client, job)
        client.cancel(job)
        assert client.wait(job)["cause"] == "cancelled" and client.wait(after)["cause"] == "dependency", client.job(after)
        job = client.submit(["sleep", "1000"], gpus=1)["id"]
        running(client, job)
        os.kill(m.shims()[job, 1], 9)
        view = client.wait(job)
        assert (view["state"], view["cause"]) == ("lost", "takt_died"), view


def one_severity_is_shown_in_all_views():
    with kit.machine(gpus=3) as m:
        m.start()
        client = m.client()

        def severities():
            found = [[gpu["severity"] for gpu in client.ask("GET", where)["gpus"]]
                     for where in ("/v1/status", "/v1/clocks", "/v1/health")]
            return found[0] if found[0] == found[1] == found[2] else found
        kit.until(lambda: severities() == ["none"] * 3, severities)
        m.twin("fault", "0", "lost")
        m.twin("fault", "1", "xid=31")  # a program's
        kit.until(lambda: severities() == ["critical", "info", "none"], severities)
        clocks = client.ask("GET", "/v1/clocks")["gpus"]
        assert [gpu["clock_state"] for gpu in clocks] == ["unknown", "clean", "clean"], clocks
        status = client.status()
        notes = dict(zip(status["notes"], status["note_severity"]))
        assert len(notes) == len(status["note_severity"]), status
        assert [notes[note] for note in notes if note.startswith("GPU 0: ")] == ["critical"], notes
        assert "critical: GPU 0: " in m.takt("status").stdout, m.takt("status")


def who_makes_room_says_for_whom_until_it_runs_again():
    with kit.machine(gpus=1) as m:
        m.start("--preempt", "yes")
        client = m.client()
        victim = client.submit(["sleep", "1000"], gpus=1, preemptible=True, hook=NOTE, cwd=m.path("jobs"))["id"]
        running(client, victim)
        urgent = client.submit(["sh", "-c", "until test -e go; do sleep 0.02; done"], gpus=1, priority=100,
                               cwd=m.path("jobs"))["id"]
        kit.until(lambda: client.job(victim)["state"] == "waiting", lambda: client.job(victim))
        view = client.job(victim)
        assert view["cause"] == "preempted" and view["cause_text"] == f"it made room for job {urgent}", view
        kit.until(lambda: events(m)[1:] == ["preempted preempted   "], lambda: events(m))
        with open(m.path("jobs/go"), "w", encoding="ascii"):
            pass
        running(client, victim)
        assert "cause" not in client.job(victim), client.job(victim)
        client.cancel(victim)
        assert client.wait(victim)["cause"] == "cancelled", client.job(victim)


if __name__ == "__main__":
    sys.exit(kit.main([a_gpu_that_falls_off_the_bus_is_told_everywhere,
                       who_lost_its_gpu_is_tried_elsewhere_where_that_is_wanted, an_xid_of_a_program_is_its_own,
                       each_end_has_its_cause, one_severity_is_shown_in_all_views, who_makes_room_says_for_whom_until_it_runs_again], at_once=3))
