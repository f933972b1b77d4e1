"""What became of a call: its record, its states, which state may follow which, and where its arguments came from."""

from __future__ import annotations

import operator
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property, partial
from typing import Annotated, Any, Generic, Literal, Protocol, TypeAlias, overload

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from typing_extensions import TypeVar

from journeyman.core.content import Medium
from journeyman.core.data import Derived, Entity, derived, reads_stored, unchecked, with_texts
from journeyman.core.errors import ErrorInfo, ToolError
from journeyman.core.policy import Principal, RiskLevel

SECRET_PREFIX = "JOURNEYMAN_SECRET_"


class MissingSecretError(KeyError):
    """A tool asked for a secret that is not set, or that it has not declared."""


def _from_environment(names: Collection[str]) -> dict[str, str]:
    known = {k.removeprefix(SECRET_PREFIX): v for k, v in os.environ.items() if k.startswith(SECRET_PREFIX)}
    return {name: known[name] for name in names if name in known} if names else known


class Secrets(Mapping[str, str]):
    """Secrets by name, for tools only. Its text never shows a value, and it remembers which values were read.

    Values that were read are masked in the tool's result and errors, so that they reach no model, log or journal.
    """

    def __init__(self, values: Mapping[str, str] | Callable[[], Mapping[str, str]]) -> None:
        self._given = values
        self._read: set[str] = set()

    @cached_property
    def _values(self) -> dict[str, str]:
        # Looked up for whoever asks: most tools never do, and every call gets such an object.
        return dict(self._given() if callable(self._given) else self._given)

    @classmethod
    def from_environment(cls, names: Collection[str] = ()) -> Secrets:
        """``context.secrets["GITHUB_TOKEN"]`` is the variable ``JOURNEYMAN_SECRET_GITHUB_TOKEN``.

        With names, only these.
        """
        return cls(partial(_from_environment, names))

    def __getitem__(self, name: str) -> str:
        try:
            value = self._values[name]
        except KeyError:
            hint = f"set the environment variable {SECRET_PREFIX}{name}, and declare it: tool(secrets=[{name!r}])"
            raise MissingSecretError(f"no secret {name!r}; {hint}") from None
        self._read.add(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Secrets({sorted(self._values)})"

    def unread(self) -> Iterator[tuple[str, str]]:
        """Names and values, for handing them on: reading them so does not count as reading."""
        return iter(self._values.items())

    def mask(self, text: str) -> str:
        """The text without any secret value that was read through this object."""
        # The longest first: where one secret is part of another, nothing of the longer one may stay.
        for value in sorted(self._read, key=len, reverse=True):
            if value:
                text = text.replace(value, "•••")
        return text

    def masked(self, value: Any) -> Any:
        """A JSON value with every text in it masked. Not done on JSON text, where quotes and newlines are escaped."""
        return with_texts(value, self.mask, names=True)

    @property
    def were_read(self) -> bool:
        return bool(self._read)


NO_SECRETS = Secrets({})


LABEL = "label"
"""Under which the metadata of what is stored has its label."""
LONGEST_SOURCE = 80
"""Characters of where something was read, in a label."""


class DataLabel(Entity):
    """Who wrote a text, and who may read it. What nobody says anything of is our own tools', and public."""

    writer: Literal["person", "operator", "tools", "untrusted"] = "tools"
    readers: tuple[str, ...] = ("public",)
    """``public``, or ``principal`` and the names of others."""
    source: str = ""
    """Where it was read, in words, e.g. "the page example.org"."""

    @property
    def untrusted(self) -> bool:
        return self.writer == "untrusted"

    @property
    def private(self) -> bool:
        return "public" not in self.readers

    def joined(self, other: DataLabel) -> DataLabel:
        """The label of what holds both: as little trusted, and for as few, as either."""
        fields = {
            "writer": "untrusted" if self.untrusted or other.untrusted else self.writer,
            "readers": other.readers if other.private and not self.private else self.readers,
            "source": self.source if self.untrusted or not other.untrusted else other.source,
        }
        return unchecked(DataLabel, fields)


class ArgumentLabel(DataLabel):
    """Whose words a doubted argument of a call holds, who may read them, and where they stand. What nearly all have is
    not written down."""

    writer: Literal["person", "operator", "tools", "untrusted"] = Field(
        default="untrusted", exclude_if=lambda writer: writer == "untrusted"
    )
    readers: tuple[str, ...] = Field(default=("public",), exclude_if=lambda readers: readers == ("public",))
    words: str = ""


class FlowDecision(Entity):
    """What the flow of values made of one call, in a run that has read what others wrote or only some may read."""

    decision: Literal["allowed", "reported", "asked", "refused"]
    reason: str = ""
    """Which words come from where, in one line."""
    doubts: dict[str, ArgumentLabel] = Field(default_factory=dict, exclude_if=operator.not_)
    """By the name of the argument, two at most; all others are the person's own words, or our tools', for everybody."""
    spared: bool = Field(default=False, exclude_if=operator.not_)
    """Whether all of it came from the person, so that an undeclared risk is not asked about."""


class Caller(Protocol):
    """Whoever has made a call, as far as a door can reach them while it runs."""

    async def ask(self, requests: Mapping[str, Mapping[str, Any]], *, held: bool) -> Mapping[str, Mapping[str, Any]]:
        """Put questions as the Model Context Protocol has them; the answers stand under the same keys.

        A call that is ``held`` cannot be begun again. Raises ToolError where nobody can be asked, or nobody answers.
        """

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """Pass on what is logged during the call, where they want to hear it."""


DepsT = TypeVar("DepsT", default=Any)
AskedT = TypeVar("AskedT")


def _form(schema: dict[str, Any]) -> dict[str, Any]:
    """A class's schema as clients take it: with choices where they are used, and nothing defined elsewhere."""
    defined = schema.pop("$defs", {})
    for name, each in schema.get("properties", {}).items():
        schema["properties"][name] = defined.get(each.pop("$ref", "").rpartition("/")[2], {}) | each
    return schema


@dataclass(kw_only=True, eq=False, repr=False)
class ToolContext(Generic[DepsT]):
    """Passed to a tool that has a parameter annotated ``ToolContext``; the model never sees that parameter.

    ``ToolContext[Shop]`` tells type checkers that ``deps`` is a ``Shop``.
    """

    principal: Principal | None = None
    secrets: Secrets = field(default_factory=lambda: NO_SECRETS)
    idempotency_key: str = ""
    """The same for every attempt of one call, also after a crash: hand it to services that accept such a key."""
    deadline: float | None = None
    """When the attempt will be given up, in seconds since the epoch."""
    correlation_id: str = ""
    run_id: str = ""
    call_id: str = ""
    requested_at: float | None = None
    """When a person was asked about this call, or else when it was requested, in seconds since the epoch.

    What has come into being since cannot have been meant.
    """
    risk: RiskLevel | None = None
    """What this call was graded as; where that is irreversible, a person has agreed to it."""
    report: Callable[[str, float | None], None] | None = None
    """Told by ``progress``."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the operator has set for the tool's category (``global_config`` in journeyman.yaml)."""
    label: DataLabel | None = None
    """Whose words the arguments may be, where others' were read before: keep it with whatever is stored."""
    caller: Caller | None = None
    """Whoever can be reached while the call runs; None where nobody can."""
    deps: DepsT = None  # type: ignore[assignment]
    """What the program gave the run: ``run(…, deps=…)``, or what the factory of the app made. Never stored."""
    asking: bool = field(default=False, init=False)
    """Whether a person is being asked: no timeout counts meanwhile."""
    marked: DataLabel | None = field(default=None, init=False)
    cancelled: bool = field(default=False, init=False)
    """Whether the call was given up. A blocking tool that loops should look here and stop."""

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Tell whoever watches how far the tool has come; ``fraction`` is between 0 and 1."""
        if self.report is not None and not self.cancelled:
            self.report(self.secrets.mask(message), fraction)

    @overload
    async def ask(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any] | None: ...

    @overload
    async def ask(self, message: str, schema: type[AskedT]) -> AskedT | None: ...

    async def ask(self, message: str, schema: Any) -> Any:
        """Ask whoever has made the call; ``schema`` is an object of texts, numbers, choices and yes or no.

        It may be a class that pydantic knows: then the answer is one of these. Returns what they entered, or None where
        they would not say. Raises ToolError where nobody can be asked. A run in a store is suspended meanwhile: the
        function is left here, and called again once there is an answer. So ask first, and act then.
        """
        adapter = None if isinstance(schema, Mapping) else TypeAdapter(schema)
        form = dict(schema) if adapter is None else _form(adapter.json_schema())
        params = {"mode": "form", "message": message, "requestedSchema": form}
        answered = (await self.put({"question": {"method": "elicitation/create", "params": params}}))["question"]
        if answered.get("action") != "accept":
            return None
        content = dict(answered.get("content") or {})
        try:
            return content if adapter is None else adapter.validate_python(content)
        except ValidationError as error:
            why = "; ".join(each["msg"] for each in error.errors())
            raise ToolError("WRONG_ANSWER", f"the answer to {message!r} does not fit: {why}") from None

    async def put(
        self, requests: Mapping[str, Mapping[str, Any]], *, held: bool = False
    ) -> Mapping[str, Mapping[str, Any]]:
        """Put questions to the caller, as ``Caller.ask`` has it."""
        if self.caller is None:
            raise ToolError(
                "NOBODY_TO_ASK",
                "a person must answer a question first, and whoever made this call cannot be asked",
                recover_action="Go on without it, or tell the user",
            )
        self.asking = True
        try:
            return await self.caller.ask(requests, held=held)
        finally:
            self.asking = False

    def mark(self, label: DataLabel | Mapping[str, Any] | None) -> None:
        """Say whose words the result holds, where it was stored with a label; several are joined."""
        if label:
            read = label if isinstance(label, DataLabel) else DataLabel.stored(dict(label))
            self.marked = read if self.marked is None else self.marked.joined(read)

    def remaining(self) -> float | None:
        """Seconds until the deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.time())

    def cancel(self) -> None:
        """Mark the call as given up; the executor's business."""
        self.cancelled = True


Origin = Literal["request", "history", "result", "system", "default", "enum", "person", "computed", "nowhere"]
"""What a value was found in. ``computed`` is free text, a date, a quantity: what a model may write by itself.
``nowhere`` is an identifier that stands in nothing that was said before the call: it is *ungrounded*."""


SAID = "said"
"""In the metadata of a task: what was said where the calls of a chain come from, as far as a door was told."""


class ArgumentSource(Entity):
    """Where the value of one argument came from."""

    argument: str
    """Its place among the arguments, e.g. ``order_id`` or ``items[0].sku``."""
    origin: Origin
    call_id: str | None = None
    """The earlier call in whose result it stands, for the origin ``result``."""
    tool_name: str | None = None
    """That call's tool."""

    @property
    def text(self) -> str:
        """For people, e.g. on the card of an approval."""
        return f"result of {self.tool_name}" if self.origin == "result" else WORDS[self.origin]


WORDS: dict[Origin, str] = {
    "request": "the request",
    "history": "the conversation before",
    "result": "an earlier result",
    "system": "the agent's instruction",
    "default": "the tool's default",
    "enum": "the tool's list of values",
    "person": "the person who approved",
    "computed": "written by the model",
    "nowhere": "found nowhere: may be invented",
}


def ungrounded(sources: tuple[ArgumentSource, ...] | None) -> tuple[str, ...]:
    """The arguments whose values are identifiers that stand nowhere."""
    return tuple(item.argument for item in sources or () if item.origin == "nowhere")


def value_at(arguments: dict[str, Any], path: str) -> Any:
    """The value that an ``ArgumentSource`` is about; None where there is none."""
    value: Any = arguments
    for key, index in _steps(path):
        if isinstance(value, dict) and key:
            value = value.get(key)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return value


def names_in(path: str) -> list[str]:
    """The names in the place of an ``ArgumentSource``: first the argument's, last that of the field in it."""
    return [key for key, _ in _steps(path) if key] or [path]


_steps = re.compile(r"([^.\[\]]+)(?!\])|\[(\d+)\]").findall


class Taken(StrEnum):
    """Where an argument of a demonstrated call came from, if not from a result."""

    REQUEST = "request"
    KNOWN = "known"
    """Said before the request, in the same conversation."""
    CONSTANT = "constant"
    """The same in every task."""
    COMPOSED = "composed"
    """Written by the model."""


@dataclass(frozen=True, slots=True)
class ResultField:
    """A field in the result of an earlier call of the same demonstration."""

    call: int | None
    """The number of that call; None in a stored source that does not say."""
    path: tuple[str, ...] = ()
    """The names that lead to the field; empty where it is not known."""

    def __str__(self) -> str:
        return f"result {'' if self.call is None else self.call} {'.'.join(self.path)}".strip()


def read_source(stored: Any) -> Taken | ResultField:
    """A source from its stored text, such as ``request`` or ``result 0 email``. What says nothing is composed."""
    if isinstance(stored, ResultField):
        return stored
    if not isinstance(stored, str):
        raise ValueError(f"a source is a text such as 'request' or 'result 0 email', not {stored!r}")
    kind, _, rest = stored.partition(" ")
    if kind != "result":
        return Taken(kind) if kind in set(Taken) else Taken.COMPOSED
    number, _, path = rest.partition(" ")
    return ResultField(int(number) if number.isdecimal() else None, tuple(path.split(".")) if path else ())


DemonstratedSource: TypeAlias = Annotated[
    Taken | ResultField, PlainValidator(read_source), PlainSerializer(str), WithJsonSchema({"type": "string"})
]
"""Stored as text, as every version has done: several of them may work on one store."""


UNNAMED = "unnamed"
"""The tool's name in the record of a call for which the model gave none."""


class CallStatus(StrEnum):
    """Where a call stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    DENIED = "denied"
    """Refused, expired, nobody to ask, not permitted, or repeated."""
    UNKNOWN = "unknown"
    """The process died after the call had started: whether it took effect, nobody knows."""

    @classmethod
    def _missing_(cls, value: object) -> CallStatus | None:
        """Also in capitals, and under the name that others have for an error."""
        folded = value.lower() if isinstance(value, str) else ""
        return cls.ERROR if folded == "failed" else next((item for item in cls if item.value == folded), None)


class Artifact(Entity):
    """A result that is too large for its record: where the whole is kept, and how it begins and ends."""

    id: str
    """The SHA-256 of its text. Unique within its run."""
    kind: Literal["text", "json"]
    chars: int
    head: str
    tail: str

    @property
    def text(self) -> str:
        """What can be shown of it without looking it up."""
        left = self.chars - len(self.head) - len(self.tail)
        return f"{self.head}\n… [{left:,} of {self.chars:,} characters are kept as artifact {self.id}] …\n{self.tail}"


def _unset(value: object) -> bool:
    return value is None


class ToolCallRecord(Derived):
    """One call, from request to outcome. Exactly one of result and error counts, and the status says which."""

    execution_id: str = Field(min_length=1)
    call_id: str
    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The frozen arguments that ran, defaults included; for a call that never got so far, what the model wrote."""
    status: CallStatus
    result: Any = None
    artifact: Artifact | None = None
    """In the place of a large result of a durable run; ``Handle.whole(record)`` looks it up."""
    media: tuple[Medium, ...] = Field(default=(), exclude_if=lambda media: not media)
    """The images and files in the result, as a model gets them; of many the first."""
    error: ErrorInfo | None = None
    start_time: datetime
    end_time: datetime
    attempts: int = Field(default=0, ge=0)
    cached: bool = False
    risk: RiskLevel | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    approval_id: str | None = None
    correlation_id: str = ""
    read_only: bool | None = None
    """Whether the tool only reads, by its own account when it was called; None for a call that found no tool."""
    grounding: tuple[ArgumentSource, ...] | None = None
    """Where each argument came from; None for a call that did not get so far, or that no model wrote."""
    label: DataLabel | None = Field(default=None, exclude_if=_unset)
    """Whose words its result holds, where they are not our own tools', or not for everybody."""
    flow: FlowDecision | None = Field(default=None, exclude_if=_unset)
    """What the flow of values made of it, where there was anything to decide."""

    @field_validator("tool_name")
    @classmethod
    def _named(cls, value: str, info: ValidationInfo) -> str:
        if value or reads_stored(info):  # earlier versions recorded calls of models that had named no tool
            return value or UNNAMED
        raise ValueError("a record names the tool that was called")

    @model_validator(mode="after")
    def _consistent(self) -> ToolCallRecord:
        if self.status is CallStatus.SUCCESS:
            if self.error is not None:
                raise ValueError("error: a successful call has no error")
        else:
            if self.result is not None or self.artifact is not None:
                raise ValueError(f"result: a call with status {self.status.value!r} has no result")
            if self.error is None and self.status not in (CallStatus.PENDING, CallStatus.RUNNING):
                raise ValueError(f"error: a call with status {self.status.value!r} must say why")
        if self.end_time < self.start_time:
            raise ValueError(f"end_time: {self.end_time} is before start_time {self.start_time}")
        return self

    @derived
    def success(self) -> bool:
        return self.status is CallStatus.SUCCESS

    @derived
    def duration_ms(self) -> float:
        return (self.end_time - self.start_time).total_seconds() * 1000

    @property
    def parameters(self) -> dict[str, Any]:
        return self.arguments

    @property
    def shown(self) -> Any:
        """The result, or what can be shown of one that is kept apart."""
        return self.result if self.artifact is None else self.artifact.text

    @property
    def ungrounded(self) -> tuple[str, ...]:
        """The arguments whose values are identifiers that stand in nothing said before."""
        return ungrounded(self.grounding)

    @property
    def ungrounded_values(self) -> list[Any]:
        return [value_at(self.arguments, path) for path in self.ungrounded]

    @property
    def result_data(self) -> Any:
        return self.result

    @property
    def error_category(self) -> str | None:
        return None if self.error is None else self.error.category

    @property
    def error_message(self) -> str | None:
        return None if self.error is None else self.error.message


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


class ArtifactStore(Protocol):
    """Large results, by the run they belong to; forgotten with it."""

    async def put(self, run_id: str, text: str) -> str:
        """Keep a text, if it is not there already; returns its id."""

    async def read(self, run_id: str, artifact_id: str, *, offset: int = 0, length: int | None = None) -> str | None:
        """A part of it, in characters; None when there is no such artifact."""


def speaks_for_tool(status: str, *, attempts: int) -> bool | None:
    """Whether a call tells that its tool works, or that it does not.

    None where it tells nothing: refused before it ran (arguments, permission, a person's no), cancelled, or of a fate
    that nobody knows.
    """
    return _SPEAKS.get(status) if attempts else None


_SPEAKS: dict[str, bool] = {CallStatus.SUCCESS: True, CallStatus.ERROR: False, CallStatus.TIMEOUT: False}
