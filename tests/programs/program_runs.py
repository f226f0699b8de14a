# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs of programs.toml, each in a cgroup of its own, two at a time under one agent, and judges what the
sessions say of them (judge.py)."""
import collections
import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import time
import tomllib

import beside_perf
import call_paths
import judge
import moved_files
import servers
from harness import ROOT, Failure, Skip, Test, check, command, rule, rules, until
from machine import Load
from programs import start

HERE = pathlib.Path(__file__).resolve().parent
HZ = 499  # a prime
AT_ONCE = 2  # programs
LIFE = 240  # seconds that a program lives at most; the runs end it earlier
ENOUGH, LEAST = 300, 150  # samples: no more sessions then; none of the figures is judged on fewer
SESSIONS_MAX = 6
SETTLE_S = 1.0  # from the first table on: what was mapped later has its table by then
EXAMPLES = 3
MADE_MAX = 0.01  # of all stacks: main itself, before it calls
GUESSED_MAX = 0.01  # of all stacks: in code without information a word may look like a frame pointer

STARTS = {**vars(servers), **vars(moved_files)}


class Program:
    """One entry of programs.toml."""

    def __init__(self, entry):
        self.name = entry["name"]
        self.slug = "-".join("".join(c if c.isalnum() else " " for c in self.name.lower()).split())[:40]
        self.usual = entry.get("usual", False)
        self.needs = entry.get("needs", [])
        self.packages = entry.get("packages", [])
        self.build, self.run = entry.get("build", []), entry.get("run")
        self.start = STARTS[entry["start"]] if "start" in entry else None
        self.roots = entry.get("roots", [])
        self.floor = entry["floor"]
        self.settle = entry.get("settle_s", SETTLE_S)
        self.rest = entry.get("rest", "")
        self.edges, self.made = entry.get("edges", False), entry.get("made", 0)
        self.paths, self.phases = entry.get("paths", False), entry.get("phases", False)

    def missing(self):
        return [p for p in self.needs if not shutil.which(p) and not os.path.exists(p)]

    def refused(self):
        """The dynamic loaders among its needs that the kernel does not execute: one without programs of 32 bits."""
        return [p for p in self.needs if os.path.basename(p).startswith("ld-") and not executes(p)]


def executes(loader):
    try:
        return subprocess.run([loader, "--version"], stdout=subprocess.DEVNULL, check=False, timeout=20).returncode == 0
    except OSError:
        return False


def read_table():
    with open(HERE / "programs.toml", "rb") as stream:
        return [Program(entry) for entry in tomllib.load(stream)["program"]]


class Run:
    """What the sessions said of one program."""

    def __init__(self, program):
        self.program, self.reason = program, None  # reason: why there is no run
        self.samples = self.complete = self.frames = 0
        self.wrong, self.uncalled, self.guessed, self.rest, self.short = (collections.Counter() for _ in range(5))
        self.examples, self.ledgers, self.load = {}, [], Load()
        self.beside, self.points = [], None  # what perf shows otherwise; the largest difference of a leaf's share

    @property
    def share(self):
        return 100 * self.complete / self.samples if self.samples else 0

    def add(self, stacks, end, files):
        for stack in stacks:
            self.samples += stack.count
            self.frames += stack.count * len(stack.frames)
            self.complete += stack.count * stack.complete
            if not stack.complete:
                self.rest[stack.reason] += stack.count
                self.examples[stack.reason] = " < ".join(judge.where(f) for f in stack.frames)
            if why := (judge.wrongly_complete(stack, files, self.program.roots) or
                       (self.program.edges and judge.leaps(stack, files))):
                self.wrong[why] += stack.count
            if why := judge.lacks_made(stack, self.program.made):
                self.short[why] += stack.count
            for text in judge.not_called(stack, files, self.program.roots):
                (self.uncalled if stack.complete else self.guessed)[text] += stack.count
        self.ledgers.append(end["ledger"]["oncpu"])

    def compare(self, stacks, files, recording):
        """With what perf recorded in the same seconds; without a word where perf could not."""
        if recording.stop():
            return
        try:
            ours, by_name = beside_perf.our_leaves(stacks, files)
            self.beside, self.points = beside_perf.leaf_faults(ours, beside_perf.perf_leaves(recording.data, by_name))
            if self.program.paths:
                self.beside += beside_perf.path_faults(self.program.name, stacks, recording.data)
        except (subprocess.TimeoutExpired, Failure):
            self.points = None  # perf script is too slow for this program, or crashes
        finally:
            recording.data.unlink(missing_ok=True)

    def faults(self):
        """What must never be, on whatever machine."""
        for text, each in (("wrongly complete", self.wrong), ("callers that do not call", self.uncalled)):
            if each:
                yield f"{sum(each.values())} of {self.samples} {text}: {dict(each.most_common(EXAMPLES))}"
        if sum(self.guessed.values()) > GUESSED_MAX * self.samples:
            yield f"callers that do not call, in stacks that are not complete: {dict(self.guessed.most_common(EXAMPLES))}"
        if sum(self.short.values()) > MADE_MAX * self.samples:
            yield f"{sum(self.short.values())} of {self.samples} complete without their made frames: {dict(self.short)}"
        for ledger in self.ledgers:
            if ledger["attempted"] != ledger["emitted"] + sum(ledger["lost"].values()):
                yield f"attempted is not emitted + lost: {ledger}"

    def row(self):
        rest = ", ".join(f"{reason} {count}" for reason, count in self.rest.most_common(4))
        rest += "" if self.points is None else f"; leaves within {self.points:.1f} points of perf's"
        return (f"{self.program.name:44} {self.samples:6} {self.share:7.2f} % wrong {sum(self.wrong.values()):4} "
                f"no call {sum(self.uncalled.values()):3} +{sum(self.guessed.values()):3}  {rest}")


class Runs:
    """The agent under which the programs run, and what it said of each; with `perf` beside perf record."""

    def __init__(self, seconds, perf):
        self.t, self.seconds, self.perf = Test("programs"), seconds, perf
        self.agent = self.t.agent(rules(rule("programs", cgroup=f"/{self.t.name}-", when=[], cooldown_ms=0)),
                                  load=["--hz", HZ])

    def close(self):
        faults = self.t.close()
        check(not faults, "\n".join(faults))

    def begin(self, program, group):
        """Builds and starts the program; what belongs to it lies in a folder of its own."""
        out = self.t.folder / program.slug
        out.mkdir()
        places = {"out": out, "src": HERE / "src", "unwind": ROOT / "tests" / "workloads" / "unwind",
                  "life": LIFE - 2}
        for row in program.build:
            command(*shlex.split(row.format(**places)), seconds=180)
        if program.start:
            program.start(self.t, group, out, places["src"])
        else:
            start(self.t, group, "timeout", "-s", "KILL", LIFE, *shlex.split(program.run.format(**places)))

    def _has_table(self, group):
        pids = set(group.pids())
        return any(e.get("pid") in pids and e.get("comm") != "timeout" for e in self.agent.find("process.unwind"))

    def sessions(self, program, group, run):
        self.agent.wait("watch.start", cgroup=group.path)
        until(lambda: self._has_table(group) or not group.pids(), 20, lambda: f"{program.name}: no table")
        time.sleep(program.settle)
        check(group.pids(), f"{program.name}: it has ended")
        for i in range(SESSIONS_MAX):
            files = judge.Files()
            files.keep(group.pids())
            recording = None
            if self.perf and i == 0 and not program.phases:
                recording = beside_perf.Recording(group, self.t.folder / program.slug, self.seconds)
            answer = self.agent.call("session.start", {"cgroup": group.path, "during_ms": int(self.seconds * 1000)})
            end = self.agent.wait("session.end", seconds=self.seconds + 30, session=answer["session"])
            files.keep(group.pids())
            stacks = call_paths.stacks_of(self.agent.stacks(answer["session"]))
            run.add(stacks, end, files)
            if recording:
                run.compare(stacks, files, recording)
            if run.samples >= ENOUGH:
                break

    def one(self, program):
        run = Run(program)
        missing = program.missing()
        if missing:
            run.reason = f"{', '.join(missing)}: not installed (tests/install-deps programs)"
            return run
        refused = program.refused()
        if refused:
            run.reason = f"the kernel does not execute {', '.join(refused)}"
            return run
        group = self.t.cgroup(program.slug)
        try:
            self.begin(program, group)
            self.sessions(program, group, run)
        except Skip as reason:
            run.reason = str(reason)
        finally:
            group.remove()
        return run


def run_all(programs, seconds, perf=False, said=print):
    """{name: its Run, or the Failure that it came to}."""
    runs, found = Runs(seconds, perf and shutil.which("perf")), {}
    try:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            waits = {pool.submit(runs.one, program): program for program in programs}
            for done in concurrent.futures.as_completed(waits):
                program = waits[done]
                try:
                    found[program.name] = done.result()
                    said(found[program.name].row() if not found[program.name].reason else
                         f"{program.name:44} {found[program.name].reason}")
                except Exception as failure:  # whatever it was, the other programs run
                    found[program.name] = failure
                    said(f"{program.name:44} {type(failure).__name__}: {str(failure)[:300]}")
    finally:
        runs.close()
    return found


def readme_rows(runs):
    """The table of completeness in docs/stacks.md."""
    yield "| program | samples | complete | frames | the rest |"
    yield "|---|---|---|---|---|"
    for run in runs:
        if not isinstance(run, Exception) and run.samples:
            rest = f" {run.program.rest}" if run.complete < run.samples and run.program.rest else ""
            share = f"{run.share:.2f}".rstrip("0").rstrip(".")
            yield (f"| {run.program.name} | {run.samples} | {share} % | {run.frames / run.samples:.0f} |{rest} |")
