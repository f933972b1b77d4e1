"""Tools as the engine reads them, and its calls as ours again.

It chooses best among names with descriptions alone, and fills arguments best for few parameters. So it is asked twice:
which tools, and then, about those only, with which arguments. A tool with many optional parameters is shown as one
tool for each of them; the calls of those are put together again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from journeyman.core.messages import ToolCall
from journeyman.core.specification import ToolSpecification
from journeyman.models.embedded.dates import as_iso
from journeyman.models.wire import alias_names

KEPT = ("type", "description", "enum", "const", "format", "minimum", "maximum", "minLength", "maxLength", "pattern")
DEEPEST = 8
"""Schemas may contain themselves; a grammar may not."""
MOST_OPTIONAL = 4
DATES = ("date", "date-time")


@dataclass(frozen=True, slots=True)
class Offer:
    """A set of tools, written once."""

    text: str
    tools: Mapping[str, ToolSpecification]
    """By the engine's names, of which a tool may have several."""

    def calls(self, said: Iterable[Any], *, confidence: float, today: date) -> list[ToolCall]:
        """The engine's calls under our names; parts of one call are one call again."""
        made: list[tuple[ToolSpecification, dict[str, Any]]] = []
        for item in said:
            tool = self.tools.get(str(item.get("name")))
            if tool is None:
                continue
            arguments = _with_dates(item.get("arguments") or {}, tool, today)
            part_of = next((known for known in made if known[0] is tool and _fits(known[1], arguments, tool)), None)
            if part_of is None:
                made.append((tool, arguments))
            else:
                part_of[1].update({**arguments, **part_of[1]})
        return [ToolCall(tool_name=tool.name, arguments=given, confidence=confidence) for tool, given in made]


def choice_of(tools: Sequence[ToolSpecification]) -> Offer:
    """For the question which tools: no parameters."""
    named = _named(tools)
    return _offer([(name, tool, _described(name, _first_paragraph(tool.description), {}, ())) for name, tool in named])


def forms_of(tools: Sequence[ToolSpecification]) -> Offer:
    """For the question with which arguments."""
    return _offer([part for name, tool in _named(tools) for part in _forms(name, tool)])


def simplified(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without references, null and what says nothing about the value."""
    definitions = schema.get("$defs")
    return _simplified(schema, definitions if isinstance(definitions, Mapping) else {}, 0)


def _offer(parts: Sequence[tuple[str, ToolSpecification, dict[str, Any]]]) -> Offer:
    return Offer(
        text=json.dumps([written for _, _, written in parts], ensure_ascii=False),
        tools={name: tool for name, tool, _ in parts},
    )


def _named(tools: Sequence[ToolSpecification]) -> list[tuple[str, ToolSpecification]]:
    aliases = alias_names(tool.name for tool in tools)
    return [(aliases.get(tool.name, tool.name), tool) for tool in tools]


def _forms(name: str, tool: ToolSpecification) -> list[tuple[str, ToolSpecification, dict[str, Any]]]:
    schema = simplified(tool.parameters)
    properties = {key: _date_as_words(part) for key, part in schema.get("properties", {}).items()}
    required = [key for key in schema.get("required", ()) if key in properties]
    optional = [key for key in properties if key not in required]
    if len(optional) <= MOST_OPTIONAL:
        return [(name, tool, _described(name, _first_paragraph(tool.description), properties, required))]
    always = {key: properties[key] for key in required}
    summary = first_sentence(tool.description)
    # Without a required parameter the tool alone is a whole request: "show my tasks".
    forms = [] if required else [(name, tool, _described(name, summary, {}, ()))]
    for key in optional:
        form = f"{name.partition('_')[0]}_{key}" if required else f"{name}_{key}"
        text = f"{summary} {key}: {properties[key].get('description', '')}".strip()
        forms.append((form, tool, _described(form, text, {**always, key: properties[key]}, [*required, key])))
    return forms


def _described(name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {"name": name, "description": " ".join(description.split()), "parameters": parameters}


def _first_paragraph(text: str) -> str:
    """What a tool does and when to use it; what it returns and which errors it has only distracts a small model."""
    return text.strip().partition("\n\n")[0]


def first_sentence(text: str) -> str:
    text = " ".join(text.split())
    sentence, dot, _ = text.partition(". ")
    return sentence + "." if dot else text


def _date_as_words(schema: dict[str, Any]) -> dict[str, Any]:
    """The engine copies "Friday" well and reckons badly which day that is: the day is worked out from its copy."""
    if schema.get("format") not in DATES:
        return schema
    told = f"{schema.get('description', '')} Copy the date word for word.".strip()
    return {**{key: value for key, value in schema.items() if key != "format"}, "description": told}


def _with_dates(arguments: Mapping[str, Any], tool: ToolSpecification, today: date) -> dict[str, Any]:
    properties = simplified(tool.parameters).get("properties", {})
    return {
        key: as_iso(value, today) if properties.get(key, {}).get("format") in DATES else value
        for key, value in arguments.items()
    }


def _fits(known: Mapping[str, Any], other: Mapping[str, Any], tool: ToolSpecification) -> bool:
    """Whether two calls can be one: the same required arguments, and no two values for an optional one."""
    required = tool.parameters.get("required", ())
    if len(tool.parameters.get("properties", {})) - len(required) <= MOST_OPTIONAL:
        return False
    same = all(str(known.get(key)).casefold() == str(other.get(key)).casefold() for key in required)
    return same and all(known.get(key, value) == value for key, value in other.items() if key not in required)


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
