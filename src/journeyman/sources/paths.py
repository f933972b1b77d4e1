"""Tools that configuration names by their import paths, ``module:function``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from journeyman.tools.library import ToolLibrary
from journeyman.tools.tool import Tool


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
