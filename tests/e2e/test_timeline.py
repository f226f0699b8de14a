# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/signals/timeline* consumer/evidence/waits/session_timeline* ctl/render/text_report_timeline*
"""The lines `timeline`: what each pool of threads did when. A program writes down by the kernel's own clock when it
changes what it does, and the slots of the line are held against that."""
import json
import sys
import time

import machine
from harness import check, check_figure, rule, rules, until

# Waits in a pipe, computes, then sleeps: each for so long that the recorder and the session see some of it.
PROGRAM = """
import os, sys, threading, time
def note(what):
    with open(sys.argv[1], "a") as stream:
        stream.write(f'["{what}", {time.monotonic_ns()}]\\n')
reader, writer = os.pipe()
threading.Timer(float(sys.argv[2]), os.write, (writer, b"x")).start()
note("pipe")
os.read(reader, 1)
note("running")
until = time.monotonic() + 1
while time.monotonic() < until:
    pass
note("sleep")
time.sleep(60)
"""

PIPE_S = 10  # as long as it waits in the pipe: two looks of the recorder, and a second of the session
NEAR, MUCH = 0.9, 1.3  # times as long as the program did it: ticks and looks are two measures
DURING_MS = 3000


def parts(path, slot_ns, from_ns, slots):
    """{part: the slots that lie in it as a whole}, by what the program wrote."""
    notes = [json.loads(line) for line in path.read_text().splitlines()]
    ends = [ns for _, ns in notes[1:]] + [2**63]
    found = {}
    for (what, begin), end in zip(notes, ends):
        found[what] = [i for i in range(slots) if begin <= from_ns + i * slot_ns and from_ns + (i + 1) * slot_ns <= end]
    return found


def test_when(t):
    """Each slot has what the program did then, before the trigger as well."""
    group, notes = t.cgroup(), t.folder / "notes"
    agent = t.agent(rules(rule("when", cgroup=group.path, pre_ms=6000)))
    load = machine.Load()
    process = t.run(sys.executable, "-c", PROGRAM, notes, PIPE_S, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    until(lambda: notes.exists(), 10, "the program has not begun")
    begun_ns = json.loads(notes.read_text().splitlines()[0])[1]
    until(lambda: time.monotonic_ns() > begun_ns + (PIPE_S - 1) * 10**9, 20, "time stands still")
    answer = agent.call("session.start", {"rule": "when", "during_ms": DURING_MS, "signals": ["oncpu", "offcpu"]})
    end = agent.wait("session.end", session=answer["session"], seconds=15)
    lines = agent.find("timeline", session=answer["session"], pid=process.pid)
    check(lines, f"no line: {agent.find('timeline')}")
    line = lines[0]
    slot_ns = line["slot_ms"] * 10**6
    start_ns = agent.find("session.start", session=answer["session"])[0]["mono_ns"]
    from_ns = start_ns - line["slots_before"] * slot_ns
    check(abs(line["slots_before"] * line["slot_ms"] - end["pre_ms"]) < line["slot_ms"], f"{line['slots_before']}: {end['pre_ms']}")
    check(0 <= (line["slots"] - line["slots_before"]) * line["slot_ms"] - end["duration_ms"] < 2 * line["slot_ms"], f"{line['slots']}")
    looked = [i for i, n in enumerate(line["looks"]) if n]
    check(any(i < line["slots_before"] for i in looked), f"no look before the trigger: {line['looks']}")
    check_figure(len([i for i in looked if i >= line["slots_before"]]) > 0.8 * DURING_MS / line["slot_ms"],
                 f"looks: {line['looks']}", load)
    # It wants a CPU for that second; whether it has one is the machine's business.
    wants = [sum(two) for two in zip(*(line.get(key, [0] * line["slots"]) for key in ("running", "queue")))]
    rows = {"running": wants, **line["blocked"]}
    for what, whole in parts(notes, slot_ns, from_ns, line["slots"]).items():
        row = rows.get(what) or [0] * line["slots"]
        seen = [i for i in whole if i >= line["slots_before"]]
        told = sum(row[i] for i in seen) * line["unit_ms"]
        wanted = len(seen) * line["slot_ms"]
        check_figure(NEAR * wanted <= told <= MUCH * wanted, f"{what}: {told}, not {wanted} ms: {row}", load)
        far = [n for i, n in enumerate(row) if i >= line["slots_before"] and not whole[0] - 2 <= i <= whole[-1] + 2] if whole else []
        check_figure(not any(far), f"{what} at another time than in {whole}: {row}", load)
    pipe = [i for i in parts(notes, slot_ns, from_ns, line["slots"])["pipe"] if i < line["slots_before"]]
    # What both looks around the trigger saw is known for the time between them, looked at or not.
    last = max(i for i in looked if i < line["slots_before"])
    between = [i for i in pipe if i > last]
    check(all(rows["pipe"][i] for i in between), f"pipe, last look in {last}: {rows['pipe']}")
    check(all(not rows[what][i] for what in ("running", "sleep") if what in rows for i in between), f"{rows}")
    check(line["running"] and sum(line["running"]), f"it never ran: {line}")


def test_runs_alone(t):
    """Without looks only what ran is told, and the line says that nobody looked."""
    agent = t.agent(rules(rule("when", comm=t.comm)))
    group = t.cgroup()
    process = t.spawn("burn_cpu", 20, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    answer = agent.call("session.start", {"rule": "when", "during_ms": 500, "signals": ["oncpu"]})
    agent.wait("session.end", session=answer["session"], seconds=15)
    (line,) = agent.find("timeline", session=answer["session"])
    check(line["pid"] == process.pid and not any(line["looks"]) and line["blocked"] == {}, f"{line}")
    samples = [s for s in agent.stacks(answer["session"], "oncpu") if s["phase"] == "during"]
    told, wanted = sum(line["running"][line["slots_before"]:]), sum(s["weight_ns"] for s in samples) / 1e6
    check(wanted and abs(told - wanted) <= len(line["running"]), f"{told} ms, stacks have {wanted}")
