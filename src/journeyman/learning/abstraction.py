"""A run as a demonstration without anybody's values: every argument is traced to its source and becomes a placeholder.

The same value has the same placeholder wherever it stands: in the request, in a result, in a later call. So a reader
sees where values come from, and there is nothing to leak or to copy. Everything here is linear in the texts, but for
the number of arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from journeyman.core.data import canonical_json
from journeyman.core.playbook import DemonstratedCall, Demonstration, placeholder
from journeyman.core.sensitive.tokens import redacted
from journeyman.core.words import stands_in
from journeyman.learning.episodes import Episode, EpisodeCall

LONGEST_REQUEST = 2_000
LONGEST_RESULT = 20_000
"""Characters of a text in which a source is looked for."""
MOST_CALLS = 12
MOST_ALIKE = 2
"""Calls of one tool in a row that a demonstration shows: two are enough to see that a step is repeated."""
MOST_LEAVES = 2_000
_CONSTANT = re.compile(r"[a-z][a-z_-]{0,23}")
"""Words that name a choice, such as ``high`` or ``in_progress``; anything else may be somebody's value."""
SHORT = 3
"""Characters below which a value is found in too many places."""
_OF_SOMEBODY = re.compile(
    r"name|user|person|customer|client|patient|member|guest|employee|recipient|contact|owner|author|assignee|to\b|who"
)
"""Parameters whose values are mostly somebody's, however they are written."""
_FIELD = re.compile(r"[A-Za-z_]\w{0,39}")
_IDENTIFIES = re.compile(r"(?:^|_)(?:id|ids|key|uuid|ref|number|code|slug|login|user|username|account|name|email)$")
_PLAIN_WORDS = re.compile(r"[a-z'-]+(?: [a-z'-]+){0,3}")
_IDENTIFIER = re.compile(r"[^\s@]+@[^\s@]+\.\w+|\w*\d[\w./:#-]*\d\w*|[a-z]+://\S+|(?:\.{0,2}/)?(?:[\w.-]+/)+[\w.-]*")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?|\d{1,2}:\d{2}(?::\d{2})?")
_DATED = re.compile(r"\d{1,4}([-/:.]\d{1,4}){1,2}([ T]\d{1,2}:\d{2}(:\d{2})?)?Z?")
_PERSONAL = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # an address
    r"|https?://\S+"
    r"|\+?\d[\d ()/-]{6,}\d"  # a telephone or card number
    r"|#?[A-Za-z]*_?\d{3,}\w*"  # an identifier
    r"|\b[^\W\d]{3,}\d+\w*\b"
)
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)(?<![^\W_])[^\W\d_]{2,}(?:['’][^\W\d_]+)?")
_DATES = """
    monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december
"""
_WEEK = frozenset(_DATES.split())


@dataclass(slots=True)
class Source:
    """Where one argument came from."""

    kind: str
    """``request``, ``result``, ``known`` (said before), ``constant`` or ``composed``."""
    call: int = 0
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind != "result":
            return self.kind
        path = self.path if all(map(_FIELD.fullmatch, self.path)) else ()  # a key may be somebody's value
        return f"result {self.call} {'.'.join(path)}".strip()


@dataclass(slots=True)
class Abstracted:
    """A demonstration, the text it is found by, and which identifiers came from nowhere."""

    demonstration: Demonstration
    key: str
    ungrounded: list[tuple[int, str]] = field(default_factory=list)
    """Calls (by number) and arguments with an identifier that stands neither in the request nor in a result."""


class _Names:
    """One placeholder for each value."""

    def __init__(self) -> None:
        self._by_value: dict[str, str] = {}
        self._taken: set[str] = set()
        self._composed: set[str] = set()

    def of(self, value: Any, wanted: str, shape: str = "", *, composed: bool = False) -> str:
        key = _plain(value)
        if composed:
            self._composed.add(key)
        if key not in self._by_value:
            name, number = wanted, 2
            while name in self._taken:
                name, number = f"{wanted} {number}", number + 1
            self._taken.add(name)
            self._by_value[key] = placeholder(name + shape)
        return self._by_value[key]

    def known(self, value: Any) -> str | None:
        return self._by_value.get(_plain(value))

    def items(self, *, composed: bool = False) -> list[tuple[str, str]]:
        """Values that stand somewhere, or those that the model composed; the longest first."""
        found = [(value, name) for value, name in self._by_value.items() if (value in self._composed) is composed]
        return sorted(found, key=lambda item: -len(item[0]))


def abstract(episode: Episode) -> Abstracted | None:
    """The demonstration of an episode; None where nothing was called with success."""
    calls = _shown(episode.used)
    if not calls:
        return None
    names = _Names()
    results = [_leaves(call.result) for call in calls]
    request = episode.request[:LONGEST_REQUEST]
    known = [str(item)[:LONGEST_RESULT] if not isinstance(item, str) else item for item in episode.known]
    sources: list[dict[str, Source]] = []
    ungrounded: list[tuple[int, str]] = []
    arguments: list[dict[str, Any]] = []
    used_paths: dict[int, dict[tuple[str, ...], str]] = {}
    for number, call in enumerate(calls):
        found: dict[str, Source] = {}
        made: dict[str, Any] = {}
        for name, value in call.arguments.items():
            trace = _Trace(request, results[:number], known, names, used_paths, name)
            made[name] = trace.replace(value, name)
            found[name] = trace.overall()
            if trace.invented:
                ungrounded.append((number, name))
        sources.append(found)
        arguments.append(made)
    told = tuple(
        DemonstratedCall(
            tool_name=call.tool_name,
            arguments=arguments[number],
            sources={name: str(source) for name, source in sources[number].items()},
            places={
                name: _place(calls[source.call].result, source.path, call.arguments[name])
                for name, source in sources[number].items()
                if source.kind == "result"
            },
            result=_result(call, used_paths.get(number, {})),
            effect=call.effect,
        )
        for number, call in enumerate(calls)
    )
    demonstration = Demonstration(
        request=_personal(_filled(request, names)) or "(a request)",
        calls=told,
        closing=_closing(episode.answer, names),
    )
    return Abstracted(demonstration, find_key(request, names.items()), ungrounded)


def find_key(request: str, values: Sequence[tuple[str, str]] = ()) -> str:
    """The text that a strategy is found by: the request without identifiers and names.

    A few plain words stay, whether or not they were arguments: they are what requests have in common.
    """
    text = request[:LONGEST_REQUEST]
    for value, _ in values:
        text = _replaced(text, value, partial(_unless_plain, "⟦⟧"))
    return " ".join(re.sub(r"⟦[^⟧]*⟧", " ", _personal(text)).split())


def _shown(calls: Sequence[EpisodeCall]) -> list[EpisodeCall]:
    kept: list[EpisodeCall] = []
    for call in calls:
        alike = kept[-MOST_ALIKE:]
        if len(alike) == MOST_ALIKE and all(other.tool_name == call.tool_name for other in alike):
            continue
        kept.append(call)
    return kept[:MOST_CALLS]


class _Trace:
    """Finds the sources of one argument's values and puts placeholders in their place."""

    def __init__(
        self,
        request: str,
        results: Sequence[Mapping[str, tuple[str, ...]]],
        known: Sequence[str],
        names: _Names,
        used_paths: dict[int, dict[tuple[str, ...], str]],
        argument: str,
    ) -> None:
        self._request, self._results, self._known, self._names = request, results, known, names
        self._argument = argument
        self._used_paths = used_paths
        self._found: list[Source] = []
        self.invented = False

    def overall(self) -> Source:
        order = ("result", "composed", "request", "known", "constant")
        return min(self._found, key=lambda source: order.index(source.kind), default=Source("constant"))

    def replace(self, value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {
                key if _FIELD.fullmatch(str(key)) else placeholder("key"): self.replace(item, str(key))
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.replace(item, _singular(name)) for item in value[:MOST_ALIKE]]
        if value is None or isinstance(value, bool):
            return value
        return self._leaf(value, name)

    def _leaf(self, value: str | int | float, name: str) -> Any:
        text = _plain(value)
        if not text.strip():
            return value
        if (at := self._in_result(text)) is not None:
            number, path = at
            self._found.append(Source("result", number, path))
            made = self._names.of(value, path[-1] if path else name)
            self._used_paths.setdefault(number, {})[path] = made
            return made
        if stands_in(self._request, text):
            self._found.append(Source("request"))
            return self._names.of(value, name)
        if any(stands_in(said, text) for said in self._known):
            self._found.append(Source("known"))
            return self._names.of(value, name)
        if self._is_constant(value):
            self._found.append(Source("constant"))
            return value
        self._found.append(Source("composed"))
        self.invented = self.invented or _looks_like_identifier(text)
        return self._names.of(value, name, _shape(text), composed=True)

    def _is_constant(self, value: str | int | float) -> bool:
        """Whether a value may mean the same in every task: a choice or a small number that no result and no part of
        the request could have led to."""
        text = _plain(value).casefold()
        if any(text in leaves for leaves in self._results):
            return False
        if not isinstance(value, str):
            return abs(value) < 100
        if _CONSTANT.fullmatch(value) is None or self._names.known(value) is not None:
            return False
        return len(text) < SHORT or text not in _squeezed(self._request)

    def _in_result(self, text: str) -> tuple[int, tuple[str, ...]] | None:
        if stands_in(self._request, text):
            return None
        if len(text) < SHORT or _CONSTANT.fullmatch(text):
            return self._identified(text)
        for number, leaves in enumerate(self._results):
            if (path := leaves.get(text.casefold())) is not None:
                return number, path
            if (whole := leaves.get("")) is not None and len(text) > 3 and stands_in(whole[0], text):
                return number, ()
        return None

    def _identified(self, text: str) -> tuple[int, tuple[str, ...]] | None:
        """Where a short number or a plain word stands in a result as somebody's identifier; elsewhere it is too common
        to say where it came from."""
        for number, leaves in enumerate(self._results):
            path = leaves.get(text.casefold())
            if path and (path[-1] == self._argument or _IDENTIFIES.search(path[-1].casefold())):
                return number, path
        return None


def _place(result: Any, path: Sequence[str], value: Any) -> str:
    """Which row of a result a value stands in."""
    rows = parsed(result)
    if not isinstance(rows, list | tuple) or len(rows) < 2:
        return "only"
    wanted = _plain(value)
    held = [
        at
        for at, row in enumerate(rows[:MOST_LEAVES])
        if any(found == tuple(path) and _plain(item) == wanted for found, item in walk(row))
    ]
    return {(0,): "first", (len(rows) - 1,): "last"}.get((held[0],) if len(held) == 1 else (-1,), "other")


def _squeezed(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _leaves(result: Any) -> dict[str, tuple[str, ...]]:
    """By value, in lower case: where in a result it stands. A text that is no JSON is kept under the empty value."""
    result = parsed(result)
    if isinstance(result, str):
        return {result.casefold(): (), "": (result,)} if len(result) < 200 else {"": (result,)}
    found: dict[str, tuple[str, ...]] = {}
    for path, value in walk(result):
        found.setdefault(_plain(value).casefold(), path)
        if len(found) >= MOST_LEAVES:
            break
    return found


def parsed(result: Any) -> Any:
    """A result as data, where its text is JSON."""
    if not isinstance(result, str):
        return result
    text = result[:LONGEST_RESULT]
    try:
        return json.loads(text) if text[:1] in ("[", "{") else text
    except (ValueError, RecursionError):
        return text


def walk(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values in a result, each with the names that lead to it."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, Mapping):
            stack.extend(((*path, str(key)), inner) for key, inner in reversed(list(item.items())))
        elif isinstance(item, list | tuple):
            stack.extend((path, inner) for inner in reversed(item[:MOST_LEAVES]))
        elif item is not None and not isinstance(item, bool):
            yield path, item


def _result(call: EpisodeCall, used: Mapping[tuple[str, ...], str]) -> str:
    """A result cut to what later calls used of it."""
    if not used:
        return "ok" if call.effect else "(found)"
    fields = {path[-1] if path else "": name for path, name in used.items()}
    if set(fields) == {""}:
        return f"… {' … '.join(used.values())} …"
    shown = {**{key or "text": name for key, name in fields.items()}, "…": "…"}
    listed = isinstance(call.result, list | tuple) or (isinstance(call.result, str) and call.result[:1] == "[")
    return json.dumps([shown] if listed else shown, ensure_ascii=False)


def _filled(text: str, names: _Names) -> str:
    for value, name in names.items():
        if value:
            text = _replaced(text, value, partial(_instead, name))
    return text


def _instead(name: str, _: str) -> str:
    return name


def _unless_plain(name: str, found: str) -> str:
    named = _OF_SOMEBODY.search(name) and not _CONSTANT.fullmatch(found.casefold())
    return found if _PLAIN_WORDS.fullmatch(found) and not named else name


def _closing(answer: str, names: _Names) -> str:
    """The answer without values; empty where what is left could have been said of anything."""
    text = _filled(" ".join(answer.split())[:300], names)
    for value, name in names.items(composed=True):
        text = _replaced(text, value, partial(_unless_plain, name))
    text = _personal(text)
    return text if "⟦" in text else ""


def _personal(text: str) -> str:
    """A text without what may be somebody's: secrets, addresses, numbers, names. Placeholders stay."""
    pieces = re.split(r"(⟦[^⟧]*⟧)", redacted(text))
    for at in range(0, len(pieces), 2):
        piece = _PERSONAL.sub("⟦value⟧", pieces[at])
        pieces[at] = _NAME.sub(lambda found: "⟦name⟧" if _is_name(found[0]) else found[0], piece)
    return "".join(pieces)


def _is_name(word: str) -> bool:
    """Whether a word within a sentence is written like a name, in any script that knows capitals."""
    return word[0].isupper() and (not word.isupper() or len(word) > 3) and word.casefold() not in _WEEK


def _replaced(text: str, value: str, put: Callable[[str], str]) -> str:
    """A text with something put for every occurrence of a value, but for what stands in placeholders already."""
    pieces = re.split(r"(⟦[^⟧]*⟧)", text)
    pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
    return "".join(
        piece if at % 2 else pattern.sub(lambda found: put(found[0]), piece) for at, piece in enumerate(pieces)
    )


def _looks_like_identifier(text: str) -> bool:
    return bool(_IDENTIFIER.fullmatch(text)) and not _DATE.fullmatch(text) and len(text) > 3


def _shape(text: str) -> str:
    """How a date or a time is written, where that is all that can be told of it: ``like 0000-00-00``."""
    if not _DATED.fullmatch(text):
        return ""
    return f" like {''.join('0' if character.isdigit() else character for character in text)}"


def _singular(name: str) -> str:
    return name[:-1] if name.endswith("s") and len(name) > 3 else name


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return canonical_json(value) if not isinstance(value, float) or value == value else "nan"
