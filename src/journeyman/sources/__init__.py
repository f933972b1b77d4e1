"""Where tools come from besides the program. Each source opens, lists, watches and closes (``ToolSource``).

``ToolLibrary(tools, sources=[…])`` has the tools of its sources while it is open.
"""

from __future__ import annotations

from journeyman.sources.mcp import McpServer
from journeyman.sources.paths import ImportPaths
from journeyman.tools.sources import SourceProblem, ToolSource, UnusableTool

__all__ = ["ImportPaths", "McpServer", "SourceProblem", "ToolSource", "UnusableTool"]
