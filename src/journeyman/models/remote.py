"""What the adapters of remote models share: when to ask again, and one client for each event loop."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Self, TypeAlias, TypeVar

from journeyman.core.errors import ModelError
from journeyman.core.protocols import Clock, Deltas, ModelRequest, ModelResponse

LONGEST_PAUSE = 30.0

logger = logging.getLogger(__name__)

Client = TypeVar("Client")


class AttemptError(Exception):
    """One attempt failed. ``wait`` is how long the server asks us to wait before the next one."""

    def __init__(self, error: ModelError, *, wait: float | None = None) -> None:
        self.error = error
        self.wait = wait
        super().__init__(str(error))


class AttemptDeltas:
    """Passes text on, and remembers whether a new attempt makes any of it void."""

    def __init__(self, deltas: Deltas) -> None:
        self._deltas = deltas
        self._sent = False

    def text(self, delta: str) -> None:
        self._sent = True
        self._deltas.text(delta)

    def restart(self, *, told: bool = False) -> None:
        if self._sent and not told:
            self._deltas.restart()
        self._sent = False


Attempt: TypeAlias = Callable[[AttemptDeltas | None, float | None], Awaitable[ModelResponse]]
"""Asks once: where streamed text goes (None: do not stream), and the seconds that are left (None: no limit)."""


async def with_retries(
    attempt: Attempt, request: ModelRequest, deltas: Deltas | None, *, retries: int, clock: Clock
) -> ModelResponse:
    """Ask, and ask again after errors that may pass, within the time that the run has left."""
    stream = None if deltas is None else AttemptDeltas(deltas)
    ends = None if request.timeout is None else clock.monotonic() + request.timeout
    retried, began = 0, clock.monotonic()
    while True:
        left = None if ends is None else ends - clock.monotonic()
        try:
            return await attempt(stream, left)
        except AttemptError as failed:
            left = None if ends is None else ends - clock.monotonic()
            pause = _pause(failed, retried, left=left) if retried < retries else None
            if pause is None:
                raise _counted(failed.error, retried + 1, clock.monotonic() - began) from None
            retried += 1
            code = failed.error.info.code
            logger.info("run %s: %s; asking again in %.1f s (%d)", request.run_id, code, pause, retried)
            if request.asked_again is not None:
                request.asked_again(failed.error.info.message, pause)
        if stream is not None:
            stream.restart(told=request.asked_again is not None)
        await clock.sleep(pause)


def _counted(error: ModelError, times: int, seconds: float) -> ModelError:
    """The error, with how often and how long the model was asked, where that was more than once."""
    if times == 1:
        return error
    about = error.info.model_dump(include={"code", "category", "retryable", "user_guidance"})
    return ModelError(message=f"{error.info.message}; asked {times} times in {seconds:.0f} s", **about)


def _pause(failed: AttemptError, retried: int, *, left: float | None) -> float | None:
    """How long to wait before asking again; None when that is no use."""
    if not failed.error.info.retryable:
        return None
    pause = failed.wait
    if pause is None:
        pause = 0.5 * 2**retried * random.uniform(0.75, 1.25)
    pause = min(pause, LONGEST_PAUSE)
    return pause if left is None or pause < left else None


class PerEventLoop(Generic[Client]):
    """A client for each event loop that asks for one: connections belong to the loop in which they were opened.

    A loop that is shut down, as ``asyncio.run`` does, closes its client.
    """

    def __init__(self, client: Callable[[], AbstractAsyncContextManager[Client]]) -> None:
        self._client = client
        self._open: dict[asyncio.AbstractEventLoop, tuple[Client, AsyncGenerator[Client]]] = {}

    async def get(self) -> Client:
        loop = asyncio.get_running_loop()
        if loop in self._open:
            return self._open[loop][0]
        for known in list(self._open):
            if known.is_closed():
                self._open.pop(known, None)
        holder = self._hold()
        client = await anext(holder)
        opened = self._open.setdefault(loop, (client, holder))
        if opened[1] is not holder:  # another task was quicker
            await holder.aclose()
        return opened[0]

    async def aclose(self) -> None:
        opened = self._open.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened[1].aclose()

    async def _hold(self) -> AsyncGenerator[Client]:
        """A generator, because an event loop that shuts down finishes its generators: so the client gets closed."""
        async with self._client() as client:
            yield client


class RemoteModel:
    """A model with connections. It may be used from several event loops."""

    _clients: PerEventLoop[Any]

    async def aclose(self) -> None:
        """Close the connections of this event loop. Asking again opens new ones."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
