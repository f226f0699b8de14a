# SPDX-License-Identifier: BSD-2-Clause
"""The figures that machines print, and the tables of them."""
import re
import subprocess

FIGURE = re.compile(r"^# (\S.*?) = (\S+)$", re.M)
PROGRAM = re.compile(r"^# ([a-z_]+) +(\d+) +(-?\d+) +\d+ +\d+$", re.M)
KERNEL = re.compile(r"^# kernel (\S+),", re.M)


def read(output):
    """{name: value}, in the order in which the machine printed them; programs as ("program", name)."""
    found = dict(FIGURE.findall(output))
    kernel = KERNEL.search(output)
    if kernel:
        found = {"kernel": kernel.group(1), **found}
    for name, instructions, us in PROGRAM.findall(output):
        found["program", name] = (instructions, us)
    return found


def exposures(folder):
    """{unit: what `systemd-analyze security` says of the unit file, 0 to 10}"""
    found = {}
    for unit in sorted(folder.glob("*.service")):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        score = re.search(r"exposure level for .*: ([0-9.]+)", done.stdout)
        found[unit.name] = score.group(1) if score else "?"
    return found


def table(head, rows):
    """Rows of text, columns as wide as they need."""
    rows = [head, *rows]
    wide = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, wide))} |" for row in rows]


def of_machines(machines):
    names = list(dict.fromkeys(key for figures in machines.values() for key in figures if isinstance(key, str)))
    head = ["figure", *machines]
    return table(head, [[name, *(str(m.get(name, "")) for m in machines.values())] for name in names])


def of_programs(machines):
    loaded = {name: figures for name, figures in machines.items() if any(key[0] == "program" for key in figures)}
    names = list(dict.fromkeys(key[1] for figures in loaded.values() for key in figures if key[0] == "program"))
    if not names:
        return []
    rows = [[name, *(" / ".join(m.get(("program", name), ("-",))) for m in loaded.values())] for name in names]
    return table(["instructions walked / us", *loaded], rows)


def tables(machines, units):
    """All of it; the times of virtual machines are those of emulation."""
    if not machines:
        return []
    return ["", "figures; times inside all but the container are emulated, some 20 times slower",
            *of_machines(machines), "", "the verifier, per program and kernel", *of_programs(machines), "",
            "exposure by systemd-analyze security", *table(["unit", "of 10"], list(map(list, units.items())))]
