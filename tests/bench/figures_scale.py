# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the agent among thousands: the longest turn of its main loop, the slowest answer, memory and CPU time.
tests/scale judges the same scenarios; no peer has an agent's loop to compare with."""
import sys
import time

from table import Row
from world import ROOT, World, harness

sys.path.append(str(ROOT / "tests" / "scale"))
import scale as scenario  # noqa: E402


def rows(what, watcher):
    """The figures of one scenario that has ended."""
    f = watcher.end().figures
    yield Row(f"longest turn of the main loop, {what}, ms", str(f["turn_ms"]), f"<= {scenario.TURN_MS}", "-", None,
              f["turn_ms"] <= scenario.TURN_MS)
    yield Row("answers of status, median and worst, ms", f"{f['median_ms']:.1f}, {f['worst_ms']:.1f}",
              f"<= {scenario.ANSWER_MS}", "-", None, f["worst_ms"] <= scenario.ANSWER_MS)
    yield Row("resident, MiB", f"{f['mib']:.1f}", "-", "-")
    yield Row("CPU s", f"{f['cpu_s']:.2f} in {f['seconds']:.1f} s", "-", "-")


def agent_for(w):
    return w.agent(harness.rules(harness.rule("api", comm=w.comm)), start=False,
                   arguments=["--lines-per-minute", 1 << 20])


def start_among(short):
    """The start among processes that match"""
    count = 2000 if short else 10000
    with World("start") as w:
        scenario.crowd(w, "processes", count, 60, cgroup=w.cgroup("home"), name=w.comm)
        agent = agent_for(w)
        took_s = scenario.started(agent)
        watcher = scenario.Watcher(agent, "start")
        harness.until(lambda: scenario.matched(agent) == count + 1, 30, "not all are told of")
        yield Row(f"first answer of a start among {count} processes that match, s", f"{took_s:.2f}",
                  f"<= {scenario.READY_S}", "-", None, took_s <= scenario.READY_S)
        yield from rows("of that start", watcher)


def births(short):
    """Matched births beside sleeping threads"""
    threads, seconds = (4000, 2) if short else (14000, 20)
    with World("births") as w:
        scenario.crowd(w, "threads", threads, 60)
        agent = agent_for(w)
        agent.start()
        watcher = scenario.Watcher(agent, "births")
        scenario.births(w, 1000 * seconds, 1000, w.cgroup("home"))
        time.sleep(0.2)
        yield from rows(f"1,000 matched births a second beside {threads} threads", watcher)


def recorder_row(agent, threads, seconds):
    """What the recorder's own passes take once all is known: the first of them also reads mappings."""
    time.sleep(10)
    before = agent.call("status")["looks"]
    time.sleep(seconds)
    after = agent.call("status")["looks"]
    passes = after["passes"] - before["passes"]
    share = (after["cpu_ms"] - before["cpu_ms"]) / seconds / 10
    return Row(f"recorder's looks at {threads} threads that wait, % of a CPU (passes in {seconds} s, KiB kept)",
               f"{share:.3f} ({passes}, {after['bytes'] >> 10})", f"<= {after['budget_pct']}", "-")


def looks(short):
    """Looks at threads that wait"""
    for threads in (100, 1000) if short else (100, 1000, 10000):
        with World("looks") as w:
            home = w.cgroup("home")
            scenario.crowd(w, "threads", threads, 60, cgroup=home, name=w.comm)
            agent = agent_for(w)
            agent.start()
            agent.wait("watch.start", cgroup=home.path)
            yield recorder_row(agent, threads, 20 if short else 60)
            for kind in ("first session", "later session"):
                session = agent.call("session.start", {"cgroup": home.path, "during_ms": 4000})["session"]
                end = agent.wait("session.end", seconds=60, session=session)
                said = end["looks"]
                yield Row(f"CPU of looks at {threads} threads, {kind}, ms of 4,000 (passes, longest gap ms, "
                          "resident MiB)", f"{said['cpu_ms']:.1f} ({said['passes']}, {said['longest_gap_ms']}, "
                          f"{scenario.rss_kib(agent.pid) / 1024:.1f})", "1 % of a CPU", "-")


def accounts(short):
    """Readings of time accounts at a session's begin and end, in slices over turns of the main loop"""
    for threads in (2000,) if short else (14000, 28000):
        for where in ("of the session", "beside the session"):
            with World("accounts") as w:
                home = w.cgroup("home")
                scenario.crowd(w, "threads", threads, 120, cgroup=home if where == "of the session" else None)
                w.spawn("burn_cpu", 100, name=w.comm, cgroup=home)
                agent = w.agent(harness.rules(harness.rule("api", comm=w.comm, signals=["oncpu", "pools"])), start=False,
                                load=["--threads", 65536])
                agent.start()
                agent.wait("watch.start", seconds=30, cgroup=home.path)
                session = agent.call("session.start", {"rule": "api", "during_ms": 1000})["session"]
                end = agent.wait("session.end", seconds=60, session=session)
                status = agent.call("status")
                turn_ms = status.get("longest_turn_own_ms", status["longest_turn_ms"])
                read_ms, known = end["pools"]["read_us"] / 1000, end["pools"]["threads"]
                yield Row(f"reading of accounts, {threads} threads {where}, ms (accounts; longest turn on a CPU, ms)",
                          f"{read_ms:.1f} ({known}; {turn_ms})", f"<= {scenario.TURN_MS}", "-", None,
                          turn_ms <= scenario.TURN_MS)
