#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an administrator says of GPUs counts, is shown with its reason, and outlives the daemon.

Usage: administration.py BUILD_FOLDER
"""
import json
import os
import re
import shutil
import signal
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
    kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
    return job


def stays_waiting(client, job, why):
    kit.until(lambda: client.job(job).get("why") == why, lambda: client.job(job))
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
        said = m.takt("explain", str(wide), "--json").stdout
        assert "the fan rattles" in said and json.loads(said)["free"] == 1, said
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
        view = json.loads(m.takt("explain", str(wide), "--json").stdout)
        assert (view["total"], view["free"], view["kept"]) == (2, 1, 1), view
        assert "1 free, 1 set aside or reserved" in view["text"] or "1 free" not in view["text"], view
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
        assert m.takt("gpu", "reserve", "0", "--for-user", "54321", "--until", "10h",
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
        assert m.takt("gpu", "reserve", "all", "--for-user", str(os.getuid()), "--until", "1h").returncode == 0
        assert client.wait(client.submit(["true"], gpus=2)["id"])["state"] == "done"
        done = m.takt("gpu", "release", "7")
        assert done.returncode == 66 and "no reservation 7" in done.stderr, done
        done = m.takt("gpu", "reserve", "1", "--for-user", "nobody-of-that-name", "--until", "1h")
        assert done.returncode == 64 and "no user 'nobody-of-that-name'" in done.stderr, done


def reservations_keep_gpus_for_a_tenant():
    with kit.machine(gpus=1) as m:
        rules = m.path("tenants.conf")

        def write(text):
            with open(rules + ".new", "w", encoding="ascii") as file:
                file.write(text)
            os.rename(rules + ".new", rules)

        both = "[tenant lab]\n[tenant lab/vision]\n[tenant lab/audio]\n"
        write(both)
        m.start("--tenants-file", rules)
        client = m.client()
        reserve = ("gpu", "reserve", "0", "--until", "10h")
        for words, what in ((("--for-tenant", "lab/visoin"), "no tenant 'lab/visoin'"),
                            (("--for-tenant", "lab", "--for-user", "0"), "exclude each other")):
            done = m.takt(*reserve, *words)
            assert done.returncode == 64 and what in done.stderr, done
        done = m.takt(*reserve, "--for-tenant", "lab/vision", "--reason", "demo")
        assert done.returncode == 0 and "tenant lab/vision" in done.stdout, done
        assert client.wait(client.submit(["true"], gpus=1, tenant="lab/vision")["id"])["state"] == "done"
        others = [client.submit(["true"], gpus=1, **more)["id"] for more in ({"tenant": "lab/audio"}, {})]
        for job in others:
            view = stays_waiting(client, job, "reservation")
            assert "reserved for tenant lab/vision until" in view["why_text"], view
            assert "tenant lab/vision" in m.takt("explain", str(job)).stdout
        m.kill()
        m.start("--tenants-file", rules)
        client = m.client()
        assert client.wait(client.submit(["true"], gpus=1, tenant="lab/vision")["id"])["state"] == "done"
        stays_waiting(client, others[0], "reservation")
        assert m.takt("gpu", "release", "1").returncode == 0
        for job in others:
            assert client.wait(job)["state"] == "done"
        # All below it may, and one that the rules forget leaves nobody who may.
        assert m.takt(*reserve, "--for-tenant", "lab").returncode == 0
        assert client.wait(client.submit(["true"], gpus=1, tenant="lab/audio")["id"])["state"] == "done"
        write("[tenant other]\n")
        assert m.takt("config", "reload").returncode == 0
        stays_waiting(client, client.submit(["true"], gpus=1, tenant="other")["id"], "reservation")


def maintenance_lets_jobs_in_that_are_over_by_then():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        assert m.takt("gpu", "reserve", "0", "--from", "1h", "--until", "2h").returncode == 0
        long = client.submit(["true"], gpus=1, time_limit_ms=2 * 3600000)["id"]
        unknown = client.submit(["true"], gpus=1)["id"]
        short = client.submit(["true"], gpus=1, time_limit_ms=60000)["id"]
        for job in (long, unknown):
            view = stays_waiting(client, job, "reservation")
            assert "maintenance from 2" in view["why_text"], view
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
        kit.until(lambda: gpu(client, lost)["state"] == "lost", lambda: gpu(client, lost))
        m.twin("fault", str(lost), "none")
        open_gate(m)
        client.wait(job)
        wide = client.submit(["true"], gpus=2)["id"]
        view = stays_waiting(client, wide, "unhealthy")
        assert f"while job {job} used it" in view["why_text"], view
        kit.until(lambda: gpu(client, lost)["state"] == "quarantined", lambda: gpu(client, lost))
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
            kit.until(lambda: gpu(client, 0)["state"] == "outside", lambda: gpu(client, 0))
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


def check(m, status):
    """What takt admin check found, by what it is about; its text says the same."""
    where = ("--state-dir", m.path("state"))
    told = m.takt("admin", "check", "--json", *where)
    assert told.returncode == status, told
    text = m.takt("admin", "check", *where)
    assert text.returncode == status, text
    found = {}
    for line in json.loads(told.stdout)["lines"]:
        assert line["found"] in text.stdout and line.get("todo", "") in text.stdout, (line, text)
        assert not line["wrong"] or line["todo"], line
        found.setdefault(line["about"], []).append(line)
    return found


def end_clock_keepers(m):
    """Both at once, so that neither puts anything back for the other."""
    actuators = m.pids("takt-actuate")
    for pid in actuators:
        os.kill(pid, signal.SIGSTOP)
    for pid in m.pids("takt-guard") + actuators:
        os.kill(pid, signal.SIGKILL)
    kit.until(lambda: not m.pids("takt-guard") and not m.pids("takt-actuate"), m.processes)


def check_compares_database_attempts_and_clocks():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = gate(m, client, clock_ask="lock", clock_mhz=1200)
        lines = check(m, 0)
        assert len(lines["clocks"]) == 1 and f"for job {job}; the actuator" in lines["clocks"][0]["found"], lines
        m.kill()
        end_clock_keepers(m)
        os.mkdir(m.path("state/jobs/999.1"))
        with sqlite3.connect(m.path("state/takt.db")) as db:
            db.execute("INSERT INTO environment VALUES(998, '{}')")
        lines = check(m, 65)
        assert lines["clocks"][0]["wrong"] and "nobody answers" in lines["clocks"][0]["found"], lines
        assert any("999.1 is on disk" in line["found"] and not line["wrong"] for line in lines["attempts"]), lines
        assert "job 998" in lines["environments"][0]["found"], lines
        m.start()
        open_gate(m)
        assert m.client().wait(job)["state"] == "done"
        kit.until(lambda: not m.locked(), m.locked)
        m.stop()
        with sqlite3.connect(m.path("state/takt.db")) as db:
            db.execute("DELETE FROM environment WHERE job_id = 998")
        assert "every GPU is at its baseline" in check(m, 0)["clocks"][0]["found"]
        shutil.rmtree(m.path("state/jobs/999.1"))


def restore_adopts_what_runs_and_refuses_what_it_does_not_know():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        old = gate(m, client, requeue=True)
        copy, where = m.path("backup.db"), ("--state-dir", m.path("state"))
        assert m.takt("admin", "backup", copy, *where).returncode == 0
        young = client.submit(["sh", "-c", "until test -e come; do sleep 0.02; done"], gpus=1,
                              cwd=m.path("jobs"))["id"]
        kit.until(lambda: client.job(young)["state"] == "running", lambda: client.job(young))
        m.kill()
        told = m.takt("admin", "restore", copy, *where)
        assert told.returncode == 75 and f"job {young} runs" in told.stderr, told
        assert not os.path.exists(m.path("state/takt.db.before-restore")), "nothing was changed"
        with open(m.path("jobs/come"), "w", encoding="ascii"):
            pass
        kit.until(lambda: (young, 1) not in m.shims(), m.shims)
        told = m.takt("admin", "restore", copy, *where)
        assert told.returncode == 0, told
        m.start()
        client = m.client()
        assert client.job(old)["state"] == "running", client.job(old)
        open_gate(m)
        assert client.wait(old)["state"] == "done"
        assert client.job(old)["attempt"] == 1


def the_configuration_is_read_again():
    with kit.machine(gpus=1) as m:
        path = m.path("takt.conf")

        def write(*lines):
            with open(path, "w", encoding="ascii") as file:
                file.write("".join(f"{line}\n" for line in lines))

        write("order = fifo", "max_jobs = 50")
        m.start("--config", path, "--sample-hz", "20")
        client = m.client()
        holder = gate(m, client)
        jobs = [client.submit(["true"], gpus=1, priority=priority)["id"] for priority in (0, 5, 0)]
        write("order = takt", "max_jobs = 4", "guard = 1h", "sample_hz = 5", "max_connections = 99")
        told = m.takt("config", "reload", "--json")
        assert told.returncode == 0, told
        view = json.loads(told.stdout)
        assert view == {"changed": "max_jobs,order,guard", "need_restart": "max_connections"}, view
        assert "started again for: max_connections" in m.takt("status").stdout
        refused = m.takt("submit", "--", "true")
        assert refused.returncode == 65 and "full with 4" in refused.stderr, refused
        write("order = takt", "max_jobs = 7", "gaurd = 1h")
        told = m.takt("config", "reload")
        assert told.returncode == 64 and f"{path}:3: " in told.stderr and "'guard'" in told.stderr, told
        assert f"{path}:3: " in m.takt("status").stdout
        assert m.takt("submit", "--", "true").returncode == 65, "the old one stays, also its right lines"
        write("backfill = greedy", "max_jobs = 8")
        told = m.takt("config", "reload")
        assert told.returncode == 64 and "preempt cannot go with backfill greedy" in told.stderr, told
        write("order = fair_share", "max_jobs = 50", "max_connections = 256")
        m.serve.send_signal(signal.SIGHUP)
        kit.until(lambda: "started again for" not in m.takt("status").stdout
                  and "refused" not in m.takt("status").stdout, m.said)
        view = client.job(jobs[0])
        assert view["share_of"] == 1, view
        open_gate(m)
        ended = [client.wait(job) for job in [holder, *jobs]]
        assert [job["state"] for job in ended] == ["done"] * 4, ended
        assert ended[2]["started_ms"] <= ended[1]["started_ms"]


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
        reservations_keep_gpus_for_a_tenant,
        maintenance_lets_jobs_in_that_are_over_by_then,
        only_administrators_may,
        a_gpu_lost_under_a_job_is_set_aside_until_somebody_looks,
        outside_processes_are_named,
        backups_are_whole_and_without_environments,
        check_compares_database_attempts_and_clocks,
        restore_adopts_what_runs_and_refuses_what_it_does_not_know,
        the_configuration_is_read_again,
        a_report_names_nobody_and_replays,
    ]))
