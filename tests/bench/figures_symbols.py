# SPDX-License-Identifier: BSD-2-Clause
"""From the end of a session to its last line on disk, beside perf script and bpftrace's printing: all of
them sample the same process in the same seconds. A session of 100,000 stacks. What a symbol costs."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import time

from figures_agent import LIBRARIES, make_libraries
from table import Row, ratio
from world import Peer, PeerMissing, World, cpu_seconds, harness, memory_mib, tool

HZ = 397
CODE = pathlib.Path(__file__).with_name("code")  # what node, python3 and clang run
PERF, TRACE = "perf script", "bpftrace"


class Lines:
    """The event lines of an agent that writes to a file, read as they come to stand there."""

    def __init__(self, path):
        self.path, self.stream, self.rest, self.whole = path, None, b"", collections.deque()

    def read(self):
        self.stream = self.stream or open(self.path, "rb")
        *whole, self.rest = (self.rest + self.stream.read()).split(b"\n")
        self.whole.extend(whole)

    def wait(self, kind, seconds):
        """(the next line of that type, CLOCK_MONOTONIC when it stood in the file); those before are gone."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self.read()
            at = time.monotonic()
            while self.whole:
                line = self.whole.popleft()
                if line.split(b'"', 6)[5].decode() == kind:
                    return json.loads(line), at
            time.sleep(0.001)
        raise harness.Failure(f"no {kind} within {seconds} s")


def agent_on_disk(w, rule, hz=HZ, load=(), arguments=()):
    """(an agent that writes to a file, its lines)."""
    folder = w.path("lines")
    folder.mkdir(mode=0o755)
    shutil.chown(folder, harness.USER, harness.GROUP)
    agent = w.agent(harness.rules(rule), load=("--hz", str(hz), *load), output=folder / "events.json",
                    arguments=arguments)
    return agent, Lines(folder / "events.json")


def watched(agent):
    harness.until(lambda: agent.call("watches"), 15, "no watch")


def naming_threads_seconds(pid):
    """CPU time of the threads that write and name: the first two that the consumer starts (consumer/main.c). The one
    that makes unwind tables may have work in a session too, where mappings were read late."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return sum(int((tasks / str(number) / "schedstat").read_text().split()[0])
               for number in sorted(map(int, os.listdir(tasks)))[1:3]) / 1e9


# ---- the programs that are sampled: each one process, in the cgroup, for that many seconds


def run_libraries(w, group, seconds):
    process = w.run_tool("libraries", seconds, *make_libraries(w), cgroup=group)
    if process.stdout.readline().strip() != "ready":
        raise harness.Failure("bench-libraries does not start")
    return process


def run_node(w, group, seconds):
    return foreign(w, group, "node", "--perf-basic-prof", CODE / "busy.js", seconds)


def run_python(w, group, seconds):
    return foreign(w, group, "python3", CODE / "busy.py", seconds)


def run_clang(w, group, seconds):
    return foreign(w, group, "clang++", "-std=c++17", "-fintegrated-cc1", "-O2", "-c", "-o", "/dev/null",
                   CODE / "busy.cpp")


def foreign(w, group, program, *words):
    """A program of the distribution, not one that stands before it in PATH."""
    path = shutil.which(program, path="/usr/bin:/usr/local/bin")
    if not path:
        raise PeerMissing(f"{program} is not installed")
    process = subprocess.Popen([path, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, cwd=w.folder, preexec_fn=group.join)
    w.processes.append(process)
    return process


PROGRAMS = {  # name in the table: (how to start it, comm)
    f"{LIBRARIES} libraries": (run_libraries, "bench-libraries"),
    "node": (run_node, "node"),
    "python3": (run_python, "python3"),
    "clang++": (run_clang, "clang++"),
}


# ---- one session and its peers


class Timed:
    """What it took from the end of the capture to the last line: wall and CPU seconds, and of how much."""

    def __init__(self, wall, cpu, text, killed=False):
        self.wall, self.cpu, self.text, self.killed = wall, cpu, text, killed


def perf_start(w, pid):
    data = w.path("perf.data")
    return Peer(w, ["perf", "record", "-q", "-F", str(HZ), "-g", "-p", str(pid), "-o", str(data)],
                w.path("perf")), data


def perf_end(w, started, seconds):
    """perf script of what was recorded; writing the file before is not counted."""
    record, data = started
    record.end()
    began = time.monotonic()
    script = Peer(w, ["perf", "script", "-i", str(data)], w.path("script"))
    usage = script.end(how=None, seconds=2 * seconds)
    samples = sum(line[:1] not in ("", "\t") for line in script.text().splitlines())
    return Timed(time.monotonic() - began, cpu_seconds(usage), f"{samples} samples")


def trace_start(w, pid):
    return w.bpftrace(f"profile:hz:{HZ} /pid == {pid}/ {{ @[ustack, kstack] = count(); }}")[0]


def peer_cpu_seconds(pid):
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def trace_end(w, trace, seconds):
    cpu, began = peer_cpu_seconds(trace.process.pid), time.monotonic()
    usage = trace.end(seconds=seconds)
    text = "killed" if trace.late else f"{trace.text().count(']: ')} stacks"
    return Timed(time.monotonic() - began, cpu_seconds(usage) - cpu, text, trace.late)


def both(w, pid, start):
    """Both peers, or why one is missing."""
    found = {}
    for name, begin in start.items():
        try:
            found[name] = begin(w, pid)
        except PeerMissing as why:
            found[name] = why
    return found


def session(w, agent, lines, rule, pid, ms, peers, patience=60):
    """One session with peers beside it: name -> Timed or PeerMissing; ours is "". A peer that takes longer
    than `patience` seconds to print is killed."""
    started = both(w, pid, peers)
    time.sleep(0.3)
    cpu = naming_threads_seconds(agent.pid)
    agent.call("session.start", {"rule": rule, "during_ms": ms})
    start, _ = lines.wait("session.start", 10)
    end, at = lines.wait("session.end", ms / 1000 + 60)
    cpu = naming_threads_seconds(agent.pid) - cpu
    ledger = end["ledger"]["oncpu"]
    stopped = start["mono_ns"] / 1e9 + end["duration_ms"] / 1e3
    found = {"": Timed(at - stopped, cpu, f"{ledger['emitted']} samples, {ledger['stacks']} stacks")}
    finish = {PERF: perf_end, TRACE: trace_end}
    for name, peer in started.items():
        found[name] = peer if isinstance(peer, PeerMissing) else finish[name](w, peer, patience)
    return found


def said(found, what):
    return "; ".join(f"{name}: {t}" if isinstance(t, PeerMissing) else
                     f"{name} {getattr(t, what) * 1e3:.0f} ({t.text})"
                     for name, t in found.items() if name)


def naming_rows(name, key, heat, found, reach, share):
    """Wall and CPU time of one session; met when ours is at most `share` of every peer's that ran."""
    ours = found.pop("")
    perf = found.get(PERF)
    for what, unit in (("wall", "ms"), ("cpu", "CPU ms")):
        # A peer that was killed would have taken more CPU time than it had got by then.
        theirs = [getattr(t, what) for t in found.values()
                  if isinstance(t, Timed) and (what == "wall" or not t.killed)]
        mine = getattr(ours, what)
        yield Row(f"end of session to lines on disk, {name}, {heat}, {unit} ({ours.text})",
                  f"{mine * 1e3:.1f}", reach, said(found, what),
                  ratio(mine, getattr(perf, what)) if isinstance(perf, Timed) else None,
                  all(mine <= share * t for t in theirs) if theirs else None,
                  key=f"symbols_{heat}_{key}" if theirs and what == "cpu" else None, must=what == "cpu")


def naming(short):
    """from the end of a session to its last line on disk, cold and warm, of four programs"""
    ms, patience = (3000, 6) if short else (10000, 60)
    for name, (run, comm) in list(PROGRAMS.items())[:2 if short else None]:
        with World("naming") as w:
            group = w.cgroup("work")
            rule = harness.rule("work", comm=comm[:15], cgroup=group.path, cooldown_ms=0, pre_ms=0)
            agent, lines = agent_on_disk(w, rule)
            try:
                process = run(w, group, 2 * ms // 1000 + 200)
            except PeerMissing as why:
                yield Row(f"end of session to lines on disk, {name}", str(why))
                continue
            watched(agent)
            time.sleep(1)  # it has mapped its libraries
            cold = session(w, agent, lines, "work", process.pid, ms,
                           {PERF: perf_start, TRACE: trace_start}, patience)
            warm = session(w, agent, lines, "work", process.pid, ms, {PERF: perf_start})
            rss = memory_mib(agent.pid)
        key = name.replace("+", "").split()[-1]
        yield from naming_rows(name, key, "cold", cold, "never slower", 1)
        yield from naming_rows(name, key, "warm", warm, "<= 0.1 x perf script", 0.1)
        yield Row(f"resident after both sessions of {name}, MiB", f"{rss['VmRSS']:.1f}", "<= 64", "-", None,
                  rss["VmRSS"] <= 64)


# ---- a session of 100,000 stacks


def peak_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def stacks(short):
    """a session in which every sample is another stack, on all CPUs, and one that runs while it is written"""
    seconds, next_ms = (5, 2000) if short else (60, 5000)
    with World("stacks") as w:
        group = w.cgroup("paths")
        rule = harness.rule("paths", comm="paths", cooldown_ms=0, pre_ms=0)
        agent, lines = agent_on_disk(w, rule, hz=999)
        for _ in range(os.cpu_count()):
            w.spawn("paths", seconds + 120, cgroup=group)
        watched(agent)
        time.sleep(1)
        agent.call("session.start", {"rule": "paths", "during_ms": seconds * 1000})
        time.sleep(seconds - 0.5)
        running = lambda: any(s["state"] != "ended" for s in agent.call("sessions"))
        harness.until(lambda: not running(), 5, "the session goes on")
        ended = time.monotonic()
        agent.call("session.start", {"rule": "paths", "during_ms": next_ms})
        first, written = lines.wait("session.end", 240)
        peak, size = peak_mib(agent.pid), lines.path.stat().st_size
        second, _ = lines.wait("session.end", 120)
    ledger = first["ledger"]["oncpu"]
    enough = short or ledger["attempted"] >= 100000
    name = f"a session of {ledger['stacks']} stacks, {os.cpu_count()} CPUs busy at 999 Hz, {seconds} s"
    for key, what, entry in (("stacks_lost", name, ledger),
                             ("stacks_lost_next", f"the next one, {next_ms} ms, while that is written",
                              second["ledger"]["oncpu"])):
        lost = entry["attempted"] - entry["emitted"]
        yield Row(f"samples lost, {what}", f"{lost} of {entry['attempted']}", "0", "-", None,
                  lost == 0 if enough or lost else None, key=key, must=True)
    took = written - ended
    yield Row("end of it to lines on disk, s",
              f"{took:.1f} ({size >> 20} MiB, {ledger['stacks'] / took:.0f} stacks/s)")
    yield Row("resident at most until then, MiB", f"{peak:.0f}")


# ---- tables: what a symbol costs


def mapped_by(program):
    """The files that a program maps as ldd(1) lists them, itself first."""
    path = shutil.which(program, path="/usr/bin:/usr/local/bin")
    if not path:
        return []
    done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    words = [word for word in done.stdout.split() if word.startswith("/")]
    return list(dict.fromkeys(os.path.realpath(p) for p in [path, *words]))


def tables(short):
    """lookups a second, bytes of memory per symbol, and time to read, of the symbolizer's tables"""
    with World("tables") as w:
        sets = {f"{LIBRARIES} libraries": list(map(str, make_libraries(w)))}
        sets.update((name, mapped_by(name)) for name in PROGRAMS if name not in sets)
        for name, paths in sets.items():
            if not paths:
                yield Row(f"symbols of {name}", f"{name} is not installed")
                continue
            found = tool("symbols", 3 if short else 15, *paths)
            count = f"{found['symbols']} symbols of {found['files']} files"
            yield Row(f"lookups a second, {name} ({count})", f"{1e9 / found['lookup_ns']:.3g}", "-",
                      f"libdw {1e9 / found['libdw_lookup_ns']:.3g}",
                      ratio(found["libdw_lookup_ns"], found["lookup_ns"]), more=True)
            yield Row(f"reading them, page cache warm, CPU ms, {name}", f"{found['cold_ms']:.1f}", "-",
                      f"libdw, which keeps no index, {found['libdw_cold_ms']:.1f}")
            yield Row(f"bytes of memory per symbol, {name}", f"{found['bytes'] / found['symbols']:.1f}")
