# SPDX-License-Identifier: BSD-2-Clause
"""What the figures run in: the agent (the harness of the end-to-end tests), the bench's own programs,
and the peers, each owned, timed and ended here."""
import ctypes
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402  (TROCAR_BUILD is read at its import)

TOOLS = harness.BUILD / "tests" / "bench"
OUR_PROGRAMS = {"sampler", "tick_floor", "tick_miss", "switch_floor"}
BPF_ENABLE_STATS = 32
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}


class PeerMissing(Exception):
    """The peer cannot run here; the text says why."""


class Statistics:
    """BPF run-time statistics of the kernel, on while this is held (bpf(2), BPF_ENABLE_STATS): no
    sysctl is changed, and the kernel turns them off when we end, however we end."""

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        attr = ctypes.create_string_buffer(128)
        self.fd = libc.syscall(BPF_SYSCALL[platform.machine()], BPF_ENABLE_STATS, attr, 128)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "BPF statistics")
        return self

    def __exit__(self, *_):
        os.close(self.fd)


def programs():
    """id -> what bpftool says, of every BPF program on the machine."""
    listed = subprocess.run(["bpftool", "-j", "prog", "show"], stdout=subprocess.PIPE, check=True)
    return {p["id"]: p for p in json.loads(listed.stdout or b"[]")}


def prepare(program, text):
    """Ours, not the harness's: a tool's failure is a failed measurement."""
    if not (TOOLS / f"bench-{program}").exists():
        raise harness.Failure(f"{TOOLS}/bench-{program} is not built: {text}")


def tool(name, *words, seconds=120, user=False):
    """Runs one of our programs; returns the JSON object that it prints."""
    prepare(name, "ninja")
    command = [str(TOOLS / f"bench-{name}"), *map(str, words)]
    if user:
        command = ["setpriv", "--reuid", harness.USER, "--regid", harness.GROUP, "--clear-groups",
                   "--inh-caps=-all", "--no-new-privs", *command]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    try:
        out, errors = child.communicate(timeout=seconds)
    except BaseException:
        child.terminate()
        child.communicate()
        raise
    if child.returncode:
        raise harness.Failure(f"bench-{name} {words}: status {child.returncode}: {errors.strip()}")
    return json.loads(out)


class Peer:
    """Another profiler, running until `end`, which returns its resource usage (wait4(2))."""

    def __init__(self, world, words, out):
        if not shutil.which(words[0]):
            raise PeerMissing(f"{words[0]} is not installed")
        self.words, self.out, self.usage, self.late = words, out, None, False
        with open(out, "wb") as stream:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stream,
                                            stderr=subprocess.STDOUT, cwd=world.folder)
        world.peers.append(self)

    def end(self, how=signal.SIGINT, seconds=15):
        """Ends it and returns its usage; one that takes longer than that is killed, which `late` says."""
        if self.usage is not None:
            return self.usage
        if how:
            self.process.send_signal(how)
        limit = time.monotonic() + seconds
        while self.usage is None:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.usage, self.process.returncode = usage, os.waitstatus_to_exitcode(status)
            elif time.monotonic() > limit and not self.late:
                self.late = True
                self.process.kill()
            else:
                time.sleep(0.005)
        return self.usage

    def text(self):
        return pathlib.Path(self.out).read_text(errors="replace")


def cpu_seconds(usage):
    return usage.ru_utime + usage.ru_stime


class World(harness.Test):
    """One figure's world; what it made goes with it, and each step is tried whatever became of others."""

    def __init__(self, name):
        super().__init__(f"bench-{name}")
        self.peers, self.serial = [], 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        faults = []
        for peer in self.peers:
            try:
                peer.end(signal.SIGKILL)
            except (OSError, ProcessLookupError) as error:
                faults.append(f"{peer.words[0]}: {error}")
        for step in self._steps():
            try:
                step()
            except Exception as error:  # as harness.Test.close does
                faults.append(f"{type(error).__name__}: {error}")
        if faults:
            print("bench: teardown: " + "; ".join(faults), file=sys.stderr)

    def agent(self, rule_set, broker=True, **options):
        """As it is to be run: with its broker, and nothing ticks that is not needed."""
        return super().agent(rule_set, broker=broker, **options)

    def path(self, name):
        self.serial += 1
        return self.folder / f"{self.serial}-{name}"

    def program(self, name, as_name=None):
        """A copy of a program of ours where the agent may read it."""
        prepare(name, "ninja")
        target = self.folder / (as_name or f"bench-{name}")
        if not target.exists():
            shutil.copy(TOOLS / f"bench-{name}", target)
        return target

    def run_tool(self, name, *words, cgroup=None, as_name=None):
        """One of our programs, running; ended with this world."""
        process = subprocess.Popen([str(self.program(name, as_name)), *map(str, words)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   preexec_fn=cgroup.join if cgroup else None)
        self.processes.append(process)
        return process

    def bpftrace(self, source, kind="perf_event"):
        """(peer, id of its program), attached."""
        before = set(programs())
        peer = Peer(self, ["bpftrace", "-e", source], self.path("bpftrace"))
        limit = time.monotonic() + 15
        while time.monotonic() < limit:
            for number, program in programs().items():
                if (number not in before and program["type"] == kind and
                        program.get("name") not in OUR_PROGRAMS):
                    time.sleep(0.3)  # until it is attached on every CPU
                    return peer, number
            if peer.process.poll() is not None:
                raise PeerMissing("bpftrace ended: " + peer.text()[-200:].strip())
            time.sleep(0.05)
        raise PeerMissing("bpftrace did not attach within 15 s")

    def perf_record(self, *words):
        """(peer, its data file), recording."""
        data = self.path("perf.data")
        peer = Peer(self, ["perf", "record", "-q", "-F", "99", "-g", "-a", "-o", str(data), *words],
                    self.path("perf"))
        time.sleep(0.3)
        return peer, data


def process_cpu_seconds(pid):
    """Of all threads; utime and stime count whole clock ticks, schedstat nanoseconds."""
    return sum(int(stat.read_text().split()[0])
               for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def switches(pid):
    """Voluntary context switches of all threads: every wake-up is one of these."""
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        total += int(status.read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return total


def memory_mib(pid):
    """VmRSS, RssAnon, RssFile, RssShmem in MiB."""
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in ("VmRSS", "RssAnon", "RssFile", "RssShmem"):
            found[key] = int(value.split()[0]) / 1024
    return found
