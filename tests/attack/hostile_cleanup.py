#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A user's own `podman` against root's shim and launcher, and writers from outside against the end of a job.

The clean-up after a container is a program of the user's choice: it is found in his PATH. So a stand-in here does what
it should not, each time that it is asked for containers. Judged by the kernel's table of processes.

Usage: hostile_cleanup.py BUILD_FOLDER
"""
import contextlib
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import reachable  # noqa: E402,F401, first: it may replace the build folder
import kit  # noqa: E402
from users import ALICE, BOB, ask, job_of, shared_machine, takt_as  # noqa: E402

TRAINS = "trap '' TERM HUP INT; echo pid $$; while :; do sleep 1; done"
# What it does when it is asked which containers there are; each process that stays says its number, in the job's log.
BEHAVIOURS = {
    "trains for ever": TRAINS,
    "stops itself": "echo pid $$; kill -STOP $$",
    "leaves something behind": f"(setsid sh -c '{TRAINS.replace(chr(39), chr(34))}' &); sleep 0.5; exit 0",
    "leaves something behind without its environment":
        f"(env -i setsid sh -c '{TRAINS.replace(chr(39), chr(34))}' &); sleep 0.5; exit 0",
    "forks all the time": "trap '' TERM; echo pid $$; f() { while :; do (sleep 0.05) & wait; done; }; "
                          "for i in 1 2 3; do f & done; exit 0",
}


def alices(pid):
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}").st_uid == ALICE
    return False


def log_of(m, job):
    with contextlib.suppress(OSError):
        with open(m.path(f"state/jobs/{job}.1/log"), encoding="utf-8", errors="replace") as file:
            return file.read()
    return ""


def who_stayed(m, job):
    """Processes of the clean-up that said their numbers."""
    return [int(pid) for pid in re.findall(r"^pid (\d+)$", log_of(m, job), re.M)]


def left(m, job):
    return [pid for pid in who_stayed(m, job) if kit.process_state(pid) not in ("", "Z", "X") and alices(pid)]


def submit_each(m, runs):
    """A job with each behaviour, whose container runs so: {name: job}."""
    jobs = {}
    for name, does in BEHAVIOURS.items():
        folder = m.path("bin." + name.replace(" ", "-"))
        os.mkdir(folder)
        with open(folder + "/podman", "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\ncase $1 in\nrun) {runs} ;;\nps) ;;\n*) exit 1 ;;\nesac\nexec >&2\n{does}\n")
        os.chmod(folder + "/podman", 0o755)
        done = takt_as(m, ALICE, "submit", "-q", "-n", "1", "--grace", "200ms", "--container", "x", "--container-runtime",
                       "podman", "-e", f"PATH={folder}:/usr/bin:/bin", "--", "true")
        assert done.returncode == 0, done
        jobs[name] = int(done.stdout)
    return jobs


def nothing_is_left(m, jobs, state):
    """Each job is over, its clean-up was tried, and nothing of that lives; the GPUs are the next user's."""
    for name, job in jobs.items():
        view = m.client().wait(job, kit.WAIT_S * 2)
        assert view["state"] == state, (name, view, log_of(m, job))
        assert who_stayed(m, job), (name, log_of(m, job))
        assert not left(m, job), (name, left(m, job), log_of(m, job))
    after = ask(m, BOB, "POST", "/v1/jobs", job_of(["/bin/true"], len(jobs)))["id"]
    assert m.client().wait(after)["state"] == "done"


def nothing_of_a_clean_up_outlives_its_job():
    with shared_machine(gpus=len(BEHAVIOURS)) as m:
        jobs = submit_each(m, "exit 0")
        nothing_is_left(m, jobs, "done")
        for name in ("trains for ever", "stops itself"):
            assert "its container may still be there" in log_of(m, jobs[name]), (name, log_of(m, jobs[name]))


def a_clean_up_has_its_time_when_the_job_is_cancelled():
    with shared_machine(gpus=len(BEHAVIOURS)) as m:
        jobs = submit_each(m, "exec sleep 600")
        for job in jobs.values():
            kit.until(lambda: m.client().job(job)["state"] == "running", lambda: m.client().job(job))
            ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        nothing_is_left(m, jobs, "cancelled")


def nothing_of_it_outlives_a_job_whose_shim_is_gone():
    """The launcher runs it then, and goes on serving others."""
    with shared_machine(gpus=len(BEHAVIOURS) + 1) as m:
        jobs = submit_each(m, "exec sleep 600")
        for job in jobs.values():
            kit.until(lambda: (job, 1) in m.shims() and m.client().job(job)["state"] == "running",
                      lambda: m.client().job(job))
        for job in jobs.values():
            os.kill(m.shims()[job, 1], signal.SIGKILL)
        kit.until(lambda: left(m, jobs["trains for ever"]), "a clean-up trains")
        other = ask(m, BOB, "POST", "/v1/jobs", job_of(["/bin/true"], 1))["id"]
        assert m.client().wait(other)["state"] == "done"
        nothing_is_left(m, jobs, "lost")


# Writers from outside of the job.

# Opened again when it was hung up, with as much room as it may have; a line of nothing costs who reads it the most.
WRITER = """
import contextlib
import fcntl
import os
import sys
while True:
    with contextlib.suppress(OSError):
        file = os.open(sys.argv[1], os.O_WRONLY | os.O_NOCTTY)
        with contextlib.suppress(OSError):
            fcntl.fcntl(file, 1031, 1 << 20)  # F_SETPIPE_SZ
        with contextlib.suppress(OSError):
            while True:
                os.write(file, b"outside" + b"\\n" * 4000)
        os.close(file)
"""


@contextlib.contextmanager
def writers(path, count=3):
    """Processes of the user's, of no job, that write into it without end."""
    found = [subprocess.Popen(["/usr/bin/python3", "-c", WRITER, path], user=ALICE, group=ALICE, extra_groups=[], cwd="/",
                              stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield
    finally:
        for one in found:
            one.kill()
            one.wait(kit.WAIT_S)


def held_by(pipe):
    """How many bytes wait in it, whoever reads it."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def is_cancelled(m, job):
    ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
    view = m.client().wait(job)
    assert view["state"] == "cancelled", view


def who_writes_into_the_pipe_of_a_rank_does_not_keep_the_job():
    with shared_machine(gpus=2) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(
            ["/bin/sleep", "600"], 2, ranks=2, rank_prefix=True, grace_ms=200))["id"]
        pid = kit.until(lambda: m.client().job(job).get("pid"), "it runs")
        with writers(f"/proc/{pid}/fd/1"):
            pipe = os.open(f"/proc/{pid}/fd/1", os.O_RDONLY | os.O_NONBLOCK)
            kit.until(lambda: "outside" in log_of(m, job)[:1000], lambda: log_of(m, job)[:1000])
            kit.until(lambda: held_by(pipe) > 1 << 19, lambda: held_by(pipe))
            is_cancelled(m, job)
            os.close(pipe)


def slow(path):
    """Who sits at a terminal and reads a little at a time."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(path)
    stop = threading.Event()

    def read():
        with contextlib.suppress(OSError):
            while not stop.wait(0.3) and link.recv(8192):
                pass
    threading.Thread(target=read, daemon=True).start()
    return link, stop


# It gives its terminal up, which is then not hung up at its end.
GIVES_UP = """
import fcntl
import os
import signal
import termios
import time
import tty
signal.signal(signal.SIGHUP, signal.SIG_IGN)
tty.setraw(0)
print(os.ttyname(0), flush=True)
fcntl.ioctl(0, termios.TIOCNOTTY)
time.sleep(600)
"""


def who_writes_into_its_terminal_does_not_keep_the_job():
    with shared_machine(gpus=1) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(
            ["/usr/bin/python3", "-c", GIVES_UP], 1, pty=True, grace_ms=200))["id"]
        kit.until(lambda: "/dev/pts/" in log_of(m, job), lambda: log_of(m, job))
        terminal = re.search(r"/dev/pts/\d+", log_of(m, job)).group(0)
        link, stop = slow(m.path(f"state/jobs/{job}.1/tty"))
        with writers(terminal):
            kit.until(lambda: "outside" in log_of(m, job)[:100000], lambda: log_of(m, job)[:1000])
            is_cancelled(m, job)
        stop.set()
        link.close()


ORPHANS = """
import os
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("pid", os.getpid(), flush=True)
for _ in range(3):
    if os.fork() == 0:
        break
while True:
    child = os.fork()
    if child == 0:
        for _ in range(20):
            if os.fork() == 0:
                os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
"""


def who_makes_orphans_all_the_time_ends():
    """Its shim has ended children to take all the time."""
    with shared_machine(gpus=1) as m:
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of(["/usr/bin/python3", "-c", ORPHANS], 1, grace_ms=200))["id"]
        kit.until(lambda: "pid" in log_of(m, job), lambda: log_of(m, job))
        is_cancelled(m, job)
        assert not left(m, job), left(m, job)


if __name__ == "__main__":
    sys.exit(kit.main([
        nothing_of_a_clean_up_outlives_its_job,
        a_clean_up_has_its_time_when_the_job_is_cancelled,
        nothing_of_it_outlives_a_job_whose_shim_is_gone,
        who_writes_into_the_pipe_of_a_rank_does_not_keep_the_job,
        who_writes_into_its_terminal_does_not_keep_the_job,
        who_makes_orphans_all_the_time_ends,
    ]))
