"""Tools that the process tests run in another process; most are stand-ins, for ``call_frozen`` is all that counts."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journeyman.core.calls import ToolContext
from journeyman.core.errors import ToolError
from journeyman.tools.decorator import tool


class Target:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def call_frozen(self, arguments: str, context: ToolContext | None) -> Any:
        return self.function(context, **json.loads(arguments))


@Target
def echo(context: ToolContext, value: Any) -> Any:
    return value


@Target
async def echo_later(context: ToolContext, value: Any) -> Any:
    await asyncio.sleep(0)
    return value


@Target
def pid(context: ToolContext) -> int:
    return os.getpid()


@Target
def facts(context: ToolContext) -> dict[str, Any]:
    assert context.principal is not None
    return {
        "principal": {"id": context.principal.id, "permissions": sorted(context.principal.permissions)},
        "idempotency_key": context.idempotency_key,
        "deadline": context.deadline,
        "correlation_id": context.correlation_id,
        "run_id": context.run_id,
        "call_id": context.call_id,
    }


@Target
def leak(context: ToolContext, secret: str) -> list[str]:
    value = context.secrets[secret]
    context.progress(f"using {value}")
    return ["the secret is", value]


@Target
def leak_in_error(context: ToolContext, secret: str) -> None:
    raise ValueError(f"refused: {context.secrets[secret]}")


@Target
def meet(context: ToolContext, mine: str, other: str) -> str:
    Path(mine).touch()
    while not Path(other).exists():
        time.sleep(0.005)
    return "met"


def _announce(path: str, *pids: int) -> None:
    part = Path(path + ".part")
    part.write_text(json.dumps(pids))
    part.rename(path)


@Target
def sleep_in_c(context: ToolContext, path: str) -> None:
    _announce(path, os.getpid())
    ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the GIL: no thread of this process can do anything


@Target
def busy_loop(context: ToolContext, path: str) -> None:
    _announce(path, os.getpid())
    while True:
        try:
            time.sleep(0)
        except BaseException:
            continue


@Target
async def sleep_async(context: ToolContext, path: str) -> None:
    _announce(path, os.getpid())
    await asyncio.sleep(600)


@Target
def with_grandchildren(context: ToolContext, path: str) -> None:
    forked = os.fork()
    if forked == 0:
        time.sleep(600)
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    _announce(path, os.getpid(), forked, started.pid)
    time.sleep(600)


@Target
def crash_with_grandchild(context: ToolContext, path: str) -> None:
    forked = os.fork()
    if forked == 0:
        time.sleep(600)
    _announce(path, os.getpid(), forked)
    os._exit(7)


@Target
def segfault(context: ToolContext) -> None:
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)


@Target
def leave(context: ToolContext, code: int) -> None:
    os._exit(code)


@Target
def die_soon(context: ToolContext) -> int:
    """Answers, and dies a moment later, when it is idle."""
    threading.Timer(0.1, os._exit, [9]).start()
    return os.getpid()


@Target
def refuse(context: ToolContext) -> None:
    raise ToolError("NO_SUCH_ORDER", "No order 'W-404'", retryable=True, recover_action="Ask for the number")


@Target
def fail(context: ToolContext, how: str) -> None:
    raise {"value": ValueError("no good"), "exit": SystemExit(3), "surrogate": ValueError("\ud800")}[how]


@Target
def unserialisable(context: ToolContext) -> Any:
    return {"lock": threading.Lock()}


@Target
def report(context: ToolContext, steps: int) -> str:
    for step in range(steps):
        context.progress(f"step {step}", step / steps)
    context.progress("nearly")
    return "done"


@Target
def chatter(context: ToolContext) -> str:
    print("printed by python")
    os.system("echo printed by a shell")
    return sys.stdin.read()


@Target
def nap(context: ToolContext, seconds: float) -> None:
    time.sleep(seconds)


@Target
def endless(context: ToolContext) -> Any:
    return (number for number in iter(int, 1))


@Target
def big(context: ToolContext, size: int) -> str:
    return "x" * size


def not_a_tool() -> None: ...


@dataclass
class Doubled:
    doubled: int
    call_id: str


@tool(isolation="process")
def real_tool(count: int, context: ToolContext) -> Doubled:
    """Double a number."""
    context.progress("counting")
    return Doubled(count * 2, context.call_id)


@tool(isolation="process")
async def real_async_tool(count: int, context: ToolContext) -> Doubled:
    """Double a number, later."""
    context.progress("counting")
    return Doubled(count * 2, context.call_id)


@tool(isolation="process", risk="reversible")
def environment() -> list[str]:
    """The names of the environment's variables."""
    import os

    return sorted(os.environ)


@tool(isolation="process", risk="reversible", secrets=["MINE"])
def secrets_seen(context: ToolContext) -> dict[str, Any]:
    """Which secrets there are, and how long one is."""
    return {"names": sorted(context.secrets), "length": len(context.secrets["MINE"])}


@tool(isolation="process", risk="reversible")
def undeclared(context: ToolContext) -> list[str]:
    """Which secrets there are."""
    return sorted(context.secrets)


_SAID: list[str] = []


@Target
def remember(context: ToolContext, said: str) -> list[str]:
    _SAID.append(said)
    return _SAID
