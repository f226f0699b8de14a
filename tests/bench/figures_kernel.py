# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the kernel side and of single parts, by the bench's own programs."""
import json
import os
import shutil
import subprocess

import world
from table import Row, ratio
from world import PeerMissing, World, harness, tool

FACTS = "measured elsewhere, not run here"


def ticks(short):
    """price of a tick that is not taken"""
    rounds = 6 if short else 40
    found = tool("ticks", 997, 250, rounds, "nos")
    nothing, other, session = found["nothing"], found["other"], found["session"]
    floor, miss = found["floor_ns"], found["miss_ns"]
    yield Row(f"tick, nothing watched, ns ({rounds} x 250 ms)", f"{nothing['run_ns']:.0f}",
              "no tick at all with the broker", f"empty program {floor:.0f}",
              ratio(nothing["run_ns"], floor))
    yield Row(f"tick, something else watched, ns ({rounds} x 250 ms)", f"{other['run_ns']:.0f}",
              "<= 1.1 x one hash miss", f"one hash miss {miss:.0f}", other["to_miss"],
              other["to_miss"] <= 1.1, key="tick_other_to_miss")
    yield Row(f"same, while a session runs: its time is counted, ns ({rounds} x 250 ms)", f"{session['run_ns']:.0f}",
              "-", f"one hash miss {miss:.0f}", session["to_miss"])


def samples(short):
    """price of a captured sample, against bpftrace on the same load"""
    rounds = 3 if short else 20
    with World("samples") as w:
        try:
            _, number = w.bpftrace("profile:hz:99 { @[ustack, kstack] = count(); }")
            found = tool("ticks", 99, 500, rounds, "orpbc", number)
            missing = None
        except PeerMissing as why:
            found, missing = tool("ticks", 99, 500, rounds, "orpbc"), f"peer missing: {why}"
    raw, early, ids, recorder = found["raw"], found["pointers"], found["build_id"], found["recorder"]
    peer = missing or f"bpftrace {raw['peer_ns']:.0f}"
    close = None if missing else raw["to_peer"]
    yield Row(f"captured sample, {found['user_frames']:.0f} user frames, 99 Hz, ns "
              f"({raw['emitted']} of {raw['runs']} ticks met it)", f"{raw['sample_ns']:.0f}", "<= 0.5 x each peer", peer,
              close, close <= 0.5 if close else None, key="sample_raw_to_bpftrace")
    yield Row("same, against libbpf-tools profile (upstream's source)", f"{raw['sample_ns']:.0f}",
              "<= 0.5 x each peer", f"5249 {FACTS}")
    yield Row("same, against the bare walk of that user stack", f"{raw['sample_ns']:.0f}", "-",
              f"one bpf_get_stack {found['stack_ns']:.0f}", ratio(raw["sample_ns"], found["stack_ns"]),
              key="sample_raw_to_walk")
    yield Row(f"captured sample, before the process has a table, ns ({early['emitted']} samples)",
              f"{early['sample_ns']:.0f}", "-", f"with a table {raw['sample_ns']:.0f}",
              ratio(early["sample_ns"], raw["sample_ns"]))
    yield Row(f"captured sample, by build-id, ns ({ids['emitted']} samples)", f"{ids['sample_ns']:.0f}",
              "-", f"with a table {raw['sample_ns']:.0f}", ratio(ids["sample_ns"], raw["sample_ns"]))
    yield Row(f"recorder: a tick in a watched cgroup, ns ({recorder['emitted']} samples)",
              f"{recorder['run_ns']:.0f}", "-", f"captured {raw['run_ns']:.0f}",
              ratio(recorder["run_ns"], raw["run_ns"]))
    yield Row("bytes per sample", f"{found['sample_bytes']:.0f}", "-", f"perf 296 {FACTS}")


OFF_CPU = """tracepoint:sched:sched_switch {
  if (args->prev_state) { @since[args->prev_pid] = nsecs; }
  $since = @since[args->next_pid];
  if ($since) { @off[args->next_pid] = sum(nsecs - $since); delete(@since[args->next_pid]); }
}"""


def switches(short):
    """price of a context switch while threads have time accounts, against bpftrace that sums off-CPU time"""
    rounds = 6 if short else 40
    with World("switches") as w:
        try:
            _, number = w.bpftrace(OFF_CPU, "tracepoint")
            found, missing = tool("switches", 250, rounds, number), None
        except PeerMissing as why:
            found, missing = tool("switches", 250, rounds), f"peer missing: {why}"
    for name, text in (("unwatched", "of threads that nobody watches"), ("apart", "the same, each to another cgroup"),
                       ("watched", "of a session's threads"), ("calls", "the same, with `syscall`"),
                       ("rival", "of a session's thread and one of another cgroup")):
        each = found[name]
        peer = missing or f"bpftrace's off-CPU sums {each['peer_ns']:.0f}"
        yield Row(f"switch {text}, `pools` and `runq` attached, ns above an empty program ({rounds} x 250 ms)",
                  f"{each['run_ns'] - each['floor_ns']:.0f}", "none attached without a session", peer,
                  None if missing else ratio(each["run_ns"], each["peer_ns"]))


WAKES = "tracepoint:sched:sched_waking { @woken[args->pid] = count(); }"


def wakes(short):
    """price of a wake-up while waits for locks are told, against bpftrace that only counts wake-ups"""
    rounds = 6 if short else 40
    with World("wakes") as w:
        try:
            _, number = w.bpftrace(WAKES, "tracepoint")
            found, missing = tool("switches", "wakes", 250, rounds, number), None
        except PeerMissing as why:
            found, missing = tool("switches", "wakes", 250, rounds), f"peer missing: {why}"
    for name, text in (("unwatched", "of threads that nobody watches"), ("watched", "that ends a wait for a lock")):
        each = found[name]
        peer = missing or f"bpftrace's counts {each['peer_ns']:.0f}"
        yield Row(f"wake-up {text}, `lock` attached, ns above an empty program ({rounds} x 250 ms)",
                  f"{each['run_ns'] - each['floor_ns']:.0f}", "none attached without a session", peer,
                  None if missing else ratio(each["run_ns"], each["peer_ns"]))


def execs(short):
    """price of the exec hook by number of rules"""
    found = tool("execs", 250 if short else 1500, 3 if short else 7)
    none = found["rules_0"]["hook_ns"]
    yield Row(f"exec hook, no rules, ns ({found['rounds']} x {found['execs']} execs)", f"{none:.0f}", "-",
              f"empty program {found['floor_ns']:.0f}", ratio(none, found["floor_ns"]))
    for rules in (10, 1000, 10000):
        each = found[f"rules_{rules}"]
        last = rules == 10000
        yield Row(f"exec hook, {rules} rules, ns above none", f"{each['above_ns']:.0f}",
                  "<= 200 ns above none" if last else "-",
                  f"the exec itself {found['exec_ns']:.0f}", ratio(each["above_ns"], found["exec_ns"]),
                  each["above_ns"] <= 200 if last else None)


def drain(short):
    """records a second out of the ring, on one core"""
    found = tool("drain", 40 if short else 300)
    for size in (64, 512):
        ours, peer = found[f"ours_{size}"], found[f"libbpf_{size}"]
        yield Row(f"drain, {size}-byte records, M/s ({found['rounds']} rings of 4 MiB)", f"{ours:.1f}",
                  ">= 5" if size == 512 else "-", f"libbpf {peer:.1f}", ratio(ours, peer),
                  ours >= 5 if size == 512 else None, more=True)  # either may win: no gate
    yield Row("drain, decoded and recorded, 512 bytes, M/s", f"{found['decoded_512']:.2f}", "-",
              f"ring alone {found['ours_512']:.1f}", ratio(found["decoded_512"], found["ours_512"]),
              more=True)


def lines(short):
    """event lines a second"""
    found = tool("lines", 9 if short else 25, 4000)
    report, writer = found["report"], found["writer"]
    yield Row(f"event lines, 30 frames, {found['line_bytes']} bytes, named and written, 1000/s "
              f"(best of {found['rounds']} runs)", f"{report / 1e3:.0f}", ">= 200",
              f"json-c {found['json_c'] / 1e3:.0f}", ratio(report, found["json_c"]), report >= 200e3,
              more=True, key="lines_to_json_c")
    yield Row("same, the writer alone, 1000/s", f"{writer / 1e3:.0f}", ">= 200",
              f"snprintf without escaping {found['snprintf'] / 1e3:.0f}",
              ratio(writer, found["snprintf"]), writer >= 200e3, more=True, key="writer_to_snprintf")


def scan(short):
    """all processes through the tasks iterator, as the consumer's user"""
    with World("scan") as w:
        agent = w.agent(harness.rules(*[harness.rule(f"r{i}", comm=f"nobody-{i}") for i in range(10)]))
        herd = w.run_tool("herd", 5000)
        if herd.stdout.readline().strip() != "ready":
            raise harness.Failure("the herd of 5000 processes did not come up")
        # From here on only the figure: the consumer's own scans are 30 s apart.
        found = tool("scan", agent.bpf / "tasks", 5 if short else 25, user=True)
        herd.stdin.close()
        herd.wait(20)
    ours = found["iterator_ms"]
    for name, peer, limit in (("a full /proc walk", found["proc_full_ms"], 3),
                              ("a /proc walk of comm", found["proc_comm_ms"], None)):
        yield Row(f"scan of {found['processes']} processes, ms (uid {found['uid']}, "
                  f"{found['rounds']} runs)", f"{ours:.2f}", "<= 3" if limit else "-",
                  f"{name} {peer:.1f}", ratio(ours, peer), ours <= limit if limit else None,
                  key="scan_to_proc_walk" if limit else None)


def size(short):
    """bytes of the stripped programs, BPF instructions per program"""
    with World("size") as w:
        for name, path in (("loader", harness.LOADER), ("consumer", harness.CONSUMER),
                           ("command", harness.COMMAND)):
            out = w.path(name)
            subprocess.run(["strip", "-o", str(out), str(path)], check=True)
            yield Row(f"stripped {name}, KiB", f"{out.stat().st_size / 1024:.0f}", "-",
                      "-" if name != "consumer" else peer_size("bpftrace"))
        agent = w.agent(harness.rules(harness.rule("a", comm="nobody")), start=False)
        for pin in sorted(agent.bpf.iterdir()):
            if pin.name == "sampler_cpu0" or pin.name.startswith("on_"):
                yield instructions(agent, pin)


def instructions(agent, pin):
    link = harness.command("bpftool", "-j", "link", "show", "pinned", pin).stdout
    program = world.programs()[json.loads(link)["prog_id"]]
    return Row(f"{program['name']}: instructions after verification", f"{program['bytes_xlated'] // 8}",
               "-", f"{program.get('bytes_jited', 0)} bytes of machine code")


def peer_size(name):
    path = shutil.which(name)
    if not path:
        return f"peer missing: {name} is not installed"
    return f"{name} {os.path.getsize(os.path.realpath(path)) / 1024:.0f} (without its libraries)"
