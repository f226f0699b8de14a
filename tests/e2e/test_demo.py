# SPDX-License-Identifier: BSD-2-Clause
"""The first door: ./run --demo as an operator runs it, to its end and cut short."""
import json
import os
import pathlib
import pwd
import signal
import subprocess
import time

from harness import ROOT, SCHEMAS, Failure, cgroup2_mount, check, mounts, until
from test_sessions import heaviest

HOT = {"checkout": ("cpu", "spin_on_checkout_total"), "cache": ("memory", "reread_working_set"),
       "journal": ("io", "checksum_block")}


def users():
    """Users of ours, without those of other demos that run now."""
    return {u.pw_name for u in pwd.getpwall() if u.pw_name == "trocar"}


def left_behind(number):
    """What a demo of this process number left."""
    name = f"trocar-demo.{number}"
    found = [str(p) for p in (pathlib.Path("/run") / name, pathlib.Path("/var/tmp") / name)
             if p.exists()]
    found += [m[1] for m in mounts() if name in m[1]]
    found += [f"user {u.pw_name}" for u in pwd.getpwall() if u.pw_name == f"trocar-demo-{number}"]
    for mount in {m[1] for m in mounts() if m[2] in ("cgroup", "cgroup2")}:
        found += [str(p) for p in pathlib.Path(mount).glob(f"{name}*")]
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if name in (folder / "cmdline").read_text() or name in os.readlink(folder / "cwd"):
                found.append(f"process {folder.name}")
        except OSError:
            continue
    return found


def start(*words):
    return subprocess.Popen([str(ROOT / "run"), "--demo", *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def finish(process, seconds):
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=30)
        raise Failure(f"./run --demo took more than {seconds} s") from None


def test_demo(t):
    """cpu, memory and io: pressure, session, stacks before and during, hot function, account."""
    before = users()
    began = time.monotonic()
    process = start()
    out, words = finish(process, 180)
    check(process.returncode == 0, f"status {process.returncode}\n{words.decode()[-3000:]}")
    lines = out.splitlines(keepends=True)
    faults = [fault for line in lines for fault in SCHEMAS.line_faults(line)]
    check(not faults, "\n".join(faults[:5]))
    events = [json.loads(line) for line in lines]
    me = events[0]["self"]
    check(events[0]["type"] == "agent.start" and me["cap_eff"] == "0" * 16 and me["seccomp"] == 2 and
          me["no_new_privs"] == 1, f"{events[0]}")
    check(events[-1]["type"] == "agent.stop", f"{events[-1]['type']}")
    for rule, (resource, hot) in HOT.items():
        mine = [e for e in events if e.get("rule") == rule]
        for kind in ("process.match", "pressure", "session.start", "session.end"):
            check(any(e["type"] == kind for e in mine), f"{rule}: no {kind}")
        end = next(e for e in mine if e["type"] == "session.end")
        cause = next(e for e in mine if e["type"] == "session.start")["reason"]["pressure"]
        check(cause["resource"] == resource, f"{rule}: caused by {cause}")
        check(any(e["type"] == "watch.start" and e["cgroup"] == end["cgroup"] for e in events),
              f"{rule}: no watch.start")
        stacks = [e for e in mine if e["type"] == "stack" and e["session"] == end["session"]]
        for phase in ("before", "during"):
            check(heaviest(stacks, phase) == hot, f"{rule} {phase}: {heaviest(stacks, phase)}")
    check(not left_behind(process.pid), f"left behind: {left_behind(process.pid)}")
    check(users() == before, "the user trocar is not as it was")
    check(time.monotonic() - began < 150, f"{time.monotonic() - began:.0f} s")


test_demo.company = 3


def test_demo_cut_short(t):
    """Ctrl-C in the middle of the demo leaves nothing."""
    before = users()
    process = start()
    name = f"trocar-demo.{process.pid}"
    until(lambda: process.poll() is not None or (cgroup2_mount() / f"{name}-cpu").exists(), 120,
          "the demo did not begin")
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, words = finish(process, 40)
    check(process.returncode == 130, f"status {process.returncode}\n{words.decode()[-2000:]}")
    check(not left_behind(process.pid), f"left behind: {left_behind(process.pid)}")
    check(users() == before, "the user trocar is not as it was")


def test_run_for_some_seconds(t):
    """./run --seconds with the common rules starts, and ends by itself with nothing left."""
    process = subprocess.Popen([str(ROOT / "run"), "--seconds", "3"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    out, words = finish(process, 120)
    check(process.returncode == 0, f"status {process.returncode}\n{words.decode()[-3000:]}")
    kinds = [json.loads(line)["type"] for line in out.splitlines()]
    check(kinds[:1] == ["agent.start"] and kinds[-1:] == ["agent.stop"] and "rules.applied" in kinds,
          f"{kinds}")
    check(not left_behind(process.pid), f"left behind: {left_behind(process.pid)}")
