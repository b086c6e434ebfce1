# SPDX-License-Identifier: Apache-2.0
"""A simulated machine for one test case, and takt-twin run on it."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402
import waiting  # noqa: E402

TWIN = os.environ["TAKT_TWIN_BIN"]


class Machine:
    """with Machine("hgx-h100") as machine: ..."""

    def __init__(self, name, *options):
        self.name, self.options = name, options
        self.children = []

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="takt-twin-test.")
        self.path = os.path.join(self.folder.name, "m.twin")
        self.env = dict(os.environ, TAKT_TWIN=self.path)
        for name in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"):
            self.env.pop(name, None)
        done = self.run("create", self.name, "--path", self.path, *self.options)
        assert done.returncode == 0, done.stderr
        return self

    def __exit__(self, *exception):
        for child in self.children:
            child.kill()
            child.wait()
        self.folder.cleanup()

    def run(self, *arguments, **env):
        return subprocess.run([TWIN, *arguments], env=dict(self.env, **env), capture_output=True,
                              text=True, timeout=60, check=False)

    def machine_state(self):
        return json.loads(self.run("state", "--json").stdout)

    def state(self):
        return self.machine_state()["gpus"]

    def start_load(self, *arguments, gpu=0, out=False):
        """A load in the background, once it is registered on `gpu`."""
        child = subprocess.Popen([TWIN, "load", *arguments], env=self.env, text=True,
                                 stdout=subprocess.PIPE if out else subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.children.append(child)
        self.until(lambda: child.pid in [p["pid"] for p in self.state()[gpu]["processes"]])
        return child

    def until(self, condition):
        waiting.until(condition, lambda: f"it came about; the machine is {self.machine_state()}")


def main(cases):
    return tap.main(cases, tap.is_sanitized(os.environ["TAKT_TWIN_LIB"]))
