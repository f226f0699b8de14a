# SPDX-License-Identifier: BSD-2-Clause
"""Many watched cgroups that come and go."""
import contextlib
import pathlib
import time

from harness import check, rule, rules, until
from scale import LONG, Watcher, check_flat, crowd, rss_kib

CGROUPS = 2000 if LONG else 300
ROUNDS = 4 if LONG else 2


def children(process):
    text = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return text.split()


class Cgroups:
    """Cgroups below one, each with one process."""

    def __init__(self, t, home, process):
        self.t, self.process, self.folders = t, process, []
        for number, pid in enumerate(children(process)):
            folder = home.folder / f"c{number}"
            folder.mkdir()
            self.folders.append(folder)
            (folder / "cgroup.procs").write_text(pid)

    def end(self):
        self.t.end(self.process)
        for folder in self.folders:
            until(lambda f=folder: self.removed(f), 10, f"{folder} stays")

    @staticmethod
    def removed(folder):
        with contextlib.suppress(OSError):
            folder.rmdir()
        return not folder.exists()


def test_come_and_go(t):
    """2,000 watched cgroups (300 in the usual check), made and removed in rounds: each round is told of in whole."""
    home = t.cgroup("home")
    agent = t.agent(rules(rule("all", cgroup=home.path + "/")), load=["--watches", 4096],
                    arguments=["--lines-per-minute", 1 << 20, "--health-seconds", 1])
    watcher = Watcher(agent, f"{CGROUPS} cgroups, {ROUNDS} rounds")
    sizes = []
    for number in range(1, ROUNDS + 1):
        made = Cgroups(t, home, crowd(t, "processes", CGROUPS, 100))
        try:
            until(lambda n=number: len(agent.find("watch.start")) >= n * CGROUPS, 30,
                  lambda: f"{len(agent.find('watch.start'))} watches began")
            until(lambda: agent.call("status")["watches"] == CGROUPS, 10,
                  lambda: f"{agent.call('status')['watches']} watches")
        finally:
            made.end()
        until(lambda: agent.call("status")["watches"] == 0, 40,
              lambda: f"{agent.call('status')['watches']} watches are left")
        sizes.append(rss_kib(agent.pid))
        time.sleep(0.2)
    watcher.end()
    starts, stops = agent.find("watch.start"), agent.find("watch.stop")
    check(len(starts) == len(stops) >= ROUNDS * CGROUPS, f"{len(starts)} began, {len(stops)} ended")
    check(len({e["cgroup"] for e in starts}) == CGROUPS, "a cgroup was not watched")
    check_flat(sizes[ROUNDS // 2 - 1], sizes[-1], ROUNDS // 2 * CGROUPS)
    watcher.judge()
