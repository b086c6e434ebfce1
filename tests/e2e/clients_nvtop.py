#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nvtop, as Debian ships it, beside takt: the simulated GPUs and the job's process are on its screen.

nvtop is in Debian's contrib, which is seldom switched on. The package is fetched with an apt
configuration of its own in the build folder, made from this machine's (same mirror, one component
more), and unpacked there: nothing on the machine changes.

Usage: clients_nvtop.py BUILD_FOLDER
"""
import fcntl
import glob
import json
import os
import re
import shutil
import subprocess
import sys

import kit

FOLDER = os.path.join(kit.BUILD, "nvtop")
COLUMNS, LINES = 120, 40
APT_S = 120


def with_contrib(text):
    """A source list in either of apt's formats, with the component added where `main` is."""
    text = re.sub(r"^(Components:.*\bmain\b)", r"\1 contrib", text, flags=re.MULTILINE)
    return re.sub(r"^(deb .*\bmain\b)", r"\1 contrib", text, flags=re.MULTILINE)


def is_debian(text):
    return "debian-archive-keyring" in text or re.search(r"^deb .*debian", text, re.MULTILINE)


def copy_sources(folder):
    os.makedirs(folder)
    found = glob.glob("/etc/apt/sources.list") + glob.glob("/etc/apt/sources.list.d/*")
    for path in found:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if path.endswith((".list", ".sources")) and is_debian(text):
            with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as file:
                file.write(with_contrib(text))
    if not os.listdir(folder):
        raise kit.Skip("apt has no source of Debian packages here")


def tool(*command, **more):
    """Runs one of Debian's tools; a Skip names the tool and its last word, never where it looked."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=APT_S, check=False,
                              **more)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise kit.Skip(f"{command[0]}: {type(problem).__name__}") from problem
    if done.returncode != 0:
        raise kit.Skip(f"{command[0]} {command[-1]}: exit status {done.returncode}")


def fetch(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "lists/partial"))
    copy_sources(os.path.join(folder, "parts"))
    own = [f"-oDir::Etc::sourcelist={os.devnull}", f"-oDir::Etc::sourceparts={folder}/parts",
           f"-oDir::State::lists={folder}/lists", f"-oDir::Cache={folder}/cache",
           "-oAcquire::Retries=1", "-oAcquire::http::Timeout=20"]
    tool("apt-get", *own, "update")
    tool("apt-get", *own, "download", "nvtop", cwd=folder)
    (package,) = glob.glob(os.path.join(folder, "nvtop_*.deb"))
    tool("dpkg-deb", "-x", package, os.path.join(folder, "root"))


def nvtop():
    """Path of the program; fetched once for a build folder."""
    program = os.path.join(FOLDER, "root/usr/bin/nvtop")
    with open(FOLDER + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(program):
            fetch(FOLDER)
    missing = [line.split()[0] for line in subprocess.run(
        ["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines()
        if "not found" in line]
    if missing:
        raise kit.Skip(f"nvtop needs {' '.join(missing)}")
    return program


class Screen:
    """A terminal that nobody looks at, with a program in it."""

    def __init__(self, m, *command):
        if not shutil.which("tmux"):
            raise kit.Skip("there is no tmux")
        self.m, self.tmux = m, ["tmux", "-f", os.devnull, "-S", m.path("tmux")]
        done = m.run(*self.tmux, "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES),
                     "env", "HOME=" + m.folder, *command)
        assert done.returncode == 0, done.stderr

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.m.run(*self.tmux, "kill-server")

    def text(self):
        return self.m.run(*self.tmux, "capture-pane", "-p").stdout


def shows(screen, pid, clock_mhz, watt):
    """Whether all of it is on the screen: 8 GPUs, the busy ones' clock, power and process."""
    text = screen.text()
    powers = [int(power) for power in re.findall(r"POW\s+(\d+)\s*/\s*700 W", text)]
    return (text.count("NVIDIA H100 80GB HBM3") == 8 and f"{clock_mhz}MHz" in text.replace(" ", "")
            and sum(abs(power - watt) <= 0.05 * watt for power in powers) == 2
            and re.search(rf"^ *{pid} .*takt-twin load --profile gemm", text, re.MULTILINE))


def the_screen_shows_the_job():
    kit.needs_a_plain_twin()
    program = nvtop()
    with kit.machine() as m:
        m.start()
        m.client().submit(m.load_argv("--profile", "gemm"), gpus=2)

        def busy():
            gpus = json.loads(m.takt("status", "--json").stdout)["gpus"]
            return [gpu for gpu in gpus if gpu["procs"] and gpu["gpu_util_pct"] == 100]
        gpus = kit.until(lambda: len(busy()) == 2 and busy(), 20, "takt shows the job")
        (pid,) = {proc["pid"] for gpu in gpus for proc in gpu["procs"]}
        with Screen(m, kit.TWIN, "exec", "--", program) as screen:
            kit.until(lambda: shows(screen, pid, gpus[0]["sm_mhz"], gpus[0]["power_mw"] / 1000),
                      30, lambda: f"process {pid} on the screen:\n{screen.text()}")
            kit.note(screen.text())


if __name__ == "__main__":
    sys.exit(kit.main([the_screen_shows_the_job]))
