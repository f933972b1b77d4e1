"""What happens in a run, as a closed set of events.

*Facts* are journalled and numbered; a run is nothing but its facts. *Signals* (text deltas, progress) are for whoever
is watching at that moment: they are neither journalled nor numbered.

Two versions of the program may work on one store. So a fact of a type, or with a field, that this version does not
know is kept in the journal and skipped when it is read: it is an ``UnknownFact``, never an error.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, SerializerFunctionWrapHandler, TypeAdapter, ValidationError, model_serializer
from pydantic_core import from_json

from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Decision, Deny, Expired, Label
from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import FORMAT, STORED, Entity
from journeyman.core.errors import ErrorInfo
from journeyman.core.gaps import ToolGapReport
from journeyman.core.playbook import Advice
from journeyman.core.policy import Principal
from journeyman.core.runs import (
    AgentResponse,
    FinishReason,
    LimitName,
    Limits,
    Message,
    RunStatus,
    SessionHistory,
    TaskInput,
    ToolCall,
    Usage,
)


class _Event(Entity):
    since: ClassVar[int] = 1
    """The format version from which on it is written; see ``data.FORMAT``."""

    run_id: str = ""
    seq: int | None = None
    """1, 2, 3… for facts; None for signals."""
    time: float = 0.0

    def stamp(self, run_id: str, seq: int | None, time: float) -> None:
        """Written once, by the recorder, before anybody else sees the event."""
        fields = self.__dict__
        fields["run_id"], fields["seq"], fields["time"] = run_id, seq, time


class RunStarted(_Event):
    """Everything needed to go on with the run in another process."""

    type: Literal["run_started"] = "run_started"
    agent: dict[str, Any]
    """The agent as it was when the run started: a later version does not change this run."""
    task: TaskInput
    principal: Principal | None = None
    limits: Limits = Limits()
    history: tuple[Message, ...] = ()
    session_history: SessionHistory | None = None
    """Where ``history`` is kept, if it is a session's. It is not written again with every run, but read from there."""
    trace_parent: str | None = None
    """The run's span, where it is traced: what other processes do for the run belongs to the same trace."""

    @model_serializer(mode="wrap")
    def _history_once(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        if self.session_history is not None and "history" in written:
            written["history"] = []
        return written


class RunResumed(_Event):
    """A process takes the run up again, after a crash, a hand-over, or a person's decision."""

    type: Literal["run_resumed"] = "run_resumed"
    owner: str = ""


class RunForked(_Event):
    """The run goes on from another one's past, which is not repeated; what was allowed there is not allowed here."""

    since: ClassVar[int] = 4
    type: Literal["run_forked"] = "run_forked"
    parent_id: str
    parent_seq: int
    iteration: int
    """The step that is taken otherwise."""
    say: str | None = None
    """What is said to the model before it goes on."""


class StrategiesInjected(_Event):
    """The advice that a run begins with: the caller's, and the playbook's."""

    type: Literal["strategies_injected"] = "strategies_injected"
    advice: tuple[Advice, ...] = ()


class ToolsOffered(_Event):
    """Which tools the model is told of, where the agent has more than that: the first choice and every change of it."""

    since: ClassVar[int] = 3
    type: Literal["tools_offered"] = "tools_offered"
    iteration: int
    """From which iteration on."""
    reason: Literal["strategy", "used", "chosen", "called", "found", "fallback", "cut", "limit"]
    """They are the tools of a strategy that the run was given; were used or offered before; fit the request;
    were called unasked; were found by ``find_tools``; may do what ``because`` could not; read a result that was cut.
    With ``limit`` there are only too many."""
    added: tuple[str, ...] = ()
    """They come after all that were offered before."""
    dropped: tuple[str, ...] = ()
    """Never used, the latest first, where there would have been too many."""
    because: str | None = None
    """The tool that failed for good, where these are tried instead."""


class MessageReceived(_Event):
    """The model answered: its text, the calls it asks for, what it cost."""

    type: Literal["message"] = "message"
    iteration: int
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    confidence: float | None = None
    model: str = ""
    started: float = 0.0
    """When the model was asked, in seconds since the epoch."""
    finish: FinishReason | None = Field(default=None, exclude_if=lambda reason: reason is None)
    """Why the model stopped, where its server says so."""
    returned: dict[str, Any] | None = Field(default=None, exclude_if=lambda kept: kept is None, repr=False)
    """What the provider wants back with the calls; see ``Message``."""


class CallsPlanned(_Event):
    """The calls of one iteration are requested. None has started."""

    type: Literal["calls_planned"] = "calls_planned"
    iteration: int
    calls: tuple[ToolCall, ...]


class ApprovalRequested(_Event):
    """A person is asked."""

    type: Literal["approval_requested"] = "approval_requested"
    approval: Approval


class ApprovalDecided(_Event):
    """A person answered, or nobody did in time."""

    type: Literal["approval_decided"] = "approval_decided"
    approval_id: str
    call_id: str
    status: ApprovalStatus
    by: str | None = None
    reason: str | None = None
    arguments: dict[str, Any] | None = None
    """The arguments as edited by the person, where they were."""
    answers: bool = Field(default=False, exclude_if=lambda answers: not answers)
    """Whether a question of the call was answered, and not whether it may run."""

    @classmethod
    def of(cls, approval: Approval, decision: Decision) -> ApprovalDecided:
        match decision:
            case Approve(arguments=edited, by=by):
                status, reason = ApprovalStatus.APPROVED, None
            case Deny(reason=reason, by=by):
                status, edited = ApprovalStatus.DENIED, None
            case Expired():
                status, edited, by, reason = ApprovalStatus.EXPIRED, None, None, None
        about: dict[str, Any] = {"approval_id": approval.id, "call_id": approval.call_id}
        return cls(
            **about, status=status, by=by, reason=reason, arguments=edited, answers=approval.question is not None
        )


class CallStarted(_Event):
    """Written before a side effect can begin."""

    type: Literal["call_started"] = "call_started"
    call_id: str
    execution_id: str
    tool_name: str
    attempt: int
    arguments: dict[str, Any]
    """The frozen arguments that run."""


class CallFinished(_Event):
    """Written after the side effect has ended."""

    type: Literal["call_finished"] = "call_finished"
    record: ToolCallRecord


class CallResolved(_Event):
    """A person settled a call whose outcome was unknown: run it again, take it as done, or leave it out."""

    type: Literal["call_resolved"] = "call_resolved"
    call_id: str
    action: Literal["rerun", "done", "skip"]
    by: str | None = None
    result: Any = None


class StepFinished(_Event):
    """One iteration is complete; its calls are in the facts before."""

    type: Literal["step_finished"] = "step_finished"
    iteration: int
    thought: str
    duration_ms: float
    nudge: str | None = None
    """What the model was told when its reply neither called a tool nor answered."""
    rendered: dict[str, str] | None = None
    """By call: what it came to in the words of its tool's ``render``, as Markdown for people."""


class StepRestarted(_Event):
    """The model is asked again for this iteration: drop what was shown of it."""

    type: Literal["step_restarted"] = "step_restarted"
    iteration: int
    reason: str = ""
    """What went wrong when the model was asked, where that is why."""
    seconds: float = 0.0
    """How long until it is asked again."""


class Answered(_Event):
    """The answer."""

    type: Literal["answer"] = "answer"
    text: str
    reasoning: str | None = None
    confidence: float | None = None
    output: Any = None
    """The answer as plain data, where the run was asked for data: it fits the agent's ``output``."""


class RunSuspended(_Event):
    """The run waits for a person and holds nothing while it waits."""

    type: Literal["run_suspended"] = "run_suspended"
    status: RunStatus
    waiting_for: tuple[str, ...]
    """Ids of approvals, or of calls whose outcome is unknown."""
    error: ErrorInfo | None = None
    """Why a stuck run is stuck, and what a person can do about it."""


class RunFinished(_Event):
    """The run ended: completed, cancelled, or at a limit."""

    type: Literal["run_finished"] = "run_finished"
    status: RunStatus
    limit: LimitName | None = None
    """The limit that was reached, where the status says that one was."""
    error: ErrorInfo | None = None
    labels: tuple[Label, ...] = ()
    """What people decided on its calls, and what its verifier says."""
    gap: ToolGapReport | None = None
    """What no tool could do, where the run ended without having done what was asked."""
    seconds: float | None = Field(default=None, exclude_if=lambda seconds: seconds is None)
    """How long the run was worked on."""
    response: AgentResponse | None = Field(default=None, exclude=True)
    """For whoever is listening live; not journalled, since it can be made from the facts."""


class RunFailed(_Event):
    """The run ended because it could not go on."""

    type: Literal["run_failed"] = "run_failed"
    error: ErrorInfo
    labels: tuple[Label, ...] = ()
    seconds: float | None = Field(default=None, exclude_if=lambda seconds: seconds is None)
    """How long the run was worked on."""
    response: AgentResponse | None = Field(default=None, exclude=True)


class TextDelta(_Event):
    """A piece of the model's text as it is written."""

    type: Literal["text_delta"] = "text_delta"
    iteration: int
    text: str


class CallProgress(_Event):
    """A running tool says how far it has come."""

    type: Literal["call_progress"] = "call_progress"
    call_id: str
    message: str
    fraction: float | None = None


class RunQueued(_Event):
    """A run waits for its turn; said again when its place changes."""

    type: Literal["run_queued"] = "run_queued"
    position: int = Field(ge=1)
    """1 is the next to begin."""


class UnknownFact(_Event):
    """A fact that a newer version has written. Whoever reads a run skips it; shown, it is what was written."""

    type: Literal["unknown"] = "unknown"
    content: dict[str, Any] = Field(default_factory=dict)

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        return self.content


Fact: TypeAlias = Annotated[
    RunStarted
    | RunResumed
    | RunForked
    | StrategiesInjected
    | ToolsOffered
    | MessageReceived
    | CallsPlanned
    | ApprovalRequested
    | ApprovalDecided
    | CallStarted
    | CallFinished
    | CallResolved
    | StepFinished
    | StepRestarted
    | Answered
    | RunSuspended
    | RunFinished
    | RunFailed
    | UnknownFact,
    Field(discriminator="type"),
]
Signal: TypeAlias = TextDelta | CallProgress | RunQueued
Event: TypeAlias = Fact | Signal


def read_fact(data: str | bytes) -> Fact:
    """A fact from its JSON text. Raises ValueError for what no version can have written: the journal is damaged."""
    try:
        return _facts().validate_json(data, extra="ignore", context=STORED)
    except ValidationError:
        content = from_json(data)
        if not isinstance(content, dict) or not isinstance(content.get("type"), str):
            raise
        if content["type"] in _TYPES and content.get("format", FORMAT) <= FORMAT:
            raise
        return UnknownFact.stored({**content, "type": "unknown", "content": content})


_TYPES = frozenset(
    kind.model_fields["type"].default for kind in _Event.__subclasses__() if kind.model_fields["type"].default
)
FIRST_FACTS = frozenset(kind for kind in _Event.__subclasses__() if kind.since == 1)
"""Types that every program which may be at work on a journal can read."""


@cache
def _facts() -> TypeAdapter[Fact]:
    # Built on first use: the union of all events is the most expensive schema of the package.
    return TypeAdapter(Fact)
