# SPDX-License-Identifier: BSD-2-Clause
"""Complete means complete: on each program of programs.toml no stack is called complete that is not, judged by file
offsets and instructions (judge.py), and no caller is shown that does not call. All of them with TROCAR_LONG=1."""
import os

import pytest

import machine
import program_runs
from harness import ROOT, Skip, check, check_figure

LONG = bool(os.environ.get("TROCAR_LONG"))
SECONDS = 4 if LONG else 1.5  # of a session
CHOSEN = [p for p in program_runs.read_table() if LONG or p.usual]


@pytest.fixture(scope="session")
def runs(request, kernel):
    """What became of the programs whose tests were chosen."""
    wanted = {item.callspec.params["program"] for item in request.session.items if hasattr(item, "callspec")}
    with machine.share():
        return program_runs.run_all([p for p in CHOSEN if p in wanted], SECONDS, perf=LONG)


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.slug)
def test_complete(runs, program):
    """Every stack that is called complete is; callers call; the ledger adds up; enough stacks are complete."""
    run = runs[program.name]
    if isinstance(run, Exception):
        raise run
    if run.reason:
        raise Skip(run.reason)
    print(f"# {run.row()}")
    faults = list(run.faults())
    check(not faults, f"{program.name}: " + "; ".join(faults))
    check_figure(run.samples >= program_runs.LEAST, f"{program.name}: {run.samples} samples", run.load)
    check_figure(run.share >= program.floor,
                 f"{run.share:.2f} % complete, not {program.floor} %: {dict(run.rest)}", run.load)
    check_figure(not run.beside, f"{program.name}, beside perf: " + "; ".join(run.beside[:4]), run.load)


def test_page():
    """The table of docs/stacks.md has every program."""
    text = (ROOT / "docs" / "stacks.md").read_text()
    missing = [p.name for p in program_runs.read_table() if f"| {p.name} |" not in text]
    check(not missing, f"docs/stacks.md does not have {missing}: tests/programs/run --table prints its table")
