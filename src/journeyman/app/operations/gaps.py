"""Gaps: what people asked for and no tool could do, by demand; how to begin with one; and what a request asks for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from journeyman.app.desk import GAPS_WRITE, Desk, NotFoundError
from journeyman.app.gaps import as_gram, as_python
from journeyman.app.operations.table import ALL, PAGE, AtHand, Body, Id, Object, OfPrincipal, Page, Paged, operation
from journeyman.core.gaps import Gap, IntentType, ToolGapReport, UserIntent, intent_types


class Gaps(Page):
    gaps: list[Gap] = Field(description="Those that most people asked for first.")


class GapFile(BaseModel):
    name: str
    text: str


class GapExport(BaseModel):
    files: list[GapFile] = Field(description="They lie side by side.")


class IntentRequest(Body):
    text: str = Field(min_length=1, max_length=20_000, examples=["Summarize #platform since Monday"])
    context: Object = Field(default_factory=dict, description="Values for parameters that the text leaves open.")
    offline: bool = Field(default=False, description="Ask no model, even where one is configured.")


class IntentAnswer(BaseModel):
    intent: UserIntent | None = Field(description="Null where nothing of a known type is asked for.")


class IntentTypes(Page):
    types: list[IntentType]


@operation("gaps.list", "What was missing, by demand")
async def list_gaps(
    desk: Desk,
    *,
    dismissed: Annotated[bool, Field(description="Dismissed ones as well.")] = False,
    principal: OfPrincipal = None,
    paging: Paged = PAGE,
) -> Gaps:
    """Your own requests count; those of others only with the permission 'runs:read' or 'gaps:write'."""
    kept = desk.app.store.gaps
    asked = {"dismissed": dismissed, "principal_id": desk.visible(GAPS_WRITE, only=principal)}
    rows, page = await paging.read(kept.demand, kept.count, asked, key="key")
    return Gaps(gaps=rows, **page)


@operation("gaps.show", "One gap")
async def show_gap(desk: Desk, key: Id) -> Gap:
    gap = await desk.app.gaps.get(key, principal_id=desk.visible(GAPS_WRITE))
    if gap is None:
        raise NotFoundError("gap", key)
    return gap


@operation("gaps.export", "A gap as something to begin with")
async def export_gap(
    desk: Desk,
    key: Id,
    form: Annotated[Literal["gram", "python"], Field(alias="as", description="Python comes with a test.")] = "gram",
) -> GapExport:
    gap = await show_gap(desk, key)
    if form == "gram":
        return GapExport(files=[GapFile(name=f"{gap.key}.gram", text=as_gram(gap))])
    return GapExport(files=[GapFile(name=name, text=text) for name, text in as_python(gap).items()])


@operation("gaps.dismiss", "Leave a gap out of the list", permission=GAPS_WRITE)
async def dismiss_gap(desk: Desk, key: Id) -> Gap:
    """It holds for everybody."""
    await show_gap(desk, key)
    await desk.app.gaps.dismiss(key, by=desk.principal.id)
    return await show_gap(desk, key)


@operation("gaps.detect", "Say what is missing for a task, and keep that")
async def detect_gap(desk: Desk, text: str) -> ToolGapReport | None:
    """No model is asked, and nothing is carried out."""
    return await desk.app.gaps.detect(text)


@operation("intents.read", "What a request asks for")
async def read_intent(desk: Desk, body: IntentRequest) -> IntentAnswer:
    """Among the tools that you may use. Nothing is run or kept."""
    asked = desk.app.understand(body.text, principal=desk.principal, context=body.context, offline=body.offline)
    return IntentAnswer(intent=await asked)


@operation("intents.types", "The types of intents that are known")
async def list_types(desk: Desk, *, paging: AtHand = ALL) -> IntentTypes:
    rows, page = paging.of(list(intent_types().values()), key=lambda item: item.name)
    return IntentTypes(types=rows, **page)
