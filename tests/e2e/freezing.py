#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that stand still for others and keep their GPU memory: two on a GPU, one of which does nothing.

The witness of the one that comes looks all the time whether the one that it came beside stands still.

Usage: freezing.py BUILD_FOLDER
"""
import os
import sys
import time

import judge
import kit


COUNTING = "n=0; until test -e enough; do n=$((n+1)); echo $n > count; sleep 0.02; done"


def tell(m, word):
    """A file that jobs wait for: those that count for "enough", those that are urgent for "over"."""
    os.mknod(m.path("jobs/" + word))


def counted(m):
    try:
        with open(m.path("jobs/count"), encoding="ascii") as file:
            return int(file.read() or 0)
    except FileNotFoundError:
        return 0


def victim(m, client, gpus=1, **more):
    job = client.submit(m.witness_argv(0, "sh", "-c", COUNTING), gpus=gpus, cwd=m.path("jobs"),
                        **{"preemptible": True, "freezable": True, "gpu_mem_mib": 20000, **more})["id"]
    kit.until(lambda: counted(m) > 2, lambda: client.job(job))
    return job


def urgent(m, client, gpus=1, **more):
    return client.submit(m.witness_argv(m.path("jobs/over")), gpus=gpus, priority=5, **{"gpu_mem_mib": 20000, **more})["id"]


def frozen_for(m, client, job, other):
    """And the other runs."""
    kit.until(lambda: client.job(job)["frozen"] and client.job(other)["state"] == "running",
              lambda: (client.job(job), client.job(other), m.said()))
    assert client.job(job).get("room_for") == other, client.job(job)
    kit.until(lambda: [look for look in m.witness().beside if look.job == other],
              "the other's witness has looked")


def start(m):
    """The daemon, with nobody's run time protected; a client."""
    m.start("--min-runtime", "0s")
    return m.client()


def one_frozen(m, client):
    """A job that stands still, and the one for which it does."""
    job = victim(m, client)
    other = urgent(m, client)
    frozen_for(m, client, job, other)
    return job, other


def both_end(m, client, job, other):
    """The one that stands still goes on when the other is over."""
    was = counted(m)
    tell(m, "over")
    assert client.wait(other)["state"] == "done"
    kit.until(lambda: counted(m) > was, lambda: client.job(job))
    tell(m, "enough")
    assert client.wait(job)["state"] == "done"


def just(m, *jobs):
    """Each ran once from its beginning to its end, none beside another that was not frozen."""
    witness = m.witness()
    assert not judge.handed_out_twice(witness), judge.handed_out_twice(witness)
    assert not judge.not_run_once(witness, jobs), judge.not_run_once(witness, jobs)


def a_frozen_job_stands_still_and_goes_on():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(["sh", "-c", COUNTING], gpus=1, cwd=m.path("jobs"))["id"]
        kit.until(lambda: counted(m) > 3, lambda: client.job(job))
        done = m.takt("freeze", str(job))
        assert done.returncode == 0 and "frozen" in done.stdout, done
        was = [0, 1]

        def rests():
            was.append(counted(m))
            return was[-1] == was[-2] == was[-3]
        kit.until(rests, lambda: was)
        assert client.job(job)["frozen"], client.job(job)
        m.kill()
        m.start()
        client = m.client()
        kit.until(lambda: client.job(job).get("frozen"), lambda: client.job(job))
        assert m.takt("thaw", str(job)).returncode == 0
        kit.until(lambda: counted(m) > was[-1], lambda: client.job(job))
        assert m.takt("checkpoint", str(job)).returncode == 0
        assert "checkpoint_ms" in client.job(job), client.job(job)
        assert m.takt("freeze", str(job)).returncode == 0
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"


def it_stands_still_beside_the_other_and_goes_on():
    with kit.machine(gpus=2) as m:
        client = start(m)
        job = victim(m, client, gpus=2, hook='echo $TAKT_EVENT >> events')
        other = urgent(m, client, gpus=2)
        frozen_for(m, client, job, other)
        was = counted(m)
        assert f"frozen for job {other}" in m.takt("show", str(job)).stdout, m.takt("show", str(job))
        assert f"frozen for {other}\n" in m.takt("queue").stdout, m.takt("queue")
        for words in (("thaw", str(job)), ("freeze", str(job))):
            done = m.takt(*words)
            assert done.returncode != 0 and f"is frozen for job {other}" in done.stderr, done
        (holder,) = {gpu.get("job_id") for gpu in client.status()["gpus"]}
        assert holder == other, client.status()
        assert counted(m) == was, "it counts while it is frozen"
        both_end(m, client, job, other)
        view = client.job(job)
        assert (view["state"], view["attempt"], view.get("restarts", 0)) == ("done", 1, 0), view
        just(m, job, other)
        kit.until(lambda: "ended" in open(m.path("jobs/events"), encoding="ascii").read(), "its last hook")
        with open(m.path("jobs/events"), encoding="ascii") as file:
            assert file.read().split() == ["started", "frozen", "thawed", "ended"]
        assert m.stop() == 0
        done = m.takt("simulate", "--replay", m.path("state/takt.db"))
        assert done.returncode == 0 and ", 0 came out" in done.stdout, done


def several_stand_still_for_one():
    """Together, also while takt is away; none of them loses anything."""
    with kit.machine(gpus=2) as m:
        client = start(m)
        jobs = [client.submit(m.witness_argv(0, "sh", "-c", COUNTING), gpus=1, cwd=m.path("jobs"), preemptible=True,
                              freezable=True, gpu_mem_mib=20000)["id"] for _ in range(2)]
        kit.until(lambda: len(m.witness().begins) == 2, "both run")
        kit.until(lambda: all(client.job(job)["state"] == "running" for job in jobs), "and takt knows")
        other = urgent(m, client, gpus=2)
        for job in jobs:
            frozen_for(m, client, job, other)
        m.kill()
        client = start(m)
        kit.until(lambda: client.job(other)["state"] == "running", lambda: client.job(other))
        tell(m, "over")
        assert client.wait(other)["state"] == "done"
        tell(m, "enough")
        for job in jobs:
            view = client.wait(job)
            assert (view["state"], view["attempt"], view.get("restarts", 0)) == ("done", 1, 0), view
        just(m, *jobs, other)


def where_both_do_not_fit_it_is_ended():
    """A memory need that is not said, or is too large, or GPUs that are not the same number."""
    for more in ({"gpu_mem_mib": 0}, {"gpu_mem_mib": 70000}, {"gpu_milli": 1000, "gpus": 2}):
        with kit.machine(gpus=2) as m:
            client = start(m)
            blocker = client.submit(["sleep", "600"], gpus=1)["id"]
            kit.until(lambda: client.job(blocker)["state"] == "running", lambda: client.job(blocker))
            job = victim(m, client)
            if more.get("gpus"):
                client.cancel(blocker)
                client.wait(blocker)
            tell(m, "over")
            other = urgent(m, client, **more)
            assert client.wait(other)["state"] == "done"
            kit.until(lambda: client.job(job)["attempt"] == 2, lambda: client.job(job))
            assert client.job(job)["preemptions"] == 1, client.job(job)


def takt_may_die_meanwhile():
    with kit.machine(gpus=1) as m:
        client = start(m)
        job, other = one_frozen(m, client)
        m.kill()
        client = start(m)
        frozen_for(m, client, job, other)
        both_end(m, client, job, other)
        just(m, job, other)
        assert not client.job(job)["frozen"], client.job(job)


def the_other_may_end_while_takt_is_away():
    with kit.machine(gpus=1) as m:
        client = start(m)
        job, other = one_frozen(m, client)
        m.kill()
        was = counted(m)
        tell(m, "over")
        kit.until(lambda: [end for end in m.witness().ends if end.job == other], "it ends")
        client = start(m)
        assert client.wait(other)["state"] == "done"
        kit.until(lambda: counted(m) > was, lambda: client.job(job))
        tell(m, "enough")
        assert client.wait(job)["state"] == "done"
        just(m, job, other)


def cancelled_while_it_stands_still_it_never_goes_on():
    with kit.machine(gpus=1) as m:
        client = start(m)
        job = victim(m, client)
        other = urgent(m, client)
        frozen_for(m, client, job, other)
        was = counted(m)
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"
        assert counted(m) == was and client.job(other)["state"] == "running", client.job(other)
        tell(m, "over")
        assert client.wait(other)["state"] == "done"
        after = client.submit(m.witness_argv(10), gpus=1)["id"]
        assert client.wait(after)["state"] == "done"
        assert not judge.handed_out_twice(m.witness()), judge.handed_out_twice(m.witness())


def the_other_may_be_cancelled_and_its_time_limit_does_not_run():
    with kit.machine(gpus=1) as m:
        client = start(m)
        limit_s = 20  # far more than it runs
        job = victim(m, client, time_limit_ms=limit_s * 1000)
        for _ in range(2):
            other = urgent(m, client)
            frozen_for(m, client, job, other)
            was = counted(m)
            kit.until(lambda: time.time() > client.job(job)["started_ms"] / 1000 + limit_s + 1, "its limit would be over")
            client.cancel(other)
            assert client.wait(other)["state"] == "cancelled"
            kit.until(lambda: counted(m) > was, lambda: client.job(job))
        tell(m, "enough")
        assert client.wait(job)["state"] == "done"


def what_cannot_be_frozen_is_refused():
    with kit.machine(gpus=2) as m:
        m.start()
        for words, why in ((("-n", "1", "--gpu-mem", "1G"), "--preemptible"),
                           (("-n", "1", "--preemptible"), "--gpu-mem"),
                           (("-n", "0", "--preemptible"), "whole GPUs"),
                           (("-n", "0.5", "--preemptible", "--gpu-mem", "1G"), "whole GPUs"),
                           (("-n", "1", "--preemptible", "--gpu-mem", "1G", "--mem", "1G"), "--mem"),
                           (("-n", "1", "--preemptible", "--gpu-mem", "1G", "--container", "x"), "container"),
                           (("-n", "1", "--preemptible", "--gpu-mem", "1G", "--clock", "1200"), "--clock")):
            done = m.takt("submit", "--freezable", *words, "--", "true")
            assert done.returncode == 64 and "--freezable" in done.stderr and why in done.stderr, (words, done)
        assert not m.client().live() and not m.client().history()


if __name__ == "__main__":
    sys.exit(kit.main([
        a_frozen_job_stands_still_and_goes_on,
        it_stands_still_beside_the_other_and_goes_on, several_stand_still_for_one,
        where_both_do_not_fit_it_is_ended,
        takt_may_die_meanwhile,
        the_other_may_end_while_takt_is_away,
        cancelled_while_it_stands_still_it_never_goes_on,
        the_other_may_be_cancelled_and_its_time_limit_does_not_run,
        what_cannot_be_frozen_is_refused,
    ]))
