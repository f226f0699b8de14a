#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Asks the consumer for its status and, at the same moment, a server of its own that only echoes; until standard input
ends. Then it prints one JSON row per question:

  probe.py SOCKET PID

status_ms, echo_ms: from the question to the answer. agent_wait_ms, own_wait_ms: how long the consumer's main thread
and this process meanwhile were runnable and had no CPU (/proc/PID/schedstat); stolen_ms: how long the host ran
something else on one of our CPUs (/proc/stat): no fault of the consumer's. net_ms: status_ms without these.
agent_ran_ms: how long its main thread ran. stack: where in the kernel it was when the answer was LATE_MS late."""
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

PAUSE_S = 0.02
PATIENCE_S = 15
LATE_MS = 60
QUESTION = b'{"jsonrpc":"2.0","id":1,"method":"status"}\n'


def serve_echo(listener):
    while True:
        client, _ = listener.accept()
        client.sendall(client.recv(4096))
        client.close()


def start_echo(path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(4)
    pid = os.fork()
    if pid == 0:
        serve_echo(listener)
    listener.close()
    return pid


def schedule(pid):
    """(ran, waited for a CPU) of the main thread, in ms."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as stream:
        return [int(word) / 1e6 for word in stream.read().split()[:2]]


def stolen_ms():
    with open("/proc/stat", encoding="ascii") as stream:
        return int(stream.readline().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


def stack(pid):
    with open(f"/proc/{pid}/task/{pid}/stack", encoding="ascii") as stream:
        return [line.split()[1].split("+")[0] for line in stream][:6]


def ask(path):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(path)
    client.sendall(QUESTION)
    return client


def answered(client):
    """True when a whole answer, or the end, has come; what has come is not kept."""
    part = client.recv(65536)
    return not part or part.endswith(b"\n")


def measure(agent, path, echo):
    me = os.getpid()
    ran, waited = schedule(agent)
    _, own_waited = schedule(me)
    stolen = stolen_ms()
    row, began = {}, time.monotonic()
    waiting = {ask(path): "status", ask(echo): "echo"}
    poll = select.poll()
    for client in waiting:
        poll.register(client, select.POLLIN)
    by_number = {client.fileno(): client for client in waiting}
    while by_number and time.monotonic() - began < PATIENCE_S:
        ready = poll.poll(1000 if "stack" in row else LATE_MS)
        if not ready and "stack" not in row and "status_ms" not in row:
            row["stack"] = stack(agent)
        for number, _ in ready:
            client = by_number[number]
            if not answered(client):
                continue
            what = waiting[client]
            row[what + "_ms"] = 1000 * (time.monotonic() - began)
            if what == "status":
                now_ran, now_waited = schedule(agent)
                row |= {"agent_wait_ms": now_waited - waited, "agent_ran_ms": now_ran - ran,
                        "own_wait_ms": schedule(me)[1] - own_waited, "stolen_ms": stolen_ms() - stolen}
            poll.unregister(number)
            by_number.pop(number).close()
    for client in by_number.values():
        row[waiting[client] + "_ms"] = 1000 * PATIENCE_S
        client.close()
    row = {"at": began, "agent_wait_ms": 0, "agent_ran_ms": 0, "own_wait_ms": 0, "stolen_ms": 0, **row}
    row["net_ms"] = max(0, row["status_ms"] - row["agent_wait_ms"] - row["own_wait_ms"] - row["stolen_ms"])
    return row


class Probe:
    """This file as a process of its own, since whoever reads the event lines holds his interpreter. `end` returns the
    rows."""

    def __init__(self, agent):
        self.process = subprocess.Popen([sys.executable, __file__, str(agent.socket), str(agent.pid)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        agent.test.processes.append(self.process)

    def end(self):
        said, _ = self.process.communicate(timeout=60)
        return [json.loads(line) for line in said.splitlines()]


def show(rows, *keys):
    """Prints what the answers took, and the slowest of them."""
    for key in keys:
        values = sorted(row[key] for row in rows)
        print(f"# {key}: {len(rows)} answers, median {values[len(rows) // 2]:.1f}, "
              f"99 % {values[99 * len(rows) // 100]:.1f}, slowest {values[-1]:.1f}", flush=True)
    for row in sorted(rows, key=lambda row: -row["status_ms"])[:3]:
        print("#  ", {k: round(v, 1) if isinstance(v, float) else v for k, v in row.items()}, flush=True)


def main():
    path, agent = sys.argv[1], int(sys.argv[2])
    echo = f"{path}.echo"
    server = start_echo(echo)
    rows = []
    while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
        rows.append(measure(agent, path, echo))
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    os.unlink(echo)
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
