"""What an experiment found: figures with intervals, comparisons with their evidence, and a winner or none."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from journeyman.core.data import Entity
from journeyman.experiments import statistics
from journeyman.experiments.page import page
from journeyman.experiments.results import METRICS, Observation, by_arm, paired, unit_means


def _number(value: Any) -> Any:
    return math.nan if value is None else value


Bound: TypeAlias = Annotated[float, BeforeValidator(_number)]
"""An end of an interval. Of no observations it is not a number, for which JSON has only null."""


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


class Report(Entity):
    """The whole result; plain data."""

    experiment_id: str
    name: str
    paired: bool
    alpha: float
    """What a comparison's corrected p must stay below; less than planned where looks were paid for."""
    look: int
    looks: int
    arms: tuple[ArmSummary, ...]
    comparisons: tuple[Comparison, ...]
    winner: str | None = None
    """The arm that is better than every other beyond doubt; None when the evidence does not decide."""
    observations: tuple[Observation, ...] = Field(default=(), repr=False)

    @property
    def verdict(self) -> str:
        if self.winner is not None:
            return f"{self.winner} is better than {'every other arm' if len(self.arms) > 2 else 'the other'}."
        return "No winner: the evidence does not decide."

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)

    def to_markdown(self) -> str:
        """Tables for a pull request or a terminal."""
        kind = "paired by input" if self.paired else "by sticky assignment"
        lines = [f"# {self.name}", "", f"**{self.verdict}**", ""]
        lines += [f"Compared {kind}; look {self.look} of {self.looks}; a difference counts below p = {self.alpha:.4f}."]
        head = "| arm | units | runs | failed | " + " | ".join(METRICS) + " |"
        lines += ["", head, "|" + "---|" * (4 + len(METRICS))]
        for arm in self.arms:
            cells = [_interval(arm.figures[metric]) for metric in METRICS]
            lines.append(
                f"| {arm.arm} | {arm.units} | {arm.observations} | {arm.failures} | " + " | ".join(cells) + " |"
            )
        lines += ["", "| comparison (score) | difference | 95 % interval | p | p corrected |", "|---|---|---|---|---|"]
        for item in self.comparisons:
            lines.append(
                f"| {item.b} against {item.a} | {item.difference:+.3f} | {item.low:+.3f} … {item.high:+.3f} "
                f"| {item.p:.4f} | {item.p_corrected:.4f} |"
            )
        return "\n".join(lines) + "\n"

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page with plots; written to ``path`` when given."""
        text = page(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text


def _interval(figure: Figure) -> str:
    return f"{figure.mean:.3g} ({figure.low:.3g}–{figure.high:.3g})"


def compare(
    observations: Sequence[Observation],
    *,
    arms: Sequence[str],
    experiment_id: str,
    name: str,
    paired: bool,
    alpha: float,
    look: int,
    looks: int,
    seed: int,
) -> Report:
    """Make the report."""
    rng = random.Random(seed)
    groups = by_arm(observations, arms)
    comparisons = _comparisons(groups, arms, is_paired=paired, rng=rng)
    return Report(
        experiment_id=experiment_id,
        name=name,
        paired=paired,
        alpha=alpha,
        look=look,
        looks=looks,
        arms=tuple(_summary(arm, groups[arm], rng) for arm in arms),
        comparisons=comparisons,
        winner=_winner(arms, comparisons, alpha),
        observations=tuple(observations),
    )


def _summary(arm: str, observations: Sequence[Observation], rng: random.Random) -> ArmSummary:
    figures = {}
    units: dict[str, float] = {}
    for metric in METRICS:
        units = unit_means(observations, metric)
        low, high = statistics.bootstrap_mean(list(units.values()), rng=rng)
        figures[metric] = Figure(mean=fmean(units.values()) if units else 0.0, low=low, high=high)
    failures = sum(item.status != "completed" for item in observations)
    return ArmSummary(arm=arm, units=len(units), observations=len(observations), failures=failures, figures=figures)


def _comparisons(
    groups: dict[str, list[Observation]], arms: Sequence[str], *, is_paired: bool, rng: random.Random
) -> tuple[Comparison, ...]:
    found: list[Comparison] = []
    for a, b in combinations(arms, 2):
        means_a, means_b = unit_means(groups[a], "score"), unit_means(groups[b], "score")
        pairs = paired(means_a, means_b)
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
        found.append(
            Comparison(
                a=a,
                b=b,
                difference=difference,
                low=low,
                high=high,
                p=p,
                p_corrected=p,
                pairs=len(pairs) if is_paired else None,
            )
        )
    corrected = statistics.holm({f"{item.a}\n{item.b}": item.p for item in found})
    return tuple(item.model_copy(update={"p_corrected": corrected[f"{item.a}\n{item.b}"]}) for item in found)


def _winner(arms: Sequence[str], comparisons: Sequence[Comparison], alpha: float) -> str | None:
    beaten: dict[str, set[str]] = {arm: set() for arm in arms}
    for item in comparisons:
        if item.p_corrected < alpha and item.difference != 0:
            better, worse = (item.b, item.a) if item.difference > 0 else (item.a, item.b)
            beaten[better].add(worse)
    return next((arm for arm in arms if len(beaten[arm]) == len(arms) - 1), None)
