"""The tools on offer: the task toolkit as it ships, and the clock. Nothing here is ever run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from journeyman import ToolSpecification
from journeyman.toolkits.local import LocalTools
from journeyman.toolkits.tasks.service import TaskService
from journeyman.toolkits.tasks.tools import task_tools

_NO_SERVICE = cast("TaskService", None)
_NOWHERE = Path("nowhere")

TOOLS: tuple[ToolSpecification, ...] = (
    *(made.specification for made in task_tools(_NO_SERVICE)),
    LocalTools(_NOWHERE, notes=_NOWHERE).get_current_time.specification,
)


def defaults(tools: Sequence[ToolSpecification]) -> dict[tuple[str, str], Any]:
    """The parameters' own defaults: to say them changes nothing."""
    return {
        (tool.name, name): schema["default"]
        for tool in tools
        for name, schema in tool.parameters.get("properties", {}).items()
        if schema.get("default") is not None
    }
