"""What a model is told in the middle of a run: the next step of a demonstration, or where to look a value up."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from journeyman.core.calls import ResultField, Taken, ToolCallRecord
from journeyman.core.playbook import NEXT_STEP, Advice, Lookup, NextStep
from journeyman.core.runs import Message, ReasoningStep, Role, ToolCall
from journeyman.core.specification import FINISH, ToolSpecification
from journeyman.core.words import Patterns, stands_in, words
from journeyman.provenance.index import finders
from journeyman.provenance.ledger import Utterance, result_of, values_at
from journeyman.provenance.said import lists

EACH = "each"
MOST_VALUES = 3
MOST_CHOICES = 8
MOST_ALLOWED = 50
LONGEST_VALUE = 400
CLOSE = 0.8
"""How much of a value and a choice must be the same, where only one is."""
_written = Patterns("journeyman.provenance", "refusals.txt")
_QUOTED = re.compile(r"'([^']{1,60})'|\"([^\"]{1,60})\"")


@dataclass(frozen=True, slots=True)
class Hint:
    """What is said last, and where the request is worded like a demonstration's, as a call."""

    message: Message
    call: ToolCall | None = None


def hint_for(
    given: Sequence[Advice], taken: Sequence[ReasoningStep], offered: Sequence[ToolSpecification], request: str
) -> Hint | None:
    """What comes next: the mended call where a choice was refused, the step of the nearest demonstration, or where to
    look up what was refused; None without any."""
    if stopped(taken):
        return None
    lookups = [lookup for item in given for lookup in item.lookups]
    guide = next((item for item in reversed(given) if item.steps), None)
    hint = mended(lookups, taken)
    if hint is None and guide is not None:
        hint = next_step(guide, taken, offered, request)
    elif hint is None and lookups:
        hint = look_up(lookups, taken, offered, request)
    return None if hint is None else _untried(hint, taken)


def stopped(taken: Sequence[ReasoningStep]) -> bool:
    """Whether somebody has refused a call: then nothing more is urged."""
    refused = (call.error.code for step in taken for call in step.calls if call.error is not None)
    return any(code.startswith("APPROVAL_") or code == "NOT_PERMITTED" for code in refused)


def _untried(hint: Hint, taken: Sequence[ReasoningStep]) -> Hint:
    """A hint without its call where the run has made that very call and it failed."""
    wanted = hint.call
    if wanted is None or not wanted.arguments:
        return hint
    failed = [call for step in taken for call in step.calls if not call.success and call.tool_name == wanted.tool_name]
    tried = any({**call.arguments, **wanted.arguments} == call.arguments for call in failed)
    return replace(hint, call=None) if tried else hint


def next_step(
    advice: Advice, taken: Sequence[ReasoningStep], offered: Sequence[ToolSpecification] = (), request: str = ""
) -> Hint:
    """What comes after the calls that were made, as far as they follow the demonstration."""
    steps = advice.steps
    if (each := EACH in steps[-1].places.values()) and len(steps) > 1 and steps[-2].tool_name == steps[-1].tool_name:
        steps = steps[:-1]  # shown twice, and made as often as there are rows
    made = _followed(steps, taken)
    if len(made) == len(steps) and not (each and _rows_left(steps[-1], made, taken, request)):
        text = "Every step of the example has been made. If nothing is left to do, tell the user what was done."
        return _said(text, ToolCall(tool_name=FINISH) if advice.alike else None)
    wanted = steps[min(len(made), len(steps) - 1)]
    sources = [source for step in steps[len(made) :] for source in step.sources.values()]
    needed = {source.call for source in sources if isinstance(source, ResultField)}
    if made and _is_empty(made[-1]) and len(made) - 1 in needed:
        return _found_nothing(made[-1].tool_name, _left(steps[len(made) - 1], taken))
    schema = next((item.parameters for item in offered if item.name == wanted.tool_name), {})
    known: dict[str, Any] = dict(wanted.constants)
    told, left = list[str](), _left(wanted, taken)
    for name, source in wanted.sources.items():
        if name in wanted.given:
            known[name] = _typed(wanted.given[name], schema.get("properties", {}).get(name))
            told.append(f"{name}: {json.dumps(known[name], ensure_ascii=False)}")
        elif isinstance(source, ResultField) and source.call is not None and source.call < len(made):
            held = _Held.by(made[source.call], source.path, request)
            meant = held.meant(wanted.places.get(name, ""))
            if len(held.values) > 1 and (of_all(request) or wanted.places.get(name) == EACH):
                # Who is asked for all of a kind must not do it for one, nor for all who is asked for one.
                meant = next(iter(_rows_left(wanted, made, taken, request)), None)
            if meant is not None:
                known[name] = meant
            if values := held.text([] if meant is None else [meant]):
                told.append(f"{name}: {values}")
        elif name in left:
            told.append(f"{name}: {_one_of(left[name])}")
        elif 1 < len(choices := wanted.choices.get(name, ())) <= MOST_CHOICES:
            told.append(f"{name}: {_one_of(choices)}")
    if not wanted.example:
        told = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in wanted.constants.items()] + told
    unknown = any(isinstance(source, ResultField) for name, source in wanted.sources.items() if name not in known)
    call = ToolCall(tool_name=wanted.tool_name, arguments=known) if advice.alike and not unknown else None
    with_them = f" with {'; '.join(told)}" if told else ""
    if not advice.example:
        return _said(f"If this task is like the example, call {wanted.tool_name} now{with_them}.", call)
    shown = json.dumps({"name": wanted.tool_name, "arguments": wanted.example}, ensure_ascii=False)
    return _said(
        f"An example: for the request {_quoted(advice.example)} the call was {shown}\n"
        f"Your request is {_quoted(request)} If it is like the example, call {wanted.tool_name} now{with_them}.",
        call,
    )


def of_all(request: str) -> bool:
    """Whether a request is about all of a kind, as far as words can say."""
    return not lists.of_all.isdisjoint(words(request))


def _rows_left(
    step: NextStep, made: Sequence[ToolCallRecord], taken: Sequence[ReasoningStep], request: str
) -> list[Any]:
    """Of a step that was made for each row, the values of the rows for which this run has not tried it yet."""
    used = [call.arguments for tried in taken for call in tried.calls if call.tool_name == step.tool_name]
    for name, source in step.sources.items():
        if step.places.get(name) == EACH and isinstance(source, ResultField) and of_all(request):
            assert source.call is not None
            values = values_at(result_of(made[source.call]).rows, source.path)
            return [value for value in values if all(arguments.get(name) != value for arguments in used)]
    return []


def source_text(source: Taken | ResultField, tools: Sequence[str]) -> str:
    """Where a demonstration's value came from, in words; ``tools`` are those of its calls."""
    match source:
        case ResultField(call, path):
            if call is None or call >= len(tools):
                return "from a result"
            return f"from the result of {tools[call]}" + (f" ({'.'.join(path)})" if path else "")
        case Taken.REQUEST:
            return "from the user's request"
        case Taken.KNOWN:
            return "from what was said before"
        case Taken.CONSTANT | Taken.COMPOSED:
            return "in your words"


def _followed(steps: Sequence[NextStep], taken: Sequence[ReasoningStep]) -> list[ToolCallRecord]:
    """The calls of a run that follow a demonstration; what found nothing may be made again."""
    made: list[ToolCallRecord] = []
    for call in (call for step in taken for call in step.calls if call.success):
        if len(made) < len(steps) and call.tool_name == steps[len(made)].tool_name:
            made.append(call)
        elif made and call.tool_name == made[-1].tool_name and _is_empty(made[-1]):
            made[-1] = call
    return made


def _typed(value: str, schema: Any) -> Any:
    """A value of the request as its parameter wants it."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    try:
        return {"integer": int, "number": float}[kind](value) if kind in ("integer", "number") else value
    except ValueError:
        return value


@dataclass(frozen=True, slots=True)
class _Held:
    """The values at one place of a result, those of rows first that hold what the request speaks of."""

    result: Utterance
    tool_name: str
    path: Sequence[str]
    rows: list[Any]
    request: str

    @classmethod
    def by(cls, made: ToolCallRecord, path: Sequence[str], request: str) -> _Held:
        result, asked = result_of(made), request.casefold()
        rows = sorted(result.rows, key=lambda row: -_spoken_of(row, asked))
        return cls(result, made.tool_name, path, rows, asked)

    @property
    def values(self) -> list[Any]:
        return values_at(self.rows, self.path)

    @property
    def speaks_of_first(self) -> bool:
        """Whether the request speaks of one row more than of any other."""
        spoken = [_spoken_of(row, self.request) for row in self.rows[:2]]
        return bool(spoken) and spoken[0] > (spoken[1] if len(spoken) > 1 else 0)

    def meant(self, place: str) -> Any:
        """The only value, the one that the request speaks of, or the one at the place where every demonstration took
        it; None where that cannot be told."""
        values = self.values
        if len(values) == 1 or (values and self.speaks_of_first):
            return values[0]
        listed = values_at(self.result.rows, self.path)
        return {"first": listed[:1], "last": listed[-1:]}.get(place, [None])[0] if listed else None

    def text(self, meant: Sequence[Any] = ()) -> str:
        """What is meant of the values, or the first of them."""
        values = list(meant) or self.values
        shown = " or ".join(_quoted(value) for value in values[:MOST_VALUES])
        return f"{shown}{' or another' if len(values) > MOST_VALUES else ''}"

    def new_text(self) -> str:
        """What the first row says that the request does not: one of it is what is looked for."""
        row = self.rows[0] if self.rows else None
        new = [
            f"{_quoted(value)} ({name})"
            for name, value in (row.items() if isinstance(row, Mapping) else ())
            if isinstance(value, str | int) and str(value).casefold() not in self.request
        ]
        place = f"in the result of {self.tool_name}"
        return f"{' or '.join(new[:MOST_VALUES])} {place}, whichever it is" if new else place


def _spoken_of(row: Any, request: str) -> int:
    """How many of a row's values stand in a request."""
    held = row.values() if isinstance(row, Mapping) else (row,)
    return sum(
        isinstance(value, str | int) and len(str(value)) > 2 and str(value).casefold() in request for value in held
    )


def refused(arguments: Mapping[str, Any], error: str) -> list[str]:
    """The arguments whose values an error quotes."""
    return [
        name
        for name, value in arguments.items()
        if isinstance(value, str | int) and not isinstance(value, bool) and stands_in(error, str(value))
    ]


def allowed_in(error: str, refused_value: str) -> tuple[str, ...]:
    """The values that a refusal names as those that are allowed; none where it names fewer than two."""
    if (listed := _written.listed.search(error)) is None:
        return ()
    text = _written.instead.sub("", listed[1])
    quoted = [one or other for one, other in _QUOTED.findall(text)]
    bare = (part.strip(" .;:") for part in re.split(r",|\bor\b|\band\b|\||/", text.partition(";")[0]))
    values = quoted or [part for part in bare if part and len(part.split()) < 5]
    values = [value for value in dict.fromkeys(values) if value != refused_value]
    return tuple(values[:MOST_ALLOWED]) if len(values) > 1 else ()


def nearest_choice(value: str, choices: Sequence[str]) -> str | None:
    """The one of some choices that a value means beyond doubt: written otherwise, or the only one nearly so."""
    if not choices or value in choices:
        return value if choices else None

    def plain(text: str) -> str:
        return "".join(filter(str.isalnum, text.casefold()))

    same = [choice for choice in choices if plain(choice) == plain(value)]
    near = same or difflib.get_close_matches(value.casefold(), list(map(str.casefold, choices)), n=2, cutoff=CLOSE)
    if len(near) != 1:
        return None
    return next(choice for choice in choices if choice.casefold() == near[0].casefold())


def mended(lookups: Sequence[Lookup], taken: Sequence[ReasoningStep]) -> Hint | None:
    """The last call again, where it was refused for a value that is none of those allowed, with the nearest of them."""
    last = taken[-1].calls[-1] if taken and taken[-1].calls else None
    if last is None or last.success:
        return None
    known = {item.parameter: item.allowed for item in lookups if item.tool_name == last.tool_name and item.allowed}
    arguments, told = dict(last.arguments), dict[str, str]()
    for name in refused(last.arguments, last.error_message or ""):
        allowed = allowed_in(last.error_message or "", str(last.arguments[name])) or known.get(name, ())
        if not allowed or last.arguments[name] in allowed:
            continue
        if (near := nearest_choice(str(last.arguments[name]), allowed)) is not None:
            arguments[name] = near
        else:
            told[name] = _one_of(allowed[:MOST_CHOICES])
    if not told and arguments == last.arguments:
        return None
    call = ToolCall(tool_name=last.tool_name, arguments=arguments) if arguments != last.arguments else None
    listed = [f"{name}: {told.get(name) or _quoted(value)}" for name, value in arguments.items()]
    return _said(f"Call {last.tool_name} again now with {'; '.join(listed)}.", call)


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
        quoted = refused(call.arguments, call.error_message or "")
        named = [item for item in lookups if item.tool_name == call.tool_name and item.parameter in quoted]
        wrong = [item for item in named if not item.allowed]
        if wrong and call.tool_name not in done:
            return _repaired(call, wrong, calls, {item.name: item for item in offered}, request)
        mended = mended or bool(wrong and call.tool_name == calls[-1].tool_name)
    return _said("If nothing is left to do, tell the user what was done.") if mended else None


def _repaired(
    failed: ToolCallRecord,
    wrong: Sequence[Lookup],
    calls: Sequence[ToolCallRecord],
    offered: Mapping[str, ToolSpecification],
    request: str,
) -> Hint | None:
    found_by = [(item, _finder(item, offered)) for item in wrong]
    latest = {call.tool_name: call for call in calls if call.success}
    lookup, finder = found_by[0]
    if finder is None:
        return None
    if finder not in latest:
        text = f"Look {lookup.parameter} up, do not guess it: call {finder} now."
        return _said(text, ToolCall(tool_name=finder))
    if _is_empty(latest[finder]):
        return _found_nothing(finder)
    given, arguments = list[str](), dict(failed.arguments)
    for item, tool in found_by:
        if tool is None or tool not in latest:
            continue
        held = _Held.by(latest[tool], item.field.split(".") if item.field else [item.parameter], request)
        given.append(f"{item.parameter}: {held.text() if held.values else held.new_text()}")
        if held.values and held.speaks_of_first:
            arguments[item.parameter] = held.values[0]
    call = ToolCall(tool_name=lookup.tool_name, arguments=arguments) if arguments != failed.arguments else None
    return _said(f"Call {lookup.tool_name} now with {'; '.join(given)}.", call)


def _finder(lookup: Lookup, offered: Mapping[str, ToolSpecification]) -> str | None:
    """The tool that finds a value: by experience; else the one that reads and speaks of what the parameter names."""
    by_experience = offered.get(lookup.found_by or "")
    if by_experience is not None and by_experience.read_only:
        return by_experience.name
    return next(iter(finders([lookup.parameter], offered.values(), of=lookup.tool_name, sure=True)), None)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:LONGEST_VALUE]


def _is_empty(made: ToolCallRecord) -> bool:
    return made.result in ([], {}, "", "[]", "{}")


def _found_nothing(tool_name: str, left: Mapping[str, Sequence[Any]] = MappingProxyType({})) -> Hint:
    others = "; ".join(f"{name}: {_one_of(values)}" for name, values in left.items())
    how = others or "fewer arguments or other words, or tell the user"
    return _said(f"{tool_name} found nothing. Call {tool_name} now with {how}.")


def _left(step: NextStep, taken: Sequence[ReasoningStep]) -> dict[str, list[Any]]:
    """Of several values that may stand in a step's arguments, what led to nothing else and was not tried here."""
    calls = [call for made in taken for call in made.calls if call.success]
    used = [
        value
        for call in calls
        if call.tool_name == step.tool_name or not _is_empty(call)
        for value in call.arguments.values()
    ]
    left = {name: [value for value in held if value not in used] for name, held in step.several.items()}
    return {name: values for name, values in left.items() if values}


def _one_of(values: Sequence[Any]) -> str:
    return f"{'one of ' if len(values) > 1 else ''}{', '.join(map(_quoted, values))}"


def _said(text: str, call: ToolCall | None = None) -> Hint:
    return Hint(Message(role=Role.USER, name=NEXT_STEP, content=text), call)
