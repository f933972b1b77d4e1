"""A database as the event loop sees it: writes are queued and committed many at a time, reads run beside them.

The work itself is done in threads, by functions over a ``Connection``; see ``line``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from journeyman.stores.connection import Connection, Driver, TransactionRunner
from journeyman.stores.writer import Job, Writer, resolve

T = TypeVar("T")

LINGER_SECONDS = 0.01
"""How long facts that nobody waits for may gather before they are committed together."""
READERS = 4


class Buffer(Protocol):
    """Something that gathers writes."""

    def hand_over(self) -> asyncio.Future[None] | None:
        """Queue what has gathered; the future is done when it is committed or could not be."""


class Database:
    """All writes of a process go through one thread, in the order they were queued."""

    def __init__(self, driver: Driver, *, patience: float) -> None:
        self._driver = driver
        self._patience = patience
        self._writer = Writer(TransactionRunner(driver, writes=True, patience=patience))
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="journeyman-read")
        self._reading = threading.local()
        self._lines: list[TransactionRunner] = []
        self._gathering: dict[Buffer, None] = {}
        self._handed_over: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._writer.start()

    async def close(self) -> None:
        """Commit what is queued and let go of every connection."""
        self._hand_over()
        if self._handed_over:
            await asyncio.wait(set(self._handed_over))
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._readers.shutdown()
        for line in self._lines:
            line.close()
        self._writer.stop()

    # --- writing

    async def write(self, work: Callable[[Connection], T], *, sync: bool = True) -> T:
        """Run ``work`` in a transaction; when this returns it is committed, and with ``sync`` survives power loss.

        Whoever stops waiting does not undo it.
        ``work`` may run more than once, each time in a transaction in which nothing of the time before remains.
        """
        self._hand_over()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.submit(work, sync=sync, done=partial(resolve, future))
        return await future

    def submit(
        self, work: Callable[[Connection], T], *, sync: bool, done: Callable[[T, BaseException | None], None]
    ) -> None:
        """Queue ``work`` and return at once; ``done`` is told the result or the error."""
        self._writer.put(Job(work, sync, asyncio.get_running_loop(), done))

    def soon(self, buffer: Buffer) -> None:
        """Have a buffer's writes committed in a moment, or with whatever is written or read before."""
        self._gathering[buffer] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._linger_over)

    def _linger_over(self) -> None:
        self._timer = None
        self._hand_over()

    def _hand_over(self) -> None:
        buffers = list(self._gathering)
        self._gathering.clear()
        for buffer in buffers:
            if (future := buffer.hand_over()) is not None:
                self._handed_over.add(future)
                future.add_done_callback(self._handed_over.discard)

    async def flush(self) -> None:
        """Return when everything written so far is committed; raises what kept it from being so."""
        self._hand_over()
        await asyncio.gather(*self._handed_over, self.write(_nothing, sync=False))

    # --- reading

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on one state of the database, in which everything written here before is to be seen."""
        self._hand_over()
        if self._handed_over:
            await asyncio.wait(set(self._handed_over))
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    def _read(self, work: Callable[[Connection], T]) -> T:
        line: TransactionRunner | None = getattr(self._reading, "line", None)
        if line is None:
            line = self._reading.line = TransactionRunner(self._driver, writes=False, patience=self._patience)
            self._lines.append(line)
        return line.run(_begin_reading, work)


def _begin_reading(connection: Connection) -> None:
    connection.begin_reading()


def _nothing(connection: Connection) -> None:
    return None
