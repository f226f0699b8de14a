# SPDX-License-Identifier: BSD-2-Clause
# tests: loader/activate.c consumer/broker/*
"""trocar-activate, which stands in for trocar-broker.socket in a container: what it starts and when, what it holds
meanwhile, and what it leaves."""
import contextlib
import os
import pathlib
import signal
import socket
import stat
import subprocess
import time

import pytest
from bed import BUILD, LOADER, NOBODY, as_user, until
from client import ABI_VERSION, Client

ACTIVATE = BUILD / "loader" / "trocar-activate"
# Takes one connection, says who it is, and ends with the status that it is told.
SERVER = """#!/usr/bin/python3
import os, socket, sys
listening = socket.socket(fileno=3)
connection, _ = listening.accept()
caps = [row for row in open("/proc/self/status") if row.startswith("CapEff")][0].split()[1]
said = f"{os.environ['LISTEN_PID'] == str(os.getpid())} {os.environ['LISTEN_FDS']} {caps} {sys.argv[1]}"
connection.send(said.encode())
sys.exit(int(connection.recv(16) or b"0"))
"""


@contextlib.contextmanager
def activating(path, *command):
    with subprocess.Popen([ACTIVATE, path, *map(str, command)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as it:
        try:
            until(lambda: it.poll() is not None or path.exists() and stat.S_ISSOCK(path.stat().st_mode), 10, "a socket")
            yield it
        finally:
            it.kill()


def ask(path, answer=b"0"):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as own:
        own.settimeout(20)
        until(lambda: own.connect_ex(str(path)) == 0, 10, "it listens")
        said = own.recv(4096).decode()
        own.send(answer)
    return said


def status_of(pid, key):
    rows = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(row.split()[1] for row in rows if row.startswith(key + ":"))


def try_client(path):
    with contextlib.suppress(ConnectionRefusedError):
        return Client(path)
    return None


@pytest.fixture
def server(tmp_path):
    if not ACTIVATE.exists():
        pytest.skip(f"{ACTIVATE} is not built")
    path = tmp_path / "server"
    path.write_text(SERVER, encoding="ascii")
    path.chmod(0o755)
    return path


def test_starts(server, tmp_path):
    """At each connection anew, with the socket as systemd hands it over, and with root's capabilities back in effect."""
    path = tmp_path / "socket"
    own = status_of("self", "CapPrm")
    with activating(path, server, "word") as it:
        assert not list(pathlib.Path(f"/proc/{it.pid}/task/{it.pid}/children").read_text(encoding="ascii").split())
        for _ in range(3):
            assert ask(path) == f"True 1 {own} word"


def test_holds_nothing(server, tmp_path):
    """While it waits no capability is in effect, nothing new can be gained, and the socket is its group's."""
    path = tmp_path / "socket"
    with activating(path, server, "word") as it:
        until(lambda: status_of(it.pid, "CapEff") == "0" * 16, 5, "no capability in effect")
        assert status_of(it.pid, "NoNewPrivs") == "1"
        assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_survives(server, tmp_path):
    """One that fails is started again a second later; a connection is not lost meanwhile."""
    path = tmp_path / "socket"
    with activating(path, server, "word") as it:
        ask(path, b"3")
        began = time.monotonic()
        assert ask(path).startswith("True")
        assert time.monotonic() - began > 0.5
        assert it.poll() is None


def test_ends(server, tmp_path):
    """SIGTERM ends it and what it has started, and the socket is gone."""
    path = tmp_path / "socket"
    with activating(path, server, "word") as it, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as own:
        until(lambda: own.connect_ex(str(path)) == 0, 10, "it listens")
        own.recv(4096)
        child = int(pathlib.Path(f"/proc/{it.pid}/task/{it.pid}/children").read_text(encoding="ascii"))
        it.send_signal(signal.SIGTERM)
        assert it.wait(10) == 0
        until(lambda: not os.path.exists(f"/proc/{child}") or status_of(child, "State") in "ZX", 5, "its child ends")
    assert not path.exists()


def test_stale(server, tmp_path):
    """A socket of one that was killed is replaced; a file of that name is not touched."""
    path, file = tmp_path / "socket", tmp_path / "file"
    with activating(path, server, "word") as it:
        it.kill()
        it.wait()
    assert path.exists()
    with activating(path, server, "word"):
        assert ask(path).startswith("True")
    file.write_text("mine", encoding="ascii")
    with activating(file, server, "word") as it:
        assert it.wait(5) == 1 and "File exists" in it.stderr.read()
    assert file.read_text(encoding="ascii") == "mine"


@pytest.mark.parametrize("words", [[], ["/run/x"], ["x", "/bin/true"], ["/run/x", "true"]])
def test_usage(server, words):
    """Both paths are absolute, and both are there."""
    done = subprocess.run([ACTIVATE, *words], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2 and "usage: trocar-activate" in done.stderr


def test_broker(bed, server):
    """The broker itself answers behind it."""
    path = bed.folder / "activated"
    with activating(path, LOADER, "broker", "--bpf-dir", bed.bpf_dir, "--user", NOBODY):
        os.chmod(path, 0o666)
        with as_user(NOBODY):
            client = until(lambda: try_client(path), 10, "it listens")
        assert client.ask("hello", ABI_VERSION, 0).refusal == "stage", "it has said hello before"
