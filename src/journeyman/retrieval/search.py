"""Search by words and by meaning at once: the one index behind tools, memory, gaps and playbooks.

The two are added as they are: both say, on a scale that ends at 1, how much speaks for a text, whatever else was found.
Without an embedder it finds by words alone. The owner of the texts keeps them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING

from journeyman.core.data import SEARCHED_CHARS, digest
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Embedder, Vectors
from journeyman.retrieval.bm25 import BM25

if TYPE_CHECKING:
    from journeyman.retrieval.index import VectorIndex

CANDIDATES = 50
BATCH = 256
LONG_TEXT = 2_000
"""Characters from which on others get a turn before the next text is taken apart."""

logger = logging.getLogger(__name__)


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
        near = self._near(vector, k=max(k, CANDIDATES), domain=domain)
        return fuse(lexical.shares(text, common=self._common, also=near or ()), near, k=k)

    async def similarities(self, text: str, ids: Sequence[str], *, domain: str = "") -> dict[str, float]:
        """How near these texts are by meaning, as far as that is known. Costs what they are, not what is here."""
        vector = await self._vector(text[:SEARCHED_CHARS], domain)
        if vector is None or self._vectors is None:
            return {}
        return self._vectors.similarities(vector, ids, domain=domain)

    def _near(self, vector: Vectors | None, *, k: int, domain: str) -> dict[str, float] | None:
        if vector is None or self._vectors is None:
            return None
        return dict(self._vectors.search(vector, k=k, domain=domain))

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
