"""Which strategy to offer: similarity, times a lower confidence bound, times how well it follows the call before it.

Strategies with the same tool sequence vote together. Where the nearest is far away, or the votes are divided, the
answer is that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.core.playbook import ToolCallingStrategy
from journeyman.learning.evidence import lower_bound
from journeyman.learning.index import Neighbour, Transitions

SHARPNESS = 5.0
"""How much more a nearer neighbour's vote counts. Tuned, with what follows, on half of a corpus; see the benchmark."""
PRIOR = 0.15
"""How much it counts that the first tool tends to follow the call before."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A strategy with the share of the votes that its sequence has."""

    strategy: ToolCallingStrategy
    share: float
    near: Neighbour


def rank(
    neighbours: Sequence[Neighbour],
    transitions: Transitions | None = None,
    *,
    previous: str | None = None,
    sharpness: float = SHARPNESS,
    prior: float = PRIOR,
) -> list[Ranked]:
    """One strategy for each sequence, the nearest of those that have it; best sequence first."""
    if not neighbours:
        return []
    highest = max(near.score for near in neighbours) or 1.0
    votes: dict[tuple[str, ...], float] = {}
    nearest: dict[tuple[str, ...], tuple[float, Neighbour]] = {}
    for near in neighbours:
        strategy = near.strategy
        bound = lower_bound(strategy.helpful_count, strategy.harmful_count)
        weight = (max(0.0, near.score) / highest) ** sharpness * bound
        sequence = strategy.tool_sequence
        votes[sequence] = votes.get(sequence, 0.0) + weight
        own = near.score * bound
        if sequence not in nearest or nearest[sequence][0] < own:
            nearest[sequence] = own, near
    if transitions is not None and prior:
        for sequence in votes:
            votes[sequence] *= transitions.probability(sequence[0], previous) ** prior
    total = sum(votes.values()) or 1.0
    ordered = sorted(votes, key=lambda sequence: -votes[sequence])
    return [Ranked(nearest[item][1].strategy, votes[item] / total, nearest[item][1]) for item in ordered]


def next_tools(
    neighbours: Sequence[Neighbour],
    transitions: Transitions,
    *,
    done: Sequence[str] = (),
    previous: str | None = None,
    tools: Sequence[str] | None = None,
    sharpness: float = SHARPNESS,
    markov: float = 0.4,
) -> list[tuple[str, float]]:
    """The tool to call after those that are done, by what similar requests did and by what follows what."""
    highest = max((near.score for near in neighbours), default=1.0) or 1.0
    votes: dict[str, float] = {}
    for near in neighbours:
        sequence = near.strategy.tool_sequence
        following = _following(sequence, done)
        if following is None:
            continue
        name, fit = following
        bound = lower_bound(near.strategy.helpful_count, near.strategy.harmful_count)
        votes[name] = votes.get(name, 0.0) + fit * bound * (max(0.0, near.score) / highest) ** sharpness
    total = sum(votes.values())
    last = done[-1] if done else previous
    names = dict.fromkeys([*votes, *transitions.followers(last)])
    allowed = None if tools is None else set(tools)
    scores = {
        name: (1 - markov) * (votes.get(name, 0.0) / total if total else 0.0)
        + markov * transitions.probability(name, last)
        for name in names
        if allowed is None or name in allowed
    }
    return sorted(scores.items(), key=lambda item: -item[1])


def _following(sequence: Sequence[str], done: Sequence[str]) -> tuple[str, float] | None:
    """What a sequence does after these steps, and how well they fit it; None where it says nothing."""
    count = len(done)
    if count < len(sequence) and tuple(sequence[:count]) == tuple(done):
        return sequence[count], 1.0
    if done and done[-1] in sequence[:-1]:
        return sequence[list(sequence).index(done[-1]) + 1], 0.3
    if not set(sequence) <= set(done):
        return next(name for name in sequence if name not in done), 0.15
    return None
