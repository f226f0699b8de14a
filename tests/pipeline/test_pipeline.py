# SPDX-License-Identifier: BSD-2-Clause
"""The pipeline of docs/pipeline.md with real parts: the consumer's file, logrotate, rsyslog, PostgreSQL, ClickHouse.
The tests share one World, which each finds as the one before it has left it: they are run in the order of the file."""
import gzip
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import tomllib

import pytest

import harness
import machine
import parts
from harness import ROOT, check, until

QUERY, WAITS = (ROOT / "docs" / "pipeline" / name for name in ("top-stacks.sql", "top-waits.sql"))
LINE_BYTES = 8096  # rsyslog cuts behind so many bytes; docs/pipeline.md sets --max-line-bytes to it
REJECTED = "SELECT reason, length(line), left(line, 60), right(line, 60) FROM trocar_rejected"


class World:
    """Owns everything; `close` ends it in reverse and returns what went wrong."""

    def __init__(self):
        self.test = harness.Test("pipeline")
        self.log = self.test.folder / "log"
        self.log.mkdir(mode=0o755)
        shutil.chown(self.log, harness.USER, harness.GROUP)
        self.lines = self.log / "events.jsonl"
        self.agent = self.postgres = self.rsyslog = self.clickhouse = None
        self.redelivered = 0
        self.noises = []
        self.bad = []  # what the tests wrote to be rejected
        self.closed = False

    def start_sql(self):
        self.postgres = parts.Postgres(self.test.folder / "postgres")
        # Counts deliveries: a line that comes twice takes a number and leaves no row.
        self.postgres.sql("ALTER TABLE trocar_lines ADD delivery bigserial")

    def start_agent(self):
        deep = harness.rule("deep", comm="deep", pre_ms=1000, during_ms=1000, cooldown_ms=1000)
        self.agent = self.test.agent(harness.rules(deep), output=self.lines,
                                     arguments=["--max-line-bytes", str(LINE_BYTES)])

    def files(self):
        """All the consumer's files, packed ones too, oldest first."""
        return [*sorted(self.log.glob("events-*")), *([self.lines] if self.lines.exists() else [])]

    def written(self):
        """Every whole line of all files, oldest first."""
        found = []
        for path in self.files():
            data = path.read_bytes()
            done, _, rest = (gzip.decompress(data) if path.suffix == ".gz" else data).rpartition(b"\n")
            check(not rest or path == self.lines, f"{path.name} ends inside a line: {rest[-80:]!r}")
            found += done.split(b"\n") if done else []
        return found

    def valid(self):
        """The lines without those that a test wrote to be rejected."""
        return [line for line in self.written() if line not in self.bad]

    def delivered(self):
        return [json.loads(row[0]) for row in
                self.postgres.sql("SELECT line FROM trocar_lines ORDER BY delivery")]

    def settle(self):
        """Until the agent is quiet and SQL has every line; returns the lines."""
        wanted = 0

        def quiet():
            nonlocal wanted
            before, wanted = wanted, len(self.valid())
            return before == wanted and self.postgres.number(
                "SELECT count(*) FROM trocar_lines") >= wanted
        until(quiet, 20, lambda: f"SQL has {self.postgres.sql('SELECT count(*) FROM trocar_lines')} "
                                 f"of {wanted} lines, rejected "
                                 f"{self.postgres.sql(REJECTED)}: {self.rsyslog.said()}")
        return self.valid()

    def compare(self, wanted):
        """The table holds exactly these lines, each delivered once."""
        rows = self.delivered()
        texts = sorted(json.dumps(row, sort_keys=True) for row in rows)
        mine = sorted(json.dumps(json.loads(line), sort_keys=True) for line in wanted)
        check(texts == mine, f"{len(texts)} rows for {len(mine)} lines; only in one: "
                             f"{[t[:300] for t in set(texts) ^ set(mine)][:4]}")
        rejected = self.postgres.sql(REJECTED)
        check(len(rejected) == len(self.bad), f"{len(self.bad)} faulty lines, rejected: {rejected[:4]}")
        check(self.doubled() == self.redelivered, f"{self.doubled()} lines were delivered twice")

    def doubled(self):
        """Deliveries that left no row."""
        return self.postgres.number(
            "SELECT last_value - (SELECT count(*) FROM trocar_lines) FROM trocar_lines_delivery_seq")

    def session(self, during_ms=600):
        before = len(self.sessions())
        self.agent.call("session.start", {"rule": "deep", "during_ms": during_ms})
        return until(lambda: self.sessions()[before:], 15, "no session.end")[0]

    def noise(self):
        self.noises.append(Noise(self))
        self.noises[-1].start()
        return self.noises[-1]

    def sessions(self):
        return [json.loads(line) for line in self.written() if b'"type":"session.end"' in line]

    def close(self):
        """Ends everything, once; returns what went wrong."""
        if self.closed:
            return []
        self.closed, faults = True, []
        for noise in self.noises:
            noise.going = False
        for part in (self.rsyslog, self.postgres, self.clickhouse):
            try:
                if part:
                    part.stop()
            except Exception as error:
                faults.append(f"teardown: {error}")
        return faults + self.test.close()


@pytest.fixture(scope="module")
def world(kernel):
    packages = parts.missing()
    if packages:
        pytest.skip(f"Debian packages are missing: {' '.join(packages)}")
    with machine.share():
        made = World()
        yield made
        made.close()


def note(text):
    print(f"# {text}", flush=True)


def test_rsyslog_takes_the_configuration(world):
    world.start_sql()
    world.start_agent()
    world.rsyslog = parts.Rsyslog(world.test.folder / "rsyslog", world.lines, world.postgres)
    world.rsyslog.verify()


def check_drop_in(text):
    """The drop-in replaces the unit's command: it must have every word of it, in its order."""
    unit = (ROOT / "systemd" / "trocar-consumer.service.in").read_text(encoding="utf-8")
    for old, new in {"@libexecdir@": "/usr/libexec/trocar", "@sysconfdir@": "/etc/trocar"}.items():
        unit = unit.replace(old, new)
    own = next(row for row in unit.splitlines() if row.startswith("ExecStart="))
    check(any(row.startswith(own + " --output") for row in text.splitlines()),
          f"consumer-file.conf does not extend the unit's {own}")
    # tests/vm reads the file as a user in adm: checks/reader.sh.
    check({"LogsDirectory=", "UMask=0027"} <= set(text.splitlines()), "the folder's group or the file's mode is the unit's")


def test_the_other_recipe_is_of_its_format(world):
    """No program for it here: the TOML parses, names the file, and every part that is used exists."""
    vector = tomllib.loads(parts.example("vector.toml"))
    names = {*vector["sources"], *vector["transforms"],
             *(f"{name}.dropped" for name in vector["transforms"])}
    for kind in ("transforms", "sinks"):
        for name, one in vector[kind].items():
            check(set(one["inputs"]) <= names, f"vector.toml: {name} reads {one['inputs']}")
    for name in ("vector.toml", "consumer-file.conf", "rsyslog.conf"):
        check("/var/log/trocar/events.jsonl" in parts.example(name), f"{name} names another file")
    check(f"--max-line-bytes {LINE_BYTES}" in parts.example("consumer-file.conf"),
          "consumer-file.conf has another limit than this test")
    check_drop_in(parts.example("consumer-file.conf"))


def test_sql_receives_every_line(world):
    world.rsyslog.start()
    world.test.spawn("deep", 60, 120, cgroup=world.test.cgroup("deep"))
    time.sleep(1)
    for _ in range(2):
        world.session()
    lines = world.settle()
    world.compare(lines)
    faults = [fault for line in lines for fault in harness.SCHEMAS.line_faults(line + b"\n")]
    check(not faults, "\n".join(faults[:5]))
    note(f"{len(lines)} lines")


def test_long_stacks_are_not_cut(world):
    """Stacks of 120 frames: lines at the limit, every part there, the frames of each stack in one piece."""
    stacks = [row for row in world.delivered() if row["type"] == "stack"]
    split = [s for s in stacks if "parts" in s]
    check(split, "no stack was long enough to be split")
    longest = max(len(line) + 1 for line in world.written())
    check(LINE_BYTES - 400 <= longest <= LINE_BYTES, f"the longest line has {longest} bytes")
    whole = {}
    for stack in split:
        whole.setdefault((stack["session"], stack["stack_id"]), []).append(stack)
    for parts_of in whole.values():
        numbers = sorted(s["part"] for s in parts_of)
        check(numbers == list(range(1, parts_of[0]["parts"] + 1)), f"parts {numbers}")
    deepest = max(sum(len(s["frames"]) for s in parts_of) for parts_of in whole.values())
    check(deepest >= 120, f"the deepest stack has {deepest} frames, not 120")
    note(f"longest line {longest} bytes, {len(whole)} stacks of several lines, {deepest} frames")


def by_hand(world, data):
    """A line that the consumer did not write, behind its own; returns it."""
    with open(world.lines, "ab") as stream:
        stream.write(data + b"\n")
    return data


def padded(world, length):
    """A valid line of `length` bytes, line end included."""
    line = {**json.loads(world.valid()[0]), "type": "padding", "pad": ""}
    line["pad"] = "x" * (length - len(json.dumps(line)) - 1)
    return json.dumps(line).encode()


def spoil(world, data, text):
    """A line that must be rejected for a reason with `text` in it, and hold up no line behind it."""
    world.bad.append(by_hand(world, data))
    until(lambda: world.postgres.number("SELECT count(*) FROM trocar_rejected") == len(world.bad), 10,
          lambda: f"not rejected: {data[:60]}...; rejected: {world.postgres.sql(REJECTED)}")
    reason = world.postgres.sql("SELECT reason FROM trocar_rejected ORDER BY received")[-1][0]
    check(text in reason, f"{data[:60]} was rejected for {reason}, not {text}")
    # A row that fails at a column has taken its number already: no second delivery.
    more = world.doubled() - world.redelivered
    check(more in (0, 1), f"{more} deliveries for one faulty line")
    world.redelivered += more


def test_rsyslog_cuts_behind_8096_bytes_and_not_before(world):
    """The limit is where docs/pipeline.md says it is, and a line of just that length passes whole."""
    by_hand(world, padded(world, LINE_BYTES))
    world.compare(world.settle())
    spoil(world, padded(world, LINE_BYTES + 2), "invalid input syntax for type json")
    cut = world.postgres.number("SELECT max(length(line)) FROM trocar_rejected")
    check(cut == LINE_BYTES, f"rsyslog cut behind {cut} bytes, not {LINE_BYTES}")


def test_other_lines_are_set_aside(world):
    """Text, JSON of another kind, a character that jsonb refuses, a byte that is no UTF-8: all leave the way free."""
    spoil(world, b"no JSON at all", "invalid input syntax for type json")
    spoil(world, b'{"v":1,"message":"no time"}', "null value")
    spoil(world, b'{"v":1,"ts":"yesterday-ish","type":"x"}', "invalid input syntax for type timestamp")
    spoil(world, b'{"v":1,"comm":"\\u0000","ts":"2026-01-01T00:00:00Z","type":"x"}', "Unicode")
    spoil(world, b'{"v":1,"comm":"it\'s \\"\xff"', "invalid input syntax for type json")
    world.compare(world.settle())


def test_one_query_gives_the_top_stacks_of_the_last_hour(world):
    """Its first row is the function that spins, with the weight that the lines add up to."""
    lines = [json.loads(line) for line in world.valid()]
    spin = [s for s in lines if s["type"] == "stack" and s["signal"] == "oncpu" and s["phase"] == "during" and
            "weight_ns" in s]
    rows = world.postgres.sql(QUERY.read_text(encoding="utf-8"))
    host, cgroup, comm, rule, cpu_s, percent, sessions, missing, frames = rows[0]
    check(frames.startswith("spin_at_the_bottom < descend_one_level < descend_one_level") or
          " < spin_at_the_bottom < descend_one_level" in frames, frames[:200])
    check(frames.count("descend_one_level") == 120, f"{frames.count('descend_one_level')} levels")
    check((comm, rule, sessions, missing) == ("deep", "deep", "2", "0"), f"{rows[0][:8]}")
    total = sum(float(row[4]) for row in rows)
    mine = sum(s["weight_ns"] for s in spin) / 1e9
    check(abs(total - mine) < 0.01 or len(rows) == 20, f"{total} s in SQL, {mine} s in the lines")
    note(f"{len(rows)} rows, first: {cpu_s} s, {percent} %, {frames[:60]}...")


def query(world, path, lines):
    """Its rows where the table has these lines alone; the table is as before then."""
    inserts = "".join(f"INSERT INTO trocar_lines (line) VALUES ($x${json.dumps(line)}$x$);" for line in lines)
    before = world.doubled()
    # A psql -c is one transaction, and one that does not commit leaves nothing, but the numbers that its rows have taken.
    rows = world.postgres.sql(f"BEGIN; DELETE FROM trocar_lines; {inserts} {path.read_text(encoding='utf-8')}")
    world.redelivered += world.doubled() - before
    return rows


def test_time_of_waiting_is_not_cpu_time(world):
    """Lines of a service that waited give no CPU seconds, and those of one that ran no seconds of waiting."""
    first = next(line for line in map(json.loads, world.valid()) if line["type"] == "stack" and line["phase"] == "during" and
                 line["signal"] == "oncpu" and "weight_ns" in line)
    stack = {key: first[key] for key in first if key not in ("part", "parts", "stack_id")}  # innermost
    waits = [{**stack, "signal": "offcpu", "wait": kind, "idle": idle, "weight_ns": 3 * 10**9, "threads": 1, "mono_ns": n}
             for n, (kind, idle) in enumerate((("lock", False), ("futex", True)))]
    check(query(world, QUERY, waits) == [], "CPU seconds of what waited")
    rows = query(world, WAITS, [stack, *waits])
    check([(row[4], row[5]) for row in rows] == [("lock", "3.000")], f"{rows}")
    check([float(row[4]) for row in query(world, QUERY, [stack, *waits])] == [round(stack["weight_ns"] / 1e9, 3)], "CPU time")


class Noise(threading.Thread):
    """Makes lines without pause until it is ended: the rule set is pushed again and again, each push one line
    with the next generation; now and then a session of many long lines."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.going, self.first, self.last, self.error = world, True, 0, 0, None
        self.text = world.agent.rules_file.read_text()

    def run(self):
        try:
            while self.going:
                self.last = self.world.agent.call("rules.set", {"text": self.text})["generation"]
                self.first = self.first or self.last
                time.sleep(0.01)
        except Exception as error:
            self.error = error

    def end(self):
        self.going = False
        self.join(10)
        check(not self.error and not self.is_alive(), f"rules.set: {self.error}")


def generations(noise, rows):
    """Every push from first to last has its one line: a witness that does not come from the files."""
    seen = [row["generation"] for row in rows if row["type"] == "rules.applied"
            and noise.first <= row["generation"] <= noise.last]
    check(sorted(seen) == list(range(noise.first, noise.last + 1)),
          f"{noise.last - noise.first + 1} pushes, {len(seen)} lines")
    return len(seen)


def test_three_rotations_lose_and_double_no_line(world):
    """logrotate with the documented file, under load: SIGHUP to the consumer, rsyslog follows."""
    rotation = parts.Logrotate(world.test.folder / "logrotate", world.lines, world.rsyslog.headlines,
                               f"{harness.USER} {harness.GROUP}", world.agent, world.rsyslog)
    noise = world.noise()
    inodes = []
    for number in range(3):
        inodes.append(world.lines.stat().st_ino)
        world.session(during_ms=300)
        time.sleep(1)  # the names of the rotated files go by the second
        rotation.rotate()
        until(lambda: world.lines.exists() and world.lines.stat().st_ino != inodes[-1], 5,
              "no new file after the rotation")
    time.sleep(0.5)
    noise.end()
    lines = world.settle()
    check(len(world.files()) == 4, f"{[p.name for p in world.files()]}")
    world.compare(lines)
    pushes = generations(noise, world.delivered())
    mode = world.lines.stat().st_mode & 0o777
    check(mode == 0o640, f"the new file has mode {mode:o}")
    note(f"{pushes} pushes, {[p.stat().st_size >> 10 for p in world.files()]} KiB")


def test_the_database_away_and_a_crashed_rsyslog_lose_no_line(world):
    """PostgreSQL stops, lines queue on disk, rsyslog is killed twice, PostgreSQL returns: each line once."""
    noise = world.noise()
    time.sleep(0.3)
    world.postgres.stop()
    for _ in range(2):
        time.sleep(0.7)
        world.rsyslog.stop(how=signal.SIGKILL)
        time.sleep(0.3)
        world.rsyslog.start()
    time.sleep(0.5)
    world.postgres.start()
    time.sleep(0.5)
    noise.end()
    lines = world.settle()
    world.redelivered = world.doubled()
    world.compare(lines)
    note(f"{generations(noise, world.delivered())} pushes, {world.redelivered} deliveries again")


def test_lines_of_files_can_be_delivered_again(world):
    """A hole is filled from the files, packed ones too, and nothing else changes."""
    world.postgres.sql("DELETE FROM trocar_lines WHERE (line->>'mono_ns')::bigint % 3 = 0")
    left = world.postgres.number("SELECT count(*) FROM trocar_lines")
    lines = world.valid()
    check(0 < left < len(lines), f"{left} of {len(lines)} rows left")
    rows = world.postgres.load("redeliver.sql", b"".join(line + b"\n" for line in lines))
    check(str(len(lines)) in rows, f"{len(lines)} lines: {rows}")
    world.redelivered = world.doubled()
    world.compare(lines)
    note(f"{len(lines) - left} of {len(lines)} lines were missing")


def test_the_writer_may_only_write_lines(world):
    """rsyslog's role: the function, and no table."""
    for table in ("trocar_lines", "trocar_rejected"):
        for text in (f"SELECT * FROM {table}", f"INSERT INTO {table} (line) VALUES ('{{}}')",
                     f"DELETE FROM {table}", f"DROP TABLE {table}"):
            done = world.postgres.sql(f"SET ROLE trocar_writer; {text}", expect=1)
            check("permission denied" in done.stderr or "must be owner" in done.stderr,
                  f"{text}: {done.stderr}")
    world.postgres.sql("SET ROLE trocar_writer; SELECT trocar_line(NULL)", expect=0)
    world.compare(world.valid())


def test_clickhouse_takes_the_lines_as_json_each_row(world):
    if not (os.path.exists(parts.CLICKHOUSE) and os.path.exists(parts.CLICKHOUSE_CLIENT)):
        raise harness.Skip("Debian packages are missing: clickhouse-server clickhouse-client")
    lines = world.valid()
    world.clickhouse = parts.ClickHouse(world.test.folder / "clickhouse")
    world.clickhouse.insert(lines)
    rows = world.clickhouse.ask("SELECT type, count(), sum(weight_ns), uniq(mono_ns), max(toUInt32(time)) "
                                "FROM trocar_lines GROUP BY type ORDER BY type")
    mine = {}
    for event in map(json.loads, lines):
        count, weight = mine.get(event["type"], (0, 0))
        mine[event["type"]] = (count + 1, weight + event.get("weight_ns", 0))
    check({row[0]: (int(row[1]), int(row[2])) for row in rows} == mine, f"{rows}, not {mine}")
    check(all(abs(int(row[4]) - time.time()) < 86400 for row in rows), f"times: {rows}")


def test_the_headlines_are_in_their_own_file(world):
    said = []
    for path in sorted(world.rsyslog.folder.glob("headlines.log*")):
        data = path.read_bytes()
        said += (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()
    ended = [e["headline"] for e in world.delivered() if e["type"] == "session.end"]
    check(len(said) >= len(ended) and all(any(row.endswith(h) for row in said) for h in ended),
          f"{len(said)} rows for {len(ended)} sessions: {said[:3]}")
    note(said[-1])


def test_the_consumer_counted_the_lines_that_are_there(world):
    """Its own count in `status` is the number of lines in the files; the last line is agent.stop, and comes."""
    lines = world.settle()
    said = world.agent.call("status")["output"]
    mine = sum(json.loads(line)["type"] != "padding" for line in lines)
    check((said["lines"], said["dropped_lines"], said["queued_bytes"]) == (mine, 0, 0),
          f"{mine} lines in the files, status says {said}")
    world.agent.stop()
    lines = world.settle()
    world.compare(lines)
    check(json.loads(lines[-1])["type"] == "agent.stop", f"the last line is {lines[-1][:200]}")
    note(f"{mine} lines")


def test_nothing_is_left_behind(world):
    """Every part ends, and what the agent had in the kernel is gone."""
    faults = world.close()
    check(not faults, "\n".join(faults))


def test_journald_check_can_fail():
    """The check of the journal, which tests/vm uses, refuses what it must."""
    done = subprocess.run([ROOT / "tests" / "pipeline" / "journald-check", "--self-test"], capture_output=True, text=True,
                          timeout=30, check=False)
    check(done.returncode == 0, done.stdout + done.stderr)
