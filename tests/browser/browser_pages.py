#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt's page in a real browser: every place, what changes under one's eyes, what goes wrong, and for whom it has
to work: on a phone, with the keyboard alone, with a screen reader.

Usage: browser_pages.py BUILD_FOLDER
"""
import os
import subprocess
import sys
import tempfile

import browser_kit
from browser_kit import kit

PLACES = ["#/overview", "#/jobs", "#/jobs?show=ended", "#/timeline", "#/reservations", "#/topology", "#/clocks", "#/health", "#/submit"]


def some_jobs(page):
    """One that ended, one that runs, prints and tells of its ranks, one that is planned, one that is held and names GPUs."""
    client = page.client()
    first = client.submit(["sh", "-c", "echo hello from the job"], gpus=1, name="first")["id"]
    client.wait(first)
    tell = f"for i in 0 1; do LOCAL_RANK=$i {page.m.path('bin/takt')} progress --steps 7 --latency $((20 + 5 * i))ms; done"
    runs = client.submit(["sh", "-c", f"echo epoch 1; {tell}; sleep 600"], gpus=2, name="train", estimate_ms=600000)["id"]
    kit.until(lambda: client.job(runs).get("progress", {}).get("skew_permille"), lambda: client.job(runs))
    waits = client.submit(["sleep", "60"], gpus=2, name="evaluate", estimate_ms=60000)["id"]
    held = client.submit(["true"], gpus=1, name="later", held=True, gpu_indices=[0, 1])["id"]
    kit.until(lambda: client.job(waits).get("starts_ms"), "its start is predicted")
    return first, runs, waits, held


def the_page_is_what_its_source_makes():
    browser_kit.need("node")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["node", os.path.join(browser_kit.WEB, "build.mjs"), folder], check=True, capture_output=True)
        for name in ("index.html", "report.html"):
            with open(os.path.join(folder, name), "rb") as a, open(os.path.join(browser_kit.WEB, "dist", name), "rb") as b:
                assert a.read() == b.read(), f"web/dist/{name} is old: npm run build in web/"


def it_signs_in_with_a_token_and_is_told_what_changes():
    """Without one there is nothing to see; with one the page listens, and does not ask again and again."""
    with browser_kit.page_of(gpus=1) as page:
        with browser_kit.browser(page) as b:
            b.fresh()
            b.run(f"await page.goto({page.address!r}); await page.getByLabel('Token').fill('takt_000000000000_' + '0'.repeat(64))")
            b.click("button", "Sign in")
            b.run("await page.getByRole('alert').waitFor()")
            b.run(f"await page.getByLabel('Token').fill({page.token()!r})")
            b.click("button", "Sign in")
            b.run("await page.locator('.link.live').waitFor()")
            b.see("H100 80GB HBM3")
            job = page.client().submit(["sleep", "600"], gpus=1, name="appears")["id"]
            b.see("appears")
            asked = b.run("return asked")
            assert "/v1/stream?of=status,jobs,clocks,health" in asked, asked
            assert not [path for path in asked if path.startswith(("/v1/status", "/v1/jobs")) and "history=1" not in path], asked
            assert sum("history=1" in path for path in asked) <= 2, ("what has ended is asked for once, and when that changes", asked)
            b.go(f"#/jobs/{job}")
            b.see("sleep 600")
            assert b.run("return await page.getByRole('button', {name: 'Cancel…'}).count()") == 0, "it may look only"
            b.click("button", "sign out")
            b.run("await page.getByLabel('Token').waitFor()")


def what_the_policy_does_not_name_does_not_run():
    """The policy that takt sends, with all of the page's places open under it before."""
    with browser_kit.page_of(gpus=1) as page:
        with browser_kit.browser(page) as b:
            b.open()
            for place in PLACES:
                b.go(place)
            assert b.run("return said") == []
            for planted in ("const it = document.createElement('script'); it.textContent = 'window.ran = 1'; document.body.append(it)",
                            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')",
                            "document.body.insertAdjacentHTML('beforeend', '<style>body { display: none }</style>')",
                            "fetch('http://127.0.0.2:9/').catch(() => 0)"):
                b.run(f"said.length = 0; await page.evaluate({planted!r} + '; 0')")
                kit.until(lambda: b.run("return said"), f"the browser says that it has refused: {planted}")
            assert b.run("return await page.evaluate('window.ran ?? 0')") == 0
            assert b.run("return await page.locator('h1').first().isVisible()")


def every_place_shows_what_there_is():
    with browser_kit.page_of(gpus=2) as page:
        first, runs, waits, held = some_jobs(page)
        with browser_kit.browser(page) as b:
            b.open("#/overview")
            b.see("2 of 2")
            b.see("train")
            b.click("link", "Jobs")
            b.see("later")
            assert b.run("return await page.locator('table.jobs tbody tr').count()") == 3
            b.see("1 of GPU 0-1 wanted")
            b.click("button", "Ended")
            b.see("exit 0")
            b.go("#/timeline")
            # where it will run is known: a row a GPU
            bars = b.until("return await page.locator('.bar').evaluateAll(all => all.map(one => one.getAttribute('aria-label')))",
                           lambda bars: [sum(what in bar for bar in bars) for what in
                                         (f"job {runs} train, running", f"job {waits} evaluate, waiting")] == [2, 2])
            assert not any(f"job {held} " in bar for bar in bars), bars
            b.run("await page.locator('.bar.next').first().click()")
            b.see("Predicted to start")
            b.see("on GPU 0-1")
            b.go("#/topology")
            b.see("NUMA node 0")
            b.go("#/clocks")
            b.see("Power and performance at each clock")
            b.run(f"await page.locator('.apart', {{hasText: /Job {runs} runs on GPU 0-1: their mean clocks are [0-9]+ MHz apart/}}).waitFor()")
            b.go("#/health")
            b.see("2 of 2 healthy")
            b.go(f"#/jobs/{runs}")
            b.see("of 2 ranks, rank 1 is the slowest, 20 % behind")
            b.run("await page.locator('.figure', {hasText: /its GPUs [0-9]+ MHz apart/}).waitFor();"
                  "await page.locator('.terms div', {hasText: 'given'}).getByText('GPU 0-1').waitFor()")
            b.go(f"#/jobs/{held}")
            b.see("1 of GPU 0-1")
            b.go(f"#/jobs/{runs}?tab=log")
            b.see("epoch 1")
            b.go(f"#/jobs/{first}?tab=log")
            b.see("hello from the job")
            b.see("complete")
            b.go(f"#/jobs/{runs}?tab=metrics")
            b.run("await page.waitForFunction(() => document.querySelectorAll('.uplot canvas').length === 4)")
            assert b.run("return said") == []


HISTORY = """
await page.route('**/v1/history*', route => {
    const from_ms = Number(new URL(route.request().url()).searchParams.get('since_ms'));
    const points = [];
    for (let s = 0; s < 600; s += 10) if (s < 60 || s >= 300) points.push([from_ms + s * 1000, s, s + 1, s + 2]);
    route.fulfill({json: {unit: 'W', step_ms: 10000, from_ms, until_ms: from_ms + 600000, points}});
});"""
CAPTIONS = "return await page.locator('.chart figcaption').evaluateAll(all => all.map(one => one.innerText.replace(/\\s+/g, ' ').trim()))"


# takt's answer, but for GPU 1, which is as one that is left asleep; without the stream the page asks.
ASLEEP = """
await page.route('**/v1/stream*', route => route.fulfill({status: 404, json: {}}));
await page.route('**/v1/status', async route => {
    try {
        const json = await (await route.fetch()).json();
        const {index, state} = json.gpus[1];
        json.gpus[1] = {index, state, health: 'healthy', stale: false, lost: false, asleep: true};
        await route.fulfill({json});
    } catch {
        await route.abort().catch(() => {}); // the page asks again
    }
});"""


def hover(b, part):
    """At this part of the first chart's axis."""
    b.run(f"""const box = await page.locator('.chart .u-over').first().boundingBox();
        await page.mouse.move(box.x + box.width * {part}, box.y + box.height / 2)""")


def metrics_are_of_the_jobs_own_time():
    with browser_kit.page_of(gpus=2) as page:
        with browser_kit.browser(page) as b:
            b.open("#/jobs")
            client = page.client()
            gate = page.m.path("gate")
            job = client.submit(["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done"], gpus=2, name="short")["id"]
            started_ms = kit.until(lambda: client.job(job).get("started_ms"), "it runs")
            for gpu in (0, 1):
                kit.until(lambda: client.ask("GET", f"/v1/history?gpu={gpu}&metric=power&since_ms={started_ms}&step=raw")["points"],
                          f"GPU {gpu} is measured meanwhile")
            open(gate, "w", encoding="ascii").close()
            view = client.wait(job)
            b.go(f"#/jobs/{job}?tab=metrics")
            b.run("await page.locator('.uplot canvas').nth(3).waitFor()")
            asked = {path for path in b.run("return asked") if path.startswith("/v1/history") and "since_ms" in path}
            assert asked == {f"/v1/history?gpu={gpu}&metric={metric}&since_ms={view['started_ms']}&until_ms={view['ended_ms']}&step=raw"
                             for gpu in view["gpu_list"] for metric in ("utilization", "power", "sm_clock", "memory")}, asked
            b.run("await page.locator('.plot[aria-label^=\"Power. GPU 0: last\"]').waitFor()")


def a_moment_of_a_job_is_the_same_in_all_charts():
    """And where nothing was measured nothing is shown."""
    with browser_kit.page_of(gpus=2) as page:
        client = page.client()
        job = client.submit(["sleep", "600"], gpus=2)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", "it runs")
        with browser_kit.browser(page) as b:
            b.open()
            b.run(HISTORY)
            b.go(f"#/jobs/{job}?tab=metrics")
            b.run("await page.locator('.plot[aria-label*=\"GPU 1: last 591 W, from 1 to 591\"]').nth(3).waitFor()")
            for part, what in ((0.75, " at 7 min 30 s, W GPU 0 451 GPU 1 451"), (0.3, " at 2 min 55 s, W GPU 0 – GPU 1 –")):
                hover(b, part)
                b.until(CAPTIONS, lambda seen: seen == [title + what for title in ("Utilisation", "Power", "SM clock", "Memory")])


def a_job_is_handed_in_and_followed_to_its_end():
    with browser_kit.page_of(gpus=1) as page:
        client = page.client()
        with browser_kit.browser(page) as b:
            b.open("#/submit")
            gate = page.m.path("gate")
            b.run("await page.getByLabel('Command').fill(" + repr(f"echo begun; while [ ! -e {gate} ]; do sleep 0.1; done; exit 3") + ")")
            b.run("await page.getByLabel('Directory').fill('/')")
            b.run("await page.getByLabel('Name', {exact: true}).fill('by-hand')")
            b.see("Would start now on GPU 0.")
            b.click("button", "Submit")
            b.run("await page.locator('h1 .state.busy', {hasText: 'running'}).waitFor()")
            job = client.live()[0]
            assert job["name"] == "by-hand", job
            with open(gate, "w", encoding="ascii"):
                pass
            b.run("await page.locator('h1 .state.grave', {hasText: 'failed'}).waitFor()")
            b.see("exit 3")


def what_is_asked_for_wrongly_is_said():
    with browser_kit.page_of(gpus=1) as page:
        with browser_kit.browser(page) as b:
            b.open("#/submit")
            b.run("await page.getByLabel('Command').fill('true'); await page.getByLabel('Directory').fill('/');"
                  "await page.getByLabel('GPUs').fill('9')")
            b.run("await page.locator('.trial.bad', {hasText: '9 GPUs'}).waitFor()")
            b.run("await page.goto(page.url().split('#')[0] + '#/jobs/4711')")
            b.see("There is no job 4711")


def a_job_is_held_released_and_cancelled():
    with browser_kit.page_of(gpus=1) as page:
        client = page.client()
        client.submit(["sleep", "600"], gpus=1)
        job = client.submit(["sleep", "600"], gpus=1, name="behind")["id"]
        with browser_kit.browser(page) as b:
            b.open(f"#/jobs/{job}")
            b.click("button", "Hold")
            kit.until(lambda: client.job(job).get("held") == "owner", "it is held")
            b.click("button", "Release")
            kit.until(lambda: "held" not in client.job(job), "it is released")
            # That is so before it is on disk, and until then no other change is taken.
            b.run("await page.locator('.actions [role=status]', {hasText: 'released'}).waitFor({state: 'attached'})")
            b.run("await page.getByLabel('priority').fill('-5'); await page.keyboard.press('Tab')")
            kit.until(lambda: client.job(job)["priority"] == -5, "its priority is another")
            b.click("button", "Cancel…")
            b.run("await page.locator('dialog[open]').waitFor()")
            b.press("Escape")
            assert client.job(job)["state"] == "waiting", "Escape means no"
            b.click("button", "Cancel…")
            b.click("button", "Cancel the job")
            assert client.wait(job)["state"] == "cancelled"
            b.see("cancelled")


def a_running_job_is_ended_and_begins_anew():
    with browser_kit.page_of(gpus=1) as page:
        client = page.client()
        job = client.submit(["sleep", "600"], gpus=1, name="again")["id"]
        kit.until(lambda: client.job(job)["state"] == "running", "it runs")
        waits = client.submit(["sleep", "600"], gpus=1)["id"]
        with browser_kit.browser(page) as b:
            b.open(f"#/jobs/{waits}")
            b.run("await page.getByRole('button', {name: 'Cancel…'}).waitFor()")
            assert b.run("return await page.getByRole('button', {name: 'Requeue…'}).count()") == 0, "it has not begun yet"
            b.go(f"#/jobs/{job}")
            b.click("button", "Requeue…")
            b.see("begins anew")
            b.press("Escape")
            assert client.job(job)["attempt"] == 1, "Escape means no"
            b.click("button", "Requeue…")
            b.click("button", "Requeue the job")
            kit.until(lambda: client.job(job)["attempt"] == 2 and client.job(job)["state"] == "running",
                      "it runs anew")
            assert client.job(waits)["state"] == "waiting", "it kept its place"


def a_fault_of_a_gpu_appears():
    with browser_kit.page_of(gpus=2) as page:
        with browser_kit.browser(page) as b:
            b.open("#/overview")
            assert b.run("return await page.locator('.card .state.grave').count()") == 0
            page.m.twin("fault", "1", "lost")
            b.run("await page.locator('.card .state.grave').waitFor()")
            b.click("link", "What to do")
            b.run("await page.locator('section[aria-label=\"GPU 1\"] .state.grave').first().waitFor()")


def a_gpu_that_is_left_asleep_is_said_to_be():
    with browser_kit.page_of(gpus=2) as page:
        with browser_kit.browser(page) as b:
            b.fresh(token=b.token)
            b.run(ASLEEP)
            b.go("#/overview")
            b.run("await page.locator('.card', {hasText: /GPU 1.*asleep.*suspended to save power/s}).waitFor()")
            b.see("mean of those awake")
            assert b.run("return await page.locator('.card', {hasText: 'asleep'}).count()") == 1
            b.go("#/topology")
            b.run("await page.locator('svg g', {hasText: /GPU 1 *asleep/}).first().waitFor()")


def errors_of_switches_are_listed():
    with tempfile.NamedTemporaryFile("w", suffix=".log", encoding="utf-8") as log:
        with browser_kit.page_of("--kernel-log", log.name, gpus=1) as page:
            with browser_kit.browser(page) as b:
                b.open("#/health")
                b.see("1 of 1 healthy")
                assert b.run("return await page.getByText('NVSwitches').count()") == 0
                log.write("nvidia-nvswitch0: SXid (PCI:0000:c5:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
                          "nvidia-nvswitch1: SXid (PCI:0000:c6:00.0): 12028, Non-fatal, Link 7 egress non-posted PRIV error\n")
                log.flush()
                b.run("await page.locator('section[aria-label=NVSwitches] .state.grave', {hasText: 'fatal'}).waitFor()")
                rows = b.until("return await page.locator('section[aria-label=NVSwitches] li').allInnerTexts()",
                               lambda rows: len(rows) == 2)
                assert "SXid 20034 0000:c5:00, link 30: 1 time, last" in rows[1], rows
                assert "non-fatal SXid 12028 0000:c6:00, link 7:" in rows[0], rows
                b.see("1 of 1 healthy")
                assert not b.run("return await axe()")


def nothing_serious(b):
    found = b.run("return await axe()")
    assert not found, found


def what_a_governor_decides_is_shown():
    """Beside what the job says of its steps: on the page of clocks and on the job's."""
    with browser_kit.page_of("--clock-epoch", "500ms", gpus=1) as page:
        client = page.client()
        load = " ".join(page.m.load_argv("--profile", "stream", "--seconds", "3600", "--quiet"))
        takt = page.m.path("bin/takt")
        job = client.submit(["sh", "-c", f"{load} & while :; do {takt} progress --steps 3; sleep 0.2; done"],
                            gpus=1, name="trains", max_slowdown_permille=50)["id"]
        course = f"/v1/jobs/{job}/course"
        kit.until(lambda: len({each["max_mhz"] for each in client.ask("GET", course)["decisions"]
                               if "work_milli_s" in each and each["epochs"]}) > 1, lambda: client.ask("GET", course), seconds=240)
        with browser_kit.browser(page) as b:
            b.open("#/clocks?gpu=0")
            b.run("await page.locator('.decisions tbody tr').nth(1).waitFor(); await page.locator('.curve .work-dot').nth(1).waitFor();"
                  "await page.locator('.curve .here').waitFor()")
            b.see("measures the highest clock")
            b.see("by the job's own count")
            b.run("await page.locator('.slider input').focus()")
            b.press("End")
            b.run("await page.locator('.curve p', {hasText: /Its job then did [0-9.]+ % of the most work a second/}).waitFor()")
            nothing_serious(b)
            b.run(f"await page.locator('main a[href=\"#/jobs/{job}?tab=clocks\"]').click()")
            b.run("await page.locator('h1', {hasText: 'trains'}).waitFor(); await page.locator('.decisions tbody tr').nth(1).waitFor()")
            b.go(f"#/jobs/{job}?tab=metrics")
            b.run("await page.locator('.plot[aria-label^=\"Steps a second. steps: last\"]').waitFor();"
                  "await page.locator('.plot[aria-label^=\"SM clock. GPU 0: last\"][aria-label*=\"ceiling: last\"]').waitFor()")
            b.click("button", "over steps")
            b.see("Over its steps, from its first word of them")
            b.run("await page.locator('.plot[aria-label^=\"Power. GPU 0: last\"]').waitFor();"
                  "const box = await page.locator('.chart .u-over').first().boundingBox();"
                  "await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2);"
                  "await page.locator('.chart figcaption', {hasText: / at [0-9,]+ steps/}).nth(3).waitFor()")
            nothing_serious(b)
            for place in ("#/clocks?gpu=0", f"#/jobs/{job}?tab=metrics&over=work", f"#/jobs/{job}?tab=clocks"):
                b.open(place, width=360, height=740)
                b.run("await page.locator('.chart .uplot').first().waitFor()")
                wide = b.run("return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)")
                assert wide <= 0, f"{place} is {wide} px wider than a phone"
            client.cancel(job)
            client.wait(job)
            b.open("#/clocks?gpu=0")
            b.see("which is over")
            b.run("await page.locator('.decisions tbody tr').nth(1).waitFor()")
            assert b.run("return said") == []


def what_goes_over_links_is_shown():
    with browser_kit.page_of(gpus=4) as page:
        client = page.client()
        load = page.m.load_argv("--profile", "gpt-train", "--gpus", "0,1,2,3", "--seconds", "3600", "--quiet")
        client.submit(load, gpus=4)
        kit.until(lambda: all(gpu.get("nvlink_sent_bytes_per_s") and gpu.get("nvlink_received_bytes_per_s")
                              for gpu in client.ask("GET", "/v1/status")["gpus"]), "NVLinks carry something")
        with browser_kit.browser(page) as b:
            b.open("#/topology")
            b.run("await page.locator('.machine text', {hasText: /^NVL [0-9.,]+ [kMG]B.s$/}).nth(1).waitFor();"
                  "await page.locator('.machine .nvlink.flow2, .machine .nvlink.flow3, .machine .nvlink.flow4').first().waitFor({state: 'attached'});"
                  "await page.getByRole('region', {name: 'traffic of'}).locator('tbody tr').nth(1).waitFor()")
            nothing_serious(b)


def of_links_that_say_nothing_nothing_is_shown():
    with browser_kit.page_of(board="t4-4", gpus=2) as page:
        assert not any("nvlink_sent_bytes_per_s" in gpu or "pcie_sent_bytes_per_s" in gpu
                       for gpu in page.client().ask("GET", "/v1/status")["gpus"])
        with browser_kit.browser(page) as b:
            b.open("#/topology")
            b.see("No GPU here says what goes over its links.")
            assert b.run("return await page.locator('.machine text', {hasText: 'B/s'}).count()") == 0


def a_link_asks_before_it_replaces_who_is_signed_in():
    """Also where it is what the page is opened with; Escape means no."""
    with browser_kit.page_of(gpus=1) as page:
        mine, other = page.token("--write"), page.token()
        kept = "return await page.evaluate('sessionStorage.getItem(\"takt-token\")')"
        with browser_kit.browser(page) as b:
            b.fresh()
            link = f"await page.goto({page.address!r} + '?' + Math.random() + '#token=' + {{}}); await page.locator('.link.live').waitFor()"
            b.run(link.format(repr(mine)))  # nobody is signed in: it is taken
            assert b.run("return await page.locator('dialog[open]').count()") == 0 and b.run(kept) == mine
            b.run(link.format(repr(other)) + "; await page.locator('dialog[open]').waitFor()")
            assert b.run("return await page.evaluate('location.hash')") == "", "it does not stand in the address"
            nothing_serious(b)
            b.press("Escape")
            b.run("await page.locator('dialog[open]').waitFor({state: 'detached'})")
            assert b.run(kept) == mine
            b.run(link.format(repr(other)) + "; await page.locator('dialog[open]').waitFor()")
            b.press("Tab", "Enter")
            b.run("await page.locator('button[title=\"may look only\"]').waitFor()")
            assert b.run(kept) == other
            b.run(link.format(repr(other)))
            assert b.run("return await page.locator('dialog[open]').count()") == 0, "it is signed in already"


def a_pasted_link_signs_in_where_the_page_is():
    """Without loading it again: before somebody has signed in, and, when that is wanted, as somebody else."""
    with browser_kit.page_of(gpus=1) as page:
        looks, acts = page.token(), page.token("--write")
        job = page.client().submit(["sleep", "600"], gpus=1, name="stays")["id"]
        with browser_kit.browser(page) as b:
            b.fresh()
            b.run(f"await page.goto({page.address + f'#/jobs/{job}'!r}); await page.getByLabel('Token').waitFor();"
                  "await page.evaluate('window.same = 1')")
            def sign_in_as_its_account():
                b.run("await page.locator('dialog[open]').waitFor()")
                b.click("button", "Sign in as its account")
            for asks, (token, buttons) in enumerate(((looks, 0), (acts, 1), (looks, 0))):
                b.run(f"await page.goto({page.address + '#token=' + token!r})")
                if asks:
                    sign_in_as_its_account()
                b.run("await page.locator('.link.live').waitFor(); await page.locator('h1', {hasText: 'stays'}).waitFor()")
                b.run(f"await page.waitForFunction(n => [...document.querySelectorAll('button')].filter(one => one.textContent === 'Cancel…').length === n, {buttons})")
                assert b.run("return await page.evaluate('[location.hash, window.same]')") == [f"#/jobs/{job}", 1]
            b.run(f"await page.goto({page.address + '#token=takt_0'!r})")
            sign_in_as_its_account()
            b.run("await page.getByRole('alert').waitFor()")
            assert b.run("return await page.getByText('stays').count()") == 0, "what one has seen is not the next one's"


def a_lost_connection_is_said_and_comes_back():
    with browser_kit.page_of(gpus=1) as page:
        with browser_kit.browser(page) as b:
            b.open("#/overview")
            page.m.kill()
            b.see("takt does not answer.")
            b.see("H100 80GB HBM3")  # what was known stays
            page.m.start()
            b.run("await page.locator('.link.live').waitFor(); await page.locator('.lost').waitFor({state: 'detached'})")


def text_of_others_is_text():
    """Names that want to be markup are shown as they are."""
    with browser_kit.page_of(gpus=1) as page:
        client = page.client()
        job = client.submit(["sh", "-c", "echo '<img src=x onerror=alert(1)><script>alert(2)</script>'"], gpus=0)["id"]
        client.wait(job)
        with browser_kit.browser(page) as b:
            b.open(f"#/jobs/{job}?tab=log")
            b.see("<img src=x onerror=alert(1)>")
            b.go(f"#/jobs/{job}")
            b.see("<script>alert(2)</script>")
            assert b.run("return await page.locator('main img, main script').count()") == 0
            assert b.run("return said") == []


def nothing_serious_stands_in_anybodys_way():
    with browser_kit.page_of(gpus=2) as page:
        _, runs, _, _ = some_jobs(page)
        with browser_kit.browser(page) as b:
            for dark in (False, True):
                b.open(dark=dark)
                for place in [*PLACES, f"#/jobs/{runs}", f"#/jobs/{runs}?tab=metrics", f"#/jobs/{runs}?tab=log"]:
                    b.go(place)
                    found = b.run("return await axe()")
                    assert not found, (place, "dark" if dark else "light", found)


def it_fits_a_phone():
    with browser_kit.page_of(gpus=2) as page:
        _, runs, _, _ = some_jobs(page)
        with browser_kit.browser(page) as b:
            b.open(width=360, height=740)
            for place in [*PLACES, f"#/jobs/{runs}", f"#/jobs/{runs}?tab=metrics"]:
                b.go(place)
                wide = b.run("return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)")
                assert wide <= 0, f"{place} is {wide} px wider than a phone"


def the_keyboard_is_enough():
    with browser_kit.page_of(gpus=2) as page:
        client = page.client()
        _, runs, _, _ = some_jobs(page)
        with browser_kit.browser(page) as b:
            b.open()
            b.press("t")
            b.see("Timeline")
            b.run("await page.locator('.timeline').focus()")
            before = b.run("return await page.locator('.bar.now rect').first().getAttribute('x')")
            b.press("ArrowRight")
            b.run("await page.waitForFunction(before => document.querySelector('.bar.now rect')?.getAttribute('x') !== before, "
                  f"{before!r})")
            b.press("j", "/")
            b.run("await page.waitForFunction(() => document.activeElement?.id === 'find')")
            b.run("await page.keyboard.type('train'); await page.waitForFunction(() => document.querySelectorAll('table.jobs tbody tr').length === 1)")
            b.run("await page.locator('table.jobs a').focus()")
            b.press("Enter")
            b.run("await page.locator('h1', {hasText: 'train'}).waitFor(); await page.getByRole('button', {name: 'Cancel…'}).focus()")
            b.press("Enter")
            b.run("await page.locator('dialog[open]').waitFor()")
            b.press("Tab", "Enter")
            assert client.wait(runs)["state"] == "cancelled"


# What has moved so far, and how often takt's stream has said something.
LOOK_FOR_JUMPS = """
await page.addInitScript(() => {
    globalThis.moved = 0;
    new PerformanceObserver(list => list.getEntries().forEach(one => { if (!one.hadRecentInput) globalThis.moved += one.value; }))
        .observe({type: 'layout-shift', buffered: true});
});
const wire = await context.newCDPSession(page), streams = new Set();
await wire.send('Network.enable');
globalThis.heard = 0;
wire.on('Network.requestWillBeSent', one => { if (one.request.url.includes('/v1/stream')) streams.add(one.requestId); });
wire.on('Network.dataReceived', one => { if (streams.has(one.requestId)) globalThis.heard++; });"""
FRAMES = "requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(() => setTimeout(done))))"


def nothing_jumps():
    """No layout shift worth the name while takt's answers come in."""
    with browser_kit.page_of(gpus=2) as page:
        some_jobs(page)
        with browser_kit.browser(page) as b:
            b.run(LOOK_FOR_JUMPS)
            for place in PLACES:
                b.open(place)
                heard = b.run("return globalThis.heard")
                b.until("return globalThis.heard", lambda now: now >= heard + 2)
                moved = b.run(f"return await page.evaluate(() => new Promise(done => {FRAMES}).then(() => globalThis.moved))")
                assert moved < 0.1, f"{place}: a layout shift of {moved}"


def an_empty_machine_is_not_a_blank_page():
    with browser_kit.page_of(gpus=1) as page:
        with browser_kit.browser(page) as b:
            b.open("#/jobs")
            b.see("The queue is empty")
            b.click("button", "Ended")
            b.see("Nothing has ended yet")
            b.go("#/timeline")
            b.see("Nothing runs and nothing waits")


if __name__ == "__main__":
    sys.exit(kit.main([
        the_page_is_what_its_source_makes,
        it_signs_in_with_a_token_and_is_told_what_changes,
        what_the_policy_does_not_name_does_not_run,
        every_place_shows_what_there_is,
        metrics_are_of_the_jobs_own_time,
        a_moment_of_a_job_is_the_same_in_all_charts,
        a_job_is_handed_in_and_followed_to_its_end,
        what_is_asked_for_wrongly_is_said,
        a_job_is_held_released_and_cancelled,
        a_running_job_is_ended_and_begins_anew,
        a_fault_of_a_gpu_appears,
        a_gpu_that_is_left_asleep_is_said_to_be,
        errors_of_switches_are_listed,
        what_a_governor_decides_is_shown,
        what_goes_over_links_is_shown,
        of_links_that_say_nothing_nothing_is_shown,
        a_link_asks_before_it_replaces_who_is_signed_in,
        a_pasted_link_signs_in_where_the_page_is,
        a_lost_connection_is_said_and_comes_back,
        text_of_others_is_text,
        nothing_serious_stands_in_anybodys_way,
        it_fits_a_phone,
        the_keyboard_is_enough,
        nothing_jumps,
        an_empty_machine_is_not_a_blank_page,
    ]))
