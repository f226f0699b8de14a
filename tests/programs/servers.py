# SPDX-License-Identifier: BSD-2-Clause
"""Servers under load: more than one command line. Each is handed the test's world, the cgroup of what is judged and a
folder of its own (and that of the sources); who asks it runs outside of the cgroup. All end with the test."""
import shutil
import socket
import time

from harness import Failure, command, until
from programs import start

LIFE = 240  # seconds
NOBODY = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
PORTS = {"apache": 18091, "haproxy": 18092, "haproxy back": 18093}


def limited(t, group, *words):
    """What runs in the cgroup, and ends with it."""
    return start(t, group, "timeout", "-s", "KILL", LIFE, *words)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def asks(t, port):
    start(t, None, "wrk", "-t", 1, "-c", 10, "-d", f"{LIFE}s", f"http://127.0.0.1:{port}/page.html")


def mariadb(t, group, out, _):
    data = out / "data"
    data.mkdir()
    shutil.chown(data, "nobody", "nogroup")
    command("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=nobody", "--skip-test-db",
            "--auth-root-authentication-method=normal", seconds=120)
    path = data / "s"
    limited(t, group, "mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={path}", "--skip-networking",
            "--user=nobody", f"--pid-file={data}/pid", "--innodb-buffer-pool-size=64M")
    until(path.exists, 60, "mariadbd does not listen")
    client = ("mariadb", "--no-defaults", f"--socket={path}", "-u", "root")
    command(*client, "-e", "create database sbtest")
    bench = ("sysbench", "oltp_read_write", f"--mysql-socket={path}", "--mysql-user=root", "--tables=2",
             "--table-size=2000", "--threads=4", f"--time={LIFE}")
    command(*bench, "prepare", seconds=120)
    start(t, None, *bench, "run")
    time.sleep(1)


def apache(t, group, out, _):
    (out / "page.html").write_text("goods " * 2000)
    modules = "/usr/lib/apache2/modules"
    loads = "".join(f"LoadModule {m}_module {modules}/mod_{m}.so\n"
                    for m in ("mpm_event", "authz_core", "mime", "filter", "deflate"))
    (out / "httpd.conf").write_text(f"""{loads}ServerRoot {out}
ServerName localhost
Listen 127.0.0.1:{PORTS["apache"]}
PidFile {out}/pid
ErrorLog {out}/error.log
DocumentRoot {out}
TypesConfig /etc/mime.types
User nobody
Group nogroup
SetOutputFilter DEFLATE
<Directory />
Require all granted
</Directory>
""")
    limited(t, group, "apache2", "-f", out / "httpd.conf", "-D", "FOREGROUND")
    until(lambda: answers(PORTS["apache"]), 20, "apache2 does not listen")
    start(t, None, "wrk", "-t", 1, "-c", 10, "-d", f"{LIFE}s", "-H", "Accept-Encoding: gzip",
            f"http://127.0.0.1:{PORTS['apache']}/page.html")


def haproxy(t, group, out, _):
    front, back = PORTS["haproxy"], PORTS["haproxy back"]
    (out / "haproxy.cfg").write_text(f"""global
    nbthread 2
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend goods
    bind 127.0.0.1:{front}
    acl by_path path_reg ^/(page|goods)[a-z]*[.]html?$
    http-request set-header X-Goods %[path,regsub([aeiou]+,x,g)]
    use_backend pages if by_path
    default_backend pages
backend pages
    server one 127.0.0.1:{back}
frontend answers
    bind 127.0.0.1:{back}
    http-request return status 200 content-type text/plain string "goods"
""")
    limited(t, group, "haproxy", "-db", "-f", out / "haproxy.cfg")
    until(lambda: answers(front), 20, "haproxy does not listen")
    asks(t, front)


ASKS_MEMCACHED = """
import signal, socket, sys
signal.alarm(240)
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
n = 0
while True:
    n = (n + 1) % 1000
    s.sendall(b"".join(b"set k%d 0 0 50 noreply\\r\\n%s\\r\\nget k%d\\r\\n" % (i, b"x" * 50, i) for i in range(n, n + 50)))
    left = 50
    while left:
        answer = s.recv(65536)
        if not answer:
            sys.exit()
        left -= answer.count(b"END")
"""


def memcached(t, group, out, _):
    path = out / "s"
    limited(t, group, "memcached", "-u", "root", "-s", path, "-a", "777", "-t", "2")
    until(path.exists, 10, "memcached does not listen")
    if not path.is_socket():
        raise Failure("memcached made no socket")
    for _ in range(2):
        start(t, None, "python3", "-c", ASKS_MEMCACHED, path)
