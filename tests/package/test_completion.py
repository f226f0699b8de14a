# SPDX-License-Identifier: BSD-2-Clause
"""What bash, zsh and fish offer behind `trocar` when somebody presses the tabulator, on a terminal."""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TROCAR_BUILD", ROOT / "build")).resolve()
COMMAND = BUILD / "ctl" / "trocar"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|[\x07\r]|.\x08")
PROMPT = "ready> "

# What is typed, and what must be offered or written out; a word with ! must not be there.
ROWS = [
    ("trocar ", ["status", "report", "completion", "rules"]),
    ("trocar flam", ["flamegraph"]),
    ("trocar rules ", ["get", "check", "set", "!status"]),
    ("trocar report --phase ", ["before", "onset", "during"]),
    ("trocar report --phase=", ["before", "onset", "during"]),
    ("trocar capture --", ["--rule", "--during-ms", "--wait", "!--phase"]),
    ("trocar rules check --", ["--json", "--socket", "!--wait"]),
    ("trocar capture --signals of", ["offcpu"]),
    ("trocar help symb", ["symbolize"]),
    ("trocar completion ", ["bash", "zsh", "fish"]),
    ("trocar report a-file-o", ["a-file-of-lines"]),
    ("trocar rules check a-file-o", ["a-file-of-lines"]),
    ("trocar symbolize --debug-dir a-fol", ["a-folder"]),
    ("trocar --json rules s", ["set"]),
    ("trocar report --rule checkout --top 5 --ph", ["--phase"]),
]


def shell(name):
    if not shutil.which(name):
        pytest.skip(f"no {name} here")
    return name


class Terminal:
    """A shell at work in a folder, 100 columns wide."""

    def __init__(self, words, folder, setup):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "PS1": PROMPT, "TERM": "dumb",
                                         "COLUMNS": "100", "HOME": str(folder), "LC_ALL": "C.UTF-8", "HISTFILE": ""})
        self.said, self.number = "", 0
        self.read_until(lambda said: PROMPT in said)
        self.type(setup + "\r")
        self.settle()

    def settle(self):
        """Takes back what was typed, and waits until the shell has done all that it was asked before."""
        self.number += 1
        self.type(f"\x15echo settled-{self.number}\r")
        if not self.read_until(lambda said: re.search(rf"^settled-{self.number}\s", said, re.M), 60):
            pytest.fail(f"the shell does not answer: {self.said!r}")

    def type(self, text):
        self.said = ""
        os.write(self.fd, text.encode())

    def read_until(self, done, seconds=30):
        """Whether `done` came true of what the terminal shows."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([self.fd], [], [], 0.1)
            if ready:
                try:
                    self.said += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
            if done(ESCAPE.sub("", self.said)):
                return True
        return False

    def shown(self):
        return ESCAPE.sub("", self.said)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def folder(tmp_path):
    if not COMMAND.exists():
        pytest.skip(f"{COMMAND} is not built")
    (tmp_path / "a-file-of-lines").touch()
    (tmp_path / "a-folder").mkdir()
    for name in ("bash", "zsh", "fish"):
        (tmp_path / f"complete.{name}").write_text(subprocess.check_output([COMMAND, "completion", name], text=True),
                                                   encoding="utf-8")
    return tmp_path


def faults(line, wanted, shown):
    behind = shown.replace(line.rstrip(), "", 1)  # what was typed stands there too
    for word in wanted:
        hit = re.search(rf"(?<![\w-]){re.escape(word.lstrip('!'))}(?![\w-])", behind if word.startswith("!") else shown)
        if bool(hit) == word.startswith("!"):
            yield f"{line!r}: {word} in {shown!r}"


def try_rows(terminal):
    """Types each line and the tabulator twice, then takes the line back."""
    found = []
    for line, wanted in ROWS:
        terminal.type(line + "\t\t")
        terminal.read_until(lambda shown: not list(faults(line, [w for w in wanted if w[0] != "!"], shown)), 10)
        found += faults(line, wanted, terminal.shown())
        terminal.settle()
    return found


def test_bash(folder):
    """As bash itself completes; nothing of bash-completion is needed."""
    terminal = Terminal([shell("bash"), "--norc", "--noprofile", "-i"], folder,
                        "bind 'set show-all-if-ambiguous on'; bind 'set page-completions off'; source complete.bash")
    found = try_rows(terminal)
    terminal.close()
    assert not found, "\n".join(found)


def test_bash_completion_loads_it(folder):
    """The package bash-completion finds the file by the command's name."""
    framework = pathlib.Path("/usr/share/bash-completion/bash_completion")
    if not framework.exists():
        pytest.skip("no bash-completion here")
    place = folder / ".local/share/bash-completion/completions"
    place.mkdir(parents=True)
    shutil.copy(folder / "complete.bash", place / "trocar")
    terminal = Terminal([shell("bash"), "--norc", "--noprofile", "-i"], folder,
                        f"bind 'set show-all-if-ambiguous on'; source {framework}")
    terminal.type("trocar flam\t\t")
    good = terminal.read_until(lambda shown: "flamegraph" in shown)
    terminal.close()
    assert good, terminal.shown()


def test_zsh(folder):
    """Found by its name in $fpath, as zsh finds it once it is installed."""
    place = folder / "functions"
    place.mkdir()
    shutil.copy(folder / "complete.zsh", place / "_trocar")
    terminal = Terminal([shell("zsh"), "-f", "-i"], folder,
                        "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; unsetopt automenu; "
                        "LISTMAX=1000")
    found = try_rows(terminal)
    terminal.close()
    assert not found, "\n".join(found)


def test_fish(folder):
    """fish says itself what it would offer."""
    found = []
    for line, wanted in ROWS:
        said = subprocess.run([shell("fish"), "-N", "-c", f"source complete.fish; complete -C '{line}'"], cwd=folder, text=True,
                              capture_output=True, env={"PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "HOME": str(folder)},
                              timeout=60, check=False)
        words = {row.split("\t")[0].rpartition("=")[2].rstrip("/") for row in said.stdout.splitlines()}
        found += [f"{line!r}: {word} in {said.stdout}{said.stderr}" for word in wanted
                  if (word.lstrip("!") in words) == word.startswith("!")]
    assert not found, "\n".join(found)


def test_no_such_shell():
    """It names those that it knows."""
    done = subprocess.run([COMMAND, "completion", "csh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "bash, zsh or fish" in done.stderr and not done.stdout, done
