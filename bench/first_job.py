#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From `git clone` to a newcomer's first finished job: how many commands, how many seconds.

Types what README.md tells a newcomer to type, in two shells as in two terminals, and takes the time of each command. Packages
that `./run` finds missing are installed by it, as it would for the newcomer; which is said in the rows' "packages" metric.

With --root it is typed in a system of its own, such as a bare Debian with git and nothing else:
  debootstrap --variant=minbase --include=git bookworm /tmp/bare && mount --bind /proc /tmp/bare/proc && mount --bind /dev /tmp/bare/dev
where the repository has to be, too.

Usage: first_job.py [--source REPOSITORY] [--root FOLDER] [--record [FILE]]
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(SOURCE, "tools"))
import test_steady  # noqa: E402

JOB = "takt run -n 1 -- sh -c 'echo on GPU $CUDA_VISIBLE_DEVICES'"


class Terminal:
    """A shell in which somebody types."""

    def __init__(self, root, folder, env):
        inside = ["chroot", root] if root != "/" else []
        self.shell = subprocess.Popen([*inside, "bash", "-c", 'cd "$1" && exec bash', "bash", folder], env=env, text=True,
                                      bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      start_new_session=True)

    def type(self, command, end):
        """Types a line; the seconds and the lines until one that `end`, a regular expression, is found in."""
        lines, begin = [], time.monotonic()
        self.shell.stdin.write(command + "\n")
        for line in self.shell.stdout:
            lines.append(line)
            print(line, end="", flush=True)
            if re.search(end, line):
                return time.monotonic() - begin, lines
        sys.exit(f"first_job: the shell ended before '{end}' was seen")

    def close(self):
        try:
            os.killpg(self.shell.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        self.shell.wait()


def measure(source, root, folder, env):
    """[(command, seconds)], and how many packages had to be installed."""
    first, took = Terminal(root, folder, env), []
    try:
        for command, end in ((f"git clone -q {source} takt; echo cloned", "^cloned"), ("cd takt; echo there", "^there")):
            took.append((command.split(";")[0].replace(source, "REPOSITORY"), first.type(command, end)[0]))
        seconds, lines = first.type("./run", r"^    export ")
        took.append(("./run", seconds))
        missing = [line for line in lines if "packages to install:" in line]
        second = Terminal(root, os.path.join(folder, "takt"), env)
        try:
            export = lines[-1].strip()
            took.append(("export ...", second.type(export + "; echo set", "^set")[0]))
            seconds, lines = second.type(JOB + "; echo ended $?", "^ended")
            if lines[-1] != "ended 0\n" or not any(line.startswith("on GPU") for line in lines):
                sys.exit("first_job: the job did not end as it should")
            took.append((JOB, seconds))
        finally:
            second.close()
    finally:
        first.close()
    return took, len(missing[0].split(":")[-1].split()) if missing else 0


def main():
    parser = argparse.ArgumentParser(description="time from git clone to a newcomer's first finished job")
    parser.add_argument("--source", default=SOURCE, help="what is cloned (this checkout)")
    parser.add_argument("--root", default="/", help="the system in which it is done")
    parser.add_argument("--record", nargs="?", const=os.path.join(SOURCE, "bench/results/first_job.csv"), metavar="FILE")
    options = parser.parse_args()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TAKT_", "LD_"))}
    with tempfile.TemporaryDirectory(prefix="takt-first-", dir=os.path.join(options.root, "tmp"), ignore_cleanup_errors=True) as folder:
        inside = "/" + os.path.relpath(folder, options.root)
        took, packages = measure(os.path.abspath(options.source), options.root, inside, env)
    rows = [(command, round(seconds, 1), "s") for command, seconds in took]
    rows += [("in all", round(sum(seconds for _, seconds in took), 1), "s"), ("commands", len(took), "commands"),
             ("packages that ./run installed", packages, "packages")]
    for metric, value, unit in rows:
        print(f"{value:>8} {unit:8} {metric}")
    if options.record:
        test_steady.record(rows, "bench/first_job.py" + " --root BARE" * (options.root != "/") + " --record", options.record)


if __name__ == "__main__":
    main()
