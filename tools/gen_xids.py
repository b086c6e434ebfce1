#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C tables of XIDs out of data/health.

Usage: gen_xids.py OUTPUT CATALOG NVLINK5_RULES POLICY

A code's level, action and order are those of the policy where it has a row, and otherwise follow from
the catalogue's bucket for immediate action. Anything that is not understood ends the build.
"""
import sys

# Bucket: level, action, order (which of several at one time is the cause).
BUCKETS = {
    "IGNORE": ("info", "none", 7),
    "RESTART_APP": ("info", "restart-app", 7),
    "RESET_GPU": ("critical", "reset-gpu", 4),
    "RESTART_BM": ("critical", "reboot", 1),
    "RESTART_VM": ("warning", "reboot", 5),
    "UPDATE_SWFW": ("warning", "update-software", 5),
    "CHECK_MECHANICALS": ("critical", "check-power", 1),
    "CHECK_UVM": ("warning", "update-software", 5),
    "CONTACT_SUPPORT": ("warning", "contact-support", 5),
}
# Of the decode table: what XID 154 decides is left to it.
NVLINK5 = {
    "IGNORE": ("info", "none"),
    "RESET_GPU": ("critical", "reset-gpu"),
    "XID_154_EVAL": ("warning", "none"),
}
LEVELS = ("info", "warning", "critical")


def rows(path, columns):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    head = lines.pop(0)
    for line in lines:
        row = dict(zip(head, line + [""] * len(head)))
        yield [row[column] for column in columns]


def constant(prefix, word):
    return f"TAKT_{prefix}_{word.upper().replace('-', '_')}"


def text(words):
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


def xids(catalog, policy):
    own = {int(code): (level, action, int(order)) for code, level, action, order
           in rows(policy, ("code", "level", "action", "order"))}
    for code, mnemonic, description, bucket in rows(
            catalog, ("code", "mnemonic", "description", "immediate")):
        level, action, order = own[int(code)] if int(code) in own else BUCKETS[bucket]
        assert level in LEVELS, (code, level)
        used = "false" if description == "Unused" and int(code) not in own else "true"
        yield (f"\t{{{code}, {constant('LEVEL', level)}, {constant('REMEDY', action)}, {order}, "
               f"{used}, {text(mnemonic)}, {text(description)}}},")


def pattern(bits):
    """(mask, value) of a 32-bit pattern, the highest bit first."""
    assert len(bits) == 32 and set(bits) <= set("01-"), bits
    return (int(bits.replace("0", "1").replace("-", "0"), 2), int(bits.replace("-", "0"), 2))


def nvlink5(path):
    for xid, unit, v1, v2, status, bucket, further in rows(
            path, ("xid", "unit", "pattern_v1", "pattern_v2", "error_status", "immediate",
                   "investigatory")):
        level, action = NVLINK5[bucket]
        masks = ", ".join(f"{number:#x}" for number in pattern(v1) + pattern(v2))
        yield (f"\t{{{xid}, {text(unit)}, {masks}, {status}, {constant('LEVEL', level)}, "
               f"{constant('REMEDY', action)}, {text(further)}}},")


def main():
    output, catalog, rules, policy = sys.argv[1:]
    parts = [("struct takt_xid takt_xid_table", "takt_xid_count", list(xids(catalog, policy))),
             ("struct takt_nvlink5 takt_nvlink5_table", "takt_nvlink5_count", list(nvlink5(rules)))]
    with open(output, "w", encoding="utf-8") as file:
        file.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                   "/* Made by tools/gen_xids.py from data/health. */\n"
                   '#include "rules/xid_impl.h"\n')
        for name, count, lines in parts:
            file.write(f"\nconst {name}[] = {{\n" + "\n".join(lines) +
                       f"\n}};\nconst size_t {count} = {len(lines)};\n")


if __name__ == "__main__":
    main()
