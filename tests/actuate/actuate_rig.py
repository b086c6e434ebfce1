# SPDX-License-Identifier: Apache-2.0
"""The actuator and its guard as real processes on simulated GPUs, for the tests that kill them.

The witness of what a GPU holds is `takt-twin state`, which reads the boards and knows nothing of takt's
journal. The messages are packed here by hand, so that a change of the format is noticed.
"""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Skip, main  # noqa: E402
from waiting import WAIT_S, until  # noqa: E402

VERSION = 5
HELLO, SET, RENEW, END, STATUS, RESET, CAP, DECLARE, CPU, MIG = range(1, 11)
STANDING, JOB, BENCHMARK = range(3)
CLEAN, LEASED, CHANGED, ADVISE, UNKNOWN, FOREIGN, WAITING = range(7)
BUSY, NOT_FOUND, UNSUPPORTED, VERSION_RC, UNAVAILABLE = -4104, -4102, -4105, -4106, -4099
REQUEST = struct.Struct("@IIQQQQIIIIIIII96s80s")
REPLY = struct.Struct("@IIQiIQ12IQQIIQQ96s160s")
REPLY_FIELDS = ("version op seq rc vendor epoch gpu_count gpu_state min max readback power cap "
                "mem_min mem_max base_min base_max base_power lease job mig_state reserved journal_device journal_inode uuid message").split()
AS_FOUND, IS_SET, TO_BE_PUT_BACK, AT_WORK = range(4)  # a GPU's mig_state
MS = 1_000_000
REFUSED = "the baseline could not be restored"  # said by who tries, actuator or guard
DEADLINE_MS = "60000"  # of a driver's call: no busy machine takes that long

ACTUATE, GUARD, TWIN, NVML = map(os.path.abspath, sys.argv[1:5])
ENTER_MIG, MADE_TO_CALL = map(os.path.abspath, sys.argv[6:8])


def text(raw):
    return raw.split(b"\0", 1)[0].decode()


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(path)
        self.seq = 0

    def send(self, op, lease=0, uuid="", job=None, ttl_ms=60_000, low=0, high=900, index=0,
             power_w=0, rank=JOB, mem=0, assume_unlocked=1, mig=""):
        self.seq += 1
        job = lease // 10 if job is None else job
        self.socket.send(REQUEST.pack(VERSION, op, self.seq, lease, job, ttl_ms * MS, low, high,
                                      power_w * 1000, rank, index, 0, mem, assume_unlocked, uuid.encode(),
                                      mig.encode()))
        return self.seq

    def receive(self):
        raw = self.socket.recv(4096)
        assert len(raw) in (0, REPLY.size), len(raw)
        if not raw:
            raise ConnectionResetError("the actuator is gone")
        reply = dict(zip(REPLY_FIELDS, REPLY.unpack(raw)))
        reply["uuid"], reply["message"] = text(reply["uuid"]), text(reply["message"])
        return reply

    def ask(self, *args, **more):
        seq = self.send(*args, **more)
        reply = self.receive()
        assert reply["seq"] == seq, reply
        return reply

    def status(self, index):
        return self.ask(STATUS, index=index)

    def close(self):
        self.socket.close()


class Rig:
    """A simulated machine and the folder in which takt keeps lock, journal and socket."""

    def __init__(self, folder, gpus):
        self.folder = folder
        self.env = dict(os.environ)
        self.env.pop("TAKT_CRASH_AT", None)
        self.env["TAKT_TWIN_FORCE"] = "1"  # the library is named by its path, here and nowhere else
        self.env["TAKT_TWIN"] = self.run(TWIN, "create", "hgx-h100", "--gpus", str(gpus), "--path",
                                         self.path("machine.twin"), "--seed", "7").strip()
        self.uuids = [gpu["uuid"] for gpu in self.state()]
        self.started = []
        self.killed = 0
        self.make_cpus()
        self.log = open(self.path("log"), "wb")

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *command):
        done = subprocess.run(command, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def state(self):
        return json.loads(self.run(TWIN, "state", "--json"))["gpus"]

    # The witness; `gpus`: a state that was just read.

    def locked(self, gpus=None):
        """Which GPUs are locked, and to what."""
        return {gpu["index"]: (gpu["lock_min_mhz"], gpu["lock_max_mhz"])
                for gpu in gpus or self.state() if gpu["locked"]}

    def memory_locked(self, gpus=None):
        return [gpu["index"] for gpu in gpus or self.state() if gpu["memory_locked"]]

    def limits(self, gpus=None):
        """And which power limits are not the board's own."""
        return {gpu["index"]: gpu["limit_mw"] for gpu in gpus or self.state()
                if gpu["limit_mw"] != gpu["default_limit_mw"]}

    def enter_mig_mode(self, gpu):
        """As an administrator does it, which takt never does; the GPU is cut into nothing then."""
        self.run(ENTER_MIG, NVML, str(gpu))

    def instances(self, gpus=None):
        """Of each GPU that is cut into some."""
        return {gpu["index"]: len(gpu["mig_devices"]) for gpu in gpus or self.state() if gpu["mig_devices"]}

    def make_cpus(self):
        """What the kernel's sysfs would have of three CPUs; takt changes these files and no CPU."""
        for policy in range(3):
            folder = self.path(f"fake-sysfs/devices/system/cpu/cpufreq/policy{policy}")
            os.makedirs(folder)
            for name, khz in (("cpuinfo_min", 800000), ("scaling_min", 800000), ("scaling_max", 3500000)):
                with open(f"{folder}/{name}_freq", "w", encoding="ascii") as file:
                    file.write(f"{khz}\n")
        with open(self.path("fake-sysfs/devices/system/cpu/possible"), "w", encoding="ascii") as file:
            file.write("0-2\n")

    def cpu_limits(self):
        """Ceilings of CPUs that are not as they were found, in MHz."""
        found = {}
        for policy in range(3):
            path = self.path(f"fake-sysfs/devices/system/cpu/cpufreq/policy{policy}/scaling_max_freq")
            with open(path, encoding="ascii") as file:
                mhz = int(file.readline() or 0) // 1000
            if mhz != 3500:
                found[policy] = mhz
        return found

    def fault(self, gpu, *faults):
        self.run(TWIN, "fault", str(gpu), "none")
        for fault in faults:
            self.run(TWIN, "fault", str(gpu), fault)

    def guard_script(self, env):
        """A guard that sees other environment variables than the actuator."""
        path = self.path("guard.sh")
        # Written by a process of its own: what starts beside us would hold the file, which then cannot be run.
        subprocess.run(["install", "-m", "755", "/dev/stdin", path], check=True,
                       input=f"#!/bin/sh\nunset TAKT_CRASH_AT\n{env} exec {GUARD} \"$@\"\n".encode())
        return path

    def spawn(self, *flags, guard=None, crash=None, socket_name="socket"):
        env = dict(self.env, **({"TAKT_CRASH_AT": crash} if crash else {}))
        process = subprocess.Popen(
            [ACTUATE, "--socket", self.path(socket_name), "--journal", self.path("journal"),
             "--lock", self.path("lock"), "--guard", guard or GUARD, "--nvml", NVML,
             "--sysfs", self.path("fake-sysfs"), "--deadline-ms", DEADLINE_MS, *flags],
            env=env, stdout=self.log, stderr=self.log)
        self.started.append(process)
        return process

    def start(self, *flags, **more):
        """A running actuator with a guard at its side."""
        process = self.spawn(*flags, **more)
        until(lambda: self.greets(process, more.get("socket_name", "socket")), "it answers")
        return process

    def greets(self, process, socket_name):
        """Whether the actuator answers; what a child of a killed one had taken on is reset."""
        client = self.connect(process, socket_name)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError), contextlib.closing(client):
            return client.ask(HELLO)["op"] == HELLO
        return False

    def connect(self, process=None, socket_name="socket"):
        def client():
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                return Client(self.path(socket_name))
            assert process is None or process.poll() is None, self.said()
            return None
        return until(client, lambda: "an actuator answers: " + self.said())

    def said(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def guards(self):
        """Pids of the guards of this rig."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                if words[0].endswith(b"takt-guard") and self.path("journal").encode() in words:
                    found.append(int(pid))
        return found

    def kill_guards(self):
        for pid in self.guards():
            with contextlib.suppress(ProcessLookupError):  # it ended by itself just now
                os.kill(pid, signal.SIGKILL)

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                self.kill(process)
        self.kill_guards()
        self.log.close()


@contextlib.contextmanager
def rig(gpus=2, mig=None):
    """mig: a GPU that is in MIG mode."""
    # A killed guard may write its last file while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="takt-actuate-", ignore_cleanup_errors=True) as folder:
        made = Rig(folder, gpus)
        if mig is not None:
            made.enter_mig_mode(mig)
        try:
            yield made
        except Exception:
            print("".join(f"# {line}\n" for line in made.said().splitlines()), end="")
            raise
        finally:
            made.end()


def restored(machine, caps=None):
    """No lock, CPUs as they were, no MIG instance, and no power limit but those of a facility's caps."""
    def left():
        gpus = machine.state()
        limits = machine.limits(gpus)
        return (machine.locked(gpus), machine.memory_locked(gpus), machine.cpu_limits(), machine.instances(gpus),
                {} if limits == (caps or {}) else limits)
    until(lambda: not any(left()), lambda: f"restored; still locked or limited: {left()}")
