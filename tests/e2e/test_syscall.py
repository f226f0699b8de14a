# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/evidence/time/syscall* consumer/evidence/time/call_* consumer/evidence/time/session_calls*
# tests: ctl/render/text_report_calls* bpf/time/account_calls.h bpf/cpu/tick_call.h
"""The signal `syscall`: how long threads waited in which system call, against what they measured themselves, and how
much they ran in it, against what they were made to run."""
import platform
import re
import shutil
import subprocess
import time

import pytest

from harness import Skip, check, check_complete, check_figure, check_waited, rule, rules
from test_pools import measured, overlap

pytestmark = pytest.mark.shares_kernel_side

SIGNALS = ["oncpu", "pools", "syscall"]
CALLS = {"sleep": {"clock_nanosleep", "nanosleep"}, "idle": {"epoll_wait", "epoll_pwait", "poll", "ppoll", "select"},
         "child": {"wait4", "waitid"}}


def session(agent, name, during_ms):
    """session.start, session.end and {call: line} of a session on request."""
    asked = agent.call("session.start", {"rule": name, "during_ms": during_ms})["session"]
    start = agent.wait("session.start", session=asked)
    end = agent.wait("session.end", session=asked, seconds=during_ms / 1000 + 15)
    return start, end, {line.get("call"): line for line in agent.find("syscall", session=asked)}


def test_waits_are_told(t):
    """Threads that wait for one kind of thing each: its system call has the time that they measured themselves."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=SIGNALS)), broker=True)
    group = t.cgroup()
    file = t.folder / "measured"
    t.spawn("timed_waits", 20, file, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    start, end, calls = session(agent, "waits", 3000)
    waits = measured(file)
    span = end["pools"]["from_mono_ns"], end["pools"]["to_mono_ns"]
    queues = {line.get("pool"): line["queue_ns"] for line in agent.find("pool", session=end["session"])}
    for kind in ("child", "idle"):
        told = sum(calls[name]["wait_ns"] for name in CALLS[kind] if name in calls)
        own = sum(overlap(thread, *span) for thread in waits[f"w-{kind}"])
        check_waited(told, own, queues[f"w-{kind}"], f"{kind}: {calls}", t.load)
    # Both count the same waits, but for what is open at the begin of each.
    blocked = end["pools"]["waited_ms"]
    check_figure(abs(end["syscall"]["wait_ms"] - blocked) < 0.02 * blocked + 30, f"{end['syscall']} {end['pools']}",
                 t.load)
    longest = calls["futex"]["longest"]
    check(calls["futex"]["open"] >= 1 and longest["open"] and longest["wait_ns"] > 2e9, f"{calls['futex']}")
    ledger = end["ledger"]["syscall"]
    check(ledger["emitted"] == sum(line["waits"] + line["open"] for line in calls.values()), f"{ledger} {calls}")
    check(ledger["attempted"] == ledger["emitted"], f"{end}")
    check_complete(end, t.load)


def test_again_and_beside(t):
    """A second session does not have what the first one had."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=SIGNALS)), broker=True)
    group = t.cgroup()
    t.spawn("timed_waits", 20, t.folder / "measured", cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    for _ in range(2):
        _, end, _ = session(agent, "waits", 1000)
        blocked = end["pools"]["waited_ms"]
        check_figure(abs(end["syscall"]["wait_ms"] - blocked) < 0.05 * blocked + 30, f"{end['syscall']} {end['pools']}",
                     t.load)


@pytest.mark.core
def test_missing_without_the_broker(t):
    """Nobody attaches it: session.start says why, and session.end has no times."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=SIGNALS)), broker=False)
    group = t.cgroup()
    t.spawn("waits", 20, t.folder / "measured", cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    start, end, calls = session(agent, "waits", 500)
    missing = [one["reason"] for one in start["signals_missing"] if one["signal"] == "syscall"]
    check(missing and "--broker none" in missing[0], f"{start}")
    check(end["syscall"] is None and end["syscall_reason"] == missing[0] and not calls, f"{end}")


def user_share_of_bpftrace(pid):
    """The share of a process's ticks in user mode, as bpftrace finds it in four seconds."""
    program = f'profile:hz:499 /pid == {pid}/ {{ @[reg("cs") & 3] = count(); }} interval:s:4 {{ exit(); }}'
    said = subprocess.run(["bpftrace", "-e", program], capture_output=True, text=True, timeout=30, check=False).stdout
    ticks = {int(ring): int(count) for ring, count in re.findall(r"@\[(\d)\]: (\d+)", said)}
    check(sum(ticks.values()) > 300, f"bpftrace: {said}")
    return ticks.get(3, 0) / sum(ticks.values())


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("bpftrace"), reason="no bpftrace that tells modes")
def test_shares_of_what_ran(t):
    """A thread spends known shares of its CPU time in known places: the samples have them within 5 points."""
    agent = t.agent(rules(rule("calls", cgroup=f"/{t.name}-a", signals=["oncpu", "syscall"])), broker=True,
                    load=["--hz", "499"])
    group = t.cgroup()
    worker = t.spawn("cpu_calls", 20, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    _, end, calls = session(agent, "calls", 5000)
    ran = end["cpu_samples"]
    check(ran["all"] == sum(ran[key] for key in ran if key != "all"), f"shares that do not close: {ran}")
    check(ran["all"] == end["ledger"]["oncpu"]["during"]["emitted"], f"{ran} {end['ledger']['oncpu']}")
    told = sum(line["cpu_samples"] for line in calls.values())
    check(told == ran["calls"] + ran["faults"] + ran["kernel_threads"] + ran["compat_calls"], f"{ran} {calls}")
    if ran["all"] < 300:
        raise Skip(f"{ran['all']} samples: the thread had little CPU time")
    check(ran["faults"] > 0 and calls[None]["cpu_samples"] == ran["faults"], f"{ran} {calls}")
    stacks = agent.find("stack", session=end["session"], signal="oncpu", phase="during")
    named = sum(one["count"] for one in stacks if one.get("call") == "getrandom")
    check(named == calls["getrandom"]["cpu_samples"], f"{named} samples have getrandom in their stack's line: {calls}")
    user, faults = ran["user"] / ran["all"], ran["faults"] / ran["all"] + calls["madvise"]["cpu_share"]
    off = [f"{what}: {share}, {due} were spent" for what, share, due in (
        ("user", user, 0.4), ("faults", faults, 0.1), ("getrandom", calls["getrandom"]["cpu_share"], 0.3),
        ("pread64", calls["pread64"]["cpu_share"], 0.2)) if abs(share - due) >= 0.05]
    if off:
        theirs = user_share_of_bpftrace(worker.pid)
        check(abs(user - 0.4) >= 0.05 and abs(user - theirs) < 0.05, f"{off}, and {theirs} by bpftrace: {ran} {calls}")
        raise Skip(f"no verdict, this machine's clock ticks where the kernel lets interrupts in: bpftrace has {theirs:.2f} "
                   f"in user mode, we {user:.2f}, 0.4 were spent")


def test_shares_without_the_signal(t):
    """A session without `syscall` says what ran where too, and has no lines of system calls."""
    agent = t.agent(rules(rule("calls", cgroup=f"/{t.name}-a", signals=["oncpu"])), broker=False)
    group = t.cgroup()
    t.spawn("cpu_calls", 20, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    _, end, calls = session(agent, "calls", 1000)
    ran = end["cpu_samples"]
    check(not calls and ran["user"] and ran["calls"] and ran["all"] == sum(ran.values()) - ran["all"], f"{end}")
