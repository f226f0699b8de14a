# SPDX-License-Identifier: BSD-2-Clause
# tests: bpf/unwind/* consumer/unwind/* consumer/process/unwind_plan* shared/abi/unwind_ends.def
"""Complete user stacks of programs as their compilers and distributions build them: without frame pointers, by the
tables of their files. For each: how many of its stacks reach the outermost frame, whether the callers that it is
known to have are there in their order, and why the rest ended where it did."""
import os
import pathlib
import shutil
import subprocess
import time

import pytest

import call_paths
from harness import ROOT, Skip, check, check_complete, check_figure, command, rule, rules, until
from machine import Load
from programs import need, start

SOURCES = ROOT / "tests" / "workloads" / "unwind"
HZ, PERF_HZ = 997, 449  # primes
LIFE = 240  # seconds that a program runs at most: longer than any test takes
ENOUGH = 1000  # samples of each program
LEAST = 300  # of each where the machine is so busy that SESSIONS_MAX do not give enough
SECONDS = 3  # of a session
SESSIONS_MAX = 20

WORKER = ("works < main < ... < _start", "works < ... < start_thread < clone3")
CALLS = ("plain_leaf < calls_leaf < works", "tail_leaf < tail_target < calls_tail < works",
         "alloca_leaf < calls_with_alloca < works", "never_leaf < never_returns < calls_never < catches_never < works")
SORT = ("compare_goods < ? < ... < sorts_goods < works",)
# What is interrupted is nearly always is_interrupted; now and then it is what main asks the time of.
SIGNALS = ("handler_leaf < on_alarm < ? < ... < main < ... < _start",
           "alternate_leaf < on_alternate < ? < ... < main < ... < _start",
           "is_interrupted < calls_interrupted < main < ... < _start")
CHILDREN = ("vfork_leaf < vfork_child < runs_vfork < main < ... < _start", "clone_leaf < clone_child < ?",
            "fork_leaf < fork_child < runs_fork < main < ... < _start")


def build(t, name, source, *words):
    """Compiles a workload as `name`; returns the program."""
    need(words[0])
    program = t.folder / name
    command(*words, "-o", program, SOURCES / source, seconds=180)
    return program


def compiled(t, group, name, source, *words):
    return start(t, group, build(t, name, source, *words), LIFE)


class Programs:
    """The programs of one test, all in one cgroup; their stacks are told apart by process or by program."""

    def __init__(self, t):
        self.t, self.group = t, t.cgroup()
        self.accounts, self.limits, self.pids, self.files = {}, {}, {}, {}
        self.others = call_paths.Account("(others)", ())

    def add(self, name, process, chains=(), limit=99.9):
        self.accounts[name] = call_paths.Account(name, chains, limit is not None)
        self.limits[name] = limit
        self.pids[process.pid] = name
        self.files.setdefault(str(process.args[0]), name)

    def account(self, stacks):
        for stack in stacks:
            name = self.pids.get(stack.pid) or self.files.get(stack.exe)
            (self.accounts[name] if name else self.others).add(stack)

    def run(self, enough=ENOUGH, settle=1.5):
        """Captures all, until there are enough samples of each; prints a row each; fails with every fault at once."""
        agent = self.t.agent(rules(rule("shops", cgroup=self.group.path, when=[], cooldown_ms=0)), load=["--hz", HZ])
        agent.wait("watch.start", cgroup=self.group.path)
        for pid in self.pids:
            agent.wait("process.unwind", seconds=30, pid=pid)
        time.sleep(settle)
        load = Load()
        for _ in range(SESSIONS_MAX):
            lines, end = capture(agent, self.group, SECONDS)
            # Some programs are here for their broken stacks; then nothing else may be wrong.
            reason = end.get("verdict_reason", "")
            if "broken stack" not in reason:
                check_complete(end, load)
            self.account(call_paths.stacks_of(lines))
            if all(a.samples >= enough for a in self.accounts.values()):
                break
        few = [f"{a.name}: {a.samples} samples" for a in self.accounts.values() if a.samples < LEAST]
        check_figure(not few, "; ".join(few), load)
        accounts = (*self.accounts.values(), self.others)
        print(call_paths.HEAD, *(a.row() for a in accounts if a.samples), sep="\n", flush=True)
        faults = [f for n, a in self.accounts.items() for f in a.faults(LEAST, self.limits[n])]
        check(not faults, "; ".join(faults))
        return agent


def capture(agent, group, seconds):
    answer = agent.call("session.start", {"cgroup": group.path, "during_ms": seconds * 1000})
    end = agent.wait("session.end", seconds=seconds + 30, session=answer["session"])
    return agent.stacks(answer["session"]), end


@pytest.mark.parallel(2)
def test_c(t):
    """C as gcc and as clang compile it: leaves, tail calls, alloca, noreturn, through qsort, in threads."""
    programs = Programs(t)
    for compiler in ("gcc", "clang"):
        process = compiled(t, programs.group, f"calls-{compiler}", "calls.c", compiler, "-O2", "-D_GNU_SOURCE")
        programs.add(f"C, {compiler} -O2", process, CALLS + SORT)
    programs.run(enough=2000)


@pytest.mark.parallel(2)
def test_linked_otherwise(t):
    """The same program linked statically, as static PIE, and against musl, whose code has no tables and is
    followed."""
    programs = Programs(t)
    for name, words in (("static", ["gcc", "-static"]), ("static-pie", ["gcc", "-static-pie"]),
                        ("musl", ["musl-gcc"]), ("musl-static", ["musl-gcc", "-static"])):
        process = compiled(t, programs.group, f"calls-{name}", "calls.c", *words, "-O2", "-D_GNU_SOURCE")
        programs.add(f"C, {name}", process, CALLS + SORT)
    programs.run(enough=3000)


@pytest.mark.parallel(2)
def test_signals_and_children(t):
    """Within signal handlers, on the same and on another stack; in children of vfork, clone and fork."""
    programs = Programs(t)
    for name, chains in (("signals", SIGNALS), ("children", CHILDREN)):
        process = compiled(t, programs.group, name, f"{name}.c", "gcc", "-O2", "-D_GNU_SOURCE")
        programs.add(f"C, {name}", process, chains)
    programs.run(enough=2000)


def test_brief_children(t):
    """Children that live for 10 ms: no longer than it takes to read their mappings and to make a table of their own."""
    programs = Programs(t)
    process = compiled(t, programs.group, "brief", "children.c", "gcc", "-O2", "-D_GNU_SOURCE", "-DCHILD_NS=10000000ull")
    # What is left is children for which no table is known yet, a child's first moment in clone(), and the last one of
    # exit: one in 400, where a new child comes every 10 ms.
    programs.add("C, children of 10 ms", process, CHILDREN, limit=99)
    programs.run(enough=2000)


@pytest.mark.parallel(2)
def test_rust(t):
    """Rust as rustc compiles it."""
    programs = Programs(t)
    process = compiled(t, programs.group, "calls-rust", "calls.rs", "rustc", "-O")
    programs.add("Rust, -O", process, ("calls::recurses < ... < calls::works",
                                       "calls::compare_goods < ? < ... < calls::sorts_goods < calls::works"))
    programs.run(enough=2500)


@pytest.mark.parallel(2)
def test_exceptions(t):
    """C++ that throws all the time: while a frame is being taken away, nobody can walk it."""
    programs = Programs(t)
    process = compiled(t, programs.group, "throws", "throws.cc", "g++", "-O2")
    programs.add("C++, throws", process, ("_Unwind_RaiseException < ... < main < ... < _start",), limit=97)
    programs.run(enough=2500)


@pytest.mark.parallel(2)
def test_interpreters(t):
    """Interpreters as Debian builds them."""
    programs = Programs(t)
    for name, program, end, chains in (
            ("Python", "python3", "py", ("_PyEval_EvalFrameDefault < ... < Py_RunMain < Py_BytesMain < ... < _start",)),
            ("Ruby", "ruby", "rb", ("rb_vm_exec < ... < ruby_run_node < ?",)),
            ("PHP", "php", "php", ("execute_ex < ... < php_execute_script < ?",)),
            ("Perl", "perl", "pl", ("Perl_runops_standard < ... < perl_run < main < ... < _start",)),
            ("Lua", "lua5.4", "lua", ("lua_pcallk < ? < ... < __libc_start_main < ?",))):
        if shutil.which(program):
            process = start(t, programs.group, program, SOURCES / f"calls.{end}", LIFE)
            programs.add(name, process, chains)
        else:
            print(f"# {name}: {program} is not installed")
    check(programs.accounts, "none is installed")
    programs.run()


def redis(t, group):
    need("redis-server", "redis-benchmark")
    socket = t.folder / "redis.sock"
    server = start(t, group, "redis-server", "--port", 0, "--unixsocket", socket, "--save", "", "--appendonly", "no")
    until(socket.exists, 10, "redis-server does not listen")
    start(t, None, "redis-benchmark", "-s", socket, "-t", "set,get,lpush,lrange_100", "-n", 100000000, "-c", 20, "-q")
    return server


def nginx(t, group):
    need("nginx", "wrk")
    (t.folder / "page").write_text("goods " * 200)
    conf = t.folder / "nginx.conf"
    conf.write_text(f"""daemon off; master_process off; pid {t.folder}/nginx.pid; error_log {t.folder}/error.log;
events {{ }} http {{ access_log off; server {{ listen 127.0.0.1:18082; root {t.folder};
{" ".join(f"{k}_temp_path {t.folder}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))} }} }}
""")
    server = start(t, group, "nginx", "-p", t.folder, "-c", conf)
    until((t.folder / "nginx.pid").exists, 10, "nginx does not run")
    start(t, None, "wrk", "-t", 1, "-c", 10, "-d", f"{LIFE}s", "http://127.0.0.1:18082/page")
    return server


def postgres(t, group):
    """A server of its own, by the user who must run it, and a query that takes as long as the test."""
    folder = next(iter(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))), None)
    if not folder:
        raise Skip("postgresql is not installed")
    data = t.folder / "postgres"
    data.mkdir()
    shutil.chown(data, "nobody", "nogroup")
    nobody = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    command(*nobody, folder / "initdb", "-D", data, "-A", "trust", "-U", "trocar", "--no-sync", seconds=60)
    server = start(t, group, *nobody, folder / "postgres", "-D", data, "-k", data, "-c", "listen_addresses=")
    until((data / ".s.PGSQL.5432").exists, 20, "postgres does not listen")
    time.sleep(0.5)
    query = "select sum(length(md5(i::text))), max(i % 1009) from generate_series(1, 1000000000) i"
    start(t, None, folder / "psql", "-h", data, "-U", "trocar", "-c", query, "postgres")
    server.args[0] = str(folder / "postgres")
    return server


@pytest.mark.parallel(2)
def test_servers(t):
    """Servers under load, as Debian builds them."""
    programs = Programs(t)
    for name, begin, chains in (
            ("Redis", redis, ("epoll_wait < ... < __libc_start_main < ?",)),
            ("nginx", nginx, ("ngx_process_events_and_timers < ? < ... < main < ... < _start",)),
            ("PostgreSQL", postgres, ("PostgresMain < ? < ... < PostmasterMain < main < ... < _start",))):
        try:
            programs.add(name, begin(t, programs.group), chains)
        except Skip as reason:
            print(f"# {name}: {reason}")
    check(programs.accounts, "none is installed")
    programs.run()


def golang(t, group):
    need("go")
    environment = {"GOCACHE": str(t.folder / "cache"), **os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0",
                   "GOFLAGS": "-trimpath"}
    program = t.folder / "calls-go"
    subprocess.run(["go", "build", "-o", program, SOURCES / "calls.go"], check=True, env=environment, timeout=180)
    return start(t, group, program, LIFE)


def java(*flags):
    def begin(t, group):
        need("java", "javac")
        if not (t.folder / "Calls.class").exists():
            command("javac", "-d", t.folder, SOURCES / "Calls.java", seconds=120)
        return start(t, group, "java", *flags, "-XX:+UseSerialGC", "-Xmx64m", "-cp", t.folder, "Calls", LIFE)
    return begin


def node(t, group):
    need("node")
    return start(t, group, "node", SOURCES / "calls.js", LIFE)


@pytest.mark.parallel(2)
def test_runtimes(t):
    """Runtimes with compilers of their own: by the instructions of their code; Go has call frame information."""
    programs = Programs(t)
    for name, begin, chains, limit in (
            ("node", node, (), 85), ("java, PreserveFramePointer", java("-XX:+PreserveFramePointer"), (), 95),
            ("java, as it is", java(), (), 85),
            ("Go", golang, ("main.works < ... < runtime.goexit.abi0",
                            "sort.Slice < main.sortsGoods < main.works < ... < runtime.goexit.abi0"), 97)):
        try:
            programs.add(name, begin(t, programs.group), chains, limit)
        except Skip as reason:
            print(f"# {name}: {reason}")
    check(programs.accounts, "none is installed")
    programs.run(settle=4)


@pytest.mark.parallel(2)
def test_said_why(t):
    """Where not every stack can be complete, the reason is said: stacks that nothing leads out of, assembly with the
    frame address in a register of its own."""
    programs = Programs(t)

    def openssl(t, group):
        need("openssl")
        return start(t, group, "openssl", "speed", "-seconds", LIFE, "-bytes", 4096, "sha512")

    def coroutines(t, group):
        return compiled(t, group, "coroutines", "coroutines.c", "gcc", "-O2", "-D_GNU_SOURCE")

    for name, begin, chains in (("openssl speed sha512", openssl, ()),
                                ("makecontext", coroutines,
                                 ("coroutine_leaf < calls_in_coroutine < coroutine",))):
        try:
            programs.add(name, begin(t, programs.group), chains, None)
        except Skip as reason:
            print(f"# {name}: {reason}")
    programs.run(settle=3)


def agree(t, name, process, group, seconds=8, hot=15):
    """The call paths of a program are those that perf record --call-graph dwarf finds in the same seconds."""
    agent = t.agent(rules(rule("shops", cgroup=group.path, when=[])), load=["--hz", HZ])
    agent.wait("watch.start", cgroup=group.path)
    agent.wait("process.unwind", seconds=30, pid=process.pid)
    data = t.folder / "perf.data"
    perf = subprocess.Popen(["perf", "record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", str(PERF_HZ),
                             "--call-graph", "dwarf,16384", "-p", str(process.pid), "-o", str(data),
                             "--", "sleep", str(seconds + 3)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(1.5)
    lines, end = capture(agent, group, seconds)
    said = perf.communicate(timeout=60)[1]
    check(perf.returncode == 0, f"perf record: {said[-300:]}")
    ours = call_paths.our_paths(s for s in call_paths.stacks_of(lines) if s.pid == process.pid)
    until_s = end["mono_ns"] / 1e9
    beside = call_paths.perf_paths(data, "--time", f"{until_s - seconds - 0.2:.3f},{until_s:.3f}")
    theirs = call_paths.perf_paths(data)
    faults, of_ours, of_theirs, shorter = call_paths.compare_paths(name, ours, theirs, hot, beside)
    print(f"# {name}: {sum(ours.values())} samples, {of_ours} hot paths; perf {sum(theirs.values())}, {of_theirs}; "
          f"{len(faults)} not in both, {shorter} that perf does not follow to their end", flush=True)
    check(of_ours >= 2 and of_theirs >= 1, f"{name}: too few paths")
    check(not faults, f"{len(faults)} faults: " + "; ".join(faults[:4]))


def same_paths(t, name, begin):
    need("perf")
    group = t.cgroup()
    agree(t, name, begin(t, group), group)


@pytest.mark.parallel(2)
def test_paths_of_c(t):
    """The call paths of C, its callbacks through qsort included, are perf's."""
    same_paths(t, "C, gcc -O2", lambda t, group: compiled(t, group, "calls-gcc", "calls.c", "gcc", "-O2",
                                                          "-D_GNU_SOURCE"))


@pytest.mark.parallel(2)
def test_paths_of_signals(t):
    """The call paths within signal handlers are perf's."""
    same_paths(t, "C, signals", lambda t, group: compiled(t, group, "signals", "signals.c", "gcc", "-O2",
                                                          "-D_GNU_SOURCE"))


@pytest.mark.parallel(2)
def test_paths_of_rust(t):
    """The call paths of Rust are perf's."""
    same_paths(t, "Rust, -O", lambda t, group: compiled(t, group, "calls-rust", "calls.rs", "rustc", "-O"))


@pytest.mark.parallel(2)
def test_paths_of_python(t):
    """The call paths of Python's interpreter are perf's."""
    need("python3")
    same_paths(t, "Python", lambda t, group: start(t, group, "python3", SOURCES / "calls.py", LIFE))


@pytest.mark.parallel(2)
def test_paths_of_redis(t):
    """The call paths of a server under load are perf's."""
    same_paths(t, "Redis", redis)
