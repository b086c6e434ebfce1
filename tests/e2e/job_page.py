#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/job.md, example by example: each is typed as it stands, asks for what its row says, and comes to its end.

Usage: job_page.py BUILD_FOLDER
"""
import contextlib
import json
import os
import re
import sqlite3
import sys
import time

import reachable  # noqa: F401, first: it may replace the build folder
import containers
import kit
import mig
import pages
import terminal

PAGE = "docs/job.md"
TRAIN = "#!/bin/sh\necho $* LR=$LR HOME=$HOME $(pwd) $CUDA_VISIBLE_DEVICES $TAKT_CHECKPOINT_DIR\n"
ONLY_IN_FILES = {"after_names"}  # and not in the descriptions of jobs: names have become numbers there
STAYS = {"held", "begin_ms"}     # a job with one of these does not run yet


def hours_from_now(hours):
    return lambda value: abs(value / 1000 - time.time() - hours * 3600) < 1200


# What the example of each field comes to (of a grid the last job); a function says whether it does.
COMES_TO = {
    "argv": ["./train.sh", "--epochs", "3"], "name": "train", "tags": "night,vision", "tenant": "lab/vision",
    "env": ["LR=0.1"], "cwd": "/tmp", "gpus": 2, "gpu_indices": [0, 2], "gpu_milli": 250, "mig": "1g.10gb", "gpu_mem_mib": 20480,
    "cpu_milli": 500, "mem_mib": 512, "clock_ask": "ceiling", "clock_mhz": 1410, "power_limit_mw": 300_000, "visible": "uuid", "priority": -10,
    "held": True, "begin_ms": hours_from_now(1), "deadline_ms": hours_from_now(8), "time_limit_ms": 2 * 3600_000,
    "estimate_ms": 90 * 60_000, "grace_ms": 120_000, "output": "out-%A_%a.txt", "retries": 3, "retry_backoff_ms": 10_000, "requeue": True,
    "preemptible": True, "freezable": True, "checkpoint_signal": 10, "checkpoint_grace_ms": 300_000,
    "checkpoint_dir": lambda value: value.endswith("/jobs/ckpt"), "after": [{"job": 1, "any": True}],
    "array_first": 1, "array_last": 4, "array_limit": 2, "grid": ["lr=0.01", "seed=1"], "ranks": 2,
    "rank_prefix": True, "pty": True, "idle_release_ms": 30 * 60_000, "container": "debian",
    "container_args": ["--init"], "container_runtime": "docker", "stage": True,
    "prefetch": ["/bin/sh", "-c", "cat train.sh > /dev/null"], "wait_outside": True, "use_outside": True,
    "max_slowdown_permille": 30, "slo_latency_us": 50_000, "slo_permille": 990, "clock_policy": "ladder",
    "hook": "echo $TAKT_EVENT >> events",
}


def examples():
    """[(fields, the example's command)] of the page's table."""
    found = []
    for options, fields, _, example in pages.table(PAGE, "option"):
        names = [option[2:].split()[0].replace("-", "_") for option in pages.code(options)] if fields == "the same" \
            else pages.code(fields)
        found.append((names, *pages.code(example)))
    return found


def description(m, job):
    """The job as it was taken, environment and all."""
    with contextlib.closing(sqlite3.connect(f"file:{m.path('state/takt.db')}?mode=ro", uri=True)) as db:
        spec, = db.execute("SELECT json FROM spec WHERE job_id = ?", (job,)).fetchone()
        env, = db.execute("SELECT json FROM environment WHERE job_id = (SELECT coalesce(env_of, id) FROM job WHERE id = ?)", (job,)).fetchone()
    return {**json.loads(spec), **json.loads(env)}


def check(m, fields, example, jobs):
    """Whether the fields are those of the jobs that the example has become."""
    said, last = description(m, jobs[0]), description(m, jobs[-1])
    if "array_id" in said:
        said.update(array_first=said.get("array_index"), array_last=last["array_index"], grid=last.get("params"))
    for field in set(fields) - ONLY_IN_FILES:
        want, got = COMES_TO[field], said.get(field)
        assert want(got) if callable(want) else got == want, (example, field, got)


def reader_of(m):
    reader = pages.at_takt(m)
    reader.has("train.sh", TRAIN)
    return reader


def try_examples(m, reader, wanted):
    client = m.client()
    for fields, example in filter(lambda row: wanted(row[1]), examples()):
        held = example.replace("takt submit", "takt submit -q --hold")  # its environment goes when it has ended
        jobs = [int(line) for line in reader.type(held).split()]
        check(m, set(fields) - {"held"} if "--hold" not in example else fields, example, jobs)
        if STAYS.isdisjoint(fields):
            reader.type("takt release " + " ".join(map(str, jobs)))
            for job in jobs:
                view = client.wait(job)
                assert view["state"] == "done", (example, view, reader.type(f"takt logs {job}"))


def special(example):
    return re.search(r"--(mig|container|pty)\b", example)


def each_example_asks_for_what_its_row_says():
    with kit.machine() as m:
        reader = reader_of(m)
        tenants, = re.findall(r"```tenants\n(.*?)```", pages.text("docs/administration.md"), re.S)
        reader.has("tenants.conf", tenants)
        m.start("--tenants-file", m.path("jobs/tenants.conf"))
        try_examples(m, reader, lambda example: not special(example))


@kit.plain
def mig_is_asked_for():
    with kit.machine(gpus=2) as m:
        mig.cut(m)
        m.start()
        try_examples(m, reader_of(m), lambda example: "--mig" in example)


def a_container_is_asked_for():
    with containers.docked() as (m, daemon, _):
        reader = reader_of(m)
        reader.env.update(PATH=f"{m.path('runtime')}:{reader.env['PATH']}", STAND_IN_DOCKER=m.path("dockerd.sock"))
        try_examples(m, reader, lambda example: "--container" in example)
        assert daemon.runs[0]["image"] == "debian" and "--init" in daemon.runs[0]["words"], daemon.runs


def a_terminal_is_asked_for():
    with kit.machine() as m:
        m.start()
        (fields, example), = [row for row in examples() if "--pty" in row[1]]
        assert example.startswith("takt run "), example
        with terminal.terminal(m, *example.split()[1:]) as it:
            it.expect("#" if os.getuid() == 0 else "$")
            check(m, fields, example, [1])
            it.type("exit\r")
            assert it.ended() == 0, it.text


def every_field_has_an_example():
    """Of the API's page, which has all of them, but for those that only say how something else is meant."""
    named = set()
    for fields, example in examples():
        named |= set(fields)
    listed = {name for row in re.findall(r"^- (`[a-z_]+`(?:, `[a-z_]+`)*): ",
                                         pages.text("docs/api.md").split("### A job description")[1].split("### Views")[0], re.M)
              for name in pages.code(row)}
    assert len(listed) > 40 and named == listed, named ^ listed


def the_files_of_the_page_run():
    files = re.findall(r"```toml run\n(.*?)```", pages.text(PAGE), re.S)
    assert len(files) == 2
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        reader = reader_of(m)
        for text in files:
            reader.has("jobs.toml", text)
            assert "would start now" in reader.type("takt submit -f jobs.toml --dry-run")
            for job in map(int, reader.type("takt submit -q -f jobs.toml").split()):
                view = client.wait(job)
                assert view["state"] == "done", view
        assert reader.type(f"takt logs {job}") == "0.01\n0.1\n"


def the_page_has_every_option():
    page = pages.text(PAGE)
    told = kit.subprocess.run([os.path.join(kit.BUILD, "src/daemon/takt"), "help", "submit"], capture_output=True, text=True,
                              check=True).stdout
    options = re.findall(r"^  (?:-.,|   ) (--[a-z-]+)", told, re.M)
    missing = [name for name in options
               if name not in page and name not in ("--quiet", "--json", "--socket", "--help", "--file")]
    assert len(options) > 40 and not missing, missing


if __name__ == "__main__":
    sys.exit(kit.main([
        each_example_asks_for_what_its_row_says,
        mig_is_asked_for,
        a_container_is_asked_for,
        a_terminal_is_asked_for,
        every_field_has_an_example,
        the_files_of_the_page_run,
        the_page_has_every_option,
    ]))
