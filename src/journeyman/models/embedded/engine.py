"""The program of an engine's process: the C functions behind lines of JSON. A script that imports nothing of ours.

In:  ``{"system": …, "tools": …}`` to read a set of tools, then ``{"text": …, "fresh": …}`` for each turn.
Out: ``{"value": …}`` or ``{"error": …}`` for each of them.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ANSWER_BYTES = 1 << 18
MOST_TOKENS = 512


class EngineError(Exception):
    """The engine refused; the message is its own."""


class Engine:
    """One loaded engine. It holds one set of tools and one conversation."""

    def __init__(self, library: str, weights: str) -> None:
        self._library = ctypes.CDLL(library)
        self._declare()
        data = Path(weights).read_bytes()
        # The engine keeps a copy of its own.
        with _one_processor():
            loaded = self._library.needle_load(data, len(data))
        if loaded < 0:
            raise EngineError(self._reason("the weights were refused"))
        self._answer = ctypes.create_string_buffer(ANSWER_BYTES)

    def prepare(self, *, system: str, tools: str) -> int:
        """Read the tools; takes seconds. Returns how many tokens they are."""
        tokens: int = self._library.needle_init(system.encode(), tools.encode(), None)
        if tokens < 0:
            raise EngineError(self._reason("the tools were refused"))
        return tokens

    def complete(self, text: str, *, fresh: bool) -> Any:
        """The engine's answer to a turn; ``fresh`` forgets the turns before."""
        if fresh:
            self._library.needle_reset()
        if self._library.needle_complete(text.encode(), MOST_TOKENS, self._answer, ANSWER_BYTES) < 0:
            raise EngineError(self._answer.value.decode("utf-8", "replace") or self._reason("the turn was refused"))
        return json.loads(self._answer.value.decode("utf-8", "replace"))

    def _declare(self) -> None:
        text, number = ctypes.c_char_p, ctypes.c_int
        signatures: dict[str, tuple[Any, list[Any]]] = {
            "needle_load": (number, [text, ctypes.c_uint64]),
            "needle_init": (number, [text, text, text]),
            "needle_complete": (number, [text, number, text, number]),
            "needle_reset": (None, []),
            "needle_last_error": (text, []),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments

    def _reason(self, otherwise: str) -> str:
        said: bytes | None = self._library.needle_last_error()
        return said.decode("utf-8", "replace") if said else otherwise


@contextmanager
def _one_processor() -> Iterator[None]:
    """Let the engine find one processor, so that it computes in one thread.

    It starts a thread for each processor of the machine, and they wait for each other in busy loops: on a machine
    that has other work to do, or in a container that may use fewer, they burn twice the time and more. It counts in a
    file of the system's; where no file can be opened, the processors that the process may use are counted instead.
    """
    allowed, limits = os.sched_getaffinity(0), resource.getrlimit(resource.RLIMIT_NOFILE)
    os.sched_setaffinity(0, [min(allowed)])
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        os.sched_setaffinity(0, allowed)


def serve(library: str, weights: str) -> None:
    """Answer lines until there are no more."""
    # What the engine prints must not end up between our lines.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        engine: Engine | None = None
        for line in sys.stdin:
            asked = json.loads(line)
            try:
                engine = engine or Engine(library, weights)
                if "tools" in asked:
                    value: Any = engine.prepare(system=asked["system"], tools=asked["tools"])
                else:
                    value = engine.complete(asked["text"], fresh=asked["fresh"])
                answer = {"value": value}
            except (EngineError, OSError, ValueError, AttributeError) as error:
                answer = {"error": f"{error}" or type(error).__name__}
            out.write(json.dumps(answer) + "\n")
            out.flush()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
