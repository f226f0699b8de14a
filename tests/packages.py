# SPDX-License-Identifier: BSD-2-Clause
"""The packages of the tree, made once for all tests that want them: kept by the contents of what they are made from."""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
STORE = pathlib.Path(os.environ.get("TROCAR_BUILD", ROOT / "build")).resolve() / "packages"


class CannotMake(RuntimeError):
    """There is no package, and why."""


def sources():
    """What goes into a package: all that git knows or would add, but tests."""
    if not (ROOT / ".git").exists():
        return sorted(p for p in ROOT.rglob("*") if p.is_file() and not p.relative_to(ROOT).parts[0].startswith(("build", "tests")))
    listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                            check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    return [ROOT / name for name in sorted(listed) if name and not name.startswith("tests/") and (ROOT / name).is_file()]


def key():
    digest = hashlib.sha256()
    for path in sources():
        digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_mode & 0o111}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def made(kind, env=None, seconds=3000):
    """The folder with the packages of a kind (deb, rpm, image), as `packaging/make KIND` makes them."""
    STORE.mkdir(parents=True, exist_ok=True)
    needed = list(made("deb").glob("trocar_*.deb")) if kind == "image" else []
    with open(STORE / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder, stamp = STORE / kind, STORE / f"{kind}.made"
        if stamp.exists() and stamp.read_text(encoding="ascii") == key():
            return folder
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for package in needed:
            shutil.copy(package, folder)
        done = subprocess.run([ROOT / "packaging" / "make", kind, "--output", folder], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
                              timeout=seconds, check=False)
        (STORE / f"{kind}.log").write_bytes(done.stdout)
        if done.returncode:
            raise CannotMake(f"packaging/make {kind}: {done.stdout.decode(errors='replace')[-3000:]}")
        stamp.write_text(key(), encoding="ascii")
        return folder


def debs():
    return made("deb")
