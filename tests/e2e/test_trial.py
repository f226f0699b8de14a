# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/answer/* shared/findings/findings.def
"""A blind trial: one of the faults of faults.py, picked at random, happens to a server under load. One rule watches,
the same for all; where no pressure begins a session within some seconds, it is asked for one, as an operator does who
sees that answers are late. The first finding must name the fault. TROCAR_SEED picks; with --long all faults happen."""
import os
import random
import time

import pytest

from faults import FAULTS
from harness import check, check_figure, command, COMMAND, rule, rules

LONG = os.environ.get("TROCAR_LONG") == "1"
SEED = int(os.environ.get("TROCAR_SEED", "0")) or int(time.time())
PICKED = 3
CALM_S = 4
STALL_S = 3
DURING_MS = 2000

WHEN = [{"pressure": "cpu", "some_ms": 300, "window_ms": 1000}, {"pressure": "io", "some_ms": 200, "window_ms": 1000},
        {"pressure": "memory", "some_ms": 50, "window_ms": 1000}]


def session_of(agent, service):
    """The id of the session in which the fault is."""
    deadline = time.monotonic() + STALL_S
    while time.monotonic() < deadline and not agent.find("session.start", cgroup=service.path):
        time.sleep(0.05)
    found = agent.find("session.start", cgroup=service.path)
    if found:
        return found[0]["session"]
    return agent.trocar("capture", "--rule", "shop", "--reason", "answers are late", "--wait", expect=None).stdout.split()[1]


def first_finding(t, name):
    """The cause of the first finding of a fault's session (None: nothing unusual), and whether that is certain."""
    server, _ = FAULTS[name]
    with server(t) as (service, make_fault):
        agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=DURING_MS, when=WHEN)))
        agent.wait("watch.start", cgroup=service.path)
        time.sleep(CALM_S)
        check_figure(not agent.find("session.start"), f"no calm: {agent.find('pressure')}", t.load)
        make_fault()
        end = agent.wait("session.end", seconds=20, session=session_of(agent, service))
    agent.stop()
    (t.folder / "lines").write_bytes(b"".join(agent.raw))
    print(command(COMMAND, "report", "--full", t.folder / "lines").stdout)
    check("findings" in end, f"no findings: {end.get('findings_reason')}")
    print(end["findings"])
    if not end["findings"]:
        return None, True
    return end["findings"][0]["cause"], end["findings"][0]["level"] == "certain"


def names():
    """Those that happen in this run, in their order."""
    chosen = random.Random(SEED).sample(sorted(FAULTS), len(FAULTS))
    return chosen if LONG else chosen[:PICKED]


@pytest.mark.parametrize("name", names())
def test_fault(t, name):
    cause, certain = first_finding(t, name)
    wanted = FAULTS[name][1] or (None,)
    print(f"# {name}: {cause or 'nothing unusual'}{'' if certain else ', perhaps'}; seed {SEED}")
    check(cause in wanted, f"{name}: {cause}, {'certain' if certain else 'perhaps'}, not one of {wanted}; seed {SEED}")
