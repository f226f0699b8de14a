# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/facts/* consumer/answer/session_facts* consumer/watch/watch_facts*
"""What the kernel's own files say of a stall: throttling, limits, devices; and the cause that follows."""
import os
import pathlib
import re
import resource
import subprocess
import time

import pytest

import machine
from harness import COMMAND, Skip, check, check_figure, command, proved, rule, rules
from servers import Nginx, Service, Witness

pytestmark = pytest.mark.shares_kernel_side

CPU = {"pressure": "cpu", "some_ms": 300, "window_ms": 1000}


def read_cpu(group):
    """(time, nr_periods, nr_throttled, throttled seconds) of the cgroup with the quota, by cpu.stat itself."""
    folder = group.others[0] if group.others else group.folder
    stat = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    seconds = int(stat["throttled_time"]) / 1e9 if group.others else int(stat["throttled_usec"]) / 1e6
    return time.monotonic(), int(stat["nr_periods"]), int(stat["nr_throttled"]), seconds


@pytest.mark.parallel(2)
@pytest.mark.core
def test_cpu_quota_speaks_first(t):
    """A program burns CPU above its quota: the headline begins with the quota, in the numbers of cpu.stat."""
    agent = t.agent(rules(rule("api", comm=t.comm, when=[CPU], during_ms=2000, pre_ms=10000)))
    group = t.cgroup(quota=40)
    t.spawn("burn_cpu", 20, 2, 9, name=t.comm, cgroup=group)
    start = agent.wait("session.start", seconds=20, rule="api")
    begin = read_cpu(group)
    end = agent.wait("session.end", session=start["session"])
    took, periods, throttled, seconds = (b - a for a, b in zip(begin, read_cpu(group)))
    cpu = agent.find("facts", session=end["session"], source="cpu")[0]
    check_figure("before" in cpu["phases"] and cpu["phases"]["during"]["nr_throttled"] >= 15,
                 f"stalled for something else, or too early: {cpu}", t.load)
    before, onset, during = (cpu["phases"][phase] for phase in ("before", "onset", "during"))
    check(cpu["limits"] == {"quota_pct": 40.0, "period_us": 100000}, f"{cpu}")
    check(("from_cgroup" in cpu) == (cpu["from"] == "v1") and
          cpu.get("from_cgroup", group.path) == group.path, f"{cpu}")
    check(before["throttled_ms"] == 0, f"{cpu}")
    for said, counted in ((during["throttled_ms"] / 1000, seconds), (during["nr_throttled"], throttled),
                          (during["nr_periods"], periods)):
        check(abs(said / during["ms"] * 1000 * took - counted) <= 0.15 * counted + 1,
              f"{said} against {counted} in {took} s: {cpu}")
    said = re.fullmatch(r"CPU quota of 40 % used up: (\d+\.\d\d) s throttled in (\d+\.\d) s(, summed over CPUs)?",
                        proved(end))
    both = {key: onset[key] + during[key] for key in ("throttled_ms", "ms")}
    denser = max(both, during, key=lambda phase: phase["throttled_ms"] / phase["ms"])
    check(said and abs(float(said[1]) - denser["throttled_ms"] / 1000) < 0.02 and
          abs(float(said[2]) - denser["ms"] / 1000) < 0.11, f"{end['findings']}: {cpu}")
    check(end["headline"].startswith(proved(end) + "; ") and group.path in end["headline"], f"{end}")
    check(report_of(t, agent).startswith(proved(end) + "; "), "the report begins with something else")
    for verb in ("flamegraph", "folded", "pprof", "diff", "symbolize"):
        made = subprocess.run([COMMAND, verb, t.folder / "lines"], capture_output=True, check=False)
        check(made.returncode == 0 and made.stdout, f"{verb}: {made.returncode}, {made.stderr}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_descriptors_used_up(t):
    """Clients that stay hold all descriptors of nginx's worker: the first finding names the worker and its limit. It is
    likely only: no TCP connection waits to be accepted. With some descriptors left, also
    below a lower limit, it is no finding."""
    service = Service(t, "shop")
    nginx = Nginx(service, delay_s=0)
    nginx.get()
    worker = int(pathlib.Path(f"/proc/{nginx.process.pid}/task/{nginx.process.pid}/children").read_text().split()[0])
    if not os.stat(f"/proc/{worker}/fd").st_size:
        raise Skip("the kernel does not count open descriptors (Linux 6.2 does)")
    agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=1500)))
    agent.wait("watch.start", cgroup=service.path)
    limit = len(os.listdir(f"/proc/{worker}/fd")) + 40
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (limit, limit))
    ends, clients = [], [nginx.connect() for _ in range(4)]
    for more, cut in ((0, 0), (0, 5), (60, 0)):
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (limit - cut, limit))
        clients += [nginx.begin() for _ in range(more)]
        time.sleep(0.5)
        session = agent.trocar("capture", "--rule", "shop", "--wait", expect=None).stdout.split()[1]
        ends.append(agent.wait("session.end", session=session))
    for end in ends[:2]:
        check(all(f["cause"] != "files_limit" for f in end["findings"]), f"{end['findings']}")
    first = ends[2]["findings"][0]
    check(first["cause"] == "files_limit" and first["level"] == "likely", f"{ends[2]['findings']}")
    check(first["says"].startswith(f"all {limit} descriptors of nginx (process {worker}) are open"), f"{first}")
    check(first["says"] in ends[2]["headline"].split("; ")[0], ends[2]["headline"])
    line = agent.find("facts", session=ends[2]["session"], source="pids")[0]["phases"]["during"]
    check((line["files_pid"], line["files_open"], line["files_max"], line["files_comm"]) ==
          (worker, limit, limit, "nginx"), f"{line}")


def lift(group):
    """Takes the quota of the cgroup away, as an operator does who reads the headline."""
    for file, text in (("cpu.max", "max 100000"), ("cpu.cfs_quota_us", "-1")):
        for folder in (group.folder, *group.others):
            if (folder / file).exists():
                (folder / file).write_text(text)


def restart(t, group):
    """Removes the cgroup with its processes; makes one of the same name with another quota, and begins anew."""
    group.remove()
    t.cgroups.remove(group)
    again = t.cgroup(quota=150)
    t.spawn("burn_cpu", 5, 2, name=t.comm, cgroup=again)


ACTS = {"removed": lambda t, group: group.remove(), "lifted": lambda t, group: lift(group), "restarted": restart}


@pytest.mark.parallel(2)
@pytest.mark.parametrize("act", [pytest.param("removed", marks=pytest.mark.core), "lifted", "restarted"])
def test_cpu_quota_that_is_gone(t, act):
    """1.2 s into the session the service is stopped, restarted, or its quota lifted: the quota is named all the same."""
    agent = t.agent(rules(rule("api", comm=t.comm, when=[CPU], during_ms=3000, pre_ms=10000)))
    group = t.cgroup(quota=20)
    t.spawn("burn_cpu", 20, 2, 9, name=t.comm, cgroup=group)
    start = agent.wait("session.start", seconds=20, rule="api")
    time.sleep(1.2)
    ACTS[act](t, group)
    end = agent.wait("session.end", session=start["session"])
    cpu = agent.find("facts", session=end["session"], source="cpu")[0]
    check_figure("before" in cpu["phases"] and cpu["phases"]["during"]["nr_throttled"] >= 3,
                 f"stalled for something else, or too early: {cpu}", t.load)
    # The session ends with its last process; the directory may be there a moment longer.
    gone = any(row["file"] == "cpu.stat" and "removed" in row["reason"] for row in cpu.get("missing", []))
    became = {"lifted": "; it was lifted during the capture"}.get(act, "; its cgroup was removed during the capture" * gone)
    check(proved(end).startswith("CPU quota of 20 % used up: ") and proved(end).endswith(became) and
          (gone and act != "lifted") == ("removed" in proved(end)), f"{end['findings']}: {cpu}")
    check(cpu["limits"]["quota_pct"] == 20, f"{cpu}")
    check(cpu.get("limits_end", {}).get("quota_pct", 0) == (None if act == "lifted" else 0), f"{cpu}")


def report_of(t, agent):
    lines = t.folder / "lines"
    lines.write_bytes(b"".join(agent.raw))
    return command(COMMAND, "report", "--full", lines).stdout


def make_file(path, mib):
    with open(path, "wb") as stream:
        for _ in range(mib):
            stream.write(bytes(1 << 20))
        stream.flush()
        os.fsync(stream.fileno())  # only clean pages can leave the page cache
    return path


@pytest.mark.parallel(2)
def test_memory_limit_speaks_first(t):
    """A program reads a file again that is larger than its memory limit."""
    agent = t.agent(rules(rule("cache", comm="cache", during_ms=2000,
                               when=[{"pressure": "memory", "some_ms": 30, "window_ms": 1000}])))
    group = t.cgroup(memory=64)
    t.spawn("thrash_memory", 18, make_file(t.folder / "working-set", 240), 9, name="cache", cgroup=group)
    end = agent.wait("session.end", seconds=20, rule="cache")
    memory = agent.find("facts", session=end["session"], source="memory")[0]
    check_figure("before" in memory["phases"], f"stalled too early: {memory}", t.load)
    said = re.fullmatch(r"memory limit of 64 MiB reached ([\d,]+) times: ([\d,]+) pages read back, \d+\.\d s stalled",
                        proved(end))
    phases = [memory["phases"][name] for name in ("onset", "during")]
    check(said and int(said[1].replace(",", "")) == sum(p["max"] for p in phases) and
          int(said[2].replace(",", "")) == sum(p["workingset_refault_file"] + p["workingset_refault_anon"]
                                               for p in phases), f"{end['findings']}: {memory}")
    check(memory["limits"]["max_bytes"] == 64 << 20, f"{memory}")
    check(0 < phases[1]["file_bytes"] <= 64 << 20 and phases[1]["swap_bytes"] == 0, f"{memory}")
    host = agent.find("facts", session=end["session"], source="host")[0]
    check(host["phases"]["during"]["workingset_refault_file"] >= phases[1]["workingset_refault_file"] // 2, f"{host}")
    check(memory["phases"]["before"]["max"] < phases[1]["max"], f"{memory}")
    check(report_of(t, agent).startswith(proved(end) + "; "), "the report begins with something else")


@pytest.mark.parallel(3)
def test_stolen(t):
    """What the host of this machine took of its CPUs in a session, by /proc/stat itself; 0 where it has no host."""
    agent = t.agent(rules(rule("api", comm=t.comm, signals=["oncpu"], pre_ms=0)))
    t.spawn("burn_cpu", 20, 2, name=t.comm, cgroup=t.cgroup())
    agent.wait("process.match")
    witness = Witness(stolen_ms=lambda: machine.busy_ticks()[1] * 1000 / os.sysconf("SC_CLK_TCK"))
    asked = agent.call("session.start", {"rule": "api", "during_ms": 3000})["session"]
    start = agent.wait("session.start", session=asked)
    agent.wait("session.end", session=asked)
    witness.stop()
    during = agent.find("facts", session=asked, source="host")[0]["phases"]["during"]
    counted = witness.grown("stolen_ms", start["mono_ns"], start["mono_ns"] + during["ms"] * 10**6)
    print(f"{during['stolen_ms']} ms told, {counted:.0f} ms counted")
    check(abs(during["stolen_ms"] - counted) <= 0.1 * counted + 50, f"{counted} ms are true: {during}")


def mount_ext4(t, mib):
    """A new ext4 on a loop device: (where it is mounted, the device's name, its numbers)."""
    image, folder = t.folder / "image", t.folder / "ext4"
    with open(image, "wb") as stream:
        stream.truncate(mib << 20)
    folder.mkdir()
    made = subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", image], capture_output=True, check=False)
    if made.returncode or subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True,
                                         check=False).returncode:
        raise Skip("no loop device can be mounted here")
    t.mounted.append(folder)
    number = folder.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    return folder, os.path.basename(os.readlink(f"/sys/dev/block/{device}")), device


@pytest.mark.parallel(2)
@pytest.mark.core
def test_disk_limit_speaks_first(t):
    """A program may read 2 MiB a second, and wants more."""
    folder, name, device = mount_ext4(t, 96)
    data = make_file(folder / "data", 64)
    agent = t.agent(rules(rule("store", comm="store", during_ms=3000,
                               when=[{"pressure": "io", "some_ms": 300, "window_ms": 1000}])))
    group = t.cgroup()
    group.reads(device, 2 << 20)
    t.spawn("thrash_memory", 12, data, name="store", cgroup=group)
    end = agent.wait("session.end", seconds=18, rule="store")
    line = agent.find("facts", session=end["session"], source="io")[0]
    check(line["limits"]["devices"] == [{"device": name, "rbps": 2 << 20}], f"{line}")
    read = [d["rbytes"] for d in line["phases"]["during"]["devices"] if d["device"] == name][0]
    check_figure(read >= 5 << 20, f"it read more slowly than it may: {line}", t.load)
    said = re.fullmatch(rf"disk limit of 2\.0 MiB/s \(reads\) of {name} \(\S+\) at \S+ used up: (\d+\.\d) MiB read in 3\.\d s",
                        proved(end))
    check(said and abs(float(said[1]) - read / (1 << 20)) <= 0.06, f"{end['findings']}: {line}")
    check(end["headline"].startswith(proved(end) + "; ") and
          report_of(t, agent).startswith(proved(end) + "; "), f"{end}")
