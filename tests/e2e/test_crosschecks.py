# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/sampling/wait* bpf/time/account* bpf/locks/lock.bpf.c consumer/kernel/psi*
"""What sessions say of waiting, against others that measured the same seconds: the kernel's own pressure, bpftrace at
every context switch, strace at every futex call."""
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from harness import Skip, check, check_figure, rule, rules, until
from servers import PINNED, Disk, Service, Witness, forget
from test_pools import KINDS, THREADS, measured, session

POINTS = 5
# Time off the CPU, as offcputime counts it: from where a thread leaves its CPU until it has one again.
OFFCPU = """
tracepoint:sched:sched_switch {
    if (@since[args->next_pid]) { @ns[args->next_comm] = sum(nsecs - @since[args->next_pid]); delete(@since[args->next_pid]); }
    if (strncmp(args->prev_comm, "w-", 2) == 0) { @since[args->prev_pid] = nsecs; }
}
interval:s:%d { exit(); }
END { clear(@since); }
"""


# Reads a file again and again, each part by two descriptors: so the kernel takes its pages for ones that are in use.
# Between them it rests: who waited for memory all the time would be told of rightly by any account.
REREAD = """
import os, sys, time
a, b = (os.open(sys.argv[1], os.O_RDONLY) for _ in range(2))
while True:
    for at in range(0, os.fstat(a).st_size, 1 << 16):
        os.pread(a, 1 << 16, at)
        os.pread(b, 1 << 16, at)
        time.sleep(0.002)
"""
REREAD_MIB, REREAD_LIMIT_MIB = 36, 32


def waiting(t, seconds=40):
    """The workload in a cgroup of its own, when all of its threads wait."""
    group = t.cgroup()
    file = t.tmpfs("8m") / "measured"
    process = t.spawn("timed_waits", seconds, file, cgroup=group)
    until(lambda: file.exists() and len(measured(file)) == len(KINDS) - 2, 10, "the threads do not wait")
    return group, process


def tool(name):
    found = shutil.which(name)
    if not found:
        raise Skip(f"{name} is not installed")
    return found


def by_function(stacks):
    """Time off the CPU by the workload's function that waits."""
    sums = {}
    for stack in stacks:
        name = next((f["fn"] for f in stack["frames"] if re.match("wait_|leave_", f["fn"] or "")), None)
        if name and "count" in stack:
            sums[name] = sums.get(name, 0) + stack["weight_ns"]
    return sums


@pytest.mark.parallel(2)
def test_offcpu_as_bpftrace(t):
    """The shares of ten functions in the time off the CPU, within five points of a tracer's at every switch."""
    bpftrace = tool("bpftrace")
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=["oncpu", "offcpu"])), broker=True)
    group, _ = waiting(t)
    agent.wait("watch.start", cgroup=group.path)
    with open(t.folder / "offcpu", "w+", encoding="utf-8") as out:
        tracer = subprocess.Popen([bpftrace, "-B", "none", "-e", OFFCPU % 4], stdout=out, stderr=subprocess.STDOUT)
        t.processes.append(tracer)
        until(lambda: "Attach" in (t.folder / "offcpu").read_text(), 15, "bpftrace does not attach")
        _, end, _ = session(agent, "waits", 3500)
        tracer.wait(20)
    traced = {comm.replace("w-", "wait_"): int(ns) for comm, ns in
              re.findall(r"@ns\[(w-\w+)\]: (\d+)", (t.folder / "offcpu").read_text())}
    told = by_function(agent.stacks(end["session"], "offcpu"))
    # The convoy's own sleep is a function of its own here, and the wait without an end no switch of a tracer.
    told["wait_convoy"] = told.get("wait_convoy", 0) + told.pop("leave_convoy", 0)
    for sums in (told, traced):
        sums.pop("wait_open", None)
        sums.pop("wait_feeder", None)
        sums.pop("wait_slow", None)
    check(len(traced) >= 8 and set(traced) == set(told), f"{sorted(traced)} {sorted(told)}")
    for name in traced:
        shares = [100 * sums[name] / sum(sums.values()) for sums in (told, traced)]
        print(f"{name}: {shares[0]:.1f} % told, {shares[1]:.1f} % traced")
        check_figure(abs(shares[0] - shares[1]) < POINTS, f"{name}: {shares}", t.load)


def futex_ns(lines, from_ns, to_ns):
    """The time in futex calls between two moments of CLOCK_REALTIME, from `strace -f -ttt -T`."""
    open_calls, total = {}, 0
    for line in lines:
        found = re.match(r"(\d+) +(\d+\.\d+) (.*)", line)
        if not found:
            continue
        tid, at, text = int(found[1]), int(float(found[2]) * 1e9), found[3]
        if "<... futex resumed" in text and tid in open_calls:
            total += overlap_ns(open_calls.pop(tid), at, from_ns, to_ns)
        elif text.startswith("futex(") and "<unfinished" in text:
            open_calls[tid] = at
        elif text.startswith("futex("):
            took = re.search(r"<(\d+\.\d+)>$", text)
            total += overlap_ns(at, at + int(float(took[1]) * 1e9), from_ns, to_ns) if took else 0
    return total + sum(overlap_ns(at, to_ns, from_ns, to_ns) for at in open_calls.values())


def overlap_ns(begin, end, first, last):
    return max(0, min(end, last) - max(begin, first))


@pytest.mark.parallel(2)
def test_locks_as_strace(t):
    """The time in lock waits, within 5 % of what strace sees of futex calls in the same window."""
    strace = tool("strace")
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=["oncpu", "pools"])), broker=True)
    group, process = waiting(t)
    agent.wait("watch.start", cgroup=group.path)
    out = t.folder / "strace"
    tracer = subprocess.Popen([strace, "-f", "-ttt", "-T", "-e", "trace=futex", "-o", out, "-p", str(process.pid)],
                              stderr=subprocess.DEVNULL)
    t.processes.append(tracer)
    until(lambda: out.exists() and out.stat().st_size > 2000, 10, "strace does not attach")
    _, end, lines = session(agent, "waits", 2000)
    tracer.terminate()
    tracer.wait(60)
    ahead = time.time_ns() - time.monotonic_ns()
    span = [end["pools"][key] + ahead for key in ("from_mono_ns", "to_mono_ns")]
    traced = futex_ns(out.read_text().splitlines(), *span)
    told = sum(line["blocked_ns"].get("lock", 0) for line in lines if line.get("pid") == process.pid)
    queue = sum(line["queue_ns"] for line in lines if line.get("pid") == process.pid)
    print(f"{told / 1e6} ms told, {traced / 1e6} ms traced, {queue / 1e6} ms in the queue")
    # strace counts until the thread runs again, and stops it at each call.
    check_figure(abs(told - traced) <= 0.05 * traced, f"{told} told, {traced} by strace", t.load)


@pytest.mark.parallel(2)
@pytest.mark.parametrize("resource", ["cpu", "io"])
def test_as_pressure(t, resource):
    """Of a program of one thread that is bound to a CPU, queue and io are the kernel's own pressure totals, within 5 %."""
    service, batch = Service(t, "own"), t.cgroup("batch")
    if resource == "io":
        service.place("io")
        disk = Disk(t, 64)
    agent = t.agent(rules(rule("own", cgroup=service.path, signals=["oncpu", "pools"])), broker=True)
    if resource == "io":
        # Reads past the page cache: what waits for a journal is in io_schedule seldom, and then pressure does not count it.
        (disk.folder / "data").write_bytes(bytes(32 << 20))
        service.read_limit(disk.device, 1 << 20)
        service.start(*PINNED, "dd", f"if={disk.folder}/data", "of=/dev/null", "bs=64k", "iflag=direct")
    else:
        service.start(*PINNED, t.binary("burn_cpu"), 30, 1, 0)
        other = t.spawn("burn_cpu", 30, 1, 0, name=f"batch{os.getpid()}", cgroup=batch)
        os.sched_setaffinity(other.pid, {int(PINNED[-1])})
    agent.wait("watch.start", cgroup=service.path)
    time.sleep(0.5)
    witness = Witness(stalled=lambda: service.stalled_us(resource))
    _, end, lines = session(agent, "own", 3000)
    witness.stop()
    if resource == "io":
        service.read_limit(disk.device, None)
    told = sum(line["queue_ns"] if resource == "cpu" else line["blocked_ns"].get("io", 0) for line in lines) / 1e3
    kernel = witness.grown("stalled", end["pools"]["from_mono_ns"], end["pools"]["to_mono_ns"])
    print(f"{resource}: {told / 1e3} ms told, {kernel / 1e3} ms by pressure")
    check(kernel > 300000, f"no stall: {kernel} us")
    check_figure(abs(told - kernel) <= 0.05 * kernel, f"{resource}: {told} us told, {kernel} us by pressure: {lines}", t.load)


@pytest.mark.parallel(2)
def test_memory_as_pressure(t):
    """Of a program of one thread that is bound to a CPU and reads again what its memory limit has taken away, from a slow
    disk, `memory` is the kernel's own pressure total, within 5 %."""
    service = Service(t, "own")
    for controller in ("io", "memory"):
        service.place(controller)
    disk = Disk(t, 64)
    cache = disk.folder / "cache"
    cache.write_bytes(bytes(REREAD_MIB << 20))
    forget(cache)
    agent = t.agent(rules(rule("own", cgroup=service.path, signals=["oncpu", "pools"])), broker=True)
    service.memory(REREAD_LIMIT_MIB)
    service.start(*PINNED, sys.executable, "-c", REREAD, cache)
    agent.wait("watch.start", cgroup=service.path)
    # At the disk's own speed until pages are known as in use: pressure counts only those that are read again.
    until(lambda: service.refaults() > 2 * (REREAD_MIB << 20) // 4096, 20, "nothing is read again")
    with disk.limited(service, 8 << 20):
        time.sleep(0.5)
        witness = Witness(stalled=lambda: service.stalled_us("memory"), cpu=service.cpu_us)
        _, end, lines = session(agent, "own", 3000)
        witness.stop()
    told = sum(line["blocked_ns"].get("memory", 0) for line in lines) / 1e3
    span = end["pools"]["from_mono_ns"], end["pools"]["to_mono_ns"]
    kernel, cpu = (witness.grown(name, *span) for name in ("stalled", "cpu"))
    print(f"memory: {told / 1e3} ms told, {kernel / 1e3} ms by pressure, {cpu / 1e3} ms of CPU time: {lines}")
    check(1000000 < kernel < 2900000, f"no stall, or nothing else: {kernel} us: {lines}")
    check_figure(abs(told - kernel) <= 0.05 * kernel, f"{told} us told, {kernel} us by pressure: {lines}", t.load)


@pytest.mark.parallel(2)
def test_throttled(t):
    """The time for which a quota keeps a thread from its CPU is in its queue, and not in any wait."""
    service = Service(t, "own")
    service.place("cpu")
    service.start(t.binary("burn_cpu"), 30, 1, 0)
    service.quota(40)
    agent = t.agent(rules(rule("own", cgroup=service.path, signals=["oncpu", "pools"])), broker=True)
    agent.wait("watch.start", cgroup=service.path)
    time.sleep(0.5)
    witness = Witness(throttled=service.throttled_us, stalled=lambda: service.stalled_us("cpu"))
    _, end, lines = session(agent, "own", 3000)
    witness.stop()
    span = end["pools"]["from_mono_ns"], end["pools"]["to_mono_ns"]
    throttled, stalled = (witness.grown(name, *span) / 1e3 for name in ("throttled", "stalled"))
    queue, blocked = (sum(line) / 1e6 for line in zip(*((x["queue_ns"], sum(x["blocked_ns"].values())) for x in lines)))
    print(f"{queue} ms in the queue, {throttled} throttled, {stalled} by pressure, {blocked} blocked")
    check(throttled > 1000 and blocked < 20, f"{throttled} ms throttled, {blocked} blocked: {lines}")
    check(queue >= 0.95 * throttled, f"{queue} ms in the queue, {throttled} throttled: {lines}")
    check_figure(abs(queue - stalled) <= 0.05 * stalled, f"{queue} ms in the queue, {stalled} by pressure", t.load)
