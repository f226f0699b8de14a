# SPDX-License-Identifier: BSD-2-Clause
"""Judges stacks without the agent's names: by the bytes of the files that it names, and the offsets in them."""
import bisect
import contextlib
import os
import re
import struct
import subprocess

WINDOW = 64  # bytes: more than lie between a thread's first instruction of clone and its last call
# What stands behind the call of a thread's function: exit(2) with what it returned. glibc, musl; i386.
THREAD_ENDS = re.compile(rb"\x89\xc7(?:\xb8\x3c\0\0\0|\x31\xc0\xb0\x3c)\x0f\x05|\x89\xc3\xb8\x01\0\0\0\xcd\x80"
                         rb"|\x89\xc3\x31\xc0\xb0\x01(?:\xcd\x80|\x65\xff\x15)")
SYSTEM_CALL = re.compile(rb"\x0f\x05|\xcd\x80|\x65\xff\x15\x10\0\0\0|\x0f\x34")
# mov %eax,%edi; call. i386: add $16,%esp; sub $12,%esp; push %eax; call.
MAIN_ENDS = re.compile(rb"(?:\x89\xc7|\x83\xc4\x10\x83\xec\x0c\x50)\xe8(....)", re.DOTALL)
RESTORER = b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05"  # rt_sigreturn(2)
ROOTS = ("_start", "clone", "__clone", "clone3", "__clone3", "vfork", "__vfork")
ROW = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) [TtWwiu] (.+)$")
CALLS_BY_MEMORY = range(2, 8)  # lengths of call *operand, its prefix not counted


def modrm_bytes(code):
    """How many bytes the operand takes that begins with the ModRM byte code[0]."""
    mode, register = code[0] >> 6, code[0] & 7
    if mode == 3:
        return 1
    extra = 0
    if register == 4:
        extra = 1
        if mode == 0 and len(code) > 1 and code[1] & 7 == 5:
            extra += 4
    elif mode == 0 and register == 5:
        extra = 4
    return 1 + extra + {0: 0, 1: 1, 2: 4}[mode]


def is_call(before):
    """Whether these bytes end with a call: e8 and a distance, or ff with an operand whose ModRM byte says /2."""
    if len(before) >= 5 and before[-5] == 0xe8:
        return True
    for length in CALLS_BY_MEMORY:
        code = before[-length:]
        if len(code) == length and code[0] == 0xff and code[1] >> 3 & 7 == 2:
            if modrm_bytes(code[1:]) == length - 1:
                return True
    return False


def debug_file(build_id):
    path = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    return path if build_id and os.path.exists(path) else None


class File:
    """A program or library: its code, where its segments lie, where code begins that nobody calls."""

    def __init__(self, path, build_id=""):
        with open(path, "rb") as stream:
            self.data = stream.read()
        if self.data[:4] != b"\x7fELF":
            raise ValueError(f"{path} is no ELF file")
        self.bits = 64 if self.data[4] == 2 else 32
        self._segments()
        self.starts, self.symbols = [], []
        self.roots = list(self._roots(path, debug_file(build_id)))
        self.main_callers = set(self._main_callers())

    def _segments(self):
        if self.bits == 64:
            self.entry, table = struct.unpack_from("<QQ", self.data, 24)
            size, count = struct.unpack_from("<HH", self.data, 54)
        else:
            self.entry, table = struct.unpack_from("<II", self.data, 24)
            size, count = struct.unpack_from("<HH", self.data, 42)
        self.loads = []  # address, file offset, bytes in the file, whether it is code
        for i in range(count):
            if self.bits == 64:
                kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", self.data, table + i * size)
            else:
                kind, offset, address, _, length, _, flags = struct.unpack_from("<7I", self.data, table + i * size)
            if kind == 1:
                self.loads.append((address, offset, length, flags & 1))

    def offset_of(self, address):
        for begin, offset, length, _ in self.loads:
            if begin <= address < begin + length:
                return address - begin + offset
        return None

    def _functions(self, *paths):
        """(file offset, bytes, name) of each function that one of these files names."""
        for path, words in paths:
            done = subprocess.run(["nm", "-S", "--defined-only", *words, path], capture_output=True, text=True,
                                  errors="replace", check=False)
            for row in done.stdout.splitlines():
                if match := ROW.match(row):
                    offset = self.offset_of(int(match[1], 16))
                    if offset is not None:
                        yield offset, int(match[2], 16), match[3].split("@")[0]

    def _roots(self, path, debug):
        """(first byte, byte behind the last) of what nobody calls."""
        sources = [(path, ()), (path, ("-D",))] + ([(debug, ())] if debug else [])
        self.symbols = sorted(set(self._functions(*sources)))
        self.starts = [s[0] for s in self.symbols]
        entry = self.offset_of(self.entry)
        if entry is not None and self.function(entry)[0] != entry:
            halt = self.data.find(b"\xf4", entry, entry + WINDOW)
            yield entry, halt + 1 if halt >= 0 else entry + WINDOW
        for offset, size, name in self.symbols:
            if name in ROOTS:
                yield offset, offset + size
        for _, offset, length, code in self.loads:
            if code:
                for end in THREAD_ENDS.finditer(self.data, offset, offset + length):
                    begin = SYSTEM_CALL.search(self.data, end.start() - WINDOW, end.start())
                    yield begin.start() if begin else end.start(), end.end()

    def _main_callers(self):
        """Return addresses in glibc's caller of main, which ends the process with what main returns: after a call, exit
        is called."""
        exits = {offset for offset, _, name in self.symbols if name == "exit"}
        for match in MAIN_ENDS.finditer(self.data) if exits else ():
            if match.end() + struct.unpack("<i", match[1])[0] in exits and is_call(self.data[:match.start()][-8:]):
                yield match.start()

    def is_root(self, offset, names):
        if any(begin <= offset < end for begin, end in self.roots):
            return True
        return bool(names) and any(re.search(pattern, self.function(offset - 1)[1]) for pattern in names)

    def function(self, offset):
        """(file offset of the function, its name); (0, "") where the file does not name any."""
        i = bisect.bisect_right(self.starts, offset) - 1
        while i >= 0 and self.starts[i] + (1 << 20) > offset:
            begin, size, name = self.symbols[i]
            if begin <= offset < begin + max(size, 1):
                return begin, name
            i -= 1
        return 0, ""

    @property
    def names_main(self):
        return any(name == "main" for _, _, name in self.symbols)

    def jumps(self, name, offset):
        """Whether the function `name` ends with a jump to that of `offset`: then it has no frame of its own."""
        target = self.function(offset - 1)[0]
        return any(begin + i + length + struct.unpack_from(form, self.data, begin + i + 1)[0] == target
                   for code, length, form in ((0xe9, 5, "<i"), (0xeb, 2, "<b"))
                   for begin, size, found in self.symbols if found == name
                   for i in range(max(0, size - length + 1)) if self.data[begin + i] == code)

    def callee(self, offset):
        """The file offset that the direct call before a return address calls; None for another call."""
        if self.data[offset - 5:offset - 4] != b"\xe8":
            return None
        return offset + struct.unpack_from("<i", self.data, offset - 4)[0]

    def is_restorer(self, offset):
        return self.data.startswith(RESTORER, offset)

    def calls(self, offset):
        return is_call(self.data[max(0, offset - 8):offset])


class Files:
    """The files of one group of processes; `keep` while these run, for files that are then replaced or removed."""

    def __init__(self):
        self.kept, self.by_path = {}, {}

    def keep(self, pids):
        for pid in pids:
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{pid}/map_files"):
                    self._keep(pid, name)

    def _keep(self, pid, name):
        link = f"/proc/{pid}/map_files/{name}"
        with contextlib.suppress(OSError, ValueError):
            target = os.readlink(link)
            path = target.removesuffix(" (deleted)")
            if (pid, path) not in self.kept and os.path.isfile(link):
                key = os.stat(link).st_dev, os.stat(link).st_ino
                if key not in self.by_path:
                    self.by_path[key] = File(link)
                self.kept[pid, path] = self.kept[pid, os.path.basename(path)] = self.by_path[key]

    def find(self, pid, frame):
        """The file of a frame, or None: code made at run time, or a file that is gone."""
        path = (frame.get("module") or "").removesuffix(" (deleted)")
        if frame["kind"] != "user" or not path.startswith("/"):
            return None
        for name in (path, os.path.basename(path)):  # below another root it has another path here
            if (pid, name) in self.kept:
                return self.kept[pid, name]
        if path not in self.by_path:
            self.by_path[path] = None
            with contextlib.suppress(OSError, ValueError):
                self.by_path[path] = File(path, frame.get("build_id") or "")
        return self.by_path[path]


def where(frame):
    return f"{os.path.basename(frame.get('module') or '?')}+{frame.get('offset') or 0:#x} ({frame['fn']})"


def main_caller(stack, files):
    """The number of the frame that called main, or 0."""
    for i, frame in enumerate(stack.frames[1:], 1):
        file = files.find(stack.pid, frame)
        if file and frame["offset"] in file.main_callers:
            return i
    return 0


def is_in_main(stack, files, i):
    """Whether frame `i` lies in main, as far as its file says: nobody else is called from there, but main may end with
    a jump to a function of its own kind."""
    frame = stack.frames[i]
    file = files.find(stack.pid, frame)
    return bool(file) and (file.function(frame["offset"] - 1)[1] == "main" or not file.names_main or file.jumps(
        "main", frame["offset"]))


def wrongly_complete(stack, files, roots):
    """Why a stack that is called complete is not; None where it is. A stack without a user frame is of a task
    without user memory."""
    if not stack.complete or not stack.frames:
        return None
    root = stack.frames[-1]
    file = files.find(stack.pid, root)
    at = main_caller(stack, files)
    ends = file and (file.is_root(root["offset"], roots) or at == len(stack.frames) - 1)
    if ends and (not at or is_in_main(stack, files, at - 1)):
        return None
    return " < ".join(where(f) for f in stack.frames[-4:])


def leaps(stack, files):
    """The first caller of a complete stack that calls another function of its file than that of the frame below, which
    does not end with a jump to it either; None where there is none."""
    for below, frame in zip(stack.frames, stack.frames[1:]) if stack.complete else ():
        file = not frame.get("exact") and files.find(stack.pid, frame)
        if not file or file is not files.find(stack.pid, below):
            continue
        begin, name = file.function(file.callee(frame["offset"]) or 0)
        behind = below["offset"] + (below is stack.frames[0] or bool(below.get("exact")))  # the instruction's first byte
        if name and begin != file.function(behind - 1)[0] and not file.jumps(name, behind):
            return f"{where(below)} < {where(frame)}, which calls {name}"
    return None


def lacks_made(stack, least):
    """The first frames of a complete stack that begins in code made at run time and has less than `least` of it."""
    made = [f for f in stack.frames if f["kind"] == "jit"]
    if stack.complete and made and made[0] is stack.frames[0] and len(made) < least:
        return " < ".join(where(f) for f in stack.frames[:4])
    return None


def not_called(stack, files, roots):
    """The frames behind which there is no call, though they are said to be callers. A stack that is cut off within a
    signal handler ends in the code to which the handler returns; a fibre's first function was called by nobody."""
    for i, frame in enumerate(stack.frames):
        file = i and not frame.get("exact") and files.find(stack.pid, frame)
        if file and not file.calls(frame["offset"]) and not (i + 1 == len(stack.frames) and (
                file.is_restorer(frame["offset"]) or file.is_root(frame["offset"], roots))):
            yield f"{where(stack.frames[i - 1])} < {where(frame)}"
