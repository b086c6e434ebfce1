#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many users on one takt, or one alone: who may see, stop and change what.

Users are numbers here; no account is made. Where names matter they are in files that only a mount namespace of
the test's own has. Needs root, which alone can become others.

Usage: users.py BUILD_FOLDER
"""
import contextlib
import ctypes
import json
import os
import pickle
import signal
import socket
import sqlite3
import stat
import subprocess
import sys

import reachable  # noqa: F401, first: it may replace the build folder
import kit
import looks

ALICE, BOB, SYSTEM = 4242, 4343, 77


def as_user(uid, function, *arguments):
    """What the function returns or raises when it is called as that user, in a process of its own."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(out)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            try:
                result = (True, function(*arguments))
            except Exception as problem:  # handed to the caller, whatever it is
                result = (False, problem)
            with os.fdopen(into, "wb") as pipe:
                pipe.write(pickle.dumps(result))
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    assert data, f"a call as user {uid} died"
    good, value = pickle.loads(data)
    if good:
        return value
    raise value


def ask(m, uid, method, path, body=None):
    return as_user(uid, lambda: kit.Client(m.socket).ask(method, path, body))


def refusal(m, uid, method, path, body=None):
    """(status, name, message) of an answer that has to be a refusal."""
    def call():
        try:
            return None, kit.Client(m.socket).ask(method, path, body)
        except kit.Refused as refused:
            return (refused.status, refused.answer["error"]), None
    refused, answer = as_user(uid, call)
    assert refused, f"user {uid} may {method} {path}: {answer}"
    return refused[0], refused[1]["name"], refused[1]["message"]


def takt_as(m, uid, *words, groups=(), **more):
    return m.takt(*words, user=uid, group=uid, extra_groups=list(groups), cwd="/", **more)


@contextlib.contextmanager
def accounts(folder, passwd, group):
    """These are the machine's users and groups, for this process and what it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) != 0 or libc.mount(b"none", b"/", None, 0x44000, None) != 0:  # private from here on
        raise kit.Skip("a mount namespace of its own is not allowed here")
    for name, text in (("passwd", passwd), ("group", group)):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        if libc.mount(path.encode(), b"/etc/" + name.encode(), None, 0x1000, None) != 0:  # MS_BIND
            raise kit.Skip("mounting is not allowed here")
    try:
        yield
    finally:
        for name in (b"passwd", b"group"):
            libc.umount2(b"/etc/" + name, 2)


def job_of(argv, gpus=0, **more):
    return {"argv": argv, "cwd": "/", "gpus": gpus, "env": ["PATH=/usr/bin:/bin"], **more}


@contextlib.contextmanager
def shared_machine(users="all", start=True, **more):
    """takt as root for everybody, on a machine that others can reach."""
    if os.getuid() != 0:
        raise kit.Skip("only root can become another user")
    if as_user(ALICE, os.access, kit.TWIN, os.X_OK) is False:
        raise kit.Skip("the build folder cannot be reached by other users")
    with kit.machine(**more) as m:
        os.chmod(m.folder, 0o755)
        os.chmod(m.path("jobs"), 0o1777)
        for name in ("machine", "machine.lock"):
            if os.path.exists(m.path(name)):
                os.chmod(m.path(name), 0o666)
        m.users = users
        yield m.start() if start else m


def everybody_runs_as_himself():
    with shared_machine(gpus=2) as m:
        for uid in (ALICE, BOB):
            done = takt_as(m, uid, "run", "-q", "-n", "1", "--", "sh", "-c", "id -u; id -g; id -G; umask")
            assert done.returncode == 0, done
            assert done.stdout.split()[:3] == [str(uid)] * 3, done
        done = takt_as(m, ALICE, "run", "-q", "-n", "0", "--", "sh", "-c", "grep Cap /proc/self/status")
        assert done.stdout.count("0000000000000000") >= 3 and "CapEff:\t0000000000000000" in done.stdout, done


def holds_and_priorities_are_the_owners_and_administrators():
    with shared_machine(gpus=1) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["true"], 1), "held": True})["id"]
        path = f"/v1/jobs/{job}/change"
        for body in ({"held": False}, {"priority": -1}):
            assert refusal(m, BOB, "POST", path, body)[:2] == (403, "EPERM"), body
        assert refusal(m, ALICE, "POST", path, {"priority": 1})[1] == "EPERM"
        assert ask(m, ALICE, "POST", path, {"priority": -1})["priority"] == -1
        assert ask(m, 0, "POST", path, {"held": True, "priority": 7})["held"] == "admin"
        assert "administrator" in refusal(m, ALICE, "POST", path, {"held": False})[2]
        assert "held" not in ask(m, 0, "POST", path, {"held": False})
        assert m.client().wait(job)["state"] == "done"


def an_output_is_opened_as_its_user():
    """In a folder of root's, through a link of his to a file of root's, and in his own."""
    with shared_machine(gpus=1) as m:
        own, secret = m.path("own"), m.path("secret")
        os.mkdir(own)
        os.chown(own, ALICE, ALICE)
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("untouched")
        os.symlink(secret, os.path.join(own, "link"))
        for output in (secret, "link", m.path("state/planted")):
            job = ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["echo", "hello"]), "cwd": own, "output": output})["id"]
            view = m.client().wait(job)
            assert view["state"] == "failed" and "Permission denied" in view["message"], view
        job = ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["echo", "hello"]), "cwd": own, "output": "mine-%j"})["id"]
        assert m.client().wait(job)["state"] == "done"
        made = os.stat(os.path.join(own, f"mine-{job}"))
        assert (made.st_uid, made.st_gid, made.st_mode & 0o777, made.st_size) == (ALICE, ALICE, 0o644, 6), made
        with open(secret, encoding="ascii") as file:
            assert file.read() == "untouched"
        assert "output" not in ask(m, BOB, "GET", f"/v1/jobs/{job}")


def a_longer_time_limit_of_a_job_that_runs_is_an_administrators():
    with shared_machine(gpus=1) as m:
        limit_ms = 3600000
        runs = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1, time_limit_ms=limit_ms))["id"]
        waits = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1, time_limit_ms=limit_ms))["id"]
        kit.until(lambda: m.client().job(runs)["state"] == "running", "it runs")
        path = f"/v1/jobs/{runs}/change"
        for longer in (limit_ms + 1, 0):
            refused = refusal(m, ALICE, "POST", path, {"time_limit_ms": longer})
            assert refused[:2] == (403, "EPERM") and "administrator" in refused[2], refused
        assert refusal(m, BOB, "POST", path, {"time_limit_ms": 1})[:2] == (403, "EPERM")
        assert ask(m, ALICE, "POST", path, {"time_limit_ms": limit_ms // 2})["time_limit_ms"] == limit_ms // 2
        assert ask(m, 0, "POST", path, {"time_limit_ms": 2 * limit_ms})["time_limit_ms"] == 2 * limit_ms
        assert ask(m, ALICE, "POST", f"/v1/jobs/{waits}/change", {"time_limit_ms": 3 * limit_ms})["time_limit_ms"] == 3 * limit_ms
        for job in (runs, waits):
            ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})


def uids_of_the_system_are_refused():
    with shared_machine(gpus=1) as m:
        done = takt_as(m, SYSTEM, "submit", "-n", "0", "--", "true")
        assert done.returncode != 0 and "1000" in done.stderr and str(SYSTEM) in done.stderr, done
        assert ask(m, SYSTEM, "GET", "/v1/status")["gpus"], "but it may look"
        # root may, where root is who runs takt.
        assert m.takt("run", "-q", "-n", "0", "--", "true").returncode == 0


def root_does_not_submit_to_a_users_own_takt():
    """Its launcher could not run it: it says so at once, and root may still look, cancel and set."""
    with shared_machine("own", start=False, gpus=1) as m:
        os.chown(m.folder, ALICE, ALICE)
        m.spawn(user=ALICE)
        kit.until(m.answers, m.said)
        done = m.takt("submit", "--", "true")
        assert done.returncode == 77 and str(ALICE) in done.stderr, done
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1))["id"]
        assert m.takt("cancel", str(job)).returncode == 0
        assert ask(m, ALICE, "GET", f"/v1/jobs/{job}")["state"] == "cancelled"


def a_user_cannot_serve_all():
    """His launcher could run nobody else's jobs, and they would wait for ever."""
    with shared_machine("all", start=False, gpus=1) as m:
        os.chown(m.folder, ALICE, ALICE)
        m.spawn(user=ALICE)
        assert m.died() == 77, m.said()
        assert "needs root" in m.said(), m.said()
        kit.until(lambda: not m.processes(), m.processes)


def all_are_served_where_jobs_can_be_kept_apart():
    """Without cgroup v2 only if an administrator has said so; root's own takt serves root."""
    with shared_machine(start=False, gpus=1) as m:
        def without_cgroups(users):
            words = [word if word != "all" else users for word in m.flags() if word != "--allow-weak-isolation"]
            return ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh",
                    m.path("bin/takt"), "serve", *words]
        if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            raise kit.Skip("a mount namespace of its own is not allowed here")
        done = subprocess.run(without_cgroups("all"), capture_output=True, text=True, env=m.env(), check=False,
                              timeout=kit.WAIT_S)
        assert done.returncode and "allow_weak_isolation = yes" in done.stderr, done
        with open(m.path("takt.log"), "a", encoding="utf-8") as log:
            serve = subprocess.Popen(without_cgroups("auto"), stderr=log, stdout=log, env=m.env())
        try:
            kit.until(m.answers, m.said)
            assert "serves root alone" in m.said(), m.said()
            assert takt_as(m, BOB, "status").returncode, "another user is served"
        finally:
            serve.terminate()
            serve.wait(kit.WAIT_S)


def a_place_that_is_not_the_users_is_named():
    with shared_machine("own", start=False, gpus=1) as m:
        m.spawn(user=ALICE)  # the folder is root's
        assert m.died() == 77 and "ermission denied" in m.said() and m.path("run") in m.said(), m.said()


def what_is_mine_is_not_shown_to_others():
    with shared_machine(gpus=2) as m:
        secret = "swordfish"
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(
            ["sh", "-c", f"echo {secret}; exec sleep 600"], 1, name=secret + "name",
            env=["PATH=/bin", "TOKEN=" + secret]))["id"]
        kit.until(lambda: secret in as_user(ALICE, lambda: kit.Client(m.socket).raw(
            "GET", f"/v1/jobs/{job}/log")[1].decode()), "it has spoken")

        def all_that_bob_sees(client):
            paths = ("/v1/status", "/v1/jobs", "/v1/jobs?history=1", f"/v1/jobs/{job}", "/v1/clocks",
                     f"/v1/jobs/{job}/explain", f"/v1/jobs/{job}/course", f"/v1/jobs/{job}/wait?timeout_ms=1", "/metrics",
                     f"/v1/jobs/{job}/log")
            return {path: client.raw("GET", path) for path in paths}
        for state in ("running", "ended"):
            seen = as_user(BOB, lambda: all_that_bob_sees(kit.Client(m.socket)))
            for path, (code, text) in seen.items():
                assert secret.encode() not in text, (state, path, text)
            assert seen[f"/v1/jobs/{job}/log"][0] == 403, seen[f"/v1/jobs/{job}/log"]
            view = json.loads(seen[f"/v1/jobs/{job}"][1])
            assert view["uid"] == ALICE and not view["mine"], view
            if state == "running":
                words = takt_as(m, BOB, "status").stdout + takt_as(m, BOB, "queue").stdout
                assert secret not in words, words
                ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
                assert as_user(ALICE, lambda: kit.Client(m.socket).wait(job))["state"] == "cancelled"
        assert secret in json.dumps(ask(m, 0, "GET", f"/v1/jobs/{job}")), "root sees it"


def files_with(m, word):
    """Files of takt's in which the word stands."""
    found = []
    for folder, _, names in os.walk(m.path("state")):
        for name in names:
            with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, name), "rb") as file:
                if word.encode() in file.read():
                    found.append(name)
    return sorted(found)


def an_environment_is_the_owners_alone_and_goes_with_the_job():
    with shared_machine(gpus=2) as m:
        secret = "opensesame"
        env = ["PATH=/usr/bin:/bin", "TOKEN=" + secret]
        waits = ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["true"], 1, env=env), "held": True})["id"]
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(
            ["sh", "-c", f'test "$TOKEN" = {secret} && exec sleep 600'], 1, env=env))["id"]
        pid = kit.until(lambda: m.client().job(job).get("pid"), "it runs")
        kit.until(lambda: b"sleep" in kit.environ_of(pid, "cmdline"), "its environment is what was given")
        for path in (f"/proc/{pid}/environ", m.path(f"state/jobs/{job}.1/spec"), m.path("state/takt.db")):
            assert not as_user(BOB, os.access, path, os.R_OK), path
        assert "spec" in files_with(m, secret), files_with(m, secret)
        for path in ("/v1/jobs", f"/v1/jobs/{job}", f"/v1/jobs/{waits}"):
            assert secret not in json.dumps(ask(m, BOB, "GET", path)), path
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        ask(m, ALICE, "POST", f"/v1/jobs/{waits}/cancel", {})
        for one in (job, waits):
            assert m.client().wait(one)["state"] == "cancelled"
        m.stop()
        left = files_with(m, "TOKEN=" + secret)
        assert not left, left


def a_copied_database_has_no_environments():
    """Where it is put back its jobs wait for somebody's word."""
    with shared_machine(gpus=1) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["true"], 1), "held": True})["id"]
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/change", {"held": False, "priority": -1})
        first = m.client().wait(job)
        assert first["state"] == "done", first
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["true"], 1, begin_ms=4102444800000))["id"]
        m.stop()
        with contextlib.closing(sqlite3.connect(m.path("state/takt.db"))) as database:
            database.execute("DELETE FROM environment")
            database.commit()
        m.start()
        view = ask(m, ALICE, "GET", f"/v1/jobs/{job}")
        assert view["held"] == "owner" and "environment" in view["message"], view


def a_planted_library_is_not_loaded_by_root_for_others():
    """The caller's LD_LIBRARY_PATH names a driver, which is not taken; nor do the helpers inherit it."""
    with shared_machine(start=False, gpus=2) as m:
        environment = m.env(LD_LIBRARY_PATH=os.path.dirname(kit.TWIN_LIB), EVIL="1")
        words = [m.path("bin/takt"), "serve", *m.flags()]
        alone = [word for word in words if word not in ("--nvml-path", kit.TWIN_LIB)]
        for command, gpus in ((alone, 0), (words, 2)):
            m.serve = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=m.log,
                                       stderr=m.log, start_new_session=True)
            kit.until(m.answers, m.said)
            assert len(m.client().status()["gpus"]) == gpus, m.client().status()
            remedy = f"root's processes; name the library with nvml_path = {kit.TWIN_LIB}"
            if not gpus:
                kit.until(lambda: remedy in m.said(), m.said)
                for told in (m.takt("status").stdout, m.takt("submit", "-n", "1", "true").stderr):
                    assert remedy in " ".join(told.split()), told
            kit.until(lambda: m.pids("takt-launch") and m.pids("takt-actuate"), m.processes)
            for kind in ("takt", "takt-launch", "takt-actuate", "takt-guard"):
                for pid in m.pids(kind):
                    has = kit.environ_of(pid, "environ")
                    assert b"LD_LIBRARY_PATH" not in has and b"EVIL" not in has, (kind, has)
            m.stop()


def takt_twin_names_the_driver_to_root_for_others():
    """What root runs itself names the library, and takt serve needs no --nvml-path."""
    with shared_machine(start=False, gpus=2) as m:
        alone = [word for word in m.flags() if word not in ("--nvml-path", kit.TWIN_LIB)]
        m.serve = subprocess.Popen([kit.TWIN, "exec", "--", m.path("bin/takt"), "serve", *alone], env=m.env(),
                                   stdin=subprocess.DEVNULL, stdout=m.log, stderr=m.log, start_new_session=True)
        kit.until(m.answers, m.said)
        assert len(m.client().status()["gpus"]) == 2, m.client().status()


def a_link_in_place_of_the_log_leads_nowhere():
    with shared_machine(gpus=1) as m:
        secret = m.path("secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("swordfish")
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["true"]))["id"]
        m.client().wait(job)
        log = m.path(f"state/jobs/{job}.1/log")

        def swap():
            os.unlink(log)
            os.symlink(secret, log)
        try:
            as_user(ALICE, swap)
        except PermissionError:
            swap()  # as a takt of before would have let him
        _, said = as_user(ALICE, lambda: kit.Client(m.socket).raw("GET", f"/v1/jobs/{job}/log"))
        assert b"swordfish" not in said, said


def takt_top_shows_a_log_to_its_owner_and_root():
    with shared_machine(gpus=1) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sh", "-c", "echo between us; exec sleep 1000"], 1))["id"]
        kit.until(lambda: "between us" in takt_as(m, ALICE, "logs", str(job)).stdout, m.said)
        for uid, may in ((ALICE, True), (0, True), (BOB, False)):
            done = takt_as(m, uid, "top", "--json", "--each-line", input=f"log {job}\n")
            look = json.loads(done.stdout)
            (one,) = look["queue"]["jobs"]
            assert one.get("mine", False) == may, one
            assert ("between us" in done.stdout) == may, look["log"]
            assert may or "another user's" in look["log"]["why_not"], look["log"]
        client = m.client()
        client.cancel(job)
        client.wait(job)


def only_the_owner_and_root_stop_a_job():
    with shared_machine(gpus=2) as m:
        sleeper = ["sh", "-c", "trap 'exit 7' USR1; echo ready; sleep 600 & wait"]
        first, second = (ask(m, ALICE, "POST", "/v1/jobs", job_of(sleeper, 1))["id"] for _ in range(2))
        for job in (first, second):
            kit.until(lambda j=job: m.client().raw("GET", f"/v1/jobs/{j}/log")[1] == b"ready\n", "it runs")
        for path, body in ((f"/v1/jobs/{first}/cancel", {}), (f"/v1/jobs/{first}/signal", {"signal": 9})):
            assert refusal(m, BOB, "POST", path, body)[0] == 403
        done = takt_as(m, BOB, "cancel", str(first))
        assert done.returncode == 77 and "another user" in done.stderr, done
        assert ask(m, ALICE, "GET", f"/v1/jobs/{first}")["state"] == "running"
        ask(m, ALICE, "POST", f"/v1/jobs/{first}/signal", {"signal": int(signal.SIGUSR1)})
        assert m.client().wait(first)["exit_code"] == 7
        ask(m, 0, "POST", f"/v1/jobs/{second}/cancel", {})
        assert m.client().wait(second)["state"] == "cancelled"


def only_its_owner_hands_a_job_in_again():
    """For anybody else it would run as him, with a command that he may not read."""
    with shared_machine(gpus=1) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["id", "-u"], 1))["id"]
        as_user(ALICE, lambda: kit.Client(m.socket).wait(job))
        again = f"/v1/jobs/{job}/again", {"env": ["PATH=/usr/bin:/bin"]}
        assert refusal(m, BOB, "POST", *again)[:2] == (403, "EPERM")
        assert refusal(m, 0, "POST", *again)[:2] == (403, "EPERM"), "not even root"
        anew = ask(m, ALICE, "POST", *again)["id"]
        as_user(ALICE, lambda: kit.Client(m.socket).wait(anew))
        said = as_user(ALICE, lambda: kit.Client(m.socket).raw("GET", f"/v1/jobs/{anew}/log")[1])
        assert said.decode().strip() == str(ALICE), said


def a_users_live_jobs_are_listed_alone():
    with shared_machine(gpus=1) as m:
        for uid in (ALICE, BOB, BOB):
            ask(m, uid, "POST", "/v1/jobs", job_of(["sleep", "600"], 1))
        for uid, count in ((ALICE, 1), (BOB, 2), (0, 0)):
            answer = ask(m, ALICE, "GET", f"/v1/jobs?uid={uid}")
            assert (answer["total"], {each["uid"] for each in answer["jobs"]}) == (count, {uid} if count else set()), answer
        cut = ask(m, ALICE, "GET", f"/v1/jobs?uid={BOB}&limit=1")
        assert (cut["total"], len(cut["jobs"])) == (2, 1), cut
        assert ask(m, ALICE, "GET", "/v1/jobs")["total"] == 3


def an_id_that_another_user_has_copied_means_nothing():
    """Of a killed shim's job what bears its id is ended, and waited for; but not what somebody else has named so."""
    with shared_machine(gpus=1) as m:
        stays = ["sh", "-c", "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & sleep 600"]
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(stays, 1))["id"]
        kit.until(lambda: m.client().job(job)["state"] == "running", "it runs")
        pid = m.client().job(job)["pid"]

        def mark():  # nothing of it is there while it becomes the job's program
            words = kit.environ_of(pid, "environ").split(b"\0")
            return [word for word in words if word.startswith(b"TAKT_ATTEMPT=")]
        (mine,) = kit.until(mark, "its environment is there")
        with subprocess.Popen(["sleep", "600"], env={"TAKT_ATTEMPT": mine.split(b"=")[1].decode()},
                              user=BOB, group=BOB, extra_groups=[]) as forger:
            os.kill(m.shims()[job, 1], signal.SIGKILL)
            assert m.client().wait(job)["state"] == "lost"
            after = ask(m, BOB, "POST", "/v1/jobs", job_of(["true"], 1))["id"]
            assert m.client().wait(after)["state"] == "done"
            assert forger.poll() is None, "it is not the job's, and not killed"
            forger.kill()


def who_calls_himself_anothers_shim_is_from_outside():
    """A command line is written by whoever starts a program: what is below it is not the job's for that."""
    with shared_machine(gpus=1) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1))["id"]
        kit.until(lambda: m.client().job(job)["state"] == "running", "it runs")
        words = kit.environ_of(m.shims()[job, 1], "cmdline").decode().rstrip("\0").split("\0")
        load = " ".join(m.load_argv("--gpus", "0", "--seconds", "600", "--quiet"))
        with open(m.path(f"jobs/{words[1]}"), "w", encoding="ascii") as file:
            file.write(f"{load} & echo $! > load\nwait\n")
        os.chmod(m.path("jobs"), 0o777)
        forger = subprocess.Popen(words, executable="/bin/sh", cwd=m.path("jobs"), user=BOB, group=BOB,
                                  extra_groups=[], env=m.env())
        try:
            def procs():
                return m.client().status()["gpus"][0].get("procs", [])
            kit.until(procs, lambda: m.boards()[0])
            kit.until(lambda: [p.get("uid") for p in procs()] == [BOB], procs)
            assert not [p for p in procs() if p.get("job_id")], procs()
            after = ask(m, ALICE, "POST", "/v1/jobs", job_of(["true"], 1))["id"]
            ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
            kit.until(lambda: m.client().job(after).get("why") == "outside",
                      lambda: (m.client().job(after), m.client().status()["gpus"]))
            kit.until(lambda: m.client().status()["gpus"][0]["state"] == "outside", m.client().status)
        finally:
            with open(m.path("jobs/load"), encoding="ascii") as file:
                os.kill(int(file.read()), signal.SIGKILL)
            forger.wait(kit.WAIT_S)
        assert m.client().wait(after)["state"] == "done"


def clocks_only_of_gpus_held_alone():
    with shared_machine(gpus=3) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1))["id"]
        kit.until(lambda: m.client().job(job)["state"] == "running", "it runs")
        (mine,) = m.client().job(job)["gpu_list"]
        other = (mine + 1) % 3
        want = {"max_mhz": 1410}
        for uid, gpus in ((ALICE, [other]), (ALICE, [mine, other]), (BOB, [mine]), (BOB, [other])):
            code, _, message = refusal(m, uid, "POST", "/v1/clocks/set", dict(want, gpus=gpus))
            assert code == 403 and "takt-admin" in message, (uid, gpus, code, message)
            assert refusal(m, uid, "POST", "/v1/clocks/reset", {"gpus": gpus})[0] == 403
        assert not m.locked()
        done = takt_as(m, ALICE, "clock", "set", "--gpus", str(mine), "1410")
        assert done.returncode == 0, done
        assert m.locked() == {mine: (345, 1410)}, m.locked()
        done = takt_as(m, ALICE, "clock", "set", "--gpus", str(mine), "--mem-clock", "2619")
        assert done.returncode == 77 and "memory clocks: root or group takt-admin" in done.stderr, done
        done = takt_as(m, ALICE, "clock", "set", "--assume-unlocked", "--gpus", str(mine), "1300")
        assert done.returncode == 77 and "for root or group takt-admin to say" in done.stderr, done
        done = takt_as(m, ALICE, "clock", "reset", "--gpus", str(mine))
        assert done.returncode == 0 and not m.locked(), (done, m.locked())
        assert takt_as(m, ALICE, "clock", "set", "--lock", "--gpus", str(mine), "1200").returncode == 0
        assert list(m.locked()) == [mine]
        # What an administrator has set elsewhere stays when the job ends.
        assert m.takt("clock", "set", "--gpus", str(other), "900").returncode == 0
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        kit.until(lambda: list(m.locked()) == [other], lambda: m.locked())
        assert refusal(m, ALICE, "POST", "/v1/clocks/set", dict(want, gpus=[mine]))[0] == 403
        assert m.takt("clock", "reset").returncode == 0 and not m.locked(), m.locked()


def another_comes_and_goes(m, locked):
    """A job whose clocks are set, and put back to these: by then those of a job before it would have been."""
    job = m.client().submit(["sleep", "600"], gpus=1, clock_ask="ceiling", clock_mhz=1110)["id"]
    kit.until(lambda: (345, 1110) in m.locked().values(), m.locked)
    m.client().cancel(job)
    m.client().wait(job)
    kit.until(lambda: m.locked() == locked, m.locked)


def an_administrators_clocks_are_there_again_after_a_job():
    with shared_machine(gpus=2) as m:
        assert m.takt("clock", "set", "--gpus", "0-1", "900").returncode == 0
        capped = {0: (345, 900), 1: (345, 900)}
        assert m.locked() == capped
        asks = {"clock_ask": "ceiling", "clock_mhz": 1200}
        first = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1, **asks))["id"]
        kit.until(lambda: (345, 1200) in m.locked().values(), m.locked)
        m.client().cancel(first)
        m.client().wait(first)
        kit.until(lambda: m.locked() == capped, m.locked)
        second = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1))["id"]
        kit.until(lambda: m.client().job(second)["state"] == "running", "it runs")
        (mine,) = m.client().job(second)["gpu_list"]
        for words in (("set", "1290"), ("reset",), ("reset",)):
            done = takt_as(m, ALICE, "clock", words[0], "--gpus", str(mine), *words[1:])
            assert done.returncode == 0, done
            wanted = 345, 1290 if words[0] == "set" else 900
            kit.until(lambda: m.locked().get(mine) == wanted, lambda: f"{words}: {m.locked()}")
        # Set on the job's GPU and others, an administrator's clocks are not that job's.
        assert m.takt("clock", "set", "--gpus", "all", "990").returncode == 0
        ask(m, ALICE, "POST", f"/v1/jobs/{second}/cancel", {})
        m.client().wait(second)
        another_comes_and_goes(m, {0: (345, 990), 1: (345, 990)})
        assert m.takt("clock", "reset").returncode == 0
        kit.until(lambda: not m.locked(), m.locked)


def clocks_set_over_several_gpus_outlive_a_job_on_one():
    with shared_machine("own", gpus=2) as m:
        job = m.client().submit(["sleep", "600"], gpus=1)["id"]
        kit.until(lambda: m.client().job(job)["state"] == "running", "it runs")
        assert m.takt("clock", "set", "--gpus", "all", "1410").returncode == 0
        m.client().cancel(job)
        m.client().wait(job)
        another_comes_and_goes(m, {0: (345, 1410), 1: (345, 1410)})


def clocks_set_while_a_jobs_end_waits_for_the_disk_are_put_back():
    """A job is over, and its end cannot be written yet: whatever takt allows now it also undoes."""
    with shared_machine(start=False, gpus=1) as m, kit.small_disk(m, "8m") as folder:
        m.start()
        journal = os.path.join(folder, "clocks.journal")  # without room for it there is no actuator to ask
        kit.until(lambda: os.path.exists(journal) and os.path.getsize(journal) > 100000, journal)
        go = m.path("jobs/go")
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sh", "-c", f"until test -e {go}; do sleep 0.02; done"], 1))["id"]
        pid = kit.until(lambda: m.client().job(job).get("pid"), "it runs")
        kit.fill(folder)
        os.mknod(go)
        kit.until(lambda: not kit.is_running(pid, b"sh"), "it is over")
        looks.read_again(m.client())
        code, answer = as_user(ALICE, lambda: kit.Client(m.socket).raw(
            "POST", "/v1/clocks/set", json.dumps({"gpus": [0], "max_mhz": 1410}),
            {"Content-Type": "application/json"}))
        assert code in (200, 403), (code, answer)
        os.unlink(os.path.join(folder, "ballast"))
        assert m.client().wait(job)["state"] == "done"
        kit.until(lambda: not m.locked(), m.locked)


def a_user_has_no_say_over_others_in_the_queue():
    with shared_machine(gpus=1) as m:
        code, _, message = refusal(m, ALICE, "POST", "/v1/jobs", job_of(["true"], 1, priority=1))
        assert code == 403 and "administrator" in message, (code, message)
        done = takt_as(m, ALICE, "submit", "-p", "5", "--", "true")
        assert done.returncode == 77 and "administrator" in done.stderr, done
        assert takt_as(m, ALICE, "run", "-q", "-p", "-5", "--", "true").returncode == 0


def a_user_cannot_hold_all_connections():
    with shared_machine(gpus=1) as m:
        held = []
        try:
            os.seteuid(ALICE)  # whom the kernel names to takt
            for _ in range(400):
                held.append(socket.socket(socket.AF_UNIX))
                held[-1].connect(m.socket)
            os.seteuid(0)
            assert m.takt("status").returncode == 0
            assert takt_as(m, BOB, "run", "-q", "-n", "1", "--", "true").returncode == 0
            for _ in range(20):  # whether it is turned away before it asks, or after
                done = takt_as(m, ALICE, "status")
                assert done.returncode == 69 and "a user may hold 64 of the 256" in done.stderr, done
        finally:
            os.seteuid(0)
            for one in held:
                one.close()
        kit.until(lambda: takt_as(m, ALICE, "status").returncode == 0, "there is room again")


def array_of(jobs):
    return {"argv": ["true"], "cwd": "/", "gpus": 1, "held": True, "array_first": 0, "array_last": jobs - 1}


def a_user_cannot_fill_the_queue():
    """Nor can all of them together for root."""
    with shared_machine(start=False) as m:
        m.start("--max-jobs", "64")
        status, name, said = refusal(m, ALICE, "POST", "/v1/jobs", array_of(17))
        assert (status, name) == (413, "LIMIT") and "a user may have 16 (user_max_jobs)" in said, said
        ask(m, ALICE, "POST", "/v1/jobs", array_of(16))
        assert refusal(m, ALICE, "POST", "/v1/jobs", job_of(["true"]))[0] == 413
        for uid in (BOB, 4444):
            ask(m, uid, "POST", "/v1/jobs", array_of(16))
        ask(m, 4445, "POST", "/v1/jobs", array_of(12))
        status, _, said = refusal(m, 4445, "POST", "/v1/jobs", job_of(["true"]))
        assert status == 413 and "kept for root (max_jobs)" in said, said
        ask(m, 0, "POST", "/v1/jobs", array_of(4))
        # What is over makes room for its owner.
        ask(m, ALICE, "POST", "/v1/jobs/1/cancel")
        kit.until(lambda: ask(m, ALICE, "GET", "/v1/jobs/1")["state"] == "cancelled", "the job is over")
        ask(m, ALICE, "POST", "/v1/jobs", job_of(["true"]))


def files_are_closed_to_others():
    with shared_machine(gpus=1) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sh", "-c", "echo word"], 1))["id"]
        m.client().wait(job)
        attempt = m.path(f"state/jobs/{job}.1")
        found = os.stat(attempt)
        assert found.st_mode & 0o007 == 0 and found.st_gid in (0, ALICE), found
        for folder, _, names in os.walk(m.path("state")):
            for name in names:
                path = os.path.join(folder, name)
                assert not as_user(BOB, os.access, path, os.R_OK), f"{path} can be read by others"
                assert not as_user(BOB, os.access, path, os.W_OK), f"{path} can be written by others"
        for name in ("takt.db", "clocks.journal"):
            assert not as_user(ALICE, os.access, m.path("state", ), os.W_OK)
            assert not as_user(ALICE, os.access, m.path("state/" + name), os.R_OK), name
        for name in ("launch.sock", "actuate.sock"):
            def connects(path=m.path("run/" + name)):
                with __import__("socket").socket(1, 5) as raw:  # AF_UNIX, SOCK_SEQPACKET
                    try:
                        raw.settimeout(kit.WAIT_S)
                        raw.connect(path)
                        raw.send(b"x")
                        return raw.recv(4096)
                    except OSError:
                        return b""
            # Nothing, or the refusal if it came before the end of the connection did.
            answer = as_user(ALICE, connects)
            assert answer == b"" or b"serves another user" in answer, f"{name} talks to anybody: {answer}"


def two_users_by_name():
    """Each way round: what is shown is who and where; nothing of the other is stopped, changed or read."""
    with shared_machine(start=False, gpus=2) as m, accounts(
            m.folder, f"root:x:0:0::/:/bin/sh\nada:x:{ALICE}:{ALICE}::/:/bin/sh\nbea:x:{BOB}:{BOB}::/:/bin/sh\n",
            f"root:x:0:\nada:x:{ALICE}:\nbea:x:{BOB}:\ntakt-admin:x:900:\n"):
        m.start()
        names, secrets = {ALICE: "ada", BOB: "bea"}, {ALICE: "swordfish", BOB: "opensesame"}
        jobs = {uid: ask(m, uid, "POST", "/v1/jobs", job_of(
            ["sh", "-c", f"echo {secrets[uid]}; exec sleep 300"], 1, env=["PATH=/bin", "TOKEN=" + secrets[uid]]))["id"]
            for uid in names}
        for uid, job in jobs.items():
            kit.until(lambda u=uid, j=job: secrets[u] in takt_as(m, u, "logs", str(j)).stdout, "it has spoken")
        for uid, other in ((ALICE, BOB), (BOB, ALICE)):
            job, theirs = str(jobs[other]), secrets[other]
            for words in (("status",), ("queue",), ("show", job), ("jobs",), ("explain", job)):
                said = takt_as(m, uid, *words)
                assert theirs not in said.stdout + said.stderr, (words, said)
            assert names[other] in takt_as(m, uid, "queue").stdout, "but who it is"
            for words in (("logs", job), ("cancel", job), ("freeze", job), ("requeue", job), ("update", "-p", "-1", job)):
                done = takt_as(m, uid, *words)
                assert done.returncode == 77 and theirs not in done.stdout + done.stderr, (words, done)
            pid = m.client().job(jobs[other])["pid"]
            assert not as_user(uid, os.access, f"/proc/{pid}/environ", os.R_OK)
            for folder, _, files in os.walk(m.path(f"state/jobs/{job}.1")):
                for name in files:
                    assert not as_user(uid, os.access, os.path.join(folder, name), os.R_OK), name
        assert {ask(m, 0, "GET", f"/v1/jobs/{job}")["state"] for job in jobs.values()} == {"running"}
        for uid, job in jobs.items():
            assert secrets[uid] in m.takt("logs", str(job)).stdout, "root reads it"
        assert takt_as(m, BOB, "cancel", str(jobs[ALICE]), groups=[900]).returncode == 0, "so does an administrator"
        assert m.takt("cancel", str(jobs[BOB])).returncode == 0, "and root"
        for uid, job in jobs.items():
            assert m.client().wait(job)["state"] == "cancelled"
            said = takt_as(m, BOB if uid == ALICE else ALICE, "jobs")
            assert secrets[uid] not in said.stdout, said
        report = takt_as(m, BOB, "report", "--by", "name").stdout
        assert secrets[ALICE] not in report, report


def users_without_a_name_are_their_number():
    """Neither has an entry in passwd, as users of containers have none: each is one of his own in all that is shown."""
    with shared_machine(gpus=2) as m:
        for uid in (ALICE, BOB):
            job = ask(m, uid, "POST", "/v1/jobs", job_of(["true"], 1))["id"]
            assert ask(m, uid, "GET", f"/v1/jobs/{job}")["user"] == str(uid)
            m.client().wait(job)
        rows = [line.split()[0] for line in m.takt("report").stdout.splitlines() if line]
        assert {str(ALICE), str(BOB)} <= {*rows}, rows
        for words in (("jobs",), ("report",)):
            done = m.takt(*words, "--user", str(ALICE))
            assert str(ALICE) in done.stdout and str(BOB) not in done.stdout, (words, done)
        root = m.client().submit(["true"])["id"]
        m.client().wait(root)
        assert str(root) in m.takt("jobs", "--user", "0").stdout.split(), "one with a name has a number, too"
        held = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1))["id"]
        kit.until(lambda: [gpu for gpu in m.client().status()["gpus"] if gpu.get("job_user") == str(ALICE)], "it is shown")
        assert f" {ALICE} " in m.takt("queue").stdout, m.takt("queue")
        load = subprocess.Popen([kit.TWIN, "load", "--gpus", "1", "--seconds", "600", "--quiet"], env=m.env(),
                                user=BOB, group=BOB, extra_groups=[], cwd="/")
        try:
            kit.until(lambda: f"{BOB} takt-twin({load.pid})" in m.takt("status").stdout, lambda: m.takt("status"))
        finally:
            load.kill()
            load.wait()
        ask(m, ALICE, "POST", f"/v1/jobs/{held}/cancel", {})
        made = m.takt("gpu", "reserve", "0", "--for-user", str(BOB), "--until", "10h", "--reason", "his")
        assert made.returncode == 0 and str(BOB) in m.takt("gpu").stdout, made
        assert ask(m, ALICE, "GET", "/v1/account")["user"] == str(ALICE)


def alone_means_alone():
    with shared_machine("own", gpus=1) as m:
        os.chmod(m.path("run"), 0o755)
        os.chmod(m.socket, 0o666)
        for method, path, body in (("GET", "/v1/status", None), ("GET", "/v1/version", None),
                                   ("POST", "/v1/jobs", job_of(["true"]))):
            code, _, message = refusal(m, BOB, method, path, body)
            assert code == 403 and str(BOB) in message and "users = all" in message, (path, code, message)
        assert m.takt("run", "-q", "-n", "1", "--", "true").returncode == 0


if __name__ == "__main__":
    sys.exit(kit.main([
        everybody_runs_as_himself, holds_and_priorities_are_the_owners_and_administrators,
        a_longer_time_limit_of_a_job_that_runs_is_an_administrators, an_output_is_opened_as_its_user,
        uids_of_the_system_are_refused, root_does_not_submit_to_a_users_own_takt,
        a_user_cannot_serve_all, all_are_served_where_jobs_can_be_kept_apart, a_place_that_is_not_the_users_is_named,
        what_is_mine_is_not_shown_to_others, an_environment_is_the_owners_alone_and_goes_with_the_job,
        a_copied_database_has_no_environments, a_planted_library_is_not_loaded_by_root_for_others,
        takt_twin_names_the_driver_to_root_for_others, a_link_in_place_of_the_log_leads_nowhere,
        only_the_owner_and_root_stop_a_job, only_its_owner_hands_a_job_in_again, a_users_live_jobs_are_listed_alone,
        an_id_that_another_user_has_copied_means_nothing,
        takt_top_shows_a_log_to_its_owner_and_root,
        who_calls_himself_anothers_shim_is_from_outside,
        clocks_only_of_gpus_held_alone,
        an_administrators_clocks_are_there_again_after_a_job,
        clocks_set_over_several_gpus_outlive_a_job_on_one,
        clocks_set_while_a_jobs_end_waits_for_the_disk_are_put_back,
        a_user_has_no_say_over_others_in_the_queue, a_user_cannot_hold_all_connections, a_user_cannot_fill_the_queue,
        files_are_closed_to_others, users_without_a_name_are_their_number, alone_means_alone,
        two_users_by_name]))
