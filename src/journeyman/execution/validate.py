"""The stages before risk is graded: find the tool, check permissions, validate and freeze the arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from journeyman.core.budgets import LARGE_TEXT
from journeyman.core.calls import CallStatus
from journeyman.core.data import canonical_json, digest
from journeyman.core.errors import ErrorCategory, Severity
from journeyman.core.messages import ToolCall
from journeyman.core.playbook import PLACEHOLDER_CLOSE, PLACEHOLDER_OPEN
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.specification import FIND_TOOLS
from journeyman.execution.outcome import Refusal, refuse
from journeyman.tools.library import AnyTool, nearest_names
from journeyman.tools.tool import ArgumentsError, FrozenArguments


def resolve(call: ToolCall, tools: Mapping[str, AnyTool], principal: Principal | None) -> AnyTool | Refusal:
    """The tool, if it is bound, enabled and permitted for this principal."""
    tool = tools.get(call.tool_name)
    if tool is None or not tool.specification.enabled:
        # Names of tools that the principal may not use are not told.
        known = [name for name, item in tools.items() if item.specification.enabled and not _missing(item, principal)]
        near = nearest_names(call.tool_name, known)
        message = f"there is no tool named {call.tool_name!r}" + (
            f"; the nearest are {', '.join(near)}" if near else ""
        )
        look = f"look for one with {FIND_TOOLS}, " if FIND_TOOLS in tools else ""
        recover = f"Call one of the tools you were given, {look}or answer without a tool"
        return refuse(CallStatus.ERROR, "UNKNOWN_TOOL", message, recover, category=ErrorCategory.INVALID_INPUT)
    if missing := _missing(tool, principal):
        who = "an anonymous caller" if principal is None else repr(principal.id)
        return refuse(
            CallStatus.DENIED,
            "NOT_PERMITTED",
            f"{tool.name!r} needs {', '.join(map(repr, missing))}, which {who} does not have",
            category=ErrorCategory.PERMISSION,
            recover="Do not call it again in this conversation; tell the user that the permission is missing",
            guidance=f"Give the principal the permission {missing[0]!r}",
        )
    return tool


def _missing(tool: AnyTool, principal: Principal | None) -> list[str]:
    return sorted(p for p in tool.specification.permissions if principal is None or not principal.may(p))


async def freeze(tool: AnyTool, call: ToolCall, policy: Policy) -> FrozenArguments | Refusal:
    """Arguments that conform to the tool's schema, or a refusal that lists what is wrong with them."""
    if call.malformed is not None:
        return _invalid(tool, "MALFORMED_ARGUMENTS", f"the arguments are not a JSON object: {call.malformed[:200]!r}")
    try:
        text = canonical_json(call.arguments)
        large, most = len(text) > LARGE_TEXT, policy.max_argument_bytes
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > most:
            message = f"the arguments have {size:,} bytes, at most {most:,} are accepted"
            return _invalid(tool, "ARGUMENTS_TOO_LARGE", message)
        # Checking takes long where there is much of it, and everybody else would wait.
        if large:
            return await asyncio.to_thread(tool.freeze, text, call.arguments)
        return tool.freeze(text, call.arguments)
    except ArgumentsError as error:
        return _invalid(tool, "INVALID_ARGUMENTS", str(error))
    except RecursionError:
        return _invalid(tool, "INVALID_ARGUMENTS", "the arguments are nested too deeply")
    except (ValueError, TypeError) as error:
        return _invalid(tool, "INVALID_ARGUMENTS", f"the arguments are not JSON: {error}")


def placeholder_refusal(tool: AnyTool, frozen: FrozenArguments) -> Refusal | None:
    """Why a call that copies a demonstration's placeholder is not run; None for any other."""
    if PLACEHOLDER_OPEN not in frozen.text and PLACEHOLDER_CLOSE not in frozen.text:
        return None
    copied = [name for name, value in frozen.arguments.items() if PLACEHOLDER_OPEN in canonical_json(value)]
    which = ", ".join(map(repr, copied)) or "an argument"
    return refuse(
        CallStatus.ERROR,
        "PLACEHOLDER_ARGUMENT",
        f"{tool.name!r} was not run: the value of {which} is a placeholder of an example, not a value of this task",
        category=ErrorCategory.INVALID_INPUT,
        severity=Severity.LOW,
        retryable=True,
        recover="Take the value from the user's request, or look it up with another tool first; then call it again",
    )


def _invalid(tool: AnyTool, code: str, message: str) -> Refusal:
    return refuse(
        CallStatus.ERROR,
        code,
        f"{tool.name!r} was not run: {message}",
        category=ErrorCategory.INVALID_INPUT,
        severity=Severity.LOW,
        retryable=True,
        recover="Call it again with arguments that conform to its schema",
    )


def binding(tool: AnyTool, frozen: FrozenArguments, principal: Principal | None) -> str:
    """What an approval and a cached result are valid for: this tool as it is, these arguments and this principal."""
    who = "-" if principal is None else f"={principal.id}"
    return digest(tool.digest, frozen.text, who)
