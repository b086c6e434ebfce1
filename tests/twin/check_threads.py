#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The twin's library under ThreadSanitizer: built once more by clang, with the sixteen threads of
race_twin.c, and nothing else.

check_threads.py BUILD_FOLDER SOURCE_FOLDER
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import rebuild  # noqa: E402
from twin_machine import Machine, main, tap  # noqa: E402

BUILD, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
ROUNDS = "400" if os.environ.get("TAKT_TEST_LONG") else "40"
OPTIONS = ["-fsanitize=thread", "-O1", "-g"]


def sixteen_threads_do_not_race():
    if not shutil.which("clang"):
        raise tap.Skip("there is no clang")
    with tempfile.TemporaryDirectory(prefix="takt-threads.") as folder, \
            Machine("hgx-h100", "--gpus", "2") as machine:
        program = os.path.join(folder, "race")
        parts = rebuild.objects(BUILD, folder, "clang", OPTIONS, *rebuild.LIBRARY,
                                rebuild.stubs("550"))
        rebuild.output("clang", *OPTIONS, "-std=gnu17", "-D_GNU_SOURCE", f"-I{BUILD}/include",
                       f"-I{SOURCE}/src", f"-I{SOURCE}/twin", f"{SOURCE}/tests/twin/race_twin.c",
                       *parts, "-lpthread", "-ldl", "-o", program)
        machine.start_load("--gpus", "0", gpu=0)
        done = subprocess.run([program, ROUNDS], capture_output=True, text=True, check=False,
                              timeout=300, env=dict(machine.env, TSAN_OPTIONS="halt_on_error=0"))
        report = done.stdout + done.stderr
        assert done.returncode == 0 and "WARNING: ThreadSanitizer" not in report, report[:6000]
        assert f"{8 * 4 * int(ROUNDS)} changes, 0 failures" in report, report[:6000]


sys.exit(main([sixteen_threads_do_not_race]))
