#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""From changed files to the tests that they concern, for `./check --changed`.

  changed.py FILE...    prints the tests of these files: one line for each, the suite and what runs in it

A source file's unit test is at its path below tests/unit (tests/unit/meson.build). A test file in Python says in a line
`# tests: PATTERN...` which sources it is about; the patterns are those of fnmatch(3), from the top of the tree. Tests of
the kernel side are found by the programs that they load (HARNESS_LOADS in tests/bpf)."""
import fnmatch
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
PRODUCT = ("shared", "policy", "bpf", "loader", "consumer", "ctl")
ABOUT = re.compile(r"^# tests: (.+)$", re.M)
INCLUDES = re.compile(r'^#include "(bpf/[^"]+|shared/abi/[^"]+)"', re.M)
PROGRAM = re.compile(r'^SEC\("(?!\.maps|license|\.rodata)[^"]+"\)\s+int (?:BPF_PROG\()?(\w+)', re.M)
LOADS = re.compile(r"HARNESS_LOADS\(([^)]*)\)")
SUITES = ("e2e", "broker", "terminal", "hostile")  # of tests in Python, those that a minute has room for


def git(*words):
    return subprocess.run(["git", "-c", f"safe.directory={ROOT}", *words], cwd=ROOT, check=True,
                          stdout=subprocess.PIPE, text=True).stdout.split("\0")


def changed_files(base):
    """Files that differ from `base`, new ones included; of the last commit where none does."""
    found = {*git("diff", "--name-only", "-z", base), *git("ls-files", "-o", "--exclude-standard", "-z")} - {""}
    return sorted(found) or sorted({*git("diff", "--name-only", "-z", f"{base}~1", base)} - {""})


@functools.cache
def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def below(folder, pattern):
    return sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / folder).rglob(pattern))


# ---- unit tests


def unit_test(path):
    """The test file of a source, or the file itself where it is one; None."""
    if path.startswith("tests/unit/") and path.endswith("_test.c"):
        return path
    stem, dot, ending = path.rpartition(".")
    test = f"tests/unit/{stem}_test.c"
    return test if dot and ending in ("c", "h", "def") and (ROOT / test).is_file() else None


@functools.cache
def programs(suite):
    """{a test file: the name of Meson's test of that suite that runs it}"""
    def ask(what):
        return json.loads(subprocess.run(["meson", "introspect", what, BUILD], check=True, stdout=subprocess.PIPE).stdout)
    sources = {}
    for target in ask("--targets"):
        sources[target["id"]] = [os.path.relpath(s, ROOT) for part in target["target_sources"] for s in part["sources"]]
    return {s: t["name"] for t in ask("--tests") for i in t["depends"] for s in sources.get(i, ())
            if f"trocar:{suite}" in t["suite"] and s.startswith("tests/") and s.endswith(".c")}


def unit(paths):
    """{Meson's test: the test files in it that these files concern; empty: all of them}"""
    chosen = {}
    for path in paths:
        top = path.split("/")[0]
        if top not in PRODUCT and not path.startswith("tests/unit/"):
            continue
        test = unit_test(path)
        folder = f"tests/unit/{os.path.dirname(path)}/" if top in PRODUCT else f"{os.path.dirname(path)}/"
        tests = [test] if test else [t for t in programs("unit") if t.startswith(folder) and t.startswith("tests/unit/")]
        for one in tests:
            if one in programs("unit"):
                files = chosen.setdefault(programs("unit")[one], set())
                if test:
                    files.add(os.path.basename(one)[:-len("_test.c")])
                else:
                    files.add("")
    return {name: set() if "" in files else files for name, files in chosen.items()}


# ---- the kernel side


@functools.cache
def included(path):
    """The files of the kernel side that `path` includes, with what these include, and itself."""
    found, todo = set(), [path]
    while todo:
        name = todo.pop()
        if name not in found and (ROOT / name).is_file():
            found.add(name)
            todo += INCLUDES.findall(text(name))
    return found


def bpf(paths):
    """Meson's names of the tests that load a program of an object which these files are a part of."""
    objects = [o for o in below("bpf", "*.bpf.c") if included(o) & set(paths)]
    touched = {program for o in objects for program in PROGRAM.findall(text(o))}
    chosen = {p for p in paths if p.startswith(("tests/bpf/", "tests/unit/bpf/"))}
    for test in below("tests/bpf", "*.c"):
        loads = re.findall(r'"([^"]+)"', " ".join(LOADS.findall(text(test))))
        if any(fnmatch.fnmatch(program, pattern) for pattern in loads for program in touched):
            chosen.add(test)
    if any(p.startswith(("bpf/", "loader/kernel")) for p in paths):
        chosen.add("tests/bpf/instructions.c")
    return sorted({programs("bpf")[test] for test in chosen if test in programs("bpf")})


# ---- tests in Python


def about(path):
    """The patterns of the sources that a test file in Python says it is about."""
    return [pattern for row in ABOUT.findall(text(path)) for pattern in row.split()]


def python(paths):
    """{suite: its test files that these files concern}"""
    chosen = {}
    for suite in SUITES:
        for test in below(f"tests/{suite}", "test_*.py"):
            if test in paths or any(fnmatch.fnmatch(p, pattern) for pattern in about(test) for p in paths):
                chosen.setdefault(suite, []).append(test)
    return chosen


# ---- for ./check


def steps(base):
    """(suite, step) of what the files concern that differ from `base`."""
    paths = changed_files(base)
    print(f"{len(paths)} changed: {' '.join(paths[:8])}{' ...' if len(paths) > 8 else ''}", flush=True)
    found = [("check", checks(paths))]
    units, kernel = unit(paths), bpf(paths)
    if units:
        found.append(("unit", lambda run: [run.meson(BUILD, "unit", name, env={"TROCAR_UNIT": ",".join(sorted(files))})
                                           for name, files in sorted(units.items())]))
    if kernel:
        found.append(("bpf", lambda run: run.meson(BUILD, "bpf", *kernel)))
    if any(p.startswith(("policy/", "tests/lockdown/")) for p in paths):
        found.append(("lockdown", lambda run: run.meson(BUILD, "lockdown")))
    for suite, tests in python(paths).items():
        words = ["-m", "core", "-n", "4"] if suite != "terminal" else []
        found.append((suite, lambda run, suite=suite, tests=tests, words=words: run.pytest(suite, *words, tests=tests)))
    return found


def checks(paths):
    """Each check, on these files alone where a file can be checked alone; of a check that has changed its self-test too."""
    def step(run):
        for script in below("tests/check", "*"):
            name = os.path.basename(script)
            if "." not in name and os.access(ROOT / script, os.X_OK):
                run.script(run.lane.__dict__, f"{name}: tree", [ROOT / script, "--build", BUILD, "--files", *paths])
                if script in paths or "tests/check/checklib.py" in paths:
                    run.script(run.lane.__dict__, f"{name}: self-test", [ROOT / script, "--self-test"])
    return step


def main(paths):
    for name, files in sorted(unit(paths).items()):
        print(f"unit      {name}{': ' + ' '.join(sorted(files)) if files else ''}")
    for name in bpf(paths):
        print(f"bpf       {name}")
    for suite, tests in python(paths).items():
        for test in tests:
            print(f"{suite:9} {test}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    main([os.path.relpath(p, ROOT) for p in sys.argv[1:]])
