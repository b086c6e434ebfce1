#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs say how far they are, from Python, a shell and C's header, and takt shows it; and jobs that
put something else in its place show nothing and hold nobody up.

Usage: job_progress.py BUILD
"""
import os
import sys

import kit

EXAMPLES = os.path.join(kit.SOURCE, "examples")
TRAIN = """
import sys, time
sys.path.insert(0, sys.argv[1])
from takt_progress import Progress
progress = Progress()
while True:
    time.sleep(0.05)
    progress.add(steps=1, tokens=512, latency_s=0.02)
"""


def said(client, job_id):
    """What it has said; what it has not is left out."""
    return {name: value for name, value in client.job(job_id)["progress"].items() if value}


def a_training_loop_is_followed():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit([sys.executable, "-c", TRAIN, EXAMPLES], gpus=1)["id"]
        kit.until(lambda: said(client, job).get("steps_milli_s"), "a rate is known")
        view = said(client, job)
        # 20 a second at the most; on a busy machine fewer.
        assert 0 < view["steps_milli_s"] <= 20500, view
        assert view["tokens"] == 512 * view["steps"] and view["latency_us"] == 20000, view
        assert "queries" not in view, view
        text = m.takt("show", str(job)).stdout
        assert "steps" in text and "/s, from the job itself" in text, text
        assert "20.000 ms, from the job itself" in text, text
        assert not any(client.live()[0]["progress"].values()), "lists go without"
        course = kit.until(lambda: len(client.ask("GET", f"/v1/jobs/{job}/course")["said"]) > 2
                           and client.ask("GET", f"/v1/jobs/{job}/course"), "several words of it are kept")
        assert course["said"] == sorted(course["said"], key=lambda each: each["at_ms"]), course
        for before, after in zip(course["said"], course["said"][1:]):
            assert before["steps"] < after["steps"] and after["tokens"] == 512 * after["steps"], course
            assert after["latency_us"] == 20000 and "queries" not in after, course
        assert course["decisions"] == [] and "governor" not in course, course
        client.cancel(job)
        client.wait(job)
        ended = said(client, job)
        assert ended["steps"] >= view["steps"] and ended["steps_milli_s"] > 0, ended
        assert client.ask("GET", f"/v1/jobs/{job}/course")["said"][:2] == course["said"][:2], "it is kept when it is over"
        assert "from the job itself" in m.takt("show", str(job)).stdout


def it_is_followed_on_after_takt_was_killed():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit([sys.executable, "-c", TRAIN, EXAMPLES], gpus=1)["id"]
        kit.until(lambda: said(client, job).get("steps"), "it has said something")
        before = said(client, job)["steps"]
        m.kill()
        m.start()
        client = m.client()
        kit.until(lambda: said(client, job).get("steps_milli_s") and said(client, job)["steps"] > before, "a rate is known again")
        client.cancel(job)


def a_script_says_it_too():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        takt = m.path("bin/takt")
        job = client.submit(["sh", "-c", f"'{takt}' progress --steps 3 && '{takt}' progress "
                                             "--steps 4 --queries 2 --latency 15ms"])["id"]
        end = client.wait(job)
        assert end["state"] == "done", end
        view = said(client, job)
        assert (view["steps"], view["queries"], view["latency_us"]) == (7, 2, 15000), view
        outside = m.takt("progress", "--steps", "1")
        assert outside.returncode == 64 and "within a job" in outside.stderr, outside


RANKS = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from takt_progress import Progress
progress = Progress()
while True:
    time.sleep(0.2 if os.environ["RANK"] == "1" else 0.02)
    progress.add(steps=1)
"""


def the_slowest_of_ranks_is_shown():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit([sys.executable, "-c", RANKS, EXAMPLES], gpus=1, ranks=3)["id"]
        kit.until(lambda: said(client, job).get("ranks") == 3 and said(client, job).get("slowest_rank") == 1, "all three and the slowest are known")
        view = said(client, job)
        # At most five a second of rank 1; the others make up to fifty.
        assert 0 < view["steps_milli_s"] <= 5100, view
        assert 0 < view["skew_permille"] < 1000, view
        text = m.takt("show", str(job)).stdout
        assert "3, of which this is the slowest: rank 1, " in text, text
        takt = m.path("bin/takt")
        script = client.submit(["sh", "-c", f"'{takt}' progress --steps $((RANK + 2))"], ranks=2)["id"]
        assert client.wait(script)["state"] == "done"
        assert said(client, script)["steps"] == 2, said(client, script)
        client.cancel(job)


def what_is_none_is_not_shown():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        jobs = [client.submit(["sh", "-c", f"{make} \"$TAKT_PROGRESS\"; sleep 600"],
                              cpu_milli=100)["id"]
                for make in ("mkfifo", "mkdir", "ln -s /etc/passwd", "echo lies >",
                             "ln -s /dev/zero", "head -c 64 /dev/urandom >")]
        honest = client.submit([sys.executable, "-c", TRAIN, EXAMPLES], cpu_milli=100)["id"]
        # Those six are looked at each second as this one is, and hold nobody up.
        kit.until(lambda: said(client, honest).get("steps_milli_s"), "the honest one's rate")
        for job in jobs:
            assert not said(client, job), said(client, job)
        for job in [*jobs, honest]:
            client.cancel(job)


if __name__ == "__main__":
    sys.exit(kit.main([a_training_loop_is_followed, it_is_followed_on_after_takt_was_killed,
                       a_script_says_it_too, the_slowest_of_ranks_is_shown, what_is_none_is_not_shown]))
