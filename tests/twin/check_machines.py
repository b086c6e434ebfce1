#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines made of what nvidia-smi printed: `takt-twin machine --from`.

Captures of real machines answer as they say; each machine that is built in is written down as
nvidia-smi would, made again from that, and answers the same; what a simulated machine has not is said.

check_machines.py CAPTURE_FOLDER
"""

import ctypes
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True

from twin_machine import Machine, main, tap, TWIN  # noqa: E402

FOLDER = sys.argv[1]
READER = os.path.abspath(__file__)
LEVELS = {10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
NOT_SUPPORTED = 3


class Nvml:
    """All GPUs of a machine by ctypes."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ["TAKT_TWIN_LIB"])
        assert self.library.nvmlInit_v2() == 0
        count = ctypes.c_uint()
        assert self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
        self.devices = []
        for index in range(count.value):
            device = ctypes.c_void_p()
            assert self.call("HandleByIndex_v2", index, ctypes.byref(device)) == 0
            self.devices.append(device)

    def call(self, name, *arguments):
        return getattr(self.library, "nvmlDeviceGet" + name)(*arguments)

    def number(self, name, *arguments):
        out = ctypes.c_uint()
        code = self.call(name, *arguments, ctypes.byref(out))
        return out.value if code == 0 else "N/A" if code == NOT_SUPPORTED else f"code {code}"

    def bus_id(self, name, *arguments):
        pci = (ctypes.c_char * 68)()
        assert self.call(name, *arguments, pci) == 0
        return pci.raw[36:68].split(b"\0")[0].decode()

    def field(self, device, number, scope=0):
        value = (ctypes.c_longlong * 5)()
        words = ctypes.cast(value, ctypes.POINTER(ctypes.c_uint))
        words[0], words[1] = number, scope
        assert self.call("FieldValues", device, 1, value) == 0
        return words[8] if words[7] == 0 else "N/A"

    def clocks(self, device):
        memory = self.number("MaxClockInfo", device, 2)
        count, out = ctypes.c_uint(1024), (ctypes.c_uint * 1024)()
        assert self.call("SupportedGraphicsClocks", device, memory, ctypes.byref(count), out) == 0
        return list(out[:count.value])

    def links(self, device):
        """{bus id of a GPU, or "switch": links}"""
        found = {}
        for link in range(18):
            kind = self.number("NvLinkRemoteDeviceType", device, link)
            if not isinstance(kind, int):
                continue
            end = "switch" if kind == 2 else self.bus_id("NvLinkRemotePciInfo_v2", device, link)
            found[end] = found.get(end, 0) + 1
        return found

    def instances(self, device):
        found = []
        for index in range(7):
            mig = ctypes.c_void_p()
            if self.call("MigDeviceHandleByIndex", device, index, ctypes.byref(mig)) != 0:
                break
            name = ctypes.create_string_buffer(96)
            assert self.call("Name", mig, name, 96) == 0
            found.append((self.number("GpuInstanceId", mig), self.number("ComputeInstanceId", mig),
                          name.value.decode().split("MIG ")[-1]))
        return found

    def gpu(self, device):
        cpus = (ctypes.c_ulong * 16)()
        assert self.call("CpuAffinity", device, 16, cpus) == 0
        fabric = (ctypes.c_uint * 7)()
        code = self.call("GpuFabricInfo", device, fabric)
        return {
            "bus_id": self.bus_id("PciInfo_v3", device),
            "module": self.number("ModuleId", device),
            "clique": fabric[5] if code == 0 else "N/A",
            "c2c": self.number("C2cModeInfoV", device),
            "c2c_links": self.field(device, 170),
            "module_power": [self.field(device, number, 1) for number in (185, 186, 187, 188, 189)],
            "power": self.field(device, 186),
            "cpus": [cpu for cpu in range(1024) if cpus[cpu // 64] >> cpu % 64 & 1],
            "levels": [0 if other is device else self.number("TopologyCommonAncestor", device, other)
                       for other in self.devices],
            "links": self.links(device), "link_mbps": self.field(device, 90),
            "sm_mhz": self.number("ClockInfo", device, 1), "clocks": self.clocks(device),
            "instances": self.instances(device),
        }


def capture_path(name, folder):
    path = os.path.join(folder, name)
    with gzip.open(os.path.join(FOLDER, name + ".gz")) as packed, open(path, "wb") as file:
        file.write(packed.read())
    return path


def made_from(paths, folder):
    """The machine file and what was said."""
    done = subprocess.run([TWIN, "machine", "--from", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    path = os.path.join(folder, "made.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(done.stdout)
    return path, done.stderr


def read(name):
    with Machine(name, "--seed", "7", "--no-noise", "--speed", "0") as machine:
        done = subprocess.run([sys.executable, "-B", READER, FOLDER, "--read"], env=machine.env,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def texts_made(texts):
    """What answers that was made of these texts, and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for index, text in enumerate(texts):
            paths.append(os.path.join(folder, f"{index}.txt"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        machine, said = made_from(paths, folder)
        return read(machine), said


def captures_made(*names):
    with tempfile.TemporaryDirectory() as folder:
        machine, said = made_from([capture_path(name, folder) for name in names], folder)
        return read(machine), said


@tap.plain
def gb200_has_all_its_clocks_and_what_is_on_its_module():
    gpus, said = captures_made("gb200.xml")
    with gzip.open(os.path.join(FOLDER, "gb200.xml.gz")) as packed:
        real = ElementTree.fromstring(packed.read()).findall("gpu")
    assert len(gpus) == len(real) == 4
    for gpu, answer in zip(real, gpus):
        clocks = [int(clock.text.split()[0]) for clock in gpu.iter("supported_graphics_clock")]
        assert answer["clocks"] == clocks and len(clocks) == 260
        assert answer["sm_mhz"] == 120 and answer["clique"] == 2 and answer["c2c"] == 1
        assert answer["bus_id"] == gpu.get("id")
        assert answer["module"] == int(gpu.findtext("platformInfo/module_id"))
        average, _, lowest, highest, default = answer["module_power"]
        assert (lowest, default, highest) == (500000, 2500000, 2500000)
        # what a module draws beside its GPU is that of the first
        assert abs(average - answer["power"] - (467170 - 165930)) <= 500, answer
    assert "MIG" in said


@tap.plain
def a_machine_of_eight_has_its_places():
    gpus, _ = captures_made("h100.xml")
    assert [gpu["bus_id"][9:11] for gpu in gpus] == ["53", "64", "75", "86", "97", "A8", "B9", "CA"]
    assert [gpu["module"] for gpu in gpus] == [7, 5, 6, 8, 1, 3, 4, 2]
    assert all(gpu["c2c"] == 0 and gpu["module_power"] == ["N/A"] * 5 for gpu in gpus)


@tap.plain
def text_of_a_query_does_as_well_as_xml():
    """One file has queries at rest and under load, topo -m and nvlink -s: at rest holds."""
    (gpu,), said = captures_made("h100-sxm-590.txt")
    assert gpu["bus_id"] == "00000000:00:09.0" and gpu["module"] == 7, gpu
    assert gpu["cpus"] == list(range(20)) and gpu["links"] == {"switch": 18} and gpu["link_mbps"] == 26562
    assert gpu["sm_mhz"] == 345 and gpu["clocks"][0] == 1980 and len(gpu["clocks"]) == 110
    assert "SUPPORTED_CLOCKS" in said, said
    (gpu,), said = captures_made("rtx4080s-595.txt")
    assert gpu["sm_mhz"] == 210 and gpu["clocks"][0] == 3165 and gpu["links"] == {}
    assert "GUESS" in said


@tap.plain
def a_list_of_clocks_may_come_in_another_file():
    query = LOG % "00000000:41:00.0"
    clocks = """
==============NVSMI LOG==============

Attached GPUs                             : 1
GPU 00000000:41:00.0
    Supported Clocks
        Memory                            : 9001 MHz
            Graphics                      : 1500 MHz
            Graphics                      : 1000 MHz
            Graphics                      : 300 MHz
        Memory                            : 405 MHz
            Graphics                      : 300 MHz
"""
    (gpu,), said = texts_made([query, clocks])
    assert gpu["clocks"] == [1500, 1000, 300], gpu
    assert "SUPPORTED_CLOCKS" not in said


@tap.plain
def instances_are_cut_as_they_were():
    (gpu,), _ = captures_made("h100-mig-590.txt")
    assert gpu["instances"] == [[2, 0, "3g.40gb"], [3, 0, "2g.20gb"], [9, 0, "1g.10gb"], [10, 0, "1g.10gb"]]


LOG = """
==============NVSMI LOG==============

Driver Version                            : 550.90.07

GPU %s
    Product Name                          : NVIDIA Nobody
    Product Architecture                  : Ampere
    Clocks
        SM                                : 300 MHz
        Memory                            : 9001 MHz
    Max Clocks
        SM                                : 1500 MHz
        Memory                            : 9001 MHz
        Video                             : 1200 MHz
"""


@tap.plain
def gpus_of_several_domains_and_devices():
    """As on a Grace machine, where all are on bus 1, and in a virtual one, where all are on bus 0."""
    gpus, _ = texts_made([LOG % bus_id for bus_id in ("00000019:01:00.0", "00000008:01:00.0", "00000008:00:05.0",
                                                      "00000008:00:04.0")])
    assert [gpu["bus_id"] for gpu in gpus] == ["00000008:00:04.0", "00000008:00:05.0", "00000008:01:00.0",
                                               "00000019:01:00.0"]


@tap.plain
def what_is_not_taken_is_said():
    header = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
    topo = header + "GPU0\t X \tNODE\tPIX\t0-3\t0\nGPU1\tNODE\t X \tPIX\t4-7\t0\nNIC0\tPIX\tPIX\t X\n"
    links = "GPU 0: NVIDIA Nobody (UUID: GPU-0)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"
    ecc = LOG % "00000000:02:00.0" + "    ECC Mode\n        Current                       : Disabled\n"
    gpus, said = texts_made([ecc, LOG % "00000000:03:00.0", topo, links])
    assert [gpu["levels"] for gpu in gpus] == [[0, 40], [40, 0]]
    for words in ("1 devices of `topo -m`", "GPU 1 is near CPUs 4-7", "1 NVLinks of GPU 0 are inactive",
                  "ECC is off", "none leads to another GPU"):
        assert words in said, (words, said)


def refused(texts, *words):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for index, text in enumerate(texts):
            paths.append(os.path.join(folder, f"{index}.txt"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([TWIN, "machine", "--from", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 65, (done.returncode, done.stderr)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def mistakes_are_named():
    refused(["hello\n"], "0.txt", "nvidia-smi -q")
    refused(["\tGPU0\tCPU Affinity\nGPU0\t X \t0-3\n"], "no file describes a GPU")
    other = (LOG % "00000000:03:00.0").replace("Nobody", "Other")
    refused([LOG % "00000000:02:00.0", other], "GPU 1", "NVIDIA Other", "NVIDIA Nobody", "one kind")
    many = "".join(f"            Graphics                      : {mhz} MHz\n" for mhz in range(2000, 1400, -1))
    refused([LOG % "00000000:02:00.0" + "    Supported Clocks\n        Memory                    : 9001 MHz\n" + many],
            "more than the 512 SM clocks")
    refused([LOG % f"{domain:08x}:02:00.0" for domain in range(65)], "64")


def ranges(cpus):
    """[0, 1, 2, 7] -> "0-2,7" """
    found = []
    for cpu in cpus:
        if found and found[-1][1] == cpu - 1:
            found[-1][1] = cpu
        else:
            found.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def as_topo(gpus):
    """The matrix as nvidia-smi prints it: NVLinks hide how near two GPUs are on the bus."""
    nodes = sorted({tuple(gpu["cpus"]) for gpu in gpus})
    names = [f"GPU{i}" for i in range(len(gpus))]
    lines = ["\t\033[4m" + "\t".join(names + ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\033[0m"]
    for a, gpu in enumerate(gpus):
        cells = [f"GPU{a}"]
        for b, other in enumerate(gpus):
            links = gpu["links"].get(other["bus_id"], 0) or gpu["links"].get("switch", 0)
            cells.append(" X " if a == b else f"NV{links}" if links else LEVELS[gpu["levels"][b]])
        node = nodes.index(tuple(gpu["cpus"]))
        lines.append("\t".join([*cells, ranges(gpu["cpus"]), str(node), "", "N/A"]))
    return "\n".join(lines) + "\n\nLegend:\n\n  X    = Self\n"


def as_nvlink(gpus):
    lines = []
    for index, gpu in enumerate(gpus):
        lines.append(f"GPU {index}: NVIDIA Nobody (UUID: GPU-0000)")
        lines += [f"\t Link {link}: {gpu['link_mbps'] / 1000:.3f} GB/s" for link in range(sum(gpu["links"].values()))]
    return "\n".join(lines) + "\n"


def built_in():
    listed = subprocess.run([TWIN, "list"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^(\S+) +\d+ x ", listed, re.M)


def again_case(name):
    @tap.plain
    def case():
        gpus = read(name)
        again, _ = texts_made([LOG % gpu["bus_id"] + "    Platform Info\n        Module Id                  "
                               f"   : {gpu['module']}\n" for gpu in gpus] + [as_topo(gpus), as_nvlink(gpus)])
        assert len(again) == len(gpus)
        for a, (gpu, other) in enumerate(zip(gpus, again)):
            for key in ("bus_id", "module", "cpus", "links"):
                assert gpu[key] == other[key], (key, gpu[key], other[key])
            for b, level in enumerate(gpu["levels"]):
                if not gpu["links"]:
                    assert level == other["levels"][b], (a, b, gpu["levels"], other["levels"])
    case.__name__ = f"{name}_is_made_again"
    return case


if "--read" in sys.argv:
    nvml = Nvml()
    print(json.dumps([nvml.gpu(device) for device in nvml.devices]))
    sys.exit(0)
sys.exit(main([gb200_has_all_its_clocks_and_what_is_on_its_module, a_machine_of_eight_has_its_places,
               text_of_a_query_does_as_well_as_xml, a_list_of_clocks_may_come_in_another_file,
               instances_are_cut_as_they_were, gpus_of_several_domains_and_devices,
               what_is_not_taken_is_said, mistakes_are_named] + [again_case(name) for name in built_in()]))
