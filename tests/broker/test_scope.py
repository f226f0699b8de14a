# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/broker/broker_scope*
"""A set that is loaded for some cgroups alone: nothing of another is opened, whatever `watches` and `targets` say."""
import os
import pathlib

import pytest

from bed import check, start_ns
from test_operations import MAPS, PROGRAM, ask, ask_map

pytestmark = pytest.mark.parallel(2)


def in_scope_of(bed, group):
    """Loads the set anew, for `group` and what is below it."""
    mount = next(p for p in group.parents if os.path.ismount(p))
    bed.unload()
    bed.load("--scope", "/" + str(group.relative_to(mount)))


def test_scope_of_pressure(bed):
    """Watched, but outside: a sibling whose name goes on like ours is inside, as a prefix says; the root is not."""
    mine, longer, other = bed.group("mine"), bed.group("mine-too"), bed.group("other")
    in_scope_of(bed, mine)
    for group in (mine, longer, other):
        bed.watch(os.stat(group).st_ino)
    bed.watch(1)
    with bed.client() as c:
        for group in (mine, longer):
            answer = c.ask("pressure_open", os.stat(group).st_ino, 0, 0)
            check(answer.refusal == "none" and len(answer.fds) == 1, f"{group.name}: {answer}")
            answer.close()
        with bed.refusals(scope=2):
            for number in (os.stat(other).st_ino, 1):
                answer = c.ask("pressure_open", number, 0, 0)
                check(answer.refusal == "scope" and not answer.fds, f"{number}: {answer}")


def test_scope_of_processes(bed):
    """A process in `targets` that is outside: neither its files nor its perf map, until it is inside."""
    mine, other = bed.group("mine"), bed.group("other")
    in_scope_of(bed, mine)
    process = bed.python(MAPS, PROGRAM, group=other)
    bed.target(process.pid, start_ns(process.pid))
    text = pathlib.Path(f"/tmp/perf-{process.pid}.map")
    text.write_text("1000 10 f\n")
    try:
        with bed.client() as c:
            with bed.refusals(scope=2):
                check(ask(c, process, "/sleep").refusal == "scope", "a mapped file of one outside")
                check(ask_map(c, process).refusal == "scope", "a perf map of one outside")
            (mine / "cgroup.procs").write_text(str(process.pid))
            for answer in (ask(c, process, "/sleep"), ask_map(c, process)):
                check(answer.refusal == "none" and len(answer.fds) == 1, f"{answer}")
                answer.close()
    finally:
        text.unlink()
        process.kill()
        process.wait()
