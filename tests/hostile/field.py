# SPDX-License-Identifier: BSD-2-Clause
"""Where the captive is let loose: a loaded set and its broker, the prey, and those who look on meanwhile, as root: what
the captive has open, what it costs, what the kernel says. Used by test_consumer.py."""
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import stat
import struct
import subprocess
import time

import bed
from bed import check, until
from client import Activator

PROGRAMS = bed.BUILD / "tests" / "hostile"
CAPTIVE, KEEPER = PROGRAMS / "captive", PROGRAMS / "keeper"
RANGES = 512  # CAPTIVE_RANGES
WATCHED, STRANGER, OUTSIDE = range(3)  # enum prey_kind
TASK = struct.Struct("=QQIIII16s")  # struct task_record of shared/abi/abi.h
SHOWS_MEMORY = {"mem", "environ", "auxv", "pagemap", "kmem"}
ITERATORS = {"tasks", "vmas_open", "vmas_tree", "vmas_pid", "ranges", "ranges_pid", "ksyms"}
ABI = bed.ROOT / "shared" / "abi"


def rows(table, word):
    """First words in brackets of the rows `word` of a .def table."""
    return re.findall(rf"^{word}\((\w+)", (ABI / table).read_text(encoding="ascii"), re.M)


# What it may hold at once; of what is not here as much as it likes: events and margin as in loader/broker/broker_peer.h, and
# two connections with one that is about to be closed.
LIMITS = {"[perf_event]": 2 * os.cpu_count() + 4, "link": len(rows("probes.def", "PROBE")), "socket": 3,
          "bpf-map": len(rows("pins.def", "PIN_MAP"))}


def cgroup_id(pid, mount):
    """Of the process's cgroup in the cgroup2 tree."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as lines:
        path = next(line.rstrip("\n")[3:] for line in lines if line.startswith("0::"))
    return os.stat(str(mount) + path).st_ino


def mappings(pid):
    """[(start, end, inode, 1 when it is executable)]."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
        fields = [line.split(None, 5) for line in lines]
    return [(*(int(x, 16) for x in f[0].split("-")), int(f[4]), int(f[1][2] == "x")) for f in fields]


def mapped_files(pid):
    """{(device, inode)} of all that it has mapped."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
        fields = [line.split(None, 5) for line in lines]
    return {(f[3], int(f[4])) for f in fields if int(f[4])}


def windows(text):
    """The words that a text is in memory, wherever it begins."""
    return [int.from_bytes(text[i:i + 8], "little") for i in range(len(text) - 7)]


def bpftool(*words):
    done = until(lambda: (tried := subprocess.run(["bpftool", "-j", *words], capture_output=True,
                                                  check=False)).returncode == 0 and tried,
                 5, "bpftool stumbles over what goes while it lists it")
    return json.loads(done.stdout or "[]")


class Prey:
    """One process that the captive is after."""

    def __init__(self, kind, pid, cgroup, process=None, words=()):
        self.kind, self.pid, self.cgroup, self.process = kind, pid, cgroup, process
        self.secrets, self.start_ns = list(words), 0

    def lines(self):
        yield f"prey {self.kind} {self.pid} {self.cgroup} {self.start_ns}"
        yield from ("range {} {} {} {}".format(*mapping) for mapping in mappings(self.pid)[:RANGES])
        yield from (f"secret {word}" for word in self.secrets)


class Field:
    """All of one campaign. With `scoped` only the keeper's cgroup may be looked at."""

    def __init__(self, scoped):
        self.scoped, self.prey, self.leaks, self.bad, self.most = scoped, [], [], {}, {}
        self.seed = int(os.environ.get("TROCAR_SEED") or secrets.randbits(63))
        self.bed = bed.Bed()
        try:
            self._prepare()
        except BaseException:
            self.done()
            raise

    def _prepare(self):
        name = "scoped" if self.scoped else "whole"
        self.inside, self.other, self.brokers = (self.bed.group(f"{name}-{what}")
                                                 for what in ("inside", "other", "broker"))
        self.mount = next(p for p in self.inside.parents if os.path.ismount(p))
        self._start_broker()
        self._catch()
        self._learn_starts()
        if self.scoped:
            self.bed.unload()
            self.bed.load("--scope", "/" + str(self.inside.relative_to(self.mount)))
        self.file = self.bed.folder / "prey"
        self.file.write_text("\n".join(line for p in self.prey for line in p.lines()) + "\n", encoding="ascii")
        self.map_ids = {entry["id"] for entry in bpftool("-f", "map", "show")
                        if any(str(self.bed.bpf_dir) in p for p in entry.get("pinned", []))}
        self.iterators = {str(self.bed.bpf_dir / name) for name in rows("pins.def", "PIN_ITER")}
        self.kernel_from = len(self._kernel_lines())

    def _start_broker(self):
        """In a cgroup of its own, whose CPU time is its and its workers'. In real time: what is asked is how long it
        takes, and not how long it waits for a CPU behind all else that runs here."""
        self.bed.activator.close()
        begin = 'echo $$ >"$0"/cgroup.procs; chrt --rr 1 true && exec chrt --rr 1 "$@"; exec nice -n -15 "$@"'
        words = ["/bin/sh", "-c", begin, self.brokers, bed.LOADER, "broker", "--bpf-dir", self.bed.bpf_dir, "--user",
                 bed.NOBODY]
        self.bed.activator = Activator(self.bed.socket, words)

    def _catch(self):
        """The keeper; a program of the system that is as it was packaged; and this one here."""
        password, diary = secrets.token_hex(12).encode(), secrets.token_bytes(64)
        keeper = self._run([KEEPER, *self._files(diary)], self.inside, KEEPER_PASSWORD=password, stdin=subprocess.PIPE)
        words = []
        while (line := keeper.stdout.readline()) != "ready\n":
            check(line, "the keeper ended at its start")
            words.append(int(line))
        self._add(WATCHED, keeper.pid, keeper, words + windows(password) + windows(diary)[:8])
        self.perf_map = pathlib.Path(f"/tmp/perf-{keeper.pid}.map")
        self.perf_map.write_text("1000 10 compiled\n", encoding="ascii")
        password = secrets.token_hex(12).encode()
        plain = self._run(["/usr/bin/sha256sum", "/dev/zero"], self.other, PASSWORD=password)
        self._add(OUTSIDE if self.scoped else WATCHED, plain.pid, plain, windows(password))
        self._add(OUTSIDE if self.scoped else STRANGER, os.getpid())
        until(lambda: pathlib.Path(f"/proc/{plain.pid}/comm").read_text(encoding="ascii") == "sha256sum\n", 5,
              "sha256sum does not begin")
        time.sleep(0.5)  # until it has loaded its libraries

    def _files(self, diary):
        """What the keeper has mapped and the broker may not give: no program, and one that runs as its owner."""
        no_program, set_user_id = self.bed.folder / "diary", self.bed.folder / "set-user-id"
        no_program.write_bytes(diary)
        no_program.chmod(0o600)
        shutil.copy("/usr/bin/true", set_user_id)
        set_user_id.chmod(0o4755)
        return no_program, set_user_id, "/dev/zero"

    def _run(self, words, group, stdin=subprocess.DEVNULL, **environment):
        return self.bed.spawn("nice", "-n", "10", *words, group=group, stdin=stdin, stdout=subprocess.PIPE, text=True,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C", **environment})

    def _add(self, kind, pid, process=None, words=()):
        self.prey.append(Prey(kind, pid, cgroup_id(pid, self.mount), process, words))

    def _learn_starts(self):
        """To the nanosecond, as the keys have it: so that those outside are asked for by their right names."""
        for slot, prey in enumerate(self.prey):
            self.bed.watch(prey.cgroup, slot)
        self.bed.arm(self.inside)
        found = {}
        data = (self.bed.bpf_dir / "tasks").read_bytes()
        for record in TASK.iter_unpack(data):
            found[record[2]] = record[0]
        for prey in self.prey:
            check(prey.pid in found, f"process {prey.pid} is not in `tasks`")
            prey.start_ns = found[prey.pid]
        for group in {prey.cgroup for prey in self.prey}:
            self.bed.maps["watches"].delete(struct.pack("=Q", group))

    # ---- the campaign

    def let_loose(self, seconds):
        """Runs the captive; all that is to be known of it is in this object afterwards."""
        with self.bed.statistics(), open(self.bed.folder / "said", "w+", encoding="utf-8") as said:
            began, broker_us = time.monotonic(), self._broker_us()
            before = self._programs()  # nothing, but for what was read to learn the starts
            self.captive = self.bed.spawn(CAPTIVE, self.bed.bpf_dir, self.bed.socket, self.file, seconds, self.seed,
                                          stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
            end = began + seconds + 20
            while self.captive.poll() is None:
                if self._is_captive():
                    self._look_at_descriptors()
                check(time.monotonic() < end, "the captive does not come to its end")
                time.sleep(0.1)
            self.seconds, self.load = time.monotonic() - began, os.getloadavg()[0] / os.cpu_count()
            self.broker_share = (self._broker_us() - broker_us) / 1e6 / self.seconds
            self.spent = {name: [now - then for now, then in zip(after, before.get(name, (0, 0)))]
                          for name, after in self._programs().items()}
            said.seek(0)
            self.said = said.read()
        lines = self.said.splitlines()
        check(self.captive.returncode == 0 and lines,
              f"the captive ended with {self.captive.returncode}: {self.said[-2000:]}")
        self.leaks = [line for line in lines if line.startswith("leak:")]
        self.result = json.loads(lines[-1])
        self.kernel = self._kernel_lines()[self.kernel_from:]

    def _broker_us(self):
        text = (self.brokers / "cpu.stat").read_text(encoding="ascii")
        return int(re.search(r"^usage_usec (\d+)", text, re.M)[1])

    def _programs(self):
        """{name: (nanoseconds, runs)} of our programs."""
        found = {}
        for program in bpftool("prog", "show"):
            if self.map_ids & set(program.get("map_ids", [])):
                spent, runs = found.get(program["name"], (0, 0))
                found[program["name"]] = (spent + program.get("run_time_ns", 0), runs + program.get("run_cnt", 0))
        return found

    @staticmethod
    def _kernel_lines():
        return subprocess.run(["dmesg", "--raw"], capture_output=True, text=True, errors="replace",
                              check=False).stdout.splitlines()

    # ---- what it has open

    def _count(self):
        """{kind: how many}. What is closed and granted again while this looks stands in it twice."""
        folder, counts = f"/proc/{self.captive.pid}/fd", {}
        for number in os.listdir(folder):
            try:
                kind, fault = self._judge(number, os.readlink(f"{folder}/{number}"))
            except FileNotFoundError:  # closed meanwhile
                continue
            counts[kind] = counts.get(kind, 0) + 1
            if fault:
                self.bad[fault] = self.bad.get(fault, 0) + 1
        return counts

    def _is_captive(self):
        """Whether it is locked down. Until then it is root, and its linker opens its own libraries."""
        with contextlib.suppress(OSError):
            return "\nSeccomp:\t2\n" in pathlib.Path(f"/proc/{self.captive.pid}/status").read_text(encoding="ascii")

    def _look_at_descriptors(self):
        try:
            counts = self._count()
            for _ in range(5):
                if all(counts.get(kind, 0) <= most for kind, most in LIMITS.items()):
                    break
                again = self._count()
                counts = {kind: min(count, again.get(kind, 0)) for kind, count in counts.items()}
        except OSError:  # it has ended
            return
        for kind, count in counts.items():
            self.most[kind] = max(count, self.most.get(kind, 0))

    def _judge(self, number, target):
        """(kind, what is wrong with it or None)."""
        for kind in ("bpf-map", "[perf_event]"):
            if target == f"anon_inode:{kind}":
                return kind, None
        if target in ("anon_inode:bpf_link", "anon_inode:bpf-link"):
            return "link", None
        if target.startswith("socket:["):
            return "socket", None
        if int(number) <= 2 or target == str(self.file):  # which it reads while it still is root
            return "standard", None
        if target in self.iterators:
            return "iterator", None
        if target.startswith(("/proc/pressure/", str(self.mount))):
            return "pressure", self._judge_pressure(target)
        if target.startswith("/proc/"):
            return "proc", target if os.path.basename(target) in SHOWS_MEMORY else None
        return "file", self._judge_file(number, target)

    def _judge_pressure(self, target):
        folder, name = os.path.split(target)
        if name not in ("cpu.pressure", "memory.pressure", "io.pressure", "cpu", "memory", "io"):
            return target
        cgroup = os.stat(self.mount if folder == "/proc/pressure" else folder).st_ino
        allowed = {p.cgroup for p in self.prey if p.kind != OUTSIDE}
        return None if cgroup in allowed else f"{target}: of a cgroup outside of the scope"

    def _judge_file(self, number, target):
        with open(f"/proc/{self.captive.pid}/fd/{number}", "rb") as stream:
            st, head = os.fstat(stream.fileno()), stream.read(4)
        with open(f"/proc/{self.captive.pid}/fdinfo/{number}", encoding="ascii") as lines:
            flags = int(next(line for line in lines if line.startswith("flags:")).split()[1], 8)
        if os.readlink(f"/proc/{self.captive.pid}/fd/{number}") != target:
            return None  # closed meanwhile, and another
        if not stat.S_ISREG(st.st_mode) or st.st_mode & (stat.S_ISUID | stat.S_ISGID):
            return f"{target}: mode {st.st_mode:o}"
        if flags & os.O_ACCMODE != os.O_RDONLY:
            return f"{target}: not read-only"
        if target == str(self.perf_map):
            return None
        key = (f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}", st.st_ino)
        if not any(key in mapped_files(p.pid) for p in self.prey if p.kind != OUTSIDE):
            return f"{target}: mapped by nobody who may be asked for"
        return None if head == b"\x7fELF" else f"{target}: no ELF file"

    # ---- the prey, afterwards

    def how_is(self, prey):
        """"well" when nothing has become of it."""
        if prey.process.poll() is not None:
            return f"ended with {prey.process.returncode}"
        if prey.process.stdin is None:
            return "well"
        prey.process.stdin.write("how are you\n")
        prey.process.stdin.flush()
        return prey.process.stdout.readline().split()[0]

    def left(self):
        """What is there of our maps."""
        return self.map_ids & {entry["id"] for entry in bpftool("map", "show")}

    def done(self):
        if hasattr(self, "perf_map"):
            self.perf_map.unlink(missing_ok=True)
        for prey in self.prey:
            for stream in filter(None, (prey.process and prey.process.stdin, prey.process and prey.process.stdout)):
                stream.close()
        self.bed.done()
