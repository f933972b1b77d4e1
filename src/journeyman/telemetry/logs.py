"""Events as structured log records: ids, names, sizes, durations, statuses. No arguments, results or secrets.

Records go to the standard library's logger ``journeyman.run`` with their fields as attributes, so that any host can
format them; ``JsonFormatter`` writes one JSON object a line.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from journeyman.core.events import (
    ApprovalDecided,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    Event,
    MessageReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    RunSuspended,
)

logger = logging.getLogger("journeyman.run")
# A library stays silent until its host says where logs go.
logging.getLogger("journeyman").addHandler(logging.NullHandler())

FIELDS = "journeyman"
"""The attribute of a log record that holds its fields."""


class LogListener:
    """One per run. ``capture_content`` adds arguments, results and texts; off unless the operator says so."""

    def __init__(self, *, capture_content: bool = False) -> None:
        self._content = capture_content

    def __call__(self, event: Event) -> None:
        match event:
            case CallFinished(record=record):
                level = logging.INFO if record.error is None else logging.WARNING
                if logger.isEnabledFor(level):
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
                    _log(level, "call finished", event, fields)
            case RunStarted():
                _log(
                    logging.INFO,
                    "run started",
                    event,
                    {"agent": event.agent.get("name"), "task_id": event.task.task_id},
                )
            case RunFinished():
                _log(logging.INFO, "run finished", event, {"status": event.status.value})
            case RunFailed():
                _log(logging.ERROR, "run failed", event, {"error": event.error.code})
            case RunSuspended():
                _log(logging.INFO, "run suspended", event, {"status": event.status.value})
            case ApprovalRequested(approval=approval):
                fields = {"approval_id": approval.id, "tool": approval.tool_name, "risk": approval.risk.value}
                _log(logging.INFO, "approval requested", event, fields)
            case ApprovalDecided():
                fields = {"approval_id": event.approval_id, "status": event.status.value, "by": event.by}
                _log(logging.INFO, "approval decided", event, fields)
            case MessageReceived() if logger.isEnabledFor(logging.DEBUG):
                fields = {"iteration": event.iteration, "calls": len(event.calls), "tokens": event.usage.total_tokens}
                if self._content:
                    fields["text"] = event.text
                _log(logging.DEBUG, "model answered", event, fields)
            case CallStarted() if logger.isEnabledFor(logging.DEBUG):
                fields = {"call_id": event.call_id, "tool": event.tool_name, "attempt": event.attempt}
                _log(logging.DEBUG, "call started", event, fields)
            case _:
                pass


def _log(level: int, message: str, event: Event, fields: dict[str, Any]) -> None:
    logger.log(level, message, extra={FIELDS: {"run_id": event.run_id, "seq": event.seq, **fields}})


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= getattr(record, FIELDS, {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
