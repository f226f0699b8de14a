# SPDX-License-Identifier: BSD-2-Clause
"""Processes that do what a test tells them with sockets, where it puts them; namespaces of their own with a cable between;
and what `ss` shows of their sockets."""
import ast
import contextlib
import re
import subprocess
import sys

from harness import Skip, check, command, until

ACTOR = r"""
import socket, struct, sys, threading, time

def listen(address="127.0.0.1", backlog=128):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM)
    if address == "::":
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind((address, 0))
    s.listen(backlog)
    return s

def connect(port, address="127.0.0.1"):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.connect((address, port))
    return s

def begin(port, address="127.0.0.1"):
    "Begins to connect and waits for nothing."
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setblocking(False)
    s.connect_ex((address, port))
    return s

def fill(s):
    "Sends until nothing goes, and again, until the peer has no room either."
    sent, still, data = 0, 0, bytes(1 << 16)
    s.setblocking(False)
    while still < 40:
        try:
            sent += s.send(data)
            still = 0
        except BlockingIOError:
            still += 1
            time.sleep(0.01)
    s.setblocking(True)
    return sent

def take(s, n):
    while n:
        got = len(s.recv(min(n, 1 << 16)))
        if not got:
            raise EOFError
        n -= got

def repeat(work, pause=0.0):
    "Works until the end, in a thread."
    def go():
        while True:
            work()
            time.sleep(pause)
    threading.Thread(target=go, daemon=True).start()

def ask(s, n, answer=1):
    s.sendall(bytes(n))
    take(s, answer)

for line in sys.stdin:
    try:
        try:
            print(repr(eval(line, globals())), flush=True)
        except SyntaxError:
            exec(line, globals())
            print("None", flush=True)
    except Exception as error:
        print(repr(f"{type(error).__name__}: {error}"), flush=True)
"""


class Actor:
    """A process in `cgroup` (None: the test's own) and in the network namespace of `net` (None: the machine's)."""

    def __init__(self, t, cgroup=None, net=None):
        words = [*(net.enter() if net else ()), sys.executable, "-u", "-c", ACTOR]
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd=t.folder, preexec_fn=cgroup.join if cgroup else None)
        t.processes.append(self.process)

    @property
    def pid(self):
        return self.process.pid

    def begin(self, code):
        """Has it begin to do something; `end` returns the value."""
        self.process.stdin.write(code + "\n")
        self.process.stdin.flush()

    def end(self):
        line = self.process.stdout.readline()
        check(line, "an actor has ended")
        value = ast.literal_eval(line) if not line.startswith("<") else None
        check(not isinstance(value, str) or not re.match(r"[A-Za-z]*(Error|Exception)\b", value), f"an actor: {value}")
        return value

    def do(self, code):
        self.begin(code)
        return self.end()


class Net:
    """A network namespace, which lasts as long as a process in it."""

    def __init__(self, t):
        self.holder = t.run("unshare", "--net", "sleep", "600")
        until(lambda: self._is_apart(), 5, "no network namespace")
        self.run("ip", "link", "set", "lo", "up")

    def _is_apart(self):
        def number(pid):
            return command("readlink", f"/proc/{pid}/ns/net").stdout
        return number(self.holder.pid) != number("self")

    def enter(self):
        return "nsenter", "--net", "--target", self.holder.pid

    def run(self, *words, expect=0):
        return command(*self.enter(), *words, expect=expect)


def cable(t):
    """Two namespaces with a cable between them: (net, its address), twice."""
    a, b = Net(t), Net(t)
    made = a.run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", b.holder.pid, expect=None)
    if made.returncode:
        raise Skip(f"no virtual cable: {made.stderr}")
    for net, address in ((a, "10.77.0.1"), (b, "10.77.0.2")):
        net.run("ip", "address", "add", f"{address}/24", "dev", "cable")
        net.run("ip", "link", "set", "cable", "up")
    return (a, "10.77.0.1"), (b, "10.77.0.2")


def slow_down(net, kbit, latency_ms):
    """What goes out waits, and what waits too long is lost."""
    done = net.run("tc", "qdisc", "replace", "dev", "cable", "root", "tbf", "rate", f"{kbit}kbit", "burst", "4kb",
                   "latency", f"{latency_ms}ms", expect=None)
    if done.returncode:
        raise Skip(f"no queue that slows down: {done.stderr}")


def shown(port, net=None, side="dport", state="established"):
    """What `ss` shows of connections with this port: one dict each."""
    words = ("ss", "-tinOH", "state", state, f"( {side} = :{port} )")
    text = (net.run(*words) if net else command(*words)).stdout
    found = []
    for line in text.splitlines():
        words = line.split()
        # Without a column of states: only one is asked for.
        row = {"recv_q": int(words[0]), "send_q": int(words[1]), "local": words[2], "peer": words[3]}
        for key, value in re.findall(r"\b([a-z_]+):(\d+)(?![\d./])", line):
            row.setdefault(key, int(value))
        again = re.search(r"\bretrans:\d+/(\d+)", line)
        rtt = re.search(r"\brtt:([\d.]+)/", line)
        row.update(retransmits=int(again[1]) if again else 0, rtt_ms=float(rtt[1]) if rtt else None)
        found.append(row)
    return found


def total(rows, key):
    return sum(row.get(key, 0) for row in rows)


@contextlib.contextmanager
def capture(agent, rule, during_ms):
    """A session on request around what is done; the lines are there behind it."""
    asked = agent.call("session.start", {"rule": rule, "during_ms": during_ms})["session"]
    agent.wait("session.start", session=asked)
    taken = {}
    yield taken
    taken["end"] = agent.wait("session.end", session=asked, seconds=during_ms / 1000 + 20)
    taken["lines"] = agent.find("socket", session=asked)
