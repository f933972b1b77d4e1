"""Child processes for tools that must be killable: one call at a time in each, idle ones reused.

The child's own program, and the frames between the two, are in ``child``. Needs a POSIX system: a child leads its own
process group, and the whole group is killed. A process that a child starts in another session is not.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from journeyman.core.errors import ConfigurationError, ToolError
from journeyman.execution import child
from journeyman.execution.results import MOST_BYTES
from journeyman.execution.threads import Slots, once_in_a_process
from journeyman.sensitive import environment

WAIT_SECONDS = 300.0
"""How long a call waits for a child to be free. The longest timeout: by then each that was busy has been killed."""
START_SECONDS = 60.0
"""How long a child may take to start and to import its tool, before the call's own timeout begins."""

KEEP_IDLE = 2
MOST_PROCESSES = (os.cpu_count() or 1) + 2
"""Children at once, unless JOURNEYMAN_MAX_PROCESSES says otherwise. Further calls wait for one to be free."""
FRAME_ROOM = 1_000_000
"""What a frame may have beside a result: names, messages, a traceback."""

OnProgress = Callable[[str, float | None], None]
_NOBODY = object()
"""Whom a child works for that has not had a call."""


class RemoteError(Exception):
    """The tool raised an exception other than ``ToolError``. The child's traceback is a note on this one."""

    def __init__(self, type_name: str, message: str) -> None:
        self.type_name = type_name
        self.message = message
        super().__init__(f"{type_name}: {message}")


class RemoteCrashError(RemoteError):
    """The child died before it could answer; ``code`` is its exit code, or minus the signal that killed it."""

    def __init__(self, target: str, code: int) -> None:
        self.code = code
        how = f"exited with code {code}" if code >= 0 else f"was killed by {_signal_name(-code)}"
        message = f"the process of {target!r} {how} before it answered; what the call has done is not known"
        super().__init__("Crash", message)


class NoFreeProcessError(Exception):
    """All children were busy for as long as a call waits for one. It did not run."""


class _FrameTooLargeError(Exception):
    """A child sends more than a result may have."""


class _ConnectionLostError(Exception):
    """The child's end of the socket is closed."""


class _ChildProcess:
    """A child and the socket to it. Bound to no event loop, so that any loop may reuse it."""

    def __init__(self) -> None:
        self.owner: object = _NOBODY
        """For whom it has worked: what its modules remember may be of theirs."""
        self._calls = 0
        self._started = False
        self._most_bytes = 0
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        output = environment.child_output()
        try:
            self._process = subprocess.Popen(
                # -P: modules in the folder of the child's program must not shadow those that tools import
                [sys.executable, "-P", child.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=environment.clean_environment(),
            )
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()

    async def call(
        self, target: str, request: dict[str, Any], *, timeout: float | None, on_progress: OnProgress | None
    ) -> dict[str, Any]:
        """Send a request; returns the frame that ends it."""
        self._calls += 1
        self._started = False
        # JSON escapes may make it up to six times as long as the text that was measured.
        self._most_bytes = 6 * request["limit"] + FRAME_ROOM
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._send({"call": self._calls, "target": target, **request})
                frame = await self._receive()
        except TimeoutError:
            raise TimeoutError(f"{target!r} could not be imported within {START_SECONDS:g} s") from None
        self._started = True
        try:
            async with asyncio.timeout(timeout):
                while frame["kind"] in ("started", "progress"):
                    if frame["kind"] == "progress" and on_progress is not None:
                        on_progress(frame["message"], frame["fraction"])
                    frame = await self._receive()
        except TimeoutError:
            raise TimeoutError(f"not finished after {timeout} s; the process was killed") from None
        return frame

    @property
    def died_idle(self) -> bool:
        """Of a child that was lost in a call: whether it died between calls, before this call's tool started."""
        return self._calls > 1 and not self._started

    def alive(self) -> bool:
        """Whether an idle child's socket is open. Polling the process instead would reap it."""
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except ConnectionError:
            return False

    def kill(self) -> None:
        """Kill the process group, unless the process was reaped: its number may have been reused by then."""
        if self._process.returncode is None:
            # Both mean that the group is gone already; macOS raises the second.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close_socket(self) -> None:
        """Only while no task waits for a frame: an event loop does not notice that a socket was closed."""
        self._socket.close()

    async def reaped(self) -> int:
        """The exit code of a killed process, once it has been reaped."""
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 - no portable event says it without a thread
            await asyncio.sleep(0.002)
        return code

    def end_blocking(self) -> None:
        """Kill, reap and close without an event loop."""
        self.kill()
        self._process.wait()
        self.close_socket()

    async def _send(self, frame: dict[str, Any]) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, child.encode(frame))
        except ConnectionError as error:
            raise _ConnectionLostError from error

    async def _receive(self) -> dict[str, Any]:
        while True:
            size = int.from_bytes(await self._read(child.HEADER_BYTES), "big")
            if size > self._most_bytes:
                raise _FrameTooLargeError
            data = await self._read(size)
            frame: dict[str, Any] = json.loads(data) if size < FRAME_ROOM else await asyncio.to_thread(json.loads, data)
            if frame["call"] == self._calls:  # a thread that outlived an earlier call may still report progress
                return frame

    async def _read(self, size: int) -> bytearray:
        loop = asyncio.get_running_loop()
        data = bytearray(size)
        view = memoryview(data)
        while view:
            try:
                received = await loop.sock_recv_into(self._socket, view)
            except ConnectionError as error:
                raise _ConnectionLostError from error
            if not received:
                raise _ConnectionLostError
            view = view[received:]
        return data


class ProcessPool:
    """Runs importable tools in processes that can be killed. Idle children serve any event loop.

    At most ``size`` of them work at once; further calls wait their turn. A child keeps its modules' state from call to
    call, so it works for one principal only, and of the environment variables what ``clean_environment`` gave it when
    it was started.
    """

    def __init__(self, size: int | None = None) -> None:
        self._places = Slots(size or max_processes())
        self._lock = threading.Lock()
        self._children: set[_ChildProcess] = set()
        self._idle: list[_ChildProcess] = []
        self._closed = False
        # Also runs when the interpreter ends, so a forgotten pool leaves neither processes nor warnings behind.
        weakref.finalize(self, _end_all, self._children, os.getpid())

    async def run(
        self,
        target: str,
        arguments: str,
        *,
        timeout: float | None,
        context: Mapping[str, Any],
        on_progress: OnProgress | None = None,
        limit: int = MOST_BYTES,
    ) -> Any:
        """Call the tool ``target`` ("package.module:name") with its frozen arguments, given as JSON text.

        ``context`` holds the keywords of ``ToolContext`` as plain data: ``principal`` with its ``id`` and
        ``permissions``, ``secrets`` by name; those that the tool reads are masked in all it sends.

        Returns the result as a JSON value. Raises ToolError, RemoteError, RemoteCrashError, or TimeoutError after
        ``timeout`` seconds; waiting for a place, starting the child and importing the tool do not count. On timeout
        and on cancellation the child and all its descendants are killed before this returns. RemoteError of type
        ResultTooLarge where the result has more than ``limit`` bytes.
        """
        _check_importable(target)
        request = {
            "arguments": arguments,
            "context": dict(context),
            "path": sys.path,
            "directory": os.getcwd(),
            "limit": limit,
        }
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._places.take()
        except TimeoutError:
            raise NoFreeProcessError(f"no process was free for {WAIT_SECONDS:g} s") from None
        try:
            while True:
                process = await self._take((context.get("principal") or {}).get("id"))
                try:
                    frame = await process.call(target, request, timeout=timeout, on_progress=on_progress)
                except BaseException as error:
                    code = await asyncio.shield(asyncio.ensure_future(self._end(process)))
                    if isinstance(error, _FrameTooLargeError):
                        raise RemoteError("ResultTooLarge", "the process sent more than a result may have") from None
                    if not isinstance(error, _ConnectionLostError):
                        raise
                    if not process.died_idle:
                        raise RemoteCrashError(target, code) from None
                else:
                    await self._keep(process)
                    return _outcome(frame)
        finally:
            self._places.give_back()

    async def close(self) -> None:
        """Kill all children, busy ones too."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = self._children.difference(idle)
        for process in busy:
            process.kill()  # the task that waits for its answer removes it
        await asyncio.gather(*(self._end(process) for process in idle), *(process.reaped() for process in busy))

    async def _take(self, owner: str | None) -> _ChildProcess:
        """An idle child that has worked for nobody else, or a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise RuntimeError("this process pool is closed; make a new one to run more tools")
                fitting = [process for process in self._idle if process.owner in (owner, _NOBODY)]
                if fitting:
                    self._idle.remove(fitting[-1])
            if not fitting:
                break
            process = fitting[-1]
            process.owner = owner
            if process.alive():
                return process
            await asyncio.shield(asyncio.ensure_future(self._end(process)))
        # In a thread: starting a process takes a while, and everybody else goes on meanwhile.
        starting = asyncio.ensure_future(asyncio.to_thread(self._start))
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._started_for_nobody)
            raise
        process.owner = owner
        return process

    def _start(self) -> _ChildProcess:
        process = _ChildProcess()
        with self._lock:
            self._children.add(process)
        return process

    def _started_for_nobody(self, starting: asyncio.Future[_ChildProcess]) -> None:
        if starting.cancelled() or starting.exception() is not None:
            return
        process = starting.result()
        with self._lock:
            if len(self._idle) < KEEP_IDLE and not self._closed:
                self._idle.append(process)
                return
            self._children.discard(process)
        process.end_blocking()

    async def _keep(self, process: _ChildProcess) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(process)
                if len(self._idle) <= KEEP_IDLE:
                    return
                process = self._idle.pop(0)  # used longest ago; children of those who are gone would stay for ever
        await asyncio.shield(asyncio.ensure_future(self._end(process)))

    async def _end(self, process: _ChildProcess) -> int:
        process.kill()
        code = await process.reaped()
        process.close_socket()
        with self._lock:
            self._children.discard(process)
        return code


def max_processes() -> int:
    """How many children may work at once."""
    given = os.environ.get("JOURNEYMAN_MAX_PROCESSES", "")
    if not given:
        return MOST_PROCESSES
    if not given.isdecimal() or int(given) < 1:
        raise ConfigurationError(f"JOURNEYMAN_MAX_PROCESSES is a whole number from 1 on, not {given!r}")
    return int(given)


def _outcome(frame: dict[str, Any]) -> Any:
    match frame["kind"]:
        case "result":
            return frame["value"]
        case "tool_error":
            raise ToolError(**frame["info"])
        case _:
            error = RemoteError(frame["type"], frame["message"])
            if frame["traceback"]:
                error.add_note(frame["traceback"])
            raise error


def _check_importable(target: str) -> None:
    module, _, name = target.partition(":")
    if not module or not name or module == "__main__" or "<" in name:
        raise ConfigurationError(
            f"tool {target!r} cannot run in a process of its own: another process must be able to import it; "
            "define it at the top level of a module that is not the main program"
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end_all(children: set[_ChildProcess], owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked copy of this pool: the children belong to the parent
    for process in children:
        process.end_blocking()


default_pool = once_in_a_process(ProcessPool)
"""The pool that all runs of this process share: a bound for each of them would be no bound."""
