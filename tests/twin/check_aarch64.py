#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver for aarch64, built by a cross compiler from the sources that this build has:
the layouts asserted in abi/nvml.h, the symbols of each branch, and, where an emulator is installed,
its answers.

check_aarch64.py BUILD_FOLDER SOURCE_FOLDER
"""

import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

from twin_machine import main, tap  # noqa: E402

import rebuild  # noqa: E402
from rebuild import output  # noqa: E402

BUILD, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
CC, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64"
SYSROOT = "/usr/aarch64-linux-gnu"

# The machine's file is the same for a program of either architecture.
SIZES = """
#include "abi/nvml.h"
#include "twin_layout.h"
#include <stdio.h>
int main(void)
{
	printf("%zu %zu %zu %zu", sizeof(struct twin_file), sizeof(struct twin_gpu),
	       sizeof(struct nvml_process_detail_list), offsetof(struct twin_slot, copy));
}
"""

CLIENT = """
#include <stdio.h>
#include "abi/nvml.h"
extern nvmlInit_v2_fn nvmlInit_v2;
extern nvmlDeviceGetHandleByIndex_v2_fn nvmlDeviceGetHandleByIndex_v2;
extern nvmlDeviceGetName_fn nvmlDeviceGetName;
extern nvmlDeviceGetMemoryInfo_v2_fn nvmlDeviceGetMemoryInfo_v2;
extern nvmlDeviceSetGpuLockedClocks_fn nvmlDeviceSetGpuLockedClocks;
extern nvmlDeviceGetClockInfo_fn nvmlDeviceGetClockInfo;
int main(void)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_WORD};
	struct nvml_device *gpu;
	uint32_t mhz = 0;
	char name[96];

	if (nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(1, &gpu) ||
	    nvmlDeviceGetName(gpu, name, sizeof(name)) || nvmlDeviceGetMemoryInfo_v2(gpu, &memory) ||
	    nvmlDeviceSetGpuLockedClocks(gpu, 990, 990) || nvmlDeviceGetClockInfo(gpu, 1, &mhz))
		return 1;
	printf("%s|%llu|%u", name, (unsigned long long)(memory.total >> 20), mhz);
	return 0;
}
"""

WORK = tempfile.TemporaryDirectory(prefix="takt-aarch64.")


def needs_a_cross_compiler():
    if not shutil.which(CC):
        raise tap.Skip(f"there is no {CC}")


def library(branch):
    folder = os.path.join(WORK.name, branch)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "libnvidia-ml.so.1")
    if not os.path.exists(path):
        whole = rebuild.objects(BUILD, WORK.name, CC, ["-O1", "-fPIC", "-Werror"],
                                *rebuild.LIBRARY, rebuild.stubs(branch))
        output(CC, "-shared", "-Wl,-soname,libnvidia-ml.so.1", "-Wl,-z,defs", "-o", path, *whole,
               f"-Wl,--version-script={BUILD}/twin/lib/nvml_{branch}.map")
    return path


def program(name, text, compiler, *more):
    source, path = (os.path.join(WORK.name, name + end) for end in (".c", ""))
    with open(source, "w", encoding="ascii") as file:
        file.write(text)
    output(compiler, "-std=gnu17", f"-I{BUILD}/include", f"-I{SOURCE}/twin", f"-I{SOURCE}/src",
           source, "-o", path, *more)
    return path


def the_layouts_hold_there():
    needs_a_cross_compiler()
    program("sizes-there", SIZES, CC)


def each_branch_exports_its_symbols_there():
    needs_a_cross_compiler()
    for branch in ("535", "550", "13x"):
        listed = output("aarch64-linux-gnu-nm", "-D", "--defined-only", library(branch))
        exported = sorted(line.split()[-1] for line in listed.splitlines())
        with open(f"{SOURCE}/twin/symbols-{branch}.txt", encoding="ascii") as file:
            assert exported == sorted(file.read().split()), branch


def it_answers_there_about_a_machine_made_here():
    needs_a_cross_compiler()
    if not shutil.which(QEMU):
        raise tap.Skip(f"there is no {QEMU}")
    emulate = [QEMU, "-L", SYSROOT, "-E", f"LD_LIBRARY_PATH={os.path.dirname(library('550'))}"]
    here = output(program("sizes-here", SIZES, "cc"))
    assert output(*emulate, program("sizes-there", SIZES, CC)) == here
    machine = os.path.join(WORK.name, "m.twin")
    output(os.environ["TAKT_TWIN_BIN"], "create", "hgx-h100", "--gpus", "2", "--path", machine)
    client = program("client", CLIENT, CC, library("550"))
    told = output(*emulate, "-E", f"TAKT_TWIN={machine}", client)
    assert told == "NVIDIA H100 80GB HBM3|81559|990", told


sys.exit(main([
    the_layouts_hold_there,
    each_branch_exports_its_symbols_there,
    it_answers_there_about_a_machine_made_here,
]))
