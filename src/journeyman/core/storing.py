"""Runs as they are kept, and the store that holds everything durable. Other protocols are beside their data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from pydantic import Field, field_validator

from journeyman.core.approvals import ApprovalStore, GrantStore
from journeyman.core.audit import AuditStore
from journeyman.core.calls import CallStore
from journeyman.core.conversations import ConversationStore
from journeyman.core.data import Entity
from journeyman.core.events import Fact
from journeyman.core.experiments import ExperimentStore
from journeyman.core.gaps import GapStore
from journeyman.core.messages import Message
from journeyman.core.principals import ANY_PRINCIPAL, Principal, PrincipalFilter
from journeyman.core.protocols import CircuitBreaker, Journal, RateLimiter
from journeyman.core.runs import Limits, RunStatus, TaskInput
from journeyman.core.tasks import TaskStore


class ChainStep(Entity):
    """One call of a chain. Texts in its arguments may refer to results of earlier steps."""

    tool: str = Field(min_length=1)
    args: dict[str, Any] = Field(default_factory=dict)


class RunOrder(Entity):
    """What somebody asked for: enough to begin the run in any process."""

    run_id: str = Field(min_length=1)
    agent: dict[str, Any]
    task: TaskInput
    principal: Principal | None = None
    limits: Limits = Limits()
    history: tuple[Message, ...] = ()
    """For a run outside a session; a session's run takes the session's messages when it begins."""
    chain: tuple[ChainStep, ...] = ()
    """The steps of a run that is a chain: it asks no model."""
    priority: int = 0
    """Higher goes first."""
    created_at: float


class RunRow(Entity):
    """Where a run stands."""

    id: str
    task_id: str
    agent_name: str
    session_id: str | None
    turn: int | None
    """Its place in its session: runs of a session go one after another, in this order."""
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

    @field_validator("status", mode="before")
    @classmethod
    def _known(cls, value: str) -> str:
        """A newer version may have statuses that this one does not know."""
        return value if value in _STATUSES else RunStatus.UNKNOWN


_STATUSES = frozenset(status.value for status in RunStatus)


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
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[RunRow]:
        """Newest first: those of one session by turn, others by when they were created."""

    async def ahead_of(self, run_id: str) -> RunRow | None:
        """The first unfinished run of the same session before this one; None when the run is next or has begun."""

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


class ProgramStore(Protocol):
    """The programs at work on a store. They may be of different versions."""

    async def announce(self, owner: str, *, now: float, alive_since: float) -> int:
        """Say that this program is at work; returns the lowest format version of all that were seen since then."""

    async def leave(self, owner: str) -> None: ...


class CursorBatch(Entity):
    """Ended runs that a reader has taken and not yet committed as read."""

    name: str
    epoch: int
    after: int
    up_to: int
    runs: tuple[RunRow, ...]


class CursorStore(Protocol):
    """Cursors over ended runs, by name: a learner reads each run exactly once, in whichever process it runs."""

    async def take(
        self, name: str, *, owner: str, now: float, lease_until: float, limit: int = 100
    ) -> CursorBatch | None:
        """The next ended runs, oldest end first; None when there are none, or another process holds the cursor.

        What was taken and not advanced past comes again: to the same owner at once, to others when the lease is over.
        """

    async def advance(self, batch: CursorBatch, *, work: Callable[[Any], None] | None = None) -> None:
        """Commit that a batch was read, together with what ``work`` writes to this store: both or neither.

        Raises JournalConflictError where another process has taken the cursor over; then nothing is written.
        """


class Store(Protocol):
    """One database with everything durable in it."""

    @property
    def runs(self) -> RunStore: ...

    @property
    def cursors(self) -> CursorStore: ...

    @property
    def programs(self) -> ProgramStore: ...

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
