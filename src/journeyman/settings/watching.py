"""Notices that a file was edited, whatever way it was done: in place, by a rename, through a link, or gone and back.

What counts is the file's content. Whoever writes it may take several writes: it is taken once it has stayed the same
for a moment.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from journeyman.settings.document import MOST_BYTES

SETTLE_SECONDS = 0.2
"""How long a file must have stayed as it is."""
LOOK_SECONDS = 5.0
"""How often it is looked at although nothing was heard: not every file system tells of changes."""
MOST_SETTLING = 25
"""After so many looks it is taken as it is: somebody writes to it without end."""


async def contents(path: Path, last: bytes | None) -> AsyncIterator[bytes | None]:
    """Yields what the file holds whenever that has changed from ``last``; None while there is no such file."""
    async for _ in _heard(path):
        found = await _settled(path)
        if found != last:
            last = found
            yield found


async def _heard(path: Path) -> AsyncIterator[None]:
    """Yields when something may have happened, and now and then."""
    from watchfiles import awatch

    while True:
        folders = _folders(path)
        names = {str(step) for step in _steps(path)}
        there = [folder for folder in folders if folder.is_dir()]
        if not there:
            await asyncio.sleep(LOOK_SECONDS)
            yield
            continue
        yield  # what happened before there was a watch
        with suppress(OSError, RuntimeError):  # a folder that vanishes: looked for anew
            async for changes in awatch(
                *there,
                # Other files of the folder, such as a database, may change all the time.
                watch_filter=partial(_matters, names),
                recursive=False,
                debounce=100,
                step=20,
                rust_timeout=int(LOOK_SECONDS * 1000),
                yield_on_timeout=True,
            ):
                yield
                moved = _folders(path) != folders or {str(step) for step in _steps(path)} != names
                if moved or not (changes or all(folder.is_dir() for folder in there)):
                    break
            else:
                return  # the program ends


def _matters(names: set[str], _: object, changed: str) -> bool:
    return changed in names or os.path.basename(changed).startswith("..")  # as mounted settings are exchanged


def _steps(path: Path) -> list[Path]:
    """The file and what it links to, link by link, with the real folder each of them stands in."""
    found: list[Path] = []
    step = path if path.is_absolute() else Path.cwd() / path
    for _ in range(40):
        place = Path(os.path.realpath(step.parent)) / step.name
        found += [item for item in (step, place) if item not in found]
        try:
            target = os.readlink(place)
        except OSError:
            break
        step = place.parent / target
    return found


def _folders(path: Path) -> list[Path]:
    return list(dict.fromkeys(step.parent for step in _steps(path)))


async def _settled(path: Path) -> bytes | None:
    before = await asyncio.to_thread(_read, path)
    for _ in range(MOST_SETTLING):
        await asyncio.sleep(SETTLE_SECONDS)
        now = await asyncio.to_thread(_read, path)
        if now == before:
            return now[0]
        before = now
    return before[0]


def _read(path: Path) -> tuple[bytes | None, tuple[int, ...]]:
    """What the file holds, and what tells one state of it from another."""
    try:
        with path.open("rb") as file:
            data, state = file.read(MOST_BYTES + 1), os.fstat(file.fileno())
            return data, (state.st_ino, state.st_size, state.st_mtime_ns)
    except OSError:
        return None, ()
