#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The health of GPUs as users see it: what the simulated driver breaks is found, told with its evidence, and keeps jobs
away for as long as it stands; a healthy machine is told to be one.

Usage: health.py BUILD_FOLDER
"""
import contextlib
import functools
import json
import os
import re
import sqlite3
import sys

import kit

XID = "NVRM: Xid (PCI:{}): {}, pid=4711, name=secret.py, {}\n"


def health(m, index=None):
    view = json.loads(m.takt("health", "--json").stdout)
    return view if index is None else view["gpus"][index]


def is_in(m, index, state):
    return lambda: health(m, index)["state"] == state


def log_of(m):
    """A file that stands for the kernel's log, empty."""
    path = m.path("kernel.log")
    open(path, "w", encoding="utf-8").close()
    return path


def say(path, line):
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)


def bus_id(m, index):
    return m.client().status()["gpus"][index]["pci_bus_id"].lower()[4:]


def stored(m):
    """The changes on disk."""
    with contextlib.closing(sqlite3.connect(f"file:{m.path('state/takt.db')}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT text FROM kept WHERE key LIKE 'health/%'").fetchall()
    return json.loads(rows[0][0])["changes"] if rows else []


def a_healthy_machine_is_told_to_be_one():
    with kit.machine(gpus=3) as m:
        m.start()
        client = m.client()
        kit.until(lambda: not health(m).get("events_why"), lambda: health(m))
        job = client.submit(m.load_argv("--seconds", "4", "--quiet"), gpus=2)["id"]
        assert client.wait(job)["state"] == "done"
        view = health(m)
        assert [gpu["state"] for gpu in view["gpus"]] == ["healthy"] * 3, view
        assert not [gpu for gpu in view["gpus"] if gpu.get("findings") or gpu.get("changes")], view
        assert view["simulated"] and "not this kernel's" in view["kernel_log_why"], view
        shown = m.takt("health").stdout
        assert shown.count("healthy") == 3 and "the kernel's log is not read" in shown, shown
        status = client.status()
        assert [gpu["health"] for gpu in status["gpus"]] == ["healthy"] * 3, status
        assert not [gpu for gpu in status["gpus"] if gpu.get("health_note")], status


def stays_healthy_under_load(board):
    """An hour a minute, at full load and at rest."""
    with kit.machine(board=board) as m:
        m.start()
        client = m.client()
        gpus = len(client.status()["gpus"])
        m.twin("time", "--speed", "60")
        job = client.submit(m.load_argv("--seconds", "500", "--quiet"), gpus=gpus)["id"]
        assert client.wait(job)["state"] == "done", client.job(job)
        bad = [gpu for gpu in health(m)["gpus"] if gpu["state"] != "healthy" or gpu.get("changes")]
        assert not bad, (board, bad)


HEALTHY = [(f"a_healthy_{board}_stays_so_under_load", functools.partial(stays_healthy_under_load, board))
           for board in ("dgx-a100", "dgx1-v100", "hgx-b200", "l40s-8", "t4-4", "workstation")]


def a_critical_xid_keeps_jobs_away_until_somebody_has_looked():
    """This driver does not say when all is well again: nothing but a person can."""
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        kit.until(lambda: not health(m).get("events_why"), lambda: health(m))
        m.twin("fault", "1", "xid=64")
        kit.until(is_in(m, 1, "quarantined"), lambda: health(m))
        assert health(m, 0)["state"] == "healthy", health(m)
        found = health(m, 1)["findings"][0]
        assert (found["finding"], found["level"], found["action"]) == ("xid", "critical", "replace"), found
        assert "XID 64" in found["text"] and health(m, 1)["xids"][0]["count"] == 1, health(m, 1)
        kit.until(lambda: client.status()["gpus"][1]["state"] == "quarantined", client.status)
        wide = client.submit(["true"], gpus=2)["id"]
        kit.until(lambda: client.job(wide).get("why") == "unhealthy", lambda: client.job(wide))
        assert "XID 64" in m.takt("explain", str(wide)).stdout, m.takt("explain", str(wide))
        assert "XID 64" in m.takt("status").stdout and "XID 64" in m.takt("gpu").stdout
        assert client.wait(client.submit(["true"], gpus=1)["id"])["gpu_list"] == [0]
        m.kill()
        m.start()
        client = m.client()
        assert client.status()["gpus"][1]["state"] == "quarantined", client.status()
        assert "takt gpu resume" in health(m, 1)["note"], health(m, 1)
        assert m.takt("gpu", "resume", "1").returncode == 0
        assert client.wait(wide)["state"] == "done"
        assert health(m, 1)["state"] == "healthy" and "note" not in health(m, 1), health(m, 1)


def what_is_resumed_is_well_until_it_happens_again():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        kit.until(lambda: not health(m).get("events_why"), lambda: health(m))
        for _ in range(2):
            m.twin("fault", "0", "xid=74")
            kit.until(is_in(m, 0, "quarantined"), lambda: health(m))
            kit.until(lambda: m.takt("gpu", "resume", "0").returncode == 0, lambda: m.takt("gpu"))
            kit.until(is_in(m, 0, "healthy"), lambda: health(m))
        changes = health(m, 0)["changes"]
        assert [change["to"] for change in changes] == ["healthy", "quarantined"] * 2, changes
        assert client.wait(client.submit(["true"], gpus=1)["id"])["state"] == "done"


def what_happened_is_told_by_the_next_takt_too():
    """However the one before it ended; each GPU its own."""
    with kit.machine(gpus=2) as m:
        log = log_of(m)
        m.start("--kernel-log", log)
        for turn, end in enumerate((m.kill, m.stop)):
            before = health(m, 1).get("changes", [])
            assert len(before) == 2 * turn, before
            say(log, XID.format(bus_id(m, 1)[:-2], 74, "NVLink"))
            kit.until(is_in(m, 1, "quarantined"), lambda: health(m))
            kit.until(lambda: m.takt("gpu", "resume", "1").returncode == 0, lambda: m.takt("gpu"))
            kit.until(is_in(m, 1, "healthy"), lambda: health(m))
            told = health(m, 1)["changes"]
            assert [change["to"] for change in told[:2]] == ["healthy", "quarantined"] and told[2:] == before, told
            kit.until(lambda told=told: stored(m) == told, lambda: stored(m))
            end()
            m.start("--kernel-log", log)
            assert health(m, 1)["changes"] == told and not health(m, 0).get("changes"), health(m)
        shown = m.takt("health").stdout
        assert shown.count("quarantined, was healthy: xid") == 2, shown


def a_programs_fault_is_its_own():
    with kit.machine(gpus=1) as m:
        log = log_of(m)
        m.start("--kernel-log", log)
        kit.until(lambda: not health(m).get("events_why"), lambda: health(m))
        assert "kernel_log_why" not in health(m), health(m)
        # Told by the driver and by the log: once.
        m.twin("fault", "0", "xid=31")
        say(log, XID.format(bus_id(m, 0)[:-2], 31, "MMU Fault"))
        kit.until(lambda: health(m, 0).get("xids"), lambda: health(m))
        kit.until(lambda: health(m, 0).get("findings"), lambda: health(m))
        assert health(m, 0)["state"] == "healthy" and health(m, 0)["xids"][0]["count"] == 1, health(m)
        shown = health(m, 0)["findings"][0]
        assert (shown["level"], shown["action"]) == ("info", "restart-app"), shown
        kit.until(lambda: ("secret.py" in health(m, 0)["findings"][0]["text"]) == (os.getuid() == 0),
                  lambda: health(m))
        # The same fault in another program speaks against the GPU.
        say(log, XID.format(bus_id(m, 0)[:-2], 31, "MMU Fault").replace("secret", "other"))
        kit.until(is_in(m, 0, "suspect"), lambda: health(m))
        client = m.client()
        assert client.wait(client.submit(["true"], gpus=1)["id"])["state"] == "done"
        assert "is suspect" in m.takt("status").stdout, m.takt("status")


def errors_of_switches_are_listed_and_keep_no_gpu_from_jobs():
    with kit.machine(gpus=1) as m:
        log = log_of(m)
        m.start("--kernel-log", log)
        for _ in range(2):
            say(log, "nvidia-nvswitch0: SXid (PCI:0000:c5:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n")
        say(log, "4,9,9,-;nvidia-nvswitch1: SXid (PCI:0000:c6:00.0): 12028, Non-fatal, Link 7 egress non-posted PRIV error\n")
        kit.until(lambda: len(health(m).get("sxids", [])) == 2, lambda: health(m))
        assert [[sxid["pci"], sxid["sxid"], sxid["count"], sxid.get("fatal", False), sxid["link"]]
                for sxid in health(m)["sxids"]] == [["0000:c6:00", 12028, 1, False, 7], ["0000:c5:00", 20034, 2, True, 30]], \
            health(m)
        shown = m.takt("health").stdout
        assert "0000:c5:00: SXid 20034 of link 30, fatal, 2 times" in shown, shown
        client = m.client()
        assert health(m, 0)["state"] == "healthy" and client.wait(client.submit(["true"], gpus=1)["id"])["state"] == "done"


def the_kernels_log_is_heard_and_nobody_elses_words():
    with kit.machine(gpus=2) as m:
        log = log_of(m)
        say(log, "NVRM: GPU " + "0000:18:00.0: GPU has fallen off the bus.\n")  # before takt was there
        m.start("--kernel-log", log)
        where = bus_id(m, 1)
        say(log, "12,7,7,-;NVRM: Xid (PCI:{}): 79, GPU has fallen off the bus.\n".format(where))
        say(log, "EXT4-fs (md0): re-mounted r/w. Quota mode: none.\n")
        say(log, XID.format("0000:ff:1f", 79, "GPU has fallen off the bus."))
        say(log, f"NVRM: GPU {where}: GPU has fallen off the bus.\n")
        kit.until(is_in(m, 1, "lost"), lambda: health(m))
        assert health(m, 0)["state"] == "healthy" and health(m, 1)["xids"][0]["count"] == 1, health(m)
        kit.until(lambda: m.client().status()["gpus"][1]["state"] == "quarantined", m.client().status)
        say(log, "4,9,9,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build\n")
        kit.until(is_in(m, 1, "healthy"), lambda: health(m))
        kit.until(lambda: m.client().status()["gpus"][1]["state"] == "free", m.client().status)
        # It answers, and somebody has looked at it.
        say(log, f"NVRM: GPU {where}: GPU has fallen off the bus.\n")
        kit.until(lambda: m.client().status()["gpus"][1]["state"] == "quarantined", m.client().status)
        done = m.takt("gpu", "resume", "1")
        assert done.returncode == 0, done
        kit.until(is_in(m, 1, "healthy"), lambda: health(m))
        kit.until(lambda: m.client().status()["gpus"][1]["state"] == "free", m.client().status)


def what_is_slow_is_suspect_and_works():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        busy = client.submit(m.load_argv("--seconds", "600", "--quiet"), gpus=2)["id"]
        kit.until(lambda: m.boards()[1]["processes"], "it computes")
        m.twin("fault", "1", "power-brake")
        kit.until(is_in(m, 1, "suspect"), lambda: health(m))
        assert health(m, 0)["state"] == "healthy", health(m)
        shown = m.takt("show", str(busy)).stdout
        assert "GPU 1 is suspect: power brake" in shown, shown
        client.cancel(busy)
        found = health(m, 1)["findings"][0]
        assert (found["finding"], found["action"]) == ("power-brake", "check-power"), found
        job = client.wait(client.submit(["true"], gpus=2)["id"])
        assert job["state"] == "done", job


# What the simulated driver can break: a finding that must be there, the first action, the state.
FAULTS = (
    ("ecc", "xid", "reset-gpu", "quarantined"),
    ("remap-failed", "xid", "replace", "quarantined"),
    ("link-down=0", "xid", "check-nvlink", "quarantined"),
    ("power-brake", "power-brake", "check-power", "suspect"),
    ("pcie-width=4", "pcie-width", "check-pcie", "suspect"),
    ("pcie-gen=1", "pcie-gen", "check-pcie", "suspect"),
)


def found_first(gpu):
    return gpu["state"], gpu["findings"][0]["finding"] if gpu["findings"] else "", "".join(gpu["actions"][:1])


def what_the_driver_breaks_is_found():
    """Under load, since a link is at its full speed only then."""
    with kit.machine(gpus=len(FAULTS) + 2) as m:
        m.start()
        client = m.client()
        kit.until(lambda: not health(m).get("events_why"), lambda: health(m))
        for _ in FAULTS:
            client.submit(m.load_argv("--seconds", "900", "--quiet"), gpus=1)
        kit.until(lambda: sum(bool(board["processes"]) for board in m.boards()) == len(FAULTS), m.boards)
        busy = [i for i, board in enumerate(m.boards()) if board["processes"]]
        kit.until(lambda: all(client.status()["gpus"][i].get("gpu_util_pct", 0) > 50 for i in busy),
                  client.status)
        for index, (fault, finding, action, state) in zip(busy, FAULTS):
            m.twin("fault", str(index), fault)
            # The XID and what readings say of it come by two ways, either of them first.
            kit.until(lambda: found_first(health(m, index)) == (state, finding, action),
                      lambda: (fault, health(m, index)))
        # What follows from the cause is behind it.
        kit.until(lambda: [found for found in health(m, busy[0])["findings"] if found.get("cause") == 0],
                  lambda: health(m, busy[0]))
        page = m.client().raw("GET", "/metrics")[1].decode()
        assert [line for line in page.splitlines() if line.startswith("takt_gpu_xid_errors_total")
                and 'xid="48"' in line], page[:2000]

        def the_page_says_the_same():
            page = m.client().raw("GET", "/metrics")[1].decode()
            told = re.findall(r'^takt_gpu_health{gpu="(\d+)".*state="(\w+)"} 1$', page, re.M)
            return sorted(told) == sorted((str(i), health(m, i)["state"]) for i in range(len(FAULTS) + 2))
        kit.until(the_page_says_the_same, lambda: health(m))


def heads_that_usual_writers_put_before_it_are_known():
    """rsyslog with printk.time, dmesg of a kernel that tells who speaks, dmesg --time-format iso."""
    heads = ("Mar  3 08:15:02 gpu-a kernel: [ 7811.204417] ", "[ 7812.204417] [   T4102] ",
             "2026-03-03T08:15:04,204417+01:00 ")
    with kit.machine(gpus=len(heads) + 1) as m:
        log = log_of(m)
        m.start("--kernel-log", log)
        say(log, "Mar  3 08:15:01 gpu-a job[12]: " + XID.format(bus_id(m, len(heads))[:-2], 94, "Contained: SM"))
        for index, head in enumerate(heads):
            say(log, head + XID.format(bus_id(m, index)[:-2], 94, "Contained: SM"))
        for index in range(len(heads)):
            kit.until(is_in(m, index, "suspect"), lambda: health(m))
        assert health(m, len(heads))["state"] == "healthy", health(m)


def a_log_that_is_no_kernels_is_named():
    with kit.machine(gpus=1) as m:
        log = log_of(m)
        m.start("--kernel-log", log)
        assert "kernel_log_why" not in health(m), "nothing was said yet"
        say(log, "Mar  3 08:15:01 gpu-a job[12]: " + XID.format(bus_id(m, 0)[:-2], 94, "Contained: SM"))
        kit.until(lambda: log in health(m).get("kernel_log_why", ""), lambda: health(m))
        assert log in m.takt("health").stdout and "kernel_log" in m.takt("health").stdout, m.takt("health")
        say(log, "Mar  3 08:15:02 gpu-a kernel: usb 1-1: new high-speed USB device\n")
        kit.until(lambda: "kernel_log_why" not in health(m), lambda: health(m))


def a_log_that_is_rotated_is_read_on():
    """Renamed, and its writer goes on for a while in the old file; then copied and cut; each GPU has its line."""
    with kit.machine(gpus=5) as m:
        log = log_of(m)
        m.start("--kernel-log", log)

        def tells_of(index, path=log):
            say(path, f"[ {index}.1] " + XID.format(bus_id(m, index)[:-2], 94, "Contained: SM"))
            kit.until(is_in(m, index, "suspect"), lambda: health(m))
        tells_of(0)
        os.rename(log, log + ".1")
        open(log, "w", encoding="ascii").close()
        tells_of(1, log + ".1")
        tells_of(2)
        with open(log, "r+", encoding="ascii") as file:  # cut and longer again before anybody looks
            file.truncate(0)
            file.write("[ 3.0] usb 1-1: new device\n" * 20)
        tells_of(3)
        os.truncate(log, 0)
        tells_of(4)
        assert [gpu["xids"][0]["count"] for gpu in health(m)["gpus"]] == [1] * 5, health(m)


def a_log_that_cannot_be_read_is_told():
    with kit.machine(gpus=1) as m:
        log = m.path("not.yet")
        m.start("--kernel-log", log)
        assert log in health(m)["kernel_log_why"] and "kernel_log" in health(m)["kernel_log_why"], health(m)
        assert health(m, 0)["state"] == "healthy", health(m)
        say(log, XID.format(bus_id(m, 0)[:-2], 94, "Contained: SM"))
        kit.until(is_in(m, 0, "suspect"), lambda: health(m))
        assert "kernel_log_why" not in health(m), health(m)
        m.stop()
        m.start("--kernel-log", "off")
        assert "kernel_log is off" in health(m)["kernel_log_why"], health(m)


if __name__ == "__main__":
    sys.exit(kit.main([
        a_healthy_machine_is_told_to_be_one, *HEALTHY,
        a_critical_xid_keeps_jobs_away_until_somebody_has_looked,
        what_is_resumed_is_well_until_it_happens_again, what_happened_is_told_by_the_next_takt_too,
        a_programs_fault_is_its_own,
        errors_of_switches_are_listed_and_keep_no_gpu_from_jobs,
        heads_that_usual_writers_put_before_it_are_known, a_log_that_is_no_kernels_is_named,
        a_log_that_is_rotated_is_read_on,
        the_kernels_log_is_heard_and_nobody_elses_words, what_is_slow_is_suspect_and_works,
        what_the_driver_breaks_is_found,
        a_log_that_cannot_be_read_is_told], at_once=4))
