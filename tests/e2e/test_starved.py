# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/answer/find_pools* consumer/evidence/waits/pool_places* consumer/evidence/waits/known_wait*
# tests: consumer/answer/find_cache* consumer/signals/thresholds.h
"""What keeps a service from its work though no pressure shows it: pools without a free thread, and files that were
not in memory. Against programs of which it is known, and against some that are nearly so."""
import os
import random
import sys
import time

import pytest

from harness import COMMAND, Skip, check, check_figure, command, rule, rules
from servers import PINNED, Service, Witness, forget

POOL = ["oncpu", "offcpu", "pools", "lock", "socket", "syscall"]
CALM_S, WORKERS = 9, 6


def causes(end):
    return [finding["cause"] for finding in end["findings"]]


def session_of_pool(t, slow, how):
    """(agent, session.end) of a session on request, in which so many workers at a time are in slow tasks: six seconds
    of the pre-roll are from before, of which the older half counts as calm."""
    agent = t.agent(rules(rule("pool", cgroup=f"/{t.name}-a", signals=POOL, pre_ms=10000, during_ms=2000)), broker=True)
    group = t.cgroup()
    t.spawn("task_pool", 40, WORKERS, CALM_S, slow, how, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(CALM_S + 2)
    asked = agent.call("session.start", {"rule": "pool", "during_ms": 2000})["session"]
    return agent, agent.wait("session.end", session=asked, seconds=20)


@pytest.mark.parallel(4)
@pytest.mark.parametrize("how, place", [pytest.param("sleep", "call_billing", marks=pytest.mark.core),
                                        ("result", "await_result")])
def test_starved_pool(t, how, place):
    """All workers are in slow tasks, asleep or waiting for each other: the pool is named, where they are, and where they
    waited for work before."""
    agent, end = session_of_pool(t, WORKERS, how)
    check_figure(end["findings"] and end["findings"][0]["cause"] == "starved_pool", f"{end['findings']} {end['waits']}", t.load)
    first = end["findings"][0]
    check(f"no thread of worker- was free for new work: {WORKERS} of them waited" in first["says"], first)
    check(f"in {place} (called by " in first["says"] and "was in take_task" in first["says"], first)
    check(first["of"] == "session" and first["explains_ms"] >= 0.9 * end["duration_ms"], first)
    kept = t.folder / "kept"
    kept.write_bytes(b"".join(agent.raw))
    explained = command(COMMAND, "explain", kept).stdout
    check("what helps: look at the place where its threads wait instead of taking work" in explained, explained)


@pytest.mark.parallel(4)
@pytest.mark.parametrize("slow", [0, WORKERS - 1])
def test_pool_with_a_free_thread(t, slow):
    """As long as one worker is free for what comes, nothing is told of the pool."""
    _, end = session_of_pool(t, slow, "sleep")
    check("starved_pool" not in causes(end), f"{end['findings']}")
    check(slow or not causes(end), f"{end['findings']}")


READ = """
import os, random, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
pages = list(range(os.fstat(fd).st_size // 4096))
random.Random(7).shuffle(pages)
open(sys.argv[2], "w").close()
while True:
    for page in pages:
        os.pread(fd, 4096, page * 4096)
"""
FILE_MIB = 256


def reader(t, mib, limit_mib=None):
    """(agent, service, path): a program reads a file of so many MiB page by page, in no order, from the disk."""
    service = Service(t, "cache")
    service.place("memory")
    if limit_mib:
        service.memory(limit_mib)
    path = t.folder / "data"
    with open(path, "wb") as stream:
        for _ in range(mib):
            stream.write(random.randbytes(1 << 20))
        os.fsync(stream.fileno())
    agent = t.agent(rules(rule("cache", cgroup=service.path, signals=["oncpu", "offcpu", "pools", "block", "syscall"])),
                    broker=True)
    forget(path)
    ready = t.folder / "ready"
    service.start(*PINNED, sys.executable, "-c", READ, path, ready)
    agent.wait("watch.start", cgroup=service.path)
    return agent, service, path


def session_of_reader(t, agent):
    asked = agent.call("session.start", {"rule": "cache", "during_ms": 2500})["session"]
    end = agent.wait("session.end", session=asked, seconds=15)
    disks = [line for line in agent.find("disk", session=asked) if line["op"] == "read"]
    if not disks:
        raise Skip(f"what holds {t.folder} makes no requests")
    return end, disks


@pytest.mark.parallel(2)
@pytest.mark.core
def test_cold_cache(t):
    """A program reads a file that is not in memory: that is the cause, with what came from the disk and what stayed."""
    agent, service, _ = reader(t, FILE_MIB)
    witness = Witness(file=lambda: int(service._fields("memory", "memory.stat", "memory.stat")[0][
        "file" if service.place("memory")[1] else "total_cache"]))
    end, disks = session_of_reader(t, agent)
    witness.stop()
    check_figure(end["findings"] and end["findings"][0]["cause"] == "cache_cold", f"{end['findings']} {disks}", t.load)
    first = end["findings"][0]
    read = max(line["bytes"] for line in disks)
    check(f"{read / (1 << 20):.1f} MiB came from " in first["says"], f"{first} {disks}")
    kept = float(first["says"].split(" MiB of files stayed")[0].split()[-1]) * (1 << 20)
    check(abs(kept - read) <= 0.05 * read + (1 << 20), f"{kept} kept, {read} read: {first}")
    check(first["evidence"] == [{"type": "facts", "source": "memory"}], first)


@pytest.mark.parallel(2)
@pytest.mark.parametrize("limit_mib", [None, 48])
def test_no_cold_cache(t, limit_mib):
    """What has been read once is in memory, and what does not fit below a limit is read again: neither is a cold cache."""
    agent, service, path = reader(t, 24 if limit_mib is None else FILE_MIB // 2, limit_mib)
    time.sleep(3)
    asked = agent.call("session.start", {"rule": "cache", "during_ms": 2000})["session"]
    end = agent.wait("session.end", session=asked, seconds=15)
    check("cache_cold" not in causes(end), f"{end['findings']}")
    if limit_mib:
        check_figure(service.limit_hits() > 100, f"{path} was not read to the limit", t.load)


# ---- programs that are well

EXECUTOR = """
import concurrent.futures, threading, time
pool = concurrent.futures.ThreadPoolExecutor(6)
while True:
    pool.submit(time.sleep, 0.002).result()
    time.sleep(0.01)
"""
PIPELINE = """
import subprocess, sys, time
feed = "import time\\nwhile True: print(sum(range(20000)), flush=True); time.sleep(0.02)"
with subprocess.Popen([sys.executable, "-c", feed], stdout=subprocess.PIPE) as child:
    for line in child.stdout:
        sum(range(20000))
"""
ECHO = """
import asyncio, os
async def answer(reader, writer):
    while True:
        writer.write(await reader.readline())
async def ask(path):
    reader, writer = await asyncio.open_unix_connection(path)
    while True:
        writer.write(b"x" * 99 + b"\\n")
        await reader.readline()
        await asyncio.sleep(0.02)
async def main():
    path = f"echo-{os.getpid()}.sock"
    async with await asyncio.start_unix_server(answer, path):
        await asyncio.gather(*(ask(path) for _ in range(4)))
asyncio.run(main())
"""


@pytest.mark.parallel(3)
@pytest.mark.parametrize("program", [EXECUTOR, PIPELINE, ECHO], ids=["executor", "pipeline", "echo"])
def test_nothing_unusual(t, program):
    """Who is asked about a program that is well says so, and finds no cause."""
    agent = t.agent(rules(rule("well", cgroup=f"/{t.name}-own", pre_ms=6000, during_ms=2000)), broker=True)
    service = Service(t, "own")
    service.start(sys.executable, "-c", program)
    agent.wait("watch.start", cgroup=service.path)
    time.sleep(12)  # the recorder looks each four seconds; half of the pre-roll is calm
    asked = agent.trocar("capture", "--rule", "well", "--reason", "a look", "--wait").stdout.split()[1]
    end = agent.wait("session.end", session=asked, seconds=15)
    check_figure(not any(cause.startswith("cpu_") for cause in causes(end)), f"{end['findings']}", t.load)
    check(not causes(end), f"{end['findings']} {end.get('waits')}")
    kept = t.folder / "kept"
    kept.write_bytes(b"".join(agent.raw))
    for verb in ("report", "explain"):
        told = command(COMMAND, verb, "--session", asked, kept).stdout
        check("nothing unusual: its threads waited " in told, f"{verb} does not say so: {told[:2000]}")
