# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/mappings/vma_tree.h bpf/discovery/iter.bpf.c bpf/mappings/memory_thread.h
# tests: consumer/process/process_mappings*
# tests: consumer/process/mappings_queue* consumer/discovery/process_scan*
"""Kernels before 6.7 find the mappings of a process by a walk over all tasks: `load --walk-tasks` makes this one do so.
All tests of this folder play that way with TROCAR_LOAD=--walk-tasks."""
import pytest

from harness import check, rule, rules, until

WALKED = ["--walk-tasks"]
CROWD = 400
# A walk asks for all who wait when it begins, and the scan that finds a crowd goes on meanwhile.
WALKS_MAX = 20


def crowd(t, count, group):
    process = t.spawn("crowd", 60, "processes", count, name=t.comm, cgroup=group)
    check(process.stdout.readline() == "there\n", "no crowd")
    return process


def queue(agent):
    return agent.call("status")["mappings_queue"]


def all_told(agent, t, count):
    until(lambda: len(agent.find("process.match")) == count, 30,
          lambda: f"{len(agent.find('process.match'))} of {count} told of")
    exe = str(t.binary("crowd", t.comm))
    strange = [m for m in agent.find("process.match") if m["exe"] != exe]
    check(not strange, f"{len(strange)} without their program: {strange[:2]}")


def test_one_walk_for_all(t):
    """A crowd that matches at the start costs some walks, and not one for each process; each is told of with its
    program."""
    crowd(t, CROWD, t.cgroup())
    agent = t.agent(rules(rule("api", comm=t.comm)), load=WALKED, arguments=["--lines-per-minute", 1 << 20])
    all_told(agent, t, CROWD + 1)
    said = queue(agent)
    print(f"# {CROWD + 1} processes: {said}", flush=True)
    check(said["waiting"] == 0 and said["failed"] == 0, f"{said}")
    check(0 < said["walks"] <= WALKS_MAX, f"{said['walks']} walks for {CROWD + 1} processes")


def test_more_than_the_map_holds(t):
    """Whom a walk has no room for is in the next one: nobody is lost."""
    count = 1500
    crowd(t, count, t.cgroup())
    # The rule comes when all are known to match at once: they wait together.
    agent = t.agent(rules(), load=WALKED, arguments=["--lines-per-minute", 1 << 20])
    agent.write_rules(rules(rule("api", comm=t.comm)))
    all_told(agent, t, count + 1)
    said = queue(agent)
    print(f"# {count + 1} processes: {said}", flush=True)
    check(said["failed"] == 0 and said["walks"] <= 3 * WALKS_MAX, f"{said}")


def test_starts_meanwhile(t):
    """Forks while a crowd is read are told of, with their program, as soon as they are."""
    crowd(t, CROWD, t.cgroup())
    agent = t.agent(rules(rule("api", comm=t.comm), rule("late", comm="burn_cpu")), load=WALKED,
                    arguments=["--lines-per-minute", 1 << 20])
    late = [t.spawn("burn_cpu", 8) for _ in range(5)]
    for process in late:
        match = agent.wait("process.match", rule="late", pid=process.pid)
        check(match["exe"] and match["exe"].endswith("burn_cpu"), f"{match}")
    until(lambda: len(agent.find("process.match", rule="api")) == CROWD + 1, 30, "not all told of")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_frames(t):
    """What a process does has names, also after it has run another program."""
    group = t.cgroup()
    agent = t.agent(rules(rule("api", comm=t.comm)), load=WALKED)
    t.spawn("burn_cpu", 8, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 1000})["session"]
    agent.wait("session.end", seconds=30, session=session)
    names = {f["fn"] for s in agent.stacks(session) for f in s["frames"]}
    check("spin_on_checkout_total" in names, f"{names}")
