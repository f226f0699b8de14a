# SPDX-License-Identifier: BSD-2-Clause
"""Many processes, matched at once."""
from harness import check, check_figure, rule, rules, until
from machine import Load
from scale import LONG, READY_S, Watcher, crowd, matched, started

MANY = 10000 if LONG else 4000
SLEEPERS = 4000 if LONG else 1000
NEWCOMERS = 20 if LONG else 5


def test_matched_at_start(t):
    """Processes that match when the agent starts (10,000 with --long, else 4,000): it answers at once, each is told of,
    and no turn is long, nor when the rules are applied again."""
    home = t.cgroup("home")
    crowd(t, "processes", MANY, 110, cgroup=home, name=t.comm)
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False,
                    arguments=["--lines-per-minute", 1 << 20, "--health-seconds", 1])
    load = Load()
    took_s = started(agent)
    print(f"# {MANY} processes: the first answer after {took_s:.2f} s", flush=True)
    check_figure(took_s < READY_S, f"the first answer came after {took_s:.1f} s", load)
    watcher = Watcher(agent, f"{MANY} processes matched at start")
    until(lambda: matched(agent) == MANY + 1, 30, lambda: f"{matched(agent)} of {MANY + 1} told of")
    agent.write_rules(rules(rule("api", comm=t.comm), rule("other", comm="nobody-here")))
    agent.wait("rules.applied", generation=2)
    agent.write_rules(rules(rule("new", comm=t.comm)))
    until(lambda: len(agent.find("process.match", rule="new")) == MANY + 1, 30,
          lambda: f"{len(agent.find('process.match', rule='new'))} of {MANY + 1} told of by the new rule")
    watcher.end().judge()
    check(agent.call("status")["processes"] == MANY + 1, f"{agent.call('status')['processes']} processes")


def test_newcomers_beside_sleepers(t):
    """4,000 matched sleepers (1,000 in the usual check), more than there are tables: newcomers are told of at once, and
    what they do has names."""
    home, place = t.cgroup("home"), t.cgroup("place")
    crowd(t, "processes", SLEEPERS, 110, cgroup=home, name=t.comm)
    agent = t.agent(rules(rule("api", prefix=t.comm, cooldown_ms=0)),
                    arguments=["--lines-per-minute", 1 << 20, "--health-seconds", 1])
    until(lambda: matched(agent) == SLEEPERS + 1, 30, lambda: f"{matched(agent)} of {SLEEPERS + 1} told of")
    watcher = Watcher(agent, f"newcomers beside {SLEEPERS} sleepers")
    newcomers = [t.spawn("burn_cpu", 60, name=f"{t.comm}b", cgroup=place) for _ in range(NEWCOMERS)]
    for newcomer in newcomers:
        agent.wait("process.match", pid=newcomer.pid, seconds=4)
    agent.wait("watch.start", cgroup=place.path)
    session = agent.call("session.start", {"cgroup": place.path, "during_ms": 1000})["session"]
    end = agent.wait("session.end", seconds=30, session=session)
    ledger = end["ledger"]["oncpu"]
    for newcomer in newcomers:
        t.end(newcomer)
        agent.wait("process.exit", pid=newcomer.pid, seconds=4)
    watcher.end()
    check(ledger["attempted"] == ledger["emitted"] + sum(ledger["lost"].values()), f"not closed: {ledger}")
    names = {f["fn"] for s in agent.stacks(session) for f in s["frames"]}
    check("spin_on_checkout_total" in names, f"{names}")
    watcher.judge(sessions=True)
