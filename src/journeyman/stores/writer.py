"""The thread through which all writes of a process go, with group commit. What is written is not its business."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from journeyman.core.errors import StoreError
from journeyman.stores.connection import Connection, TransactionRunner

MOST_TOGETHER = 200
"""Jobs to a transaction: enough to share a commit, few enough to be over soon."""

Outcome: TypeAlias = tuple["Job", Any, BaseException | None]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work and who waits for it."""

    work: Callable[[Connection], Any]
    sync: bool
    loop: asyncio.AbstractEventLoop
    done: Callable[[Any, BaseException | None], None]
    """Is told the result or the error, on the loop, in the jobs' order. A future would cost a turn of the loop."""


class Writer:
    """Takes everything queued, does it in one transaction, and tells the waiters in order.

    A job that fails on its own account harms no other: then each is given a transaction of its own. A fault of the
    database fails all jobs of the transaction with StoreError, and none of them was reported as committed.
    """

    def __init__(self, line: TransactionRunner) -> None:
        self._line = line
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="journeyman-write", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish what is queued, then end. Blocks."""
        self._jobs.put(None)
        self._thread.join()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def _work(self) -> None:
        following = self._jobs.get()
        while following is not None:
            batch = [following]
            # Only this thread takes jobs out: where there is one, get() returns at once.
            while len(batch) < MOST_TOGETHER and not self._jobs.empty():
                if (following := self._jobs.get()) is None:
                    break
                batch.append(following)
            _deliver(self._carry_out(batch))
            if following is not None:
                following = self._jobs.get()
        self._line.close()

    def _carry_out(self, batch: Sequence[Job]) -> list[Outcome]:
        sync = any(job.sync for job in batch)
        try:
            results = self._line.run(
                lambda connection: connection.begin(sync=sync),
                lambda connection: [job.work(connection) for job in batch],
            )
        except StoreError as error:
            return [(job, None, error) for job in batch]
        except BaseException as error:
            if len(batch) == 1:
                return [(batch[0], None, error)]
            return [outcome for job in batch for outcome in self._carry_out([job])]
        return [(job, result, None) for job, result in zip(batch, results, strict=True)]


def _deliver(outcomes: Sequence[Outcome]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Outcome]] = {}
    for outcome in outcomes:
        by_loop.setdefault(outcome[0].loop, []).append(outcome)
    for loop, theirs in by_loop.items():
        # A loop that is closed has nobody left who could wait.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(outcomes: Sequence[Outcome]) -> None:
    for job, result, error in outcomes:
        job.done(result, error)


def resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Give a future its end, unless whoever waited has stopped waiting."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        # Looked at, as far as asyncio is concerned: not everybody who may wait does.
        future.exception()
