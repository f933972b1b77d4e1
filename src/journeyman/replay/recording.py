"""A run as its facts tell it: what the model said at each step, what became of each call, who was asked.

A recording comes from a store, from a file of ``journeyman runs export`` or ``runs test``, or from a conversation in
the form that OpenAI's API has. It is data: reading one imports nothing and runs nothing.

And where another run leaves it: how much of its past that one shares, and what it begins with after that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core import events
from journeyman.core.approvals import Approval, ApprovalStatus
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import canonical_json, check_containers, moment
from journeyman.core.errors import ConfigurationError
from journeyman.core.runs import RunStatus, TaskInput, ToolCall, Usage
from journeyman.core.specification import ToolSpecification
from journeyman.core.storing import Fork

MOST_BYTES = 64_000_000
"""Of a file with a recording."""
ANY = {"type": "object"}
"""The schema of a tool of which nothing is known but its name."""
CHAIN = ("chain", "Carry out the steps.")
"""Name and instruction of the agent of runs that ask no model."""


@dataclass(slots=True)
class RecordedCall:
    """One call: what was asked for, what became of it, and what a person said."""

    call: ToolCall
    record: ToolCallRecord | None = None
    approval: Approval | None = None
    decision: events.ApprovalDecided | None = None

    @property
    def ran(self) -> bool:
        """Whether the recording has what the tool itself has answered."""
        record = self.record
        return record is not None and record.status is not CallStatus.UNKNOWN and bool(record.attempts or record.cached)

    @property
    def gate(self) -> str:
        """What was decided of it before anything ran: ``free``, ``asked`` or ``denied``."""
        if self.approval is not None:
            return "asked"
        return "free" if self.record is None or self.ran or self.record.success else "denied"


@dataclass(slots=True)
class RecordedStep:
    """One answer of the model with its calls."""

    message: events.MessageReceived
    before: int
    """How many facts the recording has before it."""
    calls: dict[str, RecordedCall]


@dataclass(eq=False)
class Recording:
    """The facts of one run."""

    run_id: str
    facts: Sequence[events.Fact] = field(repr=False)

    @cached_property
    def started(self) -> events.RunStarted:
        for fact in self.facts:
            if isinstance(fact, events.RunStarted):
                return fact
        raise ConfigurationError(f"run {self.run_id!r} has not begun: there is nothing to replay")

    @property
    def is_chain(self) -> bool:
        """Whether somebody wrote its calls down: no model is asked, nor where values come from."""
        agent = self.started.agent
        return (agent.get("name"), agent.get("instruction")) == CHAIN

    @cached_property
    def steps(self) -> list[RecordedStep]:
        """Every iteration once, as it went in the end."""
        steps: dict[int, RecordedStep] = {}
        calls: dict[str, RecordedCall] = {}
        for at, fact in enumerate(self.facts):
            match fact:
                case events.MessageReceived():
                    calls = {call.id: RecordedCall(call) for call in fact.calls}
                    steps[fact.iteration] = RecordedStep(fact, at, calls)
                case events.ApprovalRequested(approval=approval) if (
                    approval.call_id in calls and approval.question is None
                ):
                    calls[approval.call_id].approval = approval
                case events.ApprovalDecided(answers=False) if (
                    fact.call_id in calls and fact.status is not ApprovalStatus.SUPERSEDED
                ):
                    calls[fact.call_id].decision = fact
                case events.CallFinished(record=record) if record.call_id in calls:
                    calls[record.call_id].record = record
                case _:
                    pass
        return list(steps.values())

    @property
    def calls(self) -> Iterator[RecordedCall]:
        for step in self.steps:
            yield from step.calls.values()

    @property
    def answer(self) -> str | None:
        for fact in reversed(self.facts):
            if isinstance(fact, events.Answered | events.RunForked):  # before it stands what its parent has answered
                return fact.text if isinstance(fact, events.Answered) else None
        return None

    @property
    def status(self) -> RunStatus:
        """How the run stood after its last fact that says so."""
        for fact in reversed(self.facts):
            if isinstance(fact, events.RunFinished | events.RunSuspended):
                return fact.status
            if isinstance(fact, events.RunFailed):
                return RunStatus.FAILED
        return RunStatus.RUNNING

    @property
    def usage(self) -> Usage:
        return sum((step.message.usage for step in self.steps), Usage())

    # --- as a file

    def to_json(self) -> str:
        facts = [fact.model_dump(mode="json") for fact in self.facts]
        return json.dumps({"run_id": self.run_id, "facts": facts}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, data: str | bytes) -> Recording:
        """The recording in a file. Raises ConfigurationError for anything else, however large or deep it is."""
        text = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
        if len(text) > MOST_BYTES:
            raise ConfigurationError(f"the recording has {len(text):,} bytes, at most {MOST_BYTES:,} are read")
        try:
            check_containers(text)
            value = from_json(text)
            if isinstance(value, list):
                return from_conversation(value)
            if not isinstance(value, dict) or not isinstance(facts := value.get("facts"), list):
                raise ValueError("it has no list of facts")
            run = value.get("run")
            named = value.get("run_id") or (run.get("id") if isinstance(run, dict) else None)
            recording = cls(str(named or "recording"), tuple(events.read_fact(to_json(fact)) for fact in facts))
            _ = recording.started, recording.steps  # what cannot be read is better known here
            return recording
        except (ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
            raise ConfigurationError(f"this is no recording of a run: {error}") from None


def call_key(tool_name: str, arguments: Mapping[str, Any]) -> str:
    """By what a call is found in a recording."""
    return f"{tool_name}\n{canonical_json(arguments)}"


# --- conversations of other programs


def from_conversation(messages: Sequence[Any], *, name: str = "conversation") -> Recording:
    """The recording of a conversation in the form that OpenAI's API has; the user's first request is the task.

    Such a conversation tells neither the tools' schemas nor what a person was asked. Raises ValueError.
    """
    said = [message for message in messages if isinstance(message, dict)]
    asked = next((at for at, message in enumerate(said) if message.get("role") == "user"), None)
    if asked is None:
        raise ValueError("no message of a user is in the conversation")
    instruction = " ".join(_text(message) for message in said[:asked] if message.get("role") == "system")
    results = {message.get("tool_call_id"): _text(message) for message in said if message.get("role") == "tool"}
    facts: list[events.Fact] = []
    names: dict[str, None] = {}
    answers = [message for message in said[asked:] if message.get("role") == "assistant"]
    for iteration, message in enumerate(answers, start=1):
        made = message.get("tool_calls") or ()
        calls = tuple(_call(f"call_{iteration}_{at}", item["function"]) for at, item in enumerate(made, start=1))
        names |= dict.fromkeys(call.tool_name for call in calls)
        facts.append(events.MessageReceived(iteration=iteration, text=_text(message), calls=calls))
        for call, item in zip(calls, made, strict=True):
            if (result := results.get(item.get("id"))) is not None:
                facts.append(events.CallFinished(record=record_of(name, call, result)))
        if all(item.get("id") in results for item in made):
            facts.append(
                events.StepFinished(iteration=iteration, thought=_text(message) or "Calls tools.", duration_ms=0.0)
            )
    if answers and not answers[-1].get("tool_calls"):
        facts += [events.Answered(text=_text(answers[-1])), events.RunFinished(status=RunStatus.COMPLETED)]
    described = [{"name": tool, "description": f"{tool}, of a conversation", "parameters": ANY} for tool in names]
    tools = [ToolSpecification(**tool).model_dump(mode="json") for tool in described]
    agent = {"name": name, "instruction": instruction or "Answer the user.", "tools": tools}
    facts.insert(0, events.RunStarted(agent=agent, task=TaskInput(description=_text(said[asked]) or "(nothing)")))
    for seq, fact in enumerate(facts, start=1):
        fact.stamp(name, seq, float(seq))
    return Recording(name, tuple(facts))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _call(call_id: str, function: Mapping[str, Any]) -> ToolCall:
    text, arguments = str(function.get("arguments") or "{}"), None
    with suppress(ValueError):
        arguments = from_json(text)
    if isinstance(arguments, dict):
        return ToolCall(id=call_id, tool_name=str(function["name"]), arguments=arguments)
    return ToolCall(id=call_id, tool_name=str(function["name"]), arguments={}, malformed=text)


def record_of(run_id: str, call: ToolCall, result: Any) -> ToolCallRecord:
    """A call of which nothing is known but what it returned."""
    return ToolCallRecord(
        execution_id=f"{run_id}.{call.id}",
        call_id=call.id,
        tool_name=call.tool_name,
        arguments=call.arguments,
        status=CallStatus.SUCCESS,
        result=result,
        start_time=moment(0),
        end_time=moment(0),
        attempts=1,
        correlation_id=run_id,
    )


# --- forks


NOTHING = object()
"""Where no result is given: None is one."""


def fork_of(
    recording: Recording,
    fork_id: str,
    *,
    at: int,
    say: str | None = None,
    arguments: dict[str, Any] | None = None,
    result: Any = NOTHING,
    call_id: str | None = None,
) -> Fork:
    """The fork before the step ``at``, where the model is asked again; after the last one with something to ``say``.

    With other ``arguments``, or another ``result``, the model's words are those of the parent, and so is what became of
    the step's other calls: they are not made again. Raises ConfigurationError where there is no such step or call.
    """
    edits = (say is not None) + (arguments is not None) + (result is not NOTHING)
    if edits > 1:
        raise ConfigurationError("a fork says something, or gives other arguments, or another result: one of them")
    step = next((step for step in recording.steps if step.message.iteration == at), None)
    if step is None:
        last = len(recording.steps)
        if at != last + 1 or say is None:
            after = f", and {last + 1} with something to say"
            raise ConfigurationError(f"run {recording.run_id!r} has no step {at}: it has 1 to {last}{after}")
        ended = [number for number, fact in enumerate(recording.facts, start=1) if isinstance(fact, events.Answered)]
        if not ended:
            raise ConfigurationError(f"run {recording.run_id!r} has not answered: fork it at one of its steps")
        return Fork(run_id=recording.run_id, seq=ended[-1], iteration=at, say=say)
    facts: list[events.Fact] = []
    if arguments is not None or result is not NOTHING:
        facts = _begun(step, _chosen(step, call_id), fork_id, arguments, result)
    return Fork(
        run_id=recording.run_id,
        seq=step.before,
        iteration=at,
        say=say,
        facts=tuple(fact.model_dump(mode="json") for fact in facts),
    )


def _chosen(step: RecordedStep, call_id: str | None) -> RecordedCall:
    if call_id is None and len(step.calls) == 1:
        [call_id] = step.calls
    call = step.calls.get(call_id or "")
    if call is None:
        names = ", ".join(step.calls) or "none"
        raise ConfigurationError(f"step {step.message.iteration} has the calls {names}: say which of them is meant")
    return call


def _begun(
    step: RecordedStep, chosen: RecordedCall, fork_id: str, arguments: dict[str, Any] | None, result: Any
) -> list[events.Fact]:
    """The step as far as it is the parent's, with one call changed."""
    edited = chosen.call if arguments is None else chosen.call.model_copy(update={"arguments": arguments})
    edited = edited.model_copy(update={"malformed": None})
    calls = tuple(edited if call.id == edited.id else call for call in step.message.calls)
    facts: list[events.Fact] = [
        step.message.model_copy(update={"calls": calls}),
        events.CallsPlanned(iteration=step.message.iteration, calls=calls),
    ]
    for item in step.calls.values():
        record = item.record
        if item is chosen:
            record = None
            if arguments is None:
                was = item.record or record_of("", item.call, result)
                succeeded = {"status": CallStatus.SUCCESS, "error": None}
                record = was.model_copy(update={**succeeded, "result": result, "artifact": None})
        if record is not None and record.status is not CallStatus.UNKNOWN:
            own = {"execution_id": f"{fork_id}.{record.call_id}", "correlation_id": fork_id, "approval_id": None}
            facts.append(events.CallFinished(record=record.model_copy(update=own)))
    return facts
