# SPDX-License-Identifier: BSD-2-Clause
"""What complete stacks cost: the walk by rows against the kernel's walks by frame pointers and perf's copies of the
stack, compiling the rows against libdw, and how soon and in how much memory they are there."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

from figures_agent import LIBRARIES, Pace, leg, make_libraries, wait_ready, watched
from figures_cost import Account, program_ids
from figures_symbols import CODE
from table import Row, median, ratio
from world import (Peer, PeerMissing, Statistics, World, cpu_seconds, harness, memory_mib, process_cpu_seconds,
                   programs, tool)

HOT_HZ, REAL_HZ = 4999, 97
DEPTHS = (12, 32, 62, 102)
BELOW = 6  # frames of bench-depth that are not its calls: the spinning one, main, the C library's
TABLES = {"bench-depth": "its own", "bench-depth-libc": "libc's size", "bench-depth-node": "node's size"}
NEVER = [{"pressure": "memory", "some_ms": 1900, "window_ms": 2000}]


def front(group):
    """Most ticks shall meet what is measured: other load on the machine is foreign."""
    group.join()
    os.setsid()
    try:
        pathlib.Path("/proc/self/autogroup").write_text("-15")
    except OSError:
        os.nice(-15)


def start(w, group, *words, out=subprocess.DEVNULL):
    """A program in the cgroup, in the foreground; from /usr/bin or /usr/local/bin when it has no path."""
    path = shutil.which(words[0], path="/usr/bin:/usr/local/bin")
    if not path:
        raise PeerMissing(f"{words[0]} is not installed")
    process = subprocess.Popen([path, *map(str, words[1:])], stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.DEVNULL, cwd=w.folder, text=True, preexec_fn=lambda: front(group))
    w.processes.append(process)
    return process


def depth(w, group, name, frames, out=subprocess.DEVNULL):
    return start(w, group, w.program(name[len("bench-"):]), 300, frames - BELOW, out=out)


def stop(*processes):
    for process in processes:
        process.kill()
        process.wait()


# ---- the walk alone


def per_frame(shallow, deep, kind):
    """ns that one more frame costs; None where a walk failed."""
    frames = deep[kind]["frames"] - shallow[kind]["frames"]
    return (deep[kind]["ns"] - shallow[kind]["ns"]) / frames if frames > 0 else None


def hot_row(table, frames, found):
    rows, pointers, ids = (found[kind]["ns"] for kind in ("rows", "pointers", "ids"))
    return Row(f"walk by rows, {found['rows']['frames']:.0f} frames, hot, table of {TABLES[table]}, ns "
               f"({found['rows']['hits']} walks, {found['rows']['complete']:.1%} complete)", f"{rows:.0f}", "-",
               f"bpf_get_stack with frame pointers {pointers:.0f}; with build-ids {ids:.0f}", ratio(rows, pointers),
               key=f"walk_hot_{frames}" if table == "bench-depth" else None)


def walks(short):
    """price of a walk and of a frame, hot: the same stack again and again, at a high rate"""
    ms, rounds = (150, 5) if short else (400, 15)
    with World("walks") as w:
        group = w.cgroup("depth")
        agent = w.agent(harness.rules(harness.rule("depth", prefix="bench-depth", cooldown_ms=0, pre_ms=0)))
        for table in TABLES:
            found = {}
            for frames in DEPTHS if table == "bench-depth" else (DEPTHS[0], DEPTHS[-1]):
                ours, peer = depth(w, group, table, frames), depth(w, group, "bench-depth-fp", frames)
                found[frames] = tool("walks", agent.bpf, HOT_HZ, ms, rounds, ours.pid, peer.pid)
                stop(ours, peer)
                yield hot_row(table, frames, found[frames])
            ends = found[DEPTHS[0]], found[DEPTHS[-1]]
            ours, peer = per_frame(*ends, "rows"), per_frame(*ends, "pointers")
            yield Row(f"a frame more, hot, table of {TABLES[table]}, ns", f"{ours:.0f}", "<= 70",
                      f"bpf_get_stack {peer:.0f}", ratio(ours, peer), ours <= 70,
                      key="frame_hot" if table == "bench-depth" else None)


def redis(w, group):
    socket = w.folder / "redis.sock"
    server = start(w, group, "redis-server", "--port", "0", "--unixsocket", socket, "--save", "")
    harness.until(socket.exists, 10, "redis does not listen")
    start(w, group, "redis-benchmark", "-s", socket, "-n", "100000000", "-q")
    return server


REAL = {
    "python3": lambda w, group: start(w, group, "python3", CODE / "busy.py", 300),
    "node": lambda w, group: start(w, group, "node", CODE / "busy.js", 300),
    "redis-server": redis,
}


def kernel_row(name, found):
    """The kernel's own stack, where ticks met it; seldom of a program that computes."""
    ours, asked = found["kernel"], found["asked"]
    if min(ours["hits"], asked["hits"]) < 20:
        return
    yield Row(f"walk of the kernel's stack, {name}, {asked['frames']:.0f} frames, {REAL_HZ} Hz, ns ({ours['hits']} "
              f"walks, {ours['complete']:.1%} without the kernel's help)", f"{ours['ns']:.0f}",
              "<= 0.5 x bpf_get_stack", f"bpf_get_stack {asked['ns']:.0f}", ratio(ours["ns"], asked["ns"]),
              ours["ns"] <= 0.5 * asked["ns"], key="kernel_stack" if name == "redis-server" else None)


def real(short):
    """price of a walk of real programs, at the rate that is used: cold, for they use the caches in between"""
    ms, rounds = (1000, 3) if short else (1000, 20)
    with World("real") as w:
        group = w.cgroup("real")
        agent = w.agent(harness.rules(*(harness.rule(name, comm=name, cgroup=group.path, cooldown_ms=0, pre_ms=0)
                                        for name in REAL)))
        for name, run in REAL.items():
            try:
                process = run(w, group)
            except PeerMissing as why:
                yield Row(f"walk by rows, {name}, {REAL_HZ} Hz", str(why))
                continue
            time.sleep(1)  # it has mapped its libraries
            found = tool("walks", agent.bpf, REAL_HZ, ms, rounds, process.pid)
            stop(process)
            rows = found["rows"]
            yield Row(f"walk by rows, {name}, {rows['frames']:.0f} frames, {REAL_HZ} Hz, ns ({rows['hits']} walks, "
                      f"{rows['complete']:.1%} complete; an empty program {found['none']['ns']:.0f})",
                      f"{rows['ns']:.0f}", "<= 3000 of 30 frames",
                      f"bpf_get_stack {found['pointers']['ns']:.0f} of {found['pointers']['frames']:.0f} frames; "
                      f"with build-ids {found['ids']['ns']:.0f}", ratio(rows["ns"], found["pointers"]["ns"]),
                      rows["ns"] <= 3000 * max(rows["frames"], 30) / 30)
            yield from kernel_row(name, found)


# ---- a whole sample, and what the watched program notices


def tick_costs(numbers):
    """number -> (ns, runs) so far."""
    listed = programs()
    return {n: (listed[n].get("run_time_ns", 0), listed[n].get("run_cnt", 0)) for n in numbers if n in listed}


def ticks_between(before, after):
    """number -> ns per run."""
    return {n: (after[n][0] - before[n][0]) / (after[n][1] - before[n][1]) for n in before
            if n in after and after[n][1] > before[n][1]}


def captured(short):
    """price of a tick in a session that unwinds by rows, against bpftrace by frame pointers on the same ticks"""
    windows = 4 if short else 20
    with World("captured") as w, Statistics():
        group = w.cgroup("depth")
        agent = w.agent(harness.rules(harness.rule("depth", comm="bench-depth-fp", cooldown_ms=0, pre_ms=0)),
                        load=("--hz", str(REAL_HZ)))
        sampler = next(n for n, name in program_ids(agent).items() if name == "sampler")
        for _ in range(os.cpu_count()):
            depth(w, group, "bench-depth-fp", 32)  # so that bpftrace finds the frames too
        watched(agent, "depth")
        try:
            _, peer = w.bpftrace(f"profile:hz:{REAL_HZ} {{ @[ustack, kstack] = count(); }}")
            missing = None
        except PeerMissing as why:
            peer, missing = -1, f"peer missing: {why}"
        since = len(agent.events)
        agent.call("session.start", {"rule": "depth", "during_ms": windows * 1000 + 3000})
        time.sleep(2)  # from its first samples the agent learns what each has mapped
        ours, theirs, runs = [], [], 0
        for _ in range(windows):
            before = tick_costs((sampler, peer))
            time.sleep(1)
            after = tick_costs((sampler, peer))
            each = ticks_between(before, after)
            runs += after[sampler][1] - before[sampler][1]
            ours.append(each[sampler])
            theirs += [each[peer]] if peer in each else []
        end = agent.wait("session.end", seconds=30, since=since)
    emitted = end["ledger"]["oncpu"]["emitted"]
    close = ratio(median(ours), median(theirs)) if theirs else None
    yield Row(f"a tick in a session, 32 frames by rows, {REAL_HZ} Hz, ns ({windows} x 1 s, {runs} ticks, of all "
              f"{emitted} samples {end['stack_quality']['complete']} complete)", f"{median(ours):.0f}",
              "<= 0.5 x each peer", missing or f"bpftrace {median(theirs):.0f}, by frame pointers",
              close, close <= 0.5 if close else None, key="tick_rows_to_bpftrace")


def dwarf_start(w, pid, hz):
    """(perf that copies stacks once it is told to, its data file, the function that tells it)."""
    fifo, data = w.path("control"), w.path("perf.data")
    os.mkfifo(fifo)
    hold = os.open(fifo, os.O_RDWR)
    w.held = getattr(w, "held", []) + [hold]
    peer = Peer(w, ["perf", "record", "-q", "-F", str(hz), "--call-graph", "dwarf", "-p", str(pid), "-o", str(data),
                    "--delay=-1", f"--control=fifo:{fifo}"], w.path("perf"))
    time.sleep(0.5)

    def tell(word):
        os.write(hold, word.encode() + b"\n")
        time.sleep(0.1)
    return peer, data, tell


def dwarf_samples(w, data):
    """(how many there are, CPU seconds that perf takes to unwind them)."""
    said = subprocess.run(["perf", "report", "--stats", "-i", str(data)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False).stdout
    script = Peer(w, ["perf", "script", "-F", "ip,sym", "-i", str(data)], w.path("script"))
    counts = [int(line.split(":")[1].split()[0]) for line in said.splitlines() if line.strip().startswith("SAMPLE")]
    return counts[0] if counts else 0, cpu_seconds(script.end(how=None, seconds=120))  # the first is of all events


class Legs:
    """Stretches of the same program, without and with a profiler in turn: work done, and CPU spent for it."""

    def __init__(self, pace, seconds):
        self.pace, self.seconds = pace, seconds
        self.ours, self.theirs, self.noise, self.cpu = [], [], [], {"ours": 0.0, "perf": 0.0}

    def without(self):
        return leg(self.pace, self.seconds)

    def session(self, agent, ids, base):
        account, since = Account(agent.pid, ids), len(agent.events)
        agent.call("session.start", {"rule": "depth", "during_ms": int(self.seconds * 1000)})
        self.ours.append(leg(self.pace, self.seconds) / base)
        self.cpu["ours"] += account.end().us * self.seconds / 1e6
        return agent.wait("session.end", seconds=20, since=since)["ledger"]["oncpu"]["emitted"]

    def perf(self, peer, tell, base):
        before = process_cpu_seconds(peer.process.pid)
        tell("enable")
        self.theirs.append(leg(self.pace, self.seconds) / base)
        tell("disable")
        self.cpu["perf"] += process_cpu_seconds(peer.process.pid) - before


def dwarf(short):
    """against `perf record --call-graph dwarf`: bytes and CPU per sample, work of the watched program"""
    pairs, seconds = (4, 0.6) if short else (15, 1.5)
    for hz in (REAL_HZ,) if short else (REAL_HZ, 997):
        with World("dwarf") as w, Statistics():
            group = w.cgroup("depth")
            agent = w.agent(harness.rules(harness.rule("depth", comm="bench-depth", cooldown_ms=0, pre_ms=0)),
                            load=("--hz", str(hz)))
            ids, emitted = [n for n, name in program_ids(agent).items() if name == "sampler"], 0
            process = depth(w, group, "bench-depth", 32, out=subprocess.PIPE)
            legs = Legs(Pace(process), seconds)
            watched(agent, "depth")
            agent.wait("process.unwind", pid=process.pid)
            peer, data, tell = dwarf_start(w, process.pid, hz)
            for _ in range(pairs):
                base = legs.without()
                emitted += legs.session(agent, ids, base)
                again = legs.without()
                legs.noise.append(again / base)
                legs.perf(peer, tell, again)
            peer.end()
            yield from dwarf_rows(hz, legs, emitted, data.stat().st_size, *dwarf_samples(w, data))


def dwarf_rows(hz, legs, emitted, data_bytes, samples, unwind_seconds):
    spread = statistics.median(abs(1 - n) for n in legs.noise)
    kept, theirs = median(legs.ours), median(legs.theirs)
    quiet = spread <= 0.02  # above, the machine says nothing about a few per cent
    reach = f"within the noise, here +-{spread:.4f}" + ("" if quiet else ": no verdict")
    yield Row(f"work of the watched program in a session, {hz} Hz, to without ({len(legs.ours)} pairs)",
              f"{kept:.4f}", reach if hz == REAL_HZ else "-",
              f"perf record --call-graph dwarf {theirs:.4f}", ratio(kept, theirs),
              kept >= 1 - max(spread, 0.002) if quiet and hz == REAL_HZ else None, more=True)
    if not emitted or not samples:
        raise harness.Failure(f"no samples: ours {emitted}, perf {samples}")
    ours, peer = legs.cpu["ours"] / emitted * 1e6, legs.cpu["perf"] / samples * 1e6
    yield Row(f"CPU per sample, {hz} Hz, us ({emitted} samples; the consumer and the sampler)", f"{ours:.2f}", "-",
              f"perf {peer:.2f} and its kernel side ({samples} samples), {unwind_seconds / samples * 1e6:.0f} in "
              f"perf script", ratio(ours, peer + unwind_seconds / samples * 1e6))
    if hz == REAL_HZ:
        sample = tool("walks", "sizes")
        size = sample["head_bytes"] + 32 * sample["frame_bytes"]
        yield Row("bytes per sample, 32 frames", str(size), "-",
                  f"perf record --call-graph dwarf {data_bytes / samples:.0f}", ratio(size, data_bytes / samples),
                  key="bytes_to_dwarf")


# ---- rows: how fast they are made, how soon they are there, how much they take

FILES = {
    "libc": ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"],
    "libjvm": ["/usr/lib/jvm/default-java/lib/server/libjvm.so"],
    "node": ["/usr/bin/node", "/usr/local/bin/node"],
}


def rows(short):
    """compiling call frame information into rows, against libdw saying the same"""
    for name, paths in FILES.items():
        path = next((p for p in paths if os.path.exists(p)), None)
        if not path:
            yield Row(f"rows of {name}", f"{name} is not installed")
            continue
        found = tool("compile", 25, path)
        speed, peer = found["rows"] / found["ms"], found["libdw_rows"] / found["libdw_ms"]
        yield Row(f"rows of {name}, rows/ms ({found['rows']} rows in {found['ms']:.2f} ms, "
                  f"{found['bytes'] / 1024:.0f} KiB)", f"{speed:.0f}", ">= 30000",
                  f"libdw {peer:.0f} ({found['libdw_rows']} in {found['libdw_ms']:.0f} ms)", ratio(speed, peer),
                  speed >= 30000, more=True, key=f"rows_{name}_to_libdw")


def complete_stacks(agent):
    return agent.call("status")["unwind"]["ends"]["complete"]


def first_ms():
    """ms from watch.start to the first complete stack of a program that is running already; nothing is cached."""
    with World("first") as w:
        group = w.cgroup("first")
        agent = w.agent(harness.rules(harness.rule("other", comm="bench-nobody")), load=("--hz", "997"))
        start(w, group, "python3", CODE / "busy.py", 60)
        time.sleep(1)
        agent.call("rules.set", {"text": json.dumps(
            harness.rules(harness.rule("first", comm="python3", cgroup=group.path, when=NEVER)))})
        limit = time.monotonic() + 10
        while not complete_stacks(agent):
            if time.monotonic() > limit:
                raise harness.Failure("no complete stack within 10 s")
            time.sleep(0.001)
        at = time.monotonic()
        return (at - agent.wait("watch.start", rule="first")["mono_ns"] / 1e9) * 1e3


def first(short):
    """from the start of a watch to the first complete stack"""
    tries = 3 if short else 15
    took = [first_ms() for _ in range(tries)]
    yield Row(f"watch.start to the first complete stack, python3, ms (median of {tries}, recorder at 997 Hz)",
              f"{median(took):.0f} (worst {max(took):.0f})", "<= 100", "none has it", None, median(took) <= 100)


def rows_memory(short):
    """the rows of 200 libraries in memory"""
    with World("rows-memory") as w:
        made = make_libraries(w)
        agent = w.agent(harness.rules(harness.rule("libraries", comm="bench-libs", cooldown_ms=0)))
        before = memory_mib(agent.pid)["VmRSS"]
        process = w.run_tool("libraries", 60, *made, cgroup=w.cgroup("libs"), as_name="bench-libs")
        wait_ready(process)
        watched(agent, "libraries")
        agent.wait("process.unwind", seconds=15, pid=process.pid)
        harness.until(lambda: agent.call("status")["unwind"]["files"] > LIBRARIES, 15, "not all are compiled")
        unwind, after = agent.call("status")["unwind"], memory_mib(agent.pid)["VmRSS"]
    yield Row(f"rows of {LIBRARIES} libraries in the pool, KiB ({unwind['files']} files, {unwind['rows']} rows, "
              f"{unwind['rules']} rules)", f"{unwind['pool_used_bytes'] / 1024:.0f} of "
              f"{unwind['pool_bytes'] / 1024:.0f}", "-", f"compiled in {unwind['compile_us'] / 1e3:.1f} ms")
    yield Row(f"resident before and after, MiB, {LIBRARIES} libraries", f"{before:.1f}, {after:.1f}", "-")
