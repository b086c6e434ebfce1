#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C code is laid out as .clang-format says. Usage: check_format.py [ROOT]

Skipped (exit status 77) without clang-format 14: other versions lay out differently.
"""
import os
import re
import shutil
import subprocess
import sys

import check_layers

WANTED = 14


def find_formatter():
    """Name of a clang-format of the wanted version, or None."""
    for name in ("clang-format", f"clang-format-{WANTED}"):
        if shutil.which(name):
            said = subprocess.run([name, "--version"], check=True, capture_output=True, text=True)
            version = re.search(r"version (\d+)", said.stdout)
            if version and int(version.group(1)) == WANTED:
                return name
    return None


def check(root):
    """The complaints, or None when nobody can tell."""
    formatter = find_formatter()
    if not formatter:
        return None
    paths = [path for path in check_layers.tree(root) if path.endswith((".c", ".h"))]
    done = subprocess.run([formatter, "--dry-run", "--Werror"] + paths, cwd=root,
                          capture_output=True, text=True, check=False)
    bad = re.findall(r"^(\S+:\d+):\d+: error", done.stderr, re.M)
    if done.returncode and not bad:
        return [done.stderr.strip()]
    return [f"{place}: not laid out as .clang-format says; run {formatter} -i" for place in bad]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(__file__)) or "."
    problems = check(os.path.abspath(root))
    if problems is None:
        print(f"clang-format {WANTED} is not installed")
        return 77
    print("\n".join(problems) if problems else "laid out as .clang-format says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
