"""One attempt at running a tool's function, with a timeout that interrupts it. Knows no policy.

On timeout an asynchronous function is cancelled, a synchronous one interrupted in its thread, an isolated one killed
with its process. Whatever happens is returned as a value.
"""

from __future__ import annotations

import asyncio
import dis
import inspect
import logging
import os
import traceback
from collections.abc import Callable, Coroutine
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from types import CodeType, CoroutineType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from journeyman.core.calls import CallStatus, MissingSecretError, ToolContext
from journeyman.core.data import LARGE_TEXT, LOG_FIELDS
from journeyman.core.errors import ErrorCategory, ErrorInfo, OutcomeUnknownError, Severity, ToolError
from journeyman.execution.child import error_text
from journeyman.execution.outcome import PutAside, Refusal, Success, guided, refuse
from journeyman.execution.results import (
    MOST_BYTES,
    Budget,
    ResultTooLargeError,
    UnserialisableResultError,
    encodable,
    is_iterator,
    listed,
    measured_aside,
)
from journeyman.execution.threads import ThreadPool, wake
from journeyman.tools.library import AnyTool
from journeyman.tools.tool import FrozenArguments, awaited, collected, is_async

if TYPE_CHECKING:
    from journeyman.execution.processes import ProcessPool

logger = logging.getLogger("journeyman.execution")

MOST_ERROR_CHARS = 4_000
GRACE_SECONDS = 1.0
"""How long a cancelled coroutine may take to clean up before it is no longer waited for."""
_OURS = tuple(f"{Path(__file__).parents[1] / room}{os.sep}" for room in ("execution", "tools"))
"""Where the frames are that every call of a tool has above its own."""
_PASSED_ON = ("idempotency_key", "deadline", "correlation_id", "run_id", "call_id", "requested_at", "settings")
"""What of a call's context its own process gets as it is."""


class AttemptTimeoutError(Exception):
    """The attempt took longer than its timeout. Not TimeoutError, which tools raise themselves."""


class Invoker:
    """Holds the pools that blocking functions run in; the one of processes is made for the first isolated tool."""

    def __init__(self, *, threads: ThreadPool) -> None:
        self._threads = threads
        self._processes: ProcessPool | None = None

    async def attempt(
        self,
        tool: AnyTool,
        frozen: FrozenArguments,
        context: ToolContext,
        timeout: float,
        *,
        limit: int = MOST_BYTES,
        capture_content: bool = False,
    ) -> Success | Refusal:
        """Run the function once with these arguments. A result of more than ``limit`` bytes of JSON is an error.

        What an unexpected exception says is content.
        """
        try:
            value = await self._run(tool, frozen, context, timeout, limit)
            plain, size = await measured_aside(value, context.secrets, limit=limit)
            if tool.shorten is not None:
                shorter = await asyncio.to_thread(tool.shorten, plain) if size > LARGE_TEXT else tool.shorten(plain)
                plain, size = await measured_aside(shorter, context.secrets, limit=limit)
            return Success(plain, size=size)
        except ResultTooLargeError:
            return _too_large(tool, limit)
        except AttemptTimeoutError:
            return _timed_out(tool, timeout)
        except ToolError as error:
            return _tool_error(error.info, context)
        except OutcomeUnknownError as error:
            return _lost(tool, str(error))
        except UnserialisableResultError as error:
            return _unserialisable(tool, str(error), context)
        except Exception as error:
            return _failed(tool, error, context, capture_content=capture_content)

    async def words(
        self, tool: AnyTool, hook: Callable[..., Any], *given: Any, run_id: str, call_id: str, timeout: float
    ) -> str:
        """What a tool's ``describe`` or ``render`` says of a call, within a time limit; nothing where it goes wrong.

        It gets copies of arguments and results: a hook that changes them changes nothing of the call.
        """
        try:
            said = await run_with_timeout(self._hooked(hook, given, timeout), timeout)
            if not isinstance(said, str):
                raise TypeError(f"it gave {type(said).__name__} and not a text")
            return said
        except Exception as error:
            fields = {"run_id": run_id, "call_id": call_id, "tool": tool.name, "error": type(error).__name__}
            if hook is tool.describe:  # it may read secrets, which the error may hold
                logger.warning("a tool could not say what its call is about", extra={LOG_FIELDS: fields})
            else:
                shown = error if logger.isEnabledFor(logging.DEBUG) else None
                logger.warning("a tool could not render its result", exc_info=shown, extra={LOG_FIELDS: fields})
            return ""

    async def _hooked(self, hook: Callable[..., Any], given: tuple[Any, ...], timeout: float) -> Any:
        if is_async(hook):
            said: Any = hook(*await self._threads.run(lambda: _copied(given), timeout=timeout))
        else:
            said = await self._threads.run(lambda: hook(*_copied(given)), timeout=timeout)
        return await said if inspect.isawaitable(said) else said

    async def _run(
        self, tool: AnyTool, frozen: FrozenArguments, context: ToolContext, timeout: float, limit: int
    ) -> Any:
        try:
            if tool.isolation == "process":
                return await self._in_process(tool, frozen, context, timeout, limit)
            if tool.is_async:
                work = _coroutine(tool.invoke(frozen.values, context), limit)
                return _whole(work) if _never_waits(work.cr_code) else await run_with_timeout(work, timeout, context)
            try:
                value = await self._threads.run(lambda: _call_in_thread(tool, frozen, context, limit), timeout=timeout)
            except _RaisedTimeoutError as error:
                raise error.__cause__ or error from None
            except TimeoutError:
                raise AttemptTimeoutError from None
            awaitable = inspect.isawaitable(value) or inspect.isasyncgen(value)
            return await run_with_timeout(_coroutine(value, limit), timeout) if awaitable else value
        except (AttemptTimeoutError, asyncio.CancelledError):
            context.cancel()
            raise

    async def _in_process(
        self, tool: AnyTool, frozen: FrozenArguments, context: ToolContext, timeout: float, limit: int
    ) -> Any:
        from journeyman.execution.processes import (  # few programs isolate tools
            NoFreeProcessError,
            RemoteError,
            default_pool,
        )

        if self._processes is None:
            self._processes = default_pool()
        principal = context.principal
        fields = {
            "principal": None if principal is None else principal.model_dump(mode="json"),
            # A process of its own is for what is trusted less: it gets what it declared, and no other secret.
            "secrets": {name: value for name, value in context.secrets.unread() if name in tool.specification.secrets},
            **{name: getattr(context, name) for name in _PASSED_ON},
        }
        try:
            return await self._processes.run(
                tool.target, frozen.text, timeout=timeout, context=fields, on_progress=context.progress, limit=limit
            )
        except TimeoutError:
            raise AttemptTimeoutError from None
        except NoFreeProcessError as error:
            raise ToolError(
                "NO_FREE_PROCESS",
                f"{tool.name!r} did not run: {error}",
                retryable=True,
                category=ErrorCategory.SYSTEM_ERROR,
                recover_action="Try again later, or do something else first",
            ) from error
        except RemoteError as error:
            if error.type_name == "UnserialisableResult":
                raise UnserialisableResultError(error.message) from error
            if error.type_name == "ResultTooLarge":
                raise ResultTooLargeError(limit) from error
            raise


class _RaisedTimeoutError(Exception):
    """A TimeoutError that the tool itself raised, told apart from the thread pool's."""


def _call_in_thread(tool: AnyTool, frozen: FrozenArguments, context: ToolContext, limit: int) -> Any:
    try:
        value = tool.invoke(frozen.values, context)
        # A generator runs while it is read: here, where it blocks no event loop and the timeout holds.
        return listed(value, limit) if is_iterator(value) else value
    except TimeoutError as error:
        raise _RaisedTimeoutError(str(error)) from error
    except Exception:
        raise
    except BaseException as error:
        raise _exit_error(error) from error


@lru_cache(maxsize=1_000)
def _never_waits(code: CodeType) -> bool:
    """Whether a coroutine of this code runs to its end at once: it awaits nothing."""
    waiting = {"GET_AWAITABLE", "GET_AITER", "BEFORE_ASYNC_WITH", "SEND"}
    return not any(instruction.opname in waiting for instruction in dis.get_instructions(code))


def _whole(work: CoroutineType[Any, Any, Any]) -> Any:
    """Run a coroutine that awaits nothing. A task would cost two turns of the event loop, and could stop nothing."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    except asyncio.CancelledError:
        raise _OwnDoingError("CancelledError", "the tool cancelled itself") from None
    except (Exception, GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _exit_error(error) from error
    raise RuntimeError("it waited after all")


async def run_with_timeout(work: Coroutine[Any, Any, Any], timeout: float, context: ToolContext | None = None) -> Any:
    """Await with a timeout that also holds for a coroutine which swallows its cancellation.

    It begins anew where a person is being asked when it ends: how long people take is bounded where they are asked.
    """
    loop = asyncio.get_running_loop()
    # asyncio.wait() does the same for any number of tasks at twice the price, and this is paid for every call.
    done: asyncio.Future[None] = loop.create_future()
    task = loop.create_task(_signalling(work, done))
    timer = loop.call_later(timeout, wake, done)
    try:
        await done
        while context is not None and context.asking and not task.done():
            await asyncio.wait((task,), timeout=timeout)
        if not task.done():
            raise AttemptTimeoutError
    except (AttemptTimeoutError, asyncio.CancelledError):
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE_SECONDS)
        # Otherwise asyncio logs what it raises as never retrieved.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise
    finally:
        timer.cancel()
    if task.cancelled():
        raise _OwnDoingError("CancelledError", "the tool cancelled itself")
    return task.result()


async def _signalling(work: Coroutine[Any, Any, Any], done: asyncio.Future[None]) -> Any:
    try:
        return await work
    except (Exception, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, PutAside):
        raise
    except BaseException as error:
        # Left alone, asyncio would stop the whole program.
        raise _exit_error(error) from error
    finally:
        # Here and not in a callback of the task: the caller wakes one turn of the event loop earlier.
        wake(done)


class _OwnDoingError(Exception):
    """Something that a tool did to its call; told in our words."""

    def __init__(self, kind: str, told: str) -> None:
        self.kind = kind
        super().__init__(told)


def _exit_error(error: BaseException) -> _OwnDoingError:
    """What a tool raises to end the program ends its call instead."""
    return _OwnDoingError(type(error).__name__, "the tool tried to exit the program")


def _copied(given: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(deepcopy(item) if isinstance(item, dict | list) else item for item in given)


def _coroutine(value: Any, limit: int) -> CoroutineType[Any, Any, Any]:
    """An awaitable or asynchronous generator in the form that a task takes."""
    work: Any = value
    if not inspect.iscoroutine(value):
        work = collected(value, Budget(limit).take) if inspect.isasyncgen(value) else awaited(value)
    return cast("CoroutineType[Any, Any, Any]", work)


def _timed_out(tool: AnyTool, timeout: float) -> Refusal:
    safe = tool.specification.repeat_safe
    unsafe = "It may have taken effect: check before repeating"
    return refuse(
        CallStatus.TIMEOUT,
        "TOOL_TIMEOUT",
        f"{tool.name!r} did not answer within {timeout:g} s and was interrupted",
        category=ErrorCategory.TIMEOUT,
        severity=Severity.HIGH,
        retryable=safe,
        recover="Try again with less work, or another way" if safe else unsafe,
        guidance=f"Raise timeout_seconds of {tool.name!r} (at most 300) if it needs longer",
        unhealthy=True,
        retry=safe,
    )


def _too_large(tool: AnyTool, limit: int) -> Refusal:
    safe = tool.specification.repeat_safe
    return refuse(
        CallStatus.ERROR,
        "RESULT_TOO_LARGE",
        f"{tool.name!r} ran, but its result is larger than {limit:,} bytes and was not kept",
        category=ErrorCategory.TOOL_ERROR,
        recover="Ask for less: narrow the request, or read it in parts"
        if safe
        else "Do not repeat the call: it has run. Go on without its result",
        guidance=f"Make {tool.name!r} return less at a time, or raise Policy(max_result_bytes=…)",
    )


def _tool_error(info: ErrorInfo, context: ToolContext) -> Refusal:
    if len(info.message) > MOST_ERROR_CHARS:
        info = info.model_copy(update={"message": f"{info.message[:MOST_ERROR_CHARS]}…"})
    if context.secrets.were_read:
        masked = context.secrets.masked(info.model_dump(include={"code", "message", "recover_action", "user_guidance"}))
        info = info.model_copy(update=masked)
    unhealthy = info.category in (ErrorCategory.NETWORK, ErrorCategory.SYSTEM_ERROR, ErrorCategory.TIMEOUT)
    return Refusal(CallStatus.ERROR, guided(info), unhealthy=unhealthy, retry=info.retryable)


def _lost(tool: AnyTool, why: str) -> Refusal:
    """Whoever was asked went away. Where repeating is safe, that is a failure like any other of the network."""
    if not tool.specification.repeat_safe:
        return Refusal.outcome_unknown(tool.name, why)
    return refuse(
        CallStatus.ERROR,
        "CONNECTION_LOST",
        why,
        "Try again, or go on without it",
        category=ErrorCategory.NETWORK,
        severity=Severity.HIGH,
        retryable=True,
        unhealthy=True,
        retry=True,
    )


def _failed(tool: AnyTool, error: Exception, context: ToolContext, *, capture_content: bool) -> Refusal:
    kind, ours, theirs = _account_of(tool, error)
    network = isinstance(error, ConnectionError) or kind in ("gaierror", "ClientConnectionError")
    _log_traceback(tool, error, context, kind, capture_content=capture_content)
    safe = tool.specification.repeat_safe
    unsafe = "It may have taken effect before it failed: check before repeating it"
    # What an exception says may be anything that the tool has read, and is not for the model unless content is wanted.
    text = ours or (theirs if capture_content else "")
    message = f"Unexpected tool error: {kind}: {text}" if text else f"Unexpected tool error: {kind}"
    return refuse(
        CallStatus.ERROR,
        "TOOL_RAISED",
        encodable(context.secrets.mask(message)[:MOST_ERROR_CHARS]),
        category=ErrorCategory.NETWORK if network else ErrorCategory.TOOL_ERROR,
        severity=Severity.HIGH,
        retryable=safe,
        recover="Check the arguments, or try another way" if safe else unsafe,
        guidance=f"Tell whoever runs {tool.name!r}: --debug, or the log at debug level, shows where it failed",
        unhealthy=True,
        retry=safe,
    )


def _account_of(tool: AnyTool, error: Exception) -> tuple[str, str, str]:
    """An exception's class, what we have to say about it, and what it says itself."""
    kind, theirs = type(error).__name__, error_text(error)
    if isinstance(error, _OwnDoingError):
        return error.kind, theirs, ""
    if isinstance(error.__cause__, StopIteration):  # Python lets none out of a coroutine
        return StopIteration.__name__, "", error_text(error.__cause__)
    if isinstance(error, MissingSecretError):
        return kind, str(error.args[0]), ""
    if tool.isolation == "process":
        from journeyman.execution.processes import RemoteCrashError, RemoteError

        if isinstance(error, RemoteError):
            kind, theirs = error.type_name, error.message
            ours = isinstance(error, RemoteCrashError) or kind == MissingSecretError.__name__
            return (kind, theirs, "") if ours else (kind, "", theirs)
    return kind, "", theirs


def _log_traceback(tool: AnyTool, error: Exception, context: ToolContext, kind: str, *, capture_content: bool) -> None:
    """Where a tool failed, for its developer. What the exception says is content.

    Whoever sets our own logger to debug is that developer; a program that logs everything at debug need not be.
    """
    if not logger.isEnabledFor(logging.DEBUG):
        return
    developing = any(0 < each.level <= logging.DEBUG for each in (logger, logging.getLogger("journeyman")))
    frames = _from_tool_on(error.__traceback__)
    if capture_content or developing:
        lines = traceback.format_exception(type(error), error, frames)
    else:
        lines = ["Traceback (most recent call last):\n", *traceback.format_tb(frames), kind]
    fields = {"tool": tool.name, "run_id": context.run_id, "call_id": context.call_id, "error": kind}
    trace = context.secrets.mask("".join(lines)).rstrip()
    logger.debug("a tool raised an unexpected exception\n%s", trace, extra={LOG_FIELDS: fields})


def _from_tool_on(frames: TracebackType | None) -> TracebackType | None:
    """A traceback without our own frames above the tool's, which say nothing to its developer."""
    first = frames
    while first is not None and first.tb_frame.f_code.co_filename.startswith(_OURS):
        first = first.tb_next
    return first or frames


def _unserialisable(tool: AnyTool, detail: str, context: ToolContext) -> Refusal:
    shown = encodable(context.secrets.mask(detail)[:300])
    return refuse(
        CallStatus.ERROR,
        "UNSERIALISABLE_RESULT",
        f"{tool.name!r} ran, but its result cannot be turned into JSON ({shown})",
        category=ErrorCategory.TOOL_ERROR,
        severity=Severity.HIGH,
        recover="Do not repeat the call: it has run. Go on without its result, or say that it is unavailable",
        guidance=f"Make {tool.name!r} return text, numbers, lists, dicts, dataclasses or pydantic models",
    )
