"""What tools print, here or in processes of their own: it goes to stderr, escaped, and never into a command's answer.

A command writes its answer to a stream of its own (:func:`answer_stream`). From the moment that others' code may run,
``print`` and file descriptor 1 lead elsewhere, until the process has ended: what a thread prints late, or a buffer
holds until exit, has no way to the answer either.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from typing import TextIO, cast

from journeyman.core.data import visible
from journeyman.sensitive import environment

AT_ONCE = 65_536
LAST_SECONDS = 1.0
"""How long what was printed last may take to be shown."""

_answer: TextIO | None = None


def answer_stream() -> TextIO:
    """Where a command writes what it was asked for."""
    return sys.stdout if _answer is None else _answer


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Around code of others, tools above all: what it prints is not the answer."""
    global _answer
    if _answer is None and _is_standard_output(sys.stdout):
        _separate()
    if _answer is not None:
        yield
        return
    _answer = sys.stdout  # of somebody else's process, whose streams are as before afterwards
    try:
        with redirect_stdout(cast("TextIO", _Escaping())):
            yield
    finally:
        _answer = None


def _is_standard_output(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() == 1 and stream is sys.__stdout__
    except (OSError, ValueError):  # no file, or closed
        return False


def _separate() -> None:
    """Keep standard output for the answer, and give everybody else a way to stderr in its place."""
    global _answer
    former = sys.stdout
    former.flush()
    # Line by line: what is told on stderr in between stands where it belongs, also where both go to one place.
    _answer = os.fdopen(os.dup(1), "w", 1, encoding=former.encoding, errors=former.errors)
    os.dup2(_printed().theirs, 1)
    sys.stdout = cast("TextIO", _Escaping())
    sys.__stdout__ = sys.stdout  # type: ignore[misc,assignment]  # meant to stay; but tools write to it, too


class _Escaping(io.TextIOBase):
    """A stream for what others print: to stderr as it is then, for a line may be edited there meanwhile."""

    def write(self, text: str) -> int:
        if sys.stderr is not None:
            sys.stderr.write(visible(text))
        return len(text)

    def flush(self) -> None:
        if sys.stderr is not None:
            sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr is not None and sys.stderr.isatty()

    def fileno(self) -> int:
        return 1


@contextmanager
def children_escaped() -> Iterator[None]:
    """Have children print to us from now on. Nothing is made for that before there is one."""
    former, environment.child_output = environment.child_output, lambda: _printed().theirs
    try:
        yield
    finally:
        environment.child_output = former
        if _answer is not None:
            with suppress(OSError, ValueError):  # nobody reads it any more
                _answer.flush()
        if _printed.cache_info().currsize:
            _printed().drain()


class _Printed:
    """A pipe, and a thread that writes what comes out of it to stderr, escaped."""

    def __init__(self) -> None:
        self._ours, self.theirs = os.pipe()
        self._writing = threading.Lock()
        threading.Thread(target=self._pass_on, name="journeyman-printed", daemon=True).start()

    def _pass_on(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        while True:
            select.select([self._ours], [], [])
            with self._writing:
                text = visible(decoder.decode(os.read(self._ours, AT_ONCE)))
                with suppress(OSError, ValueError):  # nobody reads it any more
                    sys.stderr.write(text)
                    sys.stderr.flush()

    def drain(self) -> None:
        """Return when all that was printed is shown."""
        late = time.monotonic() + LAST_SECONDS
        while time.monotonic() < late:
            with self._writing:
                if not select.select([self._ours], [], [], 0)[0]:
                    return
            time.sleep(0.001)  # lets the thread have its turn


@cache
def _printed() -> _Printed:
    return _Printed()
