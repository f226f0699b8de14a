# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/unwind/* bpf/maps/maps.h policy/* consumer/broker/* loader/broker/broker_operations*
"""A consumer that has been taken over: captive.c in its place lies in every map, reads all that is to be read, and asks
the broker for everything, 16 s with the whole host open to it and 8 s with --scope. One run of each is looked at by
all tests here: each is about one thing that is worth protecting."""
import functools
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

import bed
import machine
from bed import check, until
from client import REFUSALS, REQUESTS
from field import CAPTIVE, ITERATORS, LIMITS, OUTSIDE, Field

TIMES = 25 if os.environ.get("TROCAR_LONG") == "1" else 0.25 if os.environ.get("TROCAR_SHORT") == "1" else 1
pytestmark = pytest.mark.timeout(240 + 24 * TIMES)
CONSUMER = bed.BUILD / "consumer" / "trocar-consumer"
SAMPLE = struct.Struct("=QQ7I2H2i4I16s2IQ")  # struct sample of shared/abi/abi.h
SAMPLE_BUILD_ID, SAMPLE_UNWOUND, SAMPLE_ADDRESSES, SAMPLE_LEAF_ID = 1, 1 << 5, 1 << 4, 1 << 6
TROUBLE = re.compile(r"WARNING:|BUG:|Oops|general protection|rcu:.*stall|blocked for more than|soft lockup|"
                     r"hard LOCKUP|refcount_t:|KASAN|UBSAN")

# Of all CPUs' time, what our programs may take on behalf of others (not of who reads an iterator: he does so in his
# own time). The events are the bound: two for each CPU and four, at 97 ticks a second each, and a tick takes 10 to 40 us
# by the worst tables; with two CPUs that is 776 ticks and 3 % of one CPU. To that come a context switch's and an exec's
# fraction of a microsecond. 0.7 % of two CPUs was the most that was measured, on a busy machine.
KERNEL_SHARE = 0.05
# Of one CPU, what the broker and its workers may take, and for one answer. It does 2,000 requests a second at most, so
# the second number is what counts: 1 ms was measured, with workers for files and, for events, a count of all that the
# captive holds, which takes no more than a quarter of the time. An asker of one thread cannot make two CPUs of it.
BROKER_SHARE, BROKER_ANSWER_MS = 1.0, 4
# Answers above 100 ms: none. On a machine whose load is above so much for each CPU (the captive and its prey make less
# than 2) one in a thousand, of less than 2.5 s: the broker runs before all others there, but who holds a lock of the
# kernel that it needs (of cgroups, of a file system) may have to wait for a CPU. So does RCU, whose grace period a
# program waits for that is attached to a tracepoint which another has just left (tracepoint_add_func in
# kernel/tracepoint.c), and with it the requests behind.
BUSY, BUSY_SLOW, BUSY_SLOWEST_US = 2.5, 1000, 2_500_000


@functools.cache
def campaign(scoped):
    """One run of the captive; what all tests of this file look at."""
    field = Field(scoped)
    try:
        field.let_loose(int((8 if scoped else 16) * TIMES))
    except BaseException:
        field.done()
        raise
    fields.append(field)
    return field


fields = []


def note(text):
    print(f"# {text}", flush=True)


@pytest.fixture(scope="module", autouse=True)
def campaigns(kernel):
    """Ends the runs once every test has looked at them."""
    with machine.share():
        yield
        while fields:
            fields.pop().done()


def evidence(field):
    numbers = {key: value for key, value in field.result.items() if not isinstance(value, list)}
    return f"seed {field.seed}, {field.seconds:.0f} s: " + ", ".join(f"{value} {key}" for key, value in numbers.items())


# ---- whether it would find anything


def look(field, record):
    """What captive.c says of these bytes."""
    done = subprocess.run([CAPTIVE, "look", field.file], input=record, capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    return [line for line in lines if line.startswith("leak:")], json.loads(lines[-1])


@pytest.mark.core
def test_search_finds():
    """What must not be seen is told when it is there: planted where it could come from, it is found in each place."""
    field = campaign(True)
    keeper, other = field.prey[0], next(p for p in field.prey if p.kind == OUTSIDE)
    text = field.file.read_text(encoding="ascii")
    inside = int(re.search(r"^range (\d+) \d+ \d+ 1$", text, re.M)[1]) + 16

    def record(pid, frames, flags=0, behind=b""):
        head = SAMPLE.pack(1, 2, 0, 0, 0, 0, pid, pid, flags, 0, len(frames), 0, 0, 0, 0, 0, 0,
                           b"planted", 0, 0, 0)
        return head + behind + struct.pack(f"={len(frames)}Q", *frames)

    def resolved(status, word):
        return struct.pack("=i20sQ", status, b"", word)

    planted = (
        ("nothing", record(keeper.pid, [inside]), 0),
        ("a frame that is no code", record(keeper.pid, [inside, 0x7fff12345678]), 1),
        ("a frame by a table", record(keeper.pid, [inside, 8], SAMPLE_UNWOUND), 1),
        ("a frame that the kernel left as address",
         record(keeper.pid, [inside], SAMPLE_BUILD_ID | SAMPLE_ADDRESSES, resolved(2, 8)), 1),
        ("a leaf that the kernel left as address",
         record(keeper.pid, [inside], SAMPLE_UNWOUND | SAMPLE_LEAF_ID) + resolved(2, 8), 1),
        ("a sample of one outside", record(other.pid, [inside]), 1),
        ("a secret", record(1 << 30, [inside]) + struct.pack("=Q", keeper.secrets[0]), 1),
        ("a secret off the words", record(1 << 30, [inside]) + struct.pack("=3sQ", b"", keeper.secrets[-1]), 1),
    )
    for what, data, wanted in planted:
        leaks, result = look(field, data)
        check(len(leaks) == wanted == result["leaks"], f"{what}: {leaks}")


# ---- one for each asset


@pytest.mark.core
def test_memory():
    """No byte of a watched process's memory but addresses of its code, in no ring, iterator, file or answer."""
    field = campaign(False)
    note(evidence(field))
    check(not field.leaks and not field.result["leaks"], "\n".join(field.leaks))
    for word, least in (("samples", 100), ("frames", 100), ("unwound", 20), ("fills", 50), ("writes", 10000),
                        ("reads", 1000)):
        check(field.result[word] >= least * TIMES, f"only {field.result[word]} {word}: nothing was attacked")


@pytest.mark.core
def test_scope():
    """With --scope nothing of those outside: in no ring or iterator, and no file of theirs."""
    field = campaign(True)
    note(evidence(field))
    check(not field.leaks and not field.result["leaks"], "\n".join(field.leaks))
    refused = dict(zip(REFUSALS, field.result["refused"]))
    check(field.result["samples"] >= 20 * TIMES and refused["scope"] >= 20 * TIMES,
          f"{field.result['samples']} samples, {refused['scope']} refused for their scope: nothing was attacked")


def test_broker_answers():
    """Every request of broker.def was granted and refused, and no answer took more than 100 ms."""
    for scoped in (False, True):
        field = campaign(scoped)
        granted = dict(zip(REQUESTS, field.result["granted"]))
        refused = {name: count for name, count in zip(REFUSALS, field.result["refused"]) if count}
        note(f"granted {granted}")
        note(f"refused {refused}")
        note(f"slowest of {field.result['answers']} answers: {field.result['slowest_us'] / 1000:.1f} ms")
        check(all(granted.values()), f"not every request was granted: {granted}")
        check(field.result["answers"] > 1000 * TIMES, f"only {field.result['answers']} answers")
        slow = [line for line in field.said.splitlines() if line.startswith("slow:")]
        busy = field.load > BUSY
        check(field.result["slow"] <= (field.result["answers"] // BUSY_SLOW if busy else 0),
              f"{field.result['slow']} answers took too long, at a load of {field.load:.1f} for each CPU: {slow}")
        check(field.result["slowest_us"] < BUSY_SLOWEST_US, f"{field.result['slowest_us']} us")


@pytest.mark.core
def test_descriptors():
    """What it holds, looked at ten times a second: nothing that is not in the list, and no more of each."""
    for scoped in (False, True):
        field = campaign(scoped)
        note(f"at most at once: {field.most}")
        check(not field.bad, f"{field.bad}")
        for kind, most in LIMITS.items():
            check(0 < field.most.get(kind, 0) <= most, f"{field.most.get(kind, 0)} of {kind}, at most {most}")
        check(field.most.get("file") and field.most.get("pressure"), f"it held none of some kinds: {field.most}")


def test_kernel_time():
    """Our programs take no more than their share of the machine, whatever they are told."""
    for scoped in (False, True):
        field = campaign(scoped)
        spent = {name: ns for name, (ns, _) in field.spent.items() if name not in ITERATORS}
        share = sum(spent.values()) / 1e9 / field.seconds / os.cpu_count()
        ticks = field.spent.get("sampler", (0, 0))
        note(f"{100 * share:.2f} % of {os.cpu_count()} CPUs; {ticks[1]} ticks, "
             f"{ticks[0] / max(1, ticks[1]):.0f} ns each")
        events = LIMITS["[perf_event]"]
        check(ticks[1] > 300 * TIMES, f"only {ticks[1]} ticks")
        check(ticks[1] <= 97 * events * field.seconds, f"{ticks[1]} ticks are more than {events} events make")
        check(share <= KERNEL_SHARE, f"{100 * share:.1f} % of the machine: {spent}")


def test_broker_time():
    """The broker and its workers take no more than their share of a CPU, and so much for an answer."""
    for scoped in (False, True):
        field = campaign(scoped)
        share = field.broker_share
        each_ms = 1000 * share * field.seconds / sum(field.result["granted"] + field.result["refused"])
        note(f"{100 * share:.1f} % of a CPU, {each_ms:.2f} ms an answer")
        check(share <= BROKER_SHARE, f"{100 * share:.1f} % of a CPU")
        check(each_ms <= BROKER_ANSWER_MS, f"{each_ms:.2f} ms an answer")


@pytest.mark.core
def test_kernel_log():
    """The kernel has complained of nothing."""
    for scoped in (False, True):
        said = [line for line in campaign(scoped).kernel if TROUBLE.search(line)]
        check(not said, "\n".join(said[:20]))


@pytest.mark.core
def test_prey_unharmed():
    """Who was watched lives, and has the memory that it had."""
    for scoped in (False, True):
        field = campaign(scoped)
        for prey in field.prey:
            if prey.process:
                state = field.how_is(prey)
                check(state == "well", f"{prey.process.args[3]}: {state}")


# ---- afterwards


def rules_for(comm):
    return {"version": 1, "rules": [{"name": "prey", "match": {"comm": comm}, "when": []}]}


def consumer(field):
    """The real one, on these pins, until it has found the keeper. Its lines by then."""
    folder = field.bed.folder / "agent"
    folder.mkdir(mode=0o755, exist_ok=True)
    control = folder / "control"
    control.mkdir(mode=0o755, exist_ok=True)
    shutil.chown(control, "nobody", "nogroup")
    (folder / "rules.json").write_text(json.dumps(rules_for("keeper")), encoding="ascii")
    output = folder / "lines"
    with open(output, "w", encoding="utf-8") as lines, open(folder / "stderr", "w+", encoding="utf-8") as errors:
        process = field.bed.spawn(CONSUMER, "--rules", folder / "rules.json", "--output", "-", "--bpf-dir",
                                  field.bed.bpf_dir, "--socket", control / "socket", "--user", "nobody", "--group",
                                  "nogroup", "--admin-group", "root", "--broker", field.bed.socket,
                                  stdin=subprocess.DEVNULL, stdout=lines, stderr=errors)

        def found():
            kinds = [json.loads(line)["type"] for line in output.read_text(encoding="utf-8").splitlines()]
            check(process.poll() is None,
                  f"it ended with {process.returncode}: {(folder / 'stderr').read_text(encoding='utf-8')}")
            return kinds if "process.match" in kinds else None

        kinds = until(found, 15, "no process.match of the keeper")
        process.terminate()
        check(process.wait(10) == 0, f"it ended with {process.returncode}")
        return kinds


@pytest.mark.core
def test_next_consumer():
    """A consumer that is itself begins anew on what the captive has left of the maps, and finds who is to be found."""
    for scoped in (False, True):
        consumer(campaign(scoped))


@pytest.mark.core
def test_unload():
    """All of it can be taken away; nothing stays behind."""
    for scoped in (False, True):
        field = campaign(scoped)
        if field.bed.maps:
            field.bed.unload()
        check(not field.bed.bpf_dir.exists(), f"{field.bed.bpf_dir} is there")
        until(lambda f=field: not f.left(), 60, "maps are left")
