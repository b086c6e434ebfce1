#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt init: what it finds, asks and writes below a folder, and that --remove leaves nothing of it. The service manager
of a running machine is told in tests/guest/units.py.

The witness of what there is is the folder itself, compared byte by byte.

Usage: takt_init.py BUILD_FOLDER
"""
import contextlib
import ctypes
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import time

import reachable  # noqa: F401, first: it may replace the build folder
import kit
import users

TAKT = os.path.join(kit.BUILD, "src/daemon/takt")
ALICE = 4242
CONF = "etc/takt/takt.conf"
UNITS = "etc/systemd/system"
ALL = "--answers", "users=all,clocks=no,web=local"
MIB = 1 << 20


def put(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def get(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def tree(folder):
    """What there is: {path: what it holds}."""
    found = {}
    for here, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(here, name)
            if os.path.islink(path):
                found[path] = "-> " + os.readlink(path)
            elif os.path.isdir(path):
                found[path] = "folder"
            else:
                found[path] = get(path)
    return found


def without_record(at):
    """All but the list of it, whose order is no matter."""
    return {path: text for path, text in tree(at.folder).items() if not path.endswith("takt-init/record")}


class Image:
    """A folder with what a Debian has of interest, and two people."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "image")
        self.home = os.path.join(folder, "home")
        for path, text in {
                "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
                "etc/passwd": "root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/usr/sbin/nologin\n"
                              "ada:x:1000:1000::/home/ada:/bin/bash\nbob:x:1001:1001::/home/bob:/bin/sh\n"
                              "web:x:1002:1002::/:/usr/sbin/nologin\n",
                "etc/pam.d/common-auth": "", "usr/lib/systemd/systemd": "",
                "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
                "sys/bus/pci/devices/0000:3d:00.0/vendor": "0x10de\n",
                "sys/bus/pci/devices/0000:3d:00.0/class": "0x030200\n",
                "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31\n",
        }.items():
            put(self.path(path), text)
        os.makedirs(self.path("var/lib"))
        os.makedirs(self.home)
        os.chmod(folder, 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def env(self):
        left = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
        return {**{name: os.environ[name] for name in left if name in os.environ}, "HOME": self.home}

    def run(self, *words, wrap=(), **more):
        return subprocess.run([*wrap, TAKT, "init", "--root", self.folder, *words], env=self.env(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=kit.WAIT_S, check=False, **more)

    def init(self, *words, **more):
        """What it says; it must succeed."""
        done = self.run(*words, **more)
        assert done.returncode == 0, done
        return done.stdout

    def refused(self, status, *words, **more):
        """What it says; it must fail so, and change nothing."""
        before = tree(self.folder)
        done = self.run(*words, **more)
        assert done.returncode == status, done
        assert tree(self.folder) == before, done
        return done.stderr

    def settings(self, path=CONF):
        lines = (line.partition("=") for line in get(self.path(path)).splitlines() if line and line[0] != "#")
        return {key.strip(): value.strip() for key, _, value in lines}


@contextlib.contextmanager
def image():
    with tempfile.TemporaryDirectory(prefix="tk-init-") as folder:
        yield Image(folder)


class Typist:
    """takt init at a terminal, and who sits there."""

    def __init__(self, at, *words, env=None):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([TAKT, "init", "--root", at.folder, *words], env=env or at.env(), stdin=slave,
                                        stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.text = ""

    def read(self):
        with contextlib.suppress(OSError):  # it has ended
            part = os.read(self.master, 4096).decode()
            self.text += part
            return part
        return ""

    def expect(self, words):
        """Reads on until it has said so, behind what was expected before."""
        end = time.monotonic() + kit.WAIT_S
        while words not in self.text:
            assert time.monotonic() < end and self.read(), (words, self.text)
        before, self.text = self.text.split(words, 1)
        return before

    def type(self, text):
        os.write(self.master, text.encode())

    def ended(self):
        while self.read():
            pass
        os.close(self.master)
        return self.process.wait(kit.WAIT_S)


def it_says_what_it_found_and_a_dry_run_changes_nothing():
    with image() as at:
        before = tree(at.folder)
        said = at.init("--dry-run", *ALL)
        for words in ("Debian GNU/Linux 12 (bookworm)", "1 of NVIDIA, driver 550.90.07", "2 who log in: ada, bob",
                      "nobody else", "version 2", "has no service takt", "there is no takt",
                      "would make    " + at.path(CONF), "takt init --remove"):
            assert words in said, (words, said)
        found = json.loads(at.init("--dry-run", "--json", *ALL))
        assert found["dry_run"] and found["changes"], found
        facts = found["found"]
        assert (facts["gpus"], facts["driver"], facts["users"], facts["cgroups"]) == (1, "550.90.07", 2, "v2"), facts
        assert facts["systemd"] and not facts["account"] and "manager" not in facts, facts
        assert found["answers"] == {"users": "all", "observe": False, "clocks": False, "web": "local"}, found
        assert {"kind": "file", "do": "make", "path": "/" + CONF} in found["steps"], found
        assert tree(at.folder) == before


def all_of_it_is_made_and_taken_away_again():
    with image() as at:
        before = tree(at.folder)
        said = at.init(*ALL)
        assert at.settings() == {"users": "all", "set_clocks": "no", "web_listen": "127.0.0.1:9832", "metrics_listen": "auto"}
        checked = subprocess.run([TAKT, "config", "check", at.path(CONF)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked
        for unit in ("takt-jobs.service", "takt-launch.service", "takt.service"):
            link = at.path(f"{UNITS}/multi-user.target.wants/{unit}")
            assert os.readlink(link) == f"/{UNITS}/{unit}", link
            assert "@" not in get(at.path(f"{UNITS}/{unit}")).replace("@system-service", "").replace("@privileged", "").replace(
                "@resources", "").replace("@module", "").replace("@raw-io", "").replace("@swap", ""), unit
        assert os.path.islink(at.path(f"{UNITS}/sockets.target.wants/takt-launch.socket"))
        assert "--sets none" in get(at.path(f"{UNITS}/takt-actuate.service.d/takt-init.conf"))
        assert get(at.path("etc/pam.d/takt")) == get(os.path.join(kit.SOURCE, "units/pam.d/takt"))
        assert "u takt " in get(at.path("etc/sysusers.d/takt.conf"))
        record = os.stat(at.path("var/lib/takt-init/record"))
        assert record.st_mode & 0o022 == 0 and record.st_uid == os.geteuid(), record
        for path in set(tree(at.folder)) - set(before):
            if not os.path.isdir(path) and not path.endswith("takt-init/record"):
                assert path in said, (path, said)
        assert "nothing was changed" in at.init(*ALL)
        said = at.init("--remove")
        assert tree(at.folder) == before, set(tree(at.folder)) ^ set(before)
        assert "removed       " + at.path(CONF) in said, said
        assert "has made nothing here" in at.refused(66, "--remove")


def systemd_takes_the_units_for_enabled():
    if not shutil.which("systemctl"):
        raise kit.Skip("systemctl is not installed")
    with image() as at:
        at.init(*ALL)
        for unit in ("takt.service", "takt-launch.service", "takt-launch.socket", "takt-jobs.service"):
            said = subprocess.run(["systemctl", "--root", at.folder, "is-enabled", unit], capture_output=True, text=True,
                                  check=False)
            assert said.stdout.strip() == "enabled", (unit, said)


def units_of_a_package_are_enabled_where_they_are():
    with image() as at:
        for unit in ("takt.slice", "takt-jobs.service", "takt-launch.socket", "takt-launch.service", "takt-actuate.socket",
                     "takt-actuate.service", "takt-clocks.service", "takt-alerts.service", "takt.service"):
            put(at.path("usr/lib/systemd/system/" + unit), "[Unit]\n")
        assert "has to end in $SETS $MORE" in at.refused(75, *ALL), "one of an earlier takt would set clocks"
        put(at.path("usr/lib/systemd/system/takt-actuate.service"), "[Service]\nExecStart=/usr/libexec/takt/takt-actuate $SETS $MORE\n")
        put(at.path("usr/lib/pam.d/takt"))
        put(at.path("usr/lib/sysusers.d/takt.conf"))
        before = tree(at.folder)
        at.init(*ALL)
        made = {path[len(at.folder) + 1:] for path in set(tree(at.folder)) - set(before) if not os.path.isdir(path)
                or os.path.islink(path)}
        wants = f"{UNITS}/multi-user.target.wants/"
        assert made == {CONF, wants + "takt.service", wants + "takt-jobs.service", wants + "takt-launch.service",
                        f"{UNITS}/sockets.target.wants/takt-launch.socket", "var/lib/takt-init/record",
                        f"{UNITS}/takt-actuate.service.d/takt-init.conf"}, made
        assert os.readlink(at.path(wants + "takt.service")) == "/usr/lib/systemd/system/takt.service"
        gone = json.loads(at.init("--remove", "--json"))
        assert {"kind": "file", "do": "drop", "path": "/" + CONF} in gone["steps"] and gone["running"] == 0, gone
        assert tree(at.folder) == before


def once_more_changes_what_the_answers_change():
    with image() as at:
        before = tree(at.folder)
        at.init(*ALL)
        once = without_record(at)
        said = at.init("--answers", "users=all,clocks=yes,web=off")
        assert at.settings() == {"users": "all", "set_clocks": "yes", "web_listen": "off", "metrics_listen": "off"}
        drop_in = at.path(f"{UNITS}/takt-actuate.service.d/takt-init.conf")
        assert not os.path.exists(drop_in), said
        assert "removed       " + drop_in in said and "renewed       " + at.path(CONF) in said, said
        assert "nothing was changed" in at.init("--yes"), "what there is is what is proposed"
        at.init(*ALL)
        assert without_record(at) == once
        at.init("--remove")
        assert tree(at.folder) == before


def what_was_there_is_kept_and_put_back():
    with image() as at:
        put(at.path(CONF), "# ours\nsample_hz = 20\nusers = own\n")
        before = tree(at.folder)
        said = at.init("--answers", "users=all,clocks=yes,web=local")
        assert at.settings()["sample_hz"] == "20" and at.settings()["users"] == "all", at.settings()
        assert "# ours" in get(at.path(CONF))
        copy = at.path(CONF) + ".before-takt-init"
        assert get(copy) == before[at.path(CONF)]
        assert "replaced      " + at.path(CONF) in said and "what was there: " + copy in said, said
        said = at.init("--remove")
        assert "what was there before is back" in said, said
        assert tree(at.folder) == before


def a_configuration_with_errors_is_named_and_left():
    with image() as at:
        put(at.path(CONF), "sample_hz = 20\nsmaple_hz = 20\n")
        assert ":2: there is no setting 'smaple_hz'" in at.refused(64, *ALL)


def what_was_changed_since_is_left_and_named():
    with image() as at:
        before = tree(at.folder)
        at.init(*ALL)
        os.mkdir(at.path("var/lib/takt"))
        with open(at.path(CONF), "a", encoding="ascii") as file:
            file.write("sample_hz = 20\n")
        os.unlink(at.path("etc/pam.d/takt"))
        put(at.path(f"{UNITS}/takt-actuate.service.d/ours.conf"), "[Service]\n")
        changed = get(at.path(CONF))
        done = at.run("--remove")
        assert done.returncode == 1, done
        assert f"left          {at.path(CONF)} (changed since takt init made it)" in done.stdout, done
        assert "takt-actuate.service.d (others have files in it)" in done.stdout, done
        left = {path[len(at.folder) + 1:] for path in set(tree(at.folder)) - set(before)}
        assert "stay in " + at.path("var/lib/takt") in done.stdout, done
        assert left == {CONF, "etc/takt", "var/lib/takt", "etc/systemd", UNITS, f"{UNITS}/takt-actuate.service.d",
                        f"{UNITS}/takt-actuate.service.d/ours.conf"}, left
        assert get(at.path(CONF)) == changed


def a_file_that_was_changed_is_replaced_with_a_copy():
    with image() as at:
        at.init(*ALL)
        unit = at.path(f"{UNITS}/takt.service")
        put(unit, "[Service]\nExecStart=/bin/true\n")
        said = at.init("--answers", "users=all,clocks=yes,web=local")
        assert "replaced      " + unit in said, said
        assert get(unit + ".before-takt-init") == "[Service]\nExecStart=/bin/true\n"
        assert "takt serve --users all" in get(unit)


def each_question_is_typed():
    with image() as at:
        t = Typist(at)
        t.expect("2 who log in: ada, bob")
        t.expect("Who uses takt:")
        t.type("everyone\n")
        t.expect("users is me or all, not 'everyone'")
        t.expect("Who uses takt:")
        t.type("all\n")
        t.expect("May takt set clocks and power limits")
        t.expect("[no]")
        t.type("yes\n")
        t.expect("Where are web page and metrics served")
        t.expect("[local]")
        t.type("10.0.0.7\n")
        t.expect("over HTTPS alone")
        t.expect("Where are web page and metrics served")
        t.type("off\n")
        t.expect("Done:")
        t.expect("To undo all of it: takt init --remove")
        assert t.ended() == 0, t.text
        assert at.settings() == {"users": "all", "set_clocks": "yes", "web_listen": "off", "metrics_listen": "off"}


def return_takes_what_is_proposed_and_the_end_of_input_changes_nothing():
    with image() as at:
        before = tree(at.folder)
        t = Typist(at)
        t.expect("Who uses takt:")
        t.type("all\n")
        t.expect("May takt set clocks")
        t.type("\x04")
        t.expect("no answer; nothing was changed")
        assert t.ended() not in (0, None), t.text
        assert tree(at.folder) == before
        t = Typist(at, "--users", "all")
        for question in ("May takt set clocks", "Where are web page"):
            t.expect(question)
            t.type("\n")
        t.expect("Done:")
        assert t.ended() == 0, t.text
        assert at.settings()["set_clocks"] == "no" and at.settings()["web_listen"] == "127.0.0.1:9832"


def beside_slurm_it_proposes_to_look_only():
    with image() as at:
        put(at.path("proc/812/comm"), "slurmd\n")
        said = at.init("--users", "all", "--yes")
        assert "slurmd (pid 812); takt would hand out the same GPUs" in said, said
        assert at.settings()["manage"] == "never", at.settings()
        at.init("--remove")
        t = Typist(at, "--users", "all")
        t.expect("slurmd (pid 812) manages this machine, and takt would hand out the same GPUs.")
        t.expect("[yes]")
        t.type("no\n")
        t.expect("Where are web page")
        t.type("\n")
        t.expect("Done:")
        assert t.ended() == 0
        assert at.settings()["manage"] == "always" and at.settings()["set_clocks"] == "no", at.settings()


def one_that_does_not_run_now_counts_too():
    with image() as at:
        put(at.path("usr/bin/kubelet"))
        found = json.loads(at.init("--users", "all", "--yes", "--json"))
        assert found["found"]["manager"].startswith("kubelet (installed") and found["answers"]["observe"], found
        assert at.settings()["manage"] == "never", at.settings()
        assert "nothing was changed" in at.init("--users", "all", "--yes"), "what there is is what is proposed"


def a_user_has_it_in_his_own_folders():
    with image() as at:
        who = {"user": ALICE, "group": ALICE, "extra_groups": []} if os.geteuid() == 0 else {}
        os.makedirs(at.path(at.home[1:]))
        if who:
            os.chown(at.path(at.home[1:]), ALICE, ALICE)
        before = tree(at.folder)
        said = at.init("--answers", "users=me,web=off", **who)
        conf = at.home[1:] + "/.config/takt/takt.conf"
        assert at.settings(conf) == {"users": "own", "web_listen": "off", "metrics_listen": "off"}
        unit = get(at.path(at.home[1:] + "/.config/systemd/user/takt.service"))
        assert f"takt serve --config /{conf}\n" in unit, unit
        assert os.path.islink(at.path(at.home[1:] + "/.config/systemd/user/default.target.wants/takt.service"))
        assert "Clocks and power limits only root's takt can set" in said, said
        made = set(tree(at.folder)) - set(before)
        assert all(path.startswith(at.path(at.home[1:])) for path in made), made
        at.init("--remove", "--users", "me", **who)
        assert tree(at.folder) == before


def a_user_is_told_that_all_users_need_root():
    with image() as at:
        who = {"user": ALICE, "group": ALICE, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run([TAKT, "init", "--users", "all", "--yes"], env=at.env(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, **who)
        assert done.returncode == 77 and "sudo takt init" in done.stderr, done


# A user's systemd, as far as takt init speaks to it: tells what it was told, starts what the unit says.
MANAGER = """#!/bin/sh
echo "$@" >> "$XDG_RUNTIME_DIR/told"
pid=$XDG_RUNTIME_DIR/pid
case $2 in
restart)
	[ ! -e "$XDG_RUNTIME_DIR/broken" ] || exit 5
	eval "$(sed -n 's/^ExecStart=//p' "$HOME/.config/systemd/user/takt.service") > '$XDG_RUNTIME_DIR/log' 2>&1 &"
	echo $! > "$pid" ;;
stop)
	[ ! -e "$pid" ] || { kill $(cat "$pid"); while kill -0 $(cat "$pid") 2> /dev/null; do sleep 0.1; done; rm "$pid"; } ;;
esac
"""


def a_users_service_manager_is_told():
    with image() as at:
        own = os.geteuid() == 0
        who = {"user": ALICE, "group": ALICE, "extra_groups": []} if own else {}
        runtime = os.path.join(os.path.dirname(at.folder), "run")
        put(os.path.join(runtime, "systemd/private"))
        kit.write_program(os.path.join(runtime, "systemctl"), MANAGER)
        for path in (at.home, runtime):
            os.chown(path, ALICE if own else -1, ALICE if own else -1)
        env = {**at.env(), "XDG_RUNTIME_DIR": runtime, "PATH": runtime + ":" + os.environ["PATH"],
               "TAKT_SOCKET": os.path.join(runtime, "takt/takt.sock")}

        def called(*words):
            return subprocess.run([TAKT, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=2 * kit.WAIT_S, check=False, **who)
        try:
            put(os.path.join(runtime, "broken"))
            done = called("init", "--web", "off")
            assert done.returncode == 69 and "restart takt.service' ended with 5" in done.stderr, done
            assert "undone again" in done.stderr and tree_names(at.home) == [], (done, tree_names(at.home))
            os.unlink(os.path.join(runtime, "broken"))
            os.unlink(os.path.join(runtime, "told"))
            done = called("init", "--web", "off")
            assert done.returncode == 0, (done, os.path.exists(runtime + "/log") and get(runtime + "/log"))
            assert get(os.path.join(runtime, "told")) == "--user daemon-reload\n--user restart takt.service\n"
            assert "ran           systemctl --user restart takt.service" in done.stdout, done
            assert called("status").returncode == 0, "it answers when takt init ends"
            done = called("init", "--remove")
            assert done.returncode == 0 and at.home + "/.local/state/takt" in done.stdout, done
            assert called("status").returncode != 0, "it was stopped"
            assert os.path.exists(at.home + "/.local/state/takt/takt.db")
            assert called("init", "--web", "off").returncode == 0
            done = called("init", "--remove", "--purge")
            assert done.returncode == 0 and "Deleted: " + at.home in done.stdout, done
            left = [path for path in tree_names(at.home) if not path.endswith((".local", ".local/state"))]
            assert not left, (done, left)
        finally:
            kit.kill_all_with(os.path.dirname(at.folder))


def root_goes_on_as_the_user_who_called_it():
    if os.geteuid() != 0:
        raise kit.Skip("only root can become another user")
    with image() as at, users.accounts(os.path.dirname(at.folder), f"root:x:0:0::/root:/bin/sh\n"
                                       f"alice:x:{ALICE}:{ALICE}::{at.home}:/bin/sh\n",
                                       f"root:x:0:\nalice:x:{ALICE}:\n"):
        os.chown(at.home, ALICE, ALICE)

        def called(*words, **more):
            return subprocess.run([TAKT, "init", *words], env={**at.env(), "HOME": "/root", **more}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=kit.WAIT_S, check=False)
        done = called("--users", "me", "--yes")
        assert done.returncode == 64 and "as the user whose takt it is to be" in done.stderr, done
        done = called("--users", "me", "--web", "off", SUDO_USER="alice")
        assert done.returncode == 0, done
        assert {os.lstat(path).st_uid for path in tree_names(at.home)} == {ALICE}, done
        assert f"Start it: {os.path.dirname(TAKT)}/takt serve --config {at.home}/.config/takt/takt.conf" in done.stdout, done
        done = called("--users", "me", "--remove", SUDO_USER="alice")
        assert done.returncode == 0 and tree_names(at.home) == [], (done, tree_names(at.home))


def without_a_service_manager_it_says_how_to_start():
    with image() as at:
        os.unlink(at.path("usr/lib/systemd/systemd"))
        said = at.init(*ALL)
        assert "There is no systemd" in said and not os.path.exists(at.path(UNITS)), said
        assert at.settings()["set_clocks"] == "no"


def wrong_answers_say_what_is_accepted():
    with image() as at:
        for words, said in ((("--answers", "users=all,clocks=perhaps"), "clocks is yes or no, not 'perhaps'"),
                            (("--answers", "who=all"), "users=, observe=, clocks= and web= are accepted"),
                            (("--users", "all", "--web", "10.0.0.300"), "web is off (nowhere), local (this machine)"),
                            (("--users", "all", "--web", "10.0.0.7:9830"), "that of the metrics"),
                            (("--users", "all", "--web", "10.0.0.7"), "--tls-certificate and --tls-key name its files"),
                            ((), "--yes takes what is proposed"), (("--purge", "--yes"), "--purge goes with --remove")):
            assert said in at.refused(64, *words), (words, said)


def an_address_of_others_is_served_over_https():
    with image() as at:
        at.init("--users", "all", "--web", "10.0.0.7:9900", "--tls-certificate", "/etc/ssl/c.pem", "--tls-key", "/etc/ssl/k.pem")
        assert at.settings() == {
            "users": "all", "set_clocks": "no", "web_listen": "10.0.0.7:9900", "metrics_listen": "10.0.0.7:9830",
            "metrics_tls": "yes", "tls_certificate": "/etc/ssl/c.pem", "tls_key": "/etc/ssl/k.pem"}, at.settings()


def without_cgroup_v2_all_users_are_not_served():
    with image() as at:
        shutil.rmtree(at.path("sys/fs/cgroup"))
        put(at.path("sys/fs/cgroup/memory/tasks"))
        assert "systemd.unified_cgroup_hierarchy=1" in at.refused(65, *ALL)
        put(at.path(CONF), "allow_weak_isolation = yes\n")
        at.init(*ALL)


def a_link_out_of_the_folder_is_not_followed():
    with image() as at:
        outside = at.folder + ".outside"
        os.mkdir(outside)
        os.symlink(outside, at.path("etc/systemd"))
        assert "is a link, which is not followed" in at.refused(65, *ALL)
        assert os.listdir(outside) == []


def a_record_that_others_may_write_is_not_believed():
    with image() as at:
        at.init(*ALL)
        os.chmod(at.path("var/lib/takt-init/record"), 0o666)
        assert "is not yours alone to write" in at.refused(77, "--remove")


def a_purge_deletes_what_is_takts_and_follows_no_link():
    with image() as at:
        before = tree(at.folder)
        at.init(*ALL)
        put(at.path("etc/keep"), "theirs")
        put(at.path("var/lib/takt/takt.db"))
        put(at.path("var/lib/takt/jobs/7.1/log"))
        os.symlink(at.path("etc"), at.path("var/lib/takt/jobs/7.1/files"))
        said = at.init("--remove", "--purge")
        assert "Deleted: " + at.path("var/lib/takt") in said, said
        assert tree(at.folder) == {**before, at.path("etc/keep"): "theirs"}
        put(at.path(CONF), "state_dir = /home\n")
        put(at.path("home/ada/thesis"), "theirs")
        at.init(*ALL)
        said = at.init("--remove", "--purge")
        assert get(at.path("home/ada/thesis")) == "theirs" and "nothing" in said, said


def a_purge_goes_by_no_folder_that_is_a_link_of_others():
    if os.geteuid() != 0:
        raise kit.Skip("only root can give files to others")
    with image() as at:
        put(at.path(CONF), "state_dir = /home/ada/link/takt\n")
        put(at.path("srv/takt/takt.db"), "root's")
        os.makedirs(at.path("home/ada"))
        os.symlink("../../srv", at.path("home/ada/link"))
        at.init(*ALL)
        for path in ("home/ada", "home/ada/link"):
            os.chown(at.path(path), 54321, 54321, follow_symlinks=False)
        done = at.run("--remove", "--purge")
        assert done.returncode == 77 and "user 54321's link 'link'" in done.stderr, done
        assert get(at.path("srv/takt/takt.db")) == "root's"


def a_full_disk_is_noticed_before_the_first_file():
    if os.geteuid() != 0:
        raise kit.Skip("only root can mount a small disk")
    with image() as at:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x00020000) != 0 or libc.mount(b"none", b"/", None, 0x44000, None) != 0 or libc.mount(
                b"tmpfs", at.path("etc/pam.d").encode(), b"tmpfs", 0, b"size=1m") != 0:
            raise kit.Skip("mounting is not allowed here")
        try:
            kit.fill(at.path("etc/pam.d"))
            before = set(tree_names(at.folder))
            done = at.run(*ALL)
            assert done.returncode != 0 and "has too little room" in done.stderr, done
            assert set(tree_names(at.folder)) == before
        finally:
            libc.umount2(at.path("etc/pam.d").encode(), 2)


def tree_names(folder):
    return [os.path.join(here, name) for here, folders, files in os.walk(folder) for name in folders + files]


def fails_at(at, call, number, how, answers=ALL):
    """takt init, of whose calls of that name the one with this number fails or kills it; (it did, the finished process)."""
    log = at.folder + ".strace"
    done = at.run(*answers, wrap=("strace", "-qq", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:{how}:when={number}"))
    with open(log, encoding="utf-8", errors="replace") as file:
        return "(INJECTED)" in file.read() or done.returncode == -9, done


def need_strace():
    if not shutil.which("strace"):
        raise kit.Skip("strace is not installed")


# Those with which files are made. Of the others a failure is met before.
CALLS = "mkdirat", "symlinkat", "linkat", "pwrite64", "renameat", "fsync"


@kit.plain
def whatever_fails_nothing_is_left_of_it():
    need_strace()
    for call in CALLS:
        with image() as at:
            put(at.path(CONF), "sample_hz = 20\n")
            before = tree(at.folder)
            for number in range(1, 100):
                hit, done = fails_at(at, call, number, "error=ENOSPC")
                if not hit:
                    break
                if done.returncode == 0:
                    at.init("--remove")
                else:
                    assert "No space left" in done.stderr, (call, number, done)
                assert tree(at.folder) == before, (call, number, done, set(tree(at.folder)) ^ set(before))
            assert number > 1, call
            kit.note(f"{call}: {number - 1} failures")


@kit.plain
def whatever_fails_of_a_change_or_removal_all_is_as_it_was():
    need_strace()
    for answers in (("--answers", "users=all,clocks=yes,web=off"), ("--remove",)):
        for call in ("linkat", "renameat", "fsync"):
            for number in range(1, 100):
                with image() as at:
                    put(at.path(CONF), "sample_hz = 20\n")
                    at.init(*ALL)
                    before = tree(at.folder)
                    hit, done = fails_at(at, call, number, "error=ENOSPC", answers)
                    if not hit:
                        break
                    assert done.returncode == 0 or tree(at.folder) == before, (
                        answers, call, number, done, set(tree(at.folder)) ^ set(before))
            assert number > 1, (call, answers)
            kit.note(f"{answers[0]} {call}: {number - 1} failures")


def killed_at_each(call, prepare, answers):
    """An image for each call at which takt init was killed, and what was there before anything was set up."""
    for number in range(1, 100):
        with image() as at:
            put(at.path(CONF), "sample_hz = 20\n")
            before = tree(at.folder)
            prepare(at)
            hit, _ = fails_at(at, call, number, "signal=SIGKILL", answers)
            if not hit:
                break
            yield at, before
    assert number > 1, call
    kit.note(f"{call}: killed at {number - 1} places")


def is_as_it_was(at, before):
    """But for folders, and the record where it did not get that far."""
    now = tree(at.folder)
    odd = {path for path in now if now[path] != before.get(path)} | set(before) - set(now)
    return {path for path in odd if now.get(path) != "folder" and not path.endswith("takt-init/record.tmp")}


@kit.plain
def one_that_was_killed_is_taken_back():
    need_strace()
    for call in ("mkdirat", "symlinkat", "linkat", "renameat"):
        for at, before in killed_at_each(call, lambda at: None, ALL):
            if os.path.exists(at.path("var/lib/takt-init/record")):
                done = at.run("--remove")
                assert done.returncode == 0, (call, done)
            assert not is_as_it_was(at, before), (call, is_as_it_was(at, before))


@kit.plain
def one_that_was_killed_is_gone_on_with():
    need_strace()
    with image() as at:
        put(at.path(CONF), "sample_hz = 20\n")
        at.init(*ALL)
        whole = {path[len(at.folder):]: text for path, text in without_record(at).items()}
    for call in ("symlinkat", "linkat", "renameat"):
        for at, before in killed_at_each(call, lambda at: None, ALL):
            at.init(*ALL)
            made = {path[len(at.folder):]: text for path, text in without_record(at).items()}
            assert made == whole, (call, set(made) ^ set(whole))
            at.init("--remove")
            assert tree(at.folder) == before, (call, set(tree(at.folder)) ^ set(before))


@kit.plain
def one_that_was_killed_while_it_changed_something_is_taken_back():
    need_strace()
    for call in ("linkat", "renameat"):
        for at, before in killed_at_each(call, lambda at: at.init(*ALL), ("--answers", "users=all,clocks=yes,web=off")):
            done = at.run("--remove")
            assert done.returncode == 0, (call, done)
            assert tree(at.folder) == before, (call, set(tree(at.folder)) ^ set(before))


def clocks_are_set_for_nobody_where_that_was_the_answer():
    with kit.machine(gpus=1) as m:
        for said, locks in (("no", 0), ("yes", 1)):
            m.start("--set-clocks", said)
            client = m.client()
            job = client.submit(m.witness_argv(600000), 1, clock_ask="lock", clock_mhz=1200)["id"]
            kit.until(lambda job=job: client.job(job)["state"] == "running", lambda job=job: client.job(job))
            if locks:
                kit.until(lambda: len(m.locked()) == 1, m.boards)
            else:
                kit.until(lambda job=job: "set_clocks = no" in m.takt("show", str(job)).stdout,
                          lambda job=job: m.takt("show", str(job)).stdout)
                assert not m.locked(), m.boards()
                done = m.takt("clock", "cap", "--watts", "300")
                assert done.returncode != 0 and "set_clocks = no" in done.stderr, done
            client.cancel(job)
            client.wait(job)
            m.stop()


CASES = [it_says_what_it_found_and_a_dry_run_changes_nothing, all_of_it_is_made_and_taken_away_again,
         systemd_takes_the_units_for_enabled, units_of_a_package_are_enabled_where_they_are,
         once_more_changes_what_the_answers_change, what_was_there_is_kept_and_put_back,
         a_configuration_with_errors_is_named_and_left, what_was_changed_since_is_left_and_named,
         a_file_that_was_changed_is_replaced_with_a_copy, each_question_is_typed,
         return_takes_what_is_proposed_and_the_end_of_input_changes_nothing, beside_slurm_it_proposes_to_look_only,
         one_that_does_not_run_now_counts_too, a_user_has_it_in_his_own_folders, a_user_is_told_that_all_users_need_root,
         a_users_service_manager_is_told, root_goes_on_as_the_user_who_called_it, without_a_service_manager_it_says_how_to_start, wrong_answers_say_what_is_accepted,
         an_address_of_others_is_served_over_https, without_cgroup_v2_all_users_are_not_served,
         a_link_out_of_the_folder_is_not_followed, a_record_that_others_may_write_is_not_believed,
         a_purge_deletes_what_is_takts_and_follows_no_link,
         a_purge_goes_by_no_folder_that_is_a_link_of_others, a_full_disk_is_noticed_before_the_first_file, whatever_fails_nothing_is_left_of_it,
         whatever_fails_of_a_change_or_removal_all_is_as_it_was,
         one_that_was_killed_is_taken_back, one_that_was_killed_is_gone_on_with,
         one_that_was_killed_while_it_changed_something_is_taken_back, clocks_are_set_for_nobody_where_that_was_the_answer]

if __name__ == "__main__":
    sys.exit(kit.main(CASES))
