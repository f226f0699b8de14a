# SPDX-License-Identifier: BSD-2-Clause
"""What runners leave behind, as cases: (name, outcome, why), where outcome is "passed", "failed" or "skipped"."""
import json
import re
import xml.etree.ElementTree

SKIPPED = 77  # exit status of a program that says why it cannot run
CASE = re.compile(r"^(not ok|ok)\b\s*(\d+)?\s*(?:-\s*)?(.*?)\s*(?:#\s*(SKIP)\b\s*(.*))?$", re.I)


def tail(text, lines=25):
    return "\n".join(text.strip().splitlines()[-lines:])


def of_tap(program, status, output):
    """The cases of a TAP output (Test Anything Protocol); without any the exit status is the one case."""
    cases, rows = [], output.splitlines()
    for i, row in enumerate(rows):
        found = CASE.match(row)
        if not found:
            continue
        word, number, name, skip, why = found.groups()
        if skip and not name:
            name, why = why, ""
        notes = []
        for note in rows[i + 1:] if word.lower() == "not ok" else ():
            if not note.startswith(("#", " ")):
                break
            notes.append(note.lstrip("# "))
        outcome = "skipped" if skip else "failed" if word.lower() == "not ok" else "passed"
        cases.append((f"{program}: {name or number}", outcome, why or "the test says so" if skip else
                      "\n".join(notes[:15])))
    if not cases:
        outcome = {0: "passed", SKIPPED: "skipped"}.get(status, "failed")
        cases.append((program, outcome, "" if status == 0 else tail(output, 8)))
    elif status not in (0, SKIPPED) and not any(case[1] == "failed" for case in cases):
        cases.append((f"{program}: exit status", "failed", f"status {status}\n{tail(output)}"))
    return cases


def of_meson(path):
    """Of the log that `meson test` leaves in JSON: each program's own output has its cases."""
    with open(path, encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            late = "it does not end: ended after its time\n" if row["result"] == "TIMEOUT" else ""
            yield from of_tap(row["name"].split(" / ")[-1], row["returncode"] or (1 if late else 0),
                              row.get("stdout", "") + row.get("stderr", "") + late)


def of_pytest(path):
    """Of pytest's --junitxml. A test whose end fails as well has two entries there: the worse one counts."""
    found = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        file, name = case.get("classname").split(".")[-1], case.get("name")
        name = f"{file.removeprefix('test_')}.{name.removeprefix('test_')}" if file else name
        bad = [e for e in case if e.tag in ("failure", "error")]
        skips = [e for e in case if e.tag == "skipped"]
        if bad:
            found[name] = "failed", "\n".join(tail(e.text or e.get("message") or "", 40) for e in bad)
        elif name not in found:
            found[name] = ("skipped", skips[0].get("message") or "") if skips else ("passed", "")
    return [(name, *rest) for name, rest in found.items()]


def node_id(name):
    """How pytest calls the test FILE.CASE of a folder."""
    file, _, case = name.partition(".")
    return f"test_{file}.py::test_{case}"
