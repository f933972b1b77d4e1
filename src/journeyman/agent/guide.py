"""What a model is told in the middle of a run: the next step of a demonstration, or where to look a value up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from journeyman.core.calls import ToolCallRecord
from journeyman.core.messages import Message, Role
from journeyman.core.playbook import NEXT_STEP, Lookup, NextStep
from journeyman.core.runs import ReasoningStep
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stem, words

MOST_VALUES = 3
LONGEST_VALUE = 200
_IDENTIFIERS = frozenset({"id", "ids", "key", "uuid", "ref", "reference", "slug", "code", "number"})


def next_step(steps: Sequence[NextStep], taken: Sequence[ReasoningStep]) -> Message:
    """What comes after the calls that were made, as far as they follow the demonstration."""
    made: list[ToolCallRecord] = []
    for step in taken:
        for call in step.calls:
            if len(made) < len(steps) and call.success and call.tool_name == steps[len(made)].tool_name:
                made.append(call)
    if len(made) == len(steps):
        return _said("Every step of the example has been made. If nothing is left to do, tell the user what was done.")
    wanted = steps[len(made)]
    given = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in wanted.constants.items()]
    given += [f"{name}: {_origin(source, steps, made)}" for name, source in wanted.sources.items()]
    with_them = f" with {'; '.join(given)}" if given else ""
    return _said(f"If this task is like the example, call {wanted.tool_name} now{with_them}.")


def look_up(
    lookups: Sequence[Lookup], taken: Sequence[ReasoningStep], offered: Sequence[ToolSpecification]
) -> Message | None:
    """After a refused call, the call that finds the value, and then the same call with it; None without one."""
    calls = [call for step in taken for call in step.calls]
    done = set[str]()
    mended = False
    for call in reversed(calls):
        if call.success:
            done.add(call.tool_name)
            continue
        known = [item for item in lookups if item.tool_name == call.tool_name]
        wrong = [item for item in known if _quoted(call.arguments.get(item.parameter), call.error_message or "")]
        if wrong and call.tool_name not in done:
            return _repaired(wrong[0], known, calls, {item.name: item for item in offered})
        mended = mended or bool(wrong and call.tool_name == calls[-1].tool_name)
    return _said("If nothing is left to do, tell the user what was done.") if mended else None


def _repaired(
    lookup: Lookup,
    known: Sequence[Lookup],
    calls: Sequence[ToolCallRecord],
    offered: Mapping[str, ToolSpecification],
) -> Message | None:
    finder = _finder(lookup, offered)
    if finder is None:
        return None
    made = next((call for call in reversed(calls) if call.success and call.tool_name == finder), None)
    if made is None:
        return _said(f"Look {lookup.parameter} up, do not guess it: call {finder} now.")
    if made.result in ([], {}, "", None):
        return _said(f"{finder} found nothing. Call {finder} now with other words, or tell the user.")
    given = []
    for item in known:
        source = _finder(item, offered)
        by = next((call for call in reversed(calls) if call.success and call.tool_name == source), None)
        if by is not None:
            path = item.field.split(".") if item.field else [item.parameter]
            given.append(f"{item.parameter}: {_in_result(by, path, item.field or item.parameter)}")
    return _said(f"Call {lookup.tool_name} now with {'; '.join(given)}.")


def _finder(lookup: Lookup, offered: Mapping[str, ToolSpecification]) -> str | None:
    """The tool that finds a value: by experience; else the one that reads and speaks of what the parameter names."""
    by_experience = offered.get(lookup.found_by or "")
    if by_experience is not None and by_experience.read_only:
        return by_experience.name
    thing = {stem(word) for word in words(lookup.parameter)} - _IDENTIFIERS
    best: tuple[int, str] | None = None
    for item in offered.values():
        properties = item.parameters.get("properties", {})
        if not item.read_only or item.name == lookup.tool_name or lookup.parameter in properties or not thing:
            continue
        score = 2 * (lookup.parameter in item.description) + (thing <= {stem(word) for word in words(item.name)})
        if score and (best is None or score > best[0]):
            best = score, item.name
    return None if best is None else best[1]


def _quoted(value: Any, text: str) -> bool:
    return isinstance(value, str | int) and bool(str(value)) and str(value).casefold() in text.casefold()


def _said(text: str) -> Message:
    return Message(role=Role.USER, name=NEXT_STEP, content=text)


def _origin(source: str, steps: Sequence[NextStep], made: Sequence[ToolCallRecord]) -> str:
    kind, _, rest = source.partition(" ")
    if kind != "result":
        return {"request": "from the user's request", "known": "from what was said before"}.get(kind, "in your words")
    number, _, path = rest.partition(" ")
    if int(number) >= len(made):
        return f"from the result of {steps[int(number)].tool_name}"
    return _in_result(made[int(number)], path.split(".") if path else [], path or "a value")


def _in_result(made: ToolCallRecord, path: Sequence[str], name: str) -> str:
    """The values that stand in a result under a name, and where that is."""
    found = list(dict.fromkeys(_values(made.result, path)))
    place = f"{name} in the result of {made.tool_name}"
    if not found:
        return place
    shown = " or ".join(found[:MOST_VALUES])
    return f"{shown}{' or another' if len(found) > MOST_VALUES else ''} ({place})"


def _values(result: Any, path: Sequence[str]) -> Iterator[str]:
    if isinstance(result, str) and result[:1] in "[{":
        try:
            result = json.loads(result)
        except ValueError:
            return
    if isinstance(result, list | tuple):
        for item in result:
            yield from _values(item, path)
    elif isinstance(result, Mapping) and path:
        yield from _values(result.get(path[0]), path[1:])
    elif not path and isinstance(result, str | int | float):
        yield json.dumps(result, ensure_ascii=False)[:LONGEST_VALUE]
