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
    as_iso,
    dates_in_request,
    flags_in_request,
    grounded,
    has_name,
    is_date,
    is_iso,
    mentions,
    plain_schema,
    whole_names,
    with_addresses,
    with_choices,
    with_numbers,
    without,
)
from journeyman.models.wire import alias_names, is_safe_name

_listed = WordLists("journeyman.models.embedded", "words.txt")
JOINING = "with"
"""What joins a thing to what is said of it."""
COPY = "Copy the date word for word."


@dataclass(frozen=True, slots=True)
class ToolText:
    """Some tools as the engine reads them, and the request that goes with them."""

    text: str
    tools: Mapping[str, ToolSpecification]
    """By the names that the engine reads."""
    asked: str = ""

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
                call = ToolCall(tool_name=tool.name, arguments=arguments, confidence=confidence)
                if not any(is_twice(call, other) for other in made):
                    made.append(call)
        if len(made) != 1:  # of several calls nobody knows whose day it is
            return made
        [call] = made
        tool = next(tool for tool in self.tools.values() if tool.name == call.tool_name)
        schema = plain_schema(tool.parameters)
        settled = whole_object(whole_names(call.arguments, text), tool, text)
        if dates := dates_in_request(schema, text, today):
            settled = {name: value for name, value in settled.items() if name not in dates.parameters}
            settled |= dates.arguments
        settled = with_addresses(with_choices(with_numbers(settled, schema, text, today), schema, text), schema, text)
        return [call.model_copy(update={"arguments": settled})]


def whole_object(arguments: Mapping[str, Any], tool: ToolSpecification, text: str) -> dict[str, Any]:
    """The arguments with all that a request says of what the tool acts on: "the call with Lena", not "Lena".

    That is the parameter whose name the tool's name has, as ``event`` in ``cancel_event``. Words that say what kind of
    thing it is, and those that any text has, are no part of it.
    """
    made, named = dict(arguments), stems(tool.name.replace("_", " "))
    told = named | stems(first_paragraph(tool.description))
    spans = list(WORD.finditer(text))
    said = [span[0].casefold() for span in spans]
    verb = next((at for at, word in enumerate(said) if word not in _listed.everywhere), 0)
    for name in tool.parameters.get("required", ()):
        value = made.get(name)
        if tool.read_only or not isinstance(value, str) or stem(words(name)[0]) not in named:
            continue
        begin = text.find(value)
        first = at = next((at for at, span in enumerate(spans) if span.start() == begin), 0)
        while at - 1 > verb and text[spans[at - 1].end() : spans[at].start()] == " ":
            at -= 1
            if (said[at] in _listed.everywhere and said[at] != JOINING) or stem(said[at]) in told:
                break
            first = first if said[at] == JOINING else at
        if first and begin > 0:
            made[name] = text[spans[first].start() : begin] + value
    return made


def is_twice(call: ToolCall, other: ToolCall) -> bool:
    """Whether two calls do the same: the words of each value of one are among those of the other's."""
    if call.tool_name != other.tool_name or call.arguments.keys() != other.arguments.keys():
        return False
    pairs = [(set(words(str(value))), set(words(str(other.arguments[name])))) for name, value in call.arguments.items()]
    return all(one <= two or two <= one for one, two in pairs)


def whole_of(tools: Sequence[ToolSpecification]) -> ToolText:
    """The tools with all their parameters."""
    named, parts = _named(tools), list[tuple[str, str, Mapping[str, Any]]]()
    for name, tool in named.items():
        told = " ".join([first_paragraph(tool.description), *map(json.dumps, tool.requests)])
        parts.append((name, told, _copied_days(plain_schema(tool.parameters))))
    return ToolText(_written(parts), named)


def form_of(tools: Sequence[ToolSpecification], text: str, today: date, *, every_text: bool = False) -> ToolText:
    """The tools with those of their parameters that a request can speak of; ``every_text`` asks for all that take one.

    A name says more to the engine than a description does. So a tool has the name that the request would give it, where
    one of its examples begins with that verb: ``update_task`` with the example "Rename laundry to washing" is
    ``rename_task`` for "Rename milk to honey".
    """
    aliases, named = _named(tools), dict[str, ToolSpecification]()
    for name, tool in aliases.items():
        verbs = _verbs(tool)
        asked = (verbs[stem(word)] for word in words(text) if stem(word) in verbs)
        others = (f"{verb}_{name.partition('_')[2]}" for verb in asked if "_" in name)
        free = (other for other in others if is_safe_name(other) and other not in aliases and other not in named)
        named[next(free, name)] = tool
    parts = list[tuple[str, str, Mapping[str, Any]]]()
    for name, tool in named.items():
        schema = _copied_days(relevant(tool, plain_schema(tool.parameters), text, today, every_text))
        parts.append((name, first_paragraph(tool.description), schema))
    return ToolText(_written(parts), named, asked=text)


def _verbs(tool: ToolSpecification) -> dict[str, str]:
    """The words with which a tool's examples begin, by their stems."""
    begins = (word for request in tool.requests for word in words(request)[:1])
    return {stem(word): word for word in begins if word not in _listed.everywhere}


def begins_like_example(text: str, tool: ToolSpecification) -> bool:
    """Whether a request begins with the verb of a tool's name or examples, whatever polite words stand before it."""
    first = next((stem(word) for word in words(text) if word not in _listed.everywhere), "")
    return first in _verbs(tool) or first == stem(words(tool.name)[0])


FRAME = 3
"""How many words of an example must stand around what is asked for."""


def ordered_form_of(tool: ToolSpecification, text: str, today: date, *, worded: bool = False) -> ToolText | None:
    """The form, and the request as an order for that tool; None where it is to be ``worded`` like one of its examples,
    and is not.

    The engine takes "I have to buy stamps" for a remark. Where an example says "I have to call Anna", it is asked to
    "create task: buy stamps".
    """
    schema = plain_schema(tool.parameters)
    if dates := dates_in_request(schema, text, today):
        text = dates.text
        schema["properties"] = {key: part for key, part in schema["properties"].items() if key not in dates.parameters}
        schema["required"] = [key for key in schema.get("required", ()) if key in schema["properties"]]
    rests = (within(text, request) for request in tool.requests)
    rest = min((rest for rest in rests if rest), key=len, default=None if worded else text)
    if rest is None:
        return None
    asked_for = relevant(tool, schema, text, today)
    if asked_for != relevant(tool, schema, rest, today):
        rest = text  # what stands around it says something, too: "I'm done with the essay"
    [name] = _named([tool])
    order = tool.name.replace("_", " ").capitalize()
    form = _written([(name, first_paragraph(tool.description), _copied_days(asked_for))])
    return ToolText(form, {name: tool}, asked=f"{order}: {rest}" if stems(rest) else order)


def within(text: str, example: str) -> str | None:
    """What a request has in the place of what an example is about; None if they are not worded alike.

    What they share ends, and at the other end begins, with a word that any text has: what is asked for is not cut.
    """
    spans, shown = list(WORD.finditer(text)), words(example)
    said = [span[0].casefold() for span in spans]
    most = min(len(said), len(shown)) - 1
    begins = next((at for at in range(most) if said[at] != shown[at]), max(most, 0))
    ends = next((at for at in range(most - begins) if said[-1 - at] != shown[-1 - at]), max(most - begins, 0))
    while begins > 1 and said[begins - 1] not in _listed.everywhere:
        begins -= 1
    while ends and said[-ends] not in _listed.everywhere:
        ends -= 1
    if begins + ends < FRAME or begins + ends >= len(said):
        return None
    return text[spans[begins].start() : spans[-1 - ends].end()]


def first_paragraph(text: str) -> str:
    """What a tool does and when to use it; what it returns and which errors it has only distracts a small model."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def first_sentence(text: str) -> str:
    text = " ".join(text.split())
    sentence, dot, _ = text.partition(". ")
    return sentence + "." if dot else text


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


def relevant(
    tool: ToolSpecification, schema: Mapping[str, Any], text: str, today: date, every_text: bool = False
) -> dict[str, Any]:
    """The tool's schema with its required parameters and those optional ones that the request can speak of."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    said, of_tool, undated = stems(text), stems(tool.name.replace("_", " ")), text
    for day in reversed(mentions(text, today)):
        undated = without(undated, day)
    capital = has_name(undated)
    named, spare = tool.read_only and capital, every_text or (not required and capital)  # whose things are to be shown
    told = {
        name: stems(f"{name.replace('_', ' ')} {part.get('description', '')}") - of_tool
        for name, part in properties.items()
    }
    # What is required is asked for anyway: its words may belong to another parameter as well.
    shared = Counter(one for name, each in told.items() for one in each if name not in required)
    kept = {
        name: part
        for name, part in properties.items()
        if name in required
        or any(shared[one] == 1 for one in told[name] & said)
        or (named and not _listed.people.isdisjoint(words(name)))
        or (spare and part.get("type") == "string" and "enum" not in part and not is_date(part))
        or _sayable(part, text, said, today)
    }
    return {**schema, "properties": kept}


def left_over(text: str, tool: ToolSpecification, arguments: Mapping[str, Any], today: date) -> set[str]:
    """The stems of a request after its first word that neither a day, nor an argument, nor the tool says."""
    for day in reversed(mentions(text, today)):
        text = without(text, day)
    said = [stem(word) for word in words(text) if word not in _listed.everywhere and not word.isdigit()][1:]
    said = [each for each in said if each not in _listed.asking]
    schema = plain_schema(tool.parameters).get("properties", {})
    parts = (f"{name} {part.get('description', '')} {part.get('enum', '')}" for name, part in schema.items())
    told = " ".join([tool.name, first_paragraph(tool.description), *tool.requests, *parts]).replace("_", " ")
    return set(said) - stems(told) - stems(" ".join(map(str, arguments.values())))


def _sayable(schema: Mapping[str, Any], text: str, said: set[str], today: date) -> bool:
    """Whether a value of this kind stands in the request."""
    if schema.get("format") in DATES:
        return any(as_iso(piece, today) != piece or is_iso(piece) for piece in _pieces(text))
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


# --- what the embedded model says itself: it writes no prose, so that is only what it can do instead of a guess


TOOLS_SHOWN = 5
LONGEST_TALK = 200
"""Characters; whoever writes more than this has something to say."""


def cannot_help(tools: Sequence[ToolSpecification]) -> str:
    """Said instead of a guess: the nearest tools, each with the first sentence of its description."""
    if not tools:
        return "I can only call tools, and there are none."
    return f"I am not sure that any of my tools does this. What I can do:\n{_tool_lines(tools)}"


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


def _tool_lines(tools: Sequence[ToolSpecification]) -> str:
    lines = [f"- {tool.name}: {first_sentence(tool.description)}" for tool in tools[:TOOLS_SHOWN]]
    rest = len(tools[TOOLS_SHOWN:])
    return "\n".join([*lines, f"- and {rest} more"] if rest else lines)
