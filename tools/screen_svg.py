# SPDX-License-Identifier: Apache-2.0
"""Draws a terminal's screen with its colours as an SVG picture: tools/screen_svg.py IN.ansi OUT.svg

IN is what `tmux capture-pane -p -e` prints. For the documentation of programs that paint the whole
screen; tools/text_svg.py draws plain output.
"""
import re
import sys
from xml.sax.saxutils import escape

CHAR, LINE, PAD = 8.4, 18, 14
PLAIN, GROUND = "#d8dee9", "#20242c"
SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m|\x1b[()][0-9A-B]|[\x0e\x0f]")


RIGHT, ROW = (3, 4, 5, 7), (0, 1, 2, 0, 1, 2, 3, 3)  # of a braille character's eight dots


def is_braille(char):
    return 0x2800 <= ord(char) < 0x2900


def colour(index):
    """Of the 256: the cube and the greys; the first 16 are not used here."""
    if index >= 232:
        return "#" + f"{8 + 10 * (index - 232):02x}" * 3
    levels = (0, 95, 135, 175, 215, 255)
    index = max(index - 16, 0)
    return "#" + "".join(f"{levels[index // step % 6]:02x}" for step in (36, 6, 1))


def apply(style, codes):
    numbers = [int(code or 0) for code in codes.split(";")]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            style = {}
        elif code in (38, 48) and numbers[:1] == [5]:
            style = {**style, "fill" if code == 38 else "ground": colour(numbers[1])}
            numbers = numbers[2:]
        elif code == 1:
            style = {**style, "bold": True}
        elif code == 39:
            style = {name: value for name, value in style.items() if name != "fill"}
        elif code == 49:
            style = {name: value for name, value in style.items() if name != "ground"}
    return style


def runs(line, style):
    """[(text, style)] of a line, and the style at its end."""
    found, at = [], 0
    for match in SEQUENCE.finditer(line):
        if match.start() > at:
            found.append((line[at:match.start()], style))
        if match.group(1) is not None:
            style = apply(style, match.group(1))
        at = match.end()
    if at < len(line):
        found.append((line[at:], style))
    return found, style


def draw_run(text, style, x, y):
    width = len(text) * CHAR
    if "ground" in style:
        yield f'<rect x="{x:.1f}" y="{y - 13}" width="{width:.1f}" height="{LINE}" fill="{style["ground"]}"/>'
    if text.strip():
        yield from draw_text(text, style, x, y)


def draw_text(text, style, x, y):
    """Graphs of braille as dots of our own: fonts differ in the widths of theirs."""
    fill = style.get("fill", PLAIN)
    places = [f"M{x + i * CHAR + 1 + 4 * (dot in RIGHT):.0f} {y - 12 + 5 * ROW[dot]}h2v2h-2z"
              for i, char in enumerate(text) if is_braille(char)
              for dot in range(8) if ord(char) >> dot & 1]
    if places:
        yield f'<path fill="{fill}" d="{"".join(places)}"/>'
    words = "".join(" " if is_braille(char) else char for char in text)
    # Several blanks are a place, and no text: some browsers drop them and stretch what is left to the whole width.
    bold = ' font-weight="bold"' if "bold" in style else ""
    for part in re.finditer(r"\S+(?: \S+)*", words):
        yield (f'<text x="{x + part.start() * CHAR:.1f}" y="{y}" fill="{fill}"{bold} textLength="{len(part.group()) * CHAR:.1f}" '
               f'lengthAdjust="spacingAndGlyphs">{escape(part.group())}</text>')


def draw(text):
    lines = text.rstrip("\n").split("\n")
    columns = max(len(SEQUENCE.sub("", line)) for line in lines)
    width, height = int(columns * CHAR + 2 * PAD), len(lines) * LINE + 2 * PAD
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>',
           '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">']
    style = {}
    for index, line in enumerate(lines):
        found, style = runs(line, style)
        x = float(PAD)
        for part, its in found:
            out += draw_run(part, its, x, PAD + 13 + index * LINE)
            x += len(part) * CHAR
    return "\n".join(out + ["</g>", "</svg>"]) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: tools/screen_svg.py IN.ansi OUT.svg")
    with open(sys.argv[1], encoding="utf-8") as source:
        picture = draw(source.read())
    with open(sys.argv[2], "w", encoding="utf-8") as target:
        target.write(picture)


if __name__ == "__main__":
    main()
