#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The inventory for docs/tutorial.md: answers on a TCP port. While the file SLOW exists it packs a copy of all its goods
before each answer, one answer at a time."""
import os
import socketserver
import sys
import threading
import zlib

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 7071
SLOW = sys.argv[2] if len(sys.argv) > 2 else "/tmp/inventory-slow"
goods, lock = os.urandom(3 << 20), threading.Lock()


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        self.rfile.readline()
        if os.path.exists(SLOW):
            with lock:
                zlib.compress(goods)
        self.wfile.write(b"yes\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", PORT), Answer).serve_forever()
