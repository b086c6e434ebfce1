#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pure rooms read no clock, file, environment or global.

Usage: check_purity.py BUILD_FOLDER [SOURCE_FOLDER]

Looks at what is linked, on the plain build (no sanitizer, no coverage): all objects of each pure room,
those of folders in it too, and the objects of base that they pull, and theirs. Whatever these leave undefined must be in ALLOWED, and
nothing of theirs may lie in a section that can be written, but for what MUTABLE names with its reason.
"""
import glob
import os
import re
import subprocess
import sys

PURE_ROOMS = ("sched", "clock", "model", "rules")

# Pure functions of their arguments, and what the compiler adds. name: None, or the only objects that
# may use it.
ALLOWED = {name: None for name in """
    memcpy memmove memset memcmp memchr memrchr
    strlen strnlen strcmp strncmp strchr strrchr strchrnul strspn strcspn strpbrk strstr
    snprintf vsnprintf
    exp log pow sqrt sin cos sincos tanh
    __assert_fail __stack_chk_fail _GLOBAL_OFFSET_TABLE_
    __popcountsi2 __popcountdi2 __clzdi2 __ctzdi2 __udivti3 __umodti3 __divti3 __modti3 __multi3
""".split()}
ALLOWED.update({name: {"mem.c.o"} for name in ("malloc", "realloc", "calloc", "free")})
ALLOWED.update({name: {"err.c.o"} for name in ("strerrordesc_np", "strerrorname_np")})

# (object, symbol): reason.
MUTABLE = {
    ("mem.c.o", "calls"): "counts allocations for tests; no result depends on it",
    ("mem.c.o", "fail_at"): "armed by tests only",
    ("mem.c.o", "fail_on"): "armed by tests only",
}

WRITABLE = re.compile(r"\.(data|bss|tdata|tbss|init_array|fini_array|ctors|dtors)\b(?!\.rel\.ro)")
MEMBER = re.compile(r"^(?:Symbols from|Undefined symbols from) (.*)\[(.*)\]:$")
FORTIFIED = re.compile(r"__(\w+)_chk")


class Object:
    def __init__(self, name):
        self.name = name
        self.defined = set()
        self.undefined = set()
        self.writable = set()


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbol_lines(archive):
    """(member, name, class, section) of each symbol."""
    member = None
    for line in run("nm", "--format=sysv", archive).splitlines():
        found = MEMBER.match(line)
        if found:
            member = found.group(2)
        columns = [column.strip() for column in line.split("|")]
        if member and len(columns) == 7 and columns[0] != "Name":
            yield member.rsplit("/", 1)[-1], columns[0], columns[2], columns[6]


def load(archive):
    objects = {}
    for member, name, kind, section in symbol_lines(archive):
        obj = objects.setdefault(member, Object(member))
        if section == "*UND*":
            obj.undefined.add(name)
            continue
        if kind.isupper():
            obj.defined.add(name)
        if section == "*COM*" or (WRITABLE.search(section) and name != section):
            obj.writable.add(name)
    add_unnamed(archive, objects)
    return list(objects.values())


def add_unnamed(archive, objects):
    """Writable bytes that no symbol names count too."""
    member = None
    for line in run("size", "-A", archive).splitlines():
        found = re.match(r"^(\S+?)\s+\(ex (.*)\):$", line)
        if found:
            member = found.group(1).rsplit("/", 1)[-1]
        fields = line.split()
        if member and len(fields) == 3 and fields[1].isdigit() and int(fields[1]) > 0 \
                and WRITABLE.match(fields[0]):
            obj = objects.setdefault(member, Object(member))
            if not obj.writable:
                obj.writable.add(fields[0])


def closure(room, base):
    """The objects of the room and those of base that they need, directly or not."""
    linked = list(room)
    for obj in linked:
        for candidate in base:
            if candidate not in linked and candidate.defined & obj.undefined:
                linked.append(candidate)
    return linked


def allowed(name, user):
    fortified = FORTIFIED.fullmatch(name)
    users = ALLOWED.get(fortified.group(1) if fortified and name not in ALLOWED else name, set())
    return users is None or user in users


def check(room, base):
    linked = closure(room, base)
    defined = set().union(*(obj.defined for obj in linked))
    problems = []
    for obj in linked:
        for name in sorted(obj.undefined - defined):
            if not allowed(name, obj.name):
                problems.append(f"{obj.name} uses {name}, which a pure room may not")
        for name in sorted(obj.writable):
            if (obj.name, name) not in MUTABLE:
                problems.append(f"{obj.name} has writable {name}, which a pure room may not")
    return problems, [obj.name for obj in linked]


def archive_of(build, room):
    return os.path.join(build, "src", room, f"libtakt-{room}.a")


def parts_of(build, room):
    """The room's own archive, and those of the folders in it."""
    return [archive_of(build, room)] + sorted(
        glob.glob(os.path.join(build, "src", room, "*", "libtakt-*.a")))


def main():
    build = sys.argv[1]
    source = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.dirname(__file__))
    base, failed = None, False
    for room in PURE_ROOMS:
        if not glob.glob(os.path.join(source, "src", room, "*.c")):
            continue
        if not os.path.exists(archive_of(build, room)):
            print(f"{room} has sources, but there is no {archive_of(build, room)}")
            return 1
        base = base or load(archive_of(build, "base"))
        objects = [obj for archive in parts_of(build, room) for obj in load(archive)]
        problems, linked = check(objects, base)
        print(f"{room}: {' '.join(linked)}")
        print("".join(f"  {problem}\n" for problem in problems), end="")
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
