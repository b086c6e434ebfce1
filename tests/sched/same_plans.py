# SPDX-License-Identifier: Apache-2.0
"""The scheduler plans the same whoever compiled it: gcc -O0, gcc -O2 and clang -O2, each over the
sources of the room and of what it needs of base, print one digest over many random histories.

Usage: same_plans.py SOURCE_ROOT MACHINES_C
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

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


def digest(compiler, level, folder):
    program = os.path.join(folder, compiler + level)
    subprocess.run(
        [compiler, level, "-std=gnu17", "-D_GNU_SOURCE", "-fno-strict-aliasing", "-w",
         "-I" + os.path.join(ROOT, "src"), "-I" + TESTS, "-o", program] + SOURCES,
        check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def main():
    first = None
    print("1..%d" % len(WAYS))
    with tempfile.TemporaryDirectory() as folder:
        for number, (compiler, level) in enumerate(WAYS, 1):
            name = "%d - %s %s" % (number, compiler, level)
            if not shutil.which(compiler):
                print("ok %s # SKIP %s is not installed" % (name, compiler))
                continue
            got = digest(compiler, level, folder)
            first = first or got
            print("%s %s" % ("ok" if got == first else "not ok", name))
            print("# %s" % got)


main()
