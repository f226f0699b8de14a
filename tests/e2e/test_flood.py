# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/maps/event_limit.h consumer/telemetry/losses* consumer/discovery/process_events*
"""Floods: another user renames, forks or starts programs under a service's name as fast as the machine goes. The
service's starts are seen all the same, the lines stay few, and the agent answers."""
import subprocess
import sys
import time

from harness import check, check_figure, rule, rules, until
from machine import Load
from probe import Probe, show

STARTS = 8
SECONDS = 9
STORM_SECONDS = 4
FLOODER = 61234  # a user of nobody's
LINES_A_MINUTE = 600
ANSWER_MS = 200


def beside(t, how, processes=2, same_cgroup=False):
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)), arguments=["--lines-per-minute", LINES_A_MINUTE])
    home = t.cgroup("service")
    place = home if same_cgroup else t.cgroup("flooder")
    began = len(agent.raw)
    for _ in range(processes):
        t.spawn("flooder", SECONDS, how, t.comm, name=t.comm if how == "exec" else None, cgroup=place, uid=FLOODER)
    time.sleep(1)
    asker, load = Probe(agent), Load()
    for _ in range(STARTS):
        service = t.spawn("burn_cpu", 20, name=t.comm, cgroup=home)
        # By its event; a scan that repairs what was held back may have met it a moment before.
        agent.wait("process.match", pid=service.pid, found="exec", seconds=4)
        t.end(service)
        agent.wait("process.exit", pid=service.pid, seconds=4)
        time.sleep(0.3)
    answers = asker.end()
    show(answers, "status_ms", "net_ms")
    slowest_ms = max(row["net_ms"] for row in answers)
    lines = len(agent.raw) - began
    totals = agent.call("status")["totals"]
    kinds = {kind: len(agent.find(kind)) for kind in {e["type"] for e in agent.events}}
    print(f"# {how}: {lines} lines ({kinds}), {totals}", flush=True)
    check(lines <= LINES_A_MINUTE * 2 + 100, f"{lines} lines")  # a minute may end meanwhile
    check_figure(slowest_ms < ANSWER_MS, f"an answer took {slowest_ms:.0f} ms", load)
    check(totals["events_lost"] == 0, f"{totals}")
    return agent, totals


def test_renames(t):
    """A process that takes and drops the name: four of its renames a second are told, and no watch comes and goes."""
    agent, totals = beside(t, "rename")
    check(totals["events_limited"] > 1000, f"{totals}")
    check(len(agent.find("watch.start")) <= 2 + STARTS, f"{len(agent.find('watch.start'))} watches began")
    check(agent.find("error", code="events_limited"), "no line tells of the renames that were held back")


def test_forks(t):
    """A fork storm under the name: its lines are cut, and a line says how many."""
    agent, totals = beside(t, "fork")
    check(totals["events_over_quota"] + totals["lines_left_out"] > 1000, f"{totals}")
    agent.stop()
    left_out = agent.find("error", code="lines_left_out", rule="api")
    check(sum(e["left_out"].get("process.match", 0) for e in left_out) > 0, f"{left_out}")
    stop = agent.find("agent.stop")[0]["totals"]
    check(sum(e["count"] for e in left_out) == stop["lines_left_out"], f"{left_out} {stop}")


def test_execs(t):
    """The same with programs that are started."""
    beside(t, "exec")


def test_in_the_same_cgroup(t):
    """Another user's fork storm in the very cgroup of the service: users are told apart."""
    beside(t, "fork", same_cgroup=True)


CROWD = """
import threading, time
threading.stack_size(65536)
for _ in range(3000):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("there", flush=True)
time.sleep(60)
"""


def crowd(t):
    """Threads that sleep: whoever walks over all tasks of the machine meets them."""
    process = subprocess.Popen([sys.executable, "-c", CROWD], stdout=subprocess.PIPE, text=True)
    t.processes.append(process)
    check(process.stdout.readline() == "there\n", "no crowd")


def test_matched_beside_many_tasks(t):
    """A storm of matched starts, each with a line, on a machine of many threads: no turn of the loop lasts as long as it."""
    crowd(t)
    agent = t.agent(rules(rule("api", comm=t.comm)),
                    arguments=["--lines-per-minute", 1 << 20, "--health-seconds", 2])
    home = t.cgroup("service")
    for _ in range(3):
        t.spawn("flooder", STORM_SECONDS, "fork", t.comm, cgroup=home)
    asker, load = Probe(agent), Load()
    time.sleep(STORM_SECONDS)
    answers = asker.end()
    show(answers, "status_ms", "net_ms")
    slowest_ms = max(row["net_ms"] for row in answers)
    turns_ms = [line["longest_turn_ms"] for line in agent.find("health")]
    matched = len(agent.find("process.match"))
    print(f"# {matched} matches, turns {turns_ms} ms", flush=True)
    check(matched > 500, f"only {matched} matches")
    check(turns_ms, "no health line during the storm")
    check_figure(slowest_ms < ANSWER_MS, f"an answer took {slowest_ms:.0f} ms", load)
    check_figure(max(turns_ms) < 100, f"turns of {turns_ms} ms", load)


def test_state_is_repaired(t):
    """The last of a thousand renames, which was not told, is known once the flood is over."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    process = t.spawn("flooder", 2, "rename", t.comm, cgroup=group, uid=FLOODER)
    agent.wait("process.match", pid=process.pid)
    process.wait()
    until(lambda: agent.call("status")["watches"] == 0, 6, lambda: f"still watched: {agent.call('watches')}")
    check(agent.call("status")["processes"] == 0, "a process that is gone is known")
