#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who manages the GPUs of a machine with several takts: root's before anybody else's, and nothing that a user puts
somewhere keeps root's from it. Who has to wait names the holder by the kernel's word, and begins when that one ends.

Usage: gpu_owners.py BUILD_FOLDER
"""
import contextlib
import fcntl
import json
import os
import subprocess
import sys

import kit
import users

SHARED = "shared"  # what /run/lock/takt is elsewhere


@contextlib.contextmanager
def serve_as(m, uid, *flags):
    """A user's own takt on the same GPUs, and a client of it."""
    folder = m.path(f"of-{uid}")
    os.makedirs(folder, exist_ok=True)
    os.chown(folder, uid, uid)
    serve = subprocess.Popen(
        [kit.TWIN, "exec", "--machine", m.path("machine"), "--", m.path("bin/takt"), "serve", "--users", "own",
         "--runtime-dir", folder + "/run", "--state-dir", folder + "/state", "--lock-dir", m.path(SHARED),
         "--root-lock-dir", m.path("locks"), "--metrics-listen", "off", "--assume-unlocked", *flags],
        env=m.env(), stdin=subprocess.DEVNULL, stdout=m.log, stderr=m.log, user=uid, group=uid, extra_groups=[], cwd="/")

    def status():
        with contextlib.suppress(OSError):
            with contextlib.closing(kit.Client(folder + "/run/takt.sock", 5)) as client:
                return client.status()
    try:
        kit.until(status, m.said)
        yield serve, status
    finally:
        serve.terminate()
        serve.wait(kit.WAIT_S)


@contextlib.contextmanager
def machine(**more):
    with users.shared_machine(gpus=2, **more) as m:
        os.makedirs(m.path(SHARED), exist_ok=True)
        os.chmod(m.path(SHARED), 0o1777)
        yield m


def lock_files(m, folder=SHARED):
    return [m.path(f"{folder}/takt-{board['uuid']}.lock") for board in m.boards()]


def roots_takt_has_the_gpus_and_a_users_begins_when_it_ends():
    with machine() as m:
        (roots,) = m.pids("takt")
        with serve_as(m, users.ALICE) as (serve, status):
            seen = status()
            assert not seen["manages"] and f"GPU 0 is managed by takt (pid {roots}, user root)" == seen["observe_why"], seen
            m.stop()
            kit.until(lambda: (status() or {}).get("manages"), lambda: (status(), m.said()))
            assert serve.poll() is None, "it is the same process"


def a_users_takt_that_was_first_keeps_its_jobs():
    """Root's manages all the same, and gives nobody a GPU on which one of them runs."""
    with machine(start=False) as m:
        with serve_as(m, users.ALICE) as (_, status):
            assert status()["manages"], status()
            folder = m.path(f"of-{users.ALICE}")
            with contextlib.closing(kit.Client(folder + "/run/takt.sock", 5)) as hers:
                load = m.load_argv("--seconds", 600, "--quiet")
                job = users.as_user(users.ALICE, lambda: kit.Client(folder + "/run/takt.sock").submit(load, gpus=1, cwd="/")["id"])
                kit.until(lambda: any(board["processes"] for board in m.boards()), m.boards)
                m.start()
                client = m.client()
                assert client.status()["manages"], client.status()
                (used,) = [board["index"] for board in m.boards() if board["processes"]]
                kit.until(lambda: client.status()["gpus"][used]["state"] == "outside", client.status)
                done = client.wait(client.submit(["true"], gpus=1)["id"])
                assert done["gpu_list"] == [1 - used], done
                assert hers.job(job)["state"] == "running", hers.job(job)


def what_users_do_keeps_roots_takt_from_nothing():
    """Each of them before root's takt starts, in every place that a user may write."""
    def held(path):
        file = open(path, "w", encoding="ascii")
        file.write("takt serve (pid 1, user root)\n")
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    tricks = (held, os.mkdir, os.mkfifo, lambda path: os.symlink("/etc/passwd", path))
    with machine(start=False) as m:
        os.mkdir(m.path("locks"), 0o755)
        for trick in tricks:
            kept = [trick(path) for path in lock_files(m)]
            refused = [users.as_user(users.ALICE, lambda path=path: create(path)) for path in lock_files(m, "locks")]
            assert refused == [13, 13], refused
            m.start()
            assert m.client().status()["manages"], (trick, m.client().status())
            assert m.client().wait(m.client().submit(["true"], gpus=2)["id"])["state"] == "done"
            assert m.stop() == 0
            for file, path in zip(kept, lock_files(m)):
                if hasattr(file, "close"):
                    file.close()
                os.rmdir(path) if os.path.isdir(path) else os.unlink(path)


def create(path):
    """The error that a user gets who makes such a file; 0 for none."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR))
        return 0
    except OSError as error:
        return error.errno


def a_lock_dir_that_others_may_write_is_refused_to_root():
    with machine(start=False) as m:
        os.mkdir(m.path("locks"))
        os.chmod(m.path("locks"), 0o1777)
        m.spawn()
        assert m.died() == 77, m.said()
        assert f"lock_dir '{m.path('locks')}' may be written by others; chmod go-w it" in m.said(), m.said()
        os.chmod(m.path("locks"), 0o755)
        os.chown(m.path("locks"), users.ALICE, users.ALICE)
        m.spawn()
        assert m.died() == 77 and "belongs to another user" in m.said(), m.said()


def the_holder_is_named_by_the_kernel():
    """Not by what stands in the file."""
    with machine(start=False) as m:
        path = lock_files(m)[1]
        with open(path, "w", encoding="ascii") as file:
            file.write("takt serve (pid 1, user root)\n")
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)
            os.chmod(path, 0o644)
            with serve_as(m, users.BOB) as (serve, status):
                seen = status()
                assert not seen["manages"] and f"(pid {os.getpid()}, user root)" in seen["observe_why"], seen
                assert "pid 1," not in json.dumps(seen), seen
                os.rename(path, path + ".away")
                os.mkdir(path)  # which would end a start
                file.close()
                looked = status()["uptime_ms"]
                kit.until(lambda: (status() or {"uptime_ms": 0})["uptime_ms"] > looked + 4000, status)
                assert serve.poll() is None and not status()["manages"], status()
                os.rmdir(path)
                kit.until(lambda: (status() or {}).get("manages"), status)


if __name__ == "__main__":
    sys.exit(kit.main([roots_takt_has_the_gpus_and_a_users_begins_when_it_ends, a_users_takt_that_was_first_keeps_its_jobs, what_users_do_keeps_roots_takt_from_nothing,
                       a_lock_dir_that_others_may_write_is_refused_to_root, the_holder_is_named_by_the_kernel]))
