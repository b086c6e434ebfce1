# SPDX-License-Identifier: Apache-2.0
"""A small machine of its own for tests that this one cannot give: cgroup v2 with all controllers, device
nodes, users, root. Debian's cloud kernel under QEMU without hardware support, an initial file system
in memory with busybox and takt's programs; a script runs in it and speaks over the serial line.

A test begins with `import guest` and is called with the build folder as its first argument. Lines of the
script that begin with "@ok NAME" or "@no NAME: WHY" become cases; what else it says is kept for when
one fails. What is not to be had here (qemu, the kernel) skips every case and says why.
"""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import debs  # noqa: E402
import kit  # noqa: E402

BOOT_S = 1800  # a guest without hardware support on a busy machine; it takes seconds on a quiet one
QEMU, BUSYBOX = "qemu-system-x86_64", "/bin/busybox"
KERNEL_WORDS = "console=ttyS0 quiet panic=-1 mitigations=off"  # what guards secrets is dear here, and there are none
PROGRAMS = ("takt", "takt-cli.so", "takt-serve", *kit.HELPERS)

INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs run /run
echo
. /script
echo @end
poweroff -f
"""

TESTING = """
ok() { echo "@ok $1"; }
no() { echo "@no $1: $2"; }
same() { if [ "$2" = "$3" ]; then ok "$1"; else no "$1" "'$2', not '$3'"; fi; }
has() { case "$2" in *"$3"*) ok "$1" ;; *) no "$1" "'$2' has no '$3'" ;; esac; }
die() { no "$1" "$2"; echo @end; poweroff -f; }
until_true() { n=600; while ! "$@"; do n=$((n - 1)); [ $n -gt 0 ] || return 1; sleep 1; done; }
"""


class Archive:
    """The initial file system: a cpio archive as the kernel unpacks it ("newc")."""

    def __init__(self):
        self.names, self.parts = set(), []

    def _entry(self, name, mode, data=b""):
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent:
            self.folder(parent)
        self.names.add(name)
        fields = [len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name.encode()) + 1, 0]
        head = "070701" + "".join(f"{field:08x}" for field in fields) + name + "\0"
        for part in (head.encode(), data):
            self.parts.append(part + b"\0" * (-len(part) % 4))

    def folder(self, path, mode=0o755):
        self._entry(path.strip("/"), stat.S_IFDIR | mode)

    def text(self, path, text, mode=0o644):
        self._entry(path.strip("/"), stat.S_IFREG | mode, text.encode())

    def link(self, path, target):
        self._entry(path.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def file(self, source, path=None):
        with open(source, "rb") as file:
            self._entry((path or source).strip("/"), stat.S_IFREG | os.stat(source).st_mode & 0o7777, file.read())

    def tree(self, root):
        """All that is in there, programs with their libraries, under the same names."""
        for folder, _, names in os.walk(root):
            for name in names:
                source = os.path.join(folder, name)
                path = os.path.relpath(source, root)
                if os.path.islink(source):
                    self.link(path, os.readlink(source))
                elif os.access(source, os.X_OK):
                    self.program(source, path)
                else:
                    self.file(source, path)

    def program(self, source, path=None):
        """A program with the libraries that it was linked with."""
        self.file(source, path)
        said = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", said):
            self.file(os.path.realpath(library), library)

    def write(self, path):
        self._entry("TRAILER!!!", 0)
        with open(path, "wb") as file:
            file.writelines(self.parts)


def kernel():
    """The path of a Debian cloud kernel, fetched once for a build folder; it is not installed."""
    root = debs.unpacked("kernel", "linux-image-cloud-amd64", follow="linux-image-")
    (name,) = [name for name in os.listdir(os.path.join(root, "boot")) if name.startswith("vmlinuz")]
    return os.path.join(root, "boot", name)


def check():
    """Skips where no guest can be had."""
    for program in (QEMU, BUSYBOX):
        if not shutil.which(program):
            raise kit.Skip(f"{program} is not installed (tools/packages.txt has its package)")
    if os.uname().machine != "x86_64":
        raise kit.Skip(f"the guest is x86_64, this machine is {os.uname().machine}")


def base():
    """busybox, users and the simulated driver."""
    archive = Archive()
    archive.file(BUSYBOX, "bin/busybox")
    for name in subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split():
        archive.link("bin/" + name, "/bin/busybox")
    for folder in ("proc", "sys", "dev", "run", "root", "var/lib", "etc", "sys/fs/cgroup"):
        archive.folder(folder)
    archive.folder("tmp", 0o1777)
    archive.text("etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:4242:4242::/tmp:/bin/sh\n"
                               "bob:x:4343:4343::/tmp:/bin/sh\ntakt:x:977:977::/var/lib/takt:/bin/false\n")
    archive.text("etc/group", "root:x:0:\nalice:x:4242:\nbob:x:4343:\ntakt:x:977:\n")
    archive.program(kit.TWIN, "usr/bin/takt-twin")
    archive.program(kit.TWIN_LIB, "usr/bin/lib/550/libnvidia-ml.so.1")
    return archive


def with_takt(archive):
    """takt's programs, without their units."""
    for name in PROGRAMS:
        archive.program(os.path.join(kit.BUILD, "src/daemon", name), "usr/libexec/takt/" + name)
    archive.link("usr/bin/takt", "/usr/libexec/takt/takt")
    return archive


def boot(archive, *append, memory_mib=768, second=os.devnull):
    """Boots it and returns what it said on the serial line until it went off. What it writes to its
    second line goes into that file."""
    with tempfile.TemporaryDirectory(prefix="tk-guest-") as folder:
        initrd, serial = os.path.join(folder, "initrd"), os.path.join(folder, "serial")
        archive.write(initrd)
        command = [QEMU, "-accel", "tcg", "-cpu", "max", "-m", str(memory_mib), "-nographic", "-no-reboot",
                   "-nodefaults", "-serial", "file:" + serial, "-serial", "file:" + second,
                   "-kernel", kernel(), "-initrd", initrd,
                   "-append", " ".join((KERNEL_WORDS, *append))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BOOT_S, check=False)
            assert done.returncode == 0, done.stderr
        except subprocess.TimeoutExpired:
            pass  # what it said tells where it hangs
        with open(serial, encoding="utf-8", errors="replace") as file:
            return file.read().replace("\r", "")


def cases_of(run, names):
    """The cases of one guest, which boots with the first of them."""
    said = []

    def case(name):
        if not said:
            check()
            said.append(run())
            kit.note(said[0])
        if "@ok " + name not in said[0].splitlines():
            why = re.search(rf"^@no {re.escape(name)}: (.*)$", said[0], re.MULTILINE)
            raise AssertionError(why[1] if why else "the guest did not get that far")
    return [(name, lambda name=name: case(name)) for name in names]
