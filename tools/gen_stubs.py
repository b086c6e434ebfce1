#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the simulated driver's answers for functions that it exports and does not implement.

gen_stubs.py FACTS BRANCH SYMBOLS OUTPUT.c OUTPUT.map

SYMBOLS is the list of names that the driver branch exports. Those that the facts do not call
implemented become stubs: not initialised -> 1, else not supported -> 3. A stub of a function whose
prototype is not known takes no arguments, which the calling conventions of x86-64 and aarch64 allow.
The map makes the library export that list and nothing else, also nothing that newer branches have.
"""

import sys

import nvml_facts

HEAD = """\
/* Generated from the symbol list and nvml.facts; do not edit. */
#include "nvml_entry.h"

const char twin_library_branch[] = "%s", twin_library_version[] = "%s";

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
    (branch, _, _, version), = [entry for entry in facts.branches if entry[0] == sys.argv[2]]
    names = open(sys.argv[3], encoding="ascii").read().split()
    known = {function.name: function for function in facts.functions}
    with open(sys.argv[4], "w", encoding="ascii") as out:
        out.write(HEAD % (branch, version))
        for name in names:
            if name not in known or not known[name].implemented:
                out.write(stub(name, known.get(name)))
    with open(sys.argv[5], "w", encoding="ascii") as out:
        out.write("{\n\tglobal:\n")
        out.writelines(f"\t\t{name};\n" for name in names)
        out.write("\tlocal: *;\n};\n")


main()
