#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the simulated driver's answers for functions that it exports and does not implement.

gen_stubs.py FACTS BRANCH SYMBOLS OUTPUT.c OUTPUT.map

SYMBOLS is the list of names that the driver branch exports. Those that the facts refuse become
stubs: not initialised -> 1; no valid device -> 2, a lost one -> 15; else the code of the refusal. A
stub takes the device alone, where the function has one as its first argument, which the calling
conventions of x86-64 and aarch64 allow. A name that the facts neither implement nor refuse is an
error. The map makes the library export that list and nothing else, also nothing that newer branches
have.
"""

import sys

import nvml_facts

HEAD = """\
/* Generated from the symbol list and nvml.facts; do not edit. */
#include "nvml_entry.h"

const char twin_library_branch[] = "%s", twin_library_version[] = "%s";
"""

# nvmlDevice... that do not begin with a device
WITHOUT_DEVICE = ("nvmlDeviceDiscoverGpus", "nvmlDeviceModifyDrainState", "nvmlDeviceQueryDrainState",
                  "nvmlDeviceRemoveGpu", "nvmlDeviceRemoveGpu_v2")


def stub(name, code):
    if name.startswith("nvmlDevice") and name not in WITHOUT_DEVICE:
        head = f"int {name}(struct nvml_device *device)"
        body = f"twin_refuse(device, NVML_ERROR_{code})"
    else:
        head = f"int {name}(void)"
        body = f"twin_machine_map() ? NVML_ERROR_{code} : NVML_ERROR_UNINITIALIZED"
    return f"\nTAKT_API {head};\n{head}\n{{\n\treturn {body};\n}}\n"


def main():
    facts = nvml_facts.read(sys.argv[1])
    (branch, _, _, version), = [entry for entry in facts.branches if entry[0] == sys.argv[2]]
    names = open(sys.argv[3], encoding="ascii").read().split()
    real = {function.name for function in facts.functions}
    with open(sys.argv[4], "w", encoding="ascii") as out:
        out.write(HEAD % (branch, version))
        for name in names:
            refusal = facts.refusal(name)
            if name not in real and not refusal:
                raise SystemExit(f"{sys.argv[1]}: neither func nor none: {name}")
            if name not in real:
                out.write(stub(name, refusal[0]))
    with open(sys.argv[5], "w", encoding="ascii") as out:
        out.write("{\n\tglobal:\n")
        out.writelines(f"\t\t{name};\n" for name in names)
        out.write("\tlocal: *;\n};\n")


main()
