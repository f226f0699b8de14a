# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/answer/findings* consumer/answer/find_locks* consumer/answer/find_cache* docs/stalls.md
"""Stalls in which nothing runs, on real servers: the first screen of `trocar report` names who waited, for what, in
which function and on which file, or say plainly what is not known. docs/stalls.md shows such runs: what is looked for
in a report must stand in the one that it quotes, and its commands are the ones that run here."""
import re
import socket
import time

import pytest

import harness
from harness import ROOT, check, rule, rules
from pages import Page
from servers import Disk, Nginx, Postgres, Redis, Service

pytestmark = pytest.mark.shares_kernel_side

SCREEN_LINES = 24
CAUSE_LINES = 10  # within which the cause is named
DURING_MS = 2000
PAGE = Page(ROOT / "docs" / "stalls.md")

IO = {"pressure": "io", "some_ms": 200, "window_ms": 1000}

# The paragraphs of a report that the page shows beside the first one, in whichever order.
SHOWN = ("quality", "symptom", "findings", "why ", "what the time ", "account of ", "waits:")


class Told:
    """The end of a session, and the report of all that the agent wrote until then. `title`: where the page has it."""

    def __init__(self, t, agent, session, title):
        self.end = agent.wait("session.end", seconds=15, session=session)
        self.stacks = agent.stacks(session, "offcpu")
        agent.stop()
        (t.folder / "lines").write_bytes(b"".join(agent.raw))
        self.report = harness.command(harness.COMMAND, "report", "--full", t.folder / "lines").stdout
        print(self.report)
        first, *rest = self.report.split("\n\n")
        PAGE.quote(t, title, [first] + [p for p in rest if p.startswith(SHOWN)])
        self.quoted = PAGE.quoted(title)
        # Headline, quality, symptom and findings; what follows is the evidence.
        self.first = re.split(r"\n\n(?:account|timeline|waits)\b", self.report)[0] + "\n"
        check(len(self.first.splitlines()) <= SCREEN_LINES, f"more than a screen:\n{self.report}")

    def check_said(self, *patterns):
        ten = "\n".join(self.report.splitlines()[:CAUSE_LINES])
        for pattern in patterns:
            check(re.search(pattern, ten), f"not said in the first {CAUSE_LINES} lines: {pattern}\n{self.report}")
            check(re.search(pattern, self.quoted), f"not in the page: {pattern}\n{self.quoted}")

    def check_listed(self, *patterns):
        """In the table of what threads waited for."""
        for pattern in patterns:
            check(re.search(pattern, self.report), f"not listed: {pattern}\n{self.report}")
            check(re.search(pattern, self.quoted), f"not in the page: {pattern}\n{self.quoted}")

    def check_finding(self, *causes):
        """What explains most of the waiting is one of these; the first lines say it, what helps, and how sure it is."""
        check(self.end["findings"] and self.end["findings"][0]["cause"] in causes, f"{self.end.get('findings')}")
        sure = "" if self.end["findings"][0]["level"] == "certain" else "perhaps: "
        check(f"  {sure}{self.end['findings'][0]['says']}\n" in self.first, f"not said: the finding\n{self.report}")
        check("\n  what helps: " in self.first, f"not said: what helps\n{self.report}")

    def check_never(self, pattern):
        check(not re.search(pattern, self.first), f"said: {pattern}\n{self.report}")

    def waits(self, fn):
        """The rows of a function in session.end's waits."""
        return [w for w in self.end["waits"] if w["fn"] == fn]


def ask_unquoted(agent, service, reason):
    """A session of the rule as a probe asks for it."""
    agent.wait("watch.start", cgroup=service.path)
    time.sleep(1)
    done = agent.trocar("capture", "--rule", "shop", "--reason", reason, "--wait", expect=None)
    return done.stdout.split()[1]


def ask(agent, service, reason):
    check(f'trocar capture --rule shop --reason "{reason}" --wait\n' in PAGE.text(), f"not in the page: {reason}")
    return ask_unquoted(agent, service, reason)


@pytest.mark.parallel(2)
@pytest.mark.core
def test_lock_convoy(t):
    """Three sessions of PostgreSQL update one row: the backends wait for a lock, though the kernel sees epoll."""
    service = Service(t, "shop")
    folder = t.folder / "database"
    folder.mkdir()
    postgres = Postgres(service, folder)
    postgres.sql("CREATE TABLE stock AS SELECT 1 AS item, 100000 AS pieces")
    agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=DURING_MS)))
    for _ in range(3):
        postgres.session("BEGIN; UPDATE stock SET pieces = pieces - 1 WHERE item = 1; SELECT pg_sleep(0.3); COMMIT;\n" * 99)
    told = Told(t, agent, ask(agent, service, "checkout takes 1 s"),
                "PostgreSQL: three sessions update one row")
    told.check_said(r"its threads waited \d+\.\d s for locks, \d+ % of it in ProcSleep \(called by LockAcquireExtended, ")
    told.check_listed(r"s +\d+ +lock +ProcSleep < LockAcquireExtended < ")
    told.check_finding("lock_wait")
    check(any(f["fn"] == "pg_sleep" for s in told.stacks for f in s["frames"]), "who holds the lock is in no stack")
    locked = sum(w["weight_ms"] for w in told.waits("ProcSleep"))
    # Of three sessions one holds the row, and two wait for it.
    check(0.8 * 2 * DURING_MS < locked < 1.1 * 2 * DURING_MS, f"{locked} ms: {told.end['waits']}")
    blocked = [w for w in told.end["waits"] if w["state"] == "blocked"]
    check(all(w["wait"] == "lock" and not w["idle"] for w in blocked if w["fn"] == "ProcSleep"), blocked)
    check(all(w["idle"] for w in blocked if w["fn"] in ("CheckpointerMain", "WalWriterMain")), blocked)


@pytest.mark.parallel(3)
def test_checkpoint(t):
    """A checkpoint of PostgreSQL on a slow disk: who writes, and who waits for the disk meanwhile, each with its file."""
    service = Service(t, "shop")
    service.place("io")
    disk = Disk(t, 300)
    postgres = Postgres(service, disk.folder, options=("fsync=on", "shared_buffers=64MB", "synchronous_commit=on"))
    table = postgres.table("stock", 32)
    agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=DURING_MS, when=[IO])))
    agent.wait("watch.start", cgroup=service.path)
    postgres.sql("UPDATE stock SET pad = repeat('y', 980)")
    with disk.limited(service, 2 << 20, write=True):
        postgres.repeat("INSERT INTO stock VALUES (1, 'z')", 0.05)
        postgres.session("CHECKPOINT;")
        start = agent.wait("session.start", seconds=15, cgroup=service.path)
        agent.wait("session.end", seconds=15)
    told = Told(t, agent, start["session"], "PostgreSQL: a checkpoint on a slow disk")
    told.check_said(r"its threads waited [\d.]+ m?s (for io|until writes were on disk),.* (most|\d+ %) of it in \w+ \(called by .*\) on the file /.*/\w+")
    told.check_listed(r"CreateCheckPoint.* file /.*/\d+\b", r"XLogFlush.* file /.*/pg_wal/[0-9A-F]{24}\b")
    told.check_finding("sync", "sync_storm", "disk_limit", "disk")
    written = [w["on"]["name"] for w in told.end["waits"] if "CreateCheckPoint" in w.get("callers", [])]
    check(table.name in written, f"{written}, not {table.name}")


@pytest.mark.parallel(3)
@pytest.mark.core
def test_append_only_file(t):
    """Redis with appendfsync always: its one thread waits in fdatasync, and the headline says of which file. The threads
    that wait for work are not told as waiting for a lock."""
    service = Service(t, "shop")
    service.place("io")
    disk = Disk(t, 200)
    redis = Redis(service, keys=1000, options=("--appendonly", "yes", "--appendfsync", "always", "--dir", disk.folder))
    agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=DURING_MS, when=[IO])))
    agent.wait("watch.start", cgroup=service.path)
    with disk.limited(service, 64 << 10, write=True):
        writers = [redis.traffic(1, 0.001, "SET", "key:1", "x" * 100) for _ in range(4)]
        start = agent.wait("session.start", seconds=15, cgroup=service.path)
        agent.wait("session.end", seconds=15)
    for writer in writers:
        writer.stop()
    told = Told(t, agent, start["session"], "Redis: appendfsync always")
    told.check_said(r"its threads waited [\d.]+ m?s for io, most of it in flushAppendOnlyFile \(called by .*\) on the file "
                    r"/.*/appendonly\.aof\S*;")
    told.check_listed(r"s +\d +io +flushAppendOnlyFile < .* file /.*/appendonly\.aof", r"s +3 +condition +bioProcessBackgroundJobs\b")
    told.check_never("for locks")
    told.check_finding("disk_limit", "sync", "sync_storm")


def test_slow_upstream(t):
    """nginx behind a server that takes a second: it waits in epoll, and the headline says for whose answers, and how
    many connections wait."""
    service = Service(t, "shop")
    nginx = Nginx(service, delay_s=1)
    nginx.get()
    agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=DURING_MS)))
    traffic = [nginx.traffic(0.01) for _ in range(4)]
    told = Told(t, agent, ask(agent, service, "no answer in 500 ms"), "nginx: a slow upstream")
    for one in traffic:
        one.stop()
    told.check_said(r"its threads waited [\d.]+ m?s for .*answers of 127\.0\.0\.1:\d+ \([1-4] connections? a thread, the longest "
                    r"for \d+ ms\) in ngx_process_events_and_timers")
    told.check_listed(r"s +1 +socket +ngx_process_events_and_timers < .* answers of 127\.0\.0\.1:\d+")
    told.check_never("the peer is not known")
    (row,) = [w for w in told.waits("ngx_process_events_and_timers") if w["wait"] == "socket"]
    check(row["on"]["what"] == "epoll" and row["on"]["peer"] == nginx.peer and not row["idle"], row)
    check(row["on"]["asked"] == 4 and "others" not in row["on"] and row["on"]["opened"] == 4, row)
    # It takes a second; a look finds it at any moment of that.
    check(500 <= row["on"]["longest_ms"] <= 1100, row)
    check(0.9 * DURING_MS < row["weight_ms"] < 1.1 * DURING_MS, row)
    asking = [s for s in told.stacks if s.get("on", {}).get("peer") == nginx.peer]
    check(asking and all(s["wait"] == "socket" and not s["idle"] for s in asking), told.stacks)


def check_idle(agent, session, fn, opened):
    """All that is in epoll is idle there, of so many connections that it opened itself. Returns the headline."""
    end = agent.wait("session.end", seconds=15, session=session)
    rows = [w for w in end["waits"] if w["state"] == "blocked" and w.get("on", {}).get("what") == "epoll"]
    check(rows and all(w["wait"] == "idle" and w["idle"] and "peer" not in w["on"] for w in rows), end["waits"])
    check([w["on"]["opened"] for w in rows if w["fn"] == fn] == [opened], rows)
    check("for answers" not in end["headline"], end["headline"])
    return end["headline"]


def test_idle_proxy(t):
    """nginx whose clients and whose connections to the upstream are kept, and nobody asks: it is idle."""
    service = Service(t, "shop")
    nginx = Nginx(service, delay_s=0, keep=True)
    clients = [nginx.connect() for _ in range(4)]
    agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=1000)))
    headline = check_idle(agent, ask_unquoted(agent, service, "is it idle?"), "ngx_process_events_and_timers", 1)
    check("no TCP connection that was opened there waits for an answer" in headline, headline)
    for client in clients:
        client.close()


def test_idle_server(t):
    """Redis whose clients over TCP have all been answered: it sent last, and waits for nobody."""
    service = Service(t, "shop")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    redis = Redis(service, keys=10, options=("--port", str(port), "--bind", "127.0.0.1"))
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    for client in clients:
        redis.send(client, 1, "GET", "key:1")
    agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=1000)))
    check_idle(agent, ask_unquoted(agent, service, "is it idle?"), "aeMain", 0)
    for client in clients:
        client.close()


def test_database_client(t):
    """A client of PostgreSQL over its unix socket polls that connection alone: it waits for the database's answer."""
    service = Service(t, "shop")
    database = Postgres(Service(t, "database"), t.folder)
    client = service.start(database.bin / "psql", "-h", database.folder, "-U", "postgres", "-X", "-c", "SELECT pg_sleep(30)")
    agent = t.agent(rules(rule("shop", cgroup=service.path, during_ms=1000)))
    told = Told(t, agent, ask(agent, service, "no answer in 500 ms"), "psql: a database that does not answer")
    client.kill()
    told.check_said(r"its threads waited [\d.]+ m?s for .*answers of the unix socket \S+/\.s\.PGSQL\.5432 \(postgres\) in ")
    told.check_listed(r"s +1 +socket +\S+ +answers of the unix socket \S+/\.s\.PGSQL\.5432")
    told.check_never("the peer is not known")
    (row,) = [w for w in told.end["waits"] if w.get("on", {}).get("what") == "poll"]
    on = row["on"]
    check(row["wait"] == "socket" and not row["idle"], row)
    check(on["path"] == f"{database.folder}/.s.PGSQL.5432" and on["asked"] == 1 and on["kinds"] == {"unix": 1}, row)
    check(on["peer_pid"] == database.process.pid and on["peer_comm"] == "postgres" and "unread" not in on, row)
