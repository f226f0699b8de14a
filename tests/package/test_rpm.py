# SPDX-License-Identifier: BSD-2-Clause
"""The RPM packages, built by rpmbuild on this system, which is no RPM one: without its macros, and without a look at what
they say they need."""
import pathlib
import re
import shutil
import subprocess

import packages
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = ROOT / "packaging" / "rpmlint.toml"


@pytest.fixture(scope="module")
def rpms():
    """The folder with the packages."""
    for program in ("rpmbuild", "rpmlint"):
        if not shutil.which(program):
            pytest.skip(f"no {program} here: tests/install-deps package")
    return packages.made("rpm")


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=600, check=False)


def query(path, *words):
    done = run("rpm", "-qp", *words, path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rpm(folder, name):
    return next(p for p in folder.glob(f"{name}-[0-9]*.rpm") if not p.name.endswith(".src.rpm"))


def test_rpmlint(rpms):
    """No error and no warning, of the spec and of all packages, but for what the configuration names with its reason."""
    said = run("rpmlint", "--strict", "--config", CONFIG, ROOT / "packaging/trocar.spec", *sorted(rpms.glob("*.rpm")))
    assert said.returncode == 0 and re.search(r"\b0 errors, 0 warnings", said.stdout), said.stdout[-4000:] + said.stderr[-500:]


def test_contents(rpms):
    """The same files as of `meson install`, in two packages."""
    agent, tools = (set(query(rpm(rpms, name), "-l").split()) for name in ("trocar", "trocar-tools"))
    assert {"/etc/trocar/rules.json", "/usr/sbin/trocar-loader", "/usr/libexec/trocar/trocar-consumer",
            "/usr/lib/systemd/system/trocar-consumer.service", "/usr/lib/sysusers.d/trocar.conf",
            "/usr/share/man/man8/trocar-loader.8.gz", "/usr/share/man/man8/trocar-consumer.8.gz"} <= agent, agent
    assert {"/usr/bin/trocar", "/usr/share/man/man1/trocar.1.gz", "/usr/share/bash-completion/completions/trocar"} <= tools, tools
    assert "/usr/bin/trocar" not in agent


def test_rules_are_the_operators(rpms):
    """rpm does not write over them."""
    assert query(rpm(rpms, "trocar"), "--configfiles").split() == ["/etc/trocar/rules.json"]
    flags = dict(zip(query(rpm(rpms, "trocar"), "--qf", "[%{FILENAMES} ]").split(),
                     query(rpm(rpms, "trocar"), "--qf", "[%{FILEFLAGS:fflags}, ]").split(", ")))
    assert flags["/etc/trocar/rules.json"] == "cn", flags["/etc/trocar/rules.json"]


def test_scripts(rpms):
    """Users and folders when it comes, the units when it goes; each a script that the shell takes."""
    said = query(rpm(rpms, "trocar"), "--scripts")
    assert "systemd-sysusers trocar.conf" in said and "systemctl stop trocar-broker.socket" in said, said
    for part in re.split(r"^\w+ scriptlet \(using .*\):$", said, flags=re.M)[1:]:
        done = subprocess.run(["sh", "-n"], input=part, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
