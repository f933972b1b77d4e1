"""The composition root: the only room where concrete parts meet. Everything above it is a door.

Doors may import nothing but this room and ``core``; what they use of other rooms is handed on here, each name loaded
when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent as Agent
    from journeyman.app.direct import run as run
    from journeyman.app.direct import run_sync as run_sync
    from journeyman.app.direct import stream as stream
    from journeyman.gram import dump_tools as dump_tools
    from journeyman.models.resolve import explain_choice as explain_choice
    from journeyman.telemetry.logs import JsonFormatter as JsonFormatter
    from journeyman.tools.decorator import tool as tool
    from journeyman.tools.library import ToolLibrary as ToolLibrary
    from journeyman.tools.paths import ImportPathError as ImportPathError
    from journeyman.tools.paths import import_path as import_path
    from journeyman.tools.paths import split_path as split_path
    from journeyman.tools.tool import Tool as Tool

_HOMES = {
    "Agent": "agent.agent",
    "ImportPathError": "tools.paths",
    "JsonFormatter": "telemetry.logs",
    "Tool": "tools.tool",
    "ToolLibrary": "tools.library",
    "dump_tools": "gram",
    "explain_choice": "models.resolve",
    "import_path": "tools.paths",
    "run": "app.direct",
    "run_sync": "app.direct",
    "split_path": "tools.paths",
    "stream": "app.direct",
    "tool": "tools.decorator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'journeyman.app' has no attribute {name!r}")
    return getattr(import_module(f"journeyman.{_HOMES[name]}"), name)


def local_library(folder: Path) -> ToolLibrary:
    """Tools that look around in a folder, calculate and keep notes."""
    from journeyman.toolkits.local import LocalTools
    from journeyman.tools.library import ToolLibrary

    return ToolLibrary(LocalTools(folder, notes=folder / "journeyman-notes").tools())


def hello_library() -> ToolLibrary:
    """The tool of the Hello World agent."""
    from journeyman.toolkits.hello import say_hello
    from journeyman.tools.library import ToolLibrary

    return ToolLibrary([say_hello])
