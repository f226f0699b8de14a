# SPDX-License-Identifier: BSD-2-Clause
# tests: shared/files/cgroupfs* consumer/cgroup/* consumer/discovery/path_wait*
"""Cgroups that their owner closes: whoever has a delegated one may take away the right to read it. That blinds
the agent to nobody else, ends no watch, and is said."""
import json
import os
import subprocess
import time

import pytest

from harness import Skip, check, check_figure, rule, rules, until

OWNER = 1001  # neither root nor the consumer's user
pytestmark = [pytest.mark.parallel(4), pytest.mark.shares_kernel_side]


def close(path, mode):
    os.chown(path, OWNER, OWNER)
    os.chmod(path, mode)


def sleep_in(t, group):
    t.processes.append(subprocess.Popen(["sleep", "120"], stdin=subprocess.DEVNULL, preexec_fn=group.join))


def scan(agent, rule_set):
    """Every rule set that is pushed is followed by a scan."""
    agent.call("rules.set", {"text": json.dumps(rule_set)})


def starts(agent, group):
    return len(agent.find("watch.start", cgroup=group.path))


@pytest.mark.core
def test_closed_cgroups(t):
    """A scan finds every cgroup of a rule, wherever closed ones stand in the listing; these are said once."""
    rule_set = rules(rule("all", cgroup=f"/{t.name}-"))
    agent = t.agent(rule_set, start=False)
    groups = [t.cgroup(f"{'closed' if i % 4 == 3 else 'open'}-{i}") for i in range(16)]
    for group in groups:
        sleep_in(t, group)
        if "closed" in group.name:
            close(group.folder, 0o700)
    agent.start()
    until(lambda: all(starts(agent, g) for g in groups), 5,
          lambda: f"not watched: {[g.path for g in groups if not starts(agent, g)]}")
    line = agent.wait("error", code="cgroups_unreadable", error="EACCES")
    check(line["count"] >= 4 and "closed" in line["message"], f"{line}")
    status = agent.call("status")["cgroups"]
    check(status["unreadable"]["count"] >= 4 and status["unreadable"]["error"] == "EACCES" and
          not status["cut"] and status["error"] is None, f"{status}")
    check("cgroups cannot be read: error EACCES" in agent.trocar("status").stdout, "status does not say it")
    for _ in range(5):
        scan(agent, rule_set)
    time.sleep(1)
    check(len(agent.find("error", code="cgroups_unreadable")) == 1, "said more than once")
    check(all(starts(agent, g) == 1 for g in groups) and not agent.find("watch.stop"), "watches come and go")


def closed_while_watched(t, what, mode):
    rule_set = rules(rule("api", comm=t.comm), rule("all", cgroup=f"/{t.name}-cgroup"))
    agent = t.agent(rule_set)
    named, others = t.cgroup("named"), [t.cgroup(f"cgroup-{i}") for i in range(7)]
    process = t.spawn("burn_cpu", 60, name=t.comm, cgroup=named)
    for group in others:
        sleep_in(t, group)
    for group in (named, *others):
        agent.wait("watch.start", cgroup=group.path)
    for group in (named, others[3]):
        close(group.folder / what, mode)
    for _ in range(3):
        scan(agent, rule_set)
        time.sleep(0.5)
    check(not agent.find("watch.stop"), f"{agent.find('watch.stop')[:2]}")
    check(all(starts(agent, g) == 1 for g in (named, *others)), "watches come and go")
    session = agent.call("session.start", {"rule": "api", "during_ms": 500})["session"]
    end = agent.wait("session.end", session=session)
    check_figure(end["ledger"]["oncpu"]["emitted"] > 10, f"{end}", t.load)
    # The kernel says when they are empty, whoever may read them.
    t.end(process)
    agent.wait("watch.stop", cgroup=named.path)


@pytest.mark.core
def test_closed_directory(t):
    """chmod 0700 of a watched cgroup ends neither its watch nor another's."""
    closed_while_watched(t, ".", 0o700)


@pytest.mark.core
def test_closed_list(t):
    """chmod 0600 of cgroup.procs does not either, and no scan makes a watch again that another ended."""
    closed_while_watched(t, "cgroup.procs", 0o600)


@pytest.mark.core
def test_below_a_closed_one(t):
    """A matching process below a directory that nobody else may search is watched like any other."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    outer = t.cgroup("shut")
    inner = t.cgroup("shut/in")
    close(outer.folder, 0o700)
    process = t.spawn("burn_cpu", 60, name=t.comm, cgroup=inner)
    match = agent.wait("process.match", pid=process.pid)
    check(match.get("cgroup") == inner.path, f"{match}")
    agent.wait("watch.start", cgroup=inner.path)
    scan(agent, rules(rule("api", comm=t.comm, labels={"a": "b"})))
    time.sleep(1)
    check(not agent.find("watch.stop", cgroup=inner.path, reason="cgroup_removed"), "the watch was ended")


@pytest.mark.core
def test_threaded(t):
    """A process in a threaded cgroup, whose cgroup.procs cannot be read, stays watched."""
    rule_set = rules(rule("api", comm=t.comm))
    agent = t.agent(rule_set)
    group = t.cgroup("emulator")
    try:
        (group.folder / "cgroup.type").write_text("threaded")
    except OSError as error:
        raise Skip(f"no threaded cgroup can be made here: {error.strerror}") from None
    group.pids = lambda: [int(p) for p in (group.folder / "cgroup.threads").read_text().split()]
    process = t.spawn("burn_cpu", 60, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    for _ in range(3):
        scan(agent, rule_set)
        time.sleep(0.5)
    check(starts(agent, group) == 1 and not agent.find("watch.stop"), "the watch comes and goes")
    session = agent.call("session.start", {"rule": "api", "during_ms": 500})["session"]
    agent.wait("session.end", session=session)
    t.end(process)
    agent.wait("watch.stop", cgroup=group.path)
