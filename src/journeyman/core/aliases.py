"""The names that the source designs give to our fields, in one place, and the short forms in which they write records.

Constructors and JSON take them; what is stored and shown has our own names only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from journeyman.core.data import new_id

NAMES: Mapping[str, Mapping[str, str]] = {
    "ToolSpecification": {
        **dict.fromkeys(
            ("typeSignature", "type_signature", "function_signature", "toolSpecTypeSignature"), "signature"
        ),
        "toolSpecName": "name",
        "toolSpecDescription": "description",
        "toolSpecSchema": "parameters",
    },
    "Agent": {
        "agentName": "name",
        "agentDescription": "description",
        "agentModel": "model",
        "agentInstruction": "instruction",
        "agentToolSpecs": "tools",
    },
    "ToolCallRecord": {
        "parameters": "arguments",
        "result_data": "result",
        "invocationToolName": "tool_name",
        "invocationArgs": "arguments",
    },
    "AgentResponse": {"responseContent": "answer", "responseToolsUsed": "tool_calls"},
    "TaskInput": {"user_request": "description"},
}
"""By entity: their name and ours."""


def renamed(entity: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields under our names. Raises ValueError where one is given under both."""
    names, found = NAMES.get(entity, {}), dict(data)
    for theirs in names.keys() & data.keys():
        if (ours := names[theirs]) in found:
            raise ValueError(f"{theirs}: is another name of {ours!r}, which is given as well")
        found[ours] = found.pop(theirs)
    return found


def specification_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """A specification; parameters may be written as one object parameter that says of itself that it is required."""
    fields = renamed("ToolSpecification", data)
    schema = fields.get("parameters")
    if isinstance(schema, dict) and isinstance(schema.get("required"), bool):
        fields["parameters"] = {name: value for name, value in schema.items() if name not in ("name", "required")}
    return fields


_FAILURES = {"error": "tool_error", "failed": "tool_error", "timeout": "timeout", "cancelled": "tool_error"}
_SLACK_FACTS = ("channel_id", "user_id", "thread_ts")


def task_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """A task; where in Slack it was said belongs to its metadata."""
    fields = renamed("TaskInput", data)
    if facts := {name: fields.pop(name) for name in _SLACK_FACTS if name in fields}:
        if (where := facts.get("channel_id")) is not None and not re.fullmatch(r"[CDG][A-Z0-9]{2,}", str(where)):
            raise ValueError(f"channel_id: must be the id of a channel such as C0789IJKL, got {where!r}")
        metadata = fields.get("metadata") or {}
        fields["metadata"] = {**metadata, "slack": {**metadata.get("slack", {}), **facts}}
    return fields


def record_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """A record from as little as a tool's name, a status (or ``success``) and a duration."""
    fields = renamed("ToolCallRecord", data)
    either = fields.pop("invocationResult", None)
    if isinstance(either, Mapping):  # a sum of two types, as its JSON has it
        name, side = ("error_message", "Left") if "Left" in either else ("result", "Right")
        fields |= {"success": side == "Right", name: either[side]}
    success = fields.pop("success", None)
    if "status" not in fields and success is not None:
        fields["status"] = "success" if success else "error"
    duration = fields.pop("duration_ms", None)
    if duration is not None and not (isinstance(duration, int | float) and 0 <= duration < float("inf")):
        raise ValueError(f"duration_ms: must be a number of 0 or more, got {duration!r}")
    short = "execution_id" not in fields
    fields.setdefault("execution_id", new_id("exec"))
    if "call_id" not in fields:
        fields["call_id"] = fields["execution_id"]
        fields.setdefault("attempts", 1)  # a record of others is of a call that ran
    began = fields.setdefault("start_time", datetime.now(UTC))
    if fields.get("end_time") is None:
        began = datetime.fromisoformat(began) if isinstance(began, str) else began
        fields["end_time"] = began + timedelta(milliseconds=duration or 0)
    message, category = fields.pop("error_message", None), fields.pop("error_category", None)
    status = str(fields.get("status", "")).lower()
    if message and status == "success":
        raise ValueError("error_message: a successful call has no error")
    if fields.get("error") is None and (message or category or short) and status in _FAILURES:
        kind = str(category or _FAILURES[status])
        said = message or f"the call ended as {status!r}, and why was not recorded"
        fields["error"] = {"code": kind.upper(), "message": said, "category": kind}
    return fields


def step_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """A step; one that is given ``tool_name`` and ``tool_args`` in the place of calls has that one call."""
    fields = dict(data)
    name, arguments = fields.pop("tool_name", None), fields.pop("tool_args", None)
    if not fields.get("calls") and fields.get("action") == "call_tool" and name is not None and arguments is not None:
        seen, began = fields.get("observation"), fields.get("timestamp")
        call = {"tool_name": name, "arguments": arguments, "duration_ms": fields.get("duration_ms")}
        call |= {"status": "pending"} if seen is None else {"status": "success", "result": seen}
        if began is not None:
            call["start_time"] = datetime.fromtimestamp(began, UTC) if isinstance(began, int | float) else began
        fields["calls"] = (call,)
    return fields


def response_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """A response from its answer, reasoning and confidence; calls without a trace become one step of it."""
    short = "responseContent" in data
    fields = renamed("AgentResponse", data)
    trace, calls = fields.get("structured_trace"), fields.pop("tool_calls", None)
    if fields.pop("iteration_limit_reached", False):
        fields.setdefault("limit_reached", "iterations")
    fields.setdefault("status", "limit_reached" if fields.get("limit_reached") else "completed")
    for name in ("task", "run"):
        fields.setdefault(f"{name}_id", new_id(name))
    trace_text = fields.pop("reasoning_trace", None)
    if trace_text or short:
        fields.setdefault("reasoning", trace_text or "Nothing was recorded of how it was found.")
    if short:
        fields.setdefault("confidence", 0.0)  # nothing vouches for it
    if calls and not trace:
        step = {"iteration": 1, "thought": "Calls tools.", "action": "call_tool", "calls": calls}
        last = {"iteration": 2, "thought": "Answers.", "action": "finish", "observation": fields.get("answer")}
        times = {"timestamp": datetime.now(UTC).timestamp(), "duration_ms": 0}
        fields["structured_trace"] = trace = (step | times, last | times)
    count = fields.pop("total_iterations", None)
    if count is not None and count != len(trace or ()):
        raise ValueError(f"total_iterations: {count} was given, and the trace has {len(trace or ())} steps")
    fields.pop("tools_used", None)
    return fields


def strategy_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """A bullet; its success rate follows from its counters, but one that cannot be a rate is refused."""
    fields = dict(data)
    rate = fields.pop("tool_success_rate", None)
    if rate is not None and not (isinstance(rate, int | float) and 0 <= rate <= 1):
        raise ValueError(f"tool_success_rate: must be between 0 and 1, got {rate!r}")
    return fields


READERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "ToolCallRecord": record_fields,
    "ReasoningStep": step_fields,
    "AgentResponse": response_fields,
    "ToolCallingStrategy": strategy_fields,
}
"""How derived entities are read where they do not come from a store."""
