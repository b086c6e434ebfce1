#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/compare-tools.md, line by line: what stands there as a command is typed, and must do what the line says.

takt always; gflow and task-spooler where they are installed ($TAKT_TEST_GFLOW may name gflow's folder of programs).

Usage: compare_page.py BUILD_FOLDER
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import reachable  # noqa: F401, first: it may replace the build folder
import kit
import pages
import terminal

PAGE = "docs/compare-tools.md"
TOOLS = {"takt": ("takt ", "curl ", "E="), "gflow": ("gbatch", "gqueue", "gjob update"), "task-spooler": ("tsp",)}
GFLOW = os.environ.get("TAKT_TEST_GFLOW") or os.path.dirname(shutil.which("gflowd") or "")


def rows(tool):
    """{what: commands} of the tool's column; rows without a command left out."""
    column = 1 + list(TOOLS).index(tool)
    found = {}
    for row in pages.table(PAGE, "what"):
        typed = [span for span in pages.code(row[column]) if span.startswith(TOOLS[tool])]
        if typed:
            found[row[0]] = typed
    return found


def cell(tool, what):
    return next(row for row in pages.table(PAGE, "what") if row[0] == what)[1 + list(TOOLS).index(tool)]


def set_up(reader, tool):
    """Types what the page begins with; from now on the reader's J is the job that waits."""
    block = re.search(rf"```sh queue {tool}\n(.*?)```", pages.text(PAGE), re.S)[1]
    reader.env["J"] = reader.type(block + 'printf "\\n%s" "$J"').splitlines()[-1]
    assert reader.env["J"].isdigit(), reader.env["J"]


def type_rows(reader, tool, must_print, special):
    """Types each row but the special ones; {what: (pattern of what it must print, of what it must not)}."""
    typed = rows(tool)
    assert set(typed) == set(must_print) | set(special), set(typed) ^ (set(must_print) | set(special))
    for what, lines in typed.items():
        if what in special:
            special[what](lines)
            continue
        said = "\n".join(map(reader.type, lines))
        assert re.search(must_print[what], said, re.S), (what, must_print[what], said)


# takt.

def takts_column():
    with kit.machine() as m:
        m.start()
        client = m.client()
        reader = pages.at_takt(m)
        set_up(reader, "takt")
        waits = int(reader.env["J"])

        def outside(lines):
            notebook = subprocess.Popen([kit.TWIN, "load", "--gpus", "7", "--quiet"], env=m.env(), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
            try:
                kit.until(lambda: re.search(r"^ +7 .* outside +\w+ takt-twin",
                                            reader.type(lines[0]), re.M), lambda: reader.type(lines[0]))
            finally:
                notebook.kill()
                notebook.wait()
            kit.until(lambda: client.status()["gpus"][7]["state"] == "free", client.status)

        def sits(lines):
            assert lines[1] == "takt attach"
            with terminal.terminal(m, *lines[0].split()[1:]) as first:
                first.expect("#" if os.getuid() == 0 else "$")
                first.type("echo here$((40 + 2))\r")
                first.expect("here42")
                first.type("\x1d")
                assert first.ended() == 0, first.text
            job = next(view["id"] for view in client.live() if view.get("pty"))
            with terminal.terminal(m, "attach", str(job)) as second:
                second.type("echo again$((40 + 3)); exit\r")
                second.expect("again43")
                second.ended()

        type_rows(reader, "takt", {
            "hand in a job for one GPU": r"job \d+ sleep: (running on GPU \d|queued)",
            "what runs and waits": rf"running +2 .*\n +{waits} +sleep +\w+ +waiting +8 [^\n]*needs \d more\n",
            "why a job waits": rf"job {waits} is waiting: waits for \d more GPUs.*running jobs +\d.*jobs ahead +0",
            "where and when a job would start": r"would start now on GPU \d",
            "GPUs near each other": r"best 2: \d-\d",
            "part of a GPU": r"job \d+ sleep: running on GPU \d",
            "dependencies": rf"after job {waits}",
            "arrays": r"array of 10 jobs",
            "grids of parameters": r"array of 2 jobs",
            "order": r"priority -5",
            "clocks": r"1410",
            "energy of a job": r"energy +[\d.]+ J",
            "metrics": r"(?m)^takt_\w+\{?.* \d",
        }, {"somebody else's process on a GPU": outside, "sit at a job": sits})


def takt_outlives_kill_9():
    with kit.machine() as m:
        m.start()
        reader = pages.at_takt(m)
        set_up(reader, "takt")
        m.kill()
        m.start()
        states = [view["state"] for view in m.client().live()]
        assert states == ["running"] * 2 + ["waiting"], states


def takt_needs_what_the_page_says():
    listed = subprocess.run(["ldd", *(os.path.join(kit.BUILD, "src/daemon", name) for name in kit.PROGRAMS)],
                            capture_output=True, text=True, check=True).stdout
    for name in cell("takt", "needs").replace("zlib", "libz").split(", "):
        assert f"{name}" in listed, (name, listed)


# The others. Each has a folder of its own, in which everything that it starts can be found.

@contextlib.contextmanager
def apart(**env):
    folder = tempfile.mkdtemp(prefix="tk-", dir=os.environ.get("TAKT_TEST_DIR"))
    base = {name: value for name, value in os.environ.items() if not name.startswith(("TAKT_", "TMUX", "TS_"))}
    try:
        yield pages.Reader(folder, dict(base, TMPDIR=folder, **{name: value.format(folder=folder) for name, value in env.items()}),
                           *([GFLOW] if GFLOW else []))
    finally:
        kit.kill_all_with(folder)
        shutil.rmtree(folder, ignore_errors=True)


def spooler():
    if not shutil.which("tsp"):
        raise kit.Skip("task-spooler is not installed")
    return apart(TS_SOCKET="{folder}/ts.sock", TS_SLOTS="1", TS_SAVELIST="{folder}/list")


def task_spoolers_column():
    with spooler() as reader:
        set_up(reader, "task-spooler")
        waits = reader.env["J"]

        def output(lines):
            done = subprocess.run(["timeout", "2", *lines[0].split()], env=reader.env, cwd=reader.folder, check=False)
            assert done.returncode in (0, 124), done

        type_rows(reader, "task-spooler", {
            "hand in a job for one GPU": r"^\d+$",
            "what runs and waits": rf"0 +running.*{waits} +queued",
            "why a job waits": r"^(?!.*(wait|reason|because)).*Enqueue time",
            "dependencies": r"^\d+$",
            "order": r"^$",
        }, {"sit at a job": output})
        assert re.search(rf"0 +running[^\n]*\n{waits} +queued", reader.type("tsp")), reader.type("tsp")


def task_spooler_forgets_at_kill_9():
    for how, kept in ((signal.SIGKILL, False), (signal.SIGTERM, True)):
        with spooler() as reader:
            set_up(reader, "task-spooler")
            server = int(reader.type("fuser ts.sock 2>/dev/null").split()[0])
            os.kill(server, how)
            kit.until(lambda: server not in kit.processes_with(reader.folder, b"tsp"), "the server is gone")
            assert os.path.exists(os.path.join(reader.folder, "list")) == kept, how
            assert "queued" not in reader.type("tsp")


def gflow():
    if not GFLOW:
        raise kit.Skip("gflow is not installed (Python package runqd)")
    return apart(TMUX_TMPDIR="{folder}", TERM="xterm", SHELL="/bin/bash", USER="root", TAKT_TWIN="{folder}/machine")


def gflow_begins(reader):
    """A simulated machine, a port of its own, and `gflowd up` with the driver in reach."""
    os.makedirs(os.path.join(reader.folder, ".config/gflow"))
    with open(os.path.join(reader.folder, ".bash_profile"), "w", encoding="ascii") as file:
        file.write(f"export PATH={GFLOW}:$PATH\n")  # tmux starts login shells; a job's end calls gflow
    with open(os.path.join(reader.folder, ".config/gflow/gflow.toml"), "w", encoding="ascii") as file:
        file.write('[daemon]\nhost = "localhost"\nport = 59346\ngpu_poll_interval_secs = 1\n')
    reader.type(f"{kit.TWIN} create hgx-h100 --path machine")
    reader.env["LD_LIBRARY_PATH"] = os.path.dirname(kit.TWIN_LIB)


def gflow_answers(reader):
    kit.until(lambda: subprocess.run([GFLOW + "/ginfo"], env=reader.env, capture_output=True, check=False).returncode == 0, "gflowd answers")


def gflows_column():
    with gflow() as reader:
        gflow_begins(reader)
        reader.type("gflowd up")
        gflow_answers(reader)
        set_up(reader, "gflow")

        def why(lines):
            kit.until(lambda: "(Resources)" in reader.type(lines[0]), lambda: reader.type("gqueue"))

        one = r"^Submitted batch job \d+ \S+\n$"
        type_rows(reader, "gflow", {
            "hand in a job for one GPU": one,
            "what runs and waits": r"gjob-1 .*R.*gjob-3 .*PD.*\(Resources\)",
            "where and when a job would start": r"^Would submit 1 batch job:\n.*sleep 60 \(GPUs: 2\)\n$",
            "part of a GPU": one,
            "dependencies": one,
            "arrays": r"^(Submitted batch job \d+ \S+\n){10}$",
            "grids of parameters": r"^(Submitted batch job \d+ \S+\n){2}$",
            "order": r"updated successfully.*priority",
        }, {"why a job waits": why})


def gflow_outlives_kill_9():
    with gflow() as reader:
        gflow_begins(reader)
        reader.type("gflowd up")
        gflow_answers(reader)
        set_up(reader, "gflow")
        kit.until(lambda: "(Resources)" in reader.type("gqueue"), lambda: reader.type("gqueue"))
        before = reader.type("gqueue")
        for pid in kit.processes_with(reader.folder, b"gflowd"):
            os.kill(pid, signal.SIGKILL)
        reader.type("gflowd up")
        gflow_answers(reader)
        kit.until(lambda: reader.type("gqueue").count("\n") == before.count("\n"),
                  lambda: before + reader.type("gqueue"))


if __name__ == "__main__":
    sys.exit(kit.main([
        takts_column,
        takt_outlives_kill_9,
        takt_needs_what_the_page_says,
        task_spoolers_column,
        task_spooler_forgets_at_kill_9,
        gflows_column,
        gflow_outlives_kill_9,
    ]))
