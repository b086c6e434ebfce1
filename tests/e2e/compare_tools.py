#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/compare-tools.md, line by line: what stands there as a command is typed, and must do what the line says.

takt always; the others where they can be had ($TAKT_TEST_GFLOW may name gflow's folder of programs).

Usage: compare_tools.py BUILD_FOLDER
"""
import contextlib
import os
import re
import sys

import reachable  # noqa: F401, first: it may replace the build folder
import clients_faces
import clients_nvtop
import clients_python
import compare_page
import debs
import kit
import pages

PAGE = "docs/compare-tools.md"
SEEING = "to see", ("nvtop", "nvitop", "gpustat", "Slurm", "takt")
QUEUEING = "to do", ("gflow", "task-spooler", "Slurm", "takt")
# With what a command of theirs begins; other words in `code` are settings, say.
PROGRAMS = {"nvtop": ("nvtop",), "nvitop": ("nvitop -",), "gpustat": ("gpustat",), "gflow": ("gbatch", "gqueue", "gjob ", "gcancel"),
            "task-spooler": ("tsp",), "Slurm": ("sinfo", "squeue", "sacct", "scontrol", "sbatch", "srun", "scancel", "sprio"),
            "takt": ("takt ", "curl ")}
NOT_TYPED = "takt explain", "takt doctor", "takt top --host", "takt init"  # of cells that say how else it was tried


def rows(table, tool):
    """{what: commands} of the tool's column; rows without a command left out."""
    first, tools = table
    column = 1 + tools.index(tool)
    found = {}
    for row in pages.table(PAGE, first):
        typed = [span for span in pages.code(row[column]) if span.startswith(PROGRAMS[tool]) and span not in NOT_TYPED]
        if typed:
            found[row[0]] = typed
    return found


def set_up(reader, tool):
    """Types what the page begins with; from now on the reader's R runs and J waits."""
    block = re.search(rf"```sh {tool}\n(.*?)```", pages.text(PAGE), re.S)[1]
    reader.env["R"], reader.env["J"] = reader.type(block + 'printf "\\n%s\\n%s" "$R" "$J"').splitlines()[-2:]
    assert reader.env["R"].isdigit() and reader.env["J"].isdigit(), (reader.env["R"], reader.env["J"])


def said_by(reader, lines, fails):
    """What the lines print one after the other. `fails`: the last of them does not succeed."""
    before = [reader.type(line + " 2>&1") for line in lines[:-1]]
    return "\n".join([*before, reader.type(f"{lines[-1]} 2>&1 && exit 9 || true" if fails else lines[-1] + " 2>&1")])


def type_rows(reader, table, tool, must_print, fails=(), special=()):
    """Types each row of the tool's column, which must print what {what: pattern} says: to see something one may have to
    look again, to do something once is enough."""
    typed = rows(table, tool)
    assert set(typed) == {*must_print, *special}, set(typed) ^ {*must_print, *special}
    for what, pattern in must_print.items():
        said = []

        def matches(what=what, pattern=pattern, said=said):
            said.append(said_by(reader, typed[what], what in fails))
            return re.search(pattern, said[-1], re.S)
        if table is SEEING:
            kit.until(matches, lambda what=what, said=said: (what, said[-1]))
        else:
            assert matches(), (what, pattern, said)


# Seeing.

@contextlib.contextmanager
def computing():
    """A reader beside a takt whose job computes on two GPUs, R is its number; and the machine."""
    with kit.machine() as m:
        m.start()
        job = m.client().submit(m.load_argv("--profile", "gemm", "--mem", 2048), gpus=2, clock_ask="lock", clock_mhz=1500)["id"]
        kit.until(lambda: sum(gpu["gpu_util_pct"] == 100 for gpu in m.client().status()["gpus"]) == 2, m.boards)
        reader = pages.at_takt(m)
        reader.env["R"] = str(job)
        yield m, reader


def viewer(m, reader, name):
    """Puts a viewer of the Python package index where the reader finds it, with the driver in reach."""
    reader.env["LD_LIBRARY_PATH"] = os.path.dirname(kit.TWIN_LIB)
    clients_python.python(m, "-c", "import " + name)
    interpreter = clients_python.venv.python_in(kit.BUILD)
    reader.has(name, f'#!/bin/sh\nexec {interpreter} -m {name} "$@"\n')
    reader.env["PATH"] = f"{reader.folder}:{reader.env['PATH']}"


@kit.plain
def nvtop_sees():
    program = clients_nvtop.nvtop()
    typed = rows(SEEING, "nvtop")
    must_show = {
        "load, memory, temperature of each GPU": r"GPU\[\|+100%\].*MEM\[\|+.*TEMP +\d+°C",
        "power": r"POW +\d+ / 700 W",
        "SM clock, and who has locked it": r"GPU 1500MHz",
        "who is on a GPU": r"\d+ +\w+ +\d +Compute +100% +2048MiB .*takt-twin load",
    }
    assert set(typed) == set(must_show) and {line for lines in typed.values() for line in lines} == {"nvtop"}, typed
    with computing() as (m, _), clients_nvtop.Screen(m, kit.TWIN, "exec", "--", program) as screen:
        for what, pattern in must_show.items():
            kit.until(lambda pattern=pattern: re.search(pattern, screen.text(), re.S), lambda what=what: (what, screen.text()))


@kit.plain
def nvitop_sees():
    with computing() as (m, reader):
        viewer(m, reader, "nvitop")
        type_rows(reader, SEEING, "nvitop", {
            "load, memory, temperature of each GPU": r"\d+C +P0 +\d+W / 700W .* 2048MiB / 79.65GiB .* 100% ",
            "power": r"\d+W / 700W",
            "SM clock, and who has locked it": r"^(?!.*1500).*P0",
            "who is on a GPU": r"\d+ +C +\w+ +2048MiB +100 .* /",
        })


@kit.plain
def gpustat_sees():
    with computing() as (m, reader):
        viewer(m, reader, "gpustat")
        type_rows(reader, SEEING, "gpustat", {
            "load, memory, temperature of each GPU": r"\d+°C, 100 % \| +2048 / 81559 MB",
            "power": r"\d{3} W",
            "who is on a GPU": r"\w+:takt-twin/\d+\(2048M\)",
            "for a program": r'"utilization.gpu": 100',
        })


def takt_sees():
    with computing() as (m, reader):
        kit.until(lambda: "power" in reader.type("takt history --gpu 0 --metric power,util || true"), "a record of ten seconds is kept")
        # Somebody else's process, which compare_page.py sees come and go.
        type_rows(reader, SEEING, "takt", special=("somebody without a job on it",), must_print={
            "load, memory, temperature of each GPU": r"TEMP +UTIL +MEMORY.* \d+C +100% ",
            "power": r"\d+/700W",
            "SM clock, and who has locked it": rf" 1500 .* 1500-1500 +job {reader.env['R']} ",
            "who is on a GPU": rf"running +{reader.env['R']} takt-twin \w+",
            "hours and days back": r"power.*util",
            "what a job has used": r"energy +[\d.]+ (J|k?Wh).*peak memory +2.0G",
            "for a program": r'"gpus":',
            "for Prometheus": r"takt_gpu_",
            "how they are linked": r"best 2: \d-\d",
            "whether a GPU is ill, and what to do": r"\n +0 +healthy ",
        })


# Queueing.

def gflow_does():
    with compare_page.gflow() as reader:
        compare_page.gflow_begins(reader)
        reader.type("sed -i s/59346/59347/ .config/gflow/gflow.toml")  # compare_page.py may run beside this
        reader.type("gflowd up")
        compare_page.gflow_answers(reader)
        set_up(reader, "gflow")
        kit.until(lambda: "(Resources)" in reader.type("gqueue"), lambda: reader.type("gqueue"))
        handed_in = r"Submitted batch job \d+"
        type_rows(reader, QUEUEING, "gflow", {
            "hand in a job for one GPU": handed_in,
            "more GPUs than there are": handed_in,
            "what runs and waits": r"gjob-1 .*R.*gjob-2 .*PD",
            "why a job waits": r"\(Resources\)",
            "where and when a job would start": r"Would submit 1 batch job",
            "arrays": r"(Submitted batch job \d+ \S+\n){10}",
            "dependencies": handed_in,
            "part of a GPU": handed_in,
            "a time limit": handed_in,
            "not before": handed_in,
            "hold it, and let it go": r"put on hold.*released",
            "another place in the queue": r"updated successfully.*priority",
            "what it prints": r"sleep 600",
            "end it": r"cancelled",
        })


def task_spooler_does():
    with compare_page.spooler() as reader:
        set_up(reader, "task-spooler")
        type_rows(reader, QUEUEING, "task-spooler", {
            "hand in a job for one GPU": r"^\d+$",
            "what runs and waits": r"0 +running.*1 +queued",
            "why a job waits": r"^(?!.*(wait|reason|because)).*Enqueue time",
            "dependencies": r"^\d+$",
            "another place in the queue": r"^$",
            "what it prints": r"/ts-out\.",
            "end it": r"^$",
        })
        kit.until(lambda: "finished" in reader.type("tsp -s $R"), lambda: reader.type("tsp"))


@contextlib.contextmanager
def slurm():
    """A reader beside a Slurm with two GPUs, told of ends by a program of ours."""
    root = debs.unpacked("slurm", *clients_faces.SLURM)
    with clients_faces.two_boards() as m:
        clients_faces.slurm(m, root)
        kit.write_program(m.path("mailer"), f'#!/bin/sh\necho "$@" >> {m.path("mails")}\n')
        with open(m.path("slurm.conf"), "a", encoding="ascii") as file:
            file.write(f"MailProg={m.path('mailer')}\n")
        with clients_faces.own_network(), clients_faces.cluster(m, root):
            yield pages.Reader(m.path("jobs"), clients_faces.environment(m, root), os.path.join(root, "usr/bin")), m


@kit.plain
def slurm_does():
    with slurm() as (reader, m):
        seeing, doing = rows(SEEING, "Slurm"), rows(QUEUEING, "Slurm")
        # What has to run, while the one processor is free.
        reader.type(doing["a clock for a job"][0])  # what it sets is in clients_faces.py
        reader.type(doing["be told of the end"][0])
        kit.until(lambda: os.path.exists(m.path("mails")) and "COMPLETED" in open(m.path("mails"), encoding="utf-8").read(),
                  m.said)
        said = said_by(reader, doing["where and when a job would start"], False)
        assert re.search(r"to start at 20\d\d-.* on nodes twin", said), said
        set_up(reader, "Slurm")
        kit.until(lambda: " R " in reader.type("squeue"), lambda: reader.type("squeue"))
        kit.until(lambda: "Resources" in reader.type("squeue"), lambda: reader.type("squeue"))
        handed_in = r"Submitted batch job \d+"
        assert set(seeing) == {"load, memory, temperature of each GPU", "who is on a GPU", "hours and days back", "what a job has used",
                               "for a program", "how they are linked"}, seeing
        type_rows(reader, SEEING, "Slurm", {
            "load, memory, temperature of each GPU": r"^gpu:h100:2",
            "who is on a GPU": rf"{reader.env['R']} \w+ ",
            "hours and days back": r"accounting storage is disabled",
            "what a job has used": r"accounting storage is disabled",
            "for a program": rf"{reader.env['R']}\|RUNNING",
            "how they are linked": r"Gres=gpu:h100:2\(S:0\)",
        }, fails=("hours and days back", "what a job has used"))
        type_rows(reader, QUEUEING, "Slurm", {
            "hand in a job for one GPU": handed_in,
            "more GPUs than there are": r"Requested node configuration is not available",
            "what runs and waits": r"wrap .* PD .*\(.* wrap .* R ",
            "why a job waits": r"Resources",
            "arrays": handed_in,
            "dependencies": handed_in,
            "a time limit": handed_in,
            "not before": handed_in,
            "hold it, and let it go": r"^\s*$",
            "another place in the queue": r"^$",
            "stop a running job for a while": r"^\s*$",
            "who has had his share": r"not running a supported priority plugin",
            "end it": r"^$",
        }, fails=("more GPUs than there are", "who has had his share"),
            special=("a clock for a job", "be told of the end", "where and when a job would start"))
        kit.until(lambda: reader.type("squeue -h -j $R -o %T") in ("", "CANCELLED\n"), lambda: reader.type("squeue"))


def takt_does():
    with kit.machine() as m:
        m.start()
        reader = pages.at_takt(m)
        set_up(reader, "takt")
        waits = reader.env["J"]
        handed_in = r"job \d+ \w+"
        type_rows(reader, QUEUEING, "takt", {
            "hand in a job for one GPU": handed_in,
            "more GPUs than there are": r"asks for 9 GPUs, the largest node has 8",
            "what runs and waits": rf"running +4 .*{waits} +sleep +\w+ +waiting +8 ",
            "why a job waits": rf"job {waits} is waiting: waits for \d more GPUs",
            "where and when a job would start": r"would start now on GPU \d",
            "arrays": r"array of 10 jobs",
            "dependencies": rf"after job {waits}",
            "part of a GPU": handed_in,
            "a time limit": handed_in,
            "not before": handed_in,
            "hold it, and let it go": r"queued: held: .*queued: waits for",
            "another place in the queue": r"priority -5",
            "stop a running job for a while": r": frozen; .*running on GPUs",
            "be told of the end": handed_in,
            "a clock for a job": r"1410",
            "what it prints": r"^begun$",
            "end it": r"cancelled",
        }, fails=("more GPUs than there are",))
        told = os.path.join(reader.folder, "told")
        kit.until(lambda: os.path.exists(told) and "ended" in reader.type("cat told"), "the hook was run at its end")


if __name__ == "__main__":
    sys.exit(kit.main([nvtop_sees, nvitop_sees, gpustat_sees, takt_sees, gflow_does, task_spooler_does, slurm_does, takt_does]))
