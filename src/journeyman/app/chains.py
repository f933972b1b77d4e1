"""Chains: tool calls one after another, where a later one takes fields from the results of earlier ones.

A chain is a run like any other with a planner of its own, so that another process can go on with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from journeyman.agent.agent import Agent
from journeyman.agent.run import Run
from journeyman.agent.state import Turn
from journeyman.agent.turn import answer_from_results, numbered
from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import canonical_json, with_texts
from journeyman.core.errors import (
    ConfigurationError,
    ErrorCategory,
    ErrorInfo,
    JourneymanError,
    ModelError,
    StoreError,
    problem_text,
    validation_problems,
)
from journeyman.core.policy import Principal
from journeyman.core.protocols import ModelResponse
from journeyman.core.runs import Limits, TaskInput, ToolCall
from journeyman.core.specification import ToolSpecification
from journeyman.core.storing import ChainStep
from journeyman.execution.outcome import whole

if TYPE_CHECKING:
    from journeyman.provenance.ledger import Ledger

MOST_STEPS = 100
MOST_RESOLVED = 1_000_000
"""Characters that all references of one step may come to; a call takes no more arguments than that."""
MOST_DIGITS = 18
LONGEST_SHOWN = 100
"""Characters of a reference in a message."""
CHAIN = "chain"
"""The name of a chain's agent."""

_PATH = r"(?:\.(?:[A-Za-z_]\w*|\d+))*"
_REFERENCE = re.compile(rf"\$(?:(?P<dollar>\$)|(?P<name>[A-Za-z_]\w*|\d+)(?P<path>{_PATH}))?")


class ChainError(JourneymanError):
    """A chain stopped before its end. ``results`` are those of the steps that are done."""

    def __init__(self, error: ErrorInfo, *, run_id: str, results: Sequence[Any]) -> None:
        self.info = error
        self.run_id = run_id
        self.results = list(results)
        super().__init__(f"{error.code}: {error.message}")


class UnresolvedError(ValueError):
    """A reference that leads nowhere; the text says why."""


# --- references


def resolve(value: Any, results: Sequence[Any]) -> Any:
    """A value with its references replaced. A text that is one reference becomes what it refers to, of any type."""
    return _Resolver(results).value(value)


class _Resolver:
    """Replaces the references of one step. Few characters can refer to much, many times: what comes out is counted."""

    def __init__(self, results: Sequence[Any]) -> None:
        self._results = results
        self._known: dict[str, tuple[Any, str]] = {}
        self._left = MOST_RESOLVED

    def value(self, value: Any) -> Any:
        return with_texts(value, self._text)

    def _text(self, text: str) -> Any:
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and whole["name"] is not None:
            return self._look_up(whole)[0]
        return _REFERENCE.sub(lambda match: "$" if match["dollar"] is not None else self._look_up(match)[1], text)

    def _look_up(self, match: re.Match[str]) -> tuple[Any, str]:
        """What a reference means, and the same as text."""
        key = match.group()
        if key not in self._known:
            value = _look_up(match, self._results)
            self._known[key] = (value, value if isinstance(value, str) else canonical_json(value))
        known = self._known[key]
        self._left -= len(known[1])
        if self._left < 0:
            raise UnresolvedError(f"the references of this step come to more than {MOST_RESOLVED:,} characters")
        return known


def literal(value: Any) -> Any:
    """A value as it must stand in a chain to mean itself: every dollar sign doubled."""
    return with_texts(value, lambda text: text.replace("$", "$$"))


def _look_up(match: re.Match[str], results: Sequence[Any]) -> Any:
    reference, name = _short(match), match["name"]
    if name is None:
        raise UnresolvedError("a '$' refers to nothing; write '$$' for a dollar sign")
    path = match["path"].split(".")[1:]
    if name.isdigit():
        if (number := _number(name)) >= len(results):
            raise UnresolvedError(f"{reference!r} names a step whose result is not there (steps count from 0)")
        return _at_path(results[number], path, reference)
    for result in reversed(results):
        if isinstance(result, dict) and name in result:
            return _at_path(result[name], path, reference)
    raise UnresolvedError(f"{reference!r} names a field that no earlier result has; write '$$' for a dollar sign")


def _at_path(value: Any, path: Sequence[str], reference: str) -> Any:
    for part in path:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and _number(part) < len(value):
            value = value[_number(part)]
        else:
            raise UnresolvedError(f"{reference!r} leads nowhere: there is no {part[:LONGEST_SHOWN]!r}{_known(value)}")
    return value


def _number(digits: str) -> int:
    """A number that somebody wrote. One of more digits than Python reads is larger than any that there is."""
    return int(digits) if len(digits) <= MOST_DIGITS else sys.maxsize


def _short(match: re.Match[str]) -> str:
    text = match.group()
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _known(value: Any) -> str:
    if isinstance(value, dict):
        return f" among {', '.join(map(repr, sorted(value)[:10]))}" if value else " in an empty object"
    return f" in {type(value).__name__}"


def _check_order(steps: Sequence[ChainStep]) -> None:
    """Refuse what can be seen to be wrong before anything runs: a step that refers to itself or to a later one."""
    for number, step in enumerate(steps):
        for text in _texts(step.args):
            for match in _REFERENCE.finditer(text):
                name = match["name"]
                if name is not None and name.isdigit() and _number(name) >= number:
                    raise ConfigurationError(
                        f"step {number} ({step.tool!r}) refers to {_short(match)!r}, but that step is not before it; "
                        "steps count from 0, and '$$' is a dollar sign"
                    )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in held for text in _texts(item)]


# --- the planner


class ChainPlanner:
    """Plans the chain's next call, and stops where one did not succeed. It asks no model.

    It knows nothing but the run's facts. Whoever wrote the chain meant every step of it: none is refused as repeated,
    and nobody asks where its arguments came from, unless the door that it came through was told what was said before.
    """

    def __init__(self, steps: Sequence[ChainStep]) -> None:
        self._steps = steps

    async def plan(self, run: Run) -> ModelResponse:
        results: list[Any] = []
        for number, done in enumerate(run.state.steps):
            [record] = done.calls
            if record.error is not None:
                raise _stopped(number, record.tool_name, record.error)
            results.append(await _result(run, number, record))
        if len(results) == len(self._steps):
            text = "The step is done." if len(results) == 1 else f"All {len(results)} steps are done."
            return ModelResponse(text=text, model=CHAIN)
        step = self._steps[len(results)]
        try:
            arguments = resolve(step.args, results)
        except UnresolvedError as error:
            raise ModelError(
                "CHAIN_REFERENCE",
                f"step {len(results)} ({step.tool!r}) did not run: {error}",
                category=ErrorCategory.INVALID_INPUT,
                user_guidance="Look at the results of the steps before, and correct the reference",
            ) from None
        # However large: a chain hands on results as they are.
        call = ToolCall(tool_name=step.tool, arguments=arguments)
        calls = numbered([call], iteration=run.iteration, taken=run.state.call_ids, theirs={}, bounded=False)
        return ModelResponse(calls=calls, model=CHAIN)

    def refusal(self, run: Run, turn: Turn, call: ToolCall) -> None:
        return None

    def ledger(self, run: Run) -> Ledger | None:
        return run.new_ledger() if run.said else None


class OneCall(ChainPlanner):
    """Plans one call that somebody has written, and is content with whatever comes of it."""

    def __init__(self, tool_name: str, arguments: dict[str, Any]) -> None:
        super().__init__([ChainStep(tool=tool_name, args=literal(arguments))])

    async def plan(self, run: Run) -> ModelResponse:
        if not run.state.steps:
            return await super().plan(run)
        return ModelResponse(text=answer_from_results(run.state), model=CHAIN)


async def _result(run: Run, number: int, record: ToolCallRecord) -> Any:
    try:
        return await whole(record, run.id, run.executor.artifacts)
    except StoreError as error:  # for good: a store that is merely away is waited for
        raise ModelError(
            "CHAIN_RESULT_GONE",
            f"the result of step {number} ({record.tool_name!r}) cannot be read any more: {error}",
            user_guidance="Run the chain again, or keep results for longer",
        ) from error


def _stopped(number: int, tool_name: str, error: ErrorInfo) -> ModelError:
    return ModelError(
        "CHAIN_STEP_FAILED",
        f"step {number} ({tool_name!r}) did not succeed: {error.code}: {error.message}",
        category=error.category,
        retryable=error.retryable,
        user_guidance=error.user_guidance or error.recover_action,
    )


# --- starting


def read_steps(steps: Sequence[ChainStep | Mapping[str, Any]]) -> list[ChainStep]:
    """The steps, checked as far as they can be before one has run. Raises ConfigurationError."""
    if not 1 <= len(steps) <= MOST_STEPS:
        raise ConfigurationError(f"a chain has 1 to {MOST_STEPS} steps, this one has {len(steps)}")
    read = []
    for number, step in enumerate(steps):
        try:
            read.append(step if isinstance(step, ChainStep) else ChainStep.model_validate(step))
        except ValidationError as error:
            raise ConfigurationError(
                f"step {number} of the chain, {problem_text(validation_problems(error))}"
            ) from None
    _check_order(read)
    return read


async def start_chain(
    app: Journeyman,
    steps: Sequence[ChainStep | Mapping[str, Any]],
    *,
    principal: Principal | None = None,
    session_id: str | None = None,
    run_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Handle:
    """Keep a chain in the store and begin it. ``metadata`` is what a door remembers of it."""
    read = read_steps(steps)
    tools: dict[str, ToolSpecification] = {}
    for name in dict.fromkeys(step.tool for step in read):
        if (tool := app.library.lookup(name)) is None:
            near = app.library.nearest(name)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ConfigurationError(f"the chain calls {name!r}, which is no tool here{hint}")
        tools[tool.name] = tool.specification
    return await app.start(
        Agent(name=CHAIN, instruction="Carry out the steps.", tools=tuple(tools.values())),
        TaskInput(
            description=f"Chain of {len(read)}: {', '.join(step.tool for step in read)}", metadata=dict(metadata or {})
        ),
        principal=principal,
        limits=Limits(iterations=len(read) + 1),
        session_id=session_id,
        run_id=run_id,
        chain=read,
    )


async def chain_results(handle: Handle) -> list[Any]:
    """Wait for a chain's end, people's decisions included. Raises ChainError where it stopped before."""
    async for _ in handle.events():
        pass
    response = await handle.result()
    results = [await handle.whole(record) for record in response.tool_calls if record.success]
    if response.error is not None:
        raise ChainError(response.error, run_id=handle.run_id, results=results)
    return results
