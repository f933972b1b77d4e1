"""Arguments that the request itself settles: the days it names, the addresses and the words for a value in it.

A small model copies long addresses with letters missing, refuses a form because of a "tomorrow", and takes "finished"
for something in progress. What can be read in the request for certain is read there.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple, TypeAlias

from journeyman.core.words import WORD, Patterns, stem, words

_english = Patterns("journeyman.models", "english.txt")

DATES = ("date", "date-time")
STARTS = frozenset(("after", "from", "since", "start", "begin"))
ENDS = frozenset(("before", "until", "till", "to", "end", "by"))
CLOSING = ".,;:!?)]}>'\"”’"
ALIKE = 0.8
NUMBERS = ("integer", "number")
NO_QUANTITY = frozenset(("number", "count", "amount", "num", "max", "min", "of", "id", "value"))
"""What names of parameters have that a request does not say beside a number."""
MAILS, LINKS = frozenset(("email", "mail")), frozenset(("url", "uri", "link", "website"))
EXCEPTED = r"\b(?:except(?: for)?|apart from|other than|but not|instead of|rather than)\s+(?:(?:the|my|a|an)\s+)?"


@dataclass(frozen=True, slots=True)
class RequestDates:
    """What the request settles of a tool's dates, and the request without it."""

    text: str
    arguments: Mapping[str, str]
    parameters: frozenset[str]
    """The tool's dates; the engine is asked for none of them."""


def is_iso(text: str) -> bool:
    """Whether a text is a day as ISO 8601 writes it."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_date(schema: Mapping[str, Any]) -> bool:
    """Whether a parameter is a date, by its format or because its description says how to write one."""
    if schema.get("format") in DATES:
        return True
    if schema.get("type") != "string" or "enum" in schema:
        return False
    return bool(_english.iso.search(schema.get("description", "")))


def dates_in_request(schema: Mapping[str, Any], text: str, today: date) -> RequestDates | None:
    """The dates of a tool's call; None where the request names no day, or leaves open which day is which."""
    dates = [name for name, part in schema.get("properties", {}).items() if is_date(part)]
    days = mentions(text, today)
    ends = _ends(dates)
    if len(dates) == 1 and len(days) == 1 and not days[0].owns:
        arguments = {dates[0]: one_day(days[0].period, today)}
    elif ends and len(days) == 1:
        arguments = _range(days[0], *ends)
        if len(arguments) == len(ends) and set(ends) & set(schema.get("required", ())):
            return None  # a journey or a booking, not a filter: one day is not both its ends
    elif ends and len(days) == 2 and days[0].side == "after" and days[1].side != "after":
        first, last = days[0].period.first, days[1].period.last
        # Today is Monday: "between Monday and Friday" is next week.
        arguments = {ends[0]: first, ends[1]: last if last >= first else last + timedelta(days=7)}
    else:
        return None
    for each in reversed(days):
        text = without(text, each)
    return RequestDates(text, {name: day.isoformat() for name, day in arguments.items()}, frozenset(dates))


def _ends(dates: Sequence[str]) -> tuple[str, str] | None:
    starts = [name for name in dates if STARTS & set(words(name.replace("_", " ")))]
    ends = [name for name in dates if ENDS & set(words(name.replace("_", " ")))]
    return (starts[0], ends[0]) if len(starts) == len(ends) == 1 and len(dates) == 2 and starts != ends else None


def _range(day: Mention, start: str, end: str) -> dict[str, date]:
    match day.side:
        case "before":
            return {end: day.period.last}
        case "after":
            return {start: day.period.first}
        case _:
            return {start: day.period.first, end: day.period.last}


def grounded(arguments: Mapping[str, Any], schema: Mapping[str, Any], text: str, today: date) -> dict[str, Any]:
    """The engine's arguments with days as dates, and with what stands in the request as it stands there."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: _grounded(value, properties.get(name, {}), text, today) for name, value in arguments.items()}


def _grounded(value: Any, schema: Mapping[str, Any], text: str, today: date) -> Any:
    if is_date(schema):
        return as_iso(value, today)
    if "enum" in schema:
        said = values_in_request(schema, text)
        return said[0] if len(said) == 1 and value not in said and not _english.negated.search(text) else value
    if isinstance(value, str) and value.casefold() not in text.casefold():
        return _copied(value, text)
    if schema.get("type") in NUMBERS and isinstance(value, int | float) and (only := _numbers(text)):
        # It drops what stands after the point.
        return only[0] if len(only) == 1 and int(only[0]) == value else value
    return value


def with_numbers(arguments: Mapping[str, Any], schema: Mapping[str, Any], text: str, today: date) -> dict[str, Any]:
    """The arguments with the numbers that a request says beside the word of one parameter: "four stars", "floor 2".

    And with the only number, where the only parameter for one was left out.
    """
    for each in reversed(mentions(text, today)):
        text = without(text, each)
    takes = {name: part for name, part in schema.get("properties", {}).items() if part.get("type") in NUMBERS}
    stems = {name: {stem(word) for word in words(name) if word not in NO_QUANTITY} for name in takes}
    said, made = _quantities(text), dict(arguments)
    for name in takes:
        own = stems[name].difference(*(each for other, each in stems.items() if other != name))
        beside = [value for value, near in said if near & own]
        if len(beside) == 1:
            stray = [value for value, _ in said].count(beside[0]) == 1
            made = {key: value for key, value in made.items() if key not in takes or value != beside[0] or not stray}
            made[name] = _as_declared(beside[0], takes[name])
    given = {piece for value in made.values() for piece in str(value).split()}
    free = [number for number in _numbers(text) if f"{number:g}" not in given]
    if len(takes) == 1 and not takes.keys() & made.keys() and len(free) == 1:
        made |= {name: _as_declared(free[0], part) for name, part in takes.items()}
    return made


def _as_declared(number: float, schema: Mapping[str, Any]) -> float:
    return int(number) if schema["type"] == "integer" or number.is_integer() else number


def _quantities(text: str) -> list[tuple[float, set[str]]]:
    """The numbers of a request, in digits or words, each with the stems of the words beside it."""
    spelled = list(WORD.finditer(text))
    counts = {word: count for word, count in COUNTS.items() if word != "a"}
    said = [(span.start(), float(counts[span[0].casefold()])) for span in spelled if span[0].casefold() in counts]
    said += [(match.start(), float(match[0].replace(",", "."))) for match in _english.number.finditer(text)]
    near = [
        [span[0].casefold() for span in spelled if span.start() < start][-1:]
        + [span[0].casefold() for span in spelled if span.start() > start][:2]
        for start, _ in said
    ]
    return [(value, {stem(word) for word in beside}) for (_, value), beside in zip(said, near, strict=True)]


def with_addresses(arguments: Mapping[str, Any], schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The arguments, and the only e-mail or web address of a request where the only parameter for it was left out."""
    made = dict(arguments)
    for kind, pattern in ((MAILS, _english.mail), (LINKS, _english.address)):
        said = {match[0].rstrip(CLOSING) for match in pattern.finditer(text)}
        properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
        takes = [name for name, part in properties.items() if kind & {*words(name), str(part.get("format"))}]
        if len(said) == len(takes) == 1 and takes[0] not in made and not said & set(map(str, made.values())):
            made[takes[0]] = said.pop()
    return made


def has_name(text: str) -> bool:
    """Whether a request has a word with a capital inside a sentence."""
    return bool(_english.capital.search(text))


def whole_names(arguments: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The arguments with names as the request has them: of "Ann Lee" the engine copies "Lee"."""
    made = dict(arguments)
    for name in _english.person.finditer(text):
        parts = {key for key, value in made.items() if isinstance(value, str) and value and value in name[0].split()}
        if len(parts) == 1:
            made[parts.pop()] = name[0]
    return made


def with_choices(arguments: Mapping[str, Any], schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The arguments, and the values of choices that a request says and no argument took up: "finished", "urgent"."""
    if _english.negated.search(text):
        return dict(arguments)
    taken = {stem(word) for value in arguments.values() for word in words(str(value))}
    left = " ".join(word for word in words(text) if stem(word) not in taken)
    made = dict(arguments)
    for name, part in schema.get("properties", {}).items():
        if "enum" in part and name not in made and len(said := values_in_request(part, left)) == 1:
            made[name] = said[0]
    return made


def _numbers(text: str) -> list[float]:
    """The numbers of a request that are no part of a name, a time or a date."""
    return [float(match[0].replace(",", ".")) for match in _english.number.finditer(text)]


def _copied(value: str, text: str) -> str:
    """The address or name of the request of which the engine's is a bad copy."""
    addresses = {match[0].rstrip(CLOSING) for match in _english.address.finditer(text)}
    if _english.address.fullmatch(value):
        return addresses.pop() if len(addresses) == 1 else value
    if not _english.identifier.fullmatch(value):
        return value
    near = {
        piece
        for piece in (piece.strip(CLOSING) for piece in text.split())
        if _english.identifier.fullmatch(piece)
        and SequenceMatcher(None, piece.casefold(), value.casefold(), autojunk=False).ratio() >= ALIKE
    }
    return near.pop() if len(near) == 1 else value


def values_in_request(schema: Mapping[str, Any], text: str) -> list[Any]:
    """The values of a choice that a request has words for: their own, or those that the description gives them."""
    said = {stem(word) for word in words(text)}
    return [value for value in schema["enum"] if any(each <= said for each in _words_for(value, schema))]


def _words_for(value: Any, schema: Mapping[str, Any]) -> Iterator[set[str]]:
    yield {stem(word) for word in words(str(value))}
    for gloss in _english.gloss.finditer(" ".join(str(schema.get("description", "")).split())):
        if gloss[2] == value:
            yield from ({stem(word) for word in words(each)} for each in gloss[1].split(" or "))


def is_excepted(values: Iterable[Any], text: str) -> bool:
    """Whether a value is what a request leaves out: the milk in "Delete everything except the milk"."""
    texts = (value for value in values if isinstance(value, str) and value.strip())
    return any(re.search(rf"{EXCEPTED}{re.escape(value)}\b", text, re.IGNORECASE) for value in texts)


def flags_in_request(schema: Mapping[str, Any], text: str) -> dict[str, bool]:
    """The flags of which a request says the name: "overdue" in "overdue tasks with high priority"."""
    said = {stem(word) for word in words(text)}
    return {
        name: True
        for name, part in schema.get("properties", {}).items()
        if part.get("type") == "boolean"
        and part.get("default") is False
        and {stem(word) for word in words(name.replace("_", " "))} <= said
        and not _english.negated.search(text)
    }


# --- parameters as they are declared

DEEPEST = 8
"""Schemas may contain themselves; a grammar may not."""
SAYS_NOTHING = ("title", "additionalProperties", "$defs")
UNIONS = ("anyOf", "oneOf", "allOf")


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as it is declared, without references, null and what says nothing about a value."""
    definitions = schema.get("$defs")
    return _plain_part(schema, definitions if isinstance(definitions, Mapping) else {}, 0)


def _plain_part(schema: Any, definitions: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return {}
    made: dict[str, Any] = {}
    for key, value in _resolved(schema, definitions).items():
        if key == "properties" and isinstance(value, Mapping):
            made[key] = {name: _plain_part(part, definitions, depth + 1) for name, part in value.items()}
        elif key == "items":
            made[key] = _plain_part(value, definitions, depth + 1)
        elif key == "type" and isinstance(value, list):
            made[key] = next((kind for kind in value if kind != "null"), "string")
        elif key == "enum" and isinstance(value, list):
            made[key] = [one for one in value if one is not None]
        elif key not in SAYS_NOTHING and not (key == "default" and value is None):
            made[key] = value
    return made


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference; of a union take the first part that is not null."""
    for _ in range(DEEPEST):
        reference = schema.get("$ref")
        union = next((schema[key] for key in UNIONS if isinstance(schema.get(key), list) and schema[key]), None)
        if isinstance(reference, str):
            inner = definitions.get(reference.rpartition("/")[2], {})
        elif union is not None:
            inner = next((part for part in union if part.get("type") != "null"), {})
        else:
            break
        schema = {**inner, **{key: value for key, value in schema.items() if key not in ("$ref", *UNIONS)}}
    return schema


# --- days in words as dates: a small model copies "Friday" well and reckons badly which day that is

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NEAR = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "day after tomorrow": 2}
WRITTEN = ("%Y-%m-%d", "%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y")
_COUNTING = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COUNTS = {"a": 1, **{word: count for count, word in enumerate(_COUNTING, start=1)}}
LONGEST_DAY = 6
"""In words: "the last day of this month"."""
LONGEST_LEAD = 60
"""Characters before a day that may lead to it."""

Side: TypeAlias = Literal["before", "after", "on"]


class Period(NamedTuple):
    first: date
    last: date


@dataclass(frozen=True, slots=True)
class Mention:
    """A day or more as a request speaks of them."""

    start: int
    end: int
    """In the request, with the words that lead to it."""
    period: Period
    side: Side
    owns: bool
    """"Today's tasks"."""


def as_iso(value: Any, today: date) -> Any:
    """``tomorrow``, ``Friday``, ``in 3 days``, ``3 December`` as ISO 8601; a weekday is the next one, never today."""
    if not isinstance(value, str):
        return value
    meant = period(_english.time_of_day.sub("", _english.leading.sub("", _plain(value))), today)
    return value if meant is None else one_day(meant, today).isoformat()


def one_day(meant: Period, today: date) -> date:
    """The day by which something is to be done: a period begins with its first day, or has begun and ends."""
    return meant.first if meant.first > today else meant.last


def mentions(text: str, today: date) -> list[Mention]:
    """The days of which a request speaks, outside of quotes and of names."""
    quoted = [match.span() for match in _english.quoted.finditer(text)]
    spans = [match.span() for match in WORD.finditer(text)]
    days, place = list[Mention](), 0
    while place < len(spans):
        begin = spans[place][0]
        pieces = (
            (end, period(_plain(text[begin:end]), today)) for _, end in reversed(spans[place : place + LONGEST_DAY])
        )
        end, meant = next(((end, meant) for end, meant in pieces if meant), (begin, None))
        if (
            meant
            and (lead := _english.lead.search(text, max(0, begin - LONGEST_LEAD), begin))
            and (rest := _english.goes_on.match(text, end))
            and not any(start <= begin < stop for start, stop in quoted)
            and not _english.repeated.search(text, max(0, begin - LONGEST_LEAD), begin)
        ):
            side: Side = "before" if lead["before"] else "after" if lead["after"] else "on"
            days.append(Mention(lead.start(), rest.end(), meant, side, bool(rest["owns"])))
        place += max(1, sum(begin <= start < end for start, _ in spans[place : place + LONGEST_DAY]))
    return days


def without(text: str, day: Mention) -> str:
    """The request without the words of a day."""
    before, after = text[: day.start].rstrip(" ,"), text[day.end :]
    return f"{before}{after}" if before else after.lstrip(" ,")


def period(text: str, today: date) -> Period | None:
    """The days that words mean, which are in lower case and with single spaces; None if they mean none."""
    text = text.removeprefix("the ")
    week = today - timedelta(days=today.weekday())
    if text in NEAR:
        return _day(today + timedelta(days=NEAR[text]))
    if weekday := _english.weekday.fullmatch(text):
        return _day(today + timedelta(days=(WEEKDAYS.index(weekday[1]) - today.weekday() - 1) % 7 + 1))
    if counted := _english.counted.fullmatch(text):
        count = COUNTS.get(counted[2]) or int(counted[2])
        last = today + timedelta(days=count * (7 if counted[3] == "week" else 1))
        return Period(last if counted[1] == "in" else today, last)
    if ending := _english.end_of.fullmatch(text):
        return _day(week + timedelta(days=6) if ending[1] == "week" else _month(today).last)
    if (relative := _english.relative.fullmatch(text)) and (relative[1] or relative[2] == "weekend"):
        ahead = {"next": 1, "last": -1}.get(relative[1], 0)
        if relative[2] == "month":
            first = today.replace(day=1)
            return _month(first + timedelta(days={1: 31, 0: 0, -1: -1}[ahead]))
        begins = week + timedelta(days=7 * ahead + (5 if relative[2] == "weekend" else 0))
        return Period(begins, week + timedelta(days=7 * ahead + 6))
    written = _written(_english.weekday_before.sub("", text), today)
    return _day(written) if written else None


def _day(day: date) -> Period:
    return Period(day, day)


def _month(day: date) -> Period:
    return Period(day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1]))


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace(",", " ").split())


def _written(text: str, today: date) -> date | None:
    if not any(map(str.isdecimal, text)):
        return None
    plain = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text).replace(" of ", " ").replace(".", "")
    plain = re.sub(r"\bsept\b", "sep", plain)
    for year in ("", f" {today.year}"):
        for form in WRITTEN:
            try:
                day = datetime.strptime(plain + year, form).date()
                # Without a year the next such day is meant.
                return day if day >= today or not year else day.replace(year=day.year + 1)
            except ValueError:
                continue
    return None
