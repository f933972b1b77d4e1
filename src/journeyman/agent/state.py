"""A run's state: nothing but the fold of its facts. A live run and a resumed one build it the same way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from journeyman.agent.builtin import FINISH, READ_RESULT, without_more
from journeyman.agent.guards import RepeatGuard
from journeyman.core.approvals import ApprovalStatus, Approve, Decision, Deny, Expired
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.errors import ErrorInfo
from journeyman.core.events import (
    Answered,
    ApprovalDecided,
    ApprovalRequested,
    CallFinished,
    CallResolved,
    CallsPlanned,
    CallStarted,
    Event,
    MessageReceived,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    RunSuspended,
    StepFinished,
    StrategiesInjected,
)
from journeyman.core.messages import Message, Role, ToolCall, Usage
from journeyman.core.playbook import Advice
from journeyman.core.principals import Principal
from journeyman.core.runs import LimitName, Limits, ReasoningStep, RunStatus, TaskInput
from journeyman.execution.executor import CallPast
from journeyman.execution.results import shrink, text_for_model, without_the_rest


@dataclass(slots=True)
class Turn:
    """The iteration under way: what the model asked for, and what has become of it so far."""

    iteration: int
    text: str
    calls: tuple[ToolCall, ...]
    asked_at: float
    confidence: float | None = None
    records: dict[str, ToolCallRecord] = field(default_factory=dict)
    pasts: dict[str, CallPast] = field(default_factory=dict)

    def past(self, call_id: str) -> CallPast:
        return self.pasts.setdefault(call_id, CallPast())


class RunState:
    """Everything the loop knows. Only facts change it."""

    def __init__(self, *, result_limit: int) -> None:
        self._result_limit = result_limit
        self.task: TaskInput | None = None
        self.agent: dict[str, object] = {}
        self.principal: Principal | None = None
        self.limits = Limits()
        self.status = RunStatus.QUEUED
        self.messages: list[Message] = []
        self.task_at = 0
        """Where in ``messages`` the task stands."""
        self.advice: tuple[Advice, ...] = ()
        self.limit_reached: LimitName | None = None
        self.steps: list[ReasoningStep] = []
        self.turn: Turn | None = None
        self.last_confidence: float | None = None
        self.usage = Usage()
        self.conclusion: Answered | None = None
        """The answer that the last step gave, before it is recorded as the run's."""
        self.answer: Answered | None = None
        self.error: ErrorInfo | None = None
        self.guard = RepeatGuard()
        self.call_ids: set[str] = set()
        self.tools_called: dict[str, None] = {}
        """Names of the tools that were called, each once, in order of first use."""
        self.cut_results: dict[str, str] = {}
        """Whole texts of results that were too long for the model, by handle."""
        self.fruitless = 0
        """Replies in a row that neither called a tool nor answered."""
        self.active_seconds = 0.0
        """How long the run was worked on; waiting for a person or for a process does not count."""
        self._last_time: float | None = None

    def apply(self, event: Event) -> None:
        """Take in one event; signals change nothing."""
        if event.seq is not None:
            if self._last_time is not None and not isinstance(event, RunResumed):
                self.active_seconds += max(0.0, event.time - self._last_time)
            self._last_time = event.time
        match event:  # the facts of every step first
            case MessageReceived():
                self._message(event)
            case CallsPlanned():
                pass
            case CallStarted():
                self._open(event.call_id).started = event
            case CallFinished():
                self._outcome(event.record)
            case StepFinished():
                self._step(event)
            case CallResolved(action="rerun"):
                past = self._open(event.call_id)
                past.started = past.unknown = None
            case RunResumed():
                self.status = RunStatus.RUNNING
            case RunStarted():
                self._start(event)
            case StrategiesInjected():
                self.advice = event.advice
            case ApprovalRequested():
                past = self._open(event.approval.call_id)
                past.approval, past.decision = event.approval, None
            case ApprovalDecided():
                self._open(event.call_id).decision = _decision(event)
            case Answered():
                self.answer = event
                self.messages.append(Message(role=Role.ASSISTANT, content=event.text))
            case RunSuspended():
                self.status = event.status
            case RunFinished() | RunFailed():
                if isinstance(event, RunFinished):
                    self.status, self.limit_reached = event.status, event.limit
                else:
                    self.status = RunStatus.FAILED
                self.error = event.error
            case _:
                pass

    def _start(self, fact: RunStarted) -> None:
        self.task, self.agent, self.principal, self.limits = fact.task, fact.agent, fact.principal, fact.limits
        # The whole texts of an earlier run's results are gone: nothing may promise them.
        self.messages = [_without_promise(message) for message in fact.history]
        self.task_at = len(self.messages)
        self.messages.append(Message.user(fact.task.description))
        self.call_ids = {call.id for message in fact.history for call in message.calls}
        self.status = RunStatus.RUNNING

    def _message(self, fact: MessageReceived) -> None:
        self.status = RunStatus.RUNNING
        self.usage += fact.usage
        self.last_confidence = fact.confidence
        self.turn = Turn(fact.iteration, fact.text, fact.calls, fact.started or fact.time, fact.confidence)
        for call in fact.calls:
            self.call_ids.add(call.id)
            self.tools_called[call.tool_name] = None

    def _open(self, call_id: str) -> CallPast:
        if self.turn is None:
            raise ValueError(f"a fact about call {call_id!r} outside any iteration: the journal is damaged")
        return self.turn.past(call_id)

    def _outcome(self, record: ToolCallRecord) -> None:
        if record.status is CallStatus.UNKNOWN:
            self._open(record.call_id).unknown = record
        elif self.turn is not None:
            self.turn.records[record.call_id] = record
            if (past := self.turn.pasts.get(record.call_id)) is not None:
                past.unknown = None

    def _step(self, fact: StepFinished) -> None:
        turn = self.turn
        if turn is None:
            return
        self.turn = None
        told: list[str] = []
        if turn.calls:
            said = tuple(self._bearable(call, turn.records[call.id]) for call in turn.calls)
            self.messages.append(Message.unchecked(role=Role.ASSISTANT, content=turn.text, calls=said))
            self.fruitless = 0
        for call in turn.calls:
            record = turn.records[call.id]
            whole = text_for_model(record)
            content = whole if len(whole) <= self._result_limit else self._shortened(record, whole)
            self.guard.note(turn.iteration, call, record)
            told.append(content)
            self.messages.append(_answer(call, content))
        if not turn.calls and fact.nudge is not None:
            if turn.text.strip():
                self.messages.append(Message(role=Role.ASSISTANT, content=turn.text))
            self.messages.append(Message.user(fact.nudge))
            self.fruitless += 1
        if fact.nudge is None:
            self.conclusion = answer_of(turn)
        self.steps.append(
            ReasoningStep.unchecked(
                iteration=turn.iteration,
                thought=fact.thought,
                action="call_tool" if turn.calls else "finish",
                calls=tuple(turn.records[call.id] for call in turn.calls),
                observation="\n".join(told) if told else (turn.text.strip() or "(the reply was empty)"),
                timestamp=turn.asked_at,
                duration_ms=fact.duration_ms,
            )
        )

    def _bearable(self, call: ToolCall, record: ToolCallRecord) -> ToolCall:
        """The call as it stays in the conversation: what never ran and is huge is not sent again at every step."""
        if record.attempts or record.success or not _larger([call.malformed or "", call.arguments], self._result_limit):
            return call
        return call.model_copy(update={"arguments": {}, "malformed": "(left out: they were too large)"})

    def _shortened(self, record: ToolCallRecord, whole: str) -> str:
        if record.status is not CallStatus.SUCCESS:
            return whole[: self._result_limit - 1] + "…"
        self.cut_results[record.call_id] = whole
        return shrink(whole, handle=record.call_id, limit=self._result_limit)


def answer_of(turn: Turn) -> Answered | None:
    """The answer a finished turn gives: its text when it called nothing, or what it told ``finish``."""
    if not turn.calls:
        return Answered(text=turn.text.strip(), confidence=turn.confidence)
    for record in turn.records.values():
        if record.tool_name == FINISH and record.status is CallStatus.SUCCESS:
            told: dict[str, Any] = record.result
            return Answered(
                text=told["answer"],
                reasoning=told["reasoning"] or None,
                confidence=told["confidence"] if told["confidence"] is not None else turn.confidence,
            )
    return None


def _larger(value: Any, limit: int) -> bool:
    """Whether a JSON value has about that many characters; of a huge one no more is looked at than needed."""
    stack, size = [value], 0
    while stack and size <= limit:
        match stack.pop():
            case str() as text:
                size += len(text)
            case dict() as mapping:
                size += len(mapping)
                stack.extend(mapping.keys())
                stack.extend(mapping.values())
            case list() as items:
                size += len(items)
                stack.extend(items)
            case int() as number:
                size += number.bit_length() // 3 + 1
            case _:
                size += 8
    return size > limit


def _without_promise(message: Message) -> Message:
    """A message of an earlier run, with no invitation to read what cannot be read any more."""
    if message.name == READ_RESULT:
        content = without_more(message.content)
    elif message.call_id is not None and READ_RESULT in message.content:
        content = without_the_rest(message.content, handle=message.call_id)
    else:
        return message
    return message if content == message.content else message.model_copy(update={"content": content})


def _answer(call: ToolCall, content: str) -> Message:
    # A model may call a tool without saying which; that is answered, too, and every answer needs a name.
    return Message.unchecked(role=Role.FUNCTION, content=content, name=call.tool_name or "unnamed", call_id=call.id)


def _decision(fact: ApprovalDecided) -> Decision:
    match fact.status:
        case ApprovalStatus.APPROVED:
            return Approve(arguments=fact.arguments, by=fact.by)
        case ApprovalStatus.EXPIRED:
            return Expired()
        case _:
            return Deny(reason=fact.reason or "", by=fact.by)
