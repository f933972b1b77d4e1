"""Runs and reports of experiments as they are kept, and what the store tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field, field_validator

from journeyman.core.calls import ToolCallRecord
from journeyman.core.content import Medium
from journeyman.core.data import Entity, Moment, digest
from journeyman.core.errors import ConfigurationError
from journeyman.core.policy import Principal
from journeyman.core.runs import Limits, Message, Outcome, RunStatus, TaskInput

LONGEST_LEASE = 3600.0
"""In seconds. One that ends after twice as long was not given by the clock as it is now, which was set back since: it
is anybody's. A longer one would be taken from the living."""
SHORTEST_LEASE = 0.1
"""The same of a process that works on runs: a shorter one ends while a busy machine is about to renew it."""


def checked_lease(seconds: float, *, least: float = -LONGEST_LEASE) -> float:
    """The same, if anybody may hold something for so long. Raises ConfigurationError."""
    if seconds < least:
        raise ConfigurationError(f"a lease of {seconds:g} s is too short: at least {least:g}")
    if not seconds <= LONGEST_LEASE:
        raise ConfigurationError(
            f"a lease of {seconds:g} s is too long: at most {LONGEST_LEASE:g}. It is renewed while its process lives; "
            "its length is only how long others wait for one that has died"
        )
    return seconds


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


class Fork(Entity):
    """From where a run goes on that shares the past of another one."""

    run_id: str = Field(min_length=1)
    """Its parent."""
    seq: int = Field(gt=0)
    """How many of the parent's facts are its past."""
    iteration: int = Field(gt=0)
    """The step that is taken otherwise."""
    say: str | None = None
    """What is said to the model before it goes on."""
    facts: tuple[dict[str, Any], ...] = ()
    """What the run begins with after that past, as JSON: calls with other arguments or results."""


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
    fork: Fork | None = None
    """Where its past is another run's."""
    created_at: float

    @property
    def principal_id(self) -> str | None:
        principal = self.principal or self.task.principal
        return None if principal is None else principal.id

    def by_reference(self) -> tuple[RunOrder, dict[str, str]]:
        """The order without the bytes of its images and files, and these by the ids of the artifacts they are to be."""
        texts: dict[str, str] = {}

        def kept(media: Sequence[Medium]) -> tuple[Medium, ...]:
            made = [medium.kept_in(self.run_id) for medium in media]
            texts.update({each.artifact: text for each, text in made if each.artifact and text is not None})
            return tuple(each for each, _ in made)

        if not self.task.media and not any(message.media for message in self.history):
            return self, texts
        history = [said.model_copy(update={"media": kept(said.media)}) if said.media else said for said in self.history]
        task = self.task.model_copy(update={"media": kept(self.task.media)})
        return self.model_copy(update={"task": task, "history": tuple(history)}), texts


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
    """Who holds it now, by the database's clock."""
    last_seq: int
    created_at: Moment
    updated_at: Moment
    deaths: int = 0
    """How many processes in a row have died, or were lost, while they held it and before it got any further."""
    trouble: str | None = None
    """Why the processes that tried could not go on with it: its tools are not bound there, for example."""
    trouble_seconds: float | None = None
    """How long that has lasted."""
    taken_from: str | None = None
    """Whom its holder took it from; None where it had been given back."""
    retry_at: float = 0.0
    """When it is due again, by the database's clock, after processes could not go on with it; 0 where it is not set."""
    cancel_wanted: bool = False
    """Whether somebody has asked for it to be cancelled. Whoever has it, or takes it up next, ends it."""
    request: str = ""
    """How what was asked begins; the order has the whole."""
    waits_until: Moment | None = None
    """When the first question that it waits for expires; None where it waits for no decision."""
    outcome: Outcome | None = None
    """What became of what was asked; None before the end, and for runs that an older version has ended."""
    model: str | None = None
    """The model that answered last, of a run that has ended; and the tokens that all of them read and wrote."""
    input_tokens: int | None = None
    output_tokens: int | None = None

    parent_id: str | None = None
    """The run whose past it shares, up to the fact ``parent_seq``."""
    parent_seq: int | None = None

    @field_validator("status", mode="before")
    @classmethod
    def _known(cls, value: str) -> str:
        """A newer version may have statuses that this one does not know."""
        return value if value in _STATUSES else RunStatus.UNKNOWN


class FormerOwner(Entity):
    """A process that a run was taken over from while it may have been at work on one of its calls."""

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
    left_by: str | None = None
    """Whose lease on it is over, or who has died with it."""


class Lease(Entity):
    """Who may do something that one process at a time does."""

    owner: str
    epoch: int
    """Goes up whenever it is taken."""


class SignalBatch(Entity):
    """Signals of a run that came after a fact, as a list in JSON; the first batch after it is number 1."""

    run_id: str
    after_seq: int
    number: int
    content: str


class NotedRequest(Entity):
    """A request that may be sent again, and the run that answers it."""

    digest: str
    run_id: str
    asked_at: float
    unanswered: bool = False
    """Whether its client was told to ask again, because the run waited for a person."""


class CursorBatch(Entity):
    """Ended runs that a reader has taken and not yet committed as read."""

    name: str
    epoch: int
    after: int
    up_to: int
    runs: tuple[RunRow, ...]


class Purged(Entity):
    """What was forgotten, by kind, and what that has freed."""

    counts: dict[str, int]
    bytes_before: int = 0
    bytes_after: int = 0


class ExperimentRow(Entity):
    """An experiment that was run, without its figures."""

    id: str = Field(min_length=1)
    name: str
    created_at: Moment
    winner: str | None
    """None where the evidence did not decide."""


class StoredExperiment(ExperimentRow):
    """An experiment with everything that was found."""

    report: str
    """JSON; what is in it is the experiments' business."""
