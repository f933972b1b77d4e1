"""A server in a process of its own, spoken to over its standard input and output, one JSON message a line.

Unlike the transport of the package ``mcp``, it takes bounded lines only, parses large ones in a thread, gives the child
a clean environment, and keeps the end of its standard error to explain failures.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.shared.message import SessionMessage

from journeyman.core.data import LARGE_TEXT, MCP_STDERR_BYTES, MCP_STRAY_BYTES
from journeyman.sensitive.environment import clean_environment
from journeyman.sources.mcp.guard import Guard, Unreadable, parsed

EXIT_SECONDS = 2.0
"""How long a server may take to exit once its standard input is closed, and again once it is told to end."""
_CHUNK = 65_536
_LINES_AT_A_TIME = 50


class Lines:
    """Bytes in, lines out. A line that grows over the limit is dropped while it comes, but for its two ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: list[bytes] = []
        self._size = 0
        self._skipped: Unreadable | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | Unreadable]:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield self._line()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if self._skipped is not None:
            self._skipped.tail = (self._skipped.tail + piece)[-len(self._skipped.head) :]
            return
        self._held.append(piece)
        self._size += len(piece)
        if self._size > self._most:
            why = f"sent a message larger than {self._most:,} bytes"
            self._skipped = Unreadable.of(b"".join(self._held), why)
            self._held.clear()

    def _line(self) -> bytes | Unreadable:
        line = b"".join(self._held) if self._skipped is None else self._skipped
        self._held, self._size, self._skipped = [], 0, None
        return line


@dataclass(slots=True, eq=False)
class StdioLink:
    """One process, from its start to its end."""

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None
    guard: Guard
    most: int
    probe_seconds: float | None = 3.0
    """How long a server may take to say that it knows the newer protocol; some of the older ones say nothing at all."""
    fault: str | None = None
    """Why we ended it."""
    last_words: bytes = b""
    """The end of its standard error."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """No answer comes any more."""
    _process: asyncio.subprocess.Process | None = None
    _stray: int = 0

    @property
    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.returncode

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[Any, Any]]:
        """The streams that a session of the protocol reads and writes."""
        process = self._process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=clean_environment() | dict(self.env),
            cwd=self.cwd,
            start_new_session=True,  # so that what it starts ends with it, and Ctrl-C reaches us first
        )
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, process, to_session)
            tasks.start_soon(self._listen_to_stderr, process)
            try:
                yield from_server, _Input(process, self.ended)
            finally:
                with anyio.CancelScope(shield=True):
                    await _stop(process)
                tasks.cancel_scope.cancel()
                to_session.close()
                from_server.close()

    async def _read(self, process: asyncio.subprocess.Process, to_session: Any) -> None:
        assert process.stdout is not None
        lines = Lines(self.most)
        try:
            async with to_session:
                while chunk := await process.stdout.read(_CHUNK):
                    for number, line in enumerate(lines.feed(chunk)):
                        if number % _LINES_AT_A_TIME == _LINES_AT_A_TIME - 1:
                            await asyncio.sleep(0)  # a chunk may hold thousands
                        await self._take(line, to_session)
                        if self.fault is not None:
                            return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass  # the session is gone
        finally:
            self.ended.set()
        await self._drain(process)

    async def _take(self, line: bytes | Unreadable, to_session: Any) -> None:
        if isinstance(line, Unreadable):
            message: Any = line
        elif not line.strip():
            return
        else:
            message = parsed(line) if len(line) <= LARGE_TEXT else await asyncio.to_thread(parsed, line)
        if isinstance(message, Unreadable):
            answer = message.as_answer()
            if answer is None:
                self._stray += len(line) if isinstance(line, bytes) else self.most
                if self._stray > MCP_STRAY_BYTES:
                    self.fault = "writes text to its standard output that is no message of the protocol"
                return
            message = answer
        if (message := self.guard.admitted(message)) is not None:
            await to_session.send(SessionMessage(message))

    async def _drain(self, process: asyncio.subprocess.Process) -> None:
        """A server that still writes must be able to, or it never sees that its input is closed."""
        assert process.stdout is not None
        with suppress(OSError):
            while await process.stdout.read(_CHUNK):
                pass

    async def _listen_to_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        with suppress(OSError):
            while chunk := await process.stderr.read(_CHUNK):
                self.last_words = (self.last_words + chunk[-MCP_STDERR_BYTES:])[-MCP_STDERR_BYTES:]
                await asyncio.sleep(0)


class _Input:
    """Writes messages to a process. Not through a stream and a task of its own: every call pays for those."""

    def __init__(self, process: asyncio.subprocess.Process, ended: asyncio.Event) -> None:
        assert process.stdin is not None
        self._stdin = process.stdin
        self._ended = ended

    async def send(self, item: SessionMessage) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._stdin.write(text.encode("utf-8", "replace") + b"\n")
            await self._stdin.drain()
        except (OSError, RuntimeError) as error:  # a RuntimeError is of a transport that is closed
            self._ended.set()
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """The process is stopped by whoever started it."""

    async def __aenter__(self) -> _Input:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Close its input; then ask it, and what it has started, to end; then kill them."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    for how in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if how is not None:
            _signal(process, how)
        if await _exited(process, EXIT_SECONDS):
            break
    # What it left behind in its group has lost its parent and its pipes' other end.
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()


async def _exited(process: asyncio.subprocess.Process, seconds: float) -> bool:
    # Not process.wait(): that also waits for pipes which a child of the server may hold open.
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + seconds, 0.002
    while process.returncode is None:
        if loop.time() >= until:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05)
    return True


def _signal(process: asyncio.subprocess.Process, how: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, how)
