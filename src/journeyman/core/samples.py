"""One example of each entity that people write or read, for the JSON Schemas. A test validates every one of them."""

from __future__ import annotations

from typing import Any

_CALL = {"id": "call_1_1", "tool_name": "lookup_order", "arguments": {"order_id": "W-17"}}
_RECORD = {
    "execution_id": "exec_1",
    "call_id": "call_1_1",
    "tool_name": "lookup_order",
    "arguments": {"order_id": "W-17"},
    "status": "success",
    "result": {"order_id": "W-17", "status": "shipped"},
    "start_time": "2026-01-05T09:00:00Z",
    "end_time": "2026-01-05T09:00:00.120Z",
    "attempts": 1,
    "risk": "reversible",
}
_SPECIFICATION = {
    "name": "lookup_order",
    "description": "Look up an order. Use when the user names an order.",
    "parameters": {
        "type": "object",
        "properties": {"order_id": {"type": "string", "description": "The order's number, e.g. W-17."}},
        "required": ["order_id"],
        "additionalProperties": False,
    },
    "category": "orders",
    "risk": "reversible",
    "read_only": True,
    "permissions": ["orders:read"],
    "examples": [{"order_id": "W-17"}],
}
_STEP = {
    "iteration": 1,
    "thought": "Calls lookup_order.",
    "action": "call_tool",
    "calls": [_RECORD],
    "observation": '{"order_id": "W-17", "status": "shipped"}',
    "timestamp": 1767603600.0,
    "duration_ms": 130.5,
}
_TASK = {
    "id": "task_1",
    "title": "Buy milk",
    "status": "pending",
    "priority": "medium",
    "eta": "2026-01-06T18:00:00+01:00",
    "tags": ["home"],
    "created_at": "2026-01-05T09:00:00Z",
    "updated_at": "2026-01-05T09:00:00Z",
}

SAMPLES: dict[str, dict[str, Any]] = {
    "ToolSpecification": _SPECIFICATION,
    "ToolConfiguration": {
        "tool_name": "lookup_order",
        "timeout_seconds": 10,
        "rate_limits": {"per_minute": 20},
        "environment_overrides": {"development": {"enabled": False}},
    },
    "ToolCategory": {"name": "orders", "permissions": ["orders:read"]},
    "Agent": {
        "name": "support",
        "description": "Helps with orders",
        "model": "auto",
        "instruction": "Help with orders.",
        "tools": [_SPECIFICATION],
    },
    "Principal": {"id": "ada", "permissions": ["orders:read"]},
    "TaskInput": {"task_id": "task_w17", "description": "Where is W-17?", "domain": "orders", "max_iterations": 5},
    "Limits": {"iterations": 10, "seconds": 60},
    "Message": {"role": "function", "name": "lookup_order", "call_id": "call_1_1", "content": '{"status": "shipped"}'},
    "ToolCall": _CALL,
    "ToolCallRecord": _RECORD,
    "ErrorInfo": {
        "code": "ORDER_NOT_FOUND",
        "message": "No order 'W-404'",
        "category": "tool_error",
        "recover_action": "Ask the user for the number",
        "user_guidance": "Check the number on your invoice",
    },
    "ReasoningStep": _STEP,
    "AgentResponse": {
        "task_id": "task_w17",
        "run_id": "run_1",
        "status": "completed",
        "answer": "W-17 is shipped.",
        "reasoning": "Looked the order up.",
        "confidence": 0.9,
        "outcome": "achieved",
        "structured_trace": [
            _STEP,
            {
                "iteration": 2,
                "thought": "W-17 is shipped.",
                "action": "finish",
                "observation": "W-17 is shipped.",
                "timestamp": 1767603601.0,
                "duration_ms": 480.0,
            },
        ],
    },
    "UserIntent": {
        "intent_type": "fetch",
        "confidence": 0.8,
        "parameters": {"order_id": "W-17"},
        "suggested_tools": ["lookup_order"],
    },
    "ToolGapReport": {
        "missing_tools": ["a tool that reads stock prices"],
        "attempted_task": "Retrieve my stock portfolio performance",
        "existing_tools_checked": ["lookup_order"],
    },
    "Task": _TASK,
    "Attachment": {
        "id": "att_1",
        "task_id": "task_1",
        "type": "url",
        "reference": "https://example.com/milk",
        "title": "Which milk",
        "created_at": "2026-01-05T09:00:00Z",
        "updated_at": "2026-01-05T09:00:00Z",
    },
}
