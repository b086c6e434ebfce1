# SPDX-License-Identifier: Apache-2.0
"""What tests fetch from elsewhere, kept so that it is fetched once for all runs and build folders: in
$XDG_CACHE_HOME/takt-tests (~/.cache/takt-tests), or in the build folder where that cannot be written.

What is kept is never changed: other versions have another name. It gets its name by a rename, when it is whole. The
folder may be removed whenever no test runs.
"""
import contextlib
import fcntl
import hashlib
import os
import shutil


def cache_of(build):
    """The folder of all that is kept."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(caches):  # as the XDG specification has it
        folder = os.path.join(caches, "takt-tests")
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
    folder = os.path.join(build, "fetched")
    os.makedirs(folder, exist_ok=True)
    return folder


def kept(build, name, versions, fetch):
    """The folder that `fetch` (a function of an empty folder) fills where these versions are not kept yet. Tests that
    run side by side may all ask: the first fetches, the others wait."""
    digest = hashlib.sha256(repr(versions).encode()).hexdigest()[:16]
    folder = os.path.join(cache_of(build), f"{name}-{digest}")
    if os.path.isdir(folder):
        return folder
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            half = folder + ".half"
            shutil.rmtree(half, ignore_errors=True)  # of a run that was ended
            os.mkdir(half)
            fetch(half)
            os.sync()
            os.rename(half, folder)
    return folder
