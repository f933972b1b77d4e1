"""What a model is told in the middle of a run: the next step of a demonstration, or where to look a value up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.agent.builtin import FINISH
from journeyman.core.calls import ToolCallRecord
from journeyman.core.messages import Message, Role, ToolCall
from journeyman.core.playbook import NEXT_STEP, Advice, Lookup, NextStep
from journeyman.core.runs import ReasoningStep
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stands_in, stem, words

MOST_VALUES = 3
LONGEST_VALUE = 200
_IDENTIFIERS = frozenset({"id", "ids", "key", "uuid", "ref", "reference", "slug", "code", "number"})


@dataclass(frozen=True, slots=True)
class Hint:
    """What is said last, and where the request is worded like a demonstration's, as a call."""

    message: Message
    call: ToolCall | None = None


def next_step(
    advice: Advice, taken: Sequence[ReasoningStep], offered: Sequence[ToolSpecification] = (), request: str = ""
) -> Hint:
    """What comes after the calls that were made, as far as they follow the demonstration."""
    steps = advice.steps
    made: list[ToolCallRecord] = []
    for step in taken:
        for call in step.calls:
            if len(made) < len(steps) and call.success and call.tool_name == steps[len(made)].tool_name:
                made.append(call)
            elif made and call.success and call.tool_name == made[-1].tool_name and _is_empty(made[-1]):
                made[-1] = call
    if len(made) == len(steps):
        text = "Every step of the example has been made. If nothing is left to do, tell the user what was done."
        return Hint(_said(text).message, ToolCall(tool_name=FINISH) if advice.alike else None)
    wanted = steps[len(made)]
    if (
        made
        and _is_empty(made[-1])
        and f"result {len(made) - 1}" in {_call_of(item) for item in wanted.sources.values()}
    ):
        return _found_nothing(made[-1].tool_name)
    schema = next((item.parameters for item in offered if item.name == wanted.tool_name), {})
    known: dict[str, Any] = dict(wanted.constants)
    told = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in wanted.constants.items()]
    for name, source in wanted.sources.items():
        if name in wanted.given:
            known[name] = _typed(wanted.given[name], schema.get("properties", {}).get(name))
            told.append(f"{name}: {json.dumps(known[name], ensure_ascii=False)} (from the user's request)")
            continue
        values = _of_results(source, made, request)
        if values and (sure := _one_of(source, made, request, wanted.places.get(name, ""))) is not None:
            known[name] = sure
        told.append(f"{name}: {_origin(source, steps, made, values)}")
    with_them = f" with {'; '.join(told)}" if told else ""
    hint = _said(f"If this task is like the example, call {wanted.tool_name} now{with_them}.")
    if not advice.alike or any(
        source.startswith("result") for name, source in wanted.sources.items() if name not in known
    ):
        return hint
    return Hint(hint.message, ToolCall(tool_name=wanted.tool_name, arguments=known))


def untried(hint: Hint, taken: Sequence[ReasoningStep]) -> Hint:
    """A hint without its call where the run has made that very call and it failed."""
    wanted = hint.call
    if wanted is None:
        return hint
    failed = [call for step in taken for call in step.calls if not call.success and call.tool_name == wanted.tool_name]
    if any({**call.arguments, **wanted.arguments} == call.arguments for call in failed if wanted.arguments):
        return Hint(hint.message)
    return hint


def stopped(taken: Sequence[ReasoningStep]) -> bool:
    """Whether somebody has refused a call: then nothing more is urged."""
    refused = (call.error.code for step in taken for call in step.calls if call.error is not None)
    return any(code.startswith("APPROVAL_") or code == "NOT_PERMITTED" for code in refused)


def _typed(value: str, schema: Any) -> Any:
    """A value of the request as its parameter wants it."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    try:
        return {"integer": int, "number": float}[kind](value) if kind in ("integer", "number") else value
    except ValueError:
        return value


def _call_of(source: str) -> str:
    return " ".join(source.split(" ")[:2])


def _of_results(source: str, made: Sequence[ToolCallRecord], request: str) -> list[Any]:
    """The values that stand where a demonstration's value stood, in results of this run."""
    held = _held_by(source, made)
    return [] if held is None else _found(*held, request)


def _held_by(source: str, made: Sequence[ToolCallRecord]) -> tuple[ToolCallRecord, list[str]] | None:
    """The call whose result a source speaks of, and the path in it."""
    kind, _, rest = source.partition(" ")
    number, _, path = rest.partition(" ")
    if kind != "result" or not number.isdigit() or int(number) >= len(made):
        return None
    return made[int(number)], path.split(".") if path else []


def _one_of(source: str, made: Sequence[ToolCallRecord], request: str, place: str) -> Any:
    """The value that is meant, of all that stand in a result: the only one, the one that the request speaks of, or the
    one at the place where every demonstration took it; None where that cannot be told."""
    held = _held_by(source, made)
    if held is None:
        return None
    record, path = held
    values = _found(record, path, request)
    if len(values) == 1 or (values and _speaks_of_first(record, request)):
        return values[0]
    as_listed = list(dict.fromkeys(_values(_sorted(record.result, ""), path)))
    return {"first": as_listed[:1], "last": as_listed[-1:]}.get(place, [None])[0] if as_listed else None


def look_up(
    lookups: Sequence[Lookup],
    taken: Sequence[ReasoningStep],
    offered: Sequence[ToolSpecification],
    request: str = "",
) -> Hint | None:
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
            return _repaired(call, wrong, calls, {item.name: item for item in offered}, request)
        mended = mended or bool(wrong and call.tool_name == calls[-1].tool_name)
    return _said("If nothing is left to do, tell the user what was done.") if mended else None


def _repaired(
    refused: ToolCallRecord,
    wrong: Sequence[Lookup],
    calls: Sequence[ToolCallRecord],
    offered: Mapping[str, ToolSpecification],
    request: str,
) -> Hint | None:
    lookup = wrong[0]
    finder = _finder(lookup, offered)
    if finder is None:
        return None
    made = next((call for call in reversed(calls) if call.success and call.tool_name == finder), None)
    if made is None:
        hint = _said(f"Look {lookup.parameter} up, do not guess it: call {finder} now.")
        return Hint(hint.message, ToolCall(tool_name=finder))
    if _is_empty(made):
        return _found_nothing(finder)
    given, arguments = list[str](), dict(refused.arguments)
    for item in wrong:
        source = _finder(item, offered)
        by = next((call for call in reversed(calls) if call.success and call.tool_name == source), None)
        if by is not None:
            path = item.field.split(".") if item.field else [item.parameter]
            values = _found(by, path, request)
            if values or item.field:
                told = _listed(values, f"{item.field or item.parameter} in the result of {by.tool_name}")
            else:
                told = _new_values(by, request)
            given.append(f"{item.parameter}: {told}")
            if values and _speaks_of_first(by, request):
                arguments[item.parameter] = values[0]
    hint = _said(f"Call {lookup.tool_name} now with {'; '.join(given)}.")
    mended = arguments != refused.arguments
    return Hint(hint.message, ToolCall(tool_name=lookup.tool_name, arguments=arguments) if mended else None)


def _is_empty(made: ToolCallRecord) -> bool:
    return made.result in ([], {}, "", "[]", "{}")


def _found_nothing(tool_name: str) -> Hint:
    return _said(
        f"{tool_name} found nothing. Call {tool_name} now with fewer arguments or other words, or tell the user."
    )


def _new_values(made: ToolCallRecord, request: str) -> str:
    """What a result says that the request does not: one of it is what is looked for."""
    rows = _sorted(made.result, request)
    row = rows[0] if isinstance(rows, list) and rows else rows
    fields = row.items() if isinstance(row, Mapping) else ()
    new = [
        f"{json.dumps(value, ensure_ascii=False)[:LONGEST_VALUE]} ({name})"
        for name, value in fields
        if isinstance(value, str | int) and str(value).casefold() not in request.casefold()
    ]
    listed = " or ".join(new[:MOST_VALUES])
    return (
        f"{listed} in the result of {made.tool_name}, whichever it is" if new else f"in the result of {made.tool_name}"
    )


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
    return isinstance(value, str | int) and stands_in(text, str(value))


def _said(text: str) -> Hint:
    return Hint(Message(role=Role.USER, name=NEXT_STEP, content=text))


def _origin(source: str, steps: Sequence[NextStep], made: Sequence[ToolCallRecord], values: Sequence[Any]) -> str:
    kind, _, rest = source.partition(" ")
    if kind != "result":
        return {"request": "from the user's request", "known": "from what was said before"}.get(kind, "in your words")
    number, _, path = rest.partition(" ")
    if not number.isdigit() or int(number) >= len(steps):
        return "from a result"
    if int(number) >= len(made):
        return f"from the result of {steps[int(number)].tool_name}"
    return _listed(values, f"{path or 'a value'} in the result of {made[int(number)].tool_name}")


def _listed(values: Sequence[Any], place: str) -> str:
    """The first of the values that stand in a result, and where that is."""
    if not values:
        return place
    shown = " or ".join(json.dumps(value, ensure_ascii=False)[:LONGEST_VALUE] for value in values[:MOST_VALUES])
    return f"{shown}{' or another' if len(values) > MOST_VALUES else ''} ({place})"


def _found(made: ToolCallRecord, path: Sequence[str], request: str) -> list[Any]:
    """Values of a result, those of rows first that hold what the request speaks of."""
    return list(dict.fromkeys(_values(_sorted(made.result, request), path)))


def _sorted(result: Any, request: str) -> Any:
    if isinstance(result, str) and result[:1] in ("[", "{"):
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return None
    if isinstance(result, list | tuple):
        asked = request.casefold()
        return sorted(result, key=lambda row: -_spoken_of(row, asked))
    return result


def _speaks_of_first(made: ToolCallRecord, request: str) -> bool:
    """Whether the request speaks of one row of a result more than of any other."""
    rows, asked = _sorted(made.result, request), request.casefold()
    if not isinstance(rows, list):
        return _spoken_of(rows, asked) > 0
    return bool(rows) and _spoken_of(rows[0], asked) > (_spoken_of(rows[1], asked) if len(rows) > 1 else 0)


def _spoken_of(row: Any, request: str) -> int:
    """How many of a row's values stand in a request."""
    held = row.values() if isinstance(row, Mapping) else (row,)
    return sum(
        isinstance(value, str | int) and len(str(value)) > 2 and str(value).casefold() in request for value in held
    )


def _values(result: Any, path: Sequence[str]) -> Iterator[str | int | float]:
    if isinstance(result, list | tuple):
        for item in result:
            yield from _values(item, path)
    elif isinstance(result, Mapping) and path:
        yield from _values(result.get(path[0]), path[1:])
    elif not path and isinstance(result, str | int | float):
        yield result
