"""Tasks: create, list, show, change, delete. What makes a good task is the toolkit's business."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import AfterValidator, Field, field_validator

from journeyman.core.tasks import Task, TaskPriority, TaskSort, TaskStatus
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.bodies import Body, JsonRoute
from journeyman.doors.http.common import PAGE_SIZE, Here, Id, Limit, Object, Offset, Page, page_of
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1/tasks", tags=["tasks"], route_class=JsonRoute)


def _moment(value: str) -> str:
    try:
        datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError(f"{value!r} is no date or time in ISO 8601; write it as 2027-01-31") from None
    return value


Title = Annotated[str, Field(min_length=1, max_length=255, examples=["Review https://github.com/acme/rocket/pull/7"])]
Description = Annotated[str, Field(max_length=100_000, description="Markdown.")]
Eta = Annotated[
    str, Field(max_length=64, description="ISO 8601; a plain date is its beginning, in UTC.", examples=["2027-01-31"])
]
Tags = Annotated[list[str], Field(max_length=50, examples=[["finance"]])]
Due = Annotated[
    Annotated[str, AfterValidator(_moment)] | None,
    Query(max_length=64, description="ISO 8601; a plain date includes that day.", examples=["2027-01-31"]),
]


class NewTask(Body):
    """Web addresses in the title and the description become attachments by themselves."""

    title: Title
    description: Description | None = None
    status: TaskStatus = TaskStatus.PENDING
    priority: TaskPriority = TaskPriority.MEDIUM
    eta: Eta | None = None
    tags: Tags = Field(default_factory=list)
    metadata: Object = Field(default_factory=dict)


class TaskChange(Body):
    """What is left out stays as it is; null removes a description or an eta."""

    title: Title | None = None
    description: Description | None = None
    status: TaskStatus | None = None
    priority: TaskPriority | None = None
    eta: Eta | None = None
    tags: Tags | None = None
    metadata: Object | None = None

    @field_validator("title", "status", "priority", "tags", "metadata")
    @classmethod
    def _not_removable(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("cannot be removed; leave it out to keep it")
        return value


class Tasks(Page):
    tasks: list[Task]
    total: int = Field(description="How many there are without the limit.")


@router.post("", status_code=201, summary="Create a task", responses=answers())
async def create_task(given: NewTask, response: Response, service: Here, principal: Caller) -> Task:
    task = await service.tasks.create(
        given.title,
        description=given.description,
        status=given.status,
        priority=given.priority,
        eta=given.eta,
        tags=given.tags,
        metadata=given.metadata,
    )
    response.headers["Location"] = f"/api/v1/tasks/{task.id}"
    return task


@router.get("", summary="Tasks, newest first", responses=answers())
async def list_tasks(
    service: Here,
    principal: Caller,
    status: TaskStatus | None = None,
    priority: TaskPriority | None = None,
    tags: Annotated[list[str] | None, Query(max_length=20, description="All of them. May be repeated.")] = None,
    due_before: Due = None,
    due_after: Due = None,
    sort: TaskSort = TaskSort.CREATED_DESC,
    limit: Limit = PAGE_SIZE,
    offset: Offset = 0,
) -> Tasks:
    """All filters must hold. By created_at, newest first, then by id, unless sorted otherwise."""
    found = await service.tasks.query(
        status=status,
        priority=priority,
        tags=tags or (),
        due_before=due_before,
        due_after=due_after,
        sort=sort,
        limit=limit,
        offset=offset,
    )
    return Tasks(tasks=list(found.tasks), total=found.total, **page_of(limit, offset))


@router.get("/{task_id}", summary="One task", responses=answers(404))
async def show_task(task_id: Id, service: Here, principal: Caller) -> Task:
    return await service.tasks.get(task_id)


@router.patch("/{task_id}", summary="Change a task", responses=answers(404))
async def update_task(task_id: Id, given: TaskChange, service: Here, principal: Caller) -> Task:
    """The version before is kept."""
    await service.tasks.get(task_id)  # by its id alone: words of a title are for people
    fields: dict[str, Any] = {name: getattr(given, name) for name in given.model_fields_set}
    for removable in ("description", "eta"):
        if removable in fields and fields[removable] is None:
            fields[removable] = ""
    return (await service.tasks.update(task_id, **fields)).task


@router.delete("/{task_id}", status_code=204, summary="Delete a task and its attachments", responses=answers(404))
async def delete_task(task_id: Id, service: Here, principal: Caller) -> None:
    await service.tasks.get(task_id)
    await service.tasks.delete(task_id)
