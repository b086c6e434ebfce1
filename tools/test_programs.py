# SPDX-License-Identifier: Apache-2.0
"""One test program at a time: what meson says of it, running it, and what it cost.

A program runs under a supervisor, a fork of the runner that adopts what the program's processes leave behind
(PR_SET_CHILD_SUBREAPER): so its time of the processor is known whole, and nothing of it is left when it has ended.
"""
import collections
import contextlib
import ctypes
import errno
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
TICKS = os.sysconf("SC_CLK_TCK")
LIBC = ctypes.CDLL(None, use_errno=True)
SAMPLE_S = 0.3  # a case shorter than this has no processor time of its own in the table


class Program:
    """A line of meson's list of tests. `plain_too` is the tag of what a plain build runs though a sanitized one does."""

    def __init__(self, build, said):
        suites = [suite.split(":", 1)[-1] for suite in said["suite"]]
        self.suite, self.plain_too = suites[0], "plain" in suites
        self.name = f"{self.suite} / {said['name']}"
        self.command, self.env, self.cwd = said["cmd"], said["env"], said["workdir"] or build
        self.limit_s, self.tap, self.needs = said["timeout"] or 30, said["protocol"] == "tap", said["depends"]


def programs_of(build):
    with open(os.path.join(build, "meson-info/intro-tests.json"), encoding="utf-8") as file:
        return [Program(os.path.abspath(build), said) for said in json.load(file)]


def targets_of(build, programs):
    """What ninja has to make for these programs: all of the product, and of the tests what they need."""
    with open(os.path.join(build, "meson-info/intro-targets.json"), encoding="utf-8") as file:
        targets = json.load(file)
    needed = {name for program in programs for name in program.needs}
    first = {os.path.realpath(program.command[0]) for program in programs}
    root, chosen = os.path.realpath(build), []
    for target in targets:
        files = [os.path.realpath(name) for name in target["filename"]]
        room = os.path.relpath(files[0], root).split("/", 1)[0]
        product = room not in ("tests", "fuzz", "bench") and target["build_by_default"]
        if product or target["id"] in needed or first & set(files):
            chosen += [os.path.relpath(name, root) for name in files]
    return chosen


# Which processes there are, and what they used.

def ticks(pid):
    """Of it and of the children that it waited for; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return sum(map(int, fields[11:15]))
    except (OSError, IndexError):
        return 0


def children(pid):
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def tree(pid):
    """All below it, itself left out."""
    found, left = [], children(pid)
    while left:
        each = left.pop()
        found.append(each)
        left += children(each)
    return found


def cpu_s(pid):
    """Seconds of the processor that it and all below it used so far."""
    return sum(map(ticks, [pid, *tree(pid)])) / TICKS


class Births:
    """Counts the processes that each supervisor's program starts, from the kernel's own news of them (the process
    connector). Only root in the first namespaces hears it; elsewhere `known` is False and there are no counts."""

    FORK, EXIT = 1, 0x80000000

    def __init__(self):
        self.family, self.count, self.known = {}, collections.Counter(), False
        with contextlib.suppress(OSError, AttributeError):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, 11)
            self.socket.bind((0, 1))
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            self.socket.send(struct.pack("=IHHIIIIIIHHI", 40, 3, 0, 0, 0, 1, 1, 0, 0, 4, 0, 1))
            self.socket.setblocking(False)
            self.known = True

    def hear(self):
        """Takes what the kernel has said meanwhile."""
        while self.known:
            try:
                said = self.socket.recv(4096)
            except BlockingIOError:
                return
            except OSError as why:
                self.known = why.errno == errno.ENOBUFS  # more news than room: the counts are too low
                continue
            if len(said) < 68:
                continue
            what, _, _, a, b, c, d = struct.unpack_from("=IIQIIII", said, 36)
            if what == self.FORK and c == d and b in self.family:
                self.family[d] = self.family[b]
                self.count[self.family[b]] += 1
            elif what == self.EXIT and a == b:
                self.family.pop(a, None)


# Running one.

def supervise(program, env, out, err, result):
    """In the supervisor: runs the program, adopts its orphans, kills what is left, says how it went. SIGTERM is blocked
    until the program is there to be killed."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    ended = []  # by the runner, for its time is up

    def end(*_):
        ended.append(True)
        kill_below()

    def kill_below():
        for pid in tree(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: it is for the runner, who tells
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        try:
            os.chdir(program.cwd)
            os.execvpe(program.command[0], program.command, env)
        except OSError as why:
            os.write(2, f"{program.command[0]}: {why}\n".encode())
        finally:
            os._exit(127)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    os.close(out)
    os.close(err)
    status, left = None, 0
    while True:
        try:
            who, how = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if who == pid:
            status = os.waitstatus_to_exitcode(how)
        if status is not None or ended:
            left += len(tree(os.getpid())) if who == pid and not ended else 0
            kill_below()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.write(result, json.dumps({"status": status, "left": left, "cpu_s": used.ru_utime + used.ru_stime}).encode())


class Run:
    """A program that runs, on `cores`. `fds` are to be read when they have something, until `over`; then entry() says how it went."""

    def __init__(self, program, more_env, births, patience, cores):
        self.program, self.births, self.begin, self.cores = program, births, time.monotonic(), cores
        self.limit_s, self.killed, self.over = program.limit_s * patience, "", False
        self.text, self.line = {"out": b"", "err": b"", "result": b""}, b""
        self.points, self.mark, self.sampled, self.used, self.started = [], self.begin, self.begin, 0.0, 0
        env = {**os.environ, "MALLOC_PERTURB_": str(random.randint(1, 255)), **program.env, **more_env}
        pipes = {name: os.pipe2(os.O_CLOEXEC) for name in self.text}
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.sched_setaffinity(0, cores)
                for read, _ in pipes.values():
                    os.close(read)
                supervise(program, env, *(write for _, write in pipes.values()))
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        for read, write in pipes.values():
            os.close(write)
            os.set_blocking(read, False)
        self.fds = {read: name for name, (read, _) in pipes.items()}
        births.family[self.pid] = self.pid

    def read(self, fd):
        """Takes what the descriptor has, and returns it: b"" at its end, None when there is nothing now."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return None
        name = self.fds[fd]
        self.text[name] += data
        if name == "out":
            *lines, self.line = (self.line + (data or b"\n")).split(b"\n")
            for line in lines:
                if re.match(rb"(not )?ok\b", line):
                    self.point()
        self.over |= name == "result" and not data  # the supervisor has ended, after all below it
        return data

    def close(self):
        """Takes the rest. A process that got away from the supervisor may still hold the other ends: it is not waited for."""
        for fd in self.fds:
            while self.read(fd):
                pass
            os.close(fd)

    def point(self):
        """A case has ended: what it cost."""
        now, used, started = time.monotonic(), None, None
        if now - self.sampled >= SAMPLE_S:
            used = max(cpu_s(self.pid) - self.used, 0)
            self.used, self.sampled = self.used + used, now
        if self.births.known:
            self.births.hear()
            started = self.births.count[self.pid] - self.started
            self.started += started
        self.points.append({"wall_s": round(now - self.mark, 3), "cpu_s": None if used is None else round(used, 2),
                            "processes": started})
        self.mark = now

    def end(self, why):
        """Kills it and all that it started; it is over a moment later."""
        self.killed = why
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def entry(self):
        """What became of it, when it is over."""
        os.waitpid(self.pid, 0)
        said = json.loads(self.text["result"] or b"{}")
        code = said.get("status")
        result = "KILLED" if self.killed else "SKIP" if code == 77 and not self.program.tap else "OK" if code == 0 else "FAIL"
        told = [self.text["err"].decode(errors="replace")]
        if said.get("left"):
            told.append(f"{said['left']} processes were left behind, and killed")
        if self.killed:
            told.append(f"killed: {self.killed}")
        self.births.hear()
        return entry(self.program.name, result, code, self.text["out"].decode(errors="replace"), "\n".join(told),
                     tap=self.program.tap, duration=time.monotonic() - self.begin, cpu_s=said.get("cpu_s"), points=self.points,
                     processes=self.births.count.pop(self.pid, 0) if self.births.known else None)


def entry(name, result, code=None, out="", err="", **more):
    """How a program went, or why it did not run."""
    return {"name": name, "tap": False, "result": result, "returncode": code, "stdout": out, "stderr": err,
            "duration": 0.0, "cpu_s": None, "processes": None, "points": [], **more}
