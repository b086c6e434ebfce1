# SPDX-License-Identifier: Apache-2.0
"""Programs as Debian ships them, for tests: fetched, unpacked and kept (tests/fetched.py), not installed.

Debian's contrib is seldom switched on. Packages are fetched with an apt configuration of its own, made from this
machine's (same mirror, one component more): nothing on the machine changes. What is not to be had is a Skip that says why.
"""
import glob
import os
import re
import subprocess
import tempfile

import kit
import fetched

APT_S = 600  # apt itself gives up a server that is silent; this is for what hangs


def with_contrib(text):
    """A source list in either of apt's formats, with the component added where `main` is."""
    text = re.sub(r"^(Components:.*\bmain\b)", r"\1 contrib", text, flags=re.MULTILINE)
    return re.sub(r"^(deb .*\bmain\b)", r"\1 contrib", text, flags=re.MULTILINE)


def is_debian(text):
    return "debian-archive-keyring" in text or re.search(r"^deb .*debian", text, re.MULTILINE)


def copy_sources(folder):
    os.makedirs(folder)
    found = glob.glob("/etc/apt/sources.list") + glob.glob("/etc/apt/sources.list.d/*")
    for path in found:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if path.endswith((".list", ".sources")) and is_debian(text):
            with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as file:
                file.write(with_contrib(text))
    if not os.listdir(folder):
        raise kit.Skip("apt has no source of Debian packages here")


def tool(*command, **more):
    """Runs one of Debian's tools; a Skip names the tool and its last word, never where it looked."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=APT_S, check=False,
                              **more)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise kit.Skip(f"{command[0]}: {type(problem).__name__}") from problem
    if done.returncode != 0:
        raise kit.Skip(f"{command[0]} {command[-1]}: exit status {done.returncode}")


def followed(folder, prefix):
    """Packages of that prefix that those in the folder depend on: behind a name without a version."""
    for package in glob.glob(os.path.join(folder, "*.deb")):
        depends = subprocess.run(["dpkg-deb", "-f", package, "Depends"], capture_output=True, text=True,
                                 check=False).stdout
        yield from (name for name in re.findall(r"[a-z0-9.+-]+", depends) if name.startswith(prefix))


def fetch(root, packages, follow):
    with tempfile.TemporaryDirectory(dir=root) as folder:
        os.makedirs(os.path.join(folder, "lists/partial"))
        copy_sources(os.path.join(folder, "parts"))
        own = [f"-oDir::Etc::sourcelist={os.devnull}", f"-oDir::Etc::sourceparts={folder}/parts",
               f"-oDir::State::lists={folder}/lists", f"-oDir::Cache={folder}/cache",
               "-oAcquire::Retries=1", "-oAcquire::http::Timeout=20"]
        tool("apt-get", *own, "update")
        for package in packages:
            tool("apt-get", *own, "download", package, cwd=folder)
        for package in list(followed(folder, follow)) if follow else []:
            tool("apt-get", *own, "download", package, cwd=folder)
        for package in glob.glob(os.path.join(folder, "*.deb")):
            tool("dpkg-deb", "-x", package, root)


def release():
    """Of Debian, to the point: packages of one do not change but for what security asks."""
    try:
        with open("/etc/debian_version", encoding="utf-8") as file:
            return file.read().strip()
    except OSError as problem:
        raise kit.Skip("this is no Debian") from problem


def unpacked(name, *packages, follow=None):
    """The folder in which the packages are unpacked, with what they depend on whose name begins with `follow`."""
    return fetched.kept(kit.BUILD, name, (release(), os.uname().machine, packages, follow),
                        lambda root: fetch(root, packages, follow))


def libraries(root):
    """LD_LIBRARY_PATH of what is in there."""
    return ":".join(glob.glob(root + "/usr/lib/*-linux-gnu*") + glob.glob(root + "/lib/*-linux-gnu*") +
                    glob.glob(root + "/usr/lib/*-linux-gnu*/slurm-wlm"))


def needs_libraries(root, program):
    """Skips if a library that the program was linked with is neither in there nor on this machine."""
    env = dict(os.environ, LD_LIBRARY_PATH=libraries(root))
    lines = subprocess.run(["ldd", program], env=env, capture_output=True, text=True,
                           check=True).stdout.splitlines()
    missing = [line.split()[0] for line in lines if "not found" in line]
    if missing:
        raise kit.Skip(f"{os.path.basename(program)} needs {' '.join(missing)}")
