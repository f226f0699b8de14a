# SPDX-License-Identifier: BSD-2-Clause
"""Commands on a pseudo-terminal, as a person runs them: on a plain one, whose every byte is seen, and in tmux, which
shows what a real terminal makes of these bytes."""
import fcntl
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import tempfile
import termios
import time
import unicodedata

SECONDS = 60
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
TERMINAL = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
NOT_OURS = ("NO_COLOR", "COLUMNS", "LINES", "LC_CTYPE", "LANG", "TROCAR_SOCKET", "TMUX", "TMUX_PANE")


def surroundings(**more):
    """What a command inherits: nothing of this terminal's."""
    mine = {key: value for key, value in os.environ.items() if key not in NOT_OURS}
    return {**mine, **TERMINAL, **{k: str(v) for k, v in more.items() if v is not None}}


def width(line):
    """Columns that a terminal gives the line."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Said:
    """What a command printed (stdout and stderr are the one terminal), and how it ended."""

    def __init__(self, text, status):
        self.raw, self.status = text, status
        self.plain = COLOUR.sub("", text)

    @property
    def lines(self):
        return self.plain.splitlines()

    def overlong(self, columns):
        return [line for line in self.lines if width(line) > columns]

    def controls(self):
        """Control characters that are no colour and no line end."""
        return CONTROL.findall(self.plain)


def run(words, columns=80, rows=24, cwd=None, **more):
    """On a plain pseudo-terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def own():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen([str(w) for w in words], stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
                               start_new_session=True, preexec_fn=own, cwd=cwd, env=surroundings(**more))
    os.close(theirs)
    said, until = b"", time.monotonic() + SECONDS
    try:
        while True:
            ready, _, _ = select.select([ours], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError(f"{words}: nothing for {SECONDS} s, after {said[-300:]!r}")
            try:
                some = os.read(ours, 1 << 16)
            except OSError:  # EIO: nobody has the other end any more
                break
            if not some:
                break
            said += some
        status = process.wait(SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)
    return Said(said.decode("utf-8", "replace").replace("\r\n", "\n"), status)


def run_in_tmux(words, columns=80, rows=24, cwd=None, **more):
    """In a tmux of its own; the text is all that its window shows, scrolled out or not, as it stands there."""
    with tempfile.TemporaryDirectory(prefix="trocar-tmux-") as name:
        folder = pathlib.Path(name)
        script = folder / "script"
        line = " ".join(shlex.quote(str(w)) for w in words)
        script.write_text(f"{line}\necho $? >{folder}/status.new\nmv {folder}/status.new {folder}/status\nread -r _\n")
        tmux = ["tmux", "-u", "-S", str(folder / "socket"), "-f", "/dev/null"]
        env = surroundings(**more)
        try:
            subprocess.run([*tmux, "set-option", "-g", "history-limit", "50000", ";", "new-session", "-d",
                            "-x", str(columns), "-y", str(rows), f"exec sh {script}"], env=env, cwd=cwd, check=True, timeout=SECONDS)
            until = time.monotonic() + SECONDS
            while not (folder / "status").exists():
                if time.monotonic() > until:
                    raise TimeoutError(f"{words}: no end within {SECONDS} s")
                time.sleep(0.02)
            text = subprocess.run([*tmux, "capture-pane", "-p", "-S", "-"], env=env, check=True, timeout=SECONDS,
                                  stdout=subprocess.PIPE).stdout.decode()
            return Said(text.rstrip("\n") + "\n", int((folder / "status").read_text()))
        finally:
            subprocess.run([*tmux, "kill-server"], env=env, check=False, stderr=subprocess.DEVNULL)


def has_tmux():
    return shutil.which("tmux") is not None
