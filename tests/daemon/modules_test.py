#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program `takt` loads the module of a verb, from its own folder or where takt was installed, and tells what is wrong
where it cannot.

Usage: modules_test.py TAKT
"""
import functools
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

BUILT = os.path.dirname(os.path.abspath(sys.argv[1]))
UNAVAILABLE = 69


def run(folder, *words, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith("TAKT_")}
    return subprocess.run([os.path.join(folder, "takt"), *words], capture_output=True, text=True, check=False, cwd=folder,
                          env=dict(env, **more))


def fails(folder, module, *words):
    done = run(folder, *words)
    assert done.returncode == UNAVAILABLE and not done.stdout, done
    assert done.stderr.startswith("takt: ") and os.path.join(folder, module) in done.stderr, done
    assert len(done.stderr.splitlines()) == 1, done


def without_the_view(folder):
    shutil.copy2(os.path.join(BUILT, "takt-cli.so"), folder)
    fails(folder, "takt-top.so", "top", "--once", "--driver")
    assert run(folder, "version").returncode == 0


def no_module(folder):
    with open(os.path.join(folder, "takt-cli.so"), "w", encoding="ascii") as file:
        file.write("no module\n")
    fails(folder, "takt-cli.so", "version")
    fails(folder, "takt-cli.so")


def no_entry(folder):
    """A shared object of another's: any that the program was linked with."""
    libraries = subprocess.run(["ldd", os.path.join(BUILT, "takt-cli.so")], capture_output=True, text=True, check=True).stdout
    (found,) = (line.split()[2] for line in libraries.splitlines() if line.split()[0].startswith("libcjson"))
    shutil.copy(found, os.path.join(folder, "takt-cli.so"))
    fails(folder, "takt-cli.so", "version")


def found_nowhere_else(folder):
    """Neither the environment nor the folder that one is in says what is loaded."""
    for name in ("takt-cli.so", "takt-top.so"):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write("no module\n")
    program = os.path.join(BUILT, "takt")
    expected = subprocess.run([program, "version"], capture_output=True, check=True).stdout
    done = subprocess.run([program, "version"], capture_output=True, check=True, cwd=folder,
                          env=dict(os.environ, LD_LIBRARY_PATH=folder, PATH=folder, TAKT_LIBEXECDIR=folder))
    assert done.stdout == expected, done


def one_help(_):
    """The module with the view knows the verb as the one with all verbs does."""
    here, there = run(BUILT, "top", "--help"), run(BUILT, "help", "top")
    assert here.returncode == there.returncode == 0 and here.stdout == there.stdout and "--each-line" in here.stdout, here


def helpers_tell_how_they_are_called(_):
    for name in ("takt-launch", "takt-shim", "takt-actuate", "takt-guard"):
        done = subprocess.run([os.path.join(BUILT, name), "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.lower().startswith(f"usage: {name} ") and not done.stderr, done


def with_a_copy(case):
    """The case has the program alone in a folder of its own."""
    @functools.wraps(case)
    def wrapped():
        with tempfile.TemporaryDirectory(prefix="tk-") as folder:
            shutil.copy2(os.path.join(BUILT, "takt"), folder)
            case(folder)
    return wrapped


if __name__ == "__main__":
    sys.exit(tap.main(map(with_a_copy, [without_the_view, no_module, no_entry, found_nowhere_else, one_help,
                                      helpers_tell_how_they_are_called])))
