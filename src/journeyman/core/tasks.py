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
