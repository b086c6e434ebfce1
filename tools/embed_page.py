#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a page of one file down as C: as it is and compressed, with its ETag and its Content-Security-Policy.

Scripts and styles stand in the page; the policy names each by its hash and allows nothing else. A page that could not
live with that (handlers or styles in attributes, another file's script) is refused here, not in somebody's browser.

Usage: embed_page.py index.html OUT.c
"""
import base64
import gzip
import hashlib
import html.parser
import sys

POLICY = ("default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


class Page(html.parser.HTMLParser):
    """The hashes of what stands inside <script> and <style>."""

    def __init__(self):
        super().__init__(convert_charrefs=False)
        self.hashes = {"script": [], "style": []}
        self.inside = None
        self.parts = []

    def handle_starttag(self, tag, attrs):
        for name, _ in attrs:
            if name == "style" or name.startswith("on"):
                sys.exit(f"{self.getpos()}: <{tag} {name}=...> would not be allowed by the page's policy")
        if tag == "script" and dict(attrs).get("src") or tag == "link" and dict(attrs).get("rel") == "stylesheet":
            sys.exit(f"{self.getpos()}: <{tag}> of another file; the page is to be one")
        if tag in self.hashes:
            self.inside, self.parts = tag, []

    def handle_data(self, data):
        self.parts.append(data)

    def handle_endtag(self, tag):
        if tag == self.inside:
            digest = hashlib.sha256("".join(self.parts).encode()).digest()
            self.hashes[tag].append(f"'sha256-{base64.b64encode(digest).decode()}'")
            self.inside = None


def policy(text):
    page = Page()
    page.feed(text)
    page.close()
    return POLICY.format(**{tag: " ".join(found) or "'none'" for tag, found in page.hashes.items()})


def array(name, data):
    lines = [",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def main(source, target):
    with open(source, "rb") as file:
        plain = file.read()
    packed = gzip.compress(plain, 9, mtime=0)
    etag = hashlib.sha256(plain).hexdigest()[:32]
    with open(target, "w", encoding="ascii") as out:
        out.write('#include "server/web_page.h"\n' + array("plain", plain) + array("packed", packed))
        out.write("const struct takt_web_page takt_web_page = {(const char *)plain, (const char *)packed, "
                  f'sizeof(plain), sizeof(packed), "\\"{etag}\\"",\n"{policy(plain.decode())}"}};\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
