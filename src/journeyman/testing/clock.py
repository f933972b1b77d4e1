"""A clock that tests move by hand."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

START = 1_700_000_000.0


class FakeClock:
    """Time stands still until somebody sleeps or advances it.

    ``sleep`` moves the time and returns at once; with ``manual=True`` it waits until ``advance`` has come so far.
    """

    def __init__(self, start: float = START, *, manual: bool = False) -> None:
        self.slept: list[float] = []
        """What was asked of ``sleep``, in order."""
        self._start = start
        self._passed = 0.0
        self._manual = manual
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def time(self) -> float:
        return self._start + self._passed

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if not self._manual:
            self.advance(seconds)
        if not self._manual or seconds <= 0:
            # Like the real one: a sleep always lets others run.
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + seconds, next(self._order), woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Let time pass and wake who has slept long enough, in order."""
        self._passed += max(0.0, seconds)
        while self._sleepers and self._sleepers[0][0] <= self._passed:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)
