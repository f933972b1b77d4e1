"""A run as a demonstration without anybody's values: every argument is traced to its source and becomes a placeholder.

The same value has the same placeholder wherever it stands: in the request, in a result, in a later call. So a reader
sees where values come from, and there is nothing to leak or to copy. Everything here is linear in the texts, but for
the number of arguments.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from journeyman.core.calls import ResultField, Taken, names_in, ungrounded
from journeyman.core.playbook import DemonstratedCall, Demonstration, placeholder
from journeyman.learning import listed, shapes
from journeyman.learning.episodes import Episode, EpisodeCall
from journeyman.learning.examples import worked
from journeyman.provenance import ledger
from journeyman.provenance.index import identifies
from journeyman.provenance.ledger import CalledTool, Ledger, User, Utterance, is_name, shown_path, values_at, written
from journeyman.sensitive.tokens import redacted

LONGEST_REQUEST = 2_000
"""Characters of a request that are shown."""
MOST_CALLS = 12
MOST_ALIKE = 2
"""Calls of one tool in a row that a demonstration shows: two are enough to see that a step is repeated."""
SHORT = 3
"""Characters below which a value is found in too many places."""


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
        key = written(value)
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
        return self._by_value.get(written(value))

    def items(self, *, composed: bool = False) -> list[tuple[str, str]]:
        """Values that stand somewhere, or those that the model composed; the longest first."""
        wanted = [item for item in self._by_value.items() if (item[0] in self._composed) is composed]
        return sorted(wanted, key=lambda item: -len(item[0]))


def abstract(episode: Episode, *, own: bool = False) -> Abstracted | None:
    """The demonstration of an episode, its example with values of its ``own`` or made-up ones; None where nothing was
    called with success."""
    calls = _without_repeats(episode.used)
    if not calls:
        return None
    tracer = _Tracer(episode)
    shown = [tracer.demonstrated(call) for call in calls]
    # What of a result was used is known when the calls after it have been seen.
    shown = [call.model_copy(update={"result": tracer.result_of(number)}) for number, call in enumerate(shown)]
    request = tracer.request.text
    demonstration = Demonstration(
        request=_personal(_filled(request, tracer.names)) or "(a request)",
        calls=tuple(shown),
        closing=_closing(episode.answer, tracer.names),
    )
    named = dict([*tracer.names.items(), *tracer.names.items(composed=True)])
    example = worked(
        redacted(request), [call.arguments for call in calls], demonstration, named, personal=_personal, own=own
    )
    demonstration = demonstration.model_copy(update={"examples": (example,)})
    return Abstracted(demonstration, find_key(request, tracer.names.items()), tracer.ungrounded)


def find_key(request: str, values: Sequence[tuple[str, str]] = ()) -> str:
    """The text that a strategy is found by: the request without identifiers and names.

    A few plain words stay, whether or not they were arguments: they are what requests have in common.
    """
    text = request[:LONGEST_REQUEST]
    for value, _ in values:
        text = _put(text, "⟦⟧", value, keep_plain=True)
    return " ".join(re.sub(r"⟦[^⟧]*⟧", " ", _personal(text)).split())


def _without_repeats(calls: Sequence[EpisodeCall]) -> list[EpisodeCall]:
    kept: list[EpisodeCall] = []
    for call in calls:
        if [other.tool_name for other in kept[-MOST_ALIKE:]] != [call.tool_name] * MOST_ALIKE:
            kept.append(call)
    return kept[:MOST_CALLS]


class _Tracer:
    """What was told in an episode so far, and the placeholders of what its calls took from there."""

    def __init__(self, episode: Episode) -> None:
        self._ledger = Ledger()
        self._given: dict[tuple[str, str], set[str]] = defaultdict(set)
        """By tool and argument, all that it was called with: for each row of a result, or for some."""
        for call in episode.used:
            for name, value in call.arguments.items():
                self._given[call.tool_name, name].add(written(value))
        # Who of them said it before makes no difference to a demonstration.
        self._known = [self._ledger.hear(User(), said, earlier=True) for said in episode.known]
        self.request = self._ledger.hear(User(), episode.request[:LONGEST_REQUEST])
        self._calls: list[EpisodeCall] = []
        self._results: list[Utterance] = []
        self._used: list[dict[tuple[str, ...], str]] = []
        """By call: the placeholders of what later calls used of its result."""
        self.names = _Names()
        self.ungrounded: list[tuple[int, str]] = []

    def demonstrated(self, call: EpisodeCall) -> DemonstratedCall:
        """The next call, without anybody's values."""
        number = len(self._calls)
        arguments, sources, places = dict[str, Any](), dict[str, Taken | ResultField](), dict[str, str]()
        for name, value in call.arguments.items():
            taken: list[Taken | ResultField] = []
            arguments[name] = self._replaced(value, name, name, taken)
            source = sources[name] = min(taken, key=_rank, default=Taken.CONSTANT)
            if isinstance(source, ResultField) and source.call is not None:
                places[name] = _place(self._results[source.call], source.path, value, self._given[call.tool_name, name])
                sources[name] = ResultField(source.call, shown_path(source.path))
        invented = (names_in(path)[0] for path in ungrounded(self._ledger.trace(None, call.arguments)))
        self.ungrounded += [(number, name) for name in dict.fromkeys(invented)]
        self._calls.append(call)
        self._results.append(self._ledger.hear(CalledTool(str(number), call.tool_name), call.result))
        self._used.append({})
        return DemonstratedCall(
            tool_name=call.tool_name, arguments=arguments, sources=sources, places=places, effect=call.effect
        )

    def result_of(self, number: int) -> str:
        """A result cut to what later calls used of it."""
        used = self._used[number]
        if not used:
            return "ok" if self._calls[number].effect else "(found)"
        fields = {_field_name(path): name for path, name in used.items()}
        if set(fields) == {""}:
            return f"… {' … '.join(used.values())} …"
        shown = {**{key or "text": name for key, name in fields.items()}, "…": "…"}
        listed = isinstance(self._results[number].data, list | tuple)
        return json.dumps([shown] if listed else shown, ensure_ascii=False)

    def _replaced(self, value: Any, name: str, argument: str, taken: list[Taken | ResultField]) -> Any:
        """A value with placeholders in the place of all that was taken from somewhere."""
        if isinstance(value, Mapping):
            return {
                key if is_name(str(key)) else placeholder("key"): self._replaced(item, str(key), argument, taken)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            singular = name[:-1] if name.endswith("s") and len(name) > 3 else name
            return [self._replaced(item, singular, argument, taken) for item in value[:MOST_ALIKE]]
        if value is None or isinstance(value, bool) or not (text := written(value)).strip():
            return value
        source = self._source(value, text, argument)
        taken.append(source)
        if source is Taken.CONSTANT:
            return value
        if source is Taken.COMPOSED:
            return self.names.of(value, name, _shape(text), composed=True)
        if not isinstance(source, ResultField) or source.call is None:
            return self.names.of(value, name)
        used = self._used[source.call][source.path] = self.names.of(value, _field_name(source.path) or name)
        return used

    def _source(self, value: str | int | float, text: str, argument: str) -> Taken | ResultField:
        if self.request.quotes(text):
            return Taken.REQUEST
        if (field := self._in_result(value, text, argument)) is not None:
            return field
        if any(said.quotes(text) for said in self._known):
            return Taken.KNOWN
        return Taken.CONSTANT if self._is_constant(value, text) else Taken.COMPOSED

    def _is_constant(self, value: str | int | float, text: str) -> bool:
        """Whether a value may mean the same in every task: a choice or a small number that no result and no part of
        the request could have led to."""
        if any(result.field_of(text) is not None for result in self._results):
            return False
        if not isinstance(value, str):
            return abs(value) < 100
        if shapes.constant.fullmatch(value) is None or self.names.known(value) is not None:
            return False
        return len(text) < SHORT or text not in "".join(filter(str.isalnum, self.request.text.casefold()))

    def _in_result(self, value: str | int | float, text: str, argument: str) -> ResultField | None:
        common = len(str(value)) < SHORT or shapes.constant.fullmatch(text)
        for number, result in enumerate(self._results):
            path = result.field_of(text)
            if common:
                # A short number or a plain word says where it came from only as somebody's identifier.
                if path and (path[-1] == argument or identifies(path[-1])):
                    return ResultField(number, path)
            elif path is not None:
                return ResultField(number, path)
            elif isinstance(result.data, str) and len(text) > SHORT and result.quotes(text):
                return ResultField(number)
        return None


_ORDER = (Taken.COMPOSED, Taken.REQUEST, Taken.KNOWN, Taken.CONSTANT)


def _rank(source: Taken | ResultField) -> int:
    """Of an argument with several values, the source that matters most to whoever does the same comes first."""
    return -1 if isinstance(source, ResultField) else _ORDER.index(source)


def _field_name(path: Sequence[str]) -> str:
    """What a field is called; nothing for a text, or where its name may be somebody's value."""
    return path[-1] if path and is_name(path[-1]) else ""


def _place(result: Utterance, path: Sequence[str], value: Any, given: Set[str]) -> str:
    """Which row of a result a value stands in; ``each`` where the call was made for all rows."""
    rows, wanted = result.rows, written(value)
    if len(rows) < 2:
        return "only"
    if len(values := set(map(written, values_at(rows, path)))) > 1 and values <= given:
        return "each"
    held = [at for at, row in enumerate(rows[: ledger.MOST_LEAVES]) if wanted in map(written, values_at(row, path))]
    return {0: "first", len(rows) - 1: "last"}.get(held[0], "other") if len(held) == 1 else "other"


def _filled(text: str, names: _Names) -> str:
    for value, name in names.items():
        if value:
            text = _put(text, name, value)
    return text


def _is_plain(text: str, name: str) -> bool:
    """Whether a value is a few plain words, and nobody's name."""
    named = shapes.of_somebody.search(name) and not shapes.constant.fullmatch(text.casefold())
    return shapes.plain_words.fullmatch(text) is not None and not named


def _closing(answer: str, names: _Names) -> str:
    """The answer without values; empty where what is left could have been said of anything."""
    text = _filled(" ".join(answer.split())[:300], names)
    for value, name in names.items(composed=True):
        text = _put(text, name, value, keep_plain=True)
    text = _personal(text)
    return text if "⟦" in text else ""


def _personal(text: str) -> str:
    """A text without what may be somebody's: secrets, addresses, numbers, names. Placeholders stay."""
    pieces = re.split(r"(⟦[^⟧]*⟧)", redacted(text))
    for at in range(0, len(pieces), 2):
        piece = shapes.personal.sub("⟦value⟧", pieces[at])
        pieces[at] = shapes.name.sub(lambda match: "⟦name⟧" if _is_name(match[0]) else match[0], piece)
    return "".join(pieces)


def _is_name(word: str) -> bool:
    """Whether a word within a sentence is written like a name, in any script that knows capitals."""
    return word[0].isupper() and (not word.isupper() or len(word) > 3) and word.casefold() not in listed.week


def _put(text: str, name: str, value: str, *, keep_plain: bool = False) -> str:
    """A text with a placeholder for every occurrence of a value, but for what stands in placeholders already."""
    pieces = re.split(r"(⟦[^⟧]*⟧)", text)
    pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)

    def put(match: re.Match[str]) -> str:
        return match[0] if keep_plain and _is_plain(match[0], name) else name

    return "".join(piece if at % 2 else pattern.sub(put, piece) for at, piece in enumerate(pieces))


def _shape(text: str) -> str:
    """How a date or a time is written, where that is all that can be told of it: ``like 0000-00-00``."""
    if not shapes.dated.fullmatch(text):
        return ""
    return f" like {''.join('0' if character.isdigit() else character for character in text)}"
