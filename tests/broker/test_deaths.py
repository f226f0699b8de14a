# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/broker/broker_serve* loader/broker/broker_tables* loader/broker/broker_peer*
"""kill -9 of either side at every step: nothing is left behind, and the next one is served."""
import fcntl
import os
import signal
import subprocess
import time

from bed import NOBODY, SWITCH, check, start_ns, until
from client import Client, message
from test_operations import MAPS, PERF_ENABLE, PROGRAM, ask, known

STEPS = ("connect", "hello", "sampler", "switch", "pressure", "mapping")

# The consumer's part as a process of its own, so that it can be killed: goes up to the step that it is
# told, holds what it got, and says so.
CLIENT = """
import fcntl, os, sys, time
sys.path.insert(0, sys.argv[1])
from client import Client
from test_deaths import take
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
held = take(sys.argv[2], sys.argv[3], [int(word) for word in sys.argv[4:]])
print("holds", flush=True)
time.sleep(60)
"""


def take(path, step, numbers):
    """Everything up to `step`; what it gives is held by what is returned."""
    cgroup_id, pid, began, first, last = numbers
    wanted = STEPS.index(step)
    c = Client(path, hello=wanted >= 1)
    held = [c]
    if wanted >= 2:
        answer = c.ask("sampler_open", 0, 97, 1)
        fcntl.ioctl(answer.fds[0], PERF_ENABLE, 0)
        held.append(answer)
    if wanted >= 3:
        held.append(c.ask("signal_attach", SWITCH, 0))
    if wanted >= 4:
        answer = c.ask("pressure_open", cgroup_id, 0, 0)
        os.write(answer.fds[0], b"some 100000 2000000\0")
        held.append(answer)
    if wanted >= 5:
        held.append(c.ask("mapping_open", began, first, last, pid, 0))
    for answer in held[1:]:
        check(answer.refusal == "none" and answer.fds, f"{step}: {answer}")
    return held


def surroundings(bed):
    """A watched cgroup and a known process: what `take` asks for, as words."""
    group = bed.group()
    bed.watch(os.stat(group).st_ino)
    process = known(bed, MAPS, PROGRAM)
    with open(f"/proc/{process.pid}/maps", encoding="ascii") as rows:
        first, last = next(row for row in rows if row.rstrip().endswith(PROGRAM)).split()[0].split("-")
    return [os.stat(group).st_ino, process.pid, start_ns(process.pid), int(first, 16), int(last, 16)]


def still(bed):
    """No link of ours, and no tick of ours within a quarter of a second."""
    until(lambda: bed.links() == 0, 5, "a link is left")

    def quiet():
        runs = bed.runs("sampler")
        time.sleep(0.25)
        return bed.runs("sampler") == runs
    until(quiet, 5, "an event still ticks")


def test_client_is_killed(bed):
    """At each step: its descriptors go with it, the broker serves the next one, and keeps nothing."""
    numbers = surroundings(bed)
    with bed.statistics():
        with bed.client():
            until(lambda: bed.open_fds(), 5, "no broker")
            base = len(bed.open_fds())
        for step in STEPS:
            process = bed.spawn("/usr/bin/python3", "-c", CLIENT, os.path.dirname(os.path.abspath(__file__)),
                                bed.socket, step, *numbers, stdout=subprocess.PIPE, text=True)
            check(process.stdout.readline() == "holds\n", f"{step}: it does not get there")
            if STEPS.index(step) >= STEPS.index("switch"):
                check(bed.links() == 1, f"{step}: {bed.links()} links")
            if STEPS.index(step) >= STEPS.index("sampler"):
                until(lambda: bed.runs("sampler") > 0, 5, "no ticks")
            process.kill()
            process.wait()
            still(bed)
            with bed.client() as c:
                check(len(bed.open_fds()) == base, f"{step}: {bed.open_fds()}")
                check(c.ask("pressure_open", 12345, 0, 0).refusal == "unwatched", "it does not serve")
        check(bed.activator.starts == 1, "it was started again")


def test_broker_is_killed(bed):
    """At each step: what was granted lives on in the consumer's hands, the next request starts another."""
    numbers = surroundings(bed)
    with bed.statistics():
        for i, step in enumerate(STEPS):
            process = bed.spawn("/usr/bin/python3", "-c", CLIENT, os.path.dirname(os.path.abspath(__file__)),
                                bed.socket, step, *numbers, stdout=subprocess.PIPE, text=True)
            check(process.stdout.readline() == "holds\n", f"{step}: it does not get there")
            until(lambda n=i: bed.counts()[0] == n + 1, 5, "it is not started")
            bed.activator.kill(signal.SIGKILL)
            check(bed.activator.wait(lambda n=i: len(bed.activator.statuses) == n + 1), "it lives")
            if i >= STEPS.index("switch"):
                check(bed.links() == 1, f"{step}: {bed.links()} links")
            if i >= STEPS.index("sampler"):
                runs = bed.runs("sampler")
                until(lambda r=runs: bed.runs("sampler") > r, 5, f"{step}: the ticks went with the broker")
            process.kill()
            process.wait()
            still(bed)
        with bed.client() as c:
            check(c.ask("pressure_open", 12345, 0, 0).refusal == "unwatched", "it does not serve")
        check(bed.counts()[0] == len(STEPS) + 1, f"{bed.counts()[0]} starts")


def test_grants_that_nobody_takes(bed):
    """Links that are on their way to a client that does not read: gone with the connection."""
    with bed.client():
        before = len(bed.open_fds())
    with bed.statistics():
        c = bed.client()
        c.socket.setblocking(False)
        sent, end = 0, time.monotonic() + 60
        while time.monotonic() < end:
            try:
                c.send(message("signal_attach", SWITCH, 0, sequence=c.sequence + 1))
                c.sequence, sent = c.sequence + 1, sent + 1
            except BlockingIOError:
                time.sleep(0.01)
            except (BrokenPipeError, ConnectionResetError):
                break
        check(time.monotonic() < end and sent > 10, f"the connection is there after {sent} requests")
        c.close()
        still(bed)
        with bed.client():
            check(len(bed.open_fds()) <= before, f"{bed.open_fds()}, {before} before")


def test_out_of_time(bed):
    """The signal that ends a request which takes too long ends the process; the next one serves."""
    with bed.client() as c:
        bed.activator.kill(signal.SIGALRM)
        check(c.receive() is None, "it goes on")
    check(bed.activator.gone() and bed.activator.statuses == [-signal.SIGALRM], f"{bed.activator.statuses}")
    with bed.client() as c:
        check(c.ask("pressure_open", 12345, 0, 0).refusal == "unwatched", "it does not serve")


def test_killed_in_a_flood(bed):
    """Either side in the middle of granting: no descriptor and no link outlives them."""
    group = bed.group()
    bed.watch(os.stat(group).st_ino)
    script = ("import sys\nsys.path.insert(0, sys.argv[1])\nfrom client import Client, message\n"
              "c = Client(sys.argv[2])\nprint('on', flush=True)\nwhile True:\n"
              "    c.sequence += 1\n    c.send(message('signal_attach', 10, 0, sequence=c.sequence))\n"
              "    c.receive().close()\n")
    folder = os.path.dirname(os.path.abspath(__file__))
    with bed.statistics():
        for victim in ("client", "broker") * 3:
            process = bed.spawn("/usr/bin/python3", "-c", script, folder, bed.socket, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, user=NOBODY)
            check(process.stdout.readline() == "on\n", "it does not start")
            time.sleep(0.2)
            if victim == "client":
                process.kill()
            else:
                bed.activator.kill(signal.SIGKILL)
            process.wait()
            still(bed)
        with bed.client() as c:
            check(ask(c, known(bed, MAPS, PROGRAM), "/sleep").refusal == "none", "it does not serve")
