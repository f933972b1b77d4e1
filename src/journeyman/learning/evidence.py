"""How much counts say: bounds of a success rate, and when a strategy is trusted, doubted or given up.

Everything is arithmetic on counters; nothing here knows what a tool is.
"""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.playbook import StrategyState, ToolCallingStrategy, wilson

DOUBT = 1.6449
"""Standard deviations of 95 % on one side: what it takes to give a strategy up."""
TRUST = 0.8416
"""Of 80 % on one side: what it takes to rank it and to try it. A wrong try costs one run, and is noticed."""
NEUTRAL = 0.5
"""The rate of runs of which nothing is known."""
FEWEST_USES = 4
"""Uses before a strategy is given up."""


def lower_bound(good: int, bad: int, *, z: float = TRUST) -> float:
    """Wilson's lower bound of a success rate; 0 without evidence."""
    return wilson(good, good + bad, z)[0]


def upper_bound(good: int, bad: int, *, z: float = DOUBT) -> float:
    """Wilson's upper bound; 1 without evidence."""
    return wilson(good, good + bad, z)[1]


def judged(strategy: ToolCallingStrategy, *, baseline: float | None, needed: int) -> tuple[StrategyState, str]:
    """The state that a strategy's evidence speaks for, and why.

    ``baseline`` is how often runs of its domain succeed without advice, if that is known; ``needed`` is how many
    successes of one pattern it takes before it is offered.
    """
    if strategy.state is StrategyState.RETIRED:
        return strategy.state, strategy.state_reason
    if (why := _turned_bad(strategy, baseline)) is not None:
        return StrategyState.QUARANTINED, why
    if strategy.state is StrategyState.QUARANTINED:
        return strategy.state, strategy.state_reason
    good, bad = strategy.helpful_count, strategy.harmful_count
    least = min(NEUTRAL if baseline is None else baseline, NEUTRAL)
    # While it is offered, its uses are judged as uses: only they say whether it helps.
    counted = _before_uses(strategy) if strategy.state is StrategyState.ACTIVE and strategy.recent else (good, bad)
    if good >= needed and (lower_bound(*counted) >= least or counted == (0, 0)):
        return StrategyState.ACTIVE, f"{good} of {good + bad} succeeded"
    return StrategyState.SHADOW, f"{good} of {good + bad} succeeded: too little evidence"


def _before_uses(strategy: ToolCallingStrategy) -> tuple[int, int]:
    """Successes and failures, but for the latest uses."""
    good, bad = sum(strategy.recent), len(strategy.recent) - sum(strategy.recent)
    return max(0, strategy.helpful_count - good), max(0, strategy.harmful_count - bad)


def _turned_bad(strategy: ToolCallingStrategy, baseline: float | None) -> str | None:
    """Why its latest uses speak against it at 95 % confidence, if they do."""
    uses = strategy.recent
    if len(uses) < FEWEST_USES:
        return None
    # What it is held against: runs without it, and what it did itself before.
    held = strategy.holdout_helpful, strategy.holdout_harmful
    reference = max(
        lower_bound(*_before_uses(strategy), z=DOUBT),
        lower_bound(*held, z=DOUBT),
        (NEUTRAL if baseline is None else baseline) if sum(held) < FEWEST_USES else 0.0,
    )
    for latest in _windows(uses):
        good = sum(latest)
        high = upper_bound(good, len(latest) - good)
        if high < reference:
            return (
                f"{good} of its last {len(latest)} uses succeeded: below {high:.2f} at 95 % confidence, "
                f"against {reference:.2f} without it or before"
            )
    return None


def _windows(uses: Sequence[bool]) -> list[Sequence[bool]]:
    """The latest uses, few and many: what turned bad lately is not to hide behind what was good before."""
    return [uses[-count:] for count in (FEWEST_USES, 6, 8, 10, 15, 20) if count <= len(uses)] or [uses]
