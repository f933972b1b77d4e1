"""What is remembered: documents of one principal each, and the passages by which they are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

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
