"""What a person does about a call that was under way when its process died."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from journeyman.app.owners import dead
from journeyman.app.resuming import take_up
from journeyman.core.calls import CallStatus
from journeyman.core.errors import ConfigurationError, ErrorCategory, ErrorInfo, Severity
from journeyman.core.events import CallFinished, CallResolved
from journeyman.execution.results import json_value

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
    now = app.clock.time()
    gone = dead(await app.store.runs.owners())
    epoch = await app.store.runs.claim(run_id, owner=app.owner, now=now, lease_until=now + app.lease_seconds, dead=gone)
    if epoch is None:
        raise ConfigurationError(f"run {run_id!r} cannot be settled now: it has ended, or is being worked on")
    try:
        run = await take_up(app, run_id, epoch, listener=None)
        past = None if run.state.turn is None else run.state.turn.pasts.get(call_id)
        if past is None or past.unknown is None:
            waiting = [] if run.state.turn is None else [k for k, v in run.state.turn.pasts.items() if v.unknown]
            known = ", ".join(map(repr, waiting)) or "none"
            raise ConfigurationError(
                f"call {call_id!r} of run {run_id!r} has no unknown outcome (those that do: {known})"
            )
        await run.recorder.record(CallResolved(call_id=call_id, action=action, by=by, result=json_value(result)))
        if action == "done":
            settled = {"status": CallStatus.SUCCESS, "result": json_value(result), "error": None}
            await run.recorder.record(CallFinished(record=past.unknown.model_copy(update=settled)), sync=True)
        elif action == "skip":
            error = ErrorInfo(
                code="SKIPPED",
                message=f"{past.unknown.tool_name!r} was interrupted, and a person decided to leave it out",
                category=ErrorCategory.SYSTEM_ERROR,
                severity=Severity.MEDIUM,
                recover_action="Go on without it; do not repeat it",
            )
            settled = {"status": CallStatus.ERROR, "error": error}
            await run.recorder.record(CallFinished(record=past.unknown.model_copy(update=settled)), sync=True)
        await app.store.flush()
    finally:
        await app.store.runs.release(run_id, epoch=epoch)
    app.wake(run_id)
