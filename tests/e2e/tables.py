#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of jobs fit a terminal of 80 columns and say what matters: why a job waits in few words and never cut, arrays
as one line, shares as shares; and what cannot be meant is refused. The manual page is shown by man, on a terminal.

Usage: tables.py BUILD_FOLDER
"""
import contextlib
import os
import pty
import subprocess
import sys
import time

import kit


def lines_of(m, *words, columns=80):
    m.more_env = {"COLUMNS": str(columns)}
    done = m.takt(*words)
    assert done.returncode == 0, done
    return [line for line in done.stdout.splitlines() if not line.startswith("SIMULATED")]


def row_of(lines, job):
    (row,) = [line for line in lines if line.split()[0] == str(job)]
    return row


def the_queue_of_a_busy_machine_fits():
    with kit.machine(gpus=4) as m:
        m.start()
        client = m.client()
        gate = ["sleep", "600"]

        def hand_in(name, **more):
            return client.submit(gate, name=name, cwd=m.path("jobs"), **more)["id"]
        large = hand_in("a-name-that-is-much-longer-than-any-table-has-room-for", gpus=2)
        share = hand_in("share", gpus=1, gpu_milli=250)
        for job in (large, share):
            kit.until(lambda job=job: client.job(job)["state"] == "running", lambda job=job: client.job(job))
        wide = hand_in("wide", gpus=4)
        behind = hand_in("behind", gpus=1)
        later = hand_in("later", gpus=1, begin_ms=int(time.time() + 30 * 86400) * 1000)
        held = hand_in("held", gpus=1)
        assert m.takt("hold", str(held)).returncode == 0
        done = m.takt("submit", "-q", "-n", "1", "--array", "0-19%2", "--name", "sweep", "--", *gate)
        array = int(done.stdout.split()[0])
        kit.until(lambda: all(client.job(job).get("why_words") for job in (wide, behind, later, held, array + 19)),
                  lambda: m.takt("queue"))
        for verb in "queue", "jobs":
            for columns in 80, 100, 132, 200:
                lines = lines_of(m, verb, columns=columns)
                assert max(map(len, lines)) <= columns, lines
                assert row_of(lines, wide).endswith("  needs 3 more"), lines
                assert row_of(lines, held).endswith("  held"), lines
                assert f"behind {wide}" in row_of(lines, behind), lines
                assert "until " in row_of(lines, later), lines
                assert " 0.25 " in row_of(lines, share), lines
                (folded,) = [line for line in lines if "sweep" in line]
                assert folded.split()[0] == f"{array}[0-19%2]", lines
                assert "PRIO" not in lines[0] and "TAGS" not in lines[0], lines
                assert ("USER" in lines[0]) == (columns > 120), "one user's jobs: it tells no row from another"


def jobs_of_an_array_are_named_as_the_queue_shows_them():
    with kit.machine(gpus=1) as m:
        m.start()
        done = m.takt("submit", "-q", "-n", "1", "--hold", "--array", "5-9", "--", "true")
        assert done.returncode == 0, done
        array = int(done.stdout.split()[0])

        def states():
            return [m.client().job(array + at)["state"] for at in range(5)]
        done = m.takt("cancel", str(array))
        assert states() == ["cancelled"] + 4 * ["waiting"] and f"takt cancel '{array}[*]' takes all" in done.stderr, done
        done = m.takt("cancel", f"{array}[6,8%2]")
        assert done.returncode == 0 and done.stdout.count(": cancelled: ") == 2 and "takes all" not in done.stderr, done
        assert states() == ["cancelled", "cancelled", "waiting", "cancelled", "waiting"]
        assert m.takt("release", f"{array}_7").returncode == 0
        assert m.client().wait(array + 2)["state"] == "done"
        done = m.takt("cancel", f"{array}[5]")
        assert done.returncode == 66 and "runs or waits" in done.stderr, done
        assert m.takt("scancel", f"{array}_[*]").returncode == 0
        assert states()[4] == "cancelled"


def no_label_of_show_runs_into_its_value():
    with kit.machine(gpus=1) as m:
        m.start()
        begin = int(time.time()) + 30 * 86400
        job = m.client().submit(["true"], gpus=1, cwd=m.path("jobs"), begin_ms=begin * 1000)["id"]
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begin))
        kit.until(lambda: "starts" in m.takt("show", str(job)).stdout, lambda: m.takt("show", str(job)))
        lines = lines_of(m, "show", str(job))
        assert [line for line in lines if line.startswith(f"starts        {when}")], lines
        assert [line for line in lines if line.startswith("state ") and line.endswith(f": {when}")], lines


def typed_at_a_terminal(m, *words, path):
    """(exit status, what was shown)"""
    ours, its = pty.openpty()
    done = subprocess.Popen([m.path("bin/takt"), *words], stdin=its, stdout=its, stderr=its, env={**m.env(), "PATH": path})
    os.close(its)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while more := os.read(ours, 65536):
            shown += more
    os.close(ours)
    return done.wait(kit.WAIT_S), shown.decode()


def who_runs_a_job_sees_its_place_while_it_waits():
    with kit.machine(gpus=1) as m:
        m.start()
        first = m.client().submit(m.witness_argv(m.path("over")), gpus=1, time_limit_ms=3600_000)["id"]
        kit.until(lambda: m.client().job(first)["state"] == "running", "it runs")
        ours, its = pty.openpty()
        run = subprocess.Popen([m.path("bin/takt"), "run", "--", "echo", "hello"], stdin=its, stdout=its, stderr=its, env=m.env())
        os.close(its)
        shown = b""

        def sees(text):
            nonlocal shown
            while text not in shown:
                shown += os.read(ours, 65536)
        sees(b"waits, none before it; starts ")
        with open(m.path("over"), "w", encoding="ascii"):
            pass
        sees(b"hello")
        told = shown.split(b"\r\n", 1)[1].split(b"hello")[0].split(b"\r\x1b[K")
        assert told[-1] == b"" and all(len(line) < 80 for line in told), shown
        assert b" as planned" in told[1], shown
        assert run.wait(kit.WAIT_S) == 0
        os.close(ours)


def the_manual_page_is_shown_by_man():
    """By a stand-in for man, which not every machine has; where there is none, or it fails, the page itself is printed."""
    with kit.machine(gpus=1) as m:
        os.mkdir(m.path("tools"))
        man = m.path("tools/man")
        for script, seen in ((None, ".SH NAME"), ("exit 1", ".SH NAME"), ("head -c 100 >/dev/null; echo shown $*", "shown -l -"),
                             ("cat >/dev/null; echo shown $*", "shown -l -")):
            if script:
                with open(man, "w", encoding="ascii") as file:
                    file.write(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
                os.chmod(man, 0o755)
            status, shown = typed_at_a_terminal(m, "man", path=m.path("tools"))
            assert status == 0 and seen in shown and (".SH" in shown) == (seen == ".SH NAME"), (script, status, shown[:300])
        assert m.takt("man").stdout.startswith(".TH TAKT 1")


def what_cannot_be_meant_is_refused():
    with kit.machine(gpus=2) as m:
        m.start()
        for words, said in ((("jobs", "--state", "foo"), "cancelled,lost,interrupted, not 'foo'"),
                            (("jobs", "--state", "done,"), "not ''"),
                            (("health", "9"), "this machine has 2"),
                            (("submit", "--gpu-index", "1,1", "--", "true"), "each named once"),
                            (("record",), "one FILE")):
            done = m.takt(*words)
            assert done.returncode == 64 and said in done.stderr, done


sys.exit(kit.main([
    the_queue_of_a_busy_machine_fits, jobs_of_an_array_are_named_as_the_queue_shows_them,
    no_label_of_show_runs_into_its_value, the_manual_page_is_shown_by_man,
    who_runs_a_job_sees_its_place_while_it_waits, what_cannot_be_meant_is_refused]))
