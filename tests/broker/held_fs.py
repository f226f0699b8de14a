# SPDX-License-Identifier: BSD-2-Clause
"""A file system of one file that stops answering when it is told to: the FUSE protocol by hand
(include/uapi/linux/fuse.h), as much of it as a mapping takes."""
import ctypes
import errno
import os
import struct
import subprocess
import threading

from bed import LIBC, Skip

FILE = 2  # its node
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, FLUSH, INIT = 1, 2, 3, 14, 15, 17, 25, 26
HEADER = struct.Struct("=IIQQIIII")


def attributes(node, size):
    mode = 0o040755 if node == 1 else 0o100755
    return struct.pack("=6Q10I", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class HeldFs:
    def __init__(self, folder, content, device="/dev/fuse"):
        self.folder, self.content, self.held, self.asked = folder, content, False, threading.Event()
        self.asked_for = set()  # the operations, while it was held
        folder.mkdir()
        try:
            self.fd = os.open(device, os.O_RDWR)
        except OSError as why:
            raise Skip(f"{device}: {why}") from why
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        if LIBC.mount(b"trocar", str(folder).encode(), b"fuse", 0, options.encode()) != 0:
            why = os.strerror(ctypes.get_errno())
            os.close(self.fd)
            raise Skip(f"mount of a FUSE file system: {why}")
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _answer(self, opcode, node, body):
        """What goes behind the header; an errno, or None for no answer at all."""
        size = len(self.content) if node == FILE else 0
        if opcode == INIT:
            return struct.pack("=4I2H2I2H8I", 7, 31, 65536, 0, 8, 8, 65536, 1, 16, 0, *[0] * 8)
        if opcode == LOOKUP:
            if body != b"program\0":
                return errno.ENOENT
            return struct.pack("=4Q2I", FILE, 0, 3600, 0, 0, 0) + attributes(FILE, len(self.content))
        if opcode == GETATTR:
            return struct.pack("=Q2I", 0, 0, 0) + attributes(node, size)
        if opcode == STATFS:  # an overlay asks for the longest name
            return struct.pack("=5Q10I", 0, 0, 0, 0, 0, 4096, 255, 4096, *[0] * 7)
        if opcode == OPEN:
            return struct.pack("=Q2I", 0, 0, 0)
        if opcode == READ:
            offset, length = struct.unpack_from("=8xQI", body)
            return self.content[offset:offset + length]
        return errno.ENOSYS

    def _serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError:
                return  # unmounted
            _, opcode, unique, node, *_ = HEADER.unpack_from(request)
            if opcode == FORGET:
                continue
            if self.held and opcode != FLUSH:  # for that one a process waits at its end, also when it is killed
                self.asked.set()
                self.asked_for.add(opcode)
                continue
            answer = self._answer(opcode, node, request[HEADER.size:])
            data, error = (b"", -answer) if isinstance(answer, int) else (answer, 0)
            try:
                os.write(self.fd, struct.pack("=IiQ", 16 + len(data), error, unique) + data)
            except OSError:
                pass  # whoever asked has gone

    def close(self):
        """Forced, so that whoever still waits for an answer gets an error."""
        subprocess.run(["umount", "-f", "-l", str(self.folder)], check=False)
        self.thread.join(5)
        os.close(self.fd)
