#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A virtual environment with unmodified NVML clients, made once in the build folder.

As a program:  venv.py BUILD_FOLDER  prints the path of its python, or, when the packages cannot be
had, says why on the standard error and exits with 77. As a module: python_in(BUILD_FOLDER). Tests
that run side by side may all ask: the first makes it, the others wait.
"""

import fcntl
import os
import subprocess
import sys

PACKAGES = ["nvidia-ml-py", "gpustat", "nvitop"]
PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--timeout", "20",
       "--retries", "1"]


class Unavailable(Exception):
    """The packages cannot be had here; the text says why."""


def _run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Unavailable(f"{' '.join(command[1:4])}: {lines[-1][:200]}")


def _make(folder, python):
    _run([sys.executable, "-m", "venv", "--clear", folder])
    _run([python] + PIP + PACKAGES)


def python_in(build):
    folder = os.path.join(os.path.abspath(build), "nvml-clients")
    python = os.path.join(folder, "bin", "python")
    ready = os.path.join(folder, "ready-" + "-".join(PACKAGES))
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(ready):
            _make(folder, python)
            open(ready, "w", encoding="ascii").close()
    return python


if __name__ == "__main__":
    try:
        print(python_in(sys.argv[1]))
    except Unavailable as unavailable:
        print(f"venv: {unavailable}", file=sys.stderr)
        sys.exit(77)
