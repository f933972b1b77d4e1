"""A call over MCP: a run like any other, which reports progress, can be cancelled, and may wait for a person.

Where the client can ask its user (elicitation) and the caller may decide, it is asked there; otherwise the answer says
that a person must decide elsewhere, and how is told to whoever runs the server.

A call is noted before it begins and forgotten with its answer. Where its gateway dies in between, its client goes away,
or a person must decide first, the same call made again is answered by the run that it has begun, not by a second one.
What only reads is noted when it waits: to make it again does no harm. A client that names its calls (``KEY``) needs no
notes: of two calls with one name the second never begins a run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from journeyman.app.chains import literal, start_chain
from journeyman.app.desk import DECIDE, ConflictError, Desk, DeskError, Outcome
from journeyman.app.handles import Handle
from journeyman.app.runner import ALIVE_SECONDS
from journeyman.core.approvals import Approval, ApprovalStatus
from journeyman.core.calls import SAID
from journeyman.core.data import canonical_json, digest, iso_time, new_id, visible
from journeyman.core.errors import ApprovalError, ConfigurationError, ErrorCategory
from journeyman.core.events import CallProgress
from journeyman.core.protocols import beside
from journeyman.core.specification import ToolSpecification
from journeyman.core.storing import NotedRequest, RunOrder, RunRow
from journeyman.doors.mcp.asking import LEVEL, Asking, Context, answered_by, missing_capability
from journeyman.doors.mcp.results import Look, failure, refusal, success

DOOR = "mcp"
KEY = "journeyman/idempotency-key"
"""Under which a client names a call, in its ``_meta``."""
LONGEST_KEY = 200
Steps = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Link:
    """Between a call and its run."""

    desk: Desk
    run_id: str
    begun: bool
    digest: str | None
    """Under which it is noted; None where its client has named it."""
    noted: bool = False

    async def note(self, *, unanswered: bool) -> None:
        """Let the same call find the run: at once where it was told to ask again, else if this process dies."""
        if self.digest is not None:
            now = self.desk.app.clock.time()
            request = NotedRequest(digest=self.digest, run_id=self.run_id, asked_at=now, unanswered=unanswered)
            await self.desk.requests.note(request)
            self.noted = True

    async def forget(self) -> None:
        """Its client has its answer: the same call is a new one."""
        if self.digest is not None and self.noted:
            await self.desk.requests.forget(self.digest, self.run_id)


def _same(order: RunOrder, desk: Desk, steps: Steps) -> bool:
    """Whether a run was ordered by this principal and is exactly this call."""
    if order.principal_id != desk.principal.id or not order.chain or len(order.chain) != len(steps):
        return False
    return all(
        step.tool == mine["tool"] and step.args == mine["args"] for step, mine in zip(order.chain, steps, strict=True)
    )


# --- carrying calls out
logger = logging.getLogger("journeyman.mcp")

APPROVAL = "approval"
"""Under which the question of an approval is asked."""
META_SAID = "journeyman/said"
"""Under which a client may tell, in its ``_meta``, what was said to its model: the request, earlier results."""
MOST_SAID = 200_000
CANCEL_SECONDS = 0.2
"""How long a notice of cancellation may lag behind the cancellation itself."""
DRAIN_SECONDS = 1.0
TASKS = "io.modelcontextprotocol/tasks"
"""The extension by which a client looks after a call that takes long, or waits for a person."""
TASK = "task"
"""In a tool's metadata: "always" for a call that is a task at once, "required" for clients with tasks only."""
TASK_SECONDS = 2.0
"""After which time a call becomes a task, where its client knows them."""
POLL_MILLISECONDS = 1_000
ASKED = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Allow this call", "default": False},
        "reason": {"type": "string", "title": "If not, why", "maxLength": 500},
    },
    "required": ["approve"],
}
Render: TypeAlias = Callable[[Any, Look], Awaitable[Any]]
"""Makes the answer of a request that is no call of a tool of what the call that it stands for gave."""


@dataclass(frozen=True, slots=True)
class Places:
    """How people are told to decide about a run elsewhere. The model is not: with a shell it could decide itself."""

    decide: Callable[[Approval], str]
    settle: Callable[[str, str], str]
    """From run id and call id."""
    tell: Callable[[str], None] = logger.warning
    """Shows it to whoever runs the server."""
    page: str | None = None
    """Where people decide who have a token."""


class Calls:
    """Carries out calls of tools for whoever asks."""

    def __init__(self, places: Places, *, elicit: bool, note_links: Callable[[str, Any], None]) -> None:
        self._places = places
        self._note_links = note_links
        self.asking: dict[str, Asking] = {}
        """By run, how to reach its client."""
        self._elicit = elicit
        self._answering: set[str] = set()
        """Runs that somebody here is about to be told of: the same call beside that one is another call."""
        self.cancelled: set[tuple[int, Any]] = set()
        """Requests that their client has cancelled, as ``cancellation_key`` has them."""

    async def call(
        self,
        ctx: Context,
        desk: Desk,
        item: ToolSpecification,
        params: types.CallToolRequestParams,
        render: Render | None = None,
    ) -> Any:
        """Carry a call out, or go on with it where its client has answered a question or asks again."""
        steps = [{"tool": item.name, "args": literal(params.arguments or {})}]
        seconds, kind = TASK_SECONDS if knows_tasks(ctx) and render is None else None, item.metadata.get(TASK)
        if seconds is None and render is None and kind == "required":
            raise missing_capability({"extensions": {TASKS: {}}}, f"{item.name!r} is for clients that know tasks")
        link = await self._link(desk, steps, params)
        self._answering.add(link.run_id)
        asking = self._reached(ctx, desk, link.run_id)
        try:
            if params.request_state is not None:
                await self._take_answer(desk, params, asking)
            if link.begun:
                handle = await desk.app.handle(link.run_id)
            else:
                if not item.read_only:
                    await link.note(unanswered=False)
                handle = await self._start(ctx, desk, steps, link, said=_said(params))
            if seconds is not None and kind == "always":
                return await self._as_task(desk, handle, link, asking)
            try:
                return await self._answer(ctx, desk, handle, link, render, seconds)
            except asyncio.CancelledError:
                with anyio.CancelScope(shield=True):
                    await self._cancel(ctx, desk, handle, link)
                raise
        finally:
            self._answering.discard(link.run_id)
            await asking.drain()
            self._forget_left(desk)

    def _reached(self, ctx: Context, desk: Desk, run_id: str) -> Asking:
        """How a run's calls reach its client: by its latest request."""
        level = connection_of(ctx).state.get(
            LEVEL, "debug" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else "info"
        )
        asking = self.asking.setdefault(run_id, Asking(ctx, answers=answered_by(ctx), level=level))
        asking.ctx = ctx
        desk.app.runner.shared.executors.callers[run_id] = asking
        return asking

    def recall(self, callers: dict[str, Any], order: RunOrder) -> None:
        """Let a run that is taken up again ask its client, who may come back for it."""
        caller = order.task.metadata.get(DOOR)
        if isinstance(caller, dict) and "answers" in caller and order.run_id not in self.asking:
            self.asking[order.run_id] = callers[order.run_id] = Asking(None, answers=caller["answers"])

    def _forget_left(self, desk: Desk) -> None:
        """Forget the clients of runs that nobody waits for and that are not at work."""
        runner = desk.app.runner
        for run_id, each in tuple(self.asking.items()):
            if run_id not in self._answering and not each.asked.is_set() and not runner.at_work(run_id):
                del self.asking[run_id]
                runner.shared.executors.callers.pop(run_id, None)

    async def _link(self, desk: Desk, steps: Steps, params: types.CallToolRequestParams) -> Link:
        """The run that answers a call: one that it has begun before, or a new one, which is not begun here."""
        key = (params.meta or {}).get(KEY)
        if key is not None:
            return await self._named(desk, steps, key)
        mark = digest(DOOR, desk.principal.id, canonical_json(steps))
        if params.request_state is not None:
            run_id = params.request_state.partition(" ")[0]
            order = await desk.own_order(run_id)
            if order is None or not _same(order, desk, steps):
                raise MCPError(types.INVALID_PARAMS, "the request state belongs to another call")
            return Link(desk, run_id, begun=True, digest=mark, noted=True)
        noted = await desk.requests.find(mark)
        if noted is not None and await self._open(desk, noted, steps):
            return Link(desk, noted.run_id, begun=True, digest=mark, noted=True)
        return Link(desk, new_id("run"), begun=False, digest=mark)

    async def _named(self, desk: Desk, steps: Steps, key: Any) -> Link:
        if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY:
            raise MCPError(types.INVALID_PARAMS, f"{KEY!r} must be a text of 1 to {LONGEST_KEY} characters")
        run_id = desk.run_id_for(DOOR, key)
        assert run_id is not None
        try:
            order = await desk.begun_before(run_id, same=lambda order: _same(order, desk, steps))
        except ConflictError:
            raise MCPError(types.INVALID_PARAMS, f"the {KEY!r} belongs to another call; use a new one") from None
        return Link(desk, run_id, begun=order is not None, digest=None)

    async def _open(self, desk: Desk, noted: NotedRequest, steps: Steps) -> bool:
        """Whether a noted call has no answer yet, and nobody is about to get it."""
        if noted.run_id in self._answering:
            return False
        order = await desk.own_order(noted.run_id)
        if order is None or not _same(order, desk, steps):
            return False
        if noted.unanswered:
            return True
        gateway = order.task.metadata.get(DOOR, {}).get("gateway")
        return gateway is None or await desk.app.runner.claims.gone(gateway, silent_seconds=ALIVE_SECONDS)

    async def _start(
        self, ctx: Context, desk: Desk, steps: list[dict[str, Any]], link: Link, *, said: list[str]
    ) -> Handle:
        caller = {"gateway": desk.app.runner.shared.owner, "answers": answered_by(ctx)}
        metadata = {DOOR: caller, **({SAID: said} if said else {})}
        try:
            return await start_chain(desk.app, steps, principal=desk.principal, run_id=link.run_id, metadata=metadata)
        except ConfigurationError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None

    async def _take_answer(self, desk: Desk, params: types.CallToolRequestParams, asking: Asking) -> None:
        """Hand over what the user has answered to a server's question, or do it where that was about an approval."""
        _, _, question = (params.request_state or "").partition(" ")
        answers = params.input_responses or {}
        if asking.asked.is_set() and question == asking.question:
            asking.answer(answers)
        elif (answered := answers.get(APPROVAL)) is not None:
            await self.decide(desk, question, answered)

    async def _answer(
        self, ctx: Context, desk: Desk, handle: Handle, link: Link, render: Render | None, seconds: float | None
    ) -> Any:
        """What came of a call. Its progress is reported meanwhile; one that takes long becomes a task."""
        wanted = (ctx.meta or {}).get("progress_token")
        asking = self.asking[handle.run_id]
        async with beside(*([_report(ctx, handle)] if wanted else [])) as reporting:
            while True:
                outcome = await self._ended(desk, handle, asking, seconds)
                if outcome is None and asking.asked.is_set():
                    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                        await asking.put()
                        continue
                    state = f"{handle.run_id} {asking.question}"
                    return types.InputRequiredResult(input_requests=dict(asking.requests), request_state=state)
                if outcome is None:
                    return await self._as_task(desk, handle, link, asking)
                if outcome.kind != "waiting":
                    if reporting:  # the events end with the run: what was reported last goes first
                        await asyncio.wait(reporting, timeout=DRAIN_SECONDS)
                    result = await self.result(desk, handle, outcome, render)
                    await link.forget()
                    return result
                await link.note(unanswered=True)
                approval = next(iter(outcome.blockers.approvals), None)
                if approval is None or not self.may_ask(ctx, desk, approval):
                    if seconds is not None:
                        return await self._as_task(desk, handle, link, asking)
                    return await self.result(desk, handle, outcome, render)
                form = question(approval)
                if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    asked = types.ElicitRequest(params=form)
                    return types.InputRequiredResult(
                        input_requests={APPROVAL: asked}, request_state=f"{handle.run_id} {approval.id}"
                    )
                answered = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
                if not await self.decide(desk, approval.id, answered):
                    return await self.result(desk, handle, outcome, render)

    async def _as_task(self, desk: Desk, handle: Handle, link: Link, asking: Asking) -> dict[str, Any]:
        """Leave a call to its client, by the id of its run. The same call is a new one from now on."""
        asking.task = True
        await link.forget()
        return {"resultType": "task", **task_fields(await desk.run(handle.run_id), "working")}

    def may_ask(self, ctx: Context, desk: Desk, approval: Approval) -> bool:
        """Whether whoever sits at the client can be asked, and their word counts."""
        if not self._elicit or approval.four_eyes or not desk.principal.may(DECIDE):
            return False
        return "elicitation/create" in answered_by(ctx)

    async def decide(self, desk: Desk, approval_id: str, answered: Any) -> bool:
        """Do what the user said; False where they said nothing."""
        if not isinstance(answered, types.ElicitResult):
            raise MCPError(types.INVALID_PARAMS, f"the answer about {approval_id!r} must be that of an elicitation")
        content = answered.content or {}
        try:
            match answered.action:
                case "accept" if content.get("approve") is True:
                    await desk.approve(approval_id)
                case "accept":
                    await desk.deny(approval_id, reason=str(content.get("reason") or "")[:500])
                case "decline":
                    await desk.deny(approval_id, reason="the user declined")
                case _:
                    return False
        except (ApprovalError, DeskError):
            # Decided elsewhere meanwhile, expired, or never theirs to decide: what the run says of it is shown.
            approval = await desk.app.approvals.get(approval_id)
            return approval is not None and approval.status is not ApprovalStatus.PENDING
        return True

    async def _ended(self, desk: Desk, handle: Handle, asking: Asking, seconds: float | None) -> Outcome | None:
        """What came of the run, once it has ended or waits; None where something is asked before, or time is up."""
        async with beside(desk.outcome(handle, session_id=None), asking.asked.wait()) as both:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED, timeout=seconds)
            return both[0].result() if both[0].done() else None

    async def result(self, desk: Desk, handle: Handle, outcome: Outcome, render: Render | None) -> Any:
        if outcome.kind == "waiting":
            if render is not None:
                raise MCPError(types.INVALID_REQUEST, self.waiting(handle.run_id, outcome))
            return failure(self.waiting(handle.run_id, outcome))
        record = next(iter(outcome.calls), None)
        if record is None:
            error = None if outcome.response is None else outcome.response.error
            return failure(error.message if error is not None else f"the run {handle.run_id} ended without a call")
        if not record.success:
            if render is not None:
                assert record.error is not None
                wrong = record.error.category is ErrorCategory.INVALID_INPUT
                raise MCPError(types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR, record.error.message)
            if record.error and record.error.code == "NOBODY_TO_ASK" and (missing := self._missing(handle.run_id)):
                raise missing_capability(missing, record.error.message)
            return refusal(record)
        tool, store, value = desk.app.library.lookup(record.tool_name), desk.app.store, await handle.whole(record)
        foreign = tool is not None and "mcp" in tool.specification.metadata
        if tool is not None and foreign:
            self._note_links(tool.origin, value)

        def look_up(artifact_id: str) -> Awaitable[str | None]:
            return store.artifacts.read(handle.run_id, artifact_id)

        if render is not None:
            return await render(value, look_up)
        declared = tool is not None and declares_object(tool.specification)
        return await success(value, look_up, declared=declared, foreign=foreign, media=record.media)

    def _missing(self, run_id: str) -> Mapping[str, Any]:
        """What a client would have to be capable of; the older protocol does not tell."""
        asking = self.asking.get(run_id)
        modern = asking and asking.ctx and asking.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return asking.missing if asking is not None and modern else {}

    def waiting(self, run_id: str, outcome: Outcome) -> str:
        blockers, page = outcome.blockers, self._places.page
        where = "" if page is None else f", at {page}"
        for approval in blockers.approvals:
            self._places.tell(f"{visible(approval.tool_name)!r} waits for you. {self._places.decide(approval)}")
        for record in blockers.unknown:
            self._places.tell(f"{visible(record.tool_name)!r}: {self._places.settle(run_id, record.call_id)}")
        lines = [
            f"This call has not run yet: {approval.tool_name!r} ({approval.risk.value}) waits for a person's approval, "
            f"until {approval.expires_at:%Y-%m-%d %H:%M} UTC. Only a person can give it, elsewhere: tell the user that "
            f"{approval.id!r} waits for them{where}.\n"
            "Once it is decided, make the same call again for its result; do not try another way meanwhile."
            for approval in blockers.approvals
        ]
        lines += [
            f"Whether {record.tool_name!r} took effect, nobody knows: "
            f"{'' if record.error is None else record.error.message}. Do not repeat it. Only a person can settle that, "
            f"elsewhere: tell the user of call {record.call_id!r} of run {run_id!r}{where}."
            for record in blockers.unknown
        ]
        if blockers.error is not None:
            lines.append(f"The run cannot go on here: {blockers.error}")
        return "\n".join(lines) or f"The run {run_id} waits ({outcome.status.value})."

    async def _cancel(self, ctx: Context, desk: Desk, handle: Handle, link: Link) -> None:
        """End the run where its client has cancelled the call. One that is gone has not, and may be back."""
        # Over HTTP the newer protocol has no other notice than to hang up. Whoever names a call comes back for it.
        hung_up = ctx.request is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if not hung_up or link.digest is None:
            key = cancellation_key(ctx, ctx.request_id)
            if key not in self.cancelled:
                await asyncio.sleep(CANCEL_SECONDS)
            if key not in self.cancelled:
                if link.noted:
                    await link.note(unanswered=True)
                return
            self.cancelled.discard(key)
        with suppress(DeskError):
            await desk.cancel(handle.run_id)
        await link.forget()


def knows_tasks(ctx: Context) -> bool:
    """Whether a client has said that it looks after tasks."""
    can = ctx.session.client_capabilities if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else None
    return can is not None and TASKS in (can.extensions or {})


def task_fields(row: RunRow, status: str) -> dict[str, Any]:
    """What is told of a task. It is kept as long as its run is, for which there is no time to tell."""
    return {
        "taskId": row.id,
        "status": status,
        "createdAt": iso_time(row.created_at),
        "lastUpdatedAt": iso_time(row.updated_at),
        "ttlMs": None,
        "pollIntervalMs": POLL_MILLISECONDS,
    }


def connection_of(ctx: Context) -> Connection:
    """The client's connection, which lasts longer than one request; the package shows it to nobody else."""
    return ctx.session._connection


def cancellation_key(ctx: Context, request_id: Any) -> tuple[int, Any]:
    """What a request and the notice that cancels it have in common.

    The newer protocol has a connection per message, so it is the channel they came over; and where one has none
    (HTTP), the connection itself, whose requests nobody else can cancel.
    """
    connection = connection_of(ctx)
    return id(connection.outbound if connection.has_standalone_channel else connection), request_id


def declares_object(item: ToolSpecification) -> bool:
    return item.returns is not None and item.returns.get("type") == "object"


def _said(params: types.CallToolRequestParams) -> list[str]:
    """What the client says was said to its model: only with that can be known where arguments came from."""
    said = (params.meta or {}).get(META_SAID) or []
    texts = [said] if isinstance(said, str) else said
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise MCPError(types.INVALID_PARAMS, f"{META_SAID!r} in _meta must be a text or a list of texts")
    if (chars := sum(map(len, texts))) > MOST_SAID:
        raise MCPError(types.INVALID_PARAMS, f"{META_SAID!r} in _meta has {chars:,} characters, at most {MOST_SAID:,}")
    return texts


def question(approval: Approval) -> types.ElicitRequestFormParams:
    about = f"\nIt is about: {visible(approval.about)}" if approval.about else ""
    flow = f"\nLook twice: {visible(approval.flow)}" if approval.flow else ""
    names = visible(", ".join(approval.ungrounded))
    invented = f"\nFound nowhere in what was said, may be invented: {names}" if names else ""
    unbound = f"\nNot bound to {visible(approval.not_bound_to)}" if approval.not_bound_to else ""
    message = (
        f"Allow the call of {approval.tool_name!r} ({approval.risk.value})?{about}\n"
        f"Arguments: {approval.arguments_json}{flow}{invented}{unbound}"
    )
    return types.ElicitRequestFormParams(message=message, requested_schema=ASKED)


async def _report(ctx: Context, handle: Handle) -> None:
    """Pass progress on as it comes. The protocol wants a number that grows."""
    last = 0.0
    async with aclosing(handle.batches()) as batches:
        async for batch in batches:
            for event in batch:
                if isinstance(event, CallProgress):
                    known = event.fraction is not None
                    last = max(event.fraction or 0.0, last + 1e-6) if known else last + 1
                    await ctx.session.report_progress(last, 1.0 if known else None, event.message or None)
