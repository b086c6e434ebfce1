# SPDX-License-Identifier: Apache-2.0
"""Draws the text of a terminal as an SVG picture: tools/text_svg.py IN.txt OUT.svg

For the README: what a command really printed, in a form that a web page shows in fixed width. The first
line is the command; lines that speak of simulation are set apart, as a terminal would.
"""

import sys
from xml.sax.saxutils import escape

CHAR, LINE, PAD = 8.4, 18, 14


def colour(index, line):
    if index == 0:
        return "#8fd694"
    return "#e8b45a" if "SIMULATED" in line else "#d8dee9"


def draw(text):
    lines = text.rstrip("\n").split("\n")
    width = int(max(len(line) for line in lines) * CHAR + 2 * PAD)
    height = len(lines) * LINE + 2 * PAD
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#20242c"/>',
        '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">',
    ]
    for index, line in enumerate(lines):
        y = PAD + 13 + index * LINE
        out.append(
            f'<text x="{PAD}" y="{y}" fill="{colour(index, line)}" textLength="{len(line) * CHAR:.0f}">'
            f"{escape(line)}</text>" if line else ""
        )
    out += ["</g>", "</svg>"]
    return "\n".join(line for line in out if line) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: tools/text_svg.py IN.txt OUT.svg")
    with open(sys.argv[1], encoding="utf-8") as source:
        picture = draw(source.read())
    with open(sys.argv[2], "w", encoding="utf-8") as target:
        target.write(picture)


if __name__ == "__main__":
    main()
