# SPDX-License-Identifier: BSD-2-Clause
# tests: shared/files/regular* consumer/output/event_budget* consumer/output/line_budget* consumer/rules/shares*
# tests: consumer/cgroup/cgroups*
"""A hostile local user does everything that user_attacks.py knows, all at once and for half a minute, beside a
service of root's. The service is seen at each of its starts and captured in each of its stalls; the agent answers, and
costs no more than its bounds; neither it nor its broker opens a file of the user's choice or waits for one; no line
holds a byte that a terminal would obey."""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

import harness
import probe
from harness import GROUP, ROOT, WORKLOADS, Cgroup, Skip, check, check_figure, rule, rules, until

HERE = pathlib.Path(__file__).resolve().parent
USER = 61236  # nobody's
LOOKING = {1, 3, 4, 14, 17, 22, 27, 44}  # FUSE: look-ups, attributes, open, and the same of directories
SECONDS, STARTS = ((50, 8) if os.environ.get("TROCAR_LONG") == "1" else
                   (14, 1) if os.environ.get("TROCAR_SHORT") == "1" else (29, 4))
PROCESSES = 600  # that the user may have
MEMORY_MIB = 1024
LINES_A_MINUTE = 600
MINUTE_NS = 60_000_000_000
RULES = 2
HANG_MS = 100
EVENTS_A_SECOND = 800
CPU_SHARE = 0.25
RESIDENT_MIB = 128  # a session that looks at sockets has room for 1,024 peers
LINES = ("process.match", "process.exit", "process.unwind", "watch.start", "watch.stop")
CPU = {"pressure": "cpu", "some_ms": 150, "window_ms": 1000}
UNTAME = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PATH_ROW = re.compile(r'^PATH\(CONSUMER, "([^"]+)"', re.M)
BROKER_PATHS = ("/proc", "/sys", "/dev/null", "/etc/ld.so.cache", "/usr", "/lib", "/lib64", "/opt", "/srv", "/bin", "/sbin")


class Helper:
    """A program beside the test that says what it saw when its standard input ends."""

    def __init__(self, t, *words):
        self.process = subprocess.Popen([sys.executable, *map(str, words)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        t.processes.append(self.process)

    def ready(self):
        if self.process.stdout.readline() != "ready\n":
            raise Skip(self.process.stderr.read().strip())
        return self

    def end(self):
        out, err = self.process.communicate(timeout=60)
        check(self.process.returncode == 0, f"{self.process.args[1]}: {err[-2000:]}")
        return out


class Attack:
    """The user's cgroup, folder and processes: one for each attack."""

    def __init__(self, t, agent):
        self.t, self.running, self.held = t, {}, None
        self.group = t.cgroup("home")
        for name in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
            os.chown(self.group.folder / name, USER, USER)
        self.group.limit("cpu", "cpu.weight", "100", "cpu.shares", "1024")  # as each user of a host has
        self.group.limit("pids", "pids.max", str(PROCESSES), "pids.max", str(PROCESSES))
        self.group.memory(MEMORY_MIB)
        self.folder = t.folder / "user"
        self.folder.mkdir(mode=0o755)
        os.chown(self.folder, USER, USER)
        self.secret = t.folder / "secret.map"
        self.secret.write_text("1000 10 secret_function\n")
        self.secret.chmod(0o600)
        self.mount()
        self.world = self.folder / "world"
        self.world.write_text(json.dumps({
            "seconds": SECONDS, "comm": t.comm, "group": str(self.group.folder), "folder": str(self.folder),
            "workloads": str(WORKLOADS), "held": str(ROOT / "tests" / "broker"), "secret": str(self.secret),
            "mounted": str(t.folder / "held"), "doors": doors(agent)}))

    def mount(self):
        from held_fs import HeldFs
        import bed
        import user_attacks
        try:
            world = type("World", (), {"workload": staticmethod(lambda which: WORKLOADS / which)})
            self.held = HeldFs(self.t.folder / "held", user_attacks.held_content(world))
        except bed.Skip as why:
            raise Skip(str(why)) from why

    def start(self, names):
        def before():
            self.group.join()
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)

        for name in names:
            with open(self.t.folder / f"{name}.stderr", "wb") as said:
                self.running[name] = subprocess.Popen(
                    [sys.executable, HERE / "user_attacks.py", name, self.world], stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=said, preexec_fn=before)
        until(lambda: self.found("held_file"), 10, "nobody runs a program of the FUSE file system")
        self.held.held = True
        (self.folder / "held_file" / "go").touch()

    def found(self, name):
        """What an attack found; None until it has said so."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return json.loads((self.folder / f"{name}.found").read_text())

    def failed(self):
        """Attacks that ended before their time, with what they said."""
        return [f"{name}: status {process.returncode}: {(self.t.folder / (name + '.stderr')).read_text()[-600:]}"
                for name, process in self.running.items() if process.poll() not in (None, 0)]

    def end(self):
        """Ends all that is in the user's cgroups, and removes these."""
        (self.group.folder / "cgroup.kill").write_text("1")
        for process in self.running.values():
            process.wait()
        if self.held:
            self.held.close()
        for folder, _, _ in os.walk(os.fsencode(self.group.folder), topdown=False):
            if folder != os.fsencode(self.group.folder):
                until(lambda f=folder: gone(f), 5, f"{folder} is not empty")
        for path in pathlib.Path("/tmp").glob("perf-*.map"):
            if path.lstat().st_uid == USER:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def gone(folder):
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return not os.path.exists(folder)


def doors(agent):
    return [[str(agent.socket), "SOCK_STREAM"], [str(agent.broker.path), "SOCK_SEQPACKET"], [str(agent.bpf), "folder"],
            [str(agent.rules_file), "file"], [str(agent.folder / "stderr"), "file"],
            [f"/proc/{agent.pid}/mem", "file"], [f"/proc/{agent.pid}/fd", "folder"], [str(agent.pid), "process"]]


def serve(t, agent, home, number):
    """One life of the service: a start that must be seen and a stall that must be captured. Returns what was missing."""
    mark = len(agent.events)
    began = time.monotonic()
    service = t.spawn("burn_cpu", 30, 3, name=t.comm, cgroup=home)
    missing = []
    session = None
    try:
        agent.wait("process.match", pid=service.pid, seconds=4, since=mark)
        seen_s = time.monotonic() - began
        session = agent.wait("session.start", cgroup=home.path, seconds=8, since=mark)["session"]
        end = agent.wait("session.end", session=session, seconds=12, since=mark)
        stacks = [s for s in agent.stacks(session) if s["pid"] == service.pid]
        named = [s for s in stacks if any((f.get("fn") or "").startswith("spin_on_") for f in s["frames"])]
        if not named:
            missing.append(f"start {number}: {len(stacks)} stacks, none with the function: {end}")
        print(f"# start {number}: seen after {1000 * seen_s:.0f} ms, captured after {time.monotonic() - began:.1f} s, "
              f"{end['ledger']['oncpu']['emitted']} samples, {end['verdict']}", flush=True)
    except harness.Failure as failure:
        missing.append(f"start {number} of {service.pid}: {failure}")
        print(f"# {missing[-1][:3000]}", flush=True)
    t.end(service)
    time.sleep(0.5)
    return missing


class Cost:
    """What the consumer has used of CPU and memory since then."""

    def __init__(self, pid):
        self.pid, self.began = pid, time.monotonic()
        self.ticks = self.cpu()

    def cpu(self):
        words = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(words[11]) + int(words[12])

    def share(self):
        used = (self.cpu() - self.ticks) / os.sysconf("SC_CLK_TCK")
        return used / (time.monotonic() - self.began)

    def peak_mib(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024


def judge_answers(rows, load, late=0):
    """`late`: the share of the answers that may come later than HANG_MS, and not later than ten times that."""
    probe.show(rows, "status_ms", "echo_ms", "net_ms", "agent_ran_ms")
    slow = [row for row in rows if row["net_ms"] > HANG_MS]
    check(len(rows) > 10 * STARTS, f"only {len(rows)} answers")
    # With a CPU it may still wait for who holds a lock of the kernel and has none.
    check_figure(len(slow) <= late * len(rows) and all(row["net_ms"] <= 10 * HANG_MS for row in slow),
                 f"{len(slow)} of {len(rows)} answers took more than {HANG_MS} ms though there was a CPU: {slow[:3]}", load)


def below(path, folders):
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def judge_files(t, agent, attack, out):
    listed = PATH_ROW.findall((ROOT / "policy" / "paths.def").read_text())
    mine = [str(t.folder), str(harness.BUILD)]
    allowed = {"consumer": [*listed, *mine], "broker": [*BROKER_PATHS, *mine, "/tmp", sys.base_prefix], "gone": []}
    rows = json.loads(out)
    counts = collections.Counter(who for who, _ in rows)
    print(f"# files opened: {dict(counts)}", flush=True)
    check(counts["consumer"] and counts["broker"], f"nothing is seen of what they open: {counts}")
    wrong = [row for row in rows if not below(row[1], allowed[row[0]])]
    wrong += [row for row in rows if row[1] == str(attack.secret) or row[1].startswith("/tmp/") and
              not below(row[1], mine) and not re.fullmatch(r"/tmp/perf-\d+\.map( \(deleted\))?", row[1])]
    check(not wrong, f"{len(wrong)} files that are not in the list: {wrong[:10]}")


def judge_lines(agent, lines):
    counts = collections.Counter(e["type"] for e in agent.events)
    print(f"# lines: {dict(counts)}", flush=True)
    minutes = 1 + agent.events[-1]["mono_ns"] // MINUTE_NS - agent.events[0]["mono_ns"] // MINUTE_NS  # touched ones
    told = sum(counts[kind] for kind in LINES)
    check(told <= LINES_A_MINUTE * RULES * minutes, f"{told} lines about processes and watches in {minutes} minutes")
    check(counts["error"] <= 150, f"{counts['error']} errors")
    for raw in agent.raw:
        found = UNTAME.search(raw.decode("utf-8"))
        check(not found, f"a line with {found and found.group()!r}: {raw[:300]!r}")


def beside(t, names, times=1, late=0):
    """These attacks at once; starts of the service beside them. They may cost so many times CPU_SHARE and EVENTS_A_SECOND."""
    capture = {"when": [CPU], "cooldown_ms": 0, "pre_ms": 500, "during_ms": 1000}
    both = rules(rule("api", comm=t.comm, **capture), rule("home", cgroup=f"/{t.name}-home", **capture))
    agent = t.agent(both, arguments=["--lines-per-minute", LINES_A_MINUTE], broker=True)
    home = t.cgroup("service", quota=30)
    witness = Helper(t, HERE / "user_witness.py", os.getpid(), harness.LOADER, harness.CONSUMER, "/", "/proc", "/dev",
                     home.base, f"!{t.folder}/secret.map").ready()
    attack = Attack(t, agent)
    flooding = time.monotonic()
    try:
        attack.start(names)
        time.sleep(1)
        cost = Cost(agent.pid)
        asker = probe.Probe(agent)
        missing, began, number = [], time.monotonic(), 0
        while time.monotonic() - began < SECONDS - 8 or number < STARTS:
            missing += serve(t, agent, home, number)
            number += 1
            time.sleep(max(0, began + number * (SECONDS - 8) / STARTS - time.monotonic()))
            if time.monotonic() - began > SECONDS + 20:
                break
        answers, opened = asker.end(), witness.end()
        share, peak_mib = cost.share(), cost.peak_mib()
        failed, found = attack.failed(), {name: attack.found(name) for name in ("fuse", "doors")}
        found["held_file"] = {"asked_for": sorted(attack.held.asked_for)}
        status, lasted = agent.call("status"), time.monotonic() - flooding
        shown = agent.trocar("status", "--all").stdout + agent.trocar("watches").stdout
    finally:
        ended = time.monotonic()
        attack.end()
        print(f"# teardown {time.monotonic() - ended:.1f} s", flush=True)
    print(f"# {number} starts; {share:.2f} CPUs, {peak_mib:.0f} MiB; broker: {agent.broker.starts} starts, "
          f"{agent.broker.statuses}; totals {status['totals']}", flush=True)
    print(f"# {found}", flush=True)
    check(not missing, "\n".join(missing))
    check(not failed, "\n".join(failed))
    check(found["doors"] and found["doors"]["tries"] and not found["doors"]["opened"], f"{found['doors']}")
    for name in ("fuse", "held_file"):
        check(not LOOKING & set((found[name] or {}).get("asked_for", ())), f"{name}: somebody asks: {found[name]}")
    judge_answers(answers, t.load, late)
    judge_files(t, agent, attack, opened)
    judge_lines(agent, agent.raw)
    check(not UNTAME.search(shown), "trocar shows what a terminal obeys")
    check(status["totals"]["events"] <= times * EVENTS_A_SECOND * (lasted + 1),  # a second's part may be taken at once
          f"{status['totals']['events']} events were drained in {lasted:.0f} s")
    check(peak_mib <= RESIDENT_MIB, f"the consumer had {peak_mib:.0f} MiB")
    check(agent.alive(), "the consumer ended")
    check_figure(share <= times * CPU_SHARE, f"the consumer used {share:.2f} CPUs", t.load)


@pytest.mark.core
def test_beside_a_service(t):
    """Fourteen attacks."""
    import user_attacks
    beside(t, [name for name in user_attacks.ATTACKS if name != "many_cgroups"])


def test_beside_many_cgroups(t):
    """The same in 20,000 cgroups. Who looks a path up in the hierarchy waits for a lock of the kernel's, which somebody may
    hold who has no CPU: 1 % of the answers may be late."""
    import user_attacks
    beside(t, user_attacks.ATTACKS, times=2, late=0.01)
