"""A source as a third party would write one: its tools change when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from journeyman import Tool, ToolSpecification


def made(name: str, result: Any = None, description: str = "Does something.") -> Tool[..., Any]:
    """A tool that was not made from a Python signature; it gives back what it is told to."""

    async def call(**_: Any) -> Any:
        return name if result is None else result

    return Tool.from_specification(ToolSpecification(name=name, description=description, read_only=True), call)


class Toy:
    """Its list is whatever was given last; an exception in its place is raised."""

    def __init__(self, name: str, *tools: Any, fails: Exception | None = None, slow: bool = False) -> None:
        self.name = name
        self.tools: Sequence[Any] | Exception = tools
        self.done: list[str] = []
        """What was called, in order."""
        self.watching, self.stopped, self.listed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._fails = fails
        self._slow = slow
        self._changes: asyncio.Queue[Exception | None] = asyncio.Queue()

    async def open(self) -> None:
        self.done.append("open")
        await asyncio.sleep(0)
        if self._fails is not None:
            raise self._fails
        if self._slow:
            await asyncio.Event().wait()

    async def list(self) -> Sequence[Tool[..., Any]]:
        self.done.append("list")
        self.listed.set()
        if isinstance(self.tools, Exception):
            raise self.tools
        return self.tools

    async def watch(self) -> AsyncIterator[None]:
        self.watching.set()
        try:
            while True:
                change = await self._changes.get()
                if change is not None:
                    raise change
                yield
        finally:
            self.done.append("unwatch")
            self.stopped.set()

    async def close(self) -> None:
        self.done.append("close")

    async def has(self, *tools: Any) -> None:
        """Change the list, and wait until the library has read it."""
        await self._change(tools)

    async def breaks(self, error: Exception) -> None:
        """Fail to list from now on, and wait until the library has noticed."""
        await self._change(error)

    async def stops(self, error: Exception) -> None:
        """Fail to watch, and wait until the library has noticed."""
        self._changes.put_nowait(error)
        await self.stopped.wait()

    async def _change(self, tools: Sequence[Any] | Exception) -> None:
        self.tools = tools
        self.listed.clear()
        self._changes.put_nowait(None)
        await self.listed.wait()
