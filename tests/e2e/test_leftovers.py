# SPDX-License-Identifier: BSD-2-Clause
# tests: tests/leftovers.py
"""What a run of the tests leaves that is killed: the next one takes it away, and nothing of one that still runs."""
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import harness
from harness import ROOT, check, command, until

SWEEP = ROOT / "tests" / "leftovers.py"

# A test with an agent, a process in a cgroup and a mount, that says so and waits.
MAKER = """
import sys, time
sys.path[:0] = sys.argv[1:]
import harness
t = harness.Test("left")
group = t.cgroup("own")
for i in range(50):
    (group.folder / f"below{i}").mkdir()
t.agent(harness.rules(harness.rule("own", cgroup=group.path)), broker=True)
t.spawn("burn_cpu", 60, 1, cgroup=group)
t.tmpfs("1m")
print("made", flush=True)
time.sleep(60)
"""


def things(pid):
    """What there is of the maker with that pid: folders, cgroups, mounts, and processes started from its folder."""
    mark = f"te2e-{pid}-"
    found = [path for path in pathlib.Path("/var/tmp").iterdir() if path.name.startswith(mark)]
    found += list(harness.cgroup2_mount().glob(f"{mark}*"))
    found += [mount[1] for mount in harness.mounts() if mark in mount[1]]
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in pathlib.Path(f"/proc/{name}/cmdline").read_text():
                found.append(f"process {name}")
        except OSError:
            pass
    return found


@pytest.mark.parallel(3)
@pytest.mark.core
def test_killed_run(t):
    """While its maker lives all is left alone; after that nothing of it is left, and this test's own is."""
    group = t.cgroup()
    with subprocess.Popen([sys.executable, "-c", MAKER, str(ROOT / "tests" / "e2e"), str(ROOT / "tests")],
                          stdout=subprocess.PIPE, text=True) as maker:
        try:
            check(maker.stdout.readline() == "made\n", "nothing was made")
            before = things(maker.pid)
            check(len(before) >= 6, f"{before}")
            command(SWEEP)
            # A worker of the broker may have ended by itself.
            gone = set(map(str, before)) - set(map(str, things(maker.pid)))
            check(len(gone) <= 1 and all(name.startswith("process ") for name in gone), f"of {before} {gone} have gone")
        finally:
            maker.send_signal(signal.SIGKILL)
    said = command(SWEEP).stdout
    print(said)
    check(f"te2e-{maker.pid}-left-own (51 cgroups)" in said and "still there" not in said, said)
    until(lambda: not things(maker.pid), 5, lambda: f"left: {things(maker.pid)}")
    check(group.folder.exists() and t.folder.exists(), "what a living test has made is gone")
