#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every process of takt is killed, at every named place and at random moments, under load.

After each death: no accepted job is lost, none runs twice at once, no GPU is handed out twice, no
clock stays changed, the database passes its check, and takt goes on. Judged by what the jobs saw of
themselves, by what clients were told and by the simulated boards; see judge.py and kit.py.

Usage: kill_campaign.py BUILD_FOLDER [SEED]
With TAKT_TEST_LONG=1 there are more trials.
"""
import contextlib
import glob
import http.client
import os
import random
import re
import signal
import socket
import sqlite3
import struct
import sys
import threading
import time

import judge
import kit

LONG = os.environ.get("TAKT_TEST_LONG") == "1"
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20261120
RANDOM_DEATHS = 500 if LONG else 100
GPUS = 4
RESTORED_WITHIN_S = 2
REACHED_WITHIN_S = 15
SETTLED_WITHIN_S = 45

POINT = re.compile(r'takt_crash_point\(\s*"([^"]+)"')
# Which process passes the points of a room.
PROCESS_OF = {"store": "takt", "queue": "takt", "engine": "takt", "launch": "takt-launch",
              "shim": "takt-shim", "actuate": "takt-actuate"}
GUARD = "actuate.guard_"
# point: why no trial here passes it, and what else tests it
NOT_PASSED = {f"shim.{step}": "no job is staged here; tests/launch/test_stage.c kills them"
              for step in ("before_staged", "after_staged", "after_prefetch", "after_wait",
                           "before_void")}


def crash_points():
    found = set()
    for path in glob.glob(os.path.join(kit.SOURCE, "src/**/*.c"), recursive=True):
        with open(path, encoding="utf-8") as file:
            found.update(POINT.findall(file.read()))
    return sorted(found)


def passes(point):
    """At which pass of the point to die. What is being written differs from one commit to the next."""
    if LONG:
        return (1, 2, 3, 5, 8, 13)
    return (1, 5) if point.startswith("store.") and "commit" in point else (1,)


def process_of(point):
    if point.startswith(GUARD):
        return "takt-guard"
    return PROCESS_OF[point.split(".")[0]]


class Load:
    """A client that submits jobs until it is told to stop, whether takt answers or not."""

    def __init__(self, m, luck, pause_s=0.02, environment=100):
        self.m, self.luck, self.pause_s = m, luck, pause_s
        self.env = ["PATH=/usr/bin:/bin", "FILL=" + "x" * environment]
        self.accepted, self.repeatable, self.problems = [], set(), []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _job(self):
        ms = self.luck.choice((5, 20, 60, 300))
        gpus = self.luck.choice((0, 1, 1, 2, GPUS))
        spec = {"gpus": gpus, "requeue": self.luck.random() < 0.3, "grace_ms": 1000,
                "env": self.env}
        command = []
        if gpus and self.luck.random() < 0.4:
            spec.update(clock_ask=self.luck.choice(("ceiling", "lock")),
                        clock_mhz=self.luck.choice((600, 900, 1200)))
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
                if refused.status != 503:
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
    with contextlib.suppress(AssertionError):
        kit.until(lambda: not m.locked(), RESTORED_WITHIN_S, "")
    problems = left_locked(m) + database_problems(m)
    kit.until(lambda: all(gpu["state"] == "free" for gpu in client.status()["gpus"]),
              SETTLED_WITHIN_S, lambda: f"all GPUs free: {client.status()['gpus']}")
    return Record(m.witness(), views, accepted, repeatable, killed, problems)


def judge_run(m, work, killed=()):
    found = settle(m, work.accepted, work.repeatable, killed).violations()
    assert not found, f"{len(found)} violations: " + "; ".join(found[:6])


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def ensure_runs(m):
    """takt is started again when it is dead: nobody else would."""
    if m.serve.poll() is not None:
        m.close_clients()
        m.start()


# At every named place.

def takt_dies_at(point, nth):
    """Whether it did."""
    luck = random.Random(f"{SEED} {point} {nth}")
    with kit.machine(gpus=GPUS) as m:
        m.spawn(crash=f"{point}:{nth}")
        large = 100_000 if "checkpoint" in point else 100  # so that the log of the store is soon long
        with load(m, luck, pause_s=0.005, environment=large) as work:
            with contextlib.suppress(Exception):
                m.serve.wait(REACHED_WITHIN_S)
            reached = m.serve.poll() == -signal.SIGKILL
            if not reached:
                kill(m.serve.pid)
            m.died()
            m.start()
            time.sleep(0.2)
        judge_run(m, work)
    return reached


def takt_dies_at_again(point):
    """It is killed under load, dies at the place while it picks up the pieces, and starts once more."""
    luck = random.Random(f"{SEED} {point} again")
    with kit.machine(gpus=GPUS) as m:
        m.start()
        with load(m, luck, pause_s=0.005) as work:
            time.sleep(luck.uniform(0.1, 0.4))
            m.kill()
            m.spawn(crash=point)
            with contextlib.suppress(Exception):
                m.serve.wait(2)
            reached = m.serve.poll() == -signal.SIGKILL
            if not reached:
                kill(m.serve.pid)
            m.died()
            m.start()
        judge_run(m, work)
    return reached


def helper_dies_at(helper, point, nth):
    luck = random.Random(f"{SEED} {point} {nth}")
    with kit.machine(gpus=GPUS, armed=True) as m:
        if helper != "takt-shim":
            m.arm(helper, f"{point}:{nth}")
        m.start()
        with load(m, luck, pause_s=0.01) as work:
            if helper == "takt-shim":
                kit.until(lambda: m.witness().ends, 10, "a job has run")
                m.arm(helper, f"{point}:{nth}")
            elif helper == "takt-guard":
                kit.until(m.locked, 10, "a clock is locked")
                m.serve.send_signal(signal.SIGSTOP)  # so that nobody else restores
                kill(m.pids("takt-actuate")[0])
            with contextlib.suppress(AssertionError):
                kit.until(lambda: m.fate(helper) is not None, REACHED_WITHIN_S, "it died")
            if helper == "takt-guard":
                m.serve.send_signal(signal.SIGCONT)
            time.sleep(0.2)
        killed = range(1, 1_000_000) if helper == "takt-shim" else ()
        record = settle(m, work.accepted, work.repeatable, killed)
        found = record.violations()
        if helper == "takt-shim":
            unlucky = [v for v in record.views.values() if v["state"] != "done"]
            if len(unlucky) > 1 or any(v["state"] != "lost" for v in unlucky):
                found.append(f"one shim died, but these jobs did not get done: {unlucky}")
        assert not found, f"{len(found)} violations: " + "; ".join(found[:6])
        assert m.serve.poll() is None, "takt itself ended"
        return m.fate(helper) == signal.SIGKILL


def at_every_place_of(process):
    """A case for the points of one process."""
    points = [point for point in crash_points() if process_of(point) == process]

    def case():
        missed = []
        for point in points:
            for nth in passes(point):
                begin = time.monotonic()
                try:
                    reached = takt_dies_at(point, nth) if process == "takt" else \
                        helper_dies_at(process, point, nth)
                except Exception as problem:
                    raise AssertionError(f"{point}:{nth}: {problem}") from problem
                kit.note(f"{point}:{nth} {'reached' if reached else 'not reached'}, "
                         f"{time.monotonic() - begin:.1f} s")
                if nth == 1 and reached == (point in NOT_PASSED):
                    missed.append(point)
        assert points and not missed, f"not as expected, reached or not: {missed}"
    return f"{process}_dies_at_every_place", case


def takt_dies_while_it_recovers():
    reached = 0
    for point in crash_points():
        if process_of(point) == "takt" and point not in NOT_PASSED:
            try:
                reached += takt_dies_at_again(point)
            except Exception as problem:
                raise AssertionError(f"{point}: {problem}") from problem
    assert reached >= 6, reached


# At random moments.

def strike(m, luck, kind, killed):
    """Kills one process of the kind; what it was to."""
    if kind == "takt":
        m.kill()
        time.sleep(luck.uniform(0, 0.1))
        m.start()
        return
    if kind == "takt-shim":
        shims = sorted(m.shims().items())
        if shims:
            (job, _), pid = luck.choice(shims)
            killed.add(job)
            kill(pid)
        return
    for pid in m.pids(kind):
        kill(pid)


def a_hundred_random_moments():
    luck = random.Random(SEED)
    killed = set()
    with kit.machine(gpus=GPUS) as m:
        m.start()
        accepted, repeatable = [], set()
        for death in range(RANDOM_DEATHS):
            if death % 20 == 0:  # look at everything now and then
                work = Load(m, random.Random(f"{SEED} {death}"), pause_s=0.03)
            time.sleep(luck.uniform(0, 0.25))
            kind = luck.choice(("takt", "takt-launch", "takt-shim", "takt-shim", "takt-actuate",
                                "takt-guard"))
            strike(m, luck, kind, killed)
            if death % 20 < 19 and death + 1 < RANDOM_DEATHS:
                continue
            work.stop()
            ensure_runs(m)
            accepted += work.accepted
            repeatable |= work.repeatable
            found = settle(m, accepted, repeatable, killed).violations()
            assert not found, f"death {death}: {len(found)} violations: " + "; ".join(found[:6])
        kit.note(f"{len(accepted)} jobs accepted, {len(killed)} jobs lost their shim")
        assert len(accepted) > RANDOM_DEATHS and len(killed) > RANDOM_DEATHS / 10, "too little load"


def everything_dies_at_once():
    """As when a machine's memory runs out, but for the jobs, which go on."""
    luck = random.Random(SEED + 1)
    for _ in range(10 if LONG else 3):
        with kit.machine(gpus=GPUS) as m:
            m.start()
            with load(m, luck, pause_s=0.01) as work:
                time.sleep(luck.uniform(0.2, 0.6))
                killed = {job for job, _ in m.shims()}
                pids = [pid for pid, kind in m.processes().items() if kind != "job"]
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)  # none sees the others go
                killed |= {job for job, _ in m.shims()}
                for pid in pids:
                    kill(pid)
                m.died()
                m.start()
                time.sleep(0.2)
            judge_run(m, work, killed)


def the_guard_restores_when_the_actuator_alone_dies():
    """takt is made to hold still, so that it is the guard that restores; then the lease comes back, and
    the gap is said."""
    with kit.machine(gpus=GPUS) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(5000), gpus=2, clock_ask="ceiling", clock_mhz=900)["id"]
        kit.until(lambda: len(m.locked()) == 2, 10, "its clocks are locked")
        m.serve.send_signal(signal.SIGSTOP)
        kill(m.pids("takt-actuate")[0])
        kit.until(lambda: not m.locked(), RESTORED_WITHIN_S, "the guard restores")
        m.serve.send_signal(signal.SIGCONT)
        kit.until(lambda: len(m.locked()) == 2, 10, "the lease is applied again")
        kit.until(lambda: "gap" in client.job(job).get("clock_note", ""), 5,
                  lambda: f"the gap is said: {client.job(job)}")
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"
        kit.until(lambda: not m.locked(), RESTORED_WITHIN_S, "restored at the end of the job")


def the_lease_of_a_job_that_never_started_is_ended():
    """takt dies after it has asked for clocks and before the attempt is on disk: played by hand, since a
    restarted takt would most often ask for the same again."""
    request = struct.Struct("@IIQQQQIII96s4x")  # struct takt_actuate_request
    set_clocks, job, ttl_ns = 2, 999, 30_000_000_000
    with kit.machine(gpus=2) as m:
        m.start()
        door = m.path("run/actuate.sock")
        kit.until(lambda: os.path.exists(door), 10, "the actuator listens")
        m.kill()
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as actuate:
            actuate.settimeout(10)
            actuate.connect(door)
            actuate.send(request.pack(1, set_clocks, 1, job << 8, job, ttl_ns, 345, 600, 0,
                                      m.boards()[0]["uuid"].encode()))
            kit.until(m.locked, 10, "its clock is locked")
        m.start()
        kit.until(lambda: not m.locked(), RESTORED_WITHIN_S, lambda: f"restored: {m.locked()}")
        client = m.client()
        view = client.wait(client.submit(m.witness_argv(50), gpus=2, clock_ask="ceiling",
                                         clock_mhz=900)["id"])
        assert (view["state"], view.get("message", "")) == ("done", ""), view


def the_campaign_can_fail():
    """A record of a good run passes; with any one forged entry it does not."""
    luck = random.Random(SEED + 2)
    with kit.machine(gpus=GPUS) as m:
        m.start()
        with load(m, luck) as work:
            kit.until(lambda: len(m.witness().ends) > 10, 20, "some jobs have run")
        good = settle(m, work.accepted, set(), set())
        assert not good.violations(), good.violations()
        with_gpus = next(e for e in good.witness.ends if e.gpus)
        some = with_gpus.job

        def forged(change):
            record = settle(m, list(work.accepted), set(), set())
            change(record)
            assert record.violations(), f"{change.__name__} was not seen"

        def a_busy_gpu(record):
            record.witness.busy.append(kit.Busy(some, "1", "gpu-0", 5))

        def two_on_a_gpu(record):
            record.witness.ends.append(with_gpus._replace(end_ns=with_gpus.end_ns + 5))

        def a_lost_job(record):
            del record.views[some]

        def a_job_that_takt_forgot_to_run(record):
            record.witness.ends = [e for e in record.witness.ends if e.job != some]

        def a_job_that_began_twice(record):
            record.witness.begins.append(next(b for b in record.witness.begins if b.job == some))

        def a_job_that_never_ends(record):
            record.views[some] = {**record.views[some], "state": "running"}

        def a_job_lost_for_no_reason(record):
            record.views[some] = {**record.views[some], "state": "lost"}
        for change in (a_busy_gpu, two_on_a_gpu, a_lost_job, a_job_that_takt_forgot_to_run,
                       a_job_that_began_twice, a_job_that_never_ends, a_job_lost_for_no_reason):
            forged(change)
        assert m.stop() == 0
        with contextlib.closing(sqlite3.connect(m.path("state/takt.db"))) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with open(m.path("state/takt.db"), "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(b"\xa5" * (size - 4096))
        assert database_problems(m)


CASES = [*map(at_every_place_of, ("takt", "takt-launch", "takt-shim", "takt-actuate", "takt-guard")),
         takt_dies_while_it_recovers, the_guard_restores_when_the_actuator_alone_dies,
         the_lease_of_a_job_that_never_started_is_ended, everything_dies_at_once, a_hundred_random_moments, the_campaign_can_fail]

if __name__ == "__main__":
    sys.exit(kit.main(CASES))
