#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages that takt's programs write (--html), opened as files in a real browser without a network: each shows what
its document says, and asks for nothing.

Usage: browser_reports.py BUILD_FOLDER
"""
import contextlib
import functools
import json
import math
import os
import pathlib
import re
import sys
import tempfile

import browser_kit
from browser_kit import kit

sys.path.insert(0, os.path.join(kit.SOURCE, "tests/sim"))
from report_document import document_of

TAKT = os.path.join(kit.BUILD, "src/daemon/takt")
POINTS = os.path.join(kit.SOURCE, "data/clocks/perseus_a100_gpt3.csv")
NODES = "name,cpu_milli,memory_mib,gpus,model,count\nn,64000,262144,8,V100M32,4\n"
PODS = "num_gpu,name,cpu_milli,memory_mib,gpu_milli\n" + "".join(f"{1 + i % 3},p{i:03},4000,1000,1000\n" for i in range(40))
JOBS = "name,submit_s,duration_s,gpus\n" + "".join(f"j{i},{60 * i},{600 + 300 * (i % 5)},{(1, 2, 4, 16)[i % 4]}\n" for i in range(60))
TIMED = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n" +
         "".join(f"p{i},1000,1000,8,1000,{i},{i + 10}\n" for i in range(8)))
LOAD = "time,value\n" + "".join(f"{60 * i},{10 + 6 * math.sin(i / 30 * math.pi):.3f}\n" for i in range(960))
MARKUP = "</script><script>alert(1)</script>"
# A path may have any character but NUL: here it would end the page's elements, and its strings.
HOSTILE = "a</script><script>alert(1)</script>\"'&amp;\u2028é<!--.csv"


class Reports:
    """A folder with pages, and what --json printed beside each."""

    def __init__(self):
        self.folder, self.json = tempfile.TemporaryDirectory(prefix="takt-reports-"), {}
        self.write("blank.html", "")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as stream:
            stream.write(text)
        return self.path(name)

    def make(self, name, *words, by=None):
        """The page NAME.html of `takt words`, run by `by` where it needs a machine."""
        words = (*words, "--json", "--html", self.path(f"{name}.html"))
        if "--" in words:
            cut = words.index("--")
            words = (*words[:cut], *words[-3:], *words[cut:-3])
        done = by(*words) if by else self.run(*words)
        assert done.returncode == 0, done
        self.json[name] = json.loads(done.stdout)
        assert document_of(self.path(f"{name}.html")) == self.json[name], "the page holds another document"

    @staticmethod
    def run(*words):
        return kit.subprocess.run([TAKT, *words], capture_output=True, text=True, check=False)

    def address(self, name):
        return pathlib.Path(self.path(f"{name}.html")).as_uri()


def simulations(r):
    nodes, jobs = r.write("nodes.csv", NODES), r.write("jobs.csv", JOBS)
    r.make("packing", "simulate", "--cluster", nodes, "--trace", r.write("pods.csv", PODS), "--placement", "fgd,bestfit,random",
           "--seeds", "1..3", "--bound", "off")
    r.make("queue", "simulate", "--cluster", "uniform:autox8", "--trace", jobs, "--queue", "fifo,easy,las", "--load", "60,90",
           "--failures", "mtbf=50h,repair=1h", "--seeds", "1..3")
    r.make("timed", "simulate", "--protocol", "timed", "--cluster", nodes, "--trace", r.write("timed.csv", TIMED),
           "--placement", "fgd,bestfit", "--seeds", "1..2")
    r.make("clocks", "replay-clocks", "--points", POINTS, "--governor", "ladder,performance", "--epochs", "30,60", "--seeds", "1..2")
    r.make("forecast", "forecast", "--history", r.write("load.csv", LOAD), "--season", "1h", "--without", "lstm", "--govern")


def of_a_machine(r):
    with kit.machine(gpus=1) as m:
        m.start()
        profile = r.write("mixed.toml", kit.MIXED)
        load = (kit.TWIN, "load", "--profile", profile, "--quiet", "--steps")

        def tune(*words):
            return m.run(m.path("bin/takt"), *words, cwd=m.folder)
        r.make("tune", "tune", "--clocks", "1500,600", "--repeat", "2", "--max-slowdown", "60%", "--any-output", "--",
               "sh", "-c", 'exec "$@"', MARKUP, *load, "6", by=tune)
        client = m.client()
        for name, words in (("train", (*load, "20")), ("idle", ("sleep", "1"))):
            client.wait(client.submit(list(words), gpus=1, name=name)["id"])
        r.make("usage", "report", "--by", "name", "--price", "0.31", by=m.takt)


@functools.cache
def made(maker):
    """The Reports that it makes: once, for all cases that look at them."""
    r = Reports()
    maker(r)
    return r


@contextlib.contextmanager
def reports(maker):
    browser_kit.need("node", "chromium")
    r = made(maker)
    with browser_kit.tab("", r.address("blank")) as b:
        yield r, b


def show(b, r, name, **look):
    b.fresh(**look)
    b.run(f"await page.goto({json.dumps(r.address(name))}); await page.locator('h1').waitFor()")


def texts(b, where):
    return b.run(f"return await page.locator({json.dumps(where)}).allInnerTexts()")


def rows(b, number=0):
    """A table's rows, as lists of cells."""
    return b.run(f"return await page.locator('table').nth({number}).locator('tbody tr').evaluateAll("
                 "rows => rows.map(row => [...row.children].map(cell => cell.innerText.trim())))")


def is_sound(b, r, name, charts):
    """Nothing was asked for, nothing complained of, and all that is simulated says so."""
    asked = b.run("return asked")
    assert all(each in (r.address(name), "") or each.startswith("data:") for each in asked), asked
    assert b.run("return said") == [], b.run("return said")
    b.until("return [await page.locator('.chart').count(), await page.locator('.chart path, .chart circle, .chart rect').count()]",
            lambda seen: seen[0] == charts and (seen[1] or not charts))
    for where in (".top", ".chart", ".scroll"):
        marked, there = (b.run(f"return await page.locator({json.dumps(where + end)}).count()") for end in (" .simulated", ""))
        assert marked == (there if r.json[name]["simulated"] else 0), (name, where, marked, there)


def simulations_show_what_their_documents_say():
    with reports(simulations) as (r, b):
        show(b, r, "packing")
        is_sound(b, r, "packing", 4)
        best = max((one for one in r.json["packing"]["results"] if one["load_pct"] == 100), key=lambda one: one["allocation_pct"])
        first = rows(b)[0]
        assert first[0] == best["placement"] and first[1].startswith(f"{best['allocation_pct']:.2f}"), (first, best)
        b.click("button", "50 %")
        kit.until(lambda: "50 %" in texts(b, "caption")[0], "the table of another load")

        show(b, r, "queue")
        is_sound(b, r, "queue", 4)
        found = {one["queue"]: one for one in r.json["queue"]["results"] if one["load_pct"] == 90}
        assert [row[0] for row in rows(b)] == ["fifo", "easy", "las"] and len(texts(b, ".card")) == 3
        assert rows(b)[2][1].startswith(f"{found['las']['jct_mean_s']:,.0f}") and "±" in rows(b)[2][1], rows(b)
        assert [row[0] for row in rows(b, 1)] == ["easy", "las"], "differences to the first"

        show(b, r, "timed")
        is_sound(b, r, "timed", 0)
        assert ["fgd", "bestfit"] == [row[0] for row in rows(b)]

        show(b, r, "clocks")
        is_sound(b, r, "clocks", 2)
        ladder = next(one for one in r.json["clocks"]["scores"] if one["governor"] == "ladder")
        row = next(row for row in rows(b) if row[:2] == ["ladder", "30"])
        assert row[2].startswith(f"{ladder['share_of_optimum_pct']:.1f}"), (row, ladder)

        show(b, r, "forecast")
        is_sound(b, r, "forecast", 1)
        assert r.json["forecast"]["chosen"] in texts(b, "tr.chosen th")[0]
        b.see("nine of ten were within")


def a_machines_own_reports_show_what_was_measured():
    with reports(of_a_machine) as (r, b):
        show(b, r, "tune")
        is_sound(b, r, "tune", 4)
        chosen = r.json["tune"]["recommended"]
        assert texts(b, "tr.chosen th") == [f"{chosen['sm_mhz']} MHz"], chosen
        assert any("±" in cell for cell in rows(b)[1]), rows(b)
        assert MARKUP in texts(b, "pre")[0], texts(b, "pre")
        assert b.run("return await page.locator('script').count()") == 2
        show(b, r, "usage")
        is_sound(b, r, "usage", 1)
        total = r.json["usage"]["total"]
        last = rows(b)[-1]
        assert last[0] == "total" and last[1] == str(total["jobs"]) == "3", last
        assert "at 0.31 a kWh" in " ".join(texts(b, ".figures"))
        assert sorted(row[0] for row in rows(b)[:-1]) == ["idle", "train", "tune"], rows(b)


def days_are_curves():
    def of_days(r):
        """The page of a machine's days, which no test can wait for."""
        def day(key, hours, **more):
            return dict({"key": key, "jobs": 1, "not_done": 0, "gpu_jobs": 1, "gpu_hours": hours, "util_jobs": 0, "energy_jobs": 0,
                         "governed_jobs": 0, "saved_jobs": 0}, **more)
        r.json["days"] = {
            "format": "takt-usage", "version": 1, "takt": "0", "commit": "0", "simulated": True, "by": "day", "since_ms": 0,
            "until_ms": 0, "made_ms": 0, "command": "takt report --by day", "total": day("total", 14),
            "groups": [day("2026-02-27", 4, util_jobs=1, used_pct=50, idle_gpu_hours=2), day("2026-02-28", 8),
                       day("2026-03-02", 2, util_jobs=1, used_pct=75, idle_gpu_hours=0.5)]}
        with open(os.path.join(browser_kit.WEB, "dist/report.html"), encoding="utf-8") as stream:
            r.write("days.html", re.sub(r'(id="document"[^>]*>).*?(</script>)', lambda at: at[1] + json.dumps(r.json["days"]) + at[2],
                                        stream.read(), flags=re.S))
    with reports(of_days) as (r, b):
        show(b, r, "days")
        is_sound(b, r, "days", 2)
        b.run("await page.locator('.plot').first().focus()")
        for key, legend in (("ArrowRight", ("2026-02-27", "held 4", "idle 2")), ("ArrowRight", ("2026-02-28", "held 8", "idle –")),
                            ("ArrowRight", ("2026-03-01", "held 0")), ("End", ("2026-03-02", "held 2", "idle 0.5"))):
            b.press(key)
            kit.until(lambda: all(each in texts(b, ".legend")[0] for each in legend), lambda: texts(b, ".legend"))


def hostile_names_are_text():
    with reports(lambda r: r.make("hostile", "simulate", "--cluster", "uniform:4x8", "--trace", r.write(HOSTILE, JOBS),
                                  "--queue", "fifo", "--load", "60")) as (r, b):
        b.fresh()
        b.run("globalThis.asks = 0; page.on('dialog', (it) => { globalThis.asks++; void it.dismiss(); })")
        b.run(f"await page.goto({json.dumps(r.address('hostile'))}); await page.locator('h1').waitFor()")
        is_sound(b, r, "hostile", 2)
        assert r.json["hostile"]["trace"]["source"].endswith(HOSTILE)
        shown = b.run("return await page.locator('.terms').evaluate(it => it.textContent)")
        assert HOSTILE in shown and HOSTILE in b.run("return await page.locator('pre').evaluate(it => it.textContent)").replace("'\\''", "'")
        assert b.run("return await page.locator('script').count()") == 2 and b.run("return globalThis.asks") == 0


def no_result_is_said():
    def of_nothing(r):
        with open(os.path.join(browser_kit.WEB, "dist/report.html"), encoding="utf-8") as stream:
            r.write("empty.html", stream.read())
    with reports(of_nothing) as (r, b):
        show(b, r, "empty")
        b.see("holds no result")


def is_for_everybody(b, r, name):
    for dark in (False, True):
        show(b, r, name, dark=dark)
        found = b.run("return await axe()")
        assert not found, (name, "dark" if dark else "light", found)
    show(b, r, name, width=390, height=844)
    wide = b.run("return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)")
    assert wide <= 0, f"{name}: {wide} px wider than a phone"


def they_are_for_everybody():
    """In light and dark, on a phone, and with the keyboard alone."""
    for maker in (of_a_machine, simulations):
        with reports(maker) as (r, b):
            for name in r.json:
                is_for_everybody(b, r, name)
    with reports(simulations) as (r, b):
        show(b, r, "queue")
        b.run("await page.locator('.plot').first().focus()")
        b.press("ArrowRight")
        kit.until(lambda: "60 % offered load" in texts(b, ".legend")[0], "the first load's values")
        b.press("End")
        kit.until(lambda: "90 % offered load" in texts(b, ".legend")[0], "the last load's values")
        assert "±" in texts(b, ".legend")[0]
        b.run("await page.getByRole('button', {name: '60 %'}).focus()")
        b.press("Enter")
        kit.until(lambda: "All figures at 60 %" in texts(b, "h2"), "another load")
        b.click("button", "dark colours")
        kit.until(lambda: b.run("return await page.evaluate(() => document.documentElement.dataset.theme)") == "dark", "dark")


if __name__ == "__main__":
    sys.exit(kit.main([
        simulations_show_what_their_documents_say,
        a_machines_own_reports_show_what_was_measured,
        days_are_curves,
        hostile_names_are_text,
        no_result_is_said,
        they_are_for_everybody,
    ]))
