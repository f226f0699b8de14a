# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/sockets/* bpf/kernel/kernel_socket.h consumer/evidence/sockets/socket*
# tests: consumer/evidence/sockets/session_sockets*
# tests: consumer/answer/find_sockets* ctl/render/text_report_sockets* shared/findings/socket_limits.h
"""The signal `socket`: what waits on connections, what came of those that were tried, and who is to blame, against what the
test did and what `ss` shows at the same moment."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from actors import Actor, Net, cable, capture, shown, slow_down, total
from harness import COMMAND, bpf_objects, check, command, rule, rules, until

ALL = ("oncpu", "offcpu", "pools", "syscall", "socket")
LONG = os.environ.get("TROCAR_LONG") == "1"
RUNS = 10 if LONG else 1  # of what must be found each time


def watched(t, signals=("oncpu", "socket"), net=None, **options):
    """(agent, an actor in the watched cgroup, its cgroup)"""
    agent = t.agent(rules(rule("peers", cgroup=f"/{t.name}-a", signals=list(signals))), **options)
    group = t.cgroup()
    actor = Actor(t, group, net)
    agent.wait("watch.start", cgroup=group.path)
    return agent, actor, group


def only(lines, **keys):
    found = [line for line in lines if all(line.get(key) == value for key, value in keys.items())]
    check(len(found) == 1, f"{keys}: {found} of {lines}")
    return found[0]


def first(end):
    check(end.get("findings"), f"no finding: {end}")
    return end["findings"][0]


def causes(end):
    return [finding["cause"] for finding in end.get("findings", ())]


def near(told, wanted, text, of=0.05):
    check(abs(told - wanted) <= of * wanted, f"{text}: {told}, not {wanted}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_connections_are_told(t):
    """Of both families, and of one mapped into the other: to the byte what was sent, read and left."""
    agent, actor, _ = watched(t)
    other = Actor(t)
    for address, family in (("127.0.0.1", 4), ("::1", 6), ("::", 4)):
        other.do(f"l{family} = listen({address!r})")
        port = other.do(f"l{family}.getsockname()[1]")
        to = "127.0.0.1" if family == 4 else "::1"
        actor.do(f"c = [connect({port}, {to!r}) for _ in range(3)]")
        other.do(f"a = [l{family}.accept()[0] for _ in range(3)]")
        actor.do("c[0].sendall(bytes(1000))")  # before anybody looks
        with capture(agent, "peers", 1500) as taken:
            time.sleep(0.5)
            actor.do("[x.sendall(bytes(5000)) for x in c]")
            other.do("[x.sendall(bytes(700)) for x in a]")
            actor.do("take(c[1], 200)")
        line = only(taken["lines"], way="opened", port=port)
        check(line["address"] == to and line["states"] == {"established": 3}, f"{line}")
        check(line["connections"] == {"first": 3, "last": 3, "most": 3}, f"{line}")
        check((line["bytes_out"], line["bytes_in"]) == (15000, 2100), f"{line}")
        check(line["unread_bytes"]["last"] == 1900, f"{line}")
        check(line.get("unsent_bytes", {"last": 0})["last"] == 0, f"{line}")  # a look may come while they are sent
        check(line["retransmits"] == 0 and "begun" not in line, f"{line}")
        rows = shown(port, side="dport")
        near(line["srtt"]["most"] / 1e6, max(row["rtt_ms"] for row in rows), "srtt", 0.5)
        check(total(rows, "recv_q") == 1900, f"{rows}")
        actor.do("[x.close() for x in c]")
        other.do("[x.close() for x in a]")


@pytest.mark.parallel(4)
def test_churn_is_told(t):
    """How many connections began, ended and failed, how, and how long they lasted; of those that nobody saw too."""
    agent, actor, _ = watched(t)
    other = Actor(t)
    port = other.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    refusing = other.do("(globals().update(r=listen()), r.getsockname()[1])[1]")
    other.do("r.close()")
    other.do("def one(): x = l.accept()[0]; take(x, 1000); x.sendall(bytes(10)); x.recv(1); x.close()")
    other.do("repeat(one)")
    with capture(agent, "peers", 4000) as taken:
        began_ns = time.monotonic_ns()
        actor.do("""exec('''
for _ in range(50):
    x = connect(%d); ask(x, 1000, 10); time.sleep(0.02); x.close()
for _ in range(20):
    try: connect(%d)
    except ConnectionRefusedError: pass
''')""" .replace("\n", "\\n") % (port, refusing))
        took_ns = time.monotonic_ns() - began_ns
    line = only(taken["lines"], way="opened", port=port)
    check((line["begun"], line["ended"], line["bytes_out"], line["bytes_in"]) == (50, 50, 50000, 500), f"{line}")
    check("reset" not in line and "lost" not in line, f"{line}")
    # A connection is over when its last end is acknowledged, which the next one does not wait for.
    check(50 * 20e6 <= line["life_ns"] <= took_ns * 1.1 and line["life"]["p50"] >= 20e6, f"{line} {took_ns}")
    check(0 < line["connect_ns"] <= took_ns - 50 * 20e6, f"{line} {took_ns}")
    check(only(taken["lines"], way="opened", port=refusing)["refused"] == 20, f"{taken['lines']}")
    sums = taken["end"]["sockets"]
    check((sums["begun"], sums["ended"], sums["refused"]) == (50, 50, 20), f"{sums}")
    lives = [h for h in agent.find("histogram", session=taken["end"]["session"]) if h["key"]["part"] == "life"]
    check(len(lives) == 1 and lives[0]["count"] == 50 and lives[0]["sum"] == line["life_ns"], f"{lives}")


@pytest.mark.parallel(3)
def test_against_ss(t):
    """A peer behind a slow cable: retransmits, round trips, unsent and unacknowledged bytes are those that ss shows."""
    (near_net, _), (far_net, far) = cable(t)
    slow_down(near_net, 2000, 150)
    agent, actor, _ = watched(t, net=near_net)
    other = Actor(t, net=far_net)
    port = other.do(f"(globals().update(l=listen({far!r})), l.getsockname()[1])[1]")
    actor.do(f"c = connect({port}, {far!r})")
    other.do("a = l.accept()[0]")
    other.do("repeat(lambda: a.recv(1 << 16))")
    before = shown(port, near_net)[0]
    with capture(agent, "peers", 4000) as taken:
        time.sleep(0.3)
        actor.do("c.sendall(bytes(500000))")
        until(lambda: shown(port, near_net)[0]["send_q"] == 0, 8, "the cable is too slow")
    after = shown(port, near_net)[0]
    line = only(taken["lines"], way="opened", port=port)
    check(line["retransmits"] == after["retransmits"] - before["retransmits"] > 0, f"{line} {after}")
    check(line["bytes_out"] == 500000 and line["segments_out"] == after["data_segs_out"], f"{line} {after}")
    check(line["srtt"]["most"] >= after["rtt_ms"] * 1e6 * 0.95, f"{line} {after}")
    with capture(agent, "peers", 1000) as taken:
        time.sleep(0.1)
    line = only(taken["lines"], way="opened", port=port)
    near(line["srtt"]["most"] / 1e6, after["rtt_ms"], "srtt, when nothing is sent any more")
    check(line["retransmits"] == 0 and line["bytes_out"] == 0, f"{line}")


@pytest.mark.parallel(3)
def test_waiting_bytes_against_ss(t):
    """Both ends of a connection on which nobody reads are watched: what waits in each queue is what ss shows."""
    agent, actor, _ = watched(t)
    port = actor.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    actor.do(f"c = connect({port})")
    actor.do("a = l.accept()[0]")
    sent = actor.do("fill(c)")
    with capture(agent, "peers", 1500) as taken:
        time.sleep(0.2)
    (out,), (back,) = shown(port), shown(port, side="sport")
    line = only(taken["lines"], way="opened", port=port)
    check(line["unsent_bytes"]["last"] == out["notsent"], f"{line} {out}")
    check(line.get("unacked_bytes", {}).get("last", 0) == out["send_q"] - out["notsent"], f"{line} {out}")
    check(line["stuck_looks"] == line["looks"] and line["stuck_ms"] >= 1500, f"{line}")
    near(line["full_ns"] / 1e6, taken["end"]["duration_ms"], "time without room", 0.1)
    line = only(taken["lines"], way="accepted", port=port)
    check(line["unread_bytes"]["last"] == back["recv_q"] == line["unread_bytes"]["first"], f"{line} {back}")
    check(line["unread_looks"] == line["looks"] and line["unread_ms"] >= 1500, f"{line}")
    check(back["recv_q"] + out["send_q"] == sent, f"{sent} {back} {out}")


def repeated(found):
    """Makes a test that runs one of the trials below RUNS times, and prints how often the right cause came first."""
    def test(t):
        right = 0
        for i in range(RUNS):
            right += found(t, i)
        print(f"# {found.__name__}: {right} of {RUNS} right")
        check(right == RUNS, f"{right} of {RUNS}")
    test.__name__, test.__doc__ = "test_" + found.__name__, found.__doc__
    globals()[test.__name__] = pytest.mark.serial(test)
    return found


def worlds(t, i, **options):
    """What each run has for itself: the first makes agent and cgroup."""
    if not i:
        t.made = watched(t, signals=ALL, **options)
    return t.made


@repeated
def slow_reader_is_found(t, i):
    """A server of the cgroup takes connections and does not read: that is the first finding, with its bytes and process."""
    agent, actor, _ = worlds(t, i)
    other = Actor(t)
    port = actor.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    other.do(f"c = connect({port})")
    actor.do("a = l.accept()[0]")
    sent = other.do("fill(c)")
    with capture(agent, "peers", 2000) as taken:
        time.sleep(0.2)
    end, line = taken["end"], only(taken["lines"], way="accepted", port=port)
    unread = shown(port, side="sport")[0]["recv_q"]
    near(line["unread_bytes"]["most"], unread, "unread")
    check(first(end)["cause"] == "slow_reader" and str(actor.pid) in first(end)["says"] and
          f"{unread / 1024:.1f} KiB" in first(end)["says"], f"{end['findings']} {sent}")
    check(first(end)["of"] == "session" and first(end)["explains_ms"] > 0.9 * end["duration_ms"], f"{end['findings']}")
    actor.do("(a.close(), l.close())")
    return causes(end)[0] == "slow_reader"


@repeated
def slow_receiver_is_found(t, i):
    """A client does not read what the cgroup sends, which goes on with other work: the client is named."""
    agent, actor, _ = worlds(t, i)
    other = Actor(t)
    port = actor.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    other.do(f"c = connect({port})")
    actor.do("a = l.accept()[0]")
    actor.do("fill(a)")
    with capture(agent, "peers", 2000) as taken:
        time.sleep(0.2)
    end, line = taken["end"], only(taken["lines"], way="accepted", port=port)
    near(line["unsent_bytes"]["most"], shown(port, side="sport")[0]["notsent"], "unsent")
    near(line["full_ns"] / 1e6, end["duration_ms"], "time without room", 0.1)
    check("does not read the data sent" in first(end)["says"], f"{end['findings']}")
    actor.do("(a.close(), l.close())")
    return causes(end)[0] == "slow_receiver"


@repeated
def slow_send_is_found(t, i):
    """The same where the thread waits in send: the wait is explained by that peer."""
    agent, actor, _ = worlds(t, i)
    other = Actor(t)
    port = other.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    actor.do(f"c = connect({port})")
    other.do("a = l.accept()[0]")
    actor.do("fill(c)")
    actor.begin("c.sendall(bytes(1 << 20))")
    with capture(agent, "peers", 2000) as taken:
        time.sleep(0.2)
    end = taken["end"]
    check(first(end)["cause"] == "slow_peer" and f"127.0.0.1:{port}" in first(end)["says"] and
          first(end)["share"] > 0.9 and first(end)["of"] == "waiting", f"{end['findings']}")
    other.do("(a.close(), l.close())")
    actor.process.stdout.readline()
    return causes(end)[0] == "slow_peer"


@repeated
def slow_cable_is_found(t, i):
    """Questions to a peer behind a slow cable: the peer is named, with the round trips and what was sent again."""
    if not i:
        t.nets = cable(t)
    (near_net, _), (far_net, far) = t.nets
    agent, actor, _ = worlds(t, i, net=near_net)
    slow_down(near_net, 4000, 300)
    other = Actor(t, net=far_net)
    port = other.do(f"(globals().update(l=listen({far!r})), l.getsockname()[1])[1]")
    actor.do(f"c = connect({port}, {far!r})")
    other.do("a = l.accept()[0]")
    other.do("def answer(): take(a, 200000); a.sendall(b'!')")
    other.do("repeat(answer)")
    actor.do("on = [True]")
    actor.do("def work(): on[0] and ask(c, 200000)")
    actor.do("repeat(work)")
    time.sleep(1.5)
    trips_ms = []
    with capture(agent, "peers", 3000) as taken:
        for _ in range(10):
            time.sleep(0.2)
            trips_ms.append(shown(port, near_net)[0]["rtt_ms"])
    end, line = taken["end"], only(taken["lines"], way="opened", port=port)
    actor.do("on.__setitem__(0, False)")
    # The actor's main thread waits too, for the test.
    check(first(end)["cause"] == "slow_peer" and far in first(end)["says"] and first(end)["share"] > 0.45,
          f"{end['findings']} {line}")
    # They go up and down with the queue of the cable.
    check(min(trips_ms) / 1.5 <= line["srtt"]["p50"] / 1e6 <= max(trips_ms) * 1.5, f"{line} {trips_ms}")
    return causes(end)[0] == "slow_peer"


@repeated
def full_queue_is_found(t, i):
    """Nobody accepts: the listener is named, with its queue, the limit and what was dropped."""
    agent, actor, _ = worlds(t, i)
    other = Actor(t)
    port = actor.do("(globals().update(l=listen(backlog=8)), l.getsockname()[1])[1]")
    other.do(f"c = [begin({port}) for _ in range(20)]")
    with capture(agent, "peers", 3000) as taken:
        time.sleep(0.2)
    end, line = taken["end"], only(taken["lines"], way="listens", port=port)
    row = shown(port, side="sport", state="listening")[0]
    check(line["queue"]["most"] == row["recv_q"] == 9 and line["queue_limit"] == row["send_q"] == 8, f"{line} {row}")
    check(line["drops"] >= 11 and line["full_looks"] == line["looks"], f"{line}")
    check(first(end)["cause"] == "accept_queue" and f"127.0.0.1:{port}" in first(end)["says"] and
          first(end)["explains_ms"] >= 0.99 * end["duration_ms"], f"{end['findings']}")
    actor.do("l.close()")
    other.do("[x.close() for x in c]")
    return causes(end)[0] == "accept_queue"


@repeated
def late_peer_is_no_slow_one(t, i):
    """A peer that answers late over a good net is `peer`, and the net is said to be none of it."""
    agent, actor, _ = worlds(t, i)
    other = Actor(t)
    port = other.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    actor.do(f"c = connect({port})")
    other.do("a = l.accept()[0]")
    other.do("def answer(): take(a, 10); time.sleep(0.4); a.sendall(b'!')")
    other.do("repeat(answer)")
    actor.do("on = [True]")
    actor.do("def work(): on[0] and ask(c, 10)")
    actor.do("repeat(work)")
    time.sleep(0.5)
    with capture(agent, "peers", 2000) as taken:
        time.sleep(0.2)
    end = taken["end"]
    actor.do("on.__setitem__(0, False)")
    check(first(end)["cause"] == "peer" and f"127.0.0.1:{port}" in first(end)["says"] and
          "the way to it is not slow" in first(end)["says"], f"{end['findings']}")
    return causes(end)[0] == "peer" and "slow_peer" not in causes(end)


@repeated
def nothing_is_found_of_work(t, i):
    """A server that answers at once, and its client: nothing is amiss with their sockets."""
    agent, actor, _ = worlds(t, i)
    other = Actor(t)
    port = actor.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    actor.do("def serve(): x = l.accept()[0]; take(x, 100); x.sendall(bytes(50000)); x.recv(1); x.close()")
    actor.do("repeat(serve)")
    other.do("on = [True]")
    other.do(f"def work(): x = connect({port}); ask(x, 100, 50000); x.close()")
    other.do("repeat(lambda: on[0] and work(), 0.005)")
    with capture(agent, "peers", 2000) as taken:
        time.sleep(0.2)
    other.do("on.__setitem__(0, False)")
    end = taken["end"]
    check(end["sockets"]["begun"] > 20, f"{end['sockets']}")
    return not {"slow_peer", "accept_queue", "slow_reader", "slow_receiver"} & set(causes(end))


@pytest.mark.parallel(4)
@pytest.mark.core
def test_every_namespace(t):
    """The consumer's own namespace does not matter: of two cgroup members in two others both are told of."""
    agent, actor, group = watched(t, net=Net(t))
    other = Actor(t, group, Net(t))
    ports = [each.do("(globals().update(l=listen()), l.getsockname()[1])[1]") for each in (actor, other)]
    with capture(agent, "peers", 800) as taken:
        time.sleep(0.1)
    for port in set(ports):
        only(taken["lines"], way="listens", port=port)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_many_peers(t):
    """More peers than lines: the rest is one line, and nothing is missing from the sums."""
    agent, actor, _ = watched(t)
    other = Actor(t)
    other.do("ls = [listen('127.0.0.%d' % (i + 1)) for i in range(60)]")
    ports = other.do("[l.getsockname() for l in ls]")
    actor.do(f"c = [connect(port, address) for address, port in {ports!r}]")
    with capture(agent, "peers", 1500) as taken:
        time.sleep(0.3)
        actor.do("[x.sendall(bytes(100)) for x in c]")
    rest = [line for line in taken["lines"] if "others" in line]
    check(len(rest) == 1 and rest[0]["others"] == 60 - 24 and len(taken["lines"]) == 25, f"{taken['lines']}")
    check(sum(line["connections"]["last"] for line in taken["lines"]) == 60, f"{taken['lines']}")
    check(sum(line["bytes_out"] for line in taken["lines"]) == 6000 == taken["end"]["sockets"]["bytes_out"], f"{taken}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_report(t):
    """The report has the table and the listeners, and explain a command that prints the lines on which a cause rests."""
    agent, actor, _ = watched(t, signals=ALL)
    other = Actor(t)
    port = actor.do("(globals().update(l=listen(backlog=2)), l.getsockname()[1])[1]")
    other.do(f"c = [begin({port}) for _ in range(6)]")
    with capture(agent, "peers", 1500) as taken:
        time.sleep(0.1)
    kept = t.folder / "kept"
    kept.write_bytes(b"".join(agent.raw))
    told = command(COMMAND, "report", "--full", kept).stdout
    check(f"listens at 127.0.0.1:{port}: at most 3 waited to be accepted (asked for 2), full in" in told, told)
    told = command(COMMAND, "explain", "--session", taken["end"]["session"], kept).stdout
    proof = re.search(r"what helps: accept sooner.*?it rests on: (jq -c '[^\n]*' )", told, re.S)
    check(proof, told)
    lines = [json.loads(line) for line in command("sh", "-c", proof[1] + str(kept)).stdout.splitlines()]
    check(any(line.get("port") == port and line["way"] == "listens" for line in lines), f"{lines}")


def attached(agent):
    shown_now = subprocess.run(["bpftool", "-j", "prog", "show", "pinned", agent.bpf / "socket_state"], check=True,
                               capture_output=True).stdout
    number = json.loads(shown_now)["id"]
    return sum(link.get("prog_id") == number for link in bpf_objects("link"))


def kept_words(agent):
    """Elements of the tables of the kernel side."""
    dump = command("bpftool", "-j", "map", "dump", "pinned", agent.bpf / "socket_sums").stdout
    return len(json.loads(dump))


@pytest.mark.serial
def test_detached_at_once(t):
    """The program is attached in a session alone, the tables are empty behind it, and both go when the consumer is killed."""
    agent, actor, _ = watched(t)
    port = actor.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    actor.do(f"c = connect({port})")
    check(attached(agent) == 0, "attached before a session")
    with capture(agent, "peers", 700):
        until(lambda: attached(agent) == 1, 5, "not attached in a session")
    until(lambda: attached(agent) == 0 and not kept_words(agent), 5, "attached, or something kept, after the session")
    asked = agent.call("session.start", {"rule": "peers", "during_ms": 10000})["session"]
    until(lambda: attached(agent) == 1 and kept_words(agent), 5, f"not attached again: {asked}")
    agent.stop(signal.SIGKILL, expect=-signal.SIGKILL)
    until(lambda: attached(agent) == 0, 2, "attached without the consumer")
    agent.start()
    agent.wait("watch.start", since=agent.mark)
    with capture(agent, "peers", 700) as taken:
        time.sleep(0.1)
    check(taken["end"]["sockets"]["begun"] == 0, f"{taken['end']}")
    until(lambda: not kept_words(agent), 5, "something is kept")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_looks_alone(t):
    """Without a broker there are looks, and the end says what is not counted."""
    agent, actor, _ = watched(t, broker=False)
    port = actor.do("(globals().update(l=listen()), l.getsockname()[1])[1]")
    actor.do(f"c = connect({port})")
    with capture(agent, "peers", 1500) as taken:
        time.sleep(0.2)
        actor.do("c.sendall(bytes(300))")
    check(taken["end"]["sockets"]["uncounted_reason"], f"{taken['end']}")
    check(only(taken["lines"], way="opened", port=port)["bytes_out"] == 300, f"{taken['lines']}")


@pytest.mark.parallel(4)
@pytest.mark.core
def test_one_process(t):
    """Of one process there are looks alone, and those at its own sockets."""
    agent, actor, group = watched(t)
    other = Actor(t, group)
    ports = [each.do("(globals().update(l=listen()), l.getsockname()[1])[1]") for each in (actor, other)]
    asked = agent.call("session.start", {"pid": actor.pid, "during_ms": 800, "signals": ["oncpu", "socket"]})["session"]
    end = agent.wait("session.end", session=asked)
    lines = agent.find("socket", session=asked)
    check([line["port"] for line in lines] == [ports[0]], f"{lines}")
    check("one process" in end["sockets"]["uncounted_reason"] and "begun" not in end["sockets"], f"{end}")
