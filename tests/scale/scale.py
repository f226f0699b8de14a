# SPDX-License-Identifier: BSD-2-Clause
"""What each scenario of tests/scale measures: the agent's turns, answers, memory and CPU time, and what it says of the
truth that the test has counted by itself."""
import os
import pathlib
import time

from harness import Skip, check, check_figure, mounts, until
from machine import Load
from probe import Probe, show

LONG = os.environ.get("TROCAR_LONG") == "1"
# A turn's own time; WALL_MS: with the time in which others had the CPUs, as where 2,000 processes end at once.
TURN_MS, WALL_MS, ANSWER_MS, READY_S = 50, 250, 20, 5
BROKER_MS = 50  # the main loop waits for the broker where a session begins, and the broker for a CPU where others have all
# Between two halves that do the same: what an arena of malloc may still take, and what each process costs that has
# ended within PROCESS_LINGER_MS, its line included.
RSS_GROWTH_KIB, RSS_LINGERING_KIB = 1024, 1.5
TASK_KIB = 64  # what a sleeping thread takes: 36 KiB here, mostly its stacks
THREADS_MANY = 14000 if LONG else 6000
LINGER_S, LINGERING_MAX = 40, 8192


def rss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def cpu_s(pid):
    return sum(int(stat.read_text().split()[0])
               for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


class Watcher:
    """Asks an agent for its status all the time; `end` prints and judges what it took."""

    def __init__(self, agent, name):
        self.agent, self.name, self.load = agent, name, Load()
        self.cpu, self.began = cpu_s(agent.pid), time.monotonic()
        self.probe = Probe(agent)

    def end(self):
        rows = self.probe.end()
        check(rows, "no answer")
        show(rows, "status_ms", "net_ms")
        took_ms = sorted(row["net_ms"] for row in rows)
        self.status = self.agent.call("status")
        self.figures = {
            "wall_ms": self.status["longest_turn_ms"],
            "turn_ms": self.status.get("longest_turn_own_ms", self.status["longest_turn_ms"]), "median_ms": took_ms[len(took_ms) // 2],
            "worst_ms": took_ms[-1], "mib": rss_kib(self.agent.pid) / 1024,
            "cpu_s": cpu_s(self.agent.pid) - self.cpu, "seconds": time.monotonic() - self.began}
        f = self.figures
        print(f"# {self.name}: longest turn {f['turn_ms']} ms, {f['wall_ms']} with waiting for CPUs; {len(took_ms)} answers, median {f['median_ms']:.1f} ms, "
              f"worst {f['worst_ms']:.1f} ms; {f['mib']:.1f} MiB; {f['cpu_s']:.2f} s of CPU in {f['seconds']:.1f} s",
              flush=True)
        return self

    def judge(self, sessions=False):
        f, more_ms = self.figures, BROKER_MS if sessions else 0
        check_figure(f["turn_ms"] <= TURN_MS + more_ms, f"{self.name}: a turn of {f['turn_ms']} ms", self.load)
        check_figure(f["wall_ms"] <= WALL_MS, f"{self.name}: a turn of {f['wall_ms']} ms in all", self.load)
        check_figure(f["worst_ms"] <= ANSWER_MS + more_ms, f"{self.name}: an answer took {f['worst_ms']:.1f} ms", self.load)


def crowd(t, kind, count, seconds, cgroup=None, name=None):
    """`count` threads or processes that sleep."""
    process = t.spawn("crowd", seconds, kind, count, name=name, cgroup=cgroup)
    check(process.stdout.readline() == "there\n", f"no crowd of {count} {kind}")
    return process


def host_of_threads(t, count, cgroup=None):
    """As many threads that sleep, in processes of 10,000 (each has two of the 65,530 mappings that a process may have);
    skips where the host cannot have them."""
    roomy(t, count + 2000)
    for _ in range(count // 10000):
        crowd(t, "threads", 10000, 200, cgroup=cgroup)


def roomy(t, tasks):
    """Has the kernel number so many tasks; skips where it, a cgroup or the memory does not allow them."""
    numbers = pathlib.Path("/proc/sys/kernel/pid_max")
    before = int(numbers.read_text())
    limits = {"kernel.threads-max": int(pathlib.Path("/proc/sys/kernel/threads-max").read_text())}
    for folder in own_folders("pids"):
        text = (folder / "pids.max").read_text().strip() if (folder / "pids.max").exists() else "max"
        limits[f"{folder}/pids.max"] = tasks if text == "max" else int(text)
    free_kib = next(int(line.split()[1]) for line in open("/proc/meminfo", encoding="ascii") if line.startswith("MemAvailable"))
    limits["tasks for which there is memory"] = free_kib // TASK_KIB
    few = {name: limit for name, limit in limits.items() if limit < tasks}
    if few:
        raise Skip(f"{tasks} tasks are wanted: {few}")
    if before < 2 * tasks:
        try:
            numbers.write_text(str(2 * tasks))
        except OSError as error:
            raise Skip(f"kernel.pid_max is {before} and stays so: {error}") from error
        t.after.append(lambda: numbers.write_text(str(before)))


def own_folders(controller):
    """The cgroups that this process is in, and those above, where this controller limits them."""
    at = {words[1]: words[2] for words in (line.strip().split(":", 2) for line in open("/proc/self/cgroup", encoding="ascii"))}
    for mount in mounts():
        path = at.get("") if mount[2] == "cgroup2" else at.get(controller) if controller in mount[3].split(",") else None
        if path is not None and mount[2] in ("cgroup", "cgroup2"):
            own = pathlib.Path(mount[1]) / path.lstrip("/")
            yield from [own, *own.parents][:len(pathlib.Path(path).parts)]


def births(t, count, a_second, cgroup=None, seconds=120, during=None):
    """Bears children, and calls `during` meanwhile; returns how many processes there were, with the one that bears."""
    process = t.spawn("crowd", seconds, "births", count, a_second, name=t.comm, cgroup=cgroup)
    if during:
        during()
    out, _ = process.communicate()
    return int(out) + 1


def check_flat(half, whole, ended):
    """The second of two halves that do the same, and in which so many processes end, takes no more memory than they
    hold until they are forgotten."""
    bound = RSS_GROWTH_KIB + RSS_LINGERING_KIB * min(ended, LINGERING_MAX)
    print(f"# resident after the first half {half} KiB, after the second {whole} KiB", flush=True)
    check(whole <= half + bound, f"{half} KiB after the first half, {whole} KiB after the second, bound {bound:.0f}")


def matched(agent):
    """Distinct processes that process.match told of."""
    return len({(e["pid"], e["start_ns"]) for e in agent.find("process.match")})


def said_lost(agent):
    """Starts that the agent says it has not told of, by kind."""
    totals = agent.call("status")["totals"]
    return {key: totals[key] for key in ("events_lost", "events_limited", "events_over_quota", "events_shed",
                                         "lines_left_out", "matches_full") if totals.get(key)}


def check_all_told(agent, made):
    """Each process that the test has made was told of, or the agent says that it was not."""
    def told():
        return matched(agent) + sum(said_lost(agent).values()) >= made
    until(told, 10, lambda: f"{made} made, {matched(agent)} told of, {said_lost(agent)} said")
    print(f"# {made} made, {matched(agent)} told of, {said_lost(agent)} said", flush=True)


def started(agent):
    """Starts the consumer; returns the seconds until its first answer."""
    began = time.monotonic()
    agent.start(wait=False)
    until(agent.answers, 4 * READY_S, lambda: "no answer: " + agent.stderr())
    return time.monotonic() - began
