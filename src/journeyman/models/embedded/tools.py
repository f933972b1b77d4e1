"""Tools as the engine reads them, and its calls as ours again; the days it copies become dates.

It chooses best among names with descriptions alone, so it is asked twice: which tools, and then, about those only,
with which arguments (see ``filling``).
"""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from journeyman.core.messages import ToolCall
from journeyman.core.specification import ToolSpecification
from journeyman.models.wire import alias_names, is_safe_name

KEPT = ("type", "description", "enum", "const", "format", "minimum", "maximum", "minLength", "maxLength", "pattern")
DEEPEST = 8
"""Schemas may contain themselves; a grammar may not."""
DATES = ("date", "date-time")
MOST_NAMES = 24
"""It reads eight names a second."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A set of tools, written once."""

    text: str
    tools: Mapping[str, ToolSpecification]
    """By the engine's names, of which a tool may have several."""

    def named(self, said: Iterable[Any]) -> list[ToolSpecification]:
        """The tools of the engine's calls, one for each call."""
        found = (self.tools.get(str(item.get("name"))) for item in said)
        return [tool for tool in found if tool is not None]

    def calls(self, said: Iterable[Any], *, confidence: float, today: date) -> list[ToolCall]:
        """The engine's calls under our names."""
        made = []
        for item in said:
            tool = self.tools.get(str(item.get("name")))
            if tool is not None:
                given = _with_dates(item.get("arguments") or {}, tool, today)
                made.append(ToolCall(tool_name=tool.name, arguments=given, confidence=confidence))
        return made


def choice_of(tools: Sequence[ToolSpecification]) -> Offer:
    """For the question which tools: no parameters.

    A name says more to it than a description does. So a tool is also offered under the names its tags give:
    ``update_task`` with the tag ``rename`` as ``rename_task``.
    """
    parts = _named(tools)
    known = {name for name, _ in parts}
    # The first tag of every tool, then the second ones, as far as there is room.
    for place in range(max((len(tool.tags) for tool in tools), default=0)):
        for name, tool in _named(tools):
            rest = name.partition("_")[2]
            if not rest or place >= len(tool.tags):
                continue
            other = f"{tool.tags[place]}_{rest}"
            if len(parts) < MOST_NAMES and other not in known and is_safe_name(other):
                known.add(other)
                parts.append((other, tool))
    parts.sort(key=lambda part: tools.index(part[1]))
    return _offer([(name, tool, described(name, first_paragraph(tool.description), {}, ())) for name, tool in parts])


def whole_of(tools: Sequence[ToolSpecification]) -> Offer:
    """Each tool with all its parameters."""
    parts = []
    for name, tool in _named(tools):
        properties, required = parameters_of(tool)
        parts.append((name, tool, described(name, first_paragraph(tool.description), properties, required)))
    return _offer(parts)


def parameters_of(tool: ToolSpecification) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The parameters of a tool, simplified, and the names of the required ones."""
    schema = simplified(tool.parameters)
    properties = schema.get("properties", {})
    return properties, [name for name in schema.get("required", ()) if name in properties]


def simplified(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without references, null and what says nothing about the value."""
    definitions = schema.get("$defs")
    return _simplified(schema, definitions if isinstance(definitions, Mapping) else {}, 0)


def written(name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]) -> str:
    """A set of one tool."""
    return json.dumps([described(name, description, properties, required)], ensure_ascii=False)


def described(name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {"name": name, "description": " ".join(description.split()), "parameters": parameters}


def plain_name(tool: ToolSpecification) -> str:
    """A name that the engine can write."""
    return alias_names([tool.name]).get(tool.name, tool.name)


def first_paragraph(text: str) -> str:
    """What a tool does and when to use it; what it returns and which errors it has only distracts a small model."""
    return text.strip().partition("\n\n")[0]


def first_sentence(text: str) -> str:
    text = " ".join(text.split())
    sentence, dot, _ = text.partition(". ")
    return sentence + "." if dot else text


def _offer(parts: Sequence[tuple[str, ToolSpecification, dict[str, Any]]]) -> Offer:
    return Offer(
        text=json.dumps([part for _, _, part in parts], ensure_ascii=False),
        tools={name: tool for name, tool, _ in parts},
    )


def _named(tools: Sequence[ToolSpecification]) -> list[tuple[str, ToolSpecification]]:
    aliases = alias_names(tool.name for tool in tools)
    return [(aliases.get(tool.name, tool.name), tool) for tool in tools]


def _with_dates(arguments: Mapping[str, Any], tool: ToolSpecification, today: date) -> dict[str, Any]:
    properties, _ = parameters_of(tool)
    return {
        key: as_iso(value, today) if properties.get(key, {}).get("format") in DATES else value
        for key, value in arguments.items()
    }


def _simplified(schema: Any, definitions: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return {}
    schema = _resolved(schema, definitions)
    made = {key: schema[key] for key in KEPT if key in schema}
    if isinstance(made.get("type"), list):
        made["type"] = next((kind for kind in made["type"] if kind != "null"), "string")
    if isinstance(made.get("enum"), list):
        made["enum"] = [value for value in made["enum"] if value is not None]
    if isinstance(schema.get("properties"), Mapping):
        made["properties"] = {
            name: _simplified(part, definitions, depth + 1) for name, part in schema["properties"].items()
        }
        made["required"] = list(schema.get("required", ()))
    if isinstance(schema.get("items"), Mapping):
        made["items"] = _simplified(schema["items"], definitions, depth + 1)
    return made


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference; of a union take the first part that is not null."""
    for _ in range(DEEPEST):
        reference = schema.get("$ref")
        union = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if isinstance(reference, str):
            inner = definitions.get(reference.rpartition("/")[2], {})
        elif isinstance(union, list) and union:
            inner = next((part for part in union if part.get("type") != "null"), {})
        else:
            break
        outer = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf", "oneOf", "allOf")}
        schema = {**inner, **outer}
    return schema


# --- days

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NEAR = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "day after tomorrow": 2}
WRITTEN = ("%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y")
COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10}
LEADING = re.compile(r"^(?:(?:by|on|due|until|before|after|from|this|next|coming|the)\s+)+")
TIME_OF_DAY = re.compile(r"\s+(?:at\s.*|in the (?:morning|afternoon|evening)|morning|noon|afternoon|evening|night)$")
IN_DAYS = re.compile(rf"in (\d{{1,3}}|{'|'.join(COUNTS)}) (day|week)s?")
END_OF_MONTH = re.compile(r"(?:end|last day) of (?:the |this )?month")
WEEKDAY_BEFORE = re.compile(rf"^(?:{'|'.join(WEEKDAYS)})\s+(?=.*\d)")


def as_iso(value: Any, today: date) -> Any:
    """``tomorrow``, ``Friday``, ``in 3 days``, ``3 December`` as ISO 8601; a weekday is the next one, never today."""
    if not isinstance(value, str):
        return value
    spoken = " ".join(value.casefold().replace(",", " ").split())
    text = TIME_OF_DAY.sub("", LEADING.sub("", spoken))
    if text in NEAR:
        return (today + timedelta(days=NEAR[text])).isoformat()
    if text in WEEKDAYS:
        return (today + timedelta(days=(WEEKDAYS.index(text) - today.weekday() - 1) % 7 + 1)).isoformat()
    if text == "week" and spoken.endswith("next week"):
        return (today + timedelta(days=7 - today.weekday())).isoformat()
    if counted := IN_DAYS.fullmatch(text):
        count = COUNTS.get(counted[1]) or int(counted[1])
        return (today + timedelta(days=count * (7 if counted[2] == "week" else 1))).isoformat()
    if END_OF_MONTH.fullmatch(text):
        return today.replace(day=monthrange(today.year, today.month)[1]).isoformat()
    return _written(WEEKDAY_BEFORE.sub("", text), today) or value


def _written(text: str, today: date) -> str | None:
    plain = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text).replace(" of ", " ").replace(".", "")
    plain = re.sub(r"\bsept\b", "sep", plain)
    for year in ("", f" {today.year}"):
        for form in WRITTEN:
            try:
                day = datetime.strptime(plain + year, form).date()
                # Without a year the next such day is meant.
                return (day if day >= today or not year else day.replace(year=day.year + 1)).isoformat()
            except ValueError:
                continue
    return None
