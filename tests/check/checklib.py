# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of this folder share. A check is a script with a function that takes a Tree and yields
faults ("file:line: what is wrong"), and with samples: small trees that it must refuse, and one that it
must accept. `NAME` checks the repository, `NAME --self-test` proves that the check can fail."""
import argparse
import functools
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("shared", "policy", "bpf", "loader", "consumer", "ctl")


class CannotRun(Exception):
    """The check needs something that is not here; the text says what. Exit status 77."""


class Tree:
    """The files to check. `only`: those that a check of single files is asked for, None for all. `quick`: the caller has
    minutes, so that what takes longest is left to another run."""

    def __init__(self, root, build, only=None, quick=False):
        self.root, self.build, self.only, self.quick = pathlib.Path(root), pathlib.Path(build), only, quick

    def asked(self, names):
        """Those of the names that are to be checked, where each is checked by itself."""
        return [n for n in names if self.only is None or n in self.only]

    @functools.cached_property
    def files(self):
        """Tracked and not ignored new files, relative, sorted; all files where there is no git."""
        if (self.root / ".git").exists():
            listed = subprocess.run(
                ["git", "-c", f"safe.directory={self.root}", "ls-files", "-co",
                 "--exclude-standard", "-z"], cwd=self.root, check=True, stdout=subprocess.PIPE)
            names = [n for n in listed.stdout.decode().split("\0") if n]
        else:
            names = [str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file()]
            names = [n for n in names if not n.startswith(("build/", "build-")) and
                     "__pycache__" not in n]
        return sorted(n for n in names if (self.root / n).is_file())

    def named(self, *endings):
        return [n for n in self.files if n.endswith(endings)]

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def lines(self, name):
        return enumerate(self.text(name).splitlines(), 1)


def objects(tree, tops):
    """(object file, source file) of each C file below the folders `tops`. Meson puts the object of DIR/SUB/NAME.c, listed
    in DIR/meson.build, into BUILD/DIR/TARGET.p/SUB_NAME.c.o. A source that no target has compiled is CannotRun: what a
    check passes over in silence it does not hold. In a self-test the sources are compiled first."""
    built = {}
    if tree.root != ROOT:
        compile_all(tree)
    for path in sorted(tree.build.glob("**/*.c.o")):
        home = path.parent.parent.relative_to(tree.build).as_posix()
        built.setdefault((home, path.name), path)
    for source in tree.named(".c"):
        parts = source.split("/")
        if parts[0] not in tops:
            continue
        places = [("/".join(parts[:n]), "_".join(parts[n:]) + ".o") for n in range(1, len(parts))]
        found = next((built[place] for place in reversed(places) if place in built), None)
        if not found:
            raise CannotRun(f"no object file of {source} in {tree.build}")
        yield found, source


def external(tree, tops):
    """(source file, [(kind, name)]) of the external symbols of each of objects(), kinds as nm names them: U for those
    that it leaves undefined. One nm for all files."""
    found = list(objects(tree, tops))
    status, listed = run(["nm", "--extern-only", "--print-file-name", *(path for path, _ in found)])
    symbols = {str(path): [] for path, _ in found}
    for line in (row for row in listed.splitlines() if found and not row.endswith(": no symbols")):
        path, _, rest = line.partition(":")
        if path not in symbols or len(rest.split()) < 2:
            raise CannotRun(f"nm: {line}")
        symbols[path].append(tuple(rest.split()[-2:]))
    if found and status:
        raise CannotRun(f"nm: status {status}")
    for path, source in found:
        yield source, symbols[str(path)]


def compile_all(tree):
    """As Meson would, each file listed beside itself."""
    for source in tree.named(".c"):
        out = tree.build / pathlib.Path(source).parent / "sample.p" / (pathlib.Path(source).name + ".o")
        out.parent.mkdir(parents=True, exist_ok=True)
        run(["gcc", "-c", f"-I{tree.root}", tree.root / source, "-o", out])


def run(words, cwd=None, text=None):
    """Runs a command; returns (status, stdout and stderr). CannotRun when it is not installed."""
    try:
        done = subprocess.run([str(w) for w in words], cwd=cwd, input=text, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise CannotRun(f"{words[0]} is not installed") from None
    return done.returncode, done.stdout


def self_test(check, refused, accepted):
    """Every sample of `refused` must yield a fault, `accepted` none."""
    failures = []
    for what, files in [*refused.items(), (None, accepted)]:
        with tempfile.TemporaryDirectory(prefix="trocar-check-") as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            found = list(check(Tree(folder, os.path.join(folder, "build"))))
        if what and not found:
            failures.append(f"accepts {what}")
        if not what and found:
            failures.append("refuses the good sample: " + "; ".join(map(str, found)))
    return failures


def main(check, refused, accepted):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--self-test", action="store_true", help="prove that the check can fail")
    parser.add_argument("--build", default=ROOT / "build", help="the build directory")
    parser.add_argument("--files", nargs="*", help="check these alone, where files are checked one by one")
    parser.add_argument("--quick", action="store_true", help="leave out what takes longest")
    options = parser.parse_args()
    try:
        if options.self_test:
            found = self_test(check, refused, accepted)
        else:
            found = list(check(Tree(ROOT, options.build, options.files, options.quick)))
    except CannotRun as reason:
        print(f"cannot run: {reason}")
        sys.exit(77)
    for fault in found:
        print(fault)
    sys.exit(1 if found else 0)
