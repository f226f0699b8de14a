# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/*.c loader/*.h loader/bpffs/* loader/preflight/* consumer/main.c consumer/agent/*
# tests: consumer/kernel/pinned_maps* shared/abi/abi.h shared/abi/pins.def policy/* consumer/telemetry/*
"""Load, confinement as the kernel tells it, totals, and unload."""
import collections
import json
import pathlib
import pwd
import re
import time

import pytest

from harness import CONSUMER, GROUP, LOADER, ROOT, USER, Skip, check, command, mounts, rule, rules

NONE = "0" * 16


@pytest.mark.parallel(4)
@pytest.mark.core
def test_load_as_in_a_pod(t):
    """The loader needs no more capabilities than its container in packaging/kubernetes has, where the bpffs is there."""
    manifest = (ROOT / "packaging" / "kubernetes" / "trocar.yaml").read_text()
    words = re.search(r"- name: loader.*?add: \[(.*?)\]", manifest, re.S)[1]
    few = ["setpriv", "--bounding-set", ",".join(["-all", *(f"+{word.lower()}" for word in re.findall(r"\w+", words))])]
    where = t.folder / "pins"
    where.mkdir(mode=0o755)
    command("mount", "-t", "bpf", "bpf", where)
    t.mounted.append(where)
    check("sys_admin" not in few[2] and "bpf" in few[2], f"{few}")
    command(*few, LOADER, "load", "--bpf-dir", where, "--group", GROUP, "--always", "oncpu", seconds=60)
    check((where / "abi").exists(), "nothing is pinned")
    command(*few, LOADER, "unload", "--keep-mount", "--bpf-dir", where, seconds=60)
    left = [path for path in where.iterdir() if path.suffix != ".debug"]  # the kernel's own
    check(not left, f"{left}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_lockdown_state(t):
    """agent.start says what the kernel says of every thread: nothing is left of privilege."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    me = agent.wait("agent.start")["self"]
    for key in ("cap_eff", "cap_prm", "cap_bnd", "cap_inh", "cap_amb"):
        check(me[key] == NONE, f"{key} is {me[key]}")
    check(me["seccomp"] == 2 and me["no_new_privs"] == 1 and me["dumpable"] is False, f"{me}")
    check(me["uid"] == pwd.getpwnam(USER).pw_uid, f"{me}")
    threads = list(pathlib.Path(f"/proc/{agent.pid}/task").iterdir())
    for thread in threads:
        state = dict(line.split(":\t", 1) for line in (thread / "status").read_text().splitlines()
                     if ":\t" in line)
        for key in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
            check(state[key] == NONE, f"{thread}: {key} {state[key]}")
        check(state["Seccomp"] == "2" and state["NoNewPrivs"] == "1", f"{thread}: {state['Seccomp']}")
        uids = set(state["Uid"].split())
        check(uids == {str(me["uid"])}, f"{thread}: uids {uids}")
        check(not set(state["Groups"].split()) & {"0"}, f"{thread}: groups {state['Groups']}")


@pytest.mark.parallel(4)
def test_threads(t):
    """The threads are those of the table in docs/architecture.md, by name and number."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    agent.wait("agent.start")
    found = collections.Counter((task / "comm").read_text().strip()
                                for task in pathlib.Path(f"/proc/{agent.pid}/task").iterdir())
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", (ROOT / "docs/architecture.md").read_text(), re.M)
    check(found == {name: int(number) for name, number in rows}, f"{found}, and the table has {rows}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_status_is_the_same_account(t):
    """status, agent.start and agent.stop tell one story."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    t.spawn("burn_cpu", 20, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 500})["session"]
    agent.wait("session.end", session=session)
    status = agent.call("status")
    check(status["self"] == agent.find("agent.start")[0]["self"], f"{status['self']}")
    check(status["pid"] == agent.pid and status["generation"] == 1 and status["rules"] == 1 and
          status["watches"] == 1 and status["processes"] == 1 and status["sessions_total"] == 1 and
          status["sessions_running"] == 0, f"{status}")
    check([s["session"] for s in agent.call("sessions")] == [session], "sessions")
    watch = agent.call("watches")[0]
    check(watch["cgroup"] == group.path and watch["cgroup_id"] == group.id and
          watch["sessions"] == 1 and watch["rules"] == ["api"], f"{watch}")
    agent.stop()
    stop = agent.find("agent.stop")[0]
    check(stop["totals"]["sessions"] == 1 and stop["totals"]["samples"] > 0, f"{stop}")
    written = stop["totals"]["lines"]  # what was said last may still be on its way
    check(len(agent.raw) - 3 <= written <= len(agent.raw), f"{stop} {len(agent.raw)}")
    reasons = {e["reason"] for e in agent.find("watch.stop")}
    check(reasons == {"agent_stop"}, f"{reasons}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_idle_without_matches(t):
    """With nothing watched the consumer hardly wakes."""
    agent = t.agent(rules(rule("api", comm="no-such-name")))
    time.sleep(1)

    def used():
        fields = pathlib.Path(f"/proc/{agent.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = used()
    time.sleep(3)
    check(used() - before <= 3, f"{used() - before} ticks of CPU in 3 idle seconds")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_end_in_a_session(t):
    """SIGTERM in a session ends it with its account first."""
    agent = t.agent(rules(rule("api", comm=t.comm)))
    group = t.cgroup()
    t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    agent.wait("watch.start", cgroup=group.path)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 30000})["session"]
    time.sleep(1)
    agent.stop()
    end = agent.find("session.end", session=session)
    check(len(end) == 1 and end[0]["duration_ms"] < 5000, f"{end}")
    check(agent.stacks(session), "its stacks are missing")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_load_twice_and_replace(t):
    """A second load says what is there with a status of its own; --replace swaps; unload is whole."""
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False)
    words = [LOADER, "load", "--bpf-dir", agent.bpf, "--group", GROUP, "--always", "oncpu"]
    again = command(*words, expect=None)
    check(again.returncode not in (0, 1, 2) and str(agent.bpf) in again.stderr + again.stdout,
          f"{again}")
    old = agent.kernel_side.ids
    command(*words, "--replace")
    agent.kernel_side.ids = agent.kernel_side.find_ids()
    check(agent.kernel_side.ids and not agent.kernel_side.ids & old, "the same objects after --replace")
    check(sum(m[1] == str(agent.bpf) for m in mounts()) == 1, "not one mount")
    agent.start()
    # A consumer that nothing watches, too, hears that nothing fills its maps any more: it ends, and can be started anew.
    command(*words, "--replace")
    agent.kernel_side.ids = agent.kernel_side.find_ids()
    check(agent.process.wait(10) == 1, f"status {agent.process.returncode}, not 1")
    check("was replaced or unloaded" in agent.stderr(), agent.stderr())
    agent.stop(expect=None)
    agent.start()


@pytest.mark.core
def test_unload_of_nothing(t):
    """unload says so when there was nothing."""
    done = command(LOADER, "unload", "--bpf-dir", t.folder / "none", expect=None)
    check(done.returncode == 0 and (done.stdout + done.stderr).strip(), f"{done}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_consumer_without_load(t):
    """One clear line and status 1 when nothing is loaded."""
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False)
    agent.unload()
    agent.start(wait=False)
    check(agent.process.wait(10) == 1, "not status 1")
    text = agent.stderr()
    agent.stop(expect=None)
    check(str(agent.bpf) in text and "trocar-loader load" in text, f"{text}")
    check(not agent.raw, f"lines without a load: {agent.raw}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_kernel_side_of_another_version(t):
    """A consumer refuses the pins of another version: status 4 and one line that names both."""
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False)
    pin = agent.bpf / "abi"
    header = json.loads(command("bpftool", "-j", "map", "dump", "pinned", pin).stdout)[0]
    value = [str(int(byte, 16)) for byte in header["value"]]
    value[8:12] = ["99", "0", "0", "0"]
    changed = command("bpftool", "map", "update", "pinned", pin, "key", "0", "0", "0", "0",
                      "value", *value, expect=None)
    if changed.returncode:
        raise Skip(f"the abi map cannot be changed: {changed.stderr.strip()}")
    agent.start(wait=False)
    check(agent.process.wait(10) == 4, f"status {agent.process.returncode}, not 4")
    text = agent.stderr()
    agent.stop(expect=None)
    check("99" in text and text.count("\n") <= 2, f"{text}")
    check(not agent.raw, f"lines from a consumer that refused: {agent.raw}")


@pytest.mark.core
def test_messages_name_what_they_are_about(t):
    """A socket's place that is taken, and a /proc that hides what is no process, are named."""
    agent = t.agent(rules(rule("api", comm=t.comm)), start=False)
    taken = t.folder / "taken"
    taken.write_text("")
    words = [str(CONSUMER), "--rules", str(agent.rules_file), "--bpf-dir", str(agent.bpf), "--group", "65534", "--user", "65534"]
    done = command(*words, "--socket", taken, expect=1)
    check(f"control socket {taken}: File exists" in done.stderr, done.stderr)
    done = command("unshare", "-m", "sh", "-c", 'mount -t proc -o subset=pid proc /proc && exec "$@"', "sh", *words, expect=1)
    check("boot_id" in done.stderr and "subset=pid" in done.stderr and "cgroup2" not in done.stderr, done.stderr)


@pytest.mark.core
def test_usage(t):
    """A wrong option is status 2, with a way to the right one on stderr."""
    for words in (["--no-such-option"], ["--rules"]):
        done = command(CONSUMER, *words, expect=2)
        check(re.search("--(rules|help)", done.stderr) and not done.stdout, f"{words}: {done}")
