"""The tools we ship. Each toolkit is built from what it works on; running its tools is the execution room's job."""

from journeyman.core.errors import ErrorCategory, ToolError


def invalid(code: str, message: str, recover: str) -> ToolError:
    """The error for an argument that a tool cannot accept."""
    return ToolError(code, message, category=ErrorCategory.INVALID_INPUT, recover_action=recover)
