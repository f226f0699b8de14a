# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/broker/* loader/broker_main* consumer/broker/* shared/broker/* consumer/signals/signal_programs*
# tests: consumer/evidence/time/context_switches* bpf/cpu/switch.bpf.c
"""Sampling through the broker: what runs follows need, costs nothing while nothing is needed, and goes on
without whoever dies."""
import contextlib
import ctypes
import importlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

import harness
from harness import check, check_complete, check_figure, command, rule, rules, until
from machine import Load

QUIET_S = 20
BPF_CALL = {"x86_64": 321, "aarch64": 280}
BPF_ENABLE_STATS = 32
MAGIC, HELLO, VERSION = 0x6B72626F, 0, 5
CPU = {"pressure": "cpu", "some_ms": 400, "window_ms": 1000}

# What "auto" chooses at pressure of cpu, and at a request.
AT_CPU = ["oncpu", "offcpu", "runq", "lock", "syscall", "socket", "switch", "pools", "neighbours"]
ON_REQUEST = [*AT_CPU[:4], "block", "reclaim", *AT_CPU[4:]]
KEYS = {"runq": "runq", "lock": "locks", "block": "block", "syscall": "syscall", "reclaim": "reclaim",
        "socket": "sockets", "switch": "switches", "pools": "pools"}


def check_signals(wanted, start, end):
    """All of them ran from the start on, but for those that a slow broker attached soon after."""
    late = set(wanted) - set(start["signals"])
    check(start["signals"] == [name for name in wanted if name not in late], f"{start}")
    check(all(name in KEYS and end[KEYS[name]].get("late_ms", 0) < 1000 for name in late), f"{start} {end}")


@contextlib.contextmanager
def counted_runs():
    """The kernel counts how often each BPF program runs, for the time of the block: by a descriptor of
    our own, because the sysctl is everybody's."""
    attributes = (ctypes.c_uint32 * 32)()
    fd = ctypes.CDLL(None, use_errno=True).syscall(
        BPF_CALL[os.uname().machine], BPF_ENABLE_STATS, attributes, ctypes.sizeof(attributes))
    check(fd >= 0, f"BPF_ENABLE_STATS: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        os.close(fd)


def program(agent, name):
    return json.loads(command("bpftool", "-j", "prog", "show", "pinned", agent.bpf / name).stdout)


def runs(agent, name="sampler"):
    return program(agent, name).get("run_cnt", 0)


def attached(agent, name="count_switches"):
    """Links of that program."""
    prog_id = program(agent, name)["id"]
    links = json.loads(command("bpftool", "-j", "link", "show").stdout or "[]")
    return [link for link in links if link.get("prog_id") == prog_id]


def online():
    return len(os.sched_getaffinity(0))


def perf_events(pid):
    """Perf descriptors that the process holds."""
    found = 0
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += "perf_event" in os.readlink(fd)
    return found


def wake_ups(pid):
    """How often any thread of the process has gone to sleep: a system call cannot be without it."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return total


def system_calls(pid, seconds):
    """System calls that strace sees begin, without those of its own arrival."""
    with subprocess.Popen(["strace", "-f", "-ttt", "-p", str(pid)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as tracer:
        began = time.time() + 1
        time.sleep(seconds + 1)
        ended = time.time()
        tracer.send_signal(signal.SIGINT)
        lines = tracer.stderr.read().splitlines()
    check(any("attached" in line for line in lines), f"strace: {lines[:3]}")
    calls = []
    for line in lines:
        word = next((w for w in line.split() if w[0].isdigit() and "." in w), None)
        if word and began < float(word) < ended and "resumed" not in line:
            calls.append(line)
    return calls


def cpu_seconds(group):
    """What the cgroup's processes have used so far."""
    return int((group.folder / "cpu.stat").read_text().split()[1]) / 1e6


def gone(agent):
    """No sampling event is held and no tick comes, for a second."""
    until(lambda: perf_events(agent.pid) == 0, 15, "the sampling events are still open")
    before = runs(agent)
    time.sleep(1)
    return runs(agent) - before


def exact(end):
    ledger = end["ledger"]["oncpu"]
    check(ledger["attempted"] == ledger["emitted"] + sum(ledger["lost"].values()), f"{ledger}")
    check("unaccounted" not in ledger["lost"], f"{ledger}")
    return ledger


def start(t, agent, group, **options):
    process = t.spawn("burn_cpu", options.pop("seconds", 60), options.pop("threads", 1), name=t.comm,
                      cgroup=group)
    return process, agent.wait("watch.start", cgroup=group.path)


def capture(agent, group, during_ms=1500):
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": during_ms})["session"]
    return agent.wait("session.end", seconds=during_ms / 1000 + 10, session=session)


def test_session(t):
    """Watch, session, end: events are opened, re-rated and closed, and no tick is missing in the account."""
    agent = t.agent(rules(rule("api", comm=t.comm, pre_ms=3000)), broker=True)
    begin = agent.find("agent.start")[0]
    check(begin["features"]["broker"] and begin["sampling"]["by"] == "broker", f"{begin}")
    check(perf_events(agent.pid) == 0, "events without a watch")
    with counted_runs():
        check(gone(agent) == 0, "ticks without a watch")
        group = t.cgroup()
        # As many threads as CPUs: on some machines a CPU that sleeps does not tick.
        process, watch = start(t, agent, group, threads=online())
        check(watch["sampling"] == {**watch["sampling"], "by": "broker", "events": online(),
                                    "missing": 0, "hz": 19.4}, f"{watch['sampling']}")
        check(perf_events(agent.pid) == 2 * online(), "not two events per CPU")
        before, used, began = runs(agent), cpu_seconds(group), time.monotonic()
        time.sleep(4)
        share = (cpu_seconds(group) - used) / (time.monotonic() - began)
        ticked = (runs(agent) - before) / 4 / online()
        check_figure(15 < ticked < 23, f"{ticked} ticks a second and CPU, not 19.4", t.load)
        end = capture(agent, group, 3000)
        said = agent.find("session.start", session=end["session"])[0]
        check(said["sampling"]["hz"] == 97, f"{said}")
        check_signals(ON_REQUEST, said, end)
        ledger = exact(end)
        check_complete(end, t.load)
        check_figure(0.6 < ledger["during"]["attempted"] / ledger["expected"] < 1.4, f"{ledger}", t.load)
        # before and onset: one sample in five ticks of the full rate, each for five of them
        weights = sum(s["weight_ns"] for s in agent.stacks(end["session"])
                      if s["phase"] != "during" and "count" in s and s["signal"] == "oncpu")
        emitted = sum(ledger[phase]["emitted"] for phase in ("before", "onset"))
        check(weights == emitted * 5 * (10**9 // 97), f"{weights} {ledger}")
        weighed = weights / 1e6 / end["pre_ms"]
        check_figure(0.6 < weighed / share < 1.6, f"{weighed} of a CPU by weight, {share} by cpu.stat", t.load)
        before = runs(agent)
        time.sleep(2)
        ticked = (runs(agent) - before) / 2 / online()
        check(ticked < 24, f"{ticked} ticks a second and CPU after the session, not 19.4")
        t.end(process)
        agent.wait("watch.stop", cgroup=group.path)
        check(gone(agent) == 0, "ticks after the last watch")
        check(agent.call("status")["sampling"]["events"] == 0, "status")


@pytest.mark.parallel(4)
def test_nothing_watched_costs_nothing(t):
    """Rules, no match: not a tick, not a program on the scheduler, not a wake-up."""
    agent = t.agent(rules(rule("api", comm=t.comm, when=[CPU])), broker=True)
    time.sleep(3)  # what the start left to do
    with counted_runs():
        ticks, asleep = runs(agent), wake_ups(agent.pid)
        time.sleep(QUIET_S)
        check(runs(agent) == ticks, f"{runs(agent) - ticks} ticks")
        woken = wake_ups(agent.pid) - asleep
    check(woken == 0, f"{woken} wake-ups in {QUIET_S} s")
    check(not attached(agent) and runs(agent, "count_switches") == 0, "a program on the scheduler")
    calls = system_calls(agent.pid, 5)
    check(not calls, f"system calls in 5 s: {calls[:5]}")
    until(lambda: agent.broker.pid == 0, 12, "the broker does not leave")


@pytest.mark.parallel(4)
def test_recorder_wakes_seldom(t):
    """While only the recorder runs the consumer wakes once in 5 s, scan included."""
    agent = t.agent(rules(rule("api", comm=t.comm)), broker=True)
    start(t, agent, t.cgroup())
    time.sleep(6)
    calls = system_calls(agent.pid, QUIET_S)
    woken = [line for line in calls if "epoll_" in line]
    check(1 <= len(woken) <= QUIET_S / 5 + 1, f"{len(woken)} wake-ups in {QUIET_S} s: {woken[:9]}")


@pytest.mark.parallel(3)
def test_broker_killed(t):
    """SIGKILL at any moment: what is open stays, and the next request finds another one."""
    agent = t.agent(rules(rule("api", comm=t.comm, pre_ms=0)), broker=True)
    group = t.cgroup()
    start(t, agent, group)
    capture(agent, group, 200)  # on a busy machine the first table is of a program whose libraries are not there yet
    for i in range(12):
        threading.Timer(0.004 * i, agent.broker.kill).start()
        end = capture(agent, group, 200)
        exact(end)
        check_complete(end, t.load)
    time.sleep(4.5)  # one that was killed before its first answer is not asked again for BROKER_CLIENT_RETRY_NS
    starts = agent.broker.starts
    agent.broker.kill()
    until(lambda: agent.broker.pid == 0, 5, "the broker was not killed")
    agent.write_rules(rules(rule("api", comm=t.comm, signals=["oncpu", "switch"])))
    agent.wait("rules.applied", generation=2)
    session = agent.call("session.start", {"rule": "api", "during_ms": 500})["session"]
    end = agent.wait("session.end", session=session)
    check(end["switches"] and agent.broker.starts > starts, f"{end}")
    status = agent.call("status")["broker"]
    check(status["there"] and status["granted"]["signal_attach"] >= 1 and
          status["by_all"]["starts"] == agent.broker.starts, f"{status} {agent.broker.starts}")


@pytest.mark.parallel(4)
def test_broker_gone_and_back(t):
    """Nobody listens for a while: said once, the sessions of that time are inconclusive, then all is well."""
    agent = t.agent(rules(rule("api", comm=t.comm)), broker=True)
    aside = agent.broker.path.with_name("aside")
    agent.broker.path.rename(aside)
    until(lambda: agent.broker.kill() or agent.broker.pid == 0, 5, "the broker was not killed")
    group = t.cgroup()
    _, watch = start(t, agent, group)
    check(watch["sampling"]["by"] == "none" and watch["sampling"]["missing"] == online() and
          "socket" in watch["sampling"]["reason"], f"{watch['sampling']}")
    error = agent.wait("error", code="sampling_missing")
    check(error["count"] == online(), f"{error}")
    end = capture(agent, group, 300)
    check(end["verdict"] == "inconclusive" and "socket" in end["verdict_reason"] and
          "no CPU was sampled" in end["headline"], f"{end}")
    said = agent.find("session.start", session=end["session"])[0]
    check("oncpu" not in said["signals"] and said["signals_missing"][0]["signal"] == "oncpu", f"{said}")
    status = agent.call("status")
    check(not status["broker"]["there"] and status["broker"]["unreachable"] > 0, f"{status['broker']}")
    aside.rename(agent.broker.path)
    until(lambda: agent.call("status")["sampling"]["events"] == online(), 12, "not sampled again")
    end = capture(agent, group, 1000)
    exact(end)
    check_complete(end, t.load)
    check(end["ledger"]["oncpu"]["emitted"] > 0, f"{end}")
    check(len(agent.find("error", code="sampling_missing")) == 1, "said more than once")
    check("has its event again" in agent.stderr(), agent.stderr())


@pytest.mark.parallel(3)
@pytest.mark.core
def test_consumer_killed(t):
    """Its death disarms: no tick comes any more, and no program stays on the scheduler."""
    agent = t.agent(rules(rule("api", comm=t.comm, signals=["oncpu", "switch"])), broker=True)
    start(t, agent, t.cgroup())
    agent.call("session.start", {"rule": "api", "during_ms": 20000})
    with counted_runs():
        before = runs(agent)
        until(lambda: runs(agent) > before and attached(agent), 5, "nothing ran before")
        agent.stop(signal.SIGKILL, expect=-signal.SIGKILL)
        until(lambda: not attached(agent), 5, "the scheduler's program is still attached")
        ticks, switches = runs(agent), runs(agent, "count_switches")
        time.sleep(2)
        check(runs(agent) == ticks, f"{runs(agent) - ticks} ticks of nobody")
        check(runs(agent, "count_switches") == switches, "switches are still counted")
    agent.start()
    start_line = agent.wait("agent.start", since=agent.mark)
    check(start_line["features"]["broker"] and start_line["gap_ms"] > 0, f"{start_line}")
    until(lambda: agent.call("status")["sampling"]["events"] == online(), 5, "the next does not sample")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_no_broker_at_all(t):
    """Neither broker nor --always: said in each line that it concerns, never silence."""
    agent = t.agent(rules(rule("api", comm=t.comm)), load=["--always", "none"])
    begin = agent.find("agent.start")[0]
    missing = next(m for m in begin["missing"] if m["feature"] == "broker")
    check(not begin["features"]["broker"] and "--broker none" in missing["reason"] and
          "no stacks" in missing["lost"] and begin["sampling"]["by"] == "none", f"{begin}")
    group = t.cgroup()
    _, watch = start(t, agent, group)
    check(watch["sampling"]["by"] == "none" and watch["sampling"]["hz"] == 0, f"{watch['sampling']}")
    end = capture(agent, group, 300)
    check(end["verdict"] == "inconclusive" and "--broker none" in end["verdict_reason"], f"{end}")
    check(end["ledger"]["oncpu"]["attempted"] == 0 and end["pre_ms"] == 0, f"{end}")
    agent.wait("error", code="sampling_missing")


class Other:
    """A broker of another ABI: its answer to hello is a refusal, then it hangs up."""

    def __init__(self, path):
        self.asked = 0
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        os.chmod(path, 0o666)
        self.listener.listen(4)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            _, request, sequence, _ = struct.unpack("=4I", connection.recv(64)[:16])
            check(request == HELLO, "hello does not come first")
            self.asked += 1
            connection.send(struct.pack("=4IiI", MAGIC, request, sequence, VERSION, 0, 0))
            connection.close()


@pytest.mark.parallel(4)
def test_broker_of_another_version(t):
    """Refused in one line, and the consumer goes on without it."""
    path = t.folder / "other.sock"
    other = Other(path)
    agent = t.agent(rules(rule("api", comm=t.comm)), load=["--always", "none"],
                    arguments=["--broker", path])
    group = t.cgroup()
    _, watch = start(t, agent, group)
    check(watch["sampling"]["by"] == "none" and "version" in watch["sampling"]["reason"], f"{watch}")
    until(lambda: other.asked >= 2, 12, "it does not ask again")
    lines = [line for line in agent.stderr().splitlines() if "broker: " in line]
    check(len(lines) == 1 and "version" in lines[0], f"{lines}")
    status = agent.call("status")["broker"]
    check(status["refused"] == {"version": other.asked} and not status["there"], f"{status}")
    other.listener.close()


@pytest.mark.parametrize("beside, programs", [([], 1), (["pools"], 0)], ids=["alone", "pools"])
def test_switches(t, beside, programs):
    """Counted in a session as the kernel's own account of the process has them. Where the session has accounts of its
    threads these count it, and no program beside theirs is attached."""
    signals = ["oncpu", "switch", *beside]
    agent = t.agent(rules(rule("naps", cgroup=f"/{t.name}-a", signals=signals)), broker=True)
    group = t.cgroup()
    napper = subprocess.Popen(["/usr/bin/python3", "-c",
                               "import time\nwhile True: time.sleep(0.004)"],
                              preexec_fn=group.join, stdout=subprocess.PIPE)
    t.processes.append(napper)
    agent.wait("watch.start", cgroup=group.path)
    time.sleep(0.5)
    check(not attached(agent), "attached before a session")
    session = agent.call("session.start", {"rule": "naps", "during_ms": 3000})["session"]
    said = agent.wait("session.start", session=session)
    check(said["signals"] == signals and "signals_missing" not in said, f"{said}")
    began, naps = time.monotonic(), wake_ups(napper.pid)
    time.sleep(2.5)
    rate = (wake_ups(napper.pid) - naps) / (time.monotonic() - began)
    check(len(attached(agent)) == programs, f"{attached(agent)} in a session")
    end = agent.wait("session.end", session=session)
    counted = end["switches"]["voluntary"] / end["duration_ms"] * 1000
    check(rate > 50 and 0.75 < counted / rate < 1.25, f"{counted} counted, {rate} in /proc, a second")
    check("uncounted" not in end["switches"], f"{end['switches']}")
    check(not attached(agent), "attached after the session")


def test_switches_of_auto(t):
    """auto counts them at cpu pressure; that they cannot be had makes no verdict worse, unless named."""
    group = t.cgroup(quota=50)
    agent = t.agent(rules(rule("api", comm=t.comm, when=[CPU], during_ms=1000)), broker=False)
    t.spawn("burn_cpu", 20, 4, name=t.comm, cgroup=group)
    said = agent.wait("session.start", seconds=15, rule="api")
    missing = {one["signal"]: one["reason"] for one in said["signals_missing"]}
    check(said["signals"][:2] == ["oncpu", "offcpu"] and "--broker none" in missing["switch"] and
          said["sampling"]["by"] == "always", f"{said}")
    end = agent.wait("session.end", session=said["session"])
    check_complete(end, t.load)
    check(end["switches"] is None and end["switches_reason"], f"{end}")
    agent.write_rules(rules(rule("api", comm=t.comm, signals=["oncpu", "switch"])))
    agent.wait("rules.applied", generation=2)
    session = agent.call("session.start", {"rule": "api", "during_ms": 300})["session"]
    end = agent.wait("session.end", session=session)
    check(end["verdict"] == "inconclusive" and "signals" in end["verdict_reason"], f"{end}")
    agent.stop()
    agent.unload()
    other = t.agent(rules(rule("api", comm=t.comm, when=[CPU], during_ms=1000)), broker=True)
    said = other.wait("session.start", seconds=15, rule="api")
    end = other.wait("session.end", session=said["session"])
    # A broker that had to be started may be late for the first line; not for the session.
    check_signals(AT_CPU, said, end)
    check(end["switches"]["involuntary"] > 0 and end["pools"]["running_ms"] > 0, f"{end}")
    # Looks find those that wait for a CPU, where they will go on.
    queued = [s for s in other.stacks(said["session"], "offcpu") if s["state"] == "runnable"]
    check(any(f["fn"] == "spin_on_checkout_total" for s in queued for f in s["frames"]), f"{queued}")
    check_complete(end, t.load)


# Has a program mapped that lies on a file system of its own mount namespace, as a container's does.
MAPS_THERE = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
if libc.mount(b"trocar", sys.argv[2].encode(), b"overlay", 0, sys.argv[3].encode()):
    sys.exit("no overlay")
with open("/proc/self/comm", "w") as comm:
    comm.write(sys.argv[1])
fd = os.open(sys.argv[2] + "/program", os.O_RDONLY)
held = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
held[0]
print("mapped", flush=True)
while sys.stdin.read(1):
    pass
while True:
    sum(range(1000))
"""


def test_file_that_hangs(t):
    """A watched program lies on a file system that answers nobody (root's overlay above a FUSE server): whoever reads
    its names waits, and the main loop does not, whatever it asks of the broker meanwhile."""
    sys.path.insert(0, str(harness.ROOT / "tests/broker"))
    held_fs = importlib.import_module("held_fs")
    try:
        held = held_fs.HeldFs(t.folder / "held", pathlib.Path("/usr/bin/sleep").read_bytes())
    except held_fs.Skip as why:
        raise harness.Skip(str(why)) from why
    try:
        hang(t, held)
    finally:
        held.close()


def hang(t, held):
    for name in ("low", "all"):
        (t.folder / name).mkdir()
    group = t.cgroup()
    process = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "/usr/bin/python3", "-c", MAPS_THERE, t.comm, t.folder / "all",
         f"lowerdir={t.folder}/held:{t.folder}/low"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=group.join)
    t.processes.append(process)
    if process.stdout.readline() != b"mapped\n":
        raise harness.Skip("no overlay above FUSE here")
    held.held = True
    agent = t.agent(rules(rule("hang", comm=t.comm, signals=["oncpu", "switch"])), broker=True)
    agent.wait("watch.start", cgroup=group.path)
    process.stdin.close()
    check(held.asked.wait(10), "nobody asked for the file: nothing was tried")
    began, longest, load = time.monotonic(), 0, Load()
    session = agent.call("session.start", {"rule": "hang", "during_ms": 500})["session"]
    while time.monotonic() - began < 2:
        asked = time.monotonic()
        agent.call("status")
        longest = max(longest, time.monotonic() - asked)
        time.sleep(0.01)
    said = agent.wait("session.start", session=session)
    check(said["signals"] == ["oncpu", "switch"], f"the broker did not answer the loop: {said}")
    end = agent.wait("session.end", seconds=20, session=session)
    check_figure(exact(end)["emitted"] > 0, f"{end}", t.load)
    refused = agent.call("status")["broker"]["refused"]
    check(refused.get("slow"), f"the file did not hang: {refused}")
    check_figure(longest < 0.3, f"the main loop did not answer for {longest:.2f} s", load)
