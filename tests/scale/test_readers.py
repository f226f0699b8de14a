# SPDX-License-Identifier: BSD-2-Clause
"""The commands that read event files take time by how much there is to read, not by how many sessions it has."""
import os
import resource
import subprocess

import pytest

from harness import BUILD, ROOT, check, check_figure
from machine import Load

SESSIONS, FEW = 4000, 400
STACKS = 38  # of each session: 57 KiB of lines
READ_S = 4   # of CPU time, for all of them: 227 MB
COMMANDS = ("report", "explain", "folded", "flamegraph", "pprof", "diff")


def write_sessions(path, sessions):
    """Copies of one session with ids, times, rules, processes and, in part, functions of their own."""
    lines = (ROOT / "tests/pictures/cart.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    stacks = [line for line in lines if '"type":"stack"' in line]
    kept = [line for line in lines if line not in stacks[STACKS:]]
    with open(path, "w", encoding="utf-8") as out:
        for n in range(sessions):
            session = f"{0x9e3779b97f4a7c15 * (n + 1) % 2**64:016x}"
            day, hour, minute = 1 + n // 1440, n // 60 % 24, n % 60
            for place, line in enumerate(kept):
                line = line.replace("86f4044dde82e2b7", session).replace("2026-11-21T16:45", f"2026-11-{day:02}T{hour:02}:{minute:02}")
                line = line.replace('"rule":"cart"', '"rule":"till"' if n % 2 else '"rule":"cart"')
                line = line.replace('"mono_ns":', f'"mono_ns":{n + 1}').replace('"pid":', f'"pid":1{n:04}')
                out.write(line.replace('"fn":"', f'"fn":"f{n}_', 2) if place == 3 else line)


def cpu_seconds(words):
    """CPU time of a command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([BUILD / "ctl/trocar", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    check(done.returncode == 0, f"{words}: {done.returncode} {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("command", COMMANDS)
def test_sessions(t, command):
    """Ten times the sessions take ten times as long, and never more than four seconds."""
    load, many, few = Load(), t.folder / "many.jsonl", t.folder / "few.jsonl"
    write_sessions(many, SESSIONS)
    write_sessions(few, FEW)
    few_s, many_s = cpu_seconds([command, "--all", few]), cpu_seconds([command, "--all", many])
    print(f"# {command}: {FEW} sessions {few_s:.2f} s, {SESSIONS} sessions ({os.path.getsize(many) >> 20} MiB) {many_s:.2f} s", flush=True)
    check_figure(many_s <= READ_S, f"{many_s:.2f} s", load)
    check_figure(many_s <= 20 * few_s + 0.2, f"{few_s:.2f} s for {FEW}, {many_s:.2f} s for {SESSIONS}", load)
