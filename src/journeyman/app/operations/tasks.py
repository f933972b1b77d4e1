"""Tasks, what is attached to them, and search over them. What makes a good task is the toolkit's business."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, field_validator

from journeyman.app.desk import TASKS_WRITE, Desk, NotFoundError
from journeyman.app.operations.table import (
    ALL,
    MOST_FOUND,
    PAGE,
    AtHand,
    Body,
    Following,
    Id,
    Object,
    Page,
    Paged,
    Paging,
    Sought,
    operation,
    page_of,
    worded,
)
from journeyman.core.data import moment
from journeyman.core.tasks import Attachment, AttachmentType, Task, TaskPriority, TaskSort, TaskStatus, TaskVersion


def _iso_8601(value: str) -> str:
    try:
        datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError(f"{value!r} is no date or time in ISO 8601; write it as 2027-01-31") from None
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
Number = Annotated[int, Field(ge=1, le=2**31 - 1, examples=[1])]
Due = Annotated[
    Annotated[str, Field(json_schema_extra=_ISO_8601), AfterValidator(_iso_8601)] | None,
    Field(max_length=64, description="ISO 8601; a plain date includes that day.", examples=["2027-01-31"]),
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


FEW = Paging(10)
_NOTHING: dict[str, Any] = {"description": "", "eta": "", "tags": [], "metadata": {}}
"""What a field is changed to when null removes it."""


class Tasks(Page):
    tasks: list[Task]


@operation("tasks.create", "Create a task", permission=TASKS_WRITE)
async def create_task(desk: Desk, body: NewTask) -> Task:
    return await desk.service.tasks.create(**dict(body), note=desk.note("task_created"))


@operation("tasks.list", "Tasks, newest first")
async def list_tasks(
    desk: Desk,
    *,
    status: TaskStatus | None = None,
    priority: TaskPriority | None = None,
    tags: Annotated[list[Tag] | None, Field(max_length=20, description="All of them. May be repeated.")] = None,
    due_before: Due = None,
    due_after: Due = None,
    q: Annotated[
        Sought | None, Field(max_length=1_000, description="Every word of it occurs in the title or the description.")
    ] = None,
    sort: TaskSort = TaskSort.CREATED_DESC,
    paging: Paged = PAGE,
) -> Tasks:
    """All filters must hold. By created_at, newest first, then by id, unless sorted otherwise."""
    asked: dict[str, Any] = {
        "status": status,
        "priority": priority,
        "tags": tags or (),
        "due_before": due_before,
        "due_after": due_after,
        "text": q or None,
        "sort": sort,
    }
    rows, page = await _queried(desk, asked, paging)
    return Tasks(tasks=rows, **page)


async def _queried(desk: Desk, asked: Mapping[str, Any], paging: Paging) -> tuple[list[Task], dict[str, Any]]:
    tasks, limit = desk.service.tasks, paging.limit
    page = await tasks.query(**asked, after=paging.after, limit=limit, offset=paging.offset)
    rows = list(page.tasks)
    if len(rows) == limit:  # one more shows whether there are more
        rows += (await tasks.query(**asked, after=rows[-1].id, limit=1)).tasks
    return rows[:limit], page_of(rows, page.total, limit, paging.offset)


@operation("tasks.show", "One task")
async def show_task(desk: Desk, task_id: Id) -> Task:
    return await desk.service.tasks.get(task_id)


@operation("tasks.change", "Change a task", permission=TASKS_WRITE)
async def update_task(desk: Desk, task_id: Id, body: TaskChange) -> Task:
    """The version before is kept."""
    tasks = desk.service.tasks
    await tasks.get(task_id)  # by its id alone: the toolkit would take words of a title as well
    changes: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    for name, nothing in _NOTHING.items():
        if name in changes and changes[name] is None:
            changes[name] = nothing
    note = desk.note("task_updated", fields=sorted(changes))
    return (await tasks.update(task_id, **changes, note=note)).task


@operation("tasks.delete", "Delete a task and its attachments", permission=TASKS_WRITE)
async def delete_task(desk: Desk, task_id: Id) -> None:
    await desk.service.tasks.get(task_id)
    await desk.service.tasks.delete(task_id, note=desk.note("task_deleted"))


class Versions(Page):
    versions: list[TaskVersion] = Field(description="Newest first.")


@operation("tasks.versions", "What a task was before")
async def list_task_versions(desk: Desk, task_id: Id, *, paging: AtHand = ALL) -> Versions:
    tasks = desk.service.tasks
    versions = await tasks.versions((await tasks.get(task_id)).id)
    rows, page = paging.of(versions, key=lambda item: str(item.number))
    return Versions(versions=rows, **page)


@operation("tasks.restore", "Restore an earlier version", permission=TASKS_WRITE)
async def restore_task(desk: Desk, task_id: Id, number: Number) -> Task:
    """What the task is now is kept as a version, too."""
    await desk.service.tasks.get(task_id)
    note = desk.note("task_updated", restored=number)
    return (await desk.service.tasks.restore(task_id, number, note=note)).task


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


class Attachments(Page):
    attachments: list[Attachment]


@operation("attachments.list", "What is attached to a task")
async def list_attachments(desk: Desk, task_id: Id, *, paging: AtHand = ALL) -> Attachments:
    attachments = (await desk.service.tasks.get(task_id)).attachments
    rows, page = paging.of(attachments, key=lambda item: item.id)
    return Attachments(attachments=rows, **page)


@operation("attachments.add", "Attach an address", permission=TASKS_WRITE)
async def add_attachment(desk: Desk, task_id: Id, body: NewAttachment) -> Attachment:
    tasks = desk.service.tasks
    await tasks.get(task_id)
    return await tasks.attach(task_id, **dict(body), note=desk.note("attachment_added", task_id=task_id))


@operation("attachments.show", "One attachment")
async def show_attachment(desk: Desk, attachment_id: Id) -> Attachment:
    return await desk.service.tasks.attachment(attachment_id)


@operation("attachments.change", "Change an attachment", permission=TASKS_WRITE)
async def update_attachment(desk: Desk, attachment_id: Id, body: AttachmentChange) -> Attachment:
    attachment = await desk.service.tasks.attachment(attachment_id)
    changes: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    if changes.get("metadata", attachment) is None:
        changes["metadata"] = {}
    changed = attachment.model_copy(update={**changes, "updated_at": moment(desk.app.clock.time())})
    note = desk.note("attachment_updated", task_id=attachment.task_id, fields=sorted(changes))
    if not await desk.service.store.tasks.update_attachment(changed, note=note):
        raise NotFoundError("attachment", attachment_id, recover_action="It was removed a moment ago")
    return changed


@operation("attachments.remove", "Remove an attachment", permission=TASKS_WRITE)
async def delete_attachment(desk: Desk, attachment_id: Id) -> None:
    await desk.service.tasks.detach(attachment_id, note=desk.note("attachment_removed"))


# --- search


class Result(BaseModel):
    task: Task
    score: float | None = Field(description="How well it fits; null for a search by words, where all fit alike.")


class Results(Page):
    query: str
    mode: Literal["keyword", "semantic"]
    results: list[Result]


@operation("tasks.search", "Find tasks")
async def search(
    desk: Desk,
    q: Annotated[
        str,
        Field(
            min_length=1, max_length=1_000, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$", examples=["anything about money"]
        ),
        worded("a search needs a word, and no NUL character; to see all tasks use /api/v1/tasks"),
    ],
    *,
    mode: Annotated[
        Literal["keyword", "semantic"],
        Field(description="All these words in title or description, or what the task is about, best first."),
    ] = "keyword",
    paging: Following = FEW,
) -> Results:
    """What it is about: the fifty best at most."""
    if mode == "semantic":
        hits = await desk.service.tasks.search(q, limit=MOST_FOUND)
        best, page = paging.of(hits, key=lambda item: item.task.id)
        results = [Result(task=item.task, score=item.score) for item in best]
    else:
        rows, page = await _queried(desk, {"text": q}, paging)
        results = [Result(task=task, score=None) for task in rows]
    return Results(query=q, mode=mode, results=results, **page)
