#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that look at a machine before they ask its driver, unmodified as Debian ships them:
hwloc's lstopo and Slurm's slurmd find the simulated GPUs (takt-twin exec --faces), and srun sets their
clocks.

Usage: clients_faces.py BUILD_FOLDER
"""
import contextlib
import ctypes
import fcntl
import glob
import os
import re
import shutil
import socket
import struct
import subprocess
import sys

import debs
import kit

HWLOC = ("hwloc-nox", "libhwloc15", "libhwloc-contrib-plugins")
SLURM = ("slurmd", "slurmctld", "slurm-client", "slurm-wlm-basic-plugins", "slurm-wlm-nvml-plugin",
         "libhwloc15", "libnuma1", "libpam0g", "liblz4-1", "libmunge2")
# from Linux' headers
CLONE_NEWNET, SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x40000000, 0x8914, 0x8916, 1
BUSES = ["0000:41:00.0", "0000:c1:00.0"]
# On the first processor, which each machine has: slurmd leaves out the cores of others.
MACHINE = """board = "h100-sxm"
bus = [0x41, 0xc1]
numa = [0, 0]
cpus = ["0"]
near = "PHB"
links = [[0, 2], [2, 0]]
"""
SLURM_CONF = """ClusterName=twin
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=6817
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SlurmUser=root
GresTypes=gpu
PluginDir={plugins}
PlugStackConfig=/dev/null
StateSaveLocation={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool
SlurmdPidFile={folder}/slurmd.pid
SlurmdLogFile={folder}/slurmd.log
NodeName=twin NodeHostname={host} NodeAddr=127.0.0.1 Port=6818 Gres={gres} State=UNKNOWN
PartitionName=gpu Nodes=twin Default=YES State=UP
"""


def needs_mounts():
    if os.geteuid() != 0:
        raise kit.Skip("not root")
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "takt", "/tmp"], check=False,
                      capture_output=True).returncode != 0:
        raise kit.Skip("no right to mount")


@contextlib.contextmanager
def two_boards():
    needs_mounts()
    with kit.machine() as m:
        with open(m.path("machine.toml"), "w", encoding="ascii") as file:
            file.write(MACHINE)
        m.twin("destroy", m.path("machine"))
        m.twin("create", m.path("machine.toml"), "--path", m.path("machine"))
        yield m


def environment(m, root):
    return m.env(LD_LIBRARY_PATH=debs.libraries(root), SLURM_CONF=m.path("slurm.conf"),
                 HWLOC_PLUGINS_PATH=":".join(glob.glob(root + "/usr/lib/*/hwloc")))


def said(m, root, *command):
    """What the program wrote, run with the libraries that it was fetched with."""
    done = subprocess.run(command, env=environment(m, root), capture_output=True, text=True,
                          timeout=kit.WAIT_S, check=False)
    text = done.stdout + done.stderr
    assert done.returncode == 0, (done.returncode, text)
    return text


def faced(m, root, *command):
    """The same, with the faces; for the record, too."""
    debs.needs_libraries(root, command[0])
    text = said(m, root, kit.TWIN, "exec", "--faces", "--", *command)
    kit.note(text)
    return text


def lstopo_shows_the_gpus_on_their_buses():
    root = debs.unpacked("hwloc", *HWLOC)
    with two_boards() as m:
        text = faced(m, root, os.path.join(root, "usr/bin/lstopo-no-graphics"), "--of", "console",
                     "-v", "--filter", "io:important")
        for index, gpu in enumerate(m.boards()):
            found = re.search(rf"PCI L#\d+ \(busid={BUSES[index]} id=10de:2330 class=0302\(3D\).*\n"
                              rf".*GPU\(NVML\).*NVIDIAUUID={gpu['uuid']}\).*\"nvml{index}\"", text)
            assert found, (index, text)
        assert '"nvml2"' not in text, text


@contextlib.contextmanager
def own_network():
    """A loopback device and nothing else: Slurm without keys obeys whoever reaches it."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as before:
        if libc.unshare(CLONE_NEWNET) != 0:
            raise kit.Skip("no right to a network namespace")
        try:
            with socket.socket() as any_socket:
                fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
                # getaddrinfo takes a machine with 127.0.0.1 alone for one without IPv4
                fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack(
                    "16shH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton("192.0.2.1")))
            yield
        finally:
            assert libc.setns(before.fileno(), CLONE_NEWNET) == 0, ctypes.get_errno()


def slurm(m, root, gres="gpu:h100:2"):
    """Puts Slurm's programs and files into the machine's folder."""
    (plugins,) = glob.glob(root + "/usr/lib/*/slurm-wlm")
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        # they know what they are by this name, which Debian gives them by links
        shutil.copy2(os.path.join(root, f"usr/sbin/{name}-wlm"), m.path(name))
        debs.needs_libraries(root, m.path(name))
    os.mkdir(m.path("spool"))
    conf = SLURM_CONF.format(plugins=plugins, folder=m.folder, gres=gres,
                             host=socket.gethostname().split(".")[0])
    for name, text in (("slurm.conf", conf), ("gres.conf", "AutoDetect=nvml\n"),
                       ("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")):
        with open(m.path(name), "w", encoding="utf-8") as file:
            file.write(text)


def slurmd_counts_the_gpus_and_finds_their_devices():
    root = debs.unpacked("slurm", *SLURM)
    with two_boards() as m:
        slurm(m, root)
        text = faced(m, root, m.path("slurmd"), "-G", "-N", "twin", "-f", m.path("slurm.conf"))
        assert "2 GPU system device(s) detected" in text, text
        assert "error:" not in text, text
        rows = re.findall(r"Gres Name=gpu Type=(\S+) Count=1 .*File=(\S+) Cores=(\S+) .*Links=(\S+)",
                          text)
        assert rows == [("h100", "/dev/nvidia0", "0", "-1,2"),
                        ("h100", "/dev/nvidia1", "0", "2,-1")], (rows, text)


# GPU 1 in two halves, each with a compute instance over all of it.
CUT = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
gpu, part, whole, did = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
codes = [nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(gpu)),
         nvml.nvmlDeviceSetMigMode(gpu, 1, ctypes.byref(did))]
for half in range(2):
    codes += [nvml.nvmlDeviceCreateGpuInstance(gpu, 9, ctypes.byref(part)),
              nvml.nvmlGpuInstanceCreateComputeInstance(part, 2, ctypes.byref(whole))]
assert not any(codes), codes
"""


def slurmd_finds_the_instances_of_a_cut_gpu():
    root = debs.unpacked("slurm", *SLURM)
    with two_boards() as m:
        slurm(m, root, "gpu:h100:1,gpu:3g.40gb:2")
        said(m, root, kit.TWIN, "exec", "--", sys.executable, "-c", CUT)
        text = faced(m, root, m.path("slurmd"), "-G", "-N", "twin", "-f", m.path("slurm.conf"))
        assert "error:" not in text, text
        rows = re.findall(r"Gres Name=gpu Type=(\S+) Count=1 .*?File=(\S+)", text)
        # of GPU 1 the capabilities of instances 1 and 2 (138 + 9 * 1, ...), and of what is in them
        caps = "/dev/nvidia1,/dev/nvidia-caps/nvidia-cap%d,/dev/nvidia-caps/nvidia-cap%d"
        assert sorted(rows) == [("3g.40gb", caps % (147, 148)), ("3g.40gb", caps % (156, 157)),
                                ("h100", "/dev/nvidia0")], (rows, text)


@contextlib.contextmanager
def cluster(m, root):
    """Slurm runs, and its one node is idle."""
    conf = m.path("slurm.conf")
    daemons = [[m.path("slurmctld"), "-D", "-c", "-f", conf],
               [kit.TWIN, "exec", "--faces", "--", m.path("slurmd"), "-D", "-N", "twin", "-f", conf,
                "-d", m.path("slurmstepd")]]
    running = []
    try:
        for command in daemons:
            running.append(subprocess.Popen(command, env=environment(m, root), stdout=m.log,
                                            stderr=m.log))
        sinfo = [os.path.join(root, "usr/bin/sinfo"), "-h", "-o", "%T"]
        kit.until(lambda: subprocess.run(sinfo, env=environment(m, root), capture_output=True,
                                         timeout=kit.WAIT_S, check=False).stdout == b"idle\n",
                  lambda: "the node is idle; slurm said: " + m.said())
        yield
    finally:
        for daemon in reversed(running):
            daemon.terminate()
            daemon.wait(kit.WAIT_S)


def srun_sets_the_clock_of_its_gpu_and_takes_it_back():
    root = debs.unpacked("slurm", *SLURM)
    with two_boards() as m:
        slurm(m, root)
        with own_network(), cluster(m, root):
            text = said(m, root, os.path.join(root, "usr/bin/srun"), "--gpus=1",
                        "--gpu-freq=990,verbose", kit.TWIN, "state", "--json")
        assert "graphics_freq:990" in text, text
        clocks = re.findall(r'"application_mhz":(\d+)', text)
        assert clocks == ["990", "0"], text
        assert [gpu["application_mhz"] for gpu in m.boards()] == [0, 0], m.boards()


if __name__ == "__main__":
    sys.exit(kit.main([lstopo_shows_the_gpus_on_their_buses,
                       slurmd_counts_the_gpus_and_finds_their_devices,
                       slurmd_finds_the_instances_of_a_cut_gpu,
                       srun_sets_the_clock_of_its_gpu_and_takes_it_back]))
