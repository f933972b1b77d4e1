"""Lexical ranking (BM25) over short texts, with words split the way identifiers are written."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_COMMON_WORDS = "a an and are as at be by for from has in is it its of on or that the this to was when with"
_COMMON = frozenset(_COMMON_WORDS.split())


def words(text: str) -> list[str]:
    """Lower-case words; ``lookupOrder`` and ``lookup_order`` both give ``lookup order``; plurals lose their s."""
    found = (match.group().lower() for match in _WORD.finditer(text))
    return [_stem(word) for word in found if word not in _COMMON]


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


class BM25:
    """An index that is built once from named texts."""

    def __init__(self, texts: Mapping[str, str], *, k1: float = 1.2, b: float = 0.75) -> None:
        self._k1, self._b = k1, b
        self._lengths: dict[str, int] = {}
        self._postings: dict[str, dict[str, int]] = {}
        for key, text in texts.items():
            counts = Counter(words(text))
            self._lengths[key] = sum(counts.values())
            for word, count in counts.items():
                self._postings.setdefault(word, {})[key] = count
        self._mean = sum(self._lengths.values()) / len(self._lengths) if self._lengths else 1.0

    def rank(self, query: str, *, k: int = 5) -> list[tuple[str, float]]:
        """The best keys with their scores; nothing that shares no word with the query."""
        scores: dict[str, float] = {}
        for word in _unique(words(query)):
            holders = self._postings.get(word, {})
            rarity = math.log(1 + (len(self._lengths) - len(holders) + 0.5) / (len(holders) + 0.5))
            for key, count in holders.items():
                norm = 1 - self._b + self._b * self._lengths[key] / (self._mean or 1.0)
                scores[key] = scores.get(key, 0.0) + rarity * count * (self._k1 + 1) / (count + self._k1 * norm)
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
