# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/runtimes/* bpf/waits/look_runtime.h bpf/kernel/kernel_runtime.h consumer/runtimes/* consumer/naming/runtime_merge*
# tests: consumer/naming/frame_name* consumer/evidence/waits/known_wait* consumer/answer/session_digest* shared/abi/*runtime*
# tests: shared/abi/python_layouts.def
"""Frames of language runtimes: the application's functions, files and lines in place of the evaluation loop, on the CPU
and waiting, on each CPython that is to be had."""
import glob
import os
import re
import shutil
import subprocess

import pytest

from harness import check, rule, rules, until

pytestmark = pytest.mark.shares_kernel_side

PROGRAM = '''import threading, time

class Query:
    def slow(self, n):
        return sum(
            self.one(i)
            for i in range(n))

    def one(self, i):
        x = i * i
        for k in range(20):
            x += k
        return x

def überall(n):
    return sorted([3, 1, 2], key=lambda x: Query().slow(n))

def deep(n, call):
    return deep(n - 1, call) if n else call()

def wait_here():
    time.sleep(1000)

def wait_for_lock(lock):
    with lock:
        pass

lock = threading.Lock()
lock.acquire()
threading.Thread(target=wait_here, daemon=True).start()
threading.Thread(target=wait_for_lock, args=(lock,), daemon=True).start()
open("ready", "w").close()
end = time.time() + 60
while time.time() < end:
    deep(12, lambda: überall(500))
'''

# The application's frames of a sample in Query.one, outermost first: function, and a part of its line.
CALLS = ["<module>", *["deep"] * 13, "<lambda>", "überall", "<lambda>", "slow", "<genexpr>", "one"]
LINES = {"<module>": ("deep(12", "while time"), "deep": ("return deep",), "<lambda>": ("lambda",), "überall": ("return sorted",),
         "slow": ("sum(", "self.one", "for i in"), "<genexpr>": ("sum(", "self.one", "for i in"),
         "one": ("def one", "x = i * i", "for k in", "x += k", "return x"), "wait_here": ("time.sleep",),
         "wait_for_lock": ("with lock",)}


def pythons():
    """(version, path) of each CPython from 3.7 on: the system's, and those of a folder of versions."""
    folders = ["/usr/bin", *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin")))]
    found = {}
    for folder in folders:
        for path in sorted(glob.glob(f"{folder}/python3.*")):
            name = re.fullmatch(r"python3\.(\d+)", os.path.basename(path))
            if name and 7 <= int(name.group(1)) <= 13:
                found.setdefault((int(name.group(1)), folder), path)
    return [(f"3.{minor}", path) for (minor, _), path in sorted(found.items())]


def start(t, group, path):
    (t.folder / "app.py").write_text(PROGRAM, encoding="utf-8")
    process = t.run(path, "app.py", cgroup=group)
    until(lambda: (t.folder / "ready").exists(), 20, "the program is not ready")
    return process


def capture(agent, group, during_ms=2000):
    answer = agent.call("session.start", {"cgroup": group.path, "during_ms": during_ms})
    end = agent.wait("session.end", session=answer["session"], seconds=30)
    return end, answer["session"]


def stacks(agent, session, signal="oncpu"):
    """The stacks of one signal; those that take several lines are joined."""
    whole, parts = [], {}
    for line in agent.stacks(session, signal):
        if "stack_id" not in line:
            whole.append(line)
        elif line["part"] == 1:
            parts[line["stack_id"]] = line
            whole.append(line)
        else:
            parts[line["stack_id"]]["frames"] += line["frames"]
    return whole


def of_runtime(stack):
    """The runtime's frames, outermost first: (function without its classes, file, line)."""
    return [((f["fn"] or "?").split(".")[-1], os.path.basename(f["module"] or "?"), f.get("line"))
            for f in reversed(stack["frames"]) if f["kind"] == "runtime"]


def check_lines(frames):
    source = PROGRAM.split("\n")
    for name, file, line in frames:
        if file != "app.py" or name == "?":
            continue
        # A frame that has not begun is in the line of its definition.
        check(line and any(text in source[line - 1] for text in (*LINES[name], f"def {name}")),
              f"{name} is in line {line}: {source[(line or 1) - 1]}")


def check_version(t, agent, path):
    group = t.cgroup(os.path.basename(path))
    process = start(t, group, path)
    capture(agent, group, 500)  # the names are copied, some at a time
    end, session = capture(agent, group)
    running = [s for s in stacks(agent, session, "oncpu") if s["pid"] == process.pid]
    right = wrong = 0
    for stack in running:
        frames = of_runtime(stack)
        check_lines(frames)
        names = [name for name, _, _ in frames]
        whole = names == CALLS[:len(names)] and len(names) >= len(CALLS) - 5
        right += stack["count"] * whole
        wrong += stack["count"] * (not whole and not stack.get("torn"))
    check(right >= 20 and wrong * 50 <= right, f"{right} right and {wrong} other samples of {path}: "
          f"{[of_runtime(s) for s in running][:3]}")
    left = sum(s["count"] for s in running for f in s["frames"] if (f["fn"] or "").startswith("_PyEval_EvalFrameDefault"))
    check(left * 20 <= right, f"an evaluation loop was left in {left} stacks, {right} are right")
    waiting = [of_runtime(s) for s in stacks(agent, session, "offcpu") if s["pid"] == process.pid]
    for name in "wait_here", "wait_for_lock":
        check([f for f in waiting if f and f[-1][0] == name], f"no thread waits in {name}: {waiting[:5]}")
    for frames in waiting:
        check_lines(frames)
    counts = end["stack_quality"]["runtime"]
    check(counts["base"] * 50 >= counts["samples"] * 49 and counts["unnamed"] * 50 <= counts["frames"], f"{counts}")
    process.kill()
    process.wait()
    os.remove(t.folder / "ready")


@pytest.mark.core
def test_system_python(t):
    """The system's own python3: function, file and exact line of every frame, the C functions between, the threads that
    wait, and the headline's place."""
    agent, paths = t.agent(rules(rule("py", comm="no-such"))), [path for _, path in pythons() if "/usr/bin" in path]
    if not paths:
        pytest.skip("there is no /usr/bin/python3.N")
    check_version(t, agent, paths[0])


def test_other_pythons(t):
    """The same on each other CPython of this machine."""
    agent, others = t.agent(rules(rule("py", comm="no-such"))), [p for p in pythons() if "/usr/bin" not in p[1]]
    if not others:
        pytest.skip("there is no CPython but the system's")
    for _, path in others:
        check_version(t, agent, path)


def is_exact(stack):
    """All frames of the sample, down to the function that ran, each with a line that it can be in."""
    frames, source = of_runtime(stack), PROGRAM.split("\n")
    names = [name for name, _, _ in frames]
    return names and names == CALLS[:len(names)] and all(
        file == "app.py" and line and any(text in source[line - 1] for text in (*LINES[name], f"def {name}"))
        for name, file, line in frames)


def test_share_of_exact(t):
    """At 499 Hz almost every sample has exactly the functions, files and lines that the program has at that moment."""
    seconds, shares = 30 if os.environ.get("TROCAR_LONG") else 3, {}
    agent = t.agent(rules(rule("py", comm="no-such")), load=["--hz", "499"])
    for version, path in pythons():
        group = t.cgroup(f"{version}-{len(shares)}")
        process = start(t, group, path)
        capture(agent, group, 1000)
        _, session = capture(agent, group, seconds * 1000)
        counts = [(s["count"], is_exact(s), s) for s in stacks(agent, session) if s["pid"] == process.pid]
        counts = [c for c in counts if c[2]["phase"] == "during" and "_bootstrap" not in [n for n, _, _ in of_runtime(c[2])]]
        exact, samples = sum(n for n, right, _ in counts if right), sum(n for n, _, _ in counts)
        shares[path] = exact / samples
        print(f"{version}: {exact} of {samples} samples are exact ({path})")
        for n, right, s in sorted(counts, key=lambda c: -c[0]):
            if not right:
                print("   ", n, [f["fn"] for f in s["frames"]][:4], of_runtime(s)[-3:], s.get("torn"))
        process.kill()
        process.wait()
        os.remove(t.folder / "ready")
    check(all(share >= 0.98 for share in shares.values()), f"{shares}")


FORKS = '''import os, time
def work():
    end = time.time() + 60
    while time.time() < end:
        sum(i for i in range(1000))
def serve():
    work()
for _ in range(2):
    if not os.fork():
        serve()
        os._exit(0)
open("ready", "w").close()
time.sleep(100)
'''


@pytest.mark.core
def test_forked_workers(t):
    """Workers that a parent has forked, as of gunicorn: each has its frames, and they share the parent's names."""
    paths = [path for _, path in pythons() if "/usr/bin" in path]
    if not paths:
        pytest.skip("there is no /usr/bin/python3.N")
    agent, group = t.agent(rules(rule("py", comm="no-such"))), t.cgroup()
    (t.folder / "app.py").write_text(FORKS)
    parent = t.run(paths[0], "app.py", cgroup=group)
    until(lambda: (t.folder / "ready").exists(), 20, "the program is not ready")
    _, session = capture(agent, group)
    workers = {}
    for stack in stacks(agent, session):
        if stack["pid"] != parent.pid:
            workers.setdefault(stack["pid"], []).append([name for name, _, _ in of_runtime(stack)])
    check(len(workers) == 2, f"workers: {workers}")
    for pid, found in workers.items():
        check([s for s in found if s[:3] == ["<module>", "serve", "work"]], f"{pid} has no frames: {found[:3]}")


EMBEDS = """
void Py_Initialize(void);
int PyRun_SimpleString(const char *text);
int main(void)
{
    Py_Initialize();
    return PyRun_SimpleString(
        "import time\\n"
        "def inner():\\n"
        "    end = time.time() + 60\\n"
        "    while time.time() < end: sum(range(1000))\\n"
        "def outer():\\n"
        "    inner()\\n"
        "open('ready', 'w').close()\\n"
        "outer()\\n");
}
"""


@pytest.mark.core
def test_embedded(t):
    """A program of another name that has the interpreter in a library."""
    found = sorted(glob.glob("/usr/lib/*/libpython3.*.so.1.0"))
    if not found or not shutil.which("gcc"):
        pytest.skip("there is no libpython3.N.so.1.0, or no gcc")
    (t.folder / "embeds.c").write_text(EMBEDS)
    subprocess.run(["gcc", "-o", t.folder / "embeds", t.folder / "embeds.c", found[-1]], check=True)
    agent, group = t.agent(rules(rule("py", comm="no-such"))), t.cgroup()
    process = t.run(t.folder / "embeds", cgroup=group)
    until(lambda: (t.folder / "ready").exists(), 20, "the program is not ready")
    capture(agent, group, 500)
    _, session = capture(agent, group, 1500)
    names = [[name for name, _, _ in of_runtime(s)] for s in stacks(agent, session) if s["pid"] == process.pid]
    right = [n for n in names if n[:3] == ["<module>", "outer", "inner"]]
    check(len(right) * 10 >= len(names) * 9 > 0, f"{names[:5]}")


@pytest.mark.core
def test_switched_off(t):
    """With `load --runtimes off` there is none of it."""
    paths = [path for _, path in pythons() if "/usr/bin" in path]
    if not paths:
        pytest.skip("there is no /usr/bin/python3.N")
    agent, group = t.agent(rules(rule("py", comm="no-such")), load=["--runtimes", "off"]), t.cgroup()
    start(t, group, paths[0])
    end, session = capture(agent, group, 1000)
    check("runtime" not in end["stack_quality"], f"{end['stack_quality']}")
    check(not [f for s in stacks(agent, session, "oncpu") for f in s["frames"] if f["kind"] == "runtime"], "frames came")
