# SPDX-License-Identifier: Apache-2.0
"""What the fault campaigns have in common: load, judgement, and the count of what was tried.

A trial is one fault on a simulated machine under load. After it: no accepted job is lost, none runs
twice at once, no GPU is handed out twice, no clock stays changed, the database passes its check, and
takt goes on. Judged by what the jobs saw of themselves, by what clients were told and by the simulated
boards; see judge.py and kit.py.
"""
import collections
import contextlib
import os
import random
import signal
import sqlite3
import sys
import threading

import judge
import kit
from campaign_load import AGAIN, GPUS, Load, kinds_of

LONG = os.environ.get("TAKT_TEST_LONG") == "1"
SEED = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 20261120
RESTORED_WITHIN_S = kit.WAIT_S
SETTLED_WITHIN_S = 2 * kit.WAIT_S  # many jobs wait behind each other
ANYBODY = range(1, 1_000_000)  # job ids, where a fault may have met any job
TRIED = collections.Counter()  # what was tried: how often
JOBS = collections.Counter()   # what kinds of jobs there were when it was tried
COUNTING = threading.Lock()    # trials run beside each other


def tried(what):
    with COUNTING:
        TRIED[what] += 1


def main(cases):
    """As kit.main, with what was tried at the end; test_report.py makes one table of it."""
    status = kit.main(cases)
    for what, number in sorted(TRIED.items()):
        kit.note(f"trials: {number} {what}")
    kit.note("jobs: " + ", ".join(f"{number} {what}" for what, number in sorted(JOBS.items())))
    return status


def every_kind_of_job_was_there():
    """All that the load has, and some that were ended for others."""
    missing = {"part of a GPU", "ranks", "preemptible", "of an array", "after another", "staged",
               "ended for another, run again"} - set(JOBS)
    assert not missing, f"no job was {missing}: {JOBS}"


@contextlib.contextmanager
def machine(armed=False):
    """A simulated machine where whoever may be ended for others is, however short he ran."""
    with kit.machine(gpus=GPUS, armed=armed) as m:
        m.more_flags = ("--min-runtime", "0s")
        yield m


@contextlib.contextmanager
def load(m, luck, **more):
    made = Load(m, luck, **more)
    try:
        yield made
    finally:
        made.stopping.set()
        made.thread.join(kit.WAIT_S)
    made.stop()


LIVE = "state IN ('waiting', 'starting', 'running', 'stopping')"
# An environment is there as long as its job lives, and not a moment longer.
ASTRAY = f"""SELECT 'environment of job ' || job_id || ', which has ended or is gone' FROM environment
    WHERE job_id NOT IN (SELECT coalesce(env_of, id) FROM job WHERE {LIVE})
    UNION ALL SELECT 'no environment of job ' || id || ', which lives' FROM job
    WHERE {LIVE} AND coalesce(env_of, id) NOT IN (SELECT job_id FROM environment)
    UNION ALL SELECT 'description of job ' || job_id || ', which is gone' FROM spec
    WHERE job_id NOT IN (SELECT id FROM job)
    UNION ALL SELECT 'no description of job ' || id FROM job WHERE id NOT IN (SELECT job_id FROM spec)"""


def database_problems(m):
    try:
        with contextlib.closing(sqlite3.connect(m.path("state/takt.db"))) as db:
            rows = db.execute("PRAGMA integrity_check").fetchall()
            if rows == [("ok",)] and db.execute("PRAGMA user_version").fetchone() != (0,):
                rows = db.execute(ASTRAY).fetchall()
    except sqlite3.DatabaseError as problem:
        rows = [(str(problem),)]
    return [f"the database: {text}" for (text,) in rows if text != "ok"]


def left_locked(m):
    return [f"GPU {gpu} is left locked to {clocks}" for gpu, clocks in m.locked().items()]


class Submitted:
    """What a load knows of its jobs, where there is none: just their numbers."""

    def __init__(self, accepted):
        self.accepted, self.repeatable, self.after = accepted, set(), {}


class Record:
    """Everything that a run is judged by."""

    def __init__(self, witness, views, work, killed, problems):
        self.witness, self.views, self.accepted, self.after = witness, views, work.accepted, dict(work.after)
        self.repeatable = work.repeatable | {job for job, view in views.items() if view.get("name") == AGAIN}
        self.killed, self.problems = killed, problems

    def violations(self):
        return [*self.problems,
                *judge.handed_out_twice(self.witness, self.killed),
                *judge.attempts_run_twice(self.witness, self.views),
                *judge.before_its_turn(self.witness, self.after),
                *judge.lost(self.accepted, self.views),
                *judge.ended_otherwise(self.witness, self.views, self.repeatable),
                *judge.not_done(self.views, self.killed)]


def settle(m, work, killed=(), restored_within_s=RESTORED_WITHIN_S):
    """Waits until every job has ended; the record, with what is wrong then."""
    client = m.client()

    def waiting():
        return [(v["id"], v["state"], v.get("why_text", "")) for v in client.live()]
    def seen():
        return waiting()[:8], [(gpu["state"], gpu.get("note"), gpu.get("health_note")) for gpu in client.status()["gpus"]], m.said()[-2000:]
    kit.until(lambda: not waiting(), lambda: f"all jobs ended: {seen()}", seconds=SETTLED_WITHIN_S)
    views = {view["id"]: view for view in client.history()}
    with contextlib.suppress(AssertionError):
        kit.until(lambda: not m.locked(), "", seconds=restored_within_s)
    problems = left_locked(m) + database_problems(m)
    kit.until(lambda: all(gpu["state"] == "free" for gpu in client.status()["gpus"]),
              lambda: f"all GPUs free: {client.status()['gpus']}", seconds=SETTLED_WITHIN_S)
    with COUNTING:
        JOBS.update(kind for view in views.values() for kind in kinds_of(view))
    return Record(m.witness(), views, work, killed, problems)


def clean(found):
    assert not found, f"{len(found)} violations: " + "; ".join(found[:6])


def so_far(m, work):
    """What can be judged while jobs still run."""
    clean(judge.handed_out_twice(m.witness(), None) + [str(problem) for problem in work.problems])
    if m.serve.poll() is None:  # else whoever opens it is the one who recovers it
        clean(database_problems(m))


def judge_run(m, work, killed=()):
    clean(settle(m, work, killed).violations())


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def ensure_runs(m):
    """takt is started again when it is dead: nobody else would."""
    if m.serve.poll() is not None:
        m.close_clients()
        m.start()
