# SPDX-License-Identifier: BSD-2-Clause
"""The Debian packages, as files: lintian, what is in them, and that their symbols fit. tests/vm installs them."""
import os
import pathlib
import re
import shutil
import subprocess

import packages
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WANTED = {
    "trocar": {"/usr/libexec/trocar/trocar", "/usr/libexec/trocar/trocar-consumer", "/usr/libexec/trocar/trocar-activate",
               "/usr/sbin/trocar-loader", "/etc/trocar/rules.json", "/usr/lib/sysusers.d/trocar.conf",
               "/usr/lib/tmpfiles.d/trocar.conf", "/usr/share/man/man8/trocar-loader.8.gz",
               "/usr/share/man/man8/trocar-consumer.8.gz", "/usr/share/trocar/trocar.1.gz", "/usr/share/trocar/trocar.bash",
               "/usr/share/trocar/_trocar", "/usr/share/trocar/trocar.fish", "/usr/share/doc/trocar/pipeline/schema.sql",
               "/usr/share/doc/trocar/events.md", "/usr/share/doc/trocar/CHANGELOG.md"}
              | {f"/lib/systemd/system/{unit}" for unit in ("run-trocar-bpf.mount", "trocar-broker.service", "trocar-broker.socket",
                                                           "trocar-consumer.service", "trocar-loader.service")},
    "trocar-tools": {"/usr/libexec/trocar-tools/trocar", "/usr/share/trocar-tools/trocar.1.gz",
                     "/usr/share/trocar-tools/trocar.bash", "/usr/share/trocar-tools/_trocar",
                     "/usr/share/trocar-tools/trocar.fish"},
}


@pytest.fixture(scope="module")
def debs():
    """The folder with the packages."""
    for program in ("dpkg-buildpackage", "dh", "lintian"):
        if not shutil.which(program):
            pytest.skip(f"no {program} here: tests/install-deps package")
    return packages.debs()


def run(*words, **options):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=600, check=False, **options)


def deb(folder, name):
    return next(folder.glob(f"{name}_*.deb"))


def unpacked(folder, name, place):
    subprocess.run(["dpkg-deb", "-x", deb(folder, name), place], check=True)
    return place


def test_lintian(debs):
    """Without a word, of the source and of the packages, information included."""
    said = run("lintian", "--allow-root", "--display-info", next(debs.glob("*.changes")))
    out = "\n".join(row for row in (said.stdout + said.stderr).splitlines() if not row.startswith("running with root"))
    assert said.returncode == 0 and not out.strip(), out[-4000:]


@pytest.mark.parametrize("name", WANTED)
def test_contents(debs, name):
    """What a user of it needs is in it, and no program or unit besides."""
    listed = run("dpkg-deb", "-c", deb(debs, name)).stdout.splitlines()
    files = {row.split()[5][1:] for row in listed if not row.startswith("d")}
    assert WANTED[name] <= files, sorted(WANTED[name] - files)
    programs = {f for f in files if re.match(r"/(usr/)?(s?bin|lib|libexec)/", f)}
    assert programs <= WANTED[name] | {f"/usr/lib/{kind}/trocar.conf" for kind in ("sysusers.d", "tmpfiles.d")}, programs


def test_alone(debs):
    """Neither needs the other: `apt install ./trocar_*.deb` is all that a machine needs."""
    for name in WANTED:
        depends = run("dpkg-deb", "-f", deb(debs, name), "Depends", "Pre-Depends").stdout
        assert "trocar" not in depends, depends


def test_rules_are_the_operators(debs):
    """dpkg asks before it writes over them."""
    place = run("dpkg-deb", "--info", deb(debs, "trocar"), "conffiles").stdout
    assert place.split() == ["/etc/trocar/rules.json"], place


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path).stdout).group(1)


def test_same_command(debs, tmp_path):
    """Both have the same one, by the build-id, so that the symbols fit both. (The stripped files differ: one names its
    file of symbols.)"""
    first, second = (unpacked(debs, name, tmp_path / name) / f"usr/libexec/{name}/trocar" for name in WANTED)
    assert build_id(first) == build_id(second)


def test_symbols(debs, tmp_path):
    """trocar-dbgsym names the functions of all four programs."""
    tree = unpacked(debs, "trocar", tmp_path / "trocar")
    symbols = unpacked(debs, "trocar-dbgsym", tmp_path / "dbgsym")
    for program in ("usr/sbin/trocar-loader", "usr/libexec/trocar/trocar-consumer", "usr/libexec/trocar/trocar",
                    "usr/libexec/trocar/trocar-activate"):
        mark = build_id(tree / program)
        debug = symbols / "usr/lib/debug/.build-id" / mark[:2] / f"{mark[2:]}.debug"
        assert debug.exists(), program
        assert re.search(r" T main$", run("nm", debug).stdout, re.M), program


def test_hardened(debs, tmp_path):
    """Position independent, with relocations that are read-only, no executable stack, and checked string functions."""
    tree = unpacked(debs, "trocar", tmp_path / "trocar")
    for program in ("usr/sbin/trocar-loader", "usr/libexec/trocar/trocar-consumer", "usr/libexec/trocar/trocar"):
        said = run("readelf", "-hldW", tree / program).stdout
        assert re.search(r"Type:\s+DYN", said) and "GNU_RELRO" in said and "BIND_NOW" in said or "FLAGS_1" in said, program
        assert re.search(r"GNU_STACK\s+\S+ \S+ \S+ \S+ \S+ RW ", said), program
        assert "__stack_chk_fail" in run("nm", "-D", tree / program).stdout, program


def test_scripts(debs, tmp_path):
    """The shell takes the scripts that dpkg runs."""
    for name in WANTED:
        place = tmp_path / name
        subprocess.run(["dpkg-deb", "-e", deb(debs, name), place], check=True)
        for script in ("preinst", "postinst", "prerm", "postrm"):
            if (place / script).exists():
                done = run("sh", "-n", place / script)
                assert done.returncode == 0, done.stderr


def test_version(debs):
    """That of meson.build, in each."""
    version = re.search(r"^  version: '(.*)',", (ROOT / "meson.build").read_text(encoding="utf-8"), re.M).group(1)
    for package in debs.glob("*.deb"):
        assert run("dpkg-deb", "-f", package, "Version").stdout.strip() == version, package
    assert (debs / f"trocar_{version}.dsc").exists() and os.path.exists(debs / f"trocar_{version}.tar.xz")
