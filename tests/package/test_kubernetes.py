# SPDX-License-Identifier: BSD-2-Clause
"""The manifests: against Kubernetes' own types, and the split that they promise. test_containers.py runs them."""
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess

import manifests
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TROCAR_BUILD", ROOT / "build")).resolve()
MODELS = "kubernetes-models@5.1.0"
FILES = ("trocar.yaml", "unload.yaml")
# What may only be asked for by name: who has it owns the node.
NEVER = {"privileged", "hostNetwork", "hostIPC", "SYS_MODULE", "SYS_RAWIO", "DAC_OVERRIDE", "NET_ADMIN", "ALL"}
DANGEROUS = {"ptrace", "process_vm_readv", "process_vm_writev", "mount", "umount2", "pivot_root", "unshare", "setns", "kexec_load",
             "init_module", "finit_module", "perf_event_open", "open_by_handle_at", "userfaultfd", "io_uring_setup", "keyctl",
             "chroot", "reboot", "swapon", "execveat", "pidfd_getfd", "memfd_create", "process_madvise", "ioperm", "iopl"}


@pytest.fixture(scope="module")
def models():
    """A folder with the types, from npm, kept between runs."""
    for program in ("npm", "node"):
        if not shutil.which(program):
            pytest.skip(f"no {program} here")
    folder = BUILD / "kubernetes-models"
    if not (folder / "node_modules/kubernetes-models/apps").exists():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder, MODELS],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=200, check=False)
        if done.returncode:
            pytest.skip(f"npm could not fetch {MODELS}: {done.stdout.decode()[-200:]}")
    return folder


@pytest.mark.parametrize("name", FILES)
def test_types(models, name):
    """Every value has the type that the API has for it."""
    said = manifests.values_that_do_not_fit(models, manifests.documents(name))
    assert not said, said


@pytest.mark.parametrize("name", FILES)
def test_keys(models, name):
    """Every key is one that the API knows."""
    said = list(manifests.keys_that_nobody_knows(models, manifests.documents(name)))
    assert not said, said


def test_they_can_fail(models):
    """A number as text, and a mistyped key deep inside, would be found."""
    wrong = copy.deepcopy(manifests.documents("trocar.yaml"))
    spec = next(d for d in wrong if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    spec["containers"][0]["securityContext"]["runAsUser"] = "root"
    spec["containers"][0]["securityContext"]["readOnlyRootFileSystem"] = True
    assert len(manifests.values_that_do_not_fit(models, wrong)) == 1
    assert list(manifests.keys_that_nobody_knows(models, wrong)) == [
        "DaemonSet.spec.template.spec.containers.securityContext.readOnlyRootFileSystem"]


def words(value):
    if isinstance(value, dict):
        return {str(k) for k, v in value.items() if v is not False} | set().union(*map(words, value.values()))
    if isinstance(value, list):
        return set().union(*map(words, value)) if value else set()
    return {str(value)}


def test_consumer_has_nothing():
    """No root, no capability, nothing to gain, a root that it cannot write, a profile of its own."""
    consumer = manifests.containers(manifests.pod("trocar.yaml"))["consumer"]
    security = consumer["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] > 0
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["readOnlyRootFilesystem"] and security["allowPrivilegeEscalation"] is False
    assert security["seccompProfile"]["type"] == "Localhost"
    assert {m["name"] for m in consumer["volumeMounts"] if not m.get("readOnly")} == {"run", "pins"}


@pytest.mark.parametrize("name", FILES)
def test_the_others_are_few(name):
    """Each drops everything, names what it takes, and none takes what owns the node."""
    for container in manifests.containers(manifests.pod(name)).values():
        security = container["securityContext"]
        assert security["capabilities"]["drop"] == ["ALL"], container["name"]
        assert not NEVER & (words(container) - {"ALL"} | set(security["capabilities"].get("add", []))), container["name"]
    assert not NEVER & words({k: v for k, v in manifests.pod(name).items() if k not in ("containers", "initContainers")})


def test_capabilities_are_those_of_the_policy():
    """No container asks for one that policy/capabilities.def does not give to its process."""
    rows = re.findall(r"^CAP\((\w+), CAP_(\w+),", (ROOT / "policy/capabilities.def").read_text(encoding="utf-8"), re.M)
    found = manifests.containers(manifests.pod("trocar.yaml"))
    for name in ("loader", "broker"):
        given = {capability for process, capability in rows if process == name.upper()}
        assert set(found[name]["securityContext"]["capabilities"]["add"]) <= given, name


@pytest.mark.parametrize("name", ["consumer", "loader", "broker"])
def test_profile(name):
    """It has every call of the process's policy; the consumer's has none by which a process leaves its box."""
    security = manifests.containers(manifests.pod("trocar.yaml"))[name]["securityContext"]["seccompProfile"]
    assert security == {"type": "Localhost", "localhostProfile": f"trocar-{name}.json"}
    profile = json.loads((manifests.FOLDER / "seccomp" / f"trocar-{name}.json").read_text(encoding="utf-8"))
    named = {name for group in profile["syscalls"] for name in group["names"]}
    policy = (ROOT / "policy/syscalls.def").read_text(encoding="utf-8")
    rows = set(re.findall(rf"^SYSCALL(?:_IF2?|_UNLESS|_SELF)?\({name.upper()}\w*, (\w+)", policy, re.M))
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert rows and rows <= named, sorted(rows - named)
    assert name != "consumer" or not DANGEROUS & named


def test_version():
    """The image is that of this version."""
    version = re.search(r"^  version: '(.*)',", (ROOT / "meson.build").read_text(encoding="utf-8"), re.M).group(1)
    for name in FILES:
        assert {c["image"] for c in manifests.containers(manifests.pod(name)).values()} == {f"trocar:{version}"}, name


def test_user():
    """Numbers of the manifests are those of the image."""
    number = re.search(r"^USER (\d+):\1$", (ROOT / "packaging/Containerfile").read_text(encoding="utf-8"), re.M).group(1)
    found = manifests.containers(manifests.pod("trocar.yaml"))
    assert str(found["consumer"]["securityContext"]["runAsUser"]) == number
    assert str(found["broker"]["securityContext"]["runAsGroup"]) == number


def test_rules():
    """Those of the ConfigMap are rules."""
    rules = next(d for d in manifests.documents("trocar.yaml") if d["kind"] == "ConfigMap")["data"]["rules.json"]
    json.loads(rules)
