# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench's one table, how they are printed, and the gate against the last landed ratios."""
import dataclasses
import json
import pathlib
import statistics
import typing

LAST = pathlib.Path(__file__).with_name("last.json")
WORSE = 1.5  # a landed ratio may not grow by more than this factor
HEADS = ("figure", "ours", "reach", "peer, same run", "ratio", "met")


@dataclasses.dataclass
class Row:
    """One figure. `ratio` is ours to the peer's, so that smaller is better unless `more` is set (rates).
    `met` None: no reach is stated. `key` names a ratio that holds on any machine: it is gated; with `must`
    it is met or not that is gated, as 0 or 1."""
    figure: str
    ours: str
    reach: str = "-"
    peer: str = "-"
    ratio: typing.Optional[float] = None
    met: typing.Optional[bool] = None
    more: bool = False
    key: typing.Optional[str] = None
    must: bool = False

    def cells(self):
        ratio = "-" if self.ratio is None else f"{self.ratio:.3g}"
        met = {None: "-", True: "met", False: "NOT MET"}[self.met]
        return self.figure, self.ours, self.reach, self.peer, ratio, met

    def cost(self):
        """The ratio turned so that smaller is better."""
        if self.must:
            return float(self.met is False)
        if self.ratio is None or self.ratio <= 0:
            return None
        return 1 / self.ratio if self.more else self.ratio


def text(rows):
    cells = [HEADS] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADS))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
             for line in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def keyed(rows):
    return {row.key: round(row.cost(), 4) for row in rows if row.key and row.cost() is not None}


def save(rows):
    kept = json.loads(LAST.read_text()) if LAST.exists() else {}
    kept.update(keyed(rows))
    LAST.write_text(json.dumps(dict(sorted(kept.items())), indent=2) + "\n")


def gate(rows):
    """{key: sentence} of what got worse than the landed ratios allow."""
    landed, now = json.loads(LAST.read_text()), keyed(rows)
    must = {row.key for row in rows if row.must}
    return {key: f"{key}: landed as met, and is not" if key in must else
            f"{key}: {now[key]:.3g} of the peer, landed {landed[key]:.3g}: worse than {WORSE} times"
            for key in sorted(now) if key in landed and now[key] > WORSE * landed[key]}


def ratio(ours, peer):
    return ours / peer if ours is not None and peer and ours >= 0 else None


def median(values):
    return statistics.median(values) if values else None
