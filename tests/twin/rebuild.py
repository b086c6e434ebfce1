# SPDX-License-Identifier: Apache-2.0
"""Compiles what a build folder has compiled once more, with another compiler or other options."""

import concurrent.futures
import json
import os
import subprocess

# Targets of meson that make up the twin's library, without the stubs of a branch.
LIBRARY = ("src/base/libtakt-base.a", "twin/libtakt-twin-core.a", "twin/libtakt-twin-nvml.a")


def stubs(branch):
    return f"twin/lib/{branch}/libnvidia-ml.so.1"


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300,
                          **options)
    assert done.returncode == 0, (command[:6], done.returncode, done.stdout, done.stderr)
    return done.stdout


def _kept(command):
    """Of a compilation: where headers are and what is defined."""
    return [w for w in command.split() if w.startswith(("-I", "-D", "-std", "-fvisibility"))]


def objects(build, folder, compiler, options, *targets):
    """Object files in `folder` of all that `build` compiles for these targets, in any order."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = [entry for entry in json.load(file)
                   if entry["output"].startswith(tuple(f"{target}.p/" for target in targets))]
    assert entries, targets

    def compiled(entry):
        path = os.path.join(folder, entry["output"].replace("/", "_"))
        if not os.path.exists(path):
            output(compiler, *_kept(entry["command"]), *options, "-c", entry["file"], "-o", path,
                   cwd=entry["directory"])
        return path

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(compiled, entries))
