#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt doctor on simulated machines: nothing is said against one that is well, at rest and at work, of every board
that there is a capture of; every fault that can be put in has its row, its action and its exit status.

Usage: doctor.py BUILD_FOLDER
"""
import contextlib
import glob
import gzip
import json
import os
import re
import subprocess
import sys

import kit

ALARMS = ("WARNING", "CRITICAL")
MACHINES = ("dgx-a100", "dgx1-v100", "hgx-b200", "hgx-h100", "hgx-h200", "l4-4", "l40s-8", "t4-4", "workstation")
CAPTURES = os.path.join(kit.SOURCE, "tests/twin/captures")


def examine(m, *words):
    """(exit status, findings, actions)"""
    done = m.twin_exec("doctor", "--json", *words)
    assert done.stderr == "", done
    said = json.loads(done.stdout)
    assert said["exit"] == done.returncode, (said["exit"], done.returncode)
    return done.returncode, said["checks"], said["actions"]


def alarms(checks):
    return [check for check in checks if check["verdict"] in ALARMS]


def is_well(m, *words):
    status, checks, actions = examine(m, *words)
    assert not alarms(checks) and not actions and status == 0, (alarms(checks), actions, status)
    return checks


def row(checks, name, gpu):
    """The worst that this check says of the GPU."""
    order = ("PASS", "UNKNOWN", "INFO", "WARNING", "CRITICAL")
    found = [check["verdict"] for check in checks if check["check"] == name and gpu in check["gpus"]]
    assert found, (name, gpu, checks)
    return max(found, key=order.index)


@contextlib.contextmanager
def at_work(m):
    """Long enough for all that a test looks at; it ends with the block."""
    gpus = ",".join(str(gpu["index"]) for gpu in m.boards())
    load = subprocess.Popen([kit.TWIN, "load", "--profile", "gemm", "--gpus", gpus, "--seconds", "3600"],
                            env=m.env(), stdout=subprocess.DEVNULL)
    try:
        kit.until(lambda: all(gpu["processes"] for gpu in m.boards()), "the load has begun")
        yield
    finally:
        load.kill()
        load.wait()


def machines_that_are_well_have_no_alarm():
    for board in MACHINES:
        with kit.machine(board) as m:
            kit.note(board)
            checks = is_well(m)
            assert row(checks, "persistence", 0) == "PASS"


def machines_at_work_have_no_alarm():
    for board in ("hgx-h100", "workstation", "t4-4"):
        with kit.machine(board) as m, at_work(m):
            checks = is_well(m, "--seconds", "2")
            assert row(checks, "pcie-generation", 0) == "PASS", checks
            assert row(checks, "throttle", 0) in ("PASS", "INFO"), checks
            assert row(checks, "clock-lock", 0) == "PASS", checks


def boards_of_captures_have_no_alarm():
    for capture in sorted(glob.glob(os.path.join(CAPTURES, "*.xml.gz"))):
        with kit.machine(gpus=1) as m:
            kit.note(capture)
            with gzip.open(capture) as packed, open(m.path("capture.xml"), "wb") as file:
                file.write(packed.read())
            with open(m.path("board.toml"), "w", encoding="utf-8") as file:
                file.write(m.twin("board", "--from", m.path("capture.xml")))
            with open(m.path("machine.toml"), "w", encoding="ascii") as file:
                file.write('board = "./board.toml"\nbus = [0x41]\nnuma = [0]\ncpus = ["0"]\nnear = "PHB"\n')
            m.twin("destroy", m.path("machine"))
            m.twin("create", m.path("machine.toml"), "--path", m.path("machine"))
            is_well(m)


def what_run_says_to_paste_is_enough():
    """`./run` tells a second terminal where the simulated driver is."""
    with open(os.path.join(kit.SOURCE, "run"), encoding="utf-8") as file:
        text = file.read()
    library, line = (re.search(pattern, text, re.M) for pattern in (r"^\tlibrary=.*", r"^\tdriver=.*"))
    with kit.machine(gpus=2) as m:
        script = f"demo={m.folder}; ln -sf machine {m.folder}/machine.twin; {library[0].strip()}; {line[0].strip()}; " \
                 "eval export $driver; exec takt doctor"
        done = m.run("sh", "-c", f'PATH="{os.path.dirname(kit.TWIN)}:{m.path("bin")}:$PATH"; {script}')
        assert "2 GPU" in done.stdout or "Verdict: PASS" in done.stdout, (done.stdout, done.stderr)
        assert "no NVIDIA driver" not in done.stdout, done.stdout


# fault, board, at work, check, verdict, action, exit status
FAULTS = (
    ("lost", "hgx-h100", False, "gpu-presence", "CRITICAL", "restart the machine", 2),
    ("ecc", "hgx-h100", False, "ecc-errors", "CRITICAL", "reset the GPU when it is idle", 2),
    ("ecc", "hgx-h100", False, "row-remap", "WARNING", "reset the GPU when it is idle", 2),
    ("ecc", "dgx1-v100", False, "retired-pages", "WARNING", "reset the GPU when it is idle", 2),
    ("remap-failed", "hgx-h100", False, "row-remap", "CRITICAL", "have the board replaced", 2),
    ("pcie-width=4", "hgx-h100", False, "pcie-width", "WARNING", "look at the board's seat and slot", 1),
    ("pcie-gen=3", "hgx-h100", True, "pcie-generation", "WARNING", "look at the board's seat and slot", 1),
    ("link-down=4", "hgx-h100", False, "nvlink", "CRITICAL", "reset the GPU when it is idle", 2),
    ("power-brake", "hgx-h100", True, "throttle", "CRITICAL", "look after the power supply", 2),
)


def every_fault_has_its_row():
    for fault, board, works, check, verdict, action, status in FAULTS:
        with kit.machine(board) as m, at_work(m) if works else contextlib.nullcontext():
            kit.note(fault)
            m.twin("fault", "1", fault)
            ended, checks, actions = examine(m)
            assert row(checks, check, 1) == verdict, (fault, checks)
            assert ended == status, (fault, ended, checks)
            assert [todo for todo in actions if todo["action"] == action and 1 in todo["gpus"]], (fault, actions)
            others = [alarm for alarm in alarms(checks) if 0 in alarm["gpus"]]
            assert not others, (fault, others)


def a_process_of_another_pid_namespace_is_not_called_dead():
    """In a container the driver's PIDs say nothing: whoever lives there, nobody is told to reset his GPU."""
    apart = ("unshare", "-p", "-f", "--mount-proc")
    with kit.machine(gpus=1) as m, at_work(m):
        if m.run(*apart, "true").returncode != 0:
            raise kit.Skip("a PID namespace of its own is not allowed here")
        done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", *apart, m.path("bin/takt"), "doctor", "--json",
                     "--socket", m.path("nobody"))
        said = json.loads(done.stdout)
        assert row(said["checks"], "dead-process", 0) == "UNKNOWN" and "PID namespace" in done.stdout, said
        assert not alarms(said["checks"]) and not said["actions"] and done.returncode == 0, said


def a_brake_on_all_is_the_machines_supply():
    with kit.machine("hgx-h100", gpus=2) as m, at_work(m):
        m.twin("fault", "0", "power-brake")
        assert row(examine(m)[1], "power-supply", 0) == "INFO"
        m.twin("fault", "1", "power-brake")
        status, checks, actions = examine(m)
        assert row(checks, "power-supply", 0) == row(checks, "power-supply", 1) == "CRITICAL", checks
        assert status == 2 and any("machine's BMC" in todo.get("how", "") for todo in actions), actions


def what_a_restart_does_is_not_asked_for_beside_it():
    with kit.machine() as m:
        m.twin("fault", "2", "ecc")
        m.twin("fault", "3", "lost")
        _, checks, actions = examine(m)
        assert row(checks, "ecc-errors", 2) == "CRITICAL" and row(checks, "gpu-presence", 3) == "CRITICAL"
        assert [todo["action"] for todo in actions] == ["restart the machine"], actions


def somebodys_lock_is_told_from_takts_own():
    with kit.machine(gpus=2) as m, at_work(m):
        m.start()
        done = m.takt("clock", "set", "--gpus", "0", "1000")
        assert done.returncode == 0, done
        kit.until(lambda: m.locked().get(0), "takt has set the clock")
        _, checks, _ = examine(m, "--socket", m.socket)
        assert row(checks, "clock-lock", 0) == "PASS", checks
        seen = []

        def warns():  # of a GPU that is seen at full load, which it is not in every second
            seen[:] = examine(m, "--socket", m.path("nobody"))
            return row(seen[1], "clock-lock", 0) == "WARNING"
        kit.until(warns, lambda: seen)
        assert [todo["gpus"] for todo in seen[2] if "clocks" in todo["action"]] == [[0]], seen


def a_machine_without_a_driver_is_not_judged():
    with kit.machine(gpus=1) as m:
        done = m.run(m.path("bin/takt"), "doctor", "--nvml-path", m.path("none"), "--root", m.path("jobs"))
        assert done.returncode == 3 and "UNKNOWN" in done.stdout, done
        os.makedirs(m.path("root/sys/bus/pci/devices/0000:41:00.0"))
        for name, text in (("vendor", "0x10de"), ("class", "0x030200")):
            with open(m.path("root/sys/bus/pci/devices/0000:41:00.0/" + name), "w", encoding="ascii") as file:
                file.write(text + "\n")
        done = m.run(m.path("bin/takt"), "doctor", "--nvml-path", kit.TWIN_LIB, "--root", m.path("root"))
        assert done.returncode == 2 and "kernel module is not loaded" in done.stdout, done


def a_library_that_a_service_does_not_find_is_told():
    """The caller's LD_LIBRARY_PATH leads to it, which a service does not have; not so where the loader knows it anyway."""
    with kit.machine(gpus=1) as m:
        root = m.path("root")
        os.makedirs(root + "/etc")

        def told(*words):
            checks = is_well(m, "--root", root, *words)
            return [check["evidence"] for check in checks if check["check"] == "driver" and "nvml_path" in check["evidence"]]
        assert [text for text in told() if text.endswith(kit.TWIN_LIB)], told()
        assert not told("--nvml-path", kit.TWIN_LIB)
        with open(root + "/etc/ld.so.cache", "wb") as file:
            file.write(b"\0libnvidia-ml.so.1\0/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1\0")
        assert not told()


def the_report_is_readable():
    with kit.machine() as m:
        m.twin("fault", "1", "link-down=4")
        done = m.twin_exec("doctor")
        lines = done.stdout.splitlines()
        assert lines[0].startswith("SIMULATED"), lines
        assert any(line.split()[:4] == ["CRITICAL", "nvlink", "GPU", "1"] for line in lines), lines
        assert lines[-1] == "Verdict: CRITICAL" and "  1. " in done.stdout, lines
        assert "exit status" in m.takt("doctor", "--help").stdout.lower()
        assert m.takt("doctor", "--seconds", "0").returncode == 64


if __name__ == "__main__":
    sys.exit(kit.main([
        machines_that_are_well_have_no_alarm,
        machines_at_work_have_no_alarm,
        boards_of_captures_have_no_alarm, what_run_says_to_paste_is_enough,
        every_fault_has_its_row,
        a_process_of_another_pid_namespace_is_not_called_dead,
        a_brake_on_all_is_the_machines_supply,
        what_a_restart_does_is_not_asked_for_beside_it,
        somebodys_lock_is_told_from_takts_own,
        a_machine_without_a_driver_is_not_judged,
        a_library_that_a_service_does_not_find_is_told,
        the_report_is_readable,
    ]))
