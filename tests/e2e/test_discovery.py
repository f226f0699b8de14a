# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/discovery/discover.bpf.c bpf/watch/cgroup.bpf.c bpf/watch/scope.h bpf/maps/event_* consumer/discovery/*
# tests: consumer/watch/binding*
# tests: shared/rules/rules_index* consumer/process/process.*
"""Which processes and cgroups the agent finds, how, and when it lets go of them."""
import json
import os
import pathlib
import re
import signal
import time

import pytest

from harness import RpcError, Skip, check, check_figure, rule, rules, until

pytestmark = pytest.mark.shares_kernel_side


@pytest.mark.parallel(4)
@pytest.mark.core
def test_exec(t):
    """A process that starts under a matching name is found by its exec."""
    agent = t.agent(rules(rule("api", comm=t.comm, labels={"team": "payments"})))
    group = t.cgroup()
    process = t.spawn("burn_cpu", 3, name=t.comm, cgroup=group)
    match = agent.wait("process.match", pid=process.pid)
    check(match["found"] == "exec" and match["comm"] == t.comm and match["rule"] == "api" and
          match["generation"] == agent.generation and match["labels"] == {"team": "payments"}, f"{match}")
    check(match["cgroup"] == group.path and match["cgroup_id"] == group.id, f"wrong cgroup: {match}")
    check(match["exe"] == str(t.binary("burn_cpu", t.comm)), f"wrong exe: {match}")
    check(match["ppid"] == os.getpid(), f"wrong parent: {match}")
    watch = agent.wait("watch.start", cgroup=group.path)
    check(watch["rules"] == ["api"] and watch["scope"] == "cgroup", f"{watch}")
    left = agent.wait("process.exit", pid=process.pid)
    check(left["start_ns"] == match["start_ns"] and 2500 <= left["lived_ms"] <= 6000, f"{left}")
    agent.wait("watch.stop", cgroup=group.path)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_fork_without_exec(t):
    """Children that never call execve are found by their fork."""
    agent = t.agent(rules(rule("forky", comm="forky")))
    process = t.spawn("forker", 6, 3, 1, name="forky", cgroup=t.cgroup())
    agent.wait("process.match", pid=process.pid, found="exec")
    for _ in range(3):
        child = int(process.stdout.readline())
        match = agent.wait("process.match", pid=child, found="fork")
        check(match["ppid"] == process.pid and match["comm"] == "forky", f"{match}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_rename(t):
    """prctl(PR_SET_NAME) makes a match, with the pid's own start time."""
    agent = t.agent(rules(rule("worker", comm="worker-7")))
    process = t.spawn("renamer", 6, "worker-7", 1, cgroup=t.cgroup())
    match = agent.wait("process.match", pid=process.pid)
    check(match["found"] == "rename" and match["comm"] == "worker-7", f"{match}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_name_that_drives_a_terminal(t):
    """A name of CSI, DEL, a line separator and an override of the order of reading is in the lines, and no
    byte of these is: who prints the event file on a terminal sees text."""
    agent = t.agent(rules(rule("wild", prefix="wild")))
    name = "wild\u009b\x7f\u2028\u202e"
    group = t.cgroup("\u009b2J\u202e")
    process = t.spawn("renamer", 8, name, 1, cgroup=group)
    agent.wait("process.match", pid=process.pid, comm=name, cgroup=group.path)
    session = agent.call("session.start", {"rule": "wild", "during_ms": 500})["session"]
    agent.wait("session.end", session=session)
    raw = b"".join(agent.raw).decode()
    check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", raw),
          "a control character stands in a line as it is")
    shown = agent.trocar("watches").stdout
    check("\\xc2\\x9b2J\\xe2\\x80\\xae" in shown and not re.search("[\x7f-\x9f\u202e]", shown), shown)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_exec_of_running_process(t):
    """A process that was no match becomes one by execve: same pid."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    process = t.spawn("execer", 6, 1, t.binary("burn_cpu", t.comm), 3, name="idle", cgroup=t.cgroup())
    agent.never("process.match", 0.5, pid=process.pid)
    agent.wait("process.match", pid=process.pid, found="exec", comm=t.comm)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_started_before_us(t):
    """A process that ran before the agent is found by the scan."""
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False)
    group = t.cgroup()
    process = t.spawn("burn_cpu", 20, name=t.comm, cgroup=group)
    time.sleep(0.3)
    agent.start()
    match = agent.wait("process.match", pid=process.pid)
    check(match["found"] == "scan" and match["cgroup"] == group.path, f"{match}")
    agent.wait("watch.start", cgroup=group.path)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_exact_against_prefix(t):
    """"node" is not "nodejs"; a prefix takes what begins with it; 15 bytes are matched whole."""
    agent = t.agent(rules(rule("exact", comm="node"), rule("prefix", prefix="work-"),
                          rule("fifteen", comm="abcdefghijklmno")))
    group = t.cgroup()
    wanted = {"node": "exact", "work-": "prefix", "work-1": "prefix", "abcdefghijklmno": "fifteen",
              "nodejs": None, "nod": None, "work": None, "abcdefghijklmn": None, "aork-1": None}
    started = {name: t.spawn("burn_cpu", 12, name=name, cgroup=group) for name in wanted}
    for name, by in wanted.items():
        if by:
            agent.wait("process.match", pid=started[name].pid, rule=by)
    time.sleep(1)
    for name, by in wanted.items():
        found = {e["rule"] for e in agent.find("process.match", pid=started[name].pid)}
        check(found == ({by} if by else set()), f"{name}: matched {found}, wanted {by}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_longest_prefix_wins(t):
    """Of two prefixes that both hold the longer one is the rule, and both are named at the start."""
    agent = t.agent(rules(rule("all", prefix="w"), rule("workers", prefix="work")))
    applied = agent.wait("rules.applied")
    text = " ".join(w["message"] for w in applied["warnings"])
    check("all" in text and "workers" in text, f"no warning that names both: {applied}")
    group = t.cgroup()
    for name, by in (("worker", "workers"), ("wine", "all")):
        agent.wait("process.match", pid=t.spawn("burn_cpu", 8, name=name, cgroup=group).pid, rule=by)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_two_processes_in_one_cgroup(t):
    """One watch for both; it lives until the last one has gone."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    first = t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    second = t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    for process in (first, second):
        agent.wait("process.match", pid=process.pid)
    agent.wait("watch.start", cgroup=group.path)
    t.end(first)
    agent.wait("process.exit", pid=first.pid)
    agent.never("watch.stop", 1, cgroup=group.path)
    check(len(agent.find("watch.start", cgroup=group.path)) == 1, "two watches of one cgroup")
    t.end(second)
    stop = agent.wait("watch.stop", cgroup=group.path)
    check(stop["reason"] in ("cgroup_empty", "no_process"), f"{stop}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_cgroup_removed_while_watched(t):
    """The cgroup goes away under the watch, and again under a running session."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    for name in ("a", "b"):
        group = t.cgroup(name)
        process = t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
        agent.wait("watch.start", cgroup=group.path)
        if name == "b":
            session = agent.call("session.start", {"cgroup": group.path, "during_ms": 8000})["session"]
        t.end(process)
        group.remove()
        stop = agent.wait("watch.stop", cgroup=group.path)
        check(stop["reason"] in ("cgroup_removed", "cgroup_empty", "no_process"), f"{stop}")
    agent.wait("session.end", seconds=12, session=session)
    check(agent.call("watches") == [], "watches are left")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_cgroup_prefix(t):
    """A rule for a cgroup takes whatever runs there, and not the neighbour's."""
    agent = t.agent(rules(rule("slice", cgroup=f"/{t.name}-web")))
    inside, outside = t.cgroup("web-1"), t.cgroup("other")
    process = t.spawn("burn_cpu", 8, cgroup=inside)
    stranger = t.spawn("burn_cpu", 8, cgroup=outside)
    agent.wait("watch.start", cgroup=inside.path)
    agent.never("watch.start", 1, cgroup=outside.path)
    check(not agent.find("process.match", pid=stranger.pid), "the neighbour matched")
    t.end(process)
    agent.wait("watch.stop", cgroup=inside.path)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_comm_and_cgroup_prefix(t):
    """Both criteria must hold."""
    agent = t.agent(rules(rule("both", comm=t.comm, cgroup=f"/{t.name}-web")))
    inside, outside = t.cgroup("web"), t.cgroup("other")
    wrong_place = t.spawn("burn_cpu", 8, name=t.comm, cgroup=outside)
    wrong_name = t.spawn("burn_cpu", 8, name="ruby", cgroup=inside)
    right = t.spawn("burn_cpu", 8, name=t.comm, cgroup=inside)
    agent.wait("process.match", pid=right.pid, rule="both")
    time.sleep(1)
    for process in (wrong_place, wrong_name):
        check(not agent.find("process.match", pid=process.pid), f"{process.args} matched")
    check(not agent.find("watch.start", cgroup=outside.path), "the wrong cgroup is watched")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_rule_goes_and_comes_back(t):
    """A process whose rule is taken away has left, and lives; given the rule again it is there at once, with names."""
    wanted, others = rules(rule("api", comm=t.comm, scope="process")), rules(rule("other", comm="nobody-at-all"))
    agent = t.agent(wanted)
    group = t.cgroup()
    process = t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    agent.wait("process.match", pid=process.pid)
    agent.call("rules.set", {"text": json.dumps(others)})
    left = agent.wait("process.left", pid=process.pid)
    check(left["reason"] == "rule_gone", f"{left}")
    agent.wait("watch.stop", cgroup=group.path)
    mark = len(agent.events)
    agent.call("rules.set", {"text": json.dumps(others)})
    agent.call("rules.set", {"text": json.dumps(wanted)})
    agent.wait("process.match", pid=process.pid, since=mark)
    session = agent.call("session.start", {"rule": "api", "during_ms": 1000})["session"]
    end = agent.wait("session.end", session=session)
    check(any(f["fn"] for s in agent.stacks(session) for f in s["frames"] if f["kind"] == "user"), "no names")
    check(end["ledger"]["oncpu"]["attempted"] > 3, f"{end['ledger']}: the kernel side takes it for unmatched")
    check(not agent.find("process.exit", pid=process.pid), "an exit of a process that lives")


def reborn_as(t, pid, name, group):
    """A new process under a pid that has just become free."""
    word = pathlib.Path("/proc/sys/kernel/ns_last_pid")
    for _ in range(60):
        try:
            word.write_text(str(pid - 1))
        except OSError as error:
            raise Skip(f"{word}: {error.strerror}: a pid cannot be chosen here") from None
        process = t.spawn("burn_cpu", 12, name=name, cgroup=group)
        if process.pid == pid:
            return process
        t.end(process)
    raise Skip(f"pid {pid} was taken by somebody else 60 times")


def test_pid_reuse(t):
    """Two processes under one pid, one after the other, are two processes."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    first = t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    one = agent.wait("process.match", pid=first.pid)
    t.end(first)
    agent.wait("process.exit", pid=first.pid)
    mark = len(agent.events)
    second = reborn_as(t, first.pid, t.comm, group)
    two = agent.wait("process.match", pid=second.pid, since=mark,
                     where=lambda e: e["start_ns"] != one["start_ns"])
    check(two["start_ns"] > one["start_ns"], f"{one} {two}")
    t.end(second)
    left = agent.wait("process.exit", pid=second.pid, since=mark)
    check(left["start_ns"] == two["start_ns"], f"the exit names another process: {left}")


def test_pid_reuse_by_a_stranger(t):
    """A matched process's pid under another name is not matched."""
    agent = t.agent(rules(rule("api", comm=t.comm, scope="process")))
    group = t.cgroup()
    first = t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    agent.wait("process.match", pid=first.pid)
    first.send_signal(signal.SIGKILL)
    t.end(first)
    mark = len(agent.events)
    second = reborn_as(t, first.pid, "stranger", group)
    agent.never("process.match", 1.5, since=mark, pid=second.pid, comm="stranger")


def test_process_in_the_cgroup_root(t):
    """A matched process in the cgroup2 root is watched by process."""
    if pathlib.Path("/proc/self/cgroup").read_text().splitlines()[-1] != "0::/":
        raise Skip("this test does not run in the cgroup2 root")
    agent = t.agent(rules(rule("api", comm=t.comm)))
    process = t.spawn("burn_cpu", 20, name=t.comm)
    agent.wait("process.match", pid=process.pid, cgroup="/")
    check(agent.wait("watch.start", cgroup="/")["scope"] == "process", "not by process")
    answer = agent.call("session.start", {"pid": process.pid, "during_ms": 1000})
    agent.wait("session.end", session=answer["session"])
    strangers = {s["pid"] for s in agent.stacks(answer["session"])} - {process.pid}
    check(not strangers, f"stacks of others in the root: {strangers}")


def test_short_lives(t):
    """Hundreds of processes of some milliseconds each are taken without a loss of the account."""
    agent = t.agent(rules(rule("churn", comm="churn")))
    group = t.cgroup()
    t.spawn("churn", 6, 100, 8, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(1)
    answer = agent.call("session.start", {"cgroup": group.path, "during_ms": 2000})
    end = agent.wait("session.end", session=answer["session"])
    check_figure(end["ledger"]["oncpu"]["emitted"] > 20, f"{end}", t.load)
    names = [f["fn"] for s in agent.stacks(answer["session"]) for f in s["frames"]]
    check("spin_short_life" in names, "processes that had gone are nameless")


@pytest.mark.parallel(4)
def test_no_loader_process(t):
    """No loader is left once the load is done, and no broker once nobody asks."""
    agent = t.agent(rules(rule("api", comm=t.comm)))

    def loaders():
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if ((folder / "comm").read_bytes() == b"trocar-loader\n" and
                        os.fsencode(agent.bpf) in (folder / "cmdline").read_bytes()):
                    found.append(folder.name)
            except OSError:
                continue
        return found

    until(loaders, 5, "no broker has begun")
    until(lambda: not loaders(), 15, lambda: f"loader processes: {loaders()}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_scope(t):
    """`load --scope`: what a rule matches elsewhere is neither watched nor listed nor captured, and it is said."""
    inside, outside = t.cgroup("in"), t.cgroup("out")
    agent = t.agent(rules(rule("api", comm=t.comm), rule("all", cgroup="/" + t.name)),
                    load=("--scope", inside.path, "--scope", "/nowhere"), start=False)
    there = t.spawn("burn_cpu", 20, name=t.comm, cgroup=inside)
    hidden = t.spawn("burn_cpu", 20, name=t.comm, cgroup=outside)
    agent.start()
    start = agent.wait("agent.start")
    check(sorted(start["scope"]) == sorted([inside.path, "/nowhere"]), f"{start}")
    agent.wait("process.match", pid=there.pid)
    agent.wait("watch.start", cgroup=inside.path)
    refused = agent.wait("error", code="out_of_scope")
    check(outside.path in refused["message"], f"{refused}")
    check(agent.call("status")["scope"]["refused"] > 0, "no count")
    try:
        agent.call("session.start", {"pid": hidden.pid, "during_ms": 200})
        raise AssertionError("a session outside of the scope")
    except RpcError as error:
        check("--scope" in str(error), f"{error}")
    session = agent.call("session.start", {"pid": there.pid, "during_ms": 500})["session"]
    agent.wait("session.end", session=session)
    seen = {e.get("pid") for e in agent.events if e["type"] in ("process.match", "stack")}
    check(there.pid in seen and hidden.pid not in seen, f"{seen}")
