#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The world fails takt under load: calls, disk, descriptors, GPUs, the clock, process numbers.

Each trial is one fault on a machine that runs jobs; see campaign.py for how it is judged and
kill_campaign.py for deaths. Deaths are mixed in here, too: what a fault leaves must be right also for
whoever reads it after a crash.

Usage: fault_campaign.py BUILD_FOLDER [SEED]
With TAKT_TEST_LONG=1 there are more trials.
"""
import contextlib
import functools
import os
import platform
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

import kit
from campaign import (ANYBODY, GPUS, LONG, SEED, TRIED, clean, ensure_runs, every_kind_of_job_was_there, judge_run,
                      kill, load, machine, main, so_far, tried)
from side_by_side import side_by_side

TRIALS = 8 if LONG else 1  # times what a storm does in CI
MACHINES_AT_ONCE = 2       # each of a storm's has its part of the faults
HELPERS = ("takt-launch", "takt-shim", "takt-actuate", "takt-guard")
REFUSALS = (500, 503, 507)  # of a machine in trouble; never a wrong answer
CRASHED = re.compile(r"--- SIG(SEGV|ABRT|BUS|FPE|ILL) ")
GAVE_UP = "Fatal error in GNU libmicrohttpd"  # it aborts where the kernel refuses to forget a connection


class Storm:
    """Faults of one kind on one machine. Subclasses say what a fault is, and when the world is well again."""

    what = ""           # for the table
    faults = 20         # in CI
    excused = ANYBODY   # jobs that may end otherwise than done
    armed = False       # helpers can be armed

    def __init__(self, number=0):
        self.luck = random.Random(f"{SEED} {self.what} {number}")
        self.m = None

    @contextlib.contextmanager
    def world(self):
        yield

    def fault(self):
        """One of it; True when it was one."""
        raise NotImplementedError

    def heal(self):
        """The world is as it was."""

    def start(self):
        self.m.start()

    def run(self):
        with machine(armed=self.armed) as self.m, self.world():
            self.start()
            with load(self.m, self.luck, pause_s=0.03, refusals=REFUSALS) as work:
                planned, took_place = self.faults * TRIALS // MACHINES_AT_ONCE, 0
                for trial in range(4 * planned):
                    if trial >= planned and 2 * took_place > planned:
                        break
                    time.sleep(self.luck.uniform(0, 0.2))
                    if self.fault():
                        tried(self.what)
                        took_place += 1
                    so_far(self.m, work)
                self.heal()
                ensure_runs(self.m)
                time.sleep(0.3)
            judge_run(self.m, work, self.excused)
            assert len(work.accepted) > self.faults * TRIALS / 4, f"too little load: {work.accepted}"

    @classmethod
    def case(cls):
        def case():
            side_by_side([(number, cls(number).run) for number in range(MACHINES_AT_ONCE)], MACHINES_AT_ONCE)
            assert TRIED[cls.what] >= cls.faults * TRIALS / 2, "too few of the faults took place"
        return cls.__name__, case


class gpus_are_lost(Storm):
    what = "GPUs lost, some back later"

    @contextlib.contextmanager
    def world(self):
        """What the driver says of a loss may be heard when the GPU is back: somebody looks at GPUs to the end."""
        self.healed, over = threading.Event(), threading.Event()

        def look():
            self.healed.wait()
            while not over.wait(1):
                with contextlib.suppress(OSError, kit.Refused):
                    self._resume()
        administrator = threading.Thread(target=look)
        administrator.start()
        try:
            yield
        finally:
            over.set()
            self.healed.set()
            administrator.join()

    def fault(self):
        gpu = str(self.luck.randrange(GPUS))
        self.m.twin("fault", gpu, self.luck.choice(("lost", "lost", "hang")))
        time.sleep(self.luck.uniform(0, 0.6))
        if self.luck.random() < 0.7:
            self.m.twin("fault", gpu, "none")
        if self.luck.random() < 0.15:
            self.m.kill()
            self.m.twin("fault", "all", "none")
            self.m.start()
        if self.luck.random() < 0.5:
            self._resume()
        return True

    def _resume(self):
        """A GPU that was lost under a job is set aside until an administrator has looked at it."""
        with contextlib.closing(kit.Client(self.m.socket)) as client:
            for gpu in range(GPUS):
                with contextlib.suppress(kit.Refused):  # it is not set aside
                    client.ask("POST", "/v1/gpus/resume", {"gpus": [gpu]})
            return client.status()["gpus"]

    def _none_is_aside(self):
        return all(gpu["state"] not in ("quarantined", "lost") for gpu in self._resume())

    def heal(self):
        self.m.twin("fault", "all", "none")
        kit.until(self._none_is_aside, "GPUs are back")
        self.healed.set()


class the_clock_jumps(Storm):
    what = "wall clock jumps"
    excused = ()  # nobody's job has to do with it

    @contextlib.contextmanager
    def world(self):
        self.path = self.m.path("jump")
        self._jump_to(0)
        self.m.more_env = {"LD_PRELOAD": kit.CLOCK_JUMP, "JUMP_FILE": self.path}
        yield

    def _jump_to(self, seconds):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb", buffering=0) as file:
            file.write(struct.pack("=q", int(seconds * 1e9)))

    def start(self):
        self._jump_to(3600)
        self.m.start()
        said = self.m.client().submit(self.m.witness_argv(1))["submitted_ms"] / 1e3
        assert said > time.time() + 3000, "takt's clock does not jump"

    def fault(self):
        self._jump_to(self.luck.choice((-86400, -3600, -61, -1, 0, 1, 61, 3600, 86400, 30 * 86400)))
        if self.luck.random() < 0.2:
            self.m.kill()
            self.m.start()
        return True

    def heal(self):
        self._jump_to(0)


class the_disk_is_full(Storm):
    what = "disk full, then not"
    faults = 14

    @contextlib.contextmanager
    def world(self):
        with kit.small_disk(self.m, "12m") as self.folder:
            yield

    def _free(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, "ballast"))

    def fault(self):
        kit.fill(self.folder)
        time.sleep(self.luck.uniform(0, 0.8))
        if self.luck.random() < 0.3:
            self.m.kill()
            if self.luck.random() < 0.5:  # it may refuse to start, and must not do harm
                self.m.spawn()
                time.sleep(self.luck.uniform(0, 0.6))
        self._free()
        ensure_runs(self.m)
        return True

    def heal(self):
        self._free()


class descriptors_run_out(Storm):
    what = "descriptors exhausted"

    def __init__(self, number=0):
        super().__init__(number)
        self.limited = {}

    def fault(self):
        kind = self.luck.choice(("takt", "takt", *HELPERS))
        for pid in self.m.pids(kind):
            with contextlib.suppress(OSError):
                old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                now = len(os.listdir(f"/proc/{pid}/fd")) + self.luck.randrange(4)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (now, old[1]))
                self.limited[pid] = old
        time.sleep(self.luck.uniform(0, 0.5))
        self.heal()
        ensure_runs(self.m)
        return True

    def heal(self):
        for pid, old in self.limited.items():
            with contextlib.suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
        self.limited = {}


# Calls that fail.

# Their work is done before the error is seen, they have none to report, or the program loader makes them.
NEVER_FAIL = frozenset("""exit exit_group brk mmap munmap mprotect mremap madvise rt_sigreturn rt_sigaction
    rt_sigprocmask futex rseq set_robust_list set_tid_address arch_prctl getpid gettid getppid getuid getgid
    geteuid getegid getpgid getpgrp umask sched_yield restart_syscall clock_nanosleep close execve alarm
    clock_gettime sigaltstack""".split())
ERRORS = {"openat": ("EMFILE", "EIO"), "socket": ("EMFILE",), "accept4": ("EMFILE", "ECONNABORTED"),
          "clone": ("EAGAIN",), "clone3": ("EAGAIN",), "vfork": ("EAGAIN",), "wait4": ("EINTR",),
          "waitid": ("EINTR",), "ppoll": ("EINTR",), "poll": ("EINTR",), "epoll_wait": ("EINTR",),
          "recvmsg": ("ENOMEM",), "recvfrom": ("ECONNRESET",), "sendmsg": ("ENOBUFS",),
          "sendto": ("ENOBUFS", "EPIPE"), "connect": ("ECONNREFUSED", "EAGAIN"), "pidfd_open": ("EMFILE",),
          "eventfd2": ("EMFILE",), "pipe2": ("EMFILE",), "epoll_ctl": ("ENOMEM",), "epoll_create1": ("EMFILE",),
          "write": ("ENOSPC", "EIO"), "pwrite64": ("ENOSPC", "EIO"), "fallocate": ("ENOSPC",),
          "mkdirat": ("ENOSPC",), "renameat": ("ENOSPC", "EIO"), "flock": ("ENOLCK",), "fcntl": ("ENOLCK",),
          "prctl": ("EPERM",), "kill": ("EPERM",), "setsid": ("EPERM",), "prlimit64": ("EPERM",)}
FEWEST = 15  # that a process makes
LATEST = 60  # of the calls of a name, those that are tried


def calls_of(trace):
    """(name, which one of its thread) of the calls in strace's output, once the programs' loaders are done."""
    counts, loaded, found = {}, set(), set()
    for line in trace.splitlines():
        seen = re.match(r"(\d+) +([a-z_0-9]+)\(", line)
        if not seen:
            continue
        thread, call = seen.groups()
        counts[thread, call] = counts.get((thread, call), 0) + 1
        if call == "munmap":  # the loader has read its cache
            loaded.add(thread)
        elif call == "execve":
            loaded.discard(thread)
        first_is_loaded = thread in loaded or ("execve" not in (c for t, c in counts if t == thread))
        if first_is_loaded and call not in NEVER_FAIL and counts[thread, call] <= LATEST:
            found.add((call, counts[thread, call]))
    return sorted(found)


class calls_fail(Storm):
    """Each call that a process was seen to make is made to fail by strace, once or from then on."""

    process = ""
    armed = True

    def start(self):
        super().start()
        self.todo = []

    def _record(self):
        self.todo = calls_of(self.watch("all", "error=EIO:when=65535"))
        return len(self.todo) > FEWEST

    def _next(self):
        if not self.todo:
            kit.until(self._record, lambda: f"calls are seen: {self.todo}")
            self.luck.shuffle(self.todo)
        return self.todo.pop()

    def fault(self):
        call, nth = self._next()
        error = self.luck.choice(ERRORS.get(call, ("EIO",)))
        stays = error != "EINTR" and self.luck.random() < 0.4
        said = self.watch(call, f"error={error}:when={nth}{'+' if stays else ''}")
        crash = CRASHED.search(said)
        if crash and crash.group(1) == "ABRT" and self.library_gave_up():
            crash = None
        clean([f"{self.process} crashed ({crash.group()}) on {call} {nth} {error}"] if crash else [])
        return "(INJECTED)" in said

    def watch(self, call, how):
        """Lets a process live a while with such calls failing; strace's report."""
        raise NotImplementedError

    def library_gave_up(self):
        """Whether what the last of them died of is not takt's to decide. What it leaves is judged all the same."""
        return False

    def wait_for_injection(self, report, is_up):
        """For a while from when the process is up, however long that takes."""
        with contextlib.suppress(AssertionError):
            kit.until(lambda: "(INJECTED)" in report() or is_up(), "")
            kit.until(lambda: "(INJECTED)" in report(), "", seconds=self.luck.uniform(0.8, 1.6))
        time.sleep(self.luck.uniform(0, 0.3))


class calls_of_takt_fail(calls_fail):
    what = "calls of takt fail"
    process = "takt"
    faults = 24

    def watch(self, call, how):
        log = self.m.path("strace.log")

        def report():
            with contextlib.suppress(FileNotFoundError):
                with open(log, encoding="utf-8", errors="replace") as file:
                    return file.read()
            return ""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(log)
        self.m.kill()
        self.said_before = len(self.m.said())
        self.m.spawn(wrap=["strace", "-DDD", "-f", "-q", "--seccomp-bpf", "-o", log, "-e",
                           f"trace={call}", "-e", f"inject={call}:{how}"])
        self.wait_for_injection(report, lambda: self.m.serve.poll() is not None or self.m.answers())
        code = self.m.serve.poll()
        died = code and code < 0 and not (code == -signal.SIGABRT and self.library_gave_up())
        clean([f"takt died of signal {-code} on {call} {how}"] if died else [])
        self.m.kill()
        self.m.start()
        return report()

    def library_gave_up(self):
        return GAVE_UP in self.m.said()[self.said_before:]


class calls_of_a_helper_fail(calls_fail):
    faults = 16

    def watch(self, call, how):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.m.path(f"bin/injected.{self.process}"))
        self.m.arm(self.process, f"inject {call} {how}")
        self._end_it()
        if self.process == "takt-guard":  # whose work begins when the actuator dies
            with contextlib.suppress(AssertionError):
                kit.until(lambda: not self.m.armed(self.process), "")
            time.sleep(self.luck.uniform(0.1, 0.6))
            for pid in self.m.pids("takt-actuate"):
                kill(pid)
        self.wait_for_injection(lambda: self.m.injected(self.process), lambda: not self.m.armed(self.process))
        self._end_it()
        self._end_traced()
        self.m.disarm(self.process)
        return self.m.injected(self.process)

    def _end_it(self):
        if self.process != "takt-shim":
            for pid in self.m.heads(self.process):
                kill(pid)

    def _end_traced(self):
        """A shim that cannot write its end waits until it can; whose calls fail for ever is ended here."""
        for pid in self.m.pids("takt-shim"):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                    if not re.search(r"^TracerPid:\s0$", file.read(), re.M):
                        kill(pid)

    def heal(self):
        self.m.disarm(self.process)
        self._end_traced()


def helper_case(helper):
    storm = type(f"calls_of_{helper}_fail", (calls_of_a_helper_fail,),
                 {"what": f"calls of {helper} fail", "process": helper})
    return storm.case()


# Process numbers that come again.

class process_numbers_come_again(Storm):
    what = "process number of a dead process given to the next"
    faults = 40
    PIDS = 420

    def fault(self):
        """The number of whoever is killed here goes to the very next process."""
        kind = self.luck.choice(("takt", "takt-shim", "takt-shim", "takt-launch", "takt-actuate"))
        pids = self.m.heads(kind)
        if not pids:
            return False
        pid = self.luck.choice(pids)
        if kind == "takt":
            self.m.kill()
        else:
            kill(pid)
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(pid - 1))
        ensure_runs(self.m)
        return True


def small_world():
    """Within a pid namespace of its own, with few numbers: what the case below starts."""
    with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
        file.write(str(process_numbers_come_again.PIDS))
    name, case = process_numbers_come_again.case()
    return main([(name, case)])


def own_pid_max():
    """Since Linux 6.14 each pid namespace has a pid_max of its own; before, this would be everybody's."""
    major, minor = platform.release().split(".")[:2]
    return (int(major), int(re.match(r"\d+", minor).group())) >= (6, 14)


def process_numbers_come_again_in_a_small_world():
    if not own_pid_max():
        raise kit.Skip("pid_max is the whole machine's before Linux 6.14")
    init = "\"$@\" & wait $!"  # a shell reaps who is nobody's child
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", init, "sh",
             sys.executable, "-B", os.path.abspath(__file__), kit.BUILD, str(SEED), "small-world"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    if "not permitted" in done.stderr:
        raise kit.Skip("a pid namespace of its own is not allowed here")
    kit.note(done.stdout + done.stderr)
    number = re.search(r"^# trials: (\d+) ", done.stdout, re.M)
    assert done.returncode == 0 and number, "see above"
    for _ in range(int(number.group(1))):
        tried(process_numbers_come_again.what)


def needs_strace(case):
    name, run = case

    def checked():
        if not shutil.which("strace"):
            raise kit.Skip("strace is not installed")
        run()
    return name, checked


CASES = [gpus_are_lost.case(), the_clock_jumps.case(), the_disk_is_full.case(), descriptors_run_out.case(),
         needs_strace(calls_of_takt_fail.case()),
         *(needs_strace(helper_case(helper)) for helper in HELPERS),
         process_numbers_come_again_in_a_small_world, every_kind_of_job_was_there]

if __name__ == "__main__":
    sys.exit(small_world() if sys.argv[-1] == "small-world" else main(CASES))
