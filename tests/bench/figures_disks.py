# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to follow a request to a disk, by the kernel's own statistics of BPF programs, on a loop device of the
bench's own."""
import statistics
import time

from figures_cost import program_ids
from figures_unwind import tick_costs
from table import Row, ratio
from world import PeerMissing, Statistics, World, harness, programs

# What biolatency means: bcc's and libbpf-tools' own are refused where kprobes and fentry are.
BIOLATENCY = """tracepoint:block:block_rq_issue { @issued[args->dev, args->sector] = nsecs; }
tracepoint:block:block_rq_complete {
  $issued = @issued[args->dev, args->sector];
  if ($issued) { @us = hist((nsecs - $issued) / 1000); delete(@issued[args->dev, args->sector]); }
}"""


def disk(w, gib=8):
    """A loop device of a file without data: what reads it makes requests, and no other disk is asked."""
    image = w.path("disk.img")
    with open(image, "wb") as stream:
        stream.truncate(gib << 30)
    done = harness.command("losetup", "--find", "--show", image, expect=None)
    if done.returncode:
        raise harness.Skip(f"no loop device: {done.stderr}")
    w.disks.append(done.stdout.strip())
    return w.disks[-1]


def price(before, after, numbers, per):
    """ns of all these programs for each run of `per`."""
    spent = sum(after[n][0] - before[n][0] for n in numbers)
    return spent / max(1, after[per][1] - before[per][1])


def requests(short):
    """price of a request to a disk in a session that asks for them, against biolatency as a bpftrace script"""
    windows = 3 if short else 9
    with World("requests") as w, Statistics():
        group = w.cgroup("disk")
        agent = w.agent(harness.rules(harness.rule("disk", cgroup=group.path, cooldown_ms=0, pre_ms=0,
                                                   signals=["oncpu", "block"])))
        w.run("dd", f"if={disk(w)}", "of=/dev/null", "bs=4k", "iflag=direct", cgroup=group)
        agent.wait("watch.start", cgroup=group.path)
        ours = {name: number for number, name in program_ids(agent).items() if name.startswith("block_")}
        known = set(programs())
        try:
            w.bpftrace(BIOLATENCY, "tracepoint")
            peer = [n for n, p in programs().items() if n not in known and p["type"] == "tracepoint"]
            missing = None
        except PeerMissing as why:
            peer, missing = [], f"peer missing: {why}"
        agent.call("session.start", {"rule": "disk", "during_ms": windows * 1000 + 2000})
        time.sleep(1)
        found, theirs, runs = [], [], 0
        for _ in range(windows):
            before = tick_costs([*ours.values(), *peer])
            time.sleep(0.9)
            after = tick_costs([*ours.values(), *peer])
            found.append(price(before, after, ours.values(), ours["block_complete"]))
            theirs.append(price(before, after, peer, max(peer)) if peer else 0)
            runs += after[ours["block_complete"]][1] - before[ours["block_complete"]][1]
        end = agent.wait("session.end", seconds=20)
        if not end.get("block", {}).get("requests"):
            raise harness.Failure(f"no request was counted: {end}")
    mine, other = statistics.median(found), statistics.median(theirs)
    yield Row(f"a request to a disk, watched, ns of all programs ({runs} requests, {windows} x 0.9 s)", f"{mine:.0f}", "-",
              missing or f"biolatency, as bpftrace, {other:.0f}", None if missing else ratio(mine, other))
