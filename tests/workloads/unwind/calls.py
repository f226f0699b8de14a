# SPDX-License-Identifier: BSD-2-Clause
"""Recursion, a sort that calls back, and dictionaries."""
import sys
import time


def recurses(depth):
    return sum(i * i for i in range(100)) if depth == 0 else recurses(depth - 1) + 1


def sorts_goods():
    return sorted(range(200), key=lambda i: i * 7919 % 1009)


END = time.monotonic() + int(sys.argv[1])
while time.monotonic() < END:
    recurses(10)
    sorts_goods()
    dict((str(i), i) for i in range(100))
