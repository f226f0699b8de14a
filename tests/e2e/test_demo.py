# SPDX-License-Identifier: BSD-2-Clause
# tests: run docs/examples/* systemd/*
"""The first door: ./run --demo as an operator runs it, to its end and cut short."""
import json
import os
import pathlib
import pty
import pwd
import re
import signal
import subprocess
import time

import pytest

from harness import ROOT, SCHEMAS, Failure, cgroup2_mount, check, check_figure, command, mounts, until
from test_sessions import heaviest

HOT = {"checkout": ("cpu", "spin_on_checkout_total"), "cache": ("memory", "reread_working_set"),
       "journal": ("io", "checksum_block")}


def users():
    """Users of ours, without those of other demos that run now."""
    return {u.pw_name for u in pwd.getpwall() if u.pw_name == "trocar"}


def folders(number):
    """The folders that a run of this process number has made."""
    return [str(p) for top in ("/run", "/var/tmp") for p in pathlib.Path(top).glob(f"trocar-demo.{number}*")]


# Lists what a stranger can read, or can walk into, of the paths that he is told.
STRANGER = """
import os, sys
os.setgroups([]); os.setgid(64999); os.setuid(64999)
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        print(path)
    except OSError as error:
        if error.errno != 13:
            print(path, error)
"""


def readable_by_all(number):
    """What of a run's folders others can read, or could if its folder let them; there are a FIFO and a file of
    event lines among it."""
    paths = folders(number)
    for folder in list(paths):
        paths += [str(p) for p in pathlib.Path(folder).rglob("*") if "/bpf/" not in str(p) and not p.is_socket()]
    names = {pathlib.Path(p).name for p in paths}
    check({"events.jsonl", "lines", "rules.json"} <= names, f"not the files of a demo: {names}")
    found = subprocess.run(["python3", "-c", STRANGER, *paths], stdout=subprocess.PIPE, check=True,
                           timeout=30).stdout.decode().splitlines()
    return found + [f"{p}: mode {os.lstat(p).st_mode & 0o777:o}" for p in paths if os.lstat(p).st_mode & 0o007]


def left_behind(number):
    """What a demo of this process number left."""
    name = f"trocar-demo.{number}"
    found = folders(number)
    found += [m[1] for m in mounts() if name in m[1]]
    found += [f"user {u.pw_name}" for u in pwd.getpwall() if u.pw_name == f"trocar-demo-{number}"]
    for mount in {m[1] for m in mounts() if m[2] in ("cgroup", "cgroup2")}:
        found += [str(p) for p in pathlib.Path(mount).glob(f"{name}*")]
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if name.encode() in (folder / "cmdline").read_bytes() or name in os.readlink(folder / "cwd"):
                found.append(f"process {folder.name}")
        except OSError:
            continue
    return found


def who_knows(variable, name):
    """Our processes of a run that have this in their environment."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if name in words and re.search(r"/trocar-(consumer|loader)\b", words) and variable.encode() in (folder / "environ").read_bytes():
                found.append(words)
        except OSError:
            continue
    return found


def start(*words, **more):
    return subprocess.Popen([str(ROOT / "run"), "--demo", *words], stdin=subprocess.DEVNULL, env={**os.environ, **more},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def finish(process, seconds):
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=30)
        raise Failure(f"./run --demo took more than {seconds} s") from None


@pytest.mark.parallel(3)
@pytest.mark.core
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
        stacks = [e for e in mine if e["type"] == "stack" and e["session"] == end["session"] and e["signal"] == "oncpu"]
        for phase in ("before", "during"):
            check(heaviest(stacks, phase) == hot, f"{rule} {phase}: {heaviest(stacks, phase)}")
    check(not left_behind(process.pid), f"left behind: {left_behind(process.pid)}")
    check(users() == before, "the user trocar is not as it was")
    check_figure(time.monotonic() - began < 150, f"{time.monotonic() - began:.0f} s", t.load)


def read_terminal(master):
    """All that was printed there, until nobody has it open any more."""
    said = b""
    while True:
        try:
            said += os.read(master, 65536)
        except OSError:
            return said.decode()


@pytest.mark.parallel(3)
def test_demo_story(t):
    """On a terminal the demo is twenty lines of what happens, a report, and three commands that work; what it keeps
    belongs to whoever called sudo."""
    master, slave = pty.openpty()
    home = t.folder / "home"
    home.mkdir()
    for module in ("json", "sys", "os", "encodings"):
        (home / f"{module}.py").write_text(f"open('{home}/was-here', 'w')\nraise SystemExit(1)\n")
        os.chown(home / f"{module}.py", 64999, 64999)
    os.chown(home, 64999, 64999)
    process = subprocess.Popen([str(ROOT / "run"), "--demo"], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               cwd=home, env={**os.environ, "SUDO_UID": "64999", "SUDO_GID": "64999"},
                               start_new_session=True)
    os.close(slave)
    text = read_terminal(master).replace("\r\n", "\n")
    check(process.wait(30) == 0, text[-3000:])
    check(not (home / "was-here").exists(), "root ran what lay in the current folder")
    shown = re.sub(r"\033\[[0-9;]*[mK]", "", text)
    before, report = shown.split("\n\n", 1)
    check('"type":' not in shown, "JSON on the terminal")
    check(len(before.splitlines()) <= 20, f"{len(before.splitlines())} lines before the report:\n{before}")
    check("checkout (complete): " in before and "spin_on_checkout_total" in report, shown)
    kept = home / "trocar-demo"
    check({p.name: p.stat().st_uid for p in kept.iterdir()} == {"lines.jsonl": 64999, "checkout.svg": 64999}, shown)
    check((kept / "checkout.svg").read_text().startswith("<?xml"), "no picture")
    commands = re.findall(r"^  (\S+/trocar .*)$", report, re.M)
    check(len(commands) == 2, f"{report}")
    for words in commands:
        done = subprocess.run(words.split(), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        check(done.returncode == 0 and done.stdout, f"{words}: {done}")
    check(not left_behind(process.pid), f"left behind: {left_behind(process.pid)}")


@pytest.mark.parallel(3)
def test_demo_cut_short(t):
    """Ctrl-C in the middle of the demo leaves nothing."""
    before = users()
    process = start(SECRET_TOKEN="of-root")
    name = f"trocar-demo.{process.pid}"
    until(lambda: process.poll() is not None or (cgroup2_mount() / f"{name}-cpu").exists(), 120,
          "the demo did not begin")
    time.sleep(1)
    readable = readable_by_all(process.pid)
    knowing = who_knows("SECRET_TOKEN=of-root", name)
    os.killpg(process.pid, signal.SIGINT)
    _, words = finish(process, 40)
    check(not readable, f"readable by everybody: {readable}")
    check(not knowing, f"they have root's environment: {knowing}")
    check(process.returncode == 130, f"status {process.returncode}\n{words.decode()[-2000:]}")
    check(not left_behind(process.pid), f"left behind: {left_behind(process.pid)}")
    check(users() == before, "the user trocar is not as it was")


@pytest.mark.parallel(3)
def test_demo_where_no_program_runs(t):
    """Where /var/tmp is mounted noexec the demo ends at once, with one line that says so."""
    if ROOT.is_relative_to("/var/tmp"):
        pytest.skip("the tree itself is in /var/tmp")
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o noexec tmpfs /var/tmp && exec "$0" --demo',
                           str(ROOT / "run")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=180, check=False)
    words = done.stderr.decode()
    check(done.returncode == 1 and "is it mounted noexec?" in words, f"status {done.returncode}\n{words}")
    check("Permission denied" not in words and "no session" not in words, words)


@pytest.mark.parallel(3)
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


@pytest.mark.parallel(3)
def test_names_that_are_taken(t):
    """Whoever makes ./run's name in /var/tmp before, as a folder of his own or as a link to one of root's,
    neither stops it nor has it write or remove there."""
    target = t.folder / "target"
    target.mkdir()
    (target / "events.jsonl").write_text("kept")
    for make in ('mkdir -m 0777 "$1" && echo kept >"$1/events.jsonl" && chown -R 64999 "$1"', 'ln -s "$2" "$1"'):
        words = f'set -- /var/tmp/trocar-demo.$$ "{target}"; {make}; exec "$0" --demo --seconds 3'
        # exec keeps the process number that is in the name
        process = subprocess.Popen(["bash", "-c", words, ROOT / "run"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        _, said = finish(process, 120)
        path = pathlib.Path("/var/tmp") / f"trocar-demo.{process.pid}"
        try:
            check(b"the consumer ran as" in said, f"it did not run: {said.decode()[-1500:]}")
            check(sorted(p.name for p in path.iterdir()) == ["events.jsonl"], f"{list(path.iterdir())}")
            check((path / "events.jsonl").read_text().strip() == "kept", "the file there was written")
        finally:
            command("rm", "-rf", path)
        check(not left_behind(process.pid), f"left behind: {left_behind(process.pid)}")
    check((target / "events.jsonl").read_text() == "kept", "the link was followed")
