#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `takt` loads: the program itself nothing but what every program loads, the modules of its verbs nothing that only the
daemon, another module or a webhook needs. One call into a file of the daemon's would link all of it, and every verb would
wait for its TLS library.

Usage: libraries_test.py TAKT TAKT_TOP TAKT_CLI
"""
import functools
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

HEAVY = ("libmicrohttpd", "libgnutls", "libcurl")
OF_OTHERS = ("libsqlite3", "libnettle", "libz")  # what the terminal view has no use for
OWN = ("libcjson", "libhttp_parser")
NOT_FOR = (HEAVY + OF_OTHERS + OWN + ("libncurses", "libtinfo"), HEAVY + OF_OTHERS, HEAVY + ("libncurses",))


def needed(program):
    lines = subprocess.run(["readelf", "-dW", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]


def loads_nothing_heavy(program, heavy):
    found = needed(program)
    assert found and not any(name.startswith(heavy) for name in found), f"loads {' '.join(found)}"


if __name__ == "__main__":
    sys.exit(tap.main((f"{os.path.basename(program)} loads nothing heavy", functools.partial(loads_nothing_heavy, program, heavy))
                      for program, heavy in zip(sys.argv[1:], NOT_FOR, strict=True)))
