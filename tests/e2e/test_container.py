# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/cgroup/container* shared/files/namespaces*
"""Container and pod of a watched cgroup, in every line about it, by cgroups named as runtimes name them."""
import hashlib

import pytest

from harness import Cgroup, check, rule, rules

pytestmark = [pytest.mark.parallel(4), pytest.mark.shares_kernel_side]
UID = "6fc4a17a-9b0a-4ab4-833e-7004a16f89ce"


def nested(t, *names):
    """Cgroups one within the other; returns the last. The outermost has the test's name."""
    group = t.cgroup()
    for name in names:
        group = Cgroup(f"{group.name}/{name}")
        t.cgroups.append(group)
    return group


def container_id(t, what):
    return hashlib.sha256(f"{t.name} {what}".encode()).hexdigest()


def capture(t, agent, group):
    """Lines of each kind about a process in that cgroup, a session's among them."""
    process = t.spawn("burn_cpu", 30, name=t.comm, cgroup=group)
    match = agent.wait("process.match", pid=process.pid)
    watch = agent.wait("watch.start", cgroup=group.path)
    session = agent.call("session.start", {"cgroup": group.path, "during_ms": 800})["session"]
    end = agent.wait("session.end", seconds=15, session=session)
    stacks = agent.stacks(session)
    check(stacks, "no stack at all")
    start = agent.find("session.start", session=session)[0]
    t.end(process)
    left = agent.wait("process.exit", pid=process.pid)
    stop = agent.wait("watch.stop", cgroup=group.path)
    return [match, watch, start, *stacks, end, left, stop]


def check_lines(lines, container, pod, about):
    for line in lines:
        check((line.get("container_id"), line.get("pod_uid")) == (container, pod),
              f"{line['type']}: not container {container}, pod {pod}: {line}")
    for line in lines[:2]:
        check(line.get("container") == about, f"{line['type']}: not {about}: {line}")


@pytest.mark.core
def test_docker_scope(t):
    """A scope as docker's systemd driver names it: the id in every line, the unit where it is described."""
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)))
    identity = container_id(t, "docker")
    group = nested(t, f"docker-{identity}.scope")
    check_lines(capture(t, agent, group), identity, None,
                {"runtime": "docker", "unit": f"docker-{identity}.scope"})


@pytest.mark.core
def test_pod(t):
    """A pod of systemd's driver within a container of docker's: the pod's container, the pod's uid."""
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)))
    node, inner = container_id(t, "node"), container_id(t, "inner")
    group = nested(t, "docker", node, f"kubelet-kubepods-burstable-pod{UID.replace('-', '_')}.slice",
                   f"cri-containerd-{inner}.scope")
    check_lines(capture(t, agent, group), inner, UID,
                {"runtime": "containerd", "qos": "burstable", "unit": f"cri-containerd-{inner}.scope"})


@pytest.mark.core
def test_no_container(t):
    """Names that only look so, as any user may give them to a cgroup: no container, no guess."""
    agent = t.agent(rules(rule("api", comm=t.comm, cooldown_ms=0)))
    group = nested(t, "docker", container_id(t, "short")[:12])
    check_lines(capture(t, agent, group), None, None, None)
