"""Arguments that the request itself settles: the days it names, the addresses and the words for a value in it.

A small model copies long addresses with letters missing, refuses a form because of a "tomorrow", and takes "finished"
for something in progress. What can be read in the request for certain is read there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from difflib import SequenceMatcher
from typing import Any

from journeyman.core.days import Mention, as_iso, mentions, one_day, without
from journeyman.core.words import stem, words

DATES = ("date", "date-time")
ISO = re.compile(r"\byyyy-mm-dd\b|\biso[ -]?8601\b", re.IGNORECASE)
STARTS = frozenset(("after", "from", "since", "start", "begin"))
ENDS = frozenset(("before", "until", "till", "to", "end", "by"))
NEGATED = re.compile(r"\b(?:not|never|no|nothing|without)\b|n['’]t\b", re.IGNORECASE)
ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
CLOSING = ".,;:!?)]}>'\"”’"
IDENTIFIER = re.compile(r"(?=.*[^\W\d_])[\w~*]*[/\\@._#-][\w/\\@.#:~*?=&%+-]+")
"""A path, a file, an e-mail address, a key: what is copied and never said in other words."""
ALIKE = 0.8
EXCEPTED = r"\b(?:except(?: for)?|apart from|other than|but not|instead of|rather than)\s+(?:(?:the|my|a|an)\s+)?"
GLOSS = re.compile(r"(?:^|[:;,.]\s*)([\w ]+?) (?:is|are|means) (\w+)(?=[,;.]|$)")
""""Done or finished is completed", in the description of a parameter with such a value."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the request settles of a tool's dates, and the request without it."""

    text: str
    arguments: Mapping[str, str]
    parameters: frozenset[str]
    """The tool's dates; the engine is asked for none of them."""


def is_date(schema: Mapping[str, Any]) -> bool:
    """Whether a parameter is a date, by its format or because its description says how to write one."""
    if schema.get("format") in DATES:
        return True
    return schema.get("type") == "string" and "enum" not in schema and bool(ISO.search(schema.get("description", "")))


def dates_told(schema: Mapping[str, Any], text: str, today: date) -> Told | None:
    """The dates of a tool's call; None where the request names no day, or leaves open which day is which."""
    dates = [name for name, part in schema.get("properties", {}).items() if is_date(part)]
    found = mentions(text, today)
    ends = _ends(dates)
    if len(dates) == 1 and len(found) == 1 and not found[0].owns:
        arguments = {dates[0]: one_day(found[0].period, today)}
    elif ends and len(found) == 1:
        arguments = _range(found[0], *ends)
        if len(arguments) == len(ends) and set(ends) & set(schema.get("required", ())):
            return None  # a journey or a booking, not a filter: one day is not both its ends
    elif ends and len(found) == 2 and found[0].side == "after" and found[1].side != "after":
        first, last = found[0].period.first, found[1].period.last
        # Today is Monday: "between Monday and Friday" is next week.
        arguments = {ends[0]: first, ends[1]: last if last >= first else last + timedelta(days=7)}
    else:
        return None
    for each in reversed(found):
        text = without(text, each)
    return Told(text, {name: day.isoformat() for name, day in arguments.items()}, frozenset(dates))


def _ends(dates: Sequence[str]) -> tuple[str, str] | None:
    starts = [name for name in dates if STARTS & set(words(name.replace("_", " ")))]
    ends = [name for name in dates if ENDS & set(words(name.replace("_", " ")))]
    return (starts[0], ends[0]) if len(starts) == len(ends) == 1 and len(dates) == 2 and starts != ends else None


def _range(told: Mention, start: str, end: str) -> dict[str, date]:
    match told.side:
        case "before":
            return {end: told.period.last}
        case "after":
            return {start: told.period.first}
        case _:
            return {start: told.period.first, end: told.period.last}


def grounded(arguments: Mapping[str, Any], schema: Mapping[str, Any], text: str, today: date) -> dict[str, Any]:
    """The engine's arguments with days as dates, and with what stands in the request as it stands there."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: _grounded(value, properties.get(name, {}), text, today) for name, value in arguments.items()}


def _grounded(value: Any, schema: Mapping[str, Any], text: str, today: date) -> Any:
    if is_date(schema):
        return as_iso(value, today)
    if "enum" in schema:
        said = values_said(schema, text)
        return said[0] if len(said) == 1 and value not in said and not NEGATED.search(text) else value
    if isinstance(value, str) and value.casefold() not in text.casefold():
        return _copied(value, text)
    return value


def _copied(value: str, text: str) -> str:
    """The address or name of the request of which the engine's is a bad copy."""
    addresses = {match[0].rstrip(CLOSING) for match in ADDRESS.finditer(text)}
    if ADDRESS.fullmatch(value):
        return addresses.pop() if len(addresses) == 1 else value
    if not IDENTIFIER.fullmatch(value):
        return value
    near = {
        piece
        for piece in (piece.strip(CLOSING) for piece in text.split())
        if IDENTIFIER.fullmatch(piece)
        and SequenceMatcher(None, piece.casefold(), value.casefold(), autojunk=False).ratio() >= ALIKE
    }
    return near.pop() if len(near) == 1 else value


def values_said(schema: Mapping[str, Any], text: str) -> list[Any]:
    """The values of a choice that a request has words for: their own, or those that the description gives them."""
    said = {stem(word) for word in words(text)}
    return [value for value in schema["enum"] if any(each <= said for each in _words_for(value, schema))]


def _words_for(value: Any, schema: Mapping[str, Any]) -> Iterator[set[str]]:
    yield {stem(word) for word in words(str(value))}
    for gloss in GLOSS.finditer(" ".join(str(schema.get("description", "")).split())):
        if gloss[2] == value:
            yield from ({stem(word) for word in words(each)} for each in gloss[1].split(" or "))


def is_excepted(values: Iterable[Any], text: str) -> bool:
    """Whether a value is what a request leaves out: the milk in "Delete everything except the milk"."""
    texts = (value for value in values if isinstance(value, str) and value.strip())
    return any(re.search(rf"{EXCEPTED}{re.escape(value)}\b", text, re.IGNORECASE) for value in texts)


def flags_told(schema: Mapping[str, Any], text: str) -> dict[str, bool]:
    """The flags of which a request says the name: "overdue" in "overdue tasks with high priority"."""
    said = {stem(word) for word in words(text)}
    return {
        name: True
        for name, part in schema.get("properties", {}).items()
        if part.get("type") == "boolean"
        and part.get("default") is False
        and {stem(word) for word in words(name.replace("_", " "))} <= said
        and not NEGATED.search(text)
    }
