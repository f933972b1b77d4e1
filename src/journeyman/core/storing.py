"""Runs as they are kept, and the store that holds everything durable. Other protocols are beside their data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import Field, field_validator

from journeyman.core.approvals import ApprovalStore, GrantStore
from journeyman.core.audit import AuditStore
from journeyman.core.calls import ArtifactStore, CallStore, ToolCallRecord
from journeyman.core.conversations import ConversationStore
from journeyman.core.data import Entity, digest
from journeyman.core.events import CallStarted, Fact
from journeyman.core.experiments import ExperimentStore
from journeyman.core.gaps import GapStore
from journeyman.core.labels import LabelStore
from journeyman.core.memory import MemoryStore
from journeyman.core.messages import Message
from journeyman.core.playbook import PlaybookStore
from journeyman.core.principals import ANY_PRINCIPAL, Principal, PrincipalFilter
from journeyman.core.protocols import CircuitBreaker, Journal, RateLimiter
from journeyman.core.runs import Limits, RunStatus, TaskInput
from journeyman.core.tasks import TaskStore

LONGEST_LEASE = 3600.0
"""In seconds. One that ends later than that was not given by the clock as it is now: it was set back since."""


class ChainStep(Entity):
    """One call of a chain. Texts in its arguments may refer to results of earlier steps."""

    tool: str = Field(min_length=1)
    args: dict[str, Any] = Field(default_factory=dict)


class Origin(Entity):
    """How a command line named what a run was begun with, so that another command can load the same elsewhere."""

    agent: str | None = None
    library: str | None = None
    model: str | None = None
    folder: str = ""
    """Where modules and files were looked for; empty where nothing was."""

    @property
    def code(self) -> tuple[str | None, str | None, str]:
        """What decides which tools are loaded."""
        return self.agent, self.library, self.folder


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
    origin: Origin | None = None
    """None for a run that a program of somebody's own began: only they know where its tools are."""
    trace_parent: str | None = None
    """The span of whoever ordered it, where that was traced."""
    created_at: float

    @property
    def principal_id(self) -> str | None:
        principal = self.principal or self.task.principal
        return None if principal is None else principal.id


def own_run_id(principal_id: str | None, *names: str) -> str:
    """The id of the run that a principal calls by a name of their own. The same name of another is another run."""
    return f"run_{digest('run', principal_id or '', *names)}"


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
    deaths: int = 0
    """How many processes in a row have died, or were lost, while they held it and before it got any further."""
    trouble: str | None = None
    """Why the processes that tried could not go on with it: its tools are not bound there, for example."""
    trouble_since: float | None = None
    taken_from: str | None = None
    """Whom its holder took it from; None where it had been given back."""

    @field_validator("status", mode="before")
    @classmethod
    def _known(cls, value: str) -> str:
        """A newer version may have statuses that this one does not know."""
        return value if value in _STATUSES else RunStatus.UNKNOWN


class FormerOwner(Entity):
    """A process that a run was taken over from while it may have been at work on it."""

    owner: str
    silent_seconds: float
    """How long the database has not heard of it."""


class CallReport(Entity):
    """What is known of a call whose run was taken over while it was under way."""

    reported: bool = False
    record: ToolCallRecord | None = None
    """Its outcome. None, where it was reported: it did not begin, or may begin again."""
    at_work: tuple[FormerOwner, ...] = ()
    """Who may still report something, by all that the database knows."""


_STATUSES = frozenset(status.value for status in RunStatus)


ON_PROBATION = 2
"""From so many deaths on a run is worked on beside no other such run of the same process."""


class DueRun(NamedTuple):
    """A run that can go on."""

    id: str
    principal_id: str | None


class RunStore(Protocol):
    """Runs and their facts."""

    async def create(self, order: RunOrder, *, any_session: bool = False) -> bool:
        """Keep a new run as queued. False when there is one of that id: the first order counts.

        A session belongs to the principal of its first run. Raises SessionTakenError for anybody else's, unless
        ``any_session`` will do.
        """

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

    async def count(self, *, statuses: Collection[RunStatus], principal_id: PrincipalFilter = ANY_PRINCIPAL) -> int: ...

    async def unfinished(self, run_ids: Collection[str]) -> Collection[str]:
        """Those of these runs that are there and have not ended."""

    async def ahead_of(self, run_id: str) -> RunRow | None:
        """The first unfinished run of the same session before this one; None when the run is next or has begun."""

    async def claim(
        self,
        run_id: str,
        *,
        owner: str,
        lease_seconds: float,
        dead: Collection[str] = (),
        principal_limit: int | None = None,
        in_turn: bool = True,
    ) -> int | None:
        """Take a run over and return its new epoch, or None when it cannot be had.

        Leases begin and end by the database's clock: the clocks of its programs may differ.
        It can be had when it has not ended, nobody holds a lease on it (or the holder is among ``dead``, or is the
        claimer itself), no earlier run of its session is unfinished (unless it need not be ``in_turn``), and its
        principal has fewer than ``principal_limit`` runs under way. One that waits for a person to say that it may
        be tried again (``stuck``) only where it need not be ``in_turn``.

        Taking over from somebody who has died, or is lost, counts as one of its ``deaths``, unless it turns out to be
        alive: it announces itself, or gives the run back. A run with ``ON_PROBATION`` of them is
        had by an owner only while it holds no other such run: so it is known whose fault the next death is.
        """

    async def heard_of(self, owner: str) -> None:
        """This owner is alive: what was taken over from it did not kill it. Revives what was given up for that."""

    async def proved(self, run_id: str, *, epoch: int) -> None:
        """A run has got further than the processes that died on it or could not go on with it: forget these."""

    async def revive(self, run_id: str) -> None:
        """Let a run that is stuck, or that nobody could go on with, be tried again at once. A person's word."""

    async def note_trouble(self, run_id: str, text: str, *, now: float) -> None:
        """Say why a process cannot go on with a run. It is due again later, and each time later still."""

    async def renew(self, owner: str, *, lease_seconds: float) -> Sequence[str]:
        """Prolong the leases of everything this owner holds; returns the runs somebody wants cancelled."""

    async def request_cancel(self, run_id: str, *, by: str | None = None) -> bool:
        """Ask whoever holds the run to cancel it; False when it has ended or does not exist.

        The first who is named is the one of whom the audit tells.
        """

    async def release(self, run_id: str, *, owner: str, epoch: int) -> None:
        """Give a run back without ending it. One that was taken over: say that nothing of it is under way here."""

    async def report(self, started: CallStarted, record: ToolCallRecord | None) -> None:
        """What became of a call that was begun here, where the run was taken over meanwhile.

        None: it did not begin, or may begin again. Counts as long as nobody has settled or repeated the call.
        """

    async def reported(self, started: CallStarted) -> CallReport:
        """What is known of a call that another process has begun."""

    async def due(
        self,
        *,
        now: float,
        dead: Collection[str] = (),
        run_id: str | None = None,
        suspects: bool = False,
        rested: bool = True,
        limit: int = 100,
        offset: int = 0,
    ) -> Sequence[DueRun]:
        """Unheld runs that can go on now (or just this one, if it can).

        The highest priority first; of one priority the oldest of each principal, then the second of each, and so on.
        Queued ones whose session is free, running ones whose holder is gone, and waiting ones of which an approval
        was decided, or has expired, or the outcome of an unknown call was reported, since. With ``suspects`` those,
        and else only others, on which a process has died; the fewest deaths first. Runs that processes could not go on
        with lately are left out where they must be ``rested``.
        """

    async def waiting(self) -> Sequence[str]:
        """Queued runs that nobody holds, in the order in which they will be begun."""

    async def place(self, run_id: str) -> int:
        """How many of its principal's queued runs are as old or older, itself included."""

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


class SignalBatch(Entity):
    """Signals of a run that came after a fact, as a list in JSON; the first batch after it is number 1."""

    run_id: str
    after_seq: int
    number: int
    written_at: float
    content: str


class SignalStore(Protocol):
    """Signals on their way from the process that works on a run to those that show it."""

    async def read_until(self, run_id: str, until: float) -> None:
        """Say that somebody reads a run's signals, up to this time at least."""

    async def readers(self, *, now: float) -> Collection[str]:
        """The runs of which somebody reads the signals."""

    async def put(self, batches: Sequence[SignalBatch]) -> None:
        """Send signals. Those of the same run that came before an earlier fact are dropped."""

    async def after(self, run_id: str, after_seq: int, number: int) -> Sequence[SignalBatch]:
        """What was sent after a batch, in order."""

    async def purge(self, *, before: float) -> None:
        """Drop what was sent, and who has read, before this time."""


class NotedRequest(Entity):
    """A request that may be sent again, and the run that answers it."""

    digest: str
    run_id: str
    asked_at: float
    unanswered: bool = False
    """Whether its client was told to ask again, because the run waited for a person."""


class RequestStore(Protocol):
    """The latest request of each digest."""

    async def note(self, request: NotedRequest, *, unless_since: float | None = None) -> NotedRequest:
        """Note a request, unless the same was noted since then; returns the one that counts."""

    async def find(self, digest: str) -> NotedRequest | None: ...

    async def mark(self, digest: str, run_id: str, *, unanswered: bool) -> None:
        """Say whether its client still has an answer to come, if this run is still the one that gives it."""

    async def forget(self, digest: str, run_id: str) -> None:
        """Its client has its answer, and would mean another request by the same words."""


class ProgramStore(Protocol):
    """The programs at work on a store. They may be of different versions."""

    async def announce(self, owner: str, *, silent_seconds: float, executes: bool = True) -> int:
        """Say that this program is at work; returns the lowest format version of all that were seen lately.

        One that ``executes`` carries out runs; others only put them into the queue.
        """

    async def executing(self, *, silent_seconds: float) -> Sequence[str]:
        """The programs seen lately that carry out runs."""

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

    async def take(self, name: str, *, owner: str, lease_seconds: float, limit: int = 100) -> CursorBatch | None:
        """The next ended runs, oldest end first; None when there are none, or another process holds the cursor.

        What was taken and not advanced past comes again: to the same owner at once, to others when the lease is over.
        """

    async def advance(self, batch: CursorBatch, *, work: Callable[[Any], None] | None = None) -> None:
        """Commit that a batch was read, together with what ``work`` writes to this store: both or neither.

        Raises JournalConflictError where another process has taken the cursor over; then nothing is written.
        """


class Purged(Entity):
    """What was forgotten, by kind, and what that has freed."""

    counts: dict[str, int]
    bytes_before: int = 0
    bytes_after: int = 0


class Store(Protocol):
    """One database with everything durable in it."""

    @property
    def runs(self) -> RunStore: ...

    @property
    def cursors(self) -> CursorStore: ...

    @property
    def programs(self) -> ProgramStore: ...

    @property
    def signals(self) -> SignalStore: ...

    @property
    def requests(self) -> RequestStore: ...

    @property
    def approvals(self) -> ApprovalStore: ...

    @property
    def grants(self) -> GrantStore: ...

    @property
    def conversations(self) -> ConversationStore: ...

    @property
    def calls(self) -> CallStore: ...

    @property
    def artifacts(self) -> ArtifactStore: ...

    @property
    def audit(self) -> AuditStore: ...

    @property
    def gaps(self) -> GapStore: ...

    @property
    def labels(self) -> LabelStore: ...

    @property
    def experiments(self) -> ExperimentStore: ...

    @property
    def tasks(self) -> TaskStore: ...

    @property
    def memories(self) -> MemoryStore: ...

    @property
    def playbooks(self) -> PlaybookStore: ...

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

    async def purge(self, *, before: float, by: str | None = None, shrink: bool = True) -> Purged:
        """Forget what is older, in small steps, and give the room back if it is to ``shrink``.

        What went, and on whose word (``by``), is noted in the audit.
        """

    async def upgrade(self) -> int: ...

    async def downgrade(self, to: int) -> int: ...

    async def schema_version(self) -> int: ...
