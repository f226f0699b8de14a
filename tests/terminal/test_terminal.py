# SPDX-License-Identifier: BSD-2-Clause
# tests: ctl/*
"""Every command of `trocar` on a terminal: it ends as it should, no line is wider than the window, nothing but colours
drives the terminal, and what tmux shows is what was printed. Screens of what is for a person are kept in screens/;
TROCAR_SCREENS=write writes them anew (then look at them: git diff)."""
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

import pytest

import screen
from agent import Agent

HERE = pathlib.Path(__file__).resolve().parent
PICTURES = HERE.parent / "pictures"
SHOP, CART = PICTURES / "shop.jsonl", PICTURES / "cart.jsonl"  # the commands run beside them
CART_SESSION = "86f4044dde82e2b7"
PID = str(os.getpid())  # of a process that lives as long as the test, whatever number the kept lines have
RULES = HERE.parents[1] / "docs" / "examples" / "rules-common.json"
FAULTY, DOUBTFUL = "../terminal/rules/faulty.json", "../terminal/rules/doubtful.json"
WRITE = os.environ.get("TROCAR_SCREENS") == "write"
BUILD = pathlib.Path(os.environ.get("TROCAR_BUILD", HERE.parents[1] / "build")).resolve()
TROCAR = BUILD / "ctl" / "trocar"

FINE, FAILED, USAGE, UNREACHABLE = 0, 1, 2, 3

pytestmark = [pytest.mark.parallel(4), pytest.mark.skipif(not TROCAR.exists(), reason=f"{TROCAR} is not built")]


def check(fine, what):
    if not fine:
        pytest.fail(str(what), pytrace=False)


class Case:
    """A command line. `kept`: its screen is a golden one. `wide`: its lines are for programs, or to be copied."""

    def __init__(self, *words, status=FINE, kept=None, wide=False, columns=80, **surroundings):
        self.words, self.status, self.kept, self.wide, self.columns = words, status, kept, wide, columns
        self.surroundings = surroundings

    @property
    def name(self):
        return self.kept or "-".join(re.sub(r"[^a-z0-9]+", "-", str(w).rsplit("/", 1)[-1].lower()) for w in self.words)


# By the words of the command; a command without a row fails test_every_command.
CASES = {
    "status": [Case("status", kept="status"), Case("status", "--json", wide=True)],
    "rules get": [Case("rules", "get", wide=True)],
    "rules check": [Case("rules", "check", RULES), Case("rules", "check", "--offline", RULES, kept="rules-check-offline"),
                    Case("rules", "check", "--offline", DOUBTFUL, wide=True, columns=240, kept="rules-check-doubtful"),
                    Case("rules", "check", "--offline", "--strict", DOUBTFUL, wide=True, status=FAILED),
                    Case("rules", "check", "--offline", FAULTY, wide=True, columns=240, status=FAILED, kept="rules-check-faulty"),
                    Case("rules", "check", "--offlin", RULES, status=USAGE)],
    "rules set": [Case("rules", "set", RULES)],
    "watches": [Case("watches", kept="watches"), Case("watches", kept="watches-200", columns=200)],
    "sessions": [Case("sessions", kept="sessions")],
    "capture": [Case("capture", "--pid", 7, kept="capture"), Case("capture", "--rule", "cart", "--wait", kept="capture-wait"),
                Case("capture", status=USAGE)],
    "show": [Case("show", kept="show"), Case("show", "86f4")],
    "profile": [Case("profile", PID, 1, wide=True)],
    "report": [Case("report", SHOP.name, kept="report"), Case("report", "--full", SHOP.name, kept="report-full"),
               Case("report", "--full", SHOP.name, kept="report-200", columns=200),
               Case("report", "--full", SHOP.name, kept="report-ascii", LC_ALL="C"),
               Case("report", CART.name, kept="report-cart"), Case("report", "--full", CART.name, kept="report-cart-full"),
               Case("report", "/nonexistent", status=FAILED)],
    "explain": [Case("explain", SHOP.name, kept="explain")],
    "folded": [Case("folded", CART.name, wide=True)],
    "symbolize": [Case("symbolize", CART.name, wide=True)],
    "pprof": [Case("pprof", CART.name, status=USAGE)],
    "flamegraph": [Case("flamegraph", CART.name, status=USAGE)],
    "html": [Case("html", SHOP.name, status=USAGE)],
    "diff": [Case("diff", CART.name, wide=True), Case("diff", "--svg", CART.name, status=USAGE)],
    "check": [Case("check", status=None)],
    "completion": [Case("completion", "bash", wide=True)],
    "version": [Case("version", kept="version")],
    "help": [Case("help"), Case("help", "report", kept="help-report"), Case("hepl", status=USAGE)],
}
ALL = [case for cases in CASES.values() for case in cases]


def commands():
    """The commands that the help lists."""
    text = subprocess.run([TROCAR, "help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return re.findall(r"^  ([a-z]+(?: [a-z]+)?)(?: [A-Z\[].*)?\n      ", text, re.M)


def examples():
    """The lines to try of the commands' helps, with what stands here in place of what an operator has."""
    text = (HERE.parents[1] / "ctl" / "command_examples.def").read_text()
    rows = re.findall(r'^EXAMPLE\("([^"]+)", "((?:[^"\\]|\\.)*)",', text, re.M)
    mine = {"4711": PID, "--rule api": "--rule cart", "sudo ": "", "86f4": CART_SESSION[:4],
            "journalctl -u trocar-consumer -o cat -q": "cat events.jsonl"}
    for command, line in rows:
        for theirs, ours in mine.items():
            line = line.replace(theirs, ours)
        yield command, line


@pytest.fixture
def agent():
    with tempfile.TemporaryDirectory(prefix="trocar-terminal-") as folder:
        lines = [json.loads(line) for line in CART.read_text().splitlines()]
        with Agent(pathlib.Path(folder) / "sock", lines) as one:
            yield one


def surroundings_of(case, agent):
    return {"TROCAR_SOCKET": agent.path, "TROCAR_LOADER": BUILD / "loader" / "trocar-loader", **case.surroundings}


def compare(case, said):
    """Against the screen that is kept."""
    path = HERE / "screens" / f"{case.kept}.txt"
    text = "".join(line.rstrip() + "\n" for line in said.lines)
    if WRITE:
        path.write_text(text)
    check(path.exists(), f"{path.name} is not kept: TROCAR_SCREENS=write")
    check(text == path.read_text(), f"not as in {path.name}:\n{text}")


def test_every_command():
    """Each command that the help lists has a row, and no row is of another one."""
    listed = commands()
    check(len(listed) > 10 and set(listed) == set(CASES), f"{set(listed) ^ set(CASES)}")


def test_journal(tmp_path):
    """--journal reads what journalctl prints of the agent's unit (a real one: tests/vm); without one that is said."""
    script = tmp_path / "journalctl"
    script.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\ncat {CART}\n')
    script.chmod(0o755)
    for path, status, part in ((f"{tmp_path}:{os.environ['PATH']}", FINE, CART_SESSION), (str(tmp_path / "no"), FAILED, "journalctl: ")):
        done = subprocess.run([TROCAR, "report", "--journal"], env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        check(done.returncode == status and part in done.stdout, f"{path}: {done.returncode} {done.stdout[:500]}")
    check("--unit=trocar-consumer" in (tmp_path / "words").read_text(), (tmp_path / "words").read_text())


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_plain(case, agent):
    """On a pseudo-terminal without tmux."""
    said = screen.run([TROCAR, *case.words], columns=case.columns, cwd=PICTURES,
                      **surroundings_of(case, agent))
    check(said.status >= 0, f"ended by signal {-said.status}: {said.plain[-300:]}")
    check(case.status is None or said.status == case.status, f"status {said.status}: {said.plain[-1000:]}")
    if not case.wide:
        # A fault of a file stays in one line, as editors read it.
        long = [line for line in said.overlong(case.columns) if not line.startswith(f"{RULES}:")]
        check(not long, "\n".join(long))
        check(not said.controls(), said.controls())
    check(not re.search(r"\b1 (samples|sessions|rules|watches|threads|lines|triggers|pools|functions|processes|frames|looks|stacks|requests|cgroups|faults)\b",
                        said.plain), "a plural of one")
    if case.kept:
        compare(case, said)


@pytest.mark.parametrize("case", [case for case in ALL if case.kept], ids=lambda case: case.name)
def test_tmux(case, agent):
    """In tmux the same text stands on the screen, each line in one row."""
    if not screen.has_tmux():
        pytest.skip("tmux is not there: tests/install-deps check installs it")
    said = screen.run_in_tmux([TROCAR, *case.words], columns=case.columns, cwd=PICTURES,
                              **surroundings_of(case, agent))
    check(said.status == case.status, f"status {said.status}")
    compare(case, said)


def test_examples(agent, tmp_path):
    """The lines of the helps work as they stand there, but for programs that are not there."""
    (tmp_path / "events.jsonl").write_text(CART.read_text())
    (tmp_path / "rules.json").write_text(RULES.read_text())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "trocar").symlink_to(TROCAR)
    for other in ("flamegraph.pl", "go"):
        (tmp_path / "bin" / other).write_text("#!/bin/sh\n[ $# -gt 0 ] || exec cat\n")
        (tmp_path / "bin" / other).chmod(0o755)
    lines = list(examples())
    check(len(lines) > 20, f"{lines}")
    for command, line in lines:
        # What the log has is of the day when it was made.
        line = line.replace("--since -1h", "--since 2026-01-01")
        agent.lines = [json.loads(event) for event in CART.read_text().splitlines()]
        said = screen.run(["sh", "-c", line], cwd=tmp_path, TROCAR_SOCKET=agent.path,
                          TROCAR_LOADER=BUILD / "loader" / "trocar-loader", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
        check(said.status == FINE or command == "check", f"{line}: {said.status} {said.plain[-500:]}")
        check(not re.search(r"> \S+\.svg$", line) or said.plain == "", f"{line}: {said.plain[-500:]}")


# ---- colours


COLOURED = [("report", SHOP), ("status",), ("watches",), ("help", "report")]


def test_colours(agent):
    """Colours are for a terminal that has them and a person who wants them, and each line ends without one."""
    env = {"TROCAR_SOCKET": agent.path}
    for words in COLOURED[:2]:
        said = screen.run([TROCAR, *words], **env)
        check(said.raw != said.plain, f"{words}: no colour")
        for line in said.raw.splitlines():
            found = screen.COLOUR.findall(line)
            check(not found or found[-1] == "\x1b[m", f"a colour goes on behind {line!r}")
    for words in COLOURED:
        for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            said = screen.run([TROCAR, *words], **env, **more)
            check("\x1b" not in said.raw, f"{words} with {more}: {said.raw[:200]!r}")


def test_pipe(agent):
    """What goes into a pipe has no colour, no bar and no broken line; with $COLUMNS its lines fit."""
    env = screen.surroundings(TROCAR_SOCKET=agent.path)
    run = lambda **more: subprocess.run([TROCAR, "report", "--full", SHOP], stdout=subprocess.PIPE, check=True,  # noqa: E731
                                        env={**env, **more}).stdout.decode()
    plain = run()
    check("\x1b" not in plain and "\u2588\u2588\u2588  " not in plain, "a colour, or a bar")
    check(max(map(len, plain.splitlines())) > 150, "broken lines")
    check(max(map(screen.width, run(COLUMNS="80").splitlines())) <= 80, "too wide")


# ---- narrow, wide and hostile


@pytest.mark.parametrize("columns", [40, 60, 100, 200])
def test_widths(columns, agent):
    """Whatever the width, tables and sentences fit it."""
    for words in (("report", SHOP), ("explain", SHOP), ("status",), ("watches",), ("sessions",), ("help", "diff")):
        said = screen.run([TROCAR, *words], columns=columns, TROCAR_SOCKET=agent.path)
        # What is to be copied, and single words that are longer than the window, stay whole.
        long = [line for line in said.overlong(columns) if " " in line.strip() and "jq -c" not in line and ")' " not in line
                and not line.startswith("  trocar ") and "| trocar" not in line]
        check(not long, f"{words}:\n" + "\n".join(long))


HOSTILE = ["\x1b]0;owned\x07", "\u202egnp.exe", "\u4e2d\u6587" * 30, "a" * 300, "x\ny", "<script>&\"'", "e\u0301" * 40]


def test_hostile_names(tmp_path):
    """Names that want to drive the terminal, or are wider than it, stand there tame and shortened."""
    text = SHOP.read_text()
    for number, name in enumerate(("postgres", "LWLockAcquire", "/batch.slice/backup.service", "loop0", "XLogFlush")):
        text = text.replace(name, json.dumps(HOSTILE[number])[1:-1])
    path = tmp_path / "hostile.jsonl"
    path.write_text(text)
    for words in (("report", path), ("explain", path)):
        said = screen.run([TROCAR, *words])
        check(said.status == FINE and not said.controls(), f"{said.status} {said.controls()}")
        check("\u202e" not in said.plain, "the order of reading turns")
        long = [line for line in said.overlong(80) if "jq -c" not in line and ")' " not in line
                and max(map(screen.width, line.split())) < 70]
        check(not long, "\n".join(long))


# ---- without an agent


def test_no_agent(tmp_path):
    """Whoever asks an agent that is not there is told so in a line, with the status for it."""
    for words in (["status"], ["watches"], ["sessions"], ["rules", "get"], ["capture", "--pid", "7"], ["profile", "1", "1"]):
        said = screen.run([TROCAR, *words], TROCAR_SOCKET=tmp_path / "none")
        check(said.status == UNREACHABLE and said.plain.startswith("trocar: "), f"{words}: {said.status} {said.plain}")


def test_agent_that_is_none(tmp_path):
    """Nor does what answers nonsense crash a command."""
    for answer in (b"\n", b"{}\n", b'{"jsonrpc":"2.0","id":1,"result":[1,{"a":[]},null]}\n', b'{"jsonrpc":"2.0","id":1,"result":{}}\n'):
        for words in (["status"], ["watches"], ["sessions"], ["capture", "--pid", "7"]):
            path = tmp_path / "sock"
            path.unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen(8)
                listener.settimeout(20)
                process = subprocess.Popen([TROCAR, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, env=screen.surroundings(TROCAR_SOCKET=path))
                try:
                    while process.poll() is None:
                        listener.settimeout(0.2)
                        try:
                            connection, _ = listener.accept()
                        except TimeoutError:
                            continue
                        with connection:
                            connection.recv(1 << 16)
                            connection.sendall(answer)
                finally:
                    process.kill()
                    said = process.communicate()[0]
                check(process.returncode in (FINE, FAILED, UNREACHABLE), f"{words} {answer}: {process.returncode} {said!r}")


def test_full_output():
    """A disk that is full behind the output is named, and a failure, by each program."""
    for words in ([TROCAR, "report", CART], [TROCAR, "completion", "bash"], [BUILD / "loader" / "trocar-loader", "help"],
                  [BUILD / "loader" / "trocar-loader", "check"], [BUILD / "consumer" / "trocar-consumer", "--help"],
                  [BUILD / "consumer" / "trocar-consumer", "--version"]):
        if not words[0].exists():
            continue
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
        check(done.returncode == FAILED and b"cannot write the output: No space left on device" in done.stderr,
              f"{words}: {done}")
