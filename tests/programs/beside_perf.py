# SPDX-License-Identifier: BSD-2-Clause
"""A session's stacks against those of perf record --call-graph dwarf in the same seconds."""
import collections
import math
import subprocess

import call_paths
from harness import Failure

HZ = 449  # a prime
POINTS_MAX, SIGMAS = 6, 5  # how far the share of a leaf may differ: whichever is more
HOT = 15  # samples
SCRIPT_S = 150


class Recording:
    """perf record of a cgroup, until `stop`."""

    def __init__(self, group, folder, seconds):
        self.data = folder / "perf.data"
        self.process = subprocess.Popen(
            ["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", str(HZ), "-G", group.path.lstrip("/"), "--call-graph",
             "dwarf,16384", "-o", self.data, "--", "sleep", str(seconds)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def stop(self):
        """Why there is nothing recorded, or None."""
        try:
            said = self.process.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            said = self.process.communicate()[1] + b"it did not end"
        return f"perf record: {said[-300:]}" if self.process.returncode else None


def leaf_of(frame_file, offset):
    """A function of a file, by where it begins; all code without a file is one."""
    return frame_file.function(offset)[0] if frame_file else 0


def our_leaves(stacks, files):
    """(samples of each leaf, {file's name: File})."""
    found, by_name = collections.Counter(), {}
    for stack in stacks:
        if stack.frames:
            frame = stack.frames[0]
            file = files.find(stack.pid, frame)
            name = (frame.get("module") or "").removesuffix(" (deleted)").rsplit("/", 1)[-1] if file else "?"
            by_name[name] = file
            found[name, leaf_of(file, frame.get("offset") or 0)] += stack.count
    return found, by_name


def perf_leaves(data, by_name):
    found = collections.Counter()
    for _, frames in call_paths.perf_stacks(data, "--max-stack", "1", seconds=SCRIPT_S):
        if frames:
            name, offset, _ = frames[0]
            file = by_name.get(name)
            found[(name, leaf_of(file, offset)) if file else ("?", 0)] += 1
    return found


def leaf_faults(ours, theirs):
    """(faults, the largest difference in points) of the shares of leaves."""
    n, m, faults, largest = sum(ours.values()), sum(theirs.values()), [], 0
    if not n or not m:
        return [f"{n} samples of ours, {m} of perf's"], 0
    for leaf in {*ours, *theirs}:
        a, b = ours[leaf] / n, theirs[leaf] / m
        share = (ours[leaf] + theirs[leaf]) / (n + m)
        points = 100 * abs(a - b)
        largest = max(largest, points)
        if points > max(POINTS_MAX, 100 * SIGMAS * math.sqrt(share * (1 - share) * (1 / n + 1 / m))):
            faults.append(f"{leaf[0]}+{leaf[1]:#x}: {100 * a:.1f} % of ours, {100 * b:.1f} % of perf's")
    return faults, largest


def path_faults(name, stacks, data):
    """Hot call paths that only one of both has."""
    try:
        faults, _, _, _ = call_paths.compare_paths(name, call_paths.our_paths(stacks), call_paths.perf_paths(data), HOT)
    except Failure as failure:
        return [str(failure)]
    return faults
