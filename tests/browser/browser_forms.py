#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is asked for on the page: by a link that signs in, in the calendar of reservations, in the form for a job.

Usage: browser_forms.py BUILD_FOLDER
"""
import contextlib
import json
import re
import sys
import time

import browser_kit
from browser_kit import BOB, kit, users

HOUR_MS = 3600 * 1000
ADMINS = 4999
RULES = "[user *]\nreserve_gpu_hours = 6\nreserve_longest = 4h\n"


def nothing_serious(b):
    found = b.run("return await axe()")
    assert not found, found


def fits(b):
    wide = b.run("return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)")
    assert wide <= 0, f"{wide} px wider than the window"


@contextlib.contextmanager
def lab(rules=RULES, **machine):
    """A Page of alice, of whom bob is the administrator, with these rules."""
    with browser_kit.page_of(group=browser_kit.GROUP + f"takt-admin:x:{ADMINS}:bob\n", **machine) as page:
        if not page.is_alices:
            raise kit.Skip("of two users, one must be another: needs root")
        with open(page.m.path("tenants.conf"), "w", encoding="ascii") as file:
            file.write(rules)
        page.m.stop()
        page.m.more_flags = (*page.m.more_flags, "--tenants-file", page.m.path("tenants.conf"))
        page.m.start()
        yield page


def bobs_token(page):
    done = users.takt_as(page.m, BOB, "token", "add", "--write", groups=[ADMINS])
    assert done.returncode == 0, done
    return done.stdout.strip()


def reservations(page):
    return page.client().ask("GET", "/v1/gpus")["reservations"]


def takt_webs_link_signs_in_and_is_not_left_behind():
    with browser_kit.page_of(gpus=1) as page:
        link = json.loads(page.takt("web", "--json"))["link"]
        assert link.startswith(page.address + "#token="), link
        with browser_kit.browser(page) as b:
            b.fresh()
            b.run(f"await page.goto({link!r}); await page.locator('.link.live').waitFor()")
            b.see("H100 80GB HBM3")
            b.run("await page.locator('button[title=\"may act\"]').waitFor()")
            assert b.run("return page.url()") == page.address, "it stands in the address"
            places = b.run("const wire = await context.newCDPSession(page);"
                           "return (await wire.send('Page.getNavigationHistory')).entries.map(one => one.url)")
            assert page.address in places and not [place for place in places if "token=" in place], places
            asked = b.run("return asked")
            assert not [path for path in asked if "token" in path], "it was sent as an address"


def row_and_time(gpu, hours):
    """Where in the calendar a GPU's row is at so many hours from midnight: code that gives [x, y]."""
    return (f"await page.evaluate(([gpu, hours]) => {{ const rows = [...document.querySelectorAll('.calendar rect.row')];"
            " const box = rows[gpu].getBoundingClientRect();"
            " return [box.x + box.width * hours / 168, box.y + box.height / 2]; }, " + json.dumps([gpu, hours]) + ")")


def drag(b, gpu, first, to_gpu, last):
    b.run(f"const from = {row_and_time(gpu, first)}, to = {row_and_time(to_gpu, last)};"
          "await page.mouse.move(...from); await page.mouse.down(); await page.mouse.move(...to, {steps: 5}); await page.mouse.up()")


def a_time_is_marked_in_the_calendar_and_booked():
    with lab(gpus=3) as page:
        with browser_kit.browser(page) as b:
            b.open("#/reservations")
            b.see("6 GPU hours in any seven days ([user *])")
            drag(b, 1, 34.2, 2, 35.8)  # tomorrow, 10:00 to 12:00
            b.see("2 GPUs for 2 hours: 4 GPU hours. It would be granted at once.")
            b.run("await page.getByLabel('What for').fill('ablations')")
            nothing_serious(b)
            b.click("button", "Reserve")
            b.run("await page.locator('table.reservations tbody tr.chosen', {hasText: 'ablations'}).waitFor()")
            (made,) = reservations(page)
            hour = time.localtime(made["from_ms"] / 1000)
            assert made["gpus"] == [1, 2] and made["user"] == "alice" and made["state"] == "granted", made
            assert made["until_ms"] - made["from_ms"] == 2 * HOUR_MS and (hour.tm_hour, hour.tm_min) == (10, 0), made
            b.see("2 GPU hours")  # are left
            assert b.run("return await page.locator('.calendar a.bar.now').count()") == 2
            # What does not go is said while it is marked: the rule, or what is in the way.
            drag(b, 0, 58.2, 0, 60.8)
            b.run("await page.locator('.book .trial.bad', {hasText: '[user *] of tenants_file leaves 2 GPU hours'}).waitFor()")
            b.run(
                "await page.getByLabel('GPU 0', {exact: true}).uncheck(); await page.getByLabel('GPU 1', {exact: true}).check();"
                f"const local = at => new Date(at - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 16);"
                f"await page.getByLabel('From', {{exact: true}}).fill(local({made['from_ms']})); await page.getByLabel('Until', {{exact: true}}).fill(local({made['from_ms'] + HOUR_MS}))")
            b.run("await page.locator('.book .trial.bad', {hasText: 'GPU 1 is taken then by reservation 1'}).waitFor()")
            b.click("button", "Reserve")
            b.run("await page.locator('.book [role=alert]', {hasText: 'is taken then'}).waitFor()")
            assert len(reservations(page)) == 1
            # It is given up, after a question to which Escape means no.
            b.click("button", "cancel reservation 1")
            b.run("await page.locator('dialog[open]').waitFor()")
            b.press("Escape")
            b.run("await page.locator('dialog[open]').waitFor({state: 'detached'})")
            assert len(reservations(page)) == 1
            b.click("button", "cancel reservation 1")
            b.click("button", "Cancel it")
            b.see("No GPU is reserved")
            assert not reservations(page) and b.run("return said") == []


def an_answer_is_given_on_the_page():
    with lab("[user *]\nreserve_gpu_hours = 10\nreserve_approval = yes\n", gpus=2) as page:
        page.takt("gpu", "reserve", "0", "--from", "1h", "--until", "2h", "--reason", "secret plan")
        page.takt("gpu", "reserve", "1", "--from", "1h", "--until", "2h")
        with browser_kit.tab(page.address, page.address + "v1/version", bobs_token(page)) as b:
            b.open("#/reservations")
            b.see("2 bookings wait for an answer")
            b.see("secret plan")  # an administrator reads it
            nothing_serious(b)
            b.click("button", "approve reservation 1")
            b.see("1 booking waits for an answer")
            b.click("button", "refuse reservation 2")
            b.run("await page.getByLabel('Why; alice reads it').fill('the demo is then')")
            b.click("button", "Refuse it")
            b.run("await page.locator('table.reservations tr', {hasText: 'refused by bob'}).waitFor()")
            states = {at["id"]: (at["state"], at["decided_by"], at.get("answer")) for at in reservations(page)}
            assert states == {1: ("granted", "bob", None), 2: ("refused", "bob", "the demo is then")}, states
            # He reserves for others, and the machine for nobody.
            b.run("await page.getByLabel('GPU 1', {exact: true}).check(); await page.getByLabel('For', {exact: true}).selectOption('maintenance')")
            b.see("It would be granted at once.")
            b.click("button", "Reserve")
            b.run("await page.locator('table.reservations tr', {hasText: 'maintenance'}).waitFor()")
            assert b.run("return said") == []
        with browser_kit.browser(page) as b:
            b.open("#/reservations")
            b.see("the demo is then")
            assert b.run("return await page.getByRole('button', {name: 'approve'}).count()") == 0
            assert b.run("return await page.getByRole('button', {name: 'cancel reservation 3'}).count()") == 0, "it is not hers"


def who_may_not_reserve_is_told_why():
    with lab("[user *]\nweight = 1\n", gpus=1) as page:
        page.m.takt("gpu", "reserve", "0", "--for-user", "bob", "--until", "2h")
        with browser_kit.browser(page) as b:
            b.open("#/reservations")
            b.see("no rule of tenants_file lets you (reserve_gpu_hours)")
            b.see("bob")
            assert b.run("return await page.locator('form.book, button.grave').count()") == 0
        with browser_kit.tab(page.address, page.address + "v1/version", page.token()) as b:
            b.open("#/reservations")
            b.see("Your token may look, not act")


def reservations_work_on_a_phone_and_in_the_dark():
    with lab(gpus=2) as page:
        page.takt("gpu", "reserve", "0", "--from", "1h", "--until", "2h", "--reason", "a word that is rather long for a phone's narrow window")
        with browser_kit.browser(page) as b:
            b.open("#/reservations", width=360, height=740, dark=True)
            b.see("rather long")
            fits(b)
            nothing_serious(b)
            # No mouse is needed to book.
            b.run("await page.getByLabel('GPU 1', {exact: true}).focus()")
            b.press("Space")
            b.see("It would be granted at once.")
            b.run("await page.getByRole('button', {name: 'Reserve', exact: true}).focus()")
            b.press("Enter")
            b.run("await page.locator('table.reservations tbody tr').nth(1).waitFor()")
            assert [at["gpus"] for at in reservations(page)] == [[0], [1]]


# Each field of the form by its label, what is written into it, and what it is in the job's description.
WRITTEN = {
    "Command": ("train {lr}", {"argv": ["/bin/sh", "-c", "train {lr}"]}),
    "Directory": ("/tmp", {"cwd": "/tmp"}),
    "GPUs": ("2", {"gpus": 2}),
    "Name": ("by-hand", {"name": "by-hand"}),
    "Time limit": ("90", {"time_limit_ms": 90 * 60000}),
    "Tags": ("night,big", {"tags": "night,big"}),
    "Only these, by number": ("0-1", {"gpu_indices": [0, 1]}),
    "Memory of each GPU": ("40G", {"gpu_mem_mib": 40960}),
    "CPUs": ("0.5", {"cpu_milli": 500}),
    "Will run for about": ("1h30m", {"estimate_ms": 90 * 60000}),
    "After jobs": ("1, 2:any", {"after": [{"job": 1, "any": False}, {"job": 2, "any": True}]}),
    "Priority": ("-5", {"priority": -5}),
    "Array": ("%2", {"array_limit": 2}),
    "Grid": ("lr=0.1,0.01", {"grid": ["lr=0.1,0.01"]}),
    "Retries": ("3", {"retries": 3}),
    "Pause before a retry": ("2s", {"retry_backoff_ms": 2000}),
    "Checkpoint signal": ("USR1", {"checkpoint_signal": 10}),
    "Time for the checkpoint": ("2m", {"checkpoint_grace_ms": 120000}),
    "Checkpoints are in": ("/tmp/kept", {"checkpoint_dir": "/tmp/kept"}),
    "From SIGTERM to SIGKILL": ("10s", {"grace_ms": 10000}),
    "Slower by, %": ("3.5", {"max_slowdown_permille": 35}),
    "Governor": ("assured", {"clock_policy": "assured"}),
    "Environment": ("A=1\nPATH=/bin", {"env": ["A=1", "PATH=/bin"]}),
    "Ranks": ("2", {"ranks": 2}),
    "Run before its turn": ("cat data", {"prefetch": ["/bin/sh", "-c", "cat data"]}),
    "Run at its events": ("notify $TAKT_EVENT", {"hook": "notify $TAKT_EVENT"}),
}
CHECKED = {
    "hold it until I release it": "held", "run it again when it is lost or interrupted": "requeue",
    "may be ended for a job that goes first, and runs again": "preemptible",
    "may be frozen for it instead (needs the memory of each GPU)": "freezable",
    "each line of their output begins with [rank]": "rank_prefix", "make it ready while the job before it still runs": "stage",
}
# What cannot be had together with those.
APART = [
    ({"MIG instances instead": "1g.10gbx2"}, {"mig": "1g.10gb", "gpus": 2}),
    ({"GPUs": "2x0.25"}, {"gpus": 2, "gpu_milli": 250}),
    ({"GPUs": "0.5"}, {"gpus": 1, "gpu_milli": 500}),
    ({"Only these, by number": "1,3"}, {"gpu_indices": [1, 3], "gpus": 2}),
    ({"Array": "0-9%3"}, {"array_first": 0, "array_last": 9, "array_limit": 3}),
    ({"SM clock at most, MHz": "1410"}, {"clock_ask": "ceiling", "clock_mhz": 1410}),
    ({"SM clock exactly, MHz": "1410 MHz"}, {"clock_ask": "lock", "clock_mhz": 1410}),
    ({"Power limit, W": "300"}, {"power_limit_mw": 300000}),
    ({"Latency to hold": "p99.9=50ms"}, {"slo_permille": 999, "slo_latency_us": 50000}),
    ({"Image of a container": "pytorch", "Arguments for its runtime": "--ipc=host\n-v /data:/data"},
     {"container": "pytorch", "container_args": ["--ipc=host", "-v /data:/data"]}),
    ({"End it when idle for": "30m"}, {"idle_release_ms": 30 * 60000}),
    ({"Memory of the machine": "512M"}, {"mem_mib": 512}),
    ({"Output into a file": "out-%j.txt"}, {"output": "out-%j.txt"}),
    ({"Counts for tenant": "lab"}, {"tenant": "lab"}),
    ({"Time limit": "1:30:00"}, {"time_limit_ms": 90 * 60000}),
    ({"Time limit": "1-00:30:00"}, {"time_limit_ms": 1470 * 60000}),
    ({"Time limit": "5h30minutes"}, {"time_limit_ms": 330 * 60000}),
    ({"Will run for about": "2hours"}, {"estimate_ms": 120 * 60000}),
    ({"Checkpoint signal": "SIGWINCH"}, {"checkpoint_signal": 28}),
]
REFUSED = [
    ("Time limit", "soon", "Time limit: such as 1h30m, 1:30:00 or 90 for minutes, not 'soon'"),
    ("GPUs", "-1", "GPUs: a whole number from 0 to 64, a share such as 0.5"),
    ("GPUs", "9", "asks for 9 GPUs"),  # takt's own word
    ("After jobs", "train", "After jobs: numbers of jobs"),
    ("Memory of each GPU", "much", "Memory of each GPU: such as 512M or 16G"),
    ("Slower by, %", "80", "Slower by, %: a percentage up to 50"),
    ("Environment", "A", "Environment: NAME=value, one a line"),
    ("Checkpoint signal", "BANG", "Checkpoint signal: a signal such as USR1"),
    ("Directory", "home", "Directory: an absolute path"),
]


def fill(b, values):
    for label, text in values.items():
        b.run(f"await page.getByLabel({json.dumps(label)}, {{exact: true}}).fill({json.dumps(text)})")


def open_groups(b):
    b.run("for (const one of await page.locator('details.group').all())"
          "  if (await one.getAttribute('open') === null) await one.locator('summary').click()")


def is_tried_as(b, values, wanted):
    """What takt is asked about once these are written."""
    b.run("globalThis.bodies = []; page.on('request', one => one.url().endsWith('/v1/jobs/try') && globalThis.bodies.push(one.postData()))")
    fill(b, values)
    b.until("return globalThis.bodies.at(-1) ?? 'null'", lambda body: json.loads(body) == wanted)


def start_form(b):
    b.open("#/submit")
    fill(b, {"Command": "true", "Directory": "/"})
    open_groups(b)
    b.run("await page.locator('.trial', {hasText: 'Would start now'}).waitFor()")


def the_form_takes_what_the_command_line_takes():
    with browser_kit.page_of(gpus=2) as page:
        client = page.client()
        for _ in range(2):
            client.wait(client.submit(["true"])["id"])
        with browser_kit.browser(page) as b:
            b.open("#/submit")
            open_groups(b)
            nothing_serious(b)
            fill(b, {label: text for label, (text, _) in WRITTEN.items()})
            for label in CHECKED:
                b.run(f"await page.getByLabel({json.dumps(label)}, {{exact: true}}).check()")
            b.run("await page.getByLabel('CUDA_VISIBLE_DEVICES holds').selectOption('uuid');"
                  "await page.getByLabel(\"Where others' processes are\").selectOption('use_outside');"
                  "await page.getByLabel('Not before').fill('2096-01-02T03:04'); await page.getByLabel('Wanted done by').fill('2096-01-03T03:04')")
            b.until("return await page.locator('.trial').innerText()", lambda said: said.startswith("Would wait: "))
            b.run("globalThis.sent = page.waitForRequest(request => request.url().endsWith('/v1/jobs'))")
            b.click("button", "Submit")
            sent = json.loads(b.run("return (await globalThis.sent).postData()"))
            wanted = {"visible": "uuid", "use_outside": True, **{name: True for name in CHECKED.values()}}
            for _, what in WRITTEN.values():
                wanted.update(what)
            assert sent.pop("deadline_ms") - sent.pop("begin_ms") == 24 * HOUR_MS
            assert sent == wanted, {key: (sent.get(key), wanted.get(key)) for key in {*sent, *wanted} if sent.get(key) != wanted.get(key)}
            # takt has taken all of it: two jobs, one a value.
            b.run("await page.locator('h1', {hasText: 'by-hand'}).waitFor()")
            jobs = client.live()
            assert [(job["name"], job["priority"], job["held"], job["params"]) for job in jobs] == [
                ("by-hand", -5, "owner", "lr=0.1"), ("by-hand", -5, "owner", "lr=0.01")], jobs


def what_excludes_each_other_is_written_alone():
    with browser_kit.page_of(gpus=2) as page:
        with browser_kit.browser(page) as b:
            plain = {"argv": ["/bin/sh", "-c", "true"], "cwd": "/", "env": ["PATH=/usr/local/bin:/usr/bin:/bin"]}
            for values, wanted in APART:
                start_form(b)
                is_tried_as(b, values, {**plain, **wanted})


def what_is_wrong_is_said_with_its_field():
    with browser_kit.page_of(gpus=2) as page:
        with browser_kit.browser(page) as b:
            start_form(b)
            for label, text, said in REFUSED:
                before = b.run(f"return await page.getByLabel({json.dumps(label)}, {{exact: true}}).inputValue()")
                fill(b, {label: text})
                b.run(f"await page.locator('.trial.bad', {{hasText: {json.dumps(said)}}}).waitFor()")
                if label != "GPUs" or text != "9":
                    assert b.run("return await page.getByRole('button', {name: 'Submit'}).isDisabled()"), text
                fill(b, {label: before})
                b.run("await page.locator('.trial:not(.bad)', {hasText: 'Would start now'}).waitFor()")
            fill(b, {"SM clock at most, MHz": "1000", "SM clock exactly, MHz": "1000"})
            b.run("await page.locator('.trial.bad', {hasText: 'exclude each other'}).waitFor()")


def the_start_is_estimated_while_one_writes():
    with browser_kit.page_of(gpus=1) as page:
        client = page.client()
        runs = client.submit(["sleep", "600"], gpus=1, name="runs", time_limit_ms=3600 * 1000)["id"]
        kit.until(lambda: client.job(runs)["state"] == "running", lambda: client.job(runs))
        with browser_kit.browser(page) as b:
            b.open("#/submit")
            fill(b, {"Command": "true", "Directory": "/", "Time limit": "10m"})
            said = b.until("return await page.locator('.trial').innerText()", lambda text: "Predicted start" in text)
            assert re.search(r"Would wait: .*\. Predicted start .*, in \d+ min", said) and "Expected to run 10 min" in said, said
            fill(b, {"GPUs": "0"})
            b.run("await page.locator('.trial', {hasText: 'Would start now'}).waitFor()")
            # An array that starts in parts says so for each.
            fill(b, {"GPUs": "1"})
            open_groups(b)
            fill(b, {"Array": "0-3"})
            b.until("return await page.locator('.trial').innerText()", lambda text: "Ind" in text and "Predicted start" in text)


def the_form_fits_a_phone():
    with browser_kit.page_of(gpus=1) as page:
        with browser_kit.browser(page) as b:
            b.open("#/submit", width=360, height=740, dark=True)
            open_groups(b)
            fits(b)
            nothing_serious(b)


if __name__ == "__main__":
    sys.exit(kit.main([
        takt_webs_link_signs_in_and_is_not_left_behind,
        a_time_is_marked_in_the_calendar_and_booked,
        an_answer_is_given_on_the_page,
        who_may_not_reserve_is_told_why,
        reservations_work_on_a_phone_and_in_the_dark,
        the_form_takes_what_the_command_line_takes,
        what_excludes_each_other_is_written_alone,
        what_is_wrong_is_said_with_its_field,
        the_start_is_estimated_while_one_writes,
        the_form_fits_a_phone,
    ]))
