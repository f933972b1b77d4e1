"""What a call came to in the tool's own words, for people. The model gets the result as it is."""

from __future__ import annotations

import logging

from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import LOG_FIELDS
from journeyman.execution.invoke import Invoker
from journeyman.execution.results import encodable
from journeyman.tools.library import AnyTool

logger = logging.getLogger("journeyman.execution")

RENDER_SECONDS = 1.0
"""How long a tool may take to say what a call came to."""
MOST_CHARS = 20_000
"""Of what it says."""


async def own_words(tool: AnyTool | None, record: ToolCallRecord, invoker: Invoker, *, run_id: str) -> str:
    """What the tool's ``render`` says of a call that succeeded; nothing where it has none, or something goes wrong.

    A result that is kept apart from its record is not read back for this.
    """
    if tool is None or tool.render is None or record.status is not CallStatus.SUCCESS or record.artifact is not None:
        return ""
    try:
        said = await invoker.hook(tool.render, (record.arguments, record.result), RENDER_SECONDS)
        if not isinstance(said, str):
            raise TypeError(f"render gave {type(said).__name__} and not a text")
        return encodable(said.strip()[:MOST_CHARS])
    except Exception as error:
        fields = {"run_id": run_id, "call_id": record.call_id, "tool": tool.name, "error": type(error).__name__}
        logger.warning("a tool could not render its result", exc_info=_in_debug(error), extra={LOG_FIELDS: fields})
        return ""


def _in_debug(error: Exception) -> Exception | None:
    return error if logger.isEnabledFor(logging.DEBUG) else None
