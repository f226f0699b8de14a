# SPDX-License-Identifier: BSD-2-Clause
"""Storms of matched starts on a machine of many threads: whoever walks over all tasks meets these."""
import pytest

from harness import check, rule, rules
from scale import LONG, Watcher, births, check_all_told, check_flat, crowd, rss_kib

THREADS = 14000 if LONG else 6000
SECONDS = 20 if LONG else 2  # of each half
BIRTHS = 65536 if LONG else 8192


def storming(t, **options):
    agent = t.agent(rules(rule("api", prefix=t.comm, cooldown_ms=0)),
                    arguments=["--lines-per-minute", 1 << 20, "--health-seconds", 1], **options)
    return agent, t.cgroup("home")


def check_ledger(agent, cgroup):
    """A session in the midst of it: each tick is a sample or a loss that has its reason."""
    session = agent.call("session.start", {"cgroup": cgroup.path, "during_ms": 500})["session"]
    ledger = agent.wait("session.end", seconds=30, session=session)["ledger"]["oncpu"]
    check(ledger["attempted"] == ledger["emitted"] + sum(ledger["lost"].values()), f"not closed: {ledger}")


@pytest.mark.parametrize("a_second", (300, 1000) if LONG else (1000,))
def test_births_beside_threads(t, a_second):
    """14,000 sleeping threads, and 300 or 1,000 matched forks a second (in the usual check 6,000 threads and 1,000)."""
    crowd(t, "threads", THREADS, 200)
    agent, home = storming(t)
    watcher = Watcher(agent, f"{THREADS} threads, {a_second} births a second")
    burner, made, sizes = t.spawn("burn_cpu", 100, name=f"{t.comm}b", cgroup=home), 1, []
    agent.wait("watch.start", cgroup=home.path)
    for _ in range(2):
        made += births(t, SECONDS * a_second, a_second, home, during=lambda: check_ledger(agent, home))
        sizes.append(rss_kib(agent.pid))
    watcher.end()
    check_all_told(agent, made)
    check_flat(*sizes, SECONDS * a_second)
    t.end(burner)
    watcher.judge(sessions=True)


def test_births(t):
    """65,536 births, as many as there are numbers of processes twice over (8,192 in the usual check), as fast as the
    machine goes."""
    agent, home = storming(t)
    watcher = Watcher(agent, f"{BIRTHS} births")
    made = births(t, BIRTHS // 2, 0, home)
    half = rss_kib(agent.pid)
    made += births(t, BIRTHS // 2, 0, home)
    watcher.end()
    check_all_told(agent, made)
    check_flat(half, rss_kib(agent.pid), BIRTHS // 2)
    watcher.judge()
