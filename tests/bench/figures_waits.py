# SPDX-License-Identifier: BSD-2-Clause
"""What it costs a service to be asked what it waits for: its throughput in a session with the signals that io pressure
chooses, and beside bpftrace scripts that mean what offcputime and runqlat mean (libbpf-tools' own are refused where
fentry and kprobes are). Legs take turns in one run, each between two legs without anything; medians of the pairs.
Throughput is work for each second of the service's own CPU time: on a machine that others use too, work for each second
of the clock says how much they left. What the agent and bpftrace use beside the service is in other figures."""
import contextlib
import re
import statistics
import subprocess
import sys
import time

from figures_agent import Pace, leg
from table import Row, ratio
from world import ROOT, PeerMissing, World, harness

sys.path.append(str(ROOT / "tests" / "scale"))
import scale as scenario  # noqa: E402
import servers  # noqa: E402  (tests/e2e: world has put it on the path)

QUIET = 0.06  # of legs without anything; above, the machine says nothing about a few per cent
SIGNALS = ["oncpu", "switch", "pools", "offcpu"]  # as "auto" chooses at io pressure
OFFCPUTIME = """tracepoint:sched:sched_switch {
  if (cgroup == %d) { @since[tid] = nsecs; @kernel[tid] = kstack; @user[tid] = ustack; }
  $since = @since[args->next_pid];
  if ($since) {
    @off[@kernel[args->next_pid], @user[args->next_pid], args->next_comm] = sum(nsecs - $since);
    delete(@since[args->next_pid]);
  }
}"""
RUNQLAT = """tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @queued[args->pid] = nsecs; }
tracepoint:sched:sched_switch {
  if (args->prev_state == 0) { @queued[args->prev_pid] = nsecs; }
  $queued = @queued[args->next_pid];
  if ($queued) { @us = hist((nsecs - $queued) / 1000); delete(@queued[args->next_pid]); }
}"""


class PingPong:
    name = "pinned ping-pong"

    def __init__(self, w, seconds):
        self.service = servers.Service(w, "waits")
        self.pace = Pace(w.run_tool("pingpong", seconds, cgroup=self.service.group))

    def work(self, seconds):
        """Rounds in so many seconds."""
        return leg(self.pace, seconds) * seconds


class RedisBenchmark:
    name = "redis-benchmark, GET"

    def __init__(self, w, _):
        self.service = servers.Service(w, "waits")
        self.redis = servers.Redis(self.service, 1000)
        w.processes.append(subprocess.Popen(
            ["redis-benchmark", "-s", str(self.redis.socket), "-t", "get", "-c", "20", "-q", "-l", "-n", "1000000"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(1)

    def _commands(self):
        """How many commands it has answered."""
        with self.redis.connect() as connection:
            connection.sendall(b"INFO stats\r\n")
            said = b""
            while b"total_commands_processed:" not in said or not said.endswith(b"\r\n"):
                said += connection.recv(1 << 16)
        return int(re.search(rb"total_commands_processed:(\d+)", said)[1])

    def work(self, seconds):
        before = self._commands()
        time.sleep(seconds)
        return self._commands() - before


class ManyThreads(RedisBenchmark):
    name = "redis-benchmark, GET, in a service of 1,000 more threads"

    def __init__(self, w, seconds):
        super().__init__(w, seconds)
        scenario.crowd(w, "threads", 1000, seconds, cgroup=self.service.group)


class PgBench:
    name = "pgbench -S"

    def __init__(self, w, _):
        self.service = servers.Service(w, "waits")
        (w.folder / "db").mkdir()
        self.postgres = servers.Postgres(self.service, w.folder / "db")
        self._pgbench("-i", "-q", "-s", 2)

    def _pgbench(self, *words):
        return harness.command(self.postgres.bin / "pgbench", "-h", self.postgres.folder, "-U", "postgres", *words,
                               "postgres").stdout

    def work(self, seconds):
        said = self._pgbench("-S", "-n", "-c", 4, "-T", max(1, round(seconds)))
        return int(re.search(r"actually processed: (\d+)", said)[1])


@contextlib.contextmanager
def session(agent, seconds):
    since = len(agent.events)
    agent.call("session.start", {"rule": "waits", "during_ms": int(1500 * seconds + 1000)})
    agent.wait("session.start", since=since)
    time.sleep(0.2)
    yield
    if agent.find("session.end", since=since):
        raise harness.Failure("the session ended before the leg")
    end = agent.wait("session.end", seconds=20, since=since)
    if not end.get("pools") or not end.get("looks"):
        raise harness.Failure(f"not all signals ran: {end}")


@contextlib.contextmanager
def tracer(w, service, source):
    peer, _ = w.bpftrace(source % service.group.id if "%d" in source else source, "tracepoint")
    time.sleep(0.3)
    yield
    peer.end()


PEERS = {"offcputime": OFFCPUTIME, "runqlat": RUNQLAT}


def rate(service, seconds):
    """Work for a second of CPU time."""
    before = service.service.cpu_us()
    work = service.work(seconds)
    return work / (service.service.cpu_us() - before) * 1e6


def pairs(w, service, rounds, seconds):
    """{variant: kept shares of the throughput}, and how far legs without anything differ from each other."""
    group = service.service
    agent = w.agent(harness.rules(harness.rule("waits", cgroup=group.path, cooldown_ms=0, pre_ms=0, signals=SIGNALS)))
    agent.wait("watch.start", cgroup=group.path)
    kept, noise, before = {name: [] for name in ("ours", *PEERS)}, [], rate(service, seconds)
    for _ in range(rounds):
        for name in kept:
            with tracer(w, group, PEERS[name]) if name in PEERS else session(agent, seconds):
                asked = rate(service, seconds)
            after = rate(service, seconds)
            kept[name].append(2 * asked / (before + after))
            noise.append(abs(1 - after / before))
            before = after
    return kept, statistics.median(noise)


def say(shares):
    """Median, and the quartiles."""
    low, _, high = statistics.quantiles(shares, n=4) if len(shares) > 1 else (shares[0],) * 3
    return f"{statistics.median(shares):.3f} ({low:.3f} to {high:.3f})"


def waits(short):
    """throughput of services that are asked what they wait for, against peers of the same meaning"""
    rounds, seconds = (2, 0.5) if short else (7, 1.0)
    for kind in (PingPong,) if short else (PingPong, RedisBenchmark, PgBench, ManyThreads):
        with World("waits") as w:
            kept, noise = pairs(w, kind(w, 500), rounds, seconds)
        slow = {name: max(0.0, 1 - statistics.median(shares)) for name, shares in kept.items()}
        best = min(slow["offcputime"], slow["runqlat"])
        switches = kind is PingPong
        met = slow["ours"] <= (0.25 * best if switches else 0.03)
        yield Row(f"{kind.name}, work a CPU second in a session that asks what it waits for, to none ({rounds} pairs)",
                  say(kept["ours"]), "<= 0.25 x the best peer's slow-down" if switches else ">= 0.97",
                  f"offcputime {say(kept['offcputime'])}, runqlat {say(kept['runqlat'])}, none +-{noise:.3f}, as bpftrace",
                  ratio(slow["ours"], best) if switches else None, met if noise <= QUIET else None,
                  key="pingpong_slow_to_peer" if switches else None)
