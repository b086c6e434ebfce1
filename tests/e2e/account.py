#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt for all users, served by an account that may do nothing: launcher and actuator alone are root, as the units
have it (docs/install.md). Users are numbers here; the account has a name where that matters, in files that only a mount
namespace of the test's own has. Needs root, which starts the helpers.

Usage: account.py BUILD_FOLDER
"""
import contextlib
import os
import signal
import subprocess
import sys

import reachable  # noqa: F401, first: it may replace the build folder
import kit
import users
from users import ALICE, BOB, as_user, ask, job_of, refusal, takt_as

TAKT = 977  # an account of the system's


class Helpers:
    """Root's launcher and actuator, as a service manager runs them: started again when they die."""

    def __init__(self, m):
        self.m, self.running = m, {}

    def _start(self, name, *words):
        m, door = self.m, self.m.path(f"helpers/{name[5:]}.sock")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(door)
        self.running[name] = subprocess.Popen(
            [m.path("bin/" + name), "--socket", door, "--client-uid", str(TAKT), *words], env=m.env(),
            stdin=subprocess.DEVNULL, stdout=m.log, stderr=m.log, start_new_session=True)
        kit.until(lambda: os.path.exists(door), m.said)
        os.chown(door, TAKT, TAKT)

    def launch(self):
        m = self.m
        self._start("takt-launch", "--jobs", m.path("state/jobs"), "--shim", m.path("bin/takt-shim"),
                    "--allow-weak-isolation")

    def actuate(self):
        m = self.m
        self._start("takt-actuate", "--journal", m.path("clocks/clocks.journal"), "--lock", m.path("clocks/clocks.lock"),
                    "--guard", m.path("bin/takt-guard"), "--nvml", kit.TWIN_LIB, "--declared",
                    m.path("run/clocks.declared"))

    def end(self, name):
        process = self.running.pop(name)
        process.kill()
        process.wait(kit.WAIT_S)

    def __enter__(self):
        self.launch()
        self.actuate()
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            process.terminate()
            process.wait(kit.WAIT_S)


def make_places(m):
    """What the units make: places of the account's, and of root's."""
    for name, owner, mode in (("run", TAKT, 0o755), ("state", TAKT, 0o711), ("state/jobs", TAKT, 0o711),
                              ("locks", TAKT, 0o755), ("helpers", 0, 0o755), ("clocks", 0, 0o711)):
        os.makedirs(m.path(name), exist_ok=True)
        os.chmod(m.path(name), mode)
        os.chown(m.path(name), owner, owner)


def start(m):
    m.spawn(user=TAKT)

    def ready():
        assert m.serve.poll() is None, "takt ended: " + m.said()
        return m.answers()
    kit.until(ready, m.said)


@contextlib.contextmanager
def served(**more):
    """takt as the account, with root's helpers; (machine, helpers)."""
    with users.shared_machine("all", start=False, **more) as m:
        make_places(m)
        m.more_flags = ("--helpers-dir", m.path("helpers"), "--clocks-dir", m.path("clocks"))
        with Helpers(m) as helpers:
            start(m)
            yield m, helpers


def ids_of(pid):
    """(real uids, capabilities that it has or may get) of a process."""
    status = kit.environ_of(pid, "status").decode()
    words = {line.split(":")[0]: line.split()[1:] for line in status.splitlines()}
    return set(words["Uid"] + words["Gid"]), {int(words[name][0], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")}


def wait_running(m, uid, job):
    def running():
        view = ask(m, uid, "GET", f"/v1/jobs/{job}")
        return view if view["state"] == "running" and view.get("pid") else None
    return kit.until(running, m.said)


def load_job(m, before):
    """A job that is to be seen on its GPU."""
    words = " ".join(m.load_argv("--seconds", "600", "--quiet"))
    return job_of(["sh", "-c", f"{before} {words}"], 1, env=["PATH=/usr/bin:/bin", "TAKT_TWIN=" + m.path("machine")])


def whose(m):
    """The jobs of the processes on GPUs, 0 of one from outside."""
    gpus = ask(m, 0, "GET", "/v1/status")["gpus"]
    return [proc.get("job_id", 0) for gpu in gpus for proc in gpu.get("procs", [])]


def who_serves_may_nothing():
    with served(gpus=2) as (m, helpers):
        (pid,) = m.pids("takt")
        assert ids_of(pid) == ({str(TAKT)}, {0}), ids_of(pid)
        assert {helpers.running[name].poll() for name in helpers.running} == {None}, m.said()
        assert sorted(m.pids("takt-launch") + m.pids("takt-actuate")) == sorted(
            process.pid for process in helpers.running.values()), "the account started helpers of its own"


def jobs_of_two_users_run_as_them_and_are_theirs_alone():
    with served(gpus=2) as (m, _):
        for uid in (ALICE, BOB):
            done = takt_as(m, uid, "run", "-q", "-n", "1", "--", "sh", "-c", "id -u; id -g; id -G; grep CapEff /proc/self/status")
            assert done.returncode == 0 and done.stdout.split()[:3] == [str(uid)] * 3, done
            assert "0000000000000000" in done.stdout, done
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sh", "-c", "echo swordfish; exec sleep 600"], 1))["id"]
        pid = wait_running(m, ALICE, job)["pid"]
        kit.until(lambda: "swordfish" in takt_as(m, ALICE, "logs", str(job)).stdout, m.said)
        assert refusal(m, BOB, "POST", f"/v1/jobs/{job}/cancel", {})[:2] == (403, "EPERM")
        assert "swordfish" not in takt_as(m, BOB, "logs", str(job)).stdout
        assert takt_as(m, BOB, "logs", str(job)).returncode != 0
        os.kill(pid, 0)
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        assert as_user(ALICE, lambda: kit.Client(m.socket).wait(job))["state"] == "cancelled"
        kit.until(lambda: not os.path.exists(f"/proc/{pid}"), "its process is gone")
        job = ask(m, BOB, "POST", "/v1/jobs", job_of(["sleep", "600"], 2))["id"]
        wait_running(m, BOB, job)
        assert m.takt("cancel", str(job)).returncode == 0, "root is an administrator"
        assert m.client().wait(job)["state"] == "cancelled"


def accounts_of_the_system_run_nothing():
    """Nor does the one that serves; nor root, as whom the daemon could then run things."""
    with served(gpus=1) as (m, _):
        for uid in (TAKT, 0):
            status, name, why = refusal(m, uid, "POST", "/v1/jobs", job_of(["true"]))
            assert (status, name) == (403, "EPERM") and "1000" in why, why
        assert refusal(m, TAKT, "POST", "/v1/gpus/drain", {"gpus": [0], "reason": "mine"})[:2] == (403, "EPERM")


def jobs_outlive_it():
    with served(gpus=2) as (m, helpers):
        long = ask(m, ALICE, "POST", "/v1/jobs", job_of(
            ["sh", "-c", f"echo begun >> {m.path('jobs/long')}; until test -e {m.path('jobs/over')}; do sleep 0.2; done; exit 7"], 1))["id"]
        pid = wait_running(m, ALICE, long)["pid"]
        m.kill()
        short = None
        start(m)
        assert wait_running(m, ALICE, long)["pid"] == pid
        for name, again in (("takt-launch", helpers.launch), ("takt-actuate", helpers.actuate)):
            helpers.end(name)
            again()
            short = ask(m, BOB, "POST", "/v1/jobs", job_of(["true"], 1))["id"]
            assert as_user(BOB, lambda: kit.Client(m.socket).wait(short))["state"] == "done", (name, m.said())
        m.kill()
        with open(m.path("jobs/over"), "w", encoding="ascii"):
            pass
        kit.until(lambda: not os.path.exists(f"/proc/{pid}"), "it ends while nobody serves")
        start(m)
        view = as_user(ALICE, lambda: kit.Client(m.socket).wait(long))
        assert view["state"] == "failed" and view["exit_code"] == 7, view
        with open(m.path("jobs/long"), encoding="ascii") as file:
            assert file.read() == "begun\n"


def clocks_are_set_by_root_and_put_back():
    with served(gpus=2) as (m, _):
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 1, clock_ask="lock", clock_mhz=1200))["id"]
        wait_running(m, ALICE, job)
        kit.until(lambda: len(m.locked()) == 1, m.boards)
        m.kill()
        start(m)
        kit.until(lambda: len(m.locked()) == 1, m.boards)
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        kit.until(lambda: not m.locked(), m.boards)


def what_root_served_is_taken_over_with_its_jobs():
    """An upgrade: root's takt with a job, then the account's, given the files by `takt admin account`."""
    with users.shared_machine("all", start=False, gpus=2) as m, users.accounts(
            m.folder, f"root:x:0:0::/:/bin/sh\ntakt:x:{TAKT}:{TAKT}::/:/bin/sh\n", f"root:x:0:\ntakt:x:{TAKT}:\n"):
        m.start()
        ended = ask(m, BOB, "POST", "/v1/jobs", job_of(["echo", "before"], 1))["id"]
        assert m.client().wait(ended)["state"] == "done"
        long = ask(m, ALICE, "POST", "/v1/jobs", load_job(m, "echo swordfish; exec"))["id"]
        waits = ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["true"]), "held": True})["id"]
        pid = wait_running(m, ALICE, long)["pid"]
        m.stop()
        log = m.path(f"state/jobs/{long}.1/log")
        give = ("admin", "account", "takt", "--state-dir", m.path("state"))
        kit.until(lambda: not m.pids("takt-actuate") and not m.pids("takt-guard"), m.processes)
        for words, why in ((("admin", "account", "nobody-at-all"), "systemd-sysusers"), (("admin", "account"), "NAME")):
            done = m.takt(*words, "--state-dir", m.path("state"))
            assert done.returncode and why in done.stderr, done
        done = takt_as(m, ALICE, *give)
        assert done.returncode == 77, done
        for _ in range(2):  # the second time there is nothing to do
            done = m.takt(*give)
            assert done.returncode == 0, done
        assert as_user(ALICE, os.access, log, os.W_OK), "what is lent to the user stays lent"
        for name in ("takt.db", "jobs", "."):
            assert os.stat(m.path("state/" + name)).st_uid == TAKT, name
        with open("/proc/%d/stat" % pid, encoding="ascii"):
            pass
        for place in ("run", "locks"):
            subprocess.run(["chown", "-R", f"{TAKT}:{TAKT}", m.path(place)], check=True)
        make_places(m)
        m.more_flags = ("--helpers-dir", m.path("helpers"), "--clocks-dir", m.path("clocks"))
        with Helpers(m):
            start(m)
            assert wait_running(m, ALICE, long)["pid"] == pid
            assert "swordfish" in takt_as(m, ALICE, "logs", str(long)).stdout
            assert "before" in takt_as(m, BOB, "logs", str(ended)).stdout
            kit.until(lambda: whose(m) == [long], m.client().status)
            ask(m, ALICE, "POST", f"/v1/jobs/{long}/cancel", {})
            assert as_user(ALICE, lambda: kit.Client(m.socket).wait(long))["state"] == "cancelled"
            ask(m, ALICE, "POST", f"/v1/jobs/{waits}/change", {"held": False})
            assert as_user(ALICE, lambda: kit.Client(m.socket).wait(waits))["state"] == "done"
            m.stop()
        os.chown(m.path("state"), BOB, BOB)
        done = m.takt(*give)
        assert done.returncode == 77 and str(BOB) in done.stderr, done


def a_restored_database_is_still_its_own():
    """Root restores as the account: what that has planted in its place is not written by root."""
    with served(gpus=1) as (m, _):
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["true"], 1))["id"]
        assert m.client().wait(job)["state"] == "done"
        words = ("--state-dir", m.path("state"))
        copy, roots = m.path("copy.db"), m.path("roots.db")
        assert m.takt("admin", "backup", copy, *words).returncode == 0
        assert os.stat(copy).st_uid == TAKT, os.stat(copy)
        m.stop()
        kit.copy_program(copy, roots)
        os.chown(roots, 0, 0)
        os.chmod(roots, 0o600)
        done = m.takt("admin", "restore", roots, *words)
        assert done.returncode != 0 and f"as user {TAKT}" in done.stderr, done
        done = m.takt("admin", "restore", copy, *words)
        assert done.returncode == 0, done
        assert os.stat(m.path("state/takt.db")).st_uid == TAKT
        os.symlink(roots, m.path("state/report.key"))
        done = m.takt("admin", "report", m.path("state/report"), *words)
        assert done.returncode != 0 and "report.key" in done.stderr, done
        os.unlink(m.path("state/report.key"))
        done = m.takt("admin", "report", m.path("state/report"), *words)
        assert done.returncode == 0 and os.stat(m.path("state/report")).st_uid == TAKT, done
        start(m)
        assert m.client().job(job)["state"] == "done"


def a_containers_process_is_the_jobs_whose_id_it_has():
    """It is nobody's child, and only root may read its environment: the launcher is asked."""
    with served(gpus=2) as (m, helpers):
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["sleep", "600"], 2, ranks=2))["id"]  # ids of these are known, too
        pid = wait_running(m, ALICE, job)["pid"]
        kit.until(lambda: b"sleep" in kit.environ_of(pid, "cmdline"), "it is its program")
        (name,) = [word for word in kit.environ_of(pid, "environ").split(b"\0") if word.startswith(b"TAKT_ATTEMPT=")]
        kit.copy_program("/bin/sh", m.path("containerd-shim"))
        load = " ".join(m.load_argv("--gpus", "0", "--seconds", "600", "--quiet"))

        @contextlib.contextmanager
        def contained(uid):
            runtime = subprocess.Popen(
                [m.path("containerd-shim"), "-c", f"{load} & wait"], env=m.env(TAKT_ATTEMPT=name.decode().partition("=")[2]),
                user=uid, group=uid, extra_groups=[], stdout=subprocess.DEVNULL, start_new_session=True)
            try:
                kit.until(lambda: whose(m) == [0], m.client().status)
                yield
            finally:
                os.killpg(runtime.pid, signal.SIGKILL)
                runtime.wait(kit.WAIT_S)
            kit.until(lambda: not whose(m), m.client().status)
        helpers.end("takt-launch")  # who is asked: until he answers nothing is known
        with contained(ALICE):
            helpers.launch()
            kit.until(lambda: whose(m) == [job], m.client().status)
        with contained(BOB):
            ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
            kit.until(lambda: ask(m, 0, "GET", "/v1/status")["gpus"][0]["state"] == "outside", m.client().status)
            assert whose(m) == [0]


def without_roots_helpers_it_says_so():
    with users.shared_machine("all", start=False, gpus=1) as m:
        make_places(m)
        m.more_flags = ("--helpers-dir", m.path("helpers"), "--clocks-dir", m.path("clocks"))
        m.spawn(user=TAKT)
        assert m.died() == 77, m.said()
        assert "takt-launch that runs as root" in m.said() and m.path("helpers") in m.said(), m.said()
        assert not m.processes(), m.processes()


def what_lies_where_clocks_are_declared_is_read_with_care():
    """By root, in a folder of the account's: no link to a file of root's is followed, no pipe waited for."""
    with served(gpus=1) as (m, helpers):
        secret = m.path("secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("opensesame\n")
        declared = m.path("run/clocks.declared")
        for plant in (lambda: os.symlink(secret, declared), lambda: os.mkfifo(declared), lambda: os.link(secret, declared)):
            helpers.end("takt-actuate")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(declared)
            plant()
            kit.until(lambda: not m.pids("takt-guard"), m.processes)
            process = subprocess.run(
                [m.path("bin/takt-actuate"), "--declare", declared, "--declared", declared, "--journal",
                 m.path("clocks/clocks.journal"), "--lock", m.path("clocks/clocks.lock"), "--guard",
                 m.path("bin/takt-guard"), "--nvml", kit.TWIN_LIB], env=m.env(), capture_output=True, text=True, check=False,
                timeout=kit.WAIT_S)
            assert process.returncode != 0 and "opensesame" not in process.stdout + process.stderr, process
            os.unlink(declared)
            helpers.actuate()


if __name__ == "__main__":
    sys.exit(kit.main([
        who_serves_may_nothing, jobs_of_two_users_run_as_them_and_are_theirs_alone, accounts_of_the_system_run_nothing,
        jobs_outlive_it, clocks_are_set_by_root_and_put_back, what_root_served_is_taken_over_with_its_jobs,
        a_restored_database_is_still_its_own, a_containers_process_is_the_jobs_whose_id_it_has, without_roots_helpers_it_says_so,
        what_lies_where_clocks_are_declared_is_read_with_care]))
