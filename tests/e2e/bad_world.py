#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt in a hostile place: no room on the disk, damaged files, taken sockets, no descriptors, helpers
that are not there. Whatever it is, it is said, and no accepted job is lost.

Usage: bad_world.py BUILD_FOLDER
"""
import collections
import concurrent.futures
import contextlib
import glob
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys

import kit
import looks


def refused_start(m, *flags, env=None):
    """takt serve that must end by itself; what it said."""
    done = subprocess.run(
        [kit.TWIN, "exec", "--machine", m.path("machine"), "--", m.path("bin/takt"), "serve",
         *m.flags(), *flags], env=m.env(**(env or {})), capture_output=True, text=True, timeout=kit.WAIT_S)
    assert done.returncode > 0, done
    assert done.stderr.startswith("takt serve: "), done
    return done.returncode, done.stderr


def state_of(m, name):
    """{path: bytes} of the database's files."""
    found = {}
    for path in glob.glob(m.path("state/" + name + "*")):
        with open(path, "rb") as file:
            found[path] = file.read()
    return found


def damaged(m, change):
    """A machine's takt, stopped with a job in its history; its database is then changed."""
    m.start()
    client = m.client()
    client.wait(client.submit(["true"])["id"])
    assert m.stop() == 0
    for path in glob.glob(m.path("state/takt.db-*")):
        os.unlink(path)
    change(m.path("state/takt.db"))


def overwrite(at, data):
    def change(path):
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(data)
    return change


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def future(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("pragma user_version = 9999")
        db.commit()


def a_damaged_database_is_refused_and_kept():
    for change, word in ((overwrite(0, b"this is no database" * 100), "takt.db"), (cut, "takt.db"),
                         (future, "9999"), (overwrite(4096, b"\xa5" * 4096), "takt.db")):
        with kit.machine(gpus=1) as m:
            damaged(m, change)
            before = state_of(m, "takt.db")
            code, said = refused_start(m)
            assert code == 65 or code == 76, (code, said)
            assert word in said, said
            assert state_of(m, "takt.db")[m.path("state/takt.db")] == \
                before[m.path("state/takt.db")], "the damaged file was changed"
            assert not m.processes(), m.processes()


def a_damaged_journal_is_said_and_does_not_stop_takt():
    """Without a journal takt cannot know what it changed: jobs run, clocks are not promised in silence."""
    with kit.machine(gpus=2) as m:
        m.start()
        journal = m.path("state/clocks.journal")
        # The API answers before the actuator has made it.
        kit.until(lambda: os.path.exists(journal) and os.path.getsize(journal) > 0, "a journal")
        assert m.stop() == 0
        with open(journal, "r+b") as file:
            file.write(os.urandom(os.path.getsize(journal)))
        m.start()
        client = m.client()
        job = client.wait(client.submit(["true"], gpus=1)["id"])
        assert job["state"] == "done", job
        note = " ".join(client.status()["notes"]) + m.said()
        assert "journal" in note, note


def a_full_disk_refuses_submits_and_loses_nothing():
    with kit.machine(gpus=4) as m, kit.small_disk(m, "8m") as folder:
        m.start()
        client = m.client()
        running = client.submit(m.witness_argv(m.path("over")), gpus=1)["id"]
        waiting = client.submit(m.witness_argv(10), gpus=4)["id"]
        kit.until(lambda: m.witness().begins, "the job runs")
        kit.fill(folder)
        refusals = []
        accepted = []
        for _ in range(40):
            try:
                accepted.append(client.submit(m.witness_argv(1), gpus=1, env=["A=" + "x" * 20000])["id"])
            except kit.Refused as refused:
                refusals.append(refused)
        assert refusals, "submits are accepted on a full disk"
        assert all(r.status in (503, 507) for r in refusals), refusals[0]
        assert refusals[-1].answer["error"]["name"] == "ENOSPC", refusals[-1]
        assert client.job(running)["state"] == "running", client.job(running)
        done = m.takt("submit", "-n", "1", "--env", "B=" + "y" * 100000, "--", "true")
        assert done.returncode not in (0,) and ("space" in done.stderr or "disk" in done.stderr), done
        assert done.stdout == "", done
        os.mknod(m.path("over"))
        kit.until(lambda: m.witness().ends, "the running job ends while there is no room for its end")
        looks.read_again(client, 0, 20)
        assert m.serve.poll() is None, "takt is gone"
        os.unlink(os.path.join(folder, "ballast"))
        for job in (running, waiting, *accepted):
            view = client.wait(job)
            assert view["state"] == "done", view
        more = client.wait(client.submit(m.witness_argv(1), gpus=1)["id"])
        assert more["state"] == "done", more
        counts = {b.job: 0 for b in m.witness().begins}
        for begin in m.witness().begins:
            counts[begin.job] += 1
        assert all(n == 1 for n in counts.values()), counts
        assert m.stop() == 0


def the_second_takt_on_a_socket_says_whose_it_is():
    with kit.machine(gpus=1) as m:
        m.start()
        kit.until(lambda: m.pids("takt-guard"), "the last helper runs")
        before = sorted(m.processes())
        code, said = refused_start(m)
        assert "takt.sock" in said or "runtime" in said or str(m.serve.pid) in said, said
        assert code in (69, 75), (code, said)
        assert m.answers()
        assert sorted(m.processes()) == before
        client = m.client()
        assert client.wait(client.submit(["true"], gpus=1)["id"])["state"] == "done"


def the_second_takt_on_the_gpus_only_observes():
    with kit.machine(gpus=2) as m:
        m.start()
        other = ["--runtime-dir", m.path("run2"), "--state-dir", m.path("state2")]
        second = subprocess.Popen(
            [kit.TWIN, "exec", "--machine", m.path("machine"), "--", m.path("bin/takt"), "serve",
             *m.flags(), *other], env=m.env(), stdout=m.log, stderr=m.log)
        client = kit.Client(m.path("run2/takt.sock"))
        try:
            def answers():
                with contextlib.suppress(OSError):
                    return client.status()
            status = kit.until(answers, "the second answers")
            assert not status["manages"] and str(m.pids("takt")[0]) in json.dumps(status), status
            for ask in (lambda: client.submit(["true"]),
                        lambda: client.ask("POST", "/v1/clocks/set", {"gpus": [0], "max_mhz": 1410})):
                try:
                    ask()
                    raise AssertionError("the second takt takes orders")
                except kit.Refused as refused:
                    assert refused.status == 503 and "observes" in str(refused), refused
            assert status["gpus"][0]["sm_mhz"], status
            assert status["gpus"][0]["clock_state"] == "unknown", "it cannot know what the other has set"
        finally:
            client.close()
            second.terminate()
            second.wait(kit.WAIT_S)
        mine = m.client()
        assert mine.wait(mine.submit(["true"], gpus=2)["id"])["state"] == "done"


@contextlib.contextmanager
def plain_serve(m, *flags):
    """takt without any driver."""
    serve = subprocess.Popen([m.path("bin/takt"), "serve", *m.flags(), *flags],
                             stdin=subprocess.DEVNULL, stdout=m.log, stderr=m.log,
                             env={k: v for k, v in m.env().items() if k != "TAKT_TWIN"})
    try:
        kit.until(m.answers, m.said)
        yield m.client()
    finally:
        m.close_clients()
        serve.terminate()
        assert serve.wait(kit.WAIT_S) == 0


def another_manager_is_left_the_machine():
    """A slurmd or kubelet that runs as root; one of any other user's is no manager."""
    with kit.machine(gpus=1) as m:
        for name in ("slurmd", "kubelet"):
            fake = m.path(name)
            shutil.copy("/bin/sleep", fake)
            with subprocess.Popen([fake, "600"]) as manager:
                try:
                    with plain_serve(m) as client:
                        status = client.status()
                        assert not status["manages"], status
                        assert f"{name} (pid {manager.pid})" in status["observe_why"], status
                        assert f"{name} (pid {manager.pid})" in m.takt("status").stdout
                    with plain_serve(m, "--manage", "always") as client:
                        assert client.status()["manages"]
                finally:
                    manager.kill()
        if os.getuid() != 0:
            return
        os.chmod(m.folder, 0o755)
        with subprocess.Popen([m.path("slurmd"), "600"], user=4242, group=4242,
                              extra_groups=[]) as pretender:
            try:
                with plain_serve(m) as client:
                    assert client.status()["manages"], client.status()
            finally:
                pretender.kill()


def places_that_cannot_be_used_are_named():
    with kit.machine(gpus=1) as m:
        code, said = refused_start(m, "--runtime-dir", m.path("r" * 120))
        assert "too long" in said, said
        with open(m.path("file"), "w", encoding="ascii"):
            pass
        code, said = refused_start(m, "--state-dir", m.path("file/state"))
        assert m.path("file") in said, said
        code, said = refused_start(m, "--state-dir", "/proc/takt")
        assert "/proc/takt" in said, said
        code, said = refused_start(m, "--lock-dir", m.path("file/locks"))
        assert m.path("file") in said, said
        code, said = refused_start(m, "--metrics-listen", "256.1.1.1:9")
        assert "256.1.1.1" in said, said
        assert not m.processes(), m.processes()


def missing_helpers_are_named():
    for name in kit.HELPERS:
        for change in (os.unlink, lambda path: os.replace(shutil.copy(path, path + ".x"), path) or
                       os.chmod(path, 0o644)):
            with kit.machine(gpus=1) as m:
                change(m.path(f"bin/{name}"))
                m.spawn()
                said = ""

                def ended_or_said():
                    return m.serve.poll() is not None or m.answers()
                kit.until(ended_or_said, "takt ends or answers")
                if m.serve.poll() is not None:
                    said = m.said()
                elif name == "takt-shim":
                    client = m.client()
                    job = client.wait(client.submit(["true"], gpus=1)["id"])
                    assert job["state"] != "done", job
                    said = job["message"]
                else:
                    client = m.client()
                    job = client.wait(client.submit(["true"], gpus=1)["id"])
                    said = m.said() + " ".join(client.status()["notes"])
                assert name in said, (name, said)


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def clients_without_end_do_not_stop_takt():
    """More connections than takt allows: the surplus is refused, jobs go on, and later all is well."""
    with kit.machine(gpus=2) as m:
        m.start("--max-connections", "20")
        client = m.client()
        job = client.submit(m.witness_argv(m.path("over")), gpus=1)["id"]
        # A helper that is being started is a second takt until it has become what it is to be.
        kit.until(lambda: len(m.pids("takt")) == 1, "one takt")
        (pid,) = m.pids("takt")
        held = []
        try:
            for _ in range(200):
                raw = socket.socket(socket.AF_UNIX)
                raw.settimeout(kit.WAIT_S)
                with contextlib.suppress(OSError):
                    raw.connect(m.socket)
                held.append(raw)
            os.mknod(m.path("over"))
            assert client.wait(job)["state"] == "done"
            assert descriptors(pid) < 120, descriptors(pid)
        finally:
            for raw in held:
                raw.close()

        def well():
            done = m.takt("run", "-n", "1", "-q", "--", "true")
            return done.returncode == 0
        kit.until(well, "takt serves again")


def few_descriptors_are_survived():
    """The limit of descriptors is reached: what needs one is refused, nothing ends, nothing is lost."""
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(m.path("over")), gpus=1)["id"]
        kit.until(lambda: m.witness().begins and len(m.pids("takt")) == 1, "the job runs")
        (pid,) = m.pids("takt")
        old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors(pid) + 1, old[1]))

        def other():
            try:
                return kit.Client(m.socket).submit(m.witness_argv(1), gpus=1)["id"]
            except (OSError, kit.Refused, http.client.HTTPException):
                return None
        with concurrent.futures.ThreadPoolExecutor() as pool:
            others = [pool.submit(other) for _ in range(8)]
            looks.read_again(client)
            asleep = collections.deque(maxlen=10)
            kit.until(lambda: asleep.append(is_asleep(pid)) or sum(asleep) == 10, "takt spins")
            resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
            ids = [answer.result() for answer in others]
        os.mknod(m.path("over"))
        assert client.wait(job)["state"] == "done"
        for one in filter(None, ids):
            assert client.wait(one)["state"] == "done"
        assert client.wait(client.submit(m.witness_argv(1), gpus=2)["id"])["state"] == "done"
        assert m.stop() == 0


def is_asleep(pid):
    """Whether none of its threads computes, or would if it were its turn."""
    states = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as file:
            states.add(file.read().rsplit(")", 1)[1].split()[0])
    return "R" not in states


def without_a_driver_takt_says_so():
    with kit.machine(gpus=1) as m:
        with plain_serve(m, "--sysfs-root", m.path("sys")) as client:
            status = client.status()
            assert status["gpus"] == [] and "libnvidia-ml" in json.dumps(status), status
            assert status["simulated"] is False, status
            done = m.takt("status")
            assert done.returncode == 0 and "libnvidia-ml" in done.stdout, done
            done = m.takt("submit", "-n", "1", "--", "true")
            assert done.returncode == 69 and "sees no GPU" in done.stderr and "libnvidia-ml" in done.stderr, done
            done = m.takt("run", "-n", "0", "-q", "--", "echo", "hello")
            assert done.returncode == 0 and done.stdout == "hello\n", done
        done = m.takt("status")
        assert done.returncode == 69 and "takt serve" in done.stderr, done


def a_driver_that_comes_later_is_taken_in():
    """Boards that no driver has, by a copy of the kernel's sysfs; its library appears while takt runs. Jobs for GPUs
    wait for it, others do not, and what runs runs on."""
    with kit.machine(gpus=2) as m:
        device, library = m.path("sys/bus/pci/devices/0000:01:00.0"), m.path("late.so")
        os.makedirs(device)
        for name, text in (("vendor", "0x10de"), ("class", "0x030200")):
            with open(f"{device}/{name}", "w", encoding="ascii") as file:
                file.write(text + "\n")
        m.start("--nvml-path", library, "--sysfs-root", m.path("sys"))
        client = m.client()
        status = client.status()
        assert status["gpus"] == [] and status["manages"], status
        assert "late.so" in m.takt("status").stdout and "looks again" in m.takt("status").stdout, m.takt("status")
        wide = client.submit(m.witness_argv(1), gpus=2)["id"]
        named = client.submit(m.witness_argv(1), gpus=1, gpu_indices=[1])["id"]
        endless = client.submit(["sleep", "600"], gpus=0)["id"]
        assert client.wait(client.submit(["true"], gpus=0)["id"])["state"] == "done"
        for job in wide, named:
            kit.until(lambda j=job: client.job(j).get("why") == "unhealthy", lambda j=job: client.job(j))
            assert "late.so" in client.job(job)["why_text"], client.job(job)
        refused = m.takt("submit", "--mig", "1g.10gb", "--", "true")
        assert refused.returncode == 69 and "sees no GPU" in refused.stderr, refused
        kit.until(lambda: client.job(endless)["state"] == "running", lambda: client.job(endless))
        pid, attempt = client.job(endless)["pid"], client.job(endless)["attempt"]
        m.close_clients()
        os.symlink(kit.TWIN_LIB, library)

        def taken_in():
            assert m.serve.poll() is None, "takt ended: " + m.said()
            return m.answers() and "2 SIMULATED GPUs" in m.said()
        kit.until(taken_in, m.said)
        client = m.client()
        assert not client.status().get("notes"), client.status()["notes"]
        for job in wide, named:
            assert client.wait(job)["state"] == "done", client.job(job)
        assert len([b for b in m.witness().begins if b.job == wide]) == 1, m.witness().begins
        view = client.job(endless)
        assert (view["state"], view["pid"], view["attempt"]) == ("running", pid, attempt), view
        assert client.cancel(endless) and client.wait(endless)["state"] == "cancelled"


def a_recording_of_any_name_is_told_in_json():
    with kit.machine(gpus=1) as m:
        path = m.path('a "recording"')
        done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", m.path("bin/takt"), "record", "--json", path)
        assert done.returncode == 0 and json.loads(done.stdout)["file"] == path, done


def a_recording_can_be_looked_at_only():
    with kit.machine(gpus=2) as m:
        done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", m.path("bin/takt"), "record",
                     m.path("recording"))
        assert done.returncode == 0, done
        with plain_serve(m, "--replay", m.path("recording")) as client:
            status = client.status()
            assert len(status["gpus"]) == 2 and status["simulated"] is True, status
            assert not status["manages"] and "recording" in json.dumps(status), status
            done = m.takt("status")
            assert done.returncode == 0 and "record" in done.stdout, done
            done = m.takt("submit", "--", "true")
            assert done.returncode == 69 and "recording" in done.stderr, done
            done = m.takt("clock", "set", "--gpus", "0", "1410")
            assert done.returncode == 69 and "recording" in done.stderr, done
            assert set(m.processes().values()) == {"takt"}, m.processes()
        with open(m.path("recording"), "r+b") as file:
            file.seek(50)
            file.write(b"\0\xff garbage \n")
        code, said = refused_start(m, "--replay", m.path("recording"))
        assert code == 65 and "recording" in said, (code, said)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(kit.main([
        a_damaged_database_is_refused_and_kept, a_damaged_journal_is_said_and_does_not_stop_takt,
        the_second_takt_on_a_socket_says_whose_it_is, the_second_takt_on_the_gpus_only_observes,
        another_manager_is_left_the_machine,
        places_that_cannot_be_used_are_named, missing_helpers_are_named,
        clients_without_end_do_not_stop_takt, few_descriptors_are_survived,
        without_a_driver_takt_says_so, a_driver_that_comes_later_is_taken_in, a_recording_can_be_looked_at_only,
        a_recording_of_any_name_is_told_in_json,
        a_full_disk_refuses_submits_and_loses_nothing]))
