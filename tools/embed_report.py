#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the page of results down as C, in two parts: what stands before its document and what stands behind it.

The page carries its Content-Security-Policy itself. One that does not name exactly the script and the style that stand
in it, or that would let anything be fetched, is refused here, not in somebody's browser.

Usage: embed_report.py report.html OUT.c
"""
import html.parser
import sys

from embed_page import Page, array

MARK = '<script type="application/json" id="document">', "</script>"


class Policy(html.parser.HTMLParser):
    """What the page's own <meta> says, by directive."""

    def __init__(self):
        super().__init__()
        self.directives = {}

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy":
            for directive in attrs["content"].split(";"):
                name, *values = directive.split()
                self.directives[name] = values


def check(text):
    page, policy = Page(), Policy()
    for parser in (page, policy):
        parser.feed(text)
        parser.close()
    data, *scripts = page.hashes["script"]
    expected = {"default-src": ["'none'"], "script-src": scripts, "style-src": page.hashes["style"], "img-src": ["data:"],
                "base-uri": ["'none'"], "form-action": ["'none'"]}
    if policy.directives != expected:
        sys.exit(f"the page's policy is {policy.directives}, not {expected}; its document is {data}")


def main(source, target):
    with open(source, encoding="utf-8", newline="") as file:
        text = file.read()
    check(text)
    before, mark, rest = text.partition(MARK[0])
    document, end, behind = rest.partition(MARK[1])
    if not mark or document.strip():
        sys.exit(f"{source} has no place for a document: {MARK[0]}{MARK[1]}")
    with open(target, "w", encoding="ascii") as out:
        out.write('#include "cli/report_page.h"\n')
        out.write(array("before", (before + mark).encode()) + array("behind", (end + behind).encode()))
        out.write("const struct takt_report_parts takt_report_parts = {before, behind, sizeof(before), sizeof(behind)};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
