"""Where a run leaves its parent: how much of the parent's past it shares, and what it begins with after that."""

from __future__ import annotations

from typing import Any

from journeyman.core.calls import CallStatus
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import Answered, CallFinished, CallsPlanned, Fact
from journeyman.core.storing import Fork
from journeyman.replay.recording import RecordedCall, RecordedStep, Recording, record_of

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
        ended = [number for number, fact in enumerate(recording.facts, start=1) if isinstance(fact, Answered)]
        if not ended:
            raise ConfigurationError(f"run {recording.run_id!r} has not answered: fork it at one of its steps")
        return Fork(run_id=recording.run_id, seq=ended[-1], iteration=at, say=say)
    facts: list[Fact] = []
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
    found = step.calls.get(call_id or "")
    if found is None:
        names = ", ".join(step.calls) or "none"
        raise ConfigurationError(f"step {step.message.iteration} has the calls {names}: say which of them is meant")
    return found


def _begun(
    step: RecordedStep, chosen: RecordedCall, fork_id: str, arguments: dict[str, Any] | None, result: Any
) -> list[Fact]:
    """The step as far as it is the parent's, with one call changed."""
    edited = chosen.call if arguments is None else chosen.call.model_copy(update={"arguments": arguments})
    edited = edited.model_copy(update={"malformed": None})
    calls = tuple(edited if call.id == edited.id else call for call in step.message.calls)
    facts: list[Fact] = [
        step.message.model_copy(update={"calls": calls}),
        CallsPlanned(iteration=step.message.iteration, calls=calls),
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
            facts.append(CallFinished(record=record.model_copy(update=own)))
    return facts
