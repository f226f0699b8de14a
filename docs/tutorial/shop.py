#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A shop for docs/tutorial.md: 20 orders a second, 4 workers, and each order asks the inventory whether the goods are
there. The orders come whether or not the workers keep up. Prints a line every second: orders answered, orders waiting."""
import queue
import socket
import sys
import threading
import time

ORDERS, WORKERS = 20, 4
INVENTORY = ("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 7071)
orders, answered = queue.Queue(), 0


def work():
    global answered
    while True:
        order = orders.get()
        with socket.create_connection(INVENTORY) as asked:
            asked.sendall(b"%d\n" % order)
            asked.recv(16)
        answered += 1


for _ in range(WORKERS):
    threading.Thread(target=work, daemon=True).start()
for second in range(1000000):
    before = answered
    for order in range(ORDERS):
        orders.put(order)
        time.sleep(1 / ORDERS)
    print(f"answered {answered - before}, waiting {orders.qsize()}", flush=True)
