# SPDX-License-Identifier: BSD-2-Clause
# tests: ctl/events/* ctl/render/* ctl/view/* docs/lines.md docs/operations.md
"""Walks of people: from a question to the answer in at most three commands and 60 seconds, as they type them. The first,
from the package to a report, is in the machines (tests/vm/payload/checks/package.sh)."""
import contextlib
import gzip
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from harness import BUILD, COMMAND, Skip, check, rule, rules, until

pytestmark = [pytest.mark.parallel(4), pytest.mark.shares_kernel_side]
COMMANDS, SECONDS = 3, 60


class Walk:
    """What somebody types at a prompt, counted."""

    def __init__(self, t, agent=None):
        self.folder, self.began, self.typed = t.folder, time.monotonic(), []
        self.surroundings = {**os.environ, "PATH": f"{BUILD / 'ctl'}:{os.environ['PATH']}"}
        if agent:
            self.surroundings["TROCAR_SOCKET"] = str(agent.socket)

    def types(self, line, status=0, ctrl_c_after=None):
        self.typed.append(line)
        process = subprocess.Popen(f"exec {line}" if ctrl_c_after else line, shell=True, cwd=self.folder, env=self.surroundings,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ctrl_c_after:
            time.sleep(ctrl_c_after)
            process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=SECONDS)
        check(process.returncode == status, f"{line}: status {process.returncode}\n{said[-2000:]}")
        return said

    def arrives(self):
        took = time.monotonic() - self.began
        print(f"# {len(self.typed)} commands, {took:.1f} s: {self.typed}", flush=True)
        check(len(self.typed) <= COMMANDS and took <= SECONDS, f"{len(self.typed)} commands, {took:.1f} s: {self.typed}")


@contextlib.contextmanager
def busy_redis(t):
    """A Redis that works on large keys for whoever asks; its process."""
    if not shutil.which("redis-server"):
        raise Skip("redis-server is not installed")
    path = t.folder / "redis.sock"
    redis = t.run("redis-server", "--port", 0, "--unixsocket", path, "--save", "", "--dir", t.folder, cgroup=t.cgroup("redis"))
    until(path.exists, 10, "redis does not start")
    t.run("redis-benchmark", "-s", path, "-n", 100000000, "-q", "eval",
          "local s = 0 for i = 1, 100000 do s = s + i end return s", 0)
    yield redis


@pytest.mark.core
def test_profile_of_a_running_server(t):
    """What does it do? Its number, some seconds, Ctrl-C: the functions."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    with busy_redis(t) as redis:
        walk = Walk(t, agent)
        said = walk.types(f"trocar profile {redis.pid} --report --full", ctrl_c_after=3)
        check("redis-server" in said and "call paths" in said, said[-3000:])
        walk.arrives()


@pytest.mark.core
def test_rotated_and_compressed(t):
    """Yesterday's stall, in a log that was rotated and compressed meanwhile: one command shows it whole."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup("a")
    t.spawn("burn_cpu", 60, name="busy", cgroup=group)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 1000})["session"]
    verdict = agent.wait("session.end", session=session)["verdict"]
    lines = list(agent.raw)
    first, second = len(lines) // 3, 2 * len(lines) // 3
    (t.folder / "trocar.jsonl.2.gz").write_bytes(gzip.compress(b"".join(lines[:first])))
    (t.folder / "trocar.jsonl.1").write_bytes(b"".join(lines[first:second]))
    subprocess.run(["zstd", "-q", "--rm", t.folder / "trocar.jsonl.1"], check=True)
    (t.folder / "trocar.jsonl").write_bytes(b"".join(lines[second:]))
    walk = Walk(t)
    said = walk.types("trocar report trocar.jsonl*")
    check(f"session {session}" in said and f"quality: {verdict}" in said and "spin_on_checkout_total" in said, said[:3000])
    walk.arrives()


@pytest.mark.core
def test_wrong_rules_in_ci(t):
    """A pull request with a wrong rules file: the check names the place, and takes it when that is right. No agent."""
    wrong = '{"version": 1,\n "rules": [\n  {"name": "shop", "match": {"comm": "nginx*"},\n   "when": [{"pressure": "cpuu", "some_ms": 100}]}]}\n'
    path = t.folder / "rules.json"
    path.write_text(wrong)
    walk = Walk(t)
    said = walk.types("trocar rules check --strict rules.json", status=1)
    check("rules.json:4:" in said and "/rules/0/when/0/pressure" in said, said)
    path.write_text(wrong.replace("cpuu", "cpu"))
    said = walk.types("trocar rules check --strict rules.json", status=1)
    check("rules.json:3:" in said and '"comm_prefix": "nginx"' in said, said)
    path.write_text(wrong.replace("cpuu", "cpu").replace('"comm": "nginx*"', '"comm_prefix": "nginx"'))
    walk.types("trocar rules check --strict rules.json")
    walk.arrives()


@pytest.mark.core
def test_renamed_service(t):
    """Why does it not trigger? The service has another name since its last version: the check says which."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup("shop")
    t.spawn("burn_cpu", 60, name="checkout-v2", cgroup=group)
    old = rules(rule("checkout", comm="checkout-v1", when=[{"pressure": "cpu", "some_ms": 100}]))
    (t.folder / "rules.json").write_text(json.dumps(old))
    walk = Walk(t, agent)
    said = walk.types("trocar rules check rules.json")
    check('"checkout" matches no process now' in said and 'did you mean "comm": "checkout-v2"?' in said, said)
    walk.types("sed -i s/checkout-v1/checkout-v2/ rules.json")
    walk.types("trocar rules set rules.json")
    walk.arrives()
    agent.wait("watch.start", cgroup=group.path)
