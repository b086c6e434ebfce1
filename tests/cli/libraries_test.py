#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `takt` loads: the program itself nothing but what every program loads, the modules of its verbs nothing that only the
daemon, another module or a webhook needs. One call into a file of the daemon's would link all of it, and every verb would
wait for its TLS library.

Usage: libraries_test.py TAKT TAKT_TOP TAKT_CLI
"""
import subprocess
import sys

HEAVY = ("libmicrohttpd", "libgnutls", "libcurl")
OF_OTHERS = ("libsqlite3", "libnettle", "libz")  # what the terminal view has no use for
OWN = ("libcjson", "libhttp_parser")
NOT_FOR = (HEAVY + OF_OTHERS + OWN + ("libncurses", "libtinfo"), HEAVY + OF_OTHERS, HEAVY + ("libncurses",))


def needed(program):
    lines = subprocess.run(["readelf", "-dW", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]


failed = False
print(f"1..{len(NOT_FOR)}")
for number, (program, heavy) in enumerate(zip(sys.argv[1:], NOT_FOR, strict=True), 1):
    found = needed(program)
    good = found and not any(name.startswith(heavy) for name in found)
    failed |= not good
    print(f"{'ok' if good else 'not ok'} {number} - {program.rsplit('/', 1)[-1]} loads {' '.join(found)}")
sys.exit(failed)
