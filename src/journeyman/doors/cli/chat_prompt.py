"""The line in which a person writes to ``journeyman chat``: its keys, its history, the completion of its commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from journeyman.doors.cli import prompting, screen
from journeyman.doors.cli.chat_commands import Command
from journeyman.doors.cli.chat_history import KeptHistory, history_file

PROMPT = "you › "
LEAVING = "nothing is under way; /quit or Ctrl-D leaves"
META_WIDTH = 60

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
