# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/answer/* consumer/facts/causes* shared/findings/* ctl/render/text_report*
"""Incidents as operators have them, on real servers: the first three lines of `trocar report` name the cause, or say
plainly what is not known. Numbers in them are held against the cgroup's own files, read beside the agent; a cause that
was not there, and a verdict of "complete" over a stall that nothing explains, fail the test."""
import re
import time

import pytest

import harness
from harness import ROOT, check, check_figure, rule, rules
from pages import Page
from servers import PINNED, Disk, Postgres, Redis, Service, Witness, forget

README = Page(ROOT / "README.md")
FIRST_LINES = 3
CALM_S = 4
CLOSE = 0.2
HZ = 97
CHANCE = 3  # standard deviations of a number of ticks
LEAST_SHARE = 0.3
DRAIN_S = 6

CAUSES = {
    "quota": r"CPU quota of (?P<quota>[\d.]+) % used up: (?P<throttled>[\d.]+ \w+) throttled in (?P<of>[\d.]+ \w+)",
    "neighbour": r"(?P<who>/\S*) had (?P<had>[\d.]+) of the one CPU that this cgroup ran on while it waited",
    "memory": r"memory limit of (?P<limit>[\d.]+ \w+) reached (?P<times>[\d,]+) times: (?P<pages>[\d,]+) pages read "
              r"back, (?P<stalled>[\d.]+ \w+) stalled",
    "disk": r"disk limit of (?P<limit>[\d.]+ \w+)/s \(reads\) of (?P<disk>\w+) \(\S+\) at \S+ used up: "
            r"(?P<read>[\d.]+ \w+) read in (?P<of>[\d.]+ \w+)",
}
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def amount(text):
    """Seconds or bytes of "2.37 s", "4.1 MiB"."""
    number, unit = text.split()
    return float(number) * UNITS[unit]


def count(text):
    return int(text.replace(",", ""))


def check_close(said, true, text, least=0.0):
    """`least`: differences below that are of how the text rounds."""
    check(abs(said - true) <= max(CLOSE * abs(true), least), f"{said} was said, {true} is true: {text}")


def when(resource, some_ms):
    return {"pressure": resource, "some_ms": some_ms, "window_ms": 1000}


class Told:
    """What an operator has of a session: its lines, and the report of all that the agent wrote. The agent is
    stopped: what it held back is said."""

    def __init__(self, t, agent, session):
        self.test = t
        self.pressure = agent.wait("pressure", session=session)
        self.end = agent.wait("session.end", seconds=15, session=session)
        self.stacks = agent.stacks(session, None)
        self.facts = agent.find("facts", session=session)
        self.from_ns = self.pressure["mono_ns"] - self.pressure["measured_ms"] * 10**6
        self.to_ns = self.pressure["mono_ns"] + self.end["duration_ms"] * 10**6
        self.seconds = (self.to_ns - self.from_ns) / 1e9
        agent.stop()
        (t.folder / "lines").write_bytes(b"".join(agent.raw))
        self.report = harness.command(harness.COMMAND, "report", "--full", t.folder / "lines").stdout
        print(self.report)
        self.first = "\n".join(self.report.splitlines()[:FIRST_LINES])

    def check_span(self, said):
        """The time that a sentence counts ends with the session. It begins with during, or when the counters were last
        read before the onset: at a drain of the recorder, some seconds earlier at most. Returns its begin."""
        seconds = amount(said)
        check(self.end["duration_ms"] / 1e3 * (1 - CLOSE) <= seconds <= self.seconds + DRAIN_S,
              f"{seconds} s of {self.seconds}: {self.first}")
        return self.to_ns - int(seconds * 1e9)

    def span_of(self, source):
        """(begin, end) of the time between the agent's readings of these counters, onset and during: where the machine is
        busy, the first and the last are late."""
        phases = next(line["phases"] for line in self.facts if line["source"] == source)
        begun_ns = self.pressure["mono_ns"]
        onset_ms, during_ms = (phases.get(phase, {"ms": 0})["ms"] for phase in ("onset", "during"))
        check(during_ms >= self.end["duration_ms"] * (1 - CLOSE), f"{phases}: {self.end}")
        check(onset_ms <= self.pressure["measured_ms"] + DRAIN_S * 1000 or not onset_ms, f"{phases}: {self.pressure}")
        return begun_ns - onset_ms * 10**6, begun_ns + during_ms * 10**6

    def cause(self, name):
        """The cause's sentence, which stands at the head of the report; no other cause does."""
        found = re.search(CAUSES[name], self.first)
        check(found, f"no {name} in the first lines of\n{self.report}")
        for other in set(CAUSES) - {name}:
            check(not re.search(CAUSES[other], self.first), f"{other}, which it was not, is told: {self.first}")
        says = self.end["findings"][0]["says"]
        check(found[0] in says and self.end["headline"].startswith(says), f"{self.end}")
        return found

    def check_finding(self, cause):
        """What explains most of the waiting, in the line and in the report."""
        first = self.end["findings"][0]
        check(cause in [f["cause"] for f in self.end["findings"]], f"{self.end['findings']}")
        # Where others have the CPUs, waiting for those explains more.
        check_figure(first["cause"] == cause and first.get("share", 1) >= LEAST_SHARE, f"{self.end['findings']}", self.test.load)
        amount_of = f"{100 * first['share']:.0f} %" if "share" in first else r"[\d.]+ m?s"
        check(re.search(rf"^findings: .*\n +{amount_of}  ", self.report, re.M), self.report)

    def check_page(self, title, *patterns):
        """README shows such a report, folded: what each pattern finds there it finds in this one."""
        advice = r"\n +(advice|debian-debug): .*"
        README.quote(self.test, title, [re.sub(advice, "", p) for p in self.report.split("\n\n")[:5]], columns=100)
        for text in (self.report, README.quoted(title)):
            for pattern in patterns:
                check(re.search(pattern, " ".join(text.split())), f"not said: {pattern}\n{text}")

    def check_account(self, witness, resource):
        """The sums are those of the kernel, and "complete" is said only of what is explained."""
        stalled_s = witness.grown(resource, self.from_ns, self.to_ns) / 1e6
        check_close(self.end["stalled_ms"] / 1e3, stalled_s, f"{self.end}", least=0.05)
        used_s = witness.grown("cpu", self.pressure["mono_ns"], self.to_ns) / 1e6
        sampled_s = sum(s.get("weight_ns", 0) for s in self.stacks
                        if s["phase"] == "during" and s["signal"] == "oncpu") / 1e9
        if self.end["verdict"] == "complete":
            check(self.end["answer"]["level"] != "not_known" or self.end["headline"].startswith("cause not known; "),
                  f"complete, with no cause: {self.end}")
            # Few ticks are as many by chance alone; and a tick sees run what the host has taken the CPU from.
            check_figure(abs(sampled_s - used_s) <= max(CLOSE * used_s, CHANCE * (used_s / HZ) ** 0.5),
                         f"complete, of another CPU time: {sampled_s} was said, {used_s} is true: {self.end}", self.test.load)


def calm(agent, service):
    """Some seconds before the incident, in which nothing stalls enough for a session."""
    agent.wait("watch.start", cgroup=service.path)
    time.sleep(CALM_S)
    check_figure(not agent.find("session.start"), f"no calm: {agent.find('pressure')}", agent.test.load)


@pytest.mark.parallel(2)
def test_quota_under_keys(t):
    """KEYS over a million keys in a quota of 40 %: the quota is the cause, keysCommand what used it up."""
    service = Service(t, "redis")
    service.place("cpu")
    redis = Redis(service, keys=1000000)
    service.quota(40)
    witness = Witness(throttled=service.throttled_us, cpu=service.cpu_us, stalled=lambda: service.stalled_us("cpu"))
    agent = t.agent(rules(rule("redis", cgroup=service.path, when=[when("cpu", 300)])))
    traffic = redis.traffic(1000, 0.02)
    calm(agent, service)
    redis.command_line("-r", "100", "KEYS", "*")
    told = Told(t, agent, agent.wait("session.start", cgroup=service.path)["session"])
    traffic.stop()
    witness.stop()
    throttled_us, stalled_us = (witness.grown(name, told.from_ns, told.to_ns) for name in ("throttled", "stalled"))
    check_figure(throttled_us > 0.3 * stalled_us, f"the quota was not used up: {told.first}", t.load)
    said = told.cause("quota")
    told.check_finding("cpu_quota")
    check(float(said["quota"]) == 40, f"{told.first}")
    throttled_us = witness.grown("throttled", told.check_span(said["of"]), told.to_ns)
    check_close(amount(said["throttled"]), throttled_us / 1e6, told.first)
    check("keysCommand (redis-server)" in told.first, f"where the quota went: {told.first}")
    told.check_account(witness, "stalled")
    told.check_page("An incident", CAUSES["quota"], r"keysCommand \(redis-server\)", r" 40 % used up: .* what helps: raise CPUQuota=")


def test_neighbour_on_the_same_cpu(t):
    """Another cgroup's threads on the CPU to which the server is bound: that cgroup is named."""
    service, batch = Service(t, "redis"), Service(t, "batch")
    redis = Redis(service, keys=1000, pinned=True)
    witness = Witness(batch=batch.cpu_us, cpu=service.cpu_us, stalled=lambda: service.stalled_us("cpu"))
    agent = t.agent(rules(rule("redis", cgroup=service.path, when=[when("cpu", 300)])))
    traffic = redis.traffic(4000, 0.005)
    calm(agent, service)
    batch.start(*PINNED, t.binary("burn_cpu", "batch"), 20, 8)
    told = Told(t, agent, agent.wait("session.start", cgroup=service.path)["session"])
    traffic.stop()
    witness.stop()
    said = told.cause("neighbour")
    told.check_finding("cpu_neighbour")
    check(said["who"] == batch.path, f"another neighbour: {told.first}")
    begun_ns = told.pressure["mono_ns"]
    had = witness.grown("batch", begun_ns, told.to_ns) / ((told.to_ns - begun_ns) / 1e3)
    check_close(float(said["had"]), had, told.first, least=0.1)
    told.check_account(witness, "stalled")


def disk_database(t, **options):
    """PostgreSQL on a disk of its own, which scans a table that is larger than its buffers."""
    service = Service(t, "db")
    service.place("io")
    disk = Disk(t, 200)
    postgres = Postgres(service, disk.folder, **options)
    table = postgres.table("orders", 64)
    postgres.repeat("SELECT sum(length(pad)) FROM orders", 0.3)
    witness = Witness(read=lambda: service.read_bytes(disk.device), cpu=service.cpu_us,
                      stalled=lambda: service.stalled_us("io"), blip=lambda: service.stalled_us("cpu"))
    return service, disk, postgres, table, witness


@pytest.mark.parallel(3)
def test_throttled_disk(t):
    """A scan that has to read from a disk limited to 1 MiB/s: the limit is named, with what was read."""
    service, disk, _, table, witness = disk_database(t)
    agent = t.agent(rules(rule("db", cgroup=service.path, when=[when("io", 300)])))
    calm(agent, service)
    with disk.limited(service, 1 << 20):
        forget(table)
        told = Told(t, agent, agent.wait("session.start", cgroup=service.path)["session"])
    witness.stop()
    said = told.cause("disk")
    told.check_finding("disk_limit")
    check(amount(said["limit"]) == 1 << 20 and said["disk"] == disk.name, f"{told.first}")
    read = witness.grown("read", told.check_span(said["of"]), told.to_ns)
    check_close(amount(said["read"]), read, told.first, least=128 << 10)
    check(any(s.get("wait") == "io" for s in told.stacks), f"no look met what waited for the disk: {told.end}")
    told.check_account(witness, "stalled")


@pytest.mark.parallel(2)
def test_memory_limit_under_scans(t):
    """Scans of a table that the memory limit does not hold: the limit is named, and what was read again and again."""
    service = Service(t, "db")
    service.place("memory")
    folder = t.folder / "database"
    folder.mkdir()
    postgres = Postgres(service, folder)
    tables = [postgres.table("customers", 8), postgres.table("orders", 160)]
    for table in tables:
        forget(table)
    service.memory(32)
    witness = Witness(times=service.limit_hits, pages=service.refaults, cpu=service.cpu_us,
                      stalled=lambda: service.stalled_us("memory"))
    agent = t.agent(rules(rule("db", cgroup=service.path, when=[when("memory", 50)])))
    postgres.repeat("SELECT sum(length(pad)) FROM customers", 0.2)
    calm(agent, service)
    for _ in range(3):
        postgres.repeat("SELECT sum(length(pad)) FROM orders", 0.01)
    told = Told(t, agent, agent.wait("session.start", cgroup=service.path)["session"])
    witness.stop()
    said = told.cause("memory")
    told.check_finding("memory_limit")
    grown = {name: witness.grown(name, *told.span_of("memory")) for name in ("times", "pages")}
    stalled_us = witness.grown("stalled", told.from_ns, told.to_ns)
    check(amount(said["limit"]) == 32 << 20, f"{told.first}")
    check_close(count(said["times"]), grown["times"], told.first)
    check_close(count(said["pages"]), grown["pages"], told.first)
    check_close(amount(said["stalled"]), stalled_us / 1e6, told.first, least=0.05)
    told.check_account(witness, "stalled")


@pytest.mark.parallel(3)
def test_outage_behind_a_blip(t):
    """A blip on cpu begins a session; then the disk stands still for 12 s. The report begins with the disk, and what
    it says of it adds up to the time that the kernel counted."""
    service, disk, postgres, table, witness = disk_database(t, pinned=True)
    agent = t.agent(rules(rule("db", cgroup=service.path, when=[when("cpu", 150), when("io", 300)])))
    agent.wait("watch.start", cgroup=service.path)
    for _ in range(4):
        postgres.session("SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 700) b;")
    with disk.limited(service, 4096):
        blip = agent.wait("session.start", cgroup=service.path)
        begun_ns = time.monotonic_ns()
        forget(table)
        outage = agent.wait("session.start", cgroup=service.path,
                            where=lambda e: e["reason"]["pressure"]["resource"] == "io")
        time.sleep(12 - (time.monotonic_ns() - begun_ns) / 1e9)
        ended_ns = time.monotonic_ns()
        told = Told(t, agent, outage["session"])
    witness.stop()
    check(blip["reason"]["pressure"]["resource"] == "cpu", f"{blip}")
    stalled_s = witness.grown("stalled", begun_ns, ended_ns) / 1e6
    check(stalled_s > 8, f"no outage: {stalled_s} s")
    row = next((line for line in told.first.splitlines() if re.search(r"\bio\b", line)), "")
    said = [amount(text) for text in re.findall(r"\d[\d.]* (?:ms|s)\b", row)]
    check(any(abs(s - stalled_s) <= CLOSE * stalled_s for s in said), f"not {stalled_s} s: {told.report}")
    # A read that waits for longer than the session is in no counter yet: then the report says that it does not know.
    cause = re.search(CAUSES["disk"], told.first)
    check(amount(cause["limit"]) == 4096 and cause["disk"] == disk.name if cause else
          "the waits are not in these stacks" in row or "its threads waited" in row, f"no cause: {told.report}")
    told.check_account(witness, "stalled")
