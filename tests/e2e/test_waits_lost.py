# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/waits/looks.bpf.c consumer/sampling/looks* consumer/sampling/counter_history*
"""Losses of what waited, provoked: each stands in the ledger by its name, and the verdict follows it. And the death of
the consumer in a session with every signal that has programs."""
import json
import os
import pathlib
import re
import signal
import time

import pytest

from harness import ROOT, bpf_objects, check, check_figure, command, rule, rules, until

SLEEPERS = 1500
PROBES = ROOT / "shared" / "abi" / "probes.def"


def capture(agent, group, during_ms, **parameters):
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": during_ms, **parameters})["session"]
    return agent.wait("session.start", session=session), agent.wait("session.end", seconds=30, session=session)


def sleepers(t, *arguments):
    """An agent that watches so many threads that sleep."""
    agent = t.agent(rules(rule("api", comm="crowd")), arguments=arguments)
    group = t.cgroup()
    process = t.spawn("crowd", 60, "threads", SLEEPERS, cgroup=group)
    check(process.stdout.readline(), "no threads")
    agent.wait("watch.start", cgroup=group.path)
    # A session that begins before the broker has answered lacks oncpu, which is said before all else.
    until(lambda: agent.call("status")["sampling"]["events"] == os.cpu_count(), 10, "no CPU is sampled")
    return agent, group


@pytest.mark.parallel(2)
def test_looks_budget(t):
    """A thousandth of a CPU is too little to look at so many threads often: it keeps to it, the ledger says how many
    looks are left out, and the session is partial."""
    agent, group = sleepers(t, "--looks-permille", 1)
    start, end = capture(agent, group, 3000)
    looks, ledger = end["looks"], end["ledger"]["offcpu"]
    check(start["looks"] == {"every_ms": 50, "budget_pct": 0.1}, f"{start}")
    check(looks["skipped"] > 10 and looks["longest_gap_ms"] > 300, f"{looks}")
    check(ledger["left_out"]["budget"] >= looks["skipped"] * SLEEPERS, f"{ledger}")
    check(ledger["expected"] == ledger["during"]["attempted"] + ledger["left_out"]["budget"], f"{ledger}")
    check(end["verdict"] == "partial" and "--looks-permille 1)" in end["verdict_reason"], f"{end}")
    share = re.search(r"skipped (\d+) of (\d+) sampling passes", end["verdict_reason"])
    check(int(share[1]) == looks["skipped"] and int(share[2]) == looks["skipped"] + looks["passes"], f"{end}")
    # Who sleeps all along weighs what it slept while the accounts were kept, however seldom it is looked at.
    asleep = sum(s["weight_ns"] for s in agent.stacks(end["session"], "offcpu") if s["phase"] == "during") / 1e6 / SLEEPERS
    wall = end["pools"]["wall_ms"] / end["pools"]["threads"]
    check(abs(asleep - wall) < 0.05 * wall, f"{asleep} {wall} {end['duration_ms']}")


@pytest.mark.parallel(2)
def test_looks_unbounded(t):
    """With a whole CPU for them the same looks leave nothing out."""
    agent, group = sleepers(t, "--looks-permille", 1000)
    _, end = capture(agent, group, 1500)
    check(end["looks"]["skipped"] == 0 and "left_out" not in end["ledger"]["offcpu"], f"{end}")
    check(end["ledger"]["offcpu"]["expected"] == end["ledger"]["offcpu"]["during"]["attempted"], f"{end}")
    check("looks-permille" not in end.get("verdict_reason", ""), f"{end}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_looks_cut(t):
    """The iterator cannot be opened for a time of the session: the passes that should have been are looks that were
    cut, each with the threads that waited."""
    agent, group = sleepers(t)
    pin, aside = agent.bpf / "looks", agent.bpf / "looks_aside"
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 2500})["session"]
    time.sleep(0.8)
    pin.rename(aside)
    time.sleep(0.8)
    aside.rename(pin)
    end = agent.wait("session.end", session=session)
    looks, ledger = end["looks"], end["ledger"]["offcpu"]
    check(looks["cut"] >= 1, f"{looks}")
    check(ledger["lost"].get("look_cut", 0) >= looks["cut"] * SLEEPERS, f"{looks} {ledger}")
    check(ledger["attempted"] == ledger["emitted"] + sum(ledger["lost"].values()), f"{ledger}")
    check(end["verdict"] in ("partial", "inconclusive"), f"{end}")
    share = ledger["lost"]["look_cut"] / ledger["attempted"]
    check((end["verdict"] == "inconclusive") == (share > 0.5), f"{end['verdict']} at {share}")


@pytest.mark.parallel(2)
def test_wakers_ring_full(t):
    """Stacks of those that end waits for locks, and a consumer that the machine does not run for a second."""
    agent = t.agent(rules(rule("locks", comm=t.comm)), broker=True, load=["--samples-ring-kib", "64", "--hz", "19"])
    group = t.cgroup()
    for i in range(4):
        t.spawn("lock_patterns", 30, t.folder / f"locks{i}", name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 4000, "signals": ["oncpu", "lock"]})["session"]
    agent.wait("session.start", session=session)
    time.sleep(0.5)
    agent.process.send_signal(signal.SIGSTOP)
    time.sleep(2)
    agent.process.send_signal(signal.SIGCONT)
    end = agent.wait("session.end", session=session)
    locks = end["ledger"]["lock"]
    wakers = locks["wakers"]
    check(wakers["lost"].get("ring_full", 0) > 0, f"nothing lost in a ring of 64 KiB: {wakers}")
    check(wakers["attempted"] == wakers["emitted"] + sum(wakers["lost"].values()), f"{wakers}")
    check(not locks["lost"] and locks["attempted"] == locks["emitted"], f"waits need no ring: {locks}")
    check(end["verdict"] in ("partial", "inconclusive") and end["verdict_reason"], f"{end}")


def programs_of(agent):
    """The ids of the programs that the broker attaches, by name."""
    names = re.findall(r"^PROBE\((\w+),", PROBES.read_text(), re.M)
    shown = {name: command("bpftool", "-j", "prog", "show", "pinned", agent.bpf / name).stdout for name in names}
    return {name: json.loads(text)["id"] for name, text in shown.items()}


def perf_events(pid):
    return sum("perf_event" in os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink())


@pytest.mark.serial
def test_killed_with_all_signals(t):
    """Every program that a session has attached goes with the consumer that is killed, as do the sampling events."""
    agent = t.agent(rules(rule("api", comm=t.comm)), broker=True)
    group = t.cgroup()
    t.spawn("waits", 40, t.folder / "journal", name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    programs = programs_of(agent)
    attached = lambda: {name for name, number in programs.items()
                        if any(link.get("prog_id") == number for link in bpf_objects("link"))}
    # One program counts switches: that of the accounts, where there are any.
    every = set(programs) - {"count_switches"}
    check(not attached(), f"attached before a session: {attached()}")
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 20000})["session"]
    until(lambda: attached() == every, 8, lambda: f"{attached()}, not {every}")
    start = agent.wait("session.start", session=session)
    check({"oncpu", "offcpu", "runq", "lock", "syscall", "switch", "pools", "block"} <=
          set(start["signals"]) | {m["signal"] for m in start.get("signals_missing", [])}, f"{start}")
    check(perf_events(agent.pid) > 0, "no sampling event")
    began = time.monotonic()
    agent.stop(signal.SIGKILL, expect=-signal.SIGKILL)
    until(lambda: not attached(), 2, lambda: f"attached without the consumer: {attached()}")
    check_figure(time.monotonic() - began < 2, f"{time.monotonic() - began} s", t.load)
    agent.start()
    agent.wait("watch.start", since=agent.mark)
    _, end = capture(agent, group, 1000)
    check(not attached(), f"attached after a session: {attached()}")
    for name in ("pools", "runq", "syscall", "lock", "block"):
        check(name in end["ledger"], f"no {name}: {end}")
    check(end["pools"]["wall_ms"] <= end["pools"]["threads"] * (end["duration_ms"] + 100), f"of the dead one: {end['pools']}")
