# SPDX-License-Identifier: BSD-2-Clause
# tests: ctl/client/profile* ctl/client/own_agent* ctl/client/keeper* ctl/client/unit_cgroup* ctl/render/folded*
"""trocar profile: captured now, followed over the control socket, printed as folded stacks."""
import glob
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from harness import COMMAND, CONSUMER, LOADER, RpcError, Skip, cgroup2_mount, check, check_figure, command, rule, rules, until
from test_control import as_user

pytestmark = pytest.mark.shares_kernel_side


def folded(text):
    """{stack: samples} of folded lines."""
    found = {}
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        found[stack] = int(count)
    return found


@pytest.mark.parallel(3)
@pytest.mark.core
def test_profile_a_process(t):
    """Only the process asked for, its hot function, about as many samples as its CPU time calls for."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup("a")
    busy, other = (t.spawn("burn_cpu", 60, name=n, cgroup=group) for n in ("busy", "other"))
    done = agent.trocar("profile", busy.pid, 2)
    said, stacks = done.stderr, folded(done.stdout)
    check(stacks and all(s.startswith("busy;") for s in stacks), f"not only its stacks: {stacks}")
    hot = sum(n for s, n in stacks.items() if "spin_on_checkout_total" in s)
    samples = sum(stacks.values())
    check(hot > 0.8 * samples, f"{hot} of {samples} in the hot function")
    check(f", {samples} samples of the process: " in said, said)
    end = agent.wait("session.end")
    check(said.startswith(f"session {end['session']}, "), said)
    # The same lines went to the output.
    lines = [e for e in agent.stacks(end["session"]) if e["pid"] == busy.pid and e["phase"] == "during" and
             e["signal"] == "oncpu"]
    check(sum(e["count"] for e in lines) == samples, "the output has other samples")
    t.end(other)


@pytest.mark.parallel(3)
@pytest.mark.core
def test_profile_a_cgroup(t):
    """All of a cgroup, by process."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup("a")
    pids = [t.spawn("burn_cpu", 60, name="busy", cgroup=group).pid for _ in range(2)]
    out = agent.trocar("profile", "--cgroup", group.path, 1, "--by", "pid").stdout
    check({s.split(";")[0] for s in folded(out)} == {f"pid {p}" for p in pids}, out)
    for path in (group.folder, group.path[1:] + "/"):
        done = agent.trocar("profile", "--cgroup", path, 1)
        check(done.stdout and f"--cgroup {path} is the cgroup {group.path}" in done.stderr, f"{path}: {done}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_profile_refused(t):
    """What cannot be is said in one line, at once."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    name = f"w{os.getpid()}-{t.comm}"[:15]
    waiter = t.spawn("burn_cpu", 60, name=name)
    before = set(os.listdir("/proc"))
    began = time.monotonic()
    for words, status, part in ((("4194303", "5"), 1, "there is no process 4194303"), (("x-is-none", "5"), 2, "no process has this name"),
                                (("--", "x-is-none"), 1, "x-is-none: there is no such command"),
                                ((name, "5"), 2, f"runs as PID {waiter.pid}: trocar profile {waiter.pid}, or"),
                                ((str(os.getpid()), "61"), 2, "SECONDS from 1 to 60"),
                                ((str(os.getpid()), "5", "6"), 2, "usage: trocar profile PID [SECONDS]"),
                                (("--cgroup", "/x-is-none", "5"), 1, "there is no cgroup /x-is-none"),
                                (("--", "/etc/passwd"), 1, "/etc/passwd: is no program"), (("--", "/tmp"), 1, "/tmp: is no program"),
                                ((), 2, "usage: trocar profile PID [SECONDS]"),
                                ((str(os.getpid()), "5", "--svg", "--report"), 2, "want one of")):
        said = agent.trocar("profile", *words, expect=status).stderr
        check(part in said, f"{words}: {said}")
    check_figure(time.monotonic() - began < 5, "it took long", t.load)
    running = [pid for pid in set(os.listdir("/proc")) - before if name.encode() in command_line(pid)]
    check(not running, f"a program was started: {running}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_profile_of_what_cannot_run(t):
    """A program that the kernel does not start is said, and is no success; its cgroup goes."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    script = t.folder / "script"
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o755)
    said = agent.trocar("profile", "--", script, expect=1).stderr
    check(f"{script}: No such file or directory" in said, said)


@pytest.mark.parallel(3)
@pytest.mark.core
def test_profile_that_goes(t):
    """A terminal that is closed, and a command that is killed, leave no session behind for which others would wait."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    busy = t.spawn("burn_cpu", 60, name="busy", cgroup=t.cgroup("a"))
    for number in (signal.SIGHUP, signal.SIGKILL):
        seen = len(agent.events)
        process = subprocess.Popen([COMMAND, "profile", "--socket", agent.socket, str(busy.pid)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        session = agent.wait("session.start", since=seen)["session"]
        time.sleep(0.5)
        process.send_signal(number)
        process.wait(timeout=30)
        end = agent.wait("session.end", seconds=10, session=session)
        check(end["duration_ms"] < 20000 and end["stopped"]["pid"] == process.pid, f"{number}: {end}")


@pytest.mark.parallel(3)
def test_profile_until_ctrl_c(t):
    """Ctrl-C ends the session, and what it has is printed, in each form; without it the session runs its time."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    busy = t.spawn("burn_cpu", 60, name="busy", cgroup=t.cgroup("a"))
    forms = {"--svg": b"<svg ", "--pprof": b"\x1f\x8b", "--report": b"captured on request", "--jsonl": b'"type":"session.end"', None: b"busy;"}
    for form, part in forms.items():
        words, seen = ["profile", "--socket", agent.socket, str(busy.pid), *([form] if form else [])], len(agent.events)
        process = subprocess.Popen([COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        session = agent.wait("session.start", since=seen)["session"]
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=30)
        end = agent.wait("session.end", seconds=10, session=session)
        check(process.returncode == 0 and part in out, f"{form}: {process.returncode} {said} {out[:200]}")
        check(end["duration_ms"] < 10000 and end["stopped"]["uid"] == 0, f"{end}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_profile_a_command(t):
    """A command is captured from its first instruction to its end, with its children; what it prints is not among the
    stacks, and its cgroup goes. Who has no agent, or no right to make a cgroup, reads why, and nothing is run."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    burn, mark = t.binary("burn_cpu", "burner"), t.folder / "mark"
    done = agent.trocar("profile", "--", "sh", "-c", f"echo said; {burn} 2 & wait; echo > {mark}")
    stacks = folded(done.stdout)
    check(any(s.startswith("burner;") and "spin_on_checkout_total" in s for s in stacks), f"{stacks}")
    check("said" in done.stderr and mark.exists(), done.stderr)
    no_cgroup_left()
    for words, status in ((("false",), 1), (("sh", "-c", "exit 7"), 7), (("sh", "-c", "kill -TERM $$"), 143)):
        agent.trocar("profile", "--", *words, expect=status)
    # What this command's own child waited for before it became the command is not the command's.
    report = agent.trocar("profile", "--report", "--full", "--", "sleep", "0.5").stdout
    told = [word for word in ("for a pipe", "profile_call", "nanosleep") if word in report]
    check(told == ["nanosleep"], f"{told}: {report}")
    mark.unlink()
    # Ctrl-C reaches all three processes.
    seen = len(agent.events)
    process = subprocess.Popen([COMMAND, "profile", "--socket", agent.socket, "--", burn, "60"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    agent.wait("session.start", since=seen)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=30)
    check(process.returncode == 0 and b"spin_on_checkout_total" in out, f"{process.returncode} {said} {out[:300]}")
    for words, status in ((["--socket", t.folder / "none"], 3), (["--socket", agent.socket, "--svg", "--report"], 2)):
        done = command(COMMAND, "profile", *words, "--", "touch", mark, expect=status)
        check(not mark.exists() and done.stderr.count("\n") == 1, f"{words}: {done}")
    no_cgroup_left()
    done = subprocess.run([COMMAND, "profile", "--socket", agent.socket, "--", "touch", mark], user=64999, group=64999,
                          extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 1 and "run it as root" in done.stderr and not mark.exists(), f"{done}")


@pytest.mark.core
def test_symbols_out_of_reach(t):
    """`profile` passes the program's folder on: one below /root, which the consumer cannot enter, is said and skipped."""
    closed = t.folder / "closed"
    (closed / "bin").mkdir(parents=True)
    closed.chmod(0o700)
    agent = t.agent(rules(rule("api", comm=t.comm)), arguments=("--symbols-path", f"{closed}/bin:{t.folder}/is-none"), own=True)
    said = [line for line in agent.stderr().splitlines() if "--symbols-path" in line]
    check(len(said) == 2 and f"{closed}/bin: Permission denied" in said[0] and "/is-none: No such file" in said[1], f"{said}")


def no_cgroup_left():
    """Those of other tests, which may run beside this one, go as soon as their commands end."""
    until(lambda: not list(cgroup2_mount().glob("trocar-profile-*")), 20, "a cgroup of a command is left")


def own_agent(*words, expect=0, **environment):
    """profile where no agent runs: it starts one."""
    if os.path.exists("/run/trocar/control.sock"):
        raise Skip("an agent runs on this machine")
    done = subprocess.run([str(w) for w in (COMMAND, "profile", *words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=90, env={**os.environ, **OWN, **environment})
    check(done.returncode == expect, f"{words}: {done}")
    return done


def left_over():
    """What an agent of profile's own leaves: folders with its pins, processes whose command line names them."""
    return [*glob.glob("/run/trocar-profile.*"),
            *(pid for pid in filter(str.isdigit, os.listdir("/proc")) if b"/run/trocar-profile." in command_line(pid))]


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


OWN = {"TROCAR_LOADER": str(LOADER), "TROCAR_CONSUMER": str(CONSUMER)}


@pytest.mark.parallel(3)
def test_profile_without_an_agent(t):
    """Root has one for the time of the capture, whose consumer is a user that nobody else is; what could not be
    started says why. Nothing is left, also when the command is killed."""
    group = t.cgroup("a")
    busy = t.spawn("burn_cpu", 120, name="busy", cgroup=group)
    done = own_agent(busy.pid, 2)
    stacks = folded(done.stdout)
    check("no agent runs" in done.stderr and not left_over(), f"{done.stderr} {left_over()}")
    hot = sum(n for s, n in stacks.items() if "spin_on_checkout_total" in s)
    check(hot > 0.8 * sum(stacks.values()), f"{stacks}")
    done = own_agent("--report", "--", t.binary("burn_cpu", "burner"), "2")
    check("quality: complete" in done.stdout and "spin_on_checkout_total" in done.stdout, done.stdout)
    check(not left_over(), f"{left_over()}")
    no_cgroup_left()
    process = subprocess.Popen([COMMAND, "profile", str(busy.pid)], stderr=subprocess.DEVNULL, env={**os.environ, **OWN})
    until(lambda: glob.glob(f"/run/trocar-profile.{process.pid}/control/*"), 30, "no agent was started")
    consumer = next(pid for pid in filter(str.isdigit, os.listdir("/proc")) if b"trocar-consumer" in command_line(pid)
                    and f".{process.pid}/".encode() in command_line(pid))
    status = pathlib.Path(f"/proc/{consumer}/status").read_text()
    uids = set(re.search(r"^Uid:(.*)$", status, re.M)[1].split())
    check(len(uids) == 1 and 61184 <= int(*uids) <= 65519 and re.search(r"^CapEff:\s0+$", status, re.M), status)
    process.kill()
    process.wait()
    until(lambda: not left_over(), 30, lambda: f"left behind: {left_over()}")
    check("install the package trocar" in own_agent(busy.pid, 1, expect=1, TROCAR_CONSUMER="/none").stderr, "no reason")
    check("trocar-loader: " in own_agent(busy.pid, 1, expect=1, TROCAR_CONSUMER="/bin/false").stderr, "no words of theirs")
    check(not left_over(), f"{left_over()}")
    own_agent(busy.pid, 1, expect=3, TROCAR_SOCKET="/none")
    done = subprocess.run([COMMAND, "profile", str(busy.pid)], user=64999, group=64999, extra_groups=[], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **OWN})
    check(done.returncode == 3 and "as root it starts an agent" in done.stderr, f"{done}")


TAKEN_OVER = r"""#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" != --user ] || user=$2; shift; done
tr '\0' '\n' </proc/self/environ >"$0.environ" # as root yet: the folder is root's
exec setpriv --reuid "$user" --regid "$user" --clear-groups sh -c '
	printf "\033]0;x\007\033[2J\033]52;c;cm0=\007\302\233\342\200\256 fin\n" >&2
	head -c 3000000 /dev/zero | tr "\0" x >&2
	sleep 0.3 # the pipe was full
	printf "\n\033]0;x\007\033[2J\033]52;c;cm0=\007\302\233\342\200\256 fin\n" >&2
	exit 1'
"""


@pytest.mark.parallel(3)
@pytest.mark.core
def test_words_of_a_taken_over_consumer(t):
    """What an agent of profile's own says comes to root's terminal tame and in bounds, and it knows nothing of root's
    shell."""
    stand_in = t.folder / "consumer"
    stand_in.write_text(TAKEN_OVER)
    stand_in.chmod(0o755)
    done = subprocess.run([COMMAND, "profile", str(os.getpid()), "1"], stdin=subprocess.DEVNULL, capture_output=True, timeout=90,
                          env={**os.environ, **OWN, "TROCAR_CONSUMER": str(stand_in), "SECRET_TOKEN": "x"})
    check(done.returncode == 1 and b" failed:" in done.stderr, f"{done.returncode} {done.stderr[:300]}")
    check(not re.search(rb"[\0-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae", done.stderr), done.stderr[-300:])
    check(rb"\x1b]52" in done.stderr and len(done.stderr) <= 64 << 10, f"{len(done.stderr)} {done.stderr[-300:]}")
    environment = stand_in.with_name("consumer.environ").read_text().split()
    check({row.partition("=")[0] for row in environment} <= {"PATH", "LANG", "TERM", "PWD"}, f"{environment}")
    check(not left_over(), f"{left_over()}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_profile_a_unit(t):
    """By the name of its cgroup, which systemd gives after the unit; one that is there twice is refused, with both."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    shop, cart, part = (t.cgroup(name) for name in ("shop.service", "cart.service", "part.slice"))
    t.spawn("burn_cpu", 60, name="busy", cgroup=shop)
    for unit in (f"{t.name}-shop", f"{t.name}-shop.service"):
        out = agent.trocar("profile", "--unit", unit, 1).stdout
        check("spin_on_checkout_total" in out, out)
    check(f"cgroup {shop.path}" in agent.trocar("capture", "--unit", f"{t.name}-shop", "--during-ms", 100).stdout, "not its cgroup")
    said = agent.trocar("profile", "--unit", f"{t.name}-none", 1, expect=1).stderr
    check(f"no unit {t.name}-none.service runs here" in said, said)
    # One of that name below another service is not the system's; one in a slice may be.
    again = cart.folder / f"{t.name}-shop.service"
    again.mkdir()
    said = agent.trocar("capture", "--unit", f"{t.name}-shop", "--during-ms", 100, expect=None).stderr
    again.rmdir()
    check(f"{t.name}-shop.service is the cgroup {shop.path}\n" in said, said)
    again = part.folder / f"{t.name}-shop.service"
    again.mkdir()
    said = agent.trocar("profile", "--unit", f"{t.name}-shop", 1, expect=1).stderr
    again.rmdir()
    check("is the cgroup" not in said and "more than one unit" in said and said.count(f"{t.name}-shop.service") == 3, said)
    agent.trocar("profile", "--unit", "a", "--cgroup", "/b", 1, expect=2)


@pytest.mark.parallel(4)
def test_lines_are_for_admins(t):
    """Who may only look gets no lines. A subscription is its connection's alone, ends with it, or when nobody asks
    for it, and they are few: who fails blocks nobody."""
    agent = t.agent(rules(rule("api", comm=t.comm, cgroup=f"/{t.name}")))
    for method, params in (("subscribe", None), ("lines", {"subscription": 1})):
        answer = as_user(agent, "daemon", method, params)
        check(answer.get("code") == -32001, f"{method}: {answer}")
    connections = [agent.connect() for _ in range(4)]
    ids = [agent.call("subscribe", connection=c)["subscription"] for c in connections]
    check(len(set(ids)) == 4, f"{ids}")
    agent.refused(-32003, "subscribe")
    agent.call("rules.set", {"text": '{"version": 1, "rules": []}'})
    for number, connection in zip(ids, connections):
        answer = agent.call("lines", {"subscription": number}, connection)
        check([e["type"] for e in answer["lines"]] == ["rules.applied"], f"{answer}")
        check(answer["omitted"] == 0 and not answer["more"], f"{answer}")
    agent.refused(-32004, "lines", {"subscription": ids[0]})
    connections[1].close()

    def place():
        """A fifth one, as soon as the agent has seen that one of four is closed."""
        try:
            return agent.call("subscribe")["subscription"]
        except RpcError as error:
            check(error.code == -32003, f"{error}")
            return None
    until(place, 3, "an ended connection holds its place")
    for pid in (4194301, 4194302, 4194303, 4194301, 4194302):
        check("no process" in agent.trocar("profile", pid, 1, expect=1).stderr, "what failed has another reason")
    time.sleep(11)
    agent.call("rules.set", {"text": '{"version": 1, "rules": []}'})
    try:
        agent.call("lines", {"subscription": ids[0]}, connections[0])
    except RpcError as error:
        check(error.code == -32004, f"{error}")
    else:
        check(False, "nobody asked for 11 s, and it is still there")
