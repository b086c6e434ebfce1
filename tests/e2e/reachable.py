# SPDX-License-Identifier: Apache-2.0
"""To be imported before kit by tests in which other users run takt's programs: where those cannot go to the build folder
(a home is often closed to others), argv names a copy of the programs instead."""
import atexit
import glob
import os
import shutil
import sys
import tempfile


def open_to_others(folder):
    parts = folder.split("/")
    return all(os.stat("/".join(parts[:n]) or "/").st_mode & 0o001 for n in range(1, len(parts) + 1))


def programs_of(folder):
    copy = tempfile.mkdtemp(prefix="tk-build-")
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    os.chmod(copy, 0o755)
    shutil.copytree(f"{folder}/twin/lib", f"{copy}/twin/lib", symlinks=True, ignore=shutil.ignore_patterns("*.p"))
    for pattern in ("twin/takt-twin", "src/daemon/takt*", "tests/e2e/takt-*", "tests/attack/takt-*"):
        for program in filter(lambda name: os.path.isfile(f"{folder}/{name}"), glob.glob(pattern, root_dir=folder)):
            os.makedirs(os.path.dirname(f"{copy}/{program}"), exist_ok=True)
            shutil.copy2(f"{folder}/{program}", f"{copy}/{program}")
    return copy


if os.getuid() == 0 and not open_to_others(os.path.abspath(sys.argv[1])):
    sys.argv[1] = programs_of(os.path.abspath(sys.argv[1]))
