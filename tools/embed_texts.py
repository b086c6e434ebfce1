#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes texts down as C: the table of what takt init may write on a machine.

Usage: embed_texts.py OUT.c NAME=FILE...
"""
import sys


def quoted(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def main(target, *pairs):
    with open(target, "w", encoding="ascii") as out:
        out.write('#include "setup/setup_impl.h"\n\nconst struct takt_setup_text takt_setup_texts[] = {\n')
        for pair in pairs:
            name, source = pair.split("=", 1)
            with open(source, encoding="ascii") as file:
                text = "\n".join(map(quoted, file.read().splitlines()))
            out.write(f'{{"{name}",\n{text}}},\n')
        out.write("{0, 0}};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
