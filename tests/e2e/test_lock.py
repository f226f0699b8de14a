# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/locks/* consumer/evidence/locks/*
# tests: consumer/answer/*lock* ctl/render/text_report_locks*
# tests: bpf/kernel/kernel_cast.h
# tests: bpf/maps/interrupt.h
"""The signal `lock`: for which locks threads waited and who ended the waits, against what the threads measured."""
import fcntl
import json
import os
import signal
import subprocess
import time

import pytest

from harness import COMMAND, bpf_objects, check, check_complete, check_waited, command, rule, rules, until

SIGNALS = ["oncpu", "lock"]
TIMED = ["oncpu", "lock", "pools"]  # with the moments that the accounts are between


def measured(file):
    """{name: (address, [[begin, end or None], ...])} in ns, from the lines of the workload `lock_holds`."""
    waits, last = {}, {}
    for line in file.read_text().splitlines():
        if line.count(" ") != 4:
            continue  # cut: it is being written
        name, address, tid, begin, end = line.split()
        of = waits.setdefault(name, (address, []))[1]
        if end == "0":
            of.append([int(begin), None])
            last[tid] = of[-1]
        else:
            last[tid][:] = int(begin), int(end)
    return waits


def overlap(waits, first, last):
    """How much of the waits lies between two moments."""
    return sum(max(0, min(end or last, last) - max(begin, first)) for begin, end in waits)


def session(agent, name, during_ms):
    """session.start, session.end and the lines `lock` of a session on request."""
    asked = agent.call("session.start", {"rule": name, "during_ms": during_ms})["session"]
    start = agent.wait("session.start", session=asked)
    end = agent.wait("session.end", session=asked, seconds=during_ms / 1000 + 15)
    lines = agent.find("lock", session=asked)
    told = end["ledger"].get("lock", {}).get("emitted", 0)
    check(sum(line["waits"] for line in lines) == told, f"{lines} {end['ledger']}")
    return start, end, lines


def watched(t, load=(), more=0, signals=SIGNALS, **options):
    agent = t.agent(rules(rule("locks", cgroup=f"/{t.name}-a", signals=signals)), load=list(load), **options)
    group = t.cgroup()
    file = t.folder / "measured"
    worker = t.spawn("lock_holds", 20, file, cgroup=group)
    for i in range(more):
        t.spawn("lock_holds", 20, t.folder / f"measured{i}", cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    return agent, worker, file


def test_locks_are_told(t):
    """Three locks: how long threads waited for each, who held two of them, and that nobody held the third."""
    agent, worker, file = watched(t, broker=True, signals=TIMED)
    start, end, lines = session(agent, "locks", 3000)
    check(set(start["signals"]) == set(TIMED), f"{start}")
    waits = measured(file)
    told = {line["address"]: line for line in lines if line.get("pid") == worker.pid and "address" in line}
    span = end["pools"]["from_mono_ns"], end["pools"]["to_mono_ns"]
    queues = {line.get("pool"): line["queue_ns"] for line in agent.find("pool", session=end["session"])}
    for name, pool in (("reader", "reader-"), ("timed", "timed"), ("queue", "queue-")):
        address, own = waits[name]
        line = told[address]
        check_waited(line["wait_ns"], overlap(own, *span), queues[pool], f"{name}: {line}", t.load)
        check(line["p50_ns"] <= line["p99_ns"] <= line["longest"]["wait_ns"], f"{line}")
    reader, timed, queue = (told[waits[name][0]] for name in ("reader", "timed", "queue"))
    # The writer waits too where a reader that has the lock gets no CPU.
    check(reader["threads"] in (3, 4) and queue["threads"] == 4 and timed["threads"] == 1, f"{lines}")
    check(reader["wakers"][0]["by"] == "thread" and reader["wakers"][0]["comm"] == "writer-1", f"{reader}")
    check(reader["wakers"][0].get("fn") == "flush_index", f"{reader}")
    check(reader.get("pattern") == "long_hold" and queue.get("pattern") == "convoy", f"{reader} {queue}")
    check([waker["by"] for waker in timed["wakers"]] == ["interrupt"], f"{timed}")
    check(end["ledger"]["lock"]["lost"] == {}, f"{end}")
    check(any("; writer-1 had it in flush_index()" in found["says"] for found in end["findings"]), f"{end['findings']}")
    stacks = [stack for stack in agent.find("stack", session=end["session"], signal="lock")
              if any(frame.get("fn") == "flush_index" for frame in stack["frames"])]
    check(stacks and all(stack["lock"] == {"pid": worker.pid, "address": waits["reader"][0]} for stack in stacks),
          f"{[stack.get('lock') for stack in stacks]}")
    check(end["locks"]["locks"] >= 3 and end["locks"]["waited_ms"] > 3000, f"{end['locks']}")
    check_complete(end, t.load)


@pytest.mark.core
def test_deadlock(t):
    """Two threads that hold each other's lock: the finding names both, their functions and locks. A waiter for a lock of
    a file names the process that holds it."""
    agent = t.agent(rules(rule("locks", cgroup=f"/{t.name}-a", signals=["oncpu", "offcpu", "lock"])), broker=True)
    file = t.folder / "locked"
    file.touch()
    with open(file, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        worker = t.spawn("deadlock", 20, file, cgroup=t.cgroup())
        agent.wait("watch.start")
        time.sleep(0.5)
        asked = agent.call("session.start", {"rule": "locks", "during_ms": 1500})["session"]
        end = agent.wait("session.end", session=asked, seconds=15)
        threads = {}
        for tid in os.listdir(f"/proc/{worker.pid}/task"):
            with open(f"/proc/{worker.pid}/task/{tid}/comm", encoding="ascii") as stream:
                threads.setdefault(stream.read().strip(), []).append(int(tid))
    stacks = {(stack["comm"], stack["on"]["what"]): stack["on"] for stack in agent.find("stack", session=asked)
              if "on" in stack}
    for comm, holder in (("transfer", "audit"), ("audit", "transfer"), ("queued", "transfer")):
        on = stacks[comm, "futex"]
        check(on["lock"] == "mutex" and on["holder"] == {"tid": threads[holder][0], "comm": holder}, f"{comm}: {on}")
    on = stacks["locker", "file"]
    check(on["lock"] == "file" and on["holder"]["pid"] == os.getpid(), f"{on}")
    first = end["findings"][0]
    check(first["cause"] == "deadlock" and first["says"].startswith("deadlock of 2 threads: "), f"{end['findings']}")
    for word in ("move_money()", "check_books()", "lock accounts_lock in deadlock", "lock audit_lock in deadlock",
                 f"transfer (thread {threads['transfer'][0]})", "; 3 further threads wait for them"):
        check(word in first["says"], f"{word}: {first['says']}")
    with open("/proc/self/comm", encoding="ascii") as stream:
        own = stream.read().strip()
    others = [one for one in end["findings"] if one["cause"].startswith("lock_")]
    check(len(others) == 1 and f"locked held by {own} (process {os.getpid()})" in others[0]["says"] and
          "accounts_lock" not in others[0]["says"], f"{others}")


def test_table_is_full(t):
    """More locks than the table takes: the ledger counts the waits, and the verdict is partial."""
    agent, _, _ = watched(t, load=["--locks", 4], broker=True, more=3)
    for _ in range(2):  # and the table is empty again for the next one
        _, end, _ = session(agent, "locks", 1000)
        ledger = end["ledger"]["lock"]
        check(ledger["lost"]["locks_full"] > 0 and ledger["emitted"] > 0, f"{ledger}")
        # Where the machine gave too few ticks that is said first.
    check(end["verdict"] == "partial" and ("--locks" in end["verdict_reason"] or "ticks came" in end["verdict_reason"]), f"{end}")


def test_flood_of_another_owner(t):
    """One service fills its share of the tables; another owner's session, which begins afterwards, loses nothing."""
    flood, own = t.cgroup("a"), t.cgroup("b")
    agent = t.agent(rules(rule("flood", cgroup=flood.path, signals=SIGNALS), rule("own", cgroup=own.path, signals=SIGNALS)),
                    load=["--locks", 16, "--long-waits", 16384], broker=True)
    for i in range(8):
        t.spawn("lock_holds", 20, t.folder / f"flood{i}", cgroup=flood)
    t.spawn("lock_holds", 20, t.folder / "own", cgroup=own)
    agent.wait("watch.start", cgroup=flood.path)
    agent.wait("watch.start", cgroup=own.path)
    first = agent.call("session.start", {"rule": "flood", "during_ms": 3000})["session"]
    agent.wait("session.start", session=first)
    time.sleep(1)
    second = agent.call("session.start", {"rule": "own", "during_ms": 300})["session"]
    lost = {name: agent.wait("session.end", session=asked, seconds=20)["ledger"]["lock"]
            for name, asked in (("flood", first), ("own", second))}
    check(lost["flood"]["lost"].get("locks_full", 0) > 0, f"{lost}")
    check(lost["flood"]["long_waits"]["lost"].get("long_waits_full", 0) > 0, f"{lost}")
    check(lost["own"]["emitted"] > 0 and lost["own"]["lost"] == {}, f"{lost}")
    check(lost["own"]["long_waits"]["lost"] == {}, f"{lost}")


def test_patterns(t):
    """A herd, and three locks that are none: a convoy, work that comes by itself, and work for all at once."""
    agent = t.agent(rules(rule("locks", cgroup=f"/{t.name}-a", signals=SIGNALS)), broker=True)
    file = t.folder / "addresses"
    worker = t.spawn("lock_patterns", 20, file, cgroup=t.cgroup())
    agent.wait("watch.start")
    until(lambda: file.exists() and file.read_text().count("\n") == 4, 5, "no addresses")
    names = {name: int(address, 16) for name, address in (line.split() for line in file.read_text().splitlines())}
    _, end, lines = session(agent, "locks", 3000)
    told = {int(line["address"], 16): line for line in lines if line.get("pid") == worker.pid and "address" in line}
    herd, step, turn = (told[names[name]] for name in ("herd", "step", "turn"))
    jobs = [line for address, line in told.items() if names["job"] <= address < names["job"] + 48]
    check(herd["pattern"] == "herd" and herd["threads"] == 8 and 2 * herd["again"] > herd["waits"], f"{herd}")
    check(turn["pattern"] == "convoy" and "again" not in turn, f"{turn}")
    check(jobs and all("again" not in line for line in jobs), f"{jobs}")
    check(step["threads"] == 4 and step.get("pattern") != "herd" and step.get("again", 0) * 16 < step["waits"], f"{step}")
    check("without getting it" in end["headline"], f"{end['headline']}")
    for line, name in ((herd, "herd_lock"), (step, "step_word"), (turn, "turn_lock"), (jobs[0], "job_ready")):
        check(line["symbol"] == name and line["module"].endswith("/lock_patterns"), f"{line}")
        check(line["symbol_offset"] == int(line["address"], 16) - names[name.split("_")[0]], f"{line}")
    check("for lock herd_lock in lock_patterns, woken" in end["headline"], f"{end['headline']}")
    kept = t.folder / "lines"
    kept.write_bytes(b"".join(agent.raw))
    shown = command(COMMAND, "report", "--full", kept).stdout
    check("A thundering herd" in shown and "herd_lock in lock_patterns" in shown, shown)


def test_homes(t):
    """Locks that are no variables: on the heap, on a stack, and in memory that two processes share."""
    agent = t.agent(rules(rule("locks", cgroup=f"/{t.name}-a", signals=SIGNALS)), broker=True)
    file = t.folder / "addresses"
    worker = t.spawn("lock_homes", 20, file, cgroup=t.cgroup())
    agent.wait("watch.start")
    until(lambda: file.exists() and file.read_text().count("\n") == 4, 5, "no addresses")
    homes = {name: (int(pid), int(tid), address)
             for name, pid, tid, address in (line.split() for line in file.read_text().splitlines())}
    _, end, lines = session(agent, "locks", 1500)
    told = {(line["pid"], line.get("address")): line for line in lines if "pid" in line}
    heap, stack, shared, child = (told[homes[name][0], homes[name][2]]
                                  for name in ("heap", "stack", "shared", "child"))
    check(all("module" not in line and "symbol_reason" not in line for line in (heap, stack, shared, child)), f"{lines}")
    check(heap["memory"]["kind"] == "heap" and 0 < heap["memory"]["offset"] < 1 << 20, f"{heap}")
    check(stack["memory"] == {"kind": "stack", "tid": homes["stack"][1]}, f"{stack} {homes}")
    check(shared["memory"] == child["memory"] and shared["address"] != child["address"], f"{shared} {child}")
    check(shared["memory"]["kind"] == "shared" and shared["memory"]["name"] == "memfd:shop_queue", f"{shared}")
    check(shared["memory"]["offset"] == 64 and shared["memory"]["inode"] > 0, f"{shared}")
    check(worker.pid == heap["pid"] != child["pid"], f"{heap} {child}")
    kept = t.folder / "lines"
    kept.write_bytes(b"".join(agent.raw))
    shown = command(COMMAND, "report", "--full", kept).stdout
    for line, says in ((heap, "on the heap"), (stack, f"on the stack of thread {homes['stack'][1]}"),
                       (shared, "in shared memory memfd:shop_queue+0x40")):
        check(f"futex {line['address']} {says}" in shown, shown)


def test_stripped(t):
    """Of a program without symbols it is said that the locks are in its data, and why they have no name."""
    agent = t.agent(rules(rule("locks", cgroup=f"/{t.name}-a", signals=SIGNALS)), broker=True)
    subprocess.run(["strip", t.binary("lock_patterns", "bare")], check=True)
    worker = t.spawn("lock_patterns", 10, t.folder / "addresses", name="bare", cgroup=t.cgroup())
    agent.wait("watch.start")
    _, end, lines = session(agent, "locks", 1000)
    lines = [line for line in lines if line.get("pid") == worker.pid and "address" in line]
    check(len(lines) >= 4 and all(line["symbol_reason"] == "stripped" and line["module"].endswith("/bare") and
                                  "symbol" not in line for line in lines), f"{lines}")
    check("for one lock in bare" in end["headline"], f"{end['headline']}")


def attached(agent):
    """How many links the agent's own two programs have: others may test on this machine too."""
    shown = [subprocess.run(["bpftool", "-j", "prog", "show", "pinned", agent.bpf / name], check=True,
                            capture_output=True).stdout for name in ("lock_waking", "account_switch")]
    programs = {json.loads(one)["id"] for one in shown}
    return sum(link.get("prog_id") in programs for link in bpf_objects("link"))


@pytest.mark.serial
def test_detached_at_once(t):
    """Both programs are attached in a session alone, and go when the consumer is killed."""
    agent, _, _ = watched(t, broker=True)
    check(attached(agent) == 0, "attached before a session")
    session_id = agent.call("session.start", {"rule": "locks", "during_ms": 600})["session"]
    until(lambda: attached(agent) == 2, 5, "not attached in a session")
    agent.wait("session.end", session=session_id)
    until(lambda: attached(agent) == 0, 5, "attached after the session")
    agent.call("session.start", {"rule": "locks", "during_ms": 10000})
    until(lambda: attached(agent) == 2, 5, "not attached again")
    agent.stop(signal.SIGKILL, expect=-signal.SIGKILL)
    until(lambda: attached(agent) == 0, 2, "attached without the consumer")
    agent.start()
    agent.wait("watch.start", since=agent.mark)
    _, end, _ = session(agent, "locks", 500)  # what the dead one has left does not count
    check(end["locks"]["longest_ms"] <= 520, f"{end}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_missing_without_the_broker(t):
    """Nobody attaches it: session.start and the end say why."""
    agent, _, _ = watched(t, broker=False)
    asked = agent.call("session.start", {"rule": "locks", "during_ms": 500})["session"]
    start = agent.wait("session.start", session=asked)
    end = agent.wait("session.end", session=asked)
    check([missing["signal"] for missing in start["signals_missing"] if missing["signal"] == "lock"] == ["lock"],
          f"{start}")
    check(end["locks"] is None and end["locks_reason"] and end["verdict"] == "inconclusive", f"{end}")
