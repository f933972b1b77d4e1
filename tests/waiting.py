"""How long tests wait for one thing to happen, and how where there is no event to wait for."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

POLL_SECONDS = 0.02
WAIT_SECONDS = 120.0
"""Only what is broken takes so long, or a machine with many times too much to do. Less than the deadline of a test
(``timeout`` in pyproject.toml), so that a test can still say what it waited for."""


async def until(reached: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return when it is so; raises TimeoutError when it takes too long."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            answer = reached()
            if await answer if inspect.isawaitable(answer) else answer:
                return
            await asyncio.sleep(POLL_SECONDS)


def wait_until(reached: Callable[[], object]) -> None:
    """The same where there is no event loop."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(POLL_SECONDS)
