"""Synchronous functions in threads: fast, many at once, and given up when they hang."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from journeyman.execution import threads
from journeyman.execution.threads import ThreadPool, default_pool
from tests.waiting import WAIT_SECONDS


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    made = ThreadPool()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Whatever a thread would print on stderr when it dies; there must be nothing."""
    heard: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", heard.append)
    yield heard
    assert heard == []


class Spinner:
    """A function that never returns by itself, and tells when it has begun and when it was interrupted."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.stopped = threading.Event()
        self.thread = threading.current_thread()

    def __call__(self) -> None:
        self.thread = threading.current_thread()
        self.begun.set()
        try:
            while True:
                try:
                    time.sleep(0)
                except Exception:  # what careless tools do
                    continue
        finally:
            self.stopped.set()


async def reached(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, WAIT_SECONDS)


async def test_the_function_runs_in_another_thread_and_returns(pool: ThreadPool) -> None:
    assert await pool.run(threading.current_thread, timeout=WAIT_SECONDS) is not threading.main_thread()


async def test_a_thread_is_reused(pool: ThreadPool) -> None:
    used = {await pool.run(threading.get_ident, timeout=WAIT_SECONDS) for _ in range(20)}
    assert len(used) == 1


async def test_ten_blocking_functions_run_at_once(pool: ThreadPool) -> None:
    barrier = threading.Barrier(10)
    numbers = await asyncio.gather(*(pool.run(barrier.wait, timeout=WAIT_SECONDS) for _ in range(10)))
    assert sorted(numbers) == list(range(10))


async def test_context_variables_are_copied(pool: ThreadPool) -> None:
    variable = contextvars.ContextVar("variable", default="nothing")
    variable.set("caller's")

    def function() -> str:
        seen = variable.get()
        variable.set("tool's")
        return seen

    assert await pool.run(function, timeout=WAIT_SECONDS) == "caller's"
    assert variable.get() == "caller's"


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
async def test_an_exception_comes_back_as_the_same_object(pool: ThreadPool, kind: type[BaseException]) -> None:
    error = kind("mine")

    def failing_tool() -> None:
        raise error

    with pytest.raises(kind) as caught:
        await pool.run(failing_tool, timeout=WAIT_SECONDS)
    assert caught.value is error
    assert caught.traceback[-1].name == "failing_tool"


@pytest.mark.parametrize("kind", [StopIteration, asyncio.CancelledError])
async def test_an_exception_that_asyncio_would_misread_is_wrapped(pool: ThreadPool, kind: type[BaseException]) -> None:
    def function() -> None:
        raise kind

    with pytest.raises(RuntimeError, match=kind.__name__) as caught:
        await pool.run(function, timeout=WAIT_SECONDS)
    assert isinstance(caught.value.__cause__, kind)


async def test_a_hanging_loop_is_interrupted_and_its_thread_ends(pool: ThreadPool) -> None:
    spinner = Spinner()
    with pytest.raises(TimeoutError, match=r"not finished after 0\.3 s"):
        await pool.run(spinner, timeout=0.3)
    await reached(spinner.stopped)
    await asyncio.to_thread(spinner.thread.join, WAIT_SECONDS)
    assert not spinner.thread.is_alive()


async def test_cancelling_the_caller_interrupts_the_function(pool: ThreadPool) -> None:
    spinner = Spinner()
    task = asyncio.create_task(pool.run(spinner, timeout=None))
    await reached(spinner.begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await reached(spinner.stopped)


async def test_a_function_stuck_in_c_costs_no_slot_and_its_result_is_dropped() -> None:
    pool, stuck, release = ThreadPool(limit=1), threading.Event(), threading.Lock()
    release.acquire()
    thread: list[threading.Thread] = []

    def function() -> str:
        thread.append(threading.current_thread())
        stuck.set()
        release.acquire()
        return "too late"

    with pytest.raises(TimeoutError):
        await pool.run(function, timeout=0.3)
    await reached(stuck)
    assert await pool.run(lambda: "next", timeout=WAIT_SECONDS) == "next"
    release.release()
    await asyncio.to_thread(thread[0].join, WAIT_SECONDS)
    assert not thread[0].is_alive()
    pool.close()


async def test_an_interrupt_that_the_function_swallows_still_ends_its_thread(pool: ThreadPool) -> None:
    thread: list[threading.Thread] = []

    def function() -> str:
        thread.append(threading.current_thread())
        try:
            while True:
                time.sleep(0)
        except BaseException:
            return "I survived"

    with pytest.raises(TimeoutError):
        await pool.run(function, timeout=0.3)
    await asyncio.to_thread(thread[0].join, WAIT_SECONDS)
    assert not thread[0].is_alive()


class Gate:
    """A job's lock that holds the thread up when its function has returned and the job is not yet marked as ended."""

    def __init__(self) -> None:
        self.lock, self.arrived, self.opened = threading.Lock(), threading.Event(), threading.Event()
        self.passages: list[threading.Thread] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.passages.append(threading.current_thread())
            if len(self.passages) == 2:
                self.arrived.set()
                self.opened.wait(WAIT_SECONDS)
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


async def test_an_interrupt_that_comes_as_the_function_ends_is_silent_and_hits_nobody_else(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, ordinary = Gate(), threads._Job.__init__

    def gated(self: Any, *arguments: Any) -> None:
        ordinary(self, *arguments)
        self._lock = gate

    with monkeypatch.context() as patch:
        patch.setattr(threads._Job, "__init__", gated)
        task = asyncio.create_task(pool.run(threading.current_thread, timeout=None))
        await reached(gate.arrived)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    thread = gate.passages[0]
    assert await pool.run(threading.current_thread, timeout=WAIT_SECONDS) is not thread
    gate.opened.set()
    await asyncio.to_thread(thread.join, WAIT_SECONDS)
    assert not thread.is_alive()


async def test_cancelling_just_when_the_function_ends_never_disturbs_the_next(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    # Among so many interrupts one may land in a callback of the garbage collector, where Python reports and drops it.
    # Nothing but interrupts may be reported.
    dropped: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: dropped.append(report.exc_type.__name__))

    async def attempt(number: int) -> None:
        def function() -> None:
            loop.call_soon_threadsafe(task.cancel)
            for _ in range(number % 100 * 50):
                pass

        task = asyncio.create_task(pool.run(function, timeout=None))
        await asyncio.gather(task, return_exceptions=True)
        assert await pool.run(partial(int, number), timeout=None) == number

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(2000):
            await attempt(number)
    finally:
        sys.setswitchinterval(before)
    assert set(dropped) <= {"_Interrupt"}


async def test_cancelling_at_any_moment_leaves_the_pool_whole() -> None:
    pool = ThreadPool(limit=4)
    for number in range(300):
        tasks = [asyncio.create_task(pool.run(lambda: sum(range(500)), timeout=None)) for _ in range(8)]
        for _ in range(number % 7):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    barrier = threading.Barrier(4)
    await asyncio.gather(*(pool.run(barrier.wait, timeout=WAIT_SECONDS) for _ in range(4)))
    pool.close()


async def test_no_more_than_the_limit_run_at_once_and_the_rest_wait_their_turn() -> None:
    pool, go, order = ThreadPool(limit=2), threading.Event(), list[int]()
    begun = [threading.Event() for _ in range(5)]

    def function(number: int) -> None:
        order.append(number)
        begun[number].set()
        if number < 2:
            go.wait(WAIT_SECONDS)

    tasks = [asyncio.create_task(pool.run(partial(function, number), timeout=None)) for number in range(5)]
    await reached(begun[0])
    await reached(begun[1])
    assert len(order) == 2
    tasks[3].cancel()
    await asyncio.gather(tasks[3], return_exceptions=True)
    go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(order[:2]) == [0, 1]
    assert sorted(order[2:]) == [2, 4]
    pool.close()


async def test_those_who_wait_are_served_in_order() -> None:
    pool, order = ThreadPool(limit=1), list[int]()
    await asyncio.gather(*(pool.run(partial(order.append, number), timeout=None) for number in range(30)))
    assert order == list(range(30))
    pool.close()


async def test_waiting_for_a_slot_does_not_count_as_running() -> None:
    pool, hold = ThreadPool(limit=1), threading.Event()
    first = asyncio.create_task(pool.run(lambda: hold.wait(WAIT_SECONDS), timeout=None))
    second = asyncio.create_task(pool.run(lambda: "quick", timeout=1.0))
    done, _ = await asyncio.wait([second], timeout=1.2)
    assert not done
    hold.set()
    assert await second == "quick"
    assert await first
    pool.close()


def test_one_pool_serves_several_event_loops_at_once(pool: ThreadPool) -> None:
    barrier, results = threading.Barrier(3), list[int]()

    def program() -> None:
        results.append(asyncio.run(pool.run(barrier.wait, timeout=WAIT_SECONDS)))

    programs = [threading.Thread(target=program) for _ in range(3)]
    for thread in programs:
        thread.start()
    for thread in programs:
        thread.join(WAIT_SECONDS)
    assert sorted(results) == [0, 1, 2]


def test_a_loop_that_was_closed_meanwhile_disturbs_neither_thread_nor_slot() -> None:
    pool, go, begun = ThreadPool(limit=1), threading.Event(), threading.Event()

    def function() -> None:
        begun.set()
        go.wait(WAIT_SECONDS)

    loop = asyncio.new_event_loop()
    running = loop.create_task(pool.run(function, timeout=None))
    waiting = loop.create_task(pool.run(function, timeout=None))
    loop.run_until_complete(reached(begun))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    go.set()
    assert asyncio.run(pool.run(lambda: "fine", timeout=WAIT_SECONDS)) == "fine"
    for task in (running, waiting):
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # abandoned on purpose
    pool.close()


async def test_an_idle_thread_keeps_no_result_alive(pool: ThreadPool) -> None:
    class Result:
        pass

    result = await pool.run(Result, timeout=WAIT_SECONDS)
    await pool.run(lambda: None, timeout=WAIT_SECONDS)
    gone = weakref.ref(result)
    del result
    gc.collect()
    assert gone() is None


async def test_a_closed_pool_ends_its_threads_and_refuses_work() -> None:
    pool, hold, begun = ThreadPool(limit=2), threading.Event(), threading.Event()

    def function() -> threading.Thread:
        begun.set()
        hold.wait(WAIT_SECONDS)
        return threading.current_thread()

    idle = await pool.run(threading.current_thread, timeout=WAIT_SECONDS)
    tasks = [asyncio.create_task(pool.run(function, timeout=None)) for _ in range(2)]
    late = asyncio.create_task(pool.run(function, timeout=None))
    await reached(begun)
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        await late
    hold.set()
    for thread in [idle, *await asyncio.gather(*tasks)]:
        await asyncio.to_thread(thread.join, WAIT_SECONDS)
        assert not thread.is_alive()
    with pytest.raises(RuntimeError, match="closed"):
        await pool.run(function, timeout=None)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        ThreadPool(limit=0)


PROGRAM = """
import asyncio, threading
from journeyman.execution import threads
from journeyman.execution.threads import default_pool
async def main():
    begun = threading.Event()
    def hang():
        begun.set()
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    task = asyncio.create_task(default_pool().run(hang, timeout=0.3))
    try:
        await task
    except TimeoutError:
        print("given up", begun.is_set())
    await default_pool().run(lambda: None, timeout=None)
asyncio.run(main())
"""


def test_the_interpreter_ends_quietly_with_a_thread_still_stuck() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, timeout=WAIT_SECONDS
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "given up True\n", "")


def test_a_forked_process_gets_a_default_pool_that_works() -> None:
    asyncio.run(default_pool().run(lambda: None, timeout=WAIT_SECONDS))
    pid = os.fork()
    if pid == 0:
        os._exit(asyncio.run(default_pool().run(lambda: 42, timeout=WAIT_SECONDS)))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
