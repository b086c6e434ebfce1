#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job, and its user at a shell of his own, that try to fill the disk that takt keeps its state on.

What they may write to there are the log and the progress file of an attempt. How much of the disk these have the
kernel says.

Usage: hostile_disk.py BUILD_FOLDER
"""
import contextlib
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import reachable  # noqa: E402,F401, first: it may replace the build folder
import kit  # noqa: E402
from users import ALICE, BOB, as_user, ask, job_of, shared_machine  # noqa: E402

MIB = 1 << 20
LIMIT = 4 * MIB
SLACK = MIB  # what a file system takes on top
MUCH = 128 * MIB
# Where it writes, and that it has: a file that root looks at, since its own files are what is filled.
FIRST = "set -e; log=/proc/self/fd/1; me={jobs}/${{TAKT_ATTEMPT%.*}}; echo the first line; "
LAST = "; touch {here}/tried; exec sleep 600"


@contextlib.contextmanager
def bounded(**more):
    with shared_machine(gpus=1, start=False, **more) as m:
        yield m.start("--output-limit", f"{LIMIT // MIB}M")


def submit(m, script):
    words = (FIRST + script + LAST).format(jobs=m.path("state/jobs"), here=m.path("jobs"), much=MUCH)
    return ask(m, ALICE, "POST", "/v1/jobs", job_of(["/bin/sh", "-c", words], 1))["id"]


def path_of(m, job, name="log"):
    return m.path(f"state/jobs/{job}.1/{name}")


def on_disk(m, job, name="log"):
    return os.stat(path_of(m, job, name)).st_blocks * 512


def tried(m, job):
    kit.until(lambda: os.path.exists(m.path("jobs/tried")) or m.client().job(job)["state"] == "failed", "it has tried")
    with open(path_of(m, job), encoding="utf-8", errors="replace") as log:
        assert os.path.exists(m.path("jobs/tried")), log.read(4000)


def cancel(m, job):
    ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
    m.client().wait(job)


def bound(script, most, name="log"):
    """The job writes so in its way; the disk has no more of the file than may be. It goes on, and its log begins as it did."""
    def case():
        with bounded() as m:
            job = submit(m, script)
            tried(m, job)
            kit.until(lambda: on_disk(m, job, name) <= most, lambda: os.stat(path_of(m, job, name)))
            assert m.client().job(job)["state"] == "running"
            with open(path_of(m, job), "rb") as log:
                assert log.read(15) == b"the first line\n"
            cancel(m, job)
            assert on_disk(m, job, name) <= most, os.stat(path_of(m, job, name))
    return case


HOLE = "truncate -s 1T $log; sleep 2; "  # it has been looked at before the hole is written to
MAPPED = """python3 -c '
import mmap, time
with open("/proc/self/fd/3", "r+b") as file:
    size = {much}
    log = mmap.mmap(file.fileno(), 2 * size)
    for at in range(0, size, 1 << 20):
        log[at + (8 << 20):at + (9 << 20)] = bytes([1]) * (1 << 20)
'"""

WAYS = {
    "room behind the end of its log": (
        "fallocate -n -o 8M -l {much} $log", 2 * LIMIT + SLACK),
    "room for its log": (
        "fallocate -l {much} $log", LIMIT + SLACK),
    "what it writes into the hole of its log": (
        HOLE + "for at in 2 200 400; do dd if=/dev/zero of=$log conv=notrunc bs=1M seek=$at count=64 2>&1; sleep 1; done",
        LIMIT + SLACK),
    "what it maps of its log": (
        HOLE + "exec 3<&1; " + MAPPED, LIMIT + SLACK),
    "what it writes to its progress file": (
        "head -c {much} /dev/zero > $TAKT_PROGRESS", MIB, "progress"),
    "room behind the end of its progress file": (
        "fallocate -n -l {much} $TAKT_PROGRESS", MIB, "progress"),
    "what it maps of its progress file": (
        "truncate -s 1G $TAKT_PROGRESS; exec 3<>$TAKT_PROGRESS; " + MAPPED + " 2>&1 || true", MIB, "progress"),
}


def progress_is_told_after_a_flood():
    """The file is never shorter than ranks may have it mapped."""
    with bounded() as m:
        job = submit(m, "yes | head -c {much} > $TAKT_PROGRESS; sleep 2; : > $TAKT_PROGRESS; "
                     + f"{m.path('bin/takt')} progress --steps 7")
        tried(m, job)
        kit.until(lambda: ask(m, ALICE, "GET", f"/v1/jobs/{job}").get("progress", {}).get("steps") == 7,
                  lambda: ask(m, ALICE, "GET", f"/v1/jobs/{job}"))
        cancel(m, job)


# Once it is over.

def done(m, script="echo the first line", **more):
    job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["/bin/sh", "-c", script], 1, **more))["id"]
    view = m.client().wait(job)
    assert view["state"] == "done", view
    return job


def may(what, *arguments):
    try:
        as_user(ALICE, what, *arguments)
        return True
    except PermissionError:
        return False


def open_as(mode):
    def call(path):
        with open(path, mode):
            pass
    return call


def is_closed(m, job):
    """Its user can read what there is and change nothing of it. Where he owned the files he could give himself the right."""
    for name in ("log", "progress"):
        path = path_of(m, job, name)
        assert may(open_as("rb"), path), path
        changes = {"write": (open_as("ab"), path), "truncate": (os.truncate, path, 1 << 40), "mode": (os.chmod, path, 0o666),
                   "remove": (os.unlink, path), "rename": (os.rename, path, path + ".1"),
                   "attribute": (os.setxattr, path, "user.filler", b"x" * 1000),
                   "list": (os.removexattr, path, "system.posix_acl_access")}
        got = [what for what, call in changes.items() if may(*call)]
        assert not got, (name, got)


def its_user_writes_to_its_files_no_more():
    with bounded() as m:
        job = done(m, f"echo the first line; {m.path('bin/takt')} progress --steps 7; echo again >> /dev/stdout")
        is_closed(m, job)
        with open(path_of(m, job), "rb") as log:
            assert log.read() == b"the first line\nagain\n"
        _, text = as_user(ALICE, lambda: kit.Client(m.socket).raw("GET", f"/v1/jobs/{job}/log"))
        assert text == b"the first line\nagain\n", text
        assert may(open_as("rb"), path_of(m, job)) and not as_user(BOB, os.access, path_of(m, job), os.F_OK)


def nor_where_its_shim_was_killed():
    with bounded() as m:
        job = submit(m, ":")
        tried(m, job)
        os.kill(m.shims()[job, 1], signal.SIGKILL)
        m.client().wait(job)
        is_closed(m, job)


def nor_after_its_hook():
    """Which opens it by its name, too."""
    with bounded() as m:
        job = done(m, hook="[ $TAKT_EVENT = ended ] || exit 0; echo it is over >> /dev/stderr; sleep 1; echo hook over")
        kit.until(lambda: b"hook over" in open(path_of(m, job), "rb").read(), lambda: open(path_of(m, job), "rb").read())
        kit.until(lambda: not m.pids("takt-shim"), "its shim is gone")
        with open(path_of(m, job), "rb") as log:
            text = log.read()
            assert text.startswith(b"the first line\nit is over\n"), text
        is_closed(m, job)


def what_a_shell_has_kept_open_is_cut(name, most):
    """A process of the user's that is none of the job's writes on when it is over."""
    def case():
        with bounded() as m:
            go = m.path("jobs/go")
            job = submit(m, ":")
            tried(m, job)
            words = f"exec >> {path_of(m, job, name)}; touch {go}.there; until [ -e {go} ]; do sleep 0.1; done; exec head -c {MUCH} /dev/zero"
            shell = subprocess.Popen(["/bin/sh", "-c", words], user=ALICE, group=ALICE, extra_groups=[], cwd="/")
            kit.until(lambda: os.path.exists(go + ".there"), "it has opened it")
            cancel(m, job)
            is_closed(m, job)
            with open(go, "w", encoding="ascii"):
                pass
            assert shell.wait(kit.WAIT_S) == 0
            kit.until(lambda: on_disk(m, job, name) <= most, lambda: os.stat(path_of(m, job, name)))
            with open(path_of(m, job), "rb") as log:
                assert log.read(15) == b"the first line\n"
    return case


# Of many jobs.

def all_jobs_of_a_user_come_to_his_part():
    """Each prints without end; on a small disk all of them leave most of it."""
    disk = 512 * MIB
    with shared_machine(gpus=1, start=False) as m, kit.small_disk(m, str(disk)):
        os.chmod(m.path("state"), 0o755)
        m.start("--output-limit", "64M", "--history", "no")
        ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["/bin/sh", "-c", "head -c 64M /dev/zero; sleep 2"]),
                                           "array_first": 0, "array_last": 39})
        client = m.client()
        kit.until(lambda: not client.live(), lambda: len(client.live()))
        kept = sum(entry.stat().st_blocks * 512 for folder in os.scandir(m.path("state/jobs")) for entry in os.scandir(folder))
        assert kept < disk / 10 / 4 + 40 * 128 * 1024, kept
        bobs = ask(m, BOB, "POST", "/v1/jobs", job_of(["/bin/sh", "-c", "head -c 200K /dev/zero"]))["id"]
        m.client().wait(bobs)
        assert on_disk(m, bobs) >= 200 * 1024, "another user's log is whole"


if __name__ == "__main__":
    sys.exit(kit.main([
        *((f"a job keeps on the disk little of {what}", bound(*way)) for what, way in WAYS.items()),
        progress_is_told_after_a_flood,
        its_user_writes_to_its_files_no_more,
        nor_where_its_shim_was_killed,
        nor_after_its_hook,
        ("a log that a shell has kept open is cut", what_a_shell_has_kept_open_is_cut("log", LIMIT + SLACK)),
        ("a progress file that a shell has kept open is cut", what_a_shell_has_kept_open_is_cut("progress", MIB)),
        all_jobs_of_a_user_come_to_his_part,
    ]))
