"""Search by words and by meaning at once: the one index behind tools, memory, gaps and playbooks.

The two are added as they are: both say, on a scale that ends at 1, how much speaks for a text, whatever else was found.
Without an embedder it finds by words alone. The owner of the texts keeps them.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING

from journeyman.core.data import SEARCHED_CHARS, digest
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Embedder, Vectors
from journeyman.core.words import WordLists, stem, words

if TYPE_CHECKING:
    from journeyman.retrieval.index import VectorIndex

CANDIDATES = 50
BATCH = 256
LONG_TEXT = 2_000
"""Characters from which on others get a turn before the next text is taken apart."""

logger = logging.getLogger(__name__)
_listed = WordLists("journeyman.retrieval", "words.txt")


def terms(text: str) -> list[str]:
    """The stems of the words at a text's beginning, without words that every text has."""
    return [stem(word) for word in words(text[:SEARCHED_CHARS]) if word not in _listed.common]


class BM25:
    """Lexical ranking over short named texts; a text that changes is put again."""

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


class HybridIndex:
    """Texts by id, in domains that do not see each other.

    ``vectors`` is the index for their vectors, or its name as ``VectorIndex`` reads it; ``usual`` is that name where
    nobody says anything. ``common`` bounds the cost of words that very many texts hold; see ``BM25.shares``.
    """

    def __init__(
        self,
        *,
        embedder: Embedder | None = None,
        vectors: VectorIndex | str | None = None,
        usual: str = "exact",
        common: int | None = None,
    ) -> None:
        self._embedder = embedder
        self._common = common
        if isinstance(vectors, str) or (vectors is None and embedder is not None):
            from journeyman.retrieval.index import VectorIndex  # numpy: only for those who embed

            vectors = VectorIndex(vectors, usual=usual)
        self._vectors: VectorIndex | None = vectors
        self._words: dict[str, BM25] = {}
        self._digests: dict[str, dict[str, str]] = {}
        """Of which text each vector was made."""
        self._pending: dict[str, dict[str, str]] = {}
        """Texts that have no vector yet."""

    async def put(self, texts: Mapping[str, str], *, domain: str = "") -> None:
        """Add texts, or replace those of ids that are there. A vector is made only where the text is new.

        While the embedder cannot be asked the texts are found by their words; later searches try again.
        """
        lexical = self._words.setdefault(domain, BM25())
        for key, text in texts.items():
            lexical.put(key, text)
            if len(text) > LONG_TEXT:
                await asyncio.sleep(0)
        if self._embedder is None:
            return
        known, pending = self._digests.setdefault(domain, {}), self._pending.setdefault(domain, {})
        for key, text in texts.items():
            if known.get(key) == digest(text):
                pending.pop(key, None)
            else:
                pending[key] = text
        try:
            await self._catch_up(domain)
        except ModelError as error:
            logger.warning("%d texts are found by their words alone: %s", len(pending), error)

    async def _catch_up(self, domain: str) -> None:
        pending = self._pending.get(domain, {})
        while pending and self._embedder is not None and self._vectors is not None:
            batch = list(islice(pending.items(), BATCH))
            vectors = await self._embedder.embed([text for _, text in batch])
            # Whoever put or removed a text in the meantime has the last word on it.
            current = [row for row, (key, text) in enumerate(batch) if pending.get(key) == text]
            keys = [batch[row][0] for row in current]
            self._vectors.put(keys, vectors[current], domain=domain)
            for key in keys:
                self._digests[domain][key] = digest(pending.pop(key))

    def remove(self, ids: Iterable[str], *, domain: str = "") -> None:
        gone = list(ids)
        for key in gone:
            if domain in self._words:
                self._words[domain].remove(key)
            self._digests.get(domain, {}).pop(key, None)
            self._pending.get(domain, {}).pop(key, None)
        if self._vectors is not None:
            self._vectors.remove(gone, domain=domain)

    async def search(self, text: str, *, k: int = 5, domain: str = "") -> list[Hit]:
        """The texts nearest to this one, best first."""
        lexical = self._words.get(domain)
        if lexical is None or not text.strip() or k < 1:
            return []
        text = text[:SEARCHED_CHARS]
        vector = await self._vector(text, domain)
        near = None
        if vector is not None and self._vectors is not None:
            near = dict(self._vectors.search(vector, k=max(k, CANDIDATES), domain=domain))
        return fuse(lexical.shares(text, common=self._common, also=near or ()), near, k=k)

    async def similarities(self, text: str, ids: Sequence[str], *, domain: str = "") -> dict[str, float]:
        """How near these texts are by meaning, as far as that is known. Costs what they are, not what is here."""
        vector = await self._vector(text[:SEARCHED_CHARS], domain)
        if vector is None or self._vectors is None:
            return {}
        return self._vectors.similarities(vector, ids, domain=domain)

    async def _vector(self, text: str, domain: str) -> Vectors | None:
        """A text's vector, once all that are there have theirs; None where there is no embedder, or it fails."""
        if self._embedder is None:
            return None
        try:
            vectors = await self._embedder.embed([text])
            await self._catch_up(domain)
        except ModelError as error:
            logger.warning("searching by words alone: %s", error)
            return None
        vector: Vectors = vectors[0]
        return vector


def fuse(words: Mapping[str, float], near: Mapping[str, float] | None, *, k: int) -> list[Hit]:
    """The best of both; ``near`` holds the nearest only, so anything else is at most as near as the last of them."""
    least = min(near.values(), default=0.0) if near else 0.0
    near = near or {}
    scores = {key: share + near.get(key, least) for key, share in words.items()}
    scores.update((key, cosine) for key, cosine in near.items() if key not in scores)
    best = nlargest(k, scores.items(), key=lambda item: item[1])
    return [Hit(key, score, words.get(key, 0.0), near.get(key)) for key, score in best]
