"""Evidence by words and by meaning → one ranking.

The two are added as they are: both say, on a scale that ends at 1, how much speaks for a text, whatever else was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest


@dataclass(frozen=True, slots=True)
class Hit:
    """One text that was found."""

    id: str
    score: float
    """The sum of the two below: about 0 (nothing in common) to 2 (the same text)."""
    words: float
    """How much of the query's words the text holds, rare words counting more; 0 to 1."""
    similarity: float | None
    """The cosine of the two vectors; None without an embedder, or when too many others were nearer."""


def fuse(words: Mapping[str, float], near: Mapping[str, float] | None, *, k: int) -> list[Hit]:
    """The best of both; ``near`` holds the nearest only, so anything else is at most as near as the last of them."""
    least = min(near.values(), default=0.0) if near else 0.0
    near = near or {}
    hits = (
        Hit(key, words.get(key, 0.0) + near.get(key, least), words.get(key, 0.0), near.get(key))
        for key in dict.fromkeys([*words, *near])
    )
    return sorted(nlargest(k, hits, key=_order), key=_order, reverse=True)


def _order(hit: Hit) -> float:
    return hit.score
