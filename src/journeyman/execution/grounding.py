"""Where each argument of a call came from: the request, the conversation, an earlier result, the tool's own schema.

Every text is read once, when the first call after it asks, and each of its words is kept with the source that said it
first. So a step costs as much as what was said since the last one, however long the run is.

Only *identifiers* must come from somewhere (see ``identifiers``). Free text, names, dates and quantities a model may
well write by itself: "tomorrow" becomes a date and "five" a 5. They are looked up all the same, and count as
``computed`` where they are not found.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Protocol, TypeAlias

from journeyman.core.calls import ToolCallRecord
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
SHORT_TEXT = 256
"""Characters of a text that is taken apart at once; searching a longer one is cheaper than that, a few times."""
CHARS_A_SEARCH = 32
"""A text is searched once for so many of its characters, then it is taken apart after all: that is when both cost the
same. So however often it is asked, a text costs a constant for each of its characters."""
MOST_IN_VAIN = 16
"""Places in a text that look like a value and are only part of one, before the text is taken apart."""
PIECE = 32_000
"""Characters that are taken apart at once: between two pieces other threads get their turn."""

_APART = "\"'`(){}[]<>,;=|“”‘’«»\n\r\t "
_BEGINS, _ENDS = ("", "#", "$", "@", "€", "£"), ("", ".", ":", "?", "!")
_letters_and_digits = re.compile(r"[^\W\d_]+|\d+").findall
_AROUND = "".join((*_BEGINS, *_ENDS))
_TOKENS = frozenset(_APART)
"""What stands between tokens. Not what stands within addresses, paths and numbers."""
_WORDS = frozenset(_APART + "_-./\\@:#$€£%&*+!?~^–—…")
"""What stands between words."""
_SPLIT_TOKENS, _SPLIT_WORDS = (str.maketrans(dict.fromkeys(apart, " ")) for apart in (_TOKENS, _WORDS))


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

    def __init__(self, conversation: Conversation, *, system: str = "", said: Sequence[str] = ()) -> None:
        self._conversation = conversation
        self._said = said
        """What was said elsewhere, before the run."""
        self._system = system
        self._sources: list[tuple[Origin, str | None, str | None]] = []
        self._texts: list[_Text] = []
        self._tokens = _Index(self._texts, _TOKENS, _SPLIT_TOKENS)
        self._words = _Index(self._texts, _WORDS, _SPLIT_WORDS)
        self._messages_read = self._steps_read = 0
        self._invented: dict[str, set[str]] = {}
        """By call: identifiers that stood nowhere when it was made. Its own result does not vouch for them."""
        self._lock = threading.Lock()

    @property
    def unread(self) -> int:
        """Characters that the next call has to read."""
        messages, count = self._conversation.messages, 0
        for at in range(self._messages_read, len(messages)):
            count += len(messages[at].content)
        return count

    def trace(self, specification: ToolSpecification, arguments: Mapping[str, Any]) -> tuple[ArgumentSource, ...]:
        """Where the value of each argument came from."""
        if not arguments:
            return ()
        properties = specification.parameters.get("properties")
        schemas = properties if type(properties) is dict else {}
        found: list[ArgumentSource] = []
        with self._lock:
            if len(self._conversation.messages) > self._messages_read:
                self._catch_up()
                self._tokens.read_on()
            for name, value in arguments.items():
                schema, kind = schemas.get(name), type(value)
                if kind is dict or kind is list:
                    inner = _values(name, schema, value, most=MOST_VALUES - len(found))
                    found += [self._source(*item) for item in inner]
                elif value is not None:
                    found.append(self._source(name, name, schema, value))
        return tuple(found)

    def _source(self, path: str, name: str, schema: Any, value: Any) -> ArgumentSource:
        if type(schema) is dict:
            if "default" in schema and schema["default"] == value:
                return _unsaid(path, "default")
            if "enum" in schema or "const" in schema:
                return _unsaid(path, "enum")
        kind = type(value)
        if kind is str:
            lowered = value.strip().lower() if len(value) <= LONGEST_VALUE else value
        elif kind is int:
            lowered = str(value)
        elif kind is float:
            lowered = str(int(value) if value.is_integer() else value)
        else:
            return _unsaid(path, "computed")
        if len(lowered) > LONGEST_VALUE:
            return _unsaid(path, "computed")
        at = self._tokens.first.get(lowered)
        if at is None:
            identifier = is_identifier(name, value)
            if not identifier and kind is not str:
                return _unsaid(path, "computed")  # a quantity: that its digits stand somewhere would say nothing
            at = self._tokens.find(lowered.translate(_SPLIT_TOKENS).split())
            if at is None:
                at = self._in_parts(lowered, identifier=identifier)
            if at is None:
                return _unsaid(path, "nowhere" if identifier else "computed")
        origin, call_id, tool_name = self._sources[at]
        if call_id is None:
            return _unsaid(path, origin)
        return ArgumentSource.unchecked(argument=path, origin=origin, call_id=call_id, tool_name=tool_name)

    def _in_parts(self, lowered: str, *, identifier: bool) -> int | None:
        """The source that completes a value that stands nowhere as it is: each of its words was said there or before.

        Words that happen to have been said are how identifiers are made up; only by digits is one recognised.
        """
        if identifier and is_address(lowered):
            return None
        parts = lowered.translate(_SPLIT_WORDS).split()
        numbered = any(sum(map(str.isdigit, part)) >= LEAST_DIGITS for part in parts)
        if identifier and not numbered and not is_path(lowered):
            return None
        found = self._words.find(parts)
        if found is None and identifier:  # "P followed by 12345678" is P12345678
            found = self._words.find(_letters_and_digits(lowered))
        return found

    def _catch_up(self) -> None:
        conversation = self._conversation
        messages, read = conversation.messages, self._messages_read
        if self._system:
            self._hear("system", self._system)
            self._system = ""
            for text in self._said:
                self._hear("request", text)
        steps = conversation.steps
        for at in range(self._steps_read, len(steps)):
            for record in steps[at].calls:
                for source in record.grounding or ():
                    if source.origin == "nowhere":
                        self._note_invented(record)
                        break
        self._steps_read = len(steps)
        task_at = conversation.task_at
        for at in range(read, len(messages)):
            message = messages[at]
            if at > task_at:
                if message.role is Role.FUNCTION:
                    self._hear("result", message.content, message.call_id, message.name)
            else:
                self._hear("request" if at == task_at else "history", message.content)
        self._messages_read = len(messages)

    def _note_invented(self, record: ToolCallRecord) -> None:
        if record.success and record.approval_id is not None:
            return  # a person has seen it and said yes
        self._invented[record.call_id] = _forms(record.ungrounded_values)

    def _hear(self, origin: Origin, text: str, call_id: str | None = None, tool_name: str | None = None) -> None:
        if "\\" in text:
            text = text.replace("\\n", " ").replace("\\t", " ").replace('\\"', " ")  # of texts within JSON
        self._sources.append((origin, call_id, tool_name))
        but = self._invented.pop(call_id or "", None) if self._invented else None
        self._texts.append((text.lower(), but))


_Text: TypeAlias = tuple[str, set[str] | None]
"""A text in lower case, and what in it does not count."""


class _Index:
    """By part of a text: which source said it first. Texts are read when somebody looks for something."""

    def __init__(self, texts: list[_Text], apart: frozenset[str], split: dict[int, str]) -> None:
        self._texts = texts
        self._apart = apart
        self._split = split
        self._read = 0
        self.first: dict[str, int] = {}
        self._long: dict[int, int] = {}
        """Texts that are only searched so far, and how often they may be."""

    def find(self, parts: list[str]) -> int | None:
        """The source that said the last of these parts; None where one of them was not said, or there are none."""
        self.read_on()
        latest = -1
        for part in parts:
            found = self.first.get(part)
            if found is None and self._long:
                found = self._search(part)
            if found is None and (found := self._written_otherwise(part)) is None:
                return None
            latest = max(latest, found)
        return None if latest < 0 else latest

    def read_on(self) -> None:
        """Take in what was said since the last time."""
        for at in range(self._read, len(self._texts)):
            length = len(self._texts[at][0])
            if length <= SHORT_TEXT:
                self._take_apart(at)
            else:
                self._long[at] = length // CHARS_A_SEARCH
        self._read = len(self._texts)

    def _written_otherwise(self, part: str) -> int | None:
        """The same with punctuation around it, here or there."""
        bare = part.strip(_AROUND)
        if not bare:
            return None
        if bare != part and self._long and (found := self._search(bare)) is not None:
            return found
        for begin in _BEGINS:
            for end in _ENDS:
                if (found := self.first.get(f"{begin}{bare}{end}")) is not None:
                    return found
        return None

    def _search(self, part: str) -> int | None:
        """The first of the long texts in which it stands."""
        for at, left in tuple(self._long.items()):
            text, but = self._texts[at]
            if left and part not in text:  # mostly, and at once
                self._long[at] = left - 1
                continue
            if but is not None and part in but:
                continue
            stands = self._stands(text, part) if left else None
            if stands is None:
                del self._long[at]
                self._take_apart(at)
                stands = self.first.get(part) == at
            else:
                self._long[at] = left - 1
            if stands:
                return at
        return None

    def _stands(self, text: str, part: str) -> bool | None:
        """Whether a text has it with nothing but space and punctuation around; None where that takes too long."""
        at, apart = text.find(part), self._apart
        for _ in range(MOST_IN_VAIN):
            if at < 0:
                return False
            begin, end = at, at + len(part)
            if begin and text[begin - 1] in _BEGINS:
                begin -= 1
            if end < len(text) and text[end] in _ENDS:
                end += 1
            if (not begin or text[begin - 1] in apart) and (end == len(text) or text[end] in apart):
                return True
            at = text.find(part, at + 1)
        return None

    def _take_apart(self, at: int) -> None:
        text, but = self._texts[at]
        if but is None and text.isalnum():  # a number or a word: there is nothing to take apart
            self.first.setdefault(text, at)
            return
        for piece in (text,) if len(text) <= PIECE else _pieces(text):
            parts = piece.translate(self._split).split()
            if but:
                parts = [part for part in parts if part not in but]
            deque(map(self.first.setdefault, parts, repeat(at)), maxlen=0)  # a loop, four times as fast


def _pieces(text: str) -> Iterator[str]:
    """A long text in pieces that end where a word ends."""
    begin = 0
    while begin < len(text):
        end = begin + PIECE
        if end < len(text):
            gap = text.find(" ", end, end + PIECE)
            end = gap if gap >= 0 else end
        yield text[begin:end]
        begin = end


def _values(name: str, schema: Any, value: Any, *, most: int) -> Iterator[tuple[str, str, Any, Any]]:
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
    return ArgumentSource.unchecked(argument=path, origin=origin)


def _forms(values: Iterable[Any]) -> set[str]:
    """How invented identifiers would be read out of a text that only repeats them."""
    found: set[str] = set()
    for value in values:
        lowered = str(value).strip().lower()
        for token in lowered.translate(_SPLIT_TOKENS).split():
            bare = token.strip(_AROUND)
            found.update((token, *(f"{begin}{bare}{end}" for begin in _BEGINS for end in _ENDS)))
        found.update(part for part in lowered.translate(_SPLIT_WORDS).split() if any(map(str.isdigit, part)))
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
