# SPDX-License-Identifier: BSD-2-Clause
"""Real servers in cgroups of their own, with the limits and counters of these cgroups wherever this host has them: in
cgroup2, or in v1 hierarchies beside it. A Witness reads the counters while a test runs, so that the test can say what
the agent should have said."""
import contextlib
import glob
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import harness
from harness import Skip, check, command, mounts, until

READ_S = 0.02


class Service:
    """A cgroup in which a server runs; `place` gives its folder in the hierarchy that has a controller."""

    V1 = {"io": "blkio"}

    def __init__(self, t, name):
        self.t, self.group, self.places = t, t.cgroup(name), {}
        self.path, self.folder = self.group.path, self.group.folder

    def place(self, controller):
        """(folder, whether it is of cgroup2). Processes that begin from now on are in it."""
        if controller not in self.places:
            self.places[controller] = self._make(controller)
        return self.places[controller]

    def _make(self, controller):
        if controller in (self.group.base / "cgroup.controllers").read_text().split():
            control = self.group.base / "cgroup.subtree_control"
            if controller not in control.read_text().split():
                control.write_text("+" + controller)
            return self.folder, True
        name = self.V1.get(controller, controller)
        mount = next((m[1] for m in harness.mounts() if m[2] == "cgroup" and name in m[3].split(",")), None)
        if not mount:
            raise Skip(f"the controller {name} is in no cgroup hierarchy")
        folder = pathlib.Path(mount) / self.group.name
        folder.mkdir()
        self.group.others.append(folder)
        return folder, False

    def _write(self, controller, file2, value2, file1, value1):
        folder, new = self.place(controller)
        (folder / (file2 if new else file1)).write_text(value2 if new else value1)

    def quota(self, percent):
        """Percent of one CPU; with so large a weight that no other work keeps the cgroup from using them."""
        self._write("cpu", "cpu.weight", "10000", "cpu.shares", "262144")
        self._write("cpu", "cpu.max", f"{percent * 1000} 100000", "cpu.cfs_quota_us", str(percent * 1000))

    def memory(self, mib):
        self._write("memory", "memory.max", f"{mib}M", "memory.limit_in_bytes", f"{mib}M")

    def read_limit(self, device, bytes_per_s):
        """`device` is "MAJOR:MINOR"; None: no limit any more."""
        self._write("io", "io.max", f"{device} rbps={bytes_per_s or 'max'}",
                    "blkio.throttle.read_bps_device", f"{device} {bytes_per_s or 0}")

    def write_limit(self, device, bytes_per_s):
        """As read_limit, of what is written."""
        self._write("io", "io.max", f"{device} wbps={bytes_per_s or 'max'}",
                    "blkio.throttle.write_bps_device", f"{device} {bytes_per_s or 0}")

    def start(self, *words, log="log", **options):
        """A process in the cgroups, ended with the test."""
        with open(self.t.folder / log, "ab") as out:
            process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       preexec_fn=self.group.join, **{"cwd": self.t.folder, **options})
        self.t.processes.append(process)
        return process

    # ---- counters, as a Witness takes them

    def _fields(self, controller, file2, file1):
        folder, new = self.place(controller)
        return dict(line.split()[:2] for line in (folder / (file2 if new else file1)).read_text().splitlines()), new

    def throttled_us(self):
        fields, new = self._fields("cpu", "cpu.stat", "cpu.stat")
        return int(fields["throttled_usec"]) if new else int(fields["throttled_time"]) / 1000

    def cpu_us(self):
        return int((self.folder / "cpu.stat").read_text().split()[1])

    def refaults(self):
        fields, _ = self._fields("memory", "memory.stat", "memory.stat")
        return int(fields["workingset_refault_file"]) + int(fields["workingset_refault_anon"])

    def reclaimed_bytes(self):
        """By memory.stat of cgroup2: v1 has no such number."""
        fields, _ = self._fields("memory", "memory.stat", "memory.stat")
        return int(fields["pgsteal"]) * os.sysconf("SC_PAGESIZE")

    def limit_hits(self):
        folder, new = self.place("memory")
        if not new:
            return int((folder / "memory.failcnt").read_text())
        return int(self._fields("memory", "memory.events", "")[0]["max"])

    def read_bytes(self, device):
        folder, new = self.place("io")
        text = (folder / ("io.stat" if new else "blkio.throttle.io_service_bytes")).read_text()
        for line in text.splitlines():
            words = line.split()
            if words[0] == device and new:
                return int(dict(w.split("=") for w in words[1:])["rbytes"])
            if words[:2] == [device, "Read"]:
                return int(words[2])
        return 0

    def io_counts(self, device):
        """{"read": (requests, bytes), "write": ...} that the cgroup asked of a device."""
        folder, new = self.place("io")
        if new:
            rows = [line.split() for line in (folder / "io.stat").read_text().splitlines()]
            keys = next(dict(word.split("=") for word in row[1:]) for row in rows if row[0] == device)
            return {name: (int(keys[f"{name[0]}ios"]), int(keys[f"{name[0]}bytes"])) for name in ("read", "write")}
        counts = [{}, {}]
        for found, file in zip(counts, ("io_serviced", "io_service_bytes")):
            for line in (folder / f"blkio.throttle.{file}").read_text().splitlines():
                words = line.split()
                if words[0] == device:
                    found[words[1].lower()] = int(words[2])
        return {name: tuple(found.get(name, 0) for found in counts) for name in ("read", "write")}

    def stalled_us(self, resource, kind="some"):
        text = (self.folder / f"{resource}.pressure").read_text()
        return next(int(line.split("total=")[1]) for line in text.splitlines() if line.startswith(kind))


class Witness(threading.Thread):
    """Reads counters 50 times a second; `grown` says by how much one grew between two moments of CLOCK_MONOTONIC."""

    def __init__(self, **counters):
        super().__init__(daemon=True)
        self.counters, self.read, self.ended = counters, [], threading.Event()
        self.start()

    def run(self):
        while not self.ended.is_set():
            with contextlib.suppress(FileNotFoundError):  # the cgroup has gone
                self.read.append((time.monotonic_ns(), {name: get() for name, get in self.counters.items()}))
            self.ended.wait(READ_S)

    def stop(self):
        self.ended.set()
        self.join()

    def _at(self, name, moment_ns):
        earlier = [r for r in self.read if r[0] <= moment_ns]
        later = [r for r in self.read if r[0] > moment_ns]
        if not earlier or not later:
            return (earlier[-1] if earlier else later[0])[1][name]
        (t0, one), (t1, two) = earlier[-1], later[0]
        return one[name] + (two[name] - one[name]) * (moment_ns - t0) / (t1 - t0)

    def grown(self, name, from_ns, to_ns):
        return self._at(name, to_ns) - self._at(name, from_ns)


class Repeat(threading.Thread):
    """Calls something again and again, `rest_s` apart, until the test ends it."""

    def __init__(self, call, rest_s):
        super().__init__(daemon=True)
        self.call, self.rest_s, self.ended = call, rest_s, threading.Event()
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while not self.ended.wait(self.rest_s):
                self.call()

    def stop(self):
        self.ended.set()
        self.join()


PINNED = ("taskset", "-c", str(max(os.sched_getaffinity(0))))  # all that has it shares one CPU


class Redis:
    """redis-server on a socket in the test's folder, with as many keys."""

    def __init__(self, service, keys, pinned=False, options=()):
        if not shutil.which("redis-server") or not shutil.which("redis-cli"):
            raise Skip("redis is not installed")
        self.service, self.socket = service, service.t.folder / "redis.sock"
        self.process = service.start(*(PINNED if pinned else ()), "redis-server", "--port", "0",
                                     "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
                                     "--enable-debug-command", "yes", "--dir", service.t.folder, *options)
        until(self.answers, 15, lambda: "redis does not answer")
        self.ask("DEBUG", "POPULATE", str(keys))

    def answers(self):
        check(self.process.poll() is None, "redis ended")
        with contextlib.suppress(OSError):
            return self.ask("PING").startswith(b"+PONG")

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(30)
        connection.connect(str(self.socket))
        return connection

    def ask(self, *words):
        with self.connect() as connection:
            return self.send(connection, 1, *words)

    @staticmethod
    def send(connection, times, *words):
        """So many equal requests at once, each with an answer that is short; returns the answers."""
        request = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)
        connection.sendall(request * times)
        answers = b""
        while answers.count(b"\r\n") < times * (2 if words[0] == "GET" else 1):
            part = connection.recv(1 << 20)
            check(part, "redis closed the connection")
            answers += part
        return answers

    def traffic(self, times, rest_s, *words):
        """A client that sends the words (else a GET), `times` at once."""
        connection = self.connect()
        return Repeat(lambda: self.send(connection, times, *(words or ("GET", "key:1"))), rest_s)

    def command_line(self, *words, program=("redis-cli",)):
        """redis-cli outside of the server's cgroups, ended with the test."""
        process = subprocess.Popen([*program, "-s", self.socket, *words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.service.t.processes.append(process)
        return process


    def flood(self):
        """As many requests as the server answers, from another CPU than that of PINNED."""
        return self.command_line("-n", "1000000000", "-c", "8", "-P", "8", "-t", "get",
                                 program=("taskset", "-c", str(min(os.sched_getaffinity(0))), "redis-benchmark"))


class Disk:
    """An ext4 file system on a loop device in the test's folder."""

    def __init__(self, t, mib):
        image, self.folder = t.folder / "disk.img", t.folder / "disk"
        with open(image, "wb") as stream:
            stream.truncate(mib << 20)
        self.folder.mkdir()
        command("mkfs.ext4", "-q", "-F", image)
        done = command("mount", "-o", "loop", image, self.folder, expect=None)
        if done.returncode:
            raise Skip(f"no loop device: {done.stderr}")
        t.mounted.append(self.folder)
        number = self.folder.stat().st_dev
        self.device = f"{os.major(number)}:{os.minor(number)}"
        self.name = os.path.basename(os.readlink(f"/sys/dev/block/{self.device}"))
        # v1 counts a request when it is made, however long it then waits: the reads ahead must be small to be few
        pathlib.Path(f"/sys/block/{self.name}/queue/read_ahead_kb").write_text("128")

    @contextlib.contextmanager
    def limited(self, service, bytes_per_s, write=False):
        """So slow for the service. What waits is let go at the end: nobody could be killed while it waits."""
        limit = service.write_limit if write else service.read_limit
        limit(self.device, bytes_per_s)
        try:
            yield
        finally:
            limit(self.device, None)


    @contextlib.contextmanager
    def slow(self, group, bytes_per_s):
        """What `group` writes through the page cache goes out so slowly. cgroup v1 charges it to the root, which has a
        limit of its own there."""
        root = next((pathlib.Path(m[1]) for m in mounts() if m[2] == "cgroup" and "blkio" in m[3].split(",")), None)
        if not root:
            group.writes(self.device, bytes_per_s)
            yield
            return
        limit = root / "blkio.throttle.write_bps_device"
        limit.write_text(f"{self.device} {bytes_per_s}")
        try:
            yield
        finally:
            limit.write_text(f"{self.device} 0")


class Postgres:
    """A cluster in `folder`, on a socket there."""

    AS = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups")

    def __init__(self, service, folder, pinned=False, options=()):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda p: int(p.split("/")[4]))
        if not found:
            raise Skip("postgresql is not installed")
        self.bin, self.service, self.folder = pathlib.Path(found[-1]).parent, service, folder / "cluster"
        self.folder.mkdir()
        shutil.chown(self.folder, "postgres", "postgres")
        command(*self.AS, self.bin / "initdb", "-D", self.folder, "-A", "trust", "--locale=C", "--no-sync")
        self.process = service.start(*(PINNED if pinned else ()), *self.AS, self.bin / "postgres", "-D", self.folder,
                                     "-k", self.folder, *(w for o in (*self.OPTIONS, *options) for w in ("-c", o)))
        until(self.ready, 15, lambda: (service.t.folder / "log").read_text()[-2000:])

    OPTIONS = ("listen_addresses=", "fsync=off", "shared_buffers=1MB", "max_connections=10", "autovacuum=off",
               "max_parallel_workers_per_gather=0", "synchronous_commit=off", "bgwriter_lru_maxpages=0")

    def ready(self):
        check(self.process.poll() is None, "postgres ended")
        return command(self.bin / "pg_isready", "-h", self.folder, expect=None).returncode == 0

    def _psql(self):
        return (self.bin / "psql", "-h", self.folder, "-U", "postgres", "-X", "-q", "-A", "-t")

    def sql(self, text):
        return command(*self._psql(), "-c", text).stdout.strip()

    def table(self, name, mib):
        """Rows of 1 KB; returns the table's file."""
        self.sql(f"CREATE TABLE {name} AS SELECT i, repeat('x', 980) AS pad FROM generate_series(1, {mib * 1024}) i")
        self.sql("CHECKPOINT")
        return self.folder / self.sql(f"SELECT pg_relation_filepath('{name}')")

    def session(self, text):
        """A client that runs the text, which may use psql's own commands; ended with the test."""
        script = self.service.t.folder / f"script{len(self.service.t.processes)}"
        script.write_text(text)
        process = subprocess.Popen([str(w) for w in (*self._psql(), "-f", script)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.service.t.processes.append(process)
        return process

    def repeat(self, query, rest_s):
        return self.session(f"{query} \\watch {rest_s}\n")


class Slow(http.server.BaseHTTPRequestHandler):
    """Answers after server.delay_s."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(self.server.delay_s)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Nginx:
    """nginx with one worker, which passes what it is asked to a server of ours that answers after `delay_s`. `keep`: it
    keeps its connections to that server. `others`: paths that it passes to other addresses; `files`: a folder whose
    files it sends below /files/, text compressed."""

    def __init__(self, service, delay_s, keep=False, pinned=False, others=None, files=None):
        if not os.access(self.PROGRAM, os.X_OK):
            raise Skip("nginx is not installed")
        folder = service.t.folder
        self.socket = folder / "nginx.sock"
        self.upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        self.upstream.delay_s, self.upstream.daemon_threads = delay_s, True
        threading.Thread(target=self.upstream.serve_forever, daemon=True).start()
        self.peer = f"127.0.0.1:{self.upstream.server_port}"
        config = folder / "nginx.conf"
        paths = " ".join(f"{name}_temp_path {folder}/temp;" for name in ("client_body", "proxy", "fastcgi", "scgi", "uwsgi"))
        kept = "proxy_http_version 1.1; proxy_set_header Connection '';" if keep else ""
        more = "".join(f"  location {path} {{ proxy_pass http://{to}; }}\n" for path, to in (others or {}).items())
        if files:
            more += f"  location /files/ {{ alias {files}/; gzip on; gzip_comp_level 9; }}\n"
        # the worker of a server that root starts is another user, and need not reach the test's folder
        config.write_text(f"user root; daemon off; worker_processes 1; error_log {folder}/nginx.log; pid {folder}/nginx.pid;\n"
                          f"events {{ }}\nhttp {{ access_log off; types {{ text/plain txt; }} gzip_types text/plain; gzip_http_version 1.0; {paths}\n"
                          f" upstream slow {{ server {self.peer}; {'keepalive 8;' if keep else ''} }}\n server {{ listen unix:{self.socket};\n"
                          f"  location / {{ {kept} proxy_pass http://slow; }}\n{more} }} }}\n")
        self.process = service.start(*(PINNED if pinned else ()), self.PROGRAM, "-c", config, "-p", folder)
        until(self.socket.exists, 15, lambda: (folder / "log").read_text()[-2000:])

    PROGRAM = "/usr/sbin/nginx"

    def ask(self, path):
        """The connection of its own over which something was asked."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(30)
        connection.connect(str(self.socket))
        connection.sendall(f"GET {path} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        return connection

    def get(self, path="/"):
        """One request, and its answer."""
        with self.ask(path) as connection:
            while connection.recv(1 << 16):
                pass

    def begin(self):
        """A client who has connected and has not asked yet."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.socket))
        return connection

    def connect(self):
        """A client whose one request is answered, and who stays."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(30)
        connection.connect(str(self.socket))
        connection.sendall(b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
        check(connection.recv(1 << 16).startswith(b"HTTP/1.1 200"), "nginx does not answer")
        return connection

    def traffic(self, rest_s, path="/"):
        return Repeat(lambda: self.get(path), rest_s)


def forget(path):
    """Takes the file out of the page cache."""
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
