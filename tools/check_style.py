#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a reader should never meet: long functions, banned calls, work left for later.

Usage: check_style.py [ROOT]

Lengths are lines between the braces of a function; they rely on .clang-format's layout, in which a
function begins with "{" and ends with "}" in the first column. The median and the 90th percentile
are those of the program (src, twin, plugins); the maximum holds in tests as well.
"""
import os
import re
import sys

import check_layers

MEDIAN_MAX, P90_MAX, LINES_MAX, COLUMNS = 15, 45, 100, 100
PROGRAM = ("src/", "twin/", "plugins/")
CODE = PROGRAM + ("include/", "tests/", "fuzz/", "tools/")

# Functions: why not, and where they are allowed all the same (prefixes of paths).
BANNED = {
    "strcpy strcat sprintf vsprintf": ("writes without a limit", ("tests/",)),
    "gets": ("cannot be used safely", ()),
    "strncpy strncat": ("may leave text without an end; takt_strcpy", ()),
    "strtok": ("keeps a hidden state", ()),
    "atoi atol atoll atof": ("reports no error; takt_parse_*", ("tests/",)),
    "qsort qsort_r": ("is not stable; takt_sort", ()),
    "rand random srand srandom": ("depends on the libc; takt_rng", ()),
    "alloca": ("has no limit", ()),
    "tmpnam mktemp": ("races", ()),
    "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf":
        ("cannot be made to fail in a test; takt_alloc", ("src/base/mem.c", "twin/", "plugins/",
                                                          "tests/", "fuzz/", "tools/")),
    "printf puts putchar vprintf perror exit abort":
        ("a library neither prints nor ends the program", ("src/cli/", "src/tui/", "src/daemon/",
                                                           "twin/", "tests/", "fuzz/", "tools/")),
}
CALL = re.compile(r"(?<![\w.>])(?:" +
                  "|".join(name for names in BANNED for name in names.split()) + r")(?=\s*\()")
LATER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
CRASH_POINT = re.compile(r'\btakt_crash_point\(\s*"([^"]*)"')
CRASH_NAME = re.compile(r"[a-z_]+(\.[a-z0-9_]+)+")
PACE = re.compile(r"\bstruct takt_pace \w+ = \{")
PACES_PAGE = "docs/architecture.md"
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(match):
    """Comments and literals become blanks of the same shape, so that positions stay."""
    return re.sub(r"[^\n]", " ", match.group())


def functions(text):
    """(line, name, lines of the body) of each function in blanked C text."""
    lines = text.split("\n")
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 4):start])
            names = re.findall(r"(\w+)\s*\(", head[head.rfind(";") + 1:])
            yield start + 1, names[0] if names else "?", i - start - 1
            start = None


def why_banned(path, name):
    for names, (why, allowed) in BANNED.items():
        if name in names.split():
            return None if path.startswith(allowed) else why
    return None


def check_calls(path, code, problems):
    for match in CALL.finditer(code):
        why = why_banned(path, match.group())
        if why:
            line = code.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: {match.group()} {why}")


def check_lines(path, text, code, problems):
    for number, (line, bare) in enumerate(zip(text.split("\n"), code.split("\n")), 1):
        if len(line.expandtabs(8)) > COLUMNS and '"' not in line:
            problems.append(f"{path}:{number}: longer than {COLUMNS} columns")
        if line != line.rstrip():
            problems.append(f"{path}:{number}: blanks at the end of the line")
        if LATER.search(line):
            problems.append(f"{path}:{number}: work left for later; open an issue instead")
        if re.search(r"\btypedef\s+(struct|union)\b", bare):
            problems.append(f"{path}:{number}: typedef of a struct hides what it is")
    for match in TOKEN.finditer(text):
        if match.group().startswith("//"):
            line = text.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: comments that stay are /* like this */")


def check_crash_points(path, text, seen, problems):
    if not path.startswith(PROGRAM):
        return
    for match in CRASH_POINT.finditer(text):
        name = match.group(1)
        if not CRASH_NAME.fullmatch(name):
            problems.append(f"{path}: crash point '{name}' is not named room.place")
        if name in seen:
            problems.append(f"{path}: crash point '{name}' is also in {seen[name]}")
        seen[name] = path


def check_paces(path, code, page, problems):
    """What is asked for again and again is told on one page."""
    if path.startswith("src/") and PACE.search(code) and f"`{path[len('src/'):]}`" not in page:
        problems.append(f"{path}: has a pace that {PACES_PAGE} does not list")


def check_lengths(lengths, problems):
    lengths.sort()
    if not lengths:
        return "no functions"
    median, p90 = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
    if median > MEDIAN_MAX:
        problems.append(f"half of the functions are longer than {median} lines "
                        f"(at most {MEDIAN_MAX})")
    if p90 > P90_MAX:
        problems.append(f"a tenth of the functions are longer than {p90} lines (at most {P90_MAX})")
    return f"{len(lengths)} functions: median {median}, 90% up to {p90}, longest {lengths[-1]}"


def check(root):
    problems, lengths, crash_points = [], [], {}
    page = check_layers.read(root, PACES_PAGE) if os.path.exists(os.path.join(root, PACES_PAGE)) else ""
    for path in check_layers.tree(root):
        if not path.startswith(CODE) or not path.endswith((".c", ".h")):
            continue
        text = check_layers.read(root, path)
        code = TOKEN.sub(blank, text)
        check_calls(path, code, problems)
        check_lines(path, text, code, problems)
        check_crash_points(path, text, crash_points, problems)
        check_paces(path, code, page, problems)
        for line, name, length in functions(code):
            if length > LINES_MAX:
                problems.append(f"{path}:{line}: {name} has {length} lines, "
                                f"more than {LINES_MAX}")
            if path.startswith(PROGRAM):
                lengths.append(length)
    return problems, check_lengths(lengths, problems)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(__file__)) or "."
    problems, summary = check(os.path.abspath(root))
    print("\n".join(problems + [summary]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
