"""Which tools a model is told of where its agent has more than that: a first choice, and what is added to it.

The choice grows at its end and changes rarely, so that a provider finds the beginning of the prompt in its cache. It is
recorded, so that a run that is resumed goes on with the same one, and so that people can see what was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.errors import ErrorCategory
from journeyman.core.events import ToolsOffered
from journeyman.core.specification import FIND_TOOLS, RESERVED_NAMES
from journeyman.provenance.hints import stopped

if TYPE_CHECKING:
    from journeyman.agent.run import Run

Reason: TypeAlias = Literal["strategy", "used", "chosen", "called", "found", "fallback", "cut", "limit"]

INSTEAD = 3
"""How many tools are offered in the place of one that failed for good."""
KEPT_STEPS = 3
"""For how many steps what was found stays: a model may look for several tools before it calls any."""
FROM_HISTORY = 5
"""How many tools of the conversation so far are offered again."""
_GONE = frozenset({"UNKNOWN_TOOL", "NOT_PERMITTED", "CIRCUIT_OPEN"})
_NOT_ABOUT_THE_CALL = frozenset(
    {ErrorCategory.NETWORK, ErrorCategory.AUTHENTICATION, ErrorCategory.TIMEOUT, ErrorCategory.SYSTEM_ERROR}
)


async def update_choice(run: Run) -> None:
    """Bring up to date what the model is told of, before it is asked; for runs whose offer is narrowed."""
    made, offer = _Changes(run), run.offer
    if not offer.told:
        await _choose(run, made)
    elif 2 * offer.told < min(offer.room, len(offer.permitted)):
        await _fill(run, made)  # a few that have gone may come back to their places; these are most
    if len(run.state.steps) > offer.seen_steps:
        await _take_in_steps(run, made)
        offer.seen_steps = len(run.state.steps)
    if offer.wants_reader:
        made.add(["read_result"], "cut")
    if offer.told > offer.room:  # some have come back, or the limit was lowered
        made.add([], "limit")
    if made.facts:
        await run.recorder.record(*made.facts)


class _Changes:
    """Of the offer, as facts."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.facts: list[ToolsOffered] = []

    def add(self, names: Sequence[str], reason: Reason, *, because: str | None = None) -> None:
        run, now = self._run, self._run.iteration
        if reason in ("found", "fallback"):
            run.offer.found |= dict.fromkeys(names, now)  # also what was offered already: it must not make room
        latest = {name: at for name, at in run.offer.found.items() if now - at <= KEPT_STEPS}
        added, dropped = run.offer.append(names, used=_last_uses(run), found=latest)
        if added or dropped:
            self.facts.append(ToolsOffered(iteration=now, reason=reason, added=added, dropped=dropped, because=because))


async def _choose(run: Run, made: _Changes) -> None:
    """The tools of the strategies that the run was given, then what the conversation used, then what fits best.

    Where fewer fit than there is room for, others as they come: a request need not share a word with its tool.
    """
    offer, state = run.offer, run.state
    made.add(offer.before, "used")
    made.add([name for item in reversed(state.advice) if not item.holdout for name in item.tools], "strategy")
    made.add(_of_history(run), "used")
    await _fill(run, made)


async def _fill(run: Run, made: _Changes) -> None:
    offer, task = run.offer, run.state.task
    if (room := offer.room - offer.told) > 0:
        text = "" if task is None else task.description
        ranked = await offer.rank(text, k=room, without=offer.chosen)
        if len(ranked) < room:
            others = (item.name for item in offer.permitted if item.name not in offer.chosen)
            ranked = list(dict.fromkeys([*ranked, *others]))
        made.add(ranked[:room], "chosen")


def _of_history(run: Run) -> list[str]:
    said = run.state.messages[: run.state.task_at]
    called = (run.offer.name_of(call.tool_name) for message in reversed(said) for call in message.calls)
    return list(dict.fromkeys(name for name in called if name is not None))[:FROM_HISTORY]


async def _take_in_steps(run: Run, made: _Changes) -> None:
    """What the steps since then found, called, or could not do."""
    for step in run.state.steps[run.offer.seen_steps :]:
        for call in step.calls:
            if call.tool_name == FIND_TOOLS:
                made.add(_found(run, call), "found")
            elif call.tool_name not in RESERVED_NAMES:
                name = run.offer.name_of(call.tool_name)
                if name is not None and name not in run.offer.chosen:
                    made.add([name], "called")
                if (
                    call.tool_name not in run.offer.fallbacks
                    and _failed_for_good(run, call)
                    and not stopped(run.state.steps)
                ):
                    run.offer.fallbacks.add(call.tool_name)
                    made.add(await _instead(run, call), "fallback", because=call.tool_name)


def _found(run: Run, call: ToolCallRecord) -> list[str]:
    told = call.result.get("found") if isinstance(call.result, dict) else None
    return [name for item in told or () if (name := run.offer.name_of(item)) is not None]


def _failed_for_good(run: Run, call: ToolCallRecord) -> bool:
    """Whether another call of the tool is of no use now. What a person denied is not to be had another way either."""
    error = call.error
    if error is None:
        return False
    if error.code in _GONE:
        return True
    if call.status not in (CallStatus.ERROR, CallStatus.TIMEOUT) or not call.attempts:
        return False
    if not run.reads(call.tool_name) and error.category is not ErrorCategory.AUTHENTICATION:
        return False  # it may have done what it was to do: nothing else is to do it again
    if error.category in _NOT_ABOUT_THE_CALL:
        return True
    # It may be about the values; a tool that fails again, and never did anything, is not.
    made = [item for step in run.state.steps for item in step.calls if item.tool_name == call.tool_name]
    return len(made) > 1 and not any(item.success for item in made)


async def _instead(run: Run, call: ToolCallRecord) -> list[str]:
    """The next best for the request and for what the tool was to do."""
    tool = run.offer.tools.get(call.tool_name)
    about = call.tool_name.replace("_", " ") if tool is None else f"{tool.name} {tool.specification.description}"
    task = "" if run.state.task is None else run.state.task.description
    return await run.offer.rank(f"{task}\n{about}", k=INSTEAD, without={*run.offer.chosen, *run.offer.fallbacks})


def _last_uses(run: Run) -> dict[str, int]:
    """By tool: at which step it was called last."""
    uses: dict[str, int] = {}
    for number, step in enumerate(run.state.steps):
        for call in step.calls:
            if (name := run.offer.name_of(call.tool_name)) is not None:
                uses[name] = number
    return uses
