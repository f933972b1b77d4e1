"""Tasks, what is attached to them, and search over them. What makes a good task is the toolkit's business."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AfterValidator, BaseModel, Field, field_validator

from journeyman.app.desk import TASKS_WRITE, Desk
from journeyman.core.protocols import moment
from journeyman.core.tasks import Attachment, AttachmentType, Task, TaskPriority, TaskSort, TaskStatus
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
    ServiceDep,
    page_of,
)
from journeyman.doors.http.errors import answers, not_found

tasks_router = APIRouter(prefix="/api/v1/tasks", tags=["tasks"], route_class=JsonRoute)
attachments_router = APIRouter(prefix="/api/v1", tags=["attachments"], route_class=JsonRoute)
search_router = APIRouter(prefix="/api/v1/search", tags=["search"], route_class=JsonRoute)


async def _writing(desk: DeskDep) -> Desk:
    desk.must_hold(TASKS_WRITE)
    return desk


WritingDesk = Annotated[Desk, Depends(_writing)]
"""The app as a caller may use it who may change tasks. Whoever is asked for one needs that permission."""


def _iso_8601(value: str) -> str:
    try:
        datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError(f"{value!r} is no date or time in ISO 8601; write it as 2027-01-31") from None
    return value


def _not_nul(value: str | None) -> str | None:
    if value is not None and "\0" in value:
        raise ValueError("what is looked for has no NUL character")
    return value


Title = Annotated[str, Field(min_length=1, max_length=255, examples=["Review https://github.com/acme/rocket/pull/7"])]
Description = Annotated[str, Field(max_length=100_000, description="Markdown.")]
_ISO_8601: dict[str, Any] = {"anyOf": [{"format": "date"}, {"format": "date-time"}]}
Eta = Annotated[
    str,
    Field(
        max_length=64,
        description="ISO 8601; a plain date is its beginning, in UTC. An empty text is none.",
        examples=["2027-01-31"],
        json_schema_extra=_ISO_8601,
    ),
]
Tag = Annotated[str, Field(min_length=1, max_length=64, pattern=r"\S")]
Tags = Annotated[list[Tag], Field(max_length=50, examples=[["finance"]])]
Due = Annotated[
    Annotated[str, Field(json_schema_extra=_ISO_8601), AfterValidator(_iso_8601)] | None,
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
    """What is left out stays as it is; null removes a description, an eta, the tags or the metadata."""

    # Whatever stands for what was left out is never used: see model_fields_set.
    title: Title = Field(default_factory=str)
    description: Description | None = None
    status: TaskStatus = Field(default_factory=lambda: TaskStatus.PENDING)
    priority: TaskPriority = Field(default_factory=lambda: TaskPriority.MEDIUM)
    eta: Eta | None = None
    tags: Tags | None = None
    metadata: Object | None = None

    @field_validator("title", "status", "priority", mode="before")
    @classmethod
    def _not_removable(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("cannot be removed; leave it out to keep it")
        return value


_NOTHING: dict[str, Any] = {"description": "", "eta": "", "tags": [], "metadata": {}}
"""What a field is changed to when null removes it."""


class Tasks(Page):
    tasks: list[Task]
    total: int = Field(description="How many there are without the limit.")


@tasks_router.post("", status_code=201, summary="Create a task", responses=answers())
async def create_task(body: NewTask, response: Response, service: ServiceDep, desk: WritingDesk) -> Task:
    """Needs the permission 'tasks:write', like every change of a task or an attachment."""
    task = await service.tasks.create(**dict(body), note=desk.note("task_created"))
    response.headers["Location"] = f"/api/v1/tasks/{task.id}"
    return task


@tasks_router.get("", summary="Tasks, newest first", responses=answers())
async def list_tasks(
    service: ServiceDep,
    status: TaskStatus | None = None,
    priority: TaskPriority | None = None,
    tags: Annotated[list[Tag] | None, Query(max_length=20, description="All of them. May be repeated.")] = None,
    due_before: Due = None,
    due_after: Due = None,
    q: Annotated[
        str | None,
        Query(max_length=1_000, description="Every word of it occurs in the title or the description."),
        AfterValidator(_not_nul),
    ] = None,
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
        text=q or None,
        sort=sort,
        limit=limit,
        offset=offset,
    )
    return Tasks(tasks=list(found.tasks), total=found.total, **page_of(limit, offset))


@tasks_router.get("/{task_id}", summary="One task", responses=answers(404))
async def show_task(task_id: Id, service: ServiceDep) -> Task:
    return await service.tasks.get(task_id)


@tasks_router.patch("/{task_id}", summary="Change a task", responses=answers(404))
async def update_task(task_id: Id, body: TaskChange, service: ServiceDep, desk: WritingDesk) -> Task:
    """The version before is kept."""
    await service.tasks.get(task_id)  # by its id alone: the toolkit would take words of a title as well
    changes: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    for name, nothing in _NOTHING.items():
        if name in changes and changes[name] is None:
            changes[name] = nothing
    note = desk.note("task_updated", fields=sorted(changes))
    return (await service.tasks.update(task_id, **changes, note=note)).task


@tasks_router.delete("/{task_id}", status_code=204, summary="Delete a task and its attachments", responses=answers(404))
async def delete_task(task_id: Id, service: ServiceDep, desk: WritingDesk) -> None:
    await service.tasks.get(task_id)
    await service.tasks.delete(task_id, note=desk.note("task_deleted"))


# --- attachments

AttachmentTitle = Annotated[str, Field(max_length=255)]
Content = Annotated[str, Field(max_length=200_000)]


class NewAttachment(Body):
    """The address is normalised: of two that mean the same thing, a task has one."""

    reference: str = Field(
        min_length=1, max_length=2_000, examples=["https://github.com/acme/rocket/pull/7?utm_source=x"]
    )
    type: AttachmentType | None = Field(default=None, description="Inferred from the address if left out.")
    title: AttachmentTitle | None = None
    content: Content | None = None
    metadata: Object = Field(default_factory=dict)


class AttachmentChange(Body):
    """What is left out stays as it is; null removes a title or a content."""

    title: AttachmentTitle | None = Field(default=None, examples=["The bug"])
    content: Content | None = Field(default=None, examples=["Crashes when the list is empty."])
    metadata: Object | None = Field(default=None, examples=[{"reviewed": True}])


class Attachments(BaseModel):
    attachments: list[Attachment]
    total: int


@attachments_router.get("/tasks/{task_id}/attachments", summary="What is attached to a task", responses=answers(404))
async def list_attachments(task_id: Id, service: ServiceDep) -> Attachments:
    found = (await service.tasks.get(task_id)).attachments
    return Attachments(attachments=list(found), total=len(found))


@attachments_router.post(
    "/tasks/{task_id}/attachments", status_code=201, summary="Attach an address", responses=answers(404, 409)
)
async def add_attachment(
    task_id: Id, body: NewAttachment, response: Response, service: ServiceDep, desk: WritingDesk
) -> Attachment:
    await service.tasks.get(task_id)
    note = desk.note("attachment_added", task_id=task_id)
    attachment = await service.tasks.attach(task_id, **dict(body), note=note)
    response.headers["Location"] = f"/api/v1/attachments/{attachment.id}"
    return attachment


@attachments_router.get("/attachments/{attachment_id}", summary="One attachment", responses=answers(404))
async def show_attachment(attachment_id: Id, service: ServiceDep) -> Attachment:
    return await service.tasks.attachment(attachment_id)


@attachments_router.patch("/attachments/{attachment_id}", summary="Change an attachment", responses=answers(404))
async def update_attachment(
    attachment_id: Id, body: AttachmentChange, service: ServiceDep, desk: WritingDesk
) -> Attachment:
    found = await service.tasks.attachment(attachment_id)
    changes: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    if changes.get("metadata", found) is None:
        changes["metadata"] = {}
    changed = found.model_copy(update={**changes, "updated_at": moment(service.app.clock.time())})
    note = desk.note("attachment_updated", task_id=found.task_id, fields=sorted(changes))
    if not await service.store.tasks.update_attachment(changed, note=note):
        raise not_found("attachment", recover_action="It was removed a moment ago")
    return changed


@attachments_router.delete(
    "/attachments/{attachment_id}", status_code=204, summary="Remove an attachment", responses=answers(404)
)
async def delete_attachment(attachment_id: Id, service: ServiceDep, desk: WritingDesk) -> None:
    await service.tasks.detach(attachment_id, note=desk.note("attachment_removed"))


# --- search


def _not_blank(value: str) -> str:
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


@search_router.get("", summary="Find tasks", responses=answers())
async def search(
    service: ServiceDep,
    q: Annotated[
        str,
        Query(
            min_length=1, max_length=1_000, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$", examples=["anything about money"]
        ),
        AfterValidator(_not_blank),
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
