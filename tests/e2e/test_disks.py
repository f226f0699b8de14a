# SPDX-License-Identifier: BSD-2-Clause
# tests: consumer/facts/facts_d* consumer/facts/disk_text* consumer/sampling/wait_files* bpf/waits/look_path*
# tests: shared/files/mounts*
"""Which disk, which mount point and which file: what disks are made of, and paths of files that threads wait for."""
import pathlib

import pytest

from harness import COMMAND, Skip, check, check_figure, command
from test_block import Loop, session, watched

pytestmark = pytest.mark.shares_kernel_side

KIB = 1024


class FileSystem(Loop):
    """A file system in a file, mounted in the test's folder."""

    def __init__(self, t, make=("mkfs.ext4", "-q"), mib=64):
        super().__init__(t, mib)
        done = command(*make, self.path, expect=None)
        if done.returncode:
            raise Skip(f"{make[0]}: {done.stderr}")
        self.image, self.point = t.folder / "disk.img", t.folder / "mnt"
        self.point.mkdir()
        command("mount", self.path, self.point)
        t.mounted.append(self.point)


def journal(t, group, point, seconds=8):
    """A program that writes 4 KiB and syncs, again and again, to a file that keeps its name."""
    file = point / "journal"
    return file, t.run("sh", "-c", f"end=$(( $(date +%s) + {seconds} )); while [ $(date +%s) -lt $end ]; do "
                       f"dd if=/dev/zero of={file} bs=4k count=200 oflag=dsync conv=notrunc 2>/dev/null; done", cgroup=group)


@pytest.mark.parallel(4)
@pytest.mark.core
def test_stack_of_a_loop_device(t):
    """The disk is a file on another disk, and carries a mount point: both lines say so, and so does the report."""
    agent, group = watched(t, signals=["oncpu", "pools", "offcpu", "syscall", "block"])
    disk = FileSystem(t)
    journal(t, group, disk.point)
    end, lines = session(agent, 2500)
    line = [one for one in lines if one.get("device") == disk.name][0]
    below = next(name for *numbers, _, name in (row.split() for row in pathlib.Path("/proc/partitions").read_text()
                                                .splitlines()[2:]) if ":".join(numbers) == disk.below)
    told = line["stack"][0]
    check((told["device"], told["kind"], told["over"]) == (disk.name, "loop", [below]), f"{line}")
    check(told["mounts"] == [str(disk.point)] and told["file"] == str(disk.image), f"{told} {disk.point}")
    check(below in [one["device"] for one in line["stack"][1:]], f"{line}")
    own = [one for one in lines if one.get("device") == below]
    for one in own:
        check(disk.name in [up["device"] for up in one["stack"]], f"{one}")
    facts = agent.find("facts", session=end["session"], source="io")[0]
    for one in facts.get("disks", []):
        check(one["device"] != disk.name or one["mounts"] == [str(disk.point)], f"{facts}")
    kept = t.folder / "kept"
    kept.write_bytes(b"".join(agent.raw))
    report = command(COMMAND, "report", "--full", kept).stdout
    check(f"{disk.name} ({disk.image}) on {below} at {disk.point}" in report, report)
    first = end["findings"][0]
    check(first["cause"] == "disk" and str(disk.point) in first["says"], f"{end['findings']}")


@pytest.mark.parallel(4)
def test_mount_of_btrfs(t):
    """btrfs has a number that is no disk's: the mount is found by the device that the kernel names there."""
    agent, group = watched(t)
    disk = FileSystem(t, make=("mkfs.btrfs", "-q"), mib=128)
    journal(t, group, disk.point)
    _, lines = session(agent, 2500)
    line = [one for one in lines if one.get("device") == disk.name][0]
    check(line["stack"][0]["mounts"] == [str(disk.point)], f"{line}")


@pytest.mark.parallel(4)
def test_mount_of_others(t):
    """A disk that only another mount namespace has mounted has no mount point here, and no line invents one."""
    agent, group = watched(t)
    disk = Loop(t)
    command("mkfs.ext4", "-q", disk.path)
    point = t.folder / "inside"
    point.mkdir()
    t.run("unshare", "-m", "sh", "-c", f"mount {disk.path} {point} && exec dd if=/dev/zero of={point}/f bs=4k "
          f"count=100000 oflag=dsync", cgroup=group)
    _, lines = session(agent, 2500)
    line = [one for one in lines if one.get("device") == disk.name][0]
    check("mounts" not in line["stack"][0] and "mounts_reason" not in line, f"{line}")


def waits_on_files(agent, session_id):
    """What the stacks of the session say of files that their threads wait on."""
    return [stack["on"] for stack in agent.stacks(session_id, "offcpu") if stack.get("on", {}).get("what") == "file"]


@pytest.mark.parallel(4)
@pytest.mark.core
def test_path_of_a_file(t):
    """The stacks say which file is written, where its file system is mounted, and that file by its number; the finding
    and the report name it too."""
    agent, group = watched(t, signals=["oncpu", "pools", "offcpu", "syscall", "block"])
    disk = FileSystem(t)
    file, _ = journal(t, group, disk.point)
    end, _ = session(agent, 2500)
    told = [on for on in waits_on_files(agent, end["session"]) if on.get("path") == str(file)]
    check(told, f"{waits_on_files(agent, end['session'])}")
    check(told[0]["name"] == "journal" and told[0]["mount"] == str(disk.point) and told[0]["fs"] == "ext4", f"{told}")
    check(told[0]["device"] == disk.number and told[0]["inode"] == file.stat().st_ino, f"{told} {disk.number}")
    check("deleted" not in told[0] and "path_reason" not in told[0], f"{told}")
    says = [finding["says"] for finding in end["findings"]]
    check(any(f"on the file {file}" in one for one in says), f"{says}")
    kept = t.folder / "kept"
    kept.write_bytes(b"".join(agent.raw))
    check(f"file {file}" in command(COMMAND, "report", "--full", kept).stdout, "the report does not name the file")


@pytest.mark.parallel(4)
def test_path_in_a_container(t):
    """In a mount namespace of its own, in an overlay: the path that the process knows, and the mount that it is in, which
    is in no table that the agent reads."""
    agent, group = watched(t, signals=["oncpu", "pools", "offcpu", "syscall", "block"])
    disk = FileSystem(t)
    for name in ("lower", "upper", "work", "merged"):
        (disk.point / name).mkdir()
    options = ",".join(f"{key}dir={disk.point}/{name}" for key, name in
                       (("lower", "lower"), ("upper", "upper"), ("work", "work")))
    inside = "while :; do dd if=/dev/zero of=/data/db/journal bs=4k count=200 oflag=dsync conv=notrunc; done"
    t.run("unshare", "-m", "sh", "-c", f"mount -t overlay overlay -o {options} {disk.point}/merged && "
          f"mkdir -p {disk.point}/merged/data/db && cd {disk.point}/merged && "
          f"for d in bin usr lib lib64 dev; do mkdir -p $d; mount --rbind /$d $d; done && exec chroot . sh -c '{inside}'",
          cgroup=group)
    end, _ = session(agent, 3000)
    told = [on for on in waits_on_files(agent, end["session"]) if on.get("path") == "/data/db/journal"]
    check(told and told[0]["fs"] == "overlay" and told[0]["mount"] == "/", f"{waits_on_files(agent, end['session'])}")
    check(told[0]["device"].startswith("0:"), f"{told}")


@pytest.mark.parallel(4)
def test_path_of_a_deleted_file(t):
    """A file that has lost its name, as a temporary one, is told by that name, and that it is gone."""
    agent, group = watched(t, signals=["oncpu", "offcpu"])
    disk = FileSystem(t)
    t.spawn("sync_disk", 10, disk.point / "scratch", 4, 0, cgroup=group)
    end, _ = session(agent, 2500)
    told = [on for on in waits_on_files(agent, end["session"]) if on.get("path") == str(disk.point / "scratch")]
    check(told and told[0]["deleted"], f"{waits_on_files(agent, end['session'])}")


SYNCS = ["oncpu", "pools", "offcpu", "syscall", "block"]


@pytest.mark.parallel(3)
def test_storm_of_syncs(t):
    """Each 4 KiB are synced: the number of syncs is told as the cause, and not the disk. The call says how long each took."""
    agent, group = watched(t, signals=SYNCS)
    disk = FileSystem(t)
    t.spawn("sync_disk", 10, disk.point / "journal", 4, 0, cgroup=group)
    end, _ = session(agent, 3000)
    call = agent.find("syscall", session=end["session"], call="fsync")[0]
    check_figure(call["waits"] >= 3 * 50, f"too few syncs: {call}", t.load)
    first = end["findings"][0]
    check(first["cause"] == "sync_storm" and "most in fsync" in first["says"], f"{end['findings']} {call}")
    check(first["evidence"] == [{"type": "syscall", "signal": "syscall", "call": "fsync"}], f"{first}")
    check(call["p50_ns"] <= call["p90_ns"] and call["p90_ns"] <= (call["p99_ns"] or call["p90_ns"]), f"{call}")
    told = [one for one in agent.find("histogram", session=end["session"]) if one["key"].get("call") == "fsync"]
    check(len(told) == 1 and told[0]["count"] == call["waits"] and told[0]["p50"] == call["p50_ns"], f"{told} {call}")


@pytest.mark.parallel(3)
def test_few_long_syncs(t):
    """Each sync has 2 MiB to write: they are slow, and no storm, however often their thread waits in them."""
    agent, group = watched(t, signals=SYNCS)
    disk = FileSystem(t, mib=192)
    t.spawn("sync_disk", 12, disk.point / "table", 2048, 0, cgroup=group)
    end, lines = session(agent, 4000)
    causes = [finding["cause"] for finding in end["findings"]]
    check("sync_storm" not in causes and "sync" in causes, f"{end['findings']} {lines}")
