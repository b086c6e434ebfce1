#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that promise a slowdown are governed: they take less energy and no longer than promised, all GPUs of
a job stand at one setting, and whatever dies, the clocks go back. A job that promises nothing is left alone.

Usage: governed.py BUILD
"""
import contextlib
import csv
import io
import json
import os
import re
import signal
import statistics
import subprocess
import sys

import kit

EXAMPLES = os.path.join(kit.SOURCE, "examples")
# Computes as the boards see it, and says how far it is as a training loop would.
TRAIN = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from takt_progress import Progress
progress = Progress()
load = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True, bufsize=1)
for line in load.stdout:
    print(line, end="", flush=True)
    if line.startswith("step "):
        progress.add(steps=1)
"""
# Answers queries, and says how long one takes.
SERVE = TRAIN.replace("progress.add(steps=1)", "progress.add(queries=1, latency_s=float(line.split()[3]) / 1000)")
SETTLED_S = 240
TOP_MHZ = 1980  # of the simulated boards


def train_argv(m, *words, profile="stream", program=TRAIN):
    return [sys.executable, "-c", program, EXAMPLES,
            *m.load_argv("--profile", profile, "--step-time-ms", 50, *words)]


@contextlib.contextmanager
def governed(*words, gpus=1, profile="stream", start=True, **more):
    """A machine with a governed job on it, its client and the job's number."""
    with kit.machine(gpus=gpus) as m:
        m.more_flags = ("--clock-epoch", "500ms")
        m.assume_unlocked = False
        m.start()
        client = m.client()
        spec = {"max_slowdown_permille": 50, **more}
        job = client.submit(train_argv(m, *words, profile=profile), gpus=gpus, **spec)["id"]
        yield m, client, job


def view(client, job):
    return client.job(job)["governed"]


def goes_back(m):
    kit.until(lambda: not m.locked(), m.locked)


def steps_of(m, job):
    """[(milliseconds, clock, watts)] of the steps so far, as the load itself counts them."""
    words = (line.split() for line in m.takt("logs", str(job)).stdout.splitlines()
             if line.startswith("step "))
    return [(float(step[3]), int(step[5]), float(step[7])) for step in words]


def mean_joules(steps):
    return statistics.mean(ms / 1000 * watts for ms, _, watts in steps)


def settled(client, job):
    seen = view(client, job)
    return seen.get("state") == "holds" and seen.get("reason") == "hold" and seen


def course(client, job):
    return client.ask("GET", f"/v1/jobs/{job}/course")


def decided(client, job):
    """What was decided so far and is over, without its times."""
    names = ("reason", "text", "min_mhz", "max_mhz", "epochs", "sm_mhz", "power_mw", "work_milli_s")
    return [{name: each.get(name) for name in names} for each in course(client, job)["decisions"][:-1]]


def decisions_say_what_was_seen(client, job, steps, logged):
    seen = course(client, job)
    assert (seen["governor"], seen["signal"]) == ("assured", "job"), seen
    decisions = seen["decisions"]
    assert sum(each["epochs"] for each in decisions) == logged - 1, (logged, decisions)
    for before, after in zip(decisions, decisions[1:]):
        assert before["at_ms"] <= before["until_ms"] <= after["at_ms"] + 1, decisions
        assert (before["reason"], before["max_mhz"]) != (after["reason"], after["max_mhz"]), decisions
    watts = sorted(watts for *_, watts in steps)
    for each in decisions:
        if each["epochs"]:
            assert each["min_mhz"] <= each["sm_mhz"] <= each["max_mhz"], each
            assert each["power_mw"] / 1000 < 1.1 * watts[-1] and each["work_milli_s"] > 0, (each, watts)
    longest = max(decisions, key=lambda each: each["epochs"])  # in a short one a busy machine's pauses weigh much
    assert longest["power_mw"] / 1000 > 0.9 * watts[0], (longest, watts)


def sums_say_what_was_saved(m, report):
    saved_mj = report["highest_mj"] - report["governed_mj"]
    error_mj = report["highest_mj"] * report["highest_error_permille"] / 1000
    total = json.loads(m.takt("report", "--json").stdout)["total"]
    assert abs(total["saved_kwh"] * 3.6e9 - saved_mj) < 3.6e3, (total, report)
    assert abs(total["saved_error_kwh"] * 3.6e9 - error_mj) < 3.6e3, (total, report)
    assert " +-" in m.takt("report").stdout, m.takt("report")
    (row,) = csv.DictReader(io.StringIO(m.takt("report", "--csv").stdout))
    assert float(row["saved_error_kwh"]) == total["saved_error_kwh"], row
    text = m.takt("jobs").stdout
    assert "SAVED" in text and f"{100 * saved_mj / report['highest_mj']:.0f}% +-" in text, text
    (row,) = csv.DictReader(io.StringIO(m.takt("jobs", "--csv").stdout))
    for name in ("governed_mj", "highest_mj", "highest_error_permille", "slowdown_permille", "slowdown_error_permille"):
        assert int(row[name]) == report[name], (name, row, report)
    assert row["governor"] == "assured", row


def it_takes_less_energy_and_keeps_its_promise():
    """Simulated: the ratio of one run's steps to those of the same run at the highest clock."""
    with governed() as (m, client, job):
        kit.until(lambda: view(client, job).get("epochs", 0) >= 40, lambda: view(client, job), seconds=SETTLED_S)
        text = m.takt("show", str(job)).stdout
        assert "at most 5.0 % longer" in text and "assured" in text, text
        kit.until(lambda: re.search(r"assured 5% \d+ MHz", m.takt("queue").stdout),
                  lambda: m.takt("queue").stdout)
        client.cancel(job)
        report = client.wait(job)["report"]
        steps = steps_of(m, job)[1:]
        top = max(clock for _, clock, _ in steps)
        highest = [step for step in steps if step[1] == top]
        # Not its very last one: that may be of an epoch at the reference.
        late = statistics.median(clock for _, clock, _ in steps[-len(steps) // 4:])
        assert len(highest) > 20 and late < top, (len(highest), late, steps[-1])
        slower = statistics.mean(ms for ms, *_ in steps) / statistics.mean(ms for ms, *_ in highest)
        saved = 1 - mean_joules(steps) / mean_joules(highest)
        kit.note(f"simulated: {100 * (slower - 1):.1f} % slower, {100 * saved:.0f} % less energy a step; "
                 f"takt says {report}")
        assert slower < 1.05 and saved > 0.05, (slower, saved)
        assert report["governor"] == "assured" and report["work_signal"] == "job", report
        assert report["governed_mj"] < report["highest_mj"], report
        told = 1 - report["governed_mj"] / report["highest_mj"]
        assert abs(told - saved) < 0.1, (told, saved, report)
        assert abs(report["slowdown_permille"] / 1000 - (slower - 1)) < 0.03, (slower, report)
        goes_back(m)
        text = m.takt("show", str(job)).stdout
        assert "by the job's own progress" in text, text
        sums_say_what_was_saved(m, report)
        # The same inputs lead to the same wishes again.
        again = m.takt("replay-clocks", "--log", m.path(f"state/epochs/{job}.1"))
        assert again.returncode == 0, again
        made, of = map(int, re.search(r"(\d+) of (\d+) steps as logged", again.stdout).groups())
        assert made == of > 40, again.stdout
        decisions_say_what_was_seen(client, job, steps, of)


def all_gpus_of_a_job_stand_at_one_setting():
    with governed(gpus=2) as (m, client, job):
        kit.until(lambda: settled(client, job), lambda: view(client, job), seconds=SETTLED_S)
        assert all(gpu["limit_mw"] == gpu["default_limit_mw"] for gpu in m.boards()), "by clocks alone"
        seen = []  # what was locked, and what was to be, where nothing changed meanwhile

        def look():
            before, locked, after = view(client, job), m.locked(), view(client, job)
            if before.get("state") == after.get("state") == "holds" and before["epochs"] == after["epochs"]:
                seen.append((locked, (before["min_mhz"], before["max_mhz"])))
            return len(seen) == 20
        kit.until(look, lambda: (view(client, job), seen), seconds=SETTLED_S)
        for locked, wanted in seen:
            assert list(locked.values()) == [wanted] * 2, (locked, wanted)
        client.cancel(job)
        report = client.wait(job)["report"]
        assert report["sm_spread_mhz"] < 30, report  # samples of a step of the clock are not of one moment
        assert f", its GPUs {report['sm_spread_mhz']} MHz apart" in m.takt("show", str(job)).stdout, report
        goes_back(m)


def the_clocks_go_back_when_takt_dies():
    with governed() as (m, client, job):
        kit.until(lambda: settled(client, job) and m.locked(), lambda: view(client, job), seconds=SETTLED_S)
        before, decisions = view(client, job)["epochs"], decided(client, job)
        m.kill()
        goes_back(m)
        m.start()
        client = m.client()
        assert decisions and decided(client, job)[:len(decisions)] == decisions, "they are made again from the log"
        # What it had learned is not lost, and its wish is in force again.
        kit.until(lambda: settled(client, job) and m.locked(), lambda: view(client, job))
        assert view(client, job)["epochs"] >= before, (before, view(client, job))
        (actuator,) = m.pids("takt-actuate")
        m.serve.kill()
        os.kill(actuator, signal.SIGKILL)
        m.died()
        goes_back(m)
        m.start()
        client = m.client()
        client.cancel(job)
        client.wait(job)
        goes_back(m)


def without_a_promise_no_clock_is_touched():
    with kit.machine(gpus=2) as m:
        m.more_flags = ("--clock-epoch", "500ms")
        m.start()
        client = m.client()
        calls = [board["setter_calls"] for board in m.boards()]
        jobs = [client.submit(train_argv(m), gpus=1, **more)["id"]
                for more in ({}, {"clock_policy": "observe", "max_slowdown_permille": 50})]
        for job in jobs:
            kit.until(lambda job=job: client.job(job)["progress"].get("steps", 0) > 60, "its steps")
            assert not view(client, job).get("state"), view(client, job)
        for job in jobs:
            client.cancel(job)
            assert not client.wait(job)["report"].get("governor"), client.job(job)
        assert [board["setter_calls"] for board in m.boards()] == calls, m.boards()


@contextlib.contextmanager
def silent(profile, board="hgx-h100", **more):
    """A machine with a governed job that says nothing of how far it is."""
    with kit.machine(board, gpus=1) as m:
        m.more_flags = ("--clock-epoch", "500ms")
        m.start()
        client = m.client()
        yield m, client, client.submit(m.load_argv("--profile", profile, "--quiet"), gpus=1, **more)["id"]


def went_on(client, job, before):
    """True when some more epochs are over; it has not begun anew meanwhile."""
    seen = view(client, job)
    assert not seen.get("state") or seen.get("epochs", 0) >= before, (before, seen)
    return seen.get("epochs", 0) > before + 2


def what_was_saved(client, job, signal):
    """The report of the job, ended, once it says so."""
    kit.until(lambda: view(client, job).get("epochs", 0) >= 12 and client.job(job)["report"].get("highest_mj"),
              lambda: client.job(job), seconds=SETTLED_S)
    assert view(client, job)["signal"] == signal, view(client, job)
    client.cancel(job)
    report = client.wait(job)["report"]
    assert report["work_signal"] == signal, report
    return report


def one_that_says_nothing_is_judged_by_counters():
    """Simulated: copies wait for memory, and are not said to be slower at a lower clock."""
    with silent("stream", max_slowdown_permille=50) as (m, client, job):
        kit.until(lambda: settled(client, job) and m.locked(), lambda: view(client, job), seconds=SETTLED_S)
        ((_, high),) = m.locked().values()
        assert high < 0.9 * TOP_MHZ, (high, view(client, job))
        text = m.takt("show", str(job)).stdout
        assert "by activity counters, which stand in for progress (+-3.0 %)" in text, text
        before = view(client, job)["epochs"]
        m.kill()
        m.start()
        client = m.client()
        kit.until(lambda: went_on(client, job, before), lambda: view(client, job), seconds=SETTLED_S)
        report = what_was_saved(client, job, "counters")
        kit.note(f"simulated: takt says {report}")
        assert report["governed_mj"] < 0.95 * report["highest_mj"], report
        assert abs(report["slowdown_permille"]) < 30 <= report["slowdown_error_permille"], report
        assert report["highest_error_permille"] >= 30, report
        assert course(client, job)["signal"] == "counters", course(client, job)
        text = m.takt("report").stdout
        assert "saved: 1 of 1 by activity counters" in text and " +-" in text, text


def one_without_counters_is_judged_by_utilisation():
    """These boards have no GPM. What it saves is a guess, and never said without its error."""
    with silent("gemm", "dgx-a100", max_slowdown_permille=100) as (m, client, job):
        report = what_was_saved(client, job, "utilisation")
        assert report["highest_error_permille"] >= 221 <= report["slowdown_error_permille"], report
        assert float(re.search(r"% \+-(\d+\.\d)%", m.takt("jobs").stdout)[1]) >= 22.1, m.takt("jobs")
        text = m.takt("show", str(job)).stdout
        assert "by utilisation, which is a guess" in text, text
        total = json.loads(m.takt("report", "--json").stdout)["total"]
        assert (total["saved_jobs"], total["guessed_jobs"]) == (0, 1) and "saved_kwh" not in total, total
        assert "saved: 1 of 1 left out: only utilisation tells" in m.takt("report").stdout, m.takt("report")


def what_cannot_be_is_refused():
    with kit.machine(gpus=1) as m:
        m.start()
        for words, says in (
                (("--clock-policy", "thrifty"), "there are observe, assured"),
                (("--clock-policy", "assured"), "needs a promise"),
                (("--clock-policy", "slo"), "needs a latency"),
                (("--max-slowdown", "70%"), "from 0.1 to 50"),
                (("--slo", "99=50ms"), "p99=50ms"),
                (("--clock-policy", "fixed"), "governor 'fixed' refuses to begin: it needs sm_mhz"),
                (("--clock-policy", "fixed:clock=3"), "it takes sm_mhz sm_permille power_mw"),
                (("--clock-policy", "fixed:sm_mhz=0"), "sm_mhz must be 1 to 100000, not 0"),
                (("--clock-policy", "fixed sm_mhz=900"), "such as fixed:sm_mhz=1200, not"),
                (("--clock-policy", "./own.so"), "the name of a governor"),
                (("--max-slowdown", "3%", "--clock", "900"), "exclude each other"),
                (("--max-slowdown", "3%", "--gpus", "0"), "at least one GPU")):
            done = m.takt("submit", *words, "--", "true")
            assert done.returncode == 64 and says in done.stderr, (words, done)
        done = m.takt("submit", "--max-slowdown", "3.5%", "--hold", "--", "true")
        assert done.returncode == 0, done
        assert m.client().job(1)["max_slowdown_permille"] == 35, m.client().job(1)


TENANTS = ("[tenant thrifty]\nmax_slowdown = 4%\nclock_policy = ladder\n[tenant thrifty/night]\nmax_slowdown = 9%\n"
           "[tenant thrifty/night/late]\nweight = 2\n[tenant fast]\nmax_slowdown = 0%\n")


def tenants_and_the_daemon_have_defaults():
    with kit.machine(gpus=4) as m:
        path = m.path("tenants.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(TENANTS)
        m.more_flags = ("--clock-epoch", "500ms", "--max-slowdown", "2%", "--tenants-file", path)
        m.start()
        client = m.client()
        asked = {"daemon": {}, "thrifty": {"tenant": "thrifty"}, "late": {"tenant": "thrifty/night/late"},
                 "fast": {"tenant": "fast"}}
        jobs = {who: client.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=1, **more)["id"]
                for who, more in asked.items()}
        for who, governor, permille in (("daemon", "assured", 20), ("thrifty", "ladder", 40), ("late", "ladder", 90)):
            kit.until(lambda job=jobs[who]: view(client, job).get("state"), who)
            got = client.job(jobs[who])["report"].get("governor"), view(client, jobs[who])["max_slowdown_permille"]
            assert got == (governor, permille), (who, got)
        text = m.takt("show", str(jobs["daemon"])).stdout
        assert "at most 2.0 % longer (the default here)" in text, text
        kit.until(lambda: client.job(jobs["fast"]).get("pid"), "it runs")
        assert not view(client, jobs["fast"]).get("state"), view(client, jobs["fast"])
        with open(path, "w", encoding="ascii") as file:
            file.write("[tenant lost]\nclock_policy = nobody\n")
        kit.until(lambda: "there is no governor 'nobody'" in m.takt("status").stdout,
                  lambda: m.takt("status").stdout)
        with open(path, "w", encoding="ascii") as file:
            file.write("[tenant thrifty]\nclock_policy = fixed\n")
        kit.until(lambda: "governor 'fixed' refuses to begin" in m.takt("status").stdout,
                  lambda: m.takt("status").stdout)
        for job in jobs.values():
            client.cancel(job)
            client.wait(job)


@kit.plain
def without_permission_it_says_what_it_would_set():
    with kit.machine(gpus=1) as m:
        m.twin("fault", "0", "permission")
        m.more_flags = ("--clock-epoch", "500ms")
        m.start()
        client = m.client()
        job = client.submit(train_argv(m), gpus=1, max_slowdown_permille=50)["id"]
        kit.until(lambda: view(client, job).get("state") == "advises", lambda: view(client, job))
        text = m.takt("show", str(job)).stdout
        assert "would hold SM clock within" in text, text
        assert not m.locked(), m.locked()
        client.cancel(job)
        client.wait(job)


def a_job_that_is_too_short_stays_at_the_highest_clock():
    with governed(estimate_ms=3000) as (m, client, job):
        kit.until(lambda: view(client, job).get("state") == "over", lambda: view(client, job))
        assert "before a governor has settled" in view(client, job)["note"], view(client, job)
        assert not m.locked(), m.locked()


def one_that_is_frozen_lets_its_clocks_go():
    with governed() as (m, client, job):
        kit.until(lambda: settled(client, job) and m.locked(), lambda: view(client, job), seconds=SETTLED_S)
        before = view(client, job)["epochs"]
        assert m.takt("freeze", str(job)).returncode == 0
        kit.until(lambda: view(client, job)["state"] == "rests", lambda: view(client, job))
        assert "it stands still" in m.takt("show", str(job)).stdout, m.takt("show", str(job))
        goes_back(m)
        assert m.takt("thaw", str(job)).returncode == 0
        kit.until(lambda: view(client, job)["state"] == "holds" and m.locked(), lambda: view(client, job))
        assert view(client, job)["epochs"] >= before, (before, view(client, job))
        client.cancel(job)
        client.wait(job)
        goes_back(m)


def on_a_shared_gpu_only_its_own_words_count():
    with kit.machine(gpus=1) as m:
        m.more_flags = ("--clock-epoch", "500ms")
        m.start()
        client = m.client()
        share = {"gpus": 1, "gpu_milli": 500, "gpu_mem_mib": 20000, "max_slowdown_permille": 50}
        silent = client.submit(m.load_argv("--profile", "gemm", "--quiet"), **share)["id"]
        says = client.submit(train_argv(m), **share)["id"]
        kit.until(lambda: view(client, silent).get("epochs", 0) >= 12 and view(client, says).get("signal") == "job",
                  lambda: (view(client, silent), view(client, says)), seconds=SETTLED_S)
        text = m.takt("show", str(silent)).stdout
        assert "nothing tells how fast it runs" in text, text
        # It keeps the GPU at the highest clock, whatever the other could do without.
        assert all(high >= TOP_MHZ for _, high in m.locked().values()), m.locked()
        for job in (silent, says):
            client.cancel(job)
            assert "highest_mj" not in client.wait(job)["report"], client.job(job)
        goes_back(m)


def updated(m, job, *words):
    done = m.takt("update", *words, str(job))
    assert done.returncode == 0, done


def a_promise_can_be_changed_while_it_waits_and_runs():
    with governed() as (m, client, job):
        waits = client.submit(["true"], gpus=1, held=True)["id"]
        updated(m, waits, "--max-slowdown", "3%", "--clock-policy", "ladder")
        kit.until(lambda: settled(client, job) and m.locked(), lambda: view(client, job), seconds=SETTLED_S)
        updated(m, job, "--max-slowdown", "10%")
        kit.until(lambda: view(client, job).get("max_slowdown_permille") == 100, lambda: view(client, job))
        m.kill()
        m.start()
        client = m.client()
        kit.until(lambda: view(client, job).get("epochs", 0) > 2, lambda: view(client, job), seconds=SETTLED_S)
        assert view(client, job)["max_slowdown_permille"] == 100, view(client, job)
        text = m.takt("show", str(waits)).stdout
        assert "at most 3.0 % longer" in text and "ladder" in text, text
        updated(m, job, "--clock-policy", "observe")
        goes_back(m)
        kit.until(lambda: not view(client, job).get("state"), lambda: view(client, job))
        for words, status, says in (
                (("--clock-policy", "thrifty", str(job)), 64, "there are observe, assured"),
                (("--clock-policy", "slo", str(job)), 64, "needs a latency"),
                (("--clock-policy", "fixed", str(job)), 64, "refuses to begin: it needs sm_mhz"),
                (("--priority", "-5", "--max-slowdown", "2%", str(job)), None, "only waiting jobs can be changed")):
            done = m.takt("update", *words)
            assert done.returncode and status in (None, done.returncode) and says in done.stderr, (words, done)
        assert client.job(job)["max_slowdown_permille"] == 100, client.job(job)
        client.cancel(job)
        ended = client.wait(job)
        assert ended["max_slowdown_permille"] == 100 and ended["clock_policy"] == "observe", ended
        asks = client.submit(["true"], gpus=1, held=True, clock_ask="ceiling", clock_mhz=1200)["id"]
        done = m.takt("update", "--max-slowdown", "2%", str(asks))
        assert done.returncode and "has asked for a clock" in done.stderr, done


def limit_w(m):
    return m.boards()[0]["limit_mw"] // 1000


def settled_below(client, job, watts):
    seen = view(client, job)
    return seen.get("state") == "holds" and seen.get("power_limit_mw", 0) < watts * 1000


@kit.plain
def where_no_clock_can_be_set_power_limits_are():
    """The driver has no list of clocks: a governor that knows both ways steps through limits."""
    with kit.machine(gpus=1) as m:
        m.more_flags = ("--clock-epoch", "500ms")
        m.start(hide="nvmlDeviceGetSupportedGraphicsClocks")
        client, default_w = m.client(), limit_w(m)
        job = client.submit(train_argv(m, profile="gemm"), gpus=1, clock_policy="ladder", max_slowdown_permille=100)["id"]
        kit.until(lambda: limit_w(m) < default_w, lambda: view(client, job), seconds=SETTLED_S)
        kit.until(lambda: settled_below(client, job, default_w), lambda: view(client, job), seconds=SETTLED_S)
        assert "max_mhz" not in view(client, job) and not m.locked(), view(client, job)
        text = m.takt("show", str(job)).stdout
        assert "a power limit of" in text and "SM clock within" not in text, text
        lowest = min(each["power_limit_mw"] for each in course(client, job)["decisions"] if each.get("power_limit_mw"))
        assert lowest < default_w * 1000, course(client, job)
        client.cancel(job)
        client.wait(job)
        kit.until(lambda: limit_w(m) == default_w, lambda: limit_w(m))
        job = client.submit(train_argv(m), gpus=1, clock_policy="fixed:power_mw=400000")["id"]
        kit.until(lambda: limit_w(m) == 400 and view(client, job).get("state") == "holds", lambda: view(client, job))
        client.cancel(job)
        client.wait(job)
        kit.until(lambda: limit_w(m) == default_w, lambda: limit_w(m))


TARGET_MS = 70


def a_serving_job_keeps_its_latency():
    with kit.machine(gpus=1) as m:
        m.more_flags = ("--clock-epoch", "500ms")
        m.start()
        client = m.client()
        done = m.takt("submit", "-q", "--slo", f"p99={TARGET_MS}ms", "--", *train_argv(m, profile="gemm", program=SERVE))
        assert done.returncode == 0, done
        job = int(done.stdout)
        kit.until(lambda: len(steps_of(m, job)) > 20 and steps_of(m, job)[-1][1] < steps_of(m, job)[1][1],
                  lambda: view(client, job), seconds=SETTLED_S)
        text = m.takt("show", str(job)).stdout
        assert f"p99.0 within {TARGET_MS}.000 ms" in text and "slo" in text, text
        assert f"slo p99 {TARGET_MS} ms" in m.takt("queue").stdout, m.takt("queue")
        kit.until(lambda: view(client, job).get("epochs", 0) > 40, lambda: view(client, job), seconds=SETTLED_S)
        client.cancel(job)
        assert client.wait(job)["report"]["governor"] == "slo"
        steps = steps_of(m, job)[1:]
        slow = [step for step in steps if step[0] > TARGET_MS]
        kit.note(f"simulated: {len(slow)} of {len(steps)} steps above {TARGET_MS} ms, at last "
                 f"{steps[-1][0]:.1f} ms at {steps[-1][1]} MHz of {steps[0][1]}")
        assert len(slow) < 0.05 * len(steps), (len(slow), len(steps))
        goes_back(m)


def ceiling(m):
    """Of all GPUs whose clocks are held, the highest that is allowed; 0: none is held."""
    return max((high for _, high in m.locked().values()), default=0)


def logs_can_be_made_again(m, job, *words):
    again = m.takt("replay-clocks", "--log", m.path(f"state/epochs/{job}.1"), *words)
    made, of = map(int, re.search(r"(\d+) of (\d+) steps as logged", again.stdout).groups())
    assert again.returncode == 0 and made == of > 1, again
    return of


def a_clock_that_is_given_is_held_and_goes_on_over_a_restart():
    """By a job's own policy, by one that is changed while it runs, and by the daemon's setting."""
    with kit.machine(gpus=2) as m:
        m.more_flags = ("--clock-epoch", "500ms", "--clock-policy", "fixed:sm_permille=700")
        m.start()
        client = m.client()
        done = m.takt("submit", "-q", "--clock-policy", "fixed:sm_mhz=1200", "--", *train_argv(m))
        assert done.returncode == 0, done
        job = int(done.stdout)
        kit.until(lambda: ceiling(m) == 1200 and view(client, job).get("epochs", 0) > 2, m.locked, seconds=SETTLED_S)
        kit.until(lambda: steps_of(m, job) and steps_of(m, job)[-1][1] == 1200, lambda: steps_of(m, job)[-1:])
        text = m.takt("show", str(job)).stdout
        assert "fixed:sm_mhz=1200" in text and "holds SM clock within [" in text, text
        m.kill()
        goes_back(m)
        m.start()
        client = m.client()
        kit.until(lambda: ceiling(m) == 1200, m.locked)
        assert view(client, job)["epochs"] > 2, view(client, job)  # what was before the restart counts
        logs_can_be_made_again(m, job)
        updated(m, job, "--clock-policy", "fixed:sm_mhz=900")
        kit.until(lambda: ceiling(m) == 900, m.locked)
        client.cancel(job)
        client.wait(job)
        goes_back(m)
        client.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=1)
        kit.until(lambda: 0.65 * TOP_MHZ < ceiling(m) <= 0.7 * TOP_MHZ, m.locked)


def build_governor(m, name="half-way"):
    """The example, under that name."""
    source, path = m.path(f"{name}.c"), m.path(f"{name}.so")
    with open(os.path.join(EXAMPLES, "half_way.c"), encoding="ascii") as example, open(source, "w", encoding="ascii") as file:
        file.write(example.read().replace('.name = "half-way"', f'.name = "{name}"'))
    subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-I", os.path.join(kit.SOURCE, "include"),
                    "-o", path, source], check=True)
    os.chmod(path, 0o755)
    return path


def check_config(m, text):
    path = m.path("own.conf")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return m.takt("config", "check", path)


def an_administrators_own_governor_is_one_like_takts():
    with kit.machine(gpus=1) as m:
        own = build_governor(m)
        m.more_flags = ("--clock-epoch", "500ms", "--governors", own)
        m.start()
        client = m.client()
        done = m.takt("submit", "--clock-policy", "thrifty", "--", "true")
        assert "there are half-way, observe, assured" in done.stderr, done
        done = m.takt("submit", "--clock-policy", "half-way:busy_permille=1001", "--", "true")
        assert done.returncode == 64 and "busy_permille is 0 to 1000" in done.stderr, done
        job = client.submit(m.load_argv("--profile", "gemm", "--quiet"), gpus=1,
                            clock_policy="half-way:busy_permille=1000")["id"]
        kit.until(lambda: 0 < ceiling(m) < 0.6 * TOP_MHZ, lambda: (m.locked(), view(client, job)), seconds=SETTLED_S)
        assert client.job(job)["report"]["governor"] == "half-way", client.job(job)
        m.kill()
        goes_back(m)
        m.start()
        client = m.client()
        kit.until(lambda: 0 < ceiling(m) < 0.6 * TOP_MHZ, lambda: (m.locked(), view(client, job)))
        logs_can_be_made_again(m, job, "--governor", own)
        m.kill()
        m.more_flags = ("--clock-epoch", "500ms")  # it is not there any more
        m.start()
        client = m.client()
        kit.until(lambda: view(client, job).get("state") == "over", lambda: view(client, job))
        assert "there is no governor 'half-way'" in m.takt("show", str(job)).stdout, m.takt("show", str(job))
        goes_back(m)
        assert client.job(job)["state"] == "running", client.job(job)
        client.cancel(job)
        assert not client.wait(job)["report"].get("governor"), client.job(job)


def a_governor_of_a_file_that_others_may_write_is_not_loaded():
    with kit.machine(gpus=1) as m:
        own = build_governor(m)
        text = f"governors = {own}\nclock_policy = half-way:busy_permille=900\n"
        assert check_config(m, text).returncode == 0, check_config(m, text)
        for said, words in ((text.replace("900", "x"), "fixed:sm_mhz=1200"),
                            (text.replace("half-way:", "half:"), "there is no governor 'half'"),
                            (f"governors = {build_governor(m, 'ladder')}\n", "has a governor named 'ladder' itself"),
                            (text.replace("half-way.so", "nowhere.so"), "nowhere.so'")):
            done = check_config(m, said)
            assert done.returncode == 65 and words in done.stdout, done
        os.chmod(own, 0o775)
        done = check_config(m, text)
        assert done.returncode == 65 and "may be written by others" in done.stdout, done
        m.spawn("--governors", own)
        assert m.died() and "may be written by others" in m.said(), m.said()
        m.spawn("--clock-policy", "fixed")
        assert m.died() and "clock_policy: governor 'fixed' refuses to begin" in m.said(), m.said()


def budget(m, path, watts):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"power_budget_w = {watts}\n")
    if m.serve:
        done = m.takt("config", "reload")
        assert done.returncode == 0 and "power_budget_w" in done.stdout, done


BUDGET_W = 800


def a_budget_is_kept_and_goes_to_who_gains_most():
    """Simulated: one job computes, the other waits for memory and gains next to nothing by a higher clock."""
    with kit.machine(gpus=3) as m:
        path = m.path("takt.conf")
        budget(m, path, BUDGET_W)
        m.more_flags = ("--clock-epoch", "500ms", "--config", path)
        m.start()
        client = m.client()
        steep, flat = (client.submit(train_argv(m, profile=profile), gpus=1)["id"] for profile in ("gemm", "stream"))
        kit.until(lambda: all(view(client, job).get("epochs", 0) >= 40 for job in (steep, flat)),
                  lambda: (view(client, steep), view(client, flat)), seconds=SETTLED_S)
        drawn = []
        while len(drawn) < 20:
            drawn.append(sum(board["power_mw"] for board in m.boards()) / 1000)
        seen = json.loads(m.takt("clock", "--json").stdout)
        share = {gpu["budget_for"]: gpu["budget_mw"] / 1000 for gpu in seen["gpus"]}
        kit.note(f"simulated: {statistics.mean(drawn):.0f} W of {BUDGET_W} W drawn, {max(drawn):.0f} W at the most; {share}")
        assert max(drawn) <= BUDGET_W and statistics.mean(drawn) > 0.7 * BUDGET_W, drawn
        assert share[f"job {steep}"] > 1.3 * share[f"job {flat}"], share
        assert sum(share.values()) <= BUDGET_W and len(share) == 3, share
        high = {job: client.job(job)["governed"]["max_mhz"] for job in (steep, flat)}
        assert high[steep] > high[flat], high
        text = m.takt("clock").stdout
        assert f"Power budget: {BUDGET_W} W for all GPUs, " in text and f"W for job {steep}, draws" in text, text
        assert "counts with what it draws" in text, text
        assert "W of the machine's power" in m.takt("show", str(steep)).stdout, m.takt("show", str(steep))
        assert logs_can_be_made_again(m, steep) > 40
        # More than the others can be held to is promised: who was promised something is told.
        promised = client.submit(train_argv(m, profile="gemm"), gpus=1, max_slowdown_permille=10)["id"]
        kit.until(lambda: "too small for what was promised" in view(client, promised).get("note", ""),
                  lambda: view(client, promised), seconds=SETTLED_S)
        budget(m, path, 300)
        kit.until(lambda: "the lowest limits of all GPUs are" in m.takt("status").stdout,
                  lambda: m.takt("status").stdout)
        budget(m, path, 0)
        goes_back_of = lambda: not m.locked().keys() & {gpu for job in (steep, flat) for gpu in client.job(job)["gpu_list"]}
        kit.until(goes_back_of, m.locked)
        assert "Power budget" not in m.takt("clock").stdout, m.takt("clock")
        kit.until(lambda: not view(client, steep).get("state"), lambda: view(client, steep))
        assert client.job(promised)["report"]["governor"] == "assured", client.job(promised)


# Queries come at 16 a second for eight seconds, then at some 4 for eight.
WAVE = """
import subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from takt_progress import Progress
progress = Progress()
def answer(*words):
    load = subprocess.Popen([*sys.argv[2:], *words], stdout=subprocess.PIPE, text=True, bufsize=1)
    for line in load.stdout:
        if line.startswith("step "):
            progress.add(queries=1)
while True:
    at = time.monotonic() % 16
    if at < 8:
        answer("--seconds", str(max(1, round(8 - at))))
    else:
        answer("--steps", "1")
        time.sleep(0.15)
"""


def foreseen(client, job):
    return re.search(r"^load 1s ahead by (\S+): ", view(client, job).get("ahead", ""))


def a_load_that_repeats_itself_is_foreseen():
    with kit.machine(gpus=1) as m:
        m.more_flags = ("--clock-epoch", "500ms", "--forecast-step", "1s", "--forecast-ahead", "1s",
                        "--forecast-season", "16s")
        m.start()
        client = m.client()
        job = client.submit(train_argv(m, profile="gemm", program=WAVE), gpus=1, clock_policy="forecast")["id"]
        kit.until(lambda: "is not known long enough to be foreseen" in view(client, job).get("ahead", ""),
                  lambda: view(client, job))
        kit.until(lambda: foreseen(client, job), lambda: view(client, job), seconds=SETTLED_S)
        kit.note(f"simulated: {view(client, job)['ahead']}")
        # The clock is raised because of what is about to come.
        kit.until(lambda: any(each["reason"] == "forecast" for each in course(client, job)["decisions"]),
                  lambda: course(client, job)["decisions"][-20:], seconds=SETTLED_S)
        assert view(client, job)["ahead"] in m.takt("show", str(job)).stdout, m.takt("show", str(job))
        # What its log has of it is enough to go on with.
        m.kill()
        m.start()
        client = m.client()
        kit.until(lambda: foreseen(client, job), lambda: view(client, job))
        client.cancel(job)
        client.wait(job)
        assert logs_can_be_made_again(m, job) > 100
        goes_back(m)


if __name__ == "__main__":
    sys.exit(kit.main([a_load_that_repeats_itself_is_foreseen,  # first: a forecaster is not tried before two minutes are known
                       it_takes_less_energy_and_keeps_its_promise, all_gpus_of_a_job_stand_at_one_setting,
                       the_clocks_go_back_when_takt_dies, without_a_promise_no_clock_is_touched,
                       one_that_says_nothing_is_judged_by_counters, one_without_counters_is_judged_by_utilisation,
                       what_cannot_be_is_refused, where_no_clock_can_be_set_power_limits_are,
                       a_job_that_is_too_short_stays_at_the_highest_clock,
                       tenants_and_the_daemon_have_defaults, without_permission_it_says_what_it_would_set,
                       one_that_is_frozen_lets_its_clocks_go, on_a_shared_gpu_only_its_own_words_count,
                       a_serving_job_keeps_its_latency, a_promise_can_be_changed_while_it_waits_and_runs,
                       a_clock_that_is_given_is_held_and_goes_on_over_a_restart,
                       an_administrators_own_governor_is_one_like_takts,
                       a_governor_of_a_file_that_others_may_write_is_not_loaded,
                       a_budget_is_kept_and_goes_to_who_gains_most], at_once=6))
