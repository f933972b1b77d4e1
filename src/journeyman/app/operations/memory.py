"""Memory: the caller's own documents, to be kept, found, listed and forgotten. Nobody sees another's."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from journeyman.app.desk import MEMORY_WRITE, Desk, NotFoundError
from journeyman.app.operations.table import (
    MOST_FOUND,
    PAGE,
    WITH_A_LETTER,
    Body,
    Following,
    Id,
    Object,
    Page,
    Paged,
    Paging,
    Worded,
    operation,
    read_object,
    refused,
)
from journeyman.core.data import Moment
from journeyman.core.errors import InvalidDataError
from journeyman.core.memory import MemoryDocument, MemoryHit

LONGEST_TEXT = 1_000_000
FEW = Paging(5)
LAST_MOMENT = 253_402_300_799
"""The end of the year 9999."""

Stored = Annotated[
    Annotated[Moment, Field(ge=0, le=LAST_MOMENT, allow_inf_nan=False)] | None,
    Field(description="ISO 8601, as created_at; or seconds since 1970."),
]
Metadata = Annotated[
    str | None,
    Field(
        max_length=2_000,
        description="A JSON object; a document's metadata has all its values.",
        examples=['{"topic": "health"}'],
    ),
]


class NewDocument(Body):
    """With the id of a document of yours, that document is replaced."""

    text: Worded = Field(
        max_length=LONGEST_TEXT,
        json_schema_extra={"pattern": WITH_A_LETTER},
        examples=["The dentist moved my appointment to Thursday."],
    )
    metadata: Object = Field(default_factory=dict, examples=[{"topic": "health"}])
    id: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:-]+$", examples=["dentist"]
    )


class Documents(Page):
    documents: list[MemoryDocument]


class Found(Page):
    query: str
    results: list[MemoryHit] = Field(description="Best first.")


@operation("memory.add", "Remember a text", permission=MEMORY_WRITE)
async def add_document(desk: Desk, body: NewDocument) -> MemoryDocument:
    try:
        [kept] = await desk.app.memory.store_documents(
            [(body.text, body.metadata, body.id)], principal=desk.principal, note=desk.note("memory_added")
        )
    except InvalidDataError as error:
        raise refused(*error.problems[0]) from None
    return kept


@operation("memory.list", "Your documents, newest first")
async def list_documents(
    desk: Desk,
    *,
    since: Stored = None,
    until: Stored = None,
    metadata: Metadata = None,
    paging: Paged = PAGE,
) -> Documents:
    """Those stored from 'since' on and before 'until'."""
    kept = desk.app.memory
    asked = {"since": since, "until": until, "metadata": _values(metadata), "principal": desk.principal}
    rows, page = await paging.read(kept.query, kept.count, asked)
    return Documents(documents=rows, **page)


@operation("memory.show", "One document")
async def show_document(desk: Desk, document_id: Id) -> MemoryDocument:
    document = None
    if "\0" not in document_id:
        document = await desk.app.memory.get(document_id, principal=desk.principal)
    if document is None:
        raise NotFoundError("document", document_id)
    return document


@operation("memory.delete", "Forget a document", permission=MEMORY_WRITE)
async def delete_document(desk: Desk, document_id: Id) -> None:
    """It is found no more, by its words or by its meaning. Backups made before still hold it."""
    note = desk.note("memory_deleted")
    if "\0" in document_id or not await desk.app.memory.delete(document_id, principal=desk.principal, note=note):
        raise NotFoundError("document", document_id)


@operation("memory.search", "Find documents by words and by meaning")
async def search_documents(
    desk: Desk,
    q: Annotated[
        Worded, Field(min_length=1, max_length=1_000, pattern=WITH_A_LETTER, examples=["When is the dentist?"])
    ],
    *,
    since: Stored = None,
    metadata: Metadata = None,
    top_k: Annotated[
        int | None, Field(ge=1, le=MOST_FOUND, description="The same as 'limit', by its former name.")
    ] = None,
    paging: Following = FEW,
) -> Found:
    """The fifty best at most."""
    hits = await desk.app.memory.semantic_search(
        q, MOST_FOUND, since=since, metadata=_values(metadata), principal=desk.principal
    )
    rows, page = replace(paging, limit=top_k or paging.limit).of(hits, key=lambda hit: hit.document.id)
    return Found(query=q, results=rows, **page)


def _values(metadata: str | None) -> dict[str, Any]:
    if metadata is None:
        return {}
    values = read_object(metadata, "metadata")
    if any("\0" in name for name in values):
        raise refused("metadata", "a name has no NUL character")
    return values
