#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pages name is there: links and headings, files, settings, metrics, routes, scenarios, rooms.

Usage: check_docs.py [ROOT]

Of each page (*.md): a relative link leads to a file, its #anchor to a heading; a path that begins
with a folder of ours, and a source file named in `code`, exist. * and {a,b} may stand for several.
Words in capitals (tests/ROOM/test_SUBJECT.c) stand for anything.

Of pages that list what the program has (settings, metrics, routes, checks, scenarios, rooms, ...): nothing is left out.

Of the pages of docs/ and README.md: lines have at most 100 columns, tables too. Code is left as it is, and so is what
cannot be broken.
"""
import fnmatch
import os
import re
import sys

import check_layers

# Files that a page may name although they are in no tree: what a user calls his own, what --record writes.
NOT_OURS = {"train.py", "bench/results/steadiness.csv"}
HISTORY = "CHANGELOG.md"  # names what once was
WIDTH = 100
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
ANCHOR = re.compile(r'<a id="([^"]+)"')
SOURCE = re.compile(r"(?:[\w.*{},-]+/)*[\w.*{},-]+\.(?:c|h|\[ch\]|py|mjs|tsx?|tsv)")
PLACEHOLDER = re.compile(r"[A-Z]{3,}")


def pages(files):
    return [path for path in files if path.endswith(".md")]


def slug(heading):
    """The anchor that a heading has on the pages of a forge."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    found, fenced = set(ANCHOR.findall(text)), False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if not fenced and re.match(r"#{1,6} ", line):
            found.add(slug(line.lstrip("#")))
    return found


def patterns(word):
    """fnmatch patterns of a path with {a,b} and .[ch] in it."""
    group = re.search(r"\{([^{}]*)\}|\.\[(ch)\]", word)
    if not group:
        return [word]
    parts = group.group(1).split(",") if group.group(2) is None else ["." + end for end in group.group(2)]
    return [all_of for part in parts
            for all_of in patterns(word[:group.start()] + part + word[group.end():])]


class Tree:
    """The files of a tree, and whether it has what a page names."""

    def __init__(self, root):
        self.root = root
        self.files = [path for path in check_layers.tree(root) if "node_modules/" not in path]
        self.known = set(self.files)
        for path in self.files:
            while "/" in path:
                path = path.rsplit("/", 1)[0]
                self.known.add(path)
        self.tops = {path.split("/")[0] for path in self.files if "/" in path}
        self.text = {path: check_layers.read(root, path) for path in pages(self.files)}
        self.anchors = {path: anchors(text) for path, text in self.text.items()}

    def source(self, path):
        return check_layers.read(self.root, path) if path in self.known else ""

    def has(self, word):
        """A path from the root, or the end of one; a program counts by its source."""
        if word in NOT_OURS or word in self.known or word + ".c" in self.known:
            return True
        return all(any(fnmatch.fnmatch(path, one) or fnmatch.fnmatch(path, "*/" + one)
                       for path in self.files) for one in patterns(word))


def check_links(tree, page, number, line, problems):
    for target in LINK.findall(line):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if path not in tree.known:
            problems.append(f"{page}:{number}: there is no '{path}' to link to")
        elif anchor and anchor not in tree.anchors.get(path, ()):
            problems.append(f"{page}:{number}: '{path}' has no heading '#{anchor}'")


def named_paths(tree, line):
    """Words that begin with a folder of ours, wherever they stand, and source files in `code`."""
    tops = "|".join(sorted(map(re.escape, tree.tops)))
    if tops:
        yield from re.findall(rf"(?<![\w./$~-])((?:{tops})/[\w./*{{}},-]*(?:\w|[*}}]))", line)
    for code in CODE.findall(line):
        yield from (word for word in code.replace("(", " ").split() if SOURCE.fullmatch(word))


def check_paths(tree, page, number, line, problems):
    for word in dict.fromkeys(named_paths(tree, LINK.sub("]", line))):
        if not tree.has(word) and not PLACEHOLDER.search(word):
            problems.append(f"{page}:{number}: there is no '{word}'")


def told_after(text, begins):
    """Words in `code` of the paragraph that begins so."""
    found = re.search(rf"^{re.escape(begins)}(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    return set(CODE.findall(found[1])) if found else set()


def check_settings(tree, problems):
    """docs/administration.md says of each setting whether it needs a restart, as src/config does."""
    keys = re.findall(r'^\t\{"(\w+)", [A-Z]+, AT(.*?)\},\n', tree.source("src/config/config.c"),
                      re.M | re.S)
    page = "docs/administration.md"
    told = [told_after(tree.text.get(page, ""), begins) for begins in ("Need a restart:", "Count from the reload on:")]
    for key, rest in keys:
        live = rest.rstrip().endswith("true")
        right, wrong = told[live], told[not live]
        if not any(fnmatch.fnmatch(key, name) for name in right):
            problems.append(f"{page}: '{key}' {'counts from a reload on' if live else 'needs a restart'}"
                            ", and it does not say so")
        elif live and key in wrong:
            problems.append(f"{page}: '{key}' needs no restart, and it says so, too")
    for name in told[0] | told[1] if keys else ():
        if not any(fnmatch.fnmatch(key, name) for key, _ in keys):
            problems.append(f"{page}: there is no setting '{name}'")


def check_metrics(tree, problems):
    """docs/telemetry.md has every metric of takt's own, by its name behind takt_ or takt_gpu_ and the like."""
    page = "docs/telemetry.md"
    told = {code.split("{")[0] for code in CODE.findall(tree.text.get(page, ""))}
    for path in tree.files:
        if not path.startswith(("src/telemetry/page", "src/daemon/")):
            continue
        source = tree.source(path)
        if path.startswith("src/daemon/") and "takt_telemetry_gauge(" not in source:
            continue
        for name in sorted(set(re.findall(r'"(takt_[a-z_]+)"', source))):
            if told.isdisjoint((name, name.split("_", 1)[1], name.split("_", 2)[-1])):
                problems.append(f"{page}: no word of '{name}' ({path})")


# (page, files that it lists something of, what, regular expression for it in them)
LISTS = [
    ("docs/api.md", "src/server/routes.c", "route", r'"(/v1/[^"]+)"'),
    ("docs/doctor.md", "src/health/doctor.h", "check", r'\bX\(\w+, "([\w-]+)"'),
    ("docs/doctor.md", "src/rules/finding.c", "finding", r'\bRULE\(\w+, "([\w-]+)"'),
    ("docs/store.md", "src/store/store_schema.c", "table", r"CREATE TABLE (\w+)\("),
    ("docs/sched.md", "src/sched/sched_names.c", "reason", r'\[TAKT_WHY_(?!NONE)\w+\] = "(\w+)"'),
    ("docs/governors.md", "src/clock/governor_*.c", "governor", r'\.name = "([a-z-]+)"'),
]


def check_lists(tree, problems):
    for page, sources, what, pattern in LISTS:
        if page not in tree.text:
            continue
        names = [name for path in fnmatch.filter(tree.files, sources)
                 for name in re.findall(pattern, tree.source(path))]
        if not names:
            problems.append(f"tools/check_docs.py: no {what} in '{sources}' any more; where are they now?")
        for name in dict.fromkeys(names):
            if not re.search(rf"[`*]{re.escape(name)}[`*]", tree.text[page]):
                problems.append(f"{page}: no word of the {what} '{name}' ({sources})")


def check_scenarios(tree, problems):
    """Each scenario is in docs/research/sched-scenarios.md by its name or a pattern of it; -end means any beginning."""
    page, folder = "docs/research/sched-scenarios.md", "tests/sched/scenarios/"
    names = {path[len(folder):].split("/")[0] for path in tree.files if path.startswith(folder)}
    told = ["*" + code if code.startswith("-") else code for code in CODE.findall(tree.text.get(page, ""))]
    for name in sorted(names):
        if not any(fnmatch.fnmatch(name, one) for one in told):
            problems.append(f"{page}: no word of the scenario '{name}'")


def check_rooms(tree, problems):
    """The map's list is the table that check_layers.py goes by."""
    page = "docs/architecture.md"
    folders = {check_layers.folder_of(room): room for room in check_layers.ROOMS}
    items = re.sub(r"\n  (?=\S)", " ", tree.text.get(page, ""))
    for folder, may in re.findall(r"^- `([\w/]+)/`: .*?(?:May use ([^\n]*))?$", items, re.M):
        room = folders.get(folder)
        if room is None or room in ("abi", "takt", "daemon"):
            continue
        row = {other for other in check_layers.ROOMS[room] if other not in ("build", "takt")}
        said = set(re.sub(r"`[^`]*`|[,.]", "", may).split()) - {"base", "libc"}
        if said != row:
            problems.append(f"{page}: {folder} may use {' '.join(sorted(row)) or 'base alone'}, "
                            f"not {' '.join(sorted(said)) or 'base alone'}")


def check_base(tree, problems):
    """docs/architecture.md says of each header of src/base what it is for."""
    page = "docs/architecture.md"
    for path in fnmatch.filter(tree.files, "src/base/*.h") if page in tree.text else ():
        if f"`{os.path.basename(path)}`" not in tree.text[page]:
            problems.append(f"{page}: no word of '{os.path.basename(path)}'")


def check_front(tree, problems):
    """From README.md every page of docs/ is two steps away: its index has them all."""
    index, front = "docs/README.md", tree.text.get("README.md")
    if front is None or not any(page.startswith("docs/") for page in tree.text):
        return
    if f"({index})" not in front:
        problems.append(f"README.md: no link to '{index}'")
    for page in tree.text:
        if re.fullmatch(r"docs/(?:\w+/)?[\w-]+\.md", page) and page != index \
                and f"({page[len('docs/'):]}" not in tree.text.get(index, ""):
            problems.append(f"{index}: no link to '{page}'")


def can_be_broken(line):
    """Whether there is a blank outside of `code` and links, behind what a list's item begins with."""
    text = re.sub(r"^ *(?:[-*]|\d+\.) +", "", line).strip()
    return " " in re.sub(r"!?\[[^\]]*\]\([^)]*\)|`[^`]*`", "x", text)


def check_width(tree, problems):
    """Pages are read in terminals, too."""
    for page, text in tree.text.items():
        if page != "README.md" and not page.startswith("docs/"):
            continue
        fenced = False
        for number, line in enumerate(text.split("\n"), 1):
            fenced ^= line.startswith("```")
            if len(line) > WIDTH and not fenced and not line.startswith("    ") and can_be_broken(line):
                problems.append(f"{page}:{number}: {len(line)} columns, more than {WIDTH}")


def check(root):
    problems, tree = [], Tree(root)
    for page, text in tree.text.items():
        for number, line in enumerate(text.split("\n"), 1):
            check_links(tree, page, number, line, problems)
            if page != HISTORY:
                check_paths(tree, page, number, line, problems)
    for part in (check_settings, check_metrics, check_lists, check_scenarios, check_rooms, check_base,
                 check_front, check_width):
        part(tree, problems)
    return problems, f"{len(tree.text)} pages name what is there"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(__file__)) or "."
    problems, summary = check(os.path.abspath(root))
    print("\n".join(problems or [summary]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
