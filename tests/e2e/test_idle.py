# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/io/schedule* consumer/sampling/sampler* bpf/cpu/sampler.bpf.c
"""With the broker: what runs and what is held while nothing is watched, while something is, and after."""
import os
import pathlib
import time

import pytest

from harness import bpf_objects, check, rule, rules, until

ON_DEMAND = ("sampler", "count_switches", "account_switch", "lock_waking", "block_getrq", "block_issue",
             "block_complete", "block_merge", "block_backmerge", "block_frontmerge", "socket_state",
             "reclaim_begin", "reclaim_end",
             "reclaim_limit_begin", "reclaim_limit_end", "compaction_begin", "compaction_end", "dirty_pause",
             "dirty_switch")


def runs(pid):
    """How often each thread was put on a CPU: one that was not has made no system call either."""
    return {stat.parent.name: int(stat.read_text().split()[2])
            for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")}


def reads(pid):
    """How many read(2) and the like the process has made."""
    lines = pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("syscr:"))


def events_held(pid):
    """The perf events that the process holds."""
    count = 0
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += "perf_event" in os.readlink(fd)
        except FileNotFoundError:
            continue
    return count


def links_to(agent):
    """Links by which anybody runs one of that load's programs on demand."""
    ours = {p["id"] for p in bpf_objects("prog", "-f") if p.get("name") in ON_DEMAND and
            any(path.startswith(str(agent.bpf)) for path in p.get("pinned", []))}
    check(len(ours) == len(ON_DEMAND), f"programs on demand: {ours}")
    return [link for link in bpf_objects("link") if link.get("prog_id") in ours]


@pytest.mark.parallel(4)  # whatever others do is nothing to it
def test_nothing_watched(t):
    """Rules, and nobody who matches: no thread of the consumer runs, no event, no link."""
    agent = t.agent(rules(rule("api", comm=t.comm)), broker=True)
    stranger = t.spawn("burn_cpu", 15, cgroup=t.cgroup())
    time.sleep(1.5)
    before, held = runs(agent.pid), events_held(agent.pid)
    check(before and not held and not links_to(agent), f"held while idle: {held} events")
    time.sleep(5)
    after = runs(agent.pid)
    check(after == before, f"threads ran while nothing was watched: {before} {after}")
    check(stranger.poll() is None, "the load ended early")


def test_armed_while_watched(t):
    """The first watch opens two events per CPU, one for each rate; they are closed some seconds after the last one."""
    agent = t.agent(rules(rule("api", comm=t.comm)), broker=True)
    groups = [t.cgroup(name) for name in ("a", "b")]
    processes = [t.spawn("burn_cpu", 30, name=t.comm, cgroup=group) for group in groups]
    for group in groups:
        agent.wait("watch.start", cgroup=group.path)
    both = 2 * os.cpu_count()
    until(lambda: events_held(agent.pid) == both, 10,
          lambda: f"{events_held(agent.pid)} events for {os.cpu_count()} CPUs")
    t.end(processes[0])
    agent.wait("watch.stop", cgroup=groups[0].path)
    check(events_held(agent.pid) == both, "the events went with the first of two watches")
    t.end(processes[1])
    agent.wait("watch.stop", cgroup=groups[1].path)
    until(lambda: not events_held(agent.pid), 15, lambda: f"{events_held(agent.pid)} events are left")
    check(not links_to(agent), "a link is left")


@pytest.mark.parallel(6)
def test_quiet_wakes_nobody(t):
    """A rule with quiet_pct costs no wake-up and no reading more than one without, watching the same cgroup."""
    agents = [t.agent(rules(rule("api", comm=t.comm, when=when)), broker=True)
              for when in ([], [{"quiet_pct": 10}])]
    group = t.cgroup()
    t.spawn("basket_lock", 60, 20, name=t.comm, cgroup=group)
    for agent in agents:
        agent.wait("watch.start", cgroup=group.path)
    time.sleep(8)
    before = [(runs(agent.pid), reads(agent.pid)) for agent in agents]
    time.sleep(30)
    cost = []
    for agent, (ran, read) in zip(agents, before):
        now = runs(agent.pid)
        cost.append((sum(now.values()) - sum(ran.values()), reads(agent.pid) - read))
    # Six drains of each; whether a reading begins or ends just outside of the time is chance.
    check(cost[1][0] <= cost[0][0] * 1.4 + 10, f"(runs of threads, reads) without and with it: {cost}")
    check(cost[1][1] <= cost[0][1] * 1.4 + 10, f"(runs of threads, reads) without and with it: {cost}")
    print(cost)
