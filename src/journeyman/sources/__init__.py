"""Where tools come from besides the program. Each source opens, lists, watches and closes (``ToolSource``).

``ToolLibrary(tools, sources=[…])`` has the tools of its sources while it is open; ``Transformed`` tells them otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from journeyman.sources.mcp import McpServer
from journeyman.sources.openapi import OpenApi
from journeyman.tools.library import ToolLibrary
from journeyman.tools.sources import SourceProblem, ToolSource, UnusableTool
from journeyman.tools.tool import Tool
from journeyman.tools.transforming import Transformed, transformed

__all__ = ["ImportPaths", "McpServer", "OpenApi", "SourceProblem", "ToolSource", "Transformed", "UnusableTool"]
__all__ += ["transformed"]


class ImportPaths:
    """The tools, functions and libraries at some import paths. What was imported does not change while it is open."""

    def __init__(self, paths: Iterable[str], *, name: str = "imports") -> None:
        self.name = name
        self._paths = tuple(paths)
        self._tools: tuple[Tool[..., Any], ...] = ()

    async def open(self) -> None:
        """Import everything. Raises ToolDefinitionError, which lists every path that cannot be used."""
        self._tools = tuple(ToolLibrary.from_paths(self._paths))

    async def list(self) -> Sequence[Tool[..., Any]]:
        return self._tools

    async def watch(self) -> AsyncIterator[None]:
        """Ends at once: nothing changes."""
        return
        yield

    async def close(self) -> None:
        self._tools = ()
