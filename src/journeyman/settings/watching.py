"""Notices that a file was edited, whatever way it was done: in place, by a rename, through a link, or gone and back.

What counts is the file's content. Whoever writes it may take several writes: it is taken once it has stayed the same
for a moment. It is looked at again and again, since not every file system tells of changes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

from journeyman.settings.document import MOST_BYTES

LOOK_SECONDS = 0.5
"""How often it is looked at."""
SETTLE_SECONDS = 0.2
"""How long a file must have stayed as it is."""
MOST_SETTLING = 25
"""After so many looks it is taken as it is: somebody writes to it without end."""

State: TypeAlias = tuple[int, ...]
"""What tells one state of a file from another, without reading it; empty where there is no such file."""


async def contents(path: Path, last: bytes | None) -> AsyncIterator[bytes | None]:
    """Yields what the file holds whenever that has changed from ``last``; None while there is no such file."""
    seen: State | None = None
    while True:
        if await asyncio.to_thread(_state, path) != seen:
            content, seen = await _settled(path)
            if content != last:
                last = content
                yield content
        await asyncio.sleep(LOOK_SECONDS)


async def _settled(path: Path) -> tuple[bytes | None, State]:
    before = await asyncio.to_thread(_read, path)
    for _ in range(MOST_SETTLING):
        await asyncio.sleep(SETTLE_SECONDS)
        now = await asyncio.to_thread(_read, path)
        if now == before:
            break
        before = now
    return before


def _read(path: Path) -> tuple[bytes | None, State]:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1), _state(file.fileno())
    except OSError:
        return None, ()


def _state(file: Path | int) -> State:
    try:
        about = os.stat(file)
    except OSError:
        return ()
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
