# SPDX-License-Identifier: BSD-2-Clause
"""The harness of the end-to-end tests: a Test owns what it made (agents, cgroups, processes, mounts,
folders), takes it all away again, and then proves that nothing of it is left: no pin, no mount, no
process, no cgroup, no BPF map or link by the ids that the load had made. Every line that any agent
wrote is checked against docs/schema/."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
import activation  # noqa: E402
import machine  # noqa: E402
import validate  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TROCAR_BUILD", ROOT / "build")).absolute()
LOADER = BUILD / "loader" / "trocar-loader"
CONSUMER = BUILD / "consumer" / "trocar-consumer"
COMMAND = BUILD / "ctl" / "trocar"
WORKLOADS = BUILD / "tests" / "workloads"
USER, GROUP = "nobody", "nogroup"
WITH_BROKER = True
# Words for every load: `TROCAR_LOAD=--walk-tasks` plays all tests as kernels before 6.7 find processes.
LOAD = os.environ.get("TROCAR_LOAD", "").split()
SCHEMAS = validate.Schemas()
FEW_TICKS = 100  # of which a machine whose CPUs are mostly idle may lose half by chance


class Failure(Exception):
    """The test failed: the agent did not do what it should."""


class Skip(Exception):
    """The test cannot run here; the reason is the text."""


class RpcError(Exception):
    def __init__(self, error):
        super().__init__(f"{error.get('code')}: {error.get('message')} {error.get('data', '')}")
        self.code, self.data = error.get("code"), error.get("data") or {}


def check(condition, text):
    if not condition:
        raise Failure(text)


def check_figure(condition, text, load):
    """As check, for what depends on how soon something gets a CPU, or how long: without a verdict where others had it, or
    the machine's host (`load`, a machine.Load since the figure's begin)."""
    if condition:
        return
    if load.is_busy():
        raise Skip(f"no verdict, {load}: {text[:300]}")
    raise Failure(text)


def check_complete(end, load):
    """A session's verdict is complete. That ticks or sampling passes came late, as on a machine whose CPUs others use, is a
    figure, and so is an event or two that the kernel had no memory for; that ticks did not come proves nothing where few
    were to come."""
    reason = end.get("verdict_reason", "")
    late = "ticks came" in reason
    if "had no memory for them at that moment" in reason and end["lost_share"] < 0.01:
        return
    check(end["verdict"] == "complete" or late or "off-CPU samples were" in reason, f"{end}")
    few = late and end["ledger"]["oncpu"]["expected"] < FEW_TICKS
    check_figure(end["verdict"] == "complete" or few, f"{end}", load)


def check_waited(told, own, queue, text, load):
    """`told` is what threads measured themselves (`own`), within 5 % or 2 ms; all in ns. Where they waited for a CPU
    meanwhile (`queue`), that is in what they measured, and no part of the wait."""
    slack = max(2e6, 0.05 * own)
    check_figure(own - queue - slack <= told <= own + slack,
                 f"{told / 1e6:.1f} ms told, {own / 1e6:.1f} measured, {queue / 1e6:.1f} in the queue: {text}", load)
    print(f"{told / 1e6:.1f} ms told, {own / 1e6:.1f} measured, {queue / 1e6:.1f} in the queue")


def proved(end):
    """The sentence of the kernel's own files that the first finding of a session begins with."""
    return end["findings"][0]["says"].split("; others waited ")[0] if end.get("findings") else ""


def until(question, seconds, text):
    """Asks until the answer is true and returns it; fails with `text` after `seconds` (machine.Patience)."""
    patience = machine.Patience(seconds)
    while True:
        left = patience.left()
        answer = question()
        if answer:
            return answer
        if left < 0:
            raise Failure(f"not within {seconds} s: {text() if callable(text) else text}")
        time.sleep(0.03)


def command(*words, expect=0, seconds=30):
    """Runs a command to its end; returns it; fails when its status is not the expected one."""
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=seconds, text=True)
    if expect is not None and done.returncode != expect:
        raise Failure(f"{' '.join(map(str, words))}: status {done.returncode}, not {expect}\n"
                      f"{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done


def rule(name, comm=None, prefix=None, cgroup=None, when=(), labels=None, **capture):
    match = {key: value for key, value in
             (("comm", comm), ("comm_prefix", prefix), ("cgroup_prefix", cgroup)) if value}
    made = {"name": name, "match": match, "when": list(when)}
    if capture:
        made["capture"] = capture
    if labels:
        made["labels"] = labels
    return made


def rules(*each):
    return {"version": 1, "rules": list(each)}


def bpf_objects(kind, *flags):
    """What bpftool lists. An object that somebody takes away at that moment is asked for again."""
    words = ("bpftool", *flags, "-j", kind, "show")
    for _ in range(20):
        done = command(*words, expect=None)
        if done.returncode == 0:
            return json.loads(done.stdout or "[]")
        time.sleep(0.05)
    return json.loads(command(*words).stdout or "[]")


def mounts():
    with open("/proc/self/mounts", encoding="utf-8") as stream:
        return [line.split() for line in stream]


def cgroup2_mount():
    return next(pathlib.Path(m[1]) for m in mounts() if m[2] == "cgroup2")


class Cgroup:
    """One cgroup in the cgroup2 tree, with the v1 cgroups that its limits need on a hybrid host."""

    def __init__(self, name):
        self.base = cgroup2_mount()
        self.name = name
        self.path = "/" + name
        self.folder = self.base / name
        self.folder.mkdir()
        self.id = self.folder.stat().st_ino
        self.others = []

    def limit(self, controller, file2, value2, file1, value1, controller1=None):
        if controller in (self.base / "cgroup.controllers").read_text().split():
            control = self.base / "cgroup.subtree_control"
            if controller not in control.read_text().split():
                control.write_text("+" + controller)
            (self.folder / file2).write_text(value2)
            return
        mount = next((m[1] for m in mounts()
                      if m[2] == "cgroup" and (controller1 or controller) in m[3].split(",")), None)
        if not mount:
            raise Skip(f"the controller {controller} is in no cgroup hierarchy")
        other = pathlib.Path(mount) / self.name.replace("/", "-")
        other.mkdir()
        self.others.append(other)
        (other / file1).write_text(value1)

    def quota(self, percent):
        self.limit("cpu", "cpu.max", f"{percent * 1000} 100000",
                   "cpu.cfs_quota_us", str(percent * 1000))

    def memory(self, mib):
        self.limit("memory", "memory.max", f"{mib}M", "memory.limit_in_bytes", f"{mib}M")

    def reads(self, device, bytes_per_second):
        """Bounds what is read a second from a device, "7:0"."""
        self.limit("io", "io.max", f"{device} rbps={bytes_per_second}",
                   "blkio.throttle.read_bps_device", f"{device} {bytes_per_second}", controller1="blkio")

    def writes(self, device, bytes_per_second):
        """The same of what is written."""
        self.limit("io", "io.max", f"{device} wbps={bytes_per_second}",
                   "blkio.throttle.write_bps_device", f"{device} {bytes_per_second}", controller1="blkio")

    def join(self):
        for folder in (self.folder, *self.others):
            with open(folder / "cgroup.procs", "w", encoding="ascii") as stream:
                stream.write(str(os.getpid()))

    def pids(self):
        try:
            return [int(p) for p in (self.folder / "cgroup.procs").read_text().split()]
        except FileNotFoundError:
            return []

    def remove(self):
        for folder in (*self.others, self.folder):
            end = time.monotonic() + 3
            while folder.exists():
                for pid in self.pids():
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.02)


class KernelSide:
    """Loaded programs and maps, in `folder`, which must not be there yet. With `broker` its socket stands ready and
    nothing ticks unless it is needed, as a package has it; without, samplers always do."""

    def __init__(self, folder, broker=True, load=()):
        self.folder, self.bpf, self.ids = folder, folder / "bpf", set()
        folder.mkdir(mode=0o755)
        self.broker = activation.Activation(folder / "broker.sock", [LOADER, "broker", "--bpf-dir", self.bpf, "--user", USER],
                                            GROUP, folder / "log") if broker else None
        self.loaded = True
        try:
            command(LOADER, "load", "--bpf-dir", self.bpf, "--group", GROUP,
                    "--always", "none" if broker else "oncpu", *LOAD, *load, seconds=120)
        except Exception:
            self.unload()
            shutil.rmtree(folder)  # the next test of the file tries anew, and says why it cannot be
            raise
        self.ids = self.find_ids()

    def find_ids(self):
        """(kind, id) of every map and link that is pinned in our folder."""
        found = set()
        for kind in ("map", "link"):
            found |= {(kind, entry["id"]) for entry in bpf_objects(kind, "-f")
                      if any(p.startswith(str(self.bpf)) for p in entry.get("pinned", []))}
        return found

    def _left(self):
        left = set()
        for kind in ("map", "link"):
            left |= self.ids & {(kind, entry["id"]) for entry in bpf_objects(kind)}
        return left

    def unload(self):
        """Removes the kernel side and proves that it is gone."""
        if not self.loaded:
            return
        self.loaded = False
        if self.broker:
            self.broker.close()
        command(LOADER, "unload", "--bpf-dir", self.bpf)
        check(not any(m[1].startswith(str(self.folder)) for m in mounts()), "a mount of ours is left")
        check(not self.bpf.exists(), f"{self.bpf} is left")
        # The kernel frees maps behind grace periods, one after the other: beside other agents that takes a while.
        until(lambda: not self._left(), 60, lambda: f"BPF objects left: {self._left()}")


class Agent:
    """A kernel side and its consumer. `output`: "-" reads a pipe; a path is left to the test. A test that says --broker
    or --always itself gets what it says. One that asks for nothing of the kernel side has that of its module, where
    there is one (conftest.py); `own`: even so one of its own."""

    def __init__(self, test, rule_set, load=(), arguments=(), output="-", reading=True, broker=None, own=False):
        self.test, self.output = test, output
        if broker is None:
            broker = WITH_BROKER and "--broker" not in arguments and "--always" not in load
        self.folder = test.folder / f"agent{len(test.agents)}"
        self.folder.mkdir(mode=0o755)
        self.control = self.folder / "control"
        self.control.mkdir(mode=0o755)
        shutil.chown(self.control, USER, GROUP)
        self.socket = self.control / "control.sock"
        self.rules_file = self.folder / "rules.json"
        # The default budget of sampling passes is for quiet machines; many tests run at a time.
        budget = [] if "--looks-permille" in arguments else ["--looks-permille", "100"]
        self.events, self.raw, self.changed = [], [], threading.Condition()
        self.reading = threading.Event()
        if reading:
            self.reading.set()
        self.process, self.errors = None, ""
        self.write_rules(rule_set)
        self.kernel_side = None if own or load or test.agents else test.shared_kernel_side(broker)
        self.owns = not self.kernel_side
        self.kernel_side = self.kernel_side or KernelSide(self.folder / "kernel", broker, load)
        test.agents.append(self)
        self.bpf, self.broker = self.kernel_side.bpf, self.kernel_side.broker
        self.arguments = ["--broker", self.broker.path if broker else "none", *budget, *arguments]

    def unload(self):
        """Removes the kernel side and proves that it is gone."""
        check(self.owns, "the kernel side is the module's: ask for an own one")
        self.kernel_side.unload()

    # ---- the consumer

    def write_rules(self, rule_set):
        """Replaces the rules file at once, as an editor or a package does."""
        text = rule_set if isinstance(rule_set, str) else json.dumps(rule_set)
        new = self.rules_file.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o644)
        new.rename(self.rules_file)

    def start(self, wait=True):
        words = [CONSUMER, "--rules", self.rules_file, "--output", self.output, "--bpf-dir", self.bpf,
                 "--socket", self.socket, "--user", USER, "--group", GROUP,
                 "--admin-group", "root", "--symbols-path", self.test.folder,
                 *self.arguments]
        self.mark = len(self.events)
        self.error_file = open(self.folder / "stderr", "a+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            [str(w) for w in words], stdin=subprocess.DEVNULL, stderr=self.error_file,
            stdout=subprocess.PIPE if self.output == "-" else subprocess.DEVNULL, cwd="/")
        if self.output == "-":
            self.reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
            self.reader.start()
        if wait and self.output == "-" and self.reading.is_set():
            self.wait("rules.applied", seconds=10, since=self.mark)
        elif wait:
            until(self.answers, 10, lambda: "the consumer does not answer: " + self.stderr())
        return self

    def _read(self, stream):
        while True:
            self.reading.wait()
            try:
                line = stream.readline()
            except ValueError:  # a test has closed it
                return
            if not line:
                return
            self._take(line)

    def _take(self, line):
        try:
            event = json.loads(line)
        except ValueError:
            event = {"type": "not JSON"}
        with self.changed:
            self.raw.append(line)
            self.events.append(event)
            self.changed.notify_all()

    def stderr(self):
        return (self.folder / "stderr").read_text(errors="replace")[-3000:]

    @property
    def pid(self):
        return self.process.pid

    @property
    def generation(self):
        """Of the rules that its first consumer began with."""
        return self.find("rules.applied")[0]["generation"]

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def answers(self):
        try:
            return self.call("status") is not None
        except (OSError, ValueError, RpcError):  # 64 clients that have gone may still be counted
            check(self.alive(), f"the consumer ended: {self.stderr()}")
            return False

    def stop(self, how=signal.SIGTERM, expect=0):
        """Ends the consumer and reads what it still had to say."""
        if not self.process:
            return
        self.reading.set()
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            status = self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure(f"the consumer did not end within 15 s of {how!r}: {self.stderr()}") from None
        if self.output == "-":
            self.reader.join(10)
            self.process.stdout.close()
        self.error_file.close()
        self.process = None
        if expect is not None:
            check(status == expect, f"the consumer ended with {status}, not {expect}: {self.stderr()}")
            if expect == 0 and self.output == "-":
                check(self.events and self.events[-1]["type"] == "agent.stop",
                      f"the last line is not agent.stop: {self.raw[-1:]}")

    # ---- lines

    def find(self, kind, since=0, **want):
        with self.changed:
            return [e for e in self.events[since:] if e.get("type") == kind and
                    all(e.get(k) == v for k, v in want.items())]

    def wait(self, kind, seconds=8, since=0, where=None, **want):
        """The first line of that type with these values (and for which `where` is true)."""
        patience = machine.Patience(seconds)
        seen = since
        while True:
            left = patience.left()
            with self.changed:
                for event in self.events[seen:]:
                    seen += 1
                    if (event.get("type") == kind and (where is None or where(event)) and
                            all(event.get(k) == v for k, v in want.items())):
                        return event
                if left > 0:
                    self.changed.wait(min(left, 0.2))
                    if seen < len(self.events) or self.reader.is_alive():
                        continue
            if left > 0:
                raise Failure(f"no {kind} {want}: the consumer ended: {self.stderr()}")
            tail = "\n".join(line[:400].decode(errors="replace").rstrip() for line in self.raw[-12:])
            raise Failure(f"no {kind} {want} within {seconds} s; last of {len(self.raw)} lines:\n"
                          f"{tail}\n{self.stderr()}")

    def never(self, kind, seconds=1.5, since=0, **want):
        time.sleep(seconds)
        found = self.find(kind, since, **want)
        check(not found, f"there should be no {kind} {want}: {found[:1]}")

    def stacks(self, session, signal="oncpu"):
        """Lines of one signal; None: of all."""
        return self.find("stack", session=session, **({"signal": signal} if signal else {}))

    # ---- control

    def call(self, method, params=None, connection=None, seconds=10):
        """One JSON-RPC request; returns its result or raises RpcError."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            request["params"] = params
        mine = connection or self.connect(seconds)
        try:
            mine.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(read_line(mine))
        finally:
            if not connection:
                mine.close()
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def connect(self, seconds=10):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(seconds)
        end = time.monotonic() + seconds
        while True:
            try:
                connection.connect(str(self.socket))
                return connection
            except BlockingIOError:  # the queue of the listening socket is full for now
                check(time.monotonic() < end, "the control socket does not take a connection")
                time.sleep(0.01)

    def refused(self, code, method, params=None, **data):
        """The request must be refused with this code and these values in `data`."""
        try:
            answer = self.call(method, params)
        except RpcError as error:
            check(error.code == code and all(error.data.get(k) == v for k, v in data.items()),
                  f"{method}: not {code} {data}: {error}")
            return error
        raise Failure(f"{method} {params} was accepted: {answer}")

    def trocar(self, *words, expect=0):
        return command(COMMAND, "--socket", self.socket, *words, expect=expect)

    def faults(self):
        found = [fault for line in self.raw for fault in SCHEMAS.line_faults(line)]
        return found or list(validate.evidence_faults([json.loads(line) for line in self.raw]))


def read_line(connection):
    received = b""
    while not received.endswith(b"\n"):
        part = connection.recv(65536)
        if not part:
            raise ValueError(f"closed after {received!r}")
        received += part
    return received


class Shared:
    """The kernel sides that a module's tests have together, one with a broker and one without, each loaded when the first
    test asks for it."""

    def __init__(self, name):
        self.folder = pathlib.Path("/var/tmp") / f"te2e-{os.getpid()}-{name.replace('_', '-')[:24]}-all"
        self.folder.mkdir(mode=0o755)
        self.sides = {}

    def kernel_side(self, broker):
        if broker not in self.sides:
            self.sides[broker] = KernelSide(self.folder / ("broker" if broker else "always"), broker)
        return self.sides[broker]

    def close(self):
        for side in self.sides.values():
            side.unload()
        shutil.rmtree(self.folder)


class Test:
    """One test's world. `close` takes it down and adds what is left or wrong to `faults`."""

    def __init__(self, name):
        self.name = f"te2e-{os.getpid()}-{name.replace('_', '-')[:24]}"
        self.comm = f"node{os.getpid()}"  # what the test's processes are called: tests beside it find none of them
        self.folder = pathlib.Path("/var/tmp") / self.name
        self.folder.mkdir(mode=0o755)
        self.agents, self.cgroups, self.processes, self.mounted, self.disks = [], [], [], [], []
        self.after = []  # what else gives the machine back as it was
        self.load = machine.Load()  # of others, since the test began
        self.shared_kernel_side = lambda broker: None  # conftest.py: what a module's tests have together

    def agent(self, rule_set, start=True, **options):
        agent = Agent(self, rule_set, **options)
        return agent.start() if start else agent

    def cgroup(self, name="a", quota=None, memory=None):
        made = Cgroup(f"{self.name}-{name}")
        self.cgroups.append(made)
        if quota:
            made.quota(quota)
        if memory:
            made.memory(memory)
        return made

    def binary(self, workload, name=None):
        """A copy of a workload under another name: the name becomes its comm. Each workload has a folder of its own, for
        two may have one name; a name with a folder says where."""
        target = self.folder / (name if name and "/" in name else f"as_{workload}/{name or workload}")
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copy(WORKLOADS / workload, target)
        return target

    def spawn(self, workload, *words, name=None, cgroup=None, uid=None):
        def before():
            if cgroup:
                cgroup.join()
            if uid:
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)

        process = subprocess.Popen(
            [str(self.binary(workload, name)), *map(str, words)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, cwd=self.folder, text=True,
            preexec_fn=before if cgroup or uid else None)
        self.processes.append(process)
        return process

    def run(self, *words, cgroup=None):
        """A program of the machine."""
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, cwd=self.folder, preexec_fn=cgroup.join if cgroup else None)
        self.processes.append(process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()

    def tmpfs(self, size):
        where = self.folder / "tmpfs"
        where.mkdir()
        command("mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", where)
        self.mounted.append(where)
        return where

    def _steps(self):
        for process in self.processes:
            yield lambda p=process: self.end(p)
        for agent in self.agents:
            yield agent.stop
            if agent.owns:
                yield agent.unload
        for cgroup in reversed(self.cgroups):
            yield cgroup.remove
        for disk in self.disks:  # one that is mounted goes with its mount
            yield lambda d=disk: command("losetup", "--detach", d)
        for where in reversed(self.mounted):
            yield lambda w=where: command("umount", w)
        yield from self.after
        yield lambda: shutil.rmtree(self.folder)

    def close(self):
        faults = []
        for step in self._steps():
            try:
                step()
            except Exception as error:  # each step is tried whatever became of the others
                faults.append(f"teardown: {type(error).__name__}: {error}")
        for agent in self.agents:
            found = agent.faults()
            faults += found[:5]
            if len(found) > 5:
                faults.append(f"and {len(found) - 5} more lines that break the schema")
        return faults

    @property
    def lines(self):
        return sum(len(agent.raw) for agent in self.agents)
