#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A virtual environment with unmodified NVML clients, made once and kept (tests/fetched.py).

As a program:  venv.py BUILD_FOLDER  prints the path of its python, or, when the packages cannot be
had, says why on the standard error and exits with 77. As a module: python_in(BUILD_FOLDER).
"""

import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fetched  # noqa: E402

# Named with their versions: what is tested changes with a commit, not with what was published meanwhile.
PACKAGES = ["nvidia-ml-py==13.615.71", "gpustat==1.1.1", "nvitop==1.7.2"]
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


def _python(folder):
    return os.path.join(folder, "bin", "python")


def _make(folder):
    _run([sys.executable, "-m", "venv", folder])
    _run([_python(folder)] + PIP + PACKAGES)


def python_in(build):
    versions = (sys.version, os.path.realpath(sys.executable), PACKAGES)
    return _python(fetched.kept(os.path.abspath(build), "nvml-clients", versions, _make))


if __name__ == "__main__":
    try:
        print(python_in(sys.argv[1]))
    except Unavailable as unavailable:
        print(f"venv: {unavailable}", file=sys.stderr)
        sys.exit(77)
