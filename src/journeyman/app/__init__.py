"""The composition root: the only room where concrete parts meet. Everything above it is a door."""

from journeyman.app.direct import (
    Agent,
    JsonFormatter,
    Tool,
    ToolLibrary,
    dump_tools,
    explain_choice,
    hello_library,
    local_library,
    run,
    run_sync,
    stream,
    tool,
)

__all__ = [
    "Agent",
    "JsonFormatter",
    "Tool",
    "ToolLibrary",
    "dump_tools",
    "explain_choice",
    "hello_library",
    "local_library",
    "run",
    "run_sync",
    "stream",
    "tool",
]
