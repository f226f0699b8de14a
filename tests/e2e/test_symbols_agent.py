# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/symbols/* consumer/jit/* consumer/mappings/* consumer/naming/frame_* consumer/naming/module_advice*
# tests: shared/elf/*
"""Where names come from: files that only the watched process can reach, debug files, compiled code."""
import os
import pathlib
import shlex
import shutil
import signal
import struct
import subprocess
import time

import pytest

from harness import Skip, check, check_figure, command, rule, rules, until

pytestmark = [pytest.mark.parallel(3), pytest.mark.shares_kernel_side]
SHOP = r"""
#include <stdint.h>
#include <time.h>
volatile uint64_t sold;
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec; }
__attribute__((noinline)) void sell_in_the_cellar(void)
{
	for (uint64_t i = 0; i < 20000000; i++)
		sold += i * i;
	__asm__ volatile("");
}
__attribute__((noinline)) void open_the_cellar(void) { sell_in_the_cellar(); __asm__ volatile(""); }
int main(void)
{
	for (uint64_t end = now() + 60; now() < end;)
		open_the_cellar();
	return BUILD; /* each has a build-id of its own: files of one build share their names */
}
"""
FLAGS = "-O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wl,--build-id=sha1"

# The last words of each: the program runs in $root, a folder of its own, as /shop or from there.
CHROOT = """mount -t tmpfs tmpfs "$root"; build 1
for library in $(ldd "$root/shop" | grep -o '/[^ ]*'); do
	mkdir -p "$root$(dirname "$library")"; cp -L "$library" "$root$library"; done
exec chroot "$root" /shop"""
BELOW = 'build 0; mount -t tmpfs tmpfs "$root"; build 2; exec "$root/shop"'
DELETED = 'build 3; "$root/shop" & sleep 0.3; rm "$root/shop"; wait'
REPLACED = 'build 4; "$root/shop" & sleep 0.3; build 0 new; mv "$root/new" "$root/shop"; wait'
PRIVATE = 'build 5; chmod 0700 "$root/shop"; exec "$root/shop"'
SITUATIONS = {  # what the process is called in the test: (script, the reason without the broker)
    "chroot": (CHROOT, "no_file"),
    "below": (BELOW, "other_file"),
    "deleted": (DELETED, "deleted"),
    "replaced": (REPLACED, "deleted"),
    "private": (PRIVATE, "no_permission"),
}


def shop(t, name, script, group):
    """Starts a shop in that situation, in its own mount namespace; returns its folder."""
    folder = t.folder / name
    root = folder / "root"
    root.mkdir(parents=True)
    (folder / "shop.c").write_text(SHOP)
    script = f"""set -eu; root={root}
build() {{ cc {FLAGS} -DBUILD=$1 -o "$root/${{2:-shop}}" {folder}/shop.c
	[ $1 = 0 ] || readelf -n "$root/shop" | sed -n 's/.*Build ID: //p' >{folder}/id; }}
{script}"""
    process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "bash", "-c", script],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=group.join)
    t.processes.append(process)
    return folder


def pids_of(group):
    """The shops that run in the cgroup, by the folder of their program."""
    found = {}
    for pid in group.pids():
        try:
            comm = open(f"/proc/{pid}/comm", encoding="ascii").read().strip()
            exe = os.readlink(f"/proc/{pid}/exe")
            root = os.readlink(f"/proc/{pid}/root")
        except OSError:
            continue
        if comm == "shop":
            found[(root if root != "/" else os.path.dirname(exe)).split("/")[-2]] = pid
    return found


def capture(agent, group, during_ms=2500):
    """Stacks of a session over the cgroup, and its last line."""
    answer = agent.call("session.start", {"cgroup": group.path, "during_ms": during_ms})
    end = agent.wait("session.end", seconds=20, session=answer["session"])
    return [s for s in agent.stacks(answer["session"]) if s["phase"] == "during"], end


def shops(t, broker):
    group = t.cgroup()
    folders = {name: shop(t, name, script, group) for name, (script, _) in SITUATIONS.items()}
    pids = until(lambda: (lambda p: len(p) == len(SITUATIONS) and p)(pids_of(group)), 20,
                 lambda: f"only {pids_of(group)} run")
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])), broker=broker)
    agent.wait("watch.start", cgroup=group.path)
    stacks, end = capture(agent, group)
    return agent, folders, {name: [s for s in stacks if s["pid"] == pid] for name, pid in pids.items()}, end


def own(stacks):
    """The frames that are in the program itself."""
    return [f for s in stacks for f in s["frames"] if (f.get("module") or "").endswith("/shop")]


def test_files_out_of_reach(t):
    """Without the broker a file that cannot be opened leaves module, build-id, offset and the reason."""
    _, folders, stacks, end = shops(t, False)
    for name, (_, why) in SITUATIONS.items():
        wanted = (folders[name] / "id").read_text().strip()
        frames = own(stacks[name])
        check(frames, f"{name}: no frame in the program: {stacks[name][:1]}")
        told = [f for f in frames if f.get("build_id")]
        check(len(told) >= len(frames) * 0.9, f"{name}: {len(told)} of {len(frames)} have a build-id")
        for frame in frames:
            check(frame["fn"] is None and frame["why"] == why, f"{name}: not {why}: {frame}")
            check(frame["offset"] > 0 and frame.get("build_id", wanted) == wanted, f"{name}: {frame}")
    check({m["why"] for m in end["modules_unnamed"]} >= {w for _, w in SITUATIONS.values()},
          f"{end['modules_unnamed']}")


def test_files_through_the_broker(t):
    """With it, the same files are read from the process that maps them, and their functions named."""
    agent, folders, stacks, end = shops(t, True)
    for name in SITUATIONS:
        wanted = (folders[name] / "id").read_text().strip()
        frames = own(stacks[name])
        check(frames, f"{name}: no frame in the program: {stacks[name][:1]}")
        for frame in frames:
            check(frame["fn"] in ("sell_in_the_cellar", "open_the_cellar", "main", "now", "_start",
                                  "clock_gettime@plt"),
                  f"{name}: {frame}")
            check(frame["build_id"] == wanted, f"{name}: not {wanted}: {frame}")
        leaves = [s["frames"][0]["fn"] for s in stacks[name] if s["frames"]]
        check("sell_in_the_cellar" in leaves, f"{name}: {leaves}")
    check(end["top"][0]["fn"] == "sell_in_the_cellar", f"{end['top']}")
    check(agent.call("status")["symbols"]["files_borrowed"] >= len(SITUATIONS), "no file came through the broker")


@pytest.mark.core
def test_debug_file(t):
    """A stripped program's names come from the debug file that its link names."""
    group = t.cgroup()
    folder = shop(t, "stripped", """build 9; objcopy --only-keep-debug "$root/shop" "$root/shop.debug"
cd "$root"; strip shop; objcopy --add-gnu-debuglink=shop.debug shop; exec "$root/shop" """, group)
    until(lambda: pids_of(group), 20, "it does not run")
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])))
    agent.wait("watch.start", cgroup=group.path)
    stacks, end = capture(agent, group, 1000)
    check(end["top"][0]["fn"] == "sell_in_the_cellar", f"{end['top']}")
    (folder / "root" / "shop.debug").unlink()


@pytest.mark.core
def test_debugdata(t):
    """A stripped program's names come from the table that it carries itself, unpacked under the lock-down."""
    if not shutil.which("xz"):
        raise Skip("xz is not installed")
    group = t.cgroup()
    shop(t, "packed", """build 9; cd "$root"; objcopy --only-keep-debug shop names; objcopy -S -K sell_in_the_cellar \\
-K open_the_cellar -K main names; xz names; strip shop; objcopy --add-section .gnu_debugdata=names.xz shop; rm names.xz
exec "$root/shop" """, group)
    until(lambda: pids_of(group), 20, "it does not run")
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])))
    agent.wait("watch.start", cgroup=group.path)
    _, end = capture(agent, group, 1000)
    check(end["top"][0]["fn"] == "sell_in_the_cellar", f"{end['top']}")


def lie(path, about):
    """Makes the section headers of a 64-bit program lie, each kind of section in its own way."""
    data = bytearray(path.read_bytes())
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3a)
    for i in range(count):
        at = offset + i * size
        kind, = struct.unpack_from("<I", data, at + 4)
        if kind == about["section"]:
            struct.pack_into("<Q", data, at + about["field"], about["value"])
    path.write_bytes(data)


LIES = {  # SHT_SYMTAB 2, SHT_STRTAB 3; sh_offset at 0x18, sh_size 0x20, sh_link 0x28, sh_entsize 0x38
    "gigabytes": {"section": 2, "field": 0x20, "value": 1 << 40},
    "behind": {"section": 2, "field": 0x18, "value": 1 << 62},
    "entries": {"section": 2, "field": 0x38, "value": 1},
    "names": {"section": 3, "field": 0x20, "value": (1 << 64) - 1},
}


@pytest.mark.core
def test_lying_files(t):
    """Programs whose headers lie run all the same; they cost their names, and the agent nothing."""
    group = t.cgroup()
    source = t.folder / "shop.c"
    source.write_text(SHOP)
    for name, about in LIES.items():
        program = t.folder / name
        command("cc", *FLAGS.split(), "-DBUILD=9", "-o", program, source)
        lie(program, about)
        t.processes.append(subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            preexec_fn=group.join))
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])))
    agent.wait("watch.start", cgroup=group.path)
    stacks, _ = capture(agent, group)
    for name in LIES:
        frames = [f for s in stacks for f in s["frames"] if (f.get("module") or "").endswith("/" + name)]
        check(frames, f"{name}: no frame")
        check(all(f["fn"] is None and f["why"] in ("bad_elf", "too_large") for f in frames), f"{name}: {frames[:2]}")
    memory = agent.call("status")["memory"]
    check(memory["resident_bytes"] < 64 << 20, f"{memory}")


@pytest.mark.core
def test_compiled_code(t):
    """Functions of node's compiler by its perf map; without one the reason says so."""
    node = shutil.which("node")
    if not node:
        raise Skip("node is not installed")
    script = t.folder / "shop.js"
    script.write_text("""function sellTheCrates(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
let end = Date.now() + 40000; while (Date.now() < end) sellTheCrates(5e6);""")
    for words in (["--perf-basic-prof"], []):
        group = t.cgroup("mapped" if words else "unmapped")
        process = subprocess.Popen([node, *words, str(script)], stdin=subprocess.DEVNULL, cwd="/",
                                   stdout=subprocess.PIPE, preexec_fn=group.join)
        t.processes.append(process)
        agent = t.agents[0] if t.agents else t.agent(rules(rule("shops", cgroup="/" + t.name, when=[])))
        agent.wait("watch.start", cgroup=group.path)
        stacks, _ = capture(agent, group, 1500)
        frames = [f for s in stacks for f in s["frames"] if f["kind"] == "jit"]
        check(frames, f"no compiled frame: {stacks[:1]}")
        if words:
            named = [f for f in frames if f["fn"] and "sellTheCrates" in f["fn"]]
            check(named, f"{frames[:5]}")
            os.unlink(f"/tmp/perf-{process.pid}.map")
        else:
            check(all(f["fn"] is None and f["why"] == "no_perf_map" for f in frames), f"{frames[:3]}")
        t.end(process)


MEMORY = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>
/* push %rbp; mov %rsp,%rbp; 1: dec %rdi; jnz 1b; pop %rbp; ret */
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3 };
static void *in_memfd(void)
{
	int fd = memfd_create("doublemapper", 0);
	void *written;
	if (ftruncate(fd, 4096))
		return NULL;
	written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(written, code, sizeof(code));
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
}
static void *in_segment(void)
{
	int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0700);
	void *at = shmat(segment, NULL, SHM_EXEC);
	shmctl(segment, IPC_RMID, NULL); /* it goes with the process */
	memcpy(at, code, sizeof(code));
	return at;
}
int main(void)
{
	static const char *const kinds[] = { "zero", "memfd", "sysv" };
	void *at[] = {
		mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		in_memfd(),
		in_segment(),
	};
	char path[64];
	FILE *map;
	memcpy(at[0], code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	for (int i = 0; i < 3; i++)
		fprintf(map, "%lx %zx compiled_in_%s\n", (unsigned long)at[i], sizeof(code), kinds[i]);
	fclose(map);
	alarm(60);
	for (unsigned int i = 0;; i++)
		((void (*)(unsigned long))at[i % 3])(20000000);
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its code is x86-64's")
def test_compiled_code_in_shared_memory(t):
    """Code in memory that the kernel keeps as a file: PHP's in /dev/zero, .NET's and Erlang's in a memfd."""
    group = t.cgroup()
    (t.folder / "memory.c").write_text(MEMORY)
    command("cc", "-O1", "-o", t.folder / "memory", t.folder / "memory.c")
    process = subprocess.Popen([t.folder / "memory"], stdin=subprocess.DEVNULL, cwd="/", stdout=subprocess.PIPE,
                               preexec_fn=group.join)
    t.processes.append(process)
    until(lambda: os.path.exists(f"/tmp/perf-{process.pid}.map"), 10, "no perf map")
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])))
    agent.wait("watch.start", cgroup=group.path)
    capture(agent, group, 500)  # its table is there behind this
    stacks, end = capture(agent, group, 1500)
    os.unlink(f"/tmp/perf-{process.pid}.map")
    leaves = [s["frames"][0] for s in stacks]
    for kind in ("zero", "memfd", "sysv"):
        check([f for f in leaves if f["fn"] == f"compiled_in_{kind}"], f"{kind}: {leaves}")
    check(all(f["kind"] == "jit" and f["module"] == "[anon]" for f in leaves if (f["fn"] or "compiled").startswith("compiled")),
          f"{leaves}")
    callers = [s["frames"][1]["fn"] for s in stacks if s["frames"][0]["kind"] == "jit" and len(s["frames"]) > 1]
    check(callers and set(callers) == {"main"}, f"{callers}")
    check(not [a for a in end["advice"] if "restart" in a], f"{end['advice']}")


SIGNALS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <unistd.h>
volatile uint64_t sold;
/* It stands still on its first byte, and no byte lies between it and its neighbour. */
void victim(void);
__asm__(".text; .balign 64\n"
	".globl neighbour; .type neighbour, %function\n"
	"neighbour: .cfi_startproc; .skip 63, 0x90; ret; .cfi_endproc; .size neighbour, . - neighbour\n"
	".globl victim; .type victim, %function\n"
	"victim: .cfi_startproc; jmp victim; .cfi_endproc; .size victim, . - victim\n");
__attribute__((noinline)) void sell_in_the_handler(void)
{
	for (uint64_t i = 0; i < 3000000; i++)
		sold += i * i;
	__asm__ volatile("");
}
static void on_alarm(int signal)
{
	static int left = 6000;
	if (!left--)
		_exit(0);
	sell_in_the_handler();
	__asm__ volatile("");
}
int main(void)
{
	const struct itimerval often = { { 0, 10000 }, { 0, 10000 } };
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, 0);
	victim();
	return 0;
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its code is x86-64's")
@pytest.mark.core
def test_signal_frames(t):
    """What a signal interrupted, and what the handler returns to, are named by where they are, not by a byte before."""
    group = t.cgroup()
    (t.folder / "signals.c").write_text(SIGNALS)
    command("cc", "-O1", "-fno-optimize-sibling-calls", "-static", "-o", t.folder / "signals", t.folder / "signals.c")
    t.processes.append(subprocess.Popen([t.folder / "signals"], stdin=subprocess.DEVNULL, cwd="/", stdout=subprocess.PIPE,
                                        preexec_fn=group.join))
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])))
    agent.wait("watch.start", cgroup=group.path)
    capture(agent, group, 500)  # its table is there behind this
    stacks, _ = capture(agent, group, 1500)
    handled = [s["frames"] for s in stacks if s["frames"][0]["fn"] == "sell_in_the_handler"]
    check(handled, f"{stacks[:2]}")
    for frames in handled:
        check([f["fn"] for f in frames[1:5]] == ["on_alarm", "__restore_rt", "victim", "main"], f"{frames}")
        check([f.get("exact") for f in frames[:5]] == [None, None, True, True, None], f"{frames}")
    check(not [f for s in stacks for f in s["frames"] if f["fn"] == "neighbour"], "a neighbour that never ran")


CRATES = """function sellTheCrates(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
let end = Date.now() + %d; while (Date.now() < end) sellTheCrates(3e5);"""
CONTAINED = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-c",
             'mount -t tmpfs tmpfs /tmp; umask 077; exec node --perf-basic-prof -e "$0"']


def crates(stacks):
    """The compiled frames, and whether each is named."""
    frames = [f for s in stacks for f in s["frames"] if f["kind"] == "jit"]
    return frames, [f for f in frames if f["fn"] and "sellTheCrates" in f["fn"]]


def compiled_in_a_container(t, broker):
    if not shutil.which("node"):
        raise Skip("node is not installed")
    group = t.cgroup()
    t.processes.append(subprocess.Popen([*CONTAINED, CRATES % 40000], stdin=subprocess.DEVNULL, cwd="/",
                                        stdout=subprocess.PIPE, preexec_fn=group.join))
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])), broker=broker)
    agent.wait("watch.start", cgroup=group.path)
    stacks, _ = capture(agent, group, 1500)
    frames, named = crates(stacks)
    check(frames, f"no compiled frame: {stacks[:1]}")
    return frames, named


@pytest.mark.core
def test_compiled_code_in_a_container(t):
    """The perf map in a container's own /tmp, under its own number, for its own eyes: through the broker."""
    frames, named = compiled_in_a_container(t, True)
    check(len(named) > len(frames) / 2, f"{len(named)} of {len(frames)}: {frames[:5]}")


@pytest.mark.core
def test_compiled_code_out_of_reach(t):
    """Without the broker it is the reason that tells."""
    frames, _ = compiled_in_a_container(t, False)
    check(all(f["fn"] is None and f["why"] == "no_perf_map" for f in frames), f"{frames[:3]}")


SHORT = r"""
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
volatile uint64_t sold;
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000ull + t.tv_nsec / 1000000; }
__attribute__((noinline)) void sell_in_passing(void)
{
	for (uint64_t i = 0; i < 100000; i++)
		sold += i * i;
	__asm__ volatile("");
}
int main(int argc, char *argv[])
{
	for (uint64_t end = now() + atoi(argv[1]); now() < end;)
		sell_in_passing();
	return 0;
}
"""


def short_lived(t, group, words, milliseconds):
    """Starts them one after the other, for as long as the test runs: a loop for each of these times."""
    for ms in milliseconds:
        line = f"{shlex.join(words(ms))} & wait $!; rm -f /tmp/perf-$!.map"
        loop = subprocess.Popen(["sh", "-c", f"while :; do {line}; done"], stdin=subprocess.DEVNULL, cwd="/",
                                stdout=subprocess.PIPE, preexec_fn=group.join)
        t.processes.append(loop)


def nameless(stacks, comm):
    """Samples of these processes, and those whose leaf has no name, by reason."""
    samples, unnamed = 0, {}
    for stack in stacks:
        if stack["comm"] != comm or "count" not in stack or not stack["frames"]:
            continue
        leaf = stack["frames"][0]
        samples += stack["count"]
        if leaf["fn"] is None:
            key = (leaf.get("why"), leaf["module"])
            unnamed[key] = unnamed.get(key, 0) + stack["count"]
    return samples, unnamed


@pytest.mark.parallel(1)  # what lives that briefly must be read in time
def test_gone_before_the_end(t):
    """Processes that live for 50 ms to 1 s: their samples are named after their end."""
    group = t.cgroup()
    (t.folder / "brief.c").write_text(SHORT)
    command("cc", "-O1", "-fno-omit-frame-pointer", "-o", t.folder / "brief", t.folder / "brief.c")
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])))
    short_lived(t, group, lambda ms: [str(t.folder / "brief"), str(ms)], [50, 200, 1000])
    agent.wait("watch.start", cgroup=group.path)
    stacks, end = capture(agent, group, 3000)
    samples, unnamed = nameless(stacks, "brief")
    check(len({s["pid"] for s in stacks if s["comm"] == "brief"}) > 8, "too few of them")
    check(not unnamed, f"of {samples} samples: {unnamed}")
    check_figure(samples > 30, f"{samples} samples", t.load)


def gone_with_compiled_code(t, contained):
    """Nodes that live for 0.3 and 1 s, in a session that ends after most of them."""
    if not shutil.which("node"):
        raise Skip("node is not installed")
    group = t.cgroup()
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])), broker=contained)

    def words(ms):
        script = t.folder / f"live_{ms}"
        node = CONTAINED if contained else ["node", "--perf-basic-prof", "-e"]
        script.write_text("exec " + shlex.join([*node, CRATES % ms]))
        return ["sh", str(script)]

    short_lived(t, group, words, [300, 1000])
    agent.wait("watch.start", cgroup=group.path)
    stacks, _ = capture(agent, group, 4000)
    for loop in t.processes[-2:]:
        t.end(loop)
    pids, living = {s["pid"] for s in stacks if s["comm"] == "node"}, set(group.pids())
    for pid in living:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not group.pids(), 5, "they do not end")
    for pid in pids | living:
        pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)
    check(len(pids - living) > 3, f"{pids} less {living}")
    _, named = crates([s for s in stacks if s["pid"] not in living])
    check(named, "no compiled frame of those that have gone is named")
    samples, unnamed = nameless(stacks, "node")
    check_figure(samples > 30 and sum(unnamed.values()) <= samples / 50, f"of {samples} samples: {unnamed}", t.load)


@pytest.mark.parallel(1)  # what lives that briefly must be read in time
def test_gone_with_compiled_code(t):
    """The perf maps of processes that have gone were opened while they lived."""
    gone_with_compiled_code(t, False)


@pytest.mark.parallel(1)  # what lives that briefly must be read in time
def test_gone_with_its_container(t):
    """So were those in a /tmp that went with its container."""
    gone_with_compiled_code(t, True)


@pytest.mark.parallel(1)  # what lives that briefly must be read in time
def test_gone_at_once(t):
    """Programs that no other process runs, for 20 ms each: what they have mapped is read at their first tick."""
    group = t.cgroup()
    (t.folder / "brief.c").write_text(SHORT)
    identity = bytes(range(20))
    command("cc", "-O1", "-fno-omit-frame-pointer", f"-Wl,--build-id=0x{identity.hex()}", "-o", t.folder / "brief",
            t.folder / "brief.c")
    image = (t.folder / "brief").read_bytes()
    check(image.count(identity) == 1, "no build-id to put others in the place of")
    programs = [t.folder / f"once_{i}" for i in range(40)]
    for i, program in enumerate(programs):
        program.write_bytes(image.replace(identity, i.to_bytes(4, "big") + identity[4:]))
        program.chmod(0o755)
    t.spawn("burn_cpu", 60, cgroup=group)
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])))
    agent.wait("watch.start", cgroup=group.path)
    answer = agent.call("session.start", {"cgroup": group.path, "during_ms": 5000})
    end = time.monotonic() + 4.5
    for program in programs:
        if time.monotonic() < end:
            subprocess.run([program, "20"], preexec_fn=group.join, check=True)
    agent.wait("session.end", seconds=20, session=answer["session"])
    seen, unnamed = set(), set()
    for stack in agent.stacks(answer["session"]):
        if stack["comm"].startswith("once_") and stack["frames"]:
            seen.add(stack["pid"])
            if stack["frames"][0]["fn"] is None:
                unnamed.add(stack["pid"])
    check(len(seen) > 10 and len(unnamed) <= len(seen) / 5, f"{len(unnamed)} of {len(seen)} have no names")
