#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first half hour and the README, typed as they stand on a machine that stands as `./run` leaves it.

What is only long for people to look at is made short. The tables that pages show are made again.

Usage: tutorial_page.py BUILD_FOLDER
"""
import os
import re
import shutil
import sys

import kit
import pages

# What each line must print, by how it begins. A line that is not here must only succeed.
PRINTS = {
    "takt submit -n 2 --name first": r"job 4 first: (running on|queued)",
    "takt logs -f 4": r"on GPUs \d,\d\n",
    "takt show 4": r"job +4 first\n.*GPUs +2 asked for",
    "takt wait 4": r"job 4 first: done: exit status 0",
    "takt run -n 1 -- ./train.sh": r"done steps",
    "takt submit -n 4 --name long": r"job 6 long: running on GPUs",
    "takt submit -n 8 --name big": r"job 7 big: queued: waits for [45] more GPUs",
    "takt explain 7": r"job 7 is waiting: waits for 4 more GPUs.*running jobs +4",
    "takt cancel 6": r"job 6: (cancelled|stopping)",
    "takt submit --begin 22:00": r"job 8 train.sh: (queued: its earliest start has not come|running)",
    "takt submit --after 7": r"job 9 evaluate.sh: ",
    "takt submit --array 0-9%2": r"array of 10 jobs, 10 to 19",
    "takt submit --dry-run -n 4": r"would (start now|wait)",
    "takt run -n 1 --clock 1200": r"done steps",
    "takt topo": r"best 2: ",
    "takt clock show": r"SM MHZ",
    "curl": r"takt_gpus 8",
}
# Lines that change nothing, and show what comes true soon: a GPU is being cleared for a moment after its job.
LOOKS = ("takt explain", "takt show", "takt status", "takt queue")
ELSEWHERE = ("git clone", "./run", "./test", "meson setup", "sudo takt init", "takt init", "takt serve", "takt replay-clocks", "takt forecast")


def shorter(line):
    return re.sub(r"(--seconds|sleep) (\d\d?)\b", r"\1 2", line)


def as_run_leaves_it(m):
    """A reader at a machine with the three jobs that `run` hands in."""
    m.start()
    reader = pages.at_takt(m)
    examples = re.findall(r"^\ttakt submit .*", pages.text("run"), re.M)
    assert len(examples) == 3, examples
    for line in examples:
        reader.type(shorter(line))
    return reader


def type_line(reader, line):
    """What it prints must be what it says, for lines that only look after a while."""
    patterns = [pattern for begin, pattern in PRINTS.items() if line.startswith(begin)]
    said = []

    def as_expected():
        said.append(reader.type(shorter(line)))
        return all(re.search(pattern, said[-1], re.S) for pattern in patterns)
    kit.until(as_expected, lambda: (line, patterns, said[-1]), seconds=kit.WAIT_S if line.startswith(LOOKS) else 0)


def type_page(reader, page):
    lines = [line for line in pages.commands(page) if not line.startswith(ELSEWHERE)]
    for line in lines:
        type_line(reader, line)
    return len(lines)


def the_first_half_hour_can_be_typed():
    with kit.machine() as m:
        reader = as_run_leaves_it(m)
        home = m.path("home")
        os.mkdir(home)
        reader.env["HOME"] = home
        lines = pages.commands("docs/tutorial-workstation.md")
        folder, = [line for line in lines if line.endswith("cd ~/takt-tutorial")]
        reader.type(folder)
        reader.folder = os.path.join(home, "takt-tutorial")
        assert type_page(reader, "docs/tutorial-workstation.md") > 15
        client = m.client()
        for job in range(9, 20):
            assert client.wait(job)["state"] == "done", client.job(job)
        kit.until(lambda: client.job(21)["state"] == "done", lambda: client.job(21))
        hook = os.path.join(home, "jobs.txt")
        kit.until(lambda: os.path.exists(hook) and "ended train.sh" in reader.type("cat ~/jobs.txt"), "the hook ran")


def the_readme_can_be_typed():
    with kit.machine() as m:
        reader = as_run_leaves_it(m)
        reader.has("train.sh", "#!/bin/sh\ntrue\n")
        reader.has("train.py", "print('trains')\n")
        assert type_page(reader, "README.md") > 7


def the_table_of_your_policy_is_what_is_printed():
    if not shutil.which("glpsol"):
        raise kit.Skip("the solver is not installed")
    with kit.machine() as m:
        reader = pages.Reader(m.path("jobs"), m.env(), os.path.join(kit.BUILD, "src/daemon"))
        for name in ("data", "include", "examples"):
            os.symlink(os.path.join(kit.SOURCE, name), m.path(f"jobs/{name}"))
        lines = pages.commands("docs/tutorial-researcher.md")
        begin = next(n for n, line in enumerate(lines) if line.startswith("cc "))
        reader.type(lines[begin])
        said = reader.type(lines[begin + 1], 4 * kit.WAIT_S)
        table = lines[begin + 2:begin + 7]
        assert table[0].startswith("ALLOCATED") and table[-1].startswith("bound"), table
        assert [line.split() for line in said.splitlines()[:5]] == [line.split() for line in table], said


if __name__ == "__main__":
    sys.exit(kit.main([
        the_first_half_hour_can_be_typed,
        the_readme_can_be_typed,
        the_table_of_your_policy_is_what_is_printed,
    ]))
