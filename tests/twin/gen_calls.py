#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a table of all functions that the twin implements, by what each argument is: so a test can
call every one of them with buffers of the right size, and with wrong ones.

gen_calls.py FACTS OUTPUT.h
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
sys.dont_write_bytecode = True

import nvml_facts  # noqa: E402

HANDLES = {"struct nvml_device *": "DEVICE", "struct nvml_gpu_instance *": "INSTANCE",
           "struct nvml_compute_instance *": "COMPUTE", "struct nvml_event_set *": "SET",
           "struct nvml_gpm_sample *": "SAMPLE"}
SIZES = {"char": 1, "uint32_t": 4, "int": 4, "uint64_t": 8, "unsigned long": 8}

# Arrays whose length another argument says.
ARRAYS = {"infos", "samples", "entries", "devices", "placements", "instances", "computes", "pids",
          "addresses", "timestamps", "mhz", "sessions", "pstates", "set", "values"}
# Arguments that must not be any number: they say how long a buffer is or how long to wait.
FIXED = {"words": "WORDS", "size": "BYTES", "count": "ENTRIES", "length": "LENGTH",
         "timeout_ms": "NOTHING"}
# Calls whose argument is of one of several layouts, told by their version words.
LAYOUTS = {"nvmlDeviceGetGpuFabricInfoV": ["nvml_fabric_info_v2", "nvml_fabric_info_v3"],
           "nvmlDeviceGetGpuInstanceProfileInfoV": ["nvml_gpu_instance_profile_v2",
                                                    "nvml_gpu_instance_profile_v3"],
           "nvmlDeviceGetGpuInstanceProfileInfoByIdV": ["nvml_gpu_instance_profile_v2",
                                                        "nvml_gpu_instance_profile_v3"],
           "nvmlGpuInstanceGetComputeInstanceProfileInfoV": ["nvml_compute_instance_profile_v2",
                                                             "nvml_compute_instance_profile_v3"]}
# They begin and end, return no code, or are nobody's but NVIDIA's.
LEFT_OUT = {"nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString",
            "nvmlInternalGetExportTable"}


def split(argument):
    match = re.fullmatch(r"(.*?)(\w+)", argument)
    return match[1].strip(), match[2]


def pointed(structs, ctype, name, counted):
    """(kind, size, version word) of an argument that is a pointer."""
    if ctype.startswith("const"):
        return ("TEXT_IN", 0, 0) if "char" in ctype else ("STRUCT_IN", 0, 0)
    target = ctype[:-1].strip()
    struct = structs.get(target.removeprefix("struct "))
    size = 8 if target.endswith("*") else struct.size if struct else SIZES[target]
    if target == "char":
        return "TEXT", 1, 0
    if name in ARRAYS and counted:
        return "ARRAY", size, 0
    if struct and struct.version:
        return "VERSIONED", size, size | struct.version << 24
    return "OUT" if name != "count" else "COUNT", size, 0


def kinds(structs, function, layout):
    arguments = [split(a.strip()) for a in function.arguments.split(",") if a.strip() != "void"]
    counted = any(name in ("count", "words", "size") for _, name in arguments)
    for ctype, name in arguments:
        if ctype in HANDLES:
            yield HANDLES[ctype], 0, 0
        elif ctype == "void *":
            yield "VERSIONED", layout.size, layout.size | layout.version << 24
        elif ctype.endswith("*"):
            yield pointed(structs, ctype, name, counted)
        else:
            yield FIXED.get(name, "NUMBER"), 0, 0


def main():
    facts = nvml_facts.read(sys.argv[1])
    structs = {struct.name: struct for struct in facts.structs}
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write("/* Generated from nvml.facts; do not edit. */\nstatic const struct row rows[] = {\n")
        for function in facts.functions:
            if function.name in LEFT_OUT:
                continue
            for layout in LAYOUTS.get(function.name, [None]):
                cells = ", ".join("{%s, %d, 0x%xu}" % cell
                                  for cell in kinds(structs, function, structs.get(layout)))
                out.write(f'\t{{"{function.name}", {{{cells}}}}},\n')
        out.write("};\n")


main()
