# SPDX-License-Identifier: BSD-2-Clause
"""roles.py ROLE [WORD...]: the parts that programs in Python play in the incidents: services, the parts that they need, and
their clients. FLAG is a file: the fault begins when it exists."""
import fcntl
import http.client
import http.server
import logging
import os
import random
import socket
import socketserver
import sqlite3
import struct
import subprocess
import sys
import threading
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def hold_while(flag):
    while os.path.exists(flag):
        time.sleep(0.2)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


# ---- services

def logging_service(port):
    """Logs each request to its standard output."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(threadName)s %(message)s")

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            for _ in self.rfile:
                logging.info("request %s", "x" * 300)
                self.wfile.write(b"ok\n")
    Server(("127.0.0.1", int(port)), Handler).serve_forever()


def flock_worker(path):
    with open(path, "r+", encoding="utf-8") as file:
        while True:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            file.write(str(time.time()))
            file.flush()
            sum(range(20000))
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(0.02)


def sqlite_service(path):
    def work():
        database = sqlite3.connect(path, timeout=60, isolation_level=None)
        while True:
            database.execute("update t set n = n + 1")
            database.execute("select n from t").fetchone()
            time.sleep(0.02)
    first = sqlite3.connect(path)
    first.execute("create table t(n int)")
    first.execute("insert into t values(1)")
    first.commit()
    for _ in range(6):
        threading.Thread(target=work).start()


def hook_service(hook):
    """Four workers that run a hook for each job."""
    def work():
        while True:
            subprocess.run(["/bin/sh", hook], check=False)
            sum(range(20000))
            time.sleep(0.2)
    for _ in range(4):
        threading.Thread(target=work).start()


def forking_service(flag):
    """From the fault on it leaves a child behind for each job."""
    left = []
    while True:
        try:
            if os.path.exists(flag):
                left.append(subprocess.Popen(["/bin/sleep", "1000"]))
            subprocess.run(["/bin/true"], check=False)
            time.sleep(0.05)
        except BlockingIOError:
            time.sleep(1)


def steady_service():
    while True:
        sum(range(60000))
        time.sleep(0.01)


# ---- the parts that they need

def log_reader(flag):
    """Reads its standard input, until the fault."""
    while not os.path.exists(flag) and os.read(0, 4096):
        pass
    time.sleep(300)


def flock_holder(path):
    with open(path, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(60)


def sqlite_holder(path):
    database = sqlite3.connect(path, isolation_level=None, timeout=20)
    database.execute("begin exclusive")
    time.sleep(60)


def hanging_backend(port, flag):
    """Accepts one connection after the other, until the fault."""
    with socket.create_server(("127.0.0.1", int(port)), backlog=2) as server:
        while True:
            hold_while(flag)
            connection, _ = server.accept()
            connection.recv(4096)
            connection.send(ANSWER)
            connection.close()


def slow_backend(port, flag):
    """Accepts all connections, and does not answer during the fault."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            hold_while(flag)
            self.wfile.write(ANSWER)

        def log_message(self, *_):
            pass
    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


def full_queue(port):
    """Its listen queue is full: a further connect() is not answered."""
    with socket.create_server(("127.0.0.1", int(port)), backlog=0):
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", int(port)))
        time.sleep(300)


# ---- clients

def get(port, rest_s):
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=100)
            connection.request("GET", "/")
            connection.getresponse().read()
            connection.close()
        except OSError:
            time.sleep(0.2)
        time.sleep(float(rest_s))


def line_client(port):
    """Sends lines over one connection, and reads an answer to each."""
    with socket.create_connection(("127.0.0.1", int(port))) as connection, connection.makefile("rwb") as file:
        while True:
            file.write(b"x\n")
            file.flush()
            file.readline()
            time.sleep(0.02)


def short_client(port):
    """A connection for each line."""
    while True:
        with socket.create_connection(("127.0.0.1", int(port))) as connection:
            connection.send(b"x\n")
            while connection.recv(9999):
                pass
        time.sleep(random.random() * 0.05)


def slow_clients(port):
    """Ten clients that send their request a byte a second."""
    clients = [socket.create_connection(("127.0.0.1", int(port))) for _ in range(10)]
    for each in clients:
        each.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-a: ")
    while True:
        time.sleep(1)
        for each in clients:
            each.send(b"a")


def fastcgi_client(port, script, query):
    """Asks a FastCGI server for a page, again and again."""
    def record(kind, content):
        return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content

    def pair(name, value):
        return struct.pack(">BB", len(name), len(value)) + name.encode() + value.encode()
    words = {"SCRIPT_FILENAME": script, "REQUEST_METHOD": "GET", "QUERY_STRING": query, "SCRIPT_NAME": "/x.php",
             "REQUEST_URI": "/x", "SERVER_PROTOCOL": "HTTP/1.1", "GATEWAY_INTERFACE": "CGI/1.1"}
    params = b"".join(pair(name, value) for name, value in words.items())
    request = (record(1, struct.pack(">HB5x", 1, 0)) + record(4, params) + record(4, b"") + record(5, b""))
    while True:
        try:
            with socket.create_connection(("127.0.0.1", int(port)), timeout=100) as connection:
                connection.sendall(request)
                while connection.recv(65536):
                    pass
        except OSError:
            pass
        time.sleep(0.05)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
