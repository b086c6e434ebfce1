#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles twin/boards/*.toml and twin/machines/*.toml into one C file of constant tables.

gen_twin_data.py OUTPUT BOARD.toml... -- MACHINE.toml...
"""

import os
import sys
import tomllib

FEATURES = ["row_remap", "retired_pages", "t_limit", "power_average", "mig", "memory_lock",
            "fabric", "sram_status", "jpeg_ofa", "conf_compute", "gsp", "memory_temp",
            "memory_power"]
LEVELS = {"PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}
MAX_LINKS = 18


def load(path):
    with open(path, "rb") as file:
        try:
            return os.path.splitext(os.path.basename(path))[0], tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise SystemExit(f"{path}: {error}") from error


def clocks(sm):
    count = (sm["max"] - sm["min"]) * 10 // sm["step_x10"] + 1
    return [sm["min"] + i * sm["step_x10"] // 10 for i in range(count)]


def text(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def numbers(values):
    return "{" + ", ".join(str(v) for v in values) + "}"


def features(path, names):
    unknown = set(names) - set(FEATURES)
    if unknown:
        raise SystemExit(f"{path}: unknown feature {sorted(unknown)}; known: {FEATURES}")
    return sum(1 << FEATURES.index(name) for name in names)


MIG_FIELDS = ["id", "number", "slices", "size", "count", "multiprocessors", "copies", "decoders",
              "jpegs", "ofas", "memory_mib"]
MAX_MIG_PROFILES = 8


def mig(path, rows):
    if len(rows) > MAX_MIG_PROFILES:
        raise SystemExit(f"{path}: {len(rows)} MIG profiles, at most {MAX_MIG_PROFILES}")
    for row in rows:
        if len(row) != len(MIG_FIELDS):
            raise SystemExit(f"{path}: MIG profile {row} should have {MIG_FIELDS}")
    return "{" + (", ".join(numbers(row) for row in rows) or "{0}") + "}"


def board(name, data):
    clock, power, thermal = data["clocks"], data["power"], data["thermal"]
    steps = clocks(clock["sm"])
    fields = {
        "id": text(name), "name": text(data["name"]), "part": text(data["part"]),
        "vbios": text(data["vbios"]), "inforom": text(data["inforom"]),
        "features": hex(features(name, data["features"])),
        "brand": "NVML_BRAND_" + data["brand"], "arch": data["arch"],
        "compute_major": data["compute"][0], "compute_minor": data["compute"][1],
        "cores": data["cores"], "bus_width": data["bus_width"],
        "pci_device": hex(data["pci_device"]), "pci_subsystem": hex(data["pci_subsystem"]),
        "pcie_gen": data["pcie_gen"], "pcie_width": data["pcie_width"],
        "memory_mib": data["memory_mib"], "reserved_mib": data["reserved_mib"],
        "bar1_mib": data["bar1_mib"],
        "nvlinks": data["nvlinks"], "nvlink_version": data["nvlink_version"],
        "nvlink_mbps": data["nvlink_mbps"],
        "clock_count": len(steps), "sm_mhz": numbers(steps),
        "idle_mhz": clock["idle"], "application_mhz": clock["application"],
        "memory_mhz": clock["memory"], "video_idle_mhz": clock["video"][0],
        "video_max_mhz": clock["video"][1], "idle_pstate": clock["idle_pstate"],
        "power_min_mw": power["min"], "power_default_mw": power["default"],
        "power_max_mw": power["max"], "idle_mw": power["idle"], "held_mw": power["held"],
        "dynamic_mw": power["dynamic"], "memory_mw": power["memory"],
        "memory_idle_mw": power["memory_idle"], "leak_mw_per_k": power["leak_per_k"],
        "slope_permille": data["voltage"]["slope_permille"],
        "floor_permille": data["voltage"]["floor_permille"],
        "ambient_c": thermal["ambient_c"], "k_per_kw": thermal["k_per_kw"],
        "tau_ms": thermal["tau_ms"], "gpu_max_c": thermal["gpu_max_c"],
        "slowdown_c": thermal["slowdown_c"], "shutdown_c": thermal["shutdown_c"],
        "memory_max_c": thermal["memory_max_c"],
        "memory_temp_permille": thermal["memory_temp"][0],
        "memory_temp_plus_c": thermal["memory_temp"][1],
        "t_limit_c": numbers(thermal["t_limit"]),
        "mig_count": len(data.get("mig", {}).get("profiles", [])),
        "mig": mig(name, data.get("mig", {}).get("profiles", [])),
    }
    return "\t{\n" + "".join(f"\t\t.{key} = {value},\n" for key, value in fields.items()) + "\t},\n"


def cpu_words(text_list):
    mask = 0
    for part in text_list.split(","):
        first, _, last = part.partition("-")
        for cpu in range(int(first), int(last or first) + 1):
            mask |= 1 << cpu
    return [hex(mask >> 64 * i & (1 << 64) - 1) for i in range(4)]


def links(data, gpu):
    """(to_switch, bus) of each link of one GPU, in link order."""
    if "switch_bus" in data:
        pairs = zip(data["switch_bus"], data["switch_links"])
        return [(1, bus) for bus, count in pairs for _ in range(count)]
    return [(0, data["bus"][peer]) for peer, count in enumerate(data["links"][gpu])
            for _ in range(count)]


def ancestor(data, a, b):
    if a == b:
        return 0
    if any(a in pair and b in pair for pair in data.get("pix", [])):
        return LEVELS["PIX"]
    return LEVELS[data["near"] if data["numa"][a] == data["numa"][b] else "SYS"]


def gpu_entry(data, gpu):
    count = len(data["bus"])
    ends = links(data, gpu)
    if len(ends) > MAX_LINKS:
        raise SystemExit(f"GPU {gpu} has {len(ends)} links, at most {MAX_LINKS}")
    return ("\t\t\t{"
            f".index = {gpu}, .bus = {data['bus'][gpu]:#x}, .module = {data['module'][gpu]}, "
            f".numa = {data['numa'][gpu]}, "
            f".cpus = {numbers(cpu_words(data['cpus'][data['numa'][gpu]]))}, "
            f".link_count = {len(ends)}, "
            f".links = {{{', '.join(f'{{{to}, {bus:#x}}}' for to, bus in ends)}}}, "
            f".ancestor = {numbers(ancestor(data, gpu, other) for other in range(count))}"
            "},\n")


def machine(name, data):
    gpus = "".join(gpu_entry(data, gpu) for gpu in range(len(data["bus"])))
    return (f"\t{{\n\t\t.name = {text(name)},\n\t\t.board = {text(data['board'])},\n"
            f"\t\t.gpu_count = {len(data['bus'])},\n\t\t.gpus = {{\n{gpus}\t\t}},\n\t}},\n")


def main():
    split = sys.argv.index("--")
    boards = [load(path) for path in sys.argv[2:split]]
    machines = [load(path) for path in sys.argv[split + 1:]]
    known = [name for name, _ in boards]
    for name, data in machines:
        if data["board"] not in known:
            raise SystemExit(f"machine {name}: no board '{data['board']}'; there are {known}")
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("/* Generated from twin/boards and twin/machines; do not edit. */\n"
                  '#include "twin_data.h"\n\n#include "abi/nvml.h"\n\n')
        out.write("const struct twin_board twin_boards[] = {\n")
        out.writelines(board(*entry) for entry in boards)
        out.write("};\nconst unsigned twin_board_count = "
                  f"{len(boards)};\n\nconst struct twin_machine_data twin_machines[] = {{\n")
        out.writelines(machine(*entry) for entry in machines)
        out.write(f"}};\nconst unsigned twin_machine_count = {len(machines)};\n")


main()
