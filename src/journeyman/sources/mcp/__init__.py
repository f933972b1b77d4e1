"""Servers of the Model Context Protocol as sources of tools. The package ``mcp`` is imported when one is opened.

``server`` is the source; ``connection`` owns the link to the server and keeps it up; ``stdio`` and ``http`` are the two
kinds of links; ``guard`` holds a server to its budgets; ``tools`` and ``extras`` translate.
"""

from __future__ import annotations

from journeyman.sources.mcp.server import McpServer

__all__ = ["McpServer"]
