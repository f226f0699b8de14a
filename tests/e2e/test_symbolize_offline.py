# SPDX-License-Identifier: BSD-2-Clause
# tests: ctl/symbolize/* shared/elf/elf_debugdata* shared/elf/debug_file*
"""trocar symbolize: names that come later, for real sessions of programs that the agent could not name."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from harness import COMMAND, SCHEMAS, check, command, rule, rules, until
from programs import need

pytestmark = [pytest.mark.parallel(3), pytest.mark.shares_kernel_side]
SHOP = r"""
#include <stdint.h>
#include <time.h>
volatile uint64_t sold;
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec; }
/* Most of the time is spent in it, on any CPU. */
static inline __attribute__((always_inline)) uint64_t price(uint64_t i)
{
	return ((((i ^ sold) * 11 ^ i) * 13 ^ i) * 19 ^ i) * 23 ^ i; /* price */
}
__attribute__((noinline)) void sell_in_the_cellar(void)
{
	for (uint64_t i = 0; i < 20000000; i++) /* loop */
		sold += price(i); /* sell */
	__asm__ volatile("");
}
__attribute__((noinline)) void open_the_cellar(void)
{
	sell_in_the_cellar(); /* open */
	__asm__ volatile("");
}
int main(void)
{
	for (uint64_t end = now() + 60; now() < end;)
		open_the_cellar(); /* main */
	return BUILD; /* each has a build-id of its own */
}
"""
# Half of its time is spent in the stub by which it calls its library.
BRANCH = r"""
#include <time.h>
void ring_the_till(void);
int main(void)
{
	for (time_t end = time(NULL) + 60; time(NULL) < end;)
		for (long i = 0; i < 5000000; i++) {
			ring_the_till();
			ring_the_till();
			ring_the_till();
			ring_the_till();
		}
}
"""
TILL = 'void ring_the_till(void); void ring_the_till(void) { __asm__ volatile(""); }'
GO = r"""
package main

import "time"

//go:noinline
func total(v []int) (s int) { for i := 0; i < 2000; i++ { for _, x := range v { s += x ^ i } }; return }

//go:noinline
func sell(goods []int) int { return total(goods) } // hidden: total sets up no frame of its own

func main() {
	goods := make([]int, 1000)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); { goods[0] = sell(goods) }
}
"""
FLAGS = ["-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1"]
OWN = {"sell_in_the_cellar", "open_the_cellar", "main", "now", "_start"}


def build(folder, name, number):
    (folder / "shop.c").write_text(SHOP)
    command("cc", *FLAGS, f"-DBUILD={number}", "-o", folder / name, folder / "shop.c")
    return folder / name


def line_of(word):
    return next(n for n, line in enumerate(SHOP.splitlines(), 1) if f"/* {word} */" in line)


def session_of(t, program):
    """The event lines of a session of it, by an agent without the broker."""
    group = t.cgroup(program.name)
    process = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=group.join)
    t.processes.append(process)
    agent = t.agents[0] if t.agents else t.agent(rules(rule("shops", cgroup="/" + t.name, when=[])), broker=False)
    agent.wait("watch.start", cgroup=group.path)
    for _ in range(6):  # on a busy machine the program may get too little of the CPU at first
        answer = agent.call("session.start", {"cgroup": group.path, "during_ms": 1500})
        agent.wait("session.end", seconds=20, session=answer["session"])
        if sum(s.get("count", 0) for s in agent.stacks(answer["session"]) if s["pid"] == process.pid) >= 30:
            break
    t.end(process)
    file = t.folder / f"{program.name}.jsonl"
    file.write_bytes(b"".join(line for line in agent.raw if answer["session"].encode() in line))
    return file


def symbolize(file, *words):
    """What it writes, each line checked against its schema, and what it says."""
    done = command(COMMAND, "symbolize", file, *words)
    faults = [f for line in done.stdout.splitlines() for f in SCHEMAS.line_faults(line.encode() + b"\n")]
    check(not faults, f"lines break the schema: {faults[:3]}")
    check(all(len(line) < 8096 for line in done.stdout.splitlines()), "a line is too long")
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def own(events, program):
    """The frames that are in the program itself."""
    return [f for e in events if e["type"] == "stack" for f in e["frames"] if f.get("module") == str(program)]


def samples(events, key):
    return sum(e.get(key, 0) for e in events if e["type"] == "stack")


def test_program_out_of_reach(t):
    """A program below a folder of mode 0700: later, as root, its frames get the names that the agent gives."""
    cellar = t.folder / "cellar"
    cellar.mkdir()
    program = build(cellar, "shop", 1)
    os.chmod(cellar, 0o700)
    file = session_of(t, program)
    before = [json.loads(line) for line in file.read_text().splitlines()]
    frames = own(before, program)
    check(frames and all(f["fn"] is None and f["why"] == "no_permission" for f in frames), f"{frames[:2]}")
    after, said = symbolize(file)
    frames = own(after, program)
    check({f["fn"] for f in frames} <= OWN and "sell_in_the_cellar" in {f["fn"] for f in frames}, f"{frames[:3]}")
    check(not any("why" in f for f in frames), f"{frames[:3]}")
    check(f" {len(frames)} frames named" in said, said)
    for key in ("count", "weight_ns", "threads"):
        check(samples(before, key) == samples(after, key), f"{key} changed")
    # The session's last line no longer complains of them.
    ends = [[e for e in events if e["type"] == "session.end"][0] for events in (before, after)]
    check(any(m["why"] == "no_permission" for m in ends[0]["modules_unnamed"]), f"{ends[0]}")
    check(not any(m["module"] == str(program) for m in ends[1]["modules_unnamed"]), f"{ends[1]}")
    check(not any(a.startswith("shop:") for a in ends[1]["advice"]), f"{ends[1]['advice']}")
    check(ends[1]["symbolized"]["named"] > 0, f"{ends[1]}")
    # The agent itself, once it may read the file, writes the same names.
    os.chmod(cellar, 0o755)
    program.rename(cellar / "shop2")
    again = own([json.loads(x) for x in session_of(t, cellar / "shop2").read_text().splitlines()], cellar / "shop2")
    names = {f["offset"]: f["fn"] for f in frames}
    same = [f for f in again if f["offset"] in names]
    check(same and all(f["fn"] == names[f["offset"]] for f in same), f"other names: {same[:3]}")


def named_as_by_agent(t, program, wanted):
    """What the agent may not read gets later the names that the agent gives to a copy that it may read."""
    cellar = t.folder / "cellar"
    cellar.mkdir()
    shutil.copy(program, cellar / "far")
    os.chmod(cellar, 0o700)
    shutil.copy(program, t.folder / "near")
    file = session_of(t, cellar / "far")
    frames = own([json.loads(line) for line in file.read_text().splitlines()], cellar / "far")
    check(frames and not any(f["fn"] for f in frames), f"the agent could read it: {frames[:3]}")
    later = {f["offset"]: f["fn"] for f in own(symbolize(file)[0], cellar / "far")}
    lines = session_of(t, t.folder / "near").read_text().splitlines()
    agent = {f["offset"]: f["fn"] for f in own([json.loads(line) for line in lines], t.folder / "near")}
    same = later.keys() & agent.keys()
    check(all(later[offset] == agent[offset] for offset in same), f"other names: {later} {agent}")
    check(wanted <= {later[offset] for offset in same}, f"not {wanted}: {later} {agent}")


@pytest.mark.core
def test_stubs(t):
    """Stubs of the procedure linkage table, which have no symbols."""
    (t.folder / "branch.c").write_text(BRANCH)
    (t.folder / "till.c").write_text(TILL)
    command("cc", "-O1", "-shared", "-fPIC", "-o", t.folder / "libtill.so", t.folder / "till.c")
    program = t.folder / "branch"
    command("cc", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id=sha1", "-o", program, t.folder / "branch.c",
            t.folder / "libtill.so", f"-Wl,-rpath,{t.folder}")
    named_as_by_agent(t, program, {"ring_the_till@plt", "main"})


def test_go_stripped(t):
    """A stripped Go program: by the table that it carries for its own stack traces."""
    need("go")
    (t.folder / "shop.go").write_text(GO)
    program = t.folder / "goshop"
    environment = {**os.environ, "GOCACHE": str(t.folder / "cache"), "GO111MODULE": "off", "CGO_ENABLED": "0"}
    # Go's own linker writes no build-id that the kernel finds.
    subprocess.run(["go", "build", "-ldflags=-linkmode=external -extldflags=-Wl,--build-id=sha1", "-o", program,
                    t.folder / "shop.go"], check=True, env=environment, capture_output=True, timeout=180)
    command("strip", program)
    named_as_by_agent(t, program, {"main.total", "main.main"})


@pytest.mark.core
def test_source_lines(t):
    """The lines of a -g program: the caller's is the call, what is inlined has its own."""
    program = build(t.folder, "shop", 2)
    file = session_of(t, program)
    events, said = symbolize(file, "--source")
    frames = own(events, program)
    check(frames and all(f["source"]["file"].endswith("/shop.c") for f in frames if f["fn"] != "_start"), f"{frames[:3]}")
    wanted = {"open_the_cellar": {line_of("open")}, "main": {line_of("main"), line_of("main") - 1},
              "sell_in_the_cellar": {line_of("loop"), line_of("sell")}}
    for f in frames:
        if f["fn"] in wanted:
            check(f["source"]["line"] in wanted[f["fn"]], f"not {wanted[f['fn']]}: {f}")
        for inner in f.get("inlined", []):
            check((inner["fn"], inner["line"]) == ("price", line_of("price")), f"{f}")
    check(any("inlined" in f for f in frames), f"nothing is inlined: {frames[:3]}")
    check("frames of files with a source line" in said, said)
    # What addr2line(1) says of the hot address.
    hot = next(f for f in frames if f["fn"] == "sell_in_the_cellar")
    load = next(x.split() for x in command("readelf", "-lW", program).stdout.splitlines() if " R E " in x)
    address = hot["offset"] - int(load[1], 16) + int(load[2], 16)
    their = command("addr2line", "-i", "-e", program, hex(address)).stdout.split()
    places = [f"{p['file']}:{p['line']}" for p in [*hot.get("inlined", []), hot["source"]]]
    check([p.split(" ")[0] for p in their if p.startswith("/")] == places, f"{their} {places}")


@pytest.mark.core
def test_debug_folder(t):
    """A stripped program is named from its debug file in any folder; that of another build is not taken."""
    program, other = build(t.folder, "shop", 3), build(t.folder, "other", 4)
    right, wrong = t.folder / "right" / "deep", t.folder / "wrong"
    right.mkdir(parents=True)
    wrong.mkdir()
    command("objcopy", "--only-keep-debug", program, right / "any-name")
    command("objcopy", "--only-keep-debug", other, wrong / "shop.debug")
    command("strip", program)
    file = session_of(t, program)
    os.mkfifo(wrong / "fifo")
    for words in ((), ("--debug-dir", wrong)):
        events, said = symbolize(file, *words)
        check(not {f["fn"] for f in own(events, program)} & OWN, f"{words}: it has names")
        check(" stripped: " in said or " no_symbol: " in said, said)
    events, _ = symbolize(file, "--debug-dir", wrong, "--debug-dir", t.folder / "right", "--source")
    frames = own(events, program)
    check("sell_in_the_cellar" in {f["fn"] for f in frames} and {f["fn"] for f in frames} <= OWN, f"{frames[:3]}")
    check(any(f.get("source", {}).get("line") == line_of("main") for f in frames), f"{frames[:3]}")
    # On a machine that has the debug file alone.
    program.unlink()
    alone, _ = symbolize(file, "--debug-dir", t.folder / "right", "--source")
    check(own(alone, program) == frames, "the debug file alone names them otherwise")


@pytest.mark.core
def test_pipe(t):
    """From a pipe into a report; as a user who may open nothing, it says why."""
    cellar = t.folder / "cellar"
    cellar.mkdir()
    program = build(cellar, "shop", 5)
    os.chmod(cellar, 0o700)
    file = session_of(t, program)
    piped = command("sh", "-c", f"{COMMAND} symbolize - <{file} | {COMMAND} report")
    check("sell_in_the_cellar" in piped.stdout, piped.stdout)
    check(not any("without names" in line and "/cellar/" in line for line in piped.stdout.splitlines()), piped.stdout)
    os.chmod(file, 0o644)
    copy = pathlib.Path("/var/tmp") / f"{t.name}.trocar"
    copy.write_bytes(pathlib.Path(COMMAND).read_bytes())
    copy.chmod(0o755)
    try:
        refused = command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "symbolize", file)
    finally:
        copy.unlink()
    check(" no_permission: " in refused.stderr, refused.stderr)


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
        return dict(row.rstrip("\n").split(":\t", 1) for row in stream if ":\t" in row)


@pytest.mark.core
def test_confined(t):
    """What reads the file has a filter of its own on top of its parent's, the file, and a socket; it ends with it."""
    program = build(t.folder, "shop", 6)
    build_id = command("readelf", "-nW", program).stdout.split("Build ID: ")[1].split()[0]
    line = json.dumps({
        "type": "stack", "v": 1, "ts": "2026-01-02T03:04:05.678901234Z", "session": "00000000deadbeef", "signal": "oncpu",
        "phase": "during", "comm": "shop", "threads": 1, "count": 1, "weight_ns": 1,
        "frames": [{"fn": None, "why": "x", "module": str(program), "build_id": build_id, "offset": 1, "kind": "user"}]})
    process = subprocess.Popen([COMMAND, "symbolize"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    t.processes.append(process)
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def resolver():
        pids = children.read_text().split()
        return pids and status_of(pids[0]).get("Seccomp_filters") == "2" and pids[0]

    child = until(resolver, 10, "no resolver with two filters")
    parent, own_status = status_of(process.pid), status_of(child)
    check(parent["Seccomp"] == "2" and parent["Seccomp_filters"] == "1" and parent["NoNewPrivs"] == "1", f"{parent}")
    check(own_status["NoNewPrivs"] == "1", f"{own_status}")
    open_files = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
    check(sorted(f.split(":")[0] for f in open_files) == sorted([str(program), "socket"]), f"{open_files}")
    limits = pathlib.Path(f"/proc/{child}/limits").read_text()
    check("Max cpu time              60" in limits, limits)
    process.kill()
    process.wait()
    until(lambda: not os.path.exists(f"/proc/{child}") or status_of(child)["State"].startswith("Z"), 10,
          "the resolver outlives its parent")
