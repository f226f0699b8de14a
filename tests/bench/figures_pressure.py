# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to follow the pressure of very many watches: by triggers of the kernel against by scan."""
import itertools
import os
import pathlib
import time

from table import Row, ratio
from world import World, harness, memory_mib, process_cpu_seconds, switches

# Never crossed: what is measured is the following, not what a crossing starts.
WHEN = [{"pressure": resource, "some_ms": 1990, "window_ms": 2000} for resource in ("cpu", "memory", "io")]


def make_groups(w, count):
    """`count` cgroups with one sleeping process each below one parent; returns the parent."""
    parent = w.cgroup("herd")
    herd = w.run_tool("herd", count)
    if herd.stdout.readline().strip() != "ready":
        raise harness.Failure("bench-herd is not ready")
    children = pathlib.Path(f"/proc/{herd.pid}/task/{herd.pid}/children").read_text().split()
    for number, child in enumerate(children):
        group = harness.Cgroup(f"{parent.name}/c{number}")
        w.cgroups.append(group)
        (group.folder / "cgroup.procs").write_text(child)
    return parent


def wait_followed(agent, count, by_trigger):
    """(ms until all are followed as they shall be, the longest answer meanwhile in ms)."""
    began, longest = time.monotonic(), 0
    while True:
        asked = time.monotonic()
        status = agent.call("status", seconds=60)
        longest = max(longest, time.monotonic() - asked)
        pressure = status["pressure"]
        there = pressure["triggers"] if by_trigger else pressure["waiting"] + pressure["scanned"]
        if status["watches"] == count and there == 3 * count:
            return (time.monotonic() - began) * 1e3, longest * 1e3
        if time.monotonic() - began > 60:
            raise harness.Failure(f"not all are followed: {status['watches']} watches, {pressure}")
        time.sleep(0.02)


def tasks(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def psimon():
    """Threads of that name on the whole machine."""
    count = 0
    for comm in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            count += comm.read_text().startswith("psimon")
        except (FileNotFoundError, ProcessLookupError):
            pass
    return count


def follow(w, rules, count, by_trigger, seconds):
    """One leg: what the consumer uses while it follows them all and nothing is crossed."""
    threads = psimon()
    agent = w.agent(rules, broker=by_trigger)
    opened, longest = wait_followed(agent, count, by_trigger)
    time.sleep(6)  # until the drain after the start, and what it asks for
    before = process_cpu_seconds(agent.pid), switches(agent.pid)
    time.sleep(seconds)
    found = {
        "cpu_ms": (process_cpu_seconds(agent.pid) - before[0]) * 1e3,
        "woken": switches(agent.pid) - before[1],
        "descriptors": len(os.listdir(f"/proc/{agent.pid}/fd")),
        "threads": tasks(agent.pid), "psimon": psimon() - threads,
        "memory": memory_mib(agent.pid)["VmRSS"], "opened_ms": opened, "longest_ms": longest,
    }
    began = time.monotonic()
    agent.stop()
    found["ended_s"] = time.monotonic() - began
    agent.unload()
    return found


def watches(short):
    """1,000 watches of three resources: by trigger against by scan"""
    count, seconds = (150, 5) if short else (1000, 60)
    with World("watches") as w:
        parent = make_groups(w, count)
        rule = harness.rule("all", cgroup=parent.path + "/c", when=WHEN)
        # The scan sleeps while nothing at all stalls: outside of the watches something always does.
        w.spawn("burn_cpu", 4 * seconds + 120, os.cpu_count() + 1)
        rules = harness.rules(rule)
        trigger, scan = (follow(w, rules, count, by, seconds) for by in (True, False))
    what = f"{count} watches of three resources"
    told = itertools.chain(
        [("CPU ms of the consumer", "cpu_ms", ".0f"), ("wake-ups", "woken", "d")],
        [("descriptors", "descriptors", "d"), ("resident, MiB", "memory", ".1f"),
         ("threads of the consumer", "threads", "d"), ("psimon threads of the kernel", "psimon", "d"),
         ("until all are followed, ms", "opened_ms", ".0f"),
         ("longest answer of the control socket meanwhile, ms", "longest_ms", ".0f"),
         ("from SIGTERM to the end, s", "ended_s", ".1f")])
    for number, (name, key, form) in enumerate(told):
        during = f", {seconds} s, others stalling" if number < 2 else ""
        # A scan that is due again before it has ended never sleeps: its wake-ups say nothing then.
        peer = "-" if key == "woken" else f"by scan {scan[key]:{form}}"
        yield Row(f"{what}: {name}{during}", f"{trigger[key]:{form}}", "-", peer,
                  None if key == "woken" else ratio(trigger[key], scan[key]))
