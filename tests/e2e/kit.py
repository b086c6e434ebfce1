# SPDX-License-Identifier: Apache-2.0
"""A whole takt on a simulated machine, for tests that treat it as a user would: and kill it.

A test begins with `import kit` and is called with the build folder as its first argument. `machine()`
gives a Machine: a folder of its own with a simulated machine, the programs, state, sockets and locks;
nothing of it is left when the block ends, whatever happened in it. Every wait has an end.

Witnesses, which know nothing of takt's records: `Machine.witness()` (what the jobs themselves saw, see
witness.c) and `Machine.boards()` (what the simulated boards hold).
"""
import collections
import contextlib
import ctypes
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap
from tap import Skip, note, plain  # noqa: F401 (for the tests)
from waiting import WAIT_S, until

BUILD = os.path.abspath(sys.argv[1])
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HELPERS = ("takt-launch", "takt-shim", "takt-actuate", "takt-guard")
TWIN = os.path.join(BUILD, "twin/takt-twin")
TWIN_LIB = os.path.join(BUILD, "twin/lib/550/libnvidia-ml.so.1")
WITNESS = os.path.join(BUILD, "tests/e2e/takt-witness")
CLOCK_JUMP = os.path.join(BUILD, "tests/e2e/libclock_jump.so")
ARMED = os.path.join(BUILD, "tests/e2e/takt-armed")
PROGRAMS = ("takt", "takt-cli.so", "takt-top.so", "takt-serve", "takt-bench")
ENDED = ("done", "failed", "cancelled", "lost", "interrupted")
# A workload: two fifths of it follow the clock: 1500 MHz of 1980 cost a ninth of the time, 600 MHz almost as much again.
MIXED = """
step_ms = 100

[mixed]
kind = "compute"
share = 1000
util = 1000
memory_util = 300
activity = 900
clock_weight = 350
"""
IDLE_S = 20  # of a connection; takt closes one that says nothing for 30 s


class Refused(Exception):
    """An answer of the API that is not 2xx."""

    def __init__(self, status, answer):
        super().__init__(f"{status}: {answer}")
        self.status, self.answer = status, answer


class Client:
    """One connection to the API. Not for several threads at once."""

    def __init__(self, path, timeout=WAIT_S):
        self.path, self.timeout, self.connection, self.used = path, timeout, None, 0

    def _connect(self):
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        raw.settimeout(self.timeout)
        try:
            raw.connect(self.path)
        except OSError:
            raw.close()
            raise
        self.connection = http.client.HTTPConnection("takt", timeout=self.timeout)
        self.connection.sock = raw

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def raw(self, method, path, body=None, headers=None):
        """(status, bytes of the answer). OSError or HTTPException: the connection broke."""
        if time.monotonic() - self.used > IDLE_S:
            self.close()
        try:
            if not self.connection:
                self._connect()
            self.connection.request(method, path, body, headers or {})
            response = self.connection.getresponse()
            answer = response.read()
        except BaseException:
            self.close()
            raise
        self.used = time.monotonic()
        if response.will_close:
            self.close()
        return response.status, answer

    def ask(self, method, path, body=None):
        """The answer's JSON; Refused when the status is not 2xx."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        status, answer = self.raw(method, path, None if body is None else json.dumps(body), headers)
        parsed = json.loads(answer) if answer else None
        if not 200 <= status < 300:
            raise Refused(status, parsed)
        return parsed

    def submit(self, argv, gpus=0, **more):
        """The job as accepted. `more`: priority, clock_ask, clock_mhz, requeue, env, ..."""
        spec = {"argv": list(argv), "cwd": "/", "gpus": gpus, "env": ["PATH=/usr/bin:/bin"], **more}
        return self.ask("POST", "/v1/jobs", spec)

    def job(self, job_id):
        return self.ask("GET", f"/v1/jobs/{job_id}")

    def wait(self, job_id, seconds=WAIT_S):
        """The job when it has ended."""
        end = time.monotonic() + seconds
        while True:
            left = max(end - time.monotonic(), 0)
            view = self.ask("GET", f"/v1/jobs/{job_id}/wait?timeout_ms={int(min(left, 30) * 1000)}")
            if view["state"] in ENDED:
                return view
            assert left > 0, f"job {job_id} has not ended: {view}"

    def cancel(self, job_id):
        return self.ask("POST", f"/v1/jobs/{job_id}/cancel", {})

    def status(self):
        return self.ask("GET", "/v1/status")

    def live(self):
        """Jobs that have not ended."""
        return self.ask("GET", "/v1/jobs?limit=10000")["jobs"]

    def history(self):
        """Jobs that have ended."""
        jobs, before = [], 0
        while True:
            part = self.ask("GET", f"/v1/jobs?history=1&limit=10000&before={before}")
            jobs += part["jobs"]
            before = part.get("next")
            if not before:
                return jobs

    def metrics(self):
        """{series with labels: value} of the metrics page."""
        status, page = self.raw("GET", "/metrics")
        assert status == 200, (status, page)
        lines = (line for line in page.decode().splitlines() if line and line[0] != "#")
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


# `milli`: thousandths of each of its GPUs; 0 = MIG instances, which are devices of their own.
Begin = collections.namedtuple("Begin", "job attempt gpus begin_ns milli", defaults=(1000,))
End = collections.namedtuple("End", "job attempt gpus begin_ns end_ns milli", defaults=(1000,))
Busy = collections.namedtuple("Busy", "job attempt what at_ns who", defaults=("",))


def parse_gpus(text):
    """(GPUs, thousandths of each) of "-", "0,3" or "0,3@250"."""
    gpus, _, milli = text.partition("@")
    return () if gpus == "-" else tuple(map(int, gpus.split(","))), int(milli or 1000)


class Witness:
    """What the jobs of a folder have seen so far."""

    def __init__(self, lines):
        self.begins, self.ends, self.busy, self.beside, self.dying = [], [], [], [], []
        for line in lines:
            word, job, attempt, what, *times = line.split()
            if word in ("busy", "beside", "dying"):
                getattr(self, word).append(Busy(int(job), attempt, what, int(times[0]), *times[1:]))
                continue
            gpus, milli = parse_gpus(what)
            if word == "begin":
                self.begins.append(Begin(int(job), attempt, gpus, int(times[0]), milli))
            else:
                assert word == "end", line
                self.ends.append(End(int(job), attempt, gpus, *map(int, times), milli))


def environ_of(pid, name):
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()


def is_running(pid, words):
    """Whether these bytes are in its command line; a process that is gone runs nothing."""
    try:
        return words in environ_of(pid, "cmdline")
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_with(mark, name=b""):
    """Whose environment or arguments hold the mark, and that are called so; ourselves left out."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):
            text = environ_of(pid, "environ") + environ_of(pid, "cmdline")
            if pid != os.getpid() and mark.encode() in text and environ_of(pid, "comm").startswith(name):
                found.append(pid)
    return found


def kill_all_with(mark):
    """Kills them until there are none."""
    end = time.monotonic() + WAIT_S
    while (left := processes_with(mark)) and time.monotonic() < end:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def copy_program(source, to):
    """By a process of its own: what starts beside us would hold a file that we write, which then cannot be run."""
    subprocess.run(["cp", "-p", source, to], check=True)


def write_program(path, text):
    """A script, by a process of its own for the same reason."""
    subprocess.run(["sh", "-c", 'cat >"$1" && chmod 755 "$1"', "sh", path], input=text.encode(), check=True)


def process_state(pid):
    """The kernel's letter for a process, "" when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


class Machine:
    """A simulated machine with takt on it. `armed`: helpers can be told to die, see arm()."""

    def __init__(self, folder, board, gpus=None, armed=False):
        self.folder = folder
        self.socket = self.path("run/takt.sock")
        self.serve = None
        self.users = "own"
        self.more_env = {}
        self.more_flags = ()
        self.armed_helpers = armed
        self.assume_unlocked = True  # most jobs of tests only sleep: no GPU is ever seen under load
        self.wrap = ()
        self.clients = []
        self.log = open(self.path("takt.log"), "ab")
        os.mkdir(self.path("jobs"))
        self._install(armed)
        count = ["--gpus", str(gpus)] if gpus else []
        self.create_words = ("create", board, *count, "--path", self.path("machine"), "--seed", "7")
        self.twin(*self.create_words)

    def path(self, name):
        return os.path.join(self.folder, name)

    def _install(self, armed):
        os.makedirs(self.path("bin/real"))
        for name in PROGRAMS:
            copy_program(os.path.join(BUILD, "src/daemon", name), self.path(f"bin/{name}"))
        for name in HELPERS:
            real = os.path.join(BUILD, "src/daemon", name)
            if armed:
                os.symlink(real, self.path(f"bin/real/{name}"))
                copy_program(ARMED, self.path(f"bin/{name}"))
            else:
                os.symlink(real, self.path(f"bin/{name}"))

    def env(self, **more):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("TAKT_") and name != "LD_LIBRARY_PATH"}
        return dict(env, TAKT_TWIN=self.path("machine"), TAKT_SOCKET=self.socket, **self.more_env,
                    **more)

    def run(self, *command, **more):
        done = subprocess.run(command, env=self.env(), capture_output=True, text=True,
                              timeout=WAIT_S, **more)
        return done

    def twin(self, *words):
        done = self.run(TWIN, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def takt(self, *words, **more):
        """The command line, as a finished process with returncode, stdout, stderr."""
        return self.run(self.path("bin/takt"), *words, **more)

    def twin_exec(self, *words):
        """The command line where the simulated driver is found, without a daemon."""
        return self.run(TWIN, "exec", "--machine", self.path("machine"), "--", self.path("bin/takt"), *words)

    def boards(self):
        """The witness of what each GPU holds: clocks, locks, processes."""
        return json.loads(self.twin("state", "--json"))["gpus"]

    def locked(self):
        """{GPU: (lowest, highest)} of the clocks that are locked on the boards."""
        return {gpu["index"]: (gpu["lock_min_mhz"], gpu["lock_max_mhz"])
                for gpu in self.boards() if gpu["locked"]}

    # takt itself.

    def flags(self):
        # Root for others ignores LD_LIBRARY_PATH: there the simulated driver has to be named. And many a machine that
        # runs tests has no cgroup v2: tests/guest has.
        driver = ["--nvml-path", TWIN_LIB, "--allow-weak-isolation"] if self.users == "all" else []
        locks = ["--assume-unlocked"] if self.assume_unlocked else []
        # The guard is the actuator's child: what traces an armed one would have no more calls than that.
        calls = ["--driver-calls", "any"] if self.armed_helpers else []
        return [*driver, *locks, *calls, "--users", self.users, "--runtime-dir", self.path("run"), "--state-dir",
                self.path("state"), "--lock-dir", self.path("locks"), "--metrics-listen", "off",
                *self.more_flags]

    def hold_back(self, program):
        """That program of takt's does nothing until the function that this returns is called."""
        path, there = self.path("bin/" + program), self.path(program + ".there")
        real = os.path.realpath(path)
        os.unlink(path)
        write_program(path, f"#!/bin/sh\nwhile [ ! -e '{there}' ]; do sleep 0.05; done\nexec '{real}' \"$@\"\n")
        return lambda: open(there, "w", encoding="ascii").close()

    def spawn(self, *flags, crash=None, user=None, wrap=(), hide=None):
        """Starts takt without waiting for it, as another user if told; `wrap` are words before it, `hide` is what
        the driver does not have."""
        who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self.serve = subprocess.Popen(
            [*self.wrap, *wrap, TWIN, "exec", "--machine", self.path("machine"), *(["--hide", hide] if hide else []),
             "--", self.path("bin/takt"), "serve", *self.flags(), *flags],
            env=self.env(**({"TAKT_CRASH_AT": crash} if crash else {})),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
            **who)
        return self.serve

    def answers(self):
        try:
            client = Client(self.socket, 5)
            client.ask("GET", "/v1/version")
            client.close()
            return True
        except (OSError, http.client.HTTPException, Refused):  # refused: a call of its failed, as campaigns have it
            return False

    def start(self, *flags, crash=None, hide=None):
        """takt runs and answers when this returns."""
        self.spawn(*flags, crash=crash, hide=hide)

        def ready():
            assert self.serve.poll() is None, "takt ended: " + self.said()
            return self.answers()
        until(ready, lambda: "takt answers; it said: " + self.said())
        return self

    def died(self, seconds=WAIT_S):
        """Waits until takt is gone; its return code."""
        code = self.serve.wait(seconds)
        self.close_clients()
        return code

    def kill(self):
        self.serve.kill()
        return self.died()

    def stop(self):
        self.serve.terminate()
        return self.died()

    def client(self):
        """One more connection, closed at the end."""
        self.clients.append(Client(self.socket))
        return self.clients[-1]

    def close_clients(self):
        for client in self.clients:
            client.close()

    def said(self):
        with open(self.path("takt.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    # Jobs.

    def witness_argv(self, ms, *command):
        """A job that holds its GPUs for so many milliseconds, or while the command runs."""
        return [WITNESS, self.path("jobs"), str(ms), *(["--", *command] if command else [])]

    def load_argv(self, *words):
        """A job that computes on its GPUs as the boards see it."""
        return [TWIN, "load", *map(str, words)]

    def witness(self):
        try:
            with open(self.path("jobs/witness.log"), encoding="ascii") as file:
                return Witness(file.read().splitlines())
        except FileNotFoundError:
            return Witness([])

    # Processes.

    def processes(self):
        """{pid: kind} of everything that belongs to this machine; kind is "takt", a helper's name,
        or "job" for the rest."""
        found, mark = {}, self.folder.encode()
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                words = environ_of(pid, "cmdline").split(b"\0")
                if pid == os.getpid() or not words[0]:
                    continue
                name = os.path.basename(words[0]).decode(errors="replace")
                if any(mark in word for word in words[1:]) and name in HELPERS:
                    found[pid] = name
                elif mark in words[0] and name == "takt":
                    found[pid] = "takt"
                elif mark in environ_of(pid, "environ") or any(mark in word for word in words):
                    found[pid] = "job"
        return found

    def pids(self, kind):
        return sorted(pid for pid, what in self.processes().items() if what == kind)

    def heads(self, kind):
        """Like pids(), without those whose parent is of the kind, too: a child of the launcher's is a job's shim a moment later."""
        pids = self.pids(kind)
        with_parents = {}
        for pid in pids:
            with contextlib.suppress(OSError, IndexError):  # it may end meanwhile
                with_parents[pid] = parent_of(pid)
        return [pid for pid, parent in with_parents.items() if parent not in pids]

    def shims(self):
        """{(job, attempt): pid} of the shims that run."""
        found = {}
        for pid in self.pids("takt-shim"):
            with contextlib.suppress(OSError, ValueError, IndexError):  # it may end meanwhile
                job, attempt = environ_of(pid, "cmdline").split(b"\0")[1].split(b".")
                found[int(job), int(attempt)] = pid
        return found

    # A helper that dies at a named place, or whose calls fail (armed machines only).

    def arm(self, helper, point):
        """The next process of this kind to start dies at `point` ("name" or "name:N"), or has calls fail
        ("inject CALL error=ERROR:when=N")."""
        with open(self.path("arming"), "w", encoding="ascii") as file:
            file.write(point)
        os.rename(self.path("arming"), self.path(f"bin/arm.{helper}"))

    def armed(self, helper):
        """Whether nobody has taken the arms yet."""
        return os.path.exists(self.path(f"bin/arm.{helper}"))

    def disarm(self, helper):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(f"bin/arm.{helper}"))

    def fate(self, helper):
        """Of the process that took the arms: None while it lives, else the signal it died of, or 0."""
        try:
            with open(self.path(f"bin/died.{helper}"), encoding="ascii") as file:
                return int(file.read())
        except FileNotFoundError:
            return None

    def forget_fate(self, helper):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(f"bin/died.{helper}"))

    def injected(self, helper):
        """What strace saw of the process that took arms of the kind "inject"; "" without one."""
        try:
            with open(self.path(f"bin/injected.{helper}"), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def sanitizer_says(self):
        """Lines of a sanitizer's finding in what takt's processes said."""
        marks = ("runtime error:", "ERROR: AddressSanitizer", "ERROR: LeakSanitizer: detected")
        return [line for line in self.said().splitlines() if any(mark in line for mark in marks)]

    def kill_all(self):
        """Kills whatever is left, until nothing is."""
        self.close_clients()
        end = time.monotonic() + WAIT_S
        left = self.processes()
        while left and time.monotonic() < end:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self.serve:
                self.serve.poll()
            time.sleep(0.01)
            left = self.processes()
        if self.serve:
            self.serve.wait(WAIT_S)
        return left

    def end(self):
        left = self.kill_all()
        self.log.close()
        assert not left, f"processes are left: {left}"
        assert not self.sanitizer_says(), self.sanitizer_says()


@contextlib.contextmanager
def machine(board="hgx-h100", gpus=None, armed=False):
    """A simulated machine, takt not yet started on it."""
    folder = tempfile.mkdtemp(prefix="tk-", dir=os.environ.get("TAKT_TEST_DIR"))
    made = None
    try:
        made = Machine(folder, board, gpus, armed)
        yield made
    except BaseException:
        if made:
            note("what takt said at the end:\n" + "\n".join(made.said().splitlines()[-40:]))
        raise
    finally:
        try:
            if made:
                made.end()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def small_disk(m, size):
    """A tmpfs at the machine's state folder, in a mount namespace of our own."""
    os.mkdir(m.path("state"))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) != 0:  # CLONE_NEWNS
        raise Skip("a mount namespace of its own is not allowed here")
    if libc.mount(b"none", b"/", None, 0x44000, None) != 0 or libc.mount(
            b"tmpfs", m.path("state").encode(), b"tmpfs", 0, f"size={size}".encode()) != 0:
        raise Skip("mounting is not allowed here")
    try:
        yield m.path("state")
    finally:
        m.kill_all()
        libc.umount2(m.path("state").encode(), 2)


def fill(folder):
    """Takes all the room that there is."""
    with open(os.path.join(folder, "ballast"), "ab", buffering=0) as file:
        for block in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"\0" * block)


def is_sanitized():
    return tap.is_sanitized(TWIN_LIB)


def main(cases, at_once=1):
    """Runs the cases (functions, or pairs of name and function), so many at once; the process's exit status."""
    return tap.main(cases, is_sanitized(), at_once)
