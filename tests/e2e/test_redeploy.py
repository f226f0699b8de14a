# SPDX-License-Identifier: BSD-2-Clause
# tests: shared/elf/build_id* consumer/symbols/module* bpf/mappings/file_version.h
"""A program that was deployed again has its own names, callers and build-id, never those of the version before."""
import os
import shutil
import subprocess

import pytest

from harness import Skip, check, command, rule, rules, until

pytestmark = [pytest.mark.parallel(2), pytest.mark.shares_kernel_side]

SOURCE = r"""
#include <stdint.h>
#include <time.h>
volatile uint64_t sold;
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec; }
#if VERSION == 1
#define LEAF leaf_v1
#define MIDDLE middle_v1
#else
#define LEAF leaf_v2
#define MIDDLE middle_v2
__attribute__((noinline)) void newly_there_v2(void) { sold++; __asm__ volatile(""); }
#endif
__attribute__((noinline)) void LEAF(void)
{
	for (uint64_t i = 0; i < 2000000; i++)
		sold += i * i;
	__asm__ volatile("");
}
__attribute__((noinline)) void MIDDLE(void)
{
#if VERSION == 2
	char room[200];
	__asm__ volatile("" : : "r"(room) : "memory");
	newly_there_v2();
#endif
	LEAF();
	__asm__ volatile("");
}
int main(void)
{
	for (uint64_t end = now() + 60; now() < end;)
		MIDDLE();
	return 0;
}
"""


def compile_version(t, number, build_id):
    """Compiles a version, padded so that all are of one size; returns its path."""
    (t.folder / "shop.c").write_text(SOURCE)
    program = t.folder / f"version{number}{'' if build_id else '_without'}"
    command("cc", "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", f"-DVERSION={number}",
            f"-Wl,--build-id={'sha1' if build_id else 'none'}", "-o", program, t.folder / "shop.c")
    os.truncate(program, 1 << 16)
    return program


def id_of(program):
    """The build-id of a program, or None."""
    for line in subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout.split("\n"):
        if "Build ID:" in line:
            return line.split()[-1]
    return None


def copy(new, app):
    """cp: the inode stays, its content changes."""
    command("cp", new, app)


def remove_and_copy(new, app):
    """rm, cp: most file systems give the new file the number of the old one."""
    app.unlink(missing_ok=True)
    command("cp", new, app)


def write_in_place(new, app):
    """rsync --inplace --times: content alone changes, the size and the time of the last write stay."""
    if not app.exists():
        command("cp", "-p", new, app)
    before = app.stat()
    command("dd", f"if={new}", f"of={app}", "conv=notrunc", "status=none")
    os.utime(app, ns=(before.st_atime_ns, before.st_mtime_ns))


def rename(new, app):
    """mv, as package managers do: the number of the version before the last one comes back."""
    command("cp", new, f"{app}.new")
    os.rename(f"{app}.new", app)


WAYS = {"cp": copy, "rm_cp": remove_and_copy, "in_place": write_in_place, "mv": rename}


class Runs:
    """Runs programs in a cgroup, one at a time, and captures each."""

    def __init__(self, t):
        self.t = t
        self.group = t.cgroup()
        self.agent = t.agent(rules(rule("shops", cgroup=self.group.path, when=[])))

    def capture(self, *commands):
        """Runs the commands side by side; returns the stacks of each."""
        since = len(self.agent.events)
        running = [subprocess.Popen(c, stdin=subprocess.DEVNULL, preexec_fn=self.group.join) for c in commands]
        self.t.processes += running
        self.agent.wait("watch.start", since=since, cgroup=self.group.path)
        for process in running:  # one that joins behind the scan of a new watch is met by the next, 30 s later
            self.agent.wait("process.match", seconds=40, since=since, pid=process.pid)
        answer = self.agent.call("session.start", {"cgroup": self.group.path, "during_ms": 800})
        self.agent.wait("session.end", seconds=20, session=answer["session"])
        stacks = [s for s in self.agent.stacks(answer["session"]) if s["phase"] == "during"]
        for process in running:
            self.t.end(process)
        self.agent.wait("watch.stop", since=since, seconds=20)
        return [[s for s in stacks if s["pid"] == process.pid] for process in running]


def judge(what, stacks, version, build_id):
    """Every frame of the program is of its version, and whole stacks have their callers."""
    other = f"_v{3 - version}"
    whole = 0
    for stack in stacks:
        frames = [f for f in stack["frames"] if f["kind"] == "user" and (f.get("module") or "").endswith("/app")]
        names = [f["fn"] for f in frames]
        check(not any(n and n.endswith(other) for n in names), f"{what}: names of the other version: {names}")
        for frame in frames:
            check(frame.get("build_id") in (build_id, None), f"{what}: the build-id of another file: {frame}")
        if stack["quality"] == "complete" and f"leaf_v{version}" in names:
            whole += 1
            check(f"middle_v{version}" in names and "main" in names, f"{what}: complete without callers: {names}")
    check(whole, f"{what}: no complete stack: {[[f['fn'] for f in s['frames']] for s in stacks[:3]]}")


def deploy_every_way(t, folder):
    """Deploys version after version in each way, with build-ids and without."""
    runs = Runs(t)
    for build_id in (True, False):
        versions = [compile_version(t, n, build_id) for n in (1, 2)]
        for name, way in WAYS.items():
            app = folder / f"{name}_{build_id}" / "app"
            app.parent.mkdir()
            for number in (1, 2, 1) if way is rename else (1, 2):
                way(versions[number - 1], app)
                stacks, = runs.capture([app])
                judge(f"{name}, {'with' if build_id else 'without'} build-id, version {number}", stacks, number,
                      id_of(app))


def mount_image(t, kind, mib, *mkfs):
    """Mounts a fresh file system of that kind until the test ends."""
    if kind not in open("/proc/filesystems", encoding="ascii").read():
        raise Skip(f"the kernel has no {kind}")
    if not shutil.which(mkfs[0]):
        raise Skip(f"{mkfs[0]} is not installed")
    image, folder = t.folder / "image", t.folder / "mounted"
    with open(image, "wb") as f:
        f.truncate(mib << 20)
    command(*mkfs, image)
    folder.mkdir()
    if subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True, check=False).returncode:
        raise Skip("no loop device can be mounted here")
    t.mounted.append(folder)
    return folder


def test_redeploy(t):
    """On the file system that the tests are on."""
    deploy_every_way(t, t.folder)


def test_redeploy_ext4(t):
    """On ext4, which uses the number of a deleted inode for the next file."""
    deploy_every_way(t, mount_image(t, "ext4", 16, "mkfs.ext4", "-q"))


@pytest.mark.core
def test_snapshots_side_by_side(t):
    """On btrfs: one inode number, one device and one path for two programs that run at the same time."""
    folder = mount_image(t, "btrfs", 128, "mkfs.btrfs", "-q")
    versions = [compile_version(t, n, True) for n in (1, 2)]
    parts = [folder / "one", folder / "two"]
    command("btrfs", "subvolume", "create", parts[0])
    shutil.copy(versions[0], parts[0] / "app")
    command("btrfs", "subvolume", "snapshot", *parts)
    command("cp", versions[1], parts[1] / "app")
    check(len({(p / "app").stat().st_ino for p in parts}) == 1, "the inodes differ")
    root = t.folder / "root"
    root.mkdir()
    private = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" "$1"; exec "$1/app"']
    captured = Runs(t).capture(*[[*private, part, root] for part in parts])
    for number, stacks in enumerate(captured, 1):
        judge(f"snapshot {number}", stacks, number, id_of(versions[number - 1]))
