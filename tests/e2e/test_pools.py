# SPDX-License-Identifier: BSD-2-Clause
"""The signal `pools`: what the time of a session's threads went to, against what the threads themselves measured."""
import os
import time

import pytest

from harness import check, check_figure, rule, rules

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
        check(told > 0.5 * line["wall_ns"] and others < 0.05 * line["wall_ns"], f"{name}: {line}")
        # What the thread measures has its own wait for a CPU in it.
        check_figure(told - 20e6 <= own * 1.05 and own <= (told + line["queue_ns"]) * 1.05 + 20e6,
                     f"{name}: {told / 1e6} ms told, {own / 1e6} ms measured: {line}", t.load)
    check(pools["w-open"]["open_ns"] >= 0.99 * pools["w-open"]["wall_ns"], f"{pools['w-open']}")
    flies = pools["mayfly"]
    check(flies["born"] >= 15 and flies["ended"] >= 15 and flies["threads"] >= flies["born"], f"{flies}")
    check(end["verdict"] == "complete" and end["ledger"]["pools"]["lost"] == {}, f"{end}")
