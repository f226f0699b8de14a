# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/process/unwind_* consumer/unwind/store/* bpf/unwind/unwind_ranges.h bpf/unwind/process_table.h
# tests: bpf/discovery/iter.bpf.c
"""Stacks by rows compiled from .eh_frame, of programs without frame pointers, from an unprivileged
process: complete and with the right callers."""
import collections
import json
import os
import shutil
import signal
import subprocess
import textwrap
import time

import pytest

from harness import Failure, Skip, check, command, rule, rules, until

PYTHON = "/usr/bin/python3"
pytestmark = [pytest.mark.parallel(3), pytest.mark.shares_kernel_side]
COMPLETE = 0.999  # of the samples of a session
HZ = 97  # the loader's own
MOMENT = 0.3  # seconds until a library is known: 0.1, and what a busy machine takes


def user_names(stack):
    return [f["fn"] for f in stack["frames"] if f["kind"] != "kernel"]


def whole_stacks(agent, session, pid):
    """The stacks of that process in the during phase, their parts put together."""
    parts = collections.OrderedDict()
    for stack in agent.stacks(session):
        if stack["pid"] == pid and stack["phase"] == "during":
            key = stack.get("stack_id", len(parts) + 1000000)
            parts.setdefault(key, []).append(stack)
    for lines in parts.values():
        lines.sort(key=lambda s: s.get("part", 1))
        yield {**lines[0], "frames": [f for s in lines for f in s["frames"]]}


def settled(agent):
    """The status of the unwinder, once no table was made for a second: while the dynamic loader is at work each one
    is out of date soon, and what it had may be gone when the kernel side looks."""
    now = agent.call("status")["unwind"]
    for _ in range(30):
        before = now
        time.sleep(1)
        now = agent.call("status")["unwind"]
        if now["tables_published"] == before["tables_published"]:
            return now
    raise Failure(f"tables are made all the time: {now}")


def capture(agent, pid, name, seconds=3, least=60, sessions=8):
    """Sessions on what `pid` does, once it has its table and that has settled, until there are enough samples (a
    busy machine lets it run little): its line, the last session.end, all stacks."""
    line, stacks = agent.wait("process.unwind", pid=pid), []
    settled(agent)
    for _ in range(sessions):
        session = agent.call("session.start", {"rule": name, "during_ms": seconds * 1000})["session"]
        end = agent.wait("session.end", seconds=seconds + 6, session=session)
        stacks += whole_stacks(agent, session, pid)
        if sum(s["count"] for s in stacks) >= least:
            break
    return line, end, stacks


def complete(stacks):
    return [s for s in stacks if s["quality"] == "complete"]


def check_complete(stacks, end, least):
    counts = collections.Counter()
    for stack in stacks:
        counts[stack["quality"]] += stack["count"]
    total = sum(counts.values())
    broken = [(s["count"], s["quality_reason"], user_names(s)) for s in stacks
              if s["quality"] != "complete"]
    check(total >= least, f"only {total} samples: {end['ledger']}")
    # One alone is no share: it was where no rule can say more, as between two instructions of clone().
    check(total - counts["complete"] <= max(1, (1 - COMPLETE) * total),
          f"{counts}: {broken[:3]}, {end['stack_quality']}")


@pytest.mark.core
def test_callers(t):
    """A C program as distributions build it: through qsort's callback, and in a thread."""
    group = t.cgroup()
    agent = t.agent(rules(rule("api", comm="callers", cgroup=group.path, pre_ms=0, cooldown_ms=0)))
    process = t.spawn("callers", 60, name="callers", cgroup=group)
    agent.wait("process.unwind", pid=process.pid)
    first = settled(agent)
    line, end, stacks = capture(agent, process.pid, "api")
    check(line["unwind"] == "table" and line["without_rows"] == [], f"{line}")
    check_complete(stacks, end, 60)
    for stack in complete(stacks):
        names = user_names(stack)
        if "run_thread" in names:
            at = names.index("run_thread")
            check(set(names[:at]) <= {"spin_in_compare", "descend"}, f"{names}")
            check(names[:at].count("descend") == 21 or names[0] == "descend", f"{names}")
        elif "spin_in_compare" in names:
            check(names[1] == "compare_orders" and {"qsort_r", "qsort"} & set(names), f"{names}")
            check(names.index("sort_orders") < names.index("main"), f"{names}")
    seen = {n for s in stacks for n in user_names(s)}
    check({"run_thread", "sort_orders", "main"} <= seen, f"{seen}")
    unwind = agent.call("status")["unwind"]
    seen = sum(s["count"] for s in complete(stacks))
    check(unwind["tables_used"] >= 1 and unwind["ends"]["complete"] >= seen, f"{seen}: {unwind}")
    check(unwind["ends"]["switched"] == 0, f"{unwind}")
    # What the last table has was there when the kernel side looked, and a program that maps nothing needs no other.
    for key in ("tables_published", "mappings_missed", "mappings_cut"):
        check(unwind[key] == first[key], f"{key}: {first[key]}, then {unwind[key]}")
    rows = {m["module"].rsplit("/", 1)[-1]: m["rows"] for m in unwind["modules"]}
    check(rows.get("callers", 0) > 5 and any(m.startswith("libc.so") for m in rows), f"{rows}")


def test_python(t):
    """The distribution's own python3, which has no frame pointers: to _start, whatever it does."""
    group = t.cgroup()
    agent = t.agent(rules(rule("api", comm="worker", cgroup=group.path, pre_ms=0, cooldown_ms=0)))
    text = textwrap.dedent("""
        import json, re, sys, time
        end = time.monotonic() + float(sys.argv[1])
        def parse(n):
            return parse(n - 1) if n else json.loads('{"a": [1, 2, {"b": "c"}]}')
        open("/proc/self/comm", "w").write("worker")
        while time.monotonic() < end:
            parse(20)
            re.findall("(a|b)+c", "abababab" * 50)
            sorted(range(500), key=lambda x: -x)
        """)
    process = subprocess.Popen([PYTHON, "-c", text, "60"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, preexec_fn=group.join)
    t.processes.append(process)
    line, end, stacks = capture(agent, process.pid, "api")
    check(line["unwind"] == "table", f"{line}")
    check_complete(stacks, end, 60)
    others = [user_names(s) for s in complete(stacks) if "Py_BytesMain" not in user_names(s)]
    check(not others, f"{others[:3]}")


@pytest.mark.core
def test_many_mappings(t):
    """More executable mappings than a table holds: what has a place leads through, the rest says so."""
    group = t.cgroup()
    agent = t.agent(rules(rule("api", comm="worker", cgroup=group.path, pre_ms=0, cooldown_ms=0)))
    text = textwrap.dedent("""
        import ctypes, glob, json, mmap, sys, time
        RX, OWN = mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE
        library = open(glob.glob("/lib/*/libm.so.6")[0], "rb")
        held = []
        for i in range(1000):
            held.append(mmap.mmap(library.fileno(), 4096, OWN, RX, offset=4096))
            held.append(mmap.mmap(-1, 8192, OWN | mmap.MAP_ANONYMOUS, RX))
        # A page of its own, the smallest: mov $10000000, %ecx; 1: dec %ecx; jnz 1b; ret
        code = mmap.mmap(-1, 4096, OWN | mmap.MAP_ANONYMOUS, RX | mmap.PROT_WRITE)
        code.write(bytes.fromhex("b980969800ffc975fcc3"))
        spin = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        end = time.monotonic() + float(sys.argv[1])
        open("/proc/self/comm", "w").write("worker")
        def parse(n):
            return parse(n - 1) if n else json.loads('{"a": [1, 2, {"b": "c"}]}')
        while time.monotonic() < end:
            spin()
            for i in range(5000):
                parse(20)
        """)
    process = subprocess.Popen([PYTHON, "-c", text, "60"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, preexec_fn=group.join)
    t.processes.append(process)
    line, end, stacks = capture(agent, process.pid, "api")
    check(line["unwind"] == "mixed" and line["mappings"] > 2000, f"{line}")
    check(line["mappings_cut"] == line["mappings"] - 512, f"{line}")
    check(agent.call("status")["unwind"]["mappings_cut"] >= line["mappings_cut"], "not in status")
    # The functions of the application follow a native stack that ends too early.
    spun = [s for s in stacks if [f for f in s["frames"] if f["kind"] != "runtime"][-1].get("module") == "[anon]"]
    check(sum(s["count"] for s in spun) > 10, f"{[user_names(s) for s in stacks][:3]}")
    check(all("more executable mappings" in s["quality_reason"] for s in spun), f"{spun[:2]}")
    check_complete([s for s in stacks if s not in spun], end, 30)
    check(any("512 executable mappings" in text for text in end["advice"]), f"{end['advice']}")
    check("no_place" in [m.get("reason") for m in end["modules_broken"]], f"{end['modules_broken']}")


def test_redis(t):
    """A server of the distribution under load: most of its ticks hit the kernel, and from there too."""
    if not shutil.which("redis-server"):
        raise Skip("no redis-server here")
    group, socket = t.cgroup(), t.folder / "socket"
    agent = t.agent(rules(rule("api", comm="redis-server", cgroup=group.path, pre_ms=0, cooldown_ms=0)))
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", ""],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=t.folder,
                              preexec_fn=group.join)
    t.processes.append(server)
    until(socket.exists, 10, "redis does not listen")
    t.processes.append(subprocess.Popen(["redis-benchmark", "-s", str(socket), "-n", "100000000", "-q"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
    line, end, stacks = capture(agent, server.pid, "api")
    check(line["unwind"] == "table", f"{line}")
    check_complete(stacks, end, 60)
    check(any(f["kind"] == "kernel" for s in stacks for f in s["frames"]), "no tick hit the kernel")


@pytest.mark.parallel(1)  # it has MOMENT seconds
def test_dlopen(t):
    """A library that comes while stacks are taken is known within a moment."""
    group = t.cgroup()
    agent = t.agent(rules(rule("api", comm="worker", cgroup=group.path, pre_ms=0, cooldown_ms=0)))
    text = textwrap.dedent("""
        import signal, sys, time
        told = []
        signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
        open("/proc/self/comm", "w").write("worker")
        while not told:
            pass
        import hashlib, ctypes
        end = time.monotonic() + float(sys.argv[1])
        while time.monotonic() < end:
            hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 20000)
        """)
    process = subprocess.Popen([PYTHON, "-c", text, "60"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, preexec_fn=group.join)
    t.processes.append(process)
    agent.wait("process.unwind", pid=process.pid)
    settled(agent)
    hashed, total = [], 0
    for i in range(6):
        session = agent.call("session.start", {"rule": "api", "during_ms": 5000})["session"]
        time.sleep(0.3)
        process.send_signal(signal.SIGUSR1)
        end = agent.wait("session.end", seconds=11, session=session)
        hashed += [s for s in whole_stacks(agent, session, process.pid)
                   if any(os.path.basename(f["module"] or "").startswith("libcrypto") for f in s["frames"])]
        total = sum(s["count"] for s in hashed)
        if total == 0 and i > 1:
            raise Skip("this python hashes without libcrypto")
        if total > 200:
            break
    broken = total - sum(s["count"] for s in complete(hashed))
    check(total > 200 and broken <= HZ * MOMENT, f"{broken} of {total}: {end['stack_quality']}")


@pytest.mark.parallel(1)  # its rule finds a name wherever it is
def test_rule_says_how(t):
    """capture.unwind: by frame pointers alone stacks are taken without rows, and the line says so; a push changes it."""
    agent = t.agent(rules(rule("api", comm="callers", unwind="fp")))
    process = t.spawn("callers", 30, name="callers", cgroup=t.cgroup())
    agent.wait("process.unwind", pid=process.pid, unwind="fp")
    session = agent.call("session.start", {"rule": "api", "during_ms": 500})["session"]
    quality = agent.wait("session.end", session=session)["stack_quality"]
    check(quality["by_frame_pointers"] > 10 and not quality["unwound"], f"rows all the same: {quality}")
    pushed = rules(rule("api", comm="callers", unwind="table"))
    agent.call("rules.set", {"text": json.dumps(pushed)})
    agent.wait("process.unwind", pid=process.pid, unwind="table")
    session = agent.call("session.start", {"rule": "api", "during_ms": 500})["session"]
    quality = agent.wait("session.end", session=session)["stack_quality"]
    check(quality["unwound"].get("complete", 0) > 10, f"no rows: {quality}")


UNDEFINED = r"""
static volatile unsigned long sum;

__attribute__((noipa)) static void spin(void)
{
	__asm__ volatile(".cfi_remember_state\n.cfi_undefined rip");
	for (int i = 0; i < 200000; i++)
		sum += (unsigned long)i;
	__asm__ volatile(".cfi_restore_state");
}

int main(void)
{
	for (;;)
		spin();
}
"""


def test_undefined_caller(t):
    """Between two instructions of a function its call frame information says that it has no caller: a leaf there is not
    a whole stack."""
    if not shutil.which("gcc"):
        raise Skip("needs gcc")
    group = t.cgroup()
    agent = t.agent(rules(rule("api", comm="undefined", cgroup=group.path, pre_ms=0, cooldown_ms=0)))
    (t.folder / "undefined.c").write_text(UNDEFINED)
    command("gcc", "-O2", "-o", t.folder / "undefined", t.folder / "undefined.c", seconds=60)
    process = subprocess.Popen([t.folder / "undefined"], stdin=subprocess.DEVNULL, preexec_fn=group.join)
    t.processes.append(process)
    _, _, stacks = capture(agent, process.pid, "api")
    leaves = [s for s in stacks if user_names(s) == ["spin"]]
    check(sum(s["count"] for s in leaves) > 10, f"{[user_names(s) for s in stacks]}")
    check(not complete(leaves), f"{complete(leaves)[:3]}")
    check(all("no entry point" in s["quality_reason"] for s in leaves if s["signal"] == "oncpu"), f"{leaves[:3]}")
