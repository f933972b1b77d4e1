"""Where each argument of a call came from: the request, the conversation, an earlier result, the tool's own schema.

Every text is read once, when the first call after it asks, and each of its words is kept with the source that said it
first. So a step costs as much as what was said since the last one, however long the run is.

Only *identifiers* must come from somewhere (see ``identifiers``). Free text, names, dates and quantities a model may
well write by itself: "tomorrow" becomes a date and "five" a 5. They are looked up all the same, and count as
``computed`` where they are not found.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from journeyman.core.grounding import ArgumentSource, Origin
from journeyman.core.messages import Message, Role
from journeyman.core.runs import ReasoningStep
from journeyman.core.specification import ToolSpecification
from journeyman.execution.identifiers import is_address, is_identifier, is_path

MOST_VALUES = 200
"""Values of one call that are looked up. Nobody writes more of them by heart."""
LONGEST_VALUE = 500
"""Characters of a value that is looked up. What is longer is free text."""
LEAST_DIGITS = 3
"""Digits of a part by which an identifier is recognised that is written otherwise, e.g. ``W 4190`` for ``W-4190``."""
PIECE = 32_000
"""Characters that are read at once: between two pieces other threads get their turn."""

_BETWEEN = str.maketrans(dict.fromkeys("\"'`(){}[]<>,;=|“”‘’«»\n\r\t", " "))
"""What stands between tokens. Not what stands within addresses, paths and numbers."""
_PUNCTUATION = str.maketrans(dict.fromkeys("\"'`(){}[]<>,;=|“”‘’«»\n\r\t_-./\\@:#$€£%&*+!?~^–—…", " "))
_ENDS = ("", ".", ":", "?", "!")
_BEGINS = ("", "#", "$", "@", "€", "£")


class Conversation(Protocol):
    """What was said in a run so far. Messages and steps are only ever added."""

    @property
    def messages(self) -> Sequence[Message]: ...

    @property
    def task_at(self) -> int: ...

    @property
    def steps(self) -> Sequence[ReasoningStep]: ...


class Ledger:
    """Who said what first, in one run."""

    def __init__(self, conversation: Conversation, *, system: str = "") -> None:
        self._conversation = conversation
        self._system = system
        self._sources: list[tuple[Origin, str | None, str | None]] = []
        self._tokens, self._words = _Index(_BETWEEN), _Index(_PUNCTUATION)
        self._messages_read = self._steps_read = 0
        self._invented: dict[str, set[str]] = {}
        """By call: identifiers that stood nowhere when it was made. Its own result does not vouch for them."""
        self._lock = threading.Lock()

    @property
    def unread(self) -> int:
        """Characters that the next call has to read."""
        messages = self._conversation.messages
        return sum(len(messages[at].content) for at in range(self._messages_read, len(messages)))

    def trace(self, specification: ToolSpecification, arguments: Mapping[str, Any]) -> tuple[ArgumentSource, ...]:
        """Where the value of each argument came from."""
        if not arguments:
            return ()
        with self._lock:
            self._catch_up()
            properties = specification.parameters.get("properties")
            return tuple(
                self._source(path, name, schema, value)
                for path, name, schema, value in _values(arguments, properties if isinstance(properties, dict) else {})
            )

    def _source(self, path: str, name: str, schema: Any, value: Any) -> ArgumentSource:
        if isinstance(schema, dict):
            if "default" in schema and schema["default"] == value:
                return ArgumentSource.unchecked(argument=path, origin="default")
            if "enum" in schema or "const" in schema:
                return ArgumentSource.unchecked(argument=path, origin="enum")
        identifier = is_identifier(name, value)
        text = _text(value)
        at = None if text is None else self._find(text, identifier=identifier)
        if at is not None:
            origin, call_id, tool_name = self._sources[at]
            return ArgumentSource.unchecked(argument=path, origin=origin, call_id=call_id, tool_name=tool_name)
        return ArgumentSource.unchecked(argument=path, origin="nowhere" if identifier else "computed")

    def _find(self, text: str, *, identifier: bool) -> int | None:
        """The source that completes a value: each of its parts was said there or before."""
        lowered = text.strip().lower()
        if (at := self._tokens.find(lowered.translate(_BETWEEN).split())) is not None:
            return at
        if identifier and is_address(lowered):
            return None
        parts = lowered.translate(_PUNCTUATION).split()
        if (
            identifier
            and not is_path(lowered)
            and not any(sum(map(str.isdigit, part)) >= LEAST_DIGITS for part in parts)
        ):
            return None  # words that happen to have been said, in a row: that is how identifiers are made up
        return self._words.find(parts)

    def _catch_up(self) -> None:
        conversation = self._conversation
        messages, task_at, steps = conversation.messages, conversation.task_at, conversation.steps
        if self._system:
            self._hear("system", self._system)
            self._system = ""
        for at in range(self._steps_read, len(steps)):
            for record in steps[at].calls:
                vouched = record.success and record.approval_id is not None  # a person has seen it and said yes
                if not vouched and (values := record.ungrounded_values):
                    self._invented[record.call_id] = _forms(values)
        self._steps_read = len(steps)
        for at in range(self._messages_read, len(messages)):
            message = messages[at]
            if at < task_at:
                self._hear("history", message.content)
            elif at == task_at:
                self._hear("request", message.content)
            elif message.role is Role.FUNCTION:
                self._hear("result", message.content, message.call_id, message.name)
        self._messages_read = len(messages)

    def _hear(self, origin: Origin, text: str, call_id: str | None = None, tool_name: str | None = None) -> None:
        at = len(self._sources)
        self._sources.append((origin, call_id, tool_name))
        but = self._invented.pop(call_id, None) if call_id is not None else None
        self._tokens.add(at, text, but)
        self._words.add(at, text, but)


class _Index:
    """By part of a text: which source said it first. Texts are read when somebody looks for something."""

    def __init__(self, between: dict[int, str]) -> None:
        self._between = between
        self._first: dict[str, int] = {}
        self._unread: list[tuple[int, str, set[str] | None]] = []

    def add(self, at: int, text: str, but: set[str] | None) -> None:
        self._unread.append((at, text, but))

    def find(self, parts: list[str]) -> int | None:
        """The source that said the last of these parts; None where one of them was not said, or there are none."""
        if self._unread:
            for at, text, but in self._unread:
                self._read(at, text, but)
            self._unread.clear()
        latest = -1
        for part in parts:
            at = self._first.get(part)
            if at is None and (at := self._written_otherwise(part)) is None:
                return None
            latest = max(latest, at)
        return None if latest < 0 else latest

    def _written_otherwise(self, part: str) -> int | None:
        """The same with punctuation around it, here or there."""
        bare = part.strip(".:?!#$@€£")
        if not bare:
            return None
        for begin in _BEGINS:
            for end in _ENDS:
                if (at := self._first.get(f"{begin}{bare}{end}")) is not None:
                    return at
        return None

    def _read(self, at: int, text: str, but: set[str] | None) -> None:
        if "\\" in text:
            text = text.replace("\\n", " ").replace("\\t", " ").replace('\\"', " ")  # of texts within JSON
        for piece in _pieces(text):
            parts = dict.fromkeys(piece.lower().translate(self._between).split(), at)
            if but:
                for form in but:
                    parts.pop(form, None)
            for part in parts.keys() - self._first.keys():
                self._first[part] = at


def _pieces(text: str) -> Iterator[str]:
    """A long text in pieces that end where a word ends."""
    if len(text) <= PIECE:
        yield text
        return
    begin = 0
    while begin < len(text):
        end = begin + PIECE
        if end < len(text):
            gap = text.find(" ", end, end + PIECE)
            end = gap if gap >= 0 else end
        yield text[begin:end]
        begin = end


def _values(arguments: Mapping[str, Any], properties: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, Any]]:
    """Each value: where it is, its parameter's name, its schema where that is known, and itself."""
    left = MOST_VALUES
    waiting: list[tuple[str, str, Any, Any]] = [
        (name, name, properties.get(name), value) for name, value in reversed(arguments.items())
    ]
    while waiting and left:
        path, name, schema, value = waiting.pop()
        known = schema if isinstance(schema, dict) else {}
        if isinstance(value, dict) and value:
            inner = known.get("properties") or {}
            waiting += [
                (f"{path}.{key}", str(key), inner.get(key), item) for key, item in reversed(list(value.items()))
            ]
        elif isinstance(value, list) and value:
            items = known.get("items")
            waiting += [(f"{path}[{at}]", name, items, value[at]) for at in range(len(value) - 1, -1, -1)]
        elif value is not None or "default" in known:
            left -= 1
            yield path, name, schema, value


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_VALUE else None
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _forms(values: Iterable[Any]) -> set[str]:
    """How invented identifiers would be read out of a text that only repeats them."""
    found: set[str] = set()
    for value in values:
        lowered = str(value).strip().lower()
        found.update(lowered.translate(_BETWEEN).split())
        found.update(part for part in lowered.translate(_PUNCTUATION).split() if any(map(str.isdigit, part)))
    return found


def edited_sources(
    sources: tuple[ArgumentSource, ...], asked: Mapping[str, Any], edited: Mapping[str, Any]
) -> tuple[ArgumentSource, ...]:
    """The sources of a call's arguments after a person has put others in their place."""
    changed = {name for name, value in edited.items() if name not in asked or asked[name] != value}
    kept = [item for item in sources if (top := _top(item.argument)) in edited and top not in changed]
    written = [ArgumentSource.unchecked(argument=name, origin="person") for name in edited if name in changed]
    return (*kept, *written)


def _top(argument: str) -> str:
    return argument.partition(".")[0].partition("[")[0]
