"""Tasks and their attachments: the entities of the tasks toolkit, here because stores know them too."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

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
