"""Search over tasks: by words, or by what they are about."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field

from journeyman.core.tasks import Task
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.common import Here
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1/search", tags=["search"])


def _something(value: str) -> str:
    if not value.strip() or "\0" in value:
        raise ValueError("a search needs a word, and no NUL character; to see all tasks use /api/v1/tasks")
    return value


class Result(BaseModel):
    task: Task
    score: float | None = Field(description="How well it fits; null for a search by words, where all fit alike.")


class Results(BaseModel):
    query: str
    mode: Literal["keyword", "semantic"]
    results: list[Result]
    total: int


@router.get("", summary="Find tasks", responses=answers())
async def search(
    service: Here,
    principal: Caller,
    q: Annotated[
        str, Query(min_length=1, max_length=1_000, examples=["anything about money"]), AfterValidator(_something)
    ],
    mode: Annotated[
        Literal["keyword", "semantic"],
        Query(description="All these words in title or description, or what the task is about, best first."),
    ] = "keyword",
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> Results:
    if mode == "semantic":
        found = await service.tasks.search(q, limit=limit)
        results = [Result(task=item.task, score=item.score) for item in found]
        return Results(query=q, mode=mode, results=results, total=len(results))
    page = await service.tasks.query(text=q, limit=limit)
    return Results(query=q, mode=mode, results=[Result(task=task, score=None) for task in page.tasks], total=page.total)
