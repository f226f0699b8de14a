# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/waits/looks.bpf.c bpf/waits/look_* consumer/sampling/looks* consumer/sampling/wait_*
# tests: consumer/evidence/waits/offcpu*
# tests: consumer/evidence/waits/session_waits* consumer/evidence/waits/wait_places*
"""The signal offcpu: who waited, in which function, for what kind of thing, and for how long."""
import json
import os
import random
import signal
import socket
import time

import pytest

import harness
import programs
from harness import COMMAND, check, check_figure, command, rule, rules

pytestmark = pytest.mark.shares_kernel_side

DURING_MS = 1500

# What waits.c's functions wait for, from before the session until after it.
ALL_ALONG = {"nap_on_purpose": "sleep", "take_ledger_lock": "lock", "hold_ledger_lock": "sleep",
             "read_empty_pipe": "pipe", "receive_no_answer": "socket", "poll_for_work": "idle",
             "ask_catalog": "socket", "select_for_work": "idle", "wait_for_child": "child"}

# What they wait on.
ON = {"take_ledger_lock": "futex", "read_empty_pipe": "pipe", "receive_no_answer": "socket", "wait_for_child": "child",
      "poll_for_work": "poll", "ask_catalog": "poll", "select_for_work": "select",
      "nap_on_purpose": "timer", "hold_ledger_lock": "timer"}
IDLE = ("nap_on_purpose", "hold_ledger_lock", "poll_for_work", "select_for_work")


def capture(t, agent, group, signals=True):
    """A session by request, once the service's processes have their tables. Its end and its stacks by looks."""
    answer = agent.call("session.start", {"cgroup": group.path, "during_ms": DURING_MS})
    end = agent.wait("session.end", session=answer["session"], seconds=15)
    stacks = [s for s in agent.stacks(answer["session"], "offcpu") if "count" in s]
    return end, stacks


def of_function(stacks, name):
    return [s for s in stacks if any(f["fn"] == name for f in s["frames"])]


def weight_ms(stacks):
    return sum(s["weight_ns"] for s in stacks) / 1e6


def halt(t, how, process, group):
    """Halts the process from outside; returns what lets it go on."""
    freeze = group.folder / "cgroup.freeze"
    if how == "frozen":
        freeze.write_text("1")
        t.after.insert(0, lambda: freeze.exists() and freeze.write_text("0"))
        return lambda: freeze.write_text("0")
    os.kill(process.pid, signal.SIGSTOP)
    return lambda: os.kill(process.pid, signal.SIGCONT)


BURNS, WAITS = ("burn_cpu", 30, 1), ("waits", 30, "journal")


@pytest.mark.parallel(2)
@pytest.mark.parametrize("how, workload", [
    pytest.param("stopped", BURNS, id="burns-stopped", marks=pytest.mark.core),
    pytest.param("frozen", WAITS, id="waits-frozen", marks=pytest.mark.core),
    pytest.param("frozen", BURNS, id="burns-frozen"), pytest.param("stopped", WAITS, id="waits-stopped")])
def test_halted(t, how, workload):
    """A program that burns CPU, and one that waits for work, are frozen or stopped: nothing else is said of them."""
    agent = t.agent(rules(rule("halted", comm=t.comm)))
    group = t.cgroup()
    words = [t.folder / word if word == "journal" else word for word in workload[1:]]
    process = t.spawn(workload[0], *words, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    go_on = halt(t, how, process, group)
    time.sleep(0.3)
    end, stacks = capture(t, agent, group)
    go_on()
    mine = [s for s in stacks if s["pid"] == process.pid and s["phase"] == "during"]
    check(mine and {s.get("wait") for s in mine} == {how}, f"{[(s['state'], s.get('wait')) for s in mine]}")
    check(how in end["headline"] and end["findings"][0]["cause"] == how, f"{end['headline']}: {end['findings']}")
    if how == "stopped":  # the sender is this test
        check({(s["on"]["what"], s["on"]["pid"]) for s in mine} == {("sender", os.getpid())}, f"{mine}")
        check(f" (process {os.getpid()})" in end["findings"][0]["says"], f"{end['findings']}")
    pool = agent.find("pool", session=end["session"], pid=process.pid)
    check(pool and all(set(p["blocked_ns"]) == {how} for p in pool), f"{pool}")


@pytest.mark.core
def test_hung(t):
    """A process that no rule matches and that never runs has a table all the same: what it waits in has its callers. Of
    all stacks of the session it is said how far they go."""
    agent = t.agent(rules(rule("waits", comm="t-nobody")))
    group = t.cgroup()
    process = t.spawn("waits", 30, t.folder / "journal", name=t.comm, cgroup=group)
    check(process.stdout.readline() == "ready\n", "the workload did not begin")
    time.sleep(1)
    answer = agent.call("session.start", {"pid": process.pid, "during_ms": DURING_MS})
    end = agent.wait("session.end", session=answer["session"], seconds=15)
    stacks = [s for s in agent.stacks(answer["session"], None) if "count" in s]
    for name in ("take_ledger_lock", "read_empty_pipe", "wait_for_child"):
        mine = [s for s in of_function(stacks, name) if s["signal"] == "offcpu"]
        whole = sum(s["count"] for s in mine if s["quality"] == "complete")
        check(whole > 0.8 * sum(s["count"] for s in mine) > 0, f"{name}: {[(s['count'], s['quality']) for s in mine]}")
    quality = end["stack_quality"]
    for word in ("complete", "truncated", "broken"):
        count = sum(s["count"] for s in stacks if s["quality"] == word)
        check(quality[word] == count == sum(q[word] for q in quality["by_signal"].values()),
              f"{count} samples are {word}: {quality}")


@pytest.mark.parallel(2)
@pytest.mark.core
def test_kinds(t):
    """Each kind of wait is named with its function and what it waits on; one that lasts all along weighs as long as the session."""
    agent = t.agent(rules(rule("waits", comm=t.comm)))
    group = t.cgroup()
    process = t.spawn("waits", 30, t.folder / "journal", name=t.comm, cgroup=group)
    check(process.stdout.readline() == "ready\n", "the workload did not begin")
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(1)
    end, stacks = capture(t, agent, group)
    stacks = [s for s in stacks if s["pid"] == process.pid and s["phase"] == "during"]
    check("offcpu" in end["ledger"], f"{end['ledger']}")
    start = agent.wait("session.start", session=end["session"])
    check(start["looks"] == {"every_ms": 50, "budget_pct": 10}, f"{start}")
    for name, kind in ALL_ALONG.items():
        mine = of_function(stacks, name)
        check({s.get("wait") for s in mine} == {kind} and {s["state"] for s in mine} == {"blocked"},
              f"{name}: {[(s['state'], s.get('wait'), s['weight_ns']) for s in mine]}, not {kind}")
        check(abs(weight_ms(mine) - end["duration_ms"]) <= max(2, 0.05 * end["duration_ms"]),
              f"{name}: {weight_ms(mine)} ms of {end['duration_ms']}")
        check(any(w["fn"] == name and w["wait"] == kind for w in end["waits"]) or len(end["waits"]) >= 5,  # the line has no more room
              f"{name} is not in {end['waits']}")
        check({s["idle"] for s in mine} == {name in IDLE}, f"{name}: idle: {[s['idle'] for s in mine]}")
        check({s["on"]["what"] if "on" in s else None for s in mine} == {ON.get(name)},
              f"{name}: on {[s.get('on') for s in mine]}")
    opener = {"peer_pid": process.pid, "peer_comm": t.comm}
    check(of_function(stacks, "receive_no_answer")[0]["on"] == {"what": "socket", "family": "unix", **opener}, "the pair")
    check(of_function(stacks, "ask_catalog")[0]["on"] == {
        "what": "poll", "asked": 1, "opened": 0, "unix_opened": 1, "path": f"@trocar-catalog-{process.pid}", **opener,
        "unread": 1, "items": 1, "kinds": {"unix": 1}}, f"{of_function(stacks, 'ask_catalog')[0]['on']}")
    check(of_function(stacks, "select_for_work")[0]["on"] == {
        "what": "select", "opened": 0, "items": 2, "kinds": {"pipe": 1, "eventfd": 1}}, "the set of select")
    check(all(s["on"]["name"] == "journal" for s in of_function(stacks, "sync_journal") if "on" in s), "the file")
    syncing = of_function(stacks, "sync_journal")
    # On a disk that writes at once it waits for nothing but a CPU.
    check({s.get("wait") for s in syncing} <= {"io", None}, f"{[(s['state'], s.get('wait')) for s in syncing]}")
    looks = end["looks"]
    # What looks and the exact account tell differently stays as looked, and the session says how much that is.
    apart_ms = looks.get("scale", {}).get("left", {}).get("looked_ms", 0)
    check(weight_ms(syncing) <= end["duration_ms"] * 1.05 + apart_ms, f"{weight_ms(syncing)} ms of one thread: {looks}")
    check(looks["passes"] >= 5 and looks["as_before"] > looks["passes"] * 5 and looks["cut"] == 0, f"{looks}")
    check(end["ledger"]["offcpu"]["lost"] == {}, f"{end['ledger']}")
    check_figure(looks["first_ms"] <= 25, f"the first look came {looks['first_ms']} ms after the trigger", t.load)


@pytest.mark.parallel(2)
def test_ledger(t):
    """What the ledger says was emitted is what the lines count."""
    agent = t.agent(rules(rule("waits", comm=t.comm)))
    group = t.cgroup()
    process = t.spawn("waits", 30, t.folder / "journal", name=t.comm, cgroup=group)
    process.stdout.readline()
    agent.wait("watch.start", cgroup=group.path)
    for _ in range(3):
        end, stacks = capture(t, agent, group)
        entry = end["ledger"]["offcpu"]
        written = sum(s["count"] for s in stacks)
        check(entry["attempted"] == entry["emitted"] + sum(entry["lost"].values()), f"{entry}")
        check(written == entry["emitted"], f"{written} in the lines, {entry}")
        time.sleep(0.2)


@pytest.mark.parallel(2)
def test_sockets(t):
    """A client waits for its server's answer and says where; the server that waits for a request is idle."""
    agent = t.agent(rules(rule("waits", comm="python3"), rule("other", comm=t.comm)))
    group = t.cgroup()
    server = socket.create_server(("127.0.0.1", 0))
    while server.getsockname()[1] >= 32768:  # the port of a service, not one that a client gets
        server.close()
        server = socket.create_server(("127.0.0.1", random.randrange(20000, 32000)))
    port = server.getsockname()[1]
    client = programs.start(t, group, "/usr/bin/python3", "-c",
                            f"import socket; socket.create_connection(('127.0.0.1', {port})).recv(1)")
    accepted, _ = server.accept()
    waiting = programs.start(t, group, "/usr/bin/python3", "-c",
                             "import socket, sys; socket.socket(fileno=int(sys.argv[1])).recv(1)", accepted.fileno(),
                             pass_fds=[accepted.fileno()])
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(1)
    _, stacks = capture(t, agent, group)
    told = {s["pid"]: s for s in stacks if s.get("on", {}).get("protocol") == "tcp"}
    asks, serves = told[client.pid], told[waiting.pid]
    check(asks["on"]["peer"] == f"127.0.0.1:{port}" and not asks["idle"], f"{asks}")
    check(serves["on"]["local"] == f"127.0.0.1:{port}" and serves["idle"], f"{serves}")
    check(asks["on"]["state"] == serves["on"]["state"] == "established", f"{asks} {serves}")
    accepted.close()
    server.close()


@pytest.mark.parallel(2)
def test_pictures(t):
    """The report shows where threads waited before the stacks; folded stacks of offcpu weigh the time of waiting."""
    agent = t.agent(rules(rule("waits", comm=t.comm)))
    group = t.cgroup()
    process = t.spawn("waits", 30, t.folder / "journal", name=t.comm, cgroup=group)
    process.stdout.readline()
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(1)
    end, _ = capture(t, agent, group)
    lines = t.folder / "lines"
    lines.write_text("".join(json.dumps(e) + "\n" for e in agent.events))
    report = command(COMMAND, "report", "--full", lines).stdout
    rows = report[report.index("\nwaits: of threads, in"):]
    check(0 < rows.find("take_ledger_lock") < rows.find("offcpu"), report)
    for function, words in (("ask_catalog", f"answers of the unix socket @trocar-catalog-{process.pid}"),
                            ("select_for_work", "1 pipe, 1 eventfd")):
        shown = [w for w in end["waits"] if w["fn"] == function]
        told = [row.split()[2] for row in rows.splitlines() if function in row and row.endswith(f"  {words}")]
        check(not shown or "1" in told, report)
    folded = command(COMMAND, "folded", "--signal", "offcpu", "--phase", "during", "--count", "ns", lines).stdout
    row = next(line for line in folded.splitlines() if "take_ledger_lock" in line)
    weight = int(row.rsplit(" ", 1)[1]) / 1e6
    check(abs(weight - end["duration_ms"]) <= 0.05 * end["duration_ms"], f"{row}: not {end['duration_ms']} ms")
    picture = command(COMMAND, "flamegraph", "--signal", "offcpu", lines).stdout
    check("take_ledger_lock" in picture and ">lock</text>" in picture, "not in the picture")
    # What ran and what waited is the time of all threads: those of this process, as many as it has.
    wall = command(COMMAND, "folded", "--signal", "wall", "--phase", "during", "--by", "pid", lines).stdout
    rows = [line.rsplit(" ", 1) for line in wall.splitlines() if line.startswith(f"pid {process.pid};")]
    told, wanted = sum(int(n) for _, n in rows) / 1e6, 11 * end["duration_ms"]
    check(abs(told - wanted) <= 0.1 * wanted, f"{told} ms of {wanted}: {wall}")
    check({stack.rpartition(";")[2] for stack, _ in rows} >= {"[lock]", "[idle]", "[pipe]", "[socket]", "[child]"}, wall)


def recorded(agent):
    return agent.call("status")["looks"]


def passes(agent, count):
    """Waits until the recorder has looked so many times more."""
    until = recorded(agent)["passes"] + count
    harness.until(lambda: recorded(agent)["passes"] >= until, 10 + 6 * count, f"{count} looks of the recorder")


def of_phase(stacks, name, phase):
    return [s for s in of_function(stacks, name) if s["phase"] == phase]


@pytest.mark.parallel(2)
def test_before(t):
    """Who waited before the trigger is there, by looks of the recorder; who waited all along weighs as long as the pre-roll."""
    agent = t.agent(rules(rule("waits", comm=t.comm)))
    group = t.cgroup()
    process = t.spawn("waits", 60, t.folder / "journal", name=t.comm, cgroup=group)
    process.stdout.readline()
    agent.wait("watch.start", cgroup=group.path)
    passes(agent, 3)
    end, stacks = capture(t, agent, group)
    looks, entry = end["looks"]["before"], end["ledger"]["offcpu"]
    check(looks["passes"] >= 1 and looks["cut"] == 0 and looks["last_ms"] <= 6000, f"{looks}")
    check({s["phase"] for s in stacks} == {"before", "onset", "during"}, "one phase is missing")
    check(abs(end["onset_ms"] - end["pre_ms"] / 2) <= 1, f"the onset of a request is half of the pre-roll: {end}")
    own = [s for s in stacks if s["pid"] == process.pid]
    for name, kind in ALL_ALONG.items():
        mine = of_phase(own, name, "before") + of_phase(own, name, "onset")
        check({s.get("wait") for s in mine} == {kind}, f"{name}: {mine}")
        check(abs(weight_ms(mine) - end["pre_ms"]) <= 0.05 * end["pre_ms"], f"{name}: {weight_ms(mine)} ms of {end['pre_ms']}")
        check(abs(weight_ms(of_phase(own, name, "onset")) - end["onset_ms"]) <= 0.05 * end["pre_ms"], f"{name}: {mine}")
        check(1 <= sum(s["count"] for s in mine) <= looks["passes"] + 1, f"{name}: {mine}, {looks}")
        check(abs(weight_ms(of_phase(own, name, "during")) - end["duration_ms"]) <= 0.05 * end["duration_ms"], name)
    check(entry["attempted"] == entry["emitted"] + sum(entry["lost"].values()), f"{entry}")
    check(sum(s["count"] for s in stacks) == entry["emitted"], f"{entry}")
    cost = recorded(agent)
    check(cost["threads"] >= 9 and 0 < cost["bytes"] < 4 << 20 and cost["cpu_ms"] > 0 and cost["evicted"] == 0, f"{cost}")


@pytest.mark.parallel(2)
def test_onset(t):
    """The time over which pressure was measured is a phase of its own, also of waits."""
    agent = t.agent(rules(rule("waits", comm=t.comm, when=[{"pressure": "cpu", "some_ms": 300, "window_ms": 2000}],
                               signals=["offcpu"], cooldown_ms=1000)))
    group = t.cgroup()
    process = t.spawn("waits", 60, t.folder / "journal", name=t.comm, cgroup=group)
    process.stdout.readline()
    agent.wait("watch.start", cgroup=group.path)
    passes(agent, 2)
    known = len(agent.events)
    for _ in range(2 * os.cpu_count()):
        t.spawn("burn_cpu", 20, name=t.comm, cgroup=group)
    # Other load may have made one before, while the threads were new.
    start = agent.wait("session.start", seconds=15, since=known, cgroup=group.path)
    end = agent.wait("session.end", seconds=20, session=start["session"])
    stacks = [s for s in agent.stacks(start["session"], "offcpu") if "count" in s]
    own = [s for s in stacks if s["pid"] == process.pid]
    check(start["onset_ms"] > 0, f"{start}")
    for name in ALL_ALONG:
        told = weight_ms(of_phase(own, name, "onset")), weight_ms(of_phase(own, name, "before"))
        wanted = start["onset_ms"], start["pre_ms"] - start["onset_ms"]
        check_figure(all(abs(a - b) <= max(20, 0.05 * b) for a, b in zip(told, wanted)), f"{name}: {told}, not {wanted} ms", t.load)
    check(sum(s["count"] for s in stacks) == end["ledger"]["offcpu"]["emitted"], f"{end['ledger']}")


@pytest.mark.parallel(2)
def test_scaled(t):
    """Where the exact times of the threads are known, the stacks of a pool and kind weigh them, however short the waits."""
    agent = t.agent(rules(rule("waits", comm=t.comm, signals=["oncpu", "offcpu", "pools"])), broker=True)
    group = t.cgroup()
    process = t.spawn("timed_waits", 30, t.folder / "measured", name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(1)
    answer = agent.call("session.start", {"rule": "waits", "during_ms": 4000})
    end = agent.wait("session.end", session=answer["session"], seconds=15)
    stacks = [s for s in agent.stacks(answer["session"], "offcpu") if s.get("phase") == "during" and "count" in s]
    scale = end["looks"]["scale"]
    check(scale["groups"] >= 4 and scale["least"] <= scale["most"], f"{scale}")
    check(end["looks"]["free_cpu_ms"] <= end["looks"]["cpu_ms"], f"{end['looks']}")
    lines = {line["pool"]: line for line in agent.find("pool", session=answer["session"]) if line.get("pid") == process.pid}
    exact, weighed = 0, 0
    for name, line in lines.items():
        mine = [s for s in stacks if s["comm"].rstrip("0123456789") == name]
        for kind, blocked_ns in line["blocked_ns"].items():
            told = [s for s in mine if s.get("wait") == kind]
            # The accounts begin when the broker has attached the program: their share of the time since counts.
            wanted = blocked_ns * end["duration_ms"] / (line["wall_ns"] / line["threads"] / 1e6) / 1e6
            # Beyond a factor of 2 the consumer scales nothing; near it the two may differ on which side it is.
            if sum(s["count"] for s in told) < 10 or not 0.55 <= wanted / weight_ms(told) <= 1.8:
                continue
            exact, weighed = exact + wanted, weighed + weight_ms(told)
            check_figure(abs(weight_ms(told) - wanted) <= max(15, 0.01 * wanted),
                         f"{name} {kind}: {weight_ms(told)}, not {wanted}", t.load)
    check(exact > 4 * 0.8 * end["duration_ms"], f"{exact} of {weighed} ms: {lines}")
