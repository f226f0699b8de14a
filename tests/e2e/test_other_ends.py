# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/waits/other_ends* bpf/waits/ends.h bpf/waits/look_seek.h bpf/waits/look_child.h bpf/sockets/descriptor_walk.h
# tests: consumer/sampling/other_ends* consumer/sampling/wait_objects* consumer/answer/follow_peers*
"""The processes at the other end of waits: the reader of a pipe, a server on TCP, a child; and their own waits."""
import os
import signal
import sys

import pytest

from harness import check, rule, rules, until

pytestmark = [pytest.mark.shares_kernel_side, pytest.mark.core]

# A thread for each wait: on a server that never answers, a full pipe to `sleep`, and a shell that waits for `sleep`.
CLIENT = """
import socket, subprocess, sys, threading, time
def ask():
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.sendall(b"hello")
    s.recv(10)
def write():
    with subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE) as reader:
        open("reader", "w").write(str(reader.pid))
        while True:
            reader.stdin.write(b"x" * 65536)
def child():
    subprocess.call(["sh", "-c", "sleep 600; true"])
for wait in ask, write, child:
    threading.Thread(target=wait, daemon=True).start()
time.sleep(600)
"""
SERVER = """
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(5)
open("port", "w").write(str(s.getsockname()[1]))
kept = [s.accept() for i in range(2)]
"""
SUPERVISOR = ["sh", "-c", f"{sys.executable} -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); "
              "s.listen(); s.accept()'; true"]


def filled(t, name):
    path = t.folder / name
    until(lambda: path.exists() and path.read_text(), 20, f"there is no {name}")
    return path.read_text()


def capture(agent, group, kinds):
    """A session that has named the other ends of these kinds: the search may take no longer than 500 ms, which other
    work on the machine can use up."""
    for _ in range(6):
        end, objects = capture_once(agent, group)
        if all(any(on["what"] == kind and "peer_pid" in on for on in objects) for kind in kinds):
            break
    return end, objects


def capture_once(agent, group):
    answer = agent.call("session.start", {"cgroup": group.path, "during_ms": 1500})
    end = agent.wait("session.end", session=answer["session"], seconds=15)
    stacks = agent.stacks(answer["session"], "offcpu")
    return end, [s["on"] for s in stacks if "on" in s]


def of_kind(objects, what):
    found = [on for on in objects if on["what"] == what and "peer_pid" in on]
    check(found, f"no process at the other end of a {what}: {objects}")
    return found


def says(end, cause):
    found = [f["says"] for f in end["findings"] if f["cause"] == cause]
    check(found, f"no finding {cause}: {end['findings']}")
    return found[0]


def test_named(t):
    """Each of the three waits names the process, and says where it is: the server outside of the captured cgroup too."""
    agent, group = t.agent(rules(rule("ends", comm="no-such"))), t.cgroup()
    server = t.run(sys.executable, "-c", SERVER)
    t.run(sys.executable, "-c", CLIENT, filled(t, "port"), cgroup=group)
    reader = int(filled(t, "reader"))
    until(lambda: len(group.pids()) == 4, 20, "its children are not there")
    end, objects = capture(agent, group, ("socket", "pipe", "child"))
    search = end["looks"]["other_ends"]
    check(search["named"] >= 2 and search["sought"] >= search["named"] and "reason" not in search, f"{search}")
    peer, = [on for on in of_kind(objects, "socket")]
    check(peer["peer_pid"] == server.pid and "peer_halt" not in peer, f"the server {server.pid} is {peer}")
    check(f", process {server.pid})" in says(end, "peer"), says(end, "peer"))
    pipe, = of_kind(objects, "pipe")
    check(pipe["peer_pid"] == reader and pipe["peer_comm"] == "sleep", f"the reader {reader} is {pipe}")
    check(f"a full pipe that leads to sleep, process {reader}; meanwhile sleep (process {reader}) slept 1." in
          says(end, "pipe"), says(end, "pipe"))
    said = says(end, "process")
    check("for sh, process " in said and "for sleep, process " in said and ") slept 1." in said, said)
    os.kill(server.pid, signal.SIGSTOP)
    end, objects = capture(agent, group, ("socket",))
    check(of_kind(objects, "socket")[0]["peer_halt"] == "stopped", f"the server is stopped: {objects}")
    check(", stopped by a signal)" in says(end, "peer"), says(end, "peer"))


def test_supervisor(t):
    """A shell that only waits for a server without clients, and a script that sleeps between jobs, are healthy."""
    agent = t.agent(rules(rule("ends", comm="no-such")))
    for number, words in enumerate((SUPERVISOR, ["sh", "-c", "while true; do sleep 600; done"])):
        group = t.cgroup(f"s{number}")
        t.run(*words, cgroup=group)
        until(lambda group=group: len(group.pids()) == 2, 20, "its child is not there")
        end, objects = capture(agent, group, ("child",))
        of_kind(objects, "child")
        check(not end["findings"], f"{words}: {end['headline']}")
