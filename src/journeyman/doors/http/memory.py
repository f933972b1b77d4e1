"""Memory: the caller's own documents, to be kept, found, listed and forgotten. Nobody sees another's."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AfterValidator, BaseModel, Field

from journeyman.app.desk import MEMORY_WRITE, Desk, NotFoundError
from journeyman.core.errors import InvalidDataError
from journeyman.core.memory import MemoryDocument, MemoryHit
from journeyman.doors.http.common import (
    PAGE_SIZE,
    Body,
    DeskDep,
    Id,
    JsonRoute,
    Limit,
    Object,
    Offset,
    Page,
    page_of,
    read_json,
    refused,
)
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1/memory", tags=["memory"], route_class=JsonRoute)

LONGEST_TEXT = 1_000_000
LAST_MOMENT = 253_402_300_799
"""The end of the year 9999."""
_WITH_A_LETTER = r"^[^\x00]*[^\x00\s\x1c-\x1f\x85][^\x00]*$"
"""For the document: what ``_not_blank`` takes, whose message says more than a pattern does."""


async def _writing(desk: DeskDep) -> Desk:
    desk.must_hold(MEMORY_WRITE)
    return desk


WritingDesk = Annotated[Desk, Depends(_writing)]


def _not_blank(value: str) -> str:
    if not value.strip() or "\0" in value:
        raise ValueError("it needs a letter, and no NUL character")
    return value


Text = Annotated[str, AfterValidator(_not_blank)]
Moment = Annotated[
    float | None,
    Query(ge=0, le=LAST_MOMENT, allow_inf_nan=False, description="Seconds since 1970, as created_at."),
]
Metadata = Annotated[
    str | None,
    Query(
        max_length=2_000,
        description="A JSON object; a document's metadata has all its values.",
        examples=['{"topic": "health"}'],
    ),
]


class NewDocument(Body):
    """With the id of a document of yours, that document is replaced."""

    text: Text = Field(
        max_length=LONGEST_TEXT,
        json_schema_extra={"pattern": _WITH_A_LETTER},
        examples=["The dentist moved my appointment to Thursday."],
    )
    metadata: Object = Field(default_factory=dict, examples=[{"topic": "health"}])
    id: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:-]+$", examples=["dentist"]
    )


class Documents(Page):
    documents: list[MemoryDocument]
    total: int = Field(description="How many there are without the limit.")


class Found(BaseModel):
    query: str
    results: list[MemoryHit] = Field(description="Best first.")


@router.post("/documents", status_code=201, summary="Remember a text", responses=answers())
async def add_document(body: NewDocument, response: Response, desk: WritingDesk) -> MemoryDocument:
    """Needs the permission 'memory:write', like deleting."""
    try:
        kept = await desk.app.memory.store_document(
            body.text, body.metadata, id=body.id, principal=desk.principal, note=desk.note("memory_added")
        )
    except InvalidDataError as error:
        raise refused(*error.problems[0]) from None
    response.headers["Location"] = f"/api/v1/memory/documents/{kept.id}"
    return kept


@router.get("/documents", summary="Your documents, newest first", responses=answers())
async def list_documents(
    desk: DeskDep,
    since: Moment = None,
    until: Moment = None,
    metadata: Metadata = None,
    limit: Limit = PAGE_SIZE,
    offset: Offset = 0,
) -> Documents:
    """Those stored from 'since' on and before 'until'."""
    asked: dict[str, Any] = {"since": since, "until": until, "metadata": _values(metadata)}
    memory, principal = desk.app.memory, desk.principal
    documents = await memory.query(**asked, limit=limit, offset=offset, principal=principal)
    total = await memory.count(**asked, principal=principal)
    return Documents(documents=list(documents), total=total, **page_of(limit, offset))


@router.get("/documents/{document_id}", summary="One document", responses=answers(404))
async def show_document(document_id: Id, desk: DeskDep) -> MemoryDocument:
    found = None
    if "\0" not in document_id:
        found = await desk.app.memory.get(document_id, principal=desk.principal)
    if found is None:
        raise NotFoundError("document", document_id)
    return found


@router.delete("/documents/{document_id}", status_code=204, summary="Forget a document", responses=answers(404))
async def delete_document(document_id: Id, desk: WritingDesk) -> None:
    """It is found no more, by its words or by its meaning. Backups made before still hold it."""
    note = desk.note("memory_deleted")
    if "\0" in document_id or not await desk.app.memory.delete(document_id, principal=desk.principal, note=note):
        raise NotFoundError("document", document_id)


@router.get("/search", summary="Find documents by words and by meaning", responses=answers())
async def search_documents(
    desk: DeskDep,
    q: Annotated[
        Text,
        Query(min_length=1, max_length=1_000, pattern=_WITH_A_LETTER, examples=["When is the dentist?"]),
    ],
    since: Moment = None,
    metadata: Metadata = None,
    top_k: Annotated[int, Query(ge=1, le=50, description="How many at most.")] = 5,
) -> Found:
    hits = await desk.app.memory.semantic_search(
        q, top_k, since=since, metadata=_values(metadata), principal=desk.principal
    )
    return Found(query=q, results=hits)


def _values(metadata: str | None) -> dict[str, Any]:
    if metadata is None:
        return {}
    found = read_json(metadata.encode("utf-8", "surrogatepass"), place="metadata", once=True)
    if not isinstance(found, dict):
        raise refused("metadata", 'it is a JSON object, such as {"topic": "health"}')
    if any("\0" in name for name in found):
        raise refused("metadata", "a name has no NUL character")
    return found
