#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt web: one link that signs in, printed or opened in a browser, and told to nobody else.

Usage: web_link.py BUILD_FOLDER
"""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse

import users  # first: it may replace the build folder
import kit
from users import ALICE, BOB
from web_access import Web, two_accounts

LINK = r"http://127\.0\.0\.1:\d+/#token=(takt_[0-9a-f]{12}_[0-9a-f]{64})"
SECRET = re.compile(rb"takt_[0-9a-f]{12}_[0-9a-f]{64}")

# What stands in for the desktop's program: says what it was given, waits, then is a browser that goes there.
OPENER = """#!/usr/bin/env python3
import http.client, os, sys, time, urllib.parse
folder = {folder!r}
with open(folder + "/given.new", "w") as file:
    file.write("\\n".join(sys.argv[1:]))
os.rename(folder + "/given.new", folder + "/given")
while not os.path.exists(folder + "/go"):
    time.sleep(0.02)
at = urllib.parse.urlsplit(sys.argv[1])
for path in ("/favicon.ico", at.path):
    connection = http.client.HTTPConnection(at.netloc)
    connection.request("GET", path)
    answer = connection.getresponse()
    with open(folder + "/led", "a") as file:
        file.write(f"{{answer.status}} {{answer.headers['Location']}}\\n")
"""


def web(m, uid, *words, **env):
    """takt web of that user; root where uid is 0. Asked again where the system has not said yet who somebody is."""
    more = {} if uid == 0 else {"user": uid, "group": uid, "extra_groups": []}
    given = {name: value for name, value in m.env().items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "SUDO_USER")}
    done = []

    def ask():
        done[:] = [subprocess.run([m.path("bin/takt"), "web", *words], env={**given, **env}, capture_output=True, text=True, cwd="/",
                                  timeout=kit.WAIT_S, check=False, **more)]
        return "ask again" not in done[0].stderr
    kit.until(ask, lambda: done)
    return done[0]


def token_of(done):
    """Of the one link, which is all that is printed."""
    assert done.returncode == 0, done
    return re.fullmatch(LINK + "\n", done.stdout)[1]


def the_link_signs_in():
    with two_accounts() as m:
        for words, may in ((("--print",), True), (("--no-open", "--read"), False), ((), True)):  # there is no display
            token = token_of(web(m, ALICE, *words))
            account = Web(m, token).ask("GET", "/v1/account")
            assert (account["user"], account["write"], account["admin"]) == ("alice", may, False), account
            status = Web(m, token).status("POST", "/v1/jobs", users.job_of(["true"]))
            assert status == (201 if may else 403), status
            assert token not in m.said(), "it is in the log"
        told = json.loads(web(m, ALICE, "--json", "--days", "3").stdout)
        assert re.fullmatch(LINK, told["link"]) and told["user"] == "alice" and told["write"], told
        listed = users.takt_as(m, ALICE, "token", "list").stdout
        assert listed.count("takt web") == 4 and told["id"] in listed, listed
        assert web(m, ALICE, "--days", "0").returncode == 64
        done = web(m, ALICE, "--user", "bob")
        assert done.returncode == 77 and "only administrators" in done.stderr, done


def where_there_is_no_page_it_says_what_to_set():
    with kit.machine(gpus=1) as m:
        m.start()
        done = m.takt("web", "--print")
        assert done.returncode == 69 and "web_listen = 127.0.0.1:9832" in done.stderr and not done.stdout, done
        assert m.takt("token", "list").stdout == "no tokens\n", "no token was made for nothing"
        m.stop()
        done = m.takt("web")
        assert done.returncode == 69, done


def of_old_links_the_newest_count():
    with two_accounts() as m:
        tokens = [token_of(web(m, ALICE)) for _ in range(9)]
        assert [Web(m, token).status("GET", "/v1/status") for token in tokens] == [401] + [200] * 8


def for_root_the_link_is_printed():
    """Of a takt for all it is an account's, by sudo that of who has typed it; of root's own takt it is root's."""
    with two_accounts() as m:
        done = web(m, 0, DISPLAY=":9")
        assert done.returncode == 77 and "--user" in done.stderr, done
        for words, env in ((("--user", "alice"), {}), ((), {"SUDO_USER": "alice"})):
            token = token_of(web(m, 0, *words, DISPLAY=":9", **env))
            assert Web(m, token).ask("GET", "/v1/account")["uid"] == ALICE
    with users.shared_machine("own", start=False, gpus=1) as m:
        m.start("--web-listen", "127.0.0.1:0")
        token = token_of(web(m, 0, DISPLAY=":9"))
        account = Web(m, token).ask("GET", "/v1/account")
        assert (account["uid"], account["admin"], account["write"]) == (0, True, True), account
        # What was good for root alone is good for nobody when takt serves all.
        m.stop()
        m.users = "all"
        open(m.path("takt.log"), "w", encoding="ascii").close()
        m.start("--web-listen", "127.0.0.1:0")
        status, _, said = Web(m, token).raw("GET", "/v1/status")
        assert status == 403 and b"root" in said, (status, said)


@contextlib.contextmanager
def desktop(m, script):
    """A folder with an xdg-open of alice's, and her environment with a display."""
    folder = m.path("desktop")
    os.mkdir(folder)
    os.chown(folder, ALICE, ALICE)
    kit.write_program(os.path.join(folder, "xdg-open"), script.format(folder=folder))
    yield folder, {"DISPLAY": ":9", "PATH": folder + ":/usr/bin:/bin"}


def goes_to(address):
    """The status with which the door answers; None: it hangs up."""
    at = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(at.netloc, timeout=kit.WAIT_S)
    try:
        connection.request("GET", at.path)
        return connection.getresponse().status
    except (http.client.HTTPException, OSError):
        return None
    finally:
        connection.close()


def command_lines():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            yield kit.environ_of(pid, "cmdline")


def the_browser_is_led_to_it_and_nobody_else():
    with two_accounts() as m, desktop(m, OPENER) as (folder, env), contextlib.ExitStack() as stack:
        given, tries = os.path.join(folder, "given"), []

        def started():
            if os.path.exists(given):
                return True
            if not tries or tries[-1].poll() is not None:  # it was told to ask again
                tries.append(stack.enter_context(subprocess.Popen(
                    [m.path("bin/takt"), "web"], env={**m.env(), **env}, cwd="/", stdout=subprocess.PIPE, text=True,
                    user=ALICE, group=ALICE, extra_groups=[])))
            return False
        try:
            kit.until(started, "the browser is started")
            takt = tries[-1]
            with open(given, encoding="ascii") as file:
                address = file.read()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}", address), address
            assert not [line for line in command_lines() if SECRET.search(line)], "everybody sees these"
            assert users.as_user(BOB, goes_to, address) is None, "another user was told"
            os.mknod(os.path.join(folder, "go"))
            said, _ = takt.communicate(timeout=kit.WAIT_S)
        finally:
            for each in tries:
                each.kill()
        assert takt.returncode == 0 and "is open in the browser, signed in as alice" in said, said
        assert not SECRET.search(said.encode()), said
        def answers():
            with open(os.path.join(folder, "led"), encoding="ascii") as file:
                return file.read().splitlines()
        other, led = kit.until(lambda: len(answers()) == 2 and answers(), answers)
        assert other == "404 None", other
        token = re.fullmatch("303 " + LINK, led)[1]
        assert Web(m, token).ask("GET", "/v1/account")["user"] == "alice"
        assert users.as_user(ALICE, goes_to, address) is None, "once"


def where_no_browser_opens_the_link_is_printed():
    with two_accounts() as m, desktop(m, "#!/bin/sh\nexit 3\n") as (folder, env):
        token_of(web(m, ALICE, **env))
        os.unlink(os.path.join(folder, "xdg-open"))
        token_of(web(m, ALICE, **{**env, "PATH": folder}))


def the_start_script_prints_a_link():
    """./run, whoever runs it, in a folder where all is built already."""
    with tempfile.TemporaryDirectory() as top:
        for name in ("tools", "build", "bin"):
            os.mkdir(os.path.join(top, name))
        shutil.copy(os.path.join(kit.SOURCE, "run"), top)
        for name in ("src", "twin"):
            os.symlink(os.path.join(kit.BUILD, name), os.path.join(top, "build", name))
        for name in ("build/build.ninja", "tools/install-packages.sh"):
            open(os.path.join(top, name), "w", encoding="ascii").close()
        kit.write_program(os.path.join(top, "bin/ninja"), "#!/bin/sh\n")
        env = {name: value for name, value in os.environ.items() if not name.startswith("TAKT_") and name != "LD_LIBRARY_PATH"}
        run = subprocess.Popen(["./run"], cwd=top, env={**env, "PATH": os.path.join(top, "bin") + ":" + env["PATH"]},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            lines = []
            for line in run.stdout:
                lines.append(line)
                if re.search(LINK, line):
                    break
            found = re.search(LINK, lines[-1])
            assert found, "".join(lines)
            at = urllib.parse.urlsplit(found[0])
            connection = http.client.HTTPConnection(at.netloc, timeout=kit.WAIT_S)
            connection.request("GET", "/v1/account", headers={"Authorization": "Bearer " + found[1]})
            account = json.loads(connection.getresponse().read())
            connection.close()
            assert account["uid"] == os.getuid() and account["write"], account
        finally:
            os.killpg(run.pid, signal.SIGINT)
            run.stdout.read()
            run.stdout.close()
            run.wait(kit.WAIT_S)


if __name__ == "__main__":
    sys.exit(kit.main([
        the_link_signs_in,
        where_there_is_no_page_it_says_what_to_set,
        of_old_links_the_newest_count,
        for_root_the_link_is_printed,
        the_browser_is_led_to_it_and_nobody_else,
        where_no_browser_opens_the_link_is_printed,
        the_start_script_prints_a_link,
    ]))
