# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/conditions/quiet* consumer/conditions/habit*
"""A rule with quiet_pct: a service that stops using its CPU time is captured, where pressure sees nothing; one that is
idle, slower or started anew is not. What is usual is learnt over a minute, so each of these takes two: those in which nothing must happen run only with --long, and
tests/unit/consumer/conditions has the usual check's."""
import os
import time

import pytest

from harness import check, rule, rules
from servers import Postgres, Service

pytestmark = pytest.mark.parallel(6)  # each works for a third of a CPU
LONG = pytest.mark.skipif(os.environ.get("TROCAR_LONG") != "1", reason="two minutes of nothing: only with --long")
CALM_S = 90         # learnt, and what is within a window and a drain of the stall
LATER_S = 30
WINDOW_MS, DRAIN_MS = 5000, 5000
WHEN = {"quiet_pct": 10, "window_ms": WINDOW_MS}


def watched(t, *words, workload="basket_lock"):
    """An agent with such a rule, and the workload that it watches, with when it began."""
    agent = t.agent(rules(rule("shop", comm=t.comm, when=[WHEN])))
    group = t.cgroup()
    began = time.monotonic()
    process = t.spawn(workload, *words, name=t.comm, cgroup=group)
    line = agent.wait("watch.start", cgroup=group.path)
    check(line["quiet"]["by"] == "reading" and line["resources"] == [] and line["follow"] == "none", line)
    return agent, group, began, process


def state(agent):
    return agent.call("watches")[0]["quiet"]


def usage_ms(group):
    """CPU time of a cgroup by the kernel's own account."""
    return int((group.folder / "cpu.stat").read_text().split()[1]) / 1000


def stalled_us(group):
    """What pressure has seen of the cgroup so far, by resource."""
    totals = {}
    for resource in ("cpu", "memory", "io"):
        some = (group.folder / f"{resource}.pressure").read_text().splitlines()[0]
        totals[resource] = int(some.rpartition("total=")[2])
    return totals


def test_quiet_on_a_lock(t):
    """The session comes within a window and a drain of the stall; its lines say why, and have the calm time before."""
    agent, group, began, _ = watched(t, CALM_S + LATER_S, 30, CALM_S, 0)
    since, before_ms = time.monotonic(), usage_ms(group)
    agent.never("session.start", seconds=CALM_S - 5 - (time.monotonic() - began))
    really_pct = (usage_ms(group) - before_ms) / (time.monotonic() - since) / 10
    check(state(agent)["state"] == "follows", state(agent))
    late_s = (WINDOW_MS + DRAIN_MS) / 1000 + 2
    start = agent.wait("session.start", seconds=5 + late_s, cgroup=group.path)
    said = start["reason"]["quiet"]
    check(said["share_pct"] < 10 and said["window_ms"] == WINDOW_MS, said)
    check(WINDOW_MS * 0.9 <= said["measured_ms"] <= WINDOW_MS + DRAIN_MS, said)
    usual_pct = said["mean_cpu_ms"] * 100 / said["measured_ms"]
    check(abs(usual_pct - really_pct) < 0.2 * really_pct, f"usual {usual_pct} % of a CPU, {really_pct} in cpu.stat: {said}")
    check(said["cpu_ms"] < said["mean_cpu_ms"] / 10, f"{said}")
    check(start["onset_ms"] == said["began_ms"] >= said["measured_ms"] and start["pre_ms"] > said["measured_ms"] + 2000, start)
    end = agent.wait("session.end", session=start["session"])
    check(f"{group.path} used {int(said['share_pct'])} % of its usual CPU time in " in end["headline"],
          end["headline"])
    check("its threads waited " in end["headline"] and " s for locks, " in end["headline"] and
          " of it in handle_request" in end["headline"], end["headline"])
    before = [s for s in agent.stacks(start["session"]) if s["phase"] == "before"]
    check(any(f["fn"] == "compute_checkout" for s in before for f in s["frames"]), "no calm time in the recorder")
    # One session of one stall, and no pressure that would show it.
    check(state(agent)["state"] == "quiet", state(agent))
    before = stalled_us(group)
    agent.never("session.start", seconds=11, since=agent.events.index(end))
    grown = {resource: total - before[resource] for resource, total in stalled_us(group).items()}
    check(sum(grown.values()) < 10000, f"pressure saw the stall, in us of 11 s: {grown}")
    check(not agent.find("pressure") and not agent.find("trigger.held"), "pressure, or held")


@LONG
def test_quiet_idle(t):
    """A service that never does much is never quiet, also while it does nothing at all."""
    agent, _, began, _ = watched(t, CALM_S + LATER_S, "threads", 8, workload="crowd")
    agent.never("session.start", seconds=CALM_S + LATER_S - 5 - (time.monotonic() - began))
    check(state(agent)["state"] == "idle", state(agent))


@LONG
def test_quiet_half(t):
    """Half of its usual time is no tenth."""
    agent, _, began, _ = watched(t, CALM_S + LATER_S, 30, CALM_S, 15)
    agent.never("session.start", seconds=CALM_S + LATER_S - 5 - (time.monotonic() - began))
    check(state(agent)["state"] == "follows", state(agent))


@LONG
def test_quiet_restart(t):
    """Between the end of its processes and new ones that are slow to begin nothing is quiet; it learns anew."""
    agent, group, began, process = watched(t, 300, 30)
    agent.never("session.start", seconds=CALM_S - 10 - (time.monotonic() - began))
    check(state(agent)["state"] == "follows", state(agent))
    t.end(process)
    # A minute of lock, then work: as a service that waits for another one when it starts.
    t.spawn("basket_lock", 120, 30, 0, 0, 20, name=t.comm, cgroup=group)
    agent.never("session.start", seconds=30)
    check(state(agent)["state"] == "learns", state(agent))


def test_quiet_postgres(t):
    """PostgreSQL whose table somebody locks: its clients wait, pressure sees nothing, and a session comes."""
    service = Service(t, "db")
    folder = t.folder / "database"
    folder.mkdir()
    postgres = Postgres(service, folder)
    postgres.table("orders", 16)
    agent = t.agent(rules(rule("db", cgroup=service.path, when=[WHEN])))
    agent.wait("watch.start", cgroup=service.path)
    postgres.repeat("SELECT sum(length(pad)) FROM orders", 0.1)
    agent.never("session.start", seconds=CALM_S)
    check(state(agent)["state"] == "follows", state(agent))
    postgres.session("BEGIN; LOCK TABLE orders; SELECT pg_sleep(40); COMMIT;")
    start = agent.wait("session.start", seconds=(WINDOW_MS + DRAIN_MS) / 1000 + 2, cgroup=service.path)
    check(start["reason"]["quiet"]["share_pct"] < 10, start["reason"])
    end = agent.wait("session.end", session=start["session"])
    check(" of its usual CPU time in " in end["headline"], end["headline"])
    check(any(s["comm"] == "postgres" and s["phase"] == "before" for s in agent.stacks(start["session"])), "no calm time")
