# SPDX-License-Identifier: BSD-2-Clause
# tests: docs/man/* consumer/agent/options*
"""The commands under EXAMPLES of the man pages do what they say, with the paths of the test in place of a machine's."""
import json
import re
import shutil
import signal
import subprocess

import pytest

from harness import COMMAND, CONSUMER, GROUP, LOADER, ROOT, USER, check, command, rule, rules, until


def commands(page):
    """The lines of the page's example."""
    text = (ROOT / "docs" / "man" / page).read_text()
    block = re.search(r"^\.SH EXAMPLES.*?^\.RS\n(.*?)^\.RE", text, re.M | re.S)[1]
    return block.replace("\\-", "-").splitlines()


@pytest.mark.parallel(3)
@pytest.mark.core
def test_consumer(t):
    """Loaded, run and unloaded by hand, the agent gives sessions that are complete."""
    lines, bpf = t.folder / "log" / "events.jsonl", t.folder / "bpf"
    for folder in (lines.parent, t.folder / "control"):
        folder.mkdir()
        shutil.chown(folder, USER, GROUP)
    text = json.dumps(rules(rule("api", comm=t.comm, signals=["oncpu"])))
    (t.folder / "rules.json").write_text(text)
    socket = t.folder / "control" / "sock"
    mine = {"/usr/libexec/trocar/trocar-consumer": f"{CONSUMER} --bpf-dir {bpf} --user {USER} --group {GROUP} --socket {socket}",
            "trocar-loader load": f"{LOADER} load --bpf-dir {bpf} --group {GROUP}",
            "trocar-loader unload": f"{LOADER} unload --bpf-dir {bpf}",
            "/etc/trocar/rules.json": str(t.folder / "rules.json"), "/var/log/trocar/events.jsonl": str(lines)}
    load, consume, unload = commands("trocar-consumer.8")
    for theirs, ours in mine.items():
        load, consume, unload = (line.replace(theirs, ours) for line in (load, consume, unload))
    command(*load.split(), seconds=60)
    try:
        process = subprocess.Popen(consume.split(), stdin=subprocess.DEVNULL)
        t.processes.append(process)
        busy = t.spawn("burn_cpu", 60, cgroup=t.cgroup("a"))
        until(lambda: command(COMMAND, "status", "--socket", socket, expect=None).returncode == 0, 20, "no agent answers")
        done = command(COMMAND, "capture", "--socket", socket, "--pid", busy.pid, "--during-ms", 1000, "--wait", expect=None)
        check(done.returncode in (0, 5), done)  # 5: partial, as on a machine whose CPUs others use
        process.send_signal(signal.SIGINT)
        check(process.wait(20) == 0, "it did not end well")
    finally:
        command(*unload.split(), seconds=60)
    kinds = [json.loads(line)["type"] for line in lines.read_text().splitlines()]
    check("session.end" in kinds and kinds[-1] == "agent.stop" and not bpf.exists(), f"{kinds}")
