"""The program that runs inside a tool's own process, and the frames in which it talks to its parent.

Started by file path with the number of a socket; until the first call arrives it imports the standard library only,
so it starts fast. Frames are JSON behind a length: nothing that a tool returns can run code in the parent. When the
parent dies, this process ends with everything it started.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

HEADER_BYTES = 8

Frame = dict[str, Any]


def encode(frame: Frame) -> bytes:
    """A frame as it travels: the length of the JSON text, then the text."""
    body = json.dumps(frame, separators=(",", ":")).encode("ascii")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


class _Call:
    """One call: imports the tool, runs it, and sends the outcome."""

    def __init__(self, request: Frame, write: Callable[[bytes], None]) -> None:
        self._request = request
        self._write = write
        self._secrets: Any = None

    def run(self) -> None:
        try:
            tool = _resolve(self._request["target"])
            context = self._context(self._request["context"])
            self._send("started")
            value = tool.call_frozen(self._request["arguments"], context)
            if hasattr(value, "__await__"):
                import asyncio

                from journeyman.tools.tool import awaited

                value = asyncio.run(awaited(value))
        except BaseException as error:
            self._fail(error)
            return
        from journeyman.execution.results import Budget, ResultTooLargeError

        try:
            from pydantic_core import to_jsonable_python

            self._send("result", value=to_jsonable_python(Budget(self._request["limit"]).take(value)))
        except ResultTooLargeError as error:
            self._send("exception", type="ResultTooLarge", message=str(error), traceback="")
        except Exception as error:
            message = f"a result of type {type(value).__name__!r} cannot be written as JSON: {error_text(error)}"
            self._send("exception", type="UnserialisableResult", message=message, traceback="")

    def _context(self, fields: Mapping[str, Any]) -> Any:
        from journeyman.core.calls import Secrets, ToolContext
        from journeyman.core.policy import Principal

        fields = dict(fields)
        principal = fields.pop("principal", None)
        self._secrets = Secrets(fields.pop("secrets", None) or {})
        return ToolContext(
            principal=None if principal is None else Principal(**principal),
            secrets=self._secrets,
            report=lambda message, fraction: self._send("progress", message=message, fraction=fraction),
            **fields,
        )

    def _fail(self, error: BaseException) -> None:
        import traceback

        from journeyman.core.errors import ToolError

        if isinstance(error, ToolError):
            self._send("tool_error", info=error.info.model_dump(mode="json"))
            return
        trace = "".join(traceback.format_exception(error))
        self._send("exception", type=type(error).__name__, message=error_text(error), traceback=trace)

    def _send(self, kind: str, **fields: Any) -> None:
        if self._secrets is not None and self._secrets.were_read:
            # The parent's own Secrets object does not see what is read here, so values are masked on this side.
            fields = self._secrets.masked(fields)
        self._write(encode({"call": self._request["call"], "kind": kind, **fields}))


def error_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(the exception has no readable message)"


def _resolve(target: str) -> Any:
    from journeyman.tools.paths import import_path

    tool = import_path(target)
    if not hasattr(tool, "call_frozen"):
        raise TypeError(f"{target!r} is a {type(tool).__name__!r} and not a tool; decorate it with @tool")
    return tool


def _read(channel: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        received = channel.recv_into(view)
        if not received:
            raise EOFError
        view = view[received:]
    return bytes(data)


def _listen(channel: socket.socket, requests: SimpleQueue[Frame]) -> None:
    """Read requests, also while a tool runs: that is how this process learns that its parent has died."""
    try:
        while True:
            size = int.from_bytes(_read(channel, HEADER_BYTES), "big")
            requests.put(json.loads(_read(channel, size)))
    except (EOFError, OSError):
        _exit_group()


def _exit_group() -> None:
    """The parent is gone: end, with everything that was started here."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main(descriptor: int) -> None:
    """Serve one call after the other, until the parent closes its end."""
    channel = socket.socket(fileno=descriptor)
    # A process that the tool starts must not keep the socket open after this one has died.
    os.set_inheritable(descriptor, False)
    os.register_at_fork(after_in_child=channel.close)
    sys.stdout = sys.stderr
    requests: SimpleQueue[Frame] = SimpleQueue()
    threading.Thread(target=_listen, args=(channel, requests), name="journeyman-parent", daemon=True).start()
    writing = threading.Lock()

    def write(data: bytes) -> None:
        try:
            with writing:
                channel.sendall(data)
        except OSError:
            _exit_group()

    while True:
        request = requests.get()
        sys.path[:] = request["path"]
        os.chdir(request["directory"])
        _Call(request, write).run()
        del request


if __name__ == "__main__":
    main(int(sys.argv[1]))
