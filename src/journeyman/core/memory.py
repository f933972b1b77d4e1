"""What is remembered: documents of one principal each, and the passages by which they are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field

from journeyman.core.audit import AuditNote
from journeyman.core.data import Entity, Moment


class MemoryDocument(Entity):
    """A text that was stored, with what was said about it."""

    id: str
    text: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    principal_id: str | None = None
    """Whose it is. Nobody else ever sees it."""
    created_at: Moment
    by_words_alone: int | None = None
    """Of one that was just stored: how many of its passages are found by their words alone until searches, or
    ``app.memory.index``, have made their vectors."""


class MemoryHit(Entity):
    """A document that was found."""

    document: MemoryDocument
    score: float
    """How much speaks for it, by words and by meaning together: about 0 to 2."""
    excerpt: str
    """The passage of the document that was found."""
    similarity: float | None = None
    """How near it is in meaning; None where words alone were compared."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document that is short enough to be compared as a whole."""

    start: int
    stop: int
    terms: str
    """The stems of its words, one blank between two."""
    vector: bytes | None = None
    """32-bit floats in the order of this machine's kind (little-endian), of length 1."""


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as it is kept."""

    number: int
    document_id: str
    text: str


class MemoryStore(Protocol):
    """Documents and their passages. Every method sees the rows of one principal alone (None: of nobody)."""

    async def add(
        self,
        documents: Sequence[tuple[MemoryDocument, Sequence[Passage]]],
        *,
        embedder: str | None,
        note: AuditNote | None = None,
    ) -> None:
        """Keep documents, all or none; one whose id is there is replaced. ``embedder`` made the passages' vectors."""

    async def get(self, ids: Sequence[str], *, principal_id: str | None) -> Mapping[str, MemoryDocument]: ...

    async def metadata_values(self, ids: Sequence[str], name: str, *, principal_id: str | None) -> Mapping[str, Any]:
        """What the metadata of documents has under a name, by id; without those that have nothing there."""

    async def query(
        self,
        *,
        principal_id: str | None,
        since: float | None = None,
        until: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        after: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[MemoryDocument]:
        """Newest first: those made in this time, whose metadata has all these values."""

    async def count(
        self,
        *,
        principal_id: str | None,
        since: float | None = None,
        until: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """How many ``query`` finds without its limit."""

    async def delete(self, ids: Sequence[str], *, principal_id: str | None, note: AuditNote | None = None) -> int:
        """Forget documents with all that was made of them; returns how many there were."""

    async def matching(self, terms: Sequence[str], *, principal_id: str | None, limit: int) -> Sequence[int]:
        """Numbers of the passages that share the rarest of these terms, best first."""

    async def nearest(
        self, vector: bytes, *, principal_id: str | None, embedder: str, limit: int
    ) -> Sequence[tuple[int, float]] | None:
        """Passages whose vectors are nearest, with their cosines; None where the database cannot compare vectors."""

    async def vectors(
        self, *, principal_id: str | None, embedder: str, after: int, limit: int
    ) -> Sequence[tuple[int, bytes]]:
        """Vectors of the passages from a number on, in the order of their numbers."""

    async def passages(self, numbers: Sequence[int], *, principal_id: str | None) -> Sequence[StoredPassage]: ...

    async def without_vector(self, *, principal_id: str | None, embedder: str, limit: int) -> Sequence[tuple[int, str]]:
        """Passages that this embedder has made no vector of yet, with their texts."""

    async def put_vectors(self, vectors: Mapping[int, bytes], *, embedder: str) -> None: ...
