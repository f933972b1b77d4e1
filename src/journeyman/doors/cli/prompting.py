"""Lines that a person edits in the terminal: messages, answers to questions, arguments. Built on prompt_toolkit.

Imported only where a person is asked, so that no other command pays for it. Everything is drawn on stderr, as all that
is for the person; what others print meanwhile is written above the line that is edited.
"""

from __future__ import annotations

import asyncio
import io
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TextIO, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.styles import Style

from journeyman.doors.cli import screen
from journeyman.doors.cli.printed import printing_to_stderr

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
