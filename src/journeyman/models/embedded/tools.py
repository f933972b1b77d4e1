"""Tools as the engine reads them, and its calls as ours again.

Of optional parameters it is asked for those that a request can speak of, and makes up fewer values.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from journeyman.core.runs import ToolCall
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import WORD, WordLists, packaged_json, stem, words
from journeyman.models.arguments import (
    DATES,
    LONGEST_DAY,
    RequestDates,
    as_iso,
    dates_in_request,
    flags_in_request,
    grounded,
    plain_schema,
)
from journeyman.models.wire import alias_names, is_safe_name

_listed = WordLists("journeyman.models.embedded", "words.txt")
MOST_NAMES = 28
"""Each is read at the start, and takes a tenth of a second."""
NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}, "required": []}
COPY = "Copy the date word for word."


@dataclass(frozen=True, slots=True)
class ToolText:
    """A set of tools, written once."""

    text: str
    tools: Mapping[str, ToolSpecification]
    """By the names that the engine reads."""
    text_asked: str = ""
    """The request as it goes with this set."""
    dates: RequestDates | None = None
    """The dates of the only tool, where the request settles them."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to fill in."""
        return all(not part["parameters"].get("properties") for part in json.loads(self.text))

    @property
    def is_settled(self) -> bool:
        """Whether the request itself says all that there is to fill in."""
        settled = self.dates.parameters if self.dates else frozenset[str]()
        return all(settled >= set(part["parameters"].get("properties", ())) for part in json.loads(self.text))

    def chosen(self, said: Iterable[Any]) -> dict[str, ToolSpecification]:
        """The tools of the engine's calls by the names that it chose, each tool once."""
        tools: dict[str, ToolSpecification] = {}
        for name in (str(item.get("name")) for item in said):
            if name in self.tools and self.tools[name] not in tools.values():
                tools[name] = self.tools[name]
        return tools

    def calls(self, said: Iterable[Any], *, text: str, confidence: float, today: date) -> list[ToolCall]:
        """The engine's calls under our names, with what the request settles as the request has it."""
        made: list[ToolCall] = []
        for item in said:
            tool = self.tools.get(str(item.get("name")))
            if tool is not None:
                schema = plain_schema(tool.parameters)
                arguments = grounded(item.get("arguments") or {}, schema, text, today)
                if tool.read_only:  # a flag can do harm elsewhere, and only the engine read the whole sentence
                    arguments |= flags_in_request(schema, text)
                if all((call.tool_name, call.arguments) != (tool.name, arguments) for call in made):
                    made.append(ToolCall(tool_name=tool.name, arguments=arguments, confidence=confidence))
        if self.dates and len(made) == 1:  # of several calls nobody knows whose day it is
            [call] = made
            rest = {name: value for name, value in call.arguments.items() if name not in self.dates.parameters}
            return [call.model_copy(update={"arguments": {**rest, **self.dates.arguments}})]
        return made


def choice_of(tools: Sequence[ToolSpecification]) -> ToolText:
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
            if verb and "_" in name and verb not in _listed.everywhere and is_safe_name(other) and other not in named:
                others.setdefault(other, (tool, request))
    offered = {name: (tool, first_paragraph(tool.description)) for name, tool in named.items()}
    offered |= dict(list(others.items())[: MOST_NAMES - len(offered)])
    ordered = sorted(offered.items(), key=lambda item: tools.index(item[1][0]))
    return ToolText(
        text=_written((name, told, NO_PARAMETERS) for name, (_, told) in ordered),
        tools={name: tool for name, (tool, _) in offered.items()},
    )


def whole_of(tools: Sequence[ToolSpecification]) -> ToolText:
    """The tools with all their parameters."""
    named, parts = _named(tools), list[tuple[str, str, Mapping[str, Any]]]()
    for name, tool in named.items():
        told = " ".join([first_paragraph(tool.description), *map(json.dumps, tool.requests)])
        parts.append((name, told, _copied_days(plain_schema(tool.parameters))))
    return ToolText(_written(parts), named)


def form_of(chosen: Mapping[str, ToolSpecification], text: str, today: date) -> ToolText:
    """The chosen tools with those of their parameters that a request can speak of."""
    parts = list[tuple[str, str, Mapping[str, Any]]]()
    for name, tool in chosen.items():
        schema = _copied_days(relevant(tool, plain_schema(tool.parameters), text, today))
        parts.append((name, first_paragraph(tool.description), schema))
    return ToolText(_written(parts), chosen, text_asked=text, dates=_dates(chosen, text, today))


def plainer_form_of(chosen: Mapping[str, ToolSpecification], text: str, today: date) -> ToolText | None:
    """For a form that was refused: the same without the days that the request settles, and with an example.

    The engine chose the tool, and then often finds that a task has no "tomorrow", or that nobody can be called. None
    where the form would be the same, or would have nothing to fill in.
    """
    if len(chosen) != 1:
        return None
    [(name, tool)], dates, example = chosen.items(), _dates(chosen, text, today), _example(*next(iter(chosen.items())))
    schema = plain_schema(tool.parameters)
    if dates is not None:
        schema["properties"] = {key: part for key, part in schema["properties"].items() if key not in dates.parameters}
        schema["required"] = [key for key in schema.get("required", ()) if key in schema["properties"]]
        text = dates.text
    schema = _copied_days(relevant(tool, schema, text, today))
    if not schema["properties"] or (dates is None and not example):
        return None
    parts = [(name, f"{first_paragraph(tool.description)}{example}", schema)]
    return ToolText(_written(parts), chosen, text_asked=text, dates=dates)


def _dates(chosen: Mapping[str, ToolSpecification], text: str, today: date) -> RequestDates | None:
    if len(chosen) != 1:
        return None
    [tool] = chosen.values()
    return dates_in_request(plain_schema(tool.parameters), text, today)


def first_paragraph(text: str) -> str:
    """What a tool does and when to use it; what it returns and which errors it has only distracts a small model."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def first_sentence(text: str) -> str:
    text = " ".join(text.split())
    sentence, dot, _ = text.partition(". ")
    return sentence + "." if dot else text


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


# --- what a request can speak of


def stems(text: str) -> set[str]:
    """The stems of a text without those that any text has."""
    return {stem(word) for word in words(text) if word not in _listed.everywhere}


def relevant(tool: ToolSpecification, schema: Mapping[str, Any], text: str, today: date) -> dict[str, Any]:
    """The tool's schema with its required parameters and those optional ones that the request can speak of."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    said, of_tool = stems(text), stems(tool.name.replace("_", " "))
    told = {
        name: stems(f"{name.replace('_', ' ')} {part.get('description', '')}") - of_tool
        for name, part in properties.items()
    }
    # What is required is asked for anyway: its words may belong to another parameter as well.
    shared = Counter(one for name, each in told.items() for one in each if name not in required)
    kept = {
        name: part
        for name, part in properties.items()
        if name in required or any(shared[one] == 1 for one in told[name] & said) or _sayable(part, text, said, today)
    }
    return {**schema, "properties": kept}


def _sayable(schema: Mapping[str, Any], text: str, said: set[str], today: date) -> bool:
    """Whether a value of this kind stands in the request."""
    if schema.get("format") in DATES:
        return any(as_iso(piece, today) != piece or _is_date(piece) for piece in _pieces(text))
    if "enum" in schema:
        return any({stem(word) for word in words(str(value))} <= said for value in schema["enum"])
    if schema.get("type") in ("integer", "number"):
        return any(word.isdigit() or word in _listed.numbers for word in words(text))
    return False


def _pieces(text: str) -> Iterator[str]:
    spans = [match.span() for match in WORD.finditer(text)]
    for start, (begin, _) in enumerate(spans):
        for _, end in spans[start : start + LONGEST_DAY]:
            yield text[begin:end]


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


# --- what the embedded model says itself: it writes no prose, so that is only what it can do instead of a guess


TOOLS_SHOWN = 5
LONGEST_TALK = 200
"""Characters; whoever writes more than this has something to say."""


def cannot_help(tools: Sequence[ToolSpecification], *, more: int = 0) -> str:
    """Said instead of a guess: the nearest tools, each with the first sentence of its description."""
    if not tools:
        return "I can only call tools, and there are none."
    return f"I am not sure that any of my tools does this. What I can do:\n{_tool_lines(tools, more=more)}"


def not_said(tool: ToolSpecification, names: Sequence[str]) -> str:
    """Asks for what a tool needs and the request does not tell."""
    parts = tool.parameters.get("properties", {})
    told = (first_sentence(str(parts.get(name, {}).get("description") or "")).rstrip(".") for name in names)
    needed = ", ".join(f"{name} ({about})" if about else name for name, about in zip(names, told, strict=True))
    return f"I called nothing: {tool.name} needs {needed}, and I did not find that in your request. Please say it."


def small_talk(text: str, tools: Sequence[ToolSpecification]) -> str | None:
    """An answer to a greeting, a name, thanks, a goodbye or "what can you do?"; None if anything else is said too."""
    if len(text) > LONGEST_TALK:
        return None
    # What people say to each other and no tool does: a request that consists of these, and what is answered.
    known: dict[str, str] = packaged_json("journeyman.models.embedded", "small_talk.json")
    rest, answers = text.strip(), list[str]()
    while rest := rest.lstrip(" ,.!?;:-\n"):
        tried = ((re.match(pattern, rest, re.IGNORECASE | re.DOTALL), answer) for pattern, answer in known.items())
        match, answer = next(((match, answer) for match, answer in tried if match), (None, ""))
        if match is None:
            return None
        answers.append(answer.format(**{key: value.title() for key, value in match.groupdict().items()}))
        rest = rest[match.end() :]
    if not answers:
        return None
    said = answers[-1]
    return said if said in ("Goodbye!", "You are welcome.") else f"{said} What I can do:\n{_tool_lines(tools)}".strip()


def _tool_lines(tools: Sequence[ToolSpecification], *, more: int = 0) -> str:
    lines = [f"- {tool.name}: {first_sentence(tool.description)}" for tool in tools[:TOOLS_SHOWN]]
    rest = len(tools[TOOLS_SHOWN:]) + more
    return "\n".join([*lines, f"- and {rest} more"] if rest else lines)
