# SPDX-License-Identifier: BSD-2-Clause
"""What `meson install` puts in place, and what systemd says of it without running it. The build is installed into a
folder of this file's own, which its tests share: they are run in the order of the file, and the last ones uninstall."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM_UNITS = pathlib.Path("/usr/lib/systemd/system")
UNITS = ("run-trocar-bpf.mount", "trocar-broker.service", "trocar-broker.socket", "trocar-consumer.service",
         "trocar-loader.service")
# Exposure as `systemd-analyze security` counts it, in tenths. A lower figure reached is a lower figure here.
EXPOSURE = {"trocar-broker.service": 22, "trocar-consumer.service": 6, "trocar-loader.service": 20}
BUILD = pathlib.Path(os.environ.get("TROCAR_BUILD", ROOT / "build")).resolve()


def check(good, why=""):
    if not good:
        pytest.fail(str(why) or "it is not so", pytrace=False)


def run(*words, **kwargs):
    """A command's (status, standard output, standard error)."""
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, check=False, **kwargs)
    return done.returncode, done.stdout, done.stderr


def folders(build):
    """Meson's folders, absolute."""
    options = {o["name"]: o["value"] for o in json.loads(run("meson", "introspect", "--buildoptions", build)[1])}
    prefix = pathlib.Path(options["prefix"])
    return prefix, {name: prefix / options[name] for name in
                    ("bindir", "sbindir", "libexecdir", "sysconfdir", "datadir", "mandir")}


def wanted(build):
    """Every file that belongs in place; of docs/ what its folders hold."""
    prefix, at = folders(build)
    docs, systemd = at["datadir"] / "doc/trocar", prefix / "lib"
    files = {at["bindir"] / "trocar", at["sbindir"] / "trocar-loader", at["libexecdir"] / "trocar/trocar-consumer",
             at["sysconfdir"] / "trocar/rules.json", systemd / "sysusers.d/trocar.conf",
             systemd / "tmpfiles.d/trocar.conf", docs / "README.md", docs / "index.md", docs / "CHANGELOG.md",
             at["libexecdir"] / "trocar/trocar-activate", at["libexecdir"] / "trocar/installed",
             at["libexecdir"] / "trocar/uninstall", at["datadir"] / "bash-completion/completions/trocar",
             at["datadir"] / "zsh/site-functions/_trocar", at["datadir"] / "fish/vendor_completions.d/trocar.fish"}
    files |= {systemd / "systemd/system" / unit for unit in UNITS}
    for path in (ROOT / "docs").rglob("*"):
        inside = path.relative_to(ROOT / "docs")
        if path.is_dir() or path.name == "meson.build":
            continue
        if inside.parts[0] == "man":
            files.add(at["mandir"] / f"man{path.suffix[1:]}" / path.name)
        else:
            files.add(docs / inside)
    return {str(f) for f in files}


def found(tree, folders_too=False):
    return {"/" + str(p.relative_to(tree)) for p in tree.rglob("*") if folders_too or not p.is_dir()}


def install(tree):
    return run("meson", "install", "-C", BUILD, "--no-rebuild", env={**os.environ, "DESTDIR": str(tree)})


@pytest.fixture(scope="module")
def tree():
    """The folder that `meson install` has filled."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze: it is in the package systemd")
    if not (BUILD / "loader" / "trocar-loader").exists():
        pytest.skip(f"{BUILD}/loader/trocar-loader is not built")
    with tempfile.TemporaryDirectory(prefix="trocar-systemd-") as scratch:
        place = pathlib.Path(scratch)
        status, out, err = install(place)
        check(status == 0, out[-2000:] + err)
        yield place


# ---- what is in place


def test_nothing_is_missing(tree):
    """Every file that belongs in place is there."""
    missing = wanted(BUILD) - found(tree)
    check(not missing, "\n".join(sorted(missing)))


def test_nothing_is_too_many(tree):
    """And no other."""
    more = found(tree) - wanted(BUILD)
    check(not more, "\n".join(sorted(more)))


def test_installed_links(tree):
    """Each link of an installed document leads to an installed file."""
    _, at = folders(BUILD)
    docs = tree / str(at["datadir"] / "doc/trocar").lstrip("/")
    for page in docs.rglob("*.md"):
        for link in re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            check((page.parent / link).exists(), f"{page.relative_to(docs)}: {link}")


def test_second_install(tree):
    """It leaves the operator's rules alone."""
    rules = next(tree.rglob("rules.json"))
    rules.write_text("mine\n", encoding="utf-8")
    install(tree)
    check(rules.read_text(encoding="utf-8") == "mine\n", "the rules were replaced")


def test_list(tree):
    """What it wrote down for `uninstall` is what is there, of a second installation too."""
    place = next(tree.rglob("trocar/installed"))
    listed = [row for row in place.read_text(encoding="utf-8").splitlines() if row.startswith("/")]
    check(set(listed) == found(tree) - {f for f in found(tree) if f.endswith("/trocar/rules.json")} and
          len(listed) == len(set(listed)), sorted(set(listed) ^ found(tree)))


def commands_of(name):
    """The commands of a document's blocks of shell that install from the source tree."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [row for row in text.splitlines() if row.startswith(("meson setup ", "meson install "))]


@pytest.mark.parametrize("name", ["README.md", "docs/install.md"])
def test_documented_commands(name):
    """They name the prefix, and a folder that neither ./run nor ./check makes."""
    check(commands_of(name) == ["meson setup build-install --prefix=/usr", "meson install -C build-install"], commands_of(name))
    made = [row for file in ("run", "check", ".ci/run", "tests/vm/run") for row in (ROOT / file).read_text(encoding="utf-8").splitlines()
            if "build-install" in row]
    check(not made, f"somebody else makes that folder: {made}")


@pytest.mark.timeout(900)
def test_prefix_without_tests(tmp_path):
    """A folder that was set up without a prefix has /usr, and what `meson install` builds there is no test."""
    status, out, err = run("meson", "setup", tmp_path / "build", ROOT)
    check(status == 0, out[-1000:] + err)
    check(folders(tmp_path / "build")[0] == pathlib.Path("/usr"), f"the prefix is {folders(tmp_path / 'build')[0]}")
    targets = json.loads(run("meson", "introspect", "--targets", tmp_path / "build")[1])
    tests = [t["name"] for t in targets if t["build_by_default"] and "/tests/" in t["defined_in"].removeprefix(str(ROOT))]
    check(targets and not tests, f"meson install builds {tests}")


def test_templates(tree):
    """No path in a unit was left open."""
    left = [str(p) for unit in UNITS for p in tree.rglob(unit) if re.search("@[a-z]+@", p.read_text(encoding="utf-8"))]
    check(not left, "\n".join(left))


def test_rate_limit(tree):
    """Of the lines in the journal: there is one, and no honest minute reaches it (64 CPUs, 97 ticks a second)."""
    text = next(tree.rglob("trocar-consumer.service")).read_text(encoding="utf-8")
    limit = dict(re.findall(r"^LogRateLimit(IntervalSec|Burst)=([0-9]+)s?$", text, re.M))
    seconds, lines = (int(limit.get(key, 0)) for key in ("IntervalSec", "Burst"))
    honest = 64 * (97 * 60 + 97 * 30 // 5) + 10 * 600
    check(seconds == 60 and honest <= lines <= 2 * honest, f"{lines} lines in {seconds} s, honest: {honest}")


# ---- what systemd says


@pytest.fixture(scope="module")
def root(tree):
    """A root with the units and the few of systemd's own that they name."""
    with tempfile.TemporaryDirectory(prefix="trocar-systemd-") as scratch:
        place = pathlib.Path(scratch) / "root"
        shutil.copytree(tree, place, symlinks=True)
        own = place / "usr/lib/systemd/system"
        wants = own / "sysinit.target.wants"
        wants.mkdir(parents=True)
        for name in SYSTEM_UNITS.glob("*.target"):
            shutil.copy(name, own)
        for name in ("systemd-sysusers.service", "systemd-tmpfiles-setup.service"):
            shutil.copy(SYSTEM_UNITS / name, own)
            (wants / name).symlink_to(f"../{name}")
        (place / "usr/bin").mkdir(parents=True, exist_ok=True)
        shutil.copy(shutil.which("kill"), place / "usr/bin/kill")
        yield place


def verify(place):
    return run("systemd-analyze", "verify", "--man=no", "--recursive-errors=yes", f"--root={place}", *UNITS)


def test_verify(root):
    """Any word is a fault: an ordering cycle, or a key that it does not know, does not change its status."""
    status, out, err = verify(root)
    check(status == 0 and not (out + err).strip(), f"{status}\n{out}{err}")


def test_verify_can_fail(tree, root):
    """It would not be silent, had the mount default dependencies."""
    unit = root / next(tree.rglob(UNITS[0])).relative_to(tree)
    unit.write_text(unit.read_text(encoding="utf-8").replace("DefaultDependencies=no\n", ""), encoding="utf-8")
    _, out, err = verify(root)
    check("ordering cycle" in out + err, out + err)


@pytest.mark.parametrize("unit", EXPOSURE)
def test_exposure(tree, unit):
    """systemd-analyze security counts no more than the figure that was reached."""
    status, out, err = run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE[unit]}", "--no-pager",
                           next(tree.rglob(unit)))
    said = (out.strip().splitlines() or [""])[-1]
    print(f"# {said}")
    check(status == 0, said + err)


def calls_of(word):
    """A name of SystemCallFilter= (systemd.exec(5)) as system calls: @groups hold names and groups."""
    if not word.startswith("@"):
        return {word}
    status, out, err = run("systemd-analyze", "syscall-filter", word)
    check(status == 0, err)
    rows = [row.strip() for row in out.splitlines() if row.startswith("    ") and not row.strip().startswith("#")]
    return set().union(*map(calls_of, rows))


# run-trocar-bpf.mount mounts, so that the unit of the loader need not.
MOUNTS = {"fsconfig", "fsmount", "fsopen", "mount", "umount2"}


@pytest.mark.parametrize("unit, sets", (("loader", ("LOADER",)), ("broker", ("BROKER", "RESOLVER")),
                                        ("consumer", ("CONSUMER", "CONSUMER_UNIX", "CONSUMER_BROKER", "CONSUMER_CONNECT"))))
def test_unit_allows_the_calls_of_the_program(unit, sets):
    """Each call of policy/syscalls.def passes the unit's own filter, which a program does not see before it is started."""
    allowed = set()
    for row in (ROOT / "systemd" / f"trocar-{unit}.service.in").read_text(encoding="utf-8").splitlines():
        if row.startswith("SystemCallFilter="):
            words = row.partition("=")[2]
            names = set().union(*map(calls_of, words.removeprefix("~").split()))
            allowed = allowed - names if words.startswith("~") else allowed | names
    rows = re.findall(r"^SYSCALL(?!_DENY)\w*\((\w+), (\w+)", (ROOT / "policy/syscalls.def").read_text(encoding="utf-8"), re.M)
    needed = {name for of, name in rows if of in sets} - (MOUNTS if unit == "loader" else set())
    check(needed, f"policy/syscalls.def has no row of {sets}")
    check(needed <= allowed, f"trocar-{unit}.service does not allow {sorted(needed - allowed)}")


def test_beside_stuck(tree):
    """systemd waits for no worker of the broker that no signal ends, and a second broker with its own has room."""
    unit = next(tree.rglob("trocar-broker.service")).read_text(encoding="utf-8")
    said = dict(re.findall(r"^(KillMode|TasksMax)=(\S+)$", unit, re.M))
    workers = int(re.search(r"^#define BROKER_WORKERS\s+(\d+)", (ROOT / "loader/broker/broker_worker.h").read_text(encoding="utf-8"),
                            re.M)[1])
    check(said.get("KillMode") == "process" and int(said.get("TasksMax", 0)) >= 2 * (workers + 1), f"{said}")


@contextlib.contextmanager
def declared(tree):
    """A root in which sysusers and tmpfiles are asked, with their files; sysusers has run."""
    with tempfile.TemporaryDirectory(prefix="trocar-systemd-") as scratch:
        place = pathlib.Path(scratch)
        for kind in ("sysusers.d", "tmpfiles.d"):
            (place / "usr/lib" / kind).mkdir(parents=True)
            shutil.copy(next(tree.rglob(f"{kind}/trocar.conf")), place / "usr/lib" / kind)
        (place / "etc").mkdir()
        yield place, run("systemd-sysusers", f"--root={place}")


def test_sysusers(tree):
    """sysusers makes the user, and puts it into trocar-admin."""
    with declared(tree) as (place, (status, out, err)):
        groups = (place / "etc/group").read_text(encoding="utf-8") if (place / "etc/group").exists() else ""
        check(status == 0 and any(line.startswith("trocar-admin:") and line.endswith(":trocar")
                                  for line in groups.splitlines()), out + err + groups)


def test_tmpfiles(tree):
    """tmpfiles makes /run/trocar, root's and sticky."""
    if os.geteuid():
        pytest.skip("not root")
    with declared(tree) as (place, _):
        _, out, err = run("systemd-tmpfiles", "--create", f"--root={place}", "trocar.conf")
        made = place / "run/trocar"
        mode = oct(made.stat().st_mode & 0o7777) if made.exists() else "none"
        check(mode == "0o1775" and made.stat().st_uid == 0, f"{mode}\n{out}{err}")


# ---- what uninstall leaves: last, because these take the tree away


def uninstall(tree, *options):
    """As it stands there, in a place that knows nothing of the tree and the build folder."""
    return run(next(tree.rglob("trocar/uninstall")), *options, env={"PATH": os.environ["PATH"], "DESTDIR": str(tree)}, cwd="/")


def test_uninstall_help(tree):
    """It says how it is called, and takes nothing away for a word that it does not know."""
    before = found(tree)
    for words, status in ((["--help"], 0), (["--purgee"], 2), (["build"], 2), (["--list"], 2), (["--list", "/nowhere"], 2)):
        said = uninstall(tree, *words)
        check(said[0] == status and "usage: uninstall [--purge]" in said[1 + (status > 0)], f"{words}: {said}")
    check(found(tree) == before, "something is gone")


def test_uninstall(tree):
    """It leaves no file but rules that the operator has changed."""
    status, out, err = uninstall(tree)
    left = {f for f in found(tree) if not f.endswith("/trocar/rules.json")}
    check(status == 0 and not left and len(found(tree)) == 1, out + err + "\n".join(sorted(left)))


def test_purge(tree):
    """uninstall --purge leaves nothing."""
    install(tree)
    status, out, err = uninstall(tree, "--purge")
    ours = {f for f in found(tree, folders_too=True) if "trocar" in f}
    check(status == 0 and not found(tree) and not ours, out + err + "\n".join(sorted(found(tree, folders_too=True))))


def test_uninstall_unchanged_rules(tree):
    """It takes rules away that nobody changed, of an earlier version too."""
    install(tree)
    rules, listed = next(tree.rglob("rules.json")), next(tree.rglob("trocar/installed"))
    text = listed.read_text(encoding="utf-8")
    old = b'{ "version": 1, "rules": [] }'
    listed.write_text(text.replace(hashlib.sha256(rules.read_bytes()).hexdigest(), hashlib.sha256(old).hexdigest()), encoding="utf-8")
    rules.write_bytes(old)
    install(tree)
    status, out, err = uninstall(tree)
    check(status == 0 and not found(tree), out + err)
