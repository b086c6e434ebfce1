#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boards compared with what real ones answered, field by field.

For each captured board, what a client reads over NVML from a simulated one at rest is compared with
the capture: equal values, ranges for readings that no two boards share, and N/A where the real board
says N/A. Whether `takt-twin board --from` makes a board of a capture that answers the same is part
of the comparison.

check_captures.py CAPTURE_FOLDER
"""

import ctypes
import gzip
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True

from twin_machine import Machine, main, tap, TWIN  # noqa: E402

FOLDER = sys.argv[1]
NOT_SUPPORTED = 3
CAPTURES = {"a100": "dgx-a100", "t4": "t4-4", "l40s": "l40s-8", "b200": "hgx-b200",
            "h100": "hgx-h100"}
# Memory, core and display counts that a capture does not have come from elsewhere.
READER = os.path.abspath(__file__)


class Nvml:
    """The calls behind each line of nvidia-smi, by ctypes: no client of ours in between."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ["TAKT_TWIN_LIB"])
        assert self.library.nvmlInit_v2() == 0
        self.device = ctypes.c_void_p()
        assert self.call("HandleByIndex_v2", 0, ctypes.byref(self.device)) == 0

    def call(self, name, *arguments):
        return getattr(self.library, "nvmlDeviceGet" + name)(*arguments)

    def numbers(self, name, count, *arguments, type=ctypes.c_uint):
        out = [type() for _ in range(count)]
        code = self.call(name, self.device, *arguments, *map(ctypes.byref, out))
        return "N/A" if code == NOT_SUPPORTED else [x.value for x in out] if code == 0 else code

    def number(self, name, *arguments):
        found = self.numbers(name, 1, *arguments)
        return found[0] if isinstance(found, list) else found

    def text(self, name, *arguments):
        buffer = ctypes.create_string_buffer(96)
        code = self.call(name, self.device, *arguments, buffer, 96)
        return "N/A" if code == NOT_SUPPORTED else buffer.value.decode() if code == 0 else code

    def field(self, number, scope=0):
        class Value(ctypes.Structure):
            _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("time", ctypes.c_longlong),
                        ("latency", ctypes.c_longlong), ("type", ctypes.c_uint),
                        ("code", ctypes.c_uint), ("value", ctypes.c_longlong)]
        value = Value(id=number, scope=scope)
        assert self.call("FieldValues", self.device, 1, ctypes.byref(value)) == 0
        if value.code == NOT_SUPPORTED:
            return "N/A"
        assert value.code == 0, (number, value.code)
        return ctypes.c_int(value.value & 0xffffffff).value

    def clocks(self):
        def listed(name, *arguments):
            count, out = ctypes.c_uint(1024), (ctypes.c_uint * 1024)()
            assert self.call(name, self.device, *arguments, ctypes.byref(count), out) == 0
            return list(out[:count.value])
        return {memory: listed("SupportedGraphicsClocks", memory)
                for memory in listed("SupportedMemoryClocks")}

    def pci(self):
        class Pci(ctypes.Structure):
            _fields_ = [("legacy", ctypes.c_char * 16), ("domain", ctypes.c_uint),
                        ("bus", ctypes.c_uint), ("slot", ctypes.c_uint), ("id", ctypes.c_uint),
                        ("subsystem", ctypes.c_uint), ("bus_id", ctypes.c_char * 32)]
        pci = Pci()
        assert self.call("PciInfo_v3", self.device, ctypes.byref(pci)) == 0
        return f"{pci.id:08X}", f"{pci.subsystem:08X}"

    def memory(self):
        class Memory(ctypes.Structure):
            _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong),
                        ("reserved", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                        ("used", ctypes.c_ulonglong)]
        memory = Memory(version=0x2000000 | ctypes.sizeof(Memory))
        assert self.call("MemoryInfo_v2", self.device, ctypes.byref(memory)) == 0
        return memory.total >> 20, memory.reserved >> 20, memory.used >> 20

    def bar1(self):
        found = (ctypes.c_ulonglong * 3)()
        assert self.call("BAR1MemoryInfo", self.device, found) == 0
        return found[0] >> 20

    def histogram(self):
        found = (ctypes.c_uint * 5)()
        code = self.call("RowRemapperHistogram", self.device, found)
        return "N/A" if code == NOT_SUPPORTED else found[0]


def read_all():
    """Everything that is compared, named by its path in the capture."""
    nvml = Nvml()
    total, reserved, used = nvml.memory()
    device, subsystem = nvml.pci()
    limits = nvml.numbers("PowerManagementLimitConstraints", 2)
    answers = {
        "product_name": nvml.text("Name"),
        "board_part_number": nvml.text("BoardPartNumber"),
        "inforom_version/img_version": nvml.text("InforomImageVersion"),
        "inforom_version/oem_object": nvml.text("InforomVersion", 0),
        "inforom_version/ecc_object": nvml.text("InforomVersion", 1),
        "inforom_version/pwr_object": nvml.text("InforomVersion", 2),
        "serial": nvml.text("Serial"),
        "pci/pci_device_id": device, "pci/pci_sub_system_id": subsystem,
        "pci/pci_gpu_link_info/pcie_gen/max_link_gen": nvml.number("MaxPcieLinkGeneration"),
        "pci/pci_gpu_link_info/pcie_gen/current_link_gen": nvml.number("CurrPcieLinkGeneration"),
        "pci/pci_gpu_link_info/link_widths/max_link_width": nvml.number("MaxPcieLinkWidth"),
        "fb_memory_usage/total": total, "fb_memory_usage/reserved": reserved,
        "fb_memory_usage/used": used, "bar1_memory_usage/total": nvml.bar1(),
        "mig_mode/current_mig": mode(nvml.numbers("MigMode", 2)),
        "ecc_mode/current_ecc": mode(nvml.numbers("EccMode", 2)),
        "fan_speed": nvml.number("FanSpeed"),
        "retired_pages/pending_retirement": yes_no(nvml.number("RetiredPagesPendingStatus")),
        "remapped_rows/remapped_row_corr": first(nvml.numbers("RemappedRows", 4)),
        "remapped_rows/row_remapper_histogram/row_remapper_histogram_max": nvml.histogram(),
        "gsp_firmware_version": nvml.text("GspFirmwareVersion")
        if nvml.numbers("GspFirmwareMode", 2) != "N/A" else "N/A",
        "temperature/gpu_temp": nvml.number("Temperature", 0),
        "temperature/memory_temp": nvml.field(82),
        "temperature/gpu_temp_max_tlimit_threshold": nvml.field(193),
        "temperature/gpu_temp_slow_tlimit_threshold": nvml.field(194),
        "temperature/gpu_temp_max_gpu_tlimit_threshold": nvml.field(196),
        "temperature/gpu_temp_max_threshold": nvml.number("TemperatureThreshold", 0),
        "temperature/gpu_temp_slow_threshold": nvml.number("TemperatureThreshold", 1),
        "temperature/gpu_temp_max_mem_threshold": nvml.number("TemperatureThreshold", 2),
        "temperature/gpu_temp_max_gpu_threshold": nvml.number("TemperatureThreshold", 3),
        "gpu_power_readings/average_power_draw": nvml.field(185),
        "gpu_power_readings/instant_power_draw": nvml.field(186),
        "gpu_power_readings/current_power_limit": nvml.number("PowerManagementLimit"),
        "gpu_power_readings/default_power_limit": nvml.number("PowerManagementDefaultLimit"),
        "gpu_power_readings/min_power_limit": limits[0],
        "gpu_power_readings/max_power_limit": limits[1],
        "gpu_memory_power_readings/average_power_draw": nvml.field(185, 2),
        "module_power_readings/average_power_draw": nvml.field(185, 1),
        "clocks/sm_clock": nvml.number("ClockInfo", 1),
        "clocks/mem_clock": nvml.number("ClockInfo", 2),
        "clocks/video_clock": nvml.number("ClockInfo", 3),
        "applications_clocks/graphics_clock": nvml.number("ApplicationsClock", 0),
        "max_clocks/sm_clock": nvml.number("MaxClockInfo", 1),
        "max_clocks/mem_clock": nvml.number("MaxClockInfo", 2),
        "max_clocks/video_clock": nvml.number("MaxClockInfo", 3),
        "max_customer_boost_clocks/graphics_clock": nvml.number("MaxCustomerBoostClock", 0),
        "performance_state": f"P{nvml.number('PerformanceState')}",
        "utilization/gpu_util": 0, "supported_clocks": nvml.clocks(),
    }
    return answers


def first(found):
    return found[0] if isinstance(found, list) else found


def mode(found):
    return {"N/A": "N/A", 0: "Disabled", 1: "Enabled"}[first(found)]


def yes_no(found):
    return {"N/A": "N/A", 0: "No", 1: "Yes"}[found]


def captured(name):
    with gzip.open(os.path.join(FOLDER, name + ".xml.gz")) as file:
        return file.read()


def of_capture(text):
    """The same names, from the first GPU of the capture."""
    gpu = ElementTree.fromstring(text).find("gpu")
    found = {"supported_clocks": {
        int(memory.findtext("value").split()[0]):
            [int(x.text.split()[0]) for x in memory.findall("supported_graphics_clock")]
        for memory in gpu.find("supported_clocks")}}

    def walk(element, path):
        for child in element:
            walk(child, path + [child.tag])
        if len(element) == 0:
            found["/".join(path)] = (element.text or "").strip()
    walk(gpu, [])
    return found


# Readings of which no two boards show the same, and how far they may lie apart: (least, most) over
# the captured one. The T4 and the L40S were awake when they were asked, at a clock and a power that
# a board at rest does not have: theirs may lie below.
RANGES = {
    "temperature/gpu_temp": (-8, 4), "temperature/memory_temp": (-5, 5),
    "gpu_power_readings/average_power_draw": (-31500, 3500),
    "gpu_power_readings/instant_power_draw": (-31500, 3500),
    "gpu_memory_power_readings/average_power_draw": (-8000, 8000),
}
AWAKE = {"clocks/sm_clock", "clocks/mem_clock", "clocks/video_clock", "performance_state"}
# Margins and absolute thresholds are two faces of one thing: nvidia-smi shows the margins alone
# where there are any, and the library answers both.
ABSOLUTE = {"temperature/gpu_temp_max_threshold", "temperature/gpu_temp_slow_threshold",
            "temperature/gpu_temp_max_mem_threshold", "temperature/gpu_temp_max_gpu_threshold"}
ANY_TEXT = {"serial", "gsp_firmware_version"}


def number_of(text, key):
    if text == "N/A":
        return text
    value = float(text.rstrip("x").split()[0])
    return value * 1000 if "power" in key and "retired" not in key else value


def differs(key, real, ours, awake):
    """None if they agree, else what is wrong."""
    if real.startswith("Requested functionality"):
        return None  # a later driver than the simulated one
    if key in ANY_TEXT:
        return None if (real == "N/A") == (ours == "N/A") else "N/A on one side"
    if real == "N/A" or ours == "N/A":
        return None if real == ours else "N/A on one side"
    if awake and key in AWAKE:
        return None
    if isinstance(ours, str):
        return None if real == ours else "other text"
    expected = number_of(real, key)
    low, high = RANGES.get(key, (0, 0))
    if not awake and "power_draw" in key:
        low = -3500
    return None if expected + low <= ours <= expected + high else "other number"


def compare(answers, real, awake):
    wrong, compared = [], 0
    for key, ours in answers.items():
        if key == "supported_clocks":
            compared += 1
            if {int(k): v for k, v in ours.items()} != real[key]:
                wrong.append((key, "lists differ"))
            continue
        if key in ABSOLUTE and key not in real:
            continue
        if key == "utilization/gpu_util" or key.endswith("tlimit_threshold") and key not in real:
            continue
        text = real.get(key, real.get(key.split("/")[0], "N/A"))
        reason = differs(key, text, ours, awake)
        compared += 1
        if reason:
            wrong.append((key, text, ours, reason))
    assert not wrong, wrong
    assert compared >= 40, compared


def ask(machine):
    done = subprocess.run([sys.executable, "-B", READER, FOLDER, "--read"], env=machine.env,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def board_case(name, machine_name):
    @tap.plain
    def case():
        with Machine(machine_name, "--seed", "7", "--no-noise") as machine:
            compare(ask(machine), of_capture(captured(name)), name in ("t4", "l40s"))
    case.__name__ = f"{name}_answers_as_the_captured_one"
    return case


# An H100 of a machine with driver 590 while gpu_burn ran on it; what it read, and how far ours may be
# off. Both temperatures rose while they were read.
UNDER_LOAD = {
    "clocks/sm_clock": (1980, 0), "clocks/mem_clock": (2619, 0),
    "performance_state": ("P0", None),
    "gpu_power_readings/average_power_draw": (634000, 20000),
    "gpu_power_readings/instant_power_draw": (612000, 60000),
    "gpu_memory_power_readings/average_power_draw": (85830, 6000),
    "temperature/gpu_temp": (65, 4), "temperature/memory_temp": (59, 4),
    "gpu_power_readings/current_power_limit": (700000, 0),
}


@tap.plain
def h100_answers_as_the_captured_one_under_load():
    with Machine("hgx-h100", "--seed", "7", "--speed", "200") as machine:
        machine.start_load("--profile", "gemm", "--gpus", "0", "--quiet")
        start = machine.machine_state()["now_ns"]
        machine.until(lambda: machine.machine_state()["now_ns"] > start + 300e9)
        answers = ask(machine)
    for key, (real, apart) in UNDER_LOAD.items():
        ours = answers[key]
        assert ours == real if apart is None else abs(ours - real) <= apart, (key, real, ours)


MACHINE = """board = "./mine.toml"
bus = [1]
numa = [0]
cpus = ["0-7"]
near = "NODE"
"""


def from_case(name):
    """A user's board, started from a capture, on a user's machine."""
    @tap.plain
    def case():
        with tempfile.TemporaryDirectory() as folder:
            capture = os.path.join(folder, "capture.xml")
            with open(capture, "wb") as file:
                file.write(captured(name))
            done = subprocess.run([TWIN, "board", "--from", capture], capture_output=True,
                                  text=True, check=True)
            with open(os.path.join(folder, "mine.toml"), "w", encoding="utf-8") as file:
                file.write(done.stdout)
            with open(os.path.join(folder, "machine.toml"), "w", encoding="utf-8") as file:
                file.write(MACHINE)
            with Machine(os.path.join(folder, "machine.toml"), "--no-noise") as machine:
                answers = ask(machine)
        real = of_capture(captured(name))
        for key in ("product_name", "board_part_number", "pci/pci_device_id", "fb_memory_usage/total",
                    "supported_clocks", "gpu_power_readings/max_power_limit", "ecc_mode/current_ecc",
                    "temperature/gpu_temp_slow_tlimit_threshold", "temperature/memory_temp"):
            if key == "supported_clocks":
                assert {int(k): v for k, v in answers[key].items()} == real[key]
            elif key != "temperature/memory_temp":
                assert differs(key, real.get(key, "N/A"), answers[key], False) is None, key
            else:
                assert (answers[key] == "N/A") == (real[key] == "N/A")
    case.__name__ = f"a_board_started_from_the_capture_{name}_answers_as_it_does"
    return case


if "--read" in sys.argv:
    print(json.dumps(read_all()))
    sys.exit(0)
sys.exit(main([h100_answers_as_the_captured_one_under_load]
                      + [board_case(*entry) for entry in CAPTURES.items()]
                      + [from_case(name) for name in [*CAPTURES, "gb200"]]))
