#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine restarts: every process is gone at once, and the kernel has a new boot id (a file bound over the
kernel's, in a mount namespace of takt's own).

Usage: reboot.py BUILD_FOLDER
"""
import collections
import contextlib
import os
import shutil
import subprocess
import sys
import uuid

import kit

BIND = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


def needs_mounts():
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        raise kit.Skip("a mount namespace of its own is not allowed here")


def reboot(m, *flags):
    """Everything dies, and takt starts in a kernel that has booted since."""
    assert not m.kill_all()
    with open(m.path("boot_id"), "w", encoding="ascii") as file:
        file.write(f"{uuid.uuid4()}\n")
    m.wrap = ("unshare", "--mount", "sh", "-c", BIND, m.path("boot_id"))
    shutil.rmtree(m.path("machine"), ignore_errors=True)  # whose boards have lost power, too
    with contextlib.suppress(FileNotFoundError):
        os.unlink(m.path("machine"))
    made = m.run(*m.wrap, kit.TWIN, *m.create_words)
    assert made.returncode == 0, made
    m.start(*flags)
    return m.client()


def running(m, client, **more):
    job = client.submit(m.witness_argv(600_000), gpus=1, **more)["id"]
    kit.until(lambda: any(begin.job == job for begin in m.witness().begins) and is_running(client, job),
              lambda: client.job(job))
    return job


def is_running(client, job):
    """takt knows, too; its job may have begun a moment earlier."""
    return client.job(job)["state"] == "running"


def begins(m):
    return collections.Counter(begin.job for begin in m.witness().begins)


def what_ran_is_interrupted_and_runs_again_only_if_it_may():
    needs_mounts()
    with kit.machine(gpus=3) as m:
        m.start("--min-runtime", "0s")
        client = m.client()
        plain, again = running(m, client), running(m, client, requeue=True)
        third = running(m, client, preemptible=True)
        waits = client.submit(m.witness_argv(1), gpus=3)["id"]
        held = client.submit(m.witness_argv(1), gpus=1, held=True)["id"]
        client = reboot(m)
        for job in (plain, third):
            view = client.wait(job)
            assert view["state"] == "interrupted" and "restarted" in view["message"] and view["cause"] == "node_reboot", view
        kit.until(lambda: begins(m)[again] == 2 and is_running(client, again), lambda: client.job(again))
        view = client.job(again)
        assert (view["attempt"], view["restarts"]) == (2, 1), view
        assert client.job(held)["held"] == "owner" and client.job(waits)["state"] == "waiting"
        client.cancel(again)
        assert client.wait(again)["state"] == "cancelled" and client.wait(waits)["state"] == "done"
        assert begins(m) == {plain: 1, again: 2, third: 1, waits: 1} and not m.witness().busy, begins(m)


def it_runs_once_more_for_each_restart_and_never_twice_at_once():
    needs_mounts()
    with kit.machine(gpus=1) as m:
        m.start()
        job = running(m, m.client(), requeue=True)
        for number in (2, 3):
            client = reboot(m)
            kit.until(lambda n=number: begins(m)[job] == n and is_running(client, job),
                      lambda: client.job(job))
        m.kill()  # takt alone: what runs goes on
        m.start()
        client = m.client()
        kit.until(lambda: is_running(client, job), lambda: client.job(job))
        assert client.job(job)["restarts"] == 2, client.job(job)
        assert begins(m)[job] == 3 and not m.witness().busy, m.witness().busy


def what_was_staged_waits_and_runs_once():
    needs_mounts()
    with kit.machine(gpus=1) as m:
        m.start("--stage", "all")
        client = m.client()
        holder = running(m, client)
        staged = client.submit(m.witness_argv(1), gpus=1)["id"]
        kit.until(lambda: (staged, 1) in m.shims(), m.shims)
        client = reboot(m, "--stage", "all")
        assert client.wait(holder)["state"] == "interrupted", client.job(holder)
        view = client.wait(staged)
        assert (view["state"], view.get("restarts", 0)) == ("done", 0), view
        assert begins(m)[staged] == 1


def what_ended_before_is_not_interrupted():
    """Its end is on disk in its own records, though takt was dead already."""
    needs_mounts()
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(m.witness_argv(m.path("over")), gpus=1, requeue=True)["id"]
        kit.until(lambda: m.witness().begins, lambda: client.job(job))
        m.kill()
        os.mknod(m.path("over"))
        kit.until(lambda: not m.shims(), m.shims)
        client = reboot(m)
        assert client.wait(job)["state"] == "done", client.job(job)
        assert begins(m)[job] == 1


if __name__ == "__main__":
    sys.exit(kit.main([
        what_ran_is_interrupted_and_runs_again_only_if_it_may,
        it_runs_once_more_for_each_restart_and_never_twice_at_once,
        what_was_staged_waits_and_runs_once,
        what_ended_before_is_not_interrupted,
    ]))
