# SPDX-License-Identifier: BSD-2-Clause
"""busy.py SECONDS: work that spreads over the interpreter and its compiled modules."""
import hashlib
import json
import re
import sys
import time
import zlib

END = time.monotonic() + float(sys.argv[1])
ROWS = [{"id": i, "name": f"row {i * 7919 % 2000}", "tags": ["a", "b", str(i)]} for i in range(2000)]


def sort_rows():
    return [row["id"] for row in sorted(ROWS, key=lambda row: row["name"])]


def copy_rows():
    return len(json.loads(json.dumps(ROWS)))


def match_rows():
    return sum(bool(re.search(r"(\d+)(?:1|3|5)$", row["name"])) for row in ROWS)


def pack_rows():
    text = json.dumps(ROWS).encode()
    return hashlib.sha256(zlib.compress(text)).hexdigest()


def count_words():
    words = {}
    for row in ROWS:
        for word in row["name"].split():
            words[word] = words.get(word, 0) + 1
    return len(words)


WORK = (sort_rows, copy_rows, match_rows, pack_rows, count_words)
turn = 0
while time.monotonic() < END:
    WORK[turn % len(WORK)]()
    turn += 1
