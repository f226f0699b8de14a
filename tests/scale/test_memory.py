# SPDX-License-Identifier: BSD-2-Clause
"""What the agent holds in memory while nothing happens."""
import time

import pytest

from harness import check, rule, rules, until
from programs import start
from scale import LONG, crowd, matched, rss_kib

IDLE_KIB = 8192
SESSION_KIB, SESSIONS = 640, 5  # what sessions that are all alike may take after the second of them
AFTERMATH_S = 60  # a scan so long after the last watch gives memory back


def three_rules(t):
    return rules(rule("api", comm=t.comm, cooldown_ms=0),
                 *(rule(f"r{i}", comm=f"{t.comm[:12]}-{i}") for i in range(2)))


def test_idle(t):
    """Three rules, nobody who matches: at most 8 MiB are resident."""
    agent = t.agent(three_rules(t))
    time.sleep(1)
    resident = rss_kib(agent.pid)
    print(f"# idle: {resident} KiB", flush=True)
    check(resident <= IDLE_KIB, f"{resident} KiB are resident")


@pytest.mark.skipif(not LONG, reason="waits for a minute; with --long")
def test_idle_again(t):
    """10,000 processes have come and gone: a minute later it is as small as that again."""
    agent = t.agent(three_rules(t), arguments=["--lines-per-minute", 1 << 20])
    processes = crowd(t, "processes", 10000, 60, cgroup=t.cgroup(), name=t.comm)
    until(lambda: matched(agent) == 10001, 30, lambda: f"{matched(agent)} of 10001 told of")
    t.end(processes)
    until(lambda: agent.call("status")["watches"] == 0, 40, "a watch is left")
    busy = rss_kib(agent.pid)
    until(lambda: rss_kib(agent.pid) <= IDLE_KIB, AFTERMATH_S + 10,
          lambda: f"{rss_kib(agent.pid)} KiB are resident, {busy} before")
    print(f"# {busy} KiB after 10,000 processes, {rss_kib(agent.pid)} KiB a minute later", flush=True)


def test_sessions(t):
    """Five sessions of stacks of which nearly each is another one: what the first one took serves the others too. The
    lines that are kept have a bound of their own, which these sessions would fill."""
    home = t.cgroup("home")
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)), arguments=["--keep-kib", 0])
    for _ in range(2):
        t.spawn("paths", 60, name=t.comm, cgroup=home)
    # It is in the kernel: so the first session, and no later one, reads the kernel's symbols, which stay for a minute.
    start(t, home, "dd", "if=/dev/zero", "of=/dev/null", "bs=1M")
    agent.wait("watch.start", cgroup=home.path)
    sizes = []
    for _ in range(SESSIONS):
        session = agent.call("session.start", {"cgroup": home.path, "during_ms": 3000})["session"]
        agent.wait("session.end", seconds=30, session=session)
        time.sleep(0.3)  # the memory is given back after the line
        sizes.append(rss_kib(agent.pid))
    print(f"# resident after each session, KiB: {sizes}", flush=True)
    until(lambda: rss_kib(agent.pid) <= sizes[1] + SESSION_KIB, 5, lambda: f"{sizes}, {rss_kib(agent.pid)} KiB")
