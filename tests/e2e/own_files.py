#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that takt has open are moved, removed or replaced while it runs: it says so, takes no job, and goes on when they are back.

Usage: own_files.py BUILD_FOLDER
"""
import contextlib
import os
import shutil
import socket
import stat
import sys

import kit

DATABASE = ("state/takt.db", "state/takt.db-wal", "state/takt.db-shm", "state/takt.db.lock")
JOURNAL = "state/clocks.journal"


def notes(client):
    return client.status().get("notes", [])


def about(client, path):
    return [note for note in notes(client) if f"'{path}'" in note]


def warnings(m, path):
    return [line for line in m.said().splitlines() if f"'{path}'" in line and "is not the file" in line]


def on_page(client, moved):
    kit.until(lambda: client.metrics()["takt_files_moved"] == moved, f"takt_files_moved is {moved}")


def refused(client, path):
    """A submit is refused by a code that a program can tell, and the file is named."""
    try:
        job = client.submit(["true"])
    except kit.Refused as error:
        said = error.answer["error"]
        assert (error.status, said["name"]) == (503, "MOVED"), error
        assert f"'{path}'" in said["message"], error
        return
    raise AssertionError(f"accepted: {job}")


@contextlib.contextmanager
def machine():
    """takt with a job that runs until the folder has a file `over`."""
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        over = m.path("jobs/over")
        job = client.submit(["sh", "-c", f"until test -e '{over}'; do sleep 0.05; done"], gpus=1, clock_ask="lock", clock_mhz=1200)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        kit.until(m.locked, "the actuator has set its clock")
        yield m, client, job
        with open(over, "w", encoding="ascii"):
            pass
        if m.serve.poll() is None:
            assert client.wait(job)["state"] == "done", client.job(job)


def told(m, client, job, path):
    """At once for who hands in a job, and within seconds for who looks; what runs goes on, and it is said once."""
    kit.until(lambda: about(client, path), lambda: notes(client))
    refused(client, path)
    on_page(client, 1)
    assert client.job(job)["state"] == "running", client.job(job)
    assert path in m.takt("status").stdout
    assert len(warnings(m, path)) == 1, m.said()


def well_again(client, path):
    kit.until(lambda: not about(client, path), lambda: notes(client))
    on_page(client, 0)
    assert client.wait(client.submit(["true"])["id"])["state"] == "done"


def moved_and_put_back(name):
    def case():
        with machine() as (m, client, job):
            path = m.path(name)
            os.rename(path, path + ".away")
            if name in DATABASE:
                refused(client, path)
            told(m, client, job, path)
            os.rename(path + ".away", path)
            well_again(client, path)
    case.__name__ = os.path.basename(name).replace(".", "_").replace("-", "_") + "_is_moved_and_put_back"
    return case


def replaced(name):
    """A copy is another file, whatever is in it."""
    def case():
        with machine() as (m, client, job):
            path = m.path(name)
            shutil.copy(path, path + ".copy")
            os.rename(path, path + ".away")
            os.rename(path + ".copy", path)
            told(m, client, job, path)
            os.rename(path + ".away", path)
            well_again(client, path)
    case.__name__ = os.path.basename(name).replace(".", "_").replace("-", "_") + "_is_replaced"
    return case


def a_removed_log_is_copied_back_by_a_restart():
    """As the note says: what takt has open it still writes, and nothing that was accepted is lost."""
    with machine() as (m, client, job):
        path = m.path("state/takt.db-wal")
        os.unlink(path)
        told(m, client, job, path)
        assert "start it again" in about(client, path)[0], notes(client)
        m.stop()
        m.start()
        client = m.client()
        assert client.job(job)["state"] == "running", client.job(job)
        well_again(client, path)


def a_new_actuator_has_the_journal_that_is_there():
    with machine() as (m, client, job):
        path = m.path(JOURNAL)
        os.unlink(path)
        told(m, client, job, path)
        for pid in m.pids("takt-actuate"):
            os.kill(pid, 9)
        well_again(client, path)


def the_socket_is_removed():
    with machine() as (m, client, _):
        os.unlink(m.socket)
        kit.until(m.answers, m.said)
        assert stat.S_IMODE(os.stat(m.socket).st_mode) == 0o600
        assert "was made anew" in m.said() and not notes(client), notes(client)
        well_again(client, m.socket)
        assert m.client().status()["pid"] == client.status()["pid"], "old and new connections are the same takt's"


def the_socket_is_moved_and_put_back():
    with machine() as (m, client, _):
        os.rename(m.socket, m.socket + ".away")
        kit.until(m.answers, m.said)
        os.rename(m.socket + ".away", m.socket)
        kit.until(m.answers, m.said)
        well_again(client, m.socket)


def something_else_is_where_the_socket_was():
    """A file is nobody's to remove, and another one's socket neither: it is said, until they are gone."""
    with machine() as (m, client, job):
        os.unlink(m.socket)
        with open(m.socket, "w", encoding="ascii"):
            pass
        kit.until(lambda: about(client, m.socket), lambda: notes(client))
        refused(client, m.socket)
        assert client.job(job)["state"] == "running"
        os.unlink(m.socket)
        kit.until(m.answers, m.said)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            os.unlink(m.socket)
            other.bind(m.socket)
            other.listen()
            kit.until(lambda: any("already running" in note for note in notes(client)), lambda: notes(client))
            refused(client, m.socket)
        kit.until(m.answers, m.said)
        well_again(client, m.socket)


if __name__ == "__main__":
    sys.exit(kit.main([moved_and_put_back(name) for name in (*DATABASE, JOURNAL)] + [replaced(name) for name in (DATABASE[0], JOURNAL)] + [
        a_removed_log_is_copied_back_by_a_restart,
        a_new_actuator_has_the_journal_that_is_there,
        the_socket_is_removed,
        the_socket_is_moved_and_put_back,
        something_else_is_where_the_socket_was,
    ], at_once=4))
