# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/conditions/stuck*
"""A rule with stuck_threads_pct: threads that worked and now stand in one wait begin a session, which says where; threads
that have no work do not."""
import pytest

from harness import check, rule, rules

pytestmark = pytest.mark.parallel(2)
PROCESSES = 6
CALM_S = 12
# Two looks of the recorder that find them, at most 5 s apart, and a look just before the stall.
LATE_S = 15


def shops(t, *words, percent=40):
    """An agent with such a rule; so many shops in the cgroup that it watches."""
    group = t.cgroup()
    agent = t.agent(rules(rule("shop", cgroup=group.path, when=[{"stuck_threads_pct": percent}])))
    for _ in range(PROCESSES):
        t.spawn("basket_lock", *words, cgroup=group)
    line = agent.wait("watch.start", cgroup=group.path)
    check(line["stuck"]["by"] == "looks" and line["resources"] == [] and line["follow"] == "none", line)
    return agent, group


def test_stuck_on_a_lock(t):
    """Each shop waits for the lock of its own baskets: one wait by its stack. Pressure would not see it."""
    agent, group = shops(t, 60, 5, CALM_S, 0)
    agent.never("session.start", seconds=CALM_S - 2)
    start = agent.wait("session.start", seconds=2 + LATE_S, cgroup=group.path)
    said = start["reason"]["stuck"]
    check(said["threads"] >= 5 and said["of_threads"] <= 2 * PROCESSES and said["wait"] == "lock", said)
    check(3000 <= said["measured_ms"] <= LATE_S * 1000 and said["share_pct"] >= 40, said)
    check(start["onset_ms"] == min(said["measured_ms"], start["pre_ms"]), start)
    check("offcpu" in start["signals"], start)
    end = agent.wait("session.end", session=start["session"], seconds=15)
    check(f"{group.path} has {said['threads']} of its {said['of_threads']} threads in one wait (lock) for " in end["headline"],
          end["headline"])
    check(" s for locks, " in end["headline"] and " of it in handle_request" in end["headline"], end["headline"])
    stacks = [s for s in agent.stacks(start["session"], "offcpu") if "count" in s and s.get("wait") == "lock"]
    check({"onset", "during"} <= {s["phase"] for s in stacks}, {s["phase"] for s in stacks})
    # One session of one stall.
    agent.never("session.start", seconds=7, since=agent.events.index(end))
    check(not agent.find("pressure") and not agent.find("trigger.held"), "pressure, or held")


def test_working_is_not_stuck(t):
    """Threads that work a little, sleep and wait for work are not stuck, also where all do the same."""
    agent, _ = shops(t, 60, 5, percent=10)
    group = t.cgroup("b")
    t.spawn("crowd", 60, "threads", 50, cgroup=group)
    agent.never("session.start", seconds=16)
    looks = agent.call("status")["looks"]
    check(looks["passes"] >= 3 and looks["threads"] >= PROCESSES - 2, looks)
