"""What a person does about a call that was under way when its process died."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import CallFinished, CallResolved
from journeyman.execution.outcome import Refusal, Success, skipped
from journeyman.execution.results import UnserialisableResultError, json_value

if TYPE_CHECKING:
    from journeyman.app.journeyman import Journeyman


async def settle(
    app: Journeyman,
    run_id: str,
    call_id: str,
    action: Literal["rerun", "done", "skip"],
    *,
    result: Any,
    by: str | None,
) -> None:
    """Write the person's word into the journal, then let the run go on."""
    if action not in ("rerun", "done", "skip"):
        raise ConfigurationError(f"an unknown call is settled by 'rerun', 'done' or 'skip', not by {action!r}")
    try:
        value = json_value(result)  # before the run is touched
    except UnserialisableResultError as error:
        raise ConfigurationError(f"the result for call {call_id!r} cannot be kept: {error}") from error
    async with app.held(run_id) as run:
        if run is None:
            raise ConfigurationError(f"run {run_id!r} cannot be settled now: it has ended, or is being worked on")
        past = None if run.state.turn is None else run.state.turn.pasts.get(call_id)
        if past is None or past.unknown is None:
            raise ConfigurationError(f"call {call_id!r} of run {run_id!r} was settled by somebody else meanwhile")
        resolved = CallResolved(call_id=call_id, action=action, by=by, result=value)
        if action == "rerun":
            await run.recorder.record(resolved, sync=True)
        else:
            outcome = Success(value) if action == "done" else skipped(past.unknown.tool_name)
            # Together: a word without its effect would be asked for again.
            await run.recorder.record(resolved, CallFinished(record=_settled(past.unknown, outcome)), sync=True)
    app.wake(run_id)


def _settled(unknown: ToolCallRecord, outcome: Success | Refusal) -> ToolCallRecord:
    match outcome:
        case Success(value):
            changes = {"status": CallStatus.SUCCESS, "result": value, "error": None}
        case Refusal(status, error):
            changes = {"status": status, "error": error}
    return unknown.model_copy(update=changes)
