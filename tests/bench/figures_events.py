# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to follow requests to a disk, connections, and threads that look for memory: by the kernel's own
statistics of BPF programs, beside bpftrace scripts that mean what the peers do (bcc's and libbpf-tools' own are refused
where kprobes and fentry are)."""
import statistics
import sys
import time

from figures_cost import program_ids
from figures_unwind import tick_costs
from table import Row, ratio
from world import PeerMissing, Statistics, World, harness, programs

BIOLATENCY = """tracepoint:block:block_rq_issue { @issued[args->dev, args->sector] = nsecs; }
tracepoint:block:block_rq_complete {
  $issued = @issued[args->dev, args->sector];
  if ($issued) { @us = hist((nsecs - $issued) / 1000); delete(@issued[args->dev, args->sector]); }
}"""
TCPLIFE = """tracepoint:sock:inet_sock_set_state {
  $socket = (uint64)args->skaddr;
  if (args->newstate == 1) { @begun[$socket] = nsecs; }
  $begun = @begun[$socket];
  if (args->newstate == 7 && $begun) { @us = hist((nsecs - $begun) / 1000); delete(@begun[$socket]); }
}"""
DRSNOOP = """tracepoint:vmscan:mm_vmscan_memcg_reclaim_begin { @begun[tid] = nsecs; }
tracepoint:vmscan:mm_vmscan_memcg_reclaim_end {
  $begun = @begun[tid];
  if ($begun) { @us[comm] = hist((nsecs - $begun) / 1000); delete(@begun[tid]); }
}"""
# Connections to itself, one after the other, each closed at once.
CONNECTS = """import socket
own = socket.create_server(("127.0.0.1", 0))
while True:
    with socket.create_connection(own.getsockname()), own.accept()[0]:
        pass
"""


def price(before, after, numbers, per):
    """ns of all these programs for each run of `per`."""
    spent = sum(after[n][0] - before[n][0] for n in numbers)
    return spent / max(1, after[per][1] - before[per][1])


class Pair:
    """Programs of a session's signal, and of a script that means the same, on the same events."""

    def __init__(self, w, signal, mine, script, memory=None):
        """`mine`: the beginnings of our programs' names, of which the kernel keeps 15 bytes; the last one is run once for
        each event."""
        self.w, self.signal, self.script = w, signal, script
        self.group = w.cgroup(signal, memory=memory)
        self.agent = w.agent(harness.rules(harness.rule(signal, cgroup=self.group.path, cooldown_ms=0, pre_ms=0,
                                                        signals=["oncpu", signal])))
        ids = program_ids(self.agent)
        self.mine = [n for n, name in ids.items() if any(name.startswith(part[:15]) for part in mine)]
        self.per = next(n for n, name in ids.items() if name.startswith(mine[-1][:15]))

    def _peer(self):
        known = set(programs())
        try:
            self.w.bpftrace(self.script, "tracepoint")
        except PeerMissing as why:
            return [], f"peer missing: {why}"
        return [n for n, p in programs().items() if n not in known and p["type"] == "tracepoint"], None

    def measure(self, windows):
        """(ours, theirs, events, why there is no peer), of so many windows of 0.9 s, each with events."""
        self.agent.wait("watch.start", cgroup=self.group.path)
        peer, missing = self._peer()
        self.agent.call("session.start", {"rule": self.signal, "during_ms": windows * 1000 + 2000})
        time.sleep(1)
        found, theirs, runs = [], [], 0
        for _ in range(windows):
            before = tick_costs([*self.mine, *peer])
            time.sleep(0.9)
            after = tick_costs([*self.mine, *peer])
            met = after[self.per][1] - before[self.per][1]
            if not met:
                raise harness.Failure(f"nothing happened in a window, after {runs} events")
            found.append(price(before, after, self.mine, self.per))
            theirs.append(price(before, after, peer, max(peer)) if peer else 0)
            runs += met
        self.agent.wait("session.end", seconds=20)
        return statistics.median(found), statistics.median(theirs), runs, missing


def row(what, events, peer, measured, windows):
    mine, other, runs, missing = measured
    return Row(f"{what}, watched, ns of all programs ({runs} {events}, {windows} x 0.9 s)", f"{mine:.0f}", "-",
               missing or f"{peer}, as bpftrace, {other:.0f}", None if missing else ratio(mine, other))


def windows_of(short):
    return 3 if short else 9


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


def requests(short):
    """price of a request to a disk in a session that asks for them, against biolatency as a bpftrace script"""
    windows = windows_of(short)
    with World("requests") as w, Statistics():
        pair = Pair(w, "block", ("block_", "block_complete"), BIOLATENCY)
        w.run("dd", f"if={disk(w)}", "of=/dev/null", "bs=4k", "iflag=direct", cgroup=pair.group)
        yield row("a request to a disk", "requests", "biolatency", pair.measure(windows), windows)


def connections(short):
    """price of a socket's change of state in a session that asks for sockets, against tcplife as a bpftrace script"""
    windows = windows_of(short)
    with World("connections") as w, Statistics():
        pair = Pair(w, "socket", ("socket_state",), TCPLIFE)
        w.run(sys.executable, "-c", CONNECTS, cgroup=pair.group)
        yield row("a change of state of a socket", "changes", "tcplife", pair.measure(windows), windows)


def reclaims(short):
    """price of a stretch of reclaim in a session that asks for it, against drsnoop for a memory cgroup as a bpftrace
    script"""
    windows = windows_of(short)
    with World("reclaims") as w, Statistics():
        pair = Pair(w, "reclaim", ("reclaim_limit", "reclaim_limit_end"), DRSNOOP, memory=32)
        hole = w.path("hole")
        with open(hole, "wb") as stream:
            stream.truncate(64 << 30)
        w.run("sh", "-c", f"while dd if={hole} of=/dev/null bs=1M; do :; done", cgroup=pair.group)
        yield row("a stretch of reclaim", "stretches", "drsnoop", pair.measure(windows), windows)
