# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/watch/watch_tree.h bpf/watch/watch_lookup.h consumer/watch/*
"""A watch takes the cgroups below its own, as the kernel counts pressure and CPU time: slices, pods, threaded
children."""
import json

import pytest

from harness import check, check_complete, check_figure, rule, rules, until
from test_sessions import check_account

pytestmark = pytest.mark.shares_kernel_side


def shares(agent, session, phase="during"):
    """The samples of a session by the cgroup below that they were in; None: in the session's own."""
    found = {}
    for stack in agent.stacks(session):
        if stack["phase"] == phase and "count" in stack:
            place = stack.get("in_cgroup")
            found[place] = found.get(place, 0) + stack["count"]
    return found


def check_expected(t, end):
    """As many ticks as the CPU time of the cgroup and all below calls for, and the verdict says so."""
    account = end["ledger"]["oncpu"]["during"]
    expected = end["ledger"]["oncpu"]["expected"]
    check(expected and expected > 0, f"nothing is expected: {end}")
    check_figure(0.75 < account["attempted"] / expected < 1.3,
                 f"{account['attempted']} attempted, {expected} expected", t.load)
    check_complete(end, t.load)


def session(agent, params, during_ms=1500):
    answer = agent.call("session.start", {**params, "during_ms": during_ms})
    return agent.wait("session.end", session=answer["session"])


@pytest.mark.parallel(2)
@pytest.mark.core
def test_request_takes_children(t):
    """A session on a parent without a process has the samples of its children, each with its cgroup."""
    agent = t.agent(rules(rule("none", comm=t.comm + "x")))
    parent, child = t.cgroup("p"), t.cgroup("p/c")
    grandchild = t.cgroup("p/c/g")
    process = t.spawn("burn_cpu", 20, name=t.comm, cgroup=grandchild)
    session(agent, {"cgroup": parent.path}, 300)  # the process gets its table in it
    end = session(agent, {"cgroup": parent.path})
    found = shares(agent, end["session"])
    check(set(found) == {grandchild.path}, f"{found}")
    for stack in agent.stacks(end["session"]):
        check(stack["cgroup"] == parent.path and stack["pid"] == process.pid and
              stack["in_cgroup_id"] == grandchild.id, f"{stack}")
    check_account(agent, end)
    check_expected(t, end)
    check(child.path not in found, f"{found}")


@pytest.mark.parallel(2)
def test_child_of_a_quiet_process(t):
    """The matched process sleeps, a child made after the watch has the CPU: the session says whose time it was."""
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)))
    parent = t.cgroup("p")
    t.spawn("burn_cpu", 20, 1, name=t.comm, cgroup=parent)
    agent.wait("watch.start", cgroup=parent.path)
    child = t.cgroup("p/hog")
    hog = t.spawn("burn_cpu", 20, 2, name="hog", cgroup=child)
    until(lambda: hog.poll() is None, 5, "the hog ended")
    end = session(agent, {"rule": "api"})
    found = shares(agent, end["session"])
    check(child.path in found, f"{found}")
    check_figure(None in found, f"{found}", t.load)
    check_account(agent, end)
    check_expected(t, end)


@pytest.mark.parallel(2)
@pytest.mark.core
def test_named_slice(t):
    """A rule by the whole path of a slice watches it, though all its processes are below: one child was there before,
    one is made after. Each child matches by the prefix and is watched too, and both watches get the samples."""
    agent = t.agent(rules(rule("slice", cgroup=f"/{t.name}-s", cooldown_ms=0)), start=False)
    parent, before = t.cgroup("s"), t.cgroup("s/before")
    t.spawn("burn_cpu", 20, name=t.comm, cgroup=before)
    agent.start()
    agent.wait("watch.start", cgroup=parent.path)
    agent.wait("watch.start", cgroup=before.path)
    after = t.cgroup("s/after")
    t.spawn("burn_cpu", 20, name=t.comm, cgroup=after)
    agent.wait("watch.start", cgroup=after.path)
    answer = agent.call("session.start", {"rule": "slice", "during_ms": 1500})
    check(len(answer["sessions"]) == 3, f"{answer}")
    ends = {e["cgroup"]: e for e in (agent.wait("session.end", session=s) for s in answer["sessions"])}
    whole = shares(agent, ends[parent.path]["session"])
    check(set(whole) == {before.path, after.path}, f"{whole}")
    for group in (before, after):
        own = shares(agent, ends[group.path]["session"])
        check(set(own) == {None}, f"{group.path}: {own}")
        # The sessions begin and end some ms apart.
        check_figure(abs(own[None] - whole[group.path]) <= 0.2 * own[None] + 10, f"{own} {whole}", t.load)
    for end in ends.values():
        check_account(agent, end)
        check_expected(t, end)


@pytest.mark.parallel(2)
def test_watch_within_a_watch(t):
    """A child watched by a rule of its own: both sessions have its samples; when its watch ends, the parent's goes
    on."""
    inner_comm = t.comm[:13] + "i"
    agent = t.agent(rules(rule("outer", comm=t.comm, cooldown_ms=0), rule("inner", comm=inner_comm, cooldown_ms=0)))
    parent, child = t.cgroup("p"), t.cgroup("p/c")
    t.spawn("burn_cpu", 30, 1, name=t.comm, cgroup=parent)
    t.spawn("burn_cpu", 30, 1, name=inner_comm, cgroup=child)
    t.spawn("burn_cpu", 30, 1, name="other", cgroup=child)
    agent.wait("watch.start", cgroup=parent.path)
    agent.wait("watch.start", cgroup=child.path)
    first = [agent.call("session.start", {"rule": r, "during_ms": 1500})["session"] for r in ("outer", "inner")]
    outer, own = (agent.wait("session.end", session=s) for s in first)
    check(child.path in shares(agent, outer["session"]), f"{shares(agent, outer['session'])}")
    check(set(shares(agent, own["session"])) == {None}, f"{shares(agent, own['session'])}")
    for end in (outer, own):
        check_account(agent, end)
        check_expected(t, end)
    agent.call("rules.set", {"text": json.dumps(rules(rule("outer", comm=t.comm, cooldown_ms=0)))})
    agent.wait("watch.stop", cgroup=child.path)
    end = session(agent, {"rule": "outer"})
    check(child.path in shares(agent, end["session"]), f"{shares(agent, end['session'])}")
    check_expected(t, end)
