"""Validate and freeze: the arguments as the one form that is approved, journalled and run."""

from __future__ import annotations

from typing import Any

from journeyman.core.calls import CallStatus
from journeyman.core.data import canonical_json, digest
from journeyman.core.errors import ErrorCategory, Severity
from journeyman.core.messages import ToolCall
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.execution.outcome import Refusal, refuse
from journeyman.tools.tool import ArgumentsError, FrozenArguments, Tool


def freeze(tool: Tool[..., Any], call: ToolCall, policy: Policy) -> FrozenArguments | Refusal:
    """Arguments that conform to the tool's schema, or a refusal that lists what is wrong with them."""
    if call.malformed is not None:
        return _invalid(tool, "MALFORMED_ARGUMENTS", f"the arguments are not a JSON object: {call.malformed[:200]!r}")
    try:
        text = canonical_json(call.arguments)
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > policy.max_argument_bytes:
            most = policy.max_argument_bytes
            return _invalid(
                tool, "ARGUMENTS_TOO_LARGE", f"the arguments have {size:,} bytes, at most {most:,} are accepted"
            )
        return tool.freeze(text, call.arguments)
    except ArgumentsError as error:
        return _invalid(tool, "INVALID_ARGUMENTS", str(error))
    except RecursionError:
        return _invalid(tool, "INVALID_ARGUMENTS", "the arguments are nested too deeply")
    except (ValueError, TypeError) as error:
        return _invalid(tool, "INVALID_ARGUMENTS", f"the arguments are not JSON: {error}")


def binding(tool: Tool[..., Any], frozen: FrozenArguments, principal: Principal | None) -> str:
    """What an approval and a cached answer are good for: this tool, version, arguments, principal."""
    who = "-" if principal is None else f"={principal.id}"
    return digest(tool.name, tool.specification.version, frozen.text, who)


def _invalid(tool: Tool[..., Any], code: str, message: str) -> Refusal:
    return refuse(
        CallStatus.ERROR,
        code,
        f"{tool.name!r} was not run: {message}",
        category=ErrorCategory.INVALID_INPUT,
        severity=Severity.LOW,
        retryable=True,
        recover="Call it again with arguments that conform to its schema",
    )
