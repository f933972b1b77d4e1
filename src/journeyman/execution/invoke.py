"""One attempt at running a tool's function, with a timeout that interrupts it. Knows no policy.

On timeout an asynchronous function is cancelled, a synchronous one interrupted in its thread, an isolated one killed
with its process. Whatever happens is returned as a value.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any

from journeyman.core.calls import CallStatus
from journeyman.core.context import ToolContext
from journeyman.core.errors import ErrorCategory, ErrorInfo, Severity, ToolError
from journeyman.execution.child import error_text
from journeyman.execution.outcome import Refusal, Success, refuse
from journeyman.execution.results import UnserialisableResultError, encodable, json_value
from journeyman.execution.threads import ThreadPool, wake
from journeyman.tools.library import AnyTool
from journeyman.tools.tool import FrozenArguments, collected

if TYPE_CHECKING:
    from journeyman.execution.processes import ProcessPool

GRACE_SECONDS = 1.0
"""How long a cancelled coroutine may take to clean up before it is no longer waited for."""
_PASSED_ON = ("idempotency_key", "deadline", "correlation_id", "run_id", "call_id", "requested_at")
"""What of a call's context its own process gets as it is."""


class AttemptTimeoutError(Exception):
    """The attempt took longer than its timeout. Not TimeoutError, which tools raise themselves."""


class Invoker:
    """Holds the pools that blocking functions run in; the one of processes is made for the first isolated tool."""

    def __init__(self, *, threads: ThreadPool) -> None:
        self._threads = threads
        self._processes: ProcessPool | None = None

    async def attempt(
        self, tool: AnyTool, frozen: FrozenArguments, context: ToolContext, timeout: float
    ) -> Success | Refusal:
        """Run the function once with these arguments."""
        try:
            value = await self._run(tool, frozen, context, timeout)
            return Success(json_value(value, context.secrets))
        except AttemptTimeoutError:
            return _timed_out(tool, timeout)
        except ToolError as error:
            return _tool_error(error.info, context)
        except UnserialisableResultError as error:
            return _unserialisable(tool, str(error), context)
        except Exception as error:
            return _failed(tool, error, context)

    async def _run(self, tool: AnyTool, frozen: FrozenArguments, context: ToolContext, timeout: float) -> Any:
        try:
            if tool.isolation == "process":
                return await self._in_process(tool, frozen, context, timeout)
            if tool.is_async:
                return await run_with_timeout(_coroutine(tool.invoke(frozen.values, context)), timeout)
            try:
                value = await self._threads.run(lambda: _call_in_thread(tool, frozen, context), timeout=timeout)
            except _RaisedTimeoutError as error:
                raise RuntimeError(f"TimeoutError: {error}") from error
            except TimeoutError:
                raise AttemptTimeoutError from None
            awaitable = inspect.isawaitable(value) or inspect.isasyncgen(value)
            return await run_with_timeout(_coroutine(value), timeout) if awaitable else value
        except (AttemptTimeoutError, asyncio.CancelledError):
            context.cancel()
            raise

    async def _in_process(self, tool: AnyTool, frozen: FrozenArguments, context: ToolContext, timeout: float) -> Any:
        from journeyman.execution.processes import ProcessPool, RemoteError  # few programs isolate tools

        if self._processes is None:
            self._processes = ProcessPool()
        principal = context.principal
        fields = {
            "principal": None if principal is None else principal.model_dump(mode="json"),
            "secrets": dict(context.secrets) if tool.schema.context_parameter else {},
            **{name: getattr(context, name) for name in _PASSED_ON},
        }
        try:
            return await self._processes.run(
                tool.target, frozen.text, timeout=timeout, context=fields, on_progress=context.progress
            )
        except TimeoutError:
            raise AttemptTimeoutError from None
        except RemoteError as error:
            if error.type_name == "UnserialisableResult":
                raise UnserialisableResultError(error.message) from error
            raise


class _RaisedTimeoutError(Exception):
    """A TimeoutError that the tool itself raised, told apart from the thread pool's."""


def _call_in_thread(tool: AnyTool, frozen: FrozenArguments, context: ToolContext) -> Any:
    try:
        value = tool.invoke(frozen.values, context)
        # A generator runs while it is read: here, where it blocks no event loop and the timeout holds.
        return list(value) if inspect.isgenerator(value) else value
    except TimeoutError as error:
        raise _RaisedTimeoutError(str(error)) from error
    except Exception:
        raise
    except BaseException as error:
        raise _exit_error(error) from error


async def run_with_timeout(work: Coroutine[Any, Any, Any], timeout: float) -> Any:
    """Await with a timeout that also holds for a coroutine which swallows its cancellation."""
    loop = asyncio.get_running_loop()
    # asyncio.wait() does the same for any number of tasks at twice the price, and this is paid for every call.
    done: asyncio.Future[None] = loop.create_future()
    task = loop.create_task(_signalling(work, done))
    timer = loop.call_later(timeout, wake, done)
    try:
        await done
        if not task.done():
            raise AttemptTimeoutError
    except (AttemptTimeoutError, asyncio.CancelledError):
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE_SECONDS)
        task.add_done_callback(_retrieve_exception)
        raise
    finally:
        timer.cancel()
    if task.cancelled():
        raise RuntimeError("the tool cancelled itself")
    return task.result()


async def _signalling(work: Coroutine[Any, Any, Any], done: asyncio.Future[None]) -> Any:
    try:
        return await work
    except (Exception, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Left alone, asyncio would stop the whole program.
        raise _exit_error(error) from error
    finally:
        # Here and not in a callback of the task: the caller wakes one turn of the event loop earlier.
        wake(done)


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Otherwise asyncio logs it as never retrieved."""
    if not task.cancelled():
        task.exception()


def _exit_error(error: BaseException) -> RuntimeError:
    """What a tool raises to end the program ends its call instead."""
    return RuntimeError(f"the tool tried to exit the program ({type(error).__name__}: {error_text(error)})")


def _coroutine(value: Any) -> Coroutine[Any, Any, Any]:
    """An awaitable or asynchronous generator in the form that a task takes."""
    if inspect.iscoroutine(value):
        return value
    return collected(value) if inspect.isasyncgen(value) else awaited(value)


async def awaited(value: Awaitable[Any]) -> Any:
    return await value


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


def _tool_error(info: ErrorInfo, context: ToolContext) -> Refusal:
    if context.secrets.were_read:
        masked = context.secrets.masked(info.model_dump(include={"code", "message", "recover_action", "user_guidance"}))
        info = info.model_copy(update=masked)
    unhealthy = info.category in (ErrorCategory.NETWORK, ErrorCategory.SYSTEM_ERROR, ErrorCategory.TIMEOUT)
    return Refusal(CallStatus.ERROR, info, unhealthy=unhealthy, retry=info.retryable)


def _failed(tool: AnyTool, error: Exception, context: ToolContext) -> Refusal:
    kind = type(error).__name__
    network = isinstance(error, ConnectionError) or kind in ("gaierror", "ClientConnectionError")
    message = error_text(error)
    if tool.isolation == "process":
        from journeyman.execution.processes import RemoteError

        if isinstance(error, RemoteError):
            kind, message = error.type_name, error.message
    safe = tool.specification.repeat_safe
    unsafe = "It may have taken effect before it failed: check before repeating it"
    text = f"{kind}: {message}" if message else kind
    return refuse(
        CallStatus.ERROR,
        "TOOL_RAISED",
        encodable(context.secrets.mask(f"{tool.name!r} failed with {text}")[:4_000]),
        category=ErrorCategory.NETWORK if network else ErrorCategory.TOOL_ERROR,
        severity=Severity.HIGH,
        retryable=safe,
        recover="Check the arguments, or try another way" if safe else unsafe,
        unhealthy=True,
        retry=safe,
    )


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
