"""A recorded run once more, through the whole loop and pipeline, with the recording behind the tools.

And two runs side by side: where they part, and calls, results, answers and costs of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

from journeyman.agent.run import Planner, advance
from journeyman.core.approvals import Decision
from journeyman.core.data import Entity, canonical_json
from journeyman.core.events import StrategiesInjected
from journeyman.core.runs import cost_of, list_prices
from journeyman.core.specification import RESERVED_NAMES
from journeyman.execution.recorder import MemoryJournal
from journeyman.replay.recording import RecordedCall, RecordedStep, Recording
from journeyman.replay.stage import RecordedGate, RecordedInvoker, Today

Strictness: TypeAlias = Literal["exact", "subset", "contains"]
LONGEST_SHOWN = 300
"""Characters of a value in a message."""


@dataclass
class Played:
    """What became of a recorded run today."""

    recording: Recording
    """What was replayed."""
    again: Recording
    """What came of it."""
    not_recorded: Sequence[str]
    """Tools of calls that the recording does not hold."""
    instruction: str

    @property
    def made(self) -> list[RecordedCall]:
        """The calls of the agent's tools."""
        return [item for item in self.again.calls if item.call.tool_name not in RESERVED_NAMES]

    @property
    def calls(self) -> list[str]:
        """The tools of the calls, in their order."""
        return [item.call.tool_name for item in self.made]

    @property
    def asked(self) -> list[str]:
        """The tools of the calls that a person was asked about."""
        return [item.call.tool_name for item in self.made if item.approval is not None]

    @property
    def problems(self) -> Sequence[str]:
        """Where it goes otherwise than it was recorded, the first divergence first."""
        expected = [outline(item) for item in self.recording.calls if item.call.tool_name not in RESERVED_NAMES]
        return [*_compared(expected, [outline(item) for item in self.made], "exact"), *self._unusable()]

    def _unusable(self) -> list[str]:
        problems = []
        if self.not_recorded:
            problems.append(f"the recording does not hold calls of {', '.join(self.not_recorded)}")
        if self.instruction != self.recording.started.agent.get("instruction"):
            problems.append("the agent's instruction is not the recorded one: record the run again")
        return problems

    def check(
        self,
        *,
        calls: Sequence[Mapping[str, Any]],
        answer: str | None = None,
        status: str = "completed",
        strictness: Strictness = "exact",
    ) -> None:
        """Raise AssertionError with everything that is not as expected.

        An expected call has a ``tool`` and may have ``arguments``, ``result``, ``status`` (else success) and ``asked``,
        whether a person was (else not). ``exact``: as they are. ``subset``: the calls in order, each with at least the
        values that are named. ``contains``: the same, and other calls and words may stand between.
        """
        problems = _compared(list(calls), [outline(item) for item in self.made], strictness) + self._unusable()
        if self.again.status.value != status:
            problems.append(f"the run is {self.again.status.value!r}, expected {status!r}")
        said = self.again.answer or ""
        if answer is not None and (answer not in said if strictness == "contains" else answer != said):
            problems.append(f"the answer is {_short(said)}, expected {_short(answer)}")
        if problems:
            raise AssertionError(diverged(problems))


def diverged(problems: Sequence[str]) -> str:
    return "the run does not go as it was recorded:\n- " + "\n- ".join(problems)


def outline(item: RecordedCall) -> dict[str, Any]:
    """A call as a test expects it."""
    record = item.record
    called: dict[str, Any] = {"tool": item.call.tool_name}
    called["arguments"] = item.call.arguments if record is None else record.arguments
    called["status"] = "waiting" if record is None else record.status.value
    called["asked"] = item.approval is not None
    if record is not None and record.success:
        called["result"] = record.result
    elif record is not None and record.error is not None:
        called["error"] = record.error.code
    return called


def _compared(expected: Sequence[Mapping[str, Any]], made: list[dict[str, Any]], strictness: Strictness) -> list[str]:
    if strictness == "contains":
        left = iter(made)
        missing = [item for item in expected if not any(not _differences(item, one, strictness) for one in left)]
        return [f"no call, in this order, like {_short(item)}" for item in missing[:1]]
    problems = []
    if len(expected) != len(made):
        names = ", ".join(item["tool"] for item in made) or "none"
        problems.append(f"{len(made)} calls were made ({names}), expected {len(expected)}")
    for at, (item, one) in enumerate(zip(expected, made, strict=False), start=1):
        problems += [f"call {at} ({one['tool']}): {problem}" for problem in _differences(item, one, strictness)]
    return problems


def _differences(expected: Mapping[str, Any], made: dict[str, Any], strictness: Strictness) -> list[str]:
    wanted = {"status": "success", "asked": False, **expected}
    if "error" in made and "error" not in wanted:
        return [f"it ended in {made['error']}, expected {wanted['status']}"]
    return [
        f"{key} is {_short(made.get(key))}, expected {_short(value)}"
        for key, value in wanted.items()
        if not (made.get(key) == value if strictness == "exact" else _holds(made.get(key), value))
    ]


def _holds(found: Any, wanted: Any) -> bool:
    """Whether every value that is named is there."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(key in found and _holds(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_holds, found, wanted))
    return bool(found == wanted)


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


async def play(
    recording: Recording,
    today: Today,
    *,
    planner: Callable[[], Planner] | None = None,
    live: bool = False,
    decision: Decision | None = None,
) -> Played:
    """Go through a recorded run again, until its end, a person, or what the recording does not hold.

    With a ``decision`` every question gets it, whatever was decided then.
    """
    journal, invoker = MemoryJournal(), RecordedInvoker(recording, live=today.library if live else ())
    gate = RecordedGate(recording, decision)
    run = today.stage(recording, planner=planner, gate=gate, invoker=invoker, journal=journal)
    invoker.left = lambda: setattr(run, "leaving", planner is not None)
    await run.recorder.record(recording.started.model_copy(update={"agent": run.agent.snapshot, "trace_parent": None}))
    for fact in await today.advised(recording, run):
        if isinstance(fact, StrategiesInjected):
            await run.recorder.record(fact.model_copy())
    await advance(run)
    again = Recording(recording.run_id, await journal.read(recording.run_id))
    return Played(recording, again, tuple(invoker.not_recorded), run.agent.instruction)


# --- two runs side by side


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
    differences: list[Difference] = []
    for number, (one, other) in enumerate(zip_longest(a.steps, b.steps), start=1):
        differences += [Difference(step=number, what=what, a=x, b=y) for what, x, y in _apart(one, other)]
    return RunDiff(
        a=_side(a), b=_side(b), first=differences[0].step if differences else None, differences=tuple(differences)
    )


def _apart(one: RecordedStep | None, other: RecordedStep | None) -> Iterator[tuple[str, Any, Any]]:
    first, second = ([] if step is None else [outline(item) for item in step.calls.values()] for step in (one, other))
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
