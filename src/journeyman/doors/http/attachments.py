"""Attachments: under their task and by their id."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from journeyman.core.protocols import moment
from journeyman.core.tasks import Attachment, AttachmentType
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.bodies import Body, JsonRoute
from journeyman.doors.http.common import Here, Id, Object
from journeyman.doors.http.errors import Problem, answers

router = APIRouter(prefix="/api/v1", tags=["attachments"], route_class=JsonRoute)

Title = Annotated[str, Field(max_length=255)]
Content = Annotated[str, Field(max_length=200_000)]


class NewAttachment(Body):
    """The address is normalised: of two that mean the same thing, a task has one."""

    reference: str = Field(
        min_length=1, max_length=2_000, examples=["https://github.com/acme/rocket/pull/7?utm_source=x"]
    )
    type: AttachmentType | None = Field(default=None, description="Inferred from the address if left out.")
    title: Title | None = None
    content: Content | None = None
    metadata: Object = Field(default_factory=dict)


class AttachmentChange(Body):
    """What is left out stays as it is; null removes a title or a content."""

    title: Title | None = Field(default=None, examples=["The bug"])
    content: Content | None = Field(default=None, examples=["Crashes when the list is empty."])
    metadata: Object | None = Field(default=None, examples=[{"reviewed": True}])


class Attachments(BaseModel):
    attachments: list[Attachment]
    total: int


@router.get("/tasks/{task_id}/attachments", summary="What is attached to a task", responses=answers(404))
async def list_attachments(task_id: Id, service: Here, principal: Caller) -> Attachments:
    found = (await service.tasks.get(task_id)).attachments
    return Attachments(attachments=list(found), total=len(found))


@router.post("/tasks/{task_id}/attachments", status_code=201, summary="Attach an address", responses=answers(404, 409))
async def add_attachment(
    task_id: Id, given: NewAttachment, response: Response, service: Here, principal: Caller
) -> Attachment:
    await service.tasks.get(task_id)
    attachment = await service.tasks.attach(
        task_id,
        given.reference,
        type=given.type,
        title=given.title,
        content=given.content,
        metadata=given.metadata,
    )
    response.headers["Location"] = f"/api/v1/attachments/{attachment.id}"
    return attachment


@router.get("/attachments/{attachment_id}", summary="One attachment", responses=answers(404))
async def show_attachment(attachment_id: Id, service: Here, principal: Caller) -> Attachment:
    return await service.tasks.attachment(attachment_id)


@router.patch("/attachments/{attachment_id}", summary="Change an attachment", responses=answers(404))
async def update_attachment(attachment_id: Id, given: AttachmentChange, service: Here, principal: Caller) -> Attachment:
    found = await service.tasks.attachment(attachment_id)
    changes: dict[str, Any] = {name: getattr(given, name) for name in given.model_fields_set}
    if changes.get("metadata", found) is None:
        changes["metadata"] = {}
    changed = found.model_copy(update={**changes, "updated_at": moment(service.app.clock.time())})
    if not await service.store.tasks.update_attachment(changed):
        raise Problem(404, "ATTACHMENT_NOT_FOUND", f"attachment {attachment_id!r} was removed a moment ago")
    return changed


@router.delete("/attachments/{attachment_id}", status_code=204, summary="Remove an attachment", responses=answers(404))
async def delete_attachment(attachment_id: Id, service: Here, principal: Caller) -> None:
    await service.tasks.detach(attachment_id)
