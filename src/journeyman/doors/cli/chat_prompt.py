"""The line in which a person writes to ``journeyman chat``: its keys, its history, the completion of its commands."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from journeyman.doors.cli import prompting, screen
from journeyman.doors.cli.program import replace_file, state_folder

if TYPE_CHECKING:
    from journeyman.doors.cli.chat import Command

PROMPT = "you › "
LEAVING = "nothing is under way; /quit or Ctrl-D leaves"
META_WIDTH = 60
MOST_LINES = 1_000
"""Of the history, which is kept between starts: a JSON text a line, the latest last."""
MOST_BYTES = 256_000
LONGEST = 8_000
"""A longer text is pasted, not typed, and stays out."""
ROOM = 2
"""The file may grow to so many times its size before it is cut: cutting writes all of it."""

Choices: TypeAlias = Callable[[str], Awaitable[Sequence[tuple[str, str]]]]
"""What a command can be given, by the command's name: each value, and what it is."""


class ChatPrompt:
    """Reads one message after another."""

    def __init__(self, commands: Mapping[str, Command], choices: Choices) -> None:
        self._session = prompting.new_session(
            multiline=True,
            history=_history(),
            completer=CommandCompleter(commands, choices),
            complete_while_typing=Condition(lambda: get_app().current_buffer.text.startswith("/")),
            reserve_space_for_menu=min(8, len(commands)),
        )
        self._keys = KeyBindings()
        prompting.add_line_keys(self._keys)
        self._keys.add("c-c", filter=~is_searching)(_clear)

    async def read(self) -> str | None:
        """A message, which may have several lines; None when the person leaves."""
        try:
            return await prompting.ask(self._session, PROMPT, self._keys)
        except EOFError:
            return None


def _clear(event: KeyPressEvent) -> None:
    """Ctrl-C: begin the line anew; where there is none, say how to leave."""
    if event.current_buffer.text:
        event.current_buffer.reset()
    else:
        screen.note(LEAVING)  # appears above the line


def _history() -> History:
    try:
        return KeptHistory(history_file())
    except RuntimeError:  # a user without a home
        return InMemoryHistory()


class CommandCompleter(Completer):
    """Completes the names of commands, and what they can be given."""

    def __init__(self, commands: Mapping[str, Command], choices: Choices) -> None:
        self._commands = commands
        self._choices = choices

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return ()  # they are found out asynchronously

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        name, blank, typed = text.partition(" ")
        if not blank:
            found: Iterable[tuple[str, str]] = ((command.name, command.does) for command in self._commands.values())
            typed = name
        elif name in self._commands and self._commands[name].argument:
            found = await self._choices(name)
        else:
            return
        for value, meaning in found:
            if value.startswith(typed):
                yield Completion(
                    value,
                    start_position=-len(typed),
                    display=screen.escaped(value),
                    display_meta=screen.shortened(meaning, META_WIDTH),
                )


# --- its history


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
                replace_file(self._place, b"".join(self._read()))
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

    def _give_up(self, error: OSError) -> None:
        self._kept = False
        screen.note(f"what you say here is not kept for the next start: {str(self._place)!r}: {error.strerror}")


def _text(line: bytes) -> str | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
