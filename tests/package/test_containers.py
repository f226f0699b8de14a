# SPDX-License-Identifier: BSD-2-Clause
"""The containers of the DaemonSet, run one after the other as the kubelet would, by podman on this kernel: loader,
broker, consumer, rules from a ConfigMap, a stall, and the end. What podman is told comes from the manifest."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import manifests
import packages
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TROCAR_BUILD", ROOT / "build")).resolve()
RULE = {"name": "shop", "match": {"comm": "kube_burn"}, "when": [{"pressure": "cpu", "some_ms": 200, "window_ms": 1000}],
        "capture": {"pre_ms": 2000, "during_ms": 1000, "cooldown_ms": 1000}}


def podman(*words, check=True, seconds=120):
    # runc, as most kubelets have it, and because crun takes no hybrid cgroups. Limits that need no CAP_SYS_RESOURCE.
    limits = ["--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096"] if words[0] == "run" else []
    words = [words[0], *limits, *words[1:]]
    done = subprocess.run(["podman", "--runtime", "runc", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds,
                          check=False)
    if check and done.returncode:
        pytest.fail(f"podman {words[0]}: {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}", pytrace=False)
    return done


@pytest.fixture(scope="module")
def image():
    """The image of `packaging/make image`, in podman's store."""
    if os.geteuid() or not os.path.exists("/sys/kernel/btf/vmlinux"):
        pytest.skip("not root, or a kernel without BTF")
    for program in ("podman", "runc", "buildah", "mmdebstrap"):
        if not shutil.which(program):
            pytest.skip(f"no {program} here: tests/install-deps package")
    base = subprocess.run([ROOT / "tests/package/base-image"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=900, check=False)
    if base.returncode:
        pytest.skip((base.stderr.strip().splitlines() or ["no base image"])[-1])
    folder = packages.made("image", {"BASE_IMAGE": base.stdout.strip(), "BUILDAH_ISOLATION": "chroot"})
    pulled = podman("pull", "--quiet", f"oci-archive:{folder}/trocar-image.tar").stdout.split()[-1]
    tried = podman("run", "--rm", "--network", "none", "--entrypoint", "/bin/true", pulled, check=False)
    if tried.returncode:
        pytest.skip(f"no container can be started here: {tried.stderr.strip()[-300:]}")
    return pulled


def config_map(folder, number, rules):
    """As the kubelet writes a ConfigMap: a new folder, and one rename of the link through which it is read."""
    data = folder / f"..2026_{number}"
    data.mkdir()
    (data / "rules.json").write_text(json.dumps({"version": 1, "rules": rules}), encoding="utf-8")
    (folder / "..new").symlink_to(data.name)
    (folder / "..new").rename(folder / "..data")
    if not (folder / "rules.json").is_symlink():
        (folder / "rules.json").symlink_to("..data/rules.json")


class Node:
    """What the pod stands on: the folders of its volumes, and the containers that run."""

    def __init__(self, folder, image_):
        self.image, self.folder, self.running = image_, folder, []
        self.places = {name: folder / name for name in ("run", "seccomp", "rules")}
        for place in self.places.values():
            place.mkdir(mode=0o755)
        self.places["run"].chmod(0o777)  # as an emptyDir is
        (folder / "bpf").mkdir()
        subprocess.run(["mount", "-t", "bpf", "bpffs", folder / "bpf", "-o", "mode=0700"], check=True)
        self.places["pins"] = folder / "bpf" / "trocar"
        self.places["pins"].mkdir()

    def words(self, name, file="trocar.yaml"):
        spec = manifests.pod(file)
        return manifests.podman_words(spec, manifests.containers(spec)[name], self.image, self.places, self.places["seccomp"])

    def run(self, name, file="trocar.yaml"):
        """A container that ends by itself."""
        return podman("run", "--rm", *self.words(name, file), check=False)

    def start(self, name):
        own = f"trocar-{name}-{os.getpid()}"
        self.running.append(own)
        podman("run", "--detach", "--log-driver", "k8s-file", "--name", own, *self.words(name))
        return own

    def stop(self, own):
        podman("stop", "--time", "15", own)
        said = podman("logs", own, check=False)
        podman("rm", "--force", own)
        self.running.remove(own)
        return said.stdout, said.stderr

    def close(self):
        for own in self.running:
            print(podman("logs", own, check=False).stderr[-1500:])
            podman("rm", "--force", "--time", "3", own, check=False)
        for pin in self.places["pins"].glob("*"):
            pin.unlink()
        subprocess.run(["umount", self.folder / "bpf"], check=False)


@pytest.fixture
def node(tmp_path, image):
    made = Node(tmp_path, image)
    yield made
    made.close()


def lines(own, kind=None):
    found = []
    for row in podman("logs", own, check=False).stdout.splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(row))
    return [line for line in found if kind in (None, line["type"])]


def wait(question, seconds, what):
    end = time.monotonic() + seconds * 3
    while not (answer := question()):
        if time.monotonic() > end:
            pytest.fail(f"not within {seconds * 3} s: {what}", pytrace=False)
        time.sleep(0.3)
    return answer


def cgroup2():
    """Where the cgroup2 hierarchy is mounted."""
    rows = [row.split() for row in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    return pathlib.Path(next(row[1] for row in rows if row[2] == "cgroup2"))


@contextlib.contextmanager
def stalling(folder):
    """A process of the host with more threads than there are CPUs, in a cgroup of its own."""
    cgroup = cgroup2() / f"trocar-kube-{os.getpid()}"
    cgroup.mkdir()
    program = folder / "kube_burn"
    shutil.copy(BUILD / "tests/workloads/burn_cpu", program)
    words = ["sh", "-c", f"echo $$ >{cgroup}/cgroup.procs && exec {program} 120 {4 * os.cpu_count()} 3"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            yield f"/{cgroup.name}"
        finally:
            process.kill()
            process.wait()
            wait(lambda: not (cgroup / "cgroup.procs").read_text(), 5, "the cgroup is empty")
            cgroup.rmdir()


def consumer_ready(node_):
    own = node_.start("consumer")
    return own, wait(lambda: lines(own, "agent.start"), 20, f"agent.start: {podman('logs', own, check=False).stderr[-600:]}")[0]


def test_pod(node, tmp_path):
    """All of it in the order of the manifest."""
    config_map(node.places["rules"], 1, [])
    assert node.run("profile").returncode == 0 and (node.places["seccomp"] / "trocar-consumer.json").exists()
    loaded = node.run("loader")
    assert loaded.returncode == 0, loaded.stderr[-2000:]
    assert (node.places["pins"] / "abi").exists()
    broker = node.start("broker")
    wait((node.places["run"] / "broker.sock").exists, 10, "the broker's socket")
    own, start = consumer_ready(node)
    me = start["self"]
    assert {me["cap_eff"], me["cap_prm"], me["cap_bnd"]} == {"0" * 16} and me["uid"] == 64321, me
    assert me["seccomp"] == 2 and me["no_new_privs"] == 1, me
    assert start["features"]["broker"], start["missing"]
    asked = podman("exec", own, "trocar", "status", check=False)
    assert asked.returncode == 0 and "0 rules" in asked.stdout, asked
    config_map(node.places["rules"], 2, [RULE])
    wait(lambda: [x for x in lines(own, "rules.applied") if x["count"] == 1], 10, "the changed ConfigMap in force")
    with stalling(tmp_path) as cgroup:
        wait(lambda: [x for x in lines(own, "watch.start") if x["cgroup"] == cgroup], 40, "a watch of the cgroup")
        end = wait(lambda: lines(own, "session.end"), 30, "a session")[0]
    assert end["cgroup"] == cgroup and end["verdict"] != "inconclusive", end
    named = {frame.get("fn") for line in lines(own, "stack") for frame in line["frames"] if frame["kind"] == "user"}
    assert "spin_on_checkout_total" in named, named
    events, said = node.stop(own)
    assert '"type":"agent.stop"' in events, said
    path = tmp_path / "lines.jsonl"
    path.write_text(events, encoding="utf-8")
    fits = subprocess.run([sys.executable, ROOT / "tests/e2e/validate.py", path], capture_output=True, text=True, check=False)
    assert fits.returncode == 0, fits.stdout[-2000:] + fits.stderr[-1000:]
    node.stop(broker)
    assert not (node.places["run"] / "broker.sock").exists()
    gone = node.run("unload", "unload.yaml")
    assert gone.returncode == 0, gone.stderr
    assert not list(node.places["pins"].glob("*"))


def test_without_broker(node):
    """The sidecar is left out, and the consumer says what is missing."""
    config_map(node.places["rules"], 1, [])
    assert node.run("profile").returncode == 0
    assert podman("run", "--rm", *node.words("loader"), "--always", "oncpu").returncode == 0
    own, start = consumer_ready(node)
    assert not start["features"]["broker"] and start["sampling"]["by"] == "always", start
    node.stop(own)


def test_profile_is_the_wall(node):
    """A call that the profile does not have fails in the consumer's container: it is in force."""
    config_map(node.places["rules"], 1, [])
    assert node.run("profile").returncode == 0
    words = node.words("consumer")
    image_at = words.index(node.image)
    tried = podman("run", "--rm", "--entrypoint", "unshare", *words[:image_at], node.image, "--user", "true", check=False)
    assert tried.returncode and "Operation not permitted" in tried.stderr, tried
