#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nvtop, as Debian ships it, beside takt: the simulated GPUs and the job's process are on its screen.

Usage: clients_nvtop.py BUILD_FOLDER
"""
import json
import os
import re
import shutil
import sys

import debs
import kit

COLUMNS, LINES = 120, 40


def nvtop():
    """Path of the program."""
    root = debs.unpacked("nvtop", "nvtop")
    program = os.path.join(root, "usr/bin/nvtop")
    debs.needs_libraries(root, program)
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
            and re.search(rf"^ *{pid} .*Compute", text, re.MULTILINE))


@kit.plain
def the_screen_shows_the_job():
    program = nvtop()
    with kit.machine() as m:
        m.start()
        m.client().submit(m.load_argv("--profile", "gemm"), gpus=2)

        def busy():
            gpus = json.loads(m.takt("status", "--json").stdout)["gpus"]
            return [gpu for gpu in gpus if gpu["procs"] and gpu["gpu_util_pct"] == 100]
        gpus = kit.until(lambda: len(busy()) == 2 and busy(), "takt shows the job")
        (pid,) = {proc["pid"] for gpu in gpus for proc in gpu["procs"]}
        with Screen(m, kit.TWIN, "exec", "--", program) as screen:

            def agrees():  # power rises for a second or more: compare what both show now
                now = json.loads(m.takt("status", "--json").stdout)["gpus"][gpus[0]["index"]]
                return shows(screen, pid, now["sm_mhz"], now["power_mw"] / 1000)
            kit.until(agrees, lambda: f"process {pid} on the screen:\n{screen.text()}")
            kit.note(screen.text())


if __name__ == "__main__":
    sys.exit(kit.main([the_screen_shows_the_job]))
