# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/broker/broker_operations* loader/broker/broker_pressure* loader/broker/broker_process*
"""What the broker opens, and what it does not: events, programs, pressure files, mapped files."""
import errno
import fcntl
import os
import select
import shutil
import signal
import stat
import struct
import subprocess
import time

import pytest

from held_fs import HeldFs
from bed import NOBODY, SWITCH, as_user, check, mappings, process_with_pid, start_ns, until

pytestmark = pytest.mark.parallel(2)
PERF_ENABLE, PERF_DISABLE = 0x2400, 0x2401
PROGRAM = "/usr/bin/sleep"  # an ELF program of every Debian

MAPS = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
held = mmap.mmap(fd, int(sys.argv[2]) if len(sys.argv) > 2 else 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
print("mapped", flush=True)
sys.stdin.readline()
"""
MEMFD = """
import mmap, os, sys
fd = os.memfd_create("code")
os.write(fd, open(sys.argv[1], "rb").read())
held = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
print("mapped", flush=True)
sys.stdin.readline()
"""


# ---- sampler_open

def test_sampler_ticks_when_enabled(bed):
    """The event comes disabled; enabled it ticks at its rate, disabled it is still; one descriptor is all."""
    with bed.statistics(), bed.client() as c:
        (fd,) = c.ask("sampler_open", 0, 97, 1).fds
        time.sleep(0.3)
        check(bed.runs("sampler") == 0, "it ticks before it is enabled")
        fcntl.ioctl(fd, PERF_ENABLE, 0)
        until(lambda: bed.runs("sampler") > 20, 10, "no ticks")
        fcntl.ioctl(fd, PERF_DISABLE, 0)
        time.sleep(0.05)
        runs = bed.runs("sampler")
        time.sleep(0.3)
        check(bed.runs("sampler") == runs, "it ticks after it was disabled")
        fcntl.ioctl(fd, PERF_ENABLE, 0)
        os.close(fd)
        time.sleep(0.05)
        runs = bed.runs("sampler")
        time.sleep(0.3)
        check(bed.runs("sampler") == runs, "it ticks after it was closed")


def test_sampler_samples(bed):
    """Its ticks end in the counters of a watched slot."""
    group = bed.group()
    bed.arm(group)
    bed.spawn("/bin/sh", "-c", "while :; do :; done", group=group)
    with bed.client() as c:
        fds = [c.ask("sampler_open", cpu, 97, 1).fds for cpu in sorted(os.sched_getaffinity(0))]
        check(all(len(fd) == 1 for fd in fds), f"{fds}")
        for (fd,) in fds:
            fcntl.ioctl(fd, PERF_ENABLE, 0)

        def emitted():
            words = struct.unpack("=1024Q", bed.maps["counters"].lookup(struct.pack("=I", 0))[:8192])
            return sum(words[1::10])
        until(lambda: emitted() > 5, 10, "no samples")


def test_sampler_of_no_cpu(bed):
    """A CPU that this machine has not."""
    with bed.client() as c:
        answer = c.ask("sampler_open", 8191, 97, 1)
        check(answer.refusal in ("kernel", "gone") and answer.error < 0 and not answer.fds, f"{answer}")


# ---- signal_attach

GIVES_WAY = """
import os, sys, time
sys.stdin.readline()
for _ in range(200):
    time.sleep(0.0005)
print("done", flush=True)
sys.stdin.readline()
"""


def kernel_counts(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        rows = dict(row.split(":\t", 1) for row in status if "ctxt_switches" in row)
    return int(rows["voluntary_ctxt_switches"]), int(rows["nonvoluntary_ctxt_switches"])


def test_switches_are_counted(bed):
    """The switches of a watched cgroup, as the kernel itself counts them; closing detaches."""
    group = bed.group()
    bed.arm(group)
    worker = bed.python("import sys; print('here', flush=True)" + GIVES_WAY, group=None)
    (group / "cgroup.procs").write_text(str(worker.pid))
    with bed.client() as c:
        (link,) = c.ask("signal_attach", SWITCH, 0).fds
        check(bed.links() == 1, f"{bed.links()} links")
        before = kernel_counts(worker.pid)
        worker.stdin.write("\n")
        worker.stdin.flush()
        worker.stdout.readline()
        time.sleep(0.1)  # it sleeps in its last line by now
        wanted = [b - a for a, b in zip(before, kernel_counts(worker.pid))]
        counted = bed.switches()
        check(wanted[0] >= 200, f"the process gave way {wanted[0]} times")
        check(list(counted) == wanted, f"counted {counted}, the kernel {wanted}")
        bed.note(f"voluntary and involuntary: {counted}")
        os.close(link)
        until(lambda: bed.links() == 0, 5, "the link is left")


# ---- pressure_open

def test_pressure_unwatched(bed):
    """A cgroup that is not in the table of watches, the root and what is no cgroup at all."""
    group = bed.group()
    with bed.client() as c:
        with bed.refusals(unwatched=3):
            for number in (os.stat(group).st_ino, 1, 1 << 40):
                check(c.ask("pressure_open", number, 0, 0).refusal == "unwatched", f"{number}")
        for number in (os.stat(group / "cgroup.procs").st_ino, 1 << 40, 0):
            bed.watch(number)
            answer = c.ask("pressure_open", number, 0, 0)
            check(answer.refusal in ("kernel", "gone") and not answer.fds, f"{number}: {answer}")
        bed.watch(os.stat(group).st_ino)
        answer = c.ask("pressure_open", os.stat(group).st_ino, 0, 0)
        check(os.readlink(f"/proc/self/fd/{answer.fds[0]}") == f"{group}/cpu.pressure", f"{answer}")
        answer.close()
        number = os.stat(group).st_ino
        group.rmdir()
        with bed.refusals(unwatched=1):  # the kernel side has deleted its entry
            check(c.ask("pressure_open", number, 0, 0).refusal == "unwatched", "a cgroup that has gone")
        bed.watch(number)
        with bed.refusals(gone=1):
            check(c.ask("pressure_open", number, 0, 0).refusal == "gone", "a cgroup that has gone")


def test_pressure_serves_the_unprivileged(bed):
    """All three files; a process without any privilege writes a trigger into what it is handed and polls."""
    group = bed.group()
    bed.watch(os.stat(group).st_ino)
    bed.watch(1)
    with bed.client() as c:
        for number, names in ((os.stat(group).st_ino, [f"{group}/{r}.pressure" for r in ("cpu", "memory", "io")]),
                              (1, [f"/proc/pressure/{r}" for r in ("cpu", "memory", "io")])):
            for resource, name in enumerate(names):
                (fd,) = c.ask("pressure_open", number, resource, 0).fds
                check(os.readlink(f"/proc/self/fd/{fd}") == name, f"not {name}")
                with as_user(NOBODY):
                    check(os.read(fd, 4096).startswith(b"some avg10="), "not readable")
                    os.write(fd, b"some 100000 2000000\0")
                    poll = select.poll()
                    poll.register(fd, select.POLLPRI)
                    check(poll.poll(0) == [], "an error at once")
                    try:
                        os.write(fd, b"some 100000 2000000\0")
                        check(False, "a second trigger on it")
                    except OSError as fault:
                        check(fault.errno == errno.EBUSY, f"{fault}")
                os.close(fd)


def test_pressure_crossing(bed):
    """The trigger wakes its poller when the cgroup stalls."""
    group = bed.group()
    bed.watch(os.stat(group).st_ino)
    with bed.client() as c:
        (fd,) = c.ask("pressure_open", os.stat(group).st_ino, 0, 0).fds
        os.write(fd, b"some 100000 2000000\0")
        for _ in range(4 * os.cpu_count()):
            bed.spawn("/bin/sh", "-c", "while :; do :; done", group=group)
        poll = select.poll()
        poll.register(fd, select.POLLPRI)
        events = poll.poll(10000)
        check(events and events[0][1] & select.POLLPRI, f"no crossing within 10 s: {events}")
        os.close(fd)


# ---- mapping_open

def ask(c, process, name, start=None):
    """Asks for the first mapping of `process` whose path ends with `name`."""
    first, last, _ = mappings(process.pid, name)[0]
    return c.ask("mapping_open", start or start_ns(process.pid), first, last, process.pid, 0)


def known(bed, *words, **options):
    """A python process in the table of targets."""
    process = bed.python(*words, **options)
    bed.target(process.pid, start_ns(process.pid))
    return process


def same(answer, wanted):
    check(answer.refusal == "none" and len(answer.fds) == 1, f"{answer}")
    fd = answer.fds[0]
    check(os.pread(fd, 1 << 24, 0) == wanted, "another content")
    check(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY, "not read-only")
    answer.close()


def test_mapping_is_the_file(bed):
    """The file behind a mapping, read-only: of a process of another user, of a mode that only root reads."""
    with open(PROGRAM, "rb") as file:
        content = file.read()
    private = bed.folder / "private"
    shutil.copy(PROGRAM, private)
    os.chown(private, 1234, 1234)
    private.chmod(0o700)
    process = known(bed, MAPS, private, user=1234)
    with bed.client() as c:
        same(ask(c, process, "/private"), content)
        private.unlink()
        same(ask(c, process, "/private"), content)
        private.write_bytes(b"#!/bin/sh\n")
        same(ask(c, process, "/private"), content)


def test_mapping_in_another_mount_namespace(bed):
    """A file that exists nowhere in this namespace: read through the broker."""
    script = ("mount --make-rprivate / && mount -t tmpfs none /mnt && cp %s /mnt/only-here && exec "
              "/usr/bin/python3 -c \"$0\" /mnt/only-here" % PROGRAM)
    process = bed.spawn("unshare", "-m", "/bin/sh", "-c", script, MAPS, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "mapped\n", "no such process")
    check(not os.path.exists("/mnt/only-here"), "it is here too")
    bed.target(process.pid, start_ns(process.pid))
    with bed.client() as c, open(PROGRAM, "rb") as file:
        same(ask(c, process, "/only-here"), file.read())


def elf_of_type(number):
    with open(PROGRAM, "rb") as file:
        content = bytearray(file.read(8192))
    content[16:18] = struct.pack("=H", number)
    return bytes(content)


def test_mapping_of_other_files(bed):
    """What is no program or library is not handed out: text, objects, core dumps, set-user-id, set-group-id."""
    with bed.client() as c:
        for name, content, mode, refusal in (
                ("text", b"root:x:0:0\n" * 500, 0o644, "not_elf"), ("short", b"\x7fELF", 0o755, "not_elf"),
                ("object", elf_of_type(1), 0o755, "not_elf"), ("core", elf_of_type(4), 0o600, "not_elf"),
                ("setuid", elf_of_type(3), 0o4755, "setuid"), ("setgid", elf_of_type(3), 0o2755, "setuid"),
                ("library", elf_of_type(3), 0o644, "none"), ("program", elf_of_type(2), 0o755, "none")):
            path = bed.folder / name
            path.write_bytes(content)
            path.chmod(mode)
            process = known(bed, MAPS, path, len(content))
            answer = ask(c, process, f"/{name}")
            check(answer.refusal == refusal, f"{name}: {answer}")
            answer.close()


def test_mapping_of_devices(bed):
    """A device's mapping is refused before it is opened. (A FIFO, a socket, a directory has no mapping.)"""
    device = bed.folder / "device"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # as /dev/zero
    with bed.client() as c, bed.refusals(not_regular=1, file_system=1):
        check(ask(c, known(bed, MAPS, device), "/device").refusal == "not_regular", "a device")
        check(ask(c, known(bed, MAPS, "/dev/zero"), "/dev/zero").refusal == "file_system", "/dev/zero")
        os.mkfifo(bed.folder / "fifo")
        for special in (bed.folder / "fifo", bed.folder):
            done = subprocess.run(["/usr/bin/python3", "-c", MAPS.replace("O_RDONLY", "O_RDONLY | os.O_NONBLOCK"),
                                   special], capture_output=True, check=False)
            check(done.returncode != 0, f"{special} can be mapped: then it needs a case here")


def test_mapping_of_memory_files(bed):
    """A memory file is on a mount of the kernel's own, which no table lists: refused, whatever it holds."""
    with bed.client() as c, bed.refusals(file_system=1):
        check(ask(c, known(bed, MEMFD, PROGRAM), "memfd:code").refusal == "file_system", "a memory file")


def test_mapping_that_is_none(bed):
    """Heap, stack, vdso, half a mapping, no mapping: gone."""
    process = known(bed, MAPS, PROGRAM)
    with bed.client() as c, bed.refusals(gone=6):
        for name in ("[heap]", "[stack]", "[vdso]"):
            check(ask(c, process, name).refusal == "gone", name)
        first, last, _ = mappings(process.pid, "/libc.so.6")[0]
        for start, end in ((first, last - 4096), (first + 4096, last), (4096, 8192)):
            answer = c.ask("mapping_open", start_ns(process.pid), start, end, process.pid, 0)
            check(answer.refusal == "gone", f"{answer}")


def test_mapping_of_strangers(bed):
    """Neither known nor in a watched cgroup; then the one, then the other."""
    group = bed.group()
    process = bed.python(MAPS, PROGRAM)
    with bed.client() as c:
        with bed.refusals(unknown_process=1):
            check(ask(c, process, "/sleep").refusal == "unknown_process", "a stranger")
        (group / "cgroup.procs").write_text(str(process.pid))
        check(ask(c, process, "/sleep").refusal == "unknown_process", "in an unwatched cgroup")
        bed.watch(os.stat(group).st_ino)
        answer = ask(c, process, "/sleep")
        check(answer.refusal == "none", f"in a watched cgroup: {answer}")
        answer.close()
        bed.maps["watches"].delete(struct.pack("=Q", os.stat(group).st_ino))
        bed.target(process.pid, start_ns(process.pid))
        answer = ask(c, process, "/sleep")
        check(answer.refusal == "none", f"in the table of targets: {answer}")
        answer.close()


def test_mapping_of_a_reused_pid(bed):
    """The process that was meant is gone and another one has its number: refused as that."""
    old = known(bed, MAPS, PROGRAM)
    began, (first, last, _) = start_ns(old.pid), mappings(old.pid, "/sleep")[0]
    with bed.client() as c:
        old.kill()
        old.wait()
        with bed.refusals(gone=1):
            check(c.ask("mapping_open", began, first, last, old.pid, 0).refusal == "gone", "after its end")
        time.sleep(0.05)
        pid = process_with_pid(old.pid)
        try:
            check(start_ns(pid) != began, "the same start")
            with bed.refusals(other_process=1):
                check(c.ask("mapping_open", began, first, last, pid, 0).refusal == "other_process", "reused")
            first, last, _ = mappings(pid, "/libc.so.6")[0]
            with bed.refusals(other_process=1):
                check(c.ask("mapping_open", began, first, last, pid, 0).refusal == "other_process", "reused")
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


LEASE = """
import fcntl, mmap, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDWR)
held = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("mapped", flush=True)
sys.stdin.readline()
"""


def test_mapping_under_a_lease(bed):
    """A file whose owner makes every open(2) wait (45 s is the usual time): not this one."""
    path = bed.folder / "leased"
    shutil.copy(PROGRAM, path)
    process = known(bed, LEASE, path)
    with bed.client() as c:
        began = time.monotonic()
        answer = ask(c, process, "/leased")
        check(answer.refusal == "kernel" and answer.error == -errno.EAGAIN, f"{answer}")
        check(time.monotonic() - began < 3, "it waited")


def test_mapping_on_fuse(bed):
    """A file system whose server may never answer, so that not even SIGKILL ends the wait: not asked at all."""
    with open(PROGRAM, "rb") as file:
        held = HeldFs(bed.folder / "held", file.read())
    try:
        process = known(bed, MAPS, bed.folder / "held" / "program")
        held.held = True
        with bed.client() as c, bed.refusals(file_system=1):
            check(ask(c, process, "/program").refusal == "file_system", "on FUSE")
            check(not held.asked.is_set(), "its server was asked")
        process.kill()
    finally:
        held.close()


# ---- jit_map_open

WAITS = """
import os, sys
print(os.getpid(), flush=True)
sys.stdin.readline()
"""
LINES = "7f0000001000 80 LazyCompile:*sell /shop.js:1\n"


def ask_map(c, process, began=None):
    return c.ask("jit_map_open", began or start_ns(process.pid), process.pid, 0)


def contained(bed, name, *flags, before="true", user=None):
    """A known process in a mount namespace and a root of its own, which is a mount as a container's is; the
    folder that is its /tmp."""
    root = bed.folder / name
    (root / "tmp").mkdir(parents=True)
    folders = " ".join(f for f in ("/usr", "/bin", "/lib", "/lib64", "/proc") if os.path.exists(f))
    script = (f"set -e; mount --make-rprivate /; mount --bind {root} {root}; for f in {folders}; do mkdir -p {root}$f; "
              f"mount --rbind $f {root}$f; done; {before}; "
              f"exec chroot {f'--userspec={user}:{user} ' if user else ''}{root} /usr/bin/python3 -c \"$0\"")
    starter = bed.spawn("unshare", "-m", *flags, "/bin/sh", "-c", script, WAITS, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True)
    inner = int(starter.stdout.readline())
    pid = starter.pid
    if flags:  # it forked: the process is the child, of another number in there
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            pid = int(children.read().split()[0])
    bed.target(pid, start_ns(pid))
    return Contained(pid, inner, root / "tmp", starter)


class Contained:
    def __init__(self, pid, inner, folder, starter):
        self.pid, self.inner, self.folder, self.starter = pid, inner, folder, starter
        self.map = folder / f"perf-{inner}.map"


def test_jit_map_of_a_container(bed):
    """The map at the process's own /tmp, under the number that it has in its own PID namespace."""
    process = contained(bed, "inner", "--pid", "--fork", "--kill-child", user=1234)
    check(process.inner != process.pid, f"{process.inner}")
    process.map.write_text(LINES)
    os.chown(process.map, 1234, 1234)
    process.map.chmod(0o600)
    with bed.client() as c:
        answer = ask_map(c, process)
        check(answer.refusal == "none" and len(answer.fds) == 1, f"{answer}")
        check(fcntl.fcntl(answer.fds[0], fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY, "not read-only")
        check(os.pread(answer.fds[0], 100, 0).decode() == LINES, "another content")
        answer.close()
        # what its folder is, is the mount namespace's matter
        process.map.unlink()
        answer = ask_map(c, process)
        check(answer.refusal == "kernel" and answer.error == -errno.ENOENT, f"{answer}")


def test_jit_map_of_a_private_tmp(bed):
    """A /tmp that was mounted in the process's namespace alone, as PrivateTmp= does."""
    process = contained(bed, "private", before=f"mount -t tmpfs none {bed.folder}/private/tmp")
    there = os.path.join(f"/proc/{process.pid}/root", "tmp", process.map.name)
    with open(there, "w", encoding="ascii") as file:
        file.write(LINES)
    check(not process.map.exists(), "it is here too")
    with bed.client() as c:
        answer = ask_map(c, process)
        check(answer.refusal == "none" and os.pread(answer.fds[0], 100, 0).decode() == LINES, f"{answer}")
        answer.close()


def test_jit_map_that_is_none(bed):
    """Another owner, another name, a symbolic link, a folder, a FIFO, a device, set-user-id."""
    process = contained(bed, "none")
    path, secret = process.map, process.folder / "secret"
    secret.write_text("root:x\n")

    def place(make, refusal):
        make()
        answer = ask_map(c, process)
        check(answer.refusal == refusal and not answer.fds, f"{refusal}: {answer}")
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def owned(uid, mode=0o644):
        path.write_text(LINES)
        os.chown(path, uid, uid)
        path.chmod(mode)

    with bed.client() as c, bed.refusals(other_owner=2, not_regular=5, setuid=1):
        place(lambda: owned(1234), "other_owner")
        place(lambda: os.link(secret, path), "other_owner")
        place(lambda: path.symlink_to(secret), "not_regular")
        place(lambda: path.symlink_to("nowhere"), "not_regular")
        place(path.mkdir, "not_regular")
        place(lambda: os.mkfifo(path), "not_regular")
        place(lambda: os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5)), "not_regular")
        place(lambda: owned(0, 0o4644), "setuid")


def test_jit_map_behind_a_link(bed):
    """A /tmp that is a symbolic link is not followed."""
    process = contained(bed, "linked")
    (process.folder / f"perf-{process.inner}.map").write_text(LINES)
    process.folder.rename(process.folder.parent / "other")
    process.folder.symlink_to("other")
    with bed.client() as c:
        answer = ask_map(c, process)
        check(answer.refusal == "kernel" and answer.error == -errno.ENOTDIR, f"{answer}")


def test_jit_map_on_fuse(bed):
    """A /tmp whose server may never answer is not asked."""
    held = HeldFs(bed.folder / "held", b"")
    try:
        process = contained(bed, "fuse", before=f"mount --bind {bed.folder}/held {bed.folder}/fuse/tmp")
        held.held = True
        held.asked.clear()
        with bed.client() as c, bed.refusals(file_system=1):
            check(ask_map(c, process).refusal == "file_system", "on FUSE")
            check(not held.asked.is_set(), "its server was asked")
        os.kill(process.pid, signal.SIGKILL)
    finally:
        held.close()


def test_jit_map_of_strangers(bed):
    """Of a process that is not known, of one with another start, of one that has gone."""
    process = bed.python(WAITS)
    began = start_ns(process.pid)
    with bed.client() as c:
        with bed.refusals(unknown_process=1):
            check(ask_map(c, process).refusal == "unknown_process", "a stranger")
        bed.target(process.pid, began)
        with bed.refusals(other_process=1):
            check(ask_map(c, process, began + 20_000_000).refusal == "other_process", "another start")
        process.kill()
        process.wait()
        with bed.refusals(gone=1):
            check(ask_map(c, process, began).refusal == "gone", "after its end")


def test_many_in_a_row(bed):
    """3,000 pressure files in one go, as a consumer's start asks for them; nothing of it stays over there."""
    group = bed.group()
    bed.watch(os.stat(group).st_ino)
    with bed.client() as c:
        before, began = bed.open_fds(), time.monotonic()
        for i in range(3000):
            answer = c.ask("pressure_open", os.stat(group).st_ino, i % 3, 0)
            check(answer.refusal == "none", f"{i}: {answer}")
            answer.close()
        bed.note(f"3,000 pressure files in {time.monotonic() - began:.2f} s")
        until(lambda: bed.open_fds() == before, 2, f"{before} became {bed.open_fds()}")
