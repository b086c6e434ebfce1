# SPDX-License-Identifier: Apache-2.0
"""The scheduler plans the same whoever compiled it: gcc -O0, gcc -O2 and clang -O2, each over the
sources of the room and of what it needs of base, print one digest over many random histories.

Usage: same_plans.py SOURCE_ROOT MACHINES_C PROGRAM WAY

PROGRAM is what the build itself made of these sources, WAY how: one way less to compile here.
"""
import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

ROOT, MACHINES, PROGRAM, WAY = sys.argv[1:5]
TESTS = os.path.join(ROOT, "tests", "sched")
WAYS = ["gcc -O0", "gcc -O2", "clang -O2"]
BASE = ["err", "heap", "map", "mem", "parse_num", "rng", "sort", "str", "vec"]

SOURCES = (
    sorted(glob.glob(os.path.join(ROOT, "src", "sched", "*.c")))
    + sorted(glob.glob(os.path.join(ROOT, "src", "sched", "compare", "*.c")))
    + [os.path.join(ROOT, "src", "base", name + ".c") for name in BASE]
    + [os.path.join(TESTS, "digest_main.c"), os.path.join(TESTS, "sched_model.c"),
       os.path.join(TESTS, "cluster_story.c"), os.path.join(TESTS, "cluster_world.c"), MACHINES]
)


def compiled(way, folder):
    program = os.path.join(folder, way.replace(" ", ""))
    subprocess.run(
        [*way.split(), "-std=gnu17", "-D_GNU_SOURCE", "-fno-strict-aliasing", "-w",
         "-I" + os.path.join(ROOT, "src"), "-I" + TESTS, "-o", program] + SOURCES,
        check=True)
    return program


def digest(way, folder):
    """None where the compiler is not installed."""
    if way != WAY and not shutil.which(way.split()[0]):
        return None
    program = PROGRAM if way == WAY else compiled(way, folder)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def plans_the_same(way, made, first):
    if made is None:
        raise tap.Skip(f"{way.split()[0]} is not installed")
    tap.note(made)
    assert made == first, (made, first)


def main():
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        got = list(pool.map(lambda way: digest(way, folder), WAYS))
    first = next(filter(None, got), None)
    return tap.main((way, lambda way=way, made=made: plans_the_same(way, made, first)) for way, made in zip(WAYS, got))


if __name__ == "__main__":
    sys.exit(main())
