#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sees by fanotify(7) every file that the consumer or a broker opens on the file systems of some paths, until standard
input ends; then it prints each once, as a JSON array of [who, path]:

  user_witness.py PARENT LOADER CONSUMER PATH...

`who` is "consumer" or "broker", by the program that a process runs, of children of PARENT and of children of those. A process that has gone before it could be looked
at is "gone"; of what those open only files are told that are given with a "!" before them."""
import ctypes
import errno
import json
import os
import select
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
EVENT = struct.Struct("=IBBHQii")
CLOEXEC, NONBLOCK, UNLIMITED_QUEUE = 1, 2, 0x10
ADD, FILESYSTEM, OPEN = 1, 0x100, 0x20
OVERFLOW = 0x4000


def listen(paths):
    fd = LIBC.fanotify_init(CLOEXEC | NONBLOCK | UNLIMITED_QUEUE, os.O_RDONLY | os.O_LARGEFILE | os.O_NONBLOCK)
    if fd < 0:
        sys.exit(f"fanotify_init: {os.strerror(ctypes.get_errno())}")
    for path in paths:
        if LIBC.fanotify_mark(fd, ADD | FILESYSTEM, ctypes.c_uint64(OPEN), -100, os.fsencode(path)) < 0:
            why = ctypes.get_errno()
            if why != errno.EEXIST:
                sys.exit(f"fanotify_mark {path}: {os.strerror(why)}")
    return fd


class Witness:
    def __init__(self, parent, programs, traps):
        self.family, self.programs, self.traps, self.seen = {parent}, programs, traps, set()

    def of(self, pid):
        """Who that process is; a number that is used again is asked for again."""
        try:
            who = self.programs.get(os.readlink(f"/proc/{pid}/exe"))
            if not who:
                return None
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
                parent = int(stream.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return "gone"
        if parent not in self.family:
            return None
        self.family.add(pid)
        return who

    def take(self, data):
        at = 0
        while at < len(data):
            length, _, _, _, mask, fd, pid = EVENT.unpack_from(data, at)
            at += length
            if mask & OVERFLOW:
                sys.exit("fanotify lost events")
            if fd < 0:
                continue
            who = self.of(pid)
            if who:
                path = os.readlink(f"/proc/self/fd/{fd}")
                if who != "gone" or path in self.traps:
                    self.seen.add((who, path))
            os.close(fd)


def next_events(fd):
    """None when there are none. An event whose file the kernel cannot open for us (a device without a driver, a socket)
    is gone with the error, and passed over."""
    while True:
        try:
            return os.read(fd, 1 << 16)
        except BlockingIOError:
            return None
        except OSError as why:
            if why.errno in (errno.EBADF, errno.EFAULT):
                raise


def main():
    parent, loader, consumer, *paths = sys.argv[1:]
    traps = {p[1:] for p in paths if p.startswith("!")}
    fd = listen([p for p in paths if not p.startswith("!")])
    witness = Witness(int(parent), {loader: "broker", consumer: "consumer"}, traps)
    print("ready", flush=True)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(sys.stdin, select.POLLIN | select.POLLHUP)
    ended = False
    while not ended:
        ready = [number for number, _ in poll.poll()]
        ended = 0 in ready
        while data := next_events(fd):
            witness.take(data)
    print(json.dumps(sorted(witness.seen)))


if __name__ == "__main__":
    main()
