"""A pool of threads for synchronous tools, in which a hanging function does not keep its slot.

The standard library's executor counts a hung thread for ever and waits for it when the interpreter exits. Here a
function that times out is interrupted, loses its slot, and is never waited for.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from functools import cache
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Interrupt(BaseException):
    """Raised from outside in a thread whose function was abandoned. No ``except Exception`` catches it."""


class _State(Enum):
    WAITING = auto()
    RUNNING = auto()
    ENDED = auto()
    STOPPED = auto()


class _Job(Generic[T]):
    """One call of a function in a thread.

    The state decides every race between the thread and the caller. An interrupt is sent only to a running job and
    under its lock, so it reaches a thread that is still inside this job, or one that is about to end.
    """

    def __init__(self, function: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._function: Callable[[], T] | None = function
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._state = _State.WAITING
        self._thread = 0
        self._result: T
        self._error: BaseException | None = None

    def perform(self) -> bool:
        """Run the function, in the thread that calls. False means that this thread must end at once."""
        with self._lock:
            if self._state is _State.STOPPED:
                return True
            self._state = _State.RUNNING
            self._thread = threading.get_ident()
            function, self._function = self._function, None
        assert function is not None
        try:
            self._result = self._context.run(function)
        except BaseException as error:
            self._error = error
        with self._lock:
            if self._state is _State.STOPPED:
                return False
            self._state = _State.ENDED
        return True

    def stop(self) -> _State:
        """Abandon the function; returns the state it was in."""
        import ctypes  # takes milliseconds, and few programs ever need it

        with self._lock:
            before = self._state
            if before is _State.RUNNING:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(_Interrupt))
            if before is not _State.ENDED:
                self._state = _State.STOPPED
                self._function = None
            return before

    def deliver(self) -> None:
        """Wake the caller, from the thread that ran the function."""
        with suppress(RuntimeError):  # its event loop was closed meanwhile
            self._loop.call_soon_threadsafe(wake, self.future)

    def take(self) -> T:
        """Return what the function returned, or raise what it raised."""
        error, self._error = self._error, None
        if error is None:
            return self._result
        try:
            if isinstance(error, (StopIteration, asyncio.CancelledError)):
                name = type(error).__name__
                raise RuntimeError(f"a tool raised {name}, which would be mistaken for the event loop's own") from error
            raise error
        finally:
            del error  # otherwise this frame and the traceback would keep each other alive


_Inbox = SimpleQueue["_Job[Any] | None"]


class Slots:
    """So many may work at once; the others wait, first come first served. Serves any number of event loops."""

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self._free = size
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            with self._lock:
                waits = waiter in self._waiting
                if waits:
                    self._waiting.remove(waiter)
            if not waits:
                self.give_back()  # it was given at this very moment, and is not wanted any more
            raise

    def give_back(self) -> None:
        with self._lock:
            self._free += 1
            if self._free > 0:
                self._wake(1)

    def open(self) -> None:
        """Let all who wait through: what they wait for was closed, which they find out and give their slots back."""
        with self._lock:
            self._wake(len(self._waiting))

    def _wake(self, count: int) -> None:
        while self._waiting and count:
            waiter = self._waiting.popleft()
            with suppress(RuntimeError):  # its loop was closed: nobody waits there
                waiter.get_loop().call_soon_threadsafe(wake, waiter)
                self._free -= 1
                count -= 1


class ThreadPool:
    """Runs at most ``limit`` blocking functions at once, for any number of event loops.

    Threads are daemons, started when needed and reused. Close a pool that you made: idle threads never end otherwise.
    """

    def __init__(self, *, limit: int = 64) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit!r}")
        self._slots = Slots(limit)
        self._lock = threading.Lock()
        self._idle: list[_Inbox] = []
        self._closed = False
        self._names = itertools.count(1)

    async def run(self, function: Callable[[], T], *, timeout: float | None) -> T:
        """Call the function in a thread, with a copy of the caller's context variables.

        Raises TimeoutError when it takes longer than ``timeout`` seconds; waiting for a free slot does not count.
        On timeout and on cancellation the thread is interrupted: a loop in Python stops, a call stuck in C goes on.
        Either way it no longer holds a slot and its late result is dropped. A function that ends in the very moment
        of its timeout counts as ended.
        """
        await self._slots.take()
        loop = asyncio.get_running_loop()
        job = _Job(function, loop)
        self._hand_over(job)
        timer = None if timeout is None else loop.call_later(timeout, self._expire, job, timeout)
        try:
            await job.future
        except BaseException:
            self._stop(job)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return job.take()

    def close(self) -> None:
        """End the idle threads, and the busy ones as soon as their function returns. Does not wait."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)
        self._slots.open()

    def _hand_over(self, job: _Job[Any]) -> None:
        with self._lock:
            closed = self._closed
            inbox = self._idle.pop() if self._idle else None
        try:
            if closed:
                raise RuntimeError("this thread pool is closed; make a new one to run more tools")
            if inbox is None:
                inbox = SimpleQueue()
                name = f"journeyman-tool-{next(self._names)}"
                threading.Thread(target=self._work, args=(inbox,), name=name, daemon=True).start()
        except BaseException:
            self._slots.give_back()
            raise
        inbox.put(job)

    def _work(self, inbox: _Inbox) -> None:
        """The main loop of one thread."""
        try:
            while (job := inbox.get()) is not None:
                if not job.perform():
                    return
                with self._lock:
                    closed = self._closed
                    if not closed:
                        self._idle.append(inbox)
                self._slots.give_back()
                job.deliver()
                if closed:
                    return
                del job  # an idle thread must not keep the last result alive
        except _Interrupt:
            return

    def _stop(self, job: _Job[Any]) -> bool:
        """Abandon a job; False if it had ended. The slot of one that has not begun is freed by its thread."""
        before = job.stop()
        if before is _State.RUNNING:
            self._slots.give_back()
        return before in (_State.WAITING, _State.RUNNING)

    def _expire(self, job: _Job[Any], timeout: float) -> None:
        if self._stop(job) and not job.future.done():
            job.future.set_exception(TimeoutError(f"not finished after {timeout:g} s; the thread was interrupted"))


def wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def once_in_a_process(made: Callable[[], T]) -> Callable[[], T]:
    """The same one each time, made at first. A fork makes its own: what its parent has started is the parent's."""
    kept = cache(made)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=kept.cache_clear)
    return kept


default_pool = once_in_a_process(ThreadPool)
"""The pool that all runs of this process share."""
