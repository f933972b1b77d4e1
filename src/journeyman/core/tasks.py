"""Tasks and their attachments: the entities of the tasks toolkit, here because stores know them too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from pydantic import Field

from journeyman.core.audit import AuditNote
from journeyman.core.data import Entity


class TaskStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class TaskPriority(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class AttachmentType(StrEnum):
    GITHUB = "github"
    GMAIL = "gmail"
    URL = "url"


class Attachment(Entity):
    """Something a task refers to; unique per task by its normalised reference."""

    id: str = Field(min_length=1)
    task_id: str = Field(min_length=1)
    type: AttachmentType
    reference: str = Field(min_length=1)
    title: str | None = None
    content: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime
    updated_at: datetime


class Task(Entity):
    """Something to be done."""

    id: str = Field(min_length=1)
    title: str = Field(min_length=1, max_length=255)
    description: str | None = None
    """Markdown."""
    status: TaskStatus = TaskStatus.PENDING
    priority: TaskPriority = TaskPriority.MEDIUM
    eta: datetime | None = None
    """The time zone is kept as it was given."""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime
    updated_at: datetime
    attachments: tuple[Attachment, ...] = ()


# --- asking for them


class TaskSort(StrEnum):
    """In which order tasks are listed; what is equal goes by created_at, newest first, then by id."""

    CREATED_DESC = "created_desc"
    ETA_ASC = "eta_asc"
    """What has no eta comes last."""
    PRIORITY_DESC = "priority_desc"
    """Within a priority, what is due first."""


class TaskFilter(Entity):
    """Which tasks are meant; what is left out does not narrow."""

    status: TaskStatus | None = None
    priority: TaskPriority | None = None
    tags: tuple[str, ...] = ()
    """All of them, in upper or lower case."""
    text: str | None = None
    """Every word of it occurs in the title or the description, or it is the task's id."""
    title: str | None = None
    """Every word of it occurs in the title."""
    due_after: datetime | None = None
    due_before: datetime | None = None
    """Both ends belong to the range."""
    overdue_at: datetime | None = None
    """Due before then, and not completed."""


class TaskPage(Entity):
    """Some of the tasks that were asked for."""

    tasks: tuple[Task, ...]
    total: int
    """How many there are without the limit."""


class TaskVersion(Entity):
    """A task as it was before a change; its attachments are not part of it."""

    number: int
    replaced_at: datetime
    task: Task


class TaskStore(Protocol):
    """Tasks with their attachments and their earlier versions. A ``note`` goes into the audit with the change."""

    async def add(self, task: Task, *, note: AuditNote | None = None) -> Task:
        """Keep a new task (once) and return it as it stands."""

    async def get(self, task_id: str) -> Task | None: ...

    async def get_many(self, task_ids: Sequence[str]) -> Sequence[Task]:
        """Those of them that there are, in no particular order."""

    async def find(
        self,
        wanted: TaskFilter | None = None,
        *,
        sort: TaskSort = TaskSort.CREATED_DESC,
        after: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> TaskPage: ...

    async def change(
        self, task_id: str, change: Callable[[Task], Task], *, now: float, note: AuditNote | None = None
    ) -> Task | None:
        """Put what ``change`` makes of a task in its place and return it; None when there is no such task.

        Nobody else's change comes in between. The version before is kept, unless nothing changed. Attachments can
        be added, by a reference that the task does not have yet; ``attach`` and ``detach`` do the rest. ``change`` may
        run more than once, and in another thread.
        """

    async def delete(self, task_id: str, *, note: AuditNote | None = None) -> bool:
        """Forget a task, its attachments and its versions."""

    async def versions(self, task_id: str) -> Sequence[TaskVersion]:
        """What a task was before, newest first."""

    async def stamps(self) -> Mapping[str, float]:
        """When each task was last changed, by id: enough to keep an index up to date."""

    async def attach(self, attachment: Attachment, *, note: AuditNote | None = None) -> Attachment | None:
        """Keep an attachment, unless its task has that reference: returns the one that is kept; None without a task."""

    async def attachment(self, attachment_id: str) -> Attachment | None: ...

    async def update_attachment(self, attachment: Attachment, *, note: AuditNote | None = None) -> bool: ...

    async def detach(self, attachment_id: str, *, note: AuditNote | None = None) -> bool: ...
