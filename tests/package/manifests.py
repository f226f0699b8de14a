# SPDX-License-Identifier: BSD-2-Clause
"""The manifests of packaging/kubernetes: read, held against Kubernetes' own types, and turned into commands of podman."""
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
