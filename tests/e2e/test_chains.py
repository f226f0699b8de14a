# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/locks/long_wait.h consumer/evidence/locks/long_wait* consumer/answer/chain*
# tests: consumer/answer/session_chains*
# tests: ctl/render/text_report_chains* shared/findings/chain_ends.def
"""Wait chains: for whom threads waited and what those did meanwhile, against what the threads measured themselves."""
import pytest

from harness import COMMAND, check, check_figure, command, rule, rules, until
from servers import Disk, Service

SIGNALS = ["oncpu", "offcpu", "lock", "pools"]
DURING_MS = 2000
APART_NS = 5_000_000  # the agent reads the waits and the accounts one after the other


def measured(file):
    """{name: [(begin, end), ...]} in ns, from the lines of the workload `wait_chain`."""
    waits = {}
    for line in file.read_text().splitlines():
        if line.count(" ") == 4:
            name, _, _, begin, end = line.split()
            waits.setdefault(name, []).append((int(begin), int(end)))
    return waits


def clip(waits, within):
    """The parts of waits that lie in others."""
    return [(max(a, c), min(b, d)) for a, b in waits for c, d in within if max(a, c) < min(b, d)]


def total(waits):
    return sum(end - begin for begin, end in waits)


def over(waits, end_ns):
    """Those that somebody had ended by then."""
    return [(begin, end) for begin, end in waits if end < end_ns - APART_NS]


def session(t, agent, file, during_ms=DURING_MS):
    """session.end, its chains, what was measured in it, and what `trocar` makes of the lines."""
    until(lambda: file.exists() and file.read_text().count("\n") > 2, 8, "no rounds")
    asked = agent.call("session.start", {"rule": "chain", "during_ms": during_ms})["session"]
    end = agent.wait("session.end", session=asked, seconds=during_ms / 1000 + 15)
    check_figure(end.get("locks") and end.get("pools"), f"the broker was late: {end}", t.load)
    first, last = end["pools"]["from_mono_ns"], end["pools"]["to_mono_ns"]
    until(lambda: max(e for waits in measured(file).values() for _, e in waits) > last, 5, "no round after the session")
    waits = {name: clip(own, [(first, last)]) for name, own in measured(file).items()}
    kept = t.folder / "lines"
    kept.write_bytes(b"".join(agent.raw))
    return end, agent.find("chain", session=asked), waits, kept


def watched(t, what, scratch=None, group=None):
    group = group or t.cgroup()
    agent = t.agent(rules(rule("chain", cgroup=group.path, signals=SIGNALS, pre_ms=0)), broker=True)
    file = t.folder / "measured"
    t.spawn("wait_chain", 60, file, what, *([scratch] if scratch else []), cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    return agent, file


def check_times(t, links, wanted):
    """Each link has the time that the threads measured, (least, most) in ns: within 5 % or 2 ms for each of its waits."""
    for link, (least, most) in zip(links, wanted):
        slack = max(0.05 * most, 2e6 * link["count"] / 10)
        check_figure(least - slack <= link["ns"] <= most + slack, f"{link['comm']}: {link['ns'] / 1e6:.1f} ms told, "
                     f"{least / 1e6:.1f} to {most / 1e6:.1f} ms measured: {link}", t.load)


def times(waits, end_ns):
    """What the first three links have, (least, most) in ns. For whom a thread waits is known from who ends the wait:
    behind one that nobody has ended by the session's end there is no link."""
    api, index, writer = (waits[name] for name in ("api-7", "index-3", "writer-1"))
    least = clip(index, over(api, end_ns))
    most = clip(index, api)
    return [(total(api), total(api)), (total(least), total(most)),
            (total(clip(writer, over(least, end_ns))), total(clip(writer, most)))]


def whole(t, what, **options):
    """The chain of the api thread, which has the three first links that all have: api-7, index-3, writer-1."""
    agent, file = watched(t, what, **options)
    end, chains, waits, kept = session(t, agent, file)
    lock = end["ledger"]["lock"]  # threads that hardly run have few samples, and one without callers makes it partial
    check(lock["lost"] == {} and lock["long_waits"]["lost"] == {}, f"{end}")
    found = [chain for chain in chains if chain["links"][0]["comm"] == "api-7"]
    check(len(found) == 1, f"{chains} {end}")
    chain, links = found[0], found[0]["links"]
    check([link["comm"] for link in links[:3]] == ["api-7", "index-3", "writer-1"], f"{links}")
    check([link.get("wait") for link in links[:2]] == ["lock", "lock"], f"{links}")
    check_times(t, links, times(waits, end["pools"]["to_mono_ns"]))
    return chain, links, waits, kept, end


def test_sleep(t):
    """It ends at a timer."""
    chain, links, _, kept, end = whole(t, "sleep")
    check(chain["end"] == "interrupt" and len(links) == 3 and links[2]["wait"] == "sleep", f"{chain}")
    check(links[2]["fn"] == "sleep_on_it" and "index-3, which waited" in chain["says"], f"{chain}")
    check("held by index-3" in command(COMMAND, "explain", kept).stdout, f"{end['findings']}")
    check("writer-1" in command(COMMAND, "report", "--full", kept).stdout, "no chain in the report")


def test_run(t):
    chain, links, _, _, _ = whole(t, "run")
    check(chain["end"] == "ran" and len(links) == 3 and links[2]["did"] == "ran", f"{chain}")


def test_disk(t):
    """It ends at the worker that writes for a loop device, behind a limit: the kernel lets pass what is allowed in 100
    ms at once, so that a block of 64 KiB waits for as long."""
    service = Service(t, "chain")
    service.place("io")
    disk = Disk(t, 100)
    (disk.folder / "wal").write_bytes(bytes(1 << 20))
    command("sync", "-f", disk.folder)
    with disk.limited(service, 600000, write=True):
        chain, links, _, _, _ = whole(t, "disk", scratch=disk.folder / "wal", group=service.group)
    check(links[2]["wait"] == "io" and links[2]["fn"] == "sync_log" and links[2]["on"]["name"] == "wal", f"{chain}")
    check(f"/wal ({disk.name})" in chain["says"], f"{chain['says']}")


def test_pipe(t):
    chain, links, waits, _, _ = whole(t, "pipe")
    check([link.get("wait") for link in links] == ["lock", "lock", "pipe", None], f"{chain}")
    check(links[3]["comm"] == "feeder-2" and links[3]["did"] == "ran" and chain["end"] == "ran", f"{chain}")


def test_socket(t):
    """The server of a unix socket is another process of the cgroup."""
    chain, links, _, _, _ = whole(t, "socket")
    check([link.get("wait") for link in links] == ["lock", "lock", "socket", "sleep"], f"{chain}")
    check(links[3]["comm"] == "catalog" and links[3]["pid"] != links[2]["pid"], f"{chain}")
    check(chain["end"] == "interrupt", f"{chain}")


def test_child(t):
    chain, links, _, _, _ = whole(t, "child")
    check([link.get("wait") for link in links] == ["lock", "lock", "child", None], f"{chain}")
    check(links[3]["comm"] == "sorter" and links[3]["pid"] != links[2]["pid"], f"{chain}")
