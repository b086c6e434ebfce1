# SPDX-License-Identifier: Apache-2.0
"""A job says how far it is: takt/progress.h for Python, in one file to be copied beside a program.

    from takt_progress import Progress

    progress = Progress()                 # outside of takt too: then nothing happens
    for batch in loader:                  # a training loop of PyTorch, say
        loss = train_step(batch)
        progress.add(steps=1, tokens=batch.numel())

Of a job with ranks each may speak (LOCAL_RANK or RANK says which it is); takt shows the slowest, and
how far behind the fastest it is. One process of a rank writes. A call takes a few microseconds;
where that counts, make one every tenth step with steps=10.
"""
import contextlib
import mmap
import os
import struct
import time

STEPS, TOKENS, QUERIES, LATENCY = 1, 2, 4, 8
MAGIC = b"TAKTPRG1"
SIZE = 64
MAX_RANKS = 64


class Progress:
    """The file that TAKT_PROGRESS names: counters that only grow, and what a query takes."""

    def __init__(self):
        self.file, self.at, self.sequence, self.has = None, 0, 0, 0
        self.steps = self.tokens = self.queries = self.latency_us = 0
        path = os.environ.get("TAKT_PROGRESS")
        rank = int(os.environ.get("LOCAL_RANK") or os.environ.get("RANK") or 0)
        if not path or not 0 <= rank < MAX_RANKS:
            return
        self.at = rank * SIZE
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        try:
            with contextlib.suppress(PermissionError):  # one of root's that is lent to us has the right mode
                os.fchmod(fd, 0o640)
            os.pwrite(fd, b"\0", self.at + SIZE - 1)  # it grows; other ranks may be in it
            self.file = mmap.mmap(fd, self.at + SIZE)
        finally:
            os.close(fd)
        (self.sequence, self.has, self.steps, self.tokens, self.queries,
         self.latency_us) = struct.unpack_from("=IIQQQQ", self.file, self.at + 8)
        self.file[self.at:self.at + 8] = MAGIC

    def add(self, steps=0, tokens=0, queries=0, latency_s=None):
        """So much more is done; and what a query takes at present, or a step of this rank before it
        waits for the others."""
        if self.file is None:
            return
        self.steps += steps
        self.tokens += tokens
        self.queries += queries
        self.has |= STEPS * bool(steps) | TOKENS * bool(tokens) | QUERIES * bool(queries)
        if latency_s is not None:
            self.latency_us = int(latency_s * 1e6)
            self.has |= LATENCY
        self.sequence |= 1  # odd while it is written
        struct.pack_into("=I", self.file, self.at + 8, self.sequence & 0xffffffff)
        struct.pack_into("=IQQQQQ", self.file, self.at + 12, self.has, self.steps, self.tokens,
                         self.queries, self.latency_us, time.monotonic_ns())
        self.sequence += 1
        struct.pack_into("=I", self.file, self.at + 8, self.sequence & 0xffffffff)
