"""What a person has said to ``journeyman chat``, kept between starts: a JSON text a line, the latest last."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

from journeyman.doors.cli import screen
from journeyman.doors.cli.state import replace_file, state_folder

MOST_LINES = 1_000
MOST_BYTES = 256_000
LONGEST = 8_000
"""A longer text is pasted, not typed, and stays out."""
ROOM = 2
"""The file may grow to so many times its size before it is cut: cutting writes all of it."""


def history_file() -> Path:
    return state_folder() / "chat_history"


class KeptHistory(History):
    """A history in a file that nobody else can read. Where it cannot be kept, there is one note and no file.

    A line that begins with a blank is not kept, as in shells; nor is one that was just said.
    """

    def __init__(self, place: Path) -> None:
        super().__init__()
        self._place = place
        self._kept = True

    def load_history_strings(self) -> Iterable[str]:
        try:
            found = self._read()
        except FileNotFoundError:
            return ()
        except OSError as error:
            self._give_up(error)
            return ()
        return [text for line in reversed(found) if (text := _text(line)) is not None]

    def append_string(self, string: str) -> None:
        if string.strip() and not string.startswith(" ") and string not in self._loaded_strings[:1]:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        line = json.dumps(string).encode() + b"\n"
        if not self._kept or len(line) > LONGEST:
            return
        try:
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(descriptor, 0o600)  # also where it was made by something else
                file.write(line)  # one write: two programs at once do not mix their lines
                size = file.tell()
            if size > MOST_BYTES * ROOM:
                self._cut()
        except OSError as error:
            self._give_up(error)

    def _read(self) -> list[bytes]:
        """The lines within the limits, the latest last."""
        with self._place.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_BYTES))
            if size > MOST_BYTES:
                file.readline()  # the rest of one that was cut through
            return file.read().splitlines(keepends=True)[-MOST_LINES:]

    def _cut(self) -> None:
        replace_file(self._place, b"".join(self._read()))

    def _give_up(self, error: OSError) -> None:
        self._kept = False
        screen.note(f"what you say here is not kept for the next start: {str(self._place)!r}: {error.strerror}")


def _text(line: bytes) -> str | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
