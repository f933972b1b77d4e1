"""Lines that a person edits in the terminal: messages, answers to questions, arguments. Built on prompt_toolkit.

Imported only where a person is asked, so that no other command pays for it. Everything is drawn on stderr, as all that
is for the person; what others print meanwhile is written above the line that is edited.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.styles import Style

from journeyman.doors.cli import screen
from journeyman.doors.cli.printed import printing_to_stderr
from journeyman.doors.cli.program import replace_file, state_folder

if TYPE_CHECKING:
    from journeyman.doors.cli.chat import Command

STYLE = Style.from_dict({"prompt": "bold ansicyan", "more": "ansibrightblack"})


# --- one line, or several


async def answer(prompt: str) -> str:
    """A short answer to a question; nothing at the end of input. Ctrl-C is what it is anywhere else: SIGINT.

    What was typed before the question was shown is no answer to it.
    """
    session = new_session()
    clear_typeahead(session.input)
    screen.discard_typed_ahead()
    keys = KeyBindings()
    keys.add("c-c", filter=~is_searching)(lambda event: signal.raise_signal(signal.SIGINT))
    try:
        return await ask(session, prompt, keys)
    except EOFError:
        return ""


async def edited(prompt: str, text: str) -> str | None:
    """A text after a person has changed it; None where they go back, by Ctrl-C or by leaving nothing."""
    session, keys = new_session(multiline=True), KeyBindings()
    add_line_keys(keys)
    keys.add("c-c", filter=~is_searching)(lambda event: event.app.exit(result=""))
    try:
        return (await ask(session, prompt, keys, default=text)).strip() or None
    except EOFError:
        return None


async def ask(session: PromptSession[str], prompt: str, keys: KeyBindings, *, default: str = "") -> str:
    """One reading of a session, with what others print written above it. Raises EOFError at the end of input."""
    with printed_above():
        read = await session.prompt_async(
            [("class:prompt", prompt)],
            key_bindings=keys,
            default=default,
            style=STYLE,
            # Signals and errors are the program's own affair, as while nothing is read.
            handle_sigint=False,
            set_exception_handler=False,
        )
    # Bytes that are no text arrive as surrogates, which neither a store nor a model can take.
    return read.encode(errors="surrogateescape").decode(errors="replace")


def new_session(**options: Any) -> PromptSession[str]:
    """A session on the terminal as it is now. Unless it is given a history, it remembers nothing on disk."""
    return PromptSession(
        input=_input(sys.stdin),
        output=_output(),
        input_processors=[Escapes()],
        prompt_continuation=_continuation,
        enable_suspend=True,
        **options,
    )


def _continuation(width: int, line: int, wrapped: int) -> StyleAndTextTuples:
    """What a further line of the text begins with; the rest of a long one begins at the edge."""
    return [] if wrapped else [("class:more", f"{'· ':>{width}}")]


@cache
def _input(stream: TextIO) -> Input:
    """One for each stream: it holds what was read of a key so far."""
    return create_input(stream)


def _output() -> Output:
    output = create_output(sys.stderr)
    # A terminal's answer to "where is the cursor?" may come when nobody reads any more, and would then be shown.
    if hasattr(output, "enable_cpr"):
        output.enable_cpr = False
    return output


def add_line_keys(keys: KeyBindings) -> None:
    """Enter sends; after a backslash, or with Alt, it begins another line."""

    @keys.add("enter", filter=~is_searching)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=~is_searching)
    def another_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)


class Escapes(Processor):
    """Shows what a terminal would obey or hide as its escape. Pasted text is foreign text, too."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if all(screen.escaped(fragment[1]) == fragment[1] for fragment in fragments):
            return Transformation(fragments)
        shown: list[Any] = []
        places = [0]  # where the nth character begins
        for style, text, *rest in fragments:
            escaped = [screen.escaped(character) for character in text]
            for piece in escaped:
                places.append(places[-1] + len(piece))
            shown.append((style, "".join(escaped), *rest))
        last = len(places) - 1
        return Transformation(
            shown,
            source_to_display=lambda at: places[at] if at <= last else places[last] + at - last,
            display_to_source=lambda at: next((n for n, place in enumerate(places) if place >= at), last),
        )


# --- what others print meanwhile


@contextmanager
def printed_above() -> Iterator[None]:
    """While a line is edited: what is printed, logged or noted appears above it, and nothing tears it apart."""
    terminal = sys.stderr
    above = _Above(terminal)
    stream = cast("TextIO", above)
    handlers = [handler for handler in _log_handlers() if handler.stream is terminal]
    sys.stderr = stream
    for handler in handlers:
        handler.setStream(stream)
    try:
        with printing_to_stderr():
            yield
    finally:
        sys.stderr = terminal
        for handler in handlers:
            handler.setStream(terminal)
        above.finish()


def _log_handlers() -> Iterator[logging.StreamHandler[Any]]:
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        for handler in logger.handlers if isinstance(logger, logging.Logger) else ():
            if isinstance(handler, logging.StreamHandler):
                yield handler


class _Above(io.TextIOBase):
    """Writes whole lines above what is being edited. Threads may write to it at any time, also when that is over."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._loop = asyncio.get_running_loop()
        self._waiting: list[str] = []
        self._writing = threading.Lock()
        self._over = False

    def write(self, text: str) -> int:
        with self._writing:
            self._waiting.append(text)
        if self._over:
            self._write_out()
        elif "\n" in text:
            self._loop.call_soon_threadsafe(self._write_above)
        return len(text)

    def _write_above(self) -> None:
        if self._waiting:  # one drawing for all that has come meanwhile
            run_in_terminal(self._write_out)

    def _write_out(self) -> None:
        with self._writing:
            text, self._waiting = "".join(self._waiting), []
            self._terminal.write(text)
            self._terminal.flush()

    def finish(self) -> None:
        """Nothing is edited any more: write out at once, now and from now on."""
        self._over = True
        self._write_out()

    def flush(self) -> None:
        """Nothing: half a line would be overwritten by the line that is edited."""

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def fileno(self) -> int:
        return self._terminal.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # no property there; rich asks for it
        return self._terminal.encoding


# --- the line in which a person writes to ``journeyman chat``: its keys, its history, the completion of its commands


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
        self._session = new_session(
            multiline=True,
            history=_history(),
            completer=CommandCompleter(commands, choices),
            complete_while_typing=Condition(lambda: get_app().current_buffer.text.startswith("/")),
            reserve_space_for_menu=min(8, len(commands)),
        )
        self._keys = KeyBindings()
        add_line_keys(self._keys)
        self._keys.add("c-c", filter=~is_searching)(_clear)

    async def read(self) -> str | None:
        """A message, which may have several lines; None when the person leaves."""
        try:
            return await ask(self._session, PROMPT, self._keys)
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
