# SPDX-License-Identifier: BSD-2-Clause
"""What the agent takes from its host all day with the broker: idle, recording and in a session, with perf
and bpftrace sampling beside it, at the same rate, on the same load, in the same seconds."""
import json
import os
import pathlib
import subprocess
import time

from table import Row, ratio
from world import (Peer, PeerMissing, Statistics, World, harness, process_cpu_seconds, programs, switches)

HZ = 97
BPFTRACE = f"profile:hz:{HZ} {{ @[ustack, kstack] = count(); }}"
WAKE_SECONDS = 5
# What nothing may run while nothing is watched.
ON_DEMAND = {"sampler", "count_switches", "account_switch", "lock_waking", "block_getrq", "block_issue",
             "block_complete", "block_merge", "block_backmerge", "block_frontmerge", "socket_state",
             "reclaim_begin", "reclaim_end",
             "reclaim_limit_begin", "reclaim_limit_end", "compaction_begin", "compaction_end", "dirty_pause",
             "dirty_switch"}


def program_ids(agent):
    """id -> name of the programs of that load: the pinned ones, and those of its pinned links."""
    def pinned(kind):
        return [entry for entry in harness.bpf_objects(kind, "-f")
                if any(p.startswith(str(agent.bpf)) for p in entry.get("pinned", []))]
    ids = {entry["id"] for entry in pinned("prog")} | {entry["prog_id"] for entry in pinned("link")}
    return {number: p.get("name", "") for number, p in programs().items() if number in ids}


def attached(agent, ids):
    """How many times the programs on demand are attached, by anybody, and the consumer's perf events."""
    count = sum(ids.get(link.get("prog_id")) in ON_DEMAND for link in harness.bpf_objects("link"))
    for fd in pathlib.Path(f"/proc/{agent.pid}/fd").iterdir():
        try:
            count += "perf_event" in os.readlink(fd)
        except FileNotFoundError:
            pass
    return count


class Account:
    """CPU time and runs of one agent or peer: its process and its BPF programs, between two readings."""

    def __init__(self, pid, ids):
        self.pid, self.ids = pid, ids
        self.start()

    def _read(self):
        listed = programs()
        mine = [listed[number] for number in self.ids if number in listed]
        ticks = sum(p.get("run_cnt", 0) for p in mine
                    if p.get("name") in ON_DEMAND or p["type"] == "perf_event")
        return (process_cpu_seconds(self.pid), sum(p.get("run_time_ns", 0) for p in mine) / 1e9, ticks,
                time.monotonic())

    def start(self):
        self.before = self._read()

    def end(self):
        """Ends the stretch: us per second of the process, of the programs, and ticks."""
        cpu, kernel, ticks, at = (now - then for now, then in zip(self._read(), self.before))
        self.process_us, self.program_us, self.ticks = cpu / at * 1e6, kernel / at * 1e6, ticks
        self.us = self.process_us + self.program_us
        return self


def count_calls(pids, seconds):
    """System calls that each of these processes enters within `seconds`, counted from outside."""
    counting = {name: subprocess.Popen(
        ["perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", str(pid), "--", "sleep",
         str(seconds)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for name, pid in pids.items()}
    found = {}
    for name, process in counting.items():
        text = process.communicate(timeout=seconds + 30)[1]
        count = next((row.split(",")[0] for row in text.splitlines() if "sys_enter" in row), "")
        # "not counted": the process did not run at all, so that nothing was counted.
        if not count.isdigit() and count != "<not counted>":
            raise harness.Failure(f"perf stat of {name}: {text.strip()[-200:]}")
        found[name] = int(count) if count.isdigit() else 0
    return found


class Beside:
    """perf and bpftrace, sampling until the world ends: name -> their account, or why they are missing."""

    def __init__(self, w):
        self.accounts, self.missing = {}, []
        try:
            peer = Peer(w, ["perf", "record", "-q", "-F", str(HZ), "-g", "-a", "-o",
                            str(w.path("perf.data"))], w.path("perf"))
            self.accounts["perf record -g"] = Account(peer.process.pid, ())
        except PeerMissing as why:
            self.missing.append(f"peer missing: {why}")
        try:
            peer, number = w.bpftrace(BPFTRACE)
            self.accounts["bpftrace"] = Account(peer.process.pid, (number,))
        except PeerMissing as why:
            self.missing.append(f"peer missing: {why}")

    def start(self):
        for account in self.accounts.values():
            account.start()

    def end(self):
        """us per second of the one whose kernel side is counted too, and the words that say all."""
        costs = {name: account.end().us for name, account in self.accounts.items()}
        said = [f"{name} {us:.0f}" + (" and its kernel side" if name.startswith("perf") else "")
                for name, us in costs.items()]
        return costs.get("bpftrace"), "; ".join(said + self.missing)


def cost_row(state, ours, counted, said, seconds):
    """Not gated: how often somebody starts a process, which our hooks see, is the machine's."""
    return Row(f"CPU, {state}, us per s ({seconds:.0f} s)",
               f"{ours.us:.0f} (consumer {ours.process_us:.0f}, programs {ours.program_us:.0f})", "-", said,
               ratio(ours.us, counted))


def idle_rows(w, agent, ids, beside, seconds):
    """Rules, a broker, a busy machine, and nothing watched."""
    ours, pids = Account(agent.pid, ids), {"ours": agent.pid}
    pids.update({name: account.pid for name, account in beside.accounts.items()})
    beside.start()
    held, woken = attached(agent, ids), switches(agent.pid)
    ours.start()
    calls = count_calls(pids, seconds)
    ours.end()
    woken, held = switches(agent.pid) - woken, max(held, attached(agent, ids))
    counted, said = beside.end()
    ticked = "; ".join(f"{name} {account.ticks}" for name, account in beside.accounts.items() if account.ids)
    called = "; ".join(f"{name} {count}" for name, count in calls.items() if name != "ours")

    def none(count):
        return False if count else True if seconds >= 60 else None
    yield Row(f"ticks on all CPUs, nothing watched, {seconds} s", str(ours.ticks), "0", ticked, None,
              ours.ticks == 0, key="idle_ticks", must=True)
    yield Row(f"system calls of the consumer, nothing watched, {seconds} s",
              f"{calls['ours']} ({woken} wake-ups)", "0 in 60 s", called, None,
              none(calls["ours"]), key="idle_calls", must=True)
    yield Row("programs attached to timers or the scheduler, nothing watched", str(held), "0", "-", None,
              held == 0, key="idle_attached", must=True)
    yield cost_row("nothing watched", ours, counted, said, seconds)


def recording_rows(w, agent, ids, beside, seconds):
    ours = Account(agent.pid, ids)
    beside.start()
    ours.start()
    woken = switches(agent.pid)
    time.sleep(seconds)
    woken = switches(agent.pid) - woken
    ours.end()
    counted, said = beside.end()
    if not ours.ticks:
        raise harness.Failure("the recorder does not tick: " + agent.stderr()[-300:])
    # One more than there are whole stretches: the first may fall on the beginning.
    yield Row(f"wake-ups, recorder running, {seconds} s", str(woken), f"one in {WAKE_SECONDS} s", "-", None,
              woken <= seconds // WAKE_SECONDS + 1, key="recorder_wakeups", must=True)
    yield cost_row("recorder running", ours, counted, said, seconds)


def session_rows(w, agent, ids, beside, seconds):
    """While it captures: the report of either side is in the figure "capture"."""
    since, ours = len(agent.events), Account(agent.pid, ids)
    beside.start()
    ours.start()
    agent.call("session.start", {"rule": "deep", "during_ms": seconds * 1000})
    time.sleep(seconds - 0.2)
    ours.end()
    counted, said = beside.end()
    end = agent.wait("session.end", seconds=seconds + 30, since=since)
    if not end["ledger"]["oncpu"]["emitted"]:
        raise harness.Failure(f"a session without samples: {end['headline']}")
    yield cost_row(f"in a session without its report, {end['ledger']['oncpu']['emitted']} samples", ours, counted, said, seconds)


def cost(short):
    """the host's cost: idle, recording, in a session, with perf and bpftrace sampling beside it"""
    idle, recording, session = (10, 5, 3) if short else (60, 60, 20)
    nobody = harness.rule("nobody", comm="bench-nobody",
                          when=[{"pressure": "memory", "some_ms": 500, "window_ms": 2000}])
    deep = harness.rule("deep", comm="deep", cooldown_ms=0, pre_ms=0,
                        when=[{"pressure": "memory", "some_ms": 1900, "window_ms": 2000}])
    with World("cost") as w, Statistics():
        agent = w.agent(harness.rules(nobody), load=("--hz", str(HZ)))
        ids = program_ids(agent)
        group = w.cgroup("deep")
        for _ in range(os.cpu_count()):
            w.spawn("deep", idle + recording + session + 60, 31, cgroup=group)
        beside = Beside(w)
        time.sleep(2)
        yield from idle_rows(w, agent, ids, beside, idle)
        agent.call("rules.set", {"text": json.dumps(harness.rules(nobody, deep))})
        agent.wait("watch.start", seconds=15, where=lambda e: e.get("rule") == "deep")
        time.sleep(2)
        yield from recording_rows(w, agent, ids, beside, recording)
        yield from session_rows(w, agent, ids, beside, session)
