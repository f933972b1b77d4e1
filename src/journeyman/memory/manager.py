"""``app.memory``: documents are stored, found by words and by meaning, listed and deleted; each has one owner.

What is found comes from the store at that moment: a document that was deleted, or is somebody else's, is never given
back, whatever an index may hold.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

from journeyman.core.audit import AuditNote
from journeyman.core.data import LARGE_TEXT, canonical_json, new_id
from journeyman.core.errors import InvalidDataError, ModelError
from journeyman.core.memory import MemoryDocument, MemoryHit, Passage, StoredPassage
from journeyman.core.policy import Principal
from journeyman.core.protocols import Clock, Embedder, SystemClock
from journeyman.core.runs import Message
from journeyman.memory.folders import ImportedFile, ReadFile, document_id, files_in, read_file
from journeyman.memory.passages import PassageVectors, split
from journeyman.retrieval.embedders import default_embedder
from journeyman.retrieval.search import BM25, fuse, terms

if TYPE_CHECKING:
    from journeyman.retrieval.index import Matrix
    from journeyman.stores.conversations import SqlConversations
    from journeyman.stores.memories import MemoryFilter, SqlMemories

logger = logging.getLogger("journeyman.memory")

MOST_CHARS = 2_000_000
"""Of one document."""
MOST_METADATA_CHARS = 20_000
"""Of the JSON of one document's metadata."""
MOST_DOCUMENTS = 1_000_000
"""Of one principal."""
LONGEST_ID = 500
LONGEST_QUERY = 10_000
CANDIDATES = 100
"""Passages that words and meaning each name; more where too few of them fit."""
EMBEDDED_AT_ONCE = 128
"""Passages, of an embedder that is quick; of another there are fewer, so that it can be stopped in time."""
STORING_SECONDS, SEARCHING_SECONDS = 3.0, 1.0
"""How long passages are embedded while documents are stored, and while a search goes on. The rest is found by its words
until its turn has come."""
LONGEST_TERM = 64

READ_AT_ONCE = 10
"""Documents, which may be long."""
IMPORTED_CHARS = 100_000
"""Of the files that are stored in one transaction."""

Who: TypeAlias = Principal | str | None
_Ranked: TypeAlias = tuple[StoredPassage, float, float | None]
"""A passage with its score and its similarity."""


class DocumentFilter(TypedDict, total=False):
    """Which documents are listed: this principal's, stored in this time, whose metadata has all these values."""

    since: datetime | float | None
    until: datetime | float | None
    metadata: Mapping[str, Any] | None
    principal: Who


class MemoryManager:
    """Documents of every principal, each seen by its owner alone. ``principal`` None: of nobody in particular."""

    def __init__(
        self,
        store: SqlMemories,
        conversations: SqlConversations,
        *,
        embedder: Embedder | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._conversations = conversations
        self._clock = clock or SystemClock()
        self._named_embedder = embedder
        self._vectors = PassageVectors(store)
        self._complete: set[str | None] = set()
        """Whose passages all have vectors, as far as is known here."""
        self._caught_up_at_once = EMBEDDED_AT_ONCE
        """About as many passages as there is time for: reading them costs, too, those of long documents most."""

    # --- storing

    async def store_document(
        self,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        principal: Who = None,
        note: AuditNote | None = None,
    ) -> str:
        """Keep a text and return its id. A document of the same id, if this principal has one, is replaced."""
        [document] = await self.store_documents([(text, metadata, id)], principal=principal, note=note)
        return document.id

    async def store_documents(
        self,
        documents: Sequence[tuple[str, Mapping[str, Any] | None, str | None]],
        *,
        principal: Who = None,
        note: AuditNote | None = None,
    ) -> list[MemoryDocument]:
        """Keep several texts, each with its metadata and id, all or none: faster than one by one."""
        owner = _id(principal)
        made = [self._document(text, metadata, key, owner) for text, metadata, key in documents]
        if await self._store.count(principal_id=owner) + len(made) > MOST_DOCUMENTS:
            raise refused("documents", f"a principal has at most {MOST_DOCUMENTS:,}: delete some first")
        # In a thread: a large document has thousands of passages.
        rows = await asyncio.to_thread(lambda: list(map(_in_passages, made)))
        texts = [document.text[part.start : part.stop] for document, parts in rows for part in parts]
        vectors, embedder = await self._embedded(texts, STORING_SECONDS)
        if len(vectors) < len(texts):
            self._complete.discard(owner)
        coming = iter(vectors)
        rows = [(document, [replace(part, vector=next(coming, None)) for part in parts]) for document, parts in rows]
        await self._store.add(rows, embedder=embedder, note=note)
        return [
            document.model_copy(update={"by_words_alone": sum(part.vector is None for part in parts)})
            for document, parts in rows
        ]

    async def import_folder(
        self, folder: Path | str, *, metadata: Mapping[str, Any] | None = None, principal: Who = None
    ) -> AsyncIterator[ImportedFile]:
        """Keep the Markdown, text and PDF files of a folder; says of each what became of it, as soon as it is stored.

        Each document's metadata has the file's path as ``source``. Files that have not changed since are left alone.
        """
        root, owner = Path(folder), _id(principal)
        paths = await asyncio.to_thread(files_in, root)
        known: dict[str, str] = {}
        for start in range(0, len(paths), CANDIDATES):
            ids = [document_id(path) for path in paths[start : start + CANDIDATES]]
            known |= await self._store.metadata_values(ids, "sha256", principal_id=owner)
        waiting: list[ReadFile] = []
        done = 0
        for position, path in enumerate(paths, start=1):
            file = await read_file(path, root, known=known)
            if len(file.text) > MOST_CHARS:
                reason = f"has {len(file.text):,} characters, at most {MOST_CHARS:,}"
                file = ReadFile(file.id, file.metadata, reason=reason)
            waiting.append(file)
            if position < len(paths) and sum(len(each.text) for each in waiting) < IMPORTED_CHARS:
                continue
            new = [(each.text, {**(metadata or {}), **each.metadata}, each.id) for each in waiting if each.text]
            stored = await self.store_documents(new, principal=owner) if new else []
            by_words = {document.id: document.by_words_alone for document in stored}
            for each in waiting:
                done += 1
                yield _imported(each, done, len(paths), by_words.get(each.id) or 0)
            waiting = []

    def _document(
        self, text: str, metadata: Mapping[str, Any] | None, id: str | None, owner: str | None
    ) -> MemoryDocument:
        if not text.strip():
            raise refused("text", "is empty; there is nothing to remember")
        if len(text) > MOST_CHARS:
            raise refused("text", f"has {len(text):,} characters, at most {MOST_CHARS:,}; store it in parts")
        if id is not None and not 0 < len(id) <= LONGEST_ID:
            raise refused("id", f"has {len(id)} characters, must have 1 to {LONGEST_ID}")
        said = dict(metadata or {})
        try:
            written = canonical_json(said)
        except (ValueError, TypeError, RecursionError) as error:
            raise refused("metadata", f"cannot be written as JSON: {error}") from None
        if len(written) > MOST_METADATA_CHARS:
            raise refused("metadata", f"has {len(written):,} characters as JSON, at most {MOST_METADATA_CHARS:,}")
        return MemoryDocument(
            id=id or new_id("mem"), text=text, metadata=said, principal_id=owner, created_at=self._clock.time()
        )

    # --- finding

    async def semantic_search(
        self,
        text: str,
        top_k: int = 5,
        *,
        since: datetime | float | None = None,
        metadata: Mapping[str, Any] | None = None,
        principal: Who = None,
    ) -> list[MemoryHit]:
        """The documents nearest to a text, by words and by meaning, best first; a filter leaves out the others."""
        if top_k < 1:
            raise refused("top_k", f"is {top_k}, must be at least 1")
        text = text[:LONGEST_QUERY]
        if not text.strip():
            return []
        owner, first = _id(principal), _seconds(since)
        vector, embedder = await self._query_vector(text, owner)
        limit = max(CANDIDATES, 4 * top_k)
        while True:
            ranked, exhausted = await self._candidates(text, vector, embedder, owner, limit)
            hits = await self._fitting(ranked, owner, top_k, first, metadata or {})
            if len(hits) >= top_k or exhausted:
                return hits
            limit *= 4

    async def _candidates(
        self, text: str, vector: Matrix | None, embedder: str, owner: str | None, limit: int
    ) -> tuple[list[_Ranked], bool]:
        """The best passage of each document, best first; and whether there are no others."""
        matching = await self._store.matching(_terms(text), principal_id=owner, limit=limit)
        near: dict[int, float] | None = None
        if vector is not None:
            near = dict(await self._vectors.nearest(vector, principal_id=owner, embedder=embedder, limit=limit))
        numbers = list(dict.fromkeys([*matching, *(near or ())]))
        passages: dict[str, StoredPassage] = {}
        for start in range(0, len(numbers), CANDIDATES):
            some = await self._store.passages(numbers[start : start + CANDIDATES], principal_id=owner)
            passages.update((str(passage.number), passage) for passage in some)
        named = None if near is None else {str(number): cosine for number, cosine in near.items()}
        if gone := named.keys() - passages.keys() if named else None:
            self._vectors.forget(map(int, gone), principal_id=owner)
        exhausted = len(matching) < limit and len(near or ()) < limit
        if sum(len(passage.text) for passage in passages.values()) > LARGE_TEXT:
            return await asyncio.to_thread(_best, text, passages, named), exhausted
        return _best(text, passages, named), exhausted

    async def _fitting(
        self, best: Sequence[_Ranked], owner: str | None, top_k: int, since: float | None, metadata: Mapping[str, Any]
    ) -> list[MemoryHit]:
        hits: list[MemoryHit] = []
        for start in range(0, len(best), max(top_k, READ_AT_ONCE)):
            some = best[start : start + max(top_k, READ_AT_ONCE)]
            documents = await self._store.get([passage.document_id for passage, _, _ in some], principal_id=owner)
            for passage, score, similarity in some:
                document = documents.get(passage.document_id)
                if document is not None and _fits(document, since, metadata):
                    hits.append(MemoryHit(document=document, score=score, excerpt=passage.text, similarity=similarity))
            if len(hits) >= top_k:
                break
        return hits[:top_k]

    async def get(self, id: str, *, principal: Who = None) -> MemoryDocument | None:
        return (await self._store.get([id], principal_id=_id(principal))).get(id)

    async def query(
        self, *, after: str | None = None, limit: int = 50, offset: int = 0, **only: Unpack[DocumentFilter]
    ) -> Sequence[MemoryDocument]:
        """Newest first; ``after`` is one's id."""
        return await self._store.query(after=after, limit=limit, offset=offset, **_stored(only))

    async def count(self, **only: Unpack[DocumentFilter]) -> int:
        return await self._store.count(**_stored(only))

    async def history(self, session_id: str, limit: int = 100, *, principal: Who = None) -> Sequence[Message]:
        """The last messages of a conversation of this principal, oldest first."""
        return await self._conversations.messages(session_id, last=limit, principal_id=_id(principal))

    async def delete(self, id: str, *, principal: Who = None, note: AuditNote | None = None) -> bool:
        """Forget a document with all that was made of it. Whether there was one."""
        return await self._store.delete([id], principal_id=_id(principal), note=note) > 0

    # --- vectors

    async def index(self, *, principal: Who = None) -> AsyncIterator[int]:
        """Make the vectors that are missing, as after another embedder was chosen; yields how many so far."""
        owner, made = _id(principal), 0
        while count := await self._catch_up(owner):
            made += count
            yield made
        self._complete.add(owner)

    async def _catch_up(self, owner: str | None) -> int:
        if (embedder := self._embedder()) is None:
            return 0
        limit = self._caught_up_at_once
        pending = await self._store.without_vector(principal_id=owner, embedder=embedder.name, limit=limit)
        vectors, name = await self._embedded([text for _, text in pending], SEARCHING_SECONDS)
        if not vectors or name is None:
            return 0
        made = dict(zip((number for number, _ in pending), vectors, strict=False))
        await self._store.put_vectors(made, embedder=name)
        self._vectors.add(made, principal_id=owner, embedder=name)
        self._caught_up_at_once = min(max(8, 2 * len(made)), EMBEDDED_AT_ONCE)
        return len(made)

    async def _query_vector(self, text: str, owner: str | None) -> tuple[Matrix | None, str]:
        """A query's vector. Passages that lack theirs get them little by little, a batch with each search."""
        embedder = self._embedder()
        if embedder is None:
            return None, ""
        try:
            from journeyman.retrieval.index import unit

            vector = unit(await embedder.embed([text]))[0]
            if owner not in self._complete and not await self._catch_up(owner):
                self._complete.add(owner)
        except ModelError as error:
            logger.warning("searching memory by words alone: %s", error)
            return None, ""
        return vector, embedder.name

    async def _embedded(self, texts: Sequence[str], seconds: float) -> tuple[list[bytes], str | None]:
        """The vectors of the first texts, as many as there is time for, and whose they are."""
        embedder = self._embedder()
        if embedder is None:
            return [], None
        from journeyman.retrieval.index import unit

        vectors: list[bytes] = []
        begun, at_once = self._clock.monotonic(), 4
        try:
            while len(vectors) < len(texts) and self._clock.monotonic() - begun < seconds:
                started = self._clock.monotonic()
                rows = unit(await embedder.embed(texts[len(vectors) : len(vectors) + at_once]))
                vectors += [row.tobytes() for row in rows]
                if self._clock.monotonic() - started < seconds / 10:
                    at_once = min(2 * at_once, EMBEDDED_AT_ONCE)
        except ModelError as error:
            logger.warning("%d passages are found by their words alone for now: %s", len(texts), error)
            return [], None
        return vectors, embedder.name

    def _embedder(self) -> Embedder | None:
        if self._named_embedder is None:
            self._named_embedder = default_embedder()
        return self._named_embedder


def _imported(file: ReadFile, done: int, total: int, by_words: int) -> ImportedFile:
    if file.reason is not None:
        return ImportedFile(file.metadata["source"], "skipped", None, file.reason, done, total, by_words)
    outcome: Literal["stored", "unchanged"] = "stored" if file.text else "unchanged"
    return ImportedFile(file.metadata["source"], outcome, file.id, None, done, total, by_words)


def refused(field: str, why: str) -> InvalidDataError:
    return InvalidDataError("MemoryDocument", [(field, why)])


def _best(text: str, passages: Mapping[str, StoredPassage], near: Mapping[str, float] | None) -> list[_Ranked]:
    # How rare a word is among the candidates stands for how rare it is at all. Their length does not count: no passage
    # is long, and otherwise a line that shares a word would go before the paragraph that is about it.
    words = BM25({number: passage.text for number, passage in passages.items()}, b=0.0).shares(text)
    known = None if near is None else {number: near[number] for number in near if number in passages}
    best: dict[str, _Ranked] = {}
    for hit in fuse(words, known, k=len(passages)):
        passage = passages[hit.id]
        best.setdefault(passage.document_id, (passage, hit.score, hit.similarity))
    return list(best.values())


def _id(principal: Who) -> str | None:
    return principal.id if isinstance(principal, Principal) else principal


def _seconds(moment: datetime | float | None) -> float | None:
    return moment.timestamp() if isinstance(moment, datetime) else moment


def _stored(only: DocumentFilter) -> MemoryFilter:
    since, until = _seconds(only.get("since")), _seconds(only.get("until"))
    owner = _id(only.get("principal"))
    return {"principal_id": owner, "since": since, "until": until, "metadata": only.get("metadata")}


def _in_passages(document: MemoryDocument) -> tuple[MemoryDocument, list[Passage]]:
    """A document with its passages, which have no vectors yet."""
    return document, [Passage(a, b, " ".join(_terms(document.text[a:b]))) for a, b in split(document.text)]


def _terms(text: str) -> list[str]:
    return list(dict.fromkeys(term[:LONGEST_TERM] for term in terms(text)))


def _fits(document: MemoryDocument, since: float | None, metadata: Mapping[str, Any]) -> bool:
    if since is not None and document.created_at < since:
        return False
    said = document.metadata
    return all(name in said and canonical_json(said[name]) == canonical_json(value) for name, value in metadata.items())
