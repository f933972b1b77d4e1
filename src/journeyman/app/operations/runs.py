"""Runs and sessions: how they stand, what was done and said in them, and what a person does about them."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, SerializeAsAny

from journeyman.app.desk import Desk, NotFoundError
from journeyman.app.operations.table import (
    ALL,
    MOST_AT_HAND,
    PAGE,
    WITH_A_LETTER,
    After,
    AtHand,
    Body,
    Id,
    Most,
    OfPrincipal,
    OfSession,
    Page,
    Paged,
    Sought,
    Storable,
    operation,
    refused,
    worded,
)
from journeyman.core.approvals import LONGEST_NOTE, Approval, Label, Rating
from journeyman.core.calls import DataLabel, FlowDecision, ToolCallRecord
from journeyman.core.data import Moment
from journeyman.core.events import Fact
from journeyman.core.runs import (
    AgentResponse,
    Message,
    Outcome,
    RunStatus,
    SessionPlace,
    Usage,
    Wait,
    cost_of,
    list_prices,
)
from journeyman.core.storing import RunOrder, RunRow

ARTIFACT_CHARS = 262_144
"""Of a large result, read at a time."""
MOST_FORKS = 1_000
"""That are shown of one run."""
MOST_STEPS = 500
"""Of one run in one answer, the latest ones. Writing tens of thousands would hold up everybody else."""


class RunView(BaseModel):
    """Where a run stands."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    task_id: str
    agent: str = Field(validation_alias="agent_name")
    session_id: str | None
    principal: str | None = Field(validation_alias="principal_id")
    status: RunStatus
    last_seq: int = Field(description="The number of its latest fact.")
    created_at: Moment
    updated_at: Moment
    position: int | None = Field(
        default=None, description="For a queued run that has not begun: its place in the queue, 1 being the next."
    )
    deaths: int = Field(description="How many processes in a row have died while they worked on it.")
    trouble: str | None = Field(description="Why it is stuck, or why no process that tried can go on with it.")
    cancel_wanted: bool = Field(description="Whether it is to be cancelled by whoever has it or takes it up next.")
    request: str = Field(description="How what was asked begins.")
    waits_until: Moment | None = Field(description="When the first decision that it waits for is due.")
    outcome: Outcome | None = Field(
        description="What became of what was asked: a run can complete and have achieved nothing. Null before its end."
    )
    model: str | None = Field(description="The model that answered last, once it has ended.")
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None = Field(default=None, description="US dollars by list prices; null where they are not known.")


class Runs(Page):
    runs: list[RunView]


class RunDetails(BaseModel):
    """One run, as it stands."""

    run: RunView
    task: str = Field(description="What was asked.")
    experiment: dict[str, str] | None = Field(description="Which arm of which live experiment it belongs to.")
    response: AgentResponse | None = Field(description="What it amounts to so far; null before it has begun.")
    steps_left_out: int = Field(description="Earlier steps that 'response' leaves out; the events have them all.")
    approvals: list[Approval] = Field(description="What waits for a person.")
    unknown: list[ToolCallRecord] = Field(description="Calls that were under way when their process died.")
    waits: list[Wait] = Field(description="What it waits for, for whom, and until when; nothing while it is worked on.")


class Resolution(Body):
    """What became of a call of which nobody knows whether it happened."""

    action: Literal["rerun", "done", "skip"] = Field(examples=["done"])
    result: Storable = Field(
        default=None, description="What a call that is done has returned.", examples=[{"id": "task_1"}]
    )


class LabelView(Label):
    time: Moment


class Labels(Page):
    """What is said of a run."""

    labels: list[LabelView]


class FlowOfCall(BaseModel):
    """What one call read or sent, and whose words it was made of."""

    call_id: str
    tool_name: str
    reads: bool = Field(description="Whether its tool only reads.")
    status: str
    label: DataLabel | None = Field(description="Whose words its result holds; null for our own, for everybody.")
    arguments: dict[str, str] = Field(description="Where the value of each came from, in words.")
    flow: FlowDecision | None = Field(description="What was decided; null where there was nothing to decide.")


class RunFlow(BaseModel):
    """Who said what in a run, and what went where."""

    run_id: str
    request: str = Field(description="What the person said.")
    calls: list[FlowOfCall]


class RatingBody(Body):
    """Whether a run did what was asked."""

    rating: Rating = Field(examples=["good"])
    note: str = Field(default="", max_length=LONGEST_NOTE, description="What was right or wrong with it.")


async def view_of(row: RunRow, desk: Desk) -> RunView:
    view = RunView.model_validate(row)
    if row.status is RunStatus.QUEUED:
        view.position = await desk.app.runner.position(row.id)
    if row.model and row.input_tokens is not None and row.output_tokens is not None:
        usage = Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens)
        view.cost = cost_of(row.model, usage, _prices())
    return view


_prices = cache(list_prices)


def _latest(response: AgentResponse) -> AgentResponse:
    if response.total_iterations <= MOST_STEPS:
        return response
    kept = {
        "structured_trace": response.structured_trace[-MOST_STEPS:],
        "messages": response.messages[-2 * MOST_STEPS :],
    }
    return response.model_copy(update=kept)


@operation("runs.list", "Runs, newest first")
async def list_runs(
    desk: Desk,
    *,
    status: Annotated[list[RunStatus] | None, Field(description="Only these. May be repeated.")] = None,
    session_id: OfSession = None,
    principal: OfPrincipal = None,
    agent: Annotated[Sought | None, Field(max_length=255, description="Only those of one agent.")] = None,
    tool: Annotated[Sought | None, Field(max_length=255, description="Only those that called this tool.")] = None,
    outcome: Annotated[Outcome | None, Field(description="Only those of which this became.")] = None,
    q: Annotated[
        Sought, Field(max_length=200, description="Only those in whose request or names each of these words occurs.")
    ] = "",
    since: Annotated[AwareDatetime | None, Field(description="Only those begun at this time or later.")] = None,
    until: Annotated[AwareDatetime | None, Field(description="Only those begun before this time.")] = None,
    paging: Paged = PAGE,
) -> Runs:
    await desk.app.approvals.expire()
    asked = {
        "principal_id": desk.visible(only=principal),
        "statuses": status or None,
        "session_id": session_id,
        "agent": agent,
        "tool": tool,
        "outcome": outcome,
        "text": q,
        "since": since and since.timestamp(),
        "until": until and until.timestamp(),
    }
    kept = desk.app.store.runs
    rows, page = await paging.read(kept.list, kept.count, asked)
    return Runs(runs=[await view_of(row, desk) for row in rows], **page)


async def task_of(desk: Desk, run_id: str) -> str:
    """What a run was asked to do."""
    order = await desk.order(run_id)
    return "" if order is None else order.task.description


async def fork_tree(desk: Desk, row: RunRow) -> list[tuple[int, RunRow]]:
    """The run with all that share a past with it, the first of them first, each with how many are above it."""
    kept = desk.app.store.runs
    while row.parent_id is not None and (parent := await kept.get(row.parent_id)) is not None:
        row = parent
    tree, left = list[tuple[int, RunRow]](), [(0, row)]
    while left and len(tree) < MOST_FORKS:
        depth, item = left.pop()
        tree.append((depth, item))
        left += [(depth + 1, fork) for fork in reversed(await kept.forks(item.id))]
    return tree if len(tree) > 1 else []


@operation("runs.show", "One run with its trace")
async def show_run(desk: Desk, run_id: Id) -> RunDetails:
    row = await desk.run(run_id)
    handle = await desk.app.handle(row.id)
    order = await desk.app.store.runs.order(row.id)
    response = await handle.so_far()
    return RunDetails(
        run=await view_of(row, desk),
        task="" if order is None else order.task.description,
        experiment=None if order is None else order.task.metadata.get("experiment"),
        response=None if response is None else _latest(response),
        steps_left_out=0 if response is None else max(0, response.total_iterations - MOST_STEPS),
        approvals=list(await desk.app.approvals.pending(run_id=row.id)),
        unknown=list(await handle.unknown()),
        waits=list(await handle.waits()),
    )


async def artifact_parts(desk: Desk, run_id: str, artifact_id: str) -> AsyncIterator[str]:
    """The whole of a result that is kept apart from its record, in pieces. Raises NotFoundError at once."""
    run_id, read = (await desk.run(run_id)).id, desk.app.store.artifacts.read
    first = await read(run_id, artifact_id, length=ARTIFACT_CHARS)
    if first is None:
        raise NotFoundError("artifact", artifact_id)

    async def parts(part: str, offset: int = 0) -> AsyncIterator[str]:
        while part:
            yield part
            offset += len(part)
            part = await read(run_id, artifact_id, offset=offset, length=ARTIFACT_CHARS) or ""

    return parts(first)


@operation("runs.cancel", "End a run, wherever it is worked on")
async def cancel_run(desk: Desk, run_id: Id) -> RunView:
    return await view_of(await desk.cancel(run_id), desk)


@operation("runs.resume", "Take a run up again here")
async def resume_run(desk: Desk, run_id: Id) -> RunView:
    """For a run that nobody works on. One that waits for a person goes on waiting; one that is stuck is tried again."""
    return await view_of(await desk.resume(run_id), desk)


@operation("runs.resolve", "Say what became of a call whose outcome is unknown")
async def resolve_call(desk: Desk, run_id: Id, call_id: Id, body: Resolution) -> RunView:
    """Needs the permission 'approvals:decide': like an approval, it is a person's word."""
    return await view_of(await desk.resolve(run_id, call_id, body.action, result=body.result), desk)


@operation("runs.labels", "What people and the verifier say of a run")
async def run_labels(desk: Desk, run_id: Id, *, paging: AtHand = ALL) -> Labels:
    """Ratings, the verdict of the agent's 'verify', decisions on its calls: the most reliable first."""
    handle = await desk.app.handle((await desk.run(run_id)).id)
    labels = list(enumerate(await handle.labels(), 1))
    rows, page = paging.of(labels, key=lambda item: str(item[0]))
    return Labels(labels=[LabelView(**dict(label)) for _, label in rows], **page)


@operation("runs.flow", "Who said what in a run, and what went where")
async def run_flow(desk: Desk, run_id: Id) -> RunFlow:
    """Each call with whose words it read, where its arguments came from, and what was decided about that."""
    row, response = await desk.run(run_id), await desk.response(run_id)
    calls = [] if response is None else response.tool_calls[-MOST_STEPS:]
    return RunFlow(
        run_id=row.id,
        request=await task_of(desk, row.id),
        calls=[
            FlowOfCall(
                call_id=record.call_id,
                tool_name=record.tool_name,
                reads=bool(record.read_only),
                status=record.status.value,
                label=record.label,
                arguments={source.argument: source.text for source in record.grounding or ()},
                flow=record.flow,
            )
            for record in calls
        ],
    )


@operation("runs.rate", "Say whether an ended run did what was asked")
async def rate_run(desk: Desk, run_id: Id, body: RatingBody) -> Label:
    """For whoever it was asked for, or with the permission 'runs:write'. A second rating by the same person replaces
    the first, and the same one again changes nothing."""
    return await desk.rate(run_id, body.rating, note=body.note)


class RunExport(BaseModel):
    """A whole run."""

    run: RunRow
    order: RunOrder | None = Field(description="What was asked.")
    facts: list[SerializeAsAny[Fact]]
    response: AgentResponse | None


@operation("runs.export", "The whole run: what was asked, every fact, what came out")
async def export_run(desk: Desk, run_id: Id) -> RunExport:
    return RunExport(
        run=await desk.run(run_id),
        order=await desk.order(run_id),
        facts=list(await desk.facts(run_id)),
        response=await desk.response(run_id),
    )


@operation("runs.result", "The whole result of one call")
async def call_result(desk: Desk, run_id: Id, call_id: Id) -> Any:
    """Also of one that is too large for its record."""
    response = await desk.response(run_id)
    for record in () if response is None else response.tool_calls:
        if record.call_id == call_id:
            return await (await desk.app.handle((await desk.run(run_id)).id)).whole(record)
    raise NotFoundError("call", call_id, message=f"run {run_id!r} has no finished call {call_id!r}")


@operation("runs.purge", "Forget runs that ended long ago, their facts and their approvals", permission="runs:write")
async def purge_runs(desk: Desk, *, older_than: Annotated[float, Field(ge=0, description="In seconds.")]) -> int:
    app = desk.app
    now = await app.store.now()
    purged = await app.store.runs.purge(ended_before=now - older_than)
    if purged:
        details = {"before": now - older_than, "runs": purged}
        await app.store.audit.append(
            "runs_purged", actor=desk.principal.id, run_id=None, subject="runs", details=details, now=now
        )
    return purged


# --- sessions


LONGEST_CURSOR = 300


class SessionView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    title: str = Field(description="As it was named, else how it began.", examples=["Remind me to buy milk"])
    principal: str | None = Field(validation_alias="principal_id")
    created_at: Moment
    updated_at: Moment
    message_count: int


class Sessions(Page):
    sessions: list[SessionView]
    next_cursor: str | None = Field(description="The same as 'next_after', by its former name.")


class SessionChange(Body):
    title: Annotated[
        str,
        worded("a title needs a letter, and no NUL character"),
        AfterValidator(lambda title: " ".join(title.split())),
    ] = Field(max_length=200, json_schema_extra={"pattern": WITH_A_LETTER}, examples=["Shopping"])


@operation("sessions.list", "Your sessions, most recently used first")
async def list_sessions(
    desk: Desk,
    *,
    q: Annotated[
        Sought, Field(max_length=200, description="Only those in whose title or messages each of these words occurs.")
    ] = "",
    cursor: Annotated[
        str | None, Field(max_length=LONGEST_CURSOR, description="The same as 'after', by its former name.")
    ] = None,
    paging: Paged = PAGE,
) -> Sessions:
    """With 'after' nothing is left out or shown twice although sessions are used in between."""
    place = _place("cursor", cursor) if paging.after is None else _place("after", paging.after)
    kept, asked = desk.app.store.conversations, {"principal_id": desk.visible(), "text": q}
    rows, page = await replace(paging, after=place).read(kept.list, kept.count, asked)
    if page["next_after"] is not None:
        # Not by the id alone: a session that is used meanwhile moves to the front, and none after it is to be lost.
        page["next_after"] = f"{rows[-1].updated_at!r}~{rows[-1].id}"
    views = [SessionView.model_validate(row) for row in rows]
    return Sessions(sessions=views, next_cursor=page["next_after"], **page)


@operation("sessions.show", "One session")
async def show_session(desk: Desk, session_id: str) -> SessionView:
    return SessionView.model_validate(await desk.session(session_id))


class History(Page):
    session_id: str
    messages: list[Message]


@operation("sessions.messages", "What was said in a session")
async def list_messages(
    desk: Desk,
    session_id: str,
    *,
    last: Annotated[int | None, Field(ge=1, le=MOST_AT_HAND, description="Only the latest so many messages.")] = None,
    limit: Most = MOST_AT_HAND,
    after: Annotated[After, Field(pattern="^[0-9]{1,9}$")] = None,
) -> History:
    """In order. Messages of a run are added when it has ended."""
    total = (await desk.session(session_id)).message_count
    first = min(total, max(int(after or 0), total - (last or total)))
    kept = desk.app.store.conversations
    messages = list(await kept.messages(session_id, offset=first, limit=limit, principal_id=desk.visible()))
    shown = first + len(messages)
    page = {"page": first // limit + 1, "page_size": limit, "total": total}
    return History(session_id=session_id, messages=messages, next_after=str(shown) if shown < total else None, **page)


@operation("sessions.rename", "Rename a session")
async def rename_session(desk: Desk, session_id: str, body: SessionChange) -> SessionView:
    await desk.must_own_session(session_id)
    rename = desk.app.store.conversations.rename
    if not await rename(session_id, body.title, by=desk.principal.id, principal_id=desk.changeable):
        raise NotFoundError("session", session_id)
    return await show_session(desk, session_id)


@operation("sessions.delete", "Forget what was said")
async def delete_session(desk: Desk, session_id: str) -> None:
    """Its messages are gone and what was allowed for it is revoked. A session at work is refused: cancel its run."""
    await desk.delete_session(session_id)


def _place(name: str, cursor: str | None) -> SessionPlace | None:
    if cursor is None:
        return None
    time, mark, session_id = cursor.partition("~")
    try:
        used = float(time)
    except ValueError:
        used = math.nan
    if not mark or not session_id or not math.isfinite(used) or "\0" in session_id:
        raise refused(name, f"it is what an earlier page gave as next_{name}")
    return used, session_id
