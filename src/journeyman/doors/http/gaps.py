"""Gaps: what people asked for and no tool could do, by demand; and how to begin with one."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from journeyman.app.gap_export import as_gram, as_python
from journeyman.core.gaps import Gap
from journeyman.doors.http.common import PAGE_SIZE, DeskDep, Id, JsonRoute, Limit, Offset, Page, page_of
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1/gaps", tags=["gaps"], route_class=JsonRoute)


class Gaps(Page):
    gaps: list[Gap] = Field(description="Those that most people asked for first.")


class GapFile(BaseModel):
    name: str
    text: str


class GapExport(BaseModel):
    files: list[GapFile] = Field(description="They lie side by side.")


@router.get("", summary="What was missing, by demand", responses=answers())
async def list_gaps(
    desk: DeskDep,
    dismissed: Annotated[bool, Query(description="Dismissed ones as well.")] = False,
    limit: Limit = PAGE_SIZE,
    offset: Offset = 0,
) -> Gaps:
    """Your own requests count; those of others only with the permission 'runs:read' or 'gaps:write'."""
    found = await desk.gaps(dismissed=dismissed, limit=limit, offset=offset)
    return Gaps(gaps=list(found), **page_of(limit, offset))


@router.get("/{key}", summary="One gap", responses=answers(404))
async def show_gap(key: Id, desk: DeskDep) -> Gap:
    return await desk.gap(key)


@router.get("/{key}/export", summary="A gap as something to begin with", responses=answers(404))
async def export_gap(
    key: Id,
    desk: DeskDep,
    form: Annotated[Literal["gram", "python"], Query(alias="as", description="Python comes with a test.")] = "gram",
) -> GapExport:
    gap = await desk.gap(key)
    if form == "gram":
        return GapExport(files=[GapFile(name=f"{gap.key}.gram", text=as_gram(gap))])
    stub = as_python(gap)
    return GapExport(
        files=[GapFile(name=stub.module_name, text=stub.module), GapFile(name=stub.test_name, text=stub.test)]
    )


@router.post("/{key}/dismiss", summary="Leave a gap out of the list", responses=answers(404))
async def dismiss_gap(key: Id, desk: DeskDep) -> Gap:
    """Needs the permission 'gaps:write'. It holds for everybody."""
    return await desk.dismiss_gap(key)
