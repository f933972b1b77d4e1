"""May this call be made at all: does the tool exist, is it switched on, is the principal allowed?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from journeyman.core.calls import CallStatus
from journeyman.core.errors import ErrorCategory
from journeyman.core.messages import ToolCall
from journeyman.core.principals import Principal
from journeyman.execution.outcome import Refusal, refuse
from journeyman.tools.library import nearest_names
from journeyman.tools.tool import Tool


def resolve(
    call: ToolCall, tools: Mapping[str, Tool[..., Any]], principal: Principal | None
) -> Tool[..., Any] | Refusal:
    """Bound, enabled, permitted for this principal?"""
    tool = tools.get(call.tool_name)
    if tool is None or not tool.specification.enabled:
        near = nearest_names(call.tool_name, [name for name, item in tools.items() if item.specification.enabled])
        return refuse(
            CallStatus.ERROR,
            "UNKNOWN_TOOL",
            f"there is no tool named {call.tool_name!r}" + (f"; the nearest are {', '.join(near)}" if near else ""),
            category=ErrorCategory.INVALID_INPUT,
            recover="Call one of the tools you were given, or answer without a tool",
        )
    missing = sorted(p for p in tool.specification.permissions if principal is None or not principal.may(p))
    if missing:
        who = "nobody in particular" if principal is None else repr(principal.id)
        return refuse(
            CallStatus.DENIED,
            "NOT_PERMITTED",
            f"{tool.name!r} needs {', '.join(map(repr, missing))}, which {who} does not have",
            category=ErrorCategory.PERMISSION,
            recover="Do not call it again in this conversation; tell the user that the permission is missing",
            guidance=f"Give the principal the permission {missing[0]!r}",
        )
    return tool
