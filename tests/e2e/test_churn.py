# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/unwind/unwind_ranges.h bpf/unwind/unwind_cache.h bpf/mappings/map_changes.h
# tests: consumer/process/mappings_reread*
"""Exec, dlopen, dlclose, exit and pids used again, all the time and under sampling: no frame may be of a file that the
process did not have mapped at that tick."""
import os
import time

import pytest

import call_paths
from harness import ROOT, Skip, check, check_figure, command, rule, rules
from machine import Load
from programs import need, start
from turnover import Judge

SOURCES = ROOT / "tests" / "workloads" / "unwind"
LETTERS = "abcd"
HZ = 997
SESSION_MS = 4000
SECONDS = 300 if os.environ.get("TROCAR_LONG") == "1" else 8


def build(t):
    """Programs a and c lie at fixed addresses, b and d where the kernel puts them; returns the files' names."""
    need("gcc", "objdump", "readelf")
    names = ["turnover"]
    command("gcc", "-O2", "-D_GNU_SOURCE", "-o", t.folder / "turnover", SOURCES / "turnover.c", seconds=60)
    for number, letter in enumerate(LETTERS, 1):
        sizes = ["-O2", "-D_GNU_SOURCE", f"-DLETTER={letter}", f"-DPAD={7 * number}", f"-DROOM={48 * number}"]
        place = ["-no-pie", "-fno-pie"] if number % 2 else ["-pie", "-fPIE"]
        command("gcc", *sizes, "-shared", "-fPIC", "-o", t.folder / f"lib_{letter}.so",
                SOURCES / "turnover_library.c", seconds=60)
        command("gcc", *sizes, *place, "-o", t.folder / f"program_{letter}",
                SOURCES / "turnover_program.c", seconds=60)
        names += [f"lib_{letter}.so", f"program_{letter}"]
    return names


def judge_session(agent, judge, session):
    lines = agent.stacks(session)
    first = [s for s in lines if s["signal"] == "oncpu" and s["phase"] == "during" and s.get("part", 1) == 1]
    for stack, line in zip(call_paths.stacks_of(lines), first):
        judge.add(stack, line)


def turn_over(t, **environment):
    """Samples the workload for SECONDS; every frame of every stack must be in a file that this process had mapped at
    this tick, and behind a call of the frame before it."""
    judge = Judge(t.folder, build(t))
    group = t.cgroup()
    agent = t.agent(rules(rule("turnover", cgroup=group.path, cooldown_ms=0, pre_ms=0)), load=["--hz", HZ])
    start(t, group, t.folder / "turnover", SECONDS + 10, t.folder, env={**os.environ, **environment})
    agent.wait("watch.start", cgroup=group.path)
    ends, load = time.monotonic() + SECONDS, Load()
    lost = 0
    while time.monotonic() < ends:
        session = agent.call("session.start", {"cgroup": group.path, "during_ms": SESSION_MS})["session"]
        end = agent.wait("session.end", seconds=60, session=session)
        lost += sum(end["ledger"]["oncpu"]["lost"].values())
        judge_session(agent, judge, session)
    unwind = agent.call("status")["unwind"]
    print(f"# {SECONDS} s: {judge.report()}; {lost} lost; {unwind['tables_published']} tables", flush=True)
    for wrong in judge.wrong:
        print(f"#   {wrong}", flush=True)
    check(len(judge.processes) > 3 * len({p for p, _ in judge.processes}), "too few pids were used again")
    check_figure(judge.samples > 20 * SECONDS, f"{judge.samples} samples", load)
    check(judge.torn * 10000 <= judge.samples + 10000, f"{judge.torn} samples of nobody known")
    check(judge.wrong_samples == 0, f"{judge.wrong_samples} of {judge.samples} samples have a wrong frame")


@pytest.mark.timeout(SECONDS + 240)
def test_no_frame_is_wrong(t):
    """Programs at the same addresses, libraries each at a place of its own."""
    turn_over(t, TURNOVER_APART="1")


@pytest.mark.timeout(SECONDS + 240)
def test_at_the_same_place(t):
    """Libraries, too, one after the other at the same addresses."""
    turn_over(t)


def take_turns(t, mode, *flags):
    """Two libraries take turns in one place. The caller of each says which one it was: no stack may have the names of
    the other one, and each is met in whole stacks."""
    need("gcc")
    for letter in "ab":
        command("gcc", "-O2", f"-DLETTER={letter}", "-shared", "-fPIC", *flags, "-o", t.folder / f"turn_{letter}.so",
                SOURCES / "in_turn_library.c", seconds=60)
    command("gcc", "-O2", "-D_GNU_SOURCE", "-o", t.folder / "in_turn", SOURCES / "in_turn.c", seconds=60)
    group = t.cgroup()
    agent = t.agent(rules(rule("turns", cgroup=group.path, cooldown_ms=0, pre_ms=0)), load=["--hz", HZ])
    start(t, group, t.folder / "in_turn", mode, t.folder / "turn_a.so", t.folder / "turn_b.so")
    agent.wait("process.unwind")
    whole, load = {"a": 0, "b": 0}, Load()
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": SESSION_MS})["session"]
    agent.wait("session.end", seconds=60, session=session)
    for stack in agent.stacks(session):
        names = [frame["fn"] or "" for frame in stack["frames"] if frame["kind"] != "kernel"]
        callers = {letter for letter in "ab" if f"run_{letter}" in names}
        called = {letter for letter in "ab" if any(name in (f"{letter}_work", f"{letter}_middle") for name in names)}
        check(not callers or called <= callers, f"{stack['quality']}: {names}")
        if stack["quality"] == "complete" and called:
            check(called == callers, f"complete: {names}")
            whole[called.pop()] += stack["count"]
    print(f"# {mode} {' '.join(flags)}: {whole}", flush=True)
    check_figure(min(whole.values()) > 20, f"whole stacks: {whole}", load)


def test_text_over_text(t):
    """The text of a library is mapped over that of another, whose first page stays."""
    take_turns(t, "text")


def test_without_build_id(t):
    """A library without build-id is closed, and another one is opened in its place."""
    take_turns(t, "library", "-Wl,--build-id=none")


def test_programs_in_turn(t):
    """Programs at the same addresses that execute each other, more than there are CPUs: no off-CPU sample has the comm
    or exe of one and a function of the other."""
    need("gcc")
    for letter in "ab":
        command("gcc", "-O2", "-no-pie", "-fno-pie", f"-DLETTER={letter}", "-o", t.folder / f"turn_{letter}",
                SOURCES / "exec_in_turn.c", seconds=60)
    group = t.cgroup()
    agent = t.agent(rules(rule("turns", cgroup=group.path, cooldown_ms=0, pre_ms=0)))
    for _ in range(2 * os.cpu_count()):
        start(t, group, t.folder / "turn_a", t.folder / "turn_b", t.folder / "turn_a")
    agent.wait("watch.start", cgroup=group.path)
    load = Load()
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 2 * SESSION_MS,
                                           "signals": ["oncpu", "offcpu"]})["session"]
    agent.wait("session.end", seconds=60, session=session)
    seen, wrong = 0, []
    for stack in agent.stacks(session, None):
        works = {frame["fn"] for frame in stack["frames"] if frame["fn"] in ("a_work", "b_work")}
        names = {stack["comm"], os.path.basename(stack["exe"] or stack["comm"])}
        seen += stack["count"] * bool(works)
        if works and {f"turn_{work[0]}" for work in works} != names:
            wrong.append((stack["signal"], stack["quality"], stack["count"], names, works))
    print(f"# {seen} samples in functions of the programs", flush=True)
    check(not wrong, f"{wrong}")
    check_figure(seen > 50, f"{seen} samples", load)
