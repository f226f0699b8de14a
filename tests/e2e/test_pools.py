# SPDX-License-Identifier: BSD-2-Clause
"""The signal `pools`: what the time of a session's threads went to, against what the threads themselves measured."""
import os
import signal
import time

import pytest

from harness import bpf_objects, check, check_figure, rule, rules, until

KINDS = {"w-sleep": "sleep", "w-lock": "lock", "w-pipe": "pipe", "w-socket": "socket", "w-read": "socket",
         "w-idle": "idle", "w-child": "child", "w-open": "lock"}


def measured(file):
    """{kind: [[begin, end or None], ...]} in ns, from the lines of the workload `waits`."""
    waits = {}
    for line in file.read_text().splitlines():
        kind, _, begin, end = line.split()
        of = waits.setdefault(f"w-{kind}", [])
        if end == "0":
            of.append([int(begin), None])
        else:
            of[-1][1] = int(end)
    return waits


def overlap(waits, first, last):
    """How much of the waits lies between two moments."""
    return sum(max(0, min(end or last, last) - max(begin, first)) for begin, end in waits)


def closes(line):
    """wall = running + queue + blocked + unaccounted, and of the last one hundredth at most."""
    parts = line["running_ns"] + line["queue_ns"] + sum(line["blocked_ns"].values()) + line["unaccounted_ns"]
    check(line["wall_ns"] == parts, f"the account does not close: {line}")
    check(line["unaccounted_ns"] <= max(0.01 * line["wall_ns"], 3e6 * line["threads"]), f"unaccounted: {line}")


def session(agent, name, during_ms):
    """session.start, session.end and {pool: line} of a session on request."""
    asked = agent.call("session.start", {"rule": name, "during_ms": during_ms})["session"]
    start = agent.wait("session.start", session=asked)
    end = agent.wait("session.end", session=asked, seconds=during_ms / 1000 + 15)
    lines = agent.find("pool", session=asked)
    for line in lines:
        closes(line)
    return start, end, lines


def test_waits_are_told(t):
    """Threads that wait for one kind of thing each: the kind, and the time that they measured themselves."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=["oncpu", "pools"])), broker=True)
    group = t.cgroup()
    file = t.folder / "measured"
    waiter = t.spawn("timed_waits", 20, file, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    start, end, lines = session(agent, "waits", 3000)
    check(start["signals"] == ["oncpu", "pools"], f"{start}")
    pools = {line["pool"]: line for line in lines if line.get("pid") == waiter.pid}
    check(set(KINDS) <= set(pools), f"{sorted(pools)}")
    waits = measured(file)
    for name, kind in KINDS.items():
        line = pools[name]
        first = start["mono_ns"] + end["pools"].get("late_ms", 0) * 1000000
        told, own = line["blocked_ns"].get(kind, 0), overlap(waits[name], first, first + line["wall_ns"])
        others = sum(ns for other, ns in line["blocked_ns"].items() if other != kind)
        check(told > 0.5 * (line["wall_ns"] - line["queue_ns"]) and others < 0.05 * line["wall_ns"], f"{name}: {line}")
        # What the thread measures has its own wait for a CPU in it.
        check_figure(told - 20e6 <= own * 1.05 and own <= (told + line["queue_ns"]) * 1.05 + 20e6,
                     f"{name}: {told / 1e6} ms told, {own / 1e6} ms measured: {line}", t.load)
    check(pools["w-open"]["open_ns"] >= 0.99 * pools["w-open"]["wall_ns"], f"{pools['w-open']}")
    flies = pools["mayfly"]
    check(flies["born"] >= 15 and flies["ended"] >= 15 and flies["threads"] >= flies["born"], f"{flies}")
    check(end["verdict"] == "complete" and end["ledger"]["pools"]["lost"] == {}, f"{end}")


def pin(process, cpu):
    """The process and all threads that it has begun; later ones inherit it."""
    for thread in os.listdir(f"/proc/{process.pid}/task"):
        os.sched_setaffinity(int(thread), {cpu})


def schedstat(pid):
    """ns on a CPU, and ns in the queue for one, of the first thread."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as stream:
        return [int(word) for word in stream.read().split()[:2]]


@pytest.mark.parallel(2)
def test_neighbour_takes_the_cpu(t):
    """Another cgroup has half of the one CPU: the queue is what the scheduler's own account of the process says."""
    cpu = max(os.sched_getaffinity(0))
    agent = t.agent(rules(rule("api", cgroup=f"/{t.name}-own", signals=["oncpu", "pools"])), broker=True)
    own, batch = t.cgroup("own"), t.cgroup("batch")
    pin(t.spawn("burn_cpu", 30, 1, 0, name=f"batch{os.getpid()}", cgroup=batch), cpu)
    burner = t.spawn("burn_cpu", 30, 1, 0, name=t.comm, cgroup=own)
    pin(burner, cpu)
    agent.wait("watch.start", cgroup=own.path)
    time.sleep(0.3)
    asked = agent.call("session.start", {"rule": "api", "during_ms": 3000})["session"]
    agent.wait("session.start", session=asked)
    began, before = time.monotonic(), schedstat(burner.pid)
    time.sleep(2.5)
    passed, after = time.monotonic() - began, schedstat(burner.pid)
    end = agent.wait("session.end", session=asked)
    lines = agent.find("pool", session=asked)
    check(len(lines) == 1 and lines[0]["pid"] == burner.pid, f"{lines}")
    closes(lines[0])
    for key, a, b in (("running_ns", before[0], after[0]), ("queue_ns", before[1], after[1])):
        told, kernel = lines[0][key] / lines[0]["wall_ns"], (b - a) / passed / 1e9
        check_figure(abs(told - kernel) < 0.05, f"{key}: {told:.3f} told, {kernel:.3f} in schedstat: {lines}", t.load)
    check(end["pools"]["queue_ms"] > 300, f"{end['pools']}")


def test_table_is_full(t):
    """More threads than the table takes: the ledger counts them, and the verdict is partial."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=["oncpu", "pools"])), broker=True,
                    load=["--threads", 16])
    group = t.cgroup()
    for i in range(3):
        t.spawn("waits", 20, t.folder / f"measured{i}", cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    for _ in range(2):  # and the table is empty again for the next one
        _, end, lines = session(agent, "waits", 1000)
        ledger = end["ledger"]["pools"]
        check(ledger["lost"]["threads_full"] >= 10 and 10 <= ledger["emitted"] <= 40, f"{ledger}")
        check(end["verdict"] == "partial" and "--threads" in end["verdict_reason"], f"{end}")
        check(sum(line["threads"] for line in lines) == ledger["emitted"], f"{lines} {ledger}")


def attached():
    return sum(link.get("prog_id") in {p["id"] for p in bpf_objects("prog") if p.get("name") == "account_switch"}
               for link in bpf_objects("link"))


@pytest.mark.serial
def test_detached_at_once(t):
    """The program is attached in a session alone, two sessions share it, and it goes when the consumer is killed."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=["oncpu", "pools"]),
                          rule("more", cgroup=f"/{t.name}-b", signals=["oncpu", "pools"])), broker=True)
    groups = t.cgroup("a"), t.cgroup("b")
    for i, group in enumerate(groups):
        t.spawn("waits", 20, t.folder / f"measured{i}", cgroup=group)
        agent.wait("watch.start", cgroup=group.path)
    check(attached() == 0, "attached before a session")
    first = agent.call("session.start", {"rule": "waits", "during_ms": 1000})["session"]
    time.sleep(0.3)
    second = agent.call("session.start", {"rule": "more", "during_ms": 2000})["session"]
    time.sleep(0.3)
    check(attached() == 1, "not attached once for two sessions")
    for asked in (first, second):
        end = agent.wait("session.end", session=asked)
        check(end["ledger"]["pools"]["emitted"] >= 10 and not end["ledger"]["pools"]["lost"], f"{end}")
        for line in agent.find("pool", session=asked):
            closes(line)
    until(lambda: attached() == 0, 5, "attached after the sessions")
    agent.call("session.start", {"rule": "waits", "during_ms": 10000})
    until(lambda: attached() == 1, 5, "not attached in a session")
    agent.stop(signal.SIGKILL, expect=-signal.SIGKILL)
    until(lambda: attached() == 0, 2, "attached without the consumer")
    agent.start()
    agent.wait("watch.start", cgroup=groups[0].path, since=agent.mark)
    _, end, _ = session(agent, "waits", 500)  # what the dead one has left does not count
    check(end["ledger"]["pools"]["emitted"] >= 10 and end["pools"]["arrived"] == 0, f"{end}")


def test_missing_without_the_broker(t):
    """Nobody attaches it: session.start says why, and session.end has no account."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=["oncpu", "pools"])), broker=False)
    group = t.cgroup()
    t.spawn("waits", 20, t.folder / "measured", cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    start, end, lines = session(agent, "waits", 500)
    missing = [one["reason"] for one in start["signals_missing"] if one["signal"] == "pools"]
    check(missing and "--broker none" in missing[0], f"{start}")
    check(end["pools"] is None and end["pools_reason"] == missing[0] and not lines, f"{end}")
    check(end["verdict"] == "inconclusive", f"{end}")
