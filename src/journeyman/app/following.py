"""Several runs followed at once, for a client that has one connection for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from journeyman.core.errors import JourneymanError
from journeyman.core.events import Event

if TYPE_CHECKING:
    from journeyman.app.handles import Handle

MOST_WAITING = 32
"""Batches of events kept for a reader who is slow; then the runs are read no further until it takes some."""


@dataclass(frozen=True, slots=True)
class News:
    """What one of the runs has to tell: events, or its end, or why it cannot go on here (which ends it too)."""

    run_id: str
    events: list[Event]
    ended: bool = False
    error: JourneymanError | None = None


async def follow(runs: Mapping[Handle, int]) -> AsyncGenerator[News, None]:
    """What happens in these runs after a fact of each, to the end of the last. Of each run all in order."""
    queue: asyncio.Queue[News | Exception] = asyncio.Queue(MOST_WAITING)

    async def read(handle: Handle, after: int) -> None:
        try:
            async with aclosing(handle.batches(after=after)) as batches:
                async for batch in batches:
                    await queue.put(News(handle.run_id, batch))
            await queue.put(News(handle.run_id, [], ended=True))
        except JourneymanError as error:
            await queue.put(News(handle.run_id, [], ended=True, error=error))
        except Exception as error:  # a fault of ours must not leave the reader waiting for ever
            await queue.put(error)

    readers = [asyncio.create_task(read(handle, after)) for handle, after in runs.items()]
    try:
        left = len(readers)
        while left:
            news = await queue.get()
            if isinstance(news, Exception):
                raise news
            left -= news.ended
            yield news
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
