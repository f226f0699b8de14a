# SPDX-License-Identifier: BSD-2-Clause
"""The judge refuses what is wrong: without that its word on the programs would prove nothing."""
import os
import re

import call_paths
import judge
from harness import Skip, check, command


def libc_path():
    with open("/proc/self/maps", encoding="utf-8") as stream:
        found = re.search(r"/\S*/libc[.]so[.]6$", stream.read(), re.M)
    if not found:
        raise Skip("this Python uses no glibc")
    return found[0]


def public(file, name):
    """The file offset of a function."""
    return next(offset for offset, _, found in file.symbols if found == name)


def stack(*frames):
    line = {"pid": os.getpid(), "count": 1, "quality": "complete",
            "frames": [{"fn": None, "module": path, "offset": offset, "kind": "user", "build_id": None}
                       for path, offset in frames]}
    return call_paths.Stack(line)


def test_calls():
    """A call stands before a return address, in each of its forms; other code does not."""
    for code in ("e800000000", "ffd0", "41ffd4", "ff5008", "ff542408", "ff1500000000", "ff9080000000", "ff94c800000000"):
        check(judge.is_call(b"\x90" * 8 + bytes.fromhex(code)), f"{code} is a call")
    for code in ("90" * 8, "ffe0", "ff2500000000", "e90000000090", "ff7008", "0f05"):
        check(not judge.is_call(b"\x90" * 8 + bytes.fromhex(code)), f"{code} is no call")


def test_roots():
    """A thread's first call in libc is an end of a stack, by its code alone; qsort and what follows no call are not."""
    path = libc_path()
    file, files = judge.File(path), judge.Files()
    ends = [m.start() for m in judge.THREAD_ENDS.finditer(file.data)]
    check(ends and all(file.is_root(end, ()) for end in ends), "no thread's end in libc")
    sorts = public(file, "qsort") + 20
    check(not judge.wrongly_complete(stack((path, sorts), (path, ends[0])), files, ()), "clone is an end")
    check(judge.wrongly_complete(stack((path, ends[0]), (path, sorts)), files, ()), "qsort is no end")
    check(judge.wrongly_complete(stack(("", 0)), files, ()), "code without a file is no end")
    check(list(judge.not_called(stack((path, sorts), (path, public(file, "qsort"))), files, ())),
          "no call stands before qsort")


def test_main(tmp_path):
    """The caller of main is an end behind main only: behind another function it was leapt to."""
    source = tmp_path / "a.c"
    source.write_text("int leaf(void) { return 1; }\nint main(void) { return leaf(); }\n")
    program = tmp_path / "a"
    command("gcc", "-O0", "-o", program, source)
    path = libc_path()
    ends = sorted(judge.File(path).main_callers)
    check(ends, "no caller of main in libc")
    file, files = judge.File(program), judge.Files()
    for name, wrong in (("main", False), ("leaf", True)):
        found = judge.wrongly_complete(stack((str(program), public(file, name) + 6), (path, ends[0])), files, ())
        check(bool(found) == wrong, f"{name}: {found}")


def test_leaps(tmp_path):
    """A caller that calls another function than that of the frame below leaps; one that ends with a jump to it does
    not."""
    source = tmp_path / "a.c"
    source.write_text("volatile int s; __attribute__((noipa)) int leaf(void) { return s; }\n"
                      "__attribute__((noipa)) int jumps(void) { return leaf(); }\n"
                      "__attribute__((noipa)) int top(void) { return leaf() + 1; }\n"
                      "__attribute__((noipa)) int over(void) { return jumps() + 1; }\n"
                      "int main(void) { return top() + over(); }\n")
    program = tmp_path / "a"
    command("gcc", "-O2", "-o", program, source)
    path, files = str(program), judge.Files()
    file = judge.File(path)
    calls = {}
    for offset, size, name in file.symbols:
        for i in range(5, size + 1):
            callee = file.callee(offset + i)
            if callee is not None and file.function(callee)[0] == callee:
                calls[name, file.function(callee)[1]] = offset + i
    leaf, main = (path, public(file, "leaf") + 1), (path, calls["main", "top"])
    check(not judge.leaps(stack(leaf, (path, calls["top", "leaf"]), main), files), "leaf < top < main")
    check(judge.leaps(stack(leaf, main), files), "leaf < main leaps over top")
    check(not judge.leaps(stack(leaf, (path, calls["over", "jumps"])), files), "jumps() ends with a jump to leaf()")


def test_made():
    """A stack that begins in made code and has less of it than the program has calls."""
    made = stack(("", 0), ("", 0), (libc_path(), 64))
    for frame in made.frames[:2]:
        frame["kind"] = "jit"
    check(judge.lacks_made(made, 3) and not judge.lacks_made(made, 2), "two frames of made code")
    check(not judge.lacks_made(stack((libc_path(), 64)), 2), "no made code")
