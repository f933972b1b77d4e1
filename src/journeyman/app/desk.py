"""What every door decides alike: who may see and change what, what a run waits for, what came of it, repeated requests.

A ``Desk`` is the app as one principal may use it. It knows no protocol; doors turn its errors into their own answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from journeyman.app.owners import in_words
from journeyman.core.approvals import Approval, ApprovalStatus, Label, Rating
from journeyman.core.audit import AuditNote
from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import digest
from journeyman.core.errors import ConfigurationError, JourneymanError, SessionTakenError
from journeyman.core.events import Fact
from journeyman.core.gaps import ToolGapReport
from journeyman.core.policy import ANY_PRINCIPAL, WRITE_ALL, Principal, PrincipalFilter
from journeyman.core.protocols import beside
from journeyman.core.runs import UNFINISHED, AgentResponse, RunStatus, SessionRow
from journeyman.core.specification import ToolSpecification
from journeyman.core.storing import RunOrder, RunRow, own_run_id
from journeyman.core.words import words as core_words
from journeyman.stores.processes import SqlIdempotency, SqlLeases
from journeyman.tools.library import nearest_names

if TYPE_CHECKING:
    from journeyman.app.handles import Handle
    from journeyman.app.journeyman import Journeyman
    from journeyman.app.service import Service

READ_ALL = "runs:read"
"""Who has it sees the runs, sessions and approvals of others."""
TASKS_WRITE = "tasks:write"
"""Who has it changes tasks and attachments by hand. Agents are bound by the permissions of their tools."""
MEMORY_WRITE = "memory:write"
"""Who has it adds and deletes documents of their own by hand. Another's are never seen, whatever the permission."""
GAPS_WRITE = "gaps:write"
"""Who has it sees what everybody missed, and dismisses what nobody is going to build."""
DECIDE = "approvals:decide"
"""Who has it decides about approvals and unknown outcomes."""
READ_AUDIT = "audit:read"
READ_CONFIGURATION = "configuration:read"
PLAYBOOKS_WRITE = "playbooks:write"
EXPERIMENTS_WRITE = "experiments:write"
LONGEST_NAME = 200
"""Characters of a field's name in a message."""
LOCAL = Principal("local", permissions={"*"})
"""Whoever uses a service that only this machine can reach."""


class DeskError(JourneymanError):
    """A request that is refused. ``code`` says why to a program, the text to a person."""

    def __init__(self, code: str, message: str, *, recover_action: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.recover_action = recover_action


class NotFoundError(DeskError):
    """There is no such thing, or the principal may not know that there is."""

    def __init__(self, kind: str, name: str, *, message: str | None = None, recover_action: str | None = None) -> None:
        code = f"{kind.upper().replace(' ', '_')}_NOT_FOUND"
        super().__init__(code, message or f"there is no {kind} {name!r}", recover_action=recover_action)
        self.kind = kind
        self.told = message or f"{kind.capitalize()} not found"
        """The same for somebody who has named it by its address."""


class NotPermittedError(DeskError):
    """The principal lacks a permission."""

    def __init__(self, principal: Principal, permission: str) -> None:
        super().__init__("PERMISSION_MISSING", f"{principal.id!r} lacks the permission {permission!r}")


class ConflictError(DeskError):
    """It clashes with how things stand."""


class InvalidInputError(DeskError):
    """A value cannot be meant."""

    def __init__(self, code: str, field: str, message: str) -> None:
        self.field = field.removeprefix(".")[:LONGEST_NAME] or "body"
        self.message = message
        super().__init__(code, f"{self.field}: {message}" if code == "VALIDATION_ERROR" else message)


@dataclass(frozen=True, slots=True)
class Blockers:
    """What keeps a run from going on. With ``earlier``, all else is about that run."""

    approvals: Sequence[Approval] = ()
    """What a person must decide."""
    unknown: Sequence[ToolCallRecord] = ()
    """Calls that were under way when their process died, and whose outcome a person must tell."""
    earlier: RunRow | None = None
    """The first unfinished run of the same session, which goes before this one."""
    error: JourneymanError | None = None
    """Why this process cannot go on with it: its tools are not bound here, for example."""
    unattended: bool = False
    """It could go on, and no living process holds it: no worker runs, or whoever began it is gone."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run that was waited for: its end, or what a person must do before it can go on."""

    status: RunStatus
    response: AgentResponse | None
    """None for a run that has not begun."""
    blockers: Blockers

    @property
    def kind(self) -> Literal["done", "failed", "waiting"]:
        return outcome_kind(self.status)

    @property
    def calls(self) -> Sequence[ToolCallRecord]:
        return () if self.response is None else self.response.tool_calls


def outcome_kind(status: RunStatus) -> Literal["done", "failed", "waiting"]:
    """What a status means to whoever asked for the run. Cancelled and stopped at a limit count as failed."""
    if status is RunStatus.COMPLETED:
        return "done"
    return "failed" if status.ended else "waiting"


class Desk:
    """The app as one principal may use it.

    ``resumes`` says whether a run goes on in this process when somebody has decided what it waited for. ``service`` is
    what the app is part of, where it has agents and tasks.
    """

    def __init__(
        self, app: Journeyman, principal: Principal, *, resumes: bool = True, service: Service | None = None
    ) -> None:
        self.app = app
        self.principal = principal
        self._resumes = resumes
        self._service = service
        self._store = app.store

    @property
    def service(self) -> Service:
        if self._service is None:
            raise ConfigurationError("there is no service here, only an app: open it with open_service()")
        return self._service

    # --- who may see and change what

    def _reads_all(self, also: str | None = None) -> bool:
        """Whether the principal sees what belongs to others; ``also`` is one more permission that will do."""
        return any(self.principal.may(permission) for permission in (READ_ALL, WRITE_ALL, also) if permission)

    def _sees(self, owner_id: str | None, also: str | None = None) -> bool:
        return owner_id == self.principal.id or self._reads_all(also)

    def sees_strategy(self, owner_id: str | None) -> bool:
        """Whether the principal sees a strategy: everybody's, their own, or by a permission."""
        return owner_id is None or self._sees(owner_id)

    def visible(self, also: str | None = None, *, only: str | None = None) -> PrincipalFilter:
        """Whose rows the principal sees; of these ``only`` one's, where that is asked for."""
        if only is not None and not self._sees(only, also):
            raise NotPermittedError(self.principal, READ_ALL)
        return only or (ANY_PRINCIPAL if self._reads_all(also) else self.principal.id)

    @property
    def changeable(self) -> PrincipalFilter:
        """Whose sessions the principal may change."""
        return ANY_PRINCIPAL if self.principal.may(WRITE_ALL) else self.principal.id

    def must_hold(self, permission: str) -> None:
        if not self.principal.may(permission):
            raise NotPermittedError(self.principal, permission)

    def note(self, kind: str, **details: Any) -> AuditNote:
        """What the audit is to say of a change that the principal makes."""
        return AuditNote(kind=kind, actor=self.principal.id, details=details, now=self.app.clock.time())

    def _must_own(self, owner_id: str | None) -> None:
        if owner_id != self.principal.id:
            self.must_hold(WRITE_ALL)

    # --- runs

    async def runs(self, *, principal_id: str | None = None, **only: Any) -> Sequence[RunRow]:
        """The runs the principal may see, newest first; those of one session by turn. ``only`` is for the store."""
        await self.app.approvals.expire()
        return await self._store.runs.list(principal_id=self.visible(only=principal_id), **only)

    async def facts(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[Fact]:
        """What a run the principal may see has done, in order."""
        return await self._store.runs.facts((await self.run(run_id)).id, after=after, limit=limit)

    async def order(self, run_id: str) -> RunOrder | None:
        """What a run the principal may see was asked."""
        return await self._store.runs.order((await self.run(run_id)).id)

    async def response(self, run_id: str) -> AgentResponse | None:
        """What a run the principal may see amounts to so far."""
        return await (await self.app.handle((await self.run(run_id)).id)).so_far()

    async def counts(self) -> tuple[int, int]:
        """How many runs are queued or under way, and how many approvals wait, among those the principal may see."""
        await self.app.approvals.expire()
        at_work = (RunStatus.RUNNING, RunStatus.QUEUED)
        runs = await self._store.runs.count(statuses=at_work, principal_id=self.visible())
        waiting = ApprovalStatus.PENDING
        return runs, await self._store.approvals.count(status=waiting, principal_id=self.visible(DECIDE))

    async def run(self, run_id: str, *, also: str | None = None) -> RunRow:
        """A run the principal may see, because it is theirs or by a permission; ``also`` is one more that will do.

        By its id, or by the name that the principal gave it: its id is in the row.
        """
        await self.app.approvals.expire()
        for name in (run_id, self.own_run_id(run_id)):
            row = await self._store.runs.get(name)
            if row is not None and self._sees(row.principal_id, also):
                return row
        raise NotFoundError("run", run_id)

    async def find_run(self, run_id: str) -> RunRow | None:
        """The same, or None."""
        try:
            return await self.run(run_id)
        except NotFoundError:
            return None

    async def cancel(self, run_id: str) -> RunRow:
        """End a run, wherever it is worked on."""
        row = await self._own_unfinished(run_id)
        await self.app.cancel(row.id, by=self.principal.id)
        return await self.run(row.id)

    async def resume(self, run_id: str) -> RunRow:
        """Have this process go on with a run that nobody works on. One that waits for a person goes on waiting."""
        row = await self._own_unfinished(run_id)
        await self.app.resume(row.id)
        return await self.run(row.id)

    async def own(self, run_id: str) -> RunRow:
        """A run that the principal may change."""
        row = await self.run(run_id)
        self._must_own(row.principal_id)
        return row

    async def _own_unfinished(self, run_id: str) -> RunRow:
        row = await self.own(run_id)
        if row.status.ended:
            raise ConflictError("RUN_ENDED", f"run {run_id!r} is {row.status.value} already")
        return row

    async def resolve(
        self, run_id: str, call_id: str, action: Literal["rerun", "done", "skip"], *, result: Any = None
    ) -> RunRow:
        """Say what became of a call whose outcome is unknown. Like an approval, it takes a person who may decide."""
        run_id = (await self.run(run_id, also=DECIDE)).id
        self.must_hold(DECIDE)
        handle = await self.app.handle(run_id)
        if call_id not in [record.call_id for record in await handle.unknown()]:
            raise ConflictError("CALL_NOT_UNKNOWN", f"call {call_id!r} of run {run_id!r} has no unknown outcome")
        await handle.resolve(call_id, action, result=result, by=self.principal.id)
        await self._go_on(run_id)
        return await self.run(run_id, also=DECIDE)

    async def rate(self, run_id: str, rating: Rating, *, note: str = "") -> Label:
        """Say whether a run did what was asked: whoever it was for, or who may change everybody's."""
        row = await self.own(run_id)
        if not row.status.ended:
            hint = "Rate it when it has ended"
            raise ConflictError("RUN_NOT_ENDED", f"run {run_id!r} is {row.status.value}", recover_action=hint)
        return await (await self.app.handle(row.id)).rate(rating, by=self.principal.id, note=note)

    async def _go_on(self, run_id: str) -> None:
        if self._resumes:
            await self.app.resume(run_id)

    # --- sessions

    async def session(self, session_id: str) -> SessionRow:
        """A session the principal may see."""
        row = await self._store.conversations.get(session_id)
        if row is None or not self._sees(row.principal_id):
            raise NotFoundError("session", session_id)
        return row

    async def has_session(self, session_id: str) -> bool:
        """Whether there is such a session, whoever's."""
        return await self._store.conversations.get(session_id) is not None

    async def own_sessions(self, *, limit: int = 50) -> Sequence[SessionRow]:
        """The principal's own sessions, most recently used first."""
        return await self._store.conversations.list(principal_id=self.principal.id, limit=limit)

    async def latest_order(self, session_id: str) -> RunOrder | None:
        """What was asked for last in a session, of what the principal sees."""
        rows = await self._store.runs.list(session_id=session_id, principal_id=self.visible(), limit=1)
        return await self._store.runs.order(rows[0].id) if rows else None

    async def must_own_session(self, session_id: str, *, new: bool = False) -> None:
        """Refuse to change another's session; with ``new``, one that is not there may be begun."""
        row = await self._store.conversations.get(session_id)
        if row is None and new:
            return
        if row is None or not self._sees(row.principal_id):
            raise NotFoundError("session", session_id)
        self._must_own(row.principal_id)

    @asynccontextmanager
    async def begins_in(self, session_id: str) -> AsyncIterator[None]:
        """Around the start of a run in a session, which may be new. It is refused where the session is another's."""
        await self.must_own_session(session_id, new=True)
        try:
            yield
        except SessionTakenError:  # somebody has begun it since it was looked at
            raise NotFoundError("session", session_id) from None

    async def delete_session(self, session_id: str) -> None:
        """Forget a session of which no run is unfinished."""
        await self.must_own_session(session_id)
        whose = self.changeable
        if await self._store.conversations.delete(session_id, by=self.principal.id, principal_id=whose):
            return
        if await self._store.runs.list(statuses=UNFINISHED, session_id=session_id, limit=1):
            raise ConflictError(
                "SESSION_AT_WORK", f"a run of session {session_id!r} has not ended", recover_action="Cancel it first"
            )
        raise NotFoundError("session", session_id)

    # --- approvals

    async def approvals(self, *, pending: bool = True, **only: Any) -> Sequence[Approval]:
        """The approvals the principal may see, oldest first: those that wait for a decision, or all."""
        await self.app.approvals.expire()
        status, whose = ApprovalStatus.PENDING if pending else None, self.visible(DECIDE)
        return await self._store.approvals.list(status=status, principal_id=whose, **only)

    async def approval(self, approval_id: str) -> Approval:
        """An approval the principal may see."""
        approval = await self.app.approvals.get(approval_id)
        whose = None if approval is None or approval.principal is None else approval.principal.id
        if approval is None or not self._sees(whose, DECIDE):
            raise NotFoundError("approval", approval_id)
        return approval

    async def approve(
        self, approval_id: str, *, arguments: dict[str, Any] | None = None, for_session: bool = False
    ) -> Approval:
        """Allow a call, and go on with its run here if no process does."""
        approve = self.app.approvals.approve
        return await self._decided(approve, approval_id, arguments=arguments, for_session=for_session)

    async def deny(self, approval_id: str, *, reason: str = "") -> Approval:
        """Refuse a call, and go on with its run here if no process does."""
        return await self._decided(self.app.approvals.deny, approval_id, reason=reason)

    async def _decided(self, decide: Callable[..., Awaitable[Approval]], approval_id: str, **how: Any) -> Approval:
        if not self.may_decide(await self.approval(approval_id)):
            self.must_hold(DECIDE)
        decided = await decide(approval_id, by=self.principal.id, **how)
        await self._go_on(decided.run_id)
        return decided

    def may_decide(self, approval: Approval) -> bool:
        """Whether the principal's word counts: whoever a question is for may answer it."""
        own = approval.principal is not None and approval.principal.id == self.principal.id
        return self.principal.may(DECIDE) or (approval.question is not None and own)

    # --- gaps

    async def miss_tool(self, name: str) -> None:
        """Somebody called a tool by a name that no tool has."""
        words = " ".join(core_words(name))
        if words:
            known = [tool.name for tool in self.app.library.specifications() if self.may_use(tool)]
            nearest = tuple(nearest_names(name, known, k=len(known)))
            report = ToolGapReport(missing_tools=(words,), attempted_task=name, existing_tools_checked=nearest)
            await self._store.gaps.add(report, now=self.app.clock.time(), principal_id=self.principal.id)

    def may_use(self, tool: ToolSpecification) -> bool:
        return tool.enabled and all(self.principal.may(permission) for permission in tool.permissions)

    # --- what a run waits for, and what came of it

    def holder(self, row: RunRow) -> str | None:
        """The living process that holds a run, in words; None when none does."""
        if row.owner is None or not self.app.runner.claims.held(row):
            return None
        return in_words(row.owner)

    async def blockers(self, row: RunRow) -> Blockers:
        """What keeps a run from going on as it stands; nothing does once it has ended."""
        if row.status.ended:
            return Blockers()
        earlier = await self._store.runs.ahead_of(row.id)
        row = earlier or row
        return Blockers(
            approvals=await self.app.approvals.pending(run_id=row.id),
            unknown=await (await self.app.handle(row.id)).unknown(),
            earlier=earlier,
            error=self.app.runner.trouble(row.id, row),
            unattended=not row.status.waiting and not self.app.runner.at_work(row.id) and self.holder(row) is None,
        )

    async def blocking(self, row: RunRow) -> RunRow | None:
        """The earlier run of the same session that keeps this one from beginning and that no process works on."""
        earlier = (await self.blockers(row)).earlier
        return None if earlier is None or self.holder(earlier) else earlier

    async def outcome(self, handle: Handle, *, session_id: str | None) -> Outcome:
        """Return when a run has ended, or when a person must act before it, or one ahead of it, can go on."""
        behind = session_id is not None and await self._store.runs.ahead_of(handle.run_id) is not None
        async with beside(handle.result(), *((self._is_blocked(handle.run_id),) if behind else ())) as waited:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not waited[0].done() and waited[-1].result():
                return Outcome(RunStatus.QUEUED, None, await self.blockers(await self.run(handle.run_id)))
            response: AgentResponse = await waited[0]
        waits = response.status.waiting
        return Outcome(
            response.status, response, await self.blockers(await self.run(handle.run_id)) if waits else Blockers()
        )

    async def _is_blocked(self, run_id: str) -> bool:
        """Whether the run ahead needs a person or cannot go on here; not as soon as there is none ahead."""
        while (earlier := await self._store.runs.ahead_of(run_id)) is not None:
            try:
                stuck = (await (await self.app.handle(earlier.id)).wait()).waiting
            except JourneymanError:
                stuck = True
            if stuck:
                return True
        return False

    # --- requests that are sent again

    def own_run_id(self, name: str) -> str:
        """The id of the run that the principal calls by this name. Another's run of that name is another run."""
        return own_run_id(self.principal.id, name)

    def run_id_for(self, door: str, key: str | None) -> str | None:
        """The id of the run that an idempotency key of the principal stands for."""
        return None if key is None else f"run_{digest('idempotency', door, self.principal.id, key)}"

    @property
    def requests(self) -> SqlIdempotency:
        """Requests that may be sent again without a key."""
        return self._store.idempotency

    @property
    def leases(self) -> SqlLeases:
        """What a door does in one process at a time."""
        return self._store.leases

    async def own_run(self, run_id: str) -> RunRow | None:
        """The principal's own run of this id; None where it is another's or there is none."""
        row = await self._store.runs.get(run_id)
        return row if row is not None and row.principal_id == self.principal.id else None

    async def own_order(self, run_id: str) -> RunOrder | None:
        """What the principal's own run of this id was asked; None where it is another's or there is none."""
        order = await self._store.runs.order(run_id)
        return order if order is not None and order.principal_id == self.principal.id else None

    async def begun_before(self, run_id: str, *, same: Callable[[RunOrder], bool]) -> RunOrder | None:
        """What an earlier request with the same run id asked for; refused where that was something else.

        None for a run of another principal, as if there were none.
        """
        order = await self.own_order(run_id)
        if order is None:
            return None
        if not same(order):
            raise ConflictError(
                "RUN_EXISTS",
                f"a run named {run_id!r} exists and is another one",
                recover_action="Use a new name, or a new Idempotency-Key",
            )
        return order
