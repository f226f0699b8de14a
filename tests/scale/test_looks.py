# SPDX-License-Identifier: BSD-2-Clause
"""Looks at the threads of a large service, and at a small one beside it: they keep their budget, and no turn is long."""
import time

from harness import check, check_figure, rule, rules, until
from scale import LONG, TURN_MS, Watcher, cpu_s, crowd, host_of_threads, matched

THREADS = 14000 if LONG else 6000
HOST = 50000
SLEEPERS = 10000 if LONG else 2000
DURING_MS = 4000
BUDGET = ["--looks-permille", 10]  # the consumer's default


def look(t, agent, group, name, **parameters):
    watcher = Watcher(agent, name)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": DURING_MS, **parameters})["session"]
    end = agent.wait("session.end", seconds=60, session=session)
    watcher.end()
    looks, ledger = end["looks"], end["ledger"]["offcpu"]
    print(f"# {name}: {looks}, {ledger['attempted']} looks at threads, lost {ledger['lost']}", flush=True)
    check(ledger["attempted"] == ledger["emitted"] + sum(ledger["lost"].values()), f"not closed: {ledger}")
    watcher.judge(sessions=True)
    return end, looks, ledger


def test_looks_at_a_crowd(t):
    """14,000 sleeping threads in the session's cgroup: each is told of, with its stack once, and as before from then on."""
    agent = t.agent(rules(rule("api", comm=t.comm)), arguments=BUDGET)
    group = t.cgroup("home")
    crowd(t, "threads", THREADS, 200, cgroup=group)
    t.spawn("burn_cpu", 100, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    end, looks, ledger = look(t, agent, group, f"{THREADS} threads of the session")
    check(looks["passes"] >= 2, f"{looks}")
    check(ledger["attempted"] >= 2 * THREADS, f"{ledger}")
    # Of the session's own passes: those of the recorder before it are no looks of the session.
    check(looks["as_before"] >= ledger["during"]["attempted"] - 1.3 * THREADS, f"walked again: {looks} {ledger}")
    # The first pass and the last are free; the others take one percent.
    check_figure(looks["cpu_ms"] <= DURING_MS / 100 + 2 * looks["cpu_ms"] / looks["passes"] + 500, f"{looks}", t.load)


def test_looks_beside_a_crowd(t):
    """One small service on a host of 14,000 other threads: they are passed over."""
    agent = t.agent(rules(rule("api", comm=t.comm)), arguments=BUDGET)
    crowd(t, "threads", THREADS, 200)
    group = t.cgroup("home")
    t.spawn("burn_cpu", 100, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    _, looks, _ = look(t, agent, group, f"{THREADS} threads beside the session")
    check(looks["passes"] >= 2 and looks["cut"] == 0, f"{looks}")
    check_figure(looks["cpu_ms"] <= 2 * DURING_MS / 100 + 20, f"{looks}", t.load)


def check_budget(looks, load):
    """What passes take beyond the first and the last, which are free, is a hundredth of the time; the one that reaches
    that bound may end behind it."""
    paid, passes = looks["cpu_ms"] - looks["free_cpu_ms"], max(1, looks["passes"] - 2)
    check_figure(paid <= DURING_MS / 100 + paid / passes, f"{paid} ms of {DURING_MS} ms: {looks}", load)


def test_looks_at_a_host_of_50000(t):
    """50,000 sleeping threads in the session's cgroup: each is told of at the begin and at the end, the looks keep their
    budget, and what that leaves out is in the ledger and makes the session partial."""
    agent = t.agent(rules(rule("api", comm=t.comm)), arguments=BUDGET)
    group = t.cgroup("home")
    host_of_threads(t, HOST, cgroup=group)
    t.spawn("burn_cpu", 100, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    end, looks, ledger = look(t, agent, group, f"{HOST} threads of the session", signals=["offcpu"])
    # A session waits half a second for its last look; what that does not come to is a loss with a name.
    check(set(ledger["lost"]) <= {"look_cut"}, f"{looks} {ledger}")
    check_figure(looks["passes"] >= 2 and not ledger["lost"], f"{looks} {ledger}", t.load)
    check(ledger["during"]["attempted"] >= looks["passes"] * HOST, f"{looks} {ledger}")
    check(looks["as_before"] >= ledger["during"]["attempted"] - 1.1 * HOST, f"walked again: {looks} {ledger}")
    check(looks["skipped"] > 0 and ledger["left_out"]["budget"] >= looks["skipped"] * HOST, f"{looks} {ledger}")
    check(ledger["expected"] == ledger["during"]["attempted"] + ledger["left_out"]["budget"], f"{ledger}")
    check(end["verdict"] == "partial" and "--looks-permille" in end["verdict_reason"], f"{end}")
    check_budget(looks, t.load)


def test_looks_on_a_host_of_50000(t):
    """A service of eight threads on a host of 50,000 others: its own are told of at each pass, and passes that are left
    out because it takes so long to pass over the others are said."""
    agent = t.agent(rules(rule("api", comm=t.comm)), arguments=BUDGET)
    host_of_threads(t, HOST)
    group = t.cgroup("home")
    crowd(t, "threads", 8, 100, cgroup=group, name=t.comm)
    agent.wait("watch.start", cgroup=group.path)
    end, looks, ledger = look(t, agent, group, f"{HOST} threads beside the session")
    check(looks["passes"] >= 2 and looks["cut"] == 0, f"{looks}")
    check(ledger["during"]["attempted"] == looks["passes"] * 9 and not ledger["lost"], f"{looks} {ledger}")
    left_out = ledger.get("left_out", {}).get("budget", 0)
    check(left_out == looks["skipped"] * 9 and ledger["expected"] == ledger["during"]["attempted"] + left_out, f"{ledger}")
    check((end["verdict"] == "partial") == (looks["longest_gap_ms"] * 10 > end["duration_ms"]), f"{end}")
    check_budget(looks, t.load)


def test_recorder_beside_sleepers(t):
    """10,000 processes that are watched and sleep (2,000 in the usual check): the recorder's looks find them, and do not
    have the mappings of all of them read, nor tables made of them, again and again."""
    home = t.cgroup("home")
    crowd(t, "processes", SLEEPERS, 200, cgroup=home, name=t.comm)
    agent = t.agent(rules(rule("api", comm=t.comm)), arguments=[*BUDGET, "--lines-per-minute", 1 << 20])
    until(lambda: matched(agent) == SLEEPERS + 1, 60, lambda: f"{matched(agent)} of {SLEEPERS + 1} told of")
    until(lambda: agent.call("status")["looks"]["passes"] >= 1, 15, "the recorder does not look")
    cpu = cpu_s(agent.pid)
    time.sleep(8)
    seconds, status = cpu_s(agent.pid) - cpu, agent.call("status")
    print(f"# the recorder's looks at {SLEEPERS} sleepers: {status['looks']}, {seconds:.2f} s of CPU in 8 s, longest "
          f"turn {status['longest_turn_own_ms']} ms", flush=True)
    check_figure(seconds <= 0.2 + SLEEPERS * 50e-6, f"{seconds} s of CPU: {status['looks']}", t.load)
    check_figure(status["longest_turn_own_ms"] <= TURN_MS, f"a turn of {status['longest_turn_own_ms']} ms", t.load)
