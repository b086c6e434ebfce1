#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The disk of takt's state is full: what was promised is still written down, new jobs are refused with the reason.

Usage: full_disk.py BUILD_FOLDER
"""
import contextlib
import os
import sys
import time

import kit

DISK = "160m"  # of less nothing is set aside
MIB = 1 << 20
PRINTED = 8 * MIB


def running(client, job):
    kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
    return job


class Machine:
    """takt on a small disk, with a job that has printed much, one that ends when it is told to, and one that waits."""

    def __init__(self, m):
        self.m = m
        m.start("--history", "no", "--output-limit", "64M")
        self.client = m.client()
        printed, self.over = m.path("jobs/printed"), m.path("jobs/over")
        self.hog = self.client.submit(
            ["sh", "-c", f"head -c {PRINTED} /dev/zero; touch '{printed}'; exec sleep 600"], cwd=m.path("jobs"))["id"]
        self.ends = self.client.submit(["sh", "-c", f"until test -e '{self.over}'; do sleep 0.05; done; exit 3"])["id"]
        self.waits = self.client.submit(["true"], begin_ms=int(time.time() * 1000) + 3600000)["id"]
        running(self.client, self.hog)
        running(self.client, self.ends)
        kit.until(lambda: os.path.exists(printed), "it has printed")

    def reserved(self):
        return os.stat(self.m.path("state/takt.db.reserve")).st_blocks * 512

    def fill(self):
        kit.fill(self.m.path("state"))

    def empty(self):
        os.unlink(self.m.path("state/ballast"))

    def refused(self):
        try:
            job = self.client.submit(["true"])
        except kit.Refused as error:
            said = error.answer["error"]
            assert (error.status, said["name"]) == (507, "ENOSPC"), error
            assert self.m.path("state") in said["message"], error
            assert f"job {self.hog} has the largest log, " in said["message"], error
            return True
        self.client.wait(job["id"])
        return False

    def let_end(self):
        with open(self.over, "w", encoding="ascii"):
            pass

    def notes(self):
        return [note for note in self.client.status().get("notes", []) if "is full: no job is accepted" in note]


@contextlib.contextmanager
def machine():
    with kit.machine(gpus=1) as m, kit.small_disk(m, DISK):
        yield Machine(m)


def cancels_and_ends_are_recorded():
    with machine() as at:
        client, whole = at.client, at.reserved()
        assert whole == 4 * MIB, whole
        at.fill()
        kit.until(at.refused, "a job is refused")
        assert client.cancel(at.waits)["state"] == "cancelled"
        assert client.cancel(at.hog)["state"] == "cancelled"
        at.let_end()
        view = client.wait(at.ends)
        assert (view["state"], view["exit_code"]) == ("failed", 3), view
        at.m.kill()
        at.empty()
        at.m.start("--history", "no")
        at.client = client = at.m.client()
        found = {job["id"]: job["state"] for job in client.history()}
        assert (found[at.waits], found[at.hog], found[at.ends]) == ("cancelled", "cancelled", "failed"), found
        assert client.wait(client.submit(["true"])["id"])["state"] == "done"


def an_end_that_nobody_asks_for_is_recorded():
    """Nobody writes to the database meanwhile: takt sees by itself that a shim has no room."""
    with machine() as at:
        at.fill()
        at.let_end()
        assert at.client.wait(at.ends)["state"] == "failed"


def it_is_said_and_passes():
    with machine() as at:
        at.fill()
        kit.until(at.refused, "a job is refused")
        kit.until(at.notes, lambda: at.client.status())
        assert f"job {at.hog} has the largest log" in at.notes()[0], at.notes()
        assert at.m.said().count("is full: no job is accepted") == 1, at.m.said()
        at.let_end()
        at.client.wait(at.ends)
        at.empty()
        kit.until(lambda: not at.notes(), at.notes)
        assert not at.refused()
        assert at.reserved() == 4 * MIB, at.reserved()


if __name__ == "__main__":
    sys.exit(kit.main([cancels_and_ends_are_recorded, an_end_that_nobody_asks_for_is_recorded, it_is_said_and_passes]))
