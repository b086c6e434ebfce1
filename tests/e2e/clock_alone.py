#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt clock apply and restore where no takt serve runs, as a unit does at boot and at stop; and each of its
processes killed at it.

The boards are the witness: what `takt-twin state` says of locks and limits, whatever takt says.

Usage: clock_alone.py BUILD_FOLDER
"""
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import kit

POLICY = """[[gpu]]
power_w = 500

[[gpu]]
uuid = "%s"
sm_mhz = [345, 1200]
"""
STANDS = {1: (345, 1200)}, {0: 500}
# Every step of the actuator that declares, and of its guard when it has died.
POINTS = ("declare.kept", "actuate.epoch_raised", "actuate.restore_begin", "actuate.journal_written",
          "actuate.journal_synced", "actuate.restore_done", "actuate.restore_recorded")
GUARD_POINTS = ("actuate.guard_woken", "actuate.guard_locked", "actuate.guard_began", "actuate.guard_opened",
                "actuate.restore_begin", "actuate.restore_done")


def write(m, name, text):
    with open(m.path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return m.path(name)


def policy(m, text=None):
    return write(m, "clocks.toml", POLICY % m.boards()[1]["uuid"] if text is None else text)


def words(m, *more):
    config = write(m, "takt.conf", f"runtime_dir = {m.path('run')}\nstate_dir = {m.path('state')}\n"
                                   f"lock_dir = {m.path('locks')}\n")
    return ("clock", *more, "--config", config)


def do(m, *more, status=0):
    done = m.twin_exec(*words(m, *more))
    assert status is None or done.returncode == status, done
    return done.stdout + done.stderr


def begin(m, *more):
    """The command, not waited for."""
    return subprocess.Popen([kit.TWIN, "exec", "--machine", m.path("machine"), "--", m.path("bin/takt"), *words(m, *more)],
                            env=m.env(), stdout=m.log, stderr=m.log)


def limits(m):
    """{GPU: W} of the power limits that are not the boards' own."""
    return {gpu["index"]: gpu["limit_mw"] // 1000 for gpu in m.boards()
            if gpu["limit_mw"] != gpu["default_limit_mw"]}


def held(m):
    return m.locked(), limits(m)


def alone(m):
    """Nobody of takt is left."""
    kit.until(lambda: not m.processes(), m.processes)


def a_policy_stands_and_is_taken_back():
    with kit.machine(gpus=2) as m:
        dry = do(m, "apply", "--file", policy(m), "--dry-run")
        assert "2 of 2 GPUs would change" in dry and "-lgc 345,1200" in dry and held(m) == ({}, {}), dry
        said = do(m, "apply", "--file", policy(m))
        assert held(m) == STANDS and "2 of 2 GPUs changed" in said and "no takt serve answers" in said, (said, held(m))
        assert "GPU 1: declared to stand at 345-1200 MHz" in said, said
        alone(m)
        assert held(m) == STANDS
        again = json.loads(m.twin_exec(*words(m, "apply", "--file", policy(m), "--json")).stdout)
        assert again["gpus"][1]["base_max_mhz"] == 1200 and again["gpus"][0]["base_power_mw"] == 500_000, again
        m.start()  # which goes on from there
        kit.until(lambda: "declared to stand at 345-1200 MHz" in m.takt("clock").stdout, lambda: m.takt("clock"))
        kit.until(lambda: all(g["clock_state"] == "clean" for g in m.client().status()["gpus"]), m.said)
        assert m.stop() == 0 and held(m) == STANDS
        alone(m)
        do(m, "restore")
        assert held(m) == ({}, {}), held(m)
        alone(m)
        assert held(m) == ({}, {}), held(m)
        do(m, "restore")  # nothing to take back is no error
        assert "no takt" in m.takt("clock", "restore").stderr  # the one that $TAKT_SOCKET names


def a_wrong_policy_changes_nothing():
    with kit.machine(gpus=2) as m:
        for text, status, says in (("[[gpu]]\npower_w = 5\n", 64, "line 1, GPU 0: 'power_w' 5 W"), ("[[gpu", 65, "line 1")):
            said = do(m, "apply", "--file", policy(m, text), status=status)
            assert says in said and held(m) == ({}, {}), said
        do(m, "apply", "--file", m.path("none"), status=66)
        alone(m)
        assert not os.path.exists(m.path("run/clocks.declared"))


def what_a_board_refuses_is_taken_back_on_the_others():
    with kit.machine(gpus=3) as m:
        do(m, "apply", "--file", policy(m))
        before = held(m)
        m.twin("fault", "2", "permission")
        said = do(m, "apply", "--file", policy(m, "[[gpu]]\nsm_mhz = [345, 900]\n"), status=77)
        assert f"nvidia-smi -i {m.boards()[2]['uuid']} -lgc 345,900" in said, said
        assert held(m) == before, held(m)
        m.twin("fault", "2", "none")
        alone(m)
        do(m, "restore")
        assert held(m) == ({}, {}), held(m)


def what_cannot_be_put_back_is_tried_again():
    with kit.machine(gpus=2) as m:
        do(m, "apply", "--file", policy(m, "[[gpu]]\nsm_mhz = [345, 1200]\n"))
        m.twin("fault", "1", "driver-restore-refused")
        said = do(m, "restore", status=75)
        assert "GPU 1 is not at its baseline, takt goes on trying" in said and list(m.locked()) == [1], said
        m.twin("fault", "1", "none")
        kit.until(lambda: not m.locked(), m.locked)
        alone(m)


def whoever_dies_nothing_is_left():
    with kit.machine(gpus=2, armed=True) as m:
        died = 0
        for helper, points in (("takt-actuate", POINTS), ("takt-guard", GUARD_POINTS)):
            for point in points:
                for action in (("apply", "--file", policy(m)), ("restore",)):
                    m.arm(helper, point)
                    said = do(m, *action)  # it was done again, and stands
                    died += m.fate(helper) == signal.SIGKILL
                    assert held(m) == (STANDS if action[0] == "apply" else ({}, {})), (helper, point, action, said, held(m))
                    alone(m)
                    m.disarm(helper)
                    m.forget_fate(helper)
        assert died or not crash_points(), "nobody died"
        assert died == 0 or died >= 2 * len(POINTS), died


def crash_points():
    with open(os.path.join(kit.BUILD, "src/daemon/takt-actuate"), "rb") as file:
        return b"TAKT_CRASH_AT" in file.read()


def killed_at_any_moment_it_is_taken_back():
    draw = random.Random(7)
    with kit.machine(gpus=2) as m:
        path = policy(m)
        for round_ in range(12):
            command = begin(m, "apply", "--file", path)
            time.sleep(draw.uniform(0, 0.5))
            who = draw.choice((("takt",), ("takt", "takt-actuate"), ("takt", "takt-actuate", "takt-guard"), ("takt-guard",)))
            for kind in who:
                for pid in m.pids(kind):
                    with contextlib.suppress(ProcessLookupError):  # it may end meanwhile
                        os.kill(pid, signal.SIGKILL)
            command.wait(kit.WAIT_S)
            kit.until(lambda: not m.pids("takt-actuate"), m.processes)
            do(m, "restore")
            assert held(m) == ({}, {}), (round_, who, held(m))
            alone(m)


def an_actuator_that_outlived_its_daemon_is_asked():
    with kit.machine(gpus=2) as m:
        m.start()
        kit.until(lambda: all(g["clock_state"] == "clean" for g in m.client().status()["gpus"]), m.said)
        m.kill()
        (actuator,) = m.pids("takt-actuate")
        do(m, "apply", "--file", policy(m))
        assert held(m) == STANDS and m.pids("takt-actuate") == [actuator], held(m)
        m.twin("fault", "1", "permission")
        do(m, "apply", "--file", policy(m, "[[gpu]]\nsm_mhz = [345, 900]\n"), status=77)
        kit.until(lambda: held(m) == STANDS, lambda: held(m))
        m.twin("fault", "1", "none")
        m.start()
        kit.until(lambda: "declared to stand at 345-1200 MHz" in m.takt("clock").stdout, lambda: m.takt("clock"))
        do(m, "restore")  # the daemon is asked again: its socket is where the configuration says
        kit.until(lambda: held(m) == ({}, {}), lambda: held(m))


def a_daemon_hears_of_what_was_declared_beside_it():
    with kit.machine(gpus=2) as m:
        m.start()
        uuid = m.boards()[1]["uuid"]
        write(m, "run/clocks.declared", f"{uuid} reset mig 3g.40gb,3g.40gb\n")
        kit.until(lambda: m.client().ask("GET", "/v1/clocks")["gpus"][1].get("base_mig") == "3g.40gb,3g.40gb",
                  lambda: m.client().ask("GET", "/v1/clocks"))


def gpus_of_another_are_left_alone():
    with kit.machine(gpus=2) as m:
        m.start()
        kit.until(lambda: all(g["clock_state"] == "clean" for g in m.client().status()["gpus"]), m.said)
        said = do(m, "apply", "--file", policy(m), "--socket", m.path("nobody"), status=75)
        assert f"GPU 0 is managed by takt (pid {m.pids('takt')[0]}, user root)" in said and held(m) == ({}, {}), said


@kit.plain
def instances_are_cut_where_no_job_runs():
    with kit.machine(gpus=2) as m:
        done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", sys.executable, "-c", MIG_MODE)
        assert done.returncode == 0, done
        text = f'[[gpu]]\nuuid = "{m.boards()[1]["uuid"]}"\nmig = "%s"\n'
        do(m, "apply", "--file", policy(m, text % "3g.40gb,3g.40gb"))
        assert len(m.boards()[1]["mig_devices"]) == 2, m.boards()[1]
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(60_000), gpus=1, mig="3g.40gb")["id"]
        kit.until(lambda: m.witness().begins, client.live)
        m.kill()
        said = do(m, "apply", "--file", policy(m, text % "none"), status=75)
        assert "only takt serve knows" in said and len(m.boards()[1]["mig_devices"]) == 2, said
        m.start()
        client = m.client()
        client.cancel(job)
        client.wait(job)
        m.stop()
        alone(m)
        do(m, "apply", "--file", policy(m, text % "none"))
        assert not m.boards()[1]["mig_devices"], m.boards()[1]


MIG_MODE = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
gpu, did = ctypes.c_void_p(), ctypes.c_int()
assert not any((nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(gpu)),
                nvml.nvmlDeviceSetMigMode(gpu, 1, ctypes.byref(did))))
"""


if __name__ == "__main__":
    sys.exit(kit.main([
        a_policy_stands_and_is_taken_back, a_wrong_policy_changes_nothing,
        what_a_board_refuses_is_taken_back_on_the_others, what_cannot_be_put_back_is_tried_again,
        whoever_dies_nothing_is_left, killed_at_any_moment_it_is_taken_back,
        an_actuator_that_outlived_its_daemon_is_asked, a_daemon_hears_of_what_was_declared_beside_it,
        gpus_of_another_are_left_alone,
        instances_are_cut_where_no_job_runs,
    ]))
