#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt-twin exec --faces: what a driver shows besides its library, seen by one process tree only."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from twin_machine import Machine, main, tap, TWIN, waiting  # noqa: E402

FILE = """board = "h100-sxm"
bus = [0x41, 0xc1]
numa = [0, 1]
cpus = ["0-3,64-67", "4-7,68"]
near = "PHB"
links = [[0, 2], [2, 0]]
"""
IDS = ["0000:41:00.0", "0000:c1:00.0"]

# What a program finds, as JSON: {path: what is there}.
LOOK = """
import json, os, stat, sys
def look(path):
    try:
        st = os.lstat(path)
        if stat.S_ISLNK(st.st_mode):
            return os.readlink(path)
        if stat.S_ISCHR(st.st_mode):
            return ["char", os.major(st.st_rdev), os.minor(st.st_rdev), stat.S_IMODE(st.st_mode)]
        if stat.S_ISDIR(st.st_mode):
            return sorted(os.listdir(path))
        with open(path, "rb") as file:
            return file.read().decode("latin-1")
    except OSError as problem:
        return problem.errno
print(json.dumps({path: look(path) for path in sys.argv[1:]}))
"""

# Everybody's mounts and devices: before, while and after a program has faces. Mounts are shared with
# the outside as on most machines, in a namespace that keeps the test's own slips to itself.
AROUND = """
set -e
mount --make-rshared /
look() {
    cat /proc/$1/mountinfo
    nsenter --mount=/proc/$1/ns/mnt stat -c '%n %F %t:%T %d' /dev/* /proc/driver /proc/driver/* \\
        /sys/bus/pci/devices/* /sys/bus/pci/drivers/* 2>&1 || :
}
look $$ >"$1/before"
"$2" exec --faces -- sh -c 'test -c /dev/nvidia0 && echo ready >"$0/started" && read -r line' \\
    "$1" <"$1/end" &
child=$!
exec 9>"$1/end"
until [ -e "$1/started" ]; do
    kill -0 $child
    sleep 0.02
done
look $$ >"$1/during"
echo >&9
wait $child
look $$ >"$1/after"
"""


def machine():
    folder = tempfile.TemporaryDirectory(prefix="takt-twin-faces.")
    path = os.path.join(folder.name, "machine.toml")
    with open(path, "w", encoding="ascii") as file:
        file.write(FILE)
    made = Machine(path)
    made.source = folder  # lives as long as the machine
    return made


def needs_mounts():
    if os.geteuid() != 0:
        raise tap.Skip("not root")
    for tool in ("unshare", "nsenter", "setpriv"):
        if not shutil.which(tool):
            raise tap.Skip(f"there is no {tool}")
    done = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "takt", "/tmp"], check=False,
                          capture_output=True)
    if done.returncode != 0:
        raise tap.Skip("no right to mount")


def faces(made, *command):
    done = made.run("exec", "--faces", "--", *command)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def look(made, *paths):
    return json.loads(faces(made, sys.executable, "-c", LOOK, *paths))


def without_the_right_it_says_so():
    needs_mounts()
    with machine() as made:
        done = subprocess.run(["setpriv", "--bounding-set=-sys_admin", TWIN, "exec", "--faces",
                               "--", "echo", "ran"], env=made.env, capture_output=True, text=True,
                              timeout=waiting.WAIT_S, check=False)
        assert done.returncode == 77, (done.returncode, done.stderr)
        assert "--faces" in done.stderr and "needs root" in done.stderr, done.stderr
        assert done.stdout == "", done.stdout


def nobody_else_sees_anything_of_it():
    needs_mounts()
    with machine() as made:
        folder = os.path.join(made.folder.name, "around")
        os.mkdir(folder)
        os.mkfifo(os.path.join(folder, "end"))
        done = subprocess.run(["unshare", "-m", "sh", "-c", AROUND, "sh", folder, TWIN],
                              env=made.env, capture_output=True, text=True, timeout=waiting.WAIT_S, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr)
        seen = {}
        for name in ("before", "during", "after"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                seen[name] = file.read().splitlines()
        assert any(line.startswith("/dev/null ") for line in seen["before"]), seen["before"]
        for name in ("during", "after"):
            changed = sorted(set(seen["before"]) ^ set(seen[name]))
            assert seen["before"] == seen[name], (name, changed)


def devices_have_the_numbers_of_a_driver_and_nothing_behind():
    needs_mounts()
    with machine() as made:
        seen = look(made, "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidiactl")
        assert seen == {"/dev/nvidia0": ["char", 195, 0, 0o666],
                        "/dev/nvidia1": ["char", 195, 1, 0o666], "/dev/nvidia2": 2,
                        "/dev/nvidiactl": ["char", 195, 255, 0o666]}, seen
        done = made.run("exec", "--faces", "--", "cat", "/dev/nvidia0")
        assert done.returncode != 0 and done.stdout == "", done


def proc_tells_the_boards():
    needs_mounts()
    with machine() as made:
        uuids = [gpu["uuid"] for gpu in made.state()]
        folder = "/proc/driver/nvidia"
        seen = look(made, folder + "/version", folder + "/gpus", "/proc/modules",
                    *[f"{folder}/gpus/{bus}/information" for bus in IDS])
        assert "TWIN" in seen[folder + "/version"], seen
        assert seen[folder + "/gpus"] == IDS, seen
        for index, bus in enumerate(IDS):
            text = seen[f"{folder}/gpus/{bus}/information"]
            lines = dict(map(str.strip, line.split(":", 1)) for line in text.splitlines())
            assert lines["GPU UUID"] == uuids[index], lines
            assert lines["Model"] == "NVIDIA H100 80GB HBM3", lines
            assert lines["Device Minor"] == str(index) and lines["Bus Location"] == bus, lines
        if os.path.exists("/proc/modules"):
            with open("/proc/modules", encoding="ascii") as file:
                own = [line.split()[0] for line in file]
            names = [line.split()[0] for line in seen["/proc/modules"].splitlines()]
            assert names == ["nvidia", *own], names


def the_bus_has_the_boards():
    needs_mounts()
    if not os.path.isdir("/sys/bus/pci/devices"):
        raise tap.Skip("this machine has no PCI bus")
    with machine() as made:
        folder = f"/sys/bus/pci/devices/{IDS[1]}"
        want = {"vendor": "0x10de\n", "device": "0x2330\n", "class": "0x030200\n",
                "numa_node": "1\n", "local_cpulist": "4-7,68\n", "max_link_speed": "32.0 GT/s PCIe\n",
                "max_link_width": "16\n", "driver": "../../drivers/nvidia"}
        seen = look(made, *[f"{folder}/{name}" for name in want], folder + "/config",
                    folder + "/local_cpus", f"/sys/bus/pci/drivers/nvidia/{IDS[1]}/vendor")
        assert {name: seen[f"{folder}/{name}"] for name in want} == want, seen
        assert seen[f"/sys/bus/pci/drivers/nvidia/{IDS[1]}/vendor"] == "0x10de\n"
        mask = seen[folder + "/local_cpus"].strip().replace(",", "")
        assert int(mask, 16) == 0xf0 | 1 << 68, mask
        config = seen[folder + "/config"].encode("latin-1")
        assert len(config) == 256 and struct.unpack("<HH", config[:4]) == (0x10de, 0x2330)
        at = config[0x34]
        assert config[at] == 0x10, "the capability of PCI Express"
        assert struct.unpack("<H", config[at + 0x12:at + 0x14])[0] == 16 << 4 | 5


def what_was_there_still_is():
    needs_mounts()
    with machine() as made:
        folders = [name for name in ("/dev", "/proc/driver", "/sys/bus/pci/devices",
                                     "/sys/bus/pci/drivers") if os.path.isdir(name)]
        seen = look(made, *folders, "/dev/null", "/dev/fd")
        for folder in folders:
            lost = set(os.listdir(folder)) - set(seen[folder])
            assert not lost, (folder, lost)
        assert seen["/dev/null"] == ["char", 1, 3, 0o666], seen["/dev/null"]
        mine = {entry: os.path.realpath(f"/sys/bus/pci/devices/{entry}/vendor")
                for entry in seen.get("/sys/bus/pci/devices", []) if entry not in IDS}
        there = look(made, *mine.values())
        assert all(isinstance(text, str) and text.startswith("0x") for text in there.values()), there
        faces(made, "sh", "-c", "echo x >/dev/null && dd if=/dev/zero bs=1 count=1 2>/dev/null")


@tap.plain
def the_library_takes_the_faces_for_its_own():
    needs_mounts()
    count = ("import ctypes; n = ctypes.c_uint(); nvml = ctypes.CDLL('libnvidia-ml.so.1'); "
             "print(nvml.nvmlInit_v2(), nvml.nvmlDeviceGetCount_v2(ctypes.byref(n)), n.value)")
    with machine() as made:
        assert faces(made, sys.executable, "-c", count).split() == ["0", "0", "2"]
        nested = faces(made, TWIN, "exec", "--faces", "--", sys.executable, "-c", count)
        assert nested.split() == ["0", "0", "2"], nested


# A GPU that is cut: one GPU instance, in it one compute instance over all of it.
CUT = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
gpu, part, compute, did = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
print(nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(gpu)),
      nvml.nvmlDeviceSetMigMode(gpu, 1, ctypes.byref(did)),
      nvml.nvmlDeviceCreateGpuInstance(gpu, 9, ctypes.byref(part)),
      nvml.nvmlGpuInstanceCreateComputeInstance(part, 2, ctypes.byref(compute)))
"""


@tap.plain
def instances_have_capabilities():
    needs_mounts()
    with machine() as made:
        done = made.run("exec", "--", sys.executable, "-c", CUT)
        assert done.stdout.split() == ["0"] * 5, (done.stdout, done.stderr)
        folder = "/proc/driver/nvidia/capabilities"
        seen = look(made, "/proc/driver/nvidia-caps/mig-minors", "/dev/nvidia-caps", folder,
                    folder + "/gpu0/mig", folder + "/gpu1/mig",
                    folder + "/gpu1/mig/gi2/ci0/access", "/dev/nvidia-caps/nvidia-cap157")
        lines = seen["/proc/driver/nvidia-caps/mig-minors"].splitlines()
        minors = dict(line.split() for line in lines)
        assert minors["config"] == "1" and minors["gpu0/gi1/access"] == "12", minors
        assert minors["gpu1/gi0/access"] == "138" and minors["gpu1/gi2/ci0/access"] == "157", minors
        assert len(set(minors.values())) == len(lines) == 2 + 2 * 15 * 9
        assert seen[folder] == ["gpu0", "gpu1", "mig"], seen
        assert seen[folder + "/gpu0/mig"] == [] and seen[folder + "/gpu1/mig"] == ["gi2"], seen
        assert "DeviceFileMinor: 157\n" in seen[folder + "/gpu1/mig/gi2/ci0/access"], seen
        assert seen["/dev/nvidia-caps"] == ["nvidia-cap1", "nvidia-cap156", "nvidia-cap157",
                                            "nvidia-cap2"], seen
        kind, major, minor, _ = seen["/dev/nvidia-caps/nvidia-cap157"]
        assert kind == "char" and minor == 157, seen
        with open("/proc/devices", encoding="ascii") as file:
            taken = file.read().split("Block devices")[0]
        assert f"\n{major} " not in taken, (major, taken)


if __name__ == "__main__":
    sys.exit(main([
        without_the_right_it_says_so, nobody_else_sees_anything_of_it,
        devices_have_the_numbers_of_a_driver_and_nothing_behind, proc_tells_the_boards,
        the_bus_has_the_boards, instances_have_capabilities, what_was_there_still_is,
        the_library_takes_the_faces_for_its_own]))
