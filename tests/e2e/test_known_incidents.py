# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/answer/* shared/findings/findings.def
"""The incidents of known_incidents.py: the first line of the report, which is the headline, names the cause; of a healthy
service it names none, and its rule begins no session. 18 minutes for all of them: only with --long, and by -k."""
import os
import re
import time

import pytest

from harness import check, check_figure, command, COMMAND, rule, rules
from known_incidents import HEALTHY, INCIDENTS

DURING_MS = 3000
OF_OTHERS = ("cpu_neighbour", "cpu_demand")  # other work on the machine does this to a healthy service


def session_of(agent, seconds):
    """The id of the session that begins within so many seconds, else of one that is asked for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not agent.find("session.start"):
        time.sleep(0.05)
    found = agent.find("session.start")
    if found:
        return found[0]["session"]
    return agent.trocar("capture", "--rule", "svc", "--reason", "answers are late", "--wait", expect=None).stdout.split()[1]


@pytest.mark.skipif(os.environ.get("TROCAR_LONG") != "1", reason="18 minutes: --long")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_known_incident(t, name):
    incident = INCIDENTS[name]
    with incident.begin(t) as (stage, make_fault):
        agent = t.agent(rules(rule("svc", cgroup=stage.service.path, during_ms=DURING_MS, when=incident.when)))
        agent.wait("watch.start", cgroup=stage.service.path)
        time.sleep(incident.calm_s)
        check_figure(not agent.find("session.start"), f"no calm: {agent.find('session.start')}", t.load)
        make_fault()
        end = agent.wait("session.end", seconds=20, session=session_of(agent, incident.after_s))
    agent.stop()
    (t.folder / "lines").write_bytes(b"".join(agent.raw))
    report = command(COMMAND, "report", "--session", end["session"], t.folder / "lines").stdout
    print(report)
    check("findings" in end, f"no findings: {end.get('findings_reason')}")
    if incident.says is HEALTHY:
        found = [f for f in end["findings"] if f["cause"] not in OF_OTHERS]
        check(not found, f"{found}")
        return
    says = incident.says.format(backend=getattr(stage, "backend", ""))
    check(re.search(says, end["headline"], re.IGNORECASE), f"not {says}: {report}")
    check(end["findings"] and end["findings"][0]["says"] in end["headline"], f"{end['findings']}: {end['headline']}")
