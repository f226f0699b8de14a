# SPDX-License-Identifier: BSD-2-Clause
"""Many different files: each program that starts is in a file of its own."""
import pytest

from harness import check, rule, rules
from scale import LONG, Watcher, check_all_told, check_flat, rss_kib

FILES = 100000 if LONG else 1000
A_SECOND = 700 if LONG else 250
SERVICES = 40


def deploy(t, names):
    """Starts programs in two halves; the first of a long run lasts longer than what they leave behind is kept."""
    where = t.tmpfs("400m")
    agent = t.agent(rules(rule("api", prefix=t.comm, cooldown_ms=0)),
                    arguments=["--lines-per-minute", 1 << 20, "--health-seconds", 1, "--symbols-path", where])
    watcher = Watcher(agent, f"{FILES} files of {names} names")
    made, sizes = 0, []
    for _ in range(2):
        process = t.spawn("crowd", 300, "deploys", FILES // 2, A_SECOND, names, name=f"{where.name}/{t.comm}",
                          cgroup=t.cgroups[0])
        out, _ = process.communicate()
        check(int(out) == FILES // 2, f"only {out} programs")
        made += 1 + FILES // 2
        sizes.append(rss_kib(agent.pid))
    watcher.end()
    print(f"# {agent.call('status')['symbols']}", flush=True)
    check_all_told(agent, made)
    check_flat(*sizes, FILES // 2)
    watcher.judge()


@pytest.mark.timeout(700)
def test_redeployed(t):
    """A day of redeploys: 40 services, each put in place again all the time (100,000 files; 1,000 in the usual check)."""
    t.cgroup("home")
    deploy(t, SERVICES)


@pytest.mark.timeout(700)
@pytest.mark.skipif(not LONG, reason="the same at other paths; with --long")
def test_different_paths(t):
    """As many paths as files may lie on the file system at once."""
    t.cgroup("home")
    deploy(t, 10000)
