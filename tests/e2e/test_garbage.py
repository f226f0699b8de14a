# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/evidence/cpu/garbage*
"""Runtimes that begin to collect much garbage: the finding says so, and whose it is; of one that computes it does not."""
import os
import subprocess
import time

import pytest

from harness import ROOT, check, check_figure, command, rule, rules
from programs import need, start

SOURCES = ROOT / "tests" / "workloads" / "garbage"
CALM, ALL = 12, 40  # seconds of the programs' lives


def golang(t, group):
    need("go")
    environment = {"GOCACHE": str(t.folder / "cache"), **os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0", "GOFLAGS": "-trimpath"}
    program = t.folder / "garbage"
    subprocess.run(["go", "build", "-o", program, SOURCES / "garbage.go"], check=True, env=environment, timeout=180)
    return start(t, group, program, CALM, ALL)


def java(t, group, *flags):
    need("java", "javac")
    command("javac", "-d", t.folder, SOURCES / "Garbage.java", seconds=120)
    return start(t, group, "java", *flags, "-cp", t.folder, "Garbage", CALM, ALL)


def serial(t, group):
    return java(t, group, "-XX:+UseSerialGC", "-Xmx80m")


def g1(t, group):
    return java(t, group, "-XX:+UseG1GC", "-Xmx80m")


@pytest.mark.parallel(2)
@pytest.mark.parametrize("begin, runtime", [(golang, "Go"), (serial, "the JVM"), (g1, "the JVM")],
                         ids=["go", "serial", "g1"])
def test_garbage(t, begin, runtime):
    agent = t.agent(rules(rule("own", cgroup=f"/{t.name}", pre_ms=5000, cooldown_ms=0)), broker=True)
    group = t.cgroup("own")
    begin(t, group)
    began = time.monotonic()
    agent.wait("watch.start", cgroup=group.path)

    def asked(seconds):
        """The end of a session that begins when the program is so old, and what it finds of garbage."""
        time.sleep(max(0, began + seconds - time.monotonic()))
        session = agent.call("session.start", {"rule": "own", "during_ms": 2000})["session"]
        end = agent.wait("session.end", session=session, seconds=20)
        return end, [f for f in end["findings"] if f["cause"] == "garbage"]
    end, found = asked(5)
    check(not found, f"it computes: {end['findings']}")
    end, found = asked(CALM + 3)
    check_figure(found, f"no finding: {end['findings']} {end['top']}", t.load)
    check(f"collector of {runtime} had" in found[0]["says"], f"{found}")
