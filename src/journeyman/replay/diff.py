"""Two runs side by side: where they part, and calls, results, answers and costs of both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from journeyman.core.data import Entity
from journeyman.core.runs import cost_of, list_prices
from journeyman.replay.playing import told
from journeyman.replay.recording import RecordedStep, Recording


class Side(Entity):
    """One of two runs."""

    run_id: str
    status: str
    answer: str | None
    steps: int
    calls: int
    tokens: int
    cost: float | None
    """US dollars; None where the model has no price."""


class Difference(Entity):
    """One thing that is not the same in both."""

    step: int
    what: str
    """text, calls, or a part of a call: tool, arguments, status, asked, result."""
    a: Any
    b: Any


class RunDiff(Entity):
    """What two runs have in common, and what not."""

    a: Side
    b: Side
    first: int | None
    """The first step that differs; None where none does."""
    differences: tuple[Difference, ...]


def diff(a: Recording, b: Recording) -> RunDiff:
    """Compare two runs step by step. The text beside calls is compared where both make none: it is the answer."""
    found: list[Difference] = []
    for number, (one, other) in enumerate(zip_longest(a.steps, b.steps), start=1):
        found += [Difference(step=number, what=what, a=x, b=y) for what, x, y in _compared(one, other)]
    return RunDiff(a=_side(a), b=_side(b), first=found[0].step if found else None, differences=tuple(found))


def _compared(one: RecordedStep | None, other: RecordedStep | None) -> Iterator[tuple[str, Any, Any]]:
    first, second = ([] if step is None else [told(item) for item in step.calls.values()] for step in (one, other))
    if one is None or other is None or len(first) != len(second):
        yield "calls", _shown(one, first), _shown(other, second)
        return
    if not first and one.message.text.strip() != other.message.text.strip():
        yield "text", one.message.text, other.message.text
    for call, against in zip(first, second, strict=True):
        for key in dict.fromkeys((*call, *against)):
            if call.get(key) != against.get(key):
                yield key, call.get(key), against.get(key)
                if key == "tool":
                    break  # the rest is about something else


def _shown(step: RecordedStep | None, calls: list[dict[str, Any]]) -> Any:
    return None if step is None else [call["tool"] for call in calls] or step.message.text


def _side(recording: Recording) -> Side:
    usage = recording.usage
    model = next((step.message.model for step in recording.steps if step.message.model), "")
    return Side(
        run_id=recording.run_id,
        status=recording.status.value,
        answer=recording.answer,
        steps=len(recording.steps),
        calls=sum(1 for _ in recording.calls),
        tokens=usage.total_tokens,
        cost=cost_of(model, usage, list_prices()),
    )
