"""Assignment to arms, and the statistics of a comparison: exact tests where they exist, resampling elsewhere.

* Paired binary scores: McNemar's exact test. Other paired scores: a sign-flip permutation test.
* Unpaired binary scores: Fisher's exact test. Other unpaired scores: a permutation test.
* Intervals: bootstrap percentiles over units.
* Several arms: Holm's correction. Several looks: alpha is spent by the O'Brien–Fleming function.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist, fmean
from typing import TypeVar

from journeyman.core.errors import ConfigurationError

K = TypeVar("K")

RESAMPLES = 1_000
LEVEL = 0.95


def assign(unit: str, arms: Sequence[str] | Mapping[str, float], *, experiment: str = "") -> str:
    """The arm of a unit (a user, a session): the same one every time, in any process.

    With weights, arms get their shares. A unit's hash is a point between 0 and 1, which the arms divide in their
    order; so raising the share of one arm moves units into that arm only.
    """
    weights = dict(arms) if isinstance(arms, Mapping) else dict.fromkeys(arms, 1.0)
    total = sum(weights.values())
    if not weights or total <= 0 or any(weight < 0 for weight in weights.values()):
        raise ConfigurationError(f"arms need weights that are not negative and not all zero, got {weights}")
    digest = hashlib.sha256(f"{experiment}\x1f{unit}".encode()).digest()
    point = int.from_bytes(digest[:8], "big") / 2**64 * total
    for name, weight in weights.items():
        if point < weight:
            return name
        point -= weight
    return next(name for name in reversed(weights) if weights[name] > 0)


def paired_p(pairs: Sequence[tuple[float, float]], *, rng: random.Random) -> float:
    """The two-sided p-value of the differences within pairs."""
    differences = [b - a for a, b in pairs if a != b]
    if not differences:
        return 1.0
    if all(value in (0.0, 1.0) for pair in pairs for value in pair):
        return _binomial_p(sum(d > 0 for d in differences), len(differences))
    observed = abs(sum(differences))
    hits = sum(
        abs(sum(d if rng.random() < 0.5 else -d for d in differences)) >= observed - 1e-12 for _ in range(RESAMPLES)
    )
    return (hits + 1) / (RESAMPLES + 1)


def unpaired_p(a: Sequence[float], b: Sequence[float], *, rng: random.Random) -> float:
    """The two-sided p-value of the difference between two groups."""
    if not a or not b:
        return 1.0
    if all(value in (0.0, 1.0) for value in (*a, *b)):
        return _fisher_p(round(sum(a)), len(a), round(sum(b)), len(b))
    pooled, observed = [*a, *b], abs(fmean(b) - fmean(a))
    hits = 0
    for _ in range(RESAMPLES):
        rng.shuffle(pooled)
        hits += abs(fmean(pooled[: len(a)]) - fmean(pooled[len(a) :])) >= observed - 1e-12
    return (hits + 1) / (RESAMPLES + 1)


def _binomial_p(successes: int, trials: int) -> float:
    """Two-sided exact test of a fair coin."""
    tail = min(successes, trials - successes)
    below = sum(math.comb(trials, k) for k in range(tail + 1))
    return min(1.0, float(below / 2 ** (trials - 1)))


def _fisher_p(a: int, size_a: int, b: int, size_b: int) -> float:
    """Fisher's exact test: the tables at least as unlikely as the one seen."""
    successes, size = a + b, size_a + size_b

    def logp(k: int) -> float:
        return _log_choose(size_a, k) + _log_choose(size_b, successes - k) - _log_choose(size, successes)

    seen = logp(a)
    lowest, highest = max(0, successes - size_b), min(size_a, successes)
    return min(1.0, sum(math.exp(p) for k in range(lowest, highest + 1) if (p := logp(k)) <= seen + 1e-9))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def bootstrap_mean(values: Sequence[float], *, rng: random.Random) -> tuple[float, float]:
    """A bootstrap 95 % confidence interval of a mean."""
    if not values:
        return (math.nan, math.nan)
    if min(values) == max(values):
        return (values[0], values[0])
    size = len(values)
    means = sorted(sum(rng.choices(values, k=size)) / size for _ in range(RESAMPLES))
    return _percentiles(means)


def bootstrap_difference(a: Sequence[float], b: Sequence[float], *, rng: random.Random) -> tuple[float, float]:
    """A bootstrap 95 % confidence interval of the difference of two means, b - a."""
    if not a or not b:
        return (math.nan, math.nan)
    differences = sorted(fmean(rng.choices(b, k=len(b))) - fmean(rng.choices(a, k=len(a))) for _ in range(RESAMPLES))
    return _percentiles(differences)


def _percentiles(ordered: Sequence[float]) -> tuple[float, float]:
    low = (1 - LEVEL) / 2
    return ordered[int(low * len(ordered))], ordered[min(len(ordered) - 1, int((1 - low) * len(ordered)))]


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    """P-values corrected for several comparisons, by Holm's method."""
    adjusted: dict[K, float] = {}
    highest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, p * (len(p_values) - rank)))
        adjusted[name] = highest
    return adjusted


def alpha_at(look: int, looks: int, *, alpha: float) -> float:
    """The significance level at one of several equally spaced looks; all together spend no more than ``alpha``."""
    return _spent(look / looks, alpha) - (_spent((look - 1) / looks, alpha) if look > 1 else 0.0)


def _spent(share: float, alpha: float) -> float:
    normal = NormalDist()
    return 2 - 2 * normal.cdf(normal.inv_cdf(1 - alpha / 2) / math.sqrt(share))
