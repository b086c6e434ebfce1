# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium in front of the page that takt serves, for tests that look at it as a person would.

Run by root takt is everybody's and the page is alice's, who is no administrator: there are no tokens for root. Run by
anybody else takt and the page are his own.
"""
import atexit
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import users  # first: it may replace the build folder
import kit
from users import ALICE, BOB

WEB = os.path.join(kit.SOURCE, "web")
NEEDED = ("playwright-core", "axe-core", "esbuild")
PASSWD = f"root:x:0:0::/root:/bin/sh\nalice:x:{ALICE}:{ALICE}::/:/bin/sh\nbob:x:{BOB}:{BOB}::/:/bin/sh\n"
GROUP = f"root:x:0:\nalice:x:{ALICE}:\nbob:x:{BOB}:\n"
WEB_PORT = r"web page on port (\d+)"


def need(*programs):
    """Skips where one is not installed, or the packages of web/ are not."""
    for program in programs:
        if not shutil.which(program):
            raise kit.Skip(f"{program} is not installed")
    for name in NEEDED:
        if not os.path.isdir(os.path.join(WEB, "node_modules", name)):
            raise kit.Skip(f"{name} is not installed: npm ci in web/")


class Client(kit.Client):
    """A connection a question: takt closes those on which nothing has moved while the browser was at work."""

    def raw(self, *arguments):
        self.close()
        return super().raw(*arguments)


class AlicesClient(Client):
    """alice's questions: the kernel says who has opened the connection."""

    def _connect(self):
        os.setegid(ALICE)
        os.seteuid(ALICE)
        try:
            super()._connect()
        finally:
            os.seteuid(0)
            os.setegid(0)


class Page:
    """A machine whose takt runs and serves its page: where, and for whom."""

    def __init__(self, m):
        self.m, self.is_alices = m, os.getuid() == 0
        m.start("--web-listen", "127.0.0.1:0")
        port = kit.until(lambda: re.search(WEB_PORT, m.said()), m.said)[1]
        self.address = f"http://127.0.0.1:{port}/"
        m.more_flags = (*m.more_flags, "--web-listen", f"127.0.0.1:{port}")  # there again after a restart

    def client(self):
        """Asks as the one whose page it is."""
        self.m.clients.append((AlicesClient if self.is_alices else Client)(self.m.socket))
        return self.m.clients[-1]

    def takt(self, *words):
        """What the command line says to the one whose page it is."""
        done = users.takt_as(self.m, ALICE, *words) if self.is_alices else self.m.takt(*words)
        assert done.returncode == 0, done
        return done.stdout.strip()

    def token(self, *words):
        return self.takt("token", "add", *words)


@contextlib.contextmanager
def page_of(*flags, group=GROUP, **machine):
    """A Page of a simulated machine."""
    with contextlib.ExitStack() as stack:
        if os.getuid() != 0:
            m = stack.enter_context(kit.machine(**{"gpus": 2, **machine}))
        else:  # accounts in a mount namespace of the test's own
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            stack.enter_context(users.accounts(folder, PASSWD, group))
            m = stack.enter_context(users.shared_machine(start=False, **{"gpus": 2, **machine}))
        m.more_flags = flags
        yield Page(m)


class Browser:
    """One tab; `run` gives it JavaScript with `page` (of Playwright) and returns its value."""

    def __init__(self, process, address, blank, token):
        self.process, self.address, self.blank, self.token = process, address, blank, token

    def run(self, code):
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the browser is gone"
        answer = json.loads(line)
        assert "problem" not in answer, f"{code}\n{answer.get('problem')}"
        return answer["value"]

    def until(self, code, condition):
        """What the code returns, once it is as it should be."""
        last = []

        def look():
            last[:] = [self.run(code)]
            return condition(last[0])
        kit.until(look, lambda: f"{code}: {last[0]}")
        return last[0]

    def fresh(self, width=1280, height=800, dark=False, token=None):
        """As a new tab; its session has the token, if one is given."""
        words = width, height, "dark" if dark else "light", self.blank, token
        self.run(f"await fresh({', '.join(map(json.dumps, words))})")

    def open(self, place="#/overview", **more):
        """As a new tab at that place, signed in, when it has heard from takt."""
        self.fresh(token=self.token, **more)
        self.go(place)

    def go(self, place):
        self.run(f"await page.goto({json.dumps(self.address + place)});"
                 "await page.locator('.link.live').waitFor();"
                 "await page.locator('main:not(:has(.waiting)) h1').first().waitFor({state: 'attached'})")

    def see(self, text):
        """Waits until it is to be seen."""
        self.run(f"await page.getByText({json.dumps(text)}).first().waitFor()")

    def click(self, role, name):
        self.run(f"await page.getByRole({json.dumps(role)}, {{name: {json.dumps(name)}}}).first().click()")

    def press(self, *keys):
        for key in keys:
            self.run(f"await page.keyboard.press({json.dumps(key)})")


drivers = []  # the last of them is in use: one browser for all cases, another where that one is gone


def driver():
    """The process that drives this program's browser."""
    need("node", "chromium")
    if not drivers or drivers[-1].poll() is not None:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.mjs")
        drivers.append(subprocess.Popen(["node", path, WEB, shutil.which("chromium"), str(kit.WAIT_S)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True))
        atexit.register(end, drivers[-1])
    return drivers[-1]


def end(process):
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(kit.WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


@contextlib.contextmanager
def tab(address, blank, token=None):
    """A tab of its own."""
    b = Browser(driver(), address, blank, token)
    b.run("await tab()")
    try:
        yield b
    finally:
        if b.process.poll() is None:
            b.run("await close()")


def browser(page):
    """A tab for who may act on the page."""
    return tab(page.address, page.address + "v1/version", page.token("--write"))
