# SPDX-License-Identifier: BSD-2-Clause
"""Runs the suites of ./check: starts builders, Meson, pytest and scripts, keeps their whole outputs in
build/check-logs/, counts their cases, and measures how long each suite took and how much CPU time."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import results

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD, ASAN, FUZZ, LTO = ROOT / "build", ROOT / "build-asan", ROOT / "build-fuzz", ROOT / "build-lto"
LOGS = BUILD / "check-logs"
NO_TESTS = 5  # status of pytest where none was chosen
# One cache for the copies of the tree that are built beside this one (tests/vm, tests/hostile/mutations). A file that
# -Werror would refuse is in it with its warnings, which build() takes for a failure.
CACHE = {"CCACHE_DIR": str(BUILD / "ccache"), "CCACHE_NOHASHDIR": "1", "CCACHE_IGNOREOPTIONS": "-Werror",
         "GOCACHE": str(BUILD / "go-cache"), "PYTHONDONTWRITEBYTECODE": "1"}
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:strict_string_checks=1",
              "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def no_kernel():
    """Why tests on the running kernel cannot run here, or None."""
    if os.geteuid() != 0:
        return "not root"
    return None if os.path.exists("/sys/kernel/btf/vmlinux") else "this kernel has no BTF"


def mount_tracefs():
    """Shows bpftrace and perf the kernel's tracepoints. A machine that has just started may not have mounted them."""
    where = "/sys/kernel/tracing"
    if os.geteuid() == 0 and os.path.isdir(where) and not os.listdir(where):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", where], stderr=subprocess.DEVNULL, check=False)


def behind(suite):
    """Builds take the time that tests leave; tests, and checks that start programs, have their turns."""
    return ("chrt", "--idle", "0") if suite == "build" else ("nice", "-n", "10")


def wait_for(process, seconds):
    """(status, seconds of CPU time of it and its children); one that takes longer is killed, with status -1."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    _, status, used = os.wait4(process.pid, 0)
    late = not timer.is_alive()
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return -1 if late else process.returncode, used.ru_utime + used.ru_stime


def introspect(run, folder, what):
    status, output = run.command(["meson", "introspect", what, folder], 120, log="introspect")
    return json.loads(output) if status == 0 else []


def files_of(run, folder):
    """{a target's id: its files, relative to the folder}"""
    return {t["id"]: [os.path.relpath(f, folder) for f in t["filename"]] for t in introspect(run, folder, "--targets")}


def test_targets(run, folder, *suites):
    """What Meson's tests of these suites run, and what these programs take as arguments."""
    files = files_of(run, folder)
    tests = [t for t in introspect(run, folder, "--tests") if {f"trocar:{suite}" for suite in suites} & set(t["suite"])]
    return sorted({f for t in tests for i in t["depends"] for f in files[i]}) or ["no-tests-of-these-suites"]


def targets_but(run, folder, suite, *folders):
    """All that is built by default or that other tests need, without the programs of that suite of Meson's tests, and
    without what is in those folders of the build."""
    tests = introspect(run, folder, "--tests")
    mine = {t["cmd"][0] for t in tests if f"trocar:{suite}" in t["suite"]}
    others = [t for t in tests if f"trocar:{suite}" not in t["suite"]]
    needed = {i for t in others for i in t["depends"]}
    return sorted(os.path.relpath(f, folder) for t in introspect(run, folder, "--targets") for f in t["filename"]
                  if t["id"] in needed or t["build_by_default"] and f not in mine and
                  not os.path.relpath(f, folder).startswith(folders))


def fuzz_targets(run):
    names = [f for files in files_of(run, FUZZ).values() for f in files]
    return sorted(str(FUZZ / n) for n in names if n.startswith("tests/fuzz/") and "/fuzz_" in n and (FUZZ / n).is_file())


class Run:
    """One run of ./check: its options, and every case as (suite, name, outcome, why)."""

    def __init__(self, options):
        self.all, self.long, self.vm, self.fuzz_seconds = options.all, options.long, options.vm, options.fuzz_seconds
        self.whole = options.all or bool(options.changed)  # all is built
        self.cases, self.lock, self.lane = [], threading.Lock(), threading.local()

    # ---- counting

    def add(self, name, outcome, why="", suite=None):
        with self.lock:
            self.cases.append((suite or self.lane.suite, name, outcome, why))

    def extend(self, cases):
        for case in cases:
            self.add(*case)

    def skip(self, what, why):
        self.add(what, "skipped", why)

    def listed(self, outcome, suite=None):
        return [c for c in self.cases if c[2] == outcome and suite in (None, c[0])]

    def report(self):
        for outcome in ("skipped", "failed"):
            print(f"\n{outcome}:" if self.listed(outcome) else "", end="\n" if self.listed(outcome) else "")
            for suite, name, _, why in self.listed(outcome):
                first, *rest = why.splitlines() or [""]
                print("\n      ".join([f"  {suite} / {name}: {first}", *rest]))
        passed, failed, skipped = (len(self.listed(o)) for o in ("passed", "failed", "skipped"))
        line = f"{passed} passed, {failed} failed"
        print(f"\n{line}, {skipped} skipped" if skipped else f"\n{line}")
        return 1 if failed or not passed else 0

    def suites(self, steps, words=lambda suite: ()):
        """Runs the (suite, step) in turn, each command behind words(suite); a line for each."""
        for suite, step in steps:
            began, self.lane.words, self.lane.suite, self.lane.cpu = time.monotonic(), words(suite), suite, 0
            lane = self.lane.__dict__
            try:
                step(self)
            except Exception as error:  # whatever it was, the other suites run and the last line says it
                self.add("check", "failed", f"{type(error).__name__}: {error}")
            counts = "".join(f"{len(self.listed(o, suite)):5} {o}" for o in ("passed", "failed", "skipped"))
            print(f"{suite:10}{counts} {time.monotonic() - began:7.1f} s, CPU {lane['cpu']:6.1f} s", flush=True)

    # ---- running

    def command(self, words, seconds, env=None, log=None):
        """Runs a command; its whole output goes to the log of the suite; returns (status, output)."""
        LOGS.mkdir(parents=True, exist_ok=True)
        words, began, cpu = [*getattr(self.lane, "words", ()), *map(str, words)], time.monotonic(), 0
        with tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, **CACHE, **(env or {})},
                                           stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
                status, cpu = wait_for(process, seconds)
            except OSError as error:
                status = -1
                said.write(f"{words[0]}: {error.strerror}\n".encode())
            said.seek(0)
            output = said.read().decode(errors="replace")
        if time.monotonic() - began >= seconds:
            output += f"\nended after {seconds} s\n"
        with self.lock:
            self.lane.cpu = getattr(self.lane, "cpu", 0) + cpu
            with open(LOGS / f"{log or self.lane.suite}.log", "a", encoding="utf-8") as stream:
                stream.write(f"$ {' '.join(words)}\n{output}\nstatus {status}, {time.monotonic() - began:.1f} s, "
                             f"{cpu:.1f} s of CPU time\n\n")
        return status, output

    def beside(self, lane, call, *arguments):
        """Runs call(*arguments) in a thread of the suite whose lane that is."""
        self.lane.words, self.lane.suite, self.lane.cpu = lane["words"], lane["suite"], 0
        call(*arguments)
        with self.lock:
            lane["cpu"] += self.lane.cpu

    def install(self, part, must=False):
        """Installs the packages of tests/install-deps PART; where they cannot be had it is said."""
        self.lane.suite = getattr(self.lane, "suite", "build")
        status, output = self.command([ROOT / "tests" / "install-deps", part], 900, log="install")
        if must and output.strip():
            print(output.strip(), flush=True)
        if status:
            self.add("Debian packages", "failed" if must else "skipped", results.tail(output, 3), suite=part)

    def configure(self, folder, options, env=None):
        if (folder / "build.ninja").exists():
            return self.command(["meson", "configure", folder, *options], 300, env)
        shutil.rmtree(folder, ignore_errors=True)
        return self.command(["meson", "setup", folder, ROOT, *options], 300, env)

    def build(self, name, folder, options, targets=(), env=None):
        status, output = self.configure(folder, options, env)
        if status == 0:
            status, output = self.command(["ninja", "-C", folder, *targets], 3600, env)
        warnings = [row for row in output.splitlines() if re.search(r"\b(warning|error): ", row)]
        why = "\n".join(warnings[:30]) or (results.tail(output, 30) if status else "")
        self.add(name, "failed" if status or warnings else "passed", why)

    def complete(self, name, status, cases, output):
        """Adds the cases; one more that failed where a runner came to no result or says otherwise than they do."""
        self.extend(cases)
        if not cases or (status and not any(case[1] == "failed" for case in cases)):
            self.add(name, "failed", f"status {status}\n{results.tail(output)}")

    def meson(self, folder, suite, *names, env=None, parallel=os.cpu_count()):
        """Tests that Meson knows, of a suite or by name; each case that their programs print is one."""
        log = folder / "meson-logs" / f"{self.lane.suite}-{suite}.json"
        log.unlink(missing_ok=True)
        status, output = self.command(
            ["meson", "test", "-C", folder, "--no-rebuild", "--logbase", log.stem, "--num-processes", parallel,
             "--timeout-multiplier", 4, "--print-errorlogs", "--suite", suite, *names], 3600,
            {"CMOCKA_MESSAGE_OUTPUT": "TAP", **(env or {})})
        self.complete(f"meson test {suite}", status, list(results.of_meson(log)) if log.exists() else [], output)

    def pytest(self, where, *words, tests=()):
        """The tests in tests/WHERE, or in these files, of which none need be of the tier that the words name. Returns
        the output; what they say on standard output is in the log."""
        xml = LOGS / f"{where}-{len(self.cases)}.xml"
        status, output = self.command([sys.executable, "-m", "pytest", "-rP", "--durations=20", f"--junitxml={xml}",
                                       "--build", BUILD, *(tests or [ROOT / "tests" / where]), *words], 3600)
        if tests and status == NO_TESTS:
            self.skip(" ".join(tests), "no test of it is in this tier: ./check --all runs them")
            return output
        self.complete(f"pytest tests/{where}", status, results.of_pytest(xml) if xml.exists() else [], output)
        return output

    def tap(self, name, words, seconds):
        status, output = self.command(words, seconds)
        self.extend(results.of_tap(name, status, output))
        return output

    def script(self, lane, name, words):
        """A check of tests/check, in a thread of the suite whose lane that is."""
        def one():
            status, output = self.command(words, 3600)
            outcome = {0: "passed", results.SKIPPED: "skipped"}.get(status, "failed")
            self.add(name, outcome, "" if status == 0 else results.tail(output, 40))
        self.beside(lane, one)

    def fuzz(self, lane, program, seconds):
        """Fuzzes from the corpus for a while, in a thread of the suite whose lane that is."""
        def one():
            name = os.path.basename(program)
            corpus = ROOT / "tests" / "fuzz" / "corpus" / name[len("fuzz_"):]
            with tempfile.TemporaryDirectory(prefix="trocar-fuzz-") as found:
                words = [program, f"-max_total_time={seconds}", "-timeout=60", "-rss_limit_mb=2048",
                         f"-artifact_prefix={LOGS}/{name}-", "-print_final_stats=1", found]
                status, output = self.command([*words, corpus] if corpus.is_dir() else words, 2 * seconds + 300, SANITIZERS)
            self.add(f"{name}: {seconds} s of fuzzing", "failed" if status else "passed",
                     results.tail(output, 30) if status else "")
        self.beside(lane, one)
