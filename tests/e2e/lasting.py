# SPDX-License-Identifier: Apache-2.0
"""States that last and that no GPU is to blame for: brought about, ended, and what takt then asks counted.

For lasting_faults.py, which holds takt to its pace, and bench/fault_cost.py, which has the processor time.
"""
import contextlib
import os
import socket
import subprocess
import time

import kit

NET_KEY = "0123456789" * 4 + "\n"


def most_tries(seconds, first_s, longest_s):
    """How often one may ask in so many seconds who begins with a pause of first_s and doubles it up to longest_s."""
    tries, pause, at = 1, first_s, first_s
    while at <= seconds:
        tries, pause = tries + 1, min(2 * pause, longest_s)
        at += pause
    return tries


def lines_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0


def wakeups(m):
    """{process: how often its threads were woken so far} of takt's own."""
    found = {}
    for pid, kind in m.processes().items():
        if kind == "job":
            continue
        found[pid] = 0
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
                    found[pid] += next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return found


def woken(before, after):
    return sum(count - before.get(pid, 0) for pid, count in after.items())


class Trouble:
    """One state. `world` is around the machine's takt, `flags` are for its start; strike() brings it about, heal() ends it."""

    def __init__(self, m):
        self.m = m

    def world(self):
        return contextlib.nullcontext()

    def flags(self):
        return ()

    def strike(self, client):
        pass

    def heal(self):
        pass


class FullDisk(Trouble):
    """Under takt's state, as jobs are to start and to end: neither can be written down."""

    def __init__(self, m):
        super().__init__(m)
        self.waits = self.ends = None

    def world(self):
        return kit.small_disk(self.m, "24m")

    def strike(self, client):
        over = self.m.path("over")
        self.ends = client.submit(["sh", "-c", f"until test -e '{over}'; do sleep 0.1; done"])["id"]
        kit.until(lambda: client.job(self.ends)["state"] == "running", lambda: client.job(self.ends))
        waits = client.submit(["true"], begin_ms=int(time.time() * 1000) + 1500)
        self.waits = waits["id"]
        kit.fill(self.m.path("state"))
        with open(over, "w", encoding="ascii"):
            pass
        kit.until(lambda: time.time() * 1000 > waits["begin_ms"], "its time has come")

    def heal(self):
        os.unlink(self.m.path("state/ballast"))


class FailingHook(Trouble):
    """takt alerts has a GPU to tell of, and its hook always fails; a job's hook fails, too."""

    def __init__(self, m):
        super().__init__(m)
        self.teller = self.job = None

    def told(self):
        return lines_of(self.m.path("told"))

    def ran(self):
        return lines_of(self.m.path("ran"))

    def said(self):
        with open(self.m.path("alerts.log"), encoding="utf-8") as file:
            return file.read()

    def heal(self):
        with open(self.m.path("mended"), "w", encoding="ascii"):
            pass

    def _watch(self, hook):
        with open(self.m.path("alerts.log"), "ab") as log:
            self.teller = subprocess.Popen(
                [self.m.path("bin/takt"), "alerts", "--every", "1s", "--hook", hook], env=self.m.env(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @contextlib.contextmanager
    def world(self):
        try:
            yield
        finally:
            if self.teller:
                self.teller.kill()
                self.teller.wait()

    def strike(self, client):
        self.m.twin("fault", "1", "lost")
        self._watch(f"echo \"$TAKT_ALERT$TAKT_GPU\" >>'{self.m.path('told')}'; test -e '{self.m.path('mended')}'")
        self.job = client.submit(["true"], cwd=self.m.path("jobs"), hook=f"echo >>'{self.m.path('ran')}'; exit 3")["id"]
        kit.until(lambda: self.told() >= 1 and self.ran() >= 2, lambda: (self.told(), self.ran()))


class SilentPeer(Trouble):
    """A machine of takt net that takes every probe and never says a word."""

    def __init__(self, m):
        super().__init__(m)
        self.peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.peer.bind(("127.0.0.1", 0))
        self.peer.setblocking(False)
        self.probes = 0

    @contextlib.contextmanager
    def world(self):
        with self.peer:
            yield

    def flags(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            own = "127.0.0.1:%d" % free.getsockname()[1]
        key = self.m.path("net.key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(NET_KEY)
        return ("--net-listen", own, "--net-peers", "b=127.0.0.1:%d" % self.peer.getsockname()[1], "--net-key-file", key)

    def strike(self, client):
        kit.until(lambda: client.ask("GET", "/v1/net")["peers"][0]["state"] == "silent", lambda: client.ask("GET", "/v1/net"))

    def heard(self):
        """How many probes have come so far."""
        with contextlib.suppress(BlockingIOError):
            while self.peer.recv(2048):
                self.probes += 1
        return self.probes


class DeadHelper(Trouble):
    """A helper that has died and cannot be started: its program notes the try and fails, or is not there at all."""

    def __init__(self, m, helper, missing=False):
        super().__init__(m)
        self.helper, self.missing = helper, missing
        self.path, self.real = m.path("bin/" + helper), os.path.realpath(m.path("bin/" + helper))

    def tries(self):
        return lines_of(self.m.path("tries"))

    def strike(self, client):
        os.unlink(self.path)
        if not self.missing:
            kit.write_program(self.path, f"#!/bin/sh\necho >>'{self.m.path('tries')}'\nexit 1\n")
        for pid in self.m.pids(self.helper):
            os.kill(pid, 9)
        kit.until(lambda: self.missing or self.tries() > 0, self.m.said)

    def heal(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        os.symlink(self.real, self.path)
