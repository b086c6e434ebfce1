# SPDX-License-Identifier: Apache-2.0
"""Reads tables, examples and commands out of the pages of docs/, and types them as a reader would."""
import os
import re
import subprocess

import kit


def text(page):
    with open(os.path.join(kit.SOURCE, page), encoding="utf-8") as file:
        return file.read()


def tall_row(item, names):
    """The cells of an item of a list: what it begins with, then those that it names; "" for others."""
    first, *cells = re.split(r"\n  - ", re.sub(r"\n +(?! |- )", " ", item.strip()))
    said = dict(cell.split(": ", 1) for cell in cells)
    return [first, *(said.get(name, "") for name in names[1:])]


def table(page, first):
    """The rows (lists of cells) of the table whose heading begins with that cell. Where rows would be wider than a terminal it
    is a list, and its heading stands before it in a comment."""
    tall = re.search(rf"^<!-- table: ({re.escape(first)} \|.*) -->\n((?:(?:- |  ).*\n)+)", text(page), re.M)
    if tall:
        return [tall_row(item, tall[1].split(" | ")) for item in re.split(r"^- ", tall[2], flags=re.M)[1:]]
    rows = re.search(rf"^\| {re.escape(first)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text(page), re.M)
    assert rows, f"{page} has no table that begins with '{first}'"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows[1].splitlines()]


def code(cell):
    """What is written as code in a cell."""
    return [span.replace("\\|", "|") for span in re.findall(r"`([^`]+)`", cell)]


def commands(page):
    """The lines of the indented blocks, those that a backslash goes on with joined."""
    joined = text(page).replace("\\\n", " ")
    return [line[4:].strip() for line in joined.splitlines() if line.startswith("    ")]


class Reader:
    """Somebody at a shell, in a folder of his own, who sees these programs first."""

    def __init__(self, folder, env, *programs):
        self.folder = folder
        self.env = dict(env, HOME=folder, PATH=":".join([*programs, os.environ["PATH"]]))

    def type(self, line, seconds=2 * kit.WAIT_S):
        """What the line prints; it must succeed."""
        done = subprocess.run(["sh", "-c", line], env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=seconds, check=False)
        assert done.returncode == 0, (line, done)
        return done.stdout

    def has(self, name, script):
        """Puts a program of that name into the folder."""
        kit.write_program(os.path.join(self.folder, name), script)


def at_takt(m, folder="jobs"):
    """A reader beside a machine's takt."""
    return Reader(m.path(folder), m.env(), m.path("bin"), os.path.dirname(kit.TWIN))
