"""Values for a tool's parameters, read in a request without a language model. What is not said is left out.

A value is taken where its form, a word beside it or the quotation around it tells whose it is. All of it is checked
against the tool's schema by whoever asks (``fitting_values``), and what does not conform is dropped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any

from journeyman.choosing import vocabulary, wording
from journeyman.choosing.value_kinds import kinds_of, said
from journeyman.core.errors import ToolDefinitionError
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stem, words
from journeyman.models.arguments import dates_in_request, flags_in_request, is_date, plain_schema, values_in_request

LONGEST_TEXT = 1_000
"""Characters of a request that are looked at."""
MOST_VALUES = 20
COPIED = ("email", "url", "channel", "mention", "file", "repository", "key")
"""Kinds of values that are copied as they stand, those that tell most first."""


@cache
def _language() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(vocabulary.languages)})\b", re.IGNORECASE)


def read_parameters(text: str, tool: ToolSpecification, *, today: date) -> dict[str, Any]:
    """The values that a request has for a tool's parameters; each conforms to its part of the schema."""
    return fitting_values(_Reading(text[:LONGEST_TEXT], tool, today).values(), tool)


def missing_parameters(values: Mapping[str, Any], tool: ToolSpecification) -> tuple[str, ...]:
    """The required parameters for which there is no value and no default."""
    properties = _properties(tool)
    required = tool.parameters.get("required", ())
    return tuple(
        str(name) for name in required if name not in values and "default" not in properties.get(str(name), {})
    )


def fitting_values(values: Mapping[str, Any], tool: ToolSpecification) -> dict[str, Any]:
    """Those of some values that conform to a tool's schema, whatever else is required."""
    from journeyman.tools.tool import ForeignSchema

    properties, kept = _properties(tool), dict[str, Any]()
    shared = {"$defs": tool.parameters["$defs"]} if "$defs" in tool.parameters else {}
    for name, value in [(name, value) for name, value in values.items() if name in properties][:MOST_VALUES]:
        try:
            schema = {**shared, "type": "object", "properties": {name: tool.parameters["properties"][name]}}
            if ForeignSchema(schema, where=tool.name).fits({name: value}):
                kept[name] = value
        except (ToolDefinitionError, ValueError):  # a schema that cannot be read, or a value that is no JSON
            continue
    return kept


def _properties(tool: ToolSpecification) -> dict[str, Mapping[str, Any]]:
    """Each parameter's schema; of a union the first part that is not null."""
    properties = plain_schema(tool.parameters).get("properties")
    return properties if isinstance(properties, dict) else {}


class _Reading:
    """One request read for one tool. What one parameter has taken, no other takes."""

    def __init__(self, text: str, tool: ToolSpecification, today: date) -> None:
        self._text, self._today, self._tool = text, today, tool
        self._properties = _properties(tool)
        self._taken: list[tuple[int, int]] = []
        required = [str(name) for name in tool.parameters.get("required", ()) if name in self._properties]
        self._order = [*required, *(name for name in self._properties if name not in required)]
        self._required = set(required)
        self._addresses = [match.span() for kind in ("url", "email") for match in said()[kind].finditer(text)]

    def values(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        schema = {**self._tool.parameters, "properties": self._properties}
        dated = any(map(is_date, self._properties.values()))
        if dated and (dates := dates_in_request(schema, self._text, self._today)) is not None:
            values |= dates.arguments
        flags = {name: {"default": False, **part} for name, part in self._properties.items()}
        values |= flags_in_request({"properties": flags}, self._text)
        for read in (self._choice, self._copied, self._moment, self._number, self._beside, self._people, self._said):
            for name in self._order:
                if name not in values and (value := read(name, self._properties[name])) is not None:
                    values[name] = value
        return values

    def _take(self, start: int, end: int) -> str | None:
        """A piece of the request, unless another parameter has taken a part of it."""
        if not self._free((start, end)) or any(begin < start and end <= stop for begin, stop in self._addresses):
            return None
        value = self._text[start:end].strip(" ,.;:!?")
        if value:
            self._taken.append((start, end))
        return value or None

    def _first(self, pattern: re.Pattern[str]) -> str | None:
        for match in pattern.finditer(self._text):
            if (value := self._take(*match.span())) is not None:
                return value
        return None

    def _choice(self, name: str, schema: Mapping[str, Any]) -> Any:
        if not isinstance(schema.get("enum"), list):
            return None
        said = values_in_request(schema, self._text)
        longest = [one for one in said if not any(str(one) != str(two) and str(one) in str(two) for two in said)]
        return longest[0] if len(longest) == 1 else None

    def _copied(self, name: str, schema: Mapping[str, Any]) -> Any:
        if not _is_text(schema):
            return None
        kinds = kinds_of(name, schema)
        for kind in COPIED:
            if kind in kinds and (value := self._first(said()[kind])) is not None:
                return value.rstrip(").,;")
        spelled = words(name)
        if "version" in spelled:
            return self._first(wording.version)
        if "language" in spelled:
            return self._first(_language())
        if spelled[-1:] in (["id"], ["key"], ["number"], ["code"], ["thread"]):
            return self._first(wording.code)
        return self._first(wording.slug) if vocabulary.slugged & set(spelled) else None

    def _moment(self, name: str, schema: Mapping[str, Any]) -> Any:
        if not _is_text(schema) or is_date(schema) or not kinds_of(name, schema) & {"date", "time"}:
            return None
        if kinds_of(name, {}) & {"date", "time"} or _says_when(schema):
            return self._when(name)
        return None

    def _when(self, name: str) -> str | None:
        for match in wording.when.finditer(self._text):
            side = wording.side.search(self._text, 0, match.start())
            named = side is not None and words(side[0])[0] in words(name)
            start = match.start() if side is None or named or "date" in words(name) else side.start()
            if (value := self._take(start, match.end())) is not None:
                return value
        return None

    def _number(self, name: str, schema: Mapping[str, Any]) -> Any:
        kind = schema.get("type")
        if kind not in ("integer", "number"):
            return None
        described = {stem(word) for word in words(f"{name} {schema.get('description', '')}")}
        if "minut" in described and (match := wording.duration.search(self._text)) is not None:
            return self._minutes(match)
        numbers = [match for match in wording.number.finditer(self._text) if self._free(match.span())]
        if "year" in described:
            numbers = [match for match in numbers if re.fullmatch(r"(?:19|20)\d\d", match[1])]
            return self._whole(numbers[0], kind) if len(numbers) == 1 else None
        beside = [match for match in numbers if self._neighbours(match) & described]
        money = [match for match in numbers if match[0][:1] in "$€£"] if described & {"amount", "pric", "cost"} else []
        chosen = beside or money or (numbers if name in self._required or described & {"amount"} else [])
        return self._whole(chosen[0], kind) if len(chosen) == 1 else None

    def _free(self, span: tuple[int, int]) -> bool:
        return not any(span[0] < end and start < span[1] for start, end in self._taken)

    def _neighbours(self, match: re.Match[str]) -> set[str]:
        before, after = words(self._text[: match.start()])[-1:], words(self._text[match.end() :])[:1]
        return {stem(word) for word in (*before, *after)}

    def _whole(self, match: re.Match[str], kind: Any) -> int | float | None:
        self._taken.append(match.span())
        value = float(match[1].replace(",", "")) * (1_000 if match[2] == "k" else 1)
        if not math.isfinite(value):
            return None
        return int(value) if kind == "integer" or value.is_integer() else value

    def _minutes(self, match: re.Match[str]) -> int | None:
        self._taken.append(match.span())
        if match[1]:
            return 30
        count = 1.0 if match[2].lower() in ("an", "one") else float(match[2])
        if not math.isfinite(count * 60):
            return None
        return round(count * (1 if match[3].lower().startswith("min") else 60))

    def _beside(self, name: str, schema: Mapping[str, Any]) -> Any:
        """ "The Hooli deal", "project DATA", "on branch main": a name beside the parameter's own word."""
        if not _is_text(schema):
            return None
        if vocabulary.capitalised & set(words(name)) and (match := wording.capitals.search(self._text)) is not None:
            return self._take(*match.span(1))
        for word in words(name):
            if len(word) < 3 or word in vocabulary.texts or word in vocabulary.queries:
                continue
            after = re.search(rf"\b{re.escape(word)}s?\s+(?:of\s+|for\s+)?([A-Z0-9][\w./-]*)", self._text)
            before = re.search(rf"\b([A-Z0-9][\w./-]*|\w+[-_/.]\w+)\s+{re.escape(word)}\b", self._text)
            for match in (after, before):
                if match is not None and (value := self._take(*match.span(1))) is not None:
                    return value
        return None

    def _people(self, name: str, schema: Mapping[str, Any]) -> Any:
        if not vocabulary.people & set(words(name)) or (several := schema.get("type") == "array") != _is_list(schema):
            return None
        names = list(self._names())
        if not names:
            return None
        if several:
            return [value for match in names if (value := self._name(match)) is not None] or None
        return self._name(names[0]) if _is_text(schema) else None

    def _names(self) -> Iterator[re.Match[str]]:
        for match in wording.name.finditer(self._text):
            starts = not self._text[: match.start()].rstrip() or self._text[: match.start()].rstrip()[-1:] in ".!?"
            if not (starts and " " not in match[0]) and self._free(match.span()):
                yield match

    def _name(self, match: re.Match[str]) -> str | None:
        value = self._take(*match.span())
        return None if value is None else re.sub(r"['’]s$", "", value)

    def _said(self, name: str, schema: Mapping[str, Any]) -> Any:
        """What is quoted, or stands after "that", a colon, "called" or "for"."""
        spelled = set(words(name))
        if not _is_text(schema) or not spelled & (vocabulary.texts | vocabulary.titles | vocabulary.queries):
            return None
        if name not in self._required and not spelled & vocabulary.queries:
            return self._quoted() if spelled & vocabulary.titles else None
        if (value := self._quoted()) is not None:
            return value
        if spelled & vocabulary.titles and (match := wording.called.search(self._text)) is not None:
            return self._until(match.end(), self._text.find(" with ", match.end()))
        if spelled & vocabulary.texts and (match := wording.reminded.search(self._text)) is not None:
            return self._until(match.end(), -1)
        if (
            spelled & (vocabulary.texts | vocabulary.titles)
            and (match := wording.saying.search(self._text)) is not None
        ):
            return self._until(match.end(), -1)
        if spelled & vocabulary.queries and (match := wording.searched.search(self._text)) is not None:
            ends = wording.phrase_ends.search(self._text, match.end())
            return self._until(match.end(), ends.start() if ends else -1)
        return None

    def _quoted(self) -> str | None:
        for match in wording.quoted.finditer(self._text):
            group = next(number for number in (1, 2, 3) if match[number] is not None)
            if self._take(*match.span()) is not None:
                return match[group].strip()
        return None

    def _until(self, start: int, end: int) -> str | None:
        stop = end if end > start else len(self._text)
        later = [other for other, _ in self._taken if start < other < stop]
        value = self._take(start, min([stop, *later]))
        if value is not None and value.lower() in vocabulary.no_values:
            return None
        return None if value is None else value.rstrip(" ,") or None


def _is_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" and not schema.get("enum")


def _is_list(schema: Mapping[str, Any]) -> bool:
    items = schema.get("items")
    return schema.get("type") == "array" and isinstance(items, Mapping) and items.get("type") == "string"


def _says_when(schema: Mapping[str, Any]) -> bool:
    described: Sequence[str] = words(str(schema.get("description", "")))
    return bool({"date", "day", "period", "time", "range"} & set(described))
