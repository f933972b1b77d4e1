"""The owner of all engines: one thread that starts, asks and ends their processes, one question at a time.

An engine computes in C: in a process of its own it stalls no event loop, can be stopped, and takes nobody down when it
crashes. It reads a set of tools for seconds, so the latest sets stay in memory.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from journeyman.core.errors import ModelError
from journeyman.models.embedded import engine
from journeyman.models.embedded.files import EngineFiles
from journeyman.sensitive.environment import clean_environment


@dataclass(frozen=True, slots=True)
class Setup:
    """What an engine is prepared for."""

    files: EngineFiles
    system: str
    tools: str


class EngineDied(Exception):  # noqa: N818 - nobody raised it
    """The process ended before it answered."""


class EngineProcess:
    """One engine in one process, and the conversation it is in."""

    def __init__(self, files: EngineFiles) -> None:
        self.files = files
        self._setup: Setup | None = None
        self._killed = False
        self._said: tuple[str, ...] = ()
        self._answer: Any = None
        self._process = subprocess.Popen(
            # -I: nothing of the user's environment can get between us and the engine
            [sys.executable, "-I", engine.__file__, str(files.engine), str(files.weights)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=clean_environment(),
        )

    @property
    def alive(self) -> bool:
        # A process that was just killed may not have ended yet.
        return not self._killed and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def converse(self, setup: Setup, turns: Sequence[str]) -> Any:
        """The answer to the last turn; what the engine remembers of this conversation is not said again."""
        if setup != self._setup:
            self._ask({"system": setup.system, "tools": setup.tools})
            self._setup, self._said = setup, ()
        turns = tuple(turns)
        known = len(self._said) if turns[: len(self._said)] == self._said else 0
        if known == len(turns):
            return self._answer
        self._said = ()
        for index in range(known, len(turns)):
            self._answer = self._ask({"text": turns[index], "fresh": index == 0})
        self._said = turns
        return self._answer

    def kill(self) -> None:
        self._process.kill()
        self._killed = True

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _ask(self, question: dict[str, Any]) -> Any:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        try:
            to.write(json.dumps(question) + "\n")
            to.flush()
            line = back.readline()
        except (OSError, ValueError):
            line = ""
        if not line:
            raise EngineDied(f"exit code {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise _failed(answer["error"])
        return answer["value"]


class Engines:
    """The engine kept, whatever it was prepared for last. Everything happens in one thread.

    It takes about 65 MB, beside the weights. Each request has forms of its own, and loading costs more than reading
    them: so there is no second one.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journeyman-embedded")
        self._kept: EngineProcess | None = None
        self._busy: EngineProcess | None = None
        atexit.register(self.close)

    async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
        """The engine's answer to a conversation. Cancelling stops the engine."""
        abandoned = threading.Event()
        future = self._thread.submit(self._converse, setup, turns, abandoned)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            abandoned.set()
            if future.running() and (busy := self._busy):
                busy.kill()
            raise

    def pids(self) -> list[int]:
        """The processes, for whoever measures them."""
        return [kept.pid] if (kept := self._kept) is not None and kept.alive else []

    def close(self) -> None:
        """End the process; asking again starts a new one."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _converse(self, setup: Setup, turns: Sequence[str], abandoned: threading.Event) -> Any:
        try:
            return self._once(setup, turns, abandoned)
        except EngineDied as died:
            if abandoned.is_set():
                raise _failed("it was stopped") from died
        # Perhaps it was stopped for a question nobody waits for any more: this one gets a new process.
        try:
            return self._once(setup, turns, abandoned)
        except EngineDied as died:
            raise _failed(f"its process ended ({died})") from None

    def _once(self, setup: Setup, turns: Sequence[str], abandoned: threading.Event) -> Any:
        process = self._kept
        if process is None or not process.alive or process.files != setup.files:
            self.close()
            process = EngineProcess(setup.files)
        self._kept = self._busy = process
        if abandoned.is_set():
            process.kill()
        try:
            return process.converse(setup, turns)
        except BaseException:
            # Where it stands in its conversation is not known any more.
            self.close()
            raise
        finally:
            self._busy = None


@cache
def shared_engines() -> Engines:
    """The engines of this program, which answer one after another."""
    return Engines()


def _failed(reason: str) -> ModelError:
    return ModelError(
        "MODEL_ENGINE_FAILED",
        f"the embedded engine failed: {reason}",
        user_guidance="try again; with many or long tools, offer fewer or name another model",
    )
