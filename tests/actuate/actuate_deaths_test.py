#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Actuator and guard are killed at each named place and at random moments; no GPU is left changed.

Usage: actuate_deaths_test.py TAKT_ACTUATE TAKT_GUARD TAKT_TWIN LIBNVIDIA_ML SOURCE_FOLDER
The environment variable TAKT_DEATHS says how many random deaths there are (default 30).
"""
import contextlib
import functools
import glob
import os
import random
import re
import signal
import sys
import time

from actuate_rig import CLEAN, CPU, END, MIG, REFUSED, RENEW, RESET, SET, WAIT_S, main, restored, rig, until
from side_by_side import side_by_side

# Those of takt-actuate --declare are reached in actuate_process_test.py.
POINT = re.compile(r'takt_crash_point\(\s*"(actuate\.[^"]+)"')
DEATHS = int(os.environ.get("TAKT_DEATHS", "30"))
RIGS_AT_ONCE = 6
GUARD = "actuate.guard_"


def crash_points():
    found = []
    for path in sorted(glob.glob(os.path.join(sys.argv[5], "*.c"))):
        with open(path, encoding="utf-8") as file:
            found += POINT.findall(file.read())
    return found


def at_each(points, trial):
    """The points for which the trial is true."""
    reached = side_by_side([(point, functools.partial(trial, point)) for point in points], RIGS_AT_ONCE)
    return {point for point, was_reached in reached.items() if was_reached}


def a_day_of_work(client, uuids):
    """Sets, changes, renews, ends and resets; the actuator may die in any of them."""
    for gpu in (0, 1):
        client.ask(SET, 10 + gpu, uuids[gpu], high=900, power_w=400 * gpu)
    client.ask(SET, 10, uuids[0], high=600, power_w=300)
    client.ask(CPU, high=2000)
    client.ask(RENEW)
    client.ask(MIG, uuid=uuids[1], mig="3g.40gb,1g.10gb")
    client.ask(END, 10)
    client.ask(SET, 20, uuids[0], high=1200, mem=10_000)
    client.ask(CPU, high=0)
    client.ask(END, 11)
    client.ask(MIG, uuid=uuids[1])
    client.ask(MIG, uuid=uuids[1], mig="7g.80gb")
    client.ask(RESET)


def work_until_death(m, actuator):
    with contextlib.suppress(ConnectionResetError, BrokenPipeError, AssertionError):
        client = m.connect(actuator)
        a_day_of_work(client, m.uuids)


def dies(actuator):
    """Whether it dies at its point at the latest when it is told to end."""
    actuator.terminate()
    code = actuator.wait(WAIT_S)
    assert code in (0, -signal.SIGKILL), code
    return code != 0


def all_well(m):
    """A new actuator finds every GPU at its baseline, and works."""
    client = m.connect(m.start())
    for gpu, uuid in enumerate(m.uuids):
        assert client.status(gpu)["gpu_state"] == CLEAN
        assert client.ask(SET, 90 + gpu, uuid)["rc"] == 0
        assert client.ask(END, 90 + gpu)["rc"] == 0
    assert m.locked() == {}


def leave_changed(m):
    """Actuator and guard killed at once: the one hole."""
    actuator = m.start()
    client = m.connect()
    for gpu in (0, 1):
        assert client.ask(SET, 10 + gpu, m.uuids[gpu], power_w=300)["rc"] == 0
    until(lambda: client.ask(CPU, high=2000)["rc"] == 0, "CPUs are limited")
    assert client.ask(MIG, uuid=m.uuids[1], mig="3g.40gb,1g.10gb")["rc"] == 0
    (guard,) = m.guards()
    for pid in (actuator.pid, guard):
        os.kill(pid, signal.SIGSTOP)  # neither sees the other go
    for pid in (guard, actuator.pid):
        os.kill(pid, signal.SIGKILL)
    actuator.wait()
    until(lambda: not m.guards(), "both dead")
    assert set(m.locked()) == {0, 1} and m.instances() == {1: 2}


def the_actuator_dies_at(point):
    """At passes of the point, as many as there are in a day of work; whether there was one."""
    for nth in (1, 2, 3, 7):
        with rig(mig=1) as m:
            actuator = m.spawn(crash=f"{point}:{nth}", guard=m.guard_script(""))
            work_until_death(m, actuator)
            if not dies(actuator):
                return nth > 1
            restored(m)
            until(lambda: not m.guards(), "the guard is done")
            all_well(m)
    return True


def the_actuator_dies_at_each_point_and_the_guard_restores():
    points = {point for point in crash_points() if not point.startswith(GUARD)}
    missed = points - at_each(sorted(points), the_actuator_dies_at)
    assert points and not missed, f"never reached: {missed}"


def the_guard_dies_at(point):
    """Whether it left something to do."""
    with rig(mig=1) as m:
        actuator = m.start(guard=m.guard_script(f"TAKT_CRASH_AT={point}"))
        client = m.connect()
        for gpu in (0, 1):
            client.ask(SET, 10 + gpu, m.uuids[gpu], power_w=300)
        client.ask(CPU, high=2000)
        client.ask(MIG, uuid=m.uuids[1], mig="7g.80gb")
        m.kill(actuator)
        until(lambda: not m.guards(), "the guard is gone")
        left = m.locked()
        m.start()
        restored(m)
        for gpu in left:
            assert f"{m.uuids[gpu]}: was left at" in m.said(), m.said()
        return bool(left)


def the_guard_dies_at_each_point_and_the_next_start_repairs():
    reached = at_each(crash_points(), the_guard_dies_at)
    assert {"actuate.guard_woken", "actuate.guard_locked", "actuate.guard_began",
            "actuate.restore_begin"} <= reached, reached


def both_die_at_once_and_the_next_start_repairs_and_says_so():
    with rig(mig=1) as m:
        leave_changed(m)
        m.start()
        restored(m)
        for uuid in m.uuids:
            assert f"{uuid}: was left at [" in m.said(), m.said()
        all_well_after = m.connect()
        assert all_well_after.status(0)["gpu_state"] == CLEAN


def the_repairing_start_dies_at(point):
    with rig(mig=1) as m:
        leave_changed(m)
        actuator = m.spawn(crash=point)  # and its guard dies there, too
        until(lambda: actuator.poll() is not None or not m.locked(), "died or repaired")
        reached = dies(actuator)
        m.start()
        restored(m)
        return reached


def the_repairing_start_dies_at_each_point_and_the_next_one_repairs():
    reached = at_each(crash_points(), the_repairing_start_dies_at)
    assert {"actuate.restore_begin"} <= reached, reached


def a_guard_that_is_refused_goes_on_and_leaves_to_a_new_actuator():
    with rig() as m:
        actuator = m.start()
        assert m.connect().ask(SET, 10, m.uuids[0])["rc"] == 0
        m.fault(0, "driver-restore-refused")
        m.kill(actuator)
        until(lambda: REFUSED in m.said(), "the guard tries")
        assert m.locked() and len(m.guards()) == 1
        (old,) = m.guards()
        client = m.connect(m.start())  # it takes over between two tries of the guard
        until(lambda: old not in m.guards(), "the old guard leaves")
        assert client.ask(SET, 20, m.uuids[1])["rc"] == 0
        m.fault(0)
        until(lambda: list(m.locked()) == [1], "GPU 0 restored")


def a_guard_that_is_refused_restores_when_it_can():
    with rig() as m:
        actuator = m.start()
        assert m.connect().ask(SET, 10, m.uuids[0])["rc"] == 0
        m.fault(0, "driver-restore-refused")
        m.kill(actuator)
        until(lambda: REFUSED in m.said(), "the guard tries")
        assert m.locked()
        m.fault(0)
        restored(m)
        until(lambda: not m.guards(), "the guard is done")


def a_gpu_that_hangs_when_the_actuator_dies_is_restored_when_it_answers():
    with rig() as m:
        actuator = m.start()
        client = m.connect()
        for gpu in (0, 1):
            assert client.ask(SET, 10 + gpu, m.uuids[gpu])["rc"] == 0
        m.fault(0, "hang")
        m.kill(actuator)
        until(lambda: list(m.locked()) == [0], "the other one is restored")
        m.fault(0)
        restored(m)


def deaths_of_one_rig(number):
    luck = random.Random(f"20261120 {number}")
    with rig(4, mig=3) as m:
        m.fault("all", "slow=2")
        for death in range(DEATHS // RIGS_AT_ONCE):
            both = death % 5 == 4
            actuator = m.start()
            client = m.connect()
            end = time.monotonic() + luck.uniform(0, 0.12)
            turn = 0
            while time.monotonic() < end:
                turn += 1
                gpu = luck.randrange(4)
                lease = 1000 * death + 10 * turn
                try:
                    client.send(SET, lease, m.uuids[gpu], job=gpu, high=luck.randrange(300, 1900),
                                power_w=luck.choice((0, 0, 300, 400)), mem=luck.choice((0, 10_000)))
                    if luck.random() < 0.2:
                        client.send(CPU, high=luck.choice((0, 1500, 2500)))
                    if luck.random() < 0.2:
                        client.send(MIG, uuid=m.uuids[3], mig=luck.choice(("", "none", "3g.40gb", "1g.10gb,1g.10gb")))
                    if luck.random() < 0.5:
                        client.send(END, lease)
                except (ConnectionResetError, BrokenPipeError):
                    # Seen once under load; whatever reset it, an actuator must answer again.
                    client = m.connect()
                time.sleep(luck.uniform(0, 0.01))
            if both:
                m.kill_guards()
            m.kill(actuator)
            if both:
                m.start()
            restored(m)
            if both:
                m.started[-1].terminate()
                assert m.started[-1].wait(WAIT_S) == 0
                restored(m)


def deaths_at_random_moments_leave_nothing_changed():
    side_by_side([(number, functools.partial(deaths_of_one_rig, number)) for number in range(RIGS_AT_ONCE)],
                 RIGS_AT_ONCE)


TESTS = [
    the_actuator_dies_at_each_point_and_the_guard_restores,
    the_guard_dies_at_each_point_and_the_next_start_repairs,
    both_die_at_once_and_the_next_start_repairs_and_says_so,
    the_repairing_start_dies_at_each_point_and_the_next_one_repairs,
    a_guard_that_is_refused_goes_on_and_leaves_to_a_new_actuator,
    a_guard_that_is_refused_restores_when_it_can,
    a_gpu_that_hangs_when_the_actuator_dies_is_restored_when_it_answers,
    deaths_at_random_moments_leave_nothing_changed,
]

if __name__ == "__main__":
    sys.exit(main(TESTS))
