#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the simulated driver's answers for functions that it exports and does not implement.

gen_stubs.py FACTS SYMBOLS OUTPUT.c OUTPUT.map

SYMBOLS is the list of names that a driver branch exports. Functions that the facts call implemented
must be among them; all others become stubs: not initialised -> 1, else not supported -> 3. A stub
of a function whose prototype is not known takes no arguments, which the calling conventions of
x86-64 and aarch64 allow. The map makes the library export that list and nothing else.
"""

import sys

import nvml_facts

HEAD = """\
/* Generated from the symbol list and nvml.facts; do not edit. */
#include "nvml_entry.h"

static int unsupported(void)
{
	return twin_machine_map() ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED;
}
"""


def stub(name, function):
    if function:
        head, declaration = f"int {name}({function.arguments})", ""
    else:
        head, declaration = f"int {name}(void)", f"TAKT_API int {name}(void);\n"
    return f"\n{declaration}{head}\n{{\n\treturn unsupported();\n}}\n"


def main():
    facts = nvml_facts.read(sys.argv[1])
    names = open(sys.argv[2], encoding="ascii").read().split()
    known = {function.name: function for function in facts.functions}
    strange = sorted(set(known) - set(names))
    if strange:
        raise SystemExit(f"{sys.argv[1]}: not exported by this branch: {strange}")
    with open(sys.argv[3], "w", encoding="ascii") as out:
        out.write(HEAD)
        for name in names:
            if name not in known or not known[name].implemented:
                out.write(stub(name, known.get(name)))
    with open(sys.argv[4], "w", encoding="ascii") as out:
        out.write("{\n\tglobal:\n")
        out.writelines(f"\t\t{name};\n" for name in names)
        out.write("\tlocal: *;\n};\n")


main()
