#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes and links go down the table of rooms, and files say what they are.

Usage: check_layers.py [ROOT]

The table below is docs/architecture.md, "Rooms", as data: whoever moves an arrow moves it in both.
Checked for every room: each #include "..." and each other_dep in its meson.build must be in its row.
Checked for every C and Python file: a name that no other file has, and at most MAX_LINES lines; for C
also the SPDX line first. Tests and fuzz targets may look into any room.
"""
import os
import re
import sys

MAX_LINES = 900
LICENSES = {"": "Apache-2.0", "plugins/slurm/": "GPL-2.0-or-later"}

# Room: what it may use besides itself. base is implied; "build" is the generated takt_build.h and takt_commit.h;
# "takt" is include/takt, the installed headers.
ROOMS = {
    "base": [],
    "sched": [],
    "clock": ["takt"],
    "objects": ["clock"],
    "model": [],
    "rules": [],
    "codec": ["sched"],
    "config": ["build"],
    "store": [],
    "device": ["abi"],
    "actuate": ["clock", "device"],
    "telemetry": ["device", "takt"],
    "health": ["device"],
    "confine": [],
    "launch": ["confine"],
    "setup": ["config", "health", "launch"],
    "net": [],
    "rtt": [],
    "engine": ["sched", "codec", "store", "launch", "net"],
    "queue": ["sched", "model", "codec", "store", "engine"],
    "sim": ["sched", "clock", "objects", "model", "codec", "takt"],
    "server": ["codec", "net", "build"],
    "client": ["codec", "takt"],
    "top": ["client", "codec", "device"],
    "cli": ["client", "codec", "sim", "objects", "model", "config", "health", "rtt", "setup", "build", "takt"],
    "twin": ["abi"],
    "abi": [],
    "takt": [],
}
# Wiring only, hence everything but the twin.
ROOMS["daemon"] = [room for room in ROOMS if room not in ("twin", "takt")] + ["build"]
FOLDERS = {"twin": "twin", "abi": "include/abi", "takt": "include/takt"}
PURE_OF_BASE = {"abi", "takt"}  # headers for others: not even base

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<(takt/[^>]+)>)', re.M)
SPDX = re.compile(r"/\* SPDX-License-Identifier: (\S+) \*/")
DEP = re.compile(r"\b([a-z]+)_(?:dep|lib)\b")


def folder_of(room):
    return FOLDERS.get(room, "src/" + room)


def room_of(path):
    """The room that a file belongs to; None outside all rooms."""
    parts = path.split("/")
    if parts[0] == "twin":
        return "twin"
    if parts[0] == "include" and len(parts) > 2:
        return parts[1]
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return None


def may_use(room, other):
    if other == room or (other == "base" and room not in PURE_OF_BASE):
        return True
    return other in ROOMS[room]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def tree(root):
    """Paths of the files that are ours, relative to root."""
    for here, dirs, files in os.walk(root):
        dirs[:] = sorted(d for d in dirs if not d.startswith((".", "build", "__pycache__"))
                         and os.path.join(here, d) != os.path.join(root, "shared")
                         and not os.path.exists(os.path.join(here, d, "meson-private")))
        for name in sorted(files):
            yield os.path.relpath(os.path.join(here, name), root)


def included_room(target, room):
    """Whose header this is."""
    if target in ("takt_build.h", "takt_commit.h"):
        return "build"
    return target.split("/")[0] if "/" in target else room


def check_includes(path, text, problems):
    room = room_of(path)
    if room is None:
        return
    if room not in ROOMS:
        problems.append(f"{path}: room '{room}' has no row in tools/check_layers.py")
        return
    for match in INCLUDE.finditer(text):
        target = match.group(1) or match.group(2)
        line = text.count("\n", 0, match.start(1 if match.group(1) else 2)) + 1
        other = included_room(target, room)
        if ".." in target.split("/"):
            problems.append(f"{path}:{line}: includes '{target}' by a path with '..'")
        elif other != "build" and other not in ROOMS:
            problems.append(f"{path}:{line}: includes '{target}', which belongs to no room")
        elif not may_use(room, other):
            problems.append(f"{path}:{line}: {room} -> {other} is no arrow of the architecture "
                            f"(includes '{target}')")


def check_links(path, text, problems):
    room = room_of(path)
    if room not in ROOMS:
        return
    for number, line in enumerate(text.splitlines(), 1):
        for other in DEP.findall(line.split("#")[0]):
            if other in ROOMS and not may_use(room, other):
                problems.append(f"{path}:{number}: {room} -> {other} is no arrow of the "
                                f"architecture (links '{other}')")


def check_head(path, text, problems):
    if text.count("\n") > MAX_LINES:
        problems.append(f"{path}: {text.count(chr(10))} lines, more than {MAX_LINES}")
    if not path.endswith((".c", ".h")):
        return
    found = SPDX.fullmatch(text.split("\n", 1)[0])
    want = [name for prefix, name in sorted(LICENSES.items()) if path.startswith(prefix)][-1]
    if not found or found.group(1) != want:
        problems.append(f"{path}:1: the first line must be "
                        f"/* SPDX-License-Identifier: {want} */")


def check(root):
    problems, seen = [], {}
    for path in tree(root):
        name = os.path.basename(path)
        if name == "meson.build":
            check_links(path, read(root, path), problems)
        if not name.endswith((".c", ".h", ".py")):
            continue
        text = read(root, path)
        check_head(path, text, problems)
        if name in seen:
            problems.append(f"{path}: another file has this name: {seen[name]}")
        seen[name] = path
        if name.endswith((".c", ".h")):
            check_includes(path, text, problems)
    return problems, len(seen)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(__file__)) or "."
    problems, count = check(os.path.abspath(root))
    print("\n".join(problems) if problems else f"{count} files keep to their rooms")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
