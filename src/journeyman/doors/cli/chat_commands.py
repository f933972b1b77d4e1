"""The commands inside ``journeyman chat``: which there are, and which one a line gives."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

_NAME = re.compile(r"/[a-zA-Z]*")


@dataclass(frozen=True, slots=True)
class Command:
    """One of them, in words."""

    name: str
    does: str
    argument: str = ""
    """What it can be given, e.g. ``NAME``; nothing for most."""

    @property
    def usage(self) -> str:
        return f"{self.name} {self.argument}".rstrip()


COMMANDS = {
    command.name: command
    for command in (
        Command("/help", "what can be typed here"),
        Command("/tools", "what the assistant can do, or all about one tool", "[NAME]"),
        Command("/history", "what was said in this session"),
        Command("/rate", "say whether the last answer was right; people's ratings are learned from", "good|bad [NOTE]"),
        Command("/new", "begin a new session; this one is kept"),
        Command("/sessions", "your latest sessions"),
        Command("/session", "go on with another session", "ID"),
        Command("/quit", "leave; so does Ctrl-D"),
    )
}
KEYS = {
    "Ctrl-C": "cancel what is under way, and go on talking",
    "Alt-Enter": "another line of the same message; so does Enter after a backslash",
    "Tab": "complete a command",
    "Ctrl-R": "search what you have said before; the arrow keys go through it",
}


def parsed(line: str) -> tuple[str, str] | None:
    """The command and its argument that a line gives; None where it is a message, such as a path."""
    name, _, argument = line.partition(" ")
    return (name, argument.strip()) if _NAME.fullmatch(name) and "\n" not in line else None


def unknown(name: str) -> str:
    """What to say of a command that is not there."""
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f"there is no {name!r}; {f'did you mean {near[0]}?' if near else '/help tells what there is'}"
