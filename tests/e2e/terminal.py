#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt run --pty and takt attach, typed into real terminals.

Usage: terminal.py BUILD_FOLDER
"""
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import reachable  # noqa: F401, first: it may replace the build folder
import kit
import users


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, m, *words, rows=30, columns=100, user=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        if user is not None:
            os.fchown(slave, user, user)
        self.slave = slave
        self.process = subprocess.Popen(["setsid", "--ctty", m.path("bin/takt"), *words], env=m.env(), stdin=slave,
                                        stdout=slave, stderr=slave, cwd="/", **who)
        self.text = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                self.text += os.read(self.master, 65536).decode(errors="replace")

    def expect(self, what, count=1):
        end = time.monotonic() + kit.WAIT_S
        while self.text.count(what) < count:
            assert time.monotonic() < end, f"no {what!r} in {self.text!r}"
            self.read(0.2)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ended(self):
        """The exit status, once it is over; the terminal is as it was before."""
        end = time.monotonic() + kit.WAIT_S
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it goes on: {self.text!r}"
            self.read(0.1)
        self.read(0.1)
        assert termios.tcgetattr(self.slave)[:4] == self.before[:4], "the terminal is left changed"
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@contextlib.contextmanager
def terminal(m, *words, **more):
    it = Terminal(m, *words, **more)
    try:
        yield it
    finally:
        it.close()


def only_job(m):
    return kit.until(lambda: m.client().live(), "there is a job")[0]["id"]


def a_shell_is_used_as_if_it_ran_here():
    with kit.machine(gpus=2) as m:
        m.start()
        with terminal(m, "run", "--pty", "-n", "1", "--", "sh", "-i") as t:
            t.type("test -t 0 && echo its-a-$((1+1))-tty; stty size\n")
            t.expect("its-a-2-tty")
            t.expect("30 100")
            t.resize(41, 77)
            kit.until(lambda: (t.type("stty size\n"), t.read(0.5), "41 77" in t.text)[2], lambda: t.text)
            t.type("echo gpus=$TAKT_GPUS; exit 7\n")
            assert t.ended() == 7, t.text
            assert "gpus=0" in t.text and "exit status 7" in t.text, t.text
        log = m.takt("logs", "1").stdout
        assert "its-a-2-tty" in log, log


def control_c_interrupts_what_runs_and_not_the_job():
    with kit.machine(gpus=1) as m:
        m.start()
        with terminal(m, "run", "--pty", "-n", "0", "--", "sh", "-i") as t:
            t.type("sh -c 'echo rea''dy; exec sleep 1000'\n")  # it is in the foreground before it says so
            t.expect("ready")
            t.type("\x03")
            t.type("echo sti''ll here\n")
            t.expect("still here")
            t.type("exit\n")
            t.ended()


def one_leaves_and_comes_back():
    with kit.machine(gpus=1) as m:
        m.start()
        with terminal(m, "run", "--pty", "-n", "1", "--", "sh", "-i") as t:
            t.type("X=kept; echo rea''dy\n")
            t.expect("ready")
            t.type("\x1d")
            assert t.ended() == 0, t.text
            assert "takt attach" in t.text, t.text
        job = str(only_job(m))
        assert m.client().job(job)["state"] == "running"
        with terminal(m, "attach", job) as t:
            t.expect("ready")  # what was there before
            t.type("echo $X-value\n")
            t.expect("kept-value")
            with terminal(m, "attach", job, "--detach-key", "^A") as other:
                other.type("echo here-$((2*3))\n")
                other.expect("here-6")
                assert t.ended() == 0 and "somebody else" in t.text, t.text
                other.type("\x01")
                assert other.ended() == 0, other.text
        m.client().cancel(int(job))


def the_job_outlives_client_and_daemon():
    with kit.machine(gpus=1) as m:
        m.start()
        with terminal(m, "run", "--pty", "-n", "1", "--", "sh", "-i") as t:
            t.type("echo $$-my-pid; X=kept\n")
            t.expect("-my-pid", 2)
            m.kill()  # the daemon: what is typed goes on
            t.type("echo wi''thout\n")
            t.expect("without")
            t.process.send_signal(signal.SIGKILL)
            t.process.wait()
        m.start()
        job = str(only_job(m))
        with terminal(m, "attach", job) as t:
            t.type("echo $X-value\n")
            t.expect("kept-value")
            t.process.send_signal(signal.SIGHUP)  # the connection is lost
            assert t.ended() == 0, t.text
        with terminal(m, "attach", job) as t:
            t.type("echo $X-again; exit 3\n")
            assert t.ended() == 3, t.text
            assert "kept-again" in t.text


def control_c_before_its_turn_cancels():
    with kit.machine(gpus=1) as m:
        m.start()
        first = m.client().submit(["sleep", "1000"], gpus=1)["id"]
        with terminal(m, "run", "--pty", "-n", "1", "--", "sh") as t:
            kit.until(lambda: len(m.client().live()) == 2, "it waits")
            t.type("\x03")
            assert t.ended() == 130, t.text
        assert [job["id"] for job in m.client().live()] == [first]
        m.client().cancel(first)


def cancelling_several_is_asked_for():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        jobs = [client.submit(["true"], gpus=1, held=True)["id"] for _ in range(3)]
        for words, answer, said, left in ((("cancel", "--all"), "n\n", "none was cancelled", 3),
                                          (("cancel", f"{jobs[0]}-{jobs[1]}"), "\n", "none was cancelled", 3),
                                          (("cancel", f"{jobs[0]}-{jobs[1]}"), "y\n", f"job {jobs[1]}: cancelled", 1),
                                          (("cancel", "--all"), None, f"job {jobs[2]}: cancelled", 0)):
            with terminal(m, *words) as t:
                if answer:
                    t.expect("jobs, ")
                    t.type(answer)
                t.expect(said)
                assert t.ended() == 0, t.text
            assert len(client.live()) == left, client.live()


def what_has_no_terminal_says_so():
    with kit.machine(gpus=1) as m:
        m.start()
        job = str(m.client().submit(["sleep", "1000"])["id"])
        with terminal(m, "attach", job) as t:
            assert t.ended() != 0 and "has no terminal" in t.text, t.text
        done = m.takt("run", "--pty", "--", "sh", stdin=subprocess.DEVNULL)
        assert done.returncode == 64 and "must be a terminal" in done.stderr, done
        with terminal(m, "attach", job, "--detach-key", "x") as t:
            assert t.ended() == 64 and "^A to ^_" in t.text, t.text
        m.client().cancel(int(job))


def others_cannot_sit_at_it():
    with users.shared_machine(gpus=1) as m:
        with terminal(m, "run", "--pty", "-n", "0", "--", "sh", "-i", user=users.ALICE) as t:
            t.type("echo rea''dy; id -u\n")
            t.expect("ready")
            t.expect(str(users.ALICE))
            job = str(only_job(m))
            with terminal(m, "attach", job, user=users.BOB) as bob:
                assert bob.ended() != 0 and "another user's" in bob.text, bob.text
            path = m.client().job(job)["terminal"]

            def knock():
                import socket
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(path)
            try:
                users.as_user(users.BOB, knock)
                raise AssertionError("another user got through to the terminal")
            except PermissionError:
                pass
            assert "terminal" not in users.ask(m, users.BOB, "GET", f"/v1/jobs/{job}")
            with terminal(m, "attach", job) as root:
                root.type("echo ro''ot-here; exit\n")
                assert root.ended() == 0, root.text
                assert "root-here" in root.text


def a_link_in_its_place_gets_no_word():
    """Nobody but root can put another socket there, as a user could with a takt of before. It is another user's."""
    import socket
    with users.shared_machine(gpus=1) as m, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as trap:
        trap.bind(m.path("trap"))
        os.chmod(m.path("trap"), 0o777)
        users.as_user(users.BOB, trap.listen)  # who did that is what others are told
        with terminal(m, "run", "--pty", "-n", "0", "--", "sh", "-i", user=users.ALICE) as t:
            t.type("echo rea''dy\n")
            t.expect("ready")
            job = str(only_job(m))
            path = m.client().job(job)["terminal"]
            try:
                users.as_user(users.ALICE, os.unlink, path)
                raise AssertionError("its user can remove its terminal's socket")
            except PermissionError:
                os.unlink(path)
            os.symlink(m.path("trap"), path)
            with terminal(m, "attach", job) as root:
                assert root.ended() != 0 and "not a terminal of this job" in root.text, root.text
            trap.settimeout(kit.WAIT_S)
            assert trap.accept()[0].recv(100) == b""
            t.type("exit\n")
            t.ended()


def warned_and_used(m, seconds):
    """Whether a shell that is ended when it was idle for so long, and is used once it was warned, was used in time."""
    with terminal(m, "run", "--pty", "--idle-release", f"{seconds}s", "-n", "1", "--", "sh", "-i") as t:
        t.expect("unless it is used")
        t.type("echo ta''ken\n")
        while t.text.count("unless it is used") < 2 and t.process.poll() is None:
            t.read(1)
        if t.text.count("unless it is used") < 2:
            return False
        assert "taken" in t.text, t.text
        assert t.ended() != 0, t.text
        assert "cancelled" in t.text and f"were idle for {seconds}" in t.text, t.text
    return True


def an_unused_shell_is_warned_and_gives_its_gpu_back():
    """On a machine that is too slow to use it in time, it gets more of it."""
    with kit.machine(gpus=1) as m:
        m.start()
        job, seconds = next(each for each in enumerate((8, 16, 32, 64), 1) if warned_and_used(m, each[1]))
        log = m.takt("logs", str(job)).stdout
        assert log.count(f"takt-shim: nothing is done here: the job is ended in {seconds // 4} s unless it is used") == 2, log
        assert m.client().job(job)["message"].startswith("released: "), m.client().job(job)


def without_a_terminal_the_log_and_show_tell_it():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(["sleep", "1000"], gpus=1, idle_release_ms=12000)["id"]
        kit.until(lambda: "its GPUs are released in" in m.takt("show", str(job)).stdout,
                  lambda: m.takt("show", str(job)).stdout)
        assert client.wait(job)["state"] == "cancelled"
        log = m.takt("logs", str(job)).stdout
        assert log.count("the job is ended in 3 s unless it is used") == 1, log  # our own line is no use of it


def others_are_released(client, after_ms):
    """Jobs that are idle for this long have been ended: one that began earlier, with less, and runs still is not idle."""
    other = client.submit(["sleep", "1000"], cpu_milli=100, idle_release_ms=after_ms)["id"]
    assert client.wait(other)["state"] == "cancelled"


def what_is_not_known_is_not_idle():
    with kit.machine(gpus=1) as m:
        m.start(hide="nvmlDeviceGetUtilizationRates")
        client = m.client()
        job = client.submit(["sleep", "1000"], gpus=1, idle_release_ms=3000)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        others_are_released(client, 6000)
        assert client.job(job)["state"] == "running", client.job(job)
        assert "is ended in" not in m.takt("logs", str(job)).stdout


def what_computes_is_not_idle():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        cpus = {"cpu_milli": 100}  # a machine may have one alone
        busy = client.submit(m.load_argv("--seconds", "600", "--quiet"), gpus=1, idle_release_ms=10000, **cpus)["id"]
        writes = client.submit(["sh", "-c", "while :; do echo; sleep 0.3; done"], idle_release_ms=10000, **cpus)["id"]
        idle = client.submit(["sleep", "1000"], gpus=1, idle_release_ms=2000, **cpus)["id"]
        assert client.wait(idle)["state"] == "cancelled"
        kit.until(lambda: client.job(busy)["state"] == client.job(writes)["state"] == "running", client.live)
        others_are_released(client, 15000)
        assert client.job(busy)["state"] == "running", client.job(busy)
        assert client.job(writes)["state"] == "running", client.job(writes)
        client.cancel(busy)
        client.cancel(writes)


def a_gpu_that_does_not_answer_is_not_idle():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(["sleep", "1000"], gpus=1, idle_release_ms=15000)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        m.twin("fault", "0", "hang")
        others_are_released(client, 20000)
        assert client.job(job)["state"] == "running", client.job(job)
        m.twin("fault", "0", "none")
        assert client.wait(job)["message"].startswith("released: ")


if __name__ == "__main__":
    sys.exit(kit.main([
        a_shell_is_used_as_if_it_ran_here,
        control_c_interrupts_what_runs_and_not_the_job,
        one_leaves_and_comes_back,
        the_job_outlives_client_and_daemon,
        control_c_before_its_turn_cancels,
        cancelling_several_is_asked_for,
        what_has_no_terminal_says_so,
        others_cannot_sit_at_it,
        a_link_in_its_place_gets_no_word,
        an_unused_shell_is_warned_and_gives_its_gpu_back,
        without_a_terminal_the_log_and_show_tell_it,
        what_is_not_known_is_not_idle,
        what_computes_is_not_idle,
        a_gpu_that_does_not_answer_is_not_idle,
    ], at_once=4))
