"""Our library as an MCP server: tools under governance, runs as resources, agents as prompts.

``server`` answers requests, ``calls`` carries calls out and knows those that were made before, ``results``
translates, ``serving`` has the two transports. Needs the package ``mcp``; over HTTP also what ``doors.http``
needs.
"""

from __future__ import annotations

from journeyman.doors.mcp.server import Gateway
from journeyman.doors.mcp.serving import serve_http, serve_stdio

__all__ = ["Gateway", "serve_http", "serve_stdio"]
