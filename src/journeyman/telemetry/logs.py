"""Events as structured log records: ids, names, sizes, durations, statuses. No arguments, results or secrets.

Where content is wanted, it goes without tokens, and its addresses without userinfo, query and fragment.

Records go to the standard library's logger ``journeyman.run`` with their fields as attributes, so that any host can
format them; ``JsonFormatter`` writes one JSON object a line.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from journeyman.core import events
from journeyman.core.data import LOG_FIELDS, safe_json
from journeyman.sensitive.tokens import redacted, redacted_value

logger = logging.getLogger("journeyman.run")
# A library writes no logs until its host configures logging.
logging.getLogger("journeyman").addHandler(logging.NullHandler())


class LogListener:
    """``capture_content`` adds arguments, results and texts; it is off unless the operator turns it on."""

    def __init__(self, *, capture_content: bool = False) -> None:
        self._capture_content = capture_content

    def __call__(self, event: events.Event) -> None:
        if (logged := _LOGGED.get(type(event))) is None:
            return
        level, message = logged
        if type(event) is events.CallFinished and event.record.error is not None:
            level = logging.WARNING
        if logger.isEnabledFor(level):
            fields = {"run_id": event.run_id, "seq": event.seq} | self._fields(event)
            # Logger.log would search the stack for a caller that is always this line.
            record = logger.makeRecord(logger.name, level, __file__, 0, message, (), None)
            setattr(record, LOG_FIELDS, fields)
            logger.handle(record)

    def _fields(self, event: events.Event) -> dict[str, Any]:
        match event:
            case events.CallFinished(record=record):
                fields: dict[str, Any] = {
                    "call_id": record.call_id,
                    "execution_id": record.execution_id,
                    "correlation_id": record.correlation_id,
                    "tool": redacted(record.tool_name),
                    "status": record.status.value,
                    "duration_ms": round(record.duration_ms, 3),
                    "attempts": record.attempts,
                    "cached": record.cached,
                }
                if record.grounding and (missing := record.ungrounded):
                    fields["ungrounded"] = len(missing)
                if record.error is not None:
                    fields["error"] = record.error.code
                if self._capture_content:
                    fields |= {"arguments": redacted_value(record.arguments), "result": redacted_value(record.result)}
                return fields
            case events.RunStarted():
                return {"agent": event.agent.get("name"), "task_id": event.task.task_id}
            case events.RunFinished() | events.RunSuspended():
                return {"status": event.status.value}
            case events.RunFailed():
                return {"error": event.error.code}
            case events.ApprovalRequested(approval=approval):
                return {"approval_id": approval.id, "tool": approval.tool_name, "risk": approval.risk.value}
            case events.ApprovalDecided():
                return {"approval_id": event.approval_id, "status": event.status.value, "by": event.by}
            case events.MessageReceived():
                fields = {"iteration": event.iteration, "calls": len(event.calls), "tokens": event.usage.total_tokens}
                return {**fields, "text": redacted(event.text)} if self._capture_content else fields
            case events.CallStarted():
                return {"call_id": event.call_id, "tool": redacted(event.tool_name), "attempt": event.attempt}
            case _:
                return {}


_LOGGED: dict[type, tuple[int, str]] = {
    events.RunStarted: (logging.INFO, "run started"),
    events.RunResumed: (logging.INFO, "run resumed"),
    events.RunFinished: (logging.INFO, "run finished"),
    events.RunSuspended: (logging.INFO, "run suspended"),
    events.RunFailed: (logging.ERROR, "run failed"),
    events.CallFinished: (logging.INFO, "call finished"),
    events.ApprovalRequested: (logging.INFO, "approval requested"),
    events.ApprovalDecided: (logging.INFO, "approval decided"),
    events.MessageReceived: (logging.DEBUG, "model answered"),
    events.CallStarted: (logging.DEBUG, "call started"),
}


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": redacted(record.getMessage()),
        }
        line |= getattr(record, LOG_FIELDS, {})
        if record.exc_info:
            line["exception"] = redacted(self.formatException(record.exc_info))
        return safe_json(json.dumps(line, ensure_ascii=False, default=str))
