"""The tools we ship. Each toolkit is built from what it works on; running its tools is the execution room's job."""

from journeyman.core.errors import ErrorCategory, ToolError

LONGEST_MESSAGE = 4_000


def invalid(code: str, message: str, recover: str, *, guidance: str | None = None) -> ToolError:
    """The error for an argument that a tool cannot accept. ``recover`` is for the model, ``guidance`` for people."""
    # It may quote what was written, of any length.
    message = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
    return ToolError(
        code, message, category=ErrorCategory.INVALID_INPUT, recover_action=recover, user_guidance=guidance
    )
