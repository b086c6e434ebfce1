#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the units may do is no more than what is on record (bench/unit_security.py).

Usage: unit_rights.py BUILD_FOLDER
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

import tap  # noqa: E402


def no_unit_is_more_exposed_than_it_was():
    done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "../../bench/unit_security.py"), sys.argv[1]],
                          capture_output=True, text=True, check=False)
    if done.returncode == 77:
        raise tap.Skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(tap.main([no_unit_is_more_exposed_than_it_was]))
