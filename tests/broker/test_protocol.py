# SPDX-License-Identifier: BSD-2-Clause
# tests: shared/broker/* loader/broker/broker_listen* loader/broker/broker_dispatch*
"""Messages, connections and rates: what can be done to the broker without its opening anything."""
import os
import re
import socket
import struct
import subprocess
import time

import pytest

from bed import LOADER, check, until
from client import ABI_VERSION, BODIES, HEADER, MAGIC, REQUESTS, message

FLOOD = 100_000 if os.environ.get("TROCAR_LONG") == "1" else 30_000  # a word kept of each would show
BURST, RATE_S = 4000, 2000  # loader/broker/broker_dispatch.h
TURN, HOLD_S = 64, 0.01  # loader/broker/broker_serve.c
SEND_S, IDLE_S = 1, 10  # loader/broker/broker_serve.h


def expect(answer, refusal, what):
    check(answer is not None, f"{what}: the connection ended")
    check(answer.refusal == refusal and not answer.fds and answer.count == 0, f"{what}: {answer}")


def test_by_hand(bed):
    """Started by hand it says in one line how it is started."""
    done = subprocess.run([LOADER, "broker"], capture_output=True, text=True, check=False)
    check(done.returncode == 2 and done.stderr.count("\n") == 1 and "socket" in done.stderr, f"{done}")
    for name, value in (("LISTEN_PID", "1"), ("LISTEN_FDS", "1")):
        done = subprocess.run([LOADER, "broker"], capture_output=True, text=True, check=False,
                              env={name: value})
        check(done.returncode == 2, f"{name} alone: {done}")


def test_wrong_socket(bed):
    """A descriptor of another kind is refused, and so are two."""
    for kind, number, listening in ((socket.SOCK_STREAM, 1, True), (socket.SOCK_SEQPACKET, 1, False),
                                    (socket.SOCK_SEQPACKET, 2, True)):
        with socket.socket(socket.AF_UNIX, kind) as s:
            s.bind(str(bed.folder / "other"))
            if listening:
                s.listen(1)
            done = subprocess.run(["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@" 3<&0', "sh", LOADER, "broker",
                                   "--user", "0"], stdin=s.fileno(), capture_output=True, text=True,
                                  env={"LISTEN_FDS": str(number)}, timeout=20, check=False)
            check(done.returncode == 1 and "SOCK_SEQPACKET" in done.stderr, f"{kind} {number}: {done}")
        (bed.folder / "other").unlink()


def test_wrong_user(bed):
    """Nobody but the consumer's user is answered, root neither."""
    with bed.client():
        pass
    with bed.refusals(peer=2):
        for uid in (0, 1234):
            with bed.client(hello=False, uid=uid) as c:
                expect(c.receive(), "peer", f"uid {uid}")
                check(c.receive() is None, "the connection goes on")
    with bed.client():
        pass


def test_lengths(bed):
    """Every request one byte short, one byte long, without its body, with all the room there is."""
    with bed.client() as c:
        lengths = 0
        for request in REQUESTS:
            whole = message(request, *([0] * (len(BODIES[request]) - 1)), sequence=2)
            for data in (whole[:-1], whole + b"\0", whole[:HEADER.size], whole.ljust(64, b"\0"),
                         whole.ljust(65, b"\0"), whole.ljust(100_000, b"\0")):
                lengths += 1
                with bed.refusals(length=1):
                    expect(c.raw(data), "length", f"{request} of {len(data)}")
        check(lengths == 6 * 6, "not all were tried")
        c.sequence = 1
        check(c.ask("sampler_open", 1 << 20, 97, 1).refusal == "argument", "it does not go on")


def test_no_message_of_ours(bed):
    """What is too short for a header, empty, or of another magic ends the connection, answered."""
    for data, refusal in ((b"", "length"), (b"x", "length"), (b"x" * (HEADER.size - 1), "length"),
                          (message("hello", ABI_VERSION, 0, magic=MAGIC + 1), "version"),
                          (b"GET / HTTP/1.1\r\n\r\n", "version")):
        with bed.client(hello=False) as c, bed.refusals(**{refusal: 1}):
            expect(c.raw(data), refusal, f"{data}")
            check(c.receive() is None, f"{data}: the connection goes on")


def test_descriptors(bed):
    """A descriptor that comes along refuses the request, and is closed over there."""
    with bed.client() as c:
        before = bed.open_fds()
        for count in (1, 2, 200):
            read_end, write_end = os.pipe()
            with bed.refusals(descriptor=1):
                expect(c.raw(message("sampler_open", 0, 97, 1, sequence=2), [write_end] * count), "descriptor",
                       f"{count} descriptors")
            os.close(write_end)
            os.set_blocking(read_end, False)
            check(os.read(read_end, 1) == b"", "somebody still has it")  # else BlockingIOError
            os.close(read_end)
        check(bed.open_fds() == before, f"{before} became {bed.open_fds()}")
        c.sequence = 1
        expect(c.ask("sampler_open", 1 << 20, 97, 1), "argument", "afterwards")


def test_sequence(bed):
    """Replayed, skipped, backwards: refused; the number that is next goes on."""
    with bed.client() as c:
        for number in (1, 0, 3, 1 << 31, (1 << 32) - 1):
            with bed.refusals(sequence=1):
                expect(c.raw(message("pressure_open", 1, 0, 0, sequence=number)), "sequence", f"{number}")
        for number in (2, 3):
            expect(c.raw(message("pressure_open", 1, 0, 0, sequence=number)), "unwatched", f"{number}")
        expect(c.raw(message("pressure_open", 1, 0, 0, sequence=3)), "sequence", "replayed")
    with bed.client(hello=False) as c:
        expect(c.raw(message("hello", ABI_VERSION, 0, sequence=2)), "sequence", "not from 1 on")


def test_stage(bed):
    """Nothing before hello, and hello once."""
    with bed.client(hello=False) as c:
        for request in REQUESTS[1:]:
            with bed.refusals(stage=1):
                expect(c.ask(request, *([0] * (len(BODIES[request]) - 1))), "stage", request)
        expect(c.ask("hello", ABI_VERSION + 1, 0), "version", "another ABI")
        expect(c.ask("sampler_open", 0, 97, 1), "stage", "after a hello that was refused")
        expect(c.ask("hello", ABI_VERSION, 0), "none", "hello")
        with bed.refusals(stage=1):
            expect(c.ask("hello", ABI_VERSION, 0), "stage", "hello again")


def test_request_and_arguments(bed):
    """Numbers that are no request, and arguments outside of their ranges."""
    with bed.client() as c, bed.refusals(request=3, argument=20):
        for number in (len(REQUESTS), 255, (1 << 32) - 1):
            expect(c.raw(struct.pack("=6I", MAGIC, number, 2, 0, 0, 0)), "request", f"{number}")
        for request, *body in (
                ("sampler_open", 8192, 97, 1), ("sampler_open", (1 << 32) - 1, 97, 1), ("sampler_open", 0, 0, 1),
                ("sampler_open", 0, 1000, 1), ("sampler_open", 0, 97, 0), ("sampler_open", 0, 97, 1025),
                ("signal_attach", 12, 0), ("signal_attach", 10, 1),
                ("signal_attach", 0, 0), ("pressure_open", 1, 3, 0), ("pressure_open", 1, 0, 1),
                ("mapping_open", 0, 0, 4096, 0, 0), ("mapping_open", 0, 0, 4096, 1 << 31, 0),
                ("mapping_open", 0, 4096, 4096, 1, 0), ("mapping_open", 0, 8192, 4096, 1, 0),
                ("mapping_open", 0, 0, 4096, 1, 1),
                ("jit_map_open", 0, 0, 0), ("jit_map_open", 0, 1 << 31, 0), ("jit_map_open", 0, 1, 1)):
            expect(c.ask(request, *body), "argument", f"{request} {body}")
        c.sequence += 1
        expect(c.raw(message("pressure_open", 1, 0, 0, sequence=c.sequence, pad=1)), "argument", "pad")


def test_third_connection(bed):
    """Two are served, each with a sequence of its own; a third is told so and closed, until one of them goes."""
    first, second = bed.client(), bed.client()
    for _ in range(3):
        with bed.refusals(busy=1), bed.client(hello=False) as third:
            expect(third.receive(), "busy", "third")
            check(third.receive() is None, "it goes on")
    for c in (first, second, first):
        expect(c.ask("pressure_open", 1, 0, 0), "unwatched", "the first two, then")
    first.close()
    with bed.client() as fourth:
        expect(fourth.ask("pressure_open", 1, 0, 0), "unwatched", "the fourth")
        expect(second.ask("pressure_open", 1, 0, 0), "unwatched", "the second, then")
    second.close()


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1])


def flood(c, count):
    """`count` requests as fast as they go, some on their way at a time; {refusal: how many}."""
    answers, on_way, left = {}, 0, count
    while left or on_way:
        while left and on_way < 100:
            c.sequence += 1
            c.send(message("pressure_open", 1, 0, 0, sequence=c.sequence))
            left, on_way = left - 1, on_way + 1
        answer = c.receive()
        check(answer is not None, "the connection ended")
        on_way -= 1
        answers[answer.refusal] = answers.get(answer.refusal, 0) + 1
    return answers


def test_flood(bed):
    """Requests flat out, tens of thousands: all answered, what is above the rate refused and counted, no memory."""
    with bed.client() as c:
        flood(c, 100)
        before, memory, began = bed.counts()[2], resident_kib(bed.pid()), time.monotonic()
        answers = flood(c, FLOOD)
        took, after = time.monotonic() - began, bed.counts()[2]
        served = answers.get("unwatched", 0)
        check(set(answers) <= {"unwatched", "rate"} and sum(answers.values()) == FLOOD, f"{answers}")
        check(served <= BURST + RATE_S * (took + 0.1), f"{served} served in {took:.1f} s")
        # Of what is above the rate at most TURN requests are heard, then none for HOLD_S.
        check(took >= (FLOOD - BURST) / (TURN / HOLD_S + RATE_S), f"all heard in {took:.1f} s")
        for name, number in answers.items():
            check(after[name] - before[name] == number, f"{name}: {number} answers, counted {after[name] - before[name]}")
        check(resident_kib(bed.pid()) - memory < 512, "it grew")
        bed.note(f"{FLOOD} requests in {took:.2f} s: {answers}")
        until(lambda: c.ask("pressure_open", 1, 0, 0).refusal == "unwatched", 5, "it does not serve again")
        if took < FLOOD / RATE_S / 2:
            check(answers.get("rate", 0) > 0, "nothing was above the rate")


def test_reconnecting_refills_nothing(bed):
    """The rate is the broker's, not the connection's: who reconnects gets no second burst."""
    served, began = 0, time.monotonic()
    for _ in range(4):
        with bed.client(hello=False) as c:
            if c.ask("hello", ABI_VERSION, 0).refusal == "none":
                served += flood(c, 4000).get("unwatched", 0)
    took = time.monotonic() - began
    check(served <= BURST + RATE_S * (took + 0.1), f"{served} served in {took:.1f} s")


def test_client_that_does_not_read(bed):
    """A client that asks and takes no answer loses its connection within the limit; others are served."""
    c = bed.client()
    c.socket.setblocking(False)
    began, sent = time.monotonic(), 0
    while time.monotonic() - began < 10:
        try:
            c.sequence += 1
            c.send(message("pressure_open", 1, 0, 0, sequence=c.sequence))
            sent += 1
        except BlockingIOError:
            c.sequence -= 1
            time.sleep(0.01)
        except (BrokenPipeError, ConnectionResetError):
            break
    took = time.monotonic() - began
    check(took < 5 * SEND_S, f"the connection is there after {took:.1f} s and {sent} requests")
    check(sent > 10, f"only {sent} requests were taken")
    with bed.client(hello=False) as other:
        until(lambda: other.ask("hello", ABI_VERSION, 0).refusal != "rate", 5, "nobody is served")
    check(bed.activator.starts == 1, "it was started again")
    c.close()


@pytest.mark.parallel(4)  # it waits
def test_silent_client(bed):
    """A connection that says nothing, or half of what it should, keeps the broker no longer than no one."""
    with bed.client(hello=False) as c:
        began = time.monotonic()
        c.socket.settimeout(IDLE_S + 5)
        check(c.receive() is None, "it answered")
        took = time.monotonic() - began
        check(IDLE_S - 1 < took < IDLE_S + 4, f"it left after {took:.1f} s")
    check(bed.activator.gone() and bed.activator.statuses == [0], f"{bed.activator.statuses}")


@pytest.mark.parallel(4)  # it waits
def test_leaves_when_idle(bed):
    """Ten seconds after the last word it is gone with status 0, and the next word starts another."""
    with bed.client() as c:
        expect(c.ask("pressure_open", 1, 0, 0), "unwatched", "")
    began = time.monotonic()
    check(bed.activator.gone(IDLE_S + 5), "it stays")
    took = time.monotonic() - began
    check(IDLE_S - 1 < took < IDLE_S + 4,
          f"it left after {took:.1f} s: {bed.activator.statuses}, {bed.activator.said}, {bed.activator.starts} starts")
    check(bed.activator.statuses == [0] and not bed.activator.said, f"{bed.activator.said}")
    with bed.client():
        pass
    check(bed.counts()[0] == 2, f"{bed.counts()[0]} starts")


def test_not_loaded(bed):
    """Without pins it says so and goes on; a load meanwhile is found by the next hello."""
    bed.unload()
    with bed.client(hello=False) as c:
        answer = c.ask("hello", ABI_VERSION, 0)
        check(answer.refusal == "kernel" and answer.error == -2, f"{answer}")
        bed.load()
        expect(c.ask("hello", ABI_VERSION, 0), "none", "after the load")
        starts, granted, refused = bed.counts()
        check((starts, granted["hello"], refused["kernel"]) == (1, 1, 1), "what was counted before is lost")
    bed.unload()
    bed.load()
    with bed.client():
        check(bed.counts()[1]["hello"] == 1, "the next connection is not on the new set")


def test_hands_are_tied(bed):
    """What it holds is its rows, in every set; no new privileges, a filter, and nothing to trace."""
    rows = {2, 12, 19, 24, 38, 40}  # DAC_READ_SEARCH is 2; 21 (SYS_ADMIN) only at perf_event_paranoid 3
    with bed.client():
        with open(f"/proc/{bed.pid()}/status", encoding="ascii") as status:
            fields = dict(row.rstrip("\n").split(":\t", 1) for row in status if ":\t" in row)
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as level:
            wanted = {2, 19, 24, 38, 40} | ({21} if int(level.read()) > 2 else set())
        for name in ("CapPrm", "CapEff", "CapBnd"):
            held = {n for n in range(64) if int(fields[name], 16) >> n & 1}
            check(held <= wanted, f"{name} is {sorted(held)}")
        check({2, 19, 38, 40} <= {n for n in rows if int(fields["CapEff"], 16) >> n & 1}, "a row is not there")
        check(int(fields["CapAmb"], 16) == int(fields["CapInh"], 16) == 0, f"{fields}")
        check((fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2"), f"{fields}")
        for fd in bed.open_fds():
            with open(f"/proc/{bed.pid()}/fdinfo/{fd}", encoding="ascii") as info:
                flags = int(re.search(r"flags:\s+(\d+)", info.read())[1], 8)
            check(int(fd) < 3 or flags & os.O_CLOEXEC, f"descriptor {fd} is not close-on-exec: "
                  + os.readlink(f"/proc/{bed.pid()}/fd/{fd}"))
