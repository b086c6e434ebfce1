#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes abi/nvml.h from nvml.facts:  gen_abi.py FACTS OUTPUT"""

import sys

import nvml_facts

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVML ABI as facts: return codes, enumerations, struct layouts and function types.
 *
 * Generated from nvml.facts; do not edit. Nothing here links to anything of NVIDIA's: callers look
 * symbols up at run time with the function types (`nvmlDeviceGetName_fn *get_name`), the simulated
 * driver defines them. Enumerated arguments are plain uint32_t, since drivers grow them; return
 * codes are plain int, since drivers return codes that this header does not know.
 */
#ifndef TAKT_ABI_NVML_H
#define TAKT_ABI_NVML_H

#include <stddef.h>
#include <stdint.h>

/* What an output says when the driver has no value: processes' memory, MIG instance ids. */
#define NVML_NO_VALUE_U32 UINT32_MAX
#define NVML_NO_VALUE_U64 UINT64_MAX

/* The word that a caller puts into the version field of a versioned struct. */
#define NVML_VERSION_WORD(size, version) ((uint32_t)(size) | (uint32_t)(version) << 24)

/* Opaque handles. Compare by value. */
struct nvml_device;
struct nvml_event_set;
struct nvml_gpm_sample;
struct nvml_gpu_instance;
struct nvml_compute_instance;
"""

VALUE = """
union nvml_value {
	double f64;
	uint32_t u32;
	unsigned long ulong;
	uint64_t u64;
	int64_t i64;
	int32_t i32;
};
"""


def branches(facts):
    yield "\n/* X(name, driver version, CUDA version, NVML version) */\n#define NVML_BRANCHES(X) \\\n"
    yield " \\\n".join(f'\tX("{n}", "{d}", {c}, "{v}")' for n, d, c, v in facts.branches) + "\n"


def codes(facts):
    yield "\n/* X(NAME, number, text of nvmlErrorString) */\n#define NVML_CODES(X) \\\n"
    yield " \\\n".join(f'\tX({n}, {v}, "{t}")' for n, v, t in facts.codes) + "\n"
    yield "\nenum nvml_return {\n"
    for name, value, _ in facts.codes:
        yield f"\tNVML_{'' if name == 'SUCCESS' else 'ERROR_'}{name} = {value},\n"
    yield "};\n"


def enums(facts):
    for prefix, values in facts.enums:
        if any(int(value, 0) > 0x7FFFFFFF for _, value in values):
            yield "\n" + "".join(f"#define {prefix}{n} {v}u\n" for n, v in values)
            continue
        yield "\nenum {\n" + "".join(f"\t{prefix}{n} = {v},\n" for n, v in values) + "};\n"


def structs(facts):
    for struct in facts.structs:
        yield f"\nstruct {struct.name} {{\n"
        for ctype, name, array, _ in struct.fields:
            gap = "" if ctype.endswith("*") else " "
            yield f"\t{ctype}{gap}{name}{array};\n"
        yield "};\n"
        yield f'_Static_assert(sizeof(struct {struct.name}) == {struct.size}, "{struct.name}");\n'
        for _, name, _, offset in struct.fields:
            yield (f"_Static_assert(offsetof(struct {struct.name}, {name}) == {offset}, "
                   f'"{struct.name}.{name}");\n')
        if struct.version:
            yield (f"#define {struct.name.upper()}_WORD "
                   f"NVML_VERSION_WORD({struct.size}, {struct.version})\n")


def functions(facts):
    yield "\n/* Function types: nvmlX_fn is the type of the function nvmlX. */\n"
    for func in facts.functions:
        gap = "" if func.returns.endswith("*") else " "
        yield f"typedef {func.returns}{gap}{func.name}_fn({func.arguments});\n"
    yield "\n/* X(name) for each function above. */\n#define NVML_FUNCTIONS(X) \\\n"
    yield " \\\n".join(f"\tX({func.name})" for func in facts.functions) + "\n"


def main():
    facts = nvml_facts.read(sys.argv[1])
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write(HEAD)
        for part in (branches, codes, enums):
            out.writelines(part(facts))
        out.write(VALUE)
        for part in (structs, functions):
            out.writelines(part(facts))
        out.write("\n#endif\n")


main()
