# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/time/account_queue.h bpf/maps/time_bucket.h consumer/evidence/time/runq* consumer/evidence/time/queue*
# tests: consumer/evidence/time/session_queue* ctl/render/text_report_queue*
"""The signal `runq`: how long threads waited for a CPU, and behind whom, against what the scheduler itself knows."""
import os
import shutil
import signal
import subprocess
import time

import pytest

from harness import COMMAND, Cgroup, check, check_complete, check_figure, command, rule, rules, until

pytestmark = pytest.mark.shares_kernel_side

SIGNALS = ["oncpu", "runq"]


def pin(process, cpu):
    """The process and all threads that it has begun; later ones inherit it."""
    for thread in os.listdir(f"/proc/{process.pid}/task"):
        os.sched_setaffinity(int(thread), {cpu})


def schedstat(pid):
    """ns on a CPU, and ns in the queue for one, of the first thread."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as stream:
        return [int(word) for word in stream.read().split()[:2]]


def closes(line):
    """Count and sum are those of the buckets and of who was before."""
    buckets = line["buckets"]
    check(line["count"] == sum(count for _, count in buckets), f"{line}")
    check(line["sum"] == sum(line["behind_ns"].values()), f"{line}")
    check(all(a[0] < b[0] for a, b in zip(buckets, buckets[1:]) if b[0]), f"the steps do not ascend: {line}")
    check(line["sum"] <= sum((le or 1 << 36) * count for le, count in buckets), f"{line}")


def report(t, agent):
    """`trocar report` of all lines of the agent."""
    kept = t.folder / "lines"
    kept.write_bytes(b"".join(agent.raw))
    return command(COMMAND, "report", "--full", kept).stdout


def session(agent, name, during_ms):
    """session.start, session.end, {pool or None: histogram} and {neighbour: line} of a session on request."""
    asked = agent.call("session.start", {"rule": name, "during_ms": during_ms})["session"]
    start = agent.wait("session.start", session=asked)
    end = agent.wait("session.end", session=asked, seconds=during_ms / 1000 + 15)
    histograms = {line["key"].get("pool"): line for line in agent.find("histogram", session=asked)}
    for line in histograms.values():
        closes(line)
    neighbours = [line for line in agent.find("neighbour", session=asked) if line["signal"] == "runq"]
    return start, end, histograms, {line.get("neighbour"): line for line in neighbours}


@pytest.mark.parallel(2)
@pytest.mark.core
def test_neighbour_is_blamed(t):
    """A neighbour and a sibling pinned to the CPU: who ran is who is blamed, and the sum is the scheduler's own."""
    cpu = max(os.sched_getaffinity(0))
    agent = t.agent(rules(rule("api", cgroup=f"/{t.name}-own", signals=SIGNALS)), broker=True)
    own, batch = t.cgroup("own"), t.cgroup("batch")
    rival = t.spawn("burn_cpu", 30, 1, 0, name=f"batch{os.getpid()}", cgroup=batch)
    burner = t.spawn("burn_cpu", 30, 1, 0, name=t.comm, cgroup=own)
    for process in (rival, burner):
        pin(process, cpu)
    agent.wait("watch.start", cgroup=own.path)
    time.sleep(0.3)
    before, rival_before = schedstat(burner.pid), schedstat(rival.pid)
    start, end, histograms, neighbours = session(agent, "api", 3000)
    after, rival_after = schedstat(burner.pid), schedstat(rival.pid)
    check(start["signals"] == SIGNALS, f"{start} {end}")
    check_complete(end, t.load)
    line = histograms[None]
    check(line["count"] == end["ledger"]["runq"]["emitted"] > 20 and not end["ledger"]["runq"]["lost"], f"{end}")
    # The readings are around the session, which lasts 3 s of what passed between them.
    passed = sum(after[i] - before[i] for i in (0, 1)) / 1e9
    queue, ran = (after[1] - before[1]) / passed * 3, (rival_after[0] - rival_before[0]) / passed * 3
    check_figure(abs(line["sum"] - queue) < 0.05 * queue, f"{line['sum'] / 1e6} ms, {queue / 1e6} in schedstat", t.load)
    told = neighbours[batch.path]
    check_figure(abs(told["share"] - ran / queue) < 0.05, f"{told}, it ran {ran / queue} of {queue / 1e6} ms", t.load)
    check(end["runq"]["own_ms"] < 0.05 * end["runq"]["wait_ms"], f"{end['runq']}")
    longest = line["longest"][0]
    check(longest["tid"] == burner.pid and longest["wait_ns"] <= (line["p99"] or 1 << 36) * 100, f"{line}")


@pytest.mark.parallel(2)
def test_owner_is_blamed(t):
    """A user's cgroups, too many to be named one by one, are one line of each signal: his directory, also in the first
    session of an agent that is younger than they are."""
    user, count, cpu = 61236, 12, max(os.sched_getaffinity(0))
    own, home = t.cgroup("own"), t.cgroup("home")
    os.chown(home.folder, user, user)
    for i in range(count):
        job = Cgroup(f"{home.name}/job{i}")
        t.cgroups.append(job)
        pin(t.spawn("burn_cpu", 30, 1, 0, cgroup=job), cpu)
    agent = t.agent(rules(rule("api", comm=t.comm, signals=SIGNALS + ["neighbours"])), broker=True)
    pin(t.spawn("burn_cpu", 30, 1, 0, name=t.comm, cgroup=own), cpu)
    agent.wait("watch.start", cgroup=own.path)
    asked = agent.call("session.start", {"rule": "api", "during_ms": 3000})["session"]
    agent.wait("session.end", session=asked, seconds=18)
    for signal_name in ("runq", "neighbours"):
        lines = agent.find("neighbour", session=asked, signal=signal_name)
        told = [line for line in lines if (line.get("neighbour") or "").startswith(home.path)]
        check([line["neighbour"] for line in told] == [home.path], f"{signal_name}: {lines}")
        check(told[0]["neighbour_uid"] == user and told[0]["neighbour_id"] == home.id, f"{told}")
        check(told[0]["neighbour_cgroups"] == count, f"{told}")
    check(f"{home.path} (uid {user}, {count} cgroups)" in report(t, agent), "not in the report")


@pytest.mark.parallel(2)
def test_siblings(t):
    """Threads of one process on one CPU: they wait for each other, and no neighbour is named for it."""
    cpu = max(os.sched_getaffinity(0))
    agent = t.agent(rules(rule("api", cgroup=f"/{t.name}-own", signals=SIGNALS)), broker=True)
    own = t.cgroup("own")
    burner = t.spawn("burn_cpu", 30, 4, 0, name=t.comm, cgroup=own)
    time.sleep(0.3)
    pin(burner, cpu)
    agent.wait("watch.start", cgroup=own.path)
    _, end, histograms, _ = session(agent, "api", 2000)
    behind = histograms[None]["behind_ns"]
    check_figure(behind["siblings"] > 0.6 * histograms[None]["sum"], f"{histograms}", t.load)
    pools = [line for name, line in histograms.items() if name is not None]
    check(len(pools) == 1 and pools[0]["count"] == histograms[None]["count"], f"{histograms}")
    check(len(histograms[None]["longest"]) >= 4, f"{histograms[None]}")
    check(end["runq"]["waits"] == histograms[None]["count"], f"{end['runq']}")


def test_table_is_full(t):
    """Waits of threads that have no account are in the ledger, and the verdict is partial. More threads
    want a CPU than the table has places, so that some wait without a place whichever have one."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=[*SIGNALS, "switch"])), broker=True, load=["--threads", 16])
    group = t.cgroup()
    t.spawn("burn_cpu", 20, 40, 0, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    _, end, histograms, _ = session(agent, "waits", 1000)
    ledger = end["ledger"]["runq"]
    check(ledger["lost"]["threads_full"] > 0 and ledger["emitted"] == histograms[None]["count"], f"{ledger}")
    check(end["verdict"] == "partial" and "--threads" in end["verdict_reason"], f"{end}")
    # The same waits are switches that no account counts.
    check(end["switches"]["uncounted"] == ledger["lost"]["threads_full"], f"{end['switches']} {ledger}")
    check(end["quality"] == "partial" and end["answer"]["level"], f"{end}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_missing_without_the_broker(t):
    """Nobody attaches it: session.start says why, and session.end has no histogram."""
    agent = t.agent(rules(rule("waits", cgroup=f"/{t.name}-a", signals=SIGNALS)), broker=False)
    group = t.cgroup()
    t.spawn("waits", 20, t.folder / "measured", cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    start, end, histograms, neighbours = session(agent, "waits", 500)
    missing = [one["reason"] for one in start["signals_missing"] if one["signal"] == "runq"]
    check(missing and "--broker none" in missing[0], f"{start}")
    check(end["runq"] is None and end["runq_reason"] == missing[0] and not histograms and not neighbours, f"{end}")
    check(end["verdict"] == "inconclusive", f"{end}")


RUNQLAT = """tracepoint:sched:sched_wakeup { @since[args->pid] = nsecs; }
tracepoint:sched:sched_switch {
  if (args->prev_state == 0 || args->prev_state & 256) { @since[args->prev_pid] = nsecs; }
  $since = @since[args->next_pid];
  if ($since && args->next_comm == "NAME") { printf("%llu %llu\\n", nsecs, nsecs - $since); }
  delete(@since[args->next_pid]);
}
BEGIN { printf("attached\\n"); }
"""


def step_of(waits, pct, steps):
    """The step that holds the wait which pct of 100 are not longer than."""
    wait = sorted(waits)[max(0, -(-len(waits) * pct // 100) - 1)]
    return next(i for i, le in enumerate(steps) if wait <= le)


@pytest.mark.parallel(2)
@pytest.mark.skipif(not shutil.which("bpftrace"), reason="bpftrace is not installed")
def test_agrees_with_runqlat(t):
    """The same waits by wake-ups and switches, as bpftrace sees them: as many, as long, and as spread."""
    cpu = max(os.sched_getaffinity(0))
    agent = t.agent(rules(rule("api", cgroup=f"/{t.name}-own", signals=SIGNALS)), broker=True)
    own = t.cgroup("own")
    name = f"rq{os.getpid()}"
    burner = t.spawn("burn_cpu", 60, 3, 0, name=name, cgroup=own)
    time.sleep(0.3)
    pin(burner, cpu)
    agent.wait("watch.start", cgroup=own.path)
    file = t.folder / "runqlat"
    with open(file, "wb") as out:
        peer = subprocess.Popen(["bpftrace", "-e", RUNQLAT.replace("NAME", name)], stdout=out, stderr=out)
    try:
        until(lambda: "attached" in file.read_text(), 30, "bpftrace does not attach")
        time.sleep(1)
        start, end, histograms, _ = session(agent, "api", 3000)
        time.sleep(0.5)
    finally:
        peer.send_signal(signal.SIGINT)
        peer.wait(20)
    first = start["mono_ns"] + end["runq"].get("late_ms", 0) * 1000000
    seen = [[int(word) for word in line.split()] for line in file.read_text().splitlines() if line[:1].isdigit()]
    waits = [wait for when, wait in seen if first <= when < first + end["duration_ms"] * 1000000]
    line = histograms[None]
    # A wait counts when the thread leaves the CPU again: one for each thread at both ends.
    check_figure(abs(line["count"] - len(waits)) <= 6 + 0.02 * len(waits), f"{line['count']} and {len(waits)}", t.load)
    check_figure(abs(line["sum"] - sum(waits)) <= 0.05 * sum(waits), f"{line['sum']} and {sum(waits)}", t.load)
    steps = [1024 * (3 if i % 2 else 2) * 2 ** (i // 2) // 2 for i in range(43)]
    for pct, key in ((50, "p50"), (99, "p99")):
        ours, theirs = steps.index(line[key]), step_of(waits, pct, steps)
        check_figure(abs(ours - theirs) <= 1, f"{key}: {line[key]} and {steps[theirs]}: {line}", t.load)
