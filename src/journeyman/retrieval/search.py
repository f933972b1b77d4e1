"""Search by words and by meaning at once: the one index behind tools, memory, gaps and playbooks.

Without an embedder it finds by words alone. The owner of the texts keeps them; on disk go only the vectors, because
they are what costs time to make.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from journeyman.core.data import digest
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Embedder, VectorIndex
from journeyman.retrieval.bm25 import BM25
from journeyman.retrieval.fusion import Hit, fuse

CANDIDATES = 50
BATCH = 256
_TEXTS = "texts.json"

logger = logging.getLogger(__name__)


class HybridIndex:
    """Texts by id, in domains that do not see each other."""

    def __init__(self, *, embedder: Embedder | None = None, vectors: VectorIndex | None = None) -> None:
        self._embedder = embedder
        if embedder is not None and vectors is None:
            from journeyman.retrieval.index import ExactIndex  # numpy: only for those who embed

            vectors = ExactIndex()
        self._vectors = vectors
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
        """Forget ids; those that are not there are no error."""
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
        near = await self._near(text, k=max(k, CANDIDATES), domain=domain)
        return fuse(lexical.shares(text), near, k=k)

    async def _near(self, text: str, *, k: int, domain: str) -> dict[str, float] | None:
        if self._embedder is None or self._vectors is None:
            return None
        try:
            vectors = await self._embedder.embed([text])
            await self._catch_up(domain)
        except ModelError as error:
            logger.warning("searching by words alone: %s", error)
            return None
        return dict(self._vectors.search(vectors[0], k=k, domain=domain))

    def save(self, folder: Path) -> None:
        """Keep the vectors in a folder. Broken off half-way it leaves a folder that ``load`` refuses."""
        if self._embedder is None or self._vectors is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _TEXTS).unlink(missing_ok=True)
        self._vectors.save(folder)
        fresh = folder / f"{_TEXTS}.new"
        fresh.write_text(json.dumps({"embedder": self._embedder.name, "digests": self._digests}), encoding="utf-8")
        os.replace(fresh, folder / _TEXTS)

    def load(self, folder: Path) -> bool:
        """Take the vectors of a folder over; the texts are then put as usual, and cost nothing where unchanged.

        False when there is nothing to take: no complete snapshot, or one of another embedder.
        """
        if self._embedder is None or self._vectors is None or not (folder / _TEXTS).exists():
            return False
        saved = json.loads((folder / _TEXTS).read_text(encoding="utf-8"))
        if saved["embedder"] != self._embedder.name:
            return False
        self._vectors.load(folder)
        self._digests = saved["digests"]
        self._pending = {}
        return True
