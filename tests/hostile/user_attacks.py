#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a hostile local user does to an agent, one function each, until its time is over:

  user_attacks.py NAME WORLD

WORLD is a JSON file: seconds, comm (that a rule looks for), group (a delegated cgroup), folder (the user's own),
workloads, held (where tests/broker's FUSE file system is), doors (what the user may not open), secret (a file of
root's). test_user.py runs them all at once. What an attack cannot do on this machine it leaves; what it found it
writes to NAME.found in its folder."""
import _thread
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

from user_elf import LIES, Elf

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.mprotect.argtypes = LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
PAGE = mmap.PAGESIZE
READ_EXEC = mmap.PROT_READ | mmap.PROT_EXEC
SPIN = {"x86_64": b"\xf3\x90\xeb\xfc", "aarch64": b"\x3f\x20\x03\xd5\xff\xff\xff\x17"}[os.uname().machine]
MANY_CGROUPS = 20000
MAPPINGS = 20000  # of one process; sysctl vm.max_map_count allows 65530

# A terminal's escape sequences in 7 and 8 bits, bidirectional controls, ends of lines, what is not UTF-8.
ODD = ["\x1b[2J\x1b]0;t\x07".encode(), "\u009b31mred\u0085".encode(), b"\x9b5n\x90q\x9c", "\u202etxt.\u2066exe\u2069".encode(),
       b"a\nb\r\n{\"type\":", b"\"},{\"type\":\"x\"", b"\\u001b\\", b"\xff\xfe\xf8\x80", b"\xed\xa0\x80\xed\xb0\x80",
       b"\xe2\x80\xa8\xe2\x80\xa9\x7f", "\u200e\u200f\u061c".encode(), b"%s%n%x", b"x" * 200, "\u202e".encode() * 60]


class World:
    def __init__(self, name, path):
        self.__dict__.update(json.loads(pathlib.Path(path).read_text(encoding="utf-8")))
        self.name, self.path = name, path
        self.folder, self.group = pathlib.Path(self.folder) / name, pathlib.Path(self.group)
        self.folder.mkdir(exist_ok=True)
        self.ends = time.monotonic() + self.seconds
        self.random = random.Random(name)

    def left(self):
        """Whole seconds, at least 1."""
        return max(1, int(self.ends - time.monotonic()))

    def rounds(self, pause=0.0):
        """Counts until the time is over. What the kernel refuses once is tried again in the next round."""
        number = 0
        while time.monotonic() < self.ends:
            yield number
            number += 1
            time.sleep(pause)

    def workload(self, which):
        return os.path.join(self.workloads, which)

    def become(self, which, *words):
        """This process becomes a program that is called as the rule wants it."""
        program = self.folder / self.comm
        shutil.copy(self.workload(which), program)
        os.execv(program, [str(program), str(self.left()), *words])

    def cgroup(self, name):
        """A cgroup below the delegated one, as a path in bytes; it may be there already."""
        path = os.fsencode(self.group) + b"/" + name
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        return path

    def tell(self, what, name=None):
        (self.folder / "new").write_text(json.dumps(what), encoding="utf-8")
        (self.folder / "new").rename(self.folder.parent / f"{name or self.name}.found")


def set_name(name):
    LIBC.prctl(PR_SET_NAME, name if isinstance(name, bytes) else name.encode(), 0, 0, 0)


def join(path):
    with open(path + b"/cgroup.procs", "wb", buffering=0) as stream:
        stream.write(b"0")


def child(function, seconds=2):
    """Runs the function in a process that ends with its parent, and after `seconds` in any case; None without one."""
    try:
        pid = os.fork()
    except OSError:
        return None
    if pid:
        return pid
    try:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.alarm(seconds)
        function()
    finally:
        os._exit(0)


def wait(*pids):
    for pid in pids:
        if pid:
            os.waitpid(pid, 0)


def map_file(fd, size, protection=READ_EXEC, flags=mmap.MAP_PRIVATE):
    """The address; 0 where the kernel refuses."""
    at = LIBC.mmap(None, size, protection, flags, fd, 0)
    return 0 if at == ctypes.c_void_p(-1).value else at


def run_at(address):
    ctypes.CFUNCTYPE(None)(address)()


def fresh_code():
    """Code in anonymous memory, as a runtime compiles it."""
    at = map_file(-1, PAGE, READ_EXEC | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    ctypes.memmove(at, SPIN, len(SPIN))
    return at


# ---- the attacks


def renames(w):
    os.execv(w.workload("flooder"), ["flooder", str(w.left()), "rename", w.comm])


def forks(w):
    w.become("flooder", "fork", w.comm)


def execs(w):
    w.become("flooder", "exec", w.comm)


def threads(w):
    """Threads that take odd names, and the rule's, and are gone."""
    def be(name):
        set_name(name)
        time.sleep(0.01)

    set_name(w.comm)
    for number in w.rounds(0.002):
        with contextlib.suppress(RuntimeError):
            _thread.start_new_thread(be, (w.comm if number % 2 else ODD[number // 2 % len(ODD)][:15],))


def names(w):
    """Programs, command lines and names that are meant for a terminal or a parser."""
    def be(odd, program):
        set_name(odd[:15])
        time.sleep(0.05)
        os.execv(program, [odd, b"2", odd])

    for number in w.rounds(0.02):
        odd = ODD[number % len(ODD)]
        folder = os.fsencode(w.folder) + b"/" + odd.replace(b"/", b"")
        program = folder + b"/" + (odd[:100] if number % 2 else w.comm.encode())
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(program):
            shutil.copy(w.workload("burn_cpu"), program)
        wait(child(lambda odd=odd, program=program: be(odd, program), 1))


def cgroups(w):
    """Cgroups with odd names, closed to everybody else, with processes of the rule's name in them; and deep ones."""
    def be(path):
        join(path)
        set_name(w.comm)
        os.chmod(path, 0o700)
        with contextlib.suppress(OSError):
            os.chmod(path + b"/cgroup.procs", 0o600)
        with contextlib.suppress(OSError):
            os.rename(path, path + b"~")
        run_at(fresh_code())

    for number in w.rounds():
        path = w.cgroup(ODD[number % len(ODD)].replace(b"\n", b"") + b"%d" % number)  # the kernel allows no newline
        pid = child(lambda path=path: be(path), 1)
        for flood in range(200):
            with contextlib.suppress(OSError):
                os.rmdir(w.cgroup(b"flood%d" % flood))
        with contextlib.suppress(OSError):
            deep = path
            for _ in range(12):
                deep += b"/" + b"\xe2\x80\xae" * 80
                os.mkdir(deep)
        wait(pid)
        for folder, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def many_cgroups(w):
    """So many cgroups that each walk over all of them takes a second; the user's other attacks make the agent walk."""
    for group in range(MANY_CGROUPS // 100):
        above = w.cgroup(b"many%d" % group)
        for number in range(100):
            with contextlib.suppress(OSError):
                os.mkdir(above + b"/%d" % number)
    time.sleep(w.left())


def programs(w):
    """Programs that run, and whose files lie: each is deleted, cut or replaced while it runs."""
    whole = pathlib.Path(w.workload("callers")).read_bytes()
    for number in w.rounds():
        lie = list(LIES)[number % len(LIES)]
        path = w.folder / w.comm
        path.unlink(missing_ok=True)
        path.write_bytes(LIES[lie](Elf(whole), w.random))
        path.chmod(0o755)
        with contextlib.suppress(OSError):
            with subprocess.Popen([path, "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                time.sleep(0.5)
                if number % 3 == 1:
                    path.unlink()
                elif number % 3 == 2:
                    other = w.folder / "other"
                    other.write_bytes(w.random.randbytes(100000))
                    other.rename(path)
                time.sleep(0.3)
                process.kill()


def mapped_files(w):
    """Files of noise, or of a program's first page and noise, with a page of code; cut and replaced meanwhile."""
    first = pathlib.Path(w.workload("callers")).read_bytes()[:PAGE]
    for number in w.rounds():
        path = w.folder / f"file{number % 4}"
        begin = first if number % 2 else w.random.randbytes(PAGE)
        path.write_bytes(begin + SPIN + w.random.randbytes(16 * PAGE))
        with open(path, "rb") as file:
            at = map_file(file.fileno(), 17 * PAGE)

        def be(at=at):
            set_name(w.comm)
            run_at(at + PAGE)

        pid = child(be, 1)
        time.sleep(0.4)
        if number % 4 < 2:
            path.unlink()
        elif number % 4 == 2:
            os.truncate(path, 1)
        wait(pid)
        LIBC.munmap(at, 17 * PAGE)


def many_mappings(w):
    """As many mappings as the kernel allows, of one file, while another thread maps and unmaps without end."""
    path = w.folder / "file"
    path.write_bytes(SPIN * (PAGE // len(SPIN)) * 8)

    def churn(fd):
        while True:
            LIBC.munmap(map_file(fd, 8 * PAGE), 8 * PAGE)

    def be():
        set_name(w.comm)
        fd = os.open(path, os.O_RDONLY)
        at = [map_file(fd, PAGE, READ_EXEC if i % 2 else mmap.PROT_READ) for i in range(MAPPINGS)]
        _thread.start_new_thread(churn, (fd,))
        _thread.start_new_thread(run_at, (at[1],))
        time.sleep(9)

    for _ in w.rounds(0.1):
        wait(child(be, 8))


def regular(write):
    def make(path, w):
        with open(path, "wb") as file:
            write(file, w)
    return make


def growing(file, w):
    pid = os.fork()
    if pid == 0:
        for _ in range(300):
            file.write(b"%x 10 grown\n" % w.random.getrandbits(47) * 1000)
            file.flush()
            time.sleep(0.005)
        os._exit(0)


PERF_MAPS = {
    "fifo": lambda path, w: os.mkfifo(path, 0o644),
    "secret": lambda path, w: os.symlink(w.secret, path),
    "device": lambda path, w: os.symlink("/dev/zero", path),
    "linked": lambda path, w: os.link("/etc/passwd", path),
    "folder": lambda path, w: os.mkdir(path),
    "sparse": regular(lambda file, w: file.truncate(1 << 40)),
    "noise": regular(lambda file, w: file.write(w.random.randbytes(4 << 20))),
    "lies": regular(lambda file, w: file.write(b"".join(b"0 ffffffffffffffff %s\n" % odd for odd in ODD) * 3000)),
    "growing": regular(growing),
    "socket": lambda path, w: socket.socket(socket.AF_UNIX).bind(path),
}


def perf_maps(w):
    """Perf maps that are none, of a process that runs code which it has made."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def be(go):
        set_name(w.comm)
        at = fresh_code()
        os.read(go, 1)
        run_at(at)

    for number in w.rounds():
        pids, paths = [], []
        for kind in list(PERF_MAPS)[number % 2::2]:
            go, say = os.pipe()
            pid = child(lambda go=go: be(go), 2)
            if pid:
                pids.append(pid)
                paths.append(f"/tmp/perf-{pid}.map")
                with contextlib.suppress(OSError):
                    PERF_MAPS[kind](paths[-1], w)
            os.write(say, b"g")
            os.close(go)
            os.close(say)
        wait(*pids)
        for path in paths:
            with contextlib.suppress(OSError):
                os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def run_held(w, program, ready, go):
    """Processes, one after the other, that run code of a file whose other pages nobody ever gets after `go`. The file's
    server must be another process: whoever waits for a page may hold what it needs to answer."""
    with open(program, "rb") as file:
        at = map_file(file.fileno(), 17 * PAGE)
    ctypes.string_at(at + PAGE, 8)  # this page is here from now on

    def be():
        set_name(w.comm)
        run_at(at + PAGE)

    ready()
    go()
    for _ in w.rounds():
        wait(child(be, 1), child(be, 2))


def held_content(w):
    return pathlib.Path(w.workload("callers")).read_bytes()[:PAGE] + SPIN + bytes(16 * PAGE)


def fuse(w):
    """A FUSE file system that stops answering, with an overlay above it, in namespaces of the user's own."""
    words = [sys.executable, __file__, "inside", w.path]
    done = subprocess.run(["unshare", "-Urm", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        w.tell({"cannot": (done.stderr.strip().splitlines() or ["unshare fails"])[-1]})


def inside(w):
    sys.path.insert(0, w.held)
    from held_fs import HeldFs, Skip  # the test's own, which imports what only it has
    top = pathlib.Path("/mnt")
    if LIBC.mount(b"none", b"/mnt", b"tmpfs", 0, None):
        sys.exit("no tmpfs in a user namespace")
    for name in ("low", "all"):
        (top / name).mkdir()
    try:
        held = HeldFs(top / "held", held_content(w))
    except Skip as why:
        sys.exit(str(why))
    programs = [top / "held" / "program"]
    if LIBC.mount(b"trocar", b"/mnt/all", b"overlay", 0, b"lowerdir=/mnt/held:/mnt/low") == 0:
        programs.append(top / "all" / "program")
    came, come = os.pipe()
    went, go = os.pipe()
    running = [child(lambda p=p: run_held(w, p, lambda: os.write(come, b"r"), lambda: os.read(went, 1)), w.left())
               for p in programs]
    for _ in running:
        os.read(came, 1)
    held.held = True
    os.write(go, bytes(len(running)))
    for _ in w.rounds(1):
        w.tell({"asked_for": sorted(held.asked_for), "ways": len(running)}, "fuse")
    wait(*running)


def held_file(w):
    """The same below the host's root directory, as fusermount3 makes it for any user: test_user.py has mounted it."""
    go = w.folder / "go"

    def wait_for_go():
        while not go.exists():
            time.sleep(0.05)

    run_held(w, pathlib.Path(w.mounted) / "program", lambda: w.tell({"ready": True}), wait_for_go)


def pressure(w):
    """Stalls in many cgroups at once, so that sessions, their room and their budget go to this user."""
    def be(path, which, *words):
        join(path)
        program = w.folder / w.comm
        os.execv(program if which == "burn_cpu" else w.workload(which), [w.comm, str(w.left()), *words])

    shutil.copy(w.workload("burn_cpu"), w.folder / w.comm)
    pids = [child(lambda i=i: be(w.cgroup(b"stall%d" % i), "burn_cpu", "2"), w.left()) for i in range(20)]
    pids.append(child(lambda: be(w.cgroup(b"memory"), "thrash_memory"), w.left()))
    wait(*pids)


def doors(w):
    """What is not open to this user: sockets, pins, rules, the output, the processes themselves."""
    opened, tries = [], 0
    for _ in w.rounds(0.05):
        w.tell({"opened": opened[:10], "tries": tries})
        for door, kind in w.doors:
            with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
                tries += 1
                if kind == "file":
                    os.close(os.open(door, os.O_RDWR))
                elif kind == "folder":
                    os.listdir(door)
                elif kind == "process":
                    os.kill(int(door), signal.SIGTERM)
                else:
                    client = stack.enter_context(socket.socket(socket.AF_UNIX, getattr(socket, kind)))
                    client.connect(door)
                opened.append(door)


ATTACKS = {f.__name__: f for f in (renames, forks, execs, threads, names, cgroups, many_cgroups, programs,
                                   mapped_files, many_mappings, perf_maps, fuse, held_file, pressure, doors)}


def main():
    name, path = sys.argv[1:]
    w = World(name, path)
    os.chdir(w.folder)
    {**ATTACKS, "inside": inside}[name](w)
    os._exit(0)  # not by way of the interpreter's end, which threads that still run do not survive


if __name__ == "__main__":
    main()
