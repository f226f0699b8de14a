# SPDX-License-Identifier: BSD-2-Clause
"""The broker's other side, as bytes: what shared/broker/broker.h says, written a second time, so that a change
of the layout there fails here. And what stands in for the service manager: a listening socket that starts
the broker when somebody connects, as a socket unit does."""
import array
import os
import pathlib
import re
import select
import socket
import struct
import subprocess
import threading

MAGIC = 0x6B72626F
HEADER = struct.Struct("=IIII")
ANSWER = struct.Struct("=IIIIiI")
REQUESTS = ["hello", "sampler_open", "signal_attach", "pressure_open", "mapping_open",
            "jit_map_open"]
BODIES = {"hello": "=II", "sampler_open": "=IHH", "signal_attach": "=II", "pressure_open": "=QII",
          "mapping_open": "=QQQII", "jit_map_open": "=QII"}
REFUSALS = ["none", "peer", "busy", "length", "descriptor", "version", "request", "sequence", "stage",
            "rate", "argument", "unwatched", "unknown_process", "other_process", "not_regular", "setuid",
            "not_elf", "gone", "kernel", "file_system", "other_owner",
            "other_namespace", "other_mount", "slow", "stuck", "events", "attached", "scope"]
ABI = pathlib.Path(__file__).resolve().parents[2] / "shared" / "abi" / "abi.h"
ABI_VERSION = int(re.search(r"^#define ABI_VERSION (\d+)u$", ABI.read_text(), re.M)[1])
WAIT_S = 10


def message(request, *body, sequence=1, magic=MAGIC, pad=0):
    """A request as bytes."""
    number = REQUESTS.index(request)
    return HEADER.pack(magic, number, sequence, pad) + struct.pack(BODIES[request], *body)


class Answer:
    def __init__(self, data, fds):
        (self.magic, self.request, self.sequence, refusal, self.error, self.count) = ANSWER.unpack(data)
        self.refusal, self.fds = REFUSALS[refusal], fds

    def __repr__(self):
        return f"{self.refusal} error {self.error} fds {self.fds} sequence {self.sequence}"

    def close(self):
        while self.fds:
            os.close(self.fds.pop())


class Client:
    """One connection. With hello=False it has said nothing yet."""

    def __init__(self, path, hello=True, wait_s=WAIT_S):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(wait_s)
        self.socket.connect(str(path))
        self.sequence = 0
        if hello:
            answer = self.ask("hello", ABI_VERSION, 0)
            if answer.refusal != "none":
                raise RuntimeError(f"hello: {answer}")

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], rights)

    def receive(self):
        """The next answer; None at the end of the connection."""
        try:
            data, rights, flags, _ = self.socket.recvmsg(256, socket.CMSG_SPACE(16 * 4))
        except ConnectionResetError:
            return None
        if not data:
            return None
        fds = array.array("i")
        for _, _, content in rights:
            fds.frombytes(content)
        if len(data) != ANSWER.size or flags & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
            raise RuntimeError(f"an answer of {len(data)} bytes, flags {flags}")
        return Answer(data, list(fds))

    def raw(self, data, fds=()):
        self.send(data, fds)
        return self.receive()

    def ask(self, request, *body):
        self.sequence += 1
        return self.raw(message(request, *body, sequence=self.sequence))


class Activator:
    """Listens at `path` and starts `command` with the socket whenever somebody waits there."""

    def __init__(self, path, command, mode=0o666, environment=None):
        self.path, self.command, self.environment = path, command, environment
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(str(path))
        os.chmod(path, mode)
        self.listening.listen(16)
        self.stop_r, self.stop_w = os.pipe()
        self.process, self.starts, self.said, self.statuses = None, 0, "", []
        self.busy = False  # a broker is being started, runs, or has not been waited for
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _start(self):
        with self.changed:
            self.busy = True  # before a client can have an answer of it
        read_end, write_end = os.pipe()
        environment = {**os.environ, **(self.environment or {}), "LISTEN_FDS": "1"}
        script = 'exec 3<&0 </dev/null; LISTEN_PID=$$ exec "$@"'
        process = subprocess.Popen(["/bin/sh", "-c", script, "sh", *map(str, self.command)],
                                   stdin=self.listening.fileno(), stdout=write_end, stderr=write_end,
                                   env=environment)
        os.close(write_end)
        with self.changed:
            self.process, self.starts = process, self.starts + 1
            self.changed.notify_all()
        said = b""
        while piece := os.read(read_end, 4096):
            said += piece
        os.close(read_end)
        status = process.wait()
        with self.changed:
            self.said += said.decode(errors="replace")
            self.statuses.append(status)
            self.process, self.busy = None, False
            self.changed.notify_all()

    def _run(self):
        while True:
            ready, _, _ = select.select([self.listening, self.stop_r], [], [])
            if self.stop_r in ready:
                return
            self._start()

    def wait(self, condition, seconds=WAIT_S):
        with self.changed:
            return self.changed.wait_for(condition, seconds)

    def gone(self, seconds=WAIT_S):
        """Waits until no broker runs. True when it is so."""
        return self.wait(lambda: not self.busy, seconds)

    def kill(self, number):
        """Sends the signal to the broker that runs. One may have answered before it is known here."""
        with self.changed:
            self.changed.wait_for(lambda: self.process or not self.busy, WAIT_S)
            if self.process:
                self.process.send_signal(number)

    def close(self):
        os.write(self.stop_w, b"x")
        with self.changed:
            if self.process:
                self.process.kill()
        self.thread.join(WAIT_S)
        self.listening.close()
        os.unlink(self.path)
