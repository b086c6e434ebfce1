# SPDX-License-Identifier: Apache-2.0
"""Writes the machines of topologies.json as C: gen_machines.py topologies.json machines.c"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    machines = json.load(file)["machines"]

lines = ['/* Generated from topologies.json. */', '#include "sched_kit.h"', '']
for number, machine in enumerate(machines.values()):
    rows = ",\n".join("\t" + ", ".join(str(score) for score in row) for row in machine["pair_score"])
    lines.append("static const int32_t scores_%d[] = {\n%s\n};" % (number, rows))
lines.append("const struct machine kit_machines[] = {")
for number, (name, machine) in enumerate(machines.items()):
    lines.append('\t{"%s", %d, scores_%d},' % (name, machine["gpus"], number))
lines.append("};")
lines.append("const size_t kit_machine_count = %d;" % len(machines))

with open(sys.argv[2], "w", encoding="utf-8") as file:
    file.write("\n".join(lines) + "\n")
