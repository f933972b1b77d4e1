"""How much counts say: bounds of a success rate, and when a strategy is trusted, doubted or given up.

Everything is arithmetic on counters; nothing here knows what a tool is.
"""

from __future__ import annotations

import math

from journeyman.core.playbook import StrategyState, ToolCallingStrategy, wilson

DOUBT = 1.6449
"""Standard deviations of 95 % on one side: what it takes to give a strategy up."""
TRUST = 0.8416
"""Of 80 % on one side: what it takes to rank it and to try it. A wrong try costs one run, and is noticed."""
NEUTRAL = 0.5
"""The rate of runs of which nothing is known."""
FEWEST_USES = 4
"""Holdouts before they say more than the domain's baseline."""
MOST_EXPECTED = 0.7
"""What a strategy is held against at most: one that was perfect may become merely good."""
ENOUGH_DOUBT = 4.0
"""The log of how much likelier the latest uses are if it turned bad: 55 to 1, since every use is asked about."""


def lower_bound(good: int, bad: int, *, z: float = TRUST) -> float:
    """Wilson's lower bound of a success rate; 0 without evidence."""
    return wilson(good, good + bad, z)[0]


def only_failed(strategy: ToolCallingStrategy, needed: int) -> bool:
    """Whether it has failed as often as a strategy must have worked to be offered, and never worked."""
    return not strategy.helpful_count and strategy.harmful_count >= needed


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
    """Why its latest uses speak against it, if they do.

    Use by use (a CUSUM of log-likelihood ratios): does it succeed half as often as it should, which is as runs without
    it, or as it did itself before? A test made for one look would, asked after every use, give good ones up, too.
    """
    held = strategy.holdout_helpful, strategy.holdout_harmful
    expected = max(
        lower_bound(*_before_uses(strategy), z=DOUBT),
        lower_bound(*held, z=DOUBT),
        (NEUTRAL if baseline is None else baseline) if sum(held) < FEWEST_USES else 0.0,
    )
    expected = min(expected, MOST_EXPECTED)
    if expected <= 0:
        return None
    failure, success = math.log((1 - expected / 2) / (1 - expected)), math.log(0.5)
    doubt, since = 0.0, 0
    for use, good in enumerate(strategy.recent):
        doubt += success if good else failure
        if doubt <= 0:
            doubt, since = 0.0, use + 1
    if doubt < ENOUGH_DOUBT:
        return None
    latest = strategy.recent[since:]
    return (
        f"{sum(latest)} of its last {len(latest)} uses succeeded, where {expected:.0%} was to be expected: "
        "worse at 95 % confidence"
    )
