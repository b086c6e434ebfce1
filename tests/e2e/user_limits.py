#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs within the limits of their users, and users who may start none: by PAM as it is here and the service file that
takt installs, with accounts and limits of the test's own.

Each case has an /etc of its own, in a mount namespace. Needs root, which alone can become others.

Usage: user_limits.py BUILD_FOLDER
"""
import contextlib
import ctypes
import os
import re
import resource
import shutil
import subprocess
import sys

import reachable  # noqa: F401, first: it may replace the build folder
import kit
from users import ALICE, BOB, ask, job_of, refusal, shared_machine

SERVICE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../units/pam.d/takt")
CAROL = 10000 + os.getpid() % 40000  # whose processes are nobody else's on this machine
NAMES = {ALICE: "alice", BOB: "bob", CAROL: "carol"}
CLOSED, NOBODY, UNKNOWN = 4444, 65534, 4545


@contextlib.contextmanager
def own_etc(folder):
    """/etc is a copy with our accounts, for this process and what it starts; gives the copy."""
    etc = os.path.join(folder, "etc")
    libc = ctypes.CDLL(None, use_errno=True)
    shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
    os.chmod(etc, 0o755)
    for path, line, users in (("passwd", "{name}:x:{uid}:{uid}::/:/bin/sh\n", NAMES), ("group", "{name}:x:{uid}:\n", NAMES),
                              ("shadow", "{name}:*:19000:0:99999:7:::\n", NAMES)):
        with open(os.path.join(etc, path), "a", encoding="ascii") as file:
            file.writelines(line.format(name=name, uid=uid) for uid, name in users.items())
    with open(os.path.join(etc, "passwd"), "a", encoding="ascii") as file:
        file.write(f"closed:x:{CLOSED}:{ALICE}::/:/usr/sbin/nologin\n")
    shutil.rmtree(os.path.join(etc, "security/limits.d"), ignore_errors=True)
    for gone in ("nologin", "pam.d/takt"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(etc, gone))
    if libc.unshare(0x00020000) != 0 or libc.mount(b"none", b"/", None, 0x44000, None) != 0:  # private from here on
        raise kit.Skip("a mount namespace of its own is not allowed here")
    if libc.mount(etc.encode(), b"/etc", None, 0x1000, None) != 0:  # MS_BIND
        raise kit.Skip("mounting is not allowed here")
    try:
        yield etc
    finally:
        libc.umount2(b"/etc", 2)


@contextlib.contextmanager
def machine_of_users(service=True, gpus=1, limits="", start=True):
    """takt for all users; PAM's service is takt's own file, or there is none."""
    with shared_machine(gpus=gpus, start=False) as m, own_etc(m.folder) as etc:
        write(etc, "security/limits.conf", limits)
        if service:
            shutil.copy(SERVICE, os.path.join(etc, "pam.d/takt"))
        m.etc = etc
        try:
            yield m.start() if start else m
        finally:
            m.kill_all()


def write(etc, name, text):
    with open(os.path.join(etc, name), "w", encoding="ascii") as file:
        file.write(text)


def submit(m, script, uid=ALICE, gpus=1, **more):
    return ask(m, uid, "POST", "/v1/jobs", job_of(["/bin/sh", "-c", script], gpus, **more))["id"]


def log_of(m, job, attempt=1):
    with open(m.path(f"state/jobs/{job}.{attempt}/log"), encoding="utf-8", errors="replace") as file:
        return file.read()


def is_over(m, job, state="done"):
    view = m.client().wait(job)
    assert view["state"] == state, view
    return view


def limits_in(text):
    """{name: (soft, hard)} of /proc/PID/limits."""
    return {line[:26].strip(): tuple(line[26:].split()[:2]) for line in text.splitlines() if re.match("Max ", line)}


def waits_with(m, job, *words):
    """It waits, and says why."""
    def said():
        view = m.client().job(job)
        return view["state"] == "waiting" and all(word in view.get("message", "") for word in words)
    kit.until(said, lambda: f"it waits and says {words}: {m.client().job(job)}")


LIMITS = """
alice  soft  nofile  333
alice  hard  nofile  444
bob    -     nofile  555
alice  hard  stack   16384
alice  -     fsize   2048
alice  hard  nproc   4321
alice  soft  core    77
alice  hard  memlock 64
bob    hard  cpu     9
"""


def limits_are_those_of_a_login():
    """The witness is a program of the system's that logs in as the user."""
    with machine_of_users(limits=LIMITS) as m:
        write(m.etc, "pam.d/runuser", "auth sufficient pam_rootok.so\nsession required pam_limits.so\n")
        for uid, name in ((ALICE, "alice"), (BOB, "bob")):
            job = submit(m, "cat /proc/self/limits", uid)
            is_over(m, job)
            jobs = limits_in(log_of(m, job))
            login = limits_in(subprocess.run(["runuser", "-u", name, "cat", "/proc/self/limits"], check=True,
                                             stdout=subprocess.PIPE, encoding="ascii").stdout)
            assert len(jobs) == 16, jobs
            for limit in ("Max cpu time", "Max file size", "Max processes", "Max stack size", "Max address space"):
                assert jobs[limit] == login[limit], (name, limit, jobs, login)
            if uid == ALICE:
                assert jobs["Max open files"] == ("333", "444") and jobs["Max file size"] == ("2097152",) * 2, jobs
                assert jobs["Max core file size"][0] == str(77 * 1024) and jobs["Max locked memory"][1] == "65536", jobs
            else:
                assert jobs["Max open files"] == ("555",) * 2 and jobs["Max cpu time"] == ("540",) * 2, jobs


def every_process_of_the_users_has_them():
    """A rank, a hook, a prefetch, a process at a terminal."""
    line = "grep 'open files' /proc/self/limits"
    with machine_of_users(limits=LIMITS) as m:
        job = submit(m, line, ranks=1)
        is_over(m, job)
        at_terminal = submit(m, line, pty=True)
        is_over(m, at_terminal)
        with_hook = submit(m, "true", hook=line)
        is_over(m, with_hook)
        kit.until(lambda: log_of(m, with_hook).count("open files") == 2, "its hook has spoken, at its start and its end")
        first = submit(m, f"until [ -e {m.path('over')} ]; do sleep 0.05; done")
        staged = submit(m, f"echo job; {line}", stage=True, prefetch=["/bin/sh", "-c", line])
        kit.until(lambda: os.path.exists(m.path(f"state/jobs/{staged}.1/log")) and "open files" in log_of(m, staged),
                  "it prefetches")
        with open(m.path("over"), "w", encoding="ascii"):
            pass
        is_over(m, first)
        is_over(m, staged)
        for one, count in ((job, 1), (at_terminal, 1), (with_hook, 2), (staged, 2)):
            assert len(re.findall(r"Max open files +333 +444 ", log_of(m, one))) == count, log_of(m, one)


def a_shim_outlives_the_limits_of_its_job():
    """A job that may write and compute no more is over; its end is on record, with the log that came before it."""
    limits = "alice - fsize 8\nalice - nofile 20\n"
    with machine_of_users(limits=limits) as m:
        for more in ({}, {"ranks": 1, "rank_prefix": True}, {"pty": True}):
            job = submit(m, "echo before; head -c 100000 /dev/zero > " + m.path("jobs/large") + "; echo after $?", **more)
            is_over(m, job)
            assert "before" in log_of(m, job) and re.search("after (153|1)\\b", log_of(m, job)), log_of(m, job)
            assert os.stat(m.path("jobs/large")).st_size <= 8192
            os.unlink(m.path("jobs/large"))
        is_over(m, submit(m, "head -c 100000 /dev/zero > " + m.path("jobs/own"), BOB))
        assert os.stat(m.path("jobs/own")).st_size == 100000


def processes_are_counted_by_user():
    """Of all his jobs together; who has no such limit has none."""
    with machine_of_users(limits="carol - nproc 3\n", gpus=2) as m:
        over = f"until [ -e {m.path('over')} ]; do sleep 0.1; done"
        many = submit(m, f"for i in 1 2 3 4 5 6; do sleep 600 & done; echo all; {over}", CAROL)
        is_over(m, many, "failed")
        assert "all" not in log_of(m, many) and "fork" in log_of(m, many), log_of(m, many)
        first = submit(m, f"sh -c '{over}; :' & wait", CAROL)  # two, and a sleep now and then
        kit.until(lambda: m.client().job(first)["state"] == "running", "it runs")
        second = submit(m, "sleep 600 & sleep 600 & sleep 600 & wait", CAROL)
        assert re.search("fork|processes", is_over(m, second, "failed").get("message", "") + log_of(m, second))
        is_over(m, submit(m, "for i in 1 2 3 4 5 6; do true & done; wait; echo all", BOB))
        with open(m.path("over"), "w", encoding="ascii"):
            pass
        m.client().wait(first)


def without_a_service_they_are_of_no_unit():
    """Whatever the daemon and its launcher were started with."""
    with machine_of_users(service=False, limits=LIMITS, start=False) as m:
        wide = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        m.wrap = ["prlimit", f"--nofile={wide}:{wide}", "--stack=1048576:", "--core=4096:", "--fsize=1000000000:", "--"]
        m.start()
        job = submit(m, "cat /proc/self/limits")
        is_over(m, job)
        jobs = limits_in(log_of(m, job))
        with open("/proc/1/limits", encoding="ascii") as file:
            first = limits_in(file.read())
        assert jobs["Max open files"][0] == "1024" and jobs["Max core file size"][0] == "0", jobs
        assert jobs["Max locked memory"][0] in ("8388608", first["Max locked memory"][0]), jobs
        for limit in ("Max stack size", "Max file size", "Max processes"):
            assert jobs[limit] == first[limit], (limit, jobs, first)


def a_takt_of_ones_own_passes_its_limits_on():
    """It is its user, who has set them."""
    with shared_machine(users="own", start=False) as m:
        m.wrap = ["prlimit", "--nofile=300:400", "--"]
        m.start()
        job = m.client().ask("POST", "/v1/jobs", job_of(["cat", "/proc/self/limits"]))["id"]
        is_over(m, job)
        assert limits_in(log_of(m, job))["Max open files"] == ("300", "400"), log_of(m, job)


def set_expiry(m, name, day):
    path = os.path.join(m.etc, "shadow")
    with open(path, encoding="ascii") as file:
        lines = [f"{name}:*:19000:0:99999:7::{day}:" if line.startswith(name + ":") else line
                 for line in file.read().splitlines()]
    write(m.etc, "shadow", "\n".join(lines) + "\n")


def an_expired_account_starts_no_job_until_it_is_not():
    """Its job waits, says so, and holds up nobody; it starts when the account is open again."""
    with machine_of_users() as m:
        set_expiry(m, "alice", 1)
        job = submit(m, "echo ran")
        waits_with(m, job, "alice", "expired")
        is_over(m, submit(m, "true", BOB))
        set_expiry(m, "alice", "")
        kit.until(lambda: m.client().job(job)["state"] == "done", lambda: f"it ran: {m.client().job(job)}")


def while_nobody_may_log_in_nothing_starts():
    with machine_of_users() as m:
        write(m.etc, "nologin", "down for new memory\n")
        job = submit(m, "echo ran")
        waits_with(m, job, "down for new memory")
        os.unlink(os.path.join(m.etc, "nologin"))
        kit.until(lambda: m.client().job(job)["state"] == "done", lambda: f"it ran: {m.client().job(job)}")


def an_account_that_is_closed_or_gone_starts_nothing():
    with machine_of_users() as m:
        waits_with(m, submit(m, "true", CLOSED), "closed")
        waits_with(m, submit(m, "true", UNKNOWN), str(UNKNOWN), "no account")
        is_over(m, submit(m, "true", BOB))


def a_module_that_hangs_holds_up_one_user():
    """Others start and are ended meanwhile; what hangs is ended with all that it started."""
    with machine_of_users(gpus=2) as m:
        module = m.path("module")
        kit.write_program(module, f"#!/bin/sh\n[ $PAM_USER = alice ] || exit 0\necho $$ >> {m.path('hung')}\n"
                                  "exec sleep 98765\n")
        with open(os.path.join(m.etc, "pam.d/takt"), "a", encoding="ascii") as file:
            file.write(f"session required pam_exec.so {module}\n")
        job = submit(m, "echo ran")
        kit.until(lambda: os.path.exists(m.path("hung")), "its start hangs")
        other = submit(m, "sleep 600", BOB)
        kit.until(lambda: m.client().job(other)["state"] == "running", lambda: f"it runs: {m.client().job(other)}")
        ask(m, BOB, "POST", f"/v1/jobs/{other}/cancel", {})
        is_over(m, other, "cancelled")
        waits_with(m, job, "PAM", "has not answered")
        with open(m.path("hung"), encoding="ascii") as file:
            first = int(file.readline())
        kit.until(lambda: not os.path.exists(f"/proc/{first}"), "what hung is ended, though it is no group of the start's")
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled")


def a_module_that_crashes_is_told():
    with machine_of_users() as m:
        kit.write_program(m.path("module"), "#!/bin/sh\nkill -KILL $PPID\nsleep 1\n")
        with open(os.path.join(m.etc, "pam.d/takt"), "a", encoding="ascii") as file:
            file.write(f"session required pam_exec.so {m.path('module')}\n")
        waits_with(m, submit(m, "true"), "without an answer")


def nothing_of_the_users_reaches_a_module():
    """Neither what his job is to have as environment, nor a file of his."""
    with machine_of_users() as m:
        kit.write_program(m.path("module"), f"#!/bin/sh\nexport > {m.path('seen')}\nid >> {m.path('seen')}\nls -l /proc/self/fd "
                                            f">> {m.path('seen')}\npwd >> {m.path('seen')}\n")
        with open(os.path.join(m.etc, "pam.d/takt"), "a", encoding="ascii") as file:
            file.write(f"session required pam_exec.so {m.path('module')}\n")
        job = ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["true"]), "env": [
            "PATH=/tmp/hers:/usr/bin:/bin", "LD_PRELOAD=/tmp/hers.so", "HERS=1", "TAKT_CRASH_AT=hers"]})["id"]
        is_over(m, job)
        with open(m.path("seen"), encoding="utf-8") as file:
            seen = file.read()
        assert "hers" not in seen.lower() and "uid=0(root)" in seen and "state/jobs" not in seen, seen


def system_users_are_refused_unless_allowed():
    with machine_of_users(start=False) as m:
        m.start()
        for uid in (33, NOBODY):
            status, name, message = refusal(m, uid, "POST", "/v1/jobs", job_of(["true"]))
            assert (status, name) == (403, "EPERM") and "allow_system_users" in message and str(uid) in message, message
        m.stop()
        write(m.etc, "login.defs", "# first\nUID_MIN\t\t\t5000\n")
        m.start()
        assert "5000" in refusal(m, ALICE, "POST", "/v1/jobs", job_of(["true"]))[2]
        m.stop()
        m.more_flags = ["--allow-system-users", "yes"]
        os.unlink(os.path.join(m.etc, "pam.d/takt"))
        m.start()
        for uid in (33, NOBODY, ALICE):
            job = submit(m, "id -u", uid)
            is_over(m, job)
            assert log_of(m, job) == f"{uid}\n"


if __name__ == "__main__":
    sys.exit(kit.main([
        limits_are_those_of_a_login,
        every_process_of_the_users_has_them,
        a_shim_outlives_the_limits_of_its_job,
        processes_are_counted_by_user,
        without_a_service_they_are_of_no_unit,
        a_takt_of_ones_own_passes_its_limits_on,
        an_expired_account_starts_no_job_until_it_is_not,
        while_nobody_may_log_in_nothing_starts,
        an_account_that_is_closed_or_gone_starts_nothing,
        a_module_that_hangs_holds_up_one_user,
        a_module_that_crashes_is_told,
        nothing_of_the_users_reaches_a_module,
        system_users_are_refused_unless_allowed,
    ], at_once=1))
