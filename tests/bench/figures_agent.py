# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the whole agent: loader, confined consumer, rules and sessions, with peers beside it."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from table import Row, median, ratio
from world import (TOOLS, Peer, PeerMissing, World, cpu_seconds, harness, memory_mib,
                   process_cpu_seconds, switches)

BPFTRACE = "profile:hz:99 { @[ustack, kstack] = count(); }"
GONE = ("no_mapping", "unknown_build_id", "anonymous")  # reasons that a process's end can cause
LIBRARIES = 200


def wait_ready(process):
    line = process.stdout.readline().strip()
    if line not in ("ready", "armed"):
        raise harness.Failure(f"{process.args[0]}: said {line!r}")


def session(agent, rule, ms, mark=None):
    """Starts a session of that rule and returns its session.end."""
    since = len(agent.events)
    agent.call("session.start", {"rule": rule, "during_ms": ms})
    return agent.wait("session.end", seconds=ms / 1000 + 30, since=since, rule=rule)


def naming_ms(agent, end):
    """From the end of the capture to session.end, the last line: drain, names, lines, queue."""
    start = agent.find("session.start", session=end["session"])[0]
    return (end["mono_ns"] - start["mono_ns"]) / 1e6 - end["duration_ms"]


def watched(agent, rule):
    agent.wait("watch.start", seconds=15, where=lambda e: e.get("rule") == rule)


# ---- capture: CPU seconds and memory of whole profilers on one load


def capture(short):
    """CPU seconds of a capture with its report"""
    seconds = 4 if short else 20
    with World("capture") as w:
        group = w.cgroup("deep")
        rule = harness.rule("deep", comm="deep", cooldown_ms=0, pre_ms=0)
        agent = w.agent(harness.rules(rule), load=("--hz", "99"))
        for _ in range(os.cpu_count()):
            w.spawn("deep", seconds + 25, 31, cgroup=group)
        watched(agent, "deep")
        peers = start_peers(w)
        before, began = process_cpu_seconds(agent.pid), time.monotonic()
        end = session(agent, "deep", seconds * 1000)
        stretch = time.monotonic() - began
        ours = process_cpu_seconds(agent.pid) - before
        found = end_peers(w, peers)
    load = f"{os.cpu_count()} threads of 33 frames, {seconds} s at 99 Hz"
    taken = end["ledger"]["oncpu"]["emitted"]
    for name, (cpu, _, text, _) in found.items():
        yield Row(f"CPU s of capture and report, {load} ({taken} samples)", f"{ours:.3f}", "-",
                  text or f"{name} {cpu:.2f} (whole machine, {stretch:.0f} s)",
                  ratio(ours, cpu))


def start_peers(w, source=BPFTRACE):
    """Both peers on the whole machine: name -> a running peer or the reason why not."""
    peers = {}
    try:
        peers["perf record -g and script"] = w.perf_record()
    except PeerMissing as why:
        peers["perf record -g and script"] = why
    try:
        peers["bpftrace"] = w.bpftrace(source)
    except PeerMissing as why:
        peers["bpftrace"] = why
    return peers


def end_peers(w, peers, seconds=15):
    """name -> (CPU seconds with the report, peak MiB, None, seconds from the end to the last line), or
    (None, None, why it is missing, None). What takes longer than `seconds` to end is killed."""
    found = {}
    for name, started in peers.items():
        if isinstance(started, PeerMissing):
            found[name] = (None, None, f"{name}: peer missing: {started}", None)
            continue
        ending, last = time.monotonic(), started[0]
        usages = [last.end(seconds=seconds)]
        if name.startswith("perf"):
            ending = time.monotonic()  # of the file that record has written
            last = Peer(w, ["perf", "script", "-i", str(started[1])], w.path("script"))
            usages.append(last.end(how=None))
        found[name + (" (killed)" if last.late else "")] = (
            sum(map(cpu_seconds, usages)), max(u.ru_maxrss for u in usages) / 1024, None,
            time.monotonic() - ending)
    return found


# ---- names of processes that have gone


def shares_bpftrace(text):
    """(frames, named) of the user stacks that bpftrace printed, weighted by count."""
    frames = named = 0
    for body, count in re.findall(r"@\[\n(.*?)\n\]: (\d+)", text, re.S):
        rows = [row.strip() for row in body.splitlines() if row.strip()]
        frames += len(rows) * int(count)
        named += sum(not row.startswith("0x") for row in rows) * int(count)
    return frames, named


def shares_perf(text):
    frames = named = 0
    for row in text.splitlines():
        words = row.split()
        if len(words) >= 2 and row[:1].isspace() and not words[0].startswith("ffff"):
            frames += 1
            named += words[1] != "[unknown]"
    return frames, named


def shares_ours(stacks):
    """(user frames, those without a name by reason), weighted by count."""
    frames, nameless = 0, collections.Counter()
    for stack in stacks:
        count = stack.get("count", 0)
        for frame in stack["frames"]:
            if frame["kind"] != "kernel":
                frames += count
                if frame["fn"] is None:
                    nameless[frame["why"], frame["module"] or "?"] += count
    return frames, nameless


def churn(short):
    """frames named of processes that live for milliseconds"""
    seconds = 4 if short else 15
    with World("churn") as w:
        group = w.cgroup("churn")
        rule = harness.rule("churn", comm="churn", cooldown_ms=0, pre_ms=0)
        agent = w.agent(harness.rules(rule), load=("--hz", "99"))
        w.spawn("churn", seconds + 12, 100, 5, cgroup=group)
        watched(agent, "churn")
        perf, trace = start_peers(
            w, 'profile:hz:99 /comm == "churn"/ { @[ustack] = count(); }').values()
        end = session(agent, "churn", seconds * 1000)
        theirs = "; ".join((peer_share("bpftrace", trace, bpftrace_share, w),
                            peer_share("perf script", perf, perf_share, w)))
        frames, nameless = shares_ours(agent.stacks(end["session"]))
    ledger = end["ledger"]["oncpu"]
    lost = sum(ledger["lost"].values())
    gone = sum(count for (why, _), count in nameless.items() if why in GONE)
    yield Row(f"samples lost, frames nameless because gone, processes of 5 ms ({ledger['attempted']} "
              "samples)", f"{lost} lost, {gone} of {frames} nameless", "0", theirs, None,
              lost == 0 and gone == 0)
    share = 100 * (frames - sum(nameless.values())) / frames if frames else 0
    yield Row("frames of the same named, %", f"{share:.1f}" + most(nameless, frames), "-", theirs)


def most(nameless, frames):
    """The main reason for what has no name."""
    if not nameless:
        return ""
    (why, module), count = nameless.most_common(1)[0]
    return f" ({100 * count / frames:.0f} %: {why} in {os.path.basename(module)})"


def bpftrace_share(w, trace):
    trace[0].end()
    return shares_bpftrace(trace[0].text())


def perf_share(w, perf):
    perf[0].end()
    script = Peer(w, ["perf", "script", "-i", str(perf[1]), "--comm", "churn", "-F", "comm,ip,sym"],
                  w.path("script"))
    script.end(how=None)
    return shares_perf(script.text())


def peer_share(name, peer, ask, w):
    if isinstance(peer, PeerMissing):
        return f"{name}: peer missing: {peer}"
    frames, named = ask(w, peer)
    return f"{name} names {100 * named / frames:.1f} % of {frames}" if frames else f"{name}: no frame"


# ---- wake-ups and memory


def wakeups(agent, seconds):
    before = switches(agent.pid)
    time.sleep(seconds)
    return switches(agent.pid) - before


def make_libraries(w):
    """Copies of one library, each with a build-id of its own as if it were another."""
    image = bytearray((TOOLS / "libbench-library.so").read_bytes())
    at = image.find(b"GNU\0", image.find(b"\x14\0\0\0\x03\0\0\0GNU\0")) + 4
    if at < 4:
        raise harness.Failure("libbench-library.so has no build-id")
    made = []
    for i in range(LIBRARIES):
        image[at:at + 4] = i.to_bytes(4, "big")
        made.append(w.folder / f"lib{i:03}.so")
        made[-1].write_bytes(image)
    return made


def rss_text(m):
    return (f"{m['VmRSS']:.1f} (own {m['RssAnon']:.1f}, files {m['RssFile']:.1f}, "
            f"rings {m['RssShmem']:.1f})")


def idle(short):
    """wake-ups and memory: idle, recording, after a session over 200 libraries"""
    seconds = 5 if short else 60
    with World("idle") as w:
        rules = [harness.rule("libraries", comm="bench-libs", cooldown_ms=0)]
        rules += [harness.rule(f"r{i}", comm=f"nobody-{i}") for i in range(99)]
        agent = w.agent(harness.rules(*rules))
        time.sleep(1)
        woken, quiet = wakeups(agent, seconds), memory_mib(agent.pid)
        group, made = w.cgroup("libs"), make_libraries(w)
        process = w.run_tool("libraries", 120, *made, cgroup=group, as_name="bench-libs")
        wait_ready(process)
        watched(agent, "libraries")
        time.sleep(1)
        recorder = memory_mib(agent.pid)
        peers = start_peers(w)
        end = session(agent, "libraries", 3000 if short else 20000)
        after = memory_mib(agent.pid)
        found = end_peers(w, peers, 6 if short else 60)
        cold, warm = naming_ms(agent, end), naming_ms(agent, session(agent, "libraries", 1000))
    yield Row(f"wake-ups, rules but nothing watched, {seconds} s", str(woken),
              "0 in 60 s", "perf, bpftrace: tick always", None,
              woken == 0 if seconds >= 60 else None)
    yield Row("resident idle, MiB", rss_text(quiet), "<= 8", peer_memory(found), None,
              quiet["VmRSS"] <= 8)
    yield Row("resident, recorder running, MiB", rss_text(recorder))
    yield Row(f"resident after a session over {LIBRARIES} libraries, MiB", rss_text(after), "<= 64",
              peer_memory(found), None, after["VmRSS"] <= 64)


    said = "; ".join(text or f"{name} {seconds * 1e3:.0f}" for name, (_, _, text, seconds) in found.items())
    yield Row(f"symbolizing that session, cold, ms ({end['ledger']['oncpu']['stacks']} stacks)",
              f"{cold:.0f}", "never slower", said, None,
              all(cold <= f[3] * 1e3 for f in found.values() if not f[2]))
    yield Row("same, warm (the next session), ms", f"{warm:.0f}", "-", said)


def peer_memory(found):
    return "; ".join(text or f"{name.split()[0]} peak {mib:.0f}" for name, (_, mib, text, _) in found.items())


# ---- rules


def push(short):
    """a push of 10,000 rules, and no exec missed meanwhile"""
    hit = harness.rule("hit", comm="bench-hit")
    with World("push") as w:
        agent = w.agent(harness.rules(hit))
        pushed = [hit] + [harness.rule(f"r{i}", comm=f"t{i:05}-svc") for i in range(9999)]
        text = json.dumps(harness.rules(*pushed), separators=(",", ":"))
        target = w.binary("bench-hit") if (harness.WORKLOADS / "bench-hit").exists() else None
        target = target or hit_program(w)
        spawner = w.run_tool("spawner", target, 1000)
        time.sleep(0.5)
        times = []
        for _ in range(3 if short else 9):
            began = time.monotonic()
            agent.call("rules.set", {"text": text}, seconds=30)
            times.append((time.monotonic() - began) * 1e3)
            time.sleep(0.2)
        spawner.stdin.write("\n")
        spawner.stdin.close()
        execs = int(spawner.stdout.readline())
        seen = count_matches(agent, execs)
        rounds = len(times)
    took = median(times)
    yield Row(f"push of 10,000 rules to the answer, ms ({rounds} runs, {len(text) >> 10} KiB)",
              f"{took:.0f}", "<= 100", "none has it", None, took <= 100)
    yield Row(f"execs missed during {rounds} pushes", f"{execs - seen} of {execs}", "0", "none has it", None,
              execs == seen)


def hit_program(w):
    """A copy of true(1) under the name that the rule matches."""
    target = w.folder / "bench-hit"
    target.write_bytes(pathlib.Path("/bin/true").read_bytes())
    target.chmod(0o755)
    return target


def count_matches(agent, execs):
    """process.match lines of execs, once they are all there or 3 s have passed."""
    limit = time.monotonic() + 3
    while True:
        seen = len(agent.find("process.match", comm="bench-hit", found="exec"))
        if seen >= execs or time.monotonic() > limit:
            return seen
        time.sleep(0.1)


# ---- pressure


def pressure(short):
    """from the crossing to the first capture sample"""
    found = []
    for i in range(2 if short else 7):
        with World(f"pressure{i}") as w:
            group = w.cgroup("burn", quota=50)
            when = {"pressure": "cpu", "some_ms": 400, "window_ms": 2000}
            agent = w.agent(harness.rules(harness.rule("burn", comm="burn_cpu", when=[when],
                                                       during_ms=1000)))
            w.spawn("burn_cpu", 20, 3, 2, cgroup=group)
            watched(agent, "burn")
            slot = agent.call("watches")
            slot = (slot["watches"] if isinstance(slot, dict) else slot)[0]["slot"]
            notice = w.run_tool("notice", group.folder / "cpu.pressure", agent.bpf, slot, 400000,
                                2000000, 15)
            wait_ready(notice)
            line = notice.stdout.readline()
            if not line:
                raise harness.Failure("no crossing was seen: see the line above")
            found.append(json.loads(line))
    notice, capture, sample = (median([f[k] for f in found])
                               for k in ("notice_ms", "capture_ms", "sample_ms"))
    tick = 1000 / 97
    yield Row(f"pressure crossing to first capture sample, ms ({len(found)} runs)", f"{sample:.0f}",
              "kernel's notice + 1 tick", f"kernel's own notice {notice:.0f}", None,
              sample <= notice + tick)
    yield Row("same, to the switch to capture, ms", f"{capture:.0f}")


# ---- loader


def timed(*words):
    """Milliseconds from the start to the end of a command that must succeed."""
    began = time.monotonic()
    harness.command(*words, seconds=60)
    return (time.monotonic() - began) * 1e3


def loader(short):
    """the loader from start to exit"""
    rounds = 3 if short else 11
    load, unload, perf, trace = [], [], [], []
    with World("loader") as w:
        where = w.path("loader") / "bpf"
        where.parent.mkdir(mode=0o700)  # not 0755: the loader takes an empty parent of its own mode along
        gone = lambda: timed(harness.LOADER, "unload", "--bpf-dir", where)
        try:
            for _ in range(rounds):
                load.append(timed(harness.LOADER, "load", "--bpf-dir", where, "--group", harness.GROUP,
                                  "--always", "oncpu"))
                unload.append(gone())
                perf.append(timed("perf", "record", "-q", "-F", "99", "-g", "-a", "-o",
                                  w.folder / "perf.data", "--", "true"))
                trace.append(timed("bpftrace", "-e", "profile:hz:99 { exit(); }"))
        finally:
            if where.exists():
                gone()
    ours, peer = median(load), median(perf)
    yield Row(f"loader, start to exit, ms ({rounds} runs)", f"{ours:.0f}", "<= 300",
              f"perf record true {peer:.0f}", ratio(ours, peer), ours <= 300)
    yield Row("same, against bpftrace's first tick", f"{ours:.0f}", "-", f"bpftrace {median(trace):.0f}",
              ratio(ours, median(trace)))
    yield Row("loader unload, ms", f"{median(unload):.0f}")


# ---- slow-down


class Pace(threading.Thread):
    """(time, rounds so far) of a running ping-pong."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.marks = process, []
        self.start()

    def run(self):
        for line in self.process.stdout:
            at, rounds = line.split()
            self.marks.append((int(at) / 1e9, int(rounds)))

    def rate(self, start, end):
        marks = [m for m in self.marks if start <= m[0] <= end]
        if len(marks) < 2:
            raise harness.Failure("the ping-pong said too little")
        return (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])


def leg(pace, seconds):
    start = time.monotonic()
    time.sleep(seconds)
    return pace.rate(start + 0.05, start + seconds)


def slowdown(short):
    """throughput of a watched service in a session, against the same run without"""
    pairs, seconds = (5, 0.5) if short else (15, 1.5)
    with World("slowdown") as w:
        group = w.cgroup("pingpong")
        rule = harness.rule("pingpong", comm="bench-pingpong", cooldown_ms=0, pre_ms=0)
        agent = w.agent(harness.rules(rule))
        pace = Pace(w.run_tool("pingpong", int(pairs * 4 * (seconds + 1)) + 20, cgroup=group))
        watched(agent, "pingpong")
        perf, control = paused_perf(w)
        ours, theirs, noise = [], [], []
        for _ in range(pairs):
            without = leg(pace, seconds)
            since = len(agent.events)
            agent.call("session.start", {"rule": "pingpong", "during_ms": int(seconds * 1000)})
            ours.append(leg(pace, seconds) / without)
            agent.wait("session.end", seconds=20, since=since)
            again = leg(pace, seconds)
            noise.append(again / without)
            if perf:
                control("enable")
                theirs.append(leg(pace, seconds) / again)
                control("disable")
        if perf:
            perf.end()
    spread = median([abs(1 - n) for n in noise])
    kept = median(ours)
    quiet = spread <= 0.05  # above, the machine says nothing about a few per cent
    yield Row(f"pinned ping-pong, rounds in a session to rounds without ({pairs} pairs)", f"{kept:.3f}",
              f"within the noise, here +-{spread:.3f}" + ("" if quiet else ": no verdict"),
              f"perf record -g {median(theirs):.3f}" if theirs else f"peer missing: {control}",
              ratio(kept, median(theirs)), kept >= 1 - max(spread, 0.005) if quiet else None,
              more=True)


def paused_perf(w):
    """(perf that records nothing yet, the function that enables and disables it)."""
    fifo = w.path("control")
    os.mkfifo(fifo)
    hold = os.open(fifo, os.O_RDWR)
    w.held = getattr(w, "held", []) + [hold]
    try:
        perf, _ = w.perf_record("--delay=-1", f"--control=fifo:{fifo}")
    except PeerMissing as why:
        return None, str(why)

    def control(word):
        os.write(hold, word.encode() + b"\n")
        time.sleep(0.05)
    return perf, control
