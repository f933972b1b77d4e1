"""What an experiment found: figures with intervals, comparisons with p-values, and a winner or none.

A report is plain data; it prints itself as JSON, as Markdown, or as one HTML page with plots.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field

from journeyman.core.data import Entity
from journeyman.core.words import packaged_text
from journeyman.experiments import statistics

METRICS = ("score", "iterations", "calls", "seconds", "tokens")
"""The score decides; the others are reported beside it."""

COST = "cost"
"""US dollars a run, where the models of all arms have a price."""

_REASONS_SHOWN = 5


class Observation(Entity):
    """One run of one arm on one input, measured."""

    arm: str
    unit: str
    """The input's (or user's) name: what makes two observations a pair."""
    score: float = Field(ge=0, le=1)
    iterations: int = 0
    calls: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float | None = None
    """US dollars; None where the model has no price."""
    model: str = ""
    status: str = ""
    error: str | None = None


Bound: TypeAlias = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""An end of an interval; NaN where there are no observations, which JSON writes as null."""


class Figure(Entity):
    """One metric of one arm."""

    mean: float
    low: Bound
    high: Bound


class ArmSummary(Entity):
    """One arm in figures."""

    arm: str
    units: int
    observations: int
    failures: int
    """Runs that broke or did not complete."""
    figures: dict[str, Figure]
    reasons: dict[str, int] = Field(default_factory=dict)
    """Why runs failed, and how many for each reason; the most frequent first."""


class Comparison(Entity):
    """Two arms on the score."""

    a: str
    b: str
    difference: float
    """b - a."""
    low: Bound
    high: Bound
    p: float
    p_corrected: float
    pairs: int | None
    """How many units both arms have; None where the comparison is not paired."""


class Look(Entity):
    """Which experiment is looked at, which look it is, and how its arms are compared."""

    experiment_id: str
    name: str
    paired: bool
    alpha: float
    """What a comparison's corrected p must stay below; less than planned where there are several looks."""
    look: int
    looks: int


class Report(Look):
    """The whole result; plain data."""

    arms: tuple[ArmSummary, ...]
    comparisons: tuple[Comparison, ...]
    winner: str | None = None
    """The arm that is significantly better than every other; None when the evidence does not decide."""
    observations: tuple[Observation, ...] = Field(default=(), repr=False)

    @property
    def verdict(self) -> str:
        if self.winner is not None:
            return f"{self.winner} is better than {'every other arm' if len(self.arms) > 2 else 'the other'}."
        return "No winner: the evidence does not decide."

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the figures that every arm has."""
        priced = bool(self.arms) and all(COST in arm.figures for arm in self.arms)
        return (*METRICS, COST) if priced else METRICS

    @property
    def notes(self) -> list[str]:
        """What a reader must know beside the figures: why runs failed, and which models have no price."""
        notes = [f"{arm.arm}: {count} failed: {reason}" for arm in self.arms for reason, count in arm.reasons.items()]
        unpriced = {item.model or "(unnamed)" for item in self.observations if item.cost is None and item.tokens}
        if unpriced:
            notes.append(f"No cost: there is no price for {', '.join(sorted(unpriced))}; give Experiment(prices=...).")
        return notes

    @property
    def _method(self) -> str:
        kind = "paired by input" if self.paired else "by sticky assignment"
        return f"Compared {kind}; look {self.look} of {self.looks}; a difference counts below p = {self.alpha:.4f}."

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)

    def to_markdown(self) -> str:
        """Tables for a pull request or a terminal."""
        lines = [f"# {self.name}", "", f"**{self.verdict}**", "", self._method, ""]
        metrics = self.metrics
        lines += [row("arm", "units", "runs", "failed", *metrics), "|" + "---|" * (4 + len(metrics))]
        for arm in self.arms:
            figures = [arm.figures[metric] for metric in metrics]
            cells = [f"{figure.mean:.3g} ({figure.low:.3g}–{figure.high:.3g})" for figure in figures]
            lines.append(row(arm.arm, arm.units, arm.observations, arm.failures, *cells))
        lines += ["", "| comparison (score) | difference | 95 % interval | p | p corrected |", "|---|---|---|---|---|"]
        lines += [row(*_cells(item)) for item in self.comparisons]
        if notes := self.notes:
            lines += ["", *(f"- {' '.join(note.split())}" for note in notes)]
        return "\n".join(lines) + "\n"

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page with plots; written to ``path`` when given."""
        return page(self.name, self.verdict, _parts(self), self.notes, path=path)


def row(*cells: object) -> str:
    """One line of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def _cells(item: Comparison) -> tuple[str, ...]:
    interval = f"{item.low:+.3f} … {item.high:+.3f}"
    return f"{item.b} against {item.a}", f"{item.difference:+.3f}", interval, f"{item.p:.4f}", f"{item.p_corrected:.4f}"


# --- comparing


def compare(observations: Sequence[Observation], look: Look, *, arms: Sequence[str], seed: int) -> Report:
    """The report on some observations."""
    rng = random.Random(seed)
    groups = {arm: [item for item in observations if item.arm == arm] for arm in arms}
    comparisons = _comparisons(groups, is_paired=look.paired, rng=rng)
    return Report(
        **dict(look),
        arms=tuple(_summary(arm, groups[arm], rng) for arm in arms),
        comparisons=comparisons,
        winner=_winner(arms, comparisons, look.alpha),
        observations=tuple(observations),
    )


def _unit_means(observations: Iterable[Observation], metric: str) -> dict[str, float]:
    """The mean of each unit: several runs of one unit are one piece of evidence, not several."""
    values: dict[str, list[float]] = {}
    for item in observations:
        if (value := getattr(item, metric)) is not None:
            values.setdefault(item.unit, []).append(float(value))
    return {unit: sum(scores) / len(scores) for unit, scores in values.items()}


def _summary(arm: str, observations: Sequence[Observation], rng: random.Random) -> ArmSummary:
    figures = {}
    priced = any(item.cost is not None for item in observations) and not any(
        item.cost is None and item.tokens for item in observations
    )
    for metric in (*METRICS, COST) if priced else METRICS:
        units = _unit_means(observations, metric)
        low, high = statistics.bootstrap_mean(list(units.values()), rng=rng)
        figures[metric] = Figure(mean=fmean(units.values()) if units else 0.0, low=low, high=high)
    failed = [item for item in observations if item.status != "completed"]
    return ArmSummary(
        arm=arm,
        units=len({item.unit for item in observations}),
        observations=len(observations),
        failures=len(failed),
        figures=figures,
        reasons=dict(Counter(item.error or item.status for item in failed).most_common(_REASONS_SHOWN)),
    )


def _comparisons(
    groups: dict[str, list[Observation]], *, is_paired: bool, rng: random.Random
) -> tuple[Comparison, ...]:
    results: list[Comparison] = []
    for a, b in combinations(groups, 2):
        means_a, means_b = _unit_means(groups[a], "score"), _unit_means(groups[b], "score")
        pairs = [(means_a[unit], means_b[unit]) for unit in means_a if unit in means_b]
        if is_paired:
            differences = [second - first for first, second in pairs]
            p = statistics.paired_p(pairs, rng=rng)
            low, high = statistics.bootstrap_mean(differences, rng=rng)
            difference = fmean(differences) if differences else 0.0
        else:
            first, second = list(means_a.values()), list(means_b.values())
            p = statistics.unpaired_p(first, second, rng=rng)
            low, high = statistics.bootstrap_difference(first, second, rng=rng)
            difference = fmean(second) - fmean(first) if first and second else 0.0
        count = len(pairs) if is_paired else None
        results.append(Comparison(a=a, b=b, difference=difference, low=low, high=high, p=p, p_corrected=p, pairs=count))
    corrected = statistics.holm({(item.a, item.b): item.p for item in results})
    return tuple(item.model_copy(update={"p_corrected": corrected[item.a, item.b]}) for item in results)


def _winner(arms: Sequence[str], comparisons: Sequence[Comparison], alpha: float) -> str | None:
    beaten: dict[str, set[str]] = {arm: set() for arm in arms}
    for item in comparisons:
        if item.p_corrected < alpha and item.difference != 0:
            better, worse = (item.b, item.a) if item.difference > 0 else (item.a, item.b)
            beaten[better].add(worse)
    return next((arm for arm in arms if len(beaten[arm]) == len(arms) - 1), None)


# --- the page: no script, no external asset, light and dark, plots as inline SVG


def page(
    name: str, verdict: str, parts: Iterable[str], notes: Sequence[str] = (), *, path: str | Path | None = None
) -> str:
    """One self-contained page around parts in HTML; written to ``path`` when given."""
    style = packaged_text("journeyman.experiments", "report.css")
    whole = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>{escape(name)}</title><style>{style}</style></head><body><main>",
        f"<h1>{escape(name)}</h1><p class=verdict>{escape(verdict)}</p>",
        *parts,
    ]
    if notes:
        whole += ["<h2>Notes</h2><ul>", *(f"<li>{escape(note)}</li>" for note in notes), "</ul>"]
    text = "".join([*whole, "</main></body></html>"])
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _parts(report: Report) -> list[str]:
    parts = [f"<p>{report._method} Bars are 95 % bootstrap intervals.</p>"]
    for metric in report.metrics:
        figures = [(arm.arm, arm.figures[metric]) for arm in report.arms]
        rows = [(arm, figure.mean, figure.low, figure.high) for arm, figure in figures]
        parts += [f"<h2>{metric.capitalize()}</h2>", _plot(rows, f"{metric} by arm", from_zero=True)]
    rows = [(f"{c.b} − {c.a}", c.difference, c.low, c.high) for c in report.comparisons]
    parts += ["<h2>Differences in score</h2>", _plot(rows, "difference in score by pair")]
    heads = ("comparison", "difference", "95 % interval", "p", "p corrected")
    parts += [table(heads, map(_cells, report.comparisons)), "<h2>Arms</h2>"]
    rows_of_arms = (
        (arm.arm, arm.units, arm.observations, arm.failures, *(f"{arm.figures[m].mean:.4g}" for m in report.metrics))
        for arm in report.arms
    )
    parts.append(table(("arm", "units", "runs", "failed", *report.metrics), rows_of_arms))
    return parts


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in HTML."""
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _plot(rows: list[tuple[str, float, float, float]], label: str, *, from_zero: bool = False) -> str:
    """Dots with intervals, one row each, on a common axis; zero is always in view."""
    ends = [value for _, mean, low, high in rows for value in (mean, low, high) if value == value]
    lowest, highest = min([0.0, *ends]), max([0.0, *ends])
    if lowest == highest:
        highest = lowest + 1.0
    left, right, height = 180, 690, 34

    def x(value: float) -> float:
        return left + (value - lowest) / (highest - lowest) * (right - left)

    total = height * len(rows) + 30
    parts = [f"<svg viewBox='0 0 720 {total}' role=img aria-label='{escape(label, quote=True)}'>"]
    for tick in range(5):
        value = lowest + (highest - lowest) * tick / 4
        parts.append(f"<line class=axis x1={x(value):.1f} x2={x(value):.1f} y1=0 y2={total - 22} />")
        parts.append(f"<text x={x(value):.1f} y={total - 6} text-anchor=middle>{value:.3g}</text>")
    if not from_zero:
        parts.append(f"<line class=axis x1={x(0):.1f} x2={x(0):.1f} y1=0 y2={total - 22} stroke-width=2 />")
    for number, (name, mean, low, high) in enumerate(rows):
        y = height * number + 18
        parts.append(f"<text x={left - 12} y={y + 4} text-anchor=end>{escape(name[:24])}</text>")
        if low == low:
            parts.append(f"<line class=bar x1={x(low):.1f} x2={x(high):.1f} y1={y} y2={y} />")
        parts.append(f"<circle class=dot cx={x(mean):.1f} cy={y} r=6><title>{mean:.4g}</title></circle>")
    return "".join([*parts, "</svg>"])
