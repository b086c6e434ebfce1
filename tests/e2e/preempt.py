#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that make room for others, with real processes: told first, ended then, run again, and never for nothing.

Usage: preempt.py BUILD_FOLDER
"""
import os
import sys

import kit

# Says in the checkpoint directory what it does; saves at SIGUSR1, goes at SIGTERM once the file "go" is there. Its second
# start has nothing left to do.
WORKER = """
echo start $TAKT_RESTART >> $TAKT_CHECKPOINT_DIR/log
trap 'echo saved >> $TAKT_CHECKPOINT_DIR/log' USR1
trap 'until test -e $TAKT_CHECKPOINT_DIR/go; do sleep 0.02; done; echo gone >> $TAKT_CHECKPOINT_DIR/log; exit 0' TERM
test $TAKT_RESTART = 0 || exit 0
touch $TAKT_CHECKPOINT_DIR/ready
while true; do sleep 0.05; done
"""


def lines(m):
    with open(m.path("jobs/log"), encoding="ascii") as file:
        return file.read().split("\n")[:-1]


def starts(m, path):
    try:
        with open(m.path(path), encoding="ascii"):
            return True
    except FileNotFoundError:
        return False


def worker(m, client, **more):
    return client.submit(m.witness_argv(1, "sh", "-c", WORKER), gpus=2, checkpoint_signal=10, checkpoint_grace_ms=1000,
                         checkpoint_dir=m.path("jobs"), grace_ms=600_000, **more)["id"]


def may_go(m):
    os.mknod(m.path("jobs/go"))


def running(m, client, job):
    kit.until(lambda: starts(m, "jobs/ready"), lambda: client.job(job))


def who_makes_room_saves_and_runs_again():
    with kit.machine(gpus=2) as m:
        m.start("--min-runtime", "0s")
        client = m.client()
        victim = worker(m, client, preemptible=True)
        running(m, client, victim)
        urgent = client.submit(m.witness_argv(300), gpus=2, priority=5)["id"]
        kit.until(lambda: client.job(victim)["state"] == "stopping", lambda: client.job(victim))
        assert f"makes room for {urgent}\n" in m.takt("queue").stdout, m.takt("queue")
        assert f"makes room for job {urgent}" in m.takt("show", str(victim)).stdout
        may_go(m)
        assert client.wait(urgent)["state"] == "done"
        view = client.wait(victim)
        assert (view["state"], view["restarts"], view["preemptions"], view["attempt"]) == ("done", 1, 1, 2), view
        assert lines(m) == ["start 0", "saved", "gone", "start 1"], lines(m)
        assert [begin.job for begin in m.witness().begins] == [victim, urgent, victim]


def takt_may_die_in_between():
    with kit.machine(gpus=2) as m:
        m.start("--min-runtime", "0s")
        client = m.client()
        victim = worker(m, client, preemptible=True)
        running(m, client, victim)
        urgent = client.submit(m.witness_argv(1), gpus=2, priority=5)["id"]
        kit.until(lambda: "saved" in lines(m), lambda: client.job(victim))
        m.kill()
        may_go(m)
        m.start("--min-runtime", "0s")
        client = m.client()
        for job in (urgent, victim):
            assert client.wait(job)["state"] == "done", client.job(job)
        assert lines(m)[-1] == "start 1", lines(m)
        assert client.job(victim)["preemptions"] == 1, client.job(victim)


def nobody_goes_who_did_not_offer_it():
    with kit.machine(gpus=2) as m:
        m.start("--min-runtime", "0s")
        client = m.client()
        gate = client.submit(["sh", "-c", "until test -e go; do sleep 0.02; done"], gpus=2, cwd=m.path("jobs"))["id"]
        urgent = client.submit(m.witness_argv(1), gpus=2, priority=5)["id"]
        kit.until(lambda: client.job(urgent).get("why") == "gpus", lambda: client.job(urgent))
        may_go(m)
        assert client.wait(gate)["state"] == "done" and client.wait(urgent)["state"] == "done"
        assert "preemptions" not in client.job(gate), client.job(gate)


def who_is_asked_to_begins_anew():
    """Preemptible or not, over a death of takt, and never two of it at once."""
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = worker(m, client)
        waits = client.submit(m.witness_argv(1), gpus=2, held=True)["id"]
        running(m, client, job)
        refused = m.takt("requeue", str(waits))
        assert refused.returncode == 75 and "only running jobs can be requeued" in refused.stderr, refused
        done = m.takt("requeue", str(job))
        assert done.returncode == 0 and f"job {job}: stopping" in done.stdout, done
        kit.until(lambda: "saved" in lines(m), lambda: client.job(job))
        m.kill()
        may_go(m)
        m.start()
        client = m.client()
        view = client.wait(job)
        assert (view["state"], view["restarts"], view["attempt"]) == ("done", 1, 2), view
        assert "preemptions" not in view, view
        assert lines(m) == ["start 0", "saved", "gone", "start 1"], lines(m)
        assert [begin.job for begin in m.witness().begins] == [job, job]


def decisions_come_out_again_with_their_settings():
    with kit.machine(gpus=2) as m:
        m.start("--min-runtime", "0s", "--order", "fair_share", "--backfill", "easy", "--guard", "1h")
        client = m.client()
        for gpus in (2, 1, 1, 2):
            client.submit(m.witness_argv(50), gpus=gpus)
        for job in range(1, 5):
            assert client.wait(job)["state"] == "done"
        assert m.stop() == 0
        done = m.takt("simulate", "--replay", m.path("state/takt.db"))
        assert done.returncode == 0 and ", 0 came out" in done.stdout, done


if __name__ == "__main__":
    sys.exit(kit.main([
        who_makes_room_saves_and_runs_again,
        takt_may_die_in_between,
        nobody_goes_who_did_not_offer_it,
        who_is_asked_to_begins_anew,
        decisions_come_out_again_with_their_settings,
    ]))
