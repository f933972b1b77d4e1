"""Bringing an attachment up to date with what it refers to. Only from providers whose addresses we know."""

from __future__ import annotations

from typing import Any, Protocol

from journeyman.core.context import ToolContext
from journeyman.core.errors import ErrorCategory, ToolError
from journeyman.core.protocols import Clock, SystemClock, moment
from journeyman.core.risk import RiskLevel
from journeyman.core.tasks import Attachment
from journeyman.toolkits.github import GitHub, Numbered, described, token_of
from journeyman.toolkits.tasks.naming import named_attachment, no_attachment
from journeyman.toolkits.tasks.service import TaskService
from journeyman.toolkits.tasks.tools import CATEGORY, MaybeText
from journeyman.tools.decorator import tool
from journeyman.tools.tool import Tool


class AttachmentUpdates(Protocol):
    """A store in which an attachment can be changed."""

    async def update_attachment(self, attachment: Attachment) -> bool: ...


async def refreshed(attachment: Attachment, github: GitHub, *, token: str | None, clock: Clock) -> Attachment:
    """The attachment as its provider has it now. Raises ToolError.

    An arbitrary address is never fetched: whoever can write a task could make this machine ask others on its network.
    """
    item = Numbered.read(attachment.reference)
    if item is None:
        raise ToolError(
            "NOT_REFRESHABLE",
            f"{attachment.reference!r} is no pull request or issue of GitHub, and nothing else is fetched",
            category=ErrorCategory.INVALID_INPUT,
            recover_action="Tell the user that this attachment is kept as an address only",
        )
    found = described(await github.fetch(item, token=token))
    now = moment(clock.time())
    body = found.pop("body")
    return attachment.model_copy(
        update={
            "title": found.pop("title"),
            "content": body or None,
            "metadata": {**attachment.metadata, **found, "refreshed_at": now.isoformat()},
            "updated_at": now,
        }
    )


def refreshing_tools(
    service: TaskService, updates: AttachmentUpdates, github: GitHub, *, clock: Clock | None = None
) -> list[Tool[..., Any]]:
    """``refresh_attachment``, for a ``ToolLibrary``."""
    time = clock or SystemClock()

    @tool(
        category=CATEGORY,
        risk=RiskLevel.REVERSIBLE,
        idempotent=True,
        tags=("update", "reload", "github"),
        examples=[{"task_id": "login bug", "attachment_id": "https://github.com/acme/rocket/pull/7"}],
    )
    async def refresh_attachment(
        attachment_id: str, task_id: MaybeText = None, *, context: ToolContext
    ) -> dict[str, Any]:
        """Fetch what an attachment refers to and keep its title, state and text. Use when the user wants news of it.

        Works for GitHub pull requests and issues. Returns the attachment. Errors: ATTACHMENT_NOT_FOUND,
        TASK_NOT_FOUND, NOT_REFRESHABLE, GITHUB_NOT_FOUND, GITHUB_FORBIDDEN, GITHUB_RATE_LIMITED; AMBIGUOUS_ATTACHMENT
        or AMBIGUOUS_TASK, then ask the user which one.

        Args:
            attachment_id: The attachment: its id or, with task_id, its address or words of its title.
            task_id: The task it belongs to: its id, or words of its title.
        """
        found = (
            named_attachment(await service.named(task_id), attachment_id)
            if task_id
            else await service.attachment(attachment_id)
        )
        fresh = await refreshed(found, github, token=token_of(context), clock=time)
        if not await updates.update_attachment(fresh):
            raise no_attachment(attachment_id, "it was removed a moment ago")
        return fresh.model_dump(mode="json")

    return [refresh_attachment]
