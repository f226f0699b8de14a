# SPDX-License-Identifier: BSD-2-Clause
"""What the machine gives to a test: the right to run beside others, and whether it can run here at all."""
import contextlib
import fcntl
import os
import random
import time

LOCK = "/run/lock/trocar-tests"
PARTS = 12  # the machine's time is shared out in twelfths: tests run alone, or two, three, four at a time
AGAIN_S = 0.05


def take_parts(stream, wanted):
    """Locks so many bytes of the file, wherever they are free; false, and none is locked, where they are too few."""
    taken = []
    for part in range(PARTS):
        if len(taken) < wanted:
            with contextlib.suppress(BlockingIOError, PermissionError):
                fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, part)
                taken.append(part)
    if len(taken) == wanted:
        return True
    for part in taken:
        fcntl.lockf(stream, fcntl.LOCK_UN, 1, part)
    return False


@contextlib.contextmanager
def share(at_once=1):
    """Holds so large a part of the machine that at most `at_once` tests hold one, whichever run they belong to. The
    kernel frees it with the process (record locks, fcntl(2)), which must hold one share at a time."""
    with open(LOCK, "ab") as stream:
        if at_once == 1:
            fcntl.lockf(stream, fcntl.LOCK_EX)
        while at_once > 1 and not take_parts(stream, PARTS // at_once):
            time.sleep(AGAIN_S * (0.5 + random.random()))  # two that took the same ones try at different times
        yield


def why_not(*binaries):
    """Why tests of the running kernel cannot run here, or None."""
    if os.geteuid() != 0:
        return "not root"
    for path, what in (("/sys/kernel/btf/vmlinux", "BTF"), ("/proc/pressure/cpu", "PSI")):
        if not os.path.exists(path):
            return f"this kernel has no {what}"
    return next((f"{binary} is not built" for binary in binaries if not os.path.exists(binary)), None)


def busy_ticks():
    """Clock ticks that the CPUs have worked, all together, and those that the host took away."""
    with open("/proc/stat", encoding="ascii") as stream:
        user, nice, system, _, _, irq, softirq, steal = map(int, stream.readline().split()[1:9])
    return user + nice + system + irq + softirq, steal


def ticks_below(root):
    """Clock ticks of a process and its descendants, dead ones that were waited for included."""
    children, ticks = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stream:
                words = stream.read().rsplit(")", 1)[1].split()
            children.setdefault(int(words[1]), []).append(int(name))
            ticks[int(name)] = sum(map(int, words[11:15]))
    found, todo = 0, [root]
    while todo:
        pid = todo.pop()
        found += ticks.get(pid, 0)
        todo += children.get(pid, ())
    return found


class Load:
    """How many CPUs others than this process and what it started have used since then, and what the host took away: a
    tick comes late, and a thread seems to run, while the host runs something else."""

    BUSY = 0.3  # CPUs; a machine that nobody else uses shows less than 0.1
    STOLEN = 0.1  # of what ran or would have; it is 0.04 in a day's mean on a host with neighbours

    def __init__(self):
        self.began, self.ticks, self.own = time.monotonic(), busy_ticks(), ticks_below(os.getpid())

    def used(self):
        """(ticks of others, what the host took included; the share that the host took)"""
        busy, stolen = (now - then for now, then in zip(busy_ticks(), self.ticks))
        own = max(0, ticks_below(os.getpid()) - self.own)
        return max(0, busy + stolen - own), stolen / max(1, busy + stolen)

    def others(self):
        return self.used()[0] / os.sysconf("SC_CLK_TCK") / max(0.01, time.monotonic() - self.began)

    def is_busy(self):
        return self.others() > self.BUSY or self.used()[1] > self.STOLEN

    def __str__(self):
        return (f"others used {self.others():.1f} of {os.cpu_count()} CPUs, the host took {100 * self.used()[1]:.0f} %, "
                f"load {os.getloadavg()[0]:.1f}")


def waited_us():
    """Microseconds in which somebody on this machine was ready to run and had no CPU."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        with open("/proc/pressure/cpu", encoding="ascii") as stream:
            return int(stream.readline().split("total=")[1])
    return 0


class Patience:
    """The time that a wait has: so many seconds, and three times as many on a machine where somebody waited for a CPU
    during most of them. What comes in time costs nothing more."""

    MORE = 3

    def __init__(self, seconds):
        self.began, self.waited, self.seconds = time.monotonic(), waited_us(), seconds

    def left(self):
        """Seconds; 0 or less when it is over."""
        gone = time.monotonic() - self.began
        if gone > self.seconds and waited_us() - self.waited > 0.5e6 * gone:
            return self.MORE * self.seconds - gone
        return self.seconds - gone
