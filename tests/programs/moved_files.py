# SPDX-License-Identifier: BSD-2-Clause
"""Programs whose files are not where they were, or not what stands there now: each is started as programs.toml's other
programs are (servers.py)."""
import os
import time

from harness import command, until
from programs import start
from servers import LIFE, limited

SETTLE_S = 0.3  # until the program has mapped its library


def build_all(out, src, *words):
    """The program, its library, and another library of that name."""
    for room, name in ((100, "libgoods.so"), (3000, "other.so")):
        command("gcc", "-O2", "-shared", "-fPIC", f"-DROOM={room}", *words, "-Wl,-soname,libgoods.so", "-o",
                out / name, src / "plugin.c")
    command("gcc", "-O2", "-o", out / "program", src / "uses_plugin.c", f"-L{out}", "-lgoods", f"-Wl,-rpath,{out}")


def is_mapped(group, name):
    """Whether a process of the group has mapped this file."""
    for pid in group.pids():
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as stream:
                if any(row.rstrip().endswith(name) for row in stream):
                    return True
        except OSError:
            continue
    return False


def replaced(t, group, out, src, *words):
    build_all(out, src, *words)
    limited(t, group, out / "program", LIFE - 2)
    until(lambda: is_mapped(group, "/libgoods.so"), 10, "the library is not mapped")
    time.sleep(SETTLE_S)
    os.rename(out / "other.so", out / "libgoods.so")


def replaced_without_build_id(t, group, out, src):
    replaced(t, group, out, src, "-Wl,--build-id=none")


def replaced_before(t, group, out, src):
    """Nobody watches the program when its library is replaced."""
    build_all(out, src)
    process = start(t, None, out / "program", LIFE - 2)
    time.sleep(SETTLE_S)
    os.rename(out / "other.so", out / "libgoods.so")
    (group.folder / "cgroup.procs").write_text(str(process.pid))


def deleted(t, group, out, src):
    build_all(out, src)
    limited(t, group, out / "program", LIFE - 2)
    until(lambda: is_mapped(group, "/libgoods.so"), 10, "the library is not mapped")
    os.unlink(out / "program")


def private_mount(t, group, out, src):
    """In the program's own mounts another library stands at the same path."""
    build_all(out, src)
    limited(t, group, "unshare", "-m", "sh", "-c",
            f"mount --bind {out}/other.so {out}/libgoods.so && exec {out}/program {LIFE - 2}")


def jailed(t, group, out, src):
    """Below another root, and the same name as a program of another kind outside of it."""
    jail = out / "jail"
    jail.mkdir()
    command("gcc", "-O2", "-static", "-o", jail / "program", src / "threads.c")
    limited(t, group, "chroot", jail, "/program", LIFE - 2, 2)
