# SPDX-License-Identifier: BSD-2-Clause
"""Judges stacks of the turnover workload, frame by frame. What is true of a tick the kernel has said itself: the name
of the thread (turn-PROGRAM-LIBRARY), which the workload changes with each program and library, is in the sample. That a
frame is where it says is checked against the files: a caller's address must stand behind a call there, of the function
that the frame before it is in."""
import bisect
import collections
import os
import re

from harness import command

SYSTEM = re.compile(r"libc\.so\.6|libc-[\d.]+\.so|ld-linux.*|ld-[\d.]+\.so|\[vdso\]|linux-vdso.*")
CALL = re.compile(r"^\s*([0-9a-f]+):\s+(?:notrack |bnd )?call\s+(?:([0-9a-f]+) <([^>]+)>)?")
PLACE = re.compile(r"^\s*([0-9a-f]+):\s")
FUNCTION = re.compile(r"^([0-9a-f]+) <([^>]+)>:")
WRONG_KEPT = 12


class File:
    """A program or library of the workload: its functions, and behind which calls which offsets stand."""

    def __init__(self, path):
        self.path, self.starts, self.names, self.calls = path, [], [], {}
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", command("readelf", "-nW", path).stdout).group(1)
        bias = self._bias()
        callee = None
        for line in command("objdump", "-dw", "--no-show-raw-insn", path).stdout.splitlines():
            function, place = FUNCTION.match(line), PLACE.match(line)
            if function:
                self.starts.append(int(function.group(1), 16) - bias)
                self.names.append(function.group(2))
            if not place:
                continue
            if callee:
                self.calls[int(place.group(1), 16) - bias] = callee
            call = CALL.match(line)
            callee = (call.group(3) or "?") if call else None

    def _bias(self):
        """What an address is above its offset in the file."""
        for line in command("readelf", "-lW", self.path).stdout.splitlines():
            words = line.split()
            if words and words[0] == "LOAD" and "E" in words[6:-1]:
                return int(words[2], 16) - int(words[1], 16)
        raise ValueError(f"{self.path}: no text")

    def function(self, offset):
        at = bisect.bisect_right(self.starts, offset) - 1
        return self.names[at] if at >= 0 else None


class Judge:
    def __init__(self, folder, names):
        self.files = {name: File(folder / name) for name in names}
        self.samples, self.frames, self.wrong_samples, self.torn = 0, 0, 0, 0
        self.complete, self.named = 0, 0
        self.processes, self.images = set(), set()
        self.reasons, self.wrong, self.why = collections.Counter(), [], collections.Counter()
        self.short = collections.Counter()  # complete, they say, and do not reach the outermost frame

    def _module(self, name, program, library):
        """What is wrong with a frame in this file while the thread is there, or None."""
        if name in self.files:
            if name.startswith("program_") and name != f"program_{program}":
                return f"{name} in program {program}"
            if name.startswith("lib_") and name != f"lib_{library}.so":
                return f"{name} while in library {library}"
            if name == "turnover" and program != "driver":
                return "the parent's file"
            return None
        return None if SYSTEM.fullmatch(name) else f"{name} was never mapped"

    def _frame(self, frame, before, program, library):
        name = os.path.basename(frame["module"] or "")
        if not name or name.startswith("[unknown") or frame["offset"] is None:
            return None
        fault = self._module(name, program, library)
        if fault or name not in self.files:
            return fault
        file = self.files[name]
        self.named += 1
        if frame["build_id"] not in (file.build_id, None):
            return f"{name} with another build-id"
        function = file.function(frame["offset"])
        # The head of the procedure linkage table has no name: it goes by the function before it.
        if frame["fn"] and function != frame["fn"] and not re.search(r"@plt-0x10$", function or ""):
            return f"{name}+{frame['offset']:#x} is not {frame['fn']}"
        if before is None:
            return None
        callee = file.calls.get(frame["offset"])
        if not callee:
            return f"nothing is called before {name}+{frame['offset']:#x}"
        if callee != "?" and "@plt" not in callee and callee != before["fn"]:
            return f"{frame['fn']} calls {callee}, not {before['fn']}"
        return None

    def add(self, stack, line):
        """A whole stack (call_paths.Stack) and its first line."""
        count, frames = stack.count, stack.frames
        where = re.fullmatch(r"turn-(.)-(.)|program_(.)", line["comm"])
        program = (where.group(1) or where.group(3)) if where else "driver"
        library = where.group(2) if where else None
        self.samples += count
        if not where and line["comm"] != "turnover":
            self.torn += count  # the tick came while prctl(2) was writing the name: half of it is the old one's
            return
        self.frames += count * len(frames)
        self.complete += count * stack.complete
        if not stack.complete:
            self.reasons[stack.reason] += count
        self.processes.add((line["pid"], line["start_ns"]))
        self.images.add((line["pid"], line["start_ns"], program))
        faults = [self._frame(f, frames[i - 1] if i else None, program, library) for i, f in enumerate(frames)]
        exe = os.path.basename(line["exe"] or "")
        # begin_new_exec of fs/exec.c gives the next name a moment before the next image's number.
        if frames and exe and exe != (f"program_{program}" if program != "driver" else "turnover"):
            faults.append(f"exe {exe} in {program}")
        fault = next(filter(None, faults), None)
        if stack.complete and not fault and frames and frames[-1]["fn"] not in ("_start", None):
            self.short[" < ".join(f["fn"] or "?" for f in frames)] += count
        if fault:
            self.wrong_samples += count
            self.why[re.sub(r"[0-9a-fx]{3,}", "N", fault)] += count
            if len(self.wrong) < WRONG_KEPT:
                path = " < ".join(f"{f['fn']} ({os.path.basename(f['module'] or '?')}+{f.get('offset') or 0:#x})"
                                  for f in frames)
                self.wrong.append(f"{count} x {line['comm']} {line['quality']} {line.get('quality_reason')}: {fault}: {path}")

    def report(self):
        pids = len({p for p, _ in self.processes})
        share = 100 * self.complete / max(self.samples, 1)
        return (f"{self.samples} samples of {len(self.processes)} processes with {pids} pids, {len(self.images)} images; "
                f"{self.frames} frames, {self.named} of them in the workload's files; {share:.1f} % complete, "
                f"the rest {dict(self.reasons.most_common(6))}; {self.wrong_samples} samples with a wrong frame "
                f"{dict(self.why.most_common(6))}; {self.torn} in the midst of a new name; "
                f"{sum(self.short.values())} called complete too early "
                f"{dict(self.short.most_common(6))}")
