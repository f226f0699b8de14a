# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/control/* consumer/methods/* consumer/agent/rules_file* consumer/discovery/rules_apply*
# tests: consumer/rules/* shared/rules/* ctl/client/client* ctl/client/calls* ctl/client/rules_check* ctl/command*
# tests: ctl/cli/options*
"""The control socket, the command, and the rules file while the agent runs."""
import json
import os
import pathlib
import pwd
import re
import signal
import socket
import time

import pytest

from harness import COMMAND, GROUP, USER, RpcError, check, command, read_line, rule, rules, until

pytestmark = [pytest.mark.parallel(4), pytest.mark.shares_kernel_side]
FAULTY = json.dumps({"version": 1, "rules": [
    {"name": "Upper", "match": {"comm": "sixteen-bytes-xx"}, "when": []},
    {"name": "ok", "match": {"comm": "node"}, "when": [{"pressure": "heat", "some_ms": 5}]},
    {"name": "ok", "match": {"comm": "ruby"}, "surprise": 1}]})
POINTERS = {"/rules/0/name", "/rules/0/match/comm", "/rules/1/when/0/pressure", "/rules/2/name",
            "/rules/2/surprise"}


def as_user(agent, name, method, params=None):
    """The same request from another user in the agent's group; returns the raw answer."""
    entry = pwd.getpwnam(name)
    mine, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            import grp
            os.setgroups([grp.getgrnam(GROUP).gr_gid])
            os.setgid(entry.pw_gid)
            os.setuid(entry.pw_uid)
            try:
                answer = {"result": agent.call(method, params)}
            except RpcError as error:
                answer = {"code": error.code}
            except OSError as error:
                answer = {"errno": error.errno}
            theirs.sendall(json.dumps(answer).encode() + b"\n")
        finally:
            os._exit(0)
    theirs.close()
    try:
        return json.loads(read_line(mine))
    finally:
        mine.close()
        os.waitpid(pid, 0)


@pytest.mark.core
def test_rules_set_and_get(t):
    """A pushed set is active when the answer comes, unchanged watches go on, nothing is missed."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group, other = t.cgroup("a"), t.cgroup("b")
    t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    pushed = rules(rule("api", comm=t.comm), rule("workers", prefix="work-"))
    answer = agent.call("rules.set", {"text": json.dumps(pushed)})
    check(answer["generation"] == agent.generation + 1 and answer["count"] == 2 and answer["unchanged_watches"] == 1,
          f"{answer}")
    worker = t.spawn("burn_cpu", 20, name="work-1", cgroup=other)
    check(agent.wait("process.match", pid=worker.pid)["generation"] == agent.generation + 1, "not of the next generation")
    applied = agent.wait("rules.applied", generation=agent.generation + 1)
    check(applied["source"] == "socket" and applied["peer"] == {"pid": os.getpid(), "uid": 0},
          f"{applied}")
    check(not agent.find("watch.stop", cgroup=group.path), "an unchanged watch was stopped")
    got = agent.call("rules.get")
    check(got["generation"] == agent.generation + 1 and got["source"] == "socket", f"{got}")
    check([r["name"] for r in got["rules"]["rules"]] == ["api", "workers"], f"{got['rules']}")
    agent.call("rules.set", {"text": json.dumps(rules(rule("workers", prefix="work-")))})
    check(agent.wait("watch.stop", cgroup=group.path)["reason"] == "rule_gone", "not rule_gone")


@pytest.mark.core
def test_rules_refused(t):
    """A faulty push is refused whole, with every fault; the running set stays."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    error = agent.refused(-32002, "rules.set", {"text": FAULTY})
    named = {fault["pointer"] for fault in error.data["faults"]}
    check(POINTERS <= named, f"not named: {POINTERS - named}; named: {named}")
    rejected = agent.wait("rules.rejected")
    check(rejected["fault_count"] >= len(POINTERS) and rejected["source"] == "socket", f"{rejected}")
    for text in ("", "{", "[]", '{"version":2,"rules":[]}', '{"version":1,"rules":[],"rules":[]}',
                 "[" * 100, '{"version":1,"rules":{}}'):
        agent.refused(-32002, "rules.set", {"text": text})
    check(agent.call("rules.get")["generation"] == agent.generation, "the running set has gone")
    process = t.spawn("burn_cpu", 8, name=t.comm, cgroup=t.cgroup())
    agent.wait("process.match", pid=process.pid, generation=agent.generation)


@pytest.mark.core
def test_rules_check(t):
    """rules.check applies nothing and says which processes would match."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    process = t.spawn("burn_cpu", 20, name="candidate", cgroup=group)
    time.sleep(0.3)
    answer = agent.call("rules.check", {"text": json.dumps(rules(rule("new", prefix="candi")))})
    check(answer["ok"] is True and answer["count"] == 1, f"{answer}")
    check({"rule": "new", "pid": process.pid, "comm": "candidate", "cgroup": group.path}
          in answer["matches"], f"{answer}")
    agent.refused(-32002, "rules.check", {"text": FAULTY})
    agent.never("process.match", 1, pid=process.pid)
    check(agent.call("rules.get")["generation"] == agent.generation, "rules.check applied something")


@pytest.mark.core
def test_rules_check_command(t):
    """The command checks the file itself: with the agent it says what matches and what is near, and where there is
    none, or it may not be asked, it says so in a line and checks all the same."""
    def run(*words):
        return command(COMMAND, "rules", "check", *words, expect=None)

    agent = t.agent(rules(rule("api", comm=t.comm)))
    process = t.spawn("burn_cpu", 20, name="zq-nodejs", cgroup=t.cgroup())
    until(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "zq-nodejs\n", 5, lambda: "no name")
    good, near, bad = (t.folder / f"{name}.json" for name in ("good", "near", "bad"))
    good.write_text(json.dumps(rules(rule("new", prefix="zq-node"))))
    near.write_text(json.dumps(rules(rule("new", comm="zq-node"))))
    bad.write_text('{"version":1,\n"rules":[{"name":"a","match":{"comm":7}}]}')
    socket = ("--socket", agent.socket)
    done = run(good, "--strict", *socket)
    check(done.returncode == 0 and str(process.pid) in done.stdout and not done.stderr, f"{done}")
    done = run(near, *socket)
    check(done.returncode == 0 and 'did you mean "comm": "zq-nodejs"?' in done.stderr, f"{done}")
    check(run(near, "--strict", *socket).returncode == 1, "no failure for a warning")
    check(run(near, "--strict", "--offline", *socket).returncode == 0, "asked, though offline")
    for words in (socket, ("--offline",), ("--socket", "/nonexistent/socket")):
        done = run(bad, *words)
        check(done.returncode == 1 and f"{bad}:2:38: /rules/0/match/comm: is 7; must be" in done.stderr, f"{done}")
    done = run(good, "--socket", "/nonexistent/socket")
    check(done.returncode == 0 and "(No such file or directory): is the service" in done.stderr, f"{done}")
    shared = t.folder / "defaults.json"
    shared.write_text(json.dumps({**rules(rule("new", prefix="zq-node", labels={"b": "own"})),
                                  "defaults": {"labels": {"a": "all", "b": "all"}, "capture": {"during_ms": 700}}}))
    done = run(shared, "--strict", *socket)
    check(done.returncode == 0 and str(process.pid) in done.stdout, f"{done}")
    agent.never("rules.rejected", 0.5)
    check(agent.call("rules.get")["generation"] == agent.generation, "the command applied something")
    agent.call("rules.set", {"text": shared.read_text()})
    got = agent.call("rules.get")["rules"]
    check("defaults" not in got and got["rules"][0]["capture"]["during_ms"] == 700, f"{got}")
    check(agent.wait("process.match", pid=process.pid)["labels"] == {"a": "all", "b": "own"}, "labels are not merged")


@pytest.mark.core
def test_rules_file_is_followed(t):
    """The file is watched: a good change is applied, a faulty one is told and changes nothing."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    agent.write_rules(rules(rule("api", comm=t.comm), rule("more", comm="ruby")))
    applied = agent.wait("rules.applied", generation=agent.generation + 1)
    check(applied["source"] == f"file:{agent.rules_file}" and applied["count"] == 2, f"{applied}")
    process = t.spawn("burn_cpu", 8, name="ruby", cgroup=t.cgroup())
    agent.wait("process.match", pid=process.pid, rule="more", generation=agent.generation + 1)
    agent.write_rules(FAULTY)
    rejected = agent.wait("rules.rejected")
    check(rejected["source"] == f"file:{agent.rules_file}", f"{rejected}")
    check(agent.call("rules.get")["generation"] == agent.generation + 1, "the faulty file changed the set")


@pytest.mark.core
def test_rules_file_behind_links(t):
    """A ConfigMap exchanges a link beside the file; the file of another link is replaced in its own folder. Both are
    read again behind Landlock, and a file that cannot be read is a line."""
    def put(folder, name):
        folder.mkdir(mode=0o755)
        (folder / "rules.json").write_text(json.dumps(rules(rule(name, comm=t.comm))))
        (folder / "rules.json").chmod(0o644)

    def applied(agent, count):
        until(lambda: len(agent.find("rules.applied")) >= count, 5, lambda: f"{agent.stderr()}")
        return agent.call("rules.get")["rules"]["rules"][0]["name"]

    agent = t.agent(rules(rule("none", comm=t.comm)), start=False)
    put(agent.folder / "..1", "first")
    (agent.folder / "..data").symlink_to("..1")
    agent.rules_file.unlink()
    agent.rules_file.symlink_to("..data/rules.json")
    agent.start()
    check(applied(agent, 1) == "first", "the first set")
    put(agent.folder / "..2", "second")
    (agent.folder / "..tmp").symlink_to("..2")
    (agent.folder / "..tmp").rename(agent.folder / "..data")
    check(applied(agent, 2) == "second", "the set behind the exchanged link")
    (agent.folder / "..2" / "rules.json").chmod(0)
    (agent.folder / "..tmp").symlink_to("../none")
    (agent.folder / "..tmp").rename(agent.folder / "..data")
    line = agent.wait("rules.rejected")
    check("cannot be read" in line["faults"][0]["message"], f"{line}")
    check(agent.call("rules.get")["rules"]["rules"][0]["name"] == "second", "the running set")

    other = t.agent(rules(rule("none", comm=t.comm)), start=False)
    put(t.folder / "far", "first")
    other.rules_file.unlink()
    other.rules_file.symlink_to(t.folder / "far" / "rules.json")
    other.start()
    check(applied(other, 1) == "first", "the first set behind a link out of the folder")
    put(t.folder / "new", "second")
    (t.folder / "new" / "rules.json").rename(t.folder / "far" / "rules.json")
    check(applied(other, 2) == "second", "the file that was replaced in its own folder")


@pytest.mark.core
def test_faulty_rules_at_start(t):
    """At start with a faulty file the consumer names every fault and exits; no set is invented."""
    agent = t.agent(FAULTY, start=False)
    agent.start(wait=False)
    status = agent.process.wait(10)
    check(status == 6, f"status {status}")
    text = agent.stderr()
    agent.stop(expect=6)
    said = text + "".join(line.decode() for line in agent.raw)
    for pointer in POINTERS:
        check(pointer in said, f"{pointer} is not named: {said}")
    check(not agent.find("rules.applied"), "a rule set was applied")


@pytest.mark.core
def test_only_the_admin_changes(t):
    """Whoever may connect reads; only root, the admin group and the agent's own user change."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    check("result" in as_user(agent, "daemon", "status"), "the group may not read")
    text = json.dumps(rules())
    for method, params in (("rules.set", {"text": text}), ("session.start", {"rule": "api"})):
        answer = as_user(agent, "daemon", method, params)
        check(answer == {"code": -32001}, f"{method} as daemon: {answer}")
    check(agent.call("status")["control"]["forbidden"] == 2, "forbidden requests are not counted")
    check("result" in as_user(agent, USER, "rules.set", {"text": text}), "its own user may not")


@pytest.mark.core
def test_malformed_requests(t):
    """What is not a request is told so; the connection and the agent go on or close, never hang."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    for sent, code in ((b"not json\n", -32700), (b"[]\n", -32600), (b"7\n", -32600),
                       (b'{"jsonrpc":"2.0","id":1,"method":"nothing.such"}\n', -32601),
                       (b'{"jsonrpc":"2.0","id":1,"method":"rules.set","params":{}}\n', -32602),
                       (b'{"jsonrpc":"2.0","id":1,"method":"rules.set","params":{"text":5}}\n', -32602),
                       (b"\x00\xff\xfe\n", -32700)):
        connection = agent.connect()
        connection.sendall(sent)
        answer = json.loads(read_line(connection))
        connection.close()
        check(answer["error"]["code"] == code, f"{sent}: {answer}")
    connection = agent.connect()
    for part in (b'{"jsonrpc":"2.0","id":7,', b'"method":"sta', b'tus"}\n{"jsonrpc":"2.0","id":8,',
                 b'"method":"watches"}\n'):
        connection.sendall(part)
        time.sleep(0.05)
    answers = b""
    while answers.count(b"\n") < 2:
        answers += connection.recv(65536)
    check([json.loads(a)["id"] for a in answers.splitlines()] == [7, 8], f"{answers[:300]}")
    connection.close()
    check(agent.call("status")["rules"] == 1, "no answer afterwards")


@pytest.mark.core
def test_request_without_end(t):
    """A request line beyond a whole rules file is told and closed; it costs a bounded amount of memory."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    connection = agent.connect()
    sent = 0
    try:
        while sent < 8 << 20:
            sent += connection.send(b"x" * 65536)
    except OSError:
        pass
    check(sent < 8 << 20, "8 MiB of a line were taken")
    connection.close()
    check(agent.call("status")["memory"]["resident_bytes"] < 64 << 20, "memory grew")


@pytest.mark.core
def test_clients_have_a_limit(t):
    """The 65th client is turned away; a new one is served once others have gone."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    clients = [agent.connect() for _ in range(64)]
    for client in clients:
        agent.call("status", connection=client)
    extra = agent.connect(2)
    try:
        answer = agent.call("status", connection=extra)
        check(False, f"the 65th client was served: {str(answer)[:100]}")
    except (RpcError, OSError, ValueError):
        pass
    extra.close()
    for client in clients:
        client.close()
    until(agent.answers, 5, "no answer after 64 clients have gone")


@pytest.mark.core
def test_many_rules(t):
    """10,000 rules are pushed and matched; 10,001 are refused."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    many = [rule(f"r{i}", comm=f"name-{i}") for i in range(10000)]
    answer = agent.call("rules.set", {"text": json.dumps(rules(*many))}, seconds=20)
    check(answer["count"] == 10000, f"{answer}")
    process = t.spawn("burn_cpu", 8, name="name-9999", cgroup=t.cgroup())
    agent.wait("process.match", pid=process.pid, rule="r9999")
    short = [{"name": f"r{i}", "match": {"comm": f"n{i}"}} for i in range(10001)]
    agent.refused(-32002, "rules.set", {"text": json.dumps(rules(*short))})


@pytest.mark.core
def test_the_largest_rules_file(t):
    """A rules file of 1 MiB, nearly all of it quotes, is put in force; what `rules check` takes, `rules set` takes."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    large = rules(*(rule(f"r{i}", comm=f"name-{i}", labels={"q": '"' * 40}) for i in range(5000)))
    text = json.dumps(large)
    check(len(text) < 1 << 20, f"{len(text)} bytes")
    file = t.folder / "large.json"
    file.write_text(text + "\n" * ((1 << 20) - len(text)))
    check("5000 rules" in agent.trocar("rules", "check", "--offline", file).stdout, "rules check")
    check("5000 rules" in agent.trocar("rules", "set", file).stdout, "rules set")
    file.write_text(file.read_text() + "\n")
    check("longer than 1 MiB" in agent.trocar("rules", "set", file, expect=1).stderr, "a byte more")


def check_status(agent, *faults, parts=()):
    """How the agent is, in 12 lines, with these faults. Cgroups that it may not look into are other tests'."""
    said = agent.trocar("status").stdout
    named = [line for line in said.splitlines() if line.startswith("! ") and not re.search("cgroups? cannot be read", line)]
    check(len(named) == len(faults) and all(fault in line for fault, line in zip(faults, named)), said)
    check(said.startswith("not well: trocar" if "\n! " in said else "well: trocar"), said)
    check(len(said.splitlines()) <= 12 and all(part in said for part in parts), said)


@pytest.mark.core
def test_the_command(t):
    """trocar's words against a running agent."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    status = json.loads(agent.trocar("status", "--json").stdout)
    check(status["pid"] == agent.pid and status["watches"] == 1, f"{status}")
    # A broker that has to be started may be late at first.
    until(lambda: "\n! no broker" not in agent.trocar("status").stdout, 5, "no broker")
    check_status(agent, parts=[group.path])
    check(group.path in agent.trocar("watches").stdout, "watches")
    check(json.loads(agent.trocar("rules", "get", "--json").stdout)["generation"] == agent.generation, "rules get")
    new = t.folder / "new.json"
    new.write_text(json.dumps(rules(rule("api", comm=t.comm), rule("b", comm="ruby"))))
    agent.trocar("rules", "check", new)
    agent.trocar("rules", "set", new)
    agent.wait("rules.applied", generation=agent.generation + 1)
    new.write_text(FAULTY)
    refused = agent.trocar("rules", "set", new, expect=None)
    check(refused.returncode != 0, "a faulty set was accepted")
    for pointer in POINTERS:
        check(pointer in refused.stdout + refused.stderr, f"{pointer} is not named: {refused}")
    agent.trocar("capture", "--rule", "api")
    agent.wait("session.end", rule="api")
    listed = agent.trocar("sessions", "--json").stdout
    check(agent.find("session.end")[0]["session"] in listed, f"{listed}")
    check("Usage" in command(COMMAND, "--help").stdout, "no help")
    agent.trocar("status", "--no-such-option", expect=2)
    # The rules file is not what is in force: that is the first thing that a status says, until it is right.
    agent.write_rules(FAULTY)
    rejected = agent.wait("rules.rejected", where=lambda line: line["source"].startswith("file:"))
    check_status(agent, "the rules file was refused ", parts=[rejected["faults"][0]["pointer"]])
    agent.write_rules(rules(rule("api", comm=t.comm)))
    agent.wait("rules.applied", generation=agent.generation + 2)
    check_status(agent)


@pytest.mark.core
def test_the_command_without_an_agent(t):
    """One clear line and a status of its own when nobody answers."""
    done = command(COMMAND, "--socket", t.folder / "nobody.sock", "status", expect=None)
    check(done.returncode == 3 and done.stderr.count("\n") <= 3 and "nobody.sock" in done.stderr,
          f"{done}")


@pytest.mark.core
def test_signals(t):
    """SIGINT ends like SIGTERM and says so; SIGHUP without a file changes nothing."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    agent.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    check(agent.alive(), f"SIGHUP ended it: {agent.stderr()}")
    agent.stop(signal.SIGINT)
    check(agent.events[-1]["reason"] == "SIGINT", f"{agent.events[-1]}")
