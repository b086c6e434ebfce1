#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon's account in hostile hands, against root's launcher (hostile_daemon.c).

It asks for what it must not get and plants files in the directory of attempts, which is its own. Looked at from
outside: a secret of root's, /etc, a process of root's, the launcher.

Usage: hostile_daemon.py BUILD_FOLDER [SEED]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import reachable  # noqa: E402,F401, first: it may replace the build folder
import kit  # noqa: E402

DAEMON = 4321
HOSTILE = os.path.join(kit.BUILD, "tests/attack/takt-hostile-daemon")
SEED = sys.argv[2] if len(sys.argv) > 2 else "20261128"
SECRET = "only root may read this\n"
SAID = {}


def stat_of(path):
    st = os.lstat(path)
    return st.st_mode, st.st_uid, st.st_gid, st.st_size, st.st_nlink, st.st_mtime_ns


def alive(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"


def play():
    """Once for all cases: what it said, and what is wrong with the world afterwards."""
    if SAID:
        return SAID
    if os.getuid() != 0:
        raise kit.Skip("only root can become another user")
    folder = tempfile.mkdtemp(prefix="tk-hostile-")
    try:
        os.chmod(folder, 0o755)
        jobs, run, secret = (os.path.join(folder, name) for name in ("jobs", "run", "secret"))
        for path, mode in ((jobs, 0o711), (run, 0o755)):
            os.mkdir(path)
            os.chmod(path, mode)
            os.chown(path, DAEMON, DAEMON)
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(SECRET)
        before = {path: stat_of(path) for path in (secret, "/etc", "/etc/passwd", "/etc/shadow")}
        roots = subprocess.Popen(["sleep", "600"])
        launcher = subprocess.Popen([
            os.path.join(kit.BUILD, "src/daemon/takt-launch"), "--socket", f"{run}/door", "--jobs", jobs, "--shim",
            os.path.join(kit.BUILD, "src/daemon/takt-shim"), "--client-uid", str(DAEMON), "--allow-weak-isolation"],
            env={"PATH": "/usr/bin:/bin"})
        try:
            kit.until(lambda: os.path.exists(f"{run}/door"), "the launcher listens")
            os.chown(f"{run}/door", DAEMON, DAEMON)
            done = subprocess.run([HOSTILE, f"{run}/door", jobs, secret, str(roots.pid), SEED], user=DAEMON,
                                  group=DAEMON, extra_groups=[], capture_output=True, text=True, check=False,
                                  timeout=2 * kit.WAIT_S)
            kit.note(done.stdout + done.stderr)
            SAID.update(lines=done.stdout.splitlines(), status=done.returncode,
                        alive=alive(roots.pid) and launcher.poll() is None,
                        changed=[path for path, was in before.items() if stat_of(path) != was])
            with open(secret, encoding="ascii") as file:
                SAID["secret"] = file.read()
            SAID["roots"] = [os.path.join(top, name) for top, _, names in os.walk(jobs) for name in names
                             if os.lstat(os.path.join(top, name)).st_uid == 0
                             and SECRET.encode() in open(os.path.join(top, name), "rb").read()
                             and not os.path.islink(os.path.join(top, name))]
        finally:
            for process in (launcher, roots):
                process.kill()
                process.wait(kit.WAIT_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return SAID


def names():
    """Of all attacks: the program prints them in any case, so a run without root is enough to know them."""
    with open(os.path.join(HERE, "hostile_daemon.c"), encoding="utf-8") as file:
        source = file.read()
    found = re.findall(r'attack(?:_message)?\(\s*"([^"]+)"', source)
    found += re.findall(r'\{"((?:start|stop|reap)[^"]+)",', source)
    asks = re.findall(r'\{"([^"]+)", TAKT_LAUNCH', source)
    found += [f"{ask} a process of root's as user {uid}" for ask in asks for uid in (54321, 0, 77)]
    found += [f"start a job whose {file} is a {what}" for what in ("link", "FIFO", "folder", "second name")
              for file in ("lock", "spec")]
    later = re.search(r"later\[\] = \{(.*?)\};", source, re.S).group(1)
    return found + [f"plant a link as {name}" for name in re.findall(r'"([^"]+)"', later)]


def held(name):
    def case():
        lines = [line for line in play()["lines"] if line.startswith(f"held {name}: ") or line == f"DONE {name}"]
        assert len(lines) == 1 and lines[0].startswith("held"), (name, lines)
        if name.startswith("plant"):  # the job may run: what counts is where the link led to
            the_world_is_as_it_was()
    return "the daemon's account cannot " + name, case


def the_world_is_as_it_was():
    said = play()
    assert said["status"] == 0 and "at the end it answers 0" in said["lines"], said
    assert "without all that it answers 0" in said["lines"], said
    assert said["alive"], "the launcher or a process of root's is gone"
    assert not said["changed"], said["changed"]
    assert said["secret"] == SECRET and not said["roots"], said


if __name__ == "__main__":
    sys.exit(kit.main([*map(held, names()), the_world_is_as_it_was]))
