# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/rules/shares* consumer/rules/budget*
"""One user makes more cgroups than there are slots; a service of root's is watched and captured all the same."""
import os
import time

import pytest

from harness import Cgroup, check, check_figure, rule, rules, until

USER = 61235
SLOTS = 4


def delegated(t, count):
    """A tree that is the user's, as a user manager has one, with `count` cgroups of processes that match."""
    top = t.cgroup("home")
    os.chown(top.folder, USER, USER)
    for i in range(count):
        child = Cgroup(f"{top.name}/job{i}")
        t.cgroups.append(child)
        os.chown(child.folder, USER, USER)
        t.spawn("burn_cpu", 60, 1, 60, name=t.comm, cgroup=child, uid=USER)
    return top


@pytest.mark.parallel(4)
@pytest.mark.core
def test_slots(t):
    """The user loses a place to a newcomer who has none; what he has left stays his."""
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)), load=["--watches", SLOTS])
    home = delegated(t, SLOTS + 3)
    until(lambda: len(agent.call("watches")) == SLOTS, 8, "the slots are not full")
    agent.wait("error", code="watches_full")
    owner = next(o for o in agent.call("status")["owners"] if o["owner"] == f"uid {USER}")
    check(owner["watches"] == SLOTS and owner["at_share"] == ["watches"], f"{owner}")
    check(f"{SLOTS}!" in agent.trocar("status", "--all").stdout, "no ! in the status")
    service = t.cgroup("service")
    t.spawn("burn_cpu", 60, name=t.comm, cgroup=service)
    agent.wait("watch.start", cgroup=service.path, seconds=4)
    stop = agent.find("watch.stop")
    check([s["reason"] for s in stop] == ["displaced"] and stop[0]["cgroup"].startswith(home.path), f"{stop}")
    session = agent.call("session.start", {"cgroup": service.path, "during_ms": 1500})["session"]
    end = agent.wait("session.end", session=session)
    check_figure(end["ledger"]["oncpu"]["emitted"] > 5, f"{end}", t.load)
    # The scans that follow try the user's other cgroups again: nobody is driven out for them.
    mark = len(agent.events)
    t.spawn("burn_cpu", 30, 1, 30, name=t.comm, cgroup=t.cgroups[1], uid=USER)
    time.sleep(2)
    check(not agent.find("watch.stop", since=mark) and not agent.find("watch.start", since=mark), "a place changed hands")


@pytest.mark.parallel(4)
def test_never_a_session(t):
    """A watch in a session keeps its place, whoever comes."""
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)), load=["--watches", 2])
    delegated(t, 2)
    until(lambda: len(agent.call("watches")) == 2, 8, "the slots are not full")
    for watch in agent.call("watches"):
        agent.call("session.start", {"cgroup": watch["cgroup"], "during_ms": 3000})
    service = t.cgroup("service")
    t.spawn("burn_cpu", 60, name=t.comm, cgroup=service)
    agent.never("watch.start", 1.5, cgroup=service.path)
    check(not agent.find("watch.stop"), "a watch in a session was displaced")
    for _ in range(2):
        agent.wait("session.end", seconds=8)
    # What is tried again takes it: the next start.
    t.spawn("burn_cpu", 30, name=t.comm, cgroup=service)
    agent.wait("watch.start", cgroup=service.path, seconds=8)
