# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/answer/session_headline* consumer/report/session_lines* consumer/signals/signal_target*
# tests: consumer/signals/slot_nest* consumer/signals/trigger_reason* consumer/sampling/cpu_event*
# tests: consumer/session/* consumer/trigger/trigger* consumer/trigger/cooldown* consumer/trigger/capture_budget*
# tests: consumer/report/session_report* consumer/report/session_verdict* consumer/report/report_thread*
# tests: bpf/cpu/sampler.bpf.c bpf/stack/stack.h consumer/evidence/cpu/oncpu* consumer/sampling/stack_*
"""What a session is made of: trigger, pre-roll, stacks, ledger, headline; and what holds one back."""
import os
import time

import pytest

from harness import check, check_complete, check_figure, rule, rules

pytestmark = pytest.mark.shares_kernel_side

PHASES = ("before", "onset", "during")
CPU = {"pressure": "cpu", "some_ms": 400, "window_ms": 1000}


def first_user(stack):
    """The leaf of the user part: what the program itself was doing."""
    return next((f["fn"] for f in stack["frames"] if f["kind"] == "user"), None)


def heaviest(stacks, phase):
    """The user function with most weight in one phase."""
    weights = {}
    for stack in stacks:
        if stack["phase"] == phase and "count" in stack:
            name = first_user(stack)
            weights[name] = weights.get(name, 0) + stack["weight_ns"]
    return max(weights, key=weights.get) if weights else None


def count_written(agent, end, signal):
    """What the lines of a signal without stacks count: threads, waits for a CPU, for locks, in system calls."""
    if signal == "pools":
        return sum(line["threads"] for line in agent.find("pool", session=end["session"]))
    if signal == "runq":
        return sum(line["count"] for line in agent.find("histogram", session=end["session"])
                   if line["key"]["of"] == "all")
    if signal == "block":
        return sum(line["requests"] + line.get("open", 0) for line in agent.find("disk", session=end["session"]))
    if signal == "neighbours":
        return end["cpu"]["own_ms"] + end["cpu"]["others_ms"] - end["cpu"].get("unlisted_ms", 0)
    if signal == "lock":
        return sum(line["waits"] for line in agent.find("lock", session=end["session"]))
    if signal == "reclaim":
        return sum(line["count"] + line["open"] + line.get("orphans", 0)
                   for line in agent.find("reclaim", session=end["session"]))
    return sum(line["waits"] + line["open"] for line in agent.find("syscall", session=end["session"]))


def check_account(agent, end):
    """Ledger against the lines: the counts that were said are the counts that were written."""
    stacks = [s for s in agent.stacks(end["session"], None) if "count" in s]
    for signal, entry in end["ledger"].items():
        if signal == "socket":  # each socket at each look: lines have the most, the first and the last
            looked = end["sockets"]["looks"]
            most = sum(line["connections"]["most"] for line in agent.find("socket", session=end["session"]))
            check(entry["emitted"] <= most * looked + entry["lost"].get("look_cut", 0), f"{entry} of {most}, {looked} looks")
            continue
        if "before" not in entry:
            written = count_written(agent, end, signal)
            check(written == entry["emitted"], f"{signal}: {written} in the lines, {entry['emitted']} emitted")
            continue
        for phase in ("before", "onset", "during"):
            written = sum(s["count"] for s in stacks if s["signal"] == signal and s["phase"] == phase)
            check(written == entry[phase]["emitted"],
                  f"{signal} {phase}: {written} in the stack lines, {entry[phase]['emitted']} emitted")


@pytest.mark.parallel(2)
@pytest.mark.core
def test_cpu_pressure(t):
    """A CPU quota bites: pressure, session, stacks from before and during, the hot function on top."""
    agent = t.agent(rules(rule("api", comm=t.comm, when=[CPU], during_ms=2000, cooldown_ms=60000)))
    group = t.cgroup(quota=50)
    process = t.spawn("burn_cpu", 16, 4, 5, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path, where=lambda e: e["resources"] == ["cpu"])
    pressure = agent.wait("pressure", seconds=12, resource="cpu", cgroup=group.path)
    check(pressure["kind"] == "some" and pressure["stall_ms"] >= pressure["threshold_ms"] == 400 and
          pressure["window_ms"] == 1000 and pressure["scope"] == "cgroup", f"{pressure}")
    check(pressure["now"]["some"]["total_us"] > pressure["before"]["some"]["total_us"], f"{pressure}")
    start = agent.wait("session.start", session=pressure["session"])
    check("oncpu" in start["signals"] and start["reason"]["pressure"]["resource"] == "cpu", f"{start}")
    end = agent.wait("session.end", session=start["session"])
    check(1900 <= end["duration_ms"] <= 3000, f"{end}")
    check_account(agent, end)
    check_complete(end, t.load)
    stacks = agent.stacks(start["session"])
    for phase in ("before", "during"):
        check(heaviest(stacks, phase) == "spin_on_checkout_total",
              f"{phase}: the heaviest is {heaviest(stacks, phase)} of {len(stacks)} stacks")
    check(end["top"][0]["fn"] == "spin_on_checkout_total", f"{end['top']}")
    # What is new, with all that it calls; when calm, others called the same function.
    check_figure("serve_customers" in end["headline"], f"{end['headline']}", t.load)
    check({s["pid"] for s in stacks} == {process.pid}, "a stack of another process")
    names = [f["fn"] for f in max(stacks, key=lambda s: s.get("weight_ns", 0))["frames"]]
    for caller in ("compute_checkout", "handle_request"):
        check(caller in names, f"the caller {caller} is not in {names}")
    held = agent.wait("trigger.held", seconds=6, cgroup=group.path)
    check(held["reason"] == "cooldown" and held["retry_ms"] > 0, f"{held}")


@pytest.mark.parallel(2)
def test_memory_pressure(t):
    """A working set beyond the memory limit, named by the function that reads it again."""
    agent = t.agent(rules(rule("cache", comm="cache",
                               when=[{"pressure": "memory", "some_ms": 30, "window_ms": 1000}],
                               during_ms=2000)))
    group = t.cgroup(memory=64)
    working_set = t.folder / "working-set"
    with open(working_set, "wb") as stream:
        for _ in range(240):
            stream.write(bytes(1 << 20))
        stream.flush()
        os.fsync(stream.fileno())  # only clean pages can leave the page cache
    # The calm time is for a watch that a busy machine makes late.
    t.spawn("thrash_memory", 22, working_set, 9, name="cache", cgroup=group)
    end = agent.wait("session.end", seconds=22, rule="cache")
    stacks = agent.stacks(end["session"])
    for phase in ("during", "before"):
        check(heaviest(stacks, phase) == "reread_working_set",
              f"{phase}: {heaviest(stacks, phase)}; {end['pre_ms']} ms before, {end['onset_ms']} of them onset")
    check_account(agent, end)


@pytest.mark.parallel(2)
@pytest.mark.core
def test_io_pressure(t):
    """A journal that syncs each entry."""
    agent = t.agent(rules(rule("journal", comm="journal",
                               when=[{"pressure": "io", "some_ms": 40, "window_ms": 1000}],
                               during_ms=2000)))
    group = t.cgroup()
    t.spawn("sync_disk", 18, t.folder / "entries", 256, 5, name="journal", cgroup=group)
    end = agent.wait("session.end", seconds=18, rule="journal")
    stacks = agent.stacks(end["session"])
    for phase in ("before", "during"):
        names = {first_user(s) for s in stacks if s["phase"] == phase}
        check("checksum_block" in names, f"{phase}: {names}")
    check_account(agent, end)


@pytest.mark.parallel(3)
@pytest.mark.core
def test_request_by_rule_cgroup_and_pid(t):
    """session.start finds its watch by each of the three names."""
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)))
    group = t.cgroup()
    process = t.spawn("burn_cpu", 20, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    for by in ({"rule": "api"}, {"cgroup": group.path}, {"pid": process.pid}):
        answer = agent.call("session.start", {**by, "during_ms": 700})
        check(answer["cgroup"] == group.path and 0 < answer["ends_in_ms"] <= 700, f"{by}: {answer}")
        start = agent.wait("session.start", session=answer["session"])
        check(start["reason"]["request"]["uid"] == 0, f"{start}")
        end = agent.wait("session.end", session=answer["session"])
        check_figure(end["ledger"]["oncpu"]["emitted"] > 0, f"{by}: nothing: {end}", t.load)
        check_account(agent, end)
    for by in ({"rule": "none"}, {"cgroup": "/nowhere"}, {"pid": 1}):
        agent.refused(-32004, "session.start", by)
    agent.refused(-32602, "session.start", {})
    agent.refused(-32602, "session.start", {"pid": process.pid, "during_ms": -5})


@pytest.mark.parallel(2)
@pytest.mark.core
def test_exec_starts_a_session(t):
    """A rule with "on": "exec" captures from a matched exec."""
    agent = t.agent(rules({**rule("api", comm=t.comm, during_ms=1000, cooldown_ms=0), "on": "exec"}))
    process = t.spawn("burn_cpu", 6, name=t.comm, cgroup=t.cgroup())
    start = agent.wait("session.start", rule="api")
    check(start["reason"] == {"exec": {"pid": process.pid, "comm": t.comm}}, f"{start}")
    end = agent.wait("session.end", session=start["session"])
    check_figure(end["ledger"]["oncpu"]["emitted"] > 20, f"{end}", t.load)
    check(heaviest(agent.stacks(end["session"]), "during") == "spin_on_checkout_total", "the function")
    check_account(agent, end)


@pytest.mark.parallel(3)
@pytest.mark.core
def test_running_session_holds_the_next(t):
    """One cgroup has one session at a time; the second request is told when to come back."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    t.spawn("burn_cpu", 15, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 2000})["session"]
    error = agent.refused(-32003, "session.start", {"cgroup": group.path}, reason="session_running")
    check(0 < error.data["retry_ms"] <= 2500, f"{error}")
    agent.wait("trigger.held", reason="session_running", trigger="request")
    agent.wait("session.end", session=session)


@pytest.mark.parallel(3)
def test_seventeenth_session(t):
    """At most 16 sessions at once; the next is held and said."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    groups = [t.cgroup(f"g{i}") for i in range(17)]
    for group in groups:
        t.spawn("deep", 25, 10, name=t.comm, cgroup=group)
    for group in groups:
        agent.wait("watch.start", seconds=15, cgroup=group.path)
    for group in groups[:16]:
        agent.call("session.start", {"cgroup": group.path, "during_ms": 10000, "signals": ["oncpu"]})
    agent.refused(-32003, "session.start", {"cgroup": groups[16].path}, reason="too_many_sessions")
    agent.wait("trigger.held", reason="too_many_sessions", cgroup=groups[16].path)
    check(agent.call("status")["sessions_running"] == 16, "not 16")
    for group in groups[:16]:
        agent.wait("session.end", seconds=20, cgroup=group.path)


@pytest.mark.parallel(3)
@pytest.mark.core
def test_budget(t):
    """A rule's budget of captured seconds per hour holds the next session back."""
    tight = rule("api", comm=t.comm, cooldown_ms=0)
    tight["capture"]["budget_s"] = 2
    agent = t.agent(rules(tight))
    group = t.cgroup()
    t.spawn("burn_cpu", 15, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    for _ in range(2):
        answer = agent.call("session.start", {"rule": "api", "during_ms": 1100})
        agent.wait("session.end", session=answer["session"])
    agent.refused(-32003, "session.start", {"rule": "api", "during_ms": 1000}, reason="budget_rule")
    agent.wait("trigger.held", reason="budget_rule")


@pytest.mark.parallel(3)
def test_scope_process(t):
    """scope process takes only what matched; scope cgroup takes the neighbour in the cgroup as well."""
    for scope, neighbour in (("process", False), ("cgroup", True)):
        agent = t.agent(rules(rule("api", comm=t.comm, scope=scope)))
        group = t.cgroup(scope)
        node = t.spawn("burn_cpu", 20, name=t.comm, cgroup=group)
        other = t.spawn("deep", 20, 10, name="other", cgroup=group)
        agent.wait("watch.start", cgroup=group.path, scope=scope)
        time.sleep(0.5)
        session = agent.call("session.start", {"rule": "api", "during_ms": 1500})["session"]
        agent.wait("session.end", session=session)
        pids = {s["pid"] for s in agent.stacks(session)}
        check(node.pid in pids and (other.pid in pids) == neighbour, f"{scope}: {pids}")
        t.end(node)
        t.end(other)
        agent.stop()


@pytest.mark.parallel(2)
def test_scope_process_of_short_lives(t):
    """Of workers that live for 8 ms scope process takes the samples that their CPU time calls for."""
    agent = t.agent(rules(rule("api", comm=t.comm, scope="process")))
    group = t.cgroup()
    t.spawn("churn", 15, 60, 8, name=t.comm, cgroup=group)
    watch = agent.wait("watch.start", cgroup=group.path)

    def used():
        return int((group.folder / "cpu.stat").read_text().split()[1]) / 1e6

    time.sleep(1)
    begun = used()
    session = agent.call("session.start", {"rule": "api", "during_ms": 2000})["session"]
    end = agent.wait("session.end", session=session)
    ticks = (used() - begun) * 5 * watch["sampling"]["hz"]
    ledger = end["ledger"]["oncpu"]
    check_figure(ledger["during"]["attempted"] > 0.6 * ticks, f"{ledger} of {ticks} ticks", t.load)
    check(not ledger["lost"].get("unaccounted"), f"{ledger}")


@pytest.mark.parallel(2)
@pytest.mark.core
def test_scope_process_without_a_name(t):
    """A rule by cgroup takes a process with scope process at once, not only when a scan has found it."""
    group = t.cgroup()
    agent = t.agent(rules(rule("place", cgroup=group.path, scope="process")))
    first = t.spawn("burn_cpu", 20, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    agent.wait("process.match", pid=first.pid)
    second = t.spawn("burn_cpu", 20, name="later", cgroup=group)
    session = agent.call("session.start", {"rule": "place", "during_ms": 1500})["session"]
    end = agent.wait("session.end", session=session)
    pids = {s["pid"] for s in agent.stacks(session)}
    check({first.pid, second.pid} <= pids, f"{pids} of {first.pid} and {second.pid}: {end}")


def test_deep_stacks(t):
    """40 frames come complete; beyond the kernel's 127 the stack says that it was cut."""
    agent = t.agent(rules(rule("deep", prefix="deep")))
    for name, frames in (("deep40", 40), ("deep400", 400)):
        group = t.cgroup(name)
        t.spawn("deep", 20, frames, name=name, cgroup=group)
        agent.wait("watch.start", cgroup=group.path)
        time.sleep(0.5)
        session = agent.call("session.start", {"cgroup": group.path, "during_ms": 1500})["session"]
        agent.wait("session.end", session=session)
        stacks = agent.stacks(session)
        heavy = max((s for s in stacks if "count" in s), key=lambda s: s["weight_ns"])
        whole = [f["fn"] for s in stacks if s.get("stack_id") == heavy.get("stack_id") and
                 s["phase"] == heavy["phase"] and (s is heavy or "part" in s) for f in s["frames"]]
        levels = whole.count("descend_one_level")
        check(first_user(heavy) == "spin_at_the_bottom", f"{name}: leaf {first_user(heavy)}")
        if frames == 40:
            check(heavy["quality"] == "complete" and levels == 40, f"{name}: {levels} levels, {heavy}")
        else:
            check(heavy["quality"] == "truncated" and levels >= 100, f"{name}: {levels}, {heavy}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_long_stacks_are_parts(t):
    """No line is longer than the limit: a long stack is lines with one stack_id, counted once."""
    agent = t.agent(rules(rule("deep", comm="deep")), arguments=["--max-line-bytes", 4096])
    group = t.cgroup()
    t.spawn("deep", 20, 100, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 1000})["session"]
    end = agent.wait("session.end", session=session)
    check(max(map(len, agent.raw)) <= 4096, f"a line of {max(map(len, agent.raw))} bytes")
    parts = [s for s in agent.stacks(session) if "part" in s]
    check(parts, "100 frames fitted into 4096 bytes")
    for stack_id in {s["stack_id"] for s in parts}:
        mine = [s for s in parts if s["stack_id"] == stack_id]
        check([s["part"] for s in mine] == list(range(1, mine[0]["parts"] + 1)), f"{stack_id}: parts")
    check_account(agent, end)


@pytest.mark.parallel(3)
@pytest.mark.core
def test_weight_order(t):
    """In one session: during, then the onset, then before, and within a phase the most weight first."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    t.spawn("burn_cpu", 20, 2, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(1.5)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 1500})["session"]
    agent.wait("session.end", session=session)
    order = [(-PHASES.index(s["phase"]), -s["weight_ns"]) for s in agent.stacks(session)
             if "count" in s and s["signal"] == "oncpu"]
    check(order == sorted(order), f"not in order: {order[:12]}")
    check({phase for phase, _ in order} == {-2, -1, 0}, "one phase is missing")
