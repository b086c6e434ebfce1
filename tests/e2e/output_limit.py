#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job that prints without end: the disk is spared, the job goes on, and what is not kept is told.

Usage: output_limit.py BUILD_FOLDER
"""
import json
import os
import re
import subprocess
import sys

import kit

MIB = 1 << 20
LIMIT = 10 * MIB
PRINTED = 200 * MIB
SLACK = 2 * MIB  # what a file system takes on top
CUT = re.compile(rb"^takt: bytes (\d+) to (\d+) of this output are not kept: .*output_limit.*\n", re.M)
# Prints, says so, and goes on until it is told to end.
LINES = "echo the first line; yes 'the same warning of a library' | head -c {bytes}; echo; echo the last line"
SCRIPT = LINES + "; touch {here}/printed; while ! test -e {here}/over; do sleep 0.05; done; echo over"


def submit(m, client, script=SCRIPT):
    return client.submit(["sh", "-c", script.format(bytes=PRINTED, here=m.path("jobs"))], cwd=m.path("jobs"))["id"]


def log_stat(m, job):
    return os.stat(m.path(f"state/jobs/{job}.1/log"))


def spared(m, job):
    return log_stat(m, job).st_blocks * 512 <= LIMIT + SLACK


def printed(m, job):
    """All of it was printed while the job runs, and the disk has no more of it than is kept."""
    kit.until(lambda: os.path.exists(m.path("jobs/printed")) and spared(m, job), lambda: log_stat(m, job))
    assert log_stat(m, job).st_size > PRINTED, log_stat(m, job)


def over(m, client, job):
    with open(m.path("jobs/over"), "w", encoding="ascii"):
        pass
    view = client.wait(job)
    assert (view["state"], view["exit_code"]) == ("done", 0), view
    return client.job(job)


def told(m, job):
    return [line for line in m.said().splitlines() if f"job {job} prints more than is kept (10 MiB" in line]


def check_log(text, last):
    """The beginning, one line in place of what is not kept, the end; the bytes that the line names are those that are missing."""
    (cut,) = CUT.finditer(text)
    start, end = map(int, cut.groups())
    assert text.startswith(b"the first line\nthe same warning of a library\n"), text[:80]
    assert text.endswith(last), text[-80:]
    before = text[:cut.start()]
    assert len(before) - start in (0, 1), (len(before), start)  # a line that was cut has its end
    return start, end, len(text) - cut.end()


def a_job_prints_more_than_is_kept():
    with kit.machine(gpus=1) as m:
        m.start("--output-limit", "10M")
        client = m.client()
        job = submit(m, client)
        printed(m, job)
        kit.until(lambda: told(m, job), m.said)
        view = over(m, client, job)
        assert view["output_kept"] == LIMIT and view["output_cut_from"] == LIMIT / 4, view
        start, end, tail = check_log(subprocess.run([m.path("bin/takt"), "logs", str(job)], env=m.env(), check=True,
                                                    capture_output=True, timeout=kit.WAIT_S).stdout,
                                     b"the last line\nover\n")
        assert (start, end) == (view["output_cut_from"], view["output_cut_to"]), (start, end, view)
        assert end + tail == log_stat(m, job).st_size and start + tail <= LIMIT, (start, end, tail)
        assert spared(m, job), log_stat(m, job)
        shown = m.takt("show", str(job)).stdout
        assert f"more than is kept (10M, see output_limit): bytes {start} to {end} are not in its log" in shown, shown
        assert json.loads(m.takt("show", str(job), "--json").stdout)["output_cut_to"] == end
        assert len(told(m, job)) == 1, m.said()
        # What fits is whole, and nothing is said of it.
        small = client.submit(["sh", "-c", "yes | head -c 9000000"])["id"]
        client.wait(small)
        view = client.job(small)
        assert "output_kept" not in view and not told(m, small), (view, m.said())
        assert log_stat(m, small).st_blocks * 512 >= 9000000, log_stat(m, small)


def who_follows_goes_on_behind_it():
    """It reads nothing until all was printed, so what comes next is gone by then."""
    with kit.machine(gpus=1) as m:
        m.start("--output-limit", "10M")
        client = m.client()
        job = submit(m, client)
        with subprocess.Popen([m.path("bin/takt"), "logs", "-f", str(job)], env=m.env(), stdout=subprocess.PIPE) as follow:
            head = follow.stdout.read(1000)
            printed(m, job)
            over(m, client, job)
            text = head + follow.stdout.read()
            assert follow.wait(kit.WAIT_S) == 0
        check_log(text, b"the last line\nover\n")


def a_new_setting_counts_for_the_next_job():
    with kit.machine(gpus=1) as m:
        with open(m.path("takt.conf"), "w", encoding="ascii") as file:
            file.write("output_limit = 0M\n")
        m.start("--config", m.path("takt.conf"))
        client = m.client()
        script = "yes | head -c 20000000"
        whole = submit(m, client, script)
        client.wait(whole)
        assert "output_kept" not in client.job(whole) and log_stat(m, whole).st_blocks * 512 >= 20000000, client.job(whole)
        with open(m.path("takt.conf"), "w", encoding="ascii") as file:
            file.write("output_limit = 10M\n")
        assert m.takt("config", "reload").returncode == 0
        bound = submit(m, client, script)
        client.wait(bound)
        assert client.job(bound)["output_kept"] == LIMIT and spared(m, bound), client.job(bound)


def a_shim_that_is_stopped_is_told_by_what_it_costs():
    """A shim is its user's. takt cannot make it work, but says whose log takes the disk."""
    with kit.machine(gpus=1) as m, kit.small_disk(m, "64m"):
        m.start("--history", "no")
        client = m.client()
        job = submit(m, client, "kill -STOP $PPID; head -c 65011712 /dev/zero; exec sleep 600")
        said = f"job {job} has the largest log, 62 MiB"

        def notes():
            return [text for text in client.status()["notes"] if "the disk of state_dir has" in text]
        kit.until(lambda: any(said in text for text in notes()), lambda: (client.status()["notes"], m.said()))
        assert said in m.takt("status").stdout, m.takt("status")
        assert m.said().count("the disk of state_dir has") == 1, m.said()


def the_oldest_logs_go_and_history_says_so():
    """All of them come to more than output_share; the jobs stay."""
    with kit.machine(gpus=1) as m, kit.small_disk(m, "64m"):
        m.start("--history", "no", "--output-share", "2%")
        client = m.client()
        jobs = [client.submit(["sh", "-c", "echo the first line; head -c 1M /dev/zero"])["id"] for _ in range(20)]
        for job in jobs:
            assert client.wait(job)["state"] == "done"

        def kept():
            return [job for job in jobs if log_stat(m, job).st_blocks]
        kit.until(lambda: len(kept()) < len(jobs) and sum(log_stat(m, job).st_blocks * 512 for job in jobs) < 64 * MIB / 50, kept)
        gone = sorted(set(jobs) - set(kept()))
        assert gone == jobs[:len(gone)] and 0 < len(gone) < len(jobs), (gone, kept())
        assert f"the log of job {gone[0]} is gone" in m.said(), m.said()
        view = client.job(gone[0])
        assert (view["state"], view.get("output_cut_from", 0), view["output_cut_to"]) == ("done", 0, log_stat(m, gone[0]).st_size), view
        assert "is gone: the logs of all jobs came to more than output_share allows" in m.takt("show", str(gone[0])).stdout
        logs = m.takt("logs", str(gone[0]))
        assert logs.returncode == 0 and "the first line" not in logs.stdout and "not kept" in logs.stdout, logs
        assert m.takt("logs", str(jobs[-1])).stdout.startswith("the first line\n")


if __name__ == "__main__":
    sys.exit(kit.main([a_job_prints_more_than_is_kept, who_follows_goes_on_behind_it, a_new_setting_counts_for_the_next_job,
                       a_shim_that_is_stopped_is_told_by_what_it_costs, the_oldest_logs_go_and_history_says_so]))
