"""A clock that tests move by hand."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

START = 1_700_000_000.0


class FakeClock:
    """Time passes only in ``sleep`` and ``advance``.

    ``sleep`` advances the time and returns at once; with ``manual=True`` it waits until ``advance`` has reached it.
    A store that is opened with it, or by an app that has it, goes by it instead of by its database's clock.
    """

    def __init__(self, start: float = START, *, manual: bool = False) -> None:
        self.slept: list[float] = []
        """The arguments of ``sleep``, in order."""
        self._start = start
        self._passed = 0.0
        self._manual = manual
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def time(self) -> float:
        return self._start + self._passed

    def database_time(self) -> float:
        """What a store asks instead of its database: no other clock has this."""
        return self.time()

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if not self._manual:
            self.advance(seconds)
        if not self._manual or seconds <= 0:
            # Like asyncio's: a sleep always lets other tasks run.
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + seconds, next(self._order), woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Let time pass and wake the sleepers that are due, in order."""
        self._passed += max(0.0, seconds)
        while self._sleepers and self._sleepers[0][0] <= self._passed:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)
