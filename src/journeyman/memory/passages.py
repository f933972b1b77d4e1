"""Passages: long texts in parts that an embedder takes in whole, and the vectors of what is remembered.

Texts are split at paragraphs where it can be, else at sentences or words. The vectors are compared in this process
where the database does not compare them itself. Each principal's are an index of their own: a search never touches
another's. They are read from the store when the principal first searches, and after that only what is new; nothing
is embedded again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from journeyman.retrieval.index import Matrix, VectorIndex
    from journeyman.stores.memories import SqlMemories

LONGEST = 1_000
"""Characters. The offline embedder reads about 250 words; what is beyond would not be found by meaning."""
_ENDS = ("\n\n", "\n", ". ", "? ", "! ", "; ", " ")
READ_AT_ONCE = 5_000
MOST_KEPT = 500_000
"""Vectors in memory, of all principals together; who has not searched for longest gives way."""
LARGE = 50_000
"""Vectors from which on a comparison is left to a thread, so that the event loop goes on."""


def split(text: str, *, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Where the parts of a text begin and end. Together they hold all of it but the blanks between them.

    >>> split("One.\\n\\nTwo and three.", longest=10)
    [(0, 4), (6, 13), (14, 20)]
    """
    parts: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        stop = min(start + longest, len(text))
        if stop < len(text):
            stop = _last_end(text, start, stop)
        kept_start, kept_stop = _stripped(text, start, stop)
        if kept_stop > kept_start:
            parts.append((kept_start, kept_stop))
        start = stop
    return parts


def _last_end(text: str, start: int, stop: int) -> int:
    for end in _ENDS:
        at = text.rfind(end, start, stop)
        # An end near the beginning would leave a scrap; the blank between two words is taken wherever it is.
        if at > start and (at - start >= (stop - start) // 3 or end == " "):
            return at + len(end)
    return stop


def _stripped(text: str, start: int, stop: int) -> tuple[int, int]:
    part = text[start:stop]
    left = len(part) - len(part.lstrip())
    return start + left, start + max(left, len(part.rstrip()))


@dataclass(slots=True)
class _Kept:
    index: VectorIndex
    embedder: str
    last: int = 0
    count: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PassageVectors:
    """The vectors of every principal who has searched lately."""

    def __init__(self, store: SqlMemories) -> None:
        self._store = store
        self._kept: OrderedDict[str | None, _Kept] = OrderedDict()

    async def nearest(
        self, vector: Matrix, *, principal_id: str | None, embedder: str, limit: int
    ) -> list[tuple[int, float]]:
        """The passages nearest to a vector, with their cosines. One that was just deleted may still be among them."""
        stored = await self._store.nearest(vector.tobytes(), principal_id=principal_id, embedder=embedder, limit=limit)
        if stored is not None:
            return list(stored)
        kept = await self._current(principal_id, embedder)
        if kept.count > LARGE:
            hits = await asyncio.to_thread(kept.index.search, vector, k=limit)
        else:
            hits = kept.index.search(vector, k=limit)
        return [(int(number), cosine) for number, cosine in hits]

    def add(self, vectors: Mapping[int, bytes], *, principal_id: str | None, embedder: str) -> None:
        """Take in vectors of passages that were read before they had any."""
        import numpy as np

        kept = self._kept.get(principal_id)
        if kept is None or kept.embedder != embedder:
            return
        for number, vector in vectors.items():
            if number <= kept.last:  # the others are still to be read
                kept.index.put([str(number)], np.frombuffer(vector, dtype=np.float32).reshape(1, -1))
                kept.count += 1

    def forget(self, numbers: Iterable[int], *, principal_id: str | None) -> None:
        """Let go of passages that are not in the store any more."""
        if (kept := self._kept.get(principal_id)) is not None:
            kept.index.remove(map(str, numbers))

    async def _current(self, principal_id: str | None, embedder: str) -> _Kept:
        kept = self._kept.get(principal_id)
        if kept is None or kept.embedder != embedder:
            from journeyman.retrieval.index import VectorIndex

            kept = self._kept[principal_id] = _Kept(VectorIndex("exact"), embedder)
        self._kept.move_to_end(principal_id)
        async with kept.lock:
            await self._read_new(kept, principal_id)
        while len(self._kept) > 1 and sum(other.count for other in self._kept.values()) > MOST_KEPT:
            self._kept.popitem(last=False)
        return kept

    async def _read_new(self, kept: _Kept, principal_id: str | None) -> None:
        import numpy as np

        while rows := await self._store.vectors(
            principal_id=principal_id, embedder=kept.embedder, after=kept.last, limit=READ_AT_ONCE
        ):
            matrix = np.frombuffer(b"".join(vector for _, vector in rows), dtype=np.float32)
            kept.index.put([str(number) for number, _ in rows], matrix.reshape(len(rows), -1))
            kept.last, kept.count = rows[-1][0], kept.count + len(rows)
            if len(rows) < READ_AT_ONCE:
                return
