"""The next step of a demonstration, told to a model in the middle of a run: which tool, and what goes into it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from journeyman.core.calls import ToolCallRecord
from journeyman.core.messages import Message, Role
from journeyman.core.playbook import NEXT_STEP, NextStep
from journeyman.core.runs import ReasoningStep

MOST_VALUES = 3
LONGEST_VALUE = 200


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


def _said(text: str) -> Message:
    return Message(role=Role.USER, name=NEXT_STEP, content=text)


def _origin(source: str, steps: Sequence[NextStep], made: Sequence[ToolCallRecord]) -> str:
    kind, _, rest = source.partition(" ")
    if kind != "result":
        return {"request": "from the user's request", "known": "from what was said before"}.get(kind, "in your words")
    number, _, path = rest.partition(" ")
    if int(number) >= len(made):
        return f"from the result of {steps[int(number)].tool_name}"
    found = list(dict.fromkeys(_values(made[int(number)].result, path.split(".") if path else [])))
    place = f"{path or 'a value'} in the result of {made[int(number)].tool_name}"
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
