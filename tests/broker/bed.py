# SPDX-License-Identifier: BSD-2-Clause
"""What a test of the broker stands on: a loaded set of its own, a socket that starts the broker, the maps
behind the pins, and processes and cgroups to ask for. All of it is taken away again."""
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from client import REFUSALS, REQUESTS, Activator, Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TROCAR_BUILD", ROOT / "build"))
LOADER = BUILD / "loader" / "trocar-loader"
NOBODY = 65534
SWITCH = 10  # enum signal_bit of shared/rules/rules.h
SLOT_CAPTURE = 2
TICK_NS = 10_000_000  # what /proc counts in

LIBC = ctypes.CDLL(None, use_errno=True)
SYS = {"x86_64": {"bpf": 321, "setresuid": 117}, "aarch64": {"bpf": 280, "setresuid": 147}}[os.uname().machine]
CLONE3 = 435


class Failure(Exception):
    """The broker did not do what it should."""


class Skip(Exception):
    """The test cannot run here; the reason is the text."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def until(question, seconds, text):
    end = time.monotonic() + seconds
    while not (answer := question()):
        if time.monotonic() > end:
            raise Failure(f"not within {seconds} s: {text}")
        time.sleep(0.02)
    return answer


@contextlib.contextmanager
def as_user(uid):
    """This thread alone is `uid` meanwhile: the system call itself, which glibc would do for all threads."""
    if LIBC.syscall(SYS["setresuid"], -1, uid, -1) != 0:
        raise OSError(ctypes.get_errno(), "setresuid")
    try:
        yield
    finally:
        LIBC.syscall(SYS["setresuid"], -1, 0, -1)


def bpf(command, attribute):
    room = ctypes.create_string_buffer(attribute, 128)
    r = LIBC.syscall(SYS["bpf"], command, room, len(attribute))
    if r < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return r


class Pin:
    """A pinned map, by descriptor."""

    def __init__(self, path):
        name = ctypes.create_string_buffer(str(path).encode())
        self.fd = bpf(7, struct.pack("=QII", ctypes.addressof(name), 0, 0))

    def _element(self, command, key, value):
        keys, values = ctypes.create_string_buffer(key), ctypes.create_string_buffer(value or b"", 16384)
        bpf(command, struct.pack("=IIQQQ", self.fd, 0, ctypes.addressof(keys),
                                 ctypes.addressof(values) if value is not None else 0, 0))
        return values.raw

    def lookup(self, key):
        return self._element(1, key, b"")

    def update(self, key, value):
        self._element(2, key, value)

    def delete(self, key):
        self._element(3, key, None)

    def close(self):
        os.close(self.fd)


class Bed:
    """One test's surroundings."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="trocar-broker-"))
        os.chmod(self.folder, 0o755)
        self.bpf_dir, self.socket = self.folder / "t" / "bpf", self.folder / "socket"
        self.processes, self.groups, self.activator = [], [], None
        self.load()
        self.activator = Activator(self.socket, [LOADER, "broker", "--bpf-dir", self.bpf_dir, "--user",
                                                 NOBODY])

    def load(self, *options):
        self.loader("load", "--group", NOBODY, *options)
        self.maps = {name: Pin(self.bpf_dir / name) for name in
                     ("watches", "targets", "control", "slots", "switches", "counters", "broker")}
        self.words = mmap.mmap(self.maps["control"].fd, 4096)
        self.states = mmap.mmap(self.maps["slots"].fd, 4096)
        self.account = mmap.mmap(self.maps["broker"].fd, 4096)
        self.ids = {name: self.program_id(name) for name in ("sampler", "count_switches")}

    def unload(self):
        for shared in (self.words, self.states, self.account):
            shared.close()
        for pin in self.maps.values():
            pin.close()
        self.maps = {}
        self.loader("unload")

    def loader(self, verb, *options):
        done = subprocess.run([str(w) for w in (LOADER, verb, "--bpf-dir", self.bpf_dir, *options)],
                              capture_output=True, text=True, timeout=30, check=False)
        check(done.returncode == 0, f"{verb}: {done.stderr}")

    def done(self):
        if self.activator:
            self.activator.close()
        close_granted()
        for process in self.processes:
            process.kill()
            process.wait()
        for group in reversed(self.groups):
            with contextlib.suppress(OSError):
                until(lambda g=group: not (g / "cgroup.procs").read_text(), 5, "cgroup in use")
                group.rmdir()
        if self.maps:
            self.unload()
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def note(text):
        """For who reads the test's output."""
        print(f"# {text}", flush=True)

    # ---- asking

    def client(self, hello=True, uid=NOBODY):
        with as_user(uid):
            return Client(self.socket, hello=hello)

    def pid(self):
        """The broker's process."""
        self.activator.wait(lambda: self.activator.process)
        process = self.activator.process
        check(process, f"no broker: {self.activator.said}")
        return process.pid

    def counts(self):
        """(starts, {request: granted}, {reason: refused}) as the pin has them."""
        words = struct.unpack("=65Q", self.account[:65 * 8])
        return words[0], dict(zip(REQUESTS, words[1:17])), dict(zip(REFUSALS, words[17:]))

    @contextlib.contextmanager
    def refusals(self, **expected):
        """Within it just these refusals are counted."""
        before = self.counts()[2]
        yield
        after = self.counts()[2]
        grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
        check(grown == expected, f"counted {grown}, not {expected}")

    def open_fds(self):
        """Descriptors of the broker."""
        return sorted(os.listdir(f"/proc/{self.pid()}/fd"))

    # ---- the kernel side

    def program_id(self, name):
        shown = subprocess.run(["bpftool", "-j", "prog", "show", "pinned", str(self.bpf_dir / name)],
                               capture_output=True, check=True)
        return json.loads(shown.stdout)["id"]

    def links(self):
        """How many links there are of our scheduler program, in whosever hands."""
        shown = until(lambda: (done := subprocess.run(["bpftool", "-j", "link", "show"], capture_output=True,
                                                      check=False)).returncode == 0 and done,
                      5, "bpftool stumbles over links that go while it lists them")
        return sum(link.get("prog_id") == self.ids["count_switches"] for link in json.loads(shown.stdout))

    def runs(self, name):
        """How often our program ran while statistics were on (see `statistics`)."""
        shown = subprocess.run(["bpftool", "-j", "prog", "show", "id", str(self.ids[name])],
                               capture_output=True, check=True)
        return json.loads(shown.stdout).get("run_cnt", 0)

    @contextlib.contextmanager
    def statistics(self):
        fd = bpf(32, struct.pack("=I", 0))  # BPF_ENABLE_STATS
        try:
            yield
        finally:
            os.close(fd)

    def arm(self, group, slot=0):
        """Watches `group` in `slot` at the capture rate, the heartbeat fresh for a minute."""
        self.watch(os.stat(group).st_ino, slot)
        self.states[slot * 32:slot * 32 + 8] = struct.pack("=II", SLOT_CAPTURE, 0)
        self.words[:20] = struct.pack("=QQI", time.monotonic_ns(), 60_000_000_000, 1)

    def watch(self, cgroup_id, slot=0):
        self.maps["watches"].update(struct.pack("=Q", cgroup_id), struct.pack("=II", slot, 1))

    def target(self, pid, start_ns):
        self.maps["targets"].update(struct.pack("=IIQ", pid, 0, start_ns), bytes(16))

    def switches(self, slot=0):
        """(voluntary, involuntary) of a slot, summed over the CPUs."""
        values = self.maps["switches"].lookup(struct.pack("=I", slot))
        words = struct.unpack(f"={len(values) // 8}Q", values)
        return sum(words[::2]), sum(words[1::2])

    # ---- processes and cgroups

    def group(self, name="group"):
        with open("/proc/mounts", encoding="ascii") as mounts:
            root = next((row.split()[1] for row in mounts if row.split()[2] == "cgroup2"), None)
        if not root:
            raise Skip("there is no cgroup2 mount")
        made = pathlib.Path(root) / f"trocar-broker-{os.getpid()}-{name}"
        made.mkdir()
        self.groups.append(made)
        return made

    def spawn(self, *words, group=None, **options):
        process = subprocess.Popen([str(w) for w in words], **options)
        self.processes.append(process)
        if group:
            (group / "cgroup.procs").write_text(str(process.pid))
        return process

    def python(self, script, *words, **options):
        """A process that runs `script`; returns when it has written its first line."""
        process = self.spawn("/usr/bin/python3", "-c", script, *words, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, **options)
        process.line = process.stdout.readline()
        check(process.line, "the process ended at its start")
        return process


def close_granted():
    """Events and links that a test has left open: the next one's broker would count them."""
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{fd}") in ("anon_inode:[perf_event]", "anon_inode:bpf_link"):
                os.close(int(fd))


def start_ns(pid):
    """When the process started, as far as /proc knows it."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return int(fields.rsplit(")", 1)[1].split()[19]) * TICK_NS


def mappings(pid, name=None):
    """[(start, end, path)] of the mappings whose path ends with `name` (None: all)."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as rows:
        for row in rows:
            fields = row.rstrip("\n").split(None, 5)
            path = fields[5] if len(fields) > 5 else ""
            if name is None or path.removesuffix(" (deleted)").endswith(name):
                start, end = (int(x, 16) for x in fields[0].split("-"))
                found.append((start, end, path))
    return found


def process_with_pid(pid, seconds=3):
    """A new process of this very number, asleep until it is killed (clone3 with set_tid)."""
    numbers = (ctypes.c_int * 1)(pid)
    arguments = struct.pack("=11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(numbers), 1, 0)
    room = ctypes.create_string_buffer(arguments, len(arguments))
    end = time.monotonic() + seconds
    while (made := LIBC.syscall(CLONE3, room, len(arguments))) < 0:
        if ctypes.get_errno() != 17 or time.monotonic() > end:  # EEXIST: not reaped yet
            raise Skip(f"clone3 with set_tid: {os.strerror(ctypes.get_errno())}")
        time.sleep(0.01)
    if made == 0:
        signal.pause()
        os._exit(0)
    return made
