# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/broker/broker_mount* policy/file_systems.def
"""Mounts that a local user can make answer when he likes, or lay over something else: none of them is asked."""
import ctypes
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time

import pytest

from bed import LIBC, Skip, check, start_ns
from held_fs import HeldFs
from test_operations import LINES, MAPS, PROGRAM, WAITS, ask, ask_map, contained, known

pytestmark = pytest.mark.parallel(2)
HERE = pathlib.Path(__file__).resolve().parent
MNT_DETACH = 2
LIMIT_S = 2  # longer than that for an answer is a broker that hangs

# Of a user without privilege: in a user namespace and a mount namespace of his own, a FUSE file system whose
# server he is, an overlay above it, and a process that maps a program through the overlay. The number of that
# process is the first line; after the next word that is read the server answers nobody any more.
LAYERED = """
import os, pathlib, subprocess, sys
sys.path.insert(0, sys.argv[1])
from bed import LIBC, Skip
from held_fs import HeldFs
top, maps, program = pathlib.Path("/mnt"), sys.argv[3], sys.argv[4]
if LIBC.mount(b"none", b"/mnt", b"tmpfs", 0, None):
    sys.exit("no tmpfs")
for name in ("low", "upper", "work", "all"):
    (top / name).mkdir()
try:
    held = HeldFs(top / "held", open(program, "rb").read(), sys.argv[2])
except Skip as why:
    sys.exit(str(why))
options = b"lowerdir=/mnt/held:/mnt/low"
if LIBC.mount(b"trocar", b"/mnt/all", b"overlay", 0, options):
    sys.exit("no overlay above FUSE here")
words = [sys.executable, "-c", maps, "/mnt/all/program"]
mapper = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
if mapper.stdout.readline() != "mapped\\n":
    sys.exit("the mapper ended")
print(mapper.pid, flush=True)
sys.stdin.readline()
held.held = True
print("held", flush=True)
sys.stdin.readline()
mapper.kill()
os._exit(0)
"""


def answered(c, question):
    """The answer, which comes in time."""
    began = time.monotonic()
    c.socket.settimeout(LIMIT_S)
    try:
        answer = question()
    except TimeoutError:
        answer = None
    check(answer is not None and time.monotonic() - began < LIMIT_S, "the broker hangs")
    return answer


class Mapped:
    """A process by its number, as `ask` wants one."""

    def __init__(self, pid):
        self.pid = pid


def test_overlay_above_fuse(bed):
    """Any user's overlay above his own FUSE file system, in namespaces of his own: refused, and nobody waits."""
    device = bed.folder / "fuse"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
    device.chmod(0o666)
    words = ("unshare", "-Urm", "/usr/bin/python3", "-c", LAYERED, HERE, device, MAPS, PROGRAM)
    process = bed.spawn(*words, user=1234, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        text=True)
    line = process.stdout.readline()
    if not line:
        raise Skip(process.stderr.read().strip().splitlines()[-1])
    mapper = Mapped(int(line))
    bed.target(mapper.pid, start_ns(mapper.pid))
    try:
        with bed.client() as c:
            first, last = mapping_of(mapper, "/program")
            process.stdin.write("\n")
            process.stdin.flush()
            process.stdout.readline()
            with bed.refusals(other_namespace=1):
                answer = answered(c, lambda: c.ask("mapping_open", start_ns(mapper.pid), first, last, mapper.pid, 0))
                check(answer.refusal == "other_namespace", f"{answer}")
    finally:
        process.kill()  # and with it the server: whoever waits for it gets an error


def mapping_of(process, name):
    with open(f"/proc/{process.pid}/maps", encoding="ascii") as rows:
        first, last = next(row for row in rows if row.rstrip().endswith(name)).split()[0].split("-")
    return int(first, 16), int(last, 16)


def test_other_user_namespace(bed):
    """A mount namespace that is another user namespace's: refused, whatever is mounted there; its perf map too."""
    script = "exec /usr/bin/python3 -c \"$0\" " + PROGRAM
    process = bed.spawn("unshare", "-Urm", "/bin/sh", "-c", script, MAPS, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "mapped\n":
        raise Skip("no user namespaces here")
    bed.target(process.pid, start_ns(process.pid))
    with bed.client() as c, bed.refusals(other_namespace=2):
        check(ask(c, process, "/sleep").refusal == "other_namespace", "a mapping")
        check(ask_map(c, process).refusal == "other_namespace", "a perf map")
    # A user namespace without a mount namespace of its own: the mounts are the host's.
    process = bed.spawn("unshare", "-Ur", "/bin/sh", "-c", script, MAPS, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "mapped\n", "no such process")
    bed.target(process.pid, start_ns(process.pid))
    with bed.client() as c:
        answer = ask(c, process, "/sleep")
        check(answer.refusal == "none", f"{answer}")
        answer.close()


def detach(folder):
    check(LIBC.umount2(str(folder).encode(), MNT_DETACH) == 0, f"umount2: {os.strerror(ctypes.get_errno())}")


def test_detached_fuse(bed):
    """A FUSE mount that umount --lazy took out of the mount table: what is not listed is not asked."""
    with open(PROGRAM, "rb") as file:
        held = HeldFs(bed.folder / "held", file.read())
    try:
        process = known(bed, MAPS, bed.folder / "held" / "program")
        detach(bed.folder / "held")
        held.held = True
        with bed.client() as c, bed.refusals(file_system=1):
            first, last = mapping_of(process, "/program")
            answer = answered(c, lambda: c.ask("mapping_open", start_ns(process.pid), first, last, process.pid, 0))
            check(answer.refusal == "file_system" and not held.asked.is_set(), f"{answer}")
        process.kill()
    finally:
        os.close(held.fd)  # ends the connection: whoever waits gets an error


def test_fuse_outside_of_the_root(bed):
    """A FUSE mount outside of the process's root directory, which its mount table does not show."""
    with open(PROGRAM, "rb") as file:
        held = HeldFs(bed.folder / "held", file.read())
    (bed.folder / "root").mkdir()
    script = MAPS.replace('print("mapped"', 'os.chroot(sys.argv[3])\nprint("mapped"')
    try:
        process = known(bed, script, bed.folder / "held" / "program", 4096, bed.folder / "root")
        held.held = True
        with bed.client() as c, bed.refusals(file_system=1):
            first, last = mapping_of(process, "/program")
            answer = answered(c, lambda: c.ask("mapping_open", start_ns(process.pid), first, last, process.pid, 0))
            check(answer.refusal == "file_system" and not held.asked.is_set(), f"{answer}")
        process.kill()
    finally:
        held.close()


def test_detached_tmpfs(bed):
    """A file system of the list, but its mount is in nobody's table any more: nobody can say what it is."""
    folder = bed.folder / "mount"
    folder.mkdir()
    check(LIBC.mount(b"none", str(folder).encode(), b"tmpfs", 0, None) == 0, "no tmpfs")
    shutil.copy(PROGRAM, folder / "program")
    process = known(bed, MAPS, folder / "program")
    with bed.client() as c:
        answer = ask(c, process, "/program")
        check(answer.refusal == "none", f"while it is listed: {answer}")
        answer.close()
        detach(folder)
        with bed.refusals(file_system=1):
            check(ask(c, process, "/program").refusal == "file_system", "detached")


def test_jit_map_that_is_a_mount(bed):
    """What is bind-mounted over a perf map: /proc/PID/mem gives the memory of a process, and any file could lie there."""
    script = "mkdir -p {0}/tmp && :> {0}/map && mount --bind {1} {0}/map"
    for name, over, refusal in (("memory", "/proc/$$/mem", "file_system"), ("kernel", "/sys/kernel/notes", "file_system"),
                                ("file", "/etc/shadow", "other_mount")):
        root = bed.folder / name
        process = contained(bed, name, before=script.format(root, over) + f" && mkdir {root}/later")
        # Over the name that the process's number gives: known only now.
        enter = ["nsenter", f"--mount=/proc/{process.pid}/ns/mnt", "/bin/sh", "-c"]
        place = f":> {process.map} && mount --move {root}/map {process.map}"
        done = subprocess.run([*enter, place], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{name}: {done.stderr}")
        with bed.client() as c, bed.refusals(**{refusal: 1}):
            answer = ask_map(c, process)
            check(answer.refusal == refusal and not answer.fds, f"{name}: {answer}")
            answer.close()
        os.kill(process.pid, signal.SIGKILL)


def test_jit_map_beside_a_mount(bed):
    """The perf map itself, on the mount of its folder, is granted as before."""
    process = contained(bed, "beside", before=f"mount --bind {bed.folder} {bed.folder}/beside/tmp")
    name = f"perf-{process.inner}.map"
    (bed.folder / name).write_text(LINES)
    with bed.client() as c:
        answer = ask_map(c, process)
        check(answer.refusal == "none" and os.pread(answer.fds[0], 100, 0).decode() == LINES, f"{answer}")
        answer.close()
