# SPDX-License-Identifier: BSD-2-Clause
"""The manifests of packaging/kubernetes: read, held against Kubernetes' own types, and turned into commands of podman
and into bundles of the OCI runtime."""
import json
import pathlib
import re
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging" / "kubernetes"
# Validators that the generator of the package kubernetes-models made from the API's OpenAPI description.
VALIDATE = """
import { readFileSync } from "fs";
const said = [];
for (const document of JSON.parse(readFileSync(0, "utf8"))) {
  const version = document.apiVersion.includes("/") ? document.apiVersion : `${document.apiVersion}`;
  const models = await import(`kubernetes-models/${version}`);
  try { new models[document.kind](document).validate(); }
  catch (error) { said.push(`${document.kind} ${document.metadata.name}: ${error.message}`); }
}
console.log(JSON.stringify(said));
"""
MEMBER = re.compile(r'^ {4}"(\w+)"\??: (.*)$', re.M)  # of the interface itself, not of a type inside it
IMPORT = re.compile(r'^import \{ (?:I\w+ as )?(I\w+) \} from "(\.[^"]+)\.js";$', re.M)


def documents(name):
    return [d for d in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")) if d]


def pod(name):
    """The pod's specification of the one DaemonSet in a manifest."""
    return next(d for d in documents(name) if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]


def containers(spec):
    """By name, in the order in which they are started."""
    return {c["name"]: c for c in spec.get("initContainers", []) + spec["containers"]}


# ---- against Kubernetes' types


def values_that_do_not_fit(models, documents_):
    script = models / "validate.mjs"
    script.write_text(VALIDATE, encoding="utf-8")
    done = subprocess.run(["node", script], input=json.dumps(documents_), capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


def members(path):
    """{member: the file of its type or None} of the first interface in a file of types."""
    text = path.read_text(encoding="utf-8")
    files = {name: (path.parent / place).with_suffix(".d.ts") for name, place in IMPORT.findall(text)}
    body = re.search(r"^export interface \w+[^{]*\{\n(.*?)^\}", text, re.M | re.S).group(1)
    named = {}
    for member, kind in MEMBER.findall(re.sub(r"/\*\*.*?\*/", "", body, flags=re.S)):
        word = re.search(r"\bI\w+\b", kind)
        named[member] = files.get(word.group(0)) if word and "{" not in kind else None
    return named


def unknown_keys(value, path, where):
    """The API server drops what it does not know; a word that was mistyped would be lost in silence."""
    if isinstance(value, list):
        for item in value:
            yield from unknown_keys(item, path, where)
    elif isinstance(value, dict) and path and path.exists():
        known = members(path)
        for key, inner in value.items():
            if known and key not in known:
                yield f"{where}.{key}"
            else:
                yield from unknown_keys(inner, known.get(key), f"{where}.{key}")


def keys_that_nobody_knows(models, documents_):
    for document in documents_:
        path = models / "node_modules/kubernetes-models" / document["apiVersion"] / f"{document['kind']}.d.ts"
        yield from unknown_keys(document, path, document["kind"])


# ---- as the kubelet would start them


def volumes(spec, container, places):
    """-v for each mount of a container: its volume's folder is `places`', or the host's own."""
    of = {v["name"]: v for v in spec["volumes"]}
    for mount in container.get("volumeMounts", []):
        volume = of[mount["name"]]
        source = places.get(mount["name"]) or volume["hostPath"]["path"]
        yield from ("-v", f"{source}:{mount['mountPath']}{':ro' if mount.get('readOnly') else ''}")


def podman_words(spec, container, image, places, profiles):
    """The words of `podman run` behind its name, for one container of a pod."""
    security = container["securityContext"]
    words = ["--network", "none", "--user", f"{security['runAsUser']}:{security.get('runAsGroup', security['runAsUser'])}"]
    if spec.get("hostPID"):
        words += ["--pid", "host"]
    for drop in security["capabilities"]["drop"]:
        words += ["--cap-drop", drop.lower()]
    for add in security["capabilities"].get("add", []):
        words += ["--cap-add", add.lower()]
    if security["readOnlyRootFilesystem"]:
        words += ["--read-only", "--read-only-tmpfs=false"]
    if security["allowPrivilegeEscalation"] is False:
        words += ["--security-opt", "no-new-privileges"]
    if security["seccompProfile"]["type"] == "Localhost":
        words += ["--security-opt", f"seccomp={profiles / security['seccompProfile']['localhostProfile']}"]
    words += volumes(spec, container, places)
    command = container.get("command", [])
    if command:
        words += ["--entrypoint", command[0]]
    return [*words, image, *command[1:], *container.get("args", [])]


# ---- as a runtime of the kubelet gets them: OCI bundles

# What containerd gives to every container that is not privileged, with cgroup v2: a cgroup namespace too.
NAMESPACES = ("mount", "uts", "ipc", "network", "cgroup")
MASKED = [f"/proc/{name}" for name in ("acpi", "kcore", "keys", "latency_stats", "timer_list", "timer_stats", "sched_debug", "scsi")]
READ_ONLY = [f"/proc/{name}" for name in ("bus", "fs", "irq", "sys", "sysrq-trigger")]
MOUNTS = [("/proc", "proc", "proc", ["nosuid", "noexec", "nodev"]),
          ("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
          ("/sys", "sysfs", "sysfs", ["nosuid", "noexec", "nodev", "ro"])]
SUFFIXES = {"Mi": 1 << 20}


def entrypoint():
    """Of the image."""
    return json.loads(re.search(r"^ENTRYPOINT (.*)$", (ROOT / "packaging/Containerfile").read_text(encoding="utf-8"), re.M).group(1))


def oci_seccomp(security):
    """A profile, which is written as Docker's are, in the words of the runtime. RuntimeDefault is the kubelet's runtime's own."""
    if security["seccompProfile"]["type"] != "Localhost":
        return None
    profile = json.loads((FOLDER / "seccomp" / security["seccompProfile"]["localhostProfile"]).read_text(encoding="utf-8"))
    return {key: [{k: v for k, v in row.items() if k != "comment"} for row in value] if key == "syscalls" else value
            for key, value in profile.items()}


def oci_mounts(spec, container, places):
    of = {v["name"]: v for v in spec["volumes"]}
    for target, kind, source, options in MOUNTS:
        yield {"destination": target, "type": kind, "source": source, "options": options}
    for mount in container.get("volumeMounts", []):
        source = places.get(mount["name"]) or of[mount["name"]]["hostPath"]["path"]
        yield {"destination": mount["mountPath"], "type": "bind", "source": str(source),
               "options": ["rbind", "rprivate", "ro" if mount.get("readOnly") else "rw"]}


def oci_memory(container):
    limit = container.get("resources", {}).get("limits", {}).get("memory")
    return {"limit": int(limit[:-2]) * SUFFIXES[limit[-2:]]} if limit else {}


def oci_config(spec, container, root, places, cgroup):
    """config.json of a container, whose root file system is the folder `root`, in the cgroup `cgroup`."""
    security = container["securityContext"]
    assert security["capabilities"]["drop"] == ["ALL"]
    has = [f"CAP_{name}" for name in security["capabilities"].get("add", [])]
    linux = {"namespaces": [{"type": name} for name in NAMESPACES + (() if spec.get("hostPID") else ("pid",))],
             "maskedPaths": MASKED, "readonlyPaths": READ_ONLY, "cgroupsPath": cgroup,
             "resources": {"memory": oci_memory(container), "devices": [{"allow": False, "access": "rwm"}]}}
    if seccomp := oci_seccomp(security):
        linux["seccomp"] = seccomp
    return {"ociVersion": "1.0.2", "hostname": "node", "linux": linux,
            "root": {"path": str(root), "readonly": security["readOnlyRootFilesystem"]},
            "mounts": list(oci_mounts(spec, container, places)),
            "process": {"user": {"uid": security["runAsUser"], "gid": security.get("runAsGroup", 0)}, "cwd": "/",
                        "args": [*container.get("command", entrypoint()), *container.get("args", [])],
                        "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                        "capabilities": {kind: has for kind in ("bounding", "effective", "permitted")},
                        "noNewPrivileges": security["allowPrivilegeEscalation"] is False}}
