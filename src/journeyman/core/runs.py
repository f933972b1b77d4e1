"""What goes into a run, what is said in it and what that costs, what one iteration is, and what comes out.

Also the sessions in which what was said is stored, and the list prices of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Self, TypeAlias

from pydantic import (
    AliasChoices,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import to_json
from typing_extensions import TypeVar

from journeyman.core.aliases import task_fields
from journeyman.core.approvals import CURE, DECISIVE, NOBODY, Label, LabelSource, best_label, judge
from journeyman.core.calls import DataLabel, ToolCallRecord
from journeyman.core.content import Medium, check_media
from journeyman.core.data import Derived, Entity, Moment, derived, new_id, not_blank, unchecked
from journeyman.core.errors import ErrorInfo, InvalidDataError, validation_problems
from journeyman.core.gaps import ToolGapReport
from journeyman.core.policy import Principal
from journeyman.core.specification import Environment
from journeyman.core.words import packaged_text


class Role(StrEnum):
    """Who speaks. ``function`` is a tool's answer and carries the tool's name."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    FUNCTION = "function"


class ToolCall(Entity):
    """What the model asked for. Says nothing about what became of it: that is a ``ToolCallRecord``."""

    id: str = ""
    """In a run, ours: the loop replaces what a model wrote here, which may be anything, and is used twice by some."""
    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict, validation_alias=AliasChoices("arguments", "parameters"))
    malformed: str | None = None
    """The arguments as written, where they are not a JSON object; such a call is answered and never run."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """What the model's *adapter* reports for this call; never a number out of the model's text."""


class Usage(Entity):
    """Tokens and requests, added up over a run."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    requests: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0, exclude_if=lambda count: count == 0)
    """Of the input, what the provider had read before."""
    reasoning_tokens: int = Field(default=0, ge=0, exclude_if=lambda count: count == 0)
    """Of the output, what the model thought."""

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        added = other.__dict__
        return unchecked(Usage, {name: count + added[name] for name, count in self.__dict__.items()})


class Message(Entity):
    """One utterance. A conversation is a list of them."""

    role: Role
    content: str = ""
    name: str | None = None
    """The tool's name, on function messages."""
    call_id: str | None = None
    """Which call a function message answers."""
    calls: tuple[ToolCall, ...] = ()
    """The calls an assistant message asks for."""
    returned: dict[str, Any] | None = Field(default=None, exclude_if=lambda kept: kept is None, repr=False)
    """What the model's provider wants back with these calls, by the adapter that can read it: thinking, signatures."""
    label: DataLabel | None = Field(default=None, exclude_if=lambda label: label is None)
    """Whose words it holds, where others' were read: of a function message, and of what the model says after it."""
    media: tuple[Medium, ...] = Field(default=(), exclude_if=lambda media: not media)
    """The images and files that are said with it, or stand in the tool's result."""

    @model_validator(mode="after")
    def _check(self) -> Message:
        if self.role is Role.FUNCTION and not self.name:
            raise ValueError("name: a function message must carry the name of its tool")
        if self.calls and self.role is not Role.ASSISTANT:
            raise ValueError(f"calls: only an assistant message can ask for calls, this one is {self.role.value!r}")
        return self

    @classmethod
    def user(cls, content: str) -> Message:
        return cls(role=Role.USER, content=content)

    @classmethod
    def system(cls, content: str) -> Message:
        return cls(role=Role.SYSTEM, content=content)


class SessionRow(Entity):
    """A stored conversation."""

    id: str
    principal_id: str | None
    created_at: float
    updated_at: float
    message_count: int
    title: str = ""
    """As a person named it, else how it began; empty where nothing is known of either."""


SessionPlace: TypeAlias = tuple[float, str]
"""A place in the list of sessions: when one was last used, and its id."""


class SessionHistory(Entity):
    """Which messages of a session a run began with: those numbered from ``first`` to ``last``; none when it is 0."""

    session_id: str
    first: int = 0
    last: int = 0


OutputT = TypeVar("OutputT", default=Any)
T = TypeVar("T")

CHAT_MESSAGE_LIMIT = 2_000
"""Doors where people type refuse longer messages; programs are not limited."""


FinishReason = Literal["stop", "length", "refusal", "filter"]
"""Why a model stopped: it was done, its answer was cut off, it refuses, or the provider's filter stopped it."""

Outcome = Literal["achieved", "partly", "not", "unknown"]
"""What became of what was asked, as far as the calls show it. A run can complete without having achieved anything."""

UNSURE = 0.3
"""A model that is less sure than that, and calls nothing, has found no tool for what was asked."""

LimitName = Literal["iterations", "seconds", "tokens"]


class RunStatus(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    AWAITING_RESOLUTION = "awaiting_resolution"
    STUCK = "stuck"
    """Processes died while they worked on it, again and again: it is not taken up before a person says so."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LIMIT_REACHED = "limit_reached"
    UNKNOWN = "unknown"
    """A status that a newer version has written. This one shows the run and leaves it alone."""

    @property
    def ended(self) -> bool:
        return self in _ENDS

    @property
    def waiting(self) -> bool:
        """Whether nothing happens before a person has acted."""
        return self in _WAITS


_ENDS = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.LIMIT_REACHED})
UNFINISHED = frozenset(RunStatus) - _ENDS
_WAITS = frozenset({RunStatus.AWAITING_APPROVAL, RunStatus.AWAITING_RESOLUTION, RunStatus.STUCK})


class Wait(Entity):
    """What a run waits for that has not ended, besides its own model and tools."""

    reason: Literal["approval", "resolution", "stuck", "turn", "place", "process", "retry", "call"]
    whom: str
    """Who can end it, for people: a person, a run that goes before this one, a process."""
    until: Moment | None = None
    """When it ends at the latest, by the database's clock; None where it may last."""
    text: str
    """What of them, for people: their decision on a call, their report on another, a free place."""


class Limits(Entity):
    """When a run must stop. A field left out falls to the task's, the agent's, the default; ``None`` lifts it."""

    iterations: int | None = Field(default=None, gt=0)
    history_messages: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)

    @model_serializer(mode="wrap")
    def _only_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # "left out" must survive a journal: written as null it would come back as "lifted".
        return {name: value for name, value in handler(self).items() if name in self.model_fields_set}


class TaskInput(Entity):
    """What a person or a program wants done."""

    task_id: str = Field(default_factory=lambda: new_id("task"), min_length=1)
    description: Annotated[
        str, Field(min_length=1), not_blank("description: a task must say what to do, this one is blank")
    ]
    domain: str = "general"
    playbook_bullets: tuple[str, ...] = ()
    """Extra advice given by the caller."""
    rules: tuple[str, ...] = Field(default=(), exclude_if=lambda rules: not rules)
    """What the caller adds to the agent's instruction for this task alone."""
    available_tools: tuple[str, ...] | None = None
    """Only these of the agent's tools; None means all."""
    max_iterations: int | None = Field(default=None, gt=0)
    metadata: dict[str, Any] = Field(default_factory=dict)
    principal: Principal | None = None
    session_id: str | None = None
    environment: Environment | None = None
    media: tuple[Medium, ...] = Field(default=(), exclude_if=lambda media: not media)
    """The images and files that belong to it."""

    @model_validator(mode="before")
    @classmethod
    def _under_our_names(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.keys() <= cls.model_fields.keys():
            return data

        return task_fields(data)

    @field_validator("media")
    @classmethod
    def _bounded(cls, value: tuple[Medium, ...]) -> tuple[Medium, ...]:
        if value:
            check_media(value)
        return value


Wanted: TypeAlias = TaskInput | str | Sequence[str | Medium]
"""What a run is asked for: a task, its text, or texts with images and files."""


def task_of(wanted: Wanted) -> TaskInput:
    """The task that is meant."""
    if isinstance(wanted, TaskInput):
        return wanted
    if isinstance(wanted, str):
        return TaskInput(description=wanted)
    wrong = [item for item in wanted if not isinstance(item, str | Medium)]
    if wrong:
        rule = f"a task is texts, images and files (Image, Audio, Document), got {type(wrong[0]).__name__}"
        raise InvalidDataError("TaskInput", [("task", rule)])
    media = tuple(item for item in wanted if isinstance(item, Medium))
    said = "\n".join(item for item in wanted if isinstance(item, str))
    return TaskInput(description=said if said.strip() else "\n".join(item.words() for item in media), media=media)


_PLAIN = "_plain_output"


class ReasoningStep(Derived):
    """One iteration: a thought, an action, what was observed."""

    iteration: int = Field(ge=1)
    thought: str = Field(min_length=1)
    action: Literal["call_tool", "finish"]
    calls: tuple[ToolCallRecord, ...] = ()
    observation: str | None = None
    timestamp: Moment
    duration_ms: float = Field(ge=0)
    finish_reason: FinishReason | None = None
    """Why the model stopped, where its server says so."""

    @model_validator(mode="after")
    def _consistent(self) -> ReasoningStep:
        if self.action == "call_tool" and not self.calls:
            raise ValueError("calls: a step that calls tools must have calls")
        if self.action == "finish" and not self.observation:
            raise ValueError("observation: a step that finishes must have the answer as its observation")
        return self

    @derived
    def tool_name(self) -> str | None:
        """The first call's tool."""
        return self.calls[0].tool_name if self.calls else None

    @derived
    def tool_args(self) -> dict[str, Any] | None:
        """The first call's arguments."""
        return self.calls[0].arguments if self.calls else None


class AgentResponse(Derived, Generic[OutputT]):
    """What came out of a run, whatever its end."""

    task_id: str
    run_id: str
    status: RunStatus
    answer: str
    """The answer as text; where data was asked for, the data as JSON, or what was written in vain."""
    if TYPE_CHECKING:
        output: OutputT = Field(default=None)  # type: ignore[assignment]  # see below
    else:
        output: OutputT | None = None
    """The answer as data, where the run or its agent has an ``output``: of its type, or plain data where it is a schema
    or the type is not known in this process. None where the run did not complete; ``error`` says why. To type checkers
    it is the type alone, so that programs which look at ``status`` need not look here as well."""
    reasoning: str = Field(min_length=1)
    confidence: float = Field(ge=0, le=1)
    outcome: Outcome = "unknown"
    """Whether what was asked was achieved: by a person's rating or the verifier, else by whether the calls that were
    to have an effect had it; ``unknown`` where there was none to go by."""
    outcome_source: LabelSource | None = None
    """Whose label ``outcome`` rests on; None where it rests on the calls alone."""
    labels: tuple[Label, ...] = ()
    """What people and the verifier say about the run, the most reliable first."""
    structured_trace: tuple[ReasoningStep, ...] = ()
    limit_reached: LimitName | None = None
    """Which limit ended the run, where one did; ``tokens`` also where the last answer was cut off."""
    finish_reason: FinishReason | None = None
    """Why the model stopped last, where its server says so. Only ``stop`` is an answer as it was meant."""
    usage: Usage = Usage()
    seconds: float = Field(default=0.0, ge=0)
    """How long the run was worked on; waiting for a person does not count."""
    model: str = ""
    """The model that answered last, by the name its adapter gives."""
    messages: tuple[Message, ...] = ()
    """The conversation so far; pass it as ``history=`` to go on."""
    error: ErrorInfo | None = None
    """Why the run failed or stopped early."""
    gap: ToolGapReport | None = None
    """What no tool could do, where the run ended without having done what was asked."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> AgentResponse:
        if self.status is RunStatus.COMPLETED and not self.answer.strip():
            raise ValueError("answer: a completed run must have an answer")
        if self.status is RunStatus.FAILED and self.error is None:
            raise ValueError("error: a failed run must say why")
        return self

    @field_serializer("output")
    def _as_plain_data(self, value: Any) -> Any:
        # As it was journalled: a type may write its own names for fields, and not those of its schema.
        return self.__dict__.get(_PLAIN, value)

    def with_output(self, value: T) -> AgentResponse[T]:
        """The same response with its output as a value of some type; its JSON stays as it is."""
        copied: AgentResponse[Any] = self.model_copy(update={"output": value})
        copied.__dict__[_PLAIN] = self.plain_output
        return copied

    @property
    def plain_output(self) -> Any:
        """The output as plain data, as it is in the JSON."""
        return self.__dict__.get(_PLAIN, self.output)

    def output_as(self, kind: type[T]) -> T:
        """The output as a value of a type, e.g. of a run that another process began. Raises InvalidDataError."""
        try:
            return TypeAdapter(kind).validate_json(to_json(self.plain_output))
        except ValidationError as error:
            problems = validation_problems(error, whole="output")
            raise InvalidDataError(getattr(kind, "__name__", str(kind)), problems) from None

    def with_labels(self, labels: Sequence[Label]) -> Self:
        """The same response with these labels, and with the outcome that follows from them."""
        best = best_label([label for label in labels if label.source in DECISIVE])
        changes: dict[str, Any] = {"labels": tuple(sorted(labels, key=lambda label: label.source.rank))}
        if best is not None:
            changes |= {"outcome": "achieved" if best.value == "good" else "not", "outcome_source": best.source}
        return self.model_copy(update=changes)

    @property
    def label(self) -> Label | None:
        """The most reliable label there is; without one, the grounded judge's. None where nothing can be said."""
        return best_label(self.labels) or judge(self.tool_calls, ended=self.status is RunStatus.COMPLETED)

    @property
    def cost(self) -> float | None:
        """US dollars by the list prices of the model that answered; None where it has none."""
        return cost_of(self.model, self.usage, list_prices())

    @derived
    def tool_calls(self) -> tuple[ToolCallRecord, ...]:
        return tuple(call for step in self.structured_trace for call in step.calls)

    @derived
    def tools_used(self) -> list[str]:
        """Names of the tools that ran (or answered from the cache), each once, in order of first use."""
        return list(dict.fromkeys(call.tool_name for call in self.tool_calls if call.attempts or call.cached))

    @derived
    def iteration_limit_reached(self) -> bool:
        return self.limit_reached == "iterations"

    @derived
    def total_iterations(self) -> int:
        return len(self.structured_trace)

    @derived
    def reasoning_trace(self) -> str:
        """The whole trace as text a person can read."""
        lines = unasked(self.structured_trace)
        for step in self.structured_trace:
            lines.append(f"{step.iteration}. {step.thought}")
            for call in step.calls:
                outcome = call.status.value if call.error is None else f"{call.status.value}: {call.error.message}"
                lines.append(f"   {call.tool_name} → {outcome} ({call.duration_ms:.0f} ms)")
                if call.ungrounded:
                    lines.append(f"   found nowhere, may be invented: {', '.join(call.ungrounded)}")
            if step.action == "finish":
                lines.append(f"   answer: {step.observation}")
        return "\n".join(lines)


def unasked(steps: Iterable[ReasoningStep]) -> list[str]:
    """What comes first of a run with a call that nobody could be asked about, whatever its model says."""
    errors = (call.error.message for step in steps for call in step.calls if call.error is not None)
    return [f"Not done: {said}; {CURE}." for said in errors if f"{NOBODY}:" in said][:1]


_MILLION = 1_000_000


class Price(Entity):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


def list_prices() -> dict[str, Price]:
    """The providers' list prices as published in autumn 2025, by the beginning of the model's name."""
    rows = (line.split() for line in packaged_text("journeyman.core", "prices.txt").splitlines()[1:])
    return {name: Price(input=float(given), output=float(made)) for name, given, made in rows}


def cost_of(model: str, usage: Usage, prices: Mapping[str, Price]) -> float | None:
    """US dollars, or None where the list has no price for the model.

    A name is looked up without its provider (``openai:``), and falls to the longest listed name it begins with, so
    that a dated version costs what its model does.
    """
    bare = model.rpartition("/")[2].partition(":")[2] or model
    best = ""
    for name in prices:
        begins = any(text == name or (text.startswith(name) and text[len(name)] in "-@:.") for text in (model, bare))
        if begins and len(name) > len(best):
            best = name
    if not best:
        return None
    price = prices[best]
    return (usage.input_tokens * price.input + usage.output_tokens * price.output) / _MILLION
