# SPDX-License-Identifier: BSD-2-Clause
# tests: ctl/render/html_histograms* ctl/events/parts* consumer/evidence/time/*histogram* consumer/signals/*histogram*
"""Histograms of sessions and hosts add up: docs/examples/merge-histograms.jq makes of the lines of some what one line of
all of them would be."""
import json
import pathlib
import random

import pytest

from harness import check, command, rule, rules
from test_block import Loop, only

pytestmark = pytest.mark.shares_kernel_side

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "docs/examples/merge-histograms.jq"
BUCKETS = 44
BOUNDS = [(1024 << i // 2) // 2 * (3 if i % 2 else 2) for i in range(BUCKETS - 1)]


def histogram(times):
    """What a line says of these times, by the words of docs/events.md."""
    counts = {}
    for ns in times:
        bound = next((one for one in BOUNDS if ns <= one), None)
        counts[bound] = counts.get(bound, 0) + 1
    buckets = sorted(([le, n] for le, n in counts.items()), key=lambda one: one[0] or float("inf"))

    def percentile(pct):
        below = 0
        for le, n in buckets:
            below += n
            if below * 100 >= len(times) * pct:
                return le
        return 0
    return {"buckets": buckets, "count": len(times), "sum": sum(times), **{f"p{p}": percentile(p) for p in (50, 90, 99)}}


def line(times, key, host="a", session="0" * 16, rule_name="api"):
    return {"v": 1, "type": "histogram", "host": host, "boot_id": "b", "session": session, "rule": rule_name,
            "signal": "block", "key": key, "unit": "ns", **histogram(times)}


def merge(t, lines):
    file = t.folder / "lines"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return [json.loads(row) for row in command("jq", "-nc", "-f", PROGRAM, file).stdout.splitlines()]


def without(merged, *keys):
    return {key: value for key, value in merged.items() if key not in keys}


@pytest.mark.parallel(4)
@pytest.mark.core
def test_merging_loses_nothing(t):
    """However some times are spread over sessions and hosts, the lines add up to the histogram of all of them."""
    choose = random.Random(15)
    for _ in range(12):
        key = {"of": "disk", "device": "vda", "op": "write", "part": "queue"}
        spread = choose.choice([3, 12, 24])
        times = [int(2 ** choose.uniform(0, 10 + spread)) for _ in range(choose.choice([1, 2, 99, 1000]))]
        parts = [[] for _ in range(choose.randint(1, 5))]
        for ns in times:
            choose.choice(parts).append(ns)
        lines = [line(part, key, host=f"host{i % 2}", session=f"{i:016x}") for i, part in enumerate(parts)]
        merged = merge(t, lines + lines[:1] + [{"type": "stack"}])
        check(len(merged) == 1, f"{merged}")
        check(without(merged[0], "hosts", "sessions") ==
              {"rule": "api", "signal": "block", "key": key, "unit": "ns", **histogram(times)}, f"{merged} {times}")
        check((merged[0]["hosts"], merged[0]["sessions"]) == (min(2, len(parts)), len(parts)), f"{merged}")
        true = sorted(times)[(len(times) * 90 + 99) // 100 - 1]
        told = merged[0]["p90"]
        check(told is None or true <= told <= max(1.5 * true, 1024), f"{told} for {true}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_keys_are_kept_apart(t):
    """Rules, disks and locks of different names are not added up; processes of one program and one lock are."""
    lock = {"of": "lock", "kind": "futex", "module": "/usr/bin/api", "symbol": "store"}
    merged = merge(t, [
        line([5000] * 3, {**lock, "pid": 7, "start_ns": 1, "address": "0x1000"}),
        line([9000] * 2, {**lock, "pid": 8, "start_ns": 2, "address": "0x2000"}, session="1" * 16),
        line([9000], {**lock, "pid": 8, "start_ns": 2, "address": "0x3000", "symbol": "log"}),
        line([9000], {**lock, "pid": 8, "start_ns": 2, "address": "0x2000"}, rule_name="other")])
    check(sorted((one["rule"], one["key"]["symbol"], one["count"], one["sessions"]) for one in merged) ==
          [("api", "log", 1, 1), ("api", "store", 5, 2), ("other", "store", 1, 1)], f"{merged}")


@pytest.mark.parallel(4)
def test_sessions_add_up(t):
    """Two short sessions of a cgroup, within a long one of the cgroup around it, have what the long one has."""
    signals = ["oncpu", "pools", "syscall", "block"]
    agent = t.agent(rules(rule("long", cgroup=f"/{t.name}-a", signals=signals),
                          rule("short", cgroup=f"/{t.name}-a/in", signals=signals)))
    outer, group = t.cgroup("a"), t.cgroup("a/in")
    t.run("sleep", "60", cgroup=outer)
    t.run("sleep", "60", cgroup=group)
    for one in (outer, group):
        agent.wait("watch.start", cgroup=one.path)
    disk = Loop(t)
    long = agent.call("session.start", {"rule": "long", "during_ms": 9000})["session"]
    agent.wait("session.start", session=long)
    shorts = []
    for times in (60, 90):
        shorts.append(agent.call("session.start", {"rule": "short", "during_ms": 2500})["session"])
        agent.wait("session.start", session=shorts[-1])
        disk.write(t, group, times, 16).wait()
        agent.wait("session.end", session=shorts[-1], seconds=15)
    agent.wait("session.end", session=long, seconds=25)
    key = {"of": "disk", "device": disk.name, "op": "write", "part": "service"}
    whole = only([one for one in agent.find("histogram", session=long) if one["key"] == key], signal="block")
    merged = merge(t, [one for one in agent.find("histogram") if one["session"] in shorts])
    both = [one for one in merged if one["key"] == key and one["rule"] == "short"]
    told = only(agent.find("disk", session=long), device=disk.name, op="write")
    lost = agent.wait("session.end", session=long)["ledger"]["block"]["lost"]
    # Some kernels do not tell the end of a request that meets process 1 (docs/decisions/0042). It is said.
    check(whole["count"] + told["open"] + sum(lost.values()) == 150, f"{told} {lost} {whole}")
    check(len(both) == 1 and both[0]["sessions"] == 2, f"{both}")
    for part in ("buckets", "count", "sum", "p50", "p90", "p99"):
        check(both[0][part] == whole[part], f"{part}: {both[0]} {whole}")
