# SPDX-License-Identifier: Apache-2.0
"""What the fault campaigns have in common: load, judgement, and the count of what was tried.

A trial is one fault on a simulated machine under load. After it: no accepted job is lost, none runs
twice at once, no GPU is handed out twice, no clock stays changed, the database passes its check, and
takt goes on. Judged by what the jobs saw of themselves, by what clients were told and by the simulated
boards; see judge.py and kit.py.
"""
import collections
import concurrent.futures
import contextlib
import http.client
import os
import random
import signal
import sqlite3
import sys
import threading
import time

import judge
import kit

LONG = os.environ.get("TAKT_TEST_LONG") == "1"
SEED = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 20261120
GPUS = 4
MACHINES_AT_ONCE = 2
RESTORED_WITHIN_S = 10
SETTLED_WITHIN_S = 120
ANYBODY = range(1, 1_000_000)  # job ids, where a fault may have met any job
AGAIN = "again"  # the name of jobs with --requeue: known also where the answer to the submit was lost
TRIED = collections.Counter()  # what was tried: how often


def tried(what):
    TRIED[what] += 1


def main(cases):
    """As kit.main, with what was tried at the end; test_report.py makes one table of it."""
    status = kit.main(cases)
    for what, number in sorted(TRIED.items()):
        kit.note(f"trials: {number} {what}")
    return status


def side_by_side(trials):
    """Runs (name, function) pairs, some at a time; fails with all that failed. The functions' values."""
    with concurrent.futures.ThreadPoolExecutor(MACHINES_AT_ONCE) as pool:
        futures = [(name, pool.submit(trial)) for name, trial in trials]
    problems = [f"{name}: {future.exception()!r}" for name, future in futures if future.exception()]
    for _, future in futures:
        if isinstance(future.exception(), kit.Skip):
            raise future.exception()
    assert not problems, "\n".join(problems)
    return {name: future.result() for name, future in futures}


class Load:
    """A client that submits jobs until it is told to stop, whether takt answers or not."""

    def __init__(self, m, luck, pause_s=0.02, environment=100, refusals=(503,), stages=True):
        self.stages = stages
        self.m, self.luck, self.pause_s, self.refusals = m, luck, pause_s, refusals
        self.env = ["PATH=/usr/bin:/bin", "FILL=" + "x" * environment]
        self.accepted, self.repeatable, self.problems = [], set(), []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _job(self):
        ms = self.luck.choice((5, 20, 60, 300))
        gpus = self.luck.choice((0, 1, 1, 2, GPUS))
        requeue = self.luck.random() < 0.3
        spec = {"gpus": gpus, "requeue": requeue, "grace_ms": 1000, "env": self.env}
        if requeue:
            spec["name"] = AGAIN
        command = []
        if gpus and self.luck.random() < 0.4:
            spec.update(clock_ask=self.luck.choice(("ceiling", "lock")),
                        clock_mhz=self.luck.choice((600, 900, 1200)))
        if self.stages and gpus and self.luck.random() < 0.5:  # one of higher rank has others called off
            spec.update(stage=True, priority=self.luck.choice((0, 0, 3)))
        if self.stages and gpus and self.luck.random() < 0.2:
            spec["prefetch"] = ["/bin/sh", "-c", "sleep 0.1"]
        if gpus and self.luck.random() < 0.1:  # the boards see this one
            command = self.m.load_argv("--steps", 2, "--step-time-ms", 10, "--quiet")
        return self.m.witness_argv(ms, *command), spec

    def _submit(self, client):
        argv, spec = self._job()
        job = client.submit(argv, **spec)["id"]
        self.accepted.append(job)
        if spec["requeue"]:
            self.repeatable.add(job)

    def _run(self):
        client = kit.Client(self.m.socket, 10)
        while not self.stopping.is_set():
            try:
                self._submit(client)
            except (OSError, http.client.HTTPException):
                client.close()  # takt is dead: the answer is lost, the job may not be
            except kit.Refused as refused:
                if refused.status not in self.refusals:
                    self.problems.append(refused)
            except Exception as problem:
                self.problems.append(problem)
                break
            self.stopping.wait(self.luck.uniform(0, 2 * self.pause_s))
        client.close()

    def stop(self):
        self.stopping.set()
        self.thread.join(kit.WAIT_S)
        assert not self.thread.is_alive() and not self.problems, self.problems


@contextlib.contextmanager
def load(m, luck, **more):
    made = Load(m, luck, **more)
    try:
        yield made
    finally:
        made.stopping.set()
        made.thread.join(kit.WAIT_S)
    made.stop()


def database_problems(m):
    try:
        with contextlib.closing(sqlite3.connect(m.path("state/takt.db"))) as db:
            rows = db.execute("PRAGMA integrity_check").fetchall()
    except sqlite3.DatabaseError as problem:
        rows = [(str(problem),)]
    return [f"the database: {text}" for (text,) in rows if text != "ok"]


def left_locked(m):
    return [f"GPU {gpu} is left locked to {clocks}" for gpu, clocks in m.locked().items()]


class Record:
    """Everything that a run is judged by."""

    def __init__(self, witness, views, accepted, repeatable, killed, problems):
        self.witness, self.views, self.accepted = witness, views, accepted
        self.repeatable, self.killed, self.problems = repeatable, killed, problems

    def violations(self):
        return [*self.problems,
                *judge.handed_out_twice(self.witness),
                *judge.lost(self.accepted, self.views),
                *judge.ended_otherwise(self.witness, self.views, self.repeatable),
                *judge.not_done(self.views, self.killed)]


def settle(m, accepted, repeatable, killed):
    """Waits until every job has ended; the record, with what is wrong then."""
    client = m.client()

    def waiting():
        return [(v["id"], v["state"], v.get("why_text", "")) for v in client.live()]
    kit.until(lambda: not waiting(), SETTLED_WITHIN_S, lambda: f"all jobs ended: {waiting()}")
    views = {view["id"]: view for view in client.history()}
    repeatable = repeatable | {job for job, view in views.items() if view.get("name") == AGAIN}
    with contextlib.suppress(AssertionError):
        kit.until(lambda: not m.locked(), RESTORED_WITHIN_S, "")
    problems = left_locked(m) + database_problems(m)
    kit.until(lambda: all(gpu["state"] == "free" for gpu in client.status()["gpus"]),
              SETTLED_WITHIN_S, lambda: f"all GPUs free: {client.status()['gpus']}")
    return Record(m.witness(), views, accepted, repeatable, killed, problems)


def clean(found):
    assert not found, f"{len(found)} violations: " + "; ".join(found[:6])


def so_far(m, work):
    """What can be judged while jobs still run."""
    clean(judge.handed_out_twice(m.witness()) + [str(problem) for problem in work.problems])
    if m.serve.poll() is None:  # else whoever opens it is the one who recovers it
        clean(database_problems(m))


def judge_run(m, work, killed=()):
    clean(settle(m, work.accepted, work.repeatable, killed).violations())


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def ensure_runs(m):
    """takt is started again when it is dead: nobody else would."""
    if m.serve.poll() is not None:
        m.close_clients()
        m.start()
