"""Events as structured log records: ids, names, sizes, durations, statuses. No arguments, results or secrets.

Records go to the standard library's logger ``journeyman.run`` with their fields as attributes, so that any host can
format them; ``JsonFormatter`` writes one JSON object a line.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from journeyman.core.data import LOG_FIELDS
from journeyman.core.events import (
    ApprovalDecided,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    Event,
    MessageReceived,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    RunSuspended,
)

logger = logging.getLogger("journeyman.run")
# A library stays silent until its host says where logs go.
logging.getLogger("journeyman").addHandler(logging.NullHandler())


class LogListener:
    """``capture_content`` adds arguments, results and texts; off unless the operator says so."""

    def __init__(self, *, capture_content: bool = False) -> None:
        self._content = capture_content

    def __call__(self, event: Event) -> None:
        level = _LEVELS.get(type(event))
        if level is None:
            return
        if isinstance(event, CallFinished) and event.record.error is not None:
            level = logging.WARNING
        if logger.isEnabledFor(level):
            fields = {"run_id": event.run_id, "seq": event.seq, **self._fields(event)}
            # Made here, because Logger.log would search the stack for a caller who is always this line.
            record = logger.makeRecord(logger.name, level, __file__, 0, _SENTENCES[type(event)], (), None)
            setattr(record, LOG_FIELDS, fields)
            logger.handle(record)

    def _fields(self, event: Event) -> dict[str, Any]:
        match event:
            case CallFinished(record=record):
                fields: dict[str, Any] = {
                    "call_id": record.call_id,
                    "execution_id": record.execution_id,
                    "correlation_id": record.correlation_id,
                    "tool": record.tool_name,
                    "status": record.status.value,
                    "duration_ms": round(record.duration_ms, 3),
                    "attempts": record.attempts,
                    "cached": record.cached,
                }
                if record.error is not None:
                    fields["error"] = record.error.code
                if self._content:
                    fields |= {"arguments": record.arguments, "result": record.result}
                return fields
            case RunStarted():
                return {"agent": event.agent.get("name"), "task_id": event.task.task_id}
            case RunFinished() | RunSuspended():
                return {"status": event.status.value}
            case RunFailed():
                return {"error": event.error.code}
            case ApprovalRequested(approval=approval):
                return {"approval_id": approval.id, "tool": approval.tool_name, "risk": approval.risk.value}
            case ApprovalDecided():
                return {"approval_id": event.approval_id, "status": event.status.value, "by": event.by}
            case MessageReceived():
                text = {"text": event.text} if self._content else {}
                tokens = event.usage.total_tokens
                return {"iteration": event.iteration, "calls": len(event.calls), "tokens": tokens, **text}
            case CallStarted():
                return {"call_id": event.call_id, "tool": event.tool_name, "attempt": event.attempt}
            case _:
                return {}


_LEVELS: dict[type, int] = {
    RunStarted: logging.INFO,
    RunResumed: logging.INFO,
    RunFinished: logging.INFO,
    RunSuspended: logging.INFO,
    RunFailed: logging.ERROR,
    CallFinished: logging.INFO,
    ApprovalRequested: logging.INFO,
    ApprovalDecided: logging.INFO,
    MessageReceived: logging.DEBUG,
    CallStarted: logging.DEBUG,
}
_SENTENCES: dict[type, str] = {
    RunStarted: "run started",
    RunResumed: "run resumed",
    RunFinished: "run finished",
    RunSuspended: "run suspended",
    RunFailed: "run failed",
    CallFinished: "call finished",
    ApprovalRequested: "approval requested",
    ApprovalDecided: "approval decided",
    MessageReceived: "model answered",
    CallStarted: "call started",
}


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= getattr(record, LOG_FIELDS, {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
