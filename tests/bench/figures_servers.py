# SPDX-License-Identifier: BSD-2-Clause
"""What a sample of a real server costs, with the kernel's frames and the server's: ours against bpftrace, against
what libbpf-tools' profile does, and against the kernel's helpers alone, in turn on the same threads."""
import contextlib
import os
import shutil
import socket
import subprocess

from figures_agent import watched
from figures_symbols import CODE
from servers import Postgres, Service
from table import Row, ratio
from world import PeerMissing, World, harness, tool

PEER = "profile:s:1000 { @[kstack, ustack, comm] = count(); }"  # it ticks on our events alone
REACH = {"kernel": 0.5, "user": 0.7}
RUNS_MIN = 10  # fewer ticks say nothing


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise PeerMissing(f"{program} is not installed")


def ask(w, port):
    """Requests over HTTP as fast as they are answered."""
    harness.until(lambda: listens(port), 10, "the server does not listen")
    w.run("wrk", "-t1", "-c8", "-d600s", f"http://127.0.0.1:{port}/")


def redis(w, group):
    need("redis-server", "redis-benchmark")
    port = free_port()
    w.run("redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", cgroup=group)
    harness.until(lambda: listens(port), 10, "redis does not listen")
    w.run("redis-benchmark", "-p", port, "-n", "1000000000", "-c", "8", "-t", "get,set", "-l", "-q")


def nginx(w, group):
    need("/usr/sbin/nginx", "wrk")
    port, config = free_port(), w.path("nginx.conf")
    (w.folder / "index.html").write_text("hello " * 100)
    paths = " ".join(f"{name}_temp_path {w.folder}/temp;" for name in ("client_body", "proxy", "fastcgi", "scgi", "uwsgi"))
    config.write_text(f"user root; daemon off; worker_processes 1; error_log {w.folder}/nginx.log; pid {w.folder}/nginx.pid;\n"
                      f"events {{ }}\nhttp {{ access_log off; {paths}\n"
                      f" server {{ listen 127.0.0.1:{port}; root {w.folder}; }} }}\n")
    w.run("/usr/sbin/nginx", "-c", config, "-p", w.folder, cgroup=group)
    ask(w, port)


def postgres(w, group):
    need("pgbench")
    service = Service.__new__(Service)
    service.t, service.group, service.places = w, group, {}
    server = Postgres(service, w.folder, options=("shared_buffers=64MB",))
    words = ["pgbench", "-h", server.folder, "-U", "postgres"]
    subprocess.run([*map(str, words), "-i", "-s", "2", "-q", "postgres"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    w.run(*words, "-S", "-c", "4", "-T", "600", "postgres")


def python3(w, group):
    need("wrk")
    port = free_port()
    w.run("/usr/bin/python3", CODE / "serve.py", port, cgroup=group)
    ask(w, port)


def node(w, group):
    need("node", "wrk")
    port = free_port()
    w.run(shutil.which("node", path="/usr/bin:/usr/local/bin"), CODE / "serve.js", port, cgroup=group)
    ask(w, port)


SERVERS = {"redis-server": redis, "nginx": nginx, "postgres": postgres, "python3": python3, "node": node}


def has_table(agent, group):
    pids = {int(pid) for pid in (group.folder / "cgroup.procs").read_text().split()}
    return any(event["type"] == "process.unwind" and event.get("pid") in pids for event in agent.events)


@contextlib.contextmanager
def watched_server(run, busy=False):
    """(its World, the agent that watches it, its group)"""
    with World("servers") as w:
        group = w.cgroup("server")
        rule = harness.rule("server", cgroup=group.path, cooldown_ms=0, pre_ms=0, signals=["oncpu"])
        agent = w.agent(harness.rules(rule), load=("--hz", "5"))
        run(w, group)
        watched(agent, "server")
        if busy:
            for _ in range(2 * os.cpu_count()):
                w.run("/usr/bin/python3", CODE / "busy.py", 600)
        yield w, agent, group


def start_session(agent, group):
    """Returns its number; it lasts 60 s."""
    started = agent.call("session.start", {"rule": "server", "during_ms": 60000})
    harness.until(lambda: has_table(agent, group), 10, "no process has a table")
    return started["session"]


def measure(run, hz, ms, rounds, busy):
    """(what bench-beside says, session.end's quality, why there is no bpftrace); at most 60 s of windows"""
    with watched_server(run, busy) as (w, agent, group):
        try:
            number, missing = w.bpftrace(PEER)[1], None
        except PeerMissing as why:
            number, missing = 0, f"peer missing: {why}"
        session = start_session(agent, group)
        found = tool("beside", agent.bpf, hz, ms, rounds, group.folder, number)
        agent.call("session.stop", {"session": session})
        return found, agent.wait("session.end", seconds=20)["stack_quality"], missing


def compare(run, hz, objects):
    """{mode: [(ns, ticks) of each object]}; some 16 s of windows that they share"""
    with watched_server(run) as (_, agent, group):
        start_session(agent, group)
        found = tool("beside", agent.bpf, hz, 600, 13, group.folder, 0, *objects)
    return {mode: [(each["ns"], each["runs"]) for each in costs.values()] for mode, costs in found.items()}


def rows_of(name, hz, busy, measured):
    found, quality, missing = measured
    whole = quality["complete"] / max(sum(quality[word] for word in ("complete", "truncated", "broken")), 1)
    for mode, reach in REACH.items():
        each = found[mode]
        walks, ours, peers = each["walk"]["ns"], each["ours"]["ns"], [each[who]["ns"] for who in ("peer", "profile") if who in each]
        if each["ours"]["runs"] < RUNS_MIN:
            continue
        close = [ratio(ours, peer) for peer in peers]
        yield Row(f"sample of {name}, {mode} tick, {hz} Hz{', busy' if busy else ''}, ns ({each['ours']['runs']} ticks, "
                  f"{whole:.1%} of stacks complete; an empty program {each['floor']['ns']:.0f}, the memory alone "
                  f"{each['least']['ns']:.0f}, the walks alone {walks:.0f}, {max(ratio(walks, peer) for peer in peers):.2f} x)",
                  f"{ours:.0f}",
                  f"<= {reach} x each peer, <= bare", f"{missing or 'bpftrace %.0f' % peers[0]}; as libbpf-tools' profile "
                  f"{each['profile']['ns']:.0f}; bare bpf_get_stack of both {each['bare']['ns']:.0f}", max(close),
                  max(close) <= reach and ours <= each["bare"]["ns"],
                  key=f"server_{mode}" if name == "redis-server" and hz == 97 and not busy else None)


def all_servers(short, hz, busy):
    ms, rounds = (500, 6) if short else (500, 7) if hz > 50 else (1700, 2)
    for name, run in SERVERS.items():
        try:
            yield from rows_of(name, hz, busy, measure(run, hz, ms, rounds, busy))
        except PeerMissing as why:
            yield Row(f"sample of {name}", str(why))
        if short:
            return


def servers(short):
    """price of a sample of real servers by the mode that the tick met, at 97 Hz"""
    yield from all_servers(short, 97, False)


def servers_slow(short):
    """the same at 19 Hz"""
    yield from all_servers(short, 19, False)


def servers_busy(short):
    """the same at 97 Hz beside other work for all CPUs"""
    yield from all_servers(short, 97, True)


def servers_chance(short):
    """what a build's samples of redis-server cost beside the same build's, which is chance"""
    del short
    try:
        for mode, ((ns, ticks), (other, _)) in compare(redis, 97, [harness.BUILD / "bpf/trocar.bpf.o"] * 2).items():
            if ticks < RUNS_MIN:
                continue
            yield Row(f"sample of redis-server, {mode} tick, 97 Hz, beside the same build, ns ({ticks} ticks)", f"{ns:.0f}",
                      "-", f"the same build {other:.0f}", ratio(ns, other))
    except PeerMissing as why:
        yield Row("sample of redis-server beside the same build", str(why))
