#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library as a file: which symbols it exports, what it needs, and that the layouts it was
built with are those of nvidia-ml-py (BSD), an independent statement of the same ABI.

check_abi.py LIBRARY SYMBOLS FACTS BUILD_FOLDER
"""

import json
import os
import re
import subprocess
import sys

LIBRARY, SYMBOLS, FACTS, BUILD = sys.argv[1:5]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
sys.dont_write_bytecode = True

from twin_machine import main, tap  # noqa: E402

import nvml_facts  # noqa: E402
import venv  # noqa: E402

# Runs inside the virtual environment: size and (offset, size) of every field of each class.
DESCRIBE = """
import ctypes, json, sys, pynvml
def describe(name):
    cls = getattr(pynvml, name, None)
    if cls is None:
        return None
    fields = [(getattr(cls, f[0]).offset, ctypes.sizeof(f[1])) for f in cls._fields_]
    return [ctypes.sizeof(cls), fields]
json.dump({name: describe(name) for name in json.load(sys.stdin)}, sys.stdout)
"""

# Which structs of nvidia-ml-py are none of ours: patterns of names, each with the reason.
NOT_COMPARED = {
    r".*Vgpu.*|.*GridLicens.*": "virtual GPUs and their licences",
    r".*PRM.*|.*CPER.*|.*Rusd.*": "registers and records of the firmware",
    r".*PowerSmoothing.*|.*WorkloadPowerProfile.*|c_nvmlMask255_t": "power smoothing and profiles",
    r".*Perf(Metric|Model).*|.*PwrModel.*|.*PmgrPwr.*|.*Rail.*|.*Observed.*": "later than 13.x",
    r".*(Nv|NV)[Ll]ink(Info|Firmware|PowerThres).*|.*[Nn]vlink.*": "modes of links that are refused",
    r".*(PSUInfo|UnitFan|LedState|UnitInfo).*": "S-class units",
    r".*System(Register)?Event.*|.*GpuOperational.*|.*EventSet(Get|Wait_v3).*": "events that are refused",
    r".*ConfComputeGpu.*|.*KeyRotation.*|.*DramEncryption.*": "nothing to be attested or encrypted",
    r".*PlatformInfo.*|.*Hostname.*|.*BBXTime.*": "what the board would keep",
    r".*PerfModes.*|.*CurrentClockFreqs.*|.*PowerMizer.*|.*ClockOffset.*|.*FanSpeedInfo.*":
        "settings that are refused",
    r"nvmlClkMon.*|.*BridgeChip.*": "no board has it",
    r".*MemoryLimits.*|.*AdaptiveTgp.*|.*BankRemapper.*|.*FabricClique.*|.*FabricInfo_v4.*":
        "later than 13.x",
    r"c_nvmlComputeInstancePlacement_t": "as the placement of a GPU instance",
    r"c_nvmlGpmMetricsGet_t": "its array is as long as the header has metrics; only the head is ours",
    r"struct_c_nvml.*": "opaque",
    r"c_nvmlProcessInfo_v2_t": "as v3",
}

# Runs there, too: names of all structs.
LIST = """
import ctypes, json, pynvml
print(json.dumps(sorted(name for name, cls in vars(pynvml).items() if isinstance(cls, type)
    and issubclass(cls, ctypes.Structure) and cls.__module__ == "pynvml" and cls.__name__ == name
    and not name.startswith("_"))))
"""

SIZES = {"uint32_t": 4, "int32_t": 4, "uint64_t": 8, "int64_t": 8, "char": 1, "unsigned char": 1,
         "double": 8, "union nvml_value": 8}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def the_exported_symbols_are_those_of_the_branch():
    lines = output("nm", "-D", "--defined-only", LIBRARY).splitlines()
    exported = sorted(line.split()[-1] for line in lines)
    expected = sorted(open(SYMBOLS, encoding="ascii").read().split())
    assert exported == expected, (set(exported) ^ set(expected))


def the_library_has_the_drivers_name_and_needs_only_libc():
    dynamic = output("readelf", "-d", LIBRARY)
    assert "Library soname: [libnvidia-ml.so.1]" in dynamic, dynamic
    needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
    sanitizers = ("libasan", "libubsan", "libtsan")
    assert [n for n in needed if not n.startswith(sanitizers)] in (["libc.so.6"], []), needed


@tap.plain
def nothing_of_ours_runs_when_it_is_loaded():
    sections = output("readelf", "-SW", LIBRARY).splitlines()
    # one entry each: the compiler's own frame_dummy and __do_global_dtors_aux
    for section in (".init_array", ".fini_array"):
        for line in sections:
            if section in line:
                size = int(line.split(section)[1].split()[3], 16)
                assert size == 8, line


def size_of(struct_sizes, ctype, array):
    count = int(array.strip("[]")) if array else 1
    if ctype.endswith("*"):
        return 8 * count
    if ctype.startswith("struct "):
        return struct_sizes[ctype.split()[1]] * count
    return SIZES[ctype] * count


def the_layouts_are_those_of_nvidia_ml_py():
    facts = nvml_facts.read(FACTS)
    sizes = {struct.name: struct.size for struct in facts.structs}
    compared = [struct for struct in facts.structs if struct.py]
    try:
        python = venv.python_in(BUILD)
    except venv.Unavailable as unavailable:
        raise tap.Skip(f"nvidia-ml-py is not to be had: {unavailable}") from unavailable
    done = subprocess.run([python, "-c", DESCRIBE], input=json.dumps([s.py for s in compared]),
                          capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout)
    wrong = []
    for struct in compared:
        ours = [struct.size, [[offset, size_of(sizes, ctype, array)]
                              for ctype, _, array, offset in struct.fields]]
        if theirs[struct.py] != ours:
            wrong.append(f"{struct.name}: {ours}, {struct.py}: {theirs[struct.py]}")
    assert not wrong, "\n".join(wrong)
    assert len(compared) >= 25, len(compared)


def every_layout_of_nvidia_ml_py_is_compared_or_has_a_reason():
    facts = nvml_facts.read(FACTS)
    try:
        python = venv.python_in(BUILD)
    except venv.Unavailable as unavailable:
        raise tap.Skip(f"nvidia-ml-py is not to be had: {unavailable}") from unavailable
    compared = {struct.py for struct in facts.structs}
    left = [name for name in json.loads(output(python, "-c", LIST)) if name not in compared
            and not any(re.fullmatch(pattern, name) for pattern in NOT_COMPARED)]
    assert not left, left


def the_codes_are_those_of_nvidia_ml_py():
    facts = nvml_facts.read(FACTS)
    try:
        python = venv.python_in(BUILD)
    except venv.Unavailable as unavailable:
        raise tap.Skip(f"nvidia-ml-py is not to be had: {unavailable}") from unavailable
    listing = "import json, pynvml; print(json.dumps({k: v for k, v in vars(pynvml).items() " \
              "if k.startswith('NVML_') and isinstance(v, int)}))"
    theirs = json.loads(output(python, "-c", listing))
    wrong = {}
    for name, value, _ in facts.codes:
        full = "NVML_" + ("" if name == "SUCCESS" else "ERROR_") + name
        if theirs.get(full) != value:
            wrong[full] = (value, theirs.get(full))
    field_ids = {v for k, v in theirs.items() if k.startswith("NVML_FI_")}
    for prefix, values in facts.enums:
        if prefix == "NVML_FI_":
            wrong.update((name, value) for name, value in values if int(value) not in field_ids)
    assert not wrong, wrong


sys.exit(main([
    the_exported_symbols_are_those_of_the_branch,
    the_library_has_the_drivers_name_and_needs_only_libc,
    nothing_of_ours_runs_when_it_is_loaded,
    the_layouts_are_those_of_nvidia_ml_py,
    every_layout_of_nvidia_ml_py_is_compared_or_has_a_reason,
    the_codes_are_those_of_nvidia_ml_py,
]))
