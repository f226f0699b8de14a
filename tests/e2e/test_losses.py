# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/output/* consumer/telemetry/health* consumer/telemetry/losses* consumer/sampling/drain*
# tests: consumer/kernel/ring* consumer/signals/ledger* shared/abi/drops.def
"""Where something cannot be had: full rings, readers that stop, full disks, dead consumers. Nothing may
vanish: each loss is in a line with its number."""
import fcntl
import json
import os
import pathlib
import re
import signal
import time

import pytest

import harness
from harness import check, check_figure, rule, rules, until


def burn(t, agent, *words, group=None, name=None, workload="burn_cpu"):
    group = group or t.cgroup()
    process = t.spawn(workload, *words, name=name or t.comm, cgroup=group)
    until(lambda: any(w["cgroup"] == group.path for w in agent.call("watches")), 8, "no watch")
    return group, process


def cpu_seconds(process):
    """What its threads have used so far."""
    words = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_ring_too_small(t):
    """The smallest ring at the highest rate, and a consumer that the machine does not run for half a
    second: the loss is in the ledger and the verdict says so."""
    agent = t.agent(rules(rule("api", comm=t.comm)),
                    load=["--samples-ring-kib", "64", "--hz", "999"])
    group, _ = burn(t, agent, 20, 100, workload="deep")
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 2500})["session"]
    time.sleep(0.5)
    agent.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    agent.process.send_signal(signal.SIGCONT)
    end = agent.wait("session.end", session=session)
    ledger = end["ledger"]["oncpu"]
    check(ledger["lost"].get("ring_full", 0) > 0, f"nothing lost in a ring of 64 KiB: {ledger}")
    check(end["verdict"] in ("partial", "inconclusive"), f"{end['verdict']}")
    share = sum(ledger["lost"].values()) / ledger["attempted"]
    check(abs(end["lost_share"] - share) < 0.01, f"lost_share {end['lost_share']}, not {share}")
    check((end["verdict"] == "inconclusive") == (share > 0.5), f"{end['verdict']} at {share}")
    error = agent.wait("error", code="samples_full")
    check("samples-ring-kib" in error["hint"] or "samples-ring-kib" in error["message"], f"{error}")


@pytest.mark.parallel(3)
def test_health(t):
    """What the agent costs, and what the recorder lost outside of any session: the minute's line says it."""
    agent = t.agent(rules(rule("api", comm=t.comm)), arguments=["--health-seconds", 5],
                    load=["--samples-ring-kib", "64", "--hz", "999"])
    _, process = burn(t, agent, 60, 100, workload="deep")
    line = agent.wait("health", seconds=20)
    check(4900 <= line["interval_ms"] < 15000 and line["watches"] == 1, f"{line}")
    check(0 < line["emitted"] <= line["attempted"], f"{line}")
    check_figure(line["attempted"] > 50, f"{line}", t.load)
    check(0 < line["cpu_us"] < 1000 * line["interval_ms"], f"{line}")
    check(abs(line["cpu_pct"] - line["cpu_us"] / line["interval_ms"] / 10) < 0.01, f"{line}")
    check(1 << 20 < line["resident_bytes"] < 64 << 20, f"{line}")
    mark = line["mono_ns"]
    agent.process.send_signal(signal.SIGSTOP)
    used_s = cpu_seconds(process)
    until(lambda: cpu_seconds(process) > used_s + 2, 20, "the load does not run")
    agent.process.send_signal(signal.SIGCONT)
    line = agent.wait("health", seconds=25,  # a ring of 64 KiB does not hold what 2 s of a CPU give
                      where=lambda h: h["mono_ns"] > mark and h["lost"].get("ring_full", 0) > 50)
    lost = line["lost"]
    ticks = sum(lost.get(name, 0) for name in ("ring_full", "stack_kernel", "stack_user", "stale"))
    check(abs(line["attempted"] - line["emitted"] - ticks) <= 2, f"{line}")  # read while they tick
    samples = line["rings"][0]
    check(samples["name"] == "samples" and samples["peak_bytes"] > samples["size_bytes"] / 2, f"{line}")


@pytest.mark.parallel(2)
def test_output_reader_stops(t):
    """A reader that stops reading stops nothing: the drain goes on, whole lines drop and are counted."""
    agent = t.agent(rules(rule("deep", prefix="deep", cooldown_ms=0)), reading=False,
                    arguments=["--queue-kib", 64])
    groups = [burn(t, agent, 40, 100, name=f"deep{i}", workload="deep", group=t.cgroup(f"g{i}"))[0]
              for i in range(4)]
    for _ in range(20):
        for group in groups:
            try:
                agent.call("session.start", {"cgroup": group.path, "during_ms": 300})
            except harness.RpcError as error:
                check(error.code == -32003, f"{error}")
        time.sleep(0.4)
        status = agent.call("status")
        if status["output"]["dropped_lines"] > 0:
            break
    check(status["output"]["dropped_lines"] > 0, f"nothing dropped: {status['output']}")
    check(status["output"]["queued_bytes"] <= status["output"]["queue_bytes"], f"{status['output']}")
    before = agent.call("status")["totals"]["samples"]
    until(lambda: agent.call("status")["totals"]["samples"] > before, 8, "the drain stands still")
    agent.reading.set()
    error = agent.wait("error", code="queue_full")
    check(error["count"] > 0, f"{error}")
    agent.stop()
    stop = agent.find("agent.stop")[0]
    check(stop["totals"]["lines_dropped"] >= status["output"]["dropped_lines"], f"{stop}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_output_reader_goes(t):
    """A reader that closes its end does not end the agent by SIGPIPE."""
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False)
    agent.output = agent.folder / "fifo"
    os.mkfifo(agent.output, 0o666)
    os.chmod(agent.output, 0o666)
    reader = os.open(agent.output, os.O_RDONLY | os.O_NONBLOCK)
    agent.start()
    os.close(reader)
    burn(t, agent, 5)
    time.sleep(0.5)
    check(agent.alive(), f"the consumer ended: {agent.stderr()}")
    check(agent.call("status")["output"]["kind"] == "fifo", "the kind of the output is not fifo")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_disk_full(t):
    """A full disk is said, retried and counted; the lines that are there are whole."""
    agent = t.agent(rules(rule("deep", comm="deep", cooldown_ms=0)), start=False)
    where = t.tmpfs("2m")  # room for what is held back meanwhile
    agent.output = where / "events.jsonl"
    agent.start()
    group, _ = burn(t, agent, 60, 100, name="deep", workload="deep")
    filler = where / "filler"
    with open(filler, "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass
    for _ in range(30):
        try:
            agent.call("session.start", {"cgroup": group.path, "during_ms": 200})
        except harness.RpcError as error:
            check(error.code == -32003, f"{error}")
        time.sleep(0.3)
        if agent.call("status")["output"]["write_errors"]:
            break
    output = agent.call("status")["output"]
    check(output["write_errors"] > 0 and output["last_error"] == "ENOSPC", f"{output}")
    filler.unlink()

    def said():
        text = agent.output.read_bytes()
        return any(json.loads(line)["type"] == "error" and json.loads(line)["code"] == "output_write"
                   for line in text.splitlines(keepends=True) if line.endswith(b"\n"))

    until(said, 10, "no line tells of the full disk once there is room")
    agent.stop()
    lines = agent.output.read_bytes().splitlines(keepends=True)
    agent.raw = lines
    check(json.loads(lines[-1])["type"] == "agent.stop", f"the last line: {lines[-1][:200]}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_file_and_rotation(t):
    """SIGHUP opens the output anew: logrotate works, no line is lost or torn."""
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False)
    agent.output = agent.control / "events.jsonl"
    agent.start()
    burn(t, agent, 20)
    old = agent.output.with_suffix(".1")
    agent.output.rename(old)
    agent.process.send_signal(signal.SIGHUP)
    until(agent.output.exists, 5, "no new file after SIGHUP")
    session = agent.call("session.start", {"rule": "api", "during_ms": 300})["session"]
    until(lambda: session in agent.output.read_text() and "session.end" in agent.output.read_text(),
          8, "the session is not in the new file")
    agent.stop()
    agent.raw = old.read_bytes().splitlines(True) + agent.output.read_bytes().splitlines(True)
    kinds = [json.loads(line)["type"] for line in agent.raw]
    check(kinds[0] == "agent.start" and kinds[-1] == "agent.stop", f"{kinds}")
    totals = json.loads(agent.raw[-1])["totals"]
    check(totals["lines_dropped"] == 0, f"{totals}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_killed_in_a_session_and_restarted(t):
    """kill -9 in a session: the kernel side stays, the next consumer says the gap and the cut session."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group, process = burn(t, agent, 30)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 20000})["session"]
    agent.wait("session.start", session=session)
    time.sleep(0.5)
    agent.stop(signal.SIGKILL, expect=-signal.SIGKILL)
    if agent.raw and not agent.raw[-1].endswith(b"\n"):
        agent.raw.pop()  # what SIGKILL cut
    time.sleep(1)
    mark = len(agent.events)
    agent.start()
    start = agent.wait("agent.start", since=mark)
    check(800 <= start.get("gap_ms", 0) <= 10000, f"no gap, or a wrong one: {start}")
    check(start.get("cut_sessions") == [session], f"{start.get('cut_sessions')}, not {session}")
    agent.wait("error", since=mark, code="consumer_gap")
    agent.wait("process.match", since=mark, pid=process.pid, found="scan")
    again = agent.call("session.start", {"cgroup": group.path, "during_ms": 700})["session"]
    agent.wait("session.end", session=again)


@pytest.mark.parallel(3)
def test_restart_in_order_has_no_gap(t):
    """After a SIGTERM there is no gap to say."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    burn(t, agent, 30)
    agent.stop()
    time.sleep(0.3)
    mark = len(agent.events)
    agent.start()
    start = agent.wait("agent.start", since=mark)
    check("gap_ms" not in start and "cut_sessions" not in start, f"{start}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_lost_at_the_end(t):
    """The reader hangs when the agent is told to end: what it did not take is said, has a status of its own, and stands
    in the next agent.start."""
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False)
    agent.output = agent.folder / "fifo"
    os.mkfifo(agent.output, 0o666)
    os.chmod(agent.output, 0o666)
    hanging = os.open(agent.output, os.O_RDWR)  # nobody reads
    fcntl.fcntl(hanging, fcntl.F_SETPIPE_SZ, 4096)
    agent.start()
    text = agent.rules_file.read_text()
    until(lambda: agent.call("rules.set", {"text": text}) and agent.call("status")["output"]["queued_bytes"] > 4096, 20,
          "no line stays in the queue")
    queued = agent.call("status")["output"]["queued_bytes"]
    agent.stop(expect=8)
    found = re.search(r"(\d+) lines of (\d+) bytes were not written", agent.stderr())
    check(found and int(found[2]) >= queued, f"{queued} bytes were in the queue: {agent.stderr()}")
    os.close(hanging)
    agent.output = "-"
    agent.start()
    start = agent.find("agent.start")[-1]
    check((start["lost_lines"], start["lost_bytes"]) == (int(found[1]), int(found[2])), f"{start}")
    error = agent.wait("error", code="output_lost")
    check(f" {found[1]} lines" in error["message"], f"{error}")
    agent.stop()
    agent.start()
    check("lost_lines" not in agent.find("agent.start")[-1], "it is said twice")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_stdout_that_ends(t):
    """The reader of a pipe without a name ends: nobody can open it again, so the agent ends too, and says why."""
    agent = t.agent(rules(rule("api", comm=t.comm)), reading=False)
    agent.process.stdout.close()
    agent.call("rules.set", {"text": agent.rules_file.read_text()})  # a line
    check(agent.process.wait(15) == 8, f"status {agent.process.returncode}, not 8")
    check("its reader has ended" in agent.stderr(), agent.stderr())
    agent.stop(expect=8)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_second_consumer_takes_over(t):
    """Two consumers on one set of maps would each see half: the older one ends and says why."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    burn(t, agent, 20)
    old, lines = agent.process, len(agent.events)
    agent.socket = agent.folder / "second.sock"
    agent.start()
    check(old.wait(10) == 1, f"the older consumer: status {old.returncode}")
    check("another consumer has taken over" in agent.stderr(), agent.stderr())
    start = agent.wait("agent.start", since=lines)
    check("gap_ms" in start, f"{start}")
    agent.wait("watch.start", since=lines)


def test_every_sample_another_stack(t):
    """All CPUs busy at the highest rate and no stack twice: no sample is lost, nor one of the session that
    runs while thousands of lines of the first are named and written."""
    agent = t.agent(rules(rule("paths", comm="paths", pre_ms=0, cooldown_ms=0)), load=["--hz", "999"],
                    start=False)
    agent.output = agent.control / "events.jsonl"
    agent.start()
    group = t.cgroup()
    for _ in range(os.cpu_count()):
        burn(t, agent, 40, group=group, name="paths", workload="paths")
    for ms in (5000, 1500):
        agent.call("session.start", {"rule": "paths", "during_ms": ms})
        until(lambda: all(s["state"] == "ended" for s in agent.call("sessions")), ms / 1000 + 10,
              "the session goes on")
    find = lambda: [line for line in agent.output.read_bytes().splitlines(True) if b'"session.end"' in line]
    until(lambda: len(find()) == 2, 60, lambda: f"{len(find())} sessions were written")
    agent.stop()
    for line in find():
        ledger = json.loads(line)["ledger"]["oncpu"]
        check_figure(ledger["attempted"] == ledger["emitted"] >= 50 and not ledger["lost"], f"{ledger}", t.load)
        check(ledger["stacks"] >= 0.8 * ledger["emitted"], f"the workload repeats its stacks: {ledger}")
    lines = agent.output.read_bytes().splitlines(True)
    stacks = [line for line in lines if b'"type":"stack"' in line]
    rest = [line for line in lines if b'"type":"stack"' not in line]
    agent.raw = rest + stacks[:200]  # each of thousands against its schema would take minutes
