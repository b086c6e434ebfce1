# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium in front of the page that takt serves, for tests that look at it as a person would.

Run by root takt is everybody's and the page is alice's, who is no administrator: there are no tokens for root. Run by
anybody else takt and the page are his own.
"""
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
from users import ALICE

WEB = os.path.join(kit.SOURCE, "web")
NEEDED = ("playwright-core", "axe-core", "esbuild")
PASSWD = f"root:x:0:0::/root:/bin/sh\nalice:x:{ALICE}:{ALICE}::/:/bin/sh\n"
GROUP = f"root:x:0:\nalice:x:{ALICE}:\n"
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

    def token(self, *words):
        add = ("token", "add", *words)
        done = users.takt_as(self.m, ALICE, *add) if self.is_alices else self.m.takt(*add)
        assert done.returncode == 0, done
        return done.stdout.strip()


@contextlib.contextmanager
def page_of(*flags, **machine):
    """A Page of a simulated machine."""
    with contextlib.ExitStack() as stack:
        if os.getuid() != 0:
            m = stack.enter_context(kit.machine(**{"gpus": 2, **machine}))
        else:  # accounts in a mount namespace of the test's own
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            stack.enter_context(users.accounts(folder, PASSWD, GROUP))
            m = stack.enter_context(users.shared_machine(start=False, **{"gpus": 2, **machine}))
        m.more_flags = flags
        yield Page(m)


class Browser:
    """One page; `run` gives it JavaScript with `page` (of Playwright) and returns its value."""

    def __init__(self, process, address, token):
        self.process, self.address, self.token = process, address, token

    def run(self, code):
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the browser is gone"
        answer = json.loads(line)
        assert "problem" not in answer, f"{code}\n{answer.get('problem')}"
        return answer["value"]

    def fresh(self, width=1280, height=800, dark=False, token=None):
        """An empty tab of a fresh browser; its session has the token, if one is given."""
        options = {"viewport": {"width": width, "height": height}, "colorScheme": "dark" if dark else "light"}
        self.run(f"await open({json.dumps(options)}, {json.dumps(token)})")

    def open(self, place="#/overview", **more):
        """A fresh browser at that place, signed in, when it has heard from takt."""
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


@contextlib.contextmanager
def driver():
    """A process that drives a browser of its own."""
    need("node", "chromium")
    words = ["node", os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.mjs"), WEB, shutil.which("chromium")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(kit.WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@contextlib.contextmanager
def browser(page):
    with driver() as process:
        yield Browser(process, page.address, page.token("--write"))
