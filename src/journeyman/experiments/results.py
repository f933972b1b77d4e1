"""What one run of one arm on one input showed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from journeyman.core.data import Entity

METRICS = ("score", "iterations", "calls", "seconds", "tokens")
"""The score decides; the others are reported beside it."""


class Observation(Entity):
    """One run, measured."""

    arm: str
    unit: str
    """The input's (or user's) name: what makes two observations a pair."""
    score: float = Field(ge=0, le=1)
    iterations: int = 0
    calls: int = 0
    seconds: float = 0.0
    tokens: int = 0
    status: str = ""
    error: str | None = None

    def value(self, metric: str) -> float:
        return float(getattr(self, metric))


def by_arm(observations: Iterable[Observation], arms: Sequence[str]) -> dict[str, list[Observation]]:
    found: dict[str, list[Observation]] = {arm: [] for arm in arms}
    for item in observations:
        found[item.arm].append(item)
    return found


def unit_means(observations: Iterable[Observation], metric: str) -> dict[str, float]:
    """A unit's mean: several runs of one unit are one piece of evidence, not several."""
    values: dict[str, list[float]] = {}
    for item in observations:
        values.setdefault(item.unit, []).append(item.value(metric))
    return {unit: sum(found) / len(found) for unit, found in values.items()}


def paired(a: Mapping[str, float], b: Mapping[str, float]) -> list[tuple[float, float]]:
    """The units that both arms have."""
    return [(a[unit], b[unit]) for unit in a if unit in b]
