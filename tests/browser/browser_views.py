#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people look for on takt's page, in a real browser: a user his jobs and a GPU that is free, a researcher why a job
failed and what it did, an administrator what is broken; at the widths of a desk, a tablet and a phone.

Usage: browser_views.py BUILD_FOLDER
"""
import os
import sys

import browser_kit
from browser_kit import kit

DESK, TABLET, PHONE = (1280, 800), (768, 1024), (390, 844)
PLACES = ["#/overview", "#/jobs", "#/jobs?show=ended", "#/timeline", "#/topology", "#/clocks", "#/health", "#/submit"]


def opened(b, place, size=DESK, **more):
    b.open(place, width=size[0], height=size[1], **more)


def texts(b, selector):
    return b.run(f"return await page.locator({selector!r}).evaluateAll(all => all.map(one => one.innerText.replace(/\\s+/g, ' ').trim()))")


def shows(b, selector, *words):
    """Waits until one element that fits has all these words."""
    b.until(f"return await page.locator({selector!r}).evaluateAll(all => all.map(one => one.innerText.replace(/\\s+/g, ' ').trim()))",
            lambda found: any(all(word in text for word in words) for text in found))


def nothing_serious(b):
    found = b.run("return await axe()")
    assert not found, found


def no_wider_than_the_window(b, place):
    wide = b.run("return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)")
    assert wide <= 0, f"{place} is {wide} px wider than the window"


def sleeps(client, **more):
    return client.submit(["sleep", "3600"], **{"gpus": 1, "estimate_ms": 600000, **more})["id"]


def runs(client, job):
    kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
    return job


def fails(client, script, **more):
    job = client.submit(["sh", "-c", script], **{"gpus": 1, **more})["id"]
    assert client.wait(job)["state"] == "failed"
    return job


def simulated_is_said_on_every_view_at_every_width():
    with browser_kit.page_of(gpus=2) as page:
        job = runs(page.client(), sleeps(page.client()))
        with browser_kit.browser(page) as b:
            for size in (DESK, TABLET, PHONE):
                opened(b, "#/overview", size)
                for place in [*PLACES, f"#/jobs/{job}", f"#/jobs/{job}?tab=metrics", f"#/jobs/{job}?tab=log"]:
                    b.go(place)
                    box = b.run("return await page.locator('.simulated:visible').boundingBox()")
                    assert box and 0 <= box["x"] and box["x"] + box["width"] <= size[0], (place, size, box)
                    no_wider_than_the_window(b, place)


ANSWERS = "section[aria-label=\"In short\"] .answer"


def the_overview_answers_before_it_shows_the_machine():
    """Is a GPU free and of which kind, what of my jobs, when does my next one start, what is broken."""
    with browser_kit.page_of(gpus=2) as page:
        client = page.client()
        with browser_kit.browser(page) as b:
            opened(b, "#/overview")
            shows(b, ANSWERS, "Free now", "2 of 2 GPUs", "2 × H100 80GB HBM3, 79.6 GiB: GPU 0-1")
            shows(b, ANSWERS, "Broken", "nothing", "all 2 GPUs healthy")
            b.see("You have no jobs.")
            fails(client, "exit 3", name="typo")
            runs(client, sleeps(client, gpus=2, name="train"))
            sleeps(client, gpus=1, name="evaluate")
            shows(b, ANSWERS, "Free now", "no GPU", "GPU 0-1 is expected back in", "1 job waits already")
            shows(b, ANSWERS, "My jobs", "1 running, 1 waiting", "1 failed since yesterday")
            shows(b, ANSWERS, "My next start", "in ", " min", "evaluate on GPU")
            shows(b, ".mine li", "typo", "failed", "exit 3")
            order = b.run("return await page.evaluate(() => ['.answers', '.mine', '.cards', '.figures', '.chart']"
                          ".map(one => document.querySelector(one).getBoundingClientRect().top))")
            assert order == sorted(order), order
            for size, dark in ((DESK, True), (TABLET, False), (PHONE, False)):
                opened(b, "#/overview", size, dark=dark)
                nothing_serious(b)
                no_wider_than_the_window(b, "#/overview")


def what_is_broken_stands_out():
    with browser_kit.page_of(gpus=8) as page:
        with browser_kit.browser(page) as b:
            opened(b, "#/overview")
            b.until("return await page.locator('.card').evaluateAll(all => all.map(one => one.getBoundingClientRect().top))",
                    lambda tops: len(tops) == 8 and len(set(tops[:4])) == len(set(tops[4:])) == 1 and tops[0] < tops[4])
            shows(b, ".card .meter", "power", " of 700 W")
            shows(b, ".card .meter", "memory", " of 79.6 GiB")
            shows(b, ".card .meter", "clock", " of 1980 MHz")
            page.m.twin("fault", "5", "lost")
            shows(b, ".card.broken", "GPU 5", "lost", "What to do")
            assert b.run("return await page.locator('.card.broken').count()") == 1
            shows(b, ANSWERS + ".grave", "Broken", "1 GPU", "GPU 5: ")
            for dark in (False, True):
                opened(b, "#/overview", dark=dark)
                b.run("await page.locator('.card.broken').waitFor()")
                nothing_serious(b)
            b.click("link", "What to do")
            b.run("await page.locator('section[aria-label=\"GPU 5\"]').waitFor()")


# A quarter of an hour of every GPU, a value each ten seconds: more than the page could have heard itself.
QUARTER = """
await page.route('**/v1/history*', route => {
    const points = [], until_ms = Date.now();
    for (let at = until_ms - 900000; at < until_ms; at += 10000) points.push([at, 40, 50, 60]);
    route.fulfill({json: {unit: '%', step_ms: 10000, from_ms: points[0][0], until_ms, points}});
});"""


def many_gpus_fit_their_cards():
    with browser_kit.page_of(board="h100-64") as page:
        page.client().submit(page.m.load_argv("--profile", "gemm", "--seconds", "3600", "--quiet"), gpus=2)
        with browser_kit.browser(page) as b:
            for size in (DESK, PHONE):
                opened(b, "#/overview", size)
                shows(b, ".card .meter", "clock", "1980 of 1980 MHz")
                cut = b.run("return await page.locator('.card').evaluateAll(all => all.filter(card => [...card.querySelectorAll('.text')]"
                            ".some(text => text.getBoundingClientRect().right > card.getBoundingClientRect().right)).map(one => one.innerText))")
                assert not cut, (size, cut)
                no_wider_than_the_window(b, "#/overview")


def graphs_are_filled_from_history_at_once():
    with browser_kit.page_of(gpus=2) as page:
        with browser_kit.browser(page) as b:
            b.fresh(token=b.token)
            b.run(QUARTER)
            b.go("#/overview")
            b.until("return await page.locator('.spark .line').evaluateAll(all => all.map(one => one.getAttribute('d').split('L').length))",
                    lambda points: len(points) == 2 and min(points) > 80)
            b.run("await page.locator('.plot[aria-label^=\"Power of all GPUs, last hour. all GPUs: last\"]').waitFor()")


def a_price_is_said_where_energy_is():
    with browser_kit.page_of(gpus=1) as page:
        job = runs(page.client(), page.client().submit(page.m.load_argv("--profile", "gemm", "--seconds", "3600", "--quiet"), gpus=1)["id"])
        kit.until(lambda: page.client().job(job)["report"].get("energy_mj"), "its energy is counted")
        with browser_kit.browser(page) as b:
            opened(b, "#/overview")
            b.run("await page.getByLabel('Cost').fill('0,4'); await page.keyboard.press('Tab')")
            b.run("await page.locator('.figure', {hasText: /Cost.*[0-9.]+ .{1,3}h/s}).waitFor()")
            b.go(f"#/jobs/{job}")
            b.run("await page.locator('.figure', {hasText: /Energy.*costs [0-9.]+/s}).waitFor()")


def ones_own_jobs_come_first_and_what_runs_apart():
    with browser_kit.page_of(gpus=2) as page:
        client = page.client()
        others = page.m.client() if page.is_alices else None
        if others:
            runs(others, sleeps(others, name="of-root"))
        mine = runs(client, sleeps(client, name="mine"))
        waits = sleeps(client, name="next", gpus=2)
        with browser_kit.browser(page) as b:
            opened(b, "#/jobs")
            running, waiting = (".scroll[aria-label=\"jobs: %s\"] tbody tr" % kind for kind in ("running", "waiting"))
            shows(b, running, str(mine), "mine", "running")
            shows(b, waiting, str(waits), "next", "waiting")
            assert not any("next" in text for text in texts(b, running))
            if others:
                rows = texts(b, running)
                assert rows[0] == "Yours" and "mine" in rows[1] and rows[2] == "Others'" and "(another's)" in rows[3], rows
                b.click("button", "Mine")
                b.until("return await page.locator('table.jobs tbody tr').count()", lambda count: count == 2)
                b.click("button", "Everybody's")


def arrays_are_one_line_and_shares_say_so():
    with browser_kit.page_of(gpus=2) as page:
        client = page.client()
        runs(client, sleeps(client))
        share = runs(client, sleeps(client, gpu_milli=250, name="notebook"))
        array = sleeps(client, name="sweep", array_first=0, array_last=19, array_limit=2, gpus=2)
        part = client.submit(["true"], gpus=2, gpu_milli=500, held=True, name="parts")["id"]
        with browser_kit.browser(page) as b:
            opened(b, "#/jobs")
            shows(b, "table.jobs tbody tr", str(share), "notebook", "0.25 of GPU")
            shows(b, "table.jobs tbody tr", "parts", "2 × 0.5 GPU wanted")
            shows(b, "table.jobs tr.array", f"{array}[0-19%2]", "20 waiting")
            count = b.run("return await page.locator('table.jobs tbody tr').count()")
            b.run("await page.getByRole('button', {name: 'sweep'}).focus()")
            b.press("Enter")
            b.until("return await page.locator('table.jobs tbody tr').count()", lambda now: now == count + 20)
            shows(b, "table.jobs tr.within", f"{array + 7}", "sweep[7]")
            nothing_serious(b)
            for size in (TABLET, PHONE):
                opened(b, "#/jobs", size)
                shows(b, "table.jobs tr.array", f"{array}[0-19%2]")
                cut = b.run("return await page.locator('.scroll, table.jobs td').evaluateAll(all => all"
                            ".filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText))")
                assert not cut, (size, cut)
                no_wider_than_the_window(b, "#/jobs")
            b.go(f"#/jobs/{share}")
            b.run("await page.locator('.terms div', {hasText: 'GPUs'}).getByText('0.25 GPU').waitFor()")
            b.go("#/overview")
            shows(b, ".card", "0.25:", "notebook")
            shows(b, ANSWERS, "0.75 of GPU", "can be shared")
            assert client.job(part)["state"] == "waiting"


def ones_own_jobs_are_found_behind_many():
    """takt tells the first 200 of the queue, and whose page it is asks for his own."""
    with browser_kit.page_of(gpus=1) as page:
        if not page.is_alices:
            raise kit.Skip("only root can be another user")
        root, client = page.m.client(), page.client()
        runs(root, sleeps(root))
        sleeps(root, name="many", array_first=0, array_last=249)
        mine = sleeps(client, name="mine")
        with browser_kit.browser(page) as b:
            opened(b, "#/overview")
            shows(b, ANSWERS, "My jobs", "0 running, 1 waiting")
            shows(b, ".mine li", f"{mine} mine", "waiting")
            b.go("#/jobs")
            shows(b, "table.jobs tbody tr", f"{mine}", "mine", "waiting")
            b.see("of 252 are shown.")


SCRIPT = "for i in $(seq 40); do echo line $i; done; echo boom $LR >&2; exit 127"


def a_failed_job_says_why_and_is_run_again():
    with browser_kit.page_of(gpus=1) as page:
        client = page.client()
        job = fails(client, SCRIPT, name="broken")
        with browser_kit.browser(page) as b:
            opened(b, f"#/jobs/{job}")
            why = "section[aria-label=\"why it failed\"]"
            shows(b, why, "It failed", "exit 127", "the shell did not find the command")
            shows(b, f"{why} pre", "line 40 boom")
            assert "line 20 " not in texts(b, f"{why} pre")[0], "only its last lines"
            for size, dark in ((DESK, True), (PHONE, False)):
                opened(b, f"#/jobs/{job}", size, dark=dark)
                shows(b, f"{why} pre", "boom")
                nothing_serious(b)
                no_wider_than_the_window(b, f"#/jobs/{job}")
            b.click("button", "Run again…")
            b.run("await page.locator('dialog[open]').waitFor()")
            nothing_serious(b)
            b.press("Escape")
            assert [each["id"] for each in client.history()] == [job] and not client.live(), "Escape means no"
            b.click("button", "Run again…")
            b.run("await page.getByLabel('Environment').fill('LR=0.5')")
            b.click("button", "Hand it in again")
            b.run(f"await page.waitForURL('**#/jobs/{job + 1}')")
            shows(b, f"{why} pre", "boom 0.5")
            first, second = client.job(job), client.job(job + 1)
            assert all(first[field] == second[field] for field in ("command", "cwd", "name", "gpus")), (first, second)
        with browser_kit.tab(page.address, page.address + "v1/version", page.token()) as b:
            opened(b, f"#/jobs/{job}")
            shows(b, why, "exit 127")
            assert b.run("return await page.getByRole('button', {name: 'Run again…'}).count()") == 0, "it may look only"


def what_is_anothers_is_not_offered():
    """No link and no question that takt would refuse."""
    with browser_kit.page_of(gpus=2) as page:
        if not page.is_alices:
            raise kit.Skip("only root can be another user")
        root = page.m.client()
        failed, running = fails(root, "echo secret; exit 1"), runs(root, sleeps(root))
        with browser_kit.browser(page) as b:
            opened(b, "#/overview")
            b.run("page.on('response', one => one.status() >= 400 && said.push(`${one.status()} ${one.url()}`))")
            for job in (failed, running):
                for place in (f"#/jobs/{job}", f"#/jobs/{job}?tab=metrics"):
                    b.go(place)
                    b.run("await page.getByRole('button', {name: 'Metrics'}).waitFor()")
                    for name in ("Log", "Run again…", "Cancel…"):
                        assert b.run(f"return await page.getByRole('button', {{name: {name!r}}}).count()") == 0, (place, name)
            b.go(f"#/jobs/{failed}?tab=log")
            b.see("Its output is for its owner alone")
            assert b.run("return said") == []
            assert not [path for path in b.run("return asked") if "/log" in path]


def an_administrator_acts_on_everybodys_jobs():
    with browser_kit.page_of(gpus=1, group=browser_kit.GROUP + "takt-admin:x:9999:alice\n") as page:
        if not page.is_alices:
            raise kit.Skip("only root can be another user")
        root = page.m.client()
        job = runs(root, sleeps(root))
        with browser_kit.browser(page) as b:
            opened(b, f"#/jobs/{job}")
            b.click("button", "Cancel…")
            b.click("button", "Cancel the job")
            assert root.wait(job)["state"] == "cancelled"
            b.see("cancelled")
            assert b.run("return await page.getByRole('button', {name: 'Run again…'}).count()") == 0, "it would run as the administrator"


def memory_and_time_have_the_units_that_people_use():
    with browser_kit.page_of(gpus=1) as page:
        client = page.client()
        job = runs(client, client.submit(page.m.load_argv("--profile", "gemm", "--seconds", "3600", "--quiet"), gpus=1)["id"])
        with browser_kit.browser(page) as b:
            opened(b, f"#/jobs/{job}?tab=metrics")
            for title, unit in (("Utilisation", "%"), ("Power", "W"), ("SM clock", "MHz"), ("Memory", "GiB")):
                b.run(f"await page.locator('.plot[aria-label^=\"{title}. GPU 0: last\"]')"
                      f".and(page.locator('.plot[aria-label*=\" {unit}, from\"]')).waitFor()")


BARS = """return await page.locator('.timeline .bar').evaluateAll(all => all.map(one => {
    const box = one.querySelector('rect').getBoundingClientRect();
    return {label: one.getAttribute('aria-label'), top: box.top, bottom: box.bottom, left: box.left, right: box.right, is: one.getAttribute('class')};
}))"""


def bars_of(b, name, count):
    return [bar for bar in b.until(BARS, lambda bars: sum(f" {name}" in bar["label"] for bar in bars) == count) if f" {name}" in bar["label"]]


def who_shares_a_gpu_has_a_lane_each_and_colours_are_chosen():
    with browser_kit.page_of(gpus=2) as page:
        client = page.client()
        first = runs(client, sleeps(client, gpu_milli=250, name="quarter", tags="night,big"))
        runs(client, sleeps(client, gpu_milli=500, name="half", tags="day"))
        after = sleeps(client, gpus=2, name="both", tags="night")
        kit.until(lambda: client.job(after).get("starts_gpus"), lambda: client.job(after))
        user = client.job(first)["user"]
        with browser_kit.browser(page) as b:
            opened(b, "#/timeline")
            (quarter,), (half,) = bars_of(b, "quarter 0.25", 1), bars_of(b, "half 0.5", 1)
            assert quarter["bottom"] <= half["top"] or half["bottom"] <= quarter["top"], (quarter, half)
            assert "hue" not in quarter["is"]
            b.run("await page.getByLabel('Colour by').selectOption('tag')")
            b.until("return await page.locator('.toolbar .legend .key').allInnerTexts()", lambda names: names == ["day", "night"])
            (quarter,), (half,), both = bars_of(b, "quarter", 1), bars_of(b, "half", 1), bars_of(b, "both", 2)
            hue = lambda bar: [word for word in bar["is"].split() if word.startswith("hue-")]
            assert hue(quarter) == hue(both[0]) != hue(half), (quarter, half, both)
            nothing_serious(b)
            b.run("await page.getByLabel('Colour by').selectOption('user')")
            b.until("return await page.locator('.toolbar .legend .key').allInnerTexts()", lambda names: names == [user])
            assert "colour=user" in b.run("return page.url()")
            b.run("await page.locator('.bar', {hasText: 'quarter'}).first().click()")
            b.run(f"await page.locator('aside', {{hasText: /Next on its GPUs: {after} both on GPU [01] in [0-9]+ min/}}).waitFor()")
            for size, dark in ((DESK, True), (TABLET, False), (PHONE, False)):
                opened(b, "#/timeline?colour=tag", size, dark=dark)
                bars_of(b, "both", 2)
                nothing_serious(b)
                no_wider_than_the_window(b, "#/timeline")


# Of each bar of the timeline: how much lighter its words are than what they are written on, or darker.
CONTRAST = """return await page.locator('.bar.now').evaluateAll(all => all.map(one => {
    const light = colour => {
        const parts = colour.match(/[0-9.]+/g).slice(0, 3).map(part => part / 255).map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const [least, most] = ['rect', 'text'].map(part => light(getComputedStyle(one.querySelector(part)).fill)).sort((a, b) => a - b);
    return (most + 0.05) / (least + 0.05);
}))"""


def words_on_bars_can_be_read_in_every_colour():
    with browser_kit.page_of(gpus=1) as page:
        client = page.client()
        for i in range(8):
            runs(client, sleeps(client, gpu_milli=100, estimate_ms=3600000, tags=f"tag{i}"))
        with browser_kit.browser(page) as b:
            for dark in (False, True):
                for colour in ("state", "tag"):
                    opened(b, f"#/timeline?colour={colour}", dark=dark)
                    found = b.until(CONTRAST, lambda found: len(found) == 8)
                    assert min(found) >= 4.5, (dark, colour, found)
                assert len(set(b.run("return await page.locator('.bar.now rect').evaluateAll(all => all.map(one => getComputedStyle(one).fill))"))) == 8


def times_in_which_a_gpu_is_not_for_all_are_drawn():
    with browser_kit.page_of(gpus=4) as page:
        now_ms = page.m.client().ask("GET", "/v1/history?metric=power")["until_ms"]
        page.m.client().ask("POST", "/v1/gpus/reserve", {"gpus": [1], "user": str(os.getuid()), "from_ms": now_ms + 600_000,
                                                         "until_ms": now_ms + 1_800_000, "reason": "demo"})
        page.m.client().ask("POST", "/v1/gpus/drain", {"gpus": [2], "reason": "fan"})
        page.m.twin("fault", "3", "lost")
        with browser_kit.browser(page) as b:
            opened(b, "#/timeline")
            zones = b.until("return await page.locator('.zone').evaluateAll(all => all.map(one => one.getAttribute('aria-label')))",
                            lambda zones: len(zones) >= 3)
            for gpu, words in ((1, ("reserved for", "demo", " to ")), (2, ("drained: fan", "from")), (3, ("lost", "from"))):
                assert any(zone.startswith(f"GPU {gpu} ") and all(word in zone for word in words) for zone in zones), (gpu, zones)
            nothing_serious(b)


def an_arrays_limit_holds_in_what_is_foretold():
    with browser_kit.page_of(gpus=4) as page:
        client = page.client()
        array = sleeps(client, name="sweep", array_first=0, array_last=3, array_limit=1)
        kit.until(lambda: all(client.job(array + i).get("starts_gpus") for i in (1, 2, 3)), "their starts are foretold")
        with browser_kit.browser(page) as b:
            opened(b, "#/timeline")
            bars = sorted(bars_of(b, "sweep[", 4), key=lambda bar: bar["left"])
            for one, next_one in zip(bars, bars[1:]):
                assert one["right"] <= next_one["left"] + 1, (one, next_one)


def colours_follow_the_system_until_they_are_chosen():
    ground = "return await page.evaluate(() => getComputedStyle(document.body).backgroundColor)"
    with browser_kit.page_of(gpus=1) as page:
        with browser_kit.browser(page) as b:
            opened(b, "#/overview", dark=True)
            dark = b.run(ground)
            b.run("await page.emulateMedia({colorScheme: 'light'})")
            light = b.until(ground, lambda now: now != dark)
            b.click("button", "dark colours")
            b.until(ground, lambda now: now == dark)
            b.run("await page.emulateMedia({colorScheme: 'dark'}); await page.emulateMedia({colorScheme: 'light'})")
            b.go("#/jobs")
            assert b.run(ground) == dark != light, "what was chosen stays"


def axes_of_clocks_have_their_labels_and_tables_scroll():
    with browser_kit.page_of(gpus=2) as page:
        runs(page.client(), sleeps(page.client()))
        with browser_kit.browser(page) as b:
            for size in (DESK, TABLET, PHONE):
                opened(b, "#/clocks?gpu=0", size)
                b.run("await page.locator('.curve .mhz').nth(2).waitFor()")
                marks = b.run("""return await page.locator('.curve .mhz').evaluateAll(all => all.map(one => {
                    const line = one.querySelector('line').getBoundingClientRect(), text = one.querySelector('text').getBoundingClientRect();
                    return [one.textContent.trim(), line.x, text.left, text.right];
                }))""")
                for text, x, left, right in marks:
                    assert text.endswith(" MHz") and abs((left + right) / 2 - x) < 2 and 0 <= left and right <= size[0], (size, marks)
                for (*_, right), (_, _, left, _) in zip(marks, marks[1:]):
                    assert right < left, ("labels touch", size, marks)
                watts = b.run("return await page.locator('.curve text[text-anchor=end].time').allTextContents()")
                assert len(watts) == 3 and all(text.strip().endswith(" W") for text in watts), watts
                no_wider_than_the_window(b, "#/clocks")
                nothing_serious(b)
            moved = b.run("""return await page.getByRole('region', {name: 'clocks of the GPUs'}).evaluate(one => {
                one.scrollLeft = 10000;
                return [one.scrollLeft, one.querySelector('thead th:last-child').getBoundingClientRect().right, innerWidth];
            })""")
            assert moved[0] > 0 and moved[1] <= moved[2], ("its last column is within reach on a phone", moved)


if __name__ == "__main__":
    sys.exit(kit.main([
        simulated_is_said_on_every_view_at_every_width,
        the_overview_answers_before_it_shows_the_machine,
        what_is_broken_stands_out,
        many_gpus_fit_their_cards,
        graphs_are_filled_from_history_at_once,
        a_price_is_said_where_energy_is,
        ones_own_jobs_come_first_and_what_runs_apart,
        arrays_are_one_line_and_shares_say_so,
        ones_own_jobs_are_found_behind_many,
        a_failed_job_says_why_and_is_run_again,
        what_is_anothers_is_not_offered,
        an_administrator_acts_on_everybodys_jobs,
        memory_and_time_have_the_units_that_people_use,
        who_shares_a_gpu_has_a_lane_each_and_colours_are_chosen,
        words_on_bars_can_be_read_in_every_colour,
        times_in_which_a_gpu_is_not_for_all_are_drawn,
        an_arrays_limit_holds_in_what_is_foretold,
        colours_follow_the_system_until_they_are_chosen,
        axes_of_clocks_have_their_labels_and_tables_scroll,
    ]))
