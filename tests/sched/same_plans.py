# SPDX-License-Identifier: Apache-2.0
"""The scheduler plans the same whoever compiled it: gcc -O0, gcc -O2 and clang -O2, each over the
sources of the room and of what it needs of base, print one digest over many random histories.

Usage: same_plans.py SOURCE_ROOT MACHINES_C
"""
import functools
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

ROOT, MACHINES = sys.argv[1:3]
TESTS = os.path.join(ROOT, "tests", "sched")
WAYS = [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O2")]
BASE = ["err", "heap", "map", "mem", "parse_num", "rng", "sort", "str", "vec"]

SOURCES = (
    sorted(glob.glob(os.path.join(ROOT, "src", "sched", "*.c")))
    + sorted(glob.glob(os.path.join(ROOT, "src", "sched", "compare", "*.c")))
    + [os.path.join(ROOT, "src", "base", name + ".c") for name in BASE]
    + [os.path.join(TESTS, "digest_main.c"), os.path.join(TESTS, "sched_model.c"),
       os.path.join(TESTS, "cluster_story.c"), os.path.join(TESTS, "cluster_world.c"), MACHINES]
)


DIGESTS = {}  # by those who compiled it, in the order of WAYS


def plans_the_same(compiler, level):
    if not shutil.which(compiler):
        raise tap.Skip(f"{compiler} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "digest")
        done = subprocess.run([compiler, level, "-std=gnu17", "-D_GNU_SOURCE", "-fno-strict-aliasing", "-w",
                               "-I" + os.path.join(ROOT, "src"), "-I" + TESTS, "-o", program] + SOURCES,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        done = subprocess.run([program], check=True, capture_output=True, text=True)
    DIGESTS[compiler, level] = done.stdout.strip()
    assert done.stdout and len(set(DIGESTS.values())) == 1, DIGESTS


if __name__ == "__main__":
    sys.exit(tap.main((f"{compiler} {level}", functools.partial(plans_the_same, compiler, level)) for compiler, level in WAYS))
