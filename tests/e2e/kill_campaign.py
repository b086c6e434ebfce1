#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every process of takt is killed, at every named place and at random moments, under load.

How each death is judged: campaign.py. What else can happen to takt: fault_campaign.py.

Usage: kill_campaign.py BUILD_FOLDER [SEED]
With TAKT_TEST_LONG=1 there are more trials.
"""
import contextlib
import ctypes
import functools
import glob
import http.client
import itertools
import os
import random
import re
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import time

import kit
from campaign import (ANYBODY, GPUS, LONG, RESTORED_WITHIN_S, SEED, TRIED, Submitted, clean, database_problems,
                      ensure_runs, every_kind_of_job_was_there, judge_run, kill, load, machine, main, settle,
                      so_far, tried)
from side_by_side import side_by_side

RANDOM_DEATHS = 500 if LONG else 150
FEWEST_TRIALS = 700 if LONG else 180
DEATHS_A_MACHINE = 25
MACHINES_AT_ONCE = 6
REACHED_WITHIN_S = kit.WAIT_S

POINT = re.compile(r'takt_crash_point\(\s*"([^"]+)"')
# Which process passes the points of a room.
PROCESS_OF = {"store": "takt", "queue": "takt", "engine": "takt", "launch": "takt-launch",
              "shim": "takt-shim", "actuate": "takt-actuate", "attempt": "takt"}
# Places that no job leads to: tune.py, actuate_process_test.py and actuate_deaths_test.py die there.
ELSEWHERE = ("tune.", "declare.", "actuate.cpu_", "actuate.mig_")
CLEAN_UP = ("store.before_cut", "store.after_cut", "attempt.file_removed", "attempt.removed")
OF_FREEZING = ("queue.before_still", "queue.before_hand_over", "queue.after_hand_over", "queue.before_thaw")
CALLED_OFF = "shim.before_void"  # few staged jobs are
KEPT = 10  # ended jobs, where it cleans up
GUARD = "actuate.guard_"
PATIENCE_S = 2  # with a shim that may wait for its turn


def crash_points():
    found = set()
    for path in glob.glob(os.path.join(kit.SOURCE, "src/**/*.c"), recursive=True):
        with open(path, encoding="utf-8") as file:
            found.update(POINT.findall(file.read()))
    return sorted(point for point in found if not point.startswith(ELSEWHERE))


def passes(point):
    """At which pass of the point to die. What is being written differs from one commit to the next."""
    if LONG:
        return (1, 2, 3, 5, 8, 13)
    if point == "attempt.file_removed":  # each file of a folder is one
        return (1, 5, 9, 18)
    if point == CALLED_OFF:
        return (1, 2, 3)
    return (1, 5) if point.startswith("store.") and "commit" in point else (1,)


def process_of(point):
    if point.startswith(GUARD):
        return "takt-guard"
    return PROCESS_OF[point.split(".")[0]]


# At every named place.

def takt_dies_at(point, nth):
    """Whether it did."""
    if point in CLEAN_UP:
        return takt_dies_at_clean_up(point, nth)
    luck = random.Random(f"{SEED} {point} {nth}")
    with machine() as m:
        m.spawn(crash=f"{point}:{nth}")
        large = 100_000 if "checkpoint" in point else 100  # so that the log of the store is soon long
        with load(m, luck, pause_s=0.005, environment=large, freezes=point in OF_FREEZING) as work:
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


def folders_of(m):
    """Jobs whose folders are on disk."""
    return {int(name.split(".")[0]) for name in os.listdir(m.path("state/jobs"))}


def until_up_or_dead(m):
    kit.until(lambda: m.serve.poll() is not None or m.answers(), "takt answers, or has died")


def takt_dies_at_clean_up(point, nth):
    """History is cut at a start; what is left of a cut job goes, sooner or later, and of no other."""
    with kit.machine(gpus=GPUS) as m:
        m.start()
        client = m.client()
        runs = client.submit(m.witness_argv(600_000), gpus=1)["id"]
        waits = client.submit(m.witness_argv(1), gpus=1, held=True)["id"]
        first = client.submit(["true"], array_first=1, array_last=3 * KEPT)["id"]
        kit.until(lambda: len(client.live()) == 2, client.live)
        assert m.stop() == 0
        m.more_flags = ("--keep-ended", str(KEPT))
        m.spawn(crash=f"{point}:{nth}")
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
            until_up_or_dead(m)
            m.client().submit(["true"])  # what is cut is cut after a commit
        with contextlib.suppress(subprocess.TimeoutExpired):
            m.serve.wait(REACHED_WITHIN_S)
        reached = m.serve.poll() == -signal.SIGKILL
        m.kill()
        m.start()
        client = m.client()
        assert client.wait(client.submit(["true"])["id"])["state"] == "done"

        def kept():
            return {view["id"] for view in (*client.live(), *client.history())}
        kit.until(lambda: folders_of(m) <= kept() and {runs, first + 3 * KEPT - 1} <= folders_of(m),
                  lambda: f"folders are those of jobs: {sorted(folders_of(m) ^ kept())}")
        assert {runs, waits} <= kept() and len(kept()) < 2 * KEPT, kept()
        clean(database_problems(m))
        client.cancel(runs)
        assert client.wait(runs)["state"] == "cancelled" and len(m.witness().begins) == 1
        kit.until(lambda: not notes_of(m), lambda: notes_of(m))
    return reached


def notes_of(m):
    """Jobs of whom something may be left, by takt's own notes."""
    with contextlib.closing(sqlite3.connect(m.path("state/takt.db"))) as db:
        return db.execute("SELECT key FROM kept WHERE key LIKE 'gone/%'").fetchall()


def takt_dies_at_again(point):
    """It is killed under load, dies at the place while it picks up the pieces, and starts once more."""
    luck = random.Random(f"{SEED} {point} again")
    with machine() as m:
        m.start()
        with load(m, luck, pause_s=0.005) as work:
            time.sleep(luck.uniform(0.1, 0.4))
            m.kill()
            m.spawn(crash=point)
            until_up_or_dead(m)
            with contextlib.suppress(subprocess.TimeoutExpired):
                m.serve.wait(2)
            reached = m.serve.poll() == -signal.SIGKILL
            if not reached:
                kill(m.serve.pid)
            m.died()
            m.start()
        judge_run(m, work)
    return reached


def a_shim_dies_at(m, point):
    """Arms one shim after the other, until one has died there: few are of a job that passes the point, and
    one that waits for its turn may wait long. How many were armed; 0 = none died."""
    end = time.monotonic() + REACHED_WITHIN_S
    for number in itertools.count(1):
        if time.monotonic() > end:
            return 0
        m.arm("takt-shim", point)
        with contextlib.suppress(AssertionError):
            kit.until(lambda: m.fate("takt-shim") is not None, "the armed shim is over", seconds=PATIENCE_S)
        if m.fate("takt-shim") == signal.SIGKILL:
            return number
        m.forget_fate("takt-shim")


def job_with_a_clock(m, client, **more):
    """(its number, what ends it): a job that has its GPUs and their clocks until it is told to end."""
    held = m.path("held")
    open(held, "w", encoding="ascii").close()
    argv = m.witness_argv(0, "/bin/sh", "-c", f"while [ -e {held} ]; do sleep 0.1; done")
    job = client.submit(argv, clock_ask="ceiling", clock_mhz=900, **more)["id"]
    kit.until(lambda: set(client.job(job).get("gpu_list") or [-1]) <= set(m.locked()), "its clocks are set")
    return job, functools.partial(os.unlink, held)


def a_guard_dies(m):
    """Its work begins when the actuator dies; takt is made to hold still, so that nobody else restores."""
    _, end = job_with_a_clock(m, m.client(), gpus=1, priority=100)
    m.serve.send_signal(signal.SIGSTOP)
    kill(m.pids("takt-actuate")[0])
    reached = dies_of_its_arms(m, "takt-guard")
    m.serve.send_signal(signal.SIGCONT)
    end()
    return reached


def dies_of_its_arms(m, helper):
    with contextlib.suppress(AssertionError):
        kit.until(lambda: m.fate(helper) is not None, "it died", seconds=REACHED_WITHIN_S)
    return m.fate(helper) == signal.SIGKILL


def too_many_lost(record, shims):
    unlucky = [view for view in record.views.values() if view["state"] != "done"]
    if len(unlucky) > shims or any(view["state"] != "lost" for view in unlucky):
        return [f"{shims} shims could die, but these jobs did not get done: {unlucky}"]
    return []


def helper_dies_at(helper, point, nth):
    """Shims pass each point once: there `nth` is which try it is."""
    luck = random.Random(f"{SEED} {point} {nth}")
    of_shim = helper == "takt-shim"
    with machine(armed=True) as m:
        if not of_shim:
            m.arm(helper, f"{point}:{nth}")
        m.start()
        with load(m, luck, pause_s=0.01, calls_off=point == CALLED_OFF) as work:
            if of_shim:
                reached = a_shim_dies_at(m, point)
            else:
                reached = a_guard_dies(m) if helper == "takt-guard" else dies_of_its_arms(m, helper)
            time.sleep(0.2)
        m.disarm(helper)
        record = settle(m, work, ANYBODY if of_shim else ())
        clean(record.violations() + too_many_lost(record, reached if of_shim else 0))
        assert m.serve.poll() is None, "takt itself ended"
        return bool(reached)


def dies_at(process, point, nth):
    begin = time.monotonic()
    reached = takt_dies_at(point, nth) if process == "takt" else helper_dies_at(process, point, nth)
    if reached:
        tried(f"{process} killed at a named place")
    kit.note(f"{point}:{nth} {'reached' if reached else 'not reached'}, "
             f"{time.monotonic() - begin:.1f} s")
    return reached


def every_place_is_some_process_s():
    strangers = [point for point in crash_points() if point.split(".")[0] not in PROCESS_OF]
    assert not strangers, f"whose are these? PROCESS_OF does not say: {strangers}"


def at_every_place_of(process):
    """A case for the points of one process."""
    def case():
        points = [point for point in crash_points() if process_of(point) == process]
        reached = side_by_side([((point, nth), functools.partial(dies_at, process, point, nth))
                                for point in points for nth in passes(point)], MACHINES_AT_ONCE)
        missed = [point for point in points if not any(reached[point, nth] for nth in passes(point))]
        assert points and not missed, f"no trial passed these: {missed}"
    return f"{process}_dies_at_every_place", case


def takt_dies_while_it_recovers():
    points = [point for point in crash_points() if process_of(point) == "takt" and point not in CLEAN_UP]
    reached = side_by_side([(point, functools.partial(takt_dies_at_again, point)) for point in points],
                           MACHINES_AT_ONCE)
    for _ in filter(None, reached.values()):
        tried("takt killed while it recovers")
    assert sum(reached.values()) >= 6, reached


# At random moments.

def a_job(m, luck, killed):
    """Kills the first process of a job, as the kernel does when memory runs out."""
    def running():
        return [view for view in m.client().live() if view["state"] == "running" and view.get("pid")]
    view = luck.choice(kit.until(running, "a job runs"))
    killed.add(view["id"])
    kill(view["pid"])


def a_shim(m, luck, killed):
    (job, _), pid = luck.choice(sorted(kit.until(m.shims, "a shim runs").items()))
    killed.add(job)
    kill(pid)


def strike(m, luck, kind, killed):
    """Kills one process of the kind; whose jobs that met goes into killed."""
    if kind == "takt":
        m.kill()
        time.sleep(luck.uniform(0, 0.1))
        m.start()
    elif kind == "job":
        a_job(m, luck, killed)
    elif kind == "takt-shim":
        a_shim(m, luck, killed)
    else:
        for pid in m.heads(kind):
            kill(pid)


def deaths_on_one_machine(number):
    """(jobs accepted, jobs killed)"""
    luck = random.Random(f"{SEED} deaths {number}")
    killed = set()
    with machine() as m:
        m.start()
        with load(m, luck, pause_s=0.03) as work:
            for death in range(DEATHS_A_MACHINE):
                kit.until(lambda: len(work.accepted) > death, "jobs are accepted")
                time.sleep(luck.uniform(0, 0.25))
                kind = luck.choice(("takt", "takt-launch", "takt-shim", "takt-shim", "takt-actuate",
                                    "takt-guard", "job"))
                strike(m, luck, kind, killed)
                so_far(m, work)
                tried(f"{kind} killed at a random moment")
        ensure_runs(m)
        judge_run(m, work, killed)
        return len(work.accepted), len(killed)


def at_random_moments():
    done = side_by_side([(number, functools.partial(deaths_on_one_machine, number))
                         for number in range(RANDOM_DEATHS // DEATHS_A_MACHINE)], MACHINES_AT_ONCE)
    accepted, killed = (sum(column) for column in zip(*done.values()))
    kit.note(f"{accepted} jobs accepted, {killed} jobs lost their shim or were killed")
    assert accepted > RANDOM_DEATHS and killed > RANDOM_DEATHS / 10, "too little load"


def all_die(number):
    luck = random.Random(f"{SEED} all {number}")
    with machine() as m:
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
        tried("all processes killed at once, but for the jobs")


def everything_dies_at_once():
    """As when a machine's memory runs out, but for the jobs, which go on."""
    side_by_side([(number, functools.partial(all_die, number)) for number in range(20 if LONG else 4)],
                 MACHINES_AT_ONCE)


def the_guard_restores_when_the_actuator_alone_dies():
    """takt is made to hold still, so that it is the guard that restores; then the lease comes back, and
    the gap is said."""
    with kit.machine(gpus=GPUS) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(600_000), gpus=2, clock_ask="ceiling", clock_mhz=900)["id"]
        kit.until(lambda: len(m.locked()) == 2, "its clocks are locked")
        m.serve.send_signal(signal.SIGSTOP)
        kill(m.pids("takt-actuate")[0])
        kit.until(lambda: not m.locked(), "the guard restores", seconds=RESTORED_WITHIN_S)
        m.serve.send_signal(signal.SIGCONT)
        kit.until(lambda: len(m.locked()) == 2, "the lease is applied again")
        kit.until(lambda: "gap" in client.job(job).get("clock_note", ""),
                  lambda: f"the gap is said: {client.job(job)}")
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"
        kit.until(lambda: not m.locked(), "restored at the end of the job", seconds=RESTORED_WITHIN_S)


def the_lease_of_a_job_that_never_started_is_ended():
    """takt dies after it has asked for clocks and before the attempt is on disk: played by hand, since a
    restarted takt would most often ask for the same again."""
    request = struct.Struct("@IIQQQQIIIIIIII96s80s")  # struct takt_actuate_request
    set_clocks, job, ttl_ns = 2, 999, 30_000_000_000
    with kit.machine(gpus=2) as m:
        m.start()
        door = m.path("run/actuate.sock")
        kit.until(lambda: os.path.exists(door), "the actuator listens")
        m.kill()
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as actuate:
            actuate.settimeout(kit.WAIT_S)
            actuate.connect(door)
            actuate.send(request.pack(5, set_clocks, 1, job << 8, job, ttl_ns, 345, 600, 0, 1, 0, 0, 0, 1,
                                      m.boards()[0]["uuid"].encode(), b""))
            kit.until(m.locked, "its clock is locked")
        m.start()
        kit.until(lambda: not m.locked(), lambda: f"restored: {m.locked()}", seconds=RESTORED_WITHIN_S)
        client = m.client()
        view = client.wait(client.submit(m.witness_argv(50), gpus=2, clock_ask="ceiling",
                                         clock_mhz=900)["id"])
        assert (view["state"], view.get("message", "")) == ("done", ""), view


def door_of(m, pid):
    """The socket that a process listens on at its path, as a descriptor of ours."""
    with open("/proc/net/unix", encoding="utf-8") as file:
        doors = {line.split()[6] for line in file if line.rstrip().endswith(m.path("run/launch.sock"))
                 and line.split()[3] == "00010000"}
    number = next(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")
                  if os.readlink(f"/proc/{pid}/fd/{fd}").strip("socket:[]") in doors)
    pidfd = os.pidfd_open(pid)
    copy = ctypes.CDLL(None, use_errno=True).syscall(438, pidfd, number, 0)  # pidfd_getfd
    os.close(pidfd)
    assert copy >= 0, os.strerror(ctypes.get_errno())
    return copy


def a_door_that_outlives_the_launcher_is_not_taken_for_it():
    """As when it dies between making a child and the child's letting go of what it inherited."""
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        kit.until(lambda: m.pids("takt-launch"), "the launcher runs")
        kit.until(lambda: client.wait(client.submit(["true"])["id"])["state"] == "done", "it works")
        (pid,) = m.pids("takt-launch")
        door = door_of(m, pid)
        time.sleep(1.2)  # who dies sooner is started again after a pause
        kill(pid)
        job = client.submit(m.witness_argv(1), gpus=1)["id"]
        time.sleep(0.5)
        os.close(door)
        assert client.wait(job)["state"] == "done", client.job(job)


def the_campaign_can_fail():
    """A record of a good run passes; with any one forged entry it does not."""
    luck = random.Random(SEED + 2)
    with kit.machine(gpus=GPUS) as m:
        m.start()
        with load(m, luck) as work:
            kit.until(lambda: len(m.witness().ends) > 10, "some jobs have run")
        good = settle(m, work)
        assert not good.violations(), good.violations()
        with_gpus = next(e for e in good.witness.ends if e.gpus)
        some = with_gpus.job
        last = max(good.witness.ends, key=lambda end: end.end_ns)

        def forged(change):
            record = settle(m, work)
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

        def an_attempt_that_began_twice(record):
            again = next(b for b in record.witness.begins if b.job == some)
            record.witness.begins.append(again)
            record.repeatable.add(some)

        def a_job_before_its_turn(record):
            record.after[with_gpus.job] = last.job

        def a_job_that_never_ends(record):
            record.views[some] = {**record.views[some], "state": "running"}

        def a_job_lost_for_no_reason(record):
            record.views[some] = {**record.views[some], "state": "lost"}
        for change in (a_busy_gpu, two_on_a_gpu, a_lost_job, a_job_that_takt_forgot_to_run, a_job_that_began_twice,
                       an_attempt_that_began_twice, a_job_before_its_turn, a_job_that_never_ends,
                       a_job_lost_for_no_reason):
            forged(change)
        assert m.stop() == 0
        with contextlib.closing(sqlite3.connect(m.path("state/takt.db"))) as db:
            with db:
                db.execute("INSERT INTO environment VALUES(?, '{}')", (some,))
            assert any("environment" in problem for problem in database_problems(m)), database_problems(m)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with open(m.path("state/takt.db"), "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(b"\xa5" * (size - 4096))
        assert database_problems(m)


def planted(wrong, happens):
    """What is found when takt is killed under load, something is done to its state, and it starts again. The job that
    runs then goes on until it happens."""
    with kit.machine(gpus=GPUS) as m:
        m.start()
        client = m.client()
        runs, end = job_with_a_clock(m, client, gpus=2)
        kit.until(lambda: m.witness().begins, "the job runs")
        waits = client.submit(m.witness_argv(5), gpus=GPUS)["id"]
        m.kill()
        with contextlib.closing(sqlite3.connect(m.path("state/takt.db"))) as db, db:
            wrong(m, db, runs, waits)
        m.start()
        kit.until(lambda: happens(m.witness()), f"{wrong.__name__} has its effect")
        end()
        return settle(m, Submitted([runs, waits]), restored_within_s=5).violations()  # some never are


def forget(m, db, _, waits):
    db.execute("DELETE FROM job WHERE id = ?", (waits,))


def run_again(m, db, runs, _):
    db.execute("UPDATE job SET state = 'waiting', gpu_mask = 0 WHERE id = ?", (runs,))


def hand_out_gpus_in_use(m, db, runs, waits):
    """As if nobody had told takt that the first job runs."""
    db.execute("UPDATE job SET state = 'done' WHERE id = ?", (runs,))


def leave_clocks(m, *_):
    m.twin("fault", "all", "driver-restore-refused")


def what_is_planted_is_found():
    for wrong, happens, mark in ((forget, lambda seen: True, "is not known"),
                                 (run_again, lambda seen: len(seen.begins) > 1, "began 2 times"),
                                 (leave_clocks, lambda seen: True, "left locked"),
                                 (hand_out_gpus_in_use, lambda seen: seen.busy, "in use")):
        found = planted(wrong, happens)
        assert any(mark in violation for violation in found), f"{wrong.__name__} was not found: {found}"
        tried("mistakes planted and found")


def enough_was_tried():
    assert sum(TRIED.values()) >= FEWEST_TRIALS, TRIED


CASES = [every_place_is_some_process_s,
         *map(at_every_place_of, ("takt", "takt-launch", "takt-shim", "takt-actuate", "takt-guard")),
         takt_dies_while_it_recovers, the_guard_restores_when_the_actuator_alone_dies,
         the_lease_of_a_job_that_never_started_is_ended,
         a_door_that_outlives_the_launcher_is_not_taken_for_it, everything_dies_at_once, at_random_moments,
         the_campaign_can_fail,
         what_is_planted_is_found, every_kind_of_job_was_there, enough_was_tried]

if __name__ == "__main__":
    sys.exit(main(CASES))
