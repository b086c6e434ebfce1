#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that look at a machine before they ask its driver, unmodified as Debian ships them:
hwloc's lstopo and Slurm's slurmd find the simulated GPUs (takt-twin exec --faces).

Usage: clients_faces.py BUILD_FOLDER
"""
import contextlib
import glob
import os
import re
import shutil
import socket
import subprocess
import sys

import debs
import kit

HWLOC = ("hwloc-nox", "libhwloc15", "libhwloc-contrib-plugins")
SLURM = ("slurmd", "slurm-wlm-basic-plugins", "slurm-wlm-nvml-plugin", "libhwloc15", "libnuma1",
         "libpam0g", "liblz4-1")
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
SlurmctldHost=localhost
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
SlurmdSpoolDir={folder}/spool
SlurmdPidFile={folder}/slurmd.pid
NodeName=twin NodeHostname={host} Gres=gpu:h100:2
PartitionName=gpu Nodes=twin Default=YES
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
    kit.needs_a_plain_twin()
    with kit.machine() as m:
        with open(m.path("machine.toml"), "w", encoding="ascii") as file:
            file.write(MACHINE)
        m.twin("destroy", m.path("machine"))
        m.twin("create", m.path("machine.toml"), "--path", m.path("machine"))
        yield m


def faced(m, root, *command):
    """The program's output, run with the faces and with the libraries that it was fetched with."""
    debs.needs_libraries(root, command[0])
    done = m.run("env", "LD_LIBRARY_PATH=" + debs.libraries(root),
                 f"HWLOC_PLUGINS_PATH={':'.join(glob.glob(root + '/usr/lib/*/hwloc'))}",
                 kit.TWIN, "exec", "--faces", "--", *command)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    kit.note(done.stdout + done.stderr)
    return done.stdout + done.stderr


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


def slurmd_counts_the_gpus_and_finds_their_devices():
    root = debs.unpacked("slurm", *SLURM)
    (plugins,) = glob.glob(root + "/usr/lib/*/slurm-wlm")
    with two_boards() as m:
        # it loads what it needs as a node only under this name, which Debian gives it by a link
        slurmd = m.path("slurmd")
        shutil.copy2(os.path.join(root, "usr/sbin/slurmd-wlm"), slurmd)
        os.mkdir(m.path("spool"))
        files = {"slurm.conf": SLURM_CONF.format(plugins=plugins, folder=m.folder,
                                                 host=socket.gethostname().split(".")[0]),
                 "gres.conf": "AutoDetect=nvml\n",
                 "cgroup.conf": "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"}
        for name, text in files.items():
            with open(m.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        text = faced(m, root, slurmd, "-G", "-N", "twin", "-f", m.path("slurm.conf"))
        assert "2 GPU system device(s) detected" in text, text
        assert "error:" not in text, text
        rows = re.findall(r"Gres Name=gpu Type=(\S+) Count=1 .*File=(\S+) Cores=(\S+) .*Links=(\S+)",
                          text)
        assert rows == [("h100", "/dev/nvidia0", "0", "-1,2"),
                        ("h100", "/dev/nvidia1", "0", "2,-1")], (rows, text)


if __name__ == "__main__":
    sys.exit(kit.main([lstopo_shows_the_gpus_on_their_buses,
                       slurmd_counts_the_gpus_and_finds_their_devices]))
