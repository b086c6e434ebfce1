#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an administrator says of GPUs counts, is shown with its reason, and outlives the daemon.

Usage: administration.py BUILD_FOLDER
"""
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import kit

GATE = ["sh", "-c", "until test -e go; do sleep 0.02; done"]


def gpu(client, index):
    return client.status()["gpus"][index]


def open_gate(m):
    with open(m.path("jobs/go"), "w", encoding="ascii"):
        pass


def gate(m, client, gpus=1, **more):
    """A job that runs until the gate is open, and does run."""
    job = client.submit(GATE, gpus=gpus, cwd=m.path("jobs"), **more)["id"]
    kit.until(lambda: client.job(job)["state"] == "running", kit.WAIT_S, lambda: client.job(job))
    return job


def stays_waiting(client, job, why):
    kit.until(lambda: client.job(job).get("why") == why, kit.WAIT_S, lambda: client.job(job))
    view = client.job(job)
    assert view["state"] == "waiting" and "gpu_list" not in view or view["gpu_list"] == [], view
    return view


def a_drained_gpu_gets_nothing_new():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        first = gate(m, client)
        busy = client.job(first)["gpu_list"][0]
        done = m.takt("gpu", "drain", str(busy), "--reason", "the fan rattles")
        assert done.returncode == 0 and "the fan rattles" in done.stdout, done
        assert client.wait(client.submit(["true"], gpus=1)["id"])["gpu_list"] == [1 - busy]
        wide = client.submit(["true"], gpus=2)["id"]
        view = stays_waiting(client, wide, "gpus")
        assert f"GPU {busy}: drained by" in view["why_text"] and "the fan rattles" in view["why_text"], view
        assert "the fan rattles" in m.takt("explain", str(wide)).stdout
        shown = m.takt("status").stdout
        assert "drained" in shown and "the fan rattles" in shown, shown
        assert client.job(first)["state"] == "running", "the job that was there goes on"
        m.kill()
        m.start()
        client = m.client()
        assert gpu(client, busy)["state"] == "drained" and "the fan rattles" in gpu(client, busy)["note"]
        open_gate(m)
        assert client.wait(first)["state"] == "done"
        stays_waiting(client, wide, "reservation")
        assert m.takt("gpu", "resume", "0,1").returncode == 75, "one of them is not drained"
        assert gpu(client, busy)["state"] == "drained", "all or none"
        done = m.takt("gpu", "resume", str(busy))
        assert done.returncode == 0 and "no GPU is set aside" in done.stdout, done
        assert client.wait(wide)["state"] == "done"
        m.stop()
        m.start()
        assert m.takt("gpu").stdout.count("no GPU is set aside") == 1


def reservations_keep_gpus_for_a_user():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        assert m.takt("gpu", "reserve", "0", "--for", "54321", "--until", "10h",
                      "--reason", "demo").returncode == 0
        view = client.ask("GET", "/v1/gpus")["reservations"]
        assert [(r["id"], r["gpus"], r["uid"], r["reason"]) for r in view] == [(1, [0], 54321, "demo")], view
        assert client.wait(client.submit(["true"], gpus=1)["id"])["gpu_list"] == [1]
        wide = client.submit(["true"], gpus=2, time_limit_ms=3600000)["id"]
        view = stays_waiting(client, wide, "reservation")
        assert "reserved for 54321 until" in view["why_text"] and "demo" in view["why_text"], view
        assert gpu(client, 0)["state"] == "reserved", gpu(client, 0)
        m.kill()
        m.start()
        client = m.client()
        stays_waiting(client, wide, "reservation")
        # His own may: the same for whoever runs this test.
        assert m.takt("gpu", "release", "1").returncode == 0
        assert client.wait(wide)["state"] == "done"
        assert m.takt("gpu", "reserve", "all", "--for", str(os.getuid()), "--until", "1h").returncode == 0
        assert client.wait(client.submit(["true"], gpus=2)["id"])["state"] == "done"
        done = m.takt("gpu", "release", "7")
        assert done.returncode == 66 and "no reservation 7" in done.stderr, done
        done = m.takt("gpu", "reserve", "1", "--for", "nobody-of-that-name", "--until", "1h")
        assert done.returncode == 64 and "no user 'nobody-of-that-name'" in done.stderr, done


def maintenance_lets_jobs_in_that_are_over_by_then():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        assert m.takt("gpu", "reserve", "0", "--from", "1h", "--until", "2h").returncode == 0
        long = client.submit(["true"], gpus=1, time_limit_ms=2 * 3600000)["id"]
        unknown = client.submit(["true"], gpus=1)["id"]
        short = client.submit(["true"], gpus=1, time_limit_ms=60000)["id"]
        for job in (long, unknown):
            stays_waiting(client, job, "reservation")
        assert client.wait(short)["state"] == "done"
        assert "maintenance" in m.takt("gpu", "list").stdout
        assert m.takt("gpu", "release", "1").returncode == 0
        assert client.wait(long)["state"] == client.wait(unknown)["state"] == "done"


def only_administrators_may():
    if os.getuid() != 0:
        return  # of two users, one must be another
    with kit.machine(gpus=1) as m:
        m.users = "all"
        os.chmod(m.folder, 0o755)
        m.start()
        os.chmod(m.path("run"), 0o755)
        done = subprocess.run([m.path("bin/takt"), "gpu", "drain", "0", "--reason", "mine"], env=m.env(),
                              capture_output=True, text=True, user=65533, group=65533, extra_groups=[],
                              timeout=kit.WAIT_S, check=False)
        assert done.returncode == 77 and "takt-admin" in done.stderr, done
        assert gpu(m.client(), 0)["state"] == "free"


def a_gpu_lost_under_a_job_is_set_aside_until_somebody_looks():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = gate(m, client)
        lost = client.job(job)["gpu_list"][0]
        m.twin("fault", str(lost), "lost")
        kit.until(lambda: gpu(client, lost)["state"] == "lost", kit.WAIT_S, lambda: gpu(client, lost))
        m.twin("fault", str(lost), "none")
        open_gate(m)
        client.wait(job)
        wide = client.submit(["true"], gpus=2)["id"]
        view = stays_waiting(client, wide, "unhealthy")
        assert f"while job {job} used it" in view["why_text"], view
        kit.until(lambda: gpu(client, lost)["state"] == "quarantined", kit.WAIT_S, lambda: gpu(client, lost))
        m.kill()
        m.start()
        client = m.client()
        stays_waiting(client, wide, "unhealthy")
        assert "fault" in m.takt("gpu").stdout
        assert m.takt("gpu", "resume", str(lost)).returncode == 0
        assert client.wait(wide)["state"] == "done"


def outside_processes_are_named():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        notebook = subprocess.Popen([kit.TWIN, "load", "--gpus", "0", "--quiet", "--seconds", "600"], env=m.env(),
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            kit.until(lambda: gpu(client, 0)["state"] == "outside", kit.WAIT_S, lambda: gpu(client, 0))
            job = client.submit(["true"], gpus=1)["id"]
            view = stays_waiting(client, job, "outside")
            assert f"process {notebook.pid}" in view["why_text"], view
        finally:
            notebook.kill()
            notebook.wait()
        assert client.wait(job)["state"] == "done"


SECRET = "hunter2-of-the-test"


def tables(path):
    """All of a database as text."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return "\n".join(db.iterdump())


def backups_are_whole_and_without_environments():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        done = client.submit(["true"], gpus=1, name="first")["id"]
        client.wait(done)
        ran = gate(m, client)
        waits = client.submit(["true"], gpus=1, env=["PATH=/usr/bin:/bin", f"TOKEN={SECRET}"])["id"]
        where = ("--state-dir", m.path("state"))
        told = m.takt("admin", "check", *where)
        assert told.returncode == 0 and "sound" in told.stdout, told
        copy = m.path("backup.db")
        told = m.takt("admin", "backup", copy, *where)
        assert told.returncode == 0 and os.stat(copy).st_mode & 0o777 == 0o600, told
        with open(copy, "rb") as file:
            assert SECRET.encode() not in file.read()
        assert m.takt("admin", "backup", copy, *where).returncode != 0, "not over another file"
        told = m.takt("admin", "restore", copy, *where)
        assert told.returncode == 75, ("while a daemon runs", told)
        after = client.submit(["true"])["id"]
        client.cancel(ran)
        client.wait(waits)
        m.stop()
        newer = m.path("newer.db")
        shutil.copy(copy, newer)
        with sqlite3.connect(newer) as db:
            db.execute("PRAGMA user_version=99")
        for bad, status in ((newer, 76), (m.path("takt.log"), 65), (m.path("none"), None)):
            told = m.takt("admin", "restore", bad, *where)
            assert told.returncode == status or (status is None and told.returncode), (bad, told)
        m.start()
        assert m.client().job(after)["state"] == "done", "nothing was touched"
        m.stop()
        told = m.takt("admin", "restore", copy, *where)
        assert told.returncode == 0, told
        assert os.path.exists(m.path("state/takt.db.before-restore"))
        m.start()
        client = m.client()
        assert client.job(done)["state"] == "done" and client.job(ran)["state"] == "lost"
        view = client.job(waits)
        assert (view["state"], view["held"]) == ("waiting", "admin"), view
        assert m.takt("release", str(waits)).returncode == 0
        assert client.wait(waits)["state"] == "done"
        assert client.submit(["true"])["id"] > after, "numbers of attempts that were are not given again"


def a_report_names_nobody_and_replays():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(["sh", "-c", f"echo {SECRET}"], gpus=1, name=f"name-{SECRET}",
                            env=["PATH=/usr/bin:/bin", f"TOKEN={SECRET}"])["id"]
        client.wait(job)
        uuid = client.job(job)["gpu_uuid"][0]
        m.stop()
        path = m.path("report.db")
        told = m.takt("admin", "report", path, "--state-dir", m.path("state"))
        assert told.returncode == 0 and os.stat(path).st_mode & 0o777 == 0o600, told
        text = tables(path)
        for secret in (SECRET, uuid, m.folder, m.path("state")):
            assert secret not in text, secret
        assert "name-" in text and "user-" in text and "takt_version" in text
        assert not re.search(r'"owner":%d\b' % (os.getuid() + 1), text)
        again = m.takt("simulate", "--replay", path)
        assert again.returncode == 0 and "0 came out differently" in again.stdout, again
        second = m.path("second.db")
        assert m.takt("admin", "report", second, "--state-dir", m.path("state")).returncode == 0
        assert tables(second) == text, "pseudonyms are the same"


if __name__ == "__main__":
    sys.exit(kit.main([
        a_drained_gpu_gets_nothing_new,
        reservations_keep_gpus_for_a_user,
        maintenance_lets_jobs_in_that_are_over_by_then,
        only_administrators_may,
        a_gpu_lost_under_a_job_is_set_aside_until_somebody_looks,
        outside_processes_are_named,
        backups_are_whole_and_without_environments,
        a_report_names_nobody_and_replays,
    ]))
