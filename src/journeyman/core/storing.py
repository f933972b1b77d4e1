"""What must survive a process, by aggregate: runs, approvals, conversations, calls, audit, gaps, experiments, tasks.

Protocols and the plain rows they speak of. How and where they are kept is the stores' business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from pydantic import Field

from journeyman.core.approvals import Approval, ApprovalStatus
from journeyman.core.data import Entity
from journeyman.core.events import Fact
from journeyman.core.messages import Message
from journeyman.core.principals import Principal
from journeyman.core.protocols import CircuitBreaker, Journal, RateLimiter
from journeyman.core.runs import Limits, RunStatus, TaskInput
from journeyman.core.tasks import Attachment, Task, TaskFilter, TaskPage, TaskSort, TaskVersion
from journeyman.core.understanding import ToolGapReport


class RunOrder(Entity):
    """What somebody asked for: enough to begin the run in any process."""

    run_id: str = Field(min_length=1)
    agent: dict[str, Any]
    task: TaskInput
    principal: Principal | None = None
    limits: Limits = Limits()
    history: tuple[Message, ...] = ()
    """For a run outside a session; a session's run takes the session's messages when it begins."""
    priority: int = 0
    """Higher goes first."""
    created_at: float


class RunRow(Entity):
    """Where a run stands."""

    id: str
    task_id: str
    agent_name: str
    session_id: str | None
    principal_id: str | None
    status: RunStatus
    priority: int
    epoch: int
    """Goes up with every claim; only writes with the current epoch are taken."""
    owner: str | None
    lease_until: float
    last_seq: int
    created_at: float
    updated_at: float


class RunStore(Protocol):
    """Runs and their facts."""

    async def create(self, order: RunOrder) -> bool:
        """Keep a new run as queued. False when there is one of that id: the first order counts."""

    async def order(self, run_id: str) -> RunOrder | None: ...

    async def get(self, run_id: str) -> RunRow | None: ...

    async def list(
        self,
        *,
        statuses: Collection[RunStatus] | None = None,
        session_id: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[RunRow]:
        """Newest first."""

    async def claim(
        self,
        run_id: str,
        *,
        owner: str,
        now: float,
        lease_until: float,
        dead: Collection[str] = (),
        principal_limit: int | None = None,
        in_turn: bool = True,
    ) -> int | None:
        """Take a run over and return its new epoch, or None when it cannot be had.

        It can be had when it has not ended, nobody holds a lease on it (or the holder is among ``dead``, or is the
        claimer itself), no earlier run of its session is unfinished (unless it need not be ``in_turn``), and its
        principal has fewer than ``principal_limit`` runs under way.
        """

    async def renew(self, owner: str, *, lease_until: float) -> Sequence[str]:
        """Prolong the leases of everything this owner holds; returns the runs somebody wants cancelled."""

    async def request_cancel(self, run_id: str) -> bool:
        """Ask whoever holds the run to cancel it; False when it has ended or does not exist."""

    async def release(self, run_id: str, *, epoch: int) -> None:
        """Give a run back without ending it."""

    async def due(
        self, *, now: float, dead: Collection[str] = (), run_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> Sequence[str]:
        """Unheld runs that can go on now (or just this one, if it can), highest priority first, then oldest.

        Queued ones whose session is free, running ones whose holder is gone, and waiting ones of which an approval
        was decided, or has expired, since.
        """

    async def owners(self) -> Sequence[str]:
        """Everybody who holds an unfinished run."""

    def journal(self, run_id: str, *, epoch: int) -> Journal:
        """The run's journal for the holder of this epoch: anybody else's writes raise JournalConflictError.

        In one transaction with the facts: the run's status and last_seq; suspended and ended runs are released; calls
        go to the call log; refusals to the audit; decided approvals are marked as consumed; an ended session run
        leaves its messages in the conversation. A CallStarted is committed when ``append`` returns, synced or not: it
        is where the fence stands.
        """

    async def facts(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[Fact]: ...

    async def purge(self, *, ended_before: float) -> int:
        """Forget ended runs (facts included) that are older; returns how many."""


class ApprovalStore(Protocol):
    """Questions to people and their answers."""

    async def ask(self, approval: Approval) -> Approval:
        """Keep the question (once) and return it as it stands now."""

    async def get(self, approval_id: str) -> Approval | None: ...

    async def list(
        self, *, status: ApprovalStatus | None = None, run_id: str | None = None, limit: int = 50, offset: int = 0
    ) -> Sequence[Approval]:
        """Oldest first."""

    async def decide(
        self,
        approval_id: str,
        status: ApprovalStatus,
        *,
        by: str,
        now: float,
        reason: str | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> Approval | None:
        """Decide a pending approval that has not expired; None when it was decided or had expired before.

        One conditional write: of two people deciding at once, one wins. Leaves an audit row.
        """

    async def edited_arguments(self, approval_id: str) -> dict[str, Any] | None:
        """The arguments a person put in place of the asked ones, where they did."""

    async def expire(self, *, now: float) -> Sequence[Approval]:
        """Mark what is past its time as expired, with an audit row each; returns them."""

    async def next_expiry(self) -> float | None: ...


class Grant(Entity):
    """A person's word that one tool may run without asking, for one principal in one chat session, until revoked."""

    id: str
    session_id: str
    tool_name: str
    granted_by: str
    granted_at: float
    revoked_at: float | None = None
    revoked_by: str | None = None
    principal_id: str | None = None
    """On whose behalf; None is nobody in particular, not everybody."""


class GrantStore(Protocol):
    async def grant(self, grant: Grant) -> None: ...

    async def revoke(self, grant_id: str, *, by: str, now: float) -> bool: ...

    async def list(self, *, session_id: str | None = None, active_only: bool = True) -> Sequence[Grant]: ...

    async def allows(self, session_id: str, tool_name: str, *, principal_id: str | None) -> Grant | None: ...


class SessionRow(Entity):
    """A stored conversation."""

    id: str
    principal_id: str | None
    created_at: float
    updated_at: float
    message_count: int


class ConversationStore(Protocol):
    """Sessions and what was said in them."""

    async def messages(self, session_id: str, *, last: int | None = None) -> Sequence[Message]:
        """In order; with ``last``, only the latest so many."""

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[SessionRow]:
        """Most recently used first."""

    async def get(self, session_id: str) -> SessionRow | None: ...

    async def delete(self, session_id: str) -> bool:
        """Forget a session: what was said, its ended runs, what was allowed in it. False when there is none."""


class CallRow(Entity):
    """One call, without its content."""

    execution_id: str
    run_id: str
    call_id: str
    tool_name: str
    status: str
    risk: str | None
    attempts: int
    cached: bool
    error_code: str | None
    started_at: float
    duration_ms: float


class CallStore(Protocol):
    """The log of tool calls, for health and accounting."""

    async def list(
        self, *, tool_name: str | None = None, run_id: str | None = None, since: float | None = None, limit: int = 100
    ) -> Sequence[CallRow]:
        """Newest first."""


class AuditRow(Entity):
    """Who decided or was refused what. Each row's hash covers the row and the hash before it. No content."""

    seq: int
    time: float
    kind: str
    """E.g. approval_approved, approval_denied, approval_expired, call_refused, grant_given, grant_revoked, resolved."""
    actor: str | None
    run_id: str | None
    subject: str
    """What it is about: an approval's, grant's or call's id."""
    details: dict[str, Any]
    previous: str
    hash: str


class AuditStore(Protocol):
    """The tamper-evident log."""

    async def append(
        self, kind: str, *, actor: str | None, run_id: str | None, subject: str, details: dict[str, Any], now: float
    ) -> AuditRow: ...

    async def list(self, *, after: int = 0, limit: int = 100) -> Sequence[AuditRow]: ...

    async def verify(self) -> int:
        """Check the whole chain and return its length. Raises AuditError naming the first row that does not fit."""


class GapRow(Entity):
    """A gap report as it was kept."""

    id: str
    created_at: float
    run_id: str | None
    report: ToolGapReport


class GapStore(Protocol):
    """What people asked for and no tool could do."""

    async def add(self, report: ToolGapReport, *, now: float, run_id: str | None = None) -> GapRow: ...

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[GapRow]:
        """Newest first."""


class ExperimentRow(Entity):
    """An experiment that was run, without its figures."""

    id: str = Field(min_length=1)
    name: str
    created_at: float
    winner: str | None
    """None where the evidence did not decide."""


class StoredExperiment(ExperimentRow):
    """An experiment with everything that was found."""

    report: str
    """JSON; what is in it is the experiments' business."""


class ExperimentStore(Protocol):
    """What experiments found."""

    async def add(self, experiment: StoredExperiment) -> None:
        """Keep a report. A later one of the same experiment takes its place."""

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[ExperimentRow]:
        """Newest first."""

    async def get(self, experiment_id: str) -> StoredExperiment | None: ...


class TaskStore(Protocol):
    """Tasks with their attachments and their earlier versions."""

    async def add(self, task: Task) -> Task:
        """Keep a new task (once) and return it as it stands."""

    async def get(self, task_id: str) -> Task | None: ...

    async def get_many(self, task_ids: Sequence[str]) -> Sequence[Task]:
        """Those of them that there are, in no particular order."""

    async def find(
        self,
        wanted: TaskFilter | None = None,
        *,
        sort: TaskSort = TaskSort.CREATED_DESC,
        limit: int = 50,
        offset: int = 0,
    ) -> TaskPage: ...

    async def change(self, task_id: str, change: Callable[[Task], Task], *, now: float) -> Task | None:
        """Put what ``change`` makes of a task in its place and return it; None when there is no such task.

        Nobody else's change comes in between. The version before is kept, unless nothing changed. Attachments can
        be added, by a reference that the task does not have yet; ``attach`` and ``detach`` do the rest. ``change`` may
        run more than once, and in another thread.
        """

    async def delete(self, task_id: str) -> bool:
        """Forget a task, its attachments and its versions."""

    async def versions(self, task_id: str) -> Sequence[TaskVersion]:
        """What a task was before, newest first."""

    async def stamps(self) -> Mapping[str, float]:
        """When each task was last changed, by id: enough to keep an index up to date."""

    async def attach(self, attachment: Attachment) -> Attachment | None:
        """Keep an attachment, unless its task has that reference: returns the one that is kept; None without a task."""

    async def attachment(self, attachment_id: str) -> Attachment | None: ...

    async def detach(self, attachment_id: str) -> bool: ...


class Store(Protocol):
    """One database with everything durable in it."""

    @property
    def runs(self) -> RunStore: ...

    @property
    def approvals(self) -> ApprovalStore: ...

    @property
    def grants(self) -> GrantStore: ...

    @property
    def conversations(self) -> ConversationStore: ...

    @property
    def calls(self) -> CallStore: ...

    @property
    def audit(self) -> AuditStore: ...

    @property
    def gaps(self) -> GapStore: ...

    @property
    def experiments(self) -> ExperimentStore: ...

    @property
    def tasks(self) -> TaskStore: ...

    @property
    def limiter(self) -> RateLimiter: ...

    @property
    def breaker(self) -> CircuitBreaker: ...

    @property
    def shared_limits(self) -> bool:
        """Whether several processes work on this store at once, so that limits must be counted in it."""

    async def open(self) -> None:
        """Connect and bring the schema up to date."""

    async def close(self) -> None: ...

    async def flush(self) -> None:
        """Return when everything written so far is committed."""

    async def upgrade(self) -> int: ...

    async def downgrade(self, to: int) -> int: ...

    async def schema_version(self) -> int: ...
