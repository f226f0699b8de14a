# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/memory/reclaim.bpf.c bpf/memory/oom.bpf.c bpf/kernel/kernel_memory.h consumer/evidence/memory/reclaim*
# tests: consumer/evidence/memory/session_reclaim* consumer/answer/find_memory* consumer/conditions/oom_watch*
# tests: consumer/session/oom*
# tests: ctl/render/text_report_memory*
"""Memory: what ran in a stall, who reclaimed and for how long, which file was read again, who was killed."""
import bisect
import contextlib
import pathlib
import struct
import subprocess
import sys
import time

import pytest

from harness import Skip, check, check_figure, command, rule, rules, until
from servers import PINNED, Disk, Service, Witness
from test_facts import make_file, report_of

pytestmark = pytest.mark.shares_kernel_side

LIMIT_MIB, FILE_MIB = 64, 240
PRESSURE = {"pressure": "memory", "some_ms": 30, "window_ms": 1000}


def thrash(t, calm_s=9, **capture):
    """A session of a program that reads a file again which is larger than its memory limit: (agent, group, end)."""
    agent = t.agent(rules(rule("cache", comm="cache", when=[PRESSURE], **{"during_ms": 2000, **capture})))
    group = t.cgroup(memory=LIMIT_MIB)
    t.spawn("thrash_memory", 9 + calm_s, make_file(t.folder / "working-set", FILE_MIB), calm_s, name="cache",
            cgroup=group)
    return agent, group, agent.wait("session.end", seconds=11 + calm_s, rule="cache")


@pytest.mark.parallel(2)
def test_stall_of_what_ran(t):
    """Samples of during hit memory stalls, those of the calm time before none; lines and sums say the same."""
    agent, _, end = thrash(t)
    stall = end["cpu_memory_stall"]
    check_figure("before" in stall, f"stalled too early: {end}", t.load)
    check_figure(stall["before"]["stalled"] == 0, f"{stall}", t.load)
    check_figure(stall["during"]["stalled"] >= 10, f"hardly a sample in a stall: {stall}", t.load)
    stacks = [s for s in agent.stacks(end["session"]) if s["phase"] == "during" and "count" in s]
    counted = [sum(s["count"] for s in stacks if s.get("memory_stall", False) in choice)
               for choice in ((True, False), (True,))]
    check(counted == [stall["during"]["samples"], stall["during"]["stalled"]], f"{counted}: {stall}")
    for stack in (s for s in stacks if s.get("memory_stall")):
        check(stack["frames"][0]["kind"] == "kernel", f"a stall in user mode: {stack}")
    check("memory stall on the CPU: " in report_of(t, agent), "the report does not tell of it")


def hungry(t, more=(), alone=False, **capture):
    """A process that takes more than its memory limit until it is killed: (agent, group, its process)."""
    agent = t.agent(rules({**rule("store", comm="store", during_ms=1500, **capture), **dict(more)}))
    group = t.cgroup(memory=LIMIT_MIB)
    if not alone:
        t.run("sleep", 30, cgroup=group)
    victim = t.spawn("eat_memory", 25, 4 * LIMIT_MIB, 6, name="store", cgroup=group)
    return agent, group, victim


def check_oom(line, group, victim):
    check(line["pid"] == victim.pid and line["comm"] == "store" and line["cgroup"] == group.path, f"{line}")
    check(LIMIT_MIB / 2 <= line["rss"]["anon_bytes"] / (1 << 20) <= LIMIT_MIB and line["swap_bytes"] == 0, f"{line}")
    check(line["asked"] == {"pid": victim.pid, "comm": "store"}, f"{line}")
    check(line["limit"] == "cgroup", f"its own limit was reached: {line}")
    name = (group.others[0] if group.others else group.folder).name
    check(line["limit_name"] == name and line["limit_cgroup"].endswith(name), f"{line}")
    check(line.get("limit_bytes", LIMIT_MIB << 20) == LIMIT_MIB << 20, f"{line}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_oom_kill_begins_a_session(t):
    """A rule on oom_kill: the line comes at once, and the session's pre-roll has what the victim was doing."""
    agent, group, victim = hungry(t, more={"on": "oom_kill"}, pre_ms=8000)
    victim.wait(30)
    check(victim.returncode == -9, f"it was not killed: {victim.returncode}")
    line = agent.wait("oom", seconds=5)
    check_oom(line, group, victim)
    start = agent.wait("session.start", seconds=5)
    check(start["reason"] == {"oom_kill": {"pid": victim.pid, "comm": "store"}}, f"{start}")
    check(line["session"] == start["session"] and line["mono_ns"] <= start["mono_ns"], f"{line} {start}")
    end = agent.wait("session.end", seconds=10)
    check(end["oom_kills"] == 1 and "store (pid %d)" % victim.pid in end["headline"], f"{end}")
    before = [s for s in agent.stacks(end["session"]) if s["phase"] in ("before", "onset") and s["pid"] == victim.pid]
    functions = {frame["fn"] for stack in before for frame in stack["frames"]}
    check_figure({"serve_requests", "work_on"} <= functions, f"nothing of what it did: {functions}", t.load)
    memory = agent.find("facts", session=end["session"], source="memory")[0]
    check(memory["phases"]["during"].get("oom_kill") == 0, f"the kill was before the trigger: {memory}")


@pytest.mark.parallel(3)
def test_oom_kill_of_all_that_was_there(t):
    """The victim was alone: its cgroup is empty, the watch ends, and the session still has its past."""
    agent, group, victim = hungry(t, more={"on": "oom_kill"}, alone=True)
    victim.wait(30)
    line = agent.wait("oom", seconds=5)
    check_oom(line, group, victim)
    end = agent.wait("session.end", seconds=10, session=line["session"])
    check_figure(any(s["phase"] in ("before", "onset") for s in agent.stacks(end["session"])), f"{end}", t.load)
    agent.wait("watch.stop", seconds=5)


@pytest.mark.parallel(3)
def test_oom_kill_without_a_rule(t):
    """Without such a rule there is the line, and no session; of a cgroup that nobody watches there is nothing."""
    agent, group, victim = hungry(t)
    other = t.cgroup("b", memory=LIMIT_MIB)
    stranger = t.spawn("eat_memory", 25, 4 * LIMIT_MIB, 0, name="stranger", cgroup=other)
    stranger.wait(30)
    victim.wait(30)
    check_oom(agent.wait("oom", seconds=5), group, victim)
    agent.never("session.start", seconds=0.5)
    check(len(agent.find("oom")) == 1, f"{agent.find('oom')}")


def check_lines(agent, end):
    """Lines and histograms say the same, the ledger closes."""
    lines = agent.find("reclaim", session=end["session"])
    histograms = agent.find("histogram", session=end["session"], signal="reclaim")
    said, ledger = end["reclaim"], end["ledger"]["reclaim"]
    for kind in ("direct", "limit", "compaction", "throttle"):
        of_kind = [line for line in lines if line["kind"] == kind]
        check(sum(line["time_ns"] for line in of_kind) // 10**6 == said[kind + "_ms"], f"{kind}: {of_kind} {said}")
        for line in of_kind:
            found = [h for h in histograms if h["key"]["kind"] == kind and h["key"].get("device") == line.get("device")]
            check([h["count"] for h in found] == ([line["count"]] if line["count"] else []), f"{line} {found}")
            check(all(sum(n for _, n in h["buckets"]) == h["count"] for h in found), f"{found}")
            check(line["everybody"]["count"] >= line["count"], f"{line}")
    counted = sum(line["count"] + line["open"] + line.get("orphans", 0) for line in lines)
    check(ledger == {"attempted": counted, "emitted": counted, "lost": {}}, f"{ledger} {lines}")
    return {line["kind"]: line for line in lines}


def asked(agent, rule_name, during_ms):
    """session.end of a session on request."""
    session = agent.call("session.start", {"rule": rule_name, "during_ms": during_ms})["session"]
    return agent.wait("session.end", session=session, seconds=during_ms / 1000 + 15)


def read_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/io").read_text().split()[1])


PROGRAMS_US = 0.9  # of a stretch, at most as the bench measures them (reclaims)


@pytest.mark.parallel(2)
@pytest.mark.core
def test_reclaim_as_pressure(t):
    """A program of one thread, bound to a CPU, that reads a hole larger than its memory limit does nothing in a memory
    stall but reclaim: its time is the kernel's own pressure total, within 5 %, but for what the kernel counts before and
    behind each stretch: the programs that tell of it."""
    agent = t.agent(rules(rule("own", cgroup=f"/{t.name}-own", signals=["oncpu", "reclaim"])), broker=True)
    service = Service(t, "own")
    service.place("memory")
    service.memory(LIMIT_MIB)
    in_v2 = service.place("memory")[1]
    hole = t.folder / "hole"
    with open(hole, "wb") as stream:
        stream.truncate(64 << 30)
    reader = service.start(*PINNED, "sh", "-c", f"exec cat {hole} > /dev/null")
    agent.wait("watch.start", cgroup=service.path)
    witness = Witness(stalled=lambda: service.stalled_us("memory"), read=lambda: read_bytes(reader.pid),
                      **({"freed": service.reclaimed_bytes} if in_v2 else {}))
    end = asked(agent, "own", 3000)
    witness.stop()
    kinds = check_lines(agent, end)
    said = end["reclaim"]
    told_us = kinds["limit"]["time_ns"] / 1e3
    kernel_us = witness.grown("stalled", said["from_mono_ns"], said["to_mono_ns"])
    print(f"{told_us / 1e3} ms told, {kernel_us / 1e3} ms by pressure: {said}")
    check(kernel_us > 50000, f"no stall: {kernel_us} us: {said}")
    beyond_us, near_us = kernel_us - told_us, 0.05 * kernel_us
    check_figure(-near_us <= beyond_us <= near_us + said["stretches"] * PROGRAMS_US,
                 f"{told_us} us told, {kernel_us} us by pressure", t.load)
    told = kinds["limit"]["reclaimed_bytes"]
    check(told > 64 << 20, f"{kinds}")
    # At the limit each page that is read takes the place of another one.
    for name in ("read", "freed") if in_v2 else ("read",):
        counted = witness.grown(name, said["from_mono_ns"], said["to_mono_ns"])
        print(f"{told / (1 << 20)} MiB told, {counted / (1 << 20)} MiB {name}")
        check_figure(abs(told - counted) <= 0.05 * counted, f"{told} bytes told, {counted} {name}", t.load)


TOUCH = """
import sys
pages = bytearray(int(sys.argv[1]) << 20)
while True:
    for at in range(0, len(pages), 4096):
        pages[at] = 1
"""
SWAP_MIB, TOUCHED_MIB = 48, 88


@contextlib.contextmanager
def swap(t):
    """A file to swap to, for as long as it takes."""
    path = t.folder / "swap"
    path.touch(0o600)
    make_file(path, SWAP_MIB)
    if command("mkswap", path, expect=None).returncode or command("swapon", path, expect=None).returncode:
        raise Skip(f"nothing can be swapped to {path}")
    try:
        yield
    finally:
        command("swapoff", path, seconds=60)


def swapped_in():
    return next(int(line.split()[1]) for line in pathlib.Path("/proc/vmstat").read_text().splitlines()
                if line.startswith("pswpin "))


@pytest.mark.serial
def test_swap(t):
    """A program touches again and again what its memory limit has no room for: that is the cause, the pages that were read
    back are those that the kernel swapped in, and what is out of memory is what does not fit."""
    agent = t.agent(rules(rule("own", cgroup=f"/{t.name}-own", signals=["oncpu", "offcpu", "pools", "reclaim", "block"])),
                    broker=True)
    service = Service(t, "own")
    service.memory(LIMIT_MIB)
    with swap(t):
        process = service.start(*PINNED, sys.executable, "-c", TOUCH, TOUCHED_MIB)
        agent.wait("watch.start", cgroup=service.path)
        until(lambda: service.limit_hits() > 100, 15, "the limit is not reached")
        time.sleep(1)
        witness = Witness(swapped_in=swapped_in)
        end = asked(agent, "own", 2500)
        witness.stop()
        t.end(process)
    memory = agent.find("facts", session=end["session"], source="memory")[0]["phases"]["during"]
    if memory["oom_kill"]:
        raise Skip("the kernel killed the program in place of waiting for the file that it swaps to")
    host = agent.find("facts", session=end["session"], source="host")[0]["phases"]["during"]
    start_ns = agent.find("session.start", session=end["session"])[0]["mono_ns"]
    counted = witness.grown("swapped_in", start_ns, start_ns + memory["ms"] * 10**6)
    print(f"{memory} {host['pswpin']} told, {counted} counted")
    check_figure(counted > 1000, f"hardly anything came back: {counted}: {memory}", t.load)
    check_figure(abs(host["pswpin"] - counted) <= 0.05 * counted, f"{host} told, {counted} counted", t.load)
    check_figure(abs(memory["workingset_refault_anon"] - counted) <= 0.05 * counted, f"{memory}, {counted} counted", t.load)
    out_mib = memory["swap_bytes"] / (1 << 20)
    check(TOUCHED_MIB - LIMIT_MIB <= out_mib <= SWAP_MIB, f"{out_mib} MiB are swapped out: {memory}")
    first = end["findings"][0]
    check_figure(first["cause"] == "memory_limit", f"{end['findings']}", t.load)
    check(f"memory limit of {LIMIT_MIB} MiB reached" in first["says"] and "pages read back" in first["says"], f"{first}")


def strict(disk, mib):
    """So few dirty pages of that disk before who writes has to wait; nobody else's disk is touched."""
    bdi = pathlib.Path(f"/sys/class/bdi/{disk.device}")
    if not (bdi / "strict_limit").exists():
        raise Skip("this kernel bounds no disk's dirty pages (Linux 6.2 does)")
    (bdi / "strict_limit").write_text("1")
    (bdi / "max_bytes").write_text(str(mib << 20))


def slept_ns(log, from_ns, to_ns):
    """What the program says: for how long it was in write(2) without running between two moments, of which either may
    lie within a write: its time counts evenly."""
    def rows():
        return list(struct.iter_unpack("<QQ", log.read_bytes()[:log.stat().st_size // 16 * 16]))
    until(lambda: rows() and rows()[-1][0] >= to_ns, 10, "it is in one write for 10 s")
    every = rows()

    def at(moment):
        last = bisect.bisect_left(every, (moment, 0))
        (begin, before), (end, after) = every[max(last - 1, 0)], every[last]
        return before + (after - before) * max(0, moment - begin) / max(1, end - begin)
    return at(to_ns) - at(from_ns)


@pytest.mark.parallel(2)
def test_throttle_as_the_writer(t):
    """A program that writes more than its disk takes measures for how long it does not run in write(2): most of that is
    the time of its pauses, the rest is for the file system. They are of that disk, and they are the first finding."""
    group, log = t.cgroup("own"), t.folder / "log"
    signals = ["oncpu", "pools", "reclaim", "block"]
    agent = t.agent(rules(rule("own", cgroup=group.path, signals=signals)), broker=True)
    disk = Disk(t, 200)
    strict(disk, 4)
    with disk.slow(group, 100 << 20):
        t.spawn("dirty_pages", 25, disk.folder / "data", 160, log, name="dirty", cgroup=group)
        agent.wait("watch.start", cgroup=group.path)
        time.sleep(2)
        end = asked(agent, "own", 3000)
    kinds = check_lines(agent, end)
    said = end["reclaim"]
    true_ns = slept_ns(log, said["from_mono_ns"], said["to_mono_ns"])
    check_figure(true_ns > 500e6, f"it did not wait: {true_ns} ns: {said}", t.load)
    check_figure(kinds.get("throttle"), f"no pause: {said}, {true_ns} ns by the writer", t.load)
    print(f"{kinds['throttle']}: {true_ns / 1e6} ms by the writer")
    check_figure(0.75 * true_ns <= kinds["throttle"]["time_ns"] <= 1.02 * true_ns,
                 f"{true_ns} ns by the writer: {kinds}", t.load)
    check((kinds["throttle"]["device"], kinds["throttle"]["number"]) == (disk.name, disk.device), f"{kinds}")
    check(kinds["throttle"]["longest_ns"] <= 300 * 10**6, f"the kernel's longest pause is 200 ms: {kinds}")
    first = end["findings"][0]
    check(first["cause"] == "write_pause" and f"more is written than {disk.name}" in first["says"], f"{end['findings']}")
