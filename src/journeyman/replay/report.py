"""What a replay found: counts with intervals, the rules or differences behind them, and what stays unknown.

The same report for policies, models and tools; it prints itself as JSON, as Markdown, or as the experiments' page.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from journeyman.core.data import Entity
from journeyman.core.playbook import wilson
from journeyman.experiments.report import page, row, table

MOST_FINDINGS = 200
"""Kinds of differences that a report lists, the most frequent first."""


class Finding(Entity):
    """One kind of difference, how often it occurs, and where it is seen first."""

    change: str
    tool: str
    rule: str
    calls: int
    runs: int
    run_id: str
    call_id: str = ""


class Share(Entity):
    """A part of a whole with its 95 % interval, where runs like these are expected again."""

    part: int
    whole: int
    low: float
    high: float

    @classmethod
    def of(cls, part: int, whole: int) -> Share:
        """Wilson's interval, which holds for small numbers and for none at all."""
        low, high = wilson(part, whole, 1.96)
        return cls(part=part, whole=whole, low=low, high=high)

    def __str__(self) -> str:
        if not self.whole:
            return "0 of 0"
        shown = f"{self.part:,} of {self.whole:,} ({self.part / self.whole:.1%}"
        return f"{shown}, 95 % interval {self.low:.1%} to {self.high:.1%})"


class ReplayReport(Entity):
    """The whole result; plain data, without what was said or returned in the runs."""

    kind: Literal["policy", "model", "tools"]
    name: str
    verdict: str
    counts: dict[str, int] = Field(default_factory=dict)
    shares: dict[str, Share] = Field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader must know beside the figures; above all what stays unknown."""

    @property
    def changed(self) -> int:
        """How many calls, steps or runs would go otherwise than they were recorded."""
        if self.kind == "policy":
            return sum(count for name, count in self.counts.items() if name.startswith("now_"))
        return sum(item.calls for item in self.findings if item.change not in ("failed", "not_recorded"))

    @property
    def not_recorded(self) -> int:
        """How many calls would be made that the recordings do not hold: what becomes of them is unknown."""
        return self.counts.get("not_recorded", 0)

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)

    def to_markdown(self) -> str:
        lines = [f"# {self.name}", "", f"**{self.verdict}**", "", row("figure", "value"), "|---|---|"]
        lines += [row(*cells) for cells in self.figures()]
        if self.findings:
            lines += ["", row(*_HEADS), "|" + "---|" * len(_HEADS)]
            lines += [
                row(*(" ".join(str(cell).replace("|", "\\|").split()) for cell in _cells(f))) for f in self.findings
            ]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def to_html(self, path: str | Path | None = None) -> str:
        parts = [table(("figure", "value"), self.figures())]
        if self.findings:
            parts += ["<h2>Differences</h2>", table(_HEADS, map(_cells, self.findings))]
        return page(self.name, self.verdict, parts, self.notes, path=path)

    def figures(self) -> Iterable[tuple[str, str]]:
        yield from ((name.replace("_", " "), f"{count:,}") for name, count in self.counts.items())
        yield from ((name.replace("_", " "), str(share)) for name, share in self.shares.items())


_HEADS = ("change", "tool", "rule", "calls", "runs", "for example")


def _cells(item: Finding) -> tuple[object, ...]:
    example = f"{item.run_id} {item.call_id}".strip()
    return item.change.replace("_", " "), item.tool, item.rule, f"{item.calls:,}", f"{item.runs:,}", example


class Tally:
    """Counts differences by kind, so that what is kept does not grow with the runs."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Finding] = {}
        self._latest: dict[tuple[str, str, str], str] = {}
        """The run in which each was seen last."""

    def add(self, change: str, tool: str, kind: str, rule: str, *, run_id: str, call_id: str = "") -> None:
        key = (change, tool, kind)
        new = Finding(change=change, tool=tool, rule=rule, calls=0, runs=0, run_id=run_id, call_id=call_id)
        finding, again = self._found.get(key, new), self._latest.get(key) == run_id
        counted = {"calls": finding.calls + 1, "runs": finding.runs + (not again)}
        self._found[key], self._latest[key] = finding.model_copy(update=counted), run_id

    def findings(self) -> tuple[Finding, ...]:
        ordered = sorted(self._found.items(), key=lambda item: (-item[1].calls, item[0]))
        return tuple(finding for _, finding in ordered[:MOST_FINDINGS])
