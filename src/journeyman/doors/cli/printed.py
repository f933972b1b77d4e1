"""What tools in processes of their own print: it passes through this one, so that a terminal obeys none of it."""

from __future__ import annotations

import codecs
import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from journeyman.core import environment
from journeyman.core.visible import visible

AT_ONCE = 65_536
LAST_SECONDS = 1.0
"""How long what was printed last may take to be shown."""


@contextmanager
def children_escaped() -> Iterator[None]:
    """Have children print to us from now on. Nothing is made for that before there is one."""
    former, environment.child_output = environment.child_output, lambda: _printed().theirs
    try:
        yield
    finally:
        environment.child_output = former
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
