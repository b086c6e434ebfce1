#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever has taken over a process of root's: what the kernel still does for him.

Each of them is made to make calls that it has no business with (tests/made_to_call.c), where it waits, by the kernel's
means for debuggers: so it is the filter of the real process that answers. The same calls are made by a process of
root's that is nothing of takt's, where none of them may be refused, or the case proves nothing.

Usage: root_processes.py BUILD_FOLDER
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import reachable  # noqa: E402,F401, first: it may replace the build folder
import kit  # noqa: E402
import tap  # noqa: E402
from hostile_job import is_over, log_of, runs, submit  # noqa: E402
from users import ALICE, ask, shared_machine  # noqa: E402

MADE_TO_CALL = os.path.join(kit.BUILD, "tests/takt-made-to-call")
REFUSED = "Operation not permitted"

# What no job can do to the machine either, whoever it becomes.
MACHINE = ("init_module finit_module delete_module kexec_load kexec_file_load swapon swapoff acct settimeofday "
           "clock_settime iopl ioperm").split()
# What jobs do, in containers of their own, under debuggers.
JOBS_TOO = ("mount umount2 pivot_root chroot unshare setns fsopen move_mount open_by_handle_at sethostname reboot syslog bpf "
            "perf_event_open ptrace process_vm_writev userfaultfd io_uring_setup keyctl add_key quotactl fanotify_init "
            "personality").split() + ["socket(inet)", "socket(packet)", "clone(namespace)"]
IDS = ["setuid", "setgroups", "setresuid"]
EVERYBODY = "getpid"
WHAT = {
    "takt-launch": MACHINE,
    "takt-shim": MACHINE + JOBS_TOO + IDS + ["bind", "listen", "connect", "execve"],
    "takt-actuate": MACHINE + JOBS_TOO,
    "takt-guard": MACHINE + JOBS_TOO + ["bind", "listen"],
    "a job": MACHINE,
}
SANITIZERS = ("ptrace", "personality")  # a sanitized process looks for leaks with them

# Rights by their numbers in capabilities(7).
CHOWN, DAC, FOWNER, FSETID, KILL, SETGID, SETUID, NET_ADMIN, MODULE, RAWIO, PTRACE, PACCT, ADMIN, BOOT, NICE, RESOURCE, TIME, \
    MKNOD, AUDIT_WRITE, AUDIT_CONTROL, MAC_OVERRIDE, MAC_ADMIN, WAKE_ALARM, BLOCK_SUSPEND, BPF = (
        0, 1, 3, 4, 5, 6, 7, 12, 16, 17, 19, 20, 21, 22, 23, 24, 25, 27, 29, 30, 32, 33, 35, 36, 39)
DRIVERS = {ADMIN, NICE, MKNOD, CHOWN, FOWNER, DAC}
LAUNCHERS = {CHOWN, FOWNER, FSETID, DAC, SETUID, SETGID, RESOURCE, NICE, KILL, PTRACE, BPF, NET_ADMIN, AUDIT_WRITE,
             AUDIT_CONTROL}
MACHINES = {MODULE, RAWIO, BOOT, TIME, PACCT, MAC_ADMIN, MAC_OVERRIDE, WAKE_ALARM, BLOCK_SUSPEND}

SEEN = {}


def answers(pid, names):
    """{call: what the kernel said}"""
    done = subprocess.run([MADE_TO_CALL, str(pid), *names], capture_output=True, text=True, check=False,
                          timeout=kit.WAIT_S)
    if done.returncode == 77:
        raise kit.Skip(done.stdout.strip())
    assert done.returncode == 0, done
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def rights(pid):
    """{"Eff": {number, ...}, ...}, and other lines of its status as numbers."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        text = file.read()
    found = {name: {bit for bit in range(64) if int(mask, 16) >> bit & 1}
             for name, mask in re.findall(r"^Cap(\w+):\t(\w+)$", text, re.M)}
    found.update((name, int(value)) for name, value in re.findall(r"^(NoNewPrivs|Seccomp):\t(\d+)$", text, re.M))
    return found


def see():
    """Once for all cases: what each process was answered, and what it may."""
    if SEEN:
        return SEEN
    with shared_machine(gpus=1) as m:
        job = submit(m, "exec sleep 600")
        shim, pid = runs(m, job)
        kit.until(lambda: m.pids("takt-guard") and m.pids("takt-actuate"), m.processes)
        kit.until(lambda: kit.environ_of(pid, "comm") == b"sleep\n", "it sleeps")
        others = subprocess.Popen(["sleep", "600"])
        pids = {"takt-launch": m.pids("takt-launch")[0], "takt-shim": shim, "takt-actuate": m.pids("takt-actuate")[0],
                "takt-guard": m.pids("takt-guard")[0], "a job": pid}
        try:
            all_calls = subprocess.run([MADE_TO_CALL, "--list"], capture_output=True, text=True, check=True).stdout.split()
            SEEN["others"] = answers(others.pid, all_calls)
            SEEN["rights"] = {who: rights(pid) for who, pid in pids.items()}
            SEEN["had"] = rights(others.pid)
            for who, pid in pids.items():
                SEEN[who] = answers(pid, [*WHAT[who], EVERYBODY])
        finally:
            others.kill()
            others.wait(kit.WAIT_S)
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled")  # all of them went on
        SEEN["said"] = {who: m.said() for who in ("takt-actuate", "takt-guard")}
        SEEN["said"]["takt-shim"] = log_of(m, job)
    return SEEN


def refused(who, call):
    def case():
        if call in SANITIZERS and tap.is_sanitized(kit.TWIN_LIB):
            raise kit.Skip("a sanitizer needs it")
        seen = see()
        assert seen["others"][call] != REFUSED, f"nobody may do it here: {seen['others'][call]}"
        assert seen[who][call] == REFUSED, seen[who][call]
        if who in seen["said"]:
            name = call.partition("(")[0]
            assert f"{who}: the system call '{name}' was refused" in seen["said"][who], seen["said"][who]
    return f"{who} cannot {call}", case


def what_is_theirs_they_may():
    for who in WHAT:
        assert see()[who][EVERYBODY] == "done", (who, see()[who])


def roots_processes_have_the_rights_that_they_need():
    had, found = see()["had"]["Prm"], see()["rights"]
    for who, own, started in (("takt-launch", LAUNCHERS, see()["had"]["Bnd"] - MACHINES), ("takt-actuate", DRIVERS, DRIVERS),
                              ("takt-guard", DRIVERS, DRIVERS),
                              ("takt-shim", {KILL, SETUID}, see()["had"]["Bnd"] - MACHINES)):
        view = found[who]
        assert view["Prm"] == view["Eff"] == own & had, (who, view)
        assert view["Bnd"] == started & see()["had"]["Bnd"] and not view["Amb"] and not view["Inh"], (who, view)
        assert view["Seccomp"] == 2 and view["NoNewPrivs"] == (who != "takt-launch"), (who, view)


def a_job_has_no_rights_and_may_get_some():
    """It may run sudo: what a set-user-ID program makes of it is root, but for what is the machine's."""
    view = see()["rights"]["a job"]
    assert not view["Prm"] and not view["Eff"] and not view["NoNewPrivs"], view
    assert view["Bnd"] == see()["had"]["Bnd"] - MACHINES, view


def a_set_user_id_program_of_a_job_is_roots():
    with shared_machine(gpus=1) as m:
        shutil.copy("/usr/bin/sed", m.path("jobs/as-root"))
        os.chmod(m.path("jobs/as-root"), 0o4755)
        if os.statvfs(m.folder).f_flag & os.ST_NOSUID:
            raise kit.Skip("the folder of tests is on a file system without set-user-ID programs")
        job = submit(m, f"{m.path('jobs/as-root')} -n 's/^Uid://p;s/^CapEff://p' /proc/self/status")
        is_over(m, job, "done")
        user, mask = log_of(m, job).splitlines()
        assert user.split()[1] == "0", log_of(m, job)
        assert {bit for bit in range(64) if int(mask, 16) >> bit & 1} == see()["had"]["Bnd"] - MACHINES, mask


def a_job_makes_containers_as_before():
    with shared_machine(gpus=1) as m:
        job = submit(m, "unshare -Urmpf sh -c 'mount -t tmpfs none /tmp && mount | tail -n 1' && echo fine")
        is_over(m, job, "done", "failed")
        if "fine" not in log_of(m, job) and subprocess.run(
                ["unshare", "-Urm", "true"], user=ALICE, group=ALICE, extra_groups=[], check=False).returncode:
            raise kit.Skip("users may not have namespaces here")
        assert "none on /tmp type tmpfs" in log_of(m, job), log_of(m, job)


def who_dies_of_a_refused_call_is_named_and_started_again():
    """A library had held back the signal by which it is told."""
    with shared_machine(gpus=1) as m:
        kit.until(lambda: m.pids("takt-guard"), m.processes)
        (actuator,) = m.pids("takt-actuate")
        made = subprocess.run([MADE_TO_CALL, "--deaf", str(actuator), "bpf"], capture_output=True, text=True, check=False)
        if made.returncode == 77:
            raise kit.Skip(made.stdout.strip())
        assert made.returncode == 0, made
        kit.until(lambda: "takt-actuate was ended by signal 31 (Bad system call)" in m.said(), m.said)
        kit.until(lambda: m.pids("takt-actuate") not in ([], [actuator]), m.processes)


if __name__ == "__main__":
    sys.exit(kit.main([*(refused(who, call) for who, calls in WHAT.items() for call in calls), what_is_theirs_they_may,
                       roots_processes_have_the_rights_that_they_need, a_job_has_no_rights_and_may_get_some,
                       a_set_user_id_program_of_a_job_is_roots, who_dies_of_a_refused_call_is_named_and_started_again,
                       a_job_makes_containers_as_before]))
