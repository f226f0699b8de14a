# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/cpu/neighbours.h consumer/evidence/cpu/*neighbour* consumer/signals/*neighbour*
# tests: consumer/evidence/cpu/session_neighbours*
# tests: ctl/render/text_report_neighbours*
"""Who had the CPUs while a session ran: the neighbour lines, and `cpu` of session.end."""
import os
import subprocess
import sys
import time

import pytest

from harness import COMMAND, check, check_figure, command, rule, rules
from servers import Witness

pytestmark = pytest.mark.shares_kernel_side


def usage_ms(group):
    """CPU time of a cgroup by the kernel's own account."""
    return int((group.folder / "cpu.stat").read_text().split()[1]) / 1000


def pin(process, cpu):
    """The process and all threads that it has begun; later ones inherit it."""
    for thread in os.listdir(f"/proc/{process.pid}/task"):
        os.sched_setaffinity(int(thread), {cpu})


@pytest.mark.parallel(2)
def test_neighbour_is_named(t):
    """Another cgroup has the CPU that the watched service needs: named, with the CPU time that its cpu.stat says."""
    cpu = max(os.sched_getaffinity(0))
    agent = t.agent(rules(rule("api", comm=t.comm, during_ms=3000,
                               when=[{"pressure": "cpu", "some_ms": 200, "window_ms": 2000}])))
    own, batch = t.cgroup("own"), t.cgroup("batch")
    pin(t.spawn("burn_cpu", 30, 4, 0, name=f"stress{os.getpid()}", cgroup=batch), cpu)
    pin(t.spawn("burn_cpu", 30, 1, 0, name=t.comm, cgroup=own), cpu)
    witness = Witness(batch=lambda: usage_ms(batch), own=lambda: usage_ms(own))
    start = agent.wait("session.start", seconds=15, cgroup=own.path)
    end = agent.wait("session.end", session=start["session"])
    witness.stop()
    span = start["mono_ns"], start["mono_ns"] + end["duration_ms"] * 1000000
    lines = agent.find("neighbour", session=start["session"], signal="neighbours")
    named = [line for line in lines if line.get("neighbour") == batch.path]
    check(len(named) == 1 and named[0]["neighbour_id"] == batch.id, f"{lines}")
    check(named[0]["comm"] == f"stress{os.getpid()}"[:15], f"{named}")
    check(not [line for line in lines if line.get("neighbour") == own.path], f"{lines}")
    check(end["cpu"]["cpus"] == os.cpu_count() and sum(line["cpu_ms"] for line in lines) <= end["cpu"]["others_ms"],
          f"{end['cpu']} {lines}")
    kept = t.folder / "lines"
    kept.write_bytes(b"".join(agent.raw))
    told = command(COMMAND, "report", "--full", kept).stdout
    for line in lines[:3]:  # those are named that had a twentieth of a CPU
        if line.get("neighbour") and "neighbour_uid" not in line and line["cpu_ms"] * 20 >= end["duration_ms"]:
            check(f"{line['neighbour']} {line['cpu_ms'] / end['duration_ms']:.1f}" in told, f"{line}: {told[:1000]}")
    check("other cgroups had " in told and "; this one " in told, told[:1000])
    # By ticks, 97 a second: a hundred of them differ by a tenth from run to run. The exact blame is that of runq.
    for said, name in ((named[0]["cpu_ms"], "batch"), (end["cpu"]["own_ms"], "own")):
        counted = witness.grown(name, *span)
        check_figure(abs(said - counted) <= 0.15 * counted, f"{said} ms said, {counted} ms in cpu.stat", t.load)
    whole = end["cpu"]["cpus"] * end["duration_ms"]
    parts = end["cpu"]["own_ms"] + end["cpu"]["others_ms"] + end["cpu"]["idle_ms"]
    check_figure(abs(parts - whole) <= 0.1 * whole, f"{parts} of {whole} ms: {end['cpu']}", t.load)


def live_shortly(home, seconds):
    """One process after the other in a cgroup of its own in the directory, each for a twentieth of a second."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        folder = home / f"nginx{number}.service"
        folder.mkdir()
        with subprocess.Popen([sys.executable, "-Sc", "while True: pass"], stdin=subprocess.DEVNULL) as process:
            (folder / "cgroup.procs").write_text(str(process.pid))
            time.sleep(0.05)
            process.kill()
        for _ in range(100):
            try:
                folder.rmdir()
                break
            except OSError:  # its process is not quite gone
                time.sleep(0.01)
        number += 1


@pytest.mark.parallel(4)
def test_gone_cgroups_are_their_owners(t):
    """CPU time in cgroups that end before the session does is one row, with the directory of their user."""
    agent = t.agent(rules(rule("api", cgroup=f"/{t.name}-own", signals=["neighbours"])))
    own, home = t.cgroup("own"), t.cgroup("home")
    os.chown(home.folder, 61234, -1)
    t.spawn("burn_cpu", 20, 1, 0, name=t.comm, cgroup=own)
    agent.wait("watch.start", cgroup=own.path)
    session = agent.call("session.start", {"rule": "api", "during_ms": 2000})["session"]
    live_shortly(home.folder, 1.7)
    agent.wait("session.end", session=session)
    lines = agent.find("neighbour", session=session, signal="neighbours")
    mine = [line for line in lines if line.get("neighbour") == home.path]
    check(len(mine) == 1 and mine[0]["neighbour_uid"] == 61234, f"{lines}")
    check(mine[0]["neighbour_cgroups"] >= 4 and mine[0]["neighbour_id"] == home.id, f"{mine}")
    check(not [line for line in lines if line.get("name", "").startswith("nginx")], f"{lines}")


@pytest.mark.parallel(4)
def test_jobs_of_one_slice_are_one(t):
    """Two dozen jobs of root's, each in a cgroup of its own below one slice: none is large, and together they are one
    neighbour."""
    agent = t.agent(rules(rule("api", cgroup=f"/{t.name}-own", signals=["neighbours"])))
    own, batch = t.cgroup("own"), t.cgroup("batch")
    jobs = [batch.folder / f"job{i}.scope" for i in range(24)]
    t.spawn("burn_cpu", 20, 1, 0, name=t.comm, cgroup=own)
    agent.wait("watch.start", cgroup=own.path)
    for job in jobs:
        job.mkdir()
        (job / "cgroup.procs").write_text(str(t.spawn("burn_cpu", 20, 1, 9, name=f"{t.comm}j", cgroup=batch).pid))
    try:
        session = agent.call("session.start", {"rule": "api", "during_ms": 2000})["session"]
        agent.wait("session.end", session=session)
    finally:
        for job in jobs:
            for pid in (job / "cgroup.procs").read_text().split():
                (batch.folder / "cgroup.procs").write_text(pid)
            job.rmdir()
    lines = agent.find("neighbour", session=session, signal="neighbours")
    mine = [line for line in lines if line.get("neighbour") == batch.path]
    check(len(mine) == 1 and mine[0]["neighbour_id"] == batch.id and "neighbour_uid" not in mine[0], f"{lines}")
    alone = [line for line in lines if (line.get("neighbour") or "").startswith(f"{batch.path}/")]
    check(len(jobs) / 2 <= mine[0]["neighbour_cgroups"] <= len(jobs) and len(alone) <= 4, f"{lines}")  # each met by ticks
    check(all(line["cpu_ms"] < mine[0]["cpu_ms"] for line in alone), f"{lines}")


def named(t, signals, **options):
    """session.start, session.end and the lines of a session of a burner with these signals."""
    agent = t.agent(rules(rule("api", cgroup=f"/{t.name}-own", signals=signals)), **options)
    own = t.cgroup("own")
    t.spawn("burn_cpu", 20, 2, 0, name=t.comm, cgroup=own)
    agent.wait("watch.start", cgroup=own.path)
    session = agent.call("session.start", {"rule": "api", "during_ms": 800})["session"]
    start, end = (agent.wait(f"session.{word}", session=session) for word in ("start", "end"))
    return start, end, agent.find("neighbour", session=session, signal="neighbours")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_named_alone(t):
    """A rule that names the signal gets it, with a ledger that closes: what the lines and the own cgroup had."""
    start, end, lines = named(t, ["neighbours"])
    check(start["signals"] == ["oncpu", "neighbours"] and "signals_missing" not in start, f"{start}")
    ledger, cpu = end["ledger"]["neighbours"], end["cpu"]
    check(ledger["lost"] == {} and ledger["attempted"] == ledger["emitted"] > 0, f"{ledger}")
    check(ledger["emitted"] == cpu["own_ms"] + cpu["others_ms"], f"{ledger} {cpu}")
    check(abs(sum(line["cpu_ms"] for line in lines) - cpu["others_ms"]) <= len(lines), f"{lines} {cpu}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_not_named(t):
    """A rule that names others pays for none of it."""
    start, end, lines = named(t, ["oncpu"])
    check(start["signals"] == ["oncpu"] and "cpu" not in end and "neighbours" not in end["ledger"], f"{end}")
    check(not lines, f"{lines}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_missing_without_the_broker(t):
    """No CPU ticks: session.start says why, session.end has null with the same words, and the verdict follows."""
    start, end, lines = named(t, ["neighbours"], broker=False, load=["--always", "none"])
    missing = [one["reason"] for one in start["signals_missing"] if one["signal"] == "neighbours"]
    check(missing and missing[0], f"{start}")
    check(end["cpu"] is None and end["cpu_reason"] == missing[0] and not lines, f"{end}")
    check("neighbours" not in end["ledger"] and end["verdict"] == "inconclusive", f"{end}")
