"""Strategies as advice: the next call at every step, turns of a conversation before the task, or a line of text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from journeyman.core.calls import ResultField, Taken
from journeyman.core.data import Entity
from journeyman.core.playbook import Advice, Demonstration, Lookup, NextStep, ToolCallingStrategy, placeholder
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.core.specification import FINISH
from journeyman.learning.alignment import Alike, aligned
from journeyman.learning.examples import (
    all_choices,
    as_choice,
    asks_for,
    choices_of,
    is_day,
    nearest,
    values_said,
    worded_as,
)
from journeyman.provenance.hints import source_text

MOST_LOOKUPS = 50


class LearningSettings(Entity):
    """How a playbook learns and advises."""

    form: Literal["steps", "turns", "system"] = "steps"
    """How a strategy is told: as a line of the system message and, at every step, the call that comes next; as a
    demonstration before the task; or as that line alone."""
    demonstrations: int | None = Field(default=None, ge=0, le=5)
    """How many strategies at most; None: three for a model that says it can use several, one for others."""
    closing: Literal["report", "answer", "result"] = "report"
    """How a demonstration ends: with a report of the calls that were made, with the answer where that names values,
    or with the last result. Where the agent has ``finish``, with a call of that."""
    pitfalls: int = Field(default=3, ge=0, le=10)
    """How many pitfalls of the tools at hand are told, and as many other bullets that are near to the request."""
    lookups: bool = True
    """Whether a run whose call was refused is told where to look the value up, as far as earlier runs have shown."""
    reminder: bool = True
    """Whether a run is told once that it changed nothing, where all its demonstrations did."""
    holdout: float = Field(default=0.05, ge=0, lt=1)
    """The share of runs that get no advice, against which its effect is measured."""
    needed: int = Field(default=2, ge=1)
    """Successes of one pattern before a strategy is offered, where no person and no verifier speaks for it."""
    similar: float = Field(default=0.8, gt=0, le=1)
    """The cosine from which on two requests with one sequence are the same; without an embedder, the words shared."""
    nearest: float = Field(default=0.45, ge=0, le=1)
    """How near a request must be to one that was served, else there is no advice: by words, by meaning, by the forms of
    the values that both name, and by how far the next is behind. Of warnings and plain bullets: the cosine alone."""
    agreement: float = Field(default=0.25, ge=0, le=1)
    """The share of the votes that the best sequence needs; below it evidence is divided, and there is no advice."""
    neighbours: int = Field(default=20, ge=1)
    capacity: int = Field(default=100_000, ge=1)
    """Strategies of one domain; beyond, those with the least evidence are retired."""
    shared: bool = False
    """Whether what is learned from a principal's runs is offered to everybody in the domain."""
    folder: Path | None = None
    """Where an app keeps its playbooks as JSON Lines; None: in its store."""


def as_advice(
    strategy: ToolCallingStrategy,
    settings: LearningSettings,
    *,
    tools: Sequence[str],
    request: str = "",
    lookups: Sequence[Lookup] = (),
) -> Advice:
    """A strategy as one run is given it; ``lookups`` are what is known of its tools' arguments."""
    shown = strategy.demonstration
    effective = settings.reminder and shown is not None and any(call.effect for call in shown.calls)
    fields: dict[str, Any] = {"strategy_id": strategy.id, "text": strategy.content, "effective": effective}
    fields["tools"] = tuple(dict.fromkeys(strategy.tool_sequence))
    if shown is None or settings.form == "system":
        return Advice(**fields)
    if settings.form == "steps":
        # Where arguments come from is told where the values are: a note in the place of a value is copied as one.
        fields["text"] = f"For requests like {strategy.texts[0]!r}: {', then '.join(strategy.tool_sequence)}."
        return Advice(**fields, form="steps", **_as_steps(strategy, shown, tools, request, lookups))
    turns = turns_of(shown, closing=settings.closing, finish=FINISH in tools, key=strategy.id[-6:])
    return Advice(**fields, form="turns", turns=tuple(turns))


def worded_alike(strategy: ToolCallingStrategy, request: str) -> Alike | None:
    """The values of a request that is worded like one that the strategy served; None where it is not."""
    shown = strategy.demonstration
    wordings = () if shown is None else (shown.request, *shown.wordings)
    alignments = [alike for text in wordings if (alike := aligned(text, request)) is not None]
    return next((alike for alike in alignments if alike.exact), alignments[0] if alignments else None)


def _as_steps(
    strategy: ToolCallingStrategy,
    shown: Demonstration,
    tools: Sequence[str],
    request: str,
    lookups: Sequence[Lookup],
) -> dict[str, Any]:
    """The calls of a demonstration beside those of the nearest example, with what the request says for certain."""
    allowed = {(item.tool_name, item.parameter): item.allowed for item in lookups if item.allowed}
    example, alike = nearest(shown.examples, request), worded_alike(strategy, request)
    choices = [
        {name: allowed.get((call.tool_name, name)) or choices_of(shown.examples, at, name) for name in call.sources}
        for at, call in enumerate(shown.calls)
    ]
    said, several, whole = values_said(shown, request, choices)
    # Worded nearly alike, one word decides: nobody can say by meaning which.
    same = worded_as(shown, request, said)
    meant = whole and (same or (alike is None and asks_for(shown, request, tools, said)))
    held = {} if alike is None or not alike.exact else {placeholder(key): text for key, text in alike.values.items()}
    steps = []
    for at, call in enumerate(shown.calls):
        origins = {name: source for name, source in call.sources.items() if call.arguments.get(name) is not None}
        constants = {name: call.arguments[name] for name, source in origins.items() if source is Taken.CONSTANT}
        given = {name: value for name, value in said[at].items() if name in origins and value != constants.get(name)}
        for name, source in origins.items():
            if source is Taken.REQUEST and isinstance(mark := call.arguments[name], str) and mark in held:
                given[name] = as_choice(held[mark], choices[at][name])
        missing = [
            name
            for name, source in origins.items()
            if name not in given and name not in constants and not isinstance(source, ResultField)
        ]
        # A day that a change needs can be read by whoever makes the call; what is left out of a search finds others.
        meant = meant and all(call.effect and is_day(shown.examples, at, name) for name in missing)
        steps.append(
            NextStep(
                tool_name=call.tool_name,
                constants={name: value for name, value in constants.items() if name not in given},
                sources={
                    name: source for name, source in origins.items() if source is not Taken.CONSTANT or name in given
                },
                places=call.places,
                given=given,
                example={} if example is None or at >= len(example.calls) else example.calls[at],
                choices={
                    name: allowed.get((call.tool_name, name)) or all_choices(shown.examples, at, name)
                    for name in origins
                },
                several={name: held for name, held in several[at].items() if name in origins and len(held) > 1},
            )
        )
    return {
        "steps": tuple(steps),
        "alike": meant or (alike is not None and alike.exact),
        "example": "" if example is None else example.request,
        "copied": () if example is None else example.values,
    }


def turns_of(shown: Demonstration, *, closing: str, finish: bool, key: str) -> list[Message]:
    """A demonstration as messages: request, calls with what was used of their results, and an end."""
    turns = [Message.user(shown.request)]
    for number, call in enumerate(shown.calls, start=1):
        turns += _exchange(f"demo_{key}_{number}", call.tool_name, call.arguments, call.result or "ok")
    if finish:
        turns += _exchange(f"demo_{key}_end", FINISH, {"answer": _closing(shown, closing)}, "ok")
    elif closing != "result":
        turns.append(Message(role=Role.ASSISTANT, content=_closing(shown, closing)))
    return turns


def _exchange(key: str, tool: str, arguments: dict[str, object], result: str) -> list[Message]:
    call = ToolCall(id=key, tool_name=tool, arguments=arguments)
    return [
        Message(role=Role.ASSISTANT, calls=(call,)),
        Message(role=Role.FUNCTION, name=tool, call_id=key, content=result),
    ]


def _closing(shown: Demonstration, closing: str) -> str:
    """An end that says nothing without the calls before it: what stands alone is repeated without making any."""
    if closing == "answer" and shown.closing:
        return shown.closing
    made = [call for call in shown.calls if call.effect] or list(shown.calls)
    calls = [f"{call.tool_name}({json.dumps(call.arguments, ensure_ascii=False)[1:-1]})" for call in made]
    return f"Made by calls: {'; '.join(calls)}."


def prose(request: str, shown: Demonstration, sequence: Sequence[str]) -> str:
    """A strategy in words, for people and for models that take no turns."""
    tools = [call.tool_name for call in shown.calls]
    steps = []
    for call in shown.calls:
        sources = ((name, source) for name, source in call.sources.items() if source is not Taken.CONSTANT)
        origins = [f"{name} {source_text(source, tools)}" for name, source in sources]
        steps.append(call.tool_name + (f" ({', '.join(origins)})" if origins else ""))
    return f"For requests like {request!r}: {', then '.join(steps) or ', then '.join(sequence)}."


def lookup_advice(lookups: Sequence[Lookup]) -> list[Advice]:
    """All that is known about values that tools refused, to be told where one is refused again."""
    lookups = lookups[:MOST_LOOKUPS]
    if not lookups:
        return []
    named = [f"{item.tool_name} {item.parameter}{f' ({item.found_by})' if item.found_by else ''}" for item in lookups]
    return [Advice(form="lookups", text=f"To be looked up: {', '.join(named)}", lookups=tuple(lookups))]


def warning_advice(strategy: ToolCallingStrategy) -> Advice:
    """What has only ever failed, told as such. It names no strategy: a run that heeds it says nothing for that one."""
    steps, times = ", then ".join(strategy.tool_sequence), strategy.harmful_count
    wanted = strategy.texts[0] if strategy.texts else strategy.content
    return Advice(text=f"For requests like {wanted!r}, {steps} has failed {times} times of {times}: do it otherwise.")
