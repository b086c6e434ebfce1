#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts that the launcher refuses, or that nobody is there for: who waits for what is told why, in every view, and
nobody else waits with him.

Usage: refused_starts.py BUILD_FOLDER
"""
import contextlib
import os
import shlex
import signal
import subprocess
import sys

import reachable  # noqa: F401, first: it may replace the build folder
import kit
from users import ALICE, BOB, ask, job_of, shared_machine, takt_as

NO_CGROUPS = "mount -t tmpfs none /sys/fs/cgroup && "


@contextlib.contextmanager
def replaced(m, program, script):
    """That program of takt's is the script meanwhile; `$REAL` in it is the program."""
    path = m.path("bin/" + program)
    real = os.path.realpath(path)
    os.unlink(path)
    if script:
        kit.write_program(path, script.replace("$REAL", shlex.quote(real)))
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.symlink(real, path)


def launcher_with(*flags, without=(), before=""):
    """A script: the launcher with other flags, in a mount namespace of its own where something comes before."""
    loop = "".join(f'[ "$word" = {word} ] || ' for word in without)
    own = "unshare --mount " if before else ""
    return ("#!/bin/sh\nfor word in \"$@\"; do shift; " + loop + 'set -- "$@" "$word"; done\n'
            f"exec {own}sh -c '{before}exec \"$@\"' sh $REAL \"$@\" {' '.join(flags)}\n")


def restart_launcher(m):
    for pid in m.pids("takt-launch"):
        os.kill(pid, signal.SIGTERM)


def refused_with(client, job, kind, tries=1):
    """The view of the job once that is why it waits."""
    def look():
        view = client.job(job)
        return view.get("refused") == kind and view["refused_tries"] >= tries and view.get("why") == "refused" and view
    return kit.until(look, lambda: client.job(job))


def expect_told(m, uid, job, words):
    """The owner reads it wherever a waiting job's reason is to be read."""
    for command in (("show", str(job)), ("explain", str(job))):
        said = " ".join(takt_as(m, uid, *command).stdout.split())
        assert words in said, (command, said)
    assert "start refused: " in takt_as(m, uid, "queue").stdout, takt_as(m, uid, "queue")
    show = takt_as(m, uid, "show", str(job)).stdout
    assert "refused " in show and "since" in show and "again" in show, show
    assert "refused since" in takt_as(m, uid, "explain", str(job)).stdout


def a_user_whose_jobs_cannot_be_kept_apart_is_told():
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        raise kit.Skip("a mount namespace of its own is not allowed here")
    with shared_machine(start=False, gpus=1) as m:
        with replaced(m, "takt-launch", launcher_with(without=["--allow-weak-isolation"], before=NO_CGROUPS)):
            m.start()
            client = m.client()
            job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["true"], 1))["id"]
            view = refused_with(client, job, "isolation", 2)
            assert view["state"] == "waiting" and view["refused_by"] == "takt-launch", view
            assert view["retry_at_ms"] > view["refused_since_ms"] >= view["submitted_ms"], view
            assert "cgroup" in view["refused_text"] and "allow_weak_isolation" in view["why_text"], view
            expect_told(m, ALICE, job, "takt-launch did not start it")
            kit.until(lambda: "no job can be started" in m.takt("status").stdout, lambda: m.takt("status").stdout)
            assert client.metrics()["takt_starts_refused"] >= 2
            assert "no job can be started" in m.said(), m.said()
            # Root's jobs need no wall, and have the GPU meanwhile.
            done = m.takt("run", "-q", "-n", "1", "--", "true")
            assert done.returncode == 0, done
            # Until the next try of the other's is refused.
            kit.until(lambda: "jobs are started again" in m.said(), m.said)
        restart_launcher(m)
        view = client.wait(job)
        assert view["state"] == "done" and "refused" not in view, view
        kit.until(lambda: client.metrics()["takt_starts_refused"] == 0, "the warning is over")


def a_user_that_may_run_nothing_waits_alone():
    with shared_machine(start=False, gpus=1) as m, replaced(m, "takt-launch", launcher_with(f"--min-uid {BOB}")):
        m.start()
        client = m.client()
        jobs = [ask(m, ALICE, "POST", "/v1/jobs", job_of(["true"], 1))["id"] for _ in range(2)]
        for job in jobs:
            view = refused_with(client, job, "user")
            assert str(ALICE) in view["refused_text"] and "--min-uid" in view["why_text"], view
        for _ in range(3):
            assert takt_as(m, BOB, "run", "-q", "-n", "1", "--", "true").returncode == 0
        assert client.job(jobs[0])["state"] == client.job(jobs[1])["state"] == "waiting"
        assert "no job can be started" not in m.takt("status").stdout, "BOB's are"
        seen = ask(m, BOB, "GET", f"/v1/jobs/{jobs[0]}")
        assert seen["why"] == "refused" and "below" not in seen["why_text"], seen
        assert takt_as(m, ALICE, "cancel", str(jobs[0])).returncode == 0
        assert client.wait(jobs[0])["state"] == "cancelled"


def a_launcher_that_is_missing_is_named_and_waited_for():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        kit.until(lambda: m.pids("takt-launch"), m.processes)
        with replaced(m, "takt-launch", None):
            restart_launcher(m)
            job = client.submit(["true"], gpus=1)["id"]
            view = refused_with(client, job, "launcher")
            assert "launcher cannot be reached" in view["why_text"] and "takt-launch" in view["why_text"], view
            kit.until(lambda: "no job can be started" in m.takt("status").stdout, lambda: m.takt("status").stdout)
            # Who comes later is told the same, without having been tried.
            later = client.submit(["true"], gpus=1)["id"]
            kit.until(lambda: client.job(later).get("refused") == "launcher", lambda: client.job(later))
        for one in (job, later):
            assert client.wait(one)["state"] == "done"
        assert "no job can be started" not in m.takt("status").stdout


def a_shim_that_gives_up_is_named_and_started_when_it_works():
    with kit.machine(gpus=1) as m:
        with replaced(m, "takt-shim", "#!/bin/sh\nexit 1\n"):
            m.start()
            client = m.client()
            job = client.submit(["true"], gpus=1)["id"]
            view = refused_with(client, job, "shim", 2)
            assert view["refused_by"] == "takt-shim" and "nothing of it ran" in view["why_text"], view
            os.unlink(m.path("bin/takt-shim"))
            view = refused_with(client, job, "launcher")
            assert "takt-shim" in view["refused_text"] and "No such file" in view["refused_text"], view
            kit.write_program(m.path("bin/takt-shim"), "#!/bin/sh\n")
        assert client.wait(job)["state"] == "done"


if __name__ == "__main__":
    sys.exit(kit.main([
        a_user_whose_jobs_cannot_be_kept_apart_is_told,
        a_user_that_may_run_nothing_waits_alone,
        a_launcher_that_is_missing_is_named_and_waited_for,
        a_shim_that_gives_up_is_named_and_started_when_it_works,
    ], at_once=4))
