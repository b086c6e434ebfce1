#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon keeps copies of its database, and a damaged or lost one is not the end of what was handed in.

Usage: backups.py BUILD_FOLDER
"""
import ctypes
import datetime
import json
import os
import shutil
import signal
import sqlite3
import struct
import sys

import kit

FORM = "takt-%Y%m%d-%H%M%S.db"


def folder(m):
    return m.path("state/backups")


def names(m):
    """Newest first."""
    try:
        return sorted((name for name in os.listdir(folder(m)) if name.startswith("takt-")), reverse=True)
    except FileNotFoundError:
        return []


def make_due(m):
    """A day goes by: what there is becomes a day older, and the folder before the first one an hour."""
    kit.until(lambda: os.path.isdir(folder(m)), "the folder is there")
    for name in reversed(names(m)):
        at = datetime.datetime.strptime(name, FORM) - datetime.timedelta(days=1)
        os.rename(os.path.join(folder(m), name), os.path.join(folder(m), at.strftime(FORM)))
    if not names(m):
        os.utime(folder(m), (1, 1))


def next_backup(m):
    """The name of the one that is made next."""
    make_due(m)
    before = names(m)
    kit.until(lambda: set(names(m)) - set(before), m.said)
    return names(m)[0]


def jobs_of(path):
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert base.execute("SELECT count(*) FROM environment").fetchall() == [(0,)]
        return {job for (job,) in base.execute("SELECT id FROM job")}
    finally:
        base.close()


def done(client):
    job = client.submit(["true"])["id"]
    assert client.wait(job)["state"] == "done"
    return job


def damage(path):
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)


def restore(m, *file):
    return m.takt("admin", "restore", *file, "--state-dir", m.path("state"))


def refuses_to_start(m, *words):
    said = len(m.said())
    m.spawn()
    assert m.died() != 0, m.said()
    assert all(word in m.said()[said:] for word in words), m.said()


def one_is_made_every_day_and_so_many_are_kept():
    with kit.machine(gpus=1) as m:
        m.start("--backup-keep", "2")
        client = m.client()
        made = []
        for _ in range(3):
            job = done(client)
            made.append(next_backup(m))
            path = os.path.join(folder(m), made[-1])
            assert job in jobs_of(path) and os.stat(path).st_mode & 0o777 == 0o600
        kit.until(lambda: len(names(m)) == 2, lambda: names(m))
        assert names(m)[0] == made[-1], (names(m), made)
        assert m.said().count("a backup of the database was made") >= 2, m.said()
        assert not [name for name in os.listdir(folder(m)) if not name.startswith("takt-")], os.listdir(folder(m))


def none_is_made_where_none_are_kept():
    with kit.machine(gpus=1) as m:
        os.makedirs(folder(m))
        os.utime(folder(m), (1, 1))
        m.start("--backup-keep", "0")
        done(m.client())
        m.stop()
        assert not names(m), names(m)


def a_damaged_database_is_said_and_restored():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        known = done(client)
        next_backup(m)
        young = done(client)
        m.stop()
        damage(m.path("state/takt.db"))
        refuses_to_start(m, "is damaged", "takt admin restore")
        told = restore(m)
        assert told.returncode == 0 and " is what it was 0 h " in told.stdout and "handed in" in told.stdout, told
        assert os.path.exists(m.path("state/takt.db.before-restore"))
        m.start()
        client = m.client()
        assert known in {job["id"] for job in client.history()}
        assert done(client) > young, "numbers whose attempts are on disk are not given again"


def a_database_that_is_gone_is_no_first_start():
    with kit.machine(gpus=1) as m:
        m.start()
        known = done(m.client())
        next_backup(m)
        m.stop()
        os.unlink(m.path("state/takt.db"))
        refuses_to_start(m, "is not there, but backups of it are", "takt admin restore")
        assert not os.path.exists(m.path("state/takt.db")), "nothing was begun"
        assert restore(m).returncode == 0
        m.start()
        assert known in {job["id"] for job in m.client().history()}


def one_that_is_gone_before_its_first_backup_is_none_either():
    with kit.machine(gpus=1) as m:
        m.start()
        waits = m.client().submit(["true"], gpus=1, held=True)["id"]
        m.stop()
        os.rename(m.path("state/takt.db"), m.path("aside"))
        refuses_to_start(m, "takt.db' is not there, or empty", "put it back", "takt.db.made")
        told = restore(m, m.path("takt.log"))  # which is no database
        assert told.returncode != 0 and not os.path.exists(m.path("state/takt.db")), told
        open(m.path("state/takt.db"), "w", encoding="ascii").close()
        refuses_to_start(m, "takt.db' is not there, or empty")
        os.rename(m.path("aside"), m.path("state/takt.db"))
        m.start()
        assert m.client().job(waits)["state"] == "waiting"
        m.stop()
        os.unlink(m.path("state/takt.db"))
        os.unlink(m.path("state/takt.db.made"))
        m.start()
        assert m.client().live() == [], "begun anew, since somebody said so"


def nor_one_whose_jobs_have_records():
    with kit.machine(gpus=1) as m:
        m.start()
        job = m.client().submit(m.witness_argv(m.path("over")), gpus=1)["id"]
        kit.until(lambda: m.client().job(job)["state"] == "running", "it runs")
        m.stop()
        for name in os.listdir(m.path("state")):
            if name.startswith("takt.db"):
                os.unlink(m.path(f"state/{name}"))
        refuses_to_start(m, "takt.db' is not there, but records of its jobs are", "'jobs'")
        assert not os.path.exists(m.path("state/takt.db")), "nothing was begun"


def a_damaged_backup_is_passed_over():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        known = done(client)
        next_backup(m)
        done(client)
        bad = next_backup(m)
        m.stop()
        damage(os.path.join(folder(m), bad))
        told = m.takt("admin", "restore", "--json", "--state-dir", m.path("state"))
        assert told.returncode == 0, told
        lines = json.loads(told.stdout)["lines"]
        assert [line["about"] for line in lines] == ["backup not used", "restore"] and bad in lines[0]["found"], lines
        m.start()
        assert {job["id"] for job in m.client().history()} == {known}
        m.stop()
        assert restore(m, os.path.join(folder(m), bad)).returncode == 65


def without_any_it_says_so():
    with kit.machine(gpus=1) as m:
        m.start()
        m.stop()
        told = restore(m)
        assert told.returncode == 66 and "no good backup" in told.stderr, told


def what_the_daemon_has_is_found_without_being_told_where():
    with kit.machine(gpus=1) as m:
        m.start()
        job, copy = done(m.client()), m.path("copy.db")
        told = m.takt("admin", "backup", copy)
        assert told.returncode == 0 and job in jobs_of(copy), told
        checked = m.takt("admin", "check", "--json")
        assert checked.returncode == 0 and json.loads(checked.stdout), checked
        os.kill(m.serve.pid, signal.SIGSTOP)  # one that hangs keeps nobody from looking
        try:
            told = m.takt("admin", "check")
            assert "does not answer" in told.stderr, told
            assert m.takt("admin", "check", "--state-dir", m.path("state")).returncode == 0
        finally:
            os.kill(m.serve.pid, signal.SIGCONT)


def root_follows_no_link_in_what_is_an_accounts():
    if os.getuid() != 0:
        raise kit.Skip("only root can read what is another's")
    with kit.machine(gpus=1) as m:
        m.start()
        done(m.client())
        m.stop()
        theirs, copy = m.path("theirs"), m.path("copy.db")
        os.mkdir(theirs)
        os.symlink(m.path("state/takt.db"), os.path.join(theirs, "takt.db"))
        for owner, refused in ((0, False), (65534, True)):
            os.chown(theirs, owner, owner)
            told = m.takt("admin", "backup", copy, "--state-dir", theirs)
            assert (told.returncode != 0) == refused == (not os.path.exists(copy)), told
            if not refused:
                os.unlink(copy)


THEM = 54321  # a user, by number


def give(path):
    os.chown(path, THEM, THEM, follow_symlinks=False)
    return path


def theirs(m, *files):
    """A folder of theirs with copies of the database, and beside each, as its log, another name of a file of root's."""
    folder_of_theirs = give_folder(m, "theirs")
    with open(m.path("roots"), "w", encoding="ascii") as file:
        file.write("root's\n")
    os.chmod(m.path("roots"), 0o600)
    for name in files:
        path = os.path.join(folder_of_theirs, name)
        shutil.copyfile(m.path("copy.db"), path)
        give(path)
        os.link(m.path("roots"), log_of(path))
    return folder_of_theirs


def log_of(path):
    return f"{path}-wal"


def give_folder(m, name):
    os.makedirs(m.path(name))
    return give(m.path(name))


def only_root():
    if os.getuid() != 0:
        raise kit.Skip("only root can be tricked into what root may do")


def root_gives_nothing_away_by_a_log_that_is_another_file():
    """SQLite gives a log the owner of its database: what another name of is planted as one (fs.protected_hardlinks = 0)."""
    only_root()
    with kit.machine(gpus=1) as m:
        m.start()
        done(m.client())
        assert m.takt("admin", "backup", m.path("copy.db")).returncode == 0
        m.stop()
        folder_of_theirs = theirs(m, "copy.db", "takt.db")
        for words in (("admin", "restore", f"{folder_of_theirs}/copy.db", "--state-dir", m.path("state")),
                      ("simulate", "--replay", f"{folder_of_theirs}/copy.db"),
                      ("admin", "check", "--state-dir", folder_of_theirs),
                      ("admin", "report", m.path("report.db"), "--state-dir", folder_of_theirs),
                      ("admin", "backup", m.path("again.db"), "--state-dir", folder_of_theirs)):
            m.takt(*words)
            is_now = os.stat(m.path("roots"))
            assert (is_now.st_uid, is_now.st_mode & 0o7777) == (0, 0o600), (words, is_now)
            with open(m.path("roots"), encoding="ascii") as file:
                assert file.read() == "root's\n", words
        os.unlink(f"{folder_of_theirs}/copy.db-wal")
        assert restore(m, f"{folder_of_theirs}/copy.db").returncode == 0, "without the trap it is a backup as any"
        m.start()
        assert len(m.client().history()) == 1


class Watch:
    """What is opened, made and removed in a folder, by the kernel's word."""

    OPENED, MADE = 0x20, 0x100
    REST = 0x40 | 0x80 | 0x200  # moved from, moved to, removed

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, path.encode(), self.OPENED | self.MADE | self.REST) >= 0

    def events(self):
        """[(event, name)], in their order; of the folder itself none."""
        try:
            data = os.read(self.fd, 1 << 20)
        except BlockingIOError:
            return []
        found = []
        while data:
            _, mask, _, size = struct.unpack_from("iIII", data)
            found.append((mask & 0xfff, data[16:16 + size].rstrip(b"\0").decode()))
            data = data[16 + size:]
        return [(event, name) for event, name in found if name]


def in_a_folder_of_others_one_file_is_made_and_no_name_is_opened_again():
    """Whoever may write there puts another file, or a journal, in the place of one that is opened by its name."""
    only_root()
    with kit.machine(gpus=1) as m:
        m.start()
        job = done(m.client())
        folder_of_theirs = give_folder(m, "theirs")
        for action in ("backup", "report"):
            path = os.path.join(folder_of_theirs, f"{action}.db")
            watch = Watch(folder_of_theirs)
            told = m.takt("admin", action, path)
            assert told.returncode == 0 and os.stat(path).st_mode & 0o7777 == 0o600, told
            events = watch.events()
            assert events == [(Watch.MADE, f"{action}.db"), (Watch.OPENED, f"{action}.db")], events
            os.close(watch.fd)
        assert jobs_of(os.path.join(folder_of_theirs, "backup.db")) == {job}
        os.symlink(m.path("elsewhere"), log_of(os.path.join(folder_of_theirs, "next.db")))
        os.symlink(m.path("elsewhere"), os.path.join(folder_of_theirs, "link.db"))
        assert m.takt("admin", "backup", os.path.join(folder_of_theirs, "next.db")).returncode == 0
        assert m.takt("admin", "backup", os.path.join(folder_of_theirs, "link.db")).returncode != 0
        assert not os.path.exists(m.path("elsewhere"))


def root_follows_no_folder_that_is_a_link_of_others():
    only_root()
    with kit.machine(gpus=1) as m:
        m.start()
        done(m.client())
        os.mkdir(m.path("roots.d"))
        link = os.path.join(give_folder(m, "theirs"), "link")
        os.symlink(m.path("roots.d"), link)
        os.chown(link, THEM, THEM, follow_symlinks=False)
        told = m.takt("admin", "backup", os.path.join(link, "copy.db"))
        assert told.returncode == 77 and "user 54321's link 'link'" in told.stderr, told
        assert not os.listdir(m.path("roots.d"))
        os.chown(link, 0, 0, follow_symlinks=False)
        assert m.takt("admin", "backup", os.path.join(link, "copy.db")).returncode == 0, "one's own is followed"


if __name__ == "__main__":
    sys.exit(kit.main([
        one_is_made_every_day_and_so_many_are_kept,
        none_is_made_where_none_are_kept,
        a_damaged_database_is_said_and_restored,
        a_database_that_is_gone_is_no_first_start,
        one_that_is_gone_before_its_first_backup_is_none_either,
        nor_one_whose_jobs_have_records,
        a_damaged_backup_is_passed_over,
        without_any_it_says_so,
        what_the_daemon_has_is_found_without_being_told_where,
        root_follows_no_link_in_what_is_an_accounts,
        root_gives_nothing_away_by_a_log_that_is_another_file,
        in_a_folder_of_others_one_file_is_made_and_no_name_is_opened_again,
        root_follows_no_folder_that_is_a_link_of_others,
    ], at_once=3))
