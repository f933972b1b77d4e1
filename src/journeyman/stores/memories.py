"""What is remembered, in a database: documents, their metadata, and the passages by which they are found.

Every statement names the owner of the rows it sees. Words are looked up in the database's own full-text index, which is
made of the stems that ``terms`` holds, so that both databases find the same. Vectors are kept as bytes; PostgreSQL with
pgvector has a second copy of them, which it compares by itself.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Required, TypedDict, Unpack

from journeyman.core.audit import AuditNote
from journeyman.core.data import canonical_json
from journeyman.core.memory import MemoryDocument, Passage, StoredPassage
from journeyman.stores.audit import add_note
from journeyman.stores.connection import Connection, Row, Where, is_among, marks, storable
from journeyman.stores.database import Aggregate, Database, writes

MOST_TERMS = 16
"""Of a query; each is a condition of its own."""
COMMON = 10_000
"""Passages. A term that more of them hold says little, and is left out where the query has rarer ones."""
AT_ONCE = 200
"""Rows to a statement or a transaction, so that others get their turn in between."""

_COLUMNS = "id, text, metadata, owner, created_at"
_STEMS = "array_to_tsvector(array_append(string_to_array(terms, ' '), '@' || md5(owner)))"
"""The owner is one of the words, so that the index gives no rows of others."""
_WITH_PGVECTOR = """
    DO $$ BEGIN
        CREATE EXTENSION IF NOT EXISTS vector;
        CREATE TABLE IF NOT EXISTS memory_vectors (
            number BIGINT PRIMARY KEY REFERENCES memory_passages (number) ON DELETE CASCADE, owner TEXT NOT NULL,
            embedder TEXT NOT NULL, embedding vector NOT NULL
        );
        CREATE INDEX IF NOT EXISTS memory_vectors_of_owner ON memory_vectors (owner, embedder);
    EXCEPTION WHEN OTHERS THEN NULL;
    END $$
"""
_HAS_PGVECTOR = "SELECT to_regclass('memory_vectors')::text"
_PUT_PGVECTOR = """
    INSERT INTO memory_vectors (number, owner, embedder, embedding)
    SELECT number, owner, embedder, ?::vector FROM memory_passages WHERE number = ?
    ON CONFLICT (number) DO UPDATE SET embedder = excluded.embedder, embedding = excluded.embedding
"""
_NOT_IN_PGVECTOR = """
    SELECT p.number, p.vector FROM memory_passages p LEFT JOIN memory_vectors v ON v.number = p.number
    WHERE p.vector IS NOT NULL AND (v.number IS NULL OR v.embedder <> p.embedder) LIMIT ?
"""


class MemoryFilter(TypedDict, total=False):
    """Which documents are listed: those made in this time, whose metadata has all these values."""

    principal_id: Required[str | None]
    since: float | None
    until: float | None
    metadata: Mapping[str, Any] | None


class SqlMemories(Aggregate):
    """Documents in a database. Every method sees the rows of one principal alone (None: of nobody)."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._compares: bool | None = None

    async def add(
        self,
        documents: Sequence[tuple[MemoryDocument, Sequence[Passage]]],
        *,
        embedder: str | None,
        note: AuditNote | None = None,
    ) -> None:
        """Keep documents, all or none; one whose id is there is replaced. ``embedder`` made the passages' vectors."""
        compares = await self._compares_vectors()
        await self._database.write(partial(_add, documents=documents, embedder=embedder, compares=compares, note=note))

    async def get(self, ids: Sequence[str], *, principal_id: str | None) -> Mapping[str, MemoryDocument]:
        sql = f"SELECT {_COLUMNS} FROM memories WHERE owner = ? AND id IN ({marks(ids)})"
        rows = await self._query(sql, _owner(principal_id), *ids)
        return {document.id: document for document in map(_document, rows)}

    async def metadata_values(self, ids: Sequence[str], name: str, *, principal_id: str | None) -> Mapping[str, Any]:
        """What the metadata of documents has under a name, by id; without those that have nothing there."""
        sql = (
            "SELECT document_id, value FROM memory_metadata "
            f"WHERE owner = ? AND name = ? AND document_id IN ({marks(ids)})"
        )
        rows = await self._query(sql, _owner(principal_id), name, *ids)
        return {key: json.loads(value) for key, value in rows}

    async def query(
        self,
        *,
        after: str | None = None,
        limit: int = 50,
        offset: int = 0,
        **only: Unpack[MemoryFilter],
    ) -> Sequence[MemoryDocument]:
        """Newest first."""
        where = _filter(only)
        if after is not None:
            place = "(created_at, id) < (SELECT created_at, id FROM memories WHERE owner = ? AND id = ?)"
            where.holds(place, _owner(only["principal_id"]), after)
        sql = f"SELECT {_COLUMNS} FROM memories {where.clause} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
        rows = await self._query(sql, *where.values, limit, offset)
        return tuple(map(_document, rows))

    async def count(self, **only: Unpack[MemoryFilter]) -> int:
        return await self._count("memories", _filter(only))

    @writes(sync=True)
    def delete(
        self, connection: Connection, ids: Sequence[str], *, principal_id: str | None, note: AuditNote | None = None
    ) -> int:
        """Forget documents with all that was made of them; returns how many there were."""
        if not ids:
            return 0
        sql = f"DELETE FROM memories WHERE owner = ? AND id IN ({marks(ids)})"
        if count := connection.execute(sql, _owner(principal_id), *ids):
            add_note(connection, note, subject=",".join(ids))
        return count

    # --- finding

    async def matching(self, terms: Sequence[str], *, principal_id: str | None, limit: int) -> Sequence[int]:
        """Numbers of the passages that share the rarest of these terms, best first."""
        asked = list(dict.fromkeys(terms))[:MOST_TERMS]
        if not asked:
            return ()
        return await self._database.read(
            lambda connection: _MATCHING[connection.dialect](connection, asked, _owner(principal_id), limit)
        )

    async def nearest(
        self, vector: bytes, *, principal_id: str | None, embedder: str, limit: int
    ) -> Sequence[tuple[int, float]] | None:
        """Passages whose vectors are nearest, with their cosines; None where the database cannot compare vectors."""
        if not await self._compares_vectors():
            return None
        sql = (
            "SELECT number, 1 - (embedding <=> ?::vector) FROM memory_vectors WHERE owner = ? AND embedder = ? "
            "ORDER BY embedding <=> ?::vector LIMIT ?"
        )
        text = _vector_text(vector)
        rows = await self._query(sql, text, _owner(principal_id), embedder, text, limit)
        return [(int(number), float(cosine)) for number, cosine in rows]

    async def vectors(
        self, *, principal_id: str | None, embedder: str, after: int, limit: int
    ) -> Sequence[tuple[int, bytes]]:
        """Vectors of the passages from a number on, in the order of their numbers."""
        sql = (
            "SELECT number, vector FROM memory_passages WHERE owner = ? AND embedder = ? AND number > ? "
            "ORDER BY number LIMIT ?"
        )
        rows = await self._query(sql, _owner(principal_id), embedder, after, limit)
        return [(number, bytes(vector)) for number, vector in rows]

    async def passages(self, numbers: Sequence[int], *, principal_id: str | None) -> Sequence[StoredPassage]:
        sql = (
            "SELECT p.number, p.document_id, substr(m.text, p.start + 1, p.stop - p.start) FROM memory_passages p "
            "JOIN memories m ON m.owner = p.owner AND m.id = p.document_id "
            # By their numbers: SQLite would rather go through all that the owner has.
            f"WHERE p.owner || '' = ? AND p.number IN ({marks(numbers)})"
        )
        rows = await self._query(sql, _owner(principal_id), *numbers)
        return [StoredPassage(*row) for row in rows]

    # --- vectors that are still to be made

    async def without_vector(self, *, principal_id: str | None, embedder: str, limit: int) -> Sequence[tuple[int, str]]:
        """Passages that this embedder has made no vector of yet, with their texts."""
        sql = (
            "SELECT p.number, substr(m.text, p.start + 1, p.stop - p.start) FROM memory_passages p "
            "JOIN memories m ON m.owner = p.owner AND m.id = p.document_id "
            "WHERE p.owner = ? AND COALESCE(p.embedder, '') <> ? ORDER BY p.number LIMIT ?"
        )
        rows = await self._query(sql, _owner(principal_id), embedder, limit)
        return [(number, text) for number, text in rows]

    async def put_vectors(self, vectors: Mapping[int, bytes], *, embedder: str) -> None:
        compares = await self._compares_vectors()

        def put(connection: Connection) -> None:
            for number, vector in vectors.items():
                sql = "UPDATE memory_passages SET embedder = ?, vector = ? WHERE number = ?"
                connection.execute(sql, embedder, vector, number)
                if compares:
                    connection.execute(_PUT_PGVECTOR, _vector_text(vector), number)

        await self._database.write(put)

    async def _compares_vectors(self) -> bool:
        """Whether the database itself compares vectors. Asked once, and made so where it can be."""
        if self._compares is None:
            compares = await self._prepare_pgvector()
            while compares and await self._copy_to_pgvector():
                pass
            self._compares = compares
        return self._compares

    @writes(sync=True)
    def _prepare_pgvector(self, connection: Connection) -> bool:
        if connection.dialect != "postgresql":
            return False
        [(have,)] = connection.query(_HAS_PGVECTOR)
        if have is None:
            connection.execute(_WITH_PGVECTOR)
            [(have,)] = connection.query(_HAS_PGVECTOR)
        return have is not None

    @writes(sync=True)
    def _copy_to_pgvector(self, connection: Connection) -> bool:
        """Some of what was kept while pgvector was not there, or came out of a backup."""
        rows = connection.query(_NOT_IN_PGVECTOR, AT_ONCE)
        for number, vector in rows:
            connection.execute(_PUT_PGVECTOR, _vector_text(bytes(vector)), number)
        return bool(rows)


def _owner(principal_id: str | None) -> str:
    return principal_id or ""  # no principal has an empty id


def _filter(only: MemoryFilter) -> Where:
    where = Where().equals(owner=_owner(only["principal_id"]))
    where.within("created_at", only.get("since"), only.get("until"))
    for name, value in (only.get("metadata") or {}).items():
        where.holds(
            "EXISTS (SELECT 1 FROM memory_metadata m WHERE m.owner = memories.owner "
            "AND m.document_id = memories.id AND m.name = ? AND m.value = ?)",
            *(name, canonical_json(value)),
        )
    return where


def _document(row: Row) -> MemoryDocument:
    key, text, metadata, owner, created_at = row
    return MemoryDocument(
        id=key, text=text, metadata=json.loads(metadata), principal_id=owner or None, created_at=created_at
    )


def _add(
    connection: Connection,
    *,
    documents: Sequence[tuple[MemoryDocument, Sequence[Passage]]],
    embedder: str | None,
    compares: bool,
    note: AuditNote | None,
) -> None:
    count = sum(len(passages) for _, passages in documents)
    [(last,)] = connection.query("UPDATE memory_head SET number = number + ? WHERE id = 1 RETURNING number", count)
    number = last - count
    # Of two with one id, the later one replaces the earlier one.
    kept = {(_owner(document.principal_id), document.id): (document, passages) for document, passages in documents}
    texts: list[Row] = []
    said: list[Row] = []
    parts: list[Row] = []
    vectors: list[Row] = []
    for owner in dict.fromkeys(owner for owner, _ in kept):
        keys = json.dumps([key for whose, key in kept if whose == owner])
        connection.execute(f"DELETE FROM memories WHERE owner = ? AND {is_among('id')}", owner, keys)
    for (owner, key), (document, passages) in kept.items():
        texts.append((key, storable(document.text), canonical_json(document.metadata), owner, document.created_at))
        said += [(owner, key, name, canonical_json(value)) for name, value in document.metadata.items()]
        for passage in passages:
            number += 1
            made_by = None if passage.vector is None else embedder
            parts.append((number, owner, key, passage.start, passage.stop, passage.terms, made_by, passage.vector))
            if compares and passage.vector is not None:
                vectors.append((number, owner, embedder, _vector_text(passage.vector)))
        add_note(connection, note, subject=key)
    insert = partial(connection.insert, at_once=AT_ONCE)
    insert(f"memories ({_COLUMNS})", texts)
    insert("memory_metadata (owner, document_id, name, value)", said)
    columns = "number, owner, document_id, start, stop, terms, embedder, vector"
    insert(f"memory_passages ({columns})", parts)
    insert("memory_vectors (number, owner, embedder, embedding)", vectors, row="(?, ?, ?, ?::vector)")


# --- words


def _matching_sqlite(connection: Connection, terms: Sequence[str], owner: str, limit: int) -> list[int]:
    # The index sees an owner's words only, so it cuts the others' rows away; the row itself decides.
    own = f"owner : {_quoted(owner)} AND " if any(map(str.isalnum, owner)) else ""
    held = "SELECT COUNT(*) FROM (SELECT 1 FROM memory_text WHERE memory_text MATCH ? LIMIT ?)"
    rare = [term for term in terms if connection.query(held, f"{own}terms : {_quoted(term)}", COMMON)[0][0] < COMMON]
    query = f"{own}terms : ({' OR '.join(map(_quoted, rare or terms))})"
    rows = connection.query(
        "SELECT p.number FROM memory_text t JOIN memory_passages p ON p.number = t.rowid "
        "WHERE memory_text MATCH ? AND p.owner = ? ORDER BY bm25(memory_text, 1.0, 0.0) LIMIT ?",
        *(query, owner, limit),
    )
    return [number for (number,) in rows]


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), " ")}"'


_OWN = f"""
    SELECT number FROM (SELECT number, owner FROM memory_passages WHERE {_STEMS} @@ {{query}}::tsquery OFFSET 0) AS held
    WHERE owner = ?
"""
"""By the words' index and no other; the row itself decides whose it is."""
_RARE = f"""
    WITH held AS (
        SELECT term, found.number FROM unnest(?::text[]) AS term, LATERAL ({_OWN.format(query="term")} LIMIT ?) AS found
    ), counted AS (SELECT term, COUNT(*) AS count FROM held GROUP BY term)
    SELECT number FROM held JOIN counted USING (term) WHERE count < ?
    GROUP BY number ORDER BY SUM(ln(1 + ?::double precision / count)) DESC, number DESC LIMIT ?
"""
_ALL_COMMON = f"""
    WITH held AS (
        SELECT term, found.number FROM unnest(?::text[]) AS term, LATERAL ({_OWN.format(query="term")}) AS found
    )
    SELECT number FROM held GROUP BY number ORDER BY COUNT(*) DESC, number DESC LIMIT ?
"""


def _matching_postgresql(connection: Connection, terms: Sequence[str], owner: str, limit: int) -> list[int]:
    mark = hashlib.md5(owner.encode(), usedforsecurity=False).hexdigest()
    queries = [f"'{term}' & '@{mark}'" for term in terms]
    rows = connection.query(_RARE, queries, owner, COMMON, COMMON, COMMON, limit)
    if not rows:
        rows = connection.query(_ALL_COMMON, queries, owner, limit)
    return [number for (number,) in rows]


_MATCHING = {"sqlite": _matching_sqlite, "postgresql": _matching_postgresql}


# --- vectors


def _vector_text(vector: bytes) -> str:
    return f"[{','.join(map(repr, array('f', vector)))}]"
