#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `takt` loads before it has read its arguments: nothing that only the daemon, the terminal view or a webhook needs.
One call into a file of the daemon's would link all of it, and every verb would wait for its TLS library.

Usage: libraries_test.py TAKT TAKT_TOP
"""
import subprocess
import sys

HEAVY = ("libmicrohttpd", "libgnutls", "libcurl")


def needed(program):
    lines = subprocess.run(["readelf", "-dW", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]


failed = False
print("1..2")
for number, (program, heavy) in enumerate(((sys.argv[1], (*HEAVY, "libncurses")), (sys.argv[2], HEAVY)), 1):
    found = needed(program)
    good = found and not any(name.startswith(heavy) for name in found)
    failed |= not good
    print(f"{'ok' if good else 'not ok'} {number} - {program.rsplit('/', 1)[-1]} loads {' '.join(found)}")
sys.exit(failed)
