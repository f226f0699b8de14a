#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Socket activation without a service manager: a listening SOCK_SEQPACKET socket, and its server started
with it as descriptor 3 (sd_listen_fds(3)) whenever somebody connects and no server runs.

  activation.py SOCKET GROUP PROGRAM [ARGUMENT...]

does so for ./run until it is told to end, or its parent has ended; it leaves no socket and no server."""
import ctypes
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time

# A server that fails at its start leaves the connection waiting: not to be started at once again.
QUICK_S, AGAIN_S = 1, 0.5
PR_SET_PDEATHSIG = 1


class Activation:
    """Owns the socket and the servers that it started, one at a time."""

    def __init__(self, path, words, group, log):
        self.path, self.words, self.log = path, [str(word) for word in words], log
        self.starts, self.pid, self.statuses = 0, 0, []
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        os.chmod(path, 0o660)
        shutil.chown(path, group=group)
        self.listener.listen(16)
        self.told, self.tell = os.pipe()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            ready, _, _ = select.select([self.listener, self.told], [], [])
            with self.lock:
                if self.told in ready:
                    return
                self.pid = self._start()
                self.starts += 1
            began = time.monotonic()
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with self.lock:  # until it is reaped, its pid is nobody else's: see kill()
                _, status = os.waitpid(self.pid, 0)
                self.pid = 0
                self.statuses.append(os.waitstatus_to_exitcode(status))
            if self.statuses[-1] > 0 and time.monotonic() - began < QUICK_S:
                time.sleep(AGAIN_S)

    def _start(self):
        """The child does nothing but system calls between fork and exec: other threads hold locks."""
        environment = {"PATH": os.environ["PATH"], "LISTEN_FDS": "1"}
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        pid = os.fork()
        if pid:
            os.close(log)
            os.close(null)
            return pid
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.dup2(log, 2)
            os.dup2(self.listener.fileno(), 3)
            os.set_inheritable(3, True)
            environment["LISTEN_PID"] = str(os.getpid())
            os.execve(self.words[0], self.words, environment)
        finally:
            os._exit(127)

    def kill(self, how=signal.SIGKILL):
        """Ends the server that runs now, if one does: the socket stays."""
        with self.lock:
            if self.pid:
                os.kill(self.pid, how)

    def close(self):
        with self.lock:
            os.write(self.tell, b"x")
        end = time.monotonic() + 5
        while self.thread.is_alive() and time.monotonic() < end:
            self.kill(signal.SIGTERM if time.monotonic() < end - 2 else signal.SIGKILL)
            self.thread.join(0.05)
        for fd in (self.told, self.tell):
            os.close(fd)
        self.listener.close()
        os.unlink(self.path)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    path, group, *words = sys.argv[1:]
    ends = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    activation = Activation(path, words, group, "/dev/stderr")
    signal.sigwait(ends)
    activation.close()


if __name__ == "__main__":
    main()
