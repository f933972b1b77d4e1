"""A run's state: nothing but the fold of its facts. A live run and a resumed one build it the same way."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from journeyman.agent.offer import READ_RESULT, without_more
from journeyman.core import events
from journeyman.core.approvals import (
    LONGEST_NOTE,
    NOBODY,
    ApprovalStatus,
    Approve,
    Decision,
    Deny,
    Expired,
    Label,
    LabelSource,
)
from journeyman.core.calls import Artifact, CallStatus, DataLabel, ToolCallRecord
from journeyman.core.data import canonical_json, unchecked
from journeyman.core.errors import ErrorCategory, ErrorInfo, Severity
from journeyman.core.gaps import ToolGapReport
from journeyman.core.playbook import REMINDER, Advice
from journeyman.core.policy import Principal
from journeyman.core.runs import (
    AgentResponse,
    FinishReason,
    LimitName,
    Limits,
    Message,
    ReasoningStep,
    Role,
    RunStatus,
    TaskInput,
    ToolCall,
    Usage,
)
from journeyman.core.specification import FINISH
from journeyman.execution.executor import CallPast
from journeyman.execution.outcome import Refusal, refuse
from journeyman.execution.results import larger, shrink, text_for_model, without_the_rest

EMPTY = "(the reply was empty)"
REPEATED = "REPEATED_CALL"
UNFIT = "Your answer does not fit: "
"""Begins what a model is told of an answer that is not the data that was asked for; what is wrong follows."""

MANY_FACTS = 5_000
"""After so many facts, and each time again, what a run keeps is taken out of garbage collection."""
_large: dict[int, None] = {}
"""States with as many. Changed in one operation: a state may be let go of in any thread."""


@dataclass(slots=True)
class Turn:
    """The iteration under way: what the model asked for, and what has become of it so far."""

    iteration: int
    text: str
    calls: tuple[ToolCall, ...]
    asked_at: float
    confidence: float | None = None
    finish: FinishReason | None = None
    returned: dict[str, Any] | None = None
    records: dict[str, ToolCallRecord] = field(default_factory=dict)
    pasts: dict[str, CallPast] = field(default_factory=dict)


def _let_go(state: int) -> None:
    _large.pop(state, None)
    if not _large:
        gc.unfreeze()


_NO_LIMITS, _NOTHING_USED = Limits(), Usage()


class RunState:
    """Everything the loop knows. Only facts change it."""

    def __init__(self, *, result_limit: int) -> None:
        self._result_limit = result_limit
        self.task: TaskInput | None = None
        self.agent: dict[str, object] = {}
        self.principal: Principal | None = None
        self.limits = _NO_LIMITS
        self.status = RunStatus.QUEUED
        self.messages: list[Message] = []
        self.has_media = False
        """Whether any of them comes with images or files."""
        self.task_at = 0
        """Where in ``messages`` the task stands."""
        self.taint: DataLabel | None = None
        """The label of all that was read so far, together: what the model says from then on has it."""
        self.advice: tuple[Advice, ...] = ()
        self.limit_reached: LimitName | None = None
        self.steps: list[ReasoningStep] = []
        self.turn: Turn | None = None
        self.usage = _NOTHING_USED
        self.model = ""
        """Which model answered last."""
        self.finish: FinishReason | None = None
        """Why it stopped."""
        self.conclusion: events.Answered | None = None
        """The answer that the last step gave, before it is recorded as the run's."""
        self.answer: events.Answered | None = None
        self.error: ErrorInfo | None = None
        self.decisions: dict[str, Label] = {}
        """What people decided, by call."""
        self.labels: tuple[Label, ...] = ()
        """What the run ended with."""
        self.response: AgentResponse | None = None
        """What it amounts to, where it has ended in this process."""
        self.gap: ToolGapReport | None = None
        self.forked = False
        """Whether its past is another run's."""
        self.trace_parent: str | None = None
        """The span that the run began with, where it is traced."""
        self.guard = RepeatGuard()
        self.call_ids: set[str] = set()
        self.cut_results: dict[str, str | Artifact] = {}
        """Results that were too long for the model, by handle: their whole texts, or where these are kept."""
        self.renderings: dict[str, str] = {}
        """By call: what it came to in the tool's own words, for people."""
        self.offered: list[str] = []
        """What the model is told of, in order, where it is told of some tools only."""
        self.offer_known = False
        """Whether the first choice was recorded: what came after it is worth nothing by itself."""
        self.offered_at = 0
        """Before how many steps that was decided last: what later steps found or called is not in it."""
        self.found: dict[str, int] = {}
        """Tools that were added to it because they were found or may do instead of another, and at which iteration."""
        self.fallbacks: set[str] = set()
        """Tools that failed for good, in whose place others are offered."""
        self.fruitless = 0
        """Replies in a row that neither called a tool nor answered."""
        self.wants_output = False
        """Whether the answer must be data that fits the agent's ``output``."""
        self.invalid_outputs = 0
        """Answers that did not fit it."""
        self.output_problem = ""
        """What was wrong with the latest of them."""
        self.active_seconds = 0.0
        """How long the run was worked on; waiting for a person or for a process does not count."""
        self._last_time: float | None = None
        self._facts = 0

    @property
    def read_only_tools(self) -> frozenset[str]:
        """Those of the agent's own tools that only read, by name."""
        tools = self.agent.get("tools")
        if not isinstance(tools, list | tuple):
            return frozenset()
        return frozenset(str(item["name"]) for item in tools if item.get("read_only"))

    def seconds_until(self, now: float) -> float:
        """How long the run was worked on, if it is until now."""
        return self.active_seconds + max(0.0, now - (now if self._last_time is None else self._last_time))

    def apply(self, event: events.Event) -> None:
        """Take in one event; signals change nothing."""
        kind = type(event)
        if event.seq is not None:
            now, before = event.time, self._last_time
            if before is not None and now > before and kind is not events.RunResumed:
                self.active_seconds += now - before
            self._last_time = now
            self._facts += 1
            if self._facts % MANY_FACTS == 0:
                self._spare_collections()
        # The facts of every step first, by their type itself: a pattern that does not match costs as much as the rest.
        if (take := _OF_A_STEP.get(kind)) is not None:
            take(self, event)
            return
        match event:
            case events.CallResolved(action="rerun"):
                past = self._open(event.call_id)
                past.started = past.unknown = None
            case events.RunResumed():
                self.status, self.error = RunStatus.RUNNING, None
            case events.RunStarted():
                self._start(event)
            case events.RunForked():
                self._fork(event)
            case events.StrategiesInjected():
                self.advice = event.advice
            case events.ToolsOffered():
                self._offer(event)
            case events.ApprovalRequested(approval=approval):
                past = self._open(approval.call_id)
                if approval.question is None:
                    past.approval, past.decision = approval, None
                    return
                past.questions[approval.id] = None
                if not approval.question.held:
                    past.started = None  # it is begun again with the answer
            case events.ApprovalDecided(status=ApprovalStatus.SUPERSEDED):
                past = self._open(event.call_id)
                past.approval = past.decision = None
            case events.ApprovalDecided(answers=True):
                self._open(event.call_id).questions[event.approval_id] = decision_of(event)
            case events.ApprovalDecided():
                self._open(event.call_id).decision = decision_of(event)
                if (label := _decision_label(event)) is not None:
                    self.decisions[event.call_id] = label
            case events.Answered():
                self.answer = event
                self.messages.append(
                    unchecked(Message, {"role": Role.ASSISTANT, "content": event.text, "label": self.taint})
                )
            case events.RunSuspended():
                self.status, self.error = event.status, event.error
            case events.RunFinished() | events.RunFailed():
                if isinstance(event, events.RunFinished):
                    self.status, self.limit_reached, self.gap = event.status, event.limit, event.gap
                else:
                    self.status = RunStatus.FAILED
                self.error, self.labels, self.response = event.error, event.labels, event.response
                self.active_seconds = self.active_seconds if event.seconds is None else event.seconds
            case _:
                pass

    def _spare_collections(self) -> None:
        """Have garbage collections pass over what there is now.

        Each full one goes through every object of the process, in one go: after a hundred thousand facts that holds up
        everybody for longer than all other work. What a run keeps is freed by counting references, without them. Cyclic
        garbage of others waits until the last large run is let go of.
        """
        _large[id(self)] = None
        if self._facts == MANY_FACTS:
            weakref.finalize(self, _let_go, id(self)).atexit = False
        gc.collect(1)
        gc.freeze()

    def let_go(self) -> None:
        """Nobody works on the run any more: what it keeps is garbage like any other, also where it refers to itself."""
        if id(self) in _large:
            _let_go(id(self))

    def _start(self, fact: events.RunStarted) -> None:
        self.task, self.agent, self.principal, self.limits = fact.task, fact.agent, fact.principal, fact.limits
        self.trace_parent = fact.trace_parent
        # The whole texts of an earlier run's results are gone: nothing may promise them.
        self.messages = [_without_promise(message) for message in fact.history]
        self.task_at = len(self.messages)
        task = fact.task
        self.messages.append(unchecked(Message, {"role": Role.USER, "content": task.description, "media": task.media}))
        self.has_media = any(message.media for message in self.messages)
        for message in fact.history:
            self._note_label(message.label)
        self.call_ids = {call.id for message in fact.history for call in message.calls}
        self.status = RunStatus.RUNNING
        self.wants_output = fact.agent.get("output") is not None

    def _fork(self, fact: events.RunForked) -> None:
        """What was said and done stays; what it cost, what people decided and what it came to is the parent's."""
        self.forked = True
        self.status, self.error, self.limit_reached = RunStatus.RUNNING, None, None
        self.turn = self.conclusion = self.answer = None
        self.usage, self.active_seconds, self.decisions, self.labels = _NOTHING_USED, 0.0, {}, ()
        if self.task is not None:  # what it says is no part of the parent's conversation
            self.task = self.task.model_copy(update={"session_id": None})
        if fact.say is not None:
            self.messages.append(Message.user(fact.say))

    def _offer(self, fact: events.ToolsOffered) -> None:
        kept = [name for name in self.offered if name not in fact.dropped]
        self.offered = [*kept, *fact.added]
        if fact.reason in ("found", "fallback"):
            self.found |= dict.fromkeys(fact.added, fact.iteration)
        if fact.reason == "chosen":
            self.offer_known = True
        if self.offer_known:  # else the first choice was made while an older program could not have read of it
            self.offered_at = fact.iteration - 1
            if fact.because is not None:
                self.fallbacks.add(fact.because)

    def _message(self, fact: events.MessageReceived) -> None:
        self.status = RunStatus.RUNNING
        self.usage += fact.usage
        self.model = fact.model or self.model
        self.finish = fact.finish
        asked_at = fact.started or fact.time
        self.turn = Turn(fact.iteration, fact.text, fact.calls, asked_at, fact.confidence, fact.finish, fact.returned)
        for call in fact.calls:
            self.call_ids.add(call.id)

    def _note_label(self, label: DataLabel | None) -> None:
        if label is not None:
            self.taint = label if self.taint is None else self.taint.joined(label)

    def _started(self, fact: events.CallStarted) -> None:
        self._open(fact.call_id).started = fact

    def _open(self, call_id: str) -> CallPast:
        if self.turn is None:
            raise ValueError(f"a fact about call {call_id!r} outside any iteration: the journal is damaged")
        return self.turn.pasts.setdefault(call_id, CallPast())

    def _outcome(self, record: ToolCallRecord) -> None:
        call_id = record.call_id
        if record.status is CallStatus.UNKNOWN:
            self._open(call_id).unknown = record
        elif self.turn is not None:
            self.turn.records[call_id] = record
            if (past := self.turn.pasts.get(call_id)) is not None:
                past.unknown = None

    def _step(self, fact: events.StepFinished) -> None:
        turn = self.turn
        if turn is None:
            return
        self.turn = None
        if fact.rendered is not None:
            self.renderings |= fact.rendered
        told: list[str] = []
        for call in turn.calls:
            if call.id not in turn.records and (past := turn.pasts.get(call.id)) and past.unknown is not None:
                turn.records[call.id] = past.unknown  # the run went on: nobody was there to settle it
        if turn.calls:
            self.finish = None  # whatever it was, there is something to go on with
            said = tuple(self._bearable(call, turn.records[call.id]) for call in turn.calls)
            values = {
                "role": Role.ASSISTANT,
                "content": turn.text,
                "calls": said,
                "label": self.taint,
                "returned": turn.returned,
            }
            self.messages.append(unchecked(Message, values))
            self.fruitless = 0
        for call in turn.calls:
            record = turn.records[call.id]
            whole = "" if record.artifact is not None else text_for_model(record)
            short = record.artifact is None and len(whole) <= self._result_limit
            content = whole if short else self._shortened(record, whole)
            self.guard.note(turn.iteration, call, record)
            told.append(content)
            self.messages.append(_answer(call, content, record))
            self.has_media = self.has_media or bool(record.media)
            self._note_label(record.label)
        if not turn.calls and fact.nudge is not None:
            if turn.text.strip():
                text = turn.text
                if len(text) > self._result_limit:  # it was no use: it is not sent whole again at every step
                    text = text[: self._result_limit - 1] + "…"
                self.messages.append(Message(role=Role.ASSISTANT, content=text))
            self.messages.append(Message(role=Role.USER, name=REMINDER, content=fact.nudge))
            self.fruitless += 1
        if self.wants_output:
            self._note_invalid(turn, fact.nudge)
        answer = answer_of(turn, data=self.wants_output) if fact.nudge is None else None
        if fact.nudge is None:
            self.conclusion = answer
        fields = {
            "iteration": turn.iteration,
            "thought": fact.thought,
            "action": "call_tool" if turn.calls and answer is None else "finish",
            "calls": tuple(turn.records[call.id] for call in turn.calls if answer is None or call.tool_name != FINISH),
            "observation": (answer.text if answer else "\n".join(told) or turn.text.strip()) or EMPTY,
            "timestamp": turn.asked_at,
            "duration_ms": fact.duration_ms,
            "finish_reason": turn.finish,
        }
        self.steps.append(unchecked(ReasoningStep, fields))

    def _note_invalid(self, turn: Turn, nudge: str | None) -> None:
        refused = [record for record in turn.records.values() if record.tool_name == FINISH and not record.success]
        if refused and refused[-1].error is not None:
            self.output_problem = refused[-1].error.message
        elif nudge is not None:
            self.output_problem = nudge.partition("\n")[0].removeprefix(UNFIT)
        else:
            return
        self.invalid_outputs += 1

    def _bearable(self, call: ToolCall, record: ToolCallRecord) -> ToolCall:
        """The call as it stays in the conversation: what never ran and is huge is not sent again at every step."""
        if record.attempts or record.success or not larger([call.malformed or "", call.arguments], self._result_limit):
            return call
        return call.model_copy(update={"arguments": {}, "malformed": "(left out: they were too large)"})

    def _shortened(self, record: ToolCallRecord, whole: str) -> str:
        if record.status is not CallStatus.SUCCESS:
            return whole[: self._result_limit - 1] + "…"
        kept = self.cut_results[record.call_id] = record.artifact or whole
        return shrink(kept, handle=record.call_id, limit=self._result_limit)


_OF_A_STEP: dict[type, Callable[[RunState, Any], None]] = {
    events.MessageReceived: RunState._message,
    events.CallsPlanned: lambda state, fact: None,
    events.CallStarted: RunState._started,
    events.CallFinished: lambda state, fact: state._outcome(fact.record),
    events.StepFinished: RunState._step,
}


def answer_of(turn: Turn, *, data: bool = False) -> events.Answered | None:
    """The answer a finished turn gives: its text when it called nothing, or what it told ``finish``.

    Where the answer is data, what ``finish`` was told are the arguments, and their JSON is the text.
    """
    if not turn.calls:
        return events.Answered(text=turn.text.strip(), confidence=turn.confidence)
    for record in turn.records.values():
        if record.tool_name == FINISH and record.status is CallStatus.SUCCESS:
            if data:
                return events.Answered(text=to_json(record.arguments).decode(), confidence=turn.confidence)
            told: dict[str, Any] = record.result
            return events.Answered(
                text=told["answer"],
                reasoning=told["reasoning"] or None,
                confidence=told["confidence"] if told["confidence"] is not None else turn.confidence,
            )
    return None


def _without_promise(message: Message) -> Message:
    """A message of an earlier run, with no invitation to read what cannot be read any more."""
    if message.name == READ_RESULT:
        content = without_more(message.content)
    elif message.call_id is not None and READ_RESULT in message.content:
        content = without_the_rest(message.content, handle=message.call_id)
    else:
        return message
    return message if content == message.content else message.model_copy(update={"content": content})


def _answer(call: ToolCall, content: str, record: ToolCallRecord) -> Message:
    # A model may call a tool without saying which; that is answered, too, and every answer needs a name.
    name = call.tool_name or "unnamed"
    fields = {
        "role": Role.FUNCTION,
        "content": content,
        "name": name,
        "call_id": call.id,
        "label": record.label,
        "media": record.media,
    }
    return unchecked(Message, fields)


def _decision_label(fact: events.ApprovalDecided) -> Label | None:
    """What a person's decision says about a call; None where nobody decided, or nobody looked at this very call."""
    if fact.status not in (ApprovalStatus.APPROVED, ApprovalStatus.DENIED):
        return None
    if "(grant " in (fact.by or "") or (fact.reason or "").startswith(NOBODY):
        return None
    denied = fact.status is ApprovalStatus.DENIED
    return Label(
        source=LabelSource.DECISION,
        value="bad" if denied else "good",
        by=fact.by,
        note=(fact.reason or "")[:LONGEST_NOTE],
        call_id=fact.call_id,
        decision="denied" if denied else "approved" if fact.arguments is None else "edited",
        time=fact.time,
    )


def decision_of(fact: events.ApprovalDecided) -> Decision:
    """What a person, or time, has decided."""
    match fact.status:
        case ApprovalStatus.APPROVED:
            return Approve(arguments=fact.arguments, by=fact.by)
        case ApprovalStatus.EXPIRED:
            return Expired()
        case _:
            return Deny(reason=fact.reason or "", by=fact.by)


# --- repeated calls


class RepeatGuard:
    """Remembers what was called in which iteration, and what came of it.

    A call that has given the same answer twice is answered with a hint instead of being run.
    """

    def __init__(self) -> None:
        self._made: dict[str, list[tuple[int, ToolCallRecord]]] = {}
        self._keys: dict[str, str] = {}
        """Keys of calls under way, by call id: made when a call is checked, used again when it has ended."""

    def note(self, iteration: int, call: ToolCall, record: ToolCallRecord) -> None:
        """A call has ended."""
        key = self._keys.pop(call.id, None) or _call_key(call)
        if record.error is None or record.error.code != REPEATED:
            self._made.setdefault(key, []).append((iteration, record))

    def refusal(self, iteration: int, call: ToolCall, *, reads: Callable[[str], bool]) -> Refusal | None:
        """Why this call should not run, if it should not. ``reads`` says of a tool's name that it only reads."""
        key = self._keys[call.id] = _call_key(call)
        made = self._made.get(key)
        if made is None or len(made) < 2:
            return None
        earlier = {at: record for at, record in made if at < iteration}
        if len(earlier) < 2:
            return None
        before, last = sorted(earlier)[-2:]
        a, b = earlier[before], earlier[last]
        same = (a.status, a.result, a.error, a.artifact) == (b.status, b.result, b.error, b.artifact)
        if not same or self._something_changed(before, key, reads):
            return None
        return refuse(
            CallStatus.DENIED,
            REPEATED,
            f"{call.tool_name!r} was already called with these arguments in iterations {before} and {last}, "
            "with the same answer both times",
            category=ErrorCategory.INVALID_INPUT,
            severity=Severity.LOW,
            recover="Use the answer you have, call it with other arguments, or finish",
        )

    def _something_changed(self, since: int, key: str, reads: Callable[[str], bool]) -> bool:
        """Whether a different call that has effects has run since that iteration."""
        return any(
            at >= since and record.attempts > 0 and not reads(record.tool_name)
            for other, made in self._made.items()
            if other != key
            for at, record in made
        )


def _call_key(call: ToolCall) -> str:
    if call.malformed is not None:
        return f"{call.tool_name}\n!{call.malformed}"
    try:
        return f"{call.tool_name}\n{canonical_json(call.arguments)}"
    except (ValueError, TypeError, RecursionError):
        return f"{call.tool_name}\n?{call.id}"  # not JSON: refused on its own account
