#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that takt is given and that are not what it is told they are: a device without an end, nests without an end, a line of
megabytes. Each verb that reads a file, and the daemon as it starts, reads each of them.

The witness is the kernel: takt ends within its time, of no signal, with no more memory than a machine has to spare, and names
the file. A pipe is waited for, as cat does: takt simulate <(zcat trace).

Usage: hostile_file.py BUILD_FOLDER
"""
import contextlib
import os
import resource
import socket
import subprocess
import sys
import threading
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import kit  # noqa: E402
from side_by_side import side_by_side  # noqa: E402

ENDS_WITHIN_S = 100  # of a machine that has other things to do, with sanitizers
MOST_MIB = 1024
AT_ONCE = 6
MIX = os.path.join(kit.SOURCE, "data/traces/openb_pod_list_default.csv.gz")


def write(data):
    def make(path):
        with open(path, "wb") as file:
            file.write(data)
    return make


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(64 << 30)


def listen(path):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as door:
        door.bind(path)


def packed(path):
    packer = zlib.compressobj(wbits=31)
    with open(path, "wb") as file:
        for _ in range(128):
            file.write(packer.compress(bytes(1 << 20)))
        file.write(packer.flush())


FILES = {
    "a folder": os.mkdir,
    "a socket": listen,
    "a device that has no end": lambda path: os.symlink("/dev/zero", path),
    "a link to itself": lambda path: os.symlink(os.path.basename(path), path),
    "64 GiB of nothing": sparse,
    "128 MiB of nothing, packed": packed,
    "a million lists in each other": write(b"[" * 1_000_000),
    "a hundred thousand objects in each other": write(b'{"a":' * 100_000),
    "a line of sixteen megabytes": write(b"a" * (16 << 20)),
    "sixteen megabytes of commas": write(b"," * (16 << 20)),
    "NULs": write(b"\0" * 4096),
    "bytes that are no UTF-8": write(b"\xff\xfe = \"\xff\"\n" * 100),
    "a database's first page alone": write(b"SQLite format 3\0" + b"\x10\0\1\1" + b"\0" * 4000),
    "numbers of a thousand digits": write(b"a = " + b"9" * 1000 + b"\n" + b"9" * 1000 + b",1\n"),
}
# What each reads; {} is the file.
VERBS = {
    "jobs": ("submit", "-f", "{}"),
    "a script of Slurm": ("submit", "--sbatch", "--", "{}"),
    "a trace": ("simulate", "{}"),
    "a report to replay": ("simulate", "--replay", "{}"),
    "points of clocks": ("replay-clocks", "--points", "{}"),
    "a recording": ("forecast", "--recording", "{}"),
    "a trace to forecast": ("forecast", "--trace", "{}"),
    "a history": ("forecast", "--history", "{}"),
    "requests to draw from": ("bench", "sched", "--mix", "{}"),
    "nodes": ("bench", "sched", "--mix", "{mix}", "--cluster", "{}"),
    "a configuration to check": ("config", "check", "{}"),
    "a configuration": ("admin", "check", "--config", "{}"),
    "a key": ("net", "bw", "--key-file", "{}", "--listen", "127.0.0.1:1"),
    "a backup": ("admin", "restore", "{}", "--state-dir", "{state}"),
}
DAEMON = {
    "its configuration": ("--config", "{}"),
}


class End:
    """How a process ended, and with what."""

    def __init__(self, argv, env):
        reading, writing = os.pipe()
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=writing, stderr=writing, start_new_session=True)
        os.close(writing)
        late = threading.Timer(ENDS_WITHIN_S, self.process.kill)
        late.start()
        text = b""
        with open(reading, "rb") as file:
            while more := file.read1(65536):
                text = (text + more)[-65536:]
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        late.cancel()
        self.status, self.text, self.mib = self.process.returncode, text.decode(errors="replace"), usage.ru_maxrss // 1024

    def __repr__(self):
        return f"status {self.status}, {self.mib} MiB, said {self.text[-600:]!r}"


def given(m, words, path):
    return [word.format(path, state=m.path("empty"), mix=MIX) for word in words]


def refused(what, reader, words, daemon):
    def attempt(m):
        path = m.path(f"f{abs(hash((what, reader)))}")
        FILES[what](path)
        argv = [m.path("bin/takt"), *(("serve", "--socket", path + ".sock", "--state-dir", path + ".state") if daemon else ()),
                *given(m, words, path)]
        end = End(argv, m.env())
        assert end.status > 0 and end.mib < MOST_MIB and (path in end.text or "NUL" in end.text), (what, reader, end)
    return attempt


def case_of(what):
    def case():
        with kit.machine(gpus=1) as m:
            m.start()
            os.mkdir(m.path("empty"))
            tries = [(reader, refused(what, reader, words, False)) for reader, words in VERBS.items()]
            tries += [(reader, refused(what, reader, words, True)) for reader, words in DAEMON.items()]
            side_by_side([(reader, lambda attempt=attempt: attempt(m)) for reader, attempt in tries], AT_ONCE)
            assert m.answers(), m.said()
    case.__name__ = what.replace(" ", "_")
    return case


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(kit.main([(f"{what} is refused by whoever reads a file", case_of(what)) for what in FILES]))
