#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A command of the owner's at events of his job: run as him, told what happened, and never in the job's way.

Usage: hooks.py BUILD_FOLDER
"""
import os
import sys

import reachable  # noqa: F401, first: it may replace the build folder
import kit
import users

# One line an event, in the job's directory; whole lines, written at once.
NOTE = 'echo "$TAKT_EVENT $TAKT_JOB_ID $TAKT_JOB_STATE ${TAKT_EXIT_CODE-} ${TAKT_EXIT_SIGNAL-}" >> events'


def lines(m, name="jobs/events"):
    try:
        with open(m.path(name), encoding="ascii") as file:
            return file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def events(m, count):
    """That many lines, and no more."""
    kit.until(lambda: len(lines(m)) >= count, lambda: (lines(m), m.said()))
    return [line.split() for line in lines(m)]


def log_of(client, job):
    return client.raw("GET", f"/v1/jobs/{job}/log")[1].decode()


def traces(m):
    """Directories of attempts that are no job's."""
    return [name for name in os.listdir(m.path("state/jobs")) if int(name.split(".")[1]) >= 1 << 31]


def quiet(m):
    kit.until(lambda: not traces(m), lambda: traces(m))


def it_is_told_what_happens():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        runs = client.submit(["sh", "-c", "test $TAKT_RESTART = 1"], gpus=1, cwd=m.path("jobs"), hook=NOTE, retries=1,
                             retry_backoff_ms=10)["id"]
        assert client.wait(runs)["state"] == "done"
        job = str(runs)
        said = events(m, 4)
        assert [line[:2] for line in said] == [[name, job] for name in ("started", "requeued", "started", "ended")], said
        assert said[-1] == ["ended", job, "done", "0"], said
        waits = client.submit(["true"], gpus=1, cwd=m.path("jobs"), hook=NOTE, held=True)["id"]
        client.cancel(waits)
        assert events(m, 5)[-1] == ["ended", str(waits), "cancelled"], lines(m)
        killed = client.submit(["sh", "-c", "kill -9 $$"], gpus=1, cwd=m.path("jobs"), hook=NOTE)["id"]
        assert client.wait(killed)["state"] == "failed"
        assert events(m, 7)[-1] == ["ended", str(killed), "failed", "9"], lines(m)
        quiet(m)


def it_is_told_of_pushing_out_and_of_freezing():
    with kit.machine(gpus=1) as m:
        m.start("--min-runtime", "0s")
        client = m.client()
        job = client.submit(["sh", "-c", "test $TAKT_RESTART = 1 || exec sleep 600"], gpus=1, cwd=m.path("jobs"),
                            hook=NOTE, preemptible=True)["id"]
        events(m, 1)
        for word, count in (("freeze", 2), ("thaw", 3)):
            assert m.takt(word, str(job)).returncode == 0
            events(m, count)
        urgent = client.submit(["true"], gpus=1, priority=5)["id"]
        assert client.wait(urgent)["state"] == "done" and client.wait(job)["state"] == "done"
        assert [line[0] for line in events(m, 6)] == ["started", "frozen", "thawed", "preempted", "started", "ended"]


def it_has_the_jobs_environment_and_no_gpu():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(["true"], gpus=2, cwd=m.path("jobs"), name="train", env=["PATH=/usr/bin:/bin", "TOKEN=x y"],
                            hook='test $TAKT_EVENT = ended && env > got && pwd >> got; echo said by the hook')["id"]
        client.wait(job)
        kit.until(lambda: log_of(client, job).count("said by the hook\n") == 2, lambda: log_of(client, job))
        got = lines(m, "jobs/got")
        for want in ("TOKEN=x y", "TAKT_JOB_NAME=train", "TAKT_GPUS=0,1", "CUDA_VISIBLE_DEVICES=", "TAKT_EVENT=ended",
                     f"TAKT_JOB_ID={job}", m.path("jobs")):
            assert want in got, (want, got)
        (attempt,) = [line.split(".") for line in got if line.startswith(f"TAKT_ATTEMPT={job}.")]
        assert int(attempt[1]) >= 1 << 31, "it is none of the job's attempts"


def one_that_fails_or_hangs_is_nobodys_trouble():
    with kit.machine(gpus=1) as m:
        m.start("--hook-limit", "1s")
        client = m.client()
        for hook, word in (("exit 3", "exit status 3"), ("sleep 600 & exec sleep 600", "longer than 1000 ms"),
                           ("kill -9 $$", "signal 9")):
            job = client.submit(["true"], gpus=1, cwd=m.path("jobs"), hook=hook)["id"]
            view = client.wait(job)
            assert (view["state"], view["exit_code"]) == ("done", 0), view
            kit.until(lambda: log_of(client, job).count(word) == 2, lambda: log_of(client, job))
            assert "hook at 'started'" in log_of(client, job) and "hook at 'ended'" in log_of(client, job)
        quiet(m)
        assert not m.shims(), m.shims()


def a_death_of_takt_makes_none_run_twice():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(["sleep", "600"], gpus=1, cwd=m.path("jobs"), hook=NOTE + "; sleep 600")["id"]
        events(m, 1)
        m.kill()
        m.start()
        client = m.client()
        assert traces(m), "it runs on"
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"
        m.kill()
        m.start("--hook-limit", "1s")
        client = m.client()
        after = client.submit(["true"], cwd=m.path("jobs"), hook=NOTE)["id"]
        client.wait(after)
        kit.until(lambda: [line.split()[:2] for line in lines(m)][-1] == ["ended", str(after)],
                  lambda: lines(m))
        said = [line.split()[:2] for line in lines(m)]
        assert said.count(["started", str(job)]) == 1 and said.count(["ended", str(job)]) <= 1, said


def it_runs_as_the_jobs_owner():
    secret = "opensesame"
    with users.shared_machine(gpus=1) as m:
        spec = users.job_of(["true"], 1, cwd=m.path("jobs"), env=["PATH=/usr/bin:/bin", "TOKEN=" + secret],
                            hook='echo "$(id -u) $(id -g) $(id -G) $TAKT_EVENT $TOKEN" >> events; test $TAKT_EVENT = '
                                 'started || exec sleep 600')
        job = users.ask(m, users.ALICE, "POST", "/v1/jobs", spec)["id"]
        m.client().wait(job)
        said = events(m, 2)
        mine = [str(users.ALICE)] * 3
        assert said == [[*mine, name, secret] for name in ("started", "ended")], said
        assert os.stat(m.path("jobs/events")).st_uid == users.ALICE
        hook = m.path("state/jobs", ) + "/" + traces(m)[0]
        assert os.stat(hook).st_uid == 0 and not users.as_user(users.BOB, os.access, hook, os.R_OK)
        # What it is told may be read by nobody else while it runs, and is nowhere when it is over.
        assert not users.as_user(users.BOB, os.access, hook + "/spec", os.R_OK)
        m.kill()  # the next takt looks after the hook that runs, as its user's
        m.start()
        for shim in m.shims().values():
            os.kill(shim, 15)
        quiet(m)
        m.stop()
        assert not users.files_with(m, "TOKEN=" + secret), users.files_with(m, "TOKEN=" + secret)


def a_directory_or_a_log_that_is_not_the_owners_is_not_opened_for_him():
    with users.shared_machine(gpus=1) as m:
        secret = m.path("secret")
        os.mkdir(secret, 0o700)
        with open(secret + "/notes", "w", encoding="ascii"):
            pass
        job = users.ask(m, users.ALICE, "POST", "/v1/jobs", users.job_of(
            ["sh", "-c", f"rm $OWN/log; ln -s {secret}/notes $OWN/log"], 1, env=[
                "PATH=/usr/bin:/bin", "OWN=" + m.path("state/jobs/1.1")], cwd=m.path("jobs"),
            hook="echo overwritten; exit 3"))["id"]
        m.client().wait(job)
        quiet(m)
        with open(secret + "/notes", encoding="ascii") as file:
            assert file.read() == "", "root's file has the hook's words"


if __name__ == "__main__":
    sys.exit(kit.main([
        it_is_told_what_happens,
        it_is_told_of_pushing_out_and_of_freezing,
        it_has_the_jobs_environment_and_no_gpu,
        one_that_fails_or_hangs_is_nobodys_trouble,
        a_death_of_takt_makes_none_run_twice,
        it_runs_as_the_jobs_owner,
        a_directory_or_a_log_that_is_not_the_owners_is_not_opened_for_him,
    ]))
