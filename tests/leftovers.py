#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes away what runs of the tests left that were killed: cgroups (20,000 of one test), processes, mounts, folders. A
thing of a test has its maker's pid in its name; those whose maker lives are left alone.

  leftovers.py

prints a line for each thing that it took away. ./check calls it first: what a dead run left costs the next one time, and
its figures their truth."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

MADE = re.compile(r"(?:te2e|trocar-unit|trocar-test|trocar-broker)-(\d+)(?:-|$)")
FOLDERS = pathlib.Path("/var/tmp")
PATIENCE_S = 5


def lives(pid):
    """Whether there is such a process that has not ended; one that nobody waited for has."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def is_left(name):
    """Whether a killed test made what has this name."""
    found = MADE.match(name)
    return bool(found) and not lives(found[1])


def mounts():
    """[(where, type)], the newest last."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as stream:
        return [(words[1], words[2]) for words in map(str.split, stream)]


def end_processes(pids):
    """Kills them one by one; returns once they have gone, or after a while."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends and any(lives(pid) for pid in pids):
        time.sleep(0.02)


def processes_of(folder):
    """Those that run a program below the folder, or were told of a file there."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            if any(word.startswith(os.fsencode(folder) + b"/") for word in words):
                yield int(name)


def remove_cgroup(top):
    """The cgroup, those below it, and whoever runs in them."""
    folders = [folder for folder, _, _ in os.walk(top, topdown=False)]
    for folder in folders:
        with contextlib.suppress(OSError):
            end_processes([int(pid) for pid in pathlib.Path(folder, "cgroup.procs").read_text().split()])
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(folder)
    return f"{top} ({len(folders)} cgroups)"


def remove_folder(top):
    """The folder with what is mounted below it, and whoever was started from it."""
    pids = list(processes_of(top))
    end_processes(pids)
    for where, _ in reversed(mounts()):
        if where.startswith(f"{top}/"):
            subprocess.run(["umount", "--lazy", where], check=True)
    shutil.rmtree(top)
    return f"{top} ({len(pids)} processes)"


def sweep():
    """Yields a line for each thing that is gone now, or that could not be taken away, with why."""
    hierarchies = [where for where, kind in mounts() if kind in ("cgroup", "cgroup2")]
    left = [(remove_folder, path) for path in sorted(FOLDERS.iterdir()) if is_left(path.name)]
    for hierarchy in hierarchies:
        left += [(remove_cgroup, path) for path in sorted(pathlib.Path(hierarchy).iterdir())
                 if is_left(path.name) and path.is_dir()]
    for remove, path in left:
        try:
            yield f"left by a run that was killed, and gone: {remove(path)}"
        except (OSError, subprocess.CalledProcessError) as why:
            yield f"left by a run that was killed, and still there: {path}: {why}"


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("leftovers.py: only root can take cgroups and mounts away")
    for line in sweep():
        print(line)
