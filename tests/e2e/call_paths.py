# SPDX-License-Identifier: BSD-2-Clause
"""What the lines of a session say of user stacks: how many are complete, whether the callers that must be there
are there in their order, which call paths there are; the same paths by perf record --call-graph dwarf."""
import collections
import os
import re

from harness import check, command


class Stack:
    """The user frames of one stack line and its further parts, leaf first."""

    def __init__(self, line):
        self.pid, self.exe, self.count = line["pid"], line.get("exe") or "", line["count"]
        self.complete = line["quality"] == "complete"
        self.reason = line.get("quality_reason", "")
        self.frames = []
        self.add(line)

    def add(self, line):
        self.frames += [f for f in line["frames"] if f["kind"] != "kernel"]

    @property
    def names(self):
        return [f["fn"] for f in self.frames]

    @property
    def path(self):
        """The return addresses: each call path has its own."""
        return tuple((os.path.basename(f["module"] or ""), f["offset"]) for f in self.frames[1:])


def stacks_of(lines):
    """Whole stacks, from lines of which several may be one stack's."""
    found, parts = [], {}
    for line in lines:
        if line["signal"] != "oncpu" or line["phase"] != "during":
            continue
        if line.get("part", 1) > 1:
            parts[line["stack_id"]].add(line)
            continue
        found.append(Stack(line))
        if "part" in line:
            parts[line["stack_id"]] = found[-1]
    return found


def matches(names, chain):
    """Whether the names, leaf first, begin with the chain: "?" is any one frame, "..." any number of them."""
    if not chain:
        return True
    if chain[0] == "...":
        return any(matches(names[i:], chain[1:]) for i in range(len(names) + 1))
    return bool(names) and chain[0] in ("?", names[0]) and matches(names[1:], chain[1:])


def where(frame):
    return frame["fn"] or f"{os.path.basename(frame['module'] or '?')}+{frame['offset']:#x}"


class Account:
    """Of one program: its samples, how many are complete, what became of the others, and its chains."""

    def __init__(self, name, chains, whole=True):
        self.whole = whole  # the chains are looked for in complete stacks
        self.name, self.samples, self.complete, self.frames = name, 0, 0, 0
        self.chains = {c: [0, 0] for c in chains}  # samples with the first name; those with the whole chain
        self.rest, self.odd, self.examples = collections.Counter(), {}, {}

    def add(self, stack):
        self.samples += stack.count
        self.frames += stack.count * len(stack.frames)
        if stack.complete:
            self.complete += stack.count
        else:
            self.rest[stack.reason] += stack.count
            self.examples[stack.reason] = " < ".join(where(f) for f in stack.frames)
        for chain, found in self.chains.items():
            words = chain.split(" < ")
            if (self.whole and not stack.complete) or words[0] not in stack.names:
                continue
            found[0] += stack.count
            if matches(stack.names[stack.names.index(words[0]):], words):
                found[1] += stack.count
            else:
                self.odd[chain] = " < ".join(n or "?" for n in stack.names)

    @property
    def share(self):
        return 100 * self.complete / self.samples if self.samples else 0

    def row(self):
        rest = ", ".join(f"{reason} {count}" for reason, count in self.rest.most_common(4))
        frames = self.frames / self.samples if self.samples else 0
        return f"# {self.name:24} {self.samples:7} {self.share:9.2f} {frames:7.1f}  {rest}"

    def faults(self, least, limit):
        """What is not as it should be; `limit` None: the share is not the question, that it is explained is."""
        if self.samples < least:
            yield f"{self.name}: only {self.samples} samples, not {least}"
            return
        if limit is not None and self.share < limit and self.samples - self.complete > 1:
            yield f"{self.name}: {self.share:.2f} % complete, not {limit} %: {dict(self.rest)} {self.examples}"
        if not all(self.rest):
            yield f"{self.name}: {self.rest['']} stacks are not complete without a reason"
        for chain, (seen, whole) in self.chains.items():
            if seen < least / 50:
                yield f"{self.name}: {chain}: {seen} samples of its leaf"
            elif whole < seen * (limit or 99.9) / 100:
                yield f"{self.name}: {chain}: {whole} of {seen}; also {self.odd.get(chain)}"


HEAD = f"# {'program':24} {'samples':>7} {'complete %':>9} {'frames':>7}  the rest, by reason"


SAMPLE = re.compile(r"^\s*(\d+)\s*$")
FRAME = re.compile(r"^\s+([0-9a-f]+)\s+(.*) \((.*)\)$")


def perf_stacks(data, *words, seconds=200):
    """(pid, frames leaf first) of each sample, unwound by perf; a frame is file, offset in it and symbol."""
    text = command("perf", "script", "-i", data, "--no-inline", "--no-demangle", "-F", "pid,ip,sym,dso", *words,
                   seconds=seconds).stdout
    pid, frames = None, []
    for line in text.splitlines() + [""]:
        if match := SAMPLE.match(line):
            pid, frames = int(match[1]), []
        elif match := FRAME.match(line):
            frames.append((os.path.basename(match[3]), int(match[1], 16), match[2]))
        elif not line.strip() and pid is not None:
            yield pid, [frame for frame in frames if not frame[0].startswith("[kernel")]
            pid = None


def perf_paths(data, *words):
    """Call paths by perf; `words` are perf script's. It gives, of a caller, the byte before the return address; what a signal interrupted,
    as it is."""
    found = collections.Counter()
    for _, frames in perf_stacks(data, *words):
        path = []
        for i, (file, offset, _) in enumerate(frames[1:], 1):
            interrupted = i > 1 and is_restorer(frames[i - 1])
            path.append((file, offset if interrupted else offset + 1))
        found[tuple(path)] += 1
    return found


def is_restorer(frame):
    """libc's code that ends a signal handler has no name of its own where libc's debug symbols are missing."""
    return "restore_rt" in frame[2] or (frame[0].startswith("libc.so") and frame[2] == "[unknown]")


def our_paths(stacks):
    found = collections.Counter()
    for stack in stacks:
        if stack.complete:
            found[stack.path] += stack.count
    return found


def spell(path):
    return " < ".join(f"{module}+{offset:#x}" for module, offset in path)


def compare_paths(name, ours, theirs, hot, beside=None):
    """Faults, one for each path that one has and the other never, where the other should have it `hot` times by how
    many samples it took; how many hot ones there are; how many of ours perf has the beginning of only, where it comes
    to an end earlier: it sees a piece of one stack. `beside`: those of theirs that were taken while ours were."""
    roots = {path[-1] for path in ours if path}
    whole = collections.Counter({p: n for p, n in theirs.items() if p and p[-1] in roots})
    cut = {path[:-1] for path in theirs if path and path[-1] not in roots}  # the last one is where it went astray
    check(2 * sum(whole.values()) > sum(theirs.values()),
          f"{name}: of {sum(theirs.values())} stacks of perf {sum(whole.values())} end where ours do: "
          f"{[spell(p) for c in (ours, theirs) for p, _ in c.most_common(2)]}")
    often = hot * max(1, sum(ours.values()) / max(1, sum((beside or theirs).values())))
    missing = {p: n for p, n in ours.items() if n >= often and p not in theirs}
    shorter = {p for p in missing if any(p[:i] in cut for i in range(1, len(p)))}
    faults = [f"{name}: {n} of ours, none of perf: {spell(p)}" for p, n in missing.items() if p not in shorter]
    faults += [f"{name}: {n} of perf, none of ours: {spell(p)}" for p, n in whole.items()
               if n >= hot and (beside or theirs)[p] >= hot and p not in ours]
    return faults, sum(1 for n in ours.values() if n >= often), sum(1 for n in whole.values() if n >= hot), len(shorter)
