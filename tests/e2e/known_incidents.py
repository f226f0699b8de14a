# SPDX-License-Identifier: BSD-2-Clause
"""Incidents of servers, for test_known_incidents.py. Each begins with a service at work, then one thing goes wrong. An
incident names its cause for the test; it tells the agent nothing. The programs are in incidents/."""
import contextlib
import glob
import pathlib
import shutil
import socket
import subprocess
import time

from harness import Skip, command, until
from servers import Redis, Service

PROGRAMS = pathlib.Path(__file__).parent / "incidents"
PRESSURE = [{"pressure": "io", "some_ms": 200, "window_ms": 1000},
            {"pressure": "memory", "some_ms": 50, "window_ms": 1000}]
CPU = {"pressure": "cpu", "some_ms": 400, "window_ms": 1000}
QUIET = {"quiet_pct": 20}
QUIET_AFTER_S = 72  # so much of a series quiet_pct needs (docs/rules.md)
HEALTHY = None  # there is no cause: nothing is wrong
INCIDENTS = {}


class Incident:
    """`says`: a pattern that the headline matches, in any case. `when`: the conditions of the rule. `calm_s`: how long
    the service works before its fault. `after_s`: so long after it an operator asks, where no session has begun."""

    def __init__(self, play, says, when, calm_s, after_s):
        self.play, self.says, self.when, self.calm_s, self.after_s = play, says, when, calm_s, after_s

    @contextlib.contextmanager
    def begin(self, t):
        """The stage with its service at work, and the call that makes the fault."""
        stage = Stage(t)
        steps = self.play(stage)
        next(steps)
        try:
            yield stage, lambda: next(steps, None)
        finally:
            for undo in reversed(stage.undo):
                undo()


def incident(says, *when, calm_s=16, after_s=20):
    """Registers a generator function, which yields once when the service is at work, and then makes the fault."""
    def register(play):
        INCIDENTS[play.__name__] = Incident(play, says, [*PRESSURE, *when], calm_s, after_s)
        return play
    return register


def stuck(percent):
    return {"stuck_threads_pct": percent}


class Stage:
    """A service, and the programs beside it."""

    def __init__(self, t):
        self.t, self.service, self.undo = t, Service(t, "svc"), []
        self.flag, self.port, self.others = t.folder / "flag", free_port(), 0
        t.folder.chmod(0o755)

    def fault(self):
        self.flag.touch()

    def other(self, name):
        """Another cgroup."""
        return Service(self.t, name)

    def beside(self, *words, **options):
        """A process outside of the service's cgroup."""
        with open(self.t.folder / "beside.log", "ab") as log:
            process = subprocess.Popen([str(w) for w in words], **{"stdin": subprocess.DEVNULL, "stdout": log, **options},
                                       stderr=log, cwd=self.t.folder)
        self.t.processes.append(process)
        return process

    def clients(self, count, *words):
        for _ in range(count):
            self.beside(*role(*words))

    def listens(self):
        until(lambda: can_connect(self.port), 20, lambda: (self.t.folder / "log").read_text()[-2000:])


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def can_connect(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def role(*words):
    return ("/usr/bin/python3", "-I", PROGRAMS / "roles.py", *words)


def compile_c(stage, name):
    command("gcc", "-O1", "-g", "-pthread", "-o", stage.t.folder / name, PROGRAMS / f"{name}.c")
    return stage.t.folder / name


def compile_java(stage, name):
    need("java", "javac")
    command("javac", "-d", stage.t.folder, PROGRAMS / f"{name}.java", seconds=120)
    return ("java", "-Xmx96m", "-cp", stage.t.folder)


# ---- MariaDB

class MariaDB:
    """A server of its own in the service's cgroup, on a socket."""

    def __init__(self, stage, service):
        need("mariadbd", "mariadb-install-db")
        self.stage, folder = stage, stage.t.folder / "db"
        self.socket = folder / "db.sock"
        folder.mkdir()
        shutil.chown(folder, "mysql")
        command("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={folder}",
                "--auth-root-authentication-method=normal", "--skip-test-db", seconds=60)
        service.start("mariadbd", "--no-defaults", "--user=mysql", f"--datadir={folder}", f"--socket={self.socket}",
                      "--skip-networking", "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0",
                      "--innodb-lock-wait-timeout=120", "--lock-wait-timeout=120", log="db.log")
        until(self.socket.exists, 30, lambda: (stage.t.folder / "db.log").read_text()[-2000:])
        self.run("create database shop")
        self.run("use shop; create table stock(item int primary key, n int);"
                 "insert into stock select seq, 1000 from seq_1_to_200;"
                 "create table orders(id int auto_increment primary key, pad varchar(200))")

    def words(self):
        return ("mariadb", "--no-defaults", "-uroot", "-S", self.socket)

    def run(self, text):
        command(*self.words(), "-e", text)

    def repeat(self, text):
        """A client that runs the text again and again; $((RANDOM%200+1)) in it is a number."""
        line = " ".join(str(w) for w in (*self.words(), "shop"))
        self.stage.beside("bash", "-c", f'while :; do for i in $(seq 40); do echo "{text}"; done; done | {line}')

    def hold(self, text):
        """A client that runs the text and then does nothing, with its transaction open."""
        line = " ".join(str(w) for w in (*self.words(), "shop"))
        self.stage.beside("bash", "-c", f"(echo '{text}'; sleep 60) | {line}")


UPDATE = "update stock set n=n+1 where item=$((RANDOM%200+1)); select sleep(0.02);"
ALL_ROWS = "begin; update stock set n=n-1;"


@incident("lock_wait|row lock|innodb|waited [0-9]+ ms for a lock", stuck(20))
def mariadb_row_locks(stage):
    """An idle transaction has updated all rows; eight writers wait for its locks."""
    database = MariaDB(stage, stage.service)
    for _ in range(8):
        database.repeat(UPDATE)
    yield
    database.hold(ALL_ROWS)


@incident(HEALTHY, QUIET, stuck(30), calm_s=90, after_s=0)
def mariadb_healthy(stage):
    database = MariaDB(stage, stage.service)
    for _ in range(8):
        database.repeat("begin; update stock set n=n+1 where item=$((RANDOM%200+1)); select * from stock where item<20;"
                        "insert into orders(pad) values('xxxxx'); commit; select sleep(0.02);")
    yield


@incident(r"db\.sock|mariadb", QUIET, stuck(30))
def php_behind_row_locks(stage):
    """All workers of PHP-FPM wait for MariaDB, where an idle transaction holds the row that they update."""
    fpm = next(iter(glob.glob("/usr/sbin/php-fpm*")), None)
    if not fpm:
        raise Skip("php-fpm is not installed")
    database = MariaDB(stage, stage.other("db"))
    page, config = stage.t.folder / "x.php", stage.t.folder / "fpm.conf"
    page.write_text(f"<?php $m = new mysqli('localhost', 'root', '', 'shop', 0, '{database.socket}');\n"
                    "$m->query('update stock set n=n-1 where item='.(int)$_GET['i']); echo 'ok';\n"
                    "for ($i = 0; $i < 20000; $i++) $x = md5($i);\n")
    config.write_text(f"[global]\ndaemonize=no\nerror_log={stage.t.folder}/fpm.log\n[www]\nuser=www-data\ngroup=www-data\n"
                      f"listen=127.0.0.1:{stage.port}\npm=static\npm.max_children=6\n")
    stage.service.start(fpm, "-n", "-d", "extension=mysqlnd.so", "-d", "extension=mysqli.so", "-F", "-y", config)
    stage.listens()
    for number in range(1, 9):
        stage.clients(1, "fastcgi_client", stage.port, page, f"i={number}")
    yield
    database.hold(ALL_ROWS)


# ---- Apache, HAProxy, dnsmasq, Redis

APACHE = """ServerRoot /etc/apache2
ServerName localhost
PidFile {0}/apache.pid
DefaultRuntimeDir {0}
Mutex file:{0} default
Listen 127.0.0.1:{1}
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
TypesConfig /etc/mime.types
User www-data
Group www-data
ErrorLog {0}/apache.log
DocumentRoot {0}/www
<Directory {0}/www>
Require all granted
</Directory>
StartServers 8
MinSpareServers 8
MaxSpareServers 8
MaxRequestWorkers 8
ServerLimit 8
KeepAlive Off
Timeout 60
"""


@incident("client|listen queue|all.*workers", stuck(30))
def apache_slow_clients(stage):
    """All workers are held by clients that send a byte a second; new connections wait in the listen queue."""
    need("apache2")
    config = stage.t.folder / "apache.conf"
    config.write_text(APACHE.format(stage.t.folder, stage.port))
    (stage.t.folder / "www").mkdir()
    (stage.t.folder / "www" / "index.html").write_text("hello\n")
    stage.service.start("apache2", "-f", config, "-DFOREGROUND")
    stage.listens()
    stage.clients(4, "get", stage.port, 0.01)
    yield
    stage.clients(1, "slow_clients", stage.port)


HAPROXY = """global
 maxconn 200
 nbthread 2
defaults
 mode http
 timeout connect 30s
 timeout client 60s
 timeout server 60s
 retries 3
frontend f
 bind 127.0.0.1:{0}
 default_backend b
backend b
 server s1 127.0.0.1:{1}
"""


@incident("{backend}", QUIET, calm_s=QUIET_AFTER_S)
def haproxy_backend_hangs(stage):
    """The backend hangs, and its listen queue is full: connects are not answered."""
    need("haproxy")
    stage.backend = free_port()
    config = stage.t.folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(stage.port, stage.backend))
    stage.beside(*role("hanging_backend", stage.backend, stage.flag))
    stage.service.start("haproxy", "-f", config)
    stage.listens()
    stage.clients(8, "get", stage.port, 0.01)
    yield
    stage.fault()


@incident("frozen|freez|paused", QUIET, stuck(50), calm_s=QUIET_AFTER_S)
def redis_frozen(stage):
    """The cgroup is frozen, as by docker pause."""
    redis = Redis(stage.service, keys=1000)
    traffic = redis.traffic(100, 0.02)
    stage.undo.append(traffic.stop)
    yield
    freeze = stage.service.folder / "cgroup.freeze"
    freeze.write_text("1")
    stage.undo.append(lambda: freeze.write_text("0"))


# ---- Python, SQLite

@incident("pipe", stuck(30))
def stdout_pipe_full(stage):
    """The service logs to a pipe, whose reader has stopped reading."""
    reader = stage.beside(*role("log_reader", stage.flag), stdin=subprocess.PIPE)
    stage.service.start("bash", "-c", 'exec "$@" >&"$0"', reader.stdin.fileno(), *role("logging_service", stage.port),
                        pass_fds=[reader.stdin.fileno()])
    stage.listens()
    stage.clients(6, "line_client", stage.port)
    yield
    stage.fault()


@incident("lock.*state", stuck(30))
def flock_held(stage):
    """A job in another cgroup holds flock(2) on the state file."""
    state = stage.t.folder / "state"
    state.write_text("x")
    for _ in range(6):
        stage.service.start(*role("flock_worker", state))
    yield
    stage.other("cron").start(*role("flock_holder", state))


@incident(r"sqlite.*(busy|lock)|app\.db|busy", QUIET, stuck(30), calm_s=QUIET_AFTER_S)
def sqlite_busy(stage):
    """A job holds the database; the threads sleep in SQLite's busy handler."""
    database = stage.t.tmpfs("64m") / "app.db"
    stage.service.start(*role("sqlite_service", database))
    yield
    stage.beside(*role("sqlite_holder", database))


@incident("{backend}", stuck(30), after_s=22)
def hook_waits_to_connect(stage):
    """The workers wait for a hook, whose program connects to a full listen queue."""
    stage.backend = free_port()
    hook = stage.t.folder / "hook.sh"
    hook.write_text(f"[ -e {stage.flag} ] && /usr/bin/python3 -I -c 'import socket\n"
                    f"socket.create_connection((\"127.0.0.1\", {stage.backend}))'\ntrue\n")
    stage.beside(*role("full_queue", stage.backend))
    stage.service.start(*role("hook_service", hook))
    yield
    stage.fault()


@incident("pids|limit of (24|processes)|tasksmax|forks", QUIET, calm_s=QUIET_AFTER_S, after_s=14)
def pids_limit(stage):
    """The limit of processes is reached, and forks fail."""
    folder, _ = stage.service.place("pids")
    (folder / "pids.max").write_text("24")
    stage.service.start(*role("forking_service", stage.flag))
    yield
    stage.fault()
    time.sleep(3)


@incident("nice|priority", CPU, after_s=8)
def niced(stage):
    """The service has nice 19, beside a job of normal priority on the same CPU."""
    stage.service.start("nice", "-n", "19", "taskset", "-c", "0", *role("steady_service"))
    yield
    stage.other("batch").start("taskset", "-c", "0", stage.t.binary("burn_cpu", "batch"), 60, 1)


# ---- Java, Node, Go, C

@incident("garbage|collector", CPU, stuck(50), after_s=8)
def java_garbage(stage):
    """The heap is nearly full of live data."""
    stage.service.start(*compile_java(stage, "Gc"), "-XX:+UseParallelGC", "Gc", stage.flag)
    yield
    stage.fault()


@incident(HEALTHY, QUIET, stuck(30), calm_s=90, after_s=0)
def java_healthy(stage):
    stage.service.start(*compile_java(stage, "Pool"), "Pool", stage.port)
    stage.listens()
    stage.clients(4, "short_client", stage.port)
    yield


def node(stage, *flags):
    need("node")
    stage.service.start("node", *flags, PROGRAMS / "service.js", stage.port, stage.flag)
    stage.listens()


@incident("garbage|gc|collector|scaveng|mark-?compact", {"quiet_pct": 10}, after_s=25)
def node_garbage(stage):
    node(stage, "--max-old-space-size=80")
    stage.clients(1, "get", stage.port, 0.02)
    yield
    stage.fault()


@incident(HEALTHY, QUIET, stuck(30), calm_s=75, after_s=0)
def node_healthy(stage):
    node(stage)
    stage.clients(3, "get", stage.port, 0.03)
    yield


@incident("{backend}", QUIET, stuck(30), calm_s=QUIET_AFTER_S, after_s=16)
def go_mutex(stage):
    """A goroutine holds a mutex while it waits for an answer; no thread waits for that mutex."""
    need("go")
    stage.backend = free_port()
    program = stage.t.folder / "service"
    command("env", f"HOME={stage.t.folder}", f"GOCACHE={stage.t.folder}/cache", "GO111MODULE=off", "go", "build", "-o", program,
            PROGRAMS / "mutex.go", seconds=240)
    stage.beside(*role("slow_backend", stage.backend, stage.flag))
    stage.service.start(program, stage.port, stage.backend)
    stage.listens()
    stage.clients(6, "get", stage.port, 0.02)
    yield
    stage.fault()


@incident("each other|deadlock|accounts_lock.*audit_lock|audit_lock.*accounts_lock", stuck(40))
def deadlock(stage):
    """Two threads take two mutexes in opposite orders; six more wait for one of them."""
    stage.service.start(compile_c(stage, "bank"), stage.flag)
    yield
    stage.fault()


@incident("mmap|munmap|churn_buffers|populate", stuck(50), after_s=4)
def mmap_lock(stage):
    """Two threads map and unmap large areas all the time, eight others need the same lock of the kernel."""
    stage.service.start(compile_c(stage, "churn"), stage.flag)
    yield
    stage.fault()
