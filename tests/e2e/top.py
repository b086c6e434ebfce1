#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt top as it is seen: in a terminal of tmux, at several sizes, with the daemon and without it.

Usage: top.py BUILD_FOLDER
"""
import itertools
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time

import kit
import lasting

NUMBERS = itertools.count()
SIZES = ((80, 24), (120, 40), (200, 60), (60, 20))


class Screen:
    """A terminal of so many columns and lines with a program in it; its exit status is shown at the end."""

    def __init__(self, m, columns, lines, *command, **env):
        if not shutil.which("tmux"):
            raise kit.Skip("there is no tmux")
        # One server each: the one before it may still be about to end.
        self.m, self.tmux = m, ["tmux", "-f", os.devnull, "-S", m.path(f"tmux-{next(NUMBERS)}")]
        words = " ".join(f"'{word}'" for word in command)
        settings = [f"{name}={value}" for name, value in {"LC_ALL": "C.UTF-8", **env}.items()]
        done = m.run(*self.tmux, "new-session", "-d", "-x", str(columns), "-y", str(lines), "env", *settings,
                     "sh", "-c", words + '; echo "ended with $?"; sleep 600')
        assert done.returncode == 0, done.stderr

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.m.run(*self.tmux, "kill-server")

    def text(self):
        return self.m.run(*self.tmux, "capture-pane", "-p").stdout

    def keys(self, *names):
        for name in names:
            done = self.m.run(*self.tmux, "send-keys", name)
            assert done.returncode == 0, done.stderr

    def resize(self, columns, lines):
        self.m.run(*self.tmux, "resize-window", "-x", str(columns), "-y", str(lines))

    def has(self, *texts):
        """Waits until all of them are on the screen, and returns it."""
        def there():
            text = self.text()
            return all(one in text for one in texts) and text
        return kit.until(there, lambda: f"{texts} on the screen:\n{self.text()}")


def top(m, columns, lines, *flags, **env):
    """takt top where the simulated driver is found, too."""
    return Screen(m, columns, lines, kit.TWIN, "exec", "--machine", m.path("machine"), "--",
                  m.path("bin/takt"), "top", *flags, **env)


def busy_machine(m):
    """A job on two GPUs, and one that waits."""
    m.start()
    client = m.client()
    job = client.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=2, name="train")["id"]
    waits = client.submit(["sleep", "1000"], gpus=8, name="later")["id"]
    kit.until(lambda: [gpu for gpu in client.status()["gpus"] if gpu.get("procs")], client.status)
    return client, job, waits


def every_size_shows_gpus_jobs_and_processes():
    with kit.machine() as m:
        client, job, _ = busy_machine(m)
        pid = client.job(job)["pid"]
        for columns, lines in SIZES:
            with top(m, columns, lines) as screen:
                text = screen.has("8 GPU", "SIMULATED", f"#{job}", "Jobs 2", "later", "train", "100 %", "driver 550", "CUDA 12")
                assert all(len(line) <= columns for line in text.splitlines()), text
                if lines >= 24:  # there is room for both lists
                    screen.has("Jobs 2", "Processes 1", str(pid))
                    assert columns == 80 or text.count("H100 80GB HBM3") == 1, text
                kit.note(screen.text())
                screen.keys("Tab")
                screen.has("Processes 1", str(pid))
                screen.keys("q")
                screen.has("ended with 0")


def a_window_changes_its_size():
    with kit.machine() as m:
        busy_machine(m)
        with top(m, 80, 24) as screen:
            screen.has("UTIL", "Processes")
            screen.resize(160, 50)
            screen.has("Jobs 2", "Processes", "\u256d")
            screen.resize(40, 8)
            kit.until(lambda: "takt" in screen.text() and "\u256d" not in screen.text(), screen.text)
            screen.resize(10, 3)
            screen.resize(100, 30)
            screen.has("Processes", "8 GPU")


def a_gpu_fault_appears():
    with kit.machine(gpus=2) as m:
        m.start()
        with top(m, 120, 40, "--rate", "5") as screen:
            screen.has("GPU 0", "free")
            m.twin("fault", "1", "lost")
            screen.has("lost")
            m.twin("fault", "1", "none")


def a_gpu_that_hangs_is_one_gpu():
    with kit.machine(gpus=4) as m:
        with top(m, 120, 40, "--driver", "--rate", "5") as screen:
            screen.has("GPU 3", "0 %")
            m.twin("fault", "1", "hang")
            kit.until(lambda: screen.text().count("no news") == 1, screen.text)
            screen.keys("?")
            screen.has("signal the process")
            screen.keys("q")
            m.twin("fault", "1", "none")
            kit.until(lambda: "Processes" in screen.text() and "no news" not in screen.text(), screen.text)
            screen.keys("q")
            screen.has("ended with 0")


def without_a_daemon_the_driver_is_read():
    with kit.machine(gpus=2) as m:
        load = subprocess.Popen(m.load_argv("--profile", "gemm", "--gpus", "0", "--quiet"), env=m.env())
        try:
            with top(m, 100, 30) as screen:
                text = screen.has("no daemon", "100 %", str(load.pid), load.args[0][:30])  # a longer path is cut
                assert "Jobs" not in text and "JOB" not in text, text
                m.start()
                screen.has("running,", "waiting")
                m.kill()
                screen.has("no daemon", str(load.pid))
                m.start()
                screen.has("0 running")
        finally:
            load.kill()
            load.wait()


def a_daemon_that_dies_and_returns():
    """Without a driver either: what was known stays, marked as old."""
    with kit.machine(gpus=2) as m:
        m.start()
        with Screen(m, 100, 30, m.path("bin/takt"), "top") as screen:
            screen.has("2 GPUs", "free")
            m.kill()
            screen.has("NO NEWS", "2 GPUs", "no takt answers")
            m.start()
            kit.until(lambda: "NO NEWS" not in screen.text() and "2 GPUs" in screen.text(), screen.text)


def a_job_is_cancelled_after_a_question():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(["sleep", "1000"], gpus=1, name="precious")["id"]
        with top(m, 100, 30) as screen:
            screen.has("precious")
            screen.keys("c")
            screen.has(f"Cancel job {job} precious?", "user", "command   sleep 1000", "GPUs", "leave it")
            screen.keys("x", "Enter")  # neither is a yes
            screen.keys("n")
            kit.until(lambda: "leave it" not in screen.text(), screen.text)
            assert client.job(job)["state"] == "running", client.job(job)
            screen.keys("c")
            screen.has("leave it")
            screen.keys("y")
            screen.has(f"job {job} is being cancelled")
            assert client.wait(job)["state"] == "cancelled", client.job(job)


def a_job_is_requeued_after_a_question():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        job = client.submit(["sleep", "1000"], gpus=1, name="anew")["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        with top(m, 100, 30) as screen:
            screen.has("anew")
            screen.keys("R")
            screen.has(f"Requeue job {job} anew?", "begins anew", "command   sleep 1000", "leave it")
            screen.keys("y")
            screen.has(f"job {job} is being ended")
            kit.until(lambda: (client.job(job)["state"], client.job(job)["attempt"]) == ("running", 2),
                      lambda: client.job(job))


def a_signal_goes_to_the_process_that_was_shown():
    with kit.machine(gpus=1) as m:
        load = subprocess.Popen(m.load_argv("--profile", "gemm", "--quiet"), env=m.env())
        try:
            with top(m, 100, 30) as screen:
                screen.has(str(load.pid))
                screen.keys("F9")
                screen.has(f"Signal process {load.pid}?", "takt-twin", "SIGTERM")
                screen.keys("Right", "Right")
                screen.has("SIGKILL")
                screen.keys("y")
                screen.has("signal 9 is sent")
                assert load.wait(kit.WAIT_S) == -9
        finally:
            load.kill()
            load.wait()


def a_process_that_has_ended_gets_no_signal():
    with kit.machine(gpus=1) as m:
        load = subprocess.Popen(m.load_argv("--profile", "gemm", "--quiet"), env=m.env())
        with top(m, 100, 30) as screen:
            screen.has(str(load.pid))
            screen.keys("F9")
            screen.has(f"Signal process {load.pid}?")
            load.kill()
            load.wait()
            screen.keys("y")
            screen.has("it has ended")


def filter_tree_sort_zoom_and_help():
    with kit.machine() as m:
        client, job, _ = busy_machine(m)
        with top(m, 120, 40) as screen:
            screen.has("Jobs 2", "train", "later")
            screen.keys("/", "l", "a", "t", "e", "r", "Enter")
            screen.has("filter: later", "Jobs 1")
            screen.keys("Escape")
            screen.has("Jobs 2")
            screen.keys("t")
            screen.has("\u25be")
            screen.keys("t", "s")
            screen.has("by pid")
            screen.keys("?")
            screen.has("filter jobs and processes", "signal the process")
            screen.keys("q")  # ends the help alone
            screen.has("Processes")
            screen.keys("Tab", "Enter")
            screen.has("temperature", "clock", "PCIe")
            screen.keys("Escape")
            screen.has("Jobs 2")
            screen.keys("Tab", "Home", "Enter")
            screen.has(f"job {job} train", "energy", "GPU 0", "GPU 1")
            screen.keys("q")
            screen.has("Jobs 2")
            screen.keys("q")
            screen.has("ended with 0")
        assert client.job(job)["state"] == "running"


def jobs_come_first_and_are_shown_alone():
    with kit.machine(gpus=8) as m:
        m.start()
        client = m.client()
        first = client.submit(["sleep", "1000"], gpus=8, name="first")["id"]
        last = client.submit(["sleep", "1000"], gpus=8, name="many", array_first=1, array_last=38)["id"] + 37
        with top(m, 80, 24) as screen:
            screen.has("Jobs 1-5 of 39", "\u25bc", "Processes")
            screen.keys("J")
            kit.until(lambda: "Processes" not in screen.text(), screen.text)
            screen.has(f"{first} ", "Jobs 1-19 of 39", "SIMULATED")
            screen.keys("End")
            screen.has("Jobs 21-39 of 39", "\u25b2", f"{last} ")
            screen.keys("q")
            screen.has("Processes")


def a_shared_gpu_shows_its_jobs_and_what_each_process_uses():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        jobs = [client.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=1, gpu_milli=500, name=name)["id"]
                for name in ("left", "right")]

        def used():
            gpu = client.status()["gpus"][0]
            return [proc["sm_util_pct"] for proc in gpu["procs"] if "sm_util_pct" in proc]
        shares = kit.until(lambda: len(found := used()) == 2 and found, lambda: client.status()["gpus"][0])
        assert all(0 < share < 100 for share in shares) and sum(shares) <= 100, shares
        with top(m, 120, 40) as screen:
            screen.has(f"#{jobs[0]} left, #{jobs[1]} right", "%SM", "%CPU", "TIME", "Processes 2")

            def cells():
                lines = [line.split() for line in screen.text().splitlines()]
                return {line[2]: line[5:9] for line in lines if len(line) > 9 and line[2] in (f"#{jobs[0]}", f"#{jobs[1]}")}
            told = kit.until(lambda: len(found := cells()) == 2 and all("-" not in one for one in found.values()) and found,
                             screen.text)
            for sm, memory, cpu, run in told.values():
                assert 0 < int(sm) < 100 and 0 <= int(memory) <= 100 and int(cpu) >= 0 and run[-1] == "s", told


def a_driver_that_tells_no_use_of_processes_leaves_it_unknown():
    with kit.machine(gpus=1) as m:
        load = subprocess.Popen(m.load_argv("--profile", "gemm", "--quiet"), env=m.env())
        try:
            def once():
                return m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--hide", "nvmlDeviceGetProcessUtilization", "--",
                             m.path("bin/takt"), "top", "--once", "--driver")

            def cells():
                lines = [line.split() for line in once().stdout.splitlines()]
                return next((line for line in lines if line[:1] == [str(load.pid)]), None)
            line = kit.until(cells, once)
            assert line[4:6] == ["-", "-"], line
        finally:
            load.kill()
            load.wait()


def busy_ms(client):
    """For how long GPU 0 has been busy, by the daemon's history."""
    since = int((time.time() - 60) * 1000)
    points = client.ask("GET", f"/v1/history?gpu=0&metric=utilization&step=raw&since_ms={since}")["points"]
    busy = [point[0] for point in points if point[2] > 0]
    return busy[-1] - busy[0] if busy else 0


def braille(text):
    """Columns of the longest graph."""
    return max(sum("\u2800" < char <= "\u28ff" for char in line) for line in text.splitlines())


def graphs_are_full_at_once():
    """Of one look there is one column at most: the others are the daemon's history, or its last samples where it keeps none."""
    for flags in ((), ("--history", "no")):
        with kit.machine(gpus=1) as m:
            m.start(*flags)
            client = m.client()
            client.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=1, name="train")
            kit.until(lambda: busy_ms(client) > 8000, lambda: busy_ms(client))
            m.more_env["LC_ALL"] = "C.UTF-8"
            shown = m.takt("top", "--once").stdout
            assert braille(shown) >= 4, shown


def a_jobs_log_is_followed():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        script = f"for i in $(seq 200); do echo line $i; done; while [ ! -e {m.path('go')} ]; do sleep 0.1; done; echo news; exec sleep 1000"
        job = client.submit(["/bin/sh", "-c", script], gpus=1, name="talks")["id"]
        kit.until(lambda: "line 200" in m.takt("logs", str(job)).stdout, lambda: client.job(job))
        with top(m, 80, 24) as screen:
            screen.has("talks")
            screen.keys("Enter")
            screen.has(f"job {job} talks", "GPU 0", "SIMULATED")
            screen.keys("l")
            screen.has(f"log of job {job}", "line 200", "SIMULATED")
            screen.keys("g")
            screen.has("line 1 ", "line 2 ")
            screen.keys("G")
            screen.has("line 200")
            with open(m.path("go"), "w", encoding="ascii"):
                pass
            screen.has("news")
            screen.keys("q")
            screen.has(f"job {job} talks", "state")
            screen.keys("q")
            screen.has("Jobs 1")
            screen.keys("q")
            screen.has("ended with 0")


def the_head_says_what_the_machine_does():
    with kit.machine(gpus=1) as m:
        m.start()
        for columns in (80, 120, 250):
            with top(m, columns, 24) as screen:
                screen.has("driver 550", "CUDA 12", "CPU ", "mem ", "load ", "SIMULATED")


def without_a_terminal_it_says_what_to_do():
    with kit.machine(gpus=2) as m:
        done = m.takt("top")
        assert done.returncode == 64 and "--once" in done.stderr, done
        m.start()
        with Screen(m, 80, 24, m.path("bin/takt"), "top", TERM="no-such-terminal") as screen:
            screen.has("'no-such-terminal'", "is not known", "ended with 69")
    with kit.machine(gpus=2) as m:
        done = m.takt("top", "--once")
        assert done.returncode == 69 and "no takt answers" in done.stderr, done
        bad = m.takt("top", "--once", "--rate", "0.01")
        assert bad.returncode == 64 and "--rate" in bad.stderr, bad
        bad = m.takt("top", "--once", "--host", "-oProxyCommand=true")
        assert bad.returncode == 64 and "no host" in bad.stderr, bad


def without_a_driver_the_terminal_is_left_as_it_was():
    with kit.machine(gpus=2) as m:
        ours, its = pty.openpty()
        before = termios.tcgetattr(its)
        done = subprocess.run([m.path("bin/takt"), "top", "--driver", "--nvml-path", m.path("no-driver")],
                              env=m.env(TERM="xterm"), stdin=its, stdout=its, stderr=its, timeout=kit.WAIT_S, check=False)
        said = os.read(ours, 65536).decode()
        assert done.returncode == 69 and "no NVIDIA driver" in said and "\033" not in said, (done, said)
        assert termios.tcgetattr(its) == before
        os.close(its)
        os.close(ours)


def is_ready(pid):
    """ncurses catches the change of a window's size, and the terminal was put back since."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        of = dict(line.split(":", 1) for line in file)
    return int(of["SigCgt"], 16) >> (signal.SIGWINCH - 1) & 1 and not int(of["SigBlk"], 16)


ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heed_signals():
    """What a shell starts in the background ignores an interrupt, under nohup a hangup, and so does what that starts."""
    for one in ENDS:
        signal.signal(one, signal.SIG_DFL)


def who_ends_it_while_it_waits_finds_the_terminal_as_it_was():
    with kit.machine(gpus=2) as m, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(m.path("silent"))
        silent.listen()
        for ends in ENDS:
            ours, its = pty.openpty()
            before = termios.tcgetattr(its)
            top = subprocess.Popen([m.path("bin/takt"), "top", "--socket", m.path("silent")],
                                   env=m.env(TERM="xterm"), stdin=its, stdout=its, stderr=its,
                                   preexec_fn=heed_signals)
            kit.until(lambda pid=top.pid: is_ready(pid), "the terminal is not readied")
            assert termios.tcgetattr(its) == before
            top.send_signal(ends)
            assert top.wait(kit.WAIT_S) == -ends, top.returncode
            assert termios.tcgetattr(its) == before
            os.write(its, b"end")
            assert os.read(ours, 65536) == b"end", "something was written"
            os.close(its)
            os.close(ours)


def scripts_get_text_and_json():
    with kit.machine() as m:
        _, job, _ = busy_machine(m)
        m.more_env["LC_ALL"] = "C"
        shown = m.takt("top", "--once").stdout
        assert "8 GPUs" in shown and "train" in shown, shown
        shown.encode("ascii")  # what a locale without UTF-8 gets
        look = json.loads(m.takt("top", "--json").stdout)
        assert look["from"] == "daemon" and len(look["status"]["gpus"]) == 8, look
        assert [one["id"] for one in look["queue"]["jobs"]][0] == job, look
        (proc,) = look["processes"]
        assert proc["job_id"] == job and len(proc["gpus"]) == 2 and "load" in proc["command"], proc
        alone = json.loads(m.twin_exec("top", "--json", "--driver").stdout)
        assert alone["from"] == "driver" and "queue" not in alone, alone
        assert [one["pid"] for one in alone["processes"]] == [proc["pid"]], alone
        assert alone["status"]["gpus"][0]["margin_c"] > 0 and alone["status"]["gpus"][0]["nvlinks_up"] == 18, alone


def fake_ssh(m, script):
    """A program called ssh, before the real one on the search path."""
    os.makedirs(m.path("path"), exist_ok=True)
    with open(m.path("path/ssh"), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n" + script)
    os.chmod(m.path("path/ssh"), 0o755)
    m.more_env["PATH"] = m.path("path") + ":" + os.environ["PATH"]


def another_machine_is_reached_by_ssh():
    with kit.machine(gpus=2) as m:
        m.start()
        fake_ssh(m, f"echo \"$@\" >{m.path('ssh.log')}\n")
        done = m.takt("top", "--once", "--host", "ana@node7", "--rate", "2")
        assert done.returncode == 0, done
        with open(m.path("ssh.log"), encoding="ascii") as file:
            assert file.read() == "-- ana@node7 takt top --rate 2 --once\n"


def several_machines_are_watched_together():
    """The fake ssh runs takt here, whatever the host, but for one that is down until a file says otherwise, and is asked
    for ever more seldom."""
    with kit.machine(gpus=2) as m:
        def tries():
            with open(m.path("ssh.log"), encoding="ascii") as file:
                return sum("-- down " in line for line in file)
        m.start()
        job = m.client().submit(["sleep", "1000"], gpus=1, name="train")["id"]
        fake_ssh(m, f"""echo "$@" >>{m.path('ssh.log')}
while [ "$1" != -- ]; do shift; done
if [ "$2" = down ] && [ ! -e {m.path('up')} ]; then echo "ssh: no route to $2" >&2; exit 255; fi
shift 3
exec {m.path('bin/takt')} "$@"
""")
        hosts = ("--host", "one", "--host", "down", "--host", "two")
        begin = time.monotonic()
        with Screen(m, 100, 30, m.path("bin/takt"), "top", *hosts, PATH=m.more_env["PATH"]) as screen:
            screen.has("one 2 GPUs", "down NO NEWS", "two 2 GPUs", f"#{job}", "train")
            screen.keys("]")
            screen.has("down: ssh: no route to down", "no GPUs here")
            screen.keys("c")
            screen.has("no job of takt's under the cursor")
            count = kit.until(lambda: (n := tries()) >= 4 and n, tries)
            assert count <= lasting.most_tries(time.monotonic() - begin, 1, 10), (count, time.monotonic() - begin)
            with open(m.path("up"), "w", encoding="ascii"):
                pass
            screen.has("down 2 GPUs", "train")
            screen.keys("q")
            screen.has("ended with 0")
        with open(m.path("ssh.log"), encoding="ascii") as file:
            assert "-T -oBatchMode=yes -oConnectTimeout=10 -- one takt top --json --each-line\n" in file.readlines()
        os.unlink(m.path("up"))
        done = m.takt("top", "--json", *hosts)
        assert done.returncode == 69 and "down: ssh: no route to down" in done.stderr, done
        looks = [json.loads(line) for line in done.stdout.splitlines()]
        assert [look["queue"]["jobs"][0]["id"] for look in looks] == [job, job], looks
        fake_ssh(m, "echo Warning: a new key >&2\necho Welcome to $4\nexec cat >/dev/null\n")
        done = m.takt("top", "--once", *hosts)
        assert done.returncode == 69 and done.stdout == "" and "Warning" not in done.stderr, done
        assert [line.split(": ")[1] for line in done.stderr.splitlines()] == ["one", "down", "two"], done
        bad = m.takt("top", "--once", "--each-line")
        assert bad.returncode == 64 and "--each-line" in bad.stderr, bad
        bad = m.takt("top", "--once", *hosts, "--host", "-x")
        assert bad.returncode == 64 and "no host" in bad.stderr, bad


def what_is_told_is_done_on_the_machine_that_is_shown():
    """Two machines, each with a takt: the fake ssh goes to the one that is named, with that one's surroundings."""
    with kit.machine(gpus=1) as one, kit.machine(gpus=1) as two:
        one.start()
        two.start()
        jobs = {m: m.client().submit(one.load_argv("--profile", "gemm", "--quiet"), gpus=1, name="train", requeue=True)["id"]
                for m in (one, two)}
        fake_ssh(one, f"""while [ "$1" != -- ]; do shift; done
if [ -e {one.path('down')} ]; then echo "ssh: no route to $2" >&2; exit 255; fi
case $2 in
one) exec {one.path('bin/takt')} top --json --each-line;;
two) export TAKT_SOCKET={two.socket} TAKT_TWIN={two.path('machine')}; exec {two.path('bin/takt')} top --json --each-line;;
esac
""")
        def state(m):
            return m.client().job(jobs[m])["state"], m.client().job(jobs[m])["attempt"]
        for m in (one, two):
            kit.until(lambda: state(m) == ("running", 1), lambda: state(m))
        with Screen(one, 100, 40, one.path("bin/takt"), "top", "--host", "one", "--host", "two", PATH=one.more_env["PATH"]) as screen:
            screen.has("one 1 GPU", "two 1 GPU", "train", "Jobs 1", "Processes 1")
            screen.keys("]")
            screen.has("Jobs 1", "Processes 1")
            screen.keys("Tab", "F9")
            screen.has("Signal process", "host      two", "user ", "takt-twin", "SIGTERM")
            screen.keys("n", "BTab", "R")
            screen.has(f"Requeue job {jobs[two]} train?", "host      two", "takt-twin")
            screen.keys("y")
            screen.has("two: job", "is being ended, and begins anew")
            kit.until(lambda: state(two) == ("running", 2), lambda: state(two))
            screen.keys("Tab")
            pid = kit.until(lambda: two.client().job(jobs[two]).get("pid"), lambda: state(two))
            screen.has(f" {pid} ")
            screen.keys("F9")
            screen.has(f"Signal process {pid}?", "host      two", "SIGTERM")
            screen.keys("y")
            screen.has(f"two: signal 15 is sent to process {pid}")
            kit.until(lambda: two.client().job(jobs[two])["state"] == "failed", lambda: state(two))
            assert state(one) == ("running", 1), state(one)
            screen.keys("[", "BTab")
            screen.has("Jobs 1", f"#{jobs[one]}")
            screen.keys("c")
            screen.has(f"Cancel job {jobs[one]} train?", "host      one")
            with open(one.path("down"), "w", encoding="ascii"):
                pass
            screen.keys("y")
            screen.has("one: ssh: no route to one")
            assert state(one) == ("running", 1), state(one)
            os.unlink(one.path("down"))
            screen.keys("c")
            screen.has(f"Cancel job {jobs[one]} train?", "host      one")
            screen.keys("y")
            kit.until(lambda: state(one)[0] == "cancelled", lambda: state(one))


def of_another_machine_the_past_and_logs_are_shown():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        script = "echo from afar; exec \"$@\""
        job = client.submit(["/bin/sh", "-c", script, "sh", *m.load_argv("--profile", "gemm", "--quiet")], gpus=1, name="far")["id"]
        fake_ssh(m, f"while [ \"$1\" != -- ]; do shift; done\nexec {m.path('bin/takt')} top --json --each-line\n")
        kit.until(lambda: busy_ms(client) > 8000, lambda: busy_ms(client))
        hosts = ("--host", "one", "--host", "two")
        with Screen(m, 100, 40, m.path("bin/takt"), "top", *hosts, PATH=m.more_env["PATH"]) as screen:
            screen.has("one 1 GPU", "two 1 GPU", "far")
            screen.keys("Enter")
            screen.has(f"job {job} far")
            screen.keys("l")
            screen.has(f"log of job {job}", "from afar")
        done = subprocess.run([m.path("bin/takt"), "top", "--json", "--each-line"], input=f"past 1000 log {job}\n\n", env=m.env(),
                              capture_output=True, text=True, check=True, timeout=kit.WAIT_S)
        told, plain = map(json.loads, done.stdout.splitlines())
        (gpu,) = told["past"]["gpus"]
        assert sum(value > 900 for value in gpu["util"]) >= 8, gpu
        assert "from afar" in told["log"]["text"], told["log"]
        assert "past" not in plain and "log" not in plain, plain


def what_is_told_in_a_line_is_done_once_and_answered():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(["sleep", "1000"], gpus=1)["id"]
        other = client.submit(["sleep", "1000"], gpus=1)["id"]
        sleeper = subprocess.Popen(["sleep", "1000"])
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                boot = file.read().strip()
            with open(f"/proc/{sleeper.pid}/stat", encoding="ascii") as file:
                start = int(file.read().rsplit(")", 1)[1].split()[19])
            signal = {"do": "signal", "signal": 9, "pid": sleeper.pid, "start_ticks": start, "boot_id": boot}
            told = [{"do": "hold", "job_id": other}, {"do": "release", "job_id": other}, {"do": "cancel", "job_id": job},
                    {"do": "cancel", "job_id": job}, {"do": "reboot", "job_id": job}, dict(signal, start_ticks=start + 1), signal]
            done = subprocess.run([m.path("bin/takt"), "top", "--json", "--each-line"], env=m.env(), capture_output=True, text=True,
                                  check=True, timeout=kit.WAIT_S, input="".join(json.dumps(line) + "\n" for line in told))
            answers = [json.loads(line) for line in done.stdout.splitlines()]
            assert [next(iter(answer)) for answer in answers] == ["done", "done", "done", "failed", "failed", "failed", "done"], answers
            assert "has ended" in answers[3]["failed"] and "it has ended" in answers[5]["failed"], answers
            assert sleeper.wait(kit.WAIT_S) == -9
            assert client.job(job)["state"] == "cancelled", client.job(job)
            client.cancel(other)
        finally:
            sleeper.kill()
            sleeper.wait()


def a_look_for_each_line():
    with kit.machine(gpus=2) as m:
        m.start()
        job = m.client().submit(["sleep", "1000"], gpus=1)["id"]
        done = subprocess.run([m.path("bin/takt"), "top", "--json", "--each-line"], input="\n\n\n", env=m.env(),
                              capture_output=True, text=True, check=True, timeout=kit.WAIT_S)
        looks = [json.loads(line) for line in done.stdout.splitlines()]
        assert [look["from"] for look in looks] == ["daemon"] * 3, looks
        assert all([one["id"] for one in look["queue"]["jobs"]] == [job] for look in looks), looks


def colours_are_left_out_when_they_are_not_wanted():
    with kit.machine(gpus=2) as m:
        m.start()

        def colours(**env):
            with top(m, 80, 24, TERM="tmux-256color", **env) as screen:
                screen.has("2 GPUs")
                return "38;5;" in m.run(*screen.tmux, "capture-pane", "-p", "-e").stdout
        assert colours()
        assert not colours(NO_COLOR="1")


if __name__ == "__main__":
    sys.exit(kit.main([
        every_size_shows_gpus_jobs_and_processes,
        a_window_changes_its_size,
        a_gpu_fault_appears,
        a_gpu_that_hangs_is_one_gpu,
        without_a_daemon_the_driver_is_read,
        a_daemon_that_dies_and_returns,
        a_job_is_cancelled_after_a_question,
        a_job_is_requeued_after_a_question,
        a_signal_goes_to_the_process_that_was_shown,
        a_process_that_has_ended_gets_no_signal,
        filter_tree_sort_zoom_and_help,
        jobs_come_first_and_are_shown_alone,
        a_shared_gpu_shows_its_jobs_and_what_each_process_uses,
        a_driver_that_tells_no_use_of_processes_leaves_it_unknown,
        graphs_are_full_at_once,
        a_jobs_log_is_followed,
        the_head_says_what_the_machine_does,
        without_a_terminal_it_says_what_to_do,
        without_a_driver_the_terminal_is_left_as_it_was,
        who_ends_it_while_it_waits_finds_the_terminal_as_it_was,
        scripts_get_text_and_json,
        another_machine_is_reached_by_ssh,
        several_machines_are_watched_together,
        what_is_told_is_done_on_the_machine_that_is_shown,
        of_another_machine_the_past_and_logs_are_shown,
        what_is_told_in_a_line_is_done_once_and_answered,
        a_look_for_each_line,
        colours_are_left_out_when_they_are_not_wanted,
    ]))
