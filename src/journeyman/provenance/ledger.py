"""The ledger of one run: everything that was said, each with its speaker, and where the arguments of a call came from.

Every text is read once, when the first call after it asks, and each of its words is kept with whoever said it first.
So a step costs as much as what was said since the last one, however long the run is.

Only *identifiers* must come from somewhere (see ``index``). Free text, names, dates and quantities a model may
well write by itself: "tomorrow" becomes a date and "five" a 5. They are looked up all the same, and count as
``computed`` where they are not found.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias

from journeyman.core.calls import ArgumentSource, DataLabel, Origin, ToolCallRecord, names_in
from journeyman.core.data import canonical_json, unchecked
from journeyman.core.runs import Message, ReasoningStep, Role
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stands_in
from journeyman.provenance.index import (
    Index,
    Text,
    forms,
    is_address,
    is_identifier,
    is_path,
    letters_and_digits,
    parts_of,
    tokens,
)

MOST_VALUES = 200
"""Values of one call that are looked up. Nobody writes more of them by heart."""
LONGEST_VALUE = 500
"""Characters of a value that is looked up. What is longer is free text."""
LEAST_DIGITS = 3
"""Digits of a part by which an identifier is recognised that is written otherwise, e.g. ``W 4190`` for ``W-4190``."""
LONGEST_QUOTED = 20_000
"""Characters of a text in which a value is looked for as it is."""
MOST_LEAVES = 2_000
"""Values, and rows, of a result that are looked at."""
_NAME = re.compile(r"[A-Za-z_]\w{0,39}").fullmatch


@dataclass(frozen=True, slots=True)
class User:
    """Whoever asks: a person or a program."""

    origin: ClassVar[Origin] = "request"


@dataclass(frozen=True, slots=True)
class Author:
    """Whoever wrote the agent: its instruction."""

    origin: ClassVar[Origin] = "system"


@dataclass(frozen=True, slots=True)
class Model:
    """The model, in its own words."""

    origin: ClassVar[Origin] = "computed"


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool, in the result of one call."""

    call_id: str
    tool_name: str
    origin: ClassVar[Origin] = "result"


Speaker: TypeAlias = User | Author | Model | CalledTool


@dataclass(eq=False)
class Utterance:
    """Something that was said. What holds for all of it, such as who may read it, belongs here.

    Nobody changes one; that it could be changed makes it cheap, and every step makes some.
    """

    speaker: Speaker
    said: Any
    """A text; or a result, as data or as the text of it."""
    earlier: bool = False
    """Whether it was said in the conversation, before the request."""
    label: DataLabel | None = None
    """Whose words it holds and who may read it, where that is not what its speaker says."""
    seen: bool = False
    """Whether it held pictures or files, whose words only a model has seen."""

    @property
    def origin(self) -> Origin:
        return "history" if self.earlier else self.speaker.origin

    @property
    def text(self) -> str:
        if isinstance(self.said, str):
            return self.said
        try:
            return json.dumps(self.said, ensure_ascii=False, default=str, skipkeys=True)
        except RecursionError:
            return ""

    @cached_property
    def data(self) -> Any:
        """What was said as data, where its text is JSON."""
        if not isinstance(self.said, str) or self.said[:1] not in ("[", "{"):
            return self.said
        try:
            return json.loads(self.said)
        except (ValueError, RecursionError):
            return self.said

    @property
    def rows(self) -> Sequence[Any]:
        """The rows of a list; what is no list is one row."""
        return self.data if isinstance(self.data, list | tuple) else (self.data,)

    def quotes(self, value: str) -> bool:
        """Whether a value stands in its text as it is."""
        return stands_in(self.text[:LONGEST_QUOTED], value)

    def field_of(self, value: Any) -> tuple[str, ...] | None:
        """The names that lead to a value in a result; None where no field holds it."""
        return self._fields.get(written(value).casefold())

    @cached_property
    def _fields(self) -> dict[str, tuple[str, ...]]:
        fields: dict[str, tuple[str, ...]] = {}
        for path, value in leaves(self.data):
            fields.setdefault(written(value).casefold(), path)
            if isinstance(value, float):
                fields.setdefault(str(value), path)  # as a text may repeat it: 2.0
            if len(fields) >= MOST_LEAVES:
                break
        return fields


def result_of(record: ToolCallRecord) -> Utterance:
    """What a call's tool said, whole, where the model was perhaps shown a part."""
    return Utterance(CalledTool(record.call_id, record.tool_name), record.result)


def written(value: Any) -> str:
    """A value as it would be written in a text: the one form in which values are compared."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return str(value) if type(value) is int else canonical_json(value)


def leaves(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values in a result, each with the names that lead to it; rows have no names."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, Mapping):
            stack.extend(((*path, str(key)), inner) for key, inner in reversed(list(item.items())))
        elif isinstance(item, list | tuple):
            stack.extend((path, inner) for inner in reversed(item[:MOST_LEAVES]))
        elif item is not None and not isinstance(item, bool):
            yield path, item


def is_name(key: str) -> bool:
    """Whether a key is written like the name of a field; what is written otherwise may be somebody's value."""
    return _NAME(key) is not None


def shown_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """A path that may be kept: without anybody's values among its names, or none."""
    return path if all(map(is_name, path)) else ()


def values_at(data: Any, path: Sequence[str]) -> list[Any]:
    """The values that these names lead to, in every row, each once."""
    values: dict[Any, None] = {}
    stack: list[tuple[Any, int]] = [(data, 0)]  # results can be nested deeper than Python recurses
    while stack:
        item, depth = stack.pop()
        if isinstance(item, list | tuple):
            stack.extend((inner, depth) for inner in reversed(item))
        elif depth < len(path):
            if isinstance(item, Mapping):
                stack.append((item.get(path[depth]), depth + 1))
        elif isinstance(item, str | int | float):
            values[item] = None
    return list(values)


class Conversation(Protocol):
    """What was said in a run so far. Messages and steps are only ever added."""

    @property
    def messages(self) -> Sequence[Message]: ...

    @property
    def task_at(self) -> int: ...

    @property
    def steps(self) -> Sequence[ReasoningStep]: ...


class Ledger:
    """Who said what, in order. Follows a conversation where it is given one, and hears whatever else it is told."""

    def __init__(
        self,
        conversation: Conversation | None = None,
        *,
        system: str = "",
        said: Sequence[str] = (),
        label_of: Callable[[str], DataLabel | None] | None = None,
    ) -> None:
        self._label_of = label_of
        self.utterances: list[Utterance] = []
        self._texts: list[Text] = []
        """What each of them vouches for."""
        self._tokens, self._words = Index(self._texts), Index(self._texts, by_word=True)
        self._conversation = conversation
        self._messages_read = self._steps_read = 0
        self._invented: dict[str, set[str]] = {}
        """By call: identifiers that stood nowhere when it was made. Its own result does not vouch for them."""
        self.taint: DataLabel | None = None
        """The label of all that was heard together; None where nothing of it was untrusted or private."""
        self.heard_chars = 0
        """Characters of all that was heard."""
        self.records: dict[str, ToolCallRecord] = {}
        """The calls whose results were heard, by id."""
        self._lock = threading.Lock()
        if system:
            self.hear(Author(), system)
        for text in said:  # elsewhere, before the run
            self.hear(User(), text)

    @property
    def unread(self) -> int:
        """Characters that the next call has to read."""
        if self._conversation is None:
            return 0
        messages, count = self._conversation.messages, 0
        for at in range(self._messages_read, len(messages)):
            count += len(messages[at].content)
        return count

    def decided(self, record: ToolCallRecord) -> bool:
        """Whether a person has decided about this very call."""
        decisions = getattr(self._conversation, "decisions", None)
        return record.approval_id is not None and (decisions is None or record.call_id in decisions)

    def hear(
        self,
        speaker: Speaker,
        said: Any,
        *,
        earlier: bool = False,
        label: DataLabel | None = None,
        seen: bool = False,
    ) -> Utterance:
        """Write down what was said. ``earlier``: in the conversation, before the request."""
        utterance = Utterance(speaker, said, earlier, label, seen)
        self.utterances.append(utterance)
        if label is not None:
            self.taint = label if self.taint is None else self.taint.joined(label)
        if type(speaker) is Model and not earlier:
            self._texts.append(("", None))  # what a model says itself vouches for nothing
            return utterance
        text = utterance.text
        if "\\" in text:
            text = text.replace("\\n", " ").replace("\\t", " ").replace('\\"', " ")  # of texts within JSON
        but = self._invented.pop(speaker.call_id, None) if self._invented and type(speaker) is CalledTool else None
        self.heard_chars += len(text)
        self._texts.append((text.lower(), but))
        return utterance

    def trace(
        self, specification: ToolSpecification | None, arguments: Mapping[str, Any]
    ) -> tuple[ArgumentSource, ...]:
        """Where the value of each argument came from. Without a specification, defaults and enums are not known."""
        if not arguments:
            return ()
        properties = None if specification is None else specification.parameters.get("properties")
        schemas = properties if type(properties) is dict else {}
        sources: list[ArgumentSource] = []
        with self._lock:
            if self._conversation is not None and len(self._conversation.messages) > self._messages_read:
                self._follow(self._conversation)
            self._tokens.read_on()
            for name, value in arguments.items():
                schema, kind = schemas.get(name), type(value)
                if kind is dict or kind is list:
                    inner = inner_values(name, schema, value, most=MOST_VALUES - len(sources))
                    sources += [self._source(*item) for item in inner]
                elif value is not None:
                    sources.append(self._source(name, name, schema, value))
        return tuple(sources)

    def _source(self, path: str, name: str, schema: Any, value: Any) -> ArgumentSource:
        if type(schema) is dict:
            if "default" in schema and schema["default"] == value:
                return _unsaid(path, "default")
            if "enum" in schema or "const" in schema:
                return _unsaid(path, "enum")
        kind = type(value)
        if (kind is not str and kind is not int and kind is not float) or (kind is str and len(value) > LONGEST_VALUE):
            return _unsaid(path, "computed")
        lowered = written(value).strip().lower()
        at = self._tokens.first.get(lowered)
        if at is None:
            identifier = is_identifier(name, value)
            if not identifier and kind is not str:
                return _unsaid(path, "computed")  # a quantity: that its digits stand somewhere would say nothing
            at = self._tokens.find(tokens(lowered))
            if at is None:
                at = self._in_parts(lowered, identifier=identifier)
            if at is None:
                return _unsaid(path, "nowhere" if identifier else "computed")
        utterance = self.utterances[at]
        speaker, origin = utterance.speaker, utterance.origin
        if origin != "result" or type(speaker) is not CalledTool:
            return _unsaid(path, origin)
        fields = {"argument": path, "origin": origin, "call_id": speaker.call_id, "tool_name": speaker.tool_name}
        return unchecked(ArgumentSource, fields)

    def _in_parts(self, lowered: str, *, identifier: bool) -> int | None:
        """The text that completes a value that stands nowhere as it is: each of its words was said there or before.

        Words that happen to have been said are how identifiers are made up; only by digits is one recognised.
        """
        if identifier and is_address(lowered):
            return None
        parts = parts_of(lowered)
        numbered = any(sum(map(str.isdigit, part)) >= LEAST_DIGITS for part in parts)
        if identifier and not numbered and not is_path(lowered):
            return None
        at = self._words.find(parts)
        if at is None and identifier:  # "P followed by 12345678" is P12345678
            at = self._words.find(letters_and_digits(lowered))
        return at

    def _follow(self, conversation: Conversation) -> None:
        steps = conversation.steps
        for at in range(self._steps_read, len(steps)):
            for record in steps[at].calls:
                self.records[record.call_id] = record
                for source in record.grounding or ():
                    if source.origin == "nowhere":
                        self._note_invented(record)
                        break
        self._steps_read = len(steps)
        messages, task_at = conversation.messages, conversation.task_at
        for at in range(self._messages_read, len(messages)):
            message = messages[at]
            if at <= task_at or message.role is Role.FUNCTION or (message.role is Role.ASSISTANT and message.content):
                label = message.label
                if label is None and at < task_at and message.role is Role.FUNCTION and self._label_of is not None:
                    label = self._label_of(message.name or "")  # of a conversation that was kept without labels
                elif label is None and at < task_at and message.role is Role.ASSISTANT:
                    label = self.taint  # what a model says after it has read others' words may be theirs
                self.hear(
                    _speaker(message), message.content, earlier=at < task_at, label=label, seen=bool(message.media)
                )
        self._messages_read = len(messages)

    def _note_invented(self, record: ToolCallRecord) -> None:
        if record.success and record.approval_id is not None:
            return  # a person has seen it and said yes
        self._invented[record.call_id] = forms(record.ungrounded_values)


def _speaker(message: Message) -> Speaker:
    if message.role is Role.FUNCTION:
        return CalledTool(message.call_id or "", message.name or "")
    return _OF_ROLE[message.role]


_OF_ROLE: dict[Role, Speaker] = {Role.ASSISTANT: Model(), Role.SYSTEM: Author(), Role.USER: User()}


def inner_values(name: str, schema: Any, value: Any, *, most: int) -> Iterator[tuple[str, str, Any, Any]]:
    """Each value within one: where it is, its parameter's name, its schema where that is known, and itself."""
    waiting: list[tuple[str, str, Any, Any]] = [(name, name, schema, value)]
    while waiting and most > 0:
        path, name, schema, value = waiting.pop()
        known = schema if isinstance(schema, dict) else {}
        if isinstance(value, dict):
            inner = known.get("properties") or {}
            waiting += [
                (f"{path}.{key}", str(key), inner.get(key), item) for key, item in reversed(list(value.items()))
            ]
        elif isinstance(value, list):
            items = known.get("items")
            waiting += [(f"{path}[{at}]", name, items, value[at]) for at in range(len(value) - 1, -1, -1)]
        elif value is not None:
            most -= 1
            yield path, name, schema, value


@lru_cache(maxsize=4_096)
def _unsaid(path: str, origin: Origin) -> ArgumentSource:
    """A source that is no call's result: few differ, and every call has some."""
    return unchecked(ArgumentSource, {"argument": path, "origin": origin})


def edited_sources(
    sources: tuple[ArgumentSource, ...], asked: Mapping[str, Any], edited: Mapping[str, Any]
) -> tuple[ArgumentSource, ...]:
    """The sources of a call's arguments after a person has put others in their place."""
    changed = {name for name, value in edited.items() if name not in asked or asked[name] != value}
    kept = [item for item in sources if (top := names_in(item.argument)[0]) in edited and top not in changed]
    replaced = [unchecked(ArgumentSource, {"argument": name, "origin": "person"}) for name in edited if name in changed]
    return (*kept, *replaced)
