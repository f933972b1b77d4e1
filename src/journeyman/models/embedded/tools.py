"""Tools as the engine reads them, and its calls as ours again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from journeyman.core.arguments import DATES, Told, dates_told, flags_told, grounded
from journeyman.core.messages import ToolCall
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import words
from journeyman.models.embedded.relevant import EVERYWHERE, relevant
from journeyman.models.wire import alias_names, is_safe_name

DEEPEST = 8
"""Schemas may contain themselves; a grammar may not."""
MOST_NAMES = 28
"""Each is read at the start, and takes a tenth of a second."""
NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}, "required": []}
COPY = "Copy the date word for word."
SAYS_NOTHING = ("title", "additionalProperties", "$defs")
UNIONS = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True)
class Offer:
    """A set of tools, written once."""

    text: str
    tools: Mapping[str, ToolSpecification]
    """By the names that the engine reads."""
    text_asked: str = ""
    """The request as it goes with this set."""
    told: Told | None = None
    """The dates of the only tool, where the request settles them."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to fill in."""
        return all(not part["parameters"].get("properties") for part in json.loads(self.text))

    @property
    def is_settled(self) -> bool:
        """Whether the request itself says all that there is to fill in."""
        settled = self.told.parameters if self.told else frozenset[str]()
        return all(settled >= set(part["parameters"].get("properties", ())) for part in json.loads(self.text))

    def chosen(self, said: Iterable[Any]) -> dict[str, ToolSpecification]:
        """The tools of the engine's calls by the names that it chose, each tool once."""
        found: dict[str, ToolSpecification] = {}
        for name in (str(item.get("name")) for item in said):
            if name in self.tools and self.tools[name] not in found.values():
                found[name] = self.tools[name]
        return found

    def calls(self, said: Iterable[Any], *, text: str, confidence: float, today: date) -> list[ToolCall]:
        """The engine's calls under our names, with what the request settles as the request has it."""
        made: list[ToolCall] = []
        for item in said:
            tool = self.tools.get(str(item.get("name")))
            if tool is not None:
                schema = plain_schema(tool.parameters)
                arguments = grounded(item.get("arguments") or {}, schema, text, today)
                if tool.read_only:  # a flag can do harm elsewhere, and only the engine read the whole sentence
                    arguments |= flags_told(schema, text)
                if all((call.tool_name, call.arguments) != (tool.name, arguments) for call in made):
                    made.append(ToolCall(tool_name=tool.name, arguments=arguments, confidence=confidence))
        if self.told and len(made) == 1:  # of several calls nobody knows whose day it is
            [call] = made
            rest = {name: value for name, value in call.arguments.items() if name not in self.told.parameters}
            return [call.model_copy(update={"arguments": {**rest, **self.told.arguments}})]
        return made


def choice_of(tools: Sequence[ToolSpecification]) -> Offer:
    """The tools without their parameters, which are most of the text.

    A name says more to the engine than a description does. So a tool is also offered under the verbs with which people
    ask for it: ``update_task`` with the example "Rename laundry to washing" as ``rename_task``.
    """
    named = _named(tools)
    others: dict[str, tuple[ToolSpecification, str]] = {}
    for name, tool in named.items():
        for request in tool.requests:
            verb = next(iter(words(request)), "")
            other = f"{verb}_{name.partition('_')[2]}"
            if verb and "_" in name and verb not in EVERYWHERE and is_safe_name(other) and other not in named:
                others.setdefault(other, (tool, request))
    offered = {name: (tool, first_paragraph(tool.description)) for name, tool in named.items()}
    offered |= dict(list(others.items())[: MOST_NAMES - len(offered)])
    ordered = sorted(offered.items(), key=lambda item: tools.index(item[1][0]))
    return Offer(
        text=_written((name, told, NO_PARAMETERS) for name, (_, told) in ordered),
        tools={name: tool for name, (tool, _) in offered.items()},
    )


def whole_of(tools: Sequence[ToolSpecification]) -> Offer:
    """The tools with all their parameters."""
    named, parts = _named(tools), list[tuple[str, str, Mapping[str, Any]]]()
    for name, tool in named.items():
        told = " ".join([first_paragraph(tool.description), *map(json.dumps, tool.requests)])
        parts.append((name, told, _copied_days(plain_schema(tool.parameters))))
    return Offer(_written(parts), named)


def form_of(chosen: Mapping[str, ToolSpecification], text: str, today: date) -> Offer:
    """The chosen tools with those of their parameters that a request can speak of."""
    parts = list[tuple[str, str, Mapping[str, Any]]]()
    for name, tool in chosen.items():
        schema = _copied_days(relevant(tool, plain_schema(tool.parameters), text, today))
        parts.append((name, first_paragraph(tool.description), schema))
    return Offer(_written(parts), chosen, text_asked=text, told=_told(chosen, text, today))


def plainer_form_of(chosen: Mapping[str, ToolSpecification], text: str, today: date) -> Offer | None:
    """For a form that was refused: the same without the days that the request settles, and with an example.

    The engine chose the tool, and then often finds that a task has no "tomorrow", or that nobody can be called. None
    where the form would be the same, or would have nothing to fill in.
    """
    if len(chosen) != 1:
        return None
    [(name, tool)], told, example = chosen.items(), _told(chosen, text, today), _example(*next(iter(chosen.items())))
    schema = plain_schema(tool.parameters)
    if told is not None:
        schema["properties"] = {key: part for key, part in schema["properties"].items() if key not in told.parameters}
        schema["required"] = [key for key in schema.get("required", ()) if key in schema["properties"]]
        text = told.text
    schema = _copied_days(relevant(tool, schema, text, today))
    if not schema["properties"] or (told is None and not example):
        return None
    parts = [(name, f"{first_paragraph(tool.description)}{example}", schema)]
    return Offer(_written(parts), chosen, text_asked=text, told=told)


def _told(chosen: Mapping[str, ToolSpecification], text: str, today: date) -> Told | None:
    if len(chosen) != 1:
        return None
    [tool] = chosen.values()
    return dates_told(plain_schema(tool.parameters), text, today)


def first_paragraph(text: str) -> str:
    """What a tool does and when to use it; what it returns and which errors it has only distracts a small model."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def first_sentence(text: str) -> str:
    text = " ".join(text.split())
    sentence, dot, _ = text.partition(". ")
    return sentence + "." if dot else text


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as it is declared, without references, null and what says nothing about a value."""
    definitions = schema.get("$defs")
    return _plain(schema, definitions if isinstance(definitions, Mapping) else {}, 0)


def _example(name: str, tool: ToolSpecification) -> str:
    """The request after whose verb a tool is named: without it the engine finds that the tool does not do that."""
    verb = name.partition("_")[0]
    if tool.name.startswith(verb):
        return ""
    return next((f" For example: {json.dumps(each)}." for each in tool.requests if words(each)[:1] == [verb]), "")


def _named(tools: Sequence[ToolSpecification]) -> dict[str, ToolSpecification]:
    aliases = alias_names([tool.name for tool in tools])
    return {aliases.get(tool.name, tool.name): tool for tool in tools}


def _written(parts: Iterable[tuple[str, str, Mapping[str, Any]]]) -> str:
    shown = [{"name": name, "description": told, "parameters": schema} for name, told, schema in parts]
    return json.dumps(shown, ensure_ascii=False)


def _copied_days(schema: dict[str, Any]) -> dict[str, Any]:
    """The engine copies "Friday" well and reckons badly which day that is: it is asked for the copy."""
    properties = {
        name: {
            **{key: value for key, value in part.items() if key != "format"},
            "description": f"{part.get('description', '')} {COPY}".strip(),
        }
        if part.get("format") in DATES
        else part
        for name, part in schema.get("properties", {}).items()
    }
    return {**schema, "properties": properties}


def _plain(schema: Any, definitions: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return {}
    made: dict[str, Any] = {}
    for key, value in _resolved(schema, definitions).items():
        if key == "properties" and isinstance(value, Mapping):
            made[key] = {name: _plain(part, definitions, depth + 1) for name, part in value.items()}
        elif key == "items":
            made[key] = _plain(value, definitions, depth + 1)
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
