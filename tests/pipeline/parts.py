# SPDX-License-Identifier: BSD-2-Clause
"""The real parts of the pipeline, each its own process with its own folders and sockets below the test's
folder, ended by its pid: PostgreSQL, rsyslog with docs/pipeline/rsyslog.conf, logrotate, ClickHouse. The
configuration is the documented one; only paths and the way to signal are replaced, each replacement must hit."""
import glob
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess

from harness import ROOT, Failure, check, command, until

EXAMPLES = ROOT / "docs" / "pipeline"
RSYSLOGD, LOGROTATE = "/usr/sbin/rsyslogd", "/usr/sbin/logrotate"
CLICKHOUSE, CLICKHOUSE_CLIENT = "/usr/sbin/clickhouse-server", "/usr/bin/clickhouse-client"
MODULES = "/usr/lib/*/rsyslog"


def postgres_bin():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda p: int(p.split("/")[4]))
    return pathlib.Path(found[-1]).parent if found else None


def missing():
    """The Debian packages that are not here, by the files that are needed of them."""
    wanted = {"postgresql": postgres_bin(), "rsyslog": os.path.exists(RSYSLOGD),
              "rsyslog-pgsql": glob.glob(MODULES + "/ompgsql.so"),
              "logrotate": os.path.exists(LOGROTATE)}
    return [package for package, there in wanted.items() if not there]


def example(name, **replaced):
    """A file of docs/pipeline with its paths replaced; a path that is not in it is a failure."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    for old, new in replaced.get("paths", {}).items():
        check(old in text, f"docs/pipeline/{name} has no {old}")
        text = text.replace(old, str(new))
    return text


class Part:
    """One process of ours; `stop` ends it by its pid."""

    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir(mode=0o755)
        self.process = None

    def spawn(self, *words, **options):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, **options)

    def said(self):
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def stop(self, how=signal.SIGTERM, seconds=15):
        if not self.process:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure(f"{type(self).__name__} did not end within {seconds} s: {self.said()}") from None
        finally:
            self.process = None


class Postgres(Part):
    """A cluster of its own, on a socket below its folder only, that trusts peers as docs/pipeline.md says."""

    def __init__(self, folder):
        super().__init__(folder)
        self.data, self.sockets = folder / "data", folder / "run"
        shutil.chown(folder, "postgres", "postgres")
        self.bin = postgres_bin()
        self._as(self.bin / "initdb", "-D", self.data, "-A", "peer", "-E", "UTF8", "--locale=C",
                 "--no-sync")
        self._as("mkdir", self.sockets)
        with open(self.data / "pg_hba.conf", "w", encoding="ascii") as stream:
            stream.write("local trocar trocar_writer peer map=trocar\nlocal all postgres peer\n")
        with open(self.data / "pg_ident.conf", "w", encoding="ascii") as stream:
            stream.write("trocar root trocar_writer\n")
        self.start()
        self.sql("CREATE DATABASE trocar", database="postgres")
        self.sql(example("schema.sql"))

    _words = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups")

    def _as(self, *words, seconds=30, **options):
        return command(*self._words, *words, seconds=seconds, **options)

    def start(self):
        self.spawn(*self._words, self.bin / "postgres", "-D", self.data, "-k", self.sockets,
                   "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB",
                   "-c", "max_connections=10", cwd=self.data)
        until(lambda: self.ready(), 15, self.said)

    def ready(self):
        check(self.process.poll() is None, f"postgres ended: {self.said()}")
        return self._as(self.bin / "pg_isready", "-h", self.sockets, expect=None).returncode == 0

    def _psql(self, database="trocar"):
        return (self.bin / "psql", "-h", self.sockets, "-U", "postgres", "-d", database, "-X", "-q", "-A",
                "-t", "-F", "\x1f", "-v", "ON_ERROR_STOP=1")

    def sql(self, text, database="trocar", expect=None):
        """Rows of the last statement, as lists of text; with `expect` the command that ended so."""
        done = self._as(*self._psql(database), "-c", text, expect=expect or 0)
        return done if expect is not None else [row.split("\x1f") for row in done.stdout.splitlines() if row]

    def load(self, name, data):
        """Runs a file of docs/pipeline with `data` as its standard input; returns what it printed."""
        path = self.folder / "input"
        path.write_bytes(data)
        with open(path, "rb") as stream:
            done = subprocess.run([*map(str, self._words), *map(str, self._psql()), "-f", EXAMPLES / name],
                                  stdin=stream, capture_output=True, timeout=30, text=True)
        check(done.returncode == 0, f"{name}: {done.stderr}")
        return done.stdout.split()

    def number(self, text):
        return int(self.sql(text)[0][0])

    def stop(self, how=signal.SIGINT, seconds=15):
        """SIGINT is postgres's fast shutdown."""
        super().stop(how, seconds)


class Rsyslog(Part):
    """rsyslogd with the documented file and nothing else; `lines` is the file it follows."""

    def __init__(self, folder, lines, postgres):
        super().__init__(folder)
        (folder / "work").mkdir()
        self.headlines = folder / "headlines.log"
        snippet, self.main = folder / "30-trocar.conf", folder / "rsyslog.conf"
        snippet.write_text(example("rsyslog.conf", paths={
            "/var/log/trocar/events.jsonl": lines, "/var/log/trocar-headlines.log": self.headlines,
            "/run/postgresql": postgres.sockets, 'resumeInterval="5"': 'resumeInterval="1"'}))
        self.main.write_text(f'global(workDirectory="{folder}/work")\ninclude(file="{snippet}")\n')

    def verify(self):
        done = command(RSYSLOGD, "-N1", "-f", self.main, expect=None)
        check(done.returncode == 0 and "error" not in done.stderr.lower(),
              f"rsyslogd -N1: {done.stderr}")

    def start(self):
        self.spawn(RSYSLOGD, "-n", "-f", self.main, "-i", self.folder / "pid")


class Logrotate(Part):
    """logrotate with the documented file; the two signals go to our own processes instead of to units."""

    def __init__(self, folder, lines, headlines, owner, consumer, rsyslog):
        super().__init__(folder)
        self.config = folder / "trocar"
        self.config.write_text(example("logrotate.conf", paths={
            "/var/log/trocar/events.jsonl": lines, "/var/log/trocar-headlines.log": headlines,
            "su trocar adm": f"su {owner}",
            "systemctl kill --signal=HUP trocar-consumer.service": f"kill -HUP {consumer.pid}",
            "/usr/lib/rsyslog/rsyslog-rotate": f"kill -HUP {rsyslog.process.pid}"}))
        self.config.chmod(0o644)

    def rotate(self):
        command(LOGROTATE, "--force", "--state", self.folder / "state", self.config)


class ClickHouse(Part):
    """A server of its own on a free loopback port, with no more configuration than it needs."""

    def __init__(self, folder):
        super().__init__(folder)
        ports = [free_port(), free_port()]
        (folder / "users.xml").write_text("""<yandex><profiles><default/></profiles><quotas><default/></quotas>
            <users><default><password></password><profile>default</profile><quota>default</quota>
            <networks><ip>127.0.0.1</ip></networks></default></users></yandex>""")
        (folder / "config.xml").write_text(f"""<yandex><logger><level>warning</level>
            <log>{folder}/server.log</log><errorlog>{folder}/error.log</errorlog></logger>
            <http_port>{ports[0]}</http_port><tcp_port>{ports[1]}</tcp_port>
            <listen_host>127.0.0.1</listen_host><path>{folder}/</path><tmp_path>{folder}/tmp/</tmp_path>
            <mark_cache_size>5242880</mark_cache_size><users_config>{folder}/users.xml</users_config>
            <default_profile>default</default_profile><default_database>default</default_database>
            </yandex>""")
        self.client = (CLICKHOUSE_CLIENT, "--host", "127.0.0.1", "--port", ports[1])
        self.spawn(CLICKHOUSE, f"--config-file={folder}/config.xml", cwd=folder)
        until(self.ready, 20, self.said)
        self.ask(example("clickhouse.sql"))

    def ready(self):
        check(self.process.poll() is None, f"clickhouse-server ended: {self.said()}")
        return command(*self.client, "-q", "SELECT 1", expect=None).returncode == 0

    def ask(self, query):
        return [row.split("\t") for row in command(*self.client, "-q", query).stdout.splitlines()]

    def insert(self, lines):
        """As the head of docs/pipeline/clickhouse.sql says."""
        command_line = '--input_format_skip_unknown_fields=1 -q "INSERT INTO trocar_lines FORMAT JSONEachRow"'
        check(command_line in example("clickhouse.sql"), "clickhouse.sql says another command")
        done = subprocess.run([*map(str, self.client), *shlex.split(command_line)], timeout=30,
                              input=b"".join(line + b"\n" for line in lines), capture_output=True)
        check(done.returncode == 0, f"clickhouse-client: {done.stderr.decode()}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
