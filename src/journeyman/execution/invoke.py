"""One attempt at running a tool's function, with a timeout that really interrupts. Knows no policy.

Asynchronous functions are cancelled, synchronous ones interrupted in their thread, isolated ones killed with their
process. Whatever happens comes back as a value.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

from journeyman.core.calls import CallStatus
from journeyman.core.context import ToolContext
from journeyman.core.errors import ErrorCategory, ErrorInfo, Severity, ToolError
from journeyman.execution.outcome import Refusal, Success
from journeyman.execution.processes import ProcessPool, RemoteCrash, RemoteException, RemoteToolError
from journeyman.execution.results import UnserialisableResultError, json_value, readable
from journeyman.execution.threads import ThreadPool
from journeyman.tools.tool import FrozenArguments, Tool, collected

GRACE_SECONDS = 1.0
"""How long a cancelled coroutine may take to clean up before it is left behind."""


class GaveUpError(Exception):
    """The attempt's time was over."""


class Invoker:
    """Holds the pools that blocking functions run on."""

    def __init__(self, *, threads: ThreadPool, processes: ProcessPool) -> None:
        self._threads = threads
        self._processes = processes

    async def attempt(
        self, tool: Tool[..., Any], frozen: FrozenArguments, context: ToolContext, timeout: float
    ) -> Success | Refusal:
        """Run the function once with these arguments."""
        try:
            value = await self._run(tool, frozen, context, timeout)
            return Success(json_value(value, context.secrets))
        except GaveUpError:
            return _timed_out(tool, timeout)
        except ToolError as error:
            return _raised_on_purpose(error.info, context)
        except RemoteToolError as error:
            return _raised_on_purpose(ErrorInfo.model_validate(error.info), context)
        except UnserialisableResultError as error:
            return _unserialisable(tool, str(error), context)
        except RemoteException as error:
            if error.type_name == "UnserialisableResult":
                return _unserialisable(tool, error.message, context)
            return _raised(tool, error.type_name, error.message, context, network=False)
        except RemoteCrash as error:
            return _raised(tool, "Crash", str(error), context, network=False)
        except Exception as error:
            return _raised(tool, type(error).__name__, _text(error), context, network=_is_network(error))

    async def _run(self, tool: Tool[..., Any], frozen: FrozenArguments, context: ToolContext, timeout: float) -> Any:
        try:
            if tool.isolation == "process":
                return await self._in_process(tool, frozen, context, timeout)
            if tool.is_async:
                return await within(_coroutine(tool.invoke(frozen.values, context)), timeout)
            try:
                value = await self._threads.run(lambda: _blocking(tool, frozen, context), timeout=timeout)
            except _RaisedTimeoutError as error:
                raise RuntimeError(f"TimeoutError: {error}") from error
            except TimeoutError:
                raise GaveUpError from None
            waits = inspect.isawaitable(value) or inspect.isasyncgen(value)
            return await within(_coroutine(value), timeout) if waits else value
        except (GaveUpError, asyncio.CancelledError):
            context.cancel()
            raise

    async def _in_process(
        self, tool: Tool[..., Any], frozen: FrozenArguments, context: ToolContext, timeout: float
    ) -> Any:
        principal = context.principal
        facts = {
            "principal": None if principal is None else principal.model_dump(mode="json"),
            "secrets": dict(context.secrets) if tool.schema.context_parameter else {},
            "idempotency_key": context.idempotency_key,
            "deadline": context.deadline,
            "correlation_id": context.correlation_id,
            "run_id": context.run_id,
            "call_id": context.call_id,
            "requested_at": context.requested_at,
        }
        try:
            return await self._processes.run(
                tool.target, frozen.text, timeout=timeout, context=facts, on_progress=context.progress
            )
        except TimeoutError:
            raise GaveUpError from None


class _RaisedTimeoutError(Exception):
    """A TimeoutError of the tool's own, kept apart from ours."""


def _blocking(tool: Tool[..., Any], frozen: FrozenArguments, context: ToolContext) -> Any:
    try:
        value = tool.invoke(frozen.values, context)
        # A generator runs while it is read: here, where it stalls nobody and the timeout holds.
        return list(value) if inspect.isgenerator(value) else value
    except TimeoutError as error:
        raise _RaisedTimeoutError(str(error)) from error
    except Exception:
        raise
    except BaseException as error:
        raise _no_exit(error) from error


async def within(work: Coroutine[Any, Any, Any], timeout: float) -> Any:
    """Await with a time limit that also holds for a coroutine which swallows its cancellation."""
    loop = asyncio.get_running_loop()
    # asyncio.wait() does the same for any number of tasks at twice the price, and this is paid for every call.
    over: asyncio.Future[None] = loop.create_future()
    task = loop.create_task(_guarded(work, over))
    timer = loop.call_later(timeout, _settle, over)
    try:
        await over
        if not task.done():
            raise GaveUpError
    except (GaveUpError, asyncio.CancelledError):
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE_SECONDS)
        task.add_done_callback(_drop)
        raise
    finally:
        timer.cancel()
    if task.cancelled():
        raise RuntimeError("the tool cancelled itself")
    return task.result()


async def _guarded(work: Coroutine[Any, Any, Any], over: asyncio.Future[None]) -> Any:
    try:
        return await work
    except (Exception, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Left alone, asyncio would stop the whole program.
        raise _no_exit(error) from error
    finally:
        # Here and not in a callback of the task: whoever waits is woken one turn of the event loop earlier.
        _settle(over)


def _no_exit(error: BaseException) -> RuntimeError:
    """What a tool raises to end the program ends its call instead."""
    return RuntimeError(f"the tool tried to exit the program ({type(error).__name__}: {_text(error)})")


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(the exception has no readable message)"


def _coroutine(value: Any) -> Coroutine[Any, Any, Any]:
    """Whatever must be awaited to its end, in the form that a task takes."""
    if inspect.iscoroutine(value):
        return value
    return collected(value) if inspect.isasyncgen(value) else _awaited(value)


async def _awaited(value: Any) -> Any:
    return await value


def _settle(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


def _drop(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


def _is_network(error: Exception) -> bool:
    return isinstance(error, ConnectionError) or type(error).__name__ in ("gaierror", "ClientConnectionError")


def _timed_out(tool: Tool[..., Any], timeout: float) -> Refusal:
    safe = tool.specification.repeat_safe
    advice = "Try again with less work, or another way" if safe else "It may have taken effect: check before repeating"
    info = ErrorInfo(
        code="TOOL_TIMEOUT",
        message=f"{tool.name!r} did not answer within {timeout:g} s and was interrupted",
        category=ErrorCategory.TIMEOUT,
        severity=Severity.HIGH,
        retryable=safe,
        recover_action=advice,
        user_guidance=f"Raise timeout_seconds of {tool.name!r} (at most 300) if it needs longer",
    )
    return Refusal(CallStatus.TIMEOUT, info, unhealthy=True, retry=safe)


def _raised_on_purpose(info: ErrorInfo, context: ToolContext) -> Refusal:
    if context.secrets.were_read:
        masked = context.secrets.masked(info.model_dump(include={"code", "message", "recover_action", "user_guidance"}))
        info = info.model_copy(update=masked)
    down = info.category in (ErrorCategory.NETWORK, ErrorCategory.SYSTEM_ERROR, ErrorCategory.TIMEOUT)
    return Refusal(CallStatus.ERROR, info, unhealthy=down, retry=info.retryable)


def _raised(tool: Tool[..., Any], kind: str, message: str, context: ToolContext, *, network: bool) -> Refusal:
    safe = tool.specification.repeat_safe
    text = f"{kind}: {message}" if message else kind
    info = ErrorInfo(
        code="TOOL_RAISED",
        message=readable(context.secrets.mask(f"{tool.name!r} failed with {text}")[:4_000]),
        category=ErrorCategory.NETWORK if network else ErrorCategory.TOOL_ERROR,
        severity=Severity.HIGH,
        retryable=safe,
        recover_action="Check the arguments, or try another way"
        if safe
        else "It may have taken effect before it failed: check before repeating it",
    )
    return Refusal(CallStatus.ERROR, info, unhealthy=True, retry=safe)


def _unserialisable(tool: Tool[..., Any], detail: str, context: ToolContext) -> Refusal:
    shown = readable(context.secrets.mask(detail)[:300])
    info = ErrorInfo(
        code="UNSERIALISABLE_RESULT",
        message=f"{tool.name!r} ran, but its result cannot be turned into JSON ({shown})",
        category=ErrorCategory.TOOL_ERROR,
        severity=Severity.HIGH,
        recover_action="Do not repeat the call: it has run. Go on without its result, or say that it is unavailable",
        user_guidance=f"Make {tool.name!r} return text, numbers, lists, dicts, dataclasses or pydantic models",
    )
    return Refusal(CallStatus.ERROR, info)
