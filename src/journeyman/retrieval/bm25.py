"""Lexical ranking (BM25) over short texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from journeyman.core.data import SEARCHED_CHARS
from journeyman.core.words import WordLists, stem, words

_listed = WordLists("journeyman.retrieval", "words.txt")


def terms(text: str) -> list[str]:
    """The stems of the words at a text's beginning, without words that every text has."""
    return [stem(word) for word in words(text[:SEARCHED_CHARS]) if word not in _listed.common]


class BM25:
    """An index of named texts; a text that changes is put again."""

    def __init__(self, texts: Mapping[str, str] | None = None, *, k1: float = 1.2, b: float = 0.75) -> None:
        self._k1, self._b = k1, b
        self._counts: dict[str, Counter[str]] = {}
        self._lengths: dict[str, int] = {}
        self._postings: dict[str, dict[str, int]] = {}
        self._total = 0
        for key, text in (texts or {}).items():
            self.put(key, text)

    def __len__(self) -> int:
        return len(self._lengths)

    def __contains__(self, key: object) -> bool:
        return key in self._lengths

    def put(self, key: str, text: str) -> None:
        """Add a text, or replace the one of this key."""
        self.remove(key)
        counts = Counter(terms(text))
        self._counts[key] = counts
        self._lengths[key] = counts.total()
        self._total += counts.total()
        for word, count in counts.items():
            self._postings.setdefault(word, {})[key] = count

    def remove(self, key: str) -> None:
        """Forget a text; one that is not there is no error."""
        if key not in self._lengths:
            return
        self._total -= self._lengths.pop(key)
        for word in self._counts.pop(key):
            holders = self._postings[word]
            del holders[key]
            if not holders:
                del self._postings[word]

    def rank(self, query: str, *, k: int = 5) -> list[tuple[str, float]]:
        """The best keys with their scores; nothing that shares no word with the query."""
        return sorted(self._scores(dict.fromkeys(terms(query))).items(), key=lambda item: (-item[1], item[0]))[:k]

    def shares(self, query: str, *, common: int | None = None, also: Iterable[str] = ()) -> dict[str, float]:
        """Every key that shares a word with the query, with its score as a share of the highest possible: 0 to 1.

        Words that no text holds count too, so unlike a score it says how much of the query was found at all. A word
        that more than ``common`` texts hold finds none by itself; it counts for those that rarer words have found, and
        for ``also``: so the cost does not grow with the number of texts.
        """
        asked = dict.fromkeys(terms(query))
        highest = sum(map(self._rarity, asked)) * (self._k1 + 1)
        return {key: score / highest for key, score in self._scores(asked, common, also).items()}

    def _scores(self, asked: Iterable[str], common: int | None = None, also: Iterable[str] = ()) -> dict[str, float]:
        scores: dict[str, float] = {}
        mean = self._total / len(self._lengths) if self._total else 1.0
        held = [(word, self._postings[word]) for word in asked if word in self._postings]
        if common is not None:
            held.sort(key=lambda item: len(item[1]))
            scores = {key: 0.0 for key in also if key in self._lengths}
        k1, flat, slope, lengths = self._k1, 1 - self._b, self._b / mean, self._lengths
        for word, holders in held:
            rarity = self._rarity(word) * (k1 + 1)
            if common is None or len(holders) <= common:
                for key, count in holders.items():
                    weight = rarity * count / (count + k1 * (flat + slope * lengths[key]))
                    scores[key] = scores.get(key, 0.0) + weight
            else:
                for key in scores:
                    if (count := holders.get(key, 0)) > 0:
                        scores[key] += rarity * count / (count + k1 * (flat + slope * lengths[key]))
        return {key: score for key, score in scores.items() if score} if common is not None else scores

    def _rarity(self, word: str) -> float:
        holders = len(self._postings.get(word, ()))
        return math.log(1 + (len(self._lengths) - holders + 0.5) / (holders + 0.5))
