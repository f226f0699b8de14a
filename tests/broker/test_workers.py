# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/broker/broker_worker*
"""A file system that holds up whoever asks it, beyond all signals, and passes every wall before: root's own
overlay above a FUSE server that has stopped to answer stands for the dying disk. It holds up one worker,
and nobody else."""
import contextlib
import ctypes
import os
import signal
import time

import pytest

from bed import LIBC, Skip, check, start_ns, until
from client import message
from held_fs import HeldFs
from test_mounts import detach, mapping_of
from test_operations import MAPS, PROGRAM, ask, known

WORKERS, LIMIT_S = 4, 1  # loader/broker/broker_worker.h
AT_ONCE_S = 0.1  # what nobody holds up takes less
IDLE_S = 10


@contextlib.contextmanager
def hanging(bed):
    """A known process that has mapped a program on a mount which never answers from here on, and the mapping."""
    with open(PROGRAM, "rb") as file:
        held = HeldFs(bed.folder / "held", file.read())
    for name in ("low", "all"):
        (bed.folder / name).mkdir()
    options = f"lowerdir={bed.folder}/held:{bed.folder}/low".encode()
    if LIBC.mount(b"trocar", str(bed.folder / "all").encode(), b"overlay", 0, options) != 0:
        why = os.strerror(ctypes.get_errno())
        held.close()
        raise Skip(f"no overlay above FUSE here: {why}")
    try:
        process = known(bed, MAPS, bed.folder / "all" / "program")
        first, last = mapping_of(process, "/program")
        held.held = True
        yield (start_ns(process.pid), first, last, process.pid, 0), held
    finally:
        detach(bed.folder / "all")
        held.close()


def workers(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return [int(word) for word in children.read().split()]


def state(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat", encoding="ascii") as text:
        return text.read().rsplit(")", 1)[1].split()[0]
    return None


def in_time(seconds, question, what):
    began = time.monotonic()
    answer = question()
    took = time.monotonic() - began
    check(took < seconds, f"{what}: {took * 1000:.0f} ms")
    return answer


def test_hanging_file_holds_nobody_up(bed):
    """While one connection waits for a file that hangs, another is answered at once; it itself within the limit."""
    group = bed.group()
    bed.watch(os.stat(group).st_ino)
    with hanging(bed) as (mapping, _), bed.client() as files, bed.client() as c, bed.refusals(slow=1):
        files.sequence += 1
        began, longest = time.monotonic(), 0
        files.send(message("mapping_open", *mapping, sequence=files.sequence))
        while time.monotonic() - began < LIMIT_S * 0.8:
            asked = time.monotonic()
            answer = c.ask("pressure_open", os.stat(group).st_ino, 0, 0)
            longest = max(longest, time.monotonic() - asked)
            check(answer.refusal == "none", f"{answer}")
            answer.close()
            time.sleep(0.01)
        check(longest < AT_ONCE_S, f"it was held up for {longest * 1000:.0f} ms")
        answer = in_time(LIMIT_S, files.receive, "the file that hangs")
        check(answer.refusal == "slow" and not answer.fds, f"{answer}")
        until(lambda: [state(pid) for pid in workers(bed.pid())] == ["D"], 1, "the worker does not hang: nothing was tried")
        answer = in_time(LIMIT_S, lambda: ask(files, known(bed, MAPS, PROGRAM), "/sleep"), "another file")
        check(answer.refusal == "none", f"another file: {answer}")
        answer.close()
        bed.note(f"others waited for at most {longest * 1000:.1f} ms")
    check(bed.activator.starts == 1, "it was started again")


def test_no_more_than_may_hang(bed):
    """Four that hang; the fifth is refused at once, and served when they have ended."""
    with hanging(bed) as (mapping, _), bed.client() as one, bed.client() as two:
        with bed.refusals(slow=WORKERS, stuck=3):
            for _ in range(WORKERS // 2):
                for c in (one, two):
                    c.sequence += 1
                    c.send(message("mapping_open", *mapping, sequence=c.sequence))
                for c in (one, two):
                    check(c.receive().refusal == "slow", "it does not hang")
            stuck = workers(bed.pid())
            check(len(stuck) == WORKERS, f"{stuck}")
            fine = known(bed, MAPS, PROGRAM)
            for question in (lambda: one.ask("mapping_open", *mapping), lambda: ask(two, fine, "/sleep"),
                             lambda: two.ask("jit_map_open", start_ns(fine.pid), fine.pid, 0)):
                answer = in_time(AT_ONCE_S, question, "one too many")
                check(answer.refusal == "stuck", f"one too many: {answer}")
            check(len(workers(bed.pid())) == WORKERS, "there are more of them")
            answer = in_time(AT_ONCE_S, lambda: one.ask("sampler_open", 0, 97, 1), "a sampling event")
            check(answer.refusal == "none", f"{answer}")
            answer.close()
    # The file system is gone, and they with it.
    until(lambda: not workers(bed.pid()), 5, "a worker is left")
    with bed.client() as c:
        answer = ask(c, known(bed, MAPS, PROGRAM), "/sleep")
        check(answer.refusal == "none", f"afterwards: {answer}")
        answer.close()


def test_next_broker_beside_one_that_hangs(bed):
    """The broker is killed while its worker hangs: the next one serves, and nothing of the worker's is in its way."""
    with hanging(bed) as (mapping, _):
        with bed.client() as c:
            check(c.ask("mapping_open", *mapping).refusal == "slow", "it does not hang")
            (stuck,) = workers(bed.pid())
            until(lambda: state(stuck) == "D", 1, "the worker does not hang: nothing was tried")
            left = {os.readlink(f"/proc/{stuck}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{stuck}/fd")}
            check(left <= {f"/proc/{mapping[3]}", str(bed.folder / "all" / "program"), "socket", "pipe"}, f"{left}")
            bed.activator.kill(signal.SIGKILL)
            check(in_time(1, c.receive, "its end") is None, "the worker holds the connection")
        check(bed.activator.gone(), "it lives")
        with bed.client() as c:
            answer = in_time(LIMIT_S, lambda: ask(c, known(bed, MAPS, PROGRAM), "/sleep"), "the next one")
            check(answer.refusal == "none", f"{answer}")
            answer.close()
        check(state(stuck) == "D" and bed.activator.starts == 2, "the worker has ended: nothing was tried")
    until(lambda: state(stuck) is None, 5, "the worker is left")


def test_client_leaves_its_hanging_request(bed):
    """A connection that ends while its file hangs: its place is free, and the next is served."""
    with hanging(bed) as (mapping, _):
        for _ in range(2):
            with bed.client() as c:
                c.send(message("mapping_open", *mapping, sequence=2))
                until(lambda: workers(bed.pid()), 2, "no worker")
        with bed.client() as one, bed.client() as two:
            for c in (one, two):
                check(in_time(AT_ONCE_S, lambda c=c: c.ask("pressure_open", 1, 0, 0), "").refusal == "unwatched", "")


@pytest.mark.parallel(4)  # it waits
def test_stays_while_one_hangs(bed):
    """It does not leave while a worker hangs, so that the next one does not make room for more of them."""
    with hanging(bed) as (mapping, _):
        with bed.client() as c:
            check(c.ask("mapping_open", *mapping).refusal == "slow", "it does not hang")
        time.sleep(IDLE_S + 1)
        check(bed.activator.process is not None and bed.activator.starts == 1, "it left")
    check(bed.activator.gone(2), "it stays when the worker has ended")


def test_workers_leave_nothing(bed):
    """Two hundred files in a row: no process and no descriptor is left, and no memory."""
    process = known(bed, MAPS, PROGRAM)
    with bed.client() as c:
        before, began = bed.open_fds(), time.monotonic()
        for _ in range(200):
            answer = ask(c, process, "/sleep")
            check(answer.refusal == "none", f"{answer}")
            answer.close()
        bed.note(f"{(time.monotonic() - began) / 200 * 1e6:.0f} us each")
        until(lambda: not workers(bed.pid()), 2, "a process is left")
        until(lambda: bed.open_fds() == before, 2, f"{before} became {bed.open_fds()}")
