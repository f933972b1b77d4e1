"""Waiting for what another thread or process does, where there is no event to wait for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

POLL_SECONDS = 0.05


async def until(reached: Callable[[], bool | Awaitable[bool]], *, seconds: float = 120.0) -> None:
    """Return when it is so; raises TimeoutError when it takes too long."""
    async with asyncio.timeout(seconds):
        while True:
            answer = reached()
            if await answer if inspect.isawaitable(answer) else answer:
                return
            await asyncio.sleep(POLL_SECONDS)
