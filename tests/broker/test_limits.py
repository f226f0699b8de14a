# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/broker/broker_dispatch* loader/broker/broker_rights* policy/requests.def
"""How much one may hold of what costs the machine: events that tick, programs on the scheduler. The asker is in
an attacker's hands, and hides what he holds wherever a process can put a descriptor."""
import ctypes
import mmap
import os
import resource
import signal
import socket
import subprocess
import time

from bed import NOBODY, SWITCH, check, start_ns, until
from client import message
from test_deaths import still
from test_mounts import mapping_of
from test_operations import MAPS, PROGRAM, known

LIMIT = 2 * len(os.sched_getaffinity(0)) + 4  # loader/broker/broker_peer.h
EVENT, LINK = ("sampler_open", 0, 97, 1), ("signal_attach", SWITCH, 0)
HERE = os.path.dirname(os.path.abspath(__file__))
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def fill(c, hide, most=4 * LIMIT):
    """Asks for events until none is granted; `hide` puts each away. How many were granted."""
    for granted in range(most):
        answer = c.ask(*EVENT)
        if answer.refusal == "events":
            return granted
        check(answer.refusal == "none" and len(answer.fds) == 1, f"{answer}")
        hide(answer)
    return most


def test_events_are_counted(bed):
    """Two for each CPU and four more; as many as are closed are granted again, over and over."""
    with bed.client() as c:
        held = []
        check(fill(c, held.append) == LIMIT, f"{len(held)} events, not {LIMIT}")
        for _ in range(3):
            held.pop().close()
            check(fill(c, held.append) == 1, "not the one that was closed")
        while held:
            held.pop().close()
        check(fill(c, held.append) == LIMIT, f"{len(held)} events, not {LIMIT}")
        while held:
            held.pop().close()


def test_events_of_both_connections(bed):
    """Both connections are one process's: what it holds is counted once."""
    with bed.client() as one, bed.client() as two:
        held = [c.ask(*EVENT) for c in (one, two) * LIMIT]
        granted = sum(answer.refusal == "none" for answer in held)
        check(granted == LIMIT, f"{granted} events, not {LIMIT}")
        for answer in held:
            answer.close()


def test_events_in_mappings(bed):
    """An event that is mapped lives on when its descriptor is closed: it is found among the mappings."""
    places = []

    def hide(answer):
        place = LIBC.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, answer.fds[0], 0)
        check(place not in (None, ctypes.c_void_p(-1).value), f"mmap: {os.strerror(ctypes.get_errno())}")
        places.append(place)
        answer.close()

    with bed.client() as c:
        granted = fill(c, hide)
        check(granted == LIMIT, f"{granted} events, not {LIMIT}")
        for place in places:
            LIBC.munmap(place, 4096)
        answer = c.ask(*EVENT)
        check(answer.refusal == "none", "unmapped, and not granted again")
        answer.close()


def flood(c, count):
    """Sends requests for events and reads no answer, as long as they are taken."""
    c.socket.settimeout(0.5)
    try:
        for _ in range(count):
            c.sequence += 1
            c.send(message(*EVENT, sequence=c.sequence))
            time.sleep(0.005)
    except (TimeoutError, BlockingIOError):
        c.sequence -= 1
    c.socket.settimeout(10)


def drain(c):
    """Descriptors in all answers that are there."""
    fds = []
    c.socket.settimeout(0.5)
    try:
        while answer := c.receive():
            fds += answer.fds
    except TimeoutError:
        pass
    return fds


def test_events_in_flight(bed):
    """Answers that are not read hold events, also on a connection that was given up for the next."""
    left, held = [], []
    for _ in range(3):
        c = bed.client()
        flood(c, LIMIT)
        left.append(c)
        c.socket.shutdown(socket.SHUT_WR)  # the broker ends it; what it has sent is still there
        time.sleep(0.1)
    for c in left:
        held += drain(c)
    check(0 < len(held) <= LIMIT, f"{len(held)} events in flight, more than {LIMIT}")
    more = []
    with bed.client() as c:
        check(fill(c, more.append) + len(held) <= LIMIT, f"{len(more)} beside {len(held)}")
    for answer in more:
        answer.close()
    for fd in held:
        os.close(fd)
    for c in left:
        c.close()


def test_events_over_connections_and_brokers(bed):
    """Neither a new connection nor a new broker forgets what is held."""
    held = []
    with bed.client() as c:
        for _ in range(LIMIT - 1):
            held.append(c.ask(*EVENT))
    with bed.client() as c:
        held.append(c.ask(*EVENT))
        check(c.ask(*EVENT).refusal == "events", "a new connection")
    bed.activator.kill(signal.SIGKILL)
    check(bed.activator.gone(), "it lives")
    with bed.client() as c:
        check(c.ask(*EVENT).refusal == "events", "a new broker")
        held.pop().close()
        held.append(c.ask(*EVENT))
        check(held[-1].refusal == "none", f"{held[-1]}")
    for answer in held:
        answer.close()


# Its first thread ends, as the consumer's filter lets it: /proc/PID shows no descriptor of it any more. Another asks.
HEADLESS = """
import ctypes, sys, threading, time
sys.path.insert(0, sys.argv[1])
from client import Client
from test_limits import EVENT
c = Client(sys.argv[2])
held = [c.ask(*EVENT)]
libc = ctypes.CDLL(None)
def ask():
    time.sleep(0.5)
    for _ in range(200):
        held.append(c.ask(*EVENT))
        time.sleep(0.005)
    print(*(answer.refusal for answer in held), flush=True)
    time.sleep(20)
threading.Thread(target=ask).start()
libc.syscall(60 if sys.argv[3] == "x86_64" else 93, 0)
"""


def test_events_of_a_process_without_its_first_thread(bed):
    """It cannot be counted, so it gets no further than what was known of it."""
    process = bed.spawn("/usr/bin/python3", "-c", HEADLESS, HERE, bed.socket, os.uname().machine,
                        stdout=subprocess.PIPE, text=True, user=NOBODY)
    answers = process.stdout.readline().split()
    check(answers and answers[0] == "none" and "gone" in answers, f"{answers[:9]}")
    check(answers.count("none") <= LIMIT, f"{answers.count('none')} events, more than {LIMIT}")


def test_events_of_one_that_polls(bed):
    """What remains: a thread that polls an event keeps it, without a descriptor; one for each thread, no more."""
    script = ("import select, sys, threading, time\nsys.path.insert(0, sys.argv[1])\n"
              "from client import Client\nfrom test_limits import fill\nc = Client(sys.argv[2])\n"
              "def hide(answer):\n"
              "    if len(threads) < 5:\n"
              "        p = select.poll()\n        p.register(answer.fds[0], 0)\n"
              "        threads.append(threading.Thread(target=p.poll, daemon=True))\n"
              "        threads[-1].start()\n        time.sleep(0.05)\n        answer.close()\n"
              "threads = []\nprint(fill(c, hide), flush=True)\n")
    process = bed.spawn("/usr/bin/python3", "-c", script, HERE, bed.socket, stdout=subprocess.PIPE, text=True,
                        user=NOBODY)
    granted = int(process.stdout.readline())
    check(LIMIT <= granted <= LIMIT + 5, f"{granted} events with 5 threads that poll, the limit is {LIMIT}")


def test_events_of_a_cpu_replaced(bed):
    """What a consumer does when CPUs come and go and services are watched and left: closes and opens, for ever."""
    cpus = sorted(os.sched_getaffinity(0))
    with bed.client() as c:
        held = {(cpu, divisor): c.ask("sampler_open", cpu, 97, divisor) for cpu in cpus for divisor in (1, 5)}
        for turn in range(100):
            cpu = cpus[turn % len(cpus)]
            for divisor in (1, 5):
                held[cpu, divisor].close()
                held[cpu, divisor] = c.ask("sampler_open", cpu, 97, divisor)
                check(held[cpu, divisor].refusal == "none", f"{turn}: {held[cpu, divisor]}")
            time.sleep(0.002)
        for answer in held.values():
            answer.close()


def test_no_faster_than_loaded(bed):
    """The rate is at most the one of the load, 97 here."""
    with bed.client() as c, bed.refusals(argument=2):
        for hz in (98, 999):
            check(c.ask("sampler_open", 0, hz, 1).refusal == "argument", f"{hz}")
        answer = c.ask("sampler_open", 0, 97, 1)
        check(answer.refusal == "none", f"{answer}")
        answer.close()


def test_one_attachment(bed):
    """The programs of a signal once: held, in flight, over connections and brokers; and again when they are closed."""
    with bed.statistics():
        with bed.client() as c:
            first = c.ask(*LINK)
            check(first.refusal == "none", f"{first}")
            check(c.ask(*LINK).refusal == "attached", "a second one")
            with bed.client() as other:
                check(other.ask(*LINK).refusal == "attached", "on the other connection")
            check(bed.links() == 1, f"{bed.links()} links")
        with bed.client() as c:
            check(c.ask(*LINK).refusal == "attached", "on a new connection")
        bed.activator.kill(signal.SIGKILL)
        check(bed.activator.gone(), "it lives")
        with bed.client() as c:
            check(c.ask(*LINK).refusal == "attached", "by a new broker")
            first.close()
            for _ in range(5):
                answer = c.ask(*LINK)
                check(answer.refusal == "none", f"{answer}")
                answer.close()
        still(bed)


def test_one_attachment_in_flight(bed):
    """An attachment whose answer is not read is one."""
    one, two = bed.client(), bed.client()
    one.sequence += 1
    one.send(message(*LINK, sequence=one.sequence))
    until(lambda: bed.links() == 1, 2, "it is not attached")
    for _ in range(5):
        check(two.ask(*LINK).refusal == "attached", "a second one")
    one.close()
    answer = two.ask(*LINK)
    check(answer.refusal == "none", "it is closed, and not granted again")
    answer.close()
    two.close()
    still(bed)


def test_a_file_in_flight_is_no_attachment(bed):
    """A file that waits for the thread which asked for it is in nobody's way."""
    process = known(bed, MAPS, PROGRAM)
    first, last = mapping_of(process, "/sleep")
    held = []
    with bed.client() as files, bed.client() as c:
        files.sequence += 1
        files.send(message("mapping_open", start_ns(process.pid), first, last, process.pid, 0, sequence=files.sequence))
        until(lambda: bed.counts()[1]["mapping_open"] == 1, 2, "it is not served")
        time.sleep(0.05)
        held.append(c.ask(*LINK))
        check(held[0].refusal == "none", f"{held[0]}")
        check(fill(c, held.append) == LIMIT, f"{len(held) - 1} events, not {LIMIT}")
        files.receive().close()
    for answer in held:
        answer.close()


def test_another_process_meanwhile(bed):
    """A second process of the user is told that it is busy, as long as the first one is there."""
    script = ("import sys, time\nsys.path.insert(0, sys.argv[1])\nfrom client import Client\n"
              "c = Client(sys.argv[2])\nprint('on', flush=True)\ntime.sleep(60)\n")
    first = bed.spawn("/usr/bin/python3", "-c", script, HERE, bed.socket, stdout=subprocess.PIPE, text=True, user=NOBODY)
    check(first.stdout.readline() == "on\n", "it does not start")
    with bed.refusals(busy=1), bed.client(hello=False) as c:
        check(c.receive().refusal == "busy", "another process")
    first.kill()
    first.wait()
    with bed.client() as c:
        answer = c.ask(*EVENT)
        check(answer.refusal == "none", "when the first has gone")
        answer.close()


def test_counting_is_bounded(bed):
    """Thousands of descriptors and mappings cost the broker a bounded time, and others are served meanwhile."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    script = ("import os, resource, socket, sys, time\nsys.path.insert(0, sys.argv[1])\nfrom client import Client\n"
              "from test_limits import EVENT\nn = min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])\n"
              "resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))\nc = Client(sys.argv[2])\n"
              "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(n - 600)]\n"
              "held += [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[3]))]\n"
              "began = time.monotonic()\nanswer = c.ask(*EVENT)\ntook = time.monotonic() - began\n"
              "longest, end = 0, time.monotonic() + 1\n"
              "while time.monotonic() < end:\n    began = time.monotonic()\n    c.ask('pressure_open', 1, 0, 0)\n"
              "    longest = max(longest, time.monotonic() - began)\n    c.ask(*EVENT).close()\n"
              "print(answer.refusal, took, longest, flush=True)\n")
    for sockets, wanted in ((0, "none"), (560, "events")):
        process = bed.spawn("/usr/bin/python3", "-c", script, HERE, bed.socket, sockets, stdout=subprocess.PIPE, text=True,
                            user=NOBODY)
        refusal, took, longest = process.stdout.readline().split()
        bed.note(f"{min(8192, hard)} descriptors, {sockets} sockets: counted in {float(took) * 1000:.1f} ms")
        check(refusal == wanted, f"{sockets} sockets: {refusal}")
        check(float(took) < 1 and float(longest) < 0.1, f"{took} {longest}")
        process.wait()
